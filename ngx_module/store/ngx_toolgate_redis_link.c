/*
 * One connection to Redis: hiredis' async context on nginx's events.
 *
 * hiredis reads 16 KB a call and expects to be called again while there is
 * more, so its descriptor is watched level-triggered. It owns the descriptor
 * and frees its context by itself on any error: the cleanup hook is the one
 * place where a link ends, and nothing looks at a context after hiredis had
 * the word. Writes are posted, so that all commands of one turn of the loop
 * leave in one write; EPOLLOUT is asked for only when the socket is full.
 */

#include "ngx_toolgate_redis_link.h"

#include <hiredis/async.h>


/* hiredis makes an array as large as it is told, then waits for its elements */
#define NGX_TOOLGATE_REDIS_MAX_ELEMENTS  1048576

#if (HIREDIS_MAJOR >= 1)
typedef size_t  ngx_toolgate_redis_elements_t;
#else
typedef int     ngx_toolgate_redis_elements_t;
#endif


struct ngx_toolgate_redis_link_s {
    redisAsyncContext                      *ac;
    ngx_connection_t                       *connection;
    ngx_event_t                             flush;

    const ngx_toolgate_redis_link_owner_t  *handlers;
    void                                   *owner;     /* NULL: let go */

    ngx_uint_t                              expected;  /* replies to come */
    ngx_uint_t                             *gone;      /* set when freed */

    unsigned                                connected:1;
    unsigned                                writing:1;
    unsigned                                broken:1;  /* no event to be had */
};


static ngx_int_t ngx_toolgate_redis_link_attach(ngx_toolgate_redis_link_t *link,
    redisAsyncContext *ac);
static void *ngx_toolgate_redis_link_array(const redisReadTask *task,
    ngx_toolgate_redis_elements_t elements);
static void ngx_toolgate_redis_link_say(char *reason, const char *text);
static void ngx_toolgate_redis_link_readable(ngx_event_t *rev);
static void ngx_toolgate_redis_link_writable(ngx_event_t *wev);
static void ngx_toolgate_redis_link_flush(ngx_event_t *ev);
static void ngx_toolgate_redis_link_write(ngx_toolgate_redis_link_t *link);
static void ngx_toolgate_redis_link_fail(ngx_toolgate_redis_link_t *link,
    const char *reason);
static void ngx_toolgate_redis_link_connected(const redisAsyncContext *ac,
    int status);
static void ngx_toolgate_redis_link_reply(redisAsyncContext *ac, void *reply,
    void *item);
static void ngx_toolgate_redis_link_add_read(void *data);
static void ngx_toolgate_redis_link_del_read(void *data);
static void ngx_toolgate_redis_link_add_write(void *data);
static void ngx_toolgate_redis_link_del_write(void *data);
static void ngx_toolgate_redis_link_cleanup(void *data);


/* those of hiredis, but for the array */
static redisReplyObjectFunctions   ngx_toolgate_redis_link_objects;
static void                     *(*ngx_toolgate_redis_link_make_array)(
    const redisReadTask *task, ngx_toolgate_redis_elements_t elements);


ngx_toolgate_redis_link_t *
ngx_toolgate_redis_link_open(ngx_toolgate_redis_conf_t *conf,
    const ngx_toolgate_redis_link_owner_t *handlers, void *owner, char *reason)
{
    redisAsyncContext          *ac;
    ngx_toolgate_redis_link_t  *link;

    if (conf->unix_path.len) {
        ac = redisAsyncConnectUnix((char *) conf->unix_path.data);

    } else {
        ac = redisAsyncConnect((char *) conf->host.data, conf->port);
    }

    if (ac == NULL) {
        ngx_toolgate_redis_link_say(reason, "no memory");
        return NULL;
    }

    if (ac->err) {
        ngx_toolgate_redis_link_say(reason, ac->errstr);
        redisAsyncFree(ac);
        return NULL;
    }

    link = ngx_calloc(sizeof(ngx_toolgate_redis_link_t), ngx_cycle->log);
    if (link == NULL) {
        redisAsyncFree(ac);
        ngx_toolgate_redis_link_say(reason, "no memory");
        return NULL;
    }

    if (ngx_toolgate_redis_link_attach(link, ac) != NGX_OK) {
        redisAsyncFree(ac);
        ngx_free(link);
        ngx_toolgate_redis_link_say(reason, "no free worker connection");
        return NULL;
    }

    link->handlers = handlers;
    link->owner = owner;

    /* asks for the first write event, which tells that it is connected */
    redisAsyncSetConnectCallback(ac, ngx_toolgate_redis_link_connected);

    return link;
}


static ngx_int_t
ngx_toolgate_redis_link_attach(ngx_toolgate_redis_link_t *link,
    redisAsyncContext *ac)
{
    ngx_log_t         *log;
    ngx_connection_t  *c;

    log = ngx_cycle->log;

    c = ngx_get_connection(ac->c.fd, log);
    if (c == NULL) {
        return NGX_ERROR;
    }

    c->data = link;
    c->read->handler = ngx_toolgate_redis_link_readable;
    c->write->handler = ngx_toolgate_redis_link_writable;
    c->read->log = log;
    c->write->log = log;

    link->ac = ac;
    link->connection = c;
    link->flush.handler = ngx_toolgate_redis_link_flush;
    link->flush.data = link;
    link->flush.log = log;

    if (ngx_toolgate_redis_link_make_array == NULL) {
        ngx_toolgate_redis_link_objects = *ac->c.reader->fn;
        ngx_toolgate_redis_link_make_array = ac->c.reader->fn->createArray;
        ngx_toolgate_redis_link_objects.createArray =
                                                ngx_toolgate_redis_link_array;
    }

    ac->c.reader->fn = &ngx_toolgate_redis_link_objects;

    ac->data = link;
    ac->ev.data = link;
    ac->ev.addRead = ngx_toolgate_redis_link_add_read;
    ac->ev.delRead = ngx_toolgate_redis_link_del_read;
    ac->ev.addWrite = ngx_toolgate_redis_link_add_write;
    ac->ev.delWrite = ngx_toolgate_redis_link_del_write;
    ac->ev.cleanup = ngx_toolgate_redis_link_cleanup;

    return NGX_OK;
}


static void *
ngx_toolgate_redis_link_array(const redisReadTask *task,
    ngx_toolgate_redis_elements_t elements)
{
    /* told as out of memory, which ends the connection */
    if (elements > NGX_TOOLGATE_REDIS_MAX_ELEMENTS) {
        return NULL;
    }

    return ngx_toolgate_redis_link_make_array(task, elements);
}


static void
ngx_toolgate_redis_link_say(char *reason, const char *text)
{
    ngx_cpystrn((u_char *) reason, (u_char *) text, NGX_TOOLGATE_REDIS_REASON);
}


ngx_int_t
ngx_toolgate_redis_link_send(ngx_toolgate_redis_link_t *link, ngx_uint_t argc,
    const char **argv, const size_t *len, void *item)
{
    /* refused while the context is being freed */
    if (link->owner == NULL
        || redisAsyncCommandArgv(link->ac, ngx_toolgate_redis_link_reply, item,
                                 (int) argc, argv, len)
           != REDIS_OK)
    {
        return NGX_ERROR;
    }

    link->expected++;

    return NGX_OK;
}


void
ngx_toolgate_redis_link_close(ngx_toolgate_redis_link_t *link)
{
    link->owner = NULL;

    /* inside a reply callback hiredis puts this off to its end */
    redisAsyncFree(link->ac);
}


static void
ngx_toolgate_redis_link_readable(ngx_event_t *rev)
{
    u_char                      byte;
    ngx_connection_t           *c;
    ngx_toolgate_redis_link_t  *link;

    c = rev->data;
    link = c->data;

    /* hiredis aborts the process on a reply that nobody asked for */
    if (link->connected
        && link->expected == 0
        && recv(c->fd, &byte, 1, MSG_PEEK) > 0)
    {
        ngx_toolgate_redis_link_fail(link, "it talks without being asked");
        return;
    }

    redisAsyncHandleRead(link->ac);
}


static void
ngx_toolgate_redis_link_writable(ngx_event_t *wev)
{
    ngx_connection_t  *c;

    c = wev->data;

    ngx_toolgate_redis_link_write(c->data);
}


static void
ngx_toolgate_redis_link_flush(ngx_event_t *ev)
{
    ngx_toolgate_redis_link_t  *link;

    link = ev->data;

    if (link->broken) {
        ngx_toolgate_redis_link_fail(link, "its events cannot be watched");
        return;
    }

    ngx_toolgate_redis_link_write(link);
}


static void
ngx_toolgate_redis_link_write(ngx_toolgate_redis_link_t *link)
{
    ngx_uint_t  gone;

    gone = 0;
    link->gone = &gone;
    link->writing = 1;

    redisAsyncHandleWrite(link->ac);

    if (gone) {
        return;
    }

    link->writing = 0;
    link->gone = NULL;
}


static void
ngx_toolgate_redis_link_fail(ngx_toolgate_redis_link_t *link,
    const char *reason)
{
    void                                   *owner;
    const ngx_toolgate_redis_link_owner_t  *handlers;

    owner = link->owner;
    handlers = link->handlers;

    ngx_toolgate_redis_link_close(link);

    if (owner) {
        handlers->closed(owner, NGX_TOOLGATE_REDIS_BROKEN, reason);
    }
}


static void
ngx_toolgate_redis_link_connected(const redisAsyncContext *ac, int status)
{
    ngx_toolgate_redis_link_t  *link;

    link = ac->data;

    /* a failure is told by the cleanup hook, which comes next */
    if (status == REDIS_OK && link->owner) {
        link->connected = 1;
        link->handlers->connected(link->owner);
    }
}


static void
ngx_toolgate_redis_link_reply(redisAsyncContext *ac, void *reply, void *item)
{
    ngx_toolgate_redis_link_t  *link;

    link = ac->data;

    if (reply == NULL || link->owner == NULL) {
        return;
    }

    link->expected--;

    /* more bytes than replies to come: see the abort above */
    if (link->expected == 0 && ac->c.reader->pos < ac->c.reader->len) {
        ngx_toolgate_redis_link_fail(link, "it says more than was asked");
        return;
    }

    link->handlers->reply(link->owner, item, reply);
}


static void
ngx_toolgate_redis_link_add_read(void *data)
{
    ngx_event_t                *rev;
    ngx_toolgate_redis_link_t  *link;

    link = data;
    rev = link->connection->read;

    if (!rev->active
        && ngx_add_event(rev, NGX_READ_EVENT, NGX_LEVEL_EVENT) != NGX_OK)
    {
        link->broken = 1;
        ngx_post_event(&link->flush, &ngx_posted_events);
    }
}


static void
ngx_toolgate_redis_link_del_read(void *data)
{
    ngx_event_t                *rev;
    ngx_toolgate_redis_link_t  *link;

    link = data;
    rev = link->connection->read;

    if (rev->active) {
        ngx_del_event(rev, NGX_READ_EVENT, NGX_LEVEL_EVENT);
    }
}


static void
ngx_toolgate_redis_link_add_write(void *data)
{
    ngx_event_t                *wev;
    ngx_toolgate_redis_link_t  *link;

    link = data;
    wev = link->connection->write;

    if (wev->active) {
        return;
    }

    /* connecting, or the socket took only a part: wait until it is writable */
    if (!link->connected || link->writing) {
        if (ngx_add_event(wev, NGX_WRITE_EVENT, NGX_LEVEL_EVENT) == NGX_OK) {
            return;
        }

        link->broken = 1;
    }

    ngx_post_event(&link->flush, &ngx_posted_events);
}


static void
ngx_toolgate_redis_link_del_write(void *data)
{
    ngx_event_t                *wev;
    ngx_toolgate_redis_link_t  *link;

    link = data;
    wev = link->connection->write;

    if (wev->active) {
        ngx_del_event(wev, NGX_WRITE_EVENT, NGX_LEVEL_EVENT);
    }
}


static void
ngx_toolgate_redis_link_cleanup(void *data)
{
    ngx_connection_t           *c;
    redisAsyncContext          *ac;
    ngx_toolgate_redis_link_t  *link;

    link = data;
    ac = link->ac;
    c = link->connection;

    ngx_toolgate_redis_link_del_read(link);
    ngx_toolgate_redis_link_del_write(link);

    if (c->read->posted) {
        ngx_delete_posted_event(c->read);
    }

    if (c->write->posted) {
        ngx_delete_posted_event(c->write);
    }

    if (link->flush.posted) {
        ngx_delete_posted_event(&link->flush);
    }

    /* the descriptor is closed by hiredis, right after this */
    ngx_free_connection(c);
    c->fd = (ngx_socket_t) -1;

    if (link->gone) {
        *link->gone = 1;
    }

    if (link->owner) {
        link->handlers->closed(link->owner,
                               ac->err == REDIS_ERR_EOF
                               || ac->err == REDIS_ERR_IO
                               ? NGX_TOOLGATE_REDIS_HANGUP
                               : NGX_TOOLGATE_REDIS_BROKEN,
                               ac->errstr ? ac->errstr : "closed");
    }

    ngx_free(link);
}
