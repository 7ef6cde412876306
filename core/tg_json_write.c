/*
 * Writes jansson trees: the canonical form, in which equal values are equal bytes,
 * and the compact form that keeps the order of keys. It must not change what a
 * value means: what is written reads back as the same value.
 */

#include "tg_json.h"

#include <stdio.h>
#include <stdlib.h>


/* Trees are put together from loaded parts, so they may be deeper than one part. */
#define TG_JSON_MAX_WALK       (4 * TG_JSON_MAX_DEPTH)
#define TG_JSON_SORT_INLINE    32     /* keys sorted without an allocation */
#define TG_JSON_REAL_CHARS     32
#define TG_JSON_EXACT_DIGITS   15     /* decimals that every double keeps */
#define TG_JSON_ENOUGH_DIGITS  17     /* decimals that tell all doubles apart */
#define TG_JSON_SMALL_NORMAL   2.2250738585072014e-308
#define TG_JSON_TWO_TO_63      9223372036854775808.0

typedef struct {
    tg_buf_t  *out;
    bool       canonical;
} tg_json_writer_t;

typedef struct {
    const char  *key;
    size_t       len;
    json_t      *value;
} tg_json_member_t;

static tg_rc_e tg_json_write(const json_t *value, tg_buf_t *out, bool canonical);
static tg_rc_e tg_json_write_value(tg_json_writer_t *w, const json_t *value,
    unsigned depth);
static tg_rc_e tg_json_write_array(tg_json_writer_t *w, const json_t *array,
    unsigned depth);
static tg_rc_e tg_json_write_object(tg_json_writer_t *w, json_t *object, unsigned depth);
static tg_rc_e tg_json_write_members(tg_json_writer_t *w, const tg_json_member_t *members,
    size_t n, unsigned depth);
static int tg_json_compare_keys(const void *a, const void *b);
static tg_rc_e tg_json_write_string(tg_json_writer_t *w, tg_str_t s);
static tg_rc_e tg_json_write_real(tg_json_writer_t *w, double d);
static void tg_json_format_real(double d, char text[TG_JSON_REAL_CHARS]);


tg_rc_e
tg_json_canonical(const json_t *value, tg_buf_t *out)
{
    return tg_json_write(value, out, true);
}


tg_rc_e
tg_json_dump(const json_t *value, tg_buf_t *out)
{
    return tg_json_write(value, out, false);
}


static tg_rc_e
tg_json_write(const json_t *value, tg_buf_t *out, bool canonical)
{
    size_t            before;
    tg_rc_e           rc;
    tg_json_writer_t  w;

    before = out->len;
    w = (tg_json_writer_t) { out, canonical };

    rc = tg_json_write_value(&w, value, 0);
    if (rc != TG_OK) {
        out->len = before;
    }

    return rc;
}


static tg_rc_e
tg_json_write_value(tg_json_writer_t *w, const json_t *value, unsigned depth)
{
    if (value == NULL) {
        return TG_E_INVALID;
    }

    if (depth > TG_JSON_MAX_WALK) {
        return TG_E_LIMIT;
    }

    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return tg_json_write_object(w, (json_t *) value, depth);
    case JSON_ARRAY:
        return tg_json_write_array(w, value, depth);
    case JSON_STRING:
        return tg_json_write_string(w, (tg_str_t) { json_string_length(value),
                                                    json_string_value(value) });
    case JSON_INTEGER:
        return tg_buf_int(w->out, json_integer_value(value));
    case JSON_REAL:
        return tg_json_write_real(w, json_real_value(value));
    case JSON_TRUE:
        return tg_buf_cstr(w->out, "true");
    case JSON_FALSE:
        return tg_buf_cstr(w->out, "false");
    case JSON_NULL:
        break;
    }

    return tg_buf_cstr(w->out, "null");
}


static tg_rc_e
tg_json_write_array(tg_json_writer_t *w, const json_t *array, unsigned depth)
{
    size_t   i;
    tg_rc_e  rc;

    tg_buf_char(w->out, '[');

    for (i = 0; i < json_array_size(array); i++) {
        if (i > 0) {
            tg_buf_char(w->out, ',');
        }

        rc = tg_json_write_value(w, json_array_get(array, i), depth + 1);
        if (rc != TG_OK) {
            return rc;
        }
    }

    return tg_buf_char(w->out, ']');
}


static tg_rc_e
tg_json_write_object(tg_json_writer_t *w, json_t *object, unsigned depth)
{
    void              *iter;
    size_t             n;
    tg_rc_e            rc;
    tg_json_member_t  *members, few[TG_JSON_SORT_INLINE];

    n = json_object_size(object);
    members = few;
    if (n > TG_JSON_SORT_INLINE) {
        members = calloc(n, sizeof(tg_json_member_t));
        if (members == NULL) {
            return TG_E_NOMEM;
        }
    }

    n = 0;
    for (iter = json_object_iter(object); iter != NULL;
         iter = json_object_iter_next(object, iter))
    {
        members[n++] = (tg_json_member_t) { json_object_iter_key(iter),
                                            json_object_iter_key_len(iter),
                                            json_object_iter_value(iter) };
    }

    if (w->canonical && n > 1) {
        qsort(members, n, sizeof(tg_json_member_t), tg_json_compare_keys);
    }

    rc = tg_json_write_members(w, members, n, depth);

    if (members != few) {
        free(members);
    }

    return rc;
}


static tg_rc_e
tg_json_write_members(tg_json_writer_t *w, const tg_json_member_t *members, size_t n,
    unsigned depth)
{
    size_t   i;
    tg_rc_e  rc;

    tg_buf_char(w->out, '{');

    for (i = 0; i < n; i++) {
        if (i > 0) {
            tg_buf_char(w->out, ',');
        }

        tg_json_write_string(w, (tg_str_t) { members[i].len, members[i].key });
        tg_buf_char(w->out, ':');

        rc = tg_json_write_value(w, members[i].value, depth + 1);
        if (rc != TG_OK) {
            return rc;
        }
    }

    return tg_buf_char(w->out, '}');
}


static int
tg_json_compare_keys(const void *a, const void *b)
{
    int                      order;
    size_t                   shorter;
    const tg_json_member_t  *x, *y;

    x = a;
    y = b;
    shorter = x->len < y->len ? x->len : y->len;

    order = memcmp(x->key, y->key, shorter);
    if (order != 0) {
        return order;
    }

    return (x->len > y->len) - (x->len < y->len);
}


/* The canonical form escapes only what JSON cannot hold otherwise. */
static tg_rc_e
tg_json_write_string(tg_json_writer_t *w, tg_str_t s)
{
    size_t   i, plain;
    uint8_t  c;

    if (!w->canonical) {
        return tg_buf_json_string(w->out, s);
    }

    tg_buf_char(w->out, '"');

    for (i = plain = 0; i < s.len; i++) {
        c = (uint8_t) s.data[i];
        if (c >= 0x20 && c != '"' && c != '\\') {
            continue;
        }

        tg_buf_append(w->out, s.data + plain, i - plain);
        plain = i + 1;

        if (c < 0x20) {
            tg_buf_printf(w->out, "\\u%04x", c);
        } else {
            tg_buf_char(w->out, '\\');
            tg_buf_char(w->out, (char) c);
        }
    }

    tg_buf_append(w->out, s.data + plain, s.len - plain);

    return tg_buf_char(w->out, '"');
}


static tg_rc_e
tg_json_write_real(tg_json_writer_t *w, double d)
{
    char  text[TG_JSON_REAL_CHARS];

    /* 1.0, 1e0 and 1 are one value: the integer's digits stand for all of them */
    if (w->canonical && d >= -TG_JSON_TWO_TO_63 && d < TG_JSON_TWO_TO_63
        && (double) (int64_t) d == d)
    {
        return tg_buf_int(w->out, (int64_t) d);
    }

    tg_json_format_real(d, text);

    /* a real stays a real for whoever reads the text */
    if (!w->canonical && strpbrk(text, ".e") == NULL) {
        strcat(text, ".0");
    }

    return tg_buf_cstr(w->out, text);
}


static void
tg_json_format_real(double d, char text[TG_JSON_REAL_CHARS])
{
    int    digits;
    char  *comma;

    /* up to 15 digits %g drops what is not needed; only the smallest numbers have
     * fewer digits of their own than that, so they are tried one by one */
    digits = (d > -TG_JSON_SMALL_NORMAL && d < TG_JSON_SMALL_NORMAL)
             ? 1 : TG_JSON_EXACT_DIGITS;

    for (/* void */; digits <= TG_JSON_ENOUGH_DIGITS; digits++) {
        snprintf(text, TG_JSON_REAL_CHARS - sizeof(".0"), "%.*g", digits, d);
        if (strtod(text, NULL) == d) {
            break;
        }
    }

    /* a host program may have set a locale that writes 0,5 */
    comma = strchr(text, ',');
    if (comma != NULL) {
        *comma = '.';
    }
}
