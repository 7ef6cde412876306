/*
 * A resumable, validating scanner for big JSON bodies. It builds no tree: while
 * the bytes arrive it checks them as strictly as tg_json.h and records where the
 * members of the top object and of each element of "messages" lie, so that a
 * request can be spliced instead of parsed and written again.
 */

#ifndef TG_SCAN_H
#define TG_SCAN_H

#include "tg.h"


#define TG_SCAN_MAX_DEPTH     128
#define TG_SCAN_MAX_MEMBERS   256      /* of the top object */
#define TG_SCAN_MAX_MESSAGES  100000
#define TG_SCAN_MAX_KEYS      2000000  /* open keys remembered for duplicates */

typedef enum {
    TG_SCAN_NONE = 0,     /* absent */
    TG_SCAN_STRING,
    TG_SCAN_NUMBER,
    TG_SCAN_TRUE,
    TG_SCAN_FALSE,
    TG_SCAN_NULL,
    TG_SCAN_OBJECT,
    TG_SCAN_ARRAY
} tg_scan_type_e;

/* Offsets are from the first byte ever fed. A string's range has its quotes. */
typedef struct {
    size_t          start;
    size_t          end;         /* one past the last byte */
    tg_scan_type_e  type;
} tg_scan_range_t;

typedef struct {
    tg_scan_range_t  key;        /* with quotes; plain: it has no escapes */
    tg_scan_range_t  value;
    bool             key_escaped;
} tg_scan_member_t;

/* One element of the top-level array "messages". */
typedef struct {
    tg_scan_range_t  whole;
    tg_scan_range_t  role;          /* value ranges; type NONE when absent */
    tg_scan_range_t  content;
    tg_scan_range_t  tool_call_id;
    tg_scan_range_t  tool_calls;
    bool             role_escaped;
} tg_scan_message_t;

typedef struct tg_scan_s  tg_scan_t;


/* Returns a new scanner or NULL when out of memory; free it with tg_scan_free. */
tg_scan_t *tg_scan_new(void);
void tg_scan_free(tg_scan_t *scan);

/*
 * Takes the next bytes. `data` need only live during the call. Returns TG_OK so
 * far, TG_E_SYNTAX, TG_E_LIMIT or TG_E_NOMEM; after an error every call repeats
 * it. The cost is linear in len whatever the content.
 */
tg_rc_e tg_scan_feed(tg_scan_t *scan, const char *data, size_t len);

/* Says that no more comes: TG_OK when exactly one value (of any type) was read. */
tg_rc_e tg_scan_finish(tg_scan_t *scan);

/* Why and where it failed: static text, e.g. "duplicate key". */
const char *tg_scan_error(const tg_scan_t *scan, size_t *offset);

/* The facts below are valid after tg_scan_finish gave TG_OK. */
tg_scan_type_e tg_scan_top_type(const tg_scan_t *scan);
/* The top object's own range, braces included. */
tg_scan_range_t tg_scan_top(const tg_scan_t *scan);
size_t tg_scan_member_count(const tg_scan_t *scan);
const tg_scan_member_t *tg_scan_member(const tg_scan_t *scan, size_t i);
/* The member with this (unescaped) key or NULL. body = the bytes that were fed. */
const tg_scan_member_t *tg_scan_find(const tg_scan_t *scan, const char *body,
    const char *key);
size_t tg_scan_message_count(const tg_scan_t *scan);
const tg_scan_message_t *tg_scan_message(const tg_scan_t *scan, size_t i);

/* Decodes a string value range of body into dst. Returns the length, or -1 when
 * it would pass cap or the range is not a string. */
ptrdiff_t tg_scan_string(const char *body, tg_scan_range_t range, char *dst,
    size_t cap);

#endif /* TG_SCAN_H */
