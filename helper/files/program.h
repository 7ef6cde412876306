/*
 * One of the system's programs, run by a file worker: what goes in, what comes out, how
 * long it may take.
 */

#ifndef TGD_PROGRAM_H
#define TGD_PROGRAM_H

#include "tgd.h"


#define TGD_PROGRAM_ERROR_MAX  1024      /* bytes of its standard error that are kept */

typedef struct {
    const char  *const *argv;            /* argv[0] is its path; NULL at the end */
    int          dir;                    /* where it stands and what it reads; -1: it
                                            has no workspace, but the system's files */
    tg_str_t     input;                  /* its standard input */
    tgd_msec_t   deadline;
} tgd_program_t;

typedef struct {
    tg_buf_t     output;                 /* freed by the caller; its max is the bound */
    char         error[TGD_PROGRAM_ERROR_MAX + 1];
    int          code;                   /* exit code; -1: killed, or not started */
    bool         cut;                    /* stopped by time or by the bound of output */
} tgd_program_result_t;


/* Runs it to its end. False when it could not be run at all; output is initialised by the
 * caller. */
bool tgd_program_run(const tgd_program_t *program, tgd_program_result_t *result);

#endif /* TGD_PROGRAM_H */
