/*
 * POST /v1/runs/{run}/submit_tool_outputs: the body is read, the run is found, and the
 * answer is the run as it is when its outputs were taken.
 */

#include "ngx_http_toolgate_submit.h"
#include "ngx_http_toolgate_run.h"


/* A submission on its way; submission.data leads to it. */
typedef struct {
    ngx_http_toolgate_submission_t   submission;
    json_t                          *body;
} ngx_http_toolgate_run_outputs_t;


static void ngx_http_toolgate_run_outputs_body(ngx_http_request_t *r,
    ngx_http_toolgate_body_t *body);
static void ngx_http_toolgate_run_outputs_free(void *data);
static void ngx_http_toolgate_run_outputs_ref(ngx_http_request_t *r,
    ngx_http_toolgate_run_key_t *key, const char *code);
static void ngx_http_toolgate_run_outputs_done(
    ngx_http_toolgate_submission_t *submission, const char *code);
static void ngx_http_toolgate_run_outputs_read(void *data,
    ngx_http_toolgate_run_answer_t *answer);


ngx_int_t
ngx_http_toolgate_run_submit_api(ngx_http_request_t *r, ngx_http_toolgate_key_t *key,
    ngx_str_t *rest)
{
    return ngx_http_toolgate_body_read(r, key, ngx_http_toolgate_run_outputs_body,
                                       NULL);
}


static void
ngx_http_toolgate_run_outputs_body(ngx_http_request_t *r,
    ngx_http_toolgate_body_t *body)
{
    ngx_int_t                         rc;
    ngx_str_t                         account;
    tg_json_error_t                   error;
    ngx_pool_cleanup_t               *cln;
    ngx_http_toolgate_fault_t         fault;
    ngx_http_toolgate_run_outputs_t  *outputs;

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_toolgate_run_outputs_t));
    if (cln == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    outputs = cln->data;
    ngx_memzero(outputs, sizeof(ngx_http_toolgate_run_outputs_t));
    cln->handler = ngx_http_toolgate_run_outputs_free;

    body->owner = outputs;
    outputs->submission.request = r;
    outputs->submission.done = ngx_http_toolgate_run_outputs_done;
    outputs->submission.data = outputs;
    outputs->body = tg_json_load((tg_str_t) { body->len, (char *) body->data },
                                 &error);
    outputs->submission.body = outputs->body;

    if (outputs->body == NULL) {
        ngx_http_finalize_request(r, ngx_http_toolgate_reply_error(r,
                                         "invalid_json", error.reason, NULL));
        return;
    }

    rc = ngx_http_toolgate_body_account(r, body, &account, &fault);

    if (rc != NGX_OK) {
        rc = rc == NGX_DECLINED
             ? ngx_http_toolgate_reply_error(r, fault.code, fault.message,
                                             fault.param)
             : ngx_http_toolgate_reply_error(r, "internal_error", NULL, NULL);
        ngx_http_finalize_request(r, rc);
        return;
    }

    ngx_http_finalize_request(r,
        ngx_http_toolgate_run_ref_in(r, body->key, &account,
                                     ngx_http_toolgate_run_outputs_ref));
}


static void
ngx_http_toolgate_run_outputs_free(void *data)
{
    ngx_http_toolgate_run_outputs_t *outputs = data;

    json_decref(outputs->body);
}


static void
ngx_http_toolgate_run_outputs_ref(ngx_http_request_t *r,
    ngx_http_toolgate_run_key_t *key, const char *code)
{
    ngx_http_toolgate_body_t         *body;
    ngx_http_toolgate_run_outputs_t  *outputs;

    body = ngx_http_get_module_ctx(r, ngx_http_toolgate_module);
    outputs = body->owner;
    outputs->submission.key = *key;

    if (code == NULL
        && ngx_http_toolgate_outputs_submit(&outputs->submission) != NGX_OK)
    {
        code = "internal_error";
    }

    if (code) {
        ngx_http_finalize_request(r, ngx_http_toolgate_reply_error(r, code, NULL,
                                                                   NULL));
    }
}


static void
ngx_http_toolgate_run_outputs_done(ngx_http_toolgate_submission_t *submission,
    const char *code)
{
    ngx_http_request_t             *r = submission->request;
    ngx_http_toolgate_main_conf_t  *tmcf;

    tmcf = ngx_http_get_module_main_conf(r, ngx_http_toolgate_module);

    if (code == NULL
        && ngx_http_toolgate_run_store_open(r->pool, tmcf->redis, &submission->key,
                                            "read", tmcf->retention,
                                            ngx_http_toolgate_run_outputs_read,
                                            submission)
           == NGX_OK)
    {
        return;
    }

    ngx_http_finalize_request(r,
        ngx_http_toolgate_reply_error(r, code ? code : "internal_error",
                                      submission->fault.message[0]
                                      ? submission->fault.message : NULL,
                                      submission->fault.param[0]
                                      ? submission->fault.param : NULL));
}


static void
ngx_http_toolgate_run_outputs_read(void *data,
    ngx_http_toolgate_run_answer_t *answer)
{
    ngx_http_toolgate_submission_t *submission = data;

    tg_buf_t             out;
    ngx_int_t            rc;
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = submission->request;
    c = r->connection;

    tg_buf_init(&out, NGX_HTTP_TOOLGATE_REPLY_MAX);

    if (answer->pair_count) {
        ngx_http_toolgate_run_object(answer, &submission->key.account, &out);
    }

    rc = out.len && out.error == TG_OK
         ? ngx_http_toolgate_reply(r, NGX_HTTP_OK, tg_buf_get(&out))
         : ngx_http_toolgate_reply_error(r, "store_unavailable", NULL, NULL);

    tg_buf_free(&out);

    ngx_http_finalize_request(r, rc);
    ngx_http_run_posted_requests(c);
}
