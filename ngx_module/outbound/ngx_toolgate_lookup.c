/*
 * Look-up and first verdict. Every address that a name has is judged, also those
 * that would never be tried: a name that mixes allowed and refused addresses is
 * refused whole. What is judged here is what the connection is pinned to, so a
 * second answer of the name server can change nothing.
 */

#include "ngx_toolgate_lookup.h"
#include "ngx_toolgate_guard.h"


static ngx_uint_t ngx_toolgate_lookup_hosts(ngx_toolgate_lookup_t *lookup);
static void ngx_toolgate_lookup_ask(ngx_toolgate_lookup_t *lookup,
    ngx_resolver_t *resolver, ngx_msec_t timeout);
static void ngx_toolgate_lookup_on_answer(ngx_resolver_ctx_t *asked);
static void ngx_toolgate_lookup_address(ngx_toolgate_lookup_t *lookup,
    const tg_addr_t *addr);
static void ngx_toolgate_lookup_finish(ngx_toolgate_lookup_t *lookup);


void
ngx_toolgate_lookup_start(ngx_toolgate_lookup_t *lookup, ngx_resolver_t *resolver,
    ngx_msec_t timeout)
{
    if (lookup->url->is_literal) {
        ngx_toolgate_lookup_address(lookup, &lookup->url->literal);
        ngx_toolgate_lookup_finish(lookup);

    } else if (ngx_toolgate_lookup_hosts(lookup)) {
        ngx_toolgate_lookup_finish(lookup);

    } else {
        ngx_toolgate_lookup_ask(lookup, resolver, timeout);
    }
}


void
ngx_toolgate_lookup_stop(ngx_toolgate_lookup_t *lookup)
{
    if (lookup->asked) {
        ngx_resolve_name_done(lookup->asked);
        lookup->asked = NULL;
    }
}


/* true when the hosts file knows the name */
static ngx_uint_t
ngx_toolgate_lookup_hosts(ngx_toolgate_lookup_t *lookup)
{
    size_t                len;
    ngx_uint_t            i, found;
    ngx_array_t          *hosts = lookup->conf->hosts;
    ngx_toolgate_host_t  *host;

    if (hosts == NULL) {
        return 0;
    }

    found = 0;
    len = ngx_strlen(lookup->url->host);
    host = hosts->elts;

    for (i = 0; i < hosts->nelts; i++) {

        if (host[i].name.len == len
            && ngx_memcmp(host[i].name.data, lookup->url->host, len) == 0)
        {
            found = 1;
            ngx_toolgate_lookup_address(lookup, &host[i].addr);
        }
    }

    return found;
}


static void
ngx_toolgate_lookup_ask(ngx_toolgate_lookup_t *lookup, ngx_resolver_t *resolver,
    ngx_msec_t timeout)
{
    ngx_resolver_ctx_t  *asked;

    asked = resolver ? ngx_resolve_start(resolver, NULL) : NGX_NO_RESOLVER;

    if (asked == NULL) {
        lookup->done(lookup->data, "upstream_failed", "out of memory");
        return;
    }

    if (asked == NGX_NO_RESOLVER) {
        lookup->done(lookup->data, "upstream_failed",
                     "no resolver is configured for the name");
        return;
    }

    asked->name.data = (u_char *) lookup->url->host;
    asked->name.len = ngx_strlen(lookup->url->host);
    asked->handler = ngx_toolgate_lookup_on_answer;
    asked->data = lookup;
    asked->timeout = timeout;
    asked->cancelable = 1;

    lookup->asked = asked;

    /* a cached answer is told from inside; after an error the context is gone */

    if (ngx_resolve_name(asked) != NGX_OK) {
        lookup->asked = NULL;
        lookup->done(lookup->data, "upstream_failed",
                     "the name could not be asked for");
    }
}


static void
ngx_toolgate_lookup_on_answer(ngx_resolver_ctx_t *asked)
{
    uint16_t                port;
    tg_addr_t               addr;
    ngx_uint_t              i;
    ngx_toolgate_lookup_t  *lookup = asked->data;

    if (asked->state) {
        lookup->done(lookup->data, "upstream_failed",
                     asked->state == NGX_RESOLVE_TIMEDOUT
                     ? "the name look-up timed out"
                     : "the name could not be resolved");
        return;
    }

    for (i = 0; i < asked->naddrs; i++) {

        if (ngx_toolgate_guard_address(asked->addrs[i].sockaddr, &addr, &port)
            == NGX_OK)
        {
            ngx_toolgate_lookup_address(lookup, &addr);

        } else {
            lookup->refused = "an address of an unknown family";
        }
    }

    ngx_toolgate_lookup_finish(lookup);
}


static void
ngx_toolgate_lookup_address(ngx_toolgate_lookup_t *lookup, const tg_addr_t *addr)
{
    const char  *refused;

    refused = ngx_toolgate_guard_judge(&lookup->conf->guard, addr,
                                       lookup->url->port, lookup->url->https);

    if (refused) {
        lookup->refused = refused;
        lookup->refused_addr = *addr;
        lookup->refused_known = 1;

    } else if (lookup->naddrs < NGX_TOOLGATE_CLIENT_MAX_ADDRESSES) {
        lookup->addrs[lookup->naddrs++] = *addr;
    }
}


static void
ngx_toolgate_lookup_finish(ngx_toolgate_lookup_t *lookup)
{
    if (lookup->refused) {
        lookup->done(lookup->data, "address_not_allowed", lookup->refused);

    } else if (lookup->naddrs == 0) {
        lookup->done(lookup->data, "upstream_failed", "the name has no address");

    } else {
        lookup->done(lookup->data, NULL, NULL);
    }
}
