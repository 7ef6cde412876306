/*
 * The files of one workspace, from inside a file worker: every path is resolved by
 * the kernel beneath the workspace's directory, without symbolic links. It knows
 * nothing of tools.
 */

#ifndef TGD_TREE_H
#define TGD_TREE_H

#include <sys/stat.h>

#include "protocol.h"
#include "tgd.h"
#include "tg_file_match.h"
#include "tg_file_path.h"
#include "tg_json.h"


#define TGD_TREE_DEPTH_MAX     64
#define TGD_PATH_NAMES_MAX     TGD_TREE_DEPTH_MAX   /* none that a walk can not reach */
#define TGD_TREE_ENTRIES_MAX   50000            /* seen by one walk */
#define TGD_WORKSPACE_MIB      256              /* of all files; tools that write refuse */
#define TGD_WORKSPACE_FILES    20000            /* files and directories */
#define TGD_TEMP_STALE_S       60               /* a temporary file that nobody owns */
#define TGD_HASH_HEX           TG_JSON_SHA256_HEX_LEN

typedef struct {
    int         root;
    tgd_msec_t  deadline;
} tgd_tree_t;

/* A regular file that was read whole. */
typedef struct {
    char    *data;             /* owned */
    size_t   len;
    mode_t   mode;
    int64_t  mtime_ns;
    char     hash[TGD_HASH_HEX + 1];
} tgd_file_t;

/* Directories made on the way to a file: the last of them ends after len bytes of its
 * path, and they lie in each other. */
typedef struct {
    size_t  count;
    size_t  len;
} tgd_made_t;

/* New content of a file, written but not in its place yet. */
typedef struct {
    int         dir;           /* -1: nothing */
    char        temp[64];
    char        name[TG_FILE_NAME_MAX + 1];
    tgd_made_t  made;
    dev_t       dev;           /* which file is ours */
    ino_t       ino;
    bool        placed;
    bool        exchanged;     /* temp is what was there before */
    int64_t     mtime_ns;
} tgd_staged_t;

/* Called for each entry; path is relative to the workspace. False ends the walk. */
typedef bool (*tgd_tree_visit_pt)(void *data, const char *path, const struct stat *st);

typedef enum {
    TGD_WALK_WHOLE = 0,
    TGD_WALK_CUT,              /* by a bound, or by the visitor */
    TGD_WALK_FAILED            /* errno */
} tgd_walk_e;


/* Opens beneath the workspace, or beneath a directory of it. -1 with errno. */
int tgd_tree_open(const tgd_tree_t *tree, const char *path, int flags);
int tgd_tree_open_at(int dir, const char *name, int flags);

/* The error that errno stands for, naming the path. Returns false. */
bool tgd_tree_error(tgd_error_t *error, int code, const char *path);

/* Reads a regular file of at most max bytes. The caller frees it. */
bool tgd_tree_read(const tgd_tree_t *tree, const char *path, size_t max,
    tgd_file_t *file, tgd_error_t *error);

/* The same without the hash. Of a file with a NUL, what follows its block may be
 * missing. */
bool tgd_tree_read_text(const tgd_tree_t *tree, const char *path, size_t max,
    tgd_file_t *file, tgd_error_t *error);
void tgd_file_free(tgd_file_t *file);

/* Visits what lies in a directory, in no order; temporary files are left out. Directories
 * named skip (may be NULL) are not entered, nor are those that lie too deep. */
tgd_walk_e tgd_tree_walk(const tgd_tree_t *tree, const char *path, bool deep,
    const char *skip, tgd_tree_visit_pt visit, void *data);

/* True when bytes more (and files more) are within the workspace's bounds. Temporary files
 * count; those that nobody owns any more are removed on the way. */
bool tgd_tree_room(const tgd_tree_t *tree, int64_t bytes, size_t files,
    tgd_error_t *error);

/* Opens the directory that holds a path and gives the last component, which points into
 * path. With make, directories that are missing are made. */
int tgd_tree_parent(const tgd_tree_t *tree, const char *path, bool make,
    const char **name);

/* Writes content beside where it is to go, and to the disk. */
bool tgd_tree_stage(const tgd_tree_t *tree, const char *path, tg_str_t content,
    mode_t mode, tgd_staged_t *staged, tgd_error_t *error);

/* Puts it into its place at once. With keep, what was there can come back. */
bool tgd_tree_place(tgd_staged_t *staged, const char *path, bool overwrite, bool keep,
    tgd_error_t *error);

/* Ends with it: done, or, with undo, as it was before. */
void tgd_tree_settle(tgd_staged_t *staged, bool undo);

/* Takes back the directories that were made for a path, as far as they are empty. */
void tgd_tree_unmake(const tgd_tree_t *tree, const char *path, const tgd_made_t *made);

#endif /* TGD_TREE_H */
