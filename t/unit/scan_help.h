/*
 * What the tests of the scanner share: bodies in pieces, verdicts, random numbers.
 */

#ifndef SCAN_HELP_H
#define SCAN_HELP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tg_buf.h"
#include "tg_scan.h"


#define count(a)  (sizeof(a) / sizeof((a)[0]))
#define BIG       (64 * 1024 * 1024)


/* Feeds pieces of step bytes, each in memory of exactly its size. */
static inline tg_scan_t *
scan_in(tg_str_t body, size_t step, tg_rc_e *rc)
{
    char       *piece;
    size_t      i, n;
    tg_scan_t  *scan;

    scan = tg_scan_new();
    assert_non_null(scan);

    for (i = 0; i < body.len; i += n) {
        n = body.len - i < step ? body.len - i : step;
        piece = malloc(n);
        memcpy(piece, body.data + i, n);
        tg_scan_feed(scan, piece, n);
        free(piece);
    }

    *rc = tg_scan_finish(scan);

    return scan;
}


/* The verdict must not depend on the pieces. */
static inline void
assert_verdict(tg_str_t body, tg_rc_e want, const char *reason, ptrdiff_t offset)
{
    size_t       step, at;
    tg_rc_e      rc;
    tg_scan_t   *scan;
    const char  *why;

    for (step = 1; step <= body.len + 1; step = step < 20 ? step + 1 : step * 2) {
        scan = scan_in(body, step, &rc);
        why = tg_scan_error(scan, &at);

        if (rc != want || (reason != NULL && (why == NULL || strcmp(why, reason) != 0))
            || (offset >= 0 && at != (size_t) offset))
        {
            fail_msg("%.60s in pieces of %zu: %d %s at %zu", body.data, step, rc,
                     why == NULL ? "" : why, at);
        }

        /* an error stays */
        if (rc != TG_OK) {
            assert_int_equal(tg_scan_feed(scan, "{}", 2), rc);
            assert_int_equal(tg_scan_finish(scan), rc);
        }
        tg_scan_free(scan);
    }
}


/* The same numbers in every run. */
static inline uint64_t
next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;

    return *seed;
}

#endif /* SCAN_HELP_H */
