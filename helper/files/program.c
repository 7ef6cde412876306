/*
 * Running a program from a file worker; see program.h. It gets no descriptor but its
 * three, and no variable of ours.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "files/confine.h"
#include "files/program.h"


#define TGD_PROGRAM_READ    (64 * 1024)
#define TGD_PROGRAM_ABSENT  127


/* its input as a file that it can read at any pace */
static int
program_input(tg_str_t input)
{
    int      fd;
    size_t   at;
    ssize_t  n;

    fd = memfd_create("input", MFD_CLOEXEC);

    for (at = 0; fd != -1 && at < input.len; at += (size_t) n) {
        n = write(fd, input.data + at, input.len - at);
        if (n <= 0) {
            (void) close(fd);
            return -1;
        }
    }

    if (fd != -1) {
        (void) lseek(fd, 0, SEEK_SET);
    }

    return fd;
}


static void
program_become(const tgd_program_t *program, int input, int output, int errors)
{
    static char *const  env[] = { "LC_CTYPE=C.UTF-8", "HOME=/nonexistent", NULL };

    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == -1
        || tgd_confine_program(program->argv[0], program->dir) == -1
        || (program->dir != -1 && fchdir(program->dir) == -1)
        || dup2(input, 0) == -1 || dup2(output, 1) == -1 || dup2(errors, 2) == -1
        || syscall(SYS_close_range, 3, ~0U, 0) == -1)
    {
        _exit(TGD_PROGRAM_ABSENT);
    }

    (void) execve(program->argv[0], (char *const *) (uintptr_t) program->argv, env);
    _exit(TGD_PROGRAM_ABSENT);
}


/* false when the stream has ended */
static bool
take_output(int fd, tgd_program_result_t *result)
{
    ssize_t      n;
    static char  buffer[TGD_PROGRAM_READ];

    n = read(fd, buffer, sizeof(buffer));
    if (n > 0 && tg_buf_append(&result->output, buffer, (size_t) n) != TG_OK) {
        result->cut = true;
    }

    return n > 0;
}


static bool
take_error(int fd, tgd_program_result_t *result)
{
    char     buffer[TGD_PROGRAM_ERROR_MAX];
    size_t   have, room;
    ssize_t  n;

    n = read(fd, buffer, sizeof(buffer));
    if (n > 0) {
        have = strlen(result->error);
        room = TGD_PROGRAM_ERROR_MAX - have;
        room = (size_t) n < room ? (size_t) n : room;
        memcpy(result->error + have, buffer, room);
        result->error[have + room] = '\0';
    }

    return n > 0;
}


static void
program_watch(const tgd_program_t *program, int output, int errors,
    tgd_program_result_t *result)
{
    tgd_msec_t     left;
    struct pollfd  polls[2];

    polls[0] = (struct pollfd) { output, POLLIN, 0 };
    polls[1] = (struct pollfd) { errors, POLLIN, 0 };

    while ((polls[0].fd != -1 || polls[1].fd != -1) && !result->cut) {
        left = program->deadline - tgd_monotonic_ms();
        if (left <= 0) {
            result->cut = true;
            break;
        }

        if (poll(polls, 2, (int) left) <= 0) {
            continue;
        }

        if (polls[0].revents != 0 && !take_output(output, result)) {
            polls[0].fd = -1;
        }
        if (polls[1].revents != 0 && !take_error(errors, result)) {
            polls[1].fd = -1;
        }
    }
}


bool
tgd_program_run(const tgd_program_t *program, tgd_program_result_t *result)
{
    int    i, input, status, pipes[2][2];
    pid_t  pid;

    result->error[0] = '\0';
    result->code = -1;
    result->cut = false;

    input = program_input(program->input);
    if (input == -1) {
        return false;
    }

    if (pipe2(pipes[0], O_CLOEXEC) == -1) {
        (void) close(input);
        return false;
    }

    if (pipe2(pipes[1], O_CLOEXEC) == -1) {
        (void) close(input);
        (void) close(pipes[0][0]);
        (void) close(pipes[0][1]);
        return false;
    }

    pid = fork();
    if (pid == 0) {
        program_become(program, input, pipes[0][1], pipes[1][1]);
    }

    (void) close(input);
    (void) close(pipes[0][1]);
    (void) close(pipes[1][1]);

    if (pid > 0) {
        program_watch(program, pipes[0][0], pipes[1][0], result);
        if (result->cut) {
            (void) kill(pid, SIGKILL);
        }
        while (waitpid(pid, &status, 0) == -1 && errno == EINTR) {
            /* again */
        }
        result->code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

    for (i = 0; i < 2; i++) {
        (void) close(pipes[i][0]);
    }

    return pid > 0 && result->code != TGD_PROGRAM_ABSENT;
}
