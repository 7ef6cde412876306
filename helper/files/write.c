/*
 * write_workspace_file, write_workspace_files, delete_workspace_file. Several files are
 * written all or none: each waits beside its place until all are on the disk, and what
 * is in place already goes back when a later one can not go in.
 */

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "files/work.h"


#define TGD_WRITE_FILES_MAX  100
#define TGD_WRITE_MODE       0644

typedef struct {
    char           path[TG_FILE_PATH_MAX + 1];
    tg_str_t       content;
    mode_t         mode;
    tgd_staged_t   staged;
} tgd_write_t;

typedef struct {
    tgd_write_t  *items;          /* owned */
    size_t        count;
    bool          many;
    bool          overwrite;
    bool          truncated;      /* more were given than are written */
} tgd_writes_t;


static bool
write_content(tgd_work_t *work, json_t *json, tgd_write_t *item)
{
    if (!json_is_string(json)) {
        return tgd_work_fail(work, "invalid_argument", "content",
                             json == NULL ? "is required" : "must be a string");
    }

    item->content.data = json_string_value(json);
    item->content.len = json_string_length(json);

    if (!tgd_arg_no_nul(work, "content", item->content)) {
        return false;
    }

    if (item->content.len > TG_FILE_TEXT_MAX) {
        return tgd_work_fail(work, "file_too_large", "content", "over 2 MiB");
    }

    return true;
}


/* looks at what is there; grows by what the write will add */
static bool
write_before(tgd_work_t *work, tgd_write_t *item, bool overwrite, int64_t *bytes,
    size_t *files)
{
    int          fd;
    struct stat  st;

    item->mode = TGD_WRITE_MODE;

    if (strcmp(item->path, ".") == 0) {
        return tgd_tree_error(&work->error, EISDIR, item->path);
    }

    fd = tgd_tree_open(&work->tree, item->path, O_PATH);

    if (fd == -1 && errno == ENOENT) {
        *bytes += (int64_t) item->content.len;
        (*files)++;
        return true;
    }

    if (fd == -1 || fstat(fd, &st) == -1) {
        return tgd_tree_error(&work->error, errno, item->path);
    }

    (void) close(fd);

    if (!S_ISREG(st.st_mode)) {
        return tgd_tree_error(&work->error, EISDIR, item->path);
    }

    if (!overwrite) {
        return tgd_tree_error(&work->error, EEXIST, item->path);
    }

    item->mode = st.st_mode & 0777;
    /* as the bytes of a workspace are counted: a hole takes no room and gives none */
    *bytes += (int64_t) item->content.len - (int64_t) st.st_blocks * 512;
    return true;
}


/* one of them is a folder of the other */
static bool
path_holds(const char *a, const char *b)
{
    size_t  n, m;

    n = strlen(a);
    m = strlen(b);

    return n < m ? b[n] == '/' && memcmp(a, b, n) == 0
                 : m < n && a[m] == '/' && memcmp(a, b, m) == 0;
}


/* an item against those before it */
static bool
write_alone(tgd_work_t *work, const tgd_writes_t *writes, size_t at)
{
    size_t       i;
    const char  *path, *other;

    path = writes->items[at].path;

    for (i = 0; i < at; i++) {
        other = writes->items[i].path;

        if (strcmp(path, other) == 0) {
            return tgd_work_fail(work, "duplicate_path", "path",
                                 "is given twice in one call");
        }

        if (path_holds(path, other)) {
            return tgd_work_fail(work, "not_a_regular_file", "path",
                                 "is a file and a folder in one call");
        }
    }

    return true;
}


static bool
writes_check(tgd_work_t *work, tgd_writes_t *writes, size_t *at)
{
    size_t   files;
    int64_t  bytes;

    bytes = 0;
    files = 0;

    for (*at = 0; *at < writes->count; (*at)++) {
        if (!write_alone(work, writes, *at)
            || !write_before(work, &writes->items[*at], writes->overwrite, &bytes, &files))
        {
            return false;
        }
    }

    return tgd_tree_room(&work->tree, bytes < 0 ? 0 : bytes, files, &work->error);
}


static bool
writes_stage(tgd_work_t *work, tgd_writes_t *writes, size_t *at)
{
    tgd_write_t  *item;

    for (*at = 0; *at < writes->count; (*at)++) {
        item = &writes->items[*at];

        if (!tgd_tree_stage(&work->tree, item->path, item->content, item->mode,
                            &item->staged, &work->error))
        {
            return false;
        }
    }

    /* one alone is whole at any time */
    return writes->count == 1 || work->commit()
           || tgd_work_fail(work, "cancelled", NULL, "the call was cancelled");
}


static bool
writes_place(tgd_work_t *work, tgd_writes_t *writes, size_t *at)
{
    tgd_write_t  *item;

    for (*at = 0; *at < writes->count; (*at)++) {
        item = &writes->items[*at];

        if (!tgd_tree_place(&item->staged, item->path, writes->overwrite,
                            writes->count > 1, &work->error))
        {
            return false;
        }
    }

    return true;
}


/* all of them, or none */
static bool
writes_commit(tgd_work_t *work, tgd_writes_t *writes, size_t *at)
{
    bool    done;
    size_t  i;

    done = writes_stage(work, writes, at) && writes_place(work, writes, at);

    /* the last one that went in comes out first */
    for (i = writes->count; i > 0; i--) {
        tgd_tree_settle(&writes->items[i - 1].staged, !done);
        if (!done) {
            tgd_tree_unmake(&work->tree, writes->items[i - 1].path,
                            &writes->items[i - 1].staged.made);
        }
    }

    return done;
}


static void
writes_answer(tgd_work_t *work, const tgd_writes_t *writes)
{
    char                hash[TGD_HASH_HEX + 1];
    size_t              i;
    bool                cut;
    const tgd_write_t  *item;

    cut = writes->truncated;
    (void) tg_buf_cstr(&work->out, writes->many ? "{\"ok\":true,\"written\":["
                                                : "{\"ok\":true,");

    for (i = 0; i < writes->count; i++) {
        item = &writes->items[i];

        /* who has written a file knows what is in it */
        tg_json_sha256_hex(item->content, hash);
        tgd_work_knows(work, item->path, hash);

        /* they are written, so it can only be said in short */
        if (work->out.len > TGD_WORK_LIST_MAX) {
            cut = true;
            continue;
        }

        if (writes->many) {
            (void) tg_buf_cstr(&work->out, i == 0 ? "{" : ",{");
        }

        tgd_out_path(&work->out, "path", item->path);
        if (!writes->many) {
            (void) tg_buf_char(&work->out, ',');
            tgd_out_absolute(&work->out, item->path);
        }
        (void) tg_buf_printf(&work->out, ",\"size\":%zu}", item->content.len);
    }

    if (writes->many) {
        (void) tg_buf_printf(&work->out, "],\"truncated\":%s}",
                             cut ? "true" : "false");
    }
}


static bool
writes_run(tgd_work_t *work, tgd_writes_t *writes)
{
    bool    done;
    size_t  at;

    done = writes_check(work, writes, &at) && writes_commit(work, writes, &at);

    if (done) {
        writes_answer(work, writes);

    } else if (writes->many && at < writes->count) {
        (void) tg_buf_printf(&work->about, ",\"failed_file_index\":%zu", at);
    }

    return done;
}


static bool
writes_alloc(tgd_work_t *work, tgd_writes_t *writes)
{
    size_t  i;

    writes->items = calloc(writes->count, sizeof(tgd_write_t));
    if (writes->items == NULL) {
        return tgd_work_fail(work, "io_failed", NULL, "out of memory");
    }

    for (i = 0; i < writes->count; i++) {
        writes->items[i].staged.dir = -1;
    }

    return true;
}


bool
tgd_files_write(tgd_work_t *work)
{
    bool          done;
    tgd_writes_t  writes = { NULL, 1, false, true, false };

    static const char *const  names[] = { "path", "content", "overwrite", NULL };

    if (!tgd_arg_known(work, names)
        || !tgd_arg_flag(work, "overwrite", &writes.overwrite)
        || !writes_alloc(work, &writes))
    {
        return false;
    }

    done = tgd_arg_path(work, true, writes.items[0].path)
           && write_content(work, json_object_get(work->arguments, "content"),
                            &writes.items[0])
           && writes_run(work, &writes);

    free(writes.items);
    return done;
}


/* one object of the list */
static bool
write_item(tgd_work_t *work, json_t *json, tgd_write_t *item)
{
    json_t    *path;
    tg_str_t   given;

    if (!json_is_object(json)) {
        return tgd_work_fail(work, "invalid_files", NULL,
                             "each file item must be an object");
    }

    path = json_object_get(json, "path");
    if (!json_is_string(path) || json_string_length(path) == 0) {
        return tgd_work_fail(work, "invalid_files", NULL, "each file item requires path");
    }

    given.data = json_string_value(path);
    given.len = json_string_length(path);

    return tgd_arg_path_of(work, given, item->path)
           && write_content(work, json_object_get(json, "content"), item);
}


bool
tgd_files_write_many(tgd_work_t *work)
{
    bool          done;
    size_t        i;
    json_t       *files;
    tgd_writes_t  writes = { NULL, 0, true, true, false };

    static const char *const  names[] = { "files", "overwrite", NULL };

    files = json_object_get(work->arguments, "files");
    writes.count = json_array_size(files);

    if (!tgd_arg_known(work, names)
        || !tgd_arg_flag(work, "overwrite", &writes.overwrite))
    {
        return false;
    }

    if (writes.count == 0) {
        return tgd_work_fail(work, "invalid_files", NULL, "files must be a non-empty list");
    }

    if (writes.count > TGD_WRITE_FILES_MAX) {
        writes.count = TGD_WRITE_FILES_MAX;
        writes.truncated = true;
    }

    if (!writes_alloc(work, &writes)) {
        return false;
    }

    for (i = 0, done = true; done && i < writes.count; i++) {
        done = write_item(work, json_array_get(files, i), &writes.items[i]);
        if (!done) {
            (void) tg_buf_printf(&work->about, ",\"failed_file_index\":%zu", i);
        }
    }

    done = done && writes_run(work, &writes);
    free(writes.items);
    return done;
}


/* a file, a link as such, or an empty directory */
static int
delete_entry(int dir, const char *name)
{
    struct stat  st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == -1) {
        return -1;
    }

    return unlinkat(dir, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0);
}


bool
tgd_files_delete(tgd_work_t *work)
{
    int          dir, code;
    char         path[TG_FILE_PATH_MAX + 1];
    const char  *name;

    static const char *const  names[] = { "path", NULL };

    if (!tgd_arg_known(work, names) || !tgd_arg_path(work, true, path)) {
        return false;
    }

    if (strcmp(path, ".") == 0) {
        return tgd_work_fail(work, "workspace_root_protected", NULL,
                             "refuse to delete workspace root");
    }

    dir = tgd_tree_parent(&work->tree, path, false, &name);
    if (dir == -1) {
        return tgd_tree_error(&work->error, errno, path);
    }

    code = delete_entry(dir, name) == -1 ? errno : 0;
    (void) close(dir);

    if (code == ENOTEMPTY) {
        return tgd_work_fail(work, "directory_not_empty", NULL,
                             "workspace directory is not empty; delete what is in it"
                             " first");
    }

    if (code != 0) {
        return tgd_tree_error(&work->error, code, path);
    }

    tgd_work_knows(work, path, NULL);
    (void) tg_buf_cstr(&work->out, "{\"ok\":true,");
    tgd_out_given(work, "deleted");
    (void) tg_buf_char(&work->out, '}');
    return true;
}
