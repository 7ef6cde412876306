/*
 * Which addresses an outbound request may reach: address classes by the IANA
 * special-purpose registries, embedded IPv4 unwrapped, the operator's allow list,
 * the product's own listen addresses. Judges bytes, resolves nothing.
 */

#ifndef TG_NETGUARD_H
#define TG_NETGUARD_H

#include "tg.h"


#define TG_NETGUARD_MAX_PORTS  16     /* of one allow entry */

typedef struct {
    uint8_t   bytes[16];     /* IPv4 in the first four */
    bool      v6;
} tg_addr_t;

/* One "toolgate_netguard_allow cidr [port…] [insecure_http]". */
typedef struct {
    tg_addr_t  network;
    unsigned   prefix;
    uint16_t   ports[TG_NETGUARD_MAX_PORTS];
    size_t     port_count;      /* 0: every port */
    bool       insecure_http;
} tg_netguard_allow_t;

/* Own listen address; port 0 = every port. The unspecified address stands for
 * loopback here: name the addresses of the interfaces besides. An own address is
 * own on every port until an allow entry covers it; then only on its port. */
typedef struct {
    tg_addr_t  addr;
    uint16_t   port;
} tg_netguard_own_t;

typedef struct {
    const tg_netguard_allow_t  *allow;
    size_t                      allow_count;
    const tg_netguard_own_t    *own;
    size_t                      own_count;
    const tg_str_t             *own_hosts;      /* lower case; "*.name" allowed */
    size_t                      own_host_count;
    const uint16_t             *ports;          /* ports of public addresses; */
    size_t                      port_count;     /* none given: 443 and 8443 */
} tg_netguard_t;

typedef struct {
    bool         allowed;
    bool         port_only;       /* refused for the port alone */
    bool         insecure_http;   /* http is permitted to this address and port */
    const char  *code;            /* "address_not_allowed" or NULL */
    const char  *reason;          /* static, e.g. "private 10.0.0.0/8" */
} tg_netguard_verdict_t;


/* Strict text forms only: dotted decimal without leading zeros, RFC 4291 text;
 * no scope id, no blanks. False when it is none. */
bool tg_addr_parse(tg_str_t text, tg_addr_t *addr);

/* Writes the canonical text (RFC 5952) and NUL; cap >= 46. */
void tg_addr_format(const tg_addr_t *addr, char *text, size_t cap);

/* Parses "cidr" of an allow entry; host bits must be zero. */
bool tg_netguard_cidr_parse(tg_str_t text, tg_addr_t *network, unsigned *prefix);

/* Judges one address and port that a socket is about to connect to. */
tg_netguard_verdict_t tg_netguard_judge(const tg_netguard_t *guard,
    const tg_addr_t *addr, uint16_t port);

/* True when the host name (lower case, no final dot) is one of our own. Such a name
 * is refused whatever it resolves to; an own service that the operator opened is
 * reached by its address and port, or by another name. */
bool tg_netguard_own_host(const tg_netguard_t *guard, tg_str_t host);

/* True for the ports of public addresses. */
bool tg_netguard_port_public(const tg_netguard_t *guard, uint16_t port);

/* True when some allow entry lists this port, so that a URL may name it. */
bool tg_netguard_port_listed(const tg_netguard_t *guard, uint16_t port);

/* True when some allow entry permits http at all. */
bool tg_netguard_http_possible(const tg_netguard_t *guard);

#endif /* TG_NETGUARD_H */
