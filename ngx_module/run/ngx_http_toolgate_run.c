/*
 * The state machine of a run: run_advance moves it from event to event, to one of its
 * ends. The request that it lives on is _run_life.c's.
 */

#include "ngx_http_toolgate_durable.h"


static void ngx_http_toolgate_run_admit(ngx_http_toolgate_run_t *run,
    ngx_int_t limits);
static void ngx_http_toolgate_run_join(ngx_http_toolgate_run_t *run, ngx_int_t rc);
static void ngx_http_toolgate_run_begin(ngx_http_toolgate_run_t *run);
static void ngx_http_toolgate_run_go_on(ngx_http_toolgate_run_t *run);
static void ngx_http_toolgate_run_end_outside(ngx_http_toolgate_run_t *run);
static void ngx_http_toolgate_run_turn_ended(ngx_http_toolgate_run_t *run);
static void ngx_http_toolgate_run_calls_ended(ngx_http_toolgate_run_t *run);
static void ngx_http_toolgate_run_paused(ngx_http_toolgate_run_t *run);
static void ngx_http_toolgate_run_call_model(ngx_http_toolgate_run_t *run);
static void ngx_http_toolgate_run_complete(ngx_http_toolgate_run_t *run,
    const char *finish_reason);
static tg_run_status_e ngx_http_toolgate_run_end_status(const char *code);


void
ngx_http_toolgate_run_happened(ngx_http_toolgate_run_t *run)
{
    if (run->limits_known) {
        run->limits_known = 0;
        ngx_http_toolgate_run_advance(run, NGX_HTTP_TOOLGATE_EVENT_LIMITS_KNOWN);
    }

    if (run->opened) {
        run->opened = 0;
        ngx_http_toolgate_run_advance(run, NGX_HTTP_TOOLGATE_EVENT_OPENED);
    }

    if (run->session_known) {
        run->session_known = 0;
        ngx_http_toolgate_run_advance(run, NGX_HTTP_TOOLGATE_EVENT_SESSION_KNOWN);
    }

    if (run->ended_outside) {
        ngx_http_toolgate_run_advance(run, NGX_HTTP_TOOLGATE_EVENT_ENDED_OUTSIDE);
        run->ended_outside = NULL;
    }

    if (run->followed) {
        run->followed = 0;
        ngx_http_toolgate_run_advance(run, NGX_HTTP_TOOLGATE_EVENT_FOLLOWED);
    }

    if (run->turn_ended) {
        run->turn_ended = 0;
        ngx_http_toolgate_run_advance(run, NGX_HTTP_TOOLGATE_EVENT_TURN_ENDED);
    }

    if (run->calls_ended) {
        run->calls_ended = 0;
        ngx_http_toolgate_run_advance(run, NGX_HTTP_TOOLGATE_EVENT_CALLS_ENDED);
    }

    if (run->paused) {
        run->paused = 0;
        ngx_http_toolgate_run_advance(run, NGX_HTTP_TOOLGATE_EVENT_PAUSED);
    }
}


void
ngx_http_toolgate_run_advance(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_run_event_e event)
{
    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, run->request->connection->log, 0,
                   "toolgate: run state:%d event:%d", run->state, event);

    if (event == NGX_HTTP_TOOLGATE_EVENT_DEADLINE) {
        if (run->state < NGX_HTTP_TOOLGATE_RUN_COMPLETED) {
            ngx_http_toolgate_run_fail(run, "run_timeout", NULL);
        }

        return;
    }

    if (event == NGX_HTTP_TOOLGATE_EVENT_CLIENT_LEFT) {
        run->client_left = 1;
        run->ended_outside = "run_cancelled";
        event = NGX_HTTP_TOOLGATE_EVENT_ENDED_OUTSIDE;
    }

    if (event == NGX_HTTP_TOOLGATE_EVENT_ENDED_OUTSIDE) {
        if (run->state < NGX_HTTP_TOOLGATE_RUN_ENDING) {
            ngx_http_toolgate_run_end_outside(run);
        }

        return;
    }

    switch (run->state) {

    case NGX_HTTP_TOOLGATE_RUN_NEW:
        if (event == NGX_HTTP_TOOLGATE_EVENT_START) {
            ngx_http_toolgate_run_admit(run, ngx_http_toolgate_run_limit(run));
        }
        break;

    case NGX_HTTP_TOOLGATE_RUN_LIMITING:
        if (event == NGX_HTTP_TOOLGATE_EVENT_LIMITS_KNOWN) {
            ngx_http_toolgate_run_admit(run, ngx_http_toolgate_run_limited(run));
        }
        break;

    case NGX_HTTP_TOOLGATE_RUN_OPENING:
        if (event == NGX_HTTP_TOOLGATE_EVENT_OPENED) {
            ngx_http_toolgate_run_open(run, ngx_http_toolgate_durable_is_opened(run));
        }
        break;

    case NGX_HTTP_TOOLGATE_RUN_JOINING:
        if (event == NGX_HTTP_TOOLGATE_EVENT_SESSION_KNOWN) {
            ngx_http_toolgate_run_join(run,
                                       ngx_http_toolgate_run_session_is_joined(run));
        }
        break;

    case NGX_HTTP_TOOLGATE_RUN_FOLLOWING:
        if (event == NGX_HTTP_TOOLGATE_EVENT_FOLLOWED) {
            ngx_http_toolgate_follow_end(run);
        }
        break;

    case NGX_HTTP_TOOLGATE_RUN_CALLING_MODEL:
        if (event == NGX_HTTP_TOOLGATE_EVENT_TURN_ENDED) {
            ngx_http_toolgate_run_turn_ended(run);
        }
        break;

    case NGX_HTTP_TOOLGATE_RUN_CALLING_TOOLS:
        if (event == NGX_HTTP_TOOLGATE_EVENT_CALLS_ENDED) {
            ngx_http_toolgate_run_calls_ended(run);
        }
        break;

    case NGX_HTTP_TOOLGATE_RUN_ENDING:
        if (event == NGX_HTTP_TOOLGATE_EVENT_CALLS_ENDED) {
            ngx_http_toolgate_run_fail(run, run->ending, NULL);
        }
        break;

    case NGX_HTTP_TOOLGATE_RUN_PAUSING:
        if (event == NGX_HTTP_TOOLGATE_EVENT_PAUSED) {
            ngx_http_toolgate_run_paused(run);
        }
        break;

    case NGX_HTTP_TOOLGATE_RUN_COMPLETED:
    case NGX_HTTP_TOOLGATE_RUN_PAUSED:
    case NGX_HTTP_TOOLGATE_RUN_FAILED:
    case NGX_HTTP_TOOLGATE_RUN_CANCELLED:
        break;
    }
}


/* The request is within its limits. */
static void
ngx_http_toolgate_run_admit(ngx_http_toolgate_run_t *run, ngx_int_t limits)
{
    if (limits != NGX_OK) {
        return;
    }

    run->state = NGX_HTTP_TOOLGATE_RUN_OPENING;

    ngx_http_toolgate_run_open(run, ngx_http_toolgate_durable_create(run));
}


void
ngx_http_toolgate_run_open(ngx_http_toolgate_run_t *run, ngx_int_t rc)
{
    switch (rc) {

    case NGX_OK:
        run->state = NGX_HTTP_TOOLGATE_RUN_JOINING;
        ngx_http_toolgate_run_join(run, ngx_http_toolgate_run_session_join(run));
        return;

    case NGX_DONE:
        run->state = NGX_HTTP_TOOLGATE_RUN_FOLLOWING;
        ngx_http_toolgate_run_limit_time(run, NGX_HTTP_TOOLGATE_FOLLOW_MAX_MS);
        ngx_http_toolgate_run_begin(run);
        ngx_http_toolgate_follow(run);
        return;

    case NGX_ERROR:
        run->out_of_memory = 1;
        return;

    default:
        return;
    }
}


/* It has its session, or needs none. */
static void
ngx_http_toolgate_run_join(ngx_http_toolgate_run_t *run, ngx_int_t rc)
{
    switch (rc) {

    case NGX_OK:

        if (ngx_http_toolgate_durable_hand_over(run) == NGX_DONE) {
            ngx_http_toolgate_run_open(run, NGX_DONE);
            return;
        }

        ngx_http_toolgate_run_begin(run);
        ngx_http_toolgate_run_go_on(run);
        return;

    case NGX_ERROR:
        run->out_of_memory = 1;
        return;

    default:
        return;
    }
}


/* From the start, or from where another has left it. */
static void
ngx_http_toolgate_run_go_on(ngx_http_toolgate_run_t *run)
{
    if (run->restored_round == NULL) {
        ngx_http_toolgate_run_call_model(run);
        return;
    }

    run->state = NGX_HTTP_TOOLGATE_RUN_CALLING_TOOLS;

    if (ngx_http_toolgate_restore_turn(run) != NGX_OK
        || ngx_http_toolgate_calls_start(run) != NGX_OK)
    {
        run->out_of_memory = 1;
    }
}


/* Somebody else has ended it: nothing new begins. */
static void
ngx_http_toolgate_run_end_outside(ngx_http_toolgate_run_t *run)
{
    run->ending = run->ended_outside;

    if (run->state == NGX_HTTP_TOOLGATE_RUN_CALLING_TOOLS
        && ngx_http_toolgate_calls_let_finish(run))
    {
        run->state = NGX_HTTP_TOOLGATE_RUN_ENDING;
        return;
    }

    ngx_http_toolgate_run_fail(run, run->ending, NULL);
}


const char *
ngx_http_toolgate_run_stop_code(ngx_http_toolgate_run_t *run)
{
    return run->ending && ngx_strcmp(run->ending, "run_superseded") == 0
           ? "run_superseded" : "run_cancelled";
}


static void
ngx_http_toolgate_run_begin(ngx_http_toolgate_run_t *run)
{
    if (run->prompt.stream) {
        run->ping.handler = ngx_http_toolgate_run_ping;
        run->ping.data = run;
        run->ping.log = run->request->connection->log;
        run->ping.cancelable = 1;
        run->writer.last_added = ngx_current_msec;
        ngx_add_timer(&run->ping, run->location->sse_ping);
    }
}


static void
ngx_http_toolgate_run_call_model(ngx_http_toolgate_run_t *run)
{
    run->state = NGX_HTTP_TOOLGATE_RUN_CALLING_MODEL;
    run->turn_text = 0;
    run->turn_shown = 0;
    run->parse_failed = 0;
    run->streaming = 0;

    tg_sse_free(&run->sse);
    tg_sse_init(&run->sse);
    tg_buf_reset(&run->whole);

    if (!run->relay) {
        tg_delta_free(&run->delta);
        tg_delta_init(&run->delta);
    }

    if (run->durable) {
        run->durable->settled = 0;
    }

    if (ngx_http_toolgate_model_call(run) != NGX_OK) {
        run->out_of_memory = 1;
    }
}


static void
ngx_http_toolgate_run_turn_ended(ngx_http_toolgate_run_t *run)
{
    const char                   *code, *finish;
    ngx_http_toolgate_failure_t   failure;

    if (run->relay) {
        if (ngx_http_toolgate_relay_finish(run) == NGX_DECLINED) {
            ngx_http_toolgate_run_call_model(run);
        }

        return;
    }

    ngx_memzero(&failure, sizeof(failure));

    code = ngx_http_toolgate_model_failure(run, &failure);
    ngx_http_toolgate_steps_turn_ended(run, code);

    if (code) {

        if (ngx_http_toolgate_model_next(run)) {
            ngx_http_toolgate_run_call_model(run);
            return;
        }

        if (run->agent == NULL && ngx_strcmp(code, "model_rejected_request") == 0
            && ngx_http_toolgate_relay_refusal(run) == NGX_OK)
        {
            run->state = NGX_HTTP_TOOLGATE_RUN_COMPLETED;
            return;
        }

        ngx_http_toolgate_run_fail_with(run, &failure);
        return;
    }

    ngx_http_toolgate_model_usage(run);

    finish = run->delta.finish_reason;

    if (ngx_strcmp(finish, "length") == 0
        || ngx_strcmp(finish, "content_filter") == 0)
    {
        /* calls of a cut answer may be cut as well: none of them runs */
        ngx_http_toolgate_run_complete(run, finish);
        return;
    }

    if (run->agent == NULL) {
        /* whatever it calls is for the caller to run, who gives its ids back to it */

        if (ngx_http_toolgate_model_call_ids(run) != NGX_OK) {
            run->out_of_memory = 1;
            return;
        }

        ngx_http_toolgate_run_complete(run, run->delta.call_count ? "tool_calls"
                                                                  : "stop");
        return;
    }

    if (run->final || run->delta.call_count == 0) {
        ngx_http_toolgate_calls_drop(run);
        ngx_http_toolgate_run_complete(run, "stop");
        return;
    }

    run->round++;
    run->state = NGX_HTTP_TOOLGATE_RUN_CALLING_TOOLS;

    if (ngx_http_toolgate_calls_start(run) != NGX_OK) {
        run->out_of_memory = 1;
    }
}


static void
ngx_http_toolgate_run_calls_ended(ngx_http_toolgate_run_t *run)
{
    ngx_uint_t  i;

    for (i = 0; i < run->call_count; i++) {
        if (run->calls[i].state == NGX_HTTP_TOOLGATE_CALL_HELD) {
            ngx_http_toolgate_run_pause(run);
            return;
        }
    }

    ngx_http_toolgate_steps_round_ended(run);

    for (i = 0; i < run->call_count; i++) {
        if (ngx_http_toolgate_call_handed_out(&run->calls[i])) {
            ngx_http_toolgate_run_complete(run, "tool_calls");
            return;
        }
    }

    if (ngx_http_toolgate_calls_remember(run) != NGX_OK) {
        run->out_of_memory = 1;
        return;
    }

    if (run->round >= run->agent->max_rounds) {
        run->final = 1;
    }

    /* in this order: who goes on finds no round missing in the session */

    ngx_http_toolgate_run_session_keep(run);
    ngx_http_toolgate_durable_checkpoint(run);

    ngx_http_toolgate_run_call_model(run);
}


/* For its client that is an end; the run is in the store. */
static void
ngx_http_toolgate_run_paused(ngx_http_toolgate_run_t *run)
{
    if (ngx_http_toolgate_run_is_paused(run) != NGX_OK) {
        return;
    }

    ngx_http_toolgate_steps_pause(run);
    ngx_http_toolgate_run_session_keep(run);
    ngx_http_toolgate_run_session_leave(run);
    run->state = NGX_HTTP_TOOLGATE_RUN_PAUSED;

    if (run->face->finish(run) != NGX_OK) {
        run->out_of_memory = 1;
    }
}


static void
ngx_http_toolgate_run_complete(ngx_http_toolgate_run_t *run,
    const char *finish_reason)
{
    run->finish_reason = finish_reason;
    run->state = NGX_HTTP_TOOLGATE_RUN_COMPLETED;

    /* before the client hears that it may ask for them */
    ngx_http_toolgate_steps_close(run);
    ngx_http_toolgate_run_session_close(run, NULL);
    ngx_http_toolgate_durable_close(run, TG_STATUS_COMPLETED, NULL);
    ngx_http_toolgate_run_session_end(run);

    if (run->face->finish(run) != NGX_OK) {
        run->out_of_memory = 1;
    }
}


void
ngx_http_toolgate_run_fail(ngx_http_toolgate_run_t *run, const char *code,
    ngx_str_t *message)
{
    ngx_http_toolgate_failure_t  failure;

    ngx_memzero(&failure, sizeof(failure));
    failure.error = tg_error_find(code);

    if (message) {
        failure.message = *message;
    }

    ngx_http_toolgate_run_fail_with(run, &failure);
}


static tg_run_status_e
ngx_http_toolgate_run_end_status(const char *code)
{
    return ngx_strcmp(code, "run_timeout") == 0 ? TG_STATUS_EXPIRED
           : ngx_strcmp(code, "run_cancelled") == 0 ? TG_STATUS_CANCELLED
           : TG_STATUS_FAILED;
}


void
ngx_http_toolgate_run_fail_with(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_failure_t *failure)
{
    tg_run_status_e  status;

    ngx_http_toolgate_run_stop(run);
    ngx_http_toolgate_steps_close(run);

    status = ngx_http_toolgate_run_end_status(failure->error->code);
    ngx_http_toolgate_run_session_close(run, failure->error->code);
    ngx_http_toolgate_durable_close(run, status, failure->error->code);
    ngx_http_toolgate_run_session_end(run);

    run->session_known = 0;
    run->opened = 0;
    run->followed = 0;
    run->limits_known = 0;
    run->turn_ended = 0;
    run->calls_ended = 0;
    run->paused = 0;
    run->state = NGX_HTTP_TOOLGATE_RUN_FAILED;

    ngx_log_error(NGX_LOG_INFO, run->request->connection->log, 0,
                  "toolgate: run %s failed: %s", run->id, failure->error->code);

    if (run->face->fail(run, failure) != NGX_OK) {
        run->out_of_memory = 1;
    }
}
