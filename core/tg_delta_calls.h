/*
 * Which call an event of a response is about. For tg_delta_*.c only.
 *
 * Vendors differ: the call's id may be another one when the item is done, or come only
 * then; some give every item the same place. So an event belongs to the call with its
 * item's id or call id, else to the newest that is open at its place, and no item that
 * is whole is taken twice.
 */

#ifndef TG_DELTA_CALLS_H
#define TG_DELTA_CALLS_H

#include "tg_delta_int.h"


/* An output item that is a call has begun. */
tg_rc_e tg_delta_call_begins(tg_delta_t *delta, const json_t *item, bool has_index,
    int64_t index);

/* An event with a piece of arguments, or (whole) with all of them. */
tg_rc_e tg_delta_call_arguments(tg_delta_t *delta, const json_t *root, bool whole);

/* How an item that is whole is taken. */
typedef struct {
    bool  add;          /* it may be a call of which nothing came before */
    bool  rounded;      /* numbers may not be what was sent: arguments that are no text
                           are TG_E_SYNTAX */
} tg_delta_taken_t;

/* The item is whole. Arguments that came in pieces are not taken once more. */
tg_rc_e tg_delta_call_done(tg_delta_t *delta, const json_t *item, bool has_index,
    int64_t index, tg_delta_taken_t taken);

/* The response is complete: TG_E_SYNTAX when a call has begun of whose arguments
 * nothing came, which would look like one that needs none. */
tg_rc_e tg_delta_calls_ended(tg_delta_t *delta);

#endif /* TG_DELTA_CALLS_H */
