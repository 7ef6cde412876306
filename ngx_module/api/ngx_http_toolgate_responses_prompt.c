/*
 * The body of a Responses request, put into the form of chat and checked again in that
 * form, a slice in each turn of the event loop: a big one must not hold up other
 * streams of the worker.
 */

#include "ngx_http_toolgate_responses.h"


#define NGX_HTTP_TOOLGATE_RESPONSES_SPARE  4096    /* what chat may need more */
#define NGX_HTTP_TOOLGATE_RESPONSES_GROWTH 8       /* times the body, at most */


typedef struct {
    ngx_http_toolgate_check_t        *check;
    ngx_http_toolgate_check_done_pt   done;
    tg_responses_request_t            request;
    ngx_event_t                       slice;
    u_char                           *data;        /* the form of chat */
    size_t                            len;
    size_t                            cap;
    size_t                            scanned;
    tg_scan_t                        *scan;
    unsigned                          whole:1;
} ngx_http_toolgate_responses_work_t;


static tg_rc_e ngx_http_toolgate_responses_add(void *ctx, const char *data,
    size_t len);
static ngx_int_t ngx_http_toolgate_responses_work(
    ngx_http_toolgate_responses_work_t *w);
static void ngx_http_toolgate_responses_go(ngx_http_toolgate_responses_work_t *w);
static void ngx_http_toolgate_responses_slice(ngx_event_t *ev);
static void ngx_http_toolgate_responses_take(
    ngx_http_toolgate_responses_work_t *w);
static void ngx_http_toolgate_responses_cleanup(void *data);


void
ngx_http_toolgate_responses_prompt(ngx_http_toolgate_check_t *c,
    ngx_http_toolgate_check_done_pt done)
{
    ngx_pool_cleanup_t                   *cln;
    ngx_http_toolgate_responses_work_t   *w;
    ngx_http_toolgate_responses_state_t  *state;

    cln = ngx_pool_cleanup_add(c->request->pool,
                               sizeof(ngx_http_toolgate_responses_work_t));
    if (cln == NULL) {
        ngx_http_toolgate_check_refuse(c);
        return;
    }

    w = cln->data;
    ngx_memzero(w, sizeof(ngx_http_toolgate_responses_work_t));
    cln->handler = ngx_http_toolgate_responses_cleanup;

    w->check = c;
    w->done = done;
    w->slice.handler = ngx_http_toolgate_responses_slice;
    w->slice.data = w;
    w->slice.log = c->request->connection->log;
    w->cap = c->body->len + NGX_HTTP_TOOLGATE_RESPONSES_SPARE;
    w->data = ngx_http_toolgate_bytes_resize(c->request->pool, NULL, 0, 0, w->cap);
    w->scan = tg_scan_new();

    if (w->data == NULL || w->scan == NULL) {
        ngx_http_toolgate_check_refuse(c);
        return;
    }

    tg_responses_request_init(&w->request, c->body->scan, (char *) c->body->data,
                              ngx_http_toolgate_responses_add, w);
    state = c->run->face_data;
    w->request.agent = (c->run->agent != NULL);
    w->request.history = tg_buf_get(&state->history);
    w->request.input.data = (char *) state->input.data;
    w->request.input.len = state->input.len;

    ngx_http_toolgate_responses_go(w);
}


static tg_rc_e
ngx_http_toolgate_responses_add(void *ctx, const char *data, size_t len)
{
    ngx_http_toolgate_responses_work_t *w = ctx;

    u_char  *bigger;
    size_t   cap;

    if (w->len + len > w->cap) {
        cap = ngx_max(2 * w->cap, w->len + len);

        if (cap > NGX_HTTP_TOOLGATE_RESPONSES_GROWTH
                  * (w->check->body->len + w->request.history.len
                     + w->request.input.len)
                  + NGX_HTTP_TOOLGATE_RESPONSES_SPARE)
        {
            return TG_E_LIMIT;
        }

        bigger = ngx_http_toolgate_bytes_resize(w->check->request->pool, w->data,
                                                w->len, w->cap, cap);
        if (bigger == NULL) {
            return TG_E_NOMEM;
        }

        w->data = bigger;
        w->cap = cap;
    }

    ngx_memcpy(w->data + w->len, data, len);
    w->len += len;

    return TG_OK;
}


static void
ngx_http_toolgate_responses_go(ngx_http_toolgate_responses_work_t *w)
{
    switch (ngx_http_toolgate_responses_work(w)) {

    case NGX_AGAIN:
        ngx_post_event(&w->slice, &ngx_posted_next_events);
        return;

    case NGX_OK:
        ngx_http_toolgate_responses_take(w);
        w->done(w->check);
        return;

    default:
        ngx_http_toolgate_check_refuse(w->check);
        return;
    }
}


static void
ngx_http_toolgate_responses_slice(ngx_event_t *ev)
{
    ngx_connection_t                    *c;
    ngx_http_toolgate_responses_work_t  *w;

    w = ev->data;
    c = w->check->request->connection;

    ngx_http_toolgate_responses_go(w);
    ngx_http_run_posted_requests(c);
}


static ngx_int_t
ngx_http_toolgate_responses_work(ngx_http_toolgate_responses_work_t *w)
{
    size_t                 n;
    tg_rc_e                rc;
    tg_responses_fault_t  *fault;

    if (!w->whole) {
        rc = tg_responses_request_step(&w->request, NGX_HTTP_TOOLGATE_BODY_SLICE);

        if (rc == TG_E_INVALID) {
            fault = &w->request.fault;
            return ngx_http_toolgate_check_fault(w->check, fault->code,
                                                 fault->param, fault->message);
        }

        if (rc != TG_OK && rc != TG_AGAIN) {
            return NGX_ERROR;
        }

        w->whole = (rc == TG_OK);
    }

    n = ngx_min(w->len - w->scanned, NGX_HTTP_TOOLGATE_BODY_SLICE);

    if (tg_scan_feed(w->scan, (char *) w->data + w->scanned, n) != TG_OK) {
        return ngx_http_toolgate_check_fault(w->check, "invalid_value", "input",
                                             "\"input\" has too many items.");
    }

    w->scanned += n;

    if (!w->whole || w->scanned < w->len) {
        return NGX_AGAIN;
    }

    return tg_scan_finish(w->scan) == TG_OK ? NGX_OK : NGX_ERROR;
}


/* The form of chat takes the place of the caller's bytes. */
static void
ngx_http_toolgate_responses_take(ngx_http_toolgate_responses_work_t *w)
{
    ngx_http_toolgate_body_t             *body;
    const tg_scan_member_t               *member;
    ngx_http_toolgate_responses_state_t  *state;

    body = w->check->body;
    state = w->check->run->face_data;

    tg_buf_free(&state->history);

    if (state->keep && state->input.len == 0) {
        member = tg_scan_find(body->scan, (char *) body->data, "input");
        state->input.data = body->data + member->value.start;
        state->input.len = member->value.end - member->value.start;
        state->data = body->data;
        state->size = body->cap;

    } else {
        ngx_http_toolgate_bytes_free(w->check->request->pool, body->data, body->cap);
    }

    tg_scan_free(body->scan);

    body->data = w->data;
    body->len = w->len;
    body->cap = w->cap;
    body->scan = w->scan;

    w->data = NULL;
    w->scan = NULL;
}


static void
ngx_http_toolgate_responses_cleanup(void *data)
{
    ngx_http_toolgate_responses_work_t  *w = data;

    if (w->slice.posted) {
        ngx_delete_posted_event(&w->slice);
    }

    tg_scan_free(w->scan);
    ngx_http_toolgate_bytes_free(NULL, w->data, w->cap);
}
