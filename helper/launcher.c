/*
 * The privileged process. It is forked before the front opens anything to clients,
 * and every sandbox is its direct child: when it dies they die (parent-death
 * signal), when the front dies it reads end of file and ends them itself.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher.h"
#include "sandbox/cgroup.h"
#include "sandbox/filter.h"
#include "sandbox/jail.h"
#include "sandbox/supervisor.h"


#define TGD_LAUNCHER_BOXES   1024      /* sandboxes at once */
#define TGD_CGROUP_RECORD    "cgroups"
#define TGD_OUTER_NAME       "toolgated: launcher"
#define TGD_INNER_NAME       "sandbox"

typedef struct {
    pid_t     pid;                      /* 0: free */
    uint32_t  id;
} tgd_box_t;

typedef struct {
    tgd_launcher_t  *conf;
    tgd_cgroup_t     cgroup;
    tgd_filter_t     filter;
    char            *title;             /* memory of the command line */
    size_t           title_room;
    tgd_box_t        boxes[TGD_LAUNCHER_BOXES];
} tgd_host_t;

static tgd_host_t  host;


static void
host_tell(const tgd_launch_t *message)
{
    ssize_t  n;

    do {
        n = send(host.conf->front, message, sizeof(*message), MSG_NOSIGNAL);
    } while (n == -1 && errno == EINTR);
}


static void
host_failed(uint32_t id, tgd_stage_e stage, int error)
{
    tgd_launch_t  message;

    memset(&message, 0, sizeof(message));
    message.op = TGD_LAUNCH_FAILED;
    message.id = id;
    message.stage = stage;
    message.error = error;

    host_tell(&message);
}


static void
set_title(const char *title)
{
    memset(host.title, 0, host.title_room);
    (void) snprintf(host.title, host.title_room, "%s", title);
    (void) prctl(PR_SET_NAME, title, 0, 0, 0);
}


/* what was on the command line and in the environment can be read by jobs as
 * /proc/1/cmdline of their supervisor, which is a copy of this process */
static void
forget_start(char **argv)
{
    char         *first, *end, **p;
    extern char **environ;

    first = argv[0];
    end = first;

    for (p = argv; *p != NULL; p++) {
        if (*p == end) {
            end = *p + strlen(*p) + 1;
        }
    }

    for (p = environ; p != NULL && *p != NULL; p++) {
        if (*p == end) {
            end = *p + strlen(*p) + 1;
        }
    }

    host.title = first;
    host.title_room = (size_t) (end - first);
    environ = NULL;
    set_title(TGD_OUTER_NAME);
}


/* keeps two descriptors and closes all others */
static int
close_others(int *socket, tgd_cgroup_events_t *events)
{
    int  i, *keep[] = { socket, &events->memory_events, &events->pids_events };

    /* the wanted ones to 3, 4 and 5, by a detour above what may lie there */
    for (i = 0; i < 3; i++) {
        if (*keep[i] != -1) {
            *keep[i] = fcntl(*keep[i], F_DUPFD_CLOEXEC, 64);
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


/* the new process: waits until it is mapped and grouped, then becomes pid 1 */
static void
box_main(const tgd_launch_t *order, int front, int go, tgd_cgroup_events_t events)
{
    int               null, error;
    char              byte;
    tgd_stage_e       stage;
    tgd_supervisor_t  supervisor;

    /* for the time until the ids change, which clears it */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == -1 || read(go, &byte, 1) != 1) {
        _exit(1);
    }

    set_title(TGD_INNER_NAME);

    null = open("/dev/null", O_RDWR);
    if (null == -1 || dup2(null, 0) == -1 || dup2(null, 1) == -1 || dup2(null, 2) == -1
        || close_others(&front, &events) == -1)
    {
        tgd_supervisor_failed(front, TGD_STAGE_JOB, errno);
    }

    stage = tgd_jail_enter();
    if (stage != TGD_STAGE_NONE) {
        error = errno;
        tgd_supervisor_failed(front, stage, error);
    }

    supervisor.socket = front;
    supervisor.filter = &host.filter;
    supervisor.events = events;
    supervisor.memory_group = !(host.cgroup.missing & TGD_CGROUP_MEMORY);
    supervisor.pids_group = !(host.cgroup.missing & TGD_CGROUP_PIDS);
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


/* one id inside, one outside: never the launcher's own when there are slots */
static int
map_ids(pid_t pid, uid_t uid, gid_t gid, bool privileged)
{
    char  text[64];

    if (!privileged && write_map(pid, "setgroups", "deny") == -1) {
        return -1;
    }

    (void) snprintf(text, sizeof(text), "%d %u 1\n", TGD_JOB_UID, (unsigned) gid);
    if (write_map(pid, "gid_map", text) == -1) {
        return -1;
    }

    (void) snprintf(text, sizeof(text), "%d %u 1\n", TGD_JOB_UID, (unsigned) uid);
    return write_map(pid, "uid_map", text);
}


/* clone, ids, groups; the child runs when all is in place */
static tgd_stage_e
box_spawn(const tgd_launch_t *order, int front, int workspace, uid_t owner,
    const tgd_cgroup_events_t *events, pid_t *pid)
{
    int          go[2], error;
    bool         separate;
    tgd_stage_e  stage;

    if (pipe2(go, O_CLOEXEC) == -1) {
        return TGD_STAGE_JOB;
    }

    /* the child's current directory moves with it into its copy of the mounts */
    if (fchdir(workspace) == -1) {
        (void) close(go[0]);
        (void) close(go[1]);
        return TGD_STAGE_WORKSPACE;
    }

    *pid = (pid_t) syscall(SYS_clone, TGD_JAIL_CLONE|SIGCHLD, 0, 0, 0, 0);
    if (*pid == 0) {
        (void) close(go[1]);
        box_main(order, front, go[0], *events);
    }

    error = errno;
    stage = *pid == -1 ? TGD_STAGE_NAMESPACES : TGD_STAGE_NONE;
    if (chdir("/") == -1) {
        _exit(1);
    }

    separate = host.conf->slots.count != 0;

    if (stage == TGD_STAGE_NONE && tgd_cgroup_join(&host.cgroup, order->id, *pid) == -1) {
        error = errno;
        stage = TGD_STAGE_CGROUP;
    }

    if (stage == TGD_STAGE_NONE
        && map_ids(*pid, separate ? owner : geteuid(), separate ? owner : getegid(),
                   separate) == -1)
    {
        error = errno;
        stage = TGD_STAGE_IDENTITY;
    }

    if (stage == TGD_STAGE_NONE && write(go[1], "g", 1) != 1) {
        error = errno;
        stage = TGD_STAGE_JOB;
    }

    (void) close(go[0]);
    (void) close(go[1]);

    if (stage != TGD_STAGE_NONE && *pid > 0) {
        /* it read end of file and leaves by itself; be sure */
        (void) kill(*pid, SIGKILL);
        (void) waitpid(*pid, NULL, 0);
    }

    errno = error;
    return stage;
}


static void
box_create(const tgd_launch_t *order, int front)
{
    int                  workspace;
    uid_t                owner;
    pid_t                pid;
    tgd_box_t           *box;
    tgd_stage_e          stage;
    tgd_launch_t         reply;
    tgd_cgroup_events_t  events = { -1, -1 };

    for (box = host.boxes; box < host.boxes + TGD_LAUNCHER_BOXES; box++) {
        if (box->pid == 0) {
            break;
        }
    }

    if (box == host.boxes + TGD_LAUNCHER_BOXES || front == -1
        || !tgd_workspace_name_valid(order->workspace))
    {
        host_failed(order->id, TGD_STAGE_JOB, front == -1 ? EBADF : EAGAIN);
        return;
    }

    workspace = tgd_workspace_open(&host.conf->slots, host.conf->workspaces,
                                   order->workspace, &owner);
    if (workspace == -1) {
        host_failed(order->id, TGD_STAGE_WORKSPACE, errno);
        return;
    }

    stage = TGD_STAGE_CGROUP;
    if (tgd_cgroup_create(&host.cgroup, order->id, order->memory_mib, order->pids,
                          &events) == 0)
    {
        stage = box_spawn(order, front, workspace, owner, &events, &pid);
    }

    if (stage != TGD_STAGE_NONE) {
        host_failed(order->id, stage, errno);
        tgd_cgroup_remove(&host.cgroup, order->id);

    } else {
        box->pid = pid;
        box->id = order->id;

        memset(&reply, 0, sizeof(reply));
        reply.op = TGD_LAUNCH_CREATED;
        reply.id = order->id;
        reply.pid = pid;
        host_tell(&reply);
    }

    (void) close(workspace);
    if (events.memory_events != -1) {
        (void) close(events.memory_events);
    }
    if (events.pids_events != -1) {
        (void) close(events.pids_events);
    }
}


static void
boxes_kill(uint32_t id, bool all)
{
    tgd_box_t  *box;

    for (box = host.boxes; box < host.boxes + TGD_LAUNCHER_BOXES; box++) {
        if (box->pid != 0 && (all || box->id == id)) {
            (void) kill(box->pid, SIGKILL);
        }
    }
}


/* a pid 1 has ended, and with it all of its namespace */
static void
boxes_reap(void)
{
    pid_t         pid;
    tgd_box_t    *box;
    tgd_launch_t  message;

    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
        for (box = host.boxes; box < host.boxes + TGD_LAUNCHER_BOXES; box++) {
            if (box->pid != pid) {
                continue;
            }

            tgd_cgroup_remove(&host.cgroup, box->id);

            memset(&message, 0, sizeof(message));
            message.op = TGD_LAUNCH_EXITED;
            message.id = box->id;
            host_tell(&message);

            box->pid = 0;
            break;
        }
    }
}


static void
host_end(void)
{
    boxes_kill(0, true);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR) {
        /* each of them takes its namespace along */
    }

    for (tgd_box_t *box = host.boxes; box < host.boxes + TGD_LAUNCHER_BOXES; box++) {
        if (box->pid != 0) {
            tgd_cgroup_remove(&host.cgroup, box->id);
        }
    }

    tgd_cgroup_done(&host.cgroup, host.conf->cgroup, host.conf->state_dir,
                    TGD_CGROUP_RECORD);
    (void) unlink(host.conf->socket_path);
    _exit(0);
}


/* one message of the front with the descriptor that may come along */
static bool
host_receive(tgd_launch_t *message, int *fd)
{
    ssize_t          n;
    struct iovec     iov = { message, sizeof(*message) };
    struct msghdr    head;
    struct cmsghdr  *control;

    union {
        struct cmsghdr  align;
        char            bytes[CMSG_SPACE(sizeof(int))];
    } space;

    memset(&head, 0, sizeof(head));
    head.msg_iov = &iov;
    head.msg_iovlen = 1;
    head.msg_control = &space;
    head.msg_controllen = sizeof(space);
    *fd = -1;

    do {
        n = recvmsg(host.conf->front, &head, MSG_CMSG_CLOEXEC);
    } while (n == -1 && errno == EINTR);

    control = n <= 0 ? NULL : CMSG_FIRSTHDR(&head);
    if (control != NULL && control->cmsg_type == SCM_RIGHTS
        && control->cmsg_len == CMSG_LEN(sizeof(int)))
    {
        memcpy(fd, CMSG_DATA(control), sizeof(int));
    }

    return n == (ssize_t) sizeof(*message);
}


static void
host_serve(void)
{
    int           fd;
    tgd_launch_t  message;

    if (!host_receive(&message, &fd)) {
        host_end();
    }

    switch (message.op) {

    case TGD_LAUNCH_CREATE:
        message.workspace[TGD_WORKSPACE_HEX] = '\0';
        box_create(&message, fd);
        break;

    case TGD_LAUNCH_KILL:
        boxes_kill(message.id, false);
        break;

    default:
        break;
    }

    if (fd != -1) {
        (void) close(fd);
    }
}


static int
host_signals(void)
{
    sigset_t  set;

    /* a terminal's interrupt goes to the whole group, but the front decides when
     * to end; it will close its socket */
    (void) sigfillset(&set);
    (void) sigprocmask(SIG_SETMASK, &set, NULL);

    (void) sigemptyset(&set);
    (void) sigaddset(&set, SIGCHLD);

    return signalfd(-1, &set, SFD_CLOEXEC|SFD_NONBLOCK);
}


void
tgd_launcher_run(tgd_launcher_t *launcher)
{
    tgd_launch_t             ready;
    struct pollfd            polls[2];
    struct signalfd_siginfo  info;

    host.conf = launcher;
    forget_start(launcher->argv);

    tgd_cgroup_init(&host.cgroup, launcher->cgroup, launcher->state_dir,
                    TGD_CGROUP_RECORD);

    memset(&ready, 0, sizeof(ready));
    ready.op = TGD_LAUNCH_READY;
    ready.limits = tgd_cgroup_kind(&host.cgroup);
    ready.cgroup_missing = host.cgroup.missing;
    ready.uid_separation = launcher->slots.count != 0;

    if (tgd_filter_build(&host.filter) == -1) {
        ready.stage = TGD_STAGE_PRIVILEGES;
        ready.error = ENOSYS;

    } else if (tgd_slots_scan(&launcher->slots, launcher->workspaces) == -1) {
        ready.stage = TGD_STAGE_WORKSPACE;
        ready.error = errno;
    }

    host_tell(&ready);

    polls[0].fd = host_signals();
    polls[0].events = POLLIN;
    polls[1].fd = launcher->front;
    polls[1].events = POLLIN;

    if (polls[0].fd == -1 || chdir("/") == -1) {
        _exit(1);
    }

    for ( ;; ) {
        if (poll(polls, 2, -1) == -1) {
            continue;
        }

        if (polls[0].revents != 0) {
            while (read(polls[0].fd, &info, sizeof(info)) > 0) {
                /* one reap serves all of them */
            }
            boxes_reap();
        }

        if (polls[1].revents != 0) {
            host_serve();
        }
    }
}
