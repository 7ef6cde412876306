/*
 * A round of calls as the model gets it again: its own message with the calls, then
 * the results in call order.
 */

#include "ngx_http_toolgate_run.h"


#define NGX_HTTP_TOOLGATE_HISTORY_MAX    (8 * 1024 * 1024)    /* of one round */


static void ngx_http_toolgate_calls_asked(ngx_http_toolgate_run_t *run,
    tg_buf_t *text);
static void ngx_http_toolgate_calls_result(ngx_http_toolgate_call_t *call,
    tg_buf_t *text);
static ngx_str_t ngx_http_toolgate_calls_id(ngx_http_toolgate_call_t *call);


void
ngx_http_toolgate_calls_text(ngx_http_toolgate_run_t *run, ngx_uint_t open,
    tg_buf_t *text, size_t ends[TG_DELTA_MAX_CALLS + 1])
{
    ngx_uint_t                 i;
    ngx_http_toolgate_call_t  *call;

    ngx_http_toolgate_calls_asked(run, text);
    ends[0] = text->len;

    for (i = 0; i < run->call_count; i++) {
        call = &run->calls[i];

        if (!open || !call->caller_owned || call->code) {
            ngx_http_toolgate_calls_result(call, text);
        }

        ends[i + 1] = text->len;
    }
}


static void
ngx_http_toolgate_calls_asked(ngx_http_toolgate_run_t *run, tg_buf_t *text)
{
    ngx_str_t                  id;
    ngx_uint_t                 i;
    ngx_http_toolgate_call_t  *call;

    tg_buf_cstr(text, ",{\"role\":\"assistant\",\"content\":");

    if (run->delta.content.len) {
        tg_buf_json_string(text, tg_buf_get(&run->delta.content));

    } else {
        tg_buf_cstr(text, "null");
    }

    tg_buf_cstr(text, ",\"tool_calls\":[");

    for (i = 0; i < run->call_count; i++) {
        call = &run->calls[i];
        id = ngx_http_toolgate_calls_id(call);

        tg_buf_cstr(text, i ? ",{\"id\":" : "{\"id\":");
        tg_buf_json_string(text, (tg_str_t) { id.len, (char *) id.data });
        tg_buf_cstr(text, ",\"type\":\"function\",\"function\":{\"name\":");
        tg_buf_json_string(text, (tg_str_t) { call->name.len,
                                              (char *) call->name.data });
        tg_buf_cstr(text, ",\"arguments\":");

        /* what did not parse would be refused by strict vendors */

        tg_buf_json_string(text, call->args
                           ? (tg_str_t) { call->arguments.len,
                                          (char *) call->arguments.data }
                           : tg_str("{}"));
        tg_buf_cstr(text, "}}");
    }

    tg_buf_cstr(text, "]}");
}


static void
ngx_http_toolgate_calls_result(ngx_http_toolgate_call_t *call, tg_buf_t *text)
{
    tg_buf_t   envelope;
    ngx_str_t  id;

    id = ngx_http_toolgate_calls_id(call);

    tg_buf_cstr(text, ",{\"role\":\"tool\",\"tool_call_id\":");
    tg_buf_json_string(text, (tg_str_t) { id.len, (char *) id.data });
    tg_buf_cstr(text, ",\"content\":");

    if (call->job.result.len) {
        tg_buf_json_string(text, tg_buf_get(&call->job.result));

    } else {
        tg_buf_init(&envelope, NGX_HTTP_TOOLGATE_RESULT_MAX);

        if (tg_policy_envelope(ngx_http_toolgate_call_outcome(call), tg_null_str,
                               &envelope) != TG_OK)
        {
            text->error = TG_E_NOMEM;
        }

        tg_buf_json_string(text, tg_buf_get(&envelope));
        tg_buf_free(&envelope);
    }

    tg_buf_char(text, '}');
}


/* What was handed out is known outside by our id, and answered with it. */
static ngx_str_t
ngx_http_toolgate_calls_id(ngx_http_toolgate_call_t *call)
{
    ngx_str_t  id;

    if (!call->caller_owned) {
        return call->model_id;
    }

    id.data = (u_char *) call->id;
    id.len = ngx_strlen(call->id);

    return id;
}


const char *
ngx_http_toolgate_call_outcome(ngx_http_toolgate_call_t *call)
{
    if (call->job.result.len) {
        return call->code;
    }

    /* it may have been done, and must not be done again for that */

    if (call->tool && call->tool->effect != TG_EFFECT_READ
        && (call->intended || call->state == NGX_HTTP_TOOLGATE_CALL_RECORDING
            || call->state == NGX_HTTP_TOOLGATE_CALL_RUNNING))
    {
        return "outcome_unknown";
    }

    return call->code ? call->code : "run_superseded";
}


const char *
ngx_http_toolgate_call_status(const char *code)
{
    if (code == NULL) {
        return "ok";
    }

    if (ngx_strcmp(code, "run_cancelled") == 0
        || ngx_strcmp(code, "run_superseded") == 0)
    {
        return "cancelled";
    }

    return "failed";
}


ngx_int_t
ngx_http_toolgate_calls_remember(ngx_http_toolgate_run_t *run)
{
    size_t                     ends[TG_DELTA_MAX_CALLS + 1];
    tg_buf_t                   text;
    ngx_str_t                 *round;
    ngx_uint_t                 i;
    ngx_http_toolgate_call_t  *call;

    tg_buf_init(&text, NGX_HTTP_TOOLGATE_HISTORY_MAX);
    ngx_http_toolgate_calls_text(run, 0, &text, ends);

    round = ngx_array_push(&run->history);

    if (round == NULL || text.error != TG_OK) {
        tg_buf_free(&text);
        return NGX_ERROR;
    }

    ngx_http_toolgate_run_session_round(run, tg_buf_get(&text), ends);

    *round = ngx_http_toolgate_copy(run->request->pool, tg_buf_get(&text));
    tg_buf_free(&text);

    for (i = 0; i < run->call_count; i++) {
        call = &run->calls[i];

        json_decref(call->args);
        call->args = NULL;
        tg_buf_free(&call->job.result);
    }

    run->calls = NULL;
    run->call_count = 0;

    return round->data ? NGX_OK : NGX_ERROR;
}
