/*
 * Server-Sent Events, parsed as they arrive. An event that lies whole inside one
 * input is handed out as pointers into it; only what an input's end cuts is kept.
 * What the data is (JSON, [DONE]) is not known here.
 */

#include "tg_sse.h"


#define TG_SSE_BOM      "\xef\xbb\xbf"
#define TG_SSE_BOM_LEN  3

enum {
    TG_SSE_LINE = 0,      /* in a line or at its start */
    TG_SSE_AFTER_CR,      /* a line ended by CR: an LF belongs to it */
    TG_SSE_COMMENT        /* in a comment that an input's end has cut: not kept */
};

/* One call of feed. The strings point into the input or into sse->line; they are
 * copied into sse only when the input ends before the event does. */
typedef struct {
    tg_sse_t         *sse;
    const char       *start;      /* of the input */
    const char       *end;
    const char       *lf;         /* the next LF and CR at or after the place; end */
    const char       *cr;         /* when there is none. Each byte is searched once */
    tg_str_t          data;
    bool              has_data;
    tg_str_t          event;
    bool              has_event;
    tg_sse_event_pt   on_event;
    void             *ctx;
    bool              stopped;    /* by on_event */
} tg_sse_input_t;


void
tg_sse_init(tg_sse_t *sse)
{
    memset(sse, 0, sizeof(*sse));

    sse->state = TG_SSE_LINE;
    tg_buf_init(&sse->line, TG_SSE_MAX_EVENT);
    tg_buf_init(&sse->data, TG_SSE_MAX_EVENT);
    tg_buf_init(&sse->event, TG_SSE_MAX_EVENT);
}


void
tg_sse_free(tg_sse_t *sse)
{
    tg_buf_free(&sse->line);
    tg_buf_free(&sse->data);
    tg_buf_free(&sse->event);
}


bool
tg_sse_at_boundary(const tg_sse_t *sse)
{
    return sse->error == TG_OK && sse->state != TG_SSE_COMMENT && sse->line.len == 0
           && sse->total == 0;
}


/* Moves data that still points elsewhere into the buffer. */
static tg_rc_e
tg_sse_keep_data(tg_sse_input_t *in)
{
    tg_sse_t  *sse;

    sse = in->sse;

    if (!in->has_data) {
        return TG_OK;
    }

    if (sse->has_data) {
        tg_buf_char(&sse->data, '\n');
    }

    tg_buf_str(&sse->data, in->data);

    sse->has_data = true;
    in->has_data = false;

    return sse->data.error;
}


/* An empty line: hands out the event, if it has data, and begins the next. */
static tg_rc_e
tg_sse_dispatch(tg_sse_input_t *in, const char *after)
{
    tg_rc_e          rc;
    tg_sse_t        *sse;
    tg_sse_event_t   event;

    sse = in->sse;
    rc = TG_OK;

    if (in->has_data || sse->has_data) {

        if (sse->has_data) {
            rc = tg_sse_keep_data(in);
            if (rc != TG_OK) {
                return rc;
            }

            in->data = tg_buf_get(&sse->data);
        }

        event.event = in->has_event ? in->event : tg_buf_get(&sse->event);
        event.data = in->data.len == 0 ? tg_str("") : in->data;
        event.end = (size_t) (after - in->start);

        if (event.event.len == 0) {
            event.event = tg_str("");
        }

        rc = in->on_event(in->ctx, &event);
        in->stopped = (rc != TG_OK);
    }

    tg_buf_reset(&sse->data);
    tg_buf_reset(&sse->event);
    sse->has_data = false;
    sse->total = 0;
    in->has_data = false;
    in->has_event = false;

    return rc;
}


/* Takes one line that is not empty, without its end. */
static tg_rc_e
tg_sse_field(tg_sse_input_t *in, tg_str_t line)
{
    size_t       name;
    tg_rc_e      rc;
    tg_str_t     value;
    const char  *colon;

    if (line.data[0] == ':') {
        return TG_OK;
    }

    if (line.len > TG_SSE_MAX_EVENT - in->sse->total) {
        return TG_E_LIMIT;
    }

    in->sse->total += line.len;

    colon = memchr(line.data, ':', line.len);

    if (colon == NULL) {
        name = line.len;
        value = tg_str("");

    } else {
        name = (size_t) (colon - line.data);
        value = (tg_str_t) { line.len - name - 1, colon + 1 };

        if (value.len > 0 && value.data[0] == ' ') {
            value.data++;
            value.len--;
        }
    }

    if (name == 4 && memcmp(line.data, "data", 4) == 0) {
        rc = tg_sse_keep_data(in);
        in->data = value;
        in->has_data = true;

        return rc;
    }

    if (name == 5 && memcmp(line.data, "event", 5) == 0) {
        in->event = value;
        in->has_event = true;
    }

    return TG_OK;
}


/* The first ch at or after p, or the end of the input. */
static const char *
tg_sse_search(const tg_sse_input_t *in, const char *p, int ch)
{
    const char  *found;

    found = memchr(p, ch, (size_t) (in->end - p));

    return found != NULL ? found : in->end;
}


/* Finds the end of the line that goes on at p; NULL when the input ends first.
 * *after is then the first byte of the next line. */
static const char *
tg_sse_line_end(tg_sse_input_t *in, const char *p, const char **after)
{
    const char  *eol;

    if (in->lf < p) {
        in->lf = tg_sse_search(in, p, '\n');
    }

    if (in->cr < p) {
        in->cr = tg_sse_search(in, p, '\r');
    }

    eol = in->lf < in->cr ? in->lf : in->cr;

    if (eol == in->end) {
        return NULL;
    }

    *after = eol + 1;

    if (*eol == '\r' && in->lf == *after && in->lf < in->end) {
        (*after)++;
    }

    return eol;
}


/* Adds bytes to the line that an input's end has cut. */
static tg_rc_e
tg_sse_keep_line(tg_sse_t *sse, const char *p, size_t len)
{
    /* total is at most the bound, and so is what was kept of the line before */
    if (len > TG_SSE_MAX_EVENT - sse->total
        || sse->line.len > TG_SSE_MAX_EVENT - sse->total - len)
    {
        return TG_E_LIMIT;
    }

    return tg_buf_append(&sse->line, p, len);
}


/* The input has ended inside an event: what is left of it is copied. */
static tg_rc_e
tg_sse_suspend(tg_sse_input_t *in, const char *p)
{
    tg_rc_e    rc;
    tg_sse_t  *sse;

    sse = in->sse;

    rc = tg_sse_keep_data(in);
    if (rc != TG_OK) {
        return rc;
    }

    if (in->has_event) {
        tg_buf_reset(&sse->event);

        rc = tg_buf_str(&sse->event, in->event);
        if (rc != TG_OK) {
            return rc;
        }
    }

    if (p == in->end) {
        return TG_OK;
    }

    if (*p == ':') {
        sse->state = TG_SSE_COMMENT;
        return TG_OK;
    }

    return tg_sse_keep_line(sse, p, (size_t) (in->end - p));
}


/*
 * Passes what belongs to the bytes before this input: an LF after a CR, the BOM.
 * Up to two bytes of a BOM wait in the line; when it turns out to be none, they
 * are the line's first bytes.
 */
static const char *
tg_sse_begin(tg_sse_t *sse, const char *p, const char *end)
{
    if (sse->state == TG_SSE_AFTER_CR) {
        sse->state = TG_SSE_LINE;

        if (*p == '\n') {
            p++;
        }
    }

    while (!sse->started && p < end) {

        if (*p != TG_SSE_BOM[sse->line.len]) {
            sse->started = true;
            break;
        }

        if (tg_buf_char(&sse->line, *p++) != TG_OK) {
            break;
        }

        if (sse->line.len == TG_SSE_BOM_LEN) {
            tg_buf_reset(&sse->line);
            sse->started = true;
        }
    }

    return p;
}


/* Ends the line that an earlier input has begun; *pp moves behind it, or to the
 * end of the input when the line goes on. */
static tg_rc_e
tg_sse_cut_line(tg_sse_input_t *in, const char **pp)
{
    tg_rc_e      rc;
    tg_str_t     line;
    tg_sse_t    *sse;
    const char  *p, *eol, *after;

    sse = in->sse;
    p = *pp;

    eol = tg_sse_line_end(in, p, &after);

    if (eol == NULL) {
        *pp = in->end;

        return sse->state == TG_SSE_COMMENT
               ? TG_OK : tg_sse_keep_line(sse, p, (size_t) (in->end - p));
    }

    *pp = after;

    if (sse->state == TG_SSE_COMMENT) {
        sse->state = TG_SSE_LINE;

    } else {
        rc = tg_sse_keep_line(sse, p, (size_t) (eol - p));
        if (rc != TG_OK) {
            return rc;
        }

        line = tg_buf_get(&sse->line);

        /* the bytes stay where they are until the next line is kept, and
         * suspend copies what points to them before it keeps one */
        tg_buf_reset(&sse->line);

        rc = tg_sse_field(in, line);
        if (rc != TG_OK) {
            return rc;
        }
    }

    if (after == in->end && after[-1] == '\r') {
        sse->state = TG_SSE_AFTER_CR;
    }

    return TG_OK;
}


/* Takes the lines of the input one after the other. */
static tg_rc_e
tg_sse_lines(tg_sse_input_t *in, const char *p)
{
    tg_rc_e      rc;
    tg_str_t     line;
    const char  *eol, *after;

    if (in->sse->line.len > 0 || in->sse->state == TG_SSE_COMMENT) {
        rc = tg_sse_cut_line(in, &p);
        if (rc != TG_OK) {
            return rc;
        }

        if (in->sse->line.len > 0 || in->sse->state == TG_SSE_COMMENT) {
            return TG_OK;
        }
    }

    for ( ;; ) {
        eol = tg_sse_line_end(in, p, &after);
        if (eol == NULL) {
            return tg_sse_suspend(in, p);
        }

        if (after == in->end && after[-1] == '\r') {
            in->sse->state = TG_SSE_AFTER_CR;
        }

        line = (tg_str_t) { (size_t) (eol - p), p };
        p = after;

        rc = line.len == 0 ? tg_sse_dispatch(in, after) : tg_sse_field(in, line);
        if (rc != TG_OK) {
            return rc;
        }
    }
}


tg_rc_e
tg_sse_feed(tg_sse_t *sse, const char *data, size_t len,
    tg_sse_event_pt on_event, void *ctx)
{
    tg_rc_e          rc;
    const char      *p;
    tg_sse_input_t   in;

    if (sse->error != TG_OK || len == 0) {
        return sse->error;
    }

    memset(&in, 0, sizeof(in));
    in.sse = sse;
    in.start = data;
    in.end = data + len;
    in.on_event = on_event;
    in.ctx = ctx;

    p = tg_sse_begin(sse, data, in.end);
    if (p == in.end || sse->line.error != TG_OK) {
        sse->error = sse->line.error;
        return sse->error;
    }

    in.lf = tg_sse_search(&in, p, '\n');
    in.cr = tg_sse_search(&in, p, '\r');

    rc = tg_sse_lines(&in, p);

    /* what on_event says ends this call only */
    if (rc != TG_OK && !in.stopped) {
        sse->error = rc;
    }

    return rc;
}
