/*
 * How a run looks as a response: events while it goes on, or one object at the end,
 * both made of the same items. It decides nothing.
 */

#include "ngx_http_toolgate_face.h"
#include "ngx_http_toolgate_responses.h"


#define NGX_HTTP_TOOLGATE_RESPONSES_ECHO_MAX     (16 * 1024 * 1024)
#define NGX_HTTP_TOOLGATE_RESPONSES_HISTORY_MAX  (64 * 1024 * 1024)


static ngx_int_t ngx_http_toolgate_responses_text(ngx_http_toolgate_run_t *run,
    tg_str_t text);
static ngx_int_t ngx_http_toolgate_responses_refusal(ngx_http_toolgate_run_t *run,
    tg_str_t text);
static ngx_int_t ngx_http_toolgate_responses_reasoning(
    ngx_http_toolgate_run_t *run, tg_str_t text);
static ngx_int_t ngx_http_toolgate_responses_ping(ngx_http_toolgate_run_t *run);
static ngx_int_t ngx_http_toolgate_responses_finish(ngx_http_toolgate_run_t *run);
static ngx_int_t ngx_http_toolgate_responses_fail(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_failure_t *failure);
static ngx_int_t ngx_http_toolgate_responses_paragraph(
    ngx_http_toolgate_run_t *run);
static ngx_int_t ngx_http_toolgate_responses_call_begins(
    ngx_http_toolgate_run_t *run, ngx_http_toolgate_call_t *call);
static ngx_int_t ngx_http_toolgate_responses_call_ended(
    ngx_http_toolgate_run_t *run, ngx_http_toolgate_call_t *call);
static tg_rc_e ngx_http_toolgate_responses_handed(ngx_http_toolgate_run_t *run);
static tg_rc_e ngx_http_toolgate_responses_waits(ngx_http_toolgate_run_t *run);
static ngx_uint_t ngx_http_toolgate_responses_is_client(
    ngx_http_toolgate_call_t *call);
static tg_rc_e ngx_http_toolgate_responses_passed(ngx_http_toolgate_run_t *run);
static void ngx_http_toolgate_responses_cleanup(void *data);


const ngx_http_toolgate_face_t  ngx_http_toolgate_responses_face = {
    .text = ngx_http_toolgate_responses_text,
    .refusal = ngx_http_toolgate_responses_refusal,
    .reasoning = ngx_http_toolgate_responses_reasoning,
    .ping = ngx_http_toolgate_responses_ping,
    .finish = ngx_http_toolgate_responses_finish,
    .fail = ngx_http_toolgate_responses_fail,
    .paragraph = ngx_http_toolgate_responses_paragraph,
    .call_begins = ngx_http_toolgate_responses_call_begins,
    .call_ended = ngx_http_toolgate_responses_call_ended,
    .name = "responses",
    .waits = 1,
    .pauses = 1,
    .event = ngx_http_toolgate_responses_event,
    .document = ngx_http_toolgate_responses_document
};


static tg_str_t
ngx_http_toolgate_responses_str(ngx_str_t *s)
{
    return (tg_str_t) { s->len, (char *) s->data };
}


ngx_int_t
ngx_http_toolgate_responses_face_init(ngx_http_toolgate_check_t *c,
    ngx_uint_t keep)
{
    char                                  id[TG_ID_MAX_LEN];
    tg_rc_e                               rc;
    ngx_pool_cleanup_t                   *cln;
    tg_responses_fault_t                  fault;
    ngx_http_toolgate_run_t              *run;
    ngx_http_toolgate_responses_state_t  *state;

    run = c->run;

    cln = ngx_pool_cleanup_add(run->request->pool,
                               sizeof(ngx_http_toolgate_responses_state_t));
    if (cln == NULL) {
        return NGX_ERROR;
    }

    state = cln->data;
    ngx_memzero(state, sizeof(ngx_http_toolgate_responses_state_t));
    cln->handler = ngx_http_toolgate_responses_cleanup;
    run->face_data = state;

    state->keep = keep ? 1 : 0;
    tg_buf_init(&state->echo, NGX_HTTP_TOOLGATE_RESPONSES_ECHO_MAX);
    tg_buf_init(&state->history, NGX_HTTP_TOOLGATE_RESPONSES_HISTORY_MAX);

    rc = tg_responses_echo(c->body->scan, (char *) c->body->data, keep != 0,
                           &state->echo, &fault);

    if (rc == TG_E_INVALID) {
        return ngx_http_toolgate_check_fault(c, fault.code, fault.param,
                                             fault.message);
    }

    /* the same random part as the run's, so that either leads to the other */

    snprintf(id, sizeof(id), "resp_%s", run->id + 4);

    tg_responses_init(&state->answer, id,
                      ngx_http_toolgate_responses_str(&run->prompt.model),
                      tg_buf_get(&state->echo), run->created, run->prompt.stream);

    return rc == TG_OK ? NGX_OK : NGX_ERROR;
}


static void
ngx_http_toolgate_responses_cleanup(void *data)
{
    ngx_http_toolgate_responses_state_t  *state = data;

    tg_responses_free(&state->answer);
    tg_buf_free(&state->echo);
    tg_buf_free(&state->history);
    ngx_http_toolgate_bytes_free(NULL, state->data, state->size);
}


/* All answers about a run carry its id, which may turn out to be an older one's: that
 * is somebody else's to keep. */
tg_responses_t *
ngx_http_toolgate_responses_of(ngx_http_toolgate_run_t *run)
{
    ngx_http_toolgate_responses_state_t  *state = run->face_data;

    if (!state->own && ngx_strcmp(state->answer.id + 5, run->id + 4) != 0) {
        snprintf(state->answer.id, sizeof(state->answer.id), "resp_%s", run->id + 4);
        state->keep = 0;
    }

    return &state->answer;
}


ngx_int_t
ngx_http_toolgate_responses_face_restore(ngx_http_toolgate_run_t *run,
    tg_str_t object)
{
    ngx_pool_cleanup_t                   *cln;
    ngx_http_toolgate_responses_state_t  *state;

    cln = ngx_pool_cleanup_add(run->request->pool,
                               sizeof(ngx_http_toolgate_responses_state_t));
    if (cln == NULL) {
        return NGX_ERROR;
    }

    state = cln->data;
    ngx_memzero(state, sizeof(ngx_http_toolgate_responses_state_t));
    cln->handler = ngx_http_toolgate_responses_cleanup;
    state->there = 1;

    tg_buf_init(&state->echo, NGX_HTTP_TOOLGATE_RESPONSES_ECHO_MAX);
    tg_buf_init(&state->history, NGX_HTTP_TOOLGATE_RESPONSES_HISTORY_MAX);

    if (tg_responses_restore(&state->answer, object, &state->echo,
                             run->prompt.stream) != TG_OK)
    {
        return NGX_DECLINED;
    }

    run->face_data = state;

    return NGX_OK;
}


ngx_int_t
ngx_http_toolgate_responses_live(ngx_http_toolgate_run_t *run, const char *status,
    tg_buf_t *out)
{
    tg_responses_end_t  end;

    ngx_memzero(&end, sizeof(end));
    end.live = status;

    return tg_responses_object(ngx_http_toolgate_responses_of(run), &end, out)
           == TG_OK ? NGX_OK : NGX_ERROR;
}


/* Moves the events that were added to the writer. */
ngx_int_t
ngx_http_toolgate_responses_send(ngx_http_toolgate_run_t *run, tg_rc_e rc)
{
    tg_buf_t                             *out;
    ngx_http_toolgate_responses_state_t  *state = run->face_data;

    if (rc != TG_OK) {
        return NGX_ERROR;
    }

    out = &state->answer.out;

    if (out->len == 0) {
        return NGX_OK;
    }

    if (ngx_http_toolgate_face_stream(run) != NGX_OK
        || ngx_http_toolgate_writer_add(&run->writer, out->data, out->len)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    /* a held stream keeps no more than it needs for a token */

    if (out->cap > NGX_HTTP_TOOLGATE_WRITER_BUFFER) {
        tg_buf_free(out);

    } else {
        tg_buf_reset(out);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_responses_text(ngx_http_toolgate_run_t *run, tg_str_t text)
{
    tg_responses_t  *answer = ngx_http_toolgate_responses_of(run);

    return ngx_http_toolgate_responses_send(run,
                                     tg_responses_text(answer, text));
}


static ngx_int_t
ngx_http_toolgate_responses_refusal(ngx_http_toolgate_run_t *run, tg_str_t text)
{
    tg_responses_t  *answer = ngx_http_toolgate_responses_of(run);

    return ngx_http_toolgate_responses_send(run,
                                     tg_responses_refusal(answer, text));
}


/* Not of a run that others follow: its events have none. */
static ngx_int_t
ngx_http_toolgate_responses_reasoning(ngx_http_toolgate_run_t *run, tg_str_t text)
{
    tg_responses_t  *answer = ngx_http_toolgate_responses_of(run);

    if (run->detached) {
        return NGX_OK;
    }

    return ngx_http_toolgate_responses_send(run,
                                     tg_responses_reasoning(answer, text));
}


static ngx_int_t
ngx_http_toolgate_responses_paragraph(ngx_http_toolgate_run_t *run)
{
    tg_responses_t  *answer = ngx_http_toolgate_responses_of(run);

    return ngx_http_toolgate_responses_send(run, tg_responses_break(answer));
}


static ngx_int_t
ngx_http_toolgate_responses_ping(ngx_http_toolgate_run_t *run)
{
    tg_responses_t  *answer = ngx_http_toolgate_responses_of(run);

    if (ngx_http_toolgate_responses_send(run, tg_responses_open(answer))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_toolgate_writer_add(&run->writer, ": ping\n\n", 8);
}


/* What the caller's app runs is no call of the server's. */
static ngx_uint_t
ngx_http_toolgate_responses_is_client(ngx_http_toolgate_call_t *call)
{
    return call->tool && call->tool->kind == NGX_HTTP_TOOLGATE_TOOL_CLIENT;
}


static ngx_int_t
ngx_http_toolgate_responses_call_begins(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_call_t *call)
{
    size_t                                index;
    tg_rc_e                               rc;
    tg_responses_t  *answer = ngx_http_toolgate_responses_of(run);

    if (ngx_http_toolgate_responses_is_client(call)) {
        return NGX_OK;
    }

    index = 0;
    rc = tg_responses_call_begins(answer,
                                  ngx_http_toolgate_responses_str(&call->name),
                                  ngx_http_toolgate_responses_str(&call->arguments),
                                  tg_null_str, &index);
    call->shown = index;

    return ngx_http_toolgate_responses_send(run, rc);
}


static ngx_int_t
ngx_http_toolgate_responses_call_ended(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_call_t *call)
{
    tg_responses_t  *answer = ngx_http_toolgate_responses_of(run);

    if (ngx_http_toolgate_responses_is_client(call)) {
        return NGX_OK;
    }

    return ngx_http_toolgate_responses_send(run,
               tg_responses_call_ended(answer, call->shown,
                                       tg_buf_get(&call->job.result),
                                       tg_str_of(call->code)));
}


/* The calls of an agent's round that are the caller's to run, under ids of ours. */
static tg_rc_e
ngx_http_toolgate_responses_handed(ngx_http_toolgate_run_t *run)
{
    tg_rc_e                               rc;
    ngx_uint_t                            i;
    ngx_http_toolgate_call_t             *call;
    tg_responses_t  *answer = ngx_http_toolgate_responses_of(run);

    rc = TG_OK;

    for (i = 0; rc == TG_OK && i < run->call_count; i++) {
        call = &run->calls[i];

        if (ngx_http_toolgate_call_handed_out(call)) {
            rc = tg_responses_function_call(answer, tg_str_of(call->id),
                             ngx_http_toolgate_responses_str(&call->name),
                             ngx_http_toolgate_responses_str(&call->arguments));
        }
    }

    return rc;
}


/* The calls of a model that is passed through. */
static tg_rc_e
ngx_http_toolgate_responses_passed(ngx_http_toolgate_run_t *run)
{
    size_t            i;
    tg_rc_e           rc;
    tg_str_t          arguments;
    tg_delta_call_t  *call;
    tg_responses_t   *answer = ngx_http_toolgate_responses_of(run);

    rc = TG_OK;

    for (i = 0; rc == TG_OK && i < run->delta.call_count; i++) {
        call = &run->delta.calls[i];
        arguments = tg_buf_get(&call->arguments);

        rc = tg_responses_function_call(answer, tg_buf_get(&call->id),
                                        tg_buf_get(&call->name),
                                        arguments.len ? arguments : tg_str("{}"));
    }

    return rc;
}


/* What a run waits for that was driven here, or whose end was read. */
static tg_rc_e
ngx_http_toolgate_responses_waits(ngx_http_toolgate_run_t *run)
{
    json_t           *required;
    tg_rc_e           rc;
    tg_json_error_t   ignored;

    required = tg_json_load((tg_str_t) { run->required.len,
                                         (char *) run->required.data }, &ignored);
    rc = ngx_http_toolgate_responses_approvals(run, required);
    json_decref(required);

    return rc;
}


tg_rc_e
ngx_http_toolgate_responses_approvals(ngx_http_toolgate_run_t *run,
    json_t *required)
{
    json_t    *approval;
    size_t     i;
    tg_rc_e    rc;
    tg_buf_t   arguments;

    tg_buf_init(&arguments, TG_RESPONSES_TEXT_MAX);
    rc = TG_OK;

    json_array_foreach(json_object_get(required, "approvals"), i, approval) {
        if (rc != TG_OK) {
            break;
        }

        tg_buf_reset(&arguments);
        tg_json_dump(json_object_get(approval, "arguments"), &arguments);

        rc = tg_responses_approval_request(ngx_http_toolgate_responses_of(run),
                                           tg_json_get_string(approval, "id"),
                                           tg_json_get_string(approval, "tool_name"),
                                           tg_buf_get(&arguments));
    }

    tg_buf_free(&arguments);

    return rc;
}


static ngx_int_t
ngx_http_toolgate_responses_finish(ngx_http_toolgate_run_t *run)
{
    tg_rc_e                               rc;
    tg_buf_t                              whole;
    ngx_int_t                             sent;
    tg_responses_end_t                    end;
    ngx_http_toolgate_responses_state_t  *state = run->face_data;
    tg_responses_t  *answer = ngx_http_toolgate_responses_of(run);

    if (state->answered) {
        ngx_http_toolgate_writer_end(&run->writer);
        return NGX_OK;
    }

    ngx_memzero(&end, sizeof(end));
    end.usage = &run->usage;
    end.now = state->completed ? state->completed : ngx_time();
    rc = TG_OK;

    if (ngx_strcmp(run->finish_reason, "length") == 0) {
        end.incomplete = "max_output_tokens";

    } else if (ngx_strcmp(run->finish_reason, "content_filter") == 0) {
        end.incomplete = "content_filter";

    } else if (ngx_strcmp(run->finish_reason, "tool_calls") == 0 && !state->paused) {
        rc = run->calls ? ngx_http_toolgate_responses_handed(run)
                        : ngx_http_toolgate_responses_passed(run);
    }

    if (rc == TG_OK && run->required.len && !state->paused) {
        rc = ngx_http_toolgate_responses_waits(run);
    }

    if (rc == TG_OK) {
        rc = tg_responses_end(answer, &end);
    }

    tg_buf_init(&whole, TG_RESPONSES_OUTPUT_MAX);

    if (rc == TG_OK && (state->keep || !run->prompt.stream)) {
        rc = tg_responses_object(answer, &end, &whole);
    }

    if (rc == TG_OK) {
        ngx_http_toolgate_responses_keep(run, tg_buf_get(&whole),
                                         end.incomplete ? "incomplete" : "completed");
    }

    if (run->prompt.stream || run->detached) {
        sent = ngx_http_toolgate_responses_send(run, rc);

    } else {
        sent = (rc == TG_OK)
               ? ngx_http_toolgate_face_whole(run, tg_buf_get(&whole)) : NGX_ERROR;
    }

    tg_buf_free(&whole);

    if (sent == NGX_OK) {
        ngx_http_toolgate_writer_end(&run->writer);
    }

    return sent;
}


static ngx_int_t
ngx_http_toolgate_responses_fail(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_failure_t *failure)
{
    tg_rc_e                               ended;
    tg_buf_t                              whole;
    ngx_int_t                             rc;
    tg_responses_end_t                    end;
    ngx_http_toolgate_responses_state_t  *state = run->face_data;
    tg_responses_t  *answer = ngx_http_toolgate_responses_of(run);

    if (!run->writer.started && !run->detached) {
        return ngx_http_toolgate_face_refuse(run, failure);
    }

    ngx_memzero(&end, sizeof(end));
    end.error_code = failure->error->code;
    end.error_message = failure->message.len
                        ? ngx_http_toolgate_responses_str(&failure->message)
                        : tg_str_of(failure->error->message);
    end.cancelled = (ngx_strcmp(end.error_code, "run_cancelled") == 0);
    end.usage = &run->usage;

    ended = tg_responses_end(answer, &end);

    tg_buf_init(&whole, TG_RESPONSES_OUTPUT_MAX);

    if (state->keep && ended == TG_OK
        && tg_responses_object(answer, &end, &whole) == TG_OK)
    {
        ngx_http_toolgate_responses_keep(run, tg_buf_get(&whole),
                                         end.cancelled ? "cancelled" : "failed");
    }

    tg_buf_free(&whole);

    rc = ngx_http_toolgate_responses_send(run, ended);
    ngx_http_toolgate_writer_end(&run->writer);

    return rc;
}
