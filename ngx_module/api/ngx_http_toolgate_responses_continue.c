/*
 * A request that brings what a run waits for: outputs of client tools, or what a person
 * has decided about calls. The run goes on, with all that it has done in between, and
 * this request follows it, as a response of its own. Which run that is follows from the
 * ids of calls and approvals.
 */

#include "ngx_http_toolgate_approvals.h"
#include "ngx_http_toolgate_responses.h"
#include "ngx_http_toolgate_submit.h"


#define NGX_HTTP_TOOLGATE_CONTINUE_REASON_MAX  4096    /* bytes, escaped */


typedef struct {
    ngx_http_toolgate_check_t        *check;
    ngx_http_toolgate_check_done_pt   done;          /* it is a request like others */
    ngx_http_toolgate_submission_t    submission;
    json_t                           *outputs;
    tg_responses_decision_t           decisions[NGX_HTTP_TOOLGATE_APPROVALS_MAX];
    size_t                            count;
    size_t                            decided;
    ngx_str_t                         approval;      /* the one that is asked about */
    int64_t                           after;
    unsigned                          go_on:1;
} ngx_http_toolgate_continue_t;


static void ngx_http_toolgate_continue_free(void *data);
static ngx_int_t ngx_http_toolgate_continue_outputs(
    ngx_http_toolgate_continue_t *ctx);
static void ngx_http_toolgate_continue_found(void *data, ngx_str_t *run,
    ngx_uint_t up);
static void ngx_http_toolgate_continue_submitted(
    ngx_http_toolgate_submission_t *submission, const char *code);
static ngx_int_t ngx_http_toolgate_continue_decisions(
    ngx_http_toolgate_continue_t *ctx);
static ngx_int_t ngx_http_toolgate_continue_approval(
    ngx_http_toolgate_continue_t *ctx, tg_str_t id);
static void ngx_http_toolgate_continue_pending(void *data,
    ngx_http_toolgate_approval_answer_t *answer);
static void ngx_http_toolgate_continue_read(void *data,
    ngx_http_toolgate_run_answer_t *answer);
static ngx_int_t ngx_http_toolgate_continue_decide(
    ngx_http_toolgate_continue_t *ctx);
static void ngx_http_toolgate_continue_decided(void *data,
    ngx_http_toolgate_approval_answer_t *answer);
static const char *ngx_http_toolgate_continue_code(
    ngx_http_toolgate_approval_answer_t *answer);
static void ngx_http_toolgate_continue_follow(ngx_http_toolgate_continue_t *ctx,
    int64_t after);
static void ngx_http_toolgate_continue_refuse(ngx_http_toolgate_continue_t *ctx,
    const char *code);
static ngx_uint_t ngx_http_toolgate_continue_run(ngx_http_toolgate_continue_t *ctx,
    ngx_str_t *run);


void
ngx_http_toolgate_responses_continue(ngx_http_toolgate_check_t *c,
    ngx_http_toolgate_check_done_pt done)
{
    ngx_int_t                             rc;
    ngx_pool_cleanup_t                   *cln;
    ngx_http_toolgate_continue_t         *ctx;
    ngx_http_toolgate_responses_state_t  *state = c->run->face_data;

    if (c->run->agent == NULL || !state->keep || c->run->conf->run_host.len == 0
        || state->input.len == 0 || state->input.data[0] != '[')
    {
        done(c);
        return;
    }

    cln = ngx_pool_cleanup_add(c->request->pool,
                               sizeof(ngx_http_toolgate_continue_t));
    if (cln == NULL) {
        ngx_http_toolgate_check_refuse(c);
        return;
    }

    ctx = cln->data;
    ngx_memzero(ctx, sizeof(ngx_http_toolgate_continue_t));
    cln->handler = ngx_http_toolgate_continue_free;

    ctx->check = c;
    ctx->done = done;
    ctx->submission.key.project = c->run->project->name;
    ctx->submission.key.account = c->run->prompt.account;

    rc = ngx_http_toolgate_continue_decisions(ctx);

    if (rc == NGX_DECLINED && c->code == NULL) {
        rc = ngx_http_toolgate_continue_outputs(ctx);
    }

    if (rc == NGX_DECLINED && c->code == NULL) {
        done(c);

    } else if (rc != NGX_OK) {
        ngx_http_toolgate_check_refuse(c);
    }
}


static void
ngx_http_toolgate_continue_free(void *data)
{
    ngx_http_toolgate_continue_t  *ctx = data;

    json_decref(ctx->outputs);
}


/* NGX_DECLINED: the input has something else than outputs. */
static ngx_int_t
ngx_http_toolgate_continue_outputs(ngx_http_toolgate_continue_t *ctx)
{
    size_t                                count;
    tg_buf_t                              text;
    tg_str_t                              id;
    ngx_str_t                             call;
    tg_json_error_t                       ignored;
    ngx_http_toolgate_run_t              *run;
    ngx_http_toolgate_responses_state_t  *state;

    run = ctx->check->run;
    state = run->face_data;

    tg_buf_init(&text, TG_RESPONSES_OUTPUT_MAX);

    if (tg_responses_tool_outputs((tg_str_t) { state->input.len,
                                               (char *) state->input.data },
                                  &text, &count) == TG_OK
        && count && count <= TG_OUTPUTS_MAX)
    {
        ctx->outputs = tg_json_load(tg_buf_get(&text), &ignored);
    }

    tg_buf_free(&text);

    id = tg_json_get_string(json_array_get(json_object_get(ctx->outputs,
                                                           "tool_outputs"), 0),
                            "call_id");

    /* those of the request's own tools may have any id */

    if (!tg_id_valid("call_", id)) {
        return NGX_DECLINED;
    }

    ctx->submission.request = ctx->check->request;
    ctx->submission.body = ctx->outputs;
    ctx->submission.done = ngx_http_toolgate_continue_submitted;
    ctx->submission.data = ctx;

    call.data = (u_char *) id.data;
    call.len = id.len;

    return ngx_http_toolgate_call_run_find(ctx->check->request->pool,
                                           run->conf->redis, &ctx->submission.key,
                                           &call, ngx_http_toolgate_continue_found,
                                           ctx);
}


static void
ngx_http_toolgate_continue_found(void *data, ngx_str_t *run, ngx_uint_t up)
{
    ngx_http_toolgate_continue_t *ctx = data;

    ngx_connection_t  *c;

    c = ctx->check->request->connection;

    if (!up) {
        ngx_http_toolgate_continue_refuse(ctx, "store_unavailable");

    } else if (!ngx_http_toolgate_continue_run(ctx, run)) {

        /* nobody waits for it: the request's own tools have such calls */

        ctx->done(ctx->check);

    } else if (ngx_http_toolgate_outputs_submit(&ctx->submission) != NGX_OK) {
        ngx_http_toolgate_continue_refuse(ctx, "internal_error");
    }

    ngx_http_run_posted_requests(c);
}


/* Takes the run's id over, if it is one. */
static ngx_uint_t
ngx_http_toolgate_continue_run(ngx_http_toolgate_continue_t *ctx, ngx_str_t *run)
{
    if (!tg_id_valid("run_", (tg_str_t) { run->len, (char *) run->data })) {
        return 0;
    }

    ctx->submission.key.run = ngx_http_toolgate_copy(ctx->check->request->pool,
                                            (tg_str_t) { run->len,
                                                         (char *) run->data });
    return ctx->submission.key.run.data != NULL;
}


static void
ngx_http_toolgate_continue_submitted(ngx_http_toolgate_submission_t *submission,
    const char *code)
{
    ngx_http_toolgate_continue_t *ctx = submission->data;

    if (code) {
        ngx_http_toolgate_continue_refuse(ctx, code);
        return;
    }

    ngx_http_toolgate_continue_follow(ctx, submission->after);
}


/* NGX_DECLINED: there are none, or, with a code, they may not be taken. */
static ngx_int_t
ngx_http_toolgate_continue_decisions(ngx_http_toolgate_continue_t *ctx)
{
    tg_rc_e                               rc;
    tg_responses_fault_t                  fault;
    ngx_http_toolgate_check_t            *c;
    ngx_http_toolgate_responses_state_t  *state;

    c = ctx->check;
    state = c->run->face_data;

    rc = tg_responses_decisions((tg_str_t) { state->input.len,
                                             (char *) state->input.data },
                                ctx->decisions, NGX_HTTP_TOOLGATE_APPROVALS_MAX,
                                &ctx->count, &fault);

    if (rc == TG_E_INVALID) {
        return ngx_http_toolgate_check_fault(c, fault.code, fault.param,
                                             fault.message);
    }

    if (ctx->count == 0) {
        return NGX_DECLINED;
    }

    if (ctx->count > NGX_HTTP_TOOLGATE_APPROVALS_MAX) {
        return ngx_http_toolgate_check_fault(c, "invalid_value", "input",
                                             "\"input\" answers too many approvals.");
    }

    return ngx_http_toolgate_continue_approval(ctx, ctx->decisions[0].id) == NGX_OK
           ? ngx_http_toolgate_approvals_decide(c->request->pool,
                                                c->request->connection->log,
                                                c->run->conf->redis,
                                                &ctx->submission.key,
                                                &ctx->approval, "", tg_null_str,
                                                ngx_http_toolgate_continue_pending,
                                                ctx)
           : ngx_http_toolgate_check_fault(c, "not_found", "input",
                                           "There is no such approval.");
}


static ngx_int_t
ngx_http_toolgate_continue_approval(ngx_http_toolgate_continue_t *ctx, tg_str_t id)
{
    if (!tg_id_valid("appr_", id)) {
        return NGX_DECLINED;
    }

    ctx->approval = ngx_http_toolgate_copy(ctx->check->request->pool, id);

    return ctx->approval.data ? NGX_OK : NGX_ERROR;
}


/* One that nobody waits for any more is part of what was said before, unless it is all
 * that there is. */
static void
ngx_http_toolgate_continue_pending(void *data,
    ngx_http_toolgate_approval_answer_t *answer)
{
    ngx_http_toolgate_continue_t *ctx = data;

    const char                           *code;
    ngx_connection_t                     *connection;
    ngx_http_toolgate_check_t            *c;
    ngx_http_toolgate_responses_state_t  *state;

    c = ctx->check;
    state = c->run->face_data;
    connection = c->request->connection;
    code = NULL;

    if (answer->state != NGX_HTTP_TOOLGATE_APPROVAL_OK
        || answer->approval.status.len != sizeof("pending") - 1
        || ngx_memcmp(answer->approval.status.data, "pending", 7) != 0)
    {
        if (answer->state != NGX_HTTP_TOOLGATE_APPROVAL_AWAY && state->previous.len == 0)
        {
            ctx->done(c);
            ngx_http_run_posted_requests(connection);
            return;
        }

        code = (answer->state == NGX_HTTP_TOOLGATE_APPROVAL_OK)
               ? (answer->approval.status.len == sizeof("expired") - 1
                  && ngx_memcmp(answer->approval.status.data, "expired", 7) == 0
                  ? "approval_expired" : "already_decided")
               : ngx_http_toolgate_continue_code(answer);

    } else if (!(c->body->key->scopes & NGX_HTTP_TOOLGATE_SCOPE_APPROVE)) {
        code = "insufficient_scope";

    } else if (!ngx_http_toolgate_continue_run(ctx, &answer->run)
               || ngx_http_toolgate_run_store_open(c->request->pool,
                                                   c->run->conf->redis,
                                                   &ctx->submission.key, "read",
                                                   c->run->conf->retention,
                                                   ngx_http_toolgate_continue_read,
                                                   ctx) != NGX_OK)
    {
        code = "internal_error";
    }

    if (code) {
        ngx_http_toolgate_continue_refuse(ctx, code);
    }

    ngx_http_run_posted_requests(connection);
}


/* Where the run stands: what it does from here on is this response's. */
static void
ngx_http_toolgate_continue_read(void *data, ngx_http_toolgate_run_answer_t *answer)
{
    ngx_http_toolgate_continue_t *ctx = data;

    ngx_str_t          seq;
    ngx_connection_t  *c;

    c = ctx->check->request->connection;
    seq = ngx_http_toolgate_run_answer_field(answer, "seq");
    ctx->after = seq.len ? ngx_atoof(seq.data, seq.len) : 0;

    if (answer->answer == NGX_HTTP_TOOLGATE_ANSWER_AWAY) {
        ngx_http_toolgate_continue_refuse(ctx, "store_unavailable");

    } else if (ngx_http_toolgate_continue_decide(ctx) != NGX_OK) {
        ngx_http_toolgate_continue_refuse(ctx, "not_found");
    }

    ngx_http_run_posted_requests(c);
}


static ngx_int_t
ngx_http_toolgate_continue_decide(ngx_http_toolgate_continue_t *ctx)
{
    char                        buf[NGX_HTTP_TOOLGATE_CONTINUE_REASON_MAX];
    tg_str_t                    reason;
    ptrdiff_t                   n;
    tg_responses_decision_t    *decision;
    ngx_http_toolgate_check_t  *c;

    c = ctx->check;
    decision = &ctx->decisions[ctx->decided];

    if (ngx_http_toolgate_continue_approval(ctx, decision->id) != NGX_OK) {
        return NGX_ERROR;
    }

    n = decision->reason.len
        ? tg_scan_string(decision->reason.data - 1,
                         (tg_scan_range_t) { 0, decision->reason.len + 2,
                                             TG_SCAN_STRING }, buf, sizeof(buf))
        : 0;
    reason.data = buf;
    reason.len = n < 0 ? 0 : (size_t) n;

    return ngx_http_toolgate_approvals_decide(c->request->pool,
                                              c->request->connection->log,
                                              c->run->conf->redis,
                                              &ctx->submission.key, &ctx->approval,
                                              decision->approve ? "approved"
                                                                : "rejected",
                                              reason,
                                              ngx_http_toolgate_continue_decided,
                                              ctx);
}


static void
ngx_http_toolgate_continue_decided(void *data,
    ngx_http_toolgate_approval_answer_t *answer)
{
    ngx_http_toolgate_continue_t *ctx = data;

    const char                 *code;
    ngx_connection_t           *connection;
    ngx_http_toolgate_check_t  *c;

    c = ctx->check;
    connection = c->request->connection;
    code = ngx_http_toolgate_continue_code(answer);

    if (answer->go_on) {
        ctx->go_on = 1;
        ngx_http_toolgate_run_kick(c->run->conf, &ctx->submission.key);
    }

    if (code) {
        ngx_http_toolgate_continue_refuse(ctx, code);

    } else if (++ctx->decided < ctx->count) {

        if (ngx_http_toolgate_continue_decide(ctx) != NGX_OK) {
            ngx_http_toolgate_continue_refuse(ctx, "not_found");
        }

    } else {

        /* others of the same round are not decided: it is said again that it waits */

        c->run->background = !ctx->go_on;
        ngx_http_toolgate_continue_follow(ctx, ctx->after);
    }

    ngx_http_run_posted_requests(connection);
}


static const char *
ngx_http_toolgate_continue_code(ngx_http_toolgate_approval_answer_t *answer)
{
    switch (answer->state) {

    case NGX_HTTP_TOOLGATE_APPROVAL_NONE:
        return "not_found";

    case NGX_HTTP_TOOLGATE_APPROVAL_DECIDED:
        return "already_decided";

    case NGX_HTTP_TOOLGATE_APPROVAL_EXPIRED:
        return "approval_expired";

    case NGX_HTTP_TOOLGATE_APPROVAL_AWAY:
        return "store_unavailable";

    default:
        return NULL;
    }
}


static void
ngx_http_toolgate_continue_follow(ngx_http_toolgate_continue_t *ctx, int64_t after)
{
    ngx_http_toolgate_run_t              *run;
    ngx_http_toolgate_responses_state_t  *state;

    run = ctx->check->run;
    state = run->face_data;

    /* a response of its own, of a run that had others before */

    state->own = 1;
    ngx_memcpy(run->id, ctx->submission.key.run.data, ctx->submission.key.run.len);
    run->cancel_followed = 1;

    ngx_http_toolgate_run_follow(run, after);
}


static void
ngx_http_toolgate_continue_refuse(ngx_http_toolgate_continue_t *ctx,
    const char *code)
{
    (void) ngx_http_toolgate_check_fault(ctx->check, code, "input",
                                         ctx->submission.fault.message[0]
                                         ? ctx->submission.fault.message : NULL);
    ngx_http_toolgate_check_refuse(ctx->check);
}
