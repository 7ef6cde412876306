/*
 * Building one HTTP tool from its JSON: template, schema, and what a policy check
 * needs to know of it. It does not know where the definition came from.
 */

#include "ngx_http_toolgate_catalog.h"


static ngx_int_t ngx_http_toolgate_tool_compile(ngx_http_toolgate_catalog_t *cat,
    json_t *value, const char *base, ngx_http_toolgate_tool_t *tool);
static void ngx_http_toolgate_tool_facts(ngx_http_toolgate_catalog_t *cat,
    ngx_http_toolgate_tool_t *tool);
static void ngx_http_toolgate_tool_cleanup(void *data);


ngx_http_toolgate_tool_t *
ngx_http_toolgate_catalog_tool(ngx_http_toolgate_catalog_t *cat, json_t *value,
    const char *base)
{
    ngx_http_toolgate_tool_t  *tool;

    tool = ngx_http_toolgate_catalog_new_tool(cat, NGX_HTTP_TOOLGATE_TOOL_HTTP);

    if (tool == NULL
        || ngx_http_toolgate_tool_compile(cat, value, base, tool) != NGX_OK)
    {
        return NULL;
    }

    /* whether it can sign right now is asked when it is called */

    if (cat->conf->master_key.len == 0) {
        (void) ngx_http_toolgate_catalog_error(cat, base, "no_signing_secret",
                                               "HTTP tools need "
                                               "\"toolgate_master_key\": their "
                                               "calls are signed");
        return NULL;
    }

    ngx_http_toolgate_tool_facts(cat, tool);

    return tool;
}


ngx_http_toolgate_tool_t *
ngx_http_toolgate_catalog_new_tool(ngx_http_toolgate_catalog_t *cat,
    ngx_http_toolgate_tool_kind_e kind)
{
    ngx_pool_cleanup_t        *cln;
    ngx_http_toolgate_tool_t  *tool;

    cln = ngx_pool_cleanup_add(cat->pool, 0);
    tool = ngx_pcalloc(cat->pool, sizeof(ngx_http_toolgate_tool_t));

    if (cln == NULL || tool == NULL) {
        return NULL;
    }

    cln->handler = ngx_http_toolgate_tool_cleanup;
    cln->data = tool;
    tool->kind = kind;

    return tool;
}


static ngx_int_t
ngx_http_toolgate_tool_compile(ngx_http_toolgate_catalog_t *cat, json_t *value,
    const char *base, ngx_http_toolgate_tool_t *tool)
{
    char                 pointer[NGX_HTTP_TOOLGATE_POINTER_MAX];
    tg_template_error_t  error;
    tg_schema_errors_t   errors;

    tool->template = tg_template_compile(value, cat->conf->guard, &error);

    if (tool->template == NULL) {
        ngx_http_toolgate_catalog_at(pointer, "%s%s", base, error.pointer);
        return ngx_http_toolgate_catalog_error(cat, pointer, error.code,
                                               error.reason);
    }

    tool->doc = json_incref(value);
    tool->parameters = json_incref((json_t *)
                                   tg_template_parameters(tool->template));
    tool->schema = tg_schema_compile(tool->parameters, TG_SCHEMA_2020_12,
                                     &errors);

    if (tool->schema == NULL) {
        ngx_http_toolgate_catalog_at(pointer, "%s/config/parameters%s", base,
                                     errors.errors[0].pointer);
        return ngx_http_toolgate_catalog_error(cat, pointer, "invalid_schema",
                                               errors.errors[0].reason);
    }

    return NGX_OK;
}


static void
ngx_http_toolgate_tool_facts(ngx_http_toolgate_catalog_t *cat,
    ngx_http_toolgate_tool_t *tool)
{
    tg_str_t  text;

    text = tg_template_name(tool->template);
    tool->name.len = text.len;
    tool->name.data = (u_char *) text.data;

    text = tg_template_description(tool->template);
    tool->description.len = text.len;
    tool->description.data = (u_char *) text.data;

    tool->effect = tg_template_effect(tool->template);
    tool->requires_verified_user =
        tg_template_requires_verified_user(tool->template);
    tool->enabled = tg_template_enabled(tool->template);

    tg_id_derive("tool_", (tg_str_t) { cat->project->name.len,
                                       (char *) cat->project->name.data },
                 tg_template_name(tool->template), tool->id);
}


/* The schema, the template and the tree are malloc'ed by core/. */
static void
ngx_http_toolgate_tool_cleanup(void *data)
{
    ngx_http_toolgate_tool_t  *tool = data;

    tg_schema_free(tool->schema);
    tg_template_free(tool->template);
    json_decref(tool->parameters);
    json_decref(tool->doc);
}


ngx_http_toolgate_tool_t *
ngx_http_toolgate_catalog_find_tool(ngx_http_toolgate_catalog_t *cat,
    ngx_str_t *name)
{
    ngx_uint_t                  i;
    ngx_http_toolgate_tool_t  **tool;

    tool = cat->tools->elts;

    for (i = 0; i < cat->tools->nelts; i++) {
        if ((tool[i]->name.len == name->len
             && ngx_memcmp(tool[i]->name.data, name->data, name->len) == 0)
            || (ngx_strlen(tool[i]->id) == name->len
                && ngx_memcmp(tool[i]->id, name->data, name->len) == 0))
        {
            return tool[i];
        }
    }

    return NULL;
}
