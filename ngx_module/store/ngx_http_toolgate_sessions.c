/*
 * Sessions in Redis: one question, one script (conf/redis/session_*.lua), one answer
 * made plain. Which answers there are is in the header.
 */

#include "ngx_http_toolgate_sessions.h"
#include "ngx_toolgate_scripts.h"


/* prefix, "s:{", three labels of at most 64 bytes with what divides them */
#define NGX_HTTP_TOOLGATE_SESSION_KEY_MAX                                     \
    (NGX_TOOLGATE_REDIS_PREFIX_MAX + 3 * 64 + sizeof("s:{/}:/messages"))

#define NGX_HTTP_TOOLGATE_SESSION_KEYS    2
#define NGX_HTTP_TOOLGATE_SESSION_FIELDS  9


typedef struct ngx_http_toolgate_session_ask_s  ngx_http_toolgate_session_ask_t;

/* Makes a reply plain; answer->state is AWAY before. */
typedef void (*ngx_http_toolgate_session_read_pt)(redisReply *reply,
    ngx_http_toolgate_session_answer_t *answer);

struct ngx_http_toolgate_session_ask_s {
    ngx_http_toolgate_session_read_pt    read;
    ngx_http_toolgate_session_done_pt    done;
    void                                *data;
};

/* The names of a session's keys. */
typedef struct {
    u_char       session[NGX_HTTP_TOOLGATE_SESSION_KEY_MAX];
    u_char       messages[NGX_HTTP_TOOLGATE_SESSION_KEY_MAX];
} ngx_http_toolgate_session_names_t;


static void ngx_http_toolgate_session_keys(ngx_toolgate_redis_conf_t *redis,
    ngx_http_toolgate_session_key_t *key, ngx_http_toolgate_session_names_t *names,
    ngx_str_t args[NGX_HTTP_TOOLGATE_SESSION_KEYS]);
static ngx_str_t ngx_http_toolgate_session_number(u_char *buf, size_t n);
static ngx_int_t ngx_http_toolgate_session_ask(ngx_pool_t *pool, ngx_log_t *log,
    ngx_toolgate_redis_conf_t *redis, const ngx_toolgate_script_t *script,
    ngx_uint_t nkeys, ngx_uint_t argc, ngx_str_t *args,
    ngx_http_toolgate_session_read_pt read, ngx_http_toolgate_session_done_pt done,
    void *data);
static void ngx_http_toolgate_session_reply(void *data, redisReply *reply);
static void ngx_http_toolgate_session_tell(ngx_toolgate_redis_conf_t *redis,
    ngx_http_toolgate_session_key_t *key, time_t retention, ngx_str_t *run,
    ngx_str_t *args, ngx_uint_t argc);
static void ngx_http_toolgate_session_kept(void *data, redisReply *reply);
static void ngx_http_toolgate_session_told(ngx_toolgate_redis_conf_t *redis,
    ngx_uint_t taken);
static void ngx_http_toolgate_session_read_created(redisReply *reply,
    ngx_http_toolgate_session_answer_t *answer);
static void ngx_http_toolgate_session_read_fields(redisReply *reply,
    ngx_http_toolgate_session_answer_t *answer);
static void ngx_http_toolgate_session_read_deleted(redisReply *reply,
    ngx_http_toolgate_session_answer_t *answer);
static void ngx_http_toolgate_session_read_messages(redisReply *reply,
    ngx_http_toolgate_session_answer_t *answer);
static void ngx_http_toolgate_session_read_begun(redisReply *reply,
    ngx_http_toolgate_session_answer_t *answer);
static ngx_str_t ngx_http_toolgate_session_text(redisReply *reply);
static ngx_uint_t ngx_http_toolgate_session_is(redisReply *reply, const char *word);


/* whether this worker has said that messages are being lost */
static ngx_uint_t  ngx_http_toolgate_session_away;


ngx_int_t
ngx_http_toolgate_session_create(ngx_pool_t *pool, ngx_log_t *log,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_session_key_t *key,
    time_t retention, ngx_str_t *agent, ngx_str_t *user, ngx_str_t *metadata,
    ngx_http_toolgate_session_done_pt done, void *data)
{
    u_char                             seconds[NGX_SIZE_T_LEN];
    ngx_str_t                          args[8];
    ngx_http_toolgate_session_names_t  names;

    ngx_http_toolgate_session_keys(redis, key, &names, args);

    /* the list comes with the first message */

    args[1] = ngx_http_toolgate_session_number(seconds, (size_t) retention);
    ngx_str_set(&args[2], "agent");
    args[3] = *agent;
    ngx_str_set(&args[4], "user");
    args[5] = *user;
    ngx_str_set(&args[6], "metadata");
    args[7] = *metadata;

    return ngx_http_toolgate_session_ask(pool, log, redis,
                                         &ngx_toolgate_script_session_create, 1, 8,
                                         args,
                                         ngx_http_toolgate_session_read_created,
                                         done, data);
}


ngx_int_t
ngx_http_toolgate_session_get(ngx_pool_t *pool, ngx_log_t *log,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_session_key_t *key,
    ngx_http_toolgate_session_done_pt done, void *data)
{
    ngx_str_t                          args[NGX_HTTP_TOOLGATE_SESSION_FIELDS + 2];
    ngx_uint_t                         i;
    ngx_http_toolgate_session_names_t  names;

    /* in the order that read_fields knows */

    static ngx_str_t  fields[NGX_HTTP_TOOLGATE_SESSION_FIELDS] = {
        ngx_string("created_at"), ngx_string("at"), ngx_string("agent"),
        ngx_string("user"), ngx_string("metadata"), ngx_string("count"),
        ngx_string("segment"), ngx_string("run"), ngx_string("flagged")
    };

    ngx_http_toolgate_session_keys(redis, key, &names, &args[1]);
    ngx_str_set(&args[0], "HMGET");

    for (i = 0; i < NGX_HTTP_TOOLGATE_SESSION_FIELDS; i++) {
        args[i + 2] = fields[i];
    }

    return ngx_http_toolgate_session_ask(pool, log, redis, NULL, 1, i + 2, args,
                                         ngx_http_toolgate_session_read_fields,
                                         done, data);
}


ngx_int_t
ngx_http_toolgate_session_delete(ngx_pool_t *pool, ngx_log_t *log,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_session_key_t *key,
    ngx_http_toolgate_session_done_pt done, void *data)
{
    ngx_str_t                          args[NGX_HTTP_TOOLGATE_SESSION_KEYS];
    ngx_http_toolgate_session_names_t  names;

    ngx_http_toolgate_session_keys(redis, key, &names, args);

    return ngx_http_toolgate_session_ask(pool, log, redis,
                                         &ngx_toolgate_script_session_delete, 2, 2,
                                         args,
                                         ngx_http_toolgate_session_read_deleted,
                                         done, data);
}


ngx_int_t
ngx_http_toolgate_session_messages(ngx_pool_t *pool, ngx_log_t *log,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_session_key_t *key,
    ngx_str_t *after, ngx_uint_t limit, ngx_http_toolgate_session_done_pt done,
    void *data)
{
    u_char                             most[NGX_SIZE_T_LEN], bytes[NGX_SIZE_T_LEN];
    ngx_str_t                          args[NGX_HTTP_TOOLGATE_SESSION_KEYS + 3];
    ngx_http_toolgate_session_names_t  names;

    ngx_http_toolgate_session_keys(redis, key, &names, args);

    args[2] = *after;
    args[3] = ngx_http_toolgate_session_number(most, limit);
    args[4] = ngx_http_toolgate_session_number(bytes,
                                               NGX_HTTP_TOOLGATE_SESSION_PAGE_MAX);

    return ngx_http_toolgate_session_ask(pool, log, redis,
                                         &ngx_toolgate_script_session_messages, 2,
                                         5, args,
                                         ngx_http_toolgate_session_read_messages,
                                         done, data);
}


ngx_int_t
ngx_http_toolgate_session_begin(ngx_pool_t *pool, ngx_log_t *log,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_session_key_t *key,
    time_t retention, ngx_http_toolgate_session_begin_t *begin,
    ngx_http_toolgate_session_done_pt done, void *data)
{
    u_char                             seconds[NGX_SIZE_T_LEN];
    u_char                             idle[NGX_SIZE_T_LEN], most[NGX_SIZE_T_LEN];
    u_char                             runs[NGX_HTTP_TOOLGATE_SESSION_KEY_MAX];
    ngx_str_t                          args[NGX_HTTP_TOOLGATE_SESSION_KEYS + 14];
    ngx_http_toolgate_session_names_t  names;

    static ngx_str_t  flag[2] = { ngx_null_string, ngx_string("1") };

    ngx_http_toolgate_session_keys(redis, key, &names, args);

    ngx_str_set(&args[2], "begin");
    args[3] = ngx_http_toolgate_session_number(seconds, (size_t) retention);
    args[4] = begin->run;
    args[5].data = (u_char *) begin->messages.data;
    args[5].len = begin->messages.len;
    args[6] = begin->user;
    args[7] = begin->agent;
    args[8] = begin->offered;
    args[9] = ngx_http_toolgate_session_number(idle, (size_t) begin->idle);
    args[10] = flag[begin->new_segment];
    args[11] = flag[begin->reject];
    args[12] = ngx_http_toolgate_session_number(most, begin->history_max);
    args[13] = flag[begin->create];
    args[14].data = runs;
    args[14].len = ngx_slprintf(runs, runs + sizeof(runs), "%Vr:{%V/%V}:",
                                &redis->prefix, &key->project, &key->account)
                   - runs;
    args[15].data = (u_char *) begin->answers.data;
    args[15].len = begin->answers.len;

    return ngx_http_toolgate_session_ask(pool, log, redis,
                                         &ngx_toolgate_script_session_run, 2, 16,
                                         args, ngx_http_toolgate_session_read_begun,
                                         done, data);
}


void
ngx_http_toolgate_session_keep(ngx_toolgate_redis_conf_t *redis,
    ngx_http_toolgate_session_key_t *key, time_t retention, ngx_str_t *run,
    tg_str_t messages, tg_str_t open)
{
    ngx_str_t  args[NGX_HTTP_TOOLGATE_SESSION_KEYS + 5];

    ngx_str_set(&args[2], "keep");
    args[5].data = (u_char *) messages.data;
    args[5].len = messages.len;
    args[6].data = (u_char *) open.data;
    args[6].len = open.len;

    ngx_http_toolgate_session_tell(redis, key, retention, run, args, 7);
}


void
ngx_http_toolgate_session_end(ngx_toolgate_redis_conf_t *redis,
    ngx_http_toolgate_session_key_t *key, time_t retention, ngx_str_t *run)
{
    ngx_str_t  args[NGX_HTTP_TOOLGATE_SESSION_KEYS + 3];

    ngx_str_set(&args[2], "end");

    ngx_http_toolgate_session_tell(redis, key, retention, run, args, 5);
}


/* Nobody waits for the answer. */
static void
ngx_http_toolgate_session_tell(ngx_toolgate_redis_conf_t *redis,
    ngx_http_toolgate_session_key_t *key, time_t retention, ngx_str_t *run,
    ngx_str_t *args, ngx_uint_t argc)
{
    u_char                             seconds[NGX_SIZE_T_LEN];
    ngx_http_toolgate_session_names_t  names;

    ngx_http_toolgate_session_keys(redis, key, &names, args);

    args[3] = ngx_http_toolgate_session_number(seconds, (size_t) retention);
    args[4] = *run;

    if (!ngx_toolgate_redis_up(redis)
        || ngx_toolgate_redis_script(redis, ngx_cycle->log,
                                     &ngx_toolgate_script_session_run, 2, argc, args,
                                     ngx_http_toolgate_session_kept, redis)
           == NULL)
    {
        ngx_http_toolgate_session_told(redis, 0);
    }
}


/* A label may hold ":", but no "/": the two never meet. */
static void
ngx_http_toolgate_session_keys(ngx_toolgate_redis_conf_t *redis,
    ngx_http_toolgate_session_key_t *key, ngx_http_toolgate_session_names_t *names,
    ngx_str_t args[NGX_HTTP_TOOLGATE_SESSION_KEYS])
{
    args[0].data = names->session;
    args[0].len = ngx_slprintf(names->session,
                               names->session + sizeof(names->session),
                               "%Vs:{%V/%V}:%V", &redis->prefix, &key->project,
                               &key->account, &key->session)
                  - names->session;

    args[1].data = names->messages;
    args[1].len = ngx_slprintf(names->messages,
                               names->messages + sizeof(names->messages),
                               "%V/messages", &args[0])
                  - names->messages;
}


static ngx_str_t
ngx_http_toolgate_session_number(u_char *buf, size_t n)
{
    ngx_str_t  text;

    text.data = buf;
    text.len = ngx_sprintf(buf, "%uz", n) - buf;

    return text;
}


/* script NULL: args is a whole command. */
static ngx_int_t
ngx_http_toolgate_session_ask(ngx_pool_t *pool, ngx_log_t *log,
    ngx_toolgate_redis_conf_t *redis, const ngx_toolgate_script_t *script,
    ngx_uint_t nkeys, ngx_uint_t argc, ngx_str_t *args,
    ngx_http_toolgate_session_read_pt read, ngx_http_toolgate_session_done_pt done,
    void *data)
{
    ngx_http_toolgate_session_ask_t  *ask;

    ask = ngx_palloc(pool, sizeof(ngx_http_toolgate_session_ask_t));
    if (ask == NULL) {
        return NGX_ERROR;
    }

    ask->read = read;
    ask->done = done;
    ask->data = data;

    return ngx_toolgate_redis_ask(pool, redis, log, script, nkeys, argc, args,
                                  ngx_http_toolgate_session_reply, ask);
}


static void
ngx_http_toolgate_session_reply(void *data, redisReply *reply)
{
    ngx_http_toolgate_session_ask_t *ask = data;

    ngx_http_toolgate_session_answer_t  answer;

    ngx_memzero(&answer, sizeof(answer));
    answer.state = NGX_HTTP_TOOLGATE_SESSION_AWAY;

    if (reply) {
        ask->read(reply, &answer);
    }

    ask->done(ask->data, &answer);
}


static void
ngx_http_toolgate_session_kept(void *data, redisReply *reply)
{
    ngx_http_toolgate_session_told(data, reply && reply->type != REDIS_REPLY_ERROR);
}


static void
ngx_http_toolgate_session_told(ngx_toolgate_redis_conf_t *redis, ngx_uint_t taken)
{
    if (taken == !ngx_http_toolgate_session_away) {
        return;
    }

    ngx_http_toolgate_session_away = !taken;

    if (taken) {
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "toolgate: redis \"%V\" takes the messages of sessions again",
                      &redis->url);

    } else {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "toolgate: redis \"%V\" does not take the messages of "
                      "sessions: they are lost until it does", &redis->url);
    }
}


static void
ngx_http_toolgate_session_read_created(redisReply *reply,
    ngx_http_toolgate_session_answer_t *answer)
{
    if (reply->type == REDIS_REPLY_INTEGER) {
        answer->state = NGX_HTTP_TOOLGATE_SESSION_OK;
        answer->created = (time_t) reply->integer;
        answer->active = answer->created;
    }
}


static void
ngx_http_toolgate_session_read_fields(redisReply *reply,
    ngx_http_toolgate_session_answer_t *answer)
{
    ngx_str_t   field[NGX_HTTP_TOOLGATE_SESSION_FIELDS];
    ngx_uint_t  i;

    if (reply->type != REDIS_REPLY_ARRAY
        || reply->elements != NGX_HTTP_TOOLGATE_SESSION_FIELDS)
    {
        return;
    }

    for (i = 0; i < NGX_HTTP_TOOLGATE_SESSION_FIELDS; i++) {
        field[i] = ngx_http_toolgate_session_text(reply->element[i]);
    }

    if (field[0].len == 0) {
        answer->state = NGX_HTTP_TOOLGATE_SESSION_NONE;
        return;
    }

    answer->state = NGX_HTTP_TOOLGATE_SESSION_OK;
    answer->created = ngx_atotm(field[0].data, field[0].len);
    answer->active = ngx_atotm(field[1].data, field[1].len);
    answer->agent = field[2];
    answer->user = field[3];
    answer->metadata = field[4];
    answer->count = field[5].len ? ngx_atoi(field[5].data, field[5].len) : 0;
    answer->segment = field[6].len ? ngx_atoi(field[6].data, field[6].len) : 0;
    answer->run = field[7];
    answer->flagged = (field[8].len == 1 && field[8].data[0] == '1');
}


static void
ngx_http_toolgate_session_read_deleted(redisReply *reply,
    ngx_http_toolgate_session_answer_t *answer)
{
    if (reply->type == REDIS_REPLY_NIL) {
        answer->state = NGX_HTTP_TOOLGATE_SESSION_NONE;

    } else if (reply->type == REDIS_REPLY_STRING) {
        answer->state = NGX_HTTP_TOOLGATE_SESSION_OK;
        answer->run = ngx_http_toolgate_session_text(reply);
    }
}


static void
ngx_http_toolgate_session_read_messages(redisReply *reply,
    ngx_http_toolgate_session_answer_t *answer)
{
    ngx_uint_t  i;

    if (reply->type == REDIS_REPLY_NIL) {
        answer->state = NGX_HTTP_TOOLGATE_SESSION_NONE;
        return;
    }

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0
        || reply->element[0]->type != REDIS_REPLY_INTEGER)
    {
        return;
    }

    for (i = 1; i < reply->elements; i++) {
        if (reply->element[i]->type != REDIS_REPLY_STRING) {
            return;
        }
    }

    answer->state = reply->element[0]->integer < 0
                    ? NGX_HTTP_TOOLGATE_SESSION_NO_MESSAGE
                    : NGX_HTTP_TOOLGATE_SESSION_OK;
    answer->more = (reply->element[0]->integer == 1);
    answer->messages = reply->element + 1;
    answer->message_count = reply->elements - 1;
}


static void
ngx_http_toolgate_session_read_begun(redisReply *reply,
    ngx_http_toolgate_session_answer_t *answer)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0) {
        return;
    }

    if (ngx_http_toolgate_session_is(reply->element[0], "none")) {
        answer->state = NGX_HTTP_TOOLGATE_SESSION_NONE;

    } else if (ngx_http_toolgate_session_is(reply->element[0], "user")) {
        answer->state = NGX_HTTP_TOOLGATE_SESSION_OTHER_USER;

    } else if (ngx_http_toolgate_session_is(reply->element[0], "busy")
               && reply->elements == 2)
    {
        answer->state = NGX_HTTP_TOOLGATE_SESSION_BUSY;
        answer->run = ngx_http_toolgate_session_text(reply->element[1]);

    } else if (ngx_http_toolgate_session_is(reply->element[0], "gone")) {
        answer->state = NGX_HTTP_TOOLGATE_SESSION_GONE;

    } else if (ngx_http_toolgate_session_is(reply->element[0], "call")
               && reply->elements == 2)
    {
        answer->state = NGX_HTTP_TOOLGATE_SESSION_NO_CALL;
        answer->call = ngx_http_toolgate_session_text(reply->element[1]);

    } else if (ngx_http_toolgate_session_is(reply->element[0], "ok")
               && reply->elements == 7
               && reply->element[1]->type == REDIS_REPLY_INTEGER
               && reply->element[3]->type == REDIS_REPLY_INTEGER)
    {
        answer->state = NGX_HTTP_TOOLGATE_SESSION_OK;
        answer->segment = (ngx_uint_t) reply->element[1]->integer;
        answer->offered = ngx_http_toolgate_session_text(reply->element[2]);
        answer->started = (reply->element[3]->integer == 1);
        answer->history = ngx_http_toolgate_session_text(reply->element[4]);
        answer->run = ngx_http_toolgate_session_text(reply->element[5]);
        answer->kept = ngx_http_toolgate_session_text(reply->element[6]);
    }
}


/* Empty for what is no string. */
static ngx_str_t
ngx_http_toolgate_session_text(redisReply *reply)
{
    ngx_str_t  text = ngx_null_string;

    if (reply->type == REDIS_REPLY_STRING) {
        text.data = (u_char *) reply->str;
        text.len = (size_t) reply->len;
    }

    return text;
}


static ngx_uint_t
ngx_http_toolgate_session_is(redisReply *reply, const char *word)
{
    ngx_str_t  text;

    text = ngx_http_toolgate_session_text(reply);

    return text.len == ngx_strlen(word)
           && ngx_memcmp(text.data, word, text.len) == 0;
}
