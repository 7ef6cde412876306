/*
 * Connections of the worker to the helper: made, kept while idle, used again,
 * closed. Inner header of the helper client: it knows nothing of what a call says.
 */

#ifndef NGX_TOOLGATE_HELPER_PEER_H
#define NGX_TOOLGATE_HELPER_PEER_H

#include "ngx_toolgate_helper.h"


typedef struct {
    ngx_queue_t                  queue;        /* of idle peers */
    ngx_connection_t            *connection;
    ngx_pool_t                  *pool;
    ngx_toolgate_helper_call_t  *call;         /* NULL: idle */
    tg_frame_reader_t            reader;
    struct sockaddr             *sockaddr;
    socklen_t                    socklen;
    uint16_t                     stream;       /* number of the current call */
    unsigned                     greeted:1;    /* the helper's HELLO came */
} ngx_toolgate_helper_peer_t;


/* An idle peer of that address that is still open, or NULL. */
ngx_toolgate_helper_peer_t *ngx_toolgate_helper_peer_reuse(ngx_addr_t *addr);

/* A new one, maybe not connected yet; NULL when that can not be. The caller sets
 * the handlers of its connection. */
ngx_toolgate_helper_peer_t *ngx_toolgate_helper_peer_connect(ngx_addr_t *addr,
    ngx_log_t *log);

/* Its call is over: keeps it for the next one, or closes it. */
void ngx_toolgate_helper_peer_keep(ngx_toolgate_helper_peer_t *peer);

void ngx_toolgate_helper_peer_close(ngx_toolgate_helper_peer_t *peer);

#endif /* NGX_TOOLGATE_HELPER_PEER_H */
