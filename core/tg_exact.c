/*
 * Rewrites JSON text before it is loaded: numbers that int64 cannot hold become
 * strings behind a mark that no string of the text can have. It judges numbers
 * only; whether the text is JSON is for the loader to say.
 */

#include "tg_exact.h"

#include "tg_buf.h"
#include "tg_json.h"


#define TG_EXACT_MARK        '\x01'
#define TG_EXACT_MARK_JSON   "\"\\u0001"
#define TG_EXACT_GROWTH      8           /* "1.5," is 4 bytes and becomes 12 */
#define TG_EXACT_BOM         "\xef\xbb\xbf"
#define TG_EXACT_ESCAPE      6           /* bytes of \uXXXX */

typedef struct {
    const char  *p;
    const char  *end;
    const char  *from;       /* first byte that is not copied yet */
    tg_buf_t     out;
} tg_exact_t;


static bool
tg_exact_digit(char c)
{
    return c >= '0' && c <= '9';
}


/* Copies what lies between the last copied byte and `to`. */
static void
tg_exact_flush(tg_exact_t *x, const char *to)
{
    if (to > x->from) {
        (void) tg_buf_append(&x->out, x->from, (size_t) (to - x->from));
    }

    x->from = to;
}


/* Replaces the bytes from `at` up to `after` by text. */
static void
tg_exact_replace(tg_exact_t *x, const char *at, const char *after, const char *text)
{
    tg_exact_flush(x, at);
    (void) tg_buf_cstr(&x->out, text);
    x->from = after;
}


/* The value of \uXXXX at p, or -1. */
static int
tg_exact_escape(const char *p, const char *end)
{
    int  i, value = 0, digit;

    if (end - p < TG_EXACT_ESCAPE || p[0] != '\\' || p[1] != 'u') {
        return -1;
    }

    for (i = 2; i < TG_EXACT_ESCAPE; i++) {

        if (tg_exact_digit(p[i])) {
            digit = p[i] - '0';

        } else if ((p[i] | 0x20) >= 'a' && (p[i] | 0x20) <= 'f') {
            digit = (p[i] | 0x20) - 'a' + 10;

        } else {
            return -1;
        }

        value = value << 4 | digit;
    }

    return value;
}


/* At a backslash inside a string; moves past the escape. */
static void
tg_exact_backslash(tg_exact_t *x)
{
    int          cp, low;
    const char  *at = x->p;

    cp = tg_exact_escape(at, x->end);

    if (cp < 0) {
        x->p += x->end - at >= 2 ? 2 : 1;
        return;
    }

    x->p += TG_EXACT_ESCAPE;

    if (cp <= TG_EXACT_MARK) {
        tg_exact_replace(x, at, x->p, "");
        return;
    }

    if (cp < 0xd800 || cp > 0xdfff) {
        return;
    }

    low = tg_exact_escape(x->p, x->end);

    if (cp < 0xdc00 && low >= 0xdc00 && low <= 0xdfff) {
        x->p += TG_EXACT_ESCAPE;
        return;
    }

    tg_exact_replace(x, at, x->p, "\\ufffd");
}


/* At the opening quote; moves past the closing one. */
static void
tg_exact_string(tg_exact_t *x)
{
    x->p++;

    while (x->p < x->end && *x->p != '"') {

        if (*x->p == '\\') {
            tg_exact_backslash(x);

        } else {
            x->p++;
        }
    }

    if (x->p < x->end) {
        x->p++;
    }
}


/* Moves past digits; false when there are none. */
static bool
tg_exact_digits(tg_exact_t *x)
{
    const char  *start = x->p;

    while (x->p < x->end && tg_exact_digit(*x->p)) {
        x->p++;
    }

    return x->p > start;
}


/* Moves past a number by the grammar of JSON; says whether it is an integer. */
static bool
tg_exact_grammar(tg_exact_t *x, bool *integer)
{
    const char  *first;

    if (*x->p == '-') {
        x->p++;
    }

    first = x->p;

    if (!tg_exact_digits(x) || (*first == '0' && x->p - first > 1)) {
        return false;
    }

    *integer = true;

    if (x->p < x->end && *x->p == '.') {
        *integer = false;
        x->p++;

        if (!tg_exact_digits(x)) {
            return false;
        }
    }

    if (x->p < x->end && (*x->p | 0x20) == 'e') {
        *integer = false;
        x->p++;

        if (x->p < x->end && (*x->p == '+' || *x->p == '-')) {
            x->p++;
        }

        return tg_exact_digits(x);
    }

    return true;
}


/* True when a tree holds this integer as it is written: it fits int64, no "-0". */
static bool
tg_exact_fits(const char *p, size_t len)
{
    bool               negative = *p == '-';
    const char        *limit = negative ? "9223372036854775808" : "9223372036854775807";
    static const size_t  digits = 19;

    p += negative;
    len -= negative;

    if (len != digits) {
        return len < digits && !(negative && *p == '0');
    }

    return memcmp(p, limit, digits) <= 0;
}


/* True when a value may end here; a number before ":" is no value. */
static bool
tg_exact_value_ends(const tg_exact_t *x)
{
    const char  *p = x->p;

    while (p < x->end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')) {
        p++;
    }

    return p == x->end || *p == ',' || *p == ']' || *p == '}';
}


/* At "-" or a digit; moves past the number. What is no number is left alone: the
 * loader refuses it. */
static void
tg_exact_token(tg_exact_t *x)
{
    bool         integer;
    size_t       len;
    const char  *at = x->p;

    if (!tg_exact_grammar(x, &integer)) {
        x->p = x->p > at ? x->p : at + 1;
        return;
    }

    len = (size_t) (x->p - at);

    if ((integer && tg_exact_fits(at, len)) || !tg_exact_value_ends(x)) {
        return;
    }

    if (len > TG_EXACT_NUMBER_MAX) {
        tg_exact_replace(x, at, x->p, "null");
        return;
    }

    tg_exact_replace(x, at, at, TG_EXACT_MARK_JSON);
    tg_exact_flush(x, x->p);
    (void) tg_buf_char(&x->out, '"');
}


json_t *
tg_exact_load(tg_str_t text)
{
    json_t           *value;
    tg_exact_t        x;
    const size_t      bom = sizeof(TG_EXACT_BOM) - 1;
    tg_json_error_t   error;

    if (text.len >= bom && memcmp(text.data, TG_EXACT_BOM, bom) == 0) {
        text.data += bom;
        text.len -= bom;
    }

    if (text.len == 0) {
        return NULL;
    }

    x.p = text.data;
    x.from = text.data;
    x.end = text.data + text.len;
    tg_buf_init(&x.out, text.len * TG_EXACT_GROWTH + TG_EXACT_GROWTH);

    while (x.p < x.end) {

        if (*x.p == '"') {
            tg_exact_string(&x);

        } else if (*x.p == '-' || tg_exact_digit(*x.p)) {
            tg_exact_token(&x);

        } else {
            x.p++;
        }
    }

    if (x.out.len == 0) {
        value = tg_json_load(text, &error);

    } else {
        tg_exact_flush(&x, x.end);
        value = x.out.error != TG_OK ? NULL : tg_json_load(tg_buf_get(&x.out), &error);
    }

    tg_buf_free(&x.out);

    return value;
}


bool
tg_exact_number(const json_t *value, tg_str_t *digits)
{
    size_t       len;
    const char  *text;

    *digits = tg_null_str;

    if (json_is_number(value)) {
        return true;
    }

    text = json_string_value(value);
    len = json_string_length(value);

    if (text == NULL || len < 2 || text[0] != TG_EXACT_MARK) {
        return false;
    }

    *digits = (tg_str_t) { len - 1, text + 1 };

    return true;
}
