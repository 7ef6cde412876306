/*
 * A pull reader for JSON text in memory. Strict about what it reads; what it does
 * not want to read (deep nesting, numbers that need care) it refuses, and its
 * caller then uses a tree. It knows no keys and no meaning.
 */

#include "tg_pull.h"
#include "tg_utf8.h"


void
tg_pull_blanks(tg_pull_t *in)
{
    while (*in->p == ' ' || *in->p == '\n' || *in->p == '\r' || *in->p == '\t') {
        in->p++;
    }
}


static bool
tg_pull_hex4(const char *p, uint32_t *value)
{
    int  i;

    *value = 0;

    for (i = 0; i < 4; i++) {
        *value <<= 4;

        if (p[i] >= '0' && p[i] <= '9') {
            *value |= (uint32_t) (p[i] - '0');

        } else if ((p[i] | 0x20) >= 'a' && (p[i] | 0x20) <= 'f') {
            *value |= (uint32_t) ((p[i] | 0x20) - 'a' + 10);

        } else {
            return false;
        }
    }

    return true;
}


/* Decodes one escape; in->p is at the backslash, *dst behind what was decoded. */
static bool
tg_pull_escape(tg_pull_t *in, char **dst)
{
    uint32_t  cp, low;

    switch (in->p[1]) {
    case '"':
    case '\\':
    case '/':
        *(*dst)++ = in->p[1];
        break;
    case 'b':
        *(*dst)++ = '\b';
        break;
    case 'f':
        *(*dst)++ = '\f';
        break;
    case 'n':
        *(*dst)++ = '\n';
        break;
    case 'r':
        *(*dst)++ = '\r';
        break;
    case 't':
        *(*dst)++ = '\t';
        break;

    case 'u':
        if (!tg_pull_hex4(in->p + 2, &cp)) {
            return false;
        }

        if (cp >= 0xd800 && cp <= 0xdfff) {
            if (cp > 0xdbff || in->p[6] != '\\' || in->p[7] != 'u'
                || !tg_pull_hex4(in->p + 8, &low) || low < 0xdc00 || low > 0xdfff)
            {
                return false;
            }

            cp = 0x10000 + ((cp - 0xd800) << 10) + (low - 0xdc00);
            in->p += 6;
        }

        *dst += tg_utf8_encode(cp, *dst);
        in->p += 6;

        return true;

    default:
        return false;
    }

    in->p += 2;

    return true;
}


#define TG_PULL_EACH(byte)  (0x0101010101010101U * (byte))

/* True when the next 8 bytes are ASCII that stands for itself in a string. The
 * borrow of a subtraction may reach the next byte, which only makes it cautious. */
static inline bool
tg_pull_plain8(const char *p)
{
    uint64_t  w, quote, slash, odd;

    memcpy(&w, p, sizeof(w));

    quote = w ^ TG_PULL_EACH('"');
    slash = w ^ TG_PULL_EACH('\\');

    odd = w | (w - TG_PULL_EACH(0x20)) | (quote - TG_PULL_EACH(1))
          | (slash - TG_PULL_EACH(1));

    return (odd & TG_PULL_EACH(0x80)) == 0;
}


bool
tg_pull_string(tg_pull_t *in, tg_str_t *value)
{
    char           *start, *dst, *plain;
    size_t          n;
    int32_t         cp;
    unsigned char   ch;

    if (*in->p != '"') {
        return false;
    }

    start = dst = plain = ++in->p;
    in->escaped = false;

    for ( ;; ) {
        while (in->end - in->p >= 8 && tg_pull_plain8(in->p)) {
            in->p += 8;
        }

        ch = (unsigned char) *in->p;

        if (ch >= 0x80) {
            n = tg_utf8_next(in->p, (size_t) (in->end - in->p), &cp);
            if (cp < 0) {
                return false;
            }
            in->p += n;
            continue;
        }

        if (ch >= 0x20 && ch != '"' && ch != '\\') {
            in->p++;
            continue;
        }

        if (ch < 0x20) {
            return false;
        }

        /* the bytes since the last escape close up */
        n = (size_t) (in->p - plain);
        if (dst != plain) {
            memmove(dst, plain, n);
        }
        dst += n;

        if (ch == '"') {
            in->p++;
            *value = (tg_str_t) { (size_t) (dst - start), start };
            return true;
        }

        in->escaped = true;
        if (!tg_pull_escape(in, &dst)) {
            return false;
        }
        plain = in->p;
    }
}


bool
tg_pull_number(tg_pull_t *in)
{
    char  *start;

    start = in->p;

    if (*in->p == '-') {
        in->p++;
    }

    if (*in->p == '0') {
        in->p++;

    } else if (*in->p >= '1' && *in->p <= '9') {
        while (*in->p >= '0' && *in->p <= '9') {
            in->p++;
        }

    } else {
        return false;
    }

    if (*in->p == '.') {
        in->p++;

        if (*in->p < '0' || *in->p > '9') {
            return false;
        }

        while (*in->p >= '0' && *in->p <= '9') {
            in->p++;
        }
    }

    return *in->p != 'e' && *in->p != 'E' && in->p - start <= TG_PULL_DIGITS;
}


bool
tg_pull_literal(tg_pull_t *in, const char *word)
{
    size_t  len;

    len = strlen(word);

    if (strncmp(in->p, word, len) != 0) {
        return false;
    }

    in->p += len;

    return true;
}

tg_pull_next_e
tg_pull_member(tg_pull_t *in, bool first, tg_str_t *key)
{
    tg_pull_blanks(in);

    if (*in->p == '}') {
        in->p++;
        return TG_PULL_OVER;
    }

    if (!first) {
        if (*in->p != ',') {
            return TG_PULL_NO;
        }
        in->p++;
        tg_pull_blanks(in);
    }

    if (!tg_pull_string(in, key) || in->escaped) {
        return TG_PULL_NO;
    }

    tg_pull_blanks(in);
    if (*in->p != ':') {
        return TG_PULL_NO;
    }

    in->p++;
    tg_pull_blanks(in);

    return TG_PULL_MEMBER;
}


tg_pull_next_e
tg_pull_element(tg_pull_t *in, bool first)
{
    tg_pull_blanks(in);

    if (*in->p == ']') {
        in->p++;
        return TG_PULL_OVER;
    }

    if (!first) {
        if (*in->p != ',') {
            return TG_PULL_NO;
        }
        in->p++;
        tg_pull_blanks(in);
    }

    return TG_PULL_MEMBER;
}


/* Passes the members or elements of a container that nobody asks for. */
static bool
tg_pull_skip_inside(tg_pull_t *in, bool object)
{
    bool             first;
    tg_str_t         key;
    tg_pull_next_e  next;

    if (in->depth == TG_PULL_DEPTH) {
        return false;
    }

    in->p++;
    in->depth++;

    for (first = true; ; first = false) {
        next = object ? tg_pull_member(in, first, &key) : tg_pull_element(in, first);

        if (next == TG_PULL_OVER) {
            in->depth--;
            return true;
        }

        if (next == TG_PULL_NO || !tg_pull_skip(in)) {
            return false;
        }
    }
}


bool
tg_pull_skip(tg_pull_t *in)
{
    tg_str_t  ignored;

    switch (*in->p) {
    case '"':
        return tg_pull_string(in, &ignored);
    case '{':
        return tg_pull_skip_inside(in, true);
    case '[':
        return tg_pull_skip_inside(in, false);
    case 'n':
        return tg_pull_literal(in, "null");
    case 't':
        return tg_pull_literal(in, "true");
    case 'f':
        return tg_pull_literal(in, "false");
    default:
        return tg_pull_number(in);
    }
}
