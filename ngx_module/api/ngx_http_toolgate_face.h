/*
 * How any face speaks HTTP: the head of a stream, a whole answer, a refusal. What is
 * said is the face's own.
 */

#ifndef NGX_HTTP_TOOLGATE_FACE_H
#define NGX_HTTP_TOOLGATE_FACE_H

#include "ngx_http_toolgate_run.h"


/* Sends the response head of a stream, once. */
ngx_int_t ngx_http_toolgate_face_stream(ngx_http_toolgate_run_t *run);

/* Sends head and body of an answer that is no stream. */
ngx_int_t ngx_http_toolgate_face_whole(ngx_http_toolgate_run_t *run, tg_str_t json);

/* The same for a run that failed before anything was sent. */
ngx_int_t ngx_http_toolgate_face_refuse(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_failure_t *failure);

#endif /* NGX_HTTP_TOOLGATE_FACE_H */
