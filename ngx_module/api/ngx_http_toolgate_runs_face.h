/*
 * How a run shows to those who ask for it as a run: its events as a stream, or its
 * object when it has ended or waits for its caller.
 */

#ifndef NGX_HTTP_TOOLGATE_RUNS_FACE_H
#define NGX_HTTP_TOOLGATE_RUNS_FACE_H

#include "ngx_http_toolgate_api.h"
#include "ngx_http_toolgate_run.h"


extern const ngx_http_toolgate_face_t  ngx_http_toolgate_runs_face;

/* Streams the events of a run after the one of this number; the request is finalized
 * later. over: there will be none. */
void ngx_http_toolgate_runs_follow(ngx_http_request_t *r,
    ngx_http_toolgate_project_t *project, ngx_http_toolgate_run_key_t *key,
    int64_t after, ngx_uint_t over);

/* Answers with the run's object when it has ended or waits for its caller. */
void ngx_http_toolgate_runs_wait(ngx_http_request_t *r,
    ngx_http_toolgate_project_t *project, ngx_http_toolgate_run_key_t *key,
    int64_t after);

/* Parts of faces like this one: a whole answer, and why there is none, when nothing
 * was sent yet. */
ngx_int_t ngx_http_toolgate_runs_whole(ngx_http_toolgate_run_t *run,
    ngx_uint_t status, tg_str_t json);
ngx_int_t ngx_http_toolgate_runs_fail(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_failure_t *failure);

/* GET /v1/runs. */
ngx_int_t ngx_http_toolgate_run_list(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key);

#endif /* NGX_HTTP_TOOLGATE_RUNS_FACE_H */
