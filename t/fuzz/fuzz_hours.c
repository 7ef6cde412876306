/*
 * Any JSON as business hours: whatever is taken, the next opening is open, the second
 * before it is closed, and it agrees with asking for each time on its own.
 */

#include <stdlib.h>

#include "tg_hours.h"
#include "tg_json.h"


#define FUZZ_FROM   1793491200    /* 2026-11-01: clocks go back in America */
#define FUZZ_STEP   (7 * 3600 + 11)
#define FUZZ_TIMES  64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


/* A version 2 file without a transition, with the rule of New York. */
static const char  fuzz_zone[] =
    "TZif2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\4"
    "\0\0\0\0\0\0EST\0"
    "TZif2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\4"
    "\0\0\0\0\0\0EST\0\nEST5EDT,M3.2.0,M11.1.0\n";


static void
fuzz_ask(const tg_hours_t *hours)
{
    int      i;
    int64_t  t, at;

    for (i = 0, t = FUZZ_FROM; i < FUZZ_TIMES; i++, t += FUZZ_STEP) {

        if (!tg_hours_next(hours, t, &at)) {
            if (tg_hours_open(hours, t)) {
                abort();
            }

            continue;
        }

        if (at < t || !tg_hours_open(hours, at) || (at > t && tg_hours_open(hours, at - 1))
            || tg_hours_open(hours, t) != (at == t))
        {
            abort();
        }
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t            *value;
    tg_hours_t        *hours;
    tg_json_error_t    broken;
    tg_hours_error_t   error;

    static tg_zones_t  *zones;

    if (zones == NULL) {
        zones = tg_zones_create(FUZZ_FROM);

        if (zones == NULL
            || tg_zones_add(zones, tg_str("UTC"), (tg_str_t) { sizeof(fuzz_zone) - 1,
                                                               fuzz_zone }) != TG_OK)
        {
            abort();
        }
    }

    value = tg_json_load((tg_str_t) { size, (const char *) data }, &broken);

    if (value == NULL) {
        return 0;
    }

    hours = tg_hours_parse(value, zones, &error);

    if (hours != NULL) {
        fuzz_ask(hours);

    } else if (error.code == NULL || error.reason == NULL) {
        abort();
    }

    tg_hours_free(hours);
    json_decref(value);

    return 0;
}
