/*
 * A chat request in the form of the Responses API: whatever valid body comes in, what
 * goes out is valid JSON as well. The events that a model answers with: whatever comes,
 * what is shown piece by piece is the text in the end.
 */

#include <stdlib.h>

#include "fuzz_scan_help.h"
#include "tg_delta.h"
#include "tg_to_responses.h"
#include "tg_walk.h"


#define OUT_MAX  (16 * 1024 * 1024)


static tg_rc_e
add(void *ctx, tg_str_t piece)
{
    return tg_buf_append(ctx, piece.data, piece.len);
}


/* The value of a member; of a list what lies between its brackets. */
static tg_str_t
member(const tg_scan_t *scan, const char *body, const char *name, bool list)
{
    tg_str_t                 text;
    const tg_scan_member_t  *found;

    found = tg_scan_find(scan, body, name);

    if (found == NULL || (list && found->value.type != TG_SCAN_ARRAY)) {
        return tg_str("");
    }

    text = (tg_str_t) { found->value.end - found->value.start,
                        body + found->value.start };

    return list ? (tg_str_t) { text.len - 2, text.data + 1 } : text;
}


static void
request(const tg_scan_t *scan, const char *body)
{
    tg_buf_t            out;
    tg_str_t            choice;
    tg_scan_t          *again;
    tg_to_responses_t   t;

    static const char *const  left_out[] = { "messages", "tools", "tool_choice", NULL };

    tg_buf_init(&out, OUT_MAX);
    tg_to_responses_init(&t, add, &out);

    tg_buf_cstr(&out, "{\"input\":[");
    check(tg_to_responses_messages(&t, member(scan, body, "messages", true)) == TG_OK);
    tg_buf_cstr(&out, "],\"tools\":[");
    check(tg_to_responses_tools(&t, member(scan, body, "tools", true)) == TG_OK);
    tg_buf_cstr(&out, "],\"tool_choice\":");
    choice = member(scan, body, "tool_choice", false);
    check(tg_to_responses_choice(&t, choice.len ? choice : tg_str("null")) == TG_OK);
    check(tg_to_responses_fields(&t, scan, body, left_out) == TG_OK);
    tg_buf_char(&out, '}');

    /* new names may be longer, and so many that the scanner keeps no more */
    again = scan_of(tg_buf_get(&out));
    check(again != NULL || tg_scan_member_count(scan) > 64);

    tg_scan_free(again);
    tg_buf_free(&out);
}


/* A line is the data of an event. */
static void
answer(const char *data, size_t size)
{
    size_t           n;
    tg_buf_t         shown;
    tg_delta_t       delta;
    const char      *line, *end;
    tg_delta_news_t  news;

    tg_delta_init(&delta);
    tg_buf_init(&shown, OUT_MAX);

    for (line = data; size > 0; ) {
        end = memchr(line, '\n', size);
        n = end ? (size_t) (end - line) : size;

        (void) tg_delta_responses_event(&delta, (tg_str_t) { n, line }, &news);
        tg_buf_str(&shown, news.content);

        n += end ? 1 : 0;
        line += n;
        size -= n;
    }

    tg_delta_close(&delta);
    check(delta.end != TG_DELTA_OPEN);
    check(tg_str_eq(tg_buf_get(&shown), tg_buf_get(&delta.content)));
    check(!tg_delta_complete(&delta) || delta.finish_reason[0] != '\0');

    for (n = 0; n < delta.call_count; n++) {
        (void) tg_delta_call_ready(&delta.calls[n]);
    }

    tg_delta_free(&delta);
    tg_buf_free(&shown);
}


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char       *body;
    tg_scan_t  *scan;

    /* exactly as long, so that a byte read behind it is seen */

    body = malloc(size ? size : 1);
    check(body != NULL);
    memcpy(body, data, size);

    scan = scan_of((tg_str_t) { size, body });

    if (scan && tg_scan_top_type(scan) == TG_SCAN_OBJECT) {
        request(scan, body);
    }

    answer(body, size);

    tg_scan_free(scan);
    free(body);

    return 0;
}
