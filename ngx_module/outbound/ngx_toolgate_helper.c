/*
 * The worker's side of the helper protocol: calls. The callers own what a call
 * means; the connections are ngx_toolgate_helper_peer.c's.
 *
 * A connection carries one call at a time. Its first record is HELLO, sent together
 * with the first CALL. When control returns to the event loop a peer is either idle
 * (in the queue, no call) or has exactly one call; a call is in exactly one state.
 *
 * The helper answers every CALL with an EVENT at once, so a helper that hangs is
 * known after NGX_TOOLGATE_HELPER_CONNECT_MS, on kept connections too.
 */

#include "ngx_toolgate_helper_peer.h"

#include "tg_json.h"


#define NGX_TOOLGATE_HELPER_READ_SIZE   (16 * 1024)

/* both records of a first call, with their heads */
#define NGX_TOOLGATE_HELPER_OUT_MAX     (TG_FRAME_MAX + 1024)

typedef enum {
    NGX_TOOLGATE_HELPER_SENDING = 0,   /* connecting, or the request is not out yet */
    NGX_TOOLGATE_HELPER_ASKED,         /* all sent, nothing heard */
    NGX_TOOLGATE_HELPER_RUNNING,       /* the helper has taken the call */
    NGX_TOOLGATE_HELPER_OVER           /* the outcome is known or nobody wants it */
} ngx_toolgate_helper_state_e;

struct ngx_toolgate_helper_call_s {
    ngx_pool_t                     *pool;
    ngx_log_t                      *log;
    ngx_addr_t                     *addr;
    ngx_toolgate_helper_request_t  *request;
    ngx_toolgate_helper_done_pt     done;
    void                           *data;

    ngx_toolgate_helper_state_e     state;
    ngx_toolgate_helper_peer_t     *peer;
    ngx_toolgate_helper_result_t    result;
    ngx_msec_t                      started;

    tg_buf_t                        out;
    size_t                          sent;

    ngx_event_t                     silence;      /* nothing heard yet */
    ngx_event_t                     deadline;     /* of the whole call */
    ngx_event_t                     failure;      /* posted when start fails */
};


static ngx_int_t ngx_toolgate_helper_build(ngx_toolgate_helper_call_t *call,
    ngx_uint_t hello);
static void ngx_toolgate_helper_begin(ngx_toolgate_helper_call_t *call);
static void ngx_toolgate_helper_write_handler(ngx_event_t *ev);
static void ngx_toolgate_helper_read_handler(ngx_event_t *ev);
static ngx_int_t ngx_toolgate_helper_record(ngx_toolgate_helper_peer_t *peer,
    tg_frame_t *frame);
static void ngx_toolgate_helper_answer(ngx_toolgate_helper_peer_t *peer,
    tg_frame_t *frame);
static void ngx_toolgate_helper_fail(ngx_toolgate_helper_call_t *call,
    const char *detail);
static void ngx_toolgate_helper_finish(ngx_toolgate_helper_call_t *call);
static void ngx_toolgate_helper_release(ngx_toolgate_helper_call_t *call);
static void ngx_toolgate_helper_silence_handler(ngx_event_t *ev);
static void ngx_toolgate_helper_deadline_handler(ngx_event_t *ev);
static void ngx_toolgate_helper_failure_handler(ngx_event_t *ev);
static void ngx_toolgate_helper_cleanup(void *data);


ngx_toolgate_helper_call_t *
ngx_toolgate_helper_start(ngx_pool_t *pool, ngx_log_t *log, ngx_addr_t *addr,
    ngx_toolgate_helper_request_t *request, ngx_toolgate_helper_done_pt done,
    void *data)
{
    ngx_pool_cleanup_t          *cln;
    ngx_toolgate_helper_call_t  *call;

    cln = ngx_pool_cleanup_add(pool, sizeof(ngx_toolgate_helper_call_t));
    if (cln == NULL) {
        return NULL;
    }

    call = cln->data;
    ngx_memzero(call, sizeof(ngx_toolgate_helper_call_t));
    cln->handler = ngx_toolgate_helper_cleanup;

    call->pool = pool;
    call->log = log;
    call->addr = addr;
    call->request = request;
    call->done = done;
    call->data = data;
    call->started = ngx_current_msec;

    tg_buf_init(&call->out, NGX_TOOLGATE_HELPER_OUT_MAX);

    call->silence.data = call;
    call->silence.log = ngx_cycle->log;
    call->silence.handler = ngx_toolgate_helper_silence_handler;

    call->deadline.data = call;
    call->deadline.log = ngx_cycle->log;
    call->deadline.handler = ngx_toolgate_helper_deadline_handler;

    call->failure.data = call;
    call->failure.log = ngx_cycle->log;
    call->failure.handler = ngx_toolgate_helper_failure_handler;

    ngx_toolgate_helper_begin(call);

    return call;
}


/* takes or makes a connection and sends; a failure is told by a posted event */
static void
ngx_toolgate_helper_begin(ngx_toolgate_helper_call_t *call)
{
    ngx_uint_t                   hello;
    ngx_toolgate_helper_peer_t  *peer;

    peer = ngx_toolgate_helper_peer_reuse(call->addr);
    hello = (peer == NULL);

    if (peer == NULL) {
        peer = ngx_toolgate_helper_peer_connect(call->addr, call->log);
        if (peer == NULL) {
            call->result.detail = "the helper's socket can not be connected";
            goto failed;
        }
    }

    call->peer = peer;
    peer->call = call;
    peer->stream++;

    peer->connection->read->handler = ngx_toolgate_helper_read_handler;
    peer->connection->write->handler = ngx_toolgate_helper_write_handler;

    if (ngx_toolgate_helper_build(call, hello) != NGX_OK) {
        call->result.detail = "the call is too big for the helper";
        goto failed;
    }

    ngx_add_timer(&call->silence, NGX_TOOLGATE_HELPER_CONNECT_MS);
    if (call->request->timeout != 0) {
        ngx_add_timer(&call->deadline, call->request->timeout);
    }

    /* sent from the event loop: nothing may finish the call inside start */
    ngx_post_event(peer->connection->write, &ngx_posted_events);
    return;

failed:

    ngx_post_event(&call->failure, &ngx_posted_events);
}


static ngx_int_t
ngx_toolgate_helper_build(ngx_toolgate_helper_call_t *call, ngx_uint_t hello)
{
    ngx_toolgate_helper_request_t  *r = call->request;

    const struct {
        const char                 *key;
        ngx_str_t                  *value;
    } fields[] = {
        { "{\"id\":", &r->call_id },
        { ",\"tool\":", &r->tool },
        { ",\"project\":", &r->project },
        { ",\"account\":", &r->account },
        { ",\"session\":", &r->session },
        { ",\"invocation_id\":", &r->invocation_id },
    };

    tg_rc_e                         rc;
    tg_buf_t                        json;
    ngx_uint_t                      i;

    if (hello) {
        rc = tg_frame_write(&call->out, TG_FRAME_HELLO, 0,
                            tg_str("{\"protocol\":1,\"peer\":\"nginx\"}"));
        if (rc != TG_OK) {
            return NGX_ERROR;
        }
    }

    tg_buf_init(&json, TG_FRAME_MAX);

    for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        (void) tg_buf_cstr(&json, fields[i].key);
        (void) tg_buf_json_string(&json, (tg_str_t) { fields[i].value->len,
                                      (const char *) fields[i].value->data });
    }

    (void) tg_buf_cstr(&json, ",\"arguments\":");
    if (r->arguments.len == 0) {
        (void) tg_buf_cstr(&json, "{}");

    } else {
        (void) tg_buf_append(&json, r->arguments.data, r->arguments.len);
    }

    (void) tg_buf_char(&json, '}');

    rc = json.error;
    if (rc == TG_OK) {
        rc = tg_frame_write(&call->out, TG_FRAME_CALL, call->peer->stream,
                            tg_buf_get(&json));
    }

    tg_buf_free(&json);

    return rc == TG_OK ? NGX_OK : NGX_ERROR;
}


static void
ngx_toolgate_helper_write_handler(ngx_event_t *ev)
{
    ssize_t                      n;
    ngx_connection_t            *c;
    ngx_toolgate_helper_call_t  *call;
    ngx_toolgate_helper_peer_t  *peer;

    c = ev->data;
    peer = c->data;
    call = peer->call;

    if (call->state != NGX_TOOLGATE_HELPER_SENDING || !c->write->ready) {
        return;
    }

    while (call->sent < call->out.len) {
        n = c->send(c, (u_char *) call->out.data + call->sent,
                    call->out.len - call->sent);

        if (n == NGX_AGAIN) {
            if (ngx_handle_write_event(c->write, 0) != NGX_OK) {
                ngx_toolgate_helper_fail(call, "event failure");
            }
            return;
        }

        if (n < 0) {
            ngx_toolgate_helper_fail(call, "the helper closed the connection");
            return;
        }

        call->sent += (size_t) n;
    }

    call->state = NGX_TOOLGATE_HELPER_ASKED;
    tg_buf_free(&call->out);

    if (ngx_handle_read_event(c->read, 0) != NGX_OK) {
        ngx_toolgate_helper_fail(call, "event failure");
        return;
    }

    if (c->read->ready) {
        ngx_toolgate_helper_read_handler(c->read);
    }
}


static void
ngx_toolgate_helper_read_handler(ngx_event_t *ev)
{
    u_char                       buffer[NGX_TOOLGATE_HELPER_READ_SIZE];
    ssize_t                      n;
    ngx_int_t                    rc;
    tg_frame_t                   frame;
    ngx_connection_t            *c;
    ngx_toolgate_helper_peer_t  *peer;

    c = ev->data;
    peer = c->data;

    for ( ;; ) {
        n = c->recv(c, buffer, sizeof(buffer));

        if (n == NGX_AGAIN) {
            if (ngx_handle_read_event(c->read, 0) != NGX_OK) {
                ngx_toolgate_helper_fail(peer->call, "event failure");
            }
            return;
        }

        if (n == 0 || n == NGX_ERROR) {
            ngx_toolgate_helper_fail(peer->call, "the helper closed the connection");
            return;
        }

        if (tg_frame_feed(&peer->reader, buffer, (size_t) n) != TG_OK) {
            ngx_toolgate_helper_fail(peer->call, "the helper spoke out of protocol");
            return;
        }

        while (tg_frame_next(&peer->reader, &frame) == TG_OK) {
            rc = ngx_toolgate_helper_record(peer, &frame);

            /* on NGX_DONE the peer may be idle, closed or in use again */
            if (rc == NGX_DONE) {
                return;
            }

            if (rc == NGX_ERROR) {
                ngx_toolgate_helper_fail(peer->call,
                                         "the helper spoke out of protocol");
                return;
            }
        }
    }
}


/* NGX_OK: go on; NGX_DONE: the call is over; NGX_ERROR: not what may come now */
static ngx_int_t
ngx_toolgate_helper_record(ngx_toolgate_helper_peer_t *peer, tg_frame_t *frame)
{
    json_t                      *hello;
    ngx_int_t                    rc;
    tg_json_error_t              error;
    ngx_toolgate_helper_call_t  *call;

    call = peer->call;

    if (!peer->greeted) {
        if (frame->type != TG_FRAME_HELLO) {
            return NGX_ERROR;
        }

        hello = tg_json_load(frame->payload, &error);
        rc = json_integer_value(json_object_get(hello, "protocol"))
             == TG_FRAME_PROTOCOL ? NGX_OK : NGX_ERROR;
        json_decref(hello);

        peer->greeted = (rc == NGX_OK);
        return rc;
    }

    if (frame->stream != peer->stream || call->state == NGX_TOOLGATE_HELPER_SENDING) {
        return NGX_ERROR;
    }

    switch (frame->type) {

    case TG_FRAME_EVENT:
        if (call->state == NGX_TOOLGATE_HELPER_ASKED) {
            call->state = NGX_TOOLGATE_HELPER_RUNNING;
            ngx_del_timer(&call->silence);
        }
        return NGX_OK;

    case TG_FRAME_RESULT:
        ngx_toolgate_helper_answer(peer, frame);
        return NGX_DONE;

    default:
        return NGX_ERROR;
    }
}


static void
ngx_toolgate_helper_answer(ngx_toolgate_helper_peer_t *peer, tg_frame_t *frame)
{
    u_char                      *p;
    ngx_toolgate_helper_call_t  *call;

    call = peer->call;

    if (frame->payload.len > NGX_TOOLGATE_HELPER_RESULT_MAX) {
        ngx_toolgate_helper_fail(call, "the helper's answer is too big");
        return;
    }

    p = ngx_pnalloc(call->pool, frame->payload.len + 1);
    if (p == NULL) {
        ngx_toolgate_helper_fail(call, "out of memory");
        return;
    }

    *ngx_cpymem(p, frame->payload.data, frame->payload.len) = '\0';
    call->result.result.data = p;
    call->result.result.len = frame->payload.len;

    call->peer = NULL;
    peer->call = NULL;

    if (tg_frame_partial(&peer->reader) || ngx_exiting || ngx_terminate) {
        ngx_toolgate_helper_peer_close(peer);

    } else {
        ngx_toolgate_helper_peer_keep(peer);
    }

    ngx_toolgate_helper_finish(call);
}


/* called from the event loop only */
static void
ngx_toolgate_helper_fail(ngx_toolgate_helper_call_t *call, const char *detail)
{
    call->result.detail = detail;
    call->result.code = "sandbox_unavailable";
    call->result.asked = (call->state == NGX_TOOLGATE_HELPER_ASKED
                          || call->state == NGX_TOOLGATE_HELPER_RUNNING);

    ngx_log_error(NGX_LOG_ERR, call->log, 0, "toolgate: helper call failed: %s",
                  detail);

    ngx_toolgate_helper_finish(call);
}


/* the only place that calls back */
static void
ngx_toolgate_helper_finish(ngx_toolgate_helper_call_t *call)
{
    ngx_toolgate_helper_release(call);

    call->result.total_ms = ngx_current_msec - call->started;
    call->done(call->data, &call->result);
}


/* gives back all that a call holds; the connection goes with a call in flight */
static void
ngx_toolgate_helper_release(ngx_toolgate_helper_call_t *call)
{
    ngx_toolgate_helper_peer_t  *peer;

    call->state = NGX_TOOLGATE_HELPER_OVER;
    tg_buf_free(&call->out);

    if (call->silence.timer_set) {
        ngx_del_timer(&call->silence);
    }

    if (call->deadline.timer_set) {
        ngx_del_timer(&call->deadline);
    }

    if (call->failure.posted) {
        ngx_delete_posted_event(&call->failure);
    }

    peer = call->peer;
    if (peer != NULL) {
        call->peer = NULL;
        peer->call = NULL;
        ngx_toolgate_helper_peer_close(peer);
    }
}


static void
ngx_toolgate_helper_silence_handler(ngx_event_t *ev)
{
    ngx_toolgate_helper_fail(ev->data, "the helper does not answer");
}


static void
ngx_toolgate_helper_deadline_handler(ngx_event_t *ev)
{
    ngx_toolgate_helper_fail(ev->data, "the call took too long");
}


static void
ngx_toolgate_helper_failure_handler(ngx_event_t *ev)
{
    ngx_toolgate_helper_call_t  *call;

    call = ev->data;
    ngx_toolgate_helper_fail(call, call->result.detail);
}


void
ngx_toolgate_helper_cancel(ngx_toolgate_helper_call_t *call)
{
    if (call->state != NGX_TOOLGATE_HELPER_OVER) {
        ngx_toolgate_helper_release(call);
    }
}


static void
ngx_toolgate_helper_cleanup(void *data)
{
    ngx_toolgate_helper_cancel(data);
}
