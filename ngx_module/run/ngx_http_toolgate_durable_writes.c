/*
 * What is written of a run at its turning points: intents before side effects, which
 * are waited for, a checkpoint between rounds, a pause, the end.
 */

#include "ngx_http_toolgate_durable.h"


/* One question about intents; it lives in the request's pool. */
typedef struct {
    ngx_http_toolgate_durable_t  *durable;
    ngx_uint_t                    round;
} ngx_http_toolgate_record_t;


static void ngx_http_toolgate_durable_recorded(void *data,
    ngx_http_toolgate_run_answer_t *answer);


/* Asks the store for all calls that wait for their intent to be written. */
void
ngx_http_toolgate_durable_record(ngx_http_toolgate_run_t *run)
{
    size_t                        starts[TG_DELTA_MAX_CALLS + 1];
    tg_buf_t                     *out;
    ngx_uint_t                    i, n;
    ngx_http_toolgate_call_t     *call;
    ngx_http_toolgate_field_t     fields[TG_DELTA_MAX_CALLS + 1];
    ngx_http_toolgate_record_t   *record;
    ngx_http_toolgate_durable_t  *durable;

    durable = run->durable;

    if (run->gathering) {
        return;
    }

    record = ngx_palloc(run->request->pool, sizeof(ngx_http_toolgate_record_t));
    if (record == NULL) {
        run->out_of_memory = 1;
        return;
    }

    record->durable = durable;
    record->round = run->round;

    out = &durable->scratch;
    tg_buf_reset(out);
    n = 0;

    for (i = 0; i < run->call_count; i++) {
        call = &run->calls[i];

        if (call->state != NGX_HTTP_TOOLGATE_CALL_RECORDING || call->record) {
            continue;
        }

        call->record = record;

        starts[n] = out->len;
        fields[n].name = call->intent_name;
        ngx_http_toolgate_checkpoint_intent(call, out);
        fields[n].value.len = out->len - starts[n];
        n++;
    }

    if (n == 0) {
        return;
    }

    if (!durable->round_saved) {
        starts[n] = out->len;
        ngx_str_set(&fields[n].name, "round");
        ngx_http_toolgate_checkpoint_round(run, out);
        fields[n].value.len = out->len - starts[n];
        n++;
        durable->round_saved = 1;
    }

    for (i = 0; i < n; i++) {
        fields[i].value.data = (u_char *) out->data + starts[i];
    }

    if (out->error != TG_OK
        || ngx_http_toolgate_durable_save(durable, NGX_HTTP_TOOLGATE_SAVE_INTENT,
                                          NULL, fields, n,
                                          ngx_http_toolgate_durable_recorded,
                                          record)
           != NGX_OK)
    {
        run->out_of_memory = 1;
    }

    /* on the same connection: it is there before any of them begins */
    ngx_http_toolgate_run_session_keep(run);
}


static void
ngx_http_toolgate_durable_recorded(void *data,
    ngx_http_toolgate_run_answer_t *answer)
{
    ngx_http_toolgate_record_t *record = data;

    ngx_uint_t                    i, in_handler;
    const char                   *code;
    ngx_http_toolgate_run_t      *run;
    ngx_http_toolgate_call_t     *call;
    ngx_http_toolgate_durable_t  *durable;

    durable = record->durable;
    run = durable->run;

    /* the calls of a round are gone when it is over */

    if (record->round != run->round) {
        return;
    }

    in_handler = run->in_handler;
    run->in_handler = 1;

    switch (answer->answer) {

    case NGX_HTTP_TOOLGATE_ANSWER_OK:
        code = NULL;
        break;

    case NGX_HTTP_TOOLGATE_ANSWER_ENDED:
    case NGX_HTTP_TOOLGATE_ANSWER_LOST:
        code = ngx_http_toolgate_durable_why(answer);
        durable->over = 1;
        ngx_http_toolgate_durable_stop(durable);
        run->ended_outside = code;
        ngx_http_toolgate_run_post(run);
        break;

    default:
        code = "store_unavailable";
    }

    for (i = 0; i < run->call_count; i++) {
        call = &run->calls[i];

        if (call->state == NGX_HTTP_TOOLGATE_CALL_RECORDING
            && call->record == record)
        {
            call->intended = (code == NULL);
            ngx_http_toolgate_call_recorded(call, code);
        }
    }

    run->in_handler = in_handler;
    ngx_http_toolgate_calls_from_event(run);
}


void
ngx_http_toolgate_durable_checkpoint(ngx_http_toolgate_run_t *run)
{
    tg_buf_t                     *out;
    ngx_http_toolgate_field_t     fields[2];
    ngx_http_toolgate_durable_t  *durable;

    durable = run->durable;

    if (durable == NULL || durable->over) {
        return;
    }

    out = &durable->scratch;
    tg_buf_reset(out);
    ngx_http_toolgate_checkpoint_progress(durable, out);

    if (out->error != TG_OK) {
        run->out_of_memory = 1;
        return;
    }

    ngx_str_set(&fields[0].name, "progress");
    fields[0].value.data = (u_char *) out->data;
    fields[0].value.len = out->len;
    ngx_str_set(&fields[1].name, "round");
    ngx_str_null(&fields[1].value);

    durable->round_saved = 0;

    (void) ngx_http_toolgate_durable_save(durable,
                                          NGX_HTTP_TOOLGATE_SAVE_CHECKPOINT, NULL,
                                          fields, 2,
                                          ngx_http_toolgate_durable_renewed,
                                          durable);
}


ngx_int_t
ngx_http_toolgate_durable_pause(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_field_t *fields, ngx_uint_t n, ngx_msec_t wait,
    ngx_http_toolgate_run_done_pt done)
{
    size_t                        ends[3];
    tg_buf_t                     *out;
    ngx_uint_t                    i;
    ngx_http_toolgate_durable_t  *durable;

    static ngx_str_t  names[] = {
        ngx_string("progress"), ngx_string("round"), ngx_string("result")
    };

    durable = run->durable;
    durable->wait = wait;

    out = &durable->scratch;
    tg_buf_reset(out);

    ngx_http_toolgate_checkpoint_progress(durable, out);
    ends[0] = out->len;
    ngx_http_toolgate_checkpoint_round(run, out);
    ends[1] = out->len;
    ngx_http_toolgate_checkpoint_result(durable, out);
    ends[2] = out->len;

    if (out->error != TG_OK) {
        return NGX_ERROR;
    }

    for (i = 0; i < 3; i++) {
        fields[n].name = names[i];
        fields[n].value.data = (u_char *) out->data + (i ? ends[i - 1] : 0);
        fields[n].value.len = ends[i] - (i ? ends[i - 1] : 0);
        n++;
    }

    return ngx_http_toolgate_durable_save(durable, NGX_HTTP_TOOLGATE_SAVE_PAUSE,
                                          "requires_action", fields, n, done, run);
}


void
ngx_http_toolgate_durable_leave(ngx_http_toolgate_run_t *run)
{
    run->durable->over = 1;
    ngx_http_toolgate_durable_stop(run->durable);
}


void
ngx_http_toolgate_durable_close(ngx_http_toolgate_run_t *run,
    tg_run_status_e status, const char *code)
{
    tg_buf_t                     *out;
    ngx_uint_t                    n;
    ngx_http_toolgate_field_t     fields[2];
    ngx_http_toolgate_durable_t  *durable;

    durable = run->durable;

    if (durable == NULL || durable->over) {
        return;
    }

    out = &durable->scratch;
    tg_buf_reset(out);

    if (code) {
        tg_buf_cstr(out, ",\"error\":{\"code\":");
        tg_buf_json_string(out, tg_str_of(code));
        tg_buf_char(out, '}');
    }

    ngx_http_toolgate_durable_news(durable, tg_run_status_event(status),
                                   tg_buf_get(out));

    tg_buf_reset(out);
    ngx_http_toolgate_checkpoint_result(durable, out);

    n = 1;
    ngx_str_set(&fields[0].name, "result");
    fields[0].value.data = (u_char *) out->data;
    fields[0].value.len = out->error == TG_OK ? out->len : 0;

    if (code) {
        n = 2;
        ngx_str_set(&fields[1].name, "error");
        fields[1].value.data = (u_char *) code;
        fields[1].value.len = ngx_strlen(code);
    }

    (void) ngx_http_toolgate_durable_save(durable, NGX_HTTP_TOOLGATE_SAVE_END,
                                          tg_run_status_name(status), fields, n,
                                          NULL, NULL);
    ngx_http_toolgate_run_store_unwatch(run->conf->redis, &durable->key);

    durable->over = 1;
    ngx_http_toolgate_durable_stop(durable);
}
