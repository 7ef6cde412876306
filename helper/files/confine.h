/*
 * What a file worker, and a program that it runs, can still do.
 */

#ifndef TGD_CONFINE_H
#define TGD_CONFINE_H

#include "files/worker.h"


/* The worker itself: the owner's user id without capabilities, beneath the directory root
 * only (and reading /usr, when it shall run a program), bounded, filtered. 0, or -1 with
 * errno. */
int tgd_confine_worker(const tgd_worker_t *worker, int root, bool programs);

/* What is about to become a program: from now on the calling process has not even the
 * workspace. With dir, it reads what is beneath that and of the system only what it takes
 * to start; with -1, all that a worker reads of the system. 0, or -1. */
int tgd_confine_program(const char *program, int dir);

/* True when the kernel confines the worker by paths, so that a foreign program may run in
 * the workspace. */
bool tgd_confined_paths(void);

#endif /* TGD_CONFINE_H */
