/*
 * Request limits ("toolgate_limit") as a request meets them: which ones, what the
 * client and the log are told. When to ask is the caller's business: every runtime
 * endpoint does so by its run, once who calls and for which account is known.
 */

#ifndef NGX_HTTP_TOOLGATE_LIMIT_H
#define NGX_HTTP_TOOLGATE_LIMIT_H

#include "ngx_http_toolgate_module.h"
#include "ngx_toolgate_limits.h"


/* One "toolgate_limit …" line. */
typedef struct {
    ngx_http_complex_value_t        key;
    ngx_str_t                       text;        /* the key as written */
    ngx_str_t                       rate;        /* "60/m" or "60/m+20" */
    uint32_t                        limit;
    ngx_msec_t                      window;
    unsigned                        dry_run:1;
    unsigned                        account:1;   /* an empty key is one, too */
} ngx_http_toolgate_limit_conf_t;

typedef struct ngx_http_toolgate_limits_s  ngx_http_toolgate_limits_t;

/* From the event loop; run what is posted afterwards. */
typedef void (*ngx_http_toolgate_limits_done_pt)(void *data);

struct ngx_http_toolgate_limits_s {
    ngx_http_request_t              *request;
    ngx_http_toolgate_limits_done_pt done;
    void                            *data;
    ngx_toolgate_limits_call_t       call;
    ngx_http_toolgate_limit_conf_t  *conf[NGX_TOOLGATE_LIMITS_MAX];
    ngx_toolgate_limit_t             limit[NGX_TOOLGATE_LIMITS_MAX];

    /* once decided */
    const char                      *code;       /* NULL: the request passes */
    ngx_str_t                        retry_after;
    unsigned                         local:1;    /* x-toolgate-limit-mode is set */
};


/* Refuses limits that would have nothing to count in; after all directives. */
ngx_int_t ngx_http_toolgate_limits_finish(ngx_conf_t *cf,
    ngx_http_toolgate_main_conf_t *tmcf);

/*
 * Takes one from each of these limits (of limit_conf_t) for a request of this
 * project. NGX_OK: decided, see (*limits)->code; the response headers are added.
 * NGX_AGAIN: done will be called when that is so. NGX_ERROR: out of memory.
 */
ngx_int_t ngx_http_toolgate_limits_check(ngx_http_request_t *r,
    ngx_array_t *confs, ngx_str_t *project, ngx_http_toolgate_limits_done_pt done,
    void *data, ngx_http_toolgate_limits_t **limits);

/* done will not be called any more. */
void ngx_http_toolgate_limits_cancel(ngx_http_toolgate_limits_t *limits);

#endif /* NGX_HTTP_TOOLGATE_LIMIT_H */
