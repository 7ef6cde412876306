/*
 * "toolset" of an agent in a catalog file: which of the helper's tools it gets,
 * by group, profile or name, and how calls are approved.
 */

#include "ngx_http_toolgate_catalog.h"


static ngx_int_t ngx_http_toolgate_agent_approval(u_char *mode);
static ngx_int_t ngx_http_toolgate_agent_include(
    ngx_http_toolgate_catalog_t *cat, const char *token, const char *base,
    ngx_http_toolgate_agent_t *agent);


static const char *const  ngx_http_toolgate_toolset_keys[] = {
    "include", "approval_mode", "require_approval", "dispatch", NULL
};

/* Groups, profiles and tools that an include list may name. Those that this
 * version has no tool for are kept and offer nothing. */
static const char *const  ngx_http_toolgate_include_words[] = {
    "skill", "skills", "workspace", "platform", "sandbox", "web", "dispatcher",
    "tools", "focused", "core", "list_skills", "search_skills", "load_skill",
    "execute_skills", "workspace_status", "list_workspace_files",
    "read_workspace_file", "write_workspace_file", "write_workspace_files",
    "edit_workspace_file", "multi_edit_workspace_file", "lint_workspace_file",
    "search_workspace_files", "delete_workspace_file", "component_status",
    "sandbox_status", "run_command", "run_code", "web_fetch", "web_search",
    "tool_dispatcher", "agentengine_tool_dispatcher", "tool_search", NULL
};

/* Which groups hold which of the helper's tools. */
static const struct {
    const char  *word;
    const char  *tool;
} ngx_http_toolgate_include_groups[] = {
    { "sandbox", "run_command" },
    { "sandbox", "sandbox_status" },
    { "focused", "sandbox_status" },
    { "core", "sandbox_status" },
    { NULL, NULL }
};


ngx_int_t
ngx_http_toolgate_agent_toolset(ngx_http_toolgate_catalog_t *cat, json_t *toolset,
    const char *base, ngx_http_toolgate_agent_t *agent)
{
    char        pointer[NGX_HTTP_TOOLGATE_POINTER_MAX], *list, *word, *save;
    json_t     *include, *item, *names;
    size_t      i;
    ngx_int_t   gated;
    ngx_str_t   mode;

    if (toolset == NULL) {
        return NGX_OK;
    }

    ngx_http_toolgate_catalog_at(pointer, "%s/toolset", base);

    if (ngx_http_toolgate_catalog_known(cat, toolset, pointer,
                                        ngx_http_toolgate_toolset_keys) != NGX_OK
        || ngx_http_toolgate_catalog_string(cat, toolset, pointer,
                                            "approval_mode", 0, &mode) != NGX_OK)
    {
        return NGX_ERROR;
    }

    gated = ngx_http_toolgate_agent_approval(mode.data);

    if (gated == NGX_ERROR) {
        return ngx_http_toolgate_catalog_fault(cat, pointer, "approval_mode",
                                               "invalid_value",
                                               "this is off, full, strict, risk "
                                               "or ask");
    }

    if (ngx_http_toolgate_catalog_array(cat, toolset, pointer, "require_approval",
                                        &names) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (gated == NGX_DECLINED || json_array_size(names) != 0) {
        return ngx_http_toolgate_catalog_error(cat, pointer, "not_implemented",
                                               "approvals are not part of this "
                                               "version: \"approval_mode\" can "
                                               "only be \"off\"");
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


/* NGX_OK: nothing is gated; NGX_DECLINED: something would be; NGX_ERROR: no mode. */
static ngx_int_t
ngx_http_toolgate_agent_approval(u_char *mode)
{
    if (mode == NULL || ngx_strcmp(mode, "off") == 0
        || ngx_strcmp(mode, "full") == 0)
    {
        return NGX_OK;
    }

    if (ngx_strcmp(mode, "strict") == 0 || ngx_strcmp(mode, "risk") == 0
        || ngx_strcmp(mode, "ask") == 0)
    {
        return NGX_DECLINED;
    }

    return NGX_ERROR;
}


static ngx_int_t
ngx_http_toolgate_agent_include(ngx_http_toolgate_catalog_t *cat,
    const char *token, const char *base, ngx_http_toolgate_agent_t *agent)
{
    ngx_uint_t                  i, j, wanted;
    ngx_http_toolgate_tool_t   *tool;
    ngx_http_toolgate_grant_t  *grant;

    for (i = 0; ngx_http_toolgate_include_words[i]; i++) {
        if (strcasecmp(token, ngx_http_toolgate_include_words[i]) == 0) {
            break;
        }
    }

    if (ngx_http_toolgate_include_words[i] == NULL) {
        return ngx_http_toolgate_catalog_fault(cat, base, "include",
                                               "invalid_value",
                                               "not a group, a profile or a "
                                               "tool, like \"sandbox\", "
                                               "\"focused\", \"run_command\"");
    }

    tool = cat->objects->helper_tools.elts;

    for (i = 0; i < cat->objects->helper_tools.nelts; i++) {
        wanted = (strcasecmp(token, (char *) tool[i].name.data) == 0);

        for (j = 0; ngx_http_toolgate_include_groups[j].word; j++) {
            if (strcasecmp(token, ngx_http_toolgate_include_groups[j].word) == 0
                && ngx_strcmp(tool[i].name.data,
                              ngx_http_toolgate_include_groups[j].tool) == 0)
            {
                wanted = 1;
            }
        }

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
