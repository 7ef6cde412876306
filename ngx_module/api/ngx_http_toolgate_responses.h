/*
 * What the files of the Responses endpoint share.
 */

#ifndef NGX_HTTP_TOOLGATE_RESPONSES_H
#define NGX_HTTP_TOOLGATE_RESPONSES_H

#include "ngx_http_toolgate_check.h"

#include "tg_responses.h"


/* The face's own data of a run. */
typedef struct {
    tg_responses_t  answer;
    tg_buf_t        echo;         /* what its snapshots repeat of the request */
} ngx_http_toolgate_responses_state_t;


extern const ngx_http_toolgate_face_t  ngx_http_toolgate_responses_face;

/* Gives a run its face's own data. NGX_DECLINED: c has a fault. */
ngx_int_t ngx_http_toolgate_responses_face_init(ngx_http_toolgate_check_t *c);

/* _responses_prompt.c: puts the body into the form of chat, a slice in each turn of
 * the event loop, and calls done. On a fault the request is answered. */
void ngx_http_toolgate_responses_prompt(ngx_http_toolgate_check_t *c,
    ngx_http_toolgate_check_done_pt done);

#endif /* NGX_HTTP_TOOLGATE_RESPONSES_H */
