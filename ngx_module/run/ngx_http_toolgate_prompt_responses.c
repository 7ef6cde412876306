/*
 * The body of a model request for an upstream that speaks the Responses API: the same
 * conversation and the same tools as in a chat request, as items. Nothing is kept with
 * the vendor: what is said before is sent each time.
 */

#include "ngx_http_toolgate_prompt.h"

#include "tg_to_responses.h"
#include "tg_walk.h"


#define NGX_HTTP_TOOLGATE_INSTRUCTIONS_MAX  (16 * 1024 * 1024)

static tg_rc_e ngx_http_toolgate_prompt_responses_add(void *ctx, tg_str_t piece);
static void ngx_http_toolgate_prompt_responses_input(
    ngx_http_toolgate_prompt_builder_t *p, tg_to_responses_t *t);
static void ngx_http_toolgate_prompt_responses_tools(
    ngx_http_toolgate_prompt_builder_t *p, tg_to_responses_t *t);


/* Of a model that is passed through: what is written here, and our own fields. */
static const char *const  ngx_http_toolgate_passed_fields[] = {
    "account_id", "session_id", "end_user", "invocation_id", "allow_actions",
    "variables", "test", "if_busy", "new_segment", "model", "messages", "stream",
    "stream_options", "tools", "tool_choice", "store", NULL
};


void
ngx_http_toolgate_prompt_responses(ngx_http_toolgate_prompt_builder_t *p)
{
    tg_to_responses_t         t;
    ngx_http_toolgate_run_t  *run;

    run = p->run;
    tg_to_responses_init(&t, ngx_http_toolgate_prompt_responses_add, p);

    ngx_http_toolgate_prompt_lit(p, "{\"model\":");
    ngx_http_toolgate_prompt_name(p);
    ngx_http_toolgate_prompt_lit(p, ",\"stream\":true,\"store\":false,\"input\":[");
    ngx_http_toolgate_prompt_responses_input(p, &t);
    ngx_http_toolgate_prompt_lit(p, "]");
    ngx_http_toolgate_prompt_responses_tools(p, &t);

    (void) tg_to_responses_fields(&t, run->prompt.scan, (char *) run->prompt.body,
                                  run->agent ? ngx_http_toolgate_agent_fields
                                             : ngx_http_toolgate_passed_fields);
    ngx_http_toolgate_prompt_lit(p, "}");

    if (t.rc != TG_OK) {
        p->failed = 1;
    }
}


static tg_rc_e
ngx_http_toolgate_prompt_responses_add(void *ctx, tg_str_t piece)
{
    ngx_http_toolgate_prompt_builder_t  *p = ctx;

    ngx_http_toolgate_prompt_piece(p, piece.data, piece.len);

    return p->failed ? TG_E_NOMEM : TG_OK;
}


/* The instructions as a message; an empty string: there are none, or no memory. */
static tg_str_t
ngx_http_toolgate_prompt_responses_system(ngx_http_toolgate_prompt_builder_t *p)
{
    tg_buf_t   text;
    ngx_str_t  copy;

    if (p->run->agent->instructions.len == 0) {
        return tg_null_str;
    }

    ngx_str_null(&copy);
    tg_buf_init(&text, NGX_HTTP_TOOLGATE_INSTRUCTIONS_MAX);
    tg_buf_cstr(&text, "{\"role\":\"system\",\"content\":");
    ngx_http_toolgate_prompt_fill(p->run, &text);
    tg_buf_char(&text, '}');

    if (text.error == TG_OK) {
        copy = ngx_http_toolgate_copy(p->pool, tg_buf_get(&text));
    }

    if (copy.data == NULL) {
        p->failed = 1;
    }

    tg_buf_free(&text);

    return (tg_str_t) { copy.len, (char *) copy.data };
}


static void
ngx_http_toolgate_prompt_responses_input(ngx_http_toolgate_prompt_builder_t *p,
    tg_to_responses_t *t)
{
    size_t                    n, start;
    tg_str_t                  system;
    ngx_str_t                *round, before;
    ngx_uint_t                i;
    ngx_http_toolgate_run_t  *run;

    run = p->run;

    if (run->agent) {
        system = ngx_http_toolgate_prompt_responses_system(p);
        before = ngx_http_toolgate_run_session_history(run);

        if (system.len) {
            (void) tg_to_responses_messages(t, system);
        }

        if (before.len) {
            (void) tg_to_responses_messages(t, (tg_str_t) { before.len,
                                                            (char *) before.data });
        }
    }

    n = tg_scan_message_count(run->prompt.scan);

    if (n) {
        start = tg_scan_message(run->prompt.scan, 0)->whole.start;
        (void) tg_to_responses_messages(t, (tg_str_t) {
            tg_scan_message(run->prompt.scan, n - 1)->whole.end - start,
            (char *) run->prompt.body + start
        });
    }

    round = run->history.elts;

    for (i = 0; i < run->history.nelts; i++) {
        (void) tg_to_responses_messages(t, (tg_str_t) { round[i].len,
                                                        (char *) round[i].data });
    }
}


/* The caller's own tools, without the brackets around them. */
static tg_str_t
ngx_http_toolgate_prompt_responses_own(ngx_http_toolgate_run_t *run)
{
    tg_walk_t                walk;
    const tg_scan_member_t  *own;

    own = tg_scan_find(run->prompt.scan, (char *) run->prompt.body, "tools");

    if (own == NULL || own->value.type != TG_SCAN_ARRAY) {
        return tg_null_str;
    }

    walk = tg_walk_over((tg_str_t) { own->value.end - own->value.start,
                                     (char *) run->prompt.body + own->value.start });
    (void) tg_walk_enter(&walk);

    if (tg_walk_at_element(&walk) == TG_SCAN_NONE) {
        return tg_null_str;
    }

    return (tg_str_t) { (size_t) (walk.end - walk.p) - 1, walk.p };
}


static void
ngx_http_toolgate_prompt_responses_tools(ngx_http_toolgate_prompt_builder_t *p,
    tg_to_responses_t *t)
{
    tg_str_t                     own;
    ngx_uint_t                   i;
    ngx_http_toolgate_run_t     *run;
    const tg_scan_member_t      *choice;
    ngx_http_toolgate_grant_t  **grant;

    run = p->run;
    own = ngx_http_toolgate_prompt_responses_own(run);

    if (run->offered.nelts == 0 && own.len == 0) {
        return;
    }

    ngx_http_toolgate_prompt_lit(p, ",\"tools\":[");
    grant = run->offered.elts;

    for (i = 0; i < run->offered.nelts; i++) {
        (void) tg_to_responses_tools(t, (tg_str_t) {
            grant[i]->definition.len, (char *) grant[i]->definition.data
        });
    }

    if (own.len) {
        (void) tg_to_responses_tools(t, own);
    }

    ngx_http_toolgate_prompt_lit(p, "]");

    if (run->final) {
        ngx_http_toolgate_prompt_lit(p, ",\"tool_choice\":\"none\"");
        return;
    }

    choice = tg_scan_find(run->prompt.scan, (char *) run->prompt.body, "tool_choice");

    /* a forced call is for the first turn: it would force one in each */

    if (choice && choice->value.type != TG_SCAN_NULL && run->round == 0) {
        ngx_http_toolgate_prompt_lit(p, ",\"tool_choice\":");
        (void) tg_to_responses_choice(t, (tg_str_t) {
            choice->value.end - choice->value.start,
            (char *) run->prompt.body + choice->value.start
        });
    }
}
