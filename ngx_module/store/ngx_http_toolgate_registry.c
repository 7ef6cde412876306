/*
 * The registry's course: asking the store what has changed, taking it in, telling
 * those who wait for it. What an object is good for is _registry_build.c's job,
 * and writing is _registry_write.c's.
 *
 * A question is IDLE, WAITING for its time (two are at least a pause apart) or
 * ASKED. Who comes while one is asked waits for the next: what was written before
 * somebody asked is seen by the answer.
 */

#include "ngx_http_toolgate_registry_internal.h"

#include "ngx_toolgate_scripts.h"


typedef struct {
    ngx_queue_t                          queue;
    ngx_http_toolgate_registry_done_pt   done;
    void                                *data;
} ngx_http_toolgate_waiter_t;


static void ngx_http_toolgate_registry_poll(ngx_event_t *ev);
static void ngx_http_toolgate_registry_due(ngx_event_t *ev);
static void ngx_http_toolgate_registry_ask(ngx_http_toolgate_registry_t *reg);
static void ngx_http_toolgate_registry_send(ngx_http_toolgate_registry_t *reg);
static void ngx_http_toolgate_registry_answer(void *data, redisReply *reply);
static ngx_int_t ngx_http_toolgate_registry_take(
    ngx_http_toolgate_registry_t *reg, redisReply *reply);
static void ngx_http_toolgate_registry_ended(ngx_http_toolgate_registry_t *reg,
    ngx_uint_t up);
static void ngx_http_toolgate_waiter_cleanup(void *data);


ngx_http_toolgate_registry_t  ngx_http_toolgate_the_registry;


ngx_int_t
ngx_http_toolgate_registry_init_worker(ngx_cycle_t *cycle)
{
    u_char                        *p;
    size_t                         len;
    ngx_uint_t                     i;
    ngx_http_toolgate_registry_t  *reg = &ngx_http_toolgate_the_registry;

    static const char *const  names[NGX_HTTP_TOOLGATE_REGISTRY_KEYS] = {
        "{cp}:state", "{cp}:objects", "{cp}:changes", "{cp}:names",
        "{cp}:counts", "{cp}:versions"
    };

    ngx_memzero(reg, sizeof(ngx_http_toolgate_registry_t));
    reg->conf = ngx_http_cycle_get_module_main_conf(cycle,
                                                    ngx_http_toolgate_module);
    reg->log = cycle->log;

    if (reg->conf->redis == NULL) {
        return NGX_OK;
    }

    reg->pool = ngx_create_pool(NGX_DEFAULT_POOL_SIZE, cycle->log);
    if (reg->pool == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < NGX_HTTP_TOOLGATE_REGISTRY_KEYS; i++) {
        len = reg->conf->redis->prefix.len + ngx_strlen(names[i]);

        p = ngx_pnalloc(reg->pool, len);
        if (p == NULL) {
            return NGX_ERROR;
        }

        reg->keys[i].data = p;
        reg->keys[i].len = len;
        p = ngx_cpymem(p, reg->conf->redis->prefix.data,
                       reg->conf->redis->prefix.len);
        ngx_memcpy(p, names[i], ngx_strlen(names[i]));
    }

    ngx_rbtree_init(&reg->by_id, &reg->by_id_sentinel, ngx_str_rbtree_insert_value);
    ngx_rbtree_init(&reg->by_unique, &reg->by_unique_sentinel,
                    ngx_str_rbtree_insert_value);
    ngx_queue_init(&reg->waiting);
    ngx_queue_init(&reg->next);
    ngx_queue_init(&reg->projects);

    reg->poll.handler = ngx_http_toolgate_registry_poll;
    reg->poll.data = reg;
    reg->poll.log = cycle->log;
    reg->poll.cancelable = 1;

    reg->due.handler = ngx_http_toolgate_registry_due;
    reg->due.data = reg;
    reg->due.log = cycle->log;   /* not cancelable: requests wait for it */

    ngx_add_timer(&reg->poll, 1);

    return NGX_OK;
}


void
ngx_http_toolgate_registry_exit_worker(ngx_cycle_t *cycle)
{
    ngx_http_toolgate_registry_t  *reg = &ngx_http_toolgate_the_registry;

    if (reg->pool == NULL) {
        return;
    }

    if (reg->ticket) {
        ngx_toolgate_redis_drop(reg->ticket);
        reg->ticket = NULL;
    }

    ngx_http_toolgate_registry_clear(reg);
    ngx_destroy_pool(reg->pool);
    reg->pool = NULL;
}


ngx_uint_t
ngx_http_toolgate_registry_on(void)
{
    return ngx_http_toolgate_the_registry.pool != NULL;
}


static void
ngx_http_toolgate_registry_poll(ngx_event_t *ev)
{
    ngx_http_toolgate_registry_t  *reg = ev->data;

    /* switches hold also for runs that an ending worker still has; without any left
     * nothing may keep it, least of all a store that does not answer */

    if (ngx_exiting && reg->state == NGX_HTTP_TOOLGATE_REGISTRY_IDLE
        && ngx_event_no_timers_left() == NGX_OK)
    {
        return;
    }

    ngx_http_toolgate_registry_ask(reg);
    ngx_add_timer(&reg->poll, NGX_HTTP_TOOLGATE_REGISTRY_POLL_MS);
}


ngx_int_t
ngx_http_toolgate_registry_refresh(ngx_pool_t *pool,
    ngx_http_toolgate_registry_done_pt done, void *data)
{
    ngx_pool_cleanup_t            *cln;
    ngx_http_toolgate_waiter_t    *waiter;
    ngx_http_toolgate_registry_t  *reg = &ngx_http_toolgate_the_registry;

    if (reg->pool == NULL) {
        return NGX_ERROR;
    }

    cln = ngx_pool_cleanup_add(pool, sizeof(ngx_http_toolgate_waiter_t));
    if (cln == NULL) {
        return NGX_ERROR;
    }

    waiter = cln->data;
    waiter->done = done;
    waiter->data = data;
    cln->handler = ngx_http_toolgate_waiter_cleanup;

    ngx_queue_insert_tail(&reg->next, &waiter->queue);
    ngx_http_toolgate_registry_ask(reg);

    return NGX_OK;
}


static void
ngx_http_toolgate_waiter_cleanup(void *data)
{
    ngx_http_toolgate_waiter_t  *waiter = data;

    if (waiter->done) {
        ngx_queue_remove(&waiter->queue);
    }
}


static void
ngx_http_toolgate_registry_ask(ngx_http_toolgate_registry_t *reg)
{
    ngx_msec_int_t  rest;

    if (reg->state != NGX_HTTP_TOOLGATE_REGISTRY_IDLE) {
        return;
    }

    rest = (ngx_msec_int_t) (reg->asked_at + NGX_HTTP_TOOLGATE_REGISTRY_PAUSE_MS
                             - ngx_current_msec);

    if (rest > 0 && rest <= NGX_HTTP_TOOLGATE_REGISTRY_PAUSE_MS) {
        reg->state = NGX_HTTP_TOOLGATE_REGISTRY_WAITING;
        ngx_add_timer(&reg->due, (ngx_msec_t) rest);
        return;
    }

    ngx_http_toolgate_registry_send(reg);
}


static void
ngx_http_toolgate_registry_due(ngx_event_t *ev)
{
    ngx_http_toolgate_registry_t  *reg = ev->data;

    if (reg->state == NGX_HTTP_TOOLGATE_REGISTRY_ASKED) {
        ngx_http_toolgate_registry_ended(reg, 0);
        return;
    }

    ngx_http_toolgate_registry_send(reg);
}


static void
ngx_http_toolgate_registry_send(ngx_http_toolgate_registry_t *reg)
{
    u_char      change[NGX_INT64_LEN], count[NGX_INT64_LEN], bytes[NGX_INT64_LEN];
    ngx_str_t   argv[7];
    ngx_uint_t  i;

    for (i = 0; i < 3; i++) {
        argv[i] = reg->keys[i];
    }

    argv[3].data = change;
    argv[3].len = ngx_sprintf(change, "%uL", reg->change) - change;
    argv[4].data = count;
    argv[4].len = ngx_sprintf(count, "%d", NGX_HTTP_TOOLGATE_REGISTRY_COUNT)
                  - count;
    argv[5].data = bytes;
    argv[5].len = ngx_sprintf(bytes, "%d", NGX_HTTP_TOOLGATE_REGISTRY_BYTES)
                  - bytes;

    argv[6].data = reg->begun;
    argv[6].len = reg->begun_len;

    /* those who came until now are answered by this question */

    ngx_queue_add(&reg->waiting, &reg->next);
    ngx_queue_init(&reg->next);

    reg->state = NGX_HTTP_TOOLGATE_REGISTRY_ASKED;
    reg->asked_at = ngx_current_msec;
    reg->ticket = ngx_toolgate_redis_script(reg->conf->redis, reg->log,
                                            &ngx_toolgate_script_objects_changes,
                                            3, 7, argv,
                                            ngx_http_toolgate_registry_answer, reg);

    /* no memory; who waits may still be inside the call that asks */

    if (reg->ticket == NULL) {
        ngx_add_timer(&reg->due, 1);
    }
}


static void
ngx_http_toolgate_registry_answer(void *data, redisReply *reply)
{
    ngx_http_toolgate_registry_t *reg = data;

    ngx_int_t  rc;

    reg->ticket = NULL;
    rc = ngx_http_toolgate_registry_take(reg, reply);

    if (rc == NGX_AGAIN) {
        /* more has changed than one answer holds */
        ngx_http_toolgate_registry_send(reg);
        return;
    }

    ngx_http_toolgate_registry_ended(reg, rc == NGX_OK);
}


/* NGX_OK: all is taken in; NGX_AGAIN: there is more; NGX_ERROR: no answer. */
static ngx_int_t
ngx_http_toolgate_registry_take(ngx_http_toolgate_registry_t *reg,
    redisReply *reply)
{
    size_t        i;
    ngx_str_t     name, text;
    redisReply  **part;

    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY || reply->elements < 3) {

        if (reply && reply->type == REDIS_REPLY_ERROR) {
            ngx_log_error(NGX_LOG_ERR, reg->log, 0,
                          "toolgate: objects cannot be read: %s", reply->str);
        }

        return NGX_ERROR;
    }

    part = reply->element;

    if (part[0]->type != REDIS_REPLY_INTEGER || part[1]->type != REDIS_REPLY_INTEGER
        || part[2]->type != REDIS_REPLY_STRING
        || part[2]->len > sizeof(reg->begun))
    {
        return NGX_ERROR;
    }

    ngx_memcpy(reg->begun, part[2]->str, part[2]->len);
    reg->begun_len = part[2]->len;

    if (part[1]->integer < 0) {
        ngx_log_error(NGX_LOG_WARN, reg->log, 0,
                      "toolgate: the store was set back: all objects are read "
                      "again");
        ngx_http_toolgate_registry_clear(reg);
        reg->change = 0;
        return NGX_AGAIN;
    }

    for (i = 3; i + 1 < reply->elements; i += 2) {
        if (part[i]->type != REDIS_REPLY_STRING
            || part[i + 1]->type != REDIS_REPLY_STRING)
        {
            continue;
        }

        name.data = (u_char *) part[i]->str;
        name.len = part[i]->len;
        text.data = (u_char *) part[i + 1]->str;
        text.len = part[i + 1]->len;

        ngx_http_toolgate_registry_apply(reg, &name, &text);
    }

    reg->change = (uint64_t) part[1]->integer;
    reg->loaded = 1;

    return part[1]->integer < part[0]->integer ? NGX_AGAIN : NGX_OK;
}


static void
ngx_http_toolgate_registry_ended(ngx_http_toolgate_registry_t *reg, ngx_uint_t up)
{
    ngx_queue_t                         told, *q;
    ngx_http_toolgate_waiter_t         *waiter;
    ngx_http_toolgate_registry_done_pt  done;

    reg->state = NGX_HTTP_TOOLGATE_REGISTRY_IDLE;

    ngx_queue_init(&told);
    ngx_queue_add(&told, &reg->waiting);
    ngx_queue_init(&reg->waiting);

    while (!ngx_queue_empty(&told)) {
        q = ngx_queue_head(&told);
        ngx_queue_remove(q);

        waiter = ngx_queue_data(q, ngx_http_toolgate_waiter_t, queue);
        done = waiter->done;
        waiter->done = NULL;

        done(waiter->data, up);
    }

    if (!ngx_queue_empty(&reg->next)) {
        ngx_http_toolgate_registry_ask(reg);
    }
}
