/*
 * The table of run statuses.
 */

#include "tg_run_status.h"


#define TO(status)  (1u << TG_STATUS_##status)

#define TO_ENDS  (TO(COMPLETED) | TO(FAILED) | TO(CANCELLED) | TO(SUPERSEDED)    \
                  | TO(EXPIRED))


static const struct {
    const char  *name;
    const char  *event;
    unsigned     next;         /* set of what may follow; 0: it has ended */
} tg_run_statuses[TG_STATUSES] = {

    [TG_STATUS_QUEUED] = { "queued", NULL,
        TO(RUNNING) | TO(FAILED) | TO(CANCELLED) | TO(SUPERSEDED) },

    /* driven anew by another worker, it is running still */
    [TG_STATUS_RUNNING] = { "running", "run.started",
        TO(RUNNING) | TO(REQUIRES_ACTION) | TO_ENDS },

    /* answered, it waits for somebody to drive it; unanswered, it fails */
    [TG_STATUS_REQUIRES_ACTION] = { "requires_action", "run.requires_action",
        TO(QUEUED) | TO(FAILED) | TO(CANCELLED) | TO(SUPERSEDED) },

    [TG_STATUS_COMPLETED] = { "completed", "run.completed", 0 },
    [TG_STATUS_FAILED] = { "failed", "run.failed", 0 },
    [TG_STATUS_CANCELLED] = { "cancelled", "run.cancelled", 0 },
    [TG_STATUS_SUPERSEDED] = { "superseded", "run.superseded", 0 },
    [TG_STATUS_EXPIRED] = { "expired", "run.expired", 0 }
};


const char *
tg_run_status_name(tg_run_status_e status)
{
    return tg_run_statuses[status].name;
}


tg_run_status_e
tg_run_status_find(tg_str_t name)
{
    tg_run_status_e  status;

    for (status = TG_STATUS_QUEUED; status < TG_STATUSES; status++) {
        if (tg_str_eq(name, tg_str_of(tg_run_statuses[status].name))) {
            break;
        }
    }

    return status;
}


bool
tg_run_status_ended(tg_run_status_e status)
{
    return tg_run_statuses[status].next == 0;
}


bool
tg_run_status_may(tg_run_status_e from, tg_run_status_e to)
{
    return (tg_run_statuses[from].next & 1u << to) != 0;
}


const char *
tg_run_status_event(tg_run_status_e status)
{
    return tg_run_statuses[status].event;
}


tg_run_status_e
tg_run_status_of_event(tg_str_t type)
{
    tg_run_status_e  status;

    for (status = TG_STATUS_QUEUED; status < TG_STATUSES; status++) {
        if (tg_run_statuses[status].event
            && tg_str_eq(type, tg_str_of(tg_run_statuses[status].event)))
        {
            break;
        }
    }

    return status;
}
