/*
 * List, create, show, change and delete, the same for every family of objects.
 * What makes a definition good, and what of an object may be seen, the family says.
 */

#include "ngx_http_toolgate_control.h"


static const ngx_http_toolgate_collection_t *ngx_http_toolgate_collection_of(
    ngx_http_toolgate_control_t *c);
static void ngx_http_toolgate_collection_list(ngx_http_toolgate_control_t *c);
static void ngx_http_toolgate_collection_create(ngx_http_toolgate_control_t *c);
static void ngx_http_toolgate_collection_one(ngx_http_toolgate_control_t *c);
static void ngx_http_toolgate_collection_patch(ngx_http_toolgate_control_t *c,
    ngx_http_toolgate_object_t *object);
static void ngx_http_toolgate_collection_delete(ngx_http_toolgate_control_t *c,
    ngx_http_toolgate_object_t *object);
static void ngx_http_toolgate_collection_save(ngx_http_toolgate_control_t *c,
    json_t *doc, ngx_http_toolgate_object_t *old);
static void ngx_http_toolgate_collection_saved(ngx_http_toolgate_control_t *c);
static void ngx_http_toolgate_collection_deleted(ngx_http_toolgate_control_t *c);
static json_t *ngx_http_toolgate_collection_file(ngx_http_toolgate_control_t *c,
    ngx_str_t *id);
static json_t *ngx_http_toolgate_merge(json_t *target, json_t *patch);
static ngx_int_t ngx_http_toolgate_query(ngx_http_toolgate_control_t *c,
    const char *name, ngx_str_t *value);
static void ngx_http_toolgate_unescape(ngx_str_t *value);
static int ngx_libc_cdecl ngx_http_toolgate_object_cmp(const void *one,
    const void *two);


static const ngx_http_toolgate_collection_t *
ngx_http_toolgate_collection_of(ngx_http_toolgate_control_t *c)
{
    return c->data;
}


void
ngx_http_toolgate_collection(ngx_http_toolgate_control_t *c)
{
    if (c->rest.len > 1) {
        ngx_http_toolgate_collection_one(c);
        return;
    }

    switch (c->request->method) {

    case NGX_HTTP_GET:
        ngx_http_toolgate_collection_list(c);
        return;

    case NGX_HTTP_POST:
        ngx_http_toolgate_collection_create(c);
        return;

    default:
        ngx_http_toolgate_control_method(c, "GET, POST");
    }
}


static void
ngx_http_toolgate_collection_list(ngx_http_toolgate_control_t *c)
{
    json_t                                *values, *value;
    ngx_uint_t                             i;
    ngx_queue_t                           *list, *q;
    ngx_array_t                           *objects;
    ngx_http_toolgate_object_t           **object;
    const ngx_http_toolgate_collection_t  *collection;

    collection = ngx_http_toolgate_collection_of(c);
    values = json_array();
    objects = ngx_array_create(c->request->pool, 16, sizeof(void *));

    for (i = 0; values && collection->file; i++) {
        value = collection->file(c, i);

        if (value == NULL) {
            break;
        }

        (void) json_array_append_new(values, value);
    }

    list = ngx_http_toolgate_registry_list(c->project, collection->kind);

    for (q = list ? ngx_queue_head(list) : NULL; objects && q && q != list;
         q = ngx_queue_next(q))
    {
        object = ngx_array_push(objects);

        if (object == NULL) {
            objects = NULL;
            break;
        }

        *object = ngx_queue_data(q, ngx_http_toolgate_object_t, queue);
    }

    if (values == NULL || objects == NULL) {
        json_decref(values);
        ngx_http_toolgate_control_error(c, "internal_error", NULL, NULL);
        return;
    }

    ngx_qsort(objects->elts, objects->nelts, sizeof(void *),
              ngx_http_toolgate_object_cmp);

    object = objects->elts;

    for (i = 0; i < objects->nelts; i++) {
        (void) json_array_append_new(values, collection->view(object[i]));
    }

    ngx_http_toolgate_control_page(c, values);
}


static int ngx_libc_cdecl
ngx_http_toolgate_object_cmp(const void *one, const void *two)
{
    const ngx_http_toolgate_object_t *const  *first = one, *const *second = two;

    size_t      n;
    json_int_t  a, b;

    a = json_integer_value(json_object_get((*first)->doc, "created_at"));
    b = json_integer_value(json_object_get((*second)->doc, "created_at"));

    if (a != b) {
        return a < b ? -1 : 1;
    }

    n = ngx_min((*first)->id.len, (*second)->id.len);

    return (int) ngx_memcmp((*first)->id.data, (*second)->id.data, n);
}


void
ngx_http_toolgate_control_page(ngx_http_toolgate_control_t *c, json_t *values)
{
    size_t      i, first, bytes;
    json_t     *page;
    tg_str_t    id;
    ngx_int_t   limit;
    ngx_str_t   value;

    limit = NGX_HTTP_TOOLGATE_LIST_LIMIT;

    if (ngx_http_toolgate_query(c, "limit", &value) == NGX_OK) {
        limit = ngx_atoi(value.data, value.len);

        if (limit < 1 || limit > NGX_HTTP_TOOLGATE_LIST_LIMIT_MAX) {
            json_decref(values);
            ngx_http_toolgate_control_error(c, "invalid_value",
                                            "\"limit\" is 1 to 100.", "limit");
            return;
        }
    }

    first = 0;

    if (ngx_http_toolgate_query(c, "after", &value) == NGX_OK) {
        ngx_http_toolgate_unescape(&value);

        for ( /* void */ ; first < json_array_size(values); first++) {
            id = tg_json_get_string(json_array_get(values, first), "id");

            if (id.len == value.len && ngx_memcmp(id.data, value.data, id.len) == 0)
            {
                break;
            }
        }

        if (first == json_array_size(values)) {
            json_decref(values);
            ngx_http_toolgate_control_error(c, "invalid_value",
                                            "\"after\" is the id of an object of "
                                            "this list.", "after");
            return;
        }

        first++;
    }

    page = json_array();
    bytes = 0;

    for (i = first; i < json_array_size(values) && i < first + (size_t) limit; i++) {
        bytes += json_dumpb(json_array_get(values, i), NULL, 0, JSON_COMPACT);

        if (bytes > NGX_HTTP_TOOLGATE_LIST_BYTES_MAX && i > first) {
            break;
        }

        (void) json_array_append(page, json_array_get(values, i));
    }

    ngx_http_toolgate_control_reply(c, NGX_HTTP_OK,
        json_pack("{s:s,s:o,s:b}", "object", "list", "data", page, "has_more",
                  i < json_array_size(values)));
    json_decref(values);
}


static ngx_int_t
ngx_http_toolgate_query(ngx_http_toolgate_control_t *c, const char *name,
    ngx_str_t *value)
{
    return ngx_http_arg(c->request, (u_char *) name, ngx_strlen(name), value);
}


/* In place. */
static void
ngx_http_toolgate_unescape(ngx_str_t *value)
{
    u_char  *to, *from;

    to = from = value->data;
    ngx_unescape_uri(&to, &from, value->len, 0);
    value->len = to - value->data;
}


static void
ngx_http_toolgate_collection_create(ngx_http_toolgate_control_t *c)
{
    json_t                                *doc, *definition;
    const ngx_http_toolgate_collection_t  *collection;

    collection = ngx_http_toolgate_collection_of(c);

    if (c->body == NULL) {
        ngx_http_toolgate_control_error(c, "invalid_json", "A body is needed.",
                                        NULL);
        return;
    }

    c->id = ngx_http_toolgate_control_id(c, collection->prefix);
    if (c->id.data == NULL) {
        return;
    }

    definition = c->body;
    doc = json_pack("{s:s%,s:I}", "id", c->id.data, c->id.len, "created_at",
                    (json_int_t) ngx_time());

    if (doc && collection->member) {
        (void) json_object_set(doc, collection->member, definition);
    }

    c->status = NGX_HTTP_CREATED;

    if (collection->define(c, definition, NULL, doc) == NGX_OK) {
        ngx_http_toolgate_collection_save(c, doc, NULL);
    }

    json_decref(doc);
}


static void
ngx_http_toolgate_collection_one(ngx_http_toolgate_control_t *c)
{
    u_char                                *slash;
    json_t                                *file;
    ngx_str_t                              id, below;
    ngx_http_toolgate_object_t            *object;
    const ngx_http_toolgate_collection_t  *collection;

    collection = ngx_http_toolgate_collection_of(c);

    id.data = c->rest.data + 1;
    id.len = c->rest.len - 1;
    ngx_str_null(&below);

    slash = ngx_strlchr(id.data, id.data + id.len, '/');

    if (slash) {
        below.data = slash;
        below.len = id.data + id.len - slash;
        id.len = slash - id.data;
    }

    object = ngx_http_toolgate_registry_get(c->project, collection->kind, &id);
    file = NULL;

    if (object == NULL) {
        file = ngx_http_toolgate_collection_file(c, &id);

        if (file == NULL) {
            ngx_http_toolgate_control_error(c, "not_found", NULL, NULL);
            return;
        }
    }

    if (below.len) {
        if (collection->below == NULL
            || collection->below(c, object, &below) == NGX_DECLINED)
        {
            ngx_http_toolgate_control_error(c, "unknown_url", NULL, NULL);
        }

        json_decref(file);
        return;
    }

    if (c->request->method == NGX_HTTP_GET) {
        ngx_http_toolgate_control_reply(c, NGX_HTTP_OK,
                                        file ? file : collection->view(object));
        return;
    }

    if ((c->request->method != NGX_HTTP_PATCH || !collection->patch)
        && c->request->method != NGX_HTTP_DELETE)
    {
        ngx_http_toolgate_control_method(c, collection->patch
                                            ? "GET, PATCH, DELETE"
                                            : "GET, DELETE");

    } else if (file) {
        ngx_http_toolgate_control_error(c, "read_only", NULL, NULL);

    } else if (c->expected && c->expected != object->version) {
        ngx_http_toolgate_control_error(c, "version_conflict", NULL, NULL);

    } else if (c->request->method == NGX_HTTP_PATCH) {
        ngx_http_toolgate_collection_patch(c, object);

    } else {
        ngx_http_toolgate_collection_delete(c, object);
    }

    json_decref(file);
}


static json_t *
ngx_http_toolgate_collection_file(ngx_http_toolgate_control_t *c, ngx_str_t *id)
{
    json_t                                *value;
    tg_str_t                               own;
    ngx_uint_t                             i;
    const ngx_http_toolgate_collection_t  *collection;

    collection = ngx_http_toolgate_collection_of(c);

    for (i = 0; collection->file; i++) {
        value = collection->file(c, i);

        if (value == NULL) {
            break;
        }

        own = tg_json_get_string(value, "id");

        if (own.len == id->len && ngx_memcmp(own.data, id->data, own.len) == 0) {
            return value;
        }

        json_decref(value);
    }

    return NULL;
}


static void
ngx_http_toolgate_collection_patch(ngx_http_toolgate_control_t *c,
    ngx_http_toolgate_object_t *object)
{
    json_t                                *doc, *definition;
    const ngx_http_toolgate_collection_t  *collection;

    collection = ngx_http_toolgate_collection_of(c);

    if (c->body == NULL) {
        ngx_http_toolgate_control_error(c, "invalid_json", "A body is needed.",
                                        NULL);
        return;
    }

    doc = json_copy(object->doc);
    definition = json_deep_copy(json_object_get(object->doc, collection->member));
    definition = ngx_http_toolgate_merge(definition, c->body);

    if (doc == NULL || definition == NULL) {
        json_decref(doc);
        json_decref(definition);
        ngx_http_toolgate_control_error(c, "internal_error", NULL, NULL);
        return;
    }

    c->id.len = object->id.len;
    c->id.data = ngx_pstrdup(c->request->pool, &object->id);
    c->status = NGX_HTTP_OK;

    (void) json_object_set_new(doc, collection->member, definition);
    (void) json_object_set_new(doc, "updated_at", json_integer(ngx_time()));

    if (collection->define(c, definition, object, doc) == NGX_OK) {
        ngx_http_toolgate_collection_save(c, doc, object);
    }

    json_decref(doc);
}


/* RFC 7396; takes the reference to target and gives one to the result. Depth is
 * that of a document: bounded by the loader. */
static json_t *
ngx_http_toolgate_merge(json_t *target, json_t *patch)
{
    json_t      *value, *merged;
    const char  *key;

    if (!json_is_object(patch)) {
        json_decref(target);
        return json_incref(patch);
    }

    if (!json_is_object(target)) {
        json_decref(target);
        target = json_object();
    }

    json_object_foreach(patch, key, value) {
        if (json_is_null(value)) {
            (void) json_object_del(target, key);
            continue;
        }

        merged = ngx_http_toolgate_merge(json_incref(json_object_get(target, key)),
                                         value);

        if (merged == NULL || json_object_set_new(target, key, merged) != 0) {
            json_decref(target);
            return NULL;
        }
    }

    return target;
}


static void
ngx_http_toolgate_collection_save(ngx_http_toolgate_control_t *c, json_t *doc,
    ngx_http_toolgate_object_t *old)
{
    tg_str_t                               name, before;
    ngx_http_toolgate_change_t            *change;
    const ngx_http_toolgate_collection_t  *collection;

    collection = ngx_http_toolgate_collection_of(c);

    change = ngx_pcalloc(c->request->pool, sizeof(ngx_http_toolgate_change_t));
    if (change == NULL || c->id.data == NULL) {
        ngx_http_toolgate_control_error(c, "internal_error", NULL, NULL);
        return;
    }

    change->doc = ngx_http_toolgate_control_dump(c, doc);
    if (change->doc.data == NULL) {
        return;
    }

    name = tg_json_get_string(doc,
                              collection->kind == NGX_HTTP_TOOLGATE_KIND_API_KEY
                              ? "sha256" : "name");
    before = old ? tg_json_get_string(old->doc, "name") : tg_null_str;

    change->verb = old ? "update" : "create";
    change->kind = collection->kind;
    change->project = c->project;
    change->id = c->id;
    change->unique.data = (u_char *) name.data;
    change->unique.len = name.len;
    change->before.data = (u_char *) before.data;
    change->before.len = before.len;
    change->expected = old ? old->version : 0;

    ngx_http_toolgate_control_write(c, change, 1,
                                    ngx_http_toolgate_collection_saved);
}


static void
ngx_http_toolgate_collection_saved(ngx_http_toolgate_control_t *c)
{
    json_t                                *view;
    ngx_http_toolgate_object_t            *object;
    const ngx_http_toolgate_collection_t  *collection;

    collection = ngx_http_toolgate_collection_of(c);
    object = ngx_http_toolgate_registry_get(c->project, collection->kind, &c->id);

    if (object == NULL) {
        /* deleted meanwhile, or not readable */
        ngx_http_toolgate_control_error(c, "not_found", NULL, NULL);
        return;
    }

    view = collection->view(object);

    if (c->reply) {
        (void) json_object_update(view, c->reply);
    }

    ngx_http_toolgate_control_reply(c, c->status, view);
}


static void
ngx_http_toolgate_collection_delete(ngx_http_toolgate_control_t *c,
    ngx_http_toolgate_object_t *object)
{
    u_char                                *frozen;
    tg_str_t                               name;
    ngx_http_toolgate_change_t            *change;
    const ngx_http_toolgate_collection_t  *collection;

    collection = ngx_http_toolgate_collection_of(c);
    frozen = ngx_pnalloc(c->request->pool, NGX_INT64_LEN);
    change = ngx_pcalloc(c->request->pool, sizeof(ngx_http_toolgate_change_t));

    c->id.len = object->id.len;
    c->id.data = ngx_pstrdup(c->request->pool, &object->id);

    if (change == NULL || frozen == NULL || c->id.data == NULL) {
        ngx_http_toolgate_control_error(c, "internal_error", NULL, NULL);
        return;
    }

    name = tg_json_get_string(object->doc,
                              collection->kind == NGX_HTTP_TOOLGATE_KIND_API_KEY
                              ? "sha256" : "name");

    change->verb = "delete";
    change->kind = collection->kind;
    change->project = c->project;
    change->id = c->id;
    change->before.data = (u_char *) name.data;
    change->before.len = name.len;
    change->expected = object->version;
    change->doc.data = (char *) frozen;
    change->doc.len = ngx_sprintf(frozen, "%L", (int64_t) json_integer_value(
                                      json_object_get(object->doc, "last_version")))
                      - frozen;

    ngx_http_toolgate_control_write(c, change, 1,
                                    ngx_http_toolgate_collection_deleted);
}


static void
ngx_http_toolgate_collection_deleted(ngx_http_toolgate_control_t *c)
{
    ngx_http_toolgate_control_reply(c, NGX_HTTP_OK,
        json_pack("{s:s%,s:b}", "id", c->id.data, c->id.len, "deleted", 1));
}
