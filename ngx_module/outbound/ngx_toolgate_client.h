/*
 * The protected client: one outbound HTTP request to a URL that somebody
 * configured (HTTP tools, models by their base URL, later webhooks). Resolves
 * with nginx's resolver (a hosts file first), judges every address, pins the
 * connection to the judged one, judges again on the socket, follows nothing,
 * is bounded in time and bytes, and never blocks the worker. An answer is
 * collected, or handed over as it comes when the request names a stream.
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
#define NGX_TOOLGATE_CLIENT_STREAM_MAX       (8 * 1024 * 1024)
#define NGX_TOOLGATE_CLIENT_SILENCE_MS       15000   /* of a streamed call */
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

/* The head of a streamed answer; the strings live in the call's pool. */
typedef struct {
    ngx_uint_t        status;
    ngx_str_t         content_type;
    ngx_str_t         retry_after;
    off_t             content_length; /* -1: not known */
} ngx_toolgate_client_head_t;

/* Who takes an answer as it comes, decoded from its framing. Both are called from
 * inside curl: they start, end and destroy nothing. */
typedef struct {
    /* once, before the first byte; not at all when no final head comes */
    void       (*head)(void *data, ngx_toolgate_client_head_t *head);
    /* NGX_OK: all taken; NGX_AGAIN: none taken, the same bytes come again after
     * ngx_toolgate_client_resume, and reading stops until then; NGX_ERROR: the rest
     * is not wanted, the call ends as unreadable */
    ngx_int_t  (*take)(void *data, u_char *bytes, size_t len);
} ngx_toolgate_client_stream_t;

typedef struct {
    const char       *method;         /* "GET", "POST", "PUT", "PATCH", "DELETE" */
    ngx_str_t         url;
    const tg_url_t   *parts;          /* of url, already judged by tg_url_judge */
    ngx_array_t      *headers;        /* of ngx_keyval_t */
    ngx_str_t         body;
    ngx_chain_t      *chain;          /* or the body in memory buffers, kept as is */
    off_t             chain_len;
    unsigned          has_body:1;
    unsigned          action:1;       /* not a read: never sent twice */
    ngx_msec_t        timeout;        /* whole call; cut to 15 s unless streamed */
    /* NULL: the answer is collected, up to RESPONSE_MAX. Else up to STREAM_MAX go to
     * it, gzip is not asked for, and SILENCE_MS without a byte in either direction
     * end the call, also before the first one; not while the taker makes it wait. */
    const ngx_toolgate_client_stream_t  *stream;
    void             *stream_data;
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
    ngx_str_t         body;           /* decoded; empty when it was streamed */
    ngx_str_t         address;        /* of the peer used or refused, "" if none */
    /* how long look-up, connect and handshake took (0 on a kept connection);
     * first byte and total are counted from the start of the call */
    ngx_msec_t        dns_ms, connect_ms, tls_ms, first_byte_ms, total_ms;
    unsigned          bytes_sent:1;   /* some byte of the request left */
    unsigned          timed_out:1;    /* code is set because it took too long */
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

/* Has a streamed answer that was told to wait come on, soon. */
void ngx_toolgate_client_resume(ngx_toolgate_call_t *call);

/* Ends a call at once without a callback; a call that is over is left alone. */
void ngx_toolgate_client_cancel(ngx_toolgate_call_t *call);

/* Reads a file of /etc/hosts form into an array of ngx_toolgate_host_t. */
ngx_int_t ngx_toolgate_hosts_load(ngx_conf_t *cf, ngx_str_t *file,
    ngx_array_t **hosts);

/* Whether some byte of a call that is not over may have left: it cannot be taken back
 * any more. */
ngx_uint_t ngx_toolgate_call_sent(ngx_toolgate_call_t *call);

#endif /* NGX_TOOLGATE_CLIENT_H */
