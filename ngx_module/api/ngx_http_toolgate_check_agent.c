/*
 * What a request asks of an agent: which of its tools are offered in this
 * call, the caller's own tools beside them, and its variables.
 */

#include "ngx_http_toolgate_check.h"
#include "ngx_http_toolgate_registry.h"


#define NGX_HTTP_TOOLGATE_CALLER_TOOLS_MAX  (1024 * 1024)


static ngx_int_t ngx_http_toolgate_check_offered(
    ngx_http_toolgate_check_t *c);
static ngx_int_t ngx_http_toolgate_check_caller_tools(
    ngx_http_toolgate_check_t *c);
static ngx_int_t ngx_http_toolgate_check_variables(
    ngx_http_toolgate_check_t *c);
static ngx_int_t ngx_http_toolgate_check_metadata(
    ngx_http_toolgate_check_t *c);
static ngx_int_t ngx_http_toolgate_check_approval(
    ngx_http_toolgate_check_t *c, json_t *own);


ngx_int_t
ngx_http_toolgate_check_agent(ngx_http_toolgate_check_t *c)
{
    if (c->run->prompt.invocation.len
        && (!c->run->prompt.store || c->run->conf->redis == NULL))
    {
        return ngx_http_toolgate_check_fault(c, "invalid_value", "invocation_id",
                                             "Only a run that is stored can be "
                                             "asked for again: \"store\" must "
                                             "not be false, and there must be a "
                                             "store.");
    }

    if (c->run->prompt.session.len && !c->run->prompt.store) {
        return ngx_http_toolgate_check_fault(c, "invalid_value", "store",
                                             "A session keeps what is said in it: "
                                             "\"store\" must not be false.");
    }

    if (c->run->prompt.session.len && c->run->conf->redis == NULL) {
        return ngx_http_toolgate_check_fault(c, "store_unavailable", NULL, NULL);
    }

    if (ngx_http_toolgate_run_for_agent(c->run) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ngx_http_toolgate_check_offered(c) != NGX_OK
        || ngx_http_toolgate_check_metadata(c) != NGX_OK
        || ngx_http_toolgate_check_caller_tools(c) != NGX_OK)
    {
        return NGX_DECLINED;
    }

    return ngx_http_toolgate_check_variables(c);
}


static ngx_int_t
ngx_http_toolgate_check_offered(ngx_http_toolgate_check_t *c)
{
    bool                         enabled;
    ngx_uint_t                   i, client;
    tg_policy_segment_t          segment;
    ngx_http_toolgate_agent_t   *agent;
    ngx_http_toolgate_grant_t   *grant, **slot;

    agent = c->run->agent;
    ngx_memzero(&segment, sizeof(segment));

    ngx_http_toolgate_agent_switches(c->run->project, agent, &enabled,
                                     &segment.actions_paused);
    if (!enabled) {
        return NGX_OK;
    }

    segment.one_shot = (c->run->prompt.session.len == 0);
    segment.allow_actions = c->run->prompt.allow_actions;
    segment.verified_user = (c->run->end_user != NULL);
    segment.allow_anonymous_actions = agent->allow_anonymous_actions;

    /* what the caller's app is to run waits for it in the store */

    client = c->run->prompt.store && c->run->conf->redis
             && c->run->conf->run_host.len && c->run->face->waits;

    grant = agent->grants.elts;

    for (i = 0; i < agent->grants.nelts; i++) {
        if ((grant[i].tool->kind == NGX_HTTP_TOOLGATE_TOOL_CLIENT && !client)
            || !ngx_http_toolgate_tool_switch(c->run->project, grant[i].tool)
            || !tg_policy_offered(&segment, grant[i].tool->effect))
        {
            continue;
        }

        slot = ngx_array_push(&c->run->offered);
        if (slot == NULL) {
            return NGX_ERROR;
        }

        *slot = &grant[i];
    }

    return NGX_OK;
}


/* "metadata" is the caller's own, but for the member that is named after us. */
static ngx_int_t
ngx_http_toolgate_check_metadata(ngx_http_toolgate_check_t *c)
{
    json_t     *metadata;
    ngx_int_t   rc;

    metadata = ngx_http_toolgate_check_tree(c, "metadata",
                                            NGX_HTTP_TOOLGATE_SMALL_FIELD_MAX);
    if (c->code) {
        return NGX_DECLINED;
    }

    rc = ngx_http_toolgate_check_approval(c, json_object_get(metadata,
                                                             "agentengine"));
    json_decref(metadata);

    return rc;
}


/* The strictest of server, agent and request holds; a run that goes on elsewhere has
 * what held when it began. */
static ngx_int_t
ngx_http_toolgate_check_approval(ngx_http_toolgate_check_t *c, json_t *own)
{
    json_t                   *value;
    tg_str_t                  text;
    tg_approval_mode_e        asked;
    ngx_http_toolgate_run_t  *run;

    run = c->run;
    run->approval_mode = ngx_max(run->approval_mode, run->agent->approval_mode);
    run->approval_mode = ngx_max(run->approval_mode,
                                 (tg_approval_mode_e) run->location->approval_mode);

    if (own && !json_is_object(own)) {
        return ngx_http_toolgate_check_fault(c, "invalid_type",
                                             "metadata.agentengine",
                                             "\"agentengine\" is an object.");
    }

    value = json_object_get(own, "tool_approval_mode");

    if (value == NULL || json_is_null(value)) {
        return NGX_OK;
    }

    text = tg_json_get_string(own, "tool_approval_mode");

    if (!tg_approval_mode_parse(text, &asked)) {
        return ngx_http_toolgate_check_fault(c, "invalid_value",
                                             "metadata.agentengine.tool_approval_mode",
                                             "This is off, full, strict, risk or "
                                             "ask.");
    }

    run->approval_mode = ngx_max(run->approval_mode, asked);

    return NGX_OK;
}


/* The caller's tools keep their owner; a name that the agent has, too, would
 * have two. */
static ngx_int_t
ngx_http_toolgate_check_caller_tools(ngx_http_toolgate_check_t *c)
{
    json_t                     *tool;
    size_t                      i, j;
    tg_str_t                    name, own;
    ngx_http_toolgate_grant_t  *grant;

    c->run->prompt.tools =
        ngx_http_toolgate_check_tree(c, "tools",
                                    NGX_HTTP_TOOLGATE_CALLER_TOOLS_MAX);
    if (c->code) {
        return NGX_DECLINED;
    }

    if (c->run->prompt.tools && !json_is_array(c->run->prompt.tools)) {
        return ngx_http_toolgate_check_fault(c, "invalid_type", "tools",
                                             "\"tools\" is a list.");
    }

    grant = c->run->agent->grants.elts;

    json_array_foreach(c->run->prompt.tools, i, tool) {
        snprintf(c->param, sizeof(c->param),
                 c->flat_tools ? "tools[%zu].name" : "tools[%zu].function.name", i);
        name = tg_json_get_string(json_object_get(tool, "function"), "name");

        if (name.len == 0) {
            return ngx_http_toolgate_check_fault(c, "invalid_value", c->param,
                                                 "A tool is of type \"function\" "
                                                 "and has a name.");
        }

        for (j = 0; j < c->run->agent->grants.nelts; j++) {
            own.data = (char *) grant[j].tool->name.data;
            own.len = grant[j].tool->name.len;

            if (tg_str_eq(name, own)) {
                return ngx_http_toolgate_check_fault(c, "tool_name_conflict",
                                                     c->param, NULL);
            }
        }
    }

    c->param[0] = '\0';

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_check_variables(ngx_http_toolgate_check_t *c)
{
    json_t                   *value;
    const char               *key;
    ngx_http_toolgate_run_t  *run;

    run = c->run;
    run->prompt.variables =
        ngx_http_toolgate_check_tree(c, "variables",
                                    NGX_HTTP_TOOLGATE_SMALL_FIELD_MAX);
    if (c->code) {
        return NGX_DECLINED;
    }

    if (run->prompt.variables && !json_is_object(run->prompt.variables)) {
        return ngx_http_toolgate_check_fault(c, "invalid_type", "variables",
                                             "\"variables\" is an object.");
    }

    run->variables = run->agent->variables
                     ? json_copy(run->agent->variables) : json_object();
    if (run->variables == NULL) {
        return NGX_ERROR;
    }

    json_object_foreach(run->prompt.variables, key, value) {
        snprintf(c->param, sizeof(c->param), "variables.%.40s", key);

        if (json_object_get(run->variables, key) == NULL) {
            return ngx_http_toolgate_check_fault(c, "unknown_variable", c->param,
                                                 NULL);
        }

        if (!json_is_string(value)) {
            return ngx_http_toolgate_check_fault(c, "invalid_type", c->param,
                                                 "A variable is a string.");
        }

        if (json_object_set(run->variables, key, value) != 0) {
            return NGX_ERROR;
        }
    }

    c->param[0] = '\0';

    return NGX_OK;
}
