/*
 * tg-probe netguard: judges an address, or a URL with the addresses that its name
 * gives. The line brings own names and addresses and the operator's allow list.
 */

#include <stdlib.h>
#include <strings.h>

#include "tg_netguard.h"
#include "tg_probe.h"
#include "tg_url.h"


#define PROBE_MAX    32       /* own hosts, own addresses, allow entries of a line */
#define PROBE_PORT   443      /* of a bare address */

typedef struct {
    tg_netguard_t        guard;
    tg_str_t             hosts[PROBE_MAX];
    tg_netguard_own_t    own[PROBE_MAX];
    tg_netguard_allow_t  allow[PROBE_MAX];
} probe_guard_t;


static tg_str_t
json_str(const json_t *value)
{
    return (tg_str_t) { json_string_length(value), json_string_value(value) };
}


static bool
read_port(tg_str_t text, uint16_t *port)
{
    size_t    i;
    unsigned  n = 0;

    for (i = 0; i < text.len; i++) {
        n = n * 10 + (unsigned) (text.data[i] - '0');

        if (text.data[i] < '0' || text.data[i] > '9' || n > 65535) {
            return false;
        }
    }

    *port = (uint16_t) n;

    return text.len > 0;
}


/* "addr", "addr:port" or "[addr]:port" */
static bool
read_own(tg_str_t text, tg_netguard_own_t *own)
{
    tg_str_t     head = text;
    const char  *colon;

    own->port = 0;

    if (tg_addr_parse(text, &own->addr)) {
        return true;
    }

    colon = text.len == 0 ? NULL : memrchr(text.data, ':', text.len);
    if (colon == NULL) {
        return false;
    }

    head.len = (size_t) (colon - text.data);

    if (head.len > 2 && head.data[0] == '[' && head.data[head.len - 1] == ']') {
        head.data++;
        head.len -= 2;
    }

    return tg_addr_parse(head, &own->addr)
           && read_port((tg_str_t) { text.len - (size_t) (colon - text.data) - 1,
                                     colon + 1 }, &own->port);
}


/* "cidr [port…] [insecure_http]", as the directive has it */
static bool
read_allow(tg_str_t text, tg_netguard_allow_t *allow)
{
    bool         first = true;
    tg_str_t     word;
    const char  *space;

    memset(allow, 0, sizeof(*allow));

    while (text.len > 0) {
        space = memchr(text.data, ' ', text.len);
        word = (tg_str_t) { space == NULL ? text.len : (size_t) (space - text.data),
                            text.data };
        text.data += word.len + (space != NULL);
        text.len -= word.len + (space != NULL);

        if (first) {
            if (!tg_netguard_cidr_parse(word, &allow->network, &allow->prefix)) {
                return false;
            }

            first = false;

        } else if (tg_str_eq(word, tg_str("insecure_http"))) {
            allow->insecure_http = true;

        } else if (allow->port_count == TG_NETGUARD_MAX_PORTS
                   || !read_port(word, &allow->ports[allow->port_count++]))
        {
            return false;
        }
    }

    return !first;
}


static bool
read_guard(const json_t *line, probe_guard_t *g)
{
    size_t   i;
    json_t  *own = json_object_get(line, "own"), *item;

    memset(g, 0, sizeof(*g));
    g->guard.allow = g->allow;
    g->guard.own = g->own;
    g->guard.own_hosts = g->hosts;

    json_array_foreach(json_object_get(own, "hosts"), i, item) {
        if (i == PROBE_MAX || !json_is_string(item)) {
            return false;
        }

        g->hosts[g->guard.own_host_count++] = json_str(item);
    }

    json_array_foreach(json_object_get(own, "addresses"), i, item) {
        if (i == PROBE_MAX || !read_own(json_str(item), &g->own[g->guard.own_count++])) {
            return false;
        }
    }

    json_array_foreach(json_object_get(line, "allow"), i, item) {
        if (i == PROBE_MAX
            || !read_allow(json_str(item), &g->allow[g->guard.allow_count++]))
        {
            return false;
        }
    }

    return true;
}


/* What a resolver would have answered for the host: the key may carry other case
 * and a final dot. */
static const json_t *
answers(const json_t *line, const tg_url_t *url)
{
    size_t       len = strlen(url->host);
    json_t      *list;
    const char  *name;

    json_object_foreach(json_object_get(line, "resolve"), name, list) {

        if (strncasecmp(name, url->host, len) == 0
            && (name[len] == '\0' || (name[len] == '.' && name[len + 1] == '\0')))
        {
            return list;
        }
    }

    return NULL;
}


static const char *
judge_addr(const tg_netguard_t *guard, tg_str_t text, uint16_t port, bool https)
{
    tg_addr_t              addr;
    tg_netguard_verdict_t  verdict;

    if (!tg_addr_parse(text, &addr)) {
        return "address_not_allowed";
    }

    verdict = tg_netguard_judge(guard, &addr, port);

    if (verdict.allowed && !https && !verdict.insecure_http) {
        return "url_not_https";
    }

    return verdict.code;
}


static const char *
judge_url(const tg_netguard_t *guard, const json_t *line, tg_str_t text)
{
    size_t         i;
    json_t        *item;
    tg_url_t       url;
    const char    *code;
    const json_t  *list;

    if (tg_url_parse(text, &url, &code) != TG_OK) {
        return code;
    }

    code = tg_url_judge(&url, guard);
    if (code != NULL || url.is_literal) {
        return code;
    }

    list = answers(line, &url);
    if (json_array_size(list) == 0) {
        return "address_not_allowed";
    }

    json_array_foreach(list, i, item) {
        code = judge_addr(guard, json_str(item), url.port, url.https);

        if (code != NULL) {
            return code;
        }
    }

    return NULL;
}


json_t *
tg_probe_netguard(const json_t *line)
{
    json_t         *input = json_object_get(line, "input");
    const char     *kind = json_string_value(json_object_get(line, "kind")), *code;
    probe_guard_t   guard;

    if (kind == NULL || !json_is_string(input)) {
        return NULL;
    }

    if (!read_guard(line, &guard)) {
        return tg_probe_error("own or allow is not understood");
    }

    if (strcmp(kind, "addr") == 0) {
        code = judge_addr(&guard.guard, json_str(input), PROBE_PORT, true);

    } else if (strcmp(kind, "url") == 0) {
        code = judge_url(&guard.guard, line, json_str(input));

    } else {
        return tg_probe_error("kind is neither addr nor url");
    }

    return json_pack("{s:s, s:s*}", "verdict", code == NULL ? "allow" : "deny", "code",
        code);
}
