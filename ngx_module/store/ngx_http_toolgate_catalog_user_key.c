/*
 * Keys that end user tokens are verified with, built from their JSON. The rules are
 * core/'s; here a secret may come from a file of its own, and the key gets an owner.
 */

#include "ngx_http_toolgate_catalog.h"


static json_t *ngx_http_toolgate_user_key_filled(ngx_http_toolgate_catalog_t *cat,
    json_t *value, const char *base);
static void ngx_http_toolgate_user_key_cleanup(void *data);


tg_jwt_key_t *
ngx_http_toolgate_catalog_user_key(ngx_http_toolgate_catalog_t *cat, json_t *value,
    const char *base)
{
    char                 pointer[NGX_HTTP_TOOLGATE_POINTER_MAX];
    json_t              *description;
    ngx_uint_t           from_file;
    tg_jwt_key_t        *key;
    ngx_pool_cleanup_t  *cln;
    tg_jwt_key_error_t   error;

    cln = ngx_pool_cleanup_add(cat->pool, 0);
    if (cln == NULL) {
        return NULL;
    }

    /* requests to the API name no files of this machine */

    from_file = cat->file.len && json_object_get(value, "secret_file") != NULL;

    description = from_file
                  ? ngx_http_toolgate_user_key_filled(cat, value, base)
                  : json_incref(value);
    if (description == NULL) {
        return NULL;
    }

    key = tg_jwt_key_parse(description, &error);

    json_decref(description);

    if (key) {
        cln->handler = ngx_http_toolgate_user_key_cleanup;
        cln->data = key;

        return key;
    }

    if (ngx_strcmp(error.code, "internal_error") != 0) {
        ngx_http_toolgate_catalog_at(pointer, "%s%s%s", base, error.pointer,
                                     (from_file
                                      && ngx_strcmp(error.pointer, "/secret") == 0)
                                     ? "_file" : "");
        (void) ngx_http_toolgate_catalog_error(cat, pointer, error.code,
                                               error.reason);
    }

    return NULL;
}


/* The same description with the secret where its file was named. */
static json_t *
ngx_http_toolgate_user_key_filled(ngx_http_toolgate_catalog_t *cat, json_t *value,
    const char *base)
{
    json_t     *copy, *secret;
    ngx_str_t   file, text;

    if (json_object_get(value, "secret")) {
        (void) ngx_http_toolgate_catalog_fault(cat, base, "secret",
                                               "invalid_value",
                                               "a key has a secret or a "
                                               "secret_file, not both");
        return NULL;
    }

    if (ngx_http_toolgate_catalog_string(cat, value, base, "secret_file", 1, &file)
        != NGX_OK
        || ngx_http_toolgate_catalog_value_file(cat, &file, base, "secret_file",
                                                &text)
           != NGX_OK)
    {
        return NULL;
    }

    secret = json_stringn((char *) text.data, text.len);

    if (secret == NULL) {
        (void) ngx_http_toolgate_catalog_fault(cat, base, "secret_file",
                                               "invalid_value",
                                               "the secret is not text in UTF-8");
        return NULL;
    }

    copy = json_copy(value);

    if (copy == NULL || json_object_set_new(copy, "secret", secret) != 0
        || json_object_del(copy, "secret_file") != 0)
    {
        json_decref(copy);
        return NULL;
    }

    return copy;
}


static void
ngx_http_toolgate_user_key_cleanup(void *data)
{
    tg_jwt_key_free(data);
}
