/*
 * Building agents from their JSON: their rules, their grants, and the tool definitions
 * that a model is shown. A definition is written once, here, so that the list of
 * a segment is the same to the byte each time.
 */

#include "ngx_http_toolgate_catalog.h"

#include "tg_clean.h"


#define NGX_HTTP_TOOLGATE_DEFINITION_MAX    (256 * 1024)
#define NGX_HTTP_TOOLGATE_INSTRUCTIONS_MAX  (256 * 1024)


static void ngx_http_toolgate_agent_cleanup(void *data);
static ngx_int_t ngx_http_toolgate_agent_head(ngx_http_toolgate_catalog_t *cat,
    json_t *value, const char *base, ngx_http_toolgate_agent_t *agent);
static ngx_int_t ngx_http_toolgate_agent_gates(ngx_http_toolgate_catalog_t *cat,
    json_t *value, const char *base, ngx_http_toolgate_agent_t *agent);
static ngx_int_t ngx_http_toolgate_agent_tools(ngx_http_toolgate_catalog_t *cat,
    json_t *tools, const char *base, ngx_http_toolgate_agent_t *agent);
static ngx_int_t ngx_http_toolgate_agent_http(ngx_http_toolgate_catalog_t *cat,
    json_t *grant, const char *base, ngx_http_toolgate_agent_t *agent);
static ngx_int_t ngx_http_toolgate_agent_builtin(ngx_http_toolgate_catalog_t *cat,
    json_t *builtin, const char *base, const ngx_http_toolgate_agent_t *agent);
static ngx_int_t ngx_http_toolgate_agent_rules(ngx_http_toolgate_catalog_t *cat,
    json_t *rules, const char *base, tg_str_t *text);
static ngx_int_t ngx_http_toolgate_definition(ngx_pool_t *pool,
    ngx_http_toolgate_tool_t *tool, tg_str_t rules, ngx_str_t *out);
static ngx_int_t ngx_http_toolgate_agent_placeholders(
    ngx_http_toolgate_catalog_t *cat, const char *base,
    ngx_http_toolgate_agent_t *agent, json_t *variables);
static ngx_int_t ngx_http_toolgate_agent_variables(
    ngx_http_toolgate_catalog_t *cat, json_t *value, const char *base);
static ngx_int_t ngx_http_toolgate_agent_knowledge(
    ngx_http_toolgate_catalog_t *cat, json_t *value, const char *base);
static int ngx_libc_cdecl ngx_http_toolgate_grant_cmp(const void *one,
    const void *two);


static const char *const  ngx_http_toolgate_agent_keys[] = {
    "name", "model", "instructions", "variables", "business_hours",
    "actions_paused", "tools", "knowledge", NULL
};

static const char *const  ngx_http_toolgate_tools_keys[] = {
    "enabled", "max_tool_rounds", "allow_anonymous_actions", "builtin", "http",
    "client", "toolset", NULL
};

static const char *const  ngx_http_toolgate_grant_keys[] = {
    "tool", "rules", "hours_only", NULL
};

static const char *const  ngx_http_toolgate_builtin_keys[] = {
    "transfer_to_human", "create_ticket", "flag_conversation",
    "search_knowledge", NULL
};

static const char *const  ngx_http_toolgate_switch_keys[] = {
    "enabled", "rules", NULL
};

/* of the built-in tools only this one can be bound to hours */
static const char *const  ngx_http_toolgate_ticket_keys[] = {
    "enabled", "rules", "hours_only", NULL
};


ngx_http_toolgate_agent_t *
ngx_http_toolgate_catalog_agent(ngx_http_toolgate_catalog_t *cat, json_t *value,
    const char *base)
{
    ngx_pool_cleanup_t         *cln;
    ngx_http_toolgate_agent_t  *agent;

    cln = ngx_pool_cleanup_add(cat->pool, 0);
    agent = ngx_pcalloc(cat->pool, sizeof(ngx_http_toolgate_agent_t));

    if (cln == NULL || agent == NULL
        || ngx_array_init(&agent->grants, cat->pool, 4,
                          sizeof(ngx_http_toolgate_grant_t)) != NGX_OK)
    {
        return NULL;
    }

    cln->handler = ngx_http_toolgate_agent_cleanup;
    cln->data = agent;

    agent->version = 1;
    agent->max_rounds = TG_POLICY_DEFAULT_ROUNDS;
    agent->tools_enabled = 1;

    if (ngx_http_toolgate_catalog_known(cat, value, base,
                                        ngx_http_toolgate_agent_keys) != NGX_OK
        || ngx_http_toolgate_agent_head(cat, value, base, agent) != NGX_OK
        || ngx_http_toolgate_agent_gates(cat, value, base, agent) != NGX_OK)
    {
        return NULL;
    }

    if (json_object_get(value, "tools")
        && ngx_http_toolgate_agent_tools(cat, json_object_get(value, "tools"),
                                         base, agent)
           != NGX_OK)
    {
        return NULL;
    }

    agent->variables = json_incref(json_object_get(value, "variables"));
    agent->doc = json_incref(value);

    return agent;
}


static void
ngx_http_toolgate_agent_cleanup(void *data)
{
    ngx_http_toolgate_agent_t  *agent = data;

    json_decref(agent->variables);
    json_decref(agent->doc);
}


/* Who it is and what it says: name, model, instructions, variables. */
static ngx_int_t
ngx_http_toolgate_agent_head(ngx_http_toolgate_catalog_t *cat, json_t *value,
    const char *base, ngx_http_toolgate_agent_t *agent)
{
    json_t    *variables;
    tg_str_t   scope, name;

    variables = json_object_get(value, "variables");

    if (ngx_http_toolgate_catalog_string(cat, value, base, "name", 1, &agent->name)
        != NGX_OK
        || ngx_http_toolgate_catalog_model(cat, value, base, agent) != NGX_OK
        || ngx_http_toolgate_catalog_string(cat, value, base, "instructions", 0,
                                            &agent->instructions) != NGX_OK
        || ngx_http_toolgate_agent_variables(cat, variables, base) != NGX_OK)
    {
        return NGX_ERROR;
    }

    name.len = agent->name.len;
    name.data = (char *) agent->name.data;

    if (!tg_id_label_valid(name)) {
        return ngx_http_toolgate_catalog_fault(cat, base, "name",
                                               "invalid_value",
                                               "an agent's name has 1 to 64 of "
                                               "[A-Za-z0-9_.:-]");
    }

    scope.len = cat->project->name.len;
    scope.data = (char *) cat->project->name.data;
    tg_id_derive("agent_", scope, name, agent->id);

    if (agent->instructions.len > NGX_HTTP_TOOLGATE_INSTRUCTIONS_MAX) {
        return ngx_http_toolgate_catalog_fault(cat, base, "instructions",
                                               "invalid_value",
                                               "\"instructions\" is over 256 KiB");
    }

    return ngx_http_toolgate_agent_placeholders(cat, base, agent, variables);
}


/* When it may act, and what it knows. */
static ngx_int_t
ngx_http_toolgate_agent_gates(ngx_http_toolgate_catalog_t *cat, json_t *value,
    const char *base, ngx_http_toolgate_agent_t *agent)
{
    ngx_uint_t  paused;

    paused = 0;

    if (ngx_http_toolgate_agent_hours(cat, value, base, agent) != NGX_OK
        || ngx_http_toolgate_agent_knowledge(cat,
                                json_object_get(value, "knowledge"), base)
           != NGX_OK
        || ngx_http_toolgate_catalog_flag(cat, value, base, "actions_paused",
                                          &paused) != NGX_OK)
    {
        return NGX_ERROR;
    }

    agent->actions_paused = paused;

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_agent_knowledge(ngx_http_toolgate_catalog_t *cat, json_t *value,
    const char *base)
{
    char     pointer[NGX_HTTP_TOOLGATE_POINTER_MAX];
    json_t  *sources;

    static const char *const  keys[] = { "sources", NULL };

    if (value == NULL) {
        return NGX_OK;
    }

    ngx_http_toolgate_catalog_at(pointer, "%s/knowledge", base);

    if (ngx_http_toolgate_catalog_known(cat, value, pointer, keys) != NGX_OK
        || ngx_http_toolgate_catalog_array(cat, value, pointer, "sources", &sources)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (json_array_size(sources) != 0) {
        return ngx_http_toolgate_catalog_error(cat, pointer, "not_implemented",
                                               "knowledge is not part of this "
                                               "version");
    }

    return NGX_OK;
}


/* A {{var.name}} that no variable fills would reach the model as it is written. */
static ngx_int_t
ngx_http_toolgate_agent_placeholders(ngx_http_toolgate_catalog_t *cat,
    const char *base, ngx_http_toolgate_agent_t *agent, json_t *variables)
{
    char         name[NGX_HTTP_TOOLGATE_VARIABLE_NAME_MAX + 1];
    char        *p, *end;
    size_t       len;

    p = (char *) agent->instructions.data;

    while (p && (p = strstr(p, "{{var.")) != NULL) {
        p += 6;
        end = strstr(p, "}}");

        if (end == NULL) {
            return NGX_OK;
        }

        len = (size_t) (end - p);
        ngx_memzero(name, sizeof(name));

        if (len <= NGX_HTTP_TOOLGATE_VARIABLE_NAME_MAX) {
            ngx_memcpy(name, p, len);
        }

        if (json_object_get(variables, name) == NULL) {
            return ngx_http_toolgate_catalog_fault(cat, base, "instructions",
                                                   "unknown_placeholder",
                                                   "\"variables\" has no value "
                                                   "for a {{var.name}} here");
        }

        p = end;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_agent_variables(ngx_http_toolgate_catalog_t *cat, json_t *value,
    const char *base)
{
    char         pointer[NGX_HTTP_TOOLGATE_POINTER_MAX];
    json_t      *member;
    const char  *key;

    if (value == NULL) {
        return NGX_OK;
    }

    if (!json_is_object(value)) {
        return ngx_http_toolgate_catalog_fault(cat, base, "variables",
                                               "invalid_type",
                                               "\"variables\" is an object");
    }

    json_object_foreach(value, key, member) {
        if (!json_is_string(member)) {
            ngx_http_toolgate_catalog_at(pointer, "%s/variables/%s", base, key);
            return ngx_http_toolgate_catalog_error(cat, pointer, "invalid_type",
                                                   "variables are strings");
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_agent_tools(ngx_http_toolgate_catalog_t *cat, json_t *tools,
    const char *base, ngx_http_toolgate_agent_t *agent)
{
    char         pointer[NGX_HTTP_TOOLGATE_POINTER_MAX];
    size_t       i;
    json_t      *value, *client, *http;
    ngx_uint_t   enabled, anonymous;

    enabled = 1;
    anonymous = 0;
    ngx_http_toolgate_catalog_at(pointer, "%s/tools", base);

    if (ngx_http_toolgate_catalog_known(cat, tools, pointer,
                                        ngx_http_toolgate_tools_keys) != NGX_OK
        || ngx_http_toolgate_catalog_flag(cat, tools, pointer, "enabled", &enabled)
           != NGX_OK
        || ngx_http_toolgate_catalog_flag(cat, tools, pointer,
                                          "allow_anonymous_actions", &anonymous)
           != NGX_OK
        || ngx_http_toolgate_catalog_array(cat, tools, pointer, "client", &client)
           != NGX_OK
        || ngx_http_toolgate_catalog_array(cat, tools, pointer, "http", &http)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    agent->tools_enabled = enabled;
    agent->allow_anonymous_actions = anonymous;

    value = json_object_get(tools, "max_tool_rounds");

    if (value) {
        if (!json_is_integer(value) || json_integer_value(value) < 1
            || json_integer_value(value) > TG_POLICY_MAX_ROUNDS)
        {
            return ngx_http_toolgate_catalog_fault(cat, pointer, "max_tool_rounds",
                                                   "invalid_value",
                                                   "\"max_tool_rounds\" is 1 to 5");
        }

        agent->max_rounds = (ngx_uint_t) json_integer_value(value);
    }

    if (ngx_http_toolgate_agent_builtin(cat, json_object_get(tools, "builtin"),
                                        pointer, agent) != NGX_OK
        || ngx_http_toolgate_agent_toolset(cat, json_object_get(tools, "toolset"),
                                           pointer, agent) != NGX_OK)
    {
        return NGX_ERROR;
    }

    json_array_foreach(http, i, value) {
        ngx_http_toolgate_catalog_at(pointer, "%s/tools/http/%zu", base, i);

        if (ngx_http_toolgate_agent_http(cat, value, pointer, agent) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    ngx_http_toolgate_catalog_at(pointer, "%s/tools", base);

    if (ngx_http_toolgate_agent_client(cat, client, pointer, agent) != NGX_OK
        || ngx_http_toolgate_agent_named(cat, json_object_get(tools, "toolset"),
                                         pointer, agent) != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_qsort(agent->grants.elts, agent->grants.nelts,
              sizeof(ngx_http_toolgate_grant_t), ngx_http_toolgate_grant_cmp);

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_agent_builtin(ngx_http_toolgate_catalog_t *cat, json_t *builtin,
    const char *base, const ngx_http_toolgate_agent_t *agent)
{
    char               pointer[NGX_HTTP_TOOLGATE_POINTER_MAX];
    json_t            *value;
    tg_str_t           rules;
    ngx_uint_t         enabled, hours_only;
    const char        *key;
    const char *const *keys;

    if (builtin == NULL) {
        return NGX_OK;
    }

    ngx_http_toolgate_catalog_at(pointer, "%s/builtin", base);

    if (ngx_http_toolgate_catalog_known(cat, builtin, pointer,
                                        ngx_http_toolgate_builtin_keys) != NGX_OK)
    {
        return NGX_ERROR;
    }

    json_object_foreach(builtin, key, value) {
        ngx_http_toolgate_catalog_at(pointer, "%s/builtin/%s", base, key);

        keys = (ngx_strcmp(key, "create_ticket") == 0)
               ? ngx_http_toolgate_ticket_keys : ngx_http_toolgate_switch_keys;

        if (ngx_http_toolgate_catalog_known(cat, value, pointer, keys) != NGX_OK
            || ngx_http_toolgate_agent_hours_only(cat, value, pointer, agent,
                                                  &hours_only) != NGX_OK
            || ngx_http_toolgate_catalog_flag(cat, value, pointer, "enabled",
                                              &enabled) != NGX_OK
            || ngx_http_toolgate_agent_rules(cat, json_object_get(value, "rules"),
                                             pointer, &rules) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_agent_http(ngx_http_toolgate_catalog_t *cat, json_t *grant,
    const char *base, ngx_http_toolgate_agent_t *agent)
{
    ngx_str_t                  name;
    ngx_uint_t                 hours_only;
    ngx_http_toolgate_tool_t  *tool;

    if (ngx_http_toolgate_catalog_known(cat, grant, base,
                                        ngx_http_toolgate_grant_keys) != NGX_OK
        || ngx_http_toolgate_catalog_string(cat, grant, base, "tool", 1, &name)
           != NGX_OK
        || ngx_http_toolgate_agent_hours_only(cat, grant, base, agent, &hours_only)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    tool = ngx_http_toolgate_catalog_find_tool(cat, &name);

    if (tool == NULL) {
        return ngx_http_toolgate_catalog_fault(cat, base, "tool",
                                               "tool_not_found",
                                               "no tool has this name or id");
    }

    return ngx_http_toolgate_agent_grant(cat, agent, tool,
                                         json_object_get(grant, "rules"),
                                         hours_only, base);
}


static ngx_int_t
ngx_http_toolgate_agent_rules(ngx_http_toolgate_catalog_t *cat, json_t *rules,
    const char *base, tg_str_t *text)
{
    if (rules && !json_is_string(rules)) {
        return ngx_http_toolgate_catalog_fault(cat, base, "rules",
                                               "invalid_type",
                                               "\"rules\" is a string");
    }

    text->data = json_string_value(rules);
    text->len = json_string_length(rules);

    if (tg_clean_length(*text) > NGX_HTTP_TOOLGATE_RULES_MAX) {
        return ngx_http_toolgate_catalog_fault(cat, base, "rules",
                                               "rules_too_long",
                                               "\"rules\" has over 4000 "
                                               "characters");
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_toolgate_agent_grant(ngx_http_toolgate_catalog_t *cat,
    ngx_http_toolgate_agent_t *agent, ngx_http_toolgate_tool_t *tool,
    json_t *rules, ngx_uint_t hours_only, const char *base)
{
    tg_str_t                    text;
    ngx_uint_t                  i;
    ngx_http_toolgate_grant_t  *grant;

    if (ngx_http_toolgate_agent_rules(cat, rules, base, &text) != NGX_OK) {
        return NGX_ERROR;
    }

    grant = agent->grants.elts;

    for (i = 0; i < agent->grants.nelts; i++) {
        if (grant[i].tool->name.len == tool->name.len
            && ngx_memcmp(grant[i].tool->name.data, tool->name.data,
                          tool->name.len) == 0)
        {
            return ngx_http_toolgate_catalog_error(cat, base,
                                                   "tool_name_conflict",
                                                   "the agent has a tool of this "
                                                   "name already");
        }
    }

    if (agent->grants.nelts == NGX_HTTP_TOOLGATE_AGENT_TOOLS_MAX) {
        return ngx_http_toolgate_catalog_error(cat, base, "invalid_value",
                                               "the agent has too many tools");
    }

    grant = ngx_array_push(&agent->grants);
    if (grant == NULL) {
        return NGX_ERROR;
    }

    grant->tool = tool;
    grant->hours_only = hours_only;
    grant->approve = 0;

    return ngx_http_toolgate_definition(cat->pool, tool, text,
                                        &grant->definition);
}


static ngx_int_t
ngx_http_toolgate_definition(ngx_pool_t *pool, ngx_http_toolgate_tool_t *tool,
    tg_str_t rules, ngx_str_t *out)
{
    tg_buf_t   text, description;
    ngx_int_t  rc;

    static const char  heading[] =
        "\n\nThis company\xe2\x80\x99s rules for this action:\n";

    tg_buf_init(&text, NGX_HTTP_TOOLGATE_DEFINITION_MAX);
    tg_buf_init(&description, NGX_HTTP_TOOLGATE_DEFINITION_MAX);

    tg_buf_append(&description, tool->description.data, tool->description.len);

    if (rules.len) {
        tg_buf_cstr(&description, heading);
        tg_buf_str(&description, rules);
    }

    tg_buf_cstr(&text, "{\"type\":\"function\",\"function\":{\"name\":");
    tg_buf_json_string(&text, (tg_str_t) { tool->name.len,
                                           (char *) tool->name.data });
    tg_buf_cstr(&text, ",\"description\":");
    tg_buf_json_string(&text, tg_buf_get(&description));
    tg_buf_cstr(&text, ",\"parameters\":");
    tg_json_dump(tool->parameters, &text);
    tg_buf_cstr(&text, "}}");

    rc = NGX_ERROR;

    if (text.error == TG_OK && description.error == TG_OK) {
        out->data = ngx_pnalloc(pool, text.len);

        if (out->data) {
            ngx_memcpy(out->data, text.data, text.len);
            out->len = text.len;
            rc = NGX_OK;
        }
    }

    tg_buf_free(&text);
    tg_buf_free(&description);

    return rc;
}


static int ngx_libc_cdecl
ngx_http_toolgate_grant_cmp(const void *one, const void *two)
{
    const ngx_http_toolgate_grant_t  *first = one, *second = two;

    size_t     n;
    ngx_int_t  rc;

    n = ngx_min(first->tool->name.len, second->tool->name.len);
    rc = ngx_memcmp(first->tool->name.data, second->tool->name.data, n);

    if (rc == 0) {
        rc = (ngx_int_t) first->tool->name.len
             - (ngx_int_t) second->tool->name.len;
    }

    return (int) rc;
}
