/*
 * Catalog files: reads them when nginx reads its configuration, checks every
 * rule that a definition has, and builds the objects. A fault is reported with
 * the file and the line of the value that is wrong; nothing of it is used then.
 * Tools are built in _catalog_tool.c, agents in _catalog_agent.c, secrets and keys
 * in _catalog_key.c, keys for end users in _catalog_user_key.c.
 */

#include "ngx_http_toolgate_catalog.h"


#define NGX_HTTP_TOOLGATE_CATALOG_MAX  (8 * 1024 * 1024)    /* bytes of a file */


typedef ngx_int_t (*ngx_http_toolgate_catalog_pt)(
    ngx_http_toolgate_catalog_t *cat, json_t *value, ngx_uint_t i);


static ngx_int_t ngx_http_toolgate_catalog_glob(ngx_http_toolgate_catalog_t *cat,
    ngx_str_t *pattern);
static ngx_int_t ngx_http_toolgate_catalog_file(ngx_http_toolgate_catalog_t *cat,
    ngx_str_t *name);
static ngx_int_t ngx_http_toolgate_catalog_document(
    ngx_http_toolgate_catalog_t *cat, json_t *root);
static ngx_int_t ngx_http_toolgate_catalog_list(ngx_http_toolgate_catalog_t *cat,
    json_t *root, const char *key, ngx_http_toolgate_catalog_pt build);
static ngx_int_t ngx_http_toolgate_catalog_add_tool(
    ngx_http_toolgate_catalog_t *cat, json_t *value, ngx_uint_t i);
static ngx_int_t ngx_http_toolgate_catalog_add_agent(
    ngx_http_toolgate_catalog_t *cat, json_t *value, ngx_uint_t i);
static ngx_int_t ngx_http_toolgate_catalog_add_user_key(
    ngx_http_toolgate_catalog_t *cat, json_t *value, ngx_uint_t i);


static const char *const  ngx_http_toolgate_catalog_keys[] = {
    "project", "tools", "agents", "secrets", "end_user_keys", "api_keys",
    "knowledge", NULL
};


ngx_int_t
ngx_http_toolgate_catalog_load(ngx_conf_t *cf,
    ngx_http_toolgate_catalog_conf_t *conf, ngx_http_toolgate_objects_t *objects)
{
    ngx_str_t                    *glob;
    ngx_uint_t                    i;
    ngx_http_toolgate_catalog_t   cat;

    ngx_memzero(&cat, sizeof(cat));
    cat.pool = cf->pool;
    cat.log = cf->log;
    cat.cycle = cf->cycle;
    cat.conf = conf;
    cat.objects = objects;

    objects->pool = cf->pool;

    if (ngx_array_init(&objects->projects, cf->pool, 2,
                       sizeof(ngx_http_toolgate_project_t *)) != NGX_OK
        || ngx_array_init(&objects->keys, cf->pool, 4,
                          sizeof(ngx_http_toolgate_key_t)) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ngx_http_toolgate_helper_tools(cf, objects) != NGX_OK
        || ngx_http_toolgate_catalog_admin_key(&cat) != NGX_OK)
    {
        return NGX_ERROR;
    }

    glob = conf->globs->elts;

    for (i = 0; i < conf->globs->nelts; i++) {
        if (ngx_http_toolgate_catalog_glob(&cat, &glob[i]) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_catalog_glob(ngx_http_toolgate_catalog_t *cat,
    ngx_str_t *pattern)
{
    ngx_int_t   n;
    ngx_str_t   name;
    ngx_glob_t  gl;

    if (strpbrk((char *) pattern->data, "*?[") == NULL) {
        return ngx_http_toolgate_catalog_file(cat, pattern);
    }

    ngx_memzero(&gl, sizeof(ngx_glob_t));
    gl.pattern = pattern->data;
    gl.log = cat->log;
    gl.test = 1;

    if (ngx_open_glob(&gl) != NGX_OK) {
        ngx_log_error(NGX_LOG_EMERG, cat->log, ngx_errno,
                           ngx_open_glob_n " \"%V\" failed", pattern);
        return NGX_ERROR;
    }

    while ((n = ngx_read_glob(&gl, &name)) == NGX_OK) {
        n = ngx_http_toolgate_catalog_file(cat, &name);
        if (n != NGX_OK) {
            break;
        }
    }

    ngx_close_glob(&gl);

    return n == NGX_DONE ? NGX_OK : n;
}


ngx_int_t
ngx_http_toolgate_catalog_read(ngx_http_toolgate_catalog_t *cat, ngx_str_t *name)
{
    u_char           *text;
    ssize_t           n;
    ngx_fd_t          fd;
    ngx_file_info_t   fi;

    fd = ngx_open_file(name->data, NGX_FILE_RDONLY, NGX_FILE_OPEN, 0);

    if (fd == NGX_INVALID_FILE) {
        ngx_log_error(NGX_LOG_EMERG, cat->log, ngx_errno,
                      ngx_open_file_n " \"%s\" failed", name->data);
        return NGX_ERROR;
    }

    n = NGX_ERROR;
    text = NULL;

    if (ngx_fd_info(fd, &fi) != NGX_FILE_ERROR && ngx_is_file(&fi)
        && ngx_file_size(&fi) <= NGX_HTTP_TOOLGATE_CATALOG_MAX)
    {
        text = ngx_pnalloc(cat->pool, (size_t) ngx_file_size(&fi) + 1);

        if (text) {
            n = ngx_read_fd(fd, text, (size_t) ngx_file_size(&fi));
        }
    }

    ngx_close_file(fd);

    if (n < 0) {
        ngx_log_error(NGX_LOG_EMERG, cat->log, 0,
                      "toolgate: catalog \"%s\" cannot be read or is over "
                      "8 MiB", name->data);
        return NGX_ERROR;
    }

    cat->file = *name;
    cat->text.data = (char *) text;
    cat->text.len = (size_t) n;

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_catalog_file(ngx_http_toolgate_catalog_t *cat, ngx_str_t *name)
{
    json_t           *root;
    ngx_int_t         rc;
    ngx_str_t         copy;
    tg_json_error_t   error;

    /* a glob's name lives until the next one only */

    copy.len = name->len;
    copy.data = ngx_pnalloc(cat->pool, name->len + 1);
    if (copy.data == NULL) {
        return NGX_ERROR;
    }

    ngx_cpystrn(copy.data, name->data, name->len + 1);

    if (ngx_http_toolgate_catalog_read(cat, &copy) != NGX_OK) {
        return NGX_ERROR;
    }

    root = tg_json_load(cat->text, &error);

    if (root == NULL) {
        ngx_log_error(NGX_LOG_EMERG, cat->log, 0,
                      "toolgate: broken JSON: %s in %V:%ui", error.reason,
                      &cat->file, (ngx_uint_t) error.line);
        return NGX_ERROR;
    }

    rc = ngx_http_toolgate_catalog_document(cat, root);

    json_decref(root);

    return rc;
}


static ngx_int_t
ngx_http_toolgate_catalog_document(ngx_http_toolgate_catalog_t *cat, json_t *root)
{
    ngx_str_t     name;
    json_t       *value;
    ngx_uint_t    i;

    static const char *const  later[] = { "knowledge", NULL };

    if (ngx_http_toolgate_catalog_known(cat, root, "",
                                        ngx_http_toolgate_catalog_keys) != NGX_OK
        || ngx_http_toolgate_catalog_string(cat, root, "", "project", 0, &name)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    for (i = 0; later[i]; i++) {
        if (ngx_http_toolgate_catalog_array(cat, root, "", later[i], &value)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        if (json_array_size(value) != 0) {
            return ngx_http_toolgate_catalog_fault(cat, "", later[i],
                                                   "not_implemented",
                                                   "this is not part of this "
                                                   "version");
        }
    }

    if (name.len == 0) {
        ngx_str_set(&name, "default");
    }

    if (!tg_id_label_valid((tg_str_t) { name.len, (char *) name.data })) {
        return ngx_http_toolgate_catalog_error(cat, "/project", "invalid_value",
                                               "a project's name has 1 to 64 of "
                                               "[A-Za-z0-9_.:-]");
    }

    cat->project = ngx_http_toolgate_project(cat->objects, &name,
                                             &cat->conf->master_key);
    if (cat->project == NULL) {
        return NGX_ERROR;
    }

    cat->tools = &cat->project->tools;

    if (ngx_http_toolgate_catalog_list(cat, root, "secrets",
                                       ngx_http_toolgate_catalog_secret)
        != NGX_OK
        || ngx_http_toolgate_catalog_list(cat, root, "tools",
                                          ngx_http_toolgate_catalog_add_tool)
           != NGX_OK
        || ngx_http_toolgate_catalog_list(cat, root, "agents",
                                          ngx_http_toolgate_catalog_add_agent)
           != NGX_OK
        || ngx_http_toolgate_catalog_list(cat, root, "end_user_keys",
                                          ngx_http_toolgate_catalog_add_user_key)
           != NGX_OK
        || ngx_http_toolgate_catalog_list(cat, root, "api_keys",
                                          ngx_http_toolgate_catalog_key)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_catalog_list(ngx_http_toolgate_catalog_t *cat, json_t *root,
    const char *key, ngx_http_toolgate_catalog_pt build)
{
    json_t      *list;
    ngx_uint_t   i;

    if (ngx_http_toolgate_catalog_array(cat, root, "", key, &list) != NGX_OK) {
        return NGX_ERROR;
    }

    for (i = 0; i < json_array_size(list); i++) {
        if (build(cat, json_array_get(list, i), i) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_catalog_add_tool(ngx_http_toolgate_catalog_t *cat,
    json_t *value, ngx_uint_t i)
{
    char                       base[NGX_HTTP_TOOLGATE_POINTER_MAX];
    ngx_http_toolgate_tool_t  *tool, **slot;

    ngx_http_toolgate_catalog_at(base, "/tools/%u", (unsigned) i);

    tool = ngx_http_toolgate_catalog_tool(cat, value, base);
    if (tool == NULL) {
        return NGX_ERROR;
    }

    if (ngx_http_toolgate_catalog_find_tool(cat, &tool->name)) {
        return ngx_http_toolgate_catalog_fault(cat, base, "name",
                                               "tool_name_conflict",
                                               "another tool has this name");
    }

    slot = ngx_array_push(&cat->project->tools);
    if (slot == NULL) {
        return NGX_ERROR;
    }

    *slot = tool;

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_catalog_add_agent(ngx_http_toolgate_catalog_t *cat,
    json_t *value, ngx_uint_t i)
{
    char                        base[NGX_HTTP_TOOLGATE_POINTER_MAX];
    ngx_http_toolgate_agent_t  *agent, **slot;

    ngx_http_toolgate_catalog_at(base, "/agents/%u", (unsigned) i);

    agent = ngx_http_toolgate_catalog_agent(cat, value, base);
    if (agent == NULL) {
        return NGX_ERROR;
    }

    if (ngx_http_toolgate_agent_find(cat->project, &agent->name)
        || cat->conf->has_model(cat->conf->data, &agent->name))
    {
        return ngx_http_toolgate_catalog_fault(cat, base, "name",
                                               "name_conflict",
                                               "an agent or a model has this "
                                               "name already");
    }

    slot = ngx_array_push(&cat->project->agents);
    if (slot == NULL) {
        return NGX_ERROR;
    }

    *slot = agent;

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_catalog_add_user_key(ngx_http_toolgate_catalog_t *cat,
    json_t *value, ngx_uint_t i)
{
    char            base[NGX_HTTP_TOOLGATE_POINTER_MAX];
    ngx_uint_t      j;
    ngx_array_t    *keys;
    tg_jwt_key_t   *key, **slot;

    ngx_http_toolgate_catalog_at(base, "/end_user_keys/%u", (unsigned) i);

    key = ngx_http_toolgate_catalog_user_key(cat, value, base);
    if (key == NULL) {
        return NGX_ERROR;
    }

    keys = &cat->project->end_user_keys;
    slot = keys->elts;

    for (j = 0; j < keys->nelts; j++) {
        if (tg_str_eq(tg_jwt_key_name(slot[j]), tg_jwt_key_name(key))) {
            return ngx_http_toolgate_catalog_fault(cat, base, "name",
                                                   "name_conflict",
                                                   "another end-user key has this "
                                                   "name");
        }
    }

    if (keys->nelts == TG_JWT_KEYS_MAX) {
        return ngx_http_toolgate_catalog_error(cat, base, "invalid_value",
                                               "a project has at most 32 end-user "
                                               "keys");
    }

    slot = ngx_array_push(keys);
    if (slot == NULL) {
        return NGX_ERROR;
    }

    *slot = key;

    return NGX_OK;
}
