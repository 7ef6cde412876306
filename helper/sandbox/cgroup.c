/*
 * Control groups; see cgroup.h. A control file that does not exist is never an
 * error by itself: kernels and containers differ in what they show.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sandbox/cgroup.h"
#include "sandbox/cgroup_find.h"


#define TGD_CGROUP_TRIES      50        /* 10 ms each: dying processes need a moment */
#define TGD_CPU_PERIOD_US     100000

static const char  *kind_names[TGD_CGROUP_KINDS] = { "memory", "pids", "cpu" };


static int
write_text(int dir, const char *path, const char *text)
{
    int      fd, error;
    ssize_t  n;

    fd = openat(dir, path, O_WRONLY|O_CLOEXEC);
    if (fd == -1) {
        return -1;
    }

    n = write(fd, text, strlen(text));
    error = errno;
    (void) close(fd);
    errno = error;

    return n == (ssize_t) strlen(text) ? 0 : -1;
}


static void
kill_group(int dir)
{
    char  *text, *p, *end;
    long   pid;

    /* one write where the kernel has it, else one by one */
    (void) write_text(dir, "cgroup.kill", "1");

    text = tgd_cgroup_text(dir, "cgroup.procs");
    if (text == NULL) {
        return;
    }

    for (p = text; *p != '\0'; p = end) {
        pid = strtol(p, &end, 10);
        if (end == p) {
            break;
        }
        if (pid > 1) {
            (void) kill((pid_t) pid, SIGKILL);
        }
        end += strspn(end, "\n");
    }

    free(text);
}


/* kills and removes one left-over directory; the tree is one level deep */
static void
remove_group(int parent, const char *name)
{
    int             dir, i, copy;
    DIR            *list;
    struct dirent  *entry;

    dir = openat(parent, name, O_RDONLY|O_DIRECTORY|O_NOFOLLOW|O_CLOEXEC);
    if (dir == -1) {
        return;
    }

    copy = dup(dir);
    list = copy == -1 ? NULL : fdopendir(copy);
    while (list != NULL && (entry = readdir(list)) != NULL) {
        if (entry->d_type == DT_DIR && entry->d_name[0] == 's') {
            remove_group(dir, entry->d_name);
        }
    }

    if (list != NULL) {
        (void) closedir(list);
    }

    for (i = 0; i < TGD_CGROUP_TRIES; i++) {
        if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT) {
            break;
        }
        kill_group(dir);
        (void) usleep(10000);
    }

    (void) close(dir);
}


/* removes what the record of an earlier run names; only directories named like ours */
static void
remove_recorded(const char *name, int state_dir, const char *record)
{
    int    parent;
    char  *text, *line, *next, *slash;

    text = tgd_cgroup_text(state_dir, record);

    for (line = text; line != NULL && *line != '\0'; line = next) {
        next = strchr(line, '\n');
        if (next == NULL) {
            break;
        }
        *next++ = '\0';

        slash = strrchr(line, '/');
        if (line[0] != '/' || slash == NULL || strcmp(slash + 1, name) != 0) {
            continue;
        }

        *slash = '\0';
        parent = open(line, O_RDONLY|O_DIRECTORY|O_CLOEXEC);
        if (parent != -1) {
            remove_group(parent, name);
            (void) close(parent);
        }
    }

    free(text);
    (void) unlinkat(state_dir, record, 0);
}


/* lets children of our v2 group have controllers; false when it can not be done */
static bool
enable_v2(int self, const char *controller)
{
    int    leaf;
    char   word[32], *procs, pid[32];
    bool   done, alone;

    (void) snprintf(word, sizeof(word), "+%s", controller);
    if (write_text(self, "cgroup.subtree_control", word) == 0) {
        return true;
    }

    if (errno != EBUSY) {
        return false;
    }

    /* a group with controllers for children may hold no process: when the helper
     * has the group for itself it steps aside into a leaf */
    procs = tgd_cgroup_text(self, "cgroup.procs");
    (void) snprintf(pid, sizeof(pid), "%d\n%d\n", (int) getppid(), (int) getpid());
    alone = procs != NULL && strcmp(procs, pid) == 0;
    free(procs);

    if (!alone || (mkdirat(self, "toolgated-front", 0755) == -1 && errno != EEXIST)) {
        return false;
    }

    leaf = openat(self, "toolgated-front", O_RDONLY|O_DIRECTORY|O_CLOEXEC);
    if (leaf == -1) {
        return false;
    }

    (void) snprintf(pid, sizeof(pid), "%d", (int) getppid());
    done = write_text(leaf, "cgroup.procs", pid) == 0;
    (void) snprintf(pid, sizeof(pid), "%d", (int) getpid());
    done = write_text(leaf, "cgroup.procs", pid) == 0 && done;
    (void) close(leaf);

    return done && write_text(self, "cgroup.subtree_control", word) == 0;
}


static bool
v2_offers(int self, const char *controller)
{
    char  *text, *word, *rest;
    bool   found;

    text = tgd_cgroup_text(self, "cgroup.controllers");
    found = false;

    for (word = text == NULL ? NULL : strtok_r(text, " \n", &rest); word != NULL;
         word = strtok_r(NULL, " \n", &rest))
    {
        found = found || strcmp(word, controller) == 0;
    }

    free(text);
    return found;
}


static void
note_record(int state_dir, const char *record, const char *where, const char *name)
{
    int  fd;

    fd = openat(state_dir, record, O_WRONLY|O_CREAT|O_APPEND|O_CLOEXEC, 0600);
    if (fd != -1) {
        (void) dprintf(fd, "%s%s%s\n", where,
                       where[strlen(where) - 1] == '/' ? "" : "/", name);
        (void) close(fd);
    }
}


void
tgd_cgroup_init(tgd_cgroup_t *cgroup, const char *name, int state_dir,
    const char *record)
{
    int    i, self;
    char  *mountinfo, *cgroups, where[TGD_CGROUP_PATH_MAX];

    memset(cgroup, 0, sizeof(*cgroup));
    remove_recorded(name, state_dir, record);

    mountinfo = tgd_cgroup_text(AT_FDCWD, "/proc/self/mountinfo");
    cgroups = tgd_cgroup_text(AT_FDCWD, "/proc/self/cgroup");

    for (i = 0; i < TGD_CGROUP_KINDS; i++) {
        cgroup->base[i] = -1;
        cgroup->missing |= 1u << i;

        if (mountinfo == NULL || cgroups == NULL) {
            continue;
        }

        self = tgd_cgroup_open(mountinfo, cgroups, kind_names[i], where);
        if (self == -1) {
            self = tgd_cgroup_open(mountinfo, cgroups, NULL, where);
            if (self == -1 || !v2_offers(self, kind_names[i])
                || !enable_v2(self, kind_names[i]))
            {
                if (self != -1) {
                    (void) close(self);
                }
                continue;
            }
            cgroup->v2[i] = true;
        }

        if (mkdirat(self, name, 0755) == 0 || errno == EEXIST) {
            cgroup->base[i] = openat(self, name, O_RDONLY|O_DIRECTORY|O_CLOEXEC);
            note_record(state_dir, record, where, name);
        }

        if (cgroup->base[i] != -1
            && (!cgroup->v2[i] || enable_v2(cgroup->base[i], kind_names[i])))
        {
            cgroup->missing &= ~(1u << i);
        }

        (void) close(self);
    }

    free(mountinfo);
    free(cgroups);
}


tgd_limits_e
tgd_cgroup_kind(const tgd_cgroup_t *cgroup)
{
    /* memory decides: the other two have rlimits that come near */
    if (cgroup->missing & TGD_CGROUP_MEMORY) {
        return TGD_LIMITS_RLIMIT;
    }

    return cgroup->v2[0] ? TGD_LIMITS_CGROUP2 : TGD_LIMITS_CGROUP1;
}


static int
set_limits(int dir, int kind, bool v2, uint32_t memory_mib, uint32_t pids)
{
    char  text[64];

    switch (1u << kind) {

    case TGD_CGROUP_MEMORY:
        (void) snprintf(text, sizeof(text), "%llu",
                        (unsigned long long) memory_mib * 1024 * 1024);
        if (v2) {
            (void) write_text(dir, "memory.swap.max", "0");
            return write_text(dir, "memory.max", text);
        }
        if (write_text(dir, "memory.limit_in_bytes", text) == -1) {
            return -1;
        }
        /* only there when the kernel counts swap */
        (void) write_text(dir, "memory.memsw.limit_in_bytes", text);
        return 0;

    case TGD_CGROUP_PIDS:
        /* one more for the supervisor */
        (void) snprintf(text, sizeof(text), "%u", pids + 1);
        return write_text(dir, "pids.max", text);

    default:
        (void) snprintf(text, sizeof(text), v2 ? "%d %d" : "%d",
                        TGD_CPUS * TGD_CPU_PERIOD_US, TGD_CPU_PERIOD_US);
        return write_text(dir, v2 ? "cpu.max" : "cpu.cfs_quota_us", text);
    }
}


int
tgd_cgroup_create(const tgd_cgroup_t *cgroup, uint32_t id, uint32_t memory_mib,
    uint32_t pids, tgd_cgroup_events_t *events)
{
    int   i, dir, rc, error;
    char  name[32];

    events->memory_events = -1;
    events->pids_events = -1;
    (void) snprintf(name, sizeof(name), "s%u", id);

    for (i = 0; i < TGD_CGROUP_KINDS; i++) {
        if (cgroup->missing & (1u << i)) {
            continue;
        }

        if (mkdirat(cgroup->base[i], name, 0755) == -1 && errno != EEXIST) {
            return -1;
        }

        dir = openat(cgroup->base[i], name, O_RDONLY|O_DIRECTORY|O_CLOEXEC);
        if (dir == -1) {
            return -1;
        }

        rc = set_limits(dir, i, cgroup->v2[i], memory_mib, pids);
        error = errno;

        if (1u << i == TGD_CGROUP_MEMORY) {
            events->memory_events = openat(dir, cgroup->v2[i] ? "memory.events"
                                                              : "memory.oom_control",
                                           O_RDONLY|O_CLOEXEC);
        } else if (1u << i == TGD_CGROUP_PIDS) {
            events->pids_events = openat(dir, "pids.events", O_RDONLY|O_CLOEXEC);
        }

        (void) close(dir);
        if (rc == -1) {
            errno = error;
            return -1;
        }
    }

    return 0;
}


int
tgd_cgroup_limit(const tgd_cgroup_t *cgroup, uint32_t id, uint32_t memory_mib,
    uint32_t pids)
{
    int   i, dir, rc;
    char  name[32];

    (void) snprintf(name, sizeof(name), "s%u", id);
    rc = 0;

    for (i = 0; i < TGD_CGROUP_KINDS && rc == 0; i++) {
        if (cgroup->missing & (1u << i)) {
            continue;
        }

        dir = openat(cgroup->base[i], name, O_RDONLY|O_DIRECTORY|O_CLOEXEC);
        if (dir == -1) {
            return -1;
        }

        rc = set_limits(dir, i, cgroup->v2[i], memory_mib, pids);
        (void) close(dir);
    }

    return rc;
}


int
tgd_cgroup_join(const tgd_cgroup_t *cgroup, uint32_t id, pid_t pid)
{
    int   i;
    char  path[64], text[32];

    (void) snprintf(path, sizeof(path), "s%u/cgroup.procs", id);
    (void) snprintf(text, sizeof(text), "%d", (int) pid);

    for (i = 0; i < TGD_CGROUP_KINDS; i++) {
        if (!(cgroup->missing & (1u << i))
            && write_text(cgroup->base[i], path, text) == -1)
        {
            return -1;
        }
    }

    return 0;
}


void
tgd_cgroup_remove(const tgd_cgroup_t *cgroup, uint32_t id)
{
    int   i;
    char  name[32];

    (void) snprintf(name, sizeof(name), "s%u", id);

    for (i = 0; i < TGD_CGROUP_KINDS; i++) {
        if (cgroup->base[i] != -1
            && unlinkat(cgroup->base[i], name, AT_REMOVEDIR) == -1 && errno != ENOENT)
        {
            remove_group(cgroup->base[i], name);
        }
    }
}


void
tgd_cgroup_done(tgd_cgroup_t *cgroup, const char *name, int state_dir,
    const char *record)
{
    int  i;

    for (i = 0; i < TGD_CGROUP_KINDS; i++) {
        if (cgroup->base[i] != -1) {
            (void) close(cgroup->base[i]);
            cgroup->base[i] = -1;
        }
    }

    remove_recorded(name, state_dir, record);
}


uint64_t
tgd_cgroup_counter(int fd, const char *key)
{
    char        text[512];
    size_t      len;
    ssize_t     n;
    const char *p;

    if (fd == -1) {
        return 0;
    }

    n = pread(fd, text, sizeof(text) - 1, 0);
    if (n <= 0) {
        return 0;
    }
    text[n] = '\0';

    len = strlen(key);
    for (p = text; p != NULL; p = strchr(p, '\n'), p = p == NULL ? NULL : p + 1) {
        if (strncmp(p, key, len) == 0 && p[len] == ' ') {
            return strtoull(p + len + 1, NULL, 10);
        }
    }

    return 0;
}
