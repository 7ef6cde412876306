/*
 * One attempt of a call: a request to one judged address, and what came of it.
 * Sets curl's options, gathers the answer or hands it over within its bounds, and
 * says in the client's terms how it ended. It does not resolve, retry or report.
 */

#ifndef NGX_TOOLGATE_EXCHANGE_H
#define NGX_TOOLGATE_EXCHANGE_H

#include "ngx_toolgate_client.h"
#include "ngx_toolgate_curl.h"
#include "ngx_toolgate_guard.h"


#define NGX_TOOLGATE_EXCHANGE_HEADERS_MAX  (64 * 1024)   /* of all heads, bytes */

typedef enum {
    NGX_TOOLGATE_EXCHANGE_WHOLE = 0,
    NGX_TOOLGATE_EXCHANGE_REFUSED,     /* by the guard at the socket */
    NGX_TOOLGATE_EXCHANGE_STALE,       /* the kept connection is of no use */
    NGX_TOOLGATE_EXCHANGE_FAILED,      /* no byte left; may go well elsewhere */
    NGX_TOOLGATE_EXCHANGE_HOPELESS,    /* no byte left; nor will it next time */
    NGX_TOOLGATE_EXCHANGE_LOST,        /* bytes left, no whole answer came */
    NGX_TOOLGATE_EXCHANGE_UNREADABLE   /* an answer that is not taken */
} ngx_toolgate_exchange_outcome_e;

typedef struct {
    ngx_toolgate_transfer_t          transfer;
    ngx_toolgate_guard_t             guard;
    ngx_pool_t                      *pool;
    ngx_log_t                       *log;
    ngx_toolgate_client_conf_t      *conf;
    ngx_toolgate_client_request_t   *request;
    struct curl_slist               *headers;     /* in the pool, for all attempts */
    char                            *target;
    char                            *ca_file;     /* NULL: the system's */
    char                            *user_agent;
    ngx_msec_t                       started;
    u_char                          *body;
    size_t                           body_len;
    size_t                           body_cap;
    size_t                           head_len;
    ngx_event_t                     *silence;     /* of a streamed call, or NULL */
    ngx_chain_t                     *chain;       /* of the body, what is left and */
    size_t                           chain_used;  /* how much of its first buffer */
    const char                      *unreadable;  /* why, static */
    unsigned                         no_memory:1;
    unsigned                         chunked:1;   /* the answer's framing */
    unsigned                         farewell:1;  /* TLS peer said that it closes */
    unsigned                         gzip:1;      /* is asked for and decoded */
    unsigned                         headed:1;    /* the stream was told the head */
    unsigned                         paused:1;    /* the stream makes it wait */
    char                             error[CURL_ERROR_SIZE];
} ngx_toolgate_exchange_t;


/* Makes what all attempts share. NULL, or why this request cannot be sent. */
const char *ngx_toolgate_exchange_prepare(ngx_toolgate_exchange_t *exchange,
    ngx_pool_t *pool, ngx_log_t *log, ngx_toolgate_client_conf_t *conf,
    ngx_toolgate_client_request_t *request);

/* Sets an attempt going; done is called as ngx_toolgate_curl.h says. left is the
 * time that the whole call still has. NULL, or why it could not begin. */
const char *ngx_toolgate_exchange_start(ngx_toolgate_exchange_t *exchange,
    const tg_addr_t *addr, ngx_msec_t left, ngx_uint_t fresh,
    ngx_toolgate_transfer_done_pt done, void *data);

/* Curl's callbacks for a line of the head, for bytes of the body, and for whatever
 * happens: that one looks how TLS was closed. */
size_t ngx_toolgate_exchange_on_head(char *line, size_t size, size_t count,
    void *data);
size_t ngx_toolgate_exchange_on_body(char *bytes, size_t size, size_t count,
    void *data);

int ngx_toolgate_exchange_on_progress(void *data, curl_off_t down_total,
    curl_off_t down, curl_off_t up_total, curl_off_t up);

/* ngx_toolgate_stream.c: a request body from a chain, and an answer that is handed
 * over: set up in a handle, told that a head is whole, let go on after a pause. */
CURLcode ngx_toolgate_stream_body(ngx_toolgate_exchange_t *exchange, CURL *easy);
CURLcode ngx_toolgate_stream_answer(ngx_toolgate_exchange_t *exchange, CURL *easy);
ngx_int_t ngx_toolgate_stream_head(ngx_toolgate_exchange_t *exchange);
void ngx_toolgate_stream_resume(ngx_toolgate_exchange_t *exchange);

/* Bytes have moved: the silence that is waited for begins anew. */
void ngx_toolgate_stream_moved(ngx_toolgate_exchange_t *exchange);

/* A copy of curl's text in the pool, with a NUL behind it. */
ngx_int_t ngx_toolgate_exchange_copy(ngx_pool_t *pool, const char *text,
    ngx_str_t *copy);

/* How a finished attempt ended; *detail is static text. */
ngx_toolgate_exchange_outcome_e ngx_toolgate_exchange_outcome(
    ngx_toolgate_exchange_t *exchange, CURLcode rc, const char **detail);

/* Copies facts of a finished attempt; the body only when it came whole. */
ngx_int_t ngx_toolgate_exchange_facts(ngx_toolgate_exchange_t *exchange,
    ngx_uint_t whole, ngx_msec_t call_started,
    ngx_toolgate_client_result_t *result);

/* An address as text in pool. */
ngx_int_t ngx_toolgate_exchange_address(ngx_pool_t *pool, const tg_addr_t *addr,
    ngx_str_t *text);

/* Gives the handle back, whatever state it is in. */
void ngx_toolgate_exchange_stop(ngx_toolgate_exchange_t *exchange,
    ngx_uint_t keep);

#endif /* NGX_TOOLGATE_EXCHANGE_H */
