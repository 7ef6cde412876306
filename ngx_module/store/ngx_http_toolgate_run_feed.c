/*
 * The tick, its two questions, and handing out what they bring. Nothing is asked
 * while nobody follows and nothing is driven; at most one question of each kind is
 * under way.
 */

#include "ngx_http_toolgate_module.h"
#include "ngx_http_toolgate_run_feed.h"


static void ngx_http_toolgate_feed_wake(void);
static void ngx_http_toolgate_feed_tick(ngx_event_t *ev);
static void ngx_http_toolgate_feed_read(void);
static void ngx_http_toolgate_feed_events(void *data, redisReply *reply);
static ngx_uint_t ngx_http_toolgate_feed_stream(redisReply *stream);
static void ngx_http_toolgate_feed_event(ngx_str_t *name, redisReply *entry);
static void ngx_http_toolgate_feed_inbox(void);
static void ngx_http_toolgate_feed_ended(void *data, redisReply *reply);


static ngx_queue_t  ngx_http_toolgate_followers;
static ngx_queue_t  ngx_http_toolgate_driven;
static ngx_event_t  ngx_http_toolgate_feed_event_timer;
static ngx_uint_t   ngx_http_toolgate_feed_reading;
static ngx_uint_t   ngx_http_toolgate_feed_listening;
static ngx_uint_t   ngx_http_toolgate_feed_ticks;


ngx_int_t
ngx_http_toolgate_feed_init_worker(ngx_cycle_t *cycle)
{
    ngx_queue_init(&ngx_http_toolgate_followers);
    ngx_queue_init(&ngx_http_toolgate_driven);

    ngx_http_toolgate_feed_event_timer.handler = ngx_http_toolgate_feed_tick;
    ngx_http_toolgate_feed_event_timer.log = cycle->log;

    return NGX_OK;
}


void
ngx_http_toolgate_follow_open(ngx_http_toolgate_follow_t *follow,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_run_key_t *key,
    int64_t after, ngx_http_toolgate_follow_pt handler, void *data)
{
    follow->redis = redis;
    follow->after = after;
    follow->handler = handler;
    follow->data = data;
    follow->paused = 0;
    follow->name = ngx_http_toolgate_store_key(redis, 'r', key, &key->run, ":events",
                                               follow->bytes);
    follow->open = 1;

    ngx_queue_insert_tail(&ngx_http_toolgate_followers, &follow->queue);
    ngx_http_toolgate_feed_wake();
}


void
ngx_http_toolgate_follow_close(ngx_http_toolgate_follow_t *follow)
{
    if (follow->open) {
        follow->open = 0;
        ngx_queue_remove(&follow->queue);
    }
}


void
ngx_http_toolgate_driven_open(ngx_http_toolgate_driven_t *driven,
    ngx_toolgate_redis_conf_t *redis)
{
    driven->redis = redis;
    driven->open = 1;

    ngx_queue_insert_tail(&ngx_http_toolgate_driven, &driven->queue);
    ngx_http_toolgate_feed_wake();
}


void
ngx_http_toolgate_driven_close(ngx_http_toolgate_driven_t *driven)
{
    if (driven->open) {
        driven->open = 0;
        ngx_queue_remove(&driven->queue);
    }
}


static void
ngx_http_toolgate_feed_wake(void)
{
    ngx_event_t  *ev = &ngx_http_toolgate_feed_event_timer;

    if (ev->timer_set) {

        /* one that keeps an old worker takes the place of one that does not */

        if (!ev->cancelable || ngx_queue_empty(&ngx_http_toolgate_followers)) {
            return;
        }

        ngx_del_timer(ev);
    }

    /* who is followed keeps an old worker; what is driven has timers of its own */

    ev->cancelable = ngx_queue_empty(&ngx_http_toolgate_followers) ? 1 : 0;
    ngx_add_timer(ev, NGX_HTTP_TOOLGATE_FEED_TICK_MS);
}


static void
ngx_http_toolgate_feed_tick(ngx_event_t *ev)
{
    if (!ngx_queue_empty(&ngx_http_toolgate_followers)) {
        ngx_http_toolgate_feed_read();
        ngx_http_toolgate_feed_wake();
    }

    if (!ngx_queue_empty(&ngx_http_toolgate_driven)) {
        if (++ngx_http_toolgate_feed_ticks % NGX_HTTP_TOOLGATE_INBOX_TICKS == 0) {
            ngx_http_toolgate_feed_inbox();
        }

        ngx_http_toolgate_feed_wake();
    }
}


/* Those that were asked for last come first next time, when there are too many. */
static void
ngx_http_toolgate_feed_read(void)
{
    u_char                       ids[NGX_HTTP_TOOLGATE_FEED_RUNS][NGX_INT64_LEN];
    u_char                       count[NGX_INT_T_LEN];
    ngx_str_t                    args[4 + 2 * NGX_HTTP_TOOLGATE_FEED_RUNS];
    ngx_str_t                    names[NGX_HTTP_TOOLGATE_FEED_RUNS];
    ngx_str_t                    after[NGX_HTTP_TOOLGATE_FEED_RUNS];
    ngx_uint_t                   i, n;
    ngx_queue_t                 *q, *next;
    ngx_toolgate_redis_conf_t   *redis;
    ngx_http_toolgate_follow_t  *follow;

    if (ngx_http_toolgate_feed_reading) {
        return;
    }

    redis = NULL;
    n = 0;

    for (q = ngx_queue_head(&ngx_http_toolgate_followers), i = 0;
         q != ngx_queue_sentinel(&ngx_http_toolgate_followers)
         && n < NGX_HTTP_TOOLGATE_FEED_RUNS;
         q = next)
    {
        next = ngx_queue_next(q);
        follow = ngx_queue_data(q, ngx_http_toolgate_follow_t, queue);

        if (follow->paused) {
            continue;
        }

        redis = follow->redis;
        names[n] = follow->name;
        after[n].data = ids[n];
        after[n].len = ngx_sprintf(ids[n], "%L", follow->after) - ids[n];
        n++;
    }

    if (n == 0) {
        return;
    }

    if (n == NGX_HTTP_TOOLGATE_FEED_RUNS) {
        for (i = 0; i < n; i++) {
            q = ngx_queue_head(&ngx_http_toolgate_followers);
            ngx_queue_remove(q);
            ngx_queue_insert_tail(&ngx_http_toolgate_followers, q);
        }
    }

    ngx_str_set(&args[0], "XREAD");
    ngx_str_set(&args[1], "COUNT");
    args[2].data = count;
    args[2].len = ngx_sprintf(count, "%d", NGX_HTTP_TOOLGATE_FEED_EVENTS) - count;
    ngx_str_set(&args[3], "STREAMS");
    ngx_memcpy(&args[4], names, n * sizeof(ngx_str_t));
    ngx_memcpy(&args[4 + n], after, n * sizeof(ngx_str_t));

    if (ngx_toolgate_redis_command(redis, ngx_cycle->log, 4 + 2 * n, args,
                                   ngx_http_toolgate_feed_events, NULL))
    {
        ngx_http_toolgate_feed_reading = 1;
    }
}


/* [[name, [[id, [field, value]], …]], …], or nil when there is nothing new. */
static void
ngx_http_toolgate_feed_events(void *data, redisReply *reply)
{
    size_t      i;
    ngx_uint_t  more;

    ngx_http_toolgate_feed_reading = 0;
    more = 0;

    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY) {
        return;
    }

    for (i = 0; i < reply->elements; i++) {
        more |= ngx_http_toolgate_feed_stream(reply->element[i]);
    }

    /* somebody is behind by more than one answer */

    if (more) {
        ngx_http_toolgate_feed_read();
    }
}


static ngx_uint_t
ngx_http_toolgate_feed_stream(redisReply *stream)
{
    size_t       i;
    ngx_str_t    name;
    redisReply  *entries;

    if (stream->type != REDIS_REPLY_ARRAY || stream->elements != 2
        || stream->element[0]->type != REDIS_REPLY_STRING
        || stream->element[1]->type != REDIS_REPLY_ARRAY)
    {
        return 0;
    }

    name.data = (u_char *) stream->element[0]->str;
    name.len = (size_t) stream->element[0]->len;
    entries = stream->element[1];

    for (i = 0; i < entries->elements; i++) {
        ngx_http_toolgate_feed_event(&name, entries->element[i]);
    }

    return entries->elements == NGX_HTTP_TOOLGATE_FEED_EVENTS;
}


/* Whoever gets it may close himself and others: the list is begun anew each time. */
static void
ngx_http_toolgate_feed_event(ngx_str_t *name, redisReply *entry)
{
    int64_t                      seq;
    redisReply                  *pair;
    ngx_queue_t                 *q;
    ngx_http_toolgate_follow_t  *follow;

    if (entry->type != REDIS_REPLY_ARRAY || entry->elements != 2
        || entry->element[0]->type != REDIS_REPLY_STRING
        || entry->element[1]->type != REDIS_REPLY_ARRAY
        || entry->element[1]->elements != 2
        || entry->element[1]->element[1]->type != REDIS_REPLY_STRING)
    {
        return;
    }

    seq = strtoll(entry->element[0]->str, NULL, 10);
    pair = entry->element[1]->element[1];

again:

    for (q = ngx_queue_head(&ngx_http_toolgate_followers);
         q != ngx_queue_sentinel(&ngx_http_toolgate_followers);
         q = ngx_queue_next(q))
    {
        follow = ngx_queue_data(q, ngx_http_toolgate_follow_t, queue);

        /* one that was opened a moment ago may be behind what was asked for */

        if (follow->paused || follow->after + 1 != seq
            || follow->name.len != name->len
            || ngx_memcmp(follow->name.data, name->data, name->len) != 0)
        {
            continue;
        }

        follow->after = seq;
        follow->handler(follow->data, seq, (tg_str_t) { (size_t) pair->len,
                                                        pair->str });
        goto again;
    }
}


static void
ngx_http_toolgate_feed_inbox(void)
{
    u_char                       name[NGX_HTTP_TOOLGATE_STORE_KEY_MAX];
    u_char                       count[NGX_INT_T_LEN];
    ngx_str_t                    args[3], owner;
    ngx_http_toolgate_driven_t  *driven;

    if (ngx_http_toolgate_feed_listening) {
        return;
    }

    driven = ngx_queue_data(ngx_queue_head(&ngx_http_toolgate_driven),
                            ngx_http_toolgate_driven_t, queue);

    owner.data = ngx_http_toolgate_owner;
    owner.len = NGX_HTTP_TOOLGATE_OWNER_LEN;

    ngx_str_set(&args[0], "LPOP");
    args[1] = ngx_http_toolgate_inbox_key(driven->redis, &owner, name);
    args[2].data = count;
    args[2].len = ngx_sprintf(count, "%d", NGX_HTTP_TOOLGATE_INBOX_MAX) - count;

    if (ngx_toolgate_redis_command(driven->redis, ngx_cycle->log, 3, args,
                                   ngx_http_toolgate_feed_ended, NULL))
    {
        ngx_http_toolgate_feed_listening = 1;
    }
}


static void
ngx_http_toolgate_feed_ended(void *data, redisReply *reply)
{
    size_t                       i;
    ngx_queue_t                 *q;
    redisReply                  *id;
    ngx_http_toolgate_driven_t  *driven;

    ngx_http_toolgate_feed_listening = 0;

    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY) {
        return;
    }

    for (i = 0; i < reply->elements; i++) {
        id = reply->element[i];

        for (q = ngx_queue_head(&ngx_http_toolgate_driven);
             id->type == REDIS_REPLY_STRING
             && q != ngx_queue_sentinel(&ngx_http_toolgate_driven);
             q = ngx_queue_next(q))
        {
            driven = ngx_queue_data(q, ngx_http_toolgate_driven_t, queue);

            if (driven->run.len == (size_t) id->len
                && ngx_memcmp(driven->run.data, id->str, driven->run.len) == 0)
            {
                driven->ended(driven->data);
                break;
            }
        }
    }
}
