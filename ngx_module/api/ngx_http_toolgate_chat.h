/*
 * What the files of the chat endpoint share.
 */

#ifndef NGX_HTTP_TOOLGATE_CHAT_H
#define NGX_HTTP_TOOLGATE_CHAT_H

#include "ngx_http_toolgate_check.h"


extern const ngx_http_toolgate_face_t  ngx_http_toolgate_chat_face;

/* Checks the messages of a body in the form of chat. */
ngx_int_t ngx_http_toolgate_chat_messages(ngx_http_toolgate_check_t *c);

/* Gives an agent's run its face's own data. */
ngx_int_t ngx_http_toolgate_chat_face_init(ngx_http_toolgate_run_t *run);

/* Starts the run of a request that is checked. */
void ngx_http_toolgate_chat_begin(ngx_http_toolgate_check_t *c);

/* _chat_continue.c: takes the results of client tools that the request brings to their
 * run. NGX_OK: it does, and the request is answered later. NGX_DECLINED: it brings
 * none. NGX_ERROR: it is to be refused. */
ngx_int_t ngx_http_toolgate_chat_continue(ngx_http_toolgate_check_t *c);

#endif /* NGX_HTTP_TOOLGATE_CHAT_H */
