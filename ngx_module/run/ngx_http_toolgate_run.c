/*
 * The life of a run: made, moved by run_advance, ended once. Events from filters
 * and timers only note what happened and have the main request posted; the
 * handler below acts on it, sends what was written, and is the only one that
 * finalizes the request.
 */

#include "ngx_http_toolgate_durable.h"


static void ngx_http_toolgate_run_handler(ngx_http_request_t *r);
static void ngx_http_toolgate_run_events(ngx_http_toolgate_run_t *run);
static void ngx_http_toolgate_run_stop(ngx_http_toolgate_run_t *run);
static void ngx_http_toolgate_run_finish(ngx_http_toolgate_run_t *run,
    ngx_int_t rc);
static void ngx_http_toolgate_run_admit(ngx_http_toolgate_run_t *run,
    ngx_int_t limits);
static void ngx_http_toolgate_run_open(ngx_http_toolgate_run_t *run, ngx_int_t rc);
static void ngx_http_toolgate_run_limit_time(ngx_http_toolgate_run_t *run,
    ngx_msec_t left);
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
static void ngx_http_toolgate_run_deadline(ngx_event_t *ev);
static void ngx_http_toolgate_run_ping(ngx_event_t *ev);
static void ngx_http_toolgate_run_cleanup(void *data);


ngx_http_toolgate_run_t *
ngx_http_toolgate_run_create(ngx_http_request_t *r,
    ngx_http_toolgate_project_t *project, const ngx_http_toolgate_face_t *face)
{
    u_char                    random[TG_ID_RANDOM_LEN];
    ngx_str_t                 id;
    ngx_pool_cleanup_t       *cln;
    ngx_http_toolgate_run_t  *run;

    if (ngx_http_toolgate_random(random, sizeof(random)) != NGX_OK) {
        return NULL;
    }

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_toolgate_run_t));
    if (cln == NULL) {
        return NULL;
    }

    run = cln->data;
    ngx_memzero(run, sizeof(ngx_http_toolgate_run_t));
    cln->handler = ngx_http_toolgate_run_cleanup;

    run->kind = NGX_HTTP_TOOLGATE_CTX_RUN;
    run->request = r;
    run->conf = ngx_http_get_module_main_conf(r, ngx_http_toolgate_module);
    run->location = ngx_http_get_module_loc_conf(r, ngx_http_toolgate_module);
    run->project = project;
    run->face = face;
    run->created = ngx_time();

    tg_id_make("run_", random, run->id);
    tg_sse_init(&run->sse);
    tg_buf_init(&run->whole, NGX_HTTP_TOOLGATE_RELAY_BODY_MAX);
    ngx_http_toolgate_writer_init(&run->writer, r);

    id.data = (u_char *) run->id;
    id.len = ngx_strlen(run->id);

    if (ngx_http_toolgate_add_header(r, "x-toolgate-run", &id) != NGX_OK) {
        return NULL;
    }

    ngx_http_set_ctx(r, run, ngx_http_toolgate_module);

    return run;
}


ngx_int_t
ngx_http_toolgate_run_for_agent(ngx_http_toolgate_run_t *run)
{
    ngx_pool_t  *pool;

    pool = run->request->pool;

    if (ngx_array_init(&run->offered, pool, 4,
                       sizeof(ngx_http_toolgate_grant_t *)) != NGX_OK
        || ngx_array_init(&run->history, pool, 4, sizeof(ngx_str_t)) != NGX_OK
        || ngx_array_init(&run->used_ids, pool, 4, sizeof(ngx_str_t)) != NGX_OK
        || ngx_array_init(&run->done_calls, pool, 4,
                          sizeof(ngx_http_toolgate_done_call_t)) != NGX_OK
        || ngx_array_init(&run->steps, pool, 4,
                          sizeof(ngx_http_toolgate_step_t)) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}


void
ngx_http_toolgate_run_start(ngx_http_toolgate_run_t *run)
{
    ngx_msec_t           left;
    ngx_http_request_t  *r;

    r = run->request;

    /* what nobody waits for goes on when the one who asked for it has left */

    r->read_event_handler = run->detached ? ngx_http_block_reading
                                          : ngx_http_toolgate_run_reading;
    r->write_event_handler = ngx_http_toolgate_run_handler;

    left = run->location->run_timeout;
    left -= ngx_min(left - 1, run->spent);
    ngx_http_toolgate_run_limit_time(run, left);

    ngx_http_toolgate_steps_open(run);

    if (run->durable == NULL
        && ngx_http_toolgate_durable_open(run, run->face->name,
                                          &run->prompt.invocation) != NGX_OK)
    {
        run->out_of_memory = 1;

    } else {
        ngx_http_toolgate_run_advance(run, NGX_HTTP_TOOLGATE_EVENT_START);
    }

    /* the subrequest is posted; the caller comes from nginx's own handlers, which
     * run what is posted */

    ngx_http_toolgate_run_post(run);
}


/* Not cancelable: it keeps an old worker until its runs have ended. */
static void
ngx_http_toolgate_run_limit_time(ngx_http_toolgate_run_t *run, ngx_msec_t left)
{
    if (run->deadline.timer_set) {
        ngx_del_timer(&run->deadline);
    }

    run->deadline.handler = ngx_http_toolgate_run_deadline;
    run->deadline.data = run;
    run->deadline.log = run->request->connection->log;
    run->deadline_at = ngx_current_msec + left;
    ngx_add_timer(&run->deadline, left);
}


void
ngx_http_toolgate_run_follow(ngx_http_toolgate_run_t *run, int64_t after)
{
    run->follow_after = after;
    run->follows = 1;
    run->prompt.store = 1;

    run->request->read_event_handler = ngx_http_test_reading;
    run->request->write_event_handler = ngx_http_toolgate_run_handler;

    if (ngx_http_toolgate_durable_open(run, run->face->name,
                                       &run->prompt.invocation) != NGX_OK)
    {
        ngx_http_finalize_request(run->request, NGX_ERROR);
        return;
    }

    run->durable->over = 1;

    ngx_http_toolgate_run_open(run, NGX_DONE);
    ngx_http_toolgate_run_post(run);
}


void
ngx_http_toolgate_run_post(ngx_http_toolgate_run_t *run)
{
    if (run->is_posted) {
        return;
    }

    run->is_posted = 1;

    (void) ngx_http_post_request(run->request, &run->posted);
}


static void
ngx_http_toolgate_run_handler(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
    ngx_event_t              *wev;
    ngx_http_toolgate_run_t  *run;

    run = ngx_http_get_module_ctx(r, ngx_http_toolgate_module);
    wev = r->connection->write;

    run->is_posted = 0;

    if (wev->timedout) {
        ngx_log_error(NGX_LOG_INFO, r->connection->log, NGX_ETIMEDOUT,
                      "toolgate: client reads too slowly");
        r->connection->timedout = 1;
        ngx_http_toolgate_run_finish(run, NGX_HTTP_REQUEST_TIME_OUT);
        return;
    }

    run->in_handler = 1;

    if (!run->out_of_memory) {
        ngx_http_toolgate_run_events(run);
    }

    if (run->out_of_memory && !run->writer.ended) {

        /* a bound of ours more often than the machine's: there is memory to say so */

        run->out_of_memory = 0;
        ngx_http_toolgate_run_fail(run, "internal_error", NULL);
    }

    run->in_handler = 0;

    if (run->out_of_memory) {
        ngx_http_toolgate_run_finish(run, run->writer.started
                                          ? NGX_ERROR
                                          : NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    if (run->client_left) {
        if (run->state >= NGX_HTTP_TOOLGATE_RUN_COMPLETED) {
            ngx_http_toolgate_run_finish(run, NGX_HTTP_CLIENT_CLOSED_REQUEST);
        }

        return;
    }

    rc = ngx_http_toolgate_writer_flush(&run->writer);

    if (rc == NGX_ERROR) {
        ngx_http_toolgate_run_finish(run, NGX_ERROR);
        return;
    }

    if (run->state >= NGX_HTTP_TOOLGATE_RUN_COMPLETED && run->detached) {
        ngx_http_toolgate_run_finish(run, NGX_HTTP_CLOSE);
        return;
    }

    if (run->state >= NGX_HTTP_TOOLGATE_RUN_COMPLETED) {

        /* a relay that could not say its fault must not look whole */

        ngx_http_toolgate_run_finish(run, run->writer.ended ? NGX_OK : NGX_ERROR);
        return;
    }

    if (!ngx_http_toolgate_writer_full(&run->writer)) {
        ngx_http_toolgate_turn_wake(&run->turn);
        ngx_http_toolgate_follow_wake(run);
    }
}


/* Whatever is under way. */
static void
ngx_http_toolgate_run_stop(ngx_http_toolgate_run_t *run)
{
    if (run->limits) {
        ngx_http_toolgate_limits_cancel(run->limits);
    }

    ngx_http_toolgate_turn_cancel(&run->turn);
    ngx_http_toolgate_calls_cancel(run);
}


/* The one exit: nginx gets the request back with nothing of the run under way. */
static void
ngx_http_toolgate_run_finish(ngx_http_toolgate_run_t *run, ngx_int_t rc)
{
    ngx_http_toolgate_run_stop(run);

    if (run->deadline.timer_set) {
        ngx_del_timer(&run->deadline);
    }

    if (run->ping.timer_set) {
        ngx_del_timer(&run->ping);
    }

    ngx_http_finalize_request(run->request, rc);
}


static void
ngx_http_toolgate_run_events(ngx_http_toolgate_run_t *run)
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


static void
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
        /* whatever it calls is for the caller to run */
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


static void
ngx_http_toolgate_run_deadline(ngx_event_t *ev)
{
    ngx_connection_t         *c;
    ngx_http_toolgate_run_t  *run;

    run = ev->data;
    c = run->request->connection;

    ngx_http_toolgate_run_advance(run, NGX_HTTP_TOOLGATE_EVENT_DEADLINE);
    ngx_http_toolgate_run_post(run);
    ngx_http_run_posted_requests(c);
}


static void
ngx_http_toolgate_run_ping(ngx_event_t *ev)
{
    ngx_msec_t                silent;
    ngx_connection_t         *c;
    ngx_http_toolgate_run_t  *run;

    run = ev->data;
    c = run->request->connection;

    silent = ngx_current_msec - run->writer.last_added;

    if (silent < run->location->sse_ping) {
        ngx_add_timer(ev, run->location->sse_ping - silent);
        return;
    }

    ngx_add_timer(ev, run->location->sse_ping);

    /* a client that does not read needs no proof of life, nothing follows [DONE],
     * and a relayed answer may be no stream after all */

    if (run->writer.unsent || run->relay_done
        || (run->writer.started && !run->writer.events))
    {
        return;
    }

    if (run->face->ping(run) != NGX_OK) {
        run->out_of_memory = 1;
    }

    ngx_http_toolgate_run_post(run);
    ngx_http_run_posted_requests(c);
}


/* The jobs' own cleanups were added later and have run before this one. */
static void
ngx_http_toolgate_run_cleanup(void *data)
{
    ngx_http_toolgate_run_t  *run = data;

    ngx_uint_t  i;

    if (run->deadline.timer_set) {
        ngx_del_timer(&run->deadline);
    }

    if (run->ping.timer_set) {
        ngx_del_timer(&run->ping);
    }

    for (i = 0; i < run->call_count; i++) {
        json_decref(run->calls[i].args);
        tg_buf_free(&run->calls[i].job.result);
    }

    if (run->prompt.owned) {
        tg_scan_free(run->prompt.scan);
        ngx_http_toolgate_bytes_free(NULL, run->prompt.body, run->prompt.cap);
    }

    json_decref(run->end_user);
    json_decref(run->variables);
    json_decref(run->prompt.tools);
    json_decref(run->prompt.variables);
    json_decref(run->prompt.metadata);

    tg_sse_free(&run->sse);

    tg_delta_free(&run->delta);
    tg_buf_free(&run->whole);
}


ngx_str_t
ngx_http_toolgate_copy(ngx_pool_t *pool, tg_str_t text)
{
    ngx_str_t  copy;

    copy.len = text.len;
    copy.data = ngx_pnalloc(pool, text.len + 1);

    if (copy.data) {
        if (text.len) {
            ngx_memcpy(copy.data, text.data, text.len);
        }

        copy.data[text.len] = '\0';
    }

    return copy;
}
