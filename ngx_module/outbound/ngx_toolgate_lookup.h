/*
 * From a URL's host to the addresses that may be tried: a literal, the hosts file,
 * or nginx's resolver, each address judged. It opens no connection.
 */

#ifndef NGX_TOOLGATE_LOOKUP_H
#define NGX_TOOLGATE_LOOKUP_H

#include "ngx_toolgate_client.h"


typedef struct ngx_toolgate_lookup_s  ngx_toolgate_lookup_t;

/* code NULL: addrs holds at least one address. */
typedef void (*ngx_toolgate_lookup_done_pt)(void *data, const char *code,
    const char *detail);

struct ngx_toolgate_lookup_s {
    ngx_toolgate_client_conf_t    *conf;
    const tg_url_t                *url;
    ngx_toolgate_lookup_done_pt    done;
    void                          *data;
    ngx_resolver_ctx_t            *asked;      /* NULL: nobody is being asked */
    const char                    *refused;    /* why, of any of the addresses */
    tg_addr_t                      refused_addr;
    unsigned                       refused_known:1;
    ngx_uint_t                     naddrs;
    tg_addr_t                      addrs[NGX_TOOLGATE_CLIENT_MAX_ADDRESSES];
};


/* done is called once, maybe from inside. conf, url, done and data are set. */
void ngx_toolgate_lookup_start(ngx_toolgate_lookup_t *lookup,
    ngx_resolver_t *resolver, ngx_msec_t timeout);

/* Gives up an answer that has not come, or gives the context of one back. */
void ngx_toolgate_lookup_stop(ngx_toolgate_lookup_t *lookup);

#endif /* NGX_TOOLGATE_LOOKUP_H */
