/*
 * /v1/secrets/{NAME}: write-only values for HTTP tools. What is put here leaves
 * only in the calls of tools, to the hosts that it is meant for.
 */

#include "ngx_http_toolgate_control.h"

#include "tg_secretbox.h"


#define NGX_HTTP_TOOLGATE_SECRET_VALUE_MAX  4096


static void ngx_http_toolgate_secrets_act(ngx_http_toolgate_control_t *c);
static void ngx_http_toolgate_secrets_put(ngx_http_toolgate_control_t *c,
    ngx_str_t *name);
static ngx_int_t ngx_http_toolgate_secrets_value(ngx_http_toolgate_control_t *c,
    tg_str_t *value);
static json_t *ngx_http_toolgate_secrets_doc(ngx_http_toolgate_control_t *c,
    tg_str_t value, ngx_str_t *name, ngx_http_toolgate_object_t *old);
static json_t *ngx_http_toolgate_secrets_hosts(ngx_http_toolgate_control_t *c);
static void ngx_http_toolgate_secrets_written(ngx_http_toolgate_control_t *c);
static json_t *ngx_http_toolgate_secrets_view(ngx_http_toolgate_object_t *object);
static json_t *ngx_http_toolgate_secrets_file(ngx_http_toolgate_control_t *c,
    ngx_uint_t i);


static const ngx_http_toolgate_collection_t  ngx_http_toolgate_secrets_collection = {
    NGX_HTTP_TOOLGATE_KIND_SECRET, "", NULL,
    NULL,
    ngx_http_toolgate_secrets_view,
    ngx_http_toolgate_secrets_file,
    NULL, 0
};


ngx_int_t
ngx_http_toolgate_secrets_api(ngx_http_request_t *r, ngx_http_toolgate_key_t *key,
    ngx_str_t *rest)
{
    return ngx_http_toolgate_control(r, key, rest, ngx_http_toolgate_secrets_act,
                             (void *) &ngx_http_toolgate_secrets_collection);
}


static void
ngx_http_toolgate_secrets_act(ngx_http_toolgate_control_t *c)
{
    ngx_str_t  name;

    if (c->rest.len <= 1) {

        if (c->request->method == NGX_HTTP_GET) {
            ngx_http_toolgate_collection(c);

        } else {
            ngx_http_toolgate_control_method(c, "GET");
        }

        return;
    }

    if (c->request->method != NGX_HTTP_PUT) {

        if (c->request->method == NGX_HTTP_POST
            || c->request->method == NGX_HTTP_PATCH)
        {
            ngx_http_toolgate_control_method(c, "GET, PUT, DELETE");

        } else {
            ngx_http_toolgate_collection(c);
        }

        return;
    }

    name.data = c->rest.data + 1;
    name.len = c->rest.len - 1;

    if (!ngx_http_toolgate_secret_name_valid(&name)) {
        ngx_http_toolgate_control_error(c, "invalid_value",
                                        "A secret's name matches "
                                        "^[A-Z][A-Z0-9_]{0,63}$.", "name");
        return;
    }

    ngx_http_toolgate_secrets_put(c, &name);
}


static void
ngx_http_toolgate_secrets_put(ngx_http_toolgate_control_t *c, ngx_str_t *name)
{
    json_t                      *doc;
    tg_str_t                     value;
    ngx_uint_t                   i;
    ngx_http_toolgate_secret_t  *known;
    ngx_http_toolgate_object_t  *old;
    ngx_http_toolgate_change_t  *change;

    known = c->project->secrets.elts;

    for (i = 0; i < c->project->secrets.nelts; i++) {
        if (known[i].name.len == name->len
            && ngx_memcmp(known[i].name.data, name->data, name->len) == 0)
        {
            ngx_http_toolgate_control_error(c, "read_only", NULL, NULL);
            return;
        }
    }

    old = ngx_http_toolgate_registry_get(c->project, NGX_HTTP_TOOLGATE_KIND_SECRET,
                                         name);

    if (c->expected && (old == NULL || old->version != c->expected)) {
        ngx_http_toolgate_control_error(c, "version_conflict", NULL, NULL);
        return;
    }

    if (ngx_http_toolgate_secrets_value(c, &value) != NGX_OK) {
        return;
    }

    doc = ngx_http_toolgate_secrets_doc(c, value, name, old);
    if (doc == NULL) {
        return;
    }

    change = ngx_pcalloc(c->request->pool, sizeof(ngx_http_toolgate_change_t));

    if (change == NULL) {
        ngx_http_toolgate_control_error(c, "internal_error", NULL, NULL);

    } else {
        c->id = *name;
        change->verb = old ? "update" : "create";
        change->kind = NGX_HTTP_TOOLGATE_KIND_SECRET;
        change->project = c->project;
        change->id = *name;
        change->expected = old ? old->version : 0;
        change->doc = ngx_http_toolgate_control_dump(c, doc);

        if (change->doc.data) {
            ngx_http_toolgate_control_write(c, change, 1,
                                            ngx_http_toolgate_secrets_written);
        }
    }

    json_decref(doc);
}


/* NGX_ERROR: it has answered. */
static ngx_int_t
ngx_http_toolgate_secrets_value(ngx_http_toolgate_control_t *c, tg_str_t *value)
{
    size_t  i;

    static const char *const  members[] = { "value", "allowed_hosts", NULL };

    if (c->body == NULL) {
        ngx_http_toolgate_control_error(c, "invalid_json", "A body is needed.",
                                        NULL);
        return NGX_ERROR;
    }

    if (ngx_http_toolgate_control_known(c, c->body, members) != NGX_OK
        || ngx_http_toolgate_control_string(c, c->body, "value", 1,
                                            NGX_HTTP_TOOLGATE_SECRET_VALUE_MAX,
                                            value)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    for (i = 0; i < value->len; i++) {
        if ((u_char) value->data[i] < 0x20 || value->data[i] == 0x7f) {
            ngx_http_toolgate_control_error(c, "invalid_value",
                                            "A secret has no control characters.",
                                            "value");
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* NULL: it has answered. */
static json_t *
ngx_http_toolgate_secrets_doc(ngx_http_toolgate_control_t *c, tg_str_t value,
    ngx_str_t *name, ngx_http_toolgate_object_t *old)
{
    json_t      *doc, *hosts, *created;
    tg_buf_t     sealed;
    json_int_t   now;

    hosts = ngx_http_toolgate_secrets_hosts(c);
    if (hosts == NULL) {
        return NULL;
    }

    now = (json_int_t) ngx_time();
    doc = NULL;
    created = old ? json_incref(json_object_get(old->doc, "created_at"))
                  : json_integer(now);

    tg_buf_init(&sealed, NGX_HTTP_TOOLGATE_OBJECT_BYTES_MAX);

    if (c->project->can_sign
        && ngx_http_toolgate_seal(c->project, "secret", name, value, &sealed)
           == NGX_OK)
    {
        doc = json_pack("{s:s%,s:s%,s:O,s:O,s:I}", "name", name->data, name->len,
                        "value", sealed.data, sealed.len, "allowed_hosts", hosts,
                        "created_at", created, "updated_at", now);
    }

    tg_buf_free(&sealed);
    json_decref(hosts);
    json_decref(created);

    if (doc == NULL) {
        ngx_http_toolgate_control_error(c, "store_unavailable",
                                        "Secrets are sealed with the key of "
                                        "\"toolgate_master_key\", which is not "
                                        "set or does not open what is stored.",
                                        NULL);
    }

    return doc;
}


static json_t *
ngx_http_toolgate_secrets_hosts(ngx_http_toolgate_control_t *c)
{
    size_t                       i;
    json_t                      *hosts;
    ngx_http_toolgate_secret_t   secret;
    ngx_http_toolgate_catalog_t  cat;

    hosts = json_object_get(c->body, "allowed_hosts");

    if (!json_is_array(hosts)) {
        ngx_http_toolgate_control_error(c, hosts ? "invalid_type"
                                                 : "missing_parameter",
                                        "A secret needs a list of the hosts that "
                                        "may get it.", "allowed_hosts");
        return NULL;
    }

    ngx_memzero(&secret, sizeof(secret));
    ngx_http_toolgate_registry_builder(&cat, c->request->pool, c->project);

    if (ngx_http_toolgate_catalog_hosts(&cat, hosts, "", &secret) != NGX_OK) {
        ngx_http_toolgate_control_fault(c, &cat);
        return NULL;
    }

    hosts = json_array();

    for (i = 0; i < secret.allowed_host_count; i++) {
        (void) json_array_append_new(hosts,
                   json_stringn(secret.allowed_hosts[i].data,
                                secret.allowed_hosts[i].len));
    }

    return hosts;
}


static void
ngx_http_toolgate_secrets_written(ngx_http_toolgate_control_t *c)
{
    ngx_http_toolgate_object_t  *object;

    object = ngx_http_toolgate_registry_get(c->project,
                                            NGX_HTTP_TOOLGATE_KIND_SECRET, &c->id);
    if (object == NULL) {
        ngx_http_toolgate_control_error(c, "not_found", NULL, NULL);
        return;
    }

    ngx_http_toolgate_control_reply(c, NGX_HTTP_OK,
                                    ngx_http_toolgate_secrets_view(object));
}


static json_t *
ngx_http_toolgate_secrets_view(ngx_http_toolgate_object_t *object)
{
    json_t  *name;

    name = json_object_get(object->doc, "name");

    return json_pack("{s:O,s:s,s:O,s:O,s:I,s:O,s:O}",
                     "id", name, "object", "secret", "name", name,
                     "allowed_hosts", json_object_get(object->doc, "allowed_hosts"),
                     "version", (json_int_t) object->version,
                     "created_at", json_object_get(object->doc, "created_at"),
                     "updated_at", json_object_get(object->doc, "updated_at"));
}


static json_t *
ngx_http_toolgate_secrets_file(ngx_http_toolgate_control_t *c, ngx_uint_t i)
{
    size_t                       n;
    json_t                      *hosts;
    ngx_http_toolgate_secret_t  *known;

    if (i >= c->project->secrets.nelts) {
        return NULL;
    }

    known = c->project->secrets.elts;
    known += i;
    hosts = json_array();

    for (n = 0; n < known->allowed_host_count; n++) {
        (void) json_array_append_new(hosts,
                   json_stringn(known->allowed_hosts[n].data,
                                known->allowed_hosts[n].len));
    }

    return json_pack("{s:s%,s:s,s:s%,s:o,s:b}",
                     "id", known->name.data, known->name.len, "object", "secret",
                     "name", known->name.data, known->name.len, "allowed_hosts",
                     hosts, "read_only", 1);
}
