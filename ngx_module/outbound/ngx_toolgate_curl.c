/*
 * libcurl multi on nginx's events: watches of sockets, curl's timer, the list of
 * transfers that are over, free easy handles, shared TLS sessions.
 *
 * Curl forbids calls on the multi handle from its callbacks, and whoever is told
 * that a transfer is over may end requests, whose clean-up does just that. So
 * callbacks only move things between lists, and "over" is told after
 * curl_multi_socket_action has returned. When control goes back to the event loop
 * the ready list is empty, and each watched socket holds one nginx connection,
 * which curl's own closing of the socket gives back.
 */

#include "ngx_toolgate_curl.h"


/* a kept connection that was idle for longer is not trusted to be alive */
#define NGX_TOOLGATE_CURL_MAX_IDLE_S  30L


typedef struct {
    CURLM        *multi;
    CURLSH       *share;
    ngx_log_t    *log;
    ngx_event_t   timer;         /* curl's next time-out */
    ngx_event_t   soon;          /* a time-out of 0 ms */
    ngx_queue_t   open;          /* have a handle, not started */
    ngx_queue_t   running;
    ngx_queue_t   ready;
    ngx_uint_t    count[2];      /* of the three queues; [1]: lasting ones */
    ngx_uint_t    watches;
    ngx_uint_t    depth;         /* curl is on the stack */
    ngx_uint_t    free_count;
    CURL         *free[NGX_TOOLGATE_CURL_MAX_FREE];
} ngx_toolgate_curl_worker_t;


static ngx_int_t ngx_toolgate_curl_share(ngx_toolgate_curl_worker_t *worker);
static ngx_int_t ngx_toolgate_curl_multi(ngx_toolgate_curl_worker_t *worker);
static void ngx_toolgate_curl_action(curl_socket_t fd, int mask);
static void ngx_toolgate_curl_collect(ngx_toolgate_curl_worker_t *worker);
static void ngx_toolgate_curl_deliver(ngx_toolgate_curl_worker_t *worker);
static void ngx_toolgate_curl_ready(ngx_toolgate_curl_worker_t *worker,
    ngx_toolgate_transfer_t *transfer, CURLcode rc);
static int ngx_toolgate_curl_on_socket(CURL *easy, curl_socket_t fd, int what,
    void *data, void *watch);
static ngx_connection_t *ngx_toolgate_curl_watch(
    ngx_toolgate_curl_worker_t *worker, curl_socket_t fd);
static ngx_int_t ngx_toolgate_curl_want(ngx_event_t *ev, ngx_uint_t want,
    ngx_int_t event);
static void ngx_toolgate_curl_unwatch(ngx_toolgate_curl_worker_t *worker,
    ngx_connection_t *c);
static void ngx_toolgate_curl_on_event(ngx_event_t *ev);
static int ngx_toolgate_curl_on_timeout(CURLM *multi, long timeout_ms,
    void *data);
static void ngx_toolgate_curl_on_timer(ngx_event_t *ev);


ngx_connection_t  ngx_toolgate_no_connection = { .fd = (ngx_socket_t) -1 };

static const ngx_uint_t  ngx_toolgate_curl_bound[2] = {
    NGX_TOOLGATE_CURL_MAX_TRANSFERS, NGX_TOOLGATE_CURL_MAX_STREAMS
};

/* all that a worker has of curl; multi is NULL where no transfers are run */
static ngx_toolgate_curl_worker_t  ngx_toolgate_curl_worker;


ngx_int_t
ngx_toolgate_curl_init_worker(ngx_cycle_t *cycle)
{
    ngx_toolgate_curl_worker_t  *worker = &ngx_toolgate_curl_worker;

    /* not in the cache manager, and never in the master: a fork copies handles */
    if (ngx_process != NGX_PROCESS_WORKER && ngx_process != NGX_PROCESS_SINGLE) {
        return NGX_OK;
    }

    ngx_memzero(worker, sizeof(ngx_toolgate_curl_worker_t));

    worker->log = cycle->log;
    ngx_queue_init(&worker->open);
    ngx_queue_init(&worker->running);
    ngx_queue_init(&worker->ready);

    worker->timer.handler = ngx_toolgate_curl_on_timer;
    worker->timer.data = &ngx_toolgate_no_connection;
    worker->timer.log = cycle->log;
    worker->timer.cancelable = 1;

    worker->soon.handler = ngx_toolgate_curl_on_timer;
    worker->soon.data = &ngx_toolgate_no_connection;
    worker->soon.log = cycle->log;

    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "toolgate: curl_global_init() failed");
        return NGX_ERROR;
    }

    if (ngx_toolgate_curl_share(worker) != NGX_OK
        || ngx_toolgate_curl_multi(worker) != NGX_OK)
    {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "toolgate: curl could not be set up");
        ngx_toolgate_curl_exit_worker(cycle);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* TLS sessions only: one thread, so no locks */
static ngx_int_t
ngx_toolgate_curl_share(ngx_toolgate_curl_worker_t *worker)
{
    worker->share = curl_share_init();

    if (worker->share == NULL
        || curl_share_setopt(worker->share, CURLSHOPT_SHARE,
                             CURL_LOCK_DATA_SSL_SESSION) != CURLSHE_OK)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}


/*
 * The bound on transfers is kept here and not by CURLMOPT_MAX_TOTAL_CONNECTIONS,
 * because curl lets what is over its bound wait without a time-out.
 */
static ngx_int_t
ngx_toolgate_curl_multi(ngx_toolgate_curl_worker_t *worker)
{
    CURLM      *multi;
    CURLMcode   rc;

    multi = curl_multi_init();
    if (multi == NULL) {
        return NGX_ERROR;
    }

    worker->multi = multi;

    rc = curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION,
                           ngx_toolgate_curl_on_socket);

    if (rc == CURLM_OK) {
        rc = curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, worker);
    }

    if (rc == CURLM_OK) {
        rc = curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION,
                               ngx_toolgate_curl_on_timeout);
    }

    if (rc == CURLM_OK) {
        rc = curl_multi_setopt(multi, CURLMOPT_TIMERDATA, worker);
    }

    if (rc == CURLM_OK) {
        rc = curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS,
                               (long) NGX_TOOLGATE_CURL_MAX_IDLE);
    }

    if (rc == CURLM_OK) {
        rc = curl_multi_setopt(multi, CURLMOPT_PIPELINING,
                               (long) CURLPIPE_NOTHING);
    }

    return rc == CURLM_OK ? NGX_OK : NGX_ERROR;
}


void
ngx_toolgate_curl_exit_worker(ngx_cycle_t *cycle)
{
    ngx_uint_t                   i;
    ngx_queue_t                 *queues[3];
    ngx_toolgate_transfer_t     *transfer;
    ngx_toolgate_curl_worker_t  *worker = &ngx_toolgate_curl_worker;

    if (worker->log == NULL) {
        return;
    }

    /* their owners' pools may go later, or never */
    queues[0] = &worker->open;
    queues[1] = &worker->running;
    queues[2] = &worker->ready;

    for (i = 0; i < 3; i++) {
        while (!ngx_queue_empty(queues[i])) {
            transfer = ngx_queue_data(ngx_queue_head(queues[i]),
                                      ngx_toolgate_transfer_t, queue);
            ngx_toolgate_curl_close(transfer, 0);
        }
    }

    while (worker->free_count > 0) {
        curl_easy_cleanup(worker->free[--worker->free_count]);
    }

    if (worker->multi) {
        (void) curl_multi_cleanup(worker->multi);
        worker->multi = NULL;
    }

    if (worker->share) {
        (void) curl_share_cleanup(worker->share);
        worker->share = NULL;
    }

    if (worker->timer.timer_set) {
        ngx_del_timer(&worker->timer);
    }

    if (worker->soon.posted) {
        ngx_delete_posted_event(&worker->soon);
    }

    curl_global_cleanup();

    ngx_log_error(NGX_LOG_NOTICE, cycle->log, 0,
                  "toolgate: watches left: %ui", worker->watches);

    worker->log = NULL;
}


ngx_int_t
ngx_toolgate_curl_open(ngx_toolgate_transfer_t *transfer, ngx_uint_t lasting,
    ngx_toolgate_transfer_done_pt done, void *data)
{
    CURL                        *easy;
    ngx_toolgate_curl_worker_t  *worker = &ngx_toolgate_curl_worker;

    if (worker->multi == NULL) {
        return NGX_ERROR;
    }

    if (worker->count[lasting] >= ngx_toolgate_curl_bound[lasting]) {
        return NGX_BUSY;
    }

    if (worker->free_count > 0) {

        /* it was reset when it was put there */
        easy = worker->free[--worker->free_count];

    } else {
        easy = curl_easy_init();
        if (easy == NULL) {
            return NGX_ERROR;
        }
    }

    if (curl_easy_setopt(easy, CURLOPT_SHARE, worker->share) != CURLE_OK
        || curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer) != CURLE_OK
        || curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN,
                            NGX_TOOLGATE_CURL_MAX_IDLE_S) != CURLE_OK)
    {
        curl_easy_cleanup(easy);
        return NGX_ERROR;
    }

    transfer->easy = easy;
    transfer->done = done;
    transfer->data = data;
    transfer->rc = CURLE_OK;
    transfer->added = 0;
    transfer->ready = 0;
    transfer->lasting = lasting;

    ngx_queue_insert_tail(&worker->open, &transfer->queue);
    worker->count[lasting]++;

    return NGX_OK;
}


ngx_int_t
ngx_toolgate_curl_start(ngx_toolgate_transfer_t *transfer)
{
    ngx_toolgate_curl_worker_t  *worker = &ngx_toolgate_curl_worker;

    /* curl only arms its timer here; the work begins in the event loop */
    if (curl_multi_add_handle(worker->multi, transfer->easy) != CURLM_OK) {
        return NGX_ERROR;
    }

    transfer->added = 1;
    ngx_queue_remove(&transfer->queue);
    ngx_queue_insert_tail(&worker->running, &transfer->queue);

    return NGX_OK;
}


void
ngx_toolgate_curl_resume(ngx_toolgate_transfer_t *transfer)
{
    CURLcode                     rc;
    ngx_toolgate_curl_worker_t  *worker = &ngx_toolgate_curl_worker;

    if (!transfer->added || transfer->ready) {
        return;
    }

    /* the callbacks are called in here */
    worker->depth++;
    rc = curl_easy_pause(transfer->easy, CURLPAUSE_CONT);
    worker->depth--;

    /* curl tells a fault of theirs to us only, and goes on waiting */
    if (rc != CURLE_OK) {
        ngx_toolgate_curl_ready(worker, transfer, rc);
    }

    ngx_toolgate_curl_collect(worker);
    ngx_toolgate_curl_deliver(worker);
}


void
ngx_toolgate_curl_close(ngx_toolgate_transfer_t *transfer, ngx_uint_t keep)
{
    ngx_toolgate_curl_worker_t  *worker = &ngx_toolgate_curl_worker;

    if (transfer->easy == NULL) {
        return;
    }

    if (transfer->added) {
        (void) curl_multi_remove_handle(worker->multi, transfer->easy);
        transfer->added = 0;
    }

    ngx_queue_remove(&transfer->queue);
    worker->count[transfer->lasting]--;

    if (keep && worker->free_count < NGX_TOOLGATE_CURL_MAX_FREE) {

        /* drops what points into the owner's memory */
        curl_easy_reset(transfer->easy);
        worker->free[worker->free_count++] = transfer->easy;

    } else {
        curl_easy_cleanup(transfer->easy);
    }

    transfer->easy = NULL;
    transfer->ready = 0;
}


/* the only way into curl's state machine */
static void
ngx_toolgate_curl_action(curl_socket_t fd, int mask)
{
    int                          running;
    CURLMcode                    rc;
    ngx_toolgate_curl_worker_t  *worker = &ngx_toolgate_curl_worker;

    if (worker->multi == NULL || worker->depth > 0) {
        return;
    }

    worker->depth++;
    rc = curl_multi_socket_action(worker->multi, fd, mask, &running);
    worker->depth--;

    if (rc != CURLM_OK) {
        ngx_log_error(NGX_LOG_ERR, worker->log, 0,
                      "toolgate: curl_multi_socket_action() failed: %s",
                      curl_multi_strerror(rc));
    }

    ngx_toolgate_curl_collect(worker);
    ngx_toolgate_curl_deliver(worker);
}


static void
ngx_toolgate_curl_collect(ngx_toolgate_curl_worker_t *worker)
{
    int                       left;
    char                     *private;
    CURLMsg                  *message;
    ngx_toolgate_transfer_t  *transfer;

    for ( ;; ) {
        message = curl_multi_info_read(worker->multi, &left);

        if (message == NULL) {
            return;
        }

        if (message->msg != CURLMSG_DONE
            || curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private)
               != CURLE_OK)
        {
            continue;
        }

        transfer = (ngx_toolgate_transfer_t *) private;
        ngx_toolgate_curl_ready(worker, transfer, message->data.result);
    }
}


/* may be called by curl's callbacks: moves between lists and nothing else */
static void
ngx_toolgate_curl_ready(ngx_toolgate_curl_worker_t *worker,
    ngx_toolgate_transfer_t *transfer, CURLcode rc)
{
    if (transfer->ready) {
        return;
    }

    transfer->ready = 1;
    transfer->rc = rc;

    ngx_queue_remove(&transfer->queue);
    ngx_queue_insert_tail(&worker->ready, &transfer->queue);
}


/* each callback may close any transfer, start others, or destroy pools */
static void
ngx_toolgate_curl_deliver(ngx_toolgate_curl_worker_t *worker)
{
    ngx_toolgate_transfer_t  *transfer;

    while (!ngx_queue_empty(&worker->ready)) {
        transfer = ngx_queue_data(ngx_queue_head(&worker->ready),
                                  ngx_toolgate_transfer_t, queue);

        ngx_queue_remove(&transfer->queue);
        ngx_queue_insert_tail(&worker->open, &transfer->queue);
        transfer->ready = 0;

        (void) curl_multi_remove_handle(worker->multi, transfer->easy);
        transfer->added = 0;

        transfer->done(transfer->data, transfer->rc);
    }
}


/*
 * An error value from here would end every transfer of the worker, so a socket
 * that cannot be watched ends its own transfer by the ready list.
 */
static int
ngx_toolgate_curl_on_socket(CURL *easy, curl_socket_t fd, int what, void *data,
    void *watch)
{
    char                        *private;
    ngx_connection_t            *c = watch;
    ngx_toolgate_curl_worker_t  *worker = data;

    if (what == CURL_POLL_REMOVE) {

        if (c) {
            ngx_toolgate_curl_unwatch(worker, c);
        }

        return 0;
    }

    if (c == NULL) {
        c = ngx_toolgate_curl_watch(worker, fd);
    }

    /* what is wanted first: the other order would drop and re-add the socket */

    if (c
        && ngx_toolgate_curl_want(c->write, what & CURL_POLL_OUT, NGX_WRITE_EVENT)
           == NGX_OK
        && ngx_toolgate_curl_want(c->read, what & CURL_POLL_IN, NGX_READ_EVENT)
           == NGX_OK)
    {
        return 0;
    }

    if (curl_easy_getinfo(easy, CURLINFO_PRIVATE, &private) == CURLE_OK
        && private)
    {
        ngx_toolgate_curl_ready(worker, (ngx_toolgate_transfer_t *) private,
                                CURLE_OUT_OF_MEMORY);
    }

    return 0;
}


static ngx_connection_t *
ngx_toolgate_curl_watch(ngx_toolgate_curl_worker_t *worker, curl_socket_t fd)
{
    ngx_connection_t  *c;

    c = ngx_get_connection(fd, worker->log);
    if (c == NULL) {
        return NULL;
    }

    c->read->handler = ngx_toolgate_curl_on_event;
    c->read->log = worker->log;
    c->write->handler = ngx_toolgate_curl_on_event;
    c->write->log = worker->log;

    worker->watches++;

    (void) curl_multi_assign(worker->multi, fd, c);

    return c;
}


/* level-triggered, as curl expects it; the same flag when one direction goes, or
 * the other would be changed to edge */
static ngx_int_t
ngx_toolgate_curl_want(ngx_event_t *ev, ngx_uint_t want, ngx_int_t event)
{
    if (want && !ev->active) {
        return ngx_add_event(ev, event, NGX_LEVEL_EVENT);
    }

    if (!want && ev->active) {
        return ngx_del_event(ev, event, NGX_LEVEL_EVENT);
    }

    return NGX_OK;
}


/*
 * The socket is curl's: it closes it, or keeps it for the next transfer. One that
 * never got connected it closes before it says so, and then epoll has let go of it.
 */
static void
ngx_toolgate_curl_unwatch(ngx_toolgate_curl_worker_t *worker,
    ngx_connection_t *c)
{
    if (fcntl(c->fd, F_GETFD) != -1) {
        (void) ngx_toolgate_curl_want(c->read, 0, NGX_READ_EVENT);
        (void) ngx_toolgate_curl_want(c->write, 0, NGX_WRITE_EVENT);
    }

    c->read->active = 0;
    c->write->active = 0;

    if (c->read->posted) {
        ngx_delete_posted_event(c->read);
    }

    if (c->write->posted) {
        ngx_delete_posted_event(c->write);
    }

    ngx_free_connection(c);
    c->fd = (ngx_socket_t) -1;

    worker->watches--;
}


static void
ngx_toolgate_curl_on_event(ngx_event_t *ev)
{
    ngx_connection_t  *c = ev->data;

    ngx_toolgate_curl_action(c->fd, ev->write ? CURL_CSELECT_OUT : CURL_CSELECT_IN);
}


/* curl says when it wants to be called; 0 must not be answered from in here */
static int
ngx_toolgate_curl_on_timeout(CURLM *multi, long timeout_ms, void *data)
{
    ngx_toolgate_curl_worker_t  *worker = data;

    if (worker->timer.timer_set) {
        ngx_del_timer(&worker->timer);
    }

    if (worker->soon.posted) {
        ngx_delete_posted_event(&worker->soon);
    }

    if (timeout_ms == 0) {

        /* the next turn of the loop, so that curl cannot keep this one */
        ngx_post_event(&worker->soon, &ngx_posted_next_events);

    } else if (timeout_ms > 0) {
        ngx_add_timer(&worker->timer, (ngx_msec_t) timeout_ms);
    }

    return 0;
}


static void
ngx_toolgate_curl_on_timer(ngx_event_t *ev)
{
    ngx_toolgate_curl_action(CURL_SOCKET_TIMEOUT, 0);
}
