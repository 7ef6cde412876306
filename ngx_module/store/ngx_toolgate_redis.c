/*
 * Redis by hiredis on nginx's events: commands and their callbacks.
 *
 * A ticket is one command and its one callback. It is in exactly one queue of
 * its server (waiting, sent or failed) until it is told or dropped, so that
 * nothing is answered twice or forgotten whatever the connection does.
 * Callbacks run from the event loop with a reply, or from a posted event with
 * NULL; never from inside a call of this file's functions.
 */

#include "ngx_toolgate_redis_server.h"


static ngx_toolgate_redis_ticket_t *ngx_toolgate_redis_ticket_new(
    ngx_toolgate_redis_conf_t *conf, ngx_log_t *log, ngx_uint_t argc,
    ngx_str_t *argv, const ngx_toolgate_script_t *script);
static ngx_toolgate_redis_ticket_t *ngx_toolgate_redis_ticket_submit(
    ngx_toolgate_redis_ticket_t *ticket, ngx_toolgate_redis_done_pt done,
    void *data);
static ngx_int_t ngx_toolgate_redis_ticket_resend(
    ngx_toolgate_redis_ticket_t *ticket);
static void ngx_toolgate_redis_ticket_finish(
    ngx_toolgate_redis_ticket_t *ticket, redisReply *reply);


ngx_toolgate_redis_ticket_t *
ngx_toolgate_redis_command(ngx_toolgate_redis_conf_t *conf, ngx_log_t *log,
    ngx_uint_t argc, ngx_str_t *argv, ngx_toolgate_redis_done_pt done,
    void *data)
{
    ngx_toolgate_redis_ticket_t  *ticket;

    ticket = ngx_toolgate_redis_ticket_new(conf, log, argc, argv, NULL);

    return ticket ? ngx_toolgate_redis_ticket_submit(ticket, done, data) : NULL;
}


ngx_toolgate_redis_ticket_t *
ngx_toolgate_redis_script(ngx_toolgate_redis_conf_t *conf, ngx_log_t *log,
    const ngx_toolgate_script_t *script, ngx_uint_t nkeys, ngx_uint_t argc,
    ngx_str_t *argv, ngx_toolgate_redis_done_pt done, void *data)
{
    u_char                        keys[NGX_INT_T_LEN];
    ngx_str_t                     args[NGX_TOOLGATE_REDIS_MAX_ARGS];
    ngx_toolgate_redis_ticket_t  *ticket;

    if (argc > NGX_TOOLGATE_REDIS_MAX_ARGS - 3) {
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "toolgate: redis script \"%s\" has too many arguments",
                      script->name);
        return NULL;
    }

    ngx_str_set(&args[0], "EVALSHA");
    args[1].data = (u_char *) script->sha1;
    args[1].len = sizeof(script->sha1) - 1;
    args[2].data = keys;
    args[2].len = ngx_sprintf(keys, "%ui", nkeys) - keys;
    ngx_memcpy(&args[3], argv, argc * sizeof(ngx_str_t));

    ticket = ngx_toolgate_redis_ticket_new(conf, log, argc + 3, args, script);

    return ticket ? ngx_toolgate_redis_ticket_submit(ticket, done, data) : NULL;
}


/* hiredis copies what it sends, but what has to wait for the connection or may
 * be sent again outlives the caller's memory and is kept here, in one piece */
static ngx_toolgate_redis_ticket_t *
ngx_toolgate_redis_ticket_new(ngx_toolgate_redis_conf_t *conf, ngx_log_t *log,
    ngx_uint_t argc, ngx_str_t *argv, const ngx_toolgate_script_t *script)
{
    u_char                       *p;
    size_t                        size;
    ngx_uint_t                    i;
    ngx_toolgate_redis_server_t  *server;
    ngx_toolgate_redis_ticket_t  *ticket;

    server = ngx_toolgate_redis_server_get(conf, 1);
    if (server == NULL || argc == 0 || argc > NGX_TOOLGATE_REDIS_MAX_ARGS) {
        return NULL;
    }

    size = sizeof(ngx_toolgate_redis_ticket_t)
           + argc * (sizeof(char *) + sizeof(size_t));

    for (i = 0; i < argc; i++) {
        size += argv[i].len;
    }

    ticket = ngx_alloc(size, log);
    if (ticket == NULL) {
        return NULL;
    }

    ngx_memzero(ticket, sizeof(ngx_toolgate_redis_ticket_t));

    ticket->server = server;
    ticket->script = script;
    ticket->argc = argc;
    ticket->argv = (const char **) (ticket + 1);
    ticket->len = (size_t *) (ticket->argv + argc);

    p = (u_char *) (ticket->len + argc);

    for (i = 0; i < argc; i++) {
        ticket->argv[i] = (const char *) p;
        ticket->len[i] = argv[i].len;
        p = ngx_cpymem(p, argv[i].data, argv[i].len);
    }

    return ticket;
}


static ngx_toolgate_redis_ticket_t *
ngx_toolgate_redis_ticket_submit(ngx_toolgate_redis_ticket_t *ticket,
    ngx_toolgate_redis_done_pt done, void *data)
{
    ngx_toolgate_redis_server_t  *server;

    server = ticket->server;
    ticket->done = done;
    ticket->data = data;

    /* every ticket can be failed from here on: it is in a queue */
    ngx_queue_insert_tail(&server->waiting, &ticket->queue);
    server->pending++;

    if (!server->good || server->pending > NGX_TOOLGATE_REDIS_MAX_PENDING) {
        ngx_toolgate_redis_ticket_fail(ticket);
        return ticket;
    }

    /* the cached time may be old in a long turn of the loop; a deadline
     * reckoned from it would blame Redis for that */
    ngx_time_update();
    ticket->deadline = ngx_current_msec + server->conf.timeout;

    if (!server->deadline.timer_set) {
        ngx_add_timer(&server->deadline, server->conf.timeout);
    }

    if (server->state == NGX_TOOLGATE_REDIS_READY) {
        ngx_toolgate_redis_ticket_send(ticket);

    } else {
        ngx_toolgate_redis_advance(server, NGX_TOOLGATE_REDIS_NEEDED, NULL);
    }

    return ticket;
}


void
ngx_toolgate_redis_ticket_send(ngx_toolgate_redis_ticket_t *ticket)
{
    ngx_toolgate_redis_server_t  *server;

    server = ticket->server;

    if (ngx_toolgate_redis_link_send(server->link, ticket->argc, ticket->argv,
                                     ticket->len, ticket)
        != NGX_OK)
    {
        ngx_toolgate_redis_ticket_fail(ticket);
        return;
    }

    ticket->state = NGX_TOOLGATE_REDIS_SENT;
    ngx_queue_remove(&ticket->queue);
    ngx_queue_insert_tail(&server->sent, &ticket->queue);
}


/* Redis forgot its scripts; this one keeps its deadline and so its place */
static ngx_int_t
ngx_toolgate_redis_ticket_resend(ngx_toolgate_redis_ticket_t *ticket)
{
    const ngx_toolgate_script_t  *script;

    script = ticket->script;
    ticket->script = NULL;

    ticket->argv[0] = "EVAL";
    ticket->len[0] = sizeof("EVAL") - 1;
    ticket->argv[1] = script->text;
    ticket->len[1] = ngx_strlen(script->text);

    return ngx_toolgate_redis_link_send(ticket->server->link, ticket->argc,
                                        ticket->argv, ticket->len, ticket);
}


void
ngx_toolgate_redis_drop(ngx_toolgate_redis_ticket_t *ticket)
{
    ticket->done = NULL;

    switch (ticket->state) {

    case NGX_TOOLGATE_REDIS_WAITING:
        ticket->server->pending--;
        /* fall through */

    case NGX_TOOLGATE_REDIS_UNDONE:
        ngx_queue_remove(&ticket->queue);
        ngx_free(ticket);
        break;

    case NGX_TOOLGATE_REDIS_SENT:      /* hiredis still names it */
    case NGX_TOOLGATE_REDIS_TOLD:
        break;
    }
}


void
ngx_toolgate_redis_ticket_fail(ngx_toolgate_redis_ticket_t *ticket)
{
    ngx_toolgate_redis_server_t  *server;

    server = ticket->server;

    ngx_queue_remove(&ticket->queue);
    server->pending--;

    if (ticket->done == NULL) {
        ngx_free(ticket);
        return;
    }

    ticket->state = NGX_TOOLGATE_REDIS_UNDONE;
    ngx_queue_insert_tail(&server->failed, &ticket->queue);
    ngx_post_event(&server->deliver, &ngx_posted_events);
}


void
ngx_toolgate_redis_ticket_reply(ngx_toolgate_redis_ticket_t *ticket,
    redisReply *reply)
{
    ngx_toolgate_redis_server_t  *server;

    if (ticket->script
        && ticket->done
        && reply->type == REDIS_REPLY_ERROR
        && ngx_strncmp(reply->str, "NOSCRIPT", sizeof("NOSCRIPT") - 1) == 0)
    {
        if (ngx_toolgate_redis_ticket_resend(ticket) != NGX_OK) {
            ngx_toolgate_redis_ticket_fail(ticket);
        }

        return;
    }

    server = ticket->server;

    ngx_queue_remove(&ticket->queue);
    server->pending--;

    /* a timer that is left to run out keeps a worker from leaving, and for ever
     * when something asks again in time */
    if (ngx_exiting && server->pending == 0 && server->deadline.timer_set) {
        ngx_del_timer(&server->deadline);
    }

    ngx_toolgate_redis_ticket_finish(ticket, reply);
}


/* the ticket is in no queue; its owner may drop it from inside done */
static void
ngx_toolgate_redis_ticket_finish(ngx_toolgate_redis_ticket_t *ticket,
    redisReply *reply)
{
    ticket->state = NGX_TOOLGATE_REDIS_TOLD;

    if (ticket->done) {
        ticket->done(ticket->data, reply);
    }

    ngx_free(ticket);
}


void
ngx_toolgate_redis_ticket_deliver(ngx_event_t *ev)
{
    ngx_queue_t                  *q;
    ngx_toolgate_redis_server_t  *server;

    server = ev->data;

    while (!ngx_queue_empty(&server->failed)) {
        q = ngx_queue_head(&server->failed);
        ngx_queue_remove(q);
        ngx_toolgate_redis_ticket_finish(ngx_queue_data(q,
                                    ngx_toolgate_redis_ticket_t, queue), NULL);
    }
}
