/*
 * The wide, the portable and the narrow reading of text stop at the same byte; so
 * does the one that passes over escapes.
 */

#include "scan_help.h"

#include "tg_scan_internal.h"
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


/* Where text and escapes of one letter end, byte by byte; also says whether `at` is
 * a place between two of them, and whether an escape comes before it. */
static const char *
walk_escaped(const char *p, const char *end, const char *at, bool *between, bool *escaped)
{
    *between = false;
    *escaped = false;

    for ( ;; ) {
        *between |= p == at;
        if (p < end && tg_scan_text_narrow(p, p + 1) != p) {
            p++;
        } else if (end - p >= 2 && *p == '\\' && tg_scan_unescape[(uint8_t) p[1]] != 0) {
            *escaped |= p < at;
            p += 2;
        } else {
            return p;
        }
    }
}


/* 64 bytes at a time: never past what is to be judged, and not stopped early. */
static void
test_text_escaped(void **state)
{
    char         text[400];
    bool         between, escaped, said;
    size_t       i, len, whole;
    uint64_t     seed;
    unsigned     round, rare;
    const char  *stop, *got, *end;

    static const char  some[] = "\\\\\\\\\\nn\"\"/btu01x \x1f\x7f\xc3\xa9";

    (void) state;

    seed = 362436069;
    whole = 0;

    for (round = 0; round < 60000; round++) {
        len = 60 + next_random(&seed) % 340;
        rare = 1 + (unsigned) (next_random(&seed) % 200);
        for (i = 0; i < len; i++) {
            text[i] = next_random(&seed) % rare != 0
                      ? 'y' : some[next_random(&seed) % (sizeof(some) - 1)];
            if (i > 0 && text[i - 1] == '\\' && next_random(&seed) % 16 != 0) {
                text[i] = "\"\\nt"[next_random(&seed) % 4];
            }
        }

        end = text + len;
        said = false;
        got = tg_scan_text_escaped(text, end, tg_scan_unescape, &said);
        stop = walk_escaped(text, end, got, &between, &escaped);

        assert_true(between);
        assert_int_equal(said, escaped);
        assert_true(got <= stop);
#if defined(__SSE2__)
        assert_true(got == stop || end - got <= 64);
#endif
        whole += got > text + 64;
    }

#if defined(__SSE2__)
    assert_in_range(whole, 10000, 60000);
#endif
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_text_readers_agree),
        cmocka_unit_test(test_text_readers_agree_on_pairs),
        cmocka_unit_test(test_text_escaped),
    };

    return cmocka_run_group_tests_name("scan_text", tests, NULL, NULL);
}
