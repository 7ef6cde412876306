/*
 * The calls of one round: who owns each and what it asks for, starting and
 * stopping them. What happens to one call is in _call.c, the round's place in the
 * history in _calls_history.c.
 */

#include "ngx_http_toolgate_run.h"



#define NGX_HTTP_TOOLGATE_GUIDANCE_MAX   2048
#define NGX_HTTP_TOOLGATE_CANONICAL_MAX  (2 * TG_DELTA_MAX_ARGUMENTS)


static ngx_uint_t ngx_http_toolgate_call_committed(
    ngx_http_toolgate_call_t *call);
static ngx_int_t ngx_http_toolgate_call_init(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_call_t *call, tg_delta_call_t *asked);
static ngx_int_t ngx_http_toolgate_call_names(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_call_t *call);
static ngx_uint_t ngx_http_toolgate_call_id_in_session(
    ngx_http_toolgate_run_t *run, tg_str_t id);
static ngx_int_t ngx_http_toolgate_call_model_id(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_call_t *call, tg_str_t id);
static void ngx_http_toolgate_call_owner(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_call_t *call);
static ngx_int_t ngx_http_toolgate_call_arguments(ngx_http_toolgate_call_t *call,
    tg_delta_call_t *asked);


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

    ngx_http_toolgate_steps_round_begins(run);

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

    run->gathering = 1;

    for (i = 0; i < n; i++) {
        ngx_http_toolgate_call_advance(&calls[i]);
    }

    run->gathering = 0;
    run->restored_round = NULL;
    ngx_http_toolgate_calls_count(run);

    if (run->durable) {
        ngx_http_toolgate_durable_record(run);
        ngx_http_toolgate_gate_ask(run);
    }

    ngx_http_toolgate_calls_settle(run);

    return run->out_of_memory ? NGX_ERROR : NGX_OK;
}


/* One that waits for its twin does so for one that is held, when no other is left;
 * one whose twin has ended is about to go on. */
void
ngx_http_toolgate_calls_settle(ngx_http_toolgate_run_t *run)
{
    ngx_uint_t                 i;
    ngx_http_toolgate_call_t  *call;

    for (i = 0; i < run->call_count && !run->out_of_memory; i++) {
        call = &run->calls[i];

        if (call->state != NGX_HTTP_TOOLGATE_CALL_ENDED
            && call->state != NGX_HTTP_TOOLGATE_CALL_HELD
            && (call->state != NGX_HTTP_TOOLGATE_CALL_WAITING
                || ngx_http_toolgate_call_twin(call) == NULL))
        {
            return;
        }
    }

    if (run->state != NGX_HTTP_TOOLGATE_RUN_CALLING_TOOLS
        && run->state != NGX_HTTP_TOOLGATE_RUN_ENDING)
    {
        return;
    }

    run->calls_ended = 1;
    ngx_http_toolgate_run_post(run);
}


static ngx_int_t
ngx_http_toolgate_call_init(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_call_t *call, tg_delta_call_t *asked)
{
    u_char  random[TG_ID_RANDOM_LEN];

    if (ngx_http_toolgate_random(random, sizeof(random)) != NGX_OK) {
        return NGX_ERROR;
    }

    tg_id_make("call_", random, call->id);
    call->started = ngx_current_msec;

    if (ngx_http_toolgate_random(random, sizeof(random)) != NGX_OK) {
        return NGX_ERROR;
    }

    tg_id_make("step_", random, call->step);
    ngx_http_toolgate_restore_ids(call);

    call->name = ngx_http_toolgate_copy(run->request->pool,
                                        tg_buf_get(&asked->name));
    call->arguments = ngx_http_toolgate_copy(run->request->pool,
                                             tg_buf_get(&asked->arguments));

    if (call->name.data == NULL || call->arguments.data == NULL) {
        return NGX_ERROR;
    }

    if (ngx_http_toolgate_call_names(run, call) != NGX_OK) {
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


/* Of the fields that the store has of a call with a side effect. */
static ngx_int_t
ngx_http_toolgate_call_names(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_call_t *call)
{
    u_char  *names;

    if (run->durable == NULL) {
        return NGX_OK;
    }

    names = ngx_pnalloc(run->request->pool, 2 * (sizeof("outcome:") + TG_ID_MAX_LEN));
    if (names == NULL) {
        return NGX_ERROR;
    }

    call->intent_name.data = names;
    call->intent_name.len = ngx_sprintf(names, "intent:%s", call->id) - names;

    names += sizeof("outcome:") + TG_ID_MAX_LEN;
    call->outcome_name.data = names;
    call->outcome_name.len = ngx_sprintf(names, "outcome:%s", call->id) - names;

    return NGX_OK;
}


/* Whether the history of the session has a call of this id. */
static ngx_uint_t
ngx_http_toolgate_call_id_in_session(ngx_http_toolgate_run_t *run, tg_str_t id)
{
    void       *found;
    tg_buf_t    text;
    ngx_str_t   history;

    history = ngx_http_toolgate_run_session_history(run);

    if (history.len == 0 || id.len == 0) {
        return 0;
    }

    tg_buf_init(&text, 6 * TG_DELTA_MAX_ID + 16);
    tg_buf_cstr(&text, "{\"id\":");
    tg_buf_json_string(&text, id);
    tg_buf_char(&text, ',');

    found = memmem(history.data, history.len, text.data, text.len);
    tg_buf_free(&text);

    return found != NULL;
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

    /* a round that was under way elsewhere has its ids already */

    if (run->restored_round == NULL
        && (id.len == 0 || i < run->used_ids.nelts
            || ngx_http_toolgate_call_id_in_session(run, id)))
    {
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
            call->hours_only = grant[i]->hours_only;
            call->approve = grant[i]->approve;
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
    ngx_uint_t           valid;
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

    if (call->tool->template) {
        if (tg_template_fold_digits(call->args) != TG_OK) {
            return NGX_ERROR;
        }
    }

    if (call->tool->kind == NGX_HTTP_TOOLGATE_TOOL_HELPER) {
        tg_approval_strip(call->args);
    }

    valid = tg_schema_validate(call->tool->schema, call->args, &errors);

    if (!valid) {
        tg_schema_errors_text(&errors, &text);

    } else if (call->tool->template) {
        reason = tg_template_check_formats(call->tool->template, call->args,
                                           pointer, sizeof(pointer));
        if (reason) {
            valid = 0;
            tg_buf_printf(&text, "%s: %s", pointer, reason);
        }
    }

    copy = ngx_http_toolgate_copy(pool, tg_buf_get(&text));
    tg_buf_free(&text);

    if (copy.data == NULL) {
        return NGX_ERROR;
    }

    call->facts.arguments_valid = valid;
    call->facts.arguments_guidance.data = (char *) copy.data;
    call->facts.arguments_guidance.len = copy.len;

    if (!valid) {
        return NGX_OK;
    }

    /* half of it would make different calls look the same */

    tg_buf_init(&text, NGX_HTTP_TOOLGATE_CANONICAL_MAX);

    if (tg_json_canonical(call->args, &text) == TG_E_LIMIT) {
        tg_buf_free(&text);
        call->facts.arguments_valid = false;
        call->facts.arguments_guidance = tg_str("the arguments are too large");
        return NGX_OK;
    }

    if (text.error == TG_OK) {
        call->canonical = ngx_http_toolgate_copy(pool, tg_buf_get(&text));
    }

    tg_buf_free(&text);

    return call->canonical.data ? NGX_OK : NGX_ERROR;
}


ngx_http_toolgate_tool_t *
ngx_http_toolgate_run_tool(ngx_http_toolgate_run_t *run, ngx_str_t *name)
{
    ngx_uint_t                  i;
    ngx_http_toolgate_grant_t  *grant;

    grant = run->agent->grants.elts;

    for (i = 0; i < run->agent->grants.nelts; i++) {
        if (grant[i].tool->name.len == name->len
            && ngx_memcmp(grant[i].tool->name.data, name->data, name->len) == 0)
        {
            return grant[i].tool;
        }
    }

    return NULL;
}


void
ngx_http_toolgate_call_step(ngx_http_toolgate_run_t *run, const char *id,
    ngx_str_t *tool, const char *code)
{
    ngx_http_toolgate_step_t  *step;

    if (run->steps.nelts == NGX_HTTP_TOOLGATE_RUN_STEPS_MAX) {
        return;
    }

    step = ngx_array_push(&run->steps);

    if (step == NULL) {
        run->out_of_memory = 1;
        return;
    }

    (void) ngx_cpystrn((u_char *) step->id, (u_char *) id, TG_ID_MAX_LEN);
    step->tool = *tool;
    step->code = code;
}


void
ngx_http_toolgate_calls_drop(ngx_http_toolgate_run_t *run)
{
    char       id[TG_ID_MAX_LEN];
    size_t     i;
    u_char     random[TG_ID_RANDOM_LEN];
    ngx_str_t  name;

    for (i = 0; i < run->delta.call_count; i++) {
        name = ngx_http_toolgate_copy(run->request->pool,
                                      tg_buf_get(&run->delta.calls[i].name));

        if (name.data == NULL
            || ngx_http_toolgate_random(random, sizeof(random)) != NGX_OK)
        {
            run->out_of_memory = 1;
            return;
        }

        tg_id_make("step_", random, id);
        ngx_http_toolgate_call_step(run, id, &name, "round_limit");
        ngx_http_toolgate_steps_dropped(run, &run->delta.calls[i], id);
    }
}


ngx_uint_t
ngx_http_toolgate_calls_committed(ngx_http_toolgate_run_t *run)
{
    ngx_uint_t  i;

    for (i = 0; i < run->call_count; i++) {
        if (ngx_http_toolgate_call_committed(&run->calls[i])) {
            return 1;
        }
    }

    return 0;
}


static ngx_uint_t
ngx_http_toolgate_call_committed(ngx_http_toolgate_call_t *call)
{
    const ngx_http_toolgate_tool_ops_t  *ops;

    if (call->state != NGX_HTTP_TOOLGATE_CALL_RUNNING) {
        return 0;
    }

    ops = ngx_http_toolgate_tool_ops(call->tool->kind);

    return ops->committed && ops->committed(&call->job);
}


ngx_uint_t
ngx_http_toolgate_calls_let_finish(ngx_http_toolgate_run_t *run)
{
    ngx_uint_t                 i, left;
    ngx_http_toolgate_call_t  *call;

    left = 0;

    for (i = 0; i < run->call_count; i++) {
        call = &run->calls[i];

        if (call->state == NGX_HTTP_TOOLGATE_CALL_ENDED) {
            continue;
        }

        if (ngx_http_toolgate_call_committed(call)) {
            left++;
            continue;
        }

        if (call->state == NGX_HTTP_TOOLGATE_CALL_RUNNING) {
            ngx_http_toolgate_tool_ops(call->tool->kind)->cancel(&call->job);
        }

        call->state = NGX_HTTP_TOOLGATE_CALL_ENDED;
        run->calls_open--;
        ngx_http_toolgate_call_cancelled(call);
    }

    return left;
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
            ngx_http_toolgate_call_cancelled(call);
        }
    }
}
