/*
 * Runs in Redis: the document of each, who drives it and until when, its events, and
 * the index of those that somebody may have to take over. What the fields of a
 * document mean is the run's business. All keys of an account carry the same hash
 * tag; nobody reaches a run of others by its id.
 */

#ifndef NGX_HTTP_TOOLGATE_RUN_STORE_H
#define NGX_HTTP_TOOLGATE_RUN_STORE_H

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_http_toolgate_run_record.h"
#include "ngx_toolgate_redis.h"


#define NGX_HTTP_TOOLGATE_RUN_LEASE_MS       10000
#define NGX_HTTP_TOOLGATE_RUN_EVENTS_MAX     20000    /* of a run */
#define NGX_HTTP_TOOLGATE_RUN_INVOCATION_S   86400    /* remembered after the end */
#define NGX_HTTP_TOOLGATE_RUN_FIELDS_MAX     64       /* of one write */
#define NGX_HTTP_TOOLGATE_RUN_INPUT_SLICE    (256 * 1024)
#define NGX_HTTP_TOOLGATE_RUN_LIST_LOOK      1000     /* runs looked at for a page */
#define NGX_HTTP_TOOLGATE_OWNER_LEN          16       /* of a worker's token */

/* prefix, "x:{", labels of at most 64 bytes, ids, with what divides them */
#define NGX_HTTP_TOOLGATE_STORE_KEY_MAX                                       \
    (NGX_TOOLGATE_REDIS_PREFIX_MAX + 4 * 64 + sizeof("x:{/}::messages"))

typedef struct {
    ngx_str_t   name;
    ngx_str_t   value;
} ngx_http_toolgate_field_t;

/* An event as the store numbers it: members is JSON that begins with a comma, or
 * is empty. */
typedef struct {
    const char  *type;
    ngx_str_t    members;
} ngx_http_toolgate_run_news_t;

typedef enum {
    NGX_HTTP_TOOLGATE_SAVE_INTENT = 0,   /* before a side effect */
    NGX_HTTP_TOOLGATE_SAVE_OUTCOME,      /* after it */
    NGX_HTTP_TOOLGATE_SAVE_CHECKPOINT,
    NGX_HTTP_TOOLGATE_SAVE_EVENTS,
    NGX_HTTP_TOOLGATE_SAVE_RENEW,
    NGX_HTTP_TOOLGATE_SAVE_PAUSE,
    NGX_HTTP_TOOLGATE_SAVE_END
} ngx_http_toolgate_save_e;

/* What is written at once; see conf/redis/run_save.lua. */
typedef struct {
    ngx_http_toolgate_save_e       what;
    const char                    *status;        /* of a pause or an end */
    ngx_msec_t                     wait;          /* of a pause; 0: fields say it */
    ngx_http_toolgate_field_t     *fields;
    ngx_uint_t                     field_count;
    ngx_http_toolgate_run_news_t  *news;
    ngx_uint_t                     news_count;
} ngx_http_toolgate_save_t;

/* A run that is to be made. */
typedef struct {
    ngx_str_t                      fingerprint;   /* of the request */
    ngx_str_t                      session;       /* or empty */
    ngx_uint_t                     queued;        /* nobody drives it yet */
    ngx_str_t                      input;
    ngx_http_toolgate_field_t     *fields;
    ngx_uint_t                     field_count;
} ngx_http_toolgate_new_run_t;

typedef enum {
    NGX_HTTP_TOOLGATE_ANSWER_OK = 0,
    NGX_HTTP_TOOLGATE_ANSWER_SAME,       /* of a create: the invocation is known */
    NGX_HTTP_TOOLGATE_ANSWER_CONFLICT,   /* … with another request */
    NGX_HTTP_TOOLGATE_ANSWER_GONE,
    NGX_HTTP_TOOLGATE_ANSWER_LOST,       /* somebody else drives it */
    NGX_HTTP_TOOLGATE_ANSWER_FULL,       /* too many events */
    NGX_HTTP_TOOLGATE_ANSWER_ENDED,      /* text is the status */
    NGX_HTTP_TOOLGATE_ANSWER_WAITING,    /* for its caller, until number (ms) */
    NGX_HTTP_TOOLGATE_ANSWER_HELD,       /* number: ms that are left of its lease */
    NGX_HTTP_TOOLGATE_ANSWER_FREE,
    NGX_HTTP_TOOLGATE_ANSWER_TAKEN,
    NGX_HTTP_TOOLGATE_ANSWER_AWAY        /* the store did not answer */
} ngx_http_toolgate_answer_e;

/* Lives inside done. */
typedef struct {
    ngx_http_toolgate_answer_e   answer;
    ngx_str_t                    text;       /* an id or a status */
    int64_t                      number;
    ngx_str_t                    input;      /* data NULL: none */
    redisReply                 **pairs;      /* fields and values, strings */
    ngx_uint_t                   pair_count; /* of pairs */
} ngx_http_toolgate_run_answer_t;

typedef void (*ngx_http_toolgate_run_done_pt)(void *data,
    ngx_http_toolgate_run_answer_t *answer);


/* This worker's token: who drives a run. Made at its start. */
ngx_int_t ngx_http_toolgate_run_store_init_worker(ngx_cycle_t *cycle);
extern u_char  ngx_http_toolgate_owner[NGX_HTTP_TOOLGATE_OWNER_LEN];

/* Writes "<prefix><letter>:{project/account}:<id><suffix>" to buf. */
ngx_str_t ngx_http_toolgate_store_key(ngx_toolgate_redis_conf_t *redis, char letter,
    ngx_http_toolgate_run_key_t *key, ngx_str_t *id, const char *suffix,
    u_char buf[NGX_HTTP_TOOLGATE_STORE_KEY_MAX]);

/*
 * Each of these asks once; done is called once, from the event loop, unless pool is
 * destroyed before. With done NULL nobody waits, and pool is not used. invocation:
 * the caller's, empty when it gave none. NGX_ERROR: out of memory, no callback.
 */

/* Makes a run of key->run, owned by this worker unless queued. OK, SAME or CONFLICT
 * (text: that run's id), AWAY. Input over one slice follows in slices of its own. */
ngx_int_t ngx_http_toolgate_run_store_create(ngx_pool_t *pool,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_run_key_t *key,
    ngx_str_t *invocation, time_t retention, ngx_http_toolgate_new_run_t *run,
    ngx_http_toolgate_run_done_pt done, void *data);

/* OK, GONE, LOST, FULL, ENDED or AWAY. Without a pool done is called in any case. */
ngx_int_t ngx_http_toolgate_run_store_save(ngx_pool_t *pool,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_run_key_t *key,
    ngx_str_t *invocation, time_t retention, ngx_http_toolgate_save_t *save,
    ngx_http_toolgate_run_done_pt done, void *data);

/* mode "read", "look" or "take". ENDED, WAITING, HELD, FREE, TAKEN, GONE, AWAY; pairs
 * with "read" and when TAKEN. */
ngx_int_t ngx_http_toolgate_run_store_open(ngx_pool_t *pool,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_run_key_t *key,
    const char *mode, time_t retention, ngx_http_toolgate_run_done_pt done,
    void *data);

/* Ends a run as "cancelled" or "superseded": OK (text: the token of who drove it, or
 * empty), ENDED, GONE, AWAY. Tells the driver. */
ngx_int_t ngx_http_toolgate_run_store_cancel(ngx_pool_t *pool,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_run_key_t *key,
    ngx_str_t *invocation, const char *status, time_t retention,
    ngx_http_toolgate_run_done_pt done, void *data);

/* Removes a run that has not begun, with its invocation id: nobody waits. */
ngx_int_t ngx_http_toolgate_run_store_forget(ngx_toolgate_redis_conf_t *redis,
    ngx_http_toolgate_run_key_t *key, ngx_str_t *invocation, ngx_str_t *session);

/* The run that an invocation id of the account stands for: OK (text: its id), GONE,
 * AWAY. */
ngx_int_t ngx_http_toolgate_run_store_find(ngx_pool_t *pool,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_run_key_t *key,
    ngx_str_t *invocation, ngx_http_toolgate_run_done_pt done, void *data);

/* A page of runs, of a session or (empty) of the whole account: reply is that of conf/redis/run_list.lua, or NULL. */
ngx_int_t ngx_http_toolgate_run_store_list(ngx_pool_t *pool,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_run_key_t *key,
    ngx_str_t *after, ngx_str_t *session, ngx_uint_t limit, ngx_str_t *fields,
    ngx_uint_t field_count, ngx_toolgate_redis_done_pt done, void *data);

/* Has some node look at the run after so many ms; it does not have to be exact. */
void ngx_http_toolgate_run_store_watch(ngx_toolgate_redis_conf_t *redis,
    ngx_http_toolgate_run_key_t *key, ngx_msec_t after);
/* Nobody has to look at it any more. */
void ngx_http_toolgate_run_store_unwatch(ngx_toolgate_redis_conf_t *redis,
    ngx_http_toolgate_run_key_t *key);

/* A field of an answer; data NULL: it has none of this name. */
ngx_str_t ngx_http_toolgate_run_answer_field(ngx_http_toolgate_run_answer_t *answer,
    const char *name);

/* The name of the index of a session's runs, or (empty) of all of the account. */
ngx_str_t ngx_http_toolgate_run_list_key(ngx_toolgate_redis_conf_t *redis,
    ngx_http_toolgate_run_key_t *key, ngx_str_t *session,
    u_char buf[NGX_HTTP_TOOLGATE_STORE_KEY_MAX]);

/* The name of the list in which a worker hears which of its runs were ended. */
ngx_str_t ngx_http_toolgate_inbox_key(ngx_toolgate_redis_conf_t *redis,
    ngx_str_t *owner, u_char buf[NGX_HTTP_TOOLGATE_STORE_KEY_MAX]);

/* The name of the index of runs to look at. */
ngx_str_t ngx_http_toolgate_watch_key(ngx_toolgate_redis_conf_t *redis,
    u_char buf[NGX_HTTP_TOOLGATE_STORE_KEY_MAX]);

#endif /* NGX_HTTP_TOOLGATE_RUN_STORE_H */
