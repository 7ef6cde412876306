/*
 * Secrets at rest: AES-256-GCM (NIST SP 800-38D) under the master key. What is
 * sealed is bound to a context (whose secret it is), so that one cannot be put in
 * the place of another. The caller brings the random nonce.
 */

#ifndef TG_SECRETBOX_H
#define TG_SECRETBOX_H

#include "tg.h"
#include "tg_buf.h"


#define TG_SECRETBOX_KEY_LEN    32
#define TG_SECRETBOX_NONCE_LEN  12
#define TG_SECRETBOX_TAG_LEN    16
#define TG_SECRETBOX_PLAIN_MAX  65536      /* bytes of one secret */


/* Appends "v1:<key id>:<base64 of nonce, ciphertext and tag>". A nonce is used
 * once for a key. TG_E_LIMIT for a plain text over the bound. */
tg_rc_e tg_secretbox_seal(const uint8_t key[TG_SECRETBOX_KEY_LEN],
    const uint8_t nonce[TG_SECRETBOX_NONCE_LEN], tg_str_t context,
    tg_str_t plain, tg_buf_t *out);

/* Appends the plain text. TG_E_SYNTAX: not a sealed secret. TG_E_INVALID: sealed
 * under another key or for another context, or changed; nothing is appended. The
 * caller wipes what it got (tg_secretbox_wipe). */
tg_rc_e tg_secretbox_open(const uint8_t key[TG_SECRETBOX_KEY_LEN],
    tg_str_t context, tg_str_t sealed, tg_buf_t *plain);

/* True when sealed names this key: tells a wrong master key from a changed text. */
bool tg_secretbox_names_key(const uint8_t key[TG_SECRETBOX_KEY_LEN],
    tg_str_t sealed);

/* Overwrites the content and frees the buffer. */
void tg_secretbox_wipe(tg_buf_t *plain);

#endif /* TG_SECRETBOX_H */
