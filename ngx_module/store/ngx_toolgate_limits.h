/*
 * Request limits: all limits of one request are counted together or not at all. In
 * Redis by one Lua script on the store's clock, in the shared-memory zone by the
 * same rule (core/tg_rate.h) when Redis is absent or away (on_failure=local).
 * It knows keys and numbers, no requests.
 */

#ifndef NGX_TOOLGATE_LIMITS_H
#define NGX_TOOLGATE_LIMITS_H

#include "ngx_toolgate_counters.h"


#define NGX_TOOLGATE_LIMITS_MAX      8        /* of one request */
#define NGX_TOOLGATE_LIMIT_KEY_MAX   128

typedef struct {
    ngx_str_t                    key;         /* without the prefix; one hash tag */
    uint32_t                     limit;       /* 1..TG_RATE_LIMIT_MAX */
    ngx_msec_t                   window;
    unsigned                     dry_run:1;   /* counted, but refuses nothing */

    /* how it stands, once it was counted */
    unsigned                     refused:1;
    ngx_uint_t                   remaining;
    ngx_msec_t                   wait;        /* 0 unless refused */
    ngx_msec_t                   reset;       /* until nothing is counted */
} ngx_toolgate_limit_t;

typedef struct ngx_toolgate_limits_call_s  ngx_toolgate_limits_call_t;

/* From the event loop, once, with allowed and mode set. */
typedef void (*ngx_toolgate_limits_done_pt)(ngx_toolgate_limits_call_t *call);

struct ngx_toolgate_limits_call_s {
    ngx_toolgate_redis_conf_t   *redis;       /* NULL: local */
    ngx_shm_zone_t              *zone;        /* NULL: none to count in */
    ngx_log_t                   *log;
    ngx_toolgate_limit_t        *limits;
    ngx_uint_t                   n;           /* 1..NGX_TOOLGATE_LIMITS_MAX */
    ngx_toolgate_limits_done_pt  done;
    void                        *data;

    ngx_toolgate_redis_ticket_t *ticket;      /* NULL: nothing is under way */
    ngx_toolgate_counted_e       mode;
    unsigned                     allowed:1;
};


/*
 * Takes one from each limit if all of them allow it. NGX_OK: decided, done is not
 * called. NGX_AGAIN: done will be called, within the time-out of Redis; call and
 * what it names stay where they are until then, or until _cancel. NGX_ERROR: out of
 * memory.
 */
ngx_int_t ngx_toolgate_limits_take(ngx_toolgate_limits_call_t *call);

/* done will not be called any more. */
void ngx_toolgate_limits_cancel(ngx_toolgate_limits_call_t *call);

/* _zone.c: takes in the zone; sets all that is said of the limits, and allowed.
 * NGX_DECLINED when there is no room for one of them: nothing was counted. */
ngx_int_t ngx_toolgate_limits_zone_take(ngx_toolgate_limits_call_t *call);

#endif /* NGX_TOOLGATE_LIMITS_H */
