/*
 * Outputs for a run that waits for its caller, and the way from a handed out call to
 * its run. What the outputs say is not looked at here.
 */

#ifndef NGX_HTTP_TOOLGATE_RUN_SUBMIT_H
#define NGX_HTTP_TOOLGATE_RUN_SUBMIT_H

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_http_toolgate_run_store.h"


typedef enum {
    NGX_HTTP_TOOLGATE_SUBMIT_OK = 0,
    NGX_HTTP_TOOLGATE_SUBMIT_SAME,      /* they were taken before */
    NGX_HTTP_TOOLGATE_SUBMIT_LATE,
    NGX_HTTP_TOOLGATE_SUBMIT_OTHER,     /* it does not wait for these */
    NGX_HTTP_TOOLGATE_SUBMIT_GONE,
    NGX_HTTP_TOOLGATE_SUBMIT_AWAY       /* the store did not answer */
} ngx_http_toolgate_submit_e;

/* after: the number of the last event before the run goes on. */
typedef void (*ngx_http_toolgate_submit_done_pt)(void *data,
    ngx_http_toolgate_submit_e state, int64_t after);

/* run: its id, empty when the call was not handed out; lives inside done. up is 0 when
 * the store did not answer. */
typedef void (*ngx_http_toolgate_call_run_pt)(void *data, ngx_str_t *run,
    ngx_uint_t up);


/*
 * Each of these asks once; done is called once, from the event loop, unless pool is
 * destroyed before. NGX_ERROR: out of memory, and no callback.
 */

/* Takes outcomes (1 to NGX_HTTP_TOOLGATE_RUN_FIELDS_MAX fields) for a run that waits
 * for required; digest says them all. See conf/redis/run_submit.lua. */
ngx_int_t ngx_http_toolgate_run_submit(ngx_pool_t *pool,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_run_key_t *key,
    ngx_str_t *digest, ngx_str_t *required, ngx_http_toolgate_field_t *outcomes,
    ngx_uint_t n, ngx_http_toolgate_submit_done_pt done, void *data);

/* Notes that a call of key->run is handed out, for so many seconds. Nobody waits; what
 * is sent on this worker's connection later arrives after it. */
void ngx_http_toolgate_call_note(ngx_toolgate_redis_conf_t *redis,
    ngx_http_toolgate_run_key_t *key, ngx_str_t *call, time_t seconds);

/* The run of a call that was handed out in the account (key->run is not looked at). */
ngx_int_t ngx_http_toolgate_call_run_find(ngx_pool_t *pool,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_run_key_t *key,
    ngx_str_t *call, ngx_http_toolgate_call_run_pt done, void *data);

#endif /* NGX_HTTP_TOOLGATE_RUN_SUBMIT_H */
