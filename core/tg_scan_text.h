/*
 * Passes over the plain bytes of a JSON string: valid UTF-8 without quotes,
 * backslashes and control characters. This is where a big body spends its time,
 * so 16 bytes are judged at once where the machine can. It keeps no state: a
 * character that is cut by the end of the input is left to the caller.
 */

#ifndef TG_SCAN_TEXT_H
#define TG_SCAN_TEXT_H

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "tg.h"
#include "tg_utf8.h"


#define TG_SCAN_TEXT_LONG  4    /* plain blocks after which text counts as long */


/* Character by character; also judges what the wide versions leave. */
static inline const char *
tg_scan_text_narrow(const char *p, const char *end)
{
    size_t   n;
    uint8_t  c;
    int32_t  cp;

    while (p < end) {
        c = (uint8_t) *p;

        if (c >= 0x80) {
            n = tg_utf8_next(p, (size_t) (end - p), &cp);
            if (cp < 0) {
                break;
            }
            p += n;
            continue;
        }

        if (c < 0x20 || c == '"' || c == '\\') {
            break;
        }
        p++;
    }

    return p;
}


/* True when all 8 bytes are plain ASCII. */
static inline bool
tg_scan_text_word_plain(const char *p)
{
    uint64_t  w, quote, slash;

    const uint64_t  ones = 0x0101010101010101, tops = 0x8080808080808080;

    memcpy(&w, p, sizeof(w));
    quote = w ^ ones * '"';
    slash = w ^ ones * '\\';

    /* x - 1 borrows into the top bit of a zero byte; the same for below 0x20 */
    return ((w | (w - ones * 0x20) | (quote - ones) | (slash - ones)) & tops) == 0;
}


/* For machines without a wide version. */
static inline const char *
tg_scan_text_portable(const char *p, const char *end)
{
    const char  *stop, *next;

    while (end - p >= 8) {
        if (tg_scan_text_word_plain(p)) {
            p += 8;
            continue;
        }

        /* at least one character of this word is judged alone */
        stop = end - p > 16 ? p + 16 : end;
        next = tg_scan_text_narrow(p, stop);
        if (next == p) {
            break;
        }
        p = next;
    }

    return tg_scan_text_narrow(p, end);
}


#if defined(__SSE2__)

static inline __m128i
tg_scan_text_special(__m128i v)
{
    /* bytes are signed here: those from 0x80 are below 0x20 too */
    return _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')),
                                     _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'))),
                        _mm_cmplt_epi8(v, _mm_set1_epi8(0x20)));
}


static inline uint32_t
tg_scan_text_above(__m128i v, uint8_t c)
{
    return (uint32_t) _mm_movemask_epi8(_mm_cmpgt_epi8(v, _mm_set1_epi8((char) c)));
}


static inline uint32_t
tg_scan_text_equal(__m128i v, uint8_t c)
{
    return (uint32_t) _mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_set1_epi8((char) c)));
}


/* Bits of the second bytes that their lead byte does not allow. */
static inline uint32_t
tg_scan_text_bad_seconds(__m128i v, uint32_t follow, uint32_t lead4)
{
    uint32_t  bad, above;

    above = tg_scan_text_above(v, 0x9f);
    bad = ((tg_scan_text_equal(v, 0xe0) << 1) & ~above)
          | ((tg_scan_text_equal(v, 0xed) << 1) & above);

    if (lead4 != 0) {
        above = tg_scan_text_above(v, 0x8f);
        bad |= ((tg_scan_text_equal(v, 0xf0) << 1) & ~above)
               | ((tg_scan_text_equal(v, 0xf4) << 1) & above);
    }

    return bad & follow;
}


/*
 * Judges the UTF-8 of the first limit bytes of a block. The byte at limit, when it
 * is in the block, is ASCII. high: bits of the bytes from 0x80. Returns how many
 * bytes are whole characters, 0 when there is something wrong among them.
 */
static inline size_t
tg_scan_text_block(__m128i v, uint32_t high, uint32_t limit)
{
    uint32_t  lead, lead3, lead4, follow, want, bad, mask;

    lead = tg_scan_text_above(v, 0xbf) & high;
    follow = high & ~lead;
    lead3 = tg_scan_text_above(v, 0xdf) & high;
    lead4 = 0;
    bad = lead & ~tg_scan_text_above(v, 0xc1);

    if (lead3 != 0) {
        lead4 = tg_scan_text_above(v, 0xef) & high;
        bad |= (tg_scan_text_above(v, 0xf4) & high)
               | tg_scan_text_bad_seconds(v, follow, lead4);
    }

    /* each lead byte wants its continuation bytes, and nothing else may be one */
    want = lead << 1 | lead3 << 2 | lead4 << 3;
    mask = limit == 16 ? 0xffff : (2U << limit) - 1;

    if ((((want ^ follow) | bad) & mask) != 0) {
        return 0;
    }

    /* a character that goes on behind the block is judged with the next one */
    if (limit == 16 && want >> 16 != 0) {
        return 31 - (size_t) __builtin_clz(lead);
    }

    return limit;
}


static inline const char *
tg_scan_text_sse2(const char *p, const char *end)
{
    size_t    n;
    __m128i   v;
    uint32_t  special, high, stop, limit, plain;

    plain = 0;

    while (end - p >= 16) {
        v = _mm_loadu_si128((const __m128i *) (const void *) p);
        special = (uint32_t) _mm_movemask_epi8(tg_scan_text_special(v));

        if (special == 0) {
            p += 16;
            plain++;

            /* ASCII that has gone on for a while may go on: four blocks, one branch */
            while (plain >= TG_SCAN_TEXT_LONG && end - p >= 64) {
                const __m128i  *b = (const __m128i *) (const void *) p;

                v = _mm_or_si128(
                    _mm_or_si128(tg_scan_text_special(_mm_loadu_si128(b)),
                                 tg_scan_text_special(_mm_loadu_si128(b + 1))),
                    _mm_or_si128(tg_scan_text_special(_mm_loadu_si128(b + 2)),
                                 tg_scan_text_special(_mm_loadu_si128(b + 3))));
                if (_mm_movemask_epi8(v) != 0) {
                    plain = 0;
                    break;
                }
                p += 64;
            }
            continue;
        }

        high = (uint32_t) _mm_movemask_epi8(v);
        stop = special & ~high;
        limit = stop == 0 ? 16 : (uint32_t) __builtin_ctz(stop);

        if ((high & ((1U << limit) - 1)) == 0) {
            return p + limit;
        }

        n = tg_scan_text_block(v, high, limit);
        p += n;
        if (n == 0 || stop != 0) {
            return p;
        }
    }

    return p;
}


/* 64 bytes of text, a bit for each. */
typedef struct {
    uint64_t  slash;     /* backslashes */
    uint64_t  stop;      /* quotes, control characters, what is not ASCII */
} tg_scan_text_mask_t;


static inline tg_scan_text_mask_t
tg_scan_text_masks(const char *p)
{
    unsigned             i;
    __m128i              v, stop;
    tg_scan_text_mask_t  mask;

    mask = (tg_scan_text_mask_t) { 0 };

    for (i = 0; i < 64; i += 16) {
        v = _mm_loadu_si128((const __m128i *) (const void *) (p + i));
        stop = _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')),
                            _mm_cmplt_epi8(v, _mm_set1_epi8(0x20)));

        mask.slash |= (uint64_t) tg_scan_text_equal(v, '\\') << i;
        mask.stop |= (uint64_t) (uint32_t) _mm_movemask_epi8(stop) << i;
    }

    return mask;
}


/*
 * Passes over ASCII and escapes of one letter, which unescape knows, 64 bytes at a
 * time. Returns where something else begins, or where fewer bytes are left.
 */
static inline const char *
tg_scan_text_escaped(const char *p, const char *end, const char unescape[256],
    bool *escaped)
{
    uint64_t             pair;
    unsigned             n, width;
    tg_scan_text_mask_t  mask;

    while (end - p > 64 && *p >= 0) {
        mask = tg_scan_text_masks(p);
        width = 64;

        while (mask.slash != 0) {
            n = (unsigned) __builtin_ctzll(mask.slash);

            if ((mask.stop & ((UINT64_C(1) << n) - 1)) != 0) {
                break;
            }

            if (unescape[(uint8_t) p[n + 1]] == 0) {
                return p + n;
            }

            /* the letter may be a quote or a backslash, and in the next 64 bytes */
            *escaped = true;
            pair = UINT64_C(3) << n;
            mask.slash &= ~pair;
            mask.stop &= ~pair;
            width = n == 63 ? 65 : 64;
        }

        if (mask.stop != 0) {
            return p + __builtin_ctzll(mask.stop);
        }

        p += width;
    }

    return p;
}

#else

static inline const char *
tg_scan_text_escaped(const char *p, const char *end, const char unescape[256],
    bool *escaped)
{
    (void) end;
    (void) unescape;
    (void) escaped;

    return p;
}

#endif


/* The first byte from p that is not a whole plain character, or end. */
static inline const char *
tg_scan_text(const char *p, const char *end)
{
#if defined(__SSE2__)
    return tg_scan_text_narrow(tg_scan_text_sse2(p, end), end);
#else
    return tg_scan_text_portable(p, end);
#endif
}

#endif /* TG_SCAN_TEXT_H */
