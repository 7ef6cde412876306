/*
 * Control groups of sandboxes, v1 and v2, each controller where it is found. The
 * launcher is the only caller. What can not be used is left out and told.
 */

#ifndef TGD_CGROUP_H
#define TGD_CGROUP_H

#include "tgd.h"
#include "sandbox/wire.h"


#define TGD_CGROUP_MEMORY  1u
#define TGD_CGROUP_PIDS    2u
#define TGD_CGROUP_CPU     4u
#define TGD_CGROUP_KINDS   3

typedef struct {
    int       base[TGD_CGROUP_KINDS];    /* directory of ours, -1: not usable */
    bool      v2[TGD_CGROUP_KINDS];
    unsigned  missing;                   /* bits of what is not usable */
} tgd_cgroup_t;

/* Files to read a sandbox's counters from; -1: none. */
typedef struct {
    int  memory_events;
    int  pids_events;
} tgd_cgroup_events_t;


/*
 * Finds the hierarchies, removes what an earlier helper with the same name left
 * (its processes are killed), and makes our directory in each. record is a file in
 * the state directory that remembers where directories were made.
 */
void tgd_cgroup_init(tgd_cgroup_t *cgroup, const char *name, int state_dir,
    const char *record);

tgd_limits_e tgd_cgroup_kind(const tgd_cgroup_t *cgroup);

/* Makes the directories of sandbox id with limits. 0, or -1 with errno. */
int tgd_cgroup_create(const tgd_cgroup_t *cgroup, uint32_t id, uint32_t memory_mib,
    uint32_t pids, tgd_cgroup_events_t *events);

/* Sets other limits than it was made with. 0, or -1 with errno. */
int tgd_cgroup_limit(const tgd_cgroup_t *cgroup, uint32_t id, uint32_t memory_mib,
    uint32_t pids);

/* Moves pid in. 0, or -1 with errno. It waits for the kernel, 5 to 20 ms. */
int tgd_cgroup_join(const tgd_cgroup_t *cgroup, uint32_t id, pid_t pid);

/* Removes the directories of a sandbox that has ended. */
void tgd_cgroup_remove(const tgd_cgroup_t *cgroup, uint32_t id);

/* Removes our own directories. */
void tgd_cgroup_done(tgd_cgroup_t *cgroup, const char *name, int state_dir,
    const char *record);

/* The number behind key in an events file, 0 when it can not be read. */
uint64_t tgd_cgroup_counter(int fd, const char *key);

#endif /* TGD_CGROUP_H */
