/*
 * A question about a run to Redis: the arguments of its script, the one callback, what
 * the answer means. Which questions there are is not known here.
 */

#include "ngx_http_toolgate_run_question.h"


typedef struct {
    ngx_toolgate_redis_conf_t      *redis;
    ngx_http_toolgate_run_done_pt   done;
    void                           *data;
    unsigned                        pooled:1;    /* it goes with somebody's pool */
} ngx_http_toolgate_run_question_t;


static void ngx_http_toolgate_run_replied(void *data, redisReply *reply);
static void ngx_http_toolgate_run_answer(redisReply *reply,
    ngx_http_toolgate_run_answer_t *answer);
static ngx_http_toolgate_answer_e ngx_http_toolgate_run_word(ngx_str_t *word);


void
ngx_http_toolgate_run_args_begin(ngx_http_toolgate_run_args_t *a,
    ngx_toolgate_redis_conf_t *redis)
{
    a->redis = redis;
    a->keys = 0;
    a->n = 0;
    a->numbers = 0;
}


void
ngx_http_toolgate_run_args_key(ngx_http_toolgate_run_args_t *a, char letter,
    ngx_http_toolgate_run_key_t *key, ngx_str_t *id, const char *suffix)
{
    a->args[a->n++] = ngx_http_toolgate_store_key(a->redis, letter, key, id, suffix,
                                                  a->names[a->keys]);
    a->keys++;
}


/* The runs of a session, or of the account. */
void
ngx_http_toolgate_run_args_list(ngx_http_toolgate_run_args_t *a,
    ngx_http_toolgate_run_key_t *key, ngx_str_t *session)
{
    a->args[a->n++] = ngx_http_toolgate_run_list_key(a->redis, key, session,
                                                     a->names[a->keys]);
    a->keys++;
}


/* The run itself, its events, its input, and what its invocation id stands for. */
void
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


void
ngx_http_toolgate_run_args_text(ngx_http_toolgate_run_args_t *a, ngx_str_t text)
{
    a->args[a->n++] = text;
}


void
ngx_http_toolgate_run_args_word(ngx_http_toolgate_run_args_t *a, const char *word)
{
    a->args[a->n].data = (u_char *) word;
    a->args[a->n].len = ngx_strlen(word);
    a->n++;
}


void
ngx_http_toolgate_run_args_number(ngx_http_toolgate_run_args_t *a, int64_t number)
{
    u_char  *digits;

    digits = a->digits[a->numbers++];

    a->args[a->n].data = digits;
    a->args[a->n].len = ngx_sprintf(digits, "%L", number) - digits;
    a->n++;
}


void
ngx_http_toolgate_run_args_owner(ngx_http_toolgate_run_args_t *a)
{
    a->args[a->n].data = ngx_http_toolgate_owner;
    a->args[a->n].len = NGX_HTTP_TOOLGATE_OWNER_LEN;
    a->n++;
}


void
ngx_http_toolgate_run_args_fields(ngx_http_toolgate_run_args_t *a,
    ngx_http_toolgate_field_t *fields, ngx_uint_t n)
{
    ngx_uint_t  i;

    for (i = 0; i < ngx_min(n, NGX_HTTP_TOOLGATE_RUN_FIELDS_MAX); i++) {
        ngx_http_toolgate_run_args_text(a, fields[i].name);
        ngx_http_toolgate_run_args_text(a, fields[i].value);
    }
}


ngx_int_t
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


/* Whether the store is there is said where that matters. */
void
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
