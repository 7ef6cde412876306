/*
 * Tools that the helper runs: passes the call on and its JSON answer back.
 */

#include "ngx_http_toolgate_tools.h"
#include "ngx_toolgate_helper.h"


#define NGX_HTTP_TOOLGATE_HELPER_DEFAULT_S  60
#define NGX_HTTP_TOOLGATE_HELPER_GRACE_MS   5000    /* over the tool's own limit */

/* of a record: labels and ids of a call stand beside its arguments */
#define NGX_HTTP_TOOLGATE_HELPER_ENVELOPE  4096
#define NGX_HTTP_TOOLGATE_HELPER_ARGUMENTS                                    \
    (TG_FRAME_MAX - NGX_HTTP_TOOLGATE_HELPER_ENVELOPE)

#define NGX_HTTP_TOOLGATE_HELPER_LONG                                         \
    "The arguments are too long: 252 KiB as JSON are allowed in one call. "   \
    "Nothing was done; do it in smaller parts."

/* the usual words say that nothing was done, which is not known then */
#define NGX_HTTP_TOOLGATE_HELPER_LOST                                         \
    "The place where this tool works was lost while it was at it: what the "  \
    "call had begun may have taken effect or not. Do not repeat it without "  \
    "a check, and do not say that it succeeded or failed."


typedef struct {
    ngx_toolgate_helper_request_t   request;
    ngx_toolgate_helper_call_t     *call;
} ngx_http_toolgate_helper_job_t;


static ngx_int_t ngx_http_toolgate_helper_tool_start(
    ngx_http_toolgate_job_t *job);
static void ngx_http_toolgate_helper_tool_cancel(ngx_http_toolgate_job_t *job);
static void ngx_http_toolgate_helper_tool_done(void *data,
    ngx_toolgate_helper_result_t *result);
static const char *ngx_http_toolgate_helper_tool_code(ngx_pool_t *pool,
    json_t *answer);


const ngx_http_toolgate_tool_ops_t  ngx_http_toolgate_helper_tool_ops = {
    .start = ngx_http_toolgate_helper_tool_start,
    .cancel = ngx_http_toolgate_helper_tool_cancel
};


static ngx_int_t
ngx_http_toolgate_helper_tool_start(ngx_http_toolgate_job_t *job)
{
    json_t                          *timeout;
    tg_buf_t                         text;
    ngx_str_t                        arguments;
    ngx_msec_t                       wanted;
    ngx_http_toolgate_helper_job_t  *hj;

    hj = ngx_pcalloc(job->pool, sizeof(ngx_http_toolgate_helper_job_t));
    if (hj == NULL) {
        return NGX_ERROR;
    }

    job->state = hj;

    tg_buf_init(&text, NGX_HTTP_TOOLGATE_HELPER_ARGUMENTS);

    if (tg_json_dump(job->arguments, &text) != TG_OK) {
        tg_buf_free(&text);
        job->code = "invalid_arguments";

        return tg_policy_envelope(job->code, tg_str(NGX_HTTP_TOOLGATE_HELPER_LONG),
                                  &job->result) == TG_OK
               ? NGX_DONE : NGX_ERROR;
    }

    arguments.len = text.len;
    arguments.data = ngx_pnalloc(job->pool, text.len);

    if (arguments.data) {
        ngx_memcpy(arguments.data, text.data, text.len);
    }

    tg_buf_free(&text);

    if (arguments.data == NULL) {
        return NGX_ERROR;
    }

    timeout = json_object_get(job->arguments, "timeout");
    wanted = 1000 * (timeout ? (ngx_msec_t) json_number_value(timeout)
                             : NGX_HTTP_TOOLGATE_HELPER_DEFAULT_S);

    hj->request.tool = job->tool->name;
    hj->request.arguments = arguments;
    hj->request.project = job->project->name;
    hj->request.account = job->account;
    hj->request.session = job->session;
    hj->request.invocation_id = job->run;
    hj->request.call_id = job->call_id;
    hj->request.timeout = ngx_min(wanted + NGX_HTTP_TOOLGATE_HELPER_GRACE_MS,
                                  ngx_max(job->time_left, 1));

    hj->call = ngx_toolgate_helper_start(job->pool, job->log, job->conf->helper,
                                         &hj->request,
                                         ngx_http_toolgate_helper_tool_done, job);

    return hj->call ? NGX_OK : NGX_ERROR;
}


static void
ngx_http_toolgate_helper_tool_done(void *data,
    ngx_toolgate_helper_result_t *result)
{
    ngx_http_toolgate_job_t  *job = data;

    tg_str_t                         text;
    json_t                          *answer;
    json_error_t                     error;
    ngx_http_toolgate_helper_job_t  *hj;

    hj = job->state;
    hj->call = NULL;

    if (result->code) {
        ngx_log_error(NGX_LOG_WARN, job->log, 0, "toolgate: tool \"%V\": %s: %s",
                      &job->tool->name, result->code,
                      result->detail ? result->detail : "");

        job->code = result->code;
        job->detail = result->detail;
        (void) tg_policy_envelope(result->code,
                                  result->asked
                                  ? tg_str(NGX_HTTP_TOOLGATE_HELPER_LOST)
                                  : tg_null_str,
                                  &job->result);
        job->done(job);
        return;
    }

    text.data = (char *) result->result.data;
    text.len = result->result.len;

    tg_buf_str(&job->result, text);

    /* output of a command may hold NUL, which is refused everywhere else */

    answer = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES|JSON_ALLOW_NUL,
                        &error);

    if (!json_is_true(json_object_get(answer, "ok"))) {
        job->code = ngx_http_toolgate_helper_tool_code(job->pool, answer);
    }

    json_decref(answer);
    job->done(job);
}


/* A tool that ran and failed by itself (an exit code) has no error_type. */
static const char *
ngx_http_toolgate_helper_tool_code(ngx_pool_t *pool, json_t *answer)
{
    char      *code;
    tg_str_t   type;

    type = tg_json_get_string(answer, "error_type");

    if (type.len == 0) {
        return "tool_failed";
    }

    code = ngx_pnalloc(pool, type.len + 1);
    if (code == NULL) {
        return "tool_failed";
    }

    ngx_memcpy(code, type.data, type.len);
    code[type.len] = '\0';

    return code;
}


static void
ngx_http_toolgate_helper_tool_cancel(ngx_http_toolgate_job_t *job)
{
    ngx_http_toolgate_helper_job_t  *hj = job->state;

    if (hj && hj->call) {
        ngx_toolgate_helper_cancel(hj->call);
        hj->call = NULL;
    }
}
