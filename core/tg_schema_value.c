/*
 * JSON values as the schema sees them: types, numbers compared and divided
 * without loss, equality and hashes in which 1 and 1.0 are the same, sizes. It
 * must not know schemas, errors or patterns.
 */

#include "tg_schema_internal.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>


#define TG_SCHEMA_TWO_63    9223372036854775808.0
#define TG_SCHEMA_TWO_53    9007199254740992.0
#define TG_SCHEMA_EXACT_10  19                /* 10^19 fits 64 bits, 10^20 does not */

static uint64_t tg_schema_mix(uint64_t h, uint64_t v);
static uint64_t tg_schema_hash_bytes(uint64_t h, const char *data, size_t len);
static bool tg_schema_equal_at(const json_t *a, const json_t *b, size_t *steps,
    size_t depth);
static bool tg_schema_equal_objects(const json_t *a, const json_t *b, size_t *steps,
    size_t depth);
static bool tg_schema_equal_arrays(const json_t *a, const json_t *b, size_t *steps,
    size_t depth);
static uint64_t tg_schema_hash_at(const json_t *value, size_t *steps, size_t depth);
static uint64_t tg_schema_hash_object(const json_t *value, size_t *steps, size_t depth);
static bool tg_schema_measure(const json_t *value, size_t depth, size_t *count);


uint8_t
tg_schema_type_of(const json_t *value)
{
    double  d;

    switch (json_typeof(value)) {

    case JSON_OBJECT:
        return TG_SCHEMA_OBJECT;

    case JSON_ARRAY:
        return TG_SCHEMA_ARRAY;

    case JSON_STRING:
        return TG_SCHEMA_STRING;

    case JSON_INTEGER:
        return TG_SCHEMA_INTEGER;

    case JSON_REAL:
        d = json_real_value(value);
        return floor(d) == d ? TG_SCHEMA_INTEGER : TG_SCHEMA_FRACTION;

    case JSON_TRUE:
    case JSON_FALSE:
        return TG_SCHEMA_BOOLEAN;

    default:
        return TG_SCHEMA_NULL;
    }
}


tg_schema_num_t
tg_schema_num(const json_t *value)
{
    tg_schema_num_t  n;

    if (json_is_integer(value)) {
        n.is_int = true;
        n.i = json_integer_value(value);
        n.d = (double) n.i;
        return n;
    }

    n.d = json_real_value(value);
    n.is_int = floor(n.d) == n.d && n.d >= -TG_SCHEMA_TWO_63 && n.d < TG_SCHEMA_TWO_63;
    n.i = n.is_int ? (int64_t) n.d : 0;

    return n;
}


int
tg_schema_num_cmp(const tg_schema_num_t *a, const tg_schema_num_t *b)
{
    double   d;
    int64_t  whole;

    if (a->is_int && b->is_int) {
        return (a->i > b->i) - (a->i < b->i);
    }

    if (!a->is_int && !b->is_int) {
        return (a->d > b->d) - (a->d < b->d);
    }

    if (!a->is_int) {
        return -tg_schema_num_cmp(b, a);
    }

    /* a is an integer, b is a fraction or beyond int64 */
    d = b->d;

    if (d >= TG_SCHEMA_TWO_63) {
        return -1;
    }

    if (d < -TG_SCHEMA_TWO_63) {
        return 1;
    }

    whole = (int64_t) floor(d);

    return a->i <= whole ? -1 : 1;
}


/* The shortest text that reads back the same. */
void
tg_schema_num_text(const tg_schema_num_t *n, char *out, size_t size)
{
    int  digits;

    if (n->is_int) {
        snprintf(out, size, "%lld", (long long) n->i);
        return;
    }

    for (digits = 15; digits <= 17; digits++) {
        snprintf(out, size, "%.*g", digits, n->d);

        if (strtod(out, NULL) == n->d) {
            return;
        }
    }
}


tg_schema_decimal_t
tg_schema_decimal(const tg_schema_num_t *n)
{
    int                  digits;
    char                 text[32], *p;
    tg_schema_decimal_t  d;

    d.mantissa = 0;
    d.exponent = 0;

    if (n->is_int) {
        d.mantissa = n->i < 0 ? 0 - (uint64_t) n->i : (uint64_t) n->i;

    } else {
        /* below the normal range fewer digits than 15 may be the shortest form */
        digits = fabs(n->d) < DBL_MIN ? 0 : 14;

        for ( ; digits <= 16; digits++) {
            snprintf(text, sizeof(text), "%.*e", digits, fabs(n->d));

            if (strtod(text, NULL) == fabs(n->d)) {
                break;
            }
        }

        for (p = text; *p != 'e' && *p != '\0'; p++) {
            if (*p == '.') {
                continue;
            }

            d.mantissa = d.mantissa * 10 + (uint64_t) (*p - '0');
            d.exponent -= (p > text);
        }

        if (*p == 'e') {
            d.exponent += (int) strtol(p + 1, NULL, 10);
        }
    }

    while (d.mantissa != 0 && d.mantissa % 10 == 0) {
        d.mantissa /= 10;
        d.exponent++;
    }

    return d;
}


/*
 * Is n a multiple? Both are m * 10^e. When n has the larger exponent the question
 * is m1 * 10^k mod m2 == 0, by repeated squaring; else m1 mod (m2 * 10^k) == 0,
 * where a k that 64 bits cannot hold means no. Nothing is rounded, nothing
 * overflows, however far apart the two are.
 */
bool
tg_schema_is_multiple(const tg_schema_num_t *n, const tg_schema_number_t *of)
{
    int                  k;
    uint64_t             m;
    unsigned __int128    a, power, divisor;
    tg_schema_decimal_t  x;

    if (n->is_int && of->multiple.is_int) {
        /* the divisor is positive, so this cannot trap */
        return n->i % of->multiple.i == 0;
    }

    if (fabs(n->d) >= TG_SCHEMA_TWO_53 && of->multiple.d == floor(of->multiple.d)
        && fmod(n->d, of->multiple.d) == 0.0)
    {
        /* a big double is exactly that integer, whatever its shortest form says */
        return true;
    }

    x = tg_schema_decimal(n);
    if (x.mantissa == 0) {
        return true;
    }

    m = of->multiple_decimal.mantissa;
    k = x.exponent - of->multiple_decimal.exponent;

    if (k < 0) {
        if (-k > TG_SCHEMA_EXACT_10) {
            return false;
        }

        for (divisor = m; k < 0; k++) {
            divisor *= 10;
        }

        return x.mantissa % divisor == 0;
    }

    a = x.mantissa % m;
    power = 10 % m;

    for ( ; k > 0; k >>= 1) {
        if (k & 1) {
            a = a * power % m;
        }

        power = power * power % m;
    }

    return a == 0;
}


/*
 * Equality of JSON. *steps grows by what it cost; what is nested deeper than an
 * evaluation may go costs more steps than there are, so that the caller stops.
 */
bool
tg_schema_equal(const json_t *a, const json_t *b, size_t *steps)
{
    return tg_schema_equal_at(a, b, steps, 1);
}


/* Equal values have equal hashes; the order of an object's keys does not count. */
uint64_t
tg_schema_hash(const json_t *value, size_t *steps)
{
    return tg_schema_hash_at(value, steps, 1);
}


size_t
tg_schema_code_points(const char *text, size_t len)
{
    size_t  i, n;

    n = 0;

    for (i = 0; i < len; i++) {
        n += ((uint8_t) text[i] & 0xc0) != 0x80;
    }

    return n;
}


/* Reads a non-negative integer of any notation; what does not fit is the maximum. */
bool
tg_schema_size_of(const json_t *value, size_t *size)
{
    tg_schema_num_t  n;

    if (!json_is_number(value) || tg_schema_type_of(value) != TG_SCHEMA_INTEGER) {
        return false;
    }

    n = tg_schema_num(value);

    if (n.d < 0) {
        return false;
    }

    *size = n.is_int ? (size_t) n.i : SIZE_MAX;

    return true;
}


/* False when the document is deeper or larger than a schema may be. */
bool
tg_schema_measurable(const json_t *document, size_t *count)
{
    *count = 0;

    return tg_schema_measure(document, 1, count);
}


static bool
tg_schema_measure(const json_t *value, size_t depth, size_t *count)
{
    void    *iter;
    size_t   i;
    json_t  *object;

    if (++*count > TG_SCHEMA_MAX_VALUES || depth > TG_SCHEMA_MAX_DEPTH) {
        return false;
    }

    if (json_is_array(value)) {
        for (i = 0; i < json_array_size(value); i++) {
            if (!tg_schema_measure(json_array_get(value, i), depth + 1, count)) {
                return false;
            }
        }

        return true;
    }

    object = (json_t *) (uintptr_t) value;

    for (iter = json_object_iter(object); iter != NULL;
         iter = json_object_iter_next(object, iter))
    {
        if (!tg_schema_measure(json_object_iter_value(iter), depth + 1, count)) {
            return false;
        }
    }

    return true;
}


static uint64_t
tg_schema_mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);

    return h ^ h >> 29;
}


static uint64_t
tg_schema_hash_bytes(uint64_t h, const char *data, size_t len)
{
    uint64_t  word;

    h = tg_schema_mix(h, len);

    for ( ; len >= sizeof(word); len -= sizeof(word), data += sizeof(word)) {
        memcpy(&word, data, sizeof(word));
        h = tg_schema_mix(h, word);
    }

    word = 0;
    memcpy(&word, data, len);

    return tg_schema_mix(h, word);
}


static uint64_t
tg_schema_hash_at(const json_t *value, size_t *steps, size_t depth)
{
    size_t           i;
    uint64_t         h, bits;
    tg_schema_num_t  n;

    if (depth > TG_SCHEMA_MAX_DEPTH) {
        *steps += TG_SCHEMA_MAX_STEPS;
        return 0;
    }

    (*steps)++;

    switch (json_typeof(value)) {

    case JSON_STRING:
        *steps += json_string_length(value) / TG_SCHEMA_SCAN_STEP;
        return tg_schema_hash_bytes(3, json_string_value(value),
                                    json_string_length(value));

    case JSON_INTEGER:
    case JSON_REAL:
        n = tg_schema_num(value);
        if (n.is_int) {
            return tg_schema_mix(5, (uint64_t) n.i);
        }

        memcpy(&bits, &n.d, sizeof(bits));
        return tg_schema_mix(7, bits);

    case JSON_ARRAY:
        h = 11;

        for (i = 0; i < json_array_size(value); i++) {
            h = tg_schema_mix(h, tg_schema_hash_at(json_array_get(value, i), steps,
                                                   depth + 1));
        }

        return h;

    case JSON_OBJECT:
        return tg_schema_hash_object(value, steps, depth);

    default:
        return 17 + (uint64_t) json_typeof(value);
    }
}


static uint64_t
tg_schema_hash_object(const json_t *value, size_t *steps, size_t depth)
{
    void      *iter;
    json_t    *object;
    uint64_t   h;

    h = 13;
    object = (json_t *) (uintptr_t) value;      /* iteration changes nothing */

    for (iter = json_object_iter(object); iter != NULL;
         iter = json_object_iter_next(object, iter))
    {
        /* a sum: the order of keys must not matter */
        h += tg_schema_hash_bytes(
                 tg_schema_hash_at(json_object_iter_value(iter), steps, depth + 1),
                 json_object_iter_key(iter), json_object_iter_key_len(iter));
    }

    return h;
}


static bool
tg_schema_equal_at(const json_t *a, const json_t *b, size_t *steps, size_t depth)
{
    tg_schema_num_t  x, y;

    if (depth > TG_SCHEMA_MAX_DEPTH) {
        *steps += TG_SCHEMA_MAX_STEPS;
        return false;
    }

    (*steps)++;

    if (json_is_number(a) && json_is_number(b)) {
        x = tg_schema_num(a);
        y = tg_schema_num(b);
        return tg_schema_num_cmp(&x, &y) == 0;
    }

    if (json_typeof(a) != json_typeof(b)) {
        return false;
    }

    switch (json_typeof(a)) {

    case JSON_STRING:
        if (json_string_length(a) != json_string_length(b)) {
            return false;
        }

        *steps += json_string_length(a) / TG_SCHEMA_SCAN_STEP;
        return memcmp(json_string_value(a), json_string_value(b), json_string_length(a))
               == 0;

    case JSON_ARRAY:
        return tg_schema_equal_arrays(a, b, steps, depth);

    case JSON_OBJECT:
        return tg_schema_equal_objects(a, b, steps, depth);

    default:
        return true;
    }
}


static bool
tg_schema_equal_arrays(const json_t *a, const json_t *b, size_t *steps, size_t depth)
{
    size_t  i;

    if (json_array_size(a) != json_array_size(b)) {
        return false;
    }

    for (i = 0; i < json_array_size(a); i++) {
        if (!tg_schema_equal_at(json_array_get(a, i), json_array_get(b, i), steps,
                                depth + 1))
        {
            return false;
        }
    }

    return true;
}


static bool
tg_schema_equal_objects(const json_t *a, const json_t *b, size_t *steps, size_t depth)
{
    void          *iter;
    json_t        *object;
    const json_t  *other;

    if (json_object_size(a) != json_object_size(b)) {
        return false;
    }

    object = (json_t *) (uintptr_t) a;

    for (iter = json_object_iter(object); iter != NULL;
         iter = json_object_iter_next(object, iter))
    {
        other = json_object_getn(b, json_object_iter_key(iter),
                                 json_object_iter_key_len(iter));

        if (other == NULL
            || !tg_schema_equal_at(json_object_iter_value(iter), other, steps, depth + 1))
        {
            return false;
        }
    }

    return true;
}
