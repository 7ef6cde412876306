/*
 * The objects that the registry holds: found by id and by what is unique of them,
 * listed by project and kind, replaced when they change.
 */

#include "ngx_http_toolgate_registry_internal.h"


#define NGX_HTTP_TOOLGATE_OBJECT_POOL  1024


typedef struct {
    ngx_queue_t                  queue;
    ngx_http_toolgate_project_t  project;
} ngx_http_toolgate_stored_project_t;


static ngx_http_toolgate_object_t *ngx_http_toolgate_registry_find(
    ngx_rbtree_t *tree, ngx_str_t *project, ngx_http_toolgate_kind_e kind,
    ngx_str_t *word);
static ngx_int_t ngx_http_toolgate_registry_split(ngx_str_t *name,
    ngx_str_t *project, ngx_http_toolgate_kind_e *kind, ngx_str_t *id);
static ngx_http_toolgate_object_t *ngx_http_toolgate_registry_new(
    ngx_http_toolgate_registry_t *reg, ngx_str_t *name, ngx_str_t *text);
static ngx_int_t ngx_http_toolgate_registry_index(
    ngx_http_toolgate_registry_t *reg, ngx_http_toolgate_object_t *object);
static void ngx_http_toolgate_registry_remove(ngx_http_toolgate_registry_t *reg,
    ngx_http_toolgate_object_t *object);
static ngx_http_toolgate_project_t *ngx_http_toolgate_registry_remembered(
    ngx_str_t *name);
static ngx_uint_t ngx_http_toolgate_registry_there(
    ngx_http_toolgate_project_t *project);
static ngx_http_toolgate_project_t *ngx_http_toolgate_registry_add_project(
    ngx_http_toolgate_registry_t *reg, ngx_str_t *name);


static const char *const  ngx_http_toolgate_kind_words[NGX_HTTP_TOOLGATE_KINDS] = {
    "project", "api_key", "tool", "agent", "secret", "signing", "end_user_key"
};


const char *
ngx_http_toolgate_kind_word(ngx_http_toolgate_kind_e kind)
{
    return ngx_http_toolgate_kind_words[kind];
}


ngx_http_toolgate_object_t *
ngx_http_toolgate_registry_get(ngx_http_toolgate_project_t *project,
    ngx_http_toolgate_kind_e kind, ngx_str_t *id)
{
    return ngx_http_toolgate_registry_find(&ngx_http_toolgate_the_registry.by_id,
                                           &project->name, kind, id);
}


ngx_http_toolgate_object_t *
ngx_http_toolgate_registry_named(ngx_http_toolgate_project_t *project,
    ngx_http_toolgate_kind_e kind, ngx_str_t *name)
{
    static ngx_str_t  all = ngx_string("");

    return ngx_http_toolgate_registry_find(
               &ngx_http_toolgate_the_registry.by_unique,
               project ? &project->name : &all, kind, name);
}


static ngx_http_toolgate_object_t *
ngx_http_toolgate_registry_find(ngx_rbtree_t *tree, ngx_str_t *project,
    ngx_http_toolgate_kind_e kind, ngx_str_t *word)
{
    u_char           name[NGX_HTTP_TOOLGATE_OBJECT_NAME_MAX], *p;
    ngx_str_t        key;
    ngx_str_node_t  *node;

    if (ngx_http_toolgate_the_registry.pool == NULL) {
        return NULL;
    }

    p = ngx_snprintf(name, sizeof(name), "%V/%s/%V", project,
                     ngx_http_toolgate_kind_words[kind], word);

    if (p == name + sizeof(name)) {
        return NULL;
    }

    key.data = name;
    key.len = p - name;

    node = ngx_str_rbtree_lookup(tree, &key, ngx_crc32_short(name, key.len));

    if (node == NULL) {
        return NULL;
    }

    return tree == &ngx_http_toolgate_the_registry.by_id
           ? (ngx_http_toolgate_object_t *)
             ((u_char *) node - offsetof(ngx_http_toolgate_object_t, by_id))
           : (ngx_http_toolgate_object_t *)
             ((u_char *) node - offsetof(ngx_http_toolgate_object_t, by_unique));
}


ngx_queue_t *
ngx_http_toolgate_registry_list(ngx_http_toolgate_project_t *project,
    ngx_http_toolgate_kind_e kind)
{
    ngx_queue_t *list = &project->stored[kind];

    return (list->next && !ngx_queue_empty(list)) ? list : NULL;
}


void
ngx_http_toolgate_agent_switches(ngx_http_toolgate_project_t *project,
    ngx_http_toolgate_agent_t *agent, bool *tools_enabled, bool *actions_paused)
{
    json_t                      *draft, *tools;
    ngx_str_t                    id;
    ngx_http_toolgate_object_t  *object;

    *tools_enabled = agent->tools_enabled;
    *actions_paused = agent->actions_paused;

    if (!agent->stored) {
        return;
    }

    id.data = (u_char *) agent->id;
    id.len = ngx_strlen(agent->id);

    object = ngx_http_toolgate_registry_get(project, NGX_HTTP_TOOLGATE_KIND_AGENT,
                                            &id);
    if (object == NULL) {
        *tools_enabled = false;
        return;
    }

    draft = json_object_get(object->doc, "draft");
    tools = json_object_get(draft, "tools");

    *tools_enabled = !json_is_false(json_object_get(tools, "enabled"));
    *actions_paused = json_is_true(json_object_get(draft, "actions_paused"));
}


bool
ngx_http_toolgate_tool_switch(ngx_http_toolgate_project_t *project,
    ngx_http_toolgate_tool_t *tool)
{
    json_t                      *definition;
    ngx_str_t                    id;
    ngx_http_toolgate_object_t  *object;

    if (!tool->stored) {
        return tool->enabled;
    }

    id.data = (u_char *) tool->id;
    id.len = ngx_strlen(tool->id);

    object = ngx_http_toolgate_registry_get(project, NGX_HTTP_TOOLGATE_KIND_TOOL,
                                            &id);
    if (object == NULL) {
        return false;
    }

    definition = json_object_get(object->doc, "tool");

    return !json_is_false(json_object_get(definition, "enabled"));
}


ngx_http_toolgate_key_t *
ngx_http_toolgate_registry_key(ngx_pool_t *pool,
    u_char sha256[NGX_HTTP_TOOLGATE_KEY_SHA256_LEN])
{
    u_char                       hex[2 * NGX_HTTP_TOOLGATE_KEY_SHA256_LEN];
    ngx_str_t                    digest, name, account;
    ngx_http_toolgate_key_t     *key;
    ngx_http_toolgate_object_t  *object;

    (void) ngx_hex_dump(hex, sha256, NGX_HTTP_TOOLGATE_KEY_SHA256_LEN);
    digest.data = hex;
    digest.len = sizeof(hex);

    object = ngx_http_toolgate_registry_named(NULL, NGX_HTTP_TOOLGATE_KIND_API_KEY,
                                              &digest);
    if (object == NULL || object->built == NULL) {
        return NULL;
    }

    key = ngx_palloc(pool, sizeof(ngx_http_toolgate_key_t));
    if (key == NULL) {
        return NULL;
    }

    *key = *(ngx_http_toolgate_key_t *) object->built;

    name = key->name;
    account = key->account;
    key->name.data = ngx_pstrdup(pool, &name);
    key->account.data = ngx_pstrdup(pool, &account);

    return (key->name.data && key->account.data) ? key : NULL;
}


void
ngx_http_toolgate_registry_apply(ngx_http_toolgate_registry_t *reg,
    ngx_str_t *name, ngx_str_t *text)
{
    ngx_str_node_t              *node;
    ngx_http_toolgate_object_t  *object;

    node = ngx_str_rbtree_lookup(&reg->by_id, name,
                                 ngx_crc32_short(name->data, name->len));
    if (node) {
        object = (ngx_http_toolgate_object_t *)
                 ((u_char *) node - offsetof(ngx_http_toolgate_object_t, by_id));
        ngx_http_toolgate_registry_remove(reg, object);
    }

    if (text->len == 0) {
        return;
    }

    object = ngx_http_toolgate_registry_new(reg, name, text);

    if (object == NULL) {
        ngx_log_error(NGX_LOG_ERR, reg->log, 0,
                      "toolgate: stored object \"%V\" cannot be used", name);
        return;
    }

    ngx_http_toolgate_object_build(object);
}


/* "project/kind/id" */
static ngx_int_t
ngx_http_toolgate_registry_split(ngx_str_t *name, ngx_str_t *project,
    ngx_http_toolgate_kind_e *kind, ngx_str_t *id)
{
    u_char      *p, *last, *slash;
    ngx_uint_t   i;
    ngx_str_t    word;

    p = name->data;
    last = p + name->len;

    slash = ngx_strlchr(p, last, '/');
    if (slash == NULL) {
        return NGX_ERROR;
    }

    project->data = p;
    project->len = slash - p;

    word.data = slash + 1;
    slash = ngx_strlchr(word.data, last, '/');
    if (slash == NULL) {
        return NGX_ERROR;
    }

    word.len = slash - word.data;
    id->data = slash + 1;
    id->len = last - id->data;

    for (i = 0; i < NGX_HTTP_TOOLGATE_KINDS; i++) {
        if (ngx_strlen(ngx_http_toolgate_kind_words[i]) == word.len
            && ngx_memcmp(ngx_http_toolgate_kind_words[i], word.data, word.len)
               == 0)
        {
            *kind = i;
            return NGX_OK;
        }
    }

    return NGX_ERROR;
}


/* Text is "<version> <JSON>". */
static ngx_http_toolgate_object_t *
ngx_http_toolgate_registry_new(ngx_http_toolgate_registry_t *reg, ngx_str_t *name,
    ngx_str_t *text)
{
    u_char                      *blank;
    ngx_int_t                    version;
    ngx_str_t                    project, id;
    ngx_pool_t                  *pool;
    tg_json_error_t              error;
    ngx_http_toolgate_kind_e     kind;
    ngx_http_toolgate_object_t  *object;

    blank = ngx_strlchr(text->data, text->data + text->len, ' ');

    if (blank == NULL
        || ngx_http_toolgate_registry_split(name, &project, &kind, &id) != NGX_OK)
    {
        return NULL;
    }

    version = ngx_atoi(text->data, blank - text->data);

    if (version == NGX_ERROR) {
        return NULL;
    }

    pool = ngx_create_pool(NGX_HTTP_TOOLGATE_OBJECT_POOL, reg->log);
    if (pool == NULL) {
        return NULL;
    }

    object = ngx_pcalloc(pool, sizeof(ngx_http_toolgate_object_t));
    if (object == NULL) {
        goto failed;
    }

    object->pool = pool;
    object->kind = kind;
    object->version = (ngx_uint_t) version;
    object->project = ngx_http_toolgate_registry_add_project(reg, &project);
    object->by_id.str.len = name->len;
    object->by_id.str.data = ngx_pstrdup(pool, name);

    if (object->project == NULL || object->by_id.str.data == NULL) {
        goto failed;
    }

    object->id.len = id.len;
    object->id.data = object->by_id.str.data + (id.data - name->data);

    object->doc = tg_json_load((tg_str_t) {
                                   text->len - (size_t) (blank + 1 - text->data),
                                   (char *) blank + 1 },
                               &error);

    if (!json_is_object(object->doc)
        || ngx_http_toolgate_registry_index(reg, object) != NGX_OK)
    {
        json_decref(object->doc);
        goto failed;
    }

    return object;

failed:

    ngx_destroy_pool(pool);

    return NULL;
}


static ngx_int_t
ngx_http_toolgate_registry_index(ngx_http_toolgate_registry_t *reg,
    ngx_http_toolgate_object_t *object)
{
    u_char      *p;
    tg_str_t     word;
    ngx_str_t   *unique;
    ngx_queue_t *list;

    static ngx_str_t  all = ngx_string("");

    /* a key is known by its digest wherever it belongs, all else by its name */

    if (object->kind == NGX_HTTP_TOOLGATE_KIND_API_KEY) {
        word = tg_json_get_string(object->doc, "sha256");

    } else {
        word = tg_json_get_string(object->doc, "name");
    }

    unique = &object->by_unique.str;

    if (word.len) {
        unique->data = ngx_pnalloc(object->pool, NGX_HTTP_TOOLGATE_OBJECT_NAME_MAX);
        if (unique->data == NULL) {
            return NGX_ERROR;
        }

        p = ngx_snprintf(unique->data, NGX_HTTP_TOOLGATE_OBJECT_NAME_MAX,
                         "%V/%s/%*s",
                         object->kind == NGX_HTTP_TOOLGATE_KIND_API_KEY
                         ? &all : &object->project->name,
                         ngx_http_toolgate_kind_words[object->kind],
                         word.len, word.data);
        unique->len = p - unique->data;

        object->by_unique.node.key = ngx_crc32_short(unique->data, unique->len);
        ngx_rbtree_insert(&reg->by_unique, &object->by_unique.node);
    }

    object->by_id.node.key = ngx_crc32_short(object->by_id.str.data,
                                             object->by_id.str.len);
    ngx_rbtree_insert(&reg->by_id, &object->by_id.node);

    list = &object->project->stored[object->kind];

    if (list->next == NULL) {
        ngx_queue_init(list);
    }

    ngx_queue_insert_tail(list, &object->queue);

    return NGX_OK;
}


static void
ngx_http_toolgate_registry_remove(ngx_http_toolgate_registry_t *reg,
    ngx_http_toolgate_object_t *object)
{
    ngx_http_toolgate_object_drop(object);

    if (object->by_unique.str.len) {
        ngx_rbtree_delete(&reg->by_unique, &object->by_unique.node);
    }

    ngx_rbtree_delete(&reg->by_id, &object->by_id.node);
    ngx_queue_remove(&object->queue);

    json_decref(object->doc);
    ngx_destroy_pool(object->pool);
}


void
ngx_http_toolgate_registry_clear(ngx_http_toolgate_registry_t *reg)
{
    ngx_rbtree_node_t           *node;
    ngx_http_toolgate_object_t  *object;

    while (reg->by_id.root != &reg->by_id_sentinel) {
        node = ngx_rbtree_min(reg->by_id.root, &reg->by_id_sentinel);
        object = (ngx_http_toolgate_object_t *)
                 ((u_char *) node - offsetof(ngx_http_toolgate_object_t, by_id));

        ngx_http_toolgate_registry_remove(reg, object);
    }
}


ngx_http_toolgate_project_t *
ngx_http_toolgate_registry_project(ngx_str_t *name)
{
    ngx_http_toolgate_project_t  *project;

    project = ngx_http_toolgate_registry_remembered(name);

    return project && ngx_http_toolgate_registry_there(project) ? project : NULL;
}


/* Also one of which nothing is left, as after the store was emptied. */
static ngx_http_toolgate_project_t *
ngx_http_toolgate_registry_remembered(ngx_str_t *name)
{
    ngx_uint_t                            i;
    ngx_queue_t                          *q;
    ngx_http_toolgate_project_t         **known;
    ngx_http_toolgate_registry_t         *reg = &ngx_http_toolgate_the_registry;
    ngx_http_toolgate_stored_project_t   *stored;

    known = reg->conf->objects.projects.elts;

    for (i = 0; i < reg->conf->objects.projects.nelts; i++) {
        if (known[i]->name.len == name->len
            && ngx_memcmp(known[i]->name.data, name->data, name->len) == 0)
        {
            return known[i];
        }
    }

    if (reg->pool == NULL) {
        return NULL;
    }

    for (q = ngx_queue_head(&reg->projects);
         q != ngx_queue_sentinel(&reg->projects);
         q = ngx_queue_next(q))
    {
        stored = ngx_queue_data(q, ngx_http_toolgate_stored_project_t, queue);

        if (stored->project.name.len == name->len
            && ngx_memcmp(stored->project.name.data, name->data, name->len) == 0)
        {
            return &stored->project;
        }
    }

    return NULL;
}


static ngx_uint_t
ngx_http_toolgate_registry_there(ngx_http_toolgate_project_t *project)
{
    ngx_uint_t                     i;
    ngx_http_toolgate_project_t  **known;
    ngx_http_toolgate_objects_t   *files;

    files = &ngx_http_toolgate_the_registry.conf->objects;
    known = files->projects.elts;

    for (i = 0; i < files->projects.nelts; i++) {
        if (known[i] == project) {
            return 1;
        }
    }

    for (i = 0; i < NGX_HTTP_TOOLGATE_KINDS; i++) {
        if (ngx_http_toolgate_registry_list(project, i)) {
            return 1;
        }
    }

    return 0;
}


ngx_uint_t
ngx_http_toolgate_registry_project_at(ngx_uint_t i,
    ngx_http_toolgate_project_t **project)
{
    ngx_queue_t                          *q;
    ngx_http_toolgate_project_t         **known;
    ngx_http_toolgate_registry_t         *reg = &ngx_http_toolgate_the_registry;
    ngx_http_toolgate_stored_project_t   *stored;

    known = reg->conf->objects.projects.elts;

    if (i < reg->conf->objects.projects.nelts) {
        *project = known[i];
        return 1;
    }

    i -= reg->conf->objects.projects.nelts;

    if (reg->pool == NULL) {
        return 0;
    }

    for (q = ngx_queue_head(&reg->projects);
         q != ngx_queue_sentinel(&reg->projects);
         q = ngx_queue_next(q))
    {
        stored = ngx_queue_data(q, ngx_http_toolgate_stored_project_t, queue);

        if (ngx_http_toolgate_registry_there(&stored->project) && i-- == 0) {
            *project = &stored->project;
            return 1;
        }
    }

    return 0;
}


/* Projects stay for the life of the worker: runs point at them. */
static ngx_http_toolgate_project_t *
ngx_http_toolgate_registry_add_project(ngx_http_toolgate_registry_t *reg,
    ngx_str_t *name)
{
    ngx_str_t                            copy;
    ngx_http_toolgate_project_t         *project;
    ngx_http_toolgate_stored_project_t  *stored;

    project = ngx_http_toolgate_registry_remembered(name);
    if (project) {
        return project;
    }

    stored = ngx_pcalloc(reg->pool, sizeof(ngx_http_toolgate_stored_project_t));
    copy.len = name->len;
    copy.data = ngx_pstrdup(reg->pool, name);

    if (stored == NULL || copy.data == NULL
        || ngx_http_toolgate_project_init(&stored->project, reg->pool, &copy,
                                          &reg->conf->catalog.master_key)
           != NGX_OK)
    {
        return NULL;
    }

    ngx_queue_insert_tail(&reg->projects, &stored->queue);

    return &stored->project;
}
