/*
 * Connections of the worker to the helper; see ngx_toolgate_helper_peer.h.
 *
 * When control returns to the event loop a peer is either in the idle queue of its
 * worker or has exactly one call.
 */

#include "ngx_toolgate_helper_peer.h"

#include <ngx_event_connect.h>


#define NGX_TOOLGATE_HELPER_POOL_SIZE   512


static ngx_int_t ngx_toolgate_helper_peer_there(ngx_addr_t *addr);
static void ngx_toolgate_helper_peer_idle(ngx_event_t *ev);
static void ngx_toolgate_helper_peer_ignore(ngx_event_t *ev);


/* per worker */
static ngx_queue_t  ngx_toolgate_helper_idle;
static ngx_uint_t   ngx_toolgate_helper_idle_n;


ngx_int_t
ngx_toolgate_helper_init_worker(ngx_cycle_t *cycle)
{
    (void) cycle;

    ngx_queue_init(&ngx_toolgate_helper_idle);
    ngx_toolgate_helper_idle_n = 0;

    return NGX_OK;
}


void
ngx_toolgate_helper_exit_worker(ngx_cycle_t *cycle)
{
    ngx_queue_t                 *q;
    ngx_toolgate_helper_peer_t  *peer;

    (void) cycle;

    while (!ngx_queue_empty(&ngx_toolgate_helper_idle)) {
        q = ngx_queue_head(&ngx_toolgate_helper_idle);
        peer = ngx_queue_data(q, ngx_toolgate_helper_peer_t, queue);
        ngx_toolgate_helper_peer_close(peer);
    }
}


ngx_toolgate_helper_peer_t *
ngx_toolgate_helper_peer_reuse(ngx_addr_t *addr)
{
    char                         byte;
    ssize_t                      n;
    ngx_queue_t                 *q, *next;
    ngx_toolgate_helper_peer_t  *peer;

    for (q = ngx_queue_head(&ngx_toolgate_helper_idle);
         q != ngx_queue_sentinel(&ngx_toolgate_helper_idle);
         q = next)
    {
        next = ngx_queue_next(q);
        peer = ngx_queue_data(q, ngx_toolgate_helper_peer_t, queue);

        if (ngx_cmp_sockaddr(peer->sockaddr, peer->socklen, addr->sockaddr,
                             addr->socklen, 0)
            != NGX_OK)
        {
            continue;
        }

        /* the close of a helper that went away may not have been seen yet */
        n = recv(peer->connection->fd, &byte, 1, MSG_PEEK|MSG_DONTWAIT);
        if (n != -1 || (ngx_socket_errno != NGX_EAGAIN)) {
            ngx_toolgate_helper_peer_close(peer);
            continue;
        }

        ngx_queue_remove(&peer->queue);
        ngx_queue_init(&peer->queue);
        ngx_toolgate_helper_idle_n--;
        peer->connection->idle = 0;
        return peer;
    }

    return NULL;
}


/* nginx calls a missing socket critical, but an absent helper is foreseen here */
static ngx_int_t
ngx_toolgate_helper_peer_there(ngx_addr_t *addr)
{
    struct sockaddr_un  *saun;

    if (addr->sockaddr->sa_family != AF_UNIX) {
        return NGX_OK;
    }

    saun = (struct sockaddr_un *) addr->sockaddr;

    return access(saun->sun_path, F_OK) == -1 && ngx_errno == NGX_ENOENT
           ? NGX_DECLINED : NGX_OK;
}


ngx_toolgate_helper_peer_t *
ngx_toolgate_helper_peer_connect(ngx_addr_t *addr, ngx_log_t *log)
{
    ngx_int_t                    rc;
    ngx_pool_t                  *pool;
    ngx_connection_t            *c;
    ngx_peer_connection_t        pc;
    ngx_toolgate_helper_peer_t  *peer;

    if (ngx_toolgate_helper_peer_there(addr) != NGX_OK) {
        return NULL;
    }

    /* the peer outlives the call, so it has a pool of its own */
    pool = ngx_create_pool(NGX_TOOLGATE_HELPER_POOL_SIZE, ngx_cycle->log);
    if (pool == NULL) {
        return NULL;
    }

    peer = ngx_pcalloc(pool, sizeof(ngx_toolgate_helper_peer_t));
    if (peer == NULL) {
        ngx_destroy_pool(pool);
        return NULL;
    }

    peer->pool = pool;
    peer->socklen = addr->socklen;
    peer->sockaddr = ngx_pnalloc(pool, addr->socklen);
    if (peer->sockaddr == NULL) {
        ngx_destroy_pool(pool);
        return NULL;
    }

    ngx_memcpy(peer->sockaddr, addr->sockaddr, addr->socklen);
    ngx_queue_init(&peer->queue);

    ngx_memzero(&pc, sizeof(ngx_peer_connection_t));
    pc.sockaddr = peer->sockaddr;
    pc.socklen = peer->socklen;
    pc.name = &addr->name;
    pc.get = ngx_event_get_peer;
    pc.log = log;
    pc.log_error = NGX_ERROR_ERR;

    rc = ngx_event_connect_peer(&pc);

    if (rc == NGX_ERROR || rc == NGX_BUSY || rc == NGX_DECLINED) {
        if (pc.connection != NULL) {
            ngx_close_connection(pc.connection);
        }
        ngx_destroy_pool(pool);
        return NULL;
    }

    c = pc.connection;
    c->data = peer;
    c->pool = NULL;
    c->log = ngx_cycle->log;
    c->read->log = c->log;
    c->write->log = c->log;

    peer->connection = c;
    tg_frame_reader_init(&peer->reader);

    return peer;
}


void
ngx_toolgate_helper_peer_keep(ngx_toolgate_helper_peer_t *peer)
{
    ngx_connection_t  *c;

    c = peer->connection;

    if (ngx_toolgate_helper_idle_n >= NGX_TOOLGATE_HELPER_IDLE_MAX
        || ngx_handle_read_event(c->read, 0) != NGX_OK)
    {
        ngx_toolgate_helper_peer_close(peer);
        return;
    }

    if (c->write->posted) {
        ngx_delete_posted_event(c->write);
    }

    c->read->handler = ngx_toolgate_helper_peer_idle;
    c->write->handler = ngx_toolgate_helper_peer_ignore;

    /* a big answer must not keep its memory while idle */
    tg_frame_reader_free(&peer->reader);

    /* nginx closes idle connections when the worker is to leave */
    c->idle = 1;

    ngx_queue_insert_head(&ngx_toolgate_helper_idle, &peer->queue);
    ngx_toolgate_helper_idle_n++;
}


/* the helper went away, said something nobody asked for, or the worker leaves */
static void
ngx_toolgate_helper_peer_idle(ngx_event_t *ev)
{
    char               byte;
    ngx_connection_t  *c;

    c = ev->data;

    if (!c->close
        && recv(c->fd, &byte, 1, MSG_PEEK|MSG_DONTWAIT) == -1
        && ngx_socket_errno == NGX_EAGAIN)
    {
        ev->ready = 0;
        if (ngx_handle_read_event(c->read, 0) == NGX_OK) {
            return;
        }
    }

    ngx_toolgate_helper_peer_close(c->data);
}


static void
ngx_toolgate_helper_peer_ignore(ngx_event_t *ev)
{
    ngx_log_debug0(NGX_LOG_DEBUG_EVENT, ev->log, 0, "toolgate: helper dummy handler");
}


void
ngx_toolgate_helper_peer_close(ngx_toolgate_helper_peer_t *peer)
{
    ngx_pool_t  *pool;

    if (!ngx_queue_empty(&peer->queue)) {
        ngx_queue_remove(&peer->queue);
        ngx_toolgate_helper_idle_n--;
    }

    tg_frame_reader_free(&peer->reader);
    ngx_close_connection(peer->connection);

    pool = peer->pool;
    ngx_destroy_pool(pool);
}
