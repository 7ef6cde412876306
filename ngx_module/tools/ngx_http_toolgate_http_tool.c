/*
 * HTTP tools: template, guard, sign, send, shape, in that order. What an endpoint
 * answered reaches the model only through the shaping.
 */

#include "ngx_http_toolgate_tools.h"
#include "ngx_http_toolgate_registry.h"

#include "tg_mask.h"
#include "tg_shape.h"
#include "tg_sign.h"
#include "tg_template.h"


typedef struct {
    tg_template_request_t           rendered;
    tg_template_request_t           shown;        /* the same without secrets */
    ngx_array_t                    *secrets;      /* that are in it */
    ngx_toolgate_client_request_t   request;
    ngx_toolgate_call_t            *call;
    ngx_toolgate_client_result_t   *result;
} ngx_http_toolgate_http_job_t;


static ngx_int_t ngx_http_toolgate_http_tool_start(ngx_http_toolgate_job_t *job);
static void ngx_http_toolgate_http_tool_cancel(ngx_http_toolgate_job_t *job);
static ngx_int_t ngx_http_toolgate_http_tool_facts(ngx_http_toolgate_job_t *job,
    ngx_http_toolgate_job_facts_t *facts);
static const char *ngx_http_toolgate_http_tool_render(
    ngx_http_toolgate_job_t *job, const char *secret_text,
    tg_template_request_t *rendered, ngx_array_t **secrets);
static ngx_int_t ngx_http_toolgate_http_tool_headers(
    ngx_http_toolgate_job_t *job, ngx_http_toolgate_http_job_t *hj);
static ngx_int_t ngx_http_toolgate_http_tool_sign(
    ngx_http_toolgate_project_t *project, tg_str_t id, tg_str_t body,
    tg_buf_t *out);
static ngx_array_t *ngx_http_toolgate_http_tool_rendered_headers(
    ngx_pool_t *pool, tg_template_request_t *rendered);
static ngx_int_t ngx_http_toolgate_http_tool_header(ngx_array_t *headers,
    tg_str_t name, tg_str_t value);
static void ngx_http_toolgate_http_tool_done(void *data,
    ngx_toolgate_client_result_t *result);
static ngx_int_t ngx_http_toolgate_http_tool_mask(ngx_http_toolgate_job_t *job,
    ngx_array_t *secrets);
static const char *ngx_http_toolgate_http_tool_reason(ngx_uint_t status);
static ngx_int_t ngx_http_toolgate_http_tool_refused(ngx_http_toolgate_job_t *job,
    const char *code);
static void ngx_http_toolgate_http_tool_cleanup(void *data);
static ngx_uint_t ngx_http_toolgate_http_tool_committed(
    ngx_http_toolgate_job_t *job);


const ngx_http_toolgate_tool_ops_t  ngx_http_toolgate_http_tool_ops = {
    ngx_http_toolgate_http_tool_start,
    ngx_http_toolgate_http_tool_cancel,
    ngx_http_toolgate_http_tool_facts,
    ngx_http_toolgate_http_tool_committed
};


static ngx_int_t
ngx_http_toolgate_http_tool_start(ngx_http_toolgate_job_t *job)
{
    const char                    *code;
    ngx_pool_cleanup_t            *cln;
    ngx_http_toolgate_http_job_t  *hj;

    cln = ngx_pool_cleanup_add(job->pool, sizeof(ngx_http_toolgate_http_job_t));
    if (cln == NULL) {
        return NGX_ERROR;
    }

    hj = cln->data;
    ngx_memzero(hj, sizeof(ngx_http_toolgate_http_job_t));
    cln->handler = ngx_http_toolgate_http_tool_cleanup;
    job->state = hj;

    code = ngx_http_toolgate_http_tool_render(job, NULL, &hj->rendered,
                                              &hj->secrets);
    job->detail = hj->rendered.detail;

    if (code == NULL && !job->project->can_sign) {
        code = "upstream_failed";
        job->detail = "no_signing_secret";
    }

    if (code == NULL) {
        code = tg_url_judge(&hj->rendered.parts, &job->conf->client.guard);
        job->detail = code;

        /* to the model every address fault is the same */
        if (code) {
            code = "address_not_allowed";
        }
    }

    if (code) {
        return ngx_http_toolgate_http_tool_refused(job, code);
    }

    if (ngx_http_toolgate_http_tool_headers(job, hj) != NGX_OK) {
        return NGX_ERROR;
    }

    hj->request.method = hj->rendered.method;
    hj->request.url.data = (u_char *) hj->rendered.url.data;
    hj->request.url.len = hj->rendered.url.len;
    hj->request.parts = &hj->rendered.parts;
    hj->request.body.data = (u_char *) hj->rendered.body.data;
    hj->request.body.len = hj->rendered.body.len;
    hj->request.has_body = hj->rendered.has_body;
    hj->request.action = (job->tool->effect == TG_EFFECT_ACTION);
    hj->request.timeout = ngx_min(tg_template_timeout_ms(job->tool->template),
                                  ngx_max(job->time_left, 1));

    hj->call = ngx_toolgate_client_start(job->pool, job->log, &job->conf->client,
                                         job->resolver, job->resolver_timeout,
                                         &hj->request,
                                         ngx_http_toolgate_http_tool_done, job);

    return hj->call ? NGX_OK : NGX_ERROR;
}


static const char *
ngx_http_toolgate_http_tool_render(ngx_http_toolgate_job_t *job,
    const char *secret_text, tg_template_request_t *rendered,
    ngx_array_t **secrets)
{
    tg_template_values_t  values;

    *secrets = ngx_http_toolgate_secrets(job->pool, job->project,
                                         job->tool->template);
    if (*secrets == NULL) {
        return "unresolved_placeholder";
    }

    ngx_memzero(&values, sizeof(values));
    values.args = job->arguments;
    values.end_user = job->end_user;
    values.variables = job->variables;
    values.secrets = (*secrets)->elts;
    values.secret_count = (*secrets)->nelts;
    values.secret_text = secret_text;

    return tg_template_render(job->tool->template, &values, rendered);
}


static ngx_int_t
ngx_http_toolgate_http_tool_headers(ngx_http_toolgate_job_t *job,
    ngx_http_toolgate_http_job_t *hj)
{
    tg_buf_t    text;
    tg_str_t    body, id;
    ngx_int_t   rc;

    hj->request.headers =
        ngx_http_toolgate_http_tool_rendered_headers(job->pool, &hj->rendered);

    if (hj->request.headers == NULL) {
        return NGX_ERROR;
    }

    id.data = (char *) job->call_id.data;
    id.len = job->call_id.len;
    body = tg_buf_get(&hj->rendered.body);

    tg_buf_init(&text, 256);
    tg_buf_int(&text, (int64_t) ngx_time());

    rc = ngx_http_toolgate_http_tool_header(hj->request.headers,
                                            tg_str("webhook-timestamp"),
                                            tg_buf_get(&text));
    tg_buf_reset(&text);

    if (rc != NGX_OK
        || ngx_http_toolgate_http_tool_sign(job->project, id, body, &text)
           != NGX_OK
        || ngx_http_toolgate_http_tool_header(hj->request.headers,
                                              tg_str("webhook-signature"),
                                              tg_buf_get(&text)) != NGX_OK
        || ngx_http_toolgate_http_tool_header(hj->request.headers,
                                              tg_str("webhook-id"), id) != NGX_OK
        || ngx_http_toolgate_http_tool_header(hj->request.headers,
                          tg_str("x-toolgate-run"),
                          (tg_str_t) { job->run.len, (char *) job->run.data })
           != NGX_OK)
    {
        rc = NGX_ERROR;
    }

    tg_buf_free(&text);

    return rc;
}


/* For a while after a rotation endpoints may still know the old secret only. */
static ngx_int_t
ngx_http_toolgate_http_tool_sign(ngx_http_toolgate_project_t *project, tg_str_t id,
    tg_str_t body, tg_buf_t *out)
{
    time_t  now;

    now = ngx_time();

    if (tg_sign(&project->signing_key, id, (int64_t) now, body, out) != TG_OK) {
        return NGX_ERROR;
    }

    if (project->previous_expires <= now) {
        return NGX_OK;
    }

    tg_buf_char(out, ' ');

    return tg_sign(&project->previous_key, id, (int64_t) now, body, out) == TG_OK
           ? NGX_OK : NGX_ERROR;
}


static ngx_array_t *
ngx_http_toolgate_http_tool_rendered_headers(ngx_pool_t *pool,
    tg_template_request_t *rendered)
{
    size_t        i;
    ngx_array_t  *headers;

    headers = ngx_array_create(pool, rendered->header_count + 4,
                               sizeof(ngx_keyval_t));

    for (i = 0; headers && i < rendered->header_count; i++) {
        if (ngx_http_toolgate_http_tool_header(headers,
                                        tg_buf_get(&rendered->headers[i].name),
                                        tg_buf_get(&rendered->headers[i].value))
            != NGX_OK)
        {
            return NULL;
        }
    }

    return headers;
}


static ngx_int_t
ngx_http_toolgate_http_tool_header(ngx_array_t *headers, tg_str_t name,
    tg_str_t value)
{
    ngx_keyval_t  *kv;

    kv = ngx_array_push(headers);
    if (kv == NULL) {
        return NGX_ERROR;
    }

    kv->key.data = (u_char *) name.data;
    kv->key.len = name.len;

    kv->value.len = value.len;
    kv->value.data = ngx_pnalloc(headers->pool, value.len + 1);
    if (kv->value.data == NULL) {
        return NGX_ERROR;
    }

    if (value.len) {
        ngx_memcpy(kv->value.data, value.data, value.len);
    }

    kv->value.data[value.len] = '\0';

    return NGX_OK;
}


static void
ngx_http_toolgate_http_tool_done(void *data, ngx_toolgate_client_result_t *result)
{
    ngx_http_toolgate_job_t *job = data;

    tg_str_t                       body;
    ngx_http_toolgate_http_job_t  *hj;

    hj = job->state;
    hj->call = NULL;
    hj->result = result;
    job->detail = result->detail;

    if (result->code) {
        ngx_log_error(NGX_LOG_WARN, job->log, 0,
                      "toolgate: tool \"%V\": %s: %s", &job->tool->name,
                      result->code, result->detail ? result->detail : "");

        (void) ngx_http_toolgate_http_tool_refused(job, result->code);
        job->done(job);
        return;
    }

    body.data = (char *) result->body.data;
    body.len = result->body.len;

    job->code = tg_shape(tg_template_response(job->tool->template),
                         (unsigned) result->status, body, &job->result);

    if (ngx_http_toolgate_http_tool_mask(job, hj->secrets) != NGX_OK) {
        (void) ngx_http_toolgate_http_tool_refused(job, "unreadable");
        job->done(job);
        return;
    }

    if (job->code) {
        job->detail = ngx_http_toolgate_http_tool_reason(result->status);
        ngx_log_error(NGX_LOG_WARN, job->log, 0,
                      "toolgate: tool \"%V\": %s: answered with status %ui",
                      &job->tool->name, job->code, result->status);
    }

    job->done(job);
}


/* An endpoint that repeats a credential does not make the model know it, nor those
 * who keep what the model has seen. */
static ngx_int_t
ngx_http_toolgate_http_tool_mask(ngx_http_toolgate_job_t *job,
    ngx_array_t *secrets)
{
    bool                   whole;
    tg_rc_e                rc;
    tg_buf_t               text;
    tg_mask_t             *mask;
    ngx_uint_t             i;
    tg_template_secret_t  *secret;

    if (secrets->nelts == 0 || job->result.len == 0) {
        return NGX_OK;
    }

    mask = tg_mask_new();
    rc = mask ? TG_OK : TG_E_NOMEM;
    secret = secrets->elts;

    for (i = 0; rc == TG_OK && i < secrets->nelts; i++) {
        rc = tg_mask_add(mask, secret[i].value);
    }

    tg_buf_init(&text, NGX_HTTP_TOOLGATE_RESULT_MAX);

    if (rc == TG_OK) {
        rc = tg_mask_text(mask, tg_buf_get(&job->result), false,
                          NGX_HTTP_TOOLGATE_RESULT_MAX, &text, &whole);
    }

    if (rc == TG_OK) {
        tg_buf_reset(&job->result);
        rc = tg_buf_str(&job->result, tg_buf_get(&text));
    }

    tg_buf_free(&text);
    tg_mask_free(mask);

    return rc == TG_OK ? NGX_OK : NGX_ERROR;
}


static const char *
ngx_http_toolgate_http_tool_reason(ngx_uint_t status)
{
    switch (status / 100) {

    case 2:
        return "the body is not the JSON that the tool's response asks for";

    case 3:
        return "redirects are not followed";

    default:
        return "the status is not 2xx";
    }
}


static ngx_int_t
ngx_http_toolgate_http_tool_refused(ngx_http_toolgate_job_t *job, const char *code)
{
    job->code = code;

    return tg_policy_envelope(code, tg_null_str, &job->result) == TG_OK
           ? NGX_DONE : NGX_ERROR;
}


static void
ngx_http_toolgate_http_tool_cancel(ngx_http_toolgate_job_t *job)
{
    ngx_http_toolgate_http_job_t  *hj = job->state;

    if (hj && hj->call) {
        ngx_toolgate_client_cancel(hj->call);
        hj->call = NULL;
    }
}


/* An action of which something is on its way. */
static ngx_uint_t
ngx_http_toolgate_http_tool_committed(ngx_http_toolgate_job_t *job)
{
    ngx_http_toolgate_http_job_t  *hj = job->state;

    return job->tool->effect != TG_EFFECT_READ && hj->call
           && ngx_toolgate_call_sent(hj->call);
}


/* A request with secrets is rendered once more, with none in it: where a secret was
 * is not told by its bytes, which may be any. */
static ngx_int_t
ngx_http_toolgate_http_tool_facts(ngx_http_toolgate_job_t *job,
    ngx_http_toolgate_job_facts_t *facts)
{
    ngx_uint_t                     i, secrets;
    ngx_keyval_t                  *header, *shown;
    tg_template_request_t         *request;
    ngx_http_toolgate_http_job_t  *hj = job->state;

    if (hj->rendered.url.len == 0) {
        return NGX_OK;
    }

    secrets = hj->secrets && hj->secrets->nelts;
    request = secrets ? &hj->shown : &hj->rendered;

    if (secrets && hj->shown.url.len == 0
        && ngx_http_toolgate_http_tool_render(job, TG_MASK_TEXT, &hj->shown,
                                              &hj->secrets)
           != NULL)
    {
        return NGX_ERROR;
    }

    facts->headers = ngx_http_toolgate_http_tool_rendered_headers(job->pool,
                                                                  request);
    if (facts->headers == NULL) {
        return NGX_ERROR;
    }

    /* behind the template's own stand those that every request gets */

    header = hj->request.headers ? hj->request.headers->elts : NULL;

    for (i = facts->headers->nelts; header && i < hj->request.headers->nelts; i++) {
        shown = ngx_array_push(facts->headers);
        if (shown == NULL) {
            return NGX_ERROR;
        }

        *shown = header[i];

        if (shown->key.len == sizeof("webhook-signature") - 1
            && ngx_strncmp(shown->key.data, "webhook-signature", shown->key.len)
               == 0)
        {
            ngx_str_set(&shown->value, TG_MASK_TEXT);
        }
    }

    facts->method = request->method;
    facts->url = tg_buf_get(&request->url);
    facts->body = tg_buf_get(&request->body);
    facts->has_body = request->has_body;
    facts->upstream = hj->result;

    return NGX_OK;
}


static void
ngx_http_toolgate_http_tool_cleanup(void *data)
{
    ngx_http_toolgate_http_job_t  *hj = data;

    tg_template_request_free(&hj->rendered);
    tg_template_request_free(&hj->shown);
}
