/*
 * A question to Redis by somebody who may go away before it is answered: the ticket
 * goes with his pool.
 */

#include "ngx_toolgate_redis.h"


typedef struct {
    ngx_toolgate_redis_ticket_t  *ticket;      /* NULL: answered */
    ngx_toolgate_redis_done_pt    done;
    void                         *data;
} ngx_toolgate_redis_ask_t;


static void ngx_toolgate_redis_ask_answered(void *data, redisReply *reply);
static void ngx_toolgate_redis_ask_cleanup(void *data);


ngx_int_t
ngx_toolgate_redis_ask(ngx_pool_t *pool, ngx_toolgate_redis_conf_t *conf,
    ngx_log_t *log, const ngx_toolgate_script_t *script, ngx_uint_t nkeys,
    ngx_uint_t argc, ngx_str_t *argv, ngx_toolgate_redis_done_pt done, void *data)
{
    ngx_pool_cleanup_t        *cln;
    ngx_toolgate_redis_ask_t  *ask;

    cln = ngx_pool_cleanup_add(pool, sizeof(ngx_toolgate_redis_ask_t));
    if (cln == NULL) {
        return NGX_ERROR;
    }

    ask = cln->data;
    ask->done = done;
    ask->data = data;

    ask->ticket = script
                  ? ngx_toolgate_redis_script(conf, log, script, nkeys, argc, argv,
                                              ngx_toolgate_redis_ask_answered, ask)
                  : ngx_toolgate_redis_command(conf, log, argc, argv,
                                               ngx_toolgate_redis_ask_answered,
                                               ask);
    if (ask->ticket == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_toolgate_redis_ask_cleanup;

    return NGX_OK;
}


/* The pool may be gone when done returns. */
static void
ngx_toolgate_redis_ask_answered(void *data, redisReply *reply)
{
    ngx_toolgate_redis_ask_t *ask = data;

    ask->ticket = NULL;
    ask->done(ask->data, reply);
}


static void
ngx_toolgate_redis_ask_cleanup(void *data)
{
    ngx_toolgate_redis_ask_t *ask = data;

    if (ask->ticket) {
        ngx_toolgate_redis_drop(ask->ticket);
        ask->ticket = NULL;
    }
}
