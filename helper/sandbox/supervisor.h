/*
 * Pid 1 of a sandbox: starts one job at a time, reaps, kills, reports.
 */

#ifndef TGD_SUPERVISOR_H
#define TGD_SUPERVISOR_H

#include "sandbox/cgroup.h"
#include "sandbox/filter.h"
#include "sandbox/wire.h"


typedef struct {
    int                   socket;       /* to the front */
    const tgd_filter_t   *filter;
    tgd_cgroup_events_t   events;       /* counters of our group */
    bool                  memory_group; /* a control group bounds memory */
    bool                  pids_group;   /* and one processes */
    uint32_t              memory_mib;
    uint32_t              pids;
} tgd_supervisor_t;


/* Serves orders until the front goes away. The process is already confined. */
void tgd_supervisor_run(const tgd_supervisor_t *supervisor) __attribute__((noreturn));

/* Tells the front that the sandbox could not be made, and exits. */
void tgd_supervisor_failed(int socket, tgd_stage_e stage, int error)
    __attribute__((noreturn));

#endif /* TGD_SUPERVISOR_H */
