/*
 * The one URL parser of outbound requests: absolute http(s) URLs only, no
 * user info, no fragment, no backslash, no odd number hosts. What one parser may
 * read in another way than the next is refused.
 */

#ifndef TG_URL_H
#define TG_URL_H

#include "tg.h"
#include "tg_netguard.h"


#define TG_URL_MAX       8192
#define TG_URL_HOST_MAX  255

typedef struct {
    bool       https;
    char       host[TG_URL_HOST_MAX + 1];   /* lower case, no final dot, no [] */
    bool       is_literal;                  /* host is an address */
    tg_addr_t  literal;
    uint16_t   port;                        /* given or the scheme's */
    bool       port_given;
    tg_str_t   target;                      /* path and query inside the text */
} tg_url_t;

/* Parses text; url->target points into it. Only bytes that RFC 3986 lets stand in a
 * URL are taken: blanks, quotes, braces and all beyond ASCII must be escaped. On failure returns TG_E_INVALID and
 * *code: invalid_url, url_not_https (another scheme than http/https). http is
 * parsed and left to the caller to judge. */
tg_rc_e tg_url_parse(tg_str_t text, tg_url_t *url, const char **code);

/* Judges scheme, port, own host names and a literal address before any look-up.
 * NULL when it may go on to the resolver; else url_not_https,
 * url_port_not_allowed, address_not_allowed. */
const char *tg_url_judge(const tg_url_t *url, const tg_netguard_t *guard);

/* True when one of hosts is the URL's host, or its host and port: "host" or
 * "host:port", lower case, an IPv6 address with or without []. */
bool tg_url_host_listed(const tg_url_t *url, const tg_str_t *hosts, size_t count);

/* True when the path of target (its query is not looked at) has a segment that is
 * "." or "..", also written with %2e. */
bool tg_url_dot_segment(tg_str_t target);

#endif /* TG_URL_H */
