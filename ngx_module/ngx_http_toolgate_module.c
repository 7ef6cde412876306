/*
 * The module itself: its directives, the life of its configuration, and what it
 * sets up in a worker. What the directives mean is in _directives.c; what a
 * request does starts in api/.
 */

#include "ngx_http_toolgate_module.h"
#include "ngx_http_toolgate_limit.h"
#include "ngx_http_toolgate_registry.h"
#include "ngx_http_toolgate_run.h"
#include "ngx_http_toolgate_run_feed.h"
#include "ngx_http_toolgate_turn.h"
#include "ngx_toolgate_helper.h"


static ngx_int_t ngx_http_toolgate_postconfiguration(ngx_conf_t *cf);
static void *ngx_http_toolgate_create_main_conf(ngx_conf_t *cf);
static char *ngx_http_toolgate_init_main_conf(ngx_conf_t *cf, void *conf);
static void *ngx_http_toolgate_create_srv_conf(ngx_conf_t *cf);
static char *ngx_http_toolgate_merge_srv_conf(ngx_conf_t *cf, void *parent,
    void *child);
static void *ngx_http_toolgate_create_loc_conf(ngx_conf_t *cf);
static char *ngx_http_toolgate_merge_loc_conf(ngx_conf_t *cf, void *parent,
    void *child);
static ngx_int_t ngx_http_toolgate_init_process(ngx_cycle_t *cycle);
static void ngx_http_toolgate_exit_process(ngx_cycle_t *cycle);


/* the words of tg_approval_mode_parse */
static ngx_conf_enum_t  ngx_http_toolgate_approval_modes[] = {
    { ngx_string("off"), TG_APPROVAL_OFF },
    { ngx_string("full"), TG_APPROVAL_OFF },
    { ngx_string("strict"), TG_APPROVAL_STRICT },
    { ngx_string("risk"), TG_APPROVAL_STRICT },
    { ngx_string("ask"), TG_APPROVAL_STRICT },
    { ngx_null_string, 0 }
};


static ngx_command_t  ngx_http_toolgate_commands[] = {

    { ngx_string("toolgate_zone"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE2,
      ngx_http_toolgate_zone,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("toolgate_redis"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_1MORE,
      ngx_http_toolgate_redis,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("toolgate_retention"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_sec_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_toolgate_main_conf_t, retention),
      NULL },

    { ngx_string("toolgate_max_history"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_toolgate_main_conf_t, max_history),
      NULL },

    { ngx_string("toolgate_segment_idle"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_sec_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_toolgate_main_conf_t, segment_idle),
      NULL },

    { ngx_string("toolgate_helper"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_toolgate_helper,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("toolgate_admin_key"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_toolgate_admin_key,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("toolgate_master_key"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE12,
      ngx_http_toolgate_master_key,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("toolgate_rotation_overlap"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_sec_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_toolgate_main_conf_t, rotation_overlap),
      NULL },

    { ngx_string("toolgate_approval_ttl"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_toolgate_main_conf_t, approval_ttl),
      NULL },

    { ngx_string("toolgate_tool_outputs_ttl"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_toolgate_main_conf_t, tool_outputs_ttl),
      NULL },

    { ngx_string("toolgate_catalog"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_toolgate_catalog,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("toolgate_netguard_allow"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_1MORE,
      ngx_http_toolgate_netguard_allow,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("toolgate_own_host"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_1MORE,
      ngx_http_toolgate_own_host,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("toolgate_hosts"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_toolgate_hosts,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("toolgate_ca"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_toolgate_ca,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("toolgate_user_agent"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_toolgate_main_conf_t, client.user_agent),
      NULL },

    { ngx_string("toolgate_model"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_CONF_2MORE,
      ngx_http_toolgate_model,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("toolgate_api"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS,
      ngx_http_toolgate_api,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("toolgate_run_host"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS,
      ngx_http_toolgate_run_host,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("toolgate_limit"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_1MORE,
      ngx_http_toolgate_limit,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("toolgate_approval_mode"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_enum_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_toolgate_loc_conf_t, approval_mode),
      &ngx_http_toolgate_approval_modes },

    { ngx_string("toolgate_max_body"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_toolgate_loc_conf_t, max_body),
      NULL },

    { ngx_string("toolgate_sse_ping"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_toolgate_loc_conf_t, sse_ping),
      NULL },

    { ngx_string("toolgate_run_timeout"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_toolgate_loc_conf_t, run_timeout),
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_toolgate_module_ctx = {
    ngx_http_toolgate_add_variables,           /* preconfiguration */
    ngx_http_toolgate_postconfiguration,       /* postconfiguration */

    ngx_http_toolgate_create_main_conf,        /* create main configuration */
    ngx_http_toolgate_init_main_conf,          /* init main configuration */

    ngx_http_toolgate_create_srv_conf,         /* create server configuration */
    ngx_http_toolgate_merge_srv_conf,          /* merge server configuration */

    ngx_http_toolgate_create_loc_conf,         /* create location configuration */
    ngx_http_toolgate_merge_loc_conf           /* merge location configuration */
};


ngx_module_t  ngx_http_toolgate_module = {
    NGX_MODULE_V1,
    &ngx_http_toolgate_module_ctx,             /* module context */
    ngx_http_toolgate_commands,                /* module directives */
    NGX_HTTP_MODULE,                           /* module type */
    NULL,                                      /* init master */
    NULL,                                      /* init module */
    ngx_http_toolgate_init_process,            /* init process */
    NULL,                                      /* init thread */
    NULL,                                      /* exit thread */
    ngx_http_toolgate_exit_process,            /* exit process */
    NULL,                                      /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_int_t
ngx_http_toolgate_postconfiguration(ngx_conf_t *cf)
{
    ngx_http_toolgate_main_conf_t  *tmcf;

    tmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_toolgate_module);

    if (ngx_http_toolgate_turn_init(cf) != NGX_OK
        || ngx_http_toolgate_limits_finish(cf, tmcf) != NGX_OK
        || ngx_http_toolgate_run_host_finish(cf, tmcf) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_toolgate_finish_conf(cf, tmcf);
}


static void *
ngx_http_toolgate_create_main_conf(ngx_conf_t *cf)
{
    ngx_http_toolgate_main_conf_t  *conf;

    /* pcalloc makes redis, zone, helper, keys, client.hosts, limit_line and the
     * flags 0 */

    conf = ngx_pcalloc(cf->pool, sizeof(ngx_http_toolgate_main_conf_t));
    if (conf == NULL) {
        return NULL;
    }

    conf->rotation_overlap = NGX_CONF_UNSET;
    conf->approval_ttl = NGX_CONF_UNSET_MSEC;
    conf->tool_outputs_ttl = NGX_CONF_UNSET_MSEC;

    /* bounded on what it decodes to */
    conf->client.accept_gzip = 1;
    conf->retention = NGX_CONF_UNSET;
    conf->max_history = NGX_CONF_UNSET_SIZE;
    conf->segment_idle = NGX_CONF_UNSET;

    if (ngx_array_init(&conf->allow, cf->pool, 4, sizeof(tg_netguard_allow_t))
        != NGX_OK
        || ngx_array_init(&conf->own, cf->pool, 4, sizeof(tg_netguard_own_t))
           != NGX_OK
        || ngx_array_init(&conf->own_hosts, cf->pool, 4, sizeof(tg_str_t))
           != NGX_OK
        || ngx_array_init(&conf->catalogs, cf->pool, 4, sizeof(ngx_str_t))
           != NGX_OK)
    {
        return NULL;
    }

    return conf;
}


static char *
ngx_http_toolgate_init_main_conf(ngx_conf_t *cf, void *conf)
{
    ngx_http_toolgate_main_conf_t  *tmcf = conf;

    if (tmcf->client.user_agent.data == NULL) {
        ngx_str_set(&tmcf->client.user_agent, "K-Agent/1");
    }

    ngx_conf_init_value(tmcf->rotation_overlap, NGX_HTTP_TOOLGATE_ROTATION_S);
    ngx_conf_init_value(tmcf->retention, NGX_HTTP_TOOLGATE_RETENTION_S);
    ngx_conf_init_msec_value(tmcf->approval_ttl, NGX_HTTP_TOOLGATE_APPROVAL_TTL_MS);
    ngx_conf_init_msec_value(tmcf->tool_outputs_ttl,
                             NGX_HTTP_TOOLGATE_TOOL_OUTPUTS_TTL_MS);

    if (tmcf->approval_ttl == 0 || tmcf->approval_ttl > NGX_HTTP_TOOLGATE_WAIT_MAX_MS
        || tmcf->tool_outputs_ttl == 0
        || tmcf->tool_outputs_ttl > NGX_HTTP_TOOLGATE_WAIT_MAX_MS)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"toolgate_approval_ttl\" and "
                           "\"toolgate_tool_outputs_ttl\" must be from 1ms to 1d");
        return NGX_CONF_ERROR;
    }

    if (tmcf->retention == 0
        || tmcf->retention > NGX_HTTP_TOOLGATE_RETENTION_MAX_S)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"toolgate_retention\" must be from 1s to 3650d");
        return NGX_CONF_ERROR;
    }

    ngx_conf_init_size_value(tmcf->max_history, NGX_HTTP_TOOLGATE_HISTORY_BYTES);
    ngx_conf_init_value(tmcf->segment_idle, NGX_HTTP_TOOLGATE_SEGMENT_IDLE_S);

    if (tmcf->max_history < NGX_HTTP_TOOLGATE_HISTORY_BYTES_MIN
        || tmcf->max_history > NGX_HTTP_TOOLGATE_HISTORY_BYTES_MAX)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"toolgate_max_history\" must be from 4k to 16m");
        return NGX_CONF_ERROR;
    }

    if (tmcf->segment_idle == 0
        || tmcf->segment_idle > NGX_HTTP_TOOLGATE_SEGMENT_IDLE_MAX_S)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"toolgate_segment_idle\" must be from 1s to 365d");
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static void *
ngx_http_toolgate_create_srv_conf(ngx_conf_t *cf)
{
    ngx_http_toolgate_srv_conf_t  *conf;

    conf = ngx_pcalloc(cf->pool, sizeof(ngx_http_toolgate_srv_conf_t));
    if (conf == NULL) {
        return NULL;
    }

    if (ngx_array_init(&conf->models, cf->pool, 2,
                       sizeof(ngx_http_toolgate_model_t))
        != NGX_OK)
    {
        return NULL;
    }

    return conf;
}


static char *
ngx_http_toolgate_merge_srv_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_toolgate_srv_conf_t  *prev = parent;
    ngx_http_toolgate_srv_conf_t  *conf = child;

    conf->outer = prev;

    return NGX_CONF_OK;
}


static void *
ngx_http_toolgate_create_loc_conf(ngx_conf_t *cf)
{
    ngx_http_toolgate_loc_conf_t  *conf;

    conf = ngx_pcalloc(cf->pool, sizeof(ngx_http_toolgate_loc_conf_t));
    if (conf == NULL) {
        return NULL;
    }

    conf->approval_mode = NGX_CONF_UNSET_UINT;
    conf->max_body = NGX_CONF_UNSET_SIZE;
    conf->sse_ping = NGX_CONF_UNSET_MSEC;
    conf->run_timeout = NGX_CONF_UNSET_MSEC;

    return conf;
}


static char *
ngx_http_toolgate_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_toolgate_loc_conf_t  *prev = parent;
    ngx_http_toolgate_loc_conf_t  *conf = child;

    ngx_http_core_loc_conf_t  *clcf;

    ngx_conf_merge_uint_value(conf->approval_mode, prev->approval_mode,
                              TG_APPROVAL_OFF);
    ngx_conf_merge_size_value(conf->max_body, prev->max_body,
                              NGX_HTTP_TOOLGATE_MAX_BODY);
    ngx_conf_merge_msec_value(conf->sse_ping, prev->sse_ping,
                              NGX_HTTP_TOOLGATE_SSE_PING_MS);
    ngx_conf_merge_msec_value(conf->run_timeout, prev->run_timeout,
                              NGX_HTTP_TOOLGATE_RUN_TIMEOUT_MS);

    if (conf->limits == NULL) {
        conf->limits = prev->limits;
    }

    if (conf->max_body == 0 || conf->sse_ping == 0 || conf->run_timeout == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"toolgate_max_body\", \"toolgate_sse_ping\" and "
                           "\"toolgate_run_timeout\" must be greater than zero");
        return NGX_CONF_ERROR;
    }

    if (conf->api) {
        clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

        /* our own bound, with our own error body */
        clcf->client_max_body_size = 0;

        clcf->client_body_buffer_size =
            ngx_max(clcf->client_body_buffer_size,
                    NGX_HTTP_TOOLGATE_BODY_BUFFER);
    }

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_toolgate_init_process(ngx_cycle_t *cycle)
{
    if (ngx_process != NGX_PROCESS_WORKER && ngx_process != NGX_PROCESS_SINGLE) {
        return NGX_OK;
    }

    if (ngx_http_cycle_get_module_main_conf(cycle, ngx_http_toolgate_module)
        == NULL)
    {
        return NGX_OK;
    }

    if (ngx_toolgate_client_init_worker(cycle) != NGX_OK
        || ngx_toolgate_redis_init_worker(cycle) != NGX_OK
        || ngx_http_toolgate_run_store_init_worker(cycle) != NGX_OK
        || ngx_http_toolgate_feed_init_worker(cycle) != NGX_OK
        || ngx_http_toolgate_run_scan_init_worker(cycle) != NGX_OK
        || ngx_toolgate_helper_init_worker(cycle) != NGX_OK
        || ngx_http_toolgate_registry_init_worker(cycle) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}


static void
ngx_http_toolgate_exit_process(ngx_cycle_t *cycle)
{
    if (ngx_process != NGX_PROCESS_WORKER && ngx_process != NGX_PROCESS_SINGLE) {
        return;
    }

    if (ngx_http_cycle_get_module_main_conf(cycle, ngx_http_toolgate_module)
        == NULL)
    {
        return;
    }

    ngx_http_toolgate_registry_exit_worker(cycle);
    ngx_toolgate_helper_exit_worker(cycle);
    ngx_toolgate_redis_exit_worker(cycle);
    ngx_toolgate_client_exit_worker(cycle);
    ngx_http_toolgate_sha256_exit_worker();
}
