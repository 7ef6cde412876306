/*
 * Secrets at rest: what goes in comes out, and only with the same key and context,
 * and only when no byte was changed.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tg_secretbox.h"


#define CONTEXT  tg_str("shop/secret/ORDERS_TOKEN")
#define PLAIN    tg_str("s3cret value")


static const uint8_t  key[TG_SECRETBOX_KEY_LEN] = "0123456789abcdef0123456789abcde";
static const uint8_t  other[TG_SECRETBOX_KEY_LEN] = "x123456789abcdef0123456789abcde";
static const uint8_t  nonce[TG_SECRETBOX_NONCE_LEN] = "abcdefghijk";


static void
sealed_of(tg_buf_t *sealed, tg_str_t plain)
{
    tg_buf_init(sealed, 256 * 1024);
    assert_int_equal(tg_secretbox_seal(key, nonce, CONTEXT, plain, sealed), TG_OK);
}


static tg_rc_e
open_with(const uint8_t *with, tg_str_t context, tg_str_t sealed)
{
    tg_rc_e   rc;
    tg_buf_t  plain;

    tg_buf_init(&plain, TG_SECRETBOX_PLAIN_MAX);
    rc = tg_secretbox_open(with, context, sealed, &plain);

    if (rc != TG_OK) {
        assert_int_equal(plain.len, 0);
    }

    tg_secretbox_wipe(&plain);

    return rc;
}


static void
test_round_trip(void **state)
{
    char         *big;
    size_t        i;
    tg_buf_t      sealed, plain;
    const size_t  sizes[] = { 0, 1, 2, 3, 16, 4096, TG_SECRETBOX_PLAIN_MAX };

    (void) state;

    big = malloc(TG_SECRETBOX_PLAIN_MAX + 1);
    assert_non_null(big);
    memset(big, 'x', TG_SECRETBOX_PLAIN_MAX + 1);

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        sealed_of(&sealed, (tg_str_t) { sizes[i], big });

        tg_buf_init(&plain, TG_SECRETBOX_PLAIN_MAX);
        assert_int_equal(tg_secretbox_open(key, CONTEXT, tg_buf_get(&sealed),
                                           &plain), TG_OK);
        assert_int_equal(plain.len, sizes[i]);

        if (sizes[i]) {
            assert_memory_equal(plain.data, big, sizes[i]);
        }

        tg_secretbox_wipe(&plain);
        assert_null(plain.data);
        tg_buf_free(&sealed);
    }

    tg_buf_init(&sealed, 256 * 1024);
    assert_int_equal(tg_secretbox_seal(key, nonce, CONTEXT,
                         (tg_str_t) { TG_SECRETBOX_PLAIN_MAX + 1, big }, &sealed),
                     TG_E_LIMIT);
    assert_int_equal(sealed.len, 0);
    free(big);
}


static void
test_says_nothing(void **state)
{
    tg_buf_t  sealed;

    (void) state;

    sealed_of(&sealed, PLAIN);
    assert_null(memmem(sealed.data, sealed.len, "s3cret", 6));
    assert_memory_equal(sealed.data, "v1:", 3);
    tg_buf_free(&sealed);
}


static void
test_other_key_and_context(void **state)
{
    tg_buf_t  sealed;

    (void) state;

    sealed_of(&sealed, PLAIN);
    assert_int_equal(open_with(key, CONTEXT, tg_buf_get(&sealed)), TG_OK);
    assert_int_equal(open_with(other, CONTEXT, tg_buf_get(&sealed)), TG_E_INVALID);
    assert_int_equal(open_with(key, tg_str("shop/secret/OTHER"),
                               tg_buf_get(&sealed)), TG_E_INVALID);
    assert_true(tg_secretbox_names_key(key, tg_buf_get(&sealed)));
    assert_false(tg_secretbox_names_key(other, tg_buf_get(&sealed)));
    tg_buf_free(&sealed);
}


/* Every byte counts: the key's name, the nonce, the text and the tag. */
static void
test_changed(void **state)
{
    char      saved;
    size_t    i;
    tg_buf_t  sealed;

    (void) state;

    sealed_of(&sealed, PLAIN);

    for (i = 0; i < sealed.len; i++) {
        saved = sealed.data[i];
        sealed.data[i] = (saved == 'A') ? 'B' : 'A';
        assert_int_not_equal(open_with(key, CONTEXT, tg_buf_get(&sealed)), TG_OK);
        sealed.data[i] = saved;
    }

    for (i = 0; i < sealed.len; i++) {
        assert_int_not_equal(open_with(key, CONTEXT,
                                       (tg_str_t) { i, sealed.data }), TG_OK);
    }

    tg_buf_free(&sealed);
}


static void
test_not_sealed(void **state)
{
    size_t              i;
    static const char  *bad[] = { "", "v1:", "v1:01234567:", "v2:01234567:AAAA",
        "v1:01234567:AAAA", "plain text that is long enough to be anything",
        "v1:01234567:****************************************************" };

    (void) state;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(open_with(key, CONTEXT, tg_str_of(bad[i])), TG_E_SYNTAX);
    }
}


int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_says_nothing),
        cmocka_unit_test(test_other_key_and_context),
        cmocka_unit_test(test_changed),
        cmocka_unit_test(test_not_sealed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
