/*
 * The event parser: every stream below gives the same events whole, byte by byte
 * and at every place where it can be cut in two or three.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tg_sse.h"


#define TEST_MAX_LOG     (64 * 1024)
#define TEST_THREE_WAYS  200     /* bytes up to which three pieces are tried */

typedef struct {
    tg_buf_t   log;         /* [event|data] of each event */
    size_t     count;
    size_t     last_end;
    size_t     fed;         /* bytes of the pieces before this one */
    tg_rc_e    answer;      /* what the callback returns */
} test_sink_t;


static tg_rc_e
test_on_event(void *ctx, const tg_sse_event_t *event)
{
    test_sink_t  *sink;

    sink = ctx;

    assert_non_null(event->data.data);
    assert_non_null(event->event.data);

    tg_buf_char(&sink->log, '[');
    tg_buf_str(&sink->log, event->event);
    tg_buf_char(&sink->log, '|');
    tg_buf_str(&sink->log, event->data);
    tg_buf_char(&sink->log, ']');

    sink->count++;
    sink->last_end = sink->fed + event->end;

    return sink->answer;
}


/* Each piece is a copy of its own, so that ASan sees a read past its end. */
static void
test_feed(tg_sse_t *sse, test_sink_t *sink, const char *p, size_t len)
{
    char  *copy;

    copy = malloc(len + 1);
    assert_non_null(copy);
    memcpy(copy, p, len);

    assert_int_equal(tg_sse_feed(sse, copy, len, test_on_event, sink), TG_OK);

    sink->fed += len;
    free(copy);
}


static void
test_split(tg_str_t in, size_t a, size_t b, size_t step, tg_str_t want, bool boundary)
{
    size_t       i;
    tg_sse_t     sse;
    test_sink_t  sink;

    memset(&sink, 0, sizeof(sink));
    tg_buf_init(&sink.log, TEST_MAX_LOG);
    tg_sse_init(&sse);

    if (step > 0) {
        for (i = 0; i < in.len; i += step) {
            test_feed(&sse, &sink, in.data + i,
                      in.len - i < step ? in.len - i : step);
        }

    } else {
        test_feed(&sse, &sink, in.data, a);
        test_feed(&sse, &sink, in.data + a, b - a);
        test_feed(&sse, &sink, in.data + b, in.len - b);
    }

    if (!tg_str_eq(tg_buf_get(&sink.log), want)) {
        fail_msg("cut at %zu and %zu, step %zu: %.*s instead of %.*s", a, b, step,
                 (int) sink.log.len, sink.log.data, (int) want.len, want.data);
    }

    assert_int_equal(tg_sse_at_boundary(&sse), boundary);
    assert_true(sink.last_end <= in.len);

    tg_buf_free(&sink.log);
    tg_sse_free(&sse);
}


static void
test_all(tg_str_t in, tg_str_t want, bool boundary)
{
    size_t  a, b;

    test_split(in, 0, 0, 0, want, boundary);
    test_split(in, 0, 0, 1, want, boundary);
    test_split(in, 0, 0, 2, want, boundary);
    test_split(in, 0, 0, 7, want, boundary);

    for (a = 0; a <= in.len; a++) {
        test_split(in, a, in.len, 0, want, boundary);

        for (b = a; in.len <= TEST_THREE_WAYS && b <= in.len; b++) {
            test_split(in, a, b, 0, want, boundary);
        }
    }
}

#define TEST_WHOLE(in, want)  test_all(tg_str(in), tg_str(want), true)
#define TEST_OPEN(in, want)   test_all(tg_str(in), tg_str(want), false)


static void
test_plain_events(void **state)
{
    (void) state;

    TEST_WHOLE("data: one\n\ndata: two\n\n", "[|one][|two]");
    TEST_WHOLE("event: ping\ndata: x\n\ndata: y\n\n", "[ping|x][|y]");
    TEST_WHOLE("data: x\nevent: late\n\n", "[late|x]");
    TEST_WHOLE("event: a\nevent: b\ndata: x\n\n", "[b|x]");
    TEST_WHOLE("event: a\nevent\ndata: x\n\n", "[|x]");
    TEST_WHOLE("", "");
    TEST_WHOLE("\n\n\n", "");
}


static void
test_c010_cut_inside_utf8_and_crlf(void **state)
{
    (void) state;

    TEST_WHOLE("data: {\"order_number\":\"\xd8\xb7\xd9\x84\xd8\xa8\"}\r\n\r\n",
               "[|{\"order_number\":\"\xd8\xb7\xd9\x84\xd8\xa8\"}]");
}


static void
test_c011_optional_space(void **state)
{
    (void) state;

    TEST_WHOLE("data:{\"a\":1}\n\ndata: {\"b\":2}\n\ndata:  c\n\ndata:[DONE]\n\n",
               "[|{\"a\":1}][|{\"b\":2}][| c][|[DONE]]");
}


static void
test_c012_line_ends(void **state)
{
    (void) state;

    TEST_WHOLE("data: one\r\n\r\ndata: two\r\n\r\n", "[|one][|two]");
    TEST_WHOLE("data: one\r\rdata: two\r\r", "[|one][|two]");
    TEST_WHOLE("data: one\n\r\ndata: two\r\n\ndata: 3\r\n\r", "[|one][|two][|3]");
    TEST_WHOLE("data: a\r\ndata: b\rdata: c\ndata: d\n\n", "[|a\nb\nc\nd]");
    TEST_WHOLE("data: a\r\r\n\r\ndata: b\r\n\n\r", "[|a][|b]");
}


static void
test_c013_bom(void **state)
{
    (void) state;

    TEST_WHOLE("\xef\xbb\xbf" "data: first\n\n", "[|first]");
    TEST_WHOLE("\xef\xbb\xbf\r\ndata: first\n\n", "[|first]");
    TEST_WHOLE("\xef\xbb\xbf: note\ndata: first\n\n", "[|first]");

    /* only one, only at the start, only whole */
    TEST_WHOLE("data: \xef\xbb\xbfx\n\n\xef\xbb\xbf" "data: y\n\ndata: z\n\n",
               "[|\xef\xbb\xbfx][|z]");
    TEST_WHOLE("\xef\xbb\xbf\xef\xbb\xbf" "data: x\n\ndata: y\n\n", "[|y]");
    TEST_WHOLE("\xef\xbb" "data: x\n\ndata: y\n\n", "[|y]");
    TEST_WHOLE("\xef\n\ndata: y\n\n", "[|y]");
    TEST_OPEN("\xef\xbb", "");
}


static void
test_c014_comments(void **state)
{
    (void) state;

    TEST_WHOLE(": ping\n\n: ping\n\ndata: x\n\n:\n\n::\n", "[|x]");
    TEST_WHOLE("data: a\n: between\r\ndata: b\n:\n\n", "[|a\nb]");
    TEST_WHOLE(": ping\r\n\r\n: ping\r: ping\rdata: x\r\r", "[|x]");
    TEST_OPEN("data: x\n\n: pi", "[|x]");
}


static void
test_c015_empty_data(void **state)
{
    (void) state;

    TEST_WHOLE("data:\n\ndata: {\"ok\":1}\n\ndata: [DONE]\n\n",
               "[|][|{\"ok\":1}][|[DONE]]");
    TEST_WHOLE("data\n\n", "[|]");
    TEST_WHOLE("data: \ndata:\ndata\n\n", "[|\n\n]");

    /* no data line at all: nothing is handed out, nor does the name last */
    TEST_WHOLE("event: a\n\ndata: x\n\n", "[|x]");
    TEST_WHOLE("id: 7\nretry: 100\n\n", "");
}


static void
test_unknown_fields(void **state)
{
    (void) state;

    TEST_WHOLE("id: 5\nretry: 10\nDATA: no\ndatas: no\n data: no\ndat\ndata: yes\n\n",
               "[|yes]");
    TEST_WHOLE("data:a:b: c\n\nevent:x:y\ndata:1\n\n", "[|a:b: c][x:y|1]");
    TEST_WHOLE("data: nul \0 in\n\n", "[|nul \0 in]");
}


static void
test_end_inside_an_event(void **state)
{
    (void) state;

    TEST_OPEN("data: one\n\ndata: two\n", "[|one]");
    TEST_OPEN("data: one\n\ndata: tw", "[|one]");
    TEST_OPEN("data: one\n\nevent: x\n", "[|one]");
    TEST_OPEN("data: one\n\nd", "[|one]");
}


/* An event whole in the input is not copied; end says where it is over. */
static tg_rc_e
test_slice_event(void *ctx, const tg_sse_event_t *event)
{
    const char  *in;

    in = ctx;

    assert_ptr_equal(event->data.data, in + strlen("event: e\ndata: "));
    assert_int_equal(event->data.len, strlen("value"));
    assert_ptr_equal(event->event.data, in + strlen("event: "));
    assert_int_equal(event->end, strlen("event: e\ndata: value\r\n\r\n"));

    return TG_OK;
}


static void
test_no_copy(void **state)
{
    static char  in[] = "event: e\ndata: value\r\n\r\ndata: cut";
    tg_sse_t     sse;

    (void) state;

    tg_sse_init(&sse);
    assert_int_equal(tg_sse_feed(&sse, in, sizeof(in) - 1, test_slice_event, in), TG_OK);
    assert_null(sse.data.data);
    assert_int_equal(sse.line.len, strlen("data: cut"));
    tg_sse_free(&sse);
}


/* A callback that stops the parser loses nothing: the rest is fed later. */
static void
test_stop_and_go_on(void **state)
{
    static const char  in[] = "data: a\n\nevent: b\r\ndata: b\r\n\r\ndata: c\r\rdata: d\n\n";
    size_t             pos, cut;
    tg_rc_e            rc;
    tg_sse_t           sse;
    test_sink_t        sink;

    (void) state;

    for (cut = 0; cut < sizeof(in); cut++) {
        memset(&sink, 0, sizeof(sink));
        tg_buf_init(&sink.log, TEST_MAX_LOG);
        sink.answer = TG_E_INVALID;
        tg_sse_init(&sse);

        pos = 0;

        while (pos < sizeof(in) - 1) {
            size_t  len;

            len = (pos < cut ? cut : sizeof(in) - 1) - pos;
            sink.fed = pos;

            rc = tg_sse_feed(&sse, in + pos, len, test_on_event, &sink);

            if (rc == TG_OK) {
                pos += len;

            } else {
                assert_int_equal(rc, TG_E_INVALID);
                assert_true(sink.last_end > pos);
                pos = sink.last_end;
            }
        }

        assert_true(tg_str_eq(tg_buf_get(&sink.log), tg_str("[|a][b|b][|c][|d]")));
        assert_true(tg_sse_at_boundary(&sse));

        tg_buf_free(&sink.log);
        tg_sse_free(&sse);
    }
}


static tg_rc_e
test_count_event(void *ctx, const tg_sse_event_t *event)
{
    *(size_t *) ctx += event->data.len + 1;

    return TG_OK;
}


/* Feeds head, n times fill and tail in pieces; returns the first failure. */
static tg_rc_e
test_big(const char *head, const char *fill, size_t n, const char *tail, size_t piece,
    size_t *seen)
{
    char      *all;
    size_t     i, len, unit;
    tg_rc_e    rc;
    tg_sse_t   sse;

    unit = strlen(fill);
    len = strlen(head) + n * unit + strlen(tail);
    all = malloc(len + 1);
    assert_non_null(all);

    memcpy(all, head, strlen(head));
    for (i = 0; i < n; i++) {
        memcpy(all + strlen(head) + i * unit, fill, unit);
    }
    memcpy(all + strlen(head) + n * unit, tail, strlen(tail) + 1);

    tg_sse_init(&sse);
    *seen = 0;
    rc = TG_OK;

    for (i = 0; i < len && rc == TG_OK; i += piece) {
        rc = tg_sse_feed(&sse, all + i, len - i < piece ? len - i : piece,
                         test_count_event, seen);
    }

    if (rc != TG_OK) {
        /* the failure stays, and nothing is handed out any more */
        *seen = 0;
        assert_int_equal(tg_sse_feed(&sse, "\n\ndata: x\n\n", 11, test_count_event,
                                     seen),
                         rc);
        assert_int_equal(*seen, 0);
        assert_false(tg_sse_at_boundary(&sse));
    }

    tg_sse_free(&sse);
    free(all);

    return rc;
}


static void
test_bound(void **state)
{
    size_t               i, seen;
    const size_t         room = TG_SSE_MAX_EVENT - 6;     /* "data: " */
    static const size_t  pieces[] = { 13, 4096, 1 << 30 };

    (void) state;

    for (i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {

        /* one long line */
        assert_int_equal(test_big("data: ", "x", room, "\n\n", pieces[i], &seen), TG_OK);
        assert_int_equal(seen, room + 1);
        assert_int_equal(test_big("data: ", "x", room + 1, "\n\n", pieces[i], &seen),
                         TG_E_LIMIT);

        /* the end is not waited for */
        assert_int_equal(test_big("data: ", "x", room + 1, "", pieces[i] < 4096 ? pieces[i] : 4096,
                                  &seen),
                         TG_E_LIMIT);

        /* many short ones; a field that means nothing counts as well */
        assert_int_equal(test_big("", "data\n", TG_SSE_MAX_EVENT / 4, "\n", pieces[i],
                                  &seen),
                         TG_OK);
        assert_int_equal(test_big("", "data\n", TG_SSE_MAX_EVENT / 4 + 1, "\n",
                                  pieces[i], &seen),
                         TG_E_LIMIT);
        assert_int_equal(test_big("", "id: 123456789\n", TG_SSE_MAX_EVENT / 13 + 1, "",
                                  pieces[i], &seen),
                         TG_E_LIMIT);

        /* comments are free, one long one and many short ones */
        assert_int_equal(test_big(":", "x", TG_SSE_MAX_EVENT * 2, "\ndata: a\n\n",
                                  pieces[i], &seen),
                         TG_OK);
        assert_int_equal(seen, 2);
        assert_int_equal(test_big("", ": ping\n", TG_SSE_MAX_EVENT / 3,
                                  "data: a\n\n", pieces[i], &seen),
                         TG_OK);
        assert_int_equal(seen, 2);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_plain_events),
        cmocka_unit_test(test_c010_cut_inside_utf8_and_crlf),
        cmocka_unit_test(test_c011_optional_space),
        cmocka_unit_test(test_c012_line_ends),
        cmocka_unit_test(test_c013_bom),
        cmocka_unit_test(test_c014_comments),
        cmocka_unit_test(test_c015_empty_data),
        cmocka_unit_test(test_unknown_fields),
        cmocka_unit_test(test_end_inside_an_event),
        cmocka_unit_test(test_no_copy),
        cmocka_unit_test(test_stop_and_go_on),
        cmocka_unit_test(test_bound)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
