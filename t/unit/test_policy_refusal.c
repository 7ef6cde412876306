/*
 * What a model is told when a check refuses a call, and which tools it is offered.
 */

#include "policy_failures.h"


/* The refusal of one failure: its error object. */
static json_t *
test_error_of(void (*spoil)(tg_policy_facts_t *facts), tg_policy_facts_t facts)
{
    json_t               *root, *error;
    tg_policy_verdict_t   verdict;

    spoil(&facts);
    verdict = tg_policy_check(&facts);
    root = test_refusal(&facts, &verdict);
    error = json_incref(json_object_get(root, "error"));
    json_decref(root);

    return error;
}


static void
test_refusals_carry_their_data(void **state)
{
    json_t             *error;
    tg_policy_facts_t   facts;

    (void) state;

    error = test_error_of(test_spoil_arguments, test_good());
    assert_string_equal(json_string_value(json_object_get(error, "guidance")),
                        "/order_number: required");
    assert_int_equal(json_object_size(error), 2);
    json_decref(error);

    error = test_error_of(test_spoil_ticket, test_good());
    assert_string_equal(json_string_value(json_object_get(error, "ticket")), "TKT-7");
    assert_int_equal(json_object_size(error), 3);
    json_decref(error);

    error = test_error_of(test_spoil_done, test_good());
    assert_true(json_is_true(json_object_get(json_object_get(error, "result"), "ok")));
    assert_int_equal(json_object_size(error), 3);
    json_decref(error);

    error = test_error_of(test_spoil_limit, test_good());
    assert_int_equal(json_integer_value(json_object_get(error, "retry_after")), 120);
    assert_int_equal(json_object_size(error), 3);
    json_decref(error);

    error = test_error_of(test_spoil_store, test_good());
    assert_int_equal(json_object_size(error), 2);
    json_decref(error);

    /* nothing leaks into refusals of other checks */
    facts = test_good();
    facts.earlier_result = TEST_POISON;
    facts.retry_after_s = 9;
    error = test_error_of(test_spoil_paused, facts);
    assert_int_equal(json_object_size(error), 2);
    json_decref(error);
}


static void
test_no_refusal_for_an_allowed_call(void **state)
{
    tg_buf_t             out;
    tg_policy_facts_t    facts;
    tg_policy_verdict_t  verdict;

    (void) state;

    tg_buf_init(&out, TEST_MAX_BODY);
    facts = test_good();
    verdict = tg_policy_check(&facts);
    assert_int_equal(tg_policy_refusal(&facts, &verdict, &out), TG_E_INVALID);

    facts.limit = TG_LIMIT_UNKNOWN;
    verdict = tg_policy_check(&facts);
    assert_int_equal(tg_policy_refusal(&facts, &verdict, &out), TG_E_INVALID);
    assert_int_equal(out.len, 0);

    /* a buffer that is too small says so */
    tg_buf_init(&out, 30);
    assert_int_equal(tg_policy_envelope("round_limit", tg_null_str, &out), TG_E_LIMIT);
    tg_buf_free(&out);
}


static void
test_guidance_texts(void **state)
{
    size_t       i, j;
    const char  *code, *text, *p;

    /* what a model has no use for, and a customer must not hear about */
    static const char  *banned[] = { "http", "HTTP", "status", "upstream", "redis",
                                     "Redis", "nginx", "server", "store", "secret",
                                     "error", "code", "limit_", "toolgate" };

    (void) state;

    for (i = 0; (code = tg_policy_code_at(i)) != NULL; i++) {
        text = tg_policy_guidance(code);

        assert_in_range(strlen(text), 40, 240);
        assert_int_equal(text[strlen(text) - 1], '.');

        for (p = text; *p != '\0'; p++) {
            assert_true(*p >= ' ' && *p <= '~');
            assert_false(*p >= '0' && *p <= '9');
        }

        for (j = 0; j < sizeof(banned) / sizeof(banned[0]); j++) {
            if (strstr(text, banned[j]) != NULL) {
                fail_msg("%s says \"%s\"", code, banned[j]);
            }
        }

        for (j = 0; j < i; j++) {
            assert_string_not_equal(code, tg_policy_code_at(j));
            assert_string_not_equal(text, tg_policy_guidance(tg_policy_code_at(j)));
        }
    }

    print_message("%zu codes\n", i);
    assert_int_equal(i, 27);
}


static void
test_every_verdict_has_guidance(void **state)
{
    size_t       i;
    const char  *other;

    (void) state;

    other = tg_policy_guidance("no_such_code");
    assert_true(strlen(other) > 0);

    for (i = 0; i < TEST_FAILURES; i++) {
        assert_string_not_equal(tg_policy_guidance(test_failures[i].code), other);
    }
}


static void
test_envelope(void **state)
{
    tg_buf_t  out;

    (void) state;

    tg_buf_init(&out, TEST_MAX_BODY);
    assert_int_equal(tg_policy_envelope("policy_denied", tg_str("ask \"first\"\n"), &out),
                     TG_OK);
    assert_true(tg_str_eq(tg_buf_get(&out),
                          tg_str("{\"ok\":false,\"error\":{\"code\":\"policy_denied\","
                                 "\"guidance\":\"ask \\\"first\\\"\\n\"}}")));

    tg_buf_reset(&out);
    assert_int_equal(tg_policy_envelope("round_limit", tg_null_str, &out), TG_OK);
    assert_true(tg_str_eq(tg_buf_get(&out),
                          tg_str("{\"ok\":false,\"error\":{\"code\":\"round_limit\","
                                 "\"guidance\":\"No more tool calls are possible in this "
                                 "turn. Answer with what you have.\"}}")));
    tg_buf_free(&out);
}


/* All 32 segments and three effects; the rule is written down a second time here. */
static void
test_offered(void **state)
{
    bool                 want;
    unsigned             bits, effect;
    tg_policy_segment_t  s;

    (void) state;

    for (bits = 0; bits < 32; bits++) {
        s = (tg_policy_segment_t) {
            .one_shot = bits & 1,
            .allow_actions = bits & 2,
            .verified_user = bits & 4,
            .allow_anonymous_actions = bits & 8,
            .actions_paused = bits & 16
        };

        for (effect = TG_EFFECT_READ; effect <= TG_EFFECT_ACTION; effect++) {
            want = effect != TG_EFFECT_ACTION
                   || !((s.one_shot && !s.allow_actions)
                        || (!s.verified_user && !s.allow_anonymous_actions)
                        || s.actions_paused);

            assert_int_equal(tg_policy_offered(&s, (tg_effect_e) effect), want);
        }
    }

    /* the plain cases by hand */
    s = (tg_policy_segment_t) { .one_shot = true };
    assert_true(tg_policy_offered(&s, TG_EFFECT_READ));
    assert_true(tg_policy_offered(&s, TG_EFFECT_ESCALATION));
    assert_false(tg_policy_offered(&s, TG_EFFECT_ACTION));

    s.allow_actions = true;
    assert_false(tg_policy_offered(&s, TG_EFFECT_ACTION));
    s.allow_anonymous_actions = true;
    assert_true(tg_policy_offered(&s, TG_EFFECT_ACTION));
    s.actions_paused = true;
    assert_false(tg_policy_offered(&s, TG_EFFECT_ACTION));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_refusals_carry_their_data),
        cmocka_unit_test(test_no_refusal_for_an_allowed_call),
        cmocka_unit_test(test_guidance_texts),
        cmocka_unit_test(test_every_verdict_has_guidance),
        cmocka_unit_test(test_envelope),
        cmocka_unit_test(test_offered)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
