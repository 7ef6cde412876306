/*
 * Request limits: asks Redis, and decides by on_failure when Redis cannot say. The
 * lines in the log about that are the counters' own, so that an outage is told once.
 */

#include "ngx_toolgate_limits.h"
#include "ngx_toolgate_scripts.h"

#include "tg_rate.h"


#define NGX_TOOLGATE_LIMITS_ARGS       3       /* of each limit */
#define NGX_TOOLGATE_LIMITS_ANSWERS    3
#define NGX_TOOLGATE_LIMITS_NAME_MAX                                          \
    (NGX_TOOLGATE_REDIS_PREFIX_MAX + NGX_TOOLGATE_LIMIT_KEY_MAX)


static ngx_int_t ngx_toolgate_limits_ask(ngx_toolgate_limits_call_t *call);
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
    u_char                 numbers[NGX_TOOLGATE_LIMITS_MAX][2][NGX_INT_T_LEN];
    ngx_str_t              args[NGX_TOOLGATE_LIMITS_MAX
                                * (1 + NGX_TOOLGATE_LIMITS_ARGS)];
    ngx_str_t             *arg;
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

        arg->data = numbers[i][0];
        arg->len = ngx_sprintf(arg->data, "%uD", limit->limit) - arg->data;
        arg++;

        arg->data = numbers[i][1];
        arg->len = ngx_sprintf(arg->data, "%M", limit->window) - arg->data;
        arg++;

        arg->data = (u_char *) (limit->dry_run ? "1" : "0");
        arg->len = 1;
        arg++;
    }

    call->ticket = ngx_toolgate_redis_script(call->redis, call->log,
                                             &ngx_toolgate_script_limit_take,
                                             call->n, arg - args, args,
                                             ngx_toolgate_limits_answered, call);

    return call->ticket ? NGX_AGAIN : NGX_ERROR;
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
    ngx_uint_t              i, refused;
    redisReply            **e;
    ngx_toolgate_limit_t   *limit;

    if (reply == NULL
        || reply->type != REDIS_REPLY_ARRAY
        || reply->elements != 1 + call->n * NGX_TOOLGATE_LIMITS_ANSWERS)
    {
        return NGX_ERROR;
    }

    for (i = 0; i < reply->elements; i++) {
        if (reply->element[i]->type != REDIS_REPLY_INTEGER
            || reply->element[i]->integer < 0)
        {
            return NGX_ERROR;
        }
    }

    refused = 0;
    e = &reply->element[1];

    for (i = 0; i < call->n; i++) {
        limit = &call->limits[i];

        if (e[0]->integer > limit->limit
            || e[1]->integer > (long long) limit->window
            || e[2]->integer > (long long) limit->window)
        {
            return NGX_ERROR;
        }

        limit->remaining = (ngx_uint_t) e[0]->integer;
        limit->wait = (ngx_msec_t) e[1]->integer;
        limit->reset = (ngx_msec_t) e[2]->integer;
        limit->refused = limit->wait > 0;
        refused |= limit->refused && !limit->dry_run;

        e += NGX_TOOLGATE_LIMITS_ANSWERS;
    }

    call->mode = NGX_TOOLGATE_COUNTED_STORE;
    call->allowed = reply->element[0]->integer == 1;

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
