/*
 * Tokens that say who the end user is: JSON Web Tokens (RFC 7519) in the compact
 * form, signed with one of the keys that a project has registered. Pure: the time
 * is a parameter, keys come as JSON, nothing is fetched from anywhere.
 */

#ifndef TG_JWT_H
#define TG_JWT_H

#include <jansson.h>

#include "tg.h"


#define TG_JWT_TOKEN_MAX        (8 * 1024)   /* bytes of a whole token */
#define TG_JWT_LEEWAY_S         60           /* between our clock and the signer's */
#define TG_JWT_EXTERNAL_ID_MAX  255          /* bytes of "sub" */
#define TG_JWT_TRAITS_MAX       64           /* members of "traits" */

#define TG_JWT_KEYS_MAX         32           /* that a project may have */
#define TG_JWT_SECRET_MIN       32           /* bytes of an HMAC secret */
#define TG_JWT_SECRET_MAX       1024
#define TG_JWT_PUBLIC_KEY_MAX   (16 * 1024)  /* bytes of a PEM or JWK text */
#define TG_JWT_KID_MAX          256          /* bytes */
#define TG_JWT_NAME_MAX         512          /* bytes of "issuer", "audience" */
#define TG_JWT_RSA_MIN_BITS     2048
#define TG_JWT_RSA_MAX_BITS     8192         /* more would only cost time */
#define TG_JWT_RSA_MAX_E_BITS   33

/* One key: a secret or a public key, for exactly one algorithm. */
typedef struct tg_jwt_key_s  tg_jwt_key_t;

/* Why a key is refused. */
typedef struct {
    const char  *code;            /* static: the 422 code, or "internal_error" */
    char         pointer[128];    /* into the key's object, e.g. "/alg" */
    const char  *reason;          /* static */
} tg_jwt_key_error_t;

/* Why a token is refused; TG_JWT_ACCEPTED is 0. */
typedef enum {
    TG_JWT_ACCEPTED = 0,
    TG_JWT_TOO_LONG,
    TG_JWT_MALFORMED,        /* three parts, base64url, JSON objects */
    TG_JWT_WRONG_TYPE,       /* "typ" is there and is not JWT */
    TG_JWT_CRITICAL,         /* "crit", or "b64" other than true */
    TG_JWT_NO_KEY,           /* no key has this alg and kid */
    TG_JWT_SIGNATURE,
    TG_JWT_CLAIMS,           /* one is missing, of a wrong type or too long */
    TG_JWT_EXPIRED,
    TG_JWT_NOT_YET_VALID,    /* "nbf" or "iat" */
    TG_JWT_ISSUER,
    TG_JWT_AUDIENCE
} tg_jwt_fault_e;


/*
 * Reads {"name","alg","secret"|"public_key","kid","issuer","audience"}; the last
 * three are optional. alg is HS256, HS384 or HS512 with a secret (text, its bytes
 * are the key), or RS256, PS256, ES256 (P-256), EdDSA (Ed25519) with a public key:
 * PEM text ("PUBLIC KEY", "RSA PUBLIC KEY"), or a JWK as an object or as text. What
 * holds a private key is refused. Returns a new key that keeps nothing of object,
 * or NULL with *error.
 */
tg_jwt_key_t *tg_jwt_key_parse(const json_t *object, tg_jwt_key_error_t *error);

/* Frees the key, a secret is wiped; NULL is fine. */
void tg_jwt_key_free(tg_jwt_key_t *key);

/* The key's name; lives as long as the key. */
tg_str_t tg_jwt_key_name(const tg_jwt_key_t *key);

/*
 * Verifies a token at now (Unix seconds). The token's kid selects among keys; one
 * without kid is tried with every key of its alg. TG_OK: *end_user is a new
 * {"external_id":string,"traits":{name:string|number|bool}} of the caller's; traits
 * of other types are left out. TG_E_INVALID: *fault says why. TG_E_NOMEM.
 */
tg_rc_e tg_jwt_verify(tg_str_t token, tg_jwt_key_t *const *keys, size_t count,
    int64_t now, json_t **end_user, tg_jwt_fault_e *fault);

/* A sentence for the developer who sent the token: what is wrong, what to do. */
const char *tg_jwt_fault_text(tg_jwt_fault_e fault);

#endif /* TG_JWT_H */
