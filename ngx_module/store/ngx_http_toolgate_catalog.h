/*
 * What builds tools, agents, keys and secrets from their JSON shares: for catalog
 * files, whose faults are told with file and line, and for the API, whose faults
 * are a code, a pointer and a reason.
 */

#ifndef NGX_HTTP_TOOLGATE_CATALOG_H
#define NGX_HTTP_TOOLGATE_CATALOG_H

#include "ngx_http_toolgate_objects.h"

#include "tg_json.h"


#define NGX_HTTP_TOOLGATE_POINTER_MAX  512
#define NGX_HTTP_TOOLGATE_REASON_MAX   256

#define NGX_HTTP_TOOLGATE_AGENT_TOOLS_MAX  128

/* Where objects are built, from what, and what was wrong. */
typedef struct {
    ngx_pool_t                        *pool;       /* of what is built */
    ngx_log_t                         *log;
    ngx_cycle_t                       *cycle;      /* of files only */
    ngx_http_toolgate_catalog_conf_t  *conf;
    ngx_http_toolgate_objects_t       *objects;
    ngx_http_toolgate_project_t       *project;
    ngx_array_t                       *tools;      /* of tool_t *: to be granted */
    ngx_str_t                          file;       /* being read, or "" */
    tg_str_t                           text;
    unsigned                           stored:1;   /* checked when it was stored:
                                                    * secrets may come or be gone */

    /* the first fault; code NULL and NGX_ERROR: out of memory */
    const char                        *code;
    char                               pointer[NGX_HTTP_TOOLGATE_POINTER_MAX];
    char                               reason[NGX_HTTP_TOOLGATE_REASON_MAX];
} ngx_http_toolgate_catalog_t;


/* Notes the fault, logs "code: reason at pointer in file:line" when a file is
 * read, and returns NGX_ERROR. */
ngx_int_t ngx_http_toolgate_catalog_error(ngx_http_toolgate_catalog_t *cat,
    const char *pointer, const char *code, const char *reason);

/* The same at the member key of what base points to. */
ngx_int_t ngx_http_toolgate_catalog_fault(ngx_http_toolgate_catalog_t *cat,
    const char *base, const char *key, const char *code, const char *reason);

/* Writes a JSON pointer; a very long one is cut. */
void ngx_http_toolgate_catalog_at(char pointer[NGX_HTTP_TOOLGATE_POINTER_MAX],
    const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* NGX_OK when value is an object that has none but these keys. */
ngx_int_t ngx_http_toolgate_catalog_known(ngx_http_toolgate_catalog_t *cat,
    json_t *value, const char *base, const char *const *keys);

/* Copies a string member into cat->pool, with a NUL behind it. */
ngx_int_t ngx_http_toolgate_catalog_string(ngx_http_toolgate_catalog_t *cat,
    json_t *object, const char *base, const char *key, ngx_uint_t required,
    ngx_str_t *out);

/* A member that is true or false; *out stays when it is absent. */
ngx_int_t ngx_http_toolgate_catalog_flag(ngx_http_toolgate_catalog_t *cat,
    json_t *object, const char *base, const char *key, ngx_uint_t *out);

/* A member that is a list; *out is NULL when it is absent. */
ngx_int_t ngx_http_toolgate_catalog_array(ngx_http_toolgate_catalog_t *cat,
    json_t *object, const char *base, const char *key, json_t **out);

/* A tool of cat->tools by name or id. */
ngx_http_toolgate_tool_t *ngx_http_toolgate_catalog_find_tool(
    ngx_http_toolgate_catalog_t *cat, ngx_str_t *name);

/* Builds one HTTP tool, or one agent with grants of cat->tools. All of it goes
 * with cat->pool. NULL: a fault, or out of memory. Whether something else has its
 * name is the caller's question. */
ngx_http_toolgate_tool_t *ngx_http_toolgate_catalog_tool(
    ngx_http_toolgate_catalog_t *cat, json_t *value, const char *base);
ngx_http_toolgate_agent_t *ngx_http_toolgate_catalog_agent(
    ngx_http_toolgate_catalog_t *cat, json_t *value, const char *base);

/* An empty tool of zeroed memory; its schema, template, parameters and doc are given
 * back with cat->pool. NULL: out of memory. */
ngx_http_toolgate_tool_t *ngx_http_toolgate_catalog_new_tool(
    ngx_http_toolgate_catalog_t *cat, ngx_http_toolgate_tool_kind_e kind);

/* Sets the agent's model from "model" of its object. */
ngx_int_t ngx_http_toolgate_catalog_model(ngx_http_toolgate_catalog_t *cat,
    json_t *value, const char *base, ngx_http_toolgate_agent_t *agent);

/* Builds the secret, or the API key, at place i of its list. */
ngx_int_t ngx_http_toolgate_catalog_secret(ngx_http_toolgate_catalog_t *cat,
    json_t *value, ngx_uint_t i);
ngx_int_t ngx_http_toolgate_catalog_key(ngx_http_toolgate_catalog_t *cat,
    json_t *value, ngx_uint_t i);

/* Builds one key for end user tokens; it goes with cat->pool. "secret_file" is for
 * catalog files only. NULL: a fault, or out of memory. Whether another key has its
 * name is the caller's question. */
tg_jwt_key_t *ngx_http_toolgate_catalog_user_key(ngx_http_toolgate_catalog_t *cat,
    json_t *value, const char *base);

/* Reads a secret that lies alone in a file, which the member key of what base
 * points to names; the line's end is not of it. */
ngx_int_t ngx_http_toolgate_catalog_value_file(ngx_http_toolgate_catalog_t *cat,
    ngx_str_t *file, const char *base, const char *key, ngx_str_t *out);

/* Fills the hosts of a secret from its "allowed_hosts", lower-cased. */
ngx_int_t ngx_http_toolgate_catalog_hosts(ngx_http_toolgate_catalog_t *cat,
    json_t *hosts, const char *base, ngx_http_toolgate_secret_t *secret);

/* Whether this is [A-Z][A-Z0-9_]{0,63}. */
ngx_uint_t ngx_http_toolgate_secret_name_valid(ngx_str_t *name);

/* Makes the key of "toolgate_admin_key" in the project "default". */
ngx_int_t ngx_http_toolgate_catalog_admin_key(ngx_http_toolgate_catalog_t *cat);

/* Grants what "toolset" of an agent names, and reads how its calls are approved. */
ngx_int_t ngx_http_toolgate_agent_toolset(ngx_http_toolgate_catalog_t *cat,
    json_t *toolset, const char *base, ngx_http_toolgate_agent_t *agent);

/* Builds and grants the agent's client tools, a list or NULL. */
ngx_int_t ngx_http_toolgate_agent_client(ngx_http_toolgate_catalog_t *cat,
    json_t *client, const char *base, ngx_http_toolgate_agent_t *agent);

/* Marks the grants that "require_approval" of its toolset names; after all are there. */
ngx_int_t ngx_http_toolgate_agent_named(ngx_http_toolgate_catalog_t *cat,
    json_t *toolset, const char *base, ngx_http_toolgate_agent_t *agent);

/* "business_hours" of an agent's value, when it has them. */
ngx_int_t ngx_http_toolgate_agent_hours(ngx_http_toolgate_catalog_t *cat,
    json_t *value, const char *base, ngx_http_toolgate_agent_t *agent);

/* "hours_only" of a grant; an agent without hours may have none such. */
ngx_int_t ngx_http_toolgate_agent_hours_only(ngx_http_toolgate_catalog_t *cat,
    json_t *grant, const char *base, const ngx_http_toolgate_agent_t *agent,
    ngx_uint_t *hours_only);

/* Grants one tool; rules may be NULL. */
ngx_int_t ngx_http_toolgate_agent_grant(ngx_http_toolgate_catalog_t *cat,
    ngx_http_toolgate_agent_t *agent, ngx_http_toolgate_tool_t *tool,
    json_t *rules, ngx_uint_t hours_only, const char *base);

/* Reads a file into cat->file and cat->text. */
ngx_int_t ngx_http_toolgate_catalog_read(ngx_http_toolgate_catalog_t *cat,
    ngx_str_t *name);

/* The bit of a scope's name, 0 for an unknown one or NULL. */
ngx_uint_t ngx_http_toolgate_scope(const char *name);

#endif /* NGX_HTTP_TOOLGATE_CATALOG_H */
