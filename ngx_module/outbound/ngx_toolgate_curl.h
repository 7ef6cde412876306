/*
 * One libcurl multi handle a worker on nginx's event loop. A transfer is an easy
 * handle with a place in it; whoever owns the transfer sets the handle's options
 * and gets one callback when it is over. It knows nothing of addresses, answers or
 * calls.
 */

#ifndef NGX_TOOLGATE_CURL_H
#define NGX_TOOLGATE_CURL_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include <curl/curl.h>


#define NGX_TOOLGATE_CURL_MAX_TRANSFERS    512     /* at one time in a worker */
#define NGX_TOOLGATE_CURL_MAX_STREAMS      1024    /* besides, of lasting ones */
#define NGX_TOOLGATE_CURL_MAX_IDLE         256     /* kept connections */
#define NGX_TOOLGATE_CURL_MAX_FREE         256     /* kept easy handles */

typedef struct ngx_toolgate_transfer_s  ngx_toolgate_transfer_t;

/* Called once from the event loop, when curl has let go of the transfer. The
 * handle is still there, for its facts, until ngx_toolgate_curl_close. */
typedef void (*ngx_toolgate_transfer_done_pt)(void *data, CURLcode rc);

struct ngx_toolgate_transfer_s {
    CURL                           *easy;      /* NULL: not open */
    ngx_toolgate_transfer_done_pt   done;
    void                           *data;
    ngx_queue_t                     queue;     /* running, ready or open */
    CURLcode                        rc;
    unsigned                        added:1;   /* curl has it */
    unsigned                        ready:1;   /* over, done not called yet */
    unsigned                        lasting:1; /* counts as a stream */
};


ngx_int_t ngx_toolgate_curl_init_worker(ngx_cycle_t *cycle);
void ngx_toolgate_curl_exit_worker(ngx_cycle_t *cycle);

/* Gives the transfer a clean handle. lasting: of a kind that may go on for minutes,
 * which must not use up what the short ones need (1 or 0). NGX_BUSY: too many at one
 * time; NGX_ERROR: out of memory, or this process runs no transfers. */
ngx_int_t ngx_toolgate_curl_open(ngx_toolgate_transfer_t *transfer,
    ngx_uint_t lasting, ngx_toolgate_transfer_done_pt done, void *data);

/* Sets an open transfer going. */
ngx_int_t ngx_toolgate_curl_start(ngx_toolgate_transfer_t *transfer);

/* Lets a paused transfer go on. Called from the event loop only: what comes next is
 * given to the callbacks, and done may be called, before this returns. */
void ngx_toolgate_curl_resume(ngx_toolgate_transfer_t *transfer);

/* Ends a transfer in whatever state and takes its handle back; keep says that it
 * went well and the handle may serve again. Not to be called by curl's callbacks. */
void ngx_toolgate_curl_close(ngx_toolgate_transfer_t *transfer, ngx_uint_t keep);

/* Stands in as the "connection" of events that have none. */
extern ngx_connection_t  ngx_toolgate_no_connection;

#endif /* NGX_TOOLGATE_CURL_H */
