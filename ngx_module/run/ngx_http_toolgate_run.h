/*
 * A run: one client request through model turns and tool calls to one answer.
 * The state machine is run_advance in _run.c; how the answer looks to the client
 * is the face's business (api/), what a tool does is the tools' (tools/).
 */

#ifndef NGX_HTTP_TOOLGATE_RUN_H
#define NGX_HTTP_TOOLGATE_RUN_H

#include "ngx_http_toolgate_limit.h"
#include "ngx_http_toolgate_module.h"
#include "ngx_http_toolgate_run_store.h"
#include "ngx_http_toolgate_tools.h"
#include "ngx_http_toolgate_turn.h"
#include "ngx_http_toolgate_writer.h"
#include "ngx_toolgate_counters.h"

#include "tg_delta.h"
#include "tg_error.h"
#include "tg_policy.h"
#include "tg_run_status.h"
#include "tg_scan.h"
#include "tg_sse.h"


#define NGX_HTTP_TOOLGATE_ERROR_BODY_MAX   (64 * 1024)       /* kept of a vendor's */
#define NGX_HTTP_TOOLGATE_RELAY_BODY_MAX   (32 * 1024 * 1024) /* when rewritten */
#define NGX_HTTP_TOOLGATE_VENDOR_CHARS     500        /* of a vendor's message */
#define NGX_HTTP_TOOLGATE_VENDOR_CODE_CHARS 64
#define NGX_HTTP_TOOLGATE_RUN_STEPS_MAX    512
#define NGX_HTTP_TOOLGATE_FOLLOW_MAX_MS    3600000    /* then its client comes back */

typedef enum {
    NGX_HTTP_TOOLGATE_RUN_NEW = 0,
    NGX_HTTP_TOOLGATE_RUN_LIMITING,      /* its request limits are looked up */
    NGX_HTTP_TOOLGATE_RUN_OPENING,       /* the store is asked whether it is new */
    NGX_HTTP_TOOLGATE_RUN_FOLLOWING,     /* it is not, and goes on elsewhere */
    NGX_HTTP_TOOLGATE_RUN_JOINING,       /* its session is asked for */
    NGX_HTTP_TOOLGATE_RUN_CALLING_MODEL,
    NGX_HTTP_TOOLGATE_RUN_CALLING_TOOLS,
    NGX_HTTP_TOOLGATE_RUN_PAUSING,       /* it is written down that it waits */
    NGX_HTTP_TOOLGATE_RUN_ENDING,        /* ended outside; actions are let finish */
    NGX_HTTP_TOOLGATE_RUN_COMPLETED,
    NGX_HTTP_TOOLGATE_RUN_PAUSED,        /* over here; others may go on with it */
    NGX_HTTP_TOOLGATE_RUN_FAILED,
    NGX_HTTP_TOOLGATE_RUN_CANCELLED
} ngx_http_toolgate_run_state_e;

typedef enum {
    NGX_HTTP_TOOLGATE_EVENT_START = 0,
    NGX_HTTP_TOOLGATE_EVENT_LIMITS_KNOWN,
    NGX_HTTP_TOOLGATE_EVENT_OPENED,
    NGX_HTTP_TOOLGATE_EVENT_SESSION_KNOWN,
    NGX_HTTP_TOOLGATE_EVENT_TURN_ENDED,
    NGX_HTTP_TOOLGATE_EVENT_CALLS_ENDED, /* or wait for somebody outside */
    NGX_HTTP_TOOLGATE_EVENT_PAUSED,
    NGX_HTTP_TOOLGATE_EVENT_FOLLOWED,    /* to its end */
    NGX_HTTP_TOOLGATE_EVENT_ENDED_OUTSIDE,
    NGX_HTTP_TOOLGATE_EVENT_CLIENT_LEFT,
    NGX_HTTP_TOOLGATE_EVENT_DEADLINE
} ngx_http_toolgate_run_event_e;

typedef struct ngx_http_toolgate_run_s  ngx_http_toolgate_run_t;
typedef struct ngx_http_toolgate_steps_s  ngx_http_toolgate_steps_t;
typedef struct ngx_http_toolgate_durable_s  ngx_http_toolgate_durable_t;
typedef struct ngx_http_toolgate_run_session_s  ngx_http_toolgate_run_session_t;

typedef struct ngx_http_toolgate_call_s  ngx_http_toolgate_call_t;

/* What the client asked for, checked; body and scan stay as long as another turn
 * may need them. */
typedef struct {
    u_char                         *body;
    size_t                          len;
    size_t                          cap;            /* allocated */
    tg_scan_t                      *scan;
    ngx_str_t                       model;          /* as the caller named it */
    json_t                         *tools;          /* the caller's own, or NULL */
    json_t                         *variables;      /* overrides, or NULL */
    json_t                         *metadata;       /* or NULL */
    ngx_str_t                       invocation;     /* the caller's, or empty */
    ngx_str_t                       account;
    ngx_str_t                       session;        /* or empty */
    unsigned                        new_segment:1;  /* of the session */
    unsigned                        reject_busy:1;  /* a session with a live run */
    unsigned                        create_session:1;  /* when it is not there */
    unsigned                        stream:1;
    unsigned                        include_usage:1;
    unsigned                        allow_actions:1;
    unsigned                        store:1;        /* the run is kept */
    unsigned                        owned:1;        /* body and scan are the run's */
} ngx_http_toolgate_prompt_t;

/* Why a run failed, for the face to say. */
typedef struct {
    const tg_error_t               *error;
    ngx_str_t                       message;        /* empty: the default one */
    ngx_str_t                       retry_after;
} ngx_http_toolgate_failure_t;

/* How an answer looks to the client. Each adds to run->writer; NGX_ERROR when
 * out of memory. */
typedef struct {
    ngx_int_t  (*text)(ngx_http_toolgate_run_t *run, tg_str_t text);
    ngx_int_t  (*refusal)(ngx_http_toolgate_run_t *run, tg_str_t text);
    ngx_int_t  (*reasoning)(ngx_http_toolgate_run_t *run, tg_str_t text);
    ngx_int_t  (*ping)(ngx_http_toolgate_run_t *run);
    ngx_int_t  (*finish)(ngx_http_toolgate_run_t *run);
    ngx_int_t  (*fail)(ngx_http_toolgate_run_t *run,
                       ngx_http_toolgate_failure_t *failure);
    /* NULL for a face that has no use for them. paragraph: text of another turn
     * follows; by default it is parted by an empty line. The others: a call that is
     * not the caller's to run begins, or was refused, and has ended. */
    ngx_int_t  (*paragraph)(ngx_http_toolgate_run_t *run);
    ngx_int_t  (*call_begins)(ngx_http_toolgate_run_t *run,
                              ngx_http_toolgate_call_t *call);
    ngx_int_t  (*call_ended)(ngx_http_toolgate_run_t *run,
                             ngx_http_toolgate_call_t *call);
    const char  *name;                  /* in the run's document */
    unsigned     waits:1;               /* it can say that a run waits for somebody */
    unsigned     pauses:1;              /* its stream of events ends where a run waits */
    /* of a run that is followed; NULL: text and the end are enough. An event as JSON,
     * and the run's document when it has ended or waits for its caller */
    ngx_int_t  (*event)(ngx_http_toolgate_run_t *run, int64_t seq, tg_str_t event);
    ngx_int_t  (*document)(ngx_http_toolgate_run_t *run,
                           ngx_http_toolgate_run_answer_t *document);
} ngx_http_toolgate_face_t;

typedef struct {
    char                            id[TG_ID_MAX_LEN];
    ngx_str_t                       tool;
    const char                     *code;           /* NULL: ok */
} ngx_http_toolgate_step_t;

typedef enum {
    NGX_HTTP_TOOLGATE_CALL_NEW = 0,
    NGX_HTTP_TOOLGATE_CALL_WAITING,      /* for an identical call of the round */
    NGX_HTTP_TOOLGATE_CALL_COUNTING,     /* the store was asked */
    NGX_HTTP_TOOLGATE_CALL_ASKING,       /* whether a person has approved it */
    NGX_HTTP_TOOLGATE_CALL_HELD,         /* for a person, or for the caller's app */
    NGX_HTTP_TOOLGATE_CALL_RECORDING,    /* that it is to be done is written down */
    NGX_HTTP_TOOLGATE_CALL_RUNNING,
    NGX_HTTP_TOOLGATE_CALL_ENDED
} ngx_http_toolgate_call_state_e;

/* One call of the round under way. */
struct ngx_http_toolgate_call_s {
    ngx_http_toolgate_call_state_e  state;
    ngx_http_toolgate_run_t        *run;
    ngx_uint_t                      position;
    char                            id[TG_ID_MAX_LEN];
    ngx_str_t                       model_id;       /* as replayed to the model */
    ngx_str_t                       name;
    ngx_str_t                       arguments;      /* JSON text, as received */
    ngx_str_t                       canonical;      /* of the folded arguments */
    json_t                         *args;
    ngx_http_toolgate_tool_t       *tool;           /* NULL: not one of ours */
    ngx_uint_t                      hours_only;     /* as the grant says */
    tg_policy_facts_t               facts;
    ngx_http_toolgate_job_t         job;
    const char                     *code;           /* NULL: ok */
    void                           *count;          /* its question to the store */
    void                           *record;         /* and the one about its intent */
    void                           *question;       /* … about its approval */
    char                            approval[TG_ID_MAX_LEN];   /* "" = none */
    ngx_str_t                       intent_name;    /* of fields in the store */
    ngx_str_t                       outcome_name;
    char                            step[TG_ID_MAX_LEN];
    tg_policy_verdict_t             verdict;        /* the last one */
    ngx_msec_t                      started;
    ngx_msec_t                      ended;
    ngx_uint_t                      shown;          /* of the face: where it is */
    unsigned                        caller_owned:1;
    unsigned                        approve:1;      /* as the grant says */
    unsigned                        approved:1;     /* by a person */
    unsigned                        counted:1;      /* before the run has waited */
    unsigned                        told:1;         /* its end was, before that */
    unsigned                        answered:1;     /* by the caller */
    unsigned                        begun:1;        /* the face was told */
    unsigned                        intended:1;        /* the store knows of it */
    unsigned                        unknown_before:1;  /* the same call's outcome */
};

/* A call that is not to be repeated in this run. */
typedef struct {
    ngx_http_toolgate_tool_t       *tool;
    ngx_str_t                       canonical;
    ngx_str_t                       result;
    unsigned                        unknown:1;      /* whether it has succeeded */
} ngx_http_toolgate_done_call_t;

struct ngx_http_toolgate_run_s {
    ngx_http_toolgate_ctx_e         kind;
    ngx_http_request_t             *request;
    ngx_http_toolgate_main_conf_t  *conf;
    ngx_http_toolgate_loc_conf_t   *location;
    ngx_http_toolgate_run_state_e   state;
    char                            id[TG_ID_MAX_LEN];
    time_t                          created;

    ngx_http_toolgate_project_t    *project;
    ngx_http_toolgate_prompt_t      prompt;
    json_t                         *end_user;       /* verified; NULL: anonymous */
    const ngx_http_toolgate_face_t *face;
    void                           *face_data;

    ngx_http_toolgate_model_t      *model;
    ngx_uint_t                      upstream;       /* which of the model's */
    ngx_http_toolgate_turn_t        turn;
    ngx_http_toolgate_writer_t      writer;
    ngx_event_t                     deadline;
    ngx_event_t                     ping;
    ngx_msec_t                      deadline_at;
    ngx_http_posted_request_t       posted;
    ngx_http_toolgate_limits_t     *limits;         /* NULL: none was asked */
    unsigned                        is_posted:1;
    const char                     *ended_outside;  /* why, not yet acted on */
    const char                     *ending;         /* the same, acted on */
    const char                     *follow_fault;   /* how one that is followed ended */
    ngx_msec_t                      spent;          /* by who drove it before */
    unsigned                        limits_known:1; /* noted, not yet acted on */
    unsigned                        opened:1;
    unsigned                        session_known:1;
    unsigned                        followed:1;
    unsigned                        turn_ended:1;
    unsigned                        calls_ended:1;
    unsigned                        paused:1;
    unsigned                        follow_paused:1;    /* the last event seen */
    unsigned                        cancel_followed:1;  /* when its caller leaves */
    unsigned                        relay:1;        /* passed through as it is */
    unsigned                        detached:1;     /* no client waits for it */
    unsigned                        background:1;   /* its caller does not wait */
    unsigned                        follows:1;      /* from its start */
    unsigned                        client_left:1;  /* nothing can be sent */
    unsigned                        out_of_memory:1;
    unsigned                        local_limits:1; /* the head is to say so */
    unsigned                        in_handler:1;   /* posted requests run after it */

    /* of the turn under way */
    tg_sse_t                        sse;
    tg_delta_t                      delta;
    tg_buf_t                        whole;          /* an answer that is no stream */
    unsigned                        streaming:1;
    unsigned                        turn_text:1;    /* this turn has shown text */
    unsigned                        turn_shown:1;   /* … or anything else */
    unsigned                        any_text:1;     /* the run has shown text */
    unsigned                        parse_failed:1;

    /* of a relay */
    size_t                          relay_used;     /* bytes up to the last event */
    unsigned                        relay_rename:1; /* "model" is to be put back */
    unsigned                        relay_done:1;   /* [DONE] went through */

    /* of an agent's run */
    ngx_http_toolgate_agent_t      *agent;          /* NULL: a model's one turn */
    ngx_array_t                     offered;        /* of grant_t * */
    tg_approval_mode_e              approval_mode;
    json_t                         *variables;
    ngx_uint_t                      round;          /* rounds that had calls */
    unsigned                        final:1;        /* tools are off in this turn */
    unsigned                        gathering:1;    /* calls that are to be counted */
    ngx_array_t                     history;        /* of ngx_str_t: hidden rounds */
    ngx_array_t                     used_ids;       /* of ngx_str_t */
    ngx_array_t                     done_calls;     /* of done_call_t */
    ngx_array_t                     steps;          /* of step_t */
    ngx_http_toolgate_steps_t      *record;         /* NULL: not kept */
    ngx_http_toolgate_durable_t    *durable;        /* NULL: not kept */
    ngx_http_toolgate_run_session_t *session;       /* NULL: it has none */
    json_t                         *restored_round; /* was under way elsewhere */
    ngx_str_t                       required;       /* action, JSON, once paused */
    int64_t                         approval_expires;  /* ms, of the store's clock */
    ngx_http_toolgate_answer_e      pause_answer;
    int64_t                         follow_after;
    ngx_http_toolgate_call_t       *calls;
    ngx_uint_t                      call_count;
    ngx_uint_t                      calls_open;
    tg_delta_usage_t                usage;
    const char                     *finish_reason;
};


/* Makes a run for a request whose body is read; everything in it lives as long
 * as the request. */
ngx_http_toolgate_run_t *ngx_http_toolgate_run_create(ngx_http_request_t *r,
    ngx_http_toolgate_project_t *project, const ngx_http_toolgate_face_t *face);

/* Makes the lists that only an agent's run has. */
ngx_int_t ngx_http_toolgate_run_for_agent(ngx_http_toolgate_run_t *run);

/* Starts it. The request is finalized by the run, later. */
void ngx_http_toolgate_run_start(ngx_http_toolgate_run_t *run);

/* Moves the state machine; may finalize the request. */
void ngx_http_toolgate_run_advance(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_run_event_e event);

/* Has the main request's handler called soon (from inside filters and events). */
void ngx_http_toolgate_run_post(ngx_http_toolgate_run_t *run);

/* The code for what the end of the run has stopped. */
const char *ngx_http_toolgate_run_stop_code(ngx_http_toolgate_run_t *run);

/* Ends the run as failed. message may be empty. */
void ngx_http_toolgate_run_fail(ngx_http_toolgate_run_t *run, const char *code,
    ngx_str_t *message);
void ngx_http_toolgate_run_fail_with(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_failure_t *failure);

/* _run_leave.c: reads from the client while the run goes on: whether it has left. */
void ngx_http_toolgate_run_reading(ngx_http_request_t *r);

/* _run_limit.c: takes one from the request's limits. NGX_OK: go on. NGX_AGAIN:
 * EVENT_LIMITS_KNOWN follows, then call _limited. NGX_DECLINED: the run has failed. */
ngx_int_t ngx_http_toolgate_run_limit(ngx_http_toolgate_run_t *run);
ngx_int_t ngx_http_toolgate_run_limited(ngx_http_toolgate_run_t *run);

/* _model.c: starts the next turn at the model's current place. */
ngx_int_t ngx_http_toolgate_model_call(ngx_http_toolgate_run_t *run);
/* Why a turn that is over gave no answer; NULL when it gave one. */
const char *ngx_http_toolgate_model_failure(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_failure_t *failure);
/* The code for the status of a turn; NULL for 2xx. */
const char *ngx_http_toolgate_model_status(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_failure_t *failure);
/* The place that is asked, or was asked last. */
ngx_http_toolgate_upstream_t *ngx_http_toolgate_model_upstream(
    ngx_http_toolgate_run_t *run);
/* Gives the turn's calls that have no id one of ours. */
ngx_int_t ngx_http_toolgate_model_call_ids(ngx_http_toolgate_run_t *run);
/* The name under which the model's current place knows it. */
ngx_str_t ngx_http_toolgate_model_vendor_name(ngx_http_toolgate_run_t *run);
/* Whether another place of the same model may be tried after this turn. */
ngx_uint_t ngx_http_toolgate_model_next(ngx_http_toolgate_run_t *run);
/* Adds what a turn has used to the run's sum. */
void ngx_http_toolgate_model_usage(ngx_http_toolgate_run_t *run);

/* _prompt.c: the body of the next model request as a chain of memory buffers. */
ngx_int_t ngx_http_toolgate_prompt_chain(ngx_http_toolgate_run_t *run,
    ngx_chain_t **chain, off_t *length);
/* Gives the caller's body back when the turn under way is the last that needs it
 * and the model has got all of it. */
void ngx_http_toolgate_prompt_release(ngx_http_toolgate_run_t *run);
/* Appends one message of the request as models get it. */
ngx_int_t ngx_http_toolgate_prompt_text(ngx_http_toolgate_run_t *run, size_t i,
    tg_buf_t *out);
/* Appends the agent's instructions as a JSON string, variables filled in. */
void ngx_http_toolgate_prompt_fill(ngx_http_toolgate_run_t *run, tg_buf_t *out);

/*
 * _durable.c: the run in the store. Without one each does nothing, and none but the
 * first three can fail the run. See _durable.h.
 */

/* Begins to keep a run that is to be kept; face names the kind of its answer. */
ngx_int_t ngx_http_toolgate_durable_open(ngx_http_toolgate_run_t *run,
    const char *face, ngx_str_t *invocation);
/* NGX_OK: go on. NGX_AGAIN: EVENT_OPENED follows, then call _is_opened, whose
 * NGX_DONE says that the run is there already. NGX_DECLINED: the run has failed. */
ngx_int_t ngx_http_toolgate_durable_create(ngx_http_toolgate_run_t *run);
ngx_int_t ngx_http_toolgate_durable_is_opened(ngx_http_toolgate_run_t *run);
void ngx_http_toolgate_durable_text(ngx_http_toolgate_run_t *run, tg_str_t text);
void ngx_http_toolgate_durable_call_begins(ngx_http_toolgate_call_t *call);
void ngx_http_toolgate_durable_call_ended(ngx_http_toolgate_call_t *call);
/* Has the intents of all calls that wait for that written down, then calls
 * call_recorded for each; nothing while the calls of a round are being gathered. */
void ngx_http_toolgate_durable_record(ngx_http_toolgate_run_t *run);
void ngx_http_toolgate_durable_checkpoint(ngx_http_toolgate_run_t *run);
/* Leaves a queued run to the run host: NGX_DONE. NGX_DECLINED: it is none, and is
 * driven here. */
ngx_int_t ngx_http_toolgate_durable_hand_over(ngx_http_toolgate_run_t *run);
/* There was no such run, since its request is refused. Nothing for one that another
 * has driven before. */
void ngx_http_toolgate_durable_forget(ngx_http_toolgate_run_t *run);
/* Writes that it waits: fields beside those of a checkpoint. NGX_ERROR: no memory. */
ngx_int_t ngx_http_toolgate_durable_pause(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_field_t *fields, ngx_uint_t n, ngx_msec_t wait,
    ngx_http_toolgate_run_done_pt done);
/* Nothing is written any more. */
void ngx_http_toolgate_durable_leave(ngx_http_toolgate_run_t *run);
/* The run is over, with this status; code: why, or NULL. */
void ngx_http_toolgate_durable_close(ngx_http_toolgate_run_t *run,
    tg_run_status_e status, const char *code);
/* The code for a run that is not ours to drive any more. */
const char *ngx_http_toolgate_durable_why(ngx_http_toolgate_run_answer_t *answer);
/* The fields that a run has in the store from its beginning, behind the first n; how
 * many there are then. */
ngx_uint_t ngx_http_toolgate_run_fields(ngx_pool_t *pool,
    ngx_http_toolgate_agent_t *agent, ngx_str_t *model, ngx_str_t *face,
    ngx_str_t *invocation, json_t *end_user, json_t *metadata,
    ngx_http_toolgate_field_t *fields, ngx_uint_t n);
/* The id that everybody outside knows the run by. */
tg_str_t ngx_http_toolgate_run_label(ngx_http_toolgate_run_t *run);

/*
 * _session.c: the run's part in its session. Without one each does nothing.
 */

/* Asks for it. NGX_OK: go on. NGX_AGAIN: EVENT_SESSION_KNOWN follows, then call
 * _is_joined. NGX_DECLINED: the run has failed. */
ngx_int_t ngx_http_toolgate_run_session_join(ngx_http_toolgate_run_t *run);
ngx_int_t ngx_http_toolgate_run_session_is_joined(ngx_http_toolgate_run_t *run);
/* JSON messages with commas between them, that go before those of the request. */
ngx_str_t ngx_http_toolgate_run_session_history(ngx_http_toolgate_run_t *run);
/* _session_keep.c: what would stay of the run if it got no further, the round under way
 * included. */
void ngx_http_toolgate_run_session_keep(ngx_http_toolgate_run_t *run);
/* A round has ended; text and ends are those of _calls_text. */
void ngx_http_toolgate_run_session_round(ngx_http_toolgate_run_t *run, tg_str_t text,
    size_t *ends);
/* Another worker drives it from here on. */
void ngx_http_toolgate_run_session_leave(ngx_http_toolgate_run_t *run);
/* The run is over: all that stays of it is kept. code NULL: it is completed. Then its
 * end is written down, then _end gives the session back; who finds it ended finds all
 * of it in the session. */
void ngx_http_toolgate_run_session_close(ngx_http_toolgate_run_t *run,
    const char *code);
void ngx_http_toolgate_run_session_end(ngx_http_toolgate_run_t *run);

/* _run_scan.c: has a run that nobody drives driven on this node, soon. */
void ngx_http_toolgate_run_kick(ngx_http_toolgate_main_conf_t *conf,
    ngx_http_toolgate_run_key_t *key);
ngx_int_t ngx_http_toolgate_run_scan_init_worker(ngx_cycle_t *cycle);

/* Follows a run instead of starting one: run->id is set, after is the number of the
 * last event that the caller has. The request is finalized by the run, later. */
void ngx_http_toolgate_run_follow(ngx_http_toolgate_run_t *run, int64_t after);

/* _follow.c: shows the caller what becomes of a run that goes on elsewhere, or has
 * ended; EVENT_FOLLOWED follows, then call _follow_end. */
void ngx_http_toolgate_follow(ngx_http_toolgate_run_t *run);
void ngx_http_toolgate_follow_wake(ngx_http_toolgate_run_t *run);
/* From inside of face->event: the answer ends with it, whether or not the run does. */
void ngx_http_toolgate_follow_stop(ngx_http_toolgate_run_t *run);
void ngx_http_toolgate_follow_end(ngx_http_toolgate_run_t *run);
/* What a run that is followed has ended with, or why it has no answer. */
void ngx_http_toolgate_follow_result(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_run_answer_t *document);
/* Its only caller has left: the run that he has followed is ended. */
void ngx_http_toolgate_follow_cancel(ngx_http_toolgate_run_t *run);

/* _restore.c: makes the model's turn again of which a restored round came. */
ngx_int_t ngx_http_toolgate_restore_turn(ngx_http_toolgate_run_t *run);
/* What the store knows of a call of the restored round: NGX_OK when it is over (its
 * result and code are set), NGX_DECLINED when nothing is known. */
ngx_int_t ngx_http_toolgate_restore_call(ngx_http_toolgate_call_t *call);
/* The ids that it has there. */
void ngx_http_toolgate_restore_ids(ngx_http_toolgate_call_t *call);

/* The agent's tool of this name, offered or not, or NULL. */
ngx_http_toolgate_tool_t *ngx_http_toolgate_run_tool(ngx_http_toolgate_run_t *run,
    ngx_str_t *name);

/* _call.c: moves one call on; called again when what it waited for has happened. */
void ngx_http_toolgate_call_advance(ngx_http_toolgate_call_t *call);
/* At the end of an event that calls have moved on by, which is not one of nginx's
 * own: posted requests run by themselves only after those. The request may be gone
 * when this returns. */
void ngx_http_toolgate_calls_from_event(ngx_http_toolgate_run_t *run);
/* What the store has said of its approval: "pending", "used", "rejected", "expired", or
 * data NULL when it could not be asked. */
void ngx_http_toolgate_call_asked(ngx_http_toolgate_call_t *call, ngx_str_t *status,
    ngx_str_t *reason);
/* The store has taken its intent, or code says why it must not run. */
void ngx_http_toolgate_call_recorded(ngx_http_toolgate_call_t *call,
    const char *code);
/* Says of one that has not ended that the run was ended before. */
void ngx_http_toolgate_call_cancelled(ngx_http_toolgate_call_t *call);

/* _gate.c: whether somebody outside can be waited for: the run is kept, and the run host
 * can go on with it. */
ngx_uint_t ngx_http_toolgate_run_can_wait(ngx_http_toolgate_run_t *run);
/* Whether a call that the policy allows waits for a person. */
ngx_uint_t ngx_http_toolgate_call_gated(ngx_http_toolgate_call_t *call);
/* Appends what a person is told of a call, members of JSON. */
void ngx_http_toolgate_call_describe(ngx_http_toolgate_call_t *call, tg_buf_t *out);
/* Asks the store for the approvals of all calls that wait for that, then calls
 * call_asked for each; nothing while the calls of a round are being gathered. */
void ngx_http_toolgate_gate_ask(ngx_http_toolgate_run_t *run);

/* _pause.c: writes down that the run waits, for whom and until when; EVENT_PAUSED
 * follows, then call _paused. */
void ngx_http_toolgate_run_pause(ngx_http_toolgate_run_t *run);
/* NGX_OK: it waits, and finish_reason is set. NGX_DECLINED: the run has failed. */
ngx_int_t ngx_http_toolgate_run_is_paused(ngx_http_toolgate_run_t *run);
/* Whether this is a call whose output the caller is to give. */
ngx_uint_t ngx_http_toolgate_call_handed_out(const ngx_http_toolgate_call_t *call);

/* _call_count.c: asks the store for all calls that are to be counted and were not
 * asked for yet; nothing while the calls of a round are being gathered. */
void ngx_http_toolgate_calls_count(ngx_http_toolgate_run_t *run);

/* _calls.c: starts the calls that the turn asked for; EVENT_CALLS_ENDED follows. */
ngx_int_t ngx_http_toolgate_calls_start(ngx_http_toolgate_run_t *run);
/* Notes the calls of a turn that may have none: they are not run. */
void ngx_http_toolgate_calls_drop(ngx_http_toolgate_run_t *run);
/* Adds a step of this id for a call with this code (NULL: ok). */
void ngx_http_toolgate_call_step(ngx_http_toolgate_run_t *run, const char *id,
    ngx_str_t *tool, const char *code);
/* Whether there are calls that cannot be taken back: some byte of an HTTP action may
 * have left. */
ngx_uint_t ngx_http_toolgate_calls_committed(ngx_http_toolgate_run_t *run);
/* Stops those that are under way, but for these: what is done is to be known. How many
 * are let finish; EVENT_CALLS_ENDED follows then. */
ngx_uint_t ngx_http_toolgate_calls_let_finish(ngx_http_toolgate_run_t *run);
/* An earlier call of the round that is the same and has not ended, or NULL. */
ngx_http_toolgate_call_t *ngx_http_toolgate_call_twin(
    ngx_http_toolgate_call_t *call);
/* Ends the round when each of its calls has ended or waits for somebody outside. */
void ngx_http_toolgate_calls_settle(ngx_http_toolgate_run_t *run);
/* Stops those that are under way. */
void ngx_http_toolgate_calls_cancel(ngx_http_toolgate_run_t *run);
/* Appends the round under way as the model gets it, with a comma before each message:
 * its calls, then the results in their order. ends: where the first message and each
 * result end. A call without a result has one that says so, unless open is set and it
 * was handed out. */
void ngx_http_toolgate_calls_text(ngx_http_toolgate_run_t *run, ngx_uint_t open,
    tg_buf_t *text, size_t ends[TG_DELTA_MAX_CALLS + 1]);
/* The code for what has come of a call so far; NULL: it went well. */
const char *ngx_http_toolgate_call_outcome(ngx_http_toolgate_call_t *call);
/* The word for a code in results as runners know them: ok, failed, cancelled. */
const char *ngx_http_toolgate_call_status(const char *code);
/* Adds the finished round to the history. */
ngx_int_t ngx_http_toolgate_calls_remember(ngx_http_toolgate_run_t *run);

/*
 * _steps.c: the record of an agent's run, for those who ask later what happened.
 * Each does nothing for a run that is not kept, and none can fail the run.
 */
void ngx_http_toolgate_steps_open(ngx_http_toolgate_run_t *run);
void ngx_http_toolgate_steps_turn_begins(ngx_http_toolgate_run_t *run);
/* code NULL: the model gave an answer. Before another place is tried. */
void ngx_http_toolgate_steps_turn_ended(ngx_http_toolgate_run_t *run,
    const char *code);
void ngx_http_toolgate_steps_round_begins(ngx_http_toolgate_run_t *run);
/* While the calls of the round are there. */
void ngx_http_toolgate_steps_round_ended(ngx_http_toolgate_run_t *run);
/* The run waits: calls that have ended are told now, nothing of it after this. */
void ngx_http_toolgate_steps_pause(ngx_http_toolgate_run_t *run);
/* A call that came when there may be none; id is that of its step. */
void ngx_http_toolgate_steps_dropped(ngx_http_toolgate_run_t *run,
    tg_delta_call_t *asked, const char *id);
/* The run is over; what is under way counts as cancelled. */
void ngx_http_toolgate_steps_close(ngx_http_toolgate_run_t *run);

/* _relay.c: the owner of a pass-through turn, and what follows when it ended. */
extern const ngx_http_toolgate_turn_owner_t  ngx_http_toolgate_relay_owner;
ngx_int_t ngx_http_toolgate_relay_finish(ngx_http_toolgate_run_t *run);
/* A vendor's refusal of the caller's content goes on as it is; NGX_DECLINED: it
 * cannot. */
ngx_int_t ngx_http_toolgate_relay_refusal(ngx_http_toolgate_run_t *run);

/* An ngx_str_t copy of bytes in the request's pool; data NULL: out of memory. */
ngx_str_t ngx_http_toolgate_copy(ngx_pool_t *pool, tg_str_t text);

#endif /* NGX_HTTP_TOOLGATE_RUN_H */
