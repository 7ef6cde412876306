/*
 * The record reader: however a stream is cut, the same records come out, and every
 * record that comes out can be written back to the same bytes.
 */

#include <stdlib.h>

#include "tg_frame.h"


typedef struct {
    tg_buf_t  bytes;      /* all records written again */
    size_t    records;
    tg_rc_e   rc;         /* of the last feed */
} outcome_t;


static void
read_stream(const uint8_t *data, size_t size, size_t step, outcome_t *outcome)
{
    size_t             i, n;
    tg_frame_t         frame;
    tg_frame_reader_t  reader;

    tg_buf_init(&outcome->bytes, 2 * TG_FRAME_PENDING_MAX);
    outcome->records = 0;
    outcome->rc = TG_OK;
    tg_frame_reader_init(&reader);

    for (i = 0; i < size && outcome->rc == TG_OK; i += n) {
        n = size - i < step ? size - i : step;
        outcome->rc = tg_frame_feed(&reader, data + i, n);

        while (tg_frame_next(&reader, &frame) == TG_OK) {
            if (frame.payload.len > TG_FRAME_MAX || frame.type < TG_FRAME_HELLO
                || frame.type > TG_FRAME_PING)
            {
                abort();
            }
            if (tg_frame_write(&outcome->bytes, frame.type, frame.stream, frame.payload)
                != TG_OK)
            {
                abort();
            }
            outcome->records++;
        }
    }

    tg_frame_reader_free(&reader);
}


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t     step, i, at, length;
    outcome_t  whole, cut;

    if (size < 2 || size > TG_FRAME_PENDING_MAX) {
        return 0;
    }

    step = (size_t) data[0] + 1;
    data++;
    size--;

    read_stream(data, size, 1, &whole);
    read_stream(data, size, step, &cut);

    if (whole.rc == TG_OK) {
        /* nothing wrong in it: the cut does not matter */
        if (cut.rc != TG_OK || cut.records != whole.records
            || !tg_str_eq(tg_buf_get(&cut.bytes), tg_buf_get(&whole.bytes)))
        {
            abort();
        }
    } else if (cut.rc == TG_OK || cut.records > whole.records) {
        abort();
    }

    /* written back: all but the flags, which are not kept */
    for (i = 0, at = 0; i < whole.records; i++) {
        length = TG_FRAME_HEAD + ((size_t) data[at] << 24 | (size_t) data[at + 1] << 16
                                  | (size_t) data[at + 2] << 8 | data[at + 3]);
        if (memcmp(data + at, whole.bytes.data + at, 5) != 0
            || memcmp(data + at + 6, whole.bytes.data + at + 6, length - 6) != 0)
        {
            abort();
        }
        at += length;
    }

    tg_buf_free(&whole.bytes);
    tg_buf_free(&cut.bytes);
    return 0;
}
