/*
 * The scanner of big bodies: verdicts in any pieces, records, bounds, agreement
 * with the tree loader. TG_BENCH=1 prints its speed.
 */

#include "scan_help.h"

#include <time.h>

#include "tg_json.h"


static void
test_accepts(void **state)
{
    size_t  i;

    static const tg_str_t  texts[] = {
        tg_str("{}"), tg_str(" [ ] "), tg_str("null"), tg_str("true"), tg_str("false"),
        tg_str("\"\""), tg_str("0"), tg_str("-0"), tg_str(" 12 "), tg_str("-1.5e+3"),
        tg_str("1E5"), tg_str("0.0e-0"), tg_str("[0,1,-1,1.25,1e9]"),
        /* passed through, so their range does not matter here */
        tg_str("9223372036854775808"), tg_str("1e999"),
        tg_str("-123456789012345678901234567890"),
        tg_str("\"\\ud83d\\ude00 \\uD83D\\uDE00\""), tg_str("\"\xf0\x9f\x98\x80\""),
        tg_str("\"\xd9\x85\xd8\xb1\xd8\xad\xd8\xa8\xd8\xa7 \xe4\xbd\xa0\xe5\xa5\xbd\""),
        tg_str("\"\xf4\x8f\xbf\xbf\xef\xbf\xbf\xee\x80\x80\xed\x9f\xbf\xe0\xa0\x80\""),
        tg_str("\"\\/\\b\\f\\n\\r\\t\\\"\\\\\\u0001\""), tg_str("\"\x7f\""),
        tg_str("{\"a\":{\"a\":1},\"b\":[{\"a\":1},{\"a\":1}],\"A\":0,\"\":1}"),
        tg_str("\r\n\t [1,\n2 , [ ] , { } ]\n"),
        tg_str("{\"messages\":1}"), tg_str("[{\"messages\":[{}]}]"),
    };

    (void) state;

    for (i = 0; i < count(texts); i++) {
        assert_verdict(texts[i], TG_OK, NULL, -1);
    }
}


static void
test_refuses(void **state)
{
    size_t  i;

    static const struct {
        tg_str_t     text;
        const char  *reason;
        int          offset;
    } cases[] = {
        { tg_str(""), "empty text", 0 },
        { tg_str(" \n\t"), "empty text", 3 },
        { tg_str("{\"a\":1,\"a\":2}"), "duplicate key", 7 },
        { tg_str("{\"a\":1,\"b\":2,\"\\u0061\":2}"), "duplicate key", 13 },
        { tg_str("{\"\xd9\x85\":1,\"\\u0645\":2}"), "duplicate key", 8 },
        { tg_str("{\"\\ud83d\\ude00\":1,\"\xf0\x9f\x98\x80\":2}"), "duplicate key", 18 },
        { tg_str("[[{\"k\":[{\"k\":1}],\"k\":[2]}]]"), "duplicate key", 17 },
        { tg_str("{\"\":1,\"\":1}"), "duplicate key", 6 },
        { tg_str("\"\xff\""), "invalid UTF-8", 1 },
        { tg_str("\"\x80\""), "invalid UTF-8", 1 },
        { tg_str("\"\xc0\x80\""), "invalid UTF-8", 1 },
        { tg_str("\"\xe0\x9f\xbf\""), "invalid UTF-8", 2 },
        { tg_str("\"\xed\xa0\x80\""), "invalid UTF-8", 2 },
        { tg_str("\"\xf0\x8f\xbf\xbf\""), "invalid UTF-8", 2 },
        { tg_str("\"\xf4\x90\x80\x80\""), "invalid UTF-8", 2 },
        { tg_str("\"\xf5\x80\x80\x80\""), "invalid UTF-8", 1 },
        { tg_str("\"\xe2\x82\""), "invalid UTF-8", 3 },
        { tg_str("{\"\xe2\x82\":1}"), "invalid UTF-8", 4 },
        { tg_str("\"\\ud83d\""), "lone surrogate", 7 },
        { tg_str("\"\\ude00\""), "lone surrogate", 7 },
        { tg_str("\"\\ud83d\\u0041\""), "lone surrogate", 13 },
        { tg_str("\"\\ud83d\\ud83d\""), "lone surrogate", 13 },
        { tg_str("\"\\ud83d\\n\""), "lone surrogate", 8 },
        { tg_str("{\"\\ud83d\":1}"), "lone surrogate", 8 },
        { tg_str("\"\\u0000\""), "NUL in a string", 7 },
        { tg_str("{\"a\\u0000\":1}"), "NUL in a string", 9 },
        { tg_str("\"a\0b\""), "NUL byte", 2 },
        { tg_str("\"a\nb\""), "control character in a string", 2 },
        { tg_str("\"a\x1f" "b\""), "control character in a string", 2 },
        { tg_str("\"\\x\""), "invalid escape", 2 },
        { tg_str("\"\\U0041\""), "invalid escape", 2 },
        { tg_str("\"\\u00g1\""), "invalid escape", 5 },
        { tg_str("{} x"), "trailing bytes", 3 },
        { tg_str("{}{}"), "trailing bytes", 2 },
        { tg_str("1\0"), "trailing bytes", 1 },
        { tg_str("1 2"), "trailing bytes", 2 },
        { tg_str("]"), "invalid syntax", 0 },
        { tg_str("{\"a\":"), "text ends early", 5 },
        { tg_str("[1,2"), "text ends early", 4 },
        { tg_str("\"abc"), "text ends early", 4 },
        { tg_str("\"\\ud83d"), "text ends early", 7 },
        { tg_str("tru"), "text ends early", 3 },
        { tg_str("-"), "text ends early", 1 },
        { tg_str("1."), "text ends early", 2 },
        { tg_str("1e+"), "text ends early", 3 },
        { tg_str("\xef\xbb\xbf{}"), "invalid syntax", 0 },
        { tg_str("[01]"), "invalid syntax", 2 },
        { tg_str("[-01]"), "invalid syntax", 3 },
        { tg_str("[1.]"), "invalid number", 3 },
        { tg_str("[1.e1]"), "invalid number", 3 },
        { tg_str("[1e]"), "invalid number", 3 },
        { tg_str("[-]"), "invalid number", 2 },
        { tg_str("[-a]"), "invalid number", 2 },
        { tg_str("[1.2.3]"), "invalid syntax", 4 },
        { tg_str("[0x1]"), "invalid syntax", 2 },
        { tg_str("[.5]"), "invalid syntax", 1 },
        { tg_str("[+1]"), "invalid syntax", 1 },
        { tg_str("[NaN]"), "invalid syntax", 1 },
        { tg_str("[nul]"), "invalid syntax", 4 },
        { tg_str("[truE]"), "invalid syntax", 4 },
        { tg_str("[Infinity]"), "invalid syntax", 1 },
        { tg_str("[1,]"), "invalid syntax", 3 },
        { tg_str("[,1]"), "invalid syntax", 1 },
        { tg_str("[1}"), "invalid syntax", 2 },
        { tg_str("{\"a\":1]"), "invalid syntax", 6 },
        { tg_str("{\"a\":1,}"), "invalid syntax", 7 },
        { tg_str("{,}"), "invalid syntax", 1 },
        { tg_str("{\"a\"}"), "invalid syntax", 4 },
        { tg_str("{\"a\" 1}"), "invalid syntax", 5 },
        { tg_str("{\"a\":}"), "invalid syntax", 5 },
        { tg_str("{1:2}"), "invalid syntax", 1 },
        { tg_str("{'a':1}"), "invalid syntax", 1 },
        { tg_str("[1 2]"), "invalid syntax", 3 },
        { tg_str("[1]/* */"), "trailing bytes", 3 },
        { tg_str("[1,\v2]"), "invalid syntax", 3 },
    };

    (void) state;

    for (i = 0; i < count(cases); i++) {
        assert_verdict(cases[i].text, TG_E_SYNTAX, cases[i].reason, cases[i].offset);
    }
}


static tg_buf_t
nested(const char *open, size_t n, const char *inner, const char *close)
{
    size_t    i;
    tg_buf_t  b;

    tg_buf_init(&b, BIG);
    for (i = 0; i < n; i++) {
        tg_buf_cstr(&b, open);
    }
    tg_buf_cstr(&b, inner);
    for (i = 0; i < n; i++) {
        tg_buf_cstr(&b, close);
    }
    assert_int_equal(b.error, TG_OK);

    return b;
}


static void
test_depth(void **state)
{
    tg_buf_t  b;

    (void) state;

    b = nested("[", 128, "", "]");
    assert_verdict(tg_buf_get(&b), TG_OK, NULL, -1);
    tg_buf_free(&b);

    b = nested("{\"a\":", 128, "{}", "}");
    assert_verdict(tg_buf_get(&b), TG_E_LIMIT, "depth over 128", 128 * 5);
    tg_buf_free(&b);

    b = nested("[", 129, "", "]");
    assert_verdict(tg_buf_get(&b), TG_E_LIMIT, "depth over 128", 128);
    tg_buf_free(&b);

    /* the same key at each depth is not the same key */
    b = nested("{\"b\":1,\"a\":", 128, "1", "}");
    assert_verdict(tg_buf_get(&b), TG_OK, NULL, -1);
    tg_buf_free(&b);
}


static void
assert_range(tg_str_t body, tg_scan_range_t range, tg_scan_type_e type, const char *want)
{
    assert_int_equal(range.type, type);
    if (type != TG_SCAN_NONE) {
        assert_int_equal(range.end - range.start, strlen(want));
        assert_memory_equal(body.data + range.start, want, strlen(want));
    }
}


static void
check_records(const tg_scan_t *scan, tg_str_t body)
{
    const tg_scan_member_t   *m;
    const tg_scan_message_t  *msg;

    assert_int_equal(tg_scan_top_type(scan), TG_SCAN_OBJECT);
    assert_int_equal(tg_scan_top(scan).start, 1);
    assert_int_equal(tg_scan_top(scan).end, body.len - 1);

    assert_int_equal(tg_scan_member_count(scan), 5);
    assert_null(tg_scan_member(scan, 5));
    m = tg_scan_member(scan, 0);
    assert_range(body, m->key, TG_SCAN_STRING, "\"mod\\u0065l\"");
    assert_range(body, m->value, TG_SCAN_STRING, "\"m-1\"");
    assert_true(m->key_escaped);
    assert_ptr_equal(tg_scan_find(scan, body.data, "model"), m);

    assert_range(body, tg_scan_find(scan, body.data, "n")->value, TG_SCAN_NUMBER, "-1.5e3");
    assert_range(body, tg_scan_find(scan, body.data, "stream")->value, TG_SCAN_TRUE, "true");
    assert_range(body, tg_scan_find(scan, body.data, "meta")->value, TG_SCAN_OBJECT,
                 "{\"messages\":[{\"role\":\"no\"}]}");
    assert_false(tg_scan_find(scan, body.data, "meta")->key_escaped);
    assert_null(tg_scan_find(scan, body.data, "messag"));
    assert_null(tg_scan_find(scan, body.data, "role"));
    assert_null(tg_scan_find(scan, body.data, ""));

    assert_int_equal(tg_scan_message_count(scan), 6);
    assert_null(tg_scan_message(scan, 6));

    msg = tg_scan_message(scan, 0);
    assert_range(body, msg->role, TG_SCAN_STRING, "\"us\\u0065r\"");
    assert_true(msg->role_escaped);
    assert_range(body, msg->content, TG_SCAN_ARRAY,
                 "[ {\"role\":\"x\", \"content\":\"y\"} ]");
    assert_range(body, msg->tool_calls, TG_SCAN_NONE, NULL);

    msg = tg_scan_message(scan, 1);
    assert_range(body, msg->whole, TG_SCAN_OBJECT,
                 "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":"
                 "[{\"id\":\"c\",\"function\":{\"role\":1}}]}");
    assert_range(body, msg->role, TG_SCAN_STRING, "\"assistant\"");
    assert_false(msg->role_escaped);
    assert_range(body, msg->content, TG_SCAN_NULL, "null");
    assert_range(body, msg->tool_calls, TG_SCAN_ARRAY,
                 "[{\"id\":\"c\",\"function\":{\"role\":1}}]");

    msg = tg_scan_message(scan, 2);
    assert_range(body, msg->tool_call_id, TG_SCAN_STRING, "\"c\"");
    assert_range(body, msg->content, TG_SCAN_STRING, "\"a\\nb\"");
    /* an escape elsewhere is not an escape in the role */
    assert_false(msg->role_escaped);

    msg = tg_scan_message(scan, 3);
    assert_range(body, msg->whole, TG_SCAN_NUMBER, "7");
    assert_range(body, msg->role, TG_SCAN_NONE, NULL);

    msg = tg_scan_message(scan, 4);
    assert_range(body, msg->whole, TG_SCAN_ARRAY, "[\"role\",{\"role\":1}]");
    assert_range(body, msg->role, TG_SCAN_NONE, NULL);
    /* nor do its elements go where the last key of the message before went */
    assert_range(body, msg->tool_call_id, TG_SCAN_NONE, NULL);
    assert_range(body, msg->content, TG_SCAN_NONE, NULL);

    msg = tg_scan_message(scan, 5);
    assert_range(body, msg->whole, TG_SCAN_OBJECT, "{}");
}


static void
test_records(void **state)
{
    size_t      step;
    tg_rc_e     rc;
    tg_scan_t  *scan;

    static const tg_str_t  body = tg_str(
        " {\"mod\\u0065l\" : \"m-1\" , \"meta\":{\"messages\":[{\"role\":\"no\"}]},"
        "\"\\u006dessages\":[ {\"role\":\"us\\u0065r\",\"content\":[ {\"role\":\"x\", "
        "\"content\":\"y\"} ]} , {\"role\":\"assistant\",\"content\":null,\"tool_calls\":"
        "[{\"id\":\"c\",\"function\":{\"role\":1}}]},{\"content\":\"a\\nb\",\"role\":"
        "\"tool\",\"tool_call_id\":\"c\"}, 7,[\"role\",{\"role\":1}],{}],"
        "\"n\":-1.5e3,\"stream\":true}\n");

    (void) state;

    for (step = 1; step <= body.len; step++) {
        scan = scan_in(body, step, &rc);
        assert_int_equal(rc, TG_OK);
        /* the count of five members includes "messages" in its escaped spelling */
        if (tg_scan_find(scan, body.data, "messages") != tg_scan_member(scan, 2)) {
            fail_msg("the escaped key is not found, pieces of %zu", step);
        }
        check_records(scan, body);
        tg_scan_free(scan);
    }
}


static void
test_other_shapes(void **state)
{
    tg_rc_e     rc;
    tg_scan_t  *scan;

    (void) state;

    scan = scan_in(tg_str("[{\"messages\":[{\"role\":\"user\"}]}]"), 5, &rc);
    assert_int_equal(rc, TG_OK);
    assert_int_equal(tg_scan_top_type(scan), TG_SCAN_ARRAY);
    assert_int_equal(tg_scan_member_count(scan), 0);
    assert_int_equal(tg_scan_message_count(scan), 0);
    tg_scan_free(scan);

    scan = scan_in(tg_str("{\"messages\":{\"role\":{\"role\":1}}}"), 5, &rc);
    assert_int_equal(rc, TG_OK);
    assert_int_equal(tg_scan_message_count(scan), 0);
    tg_scan_free(scan);

    scan = scan_in(tg_str("123"), 2, &rc);
    assert_int_equal(rc, TG_OK);
    assert_int_equal(tg_scan_top_type(scan), TG_SCAN_NUMBER);
    assert_int_equal(tg_scan_top(scan).end, 3);
    tg_scan_free(scan);

    tg_scan_free(NULL);
}


static void
test_string(void **state)
{
    char             dst[64];
    size_t           i, len;
    tg_scan_range_t  range;

    static const struct {
        const char  *text;
        const char  *want;
    } cases[] = {
        { "\"\"", "" },
        { "\"plain\"", "plain" },
        { "\"a\\n\\\"\\\\\\/\\b\\f\\r\\tz\"", "a\n\"\\/\b\f\r\tz" },
        { "\"\\u0645x\\u00e9\\u0041\"", "\xd9\x85x\xc3\xa9" "A" },
        { "\"\\ud83d\\ude00\\uDBFF\\uDFFF\"", "\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf" },
    };

    (void) state;

    for (i = 0; i < count(cases); i++) {
        len = strlen(cases[i].want);
        range = (tg_scan_range_t) { 0, strlen(cases[i].text), TG_SCAN_STRING };

        assert_int_equal(tg_scan_string(cases[i].text, range, dst, len), len);
        assert_memory_equal(dst, cases[i].want, len);
        if (len > 0) {
            assert_int_equal(tg_scan_string(cases[i].text, range, dst, len - 1), -1);
        }

        range.type = TG_SCAN_NUMBER;
        assert_int_equal(tg_scan_string(cases[i].text, range, dst, sizeof(dst)), -1);
    }

    /* a range that the scanner did not make is refused, not run over */
    range = (tg_scan_range_t) { 0, 4, TG_SCAN_STRING };
    assert_int_equal(tg_scan_string("\"\\u\"", range, dst, sizeof(dst)), -1);
    assert_int_equal(tg_scan_string("\"x\\\"", range, dst, sizeof(dst)), -1);
    range.end = 8;
    assert_int_equal(tg_scan_string("\"\\ud83d\"", range, dst, sizeof(dst)), -1);
    assert_int_equal(tg_scan_string("\"\\ude00\"", range, dst, sizeof(dst)), -1);
}


static void
test_limits(void **state)
{
    size_t    i;
    tg_rc_e   rc;
    tg_buf_t  b;

    (void) state;

    tg_buf_init(&b, BIG);
    tg_buf_char(&b, '{');
    for (i = 0; i < TG_SCAN_MAX_MEMBERS; i++) {
        tg_buf_printf(&b, "%s\"k%zu\":1", i == 0 ? "" : ",", i);
    }
    tg_buf_char(&b, '}');
    tg_scan_t  *scan = scan_in(tg_buf_get(&b), 4096, &rc);
    assert_int_equal(rc, TG_OK);
    assert_int_equal(tg_scan_member_count(scan), TG_SCAN_MAX_MEMBERS);
    tg_scan_free(scan);

    b.len--;
    tg_buf_cstr(&b, ",\"more\":1}");
    scan = scan_in(tg_buf_get(&b), 4096, &rc);
    assert_int_equal(rc, TG_E_LIMIT);
    assert_string_equal(tg_scan_error(scan, NULL), "too many members");
    tg_scan_free(scan);

    tg_buf_reset(&b);
    tg_buf_cstr(&b, "{\"messages\":[1");
    for (i = 1; i < TG_SCAN_MAX_MESSAGES; i++) {
        tg_buf_cstr(&b, ",1");
    }
    tg_buf_cstr(&b, "]}");
    scan = scan_in(tg_buf_get(&b), 65536, &rc);
    assert_int_equal(rc, TG_OK);
    assert_int_equal(tg_scan_message_count(scan), TG_SCAN_MAX_MESSAGES);
    tg_scan_free(scan);

    b.len -= 2;
    tg_buf_cstr(&b, ",1]}");
    scan = scan_in(tg_buf_get(&b), 65536, &rc);
    assert_int_equal(rc, TG_E_LIMIT);
    assert_string_equal(tg_scan_error(scan, NULL), "too many messages");
    tg_scan_free(scan);
    tg_buf_free(&b);
}


/* Mutations of a real request: the scanner and the tree loader agree. */
static void
test_agrees_with_loader(void **state)
{
    char             text[600];
    size_t           len, refused;
    json_t          *value;
    tg_rc_e          rc;
    uint64_t         seed;
    unsigned         round;
    tg_json_error_t  error;

    static const char  seeds[][400] = {
        "{\"model\":\"m\",\"stream\":true,\"n\":1.5e2,\"messages\":[{\"role\":\"system\","
        "\"content\":\"\xd9\x85\xd8\xb1\xd8\xad\xd8\xa8\xd8\xa7 \\u0645\\ud83d\\ude00\"},"
        "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"a\"}]}]}",
        "{\"a\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5,\"f\":6,\"g\":7,\"h\":8,\"i\":9,\"j\":10,"
        "\"k\":11,\"l\":12,\"m\":13,\"n\":14,\"o\":15,\"p\":16,\"q\":17,\"r\":18,\"s\":-0.1}",
        "[[],{},[{}],\"\xf0\x9f\x98\x80 \xe4\xbd\xa0\xe5\xa5\xbd abcdefghijklmnop\\n\","
        "true,false,null,0,-1,[1,2,[3,[4]]], \"\\\\\\\"\" ]",
    };

    (void) state;

    seed = 362436069362436069;
    refused = 0;

    for (round = 0; round < 60000; round++) {
        len = strlen(seeds[round % count(seeds)]);
        memcpy(text, seeds[round % count(seeds)], len);
        for (unsigned n = (unsigned) (next_random(&seed) % 3); n > 0; n--) {
            /* half of the changes are to bytes that mean something */
            text[next_random(&seed) % len] = next_random(&seed) % 2 == 0
                ? (char) next_random(&seed)
                : "\"\\{}[],:0e-.u \n"[next_random(&seed) % 15];
        }

        value = tg_json_load((tg_str_t) { len, text }, &error);
        tg_scan_free(scan_in((tg_str_t) { len, text }, 1 + next_random(&seed) % len, &rc));

        if (value == NULL && strcmp(error.reason, "number out of range") == 0) {
            continue;
        }
        if ((value != NULL) != (rc == TG_OK)) {
            fail_msg("loader: %s, scanner: %d: %.*s",
                     value == NULL ? error.reason : "fine", rc, (int) len, text);
        }
        refused += value == NULL;
        json_decref(value);
    }

    print_message("60000 mutations, %zu refused by both\n", refused);
    assert_in_range(refused, 15000, 50000);
}


static double
seconds(void)
{
    struct timespec  now;

    /* of this thread: other work on the machine is not the scanner's */
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);

    return (double) now.tv_sec + (double) now.tv_nsec / 1e9;
}


/* The best of five rounds; *longest: a round's longest feed, the best too. */
static double
time_scan(tg_str_t body, size_t step, double *longest)
{
    size_t      i, n;
    double      start, before, best, took, feed;
    unsigned    round;
    tg_scan_t  *scan;

    best = *longest = 1e9;
    for (round = 0; round < 5; round++) {
        start = before = seconds();
        feed = 0;
        scan = tg_scan_new();
        for (i = 0; i < body.len; i += n) {
            n = body.len - i < step ? body.len - i : step;
            tg_scan_feed(scan, body.data + i, n);
            took = seconds() - before;
            before += took;
            feed = took > feed ? took : feed;
        }
        assert_int_equal(tg_scan_finish(scan), TG_OK);
        tg_scan_free(scan);
        took = seconds() - start;
        best = took < best ? took : best;
        *longest = feed < *longest ? feed : *longest;
    }

    return best;
}


static void
bench_one(const char *name, const tg_buf_t *b)
{
    double  took, longest;

    assert_int_equal(b->error, TG_OK);
    took = time_scan(tg_buf_get(b), 65536, &longest);
    print_message("%-36s %5.2f MB %7.2f ms %6.0f MB/s, longest 64 KB %6.3f ms\n", name,
                  (double) b->len / 1e6, took * 1e3, (double) b->len / 1e6 / took,
                  longest * 1e3);
}


/* A chat of 8 MB whose contents are n bytes of text, repeated. */
static void
bench_chat(const char *name, const char *text, size_t n)
{
    size_t    i;
    tg_buf_t  b;

    tg_buf_init(&b, BIG);
    tg_buf_cstr(&b, "{\"model\":\"m\",\"messages\":[{\"role\":\"system\",\"content\":\"x\"}");
    while (b.len < 8000000) {
        tg_buf_cstr(&b, ",{\"role\":\"user\",\"content\":\"");
        for (i = 0; i < n; i += strlen(text)) {
            tg_buf_cstr(&b, text);
        }
        tg_buf_cstr(&b, "\"}");
    }
    tg_buf_cstr(&b, "]}");
    bench_one(name, &b);
    tg_buf_free(&b);
}


static void
bench_hostile(void)
{
    size_t    i;
    tg_buf_t  b;

    tg_buf_init(&b, BIG);
    tg_buf_cstr(&b, "[{\"k\":0");
    for (i = 0; i < 700000; i++) {
        tg_buf_printf(&b, ",\"%zx\":1", i);
    }
    tg_buf_cstr(&b, "}]");
    bench_one("one object, 700,000 keys", &b);

    tg_buf_reset(&b);
    tg_buf_cstr(&b, "[0");
    while (b.len < 8000000) {
        tg_buf_cstr(&b, ",{\"a\":1}");
    }
    tg_buf_char(&b, ']');
    bench_one("many tiny objects", &b);

    tg_buf_reset(&b);
    tg_buf_cstr(&b, "[0");
    while (b.len < 8000000) {
        tg_buf_cstr(&b, ",{\"x\":1");
        for (i = 0; i < 17; i++) {
            tg_buf_printf(&b, ",\"%zx\":1", i);
        }
        tg_buf_char(&b, '}');
    }
    tg_buf_char(&b, ']');
    bench_one("objects of 18 keys (a table each)", &b);

    tg_buf_reset(&b);
    tg_buf_cstr(&b, "[0");
    while (b.len < 8000000) {
        tg_buf_char(&b, ',');
        for (i = 0; i < 127; i++) {
            tg_buf_char(&b, '[');
        }
        for (i = 0; i < 127; i++) {
            tg_buf_char(&b, ']');
        }
    }
    tg_buf_char(&b, ']');
    bench_one("deep nesting, again and again", &b);

    tg_buf_reset(&b);
    tg_buf_cstr(&b, "[0");
    while (b.len < 8000000) {
        tg_buf_cstr(&b, ",1.5");
    }
    tg_buf_char(&b, ']');
    bench_one("numbers", &b);

    tg_buf_reset(&b);
    tg_buf_cstr(&b, "[{\"");
    while (b.len < 8000000) {
        tg_buf_cstr(&b, "a long key ");
    }
    tg_buf_cstr(&b, "\":0}]");
    bench_one("one key of 8 MB", &b);
    tg_buf_free(&b);
}


static void
bench(void **state)
{
    tg_buf_t         b;
    double           start;
    json_t          *value;
    tg_json_error_t  error;

    (void) state;

    if (getenv("TG_BENCH") == NULL) {
        print_message("skipped: TG_BENCH=1 prints the speed\n");
        skip();
    }

    bench_chat("ASCII text, 4 KB messages",
               "The quick brown fox jumps over the lazy dog and says so. ", 4000);
    bench_chat("ASCII with \\n and \\\" every 60 bytes",
               "The quick brown fox jumps over the lazy dog, said \\\"so\\\".\\n", 4000);
    bench_chat("Arabic in UTF-8",
               "\xd9\x85\xd8\xb1\xd8\xad\xd8\xa8\xd8\xa7 \xd8\xa8\xd9\x83\xd9\x85 "
               "\xd9\x81\xd9\x8a \xd8\xa7\xd9\x84\xd9\x85\xd8\xaa\xd8\xac\xd8\xb1\\n",
               4000);
    bench_chat("Chinese in UTF-8", "\xe4\xbd\xa0\xe5\xa5\xbd\xef\xbc\x8c\xe4\xb8\x96"
               "\xe7\x95\x8c\xe3\x80\x82", 4000);
    bench_chat("emoji in UTF-8", "\xf0\x9f\x98\x80 ok \xf0\x9f\x91\x8d ", 4000);
    bench_chat("Arabic as \\uXXXX", "\\u0645\\u0631\\u062d\\u0628\\u0627 ", 4000);
    bench_chat("JSON in a string", "{\\\"id\\\":1,\\\"name\\\":\\\"a b\\\"},", 4000);
    bench_chat("dense small messages (90 bytes)", "How are you today, my good friend? ",
               50);
    bench_hostile();

    tg_buf_init(&b, BIG);
    tg_buf_cstr(&b, "{\"messages\":[0");
    while (b.len < 8000000) {
        tg_buf_cstr(&b, ",{\"role\":\"user\",\"content\":\"How are you today, my good "
                        "friend? It is a fine day and I am well.\"}");
    }
    tg_buf_cstr(&b, "]}");
    bench_one("dense messages of 100 bytes: scanner", &b);
    start = seconds();
    value = tg_json_load(tg_buf_get(&b), &error);
    assert_non_null(value);
    json_decref(value);
    print_message("%-36s %5.2f MB %7.2f ms\n", "the same: a tree, once",
                  (double) b.len / 1e6, (seconds() - start) * 1e3);
    tg_buf_free(&b);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_accepts),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_records),
        cmocka_unit_test(test_other_shapes),
        cmocka_unit_test(test_string),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_agrees_with_loader),
        cmocka_unit_test(bench),
    };

    return cmocka_run_group_tests_name("scan", tests, NULL, NULL);
}
