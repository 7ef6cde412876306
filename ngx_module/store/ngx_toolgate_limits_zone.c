/*
 * Request limits in a shared-memory zone, beside the counters that have it too: a
 * red-black tree by key and a queue by last use. One limit is one slab allocation of
 * at most 1 KB. All limits together have at most half of the zone, so that many
 * keys of requests cannot push out the counters of tools; past that the least
 * recently used one goes, expired or not. Knows nothing of Redis.
 */

#include "ngx_toolgate_limits.h"
#include "ngx_toolgate_counters_zone.h"

#include "tg_rate.h"


#define NGX_TOOLGATE_LIMITS_SHARE        2       /* of the zone: one part in this */
#define NGX_TOOLGATE_LIMITS_FULL_LOG_MS  60000


typedef struct {
    ngx_rbtree_t                 tree;
    ngx_rbtree_node_t            sentinel;
    ngx_queue_t                  used;           /* most recent first */
    size_t                       size;           /* of all nodes */
    ngx_msec_t                   full_told_at;
    ngx_uint_t                   full_told;
} ngx_toolgate_limits_shared_t;

typedef struct {
    ngx_str_node_t               str;            /* the key's text lies at the end */
    ngx_queue_t                  queue;
    ngx_msec_t                   expires;
    uint32_t                     size;
    uint32_t                     held;           /* by the call under way */
    tg_rate_t                    rate;
} ngx_toolgate_limits_node_t;


static ngx_toolgate_limits_shared_t *ngx_toolgate_limits_shared(
    ngx_shm_zone_t *zone, ngx_slab_pool_t *slab);
static ngx_toolgate_limits_node_t *ngx_toolgate_limits_get(
    ngx_toolgate_limits_shared_t *sh, ngx_shm_zone_t *zone, ngx_log_t *log,
    ngx_toolgate_limit_t *limit);
static ngx_toolgate_limits_node_t *ngx_toolgate_limits_alloc(
    ngx_toolgate_limits_shared_t *sh, ngx_shm_zone_t *zone, ngx_log_t *log,
    size_t size);
static ngx_int_t ngx_toolgate_limits_evict(ngx_toolgate_limits_shared_t *sh,
    ngx_slab_pool_t *slab, ngx_uint_t expired_only);
static void ngx_toolgate_limits_full(ngx_toolgate_limits_shared_t *sh,
    ngx_shm_zone_t *zone, ngx_log_t *log);


ngx_int_t
ngx_toolgate_limits_zone_take(ngx_toolgate_limits_call_t *call)
{
    uint64_t                       now[NGX_TOOLGATE_LIMITS_MAX];
    ngx_int_t                      rc;
    ngx_uint_t                     i, n;
    ngx_slab_pool_t               *slab;
    tg_rate_state_t                state;
    ngx_toolgate_limit_t          *limit;
    ngx_toolgate_limits_node_t    *node[NGX_TOOLGATE_LIMITS_MAX];
    ngx_toolgate_limits_shared_t  *sh;

    slab = (ngx_slab_pool_t *) call->zone->shm.addr;
    rc = NGX_OK;

    ngx_shmtx_lock(&slab->mutex);

    sh = ngx_toolgate_limits_shared(call->zone, slab);
    call->allowed = 1;

    for (n = 0; n < call->n; n++) {
        limit = &call->limits[n];
        node[n] = sh ? ngx_toolgate_limits_get(sh, call->zone, call->log, limit)
                     : NULL;

        if (node[n] == NULL) {
            rc = NGX_DECLINED;
            break;
        }

        /* the clock is monotone, but cached by each worker: the one that is a
         * little behind must not make takes of the others older */

        now[n] = ngx_max(ngx_current_msec, tg_rate_newest(&node[n]->rate));

        state = tg_rate_look(&node[n]->rate, limit->limit, limit->window, now[n]);

        limit->remaining = state.remaining;
        limit->wait = (ngx_msec_t) state.wait;
        limit->reset = (ngx_msec_t) state.reset;
        limit->refused = state.wait > 0;

        if (limit->refused && !limit->dry_run) {
            call->allowed = 0;
        }
    }

    for (i = 0; i < n; i++) {
        limit = &call->limits[i];
        node[i]->held = 0;

        if (rc == NGX_OK && call->allowed && !limit->refused) {
            tg_rate_add(&node[i]->rate, limit->window, now[i]);

            node[i]->expires = (ngx_msec_t) now[i] + limit->window;
            limit->remaining--;
            limit->reset = limit->window;
        }
    }

    ngx_shmtx_unlock(&slab->mutex);

    return rc;
}


static ngx_toolgate_limits_shared_t *
ngx_toolgate_limits_shared(ngx_shm_zone_t *zone, ngx_slab_pool_t *slab)
{
    void                          **place;
    ngx_toolgate_limits_shared_t   *sh;

    place = ngx_toolgate_counters_zone_limits(zone);

    if (*place == NULL) {
        sh = ngx_slab_calloc_locked(slab, sizeof(ngx_toolgate_limits_shared_t));
        if (sh == NULL) {
            return NULL;
        }

        ngx_rbtree_init(&sh->tree, &sh->sentinel, ngx_str_rbtree_insert_value);
        ngx_queue_init(&sh->used);

        *place = sh;
    }

    return *place;
}


/* finds or makes the limit; under the lock */
static ngx_toolgate_limits_node_t *
ngx_toolgate_limits_get(ngx_toolgate_limits_shared_t *sh, ngx_shm_zone_t *zone,
    ngx_log_t *log, ngx_toolgate_limit_t *limit)
{
    size_t                       size;
    uint32_t                     hash;
    ngx_toolgate_limits_node_t  *node;

    hash = ngx_crc32_short(limit->key.data, limit->key.len);
    node = (ngx_toolgate_limits_node_t *) ngx_str_rbtree_lookup(&sh->tree,
                                                                &limit->key, hash);

    if (node) {
        ngx_queue_remove(&node->queue);

    } else {
        size = offsetof(ngx_toolgate_limits_node_t, rate)
               + tg_rate_size(limit->limit) + limit->key.len;

        node = ngx_toolgate_limits_alloc(sh, zone, log, size);
        if (node == NULL) {
            return NULL;
        }

        node->str.node.key = hash;
        node->str.str.len = limit->key.len;
        node->str.str.data = (u_char *) node + size - limit->key.len;
        ngx_memcpy(node->str.str.data, limit->key.data, limit->key.len);

        node->size = (uint32_t) size;
        node->expires = ngx_current_msec;
        tg_rate_init(&node->rate, limit->limit);

        ngx_rbtree_insert(&sh->tree, &node->str.node);
        sh->size += size;
    }

    node->held = 1;
    ngx_queue_insert_head(&sh->used, &node->queue);

    return node;
}


static ngx_toolgate_limits_node_t *
ngx_toolgate_limits_alloc(ngx_toolgate_limits_shared_t *sh, ngx_shm_zone_t *zone,
    ngx_log_t *log, size_t size)
{
    ngx_uint_t                   i;
    ngx_slab_pool_t             *slab;
    ngx_toolgate_limits_node_t  *node;

    slab = (ngx_slab_pool_t *) zone->shm.addr;

    /* at most two, so that no single request pays for an idle night */

    for (i = 0; i < 2; i++) {
        if (ngx_toolgate_limits_evict(sh, slab, 1) != NGX_OK) {
            break;
        }
    }

    while (sh->size + size > zone->shm.size / NGX_TOOLGATE_LIMITS_SHARE) {
        ngx_toolgate_limits_full(sh, zone, log);

        if (ngx_toolgate_limits_evict(sh, slab, 0) != NGX_OK) {
            return NULL;
        }
    }

    for (i = 0; i <= NGX_TOOLGATE_COUNTERS_EVICT_MAX; i++) {
        node = ngx_slab_alloc_locked(slab, size);
        if (node) {
            return node;
        }

        ngx_toolgate_limits_full(sh, zone, log);

        if (ngx_toolgate_limits_evict(sh, slab, 0) != NGX_OK) {
            break;
        }
    }

    return NULL;
}


/* Frees the least recently used one; NGX_DECLINED when there is none to free. */
static ngx_int_t
ngx_toolgate_limits_evict(ngx_toolgate_limits_shared_t *sh,
    ngx_slab_pool_t *slab, ngx_uint_t expired_only)
{
    ngx_queue_t                 *q;
    ngx_toolgate_limits_node_t  *node;

    if (ngx_queue_empty(&sh->used)) {
        return NGX_DECLINED;
    }

    q = ngx_queue_last(&sh->used);
    node = ngx_queue_data(q, ngx_toolgate_limits_node_t, queue);

    if (node->held
        || (expired_only
            && (ngx_msec_int_t) (node->expires - ngx_current_msec) > 0))
    {
        return NGX_DECLINED;
    }

    ngx_queue_remove(q);
    ngx_rbtree_delete(&sh->tree, &node->str.node);
    sh->size -= node->size;
    ngx_slab_free_locked(slab, node);

    return NGX_OK;
}


static void
ngx_toolgate_limits_full(ngx_toolgate_limits_shared_t *sh, ngx_shm_zone_t *zone,
    ngx_log_t *log)
{
    if (sh->full_told
        && ngx_current_msec - sh->full_told_at < NGX_TOOLGATE_LIMITS_FULL_LOG_MS)
    {
        return;
    }

    sh->full_told = 1;
    sh->full_told_at = ngx_current_msec;

    ngx_log_error(NGX_LOG_ERR, log, 0, "toolgate: no room for a request limit in "
                  "zone \"%V\": the least recently used ones are forgotten; the "
                  "zone should be larger", &zone->shm.name);
}
