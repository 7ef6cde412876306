/*
 * Unicode cleaning: what may reach a model from a tool result, or a customer's
 * API from a model's argument. Control, bidi and zero-width characters go; Arabic
 * joiners stay; digits of Arabic and Persian become ASCII.
 */

#ifndef TG_CLEAN_H
#define TG_CLEAN_H

#include "tg.h"
#include "tg_buf.h"


#define TG_CLEAN_VALUE_CHARS  200     /* code points of a value shown to the model */
#define TG_CLEAN_TEXT_CHARS   1000    /* of a body parameter of format text */

/* Appends text cleaned; max_chars code points at most (0: no cut), cut after
 * cleaning. Input that is not UTF-8 gets U+FFFD. */
tg_rc_e tg_clean_value(tg_str_t text, size_t max_chars, tg_buf_t *out);

/* A body parameter of format text: like tg_clean_value, but over
 * TG_CLEAN_TEXT_CHARS is TG_E_INVALID instead of a cut. */
tg_rc_e tg_clean_argument(tg_str_t text, tg_buf_t *out);

/* Appends text with U+0660-0669 and U+06F0-06F9 turned into 0-9. */
tg_rc_e tg_clean_digits(tg_str_t text, tg_buf_t *out);

/* Number of code points of valid UTF-8. */
size_t tg_clean_length(tg_str_t text);

#endif /* TG_CLEAN_H */
