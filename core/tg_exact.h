/*
 * JSON from elsewhere, loaded so that every number keeps its digits: a tree holds
 * int64 and double only, so other numbers travel as marked strings.
 */

#ifndef TG_EXACT_H
#define TG_EXACT_H

#include <jansson.h>

#include "tg.h"


#define TG_EXACT_NUMBER_MAX  200     /* characters; a longer number becomes null */

/*
 * Loads one JSON value like tg_json_load, with two leniences for what foreign
 * programs write: a BOM is passed over, and in strings NUL and U+0001 are dropped
 * and lone surrogates become U+FFFD. Returns a new reference, or NULL.
 */
json_t *tg_exact_load(tg_str_t text);

/* True when the value is a number; digits is its text if a tree cannot hold it
 * exactly, else empty. */
bool tg_exact_number(const json_t *value, tg_str_t *digits);

#endif /* TG_EXACT_H */
