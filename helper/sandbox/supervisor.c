/*
 * Pid 1 of a sandbox. It trusts the front, and nothing that a job does: jobs have
 * its uid, but it can not be signalled (pid 1), traced or read (not dumpable).
 *
 * Job: idle -> running (RUN) -> leftovers (main process ended, others live) -> idle.
 * Whatever happens, idle means that no process but this one is left.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox/probe.h"
#include "sandbox/supervisor.h"


#define TGD_SHELL  "/bin/bash"
#define TGD_SHELL_PLAIN  "/bin/sh"
#define TGD_PIDS_SPARE   8

typedef enum {
    TGD_JOB_IDLE = 0,
    TGD_JOB_RUNNING,
    TGD_JOB_LEFTOVERS
} tgd_job_state_e;

typedef struct {
    const tgd_supervisor_t  *conf;
    tgd_job_state_e          state;
    pid_t                    main;
    int                      status;     /* of main, once it ended */
    uint64_t                 oom;        /* counters when the job began */
    uint64_t                 pids;
} tgd_job_t;

/* in bss: costs memory only where an order touched it */
static char  order_bytes[TGD_ORDER_MAX];


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
job_report(tgd_job_t *job, tgd_report_op_e op, bool alone)
{
    uint64_t      now;
    tgd_report_t  report;

    memset(&report, 0, sizeof(report));
    report.op = op;
    report.status = job->status;
    report.alone = alone;

    now = tgd_cgroup_counter(job->conf->events.memory_events, "oom_kill");
    report.oom = now > job->oom ? (uint32_t) (now - job->oom) : 0;

    now = tgd_cgroup_counter(job->conf->events.pids_events, "max");
    report.pids = now > job->pids ? (uint32_t) (now - job->pids) : 0;

    report_send(job->conf->socket, &report);
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


/* the child between vfork and exec, so it may change nothing in memory; what it can
 * not set up it does not run without. Its stdin is /dev/null as ours is */
static void
job_child(const tgd_order_t *order, char *command, char **env, const int fds[2])
{
    char     *bash[] = { "bash", "-c", command, NULL };
    char     *plain[] = { "sh", "-c", command, NULL };
    sigset_t  none;

    (void) setsid();

    if (dup2(fds[0], STDOUT_FILENO) == -1 || dup2(fds[1], STDERR_FILENO) == -1
        || syscall(SYS_close_range, 3, ~0U, 0) == -1)
    {
        _exit(126);
    }

    (void) sigemptyset(&none);
    (void) sigprocmask(SIG_SETMASK, &none, NULL);

    if (order->op == TGD_ORDER_PROBE) {
        tgd_probe_run(command);
    }

    (void) execve(TGD_SHELL, bash, env);
    (void) execve(TGD_SHELL_PLAIN, plain, env);
    _exit(127);
}


static void
job_refuse(tgd_job_t *job, tgd_stage_e stage, int error)
{
    tgd_report_t  report;

    memset(&report, 0, sizeof(report));
    report.op = TGD_REPORT_REFUSED;
    report.stage = stage;
    report.error = error;

    report_send(job->conf->socket, &report);
}


/* the variables of an order as an array for exec; false when they are not whole */
static bool
order_env(const tgd_order_t *order, char *bytes, char **env)
{
    char      *p, *end;
    uint32_t   i;

    p = bytes;
    end = bytes + order->env_len;

    for (i = 0; i < order->env_count; i++) {
        if (i == TGD_ENV_COUNT_MAX || p == end) {
            return false;
        }
        env[i] = p;
        p = memchr(p, '\0', (size_t) (end - p));
        if (p == NULL) {
            return false;
        }
        p++;
    }

    env[i] = NULL;
    return true;
}


static void
job_start(tgd_job_t *job, size_t len, const int fds[2])
{
    char         *cwd, *command, *env[TGD_ENV_COUNT_MAX + 1];
    pid_t         pid;
    tgd_order_t  *order;

    order = (tgd_order_t *) (void *) order_bytes;
    cwd = order_bytes + sizeof(tgd_order_t);
    command = cwd + order->cwd_len + 1;

    if (job->state != TGD_JOB_IDLE || fds[0] == -1 || fds[1] == -1
        || len != sizeof(tgd_order_t) + order->cwd_len + order->command_len
                  + order->env_len + 2
        || !order_env(order, command + order->command_len + 1, env))
    {
        job_refuse(job, TGD_STAGE_JOB, EINVAL);
        return;
    }

    cwd[order->cwd_len] = '\0';
    command[order->command_len] = '\0';

    if (chdir(cwd) == -1) {
        job_refuse(job, TGD_STAGE_WORKSPACE, errno);
        return;
    }

    job->oom = tgd_cgroup_counter(job->conf->events.memory_events, "oom_kill");
    job->pids = tgd_cgroup_counter(job->conf->events.pids_events, "max");

    /* vfork: no page table is copied. The probe runs on without an exec */
    pid = order->op == TGD_ORDER_PROBE ? fork() : vfork();
    if (pid == 0) {
        job_child(order, command, env, fds);
    }

    if (pid == -1) {
        job_refuse(job, TGD_STAGE_JOB, errno);

    } else {
        job->main = pid;
        job->state = TGD_JOB_RUNNING;
    }

    if (chdir("/") == -1) {
        _exit(1);
    }
}


/* reaps what has ended; true when no process is left */
static bool
job_reap(tgd_job_t *job, int options)
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

        if (pid == job->main) {
            job->main = -1;
            job->status = status;
        }
    }
}


/* SIGCHLD came */
static void
job_ended(tgd_job_t *job)
{
    bool  empty;

    empty = job_reap(job, WNOHANG);

    if (job->state == TGD_JOB_RUNNING && job->main == -1) {
        job->state = empty ? TGD_JOB_IDLE : TGD_JOB_LEFTOVERS;
        job_report(job, TGD_REPORT_EXIT, empty);
    }
}


static void
job_kill(tgd_job_t *job)
{
    if (job->state == TGD_JOB_IDLE) {
        /* crossed the report of its end */
        return;
    }

    /* all that this namespace holds dies in one go: forks that race with it are
     * refused by the kernel. Then nothing may be left, not even a zombie */
    (void) kill(-1, SIGKILL);
    (void) job_reap(job, 0);

    if (job->state == TGD_JOB_RUNNING) {
        job->state = TGD_JOB_IDLE;
        job_report(job, TGD_REPORT_EXIT, true);

    } else {
        job->state = TGD_JOB_IDLE;
        job_report(job, TGD_REPORT_EMPTY, true);
    }
}


/* receives one order with the descriptors that came along; its length, 0 at the end */
static size_t
order_receive(int fd, int fds[2])
{
    ssize_t         n;
    struct iovec    iov;
    struct msghdr   message;
    struct cmsghdr *control;

    union {
        struct cmsghdr  align;
        char            bytes[CMSG_SPACE(2 * sizeof(int))];
    } space;

    memset(&message, 0, sizeof(message));
    iov.iov_base = order_bytes;
    iov.iov_len = sizeof(order_bytes);
    message.msg_iov = &iov;
    message.msg_iovlen = 1;
    message.msg_control = &space;
    message.msg_controllen = sizeof(space);

    fds[0] = -1;
    fds[1] = -1;

    do {
        n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    } while (n == -1 && errno == EINTR);

    if (n <= 0) {
        return 0;
    }

    control = CMSG_FIRSTHDR(&message);
    if (control != NULL && control->cmsg_type == SCM_RIGHTS
        && control->cmsg_len == CMSG_LEN(2 * sizeof(int)))
    {
        memcpy(fds, CMSG_DATA(control), 2 * sizeof(int));
    }

    return (size_t) n;
}


static void
order_serve(tgd_job_t *job)
{
    int           fds[2];
    size_t        len;
    tgd_order_t  *order;

    len = order_receive(job->conf->socket, fds);
    if (len < sizeof(tgd_order_t)) {
        /* the front is gone: with pid 1 goes everything here */
        _exit(0);
    }

    order = (tgd_order_t *) (void *) order_bytes;

    switch (order->op) {

    case TGD_ORDER_RUN:
    case TGD_ORDER_PROBE:
        job_start(job, len, fds);
        break;

    case TGD_ORDER_TERM:
        if (job->state == TGD_JOB_RUNNING && job->main > 0) {
            (void) kill(-job->main, SIGTERM);
        }
        break;

    case TGD_ORDER_KILL:
        job_kill(job);
        break;

    default:
        break;
    }

    if (fds[0] != -1) {
        (void) close(fds[0]);
        (void) close(fds[1]);
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


void
tgd_supervisor_run(const tgd_supervisor_t *supervisor)
{
    int                      child;
    sigset_t                 set;
    tgd_job_t                job;
    tgd_report_t             ready;
    struct pollfd            polls[2];
    struct signalfd_siginfo  info;

    memset(&job, 0, sizeof(job));
    job.conf = supervisor;
    job.main = -1;

    (void) sigfillset(&set);
    (void) sigprocmask(SIG_SETMASK, &set, NULL);
    (void) sigemptyset(&set);
    (void) sigaddset(&set, SIGCHLD);

    child = signalfd(-1, &set, SFD_CLOEXEC|SFD_NONBLOCK);
    if (child == -1) {
        tgd_supervisor_failed(supervisor->socket, TGD_STAGE_JOB, errno);
    }

    if (supervisor_files() == -1 || supervisor_limits(supervisor) == -1) {
        tgd_supervisor_failed(supervisor->socket, TGD_STAGE_PRIVILEGES, errno);
    }

    memset(&ready, 0, sizeof(ready));
    ready.op = TGD_REPORT_READY;
    report_send(supervisor->socket, &ready);

    polls[0].fd = child;
    polls[0].events = POLLIN;
    polls[1].fd = supervisor->socket;
    polls[1].events = POLLIN;

    for ( ;; ) {
        if (poll(polls, 2, -1) == -1) {
            continue;
        }

        if (polls[0].revents != 0) {
            while (read(child, &info, sizeof(info)) > 0) {
                /* one reap serves all of them */
            }
            job_ended(&job);
        }

        if (polls[1].revents != 0) {
            order_serve(&job);
        }
    }
}
