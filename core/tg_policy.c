/*
 * The policy check as a pure decision: eight questions in a fixed order, and what
 * a model is told when one of them is answered with no. It knows no store, no
 * clock and no tool; the facts come in, the verdict goes out.
 */

#include "tg_policy.h"


typedef struct {
    const char  *code;
    const char  *guidance;
} tg_policy_text_t;

/* For the model: what is so and what to do now. No numbers, no inner workings. */
static const tg_policy_text_t  tg_policy_texts[] = {
    { "tool_not_available",
      "This tool cannot be used in this conversation. Continue without it, and do not "
      "say that it was used." },
    { "tools_disabled",
      "Tools are switched off right now. Answer without them, and do not promise an "
      "action." },
    { "invalid_arguments",
      "The arguments do not fit the tool's parameters. Correct them and call the tool "
      "again, or ask the user for what is missing." },
    { "verification_required",
      "This tool needs a user who has signed in, and this one has not. Ask the user to "
      "sign in, or offer another way to help." },
    { "actions_paused",
      "Actions are paused, so nothing was done. Say that this cannot be done at the "
      "moment." },
    { "outside_business_hours",
      "This can only be done during business hours, and now is outside of them. Say so, "
      "and offer what can be done instead." },
    { "no_knowledge",
      "There is nothing to search at the moment. Say only what you are sure of, and say "
      "what you do not know." },
    { "ticket_already_open",
      "The user already has an open ticket. Do not open another one; give the user the "
      "number of that ticket." },
    { "already_done",
      "The same call has already succeeded. Do not repeat it; use the result that is "
      "given here." },
    { "run_cancelled",
      "This conversation turn was cancelled, so the call was not made." },
    { "run_superseded",
      "A newer message has taken the place of this turn, so the call was not made." },
    { "rate_limited",
      "Calls of this kind have reached their limit. Do not call it again now; say that "
      "it can be tried later." },
    { "store_unavailable",
      "The call could not be made safely just now, so it was not made. Say that it did "
      "not work this time and may be tried later." },
    { "round_limit",
      "No more tool calls are possible in this turn. Answer with what you have." },
    { "too_many_calls",
      "Too many calls were made at once, and this one was not run. Make it again in the "
      "next step if it is still needed." },
    { "unresolved_placeholder",
      "A value that the tool needs is missing or blank, so nothing was sent. Ask the "
      "user for it if it is theirs to give; otherwise continue without the tool." },
    { "secret_host_not_allowed",
      "The tool is not set up correctly, so nothing was sent. Continue without it." },
    { "address_not_allowed",
      "The tool's service may not be reached, so nothing was sent. Continue without the "
      "tool." },
    { "upstream_failed",
      "The tool's service did not answer as it should. Do not guess its answer; say "
      "that this is not available right now." },
    { "unreadable",
      "The tool's service gave an answer that could not be read. Do not guess what it "
      "said; say that this is not available right now." },
    { "outcome_unknown",
      "The request was sent, but it is not known whether it took effect. Do not repeat "
      "it, and do not say that it succeeded or failed; say that it has to be checked." },
    { "sandbox_unavailable",
      "The place where this tool works cannot be reached right now, so nothing was "
      "done. Continue without it, or say that it may be tried later." },
    { "policy_denied",
      "This call is not permitted. Do not try it again; continue without it." },
    { "policy_hook_failed",
      "It could not be checked whether this call is permitted, so it was not made. Say "
      "that it cannot be done right now." },
    { "approval_rejected",
      "A person was asked whether this call may be made, and has said no, so it was not "
      "made. Do not try it again; say that it was not approved." },
    { "approval_unavailable",
      "This call needs the approval of a person, who cannot be asked here, so it was not "
      "made. Continue without it, and do not say that it was done." },
    { "client_tool_failed",
      "The user's app could not carry out this tool. Say that it did not work, or try "
      "another way." }
};

#define TG_POLICY_TEXT_COUNT  (sizeof(tg_policy_texts) / sizeof(tg_policy_texts[0]))

static const char  tg_policy_other[] =
    "This tool could not be used. Continue without it, and do not say that it worked.";


const char *
tg_policy_code_at(size_t i)
{
    return i < TG_POLICY_TEXT_COUNT ? tg_policy_texts[i].code : NULL;
}


const char *
tg_policy_guidance(const char *code)
{
    size_t  i;

    for (i = 0; i < TG_POLICY_TEXT_COUNT; i++) {
        if (strcmp(tg_policy_texts[i].code, code) == 0) {
            return tg_policy_texts[i].guidance;
        }
    }

    return tg_policy_other;
}


/* Each check gives the code of its refusal, or NULL. */

static const char *
tg_policy_tool_set(const tg_policy_facts_t *facts)
{
    if (!facts->in_tool_set) {
        return "tool_not_available";
    }

    if (facts->caller_owned) {
        return NULL;
    }

    if (!facts->tools_enabled) {
        return "tools_disabled";
    }

    return facts->tool_enabled ? NULL : "tool_not_available";
}


static const char *
tg_policy_arguments(const tg_policy_facts_t *facts)
{
    return facts->arguments_valid ? NULL : "invalid_arguments";
}


static const char *
tg_policy_verified_user(const tg_policy_facts_t *facts)
{
    if (facts->effect == TG_EFFECT_ESCALATION || !facts->requires_verified_user) {
        return NULL;
    }

    return facts->verified_user ? NULL : "verification_required";
}


static const char *
tg_policy_available(const tg_policy_facts_t *facts)
{
    if (facts->effect == TG_EFFECT_ESCALATION) {
        return NULL;
    }

    if (facts->effect == TG_EFFECT_ACTION && facts->actions_paused) {
        return "actions_paused";
    }

    if (facts->hours_only && !facts->within_hours) {
        return "outside_business_hours";
    }

    if (facts->knowledge_missing) {
        return "no_knowledge";
    }

    return facts->open_ticket.len > 0 ? "ticket_already_open" : NULL;
}


static const char *
tg_policy_already_done(const tg_policy_facts_t *facts)
{
    return facts->already_done ? "already_done" : NULL;
}


static const char *
tg_policy_run_live(const tg_policy_facts_t *facts)
{
    switch (facts->life) {

    case TG_RUN_LIVE:
        return NULL;

    case TG_RUN_SUPERSEDED:
        return "run_superseded";

    default:
        return "run_cancelled";
    }
}


static const char *
tg_policy_limits(const tg_policy_facts_t *facts)
{
    switch (facts->limit) {

    case TG_LIMIT_NOT_COUNTED:
    case TG_LIMIT_PASSED:
        return NULL;

    case TG_LIMIT_REFUSED:
        return "rate_limited";

    default:
        return "store_unavailable";
    }
}


static const char *
tg_policy_rounds(const tg_policy_facts_t *facts)
{
    if (facts->round > facts->max_rounds) {
        return "round_limit";
    }

    return facts->position < TG_POLICY_CALLS_PER_ROUND ? NULL : "too_many_calls";
}


typedef const char *(*tg_policy_check_pt)(const tg_policy_facts_t *facts);

static const struct {
    tg_policy_check_pt  ask;
    bool                caller;      /* also asked of the request's own tools */
} tg_policy_checks[] = {
    [TG_CHECK_TOOL_SET] = { tg_policy_tool_set, true },
    [TG_CHECK_ARGUMENTS] = { tg_policy_arguments, true },
    [TG_CHECK_VERIFIED_USER] = { tg_policy_verified_user, false },
    [TG_CHECK_AVAILABLE] = { tg_policy_available, false },
    [TG_CHECK_ALREADY_DONE] = { tg_policy_already_done, false },
    [TG_CHECK_RUN_LIVE] = { tg_policy_run_live, true },
    [TG_CHECK_LIMITS] = { tg_policy_limits, false },
    [TG_CHECK_ROUNDS] = { tg_policy_rounds, false }
};


tg_policy_verdict_t
tg_policy_check(const tg_policy_facts_t *facts)
{
    tg_check_e           check;
    tg_policy_verdict_t  verdict;

    verdict = (tg_policy_verdict_t) { .check = TG_CHECK_NONE };

    for (check = TG_CHECK_TOOL_SET; check <= TG_CHECK_ROUNDS; check++) {

        if (facts->caller_owned && !tg_policy_checks[check].caller) {
            continue;
        }

        /* the store counts a call only once nothing before it can refuse it */
        if (check == TG_CHECK_LIMITS && facts->limit == TG_LIMIT_UNKNOWN) {
            verdict.ask_limit = true;
            return verdict;
        }

        verdict.code = tg_policy_checks[check].ask(facts);

        if (verdict.code != NULL) {
            verdict.check = check;
            return verdict;
        }
    }

    verdict.allowed = true;

    return verdict;
}


static tg_rc_e
tg_policy_open(const char *code, tg_str_t guidance, tg_buf_t *out)
{
    tg_buf_cstr(out, "{\"ok\":false,\"error\":{\"code\":");
    tg_buf_json_string(out, tg_str_of(code));
    tg_buf_cstr(out, ",\"guidance\":");

    return tg_buf_json_string(out, guidance.len > 0
                                   ? guidance : tg_str_of(tg_policy_guidance(code)));
}


tg_rc_e
tg_policy_envelope(const char *code, tg_str_t guidance, tg_buf_t *out)
{
    tg_policy_open(code, guidance, out);

    return tg_buf_cstr(out, "}}");
}


tg_rc_e
tg_policy_refusal(const tg_policy_facts_t *facts, const tg_policy_verdict_t *verdict,
    tg_buf_t *out)
{
    if (verdict->code == NULL) {
        return TG_E_INVALID;
    }

    tg_policy_open(verdict->code, verdict->check == TG_CHECK_ARGUMENTS
                                  ? facts->arguments_guidance : tg_null_str, out);

    switch (verdict->check) {

    case TG_CHECK_AVAILABLE:
        if (strcmp(verdict->code, "ticket_already_open") == 0) {
            tg_buf_cstr(out, ",\"ticket\":");
            tg_buf_json_string(out, facts->open_ticket);
        }
        break;

    case TG_CHECK_ALREADY_DONE:
        if (facts->earlier_result.len > 0) {
            tg_buf_cstr(out, ",\"result\":");
            tg_buf_str(out, facts->earlier_result);
        }
        break;

    case TG_CHECK_LIMITS:
        if (facts->limit == TG_LIMIT_REFUSED) {
            tg_buf_cstr(out, ",\"retry_after\":");
            tg_buf_int(out, facts->retry_after_s > 0 ? facts->retry_after_s : 1);
        }
        break;

    default:
        break;
    }

    return tg_buf_cstr(out, "}}");
}


bool
tg_policy_offered(const tg_policy_segment_t *segment, tg_effect_e effect)
{
    if (effect != TG_EFFECT_ACTION) {
        return true;
    }

    if (segment->one_shot && !segment->allow_actions) {
        return false;
    }

    if (!segment->verified_user && !segment->allow_anonymous_actions) {
        return false;
    }

    return !segment->actions_paused;
}
