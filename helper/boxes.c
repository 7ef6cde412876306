/*
 * The table of sandboxes; see boxes.h. A place goes seed -> starting -> running ->
 * free, or from starting to failed when the seed could not do it.
 */

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "boxes.h"
#include "sandbox/seed.h"


#define TGD_BOXES_END_TRIES  3000      /* a millisecond each */

typedef enum {
    TGD_BOX_FREE = 0,
    TGD_BOX_SEED,                       /* waits for an order */
    TGD_BOX_STARTING,                   /* the order is out, pid is the seed's */
    TGD_BOX_RUNNING,                    /* pid is pid 1 of the sandbox */
    TGD_BOX_FAILED                      /* told; waits for the seed's end */
} tgd_box_state_e;

typedef struct {
    tgd_box_state_e  state;
    pid_t            pid;
    uint32_t         id;                /* the front's name for it */
    uint32_t         group;             /* name of its control groups */
    int              channel;           /* to the seed, -1: none */
    bool             doomed;            /* to be killed as soon as it starts */
} tgd_box_t;

typedef struct {
    const tgd_boxes_conf_t  *conf;
    uint32_t                 groups;    /* names given so far */
    tgd_box_t                all[TGD_BOXES_MAX];
    tgd_box_t               *starting[TGD_BOXES_MAX];    /* as last polled */
} tgd_boxes_t;

static tgd_boxes_t  boxes;


void
tgd_boxes_init(const tgd_boxes_conf_t *conf)
{
    tgd_box_t  *box;

    boxes.conf = conf;
    for (box = boxes.all; box < boxes.all + TGD_BOXES_MAX; box++) {
        box->channel = -1;
    }
}


static void
box_failed(uint32_t id, tgd_stage_e stage, int error)
{
    tgd_launch_t  message;

    memset(&message, 0, sizeof(message));
    message.op = TGD_LAUNCH_FAILED;
    message.id = id;
    message.stage = stage;
    message.error = error;

    boxes.conf->tell(&message);
}


/* a free place, or NULL */
static tgd_box_t *
box_free(void)
{
    tgd_box_t  *box;

    for (box = boxes.all; box < boxes.all + TGD_BOXES_MAX; box++) {
        if (box->state == TGD_BOX_FREE) {
            return box;
        }
    }

    return NULL;
}


static void
box_clear(tgd_box_t *box)
{
    if (box->channel != -1) {
        (void) close(box->channel);
    }

    tgd_cgroup_remove(boxes.conf->cgroup, box->group);
    box->state = TGD_BOX_FREE;
    box->channel = -1;
    box->pid = 0;
}


/* one more seed; NULL with errno and, in stage, where it failed */
static tgd_box_t *
box_plant(tgd_stage_e *stage)
{
    int         pair[2], error;
    pid_t       pid;
    tgd_box_t  *box;
    tgd_seed_t  seed;

    *stage = TGD_STAGE_JOB;
    box = box_free();
    if (box == NULL) {
        errno = EAGAIN;
        return NULL;
    }

    if (socketpair(AF_UNIX, SOCK_SEQPACKET|SOCK_CLOEXEC, 0, pair) == -1) {
        return NULL;
    }

    box->group = ++boxes.groups;
    box->channel = pair[0];
    box->doomed = false;

    seed.cgroup = boxes.conf->cgroup;
    seed.filter = boxes.conf->filter;
    seed.group = box->group;
    seed.separate = boxes.conf->slots->count != 0;
    seed.channel = pair[1];
    seed.set_title = boxes.conf->set_title;

    pid = -1;
    *stage = TGD_STAGE_CGROUP;
    if (tgd_cgroup_create(boxes.conf->cgroup, box->group, TGD_MEMORY_MIB, TGD_PIDS,
                          &seed.events) == 0)
    {
        *stage = TGD_STAGE_JOB;
        pid = fork();
        if (pid == 0) {
            (void) close(pair[0]);
            tgd_seed_run(&seed);
        }
    }

    error = errno;
    (void) close(pair[1]);
    if (seed.events.memory_events != -1) {
        (void) close(seed.events.memory_events);
    }
    if (seed.events.pids_events != -1) {
        (void) close(seed.events.pids_events);
    }

    if (pid == -1) {
        box_clear(box);
        errno = error;
        return NULL;
    }

    box->pid = pid;
    box->state = TGD_BOX_SEED;
    return box;
}


static tgd_box_t *
box_seed(void)
{
    tgd_box_t  *box;

    for (box = boxes.all; box < boxes.all + TGD_BOXES_MAX; box++) {
        if (box->state == TGD_BOX_SEED) {
            return box;
        }
    }

    return NULL;
}


/* keeps some seeds ahead of need */
void
tgd_boxes_plant(void)
{
    int          seeds;
    tgd_box_t   *box;
    tgd_stage_e  stage;

    seeds = 0;
    for (box = boxes.all; box < boxes.all + TGD_BOXES_MAX; box++) {
        seeds += box->state == TGD_BOX_SEED;
    }

    while (seeds < TGD_BOXES_SEEDS && box_plant(&stage) != NULL) {
        seeds++;
    }
}


static int
seed_order(tgd_box_t *box, const tgd_launch_t *order, uid_t owner, int front,
    int workspace)
{
    int               fds[2] = { front, workspace };
    ssize_t           n;
    struct iovec      iov;
    struct msghdr     head;
    struct cmsghdr   *control;
    tgd_seed_order_t  message;

    union {
        struct cmsghdr  align;
        char            bytes[CMSG_SPACE(sizeof(fds))];
    } space;

    memset(&message, 0, sizeof(message));
    message.memory_mib = order->memory_mib;
    message.pids = order->pids;
    message.owner = owner;

    iov.iov_base = &message;
    iov.iov_len = sizeof(message);

    memset(&head, 0, sizeof(head));
    memset(&space, 0, sizeof(space));
    head.msg_iov = &iov;
    head.msg_iovlen = 1;
    head.msg_control = &space;
    head.msg_controllen = sizeof(space);

    control = CMSG_FIRSTHDR(&head);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof(fds));
    memcpy(CMSG_DATA(control), fds, sizeof(fds));

    do {
        n = sendmsg(box->channel, &head, MSG_NOSIGNAL);
    } while (n == -1 && errno == EINTR);

    return n == -1 ? -1 : 0;
}


/* a seed that is not as it should be: it reads end of file and leaves */
static void
box_discard(tgd_box_t *box)
{
    int  error;

    error = errno;
    (void) close(box->channel);
    box->channel = -1;
    box->state = TGD_BOX_FAILED;
    errno = error;
}


void
tgd_boxes_create(const tgd_launch_t *order, int front)
{
    int          workspace;
    uid_t        owner;
    tgd_box_t   *box;
    tgd_stage_e  stage;

    /* the front is not believed: no more than the profile */
    if (front == -1 || !tgd_workspace_name_valid(order->workspace)
        || order->memory_mib > TGD_MEMORY_MIB || order->pids > TGD_PIDS)
    {
        box_failed(order->id, TGD_STAGE_JOB, EINVAL);
        return;
    }

    workspace = tgd_workspace_open(boxes.conf->slots, boxes.conf->workspaces,
                                   order->workspace, &owner);
    if (workspace == -1) {
        box_failed(order->id, TGD_STAGE_WORKSPACE, errno);
        return;
    }

    stage = TGD_STAGE_NONE;
    box = box_seed();
    if (box == NULL) {
        box = box_plant(&stage);
    }

    if (box != NULL && (order->memory_mib != TGD_MEMORY_MIB || order->pids != TGD_PIDS)
        && tgd_cgroup_limit(boxes.conf->cgroup, box->group, order->memory_mib, order->pids)
           == -1)
    {
        stage = TGD_STAGE_CGROUP;
        box_discard(box);
        box = NULL;
    }

    if (box != NULL && seed_order(box, order, owner, front, workspace) == -1) {
        stage = TGD_STAGE_JOB;
        box_discard(box);
        box = NULL;
    }

    if (box == NULL) {
        box_failed(order->id, stage, errno);

    } else {
        box->id = order->id;
        box->state = TGD_BOX_STARTING;
    }

    (void) close(workspace);
}


/* the seed says what became of it */
static void
box_started(tgd_box_t *box)
{
    ssize_t           n;
    tgd_seed_reply_t  reply;

    do {
        n = recv(box->channel, &reply, sizeof(reply), 0);
    } while (n == -1 && errno == EINTR);

    if (n != (ssize_t) sizeof(reply)) {
        memset(&reply, 0, sizeof(reply));
        reply.stage = TGD_STAGE_JOB;
        reply.error = ECHILD;
    }

    if (reply.pid == 0) {
        /* told before the seed may go; its groups are removed when it is reaped */
        box_failed(box->id, (tgd_stage_e) reply.stage, reply.error);
        (void) close(box->channel);
        box->channel = -1;
        box->state = TGD_BOX_FAILED;
        return;
    }

    (void) close(box->channel);
    box->channel = -1;

    /* the seed's own end means nothing any more */
    box->pid = reply.pid;
    box->state = TGD_BOX_RUNNING;

    if (box->doomed) {
        (void) kill(box->pid, SIGKILL);
    }
}


void
tgd_boxes_kill(uint32_t id)
{
    tgd_box_t  *box;

    for (box = boxes.all; box < boxes.all + TGD_BOXES_MAX; box++) {
        if (box->id != id) {
            continue;
        }

        if (box->state == TGD_BOX_RUNNING) {
            (void) kill(box->pid, SIGKILL);

        } else if (box->state == TGD_BOX_STARTING) {
            box->doomed = true;
        }
    }
}


static void
box_ended(tgd_box_t *box)
{
    tgd_launch_t  message;

    if (box->state == TGD_BOX_STARTING) {
        /* its answer may lie in the channel still */
        box_started(box);
        if (box->state == TGD_BOX_RUNNING) {
            return;
        }
    }

    if (box->state == TGD_BOX_RUNNING) {
        memset(&message, 0, sizeof(message));
        message.op = TGD_LAUNCH_EXITED;
        message.id = box->id;
        boxes.conf->tell(&message);
    }

    box_clear(box);
}


/* reaps seeds, and pids 1 that have ended and with them all of their namespace */
void
tgd_boxes_reap(void)
{
    pid_t       pid;
    tgd_box_t  *box;

    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
        for (box = boxes.all; box < boxes.all + TGD_BOXES_MAX; box++) {
            if (box->state != TGD_BOX_FREE && box->pid == pid) {
                box_ended(box);
                break;
            }
        }

        if (box == boxes.all + TGD_BOXES_MAX) {
            boxes.conf->reaped(pid);
        }
    }
}


/* kills and reaps until there is no child: a seed that was killed after its clone
 * has left a pid 1 that nobody was told of */
static void
end_children(void)
{
    int     i;
    char    path[64];
    long    pid;
    FILE   *file;

    (void) snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int) getpid());

    for (i = 0; i < TGD_BOXES_END_TRIES; i++) {
        if (waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD) {
            break;
        }

        file = fopen(path, "re");
        while (file != NULL && fscanf(file, "%ld", &pid) == 1) {
            (void) kill((pid_t) pid, SIGKILL);
        }
        if (file != NULL) {
            (void) fclose(file);
        }
        (void) usleep(1000);
    }
}


void
tgd_boxes_end(void)
{
    tgd_box_t  *box;

    for (box = boxes.all; box < boxes.all + TGD_BOXES_MAX; box++) {
        if (box->channel != -1) {
            /* a seed that was about to start is killed as what it becomes */
            (void) close(box->channel);
            box->channel = -1;
        }
        if (box->state != TGD_BOX_FREE) {
            (void) kill(box->pid, SIGKILL);
        }
    }

    end_children();
}


int
tgd_boxes_polls(struct pollfd *polls)
{
    int         n;
    tgd_box_t  *box;

    n = 0;
    for (box = boxes.all; box < boxes.all + TGD_BOXES_MAX; box++) {
        if (box->state == TGD_BOX_STARTING) {
            boxes.starting[n] = box;
            polls[n].fd = box->channel;
            polls[n].events = POLLIN;
            n++;
        }
    }

    return n;
}


void
tgd_boxes_serve(const struct pollfd *polls, int n)
{
    int  i;

    for (i = 0; i < n; i++) {
        if (polls[i].revents != 0 && boxes.starting[i]->state == TGD_BOX_STARTING) {
            box_started(boxes.starting[i]);
        }
    }
}
