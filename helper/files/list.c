/*
 * workspace_status and list_workspace_files: what lies in a workspace. Links are shown
 * as what they are and never followed.
 */

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "files/work.h"


#define TGD_LIST_DEFAULT  500
#define TGD_LIST_MAX      5000
#define TGD_STATUS_FILES  50

typedef struct {
    char        *path;          /* owned */
    const char  *type;
    int64_t      size;
    int64_t      mtime_ns;
} tgd_entry_t;

typedef struct {
    tgd_entry_t  *entries;      /* owned */
    size_t        count;
    size_t        room;
    tg_str_t      glob;         /* empty: all */
    bool          directories;
    bool          only_files;
    bool          failed;       /* no memory */
} tgd_listing_t;


static const char *
entry_type(const struct stat *st)
{
    return S_ISREG(st->st_mode) ? "file" : S_ISDIR(st->st_mode) ? "directory"
           : S_ISLNK(st->st_mode) ? "symlink" : "other";
}


static bool
list_visit(void *data, const char *path, const struct stat *st)
{
    size_t          room;
    tgd_entry_t    *entry, *more;
    tgd_listing_t  *list;

    list = data;

    if ((S_ISDIR(st->st_mode) && !list->directories)
        || (!S_ISREG(st->st_mode) && list->only_files)
        || (list->glob.len != 0 && !tg_file_glob(list->glob, tg_str_of(path))))
    {
        return true;
    }

    if (list->count == list->room) {
        room = list->room == 0 ? 64 : 2 * list->room;
        more = realloc(list->entries, room * sizeof(*more));
        if (more == NULL) {
            list->failed = true;
            return false;
        }
        list->entries = more;
        list->room = room;
    }

    entry = &list->entries[list->count];
    entry->path = strdup(path);
    if (entry->path == NULL) {
        list->failed = true;
        return false;
    }

    entry->type = entry_type(st);
    entry->size = S_ISREG(st->st_mode) ? (int64_t) st->st_size : 0;
    entry->mtime_ns = (int64_t) st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
    list->count++;

    return true;
}


static void
list_free(tgd_listing_t *list)
{
    size_t  i;

    for (i = 0; i < list->count; i++) {
        free(list->entries[i].path);
    }
    free(list->entries);
}


static int
by_name(const void *a, const void *b)
{
    const tgd_entry_t  *left = a, *right = b;

    return strcmp(left->path, right->path);
}


static int
by_size(const void *a, const void *b)
{
    const tgd_entry_t  *left = a, *right = b;

    return left->size < right->size ? -1 : left->size > right->size ? 1 : by_name(a, b);
}


static int
by_mtime(const void *a, const void *b)
{
    const tgd_entry_t  *left = a, *right = b;

    return left->mtime_ns < right->mtime_ns ? -1
           : left->mtime_ns > right->mtime_ns ? 1 : by_name(a, b);
}


bool
tgd_files_status(tgd_work_t *work)
{
    size_t         i;
    tgd_walk_e     rc;
    tgd_listing_t  list;

    static const char *const  names[] = { NULL };

    if (!tgd_arg_known(work, names)) {
        return false;
    }

    memset(&list, 0, sizeof(list));
    list.only_files = true;

    rc = tgd_tree_walk(&work->tree, ".", true, NULL, list_visit, &list);

    if (rc == TGD_WALK_FAILED || list.failed) {
        list_free(&list);
        return tgd_tree_error(&work->error, rc == TGD_WALK_FAILED ? errno : ENOMEM, ".");
    }

    if (list.count != 0) {
        qsort(list.entries, list.count, sizeof(list.entries[0]), by_name);
    }

    (void) tg_buf_cstr(&work->out, "{\"ok\":true,\"workspace_root\":\"/workspace\","
                       "\"files\":[");

    for (i = 0; i < list.count && i < TGD_STATUS_FILES
         && work->out.len < TGD_WORK_LIST_MAX; i++)
    {
        (void) tg_buf_cstr(&work->out, i == 0 ? "{" : ",{");
        tgd_out_path(&work->out, "path", list.entries[i].path);
        (void) tg_buf_printf(&work->out, ",\"size\":%lld}",
                             (long long) list.entries[i].size);
    }

    (void) tg_buf_printf(&work->out, "],\"file_count_sampled\":%zu}", i);
    list_free(&list);
    return true;
}


/* a file that was named itself */
static bool
list_one(tgd_work_t *work, const char *path, tgd_listing_t *list)
{
    int          dir;
    bool         there;
    const char  *name;
    struct stat  st;

    dir = tgd_tree_parent(&work->tree, path, false, &name);
    if (dir == -1) {
        return tgd_tree_error(&work->error, errno, path);
    }

    there = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    (void) close(dir);

    if (!there) {
        return tgd_tree_error(&work->error, errno, path);
    }

    list->directories = true;
    (void) list_visit(list, path, &st);
    return !list->failed || tgd_tree_error(&work->error, ENOMEM, path);
}


static void
list_answer(tgd_work_t *work, const tgd_listing_t *list, bool recursive, size_t max,
    bool cut)
{
    size_t              i;
    tg_str_t            name;
    const tgd_entry_t  *entry;

    (void) tg_buf_cstr(&work->out, "{\"ok\":true,");
    tgd_out_given(work, "path");
    (void) tg_buf_printf(&work->out, ",\"recursive\":%s,\"entries\":[",
                         recursive ? "true" : "false");

    for (i = 0; i < list->count && i < max && work->out.len < TGD_WORK_LIST_MAX; i++) {
        entry = &list->entries[i];
        name = tg_file_path_name(tg_str_of(entry->path));

        (void) tg_buf_cstr(&work->out, i == 0 ? "{" : ",{");
        tgd_out_path(&work->out, "name", name.data);
        (void) tg_buf_char(&work->out, ',');
        tgd_out_path(&work->out, "path", entry->path);
        (void) tg_buf_printf(&work->out, ",\"type\":\"%s\",\"size\":%lld,"
                             "\"mtime_ns\":%lld}", entry->type, (long long) entry->size,
                             (long long) entry->mtime_ns);
    }

    (void) tg_buf_printf(&work->out, "],\"truncated\":%s}",
                         cut || i < list->count ? "true" : "false");
}


static bool
list_gather(tgd_work_t *work, const char *path, bool recursive, tgd_listing_t *list,
    bool *cut)
{
    tgd_walk_e  rc;

    rc = tgd_tree_walk(&work->tree, path, recursive, NULL, list_visit, list);

    if (list->failed) {
        return tgd_tree_error(&work->error, ENOMEM, path);
    }

    if (rc == TGD_WALK_FAILED) {
        return errno == ENOTDIR || errno == ELOOP
               ? list_one(work, path, list) : tgd_tree_error(&work->error, errno, path);
    }

    *cut = rc == TGD_WALK_CUT;
    return true;
}


bool
tgd_files_list(tgd_work_t *work)
{
    bool           recursive, cut, done;
    char           path[TG_FILE_PATH_MAX + 1];
    int64_t        max;
    tg_str_t       sort;
    tgd_listing_t  list;

    static const char *const  names[] = {
        "path", "glob", "recursive", "include_dirs", "max_results", "sort_by", NULL
    };

    memset(&list, 0, sizeof(list));
    list.directories = true;
    recursive = false;
    cut = false;
    max = TGD_LIST_DEFAULT;

    if (!tgd_arg_known(work, names)
        || !tgd_arg_path(work, false, path)
        || !tgd_arg_string(work, "glob", false, &list.glob)
        || !tgd_arg_flag(work, "recursive", &recursive)
        || !tgd_arg_flag(work, "include_dirs", &list.directories)
        || !tgd_arg_number(work, "max_results", 1, TGD_LIST_MAX, &max)
        || !tgd_arg_string(work, "sort_by", false, &sort))
    {
        return false;
    }

    done = list_gather(work, path, recursive, &list, &cut);

    if (done) {
        if (list.count != 0) {
            qsort(list.entries, list.count, sizeof(list.entries[0]),
                  tg_str_eq(sort, tg_str("mtime")) ? by_mtime
                  : tg_str_eq(sort, tg_str("size")) ? by_size : by_name);
        }
        list_answer(work, &list, recursive, (size_t) max, cut);
    }

    list_free(&list);
    return done;
}
