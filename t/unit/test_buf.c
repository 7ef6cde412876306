/*
 * The bounded buffer: growth, the bound, the sticky error and JSON escapes.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "tg_buf.h"


static void
assert_content(const tg_buf_t *b, const char *want)
{
    assert_int_equal(b->len, strlen(want));
    assert_memory_equal(b->data, want, b->len);
}


static void
test_append(void **state)
{
    size_t    i;
    tg_buf_t  b;

    (void) state;

    tg_buf_init(&b, 100000);
    assert_null(b.data);

    assert_int_equal(tg_buf_append(&b, NULL, 0), TG_OK);
    assert_null(b.data);

    for (i = 0; i < 100000; i++) {
        assert_int_equal(tg_buf_char(&b, (char) ('a' + i % 26)), TG_OK);
    }

    assert_int_equal(b.len, 100000);
    for (i = 0; i < b.len; i++) {
        assert_int_equal(b.data[i], 'a' + (int) (i % 26));
    }

    /* the bound is on content, not on what the allocator rounds up to */
    assert_int_equal(tg_buf_char(&b, 'x'), TG_E_LIMIT);
    assert_int_equal(b.len, 100000);

    tg_buf_reset(&b);
    assert_int_equal(b.len, 0);
    assert_int_equal(tg_buf_str(&b, tg_str("again")), TG_OK);
    assert_content(&b, "again");
    assert_true(tg_str_eq(tg_buf_get(&b), tg_str("again")));

    tg_buf_free(&b);
    assert_null(b.data);
    assert_int_equal(b.max, 100000);
}


static void
test_bound_is_whole_and_sticky(void **state)
{
    tg_buf_t  b;

    (void) state;

    tg_buf_init(&b, 8);
    assert_int_equal(tg_buf_cstr(&b, "12345"), TG_OK);
    assert_int_equal(tg_buf_cstr(&b, "6789"), TG_E_LIMIT);
    assert_content(&b, "12345");
    assert_int_equal(b.error, TG_E_LIMIT);

    /* would fit, but the content is already incomplete */
    assert_int_equal(tg_buf_char(&b, '6'), TG_E_LIMIT);
    assert_int_equal(tg_buf_printf(&b, "%d", 6), TG_E_LIMIT);
    assert_int_equal(tg_buf_append(&b, "", 0), TG_E_LIMIT);
    assert_content(&b, "12345");

    tg_buf_reset(&b);
    assert_int_equal(tg_buf_cstr(&b, "12345678"), TG_OK);
    assert_content(&b, "12345678");
    tg_buf_free(&b);

    tg_buf_init(&b, 0);
    assert_int_equal(tg_buf_append(&b, "", 0), TG_OK);
    assert_int_equal(tg_buf_char(&b, 'x'), TG_E_LIMIT);
    tg_buf_free(&b);

    /* a length that no addition can hold */
    tg_buf_init(&b, SIZE_MAX);
    assert_int_equal(tg_buf_char(&b, 'x'), TG_OK);
    assert_int_equal(tg_buf_append(&b, "x", SIZE_MAX), TG_E_LIMIT);
    assert_content(&b, "x");
    tg_buf_free(&b);
}


static void
test_numbers_and_printf(void **state)
{
    char      want[256];
    size_t    i;
    tg_buf_t  b;

    static const int64_t  numbers[] = { 0, 7, -1, 10, INT64_MAX, INT64_MIN };

    (void) state;

    tg_buf_init(&b, 4096);
    for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        tg_buf_reset(&b);
        snprintf(want, sizeof(want), "%lld", (long long) numbers[i]);
        assert_int_equal(tg_buf_int(&b, numbers[i]), TG_OK);
        assert_content(&b, want);
    }

    tg_buf_reset(&b);
    assert_int_equal(tg_buf_printf(&b, "%s=%d", "a", 5), TG_OK);
    assert_int_equal(tg_buf_printf(&b, "%s", ""), TG_OK);
    assert_int_equal(tg_buf_printf(&b, ";%0200d", 1), TG_OK);
    assert_int_equal(b.len, 3 + 1 + 200);
    tg_buf_free(&b);

    /* exactly full */
    tg_buf_init(&b, 5);
    assert_int_equal(tg_buf_printf(&b, "%05d", 42), TG_OK);
    assert_content(&b, "00042");
    tg_buf_reset(&b);
    assert_int_equal(tg_buf_printf(&b, "%06d", 42), TG_E_LIMIT);
    assert_int_equal(b.len, 0);
    tg_buf_free(&b);
}


static void
test_json_string(void **state)
{
    size_t    i;
    tg_buf_t  b;

    static const struct {
        tg_str_t     in;
        const char  *out;
    } cases[] = {
        { tg_str(""), "\"\"" },
        { tg_str("plain"), "\"plain\"" },
        { tg_str("a\"b\\c/d"), "\"a\\\"b\\\\c/d\"" },
        { tg_str("\b\f\n\r\t"), "\"\\b\\f\\n\\r\\t\"" },
        { tg_str("\x01\x1f\x7f"), "\"\\u0001\\u001f\\u007f\"" },
        { tg_str("a\0b"), "\"a\\u0000b\"" },
        { tg_str("\xd9\x85\xd8\xb1"), "\"\xd9\x85\xd8\xb1\"" },
        { tg_str("\xf0\x9f\x98\x80!"), "\"\xf0\x9f\x98\x80!\"" },
        { tg_str("x\xe2\x80\xa8y\xe2\x80\xa9"), "\"x\\u2028y\\u2029\"" },
        /* one replacement for each part that cannot be continued */
        { tg_str("a\xff""b"), "\"a\xef\xbf\xbd""b\"" },
        { tg_str("\xe2\x80"), "\"\xef\xbf\xbd\"" },
        { tg_str("\xe2\x80" "x"), "\"\xef\xbf\xbdx\"" },
        { tg_str("\xc0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\"" },
        { tg_str("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
        { tg_str("\xf4\x90\x80\x80"),
          "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
        { tg_str("\xf0\x9f\x98"), "\"\xef\xbf\xbd\"" },
    };

    (void) state;

    tg_buf_init(&b, 4096);
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tg_buf_reset(&b);
        assert_int_equal(tg_buf_json_string(&b, cases[i].in), TG_OK);
        assert_content(&b, cases[i].out);
    }
    tg_buf_free(&b);

    /* a string that does not fit leaves nothing of itself */
    tg_buf_init(&b, 10);
    assert_int_equal(tg_buf_cstr(&b, "[1,"), TG_OK);
    assert_int_equal(tg_buf_json_string(&b, tg_str("ab\ncde")), TG_E_LIMIT);
    assert_content(&b, "[1,");
    tg_buf_free(&b);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_append),
        cmocka_unit_test(test_bound_is_whole_and_sticky),
        cmocka_unit_test(test_numbers_and_printf),
        cmocka_unit_test(test_json_string),
    };

    return cmocka_run_group_tests_name("buf", tests, NULL, NULL);
}
