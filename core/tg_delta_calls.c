/*
 * The calls of a response, from the events that tell of them; see tg_delta_calls.h.
 */

#include "tg_delta_calls.h"


/* What an event says of the call that it is about. Strings are borrowed. */
typedef struct {
    tg_str_t  item;
    tg_str_t  call;
    bool      has_index;
    int64_t   index;
} tg_delta_about_t;


static bool
tg_delta_same(const tg_buf_t *kept, tg_str_t id)
{
    return id.len && tg_str_eq(tg_buf_get(kept), id);
}


static bool
tg_delta_by_ids(const tg_delta_call_t *call, const tg_delta_about_t *about)
{
    return tg_delta_same(&call->item, about->item)
           || tg_delta_same(&call->id, about->call);
}


/* Nothing but the place, or the order, says which. */
static bool
tg_delta_by_place(const tg_delta_call_t *call, const tg_delta_about_t *about)
{
    return !call->has_index || !about->has_index || call->index == about->index;
}


/* The newest call that fits; NULL: it is a new one. */
static tg_delta_call_t *
tg_delta_call_find(const tg_delta_t *delta, const tg_delta_about_t *about, bool closed,
    bool (*fits)(const tg_delta_call_t *call, const tg_delta_about_t *about))
{
    size_t            i;
    tg_delta_call_t  *call;

    for (i = delta->call_count; i-- > 0; ) {
        call = &delta->calls[i];

        if (call->closed == closed && fits(call, about)) {
            return call;
        }
    }

    return NULL;
}


static tg_delta_about_t
tg_delta_about_item(const json_t *item, bool has_index, int64_t index)
{
    tg_delta_about_t  about;

    about.item = tg_delta_get(item, "id");
    about.call = tg_delta_get(item, "call_id");
    about.has_index = has_index;
    about.index = index;

    if (about.item.len == 0) {
        about.item = tg_delta_get(item, "item_id");
    }

    return about;
}


/* Adds a piece to its call, or to a new one; closed: it is whole with it. */
static tg_rc_e
tg_delta_call_put(tg_delta_t *delta, tg_delta_call_t *call,
    const tg_delta_about_t *about, tg_delta_piece_t *piece, bool closed)
{
    tg_rc_e  rc;

    rc = TG_OK;
    call = call ? call : tg_delta_new_call(delta, &rc);

    if (call == NULL) {
        return rc;
    }

    call->closed = closed;
    piece->id = about->call;
    piece->has_index = about->has_index;
    piece->index = about->index;

    if (call->item.len == 0) {
        tg_buf_str(&call->item, about->item);
    }

    return call->item.error != TG_OK ? call->item.error
                                     : tg_delta_fill_call(call, piece);
}


/* A call that was cut off runs no more, and neither does one after the end. */
static bool
tg_delta_over(const tg_delta_t *delta)
{
    return delta->finish_reason[0] != '\0';
}


tg_rc_e
tg_delta_call_begins(tg_delta_t *delta, const json_t *item, bool has_index,
    int64_t index)
{
    tg_delta_call_t   *call;
    tg_delta_about_t   about;
    tg_delta_piece_t   piece;

    if (tg_delta_over(delta)) {
        return TG_OK;
    }

    memset(&piece, 0, sizeof(piece));
    about = tg_delta_about_item(item, has_index, index);
    piece.name = tg_delta_get(item, "name");
    call = tg_delta_call_find(delta, &about, false, tg_delta_by_ids);

    return tg_delta_call_put(delta, call, &about, &piece, false);
}


tg_rc_e
tg_delta_call_arguments(tg_delta_t *delta, const json_t *root, bool whole)
{
    tg_delta_call_t   *call;
    tg_delta_about_t   about;
    tg_delta_piece_t   piece;

    if (tg_delta_over(delta)) {
        return TG_OK;
    }

    memset(&piece, 0, sizeof(piece));
    about.item = tg_delta_get(root, "item_id");
    about.call = tg_delta_get(root, "call_id");
    about.has_index = tg_delta_get_index(root, "output_index", &about.index);
    call = tg_delta_call_find(delta, &about, false, tg_delta_by_ids);

    if (call == NULL) {
        call = tg_delta_call_find(delta, &about, false, tg_delta_by_place);
    }

    if (whole && (call == NULL || call->arguments.len)) {
        return TG_OK;
    }

    piece.arguments = tg_delta_get(root, whole ? "arguments" : "delta");

    return tg_delta_call_put(delta, call, &about, &piece, false);
}


tg_rc_e
tg_delta_call_done(tg_delta_t *delta, const json_t *item, bool has_index,
    int64_t index, tg_delta_taken_t taken)
{
    bool               fresh;
    const json_t      *arguments;
    tg_delta_call_t   *call;
    tg_delta_about_t   about;
    tg_delta_piece_t   piece;

    if (tg_delta_over(delta)) {
        return TG_OK;
    }

    about = tg_delta_about_item(item, has_index, index);
    call = tg_delta_call_find(delta, &about, false, tg_delta_by_ids);

    if (call == NULL && tg_delta_call_find(delta, &about, true, tg_delta_by_ids)) {
        return TG_OK;
    }

    if (call == NULL) {
        call = tg_delta_call_find(delta, &about, false, tg_delta_by_place);
    }

    if (call == NULL && !taken.add) {
        return TG_OK;
    }

    memset(&piece, 0, sizeof(piece));
    piece.name = tg_delta_get(item, "name");
    arguments = json_object_get(item, "arguments");
    fresh = call == NULL || call->arguments.len == 0;

    if (fresh && json_is_string(arguments)) {
        piece.arguments = tg_delta_get(item, "arguments");

    } else if (fresh && arguments && !json_is_null(arguments)) {

        if (taken.rounded) {
            return TG_E_SYNTAX;
        }

        piece.arguments_value = arguments;
    }

    return tg_delta_call_put(delta, call, &about, &piece, true);
}


tg_rc_e
tg_delta_calls_ended(tg_delta_t *delta)
{
    size_t            i;
    tg_delta_call_t  *call;

    for (i = 0; i < delta->call_count; i++) {
        call = &delta->calls[i];

        if (!call->closed && call->arguments.len == 0) {
            return TG_E_SYNTAX;
        }

        /* the item's own id where there is no other */

        if (call->id.len == 0) {
            tg_buf_str(&call->id, tg_buf_get(&call->item));
        }
    }

    return TG_OK;
}
