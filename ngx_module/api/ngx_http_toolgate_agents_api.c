/*
 * /v1/agents: drafts, publishing, versions. A published version is frozen with
 * copies of its HTTP tools; what runs is built of that.
 */

#include "ngx_http_toolgate_control.h"


#define NGX_HTTP_TOOLGATE_VERSIONS_SHOWN  100


static ngx_int_t ngx_http_toolgate_agents_define(ngx_http_toolgate_control_t *c,
    json_t *definition, ngx_http_toolgate_object_t *old, json_t *doc);
static ngx_int_t ngx_http_toolgate_agents_check(ngx_http_toolgate_control_t *c,
    json_t *frozen, json_t *doc);
static json_t *ngx_http_toolgate_agents_view(ngx_http_toolgate_object_t *object);
static json_t *ngx_http_toolgate_agents_file(ngx_http_toolgate_control_t *c,
    ngx_uint_t i);
static ngx_int_t ngx_http_toolgate_agents_below(ngx_http_toolgate_control_t *c,
    ngx_http_toolgate_object_t *object, ngx_str_t *rest);
static void ngx_http_toolgate_agents_publish(ngx_http_toolgate_control_t *c,
    ngx_http_toolgate_object_t *object);
static ngx_int_t ngx_http_toolgate_agents_freeze(ngx_http_toolgate_control_t *c,
    ngx_http_toolgate_object_t *object, json_t *doc,
    ngx_http_toolgate_change_t *changes);
static ngx_int_t ngx_http_toolgate_agents_note(json_t *doc, json_int_t version);
static void ngx_http_toolgate_agents_published(ngx_http_toolgate_control_t *c);
static void ngx_http_toolgate_agents_versions(ngx_http_toolgate_control_t *c,
    ngx_http_toolgate_object_t *object);
static void ngx_http_toolgate_agents_version(ngx_http_toolgate_control_t *c,
    ngx_http_toolgate_object_t *object, ngx_str_t *number);
static void ngx_http_toolgate_agents_read(void *data, json_t *doc, ngx_uint_t up);


static const ngx_http_toolgate_collection_t  ngx_http_toolgate_agents_collection = {
    NGX_HTTP_TOOLGATE_KIND_AGENT, "agent_", "draft",
    ngx_http_toolgate_agents_define,
    ngx_http_toolgate_agents_view,
    ngx_http_toolgate_agents_file,
    ngx_http_toolgate_agents_below, 1
};


ngx_int_t
ngx_http_toolgate_agents(ngx_http_request_t *r, ngx_http_toolgate_key_t *key,
    ngx_str_t *rest)
{
    return ngx_http_toolgate_control(r, key, rest, ngx_http_toolgate_collection,
                             (void *) &ngx_http_toolgate_agents_collection);
}


static ngx_int_t
ngx_http_toolgate_agents_define(ngx_http_toolgate_control_t *c, json_t *definition,
    ngx_http_toolgate_object_t *old, json_t *doc)
{
    json_t     *frozen;
    ngx_int_t   rc;

    frozen = ngx_http_toolgate_agent_freeze(c->project, definition, 0);

    if (frozen == NULL) {
        ngx_http_toolgate_control_error(c, "internal_error", NULL, NULL);
        return NGX_ERROR;
    }

    rc = ngx_http_toolgate_agents_check(c, frozen, doc);
    json_decref(frozen);

    return rc;
}


/* Builds what would run, to see that it can; notes the name in doc. */
static ngx_int_t
ngx_http_toolgate_agents_check(ngx_http_toolgate_control_t *c, json_t *frozen,
    json_t *doc)
{
    ngx_int_t                     rc;
    ngx_pool_t                   *pool;
    ngx_http_toolgate_agent_t    *agent;
    ngx_http_toolgate_catalog_t   cat;

    /* outlives the request when that is refused below */
    pool = ngx_create_pool(NGX_DEFAULT_POOL_SIZE, ngx_cycle->log);
    if (pool == NULL) {
        ngx_http_toolgate_control_error(c, "internal_error", NULL, NULL);
        return NGX_ERROR;
    }

    rc = NGX_ERROR;
    ngx_http_toolgate_registry_builder(&cat, pool, c->project);
    agent = ngx_http_toolgate_agent_build(&cat, frozen, &c->id);

    if (agent == NULL) {
        ngx_http_toolgate_control_fault(c, &cat);

    } else if (ngx_http_toolgate_agent_find(c->project, &agent->name)
               || cat.conf->has_model(cat.conf->data, &agent->name))
    {
        ngx_http_toolgate_control_error(c, "name_conflict",
                                        "A model or an agent of a catalog file "
                                        "has this name.", "name");

    } else {
        (void) json_object_set_new(doc, "name",
                                   json_stringn((char *) agent->name.data,
                                                agent->name.len));
        rc = NGX_OK;
    }

    ngx_destroy_pool(pool);

    return rc;
}


static json_t *
ngx_http_toolgate_agents_view(ngx_http_toolgate_object_t *object)
{
    json_t  *view, *published, *updated;

    published = json_object_get(json_object_get(object->doc, "published"),
                                "version");
    updated = json_object_get(object->doc, "updated_at");

    view = json_pack("{s:O,s:s,s:I,s:O?,s:O,s:O?}",
                     "id", json_object_get(object->doc, "id"), "object", "agent",
                     "version", (json_int_t) object->version,
                     "published_version", published,
                     "created_at", json_object_get(object->doc, "created_at"),
                     "updated_at", updated);

    (void) json_object_update_missing(view, json_object_get(object->doc, "draft"));

    return view;
}


static json_t *
ngx_http_toolgate_agents_file(ngx_http_toolgate_control_t *c, ngx_uint_t i)
{
    json_t                      *view;
    ngx_http_toolgate_agent_t  **agent;

    if (i >= c->project->agents.nelts) {
        return NULL;
    }

    agent = c->project->agents.elts;

    view = json_pack("{s:s,s:s,s:b,s:I}", "id", agent[i]->id, "object", "agent",
                     "read_only", 1, "published_version",
                     (json_int_t) agent[i]->version);

    (void) json_object_update_missing(view, agent[i]->doc);

    return view;
}


static ngx_int_t
ngx_http_toolgate_agents_below(ngx_http_toolgate_control_t *c,
    ngx_http_toolgate_object_t *object, ngx_str_t *rest)
{
    ngx_str_t  number;

    if (rest->len == 8 && ngx_memcmp(rest->data, "/publish", 8) == 0) {

        if (c->request->method != NGX_HTTP_POST) {
            ngx_http_toolgate_control_method(c, "POST");

        } else if (object == NULL) {
            ngx_http_toolgate_control_error(c, "read_only", NULL, NULL);

        } else {
            ngx_http_toolgate_agents_publish(c, object);
        }

        return NGX_OK;
    }

    if (rest->len < 9 || ngx_memcmp(rest->data, "/versions", 9) != 0
        || (rest->len > 9 && rest->data[9] != '/'))
    {
        return NGX_DECLINED;
    }

    if (c->request->method != NGX_HTTP_GET) {
        ngx_http_toolgate_control_method(c, "GET");
        return NGX_OK;
    }

    if (object == NULL) {
        /* a file has one version and keeps none of those before it */
        ngx_http_toolgate_control_error(c, "read_only", NULL, NULL);
        return NGX_OK;
    }

    if (rest->len <= 10) {
        ngx_http_toolgate_agents_versions(c, object);
        return NGX_OK;
    }

    number.data = rest->data + 10;
    number.len = rest->len - 10;
    ngx_http_toolgate_agents_version(c, object, &number);

    return NGX_OK;
}


static void
ngx_http_toolgate_agents_publish(ngx_http_toolgate_control_t *c,
    ngx_http_toolgate_object_t *object)
{
    json_t                      *doc;
    ngx_http_toolgate_change_t  *changes;

    if (c->expected && c->expected != object->version) {
        ngx_http_toolgate_control_error(c, "version_conflict", NULL, NULL);
        return;
    }

    doc = json_copy(object->doc);
    changes = ngx_pcalloc(c->request->pool,
                          2 * sizeof(ngx_http_toolgate_change_t));

    c->id.len = object->id.len;
    c->id.data = ngx_pstrdup(c->request->pool, &object->id);

    if (doc == NULL || changes == NULL || c->id.data == NULL) {
        ngx_http_toolgate_control_error(c, "internal_error", NULL, NULL);

    } else if (ngx_http_toolgate_agents_freeze(c, object, doc, changes) == NGX_OK) {
        ngx_http_toolgate_control_write(c, changes, 2,
                                        ngx_http_toolgate_agents_published);
    }

    json_decref(doc);
}


/* The agent with its new published version, and that version for itself. */
static ngx_int_t
ngx_http_toolgate_agents_freeze(ngx_http_toolgate_control_t *c,
    ngx_http_toolgate_object_t *object, json_t *doc,
    ngx_http_toolgate_change_t *changes)
{
    u_char      *p;
    json_t      *frozen, *last;
    json_int_t   number;
    tg_str_t     name;

    last = json_object_get(doc, "last_version");
    number = json_integer_value(last) + 1;

    frozen = ngx_http_toolgate_agent_freeze(c->project,
                                            json_object_get(doc, "draft"),
                                            (ngx_uint_t) number);

    if (frozen == NULL || json_object_set_new(doc, "published", frozen) != 0
        || ngx_http_toolgate_agents_note(doc, number) != NGX_OK)
    {
        ngx_http_toolgate_control_error(c, "internal_error", NULL, NULL);
        return NGX_ERROR;
    }

    if (ngx_http_toolgate_agents_check(c, frozen, doc) != NGX_OK) {
        return NGX_ERROR;
    }

    name = tg_json_get_string(object->doc, "name");
    changes[0].verb = "update";
    changes[0].kind = NGX_HTTP_TOOLGATE_KIND_AGENT;
    changes[0].project = c->project;
    changes[0].id = c->id;
    changes[0].before.data = (u_char *) name.data;
    changes[0].before.len = name.len;
    changes[0].unique = changes[0].before;
    changes[0].expected = object->version;
    changes[0].doc = ngx_http_toolgate_control_dump(c, doc);

    if (changes[0].doc.data == NULL) {
        return NGX_ERROR;
    }

    changes[1] = changes[0];
    changes[1].verb = "version";
    ngx_str_null(&changes[1].unique);
    ngx_str_null(&changes[1].before);
    changes[1].doc = ngx_http_toolgate_control_dump(c, frozen);

    if (changes[1].doc.data == NULL) {
        return NGX_ERROR;
    }

    p = ngx_pnalloc(c->request->pool, c->id.len + 1 + NGX_INT64_LEN);
    if (p == NULL) {
        ngx_http_toolgate_control_error(c, "internal_error", NULL, NULL);
        return NGX_ERROR;
    }

    changes[1].id.data = p;
    changes[1].id.len = ngx_sprintf(p, "%V@%L", &c->id, (int64_t) number) - p;

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_agents_note(json_t *doc, json_int_t version)
{
    json_t  *versions;

    versions = json_deep_copy(json_object_get(doc, "versions"));

    if (versions == NULL) {
        versions = json_array();
    }

    if (json_array_size(versions) >= NGX_HTTP_TOOLGATE_VERSIONS_SHOWN) {
        (void) json_array_remove(versions, 0);
    }

    (void) json_array_append_new(versions,
                                 json_pack("{s:I,s:I}", "version", version,
                                           "created_at", (json_int_t) ngx_time()));

    return json_object_set_new(doc, "versions", versions) == 0
           && json_object_set_new(doc, "last_version", json_integer(version)) == 0
           ? NGX_OK : NGX_ERROR;
}


static void
ngx_http_toolgate_agents_published(ngx_http_toolgate_control_t *c)
{
    ngx_http_toolgate_object_t  *object;

    object = ngx_http_toolgate_registry_get(c->project,
                                            NGX_HTTP_TOOLGATE_KIND_AGENT, &c->id);
    if (object == NULL) {
        ngx_http_toolgate_control_error(c, "not_found", NULL, NULL);
        return;
    }

    ngx_http_toolgate_control_reply(c, NGX_HTTP_OK,
                                    ngx_http_toolgate_agents_view(object));
}


static void
ngx_http_toolgate_agents_versions(ngx_http_toolgate_control_t *c,
    ngx_http_toolgate_object_t *object)
{
    size_t      i, n;
    json_t     *versions, *values, *value;

    versions = json_object_get(object->doc, "versions");
    n = json_array_size(versions);
    values = json_array();

    for (i = n; i > 0; i--) {
        value = json_copy(json_array_get(versions, i - 1));

        (void) json_object_set_new(value, "id",
                   json_sprintf("%s@%lld",
                       json_string_value(json_object_get(object->doc, "id")),
                       (long long) json_integer_value(
                                       json_object_get(value, "version"))));
        (void) json_object_set_new(value, "object", json_string("agent.version"));
        (void) json_array_append_new(values, value);
    }

    ngx_http_toolgate_control_page(c, values);
}


static void
ngx_http_toolgate_agents_version(ngx_http_toolgate_control_t *c,
    ngx_http_toolgate_object_t *object, ngx_str_t *number)
{
    ngx_int_t  n;

    n = ngx_atoi(number->data, number->len);

    c->id.len = object->id.len;
    c->id.data = ngx_pstrdup(c->request->pool, &object->id);

    if (n == NGX_ERROR || c->id.data == NULL) {
        ngx_http_toolgate_control_error(c, n == NGX_ERROR ? "not_found"
                                                          : "internal_error",
                                        NULL, NULL);
        return;
    }

    if (ngx_http_toolgate_registry_version(c->request->pool, c->project, &c->id,
                                           (ngx_uint_t) n,
                                           ngx_http_toolgate_agents_read, c)
        != NGX_OK)
    {
        ngx_http_toolgate_control_error(c, "internal_error", NULL, NULL);
    }
}


static void
ngx_http_toolgate_agents_read(void *data, json_t *doc, ngx_uint_t up)
{
    ngx_http_toolgate_control_t *c = data;

    ngx_connection_t  *connection;

    connection = c->request->connection;

    if (doc) {
        ngx_http_toolgate_control_reply(c, NGX_HTTP_OK, json_incref(doc));

    } else {
        ngx_http_toolgate_control_error(c, up ? "not_found" : "store_unavailable",
                                        NULL, NULL);
    }

    ngx_http_run_posted_requests(connection);
}
