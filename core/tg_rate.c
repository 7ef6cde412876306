/*
 * Request limits over slices of time; see tg_rate.h. Knows no clock, no store and
 * no request.
 */

#include "tg_rate.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>


static uint32_t
tg_rate_cap(uint32_t limit)
{
    return limit < TG_RATE_CAP_MAX ? limit : TG_RATE_CAP_MAX;
}


size_t
tg_rate_size(uint32_t limit)
{
    return sizeof(tg_rate_t) + tg_rate_cap(limit) * sizeof(tg_rate_slice_t);
}


void
tg_rate_init(tg_rate_t *r, uint32_t limit)
{
    r->cap = tg_rate_cap(limit);
    r->count = 0;
    r->total = 0;
    r->pad = 0;
}


/* The clock was set back: such takes are at most as old as now. One slice, so that
 * there is still room for all that follow. */
static void
tg_rate_set_back(tg_rate_t *r, uint64_t now)
{
    uint32_t  takes;

    takes = 0;

    while (r->count > 0 && r->slice[r->count - 1].newest > now) {
        r->count--;
        takes += r->slice[r->count].takes;
    }

    if (takes > 0) {
        r->slice[r->count].newest = now;
        r->slice[r->count].takes = takes;
        r->count++;
    }
}


tg_rate_state_t
tg_rate_look(tg_rate_t *r, uint32_t limit, uint64_t window, uint64_t now)
{
    uint32_t         old;
    tg_rate_state_t  state;

    tg_rate_set_back(r, now);

    for (old = 0; old < r->count; old++) {
        if (now - r->slice[old].newest < window) {
            break;
        }

        r->total -= r->slice[old].takes;
    }

    if (old > 0) {
        r->count -= old;
        memmove(r->slice, r->slice + old, r->count * sizeof(tg_rate_slice_t));
    }

    state.remaining = r->total < limit ? limit - r->total : 0;
    state.wait = state.remaining ? 0 : window - (now - r->slice[0].newest);
    state.reset = r->count ? window - (now - tg_rate_newest(r)) : 0;

    return state;
}


void
tg_rate_add(tg_rate_t *r, uint64_t window, uint64_t now)
{
    uint64_t          length;
    tg_rate_slice_t  *last;

    length = (window + TG_RATE_SLICES - 1) / TG_RATE_SLICES;
    last = r->count ? &r->slice[r->count - 1] : NULL;
    r->total++;

    /* full only after a clock was set back: counted for too long, not too short */

    if (last && (last->newest / length == now / length || r->count == r->cap)) {
        last->newest = now;
        last->takes++;
        return;
    }

    r->slice[r->count].newest = now;
    r->slice[r->count].takes = 1;
    r->count++;
}


uint64_t
tg_rate_newest(const tg_rate_t *r)
{
    return r->count ? r->slice[r->count - 1].newest : 0;
}


size_t
tg_rate_duration(uint64_t ms, char text[TG_RATE_DURATION_LEN])
{
    int       n;
    uint64_t  s;

    if (ms > 0 && ms < 1000) {
        n = snprintf(text, TG_RATE_DURATION_LEN, "%" PRIu64 "ms", ms);
        return (size_t) n;
    }

    s = ms / 1000;
    ms %= 1000;
    n = 0;

    if (s >= 3600) {
        n += snprintf(text + n, TG_RATE_DURATION_LEN - (size_t) n,
                      "%" PRIu64 "h", s / 3600);
    }

    if (s >= 60) {
        n += snprintf(text + n, TG_RATE_DURATION_LEN - (size_t) n,
                      "%" PRIu64 "m", s / 60 % 60);
    }

    n += snprintf(text + n, TG_RATE_DURATION_LEN - (size_t) n, "%" PRIu64, s % 60);

    if (ms > 0) {
        n += snprintf(text + n, TG_RATE_DURATION_LEN - (size_t) n, ".%03u",
                      (unsigned) ms);

        while (text[n - 1] == '0') {
            n--;
        }
    }

    text[n++] = 's';
    text[n] = '\0';

    return (size_t) n;
}
