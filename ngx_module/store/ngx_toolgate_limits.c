/*
 * Request limits: asks Redis, and decides by on_failure when Redis cannot say. The
 * lines in the log about that are the counters' own, so that an outage is told once.
 */

#include "ngx_toolgate_limits.h"
#include "ngx_toolgate_scripts.h"

#include "tg_rate.h"


#define NGX_TOOLGATE_LIMITS_ARGS       2       /* of each limit */
#define NGX_TOOLGATE_LIMITS_NUMBER     4       /* bytes, little end first */
#define NGX_TOOLGATE_LIMITS_ANSWERS    3       /* numbers for each limit */
#define NGX_TOOLGATE_LIMITS_NAME_MAX                                          \
    (NGX_TOOLGATE_REDIS_PREFIX_MAX + NGX_TOOLGATE_LIMIT_KEY_MAX)


static ngx_int_t ngx_toolgate_limits_ask(ngx_toolgate_limits_call_t *call);
static void ngx_toolgate_limits_put(u_char *p, uint32_t n);
static uint32_t ngx_toolgate_limits_get(const char *p);
static void ngx_toolgate_limits_answered(void *data, redisReply *reply);
static ngx_int_t ngx_toolgate_limits_answer(ngx_toolgate_limits_call_t *call,
    redisReply *reply);
static void ngx_toolgate_limits_failure(ngx_toolgate_limits_call_t *call,
    ngx_str_t *reason);
static void ngx_toolgate_limits_local(ngx_toolgate_limits_call_t *call);


ngx_int_t
ngx_toolgate_limits_take(ngx_toolgate_limits_call_t *call)
{
    ngx_str_t  reason;

    call->ticket = NULL;

    if (call->redis == NULL) {
        ngx_toolgate_limits_local(call);
        return NGX_OK;
    }

    if (!ngx_toolgate_redis_up(call->redis)) {
        ngx_str_set(&reason, "no connection");
        ngx_toolgate_limits_failure(call, &reason);
        return NGX_OK;
    }

    return ngx_toolgate_limits_ask(call);
}


static ngx_int_t
ngx_toolgate_limits_ask(ngx_toolgate_limits_call_t *call)
{
    u_char                 names[NGX_TOOLGATE_LIMITS_MAX]
                                [NGX_TOOLGATE_LIMITS_NAME_MAX];
    u_char                 numbers[NGX_TOOLGATE_LIMITS_MAX]
                                  [3 * NGX_TOOLGATE_LIMITS_NUMBER];
    u_char                 expiries[NGX_TOOLGATE_LIMITS_MAX][NGX_INT_T_LEN];
    ngx_str_t              args[NGX_TOOLGATE_LIMITS_MAX
                                * (1 + NGX_TOOLGATE_LIMITS_ARGS)];
    ngx_str_t             *arg;
    ngx_msec_t             slice;
    ngx_uint_t             i;
    ngx_toolgate_limit_t  *limit;

    arg = &args[call->n];

    for (i = 0; i < call->n; i++) {
        limit = &call->limits[i];

        args[i].data = names[i];
        args[i].len = ngx_slprintf(names[i],
                                   names[i] + NGX_TOOLGATE_LIMITS_NAME_MAX,
                                   "%V%V", &call->redis->prefix, &limit->key)
                      - names[i];

        ngx_toolgate_limits_put(numbers[i], limit->limit);
        ngx_toolgate_limits_put(numbers[i] + NGX_TOOLGATE_LIMITS_NUMBER,
                                (uint32_t) limit->window);
        ngx_toolgate_limits_put(numbers[i] + 2 * NGX_TOOLGATE_LIMITS_NUMBER,
                                limit->dry_run);

        arg->data = numbers[i];
        arg->len = sizeof(numbers[i]);
        arg++;

        slice = (limit->window + TG_RATE_SLICES - 1) / TG_RATE_SLICES;

        arg->data = expiries[i];
        arg->len = ngx_sprintf(arg->data, "%M", limit->window + slice) - arg->data;
        arg++;
    }

    call->ticket = ngx_toolgate_redis_script(call->redis, call->log,
                                             &ngx_toolgate_script_limit_take,
                                             call->n, arg - args, args,
                                             ngx_toolgate_limits_answered, call);

    return call->ticket ? NGX_AGAIN : NGX_ERROR;
}


static void
ngx_toolgate_limits_put(u_char *p, uint32_t n)
{
    p[0] = (u_char) n;
    p[1] = (u_char) (n >> 8);
    p[2] = (u_char) (n >> 16);
    p[3] = (u_char) (n >> 24);
}


static uint32_t
ngx_toolgate_limits_get(const char *p)
{
    const u_char  *u = (const u_char *) p;

    return (uint32_t) u[0] | (uint32_t) u[1] << 8 | (uint32_t) u[2] << 16
           | (uint32_t) u[3] << 24;
}


static void
ngx_toolgate_limits_answered(void *data, redisReply *reply)
{
    ngx_str_t                    reason;
    ngx_toolgate_limits_call_t  *call = data;

    call->ticket = NULL;

    if (ngx_toolgate_limits_answer(call, reply) == NGX_OK) {
        ngx_toolgate_counter_back(call->log, call->redis, call->zone);

    } else {
        ngx_toolgate_counter_reason(reply, &reason);
        ngx_toolgate_limits_failure(call, &reason);
    }

    call->done(call);
}


/* what conf/redis/limit_take.lua answers, and nothing else */
static ngx_int_t
ngx_toolgate_limits_answer(ngx_toolgate_limits_call_t *call, redisReply *reply)
{
    size_t                 size;
    ngx_uint_t             i, refused;
    const char            *p;
    ngx_toolgate_limit_t  *limit;

    size = (1 + call->n * NGX_TOOLGATE_LIMITS_ANSWERS)
           * NGX_TOOLGATE_LIMITS_NUMBER;

    if (reply == NULL
        || reply->type != REDIS_REPLY_STRING
        || (size_t) reply->len != size)
    {
        return NGX_ERROR;
    }

    refused = 0;
    p = reply->str;

    for (i = 0; i < call->n; i++) {
        limit = &call->limits[i];

        p += NGX_TOOLGATE_LIMITS_NUMBER;
        limit->remaining = ngx_toolgate_limits_get(p);
        p += NGX_TOOLGATE_LIMITS_NUMBER;
        limit->wait = ngx_toolgate_limits_get(p);
        p += NGX_TOOLGATE_LIMITS_NUMBER;
        limit->reset = ngx_toolgate_limits_get(p);

        if (limit->remaining > limit->limit
            || limit->wait > limit->window
            || limit->reset > limit->window)
        {
            return NGX_ERROR;
        }

        limit->refused = limit->wait > 0;
        refused |= limit->refused && !limit->dry_run;
    }

    call->mode = NGX_TOOLGATE_COUNTED_STORE;
    call->allowed = ngx_toolgate_limits_get(reply->str) == 1;

    return call->allowed == !refused ? NGX_OK : NGX_ERROR;
}


static void
ngx_toolgate_limits_failure(ngx_toolgate_limits_call_t *call, ngx_str_t *reason)
{
    ngx_toolgate_counter_away(call->log, call->redis, call->zone, reason);

    switch (call->redis->on_failure) {

    case NGX_TOOLGATE_STORE_LOCAL:
        ngx_toolgate_limits_local(call);
        return;

    case NGX_TOOLGATE_STORE_OPEN:
        call->mode = NGX_TOOLGATE_COUNTED_OPEN;
        call->allowed = 1;
        return;

    case NGX_TOOLGATE_STORE_CLOSED:
        break;
    }

    call->mode = NGX_TOOLGATE_COUNTED_CLOSED;
    call->allowed = 0;
}


/* a limit that is not kept is none: without room for it nothing passes */
static void
ngx_toolgate_limits_local(ngx_toolgate_limits_call_t *call)
{
    if (call->zone && ngx_toolgate_limits_zone_take(call) == NGX_OK) {
        call->mode = NGX_TOOLGATE_COUNTED_LOCAL;
        return;
    }

    call->mode = NGX_TOOLGATE_COUNTED_CLOSED;
    call->allowed = 0;
}


void
ngx_toolgate_limits_cancel(ngx_toolgate_limits_call_t *call)
{
    if (call->ticket) {
        ngx_toolgate_redis_drop(call->ticket);
        call->ticket = NULL;
    }
}
