/*
 * The statuses of a run as everybody outside sees them, and which may follow which:
 * the one table. The store's scripts keep to it; who drives a run knows finer states.
 */

#ifndef TG_RUN_STATUS_H
#define TG_RUN_STATUS_H

#include "tg.h"


typedef enum {
    TG_STATUS_QUEUED = 0,        /* made, nobody drives it yet */
    TG_STATUS_RUNNING,
    TG_STATUS_REQUIRES_ACTION,   /* waits for its caller, or for a decision */
    TG_STATUS_COMPLETED,
    TG_STATUS_FAILED,
    TG_STATUS_CANCELLED,
    TG_STATUS_SUPERSEDED,        /* a newer message of its session took its place */
    TG_STATUS_EXPIRED,           /* it took longer than a run may */
    TG_STATUSES
} tg_run_status_e;


/* "queued", …; static text. */
const char *tg_run_status_name(tg_run_status_e status);

/* The status of a name; TG_STATUSES: there is none of it. */
tg_run_status_e tg_run_status_find(tg_str_t name);

/* Whether nothing can follow. */
bool tg_run_status_ended(tg_run_status_e status);

/* Whether a run of the one status may come to have the other. */
bool tg_run_status_may(tg_run_status_e from, tg_run_status_e to);

/* The type of the event that tells of it: "run.completed", …; NULL for queued. */
const char *tg_run_status_event(tg_run_status_e status);

/* The status that the type of an event tells of; TG_STATUSES: none. */
tg_run_status_e tg_run_status_of_event(tg_str_t type);

#endif /* TG_RUN_STATUS_H */
