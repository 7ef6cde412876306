/*
 * The record protocol: whole streams, every way to cut them, bad heads, bounds.
 */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "tg_frame.h"


static void
test_round_trip(void **state)
{
    tg_buf_t           out;
    tg_frame_t         frame;
    tg_frame_reader_t  reader;

    (void) state;

    tg_buf_init(&out, 4096);
    assert_int_equal(tg_frame_write(&out, TG_FRAME_HELLO, 0, tg_str("{}")), TG_OK);
    assert_int_equal(tg_frame_write(&out, TG_FRAME_STDOUT, 0xABCD,
                                    (tg_str_t) { 4, "a\0\xFF\n" }), TG_OK);
    assert_int_equal(tg_frame_write(&out, TG_FRAME_PING, 7, tg_null_str), TG_OK);
    assert_int_equal(out.len, 3 * TG_FRAME_HEAD + 6);

    tg_frame_reader_init(&reader);
    assert_int_equal(tg_frame_feed(&reader, out.data, out.len), TG_OK);

    assert_int_equal(tg_frame_next(&reader, &frame), TG_OK);
    assert_int_equal(frame.type, TG_FRAME_HELLO);
    assert_true(tg_str_eq(frame.payload, tg_str("{}")));

    assert_int_equal(tg_frame_next(&reader, &frame), TG_OK);
    assert_int_equal(frame.type, TG_FRAME_STDOUT);
    assert_int_equal(frame.stream, 0xABCD);
    assert_int_equal(frame.payload.len, 4);
    assert_memory_equal(frame.payload.data, "a\0\xFF\n", 4);
    assert_true(tg_frame_partial(&reader));

    assert_int_equal(tg_frame_next(&reader, &frame), TG_OK);
    assert_int_equal(frame.type, TG_FRAME_PING);
    assert_int_equal(frame.payload.len, 0);

    assert_int_equal(tg_frame_next(&reader, &frame), TG_AGAIN);
    assert_false(tg_frame_partial(&reader));

    tg_frame_reader_free(&reader);
    tg_buf_free(&out);
}


/* reads the stream in pieces of step bytes and checks every record */
static void
read_in_steps(const tg_buf_t *stream, size_t step, size_t records)
{
    size_t             i, n, seen;
    tg_frame_t         frame;
    tg_frame_reader_t  reader;

    tg_frame_reader_init(&reader);
    seen = 0;

    for (i = 0; i < stream->len; i += n) {
        n = stream->len - i < step ? stream->len - i : step;
        assert_int_equal(tg_frame_feed(&reader, stream->data + i, n), TG_OK);

        while (tg_frame_next(&reader, &frame) == TG_OK) {
            assert_int_equal(frame.stream, seen);
            assert_int_equal(frame.payload.len, seen * 3);
            if (seen > 0) {
                assert_int_equal(frame.payload.data[seen * 3 - 1], 'a' + (char) seen);
            }
            seen++;
        }
    }

    assert_int_equal(seen, records);
    assert_false(tg_frame_partial(&reader));
    tg_frame_reader_free(&reader);
}


static void
test_every_cut(void **state)
{
    char      text[64];
    size_t    i, step;
    tg_buf_t  out;

    (void) state;

    tg_buf_init(&out, 4096);
    for (i = 0; i < 10; i++) {
        memset(text, 'a' + (int) i, sizeof(text));
        assert_int_equal(tg_frame_write(&out, TG_FRAME_EVENT, (uint16_t) i,
                                        (tg_str_t) { i * 3, text }), TG_OK);
    }

    for (step = 1; step <= out.len; step++) {
        read_in_steps(&out, step, 10);
    }

    printf("frame: %zu ways to cut a stream of %zu bytes\n", out.len, out.len);
    tg_buf_free(&out);
}


/* P02: lengths that lie, types that do not exist */
static void
test_bad_heads(void **state)
{
    static const uint8_t  heads[][TG_FRAME_HEAD] = {
        { 0xFF, 0xFF, 0xFF, 0xFF, TG_FRAME_CALL, 0, 0, 0 },
        { 0x00, 0x04, 0x00, 0x01, TG_FRAME_CALL, 0, 0, 0 },
        { 0x80, 0x00, 0x00, 0x00, TG_FRAME_PING, 0, 0, 0 },
        { 0x00, 0x00, 0x00, 0x02, 0, 0, 0, 0 },
        { 0x00, 0x00, 0x00, 0x02, TG_FRAME_PING + 1, 0, 0, 0 },
        { 0x00, 0x00, 0x00, 0x02, 0xFF, 0, 0, 0 },
        { 'G', 'E', 'T', ' ', '/', ' ', 'H', 'T' },
    };

    size_t             i, n;
    tg_buf_t           good;
    tg_frame_t         frame;
    tg_frame_reader_t  reader;

    (void) state;

    n = sizeof(heads) / sizeof(heads[0]);
    tg_buf_init(&good, 64);
    assert_int_equal(tg_frame_write(&good, TG_FRAME_PING, 0, tg_str("x")), TG_OK);

    for (i = 0; i < n; i++) {
        tg_frame_reader_init(&reader);
        assert_int_equal(tg_frame_feed(&reader, good.data, good.len), TG_OK);
        assert_int_equal(tg_frame_feed(&reader, heads[i], TG_FRAME_HEAD - 1), TG_OK);
        assert_int_equal(tg_frame_feed(&reader, &heads[i][TG_FRAME_HEAD - 1], 1),
                         TG_E_SYNTAX);
        assert_true(reader.pending.cap < 4096);
        assert_int_equal(tg_frame_next(&reader, &frame), TG_E_SYNTAX);
        assert_int_equal(tg_frame_feed(&reader, good.data, good.len), TG_E_SYNTAX);
        tg_frame_reader_free(&reader);
    }

    printf("frame: %zu bad heads refused\n", n);
    tg_buf_free(&good);
}


static void
test_bounds(void **state)
{
    char              *big;
    tg_buf_t           out;
    tg_frame_t         frame;
    tg_frame_reader_t  reader;

    (void) state;

    big = calloc(1, TG_FRAME_MAX + 1);
    assert_non_null(big);
    tg_buf_init(&out, TG_FRAME_HEAD + TG_FRAME_MAX + 4);

    assert_int_equal(tg_frame_write(&out, TG_FRAME_RESULT, 0,
                                    (tg_str_t) { TG_FRAME_MAX + 1, big }), TG_E_LIMIT);
    assert_int_equal(out.len, 0);

    assert_int_equal(tg_frame_write(&out, TG_FRAME_RESULT, 0,
                                    (tg_str_t) { TG_FRAME_MAX, big }), TG_OK);

    /* a record that does not fit leaves no half of itself */
    assert_int_equal(tg_frame_write(&out, TG_FRAME_PING, 0, tg_str("x")), TG_E_LIMIT);
    assert_int_equal(out.len, TG_FRAME_HEAD + TG_FRAME_MAX);

    tg_frame_reader_init(&reader);
    assert_int_equal(tg_frame_feed(&reader, out.data, out.len), TG_OK);
    assert_int_equal(tg_frame_next(&reader, &frame), TG_OK);
    assert_int_equal(frame.payload.len, TG_FRAME_MAX);
    assert_int_equal(tg_frame_next(&reader, &frame), TG_AGAIN);

    /* a caller that never takes is told so */
    assert_int_equal(tg_frame_feed(&reader, out.data, out.len), TG_OK);
    assert_int_equal(tg_frame_feed(&reader, out.data, out.len), TG_OK);
    assert_int_equal(tg_frame_feed(&reader, out.data, out.len), TG_E_LIMIT);

    tg_frame_reader_free(&reader);
    tg_buf_free(&out);
    free(big);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_every_cut),
        cmocka_unit_test(test_bad_heads),
        cmocka_unit_test(test_bounds),
    };

    return cmocka_run_group_tests_name("frame", tests, NULL, NULL);
}
