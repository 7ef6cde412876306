/*
 * A job's process; see job.h. It is made by a clone that shares memory: nothing is
 * copied when it is made and nothing is torn down when it becomes the command. So it
 * calls the system and hardly anything else, on a stack of its own, while the
 * supervisor sleeps. The sanitizer, which knows neither, leaves these functions out.
 */

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox/job.h"
#include "sandbox/probe.h"


#define TGD_SHELL        "/bin/bash"
#define TGD_SHELL_PLAIN  "/bin/sh"
#define TGD_JOB_STACK    (64 * 1024)
#define TGD_JOB_ALONE    __attribute__((no_sanitize_address))

/* an order and where its parts lie */
typedef struct {
    tgd_order_op_e   op;
    char            *cwd;
    char            *command;
    char            *env[TGD_ENV_COUNT_MAX + 1];
} tgd_job_parts_t;

/* in bss: both cost memory only where they were touched */
static char  order_bytes[TGD_ORDER_MAX];
static char  job_stack[TGD_JOB_STACK] __attribute__((aligned(64)));


/* receives one order; its length, 0 when the front is gone */
TGD_JOB_ALONE static size_t
order_receive(int socket)
{
    ssize_t  n;

    do {
        n = recv(socket, order_bytes, sizeof(order_bytes), 0);
    } while (n == -1 && errno == EINTR);

    return n < (ssize_t) sizeof(tgd_order_t) ? 0 : (size_t) n;
}


/* finds the parts of an order; false when it is not whole */
TGD_JOB_ALONE static bool
order_parts(size_t len, tgd_job_parts_t *parts)
{
    char               *p, *end;
    uint32_t            i;
    const tgd_order_t  *order;

    order = (const tgd_order_t *) (const void *) order_bytes;
    parts->op = order->op;

    if (len != sizeof(tgd_order_t) + order->cwd_len + order->command_len
               + order->env_len + 2)
    {
        return false;
    }

    parts->cwd = order_bytes + sizeof(tgd_order_t);
    parts->command = parts->cwd + order->cwd_len + 1;
    p = parts->command + order->command_len + 1;
    end = p + order->env_len;

    for (i = 0; i < order->env_count; i++) {
        if (i == TGD_ENV_COUNT_MAX || p == end) {
            return false;
        }
        parts->env[i] = p;
        p = memchr(p, '\0', (size_t) (end - p));
        if (p == NULL) {
            return false;
        }
        p++;
    }

    parts->env[i] = NULL;
    parts->cwd[order->cwd_len] = '\0';
    parts->command[order->command_len] = '\0';

    return true;
}


TGD_JOB_ALONE static void
job_refuse(tgd_job_t *job, tgd_stage_e stage, int error)
{
    job->stage = stage;
    job->error = error;
    job->word = TGD_JOB_REFUSED;
    _exit(126);
}


/* the probe forks and allocates, so it needs memory of its own */
TGD_JOB_ALONE static void
job_probe(char *targets)
{
    int    status;
    pid_t  pid;

    pid = fork();
    if (pid == 0) {
        tgd_probe_run(targets);
    }

    if (pid == -1 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) {
        _exit(126);
    }

    _exit(WEXITSTATUS(status));
}


/* what it can not set up it does not run without */
TGD_JOB_ALONE static void
job_become(tgd_job_t *job, tgd_job_parts_t *parts)
{
    char      *bash[] = { "bash", "-c", parts->command, NULL };
    char      *plain[] = { "sh", "-c", parts->command, NULL };
    uint64_t   one;

    /* most stay where they are already */
    if (strcmp(parts->cwd, TGD_CWD_DEFAULT) != 0 && chdir(parts->cwd) == -1) {
        job_refuse(job, TGD_STAGE_WORKSPACE, errno);
    }

    /* from here on the supervisor reads the socket */
    one = 1;
    job->word = TGD_JOB_STARTED;
    if (write(job->started, &one, sizeof(one)) != (ssize_t) sizeof(one)
        || syscall(SYS_close_range, 3, ~0U, 0) == -1)
    {
        _exit(126);
    }

    if (parts->op == TGD_ORDER_PROBE) {
        job_probe(parts->command);
    }

    (void) execve(TGD_SHELL, bash, parts->env);
    (void) execve(TGD_SHELL_PLAIN, plain, parts->env);
    _exit(127);
}


TGD_JOB_ALONE static int
job_main(void *data)
{
    size_t           len;
    sigset_t         none;
    tgd_job_t       *job;
    tgd_job_parts_t  parts;

    job = data;

    /* its stdin is /dev/null as the supervisor's is */
    if (chdir(TGD_CWD_DEFAULT) == -1
        || dup2(job->out[0], STDOUT_FILENO) == -1
        || dup2(job->out[1], STDERR_FILENO) == -1)
    {
        _exit(126);
    }

    (void) setsid();
    (void) sigemptyset(&none);
    (void) sigprocmask(SIG_SETMASK, &none, NULL);

    len = order_receive(job->socket);
    if (len == 0) {
        job->word = TGD_JOB_DESERTED;
        _exit(0);
    }

    if (!order_parts(len, &parts)
        || (parts.op != TGD_ORDER_RUN && parts.op != TGD_ORDER_PROBE))
    {
        job_refuse(job, TGD_STAGE_JOB, EINVAL);
    }

    job_become(job, &parts);
    return 0;
}


pid_t
tgd_job_prepare(tgd_job_t *job)
{
    uint64_t  stale;

    /* written by a job that ended before anybody looked */
    (void) (read(job->started, &stale, sizeof(stale)) == -1);

    job->word = TGD_JOB_WAITING;

    return clone(job_main, job_stack + TGD_JOB_STACK, CLONE_VM|SIGCHLD, job);
}
