/*
 * Following runs of other workers: one question to Redis a tick for all that this
 * worker follows, and one for which of the runs that it drives were ended from
 * outside. It knows names and numbers of events, not what they say.
 */

#ifndef NGX_HTTP_TOOLGATE_RUN_FEED_H
#define NGX_HTTP_TOOLGATE_RUN_FEED_H

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_http_toolgate_run_store.h"


#define NGX_HTTP_TOOLGATE_FEED_TICK_MS   50
#define NGX_HTTP_TOOLGATE_FEED_RUNS      256     /* asked for at once */
#define NGX_HTTP_TOOLGATE_FEED_EVENTS    200     /* of a run in one answer */
#define NGX_HTTP_TOOLGATE_INBOX_TICKS    2       /* of the feed's */
#define NGX_HTTP_TOOLGATE_INBOX_MAX      64      /* read at once */

typedef struct ngx_http_toolgate_follow_s  ngx_http_toolgate_follow_t;

/* One event as JSON; lives inside the call. It may close any that is followed. */
typedef void (*ngx_http_toolgate_follow_pt)(void *data, int64_t seq, tg_str_t event);

/* Memory of the follower. */
struct ngx_http_toolgate_follow_s {
    ngx_queue_t                    queue;
    ngx_toolgate_redis_conf_t     *redis;
    int64_t                        after;        /* the last event that it has */
    ngx_http_toolgate_follow_pt    handler;
    void                          *data;
    ngx_str_t                      name;
    u_char                         bytes[NGX_HTTP_TOOLGATE_STORE_KEY_MAX];
    unsigned                       open:1;
    unsigned                       paused:1;     /* by the follower: no room */
};

/* A run that this worker drives, for hearing that it was ended from outside. */
typedef struct {
    ngx_queue_t                    queue;
    ngx_toolgate_redis_conf_t     *redis;
    ngx_str_t                      run;
    void                         (*ended)(void *data);   /* may end others, too */
    void                          *data;
    unsigned                       open:1;
} ngx_http_toolgate_driven_t;


ngx_int_t ngx_http_toolgate_feed_init_worker(ngx_cycle_t *cycle);

/* Calls handler for every event after the one of this number, in order, until it is
 * closed. The follower closes it before its memory goes. */
void ngx_http_toolgate_follow_open(ngx_http_toolgate_follow_t *follow,
    ngx_toolgate_redis_conf_t *redis, ngx_http_toolgate_run_key_t *key,
    int64_t after, ngx_http_toolgate_follow_pt handler, void *data);
void ngx_http_toolgate_follow_close(ngx_http_toolgate_follow_t *follow);

/* The same for runs that are driven here. */
void ngx_http_toolgate_driven_open(ngx_http_toolgate_driven_t *driven,
    ngx_toolgate_redis_conf_t *redis);
void ngx_http_toolgate_driven_close(ngx_http_toolgate_driven_t *driven);

#endif /* NGX_HTTP_TOOLGATE_RUN_FEED_H */
