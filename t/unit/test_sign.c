/*
 * Standard Webhooks signatures: keys, own vectors, and the sign and verify sets.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cases.h"
#include "tg_sign.h"


#define NOW     1614265330
#define SECRET  "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
#define ID      "msg_p5jXN8AQM9LWM0D4loKWxJek"
#define BODY    "{\"test\": 2432232314}"
#define VALUE   "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


static tg_str_t
json_str(const json_t *value)
{
    return (tg_str_t) { json_string_length(value), json_string_value(value) };
}


static void
test_keys(void **state)
{
    char                 text[TG_SIGN_SECRET_MAX + 8];
    size_t               i;
    tg_sign_key_t        key;
    static const char   *bad[] = { "", "whsec_", "whsec_A", "whsec_AQ", "whsec_AQ=",
        "whsec_=AQ=", "whsec_AQ==AQ==", "whsec_A===", "whsec_A_-=", "whsec_AQ= =",
        "whsec_\nAQ==", "WHSEC_AQ==" };

    (void) state;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(tg_sign_key_parse(tg_str_of(bad[i]), &key), TG_E_INVALID);
        assert_int_equal(key.len, 0);
    }

    assert_int_equal(tg_sign_key_parse(tg_str("whsec_AP+/"), &key), TG_OK);
    assert_int_equal(key.len, 3);
    assert_memory_equal(key.key, "\x00\xff\xbf", 3);
    assert_int_equal(tg_sign_key_parse(tg_str("AP8="), &key), TG_OK);
    assert_int_equal(key.len, 2);

    /* 96 bytes, and the next that base64 can write */
    memset(text, 'A', sizeof(text));
    assert_int_equal(tg_sign_key_parse((tg_str_t) { 128, text }, &key), TG_OK);
    assert_int_equal(key.len, TG_SIGN_KEY_MAX);
    assert_int_equal(tg_sign_key_parse((tg_str_t) { 132, text }, &key), TG_E_INVALID);
    assert_int_equal(tg_sign_key_parse((tg_str_t) { 164, text }, &key), TG_E_INVALID);
}


/* C067, C069: the signed text ends with the last dot when there is no body; the
 * time is whole seconds. */
static void
test_sign(void **state)
{
    tg_buf_t       out;
    tg_sign_key_t  key;

    (void) state;

    assert_int_equal(tg_sign_key_parse(tg_str(SECRET), &key), TG_OK);
    tg_buf_init(&out, 128);

    assert_int_equal(tg_sign(&key, tg_str(ID), NOW, tg_str(BODY), &out), TG_OK);
    assert_true(tg_str_eq(tg_buf_get(&out), tg_str(VALUE)));
    tg_buf_reset(&out);

    assert_int_equal(tg_sign(&key, tg_str(ID), NOW, tg_null_str, &out), TG_OK);
    assert_true(tg_sign_verify(&key, tg_str(ID), tg_str("1614265330"), tg_buf_get(&out),
        tg_str(""), NOW));
    tg_buf_reset(&out);

    assert_int_equal(tg_sign(&key, tg_str(""), NOW, tg_str(BODY), &out), TG_E_INVALID);
    assert_int_equal(tg_sign(&key, tg_str("a.b"), NOW, tg_str(BODY), &out), TG_E_INVALID);
    assert_int_equal(tg_sign(&key, tg_str(ID), -1, tg_str(BODY), &out), TG_E_INVALID);
    assert_int_equal(tg_sign(&key, tg_str(ID), INT64_MAX, tg_str(BODY), &out), TG_OK);
    tg_buf_free(&out);

    tg_buf_init(&out, 46);
    assert_int_equal(tg_sign(&key, tg_str(ID), NOW, tg_str(BODY), &out), TG_E_LIMIT);
    tg_buf_free(&out);
}


static void
test_verify(void **state)
{
    tg_str_t       ts = tg_str("1614265330"), id = tg_str(ID), body = tg_str(BODY);
    tg_sign_key_t  key;

    (void) state;

    assert_int_equal(tg_sign_key_parse(tg_str(SECRET), &key), TG_OK);

    assert_true(tg_sign_verify(&key, id, ts, tg_str(VALUE), body, NOW));
    assert_true(tg_sign_verify(&key, id, ts, tg_str("v1,x v1a,y " VALUE " z"), body, NOW));
    assert_true(tg_sign_verify(&key, id, ts, tg_str(VALUE), body, NOW + 300));
    assert_true(tg_sign_verify(&key, id, ts, tg_str(VALUE), body, NOW - 300));
    assert_false(tg_sign_verify(&key, id, ts, tg_str(VALUE), body, NOW + 301));
    assert_false(tg_sign_verify(&key, id, ts, tg_str(VALUE), body, NOW - 301));
    assert_false(tg_sign_verify(&key, id, ts, tg_str(VALUE), tg_str(""), NOW));
    assert_false(tg_sign_verify(&key, id, ts, tg_str(VALUE "="), body, NOW));
    assert_false(tg_sign_verify(&key, id, ts, tg_str(""), body, NOW));
    assert_false(tg_sign_verify(&key, id, ts, tg_null_str, body, NOW));
    assert_false(tg_sign_verify(&key, tg_null_str, ts, tg_str(VALUE), body, NOW));
    assert_false(tg_sign_verify(&key, id, tg_null_str, tg_str(VALUE), body, NOW));
    assert_false(tg_sign_verify(&key, id, tg_str("1614265330.0"), tg_str(VALUE), body,
        NOW));
    assert_false(tg_sign_verify(&key, id, tg_str("9999999999999999999"), tg_str(VALUE),
        body, INT64_MAX));
}


typedef struct {
    unsigned  seen, passed;
} counts_t;


static void
sign_line(void *ctx, const json_t *line)
{
    json_t         *repeat = json_object_get(line, "body_repeat"), *piece;
    size_t          i;
    counts_t       *counts = ctx;
    tg_buf_t        out, body;
    tg_sign_key_t   key;

    counts->seen++;
    tg_buf_init(&out, 128);
    tg_buf_init(&body, 64 * 1024 * 1024);

    if (repeat != NULL) {
        piece = json_array_get(repeat, 0);

        for (i = 0; i < (size_t) json_integer_value(json_array_get(repeat, 1)); i++) {
            assert_int_equal(tg_buf_str(&body, json_str(piece)), TG_OK);
        }

        assert_true(body.len > 0);

    } else {
        (void) tg_buf_str(&body, json_str(json_object_get(line, "body")));
    }

    if (tg_sign_key_parse(json_str(json_object_get(line, "secret")), &key) == TG_OK
        && tg_sign(&key, json_str(json_object_get(line, "id")),
               json_integer_value(json_object_get(line, "timestamp")), tg_buf_get(&body),
               &out) == TG_OK
        && tg_str_eq(tg_buf_get(&out), json_str(json_object_get(line, "signature"))))
    {
        counts->passed++;

    } else {
        printf("sign: %s\n", json_string_value(json_object_get(line, "note")));
    }

    tg_buf_free(&out);
    tg_buf_free(&body);
}


static void
verify_line(void *ctx, const json_t *line)
{
    bool            got;
    json_t         *headers = json_object_get(line, "headers");
    counts_t       *counts = ctx;
    const char     *expect = json_string_value(json_object_get(line, "expect"));
    tg_sign_key_t   key;

    counts->seen++;
    assert_int_equal(tg_sign_key_parse(json_str(json_object_get(line, "secret")), &key),
        TG_OK);

    got = tg_sign_verify(&key, json_str(json_object_get(headers, "webhook-id")),
        json_str(json_object_get(headers, "webhook-timestamp")),
        json_str(json_object_get(headers, "webhook-signature")),
        json_str(json_object_get(line, "body")),
        json_integer_value(json_object_get(line, "now")));

    if (strcmp(expect, "either") == 0 || got == (strcmp(expect, "accept") == 0)) {
        counts->passed++;

    } else {
        printf("verify: %s\n", json_string_value(json_object_get(line, "note")));
    }
}


static void
run_set(const char *name, cases_line_pt each)
{
    long      lines;
    counts_t  counts = { 0 };

    lines = cases_read(name, each, &counts);
    if (lines == -1) {
        skip();
    }

    assert_true(lines > 0);
    printf("%s: %u of %u as expected\n", name, counts.passed, counts.seen);
    assert_int_equal(counts.passed, counts.seen);
}


static void
test_sign_set(void **state)
{
    (void) state;

    run_set("standard-webhooks/sign.jsonl", sign_line);
}


static void
test_verify_set(void **state)
{
    (void) state;

    run_set("standard-webhooks/verify.jsonl", verify_line);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_sign),
        cmocka_unit_test(test_verify),
        cmocka_unit_test(test_sign_set),
        cmocka_unit_test(test_verify_set),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
