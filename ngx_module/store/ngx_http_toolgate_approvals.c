/*
 * Approvals in Redis: one question, one script (conf/redis/approval_*.lua), one answer
 * made plain.
 */

#include "ngx_http_toolgate_approvals.h"
#include "ngx_http_toolgate_run_store.h"
#include "ngx_toolgate_scripts.h"


/* of an approval, in the order in which the scripts tell them */
#define NGX_HTTP_TOOLGATE_APPROVAL_FIELDS  7


typedef struct {
    ngx_pool_t                             *pool;
    ngx_http_toolgate_approval_done_pt      decided;    /* one of the three */
    ngx_http_toolgate_approvals_page_pt     listed;
    ngx_http_toolgate_approvals_asked_pt    asked;
    void                                   *data;
    ngx_uint_t                              count;      /* that were asked for */
} ngx_http_toolgate_approval_question_t;


static ngx_str_t ngx_http_toolgate_approval_key(ngx_toolgate_redis_conf_t *redis,
    char letter, ngx_http_toolgate_run_key_t *key, const char *name, size_t len,
    u_char *buf);
static ngx_http_toolgate_approval_question_t *ngx_http_toolgate_approval_question(
    ngx_pool_t *pool, void *data);
static ngx_int_t ngx_http_toolgate_approval_send(
    ngx_http_toolgate_approval_question_t *question, ngx_log_t *log,
    ngx_toolgate_redis_conf_t *redis, const ngx_toolgate_script_t *script,
    ngx_uint_t nkeys, ngx_uint_t argc, ngx_str_t *args,
    ngx_toolgate_redis_done_pt done);
static void ngx_http_toolgate_approval_asked(void *data, redisReply *reply);
static void ngx_http_toolgate_approval_decided(void *data, redisReply *reply);
static void ngx_http_toolgate_approval_listed(void *data, redisReply *reply);
static ngx_int_t ngx_http_toolgate_approval_read(redisReply **fields,
    ngx_uint_t n, ngx_http_toolgate_approval_t *approval);
static ngx_str_t ngx_http_toolgate_approval_text(redisReply *reply);


ngx_int_t
ngx_http_toolgate_approvals_ask(ngx_pool_t *pool, ngx_log_t *log,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_run_key_t *key,
    ngx_msec_t ttl, time_t retention, ngx_http_toolgate_approval_ask_t *asks,
    ngx_uint_t n, ngx_http_toolgate_approvals_asked_pt done, void *data)
{
    u_char      names[NGX_HTTP_TOOLGATE_APPROVALS_MAX + 1]
                     [NGX_HTTP_TOOLGATE_STORE_KEY_MAX];
    u_char      wait[NGX_INT_T_LEN], seconds[NGX_TIME_T_LEN];
    ngx_str_t   args[4 * NGX_HTTP_TOOLGATE_APPROVALS_MAX + 4], *arg;
    ngx_uint_t  i;
    ngx_http_toolgate_approval_question_t  *question;

    question = ngx_http_toolgate_approval_question(pool, data);
    if (question == NULL) {
        return NGX_ERROR;
    }

    question->asked = done;
    question->count = n;

    args[0] = ngx_http_toolgate_approval_key(redis, 'a', key, "pending", 7, names[n]);

    for (i = 0; i < n; i++) {
        args[1 + i] = ngx_http_toolgate_approval_key(redis, 'a', key, asks[i].id,
                                                     ngx_strlen(asks[i].id),
                                                     names[i]);
    }

    arg = &args[1 + n];
    arg->data = wait;
    arg->len = ngx_sprintf(wait, "%M", ttl) - wait;
    arg++;
    arg->data = seconds;
    arg->len = ngx_sprintf(seconds, "%T", retention) - seconds;
    arg++;
    *arg++ = key->run;

    for (i = 0; i < n; i++) {
        arg->data = (u_char *) asks[i].id;
        arg->len = ngx_strlen(asks[i].id);
        arg++;
        arg->data = (u_char *) asks[i].binding;
        arg->len = TG_JSON_SHA256_HEX_LEN;
        arg++;
        *arg++ = asks[i].document;
    }

    return ngx_http_toolgate_approval_send(question, log, redis,
                                           &ngx_toolgate_script_approval_ask,
                                           n + 1, (ngx_uint_t) (arg - args), args,
                                           ngx_http_toolgate_approval_asked);
}


ngx_int_t
ngx_http_toolgate_approvals_decide(ngx_pool_t *pool, ngx_log_t *log,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_run_key_t *key,
    ngx_str_t *id, const char *decision, tg_str_t reason,
    ngx_http_toolgate_approval_done_pt done, void *data)
{
    u_char     names[3][NGX_HTTP_TOOLGATE_STORE_KEY_MAX];
    ngx_str_t  args[5];
    ngx_http_toolgate_approval_question_t  *question;

    question = ngx_http_toolgate_approval_question(pool, data);
    if (question == NULL) {
        return NGX_ERROR;
    }

    question->decided = done;

    args[0] = ngx_http_toolgate_approval_key(redis, 'a', key, (char *) id->data,
                                             id->len, names[0]);
    args[1] = ngx_http_toolgate_approval_key(redis, 'a', key, "pending", 7, names[1]);
    args[2].data = (u_char *) decision;
    args[2].len = ngx_strlen(decision);
    args[3].data = (u_char *) reason.data;
    args[3].len = reason.len;
    args[4] = ngx_http_toolgate_approval_key(redis, 'r', key, "", 0, names[2]);

    return ngx_http_toolgate_approval_send(question, log, redis,
                                           &ngx_toolgate_script_approval_decide, 2,
                                           5, args,
                                           ngx_http_toolgate_approval_decided);
}


ngx_int_t
ngx_http_toolgate_approvals_list(ngx_pool_t *pool, ngx_log_t *log,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_run_key_t *key,
    ngx_str_t *after, ngx_uint_t limit, ngx_http_toolgate_approvals_page_pt done,
    void *data)
{
    u_char     names[3][NGX_HTTP_TOOLGATE_STORE_KEY_MAX];
    u_char     most[NGX_INT_T_LEN], bytes[NGX_INT_T_LEN];
    ngx_str_t  args[6];
    ngx_http_toolgate_approval_question_t  *question;

    question = ngx_http_toolgate_approval_question(pool, data);
    if (question == NULL) {
        return NGX_ERROR;
    }

    question->listed = done;

    args[0] = ngx_http_toolgate_approval_key(redis, 'a', key, "pending", 7, names[0]);
    args[1] = ngx_http_toolgate_approval_key(redis, 'a', key, "", 0, names[1]);
    args[2] = ngx_http_toolgate_approval_key(redis, 'r', key, "", 0, names[2]);
    args[3] = *after;
    args[4].data = most;
    args[4].len = ngx_sprintf(most, "%ui", limit) - most;
    args[5].data = bytes;
    args[5].len = ngx_sprintf(bytes, "%d", NGX_HTTP_TOOLGATE_APPROVALS_PAGE_MAX)
                  - bytes;

    return ngx_http_toolgate_approval_send(question, log, redis,
                                           &ngx_toolgate_script_approval_list, 1, 6,
                                           args, ngx_http_toolgate_approval_listed);
}


static ngx_str_t
ngx_http_toolgate_approval_key(ngx_toolgate_redis_conf_t *redis, char letter,
    ngx_http_toolgate_run_key_t *key, const char *name, size_t len, u_char *buf)
{
    ngx_str_t  text;

    text.data = (u_char *) name;
    text.len = len;

    return ngx_http_toolgate_store_key(redis, letter, key, &text, "", buf);
}


static ngx_http_toolgate_approval_question_t *
ngx_http_toolgate_approval_question(ngx_pool_t *pool, void *data)
{
    ngx_http_toolgate_approval_question_t  *question;

    question = ngx_pcalloc(pool, sizeof(ngx_http_toolgate_approval_question_t));

    if (question) {
        question->pool = pool;
        question->data = data;
    }

    return question;
}


static ngx_int_t
ngx_http_toolgate_approval_send(ngx_http_toolgate_approval_question_t *question,
    ngx_log_t *log, ngx_toolgate_redis_conf_t *redis,
    const ngx_toolgate_script_t *script, ngx_uint_t nkeys, ngx_uint_t argc,
    ngx_str_t *args, ngx_toolgate_redis_done_pt done)
{
    return ngx_toolgate_redis_ask(question->pool, redis, log, script, nkeys, argc,
                                  args, done, question);
}


static void
ngx_http_toolgate_approval_asked(void *data, redisReply *reply)
{
    ngx_http_toolgate_approval_question_t *question = data;

    ngx_str_t                             text;
    ngx_uint_t                            i;
    ngx_http_toolgate_approvals_asked_t   asked;

    ngx_memzero(&asked, sizeof(asked));

    if (reply && reply->type == REDIS_REPLY_ARRAY
        && reply->elements == 2 + 2 * question->count)
    {
        asked.up = 1;
        text = ngx_http_toolgate_approval_text(reply->element[0]);
        asked.created = ngx_atotm(text.data, text.len);
        text = ngx_http_toolgate_approval_text(reply->element[1]);
        asked.expires = ngx_atoof(text.data, text.len);

        for (i = 0; i < question->count; i++) {
            asked.status[i] = ngx_http_toolgate_approval_text(
                                  reply->element[2 + 2 * i]);
            asked.reason[i] = ngx_http_toolgate_approval_text(
                                  reply->element[3 + 2 * i]);
        }
    }

    question->asked(question->data, &asked);
}


static void
ngx_http_toolgate_approval_decided(void *data, redisReply *reply)
{
    ngx_http_toolgate_approval_question_t *question = data;

    tg_str_t                              word;
    ngx_http_toolgate_approval_answer_t   answer;

    ngx_memzero(&answer, sizeof(answer));
    answer.state = NGX_HTTP_TOOLGATE_APPROVAL_AWAY;

    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY || reply->elements == 0) {
        question->decided(question->data, &answer);
        return;
    }

    word.data = reply->element[0]->str;
    word.len = (size_t) reply->element[0]->len;

    if (reply->elements == 1) {
        answer.state = NGX_HTTP_TOOLGATE_APPROVAL_NONE;

    } else if (reply->elements == 3 + NGX_HTTP_TOOLGATE_APPROVAL_FIELDS
               && ngx_http_toolgate_approval_read(reply->element + 3,
                                                  reply->elements - 3,
                                                  &answer.approval) == NGX_OK)
    {
        answer.state = tg_str_eq(word, tg_str("ok"))
                       ? NGX_HTTP_TOOLGATE_APPROVAL_OK
                       : tg_str_eq(word, tg_str("already_decided"))
                       ? NGX_HTTP_TOOLGATE_APPROVAL_DECIDED
                       : NGX_HTTP_TOOLGATE_APPROVAL_EXPIRED;
        answer.run = ngx_http_toolgate_approval_text(reply->element[1]);
        answer.go_on =
            (ngx_http_toolgate_approval_text(reply->element[2]).len != 0);
    }

    question->decided(question->data, &answer);
}


static void
ngx_http_toolgate_approval_listed(void *data, redisReply *reply)
{
    ngx_http_toolgate_approval_question_t *question = data;

    size_t                               i;
    redisReply                          *one;
    ngx_http_toolgate_approval_t         approvals[NGX_HTTP_TOOLGATE_APPROVALS_PAGE];
    ngx_http_toolgate_approvals_page_t   page;

    ngx_memzero(&page, sizeof(page));
    page.state = NGX_HTTP_TOOLGATE_APPROVAL_AWAY;
    page.approvals = approvals;

    if (reply && reply->type == REDIS_REPLY_ARRAY && reply->elements
        && reply->elements <= NGX_HTTP_TOOLGATE_APPROVALS_PAGE + 1
        && reply->element[0]->type == REDIS_REPLY_INTEGER)
    {
        page.state = reply->element[0]->integer < 0 ? NGX_HTTP_TOOLGATE_APPROVAL_NONE
                                                    : NGX_HTTP_TOOLGATE_APPROVAL_OK;
        page.more = (reply->element[0]->integer == 1);
        page.count = reply->elements - 1;

        for (i = 0; i < page.count; i++) {
            one = reply->element[i + 1];

            if (one->type != REDIS_REPLY_ARRAY
                || ngx_http_toolgate_approval_read(one->element, one->elements,
                                                   &approvals[i]) != NGX_OK)
            {
                page.state = NGX_HTTP_TOOLGATE_APPROVAL_AWAY;
                break;
            }
        }
    }

    question->listed(question->data, &page);
}


static ngx_int_t
ngx_http_toolgate_approval_read(redisReply **fields, ngx_uint_t n,
    ngx_http_toolgate_approval_t *approval)
{
    if (n != NGX_HTTP_TOOLGATE_APPROVAL_FIELDS) {
        return NGX_ERROR;
    }

    approval->id = ngx_http_toolgate_approval_text(fields[0]);
    approval->status = ngx_http_toolgate_approval_text(fields[1]);
    approval->created = ngx_http_toolgate_approval_text(fields[2]);
    approval->expires = ngx_http_toolgate_approval_text(fields[3]);
    approval->decided = ngx_http_toolgate_approval_text(fields[4]);
    approval->reason = ngx_http_toolgate_approval_text(fields[5]);
    approval->document = ngx_http_toolgate_approval_text(fields[6]);

    return NGX_OK;
}


static ngx_str_t
ngx_http_toolgate_approval_text(redisReply *reply)
{
    ngx_str_t  text = ngx_null_string;

    if (reply->type == REDIS_REPLY_STRING) {
        text.data = (u_char *) reply->str;
        text.len = (size_t) reply->len;
    }

    return text;
}
