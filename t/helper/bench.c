/*
 * Times run_command over the helper's socket beside what else could run a command:
 * plain fork and exec, and bubblewrap. The kinds take turns within every round, so
 * that a busy moment of the machine hits all of them.
 *
 * usage: bench SOCKET ROUNDS [COMMAND]
 */

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HEAD        8
#define TYPE_HELLO  1
#define TYPE_CALL   2
#define TYPE_RESULT 6
#define KINDS       4
#define ROUNDS_MAX  10000
#define PAUSE_US    20000   /* the kernel takes namespaces down after the fact */

static const char  *kinds[KINDS] = {
    "plain fork/exec", "bubblewrap", "toolgated, fresh session", "toolgated, live session"
};

static double       samples[KINDS][ROUNDS_MAX];
static char         reply[1024 * 1024];
static char       **environment;


static void
die(const char *what)
{
    fprintf(stderr, "bench: %s: %s\n", what, strerror(errno));
    exit(1);
}


static double
now_ms(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double) ts.tv_sec * 1e3 + (double) ts.tv_nsec / 1e6;
}


static void
send_record(int fd, uint8_t type, const char *payload)
{
    char           head[HEAD] = { 0 };
    size_t         len;
    struct iovec   whole[2] = { { head, HEAD }, { (char *) payload, 0 } };

    len = strlen(payload);
    whole[1].iov_len = len;
    head[0] = (char) (len >> 24);
    head[1] = (char) (len >> 16);
    head[2] = (char) (len >> 8);
    head[3] = (char) len;
    head[4] = (char) type;

    /* in one piece, as the module does */
    if (writev(fd, whole, 2) != (ssize_t) (HEAD + len)) {
        die("send");
    }
}


/* reads records until one of that type, whose payload is then in reply */
static void
await_record(int fd, uint8_t type)
{
    size_t   len;
    uint8_t  head[HEAD];

    for ( ;; ) {
        if (recv(fd, head, HEAD, MSG_WAITALL) != HEAD) {
            die("receive");
        }
        len = (size_t) head[0] << 24 | (size_t) head[1] << 16 | (size_t) head[2] << 8
              | head[3];
        if (len >= sizeof(reply) || recv(fd, reply, len, MSG_WAITALL) != (ssize_t) len) {
            die("receive");
        }
        reply[len] = '\0';
        if (head[4] == type) {
            return;
        }
    }
}


static int
dial(const char *path)
{
    int                 fd;
    struct sockaddr_un  addr = { .sun_family = AF_UNIX };

    snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd == -1 || connect(fd, (struct sockaddr *) &addr, sizeof(addr)) == -1) {
        die(path);
    }

    send_record(fd, TYPE_HELLO, "{\"protocol\":1}");
    await_record(fd, TYPE_HELLO);
    return fd;
}


static double
call(int fd, const char *session, const char *command)
{
    char    payload[4096];
    double  start;

    snprintf(payload, sizeof(payload),
             "{\"id\":\"b\",\"tool\":\"run_command\",\"arguments\":{\"command\":\"%s\"},"
             "\"project\":\"bench\",\"account\":\"\",\"session\":\"%s\","
             "\"invocation_id\":\"b\"}", command, session);

    start = now_ms();
    send_record(fd, TYPE_CALL, payload);
    await_record(fd, TYPE_RESULT);

    if (strncmp(reply, "{\"ok\":true", 10) != 0) {
        fprintf(stderr, "bench: %s\n", reply);
        exit(1);
    }

    return now_ms() - start;
}


static double
spawn_ms(char *const argv[])
{
    int     status;
    pid_t   pid;
    double  start;

    start = now_ms();
    if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environment) != 0
        || waitpid(pid, &status, 0) != pid || status != 0)
    {
        return -1;
    }

    return now_ms() - start;
}


static int
compare(const void *a, const void *b)
{
    double  x = *(const double *) a, y = *(const double *) b;

    return x < y ? -1 : x > y;
}


static void
print_kind(int kind, int n)
{
    if (samples[kind][0] < 0) {
        printf("| %-24s | not available |  |  |\n", kinds[kind]);
        return;
    }

    qsort(samples[kind], (size_t) n, sizeof(double), compare);
    printf("| %-24s | %6.2f | %6.2f | %6.2f |\n", kinds[kind],
           samples[kind][0], samples[kind][n / 2], samples[kind][n * 95 / 100]);
}


int
main(int argc, char **argv)
{
    int         i, fd, rounds;
    char        session[64], *command;
    char       *env[] = { "PATH=/usr/local/bin:/usr/bin:/bin", "LC_CTYPE=C.UTF-8", NULL };

    if (argc < 3) {
        fprintf(stderr, "usage: bench SOCKET ROUNDS [COMMAND]\n");
        return 2;
    }

    environment = env;
    rounds = atoi(argv[2]);
    command = argc > 3 ? argv[3] : "true";
    if (rounds < 1 || rounds > ROUNDS_MAX) {
        return 2;
    }

    char *const  plain[] = { "bash", "-c", command, NULL };
    char *const  wrapped[] = {
        "bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv",
        "--setenv", "PATH", "/usr/bin:/bin", "--ro-bind", "/usr", "/usr", "--symlink",
        "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64",
        "/lib64", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--uid", "1000",
        "--gid", "1000", "--cap-drop", "ALL", "--", "bash", "-c", command, NULL
    };

    fd = dial(argv[1]);
    (void) call(fd, "live", command);

    for (i = 0; i < rounds; i++) {
        snprintf(session, sizeof(session), "fresh-%d-%d", (int) getpid(), i);
        usleep(PAUSE_US);
        samples[0][i] = spawn_ms(plain);
        usleep(PAUSE_US);
        samples[1][i] = i > 0 && samples[1][0] < 0 ? -1 : spawn_ms(wrapped);
        usleep(PAUSE_US);
        samples[2][i] = call(fd, session, command);
        usleep(PAUSE_US);
        samples[3][i] = call(fd, "live", command);
    }

    printf("| run_command %s, n = %d | min ms | p50 ms | p95 ms |\n|---|---|---|---|\n",
           command, rounds);
    for (i = 0; i < KINDS; i++) {
        print_kind(i, rounds);
    }

    return 0;
}
