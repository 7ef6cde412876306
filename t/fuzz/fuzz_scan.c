/*
 * The scanner against the tree loader: for any bytes, cut into any pieces, both
 * must come to the same verdict, and the ranges that the scanner records must hold
 * the values that the tree has. Only bounds and the range of numbers may differ.
 */

#include <stdlib.h>

#include "tg_json.h"
#include "tg_scan.h"


#define MAX_KEY  4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static void
must(bool what)
{
    if (!what) {
        abort();
    }
}


/* Feeds pieces of up to step bytes, each in memory of exactly its size. */
static tg_scan_t *
scan_pieces(tg_str_t body, size_t step, tg_rc_e *rc)
{
    char       *piece;
    size_t      i, n;
    tg_scan_t  *scan;

    scan = tg_scan_new();
    must(scan != NULL);

    for (i = 0; i < body.len; i += n) {
        /* lengths that change, or cuts would fall on the same bytes of a pattern */
        n = 1 + (step + i * 7 / 3) % (step + 1);
        n = n > body.len - i ? body.len - i : n;

        piece = malloc(n);
        must(piece != NULL);
        memcpy(piece, body.data + i, n);
        tg_scan_feed(scan, piece, n);
        free(piece);
    }

    *rc = tg_scan_finish(scan);
    must(*rc == tg_scan_finish(scan));

    return scan;
}


static void
same_range(tg_scan_range_t a, tg_scan_range_t b)
{
    must(a.type == b.type && a.start == b.start && a.end == b.end);
}


/* The range must hold exactly the value. */
static void
holds(tg_str_t body, tg_scan_range_t range, const json_t *value)
{
    char             text[MAX_KEY];
    json_t          *read;
    ptrdiff_t        len;
    tg_json_error_t  error;

    static const tg_scan_type_e  types[] = {
        [JSON_OBJECT] = TG_SCAN_OBJECT, [JSON_ARRAY] = TG_SCAN_ARRAY,
        [JSON_STRING] = TG_SCAN_STRING, [JSON_INTEGER] = TG_SCAN_NUMBER,
        [JSON_REAL] = TG_SCAN_NUMBER,   [JSON_TRUE] = TG_SCAN_TRUE,
        [JSON_FALSE] = TG_SCAN_FALSE,   [JSON_NULL] = TG_SCAN_NULL
    };

    if (value == NULL) {
        must(range.type == TG_SCAN_NONE);
        return;
    }

    must(range.type == types[json_typeof(value)]);
    must(range.start < range.end && range.end <= body.len);
    must(strchr(" \t\r\n", body.data[range.start]) == NULL);

    read = tg_json_load((tg_str_t) { range.end - range.start, body.data + range.start },
                        &error);
    must(read != NULL && json_equal(read, value));
    json_decref(read);

    if (json_is_string(value)) {
        len = tg_scan_string(body.data, range, text, sizeof(text));
        must(len < 0 || ((size_t) len == json_string_length(value)
                         && memcmp(text, json_string_value(value), (size_t) len) == 0));
    }
}


static void
check_messages(const tg_scan_t *scan, tg_str_t body, const json_t *messages)
{
    size_t                    i;
    const json_t             *element;
    const tg_scan_message_t  *message;

    must(tg_scan_message_count(scan) == json_array_size(messages));

    for (i = 0; i < json_array_size(messages); i++) {
        element = json_array_get(messages, i);
        message = tg_scan_message(scan, i);
        holds(body, message->whole, element);
        holds(body, message->role, json_object_get(element, "role"));
        holds(body, message->content, json_object_get(element, "content"));
        holds(body, message->tool_call_id, json_object_get(element, "tool_call_id"));
        holds(body, message->tool_calls, json_object_get(element, "tool_calls"));
    }
}


static void
check_facts(const tg_scan_t *scan, tg_str_t body, json_t *value)
{
    size_t                   i;
    json_t                  *member;
    const char              *key;
    const tg_scan_member_t  *found;

    holds(body, tg_scan_top(scan), value);
    must(tg_scan_member_count(scan) == json_object_size(value));

    i = 0;
    json_object_foreach(value, key, member) {
        found = tg_scan_find(scan, body.data, key);
        must(found != NULL && found == tg_scan_member(scan, i++));
        holds(body, found->value, member);
        must(found->key_escaped
             == (memchr(body.data + found->key.start, '\\',
                        found->key.end - found->key.start) != NULL));
    }

    must(tg_scan_member(scan, i) == NULL);
    must(tg_scan_find(scan, body.data, "no such key") == NULL
         || json_object_get(value, "no such key") != NULL);
    check_messages(scan, body, json_object_get(value, "messages"));
}


/* Pieces must not matter. */
static void
check_same(const tg_scan_t *a, const tg_scan_t *b, tg_rc_e rc)
{
    size_t                    i, at_a, at_b;
    const char               *why_a, *why_b;
    const tg_scan_message_t  *x, *y;

    why_a = tg_scan_error(a, &at_a);
    why_b = tg_scan_error(b, &at_b);
    must(why_a == why_b && at_a == at_b && (why_a == NULL) == (rc == TG_OK));

    if (rc != TG_OK) {
        return;
    }

    same_range(tg_scan_top(a), tg_scan_top(b));
    must(tg_scan_member_count(a) == tg_scan_member_count(b));
    for (i = 0; i < tg_scan_member_count(a); i++) {
        same_range(tg_scan_member(a, i)->key, tg_scan_member(b, i)->key);
        same_range(tg_scan_member(a, i)->value, tg_scan_member(b, i)->value);
    }

    must(tg_scan_message_count(a) == tg_scan_message_count(b));
    for (i = 0; i < tg_scan_message_count(a); i++) {
        x = tg_scan_message(a, i);
        y = tg_scan_message(b, i);
        same_range(x->whole, y->whole);
        same_range(x->role, y->role);
        same_range(x->content, y->content);
        must(x->role_escaped == y->role_escaped);
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t          *value;
    size_t           step;
    tg_rc_e          rc, pieces_rc;
    tg_str_t         body;
    tg_scan_t       *scan, *pieces;
    tg_json_error_t  error;

    /* the last byte says how to cut, so that seeds may be plain JSON */
    step = size == 0 ? 1 : data[size - 1] % 37;
    if (size > 0 && data[size - 1] >= 0x80) {
        size--;
    }
    body = (tg_str_t) { size, (const char *) data };

    scan = scan_pieces(body, size, &rc);
    pieces = scan_pieces(body, step, &pieces_rc);
    must(rc == pieces_rc);
    check_same(scan, pieces, rc);

    value = tg_json_load(body, &error);

    if (value != NULL) {
        /* only more members than are recorded may part the two */
        must(rc == TG_OK || (rc == TG_E_LIMIT && json_object_size(value)
                                                 > TG_SCAN_MAX_MEMBERS));
    } else if (strcmp(error.reason, "number out of range") != 0) {
        must(rc != TG_OK);
    }

    if (value != NULL && rc == TG_OK) {
        check_facts(pieces, body, value);
    }

    json_decref(value);
    tg_scan_free(scan);
    tg_scan_free(pieces);

    return 0;
}
