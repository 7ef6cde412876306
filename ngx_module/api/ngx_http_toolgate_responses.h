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
    unsigned         keep:1;
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

/* _responses_keep.c: asks the store for what was said before and calls done. On a fault
 * the request is answered. */
void ngx_http_toolgate_responses_chain(ngx_http_toolgate_check_t *c,
    ngx_http_toolgate_check_done_pt done);
/* Keeps a response that has ended: object is all of it. Before its caller hears that it
 * may ask for it. */
void ngx_http_toolgate_responses_keep(ngx_http_toolgate_run_t *run,
    tg_str_t object, const char *status);

/* _responses_read.c: the paths below /v1/responses; rest begins with a slash. */
ngx_int_t ngx_http_toolgate_responses_one(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_str_t *rest);

#endif /* NGX_HTTP_TOOLGATE_RESPONSES_H */
