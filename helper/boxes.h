/*
 * The launcher's table of sandboxes: seeds that wait, sandboxes that start, run and
 * end. It speaks to seeds; what is to be told to the front it gives to a callback.
 */

#ifndef TGD_BOXES_H
#define TGD_BOXES_H

#include <poll.h>

#include "workspace.h"
#include "sandbox/cgroup.h"
#include "sandbox/filter.h"
#include "sandbox/wire.h"


#define TGD_BOXES_MAX    1024      /* sandboxes at once */
#define TGD_BOXES_SEEDS  2         /* kept ready */

typedef struct {
    const tgd_cgroup_t  *cgroup;
    const tgd_filter_t  *filter;
    tgd_slots_t         *slots;
    int                  workspaces;                     /* their directory */
    void               (*set_title)(const char *title);
    void               (*tell)(const tgd_launch_t *message);
    void               (*reaped)(pid_t pid);             /* it was no sandbox */
} tgd_boxes_conf_t;


void tgd_boxes_init(const tgd_boxes_conf_t *conf);

/* Makes seeds until enough are ready. */
void tgd_boxes_plant(void);

/* Serves a CREATE: front is the supervisor's socket. What comes of it is told. */
void tgd_boxes_create(const tgd_launch_t *order, int front);

void tgd_boxes_kill(uint32_t id);

/* Reaps what has ended. */
void tgd_boxes_reap(void);

/* Fills in what to wait for, at most TGD_BOXES_MAX entries; and serves what came. */
int tgd_boxes_polls(struct pollfd *polls);
void tgd_boxes_serve(const struct pollfd *polls, int n);

/* Ends every sandbox and seed and waits for them. */
void tgd_boxes_end(void);

#endif /* TGD_BOXES_H */
