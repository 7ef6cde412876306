/*
 * Responses in Redis: one question, one command or script (conf/redis/response_*.lua),
 * one answer made plain. A long input goes there slice by slice, each when the one
 * before it was taken, so that it holds up nobody.
 */

#include "ngx_http_toolgate_module.h"
#include "ngx_http_toolgate_response_store.h"
#include "ngx_toolgate_scripts.h"


/* prefix, "o:{", three labels of at most 64 bytes with what divides them */
#define NGX_HTTP_TOOLGATE_RESPONSE_KEY_MAX                                    \
    (NGX_TOOLGATE_REDIS_PREFIX_MAX + 3 * 64 + sizeof("o:{/}::input"))

#define NGX_HTTP_TOOLGATE_RESPONSE_ARGS  17


typedef struct ngx_http_toolgate_response_ask_s  ngx_http_toolgate_response_ask_t;

/* Makes a reply plain; answer->state is AWAY before. */
typedef void (*ngx_http_toolgate_response_read_pt)(redisReply *reply,
    ngx_http_toolgate_response_answer_t *answer);

struct ngx_http_toolgate_response_ask_s {
    ngx_http_toolgate_response_read_pt   read;
    ngx_http_toolgate_response_done_pt   done;
    void                                *data;
};

/* The names of a response's keys, and what both begin with. */
typedef struct {
    u_char       buf[NGX_HTTP_TOOLGATE_RESPONSE_KEY_MAX];
    ngx_str_t    prefix;
    ngx_str_t    response;
    ngx_str_t    input;
} ngx_http_toolgate_response_names_t;

/* A long input on its way. */
typedef struct {
    ngx_pool_t                          *pool;
    ngx_toolgate_redis_conf_t           *redis;
    ngx_http_toolgate_response_names_t   names;
    time_t                               retention;
    ngx_str_t                            input;
    size_t                               sent;
    size_t                               slice;      /* the one under way */
    u_char                              *data;
    size_t                               size;
} ngx_http_toolgate_response_upload_t;


static void ngx_http_toolgate_response_names(ngx_toolgate_redis_conf_t *redis,
    ngx_http_toolgate_response_key_t *key,
    ngx_http_toolgate_response_names_t *names);
static ngx_str_t ngx_http_toolgate_response_number(u_char *buf, size_t n);
static void ngx_http_toolgate_response_saved(void *data, redisReply *reply);
static void ngx_http_toolgate_response_told(ngx_toolgate_redis_conf_t *redis,
    ngx_uint_t taken);
static void ngx_http_toolgate_response_upload(ngx_toolgate_redis_conf_t *redis,
    ngx_http_toolgate_response_names_t *names, time_t retention,
    ngx_http_toolgate_response_save_t *save);
static void ngx_http_toolgate_response_slice(
    ngx_http_toolgate_response_upload_t *up);
static void ngx_http_toolgate_response_sliced(void *data, redisReply *reply);
static void ngx_http_toolgate_response_upload_end(
    ngx_http_toolgate_response_upload_t *up, ngx_uint_t taken);
static ngx_int_t ngx_http_toolgate_response_ask(ngx_pool_t *pool, ngx_log_t *log,
    ngx_toolgate_redis_conf_t *redis, const ngx_toolgate_script_t *script,
    ngx_uint_t nkeys, ngx_uint_t argc, ngx_str_t *args,
    ngx_http_toolgate_response_read_pt read,
    ngx_http_toolgate_response_done_pt done, void *data);
static void ngx_http_toolgate_response_reply(void *data, redisReply *reply);
static void ngx_http_toolgate_response_read_text(redisReply *reply,
    ngx_http_toolgate_response_answer_t *answer);
static void ngx_http_toolgate_response_read_deleted(redisReply *reply,
    ngx_http_toolgate_response_answer_t *answer);
static void ngx_http_toolgate_response_read_list(redisReply *reply,
    ngx_http_toolgate_response_answer_t *answer);


/* whether this worker has said that responses are being lost */
static ngx_uint_t  ngx_http_toolgate_response_away;


static void
ngx_http_toolgate_response_names(ngx_toolgate_redis_conf_t *redis,
    ngx_http_toolgate_response_key_t *key, ngx_http_toolgate_response_names_t *names)
{
    u_char  *p, *last;

    last = names->buf + sizeof(names->buf);

    p = ngx_slprintf(names->buf, last, "%Vo:{%V/%V}:", &redis->prefix,
                     &key->project, &key->account);
    names->prefix.data = names->buf;
    names->prefix.len = p - names->buf;

    p = ngx_slprintf(p, last, "%V", &key->response);
    names->response.data = names->buf;
    names->response.len = p - names->buf;

    p = ngx_slprintf(p, last, ":input");
    names->input.data = names->buf;
    names->input.len = p - names->buf;
}


static ngx_str_t
ngx_http_toolgate_response_number(u_char *buf, size_t n)
{
    ngx_str_t  text;

    text.data = buf;
    text.len = ngx_sprintf(buf, "%uz", n) - buf;

    return text;
}


void
ngx_http_toolgate_response_save(ngx_toolgate_redis_conf_t *redis,
    ngx_http_toolgate_response_key_t *key, time_t retention,
    ngx_http_toolgate_response_save_t *save)
{
    u_char                              seconds[NGX_SIZE_T_LEN];
    u_char                              bytes[NGX_SIZE_T_LEN];
    ngx_str_t                           args[NGX_HTTP_TOOLGATE_RESPONSE_ARGS];
    ngx_uint_t                          n;
    ngx_http_toolgate_response_names_t  names;

    ngx_http_toolgate_response_names(redis, key, &names);

    args[0] = names.response;
    args[1] = names.input;
    args[2] = ngx_http_toolgate_response_number(seconds, (size_t) retention);
    ngx_str_set(&args[3], "0");
    args[4] = save->input;

    if (save->there) {
        ngx_str_set(&args[3], "1");
    }

    if (save->data) {
        ngx_str_null(&args[4]);
    }

    ngx_str_set(&args[5], "object");
    args[6] = save->object;
    ngx_str_set(&args[7], "status");
    args[8].data = (u_char *) save->status;
    args[8].len = ngx_strlen(save->status);
    ngx_str_set(&args[9], "added");
    args[10] = save->added;
    ngx_str_set(&args[11], "previous");
    args[12] = save->previous;
    ngx_str_set(&args[13], "answers");
    ngx_str_set(&args[14], "0");
    ngx_str_set(&args[15], "bytes");
    args[16] = ngx_http_toolgate_response_number(bytes, save->input.len);

    if (save->answers) {
        ngx_str_set(&args[14], "1");
    }

    /* of one that is there, only what is new */

    n = save->there ? 11 : NGX_HTTP_TOOLGATE_RESPONSE_ARGS;

    if (!ngx_toolgate_redis_up(redis)
        || ngx_toolgate_redis_script(redis, ngx_cycle->log,
                                     &ngx_toolgate_script_response_save, 2,
                                     n, args, ngx_http_toolgate_response_saved, redis)
           == NULL)
    {
        ngx_http_toolgate_response_told(redis, 0);
        ngx_http_toolgate_bytes_free(NULL, save->data, save->size);
        return;
    }

    if (save->data) {
        ngx_http_toolgate_response_upload(redis, &names, retention, save);
    }
}


static void
ngx_http_toolgate_response_saved(void *data, redisReply *reply)
{
    ngx_http_toolgate_response_told(data, reply
                                          && reply->type == REDIS_REPLY_INTEGER);
}


static void
ngx_http_toolgate_response_told(ngx_toolgate_redis_conf_t *redis, ngx_uint_t taken)
{
    if (taken == !ngx_http_toolgate_response_away) {
        return;
    }

    ngx_http_toolgate_response_away = !taken;

    if (taken) {
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "toolgate: redis \"%V\" takes responses again", &redis->url);

    } else {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "toolgate: redis \"%V\" does not take responses: they are "
                      "lost until it does", &redis->url);
    }
}


static void
ngx_http_toolgate_response_upload(ngx_toolgate_redis_conf_t *redis,
    ngx_http_toolgate_response_names_t *names, time_t retention,
    ngx_http_toolgate_response_save_t *save)
{
    ngx_pool_t                           *pool;
    ngx_http_toolgate_response_upload_t  *up;

    /* it outlives the request */

    pool = ngx_create_pool(NGX_MIN_POOL_SIZE + sizeof(*up), ngx_cycle->log);
    up = pool ? ngx_palloc(pool, sizeof(ngx_http_toolgate_response_upload_t)) : NULL;

    if (up == NULL) {
        ngx_http_toolgate_bytes_free(NULL, save->data, save->size);

        if (pool) {
            ngx_destroy_pool(pool);
        }

        ngx_http_toolgate_response_told(redis, 0);
        return;
    }

    up->pool = pool;
    up->redis = redis;
    up->retention = retention;
    up->input = save->input;
    up->sent = 0;
    up->data = save->data;
    up->size = save->size;

    ngx_memcpy(up->names.buf, names->buf, sizeof(names->buf));
    up->names.response.data = up->names.buf;
    up->names.response.len = names->response.len;
    up->names.input.data = up->names.buf;
    up->names.input.len = names->input.len;

    ngx_http_toolgate_response_slice(up);
}


static void
ngx_http_toolgate_response_slice(ngx_http_toolgate_response_upload_t *up)
{
    u_char     seconds[NGX_SIZE_T_LEN], sent[NGX_SIZE_T_LEN];
    ngx_str_t  args[5];

    up->slice = ngx_min(up->input.len - up->sent, NGX_HTTP_TOOLGATE_RESPONSE_SLICE);

    args[0] = up->names.response;
    args[1] = up->names.input;
    args[2] = ngx_http_toolgate_response_number(seconds, (size_t) up->retention);
    args[3] = ngx_http_toolgate_response_number(sent, up->sent);
    args[4].data = up->input.data + up->sent;
    args[4].len = up->slice;

    if (ngx_toolgate_redis_script(up->redis, ngx_cycle->log,
                                  &ngx_toolgate_script_response_input, 2, 5, args,
                                  ngx_http_toolgate_response_sliced, up)
        == NULL)
    {
        ngx_http_toolgate_response_upload_end(up, 0);
    }
}


static void
ngx_http_toolgate_response_sliced(void *data, redisReply *reply)
{
    ngx_http_toolgate_response_upload_t *up = data;

    if (reply == NULL || reply->type != REDIS_REPLY_INTEGER) {
        ngx_http_toolgate_response_upload_end(up, 0);
        return;
    }

    up->sent += up->slice;

    /* 0: it was deleted meanwhile */

    if (reply->integer == 0 || up->sent == up->input.len) {
        ngx_http_toolgate_response_upload_end(up, 1);
        return;
    }

    ngx_http_toolgate_response_slice(up);
}


static void
ngx_http_toolgate_response_upload_end(ngx_http_toolgate_response_upload_t *up,
    ngx_uint_t taken)
{
    ngx_http_toolgate_response_told(up->redis, taken);
    ngx_http_toolgate_bytes_free(NULL, up->data, up->size);
    ngx_destroy_pool(up->pool);
}


ngx_int_t
ngx_http_toolgate_response_get(ngx_pool_t *pool, ngx_log_t *log,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_response_key_t *key,
    ngx_http_toolgate_response_done_pt done, void *data)
{
    ngx_str_t                           args[3];
    ngx_http_toolgate_response_names_t  names;

    ngx_http_toolgate_response_names(redis, key, &names);

    ngx_str_set(&args[0], "HGET");
    args[1] = names.response;
    ngx_str_set(&args[2], "object");

    return ngx_http_toolgate_response_ask(pool, log, redis, NULL, 0, 3, args,
                                          ngx_http_toolgate_response_read_text,
                                          done, data);
}


ngx_int_t
ngx_http_toolgate_response_input(ngx_pool_t *pool, ngx_log_t *log,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_response_key_t *key,
    ngx_http_toolgate_response_done_pt done, void *data)
{
    ngx_str_t                           args[2];
    ngx_http_toolgate_response_names_t  names;

    ngx_http_toolgate_response_names(redis, key, &names);

    args[0] = names.response;
    args[1] = names.input;

    return ngx_http_toolgate_response_ask(pool, log, redis,
                                          &ngx_toolgate_script_response_input_get,
                                          2, 2, args,
                                          ngx_http_toolgate_response_read_list,
                                          done, data);
}


ngx_int_t
ngx_http_toolgate_response_delete(ngx_pool_t *pool, ngx_log_t *log,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_response_key_t *key,
    ngx_http_toolgate_response_done_pt done, void *data)
{
    ngx_str_t                           args[3];
    ngx_http_toolgate_response_names_t  names;

    ngx_http_toolgate_response_names(redis, key, &names);

    ngx_str_set(&args[0], "DEL");
    args[1] = names.response;
    args[2] = names.input;

    return ngx_http_toolgate_response_ask(pool, log, redis, NULL, 0, 3, args,
                                          ngx_http_toolgate_response_read_deleted,
                                          done, data);
}


ngx_int_t
ngx_http_toolgate_response_chain(ngx_pool_t *pool, ngx_log_t *log,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_response_key_t *key,
    time_t retention, size_t bytes, ngx_http_toolgate_response_done_pt done,
    void *data)
{
    u_char                              seconds[NGX_SIZE_T_LEN];
    u_char                              most[NGX_SIZE_T_LEN];
    ngx_str_t                           args[5];
    ngx_http_toolgate_response_names_t  names;

    ngx_http_toolgate_response_names(redis, key, &names);

    args[0] = names.response;
    args[1] = key->response;
    args[2] = names.prefix;
    args[3] = ngx_http_toolgate_response_number(most, bytes);
    args[4] = ngx_http_toolgate_response_number(seconds, (size_t) retention);

    return ngx_http_toolgate_response_ask(pool, log, redis,
                                          &ngx_toolgate_script_response_chain, 1,
                                          5, args,
                                          ngx_http_toolgate_response_read_list,
                                          done, data);
}


/* script NULL: a plain command. */
static ngx_int_t
ngx_http_toolgate_response_ask(ngx_pool_t *pool, ngx_log_t *log,
    ngx_toolgate_redis_conf_t *redis, const ngx_toolgate_script_t *script,
    ngx_uint_t nkeys, ngx_uint_t argc, ngx_str_t *args,
    ngx_http_toolgate_response_read_pt read,
    ngx_http_toolgate_response_done_pt done, void *data)
{
    ngx_http_toolgate_response_ask_t  *ask;

    ask = ngx_palloc(pool, sizeof(ngx_http_toolgate_response_ask_t));
    if (ask == NULL) {
        return NGX_ERROR;
    }

    ask->read = read;
    ask->done = done;
    ask->data = data;

    return ngx_toolgate_redis_ask(pool, redis, log, script, nkeys, argc, args,
                                  ngx_http_toolgate_response_reply, ask);
}


static void
ngx_http_toolgate_response_reply(void *data, redisReply *reply)
{
    ngx_http_toolgate_response_ask_t *ask = data;

    ngx_http_toolgate_response_answer_t  answer;

    ngx_memzero(&answer, sizeof(answer));
    answer.state = NGX_HTTP_TOOLGATE_RESPONSE_AWAY;

    if (reply) {
        ask->read(reply, &answer);
    }

    ask->done(ask->data, &answer);
}


static void
ngx_http_toolgate_response_read_text(redisReply *reply,
    ngx_http_toolgate_response_answer_t *answer)
{
    if (reply->type == REDIS_REPLY_NIL) {
        answer->state = NGX_HTTP_TOOLGATE_RESPONSE_NONE;

    } else if (reply->type == REDIS_REPLY_STRING) {
        answer->state = NGX_HTTP_TOOLGATE_RESPONSE_OK;
        answer->text.data = (u_char *) reply->str;
        answer->text.len = reply->len;
    }
}


static void
ngx_http_toolgate_response_read_deleted(redisReply *reply,
    ngx_http_toolgate_response_answer_t *answer)
{
    if (reply->type == REDIS_REPLY_INTEGER) {
        answer->state = reply->integer ? NGX_HTTP_TOOLGATE_RESPONSE_OK
                                       : NGX_HTTP_TOOLGATE_RESPONSE_NONE;
    }
}


/* A list whose first word is a state. */
static void
ngx_http_toolgate_response_read_list(redisReply *reply,
    ngx_http_toolgate_response_answer_t *answer)
{
    size_t  i;

    static const struct {
        const char                          *word;
        ngx_http_toolgate_response_state_e   state;
    } words[] = {
        { "ok", NGX_HTTP_TOOLGATE_RESPONSE_OK },
        { "none", NGX_HTTP_TOOLGATE_RESPONSE_NONE },
        { "live", NGX_HTTP_TOOLGATE_RESPONSE_LIVE },
        { "broken", NGX_HTTP_TOOLGATE_RESPONSE_BROKEN }
    };

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0) {
        return;
    }

    for (i = 0; i < reply->elements; i++) {
        if (reply->element[i]->type != REDIS_REPLY_STRING) {
            return;
        }
    }

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (ngx_strcmp(reply->element[0]->str, words[i].word) == 0) {
            answer->state = words[i].state;
        }
    }

    answer->parts = reply->element + 1;
    answer->part_count = reply->elements - 1;

    if (answer->part_count == 1) {
        answer->text.data = (u_char *) answer->parts[0]->str;
        answer->text.len = answer->parts[0]->len;
    }
}
