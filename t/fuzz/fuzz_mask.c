/*
 * Masking: whatever the secret and the text, nothing of the secret is left in its
 * plain form, no bound is passed, and without a secret a text stays as it is.
 */

#include <stdlib.h>

#include "tg_mask.h"


#define SECRET_MAX  64


static void
check(bool holds)
{
    if (!holds) {
        abort();
    }
}


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool        open, whole;
    size_t      len, max;
    tg_buf_t    out;
    tg_str_t    secret, text;
    tg_mask_t  *mask;

    if (size < 4) {
        return 0;
    }

    /* the first bytes: how long the secret is, the bound, whether the text goes on */

    len = data[0] % SECRET_MAX;
    max = data[1] ? (size_t) data[1] * 16 : SIZE_MAX;
    open = data[2] & 1;
    data += 3;
    size -= 3;
    len = len < size ? len : size;

    secret = (tg_str_t) { len, (const char *) data };
    text = (tg_str_t) { size - len, (const char *) data + len };

    mask = tg_mask_new();
    check(mask != NULL && tg_mask_add(mask, secret) == TG_OK);

    tg_buf_init(&out, SIZE_MAX / 2);
    check(tg_mask_text(mask, text, open, max, &out, &whole) == TG_OK);
    check(out.len <= max);

    /* "***" may make a secret of stars */
    if (len >= TG_MASK_SHORT && memchr(secret.data, '*', len) == NULL) {
        check(out.len == 0 || memmem(out.data, out.len, secret.data, len) == NULL);
    }

    if (len == 0) {
        check(!whole || tg_str_eq(tg_buf_get(&out), text));
    }

    tg_buf_free(&out);
    tg_mask_free(mask);

    return 0;
}
