/*
 * Masking of secrets: every form in which an endpoint may send one back, what is
 * left alone, bounds. Case C059 (encoded secret forms).
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tg_mask.h"


#define OUT_MAX  4096


static const char *
masked(const char *secret, const char *text)
{
    bool         whole;
    tg_buf_t     out;
    tg_mask_t   *mask;
    static char  copy[OUT_MAX + 1];

    mask = tg_mask_new();
    assert_non_null(mask);
    assert_int_equal(tg_mask_add(mask, tg_str_of(secret)), TG_OK);

    tg_buf_init(&out, OUT_MAX);
    assert_int_equal(tg_mask_text(mask, tg_str_of(text), false, OUT_MAX, &out, &whole),
                     TG_OK);
    assert_true(whole);

    if (out.len != 0) {
        memcpy(copy, out.data, out.len);
    }

    copy[out.len] = '\0';
    tg_buf_free(&out);
    tg_mask_free(mask);

    return copy;
}


#define shows(secret, text, want)  assert_string_equal(masked(secret, text), want)


static void
test_plain(void **state)
{
    (void) state;

    shows("sesame-open", "sesame-open", "***");
    shows("sesame-open", "Bearer sesame-open", "Bearer ***");
    shows("sesame-open", "a sesame-open, xsesame-openx", "a ***, x***x");
    shows("sesame-open", "sesame-opensesame-open", "******");
    shows("sesame-open", "sesame-ope", "sesame-ope");
    shows("sesame-open", "", "");
    shows("aaaaaab", "aaaaaaaab", "aa***");
}


/* C059: secret "k+/=é" */
static void
test_encoded(void **state)
{
    const char  *s = "k+/=\xc3\xa9";

    (void) state;

    shows(s, "x=k+/=\xc3\xa9&", "x=***&");
    shows(s, "?q=k%2B%2F%3D%C3%A9&r=1", "?q=***&r=1");
    shows(s, "?q=k%2b%2f%3d%c3%a9&r=1", "?q=***&r=1");
    shows(s, "?q=k+%2F=%C3%A9&r=1", "?q=***&r=1");
    shows(s, "%6B%2B%2F%3D%C3%A9", "***");
    shows(s, "k%252B%252F%253D%25C3%25A9", "***");
    shows(s, "{\"q\":\"k+\\/=\\u00e9\"}", "{\"q\":\"***\"}");
    shows(s, "{\"q\":\"k+\\/=\\u00E9\"}", "{\"q\":\"***\"}");
    shows(s, "{\"q\":\"{\\\"k\\\":\\\"k+\\\\/=\\\\u00e9\\\"}\"}",
          "{\"q\":\"{\\\"k\\\":\\\"***\\\"}\"}");
    shows(s, "a k&#43;&#x2F;=&#233; b", "a *** b");

    /* base64 of it, of it behind one and two more bytes, and for URLs */
    shows(s, "aysvPcOp", "***");
    shows(s, "eGsrLz3DqQ==", "eG***Q==");
    shows(s, "eHhrKy89w6k=", "eHh***k=");
    shows("\xfb\xff\xbf" "abc", "-_-_YWJj +/+/YWJj", "*** ***");
}


static void
test_json_signs(void **state)
{
    (void) state;

    shows("a\"b\\c\ndef", "a\"b\\c\ndef", "***");
    shows("a\"b\\c\ndef", "\"a\\\"b\\\\c\\ndef\"", "\"***\"");
    shows("a\"b\\c\ndef", "\"a\\\\\\\"b\\\\\\\\c\\\\ndef\"", "\"***\"");
    shows("\"quoted\"", "\\\"quoted\\\"", "***");
    shows("key-\xf0\x9f\x98\x80-x", "key-\\ud83d\\ude00-x", "***");
    shows("a&b<c>\"'", "a&amp;b&lt;c&gt;&quot;&#39;", "***");
    shows("two words", "two+words two%20words", "*** ***");
    shows("100%25x", "100%25x 100%2525x", "*** ***");

    /* a newline before it is not a part of it */
    shows("secret1", "\"x\\nsecret1\"", "\"x\\n***\"");
    shows("nsecret1", "\"x\\nsecret1\"", "\"x***\"");
}


/* a text that was cleaned has lost what cannot be seen */
static void
test_cleaned(void **state)
{
    (void) state;

    shows("open\xe2\x80\x8bsesame", "open\xe2\x80\x8bsesame opensesame", "*** ***");
    shows("open\tsesame", "open sesame", "***");
}


static void
test_short(void **state)
{
    (void) state;

    shows("abc", "abc", "***");
    shows("abc", "key=abc&x", "key=***&x");
    shows("abc", "abcd xabc \xc3\xa9" "abc abc\xc3\xa9 1abc", "abcd xabc \xc3\xa9" "abc abc\xc3\xa9 1abc");
    shows("abc", "a%20abc%20d", "a%20***%20d");
    shows("abc", "a\\nabc\\n", "a\\n***\\n");
    shows("abc", "YWJj", "YWJj");
    shows("7", "17 7 7.5", "17 *** ***.5");
    shows("abcde", "xabcdex abcde", "xabcdex ***");
    shows("abcdef", "xabcdefx", "x***x");
}


static void
test_several(void **state)
{
    bool        whole;
    tg_buf_t    out;
    tg_mask_t  *mask;

    (void) state;

    mask = tg_mask_new();
    assert_int_equal(tg_mask_add(mask, tg_str("abcdef")), TG_OK);
    assert_int_equal(tg_mask_add(mask, tg_str("abcdefgh")), TG_OK);
    assert_int_equal(tg_mask_add(mask, tg_str("fghijk")), TG_OK);
    assert_int_equal(tg_mask_add(mask, tg_null_str), TG_OK);
    tg_buf_init(&out, OUT_MAX);

    /* the longest, and what begins inside of another */
    assert_int_equal(tg_mask_text(mask, tg_str("xabcdefghx abcdefghijkz"), false,
                                  OUT_MAX, &out, &whole), TG_OK);
    assert_int_equal(out.len, 10);
    assert_memory_equal(out.data, "x***x ***z", 10);

    tg_buf_free(&out);
    tg_mask_free(mask);
}


static void
bounded(const char *text, bool open, size_t max, const char *want, bool all)
{
    bool        whole;
    tg_buf_t    out;
    tg_mask_t  *mask;

    mask = tg_mask_new();
    assert_int_equal(tg_mask_add(mask, tg_str("sesame-open")), TG_OK);
    tg_buf_init(&out, OUT_MAX);
    assert_int_equal(tg_mask_text(mask, tg_str_of(text), open, max, &out, &whole), TG_OK);
    assert_int_equal(whole, all);
    assert_int_equal(out.len, strlen(want));

    if (out.len != 0) {
        assert_memory_equal(out.data, want, out.len);
    }

    tg_buf_free(&out);
    tg_mask_free(mask);
}


static void
test_bounds(void **state)
{
    (void) state;

    bounded("abcdef", false, 6, "abcdef", true);
    bounded("abcdef", false, 5, "abcde", false);
    bounded("abc\xc3\xa9", false, 5, "abc\xc3\xa9", true);
    bounded("abc\xc3\xa9", false, 4, "abc", false);
    bounded("ab\\\\\\\\", false, 4, "ab\\\\", false);
    bounded("abc", false, 0, "", false);
    bounded("", false, 0, "", true);

    /* a secret across the bound is not shown in part */
    bounded("abc sesame-open", false, 8, "abc ***", true);
    bounded("abc sesame-open", false, 7, "abc ***", true);
    bounded("abc sesame-open", false, 6, "abc ", false);

    /* nor one across the end of what was read */
    bounded("abc sesame-op", false, 50, "abc sesame-op", true);
    bounded("abc sesame-op", true, 50, "abc ***", true);
    bounded("abc sesame%2", true, 50, "abc ***", true);
    bounded("abc sesame\\u00", true, 50, "abc ***", true);
    bounded("abc se", true, 50, "abc se", true);
    bounded("abc", true, 50, "abc", true);
}


static void
test_none(void **state)
{
    bool       whole;
    tg_buf_t   out;
    char       big[TG_MASK_SECRET_MAX + 1];
    tg_mask_t  *mask;

    (void) state;

    tg_buf_init(&out, OUT_MAX);
    assert_int_equal(tg_mask_text(NULL, tg_str("abc"), true, OUT_MAX, &out, &whole),
                     TG_OK);
    assert_int_equal(out.len, 3);
    tg_buf_free(&out);
    tg_mask_free(NULL);

    memset(big, 'x', sizeof(big));
    mask = tg_mask_new();
    assert_int_equal(tg_mask_add(mask, (tg_str_t) { sizeof(big), big }), TG_E_LIMIT);
    assert_int_equal(tg_mask_add(mask, (tg_str_t) { sizeof(big) - 1, big }), TG_OK);
    tg_mask_free(mask);
}


/* all of a text is backslashes, or the beginning of a secret */
static void
test_worst(void **state)
{
    bool        whole;
    size_t      i;
    tg_buf_t    out;
    tg_mask_t  *mask;
    static char text[256 * 1024];

    (void) state;

    mask = tg_mask_new();
    assert_int_equal(tg_mask_add(mask, tg_str("sesame-open")), TG_OK);
    assert_int_equal(tg_mask_add(mask, tg_str("\\\\\\sesame")), TG_OK);

    memset(text, '\\', sizeof(text));
    tg_buf_init(&out, 2 * sizeof(text));
    assert_int_equal(tg_mask_text(mask, (tg_str_t) { sizeof(text), text }, false,
                                  sizeof(text), &out, &whole), TG_OK);
    assert_true(whole);
    assert_int_equal(out.len, sizeof(text));

    for (i = 0; i + 10 <= sizeof(text); i += 10) {
        memcpy(text + i, "sesame-ope", 10);
    }

    tg_buf_reset(&out);
    assert_int_equal(tg_mask_text(mask, (tg_str_t) { sizeof(text), text }, false,
                                  sizeof(text), &out, &whole), TG_OK);
    assert_int_equal(out.len, sizeof(text));

    tg_buf_free(&out);
    tg_mask_free(mask);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_encoded),
        cmocka_unit_test(test_json_signs),
        cmocka_unit_test(test_cleaned),
        cmocka_unit_test(test_short),
        cmocka_unit_test(test_several),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_worst),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
