/*
 * Any bytes as a time zone file and as a POSIX rule: nothing is read past them, and
 * what is taken says the same by offset and by next change.
 */

#include <stdio.h>
#include <stdlib.h>

#include "tg_zone.h"
#include "tg_zone_rule.h"


#define FUZZ_SINCE    1735689600    /* 2025-01-01 */
#define FUZZ_CHANGES  64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


/* All of a file without a transition but for its footer. */
static const char  fuzz_head[] =
    "TZif2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\4"
    "\0\0\0\0\0\0UTC\0"
    "TZif2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\4"
    "\0\0\0\0\0\0UTC\0\n";


static void
fuzz_file(tg_str_t input)
{
    int          i;
    int64_t      t, at;
    tg_zone_t   *zone;
    tg_zones_t  *zones;

    if (tg_zone_parse(input, FUZZ_SINCE, &zone) != TG_OK) {
        if (zone != NULL) {
            abort();
        }

        return;
    }

    for (t = FUZZ_SINCE, i = 0; i < FUZZ_CHANGES; t = at, i++) {

        if (!tg_zone_next(zone, t, &at)) {
            break;
        }

        if (at <= t || tg_zone_offset(zone, t) != tg_zone_offset(zone, at - 1)) {
            abort();
        }
    }

    (void) tg_zone_offset(zone, INT64_MIN);
    (void) tg_zone_offset(zone, INT64_MAX);

    zones = tg_zones_create(FUZZ_SINCE);

    if (zones == NULL || tg_zones_add(zones, tg_str("A"), input) != TG_OK
        || tg_zones_add(zones, tg_str("B"), input) != TG_OK
        || tg_zones_find(zones, tg_str("A")) != tg_zones_find(zones, tg_str("B"))
        || !tg_zone_equal(zone, tg_zones_find(zones, tg_str("A"))))
    {
        abort();
    }

    tg_zones_free(zones);
    tg_zone_free(zone);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char            *file;
    size_t           head;
    tg_zone_rule_t   rule;

    fuzz_file((tg_str_t) { size, (const char *) data });

    if (tg_zone_rule_parse((tg_str_t) { size, (const char *) data }, &rule) != TG_OK) {
        return 0;
    }

    head = sizeof(fuzz_head) - 1;
    file = malloc(head + size + 1);

    if (file == NULL) {
        abort();
    }

    memcpy(file, fuzz_head, head);
    memcpy(file + head, data, size);
    file[head + size] = '\n';
    fuzz_file((tg_str_t) { head + size + 1, file });
    free(file);

    return 0;
}
