/*
 * What runs were about to do to the world, and what came of it, read from what was
 * written down of them. What an intent and an outcome say is the run's business.
 */

#ifndef NGX_HTTP_TOOLGATE_RUN_RECEIPTS_H
#define NGX_HTTP_TOOLGATE_RUN_RECEIPTS_H

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_http_toolgate_run_store.h"


#define NGX_HTTP_TOOLGATE_RECEIPTS_LOOK  1000     /* runs looked at for a page */

/* Of which runs, and which of their receipts. */
typedef struct {
    ngx_str_t    session;
    ngx_str_t    agent;         /* name or id */
    ngx_str_t    checkpoint;    /* or empty: all */
    ngx_uint_t   offset;
    ngx_uint_t   limit;
} ngx_http_toolgate_receipts_query_t;


/*
 * Of one run (key->run), or of all runs of a session when that is empty. reply is that
 * of conf/redis/run_receipts.lua, or NULL; done is called once, from the event loop,
 * unless pool is destroyed before. NGX_ERROR: out of memory, no callback.
 */
ngx_int_t ngx_http_toolgate_run_receipts(ngx_pool_t *pool,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_run_key_t *key,
    ngx_http_toolgate_receipts_query_t *query, ngx_toolgate_redis_done_pt done,
    void *data);

#endif /* NGX_HTTP_TOOLGATE_RUN_RECEIPTS_H */
