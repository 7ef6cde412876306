/*
 * The wide, the portable and the narrow reading of text stop at the same byte.
 */

#include "scan_help.h"

#include "tg_scan_text.h"


/* Text of all kinds of characters, then broken at one byte: the wide, the portable
 * and the narrow reading must stop at the same byte. */
static void
test_text_readers_agree(void **state)
{
    char         *text;
    size_t        len, i, cut, stops;
    uint64_t      seed;
    unsigned      round, kind;
    const char   *narrow, *end;

    static const uint32_t  firsts[] = { 0x20, 0x5d, 0x80, 0x600, 0x800, 0x4e00, 0xd7c0,
                                        0xe000, 0xffc0, 0x10000, 0x1f600, 0x10ffc0 };
    static const uint32_t  counts[] = { 2, 34, 128, 256, 64, 4096, 64, 64, 64, 64, 64, 64 };

    (void) state;

    seed = 88172645463325252;
    text = malloc(400);
    stops = 0;

    for (round = 0; round < 60000; round++) {
        /* one kind of characters, or all */
        kind = (unsigned) (next_random(&seed) % (count(firsts) + 1));
        len = 0;
        while (len < 200) {
            i = kind < count(firsts) && next_random(&seed) % 8 != 0
                ? kind : next_random(&seed) % count(firsts);
            len += tg_utf8_encode(firsts[i]
                                  + (uint32_t) (next_random(&seed) % counts[i]),
                                  text + len);
        }

        len -= next_random(&seed) % 5;
        end = text + len;
        cut = next_random(&seed) % len;
        if (round % 4 != 0) {
            text[cut] = (char) next_random(&seed);
        }

        narrow = tg_scan_text_narrow(text, end);
        stops += narrow < end;
        assert_ptr_equal(tg_scan_text_portable(text, end), narrow);
        assert_ptr_equal(tg_scan_text(text, end), narrow);
        assert_ptr_equal(tg_scan_text(text + 0, text + cut),
                         tg_scan_text_narrow(text, text + cut));
    }

    assert_in_range(stops, 20000, 60000);
    free(text);
}


/* Every pair and many triples of bytes, at each place of a block. */
static void
test_text_readers_agree_on_pairs(void **state)
{
    char         text[48];
    unsigned     a, b, c, at;

    static const uint8_t  thirds[] = { 'x', 0x7f, 0x80, 0x9f, 0xa0, 0xbf, 0xc2, 0xff };

    (void) state;

    for (a = 0; a < 256; a++) {
        for (b = 0; b < 256; b++) {
            for (c = 0; c < count(thirds); c++) {
                at = (a + b + c) % 20;
                memset(text, 'y', sizeof(text));
                text[at] = (char) a;
                text[at + 1] = (char) b;
                text[at + 2] = (char) thirds[c];
                text[at + 3] = (char) 0x80;
                assert_ptr_equal(tg_scan_text(text, text + sizeof(text)),
                                 tg_scan_text_narrow(text, text + sizeof(text)));
            }
        }
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_text_readers_agree),
        cmocka_unit_test(test_text_readers_agree_on_pairs),
    };

    return cmocka_run_group_tests_name("scan_text", tests, NULL, NULL);
}
