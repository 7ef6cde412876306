/*
 * A seed: a process that the launcher keeps ready, already in the control groups of
 * the sandbox that it will make. Joining a group waits for the kernel much longer
 * than all the rest takes, so it is done ahead.
 */

#ifndef TGD_SEED_H
#define TGD_SEED_H

#include "sandbox/cgroup.h"
#include "sandbox/filter.h"
#include "sandbox/wire.h"


typedef struct {
    const tgd_cgroup_t    *cgroup;
    const tgd_filter_t    *filter;
    uint32_t               group;       /* name of its control groups */
    tgd_cgroup_events_t    events;
    bool                   separate;    /* the owner's id is not ours */
    int                    channel;     /* SEQPACKET socket to the launcher */
    void                 (*set_title)(const char *title);
} tgd_seed_t;

/* launcher -> seed, with the supervisor's socket and the workspace directory */
typedef struct {
    uint32_t  memory_mib;
    uint32_t  pids;
    uid_t     owner;
} tgd_seed_order_t;

/* seed -> launcher, once; then it ends. The new process is the launcher's child. */
typedef struct {
    pid_t     pid;                      /* of pid 1; 0 when it failed */
    uint32_t  stage;
    int32_t   error;
} tgd_seed_reply_t;


void tgd_seed_run(const tgd_seed_t *seed) __attribute__((noreturn));

#endif /* TGD_SEED_H */
