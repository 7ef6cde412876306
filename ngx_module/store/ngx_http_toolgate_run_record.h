/*
 * Steps of runs in Redis, as the JSON that the API shows. All keys of an account carry
 * its project and name in one hash tag, so that a cluster keeps them together and
 * nobody reaches a run of others by its id.
 */

#ifndef NGX_HTTP_TOOLGATE_RUN_RECORD_H
#define NGX_HTTP_TOOLGATE_RUN_RECORD_H

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_toolgate_redis.h"


#define NGX_HTTP_TOOLGATE_RETENTION_S      2592000     /* 30 days */
#define NGX_HTTP_TOOLGATE_RETENTION_MAX_S  315360000   /* 10 years */
#define NGX_HTTP_TOOLGATE_RECORD_PAGE_MAX  (1024 * 1024)   /* bytes of steps */
#define NGX_HTTP_TOOLGATE_RECORD_APPEND_MAX  1000      /* steps at once */

/* Whose run. An account may be empty: the project's own. */
typedef struct {
    ngx_str_t       project;
    ngx_str_t       account;
    ngx_str_t       run;
} ngx_http_toolgate_run_key_t;

typedef enum {
    NGX_HTTP_TOOLGATE_PAGE_READ = 0,
    NGX_HTTP_TOOLGATE_PAGE_NO_RUN,
    NGX_HTTP_TOOLGATE_PAGE_NO_STEP,      /* the one to begin after */
    NGX_HTTP_TOOLGATE_PAGE_AWAY          /* the store did not answer */
} ngx_http_toolgate_page_state_e;

typedef struct {
    ngx_http_toolgate_page_state_e   state;
    ngx_uint_t                       count;
    redisReply                     **steps;      /* strings; live inside done */
    unsigned                         more:1;
} ngx_http_toolgate_page_t;

typedef void (*ngx_http_toolgate_page_done_pt)(void *data,
    ngx_http_toolgate_page_t *page);


/*
 * Adds steps (1..NGX_HTTP_TOOLGATE_RECORD_APPEND_MAX) to a run and keeps it for
 * retention seconds from now. Nobody waits: everything is copied, and when Redis
 * does not take it that is one line in the log until it does again. redis lives as
 * long as the worker.
 */
void ngx_http_toolgate_run_record_append(ngx_toolgate_redis_conf_t *redis,
    ngx_http_toolgate_run_key_t *key, time_t retention, ngx_str_t *steps,
    ngx_uint_t count);

/*
 * Reads at most limit steps after the one of this id (empty: from the first).
 * done is called once, from the event loop, unless pool is destroyed before.
 * NGX_ERROR: out of memory, and no callback.
 */
ngx_int_t ngx_http_toolgate_run_record_page(ngx_pool_t *pool, ngx_log_t *log,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_run_key_t *key,
    ngx_str_t *after, ngx_uint_t limit, ngx_http_toolgate_page_done_pt done,
    void *data);

#endif /* NGX_HTTP_TOOLGATE_RUN_RECORD_H */
