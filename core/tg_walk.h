/*
 * Walks over JSON text that the scanner (tg_scan.h) has found valid: from member to
 * member, from element to element, past whole values. It checks nothing again, builds
 * nothing and copies nothing; on text that is not valid it only never reads past the
 * end.
 */

#ifndef TG_WALK_H
#define TG_WALK_H

#include "tg.h"
#include "tg_scan.h"


typedef struct {
    const char  *p;
    const char  *end;
} tg_walk_t;

/* A value where it lies: text is all of it, a string's quotes included. */
typedef struct {
    tg_scan_type_e  type;
    tg_str_t        text;
} tg_walk_value_t;


/* A walk over the value that text holds; its data is not NULL. */
static inline tg_walk_t
tg_walk_over(tg_str_t text)
{
    return (tg_walk_t) { text.data, text.data + text.len };
}


/* Reads the value at the walk's place and goes behind it; type NONE at the end. */
tg_walk_value_t tg_walk_value(tg_walk_t *walk);

/* Enters the object or array at the walk's place; false: there is none. */
bool tg_walk_enter(tg_walk_t *walk);

/* The next member of the object that was entered; false: it has no more, and the
 * walk is behind it. key is without quotes, escapes as they are. */
bool tg_walk_member(tg_walk_t *walk, tg_str_t *key, tg_walk_value_t *value);

/* The next element of the array that was entered; false: it has no more. */
bool tg_walk_element(tg_walk_t *walk, tg_walk_value_t *value);

/* The same, but goes to the element and not over it: it can be entered, or passed with
 * tg_walk_value. NONE: there are no more. */
tg_scan_type_e tg_walk_at_element(tg_walk_t *walk);

/* Finds members of an object, text from brace to brace, by name and in one pass; those that are absent or null get
 * type NONE, of those that come twice the last one counts. Another value has none. */
void tg_walk_members(tg_str_t object, size_t n, const char *const *names,
    tg_walk_value_t *values);

/* Whether the bytes between a string's quotes mean this text. */
bool tg_walk_is(tg_str_t inside, const char *text);

/* The bytes between a string's quotes; empty for another type. */
static inline tg_str_t
tg_walk_inside(tg_walk_value_t value)
{
    return value.type == TG_SCAN_STRING && value.text.len >= 2
           ? (tg_str_t) { value.text.len - 2, value.text.data + 1 } : tg_null_str;
}

#endif /* TG_WALK_H */
