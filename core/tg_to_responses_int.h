/*
 * What the files of tg_to_responses share. For tg_to_responses*.c only.
 */

#ifndef TG_TO_RESPONSES_INT_H
#define TG_TO_RESPONSES_INT_H

#include "tg_to_responses.h"
#include "tg_walk.h"


#define tg_to_responses_lit(t, text)  tg_to_responses_put(t, tg_str(text))

/* Gives a piece of the output on; returns t->rc, which keeps the first failure. */
tg_rc_e tg_to_responses_put(tg_to_responses_t *t, tg_str_t piece);

/* The same for a value with static text before it; an absent one is an empty string. */
tg_rc_e tg_to_responses_value(tg_to_responses_t *t, const char *before,
    tg_walk_value_t value);

/* The same for a value that has to be a string: another is written as the text that it
 * is made of. */
tg_rc_e tg_to_responses_string(tg_to_responses_t *t, const char *before,
    tg_walk_value_t value);

/* Counts an element, and divides it from the one before. */
void tg_to_responses_next(tg_to_responses_t *t, size_t *count);

#endif /* TG_TO_RESPONSES_INT_H */
