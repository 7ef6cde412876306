/*
 * Small JSON documents as jansson trees: strict loading, canonical form, hash.
 * Big bodies (a conversation) never come here: see tg_scan.h.
 */

#ifndef TG_JSON_H
#define TG_JSON_H

#include <jansson.h>

#include "tg.h"
#include "tg_buf.h"


#define TG_JSON_MAX_DEPTH       128
#define TG_JSON_SHA256_HEX_LEN  64

typedef struct {
    size_t       offset;     /* byte where it went wrong */
    unsigned     line;       /* from 1 */
    const char  *reason;     /* static text, e.g. "duplicate key" */
} tg_json_error_t;


/*
 * Loads one JSON value (any type) from text. Refused: duplicate keys, invalid
 * UTF-8, lone surrogates, NUL in strings or keys, depth over TG_JSON_MAX_DEPTH,
 * trailing bytes, an empty text. Integers that do not fit int64 are kept exact
 * as far as jansson can: they are refused with "number out of range".
 * Returns a new reference (the caller owns it) or NULL with *error filled.
 */
json_t *tg_json_load(tg_str_t text, tg_json_error_t *error);

/* Appends the canonical form: keys sorted by bytes, no blanks, numbers in the
 * shortest form that reads back the same, minimal escapes. Equal values give
 * equal bytes (1.0 and 1 are equal). */
tg_rc_e tg_json_canonical(const json_t *value, tg_buf_t *out);

/* Appends compact JSON in the order of the object's keys. */
tg_rc_e tg_json_dump(const json_t *value, tg_buf_t *out);

/* SHA-256 of data as lower-case hex with a final NUL. */
void tg_json_sha256_hex(tg_str_t data, char hex[TG_JSON_SHA256_HEX_LEN + 1]);

/* The string value of a key, or tg_null_str when it is absent or another type. */
tg_str_t tg_json_get_string(const json_t *object, const char *key);

/* Line (from 1) of the value that a JSON pointer (RFC 6901) names in text, or 1
 * when it is not there. For messages about configuration files. */
unsigned tg_json_line_of(tg_str_t text, tg_str_t pointer);

#endif /* TG_JSON_H */
