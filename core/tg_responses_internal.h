/*
 * What the files of the Responses request share. For tg_responses*.c only.
 */

#ifndef TG_RESPONSES_INTERNAL_H
#define TG_RESPONSES_INTERNAL_H

#include <stdio.h>

#include "tg_responses.h"


#define tg_responses_lit(t, text)  tg_responses_put(t, tg_str(text))

/* Gives a piece of the output on; returns t->rc, which keeps the first failure. */
tg_rc_e tg_responses_put(tg_responses_request_t *t, tg_str_t text);

/* Notes what is wrong and returns TG_E_INVALID. */
tg_rc_e tg_responses_wrong(tg_responses_request_t *t, const char *code,
    const char *message, const char *param);

/* The same for a member of the item under way; "" is the item itself. */
tg_rc_e tg_responses_wrong_item(tg_responses_request_t *t, const char *code,
    const char *message, const char *member);

/* _content.c: what a user or the system says, as the value of "content". */
tg_rc_e tg_responses_content(tg_responses_request_t *t, tg_walk_value_t content);

/* What the model has said, as the members "content" and "refusal" with a comma before
 * each. */
tg_rc_e tg_responses_assistant_content(tg_responses_request_t *t,
    tg_walk_value_t content);

/* A string, or the texts of a list of parts joined to one; absent is an empty one. */
tg_rc_e tg_responses_joined(tg_responses_request_t *t, tg_walk_value_t value,
    const char *member);

/* _fields.c: all fields of the request but its model and its input. */
tg_rc_e tg_responses_fields(tg_responses_request_t *t);

/* A field of the request, NULL when it is absent or null. */
static inline const tg_scan_member_t *
tg_responses_field(const tg_scan_t *scan, const char *body, const char *name)
{
    const tg_scan_member_t  *member;

    member = tg_scan_find(scan, body, name);

    return member && member->value.type != TG_SCAN_NULL ? member : NULL;
}


static inline tg_str_t
tg_responses_text_of(const char *body, const tg_scan_member_t *member)
{
    return (tg_str_t) { member->value.end - member->value.start,
                        body + member->value.start };
}

#endif /* TG_RESPONSES_INTERNAL_H */
