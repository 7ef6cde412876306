/*
 * A chat request in the form of the Responses API, for a model upstream that speaks
 * that: messages as items, tools, choice and fields under the names that they have
 * there. What has no counterpart goes as it is, so that the upstream says what it
 * thinks of it. The way back, and what a caller sends, is tg_responses.h.
 *
 * All text was found valid by the scanner. Each piece of the output is static or a
 * slice of what was given, and lives as long as that.
 */

#ifndef TG_TO_RESPONSES_H
#define TG_TO_RESPONSES_H

#include "tg.h"
#include "tg_scan.h"


/* Takes a piece of the output. Not TG_OK ends the work with that value. */
typedef tg_rc_e (*tg_to_responses_add_pt)(void *ctx, tg_str_t piece);

typedef struct {
    tg_to_responses_add_pt   add;
    void                    *ctx;
    tg_rc_e                  rc;       /* of the first piece that was not taken */
    size_t                   items;    /* written */
    size_t                   tools;    /* written */
} tg_to_responses_t;


void tg_to_responses_init(tg_to_responses_t *t, tg_to_responses_add_pt add,
    void *ctx);

/* Writes messages, given with commas between them, as items with commas between them;
 * may be called again and goes on behind the last. An assistant's message without any
 * text is no item. */
tg_rc_e tg_to_responses_messages(tg_to_responses_t *t, tg_str_t messages);

/* Writes elements of chat's "tools", given and written as messages are. A function that
 * says nothing of "strict" is not strict, which is not what the API itself takes it for. */
tg_rc_e tg_to_responses_tools(tg_to_responses_t *t, tg_str_t tools);

/* Writes the value of "tool_choice". */
tg_rc_e tg_to_responses_choice(tg_to_responses_t *t, tg_str_t value);

/* Writes the other fields of a request, a comma before each; not those of left_out,
 * which ends with NULL. */
tg_rc_e tg_to_responses_fields(tg_to_responses_t *t, const tg_scan_t *scan,
    const char *body, const char *const *left_out);

#endif /* TG_TO_RESPONSES_H */
