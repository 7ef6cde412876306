/*
 * Rolling-window counters: in Redis by one Lua script on the store's clock, in
 * the shared-memory zone when Redis is absent or away (on_failure=local). A
 * refused attempt is not counted and never lengthens the block.
 */

#ifndef NGX_TOOLGATE_COUNTERS_H
#define NGX_TOOLGATE_COUNTERS_H

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_toolgate_redis.h"


#define NGX_TOOLGATE_COUNTER_KEY_MAX   256
#define NGX_TOOLGATE_COUNTER_LIMIT_MAX 1000     /* of one window */
#define NGX_TOOLGATE_COUNTER_WINDOW_MAX_S  2678400    /* 31 days */

typedef enum {
    NGX_TOOLGATE_COUNTED_STORE = 0,
    NGX_TOOLGATE_COUNTED_LOCAL,
    NGX_TOOLGATE_COUNTED_OPEN,       /* not counted: let pass */
    NGX_TOOLGATE_COUNTED_CLOSED      /* not counted: refused */
} ngx_toolgate_counted_e;

typedef struct {
    ngx_uint_t               limit;          /* 1..NGX_TOOLGATE_COUNTER_LIMIT_MAX */
    ngx_uint_t               window_s;
    ngx_str_t                key;            /* without the prefix */
    ngx_uint_t               takes;          /* 1..NGX_TOOLGATE_COUNTER_LIMIT_MAX */
} ngx_toolgate_counter_t;

typedef struct {
    ngx_uint_t               passed;         /* of the takes */
    ngx_uint_t               remaining;
    ngx_uint_t               retry_after_s;  /* >= 1 when not all have passed */
    ngx_toolgate_counted_e   mode;
} ngx_toolgate_counter_result_t;

typedef struct ngx_toolgate_counter_call_s  ngx_toolgate_counter_call_t;

typedef void (*ngx_toolgate_counter_done_pt)(void *data,
    ngx_toolgate_counter_result_t *result);


/* Prepares a shared-memory zone for local counters ("toolgate_zone name size"):
 * sets zone->init and zone->data. The zone's slab pool is then theirs: its
 * ->data is taken. */
ngx_int_t ngx_toolgate_counters_zone(ngx_conf_t *cf, ngx_shm_zone_t *zone);

/*
 * Takes from the counter, as many as asked or as many as pass. redis may be NULL (none configured: local), zone
 * may be NULL (then on_failure=local is as open, logged once). done is called
 * once, from the event loop or from inside this call when the answer is local.
 * The call ends without a callback when pool is destroyed first. NGX_ERROR, and
 * no callback either, when memory is out or the counter out of its bounds.
 */
ngx_int_t ngx_toolgate_counter_take(ngx_pool_t *pool, ngx_log_t *log,
    ngx_toolgate_redis_conf_t *redis, ngx_shm_zone_t *zone,
    ngx_toolgate_counter_t *counter, ngx_toolgate_counter_done_pt done,
    void *data);

/* For whatever else counts in these places. What to say of a reply that could not
 * be used (NULL: none came); the text lives as long as the reply. */
void ngx_toolgate_counter_reason(redisReply *reply, ngx_str_t *reason);

/* Notes that Redis could not count, or could again: one line for each change. */
void ngx_toolgate_counter_away(ngx_log_t *log, ngx_toolgate_redis_conf_t *redis,
    ngx_shm_zone_t *zone, ngx_str_t *reason);
void ngx_toolgate_counter_back(ngx_log_t *log, ngx_toolgate_redis_conf_t *redis,
    ngx_shm_zone_t *zone);

#endif /* NGX_TOOLGATE_COUNTERS_H */
