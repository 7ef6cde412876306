/*
 * The difference of two texts as a unified diff with three lines around each change.
 */

#ifndef TG_FILE_DIFF_H
#define TG_FILE_DIFF_H

#include "tg.h"
#include "tg_buf.h"


#define TG_FILE_DIFF_CONTEXT  3
#define TG_FILE_DIFF_STEPS    1000     /* lines that differ; with more, the changed
                                          part is shown as one block */

/* Appends the diff, "--- PATH before" and "+++ PATH after" first; nothing when the texts
 * are equal. */
tg_rc_e tg_file_diff(tg_str_t before, tg_str_t after, tg_str_t path, tg_buf_t *out);

#endif /* TG_FILE_DIFF_H */
