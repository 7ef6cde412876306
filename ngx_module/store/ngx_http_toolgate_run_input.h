/*
 * The rest of an input that is too big for one command: only for the file that makes
 * runs in the store.
 */

#ifndef NGX_HTTP_TOOLGATE_RUN_INPUT_H
#define NGX_HTTP_TOOLGATE_RUN_INPUT_H

#include "ngx_http_toolgate_run_store.h"


typedef struct ngx_http_toolgate_run_input_s  ngx_http_toolgate_run_input_t;


/* Keeps a copy of it until it can be sent. done, when there is one, is called when all
 * of it is in the store, or the run could not be made, unless pool is destroyed before.
 * NULL: out of memory. */
ngx_http_toolgate_run_input_t *ngx_http_toolgate_run_input_new(ngx_pool_t *pool,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_run_key_t *key,
    ngx_str_t *rest, ngx_http_toolgate_run_done_pt done, void *data);

/* Sends it, soon; it goes when it is sent. */
void ngx_http_toolgate_run_input_start(ngx_http_toolgate_run_input_t *input);

/* The same when the store has made the run (data is the input), as a callback. */
void ngx_http_toolgate_run_input_created(void *data,
    ngx_http_toolgate_run_answer_t *answer);

#endif /* NGX_HTTP_TOOLGATE_RUN_INPUT_H */
