/*
 * The seed of one sandbox; see seed.h. It joins the control groups, waits for its
 * order, clones pid 1 into new namespaces as a sibling of itself, maps the ids,
 * lets pid 1 go and ends.
 */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox/jail.h"
#include "sandbox/seed.h"
#include "sandbox/supervisor.h"


#define TGD_SEED_TITLE   "toolgated: seed"
#define TGD_INNER_TITLE  "sandbox"
#define TGD_DETOUR_FD    64


/* keeps three descriptors and closes all others */
static int
close_others(int *socket, tgd_cgroup_events_t *events)
{
    int  i, *keep[] = { socket, &events->memory_events, &events->pids_events };

    /* the wanted ones to 3, 4 and 5, by a detour above what may lie there */
    for (i = 0; i < 3; i++) {
        if (*keep[i] != -1) {
            *keep[i] = fcntl(*keep[i], F_DUPFD_CLOEXEC, TGD_DETOUR_FD);
            if (*keep[i] == -1) {
                return -1;
            }
        }
    }

    for (i = 0; i < 3; i++) {
        if (*keep[i] != -1) {
            if (dup3(*keep[i], 3 + i, O_CLOEXEC) == -1) {
                return -1;
            }
            *keep[i] = 3 + i;
        } else {
            (void) close(3 + i);
        }
    }

    return (int) syscall(SYS_close_range, 6, ~0U, 0);
}


/* the new process: waits until its ids are mapped, then becomes the supervisor */
static void
inner_main(const tgd_seed_t *seed, const tgd_seed_order_t *order, int front, int go)
{
    int                  error;
    char                 byte;
    tgd_stage_e          stage;
    tgd_supervisor_t     supervisor;
    tgd_cgroup_events_t  events;

    /* for the time until the ids change, which clears it */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == -1 || read(go, &byte, 1) != 1) {
        _exit(1);
    }

    seed->set_title(TGD_INNER_TITLE);
    events = seed->events;

    if (close_others(&front, &events) == -1) {
        tgd_supervisor_failed(front, TGD_STAGE_JOB, errno);
    }

    stage = tgd_jail_enter();
    if (stage != TGD_STAGE_NONE) {
        error = errno;
        tgd_supervisor_failed(front, stage, error);
    }

    supervisor.socket = front;
    supervisor.filter = seed->filter;
    supervisor.events = events;
    supervisor.memory_group = !(seed->cgroup->missing & TGD_CGROUP_MEMORY);
    supervisor.pids_group = !(seed->cgroup->missing & TGD_CGROUP_PIDS);
    supervisor.memory_mib = order->memory_mib;
    supervisor.pids = order->pids;

    tgd_supervisor_run(&supervisor);
}


static int
write_map(pid_t pid, const char *file, const char *text)
{
    int      fd, error;
    char     path[64];
    ssize_t  n;

    (void) snprintf(path, sizeof(path), "/proc/%d/%s", (int) pid, file);

    fd = open(path, O_WRONLY|O_CLOEXEC);
    if (fd == -1) {
        return -1;
    }

    n = write(fd, text, strlen(text));
    error = errno;
    (void) close(fd);
    errno = error;

    return n == (ssize_t) strlen(text) ? 0 : -1;
}


/* one id inside, one outside: never our own where accounts have ids */
static int
map_ids(const tgd_seed_t *seed, const tgd_seed_order_t *order, pid_t pid)
{
    char   text[64];
    uid_t  uid;
    gid_t  gid;

    uid = seed->separate ? order->owner : geteuid();
    gid = seed->separate ? order->owner : getegid();

    if (!seed->separate && write_map(pid, "setgroups", "deny") == -1) {
        return -1;
    }

    (void) snprintf(text, sizeof(text), "%d %u 1\n", TGD_JOB_UID, (unsigned) gid);
    if (write_map(pid, "gid_map", text) == -1) {
        return -1;
    }

    (void) snprintf(text, sizeof(text), "%d %u 1\n", TGD_JOB_UID, (unsigned) uid);
    return write_map(pid, "uid_map", text);
}


static void
seed_reply(const tgd_seed_t *seed, pid_t pid, tgd_stage_e stage, int error)
{
    ssize_t           n;
    tgd_seed_reply_t  reply = { pid, stage, error };

    do {
        n = send(seed->channel, &reply, sizeof(reply), MSG_NOSIGNAL);
    } while (n == -1 && errno == EINTR);

    if (n == -1) {
        _exit(1);
    }
}


/* Says what went wrong and stays until the launcher has passed it on: with this
 * process the supervisor's socket closes, which would tell the front less. */
static void
seed_failed(const tgd_seed_t *seed, tgd_stage_e stage, int error)
{
    char  byte;

    seed_reply(seed, 0, stage, error);
    (void) (recv(seed->channel, &byte, 1, 0) == 0);
}


/* clone, ids, go: the launcher knows the pid before pid 1 runs */
static void
seed_sow(const tgd_seed_t *seed, const tgd_seed_order_t *order, int front, int workspace)
{
    int    go[2];
    pid_t  pid;

    /* the current directory moves with the new process into its copy of the mounts */
    if (fchdir(workspace) == -1) {
        seed_failed(seed, TGD_STAGE_WORKSPACE, errno);
        return;
    }

    if (pipe2(go, O_CLOEXEC) == -1) {
        seed_failed(seed, TGD_STAGE_JOB, errno);
        return;
    }

    /* a sibling: the launcher shall be its parent, not this process, which ends */
    pid = (pid_t) syscall(SYS_clone, TGD_JAIL_CLONE|CLONE_PARENT|SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) {
        (void) close(go[1]);
        inner_main(seed, order, front, go[0]);
    }

    if (pid == -1) {
        seed_failed(seed, TGD_STAGE_NAMESPACES, errno);

    } else if (map_ids(seed, order, pid) == -1) {
        /* it reads end of file and leaves */
        seed_failed(seed, TGD_STAGE_IDENTITY, errno);

    } else {
        seed_reply(seed, pid, TGD_STAGE_NONE, 0);
        (void) (write(go[1], "g", 1) == 1);
    }
}


/* receives the order with its two descriptors; false when the launcher is gone */
static bool
seed_receive(const tgd_seed_t *seed, tgd_seed_order_t *order, int fds[2])
{
    ssize_t          n;
    struct iovec     iov = { order, sizeof(*order) };
    struct msghdr    head;
    struct cmsghdr  *control;

    union {
        struct cmsghdr  align;
        char            bytes[CMSG_SPACE(2 * sizeof(int))];
    } space;

    memset(&head, 0, sizeof(head));
    head.msg_iov = &iov;
    head.msg_iovlen = 1;
    head.msg_control = &space;
    head.msg_controllen = sizeof(space);

    do {
        n = recvmsg(seed->channel, &head, MSG_CMSG_CLOEXEC);
    } while (n == -1 && errno == EINTR);

    control = n <= 0 ? NULL : CMSG_FIRSTHDR(&head);
    if (n != (ssize_t) sizeof(*order) || control == NULL
        || control->cmsg_type != SCM_RIGHTS
        || control->cmsg_len != CMSG_LEN(2 * sizeof(int)))
    {
        return false;
    }

    memcpy(fds, CMSG_DATA(control), 2 * sizeof(int));
    return true;
}


void
tgd_seed_run(const tgd_seed_t *seed)
{
    int               null, fds[2], error;
    tgd_seed_order_t  order;

    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == -1) {
        _exit(1);
    }

    seed->set_title(TGD_SEED_TITLE);

    null = open("/dev/null", O_RDWR|O_CLOEXEC);
    if (null == -1 || dup2(null, 0) == -1 || dup2(null, 1) == -1 || dup2(null, 2) == -1) {
        _exit(1);
    }

    error = tgd_cgroup_join(seed->cgroup, seed->group, getpid()) == -1 ? errno : 0;

    if (!seed_receive(seed, &order, fds)) {
        _exit(0);
    }

    if (error != 0) {
        seed_failed(seed, TGD_STAGE_CGROUP, error);
        _exit(1);
    }

    seed_sow(seed, &order, fds[0], fds[1]);
    _exit(0);
}
