/*
 * Translates a regular expression of ECMA-262 (Unicode mode, with the lenience
 * for needless escapes that real schemas count on) into one of PCRE2 with the same
 * meaning. What PCRE2 has beyond ECMA-262 is refused. It must not know matching.
 */

#include "tg_schema_ecma.h"


/* ECMA-262 "." without the s flag */
#define TG_SCHEMA_DOT  "[^\\x{a}\\x{d}\\x{2028}\\x{2029}]"

static bool tg_schema_ecma_count(tg_schema_ecma_t *t);
static bool tg_schema_ecma_term(tg_schema_ecma_t *t);
static bool tg_schema_ecma_group(tg_schema_ecma_t *t);
static bool tg_schema_ecma_quantifier(tg_schema_ecma_t *t);
static bool tg_schema_ecma_braces(const tg_schema_ecma_t *t, size_t *len, size_t *min);
static bool tg_schema_ecma_atom_escape(tg_schema_ecma_t *t);
static bool tg_schema_ecma_backref(tg_schema_ecma_t *t);
static bool tg_schema_ecma_named_backref(tg_schema_ecma_t *t);
static bool tg_schema_ecma_name(const char **p, const char *end, tg_str_t *name);


bool
tg_schema_ecma_translate(tg_str_t pattern, tg_buf_t *out, tg_schema_cost_t *cost,
    const char **reason)
{
    tg_schema_ecma_t  t;

    memset(&t, 0, sizeof(t));
    memset(cost, 0, sizeof(*cost));

    t.p = pattern.data;
    t.end = pattern.data + pattern.len;
    t.out = out;
    t.cost = cost;

    if (!tg_schema_ecma_count(&t)) {
        *reason = t.reason;
        return false;
    }

    t.p = pattern.data;

    while (t.p < t.end) {
        if (!tg_schema_ecma_term(&t)) {
            *reason = t.reason;
            return false;
        }
    }

    if (out->error != TG_OK) {
        *reason = "the pattern is too long";
        return false;
    }

    return true;
}


/* Counts the capture groups first: a reference may stand before its group. */
static bool
tg_schema_ecma_count(tg_schema_ecma_t *t)
{
    bool         in_class;
    unsigned     i;
    const char  *p;

    in_class = false;

    for (p = t->p; p < t->end; p++) {

        if (*p == '\\') {
            p++;

        } else if (in_class) {
            in_class = *p != ']';

        } else if (*p == '[') {
            in_class = true;

        } else if (*p == '(') {

            if (t->end - p > 2 && p[1] == '?'
                && (p[2] != '<' || (t->end - p > 3 && (p[3] == '=' || p[3] == '!'))))
            {
                continue;
            }

            if (++t->groups > TG_SCHEMA_MAX_GROUPS) {
                return tg_schema_ecma_error(t, "too many groups");
            }

            if (t->end - p > 2 && p[1] == '?') {
                p += 3;

                if (!tg_schema_ecma_name(&p, t->end, &t->names[t->groups])) {
                    return tg_schema_ecma_error(t, "invalid group name");
                }

                p--;

                for (i = 1; i < t->groups; i++) {
                    if (t->names[i].len != 0
                        && tg_str_eq(t->names[i], t->names[t->groups]))
                    {
                        return tg_schema_ecma_error(t, "a group name is used twice");
                    }
                }
            }
        }
    }

    return true;
}


static bool
tg_schema_ecma_term(tg_schema_ecma_t *t)
{
    char      c;
    size_t    len, min;
    uint32_t  cp;

    c = *t->p;

    switch (c) {

    case '(':
        return tg_schema_ecma_group(t);

    case '[':
        t->p++;
        t->quantifiable = true;
        return tg_schema_ecma_class(t);

    case '\\':
        t->p++;
        return tg_schema_ecma_atom_escape(t);

    case '*':
    case '+':
    case '?':
        return tg_schema_ecma_quantifier(t);

    case '{':
        if (tg_schema_ecma_braces(t, &len, &min)) {
            return tg_schema_ecma_quantifier(t);
        }

        break;

    case '^':
    case '$':
    case '|':
        t->p++;
        t->quantifiable = false;
        return tg_schema_ecma_put(t, c == '^' ? "^" : c == '$' ? "$" : "|");

    case ')':
        t->p++;
        t->quantifiable = true;
        return tg_schema_ecma_put(t, ")");

    case '.':
        t->p++;
        t->quantifiable = true;
        return tg_schema_ecma_put(t, TG_SCHEMA_DOT);
    }

    t->quantifiable = true;

    return tg_schema_ecma_char(t, &cp) && tg_schema_ecma_put_cp(t, cp);
}


static bool
tg_schema_ecma_group(tg_schema_ecma_t *t)
{
    size_t       i;
    tg_str_t     name;
    const char  *rest;

    static const char  *kinds[] = { "?:", "?=", "?!", "?<=", "?<!" };

    t->quantifiable = false;
    t->p++;

    if (t->p == t->end || *t->p != '?') {
        return tg_schema_ecma_put(t, "(");
    }

    for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if ((size_t) (t->end - t->p) >= strlen(kinds[i])
            && memcmp(t->p, kinds[i], strlen(kinds[i])) == 0)
        {
            t->p += strlen(kinds[i]);
            return tg_schema_ecma_put(t, "(") && tg_schema_ecma_put(t, kinds[i]);
        }
    }

    if (t->end - t->p < 2 || t->p[1] != '<') {
        return tg_schema_ecma_error(t, "\"(?\" of this kind is not ECMA-262");
    }

    /* names need not suit PCRE2: references go by number */
    rest = t->p + 2;

    if (!tg_schema_ecma_name(&rest, t->end, &name)) {
        return tg_schema_ecma_error(t, "invalid group name");
    }

    t->p = rest;

    return tg_schema_ecma_put(t, "(");
}


static bool
tg_schema_ecma_quantifier(tg_schema_ecma_t *t)
{
    size_t  len, min;

    if (!t->quantifiable) {
        return tg_schema_ecma_error(t, "nothing to repeat");
    }

    t->quantifiable = false;
    len = 1;
    min = 0;

    if (*t->p == '{') {
        (void) tg_schema_ecma_braces(t, &len, &min);
    }

    if (t->end - t->p > (ptrdiff_t) len && t->p[len] == '?') {
        len++;
    }

    if (min > t->cost->repeat) {
        t->cost->repeat = min;
    }

    (void) tg_buf_append(t->out, t->p, len);
    t->p += len;

    return true;
}


/* Is this {n}, {n,} or {n,m}? Any other brace is a character. */
static bool
tg_schema_ecma_braces(const tg_schema_ecma_t *t, size_t *len, size_t *min)
{
    bool         comma;
    size_t       digits;
    const char  *p;

    comma = false;
    digits = 0;
    *min = 0;

    for (p = t->p + 1; p < t->end; p++) {

        if (*p >= '0' && *p <= '9') {
            digits++;

            if (!comma && *min < UINT16_MAX) {
                *min = *min * 10 + (size_t) (*p - '0');
            }

        } else if (*p == ',' && !comma && digits != 0) {
            comma = true;

        } else {
            *len = (size_t) (p - t->p) + 1;
            return *p == '}' && digits != 0;
        }
    }

    return false;
}


static bool
tg_schema_ecma_atom_escape(tg_schema_ecma_t *t)
{
    uint32_t  cp;

    if (t->p == t->end) {
        return tg_schema_ecma_error(t, "\\ at the end");
    }

    t->quantifiable = true;

    switch (*t->p) {

    case 'b':
    case 'B':
        t->quantifiable = false;
        return tg_schema_ecma_put(t, *t->p++ == 'b' ? "\\b" : "\\B");

    case 'k':
        t->p++;
        return tg_schema_ecma_named_backref(t);
    }

    if (*t->p >= '1' && *t->p <= '9') {
        return tg_schema_ecma_backref(t);
    }

    switch (tg_schema_ecma_escape(t, false, &cp)) {

    case TG_SCHEMA_ESC_CHAR:
        return tg_schema_ecma_put_cp(t, cp);

    case TG_SCHEMA_ESC_SET:
        return true;

    default:
        return false;
    }
}


static bool
tg_schema_ecma_backref(tg_schema_ecma_t *t)
{
    unsigned  n;

    for (n = 0; t->p < t->end && *t->p >= '0' && *t->p <= '9'; t->p++) {
        n = n > TG_SCHEMA_MAX_GROUPS ? n : n * 10 + (unsigned) (*t->p - '0');
    }

    if (n > t->groups) {
        return tg_schema_ecma_error(t, "reference to a group that is not there");
    }

    t->cost->backref = true;
    (void) tg_buf_printf(t->out, "\\g{%u}", n);

    return true;
}


static bool
tg_schema_ecma_named_backref(tg_schema_ecma_t *t)
{
    unsigned     i;
    tg_str_t     name;
    const char  *p;

    p = t->p + 1;

    if (t->p == t->end || *t->p != '<' || !tg_schema_ecma_name(&p, t->end, &name)) {
        return tg_schema_ecma_error(t, "invalid \\k");
    }

    t->p = p;

    for (i = 1; i <= t->groups; i++) {
        if (t->names[i].len != 0 && tg_str_eq(t->names[i], name)) {
            t->cost->backref = true;
            (void) tg_buf_printf(t->out, "\\g{%u}", i);
            return true;
        }
    }

    return tg_schema_ecma_error(t, "reference to a group that is not there");
}


/* Reads "name>" and moves past it. */
static bool
tg_schema_ecma_name(const char **p, const char *end, tg_str_t *name)
{
    char         c;
    const char  *q;

    for (q = *p; q < end && *q != '>'; q++) {
        c = *q;

        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$'
            || (uint8_t) c >= 0x80 || (c >= '0' && c <= '9' && q > *p))
        {
            continue;
        }

        return false;
    }

    if (q >= end || q == *p) {
        return false;
    }

    *name = (tg_str_t) { (size_t) (q - *p), *p };
    *p = q + 1;

    return true;
}
