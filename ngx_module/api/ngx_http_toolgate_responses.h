/*
 * What the files of the Responses endpoint share.
 */

#ifndef NGX_HTTP_TOOLGATE_RESPONSES_H
#define NGX_HTTP_TOOLGATE_RESPONSES_H

#include "ngx_http_toolgate_check.h"
#include "ngx_http_toolgate_response_store.h"

#include "tg_responses.h"


/* said of every id that is not there, whoever may have it */
#define NGX_HTTP_TOOLGATE_RESPONSES_UNKNOWN                                   \
    "There is no such response. It may have been deleted, or not been kept: "  \
    "one with \"store\": false is not."

/* The face's own data of a run. */
typedef struct {
    tg_responses_t   answer;
    tg_buf_t         echo;         /* what its snapshots repeat of the request */
    tg_buf_t         history;      /* messages of the responses before this one */
    ngx_str_t        previous;     /* id of the last of them, or empty */
    ngx_str_t        input;        /* with all its items, or as the caller sent it; of
                                      one that is kept */
    u_char          *data;         /* the memory that it lies in, or NULL */
    size_t           size;
    ngx_array_t      calls;        /* of a run that is followed: those it has shown */
    unsigned         keep:1;
    unsigned         background:1;
    unsigned         own:1;        /* its run is an older response's, too */
    unsigned         there:1;      /* it is in the store already */
    time_t           completed;    /* of one that is shown again, or 0 */
    unsigned         paused:1;     /* its run was seen to wait: what for is shown */
    unsigned         answered:1;   /* its caller waits for nothing more */
} ngx_http_toolgate_responses_state_t;


extern const ngx_http_toolgate_face_t  ngx_http_toolgate_responses_face;

/* Gives a run its face's own data. NGX_DECLINED: c has a fault. */
ngx_int_t ngx_http_toolgate_responses_face_init(ngx_http_toolgate_check_t *c,
    ngx_uint_t keep);

/* _responses_prompt.c: puts the body into the form of chat, a slice in each turn of
 * the event loop, and calls done. On a fault the request is answered. */
void ngx_http_toolgate_responses_prompt(ngx_http_toolgate_check_t *c,
    ngx_http_toolgate_check_done_pt done);

/* _responses_refs.c: looks for the items that the input names, and calls done. On a
 * fault the request is answered. */
void ngx_http_toolgate_responses_refs(ngx_http_toolgate_check_t *c,
    ngx_http_toolgate_check_done_pt done);

/* The face's data for a run whose response is in the store, as object. NGX_DECLINED: it
 * makes no sense. */
ngx_int_t ngx_http_toolgate_responses_face_restore(ngx_http_toolgate_run_t *run,
    tg_str_t object);

/* The object as it is while the run goes on, and its status. */
ngx_int_t ngx_http_toolgate_responses_live(ngx_http_toolgate_run_t *run,
    const char *status, tg_buf_t *out);

/* _responses_follow.c: an event of a run that another drives, and its end. */
ngx_int_t ngx_http_toolgate_responses_event(ngx_http_toolgate_run_t *run,
    int64_t seq, tg_str_t event);
ngx_int_t ngx_http_toolgate_responses_document(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_run_answer_t *document);
/* Gives on what the answer has added. */
ngx_int_t ngx_http_toolgate_responses_send(ngx_http_toolgate_run_t *run,
    tg_rc_e rc);
/* Adds an item for each call that a person has to approve, as a run's required action
 * names them. */
tg_rc_e ngx_http_toolgate_responses_approvals(ngx_http_toolgate_run_t *run,
    json_t *required);
/* The answer of a run, under the id that it has. */
tg_responses_t *ngx_http_toolgate_responses_of(ngx_http_toolgate_run_t *run);

/* _responses_background.c: starts a run that nobody waits for. */
ngx_int_t ngx_http_toolgate_responses_detach(ngx_http_toolgate_check_t *c);
/* Of a run that goes on on the run host: gives it this face when its response is kept,
 * then calls done. */
void ngx_http_toolgate_responses_resume(ngx_http_toolgate_check_t *c,
    ngx_http_toolgate_check_done_pt done);

/* _responses_continue.c: has a run go on that waits for what the input brings; calls
 * done when there is none. On a fault the request is answered. */
void ngx_http_toolgate_responses_continue(ngx_http_toolgate_check_t *c,
    ngx_http_toolgate_check_done_pt done);

/* _responses_keep.c: asks the store for what was said before and calls done. On a fault
 * the request is answered. */
void ngx_http_toolgate_responses_chain(ngx_http_toolgate_check_t *c,
    ngx_http_toolgate_check_done_pt done);
/* Keeps a response that has ended: object is all of it. Before its caller hears that it
 * may ask for it. */
void ngx_http_toolgate_responses_keep(ngx_http_toolgate_run_t *run,
    tg_str_t object, const char *status);
/* Whose it is. */
void ngx_http_toolgate_responses_key(ngx_http_toolgate_run_t *run,
    ngx_str_t *response, ngx_http_toolgate_response_key_t *key);

/* _responses_one.c: what is asked of one that may not have ended. object is as the
 * store has it; each ends in a reply, at once or later. */
void ngx_http_toolgate_responses_show_live(ngx_http_request_t *r,
    ngx_http_toolgate_response_key_t *key, tg_str_t object);
void ngx_http_toolgate_responses_cancel(ngx_http_request_t *r,
    ngx_http_toolgate_response_key_t *key, tg_str_t object);
void ngx_http_toolgate_responses_replay(ngx_http_request_t *r,
    ngx_http_toolgate_project_t *project, ngx_http_toolgate_response_key_t *key,
    tg_str_t object, int64_t after);
/* Whether an object is of one that has not ended. */
ngx_uint_t ngx_http_toolgate_responses_is_live(tg_str_t object);

/* _responses_read.c: the paths below /v1/responses; rest begins with a slash. */
ngx_int_t ngx_http_toolgate_responses_one(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_str_t *rest);

#endif /* NGX_HTTP_TOOLGATE_RESPONSES_H */
