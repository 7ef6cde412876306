/*
 * Standard Webhooks signatures (v1, HMAC-SHA256) over the exact bytes sent.
 */

#ifndef TG_SIGN_H
#define TG_SIGN_H

#include "tg.h"
#include "tg_buf.h"


#define TG_SIGN_TOLERANCE_S   300
#define TG_SIGN_KEY_MAX       96     /* 24 to 64 are usual */
#define TG_SIGN_SECRET_MAX    160     /* characters of "whsec_…" */

typedef struct {
    uint8_t  key[TG_SIGN_KEY_MAX];
    size_t   len;
} tg_sign_key_t;

/* Reads "whsec_<base64>" (the prefix is optional). TG_E_INVALID otherwise. */
tg_rc_e tg_sign_key_parse(tg_str_t secret, tg_sign_key_t *key);

/* Appends the "whsec_<base64>" that a project signs with until it has stored one of
 * its own: it follows from the master key, so that all nodes agree. */
tg_rc_e tg_sign_derive(tg_str_t master_key, tg_str_t project, tg_buf_t *secret);

/* Appends "v1,<base64>" of id.timestamp.body. TG_E_INVALID for an id that is empty
 * or holds a dot, and for a negative timestamp. */
tg_rc_e tg_sign(const tg_sign_key_t *key, tg_str_t id, int64_t timestamp,
    tg_str_t body, tg_buf_t *out);

/* True when signature (a blank-separated list) holds a v1 match and timestamp is
 * within TG_SIGN_TOLERANCE_S of now. Constant time for each comparison. */
bool tg_sign_verify(const tg_sign_key_t *key, tg_str_t id, tg_str_t timestamp,
    tg_str_t signature, tg_str_t body, int64_t now);

#endif /* TG_SIGN_H */
