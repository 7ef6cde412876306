/*
 * The events of a run and all that is written of it on the way: gathered, so that a
 * token is no command, and sent in order with whatever is written next.
 */

#include "ngx_http_toolgate_durable.h"


static void ngx_http_toolgate_durable_flush(ngx_http_toolgate_durable_t *durable);
static void ngx_http_toolgate_durable_heard(void *data,
    ngx_http_toolgate_run_answer_t *answer);
static ngx_int_t ngx_http_toolgate_durable_send(
    ngx_http_toolgate_durable_t *durable, ngx_pool_t *pool,
    ngx_http_toolgate_save_e what, const char *status,
    ngx_http_toolgate_field_t *fields, ngx_uint_t n,
    ngx_http_toolgate_run_done_pt done, void *data);
static void ngx_http_toolgate_durable_gather(ngx_http_toolgate_durable_t *durable);


void
ngx_http_toolgate_durable_text(ngx_http_toolgate_run_t *run, tg_str_t text)
{
    ngx_http_toolgate_durable_t  *durable;

    durable = run->durable;

    if (durable == NULL || durable->over) {
        return;
    }

    if (tg_buf_str(&durable->text, text) != TG_OK) {
        run->out_of_memory = 1;
        return;
    }

    if (durable->text.len > NGX_HTTP_TOOLGATE_NEWS_TEXT) {
        ngx_http_toolgate_durable_flush(durable);
        return;
    }

    /* a client of its own has the text already: others may have it with the turn */

    if (run->detached && !durable->flush.timer_set) {
        ngx_add_timer(&durable->flush, NGX_HTTP_TOOLGATE_NEWS_MS);
    }
}


/* What a turn has said is in its own place until it is over: not twice in memory. */
void
ngx_http_toolgate_durable_settle(ngx_http_toolgate_durable_t *durable)
{
    tg_str_t  content, refusal;

    if (durable->settled) {
        return;
    }

    durable->settled = 1;

    content = tg_buf_get(&durable->run->delta.content);
    refusal = tg_buf_get(&durable->run->delta.refusal);

    if (durable->output.len && (content.len || refusal.len)) {
        tg_buf_cstr(&durable->output, "\n\n");
    }

    /* what is over the bound of an answer is not in the document */

    tg_buf_str(&durable->output, content);
    tg_buf_str(&durable->output, refusal);
}


void
ngx_http_toolgate_durable_news(ngx_http_toolgate_durable_t *durable,
    const char *type, tg_str_t members)
{
    ngx_http_toolgate_waiting_news_t  *news;

    ngx_http_toolgate_durable_gather(durable);

    /* one write takes so many */

    if (durable->news.nelts >= NGX_HTTP_TOOLGATE_NEWS_MAX) {
        ngx_http_toolgate_durable_flush(durable);
    }

    news = ngx_array_push(&durable->news);

    if (news == NULL) {
        durable->run->out_of_memory = 1;
        return;
    }

    news->type = type;
    news->start = durable->members.len;
    tg_buf_str(&durable->members, members);
    news->end = durable->members.len;

    if (durable->members.error != TG_OK) {
        durable->run->out_of_memory = 1;
    }
}


/* Text that waits becomes an event. */
static void
ngx_http_toolgate_durable_gather(ngx_http_toolgate_durable_t *durable)
{
    ngx_http_toolgate_waiting_news_t  *news;

    if (durable->text.len == 0) {
        return;
    }

    news = ngx_array_push(&durable->news);

    if (news == NULL) {
        durable->run->out_of_memory = 1;
        return;
    }

    news->type = "run.text_delta";
    news->start = durable->members.len;
    tg_buf_cstr(&durable->members, ",\"delta\":");
    tg_buf_json_string(&durable->members, tg_buf_get(&durable->text));
    news->end = durable->members.len;

    tg_buf_reset(&durable->text);
}


void
ngx_http_toolgate_durable_flush_event(ngx_event_t *ev)
{
    ngx_http_toolgate_durable_flush(ev->data);
}


static void
ngx_http_toolgate_durable_flush(ngx_http_toolgate_durable_t *durable)
{
    if (durable->over) {
        return;
    }

    durable->ear->open++;

    if (ngx_http_toolgate_durable_send(durable, NULL, NGX_HTTP_TOOLGATE_SAVE_EVENTS,
                                       NULL, NULL, 0,
                                       ngx_http_toolgate_durable_heard,
                                       durable->ear)
        != NGX_OK)
    {
        durable->ear->open--;
    }
}


/* The run may be gone by now. */
static void
ngx_http_toolgate_durable_heard(void *data, ngx_http_toolgate_run_answer_t *answer)
{
    ngx_http_toolgate_ear_t *ear = data;

    ear->open--;

    if (ear->durable) {
        ngx_http_toolgate_durable_renewed(ear->durable, answer);

    } else if (ear->open == 0) {
        ngx_free(ear);
    }
}


ngx_int_t
ngx_http_toolgate_durable_save(ngx_http_toolgate_durable_t *durable,
    ngx_http_toolgate_save_e what, const char *status,
    ngx_http_toolgate_field_t *fields, ngx_uint_t n,
    ngx_http_toolgate_run_done_pt done, void *data)
{
    return ngx_http_toolgate_durable_send(durable, durable->run->request->pool, what,
                                          status, fields, n, done, data);
}


static ngx_int_t
ngx_http_toolgate_durable_send(ngx_http_toolgate_durable_t *durable,
    ngx_pool_t *pool, ngx_http_toolgate_save_e what, const char *status,
    ngx_http_toolgate_field_t *fields, ngx_uint_t n,
    ngx_http_toolgate_run_done_pt done, void *data)
{
    ngx_int_t                          rc;
    ngx_uint_t                         i;
    ngx_http_toolgate_run_t           *run;
    ngx_http_toolgate_save_t           save;
    ngx_http_toolgate_run_news_t       told[NGX_HTTP_TOOLGATE_RUN_FIELDS_MAX];
    ngx_http_toolgate_waiting_news_t  *news;

    run = durable->run;

    ngx_http_toolgate_durable_gather(durable);

    if (durable->flush.timer_set) {
        ngx_del_timer(&durable->flush);
    }

    ngx_memzero(&save, sizeof(save));
    save.what = what;
    save.status = status;
    save.wait = durable->wait;
    save.fields = fields;
    save.field_count = n;
    save.news = told;

    news = durable->news.elts;

    for (i = 0; i < durable->news.nelts && i < NGX_HTTP_TOOLGATE_RUN_FIELDS_MAX;
         i++)
    {
        told[i].type = news[i].type;
        told[i].members.data = (u_char *) durable->members.data + news[i].start;
        told[i].members.len = news[i].end - news[i].start;
    }

    save.news_count = i;

    rc = ngx_http_toolgate_run_store_save(pool, run->conf->redis, &durable->key,
                                          &durable->invocation,
                                          run->conf->retention, &save, done, data);
    durable->news.nelts = 0;
    tg_buf_reset(&durable->members);

    return rc;
}


void
ngx_http_toolgate_durable_call_begins(ngx_http_toolgate_call_t *call)
{
    tg_buf_t                     *out;
    ngx_http_toolgate_durable_t  *durable;

    durable = call->run->durable;

    if (durable == NULL || durable->over) {
        return;
    }

    out = &durable->scratch;
    tg_buf_reset(out);
    tg_buf_printf(out, ",\"call_id\":\"%s\",\"name\":", call->id);
    tg_buf_json_string(out, (tg_str_t) { call->name.len,
                                         (char *) call->name.data });
    tg_buf_cstr(out, ",\"arguments\":");
    tg_buf_json_string(out, (tg_str_t) { call->arguments.len,
                                         (char *) call->arguments.data });

    ngx_http_toolgate_durable_news(durable, "run.tool_call", tg_buf_get(out));
}


void
ngx_http_toolgate_durable_call_ended(ngx_http_toolgate_call_t *call)
{
    tg_buf_t                     *out;
    ngx_http_toolgate_field_t     field;
    ngx_http_toolgate_durable_t  *durable;

    durable = call->run->durable;

    if (durable == NULL) {
        return;
    }

    out = &durable->scratch;

    if (call->intended) {
        tg_buf_reset(out);
        ngx_http_toolgate_checkpoint_outcome(call, out);

        field.name = call->outcome_name;
        field.value.data = (u_char *) out->data;
        field.value.len = out->len;

        /* also of a run that was ended meanwhile: what was done was done */

        (void) ngx_http_toolgate_durable_save(durable,
                                              NGX_HTTP_TOOLGATE_SAVE_OUTCOME, NULL,
                                              &field, 1, NULL, NULL);
    }

    if (durable->over) {
        return;
    }

    tg_buf_reset(out);
    tg_buf_printf(out, ",\"call_id\":\"%s\",\"name\":", call->id);
    tg_buf_json_string(out, (tg_str_t) { call->name.len,
                                         (char *) call->name.data });
    tg_buf_printf(out, ",\"status\":\"%s\",\"content\":",
                  call->code == NULL ? "ok"
                  : ngx_strcmp(call->code, "run_cancelled") == 0 ? "cancelled"
                  : "failed");
    tg_buf_json_string(out, tg_buf_get(&call->job.result));
    tg_buf_cstr(out, ",\"metadata\":{},\"artifacts\":[],\"error\":");

    if (call->code) {
        tg_buf_cstr(out, "{\"code\":");
        tg_buf_json_string(out, tg_str_of(call->code));
        tg_buf_char(out, '}');

    } else {
        tg_buf_cstr(out, "null");
    }

    tg_buf_cstr(out, ",\"invocation_id\":");
    tg_buf_json_string(out, ngx_http_toolgate_run_label(call->run));

    ngx_http_toolgate_durable_news(durable, "run.tool_result", tg_buf_get(out));
}
