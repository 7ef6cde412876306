/*
 * Outputs for a run that waits, by one script; and a key for each handed out call that
 * holds the id of its run.
 */

#include "ngx_http_toolgate_run_submit.h"
#include "ngx_toolgate_scripts.h"


typedef struct {
    ngx_http_toolgate_submit_done_pt    submitted;   /* one of the two */
    ngx_http_toolgate_call_run_pt       found;
    void                               *data;
} ngx_http_toolgate_submit_t;


static ngx_http_toolgate_submit_t *ngx_http_toolgate_submit_question(
    ngx_pool_t *pool, void *data);
static void ngx_http_toolgate_submit_reply(void *data, redisReply *reply);
static void ngx_http_toolgate_call_run_reply(void *data, redisReply *reply);
static void ngx_http_toolgate_call_noted(void *data, redisReply *reply);


ngx_int_t
ngx_http_toolgate_run_submit(ngx_pool_t *pool, ngx_toolgate_redis_conf_t *redis,
    ngx_http_toolgate_run_key_t *key, ngx_str_t *digest, ngx_str_t *required,
    ngx_http_toolgate_field_t *outcomes, ngx_uint_t n,
    ngx_http_toolgate_submit_done_pt done, void *data)
{
    u_char                       name[NGX_HTTP_TOOLGATE_STORE_KEY_MAX];
    ngx_str_t                    args[3 + 2 * NGX_HTTP_TOOLGATE_RUN_FIELDS_MAX];
    ngx_uint_t                   i, argc;
    ngx_http_toolgate_submit_t  *submit;

    submit = ngx_http_toolgate_submit_question(pool, data);
    if (submit == NULL) {
        return NGX_ERROR;
    }

    submit->submitted = done;

    args[0] = ngx_http_toolgate_store_key(redis, 'r', key, &key->run, "", name);
    args[1] = *digest;
    args[2] = *required;
    argc = 3;

    for (i = 0; i < ngx_min(n, NGX_HTTP_TOOLGATE_RUN_FIELDS_MAX); i++) {
        args[argc++] = outcomes[i].name;
        args[argc++] = outcomes[i].value;
    }

    return ngx_toolgate_redis_ask(pool, redis, ngx_cycle->log,
                                  &ngx_toolgate_script_run_submit, 1, argc, args,
                                  ngx_http_toolgate_submit_reply, submit);
}


static ngx_http_toolgate_submit_t *
ngx_http_toolgate_submit_question(ngx_pool_t *pool, void *data)
{
    ngx_http_toolgate_submit_t  *submit;

    submit = ngx_pcalloc(pool, sizeof(ngx_http_toolgate_submit_t));

    if (submit) {
        submit->data = data;
    }

    return submit;
}


static void
ngx_http_toolgate_submit_reply(void *data, redisReply *reply)
{
    ngx_http_toolgate_submit_t *submit = data;

    int64_t      after;
    ngx_uint_t   i;
    const char  *word;

    static const char *const  words[] = { "ok", "same", "late", "other", "gone" };

    i = NGX_HTTP_TOOLGATE_SUBMIT_AWAY;
    after = 0;

    if (reply && reply->type == REDIS_REPLY_ARRAY && reply->elements
        && reply->element[0]->type == REDIS_REPLY_STRING)
    {
        word = reply->element[0]->str;

        for (i = 0; i < NGX_HTTP_TOOLGATE_SUBMIT_AWAY; i++) {
            if (ngx_strcmp(word, words[i]) == 0) {
                break;
            }
        }
    }

    if (i <= NGX_HTTP_TOOLGATE_SUBMIT_SAME && reply->elements == 2
        && reply->element[1]->type == REDIS_REPLY_STRING)
    {
        after = ngx_atoof((u_char *) reply->element[1]->str,
                          (size_t) reply->element[1]->len);
    }

    submit->submitted(submit->data, (ngx_http_toolgate_submit_e) i,
                      ngx_max(after, 0));
}


void
ngx_http_toolgate_call_note(ngx_toolgate_redis_conf_t *redis,
    ngx_http_toolgate_run_key_t *key, ngx_str_t *call, time_t seconds)
{
    u_char     name[NGX_HTTP_TOOLGATE_STORE_KEY_MAX], digits[NGX_TIME_T_LEN];
    ngx_str_t  args[5];

    ngx_str_set(&args[0], "SET");
    args[1] = ngx_http_toolgate_store_key(redis, 'c', key, call, "", name);
    args[2] = key->run;
    ngx_str_set(&args[3], "EX");
    args[4].data = digits;
    args[4].len = ngx_sprintf(digits, "%T", seconds) - digits;

    (void) ngx_toolgate_redis_command(redis, ngx_cycle->log, 5, args,
                                      ngx_http_toolgate_call_noted, redis);
}


/* A call that is not noted is not known later: its run expires. */
static void
ngx_http_toolgate_call_noted(void *data, redisReply *reply)
{
    ngx_toolgate_redis_conf_t *redis = data;

    if (reply && reply->type == REDIS_REPLY_ERROR) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "toolgate: redis \"%V\" does not note a call: %s", &redis->url,
                      reply->str);
    }
}


ngx_int_t
ngx_http_toolgate_call_run_find(ngx_pool_t *pool, ngx_toolgate_redis_conf_t *redis,
    ngx_http_toolgate_run_key_t *key, ngx_str_t *call,
    ngx_http_toolgate_call_run_pt done, void *data)
{
    u_char                       name[NGX_HTTP_TOOLGATE_STORE_KEY_MAX];
    ngx_str_t                    args[2];
    ngx_http_toolgate_submit_t  *submit;

    submit = ngx_http_toolgate_submit_question(pool, data);
    if (submit == NULL) {
        return NGX_ERROR;
    }

    submit->found = done;

    ngx_str_set(&args[0], "GET");
    args[1] = ngx_http_toolgate_store_key(redis, 'c', key, call, "", name);

    return ngx_toolgate_redis_ask(pool, redis, ngx_cycle->log, NULL, 0, 2, args,
                                  ngx_http_toolgate_call_run_reply, submit);
}


static void
ngx_http_toolgate_call_run_reply(void *data, redisReply *reply)
{
    ngx_http_toolgate_submit_t *submit = data;

    ngx_str_t  run = ngx_null_string;

    if (reply && reply->type == REDIS_REPLY_STRING) {
        run.data = (u_char *) reply->str;
        run.len = (size_t) reply->len;
    }

    submit->found(submit->data, &run,
                  reply && (run.len || reply->type == REDIS_REPLY_NIL));
}
