/*
 * Approvals of tool calls by a person: which calls need one, what a decision looks
 * like, what an approval is bound to, and how it is written. Pure: it keeps nothing,
 * asks nobody and knows no clock.
 */

#ifndef TG_APPROVAL_H
#define TG_APPROVAL_H

#include <jansson.h>

#include "tg.h"
#include "tg_buf.h"
#include "tg_json.h"
#include "tg_policy.h"


#define TG_APPROVAL_REASON_CHARS  1000     /* code points of a person's reason */

typedef enum { TG_RISK_LOW = 0, TG_RISK_MEDIUM, TG_RISK_HIGH, TG_RISK_CRITICAL } tg_risk_e;

/* In rising strictness, so that the stricter of two is the greater. */
typedef enum { TG_APPROVAL_OFF = 0, TG_APPROVAL_STRICT } tg_approval_mode_e;

/* A tool of the gateway, as far as approvals go. */
typedef struct {
    const char  *name;
    tg_risk_e    risk;
    const char  *side_effect;     /* NULL: none */
} tg_approval_tool_t;

/* What an approval holds for, and for nothing else. */
typedef struct {
    tg_str_t  project;
    tg_str_t  account;            /* empty: the project's own */
    tg_str_t  session;            /* the run's id when it has no session */
    tg_str_t  tool;
    tg_str_t  arguments;          /* their canonical form */
} tg_approval_binding_t;

typedef struct {
    bool      approved;
    tg_str_t  reason;             /* lives as long as the body; empty: none given */
} tg_approval_decision_t;

/* What is wrong with a decision. */
typedef struct {
    const char  *code;
    const char  *param;
    const char  *message;         /* NULL: the code's own */
} tg_approval_fault_t;

/* What is known of a call when its approval is asked for. */
typedef struct {
    tg_str_t     call_id;
    tg_str_t     tool;
    tg_str_t     arguments;       /* JSON, canonical */
    tg_risk_e    risk;
    const char  *side_effect;     /* NULL: none */
} tg_approval_call_t;


/* "off", "full" = off; "strict", "risk", "ask" = strict; false for all else. */
bool tg_approval_mode_parse(tg_str_t text, tg_approval_mode_e *mode);

const char *tg_risk_name(tg_risk_e risk);

/* A tool of the gateway by name; NULL for any other tool. */
const tg_approval_tool_t *tg_approval_tool(tg_str_t name);

/* The risk of a tool that is not of the gateway: one that changes something is of
 * medium risk. */
tg_risk_e tg_approval_risk(tg_effect_e effect);

/* Whether a call waits for a person. named: the agent lists the tool by name, which
 * holds in every mode. */
bool tg_approval_gated(tg_approval_mode_e mode, tg_risk_e risk, bool named);

/* Writes the digest of what an approval is bound to. Two bindings that differ in any
 * member have different digests, wherever one member ends and the next begins. */
tg_rc_e tg_approval_bind(const tg_approval_binding_t *binding,
    char hex[TG_JSON_SHA256_HEX_LEN + 1]);

/* Takes "approval" out of arguments that a model has written for a tool of the gateway:
 * no schema shows it, and only a person can give it. */
void tg_approval_strip(json_t *arguments);

/*
 * Reads {"approved":true|false,"reason":"…"}. Only these JSON values decide; all else
 * is refused, another member with "unknown_field": nobody changes a call by approving
 * it. False with *fault filled. "account_id" is let pass: it says who asks.
 */
bool tg_approval_decide(const json_t *body, tg_approval_decision_t *decision,
    tg_approval_fault_t *fault);

/* Appends the members that describe the call, "call_id" first and
 * "arguments_sha256" last, without braces. */
tg_rc_e tg_approval_describe(const tg_approval_call_t *call, tg_buf_t *out);

/* Appends what the model gets for a call that a person has rejected:
 * {"ok":false,"error":{"code":"approval_rejected","guidance":…,"reason":…}}. */
tg_rc_e tg_approval_rejection(tg_str_t reason, tg_buf_t *out);

#endif /* TG_APPROVAL_H */
