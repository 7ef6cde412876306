/*
 * Makes the inside of a sandbox: run by the new process that is to become pid 1.
 */

#ifndef TGD_JAIL_H
#define TGD_JAIL_H

#include "tgd.h"
#include "sandbox/wire.h"


/* The flags of clone that a sandbox needs. The control group namespace is made by
 * tgd_jail_enter, when the process has been moved to its group. */
#define TGD_JAIL_CLONE  \
    (CLONE_NEWUSER|CLONE_NEWNS|CLONE_NEWPID|CLONE_NEWNET|CLONE_NEWIPC|CLONE_NEWUTS)

/*
 * Confines the calling process, which is in new namespaces with its ids mapped and
 * stands in the workspace directory. Returns TGD_STAGE_NONE, or where it failed with
 * errno. Afterwards the process has no capability and can gain none.
 */
tgd_stage_e tgd_jail_enter(void);

#endif /* TGD_JAIL_H */
