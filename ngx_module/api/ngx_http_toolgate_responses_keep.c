/*
 * Responses that are kept: what is written down of one when it ends, and what was said
 * before one that goes on from another. What a model has added is kept in the form of
 * chat, as the next turn of the same run would have it; what the caller sent is kept as
 * it came, and always becomes the same messages.
 */

#include "ngx_http_toolgate_responses.h"


#define NGX_HTTP_TOOLGATE_RESPONSES_ADDED_MAX  (64 * 1024 * 1024)


/* A question about what was said before. */
typedef struct {
    ngx_http_toolgate_check_t        *check;
    ngx_http_toolgate_check_done_pt   done;
} ngx_http_toolgate_responses_ask_t;


static void ngx_http_toolgate_responses_chained(void *data,
    ngx_http_toolgate_response_answer_t *answer);
static ngx_int_t ngx_http_toolgate_responses_history(
    ngx_http_toolgate_check_t *c, ngx_http_toolgate_response_answer_t *answer);
static void ngx_http_toolgate_responses_added(ngx_http_toolgate_run_t *run,
    tg_buf_t *out);
static void ngx_http_toolgate_responses_last(ngx_http_toolgate_run_t *run,
    tg_buf_t *out);
static void ngx_http_toolgate_responses_last_calls(ngx_http_toolgate_run_t *run,
    tg_buf_t *out);
static void ngx_http_toolgate_responses_last_call(tg_buf_t *out, ngx_uint_t first,
    tg_str_t id, tg_str_t name, tg_str_t arguments);
static ngx_uint_t ngx_http_toolgate_responses_has_said(
    ngx_http_toolgate_call_t *call);
static tg_str_t ngx_http_toolgate_responses_call_id(
    ngx_http_toolgate_call_t *call);


void
ngx_http_toolgate_responses_key(ngx_http_toolgate_run_t *run, ngx_str_t *response,
    ngx_http_toolgate_response_key_t *key)
{
    key->project = run->project->name;
    key->account = run->prompt.account;
    key->response = *response;
}


void
ngx_http_toolgate_responses_chain(ngx_http_toolgate_check_t *c,
    ngx_http_toolgate_check_done_pt done)
{
    ngx_http_toolgate_run_t              *run;
    ngx_http_toolgate_response_key_t      key;
    ngx_http_toolgate_responses_ask_t    *ask;
    ngx_http_toolgate_responses_state_t  *state;

    run = c->run;
    state = run->face_data;

    ask = ngx_palloc(c->request->pool, sizeof(ngx_http_toolgate_responses_ask_t));
    if (ask == NULL) {
        ngx_http_toolgate_check_refuse(c);
        return;
    }

    ask->check = c;
    ask->done = done;

    ngx_http_toolgate_responses_key(run, &state->previous, &key);

    if (ngx_http_toolgate_response_chain(c->request->pool,
                                         c->request->connection->log,
                                         run->conf->redis, &key,
                                         run->conf->retention,
                                         run->conf->max_history,
                                         ngx_http_toolgate_responses_chained, ask)
        != NGX_OK)
    {
        ngx_http_toolgate_check_refuse(c);
    }
}


static void
ngx_http_toolgate_responses_chained(void *data,
    ngx_http_toolgate_response_answer_t *answer)
{
    ngx_http_toolgate_responses_ask_t *ask = data;

    ngx_connection_t           *connection;
    ngx_http_toolgate_check_t  *c;

    c = ask->check;
    connection = c->request->connection;

    if (ngx_http_toolgate_responses_history(c, answer) == NGX_OK) {
        ask->done(c);

    } else {
        ngx_http_toolgate_check_refuse(c);
    }

    ngx_http_run_posted_requests(connection);
}


static ngx_int_t
ngx_http_toolgate_responses_history(ngx_http_toolgate_check_t *c,
    ngx_http_toolgate_response_answer_t *answer)
{
    size_t                                before;
    tg_buf_t                             *history;
    ngx_uint_t                            i, part;
    ngx_http_toolgate_responses_state_t  *state = c->run->face_data;

    static const char  previous[] = "previous_response_id";

    switch (answer->state) {

    case NGX_HTTP_TOOLGATE_RESPONSE_OK:
        break;

    case NGX_HTTP_TOOLGATE_RESPONSE_NONE:
        return ngx_http_toolgate_check_fault(c, "not_found", previous,
                                             NGX_HTTP_TOOLGATE_RESPONSES_UNKNOWN);

    case NGX_HTTP_TOOLGATE_RESPONSE_BROKEN:
        return ngx_http_toolgate_check_fault(c, "not_found", previous,
                                             "A response that this one goes on from "
                                             "was deleted.");

    case NGX_HTTP_TOOLGATE_RESPONSE_LIVE:
        return ngx_http_toolgate_check_fault(c, "response_in_progress", previous,
                                             NULL);

    case NGX_HTTP_TOOLGATE_RESPONSE_AWAY:
        return ngx_http_toolgate_check_fault(c, "store_unavailable", previous, NULL);
    }

    history = &state->history;

    for (i = answer->part_count & ~(ngx_uint_t) 1; i > 0; i -= 2) {

        for (part = i - 2; part < i; part++) {
            before = history->len;

            if (before) {
                tg_buf_char(history, ',');
            }

            if (part % 2 == 0) {
                (void) tg_responses_messages(
                    (tg_str_t) { answer->parts[part]->len, answer->parts[part]->str },
                    history);

            } else {
                tg_buf_append(history, answer->parts[part]->str,
                              answer->parts[part]->len);
            }

            /* it may have had nothing to say */

            if (before && history->error == TG_OK && history->len == before + 1) {
                history->len = before;
            }
        }
    }

    return history->error == TG_OK ? NGX_OK : NGX_ERROR;
}


void
ngx_http_toolgate_responses_keep(ngx_http_toolgate_run_t *run, tg_str_t object,
    const char *status)
{
    tg_buf_t                              added;
    ngx_str_t                             id;
    ngx_http_toolgate_response_key_t      key;
    ngx_http_toolgate_response_save_t     save;
    ngx_http_toolgate_responses_state_t  *state = run->face_data;

    if (!state->keep) {
        return;
    }

    id.data = (u_char *) state->answer.id;
    id.len = ngx_strlen(id.data);
    ngx_http_toolgate_responses_key(run, &id, &key);

    tg_buf_init(&added, NGX_HTTP_TOOLGATE_RESPONSES_ADDED_MAX);

    if (state->own) {

        /* of what another has driven its items are all that is known */

        (void) tg_responses_messages(tg_responses_member(object, "output"), &added);

    } else if (run->state >= NGX_HTTP_TOOLGATE_RUN_COMPLETED) {
        ngx_http_toolgate_responses_added(run, &added);
    }

    ngx_memzero(&save, sizeof(save));
    save.object.data = (u_char *) object.data;
    save.object.len = object.len;
    save.status = status;
    save.previous = state->previous;
    save.added.data = (u_char *) added.data;
    save.added.len = added.error == TG_OK ? added.len : 0;
    if (!state->there) {
        save.input = state->input;
    }

    save.there = state->there;
    save.answers = tg_responses_answers((tg_str_t) { state->input.len,
                                                     (char *) state->input.data });

    if (!state->there && state->input.len > NGX_HTTP_TOOLGATE_RESPONSE_SLICE) {
        save.data = state->data;
        save.size = state->size;
        state->data = NULL;
        ngx_str_null(&state->input);
    }

    ngx_http_toolgate_response_save(run->conf->redis, &key, run->conf->retention,
                                    &save);
    state->there = 1;
    tg_buf_free(&added);
}


/* All messages that the run adds: rounds that the caller does not see, and the last
 * turn, which has results only of the calls that were made here. */
static void
ngx_http_toolgate_responses_added(ngx_http_toolgate_run_t *run, tg_buf_t *out)
{
    ngx_str_t   *round;
    ngx_uint_t   i;

    round = run->history.elts;

    for (i = 0; i < run->history.nelts; i++) {

        /* each begins with a comma */

        tg_buf_append(out, round[i].data + (i == 0), round[i].len - (i == 0));
    }

    if (run->state == NGX_HTTP_TOOLGATE_RUN_COMPLETED
        || run->state == NGX_HTTP_TOOLGATE_RUN_PAUSED)
    {
        ngx_http_toolgate_responses_last(run, out);
    }
}


static void
ngx_http_toolgate_responses_last(ngx_http_toolgate_run_t *run, tg_buf_t *out)
{
    ngx_uint_t                 i, calls;
    ngx_http_toolgate_call_t  *call;

    calls = (ngx_strcmp(run->finish_reason, "tool_calls") == 0);

    for (i = 0; run->state == NGX_HTTP_TOOLGATE_RUN_PAUSED && i < run->call_count; i++)
    {
        calls |= ngx_http_toolgate_responses_has_said(&run->calls[i]);
    }

    /* one that waits for a person may have said nothing so far */

    if (!calls && run->state == NGX_HTTP_TOOLGATE_RUN_PAUSED
        && run->delta.content.len == 0)
    {
        return;
    }

    if (out->len) {
        tg_buf_char(out, ',');
    }

    tg_buf_cstr(out, "{\"role\":\"assistant\",\"content\":");

    if (calls && run->delta.content.len == 0) {
        tg_buf_cstr(out, "null");

    } else {
        tg_buf_json_string(out, tg_buf_get(&run->delta.content));
    }

    if (run->delta.refusal.len) {
        tg_buf_cstr(out, ",\"refusal\":");
        tg_buf_json_string(out, tg_buf_get(&run->delta.refusal));
    }

    if (calls) {
        ngx_http_toolgate_responses_last_calls(run, out);
    }

    tg_buf_char(out, '}');

    for (i = 0; calls && i < run->call_count; i++) {
        call = &run->calls[i];

        if (ngx_http_toolgate_call_handed_out(call)
            || !ngx_http_toolgate_responses_has_said(call))
        {
            continue;
        }

        tg_buf_cstr(out, ",{\"role\":\"tool\",\"tool_call_id\":");
        tg_buf_json_string(out, ngx_http_toolgate_responses_call_id(call));
        tg_buf_cstr(out, ",\"content\":");
        tg_buf_json_string(out, tg_buf_get(&call->job.result));
        tg_buf_char(out, '}');
    }
}


static void
ngx_http_toolgate_responses_last_calls(ngx_http_toolgate_run_t *run, tg_buf_t *out)
{
    size_t                     i, n;
    tg_delta_call_t           *passed;
    ngx_http_toolgate_call_t  *call;

    tg_buf_cstr(out, ",\"tool_calls\":[");

    for (i = 0, n = 0; run->agent && i < run->call_count; i++) {
        call = &run->calls[i];

        if (!ngx_http_toolgate_responses_has_said(call)) {
            continue;
        }

        ngx_http_toolgate_responses_last_call(out, n++ == 0,
            ngx_http_toolgate_responses_call_id(call),
            (tg_str_t) { call->name.len, (char *) call->name.data },
            call->args ? (tg_str_t) { call->arguments.len,
                                      (char *) call->arguments.data }
                       : tg_str("{}"));
    }

    for (i = 0; run->agent == NULL && i < run->delta.call_count; i++) {
        passed = &run->delta.calls[i];

        ngx_http_toolgate_responses_last_call(out, i == 0,
            tg_buf_get(&passed->id), tg_buf_get(&passed->name),
            passed->arguments.len ? tg_buf_get(&passed->arguments) : tg_str("{}"));
    }

    tg_buf_char(out, ']');
}


static void
ngx_http_toolgate_responses_last_call(tg_buf_t *out, ngx_uint_t first, tg_str_t id,
    tg_str_t name, tg_str_t arguments)
{
    tg_buf_cstr(out, first ? "{\"id\":" : ",{\"id\":");
    tg_buf_json_string(out, id);
    tg_buf_cstr(out, ",\"type\":\"function\",\"function\":{\"name\":");
    tg_buf_json_string(out, name);
    tg_buf_cstr(out, ",\"arguments\":");
    tg_buf_json_string(out, arguments);
    tg_buf_cstr(out, "}}");
}


/* Not of a call that waits for a person: it is part of what comes after. */
static ngx_uint_t
ngx_http_toolgate_responses_has_said(ngx_http_toolgate_call_t *call)
{
    return call->state != NGX_HTTP_TOOLGATE_CALL_HELD
           || ngx_http_toolgate_call_handed_out(call);
}


/* The caller answers the calls that it got by our ids. */
static tg_str_t
ngx_http_toolgate_responses_call_id(ngx_http_toolgate_call_t *call)
{
    return ngx_http_toolgate_call_handed_out(call)
           ? tg_str_of(call->id)
           : (tg_str_t) { call->model_id.len, (char *) call->model_id.data };
}
