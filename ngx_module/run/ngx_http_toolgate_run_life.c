/*
 * A run and its request: made, started, its one handler, its timers, given back. Events
 * from filters and timers only note what happened and have the main request posted; the
 * handler acts on it, sends what was written, and is the only one that finalizes the
 * request. What follows from an event is in _run.c.
 */

#include "ngx_http_toolgate_durable.h"


static void ngx_http_toolgate_run_handler(ngx_http_request_t *r);
static void ngx_http_toolgate_run_finish(ngx_http_toolgate_run_t *run,
    ngx_int_t rc);
static void ngx_http_toolgate_run_deadline(ngx_event_t *ev);
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
void
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
        ngx_http_toolgate_run_happened(run);
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
void
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


void
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
