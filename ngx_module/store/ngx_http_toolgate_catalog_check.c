/*
 * Checks that every definition of a catalog file shares: which members an object
 * may have, of which type they are, and how a fault is told. It knows no kind of
 * object.
 */

#include "ngx_http_toolgate_catalog.h"


ngx_int_t
ngx_http_toolgate_catalog_error(ngx_http_toolgate_catalog_t *cat,
    const char *pointer, const char *code, const char *reason)
{
    unsigned  line;
    tg_str_t  place;

    if (cat->code == NULL) {
        cat->code = code;
        ngx_cpystrn((u_char *) cat->pointer, (u_char *) pointer,
                    NGX_HTTP_TOOLGATE_POINTER_MAX);
        ngx_cpystrn((u_char *) cat->reason, (u_char *) reason,
                    NGX_HTTP_TOOLGATE_REASON_MAX);
    }

    if (cat->file.len == 0) {
        return NGX_ERROR;
    }

    /* what is missing has no line: that of the object which lacks it is told */

    place = tg_str_of(pointer);

    do {
        line = tg_json_line_of(cat->text, place);

        while (place.len && place.data[--place.len] != '/') { /* void */ }

    } while (line == 1 && place.len);

    ngx_log_error(NGX_LOG_EMERG, cat->log, 0,
                  "toolgate: %s: %s at \"%s\" in %V:%ui", code, reason, pointer,
                  &cat->file, (ngx_uint_t) line);

    return NGX_ERROR;
}


ngx_int_t
ngx_http_toolgate_catalog_fault(ngx_http_toolgate_catalog_t *cat,
    const char *base, const char *key, const char *code, const char *reason)
{
    char  pointer[NGX_HTTP_TOOLGATE_POINTER_MAX];

    ngx_http_toolgate_catalog_at(pointer, "%s/%s", base, key);

    return ngx_http_toolgate_catalog_error(cat, pointer, code, reason);
}


void
ngx_http_toolgate_catalog_at(char pointer[NGX_HTTP_TOOLGATE_POINTER_MAX],
    const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    (void) vsnprintf(pointer, NGX_HTTP_TOOLGATE_POINTER_MAX, fmt, args);
    va_end(args);
}


ngx_int_t
ngx_http_toolgate_catalog_known(ngx_http_toolgate_catalog_t *cat, json_t *value,
    const char *base, const char *const *keys)
{
    char         pointer[NGX_HTTP_TOOLGATE_POINTER_MAX];
    json_t      *member;
    ngx_uint_t   i;
    const char  *key;

    if (!json_is_object(value)) {
        return ngx_http_toolgate_catalog_error(cat, base, "invalid_type",
                                               "an object is needed");
    }

    json_object_foreach(value, key, member) {
        for (i = 0; keys[i]; i++) {
            if (ngx_strcmp(key, keys[i]) == 0) {
                break;
            }
        }

        if (keys[i] == NULL) {
            ngx_http_toolgate_catalog_at(pointer, "%s/%s", base, key);
            return ngx_http_toolgate_catalog_error(cat, pointer, "unknown_field",
                                                   "this field is not known");
        }
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_toolgate_catalog_string(ngx_http_toolgate_catalog_t *cat, json_t *object,
    const char *base, const char *key, ngx_uint_t required, ngx_str_t *out)
{
    char     pointer[NGX_HTTP_TOOLGATE_POINTER_MAX];
    json_t  *value;

    ngx_str_null(out);
    value = json_object_get(object, key);
    ngx_http_toolgate_catalog_at(pointer, "%s/%s", base, key);

    if (value == NULL) {
        return required
               ? ngx_http_toolgate_catalog_error(cat, pointer, "missing_parameter",
                                                 "this field is needed")
               : NGX_OK;
    }

    if (!json_is_string(value) || (required && json_string_length(value) == 0)) {
        return ngx_http_toolgate_catalog_error(cat, pointer, "invalid_type",
                                               "a string is needed");
    }

    out->len = json_string_length(value);
    out->data = ngx_pnalloc(cat->pool, out->len + 1);
    if (out->data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(out->data, json_string_value(value), out->len);
    out->data[out->len] = '\0';

    return NGX_OK;
}


ngx_int_t
ngx_http_toolgate_catalog_flag(ngx_http_toolgate_catalog_t *cat, json_t *object,
    const char *base, const char *key, ngx_uint_t *out)
{
    json_t  *value;

    value = json_object_get(object, key);

    if (value == NULL) {
        return NGX_OK;
    }

    if (!json_is_boolean(value)) {
        return ngx_http_toolgate_catalog_fault(cat, base, key, "invalid_type",
                                               "this is true or false");
    }

    *out = json_is_true(value);

    return NGX_OK;
}


ngx_int_t
ngx_http_toolgate_catalog_array(ngx_http_toolgate_catalog_t *cat, json_t *object,
    const char *base, const char *key, json_t **out)
{
    *out = json_object_get(object, key);

    if (*out && !json_is_array(*out)) {
        return ngx_http_toolgate_catalog_fault(cat, base, key, "invalid_type",
                                               "a list is needed");
    }

    return NGX_OK;
}
