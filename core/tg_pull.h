/*
 * Pulls values out of JSON text that the caller may overwrite, without building a
 * tree. For small texts that come often. A refusal (false, TG_PULL_NO) says only
 * "not by this reader": the text may be valid JSON all the same.
 */

#ifndef TG_PULL_H
#define TG_PULL_H

#include "tg.h"


#define TG_PULL_DEPTH   16     /* of values that are passed over */
#define TG_PULL_DIGITS  18     /* characters of a number: more may not fit an int64 */

/* *end must be a NUL, which is valid nowhere in JSON: it stops every loop. */
typedef struct {
    char      *p;
    char      *end;
    unsigned   depth;
    bool       escaped;        /* the last string had an escape */
} tg_pull_t;

typedef enum { TG_PULL_NO = -1, TG_PULL_OVER, TG_PULL_MEMBER } tg_pull_next_e;


void tg_pull_blanks(tg_pull_t *in);

/* Reads a string. It is decoded in place, which never makes it longer; it may
 * hold NUL. Invalid UTF-8 and lone surrogates are refused. */
bool tg_pull_string(tg_pull_t *in, tg_str_t *value);

/* Passes a number without exponent and of at most TG_PULL_DIGITS characters. */
bool tg_pull_number(tg_pull_t *in);

/* Passes true, false or null if that is the next word. */
bool tg_pull_literal(tg_pull_t *in, const char *word);

/* Passes a value of any type. */
bool tg_pull_skip(tg_pull_t *in);

/* In an object, whose brace is passed: goes to the next member's value, or behind
 * the object. Keys with escapes are refused. */
tg_pull_next_e tg_pull_member(tg_pull_t *in, bool first, tg_str_t *key);

/* In an array, whose bracket is passed: goes to the next element, or behind it. */
tg_pull_next_e tg_pull_element(tg_pull_t *in, bool first);

#endif /* TG_PULL_H */
