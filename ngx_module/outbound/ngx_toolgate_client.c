/*
 * One call of the protected client: look the name up, judge every address that it
 * has, try the judged addresses in order, report once. The call lives in the
 * caller's pool and takes nothing beyond it: leaving a state undoes what the state
 * had begun, so the pool's clean-up only has to move the call to its last state.
 *
 * The result is told from the event loop, by a posted event, however early it is
 * known. After that, or after a cancel, nothing of the call is touched.
 */

#include "ngx_toolgate_client.h"
#include "ngx_toolgate_exchange.h"
#include "ngx_toolgate_lookup.h"


typedef enum {
    NGX_TOOLGATE_CALL_NEW = 0,
    NGX_TOOLGATE_CALL_RESOLVING,
    NGX_TOOLGATE_CALL_TRANSFER,
    NGX_TOOLGATE_CALL_REPORT,        /* the result is settled, its event is posted */
    NGX_TOOLGATE_CALL_OVER
} ngx_toolgate_call_state_e;


struct ngx_toolgate_call_s {
    ngx_toolgate_call_state_e        state;
    ngx_pool_t                      *pool;
    ngx_log_t                       *log;
    ngx_toolgate_client_conf_t      *conf;
    ngx_toolgate_client_request_t   *request;
    ngx_resolver_t                  *resolver;
    ngx_msec_t                       resolver_timeout;
    ngx_toolgate_call_done_pt        done;
    void                            *data;
    ngx_event_t                      deadline;   /* of the call */
    ngx_event_t                      connect;    /* of one connect, without TLS */
    ngx_event_t                      silence;    /* of a streamed call */
    ngx_event_t                      resume;
    ngx_event_t                      report;
    ngx_msec_t                       started;
    ngx_msec_t                       timeout;
    ngx_uint_t                       next;       /* address to try */
    unsigned                         fresh:1;    /* no kept connection */
    unsigned                         retried:1;
    unsigned                         keep:1;     /* the handle may serve again */
    ngx_toolgate_lookup_t            lookup;
    ngx_toolgate_exchange_t          exchange;
    ngx_toolgate_client_result_t     result;
};


static void ngx_toolgate_call_move(ngx_toolgate_call_t *call,
    ngx_toolgate_call_state_e state);
static void ngx_toolgate_call_leave(ngx_toolgate_call_t *call);
static void ngx_toolgate_call_fail(ngx_toolgate_call_t *call, const char *code,
    const char *detail);
static void ngx_toolgate_call_lost(ngx_toolgate_call_t *call, const char *detail);
static void ngx_toolgate_call_resolve(ngx_toolgate_call_t *call);
static void ngx_toolgate_call_on_lookup(void *data, const char *code,
    const char *detail);
static void ngx_toolgate_call_attempt(ngx_toolgate_call_t *call);
static void ngx_toolgate_call_on_attempt(void *data, CURLcode rc);
static void ngx_toolgate_call_again(ngx_toolgate_call_t *call,
    const char *detail);
static void ngx_toolgate_call_timer(ngx_toolgate_call_t *call, ngx_event_t *ev,
    ngx_event_handler_pt handler);
static void ngx_toolgate_call_on_connect_timeout(ngx_event_t *ev);
static ngx_msec_t ngx_toolgate_call_left(ngx_toolgate_call_t *call);
static void ngx_toolgate_call_on_deadline(ngx_event_t *ev);
static void ngx_toolgate_call_on_silence(ngx_event_t *ev);
static void ngx_toolgate_call_timed_out(ngx_toolgate_call_t *call);
static void ngx_toolgate_call_on_resume(ngx_event_t *ev);
static void ngx_toolgate_call_on_report(ngx_event_t *ev);
static void ngx_toolgate_call_cleanup(void *data);


ngx_int_t
ngx_toolgate_client_init_worker(ngx_cycle_t *cycle)
{
    return ngx_toolgate_curl_init_worker(cycle);
}


void
ngx_toolgate_client_exit_worker(ngx_cycle_t *cycle)
{
    ngx_toolgate_curl_exit_worker(cycle);
}


ngx_toolgate_call_t *
ngx_toolgate_client_start(ngx_pool_t *pool, ngx_log_t *log,
    ngx_toolgate_client_conf_t *conf, ngx_resolver_t *resolver,
    ngx_msec_t resolver_timeout, ngx_toolgate_client_request_t *request,
    ngx_toolgate_call_done_pt done, void *data)
{
    const char           *error;
    ngx_pool_cleanup_t   *cln;
    ngx_toolgate_call_t  *call;

    call = ngx_pcalloc(pool, sizeof(ngx_toolgate_call_t));
    cln = ngx_pool_cleanup_add(pool, 0);

    if (call == NULL || cln == NULL) {
        return NULL;
    }

    call->pool = pool;
    call->log = log;
    call->conf = conf;
    call->request = request;
    call->resolver = resolver;
    call->resolver_timeout = resolver_timeout;
    call->done = done;
    call->data = data;
    call->started = ngx_current_msec;
    call->timeout = request->stream
                    ? request->timeout
                    : ngx_min(request->timeout, NGX_TOOLGATE_CLIENT_TOTAL_MAX_MS);

    /* an action never goes out on a kept connection: when the server closes that
     * at the same moment, nobody can say whether it was taken */
    call->fresh = request->action;

    ngx_toolgate_call_timer(call, &call->report, ngx_toolgate_call_on_report);
    ngx_toolgate_call_timer(call, &call->connect,
                            ngx_toolgate_call_on_connect_timeout);
    ngx_toolgate_call_timer(call, &call->silence, ngx_toolgate_call_on_silence);
    ngx_toolgate_call_timer(call, &call->resume, ngx_toolgate_call_on_resume);
    ngx_toolgate_call_timer(call, &call->deadline, ngx_toolgate_call_on_deadline);
    ngx_add_timer(&call->deadline, call->timeout);

    if (request->stream) {
        call->exchange.silence = &call->silence;
        ngx_toolgate_stream_moved(&call->exchange);
    }

    cln->handler = ngx_toolgate_call_cleanup;
    cln->data = call;

    error = ngx_toolgate_exchange_prepare(&call->exchange, pool, log, conf,
                                          request);
    if (error) {
        ngx_toolgate_call_fail(call, "upstream_failed", error);
        return call;
    }

    ngx_toolgate_call_move(call, NGX_TOOLGATE_CALL_RESOLVING);

    return call;
}


/* whoever waits for the call keeps the worker alive, not the call */
static void
ngx_toolgate_call_timer(ngx_toolgate_call_t *call, ngx_event_t *ev,
    ngx_event_handler_pt handler)
{
    ev->handler = handler;
    ev->data = &ngx_toolgate_no_connection;
    ev->log = call->log;
    ev->cancelable = 1;
}


/* not at once: the taker would be called from inside of its own call to this */
void
ngx_toolgate_client_resume(ngx_toolgate_call_t *call)
{
    if (call->state == NGX_TOOLGATE_CALL_TRANSFER && call->exchange.paused) {
        ngx_post_event(&call->resume, &ngx_posted_events);
    }
}


static void
ngx_toolgate_call_on_resume(ngx_event_t *ev)
{
    ngx_toolgate_call_t  *call;

    call = ngx_queue_data(ev, ngx_toolgate_call_t, resume);

    ngx_toolgate_stream_resume(&call->exchange);
}


void
ngx_toolgate_client_cancel(ngx_toolgate_call_t *call)
{
    if (call->state != NGX_TOOLGATE_CALL_OVER) {
        ngx_toolgate_call_move(call, NGX_TOOLGATE_CALL_OVER);
    }
}


static void
ngx_toolgate_call_cleanup(void *data)
{
    ngx_toolgate_client_cancel(data);
}


/* the one place where the state changes; entering may move on at once */
static void
ngx_toolgate_call_move(ngx_toolgate_call_t *call, ngx_toolgate_call_state_e state)
{
    ngx_log_debug2(NGX_LOG_DEBUG_CORE, call->log, 0,
                   "toolgate: call state %d -> %d", (int) call->state,
                   (int) state);

    ngx_toolgate_call_leave(call);

    call->state = state;

    switch (state) {

    case NGX_TOOLGATE_CALL_NEW:
        break;

    case NGX_TOOLGATE_CALL_RESOLVING:
        ngx_toolgate_call_resolve(call);
        break;

    case NGX_TOOLGATE_CALL_TRANSFER:
        ngx_toolgate_call_attempt(call);
        break;

    case NGX_TOOLGATE_CALL_REPORT:
        call->result.total_ms = ngx_current_msec - call->started;
        ngx_post_event(&call->report, &ngx_posted_events);
        break;

    case NGX_TOOLGATE_CALL_OVER:
        if (call->deadline.timer_set) {
            ngx_del_timer(&call->deadline);
        }

        if (call->silence.timer_set) {
            ngx_del_timer(&call->silence);
        }

        break;
    }
}


/* undoes what the present state has begun */
static void
ngx_toolgate_call_leave(ngx_toolgate_call_t *call)
{
    switch (call->state) {

    case NGX_TOOLGATE_CALL_RESOLVING:
        ngx_toolgate_lookup_stop(&call->lookup);
        break;

    case NGX_TOOLGATE_CALL_TRANSFER:
        if (call->connect.timer_set) {
            ngx_del_timer(&call->connect);
        }

        if (call->resume.posted) {
            ngx_delete_posted_event(&call->resume);
        }

        ngx_toolgate_exchange_stop(&call->exchange, call->keep);
        call->keep = 0;
        break;

    case NGX_TOOLGATE_CALL_REPORT:
        if (call->report.posted) {
            ngx_delete_posted_event(&call->report);
        }

        break;

    case NGX_TOOLGATE_CALL_NEW:
    case NGX_TOOLGATE_CALL_OVER:
        break;
    }
}


static void
ngx_toolgate_call_fail(ngx_toolgate_call_t *call, const char *code,
    const char *detail)
{
    call->result.code = code;
    call->result.detail = detail;

    ngx_toolgate_call_move(call, NGX_TOOLGATE_CALL_REPORT);
}


ngx_uint_t
ngx_toolgate_call_sent(ngx_toolgate_call_t *call)
{
    return call->result.bytes_sent || call->exchange.guard.passed;
}


/* no whole answer: whether that may have done something is all that matters */
static void
ngx_toolgate_call_lost(ngx_toolgate_call_t *call, const char *detail)
{
    ngx_toolgate_call_fail(call,
                           call->request->action && call->result.bytes_sent
                           ? "outcome_unknown" : "upstream_failed",
                           detail);
}


static void
ngx_toolgate_call_resolve(ngx_toolgate_call_t *call)
{
    ngx_msec_t  timeout;

    timeout = ngx_toolgate_call_left(call);

    if (call->resolver_timeout) {
        timeout = ngx_min(timeout, call->resolver_timeout);
    }

    call->lookup.conf = call->conf;
    call->lookup.url = call->request->parts;
    call->lookup.done = ngx_toolgate_call_on_lookup;
    call->lookup.data = call;

    ngx_toolgate_lookup_start(&call->lookup, call->resolver, timeout);
}


static void
ngx_toolgate_call_on_lookup(void *data, const char *code, const char *detail)
{
    ngx_toolgate_call_t  *call = data;

    call->result.dns_ms = ngx_current_msec - call->started;

    if (code) {
        ngx_log_error(NGX_LOG_WARN, call->log, 0,
                      "toolgate: outbound call not begun: %s: %s", detail,
                      call->request->parts->host);

        if (call->lookup.refused_known) {
            (void) ngx_toolgate_exchange_address(call->pool,
                                                 &call->lookup.refused_addr,
                                                 &call->result.address);
        }

        ngx_toolgate_call_fail(call, code, detail);
        return;
    }

    ngx_toolgate_call_move(call, NGX_TOOLGATE_CALL_TRANSFER);
}


static void
ngx_toolgate_call_attempt(ngx_toolgate_call_t *call)
{
    ngx_msec_t   left;
    const char  *error;

    left = ngx_toolgate_call_left(call);

    if (left == 0) {
        call->result.timed_out = 1;
        ngx_toolgate_call_fail(call, "upstream_failed", "timed out");
        return;
    }

    error = ngx_toolgate_exchange_start(&call->exchange,
                                        &call->lookup.addrs[call->next],
                                        left, call->fresh,
                                        ngx_toolgate_call_on_attempt, call);
    if (error) {
        ngx_toolgate_call_fail(call, "upstream_failed", error);
        return;
    }

    if (left > NGX_TOOLGATE_CLIENT_CONNECT_MS) {
        ngx_add_timer(&call->connect, NGX_TOOLGATE_CLIENT_CONNECT_MS);
    }
}


static void
ngx_toolgate_call_on_connect_timeout(ngx_event_t *ev)
{
    ngx_toolgate_call_t  *call;

    call = ngx_queue_data(ev, ngx_toolgate_call_t, connect);

    if (ngx_toolgate_guard_connected(&call->exchange.guard)) {
        return;
    }

    if (ngx_toolgate_exchange_facts(&call->exchange, 0, call->started,
                                    &call->result)
        != NGX_OK)
    {
        ngx_toolgate_call_lost(call, "out of memory");
        return;
    }

    call->result.timed_out = 1;
    ngx_toolgate_call_again(call, "connect timed out");
}


static void
ngx_toolgate_call_on_attempt(void *data, CURLcode rc)
{
    const char                       *detail;
    ngx_toolgate_call_t              *call = data;
    ngx_toolgate_exchange_outcome_e   outcome;

    outcome = ngx_toolgate_exchange_outcome(&call->exchange, rc, &detail);

    if (call->exchange.guard.passed) {
        call->result.bytes_sent = 1;
    }

    call->result.timed_out = (rc == CURLE_OPERATION_TIMEDOUT);

    if (ngx_toolgate_exchange_facts(&call->exchange,
                                    outcome == NGX_TOOLGATE_EXCHANGE_WHOLE,
                                    call->started, &call->result)
        != NGX_OK)
    {
        ngx_toolgate_call_lost(call, "out of memory");
        return;
    }

    switch (outcome) {

    case NGX_TOOLGATE_EXCHANGE_WHOLE:
        call->keep = 1;
        ngx_toolgate_call_move(call, NGX_TOOLGATE_CALL_REPORT);
        return;

    case NGX_TOOLGATE_EXCHANGE_REFUSED:
        ngx_log_error(NGX_LOG_WARN, call->log, 0,
                      "toolgate: outbound call refused at the socket: %s: %s",
                      detail, call->request->parts->host);
        ngx_toolgate_call_fail(call, "address_not_allowed", detail);
        return;

    case NGX_TOOLGATE_EXCHANGE_STALE:
        call->fresh = 1;
        ngx_toolgate_call_move(call, NGX_TOOLGATE_CALL_TRANSFER);
        return;

    case NGX_TOOLGATE_EXCHANGE_FAILED:
        ngx_toolgate_call_again(call, detail);
        return;

    case NGX_TOOLGATE_EXCHANGE_UNREADABLE:
        ngx_toolgate_call_fail(call, "unreadable", detail);
        return;

    case NGX_TOOLGATE_EXCHANGE_HOPELESS:
    case NGX_TOOLGATE_EXCHANGE_LOST:
        break;
    }

    ngx_toolgate_call_lost(call, detail);
}


/*
 * No byte of the request has left, so another try harms nobody: the next address
 * for all; for a read one more round that begins with the first, unless it would
 * be one more long wait.
 */
static void
ngx_toolgate_call_again(ngx_toolgate_call_t *call, const char *detail)
{
    if (call->next + 1 < call->lookup.naddrs) {
        call->next++;

    } else if (!call->request->action && !call->retried
               && !call->result.timed_out)
    {
        call->retried = 1;
        call->next = 0;

    } else {
        ngx_toolgate_call_lost(call, detail);
        return;
    }

    if (ngx_toolgate_call_left(call) == 0) {
        ngx_toolgate_call_lost(call, detail);
        return;
    }

    ngx_toolgate_call_move(call, NGX_TOOLGATE_CALL_TRANSFER);
}


static ngx_msec_t
ngx_toolgate_call_left(ngx_toolgate_call_t *call)
{
    ngx_msec_t  spent;

    spent = ngx_current_msec - call->started;

    return spent < call->timeout ? call->timeout - spent : 0;
}


/* curl's own time-out and the resolver's are earlier as a rule */
static void
ngx_toolgate_call_on_deadline(ngx_event_t *ev)
{
    ngx_toolgate_call_t  *call;

    call = ngx_queue_data(ev, ngx_toolgate_call_t, deadline);

    ngx_toolgate_call_timed_out(call);
}


static void
ngx_toolgate_call_on_silence(ngx_event_t *ev)
{
    ngx_toolgate_call_t  *call;

    call = ngx_queue_data(ev, ngx_toolgate_call_t, silence);

    ngx_toolgate_call_timed_out(call);
}


static void
ngx_toolgate_call_timed_out(ngx_toolgate_call_t *call)
{
    if (call->state == NGX_TOOLGATE_CALL_TRANSFER) {
        call->result.bytes_sent |= call->exchange.guard.passed;
        (void) ngx_toolgate_exchange_facts(&call->exchange, 0, call->started,
                                           &call->result);
    }

    if (call->state != NGX_TOOLGATE_CALL_REPORT) {
        call->result.timed_out = 1;
        ngx_toolgate_call_lost(call, "timed out");
    }
}


static void
ngx_toolgate_call_on_report(ngx_event_t *ev)
{
    ngx_toolgate_call_t  *call;

    call = ngx_queue_data(ev, ngx_toolgate_call_t, report);

    ngx_toolgate_call_move(call, NGX_TOOLGATE_CALL_OVER);

    call->done(call->data, &call->result);
}
