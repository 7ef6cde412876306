/*
 * Public keys as texts: PEM and JWK into OpenSSL's form, and the rules for what
 * comes out: the kind of key that the algorithm needs, its size, its curve. What
 * holds a private key is refused, so that none lies where only a public one should.
 */

#include "tg_jwt_int.h"

#include <limits.h>

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "tg_json.h"


#define TG_JWT_P256_NAME   "prime256v1"
#define TG_JWT_POINT_LEN   (1 + 2 * TG_JWT_P256_LEN)
#define TG_JWT_E_MAX       ((TG_JWT_RSA_MAX_E_BITS + 7) / 8)


static const char *
tg_jwt_rsa_fault(const EVP_PKEY *key)
{
    int          bits = EVP_PKEY_get_bits(key);
    bool         good;
    BIGNUM      *e = NULL;

    if (bits < TG_JWT_RSA_MIN_BITS || bits > TG_JWT_RSA_MAX_BITS) {
        return "an RSA key has 2048 to 8192 bits";
    }

    /* with an exponent of one every number would be its own signature */

    good = EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_RSA_E, &e) == 1 && BN_is_odd(e)
           && !BN_is_one(e) && BN_num_bits(e) <= TG_JWT_RSA_MAX_E_BITS;

    BN_free(e);

    return good ? NULL : "the exponent of the RSA key is not an odd number from 3 to 2^33";
}


static bool
tg_jwt_is_p256(EVP_PKEY *key)
{
    char           name[32];
    bool           good;
    size_t         len;
    EVP_PKEY_CTX  *ctx;

    if (EVP_PKEY_get_utf8_string_param(key, OSSL_PKEY_PARAM_GROUP_NAME, name,
            sizeof(name), &len) != 1
        || strcmp(name, TG_JWT_P256_NAME) != 0)
    {
        return false;
    }

    ctx = EVP_PKEY_CTX_new_from_pkey(NULL, key, NULL);
    good = ctx != NULL && EVP_PKEY_public_check(ctx) == 1;
    EVP_PKEY_CTX_free(ctx);

    return good;
}


/* Why this key cannot serve the algorithm; NULL when it can. */
static const char *
tg_jwt_public_fault(EVP_PKEY *key, const tg_jwt_alg_t *alg)
{
    int  id = EVP_PKEY_get_base_id(key);

    switch (alg->family) {

    case TG_JWT_RSA:
    case TG_JWT_RSA_PSS:

        if (id != EVP_PKEY_RSA
            && !(id == EVP_PKEY_RSA_PSS && alg->family == TG_JWT_RSA_PSS))
        {
            return "this alg needs an RSA key";
        }

        return tg_jwt_rsa_fault(key);

    case TG_JWT_EC:
        return id == EVP_PKEY_EC && tg_jwt_is_p256(key) ? NULL
               : "ES256 needs a key on the curve P-256";

    case TG_JWT_ED25519:
        return id == EVP_PKEY_ED25519 ? NULL : "EdDSA needs an Ed25519 key";

    case TG_JWT_HMAC:
        break;
    }

    return "this alg has no public key";
}


/* The end of both ways: checks the key or frees it. */
static EVP_PKEY *
tg_jwt_public_done(EVP_PKEY *key, const tg_jwt_alg_t *alg, const char *unreadable,
    const char **reason)
{
    *reason = key == NULL ? unreadable : tg_jwt_public_fault(key, alg);

    ERR_clear_error();

    if (*reason != NULL) {
        EVP_PKEY_free(key);
        return NULL;
    }

    return key;
}


/* Whether nothing but the end of a line follows. */
static bool
tg_jwt_at_end(BIO *bio)
{
    char  c;

    while (BIO_read(bio, &c, 1) == 1) {
        if (c != '\n' && c != '\r' && c != ' ') {
            return false;
        }
    }

    return true;
}


/* The bytes of a block by its label; NULL when they are no such key. */
static EVP_PKEY *
tg_jwt_pem_key(const char *label, const uint8_t *data, long len)
{
    EVP_PKEY       *key = NULL;
    const uint8_t  *p = data;

    if (strcmp(label, PEM_STRING_PUBLIC) == 0) {
        key = d2i_PUBKEY(NULL, &p, len);

    } else if (strcmp(label, PEM_STRING_RSA_PUBLIC) == 0) {
        key = d2i_PublicKey(EVP_PKEY_RSA, NULL, &p, len);
    }

    if (key != NULL && p != data + len) {
        EVP_PKEY_free(key);
        return NULL;
    }

    return key;
}


EVP_PKEY *
tg_jwt_public_pem(tg_str_t text, const tg_jwt_alg_t *alg, const char **reason)
{
    BIO         *bio;
    long         len;
    char        *label = NULL, *header = NULL;
    uint8_t     *data = NULL;
    EVP_PKEY    *key = NULL;
    const char  *unreadable = "this is neither a PEM text nor a JWK";

    if (text.len > INT_MAX) {
        *reason = unreadable;
        return NULL;
    }

    bio = BIO_new_mem_buf(text.data, (int) text.len);

    if (bio == NULL) {
        *reason = NULL;
        return NULL;
    }

    /* OpenSSL would look past any text for the first block */

    if (text.len > sizeof(TG_JWT_PEM_BEGIN)
        && memcmp(text.data, TG_JWT_PEM_BEGIN, sizeof(TG_JWT_PEM_BEGIN) - 1) == 0
        && PEM_read_bio(bio, &label, &header, &data, &len) == 1)
    {
        if (strstr(label, "PRIVATE") != NULL) {
            unreadable = "this is a private key: give the public one only, and replace "
                         "the pair";

        } else if (strcmp(label, PEM_STRING_PUBLIC) != 0
                   && strcmp(label, PEM_STRING_RSA_PUBLIC) != 0)
        {
            unreadable = "a PEM text is a \"PUBLIC KEY\" or an \"RSA PUBLIC KEY\"";

        } else if (!tg_jwt_at_end(bio) || header[0] != '\0') {
            unreadable = "a PEM text is one public key and nothing else";

        } else {
            unreadable = "the PEM text does not hold a public key";
            key = tg_jwt_pem_key(label, data, len);
        }

        OPENSSL_clear_free(data, (size_t) len);
    }

    OPENSSL_free(label);
    OPENSSL_free(header);
    BIO_free(bio);

    return tg_jwt_public_done(key, alg, unreadable, reason);
}


/* Decodes a member into at most cap bytes; 0 when it is not there or is too long. */
static size_t
tg_jwt_jwk_bytes(const json_t *jwk, const char *name, uint8_t *out, size_t cap)
{
    ptrdiff_t  n = tg_jwt_base64url(tg_json_get_string(jwk, name), out, cap);

    return n < 0 ? 0 : (size_t) n;
}


/* Makes a key of a type from parameters, which are taken. */
static EVP_PKEY *
tg_jwt_jwk_make(const char *type, OSSL_PARAM_BLD *build, bool pushed)
{
    EVP_PKEY      *key = NULL;
    OSSL_PARAM    *params;
    EVP_PKEY_CTX  *ctx;

    params = pushed ? OSSL_PARAM_BLD_to_param(build) : NULL;
    ctx = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);

    if (params != NULL && ctx != NULL && EVP_PKEY_fromdata_init(ctx) == 1
        && EVP_PKEY_fromdata(ctx, &key, EVP_PKEY_PUBLIC_KEY, params) != 1)
    {
        key = NULL;
    }

    EVP_PKEY_CTX_free(ctx);
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(build);

    return key;
}


static EVP_PKEY *
tg_jwt_jwk_rsa(const json_t *jwk)
{
    bool             pushed;
    size_t           n_len, e_len;
    BIGNUM          *n, *e;
    uint8_t          n_bytes[TG_JWT_RSA_MAX_BITS / 8 + 1], e_bytes[TG_JWT_E_MAX];
    EVP_PKEY        *key;
    OSSL_PARAM_BLD  *build;

    n_len = tg_jwt_jwk_bytes(jwk, "n", n_bytes, sizeof(n_bytes));
    e_len = tg_jwt_jwk_bytes(jwk, "e", e_bytes, sizeof(e_bytes));

    if (n_len == 0 || e_len == 0) {
        return NULL;
    }

    n = BN_bin2bn(n_bytes, (int) n_len, NULL);
    e = BN_bin2bn(e_bytes, (int) e_len, NULL);
    build = OSSL_PARAM_BLD_new();

    pushed = n != NULL && e != NULL && build != NULL
             && OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_N, n) == 1
             && OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_E, e) == 1;

    key = tg_jwt_jwk_make("RSA", build, pushed);

    BN_free(n);
    BN_free(e);

    return key;
}


static EVP_PKEY *
tg_jwt_jwk_ec(const json_t *jwk)
{
    bool             pushed;
    uint8_t          point[TG_JWT_POINT_LEN] = { POINT_CONVERSION_UNCOMPRESSED };
    OSSL_PARAM_BLD  *build;

    /* any other curve fails here, by its name or by the length of its numbers */

    if (!tg_str_eq(tg_json_get_string(jwk, "crv"), tg_str("P-256"))
        || tg_jwt_jwk_bytes(jwk, "x", point + 1, TG_JWT_P256_LEN) != TG_JWT_P256_LEN
        || tg_jwt_jwk_bytes(jwk, "y", point + 1 + TG_JWT_P256_LEN, TG_JWT_P256_LEN)
           != TG_JWT_P256_LEN)
    {
        return NULL;
    }

    build = OSSL_PARAM_BLD_new();

    pushed = build != NULL
             && OSSL_PARAM_BLD_push_utf8_string(build, OSSL_PKEY_PARAM_GROUP_NAME,
                    TG_JWT_P256_NAME, 0) == 1
             && OSSL_PARAM_BLD_push_octet_string(build, OSSL_PKEY_PARAM_PUB_KEY, point,
                    sizeof(point)) == 1;

    return tg_jwt_jwk_make("EC", build, pushed);
}


static EVP_PKEY *
tg_jwt_jwk_okp(const json_t *jwk)
{
    uint8_t  x[TG_JWT_ED25519_LEN];

    if (!tg_str_eq(tg_json_get_string(jwk, "crv"), tg_str("Ed25519"))
        || tg_jwt_jwk_bytes(jwk, "x", x, sizeof(x)) != sizeof(x))
    {
        return NULL;
    }

    return EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, x, sizeof(x));
}


/* Whether the JWK itself says that it is for something else. */
static const char *
tg_jwt_jwk_purpose(const json_t *jwk, const tg_jwt_alg_t *alg)
{
    bool     verify = false;
    size_t   i;
    json_t  *use, *ops, *own, *op;

    use = json_object_get(jwk, "use");
    ops = json_object_get(jwk, "key_ops");
    own = json_object_get(jwk, "alg");

    if (use != NULL && !tg_str_eq(tg_json_get_string(jwk, "use"), tg_str("sig"))) {
        return "the JWK's use is not sig";
    }

    json_array_foreach(ops, i, op) {
        verify = verify || (json_is_string(op)
                            && strcmp(json_string_value(op), "verify") == 0);
    }

    if (ops != NULL && !verify) {
        return "the JWK's key_ops do not have verify";
    }

    if (own != NULL
        && !tg_str_eq(tg_json_get_string(jwk, "alg"), tg_str_of(alg->name)))
    {
        return "the JWK is for another alg";
    }

    return NULL;
}


EVP_PKEY *
tg_jwt_public_jwk(const json_t *jwk, const tg_jwt_alg_t *alg, const char **reason)
{
    size_t     i;
    tg_str_t   kty = tg_json_get_string(jwk, "kty");
    EVP_PKEY  *key = NULL;

    static const char *const  private[] = {
        "d", "p", "q", "dp", "dq", "qi", "oth", "k", NULL
    };

    for (i = 0; private[i] != NULL; i++) {
        if (json_object_get(jwk, private[i]) != NULL) {
            *reason = "this is a private key: give the public one only, and replace the "
                      "pair";
            return NULL;
        }
    }

    *reason = tg_jwt_jwk_purpose(jwk, alg);

    if (*reason != NULL) {
        return NULL;
    }

    if (tg_str_eq(kty, tg_str("RSA"))) {
        key = tg_jwt_jwk_rsa(jwk);

    } else if (tg_str_eq(kty, tg_str("EC"))) {
        key = tg_jwt_jwk_ec(jwk);

    } else if (tg_str_eq(kty, tg_str("OKP"))) {
        key = tg_jwt_jwk_okp(jwk);
    }

    return tg_jwt_public_done(key, alg,
        "the JWK is not a public key of kty RSA, EC (P-256) or OKP (Ed25519)", reason);
}
