/*
 * The launcher's file workers: one process for each call of a file tool. What they do
 * is in files/; here they are made, killed and forgotten.
 */

#ifndef TGD_WORKERS_H
#define TGD_WORKERS_H

#include "workspace.h"
#include "sandbox/filter.h"
#include "sandbox/wire.h"


#define TGD_WORKERS_MAX  64

typedef struct {
    const tgd_filter_t  *filter;
    tgd_slots_t         *slots;
    int                  workspaces;                     /* their directory */
    void               (*set_title)(const char *title);
} tgd_workers_conf_t;


void tgd_workers_init(const tgd_workers_conf_t *conf);

/* Makes a worker that serves the socket front, which stays the caller's. When that
 * fails the front reads end of file. */
void tgd_workers_start(const tgd_launch_t *order, int front);

void tgd_workers_kill(uint32_t id);

/* A child has ended that may have been one. */
void tgd_workers_reaped(pid_t pid);

#endif /* TGD_WORKERS_H */
