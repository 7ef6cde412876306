/*
 * The policy check: every way to fail a check, every pair of failures at once (the
 * lower check wins), what is asked when, and what the model is told.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

#include "tg_policy.h"


#define TEST_MAX_BODY  4096

/* an address that nobody may read: a fact that is not reached must stay unread */
#define TEST_POISON    ((tg_str_t) { 1 << 20, (const char *) 16 })

typedef struct {
    tg_check_e    check;
    const char   *code;
    void        (*spoil)(tg_policy_facts_t *facts);
} test_failure_t;


static tg_policy_facts_t
test_good(void)
{
    return (tg_policy_facts_t) {
        .in_tool_set = true,
        .tools_enabled = true,
        .tool_enabled = true,
        .arguments_valid = true,
        .requires_verified_user = true,
        .verified_user = true,
        .effect = TG_EFFECT_ACTION,
        .hours_only = true,
        .within_hours = true,
        .life = TG_RUN_LIVE,
        .limit = TG_LIMIT_PASSED,
        .round = 1,
        .max_rounds = TG_POLICY_DEFAULT_ROUNDS
    };
}


static void
test_spoil_set(tg_policy_facts_t *facts)
{
    facts->in_tool_set = false;
}


static void
test_spoil_tools(tg_policy_facts_t *facts)
{
    facts->tools_enabled = false;
}


static void
test_spoil_switch(tg_policy_facts_t *facts)
{
    facts->tool_enabled = false;
}


static void
test_spoil_arguments(tg_policy_facts_t *facts)
{
    facts->arguments_valid = false;
    facts->arguments_guidance = tg_str("/order_number: required");
}


static void
test_spoil_user(tg_policy_facts_t *facts)
{
    facts->verified_user = false;
}


static void
test_spoil_paused(tg_policy_facts_t *facts)
{
    facts->actions_paused = true;
}


static void
test_spoil_hours(tg_policy_facts_t *facts)
{
    facts->within_hours = false;
}


static void
test_spoil_knowledge(tg_policy_facts_t *facts)
{
    facts->knowledge_missing = true;
}


static void
test_spoil_ticket(tg_policy_facts_t *facts)
{
    facts->open_ticket = tg_str("TKT-7");
}


static void
test_spoil_done(tg_policy_facts_t *facts)
{
    facts->already_done = true;
    facts->earlier_result = tg_str("{\"ok\":true,\"items\":[1]}");
}


static void
test_spoil_cancelled(tg_policy_facts_t *facts)
{
    facts->life = TG_RUN_CANCELLED;
}


static void
test_spoil_superseded(tg_policy_facts_t *facts)
{
    facts->life = TG_RUN_SUPERSEDED;
}


static void
test_spoil_limit(tg_policy_facts_t *facts)
{
    facts->limit = TG_LIMIT_REFUSED;
    facts->retry_after_s = 120;
}


static void
test_spoil_store(tg_policy_facts_t *facts)
{
    facts->limit = TG_LIMIT_STORE_CLOSED;
}


static void
test_spoil_round(tg_policy_facts_t *facts)
{
    facts->round = facts->max_rounds + 1;
}


static void
test_spoil_position(tg_policy_facts_t *facts)
{
    facts->position = TG_POLICY_CALLS_PER_ROUND;
}


/* in the order in which they win over each other */
static const test_failure_t  test_failures[] = {
    { TG_CHECK_TOOL_SET, "tool_not_available", test_spoil_set },
    { TG_CHECK_TOOL_SET, "tools_disabled", test_spoil_tools },
    { TG_CHECK_TOOL_SET, "tool_not_available", test_spoil_switch },
    { TG_CHECK_ARGUMENTS, "invalid_arguments", test_spoil_arguments },
    { TG_CHECK_VERIFIED_USER, "verification_required", test_spoil_user },
    { TG_CHECK_AVAILABLE, "actions_paused", test_spoil_paused },
    { TG_CHECK_AVAILABLE, "outside_business_hours", test_spoil_hours },
    { TG_CHECK_AVAILABLE, "no_knowledge", test_spoil_knowledge },
    { TG_CHECK_AVAILABLE, "ticket_already_open", test_spoil_ticket },
    { TG_CHECK_ALREADY_DONE, "already_done", test_spoil_done },
    { TG_CHECK_RUN_LIVE, "run_cancelled", test_spoil_cancelled },
    { TG_CHECK_RUN_LIVE, "run_superseded", test_spoil_superseded },
    { TG_CHECK_LIMITS, "rate_limited", test_spoil_limit },
    { TG_CHECK_LIMITS, "store_unavailable", test_spoil_store },
    { TG_CHECK_ROUNDS, "round_limit", test_spoil_round },
    { TG_CHECK_ROUNDS, "too_many_calls", test_spoil_position }
};

#define TEST_FAILURES  (sizeof(test_failures) / sizeof(test_failures[0]))


static json_t *
test_refusal(const tg_policy_facts_t *facts, const tg_policy_verdict_t *verdict)
{
    json_t        *root;
    tg_buf_t       out;
    json_error_t   why;

    tg_buf_init(&out, TEST_MAX_BODY);
    assert_int_equal(tg_policy_refusal(facts, verdict, &out), TG_OK);

    root = json_loadb(out.data, out.len, JSON_REJECT_DUPLICATES, &why);
    assert_non_null(root);
    assert_true(json_is_false(json_object_get(root, "ok")));
    assert_int_equal(json_object_size(root), 2);

    tg_buf_free(&out);

    return root;
}


static void
test_expect(const tg_policy_facts_t *facts, const test_failure_t *failure)
{
    json_t               *root;
    tg_policy_verdict_t   verdict;

    verdict = tg_policy_check(facts);

    assert_false(verdict.allowed);
    assert_false(verdict.ask_limit);
    assert_int_equal(verdict.check, failure->check);
    assert_string_equal(verdict.code, failure->code);

    root = test_refusal(facts, &verdict);
    assert_string_equal(json_string_value(json_object_get(json_object_get(root, "error"),
                                                          "code")),
                        failure->code);
    json_decref(root);
}


static void
test_good_call_is_allowed(void **state)
{
    tg_policy_facts_t    facts;
    tg_policy_verdict_t  verdict;

    (void) state;

    facts = test_good();
    verdict = tg_policy_check(&facts);

    assert_true(verdict.allowed);
    assert_false(verdict.ask_limit);
    assert_int_equal(verdict.check, TG_CHECK_NONE);
    assert_null(verdict.code);
}


static void
test_every_failure_alone(void **state)
{
    size_t             i;
    tg_policy_facts_t  facts;

    (void) state;

    for (i = 0; i < TEST_FAILURES; i++) {
        facts = test_good();
        test_failures[i].spoil(&facts);
        test_expect(&facts, &test_failures[i]);
    }

    print_message("%zu ways to fail\n", TEST_FAILURES);
}


static void
test_every_pair_lower_check_wins(void **state)
{
    size_t             i, j, pairs;
    tg_policy_facts_t  facts;

    (void) state;
    pairs = 0;

    for (i = 0; i < TEST_FAILURES; i++) {
        for (j = i + 1; j < TEST_FAILURES; j++) {

            /* two values of one fact cannot be so at once */
            if (test_failures[i].check == test_failures[j].check
                && (test_failures[i].check == TG_CHECK_RUN_LIVE
                    || test_failures[i].check == TG_CHECK_LIMITS))
            {
                continue;
            }

            facts = test_good();
            test_failures[j].spoil(&facts);
            test_failures[i].spoil(&facts);
            test_expect(&facts, &test_failures[i]);
            pairs++;
        }
    }

    print_message("%zu pairs\n", pairs);
}


/* All later facts at once: out of range and unreadable. */
static void
test_later_facts_are_not_looked_at(void **state)
{
    size_t             i;
    tg_policy_facts_t  facts;

    (void) state;

    for (i = 0; i < TEST_FAILURES; i++) {
        memset(&facts, 0, sizeof(facts));
        facts = test_good();

        if (test_failures[i].check < TG_CHECK_ARGUMENTS) {
            facts.arguments_valid = false;
            facts.arguments_guidance = TEST_POISON;
        }
        if (test_failures[i].check < TG_CHECK_VERIFIED_USER) {
            facts.verified_user = false;
        }
        if (test_failures[i].check < TG_CHECK_AVAILABLE) {
            facts.effect = (tg_effect_e) 77;
            facts.open_ticket = TEST_POISON;
        }
        if (test_failures[i].check < TG_CHECK_ALREADY_DONE) {
            facts.already_done = true;
            facts.earlier_result = TEST_POISON;
        }
        if (test_failures[i].check < TG_CHECK_RUN_LIVE) {
            facts.life = (tg_run_life_e) 77;
        }
        if (test_failures[i].check < TG_CHECK_LIMITS) {
            facts.limit = TG_LIMIT_UNKNOWN;
        }
        if (test_failures[i].check < TG_CHECK_ROUNDS) {
            facts.round = UINT32_MAX;
            facts.position = UINT32_MAX;
            facts.max_rounds = 0;
        }

        test_failures[i].spoil(&facts);
        test_expect(&facts, &test_failures[i]);
    }
}


static void
test_store_is_asked_only_after_check_6(void **state)
{
    size_t               i;
    tg_policy_facts_t    facts;
    tg_policy_verdict_t  verdict;

    (void) state;

    facts = test_good();
    facts.limit = TG_LIMIT_UNKNOWN;
    verdict = tg_policy_check(&facts);

    assert_true(verdict.ask_limit);
    assert_false(verdict.allowed);
    assert_int_equal(verdict.check, TG_CHECK_NONE);
    assert_null(verdict.code);

    for (i = 0; i < TEST_FAILURES; i++) {
        facts = test_good();
        test_failures[i].spoil(&facts);

        if (test_failures[i].check == TG_CHECK_LIMITS) {
            continue;
        }

        facts.limit = TG_LIMIT_UNKNOWN;
        verdict = tg_policy_check(&facts);

        /* a call that check 8 will refuse is counted first */
        assert_int_equal(verdict.ask_limit, test_failures[i].check == TG_CHECK_ROUNDS);
        assert_false(verdict.allowed);

        /* a tool without a limit never asks, and is judged the same */
        facts.limit = TG_LIMIT_NOT_COUNTED;
        test_expect(&facts, &test_failures[i]);
    }
}


static void
test_callers_own_tools(void **state)
{
    size_t               i;
    bool                 asked;
    tg_policy_facts_t    facts;
    tg_policy_verdict_t  verdict;

    (void) state;

    for (i = 0; i < TEST_FAILURES; i++) {
        facts = test_good();
        facts.caller_owned = true;
        facts.limit = TG_LIMIT_UNKNOWN;
        test_failures[i].spoil(&facts);

        asked = test_failures[i].spoil == test_spoil_set
                || test_failures[i].check == TG_CHECK_ARGUMENTS
                || test_failures[i].check == TG_CHECK_RUN_LIVE;

        if (asked) {
            test_expect(&facts, &test_failures[i]);
            continue;
        }

        verdict = tg_policy_check(&facts);
        assert_true(verdict.allowed);
        assert_false(verdict.ask_limit);
        assert_null(verdict.code);
    }
}


static void
test_escalations_are_never_gated(void **state)
{
    size_t             i;
    tg_policy_facts_t  facts;

    (void) state;

    for (i = 0; i < TEST_FAILURES; i++) {
        facts = test_good();
        facts.effect = TG_EFFECT_ESCALATION;
        test_failures[i].spoil(&facts);

        if (test_failures[i].check == TG_CHECK_VERIFIED_USER
            || test_failures[i].check == TG_CHECK_AVAILABLE)
        {
            assert_true(tg_policy_check(&facts).allowed);

        } else {
            test_expect(&facts, &test_failures[i]);
        }
    }
}


static void
test_pause_stops_actions_only(void **state)
{
    tg_policy_facts_t  facts;

    (void) state;

    facts = test_good();
    facts.actions_paused = true;
    facts.effect = TG_EFFECT_READ;
    assert_true(tg_policy_check(&facts).allowed);

    /* hours bind only the grants that say so */
    facts.within_hours = false;
    facts.hours_only = false;
    assert_true(tg_policy_check(&facts).allowed);

    /* and a tool that needs no verified user runs for anonymous ones */
    facts.verified_user = false;
    facts.requires_verified_user = false;
    assert_true(tg_policy_check(&facts).allowed);
}


static void
test_edges_of_rounds(void **state)
{
    unsigned           max;
    tg_policy_facts_t  facts;

    (void) state;

    facts = test_good();

    for (max = 1; max <= TG_POLICY_MAX_ROUNDS; max++) {
        facts.max_rounds = max;
        facts.round = max;
        facts.position = TG_POLICY_CALLS_PER_ROUND - 1;
        assert_true(tg_policy_check(&facts).allowed);

        facts.position++;
        assert_string_equal(tg_policy_check(&facts).code, "too_many_calls");

        facts.round++;
        facts.position = 0;
        assert_string_equal(tg_policy_check(&facts).code, "round_limit");
    }
}


static void
test_values_out_of_range_are_refused(void **state)
{
    tg_policy_facts_t  facts;

    (void) state;

    facts = test_good();
    facts.limit = (tg_limit_e) 77;
    assert_string_equal(tg_policy_check(&facts).code, "store_unavailable");

    facts = test_good();
    facts.life = (tg_run_life_e) 77;
    assert_string_equal(tg_policy_check(&facts).code, "run_cancelled");
}


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
    assert_int_equal(i, 25);
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


/* All 32 segments, three effects, with and without the flag; the rule is written
 * down a second time here. */
static void
test_offered(void **state)
{
    bool                 want, needs;
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
            for (needs = false; ; needs = true) {
                want = true;

                if (effect != TG_EFFECT_ESCALATION && needs && !s.verified_user) {
                    want = false;
                }

                if (effect == TG_EFFECT_ACTION
                    && ((s.one_shot && !s.allow_actions)
                        || (!s.verified_user && !s.allow_anonymous_actions)
                        || s.actions_paused))
                {
                    want = false;
                }

                assert_int_equal(tg_policy_offered(&s, (tg_effect_e) effect, needs), want);

                if (needs) {
                    break;
                }
            }
        }
    }

    /* the plain cases by hand */
    s = (tg_policy_segment_t) { .one_shot = true };
    assert_true(tg_policy_offered(&s, TG_EFFECT_READ, false));
    assert_true(tg_policy_offered(&s, TG_EFFECT_ESCALATION, true));
    assert_false(tg_policy_offered(&s, TG_EFFECT_READ, true));
    assert_false(tg_policy_offered(&s, TG_EFFECT_ACTION, false));

    s.allow_actions = true;
    assert_false(tg_policy_offered(&s, TG_EFFECT_ACTION, false));
    s.allow_anonymous_actions = true;
    assert_true(tg_policy_offered(&s, TG_EFFECT_ACTION, false));
    s.actions_paused = true;
    assert_false(tg_policy_offered(&s, TG_EFFECT_ACTION, false));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_good_call_is_allowed),
        cmocka_unit_test(test_every_failure_alone),
        cmocka_unit_test(test_every_pair_lower_check_wins),
        cmocka_unit_test(test_later_facts_are_not_looked_at),
        cmocka_unit_test(test_store_is_asked_only_after_check_6),
        cmocka_unit_test(test_callers_own_tools),
        cmocka_unit_test(test_escalations_are_never_gated),
        cmocka_unit_test(test_pause_stops_actions_only),
        cmocka_unit_test(test_edges_of_rounds),
        cmocka_unit_test(test_values_out_of_range_are_refused),
        cmocka_unit_test(test_refusals_carry_their_data),
        cmocka_unit_test(test_no_refusal_for_an_allowed_call),
        cmocka_unit_test(test_guidance_texts),
        cmocka_unit_test(test_every_verdict_has_guidance),
        cmocka_unit_test(test_envelope),
        cmocka_unit_test(test_offered)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
