/*
 * What all of the helper shares: clocks, the limits of one sandbox, the log.
 */

#ifndef TGD_H
#define TGD_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

#include "tg.h"
#include "tg_buf.h"


#define TGD_VERSION  "0.1.0"

/* The profile of a sandbox. One place, so that status and self-test say what holds. */
#define TGD_MEMORY_MIB        512
#define TGD_PIDS              64
#define TGD_CPUS              1
#define TGD_NOFILE            256
#define TGD_FILE_MIB          64       /* one file */
#define TGD_TMP_MIB           64
#define TGD_TMP_INODES        10000
#define TGD_SHM_MIB           1
#define TGD_ADDRESS_GIB       64       /* address space: a coarse ceiling only */

#define TGD_JOB_UID           1000     /* inside the sandbox */

typedef int64_t  tgd_msec_t;

typedef enum {
    TGD_LOG_INFO = 0,
    TGD_LOG_WARN,
    TGD_LOG_ERROR
} tgd_log_level_e;


/* milliseconds of the monotonic clock; the same in microseconds */
tgd_msec_t tgd_monotonic_ms(void);
int64_t tgd_monotonic_us(void);

/* seconds since the epoch */
double tgd_wall_clock(void);

/* Opens the log file for appending, or standard error when path is NULL. */
int tgd_log_open(const char *path);

/* One JSON line. members is a printf format of further JSON members ("\"a\":%d"),
 * "" for none; values given as %s must be safe inside a JSON string. Never give it
 * text that a client or a job wrote. */
void tgd_log(tgd_log_level_e level, const char *event, const char *members, ...)
    __attribute__((format(printf, 3, 4)));

/* Logs and exits: only for what must not happen. */
void tgd_die(const char *event, const char *members, ...)
    __attribute__((noreturn, format(printf, 2, 3)));

#endif /* TGD_H */
