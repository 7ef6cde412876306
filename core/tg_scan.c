/*
 * The state machine of the scanner: checks JSON byte by byte as it arrives and
 * says where keys and values begin and end. It must not know what is done with
 * these facts (tg_scan_record.c) nor how keys are compared (tg_scan_keys.c).
 */

#include "tg_scan_internal.h"

#include "tg_scan_text.h"


/*
 * A step takes the bytes from p on, moves scan->state and returns where it
 * stopped, or NULL when the input is refused. It may stop before end at any point
 * where another step goes on.
 */
static const char *tg_scan_step(tg_scan_t *scan, const char *p, const char *end);
static const char *tg_scan_structure(tg_scan_t *scan, const char *p, const char *end);
static const char *tg_scan_value(tg_scan_t *scan, const char *p);
static const char *tg_scan_open(tg_scan_t *scan, const char *p, bool is_object);
static const char *tg_scan_close(tg_scan_t *scan, const char *p, bool is_object);
static const char *tg_scan_after_value(tg_scan_t *scan, const char *p);
static const char *tg_scan_key_start(tg_scan_t *scan, const char *p, const char *end);
static const char *tg_scan_key_end(tg_scan_t *scan, const char *p);
static const char *tg_scan_in_text(tg_scan_t *scan, const char *p, const char *end);
static const char *tg_scan_text_end(tg_scan_t *scan, const char *p);
static const char *tg_scan_in_character(tg_scan_t *scan, const char *p, const char *end);
static const char *tg_scan_escape(tg_scan_t *scan, const char *p, const char *end);
static const char *tg_scan_in_escape(tg_scan_t *scan, const char *p);
static const char *tg_scan_in_hex(tg_scan_t *scan, const char *p, const char *end);
static const char *tg_scan_unit(tg_scan_t *scan, const char *p, uint32_t unit);
static const char *tg_scan_low(tg_scan_t *scan, const char *p, char want,
    tg_scan_state_e next);
static const char *tg_scan_number(tg_scan_t *scan, const char *p, const char *end);
static bool tg_scan_number_move(tg_scan_t *scan, char c);
static bool tg_scan_number_complete(tg_scan_state_e state);
static const char *tg_scan_literal(tg_scan_t *scan, const char *p, const char *end);
static const char *tg_scan_begin(tg_scan_t *scan, const char *p, tg_scan_type_e type);
static const char *tg_scan_fail(tg_scan_t *scan, const char *p, tg_rc_e rc,
    const char *reason);


static inline size_t
tg_scan_offset(const tg_scan_t *scan, const char *p)
{
    return scan->fed + (size_t) (p - scan->data);
}


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
        return tg_scan_in_text(scan, p, end);
    case TG_SCAN_IN_CHARACTER:
        return tg_scan_in_character(scan, p, end);
    case TG_SCAN_IN_ESCAPE:
        return tg_scan_in_escape(scan, p);
    case TG_SCAN_IN_HEX:
        return tg_scan_in_hex(scan, p, end);
    case TG_SCAN_AT_LOW_BACKSLASH:
        return tg_scan_low(scan, p, '\\', TG_SCAN_AT_LOW_U);
    case TG_SCAN_AT_LOW_U:
        return tg_scan_low(scan, p, 'u', TG_SCAN_IN_HEX);

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


/* One token between blanks. */
static const char *
tg_scan_structure(tg_scan_t *scan, const char *p, const char *end)
{
    while (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t') {
        if (++p == end) {
            return p;
        }
    }

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
        return tg_scan_value(scan, p);

    default:
        return tg_scan_value(scan, p);
    }

    return tg_scan_fail(scan, p, TG_E_SYNTAX, "invalid syntax");
}


static const char *
tg_scan_value(tg_scan_t *scan, const char *p)
{
    switch (*p) {
    case '"':
        scan->in_key = false;
        scan->escaped = false;
        scan->state = TG_SCAN_IN_TEXT;
        return tg_scan_begin(scan, p, TG_SCAN_STRING);

    case '{':
        return tg_scan_open(scan, p, true);
    case '[':
        return tg_scan_open(scan, p, false);

    case '-':
        scan->state = TG_SCAN_AFTER_MINUS;
        return tg_scan_begin(scan, p, TG_SCAN_NUMBER);
    case '0':
        scan->state = TG_SCAN_IN_ZERO;
        return tg_scan_begin(scan, p, TG_SCAN_NUMBER);
    case '1': case '2': case '3': case '4': case '5':
    case '6': case '7': case '8': case '9':
        scan->state = TG_SCAN_IN_INTEGER;
        return tg_scan_begin(scan, p, TG_SCAN_NUMBER);

    case 't':
        scan->literal = "rue";
        scan->state = TG_SCAN_IN_LITERAL;
        return tg_scan_begin(scan, p, TG_SCAN_TRUE);
    case 'f':
        scan->literal = "alse";
        scan->state = TG_SCAN_IN_LITERAL;
        return tg_scan_begin(scan, p, TG_SCAN_FALSE);
    case 'n':
        scan->literal = "ull";
        scan->state = TG_SCAN_IN_LITERAL;
        return tg_scan_begin(scan, p, TG_SCAN_NULL);

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


/* Says that the value under way ends before p. */
static inline void
tg_scan_end(tg_scan_t *scan, const char *p)
{
    scan->state = TG_SCAN_AFTER_VALUE;

    if (scan->depth <= TG_SCAN_RECORD_DEPTH && scan->slot[scan->depth] != NULL) {
        scan->slot[scan->depth]->end = tg_scan_offset(scan, p);
    }
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


/* scan->key has been read and ends before p. */
static const char *
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
tg_scan_in_text(tg_scan_t *scan, const char *p, const char *end)
{
    uint8_t      c;
    const char  *from;

    for ( ;; ) {
        from = p;
        p = tg_scan_text(p, end);
        if (scan->in_key) {
            tg_scan_key_append(&scan->keys, &scan->builder, from, (size_t) (p - from));
        }

        if (p == end) {
            return p;
        }

        c = (uint8_t) *p;
        if (c == '"') {
            return tg_scan_text_end(scan, p + 1);
        }

        if (c != '\\') {
            break;
        }

        p = tg_scan_escape(scan, p, end);
        if (scan->state != TG_SCAN_IN_TEXT || p == NULL) {
            return p;
        }
    }

    if (c < 0x20) {
        return tg_scan_fail(scan, p, TG_E_SYNTAX, c == 0 ? "NUL byte"
                                                         : "control character in a string");
    }

    /* a character that the end of the input cuts, or a broken one */
    scan->lead = tg_utf8_lead(c);
    if (scan->lead.follow == 0) {
        return tg_scan_fail(scan, p, TG_E_SYNTAX, "invalid UTF-8");
    }

    if (scan->in_key) {
        tg_scan_key_append(&scan->keys, &scan->builder, p, 1);
    }
    scan->state = TG_SCAN_IN_CHARACTER;

    return p + 1;
}


/* A string ends before p. */
static const char *
tg_scan_text_end(tg_scan_t *scan, const char *p)
{
    if (scan->in_key) {
        scan->key = tg_scan_key_finish(&scan->keys, &scan->builder);
        return tg_scan_key_end(scan, p);
    }

    if (scan->escaped && scan->in_messages && scan->depth == TG_SCAN_RECORD_DEPTH) {
        tg_scan_record_escape(scan);
    }
    tg_scan_end(scan, p);

    return p;
}


static const char *
tg_scan_in_character(tg_scan_t *scan, const char *p, const char *end)
{
    for (/* void */; p < end && scan->lead.follow > 0; p++) {
        if ((uint8_t) *p < scan->lead.low || (uint8_t) *p > scan->lead.high) {
            return tg_scan_fail(scan, p, TG_E_SYNTAX, "invalid UTF-8");
        }

        if (scan->in_key) {
            tg_scan_key_append(&scan->keys, &scan->builder, p, 1);
        }

        scan->lead = (tg_utf8_lead_t) { (uint8_t) (scan->lead.follow - 1), 0x80, 0xbf };
    }

    if (scan->lead.follow == 0) {
        scan->state = TG_SCAN_IN_TEXT;
    }

    return p;
}


/* p is at a backslash. Takes a whole escape that lies in the input, else begins it. */
static const char *
tg_scan_escape(tg_scan_t *scan, const char *p, const char *end)
{
    int32_t  unit;

    scan->escaped = true;

    if (end - p >= 6 && p[1] == 'u') {
        unit = tg_scan_hex4(p + 2);
        if (unit >= 0) {
            return tg_scan_unit(scan, p + 6, (uint32_t) unit);
        }
    }

    scan->state = TG_SCAN_IN_ESCAPE;
    p++;

    return p == end ? p : tg_scan_in_escape(scan, p);
}


static const char *
tg_scan_in_escape(tg_scan_t *scan, const char *p)
{
    char  c;

    if (*p == 'u') {
        scan->digits = 0;
        scan->unit = 0;
        scan->state = TG_SCAN_IN_HEX;
        return p + 1;
    }

    c = tg_scan_unescape(*p);
    if (c == 0) {
        return tg_scan_fail(scan, p, TG_E_SYNTAX, "invalid escape");
    }

    if (scan->in_key) {
        tg_scan_key_append(&scan->keys, &scan->builder, &c, 1);
    }
    scan->state = TG_SCAN_IN_TEXT;

    return p + 1;
}


static const char *
tg_scan_in_hex(tg_scan_t *scan, const char *p, const char *end)
{
    int32_t  digit;

    for (/* void */; p < end && scan->digits < 4; p++) {
        digit = tg_scan_hex_digit(*p);
        if (digit < 0) {
            return tg_scan_fail(scan, p, TG_E_SYNTAX, "invalid escape");
        }

        scan->unit = scan->unit << 4 | (uint32_t) digit;
        scan->digits++;
    }

    return scan->digits < 4 ? p : tg_scan_unit(scan, p, scan->unit);
}


/* An escaped UTF-16 unit ends before p. */
static const char *
tg_scan_unit(tg_scan_t *scan, const char *p, uint32_t unit)
{
    char    utf8[4];
    size_t  n;

    if (tg_scan_is_low_surrogate(unit) != (scan->high != 0)) {
        return tg_scan_fail(scan, p, TG_E_SYNTAX, "lone surrogate");
    }

    if (unit == 0) {
        return tg_scan_fail(scan, p, TG_E_SYNTAX, "NUL in a string");
    }

    if (tg_scan_is_high_surrogate(unit)) {
        scan->high = unit;
        scan->state = TG_SCAN_AT_LOW_BACKSLASH;
        return p;
    }

    if (scan->in_key) {
        n = tg_utf8_encode(scan->high == 0 ? unit
                                           : tg_scan_join_surrogates(scan->high, unit),
                           utf8);
        tg_scan_key_append(&scan->keys, &scan->builder, utf8, n);
    }

    scan->high = 0;
    scan->state = TG_SCAN_IN_TEXT;

    return p;
}


/* The two bytes that must stand between the surrogates of a pair. */
static const char *
tg_scan_low(tg_scan_t *scan, const char *p, char want, tg_scan_state_e next)
{
    if (*p != want) {
        return tg_scan_fail(scan, p, TG_E_SYNTAX, "lone surrogate");
    }

    scan->digits = 0;
    scan->unit = 0;
    scan->state = next;

    return p + 1;
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


/* Says that a value begins at p; the state must be set, unless it is a container. */
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


static const char *
tg_scan_fail(tg_scan_t *scan, const char *p, tg_rc_e rc, const char *reason)
{
    scan->rc = rc;
    scan->error = reason;
    scan->error_offset = tg_scan_offset(scan, p);

    return NULL;
}
