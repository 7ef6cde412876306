/*
 * Reads what _checkpoint.c has written. A document is of our own making, but it has
 * lain elsewhere and may be of another version: what does not fit is refused, never
 * guessed.
 */

#include "ngx_http_toolgate_durable.h"


static json_t *ngx_http_toolgate_restore_tree(
    ngx_http_toolgate_run_answer_t *document, const char *field);
static ngx_str_t ngx_http_toolgate_restore_string(ngx_http_toolgate_run_t *run,
    const json_t *value);
static ngx_int_t ngx_http_toolgate_restore_strings(ngx_http_toolgate_run_t *run,
    json_t *list, ngx_array_t *to);
static ngx_int_t ngx_http_toolgate_restore_done(ngx_http_toolgate_run_t *run,
    json_t *list);
static ngx_int_t ngx_http_toolgate_restore_steps(ngx_http_toolgate_run_t *run,
    json_t *list);
static void ngx_http_toolgate_restore_usage(ngx_http_toolgate_run_t *run,
    json_t *usage);
static ngx_int_t ngx_http_toolgate_restore_progress(ngx_http_toolgate_run_t *run,
    json_t *progress);
static ngx_int_t ngx_http_toolgate_restore_calls(json_t *round,
    ngx_http_toolgate_run_answer_t *document);
static ngx_int_t ngx_http_toolgate_restore_unknown(ngx_http_toolgate_call_t *call);
static void ngx_http_toolgate_restore_cleanup(void *data);


ngx_int_t
ngx_http_toolgate_restore_load(ngx_pool_t *pool,
    ngx_http_toolgate_run_answer_t *document, ngx_http_toolgate_restored_t **loaded)
{
    ngx_pool_cleanup_t            *cln;
    ngx_http_toolgate_restored_t  *restored;

    cln = ngx_pool_cleanup_add(pool, sizeof(ngx_http_toolgate_restored_t));
    if (cln == NULL) {
        return NGX_ERROR;
    }

    restored = cln->data;
    restored->progress = ngx_http_toolgate_restore_tree(document, "progress");
    restored->round = ngx_http_toolgate_restore_tree(document, "round");
    cln->handler = ngx_http_toolgate_restore_cleanup;

    *loaded = restored;

    return restored->round ? ngx_http_toolgate_restore_calls(restored->round,
                                                             document)
                           : NGX_OK;
}


static void
ngx_http_toolgate_restore_cleanup(void *data)
{
    ngx_http_toolgate_restored_t *restored = data;

    json_decref(restored->progress);
    json_decref(restored->round);
}


ngx_int_t
ngx_http_toolgate_restore(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_restored_t *restored)
{
    run->restored_round = restored->round;

    return restored->progress
           ? ngx_http_toolgate_restore_progress(run, restored->progress) : NGX_OK;
}


/* A new reference, or NULL when there is no such field or no sense in it. */
static json_t *
ngx_http_toolgate_restore_tree(ngx_http_toolgate_run_answer_t *document,
    const char *field)
{
    json_t           *tree;
    ngx_str_t         text;
    tg_json_error_t   ignored;

    text = ngx_http_toolgate_run_answer_field(document, field);

    if (text.len == 0) {
        return NULL;
    }

    tree = tg_json_load((tg_str_t) { text.len, (char *) text.data }, &ignored);

    if (!json_is_object(tree)) {
        json_decref(tree);
        return NULL;
    }

    return tree;
}


static ngx_str_t
ngx_http_toolgate_restore_string(ngx_http_toolgate_run_t *run, const json_t *value)
{
    ngx_str_t  none = ngx_null_string;

    if (!json_is_string(value)) {
        return none;
    }

    return ngx_http_toolgate_copy(run->request->pool,
                                  (tg_str_t) { json_string_length(value),
                                               json_string_value(value) });
}


static ngx_int_t
ngx_http_toolgate_restore_progress(ngx_http_toolgate_run_t *run, json_t *progress)
{
    tg_str_t  text;

    run->round = (ngx_uint_t) json_integer_value(json_object_get(progress, "round"));
    run->final = json_is_true(json_object_get(progress, "final"));
    run->any_text = json_is_true(json_object_get(progress, "any_text"));
    run->spent =
        (ngx_msec_t) json_integer_value(json_object_get(progress, "spent"));

    text = tg_json_get_string(progress, "text");

    if (tg_buf_str(&run->durable->output, text) != TG_OK) {
        return NGX_ERROR;
    }

    ngx_http_toolgate_restore_usage(run, json_object_get(progress, "usage"));

    if (ngx_http_toolgate_restore_strings(run, json_object_get(progress, "history"),
                                          &run->history) != NGX_OK
        || ngx_http_toolgate_restore_strings(run,
                                             json_object_get(progress, "used_ids"),
                                             &run->used_ids) != NGX_OK)
    {
        return NGX_DECLINED;
    }

    if (ngx_http_toolgate_restore_done(run, json_object_get(progress, "done"))
        != NGX_OK)
    {
        return NGX_DECLINED;
    }

    return ngx_http_toolgate_restore_steps(run, json_object_get(progress, "steps"));
}


static ngx_int_t
ngx_http_toolgate_restore_strings(ngx_http_toolgate_run_t *run, json_t *list,
    ngx_array_t *to)
{
    json_t     *value;
    size_t      i;
    ngx_str_t  *slot;

    json_array_foreach(list, i, value) {
        slot = ngx_array_push(to);

        if (slot == NULL) {
            return NGX_ERROR;
        }

        *slot = ngx_http_toolgate_restore_string(run, value);

        if (slot->data == NULL) {
            return NGX_DECLINED;
        }
    }

    return NGX_OK;
}


/* Of a tool that the agent does not have any more nothing can be repeated. */
static ngx_int_t
ngx_http_toolgate_restore_done(ngx_http_toolgate_run_t *run, json_t *list)
{
    json_t                         *value;
    size_t                          i;
    ngx_str_t                       name;
    ngx_http_toolgate_tool_t       *tool;
    ngx_http_toolgate_done_call_t  *done;

    json_array_foreach(list, i, value) {
        name = ngx_http_toolgate_restore_string(run, json_object_get(value, "tool"));
        tool = ngx_http_toolgate_run_tool(run, &name);

        if (tool == NULL) {
            continue;
        }

        done = ngx_array_push(&run->done_calls);

        if (done == NULL) {
            return NGX_ERROR;
        }

        done->tool = tool;
        done->canonical =
            ngx_http_toolgate_restore_string(run,
                                             json_object_get(value, "canonical"));
        done->result =
            ngx_http_toolgate_restore_string(run, json_object_get(value, "result"));
        done->unknown = json_is_true(json_object_get(value, "unknown"));

        if (done->canonical.data == NULL || done->result.data == NULL) {
            return NGX_DECLINED;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_restore_steps(ngx_http_toolgate_run_t *run, json_t *list)
{
    json_t     *value;
    size_t      i;
    ngx_str_t   id, tool, code;

    json_array_foreach(list, i, value) {
        id = ngx_http_toolgate_restore_string(run, json_object_get(value, "id"));
        tool = ngx_http_toolgate_restore_string(run, json_object_get(value, "tool"));
        code = ngx_http_toolgate_restore_string(run, json_object_get(value, "code"));

        if (id.data == NULL || id.len >= TG_ID_MAX_LEN || tool.data == NULL) {
            return NGX_DECLINED;
        }

        ngx_http_toolgate_call_step(run, (char *) id.data, &tool,
                                    (char *) code.data);
    }

    return NGX_OK;
}


static void
ngx_http_toolgate_restore_usage(ngx_http_toolgate_run_t *run, json_t *usage)
{
    tg_delta_usage_t  *to;

    if (!json_is_object(usage)) {
        return;
    }

    to = &run->usage;
    to->present = true;
    to->prompt_tokens =
        json_integer_value(json_object_get(usage, "input_tokens"));
    to->completion_tokens =
        json_integer_value(json_object_get(usage, "output_tokens"));
    to->total_tokens =
        json_integer_value(json_object_get(usage, "total_tokens"));
    to->cached_tokens =
        json_integer_value(json_object_get(usage, "cached_tokens"));
    to->reasoning_tokens =
        json_integer_value(json_object_get(usage, "reasoning_tokens"));
}


/* Puts what the store knows of each call beside it: {"intent":…,"outcome":…}. */
static ngx_int_t
ngx_http_toolgate_restore_calls(json_t *round,
    ngx_http_toolgate_run_answer_t *document)
{
    char         name[TG_ID_MAX_LEN + sizeof("outcome:")];
    json_t      *call, *calls, *known;
    size_t       i;
    tg_str_t     id;
    ngx_uint_t   j;

    static const char *const  words[] = { "intent", "outcome" };

    calls = json_object_get(round, "calls");

    if (json_array_size(calls) == 0 || json_array_size(calls) > TG_DELTA_MAX_CALLS) {
        return NGX_DECLINED;
    }

    json_array_foreach(calls, i, call) {
        id = tg_json_get_string(call, "id");

        if (!tg_id_valid("call_", id)
            || !tg_id_valid("step_", tg_json_get_string(call, "step")))
        {
            return NGX_DECLINED;
        }

        for (j = 0; j < 2; j++) {
            snprintf(name, sizeof(name), "%s:%.*s", words[j], (int) id.len, id.data);
            known = ngx_http_toolgate_restore_tree(document, name);

            if (known && json_object_set_new(call, words[j], known) != 0) {
                return NGX_ERROR;
            }
        }
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_toolgate_restore_turn(ngx_http_toolgate_run_t *run)
{
    json_t     *call, *calls;
    size_t      i;
    tg_rc_e     rc;
    tg_buf_t    text;

    run->round =
        (ngx_uint_t) json_integer_value(json_object_get(run->restored_round,
                                                        "round"));
    calls = json_object_get(run->restored_round, "calls");

    tg_buf_init(&text, NGX_HTTP_TOOLGATE_CHECKPOINT_MAX);
    tg_buf_cstr(&text, "{\"choices\":[{\"message\":{\"content\":");
    tg_buf_json_string(&text, tg_json_get_string(run->restored_round, "content"));
    tg_buf_cstr(&text, ",\"tool_calls\":[");

    json_array_foreach(calls, i, call) {
        tg_buf_cstr(&text, i ? ",{\"id\":" : "{\"id\":");
        tg_buf_json_string(&text, tg_json_get_string(call, "model_id"));
        tg_buf_cstr(&text, ",\"type\":\"function\",\"function\":{\"name\":");
        tg_buf_json_string(&text, tg_json_get_string(call, "name"));
        tg_buf_cstr(&text, ",\"arguments\":");
        tg_buf_json_string(&text, tg_json_get_string(call, "arguments"));
        tg_buf_cstr(&text, "}}");
    }

    tg_buf_cstr(&text, "]},\"finish_reason\":\"tool_calls\"}]}");

    tg_delta_free(&run->delta);
    tg_delta_init(&run->delta);
    rc = text.error == TG_OK ? tg_delta_whole(&run->delta, tg_buf_get(&text))
                             : text.error;
    tg_buf_free(&text);

    run->durable->round_saved = 1;
    run->any_text |= (run->delta.content.len != 0);

    return rc == TG_OK ? NGX_OK : NGX_ERROR;
}


void
ngx_http_toolgate_restore_ids(ngx_http_toolgate_call_t *call)
{
    json_t    *known;
    tg_str_t   id, step;

    known = json_array_get(json_object_get(call->run->restored_round, "calls"),
                           call->position);

    if (known == NULL) {
        return;
    }

    id = tg_json_get_string(known, "id");
    step = tg_json_get_string(known, "step");

    ngx_memcpy(call->id, id.data, id.len);
    ngx_memcpy(call->step, step.data, step.len);
    call->counted = json_is_true(json_object_get(known, "counted"));
    call->told = json_is_true(json_object_get(known, "told"));
}


ngx_int_t
ngx_http_toolgate_restore_call(ngx_http_toolgate_call_t *call)
{
    json_t     *known, *outcome;
    ngx_str_t   code;

    if (call->run->restored_round == NULL) {
        return NGX_DECLINED;
    }

    known = json_array_get(json_object_get(call->run->restored_round, "calls"),
                           call->position);
    outcome = json_object_get(known, "outcome");

    if (outcome) {
        code = ngx_http_toolgate_restore_string(call->run,
                                                json_object_get(outcome, "code"));
        call->code = (char *) code.data;
        tg_buf_str(&call->job.result, tg_json_get_string(outcome, "result"));
        call->verdict.allowed = true;

        return call->job.result.error == TG_OK ? NGX_OK : NGX_ERROR;
    }

    if (json_object_get(known, "intent")) {
        return ngx_http_toolgate_restore_unknown(call);
    }

    return NGX_DECLINED;
}


/* It was to be done, and nobody knows whether it was. */
static ngx_int_t
ngx_http_toolgate_restore_unknown(ngx_http_toolgate_call_t *call)
{
    call->code = "outcome_unknown";
    call->verdict.allowed = true;

    return tg_policy_envelope(call->code, tg_null_str, &call->job.result) == TG_OK
           ? NGX_OK : NGX_ERROR;
}


ngx_int_t
ngx_http_toolgate_restore_result(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_run_answer_t *document)
{
    json_t     *result;
    ngx_int_t   rc;
    ngx_str_t   finish, required;

    result = ngx_http_toolgate_restore_tree(document, "result");

    if (result == NULL) {
        return NGX_DECLINED;
    }

    ngx_http_toolgate_restore_usage(run, json_object_get(result, "usage"));
    rc = ngx_http_toolgate_restore_steps(run, json_object_get(result, "steps"));

    required = ngx_http_toolgate_run_answer_field(document, "required_action");

    if (required.len) {
        run->required = ngx_http_toolgate_copy(run->request->pool,
                                               (tg_str_t) { required.len,
                                                      (char *) required.data });
    }

    finish = ngx_http_toolgate_restore_string(run,
                                              json_object_get(result,
                                                              "finish_reason"));
    run->finish_reason = finish.len ? (char *) finish.data : "stop";

    if (rc == NGX_OK) {
        rc = ngx_http_toolgate_restore_handed(run, json_object_get(result, "calls"));
    }

    json_decref(result);

    return rc;
}


/* The calls that were the caller's to run, with the ids that he knows. */
ngx_int_t
ngx_http_toolgate_restore_handed(ngx_http_toolgate_run_t *run, json_t *list)
{
    json_t                    *value;
    size_t                     i, n;
    tg_str_t                   id;
    ngx_http_toolgate_call_t  *calls;

    n = json_array_size(list);

    if (n == 0) {
        return NGX_OK;
    }

    calls = ngx_pcalloc(run->request->pool, n * sizeof(ngx_http_toolgate_call_t));
    if (calls == NULL) {
        return NGX_ERROR;
    }

    json_array_foreach(list, i, value) {
        id = tg_json_get_string(value, "id");

        if (!tg_id_valid("call_", id)) {
            return NGX_DECLINED;
        }

        calls[i].run = run;
        calls[i].state = NGX_HTTP_TOOLGATE_CALL_ENDED;
        calls[i].caller_owned = 1;
        calls[i].position = i;
        ngx_memcpy(calls[i].id, id.data, id.len);
        calls[i].name =
            ngx_http_toolgate_restore_string(run, json_object_get(value, "name"));
        calls[i].arguments =
            ngx_http_toolgate_restore_string(run, json_object_get(value,
                                                                  "arguments"));

        if (calls[i].name.data == NULL || calls[i].arguments.data == NULL) {
            return NGX_DECLINED;
        }
    }

    run->calls = calls;
    run->call_count = n;

    return NGX_OK;
}
