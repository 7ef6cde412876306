/*
 * Any bytes as a URL: the parser must not read past them, and what it takes must
 * read the same again when it is written from its parts.
 */

#include <stdio.h>
#include <stdlib.h>

#include "tg_url.h"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int           n;
    bool          v6;
    char          text[TG_URL_MAX + 64], addr[64];
    tg_url_t      url, again;
    unsigned      prefix;
    tg_addr_t     network;
    const char   *code;
    tg_str_t      input = { size, (const char *) data };

    (void) tg_netguard_cidr_parse(input, &network, &prefix);

    if (tg_url_parse(input, &url, &code) != TG_OK) {
        if (code == NULL) {
            abort();
        }

        return 0;
    }

    (void) tg_url_judge(&url, NULL);
    (void) tg_url_dot_segment(url.target);

    v6 = url.is_literal && url.literal.v6;
    n = snprintf(text, sizeof(text), "%s://%s%s%s:%u%.*s", url.https ? "https" : "http",
        v6 ? "[" : "", url.host, v6 ? "]" : "", url.port, (int) url.target.len,
        url.target.data);

    if (n < 0 || n > TG_URL_MAX) {
        return 0;
    }

    if (tg_url_parse((tg_str_t) { (size_t) n, text }, &again, &code) != TG_OK
        || strcmp(again.host, url.host) != 0 || again.port != url.port
        || again.https != url.https || !tg_str_eq(again.target, url.target)
        || again.is_literal != url.is_literal)
    {
        abort();
    }

    if (url.is_literal) {
        tg_addr_format(&again.literal, addr, sizeof(addr));

        if (strcmp(addr, url.host) != 0) {
            abort();
        }
    }

    return 0;
}
