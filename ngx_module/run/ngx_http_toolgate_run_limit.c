/*
 * A run and the limits of its request: the one hook for every endpoint that runs
 * something. It lies where the caller, the account and the agent or model are known
 * and checked, and before anything is done that costs; a request that was refused
 * as a wrong one has not been counted.
 */

#include "ngx_http_toolgate_run.h"


static void ngx_http_toolgate_run_limits_answered(void *data);


ngx_int_t
ngx_http_toolgate_run_limit(ngx_http_toolgate_run_t *run)
{
    ngx_int_t  rc;

    if (run->location->limits == NULL) {
        return NGX_OK;
    }

    /* from here on the keys of limits may name $toolgate_… variables */

    run->state = NGX_HTTP_TOOLGATE_RUN_LIMITING;

    rc = ngx_http_toolgate_limits_check(run->request, run->location->limits,
                                        &run->project->name,
                                        ngx_http_toolgate_run_limits_answered,
                                        run, &run->limits);

    if (rc == NGX_OK) {
        return ngx_http_toolgate_run_limited(run);
    }

    if (rc == NGX_ERROR) {
        run->out_of_memory = 1;
    }

    return rc;
}


static void
ngx_http_toolgate_run_limits_answered(void *data)
{
    ngx_connection_t         *c;
    ngx_http_toolgate_run_t  *run = data;

    c = run->request->connection;

    run->limits_known = 1;
    ngx_http_toolgate_run_post(run);
    ngx_http_run_posted_requests(c);
}


ngx_int_t
ngx_http_toolgate_run_limited(ngx_http_toolgate_run_t *run)
{
    ngx_http_toolgate_failure_t  failure;

    if (run->limits->code == NULL) {
        return NGX_OK;
    }

    ngx_memzero(&failure, sizeof(failure));
    failure.error = tg_error_find(run->limits->code);
    failure.retry_after = run->limits->retry_after;

    ngx_http_toolgate_run_fail_with(run, &failure);

    return NGX_DECLINED;
}
