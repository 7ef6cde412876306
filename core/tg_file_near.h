/*
 * The lines of a file that look most like a text which is not in it.
 */

#ifndef TG_FILE_NEAR_H
#define TG_FILE_NEAR_H

#include "tg.h"


#define TG_FILE_NEAR_MAX    5
#define TG_FILE_NEAR_BYTES  200             /* of a line, and of the text, that count */
#define TG_FILE_NEAR_WORK   (40 * 1000 * 1000)   /* comparisons of bytes, of all lines */

typedef struct {
    size_t    line;        /* from 1 */
    tg_str_t  text;        /* without its end; points into the file */
    double    score;       /* 0 to 1 */
} tg_file_near_t;


/* Fills near, best first, and returns how many. A line counts when it holds the
 * beginning of wanted (4 bytes at most), or is like it by more than 0.45. Lines behind the
 * bound of work are judged by the beginning only. */
size_t tg_file_near(tg_str_t text, tg_str_t wanted, tg_file_near_t near[TG_FILE_NEAR_MAX]);

#endif /* TG_FILE_NEAR_H */
