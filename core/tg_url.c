/*
 * Reads absolute http(s) URLs in the one way that all outbound code goes by, and
 * judges them before any look-up. It resolves nothing and builds no request.
 */

#include <stdio.h>

#include "tg_url.h"


#define TG_URL_LABEL_MAX   63
#define TG_URL_NAME_MAX    253
#define TG_URL_PORT_MAX    65535
#define TG_URL_HTTP_PORT   80
#define TG_URL_HTTPS_PORT  443

static const char  tg_url_invalid[] = "invalid_url";
static const char  tg_url_not_https[] = "url_not_https";


static bool
tg_is_digit(char c)
{
    return c >= '0' && c <= '9';
}


static bool
tg_is_alpha(char c)
{
    c = (char) (c | 0x20);

    return c >= 'a' && c <= 'z';
}


static bool
tg_is_hex(char c)
{
    return tg_is_digit(c) || (tg_is_alpha(c) && (c | 0x20) <= 'f');
}


static char
tg_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char) (c | 0x20) : c;
}


/* Only bytes of RFC 3986; a percent sign must begin an escape. No fragment. */
static bool
tg_url_bytes_valid(tg_str_t text)
{
    size_t             i;
    unsigned char      c;
    static const char  refused[] = "\"#<>\\^`{|}";

    for (i = 0; i < text.len; i++) {
        c = (unsigned char) text.data[i];

        if (c <= 0x20 || c >= 0x7f || strchr(refused, c) != NULL) {
            return false;
        }

        if (c == '%' && (text.len - i < 3 || !tg_is_hex(text.data[i + 1])
                         || !tg_is_hex(text.data[i + 2])))
        {
            return false;
        }
    }

    return true;
}


/* Length of the scheme before its colon, or 0 when there is none. */
static size_t
tg_url_scheme_len(tg_str_t text)
{
    char    c;
    size_t  i;

    for (i = 0; i < text.len; i++) {
        c = text.data[i];

        if (c == ':') {
            return i;
        }

        if (!tg_is_alpha(c) && (i == 0 || (!tg_is_digit(c) && c != '+' && c != '-'
                                           && c != '.')))
        {
            return 0;
        }
    }

    return 0;
}


static bool
tg_url_scheme_is(tg_str_t text, size_t len, const char *scheme)
{
    size_t  i;

    for (i = 0; i < len; i++) {

        if (scheme[i] == '\0' || tg_lower(text.data[i]) != scheme[i]) {
            return false;
        }
    }

    return scheme[len] == '\0';
}


/* "" is no port; leading zeros and anything but digits are refused. */
static bool
tg_url_port(const char *p, const char *end, uint16_t *port)
{
    unsigned  value = 0;

    if (p == end || *p == '0') {
        return false;
    }

    for (; p != end; p++) {

        if (!tg_is_digit(*p)) {
            return false;
        }

        value = value * 10 + (unsigned) (*p - '0');

        if (value > TG_URL_PORT_MAX) {
            return false;
        }
    }

    *port = (uint16_t) value;

    return true;
}


static bool
tg_url_label_valid(const char *label, size_t len)
{
    size_t  i;

    if (len == 0 || len > TG_URL_LABEL_MAX || label[0] == '-' || label[len - 1] == '-') {
        return false;
    }

    for (i = 0; i < len; i++) {

        if (!tg_is_alpha(label[i]) && !tg_is_digit(label[i]) && label[i] != '-'
            && label[i] != '_')
        {
            return false;
        }
    }

    return true;
}


/* Some parsers take such a last label for a part of an IPv4 address. */
static bool
tg_url_label_is_number(const char *label, size_t len)
{
    size_t  i;
    bool    digits = true, hex;

    hex = len >= 2 && label[0] == '0' && (label[1] | 0x20) == 'x';

    for (i = 0; i < len; i++) {
        digits = digits && tg_is_digit(label[i]);
        hex = hex && (i < 2 || tg_is_hex(label[i]));
    }

    return digits || hex;
}


/* A host name; what looks like a number must be an address in its plain form. */
static bool
tg_url_name(tg_str_t text, tg_url_t *url)
{
    size_t       i, label = 0, last = 0;
    const char  *p = text.data;

    if (tg_addr_parse(text, &url->literal) && !url->literal.v6) {
        url->is_literal = true;
        tg_addr_format(&url->literal, url->host, sizeof(url->host));
        return true;
    }

    if (text.len > 0 && p[text.len - 1] == '.') {
        text.len--;
    }

    if (text.len == 0 || text.len > TG_URL_NAME_MAX) {
        return false;
    }

    for (i = 0; i <= text.len; i++) {

        if (i < text.len && p[i] != '.') {
            url->host[i] = tg_lower(p[i]);
            continue;
        }

        if (!tg_url_label_valid(p + label, i - label)) {
            return false;
        }

        url->host[i] = '.';
        last = label;
        label = i + 1;
    }

    url->host[text.len] = '\0';

    return !tg_url_label_is_number(p + last, text.len - last);
}


static bool
tg_url_bracketed(tg_str_t text, tg_url_t *url)
{
    if (!tg_addr_parse(text, &url->literal) || !url->literal.v6) {
        return false;
    }

    url->is_literal = true;
    tg_addr_format(&url->literal, url->host, sizeof(url->host));

    return true;
}


static bool
tg_url_authority(const char *p, const char *end, tg_url_t *url)
{
    tg_str_t     host;
    const char  *stop;

    if (p == end || memchr(p, '@', (size_t) (end - p)) != NULL
        || memchr(p, '%', (size_t) (end - p)) != NULL)
    {
        return false;
    }

    if (*p == '[') {
        stop = memchr(p, ']', (size_t) (end - p));

        if (stop == NULL) {
            return false;
        }

        host = (tg_str_t) { (size_t) (stop - p - 1), p + 1 };
        stop++;

        if (!tg_url_bracketed(host, url)) {
            return false;
        }

    } else {
        stop = memchr(p, ':', (size_t) (end - p));
        stop = stop == NULL ? end : stop;
        host = (tg_str_t) { (size_t) (stop - p), p };

        if (!tg_url_name(host, url)) {
            return false;
        }
    }

    if (stop == end) {
        return true;
    }

    url->port_given = true;

    return *stop == ':' && tg_url_port(stop + 1, end, &url->port);
}


tg_rc_e
tg_url_parse(tg_str_t text, tg_url_t *url, const char **code)
{
    size_t       len;
    const char  *p, *end, *slash;

    memset(url, 0, sizeof(*url));
    *code = tg_url_invalid;

    if (text.len == 0 || text.len > TG_URL_MAX) {
        return TG_E_INVALID;
    }

    len = tg_url_scheme_len(text);

    if (len == 0) {
        return TG_E_INVALID;
    }

    url->https = tg_url_scheme_is(text, len, "https");

    if (!url->https && !tg_url_scheme_is(text, len, "http")) {
        *code = tg_url_not_https;
        return TG_E_INVALID;
    }

    p = text.data + len;
    end = text.data + text.len;

    if (!tg_url_bytes_valid(text) || end - p < 3 || memcmp(p, "://", 3) != 0) {
        return TG_E_INVALID;
    }

    p += 3;
    slash = memchr(p, '/', (size_t) (end - p));
    url->port = url->https ? TG_URL_HTTPS_PORT : TG_URL_HTTP_PORT;

    /* "?" before the first slash is no byte of a host: refused there */
    if (slash == NULL || !tg_url_authority(p, slash, url)) {
        return TG_E_INVALID;
    }

    url->target = (tg_str_t) { (size_t) (end - slash), slash };
    *code = NULL;

    return TG_OK;
}


const char *
tg_url_judge(const tg_url_t *url, const tg_netguard_t *guard)
{
    tg_str_t                     host = tg_str_of(url->host);
    tg_netguard_verdict_t        verdict;
    static const tg_netguard_t   none;

    if (guard == NULL) {
        guard = &none;
    }

    if (!url->https && !tg_netguard_http_possible(guard)) {
        return tg_url_not_https;
    }

    if (tg_netguard_own_host(guard, host)) {
        return "address_not_allowed";
    }

    if (!url->is_literal) {
        return tg_netguard_port_public(guard, url->port)
               || tg_netguard_port_listed(guard, url->port)
               ? NULL : "url_port_not_allowed";
    }

    verdict = tg_netguard_judge(guard, &url->literal, url->port);

    if (!verdict.allowed) {
        return verdict.port_only ? "url_port_not_allowed" : verdict.code;
    }

    return url->https || verdict.insecure_http ? NULL : tg_url_not_https;
}


/* True when entry is this host, or this host and port. */
static bool
tg_url_host_is(const tg_url_t *url, tg_str_t entry)
{
    int   n;
    char  text[TG_URL_HOST_MAX + 16];
    bool  v6 = url->is_literal && url->literal.v6;

    if (tg_str_eq(entry, tg_str_of(url->host))) {
        return true;
    }

    n = snprintf(text, sizeof(text), v6 ? "[%s]:%u" : "%s:%u", url->host, url->port);

    if (n > 0 && tg_str_eq(entry, (tg_str_t) { (size_t) n, text })) {
        return true;
    }

    n = snprintf(text, sizeof(text), "[%s]", url->host);

    return v6 && n > 0 && tg_str_eq(entry, (tg_str_t) { (size_t) n, text });
}


bool
tg_url_host_listed(const tg_url_t *url, const tg_str_t *hosts, size_t count)
{
    size_t  i;

    for (i = 0; i < count; i++) {

        if (tg_url_host_is(url, hosts[i])) {
            return true;
        }
    }

    return false;
}


bool
tg_url_dot_segment(tg_str_t target)
{
    char    c;
    bool    plain = true;            /* nothing but dots in this segment */
    size_t  i, dots = 0;

    for (i = 0; i <= target.len; i++) {
        c = i < target.len ? target.data[i] : '/';

        if (c == '/' || c == '?') {

            if (plain && (dots == 1 || dots == 2)) {
                return true;
            }

            if (c == '?') {
                return false;
            }

            plain = true;
            dots = 0;
            continue;
        }

        if (c == '%' && target.len - i >= 3 && target.data[i + 1] == '2'
            && (target.data[i + 2] | 0x20) == 'e')
        {
            i += 2;
            c = '.';
        }

        if (c == '.') {
            dots++;

        } else {
            plain = false;
        }
    }

    return false;
}
