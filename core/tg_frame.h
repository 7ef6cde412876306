/*
 * The record protocol between the nginx worker and the helper on a unix stream
 * socket: an 8-byte head (length u32, type u8, flags u8, stream u16, all big
 * endian), then the payload. Control records hold JSON, output records raw bytes.
 * One call at a time per connection; closing the connection cancels it.
 */

#ifndef TG_FRAME_H
#define TG_FRAME_H

#include "tg.h"
#include "tg_buf.h"


#define TG_FRAME_HEAD  8
#define TG_FRAME_MAX   (256 * 1024)    /* bytes of a payload */
#define TG_FRAME_PROTOCOL  1
/* What a reader keeps: a record that is not whole yet and one read behind it. */
#define TG_FRAME_PENDING_MAX  (2 * (TG_FRAME_HEAD + TG_FRAME_MAX))

typedef enum {
    TG_FRAME_HELLO = 1,    /* both ways: {"protocol":1,…} */
    TG_FRAME_CALL,         /* worker: {"id","tool","arguments","project","account","session","invocation_id"} */
    TG_FRAME_STDOUT,       /* helper: raw */
    TG_FRAME_STDERR,       /* helper: raw */
    TG_FRAME_EVENT,        /* helper: JSON */
    TG_FRAME_RESULT,       /* helper: JSON, the call is over */
    TG_FRAME_CANCEL,       /* worker: {"id"} */
    TG_FRAME_PING          /* both ways, answered with the same payload */
} tg_frame_type_e;

typedef struct {
    tg_frame_type_e  type;
    uint8_t          flags;
    uint16_t         stream;
    tg_str_t         payload;
} tg_frame_t;

typedef struct {
    tg_buf_t  pending;
    size_t    taken;       /* bytes of pending that next has given out */
    size_t    checked;     /* where the first head lies that feed has not judged */
    bool      failed;      /* sticky: the peer speaks something else */
} tg_frame_reader_t;


void tg_frame_reader_init(tg_frame_reader_t *reader);
void tg_frame_reader_free(tg_frame_reader_t *reader);

/* Adds bytes that were read. TG_E_SYNTAX for an unknown type or a length over
 * TG_FRAME_MAX (seen in the head, before anything of that size is kept); from
 * then on nothing more is given out. TG_E_LIMIT over TG_FRAME_PENDING_MAX: the
 * caller did not take what was whole. */
tg_rc_e tg_frame_feed(tg_frame_reader_t *reader, const void *data, size_t len);

/* Takes the next whole record: TG_OK, TG_AGAIN when there is none, TG_E_SYNTAX
 * after a failed feed. The payload lives until the next feed. */
tg_rc_e tg_frame_next(tg_frame_reader_t *reader, tg_frame_t *frame);

/* True while bytes of a record that is not whole lie in the reader. */
bool tg_frame_partial(const tg_frame_reader_t *reader);

/* Appends one record. TG_E_LIMIT when payload is over TG_FRAME_MAX. */
tg_rc_e tg_frame_write(tg_buf_t *out, tg_frame_type_e type, uint16_t stream,
    tg_str_t payload);

#endif /* TG_FRAME_H */
