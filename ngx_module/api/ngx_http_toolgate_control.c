/*
 * The course of a request to the control plane: body, refresh, act, answer.
 */

#include "ngx_http_toolgate_control.h"


#define NGX_HTTP_TOOLGATE_PARAM_MAX  256


static ngx_int_t ngx_http_toolgate_control_expected(
    ngx_http_toolgate_control_t *c);
static void ngx_http_toolgate_control_body(ngx_http_request_t *r,
    ngx_http_toolgate_body_t *body);
static ngx_uint_t ngx_http_toolgate_control_flat(json_t *value,
    ngx_uint_t levels);
static void ngx_http_toolgate_control_deep(ngx_http_toolgate_control_t *c);
static ngx_int_t ngx_http_toolgate_control_ask(ngx_http_toolgate_control_t *c);
static void ngx_http_toolgate_control_fresh(void *data, ngx_uint_t up);
static void ngx_http_toolgate_control_wrote(void *data, const char *code);
static void ngx_http_toolgate_control_refused(ngx_http_toolgate_control_t *c,
    const char *code);
static void ngx_http_toolgate_control_cleanup(void *data);


ngx_int_t
ngx_http_toolgate_control(ngx_http_request_t *r, ngx_http_toolgate_key_t *key,
    ngx_str_t *rest, ngx_http_toolgate_act_pt act, void *data)
{
    ngx_int_t                     rc;
    ngx_pool_cleanup_t           *cln;
    ngx_http_toolgate_control_t  *c;

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_toolgate_control_t));
    if (cln == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    c = cln->data;
    ngx_memzero(c, sizeof(ngx_http_toolgate_control_t));
    cln->handler = ngx_http_toolgate_control_cleanup;

    c->request = r;
    c->key = key;
    c->project = key->project;
    c->rest = *rest;
    c->act = act;
    c->data = data;

    if (r != r->main) {
        return NGX_HTTP_FORBIDDEN;
    }

    if (ngx_http_toolgate_control_expected(c) != NGX_OK) {
        return ngx_http_toolgate_reply_control(r, "invalid_value",
                                               "If-Match is the number of a "
                                               "version.", "If-Match");
    }

    if (r->method != NGX_HTTP_GET && r->method != NGX_HTTP_DELETE
        && (r->headers_in.content_length_n > 0 || r->headers_in.chunked))
    {
        return ngx_http_toolgate_body_read(r, key, ngx_http_toolgate_control_body,
                                           c);
    }

    rc = ngx_http_toolgate_control_ask(c);

    if (rc == NGX_OK) {
        r->main->count++;
        return NGX_DONE;
    }

    if (rc == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* no store: there is nothing to wait for */

    r->main->count++;
    act(c);

    return NGX_DONE;
}


static ngx_int_t
ngx_http_toolgate_control_expected(ngx_http_toolgate_control_t *c)
{
    ngx_int_t  n;
    ngx_str_t  value;

    value = ngx_http_toolgate_request_header(c->request, "if-match");

    /* nginx would compare it with the ETag of a file */
    c->request->headers_in.if_match = NULL;

    if (value.len == 0 || (value.len == 1 && value.data[0] == '*')) {
        return NGX_OK;
    }

    if (value.len > 2 && value.data[0] == '"' && value.data[value.len - 1] == '"') {
        value.data++;
        value.len -= 2;
    }

    n = ngx_atoi(value.data, value.len);

    if (n <= 0) {
        return NGX_ERROR;
    }

    c->expected = (ngx_uint_t) n;

    return NGX_OK;
}


static void
ngx_http_toolgate_control_body(ngx_http_request_t *r,
    ngx_http_toolgate_body_t *body)
{
    ngx_http_toolgate_control_t *c = body->owner;

    tg_json_error_t  error;

    if (body->len > NGX_HTTP_TOOLGATE_OBJECT_BYTES_MAX) {
        ngx_http_toolgate_control_error(c, "request_too_large", NULL, NULL);
        return;
    }

    c->body = tg_json_load((tg_str_t) { body->len, (char *) body->data }, &error);

    if (c->body == NULL) {
        ngx_http_toolgate_control_error(c, "invalid_json", error.reason, NULL);
        return;
    }

    if (!json_is_object(c->body)) {
        ngx_http_toolgate_control_error(c, "invalid_type",
                                        "The body is a JSON object.", NULL);
        return;
    }

    if (!ngx_http_toolgate_control_flat(c->body, NGX_HTTP_TOOLGATE_OBJECT_DEPTH_MAX))
    {
        ngx_http_toolgate_control_deep(c);
        return;
    }

    switch (ngx_http_toolgate_control_ask(c)) {

    case NGX_OK:
        break;

    case NGX_DECLINED:
        c->act(c);
        break;

    default:
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
    }
}


/* Whether it has no more levels than these. */
static ngx_uint_t
ngx_http_toolgate_control_flat(json_t *value, ngx_uint_t levels)
{
    size_t       i;
    json_t      *member;
    const char  *key;

    if (!json_is_object(value) && !json_is_array(value)) {
        return 1;
    }

    if (levels == 0) {
        return 0;
    }

    json_object_foreach(value, key, member) {
        if (!ngx_http_toolgate_control_flat(member, levels - 1)) {
            return 0;
        }
    }

    json_array_foreach(value, i, member) {
        if (!ngx_http_toolgate_control_flat(member, levels - 1)) {
            return 0;
        }
    }

    return 1;
}


static void
ngx_http_toolgate_control_deep(ngx_http_toolgate_control_t *c)
{
    ngx_http_toolgate_control_error(c, "invalid_json",
                                    "The object is nested too deep to be stored.",
                                    NULL);
}


/* NGX_OK: act follows from the event loop; NGX_DECLINED: there is no store. */
static ngx_int_t
ngx_http_toolgate_control_ask(ngx_http_toolgate_control_t *c)
{
    if (!ngx_http_toolgate_registry_on()) {
        return NGX_DECLINED;
    }

    return ngx_http_toolgate_registry_refresh(c->request->pool,
                                              ngx_http_toolgate_control_fresh, c);
}


static void
ngx_http_toolgate_control_fresh(void *data, ngx_uint_t up)
{
    ngx_http_toolgate_control_t *c = data;

    ngx_connection_t  *connection;

    connection = c->request->connection;

    if (up) {
        c->act(c);

    } else {
        ngx_http_toolgate_control_error(c, "store_unavailable", NULL, NULL);
    }

    ngx_http_run_posted_requests(connection);
}


void
ngx_http_toolgate_control_write(ngx_http_toolgate_control_t *c,
    ngx_http_toolgate_change_t *changes, ngx_uint_t n,
    ngx_http_toolgate_act_pt written)
{
    c->written = written;

    if (!ngx_http_toolgate_registry_on()) {
        ngx_http_toolgate_control_error(c, "store_unavailable",
                                        "Objects are stored in Redis: "
                                        "\"toolgate_redis\" is not set.", NULL);
        return;
    }

    if (ngx_http_toolgate_registry_write(c->request->pool, changes, n,
                                         ngx_http_toolgate_control_wrote, c)
        != NGX_OK)
    {
        ngx_http_toolgate_control_error(c, "internal_error", NULL, NULL);
    }
}


static void
ngx_http_toolgate_control_wrote(void *data, const char *code)
{
    ngx_http_toolgate_control_t *c = data;

    ngx_connection_t  *connection;

    connection = c->request->connection;

    if (code == NULL) {
        c->written(c);

    } else if (ngx_strcmp(code, "version_conflict") == 0 && c->expected == 0
               && ++c->tries < NGX_HTTP_TOOLGATE_CONTROL_TRIES)
    {
        /* somebody was quicker: the same change to what is there now */
        c->act(c);

    } else {
        ngx_http_toolgate_control_refused(c, code);
    }

    ngx_http_run_posted_requests(connection);
}


static void
ngx_http_toolgate_control_refused(ngx_http_toolgate_control_t *c, const char *code)
{
    if (ngx_strcmp(code, "too_many") == 0) {
        ngx_http_toolgate_control_error(c, "too_many_objects", NULL, NULL);

    } else if (ngx_strcmp(code, "name_conflict") == 0) {
        ngx_http_toolgate_control_error(c, c->conflict ? c->conflict : code, NULL,
                                        "name");

    } else {
        ngx_http_toolgate_control_error(c, code, NULL, NULL);
    }
}


void
ngx_http_toolgate_control_reply(ngx_http_toolgate_control_t *c, ngx_uint_t status,
    json_t *value)
{
    tg_buf_t   text;
    ngx_int_t  rc;

    tg_buf_init(&text, NGX_HTTP_TOOLGATE_REPLY_MAX);

    rc = (value && tg_json_dump(value, &text) == TG_OK)
         ? ngx_http_toolgate_reply(c->request, status, tg_buf_get(&text))
         : NGX_HTTP_INTERNAL_SERVER_ERROR;

    tg_buf_free(&text);
    json_decref(value);

    ngx_http_finalize_request(c->request, rc);
}


void
ngx_http_toolgate_control_error(ngx_http_toolgate_control_t *c, const char *code,
    const char *message, const char *param)
{
    ngx_http_finalize_request(c->request,
        ngx_http_toolgate_reply_control(c->request, code, message, param));
}


void
ngx_http_toolgate_control_method(ngx_http_toolgate_control_t *c,
    const char *allow)
{
    ngx_str_t  value;

    value.data = (u_char *) allow;
    value.len = ngx_strlen(allow);

    (void) ngx_http_toolgate_add_header(c->request, "Allow", &value);
    ngx_http_toolgate_control_error(c, "method_not_allowed", NULL, NULL);
}


void
ngx_http_toolgate_control_fault(ngx_http_toolgate_control_t *c,
    ngx_http_toolgate_catalog_t *cat)
{
    char               param[NGX_HTTP_TOOLGATE_PARAM_MAX];
    char              *to, *last;
    const char        *p;
    const tg_error_t  *error;

    if (cat->code == NULL) {
        ngx_http_toolgate_control_error(c, "internal_error", NULL, NULL);
        return;
    }

    /* "/a/0/b" as "a[0].b" */

    to = param;
    last = param + sizeof(param) - 3;

    for (p = cat->pointer; *p && to < last; p++) {
        if (*p != '/') {
            *to++ = *p;
            continue;
        }

        if (p[1] >= '0' && p[1] <= '9') {
            *to++ = '[';

            while (p[1] >= '0' && p[1] <= '9' && to < last) {
                *to++ = *++p;
            }

            *to++ = ']';

        } else if (to > param) {
            *to++ = '.';
        }
    }

    *to = '\0';

    /* what only a file can have wrong, or what names a thing that is not there */

    error = tg_error_find_control(cat->code);

    ngx_http_toolgate_control_error(c,
        error && (error->status == 422 || error->status == 501)
        ? cat->code : "invalid_value", cat->reason, param[0] ? param : NULL);
}


ngx_int_t
ngx_http_toolgate_control_known(ngx_http_toolgate_control_t *c, json_t *value,
    const char *const *members)
{
    json_t      *member;
    ngx_uint_t   i;
    const char  *key;

    json_object_foreach(value, key, member) {
        for (i = 0; members[i]; i++) {
            if (ngx_strcmp(key, members[i]) == 0) {
                break;
            }
        }

        if (members[i] == NULL) {
            ngx_http_toolgate_control_error(c, "unknown_field", NULL, key);
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_toolgate_control_string(ngx_http_toolgate_control_t *c, json_t *value,
    const char *member, ngx_uint_t required, size_t max, tg_str_t *out)
{
    json_t  *string;

    *out = tg_null_str;
    string = json_object_get(value, member);

    if (string == NULL || (json_is_null(string) && !required)) {
        if (required) {
            ngx_http_toolgate_control_error(c, "missing_parameter", NULL, member);
        }

        return required ? NGX_ERROR : NGX_OK;
    }

    if (!json_is_string(string)) {
        ngx_http_toolgate_control_error(c, "invalid_type",
                                        "This field is a string.", member);
        return NGX_ERROR;
    }

    if (json_string_length(string) == 0 || json_string_length(string) > max) {
        ngx_http_toolgate_control_error(c, "invalid_value",
                                        "This field is empty or too long.",
                                        member);
        return NGX_ERROR;
    }

    out->data = json_string_value(string);
    out->len = json_string_length(string);

    return NGX_OK;
}


tg_str_t
ngx_http_toolgate_control_dump(ngx_http_toolgate_control_t *c, json_t *doc)
{
    tg_buf_t   text;
    tg_str_t   out;
    ngx_str_t  whole;

    out = tg_null_str;

    /* what is stored must be readable again */

    if (!ngx_http_toolgate_control_flat(doc, TG_JSON_MAX_DEPTH)) {
        ngx_http_toolgate_control_deep(c);
        return out;
    }

    tg_buf_init(&text, NGX_HTTP_TOOLGATE_OBJECT_BYTES_MAX);

    if (tg_json_dump(doc, &text) == TG_OK) {
        whole.data = (u_char *) text.data;
        whole.len = text.len;

        out.len = text.len;
        out.data = (char *) ngx_pstrdup(c->request->pool, &whole);
    }

    if (out.data == NULL) {
        ngx_http_toolgate_control_error(c, text.error == TG_E_LIMIT
                                           ? "request_too_large"
                                           : "internal_error", NULL, NULL);
    }

    tg_buf_free(&text);

    return out;
}


ngx_str_t
ngx_http_toolgate_control_id(ngx_http_toolgate_control_t *c, const char *prefix)
{
    char       id[TG_ID_MAX_LEN];
    uint8_t    random[TG_ID_RANDOM_LEN];
    ngx_str_t  text, out;

    ngx_str_null(&out);

    if (ngx_http_toolgate_random(random, sizeof(random)) == NGX_OK) {
        tg_id_make(prefix, random, id);

        text.data = (u_char *) id;
        text.len = ngx_strlen(id);

        out.len = text.len;
        out.data = ngx_pstrdup(c->request->pool, &text);
    }

    if (out.data == NULL) {
        ngx_http_toolgate_control_error(c, "internal_error", NULL, NULL);
    }

    return out;
}


static void
ngx_http_toolgate_control_cleanup(void *data)
{
    ngx_http_toolgate_control_t  *c = data;

    json_decref(c->body);
    json_decref(c->reply);
}
