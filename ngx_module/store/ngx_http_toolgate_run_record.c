/*
 * Steps of runs in Redis: appended by one script a round, read page by page. The
 * scripts are in conf/redis/. What a step says is not looked at here.
 */

#include "ngx_http_toolgate_run_record.h"
#include "ngx_toolgate_scripts.h"


/* prefix, "r:{", three labels of at most 64 bytes with what divides them */
#define NGX_HTTP_TOOLGATE_RECORD_KEY_MAX                                      \
    (NGX_TOOLGATE_REDIS_PREFIX_MAX + 3 * 64 + sizeof("r:{//}:steps"))


typedef struct {
    ngx_http_toolgate_page_done_pt   done;
    void                            *data;
} ngx_http_toolgate_record_read_t;


static ngx_str_t ngx_http_toolgate_record_key(ngx_toolgate_redis_conf_t *redis,
    ngx_http_toolgate_run_key_t *key, u_char *buf);
static void ngx_http_toolgate_record_appended(void *data, redisReply *reply);
static void ngx_http_toolgate_record_told(ngx_toolgate_redis_conf_t *redis,
    ngx_uint_t taken);
static void ngx_http_toolgate_record_page_reply(void *data, redisReply *reply);


/* whether this worker has said that steps are being lost */
static ngx_uint_t  ngx_http_toolgate_record_away;


void
ngx_http_toolgate_run_record_append(ngx_toolgate_redis_conf_t *redis,
    ngx_http_toolgate_run_key_t *key, time_t retention, ngx_str_t *steps,
    ngx_uint_t count)
{
    u_char      name[NGX_HTTP_TOOLGATE_RECORD_KEY_MAX];
    u_char      seconds[NGX_TIME_T_LEN];
    ngx_str_t   args[NGX_HTTP_TOOLGATE_RECORD_APPEND_MAX + 2];

    args[0] = ngx_http_toolgate_record_key(redis, key, name);
    args[1].data = seconds;
    args[1].len = ngx_sprintf(seconds, "%T", retention) - seconds;

    count = ngx_min(count, NGX_HTTP_TOOLGATE_RECORD_APPEND_MAX);
    ngx_memcpy(&args[2], steps, count * sizeof(ngx_str_t));

    if (!ngx_toolgate_redis_up(redis)
        || ngx_toolgate_redis_script(redis, ngx_cycle->log,
                                     &ngx_toolgate_script_run_steps_append, 1,
                                     count + 2, args,
                                     ngx_http_toolgate_record_appended, redis)
           == NULL)
    {
        ngx_http_toolgate_record_told(redis, 0);
    }
}


static ngx_str_t
ngx_http_toolgate_record_key(ngx_toolgate_redis_conf_t *redis,
    ngx_http_toolgate_run_key_t *key, u_char *buf)
{
    ngx_str_t  name;

    name.data = buf;
    name.len = ngx_slprintf(buf, buf + NGX_HTTP_TOOLGATE_RECORD_KEY_MAX,
                            "%Vr:{%V/%V}:%V:steps", &redis->prefix,
                            &key->project, &key->account, &key->run)
               - buf;

    return name;
}


static void
ngx_http_toolgate_record_appended(void *data, redisReply *reply)
{
    ngx_http_toolgate_record_told(data, reply
                                        && reply->type == REDIS_REPLY_INTEGER);
}


static void
ngx_http_toolgate_record_told(ngx_toolgate_redis_conf_t *redis, ngx_uint_t taken)
{
    if (taken == !ngx_http_toolgate_record_away) {
        return;
    }

    ngx_http_toolgate_record_away = !taken;

    if (taken) {
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "toolgate: redis \"%V\" takes the steps of runs again",
                      &redis->url);

    } else {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "toolgate: redis \"%V\" does not take the steps of runs: "
                      "they are lost until it does", &redis->url);
    }
}


ngx_int_t
ngx_http_toolgate_run_record_page(ngx_pool_t *pool, ngx_log_t *log,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_run_key_t *key,
    ngx_str_t *after, ngx_uint_t limit, ngx_http_toolgate_page_done_pt done,
    void *data)
{
    u_char                            name[NGX_HTTP_TOOLGATE_RECORD_KEY_MAX];
    u_char                            most[NGX_INT_T_LEN], bytes[NGX_INT_T_LEN];
    ngx_str_t                         args[4];
    ngx_http_toolgate_record_read_t  *read;

    read = ngx_palloc(pool, sizeof(ngx_http_toolgate_record_read_t));
    if (read == NULL) {
        return NGX_ERROR;
    }

    read->done = done;
    read->data = data;

    args[0] = ngx_http_toolgate_record_key(redis, key, name);
    args[1] = *after;
    args[2].data = most;
    args[2].len = ngx_sprintf(most, "%ui", limit) - most;
    args[3].data = bytes;
    args[3].len = ngx_sprintf(bytes, "%d", NGX_HTTP_TOOLGATE_RECORD_PAGE_MAX)
                  - bytes;

    return ngx_toolgate_redis_ask(pool, redis, log,
                                  &ngx_toolgate_script_run_steps_page, 1, 4, args,
                                  ngx_http_toolgate_record_page_reply, read);
}


/* what conf/redis/run_steps_page.lua answers; all else is as good as no answer */
static void
ngx_http_toolgate_record_page_reply(void *data, redisReply *reply)
{
    ngx_http_toolgate_record_read_t *read = data;

    ngx_uint_t                i;
    ngx_http_toolgate_page_t  page;

    ngx_memzero(&page, sizeof(page));
    page.state = NGX_HTTP_TOOLGATE_PAGE_AWAY;

    if (reply && reply->type == REDIS_REPLY_NIL) {
        page.state = NGX_HTTP_TOOLGATE_PAGE_NO_RUN;

    } else if (reply && reply->type == REDIS_REPLY_ARRAY && reply->elements
               && reply->element[0]->type == REDIS_REPLY_INTEGER)
    {
        page.state = reply->element[0]->integer < 0
                     ? NGX_HTTP_TOOLGATE_PAGE_NO_STEP
                     : NGX_HTTP_TOOLGATE_PAGE_READ;
        page.more = (reply->element[0]->integer == 1);
        page.count = reply->elements - 1;
        page.steps = reply->element + 1;
    }

    for (i = 0; i < page.count; i++) {
        if (page.steps[i]->type != REDIS_REPLY_STRING) {
            page.state = NGX_HTTP_TOOLGATE_PAGE_AWAY;
        }
    }

    read->done(read->data, &page);
}
