/*
 * Decisions about calls that wait for a person, as an input says them.
 */

#include "tg_responses_internal.h"


static tg_rc_e
tg_responses_decision_fault(tg_responses_fault_t *fault, size_t item,
    const char *member)
{
    memset(fault, 0, sizeof(*fault));
    fault->code = "invalid_value";
    fault->message = "An answer to an approval has \"approval_request_id\", a string, "
                     "and \"approve\", true or false.";
    snprintf(fault->param, sizeof(fault->param), "input[%zu].%s", item, member);

    return TG_E_INVALID;
}


tg_rc_e
tg_responses_decisions(tg_str_t input, tg_responses_decision_t *decisions, size_t max,
    size_t *count, tg_responses_fault_t *fault)
{
    size_t                    n;
    tg_str_t                  key;
    tg_walk_t                 walk;
    tg_scan_type_e            kind;
    tg_walk_value_t           value, type, approve;
    tg_responses_decision_t   decision;

    *count = 0;
    walk = tg_walk_over(input);

    if (!tg_walk_enter(&walk)) {
        return TG_OK;
    }

    for (n = 0; (kind = tg_walk_at_element(&walk)) != TG_SCAN_NONE; n++) {

        if (kind != TG_SCAN_OBJECT) {
            (void) tg_walk_value(&walk);
            continue;
        }

        memset(&decision, 0, sizeof(decision));
        type = approve = (tg_walk_value_t) { TG_SCAN_NONE, tg_null_str };
        (void) tg_walk_enter(&walk);

        while (tg_walk_member(&walk, &key, &value)) {
            if (tg_walk_is(key, "type")) {
                type = value;

            } else if (tg_walk_is(key, "approve")) {
                approve = value;

            } else if (tg_walk_is(key, "approval_request_id")) {
                decision.id = tg_walk_inside(value);

            } else if (tg_walk_is(key, "reason")) {
                decision.reason = tg_walk_inside(value);
            }
        }

        if (!tg_walk_is(tg_walk_inside(type), "mcp_approval_response")) {
            continue;
        }

        if (decision.id.len == 0) {
            return tg_responses_decision_fault(fault, n, "approval_request_id");
        }

        if (approve.type != TG_SCAN_TRUE && approve.type != TG_SCAN_FALSE) {
            return tg_responses_decision_fault(fault, n, "approve");
        }

        decision.approve = (approve.type == TG_SCAN_TRUE);

        if (*count < max) {
            decisions[*count] = decision;
        }

        (*count)++;
    }

    return TG_OK;
}
