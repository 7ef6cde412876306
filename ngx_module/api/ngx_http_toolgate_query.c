/*
 * What requests say in their URL: a parameter, the size of a page, the account that
 * is meant. It answers nothing itself.
 */

#include "ngx_http_toolgate_api.h"


static ngx_int_t ngx_http_toolgate_query_fault(ngx_http_toolgate_fault_t *fault,
    const char *code, const char *param, const char *message);


ngx_int_t
ngx_http_toolgate_query_argument(ngx_http_request_t *r, const char *name,
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


ngx_int_t
ngx_http_toolgate_query_limit(ngx_http_request_t *r, ngx_uint_t *limit,
    ngx_http_toolgate_fault_t *fault)
{
    ngx_int_t  n;
    ngx_str_t  text;

    *limit = NGX_HTTP_TOOLGATE_LIST_LIMIT;

    if (ngx_http_toolgate_query_argument(r, "limit", &text) != NGX_OK) {
        return NGX_OK;
    }

    n = ngx_atoi(text.data, text.len);

    if (n < 1 || n > NGX_HTTP_TOOLGATE_LIST_LIMIT_MAX) {
        return ngx_http_toolgate_query_fault(fault, "invalid_value", "limit",
                                             "\"limit\" is a number from 1 to 100.");
    }

    *limit = (ngx_uint_t) n;

    return NGX_OK;
}


ngx_int_t
ngx_http_toolgate_query_account(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_str_t *account,
    ngx_http_toolgate_fault_t *fault)
{
    tg_str_t     named;
    ngx_str_t    header, argument, *text;
    ngx_int_t    given;
    const char  *code;

    header = ngx_http_toolgate_request_header(r, "x-account-id");
    given = ngx_http_toolgate_query_argument(r, "account_id", &argument);

    if (header.len && given == NGX_OK
        && (header.len != argument.len
            || ngx_memcmp(header.data, argument.data, header.len) != 0))
    {
        return ngx_http_toolgate_query_fault(fault, "invalid_value", "account_id",
                                             "The parameter and the header "
                                             "X-Account-Id differ.");
    }

    text = header.len ? &header : &argument;

    code = ngx_http_toolgate_auth_account(key, (tg_str_t) { text->len,
                                                      (char *) text->data },
                                          header.len || given == NGX_OK, &named);
    if (code) {
        return ngx_http_toolgate_query_fault(fault, code, "account_id",
                                             ngx_strcmp(code, "invalid_value") == 0
                                             ? "\"account_id\" is a string of 1 "
                                               "to 64 of [A-Za-z0-9_.:-]."
                                             : NULL);
    }

    account->data = (u_char *) named.data;
    account->len = named.len;

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_query_fault(ngx_http_toolgate_fault_t *fault, const char *code,
    const char *param, const char *message)
{
    fault->code = code;
    fault->param = param;
    fault->message = message;

    return NGX_DECLINED;
}
