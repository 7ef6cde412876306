/*
 * What the runtime endpoints share: a request's body is checked member by member,
 * and ends in a run or in the first fault that was found.
 */

#ifndef NGX_HTTP_TOOLGATE_CHECK_H
#define NGX_HTTP_TOOLGATE_CHECK_H

#include "ngx_http_toolgate_api.h"
#include "ngx_http_toolgate_run.h"


#define NGX_HTTP_TOOLGATE_SMALL_FIELD_MAX  (64 * 1024)

typedef struct ngx_http_toolgate_check_s  ngx_http_toolgate_check_t;

/* All that every face has is checked, and it is known who answers. Ends in a run or
 * in _check_refuse. */
typedef void (*ngx_http_toolgate_check_done_pt)(ngx_http_toolgate_check_t *c);

/* Checking stops at the first fault; what is wrong is kept for the answer. */
struct ngx_http_toolgate_check_s {
    ngx_http_request_t              *request;
    ngx_http_toolgate_body_t        *body;
    ngx_http_toolgate_run_t         *run;
    ngx_http_toolgate_check_done_pt  done;
    void                            *data;          /* of the face */
    const char                      *code;
    const char                      *message;
    char                             param[64];
    unsigned                         flat_tools:1;  /* as the caller wrote them */
};


/* Makes a run for a request whose body is read, and calls done: at once, or from the
 * event loop. On a fault the request is answered. */
void ngx_http_toolgate_check(ngx_http_request_t *r,
    ngx_http_toolgate_body_t *body, const ngx_http_toolgate_face_t *face,
    ngx_http_toolgate_check_done_pt done);

/* A request that was checked before, and whose run is in the store. Strings live as
 * long as the request. */
typedef struct {
    ngx_http_toolgate_project_t     *project;
    ngx_str_t                        run;           /* an id */
    ngx_str_t                        account;
    ngx_str_t                        agent;         /* id@version */
    ngx_str_t                        invocation;    /* or empty */
    json_t                          *end_user;      /* or NULL */
    tg_approval_mode_e               approval_mode; /* at least */
} ngx_http_toolgate_kept_t;

/* The same for such a request: who calls is not asked again. done is called on a
 * fault as well, with c->code set. */
void ngx_http_toolgate_check_kept(ngx_http_request_t *r,
    ngx_http_toolgate_body_t *body, const ngx_http_toolgate_face_t *face,
    ngx_http_toolgate_kept_t *kept, ngx_http_toolgate_check_done_pt done,
    void *data);

/* Answers with the fault that was noted. */
void ngx_http_toolgate_check_refuse(ngx_http_toolgate_check_t *c);

/* The body and its scan are the run's from here on: it may be done with them long
 * before the request is. */
void ngx_http_toolgate_check_prompt(ngx_http_toolgate_check_t *c);

/* Notes what is wrong: NGX_DECLINED. message NULL: the code's own. */
ngx_int_t ngx_http_toolgate_check_fault(ngx_http_toolgate_check_t *c,
    const char *code, const char *param, const char *message);

/* A member of the body, NULL when it is absent or null. */
const tg_scan_member_t *ngx_http_toolgate_check_member(
    ngx_http_toolgate_check_t *c, const char *key);

/* A member that is true or false; 0 when it is absent. */
ngx_int_t ngx_http_toolgate_check_bool(ngx_http_toolgate_check_t *c,
    const char *key, ngx_uint_t *value);

/* A member as a tree of at most max bytes; NULL with c->code set for a fault. */
json_t *ngx_http_toolgate_check_tree(ngx_http_toolgate_check_t *c,
    const char *key, size_t max);

/* _check_agent.c: makes the run one of an agent's: which of its tools are offered,
 * the caller's own tools and variables. The body is in the form of chat. */
ngx_int_t ngx_http_toolgate_check_agent(ngx_http_toolgate_check_t *c);

#endif /* NGX_HTTP_TOOLGATE_CHECK_H */
