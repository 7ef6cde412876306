/*
 * What the files of a run's part in a session share.
 */

#ifndef NGX_HTTP_TOOLGATE_SESSION_H
#define NGX_HTTP_TOOLGATE_SESSION_H

#include "ngx_http_toolgate_run.h"
#include "ngx_http_toolgate_sessions.h"


#define NGX_HTTP_TOOLGATE_SESSION_HEAD_MAX     (16 * 1024)
#define NGX_HTTP_TOOLGATE_SESSION_ANSWERS_MAX  (64 * 1024)   /* ids of calls */

struct ngx_http_toolgate_run_session_s {
    ngx_http_toolgate_run_t            *run;
    ngx_http_toolgate_session_key_t     key;
    ngx_str_t                           user;      /* external id, or "" */
    ngx_http_toolgate_session_state_e   state;     /* what the store said */
    ngx_str_t                           history;   /* JSON messages and commas */
    ngx_str_t                           offered;   /* names and commas */
    ngx_str_t                           kept;      /* packed, of one that goes on */
    ngx_str_t                           other;     /* a run, or a call */
    tg_buf_t                            messages;  /* packed: all up to this round */
    tg_buf_t                            scratch;
    size_t                              request_len;   /* of those of the request */
    unsigned                            joined:1;
    unsigned                            closed:1;  /* all is kept */
    unsigned                            ended:1;
};


/* _session_request.c: packs the messages of the request. NGX_DECLINED: the run has
 * failed. */
ngx_int_t ngx_http_toolgate_run_session_request(
    ngx_http_toolgate_run_session_t *session);

/* Appends the ids of the calls that it answers: results that come first are for calls
 * that were handed out before. */
ngx_int_t ngx_http_toolgate_run_session_answers(
    ngx_http_toolgate_run_session_t *session, tg_buf_t *ids);

/* What a segment depends on: the agent, its version, and what models are told of its
 * tools, which may change in a draft. */
ngx_int_t ngx_http_toolgate_run_session_stamp(
    ngx_http_toolgate_run_session_t *session, ngx_str_t *stamp);

/* The names of the tools that a segment beginning now offers, a comma behind each. */
ngx_int_t ngx_http_toolgate_run_session_offers(
    ngx_http_toolgate_run_session_t *session, ngx_str_t *names);

/* Offers those of the segment instead. */
ngx_int_t ngx_http_toolgate_run_session_offered(
    ngx_http_toolgate_run_session_t *session);

/* _session_keep.c: appends the members that the head of each message has. */
void ngx_http_toolgate_run_session_head(ngx_http_toolgate_run_t *run,
    ngx_uint_t round, tg_buf_t *head);

/* Of a run that goes on here what it had kept, up to its last whole round: the one
 * that was under way comes again. */
ngx_int_t ngx_http_toolgate_run_session_kept(
    ngx_http_toolgate_run_session_t *session);

#endif /* NGX_HTTP_TOOLGATE_SESSION_H */
