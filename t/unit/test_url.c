/*
 * The URL parser and the judgement before the look-up: own tables, and the "url"
 * lines of the guard data set with the addresses that their names give.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cases.h"
#include "tg_url.h"


#define MAX_OWN  8



static void
test_taken(void **state)
{
    size_t       i;
    tg_url_t     url;
    const char  *code;
    static const struct {
        const char  *text, *host, *target;
        uint16_t     port;
        bool         https, given, literal;
    }  cases[] = {
        { "https://api.example.com/", "api.example.com", "/", 443, true, false, false },
        { "https://API.Example.COM./a?b=c", "api.example.com", "/a?b=c", 443, true, false,
          false },
        { "HTTPS://h:8443/", "h", "/", 8443, true, true, false },
        { "http://h/x", "h", "/x", 80, false, false, false },
        { "http://h:1/x?http://u@v/", "h", "/x?http://u@v/", 1, false, true, false },
        { "https://a_b.c-d.e1/%20%C3%a9", "a_b.c-d.e1", "/%20%C3%a9", 443, true, false,
          false },
        { "https://xn--mgbh0fb.xn--kgbechtv/", "xn--mgbh0fb.xn--kgbechtv", "/", 443, true,
          false, false },
        { "https://1.2.3.4:65535/", "1.2.3.4", "/", 65535, true, true, true },
        { "https://[::1]/", "::1", "/", 443, true, false, true },
        { "https://[0:0::ffff:a00:7]:8443/", "::ffff:10.0.0.7", "/", 8443, true, true,
          true },
        { "https://1password.com/", "1password.com", "/", 443, true, false, false },
        { "https://4.example/a[0]=1&b='(x)'", "4.example", "/a[0]=1&b='(x)'", 443, true,
          false, false },
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(tg_url_parse(tg_str_of(cases[i].text), &url, &code), TG_OK);
        assert_null(code);
        assert_string_equal(url.host, cases[i].host);
        assert_true(tg_str_eq(url.target, tg_str_of(cases[i].target)));
        assert_ptr_equal(url.target.data + url.target.len,
            cases[i].text + strlen(cases[i].text));
        assert_int_equal(url.port, cases[i].port);
        assert_int_equal(url.https, cases[i].https);
        assert_int_equal(url.port_given, cases[i].given);
        assert_int_equal(url.is_literal, cases[i].literal);
    }
}


/* C064, C065: number hosts, and what two parsers may read in two ways. */
static void
test_refused(void **state)
{
    size_t              i;
    tg_url_t            url;
    const char         *code;
    static const char  *texts[] = {
        "", "/", "//h/", "h/", "https", "https:", "https:/h/", "https:h/", "https:///h/",
        "https://", "https:///", "https://h", "https://h?x", "https://h#x", "https://h/#x",
        "https://u@h/", "https://u:p@h/", "https://@h/", "https://h@1.2.3.4/",
        "https://h\\/", "https:\\\\h/", "https://h/a\\b", " https://h/", "https://h/ ",
        "https://h/a b", "https://h/\t", "https://h/\n", "https://h\r\nX: 1/",
        "https://h/\x7f", "https://h/\xc3\xa9", "https://\xc3\xa9/", "https://h/%",
        "https://h/%2", "https://h/%zz", "https://h/{{x}}", "https://h/<a>", "https://h/\"",
        "https://h/`", "https://h/|", "https://h/^", "https://h:/", "https://h:0/",
        "https://h:00443/", "https://h:0443/", "https://h:65536/", "https://h:65979/",
        "https://h:4294967739/", "https://h:+443/", "https://h:443a/", "https://h:44:3/",
        "https://.h/", "https://h../", "https://a..b/", "https://./", "https://-h/",
        "https://h-/", "https://h.-a/", "https://h%2e/", "https://h,i/", "https://h;/",
        "https://167772167/", "https://0xa.7/", "https://012.0.0.07/", "https://10.7/",
        "https://01200000007/", "https://2852039166/", "https://0/", "https://012.4.9.77/",
        "https://192.168.010.1/", "https://1.1.1.1.1/", "https://1.1.1.1./",
        "https://256.1.1.1/", "https://0x0/", "https://a.0x/", "https://a.0x7f/",
        "https://a.1/", "https://[::1/", "https://[::1]x/", "https://[::1]:/",
        "https://[::1].h/", "https://[1.2.3.4]/", "https://[fe80::1%25lo]/",
        "https://[]/", "https://::1/", "https://[::ffff:0177.0.0.1]/",
    };
    static const char  *schemes[] = { "ftp://h/", "wss://h/", "file:///etc/passwd",
        "javascript:alert(1)", "data:x", "httpss://h/", "https+unix://h/" };

    (void) state;

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {

        if (tg_url_parse(tg_str_of(texts[i]), &url, &code) != TG_E_INVALID) {
            fail_msg("taken: %s", texts[i]);
        }

        assert_string_equal(code, "invalid_url");
    }

    for (i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        assert_int_equal(tg_url_parse(tg_str_of(schemes[i]), &url, &code), TG_E_INVALID);
        assert_string_equal(code, "url_not_https");
    }

    assert_int_equal(tg_url_parse((tg_str_t) { 12, "https://h\0.i/" }, &url, &code),
        TG_E_INVALID);
}


static void
test_bounds(void **state)
{
    char         text[TG_URL_MAX + 2];
    size_t       i;
    tg_url_t     url;
    const char  *code;

    (void) state;

    memset(text, 'a', sizeof(text));
    memcpy(text, "https://h/", 10);
    assert_int_equal(tg_url_parse((tg_str_t) { TG_URL_MAX, text }, &url, &code), TG_OK);
    assert_int_equal(tg_url_parse((tg_str_t) { TG_URL_MAX + 1, text }, &url, &code),
        TG_E_INVALID);

    /* a label of 63 and 64 bytes */
    memset(text, 'a', sizeof(text));
    memcpy(text, "https://", 8);
    text[8 + 63] = '/';
    assert_int_equal(tg_url_parse((tg_str_t) { 72, text }, &url, &code), TG_OK);
    text[8 + 63] = 'a';
    text[8 + 64] = '/';
    assert_int_equal(tg_url_parse((tg_str_t) { 73, text }, &url, &code), TG_E_INVALID);

    /* a name of 253 and 254 bytes */
    for (i = 0; i < 255; i++) {
        text[8 + i] = i % 2 == 0 ? 'a' : '.';
    }

    text[8 + 253] = '/';
    assert_int_equal(tg_url_parse((tg_str_t) { 8 + 254, text }, &url, &code), TG_OK);
    assert_int_equal(strlen(url.host), 253);
    text[8 + 253] = 'a';
    text[8 + 254] = '/';
    assert_int_equal(tg_url_parse((tg_str_t) { 8 + 255, text }, &url, &code),
        TG_E_INVALID);
}


static const char *
judge(const char *text, const tg_netguard_t *guard)
{
    tg_url_t     url;
    const char  *code;

    if (tg_url_parse(tg_str_of(text), &url, &code) != TG_OK) {
        return code;
    }

    code = tg_url_judge(&url, guard);

    return code == NULL ? "ok" : code;
}


static void
test_judge(void **state)
{
    const tg_str_t       hosts[] = { tg_str("api.own.test") };
    tg_netguard_allow_t  allow[] = {
        { .insecure_http = true }, { .ports = { 9000 }, .port_count = 1 }
    };
    tg_netguard_t        guard = { .allow = allow, .allow_count = 2, .own_hosts = hosts,
                                   .own_host_count = 1 };

    (void) state;

    assert_string_equal(judge("https://h/", NULL), "ok");
    assert_string_equal(judge("https://h:8443/", NULL), "ok");
    assert_string_equal(judge("https://h:80/", NULL), "url_port_not_allowed");
    assert_string_equal(judge("https://8.8.8.8:80/", NULL), "url_port_not_allowed");
    assert_string_equal(judge("http://h/", NULL), "url_not_https");
    assert_string_equal(judge("http://h:443/", NULL), "url_not_https");
    assert_string_equal(judge("https://127.0.0.1/", NULL), "address_not_allowed");
    assert_string_equal(judge("https://127.0.0.1:80/", NULL), "address_not_allowed");

    assert_true(tg_netguard_cidr_parse(tg_str("127.0.0.0/8"), &allow[0].network,
        &allow[0].prefix));
    assert_true(tg_netguard_cidr_parse(tg_str("10.0.0.0/8"), &allow[1].network,
        &allow[1].prefix));

    /* an entry without ports opens literals; names need a port that is listed */
    assert_string_equal(judge("http://127.0.0.1:6000/", &guard), "ok");
    assert_string_equal(judge("https://127.0.0.1:6000/", &guard), "ok");
    assert_string_equal(judge("https://h:6000/", &guard), "url_port_not_allowed");
    assert_string_equal(judge("https://h:9000/", &guard), "ok");
    assert_string_equal(judge("http://h:9000/", &guard), "ok");
    assert_string_equal(judge("https://10.0.0.1:9000/", &guard), "ok");
    assert_string_equal(judge("http://10.0.0.1:9000/", &guard), "url_not_https");
    assert_string_equal(judge("https://10.0.0.1/", &guard), "url_port_not_allowed");
    assert_string_equal(judge("https://192.168.0.1:9000/", &guard), "address_not_allowed");
    assert_string_equal(judge("https://API.own.test./", &guard), "address_not_allowed");
    assert_string_equal(judge("https://api.own.test:9000/", &guard),
        "address_not_allowed");
}


static void
test_dot_segments(void **state)
{
    size_t              i;
    static const char  *with[] = { "/.", "/..", "/./", "/../a", "/a/./b", "/a/..",
        "/a/..?x", "/%2e", "/%2E%2e/", "/.%2e/x", "/a/%2e./", "/x/%2e?y" };
    static const char  *without[] = { "/", "", "/a", "/...", "/a..", "/..a", "/.a/b.",
        "/a?x=/../", "/?../..", "/%2e%2e%2e", "/%2f", "/%2ea", "/a/.b./c" };

    (void) state;

    for (i = 0; i < sizeof(with) / sizeof(with[0]); i++) {
        assert_true(tg_url_dot_segment(tg_str_of(with[i])));
    }

    for (i = 0; i < sizeof(without) / sizeof(without[0]); i++) {
        assert_false(tg_url_dot_segment(tg_str_of(without[i])));
    }
}


typedef struct {
    unsigned  seen, passed, choice;
} counts_t;


/* Every address that the name gives must be one that a socket may connect to. */
static bool
resolve(const tg_url_t *url, const json_t *map, const tg_netguard_t *guard)
{
    json_t     *list, *text;
    size_t      i;
    tg_addr_t   addr;
    const char *name;
    char        dotted[300], lower[300];

    if (url->is_literal) {
        return true;
    }

    snprintf(dotted, sizeof(dotted), "%s.", url->host);

    json_object_foreach((json_t *) (uintptr_t) map, name, list) {

        for (i = 0; name[i] != '\0' && i < sizeof(lower) - 1; i++) {
            lower[i] = name[i] >= 'A' && name[i] <= 'Z' ? (char) (name[i] | 0x20) : name[i];
        }

        lower[i] = '\0';

        if (strcmp(lower, url->host) != 0 && strcmp(lower, dotted) != 0) {
            continue;
        }

        json_array_foreach(list, i, text) {

            if (!tg_addr_parse(tg_str_of(json_string_value(text)), &addr)
                || !tg_netguard_judge(guard, &addr, url->port).allowed)
            {
                return false;
            }
        }

        return json_array_size(list) > 0;
    }

    return false;
}


static bool
url_allowed(const json_t *line)
{
    json_t             *own = json_object_get(line, "own"), *item;
    json_t             *input = json_object_get(line, "input");
    size_t              i;
    tg_str_t            hosts[MAX_OWN];
    tg_url_t            url;
    const char         *code;
    tg_netguard_t       guard = { 0 };
    tg_netguard_own_t   addrs[MAX_OWN] = { { .port = 0 } };

    json_array_foreach(json_object_get(own, "hosts"), i, item) {
        hosts[guard.own_host_count++] = tg_str_of(json_string_value(item));
    }

    json_array_foreach(json_object_get(own, "addresses"), i, item) {
        assert_true(tg_addr_parse(tg_str_of(json_string_value(item)), &addrs[i].addr));
        guard.own_count++;
    }

    guard.own_hosts = hosts;
    guard.own = addrs;

    return tg_url_parse((tg_str_t) { json_string_length(input), json_string_value(input) },
               &url, &code) == TG_OK
           && tg_url_judge(&url, &guard) == NULL
           && resolve(&url, json_object_get(line, "resolve"), &guard);
}


static void
url_line(void *ctx, const json_t *line)
{
    bool         want, got;
    counts_t    *counts = ctx;
    const char  *id = json_string_value(json_object_get(line, "id"));
    const char  *basis = json_string_value(json_object_get(line, "basis"));

    if (strcmp(json_string_value(json_object_get(line, "kind")), "url") != 0) {
        return;
    }

    counts->seen++;
    want = strcmp(json_string_value(json_object_get(line, "expect")), "allow") == 0;
    got = url_allowed(line);

    if (got == want) {
        counts->passed++;
        return;
    }

    printf("%s %s: %s, wanted %s (%s)\n", id,
        json_string_value(json_object_get(line, "input")), got ? "allow" : "deny",
        want ? "allow" : "deny", basis);
    counts->choice += strcmp(basis, "choice") == 0;
}


static void
test_host_listed(void **state)
{
    size_t       i;
    tg_url_t     url;
    tg_str_t     list[2];
    const char  *code;
    static const struct {
        const char  *url, *entry;
        bool         listed;
    }  cases[] = {
        { "https://api.example.com/", "api.example.com", true },
        { "https://API.Example.com./", "api.example.com", true },
        { "https://api.example.com/", "api.example.com:443", true },
        { "https://api.example.com:8443/", "api.example.com", true },
        { "https://api.example.com:8443/", "api.example.com:443", false },
        { "https://xapi.example.com/", "api.example.com", false },
        { "https://api.example.com.evil.test/", "api.example.com", false },
        { "https://api.example.com/", "*.example.com", false },
        { "https://api.example.com/", "", false },
        { "https://1.2.3.4/", "1.2.3.4", true },
        { "https://[2001:db8::1]/", "[2001:db8::1]", true },
        { "https://[2001:db8::1]/", "2001:db8::1", true },
        { "https://[2001:db8::1]:8443/", "[2001:db8::1]:8443", true },
        { "https://[2001:db8::1]:8443/", "[2001:db8::1]:443", false },
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(tg_url_parse(tg_str_of(cases[i].url), &url, &code), TG_OK);

        list[0] = tg_str_of("other.example");
        list[1] = tg_str_of(cases[i].entry);

        if (tg_url_host_listed(&url, list, 2) != cases[i].listed) {
            fail_msg("%s, %s", cases[i].url, cases[i].entry);
        }

        assert_false(tg_url_host_listed(&url, list, 1));
        assert_false(tg_url_host_listed(&url, NULL, 0));
    }
}


/* ng-0233 to ng-0471 */
static void
test_data_set(void **state)
{
    long      lines;
    counts_t  counts = { 0 };

    (void) state;

    lines = cases_read("netguard-cases.jsonl", url_line, &counts);
    if (lines == -1) {
        skip();
    }

    assert_true(lines > 0);
    printf("netguard-cases.jsonl url: %u of %u as expected, %u other by choice\n",
        counts.passed, counts.seen, counts.choice);
    assert_true(counts.seen > 0);
    assert_int_equal(counts.passed + counts.choice, counts.seen);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_taken),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_judge),
        cmocka_unit_test(test_dot_segments),
        cmocka_unit_test(test_host_listed),
        cmocka_unit_test(test_data_set),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
