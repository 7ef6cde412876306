/*
 * The table of file workers; see workers.h.
 */

#include <signal.h>
#include <unistd.h>

#include "workers.h"
#include "files/worker.h"


typedef struct {
    pid_t     pid;              /* 0: free */
    uint32_t  id;               /* the front's name for it */
} tgd_worker_place_t;

static const tgd_workers_conf_t  *workers_conf;
static tgd_worker_place_t         workers[TGD_WORKERS_MAX];


void
tgd_workers_init(const tgd_workers_conf_t *conf)
{
    workers_conf = conf;
}


static tgd_worker_place_t *
worker_place(pid_t pid)
{
    size_t  i;

    for (i = 0; i < TGD_WORKERS_MAX; i++) {
        if (workers[i].pid == pid) {
            return &workers[i];
        }
    }

    return NULL;
}


void
tgd_workers_start(const tgd_launch_t *order, int front)
{
    pid_t                pid;
    tgd_worker_t         worker;
    tgd_worker_place_t  *place;

    place = worker_place(0);

    if (front == -1 || place == NULL || workers_conf->filter->len == 0
        || !tgd_workspace_name_valid(order->workspace))
    {
        return;
    }

    worker.workspace = tgd_workspace_open(workers_conf->slots, workers_conf->workspaces,
                                          order->workspace, &worker.owner);
    if (worker.workspace == -1) {
        return;
    }

    worker.socket = front;
    worker.separate = workers_conf->slots->count != 0;
    worker.filter = workers_conf->filter;
    worker.set_title = workers_conf->set_title;
    worker.parent = getpid();

    pid = fork();
    if (pid == 0) {
        tgd_worker_run(&worker);
    }

    if (pid > 0) {
        place->pid = pid;
        place->id = order->id;
    }

    (void) close(worker.workspace);
}


void
tgd_workers_kill(uint32_t id)
{
    size_t  i;

    for (i = 0; i < TGD_WORKERS_MAX; i++) {
        if (workers[i].pid != 0 && workers[i].id == id) {
            (void) kill(workers[i].pid, SIGKILL);
        }
    }
}


void
tgd_workers_reaped(pid_t pid)
{
    tgd_worker_place_t  *place;

    place = worker_place(pid);
    if (place != NULL) {
        place->pid = 0;
    }
}
