/*
 * What fuzzers of request bodies share: a check that stops the run, and a body that the
 * scanner has taken.
 */

#ifndef FUZZ_SCAN_HELP_H
#define FUZZ_SCAN_HELP_H

#include <stdlib.h>

#include "tg_scan.h"


static inline void
check(bool ok)
{
    if (!ok) {
        abort();
    }
}


/* NULL: it is no JSON, or too much of it. */
static inline tg_scan_t *
scan_of(tg_str_t text)
{
    tg_scan_t  *scan;

    scan = tg_scan_new();
    check(scan != NULL);
    (void) tg_scan_feed(scan, text.data, text.len);

    if (tg_scan_finish(scan) != TG_OK) {
        tg_scan_free(scan);
        return NULL;
    }

    return scan;
}

#endif /* FUZZ_SCAN_HELP_H */
