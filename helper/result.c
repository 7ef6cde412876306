/*
 * The answer of a run of run_command and its line in the log: how it ended, what it
 * wrote, which limit was hit. Built so that it always fits one record.
 */

#include <signal.h>
#include <sys/wait.h>

#include "run.h"
#include "tg_frame.h"


#define TGD_EXIT_TIMED_OUT   124
#define TGD_EXIT_FILE_SIZE   (128 + SIGXFSZ)
#define TGD_COMMAND_SHOWN    4000      /* bytes of the command in the answer */

typedef struct {
    int          exit_code;
    int          signal;       /* 0: none */
    bool         lost;         /* the sandbox went with the job */
    const char  *limit;        /* NULL: none */
} tgd_outcome_t;


static void
outcome_of(const tgd_run_t *run, tgd_outcome_t *outcome)
{
    memset(outcome, 0, sizeof(*outcome));

    if (!run->has_status) {
        outcome->lost = true;
        outcome->exit_code = 128 + SIGKILL;
        outcome->signal = SIGKILL;

    } else if (WIFEXITED(run->status)) {
        outcome->exit_code = WEXITSTATUS(run->status);

    } else {
        outcome->signal = WTERMSIG(run->status);
        outcome->exit_code = 128 + outcome->signal;
    }

    if (run->timed_out) {
        outcome->exit_code = TGD_EXIT_TIMED_OUT;
        outcome->limit = "time";

    } else if (run->limit != NULL) {
        outcome->limit = run->limit;

    } else if (run->oom != 0) {
        outcome->limit = "memory";

    } else if (outcome->exit_code == TGD_EXIT_FILE_SIZE) {
        outcome->limit = "disk";

    } else if (run->pids != 0) {
        outcome->limit = "pids";
    }
}


static void
append_failure(const tgd_run_t *run, const tgd_outcome_t *outcome, tg_buf_t *out)
{
    if (run->timed_out) {
        (void) tg_buf_printf(out, ",\"error_type\":\"command_timed_out\","
                             "\"error_message\":\"stopped after %lld s\"",
                             (long long) run->call.timeout_s);

    } else if (run->limit != NULL) {
        (void) tg_buf_printf(out, ",\"error_type\":\"output_limit\","
                             "\"error_message\":\"stopped: %s\"",
                             strcmp(run->limit, "output") == 0
                             ? "it wrote over 16 MiB" : "nobody took its output");

    } else if (outcome->lost) {
        (void) tg_buf_cstr(out, ",\"error_type\":\"session_lost\",\"error_message\":"
                           "\"the sandbox ended with the command; the next call gets"
                           " a new one with the same workspace\"");

    } else if (outcome->signal != 0) {
        (void) tg_buf_printf(out, ",\"error_type\":\"command_failed\","
                             "\"error_message\":\"killed by signal %d%s\"",
                             outcome->signal,
                             run->oom != 0 ? ": out of memory" : "");

    } else {
        (void) tg_buf_printf(out, ",\"error_type\":\"command_failed\","
                             "\"error_message\":\"exited with code %d%s\"",
                             outcome->exit_code,
                             run->oom != 0 ? "; something ran out of memory" : "");
    }
}


/* the command as given, or its beginning */
static void
append_command(const tgd_run_t *run, tg_buf_t *out)
{
    size_t    n;
    tg_str_t  command;

    command = run->call.command;
    n = command.len;

    if (n > TGD_COMMAND_SHOWN) {
        n = TGD_COMMAND_SHOWN;
        /* not in the middle of a character */
        while (n > 0 && ((uint8_t) command.data[n] & 0xC0) == 0x80) {
            n--;
        }
    }

    (void) tg_buf_cstr(out, ",\"command\":");
    (void) tg_buf_json_string(out, (tg_str_t) { n, command.data });
    if (n != command.len) {
        (void) tg_buf_cstr(out, ",\"command_truncated\":true");
    }
}


static void
append_result(const tgd_run_t *run, size_t shown_max, tg_buf_t *out)
{
    bool           ok;
    tgd_outcome_t  outcome;

    outcome_of(run, &outcome);
    ok = outcome.exit_code == 0 && run->limit == NULL;

    (void) tg_buf_printf(out, "{\"ok\":%s", ok ? "true" : "false");
    if (!ok) {
        append_failure(run, &outcome, out);
    }

    (void) tg_buf_printf(out, ",\"backend\":\"sandbox/native\",\"sandbox_id\":\"%s\"",
                         run->sandbox_id);
    append_command(run, out);

    tgd_output_json(&run->streams[0].output, "stdout", shown_max, out);
    tgd_output_json(&run->streams[1].output, "stderr", shown_max, out);

    (void) tg_buf_printf(out, ",\"exit_code\":%d,\"signal\":", outcome.exit_code);
    if (outcome.signal == 0) {
        (void) tg_buf_cstr(out, "null");
    } else {
        (void) tg_buf_int(out, outcome.signal);
    }

    (void) tg_buf_printf(out, ",\"timed_out\":%s,\"limit\":",
                         run->timed_out ? "true" : "false");
    if (outcome.limit == NULL) {
        (void) tg_buf_cstr(out, "null");
    } else {
        (void) tg_buf_printf(out, "\"%s\"", outcome.limit);
    }

    (void) tg_buf_printf(out, ",\"duration_ms\":%lld,\"session_reset\":%s,"
                         "\"expires_at\":", (long long) run->duration_ms,
                         run->session_reset ? "true" : "false");
    if (run->expires_at == 0) {
        (void) tg_buf_cstr(out, "null}");
    } else {
        (void) tg_buf_printf(out, "%.3f}", run->expires_at);
    }
}


void
tgd_run_result(const tgd_run_t *run, tg_buf_t *out)
{
    tgd_error_t  error;

    if (run->error.type != NULL) {
        tgd_error_json(&run->error, out);
        return;
    }

    if (run->cancelled) {
        tgd_error_set(&error, "cancelled", NULL, "the call was cancelled");
        tgd_error_json(&error, out);
        return;
    }

    append_result(run, TGD_SHOWN_MAX, out);

    if (out->error != TG_OK || out->len > TG_FRAME_MAX) {
        /* escapes may make text six times as long: then previews of both */
        tg_buf_reset(out);
        append_result(run, TGD_PREVIEW_CHARS, out);
    }
}


void
tgd_run_log(const tgd_run_t *run)
{
    int  code;

    code = run->error.type != NULL || !run->has_status ? -1
           : WIFEXITED(run->status) ? WEXITSTATUS(run->status)
           : 128 + WTERMSIG(run->status);

    tgd_log(TGD_LOG_INFO, "call", "\"tool\":\"run_command\",\"inv\":\"%.*s\","
            "\"acct\":\"%.12s\",\"sandbox\":\"%s\",\"dur_ms\":%lld,\"exit\":%d,"
            "\"timed_out\":%s,\"cancelled\":%s,\"error\":\"%s\",\"bytes_out\":%llu",
            (int) run->call.invocation_id.len, run->call.invocation_id.data,
            run->account, run->sandbox_id, (long long) run->duration_ms, code,
            run->timed_out ? "true" : "false", run->cancelled ? "true" : "false",
            run->error.type == NULL ? "" : run->error.type,
            (unsigned long long) (run->streams[0].output.bytes
                                  + run->streams[1].output.bytes));
}
