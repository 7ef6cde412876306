/*
 * The life of one run_command; see run.h. run_enter is the only function that
 * changes the state.
 */

#include <errno.h>
#include <unistd.h>

#include "run.h"
#include "tg_frame.h"
#include "workspace.h"


#define TGD_RUN_READ_SIZE   (64 * 1024)
#define TGD_RUN_FLUSH_MAX   64         /* reads of what a dead job left in a pipe */

static void run_enter(tgd_run_t *run, tgd_run_state_e state);
static void run_finish(tgd_run_t *run);
static void run_ready(void *data);
static void run_report(void *data, const tgd_report_t *report);
static void run_lost(void *data, tgd_stage_e stage, int error);

static const tgd_session_user_t  run_user = { run_ready, run_report, run_lost };

static const char *const  stage_names[] = {
    "unknown", "workspace", "control groups", "namespaces", "identity", "mounts",
    "proc", "network", "root", "privileges", "job"
};


static void
stream_unpause(void *data)
{
    tgd_run_stream_t  *stream;

    stream = data;
    tgd_watch_change(stream->run->loop, &stream->watch, EPOLLIN);
}


/* takes what one read gives; false when there is nothing more for now */
static bool
stream_take(tgd_run_stream_t *stream, ssize_t *got)
{
    tgd_run_t    *run;
    static char   buffer[TGD_RUN_READ_SIZE];

    run = stream->run;
    *got = 0;

    if (stream->watch.fd == -1) {
        return false;
    }

    do {
        *got = read(stream->watch.fd, buffer, sizeof(buffer));
    } while (*got == -1 && errno == EINTR);

    if (*got == -1) {
        if (errno != EAGAIN) {
            tgd_watch_close(run->loop, &stream->watch);
        }
        return false;
    }

    if (*got == 0) {
        tgd_timer_clear(run->loop, &stream->pause);
        tgd_watch_close(run->loop, &stream->watch);
        return false;
    }

    tgd_output_add(&stream->output, buffer, (size_t) *got);

    if (run->call.stream && run->owner != NULL) {
        run->owner->output(run->owner_data, stream == &run->streams[1],
                           (tg_str_t) { (size_t) *got, buffer });
    }

    return true;
}


static bool
streams_ended(const tgd_run_t *run)
{
    return run->streams[0].watch.fd == -1 && run->streams[1].watch.fd == -1;
}


static void
stream_handler(tgd_watch_t *watch, uint32_t events)
{
    ssize_t            n;
    tgd_run_t         *run;
    tgd_run_stream_t  *stream;

    (void) events;
    stream = watch->data;
    run = stream->run;

    if (run->call.stream && run->owner != NULL && !run->owner->room(run->owner_data)) {
        /* the pipe fills, the job waits; not for ever */
        tgd_watch_change(run->loop, watch, 0);
        if (run->stall.place == 0) {
            tgd_timer_set(run->loop, &run->stall, TGD_RUN_STALL_MS);
        }
        return;
    }

    if (stream_take(stream, &n)) {
        if (run->streams[0].output.bytes + run->streams[1].output.bytes > TGD_OUTPUT_MAX
            && run->limit == NULL && run->state < TGD_RUN_KILLING)
        {
            run->limit = "output";
            run_enter(run, TGD_RUN_KILLING);
            return;
        }

        if (n < TGD_RUN_SMALL_READ) {
            tgd_watch_change(run->loop, watch, 0);
            tgd_timer_set(run->loop, &stream->pause, TGD_RUN_PAUSE_MS);
        }
    }

    if (run->state == TGD_RUN_LEFTOVERS && streams_ended(run)) {
        run_enter(run, TGD_RUN_KILLING);
    }
}


static void
run_stalled(void *data)
{
    tgd_run_t  *run;

    run = data;
    if (run->state < TGD_RUN_KILLING) {
        run->limit = "output_stall";
        run_enter(run, TGD_RUN_KILLING);
    }
}


static void
run_fail(tgd_run_t *run, const char *type, const char *field, const char *message)
{
    tgd_error_set(&run->error, type, field, "%s", message);
    run_enter(run, TGD_RUN_DONE);
}


static void
run_unavailable(tgd_run_t *run, tgd_stage_e stage, int error)
{
    (void) error;
    tgd_error_set(&run->error, "sandbox_unavailable", NULL,
                  "a sandbox could not be made (%s)", stage_names[stage]);
    run_enter(run, TGD_RUN_DONE);
}


/* takes the session of this key or makes one */
static void
run_starting(tgd_run_t *run)
{
    run->started_us = tgd_monotonic_us();
    run->session = tgd_session_find(run->registry, run->key);

    if (run->session != NULL) {
        tgd_session_take(run->session, &run_user, run);

    } else {
        run->session = tgd_session_make(run->registry, run->key, run->account,
                                        TGD_MEMORY_MIB, TGD_PIDS, &run_user, run);
        if (run->session == NULL) {
            if (errno == EBUSY) {
                run_fail(run, "too_many_sessions", NULL,
                         "all sandboxes of this account are busy; try again later");
            } else {
                run_unavailable(run, TGD_STAGE_JOB, errno);
            }
            return;
        }
    }

    run->session_reset = run->session->replaced;
    memcpy(run->sandbox_id, run->session->sandbox_id, sizeof(run->sandbox_id));

    if (run->session->state == TGD_SESSION_READY) {
        run_ready(run);
    }
}


static void
run_ready(void *data)
{
    tgd_run_t  *run;

    run = data;
    run_enter(run, run->cancelled ? TGD_RUN_DONE : TGD_RUN_RUNNING);
}


/* the order, its output, the deadline */
static void
run_running(tgd_run_t *run)
{
    int  i, rc, outputs[2];

    rc = tgd_session_run(run->session, TGD_ORDER_RUN, tg_str_of(run->call.cwd),
                         run->call.command, tg_buf_get(&run->call.env),
                         run->call.env_count, outputs);

    if (rc == -1) {
        run_unavailable(run, TGD_STAGE_JOB, errno);
        return;
    }

    for (i = 0; i < 2; i++) {
        if (tgd_watch_open(run->loop, &run->streams[i].watch, outputs[i], EPOLLIN)
            == -1)
        {
            /* a result without its output would be a wrong one */
            (void) close(outputs[i]);
            rc = -1;
        }
    }

    if (rc == -1) {
        tgd_session_end(run->session, "lost");
        run->session = NULL;
        run_unavailable(run, TGD_STAGE_JOB, errno);
        return;
    }

    tgd_timer_set(run->loop, &run->timer, run->call.timeout_s * 1000);
}


static void
run_enter(tgd_run_t *run, tgd_run_state_e state)
{
    tgd_timer_clear(run->loop, &run->timer);
    run->state = state;

    switch (state) {

    case TGD_RUN_QUEUED:
        break;

    case TGD_RUN_STARTING:
        run_starting(run);
        break;

    case TGD_RUN_RUNNING:
        run_running(run);
        break;

    case TGD_RUN_TERMINATING:
        (void) tgd_session_order(run->session, TGD_ORDER_TERM);
        tgd_timer_set(run->loop, &run->timer, TGD_RUN_TERM_MS);
        break;

    case TGD_RUN_LEFTOVERS:
        if (streams_ended(run)) {
            run_enter(run, TGD_RUN_KILLING);
        } else {
            tgd_timer_set(run->loop, &run->timer, TGD_RUN_DRAIN_MS);
        }
        break;

    case TGD_RUN_KILLING:
        (void) tgd_session_order(run->session, TGD_ORDER_KILL);
        tgd_timer_set(run->loop, &run->timer, TGD_RUN_KILL_MS);
        break;

    case TGD_RUN_DONE:
        run_finish(run);
        break;
    }
}


/* the time of a state is over */
static void
run_timer(void *data)
{
    tgd_run_t  *run;

    run = data;

    switch (run->state) {

    case TGD_RUN_RUNNING:
        run->timed_out = true;
        run_enter(run, TGD_RUN_TERMINATING);
        break;

    case TGD_RUN_TERMINATING:
    case TGD_RUN_LEFTOVERS:
        run_enter(run, TGD_RUN_KILLING);
        break;

    case TGD_RUN_KILLING:
        /* the supervisor does not get it done: its whole sandbox goes */
        tgd_session_end(run->session, "hung");
        run->session = NULL;
        run_enter(run, TGD_RUN_DONE);
        break;

    default:
        break;
    }
}


static void
run_refused(tgd_run_t *run, const tgd_report_t *report)
{
    if (report->stage != TGD_STAGE_WORKSPACE) {
        run_unavailable(run, (tgd_stage_e) report->stage, report->error);

    } else if (report->error == ENOTDIR) {
        run_fail(run, "invalid_argument", "cwd", "cwd: not a directory");

    } else {
        run_fail(run, "invalid_argument", "cwd", "cwd: no such directory");
    }
}


static void
run_report(void *data, const tgd_report_t *report)
{
    tgd_run_t  *run;

    run = data;

    switch (report->op) {

    case TGD_REPORT_REFUSED:
        run_refused(run, report);
        break;

    case TGD_REPORT_EXIT:
        run->has_status = true;
        run->status = report->status;
        run->oom = report->oom;
        run->pids = report->pids;

        if (report->alone) {
            run_enter(run, TGD_RUN_DONE);

        } else if (run->state != TGD_RUN_KILLING) {
            run_enter(run, TGD_RUN_LEFTOVERS);
        }
        break;

    case TGD_REPORT_EMPTY:
        run->oom = report->oom;
        run->pids = report->pids;
        run_enter(run, TGD_RUN_DONE);
        break;

    default:
        break;
    }
}


/* the sandbox is gone, by the kernel's hand or because it never came up */
static void
run_lost(void *data, tgd_stage_e stage, int error)
{
    tgd_run_t  *run;

    run = data;
    run->session = NULL;

    if (run->state == TGD_RUN_STARTING) {
        run_unavailable(run, stage, error);
        return;
    }

    run_enter(run, TGD_RUN_DONE);
}


/* what the job wrote before it ended lies in the pipes still */
static void
run_flush(tgd_run_t *run)
{
    int      i, n;
    ssize_t  got;

    for (i = 0; i < 2; i++) {
        for (n = 0; n < TGD_RUN_FLUSH_MAX; n++) {
            if (!stream_take(&run->streams[i], &got)) {
                break;
            }
        }
    }
}


static void
run_close(tgd_run_t *run)
{
    int  i;

    for (i = 0; i < 2; i++) {
        tgd_timer_clear(run->loop, &run->streams[i].pause);
        tgd_watch_close(run->loop, &run->streams[i].watch);
        tgd_output_free(&run->streams[i].output);
    }
}


/* the one end of a run: the owner is told, everything is given back, all is freed */
static void
run_finish(tgd_run_t *run)
{
    tg_buf_t        result;
    tgd_session_t  *session;

    run_flush(run);
    tgd_timer_clear(run->loop, &run->stall);
    run->duration_ms = run->started_us == 0
                       ? 0 : (tgd_monotonic_us() - run->started_us + 999) / 1000;

    session = run->session;
    run->session = NULL;

    if (session != NULL) {
        tgd_session_release(session);
        run->expires_at = tgd_session_expires_at(session);
    }

    if (run->owner != NULL) {
        tg_buf_init(&result, TGD_RUN_RESULT_MAX);
        tgd_run_result(run, &result);
        run->owner->done(run->owner_data, tg_buf_get(&result));
        tg_buf_free(&result);
    }

    tgd_run_log(run);
    run_close(run);

    if (session != NULL && session->state == TGD_SESSION_BUSY) {
        (void) tgd_session_order(session, TGD_ORDER_NEXT);
    }

    tgd_call_free(&run->call);
    tgd_queue_leave(run->queue, &run->ticket);
    tgd_loop_dispose(run->loop, run);
}


void
tgd_run_start(void *data)
{
    run_enter(data, TGD_RUN_STARTING);
}


bool
tgd_run_blocked(void *data)
{
    tgd_run_t      *run;
    tgd_session_t  *session;

    run = data;
    session = tgd_session_find(run->registry, run->key);

    return session != NULL && session->user != NULL;
}


tgd_run_t *
tgd_run_new(tgd_loop_t *loop, tgd_registry_t *registry, tgd_queue_t *queue,
    tgd_call_t *call, const tgd_run_owner_t *owner, void *owner_data)
{
    int         i;
    tgd_run_t  *run;

    run = calloc(1, sizeof(*run));
    if (run == NULL) {
        return NULL;
    }

    run->loop = loop;
    run->registry = registry;
    run->queue = queue;
    run->call = *call;
    run->owner = owner;
    run->owner_data = owner_data;
    run->timer.handler = run_timer;
    run->timer.data = run;
    run->stall.handler = run_stalled;
    run->stall.data = run;

    for (i = 0; i < 2; i++) {
        run->streams[i].run = run;
        run->streams[i].watch.fd = -1;
        run->streams[i].watch.handler = stream_handler;
        run->streams[i].watch.data = &run->streams[i];
        run->streams[i].pause.handler = stream_unpause;
        run->streams[i].pause.data = &run->streams[i];
        tgd_output_init(&run->streams[i].output);
    }

    tgd_workspace_name(call->project, call->account, run->account);
    tgd_session_key(call->project, call->account, call->session, run->key);

    if (tgd_queue_push(queue, &run->ticket, run->account, run) == -1) {
        run_fail(run, "too_many_calls", NULL,
                 "too many calls of this account are waiting; try again later");
    }

    return run;
}


void
tgd_run_cancel(tgd_run_t *run)
{
    if (run->cancelled) {
        return;
    }

    run->cancelled = true;

    switch (run->state) {

    case TGD_RUN_QUEUED:
        run_enter(run, TGD_RUN_DONE);
        break;

    case TGD_RUN_RUNNING:
    case TGD_RUN_TERMINATING:
    case TGD_RUN_LEFTOVERS:
        run_enter(run, TGD_RUN_KILLING);
        break;

    default:
        /* starting: as soon as it is ready; killing: already on the way */
        break;
    }
}


void
tgd_run_abandon(tgd_run_t *run)
{
    run->owner = NULL;
    tgd_run_cancel(run);
}


void
tgd_run_shutdown(tgd_run_t *run)
{
    if (run->state == TGD_RUN_QUEUED) {
        run_fail(run, "shutting_down", NULL, "the helper is ending; try again");
    }
}


void
tgd_run_resume(tgd_run_t *run)
{
    int  i;

    if (run->stall.place == 0) {
        return;
    }

    tgd_timer_clear(run->loop, &run->stall);
    for (i = 0; i < 2; i++) {
        tgd_watch_change(run->loop, &run->streams[i].watch, EPOLLIN);
    }
}
