/*
 * /v1/tools: HTTP tools as a project defines them.
 */

#include "ngx_http_toolgate_control.h"


static ngx_int_t ngx_http_toolgate_tools_define(ngx_http_toolgate_control_t *c,
    json_t *definition, ngx_http_toolgate_object_t *old, json_t *doc);
static json_t *ngx_http_toolgate_tools_effect(tg_effect_e effect);
static json_t *ngx_http_toolgate_tools_view(ngx_http_toolgate_object_t *object);
static json_t *ngx_http_toolgate_tools_file(ngx_http_toolgate_control_t *c,
    ngx_uint_t i);


static const ngx_http_toolgate_collection_t  ngx_http_toolgate_tools_collection = {
    NGX_HTTP_TOOLGATE_KIND_TOOL, "tool_", "tool",
    ngx_http_toolgate_tools_define,
    ngx_http_toolgate_tools_view,
    ngx_http_toolgate_tools_file,
    NULL, 1
};


ngx_int_t
ngx_http_toolgate_tools(ngx_http_request_t *r, ngx_http_toolgate_key_t *key,
    ngx_str_t *rest)
{
    return ngx_http_toolgate_control(r, key, rest, ngx_http_toolgate_collection,
                             (void *) &ngx_http_toolgate_tools_collection);
}


static ngx_int_t
ngx_http_toolgate_tools_define(ngx_http_toolgate_control_t *c, json_t *definition,
    ngx_http_toolgate_object_t *old, json_t *doc)
{
    tg_str_t                      name;
    ngx_int_t                     rc;
    ngx_pool_t                   *pool;
    ngx_http_toolgate_tool_t     *tool;
    ngx_http_toolgate_catalog_t   cat;

    c->conflict = "tool_name_conflict";

    /* outlives the request when that is refused below */
    pool = ngx_create_pool(NGX_DEFAULT_POOL_SIZE, ngx_cycle->log);
    if (pool == NULL) {
        ngx_http_toolgate_control_error(c, "internal_error", NULL, NULL);
        return NGX_ERROR;
    }

    ngx_http_toolgate_registry_builder(&cat, pool, c->project);
    tool = ngx_http_toolgate_catalog_tool(&cat, definition, "");
    rc = NGX_OK;

    if (tool) {
        cat.tools = &c->project->tools;

        if (ngx_http_toolgate_catalog_find_tool(&cat, &tool->name)) {
            rc = ngx_http_toolgate_catalog_error(&cat, "/name",
                                                 "tool_name_conflict",
                                                 "a tool of a catalog file has "
                                                 "this name");
        }
    }

    if (tool == NULL || rc != NGX_OK) {
        ngx_http_toolgate_control_fault(c, &cat);
        rc = NGX_ERROR;

    } else {
        name = tg_template_name(tool->template);
        (void) json_object_set_new(doc, "name",
                                   json_stringn(name.data, name.len));
        (void) json_object_set_new(doc, "effect", ngx_http_toolgate_tools_effect(
                                                      tool->effect));
    }

    ngx_destroy_pool(pool);

    return rc;
}


static json_t *
ngx_http_toolgate_tools_effect(tg_effect_e effect)
{
    return json_string(effect == TG_EFFECT_READ ? "read"
                       : effect == TG_EFFECT_ACTION ? "action" : "escalation");
}


static json_t *
ngx_http_toolgate_tools_view(ngx_http_toolgate_object_t *object)
{
    json_t  *view;

    view = json_pack("{s:O,s:s,s:I,s:O}", "id", json_object_get(object->doc, "id"),
                     "object", "tool", "version", (json_int_t) object->version,
                     "created_at", json_object_get(object->doc, "created_at"));

    (void) json_object_update_missing(view, json_object_get(object->doc, "tool"));
    (void) json_object_set(view, "effect", json_object_get(object->doc, "effect"));

    return view;
}


static json_t *
ngx_http_toolgate_tools_file(ngx_http_toolgate_control_t *c, ngx_uint_t i)
{
    json_t                     *view;
    ngx_http_toolgate_tool_t  **tool;

    if (i >= c->project->tools.nelts) {
        return NULL;
    }

    tool = c->project->tools.elts;
    view = json_pack("{s:s,s:s,s:b}", "id", tool[i]->id, "object", "tool",
                     "read_only", 1);

    (void) json_object_update_missing(view, tool[i]->doc);
    (void) json_object_set_new(view, "effect",
                               ngx_http_toolgate_tools_effect(tool[i]->effect));

    return view;
}
