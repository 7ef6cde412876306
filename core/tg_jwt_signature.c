/*
 * The signature of a token: the table of algorithms, base64url, and verification by
 * OpenSSL. It knows neither claims nor how keys are written down. OpenSSL's queue of
 * errors is left as empty as nginx wants it.
 */

#include "tg_jwt_int.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/rsa.h>


#define TG_JWT_ECDSA_DER_MAX  72    /* bytes of a P-256 signature in DER */


static const tg_jwt_alg_t  tg_jwt_algs[] = {
    { "HS256", TG_JWT_HMAC,    "SHA256", 32 },
    { "HS384", TG_JWT_HMAC,    "SHA384", 48 },
    { "HS512", TG_JWT_HMAC,    "SHA512", 64 },
    { "RS256", TG_JWT_RSA,     "SHA256", 0 },
    { "PS256", TG_JWT_RSA_PSS, "SHA256", 0 },
    { "ES256", TG_JWT_EC,      "SHA256", 2 * TG_JWT_P256_LEN },
    { "EdDSA", TG_JWT_ED25519, NULL,     64 }
};


const tg_jwt_alg_t *
tg_jwt_alg_find(tg_str_t name)
{
    size_t  i;

    for (i = 0; i < sizeof(tg_jwt_algs) / sizeof(tg_jwt_algs[0]); i++) {
        if (tg_str_eq(name, tg_str_of(tg_jwt_algs[i].name))) {
            return &tg_jwt_algs[i];
        }
    }

    return NULL;
}


static int
tg_jwt_base64url_value(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }

    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }

    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }

    return c == '-' ? 62 : c == '_' ? 63 : -1;
}


ptrdiff_t
tg_jwt_base64url(tg_str_t text, uint8_t *out, size_t cap)
{
    int       value;
    size_t    i, n = 0;
    uint32_t  bits = 0;

    if (text.len % 4 == 1) {
        return -1;
    }

    for (i = 0; i < text.len; i++) {
        value = tg_jwt_base64url_value(text.data[i]);

        if (value < 0) {
            return -1;
        }

        bits = bits << 6 | (uint32_t) value;

        if (i % 4 != 0) {

            if (n == cap) {
                return -1;
            }

            out[n++] = (uint8_t) (bits >> (6 - 2 * (i % 4)));
        }
    }

    /* bits that no byte takes: were they free, one token would have many forms */

    if ((text.len % 4 == 2 && (bits & 0x0f) != 0)
        || (text.len % 4 == 3 && (bits & 0x03) != 0))
    {
        return -1;
    }

    return (ptrdiff_t) n;
}


static bool
tg_jwt_hmac_good(const tg_jwt_key_t *key, tg_str_t text, const uint8_t *signature,
    size_t len)
{
    bool     good;
    size_t   n = 0;
    uint8_t  digest[EVP_MAX_MD_SIZE];

    good = EVP_Q_mac(NULL, OSSL_MAC_NAME_HMAC, NULL, key->alg->digest, NULL, key->secret,
               key->secret_len, (const uint8_t *) text.data, text.len, digest,
               sizeof(digest), &n) != NULL
           && n == len && CRYPTO_memcmp(digest, signature, n) == 0;

    OPENSSL_cleanse(digest, sizeof(digest));

    return good;
}


/* Makes the DER form, which OpenSSL wants, of r and s one after the other. */
static int
tg_jwt_ecdsa_der(const uint8_t *raw, uint8_t der[TG_JWT_ECDSA_DER_MAX])
{
    int         len = 0;
    BIGNUM     *r, *s;
    ECDSA_SIG  *sig;

    r = BN_bin2bn(raw, TG_JWT_P256_LEN, NULL);
    s = BN_bin2bn(raw + TG_JWT_P256_LEN, TG_JWT_P256_LEN, NULL);
    sig = ECDSA_SIG_new();

    if (r == NULL || s == NULL || sig == NULL || !ECDSA_SIG_set0(sig, r, s)) {
        BN_free(r);
        BN_free(s);
        ECDSA_SIG_free(sig);
        return 0;
    }

    if (i2d_ECDSA_SIG(sig, NULL) <= TG_JWT_ECDSA_DER_MAX) {
        len = i2d_ECDSA_SIG(sig, &der);
    }

    ECDSA_SIG_free(sig);

    return len;
}


static bool
tg_jwt_evp_good(const tg_jwt_key_t *key, tg_str_t text, const uint8_t *signature,
    size_t len)
{
    bool           good;
    EVP_MD_CTX    *ctx;
    EVP_PKEY_CTX  *pctx = NULL;

    ctx = EVP_MD_CTX_new();

    good = ctx != NULL
           && EVP_DigestVerifyInit_ex(ctx, &pctx, key->alg->digest, NULL, NULL,
                  key->public, NULL) == 1;

    if (good && key->alg->family == TG_JWT_RSA_PSS) {
        good = EVP_PKEY_CTX_set_rsa_padding(pctx, RSA_PKCS1_PSS_PADDING) == 1
               && EVP_PKEY_CTX_set_rsa_pss_saltlen(pctx, RSA_PSS_SALTLEN_DIGEST) == 1;
    }

    good = good && EVP_DigestVerify(ctx, signature, len, (const uint8_t *) text.data,
                       text.len) == 1;

    EVP_MD_CTX_free(ctx);

    return good;
}


bool
tg_jwt_signature_good(const tg_jwt_key_t *key, tg_str_t text, const uint8_t *signature,
    size_t len)
{
    int      n;
    bool     good;
    size_t   want = key->alg->signature;
    uint8_t  der[TG_JWT_ECDSA_DER_MAX];

    /* a shorter RSA signature is the same number, but not the same signature */

    if (want == 0) {
        want = (size_t) EVP_PKEY_get_size(key->public);
    }

    if (len != want) {
        return false;
    }

    switch (key->alg->family) {

    case TG_JWT_HMAC:
        good = tg_jwt_hmac_good(key, text, signature, len);
        break;

    case TG_JWT_EC:
        n = tg_jwt_ecdsa_der(signature, der);
        good = n > 0 && tg_jwt_evp_good(key, text, der, (size_t) n);
        break;

    default:
        good = tg_jwt_evp_good(key, text, signature, len);
        break;
    }

    ERR_clear_error();

    return good;
}
