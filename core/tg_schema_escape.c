/*
 * The characters of a regular expression of ECMA-262: escapes, classes and what
 * stands for itself, written as PCRE2 reads them. It must not know groups nor
 * quantifiers.
 */

#include "tg_schema_ecma.h"
#include "tg_utf8.h"


#define TG_SCHEMA_SPACE_ITEMS    8       /* ranges of \s beyond one byte */
#define TG_SCHEMA_MAX_CP         0x10ffff

/* ECMA-262 \s: WhiteSpace and LineTerminator; and all that is not */
#define TG_SCHEMA_SPACE                                                           \
    "\\x{9}-\\x{d}\\x{20}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}"   \
    "\\x{202f}\\x{205f}\\x{3000}\\x{feff}"
#define TG_SCHEMA_NO_SPACE                                                        \
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{9f}\\x{a1}-\\x{167f}"                 \
    "\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}" \
    "\\x{2060}-\\x{2fff}\\x{3001}-\\x{fefe}\\x{ff00}-\\x{10ffff}"

static tg_schema_esc_e tg_schema_ecma_property(tg_schema_ecma_t *t, bool negated);
static bool tg_schema_ecma_unicode(tg_schema_ecma_t *t, uint32_t *cp);
static bool tg_schema_ecma_hex(tg_schema_ecma_t *t, size_t digits, uint32_t *cp);
static tg_schema_esc_e tg_schema_ecma_class_atom(tg_schema_ecma_t *t, uint32_t *cp);


/* The escapes that mean the same in and out of a class; t->p is after the "\". */
tg_schema_esc_e
tg_schema_ecma_escape(tg_schema_ecma_t *t, bool in_class, uint32_t *cp)
{
    char         c;
    bool         ok;
    const char  *at;

    static const char  names[] = "tnvfr";
    static const char  values[] = "\t\n\v\f\r";

    c = *t->p++;
    ok = true;

    switch (c) {

    case 'd':
    case 'D':
    case 'w':
    case 'W':
        (void) tg_buf_printf(t->out, "\\%c", c);
        return TG_SCHEMA_ESC_SET;

    case 's':
    case 'S':
        t->cost->class_items += TG_SCHEMA_SPACE_ITEMS;
        (void) tg_buf_printf(t->out, "%s%s%s", in_class ? "" : "[",
                             c == 's' ? TG_SCHEMA_SPACE : TG_SCHEMA_NO_SPACE,
                             in_class ? "" : "]");
        return TG_SCHEMA_ESC_SET;

    case 'p':
    case 'P':
        return tg_schema_ecma_property(t, c == 'P');

    case 'c':
        if (t->p == t->end || ((*t->p | 0x20) < 'a' || (*t->p | 0x20) > 'z')) {
            (void) tg_schema_ecma_error(t, "invalid \\c");
            return TG_SCHEMA_ESC_ERROR;
        }

        *cp = (uint32_t) *t->p++ & 0x1f;
        return TG_SCHEMA_ESC_CHAR;

    case 'x':
        ok = tg_schema_ecma_hex(t, 2, cp);
        break;

    case 'u':
        ok = tg_schema_ecma_unicode(t, cp);
        break;

    case '0':
        *cp = 0;
        ok = t->p == t->end || *t->p < '0' || *t->p > '9'
             || tg_schema_ecma_error(t, "octal escapes are not supported");
        break;

    default:
        at = c == '\0' ? NULL : strchr(names, c);

        if (at != NULL) {
            *cp = (uint32_t) values[at - names];
            return TG_SCHEMA_ESC_CHAR;
        }

        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '1' && c <= '9')) {
            (void) tg_schema_ecma_error(t, "an escape that ECMA-262 does not have");
            return TG_SCHEMA_ESC_ERROR;
        }

        /* a needless escape: the character itself */
        t->p--;
        ok = tg_schema_ecma_char(t, cp);
    }

    return ok ? TG_SCHEMA_ESC_CHAR : TG_SCHEMA_ESC_ERROR;
}


static tg_schema_esc_e
tg_schema_ecma_property(tg_schema_ecma_t *t, bool negated)
{
    tg_str_t     name;
    const char  *close;

    close = t->p == t->end ? NULL : memchr(t->p, '}', (size_t) (t->end - t->p));

    if (close == NULL || *t->p != '{') {
        (void) tg_schema_ecma_error(t, "invalid \\p");
        return TG_SCHEMA_ESC_ERROR;
    }

    name = (tg_str_t) { (size_t) (close - t->p) - 1, t->p + 1 };
    t->p = close + 1;
    t->cost->class_items++;

    if (!tg_schema_unicode_property(name, negated, t->out) && t->out->error == TG_OK) {
        (void) tg_schema_ecma_error(t, "unknown property in \\p{}");
        return TG_SCHEMA_ESC_ERROR;
    }

    return TG_SCHEMA_ESC_SET;
}


/* \uXXXX, a pair of surrogates written so, or \u{X...} */
static bool
tg_schema_ecma_unicode(tg_schema_ecma_t *t, uint32_t *cp)
{
    size_t    digits;
    uint32_t  low;

    if (t->p < t->end && *t->p == '{') {
        t->p++;

        for (digits = 0; t->end - t->p > (ptrdiff_t) digits && t->p[digits] != '}';
             digits++)
        {
            /* to the closing brace */
        }

        if (digits == 0 || t->end - t->p == (ptrdiff_t) digits
            || !tg_schema_ecma_hex(t, digits, cp))
        {
            return tg_schema_ecma_error(t, "invalid \\u");
        }

        t->p++;

    } else if (!tg_schema_ecma_hex(t, 4, cp)) {
        return false;

    } else if (*cp >= 0xd800 && *cp <= 0xdbff && t->end - t->p >= 6 && t->p[0] == '\\'
               && t->p[1] == 'u')
    {
        t->p += 2;

        if (!tg_schema_ecma_hex(t, 4, &low) || low < 0xdc00 || low > 0xdfff) {
            return tg_schema_ecma_error(t, "a lone surrogate cannot match");
        }

        *cp = 0x10000 + ((*cp - 0xd800) << 10) + (low - 0xdc00);
    }

    if (*cp >= 0xd800 && *cp <= 0xdfff) {
        return tg_schema_ecma_error(t, "a lone surrogate cannot match");
    }

    return true;
}


static bool
tg_schema_ecma_hex(tg_schema_ecma_t *t, size_t digits, uint32_t *cp)
{
    char  c;

    *cp = 0;

    for ( ; digits > 0; digits--) {
        c = t->p == t->end ? '\0' : *t->p++;

        if (c >= '0' && c <= '9') {
            *cp = *cp * 16 + (uint32_t) (c - '0');

        } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
            *cp = *cp * 16 + (uint32_t) ((c | 0x20) - 'a' + 10);

        } else {
            return tg_schema_ecma_error(t, "invalid hexadecimal escape");
        }

        if (*cp > TG_SCHEMA_MAX_CP) {
            return tg_schema_ecma_error(t, "escape beyond U+10FFFF");
        }
    }

    return true;
}


/* t->p is after the "[". Classes are rebuilt from code points, so that nothing in
 * them can mean more to PCRE2 than it does to ECMA-262. */
bool
tg_schema_ecma_class(tg_schema_ecma_t *t)
{
    uint32_t         low, high;
    tg_schema_esc_e  from, to;

    (void) tg_schema_ecma_put(t, "[");

    if (t->p < t->end && *t->p == '^') {
        t->p++;
        (void) tg_schema_ecma_put(t, "^");
    }

    while (t->p < t->end && *t->p != ']') {

        from = tg_schema_ecma_class_atom(t, &low);
        if (from == TG_SCHEMA_ESC_ERROR) {
            return false;
        }

        if (t->end - t->p < 2 || t->p[0] != '-' || t->p[1] == ']') {
            if (from == TG_SCHEMA_ESC_CHAR) {
                (void) tg_buf_printf(t->out, "\\x{%x}", low);
                t->cost->class_items += low > 0xff;
            }

            continue;
        }

        t->p++;

        to = tg_schema_ecma_class_atom(t, &high);
        if (to == TG_SCHEMA_ESC_ERROR) {
            return false;
        }

        if (from == TG_SCHEMA_ESC_SET || to == TG_SCHEMA_ESC_SET) {
            return tg_schema_ecma_error(t, "a set cannot be the end of a range");
        }

        if (low > high) {
            return tg_schema_ecma_error(t, "range out of order in a class");
        }

        (void) tg_buf_printf(t->out, "\\x{%x}-\\x{%x}", low, high);
        t->cost->class_items += high > 0xff;
    }

    if (t->p == t->end) {
        return tg_schema_ecma_error(t, "a class is not closed");
    }

    t->p++;

    return tg_schema_ecma_put(t, "]");
}


static tg_schema_esc_e
tg_schema_ecma_class_atom(tg_schema_ecma_t *t, uint32_t *cp)
{
    if (*t->p != '\\') {
        return tg_schema_ecma_char(t, cp) ? TG_SCHEMA_ESC_CHAR : TG_SCHEMA_ESC_ERROR;
    }

    t->p++;

    if (t->p == t->end) {
        (void) tg_schema_ecma_error(t, "\\ at the end");
        return TG_SCHEMA_ESC_ERROR;
    }

    if (*t->p == 'b') {
        t->p++;
        *cp = 0x08;
        return TG_SCHEMA_ESC_CHAR;
    }

    return tg_schema_ecma_escape(t, true, cp);
}


bool
tg_schema_ecma_char(tg_schema_ecma_t *t, uint32_t *cp)
{
    int32_t  c;

    t->p += tg_utf8_next(t->p, (size_t) (t->end - t->p), &c);

    if (c < 0) {
        return tg_schema_ecma_error(t, "the pattern is not UTF-8");
    }

    *cp = (uint32_t) c;

    return true;
}


/* Failures to write are sticky in the buffer and looked at once, at the end. */
bool
tg_schema_ecma_put(tg_schema_ecma_t *t, const char *text)
{
    (void) tg_buf_cstr(t->out, text);

    return true;
}


/* A character that stands for itself. */
bool
tg_schema_ecma_put_cp(tg_schema_ecma_t *t, uint32_t cp)
{
    (void) tg_buf_printf(t->out, "\\x{%x}", cp);

    return true;
}


bool
tg_schema_ecma_error(tg_schema_ecma_t *t, const char *reason)
{
    if (t->reason == NULL) {
        t->reason = reason;
    }

    return false;
}
