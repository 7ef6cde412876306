/*
 * What the scanner remembers of a body: members of the top object, elements of
 * "messages", and the answers about them. It must not judge the syntax.
 */

#include "tg_scan_internal.h"

#include <stdlib.h>

#include "tg_utf8.h"


#define TG_SCAN_MEMBERS_FIRST   8
#define TG_SCAN_MESSAGES_FIRST  4
#define TG_SCAN_FRAMES_FIRST    8

static const char *tg_scan_push(void **array, size_t size, size_t count, size_t *cap,
    size_t first, size_t max, tg_rc_e *rc);
static tg_scan_range_t *tg_scan_message_field(tg_scan_t *scan);
static bool tg_scan_key_matches(const char *body, const tg_scan_member_t *member,
    tg_str_t key);


tg_scan_t *
tg_scan_new(void)
{
    size_t      i;
    tg_scan_t  *scan;

    scan = calloc(1, sizeof(tg_scan_t));
    if (scan == NULL) {
        return NULL;
    }

    scan->blank = true;
    tg_scan_keys_init(&scan->keys);

    const struct {
        tg_scan_key_t  *key;
        tg_str_t        name;
    } names[] = {
        { &scan->names.messages, tg_str("messages") },
        { &scan->names.role, tg_str("role") },
        { &scan->names.content, tg_str("content") },
        { &scan->names.tool_call_id, tg_str("tool_call_id") },
        { &scan->names.tool_calls, tg_str("tool_calls") },
    };

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        *names[i].key = tg_scan_key_of(&scan->keys, names[i].name.data,
                                       names[i].name.len, names[i].name.len);
    }

    return scan;
}


void
tg_scan_free(tg_scan_t *scan)
{
    if (scan == NULL) {
        return;
    }

    tg_scan_forget(scan);
    free(scan->members);
    free(scan->messages);
    free(scan);
}


bool
tg_scan_more_frames(tg_scan_t *scan)
{
    unsigned          cap;
    tg_scan_frame_t  *frames;

    cap = scan->frame_cap == 0 ? TG_SCAN_FRAMES_FIRST : 2 * scan->frame_cap;

    frames = realloc(scan->frames, cap * sizeof(tg_scan_frame_t));
    if (frames == NULL) {
        return false;
    }

    memset(frames + scan->frame_cap, 0, (cap - scan->frame_cap) * sizeof(*frames));
    scan->frames = frames;
    scan->frame_cap = cap;

    return true;
}


void
tg_scan_forget(tg_scan_t *scan)
{
    unsigned  i;

    for (i = 0; i < scan->frame_cap; i++) {
        tg_scan_object_free(&scan->frames[i].keys);
    }

    free(scan->frames);
    scan->frames = NULL;
    scan->frame_cap = 0;

    tg_scan_keys_free(&scan->keys);
}


const char *
tg_scan_record_key(tg_scan_t *scan, size_t start, size_t end, tg_rc_e *rc)
{
    void        *array;
    const char  *reason;

    array = scan->members;
    reason = tg_scan_push(&array, sizeof(tg_scan_member_t), scan->member_count,
                          &scan->member_cap, TG_SCAN_MEMBERS_FIRST, TG_SCAN_MAX_MEMBERS,
                          rc);
    scan->members = array;

    if (reason != NULL) {
        return *rc == TG_E_LIMIT ? "too many members" : reason;
    }

    scan->members[scan->member_count++] = (tg_scan_member_t) {
        .key = { start, end, TG_SCAN_STRING },
        .key_escaped = scan->escaped
    };

    return NULL;
}


const char *
tg_scan_record_value(tg_scan_t *scan, size_t start, tg_scan_type_e type, tg_rc_e *rc)
{
    void             *array;
    const char       *reason;
    tg_scan_range_t  *slot;

    slot = NULL;

    switch (scan->depth) {
    case 0:
        slot = &scan->top;
        break;

    case 1:
        if (scan->in_object) {
            slot = &scan->members[scan->member_count - 1].value;
            scan->in_messages = type == TG_SCAN_ARRAY
                                && tg_scan_key_eq(scan->key, scan->names.messages);
        }
        break;

    case 2:
        if (!scan->in_messages) {
            break;
        }

        array = scan->messages;
        reason = tg_scan_push(&array, sizeof(tg_scan_message_t), scan->message_count,
                              &scan->message_cap, TG_SCAN_MESSAGES_FIRST,
                              TG_SCAN_MAX_MESSAGES, rc);
        scan->messages = array;

        if (reason != NULL) {
            return *rc == TG_E_LIMIT ? "too many messages" : reason;
        }

        scan->messages[scan->message_count] = (tg_scan_message_t) { 0 };
        slot = &scan->messages[scan->message_count++].whole;
        break;

    default:
        if (scan->in_messages && scan->in_object) {
            slot = tg_scan_message_field(scan);
        }
        break;
    }

    scan->slot[scan->depth] = slot;
    if (slot != NULL) {
        *slot = (tg_scan_range_t) { start, start, type };
    }

    return NULL;
}


void
tg_scan_record_escape(tg_scan_t *scan)
{
    tg_scan_message_t  *message;

    message = &scan->messages[scan->message_count - 1];
    if (scan->slot[scan->depth] == &message->role) {
        message->role_escaped = true;
    }
}


/* Where the value of the key just read belongs in the last message. */
static tg_scan_range_t *
tg_scan_message_field(tg_scan_t *scan)
{
    tg_scan_message_t  *message;

    message = &scan->messages[scan->message_count - 1];

    if (tg_scan_key_eq(scan->key, scan->names.role)) {
        return &message->role;
    }

    if (tg_scan_key_eq(scan->key, scan->names.content)) {
        return &message->content;
    }

    if (tg_scan_key_eq(scan->key, scan->names.tool_call_id)) {
        return &message->tool_call_id;
    }

    if (tg_scan_key_eq(scan->key, scan->names.tool_calls)) {
        return &message->tool_calls;
    }

    return NULL;
}


/* Makes room for one more element. */
static const char *
tg_scan_push(void **array, size_t size, size_t count, size_t *cap, size_t first,
    size_t max, tg_rc_e *rc)
{
    void    *grown;
    size_t   n;

    if (count < *cap) {
        return NULL;
    }

    if (count == max) {
        *rc = TG_E_LIMIT;
        return "limit";
    }

    n = *cap == 0 ? first : *cap * 2;
    n = n > max ? max : n;

    grown = realloc(*array, n * size);
    if (grown == NULL) {
        *rc = TG_E_NOMEM;
        return "out of memory";
    }

    *array = grown;
    *cap = n;

    return NULL;
}


const char *
tg_scan_error(const tg_scan_t *scan, size_t *offset)
{
    if (offset != NULL) {
        *offset = scan->error_offset;
    }

    return scan->error;
}


tg_scan_type_e
tg_scan_top_type(const tg_scan_t *scan)
{
    return scan->top.type;
}


tg_scan_range_t
tg_scan_top(const tg_scan_t *scan)
{
    return scan->top;
}


size_t
tg_scan_member_count(const tg_scan_t *scan)
{
    return scan->member_count;
}


const tg_scan_member_t *
tg_scan_member(const tg_scan_t *scan, size_t i)
{
    return i < scan->member_count ? &scan->members[i] : NULL;
}


const tg_scan_member_t *
tg_scan_find(const tg_scan_t *scan, const char *body, const char *key)
{
    size_t    i;
    tg_str_t  name;

    name = tg_str_of(key);

    for (i = 0; i < scan->member_count; i++) {
        if (tg_scan_key_matches(body, &scan->members[i], name)) {
            return &scan->members[i];
        }
    }

    return NULL;
}


static bool
tg_scan_key_matches(const char *body, const tg_scan_member_t *member, tg_str_t key)
{
    bool             same;
    char            *text;
    size_t           len;
    tg_scan_range_t  range;

    range = member->key;
    len = range.end - range.start - 2;

    if (!member->key_escaped) {
        return len == key.len && memcmp(body + range.start + 1, key.data, len) == 0;
    }

    /* an escape only makes a key longer: at most \uXXXX for one byte */
    if (len <= key.len || len > 6 * key.len) {
        return false;
    }

    text = malloc(key.len);
    if (text == NULL) {
        return false;
    }

    same = tg_scan_string(body, range, text, key.len) == (ptrdiff_t) key.len
           && memcmp(text, key.data, key.len) == 0;
    free(text);

    return same;
}


size_t
tg_scan_message_count(const tg_scan_t *scan)
{
    return scan->message_count;
}


const tg_scan_message_t *
tg_scan_message(const tg_scan_t *scan, size_t i)
{
    return i < scan->message_count ? &scan->messages[i] : NULL;
}


/* Decodes the escape at *p, which is behind the backslash, and moves *p past it. */
static size_t
tg_scan_decode(const char **p, const char *end, char utf8[4])
{
    int32_t  unit, low;

    utf8[0] = tg_scan_unescape[(uint8_t) **p];
    if (utf8[0] != 0) {
        (*p)++;
        return 1;
    }

    /* the scanner has seen all this; a wrong range must only not be run over */
    unit = end - *p >= 5 ? tg_scan_hex4(*p + 1) : -1;
    if (unit < 0) {
        return 0;
    }

    *p += 5;
    if (tg_scan_is_low_surrogate((uint32_t) unit)) {
        return 0;
    }

    if (!tg_scan_is_high_surrogate((uint32_t) unit)) {
        return tg_utf8_encode((uint32_t) unit, utf8);
    }

    low = end - *p >= 6 ? tg_scan_hex4(*p + 2) : -1;
    if (low < 0 || !tg_scan_is_low_surrogate((uint32_t) low)) {
        return 0;
    }

    *p += 6;

    return tg_utf8_encode(tg_scan_join_surrogates((uint32_t) unit, (uint32_t) low), utf8);
}


ptrdiff_t
tg_scan_string(const char *body, tg_scan_range_t range, char *dst, size_t cap)
{
    char         utf8[4];
    size_t       n, len;
    const char  *p, *end, *from;

    if (range.type != TG_SCAN_STRING || range.end - range.start < 2) {
        return -1;
    }

    p = body + range.start + 1;
    end = body + range.end - 1;
    len = 0;

    while (p < end) {
        from = p;

        if (*p == '\\') {
            p++;
            n = p == end ? 0 : tg_scan_decode(&p, end, utf8);
            if (n == 0) {
                return -1;
            }
            from = utf8;

        } else {
            p = memchr(p, '\\', (size_t) (end - p));
            p = p == NULL ? end : p;
            n = (size_t) (p - from);
        }

        if (n > cap - len) {
            return -1;
        }

        memcpy(dst + len, from, n);
        len += n;
    }

    return (ptrdiff_t) len;
}
