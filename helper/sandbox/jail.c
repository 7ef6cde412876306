/*
 * The inside of a sandbox: identity, mounts, network, privileges, in this order.
 *
 * The new root is a small tmpfs that only this code writes to; no mount point lies
 * below a directory that a job can write. The workspace comes in as the current
 * directory, so its path on the host is neither needed nor reachable.
 */

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sandbox/jail.h"


/* an existing directory to build the root on; what it holds is never looked at */
#define TGD_JAIL_ROOT     "/tmp"
#define TGD_JAIL_CAP_MAX  64
#define TGD_JAIL_OOM      "500"

#define root_path(path)  TGD_JAIL_ROOT path

typedef struct {
    const char  *path;
    const char  *text;
} tgd_jail_file_t;

static const tgd_jail_file_t  jail_files[] = {
    { root_path("/etc/passwd"), "sandbox:x:1000:1000::/tmp:/bin/bash\n" },
    { root_path("/etc/group"), "sandbox:x:1000:\n" },
    { root_path("/etc/hosts"), "127.0.0.1 localhost sandbox\n::1 localhost\n" },
    { root_path("/etc/nsswitch.conf"), "passwd: files\ngroup: files\nhosts: files\n" },
};

/* of the host, when they are there */
static const char  *jail_etc[] = {
    "/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime", "/etc/mime.types",
};

static const char  *jail_devices[] = {
    "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
};


static int
jail_attributes(const char *path, uint64_t set, bool deep)
{
    struct mount_attr  attr;

    memset(&attr, 0, sizeof(attr));
    attr.attr_set = set;

    return mount_setattr(AT_FDCWD, path, deep ? AT_RECURSIVE : 0, &attr, sizeof(attr));
}


static int
jail_write(const char *path, const char *text)
{
    int      fd;
    ssize_t  n;

    fd = open(path, O_WRONLY|O_CREAT|O_CLOEXEC, 0444);
    if (fd == -1) {
        return -1;
    }

    n = write(fd, text, strlen(text));
    (void) close(fd);

    return n == (ssize_t) strlen(text) ? 0 : -1;
}


/* the mapped user, without groups, killed when the launcher dies */
static int
jail_identity(void)
{
    /* a raised score: the kernel shall not prefer the helper. Before the ids change,
     * while the file is still ours */
    (void) jail_write("/proc/self/oom_score_adj", TGD_JAIL_OOM);

    if (setresgid(TGD_JOB_UID, TGD_JOB_UID, TGD_JOB_UID) == -1) {
        return -1;
    }

    /* refused to an ordinary user, whose groups are not mapped inside anyway */
    if (setgroups(0, NULL) == -1 && errno != EPERM) {
        return -1;
    }

    if (setresuid(TGD_JOB_UID, TGD_JOB_UID, TGD_JOB_UID) == -1) {
        return -1;
    }

    /* changing ids has cleared it */
    return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
}


/* a host directory read-only, or the symbolic link that it is */
static int
jail_system(const char *host, const char *inside)
{
    char         target[256];
    ssize_t      n;
    struct stat  st;

    if (lstat(host, &st) == -1) {
        return 0;
    }

    if (S_ISLNK(st.st_mode)) {
        n = readlink(host, target, sizeof(target) - 1);
        if (n == -1) {
            return -1;
        }
        target[n] = '\0';
        return symlink(target, inside);
    }

    if (mkdir(inside, 0755) == -1
        || mount(host, inside, NULL, MS_BIND|MS_REC, NULL) == -1)
    {
        return -1;
    }

    return jail_attributes(inside,
                           MOUNT_ATTR_RDONLY|MOUNT_ATTR_NOSUID|MOUNT_ATTR_NODEV, true);
}


static int
jail_etc_mounts(void)
{
    char         inside[64], *target;
    size_t       i;
    struct stat  st;

    if (mkdir(root_path("/etc"), 0755) == -1) {
        return -1;
    }

    for (i = 0; i < sizeof(jail_files) / sizeof(jail_files[0]); i++) {
        if (jail_write(jail_files[i].path, jail_files[i].text) == -1) {
            return -1;
        }
    }

    for (i = 0; i < sizeof(jail_etc) / sizeof(jail_etc[0]); i++) {
        if (stat(jail_etc[i], &st) == -1) {
            continue;
        }

        (void) snprintf(inside, sizeof(inside), TGD_JAIL_ROOT "%s", jail_etc[i]);
        target = inside;

        if ((S_ISDIR(st.st_mode) ? mkdir(target, 0755) : jail_write(target, "")) == -1
            || mount(jail_etc[i], target, NULL, MS_BIND|MS_REC, NULL) == -1
            || jail_attributes(target, MOUNT_ATTR_RDONLY|MOUNT_ATTR_NOSUID
                                       |MOUNT_ATTR_NODEV, true) == -1)
        {
            return -1;
        }
    }

    return 0;
}


static int
jail_dev(void)
{
    char    inside[64], options[64];
    size_t  i;

    if (mkdir(root_path("/dev"), 0755) == -1
        || mount("tmpfs", root_path("/dev"), "tmpfs", MS_NOSUID|MS_NOEXEC,
                 "mode=0755,size=64k,nr_inodes=64") == -1)
    {
        return -1;
    }

    for (i = 0; i < sizeof(jail_devices) / sizeof(jail_devices[0]); i++) {
        (void) snprintf(inside, sizeof(inside), TGD_JAIL_ROOT "%s", jail_devices[i]);
        if (jail_write(inside, "") == -1
            || mount(jail_devices[i], inside, NULL, MS_BIND, NULL) == -1)
        {
            return -1;
        }
    }

    (void) snprintf(options, sizeof(options), "mode=1777,size=%dm", TGD_SHM_MIB);

    if (symlink("/proc/self/fd", root_path("/dev/fd")) == -1
        || symlink("/proc/self/fd/0", root_path("/dev/stdin")) == -1
        || symlink("/proc/self/fd/1", root_path("/dev/stdout")) == -1
        || symlink("/proc/self/fd/2", root_path("/dev/stderr")) == -1
        || mkdir(root_path("/dev/shm"), 0755) == -1
        || mount("tmpfs", root_path("/dev/shm"), "tmpfs",
                 MS_NOSUID|MS_NODEV|MS_NOEXEC, options) == -1)
    {
        return -1;
    }

    return jail_attributes(root_path("/dev"), MOUNT_ATTR_RDONLY, false);
}


static int
jail_mounts(void)
{
    char  options[64];

    /* nothing that happens here may be seen outside */
    if (mount(NULL, "/", NULL, MS_REC|MS_PRIVATE, NULL) == -1
        || mount("tmpfs", TGD_JAIL_ROOT, "tmpfs", MS_NOSUID|MS_NODEV,
                 "mode=0755,size=1m,nr_inodes=256") == -1)
    {
        return -1;
    }

    /* the workspace first: it is still the current directory */
    if (mkdir(root_path("/workspace"), 0755) == -1
        || mount(".", root_path("/workspace"), NULL, MS_BIND, NULL) == -1
        || jail_attributes(root_path("/workspace"), MOUNT_ATTR_NOSUID|MOUNT_ATTR_NODEV,
                           false) == -1)
    {
        return -1;
    }

    if (jail_system("/usr", root_path("/usr")) == -1
        || jail_system("/bin", root_path("/bin")) == -1
        || jail_system("/sbin", root_path("/sbin")) == -1
        || jail_system("/lib", root_path("/lib")) == -1
        || jail_system("/lib32", root_path("/lib32")) == -1
        || jail_system("/lib64", root_path("/lib64")) == -1
        || jail_etc_mounts() == -1 || jail_dev() == -1)
    {
        return -1;
    }

    (void) snprintf(options, sizeof(options), "mode=1777,size=%dm,nr_inodes=%d",
                    TGD_TMP_MIB, TGD_TMP_INODES);

    if (mkdir(root_path("/tmp"), 0755) == -1
        || mount("tmpfs", root_path("/tmp"), "tmpfs", MS_NOSUID|MS_NODEV, options) == -1)
    {
        return -1;
    }

    return mkdir(root_path("/run"), 0755);
}


/* a proc of the new pid namespace; no further user namespaces below this one */
static int
jail_proc(void)
{
    if (mkdir(root_path("/proc"), 0555) == -1
        || mount("proc", root_path("/proc"), "proc", MS_NOSUID|MS_NODEV|MS_NOEXEC, NULL)
           == -1)
    {
        return -1;
    }

    /* the filter refuses them as well, so a kernel without the knob is fine */
    (void) jail_write(root_path("/proc/sys/user/max_user_namespaces"), "0");

    return 0;
}


static int
jail_network(void)
{
    int           fd, rc;
    struct ifreq  request;

    fd = socket(AF_INET, SOCK_DGRAM|SOCK_CLOEXEC, 0);
    if (fd == -1) {
        return -1;
    }

    memset(&request, 0, sizeof(request));
    memcpy(request.ifr_name, "lo", 3);
    request.ifr_flags = IFF_UP|IFF_RUNNING;

    rc = ioctl(fd, SIOCSIFFLAGS, &request);
    (void) close(fd);

    return rc;
}


static int
jail_pivot(void)
{
    if (chdir(TGD_JAIL_ROOT) == -1
        || syscall(SYS_pivot_root, ".", ".") == -1
        || umount2(".", MNT_DETACH) == -1
        || chdir("/") == -1
        || sethostname("sandbox", 7) == -1)
    {
        return -1;
    }

    return jail_attributes("/", MOUNT_ATTR_RDONLY, false);
}


static int
jail_privileges(void)
{
    int                            cap;
    struct __user_cap_data_struct  none[2];
    struct __user_cap_header_struct  head = { _LINUX_CAPABILITY_VERSION_3, 0 };

    for (cap = 0; cap < TGD_JAIL_CAP_MAX; cap++) {
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == -1) {
            if (errno == EINVAL) {
                break;
            }
            return -1;
        }
    }

    memset(none, 0, sizeof(none));

    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == -1
        || syscall(SYS_capset, &head, none) == -1
        || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1
        || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == -1)
    {
        return -1;
    }

    return 0;
}


tgd_stage_e
tgd_jail_enter(void)
{
    if (unshare(CLONE_NEWCGROUP) == -1) {
        return TGD_STAGE_NAMESPACES;
    }

    if (jail_identity() == -1) {
        return TGD_STAGE_IDENTITY;
    }

    (void) umask(022);

    if (jail_mounts() == -1) {
        return TGD_STAGE_MOUNTS;
    }

    if (jail_proc() == -1) {
        return TGD_STAGE_PROC;
    }

    if (jail_network() == -1) {
        return TGD_STAGE_NETWORK;
    }

    if (jail_pivot() == -1) {
        return TGD_STAGE_PIVOT;
    }

    if (jail_privileges() == -1) {
        return TGD_STAGE_PRIVILEGES;
    }

    return TGD_STAGE_NONE;
}
