/*
 * POST /v1/runs: the request becomes a run in the store, which the run host drives;
 * the caller waits for its end, follows its events, or leaves at once. The input is
 * brought into the form of chat here, so that all after it is the same for all runs.
 */

#include "ngx_http_toolgate_check.h"
#include "ngx_http_toolgate_chat.h"
#include "ngx_http_toolgate_durable.h"
#include "ngx_http_toolgate_runs_face.h"


/* How the caller wants to hear of it. */
typedef struct {
    ngx_uint_t   stream;
    ngx_uint_t   background;
    const char  *code;                  /* what is wrong, found before the check */
    const char  *param;
    const char  *message;
} ngx_http_toolgate_runs_ask_t;


static void ngx_http_toolgate_runs_body(ngx_http_request_t *r,
    ngx_http_toolgate_body_t *body);
static ngx_int_t ngx_http_toolgate_runs_flags(ngx_http_toolgate_body_t *body,
    ngx_http_toolgate_runs_ask_t *ask);
static ngx_int_t ngx_http_toolgate_runs_flag(ngx_http_toolgate_body_t *body,
    ngx_http_toolgate_runs_ask_t *ask, const char *name, ngx_uint_t *value);
static ngx_int_t ngx_http_toolgate_runs_fault(ngx_http_toolgate_runs_ask_t *ask,
    const char *code, const char *param, const char *message);
static ngx_int_t ngx_http_toolgate_runs_chat_form(ngx_http_toolgate_body_t *body,
    ngx_http_toolgate_runs_ask_t *ask);
static void ngx_http_toolgate_runs_member(tg_buf_t *out,
    ngx_http_toolgate_body_t *body, const tg_scan_member_t *member);
static ngx_uint_t ngx_http_toolgate_runs_is_own(ngx_http_toolgate_body_t *body,
    const tg_scan_member_t *member);
static void ngx_http_toolgate_runs_start(ngx_http_toolgate_check_t *c);
static ngx_int_t ngx_http_toolgate_runs_agent(ngx_http_toolgate_check_t *c);


ngx_int_t
ngx_http_toolgate_runs(ngx_http_request_t *r, ngx_http_toolgate_key_t *key,
    ngx_str_t *rest)
{
    ngx_http_toolgate_runs_ask_t   *ask;
    ngx_http_toolgate_main_conf_t  *tmcf;

    if (r->method != NGX_HTTP_POST) {
        return ngx_http_toolgate_run_list(r, key);
    }

    tmcf = ngx_http_get_module_main_conf(r, ngx_http_toolgate_module);

    if (tmcf->run_host.len == 0) {
        return ngx_http_toolgate_reply_error(r, "not_implemented",
                                             "This server has no "
                                             "\"toolgate_run_host\", which runs "
                                             "need. Use /v1/chat/completions.",
                                             NULL);
    }

    ask = ngx_pcalloc(r->pool, sizeof(ngx_http_toolgate_runs_ask_t));
    if (ask == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_toolgate_body_read(r, key, ngx_http_toolgate_runs_body, ask);
}


static void
ngx_http_toolgate_runs_body(ngx_http_request_t *r, ngx_http_toolgate_body_t *body)
{
    ngx_http_toolgate_runs_ask_t  *ask = body->owner;

    if (ngx_http_toolgate_runs_flags(body, ask) != NGX_OK
        || ngx_http_toolgate_runs_chat_form(body, ask) != NGX_OK)
    {
        ngx_http_finalize_request(r,
            ngx_http_toolgate_reply_error(r, ask->code ? ask->code
                                                       : "internal_error",
                                          ask->message, ask->param));
        return;
    }

    ngx_http_toolgate_check(r, body, &ngx_http_toolgate_runs_face,
                            ngx_http_toolgate_runs_start);
}


static ngx_int_t
ngx_http_toolgate_runs_fault(ngx_http_toolgate_runs_ask_t *ask, const char *code,
    const char *param, const char *message)
{
    ask->code = code;
    ask->param = param;
    ask->message = message;

    return NGX_DECLINED;
}


static ngx_int_t
ngx_http_toolgate_runs_flag(ngx_http_toolgate_body_t *body,
    ngx_http_toolgate_runs_ask_t *ask, const char *name, ngx_uint_t *value)
{
    const tg_scan_member_t  *member;

    member = tg_scan_find(body->scan, (char *) body->data, name);

    if (member == NULL || member->value.type == TG_SCAN_NULL) {
        return NGX_OK;
    }

    *value = (member->value.type == TG_SCAN_TRUE);

    if (!*value && member->value.type != TG_SCAN_FALSE) {
        return ngx_http_toolgate_runs_fault(ask, "invalid_type", name,
                                            "This field is true or false.");
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_runs_flags(ngx_http_toolgate_body_t *body,
    ngx_http_toolgate_runs_ask_t *ask)
{
    const tg_scan_member_t  *store;

    if (tg_scan_top_type(body->scan) != TG_SCAN_OBJECT) {
        return ngx_http_toolgate_runs_fault(ask, "invalid_type", NULL,
                                            "The body is a JSON object.");
    }

    store = tg_scan_find(body->scan, (char *) body->data, "store");

    if (store && store->value.type == TG_SCAN_FALSE) {
        return ngx_http_toolgate_runs_fault(ask, "invalid_value", "store",
                                            "A run is always stored. Use chat for "
                                            "an answer that is not.");
    }

    if (ngx_http_toolgate_runs_flag(body, ask, "stream", &ask->stream) != NGX_OK) {
        return NGX_DECLINED;
    }

    return ngx_http_toolgate_runs_flag(body, ask, "background", &ask->background);
}


/* {"agent","input",…} becomes {"model","messages",…}. */
static ngx_int_t
ngx_http_toolgate_runs_chat_form(ngx_http_toolgate_body_t *body,
    ngx_http_toolgate_runs_ask_t *ask)
{
    size_t                   i;
    tg_buf_t                 text;
    ngx_int_t                rc;
    const tg_scan_member_t  *agent, *input, *member;

    agent = tg_scan_find(body->scan, (char *) body->data, "agent");
    input = tg_scan_find(body->scan, (char *) body->data, "input");

    if (agent == NULL || agent->value.type == TG_SCAN_NULL) {
        return ngx_http_toolgate_runs_fault(ask, "missing_parameter", "agent", NULL);
    }

    if (agent->value.type != TG_SCAN_STRING) {
        return ngx_http_toolgate_runs_fault(ask, "invalid_type", "agent",
                                            "\"agent\" is a string.");
    }

    if (input == NULL || input->value.type == TG_SCAN_NULL) {
        return ngx_http_toolgate_runs_fault(ask, "missing_parameter", "input", NULL);
    }

    if (input->value.type != TG_SCAN_STRING && input->value.type != TG_SCAN_ARRAY) {
        return ngx_http_toolgate_runs_fault(ask, "invalid_type", "input",
                                            "\"input\" is a text or a list of "
                                            "messages.");
    }

    tg_buf_init(&text, body->len + 256);
    tg_buf_cstr(&text, "{\"model\":");
    tg_buf_append(&text, body->data + agent->value.start,
                  agent->value.end - agent->value.start);
    tg_buf_cstr(&text, input->value.type == TG_SCAN_STRING
                       ? ",\"messages\":[{\"role\":\"user\",\"content\":"
                       : ",\"messages\":");
    tg_buf_append(&text, body->data + input->value.start,
                  input->value.end - input->value.start);
    tg_buf_cstr(&text, input->value.type == TG_SCAN_STRING ? "}]" : "");

    for (i = 0; i < tg_scan_member_count(body->scan); i++) {
        member = tg_scan_member(body->scan, i);

        if (!ngx_http_toolgate_runs_is_own(body, member)) {
            ngx_http_toolgate_runs_member(&text, body, member);
        }
    }

    tg_buf_char(&text, '}');

    rc = ngx_http_toolgate_body_replace(body, &text);
    tg_buf_free(&text);

    return rc;
}


static void
ngx_http_toolgate_runs_member(tg_buf_t *out, ngx_http_toolgate_body_t *body,
    const tg_scan_member_t *member)
{
    tg_buf_char(out, ',');
    tg_buf_append(out, body->data + member->key.start,
                  member->value.end - member->key.start);
}


/* What has been taken over, or is only about this request. */
static ngx_uint_t
ngx_http_toolgate_runs_is_own(ngx_http_toolgate_body_t *body,
    const tg_scan_member_t *member)
{
    char        key[32];
    ptrdiff_t   n;
    ngx_uint_t  i;

    static const char *const  names[] = {
        "agent", "input", "stream", "background", "model", "messages",
        "stream_options", NULL
    };

    n = tg_scan_string((char *) body->data, member->key, key, sizeof(key));

    for (i = 0; n > 0 && names[i]; i++) {
        if (ngx_strlen(names[i]) == (size_t) n
            && ngx_memcmp(names[i], key, (size_t) n) == 0)
        {
            return 1;
        }
    }

    return 0;
}


static void
ngx_http_toolgate_runs_start(ngx_http_toolgate_check_t *c)
{
    char                           param[sizeof(c->param)];
    ngx_http_toolgate_run_t       *run;
    ngx_http_toolgate_runs_ask_t  *ask = c->body->owner;

    run = c->run;

    if (ngx_http_toolgate_runs_agent(c) != NGX_OK) {

        /* by the names that the caller has used */

        if (ngx_strncmp(c->param, "messages", 8) == 0) {
            snprintf(param, sizeof(param), "input%s", c->param + 8);
            ngx_memcpy(c->param, param, sizeof(param));

        } else if (ngx_strcmp(c->param, "model") == 0) {
            ngx_memcpy(c->param, "agent", sizeof("agent"));
        }

        ngx_http_toolgate_check_refuse(c);
        return;
    }

    ngx_http_toolgate_check_prompt(c);

    run->prompt.stream = ask->stream && !ask->background;

    if (ngx_http_toolgate_durable_open(run, run->face->name,
                                       &run->prompt.invocation) != NGX_OK)
    {
        ngx_http_finalize_request(c->request, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    run->durable->queued = 1;
    run->background = ask->background ? 1 : 0;

    ngx_http_toolgate_run_start(run);
}


static ngx_int_t
ngx_http_toolgate_runs_agent(ngx_http_toolgate_check_t *c)
{
    if (c->run->agent == NULL) {
        return ngx_http_toolgate_check_fault(c, "model_not_found", "agent",
                                             "There is no agent of this name. A "
                                             "configured model answers in chat.");
    }

    if (ngx_http_toolgate_chat_messages(c) != NGX_OK) {
        return NGX_DECLINED;
    }

    c->run->prompt.store = 1;

    return ngx_http_toolgate_check_agent(c);
}
