/*
 * Giving a run the outputs that it waits for, whatever the request looks like that
 * brings them.
 */

#ifndef NGX_HTTP_TOOLGATE_SUBMIT_H
#define NGX_HTTP_TOOLGATE_SUBMIT_H

#include "ngx_http_toolgate_api.h"
#include "ngx_http_toolgate_run_submit.h"

#include "tg_outputs.h"


typedef struct ngx_http_toolgate_submission_s  ngx_http_toolgate_submission_t;

/* code is NULL when they were taken, now or before; else fault says what is wrong. */
typedef void (*ngx_http_toolgate_submission_pt)(
    ngx_http_toolgate_submission_t *submission, const char *code);

struct ngx_http_toolgate_submission_s {
    /* set by the caller; all of it lives as long as the request */
    ngx_http_request_t               *request;
    ngx_http_toolgate_run_key_t       key;
    json_t                           *body;         /* {"tool_outputs":[…]} */
    ngx_http_toolgate_submission_pt   done;
    void                             *data;

    /* set before done is called */
    tg_outputs_fault_t                fault;
    int64_t                           after;        /* event before it goes on */

    ngx_str_t                         digest;       /* of the body */
    ngx_http_toolgate_field_t         outcomes[TG_OUTPUTS_MAX];
};


/* Checks and hands over, and has the run go on; done is called from the event loop. The
 * reference to body is not taken: it has to stay until then. NGX_ERROR: out of memory,
 * and no callback. */
ngx_int_t ngx_http_toolgate_outputs_submit(
    ngx_http_toolgate_submission_t *submission);

#endif /* NGX_HTTP_TOOLGATE_SUBMIT_H */
