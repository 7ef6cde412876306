/*
 * What outbound calls may reach, as the configuration says it: the operator's
 * allow list, the product's own names and listen addresses. The verdicts are
 * core/'s; this only gathers the facts, and then has the time zones and the
 * catalog loaded, which needs all of them.
 */

#include "ngx_http_toolgate_module.h"
#include "ngx_http_toolgate_zones.h"

#include <ifaddrs.h>


static ngx_int_t ngx_http_toolgate_own_server(ngx_conf_t *cf,
    ngx_http_toolgate_main_conf_t *tmcf, ngx_http_core_srv_conf_t *cscf,
    ngx_http_conf_addr_t *addr);
static ngx_int_t ngx_http_toolgate_own_addr(ngx_conf_t *cf,
    ngx_http_toolgate_main_conf_t *tmcf, struct sockaddr *sa);
static ngx_int_t ngx_http_toolgate_own_wildcard(ngx_conf_t *cf,
    ngx_http_toolgate_main_conf_t *tmcf, in_port_t port);
static ngx_uint_t ngx_http_toolgate_has_model(void *data, ngx_str_t *name);


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


static ngx_uint_t
ngx_http_toolgate_has_model(void *data, ngx_str_t *name)
{
    ngx_http_core_main_conf_t *cmcf = data;

    ngx_uint_t                     i;
    ngx_http_core_srv_conf_t     **cscfp;
    ngx_http_toolgate_srv_conf_t  *tscf;

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


ngx_int_t
ngx_http_toolgate_finish_conf(ngx_conf_t *cf, ngx_http_toolgate_main_conf_t *tmcf)
{
    ngx_uint_t                         i, j, k;
    ngx_http_conf_port_t              *port;
    ngx_http_conf_addr_t              *addr;
    ngx_http_core_srv_conf_t         **cscfp;
    ngx_http_core_main_conf_t         *cmcf;
    ngx_http_toolgate_catalog_conf_t  *catalog;

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

    if ((tmcf->any_api || tmcf->catalogs.nelts)
        && ngx_http_toolgate_zones_load(cf, &tmcf->zones) != NGX_OK)
    {
        return NGX_ERROR;
    }

    catalog = &tmcf->catalog;
    catalog->zones = tmcf->zones;
    catalog->globs = &tmcf->catalogs;
    catalog->guard = &tmcf->client.guard;

    /* what follows from the master key stays until the old one has gone */
    catalog->master_key = tmcf->previous_key.len ? tmcf->previous_key
                                                 : tmcf->master_key;
    catalog->admin_key = tmcf->admin_key;
    catalog->helper = (tmcf->helper != NULL);
    catalog->has_model = ngx_http_toolgate_has_model;
    catalog->data = cmcf;

    return ngx_http_toolgate_catalog_load(cf, catalog, &tmcf->objects);
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
