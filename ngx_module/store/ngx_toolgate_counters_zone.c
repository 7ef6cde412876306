/*
 * Local counters in a shared-memory zone: a red-black tree by key and a queue
 * by last use. A counter is one slab allocation, sized by its limit and key,
 * both bounded. Expired counters go two at a time with every new one; when the
 * zone is full the least recently used goes, expired or not.
 */

#include "ngx_toolgate_counters_zone.h"

#include "tg_window.h"


typedef struct {
    ngx_rbtree_t                   tree;
    ngx_rbtree_node_t              sentinel;
    ngx_queue_t                    used;          /* most recent first */
    ngx_toolgate_counters_mode_t   mode;
    ngx_msec_t                     full_told_at;
    ngx_uint_t                     full_told;
    void                          *limits;
} ngx_toolgate_counters_shared_t;

typedef struct {
    ngx_toolgate_counters_shared_t  *sh;
    ngx_slab_pool_t                 *slab;
} ngx_toolgate_counters_ctx_t;

typedef struct {
    ngx_rbtree_node_t                node;        /* key: hash */
    ngx_queue_t                      queue;
    ngx_msec_t                       expires;
    ngx_str_t                        key;         /* after the window */
    tg_window_t                      window;
} ngx_toolgate_counters_node_t;


static ngx_int_t ngx_toolgate_counters_zone_init(ngx_shm_zone_t *zone,
    void *data);
static int ngx_toolgate_counters_compare(ngx_uint_t hash, ngx_str_t *key,
    ngx_rbtree_node_t *node);
static void ngx_toolgate_counters_insert(ngx_rbtree_node_t *temp,
    ngx_rbtree_node_t *node, ngx_rbtree_node_t *sentinel);
static ngx_toolgate_counters_node_t *ngx_toolgate_counters_find(
    ngx_toolgate_counters_ctx_t *ctx, ngx_uint_t hash, ngx_str_t *key);
static ngx_toolgate_counters_node_t *ngx_toolgate_counters_get(
    ngx_toolgate_counters_ctx_t *ctx, ngx_log_t *log,
    ngx_toolgate_counter_t *counter);
static ngx_toolgate_counters_node_t *ngx_toolgate_counters_alloc(
    ngx_toolgate_counters_ctx_t *ctx, ngx_log_t *log, size_t size);
static void ngx_toolgate_counters_expire(ngx_toolgate_counters_ctx_t *ctx);
static void ngx_toolgate_counters_free(ngx_toolgate_counters_ctx_t *ctx,
    ngx_toolgate_counters_node_t *node);
static void ngx_toolgate_counters_full(ngx_toolgate_counters_ctx_t *ctx,
    ngx_log_t *log);


ngx_int_t
ngx_toolgate_counters_zone(ngx_conf_t *cf, ngx_shm_zone_t *zone)
{
    ngx_toolgate_counters_ctx_t  *ctx;

    if (zone->shm.size < NGX_TOOLGATE_COUNTERS_ZONE_MIN_PAGES * ngx_pagesize) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "zone \"%V\" is smaller than %uz bytes",
                           &zone->shm.name,
                           NGX_TOOLGATE_COUNTERS_ZONE_MIN_PAGES * ngx_pagesize);
        return NGX_ERROR;
    }

    ctx = ngx_pcalloc(cf->pool, sizeof(ngx_toolgate_counters_ctx_t));
    if (ctx == NULL) {
        return NGX_ERROR;
    }

    zone->init = ngx_toolgate_counters_zone_init;
    zone->data = ctx;

    return NGX_OK;
}


static ngx_int_t
ngx_toolgate_counters_zone_init(ngx_shm_zone_t *zone, void *data)
{
    size_t                        len;
    ngx_toolgate_counters_ctx_t  *ctx, *before;

    ctx = zone->data;
    before = data;

    if (before) {
        *ctx = *before;
        return NGX_OK;
    }

    ctx->slab = (ngx_slab_pool_t *) zone->shm.addr;

    if (zone->shm.exists) {
        ctx->sh = ctx->slab->data;
        return NGX_OK;
    }

    ctx->sh = ngx_slab_calloc(ctx->slab,
                              sizeof(ngx_toolgate_counters_shared_t));
    if (ctx->sh == NULL) {
        return NGX_ERROR;
    }

    ctx->slab->data = ctx->sh;

    ngx_rbtree_init(&ctx->sh->tree, &ctx->sh->sentinel,
                    ngx_toolgate_counters_insert);
    ngx_queue_init(&ctx->sh->used);

    len = sizeof(" in toolgate zone \"\"") + zone->shm.name.len;

    ctx->slab->log_ctx = ngx_slab_alloc(ctx->slab, len);
    if (ctx->slab->log_ctx == NULL) {
        return NGX_ERROR;
    }

    ngx_sprintf(ctx->slab->log_ctx, " in toolgate zone \"%V\"%Z",
                &zone->shm.name);

    /* a full zone is told here, once, and not by every allocation */
    ctx->slab->log_nomem = 0;

    return NGX_OK;
}


ngx_toolgate_counters_mode_t *
ngx_toolgate_counters_zone_mode(ngx_shm_zone_t *zone)
{
    ngx_toolgate_counters_ctx_t  *ctx;

    ctx = zone->data;

    return &ctx->sh->mode;
}


void **
ngx_toolgate_counters_zone_limits(ngx_shm_zone_t *zone)
{
    ngx_toolgate_counters_ctx_t  *ctx;

    ctx = zone->data;

    return &ctx->sh->limits;
}


void
ngx_toolgate_counters_zone_take(ngx_shm_zone_t *zone, ngx_log_t *log,
    ngx_toolgate_counter_t *counter, ngx_toolgate_counter_result_t *result)
{
    uint64_t                       now, window, newest;
    tg_window_verdict_t            verdict = { 0 };
    ngx_toolgate_counters_ctx_t   *ctx;
    ngx_toolgate_counters_node_t  *node;

    ctx = zone->data;
    window = (uint64_t) counter->window_s * 1000;

    ngx_shmtx_lock(&ctx->slab->mutex);

    node = ngx_toolgate_counters_get(ctx, log, counter);

    if (node == NULL) {
        ngx_shmtx_unlock(&ctx->slab->mutex);

        result->passed = 0;
        result->remaining = 0;
        result->retry_after_s = 1;
        result->mode = NGX_TOOLGATE_COUNTED_CLOSED;
        return;
    }

    /* the clock is monotone, but cached by each worker: the one that is a
     * little behind must not make takes of the others older */
    now = ngx_current_msec;
    newest = tg_window_newest(&node->window);
    now = ngx_max(now, newest);

    for (result->passed = 0; result->passed < counter->takes; result->passed++) {
        verdict = tg_window_take(&node->window, (uint32_t) counter->limit, window,
                                 now);
        if (!verdict.allowed) {
            break;
        }
    }

    node->expires = (ngx_msec_t) (tg_window_newest(&node->window) + window);

    ngx_shmtx_unlock(&ctx->slab->mutex);

    result->remaining = verdict.remaining;
    result->retry_after_s = verdict.allowed
                            ? 0 : tg_window_retry_after(verdict.wait, 1000);
    result->mode = NGX_TOOLGATE_COUNTED_LOCAL;
}


/* finds or makes the counter; under the lock */
static ngx_toolgate_counters_node_t *
ngx_toolgate_counters_get(ngx_toolgate_counters_ctx_t *ctx, ngx_log_t *log,
    ngx_toolgate_counter_t *counter)
{
    size_t                         size;
    ngx_uint_t                     hash;
    ngx_toolgate_counters_node_t  *node, *found;

    hash = ngx_crc32_short(counter->key.data, counter->key.len);
    found = ngx_toolgate_counters_find(ctx, hash, &counter->key);

    if (found) {
        ngx_queue_remove(&found->queue);
        ngx_queue_insert_head(&ctx->sh->used, &found->queue);

        if (found->window.cap >= counter->limit) {
            return found;
        }
    }

    ngx_toolgate_counters_expire(ctx);

    size = offsetof(ngx_toolgate_counters_node_t, window)
           + tg_window_size((uint32_t) counter->limit) + counter->key.len;

    node = ngx_toolgate_counters_alloc(ctx, log, size);
    if (node == NULL) {
        return NULL;
    }

    node->node.key = hash;
    node->expires = ngx_current_msec;
    node->key.len = counter->key.len;
    node->key.data = (u_char *) node + size - counter->key.len;
    ngx_memcpy(node->key.data, counter->key.data, counter->key.len);
    tg_window_init(&node->window, (uint32_t) counter->limit);

    /* the limit was raised: what was taken stays taken. Looked up again, as
     * making room may have cost the old one its place */
    if (found) {
        found = ngx_toolgate_counters_find(ctx, hash, &counter->key);
    }

    if (found) {
        tg_window_copy(&node->window, &found->window);
        ngx_toolgate_counters_free(ctx, found);
    }

    /* another worker may run this module from another file, elsewhere in its
     * memory: while an old one leaves after an upgrade */
    ctx->sh->tree.insert = ngx_toolgate_counters_insert;
    ngx_rbtree_insert(&ctx->sh->tree, &node->node);
    ngx_queue_insert_head(&ctx->sh->used, &node->queue);

    return node;
}


static ngx_toolgate_counters_node_t *
ngx_toolgate_counters_alloc(ngx_toolgate_counters_ctx_t *ctx, ngx_log_t *log,
    size_t size)
{
    ngx_uint_t                     i;
    ngx_queue_t                   *q;
    ngx_toolgate_counters_node_t  *node;

    for (i = 0; i <= NGX_TOOLGATE_COUNTERS_EVICT_MAX; i++) {
        node = ngx_slab_alloc_locked(ctx->slab, size);
        if (node) {
            return node;
        }

        if (ngx_queue_empty(&ctx->sh->used)) {
            break;
        }

        ngx_toolgate_counters_full(ctx, log);

        q = ngx_queue_last(&ctx->sh->used);
        ngx_toolgate_counters_free(ctx, ngx_queue_data(q,
                                          ngx_toolgate_counters_node_t, queue));
    }

    ngx_toolgate_counters_full(ctx, log);

    return NULL;
}


/* at most two, so that no single call pays for an idle night */
static void
ngx_toolgate_counters_expire(ngx_toolgate_counters_ctx_t *ctx)
{
    ngx_uint_t                     i;
    ngx_queue_t                   *q;
    ngx_toolgate_counters_node_t  *node;

    for (i = 0; i < 2 && !ngx_queue_empty(&ctx->sh->used); i++) {
        q = ngx_queue_last(&ctx->sh->used);
        node = ngx_queue_data(q, ngx_toolgate_counters_node_t, queue);

        if ((ngx_msec_int_t) (node->expires - ngx_current_msec) > 0) {
            return;
        }

        ngx_toolgate_counters_free(ctx, node);
    }
}


static void
ngx_toolgate_counters_free(ngx_toolgate_counters_ctx_t *ctx,
    ngx_toolgate_counters_node_t *node)
{
    ngx_queue_remove(&node->queue);
    ngx_rbtree_delete(&ctx->sh->tree, &node->node);
    ngx_slab_free_locked(ctx->slab, node);
}


static void
ngx_toolgate_counters_full(ngx_toolgate_counters_ctx_t *ctx, ngx_log_t *log)
{
    ngx_toolgate_counters_shared_t  *sh;

    sh = ctx->sh;

    if (sh->full_told
        && ngx_current_msec - sh->full_told_at
           < NGX_TOOLGATE_COUNTERS_FULL_LOG_MS)
    {
        return;
    }

    sh->full_told = 1;
    sh->full_told_at = ngx_current_msec;

    ngx_log_error(NGX_LOG_ERR, log, 0, "toolgate: no room for a counter%s: "
                  "the least recently used ones are forgotten; the zone "
                  "should be larger", ctx->slab->log_ctx);
}


static int
ngx_toolgate_counters_compare(ngx_uint_t hash, ngx_str_t *key,
    ngx_rbtree_node_t *node)
{
    ngx_toolgate_counters_node_t  *n;

    if (hash != node->key) {
        return hash < node->key ? -1 : 1;
    }

    n = (ngx_toolgate_counters_node_t *) node;

    return (int) ngx_memn2cmp(key->data, n->key.data, key->len, n->key.len);
}


static void
ngx_toolgate_counters_insert(ngx_rbtree_node_t *temp, ngx_rbtree_node_t *node,
    ngx_rbtree_node_t *sentinel)
{
    ngx_rbtree_node_t             **p;
    ngx_toolgate_counters_node_t   *n;

    n = (ngx_toolgate_counters_node_t *) node;

    for ( ;; ) {
        p = ngx_toolgate_counters_compare(node->key, &n->key, temp) < 0
            ? &temp->left : &temp->right;

        if (*p == sentinel) {
            break;
        }

        temp = *p;
    }

    *p = node;
    node->parent = temp;
    node->left = sentinel;
    node->right = sentinel;
    ngx_rbt_red(node);
}


static ngx_toolgate_counters_node_t *
ngx_toolgate_counters_find(ngx_toolgate_counters_ctx_t *ctx, ngx_uint_t hash,
    ngx_str_t *key)
{
    int                 rc;
    ngx_rbtree_node_t  *node;

    node = ctx->sh->tree.root;

    while (node != &ctx->sh->sentinel) {
        rc = ngx_toolgate_counters_compare(hash, key, node);

        if (rc == 0) {
            return (ngx_toolgate_counters_node_t *) node;
        }

        node = rc < 0 ? node->left : node->right;
    }

    return NULL;
}
