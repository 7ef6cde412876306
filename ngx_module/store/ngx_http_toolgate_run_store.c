/*
 * Questions about runs to Redis and what their answers mean. Every question is one
 * of the scripts of conf/redis/run_*.lua, or one command; one callback each.
 */

#include "ngx_http_toolgate_module.h"
#include "ngx_http_toolgate_run_input.h"
#include "ngx_toolgate_scripts.h"


#define NGX_HTTP_TOOLGATE_RUN_KEYS       6
#define NGX_HTTP_TOOLGATE_RUN_ARGS_MAX                                        \
    (NGX_HTTP_TOOLGATE_RUN_KEYS + 8 + 4 * NGX_HTTP_TOOLGATE_RUN_FIELDS_MAX)
#define NGX_HTTP_TOOLGATE_NUMBER_LEN     (NGX_INT64_LEN + 1)


typedef struct {
    ngx_toolgate_redis_conf_t      *redis;
    ngx_http_toolgate_run_done_pt   done;
    void                           *data;
    unsigned                        pooled:1;    /* it goes with somebody's pool */
} ngx_http_toolgate_run_question_t;

/* The arguments of a script while they are put together. */
typedef struct {
    ngx_toolgate_redis_conf_t  *redis;
    ngx_uint_t                  keys;
    ngx_uint_t                  n;
    ngx_uint_t                  numbers;
    ngx_str_t                   args[NGX_HTTP_TOOLGATE_RUN_ARGS_MAX];
    u_char                      names[NGX_HTTP_TOOLGATE_RUN_KEYS]
                                     [NGX_HTTP_TOOLGATE_STORE_KEY_MAX];
    u_char                      digits[8][NGX_HTTP_TOOLGATE_NUMBER_LEN];
} ngx_http_toolgate_run_args_t;


static void ngx_http_toolgate_run_args_begin(ngx_http_toolgate_run_args_t *a,
    ngx_toolgate_redis_conf_t *redis);
static void ngx_http_toolgate_run_args_key(ngx_http_toolgate_run_args_t *a,
    char letter, ngx_http_toolgate_run_key_t *key, ngx_str_t *id,
    const char *suffix);
static void ngx_http_toolgate_run_args_list(ngx_http_toolgate_run_args_t *a,
    ngx_http_toolgate_run_key_t *key, ngx_str_t *session);
static void ngx_http_toolgate_run_args_run(ngx_http_toolgate_run_args_t *a,
    ngx_http_toolgate_run_key_t *key, ngx_str_t *invocation);
static void ngx_http_toolgate_run_args_text(ngx_http_toolgate_run_args_t *a,
    ngx_str_t text);
static void ngx_http_toolgate_run_args_word(ngx_http_toolgate_run_args_t *a,
    const char *word);
static void ngx_http_toolgate_run_args_number(ngx_http_toolgate_run_args_t *a,
    int64_t number);
static ngx_int_t ngx_http_toolgate_run_ask(ngx_pool_t *pool,
    ngx_http_toolgate_run_args_t *a, const ngx_toolgate_script_t *script,
    ngx_http_toolgate_run_done_pt done, void *data);
static void ngx_http_toolgate_run_replied(void *data, redisReply *reply);
static void ngx_http_toolgate_run_heard(void *data, redisReply *reply);
static void ngx_http_toolgate_run_answer(redisReply *reply,
    ngx_http_toolgate_run_answer_t *answer);
static ngx_http_toolgate_answer_e ngx_http_toolgate_run_word(ngx_str_t *word);
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


static void
ngx_http_toolgate_run_args_begin(ngx_http_toolgate_run_args_t *a,
    ngx_toolgate_redis_conf_t *redis)
{
    a->redis = redis;
    a->keys = 0;
    a->n = 0;
    a->numbers = 0;
}


static void
ngx_http_toolgate_run_args_key(ngx_http_toolgate_run_args_t *a, char letter,
    ngx_http_toolgate_run_key_t *key, ngx_str_t *id, const char *suffix)
{
    a->args[a->n++] = ngx_http_toolgate_store_key(a->redis, letter, key, id, suffix,
                                                  a->names[a->keys]);
    a->keys++;
}


/* The runs of a session, or of the account. */
static void
ngx_http_toolgate_run_args_list(ngx_http_toolgate_run_args_t *a,
    ngx_http_toolgate_run_key_t *key, ngx_str_t *session)
{
    a->args[a->n++] = ngx_http_toolgate_run_list_key(a->redis, key, session,
                                                     a->names[a->keys]);
    a->keys++;
}


/* The run itself, its events, its input, and what its invocation id stands for. */
static void
ngx_http_toolgate_run_args_run(ngx_http_toolgate_run_args_t *a,
    ngx_http_toolgate_run_key_t *key, ngx_str_t *invocation)
{
    ngx_http_toolgate_run_args_key(a, 'r', key, &key->run, "");
    ngx_http_toolgate_run_args_key(a, 'r', key, &key->run, ":events");
    ngx_http_toolgate_run_args_key(a, 'r', key, &key->run, ":input");

    if (invocation && invocation->len) {
        ngx_http_toolgate_run_args_key(a, 'i', key, invocation, "");
    }
}


static void
ngx_http_toolgate_run_args_text(ngx_http_toolgate_run_args_t *a, ngx_str_t text)
{
    a->args[a->n++] = text;
}


static void
ngx_http_toolgate_run_args_word(ngx_http_toolgate_run_args_t *a, const char *word)
{
    a->args[a->n].data = (u_char *) word;
    a->args[a->n].len = ngx_strlen(word);
    a->n++;
}


static void
ngx_http_toolgate_run_args_number(ngx_http_toolgate_run_args_t *a, int64_t number)
{
    u_char  *digits;

    digits = a->digits[a->numbers++];

    a->args[a->n].data = digits;
    a->args[a->n].len = ngx_sprintf(digits, "%L", number) - digits;
    a->n++;
}


static void
ngx_http_toolgate_run_args_owner(ngx_http_toolgate_run_args_t *a)
{
    a->args[a->n].data = ngx_http_toolgate_owner;
    a->args[a->n].len = NGX_HTTP_TOOLGATE_OWNER_LEN;
    a->n++;
}


static void
ngx_http_toolgate_run_args_fields(ngx_http_toolgate_run_args_t *a,
    ngx_http_toolgate_field_t *fields, ngx_uint_t n)
{
    ngx_uint_t  i;

    for (i = 0; i < ngx_min(n, NGX_HTTP_TOOLGATE_RUN_FIELDS_MAX); i++) {
        ngx_http_toolgate_run_args_text(a, fields[i].name);
        ngx_http_toolgate_run_args_text(a, fields[i].value);
    }
}


static ngx_int_t
ngx_http_toolgate_run_ask(ngx_pool_t *pool, ngx_http_toolgate_run_args_t *a,
    const ngx_toolgate_script_t *script, ngx_http_toolgate_run_done_pt done,
    void *data)
{
    ngx_http_toolgate_run_question_t  *question;

    if (done == NULL) {
        return ngx_toolgate_redis_script(a->redis, ngx_cycle->log, script, a->keys,
                                         a->n, a->args,
                                         ngx_http_toolgate_run_heard,
                                         (void *) script)
               ? NGX_OK : NGX_ERROR;
    }

    question = pool
               ? ngx_palloc(pool, sizeof(ngx_http_toolgate_run_question_t))
               : ngx_alloc(sizeof(ngx_http_toolgate_run_question_t),
                           ngx_cycle->log);
    if (question == NULL) {
        return NGX_ERROR;
    }

    question->redis = a->redis;
    question->done = done;
    question->data = data;
    question->pooled = pool ? 1 : 0;

    if (pool == NULL) {

        if (ngx_toolgate_redis_script(a->redis, ngx_cycle->log, script, a->keys,
                                      a->n, a->args, ngx_http_toolgate_run_replied,
                                      question))
        {
            return NGX_OK;
        }

        ngx_free(question);
        return NGX_ERROR;
    }

    return ngx_toolgate_redis_ask(pool, a->redis, ngx_cycle->log, script, a->keys,
                                  a->n, a->args, ngx_http_toolgate_run_replied,
                                  question);
}


/* Nobody waits for it; whether the store is there is said where that matters. */
static void
ngx_http_toolgate_run_heard(void *data, redisReply *reply)
{
    const ngx_toolgate_script_t *script = data;

    if (reply && reply->type == REDIS_REPLY_ERROR) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "toolgate: redis script \"%s\" failed: %s", script->name,
                      reply->str);
    }
}


static void
ngx_http_toolgate_run_replied(void *data, redisReply *reply)
{
    ngx_http_toolgate_run_question_t *question = data;

    ngx_http_toolgate_run_answer_t    answer;
    ngx_http_toolgate_run_question_t  asked;

    asked = *question;

    if (!asked.pooled) {
        ngx_free(question);
    }

    ngx_http_toolgate_run_answer(reply, &answer);

    if (reply && reply->type == REDIS_REPLY_ERROR) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "toolgate: redis \"%V\" refused to keep a run: %s",
                      &asked.redis->url, reply->str);
    }

    asked.done(asked.data, &answer);
}


/* One word, or a list that begins with one; see the scripts. */
static void
ngx_http_toolgate_run_answer(redisReply *reply,
    ngx_http_toolgate_run_answer_t *answer)
{
    ngx_str_t     word;
    redisReply  **element;

    ngx_memzero(answer, sizeof(ngx_http_toolgate_run_answer_t));
    answer->answer = NGX_HTTP_TOOLGATE_ANSWER_AWAY;

    if (reply == NULL) {
        return;
    }

    element = &reply;

    if (reply->type == REDIS_REPLY_ARRAY && reply->elements) {
        element = reply->element;
    }

    if (element[0]->type != REDIS_REPLY_STRING
        && element[0]->type != REDIS_REPLY_STATUS)
    {
        return;
    }

    word.data = (u_char *) element[0]->str;
    word.len = (size_t) element[0]->len;

    answer->answer = ngx_http_toolgate_run_word(&word);
    answer->text = word;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 2) {
        return;
    }

    if (element[1]->type == REDIS_REPLY_INTEGER) {
        answer->number = element[1]->integer;

    } else if (element[1]->type == REDIS_REPLY_STRING) {
        answer->text.data = (u_char *) element[1]->str;
        answer->text.len = (size_t) element[1]->len;
    }

    if (reply->elements < 3) {
        return;
    }

    if (element[2]->type == REDIS_REPLY_STRING) {
        answer->input.data = (u_char *) element[2]->str;
        answer->input.len = (size_t) element[2]->len;
    }

    answer->pairs = element + 3;
    answer->pair_count = (reply->elements - 3) / 2;
}


static ngx_http_toolgate_answer_e
ngx_http_toolgate_run_word(ngx_str_t *word)
{
    ngx_uint_t  i;

    static const struct {
        const char                  *word;
        ngx_http_toolgate_answer_e   answer;
    } words[] = {
        { "ok", NGX_HTTP_TOOLGATE_ANSWER_OK },
        { "new", NGX_HTTP_TOOLGATE_ANSWER_OK },
        { "done", NGX_HTTP_TOOLGATE_ANSWER_OK },
        { "same", NGX_HTTP_TOOLGATE_ANSWER_SAME },
        { "conflict", NGX_HTTP_TOOLGATE_ANSWER_CONFLICT },
        { "gone", NGX_HTTP_TOOLGATE_ANSWER_GONE },
        { "lost", NGX_HTTP_TOOLGATE_ANSWER_LOST },
        { "full", NGX_HTTP_TOOLGATE_ANSWER_FULL },
        { "waiting", NGX_HTTP_TOOLGATE_ANSWER_WAITING },
        { "held", NGX_HTTP_TOOLGATE_ANSWER_HELD },
        { "free", NGX_HTTP_TOOLGATE_ANSWER_FREE },
        { "taken", NGX_HTTP_TOOLGATE_ANSWER_TAKEN },
        { NULL, NGX_HTTP_TOOLGATE_ANSWER_ENDED }
    };

    for (i = 0; words[i].word; i++) {
        if (word->len == ngx_strlen(words[i].word)
            && ngx_memcmp(word->data, words[i].word, word->len) == 0)
        {
            break;
        }
    }

    return words[i].answer;
}


ngx_str_t
ngx_http_toolgate_run_answer_field(ngx_http_toolgate_run_answer_t *answer,
    const char *name)
{
    size_t       len;
    ngx_str_t    value;
    ngx_uint_t   i;
    redisReply  *field, *held;

    len = ngx_strlen(name);

    for (i = 0; i < answer->pair_count; i++) {
        field = answer->pairs[2 * i];
        held = answer->pairs[2 * i + 1];

        if (field->type == REDIS_REPLY_STRING && (size_t) field->len == len
            && ngx_memcmp(field->str, name, len) == 0
            && held->type == REDIS_REPLY_STRING)
        {
            value.data = (u_char *) held->str;
            value.len = (size_t) held->len;
            return value;
        }
    }

    ngx_str_null(&value);

    return value;
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
