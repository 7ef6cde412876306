/*
 * What the files of the session endpoints share.
 */

#ifndef NGX_HTTP_TOOLGATE_SESSIONS_API_H
#define NGX_HTTP_TOOLGATE_SESSIONS_API_H

#include "ngx_http_toolgate_api.h"
#include "ngx_http_toolgate_sessions.h"


/* One request about a session; it lives in the request's pool. */
typedef struct {
    ngx_http_request_t               *request;
    ngx_http_toolgate_main_conf_t    *conf;
    ngx_http_toolgate_session_key_t   key;
    ngx_http_toolgate_fault_t         fault;
    /* of one that is made */
    ngx_http_toolgate_body_t         *body;
    ngx_http_toolgate_project_t      *project;
    char                              id[TG_ID_MAX_LEN];
    ngx_str_t                         agent;
    ngx_str_t                         user;
    ngx_str_t                         metadata;
} ngx_http_toolgate_session_request_t;


/* Before the store is asked: whether it is there. NGX_OK: go on. NGX_DECLINED: *rc is
 * what the content handler returns. */
ngx_int_t ngx_http_toolgate_session_request_ready(
    ngx_http_toolgate_session_request_t *s, ngx_int_t *rc);

/* Ends a request that has waited for the store. */
void ngx_http_toolgate_session_request_end(ngx_http_toolgate_session_request_t *s,
    ngx_int_t rc);

/* Replies to NONE and AWAY. */
ngx_int_t ngx_http_toolgate_session_request_refused(
    ngx_http_toolgate_session_request_t *s,
    ngx_http_toolgate_session_answer_t *answer);

/* Appends a JSON string, or null for an empty one. */
void ngx_http_toolgate_session_string(tg_buf_t *out, ngx_str_t *text);

/* _session_messages.c: GET …/messages. As a content handler returns. */
ngx_int_t ngx_http_toolgate_session_messages_list(
    ngx_http_toolgate_session_request_t *s);

#endif /* NGX_HTTP_TOOLGATE_SESSIONS_API_H */
