/*
 * "toolset" of an agent in a catalog file: which of the helper's tools it gets,
 * by group, profile or name, and how calls are approved.
 */

#include "ngx_http_toolgate_catalog.h"
#include "tg_tool_name.h"
#include "tg_toolset.h"


static ngx_int_t ngx_http_toolgate_agent_approval(
    ngx_http_toolgate_catalog_t *cat, json_t *toolset, const char *base,
    ngx_http_toolgate_agent_t *agent);
static ngx_int_t ngx_http_toolgate_agent_include(
    ngx_http_toolgate_catalog_t *cat, const char *token, const char *base,
    ngx_http_toolgate_agent_t *agent);


static const char *const  ngx_http_toolgate_toolset_keys[] = {
    "include", "approval_mode", "require_approval", "dispatch", NULL
};


ngx_int_t
ngx_http_toolgate_agent_toolset(ngx_http_toolgate_catalog_t *cat, json_t *toolset,
    const char *base, ngx_http_toolgate_agent_t *agent)
{
    char        pointer[NGX_HTTP_TOOLGATE_POINTER_MAX], *list, *word, *save;
    json_t     *include, *item;
    size_t      i;

    if (toolset == NULL) {
        return NGX_OK;
    }

    ngx_http_toolgate_catalog_at(pointer, "%s/toolset", base);

    if (ngx_http_toolgate_catalog_known(cat, toolset, pointer,
                                        ngx_http_toolgate_toolset_keys) != NGX_OK
        || ngx_http_toolgate_agent_approval(cat, toolset, pointer, agent) != NGX_OK)
    {
        return NGX_ERROR;
    }

    include = json_object_get(toolset, "include");
    i = 0;

    do {
        item = json_is_array(include) ? json_array_get(include, i) : include;

        if (item == NULL) {
            break;
        }

        if (!json_is_string(item)) {
            return ngx_http_toolgate_catalog_fault(cat, pointer, "include",
                                                   "invalid_type",
                                                   "\"include\" is a list of "
                                                   "strings");
        }

        list = strdup(json_string_value(item));
        if (list == NULL) {
            return NGX_ERROR;
        }

        for (word = strtok_r(list, ", ", &save); word;
             word = strtok_r(NULL, ", ", &save))
        {
            if (ngx_http_toolgate_agent_include(cat, word, pointer, agent)
                != NGX_OK)
            {
                free(list);
                return NGX_ERROR;
            }
        }

        free(list);

    } while (json_is_array(include) && ++i < json_array_size(include));

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_agent_approval(ngx_http_toolgate_catalog_t *cat, json_t *toolset,
    const char *base, ngx_http_toolgate_agent_t *agent)
{
    ngx_str_t  mode;

    if (ngx_http_toolgate_catalog_string(cat, toolset, base, "approval_mode", 0,
                                         &mode) != NGX_OK)
    {
        return NGX_ERROR;
    }

    agent->approval_mode = TG_APPROVAL_OFF;

    if (mode.data == NULL
        || tg_approval_mode_parse((tg_str_t) { mode.len, (char *) mode.data },
                                  &agent->approval_mode))
    {
        return NGX_OK;
    }

    return ngx_http_toolgate_catalog_fault(cat, base, "approval_mode",
                                           "invalid_value",
                                           "this is off, full, strict, risk or ask");
}


ngx_int_t
ngx_http_toolgate_agent_named(ngx_http_toolgate_catalog_t *cat, json_t *toolset,
    const char *base, ngx_http_toolgate_agent_t *agent)
{
    char                        pointer[NGX_HTTP_TOOLGATE_POINTER_MAX];
    size_t                      i;
    json_t                     *names, *value;
    tg_str_t                    name, own;
    ngx_uint_t                  j, known;
    ngx_http_toolgate_grant_t  *grant;

    ngx_http_toolgate_catalog_at(pointer, "%s/toolset", base);

    if (ngx_http_toolgate_catalog_array(cat, toolset, pointer, "require_approval",
                                        &names) != NGX_OK)
    {
        return NGX_ERROR;
    }

    grant = agent->grants.elts;

    json_array_foreach(names, i, value) {
        ngx_http_toolgate_catalog_at(pointer, "%s/toolset/require_approval/%zu",
                                     base, i);

        if (!json_is_string(value)) {
            return ngx_http_toolgate_catalog_error(cat, pointer, "invalid_type",
                                                   "this is the name of a tool");
        }

        name.data = json_string_value(value);
        name.len = json_string_length(value);

        /* tools that are not built yet may be named ahead */

        known = tg_approval_tool(name) || tg_tool_name_builtin(name);

        for (j = 0; j < agent->grants.nelts; j++) {
            own.data = (char *) grant[j].tool->name.data;
            own.len = grant[j].tool->name.len;

            if (tg_str_eq(name, own)) {
                grant[j].approve = 1;
                known = 1;
            }
        }

        /* a name that is mistyped would gate nothing */

        if (!known) {
            return ngx_http_toolgate_catalog_error(cat, pointer, "invalid_value",
                                                   "the agent has no tool of this "
                                                   "name");
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_agent_include(ngx_http_toolgate_catalog_t *cat,
    const char *token, const char *base, ngx_http_toolgate_agent_t *agent)
{
    ptrdiff_t                   place;
    ngx_uint_t                  i, j, wanted;
    tg_toolset_t                set;
    ngx_http_toolgate_tool_t   *tool;
    ngx_http_toolgate_grant_t  *grant;

    set = 0;

    if (!tg_toolset_include_word(tg_str_of(token), &set)) {
        return ngx_http_toolgate_catalog_fault(cat, base, "include",
                                               "invalid_value",
                                               "not a group, a profile or a "
                                               "tool, like \"sandbox\", "
                                               "\"focused\", \"run_command\"");
    }

    /* those that this version has not offer nothing */

    tool = cat->objects->helper_tools.elts;

    for (i = 0; i < cat->objects->helper_tools.nelts; i++) {
        place = tg_toolset_place(tg_str_of((char *) tool[i].name.data));
        wanted = place >= 0 && tg_toolset_has(set, (size_t) place);

        grant = agent->grants.elts;

        for (j = 0; j < agent->grants.nelts; j++) {
            if (grant[j].tool == &tool[i]) {
                wanted = 0;
            }
        }

        if (!wanted) {
            continue;
        }

        if (!cat->conf->helper) {
            return ngx_http_toolgate_catalog_fault(cat, base, "include",
                                                   "no_helper",
                                                   "this tool needs "
                                                   "\"toolgate_helper\"");
        }

        if (ngx_http_toolgate_agent_grant(cat, agent, &tool[i], NULL, 0, base)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}
