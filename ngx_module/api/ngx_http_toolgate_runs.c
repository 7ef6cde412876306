/*
 * GET /v1/runs/{run}/steps: what happened in a run, read from the store while the
 * request waits. What a step looks like is written by run/.
 */

#include "ngx_http_toolgate_api.h"
#include "ngx_http_toolgate_run_record.h"


#define NGX_HTTP_TOOLGATE_LIST_LIMIT      20
#define NGX_HTTP_TOOLGATE_LIST_LIMIT_MAX  100
#define NGX_HTTP_TOOLGATE_LABEL_MAX       64

/* What is asked for, or what is wrong with it. */
typedef struct {
    ngx_http_toolgate_run_key_t   key;
    ngx_str_t                     after;
    ngx_uint_t                    limit;
    const char                   *code;
    const char                   *param;
    const char                   *message;
} ngx_http_toolgate_steps_query_t;


static ngx_int_t ngx_http_toolgate_steps_query(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_http_toolgate_steps_query_t *query);
static ngx_int_t ngx_http_toolgate_steps_account(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_http_toolgate_steps_query_t *query);
static ngx_int_t ngx_http_toolgate_steps_fault(
    ngx_http_toolgate_steps_query_t *query, const char *code, const char *param,
    const char *message);
static ngx_int_t ngx_http_toolgate_steps_argument(ngx_http_request_t *r,
    const char *name, ngx_str_t *value);
static void ngx_http_toolgate_steps_page(void *data,
    ngx_http_toolgate_page_t *page);
static ngx_int_t ngx_http_toolgate_steps_reply(ngx_http_request_t *r,
    ngx_http_toolgate_page_t *page);


ngx_int_t
ngx_http_toolgate_run_steps(ngx_http_request_t *r, ngx_http_toolgate_key_t *key,
    ngx_str_t *rest)
{
    u_char                           *p;
    ngx_int_t                         rc;
    ngx_http_toolgate_main_conf_t    *tmcf;
    ngx_http_toolgate_steps_query_t   query;

    ngx_memzero(&query, sizeof(query));

    /* the router has seen "/v1/runs/", a name, "/steps" */

    query.key.run.data = r->uri.data + sizeof("/v1/runs/") - 1;
    p = ngx_strlchr(query.key.run.data, r->uri.data + r->uri.len, '/');
    query.key.run.len = p - query.key.run.data;

    if (ngx_http_toolgate_steps_query(r, key, &query) != NGX_OK) {
        return ngx_http_toolgate_reply_error(r, query.code ? query.code
                                                           : "internal_error",
                                             query.message, query.param);
    }

    tmcf = ngx_http_get_module_main_conf(r, ngx_http_toolgate_module);

    if (tmcf->redis == NULL || !ngx_toolgate_redis_up(tmcf->redis)) {
        return ngx_http_toolgate_reply_error(r, "store_unavailable", NULL, NULL);
    }

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    if (ngx_http_toolgate_run_record_page(r->pool, r->connection->log,
                                          tmcf->redis, &query.key, &query.after,
                                          query.limit,
                                          ngx_http_toolgate_steps_page, r)
        != NGX_OK)
    {
        return ngx_http_toolgate_reply_error(r, "internal_error", NULL, NULL);
    }

    r->main->count++;

    return NGX_DONE;
}


static ngx_int_t
ngx_http_toolgate_steps_query(ngx_http_request_t *r, ngx_http_toolgate_key_t *key,
    ngx_http_toolgate_steps_query_t *query)
{
    ngx_int_t  n;
    ngx_str_t  limit;

    if (ngx_http_toolgate_steps_account(r, key, query) != NGX_OK) {
        return NGX_ERROR;
    }

    query->limit = NGX_HTTP_TOOLGATE_LIST_LIMIT;

    if (ngx_http_toolgate_steps_argument(r, "limit", &limit) == NGX_OK) {
        n = ngx_atoi(limit.data, limit.len);

        if (n < 1 || n > NGX_HTTP_TOOLGATE_LIST_LIMIT_MAX) {
            return ngx_http_toolgate_steps_fault(query, "invalid_value", "limit",
                                                 "\"limit\" is a number from 1 to "
                                                 "100.");
        }

        query->limit = n;
    }

    if (ngx_http_toolgate_steps_argument(r, "after", &query->after) == NGX_OK
        && !tg_id_valid("step_", (tg_str_t) { query->after.len,
                                              (char *) query->after.data }))
    {
        return ngx_http_toolgate_steps_fault(query, "invalid_value", "after",
                                             "\"after\" is the id of a step.");
    }

    /* what cannot be the id of a run is none */

    if (!tg_id_valid("run_", (tg_str_t) { query->key.run.len,
                                          (char *) query->key.run.data }))
    {
        return ngx_http_toolgate_steps_fault(query, "not_found", NULL, NULL);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_steps_account(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_http_toolgate_steps_query_t *query)
{
    tg_str_t     account;
    ngx_str_t    header, argument, *named;
    ngx_int_t    given;
    const char  *code;

    header = ngx_http_toolgate_request_header(r, "x-account-id");
    given = ngx_http_toolgate_steps_argument(r, "account_id", &argument);

    if (header.len && given == NGX_OK
        && (header.len != argument.len
            || ngx_memcmp(header.data, argument.data, header.len) != 0))
    {
        return ngx_http_toolgate_steps_fault(query, "invalid_value", "account_id",
                                             "The parameter and the header "
                                             "X-Account-Id differ.");
    }

    named = header.len ? &header : &argument;

    code = ngx_http_toolgate_auth_account(key, (tg_str_t) { named->len,
                                                      (char *) named->data },
                                          header.len || given == NGX_OK, &account);
    if (code) {
        return ngx_http_toolgate_steps_fault(query, code, "account_id",
                                             ngx_strcmp(code, "invalid_value") == 0
                                             ? "\"account_id\" is a string of 1 "
                                               "to 64 of [A-Za-z0-9_.:-]."
                                             : NULL);
    }

    query->key.project = key->project->name;
    query->key.account.data = (u_char *) account.data;
    query->key.account.len = account.len;

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_steps_fault(ngx_http_toolgate_steps_query_t *query,
    const char *code, const char *param, const char *message)
{
    query->code = code;
    query->param = param;
    query->message = message;

    return NGX_ERROR;
}


/* A parameter of the URL, unescaped; NGX_DECLINED and an empty value: absent. */
static ngx_int_t
ngx_http_toolgate_steps_argument(ngx_http_request_t *r, const char *name,
    ngx_str_t *value)
{
    u_char     *src, *dst;
    ngx_str_t   raw;

    ngx_str_null(value);

    if (ngx_http_arg(r, (u_char *) name, ngx_strlen(name), &raw) != NGX_OK) {
        return NGX_DECLINED;
    }

    dst = ngx_pnalloc(r->pool, raw.len + 1);
    if (dst == NULL) {
        return NGX_DECLINED;
    }

    value->data = dst;
    src = raw.data;
    ngx_unescape_uri(&dst, &src, raw.len, 0);
    value->len = dst - value->data;

    return NGX_OK;
}


static void
ngx_http_toolgate_steps_page(void *data, ngx_http_toolgate_page_t *page)
{
    ngx_int_t            rc;
    ngx_connection_t    *c;
    ngx_http_request_t  *r = data;

    c = r->connection;

    switch (page->state) {

    case NGX_HTTP_TOOLGATE_PAGE_READ:
        rc = ngx_http_toolgate_steps_reply(r, page);
        break;

    case NGX_HTTP_TOOLGATE_PAGE_NO_RUN:
        rc = ngx_http_toolgate_reply_error(r, "not_found", NULL, NULL);
        break;

    case NGX_HTTP_TOOLGATE_PAGE_NO_STEP:
        rc = ngx_http_toolgate_reply_error(r, "invalid_value",
                                           "The run has no such step.", "after");
        break;

    default:
        rc = ngx_http_toolgate_reply_error(r, "store_unavailable", NULL, NULL);
    }

    ngx_http_finalize_request(r, rc);
    ngx_http_run_posted_requests(c);
}


static ngx_int_t
ngx_http_toolgate_steps_reply(ngx_http_request_t *r,
    ngx_http_toolgate_page_t *page)
{
    tg_buf_t    out;
    ngx_int_t   rc;
    ngx_uint_t  i;

    tg_buf_init(&out, NGX_HTTP_TOOLGATE_REPLY_MAX);
    tg_buf_cstr(&out, "{\"object\":\"list\",\"data\":[");

    for (i = 0; i < page->count; i++) {
        tg_buf_cstr(&out, i ? "," : "");
        tg_buf_append(&out, page->steps[i]->str, (size_t) page->steps[i]->len);
    }

    tg_buf_cstr(&out, page->more ? "],\"has_more\":true}" : "],\"has_more\":false}");

    rc = out.error == TG_OK
         ? ngx_http_toolgate_reply(r, NGX_HTTP_OK, tg_buf_get(&out))
         : ngx_http_toolgate_reply_error(r, "internal_error", NULL, NULL);

    tg_buf_free(&out);

    return rc;
}
