/*
 * Paths of workspace files as tools give and show them: relative to the workspace,
 * with names that are not UTF-8 in a form that can be given back. Pure text: whether
 * a file is there, and where a link leads, is decided where files are opened.
 */

#ifndef TG_FILE_PATH_H
#define TG_FILE_PATH_H

#include "tg.h"
#include "tg_buf.h"


#define TG_FILE_PATH_MAX  4095      /* bytes, without the NUL */
#define TG_FILE_NAME_MAX  255       /* of one component */

typedef enum {
    TG_FILE_PATH_OK = 0,
    TG_FILE_PATH_INVALID,           /* empty, too long, or with NUL */
    TG_FILE_PATH_OUTSIDE            /* absolute, or with ".." */
} tg_file_path_e;


/*
 * Checks a path and writes its one form: components with one slash between them, "."
 * for the workspace itself. "/workspace" and what lies below it is taken as relative.
 * "\xHH" is a byte where HH is 80 to ff or 5c.
 */
tg_file_path_e tg_file_path(tg_str_t given, char path[TG_FILE_PATH_MAX + 1]);

/* Appends a path as a JSON string: bytes that are no UTF-8 as "\xHH", and a backslash
 * that would be read as one of these as "\x5c". tg_file_path reads it back. */
tg_rc_e tg_file_path_json(tg_buf_t *out, tg_str_t path);

/* The last component. */
tg_str_t tg_file_path_name(tg_str_t path);

/* True when a glob fits the whole path or its last component. "*" and "?" take slashes
 * too, "[…]" and "[!…]" are sets, a leading "**" with its slash may stand for nothing.
 * Takes time of pattern times text at most. */
bool tg_file_glob(tg_str_t pattern, tg_str_t path);

#endif /* TG_FILE_PATH_H */
