/*
 * GET /v1/runs/{run}/steps: what happened in a run, read from the store while the
 * request waits. What a step looks like is written by run/.
 */

#include "ngx_http_toolgate_api.h"
#include "ngx_http_toolgate_run_record.h"


/* What is asked for, or what is wrong with it. */
typedef struct {
    ngx_str_t                     after;
    ngx_uint_t                    limit;
    ngx_http_toolgate_fault_t     fault;
} ngx_http_toolgate_steps_query_t;


static ngx_int_t ngx_http_toolgate_steps_query(ngx_http_request_t *r,
    ngx_http_toolgate_steps_query_t *query);
static void ngx_http_toolgate_steps_ref(ngx_http_request_t *r,
    ngx_http_toolgate_run_key_t *key, const char *code);
static ngx_int_t ngx_http_toolgate_steps_fault(
    ngx_http_toolgate_steps_query_t *query, const char *code, const char *param,
    const char *message);
static void ngx_http_toolgate_steps_page(void *data,
    ngx_http_toolgate_page_t *page);
static ngx_int_t ngx_http_toolgate_steps_reply(ngx_http_request_t *r,
    ngx_http_toolgate_page_t *page);


ngx_int_t
ngx_http_toolgate_run_steps(ngx_http_request_t *r, ngx_http_toolgate_key_t *key,
    ngx_str_t *rest)
{
    ngx_http_toolgate_steps_query_t  query;

    /* what is wrong with it is told before the store is asked */

    if (ngx_http_toolgate_steps_query(r, &query) != NGX_OK) {
        return ngx_http_toolgate_reply_error(r, query.fault.code,
                                             query.fault.message,
                                             query.fault.param);
    }

    return ngx_http_toolgate_run_ref(r, key, ngx_http_toolgate_steps_ref);
}


static void
ngx_http_toolgate_steps_ref(ngx_http_request_t *r, ngx_http_toolgate_run_key_t *key,
    const char *code)
{
    ngx_http_toolgate_main_conf_t    *tmcf;
    ngx_http_toolgate_steps_query_t   query;

    tmcf = ngx_http_get_module_main_conf(r, ngx_http_toolgate_module);

    if (code == NULL
        && (ngx_http_toolgate_steps_query(r, &query) != NGX_OK
            || ngx_http_toolgate_run_record_page(r->pool, r->connection->log,
                                                 tmcf->redis, key, &query.after,
                                                 query.limit,
                                                 ngx_http_toolgate_steps_page, r)
               != NGX_OK))
    {
        code = "internal_error";
    }

    if (code) {
        ngx_http_finalize_request(r,
            ngx_http_toolgate_reply_error(r, code, NULL, NULL));
    }
}


static ngx_int_t
ngx_http_toolgate_steps_query(ngx_http_request_t *r,
    ngx_http_toolgate_steps_query_t *query)
{
    ngx_memzero(query, sizeof(ngx_http_toolgate_steps_query_t));

    if (ngx_http_toolgate_query_limit(r, &query->limit, &query->fault) != NGX_OK) {
        return NGX_DECLINED;
    }

    if (ngx_http_toolgate_query_argument(r, "after", &query->after) == NGX_OK
        && !tg_id_valid("step_", (tg_str_t) { query->after.len,
                                              (char *) query->after.data }))
    {
        return ngx_http_toolgate_steps_fault(query, "invalid_value", "after",
                                             "\"after\" is the id of a step.");
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_steps_fault(ngx_http_toolgate_steps_query_t *query,
    const char *code, const char *param, const char *message)
{
    query->fault.code = code;
    query->fault.param = param;
    query->fault.message = message;

    return NGX_DECLINED;
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
