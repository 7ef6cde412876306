/*
 * One call of a file tool in the front; see call.h. call_enter is the only function that
 * changes the state. Nothing here touches a file.
 */

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "files/call.h"
#include "tg_frame.h"


#define TGD_ANSWER_MAX  \
    (sizeof(tgd_file_answer_t) + 2 * TGD_WORK_RESULT_MAX + TGD_WORK_STATES_MAX)
#define TGD_ANSWER_READ  (64 * 1024)

static void call_enter(tgd_filecall_t *call, tgd_filecall_state_e state);


static bool
tool_writes(tgd_tool_e tool)
{
    return tool == TGD_TOOL_WRITE_FILE || tool == TGD_TOOL_WRITE_FILES
           || tool == TGD_TOOL_EDIT_FILE || tool == TGD_TOOL_MULTI_EDIT_FILE
           || tool == TGD_TOOL_DELETE_FILE;
}


static void
call_fail(tgd_filecall_t *call, const char *type, const char *message)
{
    tgd_error_set(&call->error, type, NULL, "%s", message);
    call_enter(call, TGD_FILECALL_DONE);
}


/* the arguments, and what the session knows of the file that they name */
static bool
call_request(tgd_filecall_t *call)
{
    char                path[TG_FILE_PATH_MAX + 1], *text;
    json_t             *value;
    tg_str_t            given;
    tgd_file_request_t  head;

    memset(&head, 0, sizeof(head));
    head.tool = (uint32_t) call->call.tool;

    value = json_object_get(call->call.arguments, "path");
    given.data = json_string_value(value);
    given.len = json_string_length(value);

    if (given.data != NULL && tg_file_path(given, path) == TG_FILE_PATH_OK) {
        (void) snprintf(head.known, sizeof(head.known), "%s",
                        tgd_states_get(&call->files->states, call->session, path));
    }

    text = json_dumps(call->call.arguments, JSON_COMPACT);
    if (text == NULL) {
        return false;
    }

    head.len = (uint32_t) strlen(text);
    (void) tg_buf_append(&call->request, &head, sizeof(head));
    (void) tg_buf_append(&call->request, text, head.len);
    free(text);

    return call->request.error == TG_OK;
}


/* the worker, and the request on its way */
static void
call_sending(tgd_filecall_t *call)
{
    int  rc, pair[2];

    call->started_us = tgd_monotonic_us();
    call->next = call->files->running;
    if (call->next != NULL) {
        call->next->prev = call;
    }
    call->files->running = call;

    if (!call_request(call)) {
        call_fail(call, "invalid_argument", "the arguments are too long for one call");
        return;
    }

    if (socketpair(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0, pair) == -1) {
        call_fail(call, "file_tool_failed", "the call could not be started");
        return;
    }

    rc = tgd_registry_worker(call->files->registry, call->account, pair[1], &call->worker);
    (void) close(pair[1]);

    if (rc == -1
        || tgd_watch_open(call->files->loop, &call->watch, pair[0], EPOLLOUT) == -1)
    {
        (void) close(pair[0]);
        call->watch.fd = -1;
        call_fail(call, "file_tool_failed", "the call could not be started");
        return;
    }

    tgd_timer_set(call->files->loop, &call->timer, TGD_FILES_WAIT_MS);
}


static void
call_send(tgd_filecall_t *call)
{
    ssize_t  n;

    n = send(call->watch.fd, call->request.data + call->sent,
             call->request.len - call->sent, MSG_NOSIGNAL|MSG_DONTWAIT);

    if (n == -1) {
        if (errno != EAGAIN && errno != EINTR) {
            call_fail(call, "file_tool_failed", "the call could not be worked on");
        }
        return;
    }

    call->sent += (size_t) n;
    if (call->sent == call->request.len) {
        call_enter(call, TGD_FILECALL_WAITING);
    }
}


/* the answer is whole, or the worker is gone without one */
static void
call_ended(tgd_filecall_t *call)
{
    tgd_file_answer_t  head;

    if (call->answer.len >= sizeof(head)) {
        memcpy(&head, call->answer.data, sizeof(head));

        if (head.len != 0 && head.len <= TG_FRAME_MAX
            && call->answer.len == sizeof(head) + head.len + head.states_len
            && tgd_states_take(&call->files->states, call->account, call->session,
                               (tg_str_t) { head.states_len, call->answer.data
                                            + sizeof(head) + head.len }))
        {
            call_enter(call, TGD_FILECALL_DONE);
            return;
        }
    }

    tg_buf_reset(&call->answer);
    call_fail(call, "file_tool_failed",
              "the call could not be worked on, or took too long");
}


/* an answer with nothing in it: the worker wants to commit, and waits */
static bool
call_asks(const tgd_filecall_t *call)
{
    tgd_file_answer_t  head;

    if (call->answer.len != sizeof(head)) {
        return false;
    }

    memcpy(&head, call->answer.data, sizeof(head));
    return head.len == 0;
}


/* a worker that does not get its leave has gone, which is read as end of file */
static void
call_committing(tgd_filecall_t *call)
{
    tg_buf_reset(&call->answer);
    (void) send(call->watch.fd, "", 1, MSG_NOSIGNAL|MSG_DONTWAIT);
    tgd_timer_set(call->files->loop, &call->timer, TGD_FILES_GRACE_MS);
}


static void
call_receive(tgd_filecall_t *call)
{
    ssize_t      n;
    static char  buffer[TGD_ANSWER_READ];

    n = recv(call->watch.fd, buffer, sizeof(buffer), MSG_DONTWAIT);

    if (n == -1 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }

    if (n <= 0 && call->state == TGD_FILECALL_ENDING) {
        call_enter(call, TGD_FILECALL_DONE);
        return;
    }

    if (n <= 0) {
        call_ended(call);
        return;
    }

    if (call->state == TGD_FILECALL_ENDING) {
        return;
    }

    if (tg_buf_append(&call->answer, buffer, (size_t) n) != TG_OK) {
        tg_buf_reset(&call->answer);
        call_fail(call, "file_tool_failed", "the answer could not be taken");

    } else if (call->state == TGD_FILECALL_WAITING && call_asks(call)) {
        call_enter(call, TGD_FILECALL_COMMITTING);
    }
}


static void
call_handler(tgd_watch_t *watch, uint32_t events)
{
    tgd_filecall_t  *call;

    call = watch->data;

    if (call->state == TGD_FILECALL_SENDING
        && (events & (EPOLLOUT|EPOLLHUP|EPOLLERR)))
    {
        call_send(call);

    } else if (call->state == TGD_FILECALL_WAITING
               || call->state == TGD_FILECALL_COMMITTING
               || call->state == TGD_FILECALL_ENDING)
    {
        call_receive(call);
    }
}


static void
call_timer(void *data)
{
    tgd_filecall_t  *call;

    call = data;

    if (call->state == TGD_FILECALL_ENDING) {
        call_enter(call, TGD_FILECALL_DONE);
        return;
    }

    tgd_registry_kill(call->files->registry, call->worker);

    if (call->state == TGD_FILECALL_COMMITTING) {
        tgd_error_set(&call->error, "file_tool_timed_out", NULL,
                      "the call took too long and was stopped; some of the files may be"
                      " written");
        call_enter(call, TGD_FILECALL_ENDING);
        return;
    }

    call_fail(call, "file_tool_timed_out", "the call took too long and was stopped");
}


static void
call_result(const tgd_filecall_t *call, tg_buf_t *out)
{
    tgd_error_t        error;
    tgd_file_answer_t  head;

    if (call->error.type != NULL) {
        tgd_error_json(&call->error, out);

    } else if (call->answer.len >= sizeof(head)) {
        memcpy(&head, call->answer.data, sizeof(head));
        (void) tg_buf_append(out, call->answer.data + sizeof(head), head.len);

    } else {
        tgd_error_set(&error, "cancelled", NULL, "the call was cancelled");
        tgd_error_json(&error, out);
    }
}


static void
call_log(const tgd_filecall_t *call)
{
    tgd_log(TGD_LOG_INFO, "call", "\"tool\":\"%s\",\"inv\":\"%.*s\",\"acct\":\"%.12s\","
            "\"dur_ms\":%lld,\"cancelled\":%s,\"error\":\"%s\",\"bytes_out\":%zu",
            tgd_tool_name(call->call.tool), (int) call->call.invocation_id.len,
            call->call.invocation_id.data, call->account,
            (long long) (call->started_us == 0 ? 0
                         : (tgd_monotonic_us() - call->started_us + 999) / 1000),
            call->cancelled ? "true" : "false",
            call->error.type == NULL ? "" : call->error.type, call->answer.len);
}


/* the one end of a call */
static void
call_finish(tgd_filecall_t *call)
{
    tg_buf_t      result;
    tgd_files_t  *files;

    files = call->files;

    if (call->prev != NULL) {
        call->prev->next = call->next;
    } else if (files->running == call) {
        files->running = call->next;
    }
    if (call->next != NULL) {
        call->next->prev = call->prev;
    }

    if (call->done != NULL) {
        tg_buf_init(&result, TG_FRAME_MAX);
        call_result(call, &result);
        call->done(call->owner, tg_buf_get(&result));
        tg_buf_free(&result);
    }

    call_log(call);
    tgd_watch_close(files->loop, &call->watch);
    tg_buf_free(&call->request);
    tg_buf_free(&call->answer);
    tgd_call_free(&call->call);
    tgd_queue_leave(&files->queue, &call->ticket);
    tgd_loop_dispose(files->loop, call);
}


static void
call_enter(tgd_filecall_t *call, tgd_filecall_state_e state)
{
    call->state = state;

    switch (state) {

    case TGD_FILECALL_QUEUED:
        break;

    case TGD_FILECALL_SENDING:
        call_sending(call);
        break;

    case TGD_FILECALL_WAITING:
        tg_buf_free(&call->request);
        tgd_watch_change(call->files->loop, &call->watch, EPOLLIN);
        break;

    case TGD_FILECALL_COMMITTING:
        call_committing(call);
        break;

    case TGD_FILECALL_ENDING:
        /* the account's next writer waits until this one is gone */
        tgd_timer_set(call->files->loop, &call->timer, TGD_FILES_END_MS);
        break;

    case TGD_FILECALL_DONE:
        tgd_timer_clear(call->files->loop, &call->timer);
        call_finish(call);
        break;
    }
}


static void
call_start(void *data)
{
    call_enter(data, TGD_FILECALL_SENDING);
}


static bool
call_blocked(void *data)
{
    tgd_filecall_t  *call, *other;

    call = data;
    if (!tool_writes(call->call.tool)) {
        return false;
    }

    for (other = call->files->running; other != NULL; other = other->next) {
        if (tool_writes(other->call.tool) && strcmp(other->account, call->account) == 0) {
            return true;
        }
    }

    return false;
}


void
tgd_files_init(tgd_files_t *files, tgd_loop_t *loop, tgd_registry_t *registry)
{
    memset(files, 0, sizeof(*files));
    files->loop = loop;
    files->registry = registry;
    tgd_queue_init(&files->queue, call_start, call_blocked);
}


void
tgd_files_free(tgd_files_t *files)
{
    tgd_states_free(&files->states);
}


tgd_filecall_t *
tgd_filecall_new(tgd_files_t *files, tgd_call_t *parsed,
    void (*done)(void *owner, tg_str_t result), void *owner)
{
    tgd_filecall_t  *call;

    call = calloc(1, sizeof(*call));
    if (call == NULL) {
        return NULL;
    }

    call->files = files;
    call->call = *parsed;
    call->done = done;
    call->owner = owner;
    call->watch.fd = -1;
    call->watch.handler = call_handler;
    call->watch.data = call;
    call->timer.handler = call_timer;
    call->timer.data = call;
    tg_buf_init(&call->request, sizeof(tgd_file_request_t) + TG_FRAME_MAX);
    tg_buf_init(&call->answer, TGD_ANSWER_MAX);

    tgd_workspace_name(parsed->project, parsed->account, call->account);
    tgd_session_key(parsed->project, parsed->account, parsed->session, call->session);

    if (tgd_queue_push(&files->queue, &call->ticket, call->account, call) == -1) {
        call_fail(call, "too_many_calls",
                  "too many calls of this account are waiting; try again later");
    }

    return call;
}


void
tgd_filecall_cancel(tgd_filecall_t *call)
{
    if (call->state == TGD_FILECALL_DONE) {
        return;
    }

    call->cancelled = true;
    if (call->state == TGD_FILECALL_COMMITTING || call->state == TGD_FILECALL_ENDING) {
        return;
    }

    if (call->worker != 0) {
        tgd_registry_kill(call->files->registry, call->worker);
    }

    tg_buf_reset(&call->answer);
    call_enter(call, TGD_FILECALL_DONE);
}


void
tgd_filecall_abandon(tgd_filecall_t *call)
{
    call->done = NULL;
    tgd_filecall_cancel(call);
}


void
tgd_filecall_shutdown(tgd_filecall_t *call)
{
    if (call->state == TGD_FILECALL_QUEUED) {
        call_fail(call, "shutting_down", "the helper is ending; try again");
    }
}
