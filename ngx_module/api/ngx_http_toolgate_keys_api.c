/*
 * /v1/api_keys and /v1/projects: who may call. A key is shown once, when it is
 * made; the store has its digest.
 */

#include "ngx_http_toolgate_control.h"

#include <openssl/evp.h>


static ngx_int_t ngx_http_toolgate_keys_define(ngx_http_toolgate_control_t *c,
    json_t *definition, ngx_http_toolgate_object_t *old, json_t *doc);
static ngx_int_t ngx_http_toolgate_keys_scopes(ngx_http_toolgate_control_t *c,
    json_t *scopes);
static ngx_int_t ngx_http_toolgate_keys_make(ngx_http_toolgate_control_t *c,
    json_t *doc);
static json_t *ngx_http_toolgate_keys_view(ngx_http_toolgate_object_t *object);
static void ngx_http_toolgate_projects_act(ngx_http_toolgate_control_t *c);
static void ngx_http_toolgate_projects_list(ngx_http_toolgate_control_t *c);
static void ngx_http_toolgate_projects_create(ngx_http_toolgate_control_t *c);
static json_t *ngx_http_toolgate_projects_key(ngx_http_toolgate_control_t *c);
static ngx_int_t ngx_http_toolgate_projects_changes(
    ngx_http_toolgate_control_t *c, ngx_http_toolgate_project_t *project,
    json_t *key, ngx_http_toolgate_change_t *changes);
static void ngx_http_toolgate_projects_created(ngx_http_toolgate_control_t *c);
static json_t *ngx_http_toolgate_projects_view(ngx_str_t *name);


static const ngx_http_toolgate_collection_t  ngx_http_toolgate_keys_collection = {
    NGX_HTTP_TOOLGATE_KIND_API_KEY, "key_", NULL,
    ngx_http_toolgate_keys_define,
    ngx_http_toolgate_keys_view,
    NULL, NULL, 0
};


ngx_int_t
ngx_http_toolgate_api_keys(ngx_http_request_t *r, ngx_http_toolgate_key_t *key,
    ngx_str_t *rest)
{
    return ngx_http_toolgate_control(r, key, rest, ngx_http_toolgate_collection,
                             (void *) &ngx_http_toolgate_keys_collection);
}


static ngx_int_t
ngx_http_toolgate_keys_define(ngx_http_toolgate_control_t *c, json_t *definition,
    ngx_http_toolgate_object_t *old, json_t *doc)
{
    json_t    *scopes;
    tg_str_t   name, account;

    static const char *const  members[] = {
        "name", "scopes", "account_id", NULL
    };

    if (ngx_http_toolgate_control_known(c, definition, members) != NGX_OK
        || ngx_http_toolgate_control_string(c, definition, "name", 1,
                                            NGX_HTTP_TOOLGATE_NAME_CHARS_MAX,
                                            &name)
           != NGX_OK
        || ngx_http_toolgate_control_string(c, definition, "account_id", 0,
                                            NGX_HTTP_TOOLGATE_NAME_CHARS_MAX,
                                            &account)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (account.len && !tg_id_label_valid(account)) {
        ngx_http_toolgate_control_error(c, "invalid_value",
                                        "\"account_id\" has 1 to 64 of "
                                        "[A-Za-z0-9_.:-].", "account_id");
        return NGX_ERROR;
    }

    scopes = json_object_get(definition, "scopes");

    if (ngx_http_toolgate_keys_scopes(c, scopes) != NGX_OK) {
        return NGX_ERROR;
    }

    (void) json_object_set_new(doc, "name", json_stringn(name.data, name.len));
    (void) json_object_set(doc, "scopes", scopes);

    if (account.len) {
        (void) json_object_set_new(doc, "account_id",
                                   json_stringn(account.data, account.len));
    }

    return ngx_http_toolgate_keys_make(c, doc);
}


static ngx_int_t
ngx_http_toolgate_keys_scopes(ngx_http_toolgate_control_t *c, json_t *scopes)
{
    size_t       i;
    ngx_uint_t   scope, all;

    all = 0;

    for (i = 0; i < json_array_size(scopes); i++) {
        scope = ngx_http_toolgate_scope(
                    json_string_value(json_array_get(scopes, i)));

        if (scope == 0 || (all & scope)) {
            all = 0;
            break;
        }

        all |= scope;
    }

    if (all == 0) {
        ngx_http_toolgate_control_error(c, scopes ? "invalid_value"
                                                  : "missing_parameter",
                                        "\"scopes\" is a list of admin, run, "
                                        "approve and tools, each at most once.",
                                        "scopes");
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* The key itself goes into the reply, its digest into doc. */
static ngx_int_t
ngx_http_toolgate_keys_make(ngx_http_toolgate_control_t *c, json_t *doc)
{
    char       text[2 * TG_ID_MAX_LEN], more[TG_ID_MAX_LEN];
    u_char     sha256[EVP_MAX_MD_SIZE], hex[2 * NGX_HTTP_TOOLGATE_KEY_SHA256_LEN];
    uint8_t    random[2 * TG_ID_RANDOM_LEN];

    if (ngx_http_toolgate_random(random, sizeof(random)) != NGX_OK) {
        ngx_http_toolgate_control_error(c, "internal_error", NULL, NULL);
        return NGX_ERROR;
    }

    tg_id_make("tg_", random, text);
    tg_id_make("", random + TG_ID_RANDOM_LEN, more);
    ngx_memcpy(text + ngx_strlen(text), more, ngx_strlen(more) + 1);

    if (EVP_Digest(text, ngx_strlen(text), sha256, NULL, EVP_sha256(), NULL) != 1) {
        ngx_http_toolgate_control_error(c, "internal_error", NULL, NULL);
        return NGX_ERROR;
    }

    (void) ngx_hex_dump(hex, sha256, NGX_HTTP_TOOLGATE_KEY_SHA256_LEN);
    (void) json_object_set_new(doc, "sha256",
                               json_stringn((char *) hex, sizeof(hex)));

    json_decref(c->reply);
    c->reply = json_pack("{s:s}", "key", text);

    ngx_explicit_memzero(text, sizeof(text));
    ngx_explicit_memzero(more, sizeof(more));
    ngx_explicit_memzero(random, sizeof(random));

    return NGX_OK;
}


static json_t *
ngx_http_toolgate_keys_view(ngx_http_toolgate_object_t *object)
{
    json_t  *account;

    account = json_object_get(object->doc, "account_id");

    return json_pack("{s:O,s:s,s:O,s:O,s:O?,s:O}",
                     "id", json_object_get(object->doc, "id"),
                     "object", "api_key",
                     "name", json_object_get(object->doc, "name"),
                     "scopes", json_object_get(object->doc, "scopes"),
                     "account_id", account,
                     "created_at", json_object_get(object->doc, "created_at"));
}


ngx_int_t
ngx_http_toolgate_projects(ngx_http_request_t *r, ngx_http_toolgate_key_t *key,
    ngx_str_t *rest)
{
    if (!key->root) {
        return ngx_http_toolgate_reply_error(r, "insufficient_scope",
                                             "Only the key of the file "
                                             "\"toolgate_admin_key\" may make "
                                             "and list projects.", NULL);
    }

    return ngx_http_toolgate_control(r, key, rest, ngx_http_toolgate_projects_act,
                                     NULL);
}


static void
ngx_http_toolgate_projects_act(ngx_http_toolgate_control_t *c)
{
    if (c->rest.len > 1) {
        ngx_http_toolgate_control_error(c, "unknown_url", NULL, NULL);

    } else if (c->request->method == NGX_HTTP_GET) {
        ngx_http_toolgate_projects_list(c);

    } else if (c->request->method == NGX_HTTP_POST) {
        ngx_http_toolgate_projects_create(c);

    } else {
        ngx_http_toolgate_control_method(c, "GET, POST");
    }
}


static void
ngx_http_toolgate_projects_list(ngx_http_toolgate_control_t *c)
{
    json_t                       *values;
    ngx_uint_t                    i;
    ngx_http_toolgate_project_t  *project;

    values = json_array();

    for (i = 0; ngx_http_toolgate_registry_project_at(i, &project); i++) {
        (void) json_array_append_new(values,
                   ngx_http_toolgate_projects_view(&project->name));
    }

    ngx_http_toolgate_control_page(c, values);
}


static json_t *
ngx_http_toolgate_projects_view(ngx_str_t *name)
{
    return json_pack("{s:s%,s:s,s:s%}", "id", name->data, name->len,
                     "object", "project", "name", name->data, name->len);
}


/* A project and its first key, both or neither. */
static void
ngx_http_toolgate_projects_create(ngx_http_toolgate_control_t *c)
{
    json_t                       *key;
    tg_str_t                      name;
    ngx_str_t                     label;
    ngx_http_toolgate_project_t  *project;
    ngx_http_toolgate_change_t   *changes;

    static const char *const  members[] = { "name", NULL };

    if (ngx_http_toolgate_control_known(c, c->body, members) != NGX_OK
        || ngx_http_toolgate_control_string(c, c->body, "name", 1,
                                            NGX_HTTP_TOOLGATE_NAME_CHARS_MAX,
                                            &name)
           != NGX_OK)
    {
        return;
    }

    if (!tg_id_label_valid(name)) {
        ngx_http_toolgate_control_error(c, "invalid_value",
                                        "A project's name has 1 to 64 of "
                                        "[A-Za-z0-9_.:-].", "name");
        return;
    }

    label.data = (u_char *) name.data;
    label.len = name.len;

    if (ngx_http_toolgate_registry_project(&label)) {
        ngx_http_toolgate_control_error(c, "name_conflict", NULL, "name");
        return;
    }

    project = ngx_pcalloc(c->request->pool, sizeof(ngx_http_toolgate_project_t));
    changes = ngx_pcalloc(c->request->pool,
                          2 * sizeof(ngx_http_toolgate_change_t));
    key = ngx_http_toolgate_projects_key(c);

    if (key == NULL) {
        return;
    }

    if (project == NULL || changes == NULL) {
        ngx_http_toolgate_control_error(c, "internal_error", NULL, NULL);

    } else {
        project->name = label;

        if (ngx_http_toolgate_projects_changes(c, project, key, changes) == NGX_OK)
        {
            ngx_http_toolgate_control_write(c, changes, 2,
                                            ngx_http_toolgate_projects_created);
        }
    }

    json_decref(key);
}


/* The document of the first key, which may do everything; NULL: it has answered. */
static json_t *
ngx_http_toolgate_projects_key(ngx_http_toolgate_control_t *c)
{
    json_t  *key;

    c->id = ngx_http_toolgate_control_id(c, "key_");
    if (c->id.data == NULL) {
        return NULL;
    }

    key = json_pack("{s:s%,s:I,s:s,s:[s,s,s,s]}", "id", c->id.data, c->id.len,
                    "created_at", (json_int_t) ngx_time(), "name", "first",
                    "scopes", "admin", "run", "approve", "tools");

    if (ngx_http_toolgate_keys_make(c, key) != NGX_OK) {
        json_decref(key);
        return NULL;
    }

    return key;
}


static ngx_int_t
ngx_http_toolgate_projects_changes(ngx_http_toolgate_control_t *c,
    ngx_http_toolgate_project_t *project, json_t *key,
    ngx_http_toolgate_change_t *changes)
{
    json_t    *doc;
    tg_str_t   digest;

    doc = json_pack("{s:s%,s:I}", "name", project->name.data, project->name.len,
                    "created_at", (json_int_t) ngx_time());

    changes[0].verb = "create";
    changes[0].kind = NGX_HTTP_TOOLGATE_KIND_PROJECT;
    changes[0].project = project;
    changes[0].id = project->name;
    changes[0].doc = ngx_http_toolgate_control_dump(c, doc);

    json_decref(doc);

    if (changes[0].doc.data == NULL) {
        return NGX_ERROR;
    }

    digest = tg_json_get_string(key, "sha256");

    changes[1].verb = "create";
    changes[1].kind = NGX_HTTP_TOOLGATE_KIND_API_KEY;
    changes[1].project = project;
    changes[1].id = c->id;
    changes[1].unique.data = (u_char *) digest.data;
    changes[1].unique.len = digest.len;
    changes[1].doc = ngx_http_toolgate_control_dump(c, key);

    (void) json_object_set_new(c->reply, "id",
                               json_stringn((char *) c->id.data, c->id.len));
    (void) json_object_set(c->reply, "scopes", json_object_get(key, "scopes"));
    c->id = project->name;

    return changes[1].doc.data ? NGX_OK : NGX_ERROR;
}


static void
ngx_http_toolgate_projects_created(ngx_http_toolgate_control_t *c)
{
    json_t  *view;

    view = ngx_http_toolgate_projects_view(&c->id);
    (void) json_object_set(view, "key", c->reply);

    ngx_http_toolgate_control_reply(c, NGX_HTTP_CREATED, view);
}
