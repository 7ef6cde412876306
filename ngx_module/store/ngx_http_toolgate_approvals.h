/*
 * Approvals in Redis: asked for by runs, decided by people, used once. All keys of an
 * account carry its project and name in one hash tag, so that nobody reaches an
 * approval of others by its id. What an approval is for is not looked at here.
 */

#ifndef NGX_HTTP_TOOLGATE_APPROVALS_H
#define NGX_HTTP_TOOLGATE_APPROVALS_H

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_http_toolgate_run_record.h"
#include "ngx_toolgate_redis.h"

#include "tg_ids.h"
#include "tg_json.h"


#define NGX_HTTP_TOOLGATE_APPROVALS_MAX       16             /* asked for at once */
#define NGX_HTTP_TOOLGATE_APPROVAL_BYTES_MAX  (256 * 1024)   /* of what it is for */
#define NGX_HTTP_TOOLGATE_APPROVALS_PAGE      100            /* of a list */
#define NGX_HTTP_TOOLGATE_APPROVALS_PAGE_MAX  (1024 * 1024)  /* bytes of it */

/* One that a run asks for. document is a JSON object. */
typedef struct {
    char            id[TG_ID_MAX_LEN];
    char            binding[TG_JSON_SHA256_HEX_LEN + 1];
    ngx_str_t       document;
} ngx_http_toolgate_approval_ask_t;

/* An approval as it stands; texts live inside done. */
typedef struct {
    ngx_str_t       id;
    ngx_str_t       status;       /* pending approved rejected expired used */
    ngx_str_t       created;      /* seconds */
    ngx_str_t       expires;      /* milliseconds */
    ngx_str_t       decided;      /* seconds, or "" */
    ngx_str_t       reason;
    ngx_str_t       document;
} ngx_http_toolgate_approval_t;

typedef enum {
    NGX_HTTP_TOOLGATE_APPROVAL_OK = 0,
    NGX_HTTP_TOOLGATE_APPROVAL_NONE,       /* there is no such approval */
    NGX_HTTP_TOOLGATE_APPROVAL_DECIDED,    /* by somebody before */
    NGX_HTTP_TOOLGATE_APPROVAL_EXPIRED,
    NGX_HTTP_TOOLGATE_APPROVAL_AWAY        /* the store did not answer */
} ngx_http_toolgate_approval_state_e;

typedef struct {
    ngx_http_toolgate_approval_state_e   state;
    ngx_http_toolgate_approval_t         approval;    /* but for NONE and AWAY */
    ngx_str_t                            run;
    unsigned                             go_on:1;     /* the run may be resumed */
} ngx_http_toolgate_approval_answer_t;

typedef void (*ngx_http_toolgate_approval_done_pt)(void *data,
    ngx_http_toolgate_approval_answer_t *answer);

typedef struct {
    ngx_http_toolgate_approval_state_e   state;       /* OK, NONE ("after"), AWAY */
    ngx_uint_t                           count;
    ngx_http_toolgate_approval_t        *approvals;
    unsigned                             more:1;
} ngx_http_toolgate_approvals_page_t;

typedef void (*ngx_http_toolgate_approvals_page_pt)(void *data,
    ngx_http_toolgate_approvals_page_t *page);

/* What came of asking, in the order of the question; lives inside done. */
typedef struct {
    ngx_uint_t                           up;          /* 0: nobody was asked */
    time_t                               created;
    int64_t                              expires;     /* ms, of those that wait */
    ngx_str_t                            status[NGX_HTTP_TOOLGATE_APPROVALS_MAX];
    ngx_str_t                            reason[NGX_HTTP_TOOLGATE_APPROVALS_MAX];
} ngx_http_toolgate_approvals_asked_t;

typedef void (*ngx_http_toolgate_approvals_asked_pt)(void *data,
    ngx_http_toolgate_approvals_asked_t *asked);


/*
 * Each of these asks once; done is called once, from the event loop, unless pool is
 * destroyed before. NGX_ERROR: out of memory, and no callback.
 */

/* Asks for n approvals (1 to NGX_HTTP_TOOLGATE_APPROVALS_MAX) of key->run, or takes what
 * came of asking before; see conf/redis/approval_ask.lua. */
ngx_int_t ngx_http_toolgate_approvals_ask(ngx_pool_t *pool, ngx_log_t *log,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_run_key_t *key,
    ngx_msec_t ttl, time_t retention, ngx_http_toolgate_approval_ask_t *asks,
    ngx_uint_t n, ngx_http_toolgate_approvals_asked_pt done, void *data);

/* Decides one of the account (key->run is not looked at), or only reads it: decision is
 * "approved", "rejected" or "". */
ngx_int_t ngx_http_toolgate_approvals_decide(ngx_pool_t *pool, ngx_log_t *log,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_run_key_t *key,
    ngx_str_t *id, const char *decision, tg_str_t reason,
    ngx_http_toolgate_approval_done_pt done, void *data);

/* The pending ones of the account, at most limit (1 to
 * NGX_HTTP_TOOLGATE_APPROVALS_PAGE) after this id (empty: from the
 * first). */
ngx_int_t ngx_http_toolgate_approvals_list(ngx_pool_t *pool, ngx_log_t *log,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_run_key_t *key,
    ngx_str_t *after, ngx_uint_t limit, ngx_http_toolgate_approvals_page_pt done,
    void *data);

#endif /* NGX_HTTP_TOOLGATE_APPROVALS_H */
