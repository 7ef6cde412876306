/*
 * What the policy tests share: a call that passes, and every way to fail a check.
 */

#ifndef TEST_POLICY_FAILURES_H
#define TEST_POLICY_FAILURES_H

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

#endif /* TEST_POLICY_FAILURES_H */
