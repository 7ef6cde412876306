/*
 * The calls of one round: who owns each, what the policy says, running those
 * that may side by side, and the round's place in the history. Results are kept
 * in call order. Of two identical calls the second waits for the first, so that
 * nothing is done twice.
 */

#include "ngx_http_toolgate_run.h"

#include <openssl/rand.h>


#define NGX_HTTP_TOOLGATE_HISTORY_MAX    (8 * 1024 * 1024)    /* of one round */
#define NGX_HTTP_TOOLGATE_GUIDANCE_MAX   2048


static ngx_int_t ngx_http_toolgate_call_init(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_call_t *call, tg_delta_call_t *asked);
static ngx_int_t ngx_http_toolgate_call_model_id(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_call_t *call, tg_str_t id);
static void ngx_http_toolgate_call_owner(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_call_t *call);
static ngx_int_t ngx_http_toolgate_call_arguments(ngx_http_toolgate_call_t *call,
    tg_delta_call_t *asked);
static void ngx_http_toolgate_call_facts(ngx_http_toolgate_call_t *call);
static void ngx_http_toolgate_call_advance(ngx_http_toolgate_call_t *call);
static ngx_http_toolgate_call_t *ngx_http_toolgate_call_twin(
    ngx_http_toolgate_call_t *call);
static void ngx_http_toolgate_call_done_before(ngx_http_toolgate_call_t *call);
static void ngx_http_toolgate_call_count(ngx_http_toolgate_call_t *call);
static void ngx_http_toolgate_call_counted(void *data,
    ngx_toolgate_counter_result_t *result);
static void ngx_http_toolgate_call_run(ngx_http_toolgate_call_t *call);
static void ngx_http_toolgate_call_job_done(ngx_http_toolgate_job_t *job);
static void ngx_http_toolgate_call_end(ngx_http_toolgate_call_t *call);
static void ngx_http_toolgate_call_step(ngx_http_toolgate_run_t *run,
    ngx_str_t *tool, const char *code);
static void ngx_http_toolgate_call_from_event(ngx_http_toolgate_call_t *call);


ngx_int_t
ngx_http_toolgate_calls_start(ngx_http_toolgate_run_t *run)
{
    ngx_uint_t                 i, n;
    ngx_http_toolgate_call_t  *calls;

    n = run->delta.call_count;

    calls = ngx_pcalloc(run->request->pool, n * sizeof(ngx_http_toolgate_call_t));
    if (calls == NULL) {
        return NGX_ERROR;
    }

    run->calls = calls;
    run->call_count = n;
    run->calls_open = n;

    for (i = 0; i < n; i++) {
        calls[i].run = run;
        calls[i].position = i;
        tg_buf_init(&calls[i].job.result, NGX_HTTP_TOOLGATE_RESULT_MAX);
    }

    for (i = 0; i < n; i++) {
        if (ngx_http_toolgate_call_init(run, &calls[i], &run->delta.calls[i])
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    for (i = 0; i < n; i++) {
        ngx_http_toolgate_call_advance(&calls[i]);
    }

    return run->out_of_memory ? NGX_ERROR : NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_call_init(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_call_t *call, tg_delta_call_t *asked)
{
    u_char  random[TG_ID_RANDOM_LEN];

    if (RAND_bytes(random, sizeof(random)) != 1) {
        return NGX_ERROR;
    }

    tg_id_make("call_", random, call->id);

    call->name = ngx_http_toolgate_copy(run->request->pool,
                                        tg_buf_get(&asked->name));
    call->arguments = ngx_http_toolgate_copy(run->request->pool,
                                             tg_buf_get(&asked->arguments));

    if (call->name.data == NULL || call->arguments.data == NULL) {
        return NGX_ERROR;
    }

    if (call->arguments.len == 0) {
        ngx_str_set(&call->arguments, "{}");
    }

    if (ngx_http_toolgate_call_model_id(run, call, tg_buf_get(&asked->id))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_http_toolgate_call_owner(run, call);

    return ngx_http_toolgate_call_arguments(call, asked);
}


/* The model sees its own id again, unless it gave none or the same one twice. */
static ngx_int_t
ngx_http_toolgate_call_model_id(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_call_t *call, tg_str_t id)
{
    ngx_str_t   *used;
    ngx_uint_t   i;

    used = run->used_ids.elts;

    for (i = 0; i < run->used_ids.nelts; i++) {
        if (used[i].len == id.len
            && ngx_memcmp(used[i].data, id.data, id.len) == 0)
        {
            break;
        }
    }

    if (id.len == 0 || i < run->used_ids.nelts) {
        id = tg_str_of(call->id);
    }

    call->model_id = ngx_http_toolgate_copy(run->request->pool, id);
    used = ngx_array_push(&run->used_ids);

    if (call->model_id.data == NULL || used == NULL) {
        return NGX_ERROR;
    }

    *used = call->model_id;

    return NGX_OK;
}


static void
ngx_http_toolgate_call_owner(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_call_t *call)
{
    json_t                      *tool;
    size_t                       i;
    tg_str_t                     name, own;
    ngx_http_toolgate_grant_t  **grant;

    name.data = (char *) call->name.data;
    name.len = call->name.len;
    grant = run->offered.elts;

    for (i = 0; i < run->offered.nelts; i++) {
        own.data = (char *) grant[i]->tool->name.data;
        own.len = grant[i]->tool->name.len;

        if (tg_str_eq(name, own)) {
            call->tool = grant[i]->tool;
            return;
        }
    }

    json_array_foreach(run->prompt.tools, i, tool) {
        if (name.len
            && tg_str_eq(name, tg_json_get_string(json_object_get(tool, "function"),
                                                  "name")))
        {
            call->caller_owned = 1;
            return;
        }
    }
}


/* Loads, folds and checks the arguments; the facts of check 2 and their canonical
 * form come from here. */
static ngx_int_t
ngx_http_toolgate_call_arguments(ngx_http_toolgate_call_t *call,
    tg_delta_call_t *asked)
{
    char                 pointer[TG_SCHEMA_POINTER_MAX];
    tg_buf_t             text;
    ngx_pool_t          *pool;
    const char          *reason;
    ngx_str_t            copy;
    tg_json_error_t      error;
    tg_schema_errors_t   errors;

    pool = call->run->request->pool;

    if (!tg_delta_call_ready(asked)) {
        call->facts.arguments_guidance =
            tg_str("the arguments are not one whole JSON object");
        return NGX_OK;
    }

    call->args = tg_json_load((tg_str_t) { call->arguments.len,
                                           (char *) call->arguments.data },
                              &error);
    if (call->args == NULL) {
        call->facts.arguments_guidance = tg_str_of(error.reason);
        return NGX_OK;
    }

    if (call->caller_owned || call->tool == NULL) {
        call->facts.arguments_valid = true;
        return NGX_OK;
    }

    tg_buf_init(&text, NGX_HTTP_TOOLGATE_GUIDANCE_MAX);
    reason = NULL;

    if (call->tool->template) {
        if (tg_template_fold_digits(call->args) != TG_OK) {
            return NGX_ERROR;
        }
    }

    if (!tg_schema_validate(call->tool->schema, call->args, &errors)) {
        tg_schema_errors_text(&errors, &text);

    } else if (call->tool->template) {
        reason = tg_template_check_formats(call->tool->template, call->args,
                                           pointer, sizeof(pointer));
        if (reason) {
            tg_buf_printf(&text, "%s: %s", pointer, reason);
        }
    }

    copy = ngx_http_toolgate_copy(pool, tg_buf_get(&text));
    tg_buf_free(&text);

    if (copy.data == NULL) {
        return NGX_ERROR;
    }

    call->facts.arguments_valid = (copy.len == 0);
    call->facts.arguments_guidance.data = (char *) copy.data;
    call->facts.arguments_guidance.len = copy.len;

    tg_buf_init(&text, TG_DELTA_MAX_ARGUMENTS * 2);
    tg_json_canonical(call->args, &text);
    call->canonical = ngx_http_toolgate_copy(pool, tg_buf_get(&text));
    tg_buf_free(&text);

    return call->canonical.data ? NGX_OK : NGX_ERROR;
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
    facts->tools_enabled = agent->tools_enabled;
    facts->tool_enabled = (call->tool == NULL || call->tool->enabled);
    facts->within_hours = true;
    facts->actions_paused = agent->actions_paused;
    facts->life = TG_RUN_LIVE;
    facts->round = (unsigned) run->round;
    facts->max_rounds = (unsigned) agent->max_rounds;
    facts->position = (unsigned) call->position;

    if (call->tool) {
        facts->requires_verified_user = call->tool->requires_verified_user;
        facts->effect = call->tool->effect;
        facts->limit = (call->tool->kind == NGX_HTTP_TOOLGATE_TOOL_HTTP)
                       ? TG_LIMIT_UNKNOWN : TG_LIMIT_NOT_COUNTED;
    }
}


/* The state machine of one call; called again whenever something it waited for
 * has happened. */
static void
ngx_http_toolgate_call_advance(ngx_http_toolgate_call_t *call)
{
    tg_policy_verdict_t  verdict;

    switch (call->state) {

    case NGX_HTTP_TOOLGATE_CALL_NEW:
        ngx_http_toolgate_call_facts(call);

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

        if (verdict.ask_limit) {
            call->state = NGX_HTTP_TOOLGATE_CALL_COUNTING;
            ngx_http_toolgate_call_count(call);
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

        call->state = NGX_HTTP_TOOLGATE_CALL_RUNNING;
        ngx_http_toolgate_call_run(call);
        return;

    case NGX_HTTP_TOOLGATE_CALL_RUNNING:
    case NGX_HTTP_TOOLGATE_CALL_ENDED:
        return;
    }
}


/* An earlier call of the round that is the same and has not ended. */
static ngx_http_toolgate_call_t *
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
            call->facts.already_done = true;
            call->facts.earlier_result.data = (char *) done[i].result.data;
            call->facts.earlier_result.len = done[i].result.len;
            return;
        }
    }
}


static void
ngx_http_toolgate_call_count(ngx_http_toolgate_call_t *call)
{
    u_char                  *p;
    ngx_http_toolgate_run_t *run;
    ngx_toolgate_counter_t  *counter;

    run = call->run;

    counter = ngx_palloc(run->request->pool, sizeof(ngx_toolgate_counter_t));
    p = ngx_pnalloc(run->request->pool, NGX_TOOLGATE_COUNTER_KEY_MAX);

    if (counter == NULL || p == NULL) {
        run->out_of_memory = 1;
        return;
    }

    /* anonymous and without a session: the run is the session */

    counter->key.data = p;
    counter->key.len = ngx_snprintf(p, NGX_TOOLGATE_COUNTER_KEY_MAX,
                                    "{%V/%V}:http:%s", &run->project->name,
                                    &run->prompt.account, run->id) - p;
    counter->limit = TG_POLICY_HTTP_LIMIT;
    counter->window_s = TG_POLICY_HTTP_WINDOW_S;

    if (ngx_toolgate_counter_take(run->request->pool,
                                  run->request->connection->log,
                                  run->conf->redis, run->conf->zone, counter,
                                  ngx_http_toolgate_call_counted, call)
        != NGX_OK)
    {
        run->out_of_memory = 1;
    }
}


static void
ngx_http_toolgate_call_counted(void *data, ngx_toolgate_counter_result_t *result)
{
    ngx_http_toolgate_call_t  *call = data;

    if (call->state != NGX_HTTP_TOOLGATE_CALL_COUNTING) {
        return;
    }

    if (result->mode == NGX_TOOLGATE_COUNTED_LOCAL) {
        call->run->local_limits = 1;
    }

    if (result->allowed) {
        call->facts.limit = TG_LIMIT_PASSED;

    } else if (result->mode == NGX_TOOLGATE_COUNTED_CLOSED) {
        call->facts.limit = TG_LIMIT_STORE_CLOSED;

    } else {
        call->facts.limit = TG_LIMIT_REFUSED;
        call->facts.retry_after_s = (uint32_t) result->retry_after_s;
    }

    ngx_http_toolgate_call_advance(call);
    ngx_http_toolgate_call_from_event(call);
}


static void
ngx_http_toolgate_call_run(ngx_http_toolgate_call_t *call)
{
    ngx_int_t                  rc;
    ngx_http_request_t        *r;
    ngx_http_toolgate_job_t   *job;
    ngx_http_toolgate_run_t   *run;
    ngx_http_core_loc_conf_t  *clcf;

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
    job->end_user = NULL;
    job->account = run->prompt.account;
    job->run.data = (u_char *) run->id;
    job->run.len = ngx_strlen(run->id);
    job->session = job->run;
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


static void
ngx_http_toolgate_call_job_done(ngx_http_toolgate_job_t *job)
{
    ngx_http_toolgate_call_t *call = job->data;

    ngx_http_toolgate_run_t        *run;
    ngx_http_toolgate_done_call_t  *done;

    run = call->run;
    call->code = job->code;

    if (job->result.error != TG_OK) {

        /* a result over the bound is as good as none */

        call->code = "unreadable";
        tg_buf_reset(&job->result);
        (void) tg_policy_envelope(call->code, tg_null_str, &job->result);
    }

    if (call->code == NULL) {
        done = ngx_array_push(&run->done_calls);

        if (done) {
            done->tool = call->tool;
            done->canonical = call->canonical;
            done->result = ngx_http_toolgate_copy(run->request->pool,
                                                  tg_buf_get(&job->result));
        }

        if (done == NULL || done->result.data == NULL) {
            run->out_of_memory = 1;
        }
    }

    ngx_http_toolgate_call_end(call);
    ngx_http_toolgate_call_from_event(call);
}


static void
ngx_http_toolgate_call_end(ngx_http_toolgate_call_t *call)
{
    ngx_uint_t                i;
    ngx_http_toolgate_run_t  *run;

    run = call->run;

    call->state = NGX_HTTP_TOOLGATE_CALL_ENDED;
    run->calls_open--;

    ngx_log_error(NGX_LOG_INFO, run->request->connection->log, 0,
                  "toolgate: run %s call %s \"%V\": %s", run->id, call->id,
                  &call->name, call->code ? call->code : "ok");

    if (!call->caller_owned || call->code) {
        ngx_http_toolgate_call_step(run, &call->name, call->code);
    }

    /* the next one that waited for this one may go */

    for (i = call->position + 1; i < run->call_count; i++) {
        if (run->calls[i].state == NGX_HTTP_TOOLGATE_CALL_WAITING) {
            ngx_http_toolgate_call_advance(&run->calls[i]);
        }
    }

    if (run->calls_open == 0 || run->out_of_memory) {
        run->calls_ended = 1;
        ngx_http_toolgate_run_post(run);
    }
}


static void
ngx_http_toolgate_call_step(ngx_http_toolgate_run_t *run, ngx_str_t *tool,
    const char *code)
{
    u_char                     random[TG_ID_RANDOM_LEN];
    ngx_http_toolgate_step_t  *step;

    if (run->steps.nelts == NGX_HTTP_TOOLGATE_RUN_STEPS_MAX) {
        return;
    }

    step = ngx_array_push(&run->steps);

    if (step == NULL || RAND_bytes(random, sizeof(random)) != 1) {
        run->out_of_memory = 1;
        return;
    }

    tg_id_make("step_", random, step->id);
    step->tool = *tool;
    step->code = code;
}


void
ngx_http_toolgate_calls_drop(ngx_http_toolgate_run_t *run)
{
    size_t     i;
    ngx_str_t  name;

    for (i = 0; i < run->delta.call_count; i++) {
        name = ngx_http_toolgate_copy(run->request->pool,
                                      tg_buf_get(&run->delta.calls[i].name));

        if (name.data == NULL) {
            run->out_of_memory = 1;
            return;
        }

        ngx_http_toolgate_call_step(run, &name, "round_limit");
    }
}


/* Posted requests run by themselves only after nginx's own handlers. The request
 * may be gone when this returns. */
static void
ngx_http_toolgate_call_from_event(ngx_http_toolgate_call_t *call)
{
    ngx_connection_t  *c;

    if (!call->run->in_handler) {
        c = call->run->request->connection;
        ngx_http_run_posted_requests(c);
    }
}


void
ngx_http_toolgate_calls_cancel(ngx_http_toolgate_run_t *run)
{
    ngx_uint_t                 i;
    ngx_http_toolgate_call_t  *call;

    for (i = 0; i < run->call_count; i++) {
        call = &run->calls[i];

        if (call->state == NGX_HTTP_TOOLGATE_CALL_RUNNING) {
            ngx_http_toolgate_tool_ops(call->tool->kind)->cancel(&call->job);
        }

        if (call->state != NGX_HTTP_TOOLGATE_CALL_ENDED) {
            call->state = NGX_HTTP_TOOLGATE_CALL_ENDED;
            call->code = "run_cancelled";
        }
    }
}


ngx_int_t
ngx_http_toolgate_calls_remember(ngx_http_toolgate_run_t *run)
{
    tg_buf_t                   text;
    ngx_str_t                 *round;
    ngx_uint_t                 i;
    ngx_http_toolgate_call_t  *call;

    tg_buf_init(&text, NGX_HTTP_TOOLGATE_HISTORY_MAX);
    tg_buf_cstr(&text, ",{\"role\":\"assistant\",\"content\":");

    if (run->delta.content.len) {
        tg_buf_json_string(&text, tg_buf_get(&run->delta.content));

    } else {
        tg_buf_cstr(&text, "null");
    }

    tg_buf_cstr(&text, ",\"tool_calls\":[");

    for (i = 0; i < run->call_count; i++) {
        call = &run->calls[i];

        tg_buf_cstr(&text, i ? ",{\"id\":" : "{\"id\":");
        tg_buf_json_string(&text, (tg_str_t) { call->model_id.len,
                                               (char *) call->model_id.data });
        tg_buf_cstr(&text, ",\"type\":\"function\",\"function\":{\"name\":");
        tg_buf_json_string(&text, (tg_str_t) { call->name.len,
                                               (char *) call->name.data });
        tg_buf_cstr(&text, ",\"arguments\":");

        /* what did not parse would be refused by strict vendors */

        tg_buf_json_string(&text, call->args
                           ? (tg_str_t) { call->arguments.len,
                                          (char *) call->arguments.data }
                           : tg_str("{}"));
        tg_buf_cstr(&text, "}}");
    }

    tg_buf_cstr(&text, "]}");

    for (i = 0; i < run->call_count; i++) {
        call = &run->calls[i];

        tg_buf_cstr(&text, ",{\"role\":\"tool\",\"tool_call_id\":");
        tg_buf_json_string(&text, (tg_str_t) { call->model_id.len,
                                               (char *) call->model_id.data });
        tg_buf_cstr(&text, ",\"content\":");
        tg_buf_json_string(&text, tg_buf_get(&call->job.result));
        tg_buf_cstr(&text, "}");

        json_decref(call->args);
        call->args = NULL;
        tg_buf_free(&call->job.result);
    }

    round = ngx_array_push(&run->history);

    if (round == NULL || text.error != TG_OK) {
        tg_buf_free(&text);
        return NGX_ERROR;
    }

    *round = ngx_http_toolgate_copy(run->request->pool, tg_buf_get(&text));
    tg_buf_free(&text);

    run->calls = NULL;
    run->call_count = 0;

    return round->data ? NGX_OK : NGX_ERROR;
}
