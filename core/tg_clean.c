/*
 * Takes out of a text what a reader cannot see but a model or a program can. It
 * knows code points and ranges, nothing of JSON and nothing of where a text goes.
 */

#include "tg_clean.h"

#include "tg_utf8.h"


#define TG_CLEAN_REPLACEMENT  0xfffd

typedef struct {
    uint32_t  first;
    uint32_t  last;
} tg_clean_range_t;

typedef enum {
    TG_CLEAN_KEEP,
    TG_CLEAN_DROP,
    TG_CLEAN_BREAK      /* tabs and ends of lines: words must not run together */
} tg_clean_what_e;

typedef struct {
    tg_buf_t  *out;
    size_t     chars;
    size_t     max;          /* code points; 0: no cut */
    bool       space;        /* a break is owed before the next character */
    bool       after_space;  /* the last character was a space */
} tg_clean_state_t;


/* Beyond ASCII, sorted: C1 controls, bidi controls, zero-width and filling
 * characters, tags, selectors. The joiners U+200C and U+200D are not here, nor are
 * the format characters that have a shape (U+0600 to 0605, 06DD, 08E2 …). */
static const tg_clean_range_t  tg_clean_ranges[] = {
    { 0x0080, 0x009f },      /* C1 */
    { 0x00ad, 0x00ad },      /* soft hyphen */
    { 0x034f, 0x034f },      /* combining grapheme joiner */
    { 0x061c, 0x061c },      /* Arabic letter mark */
    { 0x115f, 0x1160 },      /* Hangul fillers */
    { 0x17b4, 0x17b5 },      /* Khmer inherent vowels */
    { 0x180b, 0x180f },      /* Mongolian selectors and separator */
    { 0x200b, 0x200b },      /* zero-width space */
    { 0x200e, 0x200f },      /* LRM, RLM */
    { 0x202a, 0x202e },      /* embeddings, overrides */
    { 0x2060, 0x206f },      /* word joiner, invisible operators, isolates */
    { 0x3164, 0x3164 },      /* Hangul filler */
    { 0xfe00, 0xfe0f },      /* variation selectors */
    { 0xfeff, 0xfeff },      /* BOM */
    { 0xffa0, 0xffa0 },      /* half-width Hangul filler */
    { 0xfff0, 0xfffb },      /* interlinear annotation and its neighbours */
    { 0x13430, 0x1343f },    /* hieroglyph format controls */
    { 0x1bca0, 0x1bca3 },    /* shorthand format controls */
    { 0x1d173, 0x1d17a },    /* musical format controls */
    { 0xe0000, 0xe0fff },    /* tags, variation selectors, reserved */
};


static tg_clean_what_e
tg_clean_what(uint32_t cp)
{
    size_t  low = 0, high, mid;

    if (cp < 0x80) {

        if (cp == '\t' || cp == '\n' || cp == '\r') {
            return TG_CLEAN_BREAK;
        }

        return cp < 0x20 || cp == 0x7f ? TG_CLEAN_DROP : TG_CLEAN_KEEP;
    }

    high = sizeof(tg_clean_ranges) / sizeof(tg_clean_ranges[0]);

    while (low < high) {
        mid = (low + high) / 2;

        if (cp > tg_clean_ranges[mid].last) {
            low = mid + 1;

        } else if (cp < tg_clean_ranges[mid].first) {
            high = mid;

        } else {
            return TG_CLEAN_DROP;
        }
    }

    return TG_CLEAN_KEEP;
}


/* True when the text has room for one more character. */
static bool
tg_clean_room(const tg_clean_state_t *state)
{
    return state->max == 0 || state->chars < state->max;
}


/* Appends one character, with the break that is owed before it. */
static void
tg_clean_put(tg_clean_state_t *state, const char *bytes, size_t len)
{
    if (state->space && state->chars > 0 && !state->after_space && bytes[0] != ' '
        && tg_clean_room(state))
    {
        (void) tg_buf_char(state->out, ' ');
        state->chars++;
    }

    state->space = false;

    if (tg_clean_room(state)) {
        (void) tg_buf_append(state->out, bytes, len);
        state->chars++;
        state->after_space = bytes[0] == ' ';
    }
}


/* Length of the run of printable ASCII at p. */
static size_t
tg_clean_plain(const char *p, size_t len)
{
    size_t  n = 0;

    while (n < len && p[n] >= 0x20 && p[n] < 0x7f) {
        n++;
    }

    return n;
}


/* Appends the run whole, as far as there is room; a break goes before it. */
static void
tg_clean_put_plain(tg_clean_state_t *state, const char *p, size_t len)
{
    tg_clean_put(state, p, 1);
    p++;
    len--;

    if (state->max > 0 && len > state->max - state->chars) {
        len = state->max - state->chars;
    }

    if (len > 0) {
        (void) tg_buf_append(state->out, p, len);
        state->chars += len;
        state->after_space = p[len - 1] == ' ';
    }
}


static tg_rc_e
tg_clean_run(tg_str_t text, tg_clean_state_t *state)
{
    char     bytes[4];
    size_t   i = 0, n;
    int32_t  cp;

    while (i < text.len && tg_clean_room(state) && state->out->error == TG_OK) {
        n = tg_clean_plain(text.data + i, text.len - i);

        if (n > 0) {
            tg_clean_put_plain(state, text.data + i, n);
            i += n;
            continue;
        }

        n = tg_utf8_next(text.data + i, text.len - i, &cp);

        if (cp < 0) {
            tg_clean_put(state, bytes, tg_utf8_encode(TG_CLEAN_REPLACEMENT, bytes));

        } else {

            switch (tg_clean_what((uint32_t) cp)) {

            case TG_CLEAN_KEEP:
                tg_clean_put(state, text.data + i, n);
                break;

            case TG_CLEAN_BREAK:
                state->space = true;
                break;

            case TG_CLEAN_DROP:
                break;
            }
        }

        i += n;
    }

    return state->out->error;
}


tg_rc_e
tg_clean_value(tg_str_t text, size_t max_chars, tg_buf_t *out)
{
    tg_clean_state_t  state = { .out = out, .max = max_chars };

    return tg_clean_run(text, &state);
}


tg_rc_e
tg_clean_argument(tg_str_t text, tg_buf_t *out)
{
    size_t            before = out->len;
    tg_rc_e           rc;
    tg_clean_state_t  state = { .out = out, .max = TG_CLEAN_TEXT_CHARS + 1 };

    rc = tg_clean_run(text, &state);

    if (rc == TG_OK && state.chars > TG_CLEAN_TEXT_CHARS) {
        rc = TG_E_INVALID;
    }

    if (rc != TG_OK) {
        out->len = before;
    }

    return rc;
}


/* Value of the Arabic-Indic or Persian digit at p, or -1. */
static int
tg_clean_digit(const unsigned char *p, size_t len)
{
    if (len >= 2 && p[0] == 0xd9 && p[1] >= 0xa0 && p[1] <= 0xa9) {
        return p[1] - 0xa0;
    }

    if (len >= 2 && p[0] == 0xdb && p[1] >= 0xb0 && p[1] <= 0xb9) {
        return p[1] - 0xb0;
    }

    return -1;
}


tg_rc_e
tg_clean_digits(tg_str_t text, tg_buf_t *out)
{
    int                   digit;
    size_t                i = 0, from = 0;
    const unsigned char  *p = (const unsigned char *) text.data;

    /* both lead bytes can only begin a character, so bytes are enough */
    while (i < text.len) {
        digit = tg_clean_digit(p + i, text.len - i);

        if (digit < 0) {
            i++;
            continue;
        }

        (void) tg_buf_append(out, p + from, i - from);
        (void) tg_buf_char(out, (char) ('0' + digit));
        i += 2;
        from = i;
    }

    if (i > from) {
        (void) tg_buf_append(out, p + from, i - from);
    }

    return out->error;
}


size_t
tg_clean_length(tg_str_t text)
{
    size_t  i, n = 0;

    for (i = 0; i < text.len; i++) {
        n += ((unsigned char) text.data[i] & 0xc0) != 0x80;
    }

    return n;
}
