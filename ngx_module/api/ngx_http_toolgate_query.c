/*
 * What requests say about what they are for: the account, in the URL, in a header or
 * in the body; the page of a list. Which object is asked for, its endpoint knows.
 */

#include "ngx_http_toolgate_api.h"


#define NGX_HTTP_TOOLGATE_ACCOUNT_TEXT                                        \
    "\"account_id\" is a string of 1 to 64 of [A-Za-z0-9_.:-]."


static ngx_int_t ngx_http_toolgate_account(ngx_http_toolgate_key_t *key,
    ngx_str_t *header, ngx_str_t *named, ngx_uint_t given, const char *differ,
    tg_str_t *account, ngx_http_toolgate_fault_t *fault);


ngx_int_t
ngx_http_toolgate_fault(ngx_http_toolgate_fault_t *fault, const char *code,
    const char *param, const char *message)
{
    fault->code = code;
    fault->param = param;
    fault->message = message;

    return NGX_DECLINED;
}


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
ngx_http_toolgate_query_account(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_str_t *account,
    ngx_http_toolgate_fault_t *fault)
{
    tg_str_t    whose;
    ngx_str_t   header, argument;
    ngx_uint_t  given;

    header = ngx_http_toolgate_request_header(r, "x-account-id");
    given = (ngx_http_toolgate_query_argument(r, "account_id", &argument) == NGX_OK);

    if (ngx_http_toolgate_account(key, &header, &argument, given,
                                  "The parameter and the header X-Account-Id "
                                  "differ.", &whose, fault)
        != NGX_OK)
    {
        return NGX_DECLINED;
    }

    account->data = (u_char *) whose.data;
    account->len = whose.len;

    return NGX_OK;
}


ngx_int_t
ngx_http_toolgate_body_account(ngx_http_request_t *r,
    ngx_http_toolgate_body_t *body, ngx_str_t *account,
    ngx_http_toolgate_fault_t *fault)
{
    char                     buf[65];
    tg_str_t                 whose;
    ptrdiff_t                n;
    ngx_str_t                header, named;
    const tg_scan_member_t  *member;

    header = ngx_http_toolgate_request_header(r, "x-account-id");
    member = tg_scan_find(body->scan, (char *) body->data, "account_id");

    if (member && member->value.type == TG_SCAN_NULL) {
        member = NULL;
    }

    n = member ? tg_scan_string((char *) body->data, member->value, buf, sizeof(buf))
               : 0;

    if (n < 0) {
        return ngx_http_toolgate_fault(fault, "invalid_value", "account_id",
                                       NGX_HTTP_TOOLGATE_ACCOUNT_TEXT);
    }

    named.data = (u_char *) buf;
    named.len = (size_t) n;

    if (ngx_http_toolgate_account(body->key, &header, &named, member != NULL,
                                  "The field and the header X-Account-Id differ.",
                                  &whose, fault)
        != NGX_OK)
    {
        return NGX_DECLINED;
    }

    account->len = whose.len;
    account->data = ngx_pnalloc(r->pool, whose.len + 1);

    if (account->data == NULL) {
        return NGX_ERROR;
    }

    if (whose.len) {
        ngx_memcpy(account->data, whose.data, whose.len);
    }

    account->data[whose.len] = '\0';

    return NGX_OK;
}


/* given: it is named beside the header. */
static ngx_int_t
ngx_http_toolgate_account(ngx_http_toolgate_key_t *key, ngx_str_t *header,
    ngx_str_t *named, ngx_uint_t given, const char *differ, tg_str_t *account,
    ngx_http_toolgate_fault_t *fault)
{
    tg_str_t     name;
    const char  *code;

    if (header->len && given
        && (header->len != named->len
            || ngx_memcmp(header->data, named->data, header->len) != 0))
    {
        return ngx_http_toolgate_fault(fault, "invalid_value", "account_id", differ);
    }

    name.data = (char *) (header->len ? header->data : named->data);
    name.len = header->len ? header->len : named->len;

    code = ngx_http_toolgate_auth_account(key, name, header->len || given, account);

    if (code) {
        return ngx_http_toolgate_fault(fault, code, "account_id",
                                       ngx_strcmp(code, "invalid_value") == 0
                                       ? NGX_HTTP_TOOLGATE_ACCOUNT_TEXT : NULL);
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_toolgate_query_limit(ngx_http_request_t *r, ngx_uint_t *limit,
    ngx_http_toolgate_fault_t *fault)
{
    ngx_int_t  n;
    ngx_str_t  value;

    *limit = NGX_HTTP_TOOLGATE_LIST_LIMIT;

    if (ngx_http_toolgate_query_argument(r, "limit", &value) != NGX_OK) {
        return NGX_OK;
    }

    n = ngx_atoi(value.data, value.len);

    if (n < 1 || n > NGX_HTTP_TOOLGATE_LIST_LIMIT_MAX) {
        return ngx_http_toolgate_fault(fault, "invalid_value", "limit",
                                       "\"limit\" is a number from 1 to 100.");
    }

    *limit = n;

    return NGX_OK;
}
