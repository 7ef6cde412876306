/*
 * What the files of the chat endpoint share.
 */

#ifndef NGX_HTTP_TOOLGATE_CHAT_H
#define NGX_HTTP_TOOLGATE_CHAT_H

#include "ngx_http_toolgate_api.h"
#include "ngx_http_toolgate_run.h"


#define NGX_HTTP_TOOLGATE_SMALL_FIELD_MAX  (64 * 1024)

/* Checking stops at the first fault; what is wrong is kept for the answer. */
typedef struct {
    ngx_http_request_t        *request;
    ngx_http_toolgate_body_t  *body;
    ngx_http_toolgate_run_t   *run;
    const char                *code;
    const char                *message;
    char                       param[64];
} ngx_http_toolgate_chat_check_t;


extern const ngx_http_toolgate_face_t  ngx_http_toolgate_chat_face;

/* Notes what is wrong: NGX_DECLINED. message NULL: the code's own. */
ngx_int_t ngx_http_toolgate_chat_fault(ngx_http_toolgate_chat_check_t *c,
    const char *code, const char *param, const char *message);

/* A member of the body, NULL when it is absent or null. */
const tg_scan_member_t *ngx_http_toolgate_chat_member(
    ngx_http_toolgate_chat_check_t *c, const char *key);

/* A member that is true or false; 0 when it is absent. */
ngx_int_t ngx_http_toolgate_chat_bool(ngx_http_toolgate_chat_check_t *c,
    const char *key, ngx_uint_t *value);

/* A member as a tree of at most max bytes; NULL with c->code set for a fault. */
json_t *ngx_http_toolgate_chat_tree(ngx_http_toolgate_chat_check_t *c,
    const char *key, size_t max);

/* _chat_agent.c: checks what only agents' requests have, and fills the run. */
ngx_int_t ngx_http_toolgate_chat_agent(ngx_http_toolgate_chat_check_t *c);

/* Gives an agent's run its face's own data. */
ngx_int_t ngx_http_toolgate_chat_face_init(ngx_http_toolgate_run_t *run);

#endif /* NGX_HTTP_TOOLGATE_CHAT_H */
