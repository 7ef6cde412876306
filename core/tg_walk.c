/*
 * The walk over valid JSON. A big body has its bytes in strings and in lists of many
 * small things: 64 bytes are judged at once, and what they are makes no difference to
 * the time.
 */

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "tg_walk.h"


#define TG_WALK_NAME_MAX  64     /* bytes of a name that is compared */
#define TG_WALK_BLOCK     64

/* A bit for each byte of a block, the first in the lowest. */
typedef struct {
    uint64_t  quote;
    uint64_t  backslash;
    uint64_t  open;              /* { or [ */
    uint64_t  close;
} tg_walk_bits_t;


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


#if defined(__SSE2__)

static inline uint64_t
tg_walk_equal(__m128i v, char c, unsigned i)
{
    return (uint64_t) (uint32_t) _mm_movemask_epi8(_mm_cmpeq_epi8(v,
                                                   _mm_set1_epi8(c))) << 16 * i;
}


static inline void
tg_walk_judge(const char *p, tg_walk_bits_t *bits)
{
    __m128i   v, lower;
    unsigned  i;

    *bits = (tg_walk_bits_t) { 0 };

    for (i = 0; i < TG_WALK_BLOCK / 16; i++) {
        v = _mm_loadu_si128((const __m128i *) (const void *) (p + 16 * i));

        /* one bit makes [ from { and ] from } */
        lower = _mm_or_si128(v, _mm_set1_epi8(0x20));

        bits->quote |= tg_walk_equal(v, '"', i);
        bits->backslash |= tg_walk_equal(v, '\\', i);
        bits->open |= tg_walk_equal(lower, '{', i);
        bits->close |= tg_walk_equal(lower, '}', i);
    }
}

#else

static inline void
tg_walk_judge(const char *p, tg_walk_bits_t *bits)
{
    char      lower;
    unsigned  i;

    *bits = (tg_walk_bits_t) { 0 };

    for (i = 0; i < TG_WALK_BLOCK; i++) {
        lower = (char) (p[i] | 0x20);

        bits->quote |= (uint64_t) (p[i] == '"') << i;
        bits->backslash |= (uint64_t) (p[i] == '\\') << i;
        bits->open |= (uint64_t) (lower == '{') << i;
        bits->close |= (uint64_t) (lower == '}') << i;
    }
}

#endif


/* Judges the next block; what is behind the end counts as blank. Returns how many of
 * its bytes there are. */
static inline size_t
tg_walk_block(const tg_walk_t *walk, const char *p, tg_walk_bits_t *bits)
{
    char    last[TG_WALK_BLOCK];
    size_t  n;

    n = (size_t) (walk->end - p);

    if (n >= TG_WALK_BLOCK) {
        tg_walk_judge(p, bits);
        return TG_WALK_BLOCK;
    }

    memset(last, ' ', sizeof(last));
    memcpy(last, p, n);
    tg_walk_judge(last, bits);

    return n;
}


/* The bytes that a backslash before them takes the meaning from. Runs of backslashes
 * are told apart by whether they begin at an even or an odd place; *carry: the first
 * byte of the next block is one. */
static inline uint64_t
tg_walk_escaped(uint64_t backslash, uint64_t *carry)
{
    uint64_t  follows, odd, sums, escaped;

    const uint64_t  even = 0x5555555555555555U;

    if (backslash == 0) {
        escaped = *carry;
        *carry = 0;
        return escaped;
    }

    backslash &= ~*carry;
    follows = backslash << 1 | *carry;
    odd = backslash & ~even & ~follows;
    *carry = __builtin_add_overflow(odd, backslash, &sums);

    return (even ^ (sums << 1)) & follows;
}


/* Passes a string whose first quote is at the walk's place. */
static void
tg_walk_string(tg_walk_t *walk)
{
    size_t           n;
    uint64_t         carry, quotes;
    const char      *p;
    tg_walk_bits_t   bits;

    carry = 0;

    for (p = walk->p + 1; p < walk->end; p += n) {
        n = tg_walk_block(walk, p, &bits);
        quotes = bits.quote & ~tg_walk_escaped(bits.backslash, &carry);

        if (quotes) {
            walk->p = p + __builtin_ctzll(quotes) + 1;
            return;
        }
    }

    walk->p = walk->end;
}


/* Every bit that has an odd number of ones up to itself: what is inside of quotes. */
static inline uint64_t
tg_walk_inside_quotes(uint64_t quotes)
{
    unsigned  shift;

    for (shift = 1; shift < 64; shift *= 2) {
        quotes ^= quotes << shift;
    }

    return quotes;
}


/* Moves the depth by the brackets of a block. Returns where it comes to nothing, or
 * TG_WALK_BLOCK when it does not. */
static inline unsigned
tg_walk_depth(uint64_t open, uint64_t close, size_t *depth)
{
    size_t    closed;
    unsigned  at;
    uint64_t  both;

    closed = (size_t) __builtin_popcountll(close);

    /* fewer ends than there are open ones: it is not here */

    if (closed < *depth) {
        *depth += (size_t) __builtin_popcountll(open) - closed;
        return TG_WALK_BLOCK;
    }

    for (both = open | close; both; both &= both - 1) {
        at = (unsigned) __builtin_ctzll(both);

        if (open >> at & 1) {
            (*depth)++;

        } else if (--*depth == 0) {
            return at;
        }
    }

    return TG_WALK_BLOCK;
}


/* Passes an object or an array without regard to what is in it. */
static void
tg_walk_container(tg_walk_t *walk)
{
    size_t           n, depth;
    unsigned         at;
    uint64_t         carry, within, strings;
    const char      *p;
    tg_walk_bits_t   bits;

    carry = 0;
    within = 0;
    depth = 0;

    for (p = walk->p; p < walk->end; p += n) {
        n = tg_walk_block(walk, p, &bits);
        bits.quote &= ~tg_walk_escaped(bits.backslash, &carry);

        strings = tg_walk_inside_quotes(bits.quote) ^ within;
        within = (strings >> 63) ? ~UINT64_C(0) : 0;

        at = tg_walk_depth(bits.open & ~strings, bits.close & ~strings, &depth);

        if (at < TG_WALK_BLOCK) {
            walk->p = p + at + 1;
            return;
        }
    }

    walk->p = walk->end;
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


tg_scan_type_e
tg_walk_at_element(tg_walk_t *walk)
{
    return tg_walk_next(walk) ? tg_walk_type(*walk->p) : TG_SCAN_NONE;
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


void
tg_walk_members(tg_str_t object, size_t n, const char *const *names,
    tg_walk_value_t *values)
{
    size_t           i;
    tg_str_t         key;
    tg_walk_t        walk;
    tg_walk_value_t  value;

    memset(values, 0, n * sizeof(*values));

    if (object.len == 0 || object.data[0] != '{') {
        return;
    }

    walk = tg_walk_over(object);
    (void) tg_walk_enter(&walk);

    while (tg_walk_member(&walk, &key, &value)) {
        for (i = 0; value.type != TG_SCAN_NULL && i < n; i++) {
            if (tg_walk_is(key, names[i])) {
                values[i] = value;
                break;
            }
        }
    }
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
