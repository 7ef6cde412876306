/*
 * What the files of the registry share; nobody else needs it.
 */

#ifndef NGX_HTTP_TOOLGATE_REGISTRY_INTERNAL_H
#define NGX_HTTP_TOOLGATE_REGISTRY_INTERNAL_H

#include "ngx_http_toolgate_registry.h"


#define NGX_HTTP_TOOLGATE_REGISTRY_KEYS  6

typedef enum {
    NGX_HTTP_TOOLGATE_REGISTRY_IDLE = 0,
    NGX_HTTP_TOOLGATE_REGISTRY_WAITING,
    NGX_HTTP_TOOLGATE_REGISTRY_ASKED
} ngx_http_toolgate_registry_state_e;

typedef struct {
    ngx_http_toolgate_main_conf_t       *conf;
    ngx_log_t                           *log;
    ngx_pool_t                          *pool;       /* NULL: there is no store */
    ngx_str_t                            keys[NGX_HTTP_TOOLGATE_REGISTRY_KEYS];
    ngx_rbtree_t                         by_id;
    ngx_rbtree_node_t                    by_id_sentinel;
    ngx_rbtree_t                         by_unique;
    ngx_rbtree_node_t                    by_unique_sentinel;
    ngx_queue_t                          projects;   /* that files do not name */
    uint64_t                             change;     /* taken in up to this one */
    u_char                               begun[32];  /* of which store */
    size_t                               begun_len;
    ngx_http_toolgate_registry_state_e   state;
    ngx_toolgate_redis_ticket_t         *ticket;
    ngx_msec_t                           asked_at;
    ngx_queue_t                          waiting;    /* for the question under way */
    ngx_queue_t                          next;       /* for the one after it */
    ngx_event_t                          poll;
    ngx_event_t                          due;
    unsigned                             loaded:1;
} ngx_http_toolgate_registry_t;

extern ngx_http_toolgate_registry_t  ngx_http_toolgate_the_registry;

/* _registry_objects.c: takes in one object by its name; an empty text: it is gone.
 * One that cannot be read is logged and left out. */
void ngx_http_toolgate_registry_apply(ngx_http_toolgate_registry_t *reg,
    ngx_str_t *name, ngx_str_t *text);

/* _registry_objects.c: forgets all objects. */
void ngx_http_toolgate_registry_clear(ngx_http_toolgate_registry_t *reg);

#endif /* NGX_HTTP_TOOLGATE_REGISTRY_INTERNAL_H */
