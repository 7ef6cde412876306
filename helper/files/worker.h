/*
 * The process that serves one call of a file tool. It has the account's user id and
 * nothing but the account's directory.
 */

#ifndef TGD_WORKER_H
#define TGD_WORKER_H

#include "tgd.h"
#include "sandbox/filter.h"


typedef struct {
    int                  workspace;
    int                  socket;                          /* to the front */
    bool                 separate;                        /* accounts have user ids */
    uid_t                owner;
    pid_t                parent;                          /* the launcher */
    const tgd_filter_t  *filter;
    void               (*set_title)(const char *title);
} tgd_worker_t;


/* Serves the call and exits. Run by a new child of the launcher. */
void tgd_worker_run(const tgd_worker_t *worker) __attribute__((noreturn));

#endif /* TGD_WORKER_H */
