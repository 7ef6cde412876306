/*
 * The walk over valid JSON. Strings are where a big body has its bytes: they are
 * passed eight at a time.
 */

#include "tg_walk.h"


#define TG_WALK_NAME_MAX  64     /* bytes of a name that is compared */

#define TG_WALK_EACH(byte)  (0x0101010101010101U * (uint64_t) (byte))


static void
tg_walk_blanks(tg_walk_t *walk)
{
    while (walk->p < walk->end
           && (*walk->p == ' ' || *walk->p == '\n' || *walk->p == '\r'
               || *walk->p == '\t'))
    {
        walk->p++;
    }
}


/* True when none of the next 8 bytes is a quote or a backslash. */
static inline bool
tg_walk_plain8(const char *p)
{
    uint64_t  w, quote, slash;

    memcpy(&w, p, sizeof(w));
    quote = w ^ TG_WALK_EACH('"');
    slash = w ^ TG_WALK_EACH('\\');

    return ((((quote - TG_WALK_EACH(1)) & ~quote)
             | ((slash - TG_WALK_EACH(1)) & ~slash)) & TG_WALK_EACH(0x80)) == 0;
}


/* Passes a string whose first quote is at the walk's place. */
static void
tg_walk_string(tg_walk_t *walk)
{
    const char  *p, *end;

    p = walk->p + 1;
    end = walk->end;

    while (p < end) {
        while (end - p >= 8 && tg_walk_plain8(p)) {
            p += 8;
        }

        while (p < end && *p != '"' && *p != '\\') {
            p++;
        }

        /* text with many escapes has few plain runs: no look for one in between */

        while (end - p >= 2 && *p == '\\') {
            p += 2;
        }

        if (p < end && *p == '"') {
            p++;
            break;
        }

        if (end - p == 1) {
            p = end;
        }
    }

    walk->p = p;
}


/* Passes an object or an array without regard to what is in it. */
static void
tg_walk_container(tg_walk_t *walk)
{
    size_t  depth;

    depth = 0;

    while (walk->p < walk->end) {
        switch (*walk->p) {

        case '"':
            tg_walk_string(walk);
            continue;

        case '{':
        case '[':
            depth++;
            break;

        case '}':
        case ']':
            if (--depth == 0) {
                walk->p++;
                return;
            }
            break;

        default:
            break;
        }

        walk->p++;
    }
}


static tg_scan_type_e
tg_walk_type(char c)
{
    switch (c) {
    case '"':
        return TG_SCAN_STRING;
    case '{':
        return TG_SCAN_OBJECT;
    case '[':
        return TG_SCAN_ARRAY;
    case 't':
        return TG_SCAN_TRUE;
    case 'f':
        return TG_SCAN_FALSE;
    case 'n':
        return TG_SCAN_NULL;
    default:
        return TG_SCAN_NUMBER;
    }
}


tg_walk_value_t
tg_walk_value(tg_walk_t *walk)
{
    const char       *start;
    tg_walk_value_t   value;

    tg_walk_blanks(walk);

    if (walk->p == walk->end) {
        return (tg_walk_value_t) { TG_SCAN_NONE, tg_null_str };
    }

    start = walk->p;
    value.type = tg_walk_type(*start);

    switch (value.type) {

    case TG_SCAN_STRING:
        tg_walk_string(walk);
        break;

    case TG_SCAN_OBJECT:
    case TG_SCAN_ARRAY:
        tg_walk_container(walk);
        break;

    default:
        do {
            walk->p++;
        } while (walk->p < walk->end && strchr(",]} \n\r\t", *walk->p) == NULL);
        break;
    }

    value.text = (tg_str_t) { (size_t) (walk->p - start), start };

    return value;
}


bool
tg_walk_enter(tg_walk_t *walk)
{
    tg_walk_blanks(walk);

    if (walk->p == walk->end || (*walk->p != '{' && *walk->p != '[')) {
        return false;
    }

    walk->p++;

    return true;
}


/* Goes to the next thing in a container; false: behind its end. */
static bool
tg_walk_next(tg_walk_t *walk)
{
    tg_walk_blanks(walk);

    if (walk->p < walk->end && *walk->p == ',') {
        walk->p++;
        tg_walk_blanks(walk);
    }

    if (walk->p == walk->end) {
        return false;
    }

    if (*walk->p == '}' || *walk->p == ']') {
        walk->p++;
        return false;
    }

    return true;
}


bool
tg_walk_member(tg_walk_t *walk, tg_str_t *key, tg_walk_value_t *value)
{
    if (!tg_walk_next(walk)) {
        return false;
    }

    *key = tg_walk_inside(tg_walk_value(walk));
    tg_walk_blanks(walk);

    if (walk->p < walk->end && *walk->p == ':') {
        walk->p++;
    }

    *value = tg_walk_value(walk);

    return value->type != TG_SCAN_NONE;
}


bool
tg_walk_element(tg_walk_t *walk, tg_walk_value_t *value)
{
    if (!tg_walk_next(walk)) {
        return false;
    }

    *value = tg_walk_value(walk);

    return value->type != TG_SCAN_NONE;
}


bool
tg_walk_is(tg_str_t inside, const char *text)
{
    char       name[TG_WALK_NAME_MAX];
    size_t     len;
    ptrdiff_t  n;

    len = strlen(text);

    if (inside.len == len) {
        return memcmp(inside.data, text, len) == 0;
    }

    /* an escape only makes it longer: at most \uXXXX for one byte */

    if (inside.len < len || inside.len > 6 * len || len > sizeof(name)) {
        return false;
    }

    n = tg_scan_string(inside.data - 1,
                       (tg_scan_range_t) { 0, inside.len + 2, TG_SCAN_STRING },
                       name, sizeof(name));

    return n == (ptrdiff_t) len && memcmp(name, text, len) == 0;
}
