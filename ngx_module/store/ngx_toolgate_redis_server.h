/*
 * Between the two halves of the Redis client: servers and their states
 * (ngx_toolgate_redis_server.c), commands and their callbacks
 * (ngx_toolgate_redis.c). Not for anyone else.
 */

#ifndef NGX_TOOLGATE_REDIS_SERVER_H
#define NGX_TOOLGATE_REDIS_SERVER_H

#include "ngx_toolgate_redis.h"
#include "ngx_toolgate_redis_link.h"


typedef enum {
    NGX_TOOLGATE_REDIS_IDLE = 0,     /* no connection: the next command makes one */
    NGX_TOOLGATE_REDIS_CONNECTING,
    NGX_TOOLGATE_REDIS_GREETING,     /* AUTH, SELECT and PING are on their way */
    NGX_TOOLGATE_REDIS_READY,
    NGX_TOOLGATE_REDIS_DOWN          /* failed: the retry timer runs */
} ngx_toolgate_redis_state_e;

typedef enum {
    NGX_TOOLGATE_REDIS_NEEDED = 0,   /* a command waits, or it is time to probe */
    NGX_TOOLGATE_REDIS_CONNECTED,
    NGX_TOOLGATE_REDIS_GREETED,
    NGX_TOOLGATE_REDIS_LOST,         /* the link is gone, closed by Redis */
    NGX_TOOLGATE_REDIS_FAILED        /* refused, silent, or not Redis */
} ngx_toolgate_redis_event_e;

typedef struct {
    ngx_queue_t                   queue;
    ngx_pool_t                   *pool;
    ngx_toolgate_redis_conf_t     conf;       /* a copy that outlives the cycle */

    ngx_toolgate_redis_state_e    state;
    ngx_toolgate_redis_link_t    *link;
    ngx_uint_t                    greetings;  /* replies of the greeting to come */

    ngx_queue_t                   waiting;    /* until connected, oldest first */
    ngx_queue_t                   sent;       /* oldest first */
    ngx_queue_t                   failed;     /* to be told by the posted event */
    ngx_uint_t                    pending;    /* of waiting and sent */

    ngx_event_t                   greet;      /* bounds connect and greeting */
    ngx_event_t                   deadline;   /* of the oldest ticket */
    ngx_event_t                   retry;
    ngx_event_t                   deliver;

    unsigned                      good:1;     /* or never heard of yet */
    unsigned                      reported:1; /* its failure is in the log */
    unsigned                      proven:1;   /* this link answered a command */
} ngx_toolgate_redis_server_t;

typedef enum {
    NGX_TOOLGATE_REDIS_WAITING = 0,
    NGX_TOOLGATE_REDIS_SENT,
    NGX_TOOLGATE_REDIS_UNDONE,       /* in failed */
    NGX_TOOLGATE_REDIS_TOLD          /* in no queue: done is running */
} ngx_toolgate_redis_ticket_e;

struct ngx_toolgate_redis_ticket_s {
    ngx_queue_t                   queue;
    ngx_toolgate_redis_ticket_e   state;
    ngx_toolgate_redis_server_t  *server;
    ngx_toolgate_redis_done_pt    done;       /* NULL: dropped */
    void                         *data;
    ngx_msec_t                    deadline;

    const ngx_toolgate_script_t  *script;     /* NULL when it cannot be repeated */
    ngx_uint_t                    argc;
    const char                  **argv;
    size_t                       *len;
};


/* The server of conf, made when there is none yet. */
ngx_toolgate_redis_server_t *ngx_toolgate_redis_server_get(
    ngx_toolgate_redis_conf_t *conf, ngx_uint_t create);

/* The one place where a server changes its state. */
void ngx_toolgate_redis_advance(ngx_toolgate_redis_server_t *server,
    ngx_toolgate_redis_event_e event, const char *reason);

/* A waiting ticket to the link; to failed when that does not take it. */
void ngx_toolgate_redis_ticket_send(ngx_toolgate_redis_ticket_t *ticket);

/* The reply to a sent ticket. */
void ngx_toolgate_redis_ticket_reply(ngx_toolgate_redis_ticket_t *ticket,
    redisReply *reply);

/* From waiting or sent to failed. */
void ngx_toolgate_redis_ticket_fail(ngx_toolgate_redis_ticket_t *ticket);

/* The posted event that tells the failed ones. */
void ngx_toolgate_redis_ticket_deliver(ngx_event_t *ev);

#endif /* NGX_TOOLGATE_REDIS_SERVER_H */
