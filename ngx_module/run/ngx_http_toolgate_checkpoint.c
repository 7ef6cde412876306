/*
 * A run as JSON, as far as another worker needs it to go on: what lies behind it
 * (progress), the round under way with its calls, and of each call with a side
 * effect that it was meant to happen and what came of it. _restore.c reads it.
 */

#include "ngx_http_toolgate_durable.h"


static void ngx_http_toolgate_checkpoint_string(tg_buf_t *out, ngx_str_t text);
static void ngx_http_toolgate_checkpoint_usage(ngx_http_toolgate_run_t *run,
    tg_buf_t *out);
static void ngx_http_toolgate_checkpoint_held(ngx_http_toolgate_call_t *call,
    tg_buf_t *out);
static void ngx_http_toolgate_checkpoint_steps(ngx_http_toolgate_run_t *run,
    tg_buf_t *out);


static void
ngx_http_toolgate_checkpoint_string(tg_buf_t *out, ngx_str_t text)
{
    tg_buf_json_string(out, (tg_str_t) { text.len, (char *) text.data });
}


void
ngx_http_toolgate_checkpoint_progress(ngx_http_toolgate_durable_t *durable,
    tg_buf_t *out)
{
    ngx_str_t                      *text;
    ngx_uint_t                      i, round;
    ngx_http_toolgate_run_t        *run;
    ngx_http_toolgate_done_call_t  *done;

    run = durable->run;

    /* whole ones: that of a run that waits is written for itself */

    round = run->round - (run->state == NGX_HTTP_TOOLGATE_RUN_PAUSING);

    if (run->state != NGX_HTTP_TOOLGATE_RUN_PAUSING) {
        ngx_http_toolgate_durable_settle(durable);
    }

    tg_buf_printf(out, "{\"round\":%u,\"final\":%s,\"any_text\":%s,\"spent\":%llu,"
                       "\"text\":", (unsigned) round,
                  run->final ? "true" : "false", run->any_text ? "true" : "false",
                  (unsigned long long) (run->spent + ngx_current_msec
                                        - durable->taken));
    tg_buf_json_string(out, tg_buf_get(&durable->output));
    tg_buf_cstr(out, ",\"history\":[");

    text = run->history.elts;

    for (i = 0; i < run->history.nelts; i++) {
        tg_buf_cstr(out, i ? "," : "");
        ngx_http_toolgate_checkpoint_string(out, text[i]);
    }

    tg_buf_cstr(out, "],\"used_ids\":[");
    text = run->used_ids.elts;

    for (i = 0; i < run->used_ids.nelts; i++) {
        tg_buf_cstr(out, i ? "," : "");
        ngx_http_toolgate_checkpoint_string(out, text[i]);
    }

    tg_buf_cstr(out, "],\"done\":[");
    done = run->done_calls.elts;

    for (i = 0; i < run->done_calls.nelts; i++) {
        tg_buf_cstr(out, i ? ",{\"tool\":" : "{\"tool\":");
        ngx_http_toolgate_checkpoint_string(out, done[i].tool->name);
        tg_buf_cstr(out, ",\"canonical\":");
        ngx_http_toolgate_checkpoint_string(out, done[i].canonical);
        tg_buf_cstr(out, ",\"result\":");
        ngx_http_toolgate_checkpoint_string(out, done[i].result);
        tg_buf_cstr(out, done[i].unknown ? ",\"unknown\":true}" : "}");
    }

    tg_buf_cstr(out, "],");
    ngx_http_toolgate_checkpoint_steps(run, out);
    tg_buf_char(out, ',');
    ngx_http_toolgate_checkpoint_usage(run, out);
    tg_buf_char(out, '}');
}


static void
ngx_http_toolgate_checkpoint_usage(ngx_http_toolgate_run_t *run, tg_buf_t *out)
{
    tg_delta_usage_t  *usage;

    usage = &run->usage;

    if (!usage->present) {
        tg_buf_cstr(out, "\"usage\":null");
        return;
    }

    tg_buf_printf(out, "\"usage\":{\"input_tokens\":%lld,\"output_tokens\":%lld,"
                       "\"total_tokens\":%lld,\"cached_tokens\":%lld,"
                       "\"reasoning_tokens\":%lld}",
                  (long long) usage->prompt_tokens,
                  (long long) usage->completion_tokens,
                  (long long) usage->total_tokens,
                  (long long) usage->cached_tokens,
                  (long long) usage->reasoning_tokens);
}


static void
ngx_http_toolgate_checkpoint_steps(ngx_http_toolgate_run_t *run, tg_buf_t *out)
{
    ngx_uint_t                 i;
    ngx_http_toolgate_step_t  *step;

    tg_buf_cstr(out, "\"steps\":[");
    step = run->steps.elts;

    for (i = 0; i < run->steps.nelts; i++) {
        tg_buf_printf(out, "%s{\"id\":\"%s\",\"tool\":", i ? "," : "", step[i].id);
        ngx_http_toolgate_checkpoint_string(out, step[i].tool);
        tg_buf_cstr(out, ",\"code\":");

        if (step[i].code) {
            tg_buf_json_string(out, tg_str_of(step[i].code));

        } else {
            tg_buf_cstr(out, "null");
        }

        tg_buf_char(out, '}');
    }

    tg_buf_char(out, ']');
}


void
ngx_http_toolgate_checkpoint_round(ngx_http_toolgate_run_t *run, tg_buf_t *out)
{
    ngx_uint_t                 i;
    ngx_http_toolgate_call_t  *call;

    tg_buf_printf(out, "{\"round\":%u,\"content\":", (unsigned) run->round);
    tg_buf_json_string(out, tg_buf_get(&run->delta.content));
    tg_buf_cstr(out, ",\"calls\":[");

    for (i = 0; i < run->call_count; i++) {
        call = &run->calls[i];

        tg_buf_printf(out, "%s{\"id\":\"%s\",\"step\":\"%s\",\"model_id\":",
                      i ? "," : "", call->id, call->step);
        ngx_http_toolgate_checkpoint_string(out, call->model_id);
        tg_buf_cstr(out, ",\"name\":");
        ngx_http_toolgate_checkpoint_string(out, call->name);
        tg_buf_cstr(out, ",\"arguments\":");
        ngx_http_toolgate_checkpoint_string(out, call->arguments);

        if (run->state == NGX_HTTP_TOOLGATE_RUN_PAUSING) {
            ngx_http_toolgate_checkpoint_held(call, out);
        }

        tg_buf_char(out, '}');
    }

    tg_buf_cstr(out, "]}");
}


/* Of a round that waits: what has ended is not done or told again. */
static void
ngx_http_toolgate_checkpoint_held(ngx_http_toolgate_call_t *call, tg_buf_t *out)
{
    if (call->facts.limit == TG_LIMIT_PASSED) {
        tg_buf_cstr(out, ",\"counted\":true");
    }

    if (call->state == NGX_HTTP_TOOLGATE_CALL_ENDED
        && !ngx_http_toolgate_call_handed_out(call))
    {
        tg_buf_cstr(out, ",\"told\":true,\"outcome\":");
        ngx_http_toolgate_checkpoint_outcome(call, out);
    }
}


void
ngx_http_toolgate_checkpoint_intent(ngx_http_toolgate_call_t *call, tg_buf_t *out)
{
    char  sha256[TG_JSON_SHA256_HEX_LEN + 1];

    tg_json_sha256_hex((tg_str_t) { call->canonical.len,
                                    (char *) call->canonical.data }, sha256);

    tg_buf_cstr(out, "{\"tool\":");
    ngx_http_toolgate_checkpoint_string(out, call->name);

    /* of the rounds that lie behind it the last checkpoint is */

    tg_buf_printf(out, ",\"arguments_sha256\":\"%s\",\"round\":%u,\"at\":%lld}",
                  sha256, (unsigned) (call->run->round - 1),
                  (long long) ngx_time());
}


void
ngx_http_toolgate_checkpoint_outcome(ngx_http_toolgate_call_t *call, tg_buf_t *out)
{
    tg_buf_cstr(out, "{\"code\":");

    if (call->code) {
        tg_buf_json_string(out, tg_str_of(call->code));

    } else {
        tg_buf_cstr(out, "null");
    }

    tg_buf_printf(out, ",\"at\":%lld,\"result\":", (long long) ngx_time());
    tg_buf_json_string(out, tg_buf_get(&call->job.result));
    tg_buf_char(out, '}');
}


void
ngx_http_toolgate_checkpoint_result(ngx_http_toolgate_durable_t *durable,
    tg_buf_t *out)
{
    ngx_uint_t                 i, n;
    ngx_http_toolgate_run_t   *run;
    ngx_http_toolgate_call_t  *call;

    run = durable->run;

    ngx_http_toolgate_durable_settle(durable);

    tg_buf_cstr(out, "{\"finish_reason\":");
    tg_buf_json_string(out, tg_str_of(run->finish_reason ? run->finish_reason : ""));
    tg_buf_cstr(out, ",\"text\":");

    /* half an answer of megabytes is not worth holding up the store: its events have
     * it */

    tg_buf_json_string(out, run->finish_reason == NULL
                            && durable->output.len
                               > NGX_HTTP_TOOLGATE_HALF_TEXT_MAX
                            ? tg_str("") : tg_buf_get(&durable->output));
    tg_buf_cstr(out, ",\"calls\":[");

    for (i = 0, n = 0; i < run->call_count; i++) {
        call = &run->calls[i];

        if (!ngx_http_toolgate_call_handed_out(call)) {
            continue;
        }

        tg_buf_printf(out, "%s{\"id\":\"%s\",\"name\":", n++ ? "," : "", call->id);
        ngx_http_toolgate_checkpoint_string(out, call->name);
        tg_buf_cstr(out, ",\"arguments\":");
        ngx_http_toolgate_checkpoint_string(out, call->arguments);
        tg_buf_char(out, '}');
    }

    tg_buf_cstr(out, "],");
    ngx_http_toolgate_checkpoint_steps(run, out);
    tg_buf_char(out, ',');
    ngx_http_toolgate_checkpoint_usage(run, out);
    tg_buf_char(out, '}');
}
