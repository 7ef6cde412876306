/*
 * The body of a model request, put together from byte ranges of the client's own
 * body and a few texts of ours. Nothing of the conversation is parsed or written
 * again, but for the few values that a chat model must not get as they are
 * (the role "developer", tool results in parts).
 */

#include "ngx_http_toolgate_prompt.h"


static void ngx_http_toolgate_prompt_relay(
    ngx_http_toolgate_prompt_builder_t *p);
static void ngx_http_toolgate_prompt_agent(ngx_http_toolgate_prompt_builder_t *p);
static void ngx_http_toolgate_prompt_messages(
    ngx_http_toolgate_prompt_builder_t *p);
static void ngx_http_toolgate_prompt_message(
    ngx_http_toolgate_prompt_builder_t *p, const tg_scan_message_t *message,
    size_t *from);
static void ngx_http_toolgate_prompt_tools(ngx_http_toolgate_prompt_builder_t *p);
static void ngx_http_toolgate_prompt_rest(ngx_http_toolgate_prompt_builder_t *p,
    const char *const *left_out);
static ngx_uint_t ngx_http_toolgate_prompt_is(ngx_http_toolgate_run_t *run,
    const tg_scan_member_t *member, const char *const *names);
static void ngx_http_toolgate_prompt_parts(tg_str_t json, tg_buf_t *out);


const char *const  ngx_http_toolgate_own_fields[] = {
    "account_id", "session_id", "end_user", "invocation_id", "allow_actions",
    "variables", "test", "if_busy", "new_segment", NULL
};

const char *const  ngx_http_toolgate_agent_fields[] = {
    "account_id", "session_id", "end_user", "invocation_id", "allow_actions",
    "variables", "test", "if_busy", "new_segment", "model", "messages", "stream",
    "stream_options", "tools", "tool_choice", "store", "metadata", "n", NULL
};


ngx_int_t
ngx_http_toolgate_prompt_chain(ngx_http_toolgate_run_t *run, ngx_chain_t **chain,
    off_t *length)
{
    ngx_http_toolgate_upstream_t        *upstream;
    ngx_http_toolgate_prompt_builder_t   p;

    ngx_http_toolgate_prompt_begin(&p, run);

    upstream = ngx_http_toolgate_model_upstream(run);

    if (upstream->responses) {
        ngx_http_toolgate_prompt_responses(&p);

    } else if (run->agent) {
        ngx_http_toolgate_prompt_agent(&p);

    } else {
        ngx_http_toolgate_prompt_relay(&p);
    }

    *chain = p.first;
    *length = p.length;

    return p.failed ? NGX_ERROR : NGX_OK;
}


void
ngx_http_toolgate_prompt_release(ngx_http_toolgate_run_t *run)
{
    if (!run->prompt.owned || !ngx_http_toolgate_turn_forget(&run->turn)) {
        return;
    }

    tg_scan_free(run->prompt.scan);
    ngx_http_toolgate_bytes_free(run->request->pool, run->prompt.body,
                                 run->prompt.cap);

    run->prompt.scan = NULL;
    run->prompt.body = NULL;
    run->prompt.owned = 0;
}


/* Pass-through: the body as it came, but for the model's name and our fields. */
static void
ngx_http_toolgate_prompt_relay(ngx_http_toolgate_prompt_builder_t *p)
{
    size_t                         i, from;
    ngx_http_toolgate_run_t       *run;
    const tg_scan_member_t        *member;
    ngx_http_toolgate_upstream_t  *upstream;

    run = p->run;
    upstream = ngx_http_toolgate_model_upstream(run);

    for (i = 0; i < tg_scan_member_count(run->prompt.scan); i++) {
        member = tg_scan_member(run->prompt.scan, i);

        if (ngx_http_toolgate_prompt_is(run, member,
                                        ngx_http_toolgate_own_fields))
        {
            ngx_http_toolgate_prompt_lit(p, "{\"model\":");
            ngx_http_toolgate_prompt_name(p);
            ngx_http_toolgate_prompt_rest(p, ngx_http_toolgate_own_fields);
            ngx_http_toolgate_prompt_lit(p, "}");
            return;
        }
    }

    from = 0;

    if (upstream->vendor_name.len) {
        member = tg_scan_find(run->prompt.scan, (char *) run->prompt.body,
                              "model");
        ngx_http_toolgate_prompt_ref(p, run->prompt.body, member->value.start);
        ngx_http_toolgate_prompt_name(p);
        from = member->value.end;
    }

    ngx_http_toolgate_prompt_ref(p, run->prompt.body + from,
                                 run->prompt.len - from);
}


static void
ngx_http_toolgate_prompt_agent(ngx_http_toolgate_prompt_builder_t *p)
{
    ngx_http_toolgate_prompt_lit(p, "{\"model\":");
    ngx_http_toolgate_prompt_name(p);
    ngx_http_toolgate_prompt_lit(p, ",\"messages\":[");
    ngx_http_toolgate_prompt_messages(p);
    ngx_http_toolgate_prompt_lit(p, "],\"stream\":true,\"stream_options\":"
                                    "{\"include_usage\":true}");
    ngx_http_toolgate_prompt_tools(p);
    ngx_http_toolgate_prompt_rest(p, ngx_http_toolgate_agent_fields);
    ngx_http_toolgate_prompt_lit(p, "}");
}


static void
ngx_http_toolgate_prompt_messages(ngx_http_toolgate_prompt_builder_t *p)
{
    size_t                    i, n, from;
    tg_buf_t                  text;
    ngx_str_t                *round, system, before;
    ngx_http_toolgate_run_t  *run;

    run = p->run;
    system = run->agent->instructions;

    if (system.len) {
        tg_buf_init(&text, 16 * 1024 * 1024);
        tg_buf_cstr(&text, "{\"role\":\"system\",\"content\":");
        ngx_http_toolgate_prompt_fill(run, &text);
        tg_buf_cstr(&text, "},");
        ngx_http_toolgate_prompt_copy(p, &text);
        tg_buf_free(&text);
    }

    before = ngx_http_toolgate_run_session_history(run);

    if (before.len) {
        ngx_http_toolgate_prompt_ref(p, before.data, before.len);
        ngx_http_toolgate_prompt_lit(p, ",");
    }

    n = tg_scan_message_count(run->prompt.scan);
    from = tg_scan_message(run->prompt.scan, 0)->whole.start;

    for (i = 0; i < n; i++) {
        ngx_http_toolgate_prompt_message(p,
                                 tg_scan_message(run->prompt.scan, i), &from);
    }

    ngx_http_toolgate_prompt_ref(p, run->prompt.body + from,
                 tg_scan_message(run->prompt.scan, n - 1)->whole.end - from);

    round = run->history.elts;

    for (i = 0; i < run->history.nelts; i++) {
        ngx_http_toolgate_prompt_ref(p, round[i].data, round[i].len);
    }
}


ngx_int_t
ngx_http_toolgate_prompt_text(ngx_http_toolgate_run_t *run, size_t i, tg_buf_t *out)
{
    size_t                               from;
    ngx_chain_t                         *cl;
    const tg_scan_message_t             *message;
    ngx_http_toolgate_prompt_builder_t   p;

    ngx_http_toolgate_prompt_begin(&p, run);

    message = tg_scan_message(run->prompt.scan, i);
    from = message->whole.start;

    ngx_http_toolgate_prompt_message(&p, message, &from);
    ngx_http_toolgate_prompt_ref(&p, run->prompt.body + from,
                                 message->whole.end - from);

    for (cl = p.first; cl; cl = cl->next) {
        tg_buf_append(out, cl->buf->pos, cl->buf->last - cl->buf->pos);
    }

    return (p.failed || out->error != TG_OK) ? NGX_ERROR : NGX_OK;
}


/* Adds what lies before a value that has to change, then the value in its new
 * form; *from is the first byte that was not added yet. */
static void
ngx_http_toolgate_prompt_message(ngx_http_toolgate_prompt_builder_t *p,
    const tg_scan_message_t *message, size_t *from)
{
    char       role[16];
    u_char    *body;
    tg_buf_t   text;
    ptrdiff_t  n;
    tg_scan_range_t  first, second;
    ngx_uint_t       developer, tool;

    body = p->run->prompt.body;
    n = tg_scan_string((char *) body, message->role, role, sizeof(role));

    developer = (n == 9 && ngx_memcmp(role, "developer", 9) == 0);
    tool = (n == 4 && ngx_memcmp(role, "tool", 4) == 0
            && message->content.type != TG_SCAN_STRING
            && message->content.type != TG_SCAN_NONE);

    if (developer) {
        first = message->role;
        ngx_http_toolgate_prompt_ref(p, body + *from, first.start - *from);
        ngx_http_toolgate_prompt_lit(p, "\"system\"");
        *from = first.end;
    }

    if (tool) {
        second = message->content;

        /* bounded by the body itself: an escape has at most six bytes for one */

        tg_buf_init(&text, 6 * (second.end - second.start) + 2);
        ngx_http_toolgate_prompt_parts(
            (tg_str_t) { second.end - second.start,
                         (char *) body + second.start }, &text);

        ngx_http_toolgate_prompt_ref(p, body + *from, second.start - *from);
        ngx_http_toolgate_prompt_copy(p, &text);
        tg_buf_free(&text);
        *from = second.end;
    }
}


/* A tool result in parts becomes one string; null is an empty one. */
static void
ngx_http_toolgate_prompt_parts(tg_str_t json, tg_buf_t *out)
{
    json_t           *parts, *part;
    size_t            i;
    tg_buf_t          text;
    tg_json_error_t   error;

    tg_buf_init(&text, json.len);
    parts = tg_json_load(json, &error);

    if (json_is_array(parts)) {
        json_array_foreach(parts, i, part) {
            tg_buf_str(&text, tg_json_get_string(part, "text"));
        }

    } else if (parts && !json_is_null(parts)) {
        tg_buf_str(&text, json);
    }

    tg_buf_json_string(out, tg_buf_get(&text));

    if (text.error != TG_OK) {
        out->error = text.error;
    }

    tg_buf_free(&text);
    json_decref(parts);
}


/* The list is the same to the byte in every turn: ours by name, then the
 * caller's. In the last turn it stays and is switched off. */
static void
ngx_http_toolgate_prompt_tools(ngx_http_toolgate_prompt_builder_t *p)
{
    size_t                       i, n;
    ngx_http_toolgate_run_t     *run;
    const tg_scan_member_t      *own, *choice;
    ngx_http_toolgate_grant_t  **grant;

    run = p->run;
    n = run->offered.nelts + json_array_size(run->prompt.tools);

    if (n == 0) {
        return;
    }

    ngx_http_toolgate_prompt_lit(p, ",\"tools\":[");
    grant = run->offered.elts;

    for (i = 0; i < run->offered.nelts; i++) {
        if (i) {
            ngx_http_toolgate_prompt_lit(p, ",");
        }

        ngx_http_toolgate_prompt_ref(p, grant[i]->definition.data,
                                     grant[i]->definition.len);
    }

    if (json_array_size(run->prompt.tools)) {
        own = tg_scan_find(run->prompt.scan, (char *) run->prompt.body, "tools");

        if (i) {
            ngx_http_toolgate_prompt_lit(p, ",");
        }

        /* the list's inside, without its brackets */

        ngx_http_toolgate_prompt_ref(p, run->prompt.body + own->value.start + 1,
                                     own->value.end - own->value.start - 2);
    }

    ngx_http_toolgate_prompt_lit(p, "]");

    if (run->final) {
        ngx_http_toolgate_prompt_lit(p, ",\"tool_choice\":\"none\"");
        return;
    }

    choice = tg_scan_find(run->prompt.scan, (char *) run->prompt.body,
                          "tool_choice");

    /* a forced call is for the first turn: it would force one in each */

    if (choice && choice->value.type != TG_SCAN_NULL && run->round == 0) {
        ngx_http_toolgate_prompt_lit(p, ",\"tool_choice\":");
        ngx_http_toolgate_prompt_ref(p, run->prompt.body + choice->value.start,
                                     choice->value.end - choice->value.start);
    }
}


static void
ngx_http_toolgate_prompt_rest(ngx_http_toolgate_prompt_builder_t *p,
    const char *const *left_out)
{
    size_t                    i;
    ngx_http_toolgate_run_t  *run;
    const tg_scan_member_t   *member;

    static const char *const  model[] = { "model", NULL };

    run = p->run;

    for (i = 0; i < tg_scan_member_count(run->prompt.scan); i++) {
        member = tg_scan_member(run->prompt.scan, i);

        if (ngx_http_toolgate_prompt_is(run, member, left_out)
            || ngx_http_toolgate_prompt_is(run, member, model))
        {
            continue;
        }

        ngx_http_toolgate_prompt_lit(p, ",");
        ngx_http_toolgate_prompt_ref(p, run->prompt.body + member->key.start,
                                     member->value.end - member->key.start);
    }
}


static ngx_uint_t
ngx_http_toolgate_prompt_is(ngx_http_toolgate_run_t *run,
    const tg_scan_member_t *member, const char *const *names)
{
    char        key[32];
    ptrdiff_t   n;
    ngx_uint_t  i;

    n = tg_scan_string((char *) run->prompt.body, member->key, key, sizeof(key));

    for (i = 0; n >= 0 && names[i]; i++) {
        if (ngx_strlen(names[i]) == (size_t) n
            && ngx_memcmp(names[i], key, (size_t) n) == 0)
        {
            return 1;
        }
    }

    return 0;
}


/* Appends the instructions as a JSON string, {{var.name}} filled in. The catalog
 * has seen to it that each name has a value. */
void
ngx_http_toolgate_prompt_fill(ngx_http_toolgate_run_t *run, tg_buf_t *out)
{
    char         name[NGX_HTTP_TOOLGATE_VARIABLE_NAME_MAX + 1];
    tg_buf_t     text;
    tg_str_t     value;
    const char  *p, *last, *open, *close;

    tg_buf_init(&text, 4 * 1024 * 1024);

    p = (char *) run->agent->instructions.data;
    last = p + run->agent->instructions.len;

    while (p < last) {
        open = memmem(p, (size_t) (last - p), "{{var.", 6);
        close = open ? memmem(open, (size_t) (last - open), "}}", 2) : NULL;

        if (close == NULL) {
            break;
        }

        tg_buf_append(&text, p, (size_t) (open - p));
        open += 6;
        value = tg_null_str;

        if ((size_t) (close - open) <= NGX_HTTP_TOOLGATE_VARIABLE_NAME_MAX) {
            ngx_memcpy(name, open, (size_t) (close - open));
            name[close - open] = '\0';
            value = tg_json_get_string(run->variables, name);
        }

        if (value.data) {
            tg_buf_str(&text, value);

        } else {
            tg_buf_append(&text, open - 6, (size_t) (close + 2 - (open - 6)));
        }

        p = close + 2;
    }

    tg_buf_append(&text, p, (size_t) (last - p));

    if (text.error != TG_OK) {
        out->error = text.error;
    }

    tg_buf_json_string(out, tg_buf_get(&text));
    tg_buf_free(&text);
}
