/*
 * A resumable parser for Server-Sent Events (WHATWG HTML, section 9.2). Input may
 * be cut anywhere, also inside a UTF-8 character, a BOM or between CR and LF.
 * It knows nothing of what the events mean.
 */

#ifndef TG_SSE_H
#define TG_SSE_H

#include "tg.h"
#include "tg_buf.h"


#define TG_SSE_MAX_EVENT  (4 * 1024 * 1024)   /* bytes of one event's lines, comments
                                                 and line ends aside */

typedef struct {
    tg_str_t  event;     /* "" when the field is absent */
    tg_str_t  data;      /* lines joined by LF; never NULL data for len 0 */
    size_t    end;       /* bytes of the call's input used up to this event's end */
} tg_sse_event_t;

/* Called for each event with data; strings live during the call. Not TG_OK stops
 * the parser, which returns that value; the bytes from event->end on may be fed
 * later. */
typedef tg_rc_e (*tg_sse_event_pt)(void *ctx, const tg_sse_event_t *event);

typedef struct {
    unsigned  state;
    bool      started;      /* past the BOM */
    tg_buf_t  line;         /* a line cut by the end of the last input */
    tg_buf_t  data;
    tg_buf_t  event;
    bool      has_data;
    size_t    total;        /* bytes of the event under way, for the bound */
    tg_rc_e   error;        /* sticky: over the bound or out of memory */
} tg_sse_t;


void tg_sse_init(tg_sse_t *sse);
void tg_sse_free(tg_sse_t *sse);

/* Parses len bytes; calls on_event for every event that is complete. TG_OK,
 * TG_E_LIMIT (event over TG_SSE_MAX_EVENT), TG_E_NOMEM or what on_event said.
 * Comments and unknown fields are passed over; events without a data line are
 * skipped, one with an empty data line is reported with empty data. */
tg_rc_e tg_sse_feed(tg_sse_t *sse, const char *data, size_t len,
    tg_sse_event_pt on_event, void *ctx);

/* True when the stream ended between events (nothing half read is left). */
bool tg_sse_at_boundary(const tg_sse_t *sse);

#endif /* TG_SSE_H */
