/*
 * The self-test: a sandbox of the production profile, from which a probe tries to
 * get out. Only what it found may be called isolated.
 */

#ifndef TGD_SELFTEST_H
#define TGD_SELFTEST_H

#include "loop.h"
#include "sandbox/registry.h"


#define TGD_SELFTEST_MS          10000
#define TGD_SELFTEST_MEMORY_MIB  64
#define TGD_SELFTEST_PIDS        8
#define TGD_REASONS_MAX          24
#define TGD_REASON_LEN           96
#define TGD_SELFTEST_TEXT_MAX    8192

/* What holds, for sandbox_status and for the gate before run_command. */
typedef struct {
    bool    isolated;
    size_t  reason_count;
    char    reasons[TGD_REASONS_MAX][TGD_REASON_LEN];
} tgd_isolation_t;

typedef struct {
    tgd_loop_t       *loop;
    tgd_registry_t   *registry;
    const char       *canary_path;
    bool              running;
    tgd_session_t    *session;
    tgd_watch_t       output;
    tgd_timer_t       timer;
    int               tcp;          /* canary listeners */
    int               abstract;
    uint16_t          port;
    char              name[64];
    tg_buf_t          text;
    bool              exited;
    tgd_isolation_t  *result;
    void            (*done)(void *data);
    void             *data;
} tgd_selftest_t;


/* Starts a test; result is filled and done called when it is over, from the event
 * loop. Nothing happens while one runs. */
void tgd_selftest_start(tgd_selftest_t *test);

/* Adds a reason that is no failure by itself. */
void tgd_isolation_reason(tgd_isolation_t *isolation, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif /* TGD_SELFTEST_H */
