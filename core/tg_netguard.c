/*
 * Judges addresses for outbound requests: text forms, classes, allow entries, own
 * addresses. It resolves nothing, opens nothing and knows no URL.
 */

#include "tg_netguard.h"

#include <stdio.h>


#define TG_ADDR4_LEN    4
#define TG_ADDR6_LEN    16
#define TG_ADDR6_WORDS  8
#define TG_MAPPED_BITS  96       /* of ::ffff:0:0 before the IPv4 address */

typedef enum {
    TG_CLASS_PUBLIC,
    TG_CLASS_SPECIAL,     /* refused until an allow entry opens it */
    TG_CLASS_NEVER        /* no TCP peer, or another way to write loopback */
} tg_class_e;

typedef struct {
    uint8_t      bytes[TG_ADDR6_LEN];
    unsigned     prefix;
    tg_class_e   class;
    const char  *reason;
} tg_range_t;


/* IPv4: everything that the registries call not globally reachable, and two that
 * are public by name only. The first match wins. */
static const tg_range_t  tg_ranges4[] = {
    { { 0, 0, 0, 0 }, 8, TG_CLASS_NEVER, "this network 0.0.0.0/8" },
    { { 10 }, 8, TG_CLASS_SPECIAL, "private 10.0.0.0/8" },
    { { 100, 64 }, 10, TG_CLASS_SPECIAL, "carrier-grade NAT 100.64.0.0/10" },
    { { 127 }, 8, TG_CLASS_SPECIAL, "loopback 127.0.0.0/8" },
    { { 168, 63, 129, 16 }, 32, TG_CLASS_SPECIAL, "cloud host agent 168.63.129.16" },
    { { 169, 254 }, 16, TG_CLASS_SPECIAL, "link-local and metadata 169.254.0.0/16" },
    { { 172, 16 }, 12, TG_CLASS_SPECIAL, "private 172.16.0.0/12" },
    { { 192, 0, 0 }, 24, TG_CLASS_SPECIAL, "protocol assignments 192.0.0.0/24" },
    { { 192, 0, 2 }, 24, TG_CLASS_SPECIAL, "documentation 192.0.2.0/24" },
    { { 192, 88, 99 }, 24, TG_CLASS_SPECIAL, "6to4 relay 192.88.99.0/24" },
    { { 192, 168 }, 16, TG_CLASS_SPECIAL, "private 192.168.0.0/16" },
    { { 198, 18 }, 15, TG_CLASS_SPECIAL, "benchmarking 198.18.0.0/15" },
    { { 198, 51, 100 }, 24, TG_CLASS_SPECIAL, "documentation 198.51.100.0/24" },
    { { 203, 0, 113 }, 24, TG_CLASS_SPECIAL, "documentation 203.0.113.0/24" },
    { { 224 }, 4, TG_CLASS_NEVER, "multicast 224.0.0.0/4" },
    { { 255, 255, 255, 255 }, 32, TG_CLASS_NEVER, "broadcast" },
    { { 240 }, 4, TG_CLASS_SPECIAL, "reserved 240.0.0.0/4" },
};

/* IPv6: what lies outside 2000::/3 is refused by that alone; the lines before say
 * it more exactly. ::ffff:0:0/96 never comes here, it is unwrapped. */
static const tg_range_t  tg_ranges6[] = {
    { { 0 }, 128, TG_CLASS_NEVER, "unspecified ::" },
    { { [15] = 1 }, 128, TG_CLASS_SPECIAL, "loopback ::1" },
    { { 0 }, 96, TG_CLASS_NEVER, "IPv4-compatible ::/96" },
    { { [8] = 0xff, [9] = 0xff }, 96, TG_CLASS_NEVER, "IPv4-translated ::ffff:0:0:0/96" },
    { { 0x00, 0x64, 0xff, 0x9b }, 96, TG_CLASS_SPECIAL, "NAT64 64:ff9b::/96" },
    { { 0x00, 0x64, 0xff, 0x9b, 0, 1 }, 48, TG_CLASS_SPECIAL, "NAT64 64:ff9b:1::/48" },
    { { 0x01 }, 64, TG_CLASS_SPECIAL, "discard-only 100::/64" },
    { { 0x20, 0x01 }, 32, TG_CLASS_NEVER, "Teredo 2001::/32" },
    { { 0x20, 0x01 }, 23, TG_CLASS_SPECIAL, "protocol assignments 2001::/23" },
    { { 0x20, 0x01, 0x0d, 0xb8 }, 32, TG_CLASS_SPECIAL, "documentation 2001:db8::/32" },
    { { 0x20, 0x02 }, 16, TG_CLASS_NEVER, "6to4 2002::/16" },
    { { 0x3f, 0xff }, 20, TG_CLASS_SPECIAL, "documentation 3fff::/20" },
    { { 0xfc }, 7, TG_CLASS_SPECIAL, "unique local fc00::/7" },
    { { 0xfe, 0x80 }, 10, TG_CLASS_SPECIAL, "link-local fe80::/10" },
    { { 0xfe, 0xc0 }, 10, TG_CLASS_SPECIAL, "site-local fec0::/10" },
    { { 0xff }, 8, TG_CLASS_NEVER, "multicast ff00::/8" },
};

static const uint8_t   tg_mapped[12] = { [10] = 0xff, [11] = 0xff };
static const uint16_t  tg_public_ports[] = { 443, 8443 };


/* Reads a decimal number without leading zeros, at most max, and moves *p. */
static bool
tg_decimal(const char **p, const char *end, unsigned max, unsigned *value)
{
    const char  *s = *p;
    unsigned     n = 0;

    if (s == end || *s < '0' || *s > '9' || (*s == '0' && end - s > 1
        && s[1] >= '0' && s[1] <= '9'))
    {
        return false;
    }

    while (s != end && *s >= '0' && *s <= '9') {
        n = n * 10 + (unsigned) (*s++ - '0');

        if (n > max) {
            return false;
        }
    }

    *p = s;
    *value = n;

    return true;
}


static bool
tg_addr4_parse(const char *p, const char *end, uint8_t out[TG_ADDR4_LEN])
{
    size_t    i;
    unsigned  value;

    for (i = 0; i < TG_ADDR4_LEN; i++) {

        if (i > 0 && (p == end || *p++ != '.')) {
            return false;
        }

        if (!tg_decimal(&p, end, 255, &value)) {
            return false;
        }

        out[i] = (uint8_t) value;
    }

    return p == end;
}


static int
tg_hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }

    c = (char) (c | 0x20);

    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}


/* Reads 1 to 4 hex digits and moves *p. */
static bool
tg_hex_word(const char **p, const char *end, unsigned *value)
{
    int       digit;
    size_t    n = 0;
    unsigned  word = 0;

    while (*p != end && n <= 4 && (digit = tg_hex_digit(**p)) >= 0) {
        word = word << 4 | (unsigned) digit;
        (*p)++;
        n++;
    }

    *value = word;

    return n >= 1 && n <= 4;
}


/* RFC 4291 text: eight words, one "::" for one word or more, IPv4 at the end. */
static bool
tg_addr6_parse(const char *p, const char *end, uint8_t out[TG_ADDR6_LEN])
{
    bool         gap = false;
    size_t       n = 0, at = 0;          /* bytes written, bytes before the gap */
    unsigned     word;
    const char  *start;

    memset(out, 0, TG_ADDR6_LEN);

    if (end - p >= 2 && p[0] == ':' && p[1] == ':') {
        gap = true;
        p += 2;

    } else if (p == end || *p == ':') {
        return false;
    }

    while (p != end) {
        start = p;

        if (n == TG_ADDR6_LEN || !tg_hex_word(&p, end, &word)) {
            return false;
        }

        if (p != end && *p == '.') {

            if (n > TG_ADDR6_LEN - TG_ADDR4_LEN
                || !tg_addr4_parse(start, end, out + n))
            {
                return false;
            }

            n += TG_ADDR4_LEN;
            break;
        }

        out[n++] = (uint8_t) (word >> 8);
        out[n++] = (uint8_t) (word & 0xff);

        if (p == end) {
            break;
        }

        if (*p++ != ':' || p == end) {
            return false;
        }

        if (*p == ':') {

            if (gap) {
                return false;
            }

            gap = true;
            at = n;
            p++;
        }
    }

    if (!gap) {
        return n == TG_ADDR6_LEN;
    }

    if (n == TG_ADDR6_LEN) {
        return false;
    }

    memmove(out + TG_ADDR6_LEN - (n - at), out + at, n - at);
    memset(out + at, 0, TG_ADDR6_LEN - n);

    return true;
}


bool
tg_addr_parse(tg_str_t text, tg_addr_t *addr)
{
    const char  *end;

    memset(addr, 0, sizeof(*addr));

    if (text.len == 0) {
        return false;
    }

    end = text.data + text.len;

    if (memchr(text.data, ':', text.len) != NULL) {
        addr->v6 = true;
        return tg_addr6_parse(text.data, end, addr->bytes);
    }

    return tg_addr4_parse(text.data, end, addr->bytes);
}


void
tg_addr_format(const tg_addr_t *addr, char *text, size_t cap)
{
    int             n;
    size_t          i, run, at = TG_ADDR6_WORDS, best = 1, len = 0;
    unsigned        words[TG_ADDR6_WORDS];
    const uint8_t  *b = addr->bytes;

    if (!addr->v6) {
        (void) snprintf(text, cap, "%u.%u.%u.%u", b[0], b[1], b[2], b[3]);
        return;
    }

    if (memcmp(b, tg_mapped, sizeof(tg_mapped)) == 0) {
        (void) snprintf(text, cap, "::ffff:%u.%u.%u.%u", b[12], b[13], b[14], b[15]);
        return;
    }

    for (i = 0; i < TG_ADDR6_WORDS; i++) {
        words[i] = (unsigned) b[2 * i] << 8 | b[2 * i + 1];
    }

    /* the longest run of two zero words or more, the first of equals */
    for (i = 0; i < TG_ADDR6_WORDS; i += run + 1) {

        for (run = 0; i + run < TG_ADDR6_WORDS && words[i + run] == 0; run++) {
            /* counts */
        }

        if (run > best) {
            best = run;
            at = i;
        }
    }

    for (i = 0; i < TG_ADDR6_WORDS && len < cap; i++) {

        if (i == at) {
            n = snprintf(text + len, cap - len, "::");
            i += best - 1;

        } else {
            n = snprintf(text + len, cap - len, "%s%x",
                i == 0 || i == at + best ? "" : ":", words[i]);
        }

        len += n > 0 ? (size_t) n : 0;
    }
}


static bool
tg_prefix_match(const uint8_t *a, const uint8_t *b, unsigned prefix)
{
    unsigned  whole = prefix / 8, rest = prefix % 8;

    if (memcmp(a, b, whole) != 0) {
        return false;
    }

    return rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}


/* An IPv4-mapped address is the IPv4 address: that is where a kernel connects. */
static tg_addr_t
tg_unmap(const tg_addr_t *addr)
{
    tg_addr_t  plain = *addr;

    if (addr->v6 && memcmp(addr->bytes, tg_mapped, sizeof(tg_mapped)) == 0) {
        memset(&plain, 0, sizeof(plain));
        memcpy(plain.bytes, addr->bytes + sizeof(tg_mapped), TG_ADDR4_LEN);
    }

    return plain;
}


bool
tg_netguard_cidr_parse(tg_str_t text, tg_addr_t *network, unsigned *prefix)
{
    size_t       i;
    unsigned     bits, value;
    tg_addr_t    plain;
    tg_str_t     head = text;
    const char  *slash, *p, *end;

    slash = text.len == 0 ? NULL : memchr(text.data, '/', text.len);

    if (slash != NULL) {
        head.len = (size_t) (slash - text.data);
    }

    if (!tg_addr_parse(head, network)) {
        return false;
    }

    bits = network->v6 ? TG_ADDR6_LEN * 8 : TG_ADDR4_LEN * 8;
    value = bits;

    if (slash != NULL) {
        p = slash + 1;
        end = text.data + text.len;

        if (!tg_decimal(&p, end, bits, &value) || p != end) {
            return false;
        }
    }

    for (i = value; i < bits; i++) {

        if (network->bytes[i / 8] & (0x80 >> (i % 8))) {
            return false;
        }
    }

    plain = tg_unmap(network);

    if (plain.v6 != network->v6 && value >= TG_MAPPED_BITS) {
        *network = plain;
        value -= TG_MAPPED_BITS;
    }

    *prefix = value;

    return true;
}


static tg_class_e
tg_classify(const tg_addr_t *addr, const char **reason)
{
    size_t             i, n;
    const tg_range_t  *ranges;

    ranges = addr->v6 ? tg_ranges6 : tg_ranges4;
    n = addr->v6 ? sizeof(tg_ranges6) / sizeof(tg_ranges6[0])
                 : sizeof(tg_ranges4) / sizeof(tg_ranges4[0]);

    for (i = 0; i < n; i++) {

        if (tg_prefix_match(addr->bytes, ranges[i].bytes, ranges[i].prefix)) {
            *reason = ranges[i].reason;
            return ranges[i].class;
        }
    }

    if (addr->v6 && (addr->bytes[0] & 0xe0) != 0x20) {
        *reason = "outside the global unicast range 2000::/3";
        return TG_CLASS_SPECIAL;
    }

    *reason = NULL;

    return TG_CLASS_PUBLIC;
}


static bool
tg_is_unspecified(const tg_addr_t *addr)
{
    static const uint8_t  zero[TG_ADDR6_LEN];

    return memcmp(addr->bytes, zero, addr->v6 ? TG_ADDR6_LEN : TG_ADDR4_LEN) == 0;
}


static bool
tg_is_loopback(const tg_addr_t *addr)
{
    static const uint8_t  one[TG_ADDR6_LEN] = { [15] = 1 };

    return addr->v6 ? memcmp(addr->bytes, one, TG_ADDR6_LEN) == 0
                    : addr->bytes[0] == 127;
}


/* Whether the address is one that we listen on: on this port, on any port. */
static bool
tg_is_own(const tg_netguard_t *guard, const tg_addr_t *addr, uint16_t port,
    bool any_port)
{
    bool                      same;
    size_t                    i;
    tg_addr_t                 own;
    const tg_netguard_own_t  *entry;

    for (i = 0; i < guard->own_count; i++) {
        entry = &guard->own[i];
        own = tg_unmap(&entry->addr);

        if (tg_is_unspecified(&own)) {
            /* [::] may listen for IPv4 too */
            same = tg_is_loopback(addr) && (own.v6 || !addr->v6);

        } else {
            same = own.v6 == addr->v6 && memcmp(own.bytes, addr->bytes,
                own.v6 ? TG_ADDR6_LEN : TG_ADDR4_LEN) == 0;
        }

        if (same && (any_port || entry->port == 0 || entry->port == port)) {
            return true;
        }
    }

    return false;
}


static bool
tg_allow_lists(const tg_netguard_allow_t *allow, uint16_t port)
{
    size_t  i;

    for (i = 0; i < allow->port_count; i++) {

        if (allow->ports[i] == port) {
            return true;
        }
    }

    return false;
}


static bool
tg_allow_covers(const tg_netguard_allow_t *allow, const tg_addr_t *addr)
{
    return allow->network.v6 == addr->v6
           && tg_prefix_match(allow->network.bytes, addr->bytes, allow->prefix);
}


bool
tg_netguard_port_public(const tg_netguard_t *guard, uint16_t port)
{
    size_t           i, n;
    const uint16_t  *ports;

    ports = guard->port_count > 0 ? guard->ports : tg_public_ports;
    n = guard->port_count > 0 ? guard->port_count
                              : sizeof(tg_public_ports) / sizeof(tg_public_ports[0]);

    for (i = 0; i < n; i++) {

        if (ports[i] == port) {
            return true;
        }
    }

    return false;
}


tg_netguard_verdict_t
tg_netguard_judge(const tg_netguard_t *guard, const tg_addr_t *addr, uint16_t port)
{
    bool                        covered = false, opened = false;
    size_t                      i;
    tg_addr_t                   plain = tg_unmap(addr);
    tg_class_e                  class;
    tg_netguard_verdict_t       verdict = { .code = "address_not_allowed" };
    const tg_netguard_allow_t  *allow;

    class = tg_classify(&plain, &verdict.reason);

    if (class == TG_CLASS_NEVER) {
        return verdict;
    }

    for (i = 0; i < guard->allow_count; i++) {
        allow = &guard->allow[i];

        if (!tg_allow_covers(allow, &plain)) {
            continue;
        }

        covered = true;

        if (allow->port_count == 0 || tg_allow_lists(allow, port)) {
            opened = true;
            verdict.insecure_http |= allow->insecure_http;
        }
    }

    if (tg_is_own(guard, &plain, port, !covered)) {
        verdict.insecure_http = false;
        verdict.reason = "own address";
        return verdict;
    }

    if (!opened && (class == TG_CLASS_SPECIAL
                    || !tg_netguard_port_public(guard, port)))
    {
        verdict.port_only = covered || class == TG_CLASS_PUBLIC;
        verdict.reason = verdict.port_only ? "port" : verdict.reason;
        return verdict;
    }

    verdict.allowed = true;
    verdict.code = NULL;
    verdict.reason = NULL;

    return verdict;
}


bool
tg_netguard_own_host(const tg_netguard_t *guard, tg_str_t host)
{
    size_t    i;
    tg_str_t  own, tail;

    for (i = 0; i < guard->own_host_count; i++) {
        own = guard->own_hosts[i];

        if (own.len > 2 && own.data[0] == '*' && own.data[1] == '.') {

            /* the dot stays: "*.name" is not "name" and not "othername" */
            if (host.len < own.len) {
                continue;
            }

            tail.len = own.len - 1;
            tail.data = host.data + host.len - tail.len;
            own.len--;
            own.data++;

            if (tg_str_eq(own, tail)) {
                return true;
            }

        } else if (tg_str_eq(own, host)) {
            return true;
        }
    }

    return false;
}


bool
tg_netguard_port_listed(const tg_netguard_t *guard, uint16_t port)
{
    size_t  i;

    for (i = 0; i < guard->allow_count; i++) {

        if (tg_allow_lists(&guard->allow[i], port)) {
            return true;
        }
    }

    return false;
}


bool
tg_netguard_http_possible(const tg_netguard_t *guard)
{
    size_t  i;

    for (i = 0; i < guard->allow_count; i++) {

        if (guard->allow[i].insecure_http) {
            return true;
        }
    }

    return false;
}
