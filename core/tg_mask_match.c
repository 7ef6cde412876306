/*
 * Whether a text holds a pattern, character by character: each may stand as it is
 * or be escaped for a URL, for JSON or for HTML, and texts are quoted within texts.
 * Taking a little too much for a match only masks a little too much.
 */

#include "tg_mask_internal.h"
#include "tg_utf8.h"


#define TG_MASK_ENTITY_MAX  10      /* bytes of &…; */


/* One character of a pattern against a text. */
typedef struct {
    const char  *text;
    size_t       len;
    size_t       used;      /* bytes of text */
    bool         ended;     /* the text ended before that was decided */
} tg_mask_step_t;


static size_t tg_mask_char(const tg_mask_pattern_t *pattern, size_t at,
    tg_mask_step_t *s);
static bool tg_mask_bytes(const char *c, size_t n, bool base64, tg_mask_step_t *s);
static size_t tg_mask_percent(uint8_t c, const char *text, size_t len,
    bool *ended);
static bool tg_mask_json(int32_t cp, tg_mask_step_t *s);
static bool tg_mask_html(int32_t cp, tg_mask_step_t *s);
static bool tg_mask_unit(uint32_t unit, const char *text, size_t len);
static int tg_mask_hex(char c);
static uint8_t tg_mask_lead(const char *hex);


size_t
tg_mask_firsts(const char *text, size_t len, uint8_t firsts[TG_MASK_FIRSTS_MAX])
{
    char         c = text[0];
    size_t       i, n = 0;
    const char  *p;

    static const char  named[] = "nrtbf", meant[] = "\n\r\t\b\f";

    switch (c) {

    case '&':
        return 0;

    case '+':
        firsts[n++] = ' ';
        break;

    case '-':
        firsts[n++] = '+';
        break;

    case '_':
        firsts[n++] = '/';
        break;

    case '%':

        for (i = 1; i + 1 < len && text[i] == '2' && text[i + 1] == '5'; i += 2) {
            /* void */
        }

        if (i + 1 >= len) {
            return 0;
        }

        if (tg_mask_hex(text[i]) >= 0 && tg_mask_hex(text[i + 1]) >= 0) {
            firsts[n++] = (uint8_t) (tg_mask_hex(text[i]) * 16
                                     + tg_mask_hex(text[i + 1]));
        }

        break;

    case '\\':

        for (i = 1; i < len && text[i] == '\\'; i++) {
            /* void */
        }

        if (i == len || strchr("&%+-_", text[i]) != NULL) {
            return 0;
        }

        firsts[n++] = (uint8_t) text[i];
        p = strchr(named, text[i]);

        if (p != NULL && *p != '\0') {
            firsts[n++] = (uint8_t) meant[p - named];

        } else if (text[i] == 'u') {

            if (len - i < 5) {
                return 0;
            }

            firsts[n++] = tg_mask_lead(text + i + 1);
        }

        break;

    default:
        break;
    }

    firsts[n++] = (uint8_t) c;

    return n;
}


/* The first byte of UTF-8 of what \uXXXX means. */
static uint8_t
tg_mask_lead(const char *hex)
{
    int       digit;
    char      bytes[4];
    size_t    i;
    uint32_t  unit = 0;

    for (i = 0; i < 4; i++) {
        digit = tg_mask_hex(hex[i]);
        unit = unit * 16 + (uint32_t) (digit < 0 ? 0 : digit);
    }

    /* the first of a pair begins one of four bytes */

    if (unit >= 0xd800 && unit < 0xdc00) {
        unit = 0x10000 + ((unit - 0xd800) << 10);
    }

    (void) tg_utf8_encode(unit, bytes);

    return (uint8_t) bytes[0];
}


size_t
tg_mask_match(const tg_mask_pattern_t *pattern, const char *text, size_t len,
    bool open)
{
    size_t          i, n, used = 0;
    tg_mask_step_t  s;

    if (len >= pattern->len && memcmp(text, pattern->data, pattern->len) == 0) {
        return pattern->len;
    }

    for (i = 0; i < pattern->len; i += n) {

        if (used == len) {
            return open && i >= TG_MASK_OPEN_MIN ? used : 0;
        }

        s = (tg_mask_step_t) { .text = text + used, .len = len - used };
        n = tg_mask_char(pattern, i, &s);

        if (n == 0) {
            return s.ended && open && i >= TG_MASK_OPEN_MIN ? len : 0;
        }

        used += s.used;
    }

    return used;
}


/* Bytes of the pattern that were found, 0: another character. */
static size_t
tg_mask_char(const tg_mask_pattern_t *pattern, size_t at, tg_mask_step_t *s)
{
    size_t       n, slashes;
    int32_t      cp;
    const char  *c = pattern->data + at;

    n = tg_utf8_next(c, pattern->len - at, &cp);

    for (slashes = 0; slashes < s->len && s->text[slashes] == '\\'; slashes++) {
        /* void */
    }

    if (*c == '\\' && slashes != 0) {

        /* written once, twice, four times: as many as there are */

        for (n = 1; at + n < pattern->len && c[n] == '\\'; n++) {
            /* void */
        }

        s->used = slashes;
        s->ended = (slashes == s->len);

        return slashes >= n ? n : 0;
    }

    if (slashes == s->len) {
        s->ended = true;
        return 0;
    }

    s->text += slashes;
    s->len -= slashes;

    if ((slashes != 0 && tg_mask_json(cp, s))
        || tg_mask_html(cp, s)
        || tg_mask_bytes(c, n, pattern->base64, s))
    {
        s->used += slashes;
        return n;
    }

    return 0;
}


/* The bytes of one character, each as it is or percent-encoded. */
static bool
tg_mask_bytes(const char *c, size_t n, bool base64, tg_mask_step_t *s)
{
    char    t;
    size_t  i, used, escape;

    for (i = used = 0; i < n; i++) {

        if (used == s->len) {
            s->ended = true;
            return false;
        }

        t = s->text[used];
        escape = tg_mask_percent((uint8_t) c[i], s->text + used, s->len - used,
                                 &s->ended);

        if (escape != 0) {
            used += escape;
            continue;
        }

        if (t != c[i]
            && !(t == '+' && c[i] == ' ')
            && !(base64 && ((t == '-' && c[i] == '+') || (t == '_' && c[i] == '/'))))
        {
            return false;
        }

        used++;
    }

    s->used = used;
    s->ended = false;

    return true;
}


/* Length of %XX, %25XX … when that is this byte, else 0. */
static size_t
tg_mask_percent(uint8_t c, const char *text, size_t len, bool *ended)
{
    int       high, low;
    size_t    i;
    unsigned  depth;

    if (text[0] != '%') {
        return 0;
    }

    for (i = 1, depth = 0; depth < TG_MASK_PERCENT_DEPTH; i += 2, depth++) {

        if (len - i < 2) {
            *ended = true;
            return 0;
        }

        high = tg_mask_hex(text[i]);
        low = tg_mask_hex(text[i + 1]);

        if (high < 0 || low < 0) {
            return 0;
        }

        if (high * 16 + low == c) {
            return i + 2;
        }

        if (high * 16 + low != '%') {
            return 0;
        }
    }

    return 0;
}


/* What stands behind the backslashes of a JSON escape. */
static bool
tg_mask_json(int32_t cp, tg_mask_step_t *s)
{
    size_t       i;
    uint32_t     u;
    const char  *p;

    static const char  named[] = "n\nr\rt\tb\bf\f";

    for (i = 0; i < sizeof(named) - 1; i += 2) {

        if (s->text[0] == named[i] && cp == named[i + 1]) {
            s->used = 1;
            return true;
        }
    }

    if (s->text[0] != 'u' || cp < 0) {
        return false;
    }

    if (s->len < 5) {
        s->ended = true;
        return false;
    }

    u = (uint32_t) cp;

    if (u < 0x10000) {
        s->used = 5;
        return tg_mask_unit(u, s->text + 1, s->len - 1);
    }

    u -= 0x10000;

    if (!tg_mask_unit(0xd800 + (u >> 10), s->text + 1, s->len - 1)) {
        return false;
    }

    for (p = s->text + 5; p < s->text + s->len && *p == '\\'; p++) {
        /* void */
    }

    if (s->text + s->len - p < 5) {
        s->ended = true;
        return false;
    }

    s->used = (size_t) (p - s->text) + 5;

    return *p == 'u' && tg_mask_unit(0xdc00 + (u & 0x3ff), p + 1, 4);
}


static bool
tg_mask_unit(uint32_t unit, const char *text, size_t len)
{
    int       digit;
    size_t    i;
    uint32_t  value = 0;

    for (i = 0; i < 4; i++) {
        digit = i < len ? tg_mask_hex(text[i]) : -1;

        if (digit < 0) {
            return false;
        }

        value = value * 16 + (uint32_t) digit;
    }

    return value == unit;
}


/* &amp; &#38; &#x26; and the like. */
static bool
tg_mask_html(int32_t cp, tg_mask_step_t *s)
{
    int       digit, base;
    size_t    i, len;
    int32_t   value = 0;

    static const struct {
        char        c;
        tg_str_t    name;
    } named[] = {
        { '&', tg_str("&amp;") }, { '<', tg_str("&lt;") }, { '>', tg_str("&gt;") },
        { '"', tg_str("&quot;") }, { '\'', tg_str("&apos;") }
    };

    if (s->text[0] != '&' || cp < 0) {
        return false;
    }

    len = s->len < TG_MASK_ENTITY_MAX ? s->len : TG_MASK_ENTITY_MAX;

    for (i = 0; i < sizeof(named) / sizeof(named[0]); i++) {

        if (cp == named[i].c && len >= named[i].name.len
            && memcmp(s->text, named[i].name.data, named[i].name.len) == 0)
        {
            s->used = named[i].name.len;
            return true;
        }
    }

    if (len < 4 || s->text[1] != '#') {
        return false;
    }

    base = (s->text[2] | 0x20) == 'x' ? 16 : 10;

    for (i = base == 16 ? 3 : 2; i < len && s->text[i] != ';'; i++) {
        digit = tg_mask_hex(s->text[i]);

        if (digit < 0 || digit >= base) {
            return false;
        }

        value = value * base + digit;
    }

    s->used = i + 1;

    return i < len && value == cp;
}


static int
tg_mask_hex(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }

    c = (char) (c | 0x20);

    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}
