/*
 * The unit "delta" of tg-probe: bytes of an event stream, cut where the line says,
 * go through the event parser and the fold; the answer is the message.
 */

#include <stdlib.h>

#include "tg_delta.h"
#include "tg_probe.h"
#include "tg_sse.h"


#define PROBE_MAX_STREAM  (64 * 1024 * 1024)


static json_t *
probe_string(const tg_buf_t *buf)
{
    return json_stringn(buf->len > 0 ? buf->data : "", buf->len);
}


static int
probe_base64_digit(char ch)
{
    static const char   digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                   "0123456789+/";
    const char         *found;

    found = ch == '\0' ? NULL : strchr(digits, ch);

    return found == NULL ? -1 : (int) (found - digits);
}


/* Decodes standard base64, whose padding may be missing. */
static bool
probe_base64(const char *text, size_t len, tg_buf_t *out)
{
    int       digit;
    size_t    i;
    uint32_t  bits;
    unsigned  count;

    while (len > 0 && text[len - 1] == '=') {
        len--;
    }

    bits = 0;
    count = 0;

    for (i = 0; i < len; i++) {
        digit = probe_base64_digit(text[i]);
        if (digit < 0) {
            return false;
        }

        bits = (bits << 6 | (uint32_t) digit) & 0xffffff;
        count += 6;

        if (count >= 8) {
            count -= 8;
            tg_buf_char(out, (char) (bits >> count & 0xff));
        }
    }

    return count < 6 && out->error == TG_OK;
}


static tg_rc_e
probe_on_event(void *ctx, const tg_sse_event_t *event)
{
    tg_delta_news_t  news;

    return tg_delta_event(ctx, event->data, &news);
}


static int
probe_compare(const void *a, const void *b)
{
    const size_t  *x, *y;

    x = a;
    y = b;

    return *x < *y ? -1 : *x > *y;
}


/* The offsets of "cuts" in order and within len; *count of them. NULL: bad line. */
static size_t *
probe_cuts(const json_t *line, size_t len, size_t *count)
{
    size_t         i, n, *cuts;
    const json_t  *list, *value;

    list = json_object_get(line, "cuts");

    if (list != NULL && !json_is_array(list)) {
        return NULL;
    }

    n = json_array_size(list);
    cuts = malloc((n + 1) * sizeof(*cuts));
    if (cuts == NULL) {
        return NULL;
    }

    for (i = 0; i < n; i++) {
        value = json_array_get(list, i);

        if (!json_is_integer(value) || json_integer_value(value) < 0) {
            free(cuts);
            return NULL;
        }

        cuts[i] = (size_t) json_integer_value(value);
        cuts[i] = cuts[i] < len ? cuts[i] : len;
    }

    cuts[n] = len;
    qsort(cuts, n + 1, sizeof(*cuts), probe_compare);
    *count = n + 1;

    return cuts;
}


/* Each piece lies in a block of its own, as it would come from a socket. */
static tg_rc_e
probe_feed(tg_delta_t *delta, tg_str_t stream, const size_t *cuts, size_t count)
{
    char      *piece;
    size_t     i, start, len;
    tg_rc_e    rc;
    tg_sse_t   sse;

    tg_sse_init(&sse);
    rc = TG_OK;
    start = 0;

    for (i = 0; i < count && rc == TG_OK; i++) {
        len = cuts[i] - start;

        if (len > 0) {
            piece = malloc(len);
            if (piece == NULL) {
                rc = TG_E_NOMEM;
                break;
            }

            memcpy(piece, stream.data + start, len);
            rc = tg_sse_feed(&sse, piece, len, probe_on_event, delta);
            free(piece);
        }

        start = cuts[i];
    }

    tg_sse_free(&sse);
    tg_delta_close(delta);

    return rc;
}


static json_t *
probe_message(const tg_delta_t *delta)
{
    size_t   i;
    json_t  *message, *calls;

    calls = json_array();

    for (i = 0; i < delta->call_count; i++) {
        json_array_append_new(calls,
            json_pack("{s:o, s:o, s:o}",
                      "id", probe_string(&delta->calls[i].id),
                      "name", probe_string(&delta->calls[i].name),
                      "arguments", probe_string(&delta->calls[i].arguments)));
    }

    message = json_pack("{s:o, s:o, s:o}",
        "content", delta->has_content ? probe_string(&delta->content) : json_null(),
        "refusal", delta->has_refusal ? probe_string(&delta->refusal) : json_null(),
        "tool_calls", calls);

    json_object_set_new(message, "finish_reason",
                        delta->finish_reason[0] == '\0'
                        ? json_null() : json_string(delta->finish_reason));
    json_object_set_new(message, "usage",
        delta->usage.present
        ? json_pack("{s:I, s:I, s:I}",
                    "prompt_tokens", (json_int_t) delta->usage.prompt_tokens,
                    "completion_tokens", (json_int_t) delta->usage.completion_tokens,
                    "total_tokens", (json_int_t) delta->usage.total_tokens)
        : json_null());

    return message;
}


static json_t *
probe_answer(const tg_delta_t *delta, tg_rc_e rc)
{
    const char  *end;

    switch (delta->end) {

    case TG_DELTA_DONE:
        end = "done";
        break;

    case TG_DELTA_ERROR:
        end = "error";
        break;

    default:
        /* an event over the parser's bound ends the stream as an error too */
        end = rc == TG_OK ? "eof" : "error";
        break;
    }

    return json_pack("{s:o, s:s}", "message", probe_message(delta), "end", end);
}


json_t *
tg_probe_delta(const json_t *line)
{
    size_t         count, *cuts;
    json_t        *out;
    tg_rc_e        rc;
    tg_buf_t       stream;
    tg_delta_t     delta;
    const json_t  *text;

    text = json_object_get(line, "sse_base64");

    if (!json_is_string(text)) {
        return tg_probe_error("sse_base64 must be a string");
    }

    tg_buf_init(&stream, PROBE_MAX_STREAM);

    if (!probe_base64(json_string_value(text), json_string_length(text), &stream)) {
        tg_buf_free(&stream);
        return tg_probe_error("sse_base64 is not base64");
    }

    cuts = probe_cuts(line, stream.len, &count);

    if (cuts == NULL) {
        tg_buf_free(&stream);
        return tg_probe_error("cuts must be an array of byte offsets");
    }

    tg_delta_init(&delta);
    rc = probe_feed(&delta, tg_buf_get(&stream), cuts, count);
    out = probe_answer(&delta, rc);

    tg_delta_free(&delta);
    tg_buf_free(&stream);
    free(cuts);

    return out;
}
