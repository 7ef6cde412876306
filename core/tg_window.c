/*
 * Rolling window over a ring of stamps; see tg_window.h. Stamps are kept in
 * order of time. Knows no clock and no store.
 */

#include "tg_window.h"


static uint64_t *
tg_window_at(tg_window_t *w, uint32_t n)
{
    return &w->stamp[(w->head + n) % w->cap];
}


size_t
tg_window_size(uint32_t cap)
{
    return sizeof(tg_window_t) + (size_t) cap * sizeof(uint64_t);
}


void
tg_window_init(tg_window_t *w, uint32_t cap)
{
    w->cap = cap;
    w->head = 0;
    w->count = 0;
    w->pad = 0;
}


void
tg_window_copy(tg_window_t *dst, const tg_window_t *src)
{
    uint32_t  i, skip;

    skip = src->count > dst->cap ? src->count - dst->cap : 0;

    dst->head = 0;
    dst->count = src->count - skip;

    for (i = 0; i < dst->count; i++) {
        dst->stamp[i] = src->stamp[(src->head + skip + i) % src->cap];
    }
}


tg_window_verdict_t
tg_window_take(tg_window_t *w, uint32_t limit, uint64_t window, uint64_t now)
{
    uint32_t             i;
    tg_window_verdict_t  v;

    if (limit > w->cap) {
        limit = w->cap;
    }

    /* the clock was set back: such a take is at most as old as now */
    for (i = w->count; i > 0 && *tg_window_at(w, i - 1) > now; i--) {
        *tg_window_at(w, i - 1) = now;
    }

    while (w->count > 0 && now - *tg_window_at(w, 0) >= window) {
        w->head = (w->head + 1) % w->cap;
        w->count--;
    }

    if (w->count >= limit) {
        v.allowed = false;
        v.remaining = 0;

        /* after a limit was lowered more than one has to drop out */
        v.wait = limit == 0 ? window
                 : window - (now - *tg_window_at(w, w->count - limit));
        return v;
    }

    *tg_window_at(w, w->count) = now;
    w->count++;

    v.allowed = true;
    v.remaining = limit - w->count;
    v.wait = 0;

    return v;
}


uint64_t
tg_window_newest(const tg_window_t *w)
{
    return w->count == 0 ? 0 : w->stamp[(w->head + w->count - 1) % w->cap];
}


uint64_t
tg_window_retry_after(uint64_t wait, uint64_t units_per_second)
{
    uint64_t  s;

    s = wait / units_per_second;

    if (wait % units_per_second != 0) {
        s++;
    }

    return s == 0 ? 1 : s;
}
