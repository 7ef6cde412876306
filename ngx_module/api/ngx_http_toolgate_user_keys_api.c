/*
 * /v1/end_user_keys: what the tokens of end users are verified with. A secret is
 * never shown again; a public key is.
 */

#include "ngx_http_toolgate_control.h"


static ngx_int_t ngx_http_toolgate_user_keys_define(ngx_http_toolgate_control_t *c,
    json_t *definition, ngx_http_toolgate_object_t *old, json_t *doc);
static ngx_int_t ngx_http_toolgate_user_keys_room(ngx_http_toolgate_control_t *c);
static ngx_int_t ngx_http_toolgate_user_keys_check(ngx_http_toolgate_control_t *c,
    json_t *definition);
static ngx_int_t ngx_http_toolgate_user_keys_seal(ngx_http_toolgate_control_t *c,
    json_t *doc);
static json_t *ngx_http_toolgate_user_keys_view(
    ngx_http_toolgate_object_t *object);
static json_t *ngx_http_toolgate_user_keys_file(ngx_http_toolgate_control_t *c,
    ngx_uint_t i);


static const ngx_http_toolgate_collection_t
    ngx_http_toolgate_user_keys_collection =
{
    NGX_HTTP_TOOLGATE_KIND_USER_KEY, "euk_", NULL,
    ngx_http_toolgate_user_keys_define,
    ngx_http_toolgate_user_keys_view,
    ngx_http_toolgate_user_keys_file,
    NULL, 0
};


ngx_int_t
ngx_http_toolgate_user_keys_api(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_str_t *rest)
{
    return ngx_http_toolgate_control(r, key, rest, ngx_http_toolgate_collection,
                             (void *) &ngx_http_toolgate_user_keys_collection);
}


static ngx_int_t
ngx_http_toolgate_user_keys_define(ngx_http_toolgate_control_t *c,
    json_t *definition, ngx_http_toolgate_object_t *old, json_t *doc)
{
    if (ngx_http_toolgate_user_keys_room(c) != NGX_OK
        || ngx_http_toolgate_user_keys_check(c, definition) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (json_object_update_missing(doc, definition) != 0) {
        ngx_http_toolgate_control_error(c, "internal_error", NULL, NULL);
        return NGX_ERROR;
    }

    return ngx_http_toolgate_user_keys_seal(c, doc);
}


/* Each token may be tried with every key. */
static ngx_int_t
ngx_http_toolgate_user_keys_room(ngx_http_toolgate_control_t *c)
{
    ngx_uint_t     count;
    tg_jwt_key_t  *keys[NGX_HTTP_TOOLGATE_USER_KEYS_MAX];

    count = ngx_http_toolgate_user_keys(c->project, keys);

    if (count >= TG_JWT_KEYS_MAX) {
        ngx_http_toolgate_control_error(c, "too_many_objects",
                                        "A project has at most 32 end-user keys.",
                                        NULL);
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_user_keys_check(ngx_http_toolgate_control_t *c,
    json_t *definition)
{
    tg_str_t                      name;
    ngx_int_t                     rc;
    ngx_uint_t                    i;
    ngx_pool_t                   *pool;
    tg_jwt_key_t                 *key, **known;
    ngx_http_toolgate_catalog_t   cat;

    /* outlives the request when that is refused below */
    pool = ngx_create_pool(NGX_DEFAULT_POOL_SIZE, ngx_cycle->log);
    if (pool == NULL) {
        ngx_http_toolgate_control_error(c, "internal_error", NULL, NULL);
        return NGX_ERROR;
    }

    rc = NGX_OK;
    ngx_http_toolgate_registry_builder(&cat, pool, c->project);
    key = ngx_http_toolgate_catalog_user_key(&cat, definition, "");

    if (key == NULL) {
        ngx_http_toolgate_control_fault(c, &cat);
        ngx_destroy_pool(pool);
        return NGX_ERROR;
    }

    name = tg_jwt_key_name(key);
    known = c->project->end_user_keys.elts;

    for (i = 0; rc == NGX_OK && i < c->project->end_user_keys.nelts; i++) {
        if (tg_str_eq(tg_jwt_key_name(known[i]), name)) {
            ngx_http_toolgate_control_error(c, "name_conflict", NULL, "name");
            rc = NGX_ERROR;
        }
    }

    ngx_destroy_pool(pool);

    return rc;
}


static ngx_int_t
ngx_http_toolgate_user_keys_seal(ngx_http_toolgate_control_t *c, json_t *doc)
{
    tg_buf_t   sealed;
    tg_str_t   secret;
    ngx_int_t  rc;

    secret = tg_json_get_string(doc, "secret");

    if (secret.len == 0) {
        return NGX_OK;
    }

    tg_buf_init(&sealed, NGX_HTTP_TOOLGATE_OBJECT_BYTES_MAX);

    rc = ngx_http_toolgate_seal(c->project, "end_user_key", &c->id, secret,
                                &sealed);

    if (rc == NGX_OK) {
        (void) json_object_set_new(doc, "secret",
                                   json_stringn(sealed.data, sealed.len));

    } else {
        ngx_http_toolgate_control_error(c, "store_unavailable",
                                        "Secrets are sealed with the key of "
                                        "\"toolgate_master_key\", which is not "
                                        "set.", NULL);
    }

    tg_buf_free(&sealed);

    return rc;
}


static json_t *
ngx_http_toolgate_user_keys_view(ngx_http_toolgate_object_t *object)
{
    json_t  *view;

    view = json_copy(object->doc);

    (void) json_object_del(view, "secret");
    (void) json_object_set_new(view, "object", json_string("end_user_key"));
    (void) json_object_set_new(view, "version",
                               json_integer((json_int_t) object->version));

    return view;
}


/* Files' keys have no id of the store's: their name is one. */
static json_t *
ngx_http_toolgate_user_keys_file(ngx_http_toolgate_control_t *c, ngx_uint_t i)
{
    tg_str_t        name;
    tg_jwt_key_t  **known;

    if (i >= c->project->end_user_keys.nelts) {
        return NULL;
    }

    known = c->project->end_user_keys.elts;
    name = tg_jwt_key_name(known[i]);

    return json_pack("{s:s%,s:s,s:s%,s:b}", "id", name.data, name.len, "object",
                     "end_user_key", "name", name.data, name.len, "read_only", 1);
}
