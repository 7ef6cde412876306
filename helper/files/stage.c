/*
 * Writing into a workspace: new content goes to a temporary file in the same directory,
 * to the disk, and then into its place in one step. Whoever reads meanwhile finds the
 * old content or the new, and so does everybody after a crash.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "files/stage.h"
#include "files/tree.h"


#define TGD_TEMP_HEAD   ".toolgate-"
#define TGD_TEMP_TAIL   ".tmp"
#define TGD_TEMP_TRIES  8


bool
tgd_stage_is_temp(const char *name)
{
    size_t  n;

    n = strlen(name);
    return strncmp(name, TGD_TEMP_HEAD, sizeof(TGD_TEMP_HEAD) - 1) == 0
           && n > sizeof(TGD_TEMP_HEAD) + sizeof(TGD_TEMP_TAIL) - 2
           && strcmp(name + n - (sizeof(TGD_TEMP_TAIL) - 1), TGD_TEMP_TAIL) == 0;
}


bool
tgd_stage_sweep(int dir, const char *name, const struct stat *st)
{
    return time(NULL) - st->st_mtim.tv_sec > TGD_TEMP_STALE_S
           && unlinkat(dir, name, 0) == 0;
}


/* one directory further; with make, one that is missing is made */
static int
step(int dir, const char *name, bool make, bool *made)
{
    int  next;

    *made = false;
    next = tgd_tree_open_at(dir, name, O_RDONLY|O_DIRECTORY);

    if (next == -1 && errno == ENOENT && make) {
        *made = mkdirat(dir, name, 0755) == 0;

        if (*made || errno == EEXIST) {
            next = tgd_tree_open_at(dir, name, O_RDONLY|O_DIRECTORY);
        }
    }

    return next;
}


/* each from the one before: paths do not cost their length for each of their parts */
static int
parent_open(const tgd_tree_t *tree, const char *path, bool make, const char **name,
    tgd_made_t *dirs)
{
    int     dir, next, error;
    bool    made;
    char    part[TG_FILE_NAME_MAX + 1];
    size_t  n;

    dirs->count = 0;
    dir = tgd_tree_open(tree, ".", O_RDONLY|O_DIRECTORY);

    for (*name = path; dir != -1; *name += n + 1) {
        n = strcspn(*name, "/");
        if ((*name)[n] == '\0') {
            break;
        }

        if (n >= sizeof(part)) {
            (void) close(dir);
            errno = ENAMETOOLONG;
            return -1;
        }

        memcpy(part, *name, n);
        part[n] = '\0';
        next = step(dir, part, make, &made);

        if (made) {
            dirs->count++;
            dirs->len = (size_t) (*name - path) + n;
        }

        error = errno;
        (void) close(dir);
        errno = error;
        dir = next;
    }

    return dir;
}


int
tgd_tree_parent(const tgd_tree_t *tree, const char *path, bool make, const char **name)
{
    tgd_made_t  dirs;

    return parent_open(tree, path, make, name, &dirs);
}


/* a new file with a name of its own */
static int
temp_open(tgd_staged_t *staged)
{
    int       i, fd;
    uint64_t  number;

    for (i = 0, fd = -1; i < TGD_TEMP_TRIES; i++) {
        if (getrandom(&number, sizeof(number), 0) != (ssize_t) sizeof(number)) {
            break;
        }
        (void) snprintf(staged->temp, sizeof(staged->temp),
                        TGD_TEMP_HEAD "%016llx" TGD_TEMP_TAIL,
                        (unsigned long long) number);

        fd = openat(staged->dir, staged->temp, O_WRONLY|O_CREAT|O_EXCL|O_NOFOLLOW
                                               |O_CLOEXEC, 0600);
        if (fd != -1 || errno != EEXIST) {
            break;
        }
    }

    return fd;
}


static int
temp_fill(int fd, tg_str_t content, mode_t mode)
{
    size_t   at;
    ssize_t  n;

    for (at = 0; at < content.len; at += (size_t) n) {
        n = write(fd, content.data + at, content.len - at);
        if (n == -1) {
            if (errno != EINTR) {
                return -1;
            }
            n = 0;
        }
    }

    return fchmod(fd, mode & 0777) == -1 ? -1 : fsync(fd);
}


static int64_t
mtime_ns(const struct stat *st)
{
    return (int64_t) st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}


bool
tgd_tree_stage(const tgd_tree_t *tree, const char *path, tg_str_t content, mode_t mode,
    tgd_staged_t *staged, tgd_error_t *error)
{
    int          fd, code;
    const char  *name;
    struct stat  st;

    memset(staged, 0, sizeof(*staged));

    staged->dir = parent_open(tree, path, true, &name, &staged->made);
    if (staged->dir == -1) {
        return tgd_tree_error(error, errno, path);
    }

    (void) snprintf(staged->name, sizeof(staged->name), "%s", name);

    fd = temp_open(staged);
    if (fd == -1) {
        code = errno;
        (void) close(staged->dir);
        staged->dir = -1;
        return tgd_tree_error(error, code, path);
    }

    code = temp_fill(fd, content, mode) == -1 || fstat(fd, &st) == -1 ? errno : 0;
    (void) close(fd);

    if (code != 0) {
        tgd_tree_settle(staged, true);
        return tgd_tree_error(error, code, path);
    }

    staged->dev = st.st_dev;
    staged->ino = st.st_ino;
    staged->mtime_ns = mtime_ns(&st);
    return true;
}


/* what may be replaced: nothing, or a regular file */
static int
place_check(const tgd_staged_t *staged, bool overwrite, bool *there)
{
    struct stat  st;

    *there = fstatat(staged->dir, staged->name, &st, AT_SYMLINK_NOFOLLOW) == 0;

    if (!*there) {
        return errno == ENOENT ? 0 : errno;
    }

    if (S_ISLNK(st.st_mode)) {
        return ELOOP;
    }

    if (!S_ISREG(st.st_mode)) {
        return EISDIR;
    }

    return overwrite ? 0 : EEXIST;
}


bool
tgd_tree_place(tgd_staged_t *staged, const char *path, bool overwrite, bool keep,
    tgd_error_t *error)
{
    int       code;
    bool      there;
    unsigned  flags;

    code = place_check(staged, overwrite, &there);

    if (code == 0) {
        flags = 0;
        if (!there && (!overwrite || keep)) {
            flags = RENAME_NOREPLACE;

        } else if (keep) {
            flags = RENAME_EXCHANGE;
        }

        if (renameat2(staged->dir, staged->temp, staged->dir, staged->name, flags) == -1) {
            code = errno;

        } else {
            staged->placed = true;
            staged->exchanged = flags == RENAME_EXCHANGE;
            /* a name that is not on the disk yet is the loss of a power cut only */
            (void) fsync(staged->dir);
        }
    }

    return code == 0 ? true : tgd_tree_error(error, code, path);
}


/* What is in the place goes only while it is still ours: commands of the account write
 * meanwhile, and theirs is the newer content then. The number of a file that went is given
 * to the next one, and a file can be written in its place: hence the time as well. */
static void
unplace(const tgd_staged_t *staged)
{
    struct stat  st;

    if (fstatat(staged->dir, staged->name, &st, AT_SYMLINK_NOFOLLOW) == -1
        || st.st_dev != staged->dev || st.st_ino != staged->ino
        || mtime_ns(&st) != staged->mtime_ns)
    {
        return;
    }

    if (staged->exchanged) {
        (void) renameat2(staged->dir, staged->temp, staged->dir, staged->name,
                         RENAME_EXCHANGE);
    } else {
        (void) unlinkat(staged->dir, staged->name, 0);
    }
}


void
tgd_tree_settle(tgd_staged_t *staged, bool undo)
{
    if (staged->dir == -1) {
        return;
    }

    if (undo && staged->placed) {
        unplace(staged);
    }

    if (!staged->placed || staged->exchanged) {
        (void) unlinkat(staged->dir, staged->temp, 0);
    }

    (void) close(staged->dir);
    staged->dir = -1;
}


void
tgd_tree_unmake(const tgd_tree_t *tree, const char *path, const tgd_made_t *made)
{
    int          dir, rc;
    char         part[TG_FILE_PATH_MAX + 1];
    size_t       i;
    const char  *name;

    memcpy(part, path, made->len);
    part[made->len] = '\0';

    for (i = 0, rc = 0; rc == 0 && i < made->count; i++) {
        dir = tgd_tree_parent(tree, part, false, &name);
        if (dir == -1) {
            break;
        }

        rc = unlinkat(dir, name, AT_REMOVEDIR);
        (void) close(dir);
        part[name == part ? 0 : name - part - 1] = '\0';
    }
}
