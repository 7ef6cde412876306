/*
 * Public ids and labels. Responsible for their spelling; it must not know where
 * random bytes come from nor what an id names.
 */

#include "tg_ids.h"

#include <stdlib.h>

#include <openssl/evp.h>
#include <openssl/sha.h>


#define TG_ID_BASE         62
#define TG_ID_PART         10      /* digits that fit in 64 bits */
#define TG_ID_PART_BASE    UINT64_C(839299365868340224)    /* 62 to the power of 10 */
#define TG_ID_PREFIX_MAX   (TG_ID_MAX_LEN - TG_ID_BODY_LEN - 1)
#define TG_ID_LABEL_MAX    64

static const char tg_id_digits[TG_ID_BASE + 1] =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

static bool tg_id_is_digit(char c);


void
tg_id_make(const char *prefix, const uint8_t random[TG_ID_RANDOM_LEN],
    char id[TG_ID_MAX_LEN])
{
    size_t             i, len;
    uint64_t           part;
    unsigned __int128  bits;

    len = strnlen(prefix, TG_ID_PREFIX_MAX);
    memcpy(id, prefix, len);

    bits = 0;
    for (i = 0; i < TG_ID_RANDOM_LEN; i++) {
        bits = bits << 8 | random[i];
    }

    /* the most significant digit first: ids sort as their bits do. Division of 128
     * bits is dear, so it is done once for ten digits */
    part = 0;
    for (i = TG_ID_BODY_LEN; i > 0; i--) {
        if ((TG_ID_BODY_LEN - i) % TG_ID_PART == 0) {
            part = (uint64_t) (bits % TG_ID_PART_BASE);
            bits /= TG_ID_PART_BASE;
        }
        id[len + i - 1] = tg_id_digits[part % TG_ID_BASE];
        part /= TG_ID_BASE;
    }

    id[len + TG_ID_BODY_LEN] = '\0';
}


void
tg_id_derive(const char *prefix, tg_str_t scope, tg_str_t name,
    char id[TG_ID_MAX_LEN])
{
    bool         ok;
    uint8_t      digest[SHA256_DIGEST_LENGTH];
    EVP_MD_CTX  *ctx;

    ctx = EVP_MD_CTX_new();

    ok = ctx != NULL && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) == 1
         && EVP_DigestUpdate(ctx, prefix, strlen(prefix) + 1) == 1
         && EVP_DigestUpdate(ctx, scope.data, scope.len) == 1
         && EVP_DigestUpdate(ctx, "", 1) == 1
         && EVP_DigestUpdate(ctx, name.data, name.len) == 1
         && EVP_DigestFinal_ex(ctx, digest, NULL) == 1;

    EVP_MD_CTX_free(ctx);

    /* an id that names two things is worse than a process that has no memory */
    if (!ok) {
        abort();
    }

    tg_id_make(prefix, digest, id);
}


bool
tg_id_valid(const char *prefix, tg_str_t id)
{
    size_t  i, len;

    len = strlen(prefix);
    if (id.len != len + TG_ID_BODY_LEN || memcmp(id.data, prefix, len) != 0) {
        return false;
    }

    for (i = len; i < id.len; i++) {
        if (!tg_id_is_digit(id.data[i])) {
            return false;
        }
    }

    return true;
}


bool
tg_id_label_valid(tg_str_t label)
{
    char    c;
    size_t  i;

    if (label.len == 0 || label.len > TG_ID_LABEL_MAX) {
        return false;
    }

    for (i = 0; i < label.len; i++) {
        c = label.data[i];
        if (!tg_id_is_digit(c) && c != '_' && c != '.' && c != ':' && c != '-') {
            return false;
        }
    }

    return true;
}


static bool
tg_id_is_digit(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}
