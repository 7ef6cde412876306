/*
 * Address texts, CIDRs and verdicts of the guard: own tables with the edges of
 * each range, and the "addr" lines of the guard data set.
 */

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cases.h"
#include "tg_netguard.h"


static const tg_netguard_t  plain_guard;


static bool
allowed(const tg_netguard_t *guard, const char *text, uint16_t port)
{
    tg_addr_t              addr;
    tg_netguard_verdict_t  verdict;

    if (!tg_addr_parse(tg_str_of(text), &addr)) {
        fail_msg("%s is no address", text);
    }

    verdict = tg_netguard_judge(guard, &addr, port);
    assert_int_equal(verdict.allowed, verdict.code == NULL);
    assert_int_equal(verdict.allowed, verdict.reason == NULL);

    return verdict.allowed;
}


static void
test_texts_refused(void **state)
{
    size_t              i;
    tg_addr_t           addr;
    static const char  *texts[] = {
        "", ".", "1", "1.2.3", "1.2.3.4.5", "1.2.3.4.", ".1.2.3.4", "1..2.3", "01.2.3.4",
        "1.2.3.04", "256.1.1.1", "1.2.3.4 ", " 1.2.3.4", "1.2.3.4/8", "0x7f.0.0.1",
        "4294967297.0.0.1", "1.2.3.-4", "+1.2.3.4", ":", ":::", "::1::", "1::2::3", "1:2:3",
        "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7:8::", "::1:2:3:4:5:6:7:8",
        "12345::", "g::", "::1%lo", "[::1]", "::ffff:0177.0.0.1", "::1.2.3", "::1.2.3.4:5",
        "1:2:3:4:5:6:7:1.2.3.4", "1:", ":1", "1:2:3:4:5:6:7:", "::ffff:1.2.3.4.5",
    };

    (void) state;

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {

        if (tg_addr_parse(tg_str_of(texts[i]), &addr)) {
            fail_msg("taken: %s", texts[i]);
        }
    }

    assert_false(tg_addr_parse((tg_str_t) { 10, "1.2.3.4\0.5" }, &addr));
    assert_false(tg_addr_parse(tg_null_str, &addr));
}


static void
test_texts_canonical(void **state)
{
    char       text[64];
    size_t     i;
    tg_addr_t  addr;
    static const struct { const char *in, *out; }  pairs[] = {
        { "0.0.0.0", "0.0.0.0" }, { "255.255.255.255", "255.255.255.255" },
        { "::", "::" }, { "0:0:0:0:0:0:0:0", "::" }, { "::1", "::1" }, { "1::", "1::" },
        { "2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1" },
        { "2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1" },
        { "1:0:0:2:0:0:0:3", "1:0:0:2::3" }, { "0:0:1::", "0:0:1::" },
        { "::FFFF:7F00:9", "::ffff:127.0.0.9" }, { "::1.2.3.4", "::102:304" },
        { "1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304" },
        { "1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0" }, { "::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8" },
        { "fe80::0001", "fe80::1" },
        { "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
          "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" },
    };

    (void) state;

    for (i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        assert_true(tg_addr_parse(tg_str_of(pairs[i].in), &addr));
        tg_addr_format(&addr, text, sizeof(text));
        assert_string_equal(text, pairs[i].out);
    }
}


/* Our reader and writer against the C library's, on many patterns of zeros. */
static void
test_texts_against_libc(void **state)
{
    char       text[64], theirs[INET6_ADDRSTRLEN];
    size_t     i, k;
    uint8_t    bytes[16];
    uint32_t   seed = 20240607;
    tg_addr_t  addr, again;

    (void) state;

    for (i = 0; i < 20000; i++) {
        memset(&addr, 0, sizeof(addr));
        addr.v6 = true;

        for (k = 0; k < 16; k++) {
            seed = seed * 1664525 + 1013904223;
            addr.bytes[k] = (seed >> 28) < 9 ? 0 : (uint8_t) (seed >> 16);
        }

        tg_addr_format(&addr, text, 46);
        assert_int_equal(inet_pton(AF_INET6, text, bytes), 1);
        assert_memory_equal(bytes, addr.bytes, 16);

        inet_ntop(AF_INET6, addr.bytes, theirs, sizeof(theirs));
        assert_true(tg_addr_parse(tg_str_of(theirs), &again));
        assert_memory_equal(again.bytes, addr.bytes, 16);
    }
}


static void
test_cidr(void **state)
{
    size_t              i;
    unsigned            prefix;
    tg_addr_t           net;
    static const char  *bad[] = {
        "", "/", "10.0.0.0/", "10.0.0.0/33", "10.0.0.1/8", "10.0.0.0/08", "10.0.0.0/8 ",
        "10.0.0.0/-1", "10.0/8", "::/129", "fc00::1/7", "fe80::/8", "a/8", "10.0.0.0//8",
    };

    (void) state;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {

        if (tg_netguard_cidr_parse(tg_str_of(bad[i]), &net, &prefix)) {
            fail_msg("taken: %s", bad[i]);
        }
    }

    assert_true(tg_netguard_cidr_parse(tg_str("10.0.0.0/8"), &net, &prefix));
    assert_int_equal(prefix, 8);
    assert_true(tg_netguard_cidr_parse(tg_str("127.0.0.1"), &net, &prefix));
    assert_int_equal(prefix, 32);
    assert_true(tg_netguard_cidr_parse(tg_str("0.0.0.0/0"), &net, &prefix));
    assert_int_equal(prefix, 0);
    assert_true(tg_netguard_cidr_parse(tg_str("::1"), &net, &prefix));
    assert_int_equal(prefix, 128);

    /* the mapped form of an IPv4 network is that network */
    assert_true(tg_netguard_cidr_parse(tg_str("::ffff:10.0.0.0/104"), &net, &prefix));
    assert_false(net.v6);
    assert_int_equal(prefix, 8);
}


/* C060, C061, C064: every class at its first and last address and one beyond. */
static void
test_classes(void **state)
{
    size_t              i;
    static const char  *open[] = {
        "1.0.0.0", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0",
        "126.255.255.255", "128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255",
        "172.32.0.0", "191.255.255.255", "192.0.1.0", "192.0.3.0", "192.88.98.255",
        "192.88.100.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0",
        "198.51.99.255", "198.51.101.0", "203.0.112.255", "203.0.114.0", "223.255.255.255",
        "168.63.129.15", "168.63.129.17", "::ffff:8.8.8.8", "2000::", "2001:200::",
        "2001:db7:ffff::1", "2001:db9::", "2003::", "2606:4700:4700::1111", "3ffe::1",
        "3fff:1000::",
    };
    static const char  *shut[] = {
        "0.0.0.0", "0.255.255.255", "10.0.0.0", "10.255.255.255", "100.64.0.0",
        "100.127.255.255", "127.0.0.0", "127.255.255.255", "168.63.129.16", "169.254.0.0",
        "169.254.169.254", "169.254.255.255", "172.16.0.0", "172.31.255.255", "192.0.0.0",
        "192.0.0.255", "192.0.2.0", "192.0.2.255", "192.88.99.0", "192.168.0.0",
        "192.168.255.255", "198.18.0.0", "198.19.255.255", "198.51.100.255", "203.0.113.0",
        "224.0.0.0", "239.255.255.255", "240.0.0.0", "255.255.255.255", "::", "::1",
        "::ffff:172.16.1.1", "::ffff:ac10:101", "::FFFF:7F00:9", "::ffff:0:c0a8:101",
        "::ffff:0:a00:7", "::ffff:0:808:808", "::8.8.8.8", "64:ff9b::8.8.8.8",
        "64:ff9b:1::1", "100::1", "100:0:0:1::", "1fff::", "2001::1", "2001:1ff::1",
        "2001:db8::", "2001:db8:ffff::", "2002:808:808::1", "3fff::", "3fff:fff::1",
        "4000::", "5f00::1", "fbff::", "fc00::", "fdff::1", "fe80::1", "febf::1", "fec0::1",
        "feff::1", "ff00::", "ff02::1",
    };

    (void) state;

    for (i = 0; i < sizeof(open) / sizeof(open[0]); i++) {

        if (!allowed(&plain_guard, open[i], 443)) {
            fail_msg("refused: %s", open[i]);
        }
    }

    for (i = 0; i < sizeof(shut) / sizeof(shut[0]); i++) {

        if (allowed(&plain_guard, shut[i], 443)) {
            fail_msg("allowed: %s", shut[i]);
        }
    }
}


static void
test_ports(void **state)
{
    tg_addr_t              addr;
    tg_netguard_t          guard = { 0 };
    tg_netguard_verdict_t  verdict;
    const uint16_t         web[] = { 80, 443 };

    (void) state;

    assert_true(allowed(&plain_guard, "8.8.8.8", 8443));
    assert_false(allowed(&plain_guard, "8.8.8.8", 80));
    assert_false(allowed(&plain_guard, "8.8.8.8", 0));

    assert_true(tg_addr_parse(tg_str("8.8.8.8"), &addr));
    verdict = tg_netguard_judge(&plain_guard, &addr, 6379);
    assert_true(verdict.port_only);
    assert_string_equal(verdict.code, "address_not_allowed");

    guard.ports = web;
    guard.port_count = 2;
    assert_true(allowed(&guard, "8.8.8.8", 80));
    assert_false(allowed(&guard, "8.8.8.8", 8443));
    assert_false(allowed(&guard, "10.0.0.1", 80));
}


static void
test_allow(void **state)
{
    tg_addr_t            addr;
    tg_netguard_allow_t  allow[4] = {
        { .insecure_http = true }, { .ports = { 9000, 9001 }, .port_count = 2 },
        { .port_count = 0 }, { .port_count = 0 }
    };
    tg_netguard_t        guard = { .allow = allow, .allow_count = 4 };

    (void) state;

    assert_true(tg_netguard_cidr_parse(tg_str("127.0.0.0/8"), &allow[0].network,
        &allow[0].prefix));
    assert_true(tg_netguard_cidr_parse(tg_str("10.1.0.0/16"), &allow[1].network,
        &allow[1].prefix));
    assert_true(tg_netguard_cidr_parse(tg_str("fd00::/8"), &allow[2].network,
        &allow[2].prefix));
    assert_true(tg_netguard_cidr_parse(tg_str("0.0.0.0/8"), &allow[3].network,
        &allow[3].prefix));

    assert_true(allowed(&guard, "127.0.0.1", 6379));
    assert_true(allowed(&guard, "::ffff:127.0.0.1", 6379));
    assert_false(allowed(&guard, "::1", 443));
    assert_true(allowed(&guard, "10.1.2.3", 9001));
    assert_false(allowed(&guard, "10.1.2.3", 443));
    assert_false(allowed(&guard, "10.2.0.0", 9001));
    assert_true(allowed(&guard, "fd12::1", 1));
    assert_false(allowed(&guard, "fc12::1", 443));

    /* nothing opens the second name of loopback */
    assert_false(allowed(&guard, "0.0.0.0", 443));

    assert_true(tg_addr_parse(tg_str("127.0.0.1"), &addr));
    assert_true(tg_netguard_judge(&guard, &addr, 80).insecure_http);
    assert_true(tg_addr_parse(tg_str("10.1.2.3"), &addr));
    assert_false(tg_netguard_judge(&guard, &addr, 9000).insecure_http);
    assert_false(tg_netguard_judge(&guard, &addr, 9002).insecure_http);
    assert_true(tg_netguard_judge(&guard, &addr, 9002).port_only);

    assert_true(tg_netguard_port_listed(&guard, 9000));
    assert_false(tg_netguard_port_listed(&guard, 6379));
    assert_true(tg_netguard_http_possible(&guard));
    assert_false(tg_netguard_http_possible(&plain_guard));
    assert_false(tg_netguard_port_listed(&plain_guard, 443));
}


static void
test_own_addresses(void **state)
{
    tg_netguard_own_t    own[4] = { { .port = 8080 }, { .port = 443 }, { .port = 0 },
                                    { .port = 7000 } };
    tg_netguard_allow_t  allow[2] = { { .port_count = 0 }, { .port_count = 0 } };
    tg_netguard_t        guard = { .own = own, .own_count = 4 };

    (void) state;

    assert_true(tg_addr_parse(tg_str("127.0.0.1"), &own[0].addr));
    assert_true(tg_addr_parse(tg_str("::ffff:93.184.215.20"), &own[1].addr));
    assert_true(tg_addr_parse(tg_str("10.0.0.9"), &own[2].addr));
    assert_true(tg_addr_parse(tg_str("::"), &own[3].addr));

    /* without an allow entry an own address is own on every port */
    assert_false(allowed(&guard, "93.184.215.20", 443));
    assert_false(allowed(&guard, "93.184.215.20", 8443));
    assert_true(allowed(&guard, "93.184.215.21", 443));

    guard.allow = allow;
    guard.allow_count = 2;
    assert_true(tg_netguard_cidr_parse(tg_str("127.0.0.0/8"), &allow[0].network,
        &allow[0].prefix));
    assert_true(tg_netguard_cidr_parse(tg_str("10.0.0.0/8"), &allow[1].network,
        &allow[1].prefix));

    assert_false(allowed(&guard, "127.0.0.1", 8080));
    assert_false(allowed(&guard, "::ffff:127.0.0.1", 8080));
    assert_true(allowed(&guard, "127.0.0.1", 8081));
    assert_false(allowed(&guard, "10.0.0.9", 1234));
    assert_true(allowed(&guard, "10.0.0.8", 1234));

    /* a listener on every address is on each loopback address too */
    assert_false(allowed(&guard, "127.0.0.1", 7000));
    assert_false(allowed(&guard, "127.9.9.9", 7000));
    assert_true(allowed(&guard, "10.0.0.8", 7000));
}


static void
test_own_hosts(void **state)
{
    const tg_str_t  hosts[] = { tg_str("api.kagent.test"), tg_str("*.own.test") };
    tg_netguard_t   guard = { .own_hosts = hosts, .own_host_count = 2 };

    (void) state;

    assert_true(tg_netguard_own_host(&guard, tg_str("api.kagent.test")));
    assert_false(tg_netguard_own_host(&guard, tg_str("x.api.kagent.test")));
    assert_false(tg_netguard_own_host(&guard, tg_str("api.kagent.test.evil.test")));
    assert_true(tg_netguard_own_host(&guard, tg_str("a.own.test")));
    assert_true(tg_netguard_own_host(&guard, tg_str("a.b.own.test")));
    assert_false(tg_netguard_own_host(&guard, tg_str("own.test")));
    assert_false(tg_netguard_own_host(&guard, tg_str(".own.test")));
    assert_false(tg_netguard_own_host(&guard, tg_str("aown.test")));
    assert_false(tg_netguard_own_host(&plain_guard, tg_str("api.kagent.test")));
}


typedef struct {
    unsigned  seen, passed, choice;
} counts_t;


static void
addr_line(void *ctx, const json_t *line)
{
    bool         want, got = false;
    counts_t    *counts = ctx;
    tg_addr_t    addr;
    const char  *id = json_string_value(json_object_get(line, "id"));
    const char  *basis = json_string_value(json_object_get(line, "basis"));
    json_t      *input = json_object_get(line, "input");

    if (strcmp(json_string_value(json_object_get(line, "kind")), "addr") != 0) {
        return;
    }

    counts->seen++;
    want = strcmp(json_string_value(json_object_get(line, "expect")), "allow") == 0;

    if (tg_addr_parse((tg_str_t) { json_string_length(input), json_string_value(input) },
        &addr))
    {
        got = tg_netguard_judge(&plain_guard, &addr, 443).allowed;
    }

    if (got == want) {
        counts->passed++;
        return;
    }

    printf("%s %s: %s, wanted %s (%s)\n", id, json_string_value(input),
        got ? "allow" : "deny", want ? "allow" : "deny", basis);
    counts->choice += strcmp(basis, "choice") == 0;
}


/* ng-0001 to ng-0231 */
static void
test_data_set(void **state)
{
    long      lines;
    counts_t  counts = { 0 };

    (void) state;

    lines = cases_read("netguard-cases.jsonl", addr_line, &counts);
    if (lines == -1) {
        skip();
    }

    assert_true(lines > 0);
    printf("netguard-cases.jsonl addr: %u of %u as expected, %u other by choice\n",
        counts.passed, counts.seen, counts.choice);
    assert_true(counts.seen > 0);
    assert_int_equal(counts.passed + counts.choice, counts.seen);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_texts_refused),
        cmocka_unit_test(test_texts_canonical),
        cmocka_unit_test(test_texts_against_libc),
        cmocka_unit_test(test_cidr),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_ports),
        cmocka_unit_test(test_allow),
        cmocka_unit_test(test_own_addresses),
        cmocka_unit_test(test_own_hosts),
        cmocka_unit_test(test_data_set),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
