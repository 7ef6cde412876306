/*
 * Pid 1 of a sandbox. It trusts the front, and nothing that a job does: jobs have
 * its uid, but it can not be signalled (pid 1), traced or read (not dumpable).
 *
 * ready (a process waits for its order and reads the socket) -> running (it took one;
 * the socket is read here) -> leftovers (main process ended, others live) -> over (the
 * front has its answer to give before anything else is done here) -> ready. Over and
 * ready mean that nothing of a job is left. The write ends of the
 * job's output are held here until it is over, so that its end is the first thing that
 * the front hears of, and not an end of file for each of them before.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox/job.h"
#include "sandbox/supervisor.h"


#define TGD_PIDS_SPARE  8

typedef enum {
    TGD_SUPERVISOR_READY = 0,
    TGD_SUPERVISOR_RUNNING,
    TGD_SUPERVISOR_LEFTOVERS,
    TGD_SUPERVISOR_OVER
} tgd_supervisor_state_e;

typedef struct {
    const tgd_supervisor_t  *conf;
    tgd_supervisor_state_e   state;
    tgd_job_t                job;
    pid_t                    main;       /* its process; -1: ended */
    int                      status;     /* of main, once it ended */
    uint64_t                 oom;        /* counters before the job */
    uint64_t                 pids;
} tgd_serving_t;


static void
report_send(int fd, const tgd_report_t *report)
{
    ssize_t  n;

    do {
        n = send(fd, report, sizeof(*report), MSG_NOSIGNAL);
    } while (n == -1 && errno == EINTR);

    if (n == -1) {
        /* nobody is left who wants this sandbox */
        _exit(0);
    }
}


void
tgd_supervisor_failed(int fd, tgd_stage_e stage, int error)
{
    tgd_report_t  report;

    memset(&report, 0, sizeof(report));
    report.op = TGD_REPORT_FAILED;
    report.stage = stage;
    report.error = error;

    report_send(fd, &report);
    _exit(1);
}


static void
serving_report(const tgd_serving_t *serving, tgd_report_op_e op, bool alone)
{
    uint64_t                    now;
    tgd_report_t                report;
    const tgd_cgroup_events_t  *events;

    events = &serving->conf->events;

    memset(&report, 0, sizeof(report));
    report.op = op;
    report.status = serving->status;
    report.alone = alone;

    now = tgd_cgroup_counter(events->memory_events, "oom_kill");
    report.oom = now > serving->oom ? (uint32_t) (now - serving->oom) : 0;

    now = tgd_cgroup_counter(events->pids_events, "max");
    report.pids = now > serving->pids ? (uint32_t) (now - serving->pids) : 0;

    report_send(serving->conf->socket, &report);
}


static void
limit_set(int resource, rlim_t value)
{
    struct rlimit  limit, old;

    /* never over what we were given: raising a hard limit is refused */
    if (getrlimit((__rlimit_resource_t) resource, &old) == 0 && old.rlim_max < value) {
        value = old.rlim_max;
    }

    limit.rlim_cur = value;
    limit.rlim_max = value;

    if (setrlimit((__rlimit_resource_t) resource, &limit) == -1) {
        _exit(126);
    }
}


/* limits and filter of jobs hold for this process too: they are inherited, which
 * costs a job nothing, and a job that took it over would gain nothing */
static int
supervisor_limits(const tgd_supervisor_t *conf)
{
    const rlim_t  mib = 1024 * 1024;

    limit_set(RLIMIT_CORE, 0);
    limit_set(RLIMIT_NOFILE, TGD_NOFILE);
    limit_set(RLIMIT_FSIZE, TGD_FILE_MIB * mib);
    limit_set(RLIMIT_MEMLOCK, 64 * 1024);
    limit_set(RLIMIT_MSGQUEUE, 0);
#ifndef __SANITIZE_ADDRESS__
    /* the sanitizer's own map is bigger than any ceiling */
    limit_set(RLIMIT_AS, (rlim_t) TGD_ADDRESS_GIB * 1024 * mib);
#endif

    /* counted for this user namespace only; one more for the supervisor. Where a
     * control group counts it shall be the one that refuses, since it tells */
    limit_set(RLIMIT_NPROC, conf->pids + 1 + (conf->pids_group ? TGD_PIDS_SPARE : 0));

    if (!conf->memory_group) {
        limit_set(RLIMIT_DATA, conf->memory_mib * mib);
    }

    return tgd_filter_apply(conf->filter);
}


static void
serving_refuse(const tgd_serving_t *serving, tgd_stage_e stage, int error)
{
    tgd_report_t  report;

    memset(&report, 0, sizeof(report));
    report.op = TGD_REPORT_REFUSED;
    report.stage = stage;
    report.error = error;

    report_send(serving->conf->socket, &report);
}


/* tells the front that an order may come; with it go the read ends of the output */
static void
ready_send(const tgd_serving_t *serving, const int outputs[2])
{
    ssize_t          n;
    tgd_report_t     report;
    struct iovec     iov = { &report, sizeof(report) };
    struct msghdr    head;
    struct cmsghdr  *control;

    union {
        struct cmsghdr  align;
        char            bytes[CMSG_SPACE(2 * sizeof(int))];
    } space;

    memset(&report, 0, sizeof(report));
    memset(&head, 0, sizeof(head));
    memset(&space, 0, sizeof(space));
    report.op = TGD_REPORT_READY;

    head.msg_iov = &iov;
    head.msg_iovlen = 1;
    head.msg_control = &space;
    head.msg_controllen = sizeof(space);

    control = CMSG_FIRSTHDR(&head);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(2 * sizeof(int));
    memcpy(CMSG_DATA(control), outputs, 2 * sizeof(int));

    do {
        n = sendmsg(serving->conf->socket, &head, MSG_NOSIGNAL);
    } while (n == -1 && errno == EINTR);

    if (n == -1) {
        _exit(0);
    }
}


static void
serving_close(tgd_serving_t *serving)
{
    int  i;

    for (i = 0; i < 2; i++) {
        if (serving->job.out[i] != -1) {
            (void) close(serving->job.out[i]);
            serving->job.out[i] = -1;
        }
    }
}


/* nothing of the last job is left: the pipes and the process of the next one */
static void
serving_ready(tgd_serving_t *serving)
{
    int                         i, ends[2], outputs[2];
    const tgd_cgroup_events_t  *events;

    serving_close(serving);

    /* nothing is here that could count between now and the job */
    events = &serving->conf->events;
    serving->oom = tgd_cgroup_counter(events->memory_events, "oom_kill");
    serving->pids = tgd_cgroup_counter(events->pids_events, "max");

    for (i = 0; i < 2; i++) {
        if (pipe2(ends, O_CLOEXEC) == -1
            || fcntl(ends[0], F_SETFL, O_NONBLOCK) == -1)
        {
            _exit(1);
        }
        outputs[i] = ends[0];
        serving->job.out[i] = ends[1];
    }

    /* an order that comes at once waits in the socket */
    ready_send(serving, outputs);
    (void) close(outputs[0]);
    (void) close(outputs[1]);

    serving->state = TGD_SUPERVISOR_READY;
    serving->main = tgd_job_prepare(&serving->job);

    if (serving->main == -1) {
        /* such a sandbox is of no use; the front makes another */
        _exit(1);
    }
}


/* reaps what has ended; true when no process is left */
static bool
serving_reap(tgd_serving_t *serving, int options)
{
    int    status;
    pid_t  pid;

    for ( ;; ) {
        pid = waitpid(-1, &status, options);

        if (pid == 0) {
            return false;
        }

        if (pid == -1) {
            if (errno == EINTR) {
                continue;
            }
            return true;
        }

        if (pid == serving->main) {
            serving->main = -1;
            serving->status = status;
        }
    }
}


/* the process that waited has ended: not as a job, or as one already */
static void
serving_waited(tgd_serving_t *serving)
{
    switch ((tgd_job_word_e) serving->job.word) {

    case TGD_JOB_STARTED:
        serving->state = TGD_SUPERVISOR_RUNNING;
        break;

    case TGD_JOB_REFUSED:
        serving_refuse(serving, serving->job.stage, serving->job.error);
        serving->state = TGD_SUPERVISOR_OVER;
        break;

    case TGD_JOB_DESERTED:
        /* with pid 1 goes everything here */
        _exit(0);

    case TGD_JOB_WAITING:
        /* only the kernel can have killed it, out of memory */
        _exit(1);
    }
}


/* SIGCHLD came */
static void
serving_ended(tgd_serving_t *serving)
{
    bool  empty;

    empty = serving_reap(serving, WNOHANG);

    if (serving->main != -1) {
        return;
    }

    if (serving->state == TGD_SUPERVISOR_READY) {
        serving_waited(serving);
    }

    if (serving->state == TGD_SUPERVISOR_RUNNING) {
        if (empty) {
            serving_report(serving, TGD_REPORT_EXIT, true);
            serving->state = TGD_SUPERVISOR_OVER;

        } else {
            /* who is left decides now when the output ends */
            serving_close(serving);
            serving_report(serving, TGD_REPORT_EXIT, false);
            serving->state = TGD_SUPERVISOR_LEFTOVERS;
        }
    }
}


static void
serving_kill(tgd_serving_t *serving)
{
    /* all that this namespace holds dies in one go: forks that race with it are
     * refused by the kernel. Then nothing may be left, not even a zombie */
    (void) kill(-1, SIGKILL);
    (void) serving_reap(serving, 0);

    serving_report(serving, serving->state == TGD_SUPERVISOR_RUNNING
                            ? TGD_REPORT_EXIT : TGD_REPORT_EMPTY, true);
    serving->state = TGD_SUPERVISOR_OVER;
}


/* an order while no process waits for one */
static void
serving_order(tgd_serving_t *serving)
{
    ssize_t      n;
    tgd_order_t  order;

    /* the kernel drops what is more than that, descriptors too */
    do {
        n = recv(serving->conf->socket, &order, sizeof(order), 0);
    } while (n == -1 && errno == EINTR);

    if (n != (ssize_t) sizeof(order)) {
        /* the front is gone: with pid 1 goes everything here */
        _exit(0);
    }

    switch (order.op) {

    case TGD_ORDER_TERM:
        if (serving->state == TGD_SUPERVISOR_RUNNING && serving->main > 0) {
            (void) kill(-serving->main, SIGTERM);
        }
        break;

    case TGD_ORDER_KILL:
        /* it may have crossed the report of the end */
        if (serving->state != TGD_SUPERVISOR_OVER) {
            serving_kill(serving);
        }
        break;

    case TGD_ORDER_NEXT:
        if (serving->state == TGD_SUPERVISOR_OVER) {
            serving_ready(serving);
        }
        break;

    default:
        /* one job at a time */
        serving_refuse(serving, TGD_STAGE_JOB, EINVAL);
        break;
    }
}


/* the sandbox's own /dev/null, in place of the host's */
static int
supervisor_files(void)
{
    int  null;

    null = open("/dev/null", O_RDWR|O_CLOEXEC);
    if (null == -1 || dup2(null, 0) == -1 || dup2(null, 1) == -1 || dup2(null, 2) == -1) {
        return -1;
    }

    return close(null);
}


/* signals and the event of a job that starts */
static int
serving_init(tgd_serving_t *serving, const tgd_supervisor_t *conf)
{
    sigset_t  set;

    memset(serving, 0, sizeof(*serving));
    serving->conf = conf;
    serving->job.out[0] = -1;
    serving->job.out[1] = -1;
    serving->job.socket = conf->socket;
    serving->job.started = eventfd(0, EFD_CLOEXEC|EFD_NONBLOCK);

    (void) sigfillset(&set);
    (void) sigprocmask(SIG_SETMASK, &set, NULL);
    (void) sigemptyset(&set);
    (void) sigaddset(&set, SIGCHLD);

    return serving->job.started == -1 ? -1
           : signalfd(-1, &set, SFD_CLOEXEC|SFD_NONBLOCK);
}


void
tgd_supervisor_run(const tgd_supervisor_t *supervisor)
{
    int                      child;
    struct pollfd            polls[2];
    struct signalfd_siginfo  info;
    static tgd_serving_t     serving;

    child = serving_init(&serving, supervisor);
    if (child == -1) {
        tgd_supervisor_failed(supervisor->socket, TGD_STAGE_JOB, errno);
    }

    if (supervisor_files() == -1 || supervisor_limits(supervisor) == -1) {
        tgd_supervisor_failed(supervisor->socket, TGD_STAGE_PRIVILEGES, errno);
    }

    serving_ready(&serving);

    polls[0].fd = child;
    polls[0].events = POLLIN;
    polls[1].events = POLLIN;

    for ( ;; ) {
        polls[1].fd = serving.state == TGD_SUPERVISOR_READY ? serving.job.started
                                                            : supervisor->socket;
        if (poll(polls, 2, -1) == -1) {
            continue;
        }

        if (polls[1].revents != 0) {
            if (serving.state == TGD_SUPERVISOR_READY) {
                serving.state = TGD_SUPERVISOR_RUNNING;
            } else {
                serving_order(&serving);
            }
        }

        if (polls[0].revents != 0 && read(child, &info, sizeof(info)) > 0) {
            /* one reap serves all that have ended */
            serving_ended(&serving);
        }
    }
}
