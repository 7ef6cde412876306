/*
 * A growable byte buffer with a hard bound. Responsible for growth, the bound and
 * the sticky error; it must not know what the bytes mean, except for the escapes
 * of a JSON string.
 */

#include "tg_buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tg_utf8.h"


#define TG_BUF_FIRST      64      /* bytes of the first allocation */
#define TG_BUF_INT_CHARS  24      /* a 64-bit number, its sign and a NUL */

static tg_rc_e tg_buf_fail(tg_buf_t *b, tg_rc_e rc);
static tg_rc_e tg_buf_reserve(tg_buf_t *b, size_t more);
static const char *tg_buf_escape(int32_t cp, char hex[8]);


void
tg_buf_init(tg_buf_t *b, size_t max)
{
    *b = (tg_buf_t) { .max = max };
}


void
tg_buf_free(tg_buf_t *b)
{
    free(b->data);
    tg_buf_init(b, b->max);
}


void
tg_buf_reset(tg_buf_t *b)
{
    b->len = 0;
    b->error = TG_OK;
}


tg_rc_e
tg_buf_append(tg_buf_t *b, const void *data, size_t len)
{
    tg_rc_e  rc;

    rc = tg_buf_reserve(b, len);

    if (rc == TG_OK && len > 0) {
        memcpy(b->data + b->len, data, len);
        b->len += len;
    }

    return rc;
}


tg_rc_e
tg_buf_str(tg_buf_t *b, tg_str_t s)
{
    return tg_buf_append(b, s.data, s.len);
}


tg_rc_e
tg_buf_cstr(tg_buf_t *b, const char *s)
{
    return tg_buf_append(b, s, strlen(s));
}


tg_rc_e
tg_buf_char(tg_buf_t *b, char c)
{
    return tg_buf_append(b, &c, 1);
}


tg_rc_e
tg_buf_int(tg_buf_t *b, int64_t n)
{
    char      digits[TG_BUF_INT_CHARS], *p;
    uint64_t  u;

    /* the magnitude of INT64_MIN exists only without the sign */
    u = n < 0 ? 0 - (uint64_t) n : (uint64_t) n;
    p = digits + sizeof(digits);

    do {
        *--p = (char) ('0' + u % 10);
        u /= 10;
    } while (u != 0);

    if (n < 0) {
        *--p = '-';
    }

    return tg_buf_append(b, p, (size_t) (digits + sizeof(digits) - p));
}


tg_rc_e
tg_buf_printf(tg_buf_t *b, const char *fmt, ...)
{
    int      n;
    size_t   need;
    tg_rc_e  rc;
    va_list  args;

    va_start(args, fmt);
    n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);

    if (n < 0) {
        return tg_buf_fail(b, TG_E_INVALID);
    }

    need = (size_t) n;
    rc = tg_buf_reserve(b, need);
    if (rc != TG_OK || need == 0) {
        return rc;
    }

    va_start(args, fmt);
    vsnprintf(b->data + b->len, need + 1, fmt, args);
    va_end(args);
    b->len += need;

    return TG_OK;
}


tg_rc_e
tg_buf_json_string(tg_buf_t *b, tg_str_t s)
{
    char         hex[8];
    size_t       i, n, plain, before;
    int32_t      cp;
    const char  *escape;

    before = b->len;
    tg_buf_char(b, '"');

    /* plain: start of the bytes that go out unchanged in one piece */
    for (i = plain = 0; i < s.len; i += n) {
        n = tg_utf8_next(s.data + i, s.len - i, &cp);
        escape = tg_buf_escape(cp, hex);
        if (escape != NULL) {
            tg_buf_append(b, s.data + plain, i - plain);
            tg_buf_cstr(b, escape);
            plain = i + n;
        }
    }

    tg_buf_append(b, s.len == 0 ? NULL : s.data + plain, s.len - plain);
    tg_buf_char(b, '"');

    if (b->error != TG_OK) {
        b->len = before;
    }

    return b->error;
}


/* What replaces a code point (-1: not UTF-8) in a JSON string; NULL: nothing. */
static const char *
tg_buf_escape(int32_t cp, char hex[8])
{
    switch (cp) {
    case -1:
        return "\xef\xbf\xbd";
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    case '\b':
        return "\\b";
    case '\f':
        return "\\f";
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    case '\t':
        return "\\t";
    default:
        break;
    }

    if (cp < 0x20 || cp == 0x7f || cp == 0x2028 || cp == 0x2029) {
        snprintf(hex, 8, "\\u%04x", (unsigned) cp & 0xffff);
        return hex;
    }

    return NULL;
}


/* Makes room for more bytes of content and a NUL behind them, which printf needs
 * and the bound does not count. */
static tg_rc_e
tg_buf_reserve(tg_buf_t *b, size_t more)
{
    char    *data;
    size_t   need, cap;

    if (b->error != TG_OK) {
        return b->error;
    }

    if (b->len > b->max || more > b->max - b->len) {
        return tg_buf_fail(b, TG_E_LIMIT);
    }

    need = b->len + more;
    if (more == 0 || need < b->cap) {
        return TG_OK;
    }

    if (need == SIZE_MAX) {
        return tg_buf_fail(b, TG_E_NOMEM);
    }

    /* doubling keeps appends linear; near the bound exactly the bound is taken */
    cap = b->cap < TG_BUF_FIRST ? TG_BUF_FIRST : b->cap;
    while (cap <= need) {
        cap = cap > SIZE_MAX / 2 ? SIZE_MAX : cap * 2;
    }
    if (cap > b->max && b->max < SIZE_MAX) {
        cap = b->max + 1;
    }

    data = realloc(b->data, cap);
    if (data == NULL) {
        return tg_buf_fail(b, TG_E_NOMEM);
    }

    b->data = data;
    b->cap = cap;

    return TG_OK;
}


static tg_rc_e
tg_buf_fail(tg_buf_t *b, tg_rc_e rc)
{
    if (b->error == TG_OK) {
        b->error = rc;
    }

    return b->error;
}
