/*
 * The state machine of the scanner: checks JSON byte by byte as it arrives and
 * says where keys and values begin and end. It must not know what is done with
 * these facts (tg_scan_record.c) nor how keys are compared (tg_scan_keys.c). The
 * states inside a string are in tg_scan_string.c.
 */

#include "tg_scan_internal.h"

#include "tg_scan_text.h"


static const char *tg_scan_step(tg_scan_t *scan, const char *p, const char *end);
static const char *tg_scan_structure(tg_scan_t *scan, const char *p, const char *end);
static inline const char *tg_scan_token(tg_scan_t *scan, const char *p, const char *end);
static const char *tg_scan_value(tg_scan_t *scan, const char *p, const char *end);
static const char *tg_scan_open(tg_scan_t *scan, const char *p, bool is_object);
static const char *tg_scan_close(tg_scan_t *scan, const char *p, bool is_object);
static const char *tg_scan_after_value(tg_scan_t *scan, const char *p);
static const char *tg_scan_key_start(tg_scan_t *scan, const char *p, const char *end);
static const char *tg_scan_text_start(tg_scan_t *scan, const char *p, const char *end);
static const char *tg_scan_number_start(tg_scan_t *scan, const char *p, const char *end,
    tg_scan_state_e state);
static const char *tg_scan_number(tg_scan_t *scan, const char *p, const char *end);
static bool tg_scan_number_move(tg_scan_t *scan, char c);
static bool tg_scan_number_complete(tg_scan_state_e state);
static const char *tg_scan_literal_start(tg_scan_t *scan, const char *p, const char *rest,
    tg_scan_type_e type);
static const char *tg_scan_literal(tg_scan_t *scan, const char *p, const char *end);
static const char *tg_scan_begin(tg_scan_t *scan, const char *p, tg_scan_type_e type);


tg_rc_e
tg_scan_feed(tg_scan_t *scan, const char *data, size_t len)
{
    const char  *p, *end;

    if (scan->rc != TG_OK || len == 0) {
        return scan->rc;
    }

    p = scan->data = data;
    end = data + len;

    while (p != NULL && p < end) {
        p = tg_scan_step(scan, p, end);
    }

    scan->data = NULL;
    scan->fed += len;

    return scan->rc;
}


tg_rc_e
tg_scan_finish(tg_scan_t *scan)
{
    if (scan->rc != TG_OK) {
        return scan->rc;
    }

    /* a number at the top has no byte that ends it */
    if (scan->depth == 0 && tg_scan_number_complete(scan->state)) {
        scan->top.end = scan->fed;
        scan->state = TG_SCAN_AFTER_VALUE;
    }

    if (scan->depth != 0 || scan->state != TG_SCAN_AFTER_VALUE) {
        scan->rc = TG_E_SYNTAX;
        scan->error = scan->blank ? "empty text" : "text ends early";
        scan->error_offset = scan->fed;
    }

    tg_scan_forget(scan);

    return scan->rc;
}


static const char *
tg_scan_step(tg_scan_t *scan, const char *p, const char *end)
{
    switch (scan->state) {
    case TG_SCAN_AT_VALUE:
    case TG_SCAN_AT_FIRST_ELEMENT:
    case TG_SCAN_AT_FIRST_KEY:
    case TG_SCAN_AT_KEY:
    case TG_SCAN_AT_COLON:
    case TG_SCAN_AFTER_VALUE:
        return tg_scan_structure(scan, p, end);

    case TG_SCAN_IN_TEXT:
    case TG_SCAN_IN_CHARACTER:
    case TG_SCAN_IN_ESCAPE:
    case TG_SCAN_IN_HEX:
    case TG_SCAN_AT_LOW_BACKSLASH:
    case TG_SCAN_AT_LOW_U:
        return tg_scan_string_step(scan, p, end);

    case TG_SCAN_AFTER_MINUS:
    case TG_SCAN_IN_ZERO:
    case TG_SCAN_IN_INTEGER:
    case TG_SCAN_AFTER_POINT:
    case TG_SCAN_IN_FRACTION:
    case TG_SCAN_AFTER_E:
    case TG_SCAN_AFTER_E_SIGN:
    case TG_SCAN_IN_EXPONENT:
        return tg_scan_number(scan, p, end);

    case TG_SCAN_IN_LITERAL:
        return tg_scan_literal(scan, p, end);
    }

    return tg_scan_fail(scan, p, TG_E_SYNTAX, "invalid syntax");
}


/* Tokens and the blanks between them, as long as no token is left half read. */
static const char *
tg_scan_structure(tg_scan_t *scan, const char *p, const char *end)
{
    do {
        while (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t') {
            if (++p == end) {
                return p;
            }
        }

        p = tg_scan_token(scan, p, end);
    } while (p != NULL && p < end && scan->state <= TG_SCAN_AFTER_VALUE);

    return p;
}


static inline const char *
tg_scan_token(tg_scan_t *scan, const char *p, const char *end)
{
    scan->blank = false;

    switch (scan->state) {
    case TG_SCAN_AFTER_VALUE:
        return tg_scan_after_value(scan, p);

    case TG_SCAN_AT_COLON:
        if (*p == ':') {
            scan->state = TG_SCAN_AT_VALUE;
            return p + 1;
        }
        break;

    case TG_SCAN_AT_FIRST_KEY:
        if (*p == '}') {
            return tg_scan_close(scan, p, true);
        }
        /* fall through */
    case TG_SCAN_AT_KEY:
        if (*p == '"') {
            return tg_scan_key_start(scan, p, end);
        }
        break;

    case TG_SCAN_AT_FIRST_ELEMENT:
        if (*p == ']') {
            return tg_scan_close(scan, p, false);
        }
        return tg_scan_value(scan, p, end);

    default:
        return tg_scan_value(scan, p, end);
    }

    return tg_scan_fail(scan, p, TG_E_SYNTAX, "invalid syntax");
}


static const char *
tg_scan_value(tg_scan_t *scan, const char *p, const char *end)
{
    switch (*p) {
    case '"':
        return tg_scan_text_start(scan, p, end);
    case '{':
        return tg_scan_open(scan, p, true);
    case '[':
        return tg_scan_open(scan, p, false);

    case '-':
        return tg_scan_number_start(scan, p, end, TG_SCAN_AFTER_MINUS);
    case '0':
        return tg_scan_number_start(scan, p, end, TG_SCAN_IN_ZERO);
    case '1': case '2': case '3': case '4': case '5':
    case '6': case '7': case '8': case '9':
        return tg_scan_number_start(scan, p, end, TG_SCAN_IN_INTEGER);

    case 't':
        return tg_scan_literal_start(scan, p, "rue", TG_SCAN_TRUE);
    case 'f':
        return tg_scan_literal_start(scan, p, "alse", TG_SCAN_FALSE);
    case 'n':
        return tg_scan_literal_start(scan, p, "ull", TG_SCAN_NULL);

    default:
        return tg_scan_fail(scan, p, TG_E_SYNTAX, "invalid syntax");
    }
}


static const char *
tg_scan_open(tg_scan_t *scan, const char *p, bool is_object)
{
    tg_scan_frame_t  *frame;

    if (scan->depth == TG_SCAN_MAX_DEPTH) {
        return tg_scan_fail(scan, p, TG_E_LIMIT, "depth over 128");
    }

    if (scan->depth == scan->frame_cap && !tg_scan_more_frames(scan)) {
        return tg_scan_fail(scan, p, TG_E_NOMEM, "out of memory");
    }

    p = tg_scan_begin(scan, p, is_object ? TG_SCAN_OBJECT : TG_SCAN_ARRAY);

    frame = &scan->frames[scan->depth++];
    frame->is_object = is_object;
    scan->in_object = is_object;
    scan->state = is_object ? TG_SCAN_AT_FIRST_KEY : TG_SCAN_AT_FIRST_ELEMENT;

    if (is_object) {
        tg_scan_object_open(&scan->keys, &frame->keys);
    }

    return p;
}


static const char *
tg_scan_close(tg_scan_t *scan, const char *p, bool is_object)
{
    if (is_object) {
        tg_scan_object_close(&scan->keys, &scan->frames[scan->depth - 1].keys);
    }

    scan->depth--;
    scan->in_object = scan->depth > 0 && scan->frames[scan->depth - 1].is_object;
    tg_scan_end(scan, p + 1);

    return p + 1;
}


static const char *
tg_scan_after_value(tg_scan_t *scan, const char *p)
{
    if (scan->depth == 0) {
        return tg_scan_fail(scan, p, TG_E_SYNTAX, "trailing bytes");
    }

    if (*p == ',') {
        scan->state = scan->in_object ? TG_SCAN_AT_KEY : TG_SCAN_AT_VALUE;
        return p + 1;
    }

    if (*p == (scan->in_object ? '}' : ']')) {
        return tg_scan_close(scan, p, scan->in_object);
    }

    return tg_scan_fail(scan, p, TG_E_SYNTAX, "invalid syntax");
}


static const char *
tg_scan_key_start(tg_scan_t *scan, const char *p, const char *end)
{
    const char  *q;

    scan->key_start = tg_scan_offset(scan, p);
    scan->escaped = false;

    /* nearly every key lies whole in the input and has no escape */
    p++;
    q = tg_scan_text(p, end);
    if (q < end && *q == '"') {
        scan->key = tg_scan_key_of(&scan->keys, p, (size_t) (q - p), (size_t) (end - p));
        return tg_scan_key_end(scan, q + 1);
    }

    scan->in_key = true;
    scan->state = TG_SCAN_IN_TEXT;
    tg_scan_key_begin(&scan->builder);

    return p;
}


const char *
tg_scan_key_end(tg_scan_t *scan, const char *p)
{
    tg_rc_e      rc;
    const char  *reason;

    rc = tg_scan_keys_add(&scan->keys, &scan->frames[scan->depth - 1].keys, scan->key);

    switch (rc) {
    case TG_OK:
        reason = NULL;
        if (scan->depth == 1) {
            reason = tg_scan_record_key(scan, scan->key_start, tg_scan_offset(scan, p),
                                        &rc);
        }
        break;
    case TG_E_INVALID:
        rc = TG_E_SYNTAX;
        reason = "duplicate key";
        break;
    case TG_E_LIMIT:
        reason = "too many keys";
        break;
    default:
        reason = "out of memory";
        break;
    }

    if (reason != NULL) {
        p = tg_scan_fail(scan, p, rc, reason);
        scan->error_offset = scan->key_start;
        return p;
    }

    scan->state = TG_SCAN_AT_COLON;

    return p;
}


static const char *
tg_scan_text_start(tg_scan_t *scan, const char *p, const char *end)
{
    p = tg_scan_begin(scan, p, TG_SCAN_STRING);
    if (p == NULL) {
        return NULL;
    }

    /* most strings are short and plain */
    p = tg_scan_text(p, end);
    if (p < end && *p == '"') {
        tg_scan_end(scan, p + 1);
        return p + 1;
    }

    scan->in_key = false;
    scan->escaped = false;
    scan->state = TG_SCAN_IN_TEXT;

    return p;
}


static const char *
tg_scan_number_start(tg_scan_t *scan, const char *p, const char *end,
    tg_scan_state_e state)
{
    p = tg_scan_begin(scan, p, TG_SCAN_NUMBER);
    scan->state = state;

    return p == NULL || p == end ? p : tg_scan_number(scan, p, end);
}


static const char *
tg_scan_number(tg_scan_t *scan, const char *p, const char *end)
{
    while (tg_scan_number_move(scan, *p)) {
        if (++p == end) {
            return p;
        }
    }

    if (!tg_scan_number_complete(scan->state)) {
        return tg_scan_fail(scan, p, TG_E_SYNTAX, "invalid number");
    }

    tg_scan_end(scan, p);

    return p;
}


/* Moves the state by one byte of a number; false: the byte is not part of it. */
static bool
tg_scan_number_move(tg_scan_t *scan, char c)
{
    bool             digit;
    tg_scan_state_e  next;

    digit = c >= '0' && c <= '9';
    next = scan->state;

    switch (scan->state) {
    case TG_SCAN_AFTER_MINUS:
        next = c == '0' ? TG_SCAN_IN_ZERO : TG_SCAN_IN_INTEGER;
        break;
    case TG_SCAN_AFTER_POINT:
        next = TG_SCAN_IN_FRACTION;
        break;
    case TG_SCAN_AFTER_E_SIGN:
        next = TG_SCAN_IN_EXPONENT;
        break;
    case TG_SCAN_AFTER_E:
        next = digit ? TG_SCAN_IN_EXPONENT : TG_SCAN_AFTER_E_SIGN;
        digit = digit || c == '+' || c == '-';
        break;

    case TG_SCAN_IN_ZERO:
    case TG_SCAN_IN_INTEGER:
    case TG_SCAN_IN_FRACTION:
        if (c == 'e' || c == 'E') {
            scan->state = TG_SCAN_AFTER_E;
            return true;
        }
        if (c == '.' && scan->state != TG_SCAN_IN_FRACTION) {
            scan->state = TG_SCAN_AFTER_POINT;
            return true;
        }
        digit = digit && scan->state != TG_SCAN_IN_ZERO;
        break;
    default:
        break;
    }

    if (digit) {
        scan->state = next;
    }

    return digit;
}


static bool
tg_scan_number_complete(tg_scan_state_e state)
{
    return state == TG_SCAN_IN_ZERO || state == TG_SCAN_IN_INTEGER
           || state == TG_SCAN_IN_FRACTION || state == TG_SCAN_IN_EXPONENT;
}


static const char *
tg_scan_literal_start(tg_scan_t *scan, const char *p, const char *rest,
    tg_scan_type_e type)
{
    scan->literal = rest;
    scan->state = TG_SCAN_IN_LITERAL;

    return tg_scan_begin(scan, p, type);
}


static const char *
tg_scan_literal(tg_scan_t *scan, const char *p, const char *end)
{
    for (/* void */; p < end && *scan->literal != '\0'; p++) {
        if (*p != *scan->literal++) {
            return tg_scan_fail(scan, p, TG_E_SYNTAX, "invalid syntax");
        }
    }

    if (*scan->literal == '\0') {
        tg_scan_end(scan, p);
    }

    return p;
}


/* Says that a value begins at p, and passes its first byte. */
static const char *
tg_scan_begin(tg_scan_t *scan, const char *p, tg_scan_type_e type)
{
    tg_rc_e      rc;
    const char  *reason;

    if (scan->depth <= TG_SCAN_RECORD_DEPTH) {
        reason = tg_scan_record_value(scan, tg_scan_offset(scan, p), type, &rc);
        if (reason != NULL) {
            return tg_scan_fail(scan, p, rc, reason);
        }
    }

    return p + 1;
}


const char *
tg_scan_fail(tg_scan_t *scan, const char *p, tg_rc_e rc, const char *reason)
{
    scan->rc = rc;
    scan->error = reason;
    scan->error_offset = tg_scan_offset(scan, p);

    return NULL;
}
