/*
 * The policy check: eight questions in a fixed order about one tool call, asked
 * of plain data. Pure: the caller gathers the facts, this decides, and the
 * verdict is data that goes into the run's steps. It runs nothing.
 */

#ifndef TG_POLICY_H
#define TG_POLICY_H

#include "tg.h"
#include "tg_buf.h"


#define TG_POLICY_MAX_ROUNDS       5
#define TG_POLICY_DEFAULT_ROUNDS   3
#define TG_POLICY_CALLS_PER_ROUND  5
#define TG_POLICY_HTTP_LIMIT       20            /* per rolling hour */
#define TG_POLICY_HTTP_WINDOW_S    3600
#define TG_POLICY_TICKET_LIMIT     5             /* per rolling day */
#define TG_POLICY_TICKET_WINDOW_S  86400

typedef enum { TG_EFFECT_READ, TG_EFFECT_ESCALATION, TG_EFFECT_ACTION } tg_effect_e;

typedef enum {
    TG_CHECK_NONE = 0,
    TG_CHECK_TOOL_SET,      /* 1 */
    TG_CHECK_ARGUMENTS,     /* 2 */
    TG_CHECK_VERIFIED_USER, /* 3 */
    TG_CHECK_AVAILABLE,     /* 4 */
    TG_CHECK_ALREADY_DONE,  /* 5 */
    TG_CHECK_RUN_LIVE,      /* 6 */
    TG_CHECK_LIMITS,        /* 7 */
    TG_CHECK_ROUNDS         /* 8 */
} tg_check_e;

typedef enum { TG_RUN_LIVE, TG_RUN_CANCELLED, TG_RUN_SUPERSEDED } tg_run_life_e;

/* The limit of check 7 needs the store: UNKNOWN makes the verdict "ask it". */
typedef enum {
    TG_LIMIT_NOT_COUNTED,   /* this kind of tool has no limit */
    TG_LIMIT_UNKNOWN,       /* not asked yet */
    TG_LIMIT_PASSED,
    TG_LIMIT_REFUSED,
    TG_LIMIT_STORE_CLOSED   /* the store is away and the operator chose closed */
} tg_limit_e;

typedef struct {
    /* 1 */
    bool           in_tool_set;
    bool           tools_enabled;
    bool           tool_enabled;          /* the tool's own live switch */
    /* 2 */
    bool           arguments_valid;
    tg_str_t       arguments_guidance;    /* pointers and reasons when not */
    /* 3 */
    bool           requires_verified_user;
    bool           verified_user;
    /* 4 */
    tg_effect_e    effect;
    bool           actions_paused;
    bool           hours_only;
    bool           within_hours;
    bool           knowledge_missing;
    tg_str_t       open_ticket;           /* its number; empty = none */
    /* 5 */
    bool           already_done;
    tg_str_t       earlier_result;        /* JSON of that result */
    /* 6 */
    tg_run_life_e  life;
    /* 7 */
    tg_limit_e     limit;
    uint32_t       retry_after_s;
    /* 8 */
    unsigned       round;                 /* from 1: this call's round */
    unsigned       max_rounds;
    unsigned       position;              /* from 0: place among the round's calls */
    bool           caller_owned;          /* the request's own tool: checks 1, 2, 6 only;
                                             the agent's switches are not its own */
} tg_policy_facts_t;

typedef struct {
    bool         allowed;
    bool         ask_limit;     /* checks 1-6 passed; ask the store, then again */
    tg_check_e   check;         /* which one refused; NONE when allowed or ask_limit */
    const char  *code;          /* static; NULL when allowed or ask_limit */
} tg_policy_verdict_t;


/*
 * Decides. Facts of a check that is not reached are not looked at. Checks 3 and 4
 * pass escalations, which are never gated. max_rounds has been brought into
 * 1..TG_POLICY_MAX_ROUNDS by the caller. Check 8 comes after 7: a call that it
 * refuses has been counted.
 */
tg_policy_verdict_t tg_policy_check(const tg_policy_facts_t *facts);

/* Appends what the model gets for a refusal:
 * {"ok":false,"error":{"code":…,"guidance":…}}, in "error" also retry_after
 * (rate_limited), result (already_done), ticket (ticket_already_open). TG_E_INVALID
 * when the verdict refuses nothing. */
tg_rc_e tg_policy_refusal(const tg_policy_facts_t *facts,
    const tg_policy_verdict_t *verdict, tg_buf_t *out);

/* The same envelope for a refusal or failure that was decided elsewhere; the
 * guidance of the code is used when guidance is empty. */
tg_rc_e tg_policy_envelope(const char *code, tg_str_t guidance, tg_buf_t *out);

/* The sentence for a model that belongs to a code; never NULL. */
const char *tg_policy_guidance(const char *code);

/* A code that has its own guidance, by place in the table; NULL past the end. */
const char *tg_policy_code_at(size_t i);

/* Whether a tool is in the list that a segment offers: three separate reasons remove
 * an action. One that needs a verified user stays, and check 3 says what it needs. */
typedef struct {
    bool  one_shot;
    bool  allow_actions;
    bool  verified_user;
    bool  allow_anonymous_actions;
    bool  actions_paused;
} tg_policy_segment_t;

bool tg_policy_offered(const tg_policy_segment_t *segment, tg_effect_e effect);

#endif /* TG_POLICY_H */
