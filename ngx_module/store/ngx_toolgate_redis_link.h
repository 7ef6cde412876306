/*
 * One connection to Redis: hiredis' async context on nginx's events. It moves
 * commands and replies; when to connect, how long to wait and what a failure
 * means is its owner's business (ngx_toolgate_redis.c).
 */

#ifndef NGX_TOOLGATE_REDIS_LINK_H
#define NGX_TOOLGATE_REDIS_LINK_H

#include "ngx_toolgate_redis.h"


typedef struct ngx_toolgate_redis_link_s  ngx_toolgate_redis_link_t;

typedef enum {
    NGX_TOOLGATE_REDIS_HANGUP = 0,   /* closed or reset by the other side */
    NGX_TOOLGATE_REDIS_BROKEN        /* not connected, or not speaking Redis */
} ngx_toolgate_redis_loss_e;

/* connected may send but not close. reply is not called for what was pending
 * when the link ends: the owner knows that by itself. After closed the link is
 * gone; closed never comes from inside open, send or close. */
typedef struct {
    void (*connected)(void *owner);
    void (*reply)(void *owner, void *item, redisReply *reply);
    void (*closed)(void *owner, ngx_toolgate_redis_loss_e loss,
        const char *reason);
} ngx_toolgate_redis_link_owner_t;


/* Starts to connect; NULL with a reason when that fails at once. reason is a
 * buffer of NGX_TOOLGATE_REDIS_REASON bytes. */
#define NGX_TOOLGATE_REDIS_REASON  128

ngx_toolgate_redis_link_t *ngx_toolgate_redis_link_open(
    ngx_toolgate_redis_conf_t *conf,
    const ngx_toolgate_redis_link_owner_t *handlers, void *owner, char *reason);

/* Queues one command; it leaves at the end of this turn of the event loop. */
ngx_int_t ngx_toolgate_redis_link_send(ngx_toolgate_redis_link_t *link,
    ngx_uint_t argc, const char **argv, const size_t *len, void *item);

/* The owner hears nothing more of it. May be called from reply. */
void ngx_toolgate_redis_link_close(ngx_toolgate_redis_link_t *link);

#endif /* NGX_TOOLGATE_REDIS_LINK_H */
