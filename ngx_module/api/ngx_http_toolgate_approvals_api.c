/*
 * /v1/approvals: the pending ones of an account, one of them, and its decision. What
 * a decision brings about is the store's and the run's business.
 */

#include "ngx_http_toolgate_api.h"
#include "ngx_http_toolgate_approvals.h"
#include "ngx_http_toolgate_run.h"

#include "tg_approval.h"


#define NGX_HTTP_TOOLGATE_DECISION_BODY_MAX  (64 * 1024)


/* A request for one approval. */
typedef struct {
    ngx_http_request_t            *request;
    ngx_http_toolgate_run_key_t    whose;
} ngx_http_toolgate_approval_request_t;


static ngx_int_t ngx_http_toolgate_approval_query(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_http_toolgate_run_key_t *whose,
    ngx_http_toolgate_fault_t *fault);
static ngx_int_t ngx_http_toolgate_approval_pending(ngx_http_request_t *r,
    ngx_http_toolgate_run_key_t *whose);
static ngx_int_t ngx_http_toolgate_approval_one(ngx_http_request_t *r,
    ngx_http_toolgate_run_key_t *whose, ngx_str_t *id, const char *decision,
    tg_str_t reason);
static void ngx_http_toolgate_approval_body(ngx_http_request_t *r,
    ngx_http_toolgate_body_t *body);
static ngx_int_t ngx_http_toolgate_approval_decision(ngx_http_request_t *r,
    ngx_http_toolgate_body_t *body, json_t *fields);
static void ngx_http_toolgate_approval_answer(void *data,
    ngx_http_toolgate_approval_answer_t *answer);
static void ngx_http_toolgate_approval_page(void *data,
    ngx_http_toolgate_approvals_page_t *page);
static void ngx_http_toolgate_approval_write(ngx_http_toolgate_approval_t *approval,
    tg_buf_t *out);
static ngx_int_t ngx_http_toolgate_approval_reply(ngx_http_request_t *r,
    tg_buf_t *out);
static void ngx_http_toolgate_approval_end(ngx_http_request_t *r, ngx_int_t rc);


/* The router has seen "/v1/approvals", or that and a name. */
ngx_int_t
ngx_http_toolgate_approvals_api(ngx_http_request_t *r, ngx_http_toolgate_key_t *key,
    ngx_str_t *rest)
{
    ngx_int_t                      rc;
    ngx_str_t                      id;
    ngx_http_toolgate_fault_t      fault;
    ngx_http_toolgate_run_key_t    whose;

    if (r->method == NGX_HTTP_POST) {
        return ngx_http_toolgate_body_read(r, key, ngx_http_toolgate_approval_body,
                                           NULL);
    }

    if (ngx_http_toolgate_approval_query(r, key, &whose, &fault) != NGX_OK) {
        return ngx_http_toolgate_reply_error(r, fault.code, fault.message,
                                             fault.param);
    }

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    if (r->uri.len == sizeof("/v1/approvals") - 1) {
        rc = ngx_http_toolgate_approval_pending(r, &whose);

    } else {
        id.data = r->uri.data + sizeof("/v1/approvals/") - 1;
        id.len = r->uri.data + r->uri.len - id.data;
        rc = ngx_http_toolgate_approval_one(r, &whose, &id, "", tg_null_str);
    }

    if (rc == NGX_AGAIN) {
        r->main->count++;
        return NGX_DONE;
    }

    return rc;
}


static ngx_int_t
ngx_http_toolgate_approval_query(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_http_toolgate_run_key_t *whose,
    ngx_http_toolgate_fault_t *fault)
{
    ngx_http_toolgate_main_conf_t  *tmcf;

    ngx_memzero(whose, sizeof(ngx_http_toolgate_run_key_t));
    whose->project = key->project->name;

    if (ngx_http_toolgate_query_account(r, key, &whose->account, fault) != NGX_OK) {
        return NGX_DECLINED;
    }

    tmcf = ngx_http_get_module_main_conf(r, ngx_http_toolgate_module);

    if (tmcf->redis == NULL || !ngx_toolgate_redis_up(tmcf->redis)) {
        return ngx_http_toolgate_fault(fault, "store_unavailable", NULL, NULL);
    }

    return NGX_OK;
}


/* NGX_AGAIN: an answer follows. */
static ngx_int_t
ngx_http_toolgate_approval_pending(ngx_http_request_t *r,
    ngx_http_toolgate_run_key_t *whose)
{
    ngx_str_t                       status, after;
    ngx_uint_t                      limit;
    ngx_http_toolgate_fault_t       fault;
    ngx_http_toolgate_main_conf_t  *tmcf;

    if (ngx_http_toolgate_query_argument(r, "status", &status) == NGX_OK
        && (status.len != 7 || ngx_memcmp(status.data, "pending", 7) != 0))
    {
        return ngx_http_toolgate_reply_error(r, "invalid_value",
                                             "Only approvals that are \"pending\" "
                                             "are listed.", "status");
    }

    if (ngx_http_toolgate_query_limit(r, &limit, &fault) != NGX_OK) {
        return ngx_http_toolgate_reply_error(r, fault.code, fault.message,
                                             fault.param);
    }

    if (ngx_http_toolgate_query_argument(r, "after", &after) == NGX_OK
        && !tg_id_valid("appr_", (tg_str_t) { after.len, (char *) after.data }))
    {
        return ngx_http_toolgate_reply_error(r, "invalid_value",
                                             "\"after\" is the id of an approval.",
                                             "after");
    }

    tmcf = ngx_http_get_module_main_conf(r, ngx_http_toolgate_module);

    if (ngx_http_toolgate_approvals_list(r->pool, r->connection->log, tmcf->redis,
                                         whose, &after, limit,
                                         ngx_http_toolgate_approval_page, r)
        != NGX_OK)
    {
        return ngx_http_toolgate_reply_error(r, "internal_error", NULL, NULL);
    }

    return NGX_AGAIN;
}


/* NGX_AGAIN: an answer follows. */
static ngx_int_t
ngx_http_toolgate_approval_one(ngx_http_request_t *r,
    ngx_http_toolgate_run_key_t *whose, ngx_str_t *id, const char *decision,
    tg_str_t reason)
{
    ngx_http_toolgate_main_conf_t         *tmcf;
    ngx_http_toolgate_approval_request_t  *one;

    if (!tg_id_valid("appr_", (tg_str_t) { id->len, (char *) id->data })) {
        return ngx_http_toolgate_reply_error(r, "not_found", NULL, NULL);
    }

    tmcf = ngx_http_get_module_main_conf(r, ngx_http_toolgate_module);

    if (tmcf->redis == NULL || !ngx_toolgate_redis_up(tmcf->redis)) {
        return ngx_http_toolgate_reply_error(r, "store_unavailable", NULL, NULL);
    }

    one = ngx_palloc(r->pool, sizeof(ngx_http_toolgate_approval_request_t));

    if (one) {
        one->request = r;
        one->whose = *whose;
    }

    if (one == NULL
        || ngx_http_toolgate_approvals_decide(r->pool, r->connection->log,
                                              tmcf->redis, whose, id, decision,
                                              reason,
                                              ngx_http_toolgate_approval_answer,
                                              one)
           != NGX_OK)
    {
        return ngx_http_toolgate_reply_error(r, "internal_error", NULL, NULL);
    }

    return NGX_AGAIN;
}


static void
ngx_http_toolgate_approval_body(ngx_http_request_t *r,
    ngx_http_toolgate_body_t *body)
{
    json_t           *fields;
    ngx_int_t         rc;
    tg_json_error_t   error;

    if (body->len > NGX_HTTP_TOOLGATE_DECISION_BODY_MAX) {
        ngx_http_finalize_request(r, ngx_http_toolgate_reply_error(r,
                                         "request_too_large", NULL, NULL));
        return;
    }

    fields = tg_json_load((tg_str_t) { body->len, (char *) body->data }, &error);

    rc = fields ? ngx_http_toolgate_approval_decision(r, body, fields)
                : ngx_http_toolgate_reply_error(r, "invalid_json", error.reason,
                                                NULL);
    json_decref(fields);

    if (rc != NGX_AGAIN) {
        ngx_http_finalize_request(r, rc);
    }
}


/* NGX_AGAIN: an answer follows. */
static ngx_int_t
ngx_http_toolgate_approval_decision(ngx_http_request_t *r,
    ngx_http_toolgate_body_t *body, json_t *fields)
{
    ngx_int_t                       rc;
    ngx_str_t                       id;
    tg_approval_fault_t             wrong;
    tg_approval_decision_t          decision;
    ngx_http_toolgate_fault_t       fault;
    ngx_http_toolgate_run_key_t     whose;

    if (!tg_approval_decide(fields, &decision, &wrong)) {
        return ngx_http_toolgate_reply_error(r, wrong.code, wrong.message,
                                             wrong.param);
    }

    ngx_memzero(&whose, sizeof(whose));
    whose.project = body->key->project->name;

    rc = ngx_http_toolgate_body_account(r, body, &whose.account, &fault);

    if (rc != NGX_OK) {
        return rc == NGX_DECLINED
               ? ngx_http_toolgate_reply_error(r, fault.code, fault.message,
                                               fault.param)
               : ngx_http_toolgate_reply_error(r, "internal_error", NULL, NULL);
    }

    id.data = r->uri.data + sizeof("/v1/approvals/") - 1;
    id.len = r->uri.data + r->uri.len - id.data;

    return ngx_http_toolgate_approval_one(r, &whose, &id,
                                          decision.approved ? "approved"
                                                            : "rejected",
                                          decision.reason);
}


static void
ngx_http_toolgate_approval_answer(void *data,
    ngx_http_toolgate_approval_answer_t *answer)
{
    ngx_http_toolgate_approval_request_t *one = data;

    tg_buf_t                        out;
    ngx_int_t                       rc;
    ngx_http_request_t             *r;
    ngx_http_toolgate_main_conf_t  *tmcf;

    r = one->request;

    if (answer->go_on) {
        tmcf = ngx_http_get_module_main_conf(r, ngx_http_toolgate_module);
        one->whose.run = answer->run;
        ngx_http_toolgate_run_kick(tmcf, &one->whose);
    }

    switch (answer->state) {

    case NGX_HTTP_TOOLGATE_APPROVAL_OK:
        tg_buf_init(&out, NGX_HTTP_TOOLGATE_REPLY_MAX);
        ngx_http_toolgate_approval_write(&answer->approval, &out);
        rc = ngx_http_toolgate_approval_reply(r, &out);
        break;

    case NGX_HTTP_TOOLGATE_APPROVAL_NONE:
        rc = ngx_http_toolgate_reply_error(r, "not_found", NULL, NULL);
        break;

    case NGX_HTTP_TOOLGATE_APPROVAL_DECIDED:
        rc = ngx_http_toolgate_reply_error(r, "already_decided", NULL, NULL);
        break;

    case NGX_HTTP_TOOLGATE_APPROVAL_EXPIRED:
        rc = ngx_http_toolgate_reply_error(r, "approval_expired", NULL, NULL);
        break;

    default:
        rc = ngx_http_toolgate_reply_error(r, "store_unavailable", NULL, NULL);
    }

    ngx_http_toolgate_approval_end(r, rc);
}


static void
ngx_http_toolgate_approval_page(void *data, ngx_http_toolgate_approvals_page_t *page)
{
    tg_buf_t             out;
    ngx_int_t            rc;
    ngx_uint_t           i;
    ngx_http_request_t  *r = data;

    if (page->state != NGX_HTTP_TOOLGATE_APPROVAL_OK) {
        rc = page->state == NGX_HTTP_TOOLGATE_APPROVAL_NONE
             ? ngx_http_toolgate_reply_error(r, "invalid_value",
                                             "The account has no such approval.",
                                             "after")
             : ngx_http_toolgate_reply_error(r, "store_unavailable", NULL, NULL);

        ngx_http_toolgate_approval_end(r, rc);
        return;
    }

    tg_buf_init(&out, NGX_HTTP_TOOLGATE_REPLY_MAX);
    tg_buf_cstr(&out, "{\"object\":\"list\",\"data\":[");

    for (i = 0; i < page->count; i++) {
        tg_buf_cstr(&out, i ? "," : "");
        ngx_http_toolgate_approval_write(&page->approvals[i], &out);
    }

    tg_buf_cstr(&out, page->more ? "],\"has_more\":true}" : "],\"has_more\":false}");

    ngx_http_toolgate_approval_end(r, ngx_http_toolgate_approval_reply(r, &out));
}


/* The document is an object of the run's making: its members follow ours. */
static void
ngx_http_toolgate_approval_write(ngx_http_toolgate_approval_t *approval,
    tg_buf_t *out)
{
    tg_buf_printf(out, "{\"id\":\"%.*s\",\"object\":\"approval\",\"status\":\"%.*s\","
                       "\"created_at\":%.*s,\"expires_at\":%lld,\"decided_at\":",
                  (int) approval->id.len, approval->id.data,
                  (int) approval->status.len, approval->status.data,
                  (int) approval->created.len, approval->created.data,
                  (long long) ngx_atoof(approval->expires.data,
                                        approval->expires.len) / 1000);

    if (approval->decided.len) {
        tg_buf_append(out, approval->decided.data, approval->decided.len);

    } else {
        tg_buf_cstr(out, "null");
    }

    tg_buf_cstr(out, ",\"reason\":");

    if (approval->reason.len) {
        tg_buf_json_string(out, (tg_str_t) { approval->reason.len,
                                             (char *) approval->reason.data });

    } else {
        tg_buf_cstr(out, "null");
    }

    tg_buf_char(out, ',');
    tg_buf_append(out, approval->document.data + 1, approval->document.len - 1);
}


/* Frees what was written. */
static ngx_int_t
ngx_http_toolgate_approval_reply(ngx_http_request_t *r, tg_buf_t *out)
{
    ngx_int_t  rc;

    rc = out->error == TG_OK
         ? ngx_http_toolgate_reply(r, NGX_HTTP_OK, tg_buf_get(out))
         : ngx_http_toolgate_reply_error(r, "internal_error", NULL, NULL);

    tg_buf_free(out);

    return rc;
}


static void
ngx_http_toolgate_approval_end(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_connection_t  *c;

    c = r->connection;

    ngx_http_finalize_request(r, rc);
    ngx_http_run_posted_requests(c);
}
