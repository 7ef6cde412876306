/*
 * Looking objects up: projects, agents, keys, the helper's tools. Building them
 * from files is _catalog.c's job.
 */

#include "ngx_http_toolgate_catalog.h"
#include "ngx_http_toolgate_helper_table.h"

#include <openssl/crypto.h>


static void ngx_http_toolgate_helper_tools_cleanup(void *data);
static void ngx_http_toolgate_agent_unhold(void *data);


ngx_int_t
ngx_http_toolgate_helper_tools(ngx_conf_t *cf,
    ngx_http_toolgate_objects_t *objects)
{
    ngx_uint_t                 i;
    tg_json_error_t            error;
    tg_schema_errors_t         errors;
    ngx_pool_cleanup_t        *cln;
    ngx_http_toolgate_tool_t  *tool;

    cln = ngx_pool_cleanup_add(cf->pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_toolgate_helper_tools_cleanup;
    cln->data = &objects->helper_tools;

    if (ngx_array_init(&objects->helper_tools, cf->pool, 16,
                       sizeof(ngx_http_toolgate_tool_t))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    for (i = 0; ngx_http_toolgate_helper_table[i].name; i++) {
        tool = ngx_array_push(&objects->helper_tools);
        if (tool == NULL) {
            return NGX_ERROR;
        }

        ngx_memzero(tool, sizeof(ngx_http_toolgate_tool_t));
        tool->kind = NGX_HTTP_TOOLGATE_TOOL_HELPER;
        tool->name.data = (u_char *) ngx_http_toolgate_helper_table[i].name;
        tool->name.len = ngx_strlen(tool->name.data);
        tool->description.data =
            (u_char *) ngx_http_toolgate_helper_table[i].description;
        tool->description.len = ngx_strlen(tool->description.data);
        tool->effect = ngx_http_toolgate_helper_table[i].effect;
        tool->enabled = 1;
        tool->parameters = tg_json_load(
            tg_str_of(ngx_http_toolgate_helper_table[i].parameters), &error);

        if (tool->parameters) {
            tool->schema = tg_schema_compile(tool->parameters, TG_SCHEMA_2020_12,
                                             &errors);
        }

        if (tool->schema == NULL) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static void
ngx_http_toolgate_helper_tools_cleanup(void *data)
{
    ngx_array_t *tools = data;

    ngx_uint_t                 i;
    ngx_http_toolgate_tool_t  *tool;

    tool = tools->elts;

    for (i = 0; i < tools->nelts; i++) {
        tg_schema_free(tool[i].schema);
        json_decref(tool[i].parameters);
    }
}


ngx_http_toolgate_project_t *
ngx_http_toolgate_project(ngx_http_toolgate_objects_t *objects, ngx_str_t *name,
    ngx_str_t *master_key)
{
    ngx_uint_t                     i;
    ngx_pool_t                    *pool;
    ngx_http_toolgate_project_t  **slot, *project;

    slot = objects->projects.elts;

    for (i = 0; i < objects->projects.nelts; i++) {
        if (slot[i]->name.len == name->len
            && ngx_memcmp(slot[i]->name.data, name->data, name->len) == 0)
        {
            return slot[i];
        }
    }

    pool = objects->pool;
    project = ngx_pcalloc(pool, sizeof(ngx_http_toolgate_project_t));

    if (project == NULL
        || ngx_http_toolgate_project_init(project, pool, name, master_key)
           != NGX_OK)
    {
        return NULL;
    }

    slot = ngx_array_push(&objects->projects);
    if (slot == NULL) {
        return NULL;
    }

    *slot = project;

    return project;
}


ngx_int_t
ngx_http_toolgate_project_init(ngx_http_toolgate_project_t *project,
    ngx_pool_t *pool, ngx_str_t *name, ngx_str_t *master_key)
{
    if (ngx_array_init(&project->agents, pool, 4,
                       sizeof(ngx_http_toolgate_agent_t *)) != NGX_OK
        || ngx_array_init(&project->tools, pool, 4,
                          sizeof(ngx_http_toolgate_tool_t *)) != NGX_OK
        || ngx_array_init(&project->secrets, pool, 4,
                          sizeof(ngx_http_toolgate_secret_t)) != NGX_OK
        || ngx_array_init(&project->end_user_keys, pool, 4,
                          sizeof(tg_jwt_key_t *)) != NGX_OK)
    {
        return NGX_ERROR;
    }

    project->name = *name;

    return ngx_http_toolgate_signing_derive(project, master_key);
}


/*
 * Every node with the same master key signs alike before anything is stored, and
 * also without a store.
 */
ngx_int_t
ngx_http_toolgate_signing_derive(ngx_http_toolgate_project_t *project,
    ngx_str_t *master_key)
{
    tg_rc_e   rc;
    tg_buf_t  secret;

    project->previous_expires = 0;
    project->can_sign = 0;

    if (master_key->len == 0) {
        return NGX_OK;
    }

    tg_buf_init(&secret, TG_SIGN_SECRET_MAX);

    rc = tg_sign_derive((tg_str_t) { master_key->len, (char *) master_key->data },
                        (tg_str_t) { project->name.len,
                                     (char *) project->name.data },
                        &secret);

    if (rc == TG_OK) {
        ngx_memcpy(project->signing_text, secret.data, secret.len);
        project->signing_secret.data = (u_char *) project->signing_text;
        project->signing_secret.len = secret.len;
    }

    tg_buf_free(&secret);

    if (rc != TG_OK) {
        return NGX_ERROR;
    }

    if (tg_sign_key_parse((tg_str_t) { project->signing_secret.len,
                                       project->signing_text },
                          &project->signing_key)
        != TG_OK)
    {
        return NGX_ERROR;
    }

    project->can_sign = 1;

    return NGX_OK;
}


ngx_http_toolgate_secret_t *
ngx_http_toolgate_secret_find(ngx_http_toolgate_project_t *project, ngx_str_t *name)
{
    ngx_uint_t                   i;
    ngx_http_toolgate_secret_t  *secret;

    secret = project->secrets.elts;

    for (i = 0; i < project->secrets.nelts; i++) {
        if (secret[i].name.len == name->len
            && ngx_memcmp(secret[i].name.data, name->data, name->len) == 0)
        {
            return &secret[i];
        }
    }

    return NULL;
}


ngx_http_toolgate_agent_t *
ngx_http_toolgate_agent_find(ngx_http_toolgate_project_t *project,
    ngx_str_t *name)
{
    ngx_uint_t                   i;
    ngx_http_toolgate_agent_t  **agent;

    agent = project->agents.elts;

    for (i = 0; i < project->agents.nelts; i++) {
        if ((agent[i]->name.len == name->len
             && ngx_memcmp(agent[i]->name.data, name->data, name->len) == 0)
            || (ngx_strlen(agent[i]->id) == name->len
                && ngx_memcmp(agent[i]->id, name->data, name->len) == 0))
        {
            return agent[i];
        }
    }

    return NULL;
}


ngx_int_t
ngx_http_toolgate_agent_hold(ngx_pool_t *pool, ngx_http_toolgate_agent_t *agent)
{
    ngx_pool_cleanup_t  *cln;

    if (agent->pool == NULL) {
        return NGX_OK;
    }

    cln = ngx_pool_cleanup_add(pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_toolgate_agent_unhold;
    cln->data = agent;
    agent->refs++;

    return NGX_OK;
}


static void
ngx_http_toolgate_agent_unhold(void *data)
{
    ngx_http_toolgate_agent_release(data);
}


void
ngx_http_toolgate_agent_release(ngx_http_toolgate_agent_t *agent)
{
    if (agent->pool && --agent->refs == 0) {
        ngx_destroy_pool(agent->pool);
    }
}


ngx_http_toolgate_key_t *
ngx_http_toolgate_key_find(ngx_http_toolgate_objects_t *objects,
    u_char sha256[NGX_HTTP_TOOLGATE_KEY_SHA256_LEN])
{
    ngx_uint_t                i;
    ngx_http_toolgate_key_t  *key, *found;

    found = NULL;
    key = objects->keys.elts;

    for (i = 0; i < objects->keys.nelts; i++) {
        if (CRYPTO_memcmp(key[i].sha256, sha256,
                          NGX_HTTP_TOOLGATE_KEY_SHA256_LEN) == 0)
        {
            found = &key[i];
        }
    }

    return found;
}


ngx_uint_t
ngx_http_toolgate_scope(const char *name)
{
    ngx_uint_t  i;

    static const struct {
        const char  *name;
        ngx_uint_t   bit;
    } scopes[] = {
        { "admin", NGX_HTTP_TOOLGATE_SCOPE_ADMIN },
        { "run", NGX_HTTP_TOOLGATE_SCOPE_RUN },
        { "approve", NGX_HTTP_TOOLGATE_SCOPE_APPROVE },
        { "tools", NGX_HTTP_TOOLGATE_SCOPE_TOOLS }
    };

    for (i = 0; name && i < sizeof(scopes) / sizeof(scopes[0]); i++) {
        if (ngx_strcmp(name, scopes[i].name) == 0) {
            return scopes[i].bit;
        }
    }

    return 0;
}
