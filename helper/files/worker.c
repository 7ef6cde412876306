/*
 * A file worker; see worker.h. It reads the fixed head of its request, gives up what it
 * will not need, and only then looks at what a client wrote.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/socket.h>
#include <unistd.h>

#include "files/confine.h"
#include "files/wire.h"
#include "files/worker.h"
#include "tg_frame.h"


#define TGD_WORKER_TITLE   "toolgated: files"
#define TGD_WORKER_DETOUR  64

enum {
    TGD_WORKER_ROOT = 3,
    TGD_WORKER_SOCKET
};

static const struct {
    tgd_tool_e   tool;
    tgd_work_pt  run;
    bool         programs;        /* runs one of the system's programs */
} worker_tools[] = {
    { TGD_TOOL_WORKSPACE_STATUS, tgd_files_status, false },
    { TGD_TOOL_LIST_FILES, tgd_files_list, false },
    { TGD_TOOL_READ_FILE, tgd_files_read, false },
    { TGD_TOOL_WRITE_FILE, tgd_files_write, false },
    { TGD_TOOL_WRITE_FILES, tgd_files_write_many, false },
    { TGD_TOOL_EDIT_FILE, tgd_files_edit, false },
    { TGD_TOOL_MULTI_EDIT_FILE, tgd_files_multi_edit, false },
    { TGD_TOOL_LINT_FILE, tgd_files_lint, true },
    { TGD_TOOL_SEARCH_FILES, tgd_files_search, true },
    { TGD_TOOL_DELETE_FILE, tgd_files_delete, false }
};

#define TGD_WORKER_TOOLS  (sizeof(worker_tools) / sizeof(worker_tools[0]))


/* the two descriptors to fixed places, /dev/null to the standard ones, no others */
static int
worker_files(const tgd_worker_t *worker)
{
    int  null, root, socket;

    null = open("/dev/null", O_RDWR|O_CLOEXEC);
    root = fcntl(worker->workspace, F_DUPFD_CLOEXEC, TGD_WORKER_DETOUR);
    socket = fcntl(worker->socket, F_DUPFD_CLOEXEC, TGD_WORKER_DETOUR);

    if (null == -1 || root == -1 || socket == -1
        || dup2(null, 0) == -1 || dup2(null, 1) == -1 || dup2(null, 2) == -1
        || dup3(root, TGD_WORKER_ROOT, O_CLOEXEC) == -1
        || dup3(socket, TGD_WORKER_SOCKET, O_CLOEXEC) == -1)
    {
        return -1;
    }

    return (int) syscall(SYS_close_range, TGD_WORKER_SOCKET + 1, ~0U, 0);
}


static bool
receive(void *data, size_t len)
{
    size_t   at;
    ssize_t  n;

    for (at = 0; at < len; at += (size_t) n) {
        n = recv(TGD_WORKER_SOCKET, (char *) data + at, len - at, 0);
        if (n == -1 && errno == EINTR) {
            n = 0;
            continue;
        }
        if (n <= 0) {
            return false;
        }
    }

    return true;
}


static void
answer_send(const void *data, size_t len)
{
    size_t   at;
    ssize_t  n;

    for (at = 0; at < len; at += (size_t) n) {
        n = send(TGD_WORKER_SOCKET, (const char *) data + at, len - at, MSG_NOSIGNAL);
        if (n == -1) {
            if (errno != EINTR) {
                /* nobody wants it any more */
                _exit(0);
            }
            n = 0;
        }
    }
}


/* The front's leave is waited for: without it the front could have us killed after the
 * first of the files. What this took of the time does not count for the commit. */
static bool
worker_commit(void)
{
    char                            leave;
    static const tgd_file_answer_t  none = { 0, 0 };

    /* on a socket that is empty this much goes in at once */
    if (send(TGD_WORKER_SOCKET, &none, sizeof(none), MSG_NOSIGNAL)
        != (ssize_t) sizeof(none)
        || !receive(&leave, sizeof(leave)))
    {
        return false;
    }

    (void) alarm(TGD_FILES_COMMIT_S);
    return true;
}


static void
work_answer(tgd_work_t *work, bool done)
{
    tg_buf_t           text;
    tgd_file_answer_t  head;

    tg_buf_init(&text, TGD_WORK_RESULT_MAX + TGD_ERROR_MESSAGE_MAX * 8);

    if (done && work->out.error != TG_OK) {
        (void) tgd_work_fail(work, "result_too_large", NULL,
                             "the answer does not fit; ask for less");
        tg_buf_reset(&work->about);
        done = false;
    }

    if (!done) {
        tgd_error_json(&work->error, &text);
        if (work->about.len != 0 && work->about.error == TG_OK) {
            /* members go in before the last bracket */
            text.len--;
            (void) tg_buf_str(&text, tg_buf_get(&work->about));
            (void) tg_buf_char(&text, '}');
        }
    }

    head.len = (uint32_t) (done ? work->out.len : text.len);
    head.states_len = (uint32_t) (work->states.error == TG_OK ? work->states.len : 0);

    answer_send(&head, sizeof(head));
    answer_send(done ? work->out.data : text.data, head.len);
    answer_send(work->states.data, head.states_len);
}


static void
work_run(const tgd_file_request_t *request, char *arguments, tgd_work_pt run)
{
    bool               done;
    static tgd_work_t  work;

    work.tree.root = TGD_WORKER_ROOT;
    work.tree.deadline = tgd_monotonic_ms() + TGD_FILES_WORK_MS;
    work.commit = worker_commit;
    work.known = request->known;
    work.arguments = json_loadb(arguments, request->len, JSON_ALLOW_NUL, NULL);
    tg_buf_init(&work.out, TGD_WORK_RESULT_MAX);
    tg_buf_init(&work.about, TGD_WORK_LIST_MAX);
    tg_buf_init(&work.states, TGD_WORK_STATES_MAX);

    done = json_is_object(work.arguments)
           ? run(&work)
           : tgd_work_fail(&work, "invalid_argument", NULL, "arguments are an object");

    work_answer(&work, done);
}


void
tgd_worker_run(const tgd_worker_t *worker)
{
    char                *arguments;
    size_t               i;
    sigset_t             none;
    tgd_file_request_t   request;

    /* a launcher that went before this sends no signal any more */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == -1
        || getppid() != worker->parent)
    {
        _exit(1);
    }

    worker->set_title(TGD_WORKER_TITLE);
    (void) sigemptyset(&none);
    (void) sigprocmask(SIG_SETMASK, &none, NULL);
    (void) alarm(TGD_FILES_TIME_S);

    if (worker_files(worker) == -1 || !receive(&request, sizeof(request))
        || request.len > TG_FRAME_MAX)
    {
        _exit(1);
    }

    for (i = 0; i < TGD_WORKER_TOOLS; i++) {
        if ((uint32_t) worker_tools[i].tool == request.tool) {
            break;
        }
    }

    if (i == TGD_WORKER_TOOLS
        || tgd_confine_worker(worker, TGD_WORKER_ROOT, worker_tools[i].programs) == -1
        || getppid() != worker->parent)
    {
        /* changing the user id has asked for the signal anew */
        _exit(1);
    }

    request.known[TGD_HASH_HEX] = '\0';
    arguments = malloc(request.len + 1);

    if (arguments == NULL || !receive(arguments, request.len)) {
        _exit(1);
    }

    work_run(&request, arguments, worker_tools[i].run);
    _exit(0);
}
