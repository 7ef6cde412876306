/*
 * The front's side of one call of a file tool: its turn, its worker, its answer. Calls
 * that write wait for each other within an account, so that what a session knows of a
 * file can not change under a call.
 */

#ifndef TGD_FILES_CALL_H
#define TGD_FILES_CALL_H

#include "files/state.h"
#include "files/wire.h"
#include "loop.h"
#include "protocol.h"
#include "queue.h"
#include "sandbox/registry.h"
#include "workspace.h"


typedef struct tgd_filecall_s  tgd_filecall_t;

/* What all calls share; owned by the front. */
typedef struct {
    tgd_loop_t       *loop;
    tgd_registry_t   *registry;
    tgd_queue_t       queue;
    tgd_states_t      states;
    tgd_filecall_t   *running;       /* those that have a worker */
} tgd_files_t;

typedef enum {
    TGD_FILECALL_QUEUED = 0,
    TGD_FILECALL_SENDING,            /* the request */
    TGD_FILECALL_WAITING,            /* for the answer */
    TGD_FILECALL_COMMITTING,         /* the same, and nothing ends the call but itself */
    TGD_FILECALL_ENDING,             /* it took too long at that: killed, not gone yet */
    TGD_FILECALL_DONE
} tgd_filecall_state_e;

struct tgd_filecall_s {
    tgd_files_t            *files;
    tgd_filecall_t         *prev, *next;     /* of the running ones */
    tgd_ticket_t            ticket;
    tgd_call_t              call;
    char                    account[TGD_WORKSPACE_HEX + 1];
    char                    session[TGD_KEY_HEX + 1];
    tgd_filecall_state_e    state;
    tgd_watch_t             watch;
    tgd_timer_t             timer;
    uint32_t                worker;          /* its name; 0: none */
    tg_buf_t                request;
    size_t                  sent;
    tg_buf_t                answer;
    int64_t                 started_us;
    bool                    cancelled;
    tgd_error_t             error;           /* there is no answer of a worker */
    void                  (*done)(void *owner, tg_str_t result);  /* NULL: nobody waits */
    void                   *owner;
};


void tgd_files_init(tgd_files_t *files, tgd_loop_t *loop, tgd_registry_t *registry);
void tgd_files_free(tgd_files_t *files);

/* Makes a call and queues it; takes over what was parsed. NULL: no memory. done may be
 * called before this returns. */
tgd_filecall_t *tgd_filecall_new(tgd_files_t *files, tgd_call_t *call,
    void (*done)(void *owner, tg_str_t result), void *owner);

/* Ends it at once; done is called. A file is whole whenever its worker dies. A call that
 * puts several files into place goes on, and done is called with what came of it. */
void tgd_filecall_cancel(tgd_filecall_t *call);

/* The owner goes away: the call is cancelled, done is not called. */
void tgd_filecall_abandon(tgd_filecall_t *call);

/* The helper is to end: a call that has not begun is refused. */
void tgd_filecall_shutdown(tgd_filecall_t *call);

#endif /* TGD_FILES_CALL_H */
