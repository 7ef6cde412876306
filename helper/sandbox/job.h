/*
 * The process of a job, from waiting for its order to exec. It is started ahead of
 * the order, so that little is left to do when one comes; it knows nothing of other
 * jobs, and nothing of what happens after exec.
 */

#ifndef TGD_JOB_H
#define TGD_JOB_H

#include <stdatomic.h>

#include "tgd.h"
#include "sandbox/wire.h"


/* What came of waiting. All but the first two end the process. */
typedef enum {
    TGD_JOB_WAITING = 0,
    TGD_JOB_STARTED,           /* it is the command from here on */
    TGD_JOB_REFUSED,           /* stage and error tell why */
    TGD_JOB_DESERTED           /* the front is gone */
} tgd_job_word_e;

/* Written by the process of the job until it has started, read by the supervisor. */
typedef struct {
    int          socket;     /* to the front, which sends the order */
    int          started;    /* eventfd: written when it starts */
    int          out[2];     /* what it gets as stdout and stderr */
    atomic_int   word;       /* tgd_job_word_e */
    tgd_stage_e  stage;
    int          error;
} tgd_job_t;


/*
 * Starts a process that waits on the socket for one order to run. Until its exec or
 * end it shares the caller's memory: the caller may sleep and look at word, not more,
 * and there can be only one. Its pid, or -1 with errno.
 */
pid_t tgd_job_prepare(tgd_job_t *job);

#endif /* TGD_JOB_H */
