/*
 * When something is written down of a run: every model turn and every call, in
 * that order, round by round, and once more when the run ends in whatever way. A
 * record that cannot be kept harms no run. How a step looks is in _step.c.
 */

#include "ngx_http_toolgate_steps.h"
#include "ngx_http_toolgate_registry.h"
#include "ngx_http_toolgate_run_record.h"


static ngx_uint_t ngx_http_toolgate_steps_ready(ngx_http_toolgate_steps_t *steps);
static ngx_uint_t ngx_http_toolgate_steps_masked(
    ngx_http_toolgate_steps_t *steps, ngx_uint_t vendor);
static ngx_int_t ngx_http_toolgate_steps_secrets(
    ngx_http_toolgate_steps_t *steps);
static ngx_int_t ngx_http_toolgate_steps_vendor(
    ngx_http_toolgate_steps_t *steps);
static ngx_int_t ngx_http_toolgate_steps_secret(
    ngx_http_toolgate_steps_t *steps, tg_str_t secret);
static void ngx_http_toolgate_steps_add_call(ngx_http_toolgate_steps_t *steps,
    ngx_http_toolgate_call_t *call);
static size_t ngx_http_toolgate_steps_mark(ngx_http_toolgate_steps_t *steps);
static ngx_uint_t ngx_http_toolgate_steps_fits(ngx_http_toolgate_steps_t *steps,
    size_t start);
static void ngx_http_toolgate_steps_send(ngx_http_toolgate_steps_t *steps);
static void ngx_http_toolgate_steps_cleanup(void *data);
static void ngx_http_toolgate_steps_free(void *data);


void
ngx_http_toolgate_steps_open(ngx_http_toolgate_run_t *run)
{
    ngx_pool_cleanup_t         *pool_cln;
    ngx_http_cleanup_t         *cln;
    ngx_http_toolgate_steps_t  *steps;

    if (run->agent == NULL || !run->prompt.store || run->conf->redis == NULL) {
        return;
    }

    /* the one ends the record while all of the run is there, also when the client
     * has left; the other gives back its memory */

    pool_cln = ngx_pool_cleanup_add(run->request->pool,
                                    sizeof(ngx_http_toolgate_steps_t));
    cln = ngx_http_cleanup_add(run->request, 0);

    if (pool_cln == NULL || cln == NULL) {
        return;
    }

    steps = pool_cln->data;
    ngx_memzero(steps, sizeof(ngx_http_toolgate_steps_t));

    if (ngx_array_init(&steps->ends, run->request->pool, 8, sizeof(size_t))
        != NGX_OK)
    {
        return;
    }

    steps->run = run;
    tg_buf_init(&steps->text, 2 * NGX_HTTP_TOOLGATE_STEPS_BYTES_MAX);
    tg_buf_init(&steps->scratch, 2 * NGX_HTTP_TOOLGATE_STEP_MAX);
    tg_buf_init(&steps->cleaned, 3 * NGX_HTTP_TOOLGATE_STEP_CLEAN_MAX);

    pool_cln->handler = ngx_http_toolgate_steps_free;
    cln->handler = ngx_http_toolgate_steps_cleanup;
    cln->data = steps;

    run->record = steps;
}


void
ngx_http_toolgate_steps_turn_begins(ngx_http_toolgate_run_t *run)
{
    if (run->record) {
        run->record->turn_started = ngx_current_msec;
        run->record->turn_open = 1;
    }
}


void
ngx_http_toolgate_steps_turn_ended(ngx_http_toolgate_run_t *run, const char *code)
{
    size_t                      start;
    ngx_http_toolgate_steps_t  *steps;

    steps = run->record;

    if (steps == NULL || !steps->turn_open) {
        return;
    }

    steps->turn_open = 0;

    if (!ngx_http_toolgate_steps_masked(steps, code != NULL)
        || !ngx_http_toolgate_steps_ready(steps))
    {
        return;
    }

    start = ngx_http_toolgate_steps_mark(steps);
    ngx_http_toolgate_step_model(steps, code);

    if (!ngx_http_toolgate_steps_fits(steps, start)) {
        steps->short_form = 1;
        ngx_http_toolgate_step_model(steps, code);
        (void) ngx_http_toolgate_steps_fits(steps, start);
    }
}


void
ngx_http_toolgate_steps_round_begins(ngx_http_toolgate_run_t *run)
{
    if (run->record) {
        run->record->round_open = 1;
    }
}


void
ngx_http_toolgate_steps_round_ended(ngx_http_toolgate_run_t *run)
{
    ngx_uint_t                  i;
    ngx_http_toolgate_steps_t  *steps;

    steps = run->record;

    if (steps == NULL || !steps->round_open) {
        return;
    }

    steps->round_open = 0;

    if (!ngx_http_toolgate_steps_masked(steps, 0)) {
        return;
    }

    for (i = 0; i < run->call_count; i++) {
        ngx_http_toolgate_steps_add_call(steps, &run->calls[i]);
    }

    ngx_http_toolgate_steps_send(steps);
}


void
ngx_http_toolgate_steps_pause(ngx_http_toolgate_run_t *run)
{
    ngx_uint_t                  i;
    ngx_http_toolgate_steps_t  *steps;

    steps = run->record;

    if (steps == NULL || steps->closed) {
        return;
    }

    if (steps->round_open && ngx_http_toolgate_steps_masked(steps, 0)) {
        for (i = 0; i < run->call_count; i++) {
            if (run->calls[i].state == NGX_HTTP_TOOLGATE_CALL_ENDED
                && !ngx_http_toolgate_call_handed_out(&run->calls[i]))
            {
                ngx_http_toolgate_steps_add_call(steps, &run->calls[i]);
            }
        }
    }

    ngx_http_toolgate_steps_send(steps);
    steps->closed = 1;
}


static void
ngx_http_toolgate_steps_add_call(ngx_http_toolgate_steps_t *steps,
    ngx_http_toolgate_call_t *call)
{
    size_t  start;

    if (call->told) {
        return;
    }

    if ((call->approved || (call->code && ngx_strcmp(call->code, "approval_rejected")
                                          == 0))
        && ngx_http_toolgate_steps_ready(steps))
    {
        start = ngx_http_toolgate_steps_mark(steps);
        ngx_http_toolgate_step_approval(steps, call);
        (void) ngx_http_toolgate_steps_fits(steps, start);
    }

    if (!ngx_http_toolgate_steps_ready(steps)) {
        return;
    }

    start = ngx_http_toolgate_steps_mark(steps);
    ngx_http_toolgate_step_call(steps, call);

    if (!ngx_http_toolgate_steps_fits(steps, start)) {
        steps->short_form = 1;
        ngx_http_toolgate_step_call(steps, call);
        (void) ngx_http_toolgate_steps_fits(steps, start);
    }
}


void
ngx_http_toolgate_steps_dropped(ngx_http_toolgate_run_t *run,
    tg_delta_call_t *asked, const char *id)
{
    size_t                      start;
    ngx_http_toolgate_steps_t  *steps;

    steps = run->record;

    if (steps == NULL || !ngx_http_toolgate_steps_ready(steps)) {
        return;
    }

    start = ngx_http_toolgate_steps_mark(steps);
    ngx_http_toolgate_step_dropped(steps, asked, id);

    if (!ngx_http_toolgate_steps_fits(steps, start)) {
        steps->short_form = 1;
        ngx_http_toolgate_step_dropped(steps, asked, id);
        (void) ngx_http_toolgate_steps_fits(steps, start);
    }
}


void
ngx_http_toolgate_steps_close(ngx_http_toolgate_run_t *run)
{
    ngx_http_toolgate_steps_t  *steps;

    steps = run->record;

    if (steps == NULL || steps->closed) {
        return;
    }

    ngx_http_toolgate_steps_turn_ended(run, ngx_http_toolgate_run_stop_code(run));
    ngx_http_toolgate_steps_round_ended(run);
    ngx_http_toolgate_steps_send(steps);

    steps->closed = 1;
}


/* Whether one more step may be added. */
static ngx_uint_t
ngx_http_toolgate_steps_ready(ngx_http_toolgate_steps_t *steps)
{
    if (steps->closed || steps->count == NGX_HTTP_TOOLGATE_RUN_STEPS_MAX) {
        return 0;
    }

    steps->count++;

    return 1;
}


/* Before steps are made: a secret may have been changed since the last ones, and what
 * was sent before is a secret still. vendor: its words are in the step. */
static ngx_uint_t
ngx_http_toolgate_steps_masked(ngx_http_toolgate_steps_t *steps, ngx_uint_t vendor)
{
    if (!steps->closed
        && (ngx_http_toolgate_steps_secrets(steps) != NGX_OK
            || (vendor && ngx_http_toolgate_steps_vendor(steps) != NGX_OK)))
    {
        ngx_log_error(NGX_LOG_ERR, steps->run->request->connection->log, 0,
                      "toolgate: run %s is not recorded any more: out of memory",
                      steps->run->id);
        steps->closed = 1;
    }

    return !steps->closed;
}


static ngx_int_t
ngx_http_toolgate_steps_vendor(ngx_http_toolgate_steps_t *steps)
{
    u_char     *at = NULL;
    ngx_str_t   key;

    for ( ;; ) {
        key = ngx_http_toolgate_turn_key(&steps->run->turn, &at);

        if (key.len == 0) {
            return NGX_OK;
        }

        if (ngx_http_toolgate_steps_secret(steps, (tg_str_t) { key.len,
                                                          (char *) key.data })
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }
}


static ngx_int_t
ngx_http_toolgate_steps_secret(ngx_http_toolgate_steps_t *steps, tg_str_t secret)
{
    if (steps->mask == NULL) {
        steps->mask = tg_mask_new();
    }

    return steps->mask && tg_mask_add(steps->mask, secret) == TG_OK
           ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_http_toolgate_steps_secrets(ngx_http_toolgate_steps_t *steps)
{
    ngx_uint_t             i;
    ngx_array_t           *secrets;
    tg_template_secret_t  *secret;

    secrets = ngx_http_toolgate_secrets(steps->run->request->pool,
                                        steps->run->project, NULL);
    if (secrets == NULL) {
        return NGX_ERROR;
    }

    secret = secrets->elts;

    for (i = 0; i < secrets->nelts; i++) {
        if (ngx_http_toolgate_steps_secret(steps, secret[i].value) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* Where the next step begins; the texts of a run have their bound. */
static size_t
ngx_http_toolgate_steps_mark(ngx_http_toolgate_steps_t *steps)
{
    steps->short_form = steps->bytes > NGX_HTTP_TOOLGATE_STEPS_BYTES_MAX;

    return steps->text.len;
}


/* Takes back what is too large or went wrong. */
static ngx_uint_t
ngx_http_toolgate_steps_fits(ngx_http_toolgate_steps_t *steps, size_t start)
{
    size_t  *end;

    if (steps->text.error == TG_OK
        && steps->text.len - start <= NGX_HTTP_TOOLGATE_STEP_MAX)
    {
        end = ngx_array_push(&steps->ends);

        if (end) {
            *end = steps->text.len;
            steps->bytes += steps->text.len - start;
            return 1;
        }
    }

    steps->text.len = start;
    steps->text.error = TG_OK;

    return 0;
}


static void
ngx_http_toolgate_steps_send(ngx_http_toolgate_steps_t *steps)
{
    size_t                       *end, start;
    ngx_str_t                    *step;
    ngx_uint_t                    i;
    ngx_http_toolgate_run_t      *run;
    ngx_http_toolgate_run_key_t   key;

    run = steps->run;
    end = steps->ends.elts;

    if (steps->ends.nelts == 0) {
        return;
    }

    step = ngx_palloc(run->request->pool, steps->ends.nelts * sizeof(ngx_str_t));

    for (i = 0, start = 0; step && i < steps->ends.nelts; i++) {
        step[i].data = (u_char *) steps->text.data + start;
        step[i].len = end[i] - start;
        start = end[i];
    }

    key.project = run->project->name;
    key.account = run->prompt.account;
    key.run.data = (u_char *) run->id;
    key.run.len = ngx_strlen(run->id);

    if (step) {
        ngx_http_toolgate_run_record_append(run->conf->redis, &key,
                                            run->conf->retention, step,
                                            steps->ends.nelts);
    }

    steps->ends.nelts = 0;
    tg_buf_reset(&steps->text);
}


/* nginx lets the request go: calls that are under way end with it. */
static void
ngx_http_toolgate_steps_cleanup(void *data)
{
    ngx_http_toolgate_steps_t  *steps = data;

    ngx_http_toolgate_calls_cancel(steps->run);
    ngx_http_toolgate_steps_close(steps->run);
}


static void
ngx_http_toolgate_steps_free(void *data)
{
    ngx_http_toolgate_steps_t  *steps = data;

    tg_mask_free(steps->mask);
    tg_buf_free(&steps->scratch);
    tg_buf_free(&steps->cleaned);
    tg_buf_free(&steps->text);
}
