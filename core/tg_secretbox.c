/*
 * Sealing and opening secrets. It keeps nothing: keys, nonces and contexts are the
 * caller's, and so is what a secret means.
 */

#include "tg_secretbox.h"

#include <stdlib.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>


#define TG_SECRETBOX_PREFIX      "v1:"
#define TG_SECRETBOX_KEY_ID_LEN  8          /* hex digits */
#define TG_SECRETBOX_HEAD        (sizeof(TG_SECRETBOX_PREFIX) - 1                \
                                  + TG_SECRETBOX_KEY_ID_LEN + 1)
#define TG_SECRETBOX_AROUND      (TG_SECRETBOX_NONCE_LEN + TG_SECRETBOX_TAG_LEN)


/* Tells keys apart without saying anything of them. */
static bool
tg_secretbox_key_id(const uint8_t key[TG_SECRETBOX_KEY_LEN],
    char id[TG_SECRETBOX_KEY_ID_LEN + 1])
{
    size_t    i;
    uint8_t   text[TG_SECRETBOX_KEY_LEN + 1], digest[EVP_MAX_MD_SIZE];

    static const char  hex[] = "0123456789abcdef";

    text[0] = 'k';
    memcpy(text + 1, key, TG_SECRETBOX_KEY_LEN);

    if (EVP_Digest(text, sizeof(text), digest, NULL, EVP_sha256(), NULL) != 1) {
        return false;
    }

    for (i = 0; i < TG_SECRETBOX_KEY_ID_LEN; i++) {
        id[i] = hex[(digest[i / 2] >> (i % 2 ? 0 : 4)) & 15];
    }

    id[i] = '\0';
    OPENSSL_cleanse(text, sizeof(text));

    return true;
}


static bool
tg_secretbox_encrypt(EVP_CIPHER_CTX *ctx, const uint8_t *key, const uint8_t *nonce,
    tg_str_t context, tg_str_t plain, uint8_t *out)
{
    int  n;

    return EVP_EncryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, key, nonce) == 1
           && EVP_EncryptUpdate(ctx, NULL, &n, (const uint8_t *) context.data,
                                (int) context.len) == 1
           && EVP_EncryptUpdate(ctx, out, &n, (const uint8_t *) plain.data,
                                (int) plain.len) == 1
           && EVP_EncryptFinal_ex(ctx, out + n, &n) == 1
           && EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_GET_TAG, TG_SECRETBOX_TAG_LEN,
                                  out + plain.len) == 1;
}


tg_rc_e
tg_secretbox_seal(const uint8_t key[TG_SECRETBOX_KEY_LEN],
    const uint8_t nonce[TG_SECRETBOX_NONCE_LEN], tg_str_t context,
    tg_str_t plain, tg_buf_t *out)
{
    char             id[TG_SECRETBOX_KEY_ID_LEN + 1];
    size_t           len;
    uint8_t         *raw, *text;
    tg_rc_e          rc;
    EVP_CIPHER_CTX  *ctx;

    if (plain.len > TG_SECRETBOX_PLAIN_MAX
        || context.len > TG_SECRETBOX_PLAIN_MAX)
    {
        return TG_E_LIMIT;
    }

    len = plain.len + TG_SECRETBOX_AROUND;
    raw = malloc(len);
    text = malloc((len + 2) / 3 * 4 + 1);
    ctx = EVP_CIPHER_CTX_new();
    rc = TG_E_NOMEM;

    if (raw && text && ctx && tg_secretbox_key_id(key, id)) {
        memcpy(raw, nonce, TG_SECRETBOX_NONCE_LEN);

        if (tg_secretbox_encrypt(ctx, key, nonce, context, plain,
                                 raw + TG_SECRETBOX_NONCE_LEN))
        {
            (void) EVP_EncodeBlock(text, raw, (int) len);
            rc = tg_buf_printf(out, TG_SECRETBOX_PREFIX "%s:%s", id,
                               (char *) text);
        }
    }

    EVP_CIPHER_CTX_free(ctx);
    free(text);
    free(raw);

    return rc;
}


/* The raw bytes of "v1:<key id>:<base64>", or NULL; *len without padding. */
static uint8_t *
tg_secretbox_raw(tg_str_t sealed, size_t *len)
{
    int       n;
    size_t    text_len, pad;
    uint8_t  *raw;

    if (sealed.len <= TG_SECRETBOX_HEAD
        || memcmp(sealed.data, TG_SECRETBOX_PREFIX,
                  sizeof(TG_SECRETBOX_PREFIX) - 1) != 0
        || sealed.data[TG_SECRETBOX_HEAD - 1] != ':')
    {
        return NULL;
    }

    text_len = sealed.len - TG_SECRETBOX_HEAD;

    if (text_len % 4 != 0
        || text_len > (TG_SECRETBOX_PLAIN_MAX + TG_SECRETBOX_AROUND + 2) / 3 * 4)
    {
        return NULL;
    }

    raw = malloc(text_len / 4 * 3);
    if (raw == NULL) {
        return NULL;
    }

    n = EVP_DecodeBlock(raw, (const uint8_t *) sealed.data + TG_SECRETBOX_HEAD,
                        (int) text_len);
    pad = 0;

    while (pad < 2 && sealed.data[sealed.len - 1 - pad] == '=') {
        pad++;
    }

    if (n < 0 || (size_t) n != text_len / 4 * 3
        || (size_t) n < TG_SECRETBOX_AROUND + pad)
    {
        free(raw);
        return NULL;
    }

    *len = (size_t) n - pad;

    return raw;
}


static bool
tg_secretbox_decrypt(EVP_CIPHER_CTX *ctx, const uint8_t *key, tg_str_t context,
    uint8_t *raw, size_t len, uint8_t *out)
{
    int     n;
    size_t  plain_len = len - TG_SECRETBOX_AROUND;

    return EVP_DecryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, key, raw) == 1
           && EVP_DecryptUpdate(ctx, NULL, &n, (const uint8_t *) context.data,
                                (int) context.len) == 1
           && EVP_DecryptUpdate(ctx, out, &n, raw + TG_SECRETBOX_NONCE_LEN,
                                (int) plain_len) == 1
           && EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_SET_TAG, TG_SECRETBOX_TAG_LEN,
                                  raw + len - TG_SECRETBOX_TAG_LEN) == 1
           && EVP_DecryptFinal_ex(ctx, out + n, &n) == 1;
}


tg_rc_e
tg_secretbox_open(const uint8_t key[TG_SECRETBOX_KEY_LEN], tg_str_t context,
    tg_str_t sealed, tg_buf_t *plain)
{
    size_t           len;
    uint8_t         *raw, *out;
    tg_rc_e          rc;
    EVP_CIPHER_CTX  *ctx;

    raw = tg_secretbox_raw(sealed, &len);
    if (raw == NULL) {
        return TG_E_SYNTAX;
    }

    out = malloc(len);
    ctx = EVP_CIPHER_CTX_new();
    rc = TG_E_NOMEM;

    if (out && ctx) {
        rc = tg_secretbox_names_key(key, sealed)
             && tg_secretbox_decrypt(ctx, key, context, raw, len, out)
             ? tg_buf_append(plain, out, len - TG_SECRETBOX_AROUND)
             : TG_E_INVALID;
        OPENSSL_cleanse(out, len);
    }

    EVP_CIPHER_CTX_free(ctx);
    free(out);
    free(raw);

    return rc;
}


bool
tg_secretbox_names_key(const uint8_t key[TG_SECRETBOX_KEY_LEN], tg_str_t sealed)
{
    char  id[TG_SECRETBOX_KEY_ID_LEN + 1];

    return sealed.len > TG_SECRETBOX_HEAD && tg_secretbox_key_id(key, id)
           && memcmp(sealed.data + sizeof(TG_SECRETBOX_PREFIX) - 1, id,
                     TG_SECRETBOX_KEY_ID_LEN) == 0;
}


void
tg_secretbox_wipe(tg_buf_t *plain)
{
    if (plain->data) {
        OPENSSL_cleanse(plain->data, plain->cap);
    }

    tg_buf_free(plain);
}
