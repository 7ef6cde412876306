/*
 * The record protocol of the helper's socket: cuts a byte stream into records and
 * writes records. It knows nothing of what the payloads mean.
 *
 * A head is judged as soon as its eight bytes are there, so a hostile length never
 * makes the reader keep more than what was really sent.
 */

#include "tg_frame.h"


static uint32_t
frame_length(const uint8_t *head)
{
    return (uint32_t) head[0] << 24 | (uint32_t) head[1] << 16
           | (uint32_t) head[2] << 8 | (uint32_t) head[3];
}


static bool
frame_head_valid(const uint8_t *head)
{
    return frame_length(head) <= TG_FRAME_MAX && head[4] >= TG_FRAME_HELLO
           && head[4] <= TG_FRAME_PING;
}


void
tg_frame_reader_init(tg_frame_reader_t *reader)
{
    tg_buf_init(&reader->pending, TG_FRAME_PENDING_MAX);
    reader->taken = 0;
    reader->checked = 0;
    reader->failed = false;
}


void
tg_frame_reader_free(tg_frame_reader_t *reader)
{
    tg_buf_free(&reader->pending);
    reader->taken = 0;
    reader->checked = 0;
}


/* moves what was not given out yet to the front */
static void
frame_compact(tg_frame_reader_t *reader)
{
    size_t  rest;

    if (reader->taken == 0) {
        return;
    }

    rest = reader->pending.len - reader->taken;
    if (rest != 0) {
        memmove(reader->pending.data, reader->pending.data + reader->taken, rest);
    }

    reader->pending.len = rest;
    reader->checked -= reader->taken;
    reader->taken = 0;
}


tg_rc_e
tg_frame_feed(tg_frame_reader_t *reader, const void *data, size_t len)
{
    const uint8_t  *head;
    tg_rc_e         rc;

    if (reader->failed) {
        return TG_E_SYNTAX;
    }

    frame_compact(reader);

    rc = tg_buf_append(&reader->pending, data, len);
    if (rc != TG_OK) {
        reader->failed = true;
        return rc;
    }

    while (reader->checked <= reader->pending.len
           && reader->pending.len - reader->checked >= TG_FRAME_HEAD)
    {
        head = (const uint8_t *) reader->pending.data + reader->checked;
        if (!frame_head_valid(head)) {
            reader->failed = true;
            return TG_E_SYNTAX;
        }

        reader->checked += TG_FRAME_HEAD + (size_t) frame_length(head);
    }

    return TG_OK;
}


tg_rc_e
tg_frame_next(tg_frame_reader_t *reader, tg_frame_t *frame)
{
    const uint8_t  *head;
    size_t          rest, length;

    if (reader->failed) {
        return TG_E_SYNTAX;
    }

    rest = reader->pending.len - reader->taken;
    if (rest < TG_FRAME_HEAD) {
        return TG_AGAIN;
    }

    head = (const uint8_t *) reader->pending.data + reader->taken;
    length = frame_length(head);
    if (rest - TG_FRAME_HEAD < length) {
        return TG_AGAIN;
    }

    frame->type = (tg_frame_type_e) head[4];
    frame->flags = head[5];
    frame->stream = (uint16_t) (head[6] << 8 | head[7]);
    frame->payload.len = length;
    frame->payload.data = (const char *) head + TG_FRAME_HEAD;

    reader->taken += TG_FRAME_HEAD + length;

    return TG_OK;
}


bool
tg_frame_partial(const tg_frame_reader_t *reader)
{
    return reader->pending.len != reader->taken;
}


tg_rc_e
tg_frame_write(tg_buf_t *out, tg_frame_type_e type, uint16_t stream,
    tg_str_t payload)
{
    uint8_t  head[TG_FRAME_HEAD];
    size_t   before;
    tg_rc_e  rc;

    if (payload.len > TG_FRAME_MAX) {
        return TG_E_LIMIT;
    }

    head[0] = (uint8_t) (payload.len >> 24);
    head[1] = (uint8_t) (payload.len >> 16);
    head[2] = (uint8_t) (payload.len >> 8);
    head[3] = (uint8_t) payload.len;
    head[4] = (uint8_t) type;
    head[5] = 0;
    head[6] = (uint8_t) (stream >> 8);
    head[7] = (uint8_t) stream;

    before = out->len;

    rc = tg_buf_append(out, head, TG_FRAME_HEAD);
    if (rc == TG_OK) {
        rc = tg_buf_append(out, payload.data, payload.len);
        if (rc != TG_OK) {
            /* never half a record */
            out->len = before;
        }
    }

    return rc;
}
