/*
 * The two places where curl asks before it acts. A new socket is judged by the
 * address that it is made for; a request is judged by the peer of its connection,
 * new or kept, right before the first byte. Both must be the pinned address, so a
 * kept connection cannot be borrowed by a call that was judged for another one.
 *
 * Curl takes a kept connection for alive though bytes lie in it that nobody asked
 * for, and they would be read as the answer. So a kept connection with anything to
 * read is refused here, before a byte is sent; the caller takes a new one.
 */

#include <arpa/inet.h>
#include <openssl/ssl.h>
#include <poll.h>

#include "ngx_toolgate_guard.h"


#define NGX_TOOLGATE_GUARD_SOCKETS  1024    /* a power of two */


static curl_socket_t ngx_toolgate_guard_on_socket(void *data,
    curlsocktype purpose, struct curl_sockaddr *address);
static int ngx_toolgate_guard_on_request(void *data, char *peer, char *local,
    int peer_port, int local_port);
static ngx_int_t ngx_toolgate_guard_text(const char *text, tg_addr_t *addr);
static ngx_uint_t ngx_toolgate_guard_pinned(const ngx_toolgate_guard_t *guard,
    const tg_addr_t *addr, uint16_t port);
static ngx_uint_t ngx_toolgate_guard_same(const tg_addr_t *a,
    const tg_addr_t *b);
static ngx_uint_t ngx_toolgate_guard_dirty(const ngx_toolgate_guard_t *guard,
    const char *local, uint16_t local_port);
static curl_socket_t ngx_toolgate_guard_kept(const ngx_toolgate_guard_t *guard,
    const char *local, uint16_t local_port);


/*
 * Where the socket of a kept connection is looked for, by its local port: curl
 * does not tell it at the time when it is needed. An entry may be out of date, so
 * both ends of what it names are compared before it is believed.
 */
static curl_socket_t  ngx_toolgate_guard_sockets[NGX_TOOLGATE_GUARD_SOCKETS];


const char *
ngx_toolgate_guard_judge(const tg_netguard_t *guard, const tg_addr_t *addr,
    uint16_t port, ngx_uint_t https)
{
    tg_netguard_verdict_t  verdict;

    verdict = tg_netguard_judge(guard, addr, port);

    if (!verdict.allowed) {
        return verdict.reason ? verdict.reason : "address not allowed";
    }

    if (!https && !verdict.insecure_http) {
        return "plain http is not opened for this address";
    }

    return NULL;
}


ngx_int_t
ngx_toolgate_guard_address(const struct sockaddr *sa, tg_addr_t *addr,
    uint16_t *port)
{
    const struct sockaddr_in   *sin;
    const struct sockaddr_in6  *sin6;

    ngx_memzero(addr, sizeof(tg_addr_t));

    switch (sa->sa_family) {

    case AF_INET:
        sin = (const struct sockaddr_in *) sa;
        ngx_memcpy(addr->bytes, &sin->sin_addr, 4);
        *port = ntohs(sin->sin_port);
        return NGX_OK;

    case AF_INET6:
        sin6 = (const struct sockaddr_in6 *) sa;
        ngx_memcpy(addr->bytes, &sin6->sin6_addr, 16);
        addr->v6 = true;
        *port = ntohs(sin6->sin6_port);
        return NGX_OK;

    default:
        return NGX_DECLINED;
    }
}


CURLcode
ngx_toolgate_guard_attach(ngx_toolgate_guard_t *guard, CURL *easy,
    const tg_netguard_t *rules, const tg_addr_t *pin, uint16_t port,
    ngx_uint_t https)
{
    CURLcode  rc;

    ngx_memzero(guard, sizeof(ngx_toolgate_guard_t));

    guard->guard = rules;
    guard->easy = easy;
    guard->pin = *pin;
    guard->port = port;
    guard->https = https ? 1 : 0;

    rc = curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION,
                          ngx_toolgate_guard_on_socket);

    if (rc == CURLE_OK) {
        rc = curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, guard);
    }

    if (rc == CURLE_OK) {
        rc = curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION,
                              ngx_toolgate_guard_on_request);
    }

    if (rc == CURLE_OK) {
        rc = curl_easy_setopt(easy, CURLOPT_PREREQDATA, guard);
    }

    return rc;
}


ngx_uint_t
ngx_toolgate_guard_connected(const ngx_toolgate_guard_t *guard)
{
    socklen_t                len;
    struct sockaddr_storage  sa;

    if (!guard->opened) {
        return guard->passed;
    }

    len = sizeof(sa);

    return getpeername(guard->fd, (struct sockaddr *) &sa, &len) == 0;
}


static curl_socket_t
ngx_toolgate_guard_on_socket(void *data, curlsocktype purpose,
    struct curl_sockaddr *address)
{
    uint16_t               port;
    tg_addr_t              addr;
    ngx_toolgate_guard_t  *guard = data;

    if (purpose != CURLSOCKTYPE_IPCXN || address->socktype != SOCK_STREAM
        || ngx_toolgate_guard_address(&address->addr, &addr, &port) != NGX_OK)
    {
        guard->refused = "not a TCP address";
        return CURL_SOCKET_BAD;
    }

    guard->refused = ngx_toolgate_guard_judge(guard->guard, &addr, port,
                                              guard->https);

    if (guard->refused == NULL
        && !ngx_toolgate_guard_pinned(guard, &addr, port))
    {
        guard->refused = "not the address that was checked";
    }

    if (guard->refused) {
        return CURL_SOCKET_BAD;
    }

    guard->fd = socket(address->family, address->socktype | SOCK_CLOEXEC,
                       address->protocol);
    guard->opened = 1;

    return guard->fd;
}


static int
ngx_toolgate_guard_on_request(void *data, char *peer, char *local,
    int peer_port, int local_port)
{
    tg_addr_t              addr;
    ngx_toolgate_guard_t  *guard = data;

    /* curl repeats a request on its own when a kept connection gave no answer;
     * what was sent once is not sent again from in here */

    if (guard->passed) {
        guard->repeated = 1;
        return CURL_PREREQFUNC_ABORT;
    }

    if (ngx_toolgate_guard_text(peer, &addr) != NGX_OK
        || peer_port <= 0 || peer_port > 65535)
    {
        guard->refused = "the peer has no address";
        return CURL_PREREQFUNC_ABORT;
    }

    guard->refused = ngx_toolgate_guard_judge(guard->guard, &addr,
                                              (uint16_t) peer_port,
                                              guard->https);

    if (guard->refused == NULL
        && !ngx_toolgate_guard_pinned(guard, &addr, (uint16_t) peer_port))
    {
        guard->refused = "not the address that was checked";
    }

    if (guard->refused) {
        return CURL_PREREQFUNC_ABORT;
    }

    if (guard->opened) {
        ngx_toolgate_guard_sockets[(ngx_uint_t) local_port
                                   % NGX_TOOLGATE_GUARD_SOCKETS] = guard->fd;

    } else if (ngx_toolgate_guard_dirty(guard, local, (uint16_t) local_port)) {
        guard->stale = 1;
        return CURL_PREREQFUNC_ABORT;
    }

    guard->passed = 1;

    return CURL_PREREQFUNC_OK;
}


/* what curl wrote with inet_ntop() */
static ngx_int_t
ngx_toolgate_guard_text(const char *text, tg_addr_t *addr)
{
    ngx_memzero(addr, sizeof(tg_addr_t));

    if (inet_pton(AF_INET, text, addr->bytes) == 1) {
        return NGX_OK;
    }

    if (inet_pton(AF_INET6, text, addr->bytes) == 1) {
        addr->v6 = true;
        return NGX_OK;
    }

    return NGX_DECLINED;
}


static ngx_uint_t
ngx_toolgate_guard_pinned(const ngx_toolgate_guard_t *guard,
    const tg_addr_t *addr, uint16_t port)
{
    return port == guard->port && ngx_toolgate_guard_same(addr, &guard->pin);
}


static ngx_uint_t
ngx_toolgate_guard_same(const tg_addr_t *a, const tg_addr_t *b)
{
    return a->v6 == b->v6
           && ngx_memcmp(a->bytes, b->bytes, a->v6 ? 16 : 4) == 0;
}


/* true when the kept connection was closed, or holds bytes of no request: in the
 * socket, or already decrypted in the TLS layer */
static ngx_uint_t
ngx_toolgate_guard_dirty(const ngx_toolgate_guard_t *guard, const char *local,
    uint16_t local_port)
{
    struct pollfd                kept;
    struct curl_tlssessioninfo  *tls = NULL;

    kept.fd = ngx_toolgate_guard_kept(guard, local, local_port);
    kept.events = POLLIN;
    kept.revents = 0;

    if (kept.fd == CURL_SOCKET_BAD || poll(&kept, 1, 0) != 0) {
        return 1;
    }

    if (!guard->https) {
        return 0;
    }

    if (curl_easy_getinfo(guard->easy, CURLINFO_TLS_SSL_PTR, &tls) != CURLE_OK
        || tls == NULL || tls->backend != CURLSSLBACKEND_OPENSSL
        || tls->internals == NULL)
    {
        return 1;
    }

    return SSL_has_pending(tls->internals) ? 1 : 0;
}


static curl_socket_t
ngx_toolgate_guard_kept(const ngx_toolgate_guard_t *guard, const char *local,
    uint16_t local_port)
{
    uint16_t                 port;
    tg_addr_t                addr, want;
    socklen_t                len;
    curl_socket_t            fd;
    struct sockaddr_storage  sa;

    fd = ngx_toolgate_guard_sockets[local_port % NGX_TOOLGATE_GUARD_SOCKETS];

    /* 0 is an entry that was never filled */
    if (fd <= 0 || ngx_toolgate_guard_text(local, &want) != NGX_OK) {
        return CURL_SOCKET_BAD;
    }

    len = sizeof(sa);

    if (getpeername(fd, (struct sockaddr *) &sa, &len) == -1
        || ngx_toolgate_guard_address((struct sockaddr *) &sa, &addr, &port)
           != NGX_OK
        || !ngx_toolgate_guard_pinned(guard, &addr, port))
    {
        return CURL_SOCKET_BAD;
    }

    len = sizeof(sa);

    if (getsockname(fd, (struct sockaddr *) &sa, &len) == -1
        || ngx_toolgate_guard_address((struct sockaddr *) &sa, &addr, &port)
           != NGX_OK
        || port != local_port || !ngx_toolgate_guard_same(&addr, &want))
    {
        return CURL_SOCKET_BAD;
    }

    return fd;
}
