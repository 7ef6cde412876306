/*
 * What the files of the token verifier share: what a key is made of, the
 * algorithms, base64url. Nobody else needs it.
 */

#ifndef TG_JWT_INT_H
#define TG_JWT_INT_H

#include <openssl/evp.h>

#include "tg_jwt.h"


#define TG_JWT_PEM_BEGIN    "-----BEGIN "

#define TG_JWT_P256_LEN     32      /* bytes of a coordinate, of r and of s */
#define TG_JWT_ED25519_LEN  32      /* bytes of a public key */

typedef enum {
    TG_JWT_HMAC,
    TG_JWT_RSA,         /* PKCS #1 v1.5 */
    TG_JWT_RSA_PSS,
    TG_JWT_EC,          /* P-256 */
    TG_JWT_ED25519
} tg_jwt_family_e;

typedef struct {
    const char       *name;         /* as in "alg" */
    tg_jwt_family_e   family;
    const char       *digest;       /* NULL: the scheme has its own */
    size_t            signature;    /* bytes; 0: as long as the key */
} tg_jwt_alg_t;

struct tg_jwt_key_s {
    const tg_jwt_alg_t  *alg;
    json_t              *about;         /* name, kid, issuer, audience */
    uint8_t             *secret;        /* of HMAC */
    size_t               secret_len;
    EVP_PKEY            *public;        /* of all others */
};


/* The algorithm of a name, or NULL: "none" is none. */
const tg_jwt_alg_t *tg_jwt_alg_find(tg_str_t name);

/* True when signature is key's over text. Constant time for an HMAC. */
bool tg_jwt_signature_good(const tg_jwt_key_t *key, tg_str_t text,
    const uint8_t *signature, size_t len);

/* Decodes base64url without padding in its one canonical form; returns the length,
 * or -1 when it is not that or passes cap. */
ptrdiff_t tg_jwt_base64url(tg_str_t text, uint8_t *out, size_t cap);

/* The public key that a PEM text or a JWK holds, or NULL with *reason (static;
 * NULL when memory ran out). */
EVP_PKEY *tg_jwt_public_pem(tg_str_t text, const tg_jwt_alg_t *alg,
    const char **reason);
EVP_PKEY *tg_jwt_public_jwk(const json_t *jwk, const tg_jwt_alg_t *alg,
    const char **reason);

#endif /* TG_JWT_INT_H */
