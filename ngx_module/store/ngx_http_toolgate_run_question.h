/*
 * How the store's files ask Redis about a run. For ngx_http_toolgate_run_*.c of this
 * folder only.
 */

#ifndef NGX_HTTP_TOOLGATE_RUN_QUESTION_H
#define NGX_HTTP_TOOLGATE_RUN_QUESTION_H

#include "ngx_http_toolgate_module.h"
#include "ngx_http_toolgate_run_store.h"
#include "ngx_toolgate_scripts.h"


#define NGX_HTTP_TOOLGATE_RUN_KEYS       6
#define NGX_HTTP_TOOLGATE_RUN_ARGS_MAX                                        \
    (NGX_HTTP_TOOLGATE_RUN_KEYS + 8 + 4 * NGX_HTTP_TOOLGATE_RUN_FIELDS_MAX)
#define NGX_HTTP_TOOLGATE_NUMBER_LEN     (NGX_INT64_LEN + 1)


/* The arguments of a script while they are put together. */
typedef struct {
    ngx_toolgate_redis_conf_t  *redis;
    ngx_uint_t                  keys;
    ngx_uint_t                  n;
    ngx_uint_t                  numbers;
    ngx_str_t                   args[NGX_HTTP_TOOLGATE_RUN_ARGS_MAX];
    u_char                      names[NGX_HTTP_TOOLGATE_RUN_KEYS]
                                     [NGX_HTTP_TOOLGATE_STORE_KEY_MAX];
    u_char                      digits[8][NGX_HTTP_TOOLGATE_NUMBER_LEN];
} ngx_http_toolgate_run_args_t;


/* Keys come first, then everything else, in the order in which the script has them.
 * What is referred to lives until the question is asked. */
void ngx_http_toolgate_run_args_begin(ngx_http_toolgate_run_args_t *a,
    ngx_toolgate_redis_conf_t *redis);
void ngx_http_toolgate_run_args_key(ngx_http_toolgate_run_args_t *a, char letter,
    ngx_http_toolgate_run_key_t *key, ngx_str_t *id, const char *suffix);

/* The index of a session's runs, or (empty) of all of the account. */
void ngx_http_toolgate_run_args_list(ngx_http_toolgate_run_args_t *a,
    ngx_http_toolgate_run_key_t *key, ngx_str_t *session);

/* The four keys of a run. */
void ngx_http_toolgate_run_args_run(ngx_http_toolgate_run_args_t *a,
    ngx_http_toolgate_run_key_t *key, ngx_str_t *invocation);

void ngx_http_toolgate_run_args_text(ngx_http_toolgate_run_args_t *a,
    ngx_str_t text);
void ngx_http_toolgate_run_args_word(ngx_http_toolgate_run_args_t *a,
    const char *word);
void ngx_http_toolgate_run_args_number(ngx_http_toolgate_run_args_t *a,
    int64_t number);

/* This worker, as the driver of runs. */
void ngx_http_toolgate_run_args_owner(ngx_http_toolgate_run_args_t *a);
void ngx_http_toolgate_run_args_fields(ngx_http_toolgate_run_args_t *a,
    ngx_http_toolgate_field_t *fields, ngx_uint_t n);

/* The callback of a question for whose answer nobody waits; data is the script. */
void ngx_http_toolgate_run_heard(void *data, redisReply *reply);

/* Asks; done is called once, unless pool goes before. Without a pool it is called in
 * any case; without done nobody waits for the answer. */
ngx_int_t ngx_http_toolgate_run_ask(ngx_pool_t *pool,
    ngx_http_toolgate_run_args_t *a, const ngx_toolgate_script_t *script,
    ngx_http_toolgate_run_done_pt done, void *data);

#endif /* NGX_HTTP_TOOLGATE_RUN_QUESTION_H */
