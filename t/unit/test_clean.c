/*
 * Unicode cleaning: each range at its edges, cuts by code points, broken UTF-8,
 * digits; and the text cleaning data set.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cases.h"
#include "tg_clean.h"
#include "tg_utf8.h"


#define OUT_MAX  (1024 * 1024)


static void
expect_clean(tg_str_t in, size_t max, const char *want)
{
    tg_buf_t  out;

    tg_buf_init(&out, OUT_MAX);
    assert_int_equal(tg_clean_value(in, max, &out), TG_OK);
    (void) tg_buf_char(&out, '\0');
    assert_string_equal(out.data, want);
    tg_buf_free(&out);
}


static bool
kept(uint32_t cp)
{
    char      text[16] = "a";
    bool      same;
    size_t    n;
    tg_buf_t  out;

    n = 1 + tg_utf8_encode(cp, text + 1);
    text[n++] = 'b';

    tg_buf_init(&out, OUT_MAX);
    assert_int_equal(tg_clean_value((tg_str_t) { n, text }, 0, &out), TG_OK);
    same = tg_str_eq(tg_buf_get(&out), (tg_str_t) { n, text });

    if (!same) {
        assert_true(tg_str_eq(tg_buf_get(&out), tg_str("ab")));
    }

    tg_buf_free(&out);

    return same;
}


static void
test_ranges(void **state)
{
    size_t                 i;
    static const uint32_t  gone[] = {
        0x00, 0x01, 0x08, 0x0b, 0x0c, 0x0e, 0x1b, 0x1f, 0x7f, 0x80, 0x85, 0x9b, 0x9f, 0xad,
        0x34f, 0x61c, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x180b, 0x180e, 0x180f, 0x200b,
        0x200e, 0x200f, 0x202a, 0x202e, 0x2060, 0x2064, 0x2065, 0x2066, 0x2069, 0x206a,
        0x206f, 0x3164, 0xfe00, 0xfe0f, 0xfeff, 0xffa0, 0xfff9, 0xfffb, 0x1bca0, 0x1bca3,
        0x1d173, 0x1d17a, 0xe0000, 0xe0001, 0xe0020, 0xe007f, 0xe0100, 0xe01ef, 0xe0fff,
    };
    static const uint32_t  stays[] = {
        0x20, 0x7e, 0xa0, 0xac, 0xae, 0x34e, 0x350, 0x600, 0x605, 0x61b, 0x61d, 0x640,
        0x660, 0x6dd, 0x6f0, 0x70f, 0x890, 0x891, 0x8e2, 0x115e, 0x1161, 0x17b6, 0x180a,
        0x1810, 0x2009, 0x200a, 0x200c, 0x200d, 0x2010, 0x2028, 0x2029, 0x202f, 0x205f,
        0x2070, 0x2800, 0x3000, 0x3163, 0x3165, 0xfe10, 0xfdff, 0xfefe, 0xff9f, 0xffa1,
        0xffef, 0xfffc, 0xfffd, 0x110bd, 0x1d172, 0x1d17b, 0x1f600, 0xdffff, 0xe1000,
        0x10ffff,
    };

    (void) state;

    for (i = 0; i < sizeof(gone) / sizeof(gone[0]); i++) {

        if (kept(gone[i])) {
            fail_msg("kept: U+%04X", gone[i]);
        }
    }

    for (i = 0; i < sizeof(stays) / sizeof(stays[0]); i++) {

        if (!kept(stays[i])) {
            fail_msg("removed: U+%04X", stays[i]);
        }
    }
}


static void
test_breaks(void **state)
{
    (void) state;

    expect_clean(tg_str("a\tb"), 0, "a b");
    expect_clean(tg_str("a\r\nb"), 0, "a b");
    expect_clean(tg_str("a\n\n\t\nb"), 0, "a b");
    expect_clean(tg_str("\na\n"), 0, "a");
    expect_clean(tg_str("\n"), 0, "");
    expect_clean(tg_str(" a  b "), 0, " a  b ");
    expect_clean(tg_str("a\n b"), 0, "a b");
    expect_clean(tg_str("a \nb"), 0, "a b");
    expect_clean(tg_str("a \n\xe2\x80\x8b b"), 0, "a  b");
    expect_clean(tg_str("ab\ncd"), 3, "ab ");
    expect_clean(tg_str("ab\ncd"), 4, "ab c");
    expect_clean(tg_null_str, 0, "");
}


static void
test_cut(void **state)
{
    char      text[TG_CLEAN_VALUE_CHARS * 4 + 8];
    size_t    i;
    tg_buf_t  out;

    (void) state;

    expect_clean(tg_str("abc"), 3, "abc");
    expect_clean(tg_str("abcd"), 3, "abc");
    expect_clean(tg_str("\xe2\x80\x8b" "a\xe2\x80\x8b" "bcd"), 3, "abc");
    expect_clean(tg_str("\xf0\x9f\x98\x80\xf0\x9f\x98\x80"), 1, "\xf0\x9f\x98\x80");
    expect_clean(tg_str("ab\xd8\xb7\xd8\xb7"), 3, "ab\xd8\xb7");

    for (i = 0; i < TG_CLEAN_VALUE_CHARS + 2; i++) {
        memcpy(text + 4 * i, "\xf0\x9f\x98\x80", 4);
    }

    tg_buf_init(&out, OUT_MAX);
    assert_int_equal(tg_clean_value((tg_str_t) { sizeof(text), text },
        TG_CLEAN_VALUE_CHARS, &out), TG_OK);
    assert_int_equal(out.len, TG_CLEAN_VALUE_CHARS * 4);
    assert_int_equal(tg_clean_length(tg_buf_get(&out)), TG_CLEAN_VALUE_CHARS);
    tg_buf_free(&out);
}


static void
test_broken_utf8(void **state)
{
    (void) state;

    expect_clean(tg_str("a\xff" "b"), 0, "a\xef\xbf\xbd" "b");
    expect_clean(tg_str("a\xe2\x80"), 0, "a\xef\xbf\xbd");
    expect_clean(tg_str("\xc0\x80"), 0, "\xef\xbf\xbd\xef\xbf\xbd");
    expect_clean(tg_str("\xed\xa0\x80"), 2, "\xef\xbf\xbd\xef\xbf\xbd");
}


static void
test_argument(void **state)
{
    char      text[TG_CLEAN_TEXT_CHARS + 16];
    tg_buf_t  out;

    (void) state;

    memset(text, 'x', sizeof(text));
    tg_buf_init(&out, OUT_MAX);
    (void) tg_buf_cstr(&out, "before");

    assert_int_equal(tg_clean_argument((tg_str_t) { TG_CLEAN_TEXT_CHARS, text }, &out),
        TG_OK);
    assert_int_equal(out.len, 6 + TG_CLEAN_TEXT_CHARS);
    assert_int_equal(tg_clean_argument((tg_str_t) { TG_CLEAN_TEXT_CHARS + 1, text },
        &out), TG_E_INVALID);
    assert_int_equal(out.len, 6 + TG_CLEAN_TEXT_CHARS);

    /* what is cleaned away does not count */
    memcpy(text, "\xe2\x80\x8b", 3);
    assert_int_equal(tg_clean_argument((tg_str_t) { TG_CLEAN_TEXT_CHARS + 3, text },
        &out), TG_OK);
    tg_buf_free(&out);

    /* the buffer's own bound */
    tg_buf_init(&out, 3);
    assert_int_equal(tg_clean_argument(tg_str("abcd"), &out), TG_E_LIMIT);
    assert_int_equal(out.len, 0);
    tg_buf_free(&out);
}


/* C057: Arabic-Indic and Persian digits become ASCII, other digits stay. */
static void
test_digits(void **state)
{
    size_t  i;
    static const struct { tg_str_t in, out; }  pairs[] = {
        { tg_str("\xd9\xa8\xd9\xa8\xd9\xa1\xd9\xa2"), tg_str("8812") },
        { tg_str("\xdb\xb8\xdb\xb8\xdb\xb1\xdb\xb2"), tg_str("8812") },
        { tg_str("8\xd9\xa8" "12"), tg_str("8812") },
        { tg_str("\xef\xbc\x98"), tg_str("\xef\xbc\x98") },
        { tg_str("\xd9\x9f\xd9\xaa\xdb\xaf\xdb\xba"), tg_str("\xd9\x9f\xd9\xaa\xdb\xaf\xdb\xba") },
        { tg_str("\xd9"), tg_str("\xd9") }, { tg_str(""), tg_str("") },
        { tg_str("\xd9\xa0"), tg_str("0") }, { tg_str("x\xdb\xb9y"), tg_str("x9y") },
    };
    tg_buf_t  out;

    (void) state;

    for (i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        tg_buf_init(&out, OUT_MAX);
        assert_int_equal(tg_clean_digits(pairs[i].in, &out), TG_OK);
        assert_true(tg_str_eq(tg_buf_get(&out), pairs[i].out));
        tg_buf_free(&out);
    }
}


typedef struct {
    unsigned  seen, passed;
} counts_t;


static bool
is_string(tg_str_t got, const json_t *want)
{
    return tg_str_eq(got, (tg_str_t) { json_string_length(want),
                                       json_string_value(want) });
}


static void
clean_line(void *ctx, const json_t *line)
{
    bool         good;
    size_t       i;
    json_t      *input = json_object_get(line, "input"), *also;
    tg_rc_e      rc;
    counts_t    *counts = ctx;
    tg_buf_t     out;
    tg_str_t     text = { json_string_length(input), json_string_value(input) };
    const char  *op = json_string_value(json_object_get(line, "op"));

    tg_buf_init(&out, OUT_MAX);
    counts->seen++;

    if (strcmp(op, "clean") == 0) {
        rc = tg_clean_value(text, TG_CLEAN_VALUE_CHARS, &out);

    } else if (strcmp(op, "argtext") == 0) {
        rc = tg_clean_argument(text, &out);

    } else {
        rc = tg_clean_digits(text, &out);
    }

    assert_int_equal(rc, TG_OK);
    good = is_string(tg_buf_get(&out), json_object_get(line, "expected"));

    json_array_foreach(json_object_get(line, "also"), i, also) {
        good = good || is_string(tg_buf_get(&out), also);
    }

    if (good) {
        counts->passed++;

    } else {
        printf("%s: got \"%.*s\"\n", json_string_value(json_object_get(line, "id")),
            (int) out.len, out.data == NULL ? "" : out.data);
    }

    tg_buf_free(&out);
}


/* tc-001 to tc-101 */
static void
test_data_set(void **state)
{
    long      lines;
    counts_t  counts = { 0 };

    (void) state;

    lines = cases_read("text-clean-cases.jsonl", clean_line, &counts);
    if (lines == -1) {
        skip();
    }

    assert_true(lines > 0);
    printf("text-clean-cases.jsonl: %u of %u as expected\n", counts.passed, counts.seen);
    assert_int_equal(counts.passed, counts.seen);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_breaks),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_broken_utf8),
        cmocka_unit_test(test_argument),
        cmocka_unit_test(test_digits),
        cmocka_unit_test(test_data_set),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
