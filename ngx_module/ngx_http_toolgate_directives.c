/*
 * What the directives mean: parsing, checking, the files that they name. All of
 * it runs while nginx reads its configuration; nothing here sees a request.
 */

#include "ngx_http_toolgate_module.h"
#include "ngx_toolgate_counters.h"

#include <ifaddrs.h>


#define NGX_HTTP_TOOLGATE_KEY_FILE_MAX  4096
#define NGX_HTTP_TOOLGATE_KEY_MIN       16
#define NGX_HTTP_TOOLGATE_MASTER_LEN    32


static char *ngx_http_toolgate_read_key(ngx_conf_t *cf, ngx_str_t *name,
    ngx_str_t *key);
static ngx_int_t ngx_http_toolgate_decode_hex(ngx_str_t *text, ngx_str_t *key);
static ngx_http_toolgate_model_t *ngx_http_toolgate_model_get(
    ngx_array_t *models, ngx_str_t *name);
static ngx_int_t ngx_http_toolgate_own_server(ngx_conf_t *cf,
    ngx_http_toolgate_main_conf_t *tmcf, ngx_http_core_srv_conf_t *cscf,
    ngx_http_conf_addr_t *addr);
static ngx_int_t ngx_http_toolgate_own_addr(ngx_conf_t *cf,
    ngx_http_toolgate_main_conf_t *tmcf, struct sockaddr *sa);
static ngx_int_t ngx_http_toolgate_own_wildcard(ngx_conf_t *cf,
    ngx_http_toolgate_main_conf_t *tmcf, in_port_t port);
static ngx_uint_t ngx_http_toolgate_has_model(void *data, ngx_str_t *name);


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
ngx_http_toolgate_admin_key(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_toolgate_main_conf_t  *tmcf = conf;

    char       *rv;
    ngx_str_t  *value;

    if (tmcf->admin_key.data) {
        return "is duplicate";
    }

    value = cf->args->elts;

    rv = ngx_http_toolgate_read_key(cf, &value[1], &tmcf->admin_key);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    if (tmcf->admin_key.len < NGX_HTTP_TOOLGATE_KEY_MIN) {
        return "has a key of less than 16 characters";
    }

    return NGX_CONF_OK;
}


char *
ngx_http_toolgate_master_key(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_toolgate_main_conf_t  *tmcf = conf;

    char       *rv;
    ngx_str_t  *value, text, key;

    if (tmcf->master_key.data) {
        return "is duplicate";
    }

    value = cf->args->elts;

    rv = ngx_http_toolgate_read_key(cf, &value[1], &text);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    key.data = ngx_pnalloc(cf->pool, ngx_base64_decoded_length(text.len) + 1);
    if (key.data == NULL) {
        return NGX_CONF_ERROR;
    }

    if (ngx_http_toolgate_decode_hex(&text, &key) != NGX_OK
        && (ngx_decode_base64(&key, &text) != NGX_OK
            || key.len != NGX_HTTP_TOOLGATE_MASTER_LEN))
    {
        return "needs a file with 32 bytes as 64 hex digits or as base64";
    }

    tmcf->master_key = key;

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_toolgate_decode_hex(ngx_str_t *text, ngx_str_t *key)
{
    ngx_int_t   n;
    ngx_uint_t  i;

    if (text->len != 2 * NGX_HTTP_TOOLGATE_MASTER_LEN) {
        return NGX_DECLINED;
    }

    for (i = 0; i < NGX_HTTP_TOOLGATE_MASTER_LEN; i++) {
        n = ngx_hextoi(text->data + 2 * i, 2);
        if (n == NGX_ERROR) {
            return NGX_DECLINED;
        }

        key->data[i] = (u_char) n;
    }

    key->len = NGX_HTTP_TOOLGATE_MASTER_LEN;

    return NGX_OK;
}


/* The first line of a file, without blanks around it. */
static char *
ngx_http_toolgate_read_key(ngx_conf_t *cf, ngx_str_t *name, ngx_str_t *key)
{
    u_char      buf[NGX_HTTP_TOOLGATE_KEY_FILE_MAX], *p, *last;
    ssize_t     n;
    ngx_fd_t    fd;
    ngx_str_t   file;

    file = *name;

    if (ngx_conf_full_name(cf->cycle, &file, 1) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    fd = ngx_open_file(file.data, NGX_FILE_RDONLY, NGX_FILE_OPEN, 0);

    if (fd == NGX_INVALID_FILE) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           ngx_open_file_n " \"%s\" failed", file.data);
        return NGX_CONF_ERROR;
    }

    n = ngx_read_fd(fd, buf, NGX_HTTP_TOOLGATE_KEY_FILE_MAX);
    ngx_close_file(fd);

    if (n <= 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%s\" is empty", file.data);
        return NGX_CONF_ERROR;
    }

    p = buf;
    last = buf + n;

    while (p < last && (*p == ' ' || *p == '\t')) {
        p++;
    }

    n = 0;
    while (p + n < last && p[n] > ' ' && p[n] < 0x7f) {
        n++;
    }

    if (n == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%s\" does not begin with a key", file.data);
        return NGX_CONF_ERROR;
    }

    key->len = n;
    key->data = ngx_pnalloc(cf->pool, n);
    if (key->data == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_memcpy(key->data, p, n);
    ngx_explicit_memzero(buf, sizeof(buf));

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


static ngx_http_toolgate_model_t *
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
            continue;

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
ngx_http_toolgate_netguard_allow(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_toolgate_main_conf_t  *tmcf = conf;

    ngx_int_t             port;
    ngx_str_t            *value;
    ngx_uint_t            i;
    tg_netguard_allow_t  *allow;

    value = cf->args->elts;

    allow = ngx_array_push(&tmcf->allow);
    if (allow == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_memzero(allow, sizeof(tg_netguard_allow_t));

    if (!tg_netguard_cidr_parse((tg_str_t) { value[1].len,
                                             (char *) value[1].data },
                                &allow->network, &allow->prefix))
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"toolgate_netguard_allow\" has a wrong cidr \"%V\"",
                           &value[1]);
        return NGX_CONF_ERROR;
    }

    for (i = 2; i < cf->args->nelts; i++) {

        if (ngx_strcmp(value[i].data, "insecure_http") == 0) {
            allow->insecure_http = true;
            continue;
        }

        port = ngx_atoi(value[i].data, value[i].len);

        if (port < 1 || port > 65535
            || allow->port_count == TG_NETGUARD_MAX_PORTS)
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "\"toolgate_netguard_allow\" has a wrong port "
                               "\"%V\", or too many", &value[i]);
            return NGX_CONF_ERROR;
        }

        allow->ports[allow->port_count++] = (uint16_t) port;
    }

    return NGX_CONF_OK;
}


char *
ngx_http_toolgate_own_host(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_toolgate_main_conf_t  *tmcf = conf;

    tg_str_t    *host;
    ngx_str_t   *value;
    ngx_uint_t   i;

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {
        host = ngx_array_push(&tmcf->own_hosts);
        if (host == NULL) {
            return NGX_CONF_ERROR;
        }

        ngx_strlow(value[i].data, value[i].data, value[i].len);
        host->data = (char *) value[i].data;
        host->len = value[i].len;
    }

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


static ngx_uint_t
ngx_http_toolgate_has_model(void *data, ngx_str_t *name)
{
    ngx_conf_t                    *cf = data;
    ngx_uint_t                     i;
    ngx_http_core_srv_conf_t     **cscfp;
    ngx_http_core_main_conf_t     *cmcf;
    ngx_http_toolgate_srv_conf_t  *tscf;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
    cscfp = cmcf->servers.elts;

    for (i = 0; i < cmcf->servers.nelts; i++) {
        tscf = cscfp[i]->ctx->srv_conf[ngx_http_toolgate_module.ctx_index];

        for ( /* void */ ; tscf; tscf = tscf->outer) {
            if (ngx_http_toolgate_model_get(&tscf->models, name)) {
                return 1;
            }
        }
    }

    return 0;
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


ngx_int_t
ngx_http_toolgate_finish_conf(ngx_conf_t *cf, ngx_http_toolgate_main_conf_t *tmcf)
{
    ngx_uint_t                         i, j, k;
    ngx_http_conf_port_t              *port;
    ngx_http_conf_addr_t              *addr;
    ngx_http_core_srv_conf_t         **cscfp;
    ngx_http_core_main_conf_t         *cmcf;
    ngx_http_toolgate_catalog_conf_t   catalog;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    if (cmcf->ports) {
        port = cmcf->ports->elts;

        for (i = 0; i < cmcf->ports->nelts; i++) {
            addr = port[i].addrs.elts;

            for (j = 0; j < port[i].addrs.nelts; j++) {
                cscfp = addr[j].servers.elts;

                for (k = 0; k < addr[j].servers.nelts; k++) {
                    if (ngx_http_toolgate_own_server(cf, tmcf, cscfp[k],
                                                     &addr[j])
                        != NGX_OK)
                    {
                        return NGX_ERROR;
                    }
                }
            }
        }
    }

    tmcf->client.guard.allow = tmcf->allow.elts;
    tmcf->client.guard.allow_count = tmcf->allow.nelts;
    tmcf->client.guard.own = tmcf->own.elts;
    tmcf->client.guard.own_count = tmcf->own.nelts;
    tmcf->client.guard.own_hosts = tmcf->own_hosts.elts;
    tmcf->client.guard.own_host_count = tmcf->own_hosts.nelts;

    ngx_memzero(&catalog, sizeof(catalog));
    catalog.globs = &tmcf->catalogs;
    catalog.guard = &tmcf->client.guard;
    catalog.master_key = tmcf->master_key;
    catalog.admin_key = tmcf->admin_key;
    catalog.helper = (tmcf->helper != NULL);
    catalog.has_model = ngx_http_toolgate_has_model;
    catalog.data = cf;

    return ngx_http_toolgate_catalog_load(cf, &catalog, &tmcf->objects);
}


static ngx_int_t
ngx_http_toolgate_own_server(ngx_conf_t *cf, ngx_http_toolgate_main_conf_t *tmcf,
    ngx_http_core_srv_conf_t *cscf, ngx_http_conf_addr_t *addr)
{
    tg_str_t                      *host;
    ngx_uint_t                     i;
    ngx_http_server_name_t        *name;
    ngx_http_toolgate_srv_conf_t  *tscf;

    tscf = cscf->ctx->srv_conf[ngx_http_toolgate_module.ctx_index];

    if (!tscf->api) {
        return NGX_OK;
    }

    name = cscf->server_names.elts;

    for (i = 0; i < cscf->server_names.nelts; i++) {
        if (name[i].name.len == 0 || name[i].name.data[0] == '~') {
            continue;
        }

        host = ngx_array_push(&tmcf->own_hosts);
        if (host == NULL) {
            return NGX_ERROR;
        }

        host->data = (char *) name[i].name.data;
        host->len = name[i].name.len;
    }

    return ngx_http_toolgate_own_addr(cf, tmcf, addr->opt.sockaddr);
}


static ngx_int_t
ngx_http_toolgate_own_addr(ngx_conf_t *cf, ngx_http_toolgate_main_conf_t *tmcf,
    struct sockaddr *sa)
{
    tg_netguard_own_t    *own, found;
    struct sockaddr_in   *sin;
#if (NGX_HAVE_INET6)
    struct sockaddr_in6  *sin6;
#endif

    if (ngx_inet_wildcard(sa)) {
        return ngx_http_toolgate_own_wildcard(cf, tmcf, ngx_inet_get_port(sa));
    }

    ngx_memzero(&found, sizeof(found));

    switch (sa->sa_family) {

    case AF_INET:
        sin = (struct sockaddr_in *) sa;
        ngx_memcpy(found.addr.bytes, &sin->sin_addr, 4);
        break;

#if (NGX_HAVE_INET6)
    case AF_INET6:
        sin6 = (struct sockaddr_in6 *) sa;
        ngx_memcpy(found.addr.bytes, &sin6->sin6_addr, 16);
        found.addr.v6 = true;
        break;
#endif

    default:  /* a unix socket is no address that a URL can name */
        return NGX_OK;
    }

    found.port = ngx_inet_get_port(sa);

    own = ngx_array_push(&tmcf->own);
    if (own == NULL) {
        return NGX_ERROR;
    }

    *own = found;

    return NGX_OK;
}


/* "listen 8080": every address that this machine has now is our own there. */
static ngx_int_t
ngx_http_toolgate_own_wildcard(ngx_conf_t *cf,
    ngx_http_toolgate_main_conf_t *tmcf, in_port_t port)
{
    ngx_int_t            rc;
    struct ifaddrs      *list, *ifa;
    ngx_sockaddr_t       copy;

    if (getifaddrs(&list) != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno, "getifaddrs() failed");
        return NGX_ERROR;
    }

    rc = NGX_OK;

    for (ifa = list; ifa && rc == NGX_OK; ifa = ifa->ifa_next) {
        if (ifa->ifa_addr == NULL
            || (ifa->ifa_addr->sa_family != AF_INET
                && ifa->ifa_addr->sa_family != AF_INET6))
        {
            continue;
        }

        ngx_memcpy(&copy, ifa->ifa_addr,
                   ifa->ifa_addr->sa_family == AF_INET
                   ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
        ngx_inet_set_port(&copy.sockaddr, port);

        if (!ngx_inet_wildcard(&copy.sockaddr)) {
            rc = ngx_http_toolgate_own_addr(cf, tmcf, &copy.sockaddr);
        }
    }

    freeifaddrs(list);

    return rc;
}
