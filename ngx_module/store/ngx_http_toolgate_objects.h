/*
 * The objects of the control plane as a worker holds them: projects, keys,
 * secrets, tools, agents. Read-only once loaded; they belong to the pool of the
 * configuration that loaded them. This file knows no request and runs nothing.
 */

#ifndef NGX_HTTP_TOOLGATE_OBJECTS_H
#define NGX_HTTP_TOOLGATE_OBJECTS_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "tg_approval.h"
#include "tg_hours.h"
#include "tg_ids.h"
#include "tg_jwt.h"
#include "tg_policy.h"
#include "tg_schema.h"
#include "tg_sign.h"
#include "tg_template.h"
#include "tg_url.h"


#define NGX_HTTP_TOOLGATE_KEY_SHA256_LEN  32
#define NGX_HTTP_TOOLGATE_RULES_MAX       4000     /* code points */
#define NGX_HTTP_TOOLGATE_VARIABLE_NAME_MAX  64

#define NGX_HTTP_TOOLGATE_SCOPE_ADMIN    0x01
#define NGX_HTTP_TOOLGATE_SCOPE_RUN      0x02
#define NGX_HTTP_TOOLGATE_SCOPE_APPROVE  0x04
#define NGX_HTTP_TOOLGATE_SCOPE_TOOLS    0x08
#define NGX_HTTP_TOOLGATE_SCOPE_ALL      0x0f

/* What the store can hold. */
typedef enum {
    NGX_HTTP_TOOLGATE_KIND_PROJECT = 0,
    NGX_HTTP_TOOLGATE_KIND_API_KEY,
    NGX_HTTP_TOOLGATE_KIND_TOOL,
    NGX_HTTP_TOOLGATE_KIND_AGENT,
    NGX_HTTP_TOOLGATE_KIND_SECRET,
    NGX_HTTP_TOOLGATE_KIND_SIGNING,
    NGX_HTTP_TOOLGATE_KIND_USER_KEY,
    NGX_HTTP_TOOLGATE_KINDS
} ngx_http_toolgate_kind_e;

typedef enum {
    NGX_HTTP_TOOLGATE_TOOL_HTTP = 0,
    NGX_HTTP_TOOLGATE_TOOL_HELPER,
    NGX_HTTP_TOOLGATE_TOOL_CLIENT            /* run by the caller's app */
} ngx_http_toolgate_tool_kind_e;

typedef struct {
    ngx_str_t                      name;
    ngx_str_t                      value;
    tg_str_t                      *allowed_hosts;
    size_t                         allowed_host_count;
} ngx_http_toolgate_secret_t;

/* Where an agent's own model is, instead of a location of this nginx. */
typedef struct {
    ngx_str_t                      url;            /* of its chat completions */
    tg_url_t                       parts;          /* of url */
    ngx_str_t                      secret;         /* its name, or "" */
} ngx_http_toolgate_model_url_t;

/* One "toolgate_model name location=/uri …": a place that serves this model. */
typedef struct {
    ngx_str_t                      location;
    ngx_http_toolgate_model_url_t *url;            /* NULL: location it is */
    ngx_str_t                      vendor_name;    /* empty: the model's name */
    unsigned                       backup:1;
    unsigned                       responses:1;    /* it speaks Responses, not chat */
} ngx_http_toolgate_upstream_t;

/* All places of one name, in the order in which they are tried. */
typedef struct {
    ngx_str_t                      name;
    ngx_array_t                    upstreams;      /* of upstream_t */
} ngx_http_toolgate_model_t;

/* One tool as a project defines it, or one of the helper's. */
typedef struct {
    char                           id[TG_ID_MAX_LEN];
    ngx_str_t                      name;
    ngx_str_t                      description;
    ngx_http_toolgate_tool_kind_e  kind;
    tg_effect_e                    effect;
    json_t                        *parameters;
    tg_schema_t                   *schema;
    tg_template_t                 *template;       /* HTTP tools only */
    json_t                        *doc;            /* as defined; HTTP tools */
    unsigned                       requires_verified_user:1;
    unsigned                       enabled:1;      /* when it was built */
    unsigned                       stored:1;       /* the store knows its id */
} ngx_http_toolgate_tool_t;

/* A tool that an agent may use, and what a model is told of it. */
typedef struct {
    ngx_http_toolgate_tool_t      *tool;
    ngx_str_t                      definition;     /* JSON for the "tools" list */
    unsigned                       hours_only:1;   /* in business hours only */
    unsigned                       approve:1;      /* each call, in every mode */
} ngx_http_toolgate_grant_t;

typedef struct {
    char                           id[TG_ID_MAX_LEN];
    ngx_str_t                      name;
    ngx_str_t                      model;          /* its name */
    ngx_http_toolgate_model_t     *own_model;      /* NULL: a configured one */
    ngx_str_t                      instructions;
    json_t                        *variables;      /* object of strings or NULL */
    ngx_uint_t                     version;
    ngx_uint_t                     max_rounds;
    ngx_array_t                    grants;         /* sorted by name */
    tg_approval_mode_e             approval_mode;
    tg_hours_t                    *hours;          /* NULL: always open */
    json_t                        *doc;            /* as defined */
    ngx_pool_t                    *pool;           /* its own, or NULL: never freed */
    ngx_uint_t                     refs;           /* of pool */
    unsigned                       tools_enabled:1;  /* when it was built */
    unsigned                       allow_anonymous_actions:1;
    unsigned                       actions_paused:1;
    unsigned                       stored:1;       /* the store knows its id */
} ngx_http_toolgate_agent_t;

typedef struct {
    ngx_str_t                      name;
    /* of files */
    ngx_array_t                    agents;         /* of agent_t * */
    ngx_array_t                    tools;          /* of tool_t * */
    ngx_array_t                    secrets;        /* of secret_t */
    ngx_array_t                    end_user_keys;  /* of tg_jwt_key_t * */
    /* of the store: lists that the registry keeps */
    ngx_queue_t                    stored[NGX_HTTP_TOOLGATE_KINDS];
    /* calls are signed with both while previous_expires lies ahead */
    tg_sign_key_t                  signing_key;
    tg_sign_key_t                  previous_key;
    ngx_str_t                      signing_secret; /* "whsec_…" */
    ngx_str_t                      previous_secret;
    char                           signing_text[TG_SIGN_SECRET_MAX];
    char                           previous_text[TG_SIGN_SECRET_MAX];
    time_t                         signing_created;
    time_t                         previous_expires;
    unsigned                       can_sign:1;
} ngx_http_toolgate_project_t;

typedef struct {
    u_char                         sha256[NGX_HTTP_TOOLGATE_KEY_SHA256_LEN];
    ngx_str_t                      name;
    ngx_str_t                      account;        /* bound to it, or "" */
    ngx_uint_t                     scopes;
    ngx_http_toolgate_project_t   *project;
    unsigned                       root:1;         /* may make projects */
} ngx_http_toolgate_key_t;

typedef struct {
    ngx_array_t                    projects;       /* of project_t * */
    ngx_array_t                    keys;           /* of key_t */
    ngx_array_t                    helper_tools;   /* of tool_t */
    ngx_pool_t                    *pool;
} ngx_http_toolgate_objects_t;

/* What loading needs to know from the rest of the configuration. */
typedef struct {
    ngx_array_t                   *globs;          /* of ngx_str_t */
    const tg_netguard_t           *guard;
    const tg_zones_t              *zones;          /* NULL: this machine has none */
    ngx_str_t                      master_key;     /* 32 bytes or empty */
    ngx_str_t                      admin_key;      /* the key itself or empty */
    ngx_uint_t                     helper;         /* a helper is configured */
    /* whether a model of this name is configured */
    ngx_uint_t                   (*has_model)(void *data, ngx_str_t *name);
    void                          *data;
} ngx_http_toolgate_catalog_conf_t;


/* Loads all catalog files. Errors are logged as "… in file:line" at emerg. */
ngx_int_t ngx_http_toolgate_catalog_load(ngx_conf_t *cf,
    ngx_http_toolgate_catalog_conf_t *conf, ngx_http_toolgate_objects_t *objects);

/* The project of this name, made when it is not there yet. */
ngx_http_toolgate_project_t *ngx_http_toolgate_project(
    ngx_http_toolgate_objects_t *objects, ngx_str_t *name,
    ngx_str_t *master_key);

/* A secret of the project by its name; NULL when there is none. */
ngx_http_toolgate_secret_t *ngx_http_toolgate_secret_find(
    ngx_http_toolgate_project_t *project, ngx_str_t *name);

/* Makes an empty project of zeroed memory; name lives as long as pool. */
ngx_int_t ngx_http_toolgate_project_init(ngx_http_toolgate_project_t *project,
    ngx_pool_t *pool, ngx_str_t *name, ngx_str_t *master_key);

/* Gives a project the signing secret that follows from the master key. */
ngx_int_t ngx_http_toolgate_signing_derive(ngx_http_toolgate_project_t *project,
    ngx_str_t *master_key);

/* An agent of files by id or unique name within a project; NULL: none. */
ngx_http_toolgate_agent_t *ngx_http_toolgate_agent_find(
    ngx_http_toolgate_project_t *project, ngx_str_t *name);

/* Keeps an agent until pool is destroyed; needed for all that is kept over a
 * return to the event loop. */
ngx_int_t ngx_http_toolgate_agent_hold(ngx_pool_t *pool,
    ngx_http_toolgate_agent_t *agent);
void ngx_http_toolgate_agent_release(ngx_http_toolgate_agent_t *agent);

/* The key whose SHA-256 this is. Compares in constant time. */
ngx_http_toolgate_key_t *ngx_http_toolgate_key_find(
    ngx_http_toolgate_objects_t *objects,
    u_char sha256[NGX_HTTP_TOOLGATE_KEY_SHA256_LEN]);

/* The built-in helper tools (name, description, schema), made once a load. */
ngx_int_t ngx_http_toolgate_helper_tools(ngx_conf_t *cf,
    ngx_http_toolgate_objects_t *objects);

#endif /* NGX_HTTP_TOOLGATE_OBJECTS_H */
