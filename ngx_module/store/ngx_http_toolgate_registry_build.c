/*
 * What a stored object is good for: keys that callers show, agents that run, the
 * secret that signs. Built when the object changes; an agent that runs still use
 * stays until the last of them has ended.
 */

#include "ngx_http_toolgate_registry_internal.h"

#include "tg_secretbox.h"


static void ngx_http_toolgate_build_key(ngx_http_toolgate_object_t *object);
static void ngx_http_toolgate_build_agent(ngx_http_toolgate_object_t *object);
static void ngx_http_toolgate_build_signing(ngx_http_toolgate_object_t *object);
static void ngx_http_toolgate_build_user_key(ngx_http_toolgate_object_t *object);
static ngx_int_t ngx_http_toolgate_build_secret(ngx_http_toolgate_object_t *object,
    const char *member, tg_sign_key_t *key, ngx_str_t *text,
    char storage[TG_SIGN_SECRET_MAX]);
static ngx_int_t ngx_http_toolgate_freeze_tool(
    ngx_http_toolgate_project_t *project, ngx_str_t *name, json_t *tools,
    size_t *bytes);
static ngx_uint_t ngx_http_toolgate_freeze_has(json_t *tools, json_t *copy);
static ngx_int_t ngx_http_toolgate_frozen_tools(ngx_http_toolgate_catalog_t *cat,
    json_t *tools);


void
ngx_http_toolgate_object_build(ngx_http_toolgate_object_t *object)
{
    switch (object->kind) {

    case NGX_HTTP_TOOLGATE_KIND_API_KEY:
        ngx_http_toolgate_build_key(object);
        break;

    case NGX_HTTP_TOOLGATE_KIND_AGENT:
        ngx_http_toolgate_build_agent(object);
        break;

    case NGX_HTTP_TOOLGATE_KIND_SIGNING:
        ngx_http_toolgate_build_signing(object);
        break;

    case NGX_HTTP_TOOLGATE_KIND_USER_KEY:
        ngx_http_toolgate_build_user_key(object);
        break;

    default:
        break;
    }
}


void
ngx_http_toolgate_object_drop(ngx_http_toolgate_object_t *object)
{
    if (object->kind == NGX_HTTP_TOOLGATE_KIND_AGENT && object->built) {
        ngx_http_toolgate_agent_release(object->built);
        object->built = NULL;
    }

    if (object->kind == NGX_HTTP_TOOLGATE_KIND_USER_KEY) {
        tg_jwt_key_free(object->built);
        object->built = NULL;
    }

    if (object->kind == NGX_HTTP_TOOLGATE_KIND_SIGNING) {
        (void) ngx_http_toolgate_signing_derive(object->project,
                       &ngx_http_toolgate_the_registry.conf->catalog.master_key);
    }
}


static void
ngx_http_toolgate_build_key(ngx_http_toolgate_object_t *object)
{
    size_t                    i;
    json_t                   *scopes;
    tg_str_t                  hex, text;
    ngx_int_t                 n;
    ngx_http_toolgate_key_t  *key;

    key = ngx_pcalloc(object->pool, sizeof(ngx_http_toolgate_key_t));
    if (key == NULL) {
        return;
    }

    hex = tg_json_get_string(object->doc, "sha256");

    for (i = 0; i < NGX_HTTP_TOOLGATE_KEY_SHA256_LEN; i++) {
        n = (hex.len == 2 * NGX_HTTP_TOOLGATE_KEY_SHA256_LEN)
            ? ngx_hextoi((u_char *) hex.data + 2 * i, 2) : NGX_ERROR;

        if (n == NGX_ERROR) {
            return;
        }

        key->sha256[i] = (u_char) n;
    }

    scopes = json_object_get(object->doc, "scopes");

    for (i = 0; i < json_array_size(scopes); i++) {
        key->scopes |= ngx_http_toolgate_scope(
                           json_string_value(json_array_get(scopes, i)));
    }

    text = tg_json_get_string(object->doc, "name");
    key->name.data = (u_char *) text.data;
    key->name.len = text.len;

    text = tg_json_get_string(object->doc, "account_id");
    key->account.data = (u_char *) text.data;
    key->account.len = text.len;

    key->project = object->project;
    object->built = key;
}


static void
ngx_http_toolgate_build_agent(ngx_http_toolgate_object_t *object)
{
    json_t                       *frozen;
    ngx_pool_t                   *pool;
    ngx_http_toolgate_agent_t    *agent;
    ngx_http_toolgate_catalog_t   cat;

    frozen = json_object_get(object->doc, "published");

    if (!json_is_object(frozen)) {
        return;
    }

    pool = ngx_create_pool(NGX_DEFAULT_POOL_SIZE,
                           ngx_http_toolgate_the_registry.log);
    if (pool == NULL) {
        return;
    }

    ngx_http_toolgate_registry_builder(&cat, pool, object->project);
    cat.stored = 1;
    agent = ngx_http_toolgate_agent_build(&cat, frozen, &object->id);

    if (agent == NULL) {
        ngx_log_error(NGX_LOG_ERR, ngx_http_toolgate_the_registry.log, 0,
                      "toolgate: published agent \"%V\" cannot run here: %s: %s "
                      "at \"%s\"", &object->id,
                      cat.code ? cat.code : "no memory", cat.reason, cat.pointer);
        ngx_destroy_pool(pool);
        return;
    }

    object->built = agent;
}


/* The same description as in a catalog file, its secret sealed. */
static void
ngx_http_toolgate_build_user_key(ngx_http_toolgate_object_t *object)
{
    size_t               i;
    json_t              *description;
    tg_buf_t             plain;
    tg_str_t             sealed;
    ngx_int_t            rc;
    tg_jwt_key_error_t   error;

    static const char *const  members[] = {
        "name", "alg", "kid", "issuer", "audience", "public_key"
    };

    description = json_object();

    for (i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        if (json_object_get(object->doc, members[i])) {
            (void) json_object_set(description, members[i],
                                   json_object_get(object->doc, members[i]));
        }
    }

    rc = NGX_OK;
    sealed = tg_json_get_string(object->doc, "secret");
    tg_buf_init(&plain, TG_SECRETBOX_PLAIN_MAX);

    if (sealed.len) {
        rc = ngx_http_toolgate_unseal(object->project, "end_user_key", &object->id,
                                      sealed, &plain);
        (void) json_object_set_new(description, "secret",
                                   json_stringn(plain.data, plain.len));
    }

    error.reason = "its secret cannot be opened: was it stored under another "
                   "master key?";
    object->built = (rc == NGX_OK) ? tg_jwt_key_parse(description, &error) : NULL;

    if (object->built == NULL) {
        ngx_log_error(NGX_LOG_ERR, ngx_http_toolgate_the_registry.log, 0,
                      "toolgate: end-user key \"%V\" of project \"%V\" is not "
                      "used: %s", &object->id, &object->project->name,
                      error.reason);
    }

    tg_secretbox_wipe(&plain);
    json_decref(description);
}


ngx_uint_t
ngx_http_toolgate_user_keys(ngx_http_toolgate_project_t *project,
    tg_jwt_key_t *keys[NGX_HTTP_TOOLGATE_USER_KEYS_MAX])
{
    ngx_uint_t                   i, n;
    ngx_queue_t                 *list, *q;
    tg_jwt_key_t               **known;
    ngx_http_toolgate_object_t  *object;

    n = 0;
    known = project->end_user_keys.elts;

    for (i = 0; i < project->end_user_keys.nelts && n < TG_JWT_KEYS_MAX; i++) {
        keys[n++] = known[i];
    }

    list = ngx_http_toolgate_registry_list(project,
                                           NGX_HTTP_TOOLGATE_KIND_USER_KEY);

    for (q = list ? ngx_queue_head(list) : NULL;
         q && q != list && n < NGX_HTTP_TOOLGATE_USER_KEYS_MAX;
         q = ngx_queue_next(q))
    {
        object = ngx_queue_data(q, ngx_http_toolgate_object_t, queue);

        if (object->built) {
            keys[n++] = object->built;
        }
    }

    return n;
}


void
ngx_http_toolgate_registry_builder(ngx_http_toolgate_catalog_t *cat,
    ngx_pool_t *pool, ngx_http_toolgate_project_t *project)
{
    ngx_http_toolgate_main_conf_t *conf = ngx_http_toolgate_the_registry.conf;

    ngx_memzero(cat, sizeof(ngx_http_toolgate_catalog_t));
    cat->pool = pool;
    cat->log = ngx_http_toolgate_the_registry.log;
    cat->conf = &conf->catalog;
    cat->objects = &conf->objects;
    cat->project = project;
}


/* frozen is {"version","agent":{…},"tools":[{"id","stored","tool":{…}}]}. */
ngx_http_toolgate_agent_t *
ngx_http_toolgate_agent_build(ngx_http_toolgate_catalog_t *cat, json_t *frozen,
    ngx_str_t *id)
{
    json_t                     *value;
    ngx_http_toolgate_agent_t  *agent;

    cat->tools = ngx_array_create(cat->pool, 4, sizeof(ngx_http_toolgate_tool_t *));

    if (cat->tools == NULL
        || ngx_http_toolgate_frozen_tools(cat, json_object_get(frozen, "tools"))
           != NGX_OK)
    {
        return NULL;
    }

    agent = ngx_http_toolgate_catalog_agent(cat, json_object_get(frozen, "agent"),
                                            "");
    if (agent == NULL) {
        return NULL;
    }

    value = json_object_get(frozen, "version");
    agent->version = (ngx_uint_t) json_integer_value(value);
    agent->pool = cat->pool;
    agent->refs = 1;
    agent->stored = 1;

    (void) ngx_cpystrn((u_char *) agent->id, id->data,
                       ngx_min(id->len + 1, TG_ID_MAX_LEN));

    return agent;
}


static ngx_int_t
ngx_http_toolgate_frozen_tools(ngx_http_toolgate_catalog_t *cat, json_t *tools)
{
    size_t                     i;
    json_t                    *frozen;
    tg_str_t                   id;
    ngx_http_toolgate_tool_t  *tool, **slot;

    if (json_is_null(tools)) {
        return ngx_http_toolgate_catalog_error(cat, "/tools/http", "invalid_value",
                                               "the definitions of the agent's "
                                               "HTTP tools have over 512 KiB "
                                               "together");
    }

    json_array_foreach(tools, i, frozen) {
        tool = ngx_http_toolgate_catalog_tool(cat, json_object_get(frozen, "tool"),
                                              "/tools/http");
        slot = ngx_array_push(cat->tools);

        if (tool == NULL || slot == NULL) {
            return NGX_ERROR;
        }

        *slot = tool;
        id = tg_json_get_string(frozen, "id");
        tool->stored = json_is_true(json_object_get(frozen, "stored"));

        if (tool->stored && id.len < TG_ID_MAX_LEN) {
            ngx_memcpy(tool->id, id.data, id.len);
            tool->id[id.len] = '\0';
        }
    }

    return NGX_OK;
}


json_t *
ngx_http_toolgate_agent_freeze(ngx_http_toolgate_project_t *project, json_t *draft,
    ngx_uint_t version)
{
    size_t       i, bytes;
    json_t      *frozen, *tools, *grant;
    tg_str_t     name;
    ngx_str_t    word;

    bytes = 0;
    frozen = json_pack("{s:I,s:O,s:[]}", "version", (json_int_t) version, "agent",
                       draft, "tools");
    if (frozen == NULL) {
        return NULL;
    }

    tools = json_object_get(frozen, "tools");

    json_array_foreach(json_object_get(json_object_get(draft, "tools"), "http"), i,
                       grant)
    {
        /* one too many is enough to be refused; each is compiled before that */

        if (json_array_size(tools) > NGX_HTTP_TOOLGATE_AGENT_TOOLS_MAX) {
            break;
        }

        name = tg_json_get_string(grant, "tool");
        word.data = (u_char *) name.data;
        word.len = name.len;

        if (ngx_http_toolgate_freeze_tool(project, &word, tools, &bytes) != NGX_OK) {
            json_decref(frozen);
            return NULL;
        }

        if (bytes > NGX_HTTP_TOOLGATE_OBJECT_BYTES_MAX) {
            /* building refuses it: compiling all of them would take too long */
            (void) json_object_set_new(frozen, "tools", json_null());
            break;
        }
    }

    return frozen;
}


static ngx_int_t
ngx_http_toolgate_freeze_tool(ngx_http_toolgate_project_t *project,
    ngx_str_t *name, json_t *tools, size_t *bytes)
{
    json_t                       *copy;
    ngx_http_toolgate_tool_t     *tool;
    ngx_http_toolgate_object_t   *object;
    ngx_http_toolgate_catalog_t   cat;

    object = ngx_http_toolgate_registry_named(project, NGX_HTTP_TOOLGATE_KIND_TOOL,
                                              name);
    if (object == NULL) {
        object = ngx_http_toolgate_registry_get(project,
                                                NGX_HTTP_TOOLGATE_KIND_TOOL, name);
    }

    if (object) {
        copy = json_pack("{s:s%,s:b,s:O}", "id", (char *) object->id.data,
                         object->id.len, "stored", 1,
                         "tool", json_object_get(object->doc, "tool"));

    } else {
        ngx_memzero(&cat, sizeof(cat));
        cat.tools = &project->tools;
        tool = ngx_http_toolgate_catalog_find_tool(&cat, name);

        if (tool == NULL) {
            return NGX_OK;
        }

        copy = json_pack("{s:s,s:b,s:O}", "id", tool->id, "stored", 0, "tool",
                         tool->doc);
    }

    if (ngx_http_toolgate_freeze_has(tools, copy)) {
        json_decref(copy);
        return NGX_OK;
    }

    *bytes += json_dumpb(copy, NULL, 0, JSON_COMPACT);

    return (copy && json_array_append_new(tools, copy) == 0) ? NGX_OK : NGX_ERROR;
}


/* A tool that is granted twice is frozen once. */
static ngx_uint_t
ngx_http_toolgate_freeze_has(json_t *tools, json_t *copy)
{
    size_t   i;
    json_t  *frozen;

    json_array_foreach(tools, i, frozen) {
        if (json_equal(json_object_get(frozen, "id"), json_object_get(copy, "id"))) {
            return 1;
        }
    }

    return 0;
}


/* {"created_at","secret","previous":{"secret","expires_at"}}, secrets sealed. */
static void
ngx_http_toolgate_build_signing(ngx_http_toolgate_object_t *object)
{
    json_t                       *previous;
    ngx_http_toolgate_project_t  *project;

    project = object->project;
    previous = json_object_get(object->doc, "previous");

    if (ngx_http_toolgate_build_secret(object, "/secret", &project->signing_key,
                                       &project->signing_secret,
                                       project->signing_text)
        != NGX_OK)
    {
        /* better no call than one signed with a secret nobody expects */
        project->can_sign = 0;
        return;
    }

    project->can_sign = 1;
    project->signing_created =
        (time_t) json_integer_value(json_object_get(object->doc, "created_at"));
    project->previous_expires = 0;

    if (json_is_object(previous)
        && ngx_http_toolgate_build_secret(object, "/previous/secret",
                                          &project->previous_key,
                                          &project->previous_secret,
                                          project->previous_text)
           == NGX_OK)
    {
        project->previous_expires =
            (time_t) json_integer_value(json_object_get(previous, "expires_at"));
    }
}


static ngx_int_t
ngx_http_toolgate_build_secret(ngx_http_toolgate_object_t *object,
    const char *member, tg_sign_key_t *key, ngx_str_t *text,
    char storage[TG_SIGN_SECRET_MAX])
{
    json_t     *holder;
    tg_buf_t    plain;
    ngx_int_t   rc;

    holder = ngx_strcmp(member, "/secret") == 0
             ? object->doc : json_object_get(object->doc, "previous");

    tg_buf_init(&plain, TG_SIGN_SECRET_MAX);

    rc = ngx_http_toolgate_unseal(object->project, "signing", &object->id,
                                  tg_json_get_string(holder, "secret"), &plain);

    if (rc != NGX_OK || tg_sign_key_parse(tg_buf_get(&plain), key) != TG_OK) {
        ngx_log_error(NGX_LOG_ERR, ngx_http_toolgate_the_registry.log, 0,
                      "toolgate: the signing secret of project \"%V\" cannot be "
                      "opened: was it stored under another master key?",
                      &object->project->name);
        rc = NGX_ERROR;

    } else {
        ngx_memcpy(storage, plain.data, plain.len);
        text->data = (u_char *) storage;
        text->len = plain.len;
    }

    tg_secretbox_wipe(&plain);

    return rc;
}
