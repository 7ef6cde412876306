/*
 * Makes keys and tokens for tests: whatever header and payload a test writes, signed
 * as an issuer would sign it. Nothing here is taken from the code under test.
 */

#ifndef TG_TEST_JWT_MAKE_H
#define TG_TEST_JWT_MAKE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "tg_jwt.h"


#define JWT_TEXT_MAX  (64 * 1024)
#define JWT_SECRET    "a secret of more than 32 bytes, for tests"


/* Appends bytes as base64url; returns the length with them. */
static inline size_t
jwt_encode(char *out, size_t at, const void *data, size_t len)
{
    size_t            i, n;
    const uint8_t    *p = data;
    uint32_t          bits;
    static const char  digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789-_";

    for (i = 0; i < len; i += 3) {
        bits = (uint32_t) p[i] << 16 | (i + 1 < len ? (uint32_t) p[i + 1] << 8 : 0)
               | (i + 2 < len ? p[i + 2] : 0);

        for (n = 0; n < 4 && n <= len - i; n++) {
            out[at++] = digits[bits >> (18 - 6 * n) & 63];
        }
    }

    out[at] = '\0';

    return at;
}


/* r and s side by side, out of DER. */
static inline size_t
jwt_raw_ecdsa(uint8_t *sig, size_t len)
{
    ECDSA_SIG      *parsed;
    const uint8_t  *p = sig;

    parsed = d2i_ECDSA_SIG(NULL, &p, (long) len);
    assert_non_null(parsed);
    assert_int_equal(BN_bn2binpad(ECDSA_SIG_get0_r(parsed), sig, 32), 32);
    assert_int_equal(BN_bn2binpad(ECDSA_SIG_get0_s(parsed), sig + 32, 32), 32);
    ECDSA_SIG_free(parsed);

    return 64;
}


/* Signs as alg says; key is unused for HS, which takes secret. */
static inline size_t
jwt_sign(const char *alg, EVP_PKEY *key, const char *secret, const char *text,
    uint8_t *sig, size_t cap)
{
    size_t         len = cap;
    EVP_MD_CTX    *ctx;
    EVP_PKEY_CTX  *pctx;

    if (strncmp(alg, "HS", 2) == 0) {
        char  digest[16];

        (void) snprintf(digest, sizeof(digest), "SHA%s", alg + 2);
        assert_non_null(EVP_Q_mac(NULL, "HMAC", NULL, digest, NULL, secret, strlen(secret),
            (const uint8_t *) text, strlen(text), sig, cap, &len));
        return len;
    }

    ctx = EVP_MD_CTX_new();
    assert_int_equal(EVP_DigestSignInit_ex(ctx, &pctx,
        strcmp(alg, "EdDSA") == 0 ? NULL : "SHA256", NULL, NULL, key, NULL), 1);

    if (strncmp(alg, "PS", 2) == 0) {
        EVP_PKEY_CTX_set_rsa_padding(pctx, RSA_PKCS1_PSS_PADDING);
        EVP_PKEY_CTX_set_rsa_pss_saltlen(pctx, RSA_PSS_SALTLEN_DIGEST);
    }

    assert_int_equal(EVP_DigestSign(ctx, sig, &len, (const uint8_t *) text, strlen(text)),
        1);
    EVP_MD_CTX_free(ctx);

    return strcmp(alg, "ES256") == 0 ? jwt_raw_ecdsa(sig, len) : len;
}


/* A token of these texts (' stands for "), signed as alg says; valid until the next
 * call. */
static inline char *
jwt_token(const char *alg, EVP_PKEY *key, const char *secret, const char *header,
    const char *payload)
{
    char         *p, text[JWT_TEXT_MAX];
    size_t        at, i;
    uint8_t       sig[2048];
    static char   token[2 * JWT_TEXT_MAX];
    const char   *part[2] = { header, payload };

    for (at = i = 0; i < 2; i++) {
        assert_true(strlen(part[i]) < sizeof(text));
        strcpy(text, part[i]);

        for (p = text; *p != '\0'; p++) {
            *p = *p == '\'' ? '"' : *p;
        }

        at = jwt_encode(token, at, text, strlen(text));

        if (i == 0) {
            token[at++] = '.';
        }
    }

    token[at] = '\0';
    i = jwt_sign(alg, key, secret, token, sig, sizeof(sig));
    token[at++] = '.';
    (void) jwt_encode(token, at, sig, i);

    return token;
}


/* The public half as PEM text; the caller frees it. */
static inline char *
jwt_pem(EVP_PKEY *key)
{
    BIO   *bio = BIO_new(BIO_s_mem());
    char  *data, *text;
    long   len;

    assert_int_equal(PEM_write_bio_PUBKEY(bio, key), 1);
    len = BIO_get_mem_data(bio, &data);
    text = strndup(data, (size_t) len);
    BIO_free(bio);

    return text;
}


/* A number of an RSA key, or a coordinate, as a JWK has it; the caller frees it. */
static inline char *
jwt_number(EVP_PKEY *key, const char *name, int len)
{
    char     text[2048];
    BIGNUM  *n = NULL;
    uint8_t  bytes[1024];

    assert_int_equal(EVP_PKEY_get_bn_param(key, name, &n), 1);
    len = len == 0 ? BN_num_bytes(n) : len;
    assert_int_equal(BN_bn2binpad(n, bytes, len), len);
    BN_free(n);
    (void) jwt_encode(text, 0, bytes, (size_t) len);

    return strdup(text);
}


/* The public half as a JWK; a new reference. */
static inline json_t *
jwt_jwk(EVP_PKEY *key)
{
    char      text[128], *a, *b;
    size_t    len = 32;
    json_t   *jwk;
    uint8_t   raw[32];

    if (EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519) {
        assert_int_equal(EVP_PKEY_get_raw_public_key(key, raw, &len), 1);
        (void) jwt_encode(text, 0, raw, len);
        return json_pack("{s:s, s:s, s:s}", "kty", "OKP", "crv", "Ed25519", "x", text);
    }

    if (EVP_PKEY_get_base_id(key) == EVP_PKEY_EC) {
        a = jwt_number(key, OSSL_PKEY_PARAM_EC_PUB_X, 32);
        b = jwt_number(key, OSSL_PKEY_PARAM_EC_PUB_Y, 32);
        jwk = json_pack("{s:s, s:s, s:s, s:s}", "kty", "EC", "crv", "P-256", "x", a, "y", b);

    } else {
        a = jwt_number(key, OSSL_PKEY_PARAM_RSA_N, 0);
        b = jwt_number(key, OSSL_PKEY_PARAM_RSA_E, 0);
        jwk = json_pack("{s:s, s:s, s:s}", "kty", "RSA", "n", a, "e", b);
    }

    free(a);
    free(b);

    return jwk;
}


/* The key of a description that must be good; takes the description. */
static inline tg_jwt_key_t *
jwt_key(json_t *description)
{
    tg_jwt_key_t        *key;
    tg_jwt_key_error_t   error;

    assert_non_null(description);
    key = tg_jwt_key_parse(description, &error);

    if (key == NULL) {
        fail_msg("%s at \"%s\": %s", error.code, error.pointer, error.reason);
    }

    json_decref(description);

    return key;
}

#endif /* TG_TEST_JWT_MAKE_H */
