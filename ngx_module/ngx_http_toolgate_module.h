/*
 * The module's configuration as every layer may read it. Filled while nginx reads
 * its configuration, read-only afterwards.
 */

#ifndef NGX_HTTP_TOOLGATE_MODULE_H
#define NGX_HTTP_TOOLGATE_MODULE_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_http_toolgate_compat.h"
#include "ngx_http_toolgate_objects.h"
#include "ngx_http_toolgate_run_record.h"
#include "ngx_http_toolgate_sessions.h"
#include "ngx_toolgate_client.h"
#include "ngx_toolgate_redis.h"


#define NGX_HTTP_TOOLGATE_MAX_MODELS      1000
#define NGX_HTTP_TOOLGATE_MAX_BODY        (8 * 1024 * 1024)
#define NGX_HTTP_TOOLGATE_BODY_BUFFER     (128 * 1024)  /* read at once */
#define NGX_HTTP_TOOLGATE_SSE_PING_MS     15000
#define NGX_HTTP_TOOLGATE_RUN_TIMEOUT_MS  600000
#define NGX_HTTP_TOOLGATE_ROTATION_S      86400
#define NGX_HTTP_TOOLGATE_APPROVAL_TTL_MS      600000
#define NGX_HTTP_TOOLGATE_TOOL_OUTPUTS_TTL_MS  600000
#define NGX_HTTP_TOOLGATE_WAIT_MAX_MS          86400000   /* of both */

typedef struct {
    ngx_toolgate_redis_conf_t     *redis;          /* NULL: none configured */
    ngx_shm_zone_t                *zone;
    ngx_addr_t                    *helper;         /* NULL: none configured */
    ngx_str_t                      run_host;       /* its URI, or empty */
    struct sockaddr               *run_host_addr;
    socklen_t                      run_host_addr_len;
    void                          *run_host_server;  /* until its address is known */
    ngx_toolgate_client_conf_t     client;
    ngx_array_t                    allow;          /* of tg_netguard_allow_t */
    ngx_array_t                    own;            /* of tg_netguard_own_t */
    ngx_array_t                    own_hosts;      /* of tg_str_t */
    ngx_array_t                    catalogs;       /* of ngx_str_t */
    time_t                         retention;      /* of runs and sessions */
    size_t                         max_history;    /* of a session, in bytes */
    time_t                         segment_idle;   /* a segment ends after */
    ngx_str_t                      admin_key;
    ngx_str_t                      master_key;     /* seals */
    ngx_str_t                      previous_key;   /* opens, too; "" = none */
    tg_zones_t                    *zones;          /* NULL: this machine has none */
    ngx_http_toolgate_objects_t    objects;
    ngx_http_toolgate_catalog_conf_t  catalog;     /* for building objects */
    time_t                         rotation_overlap;  /* of signing secrets */
    ngx_msec_t                     approval_ttl;      /* until it has to be given */
    ngx_msec_t                     tool_outputs_ttl;  /* the same of a client's */
    ngx_int_t                      request_id;     /* index of the variable */
    ngx_str_t                      limit_file;     /* of the first toolgate_limit */
    ngx_uint_t                     limit_line;     /* 0: there is none */
    unsigned                       any_model:1;
    unsigned                       any_api:1;
} ngx_http_toolgate_main_conf_t;

typedef struct ngx_http_toolgate_srv_conf_s  ngx_http_toolgate_srv_conf_t;

struct ngx_http_toolgate_srv_conf_s {
    ngx_array_t                    models;         /* of model_t */
    ngx_http_toolgate_srv_conf_t  *outer;          /* the http level, or NULL */
    unsigned                       api:1;          /* a location has toolgate_api */
};

typedef struct {
    ngx_flag_t                     api;
    size_t                         max_body;
    ngx_msec_t                     sse_ping;
    ngx_msec_t                     run_timeout;
    ngx_uint_t                     approval_mode;   /* tg_approval_mode_e */
    ngx_array_t                   *limits;   /* of limit_conf_t; NULL: none */
} ngx_http_toolgate_loc_conf_t;


/* What the module's context of a request is: the first member of each. */
typedef enum {
    NGX_HTTP_TOOLGATE_CTX_BODY = 0,    /* ngx_http_toolgate_body_t, while read */
    NGX_HTTP_TOOLGATE_CTX_RUN          /* ngx_http_toolgate_run_t */
} ngx_http_toolgate_ctx_e;


extern ngx_module_t  ngx_http_toolgate_module;


/* Directive handlers of _directives.c, _keys.c, _guard.c, api/ and ops/. */
char *ngx_http_toolgate_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_toolgate_redis(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_toolgate_helper(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_toolgate_admin_key(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_toolgate_master_key(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_toolgate_catalog(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_toolgate_model(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_toolgate_netguard_allow(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_toolgate_own_host(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_toolgate_hosts(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_toolgate_ca(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_toolgate_api(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_toolgate_run_host(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_toolgate_limit(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* Adds the $toolgate_… variables; before the configuration is read. */
ngx_int_t ngx_http_toolgate_add_variables(ngx_conf_t *cf);

/* Adds the listen addresses and names of the servers that carry the API to the
 * guard's own ones, then loads the catalog. After all directives are read. */
ngx_int_t ngx_http_toolgate_finish_conf(ngx_conf_t *cf,
    ngx_http_toolgate_main_conf_t *tmcf);

/* Finds the unix socket that the run host listens on; after all directives are read. */
ngx_int_t ngx_http_toolgate_run_host_finish(ngx_conf_t *cf,
    ngx_http_toolgate_main_conf_t *tmcf);

/* The digest of n pieces, one behind the other. */
ngx_int_t ngx_http_toolgate_sha256(ngx_str_t *pieces, ngx_uint_t n,
    u_char sha256[NGX_HTTP_TOOLGATE_KEY_SHA256_LEN]);

/* Gives back what that keeps; at the end of a worker. */
void ngx_http_toolgate_sha256_exit_worker(void);

/* The model of this name among these, or NULL. */
ngx_http_toolgate_model_t *ngx_http_toolgate_model_get(ngx_array_t *models,
    ngx_str_t *name);

/* The configured model of this name as this server sees it, or NULL. */
ngx_http_toolgate_model_t *ngx_http_toolgate_model_find(ngx_http_request_t *r,
    ngx_str_t *name);

/* Random bytes for ids. */
ngx_int_t ngx_http_toolgate_random(u_char *to, size_t len);

/* Memory that is given back with _free, not with the pool. _resize keeps the first
 * used of old bytes (data may be NULL) and returns the new place; on NULL the old
 * one stays. _free without a pool: from a clean-up, where the pool is going. */
u_char *ngx_http_toolgate_bytes_resize(ngx_pool_t *pool, u_char *data,
    size_t used, size_t old, size_t size);
void ngx_http_toolgate_bytes_free(ngx_pool_t *pool, u_char *data, size_t size);

/* Adds a response header; name and value live as long as the request. */
ngx_int_t ngx_http_toolgate_add_header(ngx_http_request_t *r, const char *name,
    ngx_str_t *value);

/* Gives a response header that was added another value. */
ngx_int_t ngx_http_toolgate_change_header(ngx_http_request_t *r, const char *name,
    ngx_str_t *value);

/* A header of a list by its lower-case name; data NULL when absent. */
ngx_str_t ngx_http_toolgate_header_find(ngx_list_t *headers, const char *name);

/* The same of a request. */
ngx_str_t ngx_http_toolgate_request_header(ngx_http_request_t *r,
    const char *name);

#endif /* NGX_HTTP_TOOLGATE_MODULE_H */
