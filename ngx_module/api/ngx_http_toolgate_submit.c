/*
 * Giving a run the outputs that it waits for: the run is read, the outputs are checked
 * against its open calls, and one script takes all of them or none. Then the run host
 * goes on with it.
 */

#include "ngx_http_toolgate_submit.h"
#include "ngx_http_toolgate_run.h"


#define NGX_HTTP_TOOLGATE_SUBMIT_BODY_MAX     (TG_OUTPUTS_MAX * 2 * TG_OUTPUTS_VALUE_MAX)
#define NGX_HTTP_TOOLGATE_SUBMIT_OUTCOME_MAX  (16 * TG_OUTPUTS_VALUE_MAX)


static void ngx_http_toolgate_submit_open(void *data,
    ngx_http_toolgate_run_answer_t *answer);
static const char *ngx_http_toolgate_submit_check(
    ngx_http_toolgate_submission_t *submission,
    ngx_http_toolgate_run_answer_t *answer, ngx_uint_t *n);
static const char *ngx_http_toolgate_submit_waits(
    ngx_http_toolgate_submission_t *submission,
    ngx_http_toolgate_run_answer_t *answer);
static ngx_int_t ngx_http_toolgate_submit_outcome(
    ngx_http_toolgate_submission_t *submission, const tg_output_t *output,
    ngx_http_toolgate_field_t *field);
static ngx_int_t ngx_http_toolgate_submit_digest(
    ngx_http_toolgate_submission_t *submission);
static void ngx_http_toolgate_submit_taken(void *data,
    ngx_http_toolgate_submit_e state, int64_t after);
static const char *ngx_http_toolgate_submit_fault(
    ngx_http_toolgate_submission_t *submission, const char *code);


ngx_int_t
ngx_http_toolgate_outputs_submit(ngx_http_toolgate_submission_t *submission)
{
    ngx_http_request_t             *r = submission->request;
    ngx_http_toolgate_main_conf_t  *tmcf;

    tmcf = ngx_http_get_module_main_conf(r, ngx_http_toolgate_module);

    if (ngx_http_toolgate_submit_digest(submission) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_toolgate_run_store_open(r->pool, tmcf->redis, &submission->key,
                                            "read", tmcf->retention,
                                            ngx_http_toolgate_submit_open,
                                            submission);
}


/* What was sent, so that it may be sent again. */
static ngx_int_t
ngx_http_toolgate_submit_digest(ngx_http_toolgate_submission_t *submission)
{
    char      hex[TG_JSON_SHA256_HEX_LEN + 1];
    tg_buf_t  text;

    tg_buf_init(&text, NGX_HTTP_TOOLGATE_SUBMIT_BODY_MAX);

    if (tg_json_canonical(submission->body, &text) == TG_OK) {
        tg_json_sha256_hex(tg_buf_get(&text), hex);
        submission->digest = ngx_http_toolgate_copy(submission->request->pool,
                                                    tg_str_of(hex));

    } else {

        /* it is larger than all outputs may be: the check below says which */

        submission->digest = ngx_http_toolgate_copy(submission->request->pool,
                                                    tg_str("-"));
    }

    tg_buf_free(&text);

    return submission->digest.data ? NGX_OK : NGX_ERROR;
}


static void
ngx_http_toolgate_submit_open(void *data, ngx_http_toolgate_run_answer_t *answer)
{
    ngx_http_toolgate_submission_t *submission = data;

    ngx_str_t                       required;
    ngx_uint_t                      n;
    const char                     *code;
    ngx_connection_t               *c;
    ngx_http_request_t             *r;
    ngx_http_toolgate_main_conf_t  *tmcf;

    r = submission->request;
    c = r->connection;
    tmcf = ngx_http_get_module_main_conf(r, ngx_http_toolgate_module);
    n = 0;

    code = ngx_http_toolgate_submit_check(submission, answer, &n);

    if (code == NULL && n == 0) {

        /* these were taken before */

        submission->done(submission, NULL);
        ngx_http_run_posted_requests(c);
        return;
    }

    if (code == NULL) {
        required = ngx_http_toolgate_run_answer_field(answer, "required_action");

        if (ngx_http_toolgate_run_submit(r->pool, tmcf->redis, &submission->key,
                                         &submission->digest, &required,
                                         submission->outcomes, n,
                                         ngx_http_toolgate_submit_taken, submission)
            != NGX_OK)
        {
            code = ngx_http_toolgate_submit_fault(submission, "internal_error");
        }
    }

    if (code) {
        submission->done(submission, code);
    }

    ngx_http_run_posted_requests(c);
}


/* NULL and *n outcomes; none of them when these were taken before. */
static const char *
ngx_http_toolgate_submit_check(ngx_http_toolgate_submission_t *submission,
    ngx_http_toolgate_run_answer_t *answer, ngx_uint_t *n)
{
    size_t            i, count;
    json_t           *required, *open;
    ngx_str_t         text, after;
    const char       *code;
    tg_output_t       outputs[TG_OUTPUTS_MAX];
    tg_json_error_t   ignored;

    if (answer->pair_count == 0) {
        return ngx_http_toolgate_submit_fault(submission,
                   answer->answer == NGX_HTTP_TOOLGATE_ANSWER_GONE
                   ? "not_found" : "store_unavailable");
    }

    text = ngx_http_toolgate_run_answer_field(answer, "submitted");

    if (text.len == submission->digest.len && text.len > 1
        && ngx_memcmp(text.data, submission->digest.data, text.len) == 0)
    {
        after = ngx_http_toolgate_run_answer_field(answer, "submitted_after");
        submission->after = ngx_max(ngx_atoof(after.data, after.len), 0);
        return NULL;
    }

    code = ngx_http_toolgate_submit_waits(submission, answer);
    if (code) {
        return code;
    }

    text = ngx_http_toolgate_run_answer_field(answer, "required_action");
    required = tg_json_load((tg_str_t) { text.len, (char *) text.data }, &ignored);
    open = json_object_get(required, "tool_calls");

    if (open == NULL) {
        code = ngx_http_toolgate_submit_fault(submission, "run_not_waiting");

    } else if (!tg_outputs_read(submission->body, open, outputs, &count,
                                &submission->fault))
    {
        code = submission->fault.code;

    } else {
        for (i = 0; i < count && code == NULL; i++) {
            if (ngx_http_toolgate_submit_outcome(submission, &outputs[i],
                                                 &submission->outcomes[i])
                != NGX_OK)
            {
                code = ngx_http_toolgate_submit_fault(submission, "internal_error");
            }
        }

        *n = count;
    }

    json_decref(required);

    return code;
}


/* A run that has waited too long has failed, by this question at the latest. */
static const char *
ngx_http_toolgate_submit_waits(ngx_http_toolgate_submission_t *submission,
    ngx_http_toolgate_run_answer_t *answer)
{
    ngx_str_t  status, error;

    status = ngx_http_toolgate_run_answer_field(answer, "status");
    error = ngx_http_toolgate_run_answer_field(answer, "error");

    if (status.len == sizeof("requires_action") - 1
        && ngx_memcmp(status.data, "requires_action", status.len) == 0
        && answer->answer == NGX_HTTP_TOOLGATE_ANSWER_WAITING)
    {
        return NULL;
    }

    return ngx_http_toolgate_submit_fault(submission,
               error.len == sizeof("tool_outputs_expired") - 1
               && ngx_memcmp(error.data, "tool_outputs_expired", error.len) == 0
               ? "tool_outputs_expired" : "run_not_waiting");
}


static const char *
ngx_http_toolgate_submit_fault(ngx_http_toolgate_submission_t *submission,
    const char *code)
{
    ngx_memzero(&submission->fault, sizeof(submission->fault));
    submission->fault.code = code;

    return code;
}


static ngx_int_t
ngx_http_toolgate_submit_outcome(ngx_http_toolgate_submission_t *submission,
    const tg_output_t *output, ngx_http_toolgate_field_t *field)
{
    tg_buf_t     text;
    ngx_pool_t  *pool;

    pool = submission->request->pool;

    tg_buf_init(&text, NGX_HTTP_TOOLGATE_SUBMIT_OUTCOME_MAX);
    tg_buf_cstr(&text, "outcome:");
    tg_buf_str(&text, output->call_id);
    field->name = ngx_http_toolgate_copy(pool, tg_buf_get(&text));

    tg_buf_reset(&text);
    tg_outputs_outcome(output, ngx_time(), &text);
    field->value = text.error == TG_OK
                   ? ngx_http_toolgate_copy(pool, tg_buf_get(&text))
                   : (ngx_str_t) ngx_null_string;
    tg_buf_free(&text);

    return field->name.data && field->value.data ? NGX_OK : NGX_ERROR;
}


static void
ngx_http_toolgate_submit_taken(void *data, ngx_http_toolgate_submit_e state,
    int64_t after)
{
    ngx_http_toolgate_submission_t *submission = data;

    const char                     *code;
    ngx_connection_t               *c;
    ngx_http_toolgate_main_conf_t  *tmcf;

    c = submission->request->connection;
    code = NULL;

    switch (state) {

    case NGX_HTTP_TOOLGATE_SUBMIT_OK:
        tmcf = ngx_http_get_module_main_conf(submission->request,
                                             ngx_http_toolgate_module);
        ngx_http_toolgate_run_kick(tmcf, &submission->key);

        /* fall through */

    case NGX_HTTP_TOOLGATE_SUBMIT_SAME:
        submission->after = after;
        break;

    case NGX_HTTP_TOOLGATE_SUBMIT_LATE:
        code = "tool_outputs_expired";
        break;

    case NGX_HTTP_TOOLGATE_SUBMIT_OTHER:
        code = "run_not_waiting";
        break;

    case NGX_HTTP_TOOLGATE_SUBMIT_GONE:
        code = "not_found";
        break;

    case NGX_HTTP_TOOLGATE_SUBMIT_AWAY:
        code = "store_unavailable";
        break;
    }

    if (code) {
        ngx_http_toolgate_submit_fault(submission, code);
    }

    submission->done(submission, code);
    ngx_http_run_posted_requests(c);
}
