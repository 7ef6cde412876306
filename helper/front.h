/*
 * The front: listens, speaks the record protocol, answers tools. Unprivileged once
 * it serves.
 */

#ifndef TGD_FRONT_H
#define TGD_FRONT_H

#include "conf.h"
#include "files/call.h"
#include "loop.h"
#include "protocol.h"
#include "queue.h"
#include "selftest.h"
#include "sandbox/registry.h"


#define TGD_CONNECTIONS_MAX   1024
#define TGD_DRAIN_MS          20000     /* for running jobs after SIGTERM */
#define TGD_DRAIN_KILL_MS     2000      /* for their end after that */
#define TGD_RETEST_MS         600000

typedef struct tgd_conn_s   tgd_conn_t;
typedef struct tgd_front_s  tgd_front_t;

struct tgd_front_s {
    const tgd_conf_t  *conf;
    tgd_loop_t         loop;
    tgd_registry_t     registry;
    tgd_queue_t        queue;
    tgd_files_t        files;
    tgd_selftest_t     selftest;
    tgd_isolation_t    isolation;     /* of the last test that ended */
    tgd_isolation_t    testing;       /* filled by the one that runs */
    int                socket;        /* bound; listens when the first test is over */
    tgd_watch_t        listener;
    tgd_watch_t        signals;
    tgd_timer_t        retest;
    tgd_timer_t        drain;
    tgd_timer_t        listen_again;
    tgd_conn_t        *conns;
    size_t             conn_count;
    tgd_msec_t         refused_logged;
    bool               doubt;         /* a self-test is due for a failed start */
    bool               stopping;
    bool               cancelled;     /* the drain time is over */
    int                exit_code;
};


/* Serves until a signal or the launcher's end; returns the exit code. socket is
 * bound, launcher is the line to it. */
int tgd_front_run(const tgd_conf_t *conf, int socket, int launcher,
    const char *canary_path);

/* conn.c */
void tgd_conn_accept(tgd_front_t *front);
void tgd_conn_close(tgd_conn_t *conn);
void tgd_conns_shutdown(tgd_front_t *front, bool cancel);

/* status.c: the answer of sandbox_status. */
void tgd_status_json(const tgd_front_t *front, const tgd_call_t *call, tg_buf_t *out);

/* status.c: the answer of run_command where it is refused for want of isolation. */
void tgd_status_refusal(const tgd_front_t *front, tg_buf_t *out);

#endif /* TGD_FRONT_H */
