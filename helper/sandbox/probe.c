/*
 * The self-test's attempts to get out of a sandbox. Runs in a job's place, behind
 * limits and filter, so what it can not do no job can do. "ok" means refused.
 */

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tgd.h"
#include "sandbox/probe.h"


#define TGD_PROBE_WORDS  5
#define TGD_PROBE_SPARE  4       /* processes over the limit that are tried */

typedef struct {
    const char  *canary;         /* a file of the host */
    const char  *port;           /* a TCP listener of the host */
    const char  *abstract;       /* an abstract unix listener of the host */
    uint32_t     memory_mib;
    uint32_t     pids;
} tgd_probe_t;


static void
say(const char *name, bool refused)
{
    (void) dprintf(STDOUT_FILENO, "%s %s\n", name, refused ? "ok" : "FAILED");
}


static bool
can_open(const char *path, int flags)
{
    int  fd;

    fd = open(path, flags|O_CLOEXEC, 0600);
    if (fd == -1) {
        return false;
    }

    (void) close(fd);
    return true;
}


static bool
can_connect_tcp(const char *port)
{
    int                 fd;
    bool                done;
    struct sockaddr_in  addr;

    fd = socket(AF_INET, SOCK_STREAM|SOCK_CLOEXEC, 0);
    if (fd == -1) {
        return false;
    }

    memset(&addr, 0, sizeof(addr));
    addr.sin_family = AF_INET;
    addr.sin_port = htons((uint16_t) strtoul(port, NULL, 10));
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);

    done = connect(fd, (struct sockaddr *) &addr, sizeof(addr)) == 0;
    (void) close(fd);

    return done;
}


static bool
can_connect_abstract(const char *name)
{
    int                 fd;
    bool                done;
    size_t              len;
    struct sockaddr_un  addr;

    fd = socket(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0);
    len = strlen(name);
    if (fd == -1 || len + 1 > sizeof(addr.sun_path)) {
        return false;
    }

    memset(&addr, 0, sizeof(addr));
    addr.sun_family = AF_UNIX;
    memcpy(addr.sun_path + 1, name, len);

    done = connect(fd, (struct sockaddr *) &addr,
                   (socklen_t) (sizeof(sa_family_t) + 1 + len)) == 0;
    (void) close(fd);

    return done;
}


static bool
can_socket(int family, int type, int protocol)
{
    int  fd;

    fd = socket(family, type, protocol);
    if (fd == -1) {
        return false;
    }

    (void) close(fd);
    return true;
}


/* numeric entries of /proc: the supervisor, the job and this process, nobody else */
static int
count_processes(void)
{
    int             n;
    DIR            *list;
    struct dirent  *entry;

    list = opendir("/proc");
    if (list == NULL) {
        return -1;
    }

    n = 0;
    while ((entry = readdir(list)) != NULL) {
        n += entry->d_name[0] >= '0' && entry->d_name[0] <= '9';
    }

    (void) closedir(list);
    return n;
}


static int
count_descriptors(void)
{
    int  fd, n;

    n = 0;
    for (fd = 0; fd < TGD_NOFILE; fd++) {
        n += fcntl(fd, F_GETFD) != -1;
    }

    return n;
}


/* true when /proc/self/status holds that line */
static bool
status_has(const char *wanted)
{
    int      fd;
    char     text[4096];
    ssize_t  n;

    fd = open("/proc/self/status", O_RDONLY|O_CLOEXEC);
    if (fd == -1) {
        return false;
    }

    n = read(fd, text, sizeof(text) - 1);
    (void) close(fd);
    if (n <= 0) {
        return false;
    }

    text[n] = '\0';
    return strstr(text, wanted) != NULL;
}


/* only loopback is listed in /proc/net/dev, below two lines of heading */
static bool
only_loopback(void)
{
    FILE  *file;
    char   line[512];
    bool   only;
    int    n;

    file = fopen("/proc/net/dev", "re");
    if (file == NULL) {
        return false;
    }

    only = true;
    for (n = 0; fgets(line, sizeof(line), file) != NULL; n++) {
        only = only && (n < 2 || strstr(line, "lo:") != NULL);
    }

    (void) fclose(file);
    return only;
}


static bool
memory_bounded(uint32_t memory_mib)
{
    int             status;
    pid_t           pid;
    size_t          size, i;
    volatile char  *p;

    pid = fork();
    if (pid == 0) {
        size = (size_t) memory_mib * 2 * 1024 * 1024;
        p = mmap(NULL, size, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) {
            _exit(1);
        }
        for (i = 0; i < size; i += 4096) {
            p[i] = 1;
        }
        _exit(0);
    }

    return pid != -1 && waitpid(pid, &status, 0) == pid
           && !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}


static bool
processes_bounded(uint32_t pids)
{
    bool      refused;
    pid_t     pid;
    uint32_t  i;

    refused = false;
    for (i = 0; i < pids + TGD_PROBE_SPARE && !refused; i++) {
        pid = fork();
        if (pid == 0) {
            (void) pause();
            _exit(0);
        }
        refused = pid == -1;
    }

    return refused;
}


static void
probe_view(const tgd_probe_t *probe)
{
    int  seen;

    say("host_file", !can_open(probe->canary, O_RDONLY));
    say("shadow", !can_open("/etc/shadow", O_RDONLY));
    say("init_memory", !can_open("/proc/1/mem", O_RDONLY)
                       && !can_open("/proc/1/environ", O_RDONLY));
    seen = count_processes();
    say("processes_hidden", seen > 0 && seen <= 3);
    say("descriptors", count_descriptors() == 3);
    say("root_write", !can_open("/x", O_WRONLY|O_CREAT)
                      && !can_open("/dev/x", O_WRONLY|O_CREAT)
                      && !can_open("/etc/x", O_WRONLY|O_CREAT)
                      && !can_open("/usr/x", O_WRONLY|O_CREAT));
    say("sysctl_write", !can_open("/proc/sys/kernel/core_pattern", O_WRONLY)
                        && !can_open("/proc/sysrq-trigger", O_WRONLY));
    say("workspace", can_open("/workspace/.", O_RDONLY)
                     && access("/workspace", W_OK) == 0);
}


static void
probe_network(const tgd_probe_t *probe)
{
    say("host_tcp", !can_connect_tcp(probe->port));
    say("host_abstract", !can_connect_abstract(probe->abstract));
    say("interfaces", only_loopback());
    say("raw_socket", !can_socket(AF_INET, SOCK_RAW, IPPROTO_ICMP)
                      && !can_socket(AF_PACKET, SOCK_RAW, 0)
                      && !can_socket(AF_NETLINK, SOCK_RAW, 0)
                      && !can_socket(AF_ALG, SOCK_SEQPACKET, 0));
}


static void
probe_privileges(void)
{
    say("mount", mount("tmpfs", "/tmp", "tmpfs", 0, NULL) == -1);
    say("user_namespace", unshare(CLONE_NEWUSER) == -1
                          && syscall(SYS_clone, CLONE_NEWUSER|SIGCHLD, 0, 0, 0, 0) == -1);
    say("ptrace", ptrace(PTRACE_TRACEME, 0, NULL, NULL) == -1
                  && ptrace(PTRACE_ATTACH, 1, NULL, NULL) == -1);
    say("setuid", setuid(0) == -1);
    say("device_node", mknod("/tmp/sda", S_IFBLK|0600, 8 << 8) == -1);
    say("setuid_file", can_open("/tmp/plain", O_WRONLY|O_CREAT)
                       && chmod("/tmp/plain", 04755) == -1);
    say("capabilities", status_has("CapEff:\t0000000000000000\n")
                        && status_has("CapPrm:\t0000000000000000\n")
                        && status_has("CapBnd:\t0000000000000000\n"));
    say("no_new_privs", status_has("NoNewPrivs:\t1\n"));
    say("filter", status_has("Seccomp:\t2\n"));
}


void
tgd_probe_run(char *targets)
{
    char         *words[TGD_PROBE_WORDS], *rest;
    int           i;
    tgd_probe_t   probe;

    words[0] = strtok_r(targets, " ", &rest);
    for (i = 1; i < TGD_PROBE_WORDS; i++) {
        words[i] = words[i - 1] == NULL ? NULL : strtok_r(NULL, " ", &rest);
    }

    if (words[TGD_PROBE_WORDS - 1] == NULL) {
        _exit(2);
    }

    probe.canary = words[0];
    probe.port = words[1];
    probe.abstract = words[2];
    probe.memory_mib = (uint32_t) strtoul(words[3], NULL, 10);
    probe.pids = (uint32_t) strtoul(words[4], NULL, 10);

    probe_view(&probe);
    probe_network(&probe);
    probe_privileges();
    say("memory_limit", memory_bounded(probe.memory_mib));
    say("process_limit", processes_bounded(probe.pids));

    (void) dprintf(STDOUT_FILENO, "end\n");
    _exit(0);
}
