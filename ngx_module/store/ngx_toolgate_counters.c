/*
 * Rolling-window counters: asks Redis, and decides by on_failure when Redis
 * cannot say. Changes of that mode are told once for the whole zone, with some
 * quiet before the return, so that an outage is two lines however many workers
 * and calls meet it. The local counters are in ngx_toolgate_counters_zone.c.
 */

#include "ngx_toolgate_counters.h"
#include "ngx_toolgate_counters_zone.h"
#include "ngx_toolgate_scripts.h"


#define NGX_TOOLGATE_COUNTERS_QUIET_MS  3000
#define NGX_TOOLGATE_COUNTERS_REASON    64

/* "w:" and the hash tag's braces around the key */
#define NGX_TOOLGATE_COUNTERS_NAME_MAX                                        \
    (NGX_TOOLGATE_REDIS_PREFIX_MAX + 4 + NGX_TOOLGATE_COUNTER_KEY_MAX)


struct ngx_toolgate_counter_call_s {
    ngx_toolgate_redis_ticket_t    *ticket;      /* NULL: answered */
    ngx_toolgate_redis_conf_t      *redis;
    ngx_shm_zone_t                 *zone;
    ngx_log_t                      *log;
    ngx_toolgate_counter_t          counter;
    ngx_toolgate_counter_done_pt    done;
    void                           *data;
};


static ngx_int_t ngx_toolgate_counter_check(ngx_log_t *log,
    ngx_toolgate_counter_t *counter);
static ngx_int_t ngx_toolgate_counter_ask(ngx_toolgate_counter_call_t *call);
static void ngx_toolgate_counter_answered(void *data, redisReply *reply);
static ngx_int_t ngx_toolgate_counter_result(redisReply *reply,
    ngx_uint_t takes, ngx_toolgate_counter_result_t *result);
static void ngx_toolgate_counter_failure(ngx_log_t *log,
    ngx_toolgate_redis_conf_t *redis, ngx_shm_zone_t *zone,
    ngx_toolgate_counter_t *counter, ngx_str_t *reason,
    ngx_toolgate_counter_result_t *result);
static void ngx_toolgate_counter_local(ngx_log_t *log, ngx_shm_zone_t *zone,
    ngx_toolgate_counter_t *counter, ngx_toolgate_counter_result_t *result);
static ngx_toolgate_counters_mode_t *ngx_toolgate_counter_mode(
    ngx_shm_zone_t *zone);
static void ngx_toolgate_counter_cleanup(void *data);


/* of this process alone, where there is no zone to share it */
static ngx_toolgate_counters_mode_t  ngx_toolgate_counters_own_mode;

static const char  *ngx_toolgate_counters_modes[] = {
    "counted in the shared memory of this host",   /* in the enum's order */
    "refused",
    "let pass uncounted"
};


ngx_int_t
ngx_toolgate_counter_take(ngx_pool_t *pool, ngx_log_t *log,
    ngx_toolgate_redis_conf_t *redis, ngx_shm_zone_t *zone,
    ngx_toolgate_counter_t *counter, ngx_toolgate_counter_done_pt done,
    void *data)
{
    ngx_str_t                       reason;
    ngx_pool_cleanup_t             *cln;
    ngx_toolgate_counter_call_t    *call;
    ngx_toolgate_counter_result_t   result;

    if (ngx_toolgate_counter_check(log, counter) != NGX_OK) {
        return NGX_ERROR;
    }

    if (redis == NULL) {
        ngx_toolgate_counter_local(log, zone, counter, &result);
        done(data, &result);
        return NGX_OK;
    }

    if (!ngx_toolgate_redis_up(redis)) {
        ngx_str_set(&reason, "no connection");
        ngx_toolgate_counter_failure(log, redis, zone, counter, &reason,
                                     &result);
        done(data, &result);
        return NGX_OK;
    }

    cln = ngx_pool_cleanup_add(pool, sizeof(ngx_toolgate_counter_call_t));
    if (cln == NULL) {
        return NGX_ERROR;
    }

    call = cln->data;
    call->redis = redis;
    call->zone = zone;
    call->log = log;
    call->counter = *counter;
    call->done = done;
    call->data = data;
    call->ticket = NULL;

    /* the key is needed once more when the answer does not come */
    call->counter.key.data = ngx_pstrdup(pool, &counter->key);
    if (call->counter.key.data == NULL
        || ngx_toolgate_counter_ask(call) != NGX_OK)
    {
        return NGX_ERROR;
    }

    cln->handler = ngx_toolgate_counter_cleanup;

    return NGX_OK;
}


static ngx_int_t
ngx_toolgate_counter_check(ngx_log_t *log, ngx_toolgate_counter_t *counter)
{
    if (counter->limit == 0
        || counter->limit > NGX_TOOLGATE_COUNTER_LIMIT_MAX
        || counter->takes == 0
        || counter->takes > NGX_TOOLGATE_COUNTER_LIMIT_MAX
        || counter->window_s == 0
        || counter->window_s > NGX_TOOLGATE_COUNTER_WINDOW_MAX_S
        || counter->key.len == 0
        || counter->key.len > NGX_TOOLGATE_COUNTER_KEY_MAX)
    {
        ngx_log_error(NGX_LOG_ERR, log, 0, "toolgate: counter out of bounds: "
                      "limit %ui, window %uis, key of %uz bytes, %ui takes",
                      counter->limit, counter->window_s, counter->key.len,
                      counter->takes);
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_toolgate_counter_ask(ngx_toolgate_counter_call_t *call)
{
    u_char     name[NGX_TOOLGATE_COUNTERS_NAME_MAX];
    u_char     limit[NGX_INT_T_LEN], window[NGX_INT_T_LEN], takes[NGX_INT_T_LEN];
    ngx_str_t  args[4];

    args[0].data = name;
    args[0].len = ngx_slprintf(name, name + sizeof(name), "%Vw:{%V}",
                               &call->redis->prefix, &call->counter.key)
                  - name;
    args[1].data = limit;
    args[1].len = ngx_sprintf(limit, "%ui", call->counter.limit) - limit;
    args[2].data = window;
    args[2].len = ngx_sprintf(window, "%ui", call->counter.window_s) - window;
    args[3].data = takes;
    args[3].len = ngx_sprintf(takes, "%ui", call->counter.takes) - takes;

    call->ticket = ngx_toolgate_redis_script(call->redis, call->log,
                                       &ngx_toolgate_script_counter_take, 1, 4,
                                       args, ngx_toolgate_counter_answered,
                                       call);

    return call->ticket ? NGX_OK : NGX_ERROR;
}


static void
ngx_toolgate_counter_answered(void *data, redisReply *reply)
{
    ngx_str_t                       reason;
    ngx_toolgate_counter_call_t    *call;
    ngx_toolgate_counter_result_t   result;

    call = data;
    call->ticket = NULL;

    if (ngx_toolgate_counter_result(reply, call->counter.takes, &result)
        == NGX_OK)
    {
        ngx_toolgate_counter_back(call->log, call->redis, call->zone);

    } else {
        ngx_toolgate_counter_reason(reply, &reason);
        ngx_toolgate_counter_failure(call->log, call->redis, call->zone,
                                     &call->counter, &reason, &result);
    }

    call->done(call->data, &result);
}


/* what conf/redis/counter_take.lua answers, and nothing else */
static ngx_int_t
ngx_toolgate_counter_result(redisReply *reply, ngx_uint_t takes,
    ngx_toolgate_counter_result_t *result)
{
    ngx_uint_t  i;

    if (reply == NULL
        || reply->type != REDIS_REPLY_ARRAY
        || reply->elements != 3)
    {
        return NGX_ERROR;
    }

    for (i = 0; i < 3; i++) {
        if (reply->element[i]->type != REDIS_REPLY_INTEGER
            || reply->element[i]->integer < 0
            || reply->element[i]->integer > NGX_TOOLGATE_COUNTER_WINDOW_MAX_S)
        {
            return NGX_ERROR;
        }
    }

    result->mode = NGX_TOOLGATE_COUNTED_STORE;
    result->passed = reply->element[0]->integer;
    result->remaining = reply->element[1]->integer;
    result->retry_after_s = reply->element[2]->integer;

    return result->passed == takes
           || (result->passed < takes && result->retry_after_s >= 1)
           ? NGX_OK : NGX_ERROR;
}


void
ngx_toolgate_counter_reason(redisReply *reply, ngx_str_t *reason)
{
    if (reply == NULL) {
        ngx_str_set(reason, "no answer");
        return;
    }

    if (reply->type != REDIS_REPLY_ERROR) {
        ngx_str_set(reason, "unexpected answer");
        return;
    }

    reason->data = (u_char *) reply->str;
    reason->len = ngx_min((size_t) reply->len, NGX_TOOLGATE_COUNTERS_REASON);
}


static void
ngx_toolgate_counter_failure(ngx_log_t *log, ngx_toolgate_redis_conf_t *redis,
    ngx_shm_zone_t *zone, ngx_toolgate_counter_t *counter, ngx_str_t *reason,
    ngx_toolgate_counter_result_t *result)
{
    ngx_toolgate_counter_away(log, redis, zone, reason);

    switch (redis->on_failure) {

    case NGX_TOOLGATE_STORE_LOCAL:
        ngx_toolgate_counter_local(log, zone, counter, result);
        return;

    case NGX_TOOLGATE_STORE_OPEN:
        result->passed = counter->takes;
        result->remaining = counter->limit;
        result->retry_after_s = 0;
        result->mode = NGX_TOOLGATE_COUNTED_OPEN;
        return;

    case NGX_TOOLGATE_STORE_CLOSED:
        break;
    }

    /* nothing is known but when Redis is tried again */
    result->passed = 0;
    result->remaining = 0;
    result->retry_after_s = (NGX_TOOLGATE_REDIS_RETRY_MS + 999) / 1000;
    result->mode = NGX_TOOLGATE_COUNTED_CLOSED;
}


static void
ngx_toolgate_counter_local(ngx_log_t *log, ngx_shm_zone_t *zone,
    ngx_toolgate_counter_t *counter, ngx_toolgate_counter_result_t *result)
{
    static ngx_uint_t  told;

    if (zone) {
        ngx_toolgate_counters_zone_take(zone, log, counter, result);
        return;
    }

    if (!told) {
        told = 1;
        ngx_log_error(NGX_LOG_ERR, log, 0, "toolgate: no zone to count in: "
                      "calls are let pass uncounted");
    }

    result->passed = counter->takes;
    result->remaining = counter->limit;
    result->retry_after_s = 0;
    result->mode = NGX_TOOLGATE_COUNTED_OPEN;
}


void
ngx_toolgate_counter_away(ngx_log_t *log, ngx_toolgate_redis_conf_t *redis,
    ngx_shm_zone_t *zone, ngx_str_t *reason)
{
    ngx_toolgate_counters_mode_t  *mode;

    mode = ngx_toolgate_counter_mode(zone);
    mode->failed_at = ngx_current_msec;

    if (mode->away == 0 && ngx_atomic_cmp_set(&mode->away, 0, 1)) {
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "toolgate: redis \"%V\" cannot count (%V): calls are %s",
                      &redis->url, reason,
                      ngx_toolgate_counters_modes[redis->on_failure]);
    }
}


/* one worker may be answered while another one is not yet */
void
ngx_toolgate_counter_back(ngx_log_t *log, ngx_toolgate_redis_conf_t *redis,
    ngx_shm_zone_t *zone)
{
    ngx_msec_int_t                 quiet;
    ngx_toolgate_counters_mode_t  *mode;

    mode = ngx_toolgate_counter_mode(zone);

    if (mode->away == 0) {
        return;
    }

    quiet = (ngx_msec_int_t) (ngx_current_msec - mode->failed_at);

    if (quiet >= NGX_TOOLGATE_COUNTERS_QUIET_MS
        && ngx_atomic_cmp_set(&mode->away, 1, 0))
    {
        ngx_log_error(NGX_LOG_NOTICE, log, 0,
                      "toolgate: redis \"%V\" counts again", &redis->url);
    }
}


static ngx_toolgate_counters_mode_t *
ngx_toolgate_counter_mode(ngx_shm_zone_t *zone)
{
    return zone ? ngx_toolgate_counters_zone_mode(zone)
                : &ngx_toolgate_counters_own_mode;
}


static void
ngx_toolgate_counter_cleanup(void *data)
{
    ngx_toolgate_counter_call_t  *call;

    call = data;

    if (call->ticket) {
        ngx_toolgate_redis_drop(call->ticket);
        call->ticket = NULL;
    }
}
