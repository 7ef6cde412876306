/*
 * One call of run_command, from the queue to its result. It knows sessions and the
 * queue; its owner, whoever that is, by three callbacks only.
 */

#ifndef TGD_RUN_H
#define TGD_RUN_H

#include "loop.h"
#include "output.h"
#include "protocol.h"
#include "queue.h"
#include "sandbox/registry.h"


#define TGD_RUN_TERM_MS     500      /* between SIGTERM and SIGKILL */
#define TGD_RUN_KILL_MS     1000     /* then the whole sandbox goes */
#define TGD_RUN_DRAIN_MS    200      /* for output after the main process ended */
#define TGD_RUN_PAUSE_MS    2        /* lets small writes gather */
#define TGD_RUN_STALL_MS    30000    /* a reader that takes nothing */
#define TGD_RUN_SMALL_READ  4096
#define TGD_RUN_RESULT_MAX  (1024 * 1024)

typedef enum {
    TGD_RUN_QUEUED = 0,
    TGD_RUN_STARTING,        /* the session is being made */
    TGD_RUN_RUNNING,
    TGD_RUN_TERMINATING,     /* SIGTERM was sent */
    TGD_RUN_LEFTOVERS,       /* the main process ended, others live */
    TGD_RUN_KILLING,         /* SIGKILL to all was sent */
    TGD_RUN_DONE
} tgd_run_state_e;

typedef struct tgd_run_s  tgd_run_t;

/* What the owner is told. After done the run is no more. */
typedef struct {
    void (*output)(void *owner, bool error_stream, tg_str_t bytes);
    bool (*room)(void *owner);       /* whether output may be given now */
    void (*done)(void *owner, tg_str_t result);
} tgd_run_owner_t;

typedef struct {
    tgd_run_t     *run;
    tgd_watch_t    watch;            /* read end of the pipe */
    tgd_timer_t    pause;
    tgd_output_t   output;
} tgd_run_stream_t;

struct tgd_run_s {
    tgd_loop_t             *loop;
    tgd_registry_t         *registry;
    tgd_queue_t            *queue;
    tgd_ticket_t            ticket;
    tgd_call_t              call;
    char                    account[TGD_WORKSPACE_HEX + 1];
    char                    key[TGD_KEY_HEX + 1];

    const tgd_run_owner_t  *owner;   /* NULL: nobody wants the result */
    void                   *owner_data;

    tgd_run_state_e         state;
    tgd_session_t          *session;
    tgd_run_stream_t        streams[2];
    tgd_timer_t             timer;   /* of the state */
    tgd_timer_t             stall;

    /* the outcome */
    int64_t                 started_us;
    int64_t                 duration_ms;
    char                    sandbox_id[TG_ID_MAX_LEN];
    bool                    has_status;
    int                     status;
    bool                    timed_out;
    bool                    cancelled;
    bool                    session_reset;
    double                  expires_at;      /* 0: the session is gone */
    uint32_t                oom;
    uint32_t                pids;
    const char             *limit;           /* "output", "output_stall" or NULL */
    tgd_error_t             error;           /* the job did not run */
};


/* For the queue. */
void tgd_run_start(void *run);
bool tgd_run_blocked(void *run);

/* Makes a run and queues it; takes over the call. NULL: no memory. done may be
 * called before this returns. */
tgd_run_t *tgd_run_new(tgd_loop_t *loop, tgd_registry_t *registry, tgd_queue_t *queue,
    tgd_call_t *call, const tgd_run_owner_t *owner, void *owner_data);

/* Ends the job at once; done is still called, unless the owner left. */
void tgd_run_cancel(tgd_run_t *run);

/* The owner goes away: no callback any more, the job is cancelled. */
void tgd_run_abandon(tgd_run_t *run);

/* The helper is to end: a run that has not begun is refused. */
void tgd_run_shutdown(tgd_run_t *run);

/* The owner has room again. */
void tgd_run_resume(tgd_run_t *run);

/* result.c: the answer of a run that is over. */
void tgd_run_result(const tgd_run_t *run, tg_buf_t *out);

/* result.c: its line in the log, without content. */
void tgd_run_log(const tgd_run_t *run);

#endif /* TGD_RUN_H */
