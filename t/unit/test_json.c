/*
 * Strict loading, the canonical and the compact form, hashes, lines of pointers.
 */

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tg_json.h"


#define count(a)  (sizeof(a) / sizeof((a)[0]))


static tg_str_t
nested(char *text, const char *open, size_t n, const char *inner, const char *close)
{
    size_t  i, len;

    len = 0;
    for (i = 0; i < n; i++) {
        len += (size_t) sprintf(text + len, "%s", open);
    }
    len += (size_t) sprintf(text + len, "%s", inner);
    for (i = 0; i < n; i++) {
        len += (size_t) sprintf(text + len, "%s", close);
    }

    return (tg_str_t) { len, text };
}


static void
test_load_accepts(void **state)
{
    size_t           i;
    json_t          *value;
    tg_json_error_t  error;

    static const tg_str_t  texts[] = {
        tg_str("{}"), tg_str(" [ ] "), tg_str("null"), tg_str("true"), tg_str("\"\""),
        tg_str("0"), tg_str("-0"), tg_str("-1.5e+3"), tg_str("9223372036854775807"),
        tg_str("-9223372036854775808"), tg_str("1e-400"),
        tg_str("\"\\ud83d\\ude00\""), tg_str("\"\xf0\x9f\x98\x80\""),
        tg_str("\"\\/\\b\\f\\n\\r\\t\\\"\\\\\""), tg_str("\"\x7f\""),
        tg_str("{\"a\":{\"a\":1},\"b\":[{\"a\":1},{\"a\":1}]}"),
        tg_str("\r\n\t [1,\n2]\n"), tg_str("{\"\":1}"),
    };

    (void) state;

    for (i = 0; i < count(texts); i++) {
        value = tg_json_load(texts[i], &error);
        assert_non_null(value);
        assert_null(error.reason);
        json_decref(value);
    }
}


static void
test_load_refuses(void **state)
{
    size_t           i;
    tg_json_error_t  error;

    static const struct {
        tg_str_t     text;
        const char  *reason;
        unsigned     line;
    } cases[] = {
        { tg_str(""), "empty text", 1 },
        { tg_str(" \n\t"), "empty text", 2 },
        { tg_str("{\"a\":1,\n\"a\":2}"), "duplicate key", 2 },
        { tg_str("{\"a\":1,\"\\u0061\":2}"), "duplicate key", 1 },
        { tg_str("[[{\"k\":[1],\"k\":[2]}]]"), "duplicate key", 1 },
        { tg_str("\"\xff\""), "invalid UTF-8", 1 },
        { tg_str("\"\xc0\x80\""), "invalid UTF-8", 1 },
        { tg_str("\"\xed\xa0\x80\""), "invalid UTF-8", 1 },
        { tg_str("\"\xf4\x90\x80\x80\""), "invalid UTF-8", 1 },
        { tg_str("\"\\ud83d\""), "lone surrogate", 1 },
        { tg_str("\"\\ude00\""), "lone surrogate", 1 },
        { tg_str("\"\\ud83d\\u0041\""), "lone surrogate", 1 },
        { tg_str("\"\\u0000\""), "NUL in a string", 1 },
        { tg_str("{\"a\\u0000\":1}"), "NUL in a string", 1 },
        { tg_str("\"a\0b\""), "NUL byte", 1 },
        { tg_str("{}\n\n x"), "trailing bytes", 3 },
        { tg_str("{} {}"), "trailing bytes", 1 },
        { tg_str("1\0"), "NUL byte", 1 },
        { tg_str("[1]\0x"), "NUL byte", 1 },
        { tg_str("9223372036854775808"), "number out of range", 1 },
        { tg_str("[-9223372036854775809]"), "number out of range", 1 },
        { tg_str("1e400"), "number out of range", 1 },
        { tg_str("{\"a\":"), "text ends early", 1 },
        { tg_str("[1,2"), "text ends early", 1 },
        { tg_str("\xef\xbb\xbf{}"), "invalid syntax", 1 },
        { tg_str("[01]"), "invalid syntax", 1 },
        { tg_str("[1.]"), "invalid syntax", 1 },
        { tg_str("[.5]"), "invalid syntax", 1 },
        { tg_str("[+1]"), "invalid syntax", 1 },
        { tg_str("[NaN]"), "invalid syntax", 1 },
        { tg_str("[1,]"), "invalid syntax", 1 },
        { tg_str("{\"a\":1,}"), "invalid syntax", 1 },
        { tg_str("{'a':1}"), "invalid syntax", 1 },
        { tg_str("[1 2]"), "invalid syntax", 1 },
        { tg_str("{\"a\"\n:\n\"\t\"}"), "invalid syntax", 3 },
        { tg_str("\"\\x\""), "invalid syntax", 1 },
        { tg_str("True"), "invalid syntax", 1 },
    };

    (void) state;

    for (i = 0; i < count(cases); i++) {
        if (tg_json_load(cases[i].text, &error) != NULL) {
            fail_msg("case %zu is accepted", i);
        }
        assert_string_equal(error.reason, cases[i].reason);
        assert_int_equal(error.line, cases[i].line);
        assert_in_range(error.offset, 0, cases[i].text.len);
    }
}


static void
test_depth(void **state)
{
    char            *text;
    json_t          *value;
    tg_json_error_t  error;

    (void) state;

    text = malloc(2000000);

    value = tg_json_load(nested(text, "[", TG_JSON_MAX_DEPTH, "", "]"), &error);
    assert_non_null(value);
    json_decref(value);

    value = tg_json_load(nested(text, "{\"a\":", TG_JSON_MAX_DEPTH, "1", "}"), &error);
    assert_non_null(value);
    json_decref(value);

    assert_null(tg_json_load(nested(text, "[", TG_JSON_MAX_DEPTH + 1, "", "]"), &error));
    assert_string_equal(error.reason, "depth over 128");
    assert_int_equal(error.offset, TG_JSON_MAX_DEPTH);

    assert_null(tg_json_load(nested(text, "{\"a\":", TG_JSON_MAX_DEPTH + 1, "1", "}"),
                             &error));
    assert_string_equal(error.reason, "depth over 128");

    assert_null(tg_json_load(nested(text, "[", 900000, "", "]"), &error));
    assert_string_equal(error.reason, "depth over 128");

    /* brackets in strings are text */
    nested(text, "[", 1000, "", "]");
    text[0] = '"';
    text[1] = '\\';
    text[2] = '"';
    text[1999] = '"';
    value = tg_json_load((tg_str_t) { 2000, text }, &error);
    assert_non_null(value);
    json_decref(value);

    free(text);
}


static void
assert_canonical(const char *text, const char *want)
{
    json_t          *value;
    tg_buf_t         b;
    tg_json_error_t  error;

    value = tg_json_load(tg_str_of(text), &error);
    assert_non_null(value);

    tg_buf_init(&b, 100000);
    assert_int_equal(tg_json_canonical(value, &b), TG_OK);
    assert_int_equal(tg_buf_char(&b, '\0'), TG_OK);
    assert_string_equal(b.data, want);

    tg_buf_free(&b);
    json_decref(value);
}


static void
test_canonical(void **state)
{
    size_t  i;

    static const char *const  cases[][2] = {
        { " { \"b\" : 1 , \"a\" : [ 1 , 2 ] } ", "{\"a\":[1,2],\"b\":1}" },
        { "{\"z\":{\"b\":null,\"a\":true},\"a\":false}",
          "{\"a\":false,\"z\":{\"a\":true,\"b\":null}}" },
        { "[1.0,1e0,10e-1,1]", "[1,1,1,1]" },
        { "[1e2,100,100.0]", "[100,100,100]" },
        { "[-0,-0.0,0,0e5,1e-400,-1e-400]", "[0,0,0,0,0,0]" },
        { "[0.1,0.10,1e-1]", "[0.1,0.1,0.1]" },
        { "[1.5e300,-2.5]", "[1.5e+300,-2.5]" },
        { "[0.30000000000000004,0.3]", "[0.30000000000000004,0.3]" },
        { "[5e-324,4.9e-324]", "[5e-324,5e-324]" },
        { "[1.7976931348623157e308]", "[1.7976931348623157e+308]" },
        { "[9007199254740993,9007199254740993.0]", "[9007199254740993,9007199254740992]" },
        { "[9223372036854775807,-9223372036854775808,-9223372036854775808.0]",
          "[9223372036854775807,-9223372036854775808,-9223372036854775808]" },
        { "[9223372036854775808.0,1e22]", "[9.223372036854776e+18,1e+22]" },
        /* bytes decide, so U+FFFF comes before U+10000 and "a" before "ab" */
        { "{\"\\ud800\\udc00\":1,\"\\uffff\":2,\"ab\":3,\"a\":4,\"B\":5,\"\":6}",
          "{\"\":6,\"B\":5,\"a\":4,\"ab\":3,\"\xef\xbf\xbf\":2,\"\xf0\x90\x80\x80\":1}" },
        { "\"\\u0001\\n\\t\\\"\\\\\\/\\u007f\\u2028\\u0645\"",
          "\"\\u0001\\u000a\\u0009\\\"\\\\/\x7f\xe2\x80\xa8\xd9\x85\"" },
        { "\"\"", "\"\"" },
        { "[]", "[]" },
        { "{}", "{}" },
    };

    (void) state;

    for (i = 0; i < count(cases); i++) {
        assert_canonical(cases[i][0], cases[i][1]);
        /* what it writes is its own canonical form */
        assert_canonical(cases[i][1], cases[i][1]);
    }
}


static void
test_canonical_many_keys(void **state)
{
    char       key[16];
    json_t    *up, *down;
    unsigned   i;
    tg_buf_t   a, b;

    (void) state;

    up = json_object();
    down = json_object();
    for (i = 0; i < 1000; i++) {
        snprintf(key, sizeof(key), "k%u", i);
        json_object_set_new(up, key, json_integer(i));
        snprintf(key, sizeof(key), "k%u", 999 - i);
        json_object_set_new(down, key, json_integer(999 - i));
    }

    tg_buf_init(&a, 100000);
    tg_buf_init(&b, 100000);
    assert_int_equal(tg_json_canonical(up, &a), TG_OK);
    assert_int_equal(tg_json_canonical(down, &b), TG_OK);
    assert_true(tg_str_eq(tg_buf_get(&a), tg_buf_get(&b)));

    tg_buf_free(&a);
    tg_buf_free(&b);
    json_decref(up);
    json_decref(down);
}


static void
test_dump(void **state)
{
    json_t          *value, *copy;
    tg_buf_t         b;
    tg_json_error_t  error;

    (void) state;

    value = tg_json_load(tg_str("{ \"z\" : [ 1.0 , 0.1, 1e100, -3, 5e-324 ] , "
                                "\"a\" : \"\\u0001\\u2028\\ud83d\\ude00\\u007f\" }"),
                         &error);
    assert_non_null(value);

    tg_buf_init(&b, 1000);
    assert_int_equal(tg_buf_cstr(&b, "x"), TG_OK);
    assert_int_equal(tg_json_dump(value, &b), TG_OK);
    assert_int_equal(tg_buf_char(&b, '\0'), TG_OK);
    assert_string_equal(b.data, "x{\"z\":[1.0,0.1,1e+100,-3,5e-324],"
                        "\"a\":\"\\u0001\\u2028\xf0\x9f\x98\x80\\u007f\"}");

    /* reads back equal, types of numbers included */
    copy = tg_json_load((tg_str_t) { b.len - 2, b.data + 1 }, &error);
    assert_non_null(copy);
    assert_true(json_equal(value, copy));
    json_decref(copy);
    tg_buf_free(&b);

    tg_buf_init(&b, 10);
    assert_int_equal(tg_buf_cstr(&b, "abc"), TG_OK);
    assert_int_equal(tg_json_dump(value, &b), TG_E_LIMIT);
    assert_int_equal(b.len, 3);
    tg_buf_free(&b);
    json_decref(value);
}


static void
test_write_bounds_depth(void **state)
{
    int        i;
    json_t    *value, *outer;
    tg_buf_t   b;

    (void) state;

    value = json_array();
    for (i = 0; i < 1000; i++) {
        outer = json_array();
        json_array_append_new(outer, value);
        value = outer;
    }

    tg_buf_init(&b, 10000);
    assert_int_equal(tg_json_dump(value, &b), TG_E_LIMIT);
    assert_int_equal(b.len, 0);
    assert_int_equal(tg_json_canonical(NULL, &b), TG_E_INVALID);
    tg_buf_free(&b);
    json_decref(value);
}


static void
test_locale(void **state)
{
    (void) state;

    /* a locale with a decimal comma must not reach the text */
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") == NULL
        && setlocale(LC_NUMERIC, "fr_FR.UTF-8") == NULL)
    {
        print_message("skipped: no locale with a decimal comma is installed\n");
        skip();
    }

    assert_canonical("[0.5,1.25e-7]", "[0.5,1.25e-07]");
    setlocale(LC_NUMERIC, "C");
}


static void
test_sha256(void **state)
{
    char  hex[TG_JSON_SHA256_HEX_LEN + 1];

    (void) state;

    tg_json_sha256_hex(tg_null_str, hex);
    assert_string_equal(hex,
                        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    tg_json_sha256_hex(tg_str("abc"), hex);
    assert_string_equal(hex,
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}


static void
test_get_string(void **state)
{
    json_t          *value;
    tg_json_error_t  error;

    (void) state;

    value = tg_json_load(tg_str("{\"s\":\"x\",\"e\":\"\",\"n\":1}"), &error);
    assert_non_null(value);
    assert_true(tg_str_eq(tg_json_get_string(value, "s"), tg_str("x")));
    assert_non_null(tg_json_get_string(value, "e").data);
    assert_null(tg_json_get_string(value, "n").data);
    assert_null(tg_json_get_string(value, "absent").data);
    assert_null(tg_json_get_string(json_object_get(value, "n"), "s").data);
    assert_null(tg_json_get_string(NULL, "s").data);
    json_decref(value);
}


static void
test_line_of(void **state)
{
    size_t  i;

    static const char  text[] =
        "{\n"
        "  \"tools\": [\n"
        "    { \"name\": \"a,]}\\\"\", \"x\": [1,\n"
        "       2] },\n"
        "    { \"na\\u006de\":\n"
        "      \"b\", \"a/b\": 1, \"m~n\":\n"
        "      2, \"\":\n"
        "      3 }\n"
        "  ],\n"
        "  \"agents\": {\"k\": []}\n"
        "}\n";

    static const struct {
        const char  *pointer;
        unsigned     line;
    } cases[] = {
        { "", 1 }, { "/tools", 2 }, { "/tools/0", 3 }, { "/tools/0/name", 3 },
        { "/tools/0/x", 3 }, { "/tools/0/x/0", 3 }, { "/tools/0/x/1", 4 },
        { "/tools/1", 5 }, { "/tools/1/name", 6 }, { "/tools/1/a~1b", 6 },
        { "/tools/1/m~0n", 7 }, { "/tools/1/", 8 }, { "/agents/k", 10 },
        /* not there */
        { "/tools/2", 1 }, { "/tools/01", 1 }, { "/tools/-", 1 }, { "/tools/x", 1 },
        { "/tools/0/nam", 1 }, { "/tools/0/names", 1 }, { "/agents/k/0", 1 },
        { "/tools/0/name/0", 1 }, { "tools", 1 },
        { "/tools/99999999999999999999999999", 1 },
    };

    (void) state;

    for (i = 0; i < count(cases); i++) {
        assert_int_equal(tg_json_line_of(tg_str(text), tg_str_of(cases[i].pointer)),
                         cases[i].line);
    }

    /* broken texts only must not be read past their end */
    for (i = 0; i < sizeof(text); i++) {
        char  *part = malloc(i + 1);

        memcpy(part, text, i);
        assert_in_range(tg_json_line_of((tg_str_t) { i, part }, tg_str("/tools/1/name")),
                        1, 6);
        free(part);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_load_accepts),
        cmocka_unit_test(test_load_refuses),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_canonical),
        cmocka_unit_test(test_canonical_many_keys),
        cmocka_unit_test(test_dump),
        cmocka_unit_test(test_write_bounds_depth),
        cmocka_unit_test(test_locale),
        cmocka_unit_test(test_sha256),
        cmocka_unit_test(test_get_string),
        cmocka_unit_test(test_line_of),
    };

    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
