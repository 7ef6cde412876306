/*
 * One call of a round as a state machine: the policy's verdict, the limit that
 * the store counts, running the tool, telling those that waited. Of two
 * identical calls the second waits for the first, so that nothing is done twice.
 */

#include "ngx_http_toolgate_run.h"
#include "ngx_http_toolgate_approvals.h"
#include "ngx_http_toolgate_registry.h"


static void ngx_http_toolgate_call_facts(ngx_http_toolgate_call_t *call);
static void ngx_http_toolgate_call_done_before(ngx_http_toolgate_call_t *call);
static ngx_uint_t ngx_http_toolgate_call_known(ngx_http_toolgate_call_t *call);
static void ngx_http_toolgate_call_begun(ngx_http_toolgate_call_t *call);
static void ngx_http_toolgate_call_run(ngx_http_toolgate_call_t *call);
static void ngx_http_toolgate_call_done(ngx_http_toolgate_call_t *call);
static void ngx_http_toolgate_call_job_done(ngx_http_toolgate_job_t *job);
static void ngx_http_toolgate_call_refuse(ngx_http_toolgate_call_t *call,
    const char *code);
static void ngx_http_toolgate_call_end(ngx_http_toolgate_call_t *call);
static void ngx_http_toolgate_call_go(ngx_http_toolgate_call_t *call);
static void ngx_http_toolgate_call_gate(ngx_http_toolgate_call_t *call);
static void ngx_http_toolgate_call_unapproved(ngx_http_toolgate_call_t *call,
    const char *code);
static ngx_str_t ngx_http_toolgate_call_done_result(ngx_http_toolgate_call_t *call);


void
ngx_http_toolgate_call_advance(ngx_http_toolgate_call_t *call)
{
    tg_policy_verdict_t  verdict;

    switch (call->state) {

    case NGX_HTTP_TOOLGATE_CALL_NEW:
        ngx_http_toolgate_call_facts(call);

        if (ngx_http_toolgate_call_known(call)) {
            return;
        }

        /* fall through */

    case NGX_HTTP_TOOLGATE_CALL_WAITING:

        if (ngx_http_toolgate_call_twin(call)) {
            call->state = NGX_HTTP_TOOLGATE_CALL_WAITING;
            return;
        }

        ngx_http_toolgate_call_done_before(call);

        /* fall through */

    case NGX_HTTP_TOOLGATE_CALL_COUNTING:

        verdict = tg_policy_check(&call->facts);
        call->verdict = verdict;

        if (call->unknown_before && (verdict.allowed || verdict.ask_limit)) {
            call->verdict.allowed = false;
            call->verdict.check = TG_CHECK_ALREADY_DONE;
            call->verdict.code = "outcome_unknown";

            ngx_http_toolgate_call_refuse(call, "outcome_unknown");
            return;
        }

        if (verdict.ask_limit) {
            call->state = NGX_HTTP_TOOLGATE_CALL_COUNTING;
            ngx_http_toolgate_calls_count(call->run);
            return;
        }

        if (!verdict.allowed) {
            call->code = verdict.code;

            if (tg_policy_refusal(&call->facts, &verdict, &call->job.result)
                != TG_OK)
            {
                call->run->out_of_memory = 1;
            }

            ngx_http_toolgate_call_end(call);
            return;
        }

        if (call->caller_owned) {
            /* handed out when the run ends */
            ngx_http_toolgate_call_end(call);
            return;
        }

        if (ngx_http_toolgate_call_gated(call)) {
            ngx_http_toolgate_call_gate(call);
            return;
        }

        ngx_http_toolgate_call_go(call);
        return;

    case NGX_HTTP_TOOLGATE_CALL_ASKING:
    case NGX_HTTP_TOOLGATE_CALL_HELD:
    case NGX_HTTP_TOOLGATE_CALL_RECORDING:
    case NGX_HTTP_TOOLGATE_CALL_RUNNING:
    case NGX_HTTP_TOOLGATE_CALL_ENDED:
        return;
    }
}


/* Nothing stands in its way any more. */
static void
ngx_http_toolgate_call_go(ngx_http_toolgate_call_t *call)
{
    if (call->tool->kind == NGX_HTTP_TOOLGATE_TOOL_CLIENT) {
        call->state = NGX_HTTP_TOOLGATE_CALL_HELD;
        ngx_http_toolgate_calls_settle(call->run);
        return;
    }

    if (call->run->durable && call->tool->effect != TG_EFFECT_READ) {
        call->state = NGX_HTTP_TOOLGATE_CALL_RECORDING;
        ngx_http_toolgate_durable_record(call->run);
        return;
    }

    call->state = NGX_HTTP_TOOLGATE_CALL_RUNNING;
    ngx_http_toolgate_call_run(call);
}


static void
ngx_http_toolgate_call_gate(ngx_http_toolgate_call_t *call)
{
    /* what is too much to be shown cannot be judged either */

    if (!ngx_http_toolgate_run_can_wait(call->run)
        || call->canonical.len > NGX_HTTP_TOOLGATE_APPROVAL_BYTES_MAX)
    {
        ngx_http_toolgate_call_unapproved(call, "approval_unavailable");
        return;
    }

    call->state = NGX_HTTP_TOOLGATE_CALL_ASKING;
    ngx_http_toolgate_gate_ask(call->run);
}


static void
ngx_http_toolgate_call_unapproved(ngx_http_toolgate_call_t *call, const char *code)
{
    call->verdict.allowed = false;
    call->verdict.code = code;
    ngx_http_toolgate_call_refuse(call, code);
}


void
ngx_http_toolgate_call_asked(ngx_http_toolgate_call_t *call, ngx_str_t *status,
    ngx_str_t *reason)
{
    tg_str_t  word;

    word.data = (char *) status->data;
    word.len = status->len;

    if (tg_str_eq(word, tg_str("pending"))) {
        call->state = NGX_HTTP_TOOLGATE_CALL_HELD;
        ngx_http_toolgate_calls_settle(call->run);

    } else if (tg_str_eq(word, tg_str("used"))) {
        call->approved = 1;
        ngx_http_toolgate_call_go(call);

    } else if (tg_str_eq(word, tg_str("rejected"))) {
        call->verdict.allowed = false;
        call->verdict.code = "approval_rejected";
        call->code = "approval_rejected";

        if (tg_approval_rejection((tg_str_t) { reason->len, (char *) reason->data },
                                  &call->job.result) != TG_OK)
        {
            call->run->out_of_memory = 1;
        }

        ngx_http_toolgate_call_end(call);

    } else {
        ngx_http_toolgate_call_unapproved(call, word.len ? "approval_unavailable"
                                                         : "store_unavailable");
    }
}


void
ngx_http_toolgate_call_recorded(ngx_http_toolgate_call_t *call, const char *code)
{
    if (code) {
        call->verdict.allowed = false;
        call->verdict.check = ngx_strcmp(code, "store_unavailable") == 0
                              ? TG_CHECK_NONE : TG_CHECK_RUN_LIVE;
        call->verdict.code = code;
        ngx_http_toolgate_call_refuse(call, code);
        return;
    }

    call->state = NGX_HTTP_TOOLGATE_CALL_RUNNING;
    ngx_http_toolgate_call_run(call);
}


/* Of a round that another worker has begun: what is over is not done again. */
static ngx_uint_t
ngx_http_toolgate_call_known(ngx_http_toolgate_call_t *call)
{
    switch (ngx_http_toolgate_restore_call(call)) {

    case NGX_OK:
        call->answered = 1;
        ngx_http_toolgate_call_done(call);
        ngx_http_toolgate_call_end(call);
        return 1;

    case NGX_DECLINED:
        return 0;

    default:
        call->run->out_of_memory = 1;
        return 1;
    }
}


static void
ngx_http_toolgate_call_facts(ngx_http_toolgate_call_t *call)
{
    tg_policy_facts_t          *facts;
    ngx_http_toolgate_run_t    *run;
    ngx_http_toolgate_agent_t  *agent;

    run = call->run;
    agent = run->agent;
    facts = &call->facts;

    facts->in_tool_set = (call->tool != NULL || call->caller_owned);
    facts->caller_owned = call->caller_owned;
    facts->tool_enabled = (call->tool == NULL
                           || ngx_http_toolgate_tool_switch(run->project,
                                                            call->tool));
    ngx_http_toolgate_agent_switches(run->project, agent, &facts->tools_enabled,
                                     &facts->actions_paused);
    facts->hours_only = call->hours_only;
    facts->within_hours = !call->hours_only || agent->hours == NULL
                          || tg_hours_open(agent->hours, ngx_time());
    facts->verified_user = (run->end_user != NULL);
    facts->life = TG_RUN_LIVE;
    facts->round = (unsigned) run->round;
    facts->max_rounds = (unsigned) agent->max_rounds;
    facts->position = (unsigned) call->position;

    if (call->tool) {
        facts->requires_verified_user = call->tool->requires_verified_user;
        facts->effect = call->tool->effect;
        facts->limit = (call->tool->kind != NGX_HTTP_TOOLGATE_TOOL_HTTP)
                       ? TG_LIMIT_NOT_COUNTED
                       : call->counted ? TG_LIMIT_PASSED : TG_LIMIT_UNKNOWN;
    }
}


ngx_http_toolgate_call_t *
ngx_http_toolgate_call_twin(ngx_http_toolgate_call_t *call)
{
    ngx_uint_t                 i;
    ngx_http_toolgate_call_t  *other;

    if (call->tool == NULL || !call->facts.arguments_valid) {
        return NULL;
    }

    for (i = 0; i < call->position; i++) {
        other = &call->run->calls[i];

        if (other->tool == call->tool
            && other->state != NGX_HTTP_TOOLGATE_CALL_ENDED
            && other->canonical.len == call->canonical.len
            && ngx_memcmp(other->canonical.data, call->canonical.data,
                          call->canonical.len) == 0)
        {
            return other;
        }
    }

    return NULL;
}


static void
ngx_http_toolgate_call_done_before(ngx_http_toolgate_call_t *call)
{
    ngx_uint_t                      i;
    ngx_http_toolgate_run_t        *run;
    ngx_http_toolgate_done_call_t  *done;

    run = call->run;
    done = run->done_calls.elts;

    for (i = 0; call->tool && i < run->done_calls.nelts; i++) {
        if (done[i].tool == call->tool
            && done[i].canonical.len == call->canonical.len
            && ngx_memcmp(done[i].canonical.data, call->canonical.data,
                          call->canonical.len) == 0)
        {
            if (done[i].unknown) {
                call->unknown_before = 1;
                return;
            }

            call->facts.already_done = true;
            call->facts.earlier_result.data = (char *) done[i].result.data;
            call->facts.earlier_result.len = done[i].result.len;
            return;
        }
    }
}


/* Tells the face, once. What waits for somebody has not begun. */
static void
ngx_http_toolgate_call_begun(ngx_http_toolgate_call_t *call)
{
    ngx_http_toolgate_run_t  *run;

    run = call->run;

    if (run->face->call_begins && !call->begun && !call->told) {
        call->begun = 1;

        if (run->face->call_begins(run, call) != NGX_OK) {
            run->out_of_memory = 1;
        }

        ngx_http_toolgate_run_post(run);
    }
}


static void
ngx_http_toolgate_call_run(ngx_http_toolgate_call_t *call)
{
    tg_str_t                   label;
    ngx_int_t                  rc;
    ngx_http_request_t        *r;
    ngx_http_toolgate_job_t   *job;
    ngx_http_toolgate_run_t   *run;
    ngx_http_core_loc_conf_t  *clcf;

    ngx_http_toolgate_durable_call_begins(call);
    ngx_http_toolgate_call_begun(call);

    run = call->run;
    r = run->request;
    job = &call->job;
    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    job->pool = r->pool;
    job->log = r->connection->log;
    job->conf = run->conf;
    job->resolver = (clcf->resolver && clcf->resolver->connections.nelts)
                    ? clcf->resolver : NULL;
    job->resolver_timeout = clcf->resolver_timeout;
    job->time_left = (ngx_msec_int_t) (run->deadline_at - ngx_current_msec) > 0
                     ? run->deadline_at - ngx_current_msec : 1;
    job->project = run->project;
    job->tool = call->tool;
    job->arguments = call->args;
    job->variables = run->variables;
    job->end_user = run->end_user;
    job->account = run->prompt.account;
    label = ngx_http_toolgate_run_label(run);
    job->run.data = (u_char *) label.data;
    job->run.len = label.len;
    job->session.data = (u_char *) run->id;
    job->session.len = ngx_strlen(run->id);

    if (run->prompt.session.len) {
        job->session = run->prompt.session;
    }

    job->call_id.data = (u_char *) call->id;
    job->call_id.len = ngx_strlen(call->id);
    job->done = ngx_http_toolgate_call_job_done;
    job->data = call;

    rc = ngx_http_toolgate_tool_ops(call->tool->kind)->start(job);

    if (rc == NGX_ERROR) {
        run->out_of_memory = 1;
        ngx_http_toolgate_run_post(run);
        return;
    }

    if (rc == NGX_DONE) {
        call->code = job->code;
        ngx_http_toolgate_call_end(call);
    }
}


/* What is not to be done twice in this run. */
static void
ngx_http_toolgate_call_done(ngx_http_toolgate_call_t *call)
{
    ngx_uint_t                      unknown;
    ngx_http_toolgate_run_t        *run;
    ngx_http_toolgate_done_call_t  *done;

    run = call->run;
    unknown = (call->code && ngx_strcmp(call->code, "outcome_unknown") == 0);

    if (call->tool == NULL || call->told || (call->code && !unknown)) {
        return;
    }

    /* what the helper looks at changes under a run: looking again is no repetition */

    if (call->tool->kind == NGX_HTTP_TOOLGATE_TOOL_HELPER
        && call->tool->effect == TG_EFFECT_READ)
    {
        return;
    }

    done = ngx_array_push(&run->done_calls);

    if (done) {
        done->unknown = unknown;
        done->tool = call->tool;
        done->canonical = call->canonical;
        done->result = ngx_http_toolgate_call_done_result(call);
    }

    if (done == NULL || done->result.data == NULL) {
        run->out_of_memory = 1;
    }
}


/* As JSON: what an app has sent may be any text. */
static ngx_str_t
ngx_http_toolgate_call_done_result(ngx_http_toolgate_call_t *call)
{
    json_t           *value;
    tg_buf_t          text;
    tg_str_t          result;
    ngx_str_t         copy;
    ngx_pool_t       *pool;
    tg_json_error_t   ignored;

    pool = call->run->request->pool;
    result = tg_buf_get(&call->job.result);

    if (call->tool->kind != NGX_HTTP_TOOLGATE_TOOL_CLIENT) {
        return ngx_http_toolgate_copy(pool, result);
    }

    value = tg_json_load(result, &ignored);

    if (value) {
        json_decref(value);
        return ngx_http_toolgate_copy(pool, result);
    }

    tg_buf_init(&text, 6 * NGX_HTTP_TOOLGATE_RESULT_MAX);
    tg_buf_json_string(&text, result);
    copy = ngx_http_toolgate_copy(pool, tg_buf_get(&text));
    tg_buf_free(&text);

    return copy;
}


static void
ngx_http_toolgate_call_job_done(ngx_http_toolgate_job_t *job)
{
    ngx_http_toolgate_call_t *call = job->data;

    ngx_uint_t                in_handler;
    ngx_http_toolgate_run_t  *run;

    run = call->run;
    call->code = job->code;

    if (job->result.error != TG_OK) {

        /* a result over the bound is as good as none */

        call->code = "unreadable";
        tg_buf_reset(&job->result);
        (void) tg_policy_envelope(call->code, tg_null_str, &job->result);
    }

    ngx_http_toolgate_call_done(call);

    /* others that waited for this one may end in turn: the run goes on after all
     * of that, since it may free them */

    in_handler = run->in_handler;
    run->in_handler = 1;

    ngx_http_toolgate_call_end(call);

    run->in_handler = in_handler;
    ngx_http_toolgate_calls_from_event(run);
}


static void
ngx_http_toolgate_call_refuse(ngx_http_toolgate_call_t *call, const char *code)
{
    call->code = code;

    if (tg_policy_envelope(code, tg_null_str, &call->job.result) != TG_OK) {
        call->run->out_of_memory = 1;
    }

    ngx_http_toolgate_call_end(call);
}


void
ngx_http_toolgate_call_cancelled(ngx_http_toolgate_call_t *call)
{
    call->ended = ngx_current_msec;
    call->code = ngx_http_toolgate_run_stop_code(call->run);

    if (!call->verdict.allowed) {
        call->verdict.check = TG_CHECK_RUN_LIVE;
        call->verdict.code = call->code;
    }
}


static void
ngx_http_toolgate_call_end(ngx_http_toolgate_call_t *call)
{
    ngx_uint_t                i;
    ngx_http_toolgate_run_t  *run;

    static ngx_str_t  none = ngx_string("-");

    run = call->run;

    call->state = NGX_HTTP_TOOLGATE_CALL_ENDED;
    call->ended = ngx_current_msec;
    run->calls_open--;

    if ((!call->caller_owned || call->code) && !call->told) {
        ngx_http_toolgate_durable_call_ended(call);
    }

    /* whoever takes the session now knows that this was done */

    if (call->intended && run->calls_open) {
        ngx_http_toolgate_run_session_keep(run);
    }

    /* a name that is none of ours is whatever a model has written */

    ngx_log_error(NGX_LOG_INFO, run->request->connection->log, 0,
                  "toolgate: run %s call %s \"%V\": %s", run->id, call->id,
                  call->tool ? &call->tool->name : &none,
                  call->code ? call->code : "ok");

    if ((!call->caller_owned || call->code) && !call->told) {
        ngx_http_toolgate_call_step(run, call->step, &call->name, call->code);
    }

    if (!call->caller_owned && !call->told && run->face->call_ended) {
        ngx_http_toolgate_call_begun(call);

        if (run->face->call_ended(run, call) != NGX_OK) {
            run->out_of_memory = 1;
        }

        /* what it has written goes out, whether or not the round is over */
        ngx_http_toolgate_run_post(run);
    }

    /* the next one that waited for this one may go */

    for (i = call->position + 1; i < run->call_count; i++) {
        if (run->calls[i].state == NGX_HTTP_TOOLGATE_CALL_WAITING) {
            ngx_http_toolgate_call_advance(&run->calls[i]);
        }
    }

    ngx_http_toolgate_calls_settle(run);
}


void
ngx_http_toolgate_calls_from_event(ngx_http_toolgate_run_t *run)
{
    ngx_connection_t  *c;

    if (!run->in_handler) {
        c = run->request->connection;
        ngx_http_run_posted_requests(c);
    }
}
