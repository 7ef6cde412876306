/*
 * Finding runs: by an invocation id, page by page, and those that somebody has to
 * look at since their lease or their time may be over. Plain commands, and one script.
 */

#include "ngx_http_toolgate_module.h"
#include "ngx_http_toolgate_run_store.h"
#include "ngx_toolgate_scripts.h"


typedef struct {
    ngx_http_toolgate_run_done_pt   done;
    void                           *data;
} ngx_http_toolgate_run_search_t;


static void ngx_http_toolgate_run_found(void *data, redisReply *reply);
static void ngx_http_toolgate_run_noted(void *data, redisReply *reply);


/* { id } of an invocation comes as a plain string. */
static void
ngx_http_toolgate_run_found(void *data, redisReply *reply)
{
    ngx_http_toolgate_run_search_t *question = data;

    ngx_http_toolgate_run_answer_t  answer;

    ngx_memzero(&answer, sizeof(answer));
    answer.answer = NGX_HTTP_TOOLGATE_ANSWER_AWAY;

    if (reply && reply->type == REDIS_REPLY_NIL) {
        answer.answer = NGX_HTTP_TOOLGATE_ANSWER_GONE;

    } else if (reply && reply->type == REDIS_REPLY_STRING) {
        answer.answer = NGX_HTTP_TOOLGATE_ANSWER_OK;
        answer.text.data = (u_char *) reply->str;
        answer.text.len = (size_t) reply->len;
    }

    question->done(question->data, &answer);
}


ngx_int_t
ngx_http_toolgate_run_store_find(ngx_pool_t *pool,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_run_key_t *key,
    ngx_str_t *invocation, ngx_http_toolgate_run_done_pt done, void *data)
{
    u_char                           name[NGX_HTTP_TOOLGATE_STORE_KEY_MAX];
    ngx_str_t                        args[3];
    ngx_http_toolgate_run_search_t  *question;

    question = ngx_palloc(pool, sizeof(ngx_http_toolgate_run_search_t));
    if (question == NULL) {
        return NGX_ERROR;
    }

    question->done = done;
    question->data = data;

    ngx_str_set(&args[0], "HGET");
    args[1] = ngx_http_toolgate_store_key(redis, 'i', key, invocation, "", name);
    ngx_str_set(&args[2], "run");

    return ngx_toolgate_redis_ask(pool, redis, ngx_cycle->log, NULL, 0, 3, args,
                                  ngx_http_toolgate_run_found, question);
}


void
ngx_http_toolgate_run_store_watch(ngx_toolgate_redis_conf_t *redis,
    ngx_http_toolgate_run_key_t *key, ngx_msec_t after)
{
    u_char      name[NGX_HTTP_TOOLGATE_STORE_KEY_MAX];
    u_char      member[NGX_HTTP_TOOLGATE_STORE_KEY_MAX];
    u_char      score[NGX_INT64_LEN];
    ngx_str_t   args[4];
    ngx_time_t *tp;

    tp = ngx_timeofday();

    ngx_str_set(&args[0], "ZADD");
    args[1] = ngx_http_toolgate_watch_key(redis, name);
    args[2].data = score;
    args[2].len = ngx_sprintf(score, "%L", (int64_t) tp->sec * 1000
                                           + (int64_t) tp->msec + (int64_t) after)
                  - score;
    args[3].data = member;
    args[3].len = ngx_slprintf(member, member + sizeof(member), "%V/%V/%V",
                               &key->project, &key->account, &key->run)
                  - member;

    (void) ngx_toolgate_redis_command(redis, ngx_cycle->log, 4, args,
                                      ngx_http_toolgate_run_noted,
                                      NULL);
}


void
ngx_http_toolgate_run_store_unwatch(ngx_toolgate_redis_conf_t *redis,
    ngx_http_toolgate_run_key_t *key)
{
    u_char      name[NGX_HTTP_TOOLGATE_STORE_KEY_MAX];
    u_char      member[NGX_HTTP_TOOLGATE_STORE_KEY_MAX];
    ngx_str_t   args[3];

    ngx_str_set(&args[0], "ZREM");
    args[1] = ngx_http_toolgate_watch_key(redis, name);
    args[2].data = member;
    args[2].len = ngx_slprintf(member, member + sizeof(member), "%V/%V/%V",
                               &key->project, &key->account, &key->run)
                  - member;

    (void) ngx_toolgate_redis_command(redis, ngx_cycle->log, 3, args,
                                      ngx_http_toolgate_run_noted,
                                      NULL);
}


/* It is looked at again, whether or not this was heard. */
static void
ngx_http_toolgate_run_noted(void *data, redisReply *reply)
{
}


ngx_int_t
ngx_http_toolgate_run_store_list(ngx_pool_t *pool,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_run_key_t *key,
    ngx_str_t *after, ngx_str_t *session, ngx_uint_t limit, ngx_str_t *fields,
    ngx_uint_t field_count, ngx_toolgate_redis_done_pt done, void *data)
{
    u_char                           name[NGX_HTTP_TOOLGATE_STORE_KEY_MAX];
    u_char                           most[NGX_INT_T_LEN], look[NGX_INT_T_LEN];
    u_char                           runs[NGX_HTTP_TOOLGATE_STORE_KEY_MAX];
    ngx_str_t                        args[5 + NGX_HTTP_TOOLGATE_RUN_FIELDS_MAX];
    ngx_str_t                        none = ngx_null_string;

    field_count = ngx_min(field_count, NGX_HTTP_TOOLGATE_RUN_FIELDS_MAX);

    args[0] = ngx_http_toolgate_run_list_key(redis, key, session, name);
    args[1] = ngx_http_toolgate_store_key(redis, 'r', key, &none, "", runs);
    args[2] = *after;
    args[3].data = most;
    args[3].len = ngx_sprintf(most, "%ui", limit) - most;
    args[4].data = look;
    args[4].len = ngx_sprintf(look, "%d", NGX_HTTP_TOOLGATE_RUN_LIST_LOOK) - look;
    ngx_memcpy(&args[5], fields, field_count * sizeof(ngx_str_t));

    return ngx_toolgate_redis_ask(pool, redis, ngx_cycle->log,
                                  &ngx_toolgate_script_run_list, 1, 5 + field_count,
                                  args, done, data);
}
