/*
 * A growable byte buffer with a hard bound. It owns its memory; nothing in core/
 * grows without one of these, so that every output has a limit with a name.
 */

#ifndef TG_BUF_H
#define TG_BUF_H

#include "tg.h"


typedef struct {
    char    *data;      /* NULL until the first byte */
    size_t   len;
    size_t   cap;
    size_t   max;       /* bytes; an append that would pass it fails whole */
    tg_rc_e  error;     /* sticky: the first failure, so callers may check once */
} tg_buf_t;


/* Makes an empty buffer that may grow to max bytes. Allocates nothing. */
void tg_buf_init(tg_buf_t *b, size_t max);

/* Frees the memory and makes the buffer empty again; max is kept. */
void tg_buf_free(tg_buf_t *b);

/* Empties the buffer and clears error, keeps the memory. */
void tg_buf_reset(tg_buf_t *b);

/* Each append returns TG_OK, TG_E_LIMIT or TG_E_NOMEM and, on failure, leaves
 * the content as it was and sets b->error; after that all appends fail. */
tg_rc_e tg_buf_append(tg_buf_t *b, const void *data, size_t len);
tg_rc_e tg_buf_str(tg_buf_t *b, tg_str_t s);
tg_rc_e tg_buf_cstr(tg_buf_t *b, const char *s);
tg_rc_e tg_buf_char(tg_buf_t *b, char c);
tg_rc_e tg_buf_int(tg_buf_t *b, int64_t n);
tg_rc_e tg_buf_printf(tg_buf_t *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Appends s as a JSON string with its quotes. Bytes that are not UTF-8 become
 * U+FFFD; control characters, DEL, U+2028 and U+2029 are escaped. */
tg_rc_e tg_buf_json_string(tg_buf_t *b, tg_str_t s);

/* The content as a string; valid until the next change of b. */
static inline tg_str_t
tg_buf_get(const tg_buf_t *b)
{
    return (tg_str_t) { b->len, b->data };
}

#endif /* TG_BUF_H */
