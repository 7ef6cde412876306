/*
 * A client that leaves before its run has ended. As a rule nginx lets the request go
 * at once, and all that is under way with it; but an action of which something is on
 * its way already is let finish, so that what it has done is known.
 */

#include "ngx_http_toolgate_run.h"


static ngx_uint_t ngx_http_toolgate_run_client_left(ngx_http_request_t *r);


void
ngx_http_toolgate_run_reading(ngx_http_request_t *r)
{
    ngx_event_t              *wev;
    ngx_http_toolgate_run_t  *run;

    run = ngx_http_get_module_ctx(r, ngx_http_toolgate_module);

    if (!ngx_http_toolgate_calls_committed(run)
        || !ngx_http_toolgate_run_client_left(r))
    {
        ngx_http_test_reading(r);
        return;
    }

    ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                  "toolgate: client has left, run %s hears of its actions first",
                  run->id);

    r->connection->error = 1;
    r->read_event_handler = ngx_http_block_reading;
    wev = r->connection->write;

    if (wev->timer_set) {
        ngx_del_timer(wev);
    }

    if (run->ping.timer_set) {
        ngx_del_timer(&run->ping);
    }

    ngx_http_toolgate_run_advance(run, NGX_HTTP_TOOLGATE_EVENT_CLIENT_LEFT);
    ngx_http_toolgate_run_post(run);
}


/* As nginx finds out; it has no function for it that leaves the request alone. */
static ngx_uint_t
ngx_http_toolgate_run_client_left(ngx_http_request_t *r)
{
    char               byte;
    ssize_t            n;
    ngx_connection_t  *c;

    c = r->connection;

#if (NGX_HTTP_V2)

    if (r->stream) {
        return c->error;
    }

#endif

    if (c->read->pending_eof) {
        return 1;
    }

    n = recv(c->fd, &byte, 1, MSG_PEEK);

    return n == 0 || (n == -1 && ngx_socket_errno != NGX_EAGAIN);
}
