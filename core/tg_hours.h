/*
 * Business hours of an agent: reading and checking them, whether they are open at
 * a time, and when they open next. Pure: the time is a parameter.
 *
 * {"timezone":"Asia/Riyadh","days":{"sun":[["09:00","17:00"]]},
 *  "closed_dates":["2026-12-25"]}
 *
 * - A day that is not listed, or whose list is empty, is closed.
 * - The intervals of a day are in rising order and do not overlap; they may touch.
 *   The begin belongs to an interval, the end does not; "24:00" is an end only. One
 *   over midnight is written as two, on two days.
 * - A closed date is a whole day of the time zone's calendar.
 * - Times are those of the wall clock there: what the clock skips is never open,
 *   what it shows twice is open twice.
 */

#ifndef TG_HOURS_H
#define TG_HOURS_H

#include <jansson.h>

#include "tg.h"
#include "tg_zone.h"


#define TG_HOURS_INTERVALS_MAX  8      /* of a day */
#define TG_HOURS_CLOSED_MAX     366    /* dates */
#define TG_HOURS_SEARCH_DAYS    370    /* how far the next opening may be */
#define TG_HOURS_POINTER_MAX    64

typedef struct tg_hours_s  tg_hours_t;

/* Why hours are refused. */
typedef struct {
    const char  *code;                           /* static: the 422 code */
    const char  *reason;                         /* static */
    char         pointer[TG_HOURS_POINTER_MAX];  /* into the hours, e.g. "/timezone" */
} tg_hours_error_t;


/*
 * Reads the object. zones is the table that the time zone is looked up in; an empty
 * one, or NULL, means that this machine has none. Returns hours that the caller
 * frees and that must not outlive zones, or NULL with *error filled.
 */
tg_hours_t *tg_hours_parse(const json_t *value, const tg_zones_t *zones,
    tg_hours_error_t *error);
void tg_hours_free(tg_hours_t *hours);

/* Whether they are open at a unix time. */
bool tg_hours_open(const tg_hours_t *hours, int64_t t);

/* The first time from t on at which they are open: t itself when they are now.
 * False when they do not open within TG_HOURS_SEARCH_DAYS. */
bool tg_hours_next(const tg_hours_t *hours, int64_t t, int64_t *at);

#endif /* TG_HOURS_H */
