/*
 * Building an agent's client tools from its JSON: tools that the caller's own app
 * runs. They are the agent's alone, so they are defined where they are granted.
 */

#include "ngx_http_toolgate_catalog.h"

#include "tg_tool_name.h"


static ngx_int_t ngx_http_toolgate_client_tool(ngx_http_toolgate_catalog_t *cat,
    json_t *value, const char *base, ngx_http_toolgate_agent_t *agent);
static ngx_int_t ngx_http_toolgate_client_name(ngx_http_toolgate_catalog_t *cat,
    json_t *value, const char *base, ngx_http_toolgate_tool_t *tool);
static ngx_int_t ngx_http_toolgate_client_effect(ngx_http_toolgate_catalog_t *cat,
    json_t *value, const char *base, ngx_http_toolgate_tool_t *tool);
static ngx_int_t ngx_http_toolgate_client_parameters(
    ngx_http_toolgate_catalog_t *cat, json_t *value, const char *base,
    ngx_http_toolgate_tool_t *tool);


static const char *const  ngx_http_toolgate_client_keys[] = {
    "name", "description", "parameters", "effect", "rules", "hours_only", NULL
};


ngx_int_t
ngx_http_toolgate_agent_client(ngx_http_toolgate_catalog_t *cat, json_t *client,
    const char *base, ngx_http_toolgate_agent_t *agent)
{
    char     pointer[NGX_HTTP_TOOLGATE_POINTER_MAX];
    size_t   i;
    json_t  *value;

    json_array_foreach(client, i, value) {
        ngx_http_toolgate_catalog_at(pointer, "%s/client/%zu", base, i);

        if (ngx_http_toolgate_client_tool(cat, value, pointer, agent) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_client_tool(ngx_http_toolgate_catalog_t *cat, json_t *value,
    const char *base, ngx_http_toolgate_agent_t *agent)
{
    ngx_uint_t                 hours_only;
    ngx_http_toolgate_tool_t  *tool;

    tool = ngx_http_toolgate_catalog_new_tool(cat,
                                              NGX_HTTP_TOOLGATE_TOOL_CLIENT);
    if (tool == NULL) {
        return NGX_ERROR;
    }

    tool->enabled = 1;

    if (ngx_http_toolgate_catalog_known(cat, value, base,
                                        ngx_http_toolgate_client_keys) != NGX_OK
        || ngx_http_toolgate_client_name(cat, value, base, tool) != NGX_OK
        || ngx_http_toolgate_catalog_string(cat, value, base, "description", 0,
                                            &tool->description) != NGX_OK
        || ngx_http_toolgate_client_effect(cat, value, base, tool) != NGX_OK
        || ngx_http_toolgate_agent_hours_only(cat, value, base, agent, &hours_only)
           != NGX_OK
        || ngx_http_toolgate_client_parameters(cat, value, base, tool) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_toolgate_agent_grant(cat, agent, tool,
                                         json_object_get(value, "rules"),
                                         hours_only, base);
}


static ngx_int_t
ngx_http_toolgate_client_name(ngx_http_toolgate_catalog_t *cat, json_t *value,
    const char *base, ngx_http_toolgate_tool_t *tool)
{
    tg_str_t  name;

    if (ngx_http_toolgate_catalog_string(cat, value, base, "name", 1, &tool->name)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    name.data = (char *) tool->name.data;
    name.len = tool->name.len;

    if (!tg_tool_name_valid(name, TG_TOOL_NAME_CLIENT_MAX)) {
        return ngx_http_toolgate_catalog_fault(cat, base, "name",
                                               "invalid_tool_name",
                                               "a client tool's name matches "
                                               "^[a-z][a-z0-9_]{0,47}$");
    }

    if (tg_tool_name_builtin(name)) {
        return ngx_http_toolgate_catalog_fault(cat, base, "name",
                                               "tool_name_conflict",
                                               "this is the name of a built-in "
                                               "tool");
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_client_effect(ngx_http_toolgate_catalog_t *cat, json_t *value,
    const char *base, ngx_http_toolgate_tool_t *tool)
{
    ngx_str_t  effect;

    if (ngx_http_toolgate_catalog_string(cat, value, base, "effect", 0, &effect)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (effect.data == NULL || ngx_strcmp(effect.data, "action") == 0) {
        tool->effect = TG_EFFECT_ACTION;

    } else if (ngx_strcmp(effect.data, "read") == 0) {
        tool->effect = TG_EFFECT_READ;

    } else {
        return ngx_http_toolgate_catalog_fault(cat, base, "effect",
                                               "invalid_value",
                                               "\"effect\" is \"read\" or "
                                               "\"action\"");
    }

    return NGX_OK;
}


/* A tool that says nothing of its parameters has none. */
static ngx_int_t
ngx_http_toolgate_client_parameters(ngx_http_toolgate_catalog_t *cat,
    json_t *value, const char *base, ngx_http_toolgate_tool_t *tool)
{
    char                 pointer[NGX_HTTP_TOOLGATE_POINTER_MAX];
    json_t              *type;
    tg_schema_errors_t   errors;

    tool->parameters = json_object_get(value, "parameters")
                       ? json_incref(json_object_get(value, "parameters"))
                       : json_pack("{s:s,s:{},s:b}", "type", "object",
                                   "properties", "additionalProperties", 0);

    if (tool->parameters == NULL) {
        return NGX_ERROR;
    }

    type = json_object_get(tool->parameters, "type");

    if (!json_is_object(tool->parameters)
        || (type && (!json_is_string(type)
                     || ngx_strcmp(json_string_value(type), "object") != 0)))
    {
        return ngx_http_toolgate_catalog_fault(cat, base, "parameters",
                                               "invalid_schema",
                                               "\"parameters\" is a schema of "
                                               "type \"object\"");
    }

    tool->schema = tg_schema_compile(tool->parameters, TG_SCHEMA_2020_12, &errors);

    if (tool->schema == NULL) {
        ngx_http_toolgate_catalog_at(pointer, "%s/parameters%s", base,
                                     errors.errors[0].pointer);
        return ngx_http_toolgate_catalog_error(cat, pointer, "invalid_schema",
                                               errors.errors[0].reason);
    }

    return NGX_OK;
}
