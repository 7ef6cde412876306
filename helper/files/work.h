/*
 * One call of a file tool inside its worker: arguments in, one JSON answer out. Tools
 * know the tree and this; they know no socket and no other call.
 */

#ifndef TGD_WORK_H
#define TGD_WORK_H

#include "files/tree.h"


#define TGD_WORK_RESULT_MAX   (240 * 1024)     /* bytes of an answer: one record */
#define TGD_WORK_LIST_MAX     (200 * 1024)     /* of its lists, which are cut there */
#define TGD_WORK_TEXT_MAX     (160 * 1024)     /* of one text in it, as JSON */
#define TGD_WORK_STATES_MAX   (512 * 1024)
#define TGD_WORK_SHOWN_MAX    50000            /* characters of a text shown whole */
#define TGD_WORK_PREVIEW      8000             /* shown of what is longer */

typedef struct {
    tgd_tree_t    tree;
    bool        (*commit)(void);   /* asks whether several files may go into place; after
                                      true nobody ends the call half way */
    json_t       *arguments;
    const char   *known;       /* hash of the file as this session knows it; "": not */
    tg_buf_t      out;         /* the answer of a call that went well */
    tgd_error_t   error;       /* else */
    tg_buf_t      about;       /* further members of an error, each with its comma first */
    tg_buf_t      states;      /* what the session knows now; see files/state.h */
} tgd_work_t;

/* False: the call failed, error says why. */
typedef bool (*tgd_work_pt)(tgd_work_t *work);


/* args.c: arguments. Null is as good as absent. Each returns false with the error. */
bool tgd_arg_known(tgd_work_t *work, const char *const *names);
bool tgd_arg_string(tgd_work_t *work, const char *name, bool required, tg_str_t *value);
bool tgd_arg_flag(tgd_work_t *work, const char *name, bool *value);
bool tgd_arg_number(tgd_work_t *work, const char *name, int64_t min, int64_t max,
    int64_t *value);
bool tgd_arg_no_nul(tgd_work_t *work, const char *name, tg_str_t value);
bool tgd_arg_path(tgd_work_t *work, bool required, char path[TG_FILE_PATH_MAX + 1]);
bool tgd_arg_path_of(tgd_work_t *work, tg_str_t given, char path[TG_FILE_PATH_MAX + 1]);

/* args.c: sets the error, with its field or without. Returns false. */
bool tgd_work_fail(tgd_work_t *work, const char *type, const char *field,
    const char *message);

/* args.c: what the session knows of a file from now on; hash NULL: nothing. */
void tgd_work_knows(tgd_work_t *work, const char *path, const char *hash);

/* args.c: pieces of an answer. A text is cut to what may be shown and followed by
 * "truncated", "original_chars" and "preview_chars". */
void tgd_out_path(tg_buf_t *out, const char *member, const char *path);
void tgd_out_given(tgd_work_t *work, const char *member);   /* the path of the call */
void tgd_out_absolute(tg_buf_t *out, const char *path);
void tgd_out_text(tg_buf_t *out, const char *member, tg_str_t text, size_t max_chars,
    size_t preview_chars);

/* The tools. */
bool tgd_files_status(tgd_work_t *work);
bool tgd_files_list(tgd_work_t *work);
bool tgd_files_read(tgd_work_t *work);
bool tgd_files_write(tgd_work_t *work);
bool tgd_files_write_many(tgd_work_t *work);
bool tgd_files_delete(tgd_work_t *work);
bool tgd_files_edit(tgd_work_t *work);
bool tgd_files_multi_edit(tgd_work_t *work);
bool tgd_files_search(tgd_work_t *work);
bool tgd_files_lint(tgd_work_t *work);

#endif /* TGD_WORK_H */
