/*
 * The address guard at the socket: the verdict of core/ asked again for the
 * address that curl is about to connect to, and for the peer of the connection on
 * which the request is about to be sent. It knows nothing of names and answers.
 */

#ifndef NGX_TOOLGATE_GUARD_H
#define NGX_TOOLGATE_GUARD_H

#include <ngx_config.h>
#include <ngx_core.h>

#include <curl/curl.h>

#include "tg_netguard.h"


/* One attempt of one call: where it may go and what has become of that. */
typedef struct {
    const tg_netguard_t  *guard;
    CURL                 *easy;
    tg_addr_t             pin;          /* the judged address */
    uint16_t              port;
    curl_socket_t         fd;           /* of opened */
    const char           *refused;      /* why, static; NULL: not refused */
    unsigned              https:1;
    unsigned              opened:1;     /* a socket was made for this attempt */
    unsigned              passed:1;     /* request bytes may have left */
    unsigned              stale:1;      /* the kept connection is not to be used */
    unsigned              repeated:1;   /* curl would have sent it a second time */
} ngx_toolgate_guard_t;


/* NULL when a request may go to this address and port, else a static reason. */
const char *ngx_toolgate_guard_judge(const tg_netguard_t *guard,
    const tg_addr_t *addr, uint16_t port, ngx_uint_t https);

/* False when the family is neither IPv4 nor IPv6. */
ngx_int_t ngx_toolgate_guard_address(const struct sockaddr *sa, tg_addr_t *addr,
    uint16_t *port);

/* True once the attempt has a connection, before any TLS. */
ngx_uint_t ngx_toolgate_guard_connected(const ngx_toolgate_guard_t *guard);

/* Prepares an attempt and hooks the guard into its handle. */
CURLcode ngx_toolgate_guard_attach(ngx_toolgate_guard_t *guard, CURL *easy,
    const tg_netguard_t *rules, const tg_addr_t *pin, uint16_t port,
    ngx_uint_t https);

#endif /* NGX_TOOLGATE_GUARD_H */
