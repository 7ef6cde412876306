/*
 * The registry: what the control plane has stored in Redis, as one worker holds it.
 * It follows the store's number of changes, so that every worker of every node sees
 * a change within NGX_HTTP_TOOLGATE_REGISTRY_POLL_MS, and at once when asked to
 * refresh. It builds what requests need (keys, agents, end-user keys) and knows no
 * request.
 */

#ifndef NGX_HTTP_TOOLGATE_REGISTRY_H
#define NGX_HTTP_TOOLGATE_REGISTRY_H

#include "ngx_http_toolgate_module.h"
#include "ngx_http_toolgate_catalog.h"


#define NGX_HTTP_TOOLGATE_REGISTRY_POLL_MS   250
#define NGX_HTTP_TOOLGATE_REGISTRY_PAUSE_MS  10     /* between two refreshes */
#define NGX_HTTP_TOOLGATE_REGISTRY_COUNT     100    /* objects of one answer */
#define NGX_HTTP_TOOLGATE_REGISTRY_BYTES     1000000

#define NGX_HTTP_TOOLGATE_OBJECT_BYTES_MAX   (512 * 1024)
#define NGX_HTTP_TOOLGATE_OBJECT_DEPTH_MAX   120    /* and 8 of what stands around it */
#define NGX_HTTP_TOOLGATE_OBJECTS_MAX        1000   /* of a kind and project */
#define NGX_HTTP_TOOLGATE_OBJECT_NAME_MAX    256    /* "project/kind/id" */
#define NGX_HTTP_TOOLGATE_USER_KEYS_MAX      (2 * TG_JWT_KEYS_MAX)

/* One stored object. Valid until the worker takes in a change of it: never kept
 * over a return to the event loop. */
typedef struct {
    ngx_str_node_t                 by_id;      /* "project/kind/id" */
    ngx_str_node_t                 by_unique;  /* "project/kind/name" */
    ngx_queue_t                    queue;      /* of its project and kind */
    ngx_http_toolgate_kind_e       kind;
    ngx_http_toolgate_project_t   *project;
    ngx_str_t                      id;
    ngx_uint_t                     version;
    json_t                        *doc;
    ngx_pool_t                    *pool;       /* of this, and of a key */
    void                          *built;      /* key_t, agent_t, tg_jwt_key_t */
} ngx_http_toolgate_object_t;

/* up is 0 when the store could not be asked. */
typedef void (*ngx_http_toolgate_registry_done_pt)(void *data, ngx_uint_t up);

/* One change of one object, as _registry_write takes it. */
typedef struct {
    const char                    *verb;       /* create update delete version */
    ngx_http_toolgate_kind_e       kind;
    ngx_http_toolgate_project_t   *project;
    ngx_str_t                      id;
    ngx_str_t                      unique;     /* "" = none */
    ngx_str_t                      before;
    ngx_uint_t                     expected;   /* 0 = any version */
    tg_str_t                       doc;        /* JSON; of "delete" see the script */
} ngx_http_toolgate_change_t;

/* code is NULL when all was written, else version_conflict, name_conflict,
 * too_many, not_found or store_unavailable. */
typedef void (*ngx_http_toolgate_written_pt)(void *data, const char *code);


ngx_int_t ngx_http_toolgate_registry_init_worker(ngx_cycle_t *cycle);
void ngx_http_toolgate_registry_exit_worker(ngx_cycle_t *cycle);

/* Whether there is a store to hold objects. */
ngx_uint_t ngx_http_toolgate_registry_on(void);

/*
 * Takes in what has changed, then calls done, from the event loop; many callers
 * share one question. Nothing is called after pool is destroyed. NGX_ERROR: out of
 * memory or no store, and done is not called.
 */
ngx_int_t ngx_http_toolgate_registry_refresh(ngx_pool_t *pool,
    ngx_http_toolgate_registry_done_pt done, void *data);

/* Writes changes, all or none, takes them in, then calls done. The same rules. */
ngx_int_t ngx_http_toolgate_registry_write(ngx_pool_t *pool,
    ngx_http_toolgate_change_t *changes, ngx_uint_t n,
    ngx_http_toolgate_written_pt done, void *data);

/* Reads a frozen version of an agent; doc is NULL when there is none, and the
 * callback's own to keep no longer than the call. */
typedef void (*ngx_http_toolgate_version_pt)(void *data, json_t *doc,
    ngx_uint_t up);
ngx_int_t ngx_http_toolgate_registry_version(ngx_pool_t *pool,
    ngx_http_toolgate_project_t *project, ngx_str_t *id, ngx_uint_t number,
    ngx_http_toolgate_version_pt done, void *data);

/* An object by id, or by what is unique of it within its project (its name; of an
 * API key its digest, over all projects: project is NULL then). NULL: none. */
ngx_http_toolgate_object_t *ngx_http_toolgate_registry_get(
    ngx_http_toolgate_project_t *project, ngx_http_toolgate_kind_e kind,
    ngx_str_t *id);
ngx_http_toolgate_object_t *ngx_http_toolgate_registry_named(
    ngx_http_toolgate_project_t *project, ngx_http_toolgate_kind_e kind,
    ngx_str_t *name);

/* All objects of a kind and project: a queue linked by object_t.queue, or NULL. */
ngx_queue_t *ngx_http_toolgate_registry_list(ngx_http_toolgate_project_t *project,
    ngx_http_toolgate_kind_e kind);

/* A project of files or of the store by name, or NULL. */
ngx_http_toolgate_project_t *ngx_http_toolgate_registry_project(ngx_str_t *name);

/* The i-th of all projects, of files first; 0 past the last. */
ngx_uint_t ngx_http_toolgate_registry_project_at(ngx_uint_t i,
    ngx_http_toolgate_project_t **project);

/* The word for a kind in names of objects: "agent", "tool", … */
const char *ngx_http_toolgate_kind_word(ngx_http_toolgate_kind_e kind);

/* What a builder needs of the configuration, for a pool and project. */
void ngx_http_toolgate_registry_builder(ngx_http_toolgate_catalog_t *cat,
    ngx_pool_t *pool, ngx_http_toolgate_project_t *project);

/* _registry_build.c: builds what requests need of an object that has changed, and
 * gives back what was built of one that is going. */
void ngx_http_toolgate_object_build(ngx_http_toolgate_object_t *object);
void ngx_http_toolgate_object_drop(ngx_http_toolgate_object_t *object);

/* _registry_build.c: an agent of its document {"agent","tools"} in a pool of its
 * own, or NULL with what is wrong in cat. */
ngx_http_toolgate_agent_t *ngx_http_toolgate_agent_build(
    ngx_http_toolgate_catalog_t *cat, json_t *frozen, ngx_str_t *id);

/* The secrets of a project that a template names (NULL: all), of files and of the
 * store, as an array of tg_template_secret_t; those of the store are wiped with
 * pool. NULL: out of memory. */
ngx_array_t *ngx_http_toolgate_secrets(ngx_pool_t *pool,
    ngx_http_toolgate_project_t *project, const tg_template_t *template);

/* One secret by name, of files or of the store; NULL: there is none that can be
 * opened. It lives, and is wiped, with pool. */
ngx_http_toolgate_secret_t *ngx_http_toolgate_secret_get(ngx_pool_t *pool,
    ngx_http_toolgate_project_t *project, ngx_str_t *name);

/* The switches that hold at once and for all versions: of an agent, and of one of
 * its tools. What is gone is off. */
void ngx_http_toolgate_agent_switches(ngx_http_toolgate_project_t *project,
    ngx_http_toolgate_agent_t *agent, bool *tools_enabled, bool *actions_paused);
bool ngx_http_toolgate_tool_switch(ngx_http_toolgate_project_t *project,
    ngx_http_toolgate_tool_t *tool);

/* The keys that tokens of end users are verified with, of files and of the store;
 * how many there are. Valid until the event loop is entered again. */
ngx_uint_t ngx_http_toolgate_user_keys(ngx_http_toolgate_project_t *project,
    tg_jwt_key_t *keys[NGX_HTTP_TOOLGATE_USER_KEYS_MAX]);

/* The stored key with this digest, copied into pool; NULL: none. */
ngx_http_toolgate_key_t *ngx_http_toolgate_registry_key(ngx_pool_t *pool,
    u_char sha256[NGX_HTTP_TOOLGATE_KEY_SHA256_LEN]);

/* _registry_build.c: a new reference to {"version","agent","tools"} of a draft with
 * copies of the HTTP tools that it names, or NULL when memory is out. Names that
 * nothing has are left out: building the agent finds them. */
json_t *ngx_http_toolgate_agent_freeze(ngx_http_toolgate_project_t *project,
    json_t *draft, ngx_uint_t version);

/* Seals or opens a text for one project and name; NGX_DECLINED when it was sealed
 * under another master key, or was changed. */
ngx_int_t ngx_http_toolgate_seal(ngx_http_toolgate_project_t *project,
    const char *kind, ngx_str_t *id, tg_str_t plain, tg_buf_t *out);
ngx_int_t ngx_http_toolgate_unseal(ngx_http_toolgate_project_t *project,
    const char *kind, ngx_str_t *id, tg_str_t sealed, tg_buf_t *plain);

#endif /* NGX_HTTP_TOOLGATE_REGISTRY_H */
