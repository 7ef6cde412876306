/*
 * The launcher: the one process with privileges. Makes sandboxes on the front's
 * word, reaps them, cleans up behind all. It reads nothing that a client wrote.
 */

#ifndef TGD_LAUNCHER_H
#define TGD_LAUNCHER_H

#include "tgd.h"
#include "workspace.h"
#include "sandbox/wire.h"


#define TGD_CGROUP_NAME_MAX  64

typedef struct {
    int           front;          /* SEQPACKET socket to the front */
    int           state_dir;
    int           workspaces;     /* directory of the workspaces */
    tgd_slots_t   slots;
    char          cgroup[TGD_CGROUP_NAME_MAX];
    const char   *socket_path;    /* removed at the end */
    char        **argv;           /* overwritten: /proc/1/cmdline is seen inside */
} tgd_launcher_t;


/* Serves the front until it goes away, then ends every sandbox and exits. */
void tgd_launcher_run(tgd_launcher_t *launcher) __attribute__((noreturn));

#endif /* TGD_LAUNCHER_H */
