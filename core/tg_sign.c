/*
 * Standard Webhooks: keys, signatures, verification. It signs the bytes that it is
 * given; what they are, and when it is now, the caller says.
 */

#include "tg_sign.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/params.h>


#define TG_SIGN_PREFIX     "whsec_"
#define TG_SIGN_VERSION    "v1,"
#define TG_SIGN_DIGEST     32
#define TG_SIGN_DERIVED    24       /* bytes of a derived secret */
#define TG_SIGN_BASE64     44       /* of the digest */
#define TG_SIGN_VALUE      (sizeof(TG_SIGN_VERSION) - 1 + TG_SIGN_BASE64)
#define TG_SIGN_TIME_MAX   19       /* digits that always fit int64 */


static int
tg_base64_value(char c)
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

    return c == '+' ? 62 : c == '/' ? 63 : -1;
}


/* Standard alphabet with padding, nothing else; -1 when it is not or passes cap. */
static ptrdiff_t
tg_base64_decode(tg_str_t text, uint8_t *out, size_t cap)
{
    int       value;
    size_t    i, pad = 0, n = 0;
    uint32_t  bits = 0;

    if (text.len == 0 || text.len % 4 != 0) {
        return -1;
    }

    while (pad < 2 && text.data[text.len - 1 - pad] == '=') {
        pad++;
    }

    for (i = 0; i < text.len - pad; i++) {
        value = tg_base64_value(text.data[i]);

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

    return (ptrdiff_t) n;
}


tg_rc_e
tg_sign_key_parse(tg_str_t secret, tg_sign_key_t *key)
{
    ptrdiff_t     n;
    const size_t  prefix = sizeof(TG_SIGN_PREFIX) - 1;

    memset(key, 0, sizeof(*key));

    if (secret.len > TG_SIGN_SECRET_MAX) {
        return TG_E_INVALID;
    }

    if (secret.len >= prefix && memcmp(secret.data, TG_SIGN_PREFIX, prefix) == 0) {
        secret.data += prefix;
        secret.len -= prefix;
    }

    n = tg_base64_decode(secret, key->key, TG_SIGN_KEY_MAX);

    if (n <= 0) {
        OPENSSL_cleanse(key, sizeof(*key));
        return TG_E_INVALID;
    }

    key->len = (size_t) n;

    return TG_OK;
}


/* The algorithm is not kept: code of a module that is unloaded before OpenSSL cleans
 * up could give it back neither in time nor after. */
static EVP_MAC_CTX *
tg_sign_mac(void)
{
    EVP_MAC      *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    EVP_MAC_CTX  *ctx = mac == NULL ? NULL : EVP_MAC_CTX_new(mac);

    EVP_MAC_free(mac);

    return ctx;
}


/* Writes "v1,<base64>" and NUL for the signed text id.timestamp.body. */
static tg_rc_e
tg_sign_value(const tg_sign_key_t *key, tg_str_t id, tg_str_t timestamp, tg_str_t body,
    char value[TG_SIGN_VALUE + 1])
{
    char             name[] = "SHA256";
    bool             good;
    size_t           len = 0;
    uint8_t          digest[TG_SIGN_DIGEST];
    OSSL_PARAM       params[2];
    EVP_MAC_CTX     *ctx;
    const uint8_t   *dot = (const uint8_t *) ".";

    ctx = tg_sign_mac();
    if (ctx == NULL) {
        return TG_E_NOMEM;
    }

    params[0] = OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, name, 0);
    params[1] = OSSL_PARAM_construct_end();

    good = EVP_MAC_init(ctx, key->key, key->len, params)
           && EVP_MAC_update(ctx, (const uint8_t *) id.data, id.len)
           && EVP_MAC_update(ctx, dot, 1)
           && EVP_MAC_update(ctx, (const uint8_t *) timestamp.data, timestamp.len)
           && EVP_MAC_update(ctx, dot, 1)
           && (body.len == 0
               || EVP_MAC_update(ctx, (const uint8_t *) body.data, body.len))
           && EVP_MAC_final(ctx, digest, &len, sizeof(digest))
           && len == sizeof(digest);

    EVP_MAC_CTX_free(ctx);

    if (!good) {
        return TG_E_NOMEM;
    }

    memcpy(value, TG_SIGN_VERSION, sizeof(TG_SIGN_VERSION) - 1);
    (void) EVP_EncodeBlock((uint8_t *) value + sizeof(TG_SIGN_VERSION) - 1, digest,
        (int) sizeof(digest));

    return TG_OK;
}


/* A dot inside the id would let two different messages have one signed text. */
static bool
tg_sign_id_valid(tg_str_t id)
{
    return id.len > 0 && memchr(id.data, '.', id.len) == NULL;
}


tg_rc_e
tg_sign_derive(tg_str_t master_key, tg_str_t project, tg_buf_t *secret)
{
    tg_buf_t  label;
    tg_rc_e   rc;
    uint8_t   digest[EVP_MAX_MD_SIZE], text[TG_SIGN_BASE64 + 1];

    tg_buf_init(&label, 1024);
    tg_buf_cstr(&label, "toolgate tool signing ");
    tg_buf_str(&label, project);
    rc = label.error;

    if (rc == TG_OK
        && HMAC(EVP_sha256(), master_key.data, (int) master_key.len,
                (const uint8_t *) label.data, label.len, digest, NULL) == NULL)
    {
        rc = TG_E_NOMEM;
    }

    if (rc == TG_OK) {
        (void) EVP_EncodeBlock(text, digest, TG_SIGN_DERIVED);
        rc = tg_buf_printf(secret, TG_SIGN_PREFIX "%s", (char *) text);
    }

    tg_buf_free(&label);

    return rc;
}


tg_rc_e
tg_sign(const tg_sign_key_t *key, tg_str_t id, int64_t timestamp, tg_str_t body,
    tg_buf_t *out)
{
    char       value[TG_SIGN_VALUE + 1];
    tg_rc_e    rc;
    tg_buf_t   digits;

    if (key->len == 0 || timestamp < 0 || !tg_sign_id_valid(id)) {
        return TG_E_INVALID;
    }

    tg_buf_init(&digits, TG_SIGN_TIME_MAX);

    rc = tg_buf_int(&digits, timestamp);
    if (rc == TG_OK) {
        rc = tg_sign_value(key, id, tg_buf_get(&digits), body, value);
    }

    tg_buf_free(&digits);

    return rc == TG_OK ? tg_buf_append(out, value, TG_SIGN_VALUE) : rc;
}


/* Whole seconds in decimal, as they are sent: no sign, no fraction. */
static bool
tg_sign_time_parse(tg_str_t text, int64_t *value)
{
    size_t   i;
    int64_t  n = 0;

    if (text.len == 0 || text.len >= TG_SIGN_TIME_MAX) {
        return false;
    }

    for (i = 0; i < text.len; i++) {

        if (text.data[i] < '0' || text.data[i] > '9') {
            return false;
        }

        n = n * 10 + (text.data[i] - '0');
    }

    *value = n;

    return true;
}


static bool
tg_sign_listed(tg_str_t list, const char *value)
{
    size_t       len;
    const char  *space, *p = list.data, *end = list.data + list.len;

    while (p < end) {
        space = memchr(p, ' ', (size_t) (end - p));
        len = space == NULL ? (size_t) (end - p) : (size_t) (space - p);

        if (len == TG_SIGN_VALUE && CRYPTO_memcmp(p, value, TG_SIGN_VALUE) == 0) {
            return true;
        }

        p += len + 1;
    }

    return false;
}


bool
tg_sign_verify(const tg_sign_key_t *key, tg_str_t id, tg_str_t timestamp,
    tg_str_t signature, tg_str_t body, int64_t now)
{
    char     value[TG_SIGN_VALUE + 1];
    int64_t  then;

    if (key->len == 0 || signature.len == 0 || !tg_sign_id_valid(id)
        || !tg_sign_time_parse(timestamp, &then))
    {
        return false;
    }

    if (now < 0 || (now > then ? now - then : then - now) > TG_SIGN_TOLERANCE_S) {
        return false;
    }

    return tg_sign_value(key, id, timestamp, body, value) == TG_OK
           && tg_sign_listed(signature, value);
}
