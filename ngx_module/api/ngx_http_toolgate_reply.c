/*
 * Whole answers: JSON bodies and errors. Streams are written in run/.
 */

#include "ngx_http_toolgate_api.h"


static ngx_int_t ngx_http_toolgate_reply_entry(ngx_http_request_t *r,
    const tg_error_t *error, const char *message, const char *param);


ngx_int_t
ngx_http_toolgate_reply(ngx_http_request_t *r, ngx_uint_t status, tg_str_t json)
{
    ngx_int_t     rc;
    ngx_buf_t    *b;
    ngx_chain_t   out;

    /* a body that nobody read must not be taken for the next request */

    if (r->request_body == NULL && !r->discard_body) {
        rc = ngx_http_discard_request_body(r);

        if (rc != NGX_OK) {
            r->keepalive = 0;
        }
    }

    ngx_str_set(&r->headers_out.content_type, "application/json");
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->headers_out.content_type_lowcase = NULL;
    r->headers_out.status = status;
    r->headers_out.content_length_n = (off_t) json.len;

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    b = ngx_create_temp_buf(r->pool, json.len);
    if (b == NULL) {
        return NGX_ERROR;
    }

    b->last = ngx_cpymem(b->last, json.data, json.len);
    b->last_buf = (r == r->main) ? 1 : 0;
    b->last_in_chain = 1;

    out.buf = b;
    out.next = NULL;

    return ngx_http_output_filter(r, &out);
}


ngx_int_t
ngx_http_toolgate_reply_error(ngx_http_request_t *r, const char *code,
    const char *message, const char *param)
{
    return ngx_http_toolgate_reply_entry(r, tg_error_find(code), message, param);
}


ngx_int_t
ngx_http_toolgate_reply_control(ngx_http_request_t *r, const char *code,
    const char *message, const char *param)
{
    return ngx_http_toolgate_reply_entry(r, tg_error_find_control(code), message,
                                         param);
}


static ngx_int_t
ngx_http_toolgate_reply_entry(ngx_http_request_t *r, const tg_error_t *error,
    const char *message, const char *param)
{
    tg_buf_t    text;
    ngx_int_t   rc;
    ngx_str_t   realm;
    ngx_uint_t  level;

    if (error == NULL) {
        error = tg_error_find("internal_error");
    }

    tg_buf_init(&text, 64 * 1024);

    if (tg_error_body(error, tg_str_of(message), tg_str_of(param), &text)
        != TG_OK)
    {
        tg_buf_free(&text);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (error->status == NGX_HTTP_UNAUTHORIZED) {
        ngx_str_set(&realm, "Bearer realm=\"toolgate\"");
        (void) ngx_http_toolgate_add_header(r, "WWW-Authenticate", &realm);
    }

    level = (error->status >= 500) ? NGX_LOG_WARN : NGX_LOG_INFO;

    ngx_log_error(level, r->connection->log, 0,
                  "toolgate: refused with %ui \"%s\"",
                  (ngx_uint_t) error->status, error->code);

    rc = ngx_http_toolgate_reply(r, error->status, tg_buf_get(&text));

    tg_buf_free(&text);

    return rc;
}
