/*
 * The worker's side of the helper protocol: one call to toolgated over its unix
 * socket. Bounded in time, cancelled by closing the connection. It knows nothing
 * of requests or runs.
 */

#ifndef NGX_TOOLGATE_HELPER_H
#define NGX_TOOLGATE_HELPER_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include "tg_frame.h"


#define NGX_TOOLGATE_HELPER_CONNECT_MS   250
#define NGX_TOOLGATE_HELPER_RESULT_MAX   (256 * 1024)
#define NGX_TOOLGATE_HELPER_IDLE_MAX     16        /* kept connections a worker */

typedef struct {
    ngx_str_t    tool;             /* "run_command", "sandbox_status" */
    ngx_str_t    arguments;        /* JSON object text */
    ngx_str_t    project;
    ngx_str_t    account;          /* "" = the project's own */
    ngx_str_t    session;          /* sandbox session label */
    ngx_str_t    invocation_id;
    ngx_str_t    call_id;
    ngx_msec_t   timeout;          /* whole call */
} ngx_toolgate_helper_request_t;

typedef struct {
    /* NULL: result is the tool's JSON answer. Else sandbox_unavailable (helper
     * absent, gone, speaking nonsense or too late) with a detail for the steps. */
    const char  *code;
    const char  *detail;
    ngx_str_t    result;           /* JSON object text in the caller's pool */
    ngx_msec_t   total_ms;
    unsigned     asked:1;          /* with a code: the helper may have begun */
} ngx_toolgate_helper_result_t;

typedef struct ngx_toolgate_helper_call_s  ngx_toolgate_helper_call_t;

typedef void (*ngx_toolgate_helper_done_pt)(void *data,
    ngx_toolgate_helper_result_t *result);


ngx_int_t ngx_toolgate_helper_init_worker(ngx_cycle_t *cycle);
void ngx_toolgate_helper_exit_worker(ngx_cycle_t *cycle);

/* Starts a call to the helper that listens at addr. The request's strings must
 * live as long as pool. done is called once from the event loop, never from
 * inside start; not at all when the pool goes first. NULL: out of memory. */
ngx_toolgate_helper_call_t *ngx_toolgate_helper_start(ngx_pool_t *pool,
    ngx_log_t *log, ngx_addr_t *addr, ngx_toolgate_helper_request_t *request,
    ngx_toolgate_helper_done_pt done, void *data);

/* Cancels: the helper ends the job at once. No callback. */
void ngx_toolgate_helper_cancel(ngx_toolgate_helper_call_t *call);

#endif /* NGX_TOOLGATE_HELPER_H */
