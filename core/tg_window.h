/*
 * Rolling window: at most `limit` takes in any `window` of time, by a ring of
 * the stamps of those that passed. A refused take leaves no stamp, so it never
 * lengthens the block. Time is the caller's, in any unit that only grows; a
 * clock set back is met by moving stamps of the future to now.
 *
 * conf/redis/counter_take.lua is the same rule on the clock of Redis.
 */

#ifndef TG_WINDOW_H
#define TG_WINDOW_H

#include "tg.h"


#define TG_WINDOW_CAP_MAX  1000


/* Lives in memory of the caller (a shared zone, too): no pointers inside. */
typedef struct {
    uint32_t  cap;
    uint32_t  head;          /* index of the oldest */
    uint32_t  count;
    uint32_t  pad;
    uint64_t  stamp[];
} tg_window_t;

typedef struct {
    bool      allowed;
    uint32_t  remaining;     /* takes that would still pass now */
    uint64_t  wait;          /* until the next one passes; 0 when allowed */
} tg_window_verdict_t;


/* Bytes of a ring for cap stamps. */
size_t tg_window_size(uint32_t cap);

void tg_window_init(tg_window_t *w, uint32_t cap);

/* Takes over the newest stamps that fit into dst. */
void tg_window_copy(tg_window_t *dst, const tg_window_t *src);

/* A limit above the ring's cap counts as cap. */
tg_window_verdict_t tg_window_take(tg_window_t *w, uint32_t limit,
    uint64_t window, uint64_t now);

/* The newest stamp, 0 when there is none. */
uint64_t tg_window_newest(const tg_window_t *w);

/* A wait in whole seconds, rounded up, never 0: what Retry-After may say. */
uint64_t tg_window_retry_after(uint64_t wait, uint64_t units_per_second);

#endif /* TG_WINDOW_H */
