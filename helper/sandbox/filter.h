/*
 * The system-call filters of jobs and of file workers, made once by libseccomp and kept as BPF.
 */

#ifndef TGD_FILTER_H
#define TGD_FILTER_H

#include <linux/filter.h>

#include "tgd.h"


typedef struct {
    struct sock_filter  *code;
    unsigned short       len;      /* 0: no filter could be made */
} tgd_filter_t;


/* Whom it is for. */
typedef enum {
    TGD_FILTER_JOB = 0,
    TGD_FILTER_FILES           /* a file worker: openat2, but no socket of any kind */
} tgd_filter_e;


/* 0, or -1: filter->len is then 0. */
int tgd_filter_build(tgd_filter_t *filter, tgd_filter_e kind);

/* Puts the calling process under the filter for good. 0, or -1 with errno. */
int tgd_filter_apply(const tgd_filter_t *filter);

#endif /* TGD_FILTER_H */
