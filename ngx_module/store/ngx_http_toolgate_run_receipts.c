/*
 * Receipts of runs: one script, which looks at the runs themselves; there is no list
 * of receipts that could say something else than they do.
 */

#include "ngx_http_toolgate_run_receipts.h"
#include "ngx_toolgate_scripts.h"


typedef struct {
    ngx_toolgate_redis_done_pt    done;
    void                         *data;
} ngx_http_toolgate_receipts_search_t;


static void ngx_http_toolgate_receipts_replied(void *data, redisReply *reply);


ngx_int_t
ngx_http_toolgate_run_receipts(ngx_pool_t *pool, ngx_toolgate_redis_conf_t *redis,
    ngx_http_toolgate_run_key_t *key, ngx_http_toolgate_receipts_query_t *query,
    ngx_toolgate_redis_done_pt done, void *data)
{
    u_char                                name[NGX_HTTP_TOOLGATE_STORE_KEY_MAX];
    u_char                                offset[NGX_INT_T_LEN];
    u_char                                limit[NGX_INT_T_LEN];
    u_char                                look[NGX_INT_T_LEN];
    ngx_str_t                             args[9], none = ngx_null_string;
    ngx_http_toolgate_receipts_search_t  *search;

    search = ngx_palloc(pool, sizeof(ngx_http_toolgate_receipts_search_t));
    if (search == NULL) {
        return NGX_ERROR;
    }

    /* the list of an account's runs has the name that their own begin with */

    args[0] = ngx_http_toolgate_store_key(redis, 'r', key, &none, "", name);
    args[1] = args[0];
    args[2] = key->run;
    args[3] = query->session;
    args[4] = query->agent;
    args[5].data = offset;
    args[5].len = ngx_sprintf(offset, "%ui", query->offset) - offset;
    args[6].data = limit;
    args[6].len = ngx_sprintf(limit, "%ui", query->limit) - limit;
    args[7].data = look;
    args[7].len = ngx_sprintf(look, "%d", NGX_HTTP_TOOLGATE_RECEIPTS_LOOK) - look;
    args[8] = query->checkpoint;

    search->done = done;
    search->data = data;

    return ngx_toolgate_redis_ask(pool, redis, ngx_cycle->log,
                                  &ngx_toolgate_script_run_receipts, 1, 9, args,
                                  ngx_http_toolgate_receipts_replied, search);
}


static void
ngx_http_toolgate_receipts_replied(void *data, redisReply *reply)
{
    ngx_http_toolgate_receipts_search_t *search = data;

    if (reply && reply->type == REDIS_REPLY_ERROR) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "toolgate: redis script \"run_receipts\" failed: %s",
                      reply->str);
    }

    search->done(search->data, reply);
}
