/*
 * Reading and walking a workspace; see tree.h. Writing is in stage.c.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "files/stage.h"
#include "files/tree.h"


#define TGD_OPEN_TRIES     16        /* the kernel asks to try again after a rename */
#define TGD_TREE_BLOCK     (64 * 1024)
#define TGD_PATH_SHOWN     160       /* bytes of a path in a message */
#define TGD_TREE_RESOLVE  \
    (RESOLVE_BENEATH|RESOLVE_NO_SYMLINKS|RESOLVE_NO_MAGICLINKS|RESOLVE_NO_XDEV)

typedef struct {
    const tgd_tree_t   *tree;
    bool                deep;
    bool                temps;       /* visited as well, or swept */
    bool                cut;         /* something was left out */
    const char         *skip;
    tgd_tree_visit_pt   visit;
    void               *data;
    size_t              seen;
    char                path[TG_FILE_PATH_MAX + 1];
} tgd_walk_t;

typedef struct {
    int64_t  bytes;
    size_t   files;
} tgd_usage_t;

static const struct {
    int          code;
    const char  *type;
    const char  *text;
} tree_errors[] = {
    { ENOENT, "path_not_found", "workspace path not found" },
    { ENOTDIR, "path_not_found", "workspace path not found" },
    { ELOOP, "symlink_not_allowed", "symbolic links are not followed" },
    { EXDEV, "path_outside_workspace",
      "workspace path must stay inside the workspace root" },
    { EEXIST, "file_exists", "workspace file already exists" },
    { EISDIR, "not_a_regular_file", "not a regular file" },
    { ENXIO, "not_a_regular_file", "not a regular file" },
    { ENAMETOOLONG, "invalid_path", "the path is too long" },
    { ENOSPC, "quota_exceeded", "there is no room for it" },
    { EDQUOT, "quota_exceeded", "there is no room for it" },
    { EFBIG, "file_too_large", "the file would be too large" },
    { EACCES, "access_denied", "the file's mode or the system refuses it" },
    { EPERM, "access_denied", "the file's mode or the system refuses it" },
    { 0, "io_failed", "the file could not be worked on" }
};


int
tgd_tree_open_at(int dir, const char *path, int flags)
{
    int              i, fd;
    struct open_how  how;

    memset(&how, 0, sizeof(how));
    how.flags = (uint64_t) (uint32_t) (flags | O_CLOEXEC);
    how.resolve = TGD_TREE_RESOLVE;

    for (i = 0; i < TGD_OPEN_TRIES; i++) {
        fd = (int) syscall(SYS_openat2, dir, path, &how, sizeof(how));
        if (fd != -1 || (errno != EAGAIN && errno != EINTR)) {
            return fd;
        }
    }

    return -1;
}


int
tgd_tree_open(const tgd_tree_t *tree, const char *path, int flags)
{
    return tgd_tree_open_at(tree->root, path, flags);
}


bool
tgd_tree_error(tgd_error_t *error, int code, const char *path)
{
    size_t  i, shown;

    for (i = 0; tree_errors[i].code != 0 && tree_errors[i].code != code; i++) {
        /* the last one is for all others */
    }

    /* not in the middle of a character */
    shown = strlen(path);
    if (shown > TGD_PATH_SHOWN) {
        shown = TGD_PATH_SHOWN;
        while (shown > 0 && ((uint8_t) path[shown] & 0xc0) == 0x80) {
            shown--;
        }
    }

    tgd_error_set(error, tree_errors[i].type, NULL, "%s: %.*s", tree_errors[i].text,
                  (int) shown, path);
    return false;
}


static bool
read_all(int fd, size_t max, bool text, tgd_file_t *file)
{
    size_t   want;
    ssize_t  n;

    /* one byte more than allowed tells a file that grew from one that did not */
    file->data = malloc(max + 1);
    if (file->data == NULL) {
        return false;
    }

    for (file->len = 0; file->len <= max; file->len += (size_t) n) {
        want = max + 1 - file->len;
        if (text && want > TGD_TREE_BLOCK) {
            want = TGD_TREE_BLOCK;
        }

        n = read(fd, file->data + file->len, want);
        if (n == -1 && errno == EINTR) {
            n = 0;
            continue;
        }
        if (n == -1) {
            return false;
        }
        if (n == 0) {
            break;
        }

        if (text && memchr(file->data + file->len, '\0', (size_t) n) != NULL) {
            file->len += (size_t) n;
            break;
        }
    }

    return true;
}


static bool
read_file(const tgd_tree_t *tree, const char *path, size_t max, bool text,
    tgd_file_t *file, tgd_error_t *error)
{
    int          fd, code;
    bool         done;
    struct stat  st;

    memset(file, 0, sizeof(*file));

    /* a FIFO or a device must not hold us up */
    fd = tgd_tree_open(tree, path, O_RDONLY|O_NONBLOCK|O_NOCTTY);
    if (fd == -1 || fstat(fd, &st) == -1) {
        code = errno;
        if (fd != -1) {
            (void) close(fd);
        }
        return tgd_tree_error(error, code, path);
    }

    if (!S_ISREG(st.st_mode)) {
        (void) close(fd);
        return tgd_tree_error(error, EISDIR, path);
    }

    file->mode = st.st_mode & 0777;
    file->mtime_ns = (int64_t) st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;

    done = st.st_size <= (off_t) max && read_all(fd, max, text, file);
    code = errno;
    (void) close(fd);

    if (st.st_size > (off_t) max || (done && file->len > max)) {
        tgd_file_free(file);
        tgd_error_set(error, "file_too_large", NULL, "file is larger than %zu MiB",
                      max >> 20);
        return false;
    }

    if (!done) {
        tgd_file_free(file);
        return tgd_tree_error(error, code, path);
    }

    return true;
}


bool
tgd_tree_read(const tgd_tree_t *tree, const char *path, size_t max, tgd_file_t *file,
    tgd_error_t *error)
{
    if (!read_file(tree, path, max, false, file, error)) {
        return false;
    }

    tg_json_sha256_hex((tg_str_t) { file->len, file->data }, file->hash);
    return true;
}


bool
tgd_tree_read_text(const tgd_tree_t *tree, const char *path, size_t max, tgd_file_t *file,
    tgd_error_t *error)
{
    return read_file(tree, path, max, true, file, error);
}


void
tgd_file_free(tgd_file_t *file)
{
    free(file->data);
    file->data = NULL;
    file->len = 0;
}


/* An entry of a directory that a walk has nothing to do with. A directory is none of ours
 * whatever its name is. */
static bool
walk_passes(const tgd_walk_t *walk, int dir, const char *name, struct stat *st)
{
    if (fstatat(dir, name, st, AT_SYMLINK_NOFOLLOW) == -1) {
        return true;
    }

    return S_ISREG(st->st_mode) && tgd_stage_is_temp(name)
           && (!walk->temps || tgd_stage_sweep(dir, name, st));
}


/* one directory; len is the length of its path in walk->path, 0 for the workspace */
static tgd_walk_e
walk_directory(tgd_walk_t *walk, int fd, size_t len, size_t depth)
{
    int             child;
    DIR            *list;
    size_t          n;
    tgd_walk_e      rc;
    struct stat     st;
    struct dirent  *entry;

    list = fdopendir(fd);
    if (list == NULL) {
        (void) close(fd);
        return TGD_WALK_FAILED;
    }

    rc = TGD_WALK_WHOLE;

    while (rc == TGD_WALK_WHOLE && (entry = readdir(list)) != NULL) {
        n = strlen(entry->d_name);

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }

        if (walk->seen++ >= TGD_TREE_ENTRIES_MAX
            || tgd_monotonic_ms() > walk->tree->deadline)
        {
            rc = TGD_WALK_CUT;
            break;
        }

        if (walk_passes(walk, dirfd(list), entry->d_name, &st)) {
            continue;
        }

        if (len + n + 1 > TG_FILE_PATH_MAX) {
            walk->cut = true;
            continue;
        }

        if (len != 0) {
            walk->path[len] = '/';
        }
        memcpy(walk->path + len + (len != 0), entry->d_name, n + 1);
        n += len + (len != 0);

        if (!walk->visit(walk->data, walk->path, &st)) {
            rc = TGD_WALK_CUT;
            break;
        }

        if (!walk->deep || !S_ISDIR(st.st_mode)
            || (walk->skip != NULL && strcmp(entry->d_name, walk->skip) == 0))
        {
            continue;
        }

        /* one deep branch shall not hide the others */
        if (depth == TGD_TREE_DEPTH_MAX) {
            walk->cut = true;
            continue;
        }

        /* one that went away, or that its owner has closed, is left out */
        child = tgd_tree_open_at(dirfd(list), entry->d_name, O_RDONLY|O_DIRECTORY);
        if (child != -1) {
            rc = walk_directory(walk, child, n, depth + 1);
        }
    }

    (void) closedir(list);
    return rc;
}


static tgd_walk_e
walk_run(tgd_walk_t *walk, const char *path)
{
    int         fd;
    size_t      len;
    tgd_walk_e  rc;

    fd = tgd_tree_open(walk->tree, path, O_RDONLY|O_DIRECTORY);
    if (fd == -1) {
        return TGD_WALK_FAILED;
    }

    len = strcmp(path, ".") == 0 ? 0 : strlen(path);
    memcpy(walk->path, path, len);

    rc = walk_directory(walk, fd, len, 0);
    return rc == TGD_WALK_WHOLE && walk->cut ? TGD_WALK_CUT : rc;
}


tgd_walk_e
tgd_tree_walk(const tgd_tree_t *tree, const char *path, bool deep, const char *skip,
    tgd_tree_visit_pt visit, void *data)
{
    static tgd_walk_t  walk;

    memset(&walk, 0, sizeof(walk));
    walk.tree = tree;
    walk.deep = deep;
    walk.skip = skip;
    walk.visit = visit;
    walk.data = data;

    return walk_run(&walk, path);
}


static bool
usage_visit(void *data, const char *path, const struct stat *st)
{
    tgd_usage_t  *usage;

    (void) path;
    usage = data;
    usage->files++;
    usage->bytes += S_ISREG(st->st_mode) ? (int64_t) st->st_blocks * 512 : 0;

    return usage->files <= TGD_WORKSPACE_FILES;
}


bool
tgd_tree_room(const tgd_tree_t *tree, int64_t bytes, size_t files, tgd_error_t *error)
{
    tgd_walk_e         rc;
    tgd_usage_t        usage = { 0, 0 };
    static tgd_walk_t  walk;

    memset(&walk, 0, sizeof(walk));
    walk.tree = tree;
    walk.deep = true;
    walk.temps = true;
    walk.visit = usage_visit;
    walk.data = &usage;

    rc = walk_run(&walk, ".");
    if (rc == TGD_WALK_FAILED) {
        return tgd_tree_error(error, errno, ".");
    }

    if (rc == TGD_WALK_CUT && usage.files <= TGD_WORKSPACE_FILES) {
        tgd_error_set(error, "quota_exceeded", NULL,
                      "the workspace could not be counted: it has folders deeper than %d,"
                      " or too much in it for the time; delete something",
                      TGD_TREE_DEPTH_MAX);
        return false;
    }

    if (usage.files + files > TGD_WORKSPACE_FILES
        || usage.bytes + bytes > (int64_t) TGD_WORKSPACE_MIB << 20)
    {
        tgd_error_set(error, "quota_exceeded", NULL,
                      "the workspace would be over %d MiB or %d files; delete something",
                      TGD_WORKSPACE_MIB, TGD_WORKSPACE_FILES);
        return false;
    }

    return true;
}
