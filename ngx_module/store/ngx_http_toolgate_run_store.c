/*
 * What can be done with a run in Redis, one script of conf/redis/run_*.lua each, and
 * the keys under which it lies there.
 */

#include "ngx_http_toolgate_module.h"
#include "ngx_http_toolgate_run_input.h"
#include "ngx_http_toolgate_run_question.h"
#include "ngx_toolgate_scripts.h"


static void ngx_http_toolgate_run_tell_driver(ngx_toolgate_redis_conf_t *redis,
    ngx_str_t *owner, ngx_str_t *run);


u_char  ngx_http_toolgate_owner[NGX_HTTP_TOOLGATE_OWNER_LEN];


ngx_int_t
ngx_http_toolgate_run_store_init_worker(ngx_cycle_t *cycle)
{
    u_char  random[NGX_HTTP_TOOLGATE_OWNER_LEN / 2];

    if (ngx_http_toolgate_random(random, sizeof(random)) != NGX_OK) {
        return NGX_ERROR;
    }

    (void) ngx_hex_dump(ngx_http_toolgate_owner, random, sizeof(random));

    return NGX_OK;
}


ngx_str_t
ngx_http_toolgate_store_key(ngx_toolgate_redis_conf_t *redis, char letter,
    ngx_http_toolgate_run_key_t *key, ngx_str_t *id, const char *suffix,
    u_char buf[NGX_HTTP_TOOLGATE_STORE_KEY_MAX])
{
    ngx_str_t  name;

    name.data = buf;
    name.len = ngx_slprintf(buf, buf + NGX_HTTP_TOOLGATE_STORE_KEY_MAX,
                            "%V%c:{%V/%V}:%V%s", &redis->prefix, letter,
                            &key->project, &key->account, id, suffix)
               - buf;

    return name;
}


ngx_str_t
ngx_http_toolgate_run_list_key(ngx_toolgate_redis_conf_t *redis,
    ngx_http_toolgate_run_key_t *key, ngx_str_t *session,
    u_char buf[NGX_HTTP_TOOLGATE_STORE_KEY_MAX])
{
    return ngx_http_toolgate_store_key(redis, 'r', key, session,
                                       session->len ? "/runs" : "", buf);
}


ngx_str_t
ngx_http_toolgate_inbox_key(ngx_toolgate_redis_conf_t *redis, ngx_str_t *owner,
    u_char buf[NGX_HTTP_TOOLGATE_STORE_KEY_MAX])
{
    ngx_str_t  name;

    name.data = buf;
    name.len = ngx_slprintf(buf, buf + NGX_HTTP_TOOLGATE_STORE_KEY_MAX,
                            "%Vworker:%V", &redis->prefix, owner)
               - buf;

    return name;
}


ngx_str_t
ngx_http_toolgate_watch_key(ngx_toolgate_redis_conf_t *redis,
    u_char buf[NGX_HTTP_TOOLGATE_STORE_KEY_MAX])
{
    ngx_str_t  name;

    name.data = buf;
    name.len = ngx_slprintf(buf, buf + NGX_HTTP_TOOLGATE_STORE_KEY_MAX,
                            "%Vruns:watched", &redis->prefix)
               - buf;

    return name;
}


ngx_int_t
ngx_http_toolgate_run_store_create(ngx_pool_t *pool,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_run_key_t *key,
    ngx_str_t *invocation, time_t retention, ngx_http_toolgate_new_run_t *run,
    ngx_http_toolgate_run_done_pt done, void *data)
{
    ngx_str_t                       first, rest, account = ngx_null_string;
    ngx_http_toolgate_run_args_t    a;
    ngx_http_toolgate_run_input_t  *input;

    ngx_http_toolgate_run_args_begin(&a, redis);
    ngx_http_toolgate_run_args_key(&a, 'r', key, &key->run, "");
    ngx_http_toolgate_run_args_key(&a, 'r', key, &key->run, ":input");
    ngx_http_toolgate_run_args_list(&a, key, &account);
    ngx_http_toolgate_run_args_list(&a, key, &run->session);

    if (invocation->len) {
        ngx_http_toolgate_run_args_key(&a, 'i', key, invocation, "");
    }

    first = run->input;
    first.len = ngx_min(first.len, NGX_HTTP_TOOLGATE_RUN_INPUT_SLICE);
    rest.data = first.data + first.len;
    rest.len = run->input.len - first.len;

    ngx_http_toolgate_run_args_text(&a, key->run);
    ngx_http_toolgate_run_args_text(&a, run->fingerprint);

    if (run->queued) {
        ngx_http_toolgate_run_args_word(&a, "");

    } else {
        ngx_http_toolgate_run_args_owner(&a);
    }

    ngx_http_toolgate_run_args_number(&a, NGX_HTTP_TOOLGATE_RUN_LEASE_MS);
    ngx_http_toolgate_run_args_number(&a, retention);
    ngx_http_toolgate_run_args_number(&a, (int64_t) run->input.len);
    ngx_http_toolgate_run_args_text(&a, first);
    ngx_http_toolgate_run_args_fields(&a, run->fields, run->field_count);

    /* known to those who look for lapsed leases before it is there */

    ngx_http_toolgate_run_store_watch(redis, key, NGX_HTTP_TOOLGATE_RUN_LEASE_MS);

    if (rest.len == 0) {
        return ngx_http_toolgate_run_ask(pool, &a, &ngx_toolgate_script_run_create,
                                         done, data);
    }

    input = ngx_http_toolgate_run_input_new(pool, redis, key, &rest, done, data);
    if (input == NULL) {
        return NGX_ERROR;
    }

    if (done) {
        return ngx_http_toolgate_run_ask(pool, &a, &ngx_toolgate_script_run_create,
                                         ngx_http_toolgate_run_input_created,
                                         input);
    }

    /* one that nobody else can have made */

    ngx_http_toolgate_run_input_start(input);

    return ngx_http_toolgate_run_ask(pool, &a, &ngx_toolgate_script_run_create, NULL,
                                     NULL);
}


ngx_int_t
ngx_http_toolgate_run_store_save(ngx_pool_t *pool,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_run_key_t *key,
    ngx_str_t *invocation, time_t retention, ngx_http_toolgate_save_t *save,
    ngx_http_toolgate_run_done_pt done, void *data)
{
    ngx_uint_t                     i, fields, news;
    ngx_http_toolgate_run_args_t   a;

    static const char *const  purposes[] = {
        "intent", "outcome", "checkpoint", "events", "renew", "pause", "end"
    };

    fields = ngx_min(save->field_count, NGX_HTTP_TOOLGATE_RUN_FIELDS_MAX);
    news = ngx_min(save->news_count, NGX_HTTP_TOOLGATE_RUN_FIELDS_MAX);

    ngx_http_toolgate_run_args_begin(&a, redis);
    ngx_http_toolgate_run_args_run(&a, key, invocation);
    ngx_http_toolgate_run_args_word(&a, purposes[save->what]);
    ngx_http_toolgate_run_args_owner(&a);
    ngx_http_toolgate_run_args_number(&a, save->what == NGX_HTTP_TOOLGATE_SAVE_PAUSE
                                          ? (int64_t) save->wait
                                          : NGX_HTTP_TOOLGATE_RUN_LEASE_MS);
    ngx_http_toolgate_run_args_number(&a, retention);
    ngx_http_toolgate_run_args_word(&a, save->status ? save->status : "");
    ngx_http_toolgate_run_args_number(&a, NGX_HTTP_TOOLGATE_RUN_INVOCATION_S);
    ngx_http_toolgate_run_args_number(&a, NGX_HTTP_TOOLGATE_RUN_EVENTS_MAX);
    ngx_http_toolgate_run_args_number(&a, 2 * (int64_t) fields);
    ngx_http_toolgate_run_args_fields(&a, save->fields, fields);

    for (i = 0; i < news; i++) {
        ngx_http_toolgate_run_args_word(&a, save->news[i].type);
        ngx_http_toolgate_run_args_text(&a, save->news[i].members);
    }

    return ngx_http_toolgate_run_ask(pool, &a, &ngx_toolgate_script_run_save, done,
                                     data);
}


ngx_int_t
ngx_http_toolgate_run_store_open(ngx_pool_t *pool,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_run_key_t *key,
    const char *mode, time_t retention, ngx_http_toolgate_run_done_pt done,
    void *data)
{
    ngx_http_toolgate_run_args_t   a;

    ngx_http_toolgate_run_args_begin(&a, redis);
    ngx_http_toolgate_run_args_run(&a, key, NULL);
    ngx_http_toolgate_run_args_word(&a, mode);
    ngx_http_toolgate_run_args_owner(&a);
    ngx_http_toolgate_run_args_number(&a, NGX_HTTP_TOOLGATE_RUN_LEASE_MS);
    ngx_http_toolgate_run_args_number(&a, retention);

    return ngx_http_toolgate_run_ask(pool, &a, &ngx_toolgate_script_run_open, done,
                                     data);
}


/* Before the one who asked hears that the run has ended, its driver is told. */
typedef struct {
    ngx_toolgate_redis_conf_t      *redis;
    ngx_str_t                       run;
    ngx_http_toolgate_run_done_pt   done;
    void                           *data;
} ngx_http_toolgate_run_cancel_t;


static void
ngx_http_toolgate_run_cancelled(void *data, ngx_http_toolgate_run_answer_t *answer)
{
    ngx_http_toolgate_run_cancel_t *cancel = data;

    if (answer->answer == NGX_HTTP_TOOLGATE_ANSWER_OK && answer->text.len) {
        ngx_http_toolgate_run_tell_driver(cancel->redis, &answer->text,
                                          &cancel->run);
    }

    cancel->done(cancel->data, answer);
}


ngx_int_t
ngx_http_toolgate_run_store_forget(ngx_toolgate_redis_conf_t *redis,
    ngx_http_toolgate_run_key_t *key, ngx_str_t *invocation, ngx_str_t *session)
{
    ngx_str_t                      account = ngx_null_string;
    ngx_http_toolgate_run_args_t   a;

    ngx_http_toolgate_run_args_begin(&a, redis);
    ngx_http_toolgate_run_args_key(&a, 'r', key, &key->run, "");
    ngx_http_toolgate_run_args_key(&a, 'r', key, &key->run, ":events");
    ngx_http_toolgate_run_args_key(&a, 'r', key, &key->run, ":input");
    ngx_http_toolgate_run_args_list(&a, key, &account);
    ngx_http_toolgate_run_args_list(&a, key, session);

    if (invocation->len) {
        ngx_http_toolgate_run_args_key(&a, 'i', key, invocation, "");
    }

    ngx_http_toolgate_run_args_text(&a, key->run);

    return ngx_http_toolgate_run_ask(NULL, &a, &ngx_toolgate_script_run_forget, NULL,
                                     NULL);
}


ngx_int_t
ngx_http_toolgate_run_store_cancel(ngx_pool_t *pool,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_run_key_t *key,
    ngx_str_t *invocation, const char *status, time_t retention,
    ngx_http_toolgate_run_done_pt done, void *data)
{
    ngx_http_toolgate_run_args_t     a;
    ngx_http_toolgate_run_cancel_t  *cancel;

    cancel = ngx_palloc(pool, sizeof(ngx_http_toolgate_run_cancel_t));
    if (cancel == NULL) {
        return NGX_ERROR;
    }

    cancel->redis = redis;
    cancel->done = done;
    cancel->data = data;
    cancel->run.len = key->run.len;
    cancel->run.data = ngx_pstrdup(pool, &key->run);

    if (cancel->run.data == NULL) {
        return NGX_ERROR;
    }

    ngx_http_toolgate_run_args_begin(&a, redis);
    ngx_http_toolgate_run_args_run(&a, key, invocation);
    ngx_http_toolgate_run_args_word(&a, status);
    ngx_http_toolgate_run_args_number(&a, retention);
    ngx_http_toolgate_run_args_number(&a, NGX_HTTP_TOOLGATE_RUN_INVOCATION_S);

    return ngx_http_toolgate_run_ask(pool, &a, &ngx_toolgate_script_run_cancel,
                                     ngx_http_toolgate_run_cancelled, cancel);
}


static void
ngx_http_toolgate_run_tell_driver(ngx_toolgate_redis_conf_t *redis,
    ngx_str_t *owner, ngx_str_t *run)
{
    u_char     name[NGX_HTTP_TOOLGATE_STORE_KEY_MAX];
    u_char     seconds[NGX_INT_T_LEN];
    ngx_str_t  args[3];

    ngx_str_set(&args[0], "RPUSH");
    args[1] = ngx_http_toolgate_inbox_key(redis, owner, name);
    args[2] = *run;

    (void) ngx_toolgate_redis_command(redis, ngx_cycle->log, 3, args,
                                      ngx_http_toolgate_run_heard,
                                      (void *) &ngx_toolgate_script_run_cancel);

    /* a worker that is gone never reads its own */

    ngx_str_set(&args[0], "PEXPIRE");
    args[2].data = seconds;
    args[2].len = ngx_sprintf(seconds, "%d", NGX_HTTP_TOOLGATE_RUN_LEASE_MS)
                  - seconds;

    (void) ngx_toolgate_redis_command(redis, ngx_cycle->log, 3, args,
                                      ngx_http_toolgate_run_heard,
                                      (void *) &ngx_toolgate_script_run_cancel);
}
