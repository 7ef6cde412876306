/*
 * Secrets as patterns, and the walk over a text. What one pattern looks like when
 * it is escaped is in tg_mask_match.c.
 */

#include <stdlib.h>

#include "tg_clean.h"
#include "tg_mask_internal.h"
#include "tg_utf8.h"


struct tg_mask_s {
    tg_mask_pattern_t  *first[256];   /* by their first byte */
    tg_mask_pattern_t  *all;
};


static tg_rc_e tg_mask_pattern(tg_mask_t *mask, tg_str_t text, bool alone,
    bool base64);
static tg_rc_e tg_mask_base64(tg_mask_t *mask, tg_str_t secret);
static size_t tg_mask_at(const tg_mask_t *mask, tg_str_t text, size_t at,
    bool open);
static size_t tg_mask_found(const tg_mask_pattern_t *pattern, tg_str_t text,
    size_t at, bool open);
static size_t tg_mask_region(const tg_mask_t *mask, tg_str_t text, size_t at,
    bool open);
static bool tg_mask_touched(tg_str_t text, size_t start, size_t end);


tg_mask_t *
tg_mask_new(void)
{
    return calloc(1, sizeof(tg_mask_t));
}


void
tg_mask_free(tg_mask_t *mask)
{
    tg_mask_pattern_t  *pattern;

    if (mask == NULL) {
        return;
    }

    while (mask->all != NULL) {
        pattern = mask->all;
        mask->all = pattern->next;
        explicit_bzero(pattern->data, pattern->len);
        free(pattern);
    }

    free(mask);
}


tg_rc_e
tg_mask_add(tg_mask_t *mask, tg_str_t secret)
{
    bool      alone = secret.len < TG_MASK_SHORT;
    tg_rc_e   rc;
    tg_buf_t  cleaned;

    if (secret.len == 0) {
        return TG_OK;
    }

    if (secret.len > TG_MASK_SECRET_MAX) {
        return TG_E_LIMIT;
    }

    rc = tg_mask_pattern(mask, secret, alone, false);

    /* a text that was cleaned holds it without what cleaning takes out */

    tg_buf_init(&cleaned, 2 * TG_MASK_SECRET_MAX);

    if (rc == TG_OK) {
        rc = tg_clean_value(secret, 0, &cleaned);
    }

    if (rc == TG_OK && cleaned.len != 0 && !tg_str_eq(secret, tg_buf_get(&cleaned))) {
        rc = tg_mask_pattern(mask, tg_buf_get(&cleaned),
                             cleaned.len < TG_MASK_SHORT, false);
    }

    if (cleaned.data != NULL) {
        explicit_bzero(cleaned.data, cleaned.cap);
    }

    tg_buf_free(&cleaned);

    return rc == TG_OK ? tg_mask_base64(mask, secret) : rc;
}


static tg_rc_e
tg_mask_pattern(tg_mask_t *mask, tg_str_t text, bool alone, bool base64)
{
    uint8_t             first = (uint8_t) text.data[0];
    tg_mask_pattern_t  *pattern;

    for (pattern = mask->first[first]; pattern != NULL; pattern = pattern->same) {

        if (pattern->alone == alone && pattern->base64 == base64
            && tg_str_eq(text, (tg_str_t) { pattern->len, pattern->data }))
        {
            return TG_OK;
        }
    }

    pattern = malloc(sizeof(tg_mask_pattern_t) + text.len);
    if (pattern == NULL) {
        return TG_E_NOMEM;
    }

    pattern->len = text.len;
    pattern->alone = alone;
    pattern->base64 = base64;
    memcpy(pattern->data, text.data, text.len);

    pattern->same = mask->first[first];
    mask->first[first] = pattern;
    pattern->next = mask->all;
    mask->all = pattern;

    return TG_OK;
}


/*
 * What the secret makes of base64 at each of the three places that it can have in
 * a longer text, without the characters that it shares with its neighbours.
 */
static tg_rc_e
tg_mask_base64(tg_mask_t *mask, tg_str_t secret)
{
    char               *text;
    size_t              shift, bit, bits, n;
    tg_rc_e             rc = TG_OK;
    uint32_t            pair;
    static const char   letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                    "0123456789+/";

    text = malloc(secret.len * 4 / 3 + 4);
    if (text == NULL) {
        return TG_E_NOMEM;
    }

    bits = secret.len * 8;

    /* shift: bits of the secret before its first character that is whole */

    for (shift = 0; shift <= 4 && rc == TG_OK; shift += 2) {

        for (bit = shift, n = 0; bit + 6 <= bits; bit += 6) {
            pair = (uint32_t) (uint8_t) secret.data[bit / 8] << 8;

            if (bit / 8 + 1 < secret.len) {
                pair |= (uint8_t) secret.data[bit / 8 + 1];
            }

            text[n++] = letters[pair >> (10 - bit % 8) & 63];
        }

        if (n >= TG_MASK_BASE64_MIN) {
            rc = tg_mask_pattern(mask, (tg_str_t) { n, text }, false, true);
        }
    }

    explicit_bzero(text, secret.len * 4 / 3 + 4);
    free(text);

    return rc;
}


tg_rc_e
tg_mask_text(const tg_mask_t *mask, tg_str_t text, bool open, size_t max,
    tg_buf_t *out, bool *whole)
{
    size_t   i, n, plain, edge = 0, used = 0;
    int32_t  cp;

    *whole = true;

    for (i = plain = 0; i < text.len; i += n) {

        n = mask != NULL ? tg_mask_region(mask, text, i, open) : 0;

        if (n != 0) {
            tg_buf_append(out, text.data + plain, i - plain);
            plain = i + n;

            if (max - used < sizeof(TG_MASK_TEXT) - 1) {
                *whole = false;
                return out->error;
            }

            tg_buf_cstr(out, TG_MASK_TEXT);
            used += sizeof(TG_MASK_TEXT) - 1;
            continue;
        }

        if (i < edge) {

            /* inside of a character: a secret may be no UTF-8 */
            n = 1;
            continue;
        }

        n = tg_utf8_next(text.data + i, text.len - i, &cp);

        /* a pattern that begins within backslashes begins at the first of them */

        while (text.data[i] == '\\' && i + n < text.len && text.data[i + n] == '\\'
               && used + n < max)
        {
            n++;
        }

        if (n > max - used) {
            *whole = false;
            break;
        }

        used += n;
        edge = i + n;

        if (text.data[i] != '\\') {
            n = 1;
        }
    }

    if (i > plain) {
        tg_buf_append(out, text.data + plain, i - plain);
    }

    return out->error;
}


/* Bytes to mask at this place, with all that begins inside of them; 0: none. */
static size_t
tg_mask_region(const tg_mask_t *mask, tg_str_t text, size_t at, bool open)
{
    size_t  i, n, end;

    n = tg_mask_at(mask, text, at, open);
    end = at + n;

    for (i = at + 1; i < end; i++) {
        n = tg_mask_at(mask, text, i, open);

        if (i + n > end) {
            end = i + n;
        }
    }

    return end - at;
}


/* The longest match at this place. */
static size_t
tg_mask_at(const tg_mask_t *mask, tg_str_t text, size_t at, bool open)
{
    size_t                    i, n, count, best = 0;
    uint8_t                   firsts[TG_MASK_FIRSTS_MAX];
    const tg_mask_pattern_t  *pattern;

    count = tg_mask_firsts(text.data + at, text.len - at, firsts);

    if (count == 0) {

        for (pattern = mask->all; pattern != NULL; pattern = pattern->next) {
            n = tg_mask_found(pattern, text, at, open);
            best = n > best ? n : best;
        }
    }

    for (i = 0; i < count; i++) {

        for (pattern = mask->first[firsts[i]]; pattern != NULL; pattern = pattern->same) {
            n = tg_mask_found(pattern, text, at, open);
            best = n > best ? n : best;
        }
    }

    return best;
}


static size_t
tg_mask_found(const tg_mask_pattern_t *pattern, tg_str_t text, size_t at, bool open)
{
    size_t  n;

    n = tg_mask_match(pattern, text.data + at, text.len - at, open);

    return pattern->alone && n != 0 && tg_mask_touched(text, at, at + n) ? 0 : n;
}


static bool
tg_mask_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
           || (uint8_t) c >= 0x80;
}


/* True when the text goes on with a letter or digit at either side; the end of an
 * escape is none. */
static bool
tg_mask_touched(tg_str_t text, size_t start, size_t end)
{
    if (end < text.len && tg_mask_word(text.data[end])) {
        return true;
    }

    if (start == 0 || !tg_mask_word(text.data[start - 1])) {
        return false;
    }

    return !(start >= 2 && text.data[start - 2] == '\\')
           && !(start >= 3 && text.data[start - 3] == '%');
}
