/*
 * CancelRun and ResumeRun: a run is ended from outside, or one that nobody drives any
 * more is given to whoever looks for such runs.
 */

#include "ngx_http_toolgate_actions.h"

#include "tg_ksadk.h"


#define NGX_HTTP_TOOLGATE_ACTION_DATA_MAX  4096

/* What CancelRun says of a run. */
typedef struct {
    ngx_uint_t   cancelled;
    ngx_uint_t   found;
    const char  *status;
    const char  *runner;
} ngx_http_toolgate_cancel_said_t;

/* What ResumeRun asks for. */
typedef struct {
    ngx_str_t    run;
    ngx_str_t    checkpoint;
    ngx_str_t    attempt;
} ngx_http_toolgate_resume_t;


static void ngx_http_toolgate_cancel_found(ngx_http_toolgate_action_t *a,
    ngx_http_toolgate_run_answer_t *answer);
static void ngx_http_toolgate_cancel_done(void *data,
    ngx_http_toolgate_run_answer_t *answer);
static void ngx_http_toolgate_cancel_reply(ngx_http_toolgate_action_t *a,
    ngx_http_toolgate_cancel_said_t *said);
static void ngx_http_toolgate_resume_found(ngx_http_toolgate_action_t *a,
    ngx_http_toolgate_run_answer_t *answer);
static const char *ngx_http_toolgate_resume_refused(
    ngx_http_toolgate_action_t *a, ngx_http_toolgate_run_answer_t *answer,
    const char **message);
static void ngx_http_toolgate_resume_reply(ngx_http_toolgate_action_t *a,
    ngx_http_toolgate_run_answer_t *answer, const char *status);


void
ngx_http_toolgate_action_cancel(ngx_http_toolgate_action_t *a)
{
    ngx_str_t  run, user;

    if (ngx_http_toolgate_action_id(a, "InvocationId", 1, &run) != NGX_OK
        || ngx_http_toolgate_action_id(a, "SessionId", 0, &a->session) != NGX_OK
        || ngx_http_toolgate_action_agent(a, 0) != NGX_OK
        || ngx_http_toolgate_action_label(a, "UserId", &user) != NGX_OK)
    {
        ngx_http_toolgate_action_refuse(a);
        return;
    }

    if (user.len && a->agent.len == 0) {
        (void) ngx_http_toolgate_fault(&a->fault, "missing_parameter", "AgentId",
                                       "With \"UserId\" \"AgentId\" is "
                                       "needed, too.");
        ngx_http_toolgate_action_refuse(a);
        return;
    }

    ngx_http_toolgate_action_find(a, &run, ngx_http_toolgate_cancel_found);
}


static void
ngx_http_toolgate_cancel_found(ngx_http_toolgate_action_t *a,
    ngx_http_toolgate_run_answer_t *answer)
{
    ngx_str_t                         invocation;
    ngx_http_toolgate_main_conf_t    *tmcf;
    ngx_http_toolgate_cancel_said_t   said = { 0, 0, "not_found", "not_found" };

    if (answer->answer == NGX_HTTP_TOOLGATE_ANSWER_GONE) {
        ngx_http_toolgate_cancel_reply(a, &said);
        return;
    }

    if (ngx_http_toolgate_action_fits(a, answer) != NGX_OK) {
        ngx_http_toolgate_action_refuse(a);
        return;
    }

    tmcf = ngx_http_get_module_main_conf(a->request, ngx_http_toolgate_module);
    invocation = ngx_http_toolgate_run_answer_field(answer, "invocation");

    if (ngx_http_toolgate_run_store_cancel(a->request->pool, tmcf->redis, &a->run,
                                           &invocation, "cancelled",
                                           tmcf->retention,
                                           ngx_http_toolgate_cancel_done, a)
        != NGX_OK)
    {
        (void) ngx_http_toolgate_fault(&a->fault, "internal_error", NULL, NULL);
        ngx_http_toolgate_action_refuse(a);
    }
}


static void
ngx_http_toolgate_cancel_done(void *data, ngx_http_toolgate_run_answer_t *answer)
{
    ngx_http_toolgate_action_t *a = data;

    ngx_connection_t                 *c;
    ngx_http_toolgate_cancel_said_t   said;

    c = a->request->connection;

    switch (answer->answer) {

    case NGX_HTTP_TOOLGATE_ANSWER_OK:

        /* text is who drove it: that one has yet to hear of it */

        said = (ngx_http_toolgate_cancel_said_t) {
            1, 1, "cancelling", answer->text.len ? "accepted" : "cancelled"
        };
        ngx_http_toolgate_cancel_reply(a, &said);
        break;

    case NGX_HTTP_TOOLGATE_ANSWER_ENDED:

        /* cancelled before, or too late for that */

        said = (ngx_http_toolgate_cancel_said_t) {
            0, 1, "not_found", "not_found"
        };

        if (answer->text.len == sizeof("cancelled") - 1
            && ngx_memcmp(answer->text.data, "cancelled", answer->text.len) == 0)
        {
            said = (ngx_http_toolgate_cancel_said_t) {
                1, 1, "cancelling", "cancelled"
            };
        }

        ngx_http_toolgate_cancel_reply(a, &said);
        break;

    case NGX_HTTP_TOOLGATE_ANSWER_GONE:
        said = (ngx_http_toolgate_cancel_said_t) {
            0, 0, "not_found", "not_found"
        };
        ngx_http_toolgate_cancel_reply(a, &said);
        break;

    default:
        (void) ngx_http_toolgate_fault(&a->fault, "store_unavailable", NULL, NULL);
        ngx_http_toolgate_action_refuse(a);
    }

    ngx_http_run_posted_requests(c);
}


static void
ngx_http_toolgate_cancel_reply(ngx_http_toolgate_action_t *a,
    ngx_http_toolgate_cancel_said_t *said)
{
    tg_buf_t  out;

    tg_buf_init(&out, NGX_HTTP_TOOLGATE_ACTION_DATA_MAX);
    tg_buf_printf(&out, "{\"Cancelled\":%s,\"Found\":%s,\"Status\":\"%s\","
                        "\"RunnerCancelStatus\":\"%s\"}",
                  said->cancelled ? "true" : "false",
                  said->found ? "true" : "false", said->status, said->runner);

    ngx_http_toolgate_action_reply(a, NGX_HTTP_OK, &out);
    tg_buf_free(&out);
}


void
ngx_http_toolgate_action_resume(ngx_http_toolgate_action_t *a)
{
    ngx_http_toolgate_resume_t  *resume;

    resume = ngx_pcalloc(a->request->pool, sizeof(ngx_http_toolgate_resume_t));

    if (resume == NULL) {
        ngx_http_finalize_request(a->request, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    a->data = resume;

    if (ngx_http_toolgate_action_agent(a, 1) != NGX_OK
        || ngx_http_toolgate_action_id(a, "SessionId", 1, &a->session) != NGX_OK
        || ngx_http_toolgate_action_id(a, "RunId", 1, &resume->run) != NGX_OK
        || ngx_http_toolgate_action_id(a, "CheckpointId", 1, &resume->checkpoint)
           != NGX_OK
        || ngx_http_toolgate_action_id(a, "ResumeAttemptId", 0, &resume->attempt)
           != NGX_OK)
    {
        ngx_http_toolgate_action_refuse(a);
        return;
    }

    ngx_http_toolgate_action_find(a, &resume->run, ngx_http_toolgate_resume_found);
}


static void
ngx_http_toolgate_resume_found(ngx_http_toolgate_action_t *a,
    ngx_http_toolgate_run_answer_t *answer)
{
    const char                     *code, *message;
    ngx_http_toolgate_main_conf_t  *tmcf;

    if (answer->answer == NGX_HTTP_TOOLGATE_ANSWER_GONE) {
        (void) ngx_http_toolgate_fault(&a->fault, "not_found", "RunId", NULL);
        ngx_http_toolgate_action_refuse(a);
        return;
    }

    if (ngx_http_toolgate_action_fits(a, answer) != NGX_OK) {
        ngx_http_toolgate_action_refuse(a);
        return;
    }

    if (answer->answer == NGX_HTTP_TOOLGATE_ANSWER_ENDED) {
        ngx_http_toolgate_resume_reply(a, answer, "noop");
        return;
    }

    code = ngx_http_toolgate_resume_refused(a, answer, &message);

    if (code) {
        (void) ngx_http_toolgate_fault(&a->fault, code, "RunId", message);
        ngx_http_toolgate_action_refuse(a);
        return;
    }

    /* whoever looks for runs that nobody drives finds it at once */

    tmcf = ngx_http_get_module_main_conf(a->request, ngx_http_toolgate_module);
    ngx_http_toolgate_run_store_watch(tmcf->redis, &a->run, 0);

    ngx_http_toolgate_resume_reply(a, answer, "resuming");
}


/* Why a run that has not ended cannot go on from there; NULL: it can. */
static const char *
ngx_http_toolgate_resume_refused(ngx_http_toolgate_action_t *a,
    ngx_http_toolgate_run_answer_t *answer, const char **message)
{
    tg_buf_t                     now;
    ngx_uint_t                   same;
    ngx_http_toolgate_resume_t  *resume = a->data;

    *message = NULL;

    if (answer->answer == NGX_HTTP_TOOLGATE_ANSWER_HELD) {
        return "resume_already_running";
    }

    if (answer->answer == NGX_HTTP_TOOLGATE_ANSWER_WAITING) {
        *message = "The run waits for its caller: answer its open calls or decide "
                   "its approvals, and it goes on by itself.";
        return "checkpoint_not_resumable";
    }

    tg_buf_init(&now, NGX_HTTP_TOOLGATE_ACTION_DATA_MAX);
    ngx_http_toolgate_action_checkpoint(&a->run.run,
                                        ngx_http_toolgate_action_round(answer),
                                        &now);
    same = (now.len == resume->checkpoint.len + 2
            && ngx_memcmp(now.data + 1, resume->checkpoint.data,
                          resume->checkpoint.len) == 0);
    tg_buf_free(&now);

    return same ? NULL : "checkpoint_not_resumable";
}


static void
ngx_http_toolgate_resume_reply(ngx_http_toolgate_action_t *a,
    ngx_http_toolgate_run_answer_t *answer, const char *status)
{
    char                         name[32];
    tg_buf_t                     out;
    ngx_str_t                    now, invocation;
    ngx_http_toolgate_resume_t  *resume = a->data;

    now = ngx_http_toolgate_run_answer_field(answer, "status");
    invocation = ngx_http_toolgate_run_answer_field(answer, "invocation");
    snprintf(name, sizeof(name), "%.*s", (int) now.len, now.data);

    tg_buf_init(&out, NGX_HTTP_TOOLGATE_ACTION_DATA_MAX);
    tg_buf_printf(&out, "{\"status\":\"%s\",\"Reason\":\"%s\",\"RunId\":", status,
                  tg_ksadk_status(name));
    ngx_http_toolgate_action_write(&out, &a->run.run);
    tg_buf_cstr(&out, ",\"CheckpointId\":");
    ngx_http_toolgate_action_write(&out, &resume->checkpoint);
    tg_buf_cstr(&out, ",\"ResumeAttemptId\":");
    ngx_http_toolgate_action_write(&out, &resume->attempt);
    tg_buf_cstr(&out, ",\"InvocationId\":");
    ngx_http_toolgate_action_write(&out, invocation.len ? &invocation : &a->run.run);
    tg_buf_cstr(&out, ",\"SubscribeUrl\":");
    ngx_http_toolgate_action_subscribe_url(a, invocation.len ? &invocation
                                                             : &a->run.run, &out);
    tg_buf_char(&out, '}');

    ngx_http_toolgate_action_reply(a, NGX_HTTP_OK, &out);
    tg_buf_free(&out);
}
