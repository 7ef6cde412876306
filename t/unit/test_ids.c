/*
 * Ids and labels: spelling, order, stability of derived ids.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "tg_ids.h"


static void
test_make(void **state)
{
    char     id[TG_ID_MAX_LEN], next[TG_ID_MAX_LEN];
    size_t   i;
    uint8_t  bits[TG_ID_RANDOM_LEN] = { 0 };

    (void) state;

    tg_id_make("run_", bits, id);
    assert_string_equal(id, "run_0000000000000000000000");

    /* 61 is the last digit, 62 carries */
    bits[15] = 61;
    tg_id_make("run_", bits, id);
    assert_string_equal(id, "run_000000000000000000000z");
    bits[15] = 62;
    tg_id_make("run_", bits, id);
    assert_string_equal(id, "run_0000000000000000000010");

    /* 2^128 - 1 in base 62 */
    memset(bits, 0xff, sizeof(bits));
    tg_id_make("run_", bits, id);
    assert_string_equal(id, "run_7n42DGM5Tflk9n8mt7Fhc7");
    assert_true(tg_id_valid("run_", tg_str_of(id)));

    /* every single bit counts */
    for (i = 0; i < 128; i++) {
        memset(bits, 0xa5, sizeof(bits));
        tg_id_make("s_", bits, id);
        bits[i / 8] ^= (uint8_t) (1 << i % 8);
        tg_id_make("s_", bits, next);
        assert_string_not_equal(id, next);
        assert_int_equal(strlen(next), 2 + TG_ID_BODY_LEN);
    }

    /* the longest prefix that fits; a longer one is cut, never written past id */
    tg_id_make("seventeen_chars__", bits, id);
    assert_int_equal(strlen(id), TG_ID_MAX_LEN - 1);
    tg_id_make("eighteen_chars____", bits, id);
    assert_int_equal(strlen(id), TG_ID_MAX_LEN - 1);
}


static void
test_derive(void **state)
{
    char  a[TG_ID_MAX_LEN], b[TG_ID_MAX_LEN];

    (void) state;

    /* must never change: ids of file objects are kept by callers */
    tg_id_derive("agent_", tg_str("default"), tg_str("support"), a);
    assert_string_equal(a, "agent_3QqRuQoxI3u0EF3ZlqiOOo");
    tg_id_derive("agent_", tg_str("default"), tg_str("support"), b);
    assert_string_equal(a, b);

    tg_id_derive("tool_", tg_str("default"), tg_str("support"), b);
    assert_string_not_equal(strchr(a, '_'), strchr(b, '_'));

    /* the border between scope and name counts */
    tg_id_derive("agent_", tg_str("ab"), tg_str("c"), a);
    tg_id_derive("agent_", tg_str("a"), tg_str("bc"), b);
    assert_string_not_equal(a, b);

    tg_id_derive("agent_", tg_null_str, tg_null_str, a);
    assert_true(tg_id_valid("agent_", tg_str_of(a)));
}


static void
test_valid(void **state)
{
    (void) state;

    assert_true(tg_id_valid("run_", tg_str("run_0123456789ABCDEFxyzabc")));
    assert_false(tg_id_valid("run_", tg_str("run_0123456789ABCDEFxyzab")));
    assert_false(tg_id_valid("run_", tg_str("run_0123456789ABCDEFxyzabcd")));
    assert_false(tg_id_valid("run_", tg_str("run-0123456789ABCDEFxyzabc")));
    assert_false(tg_id_valid("run_", tg_str("run_0123456789ABCDEFxyz-bc")));
    assert_false(tg_id_valid("run_", tg_str("run_0123456789ABCDEFxyz\0bc")));
    assert_false(tg_id_valid("run_", tg_str("RUN_0123456789ABCDEFxyzabc")));
    assert_false(tg_id_valid("run_", tg_str("")));
    assert_false(tg_id_valid("run_", tg_null_str));
    assert_true(tg_id_valid("", tg_str("0123456789ABCDEFxyzabc")));
}


static void
test_label(void **state)
{
    int   c;
    char  label[65], one[1];

    static const char  allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:-";

    (void) state;

    memset(label, 'a', sizeof(label));
    assert_true(tg_id_label_valid((tg_str_t) { 1, label }));
    assert_true(tg_id_label_valid((tg_str_t) { 64, label }));
    assert_false(tg_id_label_valid((tg_str_t) { 65, label }));
    assert_false(tg_id_label_valid(tg_null_str));

    for (c = 0; c < 256; c++) {
        one[0] = (char) c;
        assert_int_equal(tg_id_label_valid((tg_str_t) { 1, one }),
                         memchr(allowed, c, sizeof(allowed) - 1) != NULL);
    }

    assert_true(tg_id_label_valid(tg_str("acme:user-1.x_Y")));
    assert_false(tg_id_label_valid(tg_str("a b")));
    assert_false(tg_id_label_valid(tg_str("a\0b")));
    assert_false(tg_id_label_valid(tg_str("caf\xc3\xa9")));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_make),
        cmocka_unit_test(test_derive),
        cmocka_unit_test(test_valid),
        cmocka_unit_test(test_label),
    };

    return cmocka_run_group_tests_name("ids", tests, NULL, NULL);
}
