/*
 * Local counters in a shared-memory zone: what ngx_toolgate_counters.c falls
 * back on. They know nothing of Redis.
 */

#ifndef NGX_TOOLGATE_COUNTERS_ZONE_H
#define NGX_TOOLGATE_COUNTERS_ZONE_H

#include "ngx_toolgate_counters.h"


#define NGX_TOOLGATE_COUNTERS_ZONE_MIN_PAGES  8
#define NGX_TOOLGATE_COUNTERS_EVICT_MAX       32     /* for one new counter */
#define NGX_TOOLGATE_COUNTERS_FULL_LOG_MS     60000

/* Whether calls go past the store, for all workers. */
typedef struct {
    ngx_atomic_t             away;
    volatile ngx_msec_t      failed_at;
} ngx_toolgate_counters_mode_t;


/* Takes by the rule of core/tg_window.h. When there is no room even after
 * evictions the call is refused: a cap that is not kept is none. */
void ngx_toolgate_counters_zone_take(ngx_shm_zone_t *zone, ngx_log_t *log,
    ngx_toolgate_counter_t *counter, ngx_toolgate_counter_result_t *result);

ngx_toolgate_counters_mode_t *ngx_toolgate_counters_zone_mode(
    ngx_shm_zone_t *zone);

/* The place of a pointer in the zone for the limits that live beside the counters;
 * NULL in it at first. Both allocate from the zone's slab pool. */
void **ngx_toolgate_counters_zone_limits(ngx_shm_zone_t *zone);

#endif /* NGX_TOOLGATE_COUNTERS_ZONE_H */
