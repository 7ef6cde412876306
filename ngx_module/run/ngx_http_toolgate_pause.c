/*
 * A run that waits for somebody outside: a person who approves calls, or the caller's
 * app that runs them. What it waits for is written down, and nothing of it stays in
 * this worker. The run host goes on with it when what it waits for is there.
 */

#include "ngx_http_toolgate_durable.h"
#include "ngx_http_toolgate_run_submit.h"


#define NGX_HTTP_TOOLGATE_REQUIRED_MAX    (4 * 1024 * 1024)
#define NGX_HTTP_TOOLGATE_PAUSE_FIELDS    8
#define NGX_HTTP_TOOLGATE_PAUSE_GRACE_MS  100     /* until it is looked at again */


static ngx_uint_t ngx_http_toolgate_pause_approvals(ngx_http_toolgate_run_t *run);
static ngx_int_t ngx_http_toolgate_pause_required(ngx_http_toolgate_run_t *run,
    ngx_uint_t approvals, int64_t expires);
static void ngx_http_toolgate_pause_calls(ngx_http_toolgate_run_t *run,
    int64_t expires, tg_buf_t *out);
static void ngx_http_toolgate_pause_news(ngx_http_toolgate_run_t *run,
    ngx_uint_t approvals);
static ngx_int_t ngx_http_toolgate_pause_ids(ngx_http_toolgate_run_t *run,
    ngx_str_t *ids);
static void ngx_http_toolgate_pause_hand_out(ngx_http_toolgate_run_t *run);
static void ngx_http_toolgate_pause_saved(void *data,
    ngx_http_toolgate_run_answer_t *answer);


/* The caller's own tools are handed out with those of the agent, or when there are none
 * of these, by a run that ends. */
ngx_uint_t
ngx_http_toolgate_call_handed_out(const ngx_http_toolgate_call_t *call)
{
    if (call->caller_owned) {
        return call->code == NULL && !call->answered;
    }

    return call->state == NGX_HTTP_TOOLGATE_CALL_HELD && call->tool
           && call->tool->kind == NGX_HTTP_TOOLGATE_TOOL_CLIENT
           && (call->approval[0] == '\0' || call->approved);
}


/* How many calls wait for a person: these come first. */
static ngx_uint_t
ngx_http_toolgate_pause_approvals(ngx_http_toolgate_run_t *run)
{
    ngx_uint_t  i, n;

    n = 0;

    for (i = 0; i < run->call_count; i++) {
        n += (run->calls[i].state == NGX_HTTP_TOOLGATE_CALL_HELD
              && !ngx_http_toolgate_call_handed_out(&run->calls[i]));
    }

    return n;
}


void
ngx_http_toolgate_run_pause(ngx_http_toolgate_run_t *run)
{
    u_char                      until[NGX_INT64_LEN];
    int64_t                     expires;
    ngx_uint_t                  n, approvals;
    ngx_time_t                 *tp;
    ngx_http_toolgate_field_t   fields[NGX_HTTP_TOOLGATE_PAUSE_FIELDS];

    run->state = NGX_HTTP_TOOLGATE_RUN_PAUSING;
    approvals = ngx_http_toolgate_pause_approvals(run);

    tp = ngx_timeofday();
    expires = approvals ? run->approval_expires
                        : (int64_t) tp->sec * 1000 + (int64_t) tp->msec
                          + (int64_t) run->conf->tool_outputs_ttl;

    run->finish_reason = approvals ? "stop" : "tool_calls";

    if (ngx_http_toolgate_pause_required(run, approvals, expires) != NGX_OK) {
        run->out_of_memory = 1;
        return;
    }

    ngx_http_toolgate_pause_news(run, approvals);

    n = 0;
    ngx_str_set(&fields[n].name, "required_action");
    fields[n++].value = run->required;
    ngx_str_set(&fields[n].name, "approvals");
    ngx_str_null(&fields[n].value);

    if (ngx_http_toolgate_pause_ids(run, &fields[n++].value) != NGX_OK) {
        run->out_of_memory = 1;
        return;
    }

    ngx_str_set(&fields[n].name, "late");
    fields[n].value.data = (u_char *) (approvals ? "approval_expired"
                                                 : "tool_outputs_expired");
    fields[n].value.len = ngx_strlen(fields[n].value.data);
    n++;

    if (approvals) {
        ngx_str_set(&fields[n].name, "waits_until");
        fields[n].value.data = until;
        fields[n].value.len = ngx_sprintf(until, "%L", expires) - until;
        n++;

    } else {
        ngx_http_toolgate_pause_hand_out(run);
    }

    if (ngx_http_toolgate_durable_pause(run, fields, n,
                                        approvals ? 0 : run->conf->tool_outputs_ttl,
                                        ngx_http_toolgate_pause_saved)
        != NGX_OK)
    {
        run->out_of_memory = 1;
    }
}


static ngx_int_t
ngx_http_toolgate_pause_required(ngx_http_toolgate_run_t *run,
    ngx_uint_t approvals, int64_t expires)
{
    tg_buf_t                   text;
    ngx_uint_t                 i, n;
    ngx_http_toolgate_call_t  *call;

    tg_buf_init(&text, NGX_HTTP_TOOLGATE_REQUIRED_MAX);

    if (!approvals) {
        ngx_http_toolgate_pause_calls(run, expires, &text);

    } else {
        tg_buf_cstr(&text, "{\"type\":\"approval\",\"approvals\":[");

        for (i = 0, n = 0; i < run->call_count; i++) {
            call = &run->calls[i];

            if (call->state != NGX_HTTP_TOOLGATE_CALL_HELD
                || ngx_http_toolgate_call_handed_out(call))
            {
                continue;
            }

            tg_buf_printf(&text, "%s{\"id\":\"%s\",", n++ ? "," : "",
                          call->approval);
            ngx_http_toolgate_call_describe(call, &text);
            tg_buf_printf(&text, ",\"expires_at\":%lld}",
                          (long long) expires / 1000);
        }

        tg_buf_cstr(&text, "]}");
    }

    if (text.error == TG_OK) {
        run->required = ngx_http_toolgate_copy(run->request->pool,
                                               tg_buf_get(&text));
    }

    tg_buf_free(&text);

    return run->required.data ? NGX_OK : NGX_ERROR;
}


static void
ngx_http_toolgate_pause_calls(ngx_http_toolgate_run_t *run, int64_t expires,
    tg_buf_t *out)
{
    ngx_uint_t                 i, n;
    ngx_http_toolgate_call_t  *call;

    tg_buf_cstr(out, "{\"type\":\"submit_tool_outputs\",\"tool_calls\":[");

    for (i = 0, n = 0; i < run->call_count; i++) {
        call = &run->calls[i];

        if (!ngx_http_toolgate_call_handed_out(call)) {
            continue;
        }

        tg_buf_printf(out, "%s{\"call_id\":\"%s\",\"name\":", n++ ? "," : "",
                      call->id);
        tg_buf_json_string(out, (tg_str_t) { call->name.len,
                                             (char *) call->name.data });
        tg_buf_cstr(out, ",\"arguments\":");
        (void) tg_json_dump(call->args, out);
        tg_buf_char(out, '}');
    }

    tg_buf_printf(out, "],\"expires_at\":%lld}", (long long) expires / 1000);
}


static void
ngx_http_toolgate_pause_news(ngx_http_toolgate_run_t *run, ngx_uint_t approvals)
{
    tg_buf_t                   text;
    ngx_uint_t                 i;
    ngx_http_toolgate_call_t  *call;

    tg_buf_init(&text, NGX_HTTP_TOOLGATE_REQUIRED_MAX + 64);

    for (i = 0; i < run->call_count; i++) {
        call = &run->calls[i];

        if (!approvals) {
            if (ngx_http_toolgate_call_handed_out(call)) {
                ngx_http_toolgate_durable_call_begins(call);
            }

            continue;
        }

        if (call->state == NGX_HTTP_TOOLGATE_CALL_HELD
            && !ngx_http_toolgate_call_handed_out(call))
        {
            tg_buf_reset(&text);
            tg_buf_printf(&text, ",\"approval\":{\"id\":\"%s\",", call->approval);
            ngx_http_toolgate_call_describe(call, &text);
            tg_buf_printf(&text, ",\"expires_at\":%lld}",
                          (long long) run->approval_expires / 1000);
            ngx_http_toolgate_durable_news(run->durable, "run.approval_requested",
                                           tg_buf_get(&text));
        }
    }

    tg_buf_reset(&text);
    tg_buf_cstr(&text, ",\"required_action\":");
    tg_buf_str(&text, (tg_str_t) { run->required.len, (char *) run->required.data });
    ngx_http_toolgate_durable_news(run->durable, "run.requires_action",
                                   tg_buf_get(&text));

    if (text.error != TG_OK) {
        run->out_of_memory = 1;
    }

    tg_buf_free(&text);
}


/* Of the approvals that the run waits for, with blanks between them. */
static ngx_int_t
ngx_http_toolgate_pause_ids(ngx_http_toolgate_run_t *run, ngx_str_t *ids)
{
    u_char                    *p;
    ngx_uint_t                 i;
    ngx_http_toolgate_call_t  *call;

    p = ngx_pnalloc(run->request->pool, run->call_count * TG_ID_MAX_LEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    ids->data = p;

    for (i = 0; i < run->call_count; i++) {
        call = &run->calls[i];

        if (call->state == NGX_HTTP_TOOLGATE_CALL_HELD
            && !ngx_http_toolgate_call_handed_out(call))
        {
            p = ngx_sprintf(p, "%s ", call->approval);
        }
    }

    ids->len = p - ids->data;

    return NGX_OK;
}


/* So that a call's id leads to its run: chat clients have nothing else. */
static void
ngx_http_toolgate_pause_hand_out(ngx_http_toolgate_run_t *run)
{
    ngx_str_t                  id;
    ngx_uint_t                 i;
    ngx_http_toolgate_call_t  *call;

    for (i = 0; i < run->call_count; i++) {
        call = &run->calls[i];

        if (ngx_http_toolgate_call_handed_out(call)) {
            id.data = (u_char *) call->id;
            id.len = ngx_strlen(call->id);

            ngx_http_toolgate_call_note(run->conf->redis, &run->durable->key, &id,
                                        run->conf->retention);
        }
    }
}


static void
ngx_http_toolgate_pause_saved(void *data, ngx_http_toolgate_run_answer_t *answer)
{
    ngx_http_toolgate_run_t *run = data;

    ngx_connection_t  *c;

    c = run->request->connection;

    if (run->state != NGX_HTTP_TOOLGATE_RUN_PAUSING) {
        return;
    }

    run->pause_answer = answer->answer;
    run->paused = 1;

    if (answer->answer == NGX_HTTP_TOOLGATE_ANSWER_ENDED
        || answer->answer == NGX_HTTP_TOOLGATE_ANSWER_LOST)
    {
        ngx_http_toolgate_durable_leave(run);
        run->ended_outside = ngx_http_toolgate_durable_why(answer);
        run->paused = 0;
    }

    ngx_http_toolgate_run_post(run);
    ngx_http_run_posted_requests(c);
}


ngx_int_t
ngx_http_toolgate_run_is_paused(ngx_http_toolgate_run_t *run)
{
    ngx_msec_t   wait;
    ngx_time_t  *tp;

    if (run->pause_answer != NGX_HTTP_TOOLGATE_ANSWER_OK) {
        ngx_http_toolgate_run_fail(run,
            run->pause_answer == NGX_HTTP_TOOLGATE_ANSWER_FULL ? "too_many_events"
                                                               : "store_unavailable",
            NULL);
        return NGX_DECLINED;
    }

    tp = ngx_timeofday();
    wait = ngx_http_toolgate_pause_approvals(run)
           ? (ngx_msec_t) ngx_max(run->approval_expires - ((int64_t) tp->sec * 1000
                                                           + (int64_t) tp->msec), 0)
           : run->conf->tool_outputs_ttl;

    ngx_http_toolgate_run_store_watch(run->conf->redis, &run->durable->key,
                                      wait + NGX_HTTP_TOOLGATE_PAUSE_GRACE_MS);
    ngx_http_toolgate_durable_leave(run);

    return NGX_OK;
}
