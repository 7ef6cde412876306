/*
 * Public ids: a prefix and 22 base62 characters that hold 128 random bits.
 * Derived ids take their bits from a SHA-256, so that a name gives the same id
 * after every reload. The caller brings the random bytes.
 */

#ifndef TG_IDS_H
#define TG_IDS_H

#include "tg.h"


#define TG_ID_RANDOM_LEN  16
#define TG_ID_BODY_LEN    22
#define TG_ID_MAX_LEN     40      /* prefix, body and NUL fit */

/* Writes prefix + 22 characters + NUL, e.g. tg_id_make("run_", bytes, id). */
void tg_id_make(const char *prefix, const uint8_t random[TG_ID_RANDOM_LEN],
    char id[TG_ID_MAX_LEN]);

/* The same with bits derived from SHA-256(prefix NUL scope NUL name). */
void tg_id_derive(const char *prefix, tg_str_t scope, tg_str_t name,
    char id[TG_ID_MAX_LEN]);

/* True for prefix + exactly 22 base62 characters. */
bool tg_id_valid(const char *prefix, tg_str_t id);

/* True for [A-Za-z0-9_.:-]{1,64}: accounts, sessions, invocation ids. */
bool tg_id_label_valid(tg_str_t label);

#endif /* TG_IDS_H */
