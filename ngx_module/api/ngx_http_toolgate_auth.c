/*
 * Who calls: the bearer key, known by its SHA-256, and what it may do.
 */

#include "ngx_http_toolgate_api.h"
#include "ngx_http_toolgate_registry.h"


#define NGX_HTTP_TOOLGATE_KEY_LEN_MAX  512


ngx_http_toolgate_key_t *
ngx_http_toolgate_auth(ngx_http_request_t *r, ngx_uint_t scope, const char **code)
{
    u_char                          sha256[NGX_HTTP_TOOLGATE_KEY_SHA256_LEN];
    ngx_str_t                      *header, value;
    ngx_http_toolgate_key_t        *key;
    ngx_http_toolgate_main_conf_t  *tmcf;

    *code = "missing_api_key";

    if (r->headers_in.authorization == NULL) {
        return NULL;
    }

    header = &r->headers_in.authorization->value;

    if (header->len < 7
        || ngx_strncasecmp(header->data, (u_char *) "Bearer ", 7) != 0)
    {
        return NULL;
    }

    value.data = header->data + 7;
    value.len = header->len - 7;

    while (value.len && value.data[0] == ' ') {
        value.data++;
        value.len--;
    }

    if (value.len == 0) {
        return NULL;
    }

    *code = "invalid_api_key";

    if (value.len > NGX_HTTP_TOOLGATE_KEY_LEN_MAX
        || ngx_http_toolgate_sha256(&value, 1, sha256) != NGX_OK)
    {
        return NULL;
    }

    tmcf = ngx_http_get_module_main_conf(r, ngx_http_toolgate_module);
    key = ngx_http_toolgate_key_find(&tmcf->objects, sha256);

    if (key == NULL) {
        key = ngx_http_toolgate_registry_key(r->pool, sha256);
    }

    if (key == NULL) {
        return NULL;
    }

    if ((key->scopes & scope) != scope) {
        *code = "insufficient_scope";
        return NULL;
    }

    return key;
}


const char *
ngx_http_toolgate_auth_account(ngx_http_toolgate_key_t *key, tg_str_t name,
    ngx_uint_t named, tg_str_t *account)
{
    tg_str_t  bound;

    bound.data = (char *) key->account.data;
    bound.len = key->account.len;

    if (named && !tg_id_label_valid(name)) {
        return "invalid_value";
    }

    if (named && bound.len && !tg_str_eq(name, bound)) {
        return "account_mismatch";
    }

    *account = bound.len ? bound : name;

    return NULL;
}
