/*
 * Responses in the background: their runs are driven by the run host, and what they say
 * is in the store, where their callers look for it.
 */

#include "ngx_http_toolgate_durable.h"
#include "ngx_http_toolgate_responses.h"


/* A run that goes on on the run host, whose response is looked for. */
typedef struct {
    ngx_http_toolgate_check_t        *check;
    ngx_http_toolgate_check_done_pt   done;
} ngx_http_toolgate_resume_t;


static void ngx_http_toolgate_responses_resumed(void *data,
    ngx_http_toolgate_response_answer_t *answer);
static ngx_int_t ngx_http_toolgate_responses_note(ngx_http_toolgate_run_t *run,
    const char *status);


ngx_int_t
ngx_http_toolgate_responses_detach(ngx_http_toolgate_check_t *c)
{
    ngx_http_toolgate_run_t              *run;
    ngx_http_toolgate_responses_state_t  *state;

    run = c->run;
    state = run->face_data;

    if (run->agent == NULL) {
        return ngx_http_toolgate_check_fault(c, "invalid_value", "background",
                                             "Only agents answer in the "
                                             "background.");
    }

    if (!state->keep) {
        return ngx_http_toolgate_check_fault(c, "invalid_value", "background",
                                             "A response in the background has to "
                                             "be stored: leave \"store\" out.");
    }

    if (run->conf->run_host.len == 0) {
        return ngx_http_toolgate_check_fault(c, "not_implemented", "background",
                                             "This server has no "
                                             "\"toolgate_run_host\", which responses "
                                             "in the background need.");
    }

    if (ngx_http_toolgate_durable_open(run, run->face->name,
                                       &run->prompt.invocation) != NGX_OK
        || run->durable == NULL)
    {
        return NGX_ERROR;
    }

    run->durable->queued = 1;
    run->background = !run->prompt.stream;

    /* before the run, whose driver looks for it */

    return ngx_http_toolgate_responses_note(run, "queued");
}


static ngx_int_t
ngx_http_toolgate_responses_note(ngx_http_toolgate_run_t *run, const char *status)
{
    tg_buf_t   out;
    ngx_int_t  rc;

    tg_buf_init(&out, TG_RESPONSES_OUTPUT_MAX);
    rc = ngx_http_toolgate_responses_live(run, status, &out);

    if (rc == NGX_OK) {
        ngx_http_toolgate_responses_keep(run, tg_buf_get(&out), status);
    }

    tg_buf_free(&out);

    return rc;
}


void
ngx_http_toolgate_responses_resume(ngx_http_toolgate_check_t *c,
    ngx_http_toolgate_check_done_pt done)
{
    u_char                             *p;
    ngx_str_t                           id;
    ngx_http_request_t                 *r;
    ngx_http_toolgate_run_t            *run;
    ngx_http_toolgate_resume_t         *resume;
    ngx_http_toolgate_response_key_t    key;

    r = c->request;
    run = c->run;
    resume = ngx_palloc(r->pool, sizeof(ngx_http_toolgate_resume_t));
    id.data = ngx_pnalloc(r->pool, TG_ID_MAX_LEN);

    if (resume == NULL || id.data == NULL) {
        c->code = "internal_error";
        done(c);
        return;
    }

    resume->check = c;
    resume->done = done;

    p = ngx_snprintf(id.data, TG_ID_MAX_LEN, "resp_%s", run->id + 4);
    id.len = p - id.data;
    ngx_http_toolgate_responses_key(run, &id, &key);

    if (ngx_http_toolgate_response_get(r->pool, r->connection->log, run->conf->redis,
                                       &key, ngx_http_toolgate_responses_resumed,
                                       resume)
        != NGX_OK)
    {
        c->code = "internal_error";
        done(c);
    }
}


/* One that a client waited for, who has left, has none: nobody will ask for it. */
static void
ngx_http_toolgate_responses_resumed(void *data,
    ngx_http_toolgate_response_answer_t *answer)
{
    ngx_http_toolgate_resume_t *resume = data;

    ngx_connection_t                     *connection;
    ngx_http_toolgate_run_t              *run;
    ngx_http_toolgate_responses_state_t  *state;

    run = resume->check->run;
    connection = run->request->connection;

    /* and one that has ended stays as it is: who had its run go on has another */

    if (answer->state == NGX_HTTP_TOOLGATE_RESPONSE_OK
        && ngx_http_toolgate_responses_is_live((tg_str_t) { answer->text.len,
                                                     (char *) answer->text.data })
        && ngx_http_toolgate_responses_face_restore(run,
               (tg_str_t) { answer->text.len, (char *) answer->text.data })
           == NGX_OK)
    {
        run->face = &ngx_http_toolgate_responses_face;
        state = run->face_data;
        state->keep = 1;

        (void) ngx_http_toolgate_responses_note(run, "in_progress");
    }

    resume->done(resume->check);
    ngx_http_run_posted_requests(connection);
}
