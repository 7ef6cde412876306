/*
 * The live sandboxes, one for each (project, account, session), and the front's
 * line to the launcher. It knows nothing of calls or clients: a session has at most
 * one user, who is told what happens to it.
 */

#ifndef TGD_REGISTRY_H
#define TGD_REGISTRY_H

#include "conf.h"
#include "loop.h"
#include "tg_ids.h"
#include "sandbox/wire.h"


#define TGD_SESSIONS_MAX     512      /* of all accounts */
#define TGD_SESSION_START_MS 5000     /* until it is ready for its user */
#define TGD_KEY_HEX          64
#define TGD_GONE_MAX         1024     /* remembered sessions that ended */

typedef enum {
    TGD_SESSION_STARTING = 0,
    TGD_SESSION_READY,        /* a process waits for its order */
    TGD_SESSION_BUSY          /* with a job, or with what it left behind */
} tgd_session_state_e;

typedef struct tgd_session_s   tgd_session_t;
typedef struct tgd_registry_s  tgd_registry_t;

/* Callbacks to the user of a session. After lost the session is no more. */
typedef struct {
    void (*ready)(void *data);
    void (*report)(void *data, const tgd_report_t *report);
    void (*lost)(void *data, tgd_stage_e stage, int error);
} tgd_session_user_t;

struct tgd_session_s {
    tgd_registry_t            *registry;
    tgd_session_t             *prev, *next;
    tgd_session_state_e        state;
    uint32_t                   id;                         /* for the launcher */
    char                       key[TGD_KEY_HEX + 1];
    char                       account[TGD_WORKSPACE_HEX + 1];
    char                       sandbox_id[TG_ID_MAX_LEN];
    tgd_watch_t                watch;
    int                        outputs[2];  /* of the job that waits; else -1 */
    tgd_timer_t                timer;       /* until ready, or expiry */
    double                     created, last_used;         /* wall clock */
    tgd_msec_t                 created_ms, used_ms;
    bool                       replaced;   /* an earlier one of this key was lost */
    const tgd_session_user_t  *user;       /* NULL: idle */
    void                      *data;
};

typedef struct {
    bool      known;             /* the launcher has spoken */
    uint32_t  limits;
    uint32_t  cgroup_missing;
    bool      uid_separation;
    uint32_t  stage;
    int32_t   error;
} tgd_host_facts_t;

struct tgd_registry_s {
    tgd_loop_t        *loop;
    const tgd_conf_t  *conf;
    tgd_watch_t        launcher;
    tgd_host_facts_t   facts;
    tgd_session_t     *first;
    size_t             count;
    uint32_t           last_id;
    char               gone[TGD_GONE_MAX][TGD_KEY_HEX + 1];
    size_t             gone_next;
    void             (*facts_known)(void *data);     /* may be NULL */
    void             (*launcher_gone)(void *data);
    void             (*start_failed)(void *data);    /* of any session */
    void              *data;
};


int tgd_registry_init(tgd_registry_t *registry, tgd_loop_t *loop,
    const tgd_conf_t *conf, int launcher);

/* Ends all sessions and hangs up on the launcher. */
void tgd_registry_free(tgd_registry_t *registry);

/* Has a file worker made for an account: fd is its end of a socket and stays the caller's.
 * id names it for tgd_registry_kill. 0, or -1 with errno. */
int tgd_registry_worker(tgd_registry_t *registry, const char *account, int fd,
    uint32_t *id);
void tgd_registry_kill(tgd_registry_t *registry, uint32_t id);

/* The key of a session. */
void tgd_session_key(tg_str_t project, tg_str_t account, tg_str_t session,
    char key[TGD_KEY_HEX + 1]);

tgd_session_t *tgd_session_find(tgd_registry_t *registry, const char *key);

/*
 * Makes a session with its user. The account's least recently used idle session
 * goes when it has too many. NULL with errno: EBUSY when none is idle, or what
 * failed.
 */
tgd_session_t *tgd_session_make(tgd_registry_t *registry, const char *key,
    const char *account, uint32_t memory_mib, uint32_t pids,
    const tgd_session_user_t *user, void *data);

/* Takes an idle session, whose user is told when it is ready unless it is; frees it
 * again. */
void tgd_session_take(tgd_session_t *session, const tgd_session_user_t *user, void *data);
void tgd_session_release(tgd_session_t *session);

/* Ends a session at once. Its user is not told. */
void tgd_session_end(tgd_session_t *session, const char *why);

/* Sends an order without a job. */
int tgd_session_order(tgd_session_t *session, tgd_order_op_e op);

/* Sends a job to a session that is ready. env is variables with their NULs. Gives the
 * read ends of its stdout and stderr, which do not block and are the caller's. 0, or -1
 * with errno. */
int tgd_session_run(tgd_session_t *session, tgd_order_op_e op, tg_str_t cwd,
    tg_str_t command, tg_str_t env, uint32_t env_count, int outputs[2]);

/* Receives a report, as recv does; outputs that come along are the session's. */
ssize_t tgd_session_receive(tgd_session_t *session, tgd_report_t *report);

/* Closes the outputs of a job that will not be. */
void tgd_session_drop_outputs(tgd_session_t *session);

/* Seconds since the epoch when an idle session will end. */
double tgd_session_expires_at(const tgd_session_t *session);

#endif /* TGD_REGISTRY_H */
