/*
 * A request for a run that is there already: its caller sees what becomes of it, as
 * if it were his own. It starts nothing, and leaves nothing behind when he goes.
 */

#include "ngx_http_toolgate_durable.h"


static void ngx_http_toolgate_follow_event(void *data, int64_t seq, tg_str_t event);
static ngx_uint_t ngx_http_toolgate_follow_ends(ngx_http_toolgate_run_t *run,
    tg_str_t type);
static void ngx_http_toolgate_follow_ask(ngx_http_toolgate_run_t *run);
static void ngx_http_toolgate_follow_read(void *data,
    ngx_http_toolgate_run_answer_t *answer);
static const char *ngx_http_toolgate_follow_fault(
    ngx_http_toolgate_run_answer_t *answer);
static ngx_uint_t ngx_http_toolgate_follow_goes_on(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_run_answer_t *document);
static void ngx_http_toolgate_follow_cancelled(void *data,
    ngx_http_toolgate_run_answer_t *answer);


void
ngx_http_toolgate_follow(ngx_http_toolgate_run_t *run)
{
    if (run->background) {
        ngx_http_toolgate_follow_ask(run);
        return;
    }

    ngx_http_toolgate_follow_open(&run->durable->follow, run->conf->redis,
                                  &run->durable->key, run->follow_after,
                                  ngx_http_toolgate_follow_event, run);
}


/* The caller has read: there is room for more. */
void
ngx_http_toolgate_follow_wake(ngx_http_toolgate_run_t *run)
{
    if (run->state == NGX_HTTP_TOOLGATE_RUN_FOLLOWING) {
        run->durable->follow.paused = 0;
    }
}


void
ngx_http_toolgate_follow_stop(ngx_http_toolgate_run_t *run)
{
    ngx_http_toolgate_follow_close(&run->durable->follow);
    run->followed = 1;
}


static void
ngx_http_toolgate_follow_event(void *data, int64_t seq, tg_str_t event)
{
    ngx_http_toolgate_run_t *run = data;

    json_t            *tree;
    tg_str_t           type, delta;
    ngx_int_t          rc;
    ngx_connection_t  *c;
    tg_json_error_t    ignored;

    c = run->request->connection;
    tree = tg_json_load(event, &ignored);
    type = tg_json_get_string(tree, "type");
    delta = tg_json_get_string(tree, "delta");

    if (run->face->event) {
        rc = run->face->event(run, seq, event);

    } else if (tg_str_eq(type, tg_str("run.text_delta")) && delta.len) {

        /* what parts it from an earlier answer's text is not of this one */

        while (run->cancel_followed && !run->any_text && delta.len
               && delta.data[0] == '\n')
        {
            delta.data++;
            delta.len--;
        }

        run->any_text |= (delta.len != 0);
        rc = delta.len ? run->face->text(run, delta) : NGX_OK;

    } else {
        rc = NGX_OK;
    }

    if (rc != NGX_OK) {
        run->out_of_memory = 1;
    }

    if (run->followed) {
        /* its face has seen enough */

    } else if (ngx_http_toolgate_follow_ends(run, type)) {
        ngx_http_toolgate_follow_close(&run->durable->follow);

        run->follow_after = seq;
        run->follow_paused =
            (tg_run_status_of_event(type) == TG_STATUS_REQUIRES_ACTION);
        ngx_http_toolgate_follow_ask(run);

    } else if (ngx_http_toolgate_writer_full(&run->writer)) {
        run->durable->follow.paused = 1;
    }

    json_decref(tree);

    ngx_http_toolgate_run_post(run);
    ngx_http_run_posted_requests(c);
}


/* For the run as it is now. */
static void
ngx_http_toolgate_follow_ask(ngx_http_toolgate_run_t *run)
{
    if (ngx_http_toolgate_run_store_open(run->request->pool, run->conf->redis,
                                         &run->durable->key, "read",
                                         run->conf->retention,
                                         ngx_http_toolgate_follow_read, run)
        != NGX_OK)
    {
        run->out_of_memory = 1;
    }
}


static ngx_uint_t
ngx_http_toolgate_follow_ends(ngx_http_toolgate_run_t *run, tg_str_t type)
{
    tg_run_status_e  status;

    status = tg_run_status_of_event(type);

    /* who follows a stream of events waits for what comes after it */

    if (status == TG_STATUS_REQUIRES_ACTION) {
        return !run->prompt.stream || run->face->event == NULL || run->face->pauses;
    }

    return status != TG_STATUSES && tg_run_status_ended(status);
}


static void
ngx_http_toolgate_follow_read(void *data, ngx_http_toolgate_run_answer_t *answer)
{
    ngx_http_toolgate_run_t *run = data;

    ngx_connection_t  *c;

    c = run->request->connection;

    if (run->follow_paused && !run->face->pauses
        && ngx_http_toolgate_follow_goes_on(run, answer))
    {
        run->follow_paused = 0;
        ngx_http_toolgate_follow(run);
        ngx_http_run_posted_requests(c);
        return;
    }

    if (run->face->document) {
        if (run->face->document(run, answer) != NGX_OK) {
            run->out_of_memory = 1;
        }

        run->followed = 1;
        ngx_http_toolgate_run_post(run);
        ngx_http_run_posted_requests(c);
        return;
    }

    ngx_http_toolgate_follow_result(run, answer);

    run->followed = 1;
    ngx_http_toolgate_run_post(run);
    ngx_http_run_posted_requests(c);
}


/* Whether a pause that was seen is over by now. */
static ngx_uint_t
ngx_http_toolgate_follow_goes_on(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_run_answer_t *document)
{
    ngx_str_t        seq, text;
    tg_run_status_e  status;

    seq = ngx_http_toolgate_run_answer_field(document, "seq");
    text = ngx_http_toolgate_run_answer_field(document, "status");
    status = tg_run_status_find((tg_str_t) { text.len, (char *) text.data });

    return status == TG_STATUS_QUEUED || status == TG_STATUS_RUNNING
           || (seq.len && ngx_atoof(seq.data, seq.len) > run->follow_after);
}


void
ngx_http_toolgate_follow_result(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_run_answer_t *document)
{
    run->follow_fault = ngx_http_toolgate_follow_fault(document);

    if (run->follow_fault == NULL
        && ngx_http_toolgate_restore_result(run, document) != NGX_OK)
    {
        run->follow_fault = "internal_error";
    }
}


void
ngx_http_toolgate_follow_cancel(ngx_http_toolgate_run_t *run)
{
    ngx_pool_t  *pool;

    /* the request's own is going */

    pool = ngx_create_pool(512, ngx_cycle->log);

    if (pool
        && ngx_http_toolgate_run_store_cancel(pool, run->conf->redis,
                                              &run->durable->key, NULL, "cancelled",
                                              run->conf->retention,
                                              ngx_http_toolgate_follow_cancelled,
                                              pool)
           != NGX_OK)
    {
        ngx_destroy_pool(pool);
    }
}


static void
ngx_http_toolgate_follow_cancelled(void *data,
    ngx_http_toolgate_run_answer_t *answer)
{
    ngx_destroy_pool(data);
}


/* Why there is no answer; NULL when there is one. */
static const char *
ngx_http_toolgate_follow_fault(ngx_http_toolgate_run_answer_t *answer)
{
    ngx_str_t          status, code;
    const tg_error_t  *error;
    char               name[64];

    if (answer->answer == NGX_HTTP_TOOLGATE_ANSWER_AWAY) {
        return "store_unavailable";
    }

    status = ngx_http_toolgate_run_answer_field(answer, "status");
    code = ngx_http_toolgate_run_answer_field(answer, "error");

    if (code.len && code.len < sizeof(name)) {
        ngx_memcpy(name, code.data, code.len);
        name[code.len] = '\0';
        error = tg_error_find(name);

        return error ? error->code : "internal_error";
    }

    switch (tg_run_status_find((tg_str_t) { status.len, (char *) status.data })) {

    case TG_STATUS_COMPLETED:
    case TG_STATUS_REQUIRES_ACTION:
        return NULL;

    case TG_STATUS_SUPERSEDED:
        return "run_superseded";

    default:
        return "run_cancelled";
    }
}


void
ngx_http_toolgate_follow_end(ngx_http_toolgate_run_t *run)
{
    if (run->follow_fault) {
        ngx_http_toolgate_run_fail(run, run->follow_fault, NULL);
        return;
    }

    run->state = NGX_HTTP_TOOLGATE_RUN_COMPLETED;

    if (run->face->finish(run) != NGX_OK) {
        run->out_of_memory = 1;
    }
}
