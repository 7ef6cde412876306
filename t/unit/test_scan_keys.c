/*
 * Duplicate keys: short and long ones, lists and tables, up to the bound.
 */

#include "scan_help.h"


/* Keys of each length, the borders of the short form and of hash blocks among
 * them: all different, and each found again. */
static void
test_keys_of_all_lengths(void **state)
{
    char        key[301];
    size_t      n, at;
    tg_rc_e     rc;
    tg_buf_t    b;
    tg_scan_t  *scan;

    (void) state;

    memset(key, 'k', sizeof(key));

    for (n = 0; n < 300; n++) {
        key[n] = '\0';

        /* differ in the last byte only, and in length only */
        tg_buf_init(&b, 4096);
        tg_buf_printf(&b, "[{\"%s\":1,\"%sk\":2,\"%sl\":3}]", key, key, key);
        assert_verdict(tg_buf_get(&b), TG_OK, NULL, -1);

        tg_buf_reset(&b);
        tg_buf_printf(&b, "[{\"%s\":1,\"%sl\":2,\"%s\":3}]", key, key, key);
        assert_verdict(tg_buf_get(&b), TG_E_SYNTAX, "duplicate key",
                       (ptrdiff_t) (2 + n + 5 + n + 6));

        /* with an escape it takes another way to the same value */
        tg_buf_reset(&b);
        tg_buf_printf(&b, "[{\"%sl\":1,\"%s\\u006c\":2}]", key, key);
        scan = scan_in(tg_buf_get(&b), b.len, &rc);
        assert_string_equal(tg_scan_error(scan, &at), "duplicate key");
        tg_scan_free(scan);

        tg_buf_free(&b);
        key[n] = 'k';
    }
}


/* Objects around the border between list and table, each key repeated once. */
static void
test_duplicates_in_objects_of_all_sizes(void **state)
{
    size_t    n, i, again;
    tg_rc_e   rc;
    tg_buf_t  b;

    (void) state;

    for (n = 1; n < 300; n = n < 40 ? n + 1 : n + 41) {
        for (again = 0; again <= n; again += 1 + n / 20) {
            tg_buf_init(&b, 65536);
            /* a big object before it leaves its table behind */
            tg_buf_cstr(&b, "[{\"x\":{");
            for (i = 0; i < 30; i++) {
                tg_buf_printf(&b, "\"key %zu\":{\"a\":1},", i);
            }
            tg_buf_cstr(&b, "\"z\":1}},{\"x\":{");
            for (i = 0; i < n; i++) {
                tg_buf_printf(&b, "\"key %zu\":{\"key 0\":1},", i);
            }
            tg_buf_printf(&b, "\"key %zu\":2}}]", again);

            tg_scan_t  *scan = scan_in(tg_buf_get(&b), b.len, &rc);
            assert_int_equal(rc, again < n ? TG_E_SYNTAX : TG_OK);
            tg_scan_free(scan);
            tg_buf_free(&b);
        }
    }
}


/* Keys that are all open at once, up to the bound and past it. */
static void
test_key_limit(void **state)
{
    size_t    i;
    tg_rc_e   rc;
    tg_buf_t  b;

    (void) state;

    tg_buf_init(&b, BIG);
    tg_buf_cstr(&b, "[{");
    for (i = 0; i < TG_SCAN_MAX_KEYS; i++) {
        tg_buf_printf(&b, "\"%zx\":1,", i);
    }
    tg_buf_cstr(&b, "\"0\":1}]");

    /* full: the repeated key cannot be looked up any more */
    tg_scan_t  *scan = scan_in(tg_buf_get(&b), 65536, &rc);
    assert_int_equal(rc, TG_E_LIMIT);
    assert_string_equal(tg_scan_error(scan, NULL), "too many keys");
    tg_scan_free(scan);

    /* one less: it is found among two million */
    tg_buf_reset(&b);
    tg_buf_cstr(&b, "[{");
    for (i = 0; i < TG_SCAN_MAX_KEYS - 1; i++) {
        tg_buf_printf(&b, "\"%zx\":1,", i);
    }
    tg_buf_cstr(&b, "\"7abcd\":1}]");
    scan = scan_in(tg_buf_get(&b), 65536, &rc);
    assert_int_equal(rc, TG_E_SYNTAX);
    assert_string_equal(tg_scan_error(scan, NULL), "duplicate key");
    tg_scan_free(scan);
    tg_buf_free(&b);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_keys_of_all_lengths),
        cmocka_unit_test(test_duplicates_in_objects_of_all_sizes),
        cmocka_unit_test(test_key_limit),
    };

    return cmocka_run_group_tests_name("scan_keys", tests, NULL, NULL);
}
