/*
 * Confinement of file workers; see confine.h. Paths are fenced twice: by how each is
 * opened (see tree.c), and, where the kernel has Landlock, for the whole process.
 */

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "files/confine.h"
#include "files/wire.h"


/* what older headers have not */
#define TGD_FS_TRUNCATE    (1ULL << 14)         /* ABI 3 */
#define TGD_FS_IOCTL_DEV   (1ULL << 15)         /* ABI 5 */
#define TGD_NET_TCP        3ULL                 /* ABI 4: bind and connect */
#define TGD_SCOPES         3ULL                 /* ABI 6: abstract sockets and signals */

#define TGD_FS_READ   (LANDLOCK_ACCESS_FS_READ_FILE|LANDLOCK_ACCESS_FS_READ_DIR)
#define TGD_FS_WRITE  \
    (LANDLOCK_ACCESS_FS_WRITE_FILE|LANDLOCK_ACCESS_FS_REMOVE_DIR  \
     |LANDLOCK_ACCESS_FS_REMOVE_FILE|LANDLOCK_ACCESS_FS_MAKE_DIR  \
     |LANDLOCK_ACCESS_FS_MAKE_REG)
#define TGD_FS_ABI1   ((LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1)

/* The loader and the libraries of a program that needs few. One that needs others does not
 * start, and we do without it. */
#define TGD_START_FILES  \
    "/{usr/,}lib{,64,/*-linux-gnu*}/{ld-linux*.so*,libc.so.6,libm.so.6,libgcc_s.so.1,"  \
    "libpcre2-8.so.0,libpthread.so.0,libdl.so.2,librt.so.1}"

typedef struct {
    uint64_t  fs;
    uint64_t  net;
    uint64_t  scoped;
} tgd_ruleset_t;

static const char *const  system_paths[] = { "/usr", "/lib", "/lib64", "/bin" };

static bool  paths_confined;


static int
landlock_abi(void)
{
    long  abi;

    abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    return abi < 0 ? 0 : (int) abi;
}


static int
ruleset_new(int abi, uint64_t *handled)
{
    tgd_ruleset_t  rules;

    memset(&rules, 0, sizeof(rules));
    rules.fs = TGD_FS_ABI1;
    rules.fs |= abi >= 2 ? LANDLOCK_ACCESS_FS_REFER : 0;
    rules.fs |= abi >= 3 ? TGD_FS_TRUNCATE : 0;
    rules.fs |= abi >= 5 ? TGD_FS_IOCTL_DEV : 0;
    rules.net = abi >= 4 ? TGD_NET_TCP : 0;
    rules.scoped = abi >= 6 ? TGD_SCOPES : 0;
    *handled = rules.fs;

    return (int) syscall(SYS_landlock_create_ruleset, &rules,
                         abi >= 6 ? sizeof(rules) : abi >= 4 ? 2 * sizeof(uint64_t)
                         : sizeof(uint64_t), 0);
}


static int
ruleset_allow(int rules, int dir, uint64_t access)
{
    struct landlock_path_beneath_attr  beneath;

    memset(&beneath, 0, sizeof(beneath));
    beneath.allowed_access = access;
    beneath.parent_fd = dir;

    return (int) syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath,
                         0);
}


static int
ruleset_allow_system(int rules)
{
    int     dir, rc;
    size_t  i;

    for (i = 0; i < sizeof(system_paths) / sizeof(system_paths[0]); i++) {
        dir = open(system_paths[i], O_PATH|O_CLOEXEC);
        if (dir == -1) {
            continue;
        }
        rc = ruleset_allow(rules, dir, TGD_FS_READ|LANDLOCK_ACCESS_FS_EXECUTE);
        (void) close(dir);
        if (rc == -1) {
            return -1;
        }
    }

    return 0;
}


/* the program, and the libraries that it is linked with: each a file, no directory */
static int
ruleset_allow_start(int rules, const char *program)
{
    int     file, rc;
    glob_t  found;
    size_t  i;

    memset(&found, 0, sizeof(found));
    (void) glob(program, GLOB_NOCHECK, NULL, &found);
    (void) glob(TGD_START_FILES, GLOB_APPEND|GLOB_BRACE, NULL, &found);

    for (i = 0, rc = 0; i < found.gl_pathc && rc == 0; i++) {
        file = open(found.gl_pathv[i], O_PATH|O_CLOEXEC);
        if (file == -1) {
            continue;
        }
        rc = ruleset_allow(rules, file,
                           LANDLOCK_ACCESS_FS_READ_FILE|LANDLOCK_ACCESS_FS_EXECUTE);
        (void) close(file);
    }

    globfree(&found);
    return rc;
}


static int
ruleset_apply(int rules)
{
    return (int) syscall(SYS_landlock_restrict_self, rules, 0);
}


/* A kernel without Landlock is no failure: paths are opened one by one with care, and no
 * foreign program runs in the workspace then */
static int
confine_paths(int root, bool programs)
{
    int       abi, rules, rc;
    uint64_t  handled;

    abi = landlock_abi();
    if (abi == 0) {
        return 0;
    }

    rules = ruleset_new(abi, &handled);
    if (rules == -1) {
        return -1;
    }

    rc = ruleset_allow(rules, root, (TGD_FS_READ|TGD_FS_WRITE|TGD_FS_TRUNCATE) & handled);
    if (rc == 0 && programs) {
        rc = ruleset_allow_system(rules);
    }
    if (rc == 0) {
        rc = ruleset_apply(rules);
    }

    (void) close(rules);
    paths_confined = rc == 0;
    return rc;
}


static int
confine_identity(const tgd_worker_t *worker)
{
    struct __user_cap_data_struct    none[2];
    struct __user_cap_header_struct  head = { _LINUX_CAPABILITY_VERSION_3, 0 };

    if (worker->separate
        && (setgroups(0, NULL) == -1
            || setresgid(worker->owner, worker->owner, worker->owner) == -1
            || setresuid(worker->owner, worker->owner, worker->owner) == -1))
    {
        return -1;
    }

    memset(none, 0, sizeof(none));

    /* the parent-death signal was cleared with the ids */
    if (syscall(SYS_capset, &head, none) == -1
        || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1
        || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == -1
        || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == -1)
    {
        return -1;
    }

    return 0;
}


static int
limit(int resource, rlim_t value)
{
    struct rlimit  limits, old;

    if (getrlimit((__rlimit_resource_t) resource, &old) == 0 && old.rlim_max < value) {
        value = old.rlim_max;
    }

    limits.rlim_cur = value;
    limits.rlim_max = value;
    return setrlimit((__rlimit_resource_t) resource, &limits);
}


static int
confine_resources(void)
{
    const rlim_t  mib = 1024 * 1024;

    if (limit(RLIMIT_CORE, 0) == -1
        || limit(RLIMIT_CPU, TGD_FILES_CPU_S) == -1
        || limit(RLIMIT_NOFILE, TGD_FILES_NOFILE) == -1
        || limit(RLIMIT_FSIZE, TGD_FILES_FILE_MIB * mib) == -1)
    {
        return -1;
    }

#ifndef __SANITIZE_ADDRESS__
    /* the sanitizer's own map is bigger */
    if (limit(RLIMIT_AS, TGD_FILES_MEMORY_MIB * mib) == -1) {
        return -1;
    }
#endif

    return 0;
}


int
tgd_confine_worker(const tgd_worker_t *worker, int root, bool programs)
{
    if (confine_identity(worker) == -1
        || confine_paths(root, programs) == -1
        || confine_resources() == -1)
    {
        return -1;
    }

    (void) umask(022);
    return tgd_filter_apply(worker->filter);
}


int
tgd_confine_program(const char *program, int dir)
{
    int       rules, rc;
    uint64_t  handled;

    rules = paths_confined ? ruleset_new(landlock_abi(), &handled) : -1;
    if (rules == -1) {
        return -1;
    }

    if (dir == -1) {
        rc = ruleset_allow_system(rules);
    } else {
        rc = ruleset_allow(rules, dir, TGD_FS_READ);
        rc = rc == 0 ? ruleset_allow_start(rules, program) : -1;
    }
    if (rc == 0) {
        rc = ruleset_apply(rules);
    }

    (void) close(rules);
    return rc;
}


bool
tgd_confined_paths(void)
{
    return paths_confined;
}
