/*
 * Common types of core/: strings by pointer and length, result codes.
 *
 * core/ is pure C17: it knows no nginx, no socket, no file and no clock. Time,
 * randomness and addresses come in as parameters. Everything here can be run by
 * unit tests, by fuzzers and by tg-probe.
 */

#ifndef TG_H
#define TG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>


/* Result of every core function that can fail; the caller's data stays valid. */
typedef enum {
    TG_OK = 0,
    TG_AGAIN = 1,        /* more input is needed */
    TG_E_NOMEM = -1,     /* out of memory */
    TG_E_LIMIT = -2,     /* a named bound would be passed */
    TG_E_SYNTAX = -3,    /* the input is not well formed */
    TG_E_INVALID = -4    /* well formed, but not allowed */
} tg_rc_e;


/* A string that somebody else owns; may hold NUL, is not terminated. */
typedef struct {
    size_t       len;
    const char  *data;
} tg_str_t;

#define tg_str(literal)  ((tg_str_t) { sizeof(literal) - 1, (literal) })
#define tg_null_str      ((tg_str_t) { 0, NULL })


static inline tg_str_t
tg_str_of(const char *s)
{
    return s == NULL ? tg_null_str : (tg_str_t) { strlen(s), s };
}


static inline bool
tg_str_eq(tg_str_t a, tg_str_t b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

#endif /* TG_H */
