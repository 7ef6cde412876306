/*
 * What the directives mean: parsing and checking. Key files are read in
 * _keys.c, what outbound calls may reach is in _guard.c. All of it runs while
 * nginx reads its configuration; only the look-up of a model sees a request.
 */

#include "ngx_http_toolgate_module.h"
#include "ngx_toolgate_counters.h"


char *
ngx_http_toolgate_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_toolgate_main_conf_t  *tmcf = conf;

    ssize_t     size;
    ngx_str_t  *value;

    if (tmcf->zone) {
        return "is duplicate";
    }

    value = cf->args->elts;
    size = ngx_parse_size(&value[2]);

    if (size == NGX_ERROR || size < (ssize_t) (8 * ngx_pagesize)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"toolgate_zone\" has a wrong or too small size "
                           "\"%V\"", &value[2]);
        return NGX_CONF_ERROR;
    }

    tmcf->zone = ngx_shared_memory_add(cf, &value[1], size,
                                       &ngx_http_toolgate_module);
    if (tmcf->zone == NULL) {
        return NGX_CONF_ERROR;
    }

    if (tmcf->zone->data) {
        return "has a name that is in use";
    }

    if (ngx_toolgate_counters_zone(cf, tmcf->zone) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


char *
ngx_http_toolgate_redis(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_toolgate_main_conf_t  *tmcf = conf;

    if (tmcf->redis) {
        return "is duplicate";
    }

    tmcf->redis = ngx_pcalloc(cf->pool, sizeof(ngx_toolgate_redis_conf_t));
    if (tmcf->redis == NULL) {
        return NGX_CONF_ERROR;
    }

    return ngx_toolgate_redis_parse(cf, tmcf->redis);
}


char *
ngx_http_toolgate_helper(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_toolgate_main_conf_t  *tmcf = conf;

    ngx_url_t   u;
    ngx_str_t  *value;

    if (tmcf->helper) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (value[1].len < 6 || ngx_strncmp(value[1].data, "unix:", 5) != 0) {
        return "must be \"unix:\" and a path";
    }

    ngx_memzero(&u, sizeof(ngx_url_t));
    u.url = value[1];
    u.no_resolve = 1;

    if (ngx_parse_url(cf->pool, &u) != NGX_OK) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"toolgate_helper\" has a wrong address \"%V\": %s",
                           &value[1], u.err ? u.err : "unknown error");
        return NGX_CONF_ERROR;
    }

    tmcf->helper = &u.addrs[0];

    return NGX_CONF_OK;
}


char *
ngx_http_toolgate_catalog(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_toolgate_main_conf_t  *tmcf = conf;

    ngx_str_t  *value, *glob;

    value = cf->args->elts;

    glob = ngx_array_push(&tmcf->catalogs);
    if (glob == NULL) {
        return NGX_CONF_ERROR;
    }

    *glob = value[1];

    if (ngx_conf_full_name(cf->cycle, glob, 1) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


ngx_http_toolgate_model_t *
ngx_http_toolgate_model_get(ngx_array_t *models, ngx_str_t *name)
{
    ngx_uint_t                  i;
    ngx_http_toolgate_model_t  *model;

    model = models->elts;

    for (i = 0; i < models->nelts; i++) {
        if (model[i].name.len == name->len
            && ngx_memcmp(model[i].name.data, name->data, name->len) == 0)
        {
            return &model[i];
        }
    }

    return NULL;
}


char *
ngx_http_toolgate_model(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_toolgate_srv_conf_t  *tscf = conf;

    ngx_str_t                      *value;
    ngx_uint_t                      i;
    ngx_http_toolgate_model_t      *model;
    ngx_http_toolgate_upstream_t    upstream, *u;
    ngx_http_toolgate_main_conf_t  *tmcf;

    value = cf->args->elts;
    ngx_memzero(&upstream, sizeof(upstream));

    for (i = 2; i < cf->args->nelts; i++) {

        if (ngx_strncmp(value[i].data, "location=", 9) == 0) {
            upstream.location.data = value[i].data + 9;
            upstream.location.len = value[i].len - 9;

        } else if (ngx_strncmp(value[i].data, "model=", 6) == 0) {
            upstream.vendor_name.data = value[i].data + 6;
            upstream.vendor_name.len = value[i].len - 6;

        } else if (ngx_strcmp(value[i].data, "api=chat") == 0) {
            upstream.responses = 0;

        } else if (ngx_strcmp(value[i].data, "api=responses") == 0) {
            upstream.responses = 1;

        } else if (ngx_strcmp(value[i].data, "backup") == 0) {
            upstream.backup = 1;

        } else {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "\"toolgate_model\" has an unknown parameter "
                               "\"%V\"", &value[i]);
            return NGX_CONF_ERROR;
        }
    }

    if (upstream.location.len < 2 || upstream.location.data[0] != '/') {
        return "needs location=/uri, an internal location";
    }

    model = ngx_http_toolgate_model_get(&tscf->models, &value[1]);

    if (model == NULL) {
        if (tscf->models.nelts == NGX_HTTP_TOOLGATE_MAX_MODELS) {
            return "names too many models";
        }

        model = ngx_array_push(&tscf->models);
        if (model == NULL) {
            return NGX_CONF_ERROR;
        }

        model->name = value[1];

        if (ngx_array_init(&model->upstreams, cf->pool, 2,
                           sizeof(ngx_http_toolgate_upstream_t))
            != NGX_OK)
        {
            return NGX_CONF_ERROR;
        }
    }

    u = ngx_array_push(&model->upstreams);
    if (u == NULL) {
        return NGX_CONF_ERROR;
    }

    /* backups stay behind all others, in the order of the file */

    u = model->upstreams.elts;
    i = model->upstreams.nelts - 1;

    while (!upstream.backup && i > 0 && u[i - 1].backup) {
        u[i] = u[i - 1];
        i--;
    }

    u[i] = upstream;

    tmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_toolgate_module);
    tmcf->any_model = 1;

    return NGX_CONF_OK;
}


char *
ngx_http_toolgate_hosts(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_toolgate_main_conf_t  *tmcf = conf;

    ngx_str_t  *value;

    if (tmcf->client.hosts) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_conf_full_name(cf->cycle, &value[1], 1) != NGX_OK
        || ngx_toolgate_hosts_load(cf, &value[1], &tmcf->client.hosts) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


char *
ngx_http_toolgate_ca(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_toolgate_main_conf_t  *tmcf = conf;

    ngx_str_t        *value;
    ngx_file_info_t   fi;

    if (tmcf->client.ca_file.data) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_conf_full_name(cf->cycle, &value[1], 1) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    if (ngx_file_info(value[1].data, &fi) == NGX_FILE_ERROR) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           ngx_file_info_n " \"%s\" failed", value[1].data);
        return NGX_CONF_ERROR;
    }

    tmcf->client.ca_file = value[1];

    return NGX_CONF_OK;
}


ngx_http_toolgate_model_t *
ngx_http_toolgate_model_find(ngx_http_request_t *r, ngx_str_t *name)
{
    ngx_http_toolgate_model_t     *model;
    ngx_http_toolgate_srv_conf_t  *tscf;

    tscf = ngx_http_get_module_srv_conf(r, ngx_http_toolgate_module);

    for ( /* void */ ; tscf; tscf = tscf->outer) {
        model = ngx_http_toolgate_model_get(&tscf->models, name);
        if (model) {
            return model;
        }
    }

    return NULL;
}
