/*
 * Catalog files: reads them when nginx reads its configuration, checks every
 * rule that a definition has, and builds the objects. A fault is reported with
 * the file and the line of the value that is wrong; nothing of it is used then.
 * Agents are built in _catalog_agent.c.
 */

#include "ngx_http_toolgate_catalog.h"

#include <openssl/evp.h>


#define NGX_HTTP_TOOLGATE_CATALOG_MAX  (8 * 1024 * 1024)    /* bytes of a file */


typedef ngx_int_t (*ngx_http_toolgate_catalog_pt)(
    ngx_http_toolgate_catalog_t *cat, json_t *value, ngx_uint_t i);


static ngx_int_t ngx_http_toolgate_catalog_glob(ngx_http_toolgate_catalog_t *cat,
    ngx_str_t *pattern);
static ngx_int_t ngx_http_toolgate_catalog_file(ngx_http_toolgate_catalog_t *cat,
    ngx_str_t *name);
static ngx_int_t ngx_http_toolgate_catalog_read(ngx_http_toolgate_catalog_t *cat,
    ngx_str_t *name);
static ngx_int_t ngx_http_toolgate_catalog_document(
    ngx_http_toolgate_catalog_t *cat, json_t *root);
static ngx_int_t ngx_http_toolgate_catalog_list(ngx_http_toolgate_catalog_t *cat,
    json_t *root, const char *key, ngx_http_toolgate_catalog_pt build);
static ngx_int_t ngx_http_toolgate_catalog_tool(ngx_http_toolgate_catalog_t *cat,
    json_t *value, ngx_uint_t i);
static ngx_int_t ngx_http_toolgate_catalog_secret(
    ngx_http_toolgate_catalog_t *cat, json_t *value, ngx_uint_t i);
static ngx_int_t ngx_http_toolgate_catalog_hosts(ngx_http_toolgate_catalog_t *cat,
    json_t *hosts, ngx_uint_t i, ngx_http_toolgate_secret_t *secret);
static ngx_int_t ngx_http_toolgate_catalog_key(ngx_http_toolgate_catalog_t *cat,
    json_t *value, ngx_uint_t i);
static ngx_int_t ngx_http_toolgate_admin_object(ngx_http_toolgate_catalog_t *cat);
static void ngx_http_toolgate_catalog_cleanup(void *data);


static const char *const  ngx_http_toolgate_catalog_keys[] = {
    "project", "tools", "agents", "secrets", "end_user_keys", "api_keys",
    "knowledge", NULL
};

static const char *const  ngx_http_toolgate_secret_keys[] = {
    "name", "value_file", "allowed_hosts", NULL
};

static const char *const  ngx_http_toolgate_api_key_keys[] = {
    "name", "sha256", "scopes", "account_id", NULL
};


ngx_int_t
ngx_http_toolgate_catalog_load(ngx_conf_t *cf,
    ngx_http_toolgate_catalog_conf_t *conf, ngx_http_toolgate_objects_t *objects)
{
    ngx_str_t                    *glob;
    ngx_uint_t                    i;
    ngx_pool_cleanup_t           *cln;
    ngx_http_toolgate_catalog_t   cat;

    ngx_memzero(&cat, sizeof(cat));
    cat.cf = cf;
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

    cln = ngx_pool_cleanup_add(cf->pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_toolgate_catalog_cleanup;
    cln->data = objects;

    if (ngx_http_toolgate_helper_tools(cf, objects) != NGX_OK
        || ngx_http_toolgate_admin_object(&cat) != NGX_OK)
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


/* The schemas, templates and trees are malloc'ed by core/; the pool frees them. */
static void
ngx_http_toolgate_catalog_cleanup(void *data)
{
    ngx_http_toolgate_objects_t  *objects = data;

    ngx_uint_t                     i, j;
    ngx_http_toolgate_tool_t     **toolp, *tool;
    ngx_http_toolgate_agent_t     *agent;
    ngx_http_toolgate_project_t  **projectp;

    projectp = objects->projects.elts;

    for (i = 0; i < objects->projects.nelts; i++) {
        toolp = projectp[i]->tools.elts;

        for (j = 0; j < projectp[i]->tools.nelts; j++) {
            tg_template_free(toolp[j]->template);
            tg_schema_free(toolp[j]->schema);
            json_decref(toolp[j]->parameters);
        }

        agent = projectp[i]->agents.elts;

        for (j = 0; j < projectp[i]->agents.nelts; j++) {
            json_decref(agent[j].variables);
        }
    }

    tool = objects->helper_tools.elts;

    for (i = 0; i < objects->helper_tools.nelts; i++) {
        tg_schema_free(tool[i].schema);
        json_decref(tool[i].parameters);
    }
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
    gl.log = cat->cf->log;
    gl.test = 1;

    if (ngx_open_glob(&gl) != NGX_OK) {
        ngx_conf_log_error(NGX_LOG_EMERG, cat->cf, ngx_errno,
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


static ngx_int_t
ngx_http_toolgate_catalog_read(ngx_http_toolgate_catalog_t *cat, ngx_str_t *name)
{
    u_char           *text;
    ssize_t           n;
    ngx_fd_t          fd;
    ngx_file_info_t   fi;

    fd = ngx_open_file(name->data, NGX_FILE_RDONLY, NGX_FILE_OPEN, 0);

    if (fd == NGX_INVALID_FILE) {
        ngx_log_error(NGX_LOG_EMERG, cat->cf->log, ngx_errno,
                      ngx_open_file_n " \"%s\" failed", name->data);
        return NGX_ERROR;
    }

    n = NGX_ERROR;
    text = NULL;

    if (ngx_fd_info(fd, &fi) != NGX_FILE_ERROR && ngx_is_file(&fi)
        && ngx_file_size(&fi) <= NGX_HTTP_TOOLGATE_CATALOG_MAX)
    {
        text = ngx_pnalloc(cat->cf->pool, (size_t) ngx_file_size(&fi) + 1);

        if (text) {
            n = ngx_read_fd(fd, text, (size_t) ngx_file_size(&fi));
        }
    }

    ngx_close_file(fd);

    if (n < 0) {
        ngx_log_error(NGX_LOG_EMERG, cat->cf->log, 0,
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
    copy.data = ngx_pnalloc(cat->cf->pool, name->len + 1);
    if (copy.data == NULL) {
        return NGX_ERROR;
    }

    ngx_cpystrn(copy.data, name->data, name->len + 1);

    if (ngx_http_toolgate_catalog_read(cat, &copy) != NGX_OK) {
        return NGX_ERROR;
    }

    root = tg_json_load(cat->text, &error);

    if (root == NULL) {
        ngx_log_error(NGX_LOG_EMERG, cat->cf->log, 0,
                      "toolgate: broken JSON: %s in %V:%ui", error.reason,
                      &cat->file, (ngx_uint_t) error.line);
        return NGX_ERROR;
    }

    rc = ngx_http_toolgate_catalog_document(cat, root);

    json_decref(root);

    return rc;
}


ngx_int_t
ngx_http_toolgate_catalog_error(ngx_http_toolgate_catalog_t *cat,
    const char *pointer, const char *code, const char *reason)
{
    unsigned  line;

    line = tg_json_line_of(cat->text, tg_str_of(pointer));

    ngx_log_error(NGX_LOG_EMERG, cat->cf->log, 0,
                  "toolgate: %s: %s at \"%s\" in %V:%ui", code, reason, pointer,
                  &cat->file, (ngx_uint_t) line);

    return NGX_ERROR;
}


void
ngx_http_toolgate_catalog_at(char pointer[NGX_HTTP_TOOLGATE_POINTER_MAX],
    const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    (void) vsnprintf(pointer, NGX_HTTP_TOOLGATE_POINTER_MAX, fmt, args);
    va_end(args);
}


ngx_int_t
ngx_http_toolgate_catalog_known(ngx_http_toolgate_catalog_t *cat, json_t *value,
    const char *base, const char *const *keys)
{
    char         pointer[NGX_HTTP_TOOLGATE_POINTER_MAX];
    json_t      *member;
    ngx_uint_t   i;
    const char  *key;

    if (!json_is_object(value)) {
        return ngx_http_toolgate_catalog_error(cat, base, "invalid_type",
                                               "an object is needed");
    }

    json_object_foreach(value, key, member) {
        for (i = 0; keys[i]; i++) {
            if (ngx_strcmp(key, keys[i]) == 0) {
                break;
            }
        }

        if (keys[i] == NULL) {
            ngx_http_toolgate_catalog_at(pointer, "%s/%s", base, key);
            return ngx_http_toolgate_catalog_error(cat, pointer, "unknown_field",
                                                   "this field is not known");
        }
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_toolgate_catalog_string(ngx_http_toolgate_catalog_t *cat, json_t *object,
    const char *base, const char *key, ngx_uint_t required, ngx_str_t *out)
{
    char     pointer[NGX_HTTP_TOOLGATE_POINTER_MAX];
    json_t  *value;

    ngx_str_null(out);
    value = json_object_get(object, key);
    ngx_http_toolgate_catalog_at(pointer, "%s/%s", base, key);

    if (value == NULL) {
        return required
               ? ngx_http_toolgate_catalog_error(cat, base, "missing_parameter",
                                                 key)
               : NGX_OK;
    }

    if (!json_is_string(value) || (required && json_string_length(value) == 0)) {
        return ngx_http_toolgate_catalog_error(cat, pointer, "invalid_type",
                                               "a string is needed");
    }

    out->len = json_string_length(value);
    out->data = ngx_pnalloc(cat->cf->pool, out->len + 1);
    if (out->data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(out->data, json_string_value(value), out->len);
    out->data[out->len] = '\0';

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_catalog_document(ngx_http_toolgate_catalog_t *cat, json_t *root)
{
    ngx_str_t     name;
    json_t       *value;
    ngx_uint_t    i;

    static const char *const  later[] = { "end_user_keys", "knowledge", NULL };

    if (ngx_http_toolgate_catalog_known(cat, root, "",
                                        ngx_http_toolgate_catalog_keys) != NGX_OK
        || ngx_http_toolgate_catalog_string(cat, root, "", "project", 0, &name)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    for (i = 0; later[i]; i++) {
        value = json_object_get(root, later[i]);

        if (value && json_array_size(value) != 0) {
            return ngx_http_toolgate_catalog_error(cat, "", "not_implemented",
                                                   later[i]);
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

    if (ngx_http_toolgate_catalog_list(cat, root, "secrets",
                                       ngx_http_toolgate_catalog_secret)
        != NGX_OK
        || ngx_http_toolgate_catalog_list(cat, root, "tools",
                                          ngx_http_toolgate_catalog_tool)
           != NGX_OK
        || ngx_http_toolgate_catalog_list(cat, root, "agents",
                                          ngx_http_toolgate_catalog_agent)
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
    char         pointer[NGX_HTTP_TOOLGATE_POINTER_MAX];
    json_t      *list;
    ngx_uint_t   i;

    list = json_object_get(root, key);
    if (list == NULL) {
        return NGX_OK;
    }

    if (!json_is_array(list)) {
        ngx_http_toolgate_catalog_at(pointer, "/%s", key);
        return ngx_http_toolgate_catalog_error(cat, pointer, "invalid_type",
                                               "a list is needed");
    }

    for (i = 0; i < json_array_size(list); i++) {
        if (build(cat, json_array_get(list, i), i) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_catalog_tool(ngx_http_toolgate_catalog_t *cat, json_t *value,
    ngx_uint_t i)
{
    char                       pointer[NGX_HTTP_TOOLGATE_POINTER_MAX];
    tg_str_t                   text;
    tg_template_error_t        error;
    tg_schema_errors_t         errors;
    ngx_http_toolgate_tool_t  *tool, **slot;

    tool = ngx_pcalloc(cat->cf->pool, sizeof(ngx_http_toolgate_tool_t));
    slot = ngx_array_push(&cat->project->tools);
    if (tool == NULL || slot == NULL) {
        return NGX_ERROR;
    }

    *slot = tool;
    tool->kind = NGX_HTTP_TOOLGATE_TOOL_HTTP;
    tool->template = tg_template_compile(value, cat->conf->guard, &error);

    if (tool->template == NULL) {
        ngx_http_toolgate_catalog_at(pointer, "/tools/%u%s", (unsigned) i,
                 error.pointer);
        return ngx_http_toolgate_catalog_error(cat, pointer, error.code,
                                               error.reason);
    }

    tool->parameters = json_incref((json_t *)
                                   tg_template_parameters(tool->template));
    tool->schema = tg_schema_compile(tool->parameters, TG_SCHEMA_2020_12,
                                     &errors);

    if (tool->schema == NULL) {
        ngx_http_toolgate_catalog_at(pointer, "/tools/%u/config/parameters%s",
                 (unsigned) i, errors.errors[0].pointer);
        return ngx_http_toolgate_catalog_error(cat, pointer, "invalid_schema",
                                               errors.errors[0].reason);
    }

    text = tg_template_name(tool->template);
    tool->name.len = text.len;
    tool->name.data = (u_char *) text.data;

    if (ngx_http_toolgate_catalog_find_tool(cat, &tool->name) != tool) {
        ngx_http_toolgate_catalog_at(pointer, "/tools/%u/name", (unsigned) i);
        return ngx_http_toolgate_catalog_error(cat, pointer, "tool_name_conflict",
                                               "another tool has this name");
    }

    text = tg_template_description(tool->template);
    tool->description.len = text.len;
    tool->description.data = (u_char *) text.data;

    tool->effect = tg_template_effect(tool->template);
    tool->requires_verified_user =
        tg_template_requires_verified_user(tool->template);
    tool->enabled = tg_template_enabled(tool->template);

    if (!cat->project->can_sign) {
        ngx_http_toolgate_catalog_at(pointer, "/tools/%u", (unsigned) i);
        return ngx_http_toolgate_catalog_error(cat, pointer, "no_signing_secret",
                                               "HTTP tools need "
                                               "\"toolgate_master_key\": their "
                                               "calls are signed");
    }

    tg_id_derive("tool_", (tg_str_t) { cat->project->name.len,
                                       (char *) cat->project->name.data },
                 tg_template_name(tool->template), tool->id);

    return NGX_OK;
}


ngx_http_toolgate_tool_t *
ngx_http_toolgate_catalog_find_tool(ngx_http_toolgate_catalog_t *cat,
    ngx_str_t *name)
{
    ngx_uint_t                  i;
    ngx_http_toolgate_tool_t  **tool;

    tool = cat->project->tools.elts;

    for (i = 0; i < cat->project->tools.nelts; i++) {
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


static ngx_int_t
ngx_http_toolgate_catalog_secret(ngx_http_toolgate_catalog_t *cat, json_t *value,
    ngx_uint_t i)
{
    char                         base[NGX_HTTP_TOOLGATE_POINTER_MAX];
    u_char                      *p, *last;
    ngx_str_t                    file, saved_file;
    tg_str_t                     saved_text;
    ngx_http_toolgate_secret_t  *secret;

    ngx_http_toolgate_catalog_at(base, "/secrets/%u", (unsigned) i);

    secret = ngx_array_push(&cat->project->secrets);
    if (secret == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(secret, sizeof(ngx_http_toolgate_secret_t));

    if (ngx_http_toolgate_catalog_known(cat, value, base,
                                        ngx_http_toolgate_secret_keys) != NGX_OK
        || ngx_http_toolgate_catalog_string(cat, value, base, "name", 1,
                                            &secret->name) != NGX_OK
        || ngx_http_toolgate_catalog_string(cat, value, base, "value_file", 1,
                                            &file) != NGX_OK
        || ngx_http_toolgate_catalog_hosts(cat,
                                json_object_get(value, "allowed_hosts"), i, secret)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ngx_conf_full_name(cat->cf->cycle, &file, 1) != NGX_OK) {
        return NGX_ERROR;
    }

    saved_file = cat->file;
    saved_text = cat->text;

    if (ngx_http_toolgate_catalog_read(cat, &file) != NGX_OK) {
        return NGX_ERROR;
    }

    /* a file ends in a line feed, a secret does not */

    p = (u_char *) cat->text.data;
    last = p + cat->text.len;

    while (last > p && (last[-1] == LF || last[-1] == CR)) {
        last--;
    }

    secret->value.data = p;
    secret->value.len = last - p;

    cat->file = saved_file;
    cat->text = saved_text;

    if (secret->value.len == 0) {
        return ngx_http_toolgate_catalog_error(cat, base, "invalid_value",
                                               "the value file is empty");
    }

    for ( /* void */ ; p < last; p++) {
        if (*p < 0x20 || *p == 0x7f) {
            return ngx_http_toolgate_catalog_error(cat, base, "invalid_value",
                                                   "the secret has control "
                                                   "characters");
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_catalog_hosts(ngx_http_toolgate_catalog_t *cat, json_t *hosts,
    ngx_uint_t i, ngx_http_toolgate_secret_t *secret)
{
    char        pointer[NGX_HTTP_TOOLGATE_POINTER_MAX];
    u_char     *p;
    size_t      n, len;
    json_t     *value;

    ngx_http_toolgate_catalog_at(pointer, "/secrets/%u/allowed_hosts", (unsigned) i);

    if (json_array_size(hosts) == 0) {
        return ngx_http_toolgate_catalog_error(cat, pointer, "invalid_value",
                                               "a secret needs the hosts that "
                                               "may get it");
    }

    secret->allowed_hosts = ngx_pcalloc(cat->cf->pool,
                                        json_array_size(hosts) * sizeof(tg_str_t));
    if (secret->allowed_hosts == NULL) {
        return NGX_ERROR;
    }

    for (n = 0; n < json_array_size(hosts); n++) {
        value = json_array_get(hosts, n);
        len = json_string_length(value);

        if (!json_is_string(value) || len == 0
            || strpbrk(json_string_value(value), "*/ @") != NULL)
        {
            return ngx_http_toolgate_catalog_error(cat, pointer, "invalid_value",
                                                   "a host is \"name\" or "
                                                   "\"name:port\", without "
                                                   "wildcards");
        }

        p = ngx_pnalloc(cat->cf->pool, len);
        if (p == NULL) {
            return NGX_ERROR;
        }

        ngx_strlow(p, (u_char *) json_string_value(value), len);

        if (p[len - 1] == '.') {
            len--;
        }

        secret->allowed_hosts[n].data = (char *) p;
        secret->allowed_hosts[n].len = len;
    }

    secret->allowed_host_count = n;

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_catalog_key(ngx_http_toolgate_catalog_t *cat, json_t *value,
    ngx_uint_t i)
{
    char                      base[NGX_HTTP_TOOLGATE_POINTER_MAX];
    json_t                   *scopes;
    ngx_int_t                 n;
    ngx_str_t                 hex;
    ngx_uint_t                j, scope;
    ngx_http_toolgate_key_t  *key;

    ngx_http_toolgate_catalog_at(base, "/api_keys/%u", (unsigned) i);

    key = ngx_array_push(&cat->objects->keys);
    if (key == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(key, sizeof(ngx_http_toolgate_key_t));
    key->project = cat->project;

    if (ngx_http_toolgate_catalog_known(cat, value, base,
                                        ngx_http_toolgate_api_key_keys) != NGX_OK
        || ngx_http_toolgate_catalog_string(cat, value, base, "name", 1,
                                            &key->name) != NGX_OK
        || ngx_http_toolgate_catalog_string(cat, value, base, "account_id", 0,
                                            &key->account) != NGX_OK
        || ngx_http_toolgate_catalog_string(cat, value, base, "sha256", 1, &hex)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    for (j = 0; j < NGX_HTTP_TOOLGATE_KEY_SHA256_LEN; j++) {
        n = hex.len == 2 * NGX_HTTP_TOOLGATE_KEY_SHA256_LEN
            ? ngx_hextoi(hex.data + 2 * j, 2) : NGX_ERROR;

        if (n == NGX_ERROR) {
            return ngx_http_toolgate_catalog_error(cat, base, "invalid_value",
                                                   "\"sha256\" is 64 hex digits");
        }

        key->sha256[j] = (u_char) n;
    }

    if (key->account.len
        && !tg_id_label_valid((tg_str_t) { key->account.len,
                                           (char *) key->account.data }))
    {
        return ngx_http_toolgate_catalog_error(cat, base, "invalid_value",
                                               "\"account_id\" has 1 to 64 of "
                                               "[A-Za-z0-9_.:-]");
    }

    scopes = json_object_get(value, "scopes");

    for (j = 0; j < json_array_size(scopes); j++) {
        scope = ngx_http_toolgate_scope(
                    json_string_value(json_array_get(scopes, j)));
        key->scopes |= scope;

        if (scope == 0) {
            return ngx_http_toolgate_catalog_error(cat, base, "invalid_value",
                                                   "scopes are admin, run, "
                                                   "approve and tools");
        }
    }

    if (key->scopes == 0) {
        return ngx_http_toolgate_catalog_error(cat, base, "invalid_value",
                                               "a key needs a list of scopes");
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_admin_object(ngx_http_toolgate_catalog_t *cat)
{
    ngx_str_t                 name = ngx_string("default");
    ngx_http_toolgate_key_t  *key;

    cat->project = ngx_http_toolgate_project(cat->objects, &name,
                                             &cat->conf->master_key);
    if (cat->project == NULL) {
        return NGX_ERROR;
    }

    if (cat->conf->admin_key.len == 0) {
        return NGX_OK;
    }

    key = ngx_array_push(&cat->objects->keys);
    if (key == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(key, sizeof(ngx_http_toolgate_key_t));
    ngx_str_set(&key->name, "admin");
    key->project = cat->project;
    key->scopes = NGX_HTTP_TOOLGATE_SCOPE_ALL;

    if (EVP_Digest(cat->conf->admin_key.data, cat->conf->admin_key.len,
                   key->sha256, NULL, EVP_sha256(), NULL) != 1)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}
