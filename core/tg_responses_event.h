/*
 * What the files of the Responses answer share. For tg_responses*.c only.
 */

#ifndef TG_RESPONSES_EVENT_H
#define TG_RESPONSES_EVENT_H

#include "tg_responses.h"


/* Begins an event of this type, up to its sequence number; false: there are none. */
bool tg_responses_event(tg_responses_t *r, const char *type);

/* Ends it, and with it the data line. */
void tg_responses_event_end(tg_responses_t *r);

/* Adds the members that say where an item is: "item_id" and "output_index". */
void tg_responses_place(tg_responses_t *r, size_t index);

/* Makes room for a new item with an id of this prefix; its index is
 * r->item_count - 1. */
tg_rc_e tg_responses_item_new(tg_responses_t *r, const char *prefix);

/* Adds a whole event that has an item: json is the item. */
void tg_responses_item_event(tg_responses_t *r, const char *type, size_t index,
    tg_str_t json);

/* The first failure of any of the answer's buffers. */
tg_rc_e tg_responses_state(const tg_responses_t *r);

/* tg_responses_break with the status of what ends. */
tg_rc_e tg_responses_break_as(tg_responses_t *r, const char *status);

/* Ends the calls that have not ended. */
void tg_responses_calls_cancel(tg_responses_t *r);

#endif /* TG_RESPONSES_EVENT_H */
