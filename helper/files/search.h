/*
 * A search in a workspace: what is looked for, and what was found, whoever finds it.
 */

#ifndef TGD_SEARCH_H
#define TGD_SEARCH_H

#include "files/work.h"


#define TGD_SEARCH_DEFAULT      100
#define TGD_SEARCH_MAX          5000
#define TGD_SEARCH_CONTEXT_MAX  20
#define TGD_SEARCH_QUERY_MAX    4096           /* bytes */
#define TGD_SEARCH_FILE_MAX     (1024 * 1024)  /* larger files are left out */
#define TGD_SEARCH_LINE_CHARS   500            /* of a line are shown */
#define TGD_SEARCH_SKIP         ".git"         /* a directory that is not searched */

typedef struct {
    tgd_work_t  *work;
    tg_str_t     query;              /* trimmed */
    char         path[TG_FILE_PATH_MAX + 1];
    bool         regex;
    bool         case_sensitive;
    tg_str_t     glob;
    int64_t      context;
    int64_t      max;

    tg_buf_t     results;            /* the JSON of what was found */
    int64_t      count;
    bool         truncated;
} tgd_search_t;

typedef enum {
    TGD_SEARCH_DONE = 0,
    TGD_SEARCH_FAILED,               /* the work's error says why */
    TGD_SEARCH_ABSENT                /* this way of searching is not there */
} tgd_search_e;


/* Adds a line that matches; before and after are whole lines around it. False when no more
 * is wanted. */
bool tgd_search_add(tgd_search_t *search, const char *path, size_t line, tg_str_t text,
    tg_str_t before, tg_str_t after);

/* True when files of this path are asked for. */
bool tgd_search_wanted(const tgd_search_t *search, const char *path);

/* search_rg.c: by ripgrep, in a directory, without context. */
tgd_search_e tgd_search_rg(tgd_search_t *search);

/* search_own.c: by our own walk and PCRE2. */
tgd_search_e tgd_search_own(tgd_search_t *search);

#endif /* TGD_SEARCH_H */
