/*
 * Sessions in Redis: whose each is, its messages as models got them, which run has it,
 * and the segment that it is in. What a message says is not looked at here.
 * Both keys of a session carry its project and account in their hash tag, so that
 * nobody reaches a session of others by its id.
 */

#ifndef NGX_HTTP_TOOLGATE_SESSIONS_H
#define NGX_HTTP_TOOLGATE_SESSIONS_H

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_toolgate_redis.h"

#include "tg_buf.h"


#define NGX_HTTP_TOOLGATE_HISTORY_BYTES       (400 * 1024)
#define NGX_HTTP_TOOLGATE_HISTORY_BYTES_MIN   (4 * 1024)
#define NGX_HTTP_TOOLGATE_HISTORY_BYTES_MAX   (16 * 1024 * 1024)
#define NGX_HTTP_TOOLGATE_SEGMENT_IDLE_S      1800
#define NGX_HTTP_TOOLGATE_SEGMENT_IDLE_MAX_S  31536000
#define NGX_HTTP_TOOLGATE_SESSION_PAGE_MAX    (1024 * 1024)  /* bytes of messages */
#define NGX_HTTP_TOOLGATE_SESSION_PACK_MAX    (20 * 1024 * 1024)  /* of a run */

/* Whose session; each is at most 64 bytes. An account may be empty: the project's
 * own. */
typedef struct {
    ngx_str_t       project;
    ngx_str_t       account;
    ngx_str_t       session;
} ngx_http_toolgate_session_key_t;

typedef enum {
    NGX_HTTP_TOOLGATE_SESSION_OK = 0,
    NGX_HTTP_TOOLGATE_SESSION_NONE,        /* there is no such session */
    NGX_HTTP_TOOLGATE_SESSION_OTHER_USER,  /* it is bound to another end user */
    NGX_HTTP_TOOLGATE_SESSION_BUSY,        /* run has it, and is not to be ended */
    NGX_HTTP_TOOLGATE_SESSION_GONE,        /* another run has it by now */
    NGX_HTTP_TOOLGATE_SESSION_NO_CALL,     /* call was not handed out */
    NGX_HTTP_TOOLGATE_SESSION_NO_MESSAGE,  /* the one to begin after */
    NGX_HTTP_TOOLGATE_SESSION_AWAY         /* the store did not answer */
} ngx_http_toolgate_session_state_e;

/* What the store says; texts live inside done. */
typedef struct {
    ngx_http_toolgate_session_state_e   state;
    ngx_str_t                           run;       /* that has it, or had it */
    /* of _create and _get */
    time_t                              created;
    time_t                              active;    /* last used */
    ngx_str_t                           agent;     /* as named when it was made */
    ngx_str_t                           user;      /* external id; "" = nobody yet */
    ngx_str_t                           metadata;  /* JSON, or "" */
    ngx_uint_t                          count;     /* messages, dropped ones too */
    ngx_uint_t                          segment;   /* from 1; 0: none yet */
    unsigned                            flagged:1;
    /* of _begin */
    unsigned                            started:1; /* the segment is a new one */
    ngx_str_t                           offered;   /* what the segment offers */
    ngx_str_t                           history;   /* JSON messages and commas */
    ngx_str_t                           kept;      /* packed; of one that goes on */
    ngx_str_t                           call;
    /* of _messages */
    redisReply                        **messages;  /* strings */
    ngx_uint_t                          message_count;
    unsigned                            more:1;
} ngx_http_toolgate_session_answer_t;

typedef void (*ngx_http_toolgate_session_done_pt)(void *data,
    ngx_http_toolgate_session_answer_t *answer);

/* What a run asks of a session when it begins. */
typedef struct {
    ngx_str_t       run;
    ngx_str_t       user;             /* verified external id; "" = anonymous */
    ngx_str_t       agent;            /* and its version */
    ngx_str_t       offered;          /* by a new segment */
    tg_str_t        messages;         /* packed: those of the request */
    tg_str_t        answers;          /* ids of calls, with blanks between them */
    size_t          history_max;      /* bytes, the new messages included */
    time_t          idle;             /* a segment ends after */
    unsigned        new_segment:1;
    unsigned        reject:1;         /* a session that is busy */
    unsigned        create:1;         /* one that is not there */
} ngx_http_toolgate_session_begin_t;


/*
 * Each of these asks once; done is called once, from the event loop, unless pool is
 * destroyed before. NGX_ERROR: out of memory, and no callback. retention is for how
 * many seconds a session is kept after its last use.
 */

/* Makes a session; agent, user and metadata (JSON) may be empty. OK or AWAY; of the
 * answer created is set. */
ngx_int_t ngx_http_toolgate_session_create(ngx_pool_t *pool, ngx_log_t *log,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_session_key_t *key,
    time_t retention, ngx_str_t *agent, ngx_str_t *user, ngx_str_t *metadata,
    ngx_http_toolgate_session_done_pt done, void *data);

/* OK, NONE or AWAY. */
ngx_int_t ngx_http_toolgate_session_get(ngx_pool_t *pool, ngx_log_t *log,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_session_key_t *key,
    ngx_http_toolgate_session_done_pt done, void *data);

/* Deletes it and its messages. OK, NONE or AWAY; run is the one that it was taken
 * from, or empty. */
ngx_int_t ngx_http_toolgate_session_delete(ngx_pool_t *pool, ngx_log_t *log,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_session_key_t *key,
    ngx_http_toolgate_session_done_pt done, void *data);

/* Reads at most limit messages after the one of this id (empty: from the first).
 * OK, NONE, NO_MESSAGE or AWAY. */
ngx_int_t ngx_http_toolgate_session_messages(ngx_pool_t *pool, ngx_log_t *log,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_session_key_t *key,
    ngx_str_t *after, ngx_uint_t limit, ngx_http_toolgate_session_done_pt done,
    void *data);

/* Gives the session to a run: see conf/redis/session_run.lua. OK, NONE, OTHER_USER,
 * BUSY, GONE, NO_CALL or AWAY. With OK run is a live one that it was taken from, or
 * empty. A run that goes on elsewhere says it again, which changes nothing. */
ngx_int_t ngx_http_toolgate_session_begin(ngx_pool_t *pool, ngx_log_t *log,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_session_key_t *key,
    time_t retention, ngx_http_toolgate_session_begin_t *begin,
    ngx_http_toolgate_session_done_pt done, void *data);

/*
 * What is to stay of a run when it gets no further: packed messages from its first one
 * on, and results of calls that wait to be answered by whoever begins next. Nobody waits
 * and everything is copied; redis lives as long as the worker. When Redis does not take
 * it, that is one line in the log until it does again.
 */
void ngx_http_toolgate_session_keep(ngx_toolgate_redis_conf_t *redis,
    ngx_http_toolgate_session_key_t *key, time_t retention, ngx_str_t *run,
    tg_str_t messages, tg_str_t open);

/* The run is over, and what it has kept is part of the session. The same rules. */
void ngx_http_toolgate_session_end(ngx_toolgate_redis_conf_t *redis,
    ngx_http_toolgate_session_key_t *key, time_t retention, ngx_str_t *run);

/* _session_pack.c: appends one message to a packed list: head is members of JSON that begin with "run"
 * and have neither "bytes" nor "message"; message is JSON. */
void ngx_http_toolgate_session_pack(tg_buf_t *out, tg_str_t head, tg_str_t message);

/* The next message of a packed list from *at on; NGX_DONE: there is none. NGX_ERROR:
 * this is no packed list. */
ngx_int_t ngx_http_toolgate_session_unpack(tg_str_t list, size_t *at, tg_str_t *head,
    tg_str_t *message);

#endif /* NGX_HTTP_TOOLGATE_SESSIONS_H */
