/*
 * Workspaces: one directory for each (project, account) below the state directory.
 * The name on disk is a hash, so that neither case nor dots of a label matter.
 */

#ifndef TGD_WORKSPACE_H
#define TGD_WORKSPACE_H

#include "tgd.h"
#include "sandbox/wire.h"


/* Owners of workspaces when the helper was started by root: a range of user ids that
 * nobody else has; the first belongs to the front itself. */
typedef struct {
    uid_t     first;
    uint32_t  count;      /* 0: no separation, all is the caller's own uid */
    uint8_t  *used;       /* a bit each */
} tgd_slots_t;


/* The name on disk of an account's workspace. */
void tgd_workspace_name(tg_str_t project, tg_str_t account,
    char name[TGD_WORKSPACE_HEX + 1]);

/* True for exactly 64 lower-case hex digits. */
bool tgd_workspace_name_valid(const char *name);

/* Chooses the range by /proc/self/uid_map; count is 0 when not root or no range of
 * this user namespace fits. */
void tgd_slots_init(tgd_slots_t *slots);

/* Notes the owners of the workspaces that lie in root. */
int tgd_slots_scan(tgd_slots_t *slots, int root);

/* Opens a workspace, making it when it is new, and gives its owner. -1 with errno. */
int tgd_workspace_open(tgd_slots_t *slots, int root, const char *name, uid_t *owner);

#endif /* TGD_WORKSPACE_H */
