/*
 * The UTF-8 rules of RFC 3629 in one place: what one well-formed sequence is and
 * how far a broken one reaches. It knows neither JSON nor what the text means.
 */

#ifndef TG_UTF8_H
#define TG_UTF8_H

#include "tg.h"


/* The bytes that may follow a lead byte: the first of them has its own range,
 * which is what keeps overlong forms, surrogates and U+110000 up out. */
typedef struct {
    uint8_t  follow;     /* continuation bytes; 0 for a byte that cannot lead */
    uint8_t  low;
    uint8_t  high;
} tg_utf8_lead_t;


/* What may follow a lead byte of 0x80 and above. */
static inline tg_utf8_lead_t
tg_utf8_lead(uint8_t c)
{
    if (c < 0xc2 || c > 0xf4) {
        return (tg_utf8_lead_t) { 0, 0, 0 };
    }

    if (c < 0xe0) {
        return (tg_utf8_lead_t) { 1, 0x80, 0xbf };
    }

    if (c < 0xf0) {
        return (tg_utf8_lead_t) { 2, c == 0xe0 ? 0xa0 : 0x80, c == 0xed ? 0x9f : 0xbf };
    }

    return (tg_utf8_lead_t) { 3, c == 0xf0 ? 0x90 : 0x80, c == 0xf4 ? 0x8f : 0xbf };
}


/*
 * Reads the character at p, len > 0 bytes long at most. Returns its length and
 * its code point; for a broken sequence the length of the part that cannot be
 * continued (at least 1), and *cp = -1.
 */
static inline size_t
tg_utf8_next(const char *p, size_t len, int32_t *cp)
{
    size_t          i;
    uint8_t         c, low, high;
    uint32_t        value;
    tg_utf8_lead_t  lead;

    c = (uint8_t) p[0];
    if (c < 0x80) {
        *cp = c;
        return 1;
    }

    *cp = -1;
    lead = tg_utf8_lead(c);
    if (lead.follow == 0) {
        return 1;
    }

    low = lead.low;
    high = lead.high;
    value = c & (0x3fU >> lead.follow);

    for (i = 1; i <= lead.follow; i++) {
        if (i == len || (uint8_t) p[i] < low || (uint8_t) p[i] > high) {
            return i;
        }
        value = value << 6 | ((uint8_t) p[i] & 0x3fU);
        low = 0x80;
        high = 0xbf;
    }

    *cp = (int32_t) value;
    return i;
}


/* Writes a code point that is not a surrogate; returns 1 to 4 bytes. */
static inline size_t
tg_utf8_encode(uint32_t cp, char dst[4])
{
    if (cp < 0x80) {
        dst[0] = (char) cp;
        return 1;
    }

    if (cp < 0x800) {
        dst[0] = (char) (0xc0 | cp >> 6);
        dst[1] = (char) (0x80 | (cp & 0x3f));
        return 2;
    }

    if (cp < 0x10000) {
        dst[0] = (char) (0xe0 | cp >> 12);
        dst[1] = (char) (0x80 | (cp >> 6 & 0x3f));
        dst[2] = (char) (0x80 | (cp & 0x3f));
        return 3;
    }

    dst[0] = (char) (0xf0 | cp >> 18);
    dst[1] = (char) (0x80 | (cp >> 12 & 0x3f));
    dst[2] = (char) (0x80 | (cp >> 6 & 0x3f));
    dst[3] = (char) (0x80 | (cp & 0x3f));
    return 4;
}

#endif /* TG_UTF8_H */
