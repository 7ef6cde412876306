/*
 * Request limits: at most `limit` takes in any `window` of time, in memory that
 * does not grow with the limit. Takes are kept by slice of time, a sixtieth of the
 * window: how many, and when the newest of them was. A slice counts until its
 * newest take is a window old, so that never more than the limit pass in any
 * window; a place may be free up to a sixtieth of the window late. A limit of up to
 * 60 has the stamps of single takes as long as they are a slice apart.
 *
 * Looking and taking are two steps: of several limits all are taken, or none. A
 * take that is refused is not added and never lengthens the block. Time is the
 * caller's, in milliseconds; stamps of the future (a clock set back) become now.
 *
 * conf/redis/limit_take.lua is the same rule on the clock of Redis.
 */

#ifndef TG_RATE_H
#define TG_RATE_H

#include "tg.h"


#define TG_RATE_SLICES        60
#define TG_RATE_CAP_MAX       (TG_RATE_SLICES + 1)   /* the window cuts two */
#define TG_RATE_LIMIT_MAX     1000000000u
#define TG_RATE_DURATION_LEN  40


typedef struct __attribute__((packed)) {
    uint64_t  newest;
    uint32_t  takes;
} tg_rate_slice_t;

/* Lives in memory of the caller (a shared zone, too): no pointers inside. */
typedef struct {
    uint32_t         cap;
    uint32_t         count;      /* slices in use */
    uint32_t         total;      /* takes in them */
    uint32_t         pad;
    tg_rate_slice_t  slice[];    /* oldest first */
} tg_rate_t;

typedef struct {
    uint32_t  remaining;     /* takes that would pass now */
    uint64_t  wait;          /* until one passes; 0: now */
    uint64_t  reset;         /* until nothing is counted any more */
} tg_rate_state_t;


/* Bytes that a limit needs: at most some 750, whatever the limit. */
size_t tg_rate_size(uint32_t limit);

/* limit: 1..TG_RATE_LIMIT_MAX; the same in every later call. */
void tg_rate_init(tg_rate_t *r, uint32_t limit);

/* Forgets what is older than the window and says how it stands. */
tg_rate_state_t tg_rate_look(tg_rate_t *r, uint32_t limit, uint64_t window,
    uint64_t now);

/* Takes one; only after a look at the same time that told no wait. */
void tg_rate_add(tg_rate_t *r, uint64_t window, uint64_t now);

/* The newest stamp, 0 when there is none. */
uint64_t tg_rate_newest(const tg_rate_t *r);

/* A time as OpenAI's x-ratelimit-reset-… headers have it: "0s", "250ms", "1.5s",
 * "6m0s", "24h0m0s". Returns the length; the text ends in a NUL. */
size_t tg_rate_duration(uint64_t ms, char text[TG_RATE_DURATION_LEN]);

#endif /* TG_RATE_H */
