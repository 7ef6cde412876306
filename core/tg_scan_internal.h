/*
 * What the state machine of the scanner and its records share. For tg_scan*.c only.
 */

#ifndef TG_SCAN_INTERNAL_H
#define TG_SCAN_INTERNAL_H

#include "tg_scan.h"
#include "tg_scan_keys.h"
#include "tg_utf8.h"


/* Values are recorded down to the members of an element of "messages". */
#define TG_SCAN_RECORD_DEPTH  3

typedef enum {
    /* between tokens */
    TG_SCAN_AT_VALUE = 0,
    TG_SCAN_AT_FIRST_ELEMENT,     /* a value or ] */
    TG_SCAN_AT_FIRST_KEY,         /* a key or } */
    TG_SCAN_AT_KEY,
    TG_SCAN_AT_COLON,
    TG_SCAN_AFTER_VALUE,          /* a comma or the end of the container */

    /* in a string */
    TG_SCAN_IN_TEXT,
    TG_SCAN_IN_CHARACTER,         /* continuation bytes are missing */
    TG_SCAN_IN_ESCAPE,            /* after the backslash */
    TG_SCAN_IN_HEX,
    TG_SCAN_AT_LOW_BACKSLASH,     /* after a high surrogate */
    TG_SCAN_AT_LOW_U,

    /* in a number; tg_scan_number_complete() says which of them may be its end */
    TG_SCAN_AFTER_MINUS,
    TG_SCAN_IN_ZERO,
    TG_SCAN_IN_INTEGER,
    TG_SCAN_AFTER_POINT,
    TG_SCAN_IN_FRACTION,
    TG_SCAN_AFTER_E,
    TG_SCAN_AFTER_E_SIGN,
    TG_SCAN_IN_EXPONENT,

    TG_SCAN_IN_LITERAL
} tg_scan_state_e;

typedef struct {
    bool              is_object;
    tg_scan_object_t  keys;
} tg_scan_frame_t;

/* The keys that records look for. */
typedef struct {
    tg_scan_key_t  messages;
    tg_scan_key_t  role;
    tg_scan_key_t  content;
    tg_scan_key_t  tool_call_id;
    tg_scan_key_t  tool_calls;
} tg_scan_names_t;

struct tg_scan_s {
    tg_scan_state_e        state;
    unsigned               depth;           /* open containers */
    bool                   in_object;       /* the innermost one is an object */
    bool                   blank;           /* nothing but blanks so far */

    /* the string under way */
    bool                   in_key;
    bool                   escaped;         /* it has an escape */
    tg_utf8_lead_t         lead;            /* what the character still wants */
    unsigned               digits;          /* of \uXXXX read */
    uint32_t               unit;            /* their value */
    uint32_t               high;            /* the surrogate before; 0: none */
    size_t                 key_start;
    tg_scan_key_builder_t  builder;

    const char            *literal;         /* the rest that must follow */

    tg_scan_key_t          key;             /* the last one read */
    tg_scan_keys_t         keys;
    tg_scan_names_t        names;
    tg_scan_frame_t       *frames;          /* one for each open container */
    unsigned               frame_cap;       /* those above depth were closed */

    /* the input of this call */
    const char            *data;
    size_t                 fed;             /* bytes before it */

    tg_rc_e                rc;
    const char            *error;
    size_t                 error_offset;

    /* records: where the value under way goes, by depth; NULL: nowhere */
    tg_scan_range_t       *slot[TG_SCAN_RECORD_DEPTH + 1];
    tg_scan_range_t        top;
    bool                   in_messages;
    tg_scan_member_t      *members;
    size_t                 member_count;
    size_t                 member_cap;
    tg_scan_message_t     *messages;
    size_t                 message_count;
    size_t                 message_cap;
};


/*
 * A step takes the bytes from p on, moves scan->state and returns where it
 * stopped, or NULL when the input is refused. It may stop before end at any point
 * where another step goes on.
 */
const char *tg_scan_string_step(tg_scan_t *scan, const char *p, const char *end);

/* The key scan->key has been read and ends before p. */
const char *tg_scan_key_end(tg_scan_t *scan, const char *p);

/* Room for one more open container; false: out of memory. */
bool tg_scan_more_frames(tg_scan_t *scan);

/* Frees what only the reading needs; the records stay. */
void tg_scan_forget(tg_scan_t *scan);

/* Refuses the input because of the byte at p. */
const char *tg_scan_fail(tg_scan_t *scan, const char *p, tg_rc_e rc, const char *reason);

/* A key of the top object, and a value at TG_SCAN_RECORD_DEPTH at most. Both return
 * NULL or the reason why the scan cannot go on, with the code in *rc. */
const char *tg_scan_record_key(tg_scan_t *scan, size_t start, size_t end, tg_rc_e *rc);
const char *tg_scan_record_value(tg_scan_t *scan, size_t start, tg_scan_type_e type,
    tg_rc_e *rc);

/* The string that ends is a field of a message and has an escape. */
void tg_scan_record_escape(tg_scan_t *scan);


static inline size_t
tg_scan_offset(const tg_scan_t *scan, const char *p)
{
    return scan->fed + (size_t) (p - scan->data);
}


/* Says that the value under way ends before p. */
static inline void
tg_scan_end(tg_scan_t *scan, const char *p)
{
    scan->state = TG_SCAN_AFTER_VALUE;

    if (scan->depth <= TG_SCAN_RECORD_DEPTH && scan->slot[scan->depth] != NULL) {
        scan->slot[scan->depth]->end = tg_scan_offset(scan, p);
    }
}


/* What the letter after a backslash stands for; 0: not an escape of one letter. */
extern const char tg_scan_unescape[256];

/* The value of a hex digit with TG_SCAN_HEX_OK, or 0. */
extern const uint8_t tg_scan_hex_digit[256];

#define TG_SCAN_HEX_OK  0x10


/* Four hex digits, or -1. */
static inline int32_t
tg_scan_hex4(const char *p)
{
    uint32_t  a, b, c, d;

    a = tg_scan_hex_digit[(uint8_t) p[0]];
    b = tg_scan_hex_digit[(uint8_t) p[1]];
    c = tg_scan_hex_digit[(uint8_t) p[2]];
    d = tg_scan_hex_digit[(uint8_t) p[3]];

    if ((a & b & c & d & TG_SCAN_HEX_OK) == 0) {
        return -1;
    }

    return (int32_t) ((a & 0xf) << 12 | (b & 0xf) << 8 | (c & 0xf) << 4 | (d & 0xf));
}


static inline bool
tg_scan_is_high_surrogate(uint32_t unit)
{
    return unit >= 0xd800 && unit <= 0xdbff;
}


static inline bool
tg_scan_is_low_surrogate(uint32_t unit)
{
    return unit >= 0xdc00 && unit <= 0xdfff;
}


static inline uint32_t
tg_scan_join_surrogates(uint32_t high, uint32_t low)
{
    return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

#endif /* TG_SCAN_INTERNAL_H */
