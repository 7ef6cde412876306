/*
 * Responses in Redis: what each has said, what was asked, and which one was before it.
 * What is in their texts is not looked at here. All keys of an account carry the same
 * hash tag; nobody reaches a response of others by its id.
 */

#ifndef NGX_HTTP_TOOLGATE_RESPONSE_STORE_H
#define NGX_HTTP_TOOLGATE_RESPONSE_STORE_H

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_toolgate_redis.h"


#define NGX_HTTP_TOOLGATE_RESPONSE_SLICE  (256 * 1024)   /* of an input, at once */

/* Whose response. An account may be empty: the project's own. */
typedef struct {
    ngx_str_t       project;
    ngx_str_t       account;
    ngx_str_t       response;
} ngx_http_toolgate_response_key_t;

/* What is kept of one. */
typedef struct {
    ngx_str_t       object;       /* JSON, as the API shows it */
    const char     *status;
    ngx_str_t       previous;     /* id of the one before it, or empty */
    ngx_str_t       added;        /* messages of the model, for those that follow */
    unsigned        answers:1;    /* its input begins with the answer to a call */
    unsigned        there:1;      /* it is kept already, unless it was deleted since:
                                     object, status and added are new */
    /* Of a long input the memory, which the store takes and gives back; input lies in
     * it. Of a short one data is NULL. */
    ngx_str_t       input;
    u_char         *data;
    size_t          size;
} ngx_http_toolgate_response_save_t;

typedef enum {
    NGX_HTTP_TOOLGATE_RESPONSE_OK = 0,
    NGX_HTTP_TOOLGATE_RESPONSE_NONE,      /* there is no such response */
    NGX_HTTP_TOOLGATE_RESPONSE_LIVE,      /* it is not whole yet */
    NGX_HTTP_TOOLGATE_RESPONSE_BROKEN,    /* one before it is gone */
    NGX_HTTP_TOOLGATE_RESPONSE_AWAY       /* the store did not answer */
} ngx_http_toolgate_response_state_e;

/* Texts live inside done. */
typedef struct {
    ngx_http_toolgate_response_state_e   state;
    ngx_str_t                            text;        /* what was asked for */
    redisReply                         **parts;       /* of a chain: input and what was
                                                         added in turn, newest first */
    ngx_uint_t                           part_count;
} ngx_http_toolgate_response_answer_t;

typedef void (*ngx_http_toolgate_response_done_pt)(void *data,
    ngx_http_toolgate_response_answer_t *answer);


/* Keeps a response for retention seconds. Nobody waits: everything is copied, and when
 * Redis does not take it that is one line in the log until it does again. */
void ngx_http_toolgate_response_save(ngx_toolgate_redis_conf_t *redis,
    ngx_http_toolgate_response_key_t *key, time_t retention,
    ngx_http_toolgate_response_save_t *save);

/*
 * Each of these asks once; done is called once, from the event loop, unless pool is
 * destroyed before. NGX_ERROR: out of memory, and no callback.
 */

/* The object. OK, NONE or AWAY. */
ngx_int_t ngx_http_toolgate_response_get(ngx_pool_t *pool, ngx_log_t *log,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_response_key_t *key,
    ngx_http_toolgate_response_done_pt done, void *data);

/* The input as it was sent. OK, NONE, LIVE or AWAY. */
ngx_int_t ngx_http_toolgate_response_input(ngx_pool_t *pool, ngx_log_t *log,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_response_key_t *key,
    ngx_http_toolgate_response_done_pt done, void *data);

/* Deletes it with its input. OK, NONE or AWAY. */
ngx_int_t ngx_http_toolgate_response_delete(ngx_pool_t *pool, ngx_log_t *log,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_response_key_t *key,
    ngx_http_toolgate_response_done_pt done, void *data);

/* What was said up to this one, at most so many bytes; it is kept for retention seconds
 * from now on. All states. */
ngx_int_t ngx_http_toolgate_response_chain(ngx_pool_t *pool, ngx_log_t *log,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_response_key_t *key,
    time_t retention, size_t bytes, ngx_http_toolgate_response_done_pt done,
    void *data);

#endif /* NGX_HTTP_TOOLGATE_RESPONSE_STORE_H */
