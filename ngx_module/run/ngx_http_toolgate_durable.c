/*
 * A run in the store: made before its first model call, driven by this worker as long
 * as its lease is renewed, until it ends or somebody else ends it.
 *
 * Only intents are waited for, and the making of a run that may be one already. All
 * else goes out in order on the same connection; what is lost with a worker is what
 * the next one does again. What is written on the way is in _durable_writes.c and
 * _durable_events.c.
 */

#include "ngx_http_toolgate_durable.h"


static void ngx_http_toolgate_durable_opened(void *data,
    ngx_http_toolgate_run_answer_t *answer);
static ngx_int_t ngx_http_toolgate_durable_fingerprint(
    ngx_http_toolgate_durable_t *durable, char hex[TG_JSON_SHA256_HEX_LEN + 1]);
static ngx_uint_t ngx_http_toolgate_durable_fields(
    ngx_http_toolgate_durable_t *durable, ngx_http_toolgate_field_t *fields);
static void ngx_http_toolgate_durable_drive(ngx_http_toolgate_durable_t *durable);
static void ngx_http_toolgate_durable_renew(ngx_event_t *ev);
static void ngx_http_toolgate_durable_ended_outside(void *data);
static void ngx_http_toolgate_durable_left(void *data);
static void ngx_http_toolgate_durable_free(void *data);


ngx_int_t
ngx_http_toolgate_durable_open(ngx_http_toolgate_run_t *run, const char *face,
    ngx_str_t *invocation)
{
    ngx_pool_cleanup_t           *pool_cln;
    ngx_http_cleanup_t           *cln;
    ngx_http_toolgate_durable_t  *durable;

    if (!run->prompt.store || run->conf->redis == NULL
        || (run->agent == NULL && !run->follows))
    {
        return NGX_OK;
    }

    /* the one ends the run in the store while all of it is there, also when the
     * client has left; the other gives back its memory */

    pool_cln = ngx_pool_cleanup_add(run->request->pool,
                                    sizeof(ngx_http_toolgate_durable_t));
    cln = ngx_http_cleanup_add(run->request, 0);

    if (pool_cln == NULL || cln == NULL) {
        return NGX_ERROR;
    }

    durable = pool_cln->data;
    ngx_memzero(durable, sizeof(ngx_http_toolgate_durable_t));

    if (ngx_array_init(&durable->news, run->request->pool, 4,
                       sizeof(ngx_http_toolgate_waiting_news_t))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    durable->ear = ngx_calloc(sizeof(ngx_http_toolgate_ear_t), ngx_cycle->log);

    if (durable->ear == NULL) {
        return NGX_ERROR;
    }

    durable->ear->durable = durable;
    durable->run = run;
    durable->face.data = (u_char *) face;
    durable->face.len = ngx_strlen(face);
    durable->invocation = *invocation;
    durable->taken = ngx_current_msec;
    durable->key.project = run->project->name;
    durable->key.account = run->prompt.account;
    durable->key.run.data = (u_char *) run->id;
    durable->key.run.len = ngx_strlen(run->id);

    tg_buf_init(&durable->text, NGX_HTTP_TOOLGATE_NEWS_BYTES);
    tg_buf_init(&durable->members, 2 * NGX_HTTP_TOOLGATE_NEWS_BYTES);
    tg_buf_init(&durable->output, TG_DELTA_MAX_CONTENT);
    tg_buf_init(&durable->scratch, NGX_HTTP_TOOLGATE_CHECKPOINT_MAX);

    durable->renew.handler = ngx_http_toolgate_durable_renew;
    durable->renew.data = durable;
    durable->renew.log = ngx_cycle->log;
    durable->renew.cancelable = 1;

    durable->flush.handler = ngx_http_toolgate_durable_flush_event;
    durable->flush.data = durable;
    durable->flush.log = ngx_cycle->log;
    durable->flush.cancelable = 1;

    durable->driven.run = durable->key.run;
    durable->driven.ended = ngx_http_toolgate_durable_ended_outside;
    durable->driven.data = durable;

    pool_cln->handler = ngx_http_toolgate_durable_free;
    cln->handler = ngx_http_toolgate_durable_left;
    cln->data = durable;

    run->durable = durable;

    return NGX_OK;
}


/* Makes the run in the store; with an invocation id it may be there already. */
ngx_int_t
ngx_http_toolgate_durable_create(ngx_http_toolgate_run_t *run)
{
    char                           hex[TG_JSON_SHA256_HEX_LEN + 1];
    ngx_http_toolgate_field_t      fields[NGX_HTTP_TOOLGATE_RUN_FIELDS_MAX];
    ngx_http_toolgate_new_run_t    new_run;
    ngx_http_toolgate_durable_t   *durable;

    durable = run->durable;

    if (durable == NULL || durable->taken_over) {

        if (durable) {
            ngx_http_toolgate_durable_drive(durable);
        }

        return NGX_OK;
    }

    durable->waits = (durable->invocation.len || durable->queued);

    if (durable->waits && !ngx_toolgate_redis_up(run->conf->redis)) {
        ngx_http_toolgate_run_fail(run, "store_unavailable", NULL);
        return NGX_DECLINED;
    }

    ngx_memzero(&new_run, sizeof(new_run));
    new_run.queued = durable->queued;
    new_run.session = run->prompt.session;

    if (ngx_http_toolgate_durable_fingerprint(durable, hex) != NGX_OK) {
        return NGX_ERROR;
    }

    new_run.fingerprint.data = (u_char *) hex;
    new_run.fingerprint.len = ngx_strlen(hex);
    new_run.input.data = run->prompt.body;
    new_run.input.len = run->prompt.len;
    new_run.fields = fields;
    new_run.field_count = ngx_http_toolgate_durable_fields(durable, fields);

    if (ngx_http_toolgate_run_store_create(run->request->pool, run->conf->redis,
                                           &durable->key, &durable->invocation,
                                           run->conf->retention, &new_run,
                                           durable->waits
                                           ? ngx_http_toolgate_durable_opened
                                           : NULL,
                                           durable)
        != NGX_OK)
    {
        /* a run that could not be written down runs all the same; its actions do
         * not */
        return durable->waits ? NGX_ERROR : NGX_OK;
    }

    if (durable->waits) {
        return NGX_AGAIN;
    }

    ngx_http_toolgate_durable_drive(durable);

    return NGX_OK;
}


/* Of a request that may come again: only then it is worth the time. */
static ngx_int_t
ngx_http_toolgate_durable_fingerprint(ngx_http_toolgate_durable_t *durable,
    char hex[TG_JSON_SHA256_HEX_LEN + 1])
{
    u_char     sha256[NGX_HTTP_TOOLGATE_KEY_SHA256_LEN];
    ngx_str_t  pieces[2];

    hex[0] = '\0';

    if (durable->invocation.len == 0) {
        return NGX_OK;
    }

    pieces[0] = durable->face;
    pieces[1].data = durable->run->prompt.body;
    pieces[1].len = durable->run->prompt.len;

    if (ngx_http_toolgate_sha256(pieces, 2, sha256) != NGX_OK) {
        return NGX_ERROR;
    }

    *ngx_hex_dump((u_char *) hex, sha256, sizeof(sha256)) = '\0';

    return NGX_OK;
}


static ngx_uint_t
ngx_http_toolgate_durable_fields(ngx_http_toolgate_durable_t *durable,
    ngx_http_toolgate_field_t *fields)
{
    ngx_uint_t                n;
    ngx_http_toolgate_run_t  *run;

    run = durable->run;
    n = 0;

    if (run->prompt.session.len) {
        ngx_str_set(&fields[n].name, "session");
        fields[n++].value = run->prompt.session;
    }

    if (run->approval_mode == TG_APPROVAL_STRICT) {
        ngx_str_set(&fields[n].name, "approval_mode");
        ngx_str_set(&fields[n].value, "strict");
        n++;
    }

    if (durable->queued) {
        ngx_str_set(&fields[n].name, "queued");
        ngx_str_set(&fields[n].value, "1");
        n++;
    }

    return ngx_http_toolgate_run_fields(run->request->pool, run->agent,
                                        &run->prompt.model, &durable->face,
                                        &durable->invocation, run->end_user,
                                        run->prompt.metadata, fields, n);
}


/* The fields that a run has from its beginning. */
ngx_uint_t
ngx_http_toolgate_run_fields(ngx_pool_t *pool, ngx_http_toolgate_agent_t *agent,
    ngx_str_t *model, ngx_str_t *face, ngx_str_t *invocation, json_t *end_user,
    json_t *metadata, ngx_http_toolgate_field_t *fields, ngx_uint_t n)
{
    u_char    *version;
    tg_buf_t   text;

    ngx_str_set(&fields[n].name, "face");
    fields[n++].value = *face;

    ngx_str_set(&fields[n].name, "agent");
    fields[n++].value = *model;

    ngx_str_set(&fields[n].name, "agent_id");
    fields[n].value.data = (u_char *) agent->id;
    fields[n].value.len = ngx_strlen(agent->id);
    n++;

    version = ngx_pnalloc(pool, NGX_INT_T_LEN);

    if (version) {
        ngx_str_set(&fields[n].name, "agent_version");
        fields[n].value.data = version;
        fields[n].value.len = ngx_sprintf(version, "%ui", agent->version) - version;
        n++;
    }

    if (invocation->len) {
        ngx_str_set(&fields[n].name, "invocation");
        fields[n++].value = *invocation;
    }

    tg_buf_init(&text, NGX_HTTP_TOOLGATE_CHECKPOINT_MAX);

    if (end_user && tg_json_dump(end_user, &text) == TG_OK) {
        ngx_str_set(&fields[n].name, "end_user");
        fields[n].value = ngx_http_toolgate_copy(pool, tg_buf_get(&text));
        n += fields[n].value.data ? 1 : 0;
    }

    tg_buf_reset(&text);

    if (metadata && tg_json_dump(metadata, &text) == TG_OK) {
        ngx_str_set(&fields[n].name, "metadata");
        fields[n].value = ngx_http_toolgate_copy(pool, tg_buf_get(&text));
        n += fields[n].value.data ? 1 : 0;
    }

    tg_buf_free(&text);

    return n;
}


static void
ngx_http_toolgate_durable_opened(void *data, ngx_http_toolgate_run_answer_t *answer)
{
    ngx_http_toolgate_durable_t *durable = data;

    ngx_connection_t         *c;
    ngx_http_toolgate_run_t  *run;

    run = durable->run;
    c = run->request->connection;

    durable->opened = answer->answer;

    /* all answers about this run carry the id of the first one, in the same place */

    if (answer->answer == NGX_HTTP_TOOLGATE_ANSWER_SAME
        && answer->text.len == durable->key.run.len)
    {
        ngx_memcpy(run->id, answer->text.data, answer->text.len);
    }

    run->opened = 1;
    ngx_http_toolgate_run_post(run);
    ngx_http_run_posted_requests(c);
}


/* NGX_OK: it is ours to drive. NGX_DONE: it is there already, and is followed.
 * NGX_DECLINED: the run has failed. */
ngx_int_t
ngx_http_toolgate_durable_is_opened(ngx_http_toolgate_run_t *run)
{
    ngx_http_toolgate_durable_t  *durable;

    durable = run->durable;

    switch (durable->opened) {

    case NGX_HTTP_TOOLGATE_ANSWER_OK:

        if (!durable->queued) {
            ngx_http_toolgate_durable_drive(durable);
        }

        return NGX_OK;

    case NGX_HTTP_TOOLGATE_ANSWER_SAME:
        durable->over = 1;
        return NGX_DONE;

    case NGX_HTTP_TOOLGATE_ANSWER_CONFLICT:
        durable->over = 1;
        ngx_http_toolgate_run_fail(run, "invocation_conflict", NULL);
        return NGX_DECLINED;

    default:
        durable->over = 1;
        ngx_http_toolgate_run_fail(run, "store_unavailable", NULL);
        return NGX_DECLINED;
    }
}


ngx_int_t
ngx_http_toolgate_durable_hand_over(ngx_http_toolgate_run_t *run)
{
    ngx_http_toolgate_durable_t  *durable;

    durable = run->durable;

    if (durable == NULL || !durable->queued) {
        return NGX_DECLINED;
    }

    durable->over = 1;
    ngx_http_toolgate_run_session_leave(run);
    ngx_http_toolgate_run_kick(run->conf, &durable->key);

    return NGX_DONE;
}


void
ngx_http_toolgate_durable_forget(ngx_http_toolgate_run_t *run)
{
    ngx_http_toolgate_durable_t  *durable;

    durable = run->durable;

    if (durable == NULL || durable->over || durable->taken_over) {
        return;
    }

    durable->over = 1;
    ngx_http_toolgate_durable_stop(durable);

    (void) ngx_http_toolgate_run_store_forget(run->conf->redis, &durable->key,
                                              &durable->invocation,
                                              &run->prompt.session);
    ngx_http_toolgate_run_store_unwatch(run->conf->redis, &durable->key);
}


static void
ngx_http_toolgate_durable_drive(ngx_http_toolgate_durable_t *durable)
{
    tg_buf_t  *members;

    ngx_add_timer(&durable->renew, NGX_HTTP_TOOLGATE_RENEW_MS);
    ngx_http_toolgate_driven_open(&durable->driven, durable->run->conf->redis);

    if (durable->restored) {
        return;
    }

    members = &durable->scratch;
    tg_buf_reset(members);
    tg_buf_cstr(members, ",\"agent\":");
    tg_buf_json_string(members, (tg_str_t) { durable->run->prompt.model.len,
                                   (char *) durable->run->prompt.model.data });
    ngx_http_toolgate_durable_news(durable, "run.started", tg_buf_get(members));
}


/* What ends the run at once when somebody else has ended it, or drives it. */
void
ngx_http_toolgate_durable_renewed(void *data, ngx_http_toolgate_run_answer_t *answer)
{
    ngx_http_toolgate_durable_t *durable = data;

    ngx_connection_t         *c;
    ngx_http_toolgate_run_t  *run;

    run = durable->run;
    c = run->request->connection;

    if (durable->over) {
        return;
    }

    switch (answer->answer) {

    case NGX_HTTP_TOOLGATE_ANSWER_ENDED:
    case NGX_HTTP_TOOLGATE_ANSWER_LOST:
        durable->over = 1;
        ngx_http_toolgate_durable_stop(durable);
        run->ended_outside = ngx_http_toolgate_durable_why(answer);
        break;

    case NGX_HTTP_TOOLGATE_ANSWER_FULL:
        run->ended_outside = "too_many_events";
        break;

    default:
        return;
    }

    ngx_http_toolgate_run_post(run);
    ngx_http_run_posted_requests(c);
}


/* The code for a run that is not ours to drive any more. */
const char *
ngx_http_toolgate_durable_why(ngx_http_toolgate_run_answer_t *answer)
{
    if (answer->answer == NGX_HTTP_TOOLGATE_ANSWER_LOST) {
        return "run_moved";
    }

    return tg_run_status_find((tg_str_t) { answer->text.len,
                                           (char *) answer->text.data })
           == TG_STATUS_SUPERSEDED
           ? "run_superseded" : "run_cancelled";
}


static void
ngx_http_toolgate_durable_renew(ngx_event_t *ev)
{
    ngx_http_toolgate_durable_t *durable = ev->data;

    if (durable->over) {
        return;
    }

    ngx_add_timer(ev, NGX_HTTP_TOOLGATE_RENEW_MS);

    /* a store that is away is asked again next time */

    (void) ngx_http_toolgate_durable_save(durable, NGX_HTTP_TOOLGATE_SAVE_RENEW,
                                          NULL, NULL, 0,
                                          ngx_http_toolgate_durable_renewed,
                                          durable);
}


static void
ngx_http_toolgate_durable_ended_outside(void *data)
{
    ngx_http_toolgate_durable_t *durable = data;

    /* the store says how */

    if (!durable->over) {
        (void) ngx_http_toolgate_durable_save(durable,
                                              NGX_HTTP_TOOLGATE_SAVE_RENEW, NULL,
                                              NULL, 0,
                                              ngx_http_toolgate_durable_renewed,
                                              durable);
    }
}


/* The id that everybody outside knows the run by. */
tg_str_t
ngx_http_toolgate_run_label(ngx_http_toolgate_run_t *run)
{
    if (run->durable && run->durable->invocation.len) {
        return (tg_str_t) { run->durable->invocation.len,
                            (char *) run->durable->invocation.data };
    }

    return tg_str_of(run->id);
}


void
ngx_http_toolgate_durable_stop(ngx_http_toolgate_durable_t *durable)
{
    if (durable->renew.timer_set) {
        ngx_del_timer(&durable->renew);
    }

    if (durable->flush.timer_set) {
        ngx_del_timer(&durable->flush);
    }

    ngx_http_toolgate_driven_close(&durable->driven);
}


/* nginx lets the request go before the run has ended: its client has left. */
static void
ngx_http_toolgate_durable_left(void *data)
{
    ngx_http_toolgate_durable_t *durable = data;

    ngx_http_toolgate_run_t  *run;

    run = durable->run;

    if (run->cancel_followed && run->state == NGX_HTTP_TOOLGATE_RUN_FOLLOWING) {
        ngx_http_toolgate_follow_cancel(run);
    }

    ngx_http_toolgate_calls_cancel(durable->run);
    ngx_http_toolgate_follow_close(&durable->follow);
    ngx_http_toolgate_durable_close(durable->run, TG_STATUS_CANCELLED, NULL);
}


static void
ngx_http_toolgate_durable_free(void *data)
{
    ngx_http_toolgate_durable_t *durable = data;

    ngx_http_toolgate_durable_stop(durable);
    ngx_http_toolgate_follow_close(&durable->follow);

    durable->ear->durable = NULL;

    if (durable->ear->open == 0) {
        ngx_free(durable->ear);
    }

    tg_buf_free(&durable->text);
    tg_buf_free(&durable->members);
    tg_buf_free(&durable->output);
    tg_buf_free(&durable->scratch);
}
