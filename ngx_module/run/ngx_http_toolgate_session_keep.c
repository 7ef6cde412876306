/*
 * What stays of a run in its session: at each round what would be kept if it got no
 * further, and all that was said when it is over.
 *
 * It is whole at any time: a call without a result has one that says so, since another
 * run may take the session, or this worker end, at any moment.
 */

#include "ngx_http_toolgate_session.h"

#include "tg_json.h"


static void ngx_http_toolgate_run_session_under_way(
    ngx_http_toolgate_run_session_t *session, ngx_uint_t open);
static void ngx_http_toolgate_run_session_pack_round(
    ngx_http_toolgate_run_session_t *session, tg_buf_t *to, tg_str_t text,
    size_t *ends);
static void ngx_http_toolgate_run_session_call_head(ngx_http_toolgate_call_t *call,
    tg_buf_t *head);
static void ngx_http_toolgate_run_session_open_calls(
    ngx_http_toolgate_run_session_t *session, tg_buf_t *open);
static void ngx_http_toolgate_run_session_answer(
    ngx_http_toolgate_run_session_t *session);
static void ngx_http_toolgate_run_session_send(
    ngx_http_toolgate_run_session_t *session, tg_str_t open);


void
ngx_http_toolgate_run_session_head(ngx_http_toolgate_run_t *run, ngx_uint_t round,
    tg_buf_t *head)
{
    tg_buf_printf(head, "\"run\":\"%s\",\"invocation_id\":", run->id);
    tg_buf_json_string(head, ngx_http_toolgate_run_label(run));
    tg_buf_printf(head, ",\"round\":%u", (unsigned) round);
}


ngx_int_t
ngx_http_toolgate_run_session_kept(ngx_http_toolgate_run_session_t *session)
{
    size_t      at;
    char       *round;
    tg_str_t    list, head, message;
    ngx_int_t   rc;

    static const char  name[] = "\"round\":";

    list.data = (char *) session->kept.data;
    list.len = session->kept.len;
    at = 0;

    tg_buf_reset(&session->messages);

    while ((rc = ngx_http_toolgate_session_unpack(list, &at, &head, &message))
           == NGX_OK)
    {
        round = memmem(head.data, head.len, name, sizeof(name) - 1);

        if (round == NULL
            || strtoul(round + sizeof(name) - 1, NULL, 10) > session->run->round)
        {
            break;
        }

        ngx_http_toolgate_session_pack(&session->messages, head, message);
    }

    return (rc == NGX_ERROR || session->messages.error != TG_OK) ? NGX_ERROR : NGX_OK;
}


void
ngx_http_toolgate_run_session_round(ngx_http_toolgate_run_t *run, tg_str_t text,
    size_t *ends)
{
    ngx_http_toolgate_run_session_t  *session;

    session = run->session;

    if (session && session->joined) {
        ngx_http_toolgate_run_session_pack_round(session, &session->messages, text,
                                                 ends);
    }
}


void
ngx_http_toolgate_run_session_keep(ngx_http_toolgate_run_t *run)
{
    ngx_http_toolgate_run_session_t  *session;

    session = run->session;

    if (session == NULL || !session->joined || session->closed) {
        return;
    }

    ngx_http_toolgate_run_session_under_way(session, 0);
    ngx_http_toolgate_run_session_send(session, tg_null_str);
}


void
ngx_http_toolgate_run_session_leave(ngx_http_toolgate_run_t *run)
{
    if (run->session) {
        run->session->closed = 1;
        run->session->ended = 1;
    }
}


void
ngx_http_toolgate_run_session_close(ngx_http_toolgate_run_t *run, const char *code)
{
    tg_buf_t                          open;
    ngx_uint_t                        handed_out;
    ngx_http_toolgate_run_session_t  *session;

    session = run->session;

    if (session == NULL || !session->joined || session->closed) {
        return;
    }

    session->closed = 1;

    /* another run has the session, or another worker has the run */

    if (code && (ngx_strcmp(code, "run_superseded") == 0
                 || ngx_strcmp(code, "run_moved") == 0))
    {
        session->ended = 1;
        return;
    }

    tg_buf_init(&open, NGX_HTTP_TOOLGATE_SESSION_PACK_MAX);

    handed_out = (code == NULL && run->finish_reason
                  && ngx_strcmp(run->finish_reason, "tool_calls") == 0);

    if (code == NULL && !handed_out) {
        ngx_http_toolgate_run_session_answer(session);

    } else {
        ngx_http_toolgate_run_session_under_way(session, handed_out);
    }

    if (handed_out) {
        ngx_http_toolgate_run_session_open_calls(session, &open);

    } else if (code && ngx_strcmp(code, "run_cancelled") != 0
               && session->scratch.len == session->request_len)
    {
        /* a fault of ours or of the model: the request will come again */
        tg_buf_reset(&session->scratch);
    }

    ngx_http_toolgate_run_session_send(session, tg_buf_get(&open));
    tg_buf_free(&open);
}


/* All messages so far, with the round that is under way; open: calls that were handed
 * out get no result. */
static void
ngx_http_toolgate_run_session_under_way(ngx_http_toolgate_run_session_t *session,
    ngx_uint_t open)
{
    size_t                    ends[TG_DELTA_MAX_CALLS + 1];
    tg_buf_t                  text;
    ngx_http_toolgate_run_t  *run;

    run = session->run;

    tg_buf_reset(&session->scratch);
    tg_buf_str(&session->scratch, tg_buf_get(&session->messages));

    if (run->call_count == 0) {
        return;
    }

    tg_buf_init(&text, NGX_HTTP_TOOLGATE_SESSION_PACK_MAX);
    ngx_http_toolgate_calls_text(run, open, &text, ends);

    if (text.error == TG_OK) {
        ngx_http_toolgate_run_session_pack_round(session, &session->scratch,
                                                 tg_buf_get(&text), ends);

    } else {
        session->scratch.error = text.error;
    }

    tg_buf_free(&text);
}


/* text is that of calls_text: each message has a comma before it. */
static void
ngx_http_toolgate_run_session_pack_round(ngx_http_toolgate_run_session_t *session,
    tg_buf_t *to, tg_str_t text, size_t *ends)
{
    size_t                     from;
    tg_buf_t                   head;
    ngx_uint_t                 i;
    ngx_http_toolgate_run_t   *run;

    run = session->run;
    tg_buf_init(&head, NGX_HTTP_TOOLGATE_SESSION_HEAD_MAX);

    ngx_http_toolgate_run_session_head(run, run->round, &head);
    tg_buf_cstr(&head, ",\"calls\":[");

    for (i = 0; i < run->call_count; i++) {
        tg_buf_printf(&head, "%s\"%s\"", i ? "," : "", run->calls[i].id);
    }

    tg_buf_char(&head, ']');

    for (i = 0, from = 0; /* void */ ; from = ends[i++]) {

        if (ends[i] > from) {
            ngx_http_toolgate_session_pack(to, tg_buf_get(&head),
                (tg_str_t) { ends[i] - from - 1, text.data + from + 1 });
        }

        if (i == run->call_count) {
            break;
        }

        tg_buf_reset(&head);
        ngx_http_toolgate_run_session_head(run, run->round, &head);
        ngx_http_toolgate_run_session_call_head(&run->calls[i], &head);
    }

    if (head.error != TG_OK) {
        to->error = head.error;
    }

    tg_buf_free(&head);
}


static void
ngx_http_toolgate_run_session_call_head(ngx_http_toolgate_call_t *call,
    tg_buf_t *head)
{
    const char  *code;

    code = ngx_http_toolgate_call_outcome(call);

    tg_buf_printf(head, ",\"call_id\":\"%s\",\"name\":", call->id);
    tg_buf_json_string(head, (tg_str_t) { call->name.len,
                                          (char *) call->name.data });
    tg_buf_printf(head, ",\"status\":\"%s\",\"code\":",
                  ngx_http_toolgate_call_status(code));

    if (code) {
        tg_buf_json_string(head, tg_str_of(code));

    } else {
        tg_buf_cstr(head, "null");
    }
}


/* What is to stand for the results of calls that nobody answers. */
static void
ngx_http_toolgate_run_session_open_calls(ngx_http_toolgate_run_session_t *session,
    tg_buf_t *open)
{
    tg_buf_t                   head, text, result;
    ngx_uint_t                 i;
    ngx_http_toolgate_run_t   *run;
    ngx_http_toolgate_call_t  *call;

    run = session->run;

    tg_buf_init(&head, NGX_HTTP_TOOLGATE_SESSION_HEAD_MAX);
    tg_buf_init(&text, NGX_HTTP_TOOLGATE_SESSION_PACK_MAX);
    tg_buf_init(&result, NGX_HTTP_TOOLGATE_RESULT_MAX);
    (void) tg_policy_envelope("client_tool_failed", tg_null_str, &result);

    for (i = 0; i < run->call_count; i++) {
        call = &run->calls[i];

        if (!call->caller_owned || call->code) {
            continue;
        }

        tg_buf_reset(&head);
        ngx_http_toolgate_run_session_head(run, run->round, &head);
        tg_buf_printf(&head, ",\"call_id\":\"%s\",\"name\":", call->id);
        tg_buf_json_string(&head, (tg_str_t) { call->name.len,
                                               (char *) call->name.data });
        tg_buf_cstr(&head, ",\"status\":\"failed\",\"code\":"
                           "\"client_tool_failed\"");

        tg_buf_reset(&text);
        tg_buf_printf(&text, "{\"role\":\"tool\",\"tool_call_id\":\"%s\","
                             "\"content\":", call->id);
        tg_buf_json_string(&text, tg_buf_get(&result));
        tg_buf_char(&text, '}');

        ngx_http_toolgate_session_pack(open, tg_buf_get(&head), tg_buf_get(&text));
    }

    tg_buf_free(&head);
    tg_buf_free(&text);
    tg_buf_free(&result);
}


/* All messages, with what the model has answered at last. */
static void
ngx_http_toolgate_run_session_answer(ngx_http_toolgate_run_session_t *session)
{
    tg_buf_t                  head, text;
    ngx_http_toolgate_run_t  *run;

    run = session->run;

    tg_buf_reset(&session->scratch);
    tg_buf_str(&session->scratch, tg_buf_get(&session->messages));

    /* an empty message is refused by some models when they get it back */

    if (run->delta.content.len == 0 && run->delta.refusal.len == 0) {
        return;
    }

    tg_buf_init(&head, NGX_HTTP_TOOLGATE_SESSION_HEAD_MAX);
    tg_buf_init(&text, NGX_HTTP_TOOLGATE_SESSION_PACK_MAX);

    tg_buf_cstr(&text, "{\"role\":\"assistant\",\"content\":");

    if (run->delta.content.len) {
        tg_buf_json_string(&text, tg_buf_get(&run->delta.content));

    } else {
        tg_buf_cstr(&text, "null");
    }

    if (run->delta.refusal.len) {
        tg_buf_cstr(&text, ",\"refusal\":");
        tg_buf_json_string(&text, tg_buf_get(&run->delta.refusal));
    }

    tg_buf_char(&text, '}');
    ngx_http_toolgate_run_session_head(run, run->round + 1, &head);

    if (text.error == TG_OK && head.error == TG_OK) {
        ngx_http_toolgate_session_pack(&session->scratch, tg_buf_get(&head),
                                       tg_buf_get(&text));
    }

    tg_buf_free(&head);
    tg_buf_free(&text);
}


static void
ngx_http_toolgate_run_session_send(ngx_http_toolgate_run_session_t *session,
    tg_str_t open)
{
    ngx_str_t                 id;
    ngx_http_toolgate_run_t  *run;

    run = session->run;

    /* half of it would be wrong: the session keeps what it has */

    if (session->scratch.error != TG_OK) {
        ngx_log_error(NGX_LOG_ERR, run->request->connection->log, 0,
                      "toolgate: run %s says too much for its session", run->id);
        return;
    }

    id.data = (u_char *) run->id;
    id.len = ngx_strlen(run->id);

    ngx_http_toolgate_session_keep(run->conf->redis, &session->key,
                                   run->conf->retention, &id,
                                   tg_buf_get(&session->scratch), open);
}


void
ngx_http_toolgate_run_session_end(ngx_http_toolgate_run_t *run)
{
    ngx_str_t                         id;
    ngx_http_toolgate_run_session_t  *session;

    session = run->session;

    if (session == NULL || !session->closed || session->ended) {
        return;
    }

    session->ended = 1;

    id.data = (u_char *) run->id;
    id.len = ngx_strlen(run->id);

    ngx_http_toolgate_session_end(run->conf->redis, &session->key,
                                  run->conf->retention, &id);
}
