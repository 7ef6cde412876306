/*
 * The privileged process. It is forked before the front opens anything to clients,
 * and every sandbox is its direct child: when it dies they die (parent-death
 * signal), when the front dies it reads end of file and ends them itself.
 */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "boxes.h"
#include "launcher.h"
#include "workers.h"


#define TGD_CGROUP_RECORD    "cgroups"
#define TGD_OUTER_NAME       "toolgated: launcher"

typedef struct {
    tgd_launcher_t  *conf;
    tgd_cgroup_t     cgroup;
    tgd_filter_t     filter;
    tgd_filter_t     files_filter;
    char            *title;             /* memory of the command line */
    size_t           title_room;
    tgd_boxes_conf_t boxes;
    tgd_workers_conf_t  workers;
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


static void
host_end(void)
{
    tgd_boxes_end();

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
        tgd_boxes_create(&message, fd);
        break;

    case TGD_LAUNCH_FILES:
        message.workspace[TGD_WORKSPACE_HEX] = '\0';
        tgd_workers_start(&message, fd);
        break;

    case TGD_LAUNCH_KILL:
        tgd_boxes_kill(message.id);
        tgd_workers_kill(message.id);
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


/* waits for one round of events and serves them */
static void
host_round(int signals)
{
    int                      n;
    static struct pollfd     polls[TGD_BOXES_MAX + 2];
    struct signalfd_siginfo  info;

    polls[0].fd = signals;
    polls[0].events = POLLIN;
    polls[1].fd = host.conf->front;
    polls[1].events = POLLIN;

    n = tgd_boxes_polls(polls + 2);
    if (poll(polls, (nfds_t) n + 2, -1) == -1) {
        return;
    }

    tgd_boxes_serve(polls + 2, n);

    if (polls[0].revents != 0) {
        while (read(signals, &info, sizeof(info)) > 0) {
            /* one reap serves all of them */
        }
        tgd_boxes_reap();
    }

    if (polls[1].revents != 0) {
        host_serve();
    }
}


static void
host_boxes(tgd_launcher_t *launcher)
{
    host.boxes.cgroup = &host.cgroup;
    host.boxes.filter = &host.filter;
    host.boxes.slots = &launcher->slots;
    host.boxes.workspaces = launcher->workspaces;
    host.boxes.set_title = set_title;
    host.boxes.tell = host_tell;
    host.boxes.reaped = tgd_workers_reaped;
    tgd_boxes_init(&host.boxes);

    host.workers.filter = &host.files_filter;
    host.workers.slots = &launcher->slots;
    host.workers.workspaces = launcher->workspaces;
    host.workers.set_title = set_title;
    tgd_workers_init(&host.workers);
}


void
tgd_launcher_run(tgd_launcher_t *launcher)
{
    int           signals;
    tgd_launch_t  ready;

    host.conf = launcher;
    forget_start(launcher->argv);
    host_boxes(launcher);

    tgd_cgroup_init(&host.cgroup, launcher->cgroup, launcher->state_dir,
                    TGD_CGROUP_RECORD);

    memset(&ready, 0, sizeof(ready));
    ready.op = TGD_LAUNCH_READY;
    ready.limits = tgd_cgroup_kind(&host.cgroup);
    ready.cgroup_missing = host.cgroup.missing;
    ready.uid_separation = launcher->slots.count != 0;

    if (tgd_filter_build(&host.filter, TGD_FILTER_JOB) == -1
        || tgd_filter_build(&host.files_filter, TGD_FILTER_FILES) == -1)
    {
        ready.stage = TGD_STAGE_PRIVILEGES;
        ready.error = ENOSYS;

    } else if (tgd_slots_scan(&launcher->slots, launcher->workspaces) == -1) {
        ready.stage = TGD_STAGE_WORKSPACE;
        ready.error = errno;
    }

    signals = host_signals();
    if (signals == -1 || chdir("/") == -1) {
        _exit(1);
    }

    host_tell(&ready);

    for ( ;; ) {
        tgd_boxes_plant();
        host_round(signals);
    }
}
