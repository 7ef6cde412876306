/*
 * Redis servers of a worker: when to connect, what to say first, how long to
 * wait and what a failure means.
 *
 * A server moves by ngx_toolgate_redis_advance() alone. While it is known to be
 * down every command fails at once; a timer probes it in the background. A link
 * that ends gives all its tickets back before anything else happens.
 */

#include "ngx_toolgate_redis_server.h"
#include "ngx_toolgate_scripts.h"


static ngx_toolgate_redis_server_t *ngx_toolgate_redis_server_new(
    ngx_toolgate_redis_conf_t *conf);
static ngx_int_t ngx_toolgate_redis_copy(ngx_pool_t *pool, ngx_str_t *str);
static void ngx_toolgate_redis_server_event(ngx_toolgate_redis_server_t *server,
    ngx_event_t *ev, ngx_event_handler_pt handler);
static void ngx_toolgate_redis_down(ngx_toolgate_redis_server_t *server,
    const char *reason);
static void ngx_toolgate_redis_fail_all(ngx_toolgate_redis_server_t *server);
static void ngx_toolgate_redis_greet(ngx_toolgate_redis_server_t *server);
static void ngx_toolgate_redis_connected(void *owner);
static void ngx_toolgate_redis_reply(void *owner, void *item,
    redisReply *reply);
static void ngx_toolgate_redis_closed(void *owner,
    ngx_toolgate_redis_loss_e loss, const char *reason);
static void ngx_toolgate_redis_greet_handler(ngx_event_t *ev);
static void ngx_toolgate_redis_deadline_handler(ngx_event_t *ev);
static void ngx_toolgate_redis_retry_handler(ngx_event_t *ev);


static const ngx_toolgate_redis_link_owner_t  ngx_toolgate_redis_handlers = {
    ngx_toolgate_redis_connected,
    ngx_toolgate_redis_reply,
    ngx_toolgate_redis_closed
};

static struct {
    ngx_queue_t  servers;
    ngx_uint_t   ready;
} ngx_toolgate_redis_worker;


ngx_int_t
ngx_toolgate_redis_init_worker(ngx_cycle_t *cycle)
{
    ngx_queue_init(&ngx_toolgate_redis_worker.servers);
    ngx_toolgate_redis_worker.ready = 1;

    return NGX_OK;
}


void
ngx_toolgate_redis_exit_worker(ngx_cycle_t *cycle)
{
    ngx_queue_t                  *q, *t;
    ngx_toolgate_redis_server_t  *server;

    if (!ngx_toolgate_redis_worker.ready) {
        return;
    }

    ngx_toolgate_redis_worker.ready = 0;

    while (!ngx_queue_empty(&ngx_toolgate_redis_worker.servers)) {
        q = ngx_queue_head(&ngx_toolgate_redis_worker.servers);
        ngx_queue_remove(q);
        server = ngx_queue_data(q, ngx_toolgate_redis_server_t, queue);

        if (server->link) {
            ngx_toolgate_redis_link_close(server->link);
        }

        ngx_toolgate_redis_fail_all(server);

        /* nobody is there any more to be told */
        while (!ngx_queue_empty(&server->failed)) {
            t = ngx_queue_head(&server->failed);
            ngx_queue_remove(t);
            ngx_free(ngx_queue_data(t, ngx_toolgate_redis_ticket_t, queue));
        }

        if (server->retry.timer_set) {
            ngx_del_timer(&server->retry);
        }

        if (server->deliver.posted) {
            ngx_delete_posted_event(&server->deliver);
        }

        ngx_destroy_pool(server->pool);
    }
}


ngx_uint_t
ngx_toolgate_redis_up(ngx_toolgate_redis_conf_t *conf)
{
    ngx_toolgate_redis_server_t  *server;

    server = ngx_toolgate_redis_server_get(conf, 0);

    return server == NULL || server->good;
}


/* found by what it is, not by its address: one after a reload in the same
 * process may lie where another one was */
ngx_toolgate_redis_server_t *
ngx_toolgate_redis_server_get(ngx_toolgate_redis_conf_t *conf, ngx_uint_t create)
{
    ngx_queue_t                  *q;
    ngx_toolgate_redis_server_t  *server;

    if (!ngx_toolgate_redis_worker.ready) {
        return NULL;
    }

    for (q = ngx_queue_head(&ngx_toolgate_redis_worker.servers);
         q != ngx_queue_sentinel(&ngx_toolgate_redis_worker.servers);
         q = ngx_queue_next(q))
    {
        server = ngx_queue_data(q, ngx_toolgate_redis_server_t, queue);

        if (server->conf.db == conf->db
            && server->conf.timeout == conf->timeout
            && server->conf.url.len == conf->url.len
            && server->conf.password.len == conf->password.len
            && ngx_strncmp(server->conf.url.data, conf->url.data,
                           conf->url.len) == 0
            && (conf->password.len == 0
                || ngx_memcmp(server->conf.password.data, conf->password.data,
                              conf->password.len) == 0))
        {
            return server;
        }
    }

    return create ? ngx_toolgate_redis_server_new(conf) : NULL;
}


static ngx_toolgate_redis_server_t *
ngx_toolgate_redis_server_new(ngx_toolgate_redis_conf_t *conf)
{
    ngx_pool_t                   *pool;
    ngx_toolgate_redis_server_t  *server;

    pool = ngx_create_pool(2048, ngx_cycle->log);
    if (pool == NULL) {
        return NULL;
    }

    server = ngx_pcalloc(pool, sizeof(ngx_toolgate_redis_server_t));
    if (server == NULL) {
        ngx_destroy_pool(pool);
        return NULL;
    }

    server->pool = pool;
    server->conf = *conf;
    server->good = 1;

    if (ngx_toolgate_redis_copy(pool, &server->conf.url) != NGX_OK
        || ngx_toolgate_redis_copy(pool, &server->conf.unix_path) != NGX_OK
        || ngx_toolgate_redis_copy(pool, &server->conf.host) != NGX_OK
        || ngx_toolgate_redis_copy(pool, &server->conf.password) != NGX_OK)
    {
        ngx_destroy_pool(pool);
        return NULL;
    }

    ngx_str_null(&server->conf.prefix);

    ngx_queue_init(&server->waiting);
    ngx_queue_init(&server->sent);
    ngx_queue_init(&server->failed);

    ngx_toolgate_redis_server_event(server, &server->greet,
                                    ngx_toolgate_redis_greet_handler);
    ngx_toolgate_redis_server_event(server, &server->retry,
                                    ngx_toolgate_redis_retry_handler);
    ngx_toolgate_redis_server_event(server, &server->deadline,
                                    ngx_toolgate_redis_deadline_handler);
    ngx_toolgate_redis_server_event(server, &server->deliver,
                                    ngx_toolgate_redis_ticket_deliver);

    /* a leaving worker waits for commands, which are bounded, but for no more */
    server->greet.cancelable = 1;
    server->retry.cancelable = 1;

    ngx_queue_insert_tail(&ngx_toolgate_redis_worker.servers, &server->queue);

    return server;
}


static ngx_int_t
ngx_toolgate_redis_copy(ngx_pool_t *pool, ngx_str_t *str)
{
    u_char  *p;

    p = ngx_pnalloc(pool, str->len + 1);
    if (p == NULL) {
        return NGX_ERROR;
    }

    /* one that was not given has no data either */
    if (str->len) {
        ngx_memcpy(p, str->data, str->len);
    }

    p[str->len] = '\0';
    str->data = p;

    return NGX_OK;
}


static void
ngx_toolgate_redis_server_event(ngx_toolgate_redis_server_t *server,
    ngx_event_t *ev, ngx_event_handler_pt handler)
{
    ev->handler = handler;
    ev->data = server;
    ev->log = ngx_cycle->log;
}


void
ngx_toolgate_redis_advance(ngx_toolgate_redis_server_t *server,
    ngx_toolgate_redis_event_e event, const char *reason)
{
    char          buf[NGX_TOOLGATE_REDIS_REASON];
    ngx_queue_t  *q;

    switch (event) {

    case NGX_TOOLGATE_REDIS_NEEDED:
        if (server->state != NGX_TOOLGATE_REDIS_IDLE
            && server->state != NGX_TOOLGATE_REDIS_DOWN)
        {
            break;
        }

        server->link = ngx_toolgate_redis_link_open(&server->conf,
                                    &ngx_toolgate_redis_handlers, server, buf);
        if (server->link == NULL) {
            ngx_toolgate_redis_down(server, buf);
            break;
        }

        server->state = NGX_TOOLGATE_REDIS_CONNECTING;
        server->proven = 0;
        ngx_add_timer(&server->greet, server->conf.timeout);
        break;

    case NGX_TOOLGATE_REDIS_CONNECTED:
        server->state = NGX_TOOLGATE_REDIS_GREETING;
        ngx_toolgate_redis_greet(server);
        break;

    case NGX_TOOLGATE_REDIS_GREETED:
        server->state = NGX_TOOLGATE_REDIS_READY;
        server->good = 1;
        ngx_del_timer(&server->greet);

        if (server->reported) {
            server->reported = 0;
            ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                          "toolgate: redis \"%V\" is back", &server->conf.url);
        }

        while (!ngx_queue_empty(&server->waiting)) {
            q = ngx_queue_head(&server->waiting);
            ngx_toolgate_redis_ticket_send(ngx_queue_data(q,
                                          ngx_toolgate_redis_ticket_t, queue));
        }

        break;

    case NGX_TOOLGATE_REDIS_LOST:
        server->link = NULL;

        /* an idle close or a restart: one that has worked may be asked again
         * at once, one that never did may not */
        if (server->state == NGX_TOOLGATE_REDIS_READY && server->proven) {
            server->state = NGX_TOOLGATE_REDIS_IDLE;

            ngx_log_error(NGX_LOG_INFO, ngx_cycle->log, 0,
                          "toolgate: redis \"%V\" closed the connection with "
                          "%ui pending: %s",
                          &server->conf.url, server->pending, reason);

            ngx_toolgate_redis_fail_all(server);
            break;
        }

        ngx_toolgate_redis_down(server, reason);
        break;

    case NGX_TOOLGATE_REDIS_FAILED:
        ngx_toolgate_redis_down(server, reason);
        break;
    }
}


static void
ngx_toolgate_redis_down(ngx_toolgate_redis_server_t *server, const char *reason)
{
    ngx_toolgate_redis_link_t  *link;

    if (!server->reported) {
        server->reported = 1;
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "toolgate: redis \"%V\" is away: %s",
                      &server->conf.url, reason);
    }

    server->state = NGX_TOOLGATE_REDIS_DOWN;
    server->good = 0;

    if (server->link) {
        link = server->link;
        server->link = NULL;
        ngx_toolgate_redis_link_close(link);
    }

    ngx_toolgate_redis_fail_all(server);

    ngx_add_timer(&server->retry, NGX_TOOLGATE_REDIS_RETRY_MS);
}


/* takes the timers off and every ticket back from a connection that is gone */
static void
ngx_toolgate_redis_fail_all(ngx_toolgate_redis_server_t *server)
{
    ngx_queue_t  *q;

    if (server->greet.timer_set) {
        ngx_del_timer(&server->greet);
    }

    if (server->deadline.timer_set) {
        ngx_del_timer(&server->deadline);
    }

    while (!ngx_queue_empty(&server->sent)) {
        q = ngx_queue_head(&server->sent);
        ngx_toolgate_redis_ticket_fail(ngx_queue_data(q,
                                          ngx_toolgate_redis_ticket_t, queue));
    }

    while (!ngx_queue_empty(&server->waiting)) {
        q = ngx_queue_head(&server->waiting);
        ngx_toolgate_redis_ticket_fail(ngx_queue_data(q,
                                          ngx_toolgate_redis_ticket_t, queue));
    }
}


/* commands wait for all of it: one that went to a wrong database is no help */
static void
ngx_toolgate_redis_greet(ngx_toolgate_redis_server_t *server)
{
    u_char       text[NGX_INT_T_LEN + 1];
    const char  *auth[] = { "AUTH", (char *) server->conf.password.data };
    const char  *select[] = { "SELECT", (char *) text };
    const char  *ping[] = { "PING" };
    size_t       auth_len[] = { 4, server->conf.password.len };
    size_t       select_len[] = { 6, 0 };
    const char  *load[] = { "SCRIPT", "LOAD", NULL };
    size_t       ping_len[] = { 4 };
    size_t       load_len[] = { 6, 4, 0 };
    ngx_uint_t   i, failed;

    failed = 0;
    server->greetings = 0;

    if (server->conf.password.len) {
        server->greetings++;
        failed |= ngx_toolgate_redis_link_send(server->link, 2, auth, auth_len,
                                               NULL) != NGX_OK;
    }

    if (server->conf.db) {
        server->greetings++;
        select_len[1] = ngx_sprintf(text, "%ui", server->conf.db) - text;
        failed |= ngx_toolgate_redis_link_send(server->link, 2, select,
                                               select_len, NULL) != NGX_OK;
    }

    server->greetings++;
    failed |= ngx_toolgate_redis_link_send(server->link, 1, ping, ping_len,
                                           NULL) != NGX_OK;

    /* a script that is not known is sent again, behind others that were to come
     * after it: here all become known, so that the order holds */

    for (i = 0; ngx_toolgate_scripts[i]; i++) {
        load[2] = ngx_toolgate_scripts[i]->text;
        load_len[2] = ngx_strlen(load[2]);

        server->greetings++;
        failed |= ngx_toolgate_redis_link_send(server->link, 3, load, load_len,
                                               NULL) != NGX_OK;
    }

    /* out of memory: one more than can come, so the greet timer ends it */
    server->greetings += failed;
}


static void
ngx_toolgate_redis_connected(void *owner)
{
    ngx_toolgate_redis_advance(owner, NGX_TOOLGATE_REDIS_CONNECTED, NULL);
}


static void
ngx_toolgate_redis_reply(void *owner, void *item, redisReply *reply)
{
    ngx_toolgate_redis_server_t  *server;
    ngx_toolgate_redis_ticket_t  *ticket;

    server = owner;
    ticket = item;

    if (ticket == NULL) {
        if (reply->type == REDIS_REPLY_ERROR) {
            ngx_toolgate_redis_advance(server, NGX_TOOLGATE_REDIS_FAILED,
                                       reply->str);
            return;
        }

        if (--server->greetings == 0) {
            ngx_toolgate_redis_advance(server, NGX_TOOLGATE_REDIS_GREETED,
                                       NULL);
        }

        return;
    }

    server->proven = 1;
    ngx_toolgate_redis_ticket_reply(ticket, reply);
}


static void
ngx_toolgate_redis_closed(void *owner, ngx_toolgate_redis_loss_e loss,
    const char *reason)
{
    ngx_toolgate_redis_server_t  *server;

    server = owner;
    server->link = NULL;

    ngx_toolgate_redis_advance(server,
                               loss == NGX_TOOLGATE_REDIS_HANGUP
                               ? NGX_TOOLGATE_REDIS_LOST
                               : NGX_TOOLGATE_REDIS_FAILED, reason);
}


static void
ngx_toolgate_redis_greet_handler(ngx_event_t *ev)
{
    ngx_toolgate_redis_server_t  *server;

    server = ev->data;

    ngx_toolgate_redis_advance(server, NGX_TOOLGATE_REDIS_FAILED,
                               server->state == NGX_TOOLGATE_REDIS_CONNECTING
                               ? "no connection in time"
                               : "no answer to the greeting in time");
}


static void
ngx_toolgate_redis_deadline_handler(ngx_event_t *ev)
{
    ngx_queue_t                  *queue;
    ngx_msec_int_t                left;
    ngx_toolgate_redis_server_t  *server;
    ngx_toolgate_redis_ticket_t  *oldest;

    server = ev->data;

    queue = ngx_queue_empty(&server->sent) ? &server->waiting : &server->sent;
    if (ngx_queue_empty(queue)) {
        return;
    }

    oldest = ngx_queue_data(ngx_queue_head(queue), ngx_toolgate_redis_ticket_t,
                            queue);

    /* the timer was set for one that has its answer: not touched by every
     * reply, which would cost more than this */
    left = (ngx_msec_int_t) (oldest->deadline - ngx_current_msec);
    if (left > 0) {
        ngx_add_timer(&server->deadline, left);
        return;
    }

    ngx_toolgate_redis_advance(server, NGX_TOOLGATE_REDIS_FAILED,
                               "no answer in time");
}


static void
ngx_toolgate_redis_retry_handler(ngx_event_t *ev)
{
    ngx_toolgate_redis_advance(ev->data, NGX_TOOLGATE_REDIS_NEEDED, NULL);
}
