/*
 * What makes a run survive: its document in the store, who drives it, and the events
 * that others follow. A run that is not kept (store is false, or there is no store)
 * has none of this. What is written into the document is _checkpoint.c's business.
 */

#ifndef NGX_HTTP_TOOLGATE_DURABLE_H
#define NGX_HTTP_TOOLGATE_DURABLE_H

#include "ngx_http_toolgate_run.h"
#include "ngx_http_toolgate_run_feed.h"


#define NGX_HTTP_TOOLGATE_RENEW_MS       3000     /* of a lease of 10 s */
#define NGX_HTTP_TOOLGATE_NEWS_MS        50       /* text is gathered that long */
#define NGX_HTTP_TOOLGATE_NEWS_MAX       32       /* events of one write */
#define NGX_HTTP_TOOLGATE_NEWS_BYTES     (2 * 1024 * 1024)
#define NGX_HTTP_TOOLGATE_NEWS_TEXT      (64 * 1024)   /* of one text event */
#define NGX_HTTP_TOOLGATE_HALF_TEXT_MAX  (256 * 1024)  /* of a run that has failed */
#define NGX_HTTP_TOOLGATE_CHECKPOINT_MAX (32 * 1024 * 1024)

/* An event that waits to be written: where its members lie in durable->members. */
typedef struct {
    const char                     *type;
    size_t                          start;
    size_t                          end;
} ngx_http_toolgate_waiting_news_t;

/* What hears the answers to writes of events: a stream has any number of them, and its
 * request's pool would grow with each. It outlives the run until the last is in. */
typedef struct {
    ngx_http_toolgate_durable_t    *durable;        /* NULL: it is gone */
    ngx_uint_t                      open;           /* answers that are to come */
} ngx_http_toolgate_ear_t;

struct ngx_http_toolgate_durable_s {
    ngx_http_toolgate_run_t        *run;
    ngx_http_toolgate_run_key_t     key;
    ngx_str_t                       invocation;     /* the caller's, or empty */
    ngx_str_t                       face;           /* "chat", … */
    ngx_http_toolgate_ear_t        *ear;
    ngx_http_toolgate_driven_t      driven;
    ngx_event_t                     renew;
    ngx_event_t                     flush;
    tg_buf_t                        text;           /* shown, not written yet */
    tg_buf_t                        members;        /* of the events that wait */
    ngx_array_t                     news;           /* of waiting_news_t */
    tg_buf_t                        output;         /* text of the turns before */
    tg_buf_t                        scratch;        /* JSON on its way */
    ngx_http_toolgate_answer_e      opened;         /* what the store said */
    ngx_http_toolgate_follow_t      follow;         /* of another's run */
    ngx_msec_t                      taken;          /* when this one began */
    ngx_msec_t                      wait;           /* of a pause, at most */
    unsigned                        taken_over:1;   /* it is in the store already */
    unsigned                        restored:1;     /* another drove it before */
    unsigned                        queued:1;       /* the run host is to drive it */
    unsigned                        settled:1;      /* the turn is in output */
    unsigned                        round_saved:1;  /* the round is in the store */
    unsigned                        over:1;         /* nothing is written any more */
    unsigned                        waits:1;        /* the store's answer to create */
};


/* Between _run.c, the state machine, and _run_life.c. */
void ngx_http_toolgate_run_happened(ngx_http_toolgate_run_t *run);
void ngx_http_toolgate_run_limit_time(ngx_http_toolgate_run_t *run,
    ngx_msec_t left);
void ngx_http_toolgate_run_open(ngx_http_toolgate_run_t *run, ngx_int_t rc);
void ngx_http_toolgate_run_ping(ngx_event_t *ev);
void ngx_http_toolgate_run_stop(ngx_http_toolgate_run_t *run);

/* Between the files of the durable run. renewed: what the store says of a write that
 * renews the lease; it may end the run. */
void ngx_http_toolgate_durable_flush_event(ngx_event_t *ev);
void ngx_http_toolgate_durable_renewed(void *data,
    ngx_http_toolgate_run_answer_t *answer);
void ngx_http_toolgate_durable_stop(ngx_http_toolgate_durable_t *durable);

/* _durable_events.c: writes fields together with the events that wait. done NULL: nobody
 * waits for the answer. */
ngx_int_t ngx_http_toolgate_durable_save(ngx_http_toolgate_durable_t *durable,
    ngx_http_toolgate_save_e what, const char *status,
    ngx_http_toolgate_field_t *fields, ngx_uint_t n,
    ngx_http_toolgate_run_done_pt done, void *data);

/* Adds what the turn under way has said to the run's text, once. */
void ngx_http_toolgate_durable_settle(ngx_http_toolgate_durable_t *durable);

/* Adds an event; members begins with a comma or is empty. */
void ngx_http_toolgate_durable_news(ngx_http_toolgate_durable_t *durable,
    const char *type, tg_str_t members);

/* _checkpoint.c: each appends one JSON text; what fails sets its error. */
void ngx_http_toolgate_checkpoint_progress(ngx_http_toolgate_durable_t *durable,
    tg_buf_t *out);
void ngx_http_toolgate_checkpoint_round(ngx_http_toolgate_run_t *run,
    tg_buf_t *out);
void ngx_http_toolgate_checkpoint_intent(ngx_http_toolgate_call_t *call,
    tg_buf_t *out);
void ngx_http_toolgate_checkpoint_outcome(ngx_http_toolgate_call_t *call,
    tg_buf_t *out);
void ngx_http_toolgate_checkpoint_result(ngx_http_toolgate_durable_t *durable,
    tg_buf_t *out);

/* What a document says of how far a run has come; NULL: nothing. */
typedef struct {
    json_t                         *progress;
    json_t                         *round;
} ngx_http_toolgate_restored_t;

/* _restore.c: reads it; it lives as long as pool. NGX_DECLINED: it makes no sense. */
ngx_int_t ngx_http_toolgate_restore_load(ngx_pool_t *pool,
    ngx_http_toolgate_run_answer_t *document,
    ngx_http_toolgate_restored_t **loaded);
/* Sets a run to where it was. The round that was under way is kept for calls_start. */
ngx_int_t ngx_http_toolgate_restore(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_restored_t *restored);

/* For one who follows a run that has ended: what its face needs to finish. */
ngx_int_t ngx_http_toolgate_restore_result(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_run_answer_t *document);
ngx_int_t ngx_http_toolgate_restore_handed(ngx_http_toolgate_run_t *run,
    json_t *calls);

#endif /* NGX_HTTP_TOOLGATE_DURABLE_H */
