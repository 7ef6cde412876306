/*
 * The protected client: one outbound HTTP request to a URL that somebody
 * configured (HTTP tools, later webhooks and custom model URLs). Resolves with
 * nginx's resolver (a hosts file first), judges every address, pins the
 * connection to the judged one, judges again on the socket, follows nothing,
 * is bounded in time and bytes, and never blocks the worker.
 * It knows nothing of requests, runs or tools.
 */

#ifndef NGX_TOOLGATE_CLIENT_H
#define NGX_TOOLGATE_CLIENT_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include "tg_netguard.h"
#include "tg_shape.h"
#include "tg_url.h"


#define NGX_TOOLGATE_CLIENT_CONNECT_MS       3000
#define NGX_TOOLGATE_CLIENT_TOTAL_MAX_MS     15000
#define NGX_TOOLGATE_CLIENT_RESPONSE_MAX     TG_SHAPE_BODY_MAX
#define NGX_TOOLGATE_CLIENT_MAX_ADDRESSES    16

/* Set up once at configuration time, shared by all workers, read-only. */
typedef struct {
    tg_netguard_t     guard;
    ngx_str_t         ca_file;        /* empty: the system's bundle */
    ngx_str_t         user_agent;
    ngx_array_t      *hosts;          /* of ngx_toolgate_host_t; NULL: no file */
    /* 0: no encoding is asked for and an encoded answer is unreadable. 1: gzip
     * is asked for and decoded, bounded by what comes out of it. */
    unsigned          accept_gzip:1;
} ngx_toolgate_client_conf_t;

typedef struct {
    ngx_str_t         name;           /* lower case */
    tg_addr_t         addr;
} ngx_toolgate_host_t;

typedef struct {
    const char       *method;         /* "GET", "POST", "PUT", "PATCH", "DELETE" */
    ngx_str_t         url;
    const tg_url_t   *parts;          /* of url, already judged by tg_url_judge */
    ngx_array_t      *headers;        /* of ngx_keyval_t */
    ngx_str_t         body;
    unsigned          has_body:1;
    unsigned          action:1;       /* not a read: never sent twice */
    ngx_msec_t        timeout;        /* whole call */
} ngx_toolgate_client_request_t;

typedef struct {
    /* NULL: an answer came whole. Else address_not_allowed, upstream_failed
     * (nothing came, or it was cut short), unreadable (over the size bound, bad
     * encoding), outcome_unknown (an action of which some byte was sent and no
     * whole answer came). */
    const char       *code;
    const char       *detail;         /* static or NUL-terminated in pool, for steps */
    ngx_uint_t        status;
    ngx_str_t         content_type;
    ngx_str_t         body;           /* decoded */
    ngx_str_t         address;        /* text of the peer used, "" if none */
    /* how long look-up, connect and handshake took (0 on a kept connection);
     * first byte and total are counted from the start of the call */
    ngx_msec_t        dns_ms, connect_ms, tls_ms, first_byte_ms, total_ms;
    unsigned          bytes_sent:1;   /* some byte of the request left */
} ngx_toolgate_client_result_t;

typedef struct ngx_toolgate_call_s  ngx_toolgate_call_t;

/* Called once from the event loop, never from inside start; result lives in the
 * pool that was given to start. The pool may be destroyed inside. The event is
 * the client's own, so an HTTP caller runs its posted requests afterwards. */
typedef void (*ngx_toolgate_call_done_pt)(void *data,
    ngx_toolgate_client_result_t *result);


/* Per worker set-up and tear-down (init_process, exit_process). */
ngx_int_t ngx_toolgate_client_init_worker(ngx_cycle_t *cycle);
void ngx_toolgate_client_exit_worker(ngx_cycle_t *cycle);

/*
 * Starts a call. request and what it points to must live as long as pool. If the
 * pool is destroyed first the call ends without a callback. resolver may be NULL
 * (then only literals and the hosts file work). Returns NULL when out of memory.
 */
ngx_toolgate_call_t *ngx_toolgate_client_start(ngx_pool_t *pool, ngx_log_t *log,
    ngx_toolgate_client_conf_t *conf, ngx_resolver_t *resolver,
    ngx_msec_t resolver_timeout, ngx_toolgate_client_request_t *request,
    ngx_toolgate_call_done_pt done, void *data);

/* Ends a call at once without a callback; a call that is over is left alone. */
void ngx_toolgate_client_cancel(ngx_toolgate_call_t *call);

/* Reads a file of /etc/hosts form into an array of ngx_toolgate_host_t. */
ngx_int_t ngx_toolgate_hosts_load(ngx_conf_t *cf, ngx_str_t *file,
    ngx_array_t **hosts);

#endif /* NGX_TOOLGATE_CLIENT_H */
