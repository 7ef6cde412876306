/*
 * The states of the scanner inside a string: text, characters that are cut by the
 * end of the input, escapes, surrogate pairs. Whether the string is a key or a
 * value matters only for who gets its bytes.
 */

#include "tg_scan_internal.h"

#include "tg_scan_text.h"


static const char *tg_scan_value_text(tg_scan_t *scan, const char *p, const char *end);
static const char *tg_scan_in_text(tg_scan_t *scan, const char *p, const char *end);
static const char *tg_scan_text_end(tg_scan_t *scan, const char *p);
static const char *tg_scan_in_character(tg_scan_t *scan, const char *p, const char *end);
static const char *tg_scan_escape(tg_scan_t *scan, const char *p, const char *end);
static const char *tg_scan_in_escape(tg_scan_t *scan, const char *p);
static const char *tg_scan_in_hex(tg_scan_t *scan, const char *p, const char *end);
static const char *tg_scan_unit(tg_scan_t *scan, const char *p, uint32_t unit);
static const char *tg_scan_low(tg_scan_t *scan, const char *p, char want,
    tg_scan_state_e next);


const char  tg_scan_unescape[256] = {
    ['"'] = '"', ['\\'] = '\\', ['/'] = '/', ['b'] = '\b', ['f'] = '\f',
    ['n'] = '\n', ['r'] = '\r', ['t'] = '\t'
};

const uint8_t  tg_scan_hex_digit[256] = {
    ['0'] = 0x10, ['1'] = 0x11, ['2'] = 0x12, ['3'] = 0x13, ['4'] = 0x14, ['5'] = 0x15,
    ['6'] = 0x16, ['7'] = 0x17, ['8'] = 0x18, ['9'] = 0x19,
    ['a'] = 0x1a, ['b'] = 0x1b, ['c'] = 0x1c, ['d'] = 0x1d, ['e'] = 0x1e, ['f'] = 0x1f,
    ['A'] = 0x1a, ['B'] = 0x1b, ['C'] = 0x1c, ['D'] = 0x1d, ['E'] = 0x1e, ['F'] = 0x1f
};


const char *
tg_scan_string_step(tg_scan_t *scan, const char *p, const char *end)
{
    switch (scan->state) {
    case TG_SCAN_IN_CHARACTER:
        return tg_scan_in_character(scan, p, end);
    case TG_SCAN_IN_ESCAPE:
        return tg_scan_in_escape(scan, p);
    case TG_SCAN_IN_HEX:
        return tg_scan_in_hex(scan, p, end);
    case TG_SCAN_AT_LOW_BACKSLASH:
        return tg_scan_low(scan, p, '\\', TG_SCAN_AT_LOW_U);
    case TG_SCAN_AT_LOW_U:
        return tg_scan_low(scan, p, 'u', TG_SCAN_IN_HEX);
    default:
        return tg_scan_in_text(scan, p, end);
    }
}


/* Text with escapes of one letter, which nobody decodes in a value. The compiler
 * takes this for a rare case: it is where a big body spends its time. */
static __attribute__((noinline, hot)) const char *
tg_scan_value_text(tg_scan_t *scan, const char *p, const char *end)
{
    bool  escaped;

    escaped = false;

    for ( ;; ) {
        p = tg_scan_text_escaped(p, end, tg_scan_unescape, &escaped);
        p = tg_scan_text(p, end);

        if (end - p < 2 || *p != '\\' || tg_scan_unescape[(uint8_t) p[1]] == 0) {
            break;
        }
        p += 2;
        escaped = true;
    }

    if (escaped) {
        scan->escaped = true;
    }

    return p;
}


static const char *
tg_scan_in_text(tg_scan_t *scan, const char *p, const char *end)
{
    uint8_t      c;
    const char  *from;

    for ( ;; ) {
        if (scan->in_key) {
            from = p;
            p = tg_scan_text(p, end);
            tg_scan_key_append(&scan->keys, &scan->builder, from, (size_t) (p - from));
        } else {
            p = tg_scan_value_text(scan, p, end);
        }

        if (p == end) {
            return p;
        }

        c = (uint8_t) *p;
        if (c == '"') {
            return tg_scan_text_end(scan, p + 1);
        }

        if (c != '\\') {
            break;
        }

        p = tg_scan_escape(scan, p, end);
        if (scan->state != TG_SCAN_IN_TEXT || p == NULL) {
            return p;
        }
    }

    if (c < 0x20) {
        return tg_scan_fail(scan, p, TG_E_SYNTAX, c == 0 ? "NUL byte"
                                                         : "control character in a string");
    }

    /* a character that the end of the input cuts, or a broken one */
    scan->lead = tg_utf8_lead(c);
    if (scan->lead.follow == 0) {
        return tg_scan_fail(scan, p, TG_E_SYNTAX, "invalid UTF-8");
    }

    if (scan->in_key) {
        tg_scan_key_append(&scan->keys, &scan->builder, p, 1);
    }
    scan->state = TG_SCAN_IN_CHARACTER;

    return p + 1;
}


/* A string ends before p. */
static const char *
tg_scan_text_end(tg_scan_t *scan, const char *p)
{
    if (scan->in_key) {
        scan->key = tg_scan_key_finish(&scan->keys, &scan->builder);
        return tg_scan_key_end(scan, p);
    }

    if (scan->escaped && scan->in_messages && scan->depth == TG_SCAN_RECORD_DEPTH) {
        tg_scan_record_escape(scan);
    }
    tg_scan_end(scan, p);

    return p;
}


static const char *
tg_scan_in_character(tg_scan_t *scan, const char *p, const char *end)
{
    for (/* void */; p < end && scan->lead.follow > 0; p++) {
        if ((uint8_t) *p < scan->lead.low || (uint8_t) *p > scan->lead.high) {
            return tg_scan_fail(scan, p, TG_E_SYNTAX, "invalid UTF-8");
        }

        if (scan->in_key) {
            tg_scan_key_append(&scan->keys, &scan->builder, p, 1);
        }

        scan->lead = (tg_utf8_lead_t) { (uint8_t) (scan->lead.follow - 1), 0x80, 0xbf };
    }

    if (scan->lead.follow == 0) {
        scan->state = TG_SCAN_IN_TEXT;
    }

    return p;
}


/* p is at a backslash. Takes a whole escape that lies in the input, else begins it. */
static const char *
tg_scan_escape(tg_scan_t *scan, const char *p, const char *end)
{
    int32_t  unit;

    scan->escaped = true;

    if (!scan->in_key && end - p >= 2 && tg_scan_unescape[(uint8_t) p[1]] != 0) {
        return p + 2;
    }

    if (end - p >= 6 && p[1] == 'u') {
        unit = tg_scan_hex4(p + 2);
        if (unit >= 0) {
            return tg_scan_unit(scan, p + 6, (uint32_t) unit);
        }
    }

    scan->state = TG_SCAN_IN_ESCAPE;
    p++;

    return p == end ? p : tg_scan_in_escape(scan, p);
}


static const char *
tg_scan_in_escape(tg_scan_t *scan, const char *p)
{
    char  c;

    if (*p == 'u') {
        scan->digits = 0;
        scan->unit = 0;
        scan->state = TG_SCAN_IN_HEX;
        return p + 1;
    }

    c = tg_scan_unescape[(uint8_t) *p];
    if (c == 0) {
        return tg_scan_fail(scan, p, TG_E_SYNTAX, "invalid escape");
    }

    if (scan->in_key) {
        tg_scan_key_append(&scan->keys, &scan->builder, &c, 1);
    }
    scan->state = TG_SCAN_IN_TEXT;

    return p + 1;
}


static const char *
tg_scan_in_hex(tg_scan_t *scan, const char *p, const char *end)
{
    uint8_t  digit;

    for (/* void */; p < end && scan->digits < 4; p++) {
        digit = tg_scan_hex_digit[(uint8_t) *p];
        if (digit == 0) {
            return tg_scan_fail(scan, p, TG_E_SYNTAX, "invalid escape");
        }

        scan->unit = scan->unit << 4 | (digit & 0xfU);
        scan->digits++;
    }

    return scan->digits < 4 ? p : tg_scan_unit(scan, p, scan->unit);
}


/* An escaped UTF-16 unit ends before p. */
static const char *
tg_scan_unit(tg_scan_t *scan, const char *p, uint32_t unit)
{
    char    utf8[4];
    size_t  n;

    if (tg_scan_is_low_surrogate(unit) != (scan->high != 0)) {
        return tg_scan_fail(scan, p, TG_E_SYNTAX, "lone surrogate");
    }

    if (unit == 0) {
        return tg_scan_fail(scan, p, TG_E_SYNTAX, "NUL in a string");
    }

    if (tg_scan_is_high_surrogate(unit)) {
        scan->high = unit;
        scan->state = TG_SCAN_AT_LOW_BACKSLASH;
        return p;
    }

    if (scan->in_key) {
        n = tg_utf8_encode(scan->high == 0 ? unit
                                           : tg_scan_join_surrogates(scan->high, unit),
                           utf8);
        tg_scan_key_append(&scan->keys, &scan->builder, utf8, n);
    }

    scan->high = 0;
    scan->state = TG_SCAN_IN_TEXT;

    return p;
}


/* The two bytes that must stand between the surrogates of a pair. */
static const char *
tg_scan_low(tg_scan_t *scan, const char *p, char want, tg_scan_state_e next)
{
    if (*p != want) {
        return tg_scan_fail(scan, p, TG_E_SYNTAX, "lone surrogate");
    }

    scan->digits = 0;
    scan->unit = 0;
    scan->state = next;

    return p + 1;
}
