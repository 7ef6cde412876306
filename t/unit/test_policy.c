/*
 * The policy check: every way to fail a check, every pair of failures at once (the
 * lower check wins), and what is asked when.
 */

#include "policy_failures.h"


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
        cmocka_unit_test(test_values_out_of_range_are_refused)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
