/*
 * The API's front: which endpoint a path is, who calls, reading a JSON body,
 * answering. What an endpoint does is in its own file.
 */

#ifndef NGX_HTTP_TOOLGATE_API_H
#define NGX_HTTP_TOOLGATE_API_H

#include "ngx_http_toolgate_module.h"
#include "ngx_http_toolgate_run_store.h"

#include "tg_error.h"
#include "tg_json.h"
#include "tg_scan.h"


#define NGX_HTTP_TOOLGATE_BODY_SLICE  (256 * 1024)   /* taken in one turn */
#define NGX_HTTP_TOOLGATE_REPLY_MAX   (16 * 1024 * 1024)

#define NGX_HTTP_TOOLGATE_LIST_LIMIT      20         /* of a page */
#define NGX_HTTP_TOOLGATE_LIST_LIMIT_MAX  100

typedef struct ngx_http_toolgate_body_s  ngx_http_toolgate_body_t;

/* The body is whole and valid JSON. Called from the request's handlers; whatever
 * it does ends in finalizing the request. */
typedef void (*ngx_http_toolgate_body_done_pt)(ngx_http_request_t *r,
    ngx_http_toolgate_body_t *body);

struct ngx_http_toolgate_body_s {
    ngx_http_toolgate_ctx_e           kind;
    u_char                           *data;
    size_t                            len;
    size_t                            cap;
    size_t                            max;
    tg_scan_t                        *scan;
    ngx_http_toolgate_key_t          *key;
    ngx_http_toolgate_body_done_pt    done;
    void                             *owner;         /* of whoever had it read */
    ngx_http_request_t               *request;
    ngx_event_t                       slice;
    unsigned                          over:1;
};


/* The content handler of a location with "toolgate_api". */
ngx_int_t ngx_http_toolgate_api_handler(ngx_http_request_t *r);

/* _auth.c: the caller's key, or NULL with *code set. */
ngx_http_toolgate_key_t *ngx_http_toolgate_auth(ngx_http_request_t *r,
    ngx_uint_t scope, const char **code);

/* The account that a caller acts for: the one that it names, else that of a bound
 * key. named says whether it names one. *account is memory of name or of the key.
 * NULL, or a code: invalid_value, account_mismatch. */
const char *ngx_http_toolgate_auth_account(ngx_http_toolgate_key_t *key,
    tg_str_t name, ngx_uint_t named, tg_str_t *account);

/* What is wrong with a request, for the answer. */
typedef struct {
    const char  *code;
    const char  *param;
    const char  *message;         /* NULL: the code's own */
} ngx_http_toolgate_fault_t;

/*
 * _query.c: what requests say in the same way, whatever they ask for. NGX_DECLINED:
 * *fault is set.
 */

/* Sets it: NGX_DECLINED. param and message live as long as the request. */
ngx_int_t ngx_http_toolgate_fault(ngx_http_toolgate_fault_t *fault,
    const char *code, const char *param, const char *message);

/* A parameter of the URL, unescaped; NGX_DECLINED and an empty value: absent. */
ngx_int_t ngx_http_toolgate_query_argument(ngx_http_request_t *r,
    const char *name, ngx_str_t *value);

/* The account by header or by parameter of the URL; "" is the project's own. */
ngx_int_t ngx_http_toolgate_query_account(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_str_t *account,
    ngx_http_toolgate_fault_t *fault);

/* The same by header or by field of the body, as a copy that ends in a zero byte.
 * NGX_ERROR: out of memory. */
ngx_int_t ngx_http_toolgate_body_account(ngx_http_request_t *r,
    ngx_http_toolgate_body_t *body, ngx_str_t *account,
    ngx_http_toolgate_fault_t *fault);

/* How many objects of a list are wanted at most. */
ngx_int_t ngx_http_toolgate_query_limit(ngx_http_request_t *r, ngx_uint_t *limit,
    ngx_http_toolgate_fault_t *fault);

/* _end_user.c: on whose behalf the body's request is made, as its token says; *out
 * is a new reference, or NULL for an anonymous one. NGX_DECLINED: *fault is set;
 * NGX_ERROR: out of memory. */
ngx_int_t ngx_http_toolgate_end_user(ngx_http_request_t *r,
    ngx_http_toolgate_body_t *body, json_t **out,
    ngx_http_toolgate_fault_t *fault);

/* _body.c: reads and checks a JSON body while it arrives. */
ngx_int_t ngx_http_toolgate_body_read(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_http_toolgate_body_done_pt done,
    void *owner);

/* The same for an endpoint that needs no body: none at all is as good as {}. */
ngx_int_t ngx_http_toolgate_body_read_any(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_http_toolgate_body_done_pt done,
    void *owner);

/* Gives a body that was read another text, which is checked. NGX_ERROR: it is no
 * JSON, or memory is out. */
ngx_int_t ngx_http_toolgate_body_replace(ngx_http_toolgate_body_t *body,
    tg_buf_t *text);

/* _reply.c: each sends a whole answer and returns what a content handler
 * returns. In an asynchronous place finalize the request with it. */
ngx_int_t ngx_http_toolgate_reply(ngx_http_request_t *r, ngx_uint_t status,
    tg_str_t json);
ngx_int_t ngx_http_toolgate_reply_error(ngx_http_request_t *r, const char *code,
    const char *message, const char *param);
/* The same with the statuses of the control plane. */
ngx_int_t ngx_http_toolgate_reply_control(ngx_http_request_t *r, const char *code,
    const char *message, const char *param);

/* _agent_ref.c: told what was found; agent NULL and code NULL: there is no such
 * agent. */
typedef void (*ngx_http_toolgate_agent_ref_pt)(void *data,
    ngx_http_toolgate_agent_t *agent, const char *code);

/*
 * The agent that a model's name means within a project; it stays as long as the
 * request. NGX_OK: found. NGX_DECLINED: not, *code is why or NULL when no agent has
 * this name. NGX_AGAIN: done will be called from the event loop.
 */
ngx_int_t ngx_http_toolgate_agent_ref(ngx_http_request_t *r,
    ngx_http_toolgate_project_t *project, ngx_str_t *model,
    ngx_http_toolgate_agent_t **agent, const char **code,
    ngx_http_toolgate_agent_ref_pt done, void *data);

/* _run_object.c: appends the object of a run, of the fields that it has in the
 * store. */
void ngx_http_toolgate_run_object(ngx_http_toolgate_run_answer_t *document,
    ngx_str_t *account, tg_buf_t *out);

/* _run_ref.c: told which run is meant; code NULL: key has its id. */
typedef void (*ngx_http_toolgate_run_ref_pt)(ngx_http_request_t *r,
    ngx_http_toolgate_run_key_t *key, const char *code);

/*
 * The run that a path below /v1/runs/ names, by its id or the caller's invocation
 * id, within the request's project and account. Answers what is wrong itself; what
 * it returns is what a content handler returns. done is called from here or from the
 * event loop, and has to finalize the request then.
 */
ngx_int_t ngx_http_toolgate_run_ref(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_http_toolgate_run_ref_pt done);
/* The same in an account that is known; a body that was read before stays. */
ngx_int_t ngx_http_toolgate_run_ref_in(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_str_t *account,
    ngx_http_toolgate_run_ref_pt done);

/* The endpoints. */
ngx_int_t ngx_http_toolgate_runs(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_str_t *rest);
ngx_int_t ngx_http_toolgate_run_get(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_str_t *rest);
ngx_int_t ngx_http_toolgate_run_events(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_str_t *rest);
ngx_int_t ngx_http_toolgate_run_cancel(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_str_t *rest);
ngx_int_t ngx_http_toolgate_chat(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_str_t *rest);
ngx_int_t ngx_http_toolgate_responses(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_str_t *rest);
ngx_int_t ngx_http_toolgate_models(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_str_t *rest);
ngx_int_t ngx_http_toolgate_run_steps(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_str_t *rest);
ngx_int_t ngx_http_toolgate_sessions_api(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_str_t *rest);
ngx_int_t ngx_http_toolgate_run_submit_api(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_str_t *rest);
ngx_int_t ngx_http_toolgate_approvals_api(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_str_t *rest);
ngx_int_t ngx_http_toolgate_actions(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_str_t *rest);
ngx_int_t ngx_http_toolgate_signing_secret(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_str_t *rest);
ngx_int_t ngx_http_toolgate_tools(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_str_t *rest);
ngx_int_t ngx_http_toolgate_agents(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_str_t *rest);
ngx_int_t ngx_http_toolgate_secrets_api(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_str_t *rest);
ngx_int_t ngx_http_toolgate_api_keys(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_str_t *rest);
ngx_int_t ngx_http_toolgate_user_keys_api(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_str_t *rest);
ngx_int_t ngx_http_toolgate_projects(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_str_t *rest);

#endif /* NGX_HTTP_TOOLGATE_API_H */
