/*
 * toolgated: options, the state directory, the two processes. What needs rights is
 * done here before the front gives them up.
 */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conf.h"
#include "front.h"
#include "launcher.h"
#include "tg_json.h"


#define TGD_LAUNCHER_EXIT_MS  5000
#define TGD_CANARY            "canary"
#define TGD_LOCK_TRIES        20        /* 100 ms each: the last one may be ending */

/* the leak check of the sanitizer reads its own process */
#ifdef __SANITIZE_ADDRESS__
#define TGD_FRONT_DUMPABLE    1
#else
#define TGD_FRONT_DUMPABLE    0
#endif

static const struct option  main_options[] = {
    { "socket", required_argument, NULL, 's' },
    { "state", required_argument, NULL, 'S' },
    { "peer-uid", required_argument, NULL, 'u' },
    { "log", required_argument, NULL, 'l' },
    { "pid-file", required_argument, NULL, 'p' },
    { "help", no_argument, NULL, 'h' },
    { "version", no_argument, NULL, 'V' },
    { NULL, 0, NULL, 0 }
};


static void
main_usage(FILE *to)
{
    (void) fprintf(to,
        "usage: toolgated -c FILE\n"
        "       toolgated --socket PATH --state DIR [--peer-uid UID[,UID]] [--log FILE]\n"
        "                 [--pid-file FILE]\n"
        "Runs tools in sandboxes for the clients of a unix socket. Stays in the\n"
        "foreground; SIGTERM ends it when its jobs are done, at most 20 s later.\n");
}


static int
main_fail(const char *what, const char *why)
{
    (void) fprintf(stderr, "toolgated: %s: %s\n", what, why);
    return -1;
}


/* flags override the file, wherever they stand */
static int
main_configure(int argc, char **argv, tgd_conf_t *conf)
{
    int          option, pass;
    char         error[TGD_CONF_PATH_MAX + 256];
    const char  *why, *key;

    tgd_conf_init(conf);

    for (pass = 0; pass < 2; pass++) {
        optind = 1;
        while ((option = getopt_long(argc, argv, "c:h", main_options, NULL)) != -1) {
            key = NULL;

            switch (option) {

            case 'c':
                if (pass == 0 && tgd_conf_read(conf, optarg, error, sizeof(error)) == -1) {
                    return main_fail("configuration", error);
                }
                break;

            case 'h':
                main_usage(stdout);
                exit(0);

            case 'V':
                (void) puts("toolgated " TGD_VERSION);
                exit(0);

            case 's':
                key = "socket";
                break;

            case 'S':
                key = "state";
                break;

            case 'u':
                key = "peer_uid";
                break;

            case 'l':
                key = "log";
                break;

            case 'p':
                key = "pid_file";
                break;

            default:
                main_usage(stderr);
                return -1;
            }

            if (pass == 1 && key != NULL) {
                why = tgd_conf_set(conf, key, optarg);
                if (why != NULL) {
                    return main_fail(key, why);
                }
            }
        }
    }

    if (optind != argc) {
        main_usage(stderr);
        return -1;
    }

    why = tgd_conf_finish(conf);
    return why == NULL ? 0 : main_fail("configuration", why);
}


/* the state directory, locked for as long as any of our processes lives */
static int
main_state(const tgd_conf_t *conf)
{
    int  dir, lock, i;

    if (mkdir(conf->state, 0711) == -1 && errno != EEXIST) {
        return main_fail(conf->state, strerror(errno));
    }

    dir = open(conf->state, O_RDONLY|O_DIRECTORY|O_CLOEXEC);
    if (dir == -1) {
        return main_fail(conf->state, strerror(errno));
    }

    lock = openat(dir, "lock", O_RDWR|O_CREAT|O_CLOEXEC, 0600);
    if (lock == -1) {
        return main_fail("lock", strerror(errno));
    }

    for (i = 0; i < TGD_LOCK_TRIES; i++) {
        if (flock(lock, LOCK_EX|LOCK_NB) == 0) {
            return dir;
        }
        (void) usleep(100000);
    }

    return main_fail(conf->state, "another toolgated runs on this state directory");
}


/* a file that everybody on the host may read and no job may */
static int
main_canary(int state)
{
    int  fd;

    fd = openat(state, TGD_CANARY, O_WRONLY|O_CREAT|O_TRUNC|O_CLOEXEC, 0644);
    if (fd == -1 || dprintf(fd, "not for jobs\n") < 0) {
        return main_fail(TGD_CANARY, strerror(errno));
    }

    (void) fchmod(fd, 0644);
    (void) close(fd);
    return 0;
}


static int
main_workspaces(int state)
{
    int  dir;

    if (mkdirat(state, "workspaces", 0711) == -1 && errno != EEXIST) {
        return main_fail("workspaces", strerror(errno));
    }

    dir = openat(state, "workspaces", O_RDONLY|O_DIRECTORY|O_NOFOLLOW|O_CLOEXEC);
    return dir == -1 ? main_fail("workspaces", strerror(errno)) : dir;
}


/* Bound, not listening. The peer's uid is checked for every connection; the mode
 * keeps others from even trying where that can be said with one owner. */
static int
main_socket(const tgd_conf_t *conf)
{
    int                 fd;
    mode_t              mode;
    struct stat         st;
    struct sockaddr_un  addr;

    if (lstat(conf->socket, &st) == 0) {
        if (!S_ISSOCK(st.st_mode)) {
            return main_fail(conf->socket, "exists and is not a socket");
        }
        (void) unlink(conf->socket);
    }

    memset(&addr, 0, sizeof(addr));
    addr.sun_family = AF_UNIX;
    memcpy(addr.sun_path, conf->socket, strlen(conf->socket));

    fd = socket(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC|SOCK_NONBLOCK, 0);
    if (fd == -1 || bind(fd, (struct sockaddr *) &addr, sizeof(addr)) == -1) {
        return main_fail(conf->socket, strerror(errno));
    }

    mode = 0600;
    if (conf->peer_count > 1 || (conf->peers[0] != geteuid() && geteuid() != 0)) {
        mode = 0666;
    }

    if ((geteuid() == 0 && chown(conf->socket, conf->peers[0], (gid_t) -1) == -1)
        || chmod(conf->socket, mode) == -1)
    {
        return main_fail(conf->socket, strerror(errno));
    }

    return fd;
}


static int
main_pid_file(const tgd_conf_t *conf)
{
    int  fd;

    if (conf->pid_file[0] == '\0') {
        return 0;
    }

    fd = open(conf->pid_file, O_WRONLY|O_CREAT|O_TRUNC|O_CLOEXEC, 0644);
    if (fd == -1 || dprintf(fd, "%d\n", (int) getpid()) < 0) {
        return main_fail(conf->pid_file, strerror(errno));
    }

    (void) close(fd);
    return 0;
}


/* 0, 1 and 2 must be something, else a socket could become one of them */
static void
main_standard_files(void)
{
    int  fd;

    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= 2);

    if (fd > 2) {
        (void) close(fd);
    }

    /* whatever the parent left open does not go on to anybody */
    (void) close_range(3, ~0U, 0);
}


static void
main_file_limit(void)
{
    struct rlimit  limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void) setrlimit(RLIMIT_NOFILE, &limit);
    }
}


/* the front needs no rights once its socket is bound */
static int
main_drop(const tgd_slots_t *slots)
{
    if (slots->count != 0
        && (setgroups(0, NULL) == -1
            || setresgid(slots->first, slots->first, slots->first) == -1
            || setresuid(slots->first, slots->first, slots->first) == -1))
    {
        return main_fail("giving up rights", strerror(errno));
    }

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1
        || prctl(PR_SET_DUMPABLE, TGD_FRONT_DUMPABLE, 0, 0, 0) == -1)
    {
        return main_fail("giving up rights", strerror(errno));
    }

    return 0;
}


static void
main_wait(pid_t launcher)
{
    int  i;

    for (i = 0; i < TGD_LAUNCHER_EXIT_MS / 10; i++) {
        if (waitpid(launcher, NULL, WNOHANG) != 0) {
            return;
        }
        (void) usleep(10000);
    }

    tgd_log(TGD_LOG_ERROR, "launcher_hangs", "\"pid\":%d", (int) launcher);
}


/* the second process; pair[1] is its line to the front */
static pid_t
main_launcher(tgd_launcher_t *launcher, const tgd_conf_t *conf, int pair[2], int listener,
    char **argv)
{
    char    hex[TG_JSON_SHA256_HEX_LEN + 1], *real;
    pid_t   pid;

    real = realpath(conf->state, NULL);
    tg_json_sha256_hex(tg_str_of(real == NULL ? conf->state : real), hex);
    free(real);

    (void) snprintf(launcher->cgroup, sizeof(launcher->cgroup), "toolgated-%.12s", hex);
    launcher->socket_path = conf->socket;
    launcher->argv = argv;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET|SOCK_CLOEXEC, 0, pair) == -1) {
        return -1;
    }

    pid = fork();
    if (pid == 0) {
        (void) close(pair[0]);
        (void) close(listener);
        launcher->front = pair[1];
        tgd_launcher_run(launcher);
    }

    (void) close(pair[1]);
    return pid;
}


int
main(int argc, char **argv)
{
    int                    code, pair[2], listener;
    char                   canary[TGD_CONF_PATH_MAX + 16];
    pid_t                  pid;
    static tgd_conf_t      conf;
    static tgd_launcher_t  launcher;

    main_standard_files();

    if (main_configure(argc, argv, &conf) == -1) {
        return 2;
    }

    (void) umask(022);
    main_file_limit();

    launcher.state_dir = main_state(&conf);
    if (launcher.state_dir == -1 || main_canary(launcher.state_dir) == -1) {
        return 1;
    }

    launcher.workspaces = main_workspaces(launcher.state_dir);
    if (launcher.workspaces == -1) {
        return 1;
    }

    if (tgd_log_open(conf.log[0] == '\0' ? NULL : conf.log) == -1) {
        (void) main_fail(conf.log, strerror(errno));
        return 1;
    }

    listener = main_socket(&conf);
    if (listener == -1 || main_pid_file(&conf) == -1) {
        return 1;
    }

    tgd_slots_init(&launcher.slots);

    pid = main_launcher(&launcher, &conf, pair, listener, argv);
    if (pid == -1) {
        (void) main_fail("launcher", strerror(errno));
        return 1;
    }

    (void) close(launcher.workspaces);
    (void) snprintf(canary, sizeof(canary), "%s/" TGD_CANARY, conf.state);

    tgd_log(TGD_LOG_INFO, "start", "\"pid\":%d,\"launcher\":%d,\"uid\":%u",
            (int) getpid(), (int) pid, (unsigned) geteuid());

    code = main_drop(&launcher.slots) == -1
           ? 1 : tgd_front_run(&conf, listener, pair[0], canary);

    main_wait(pid);
    tgd_log(TGD_LOG_INFO, "end", "\"code\":%d", code);

    return code;
}
