/*
 * The face of runs as such. It never shows what a run does as it does it: it follows
 * what the store has, like everybody else, whatever worker drives the run.
 */

#include "ngx_http_toolgate_runs_face.h"


#define NGX_HTTP_TOOLGATE_RUNS_EVENT_MAX  (8 * 1024 * 1024)


static ngx_int_t ngx_http_toolgate_runs_nothing(ngx_http_toolgate_run_t *run,
    tg_str_t text);
static ngx_int_t ngx_http_toolgate_runs_head(ngx_http_toolgate_run_t *run);
static ngx_int_t ngx_http_toolgate_runs_ping(ngx_http_toolgate_run_t *run);
static ngx_int_t ngx_http_toolgate_runs_finish(ngx_http_toolgate_run_t *run);
static ngx_int_t ngx_http_toolgate_runs_event(ngx_http_toolgate_run_t *run,
    int64_t seq, tg_str_t event);
static ngx_int_t ngx_http_toolgate_runs_document(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_run_answer_t *document);
static ngx_http_toolgate_run_t *ngx_http_toolgate_runs_follower(
    ngx_http_request_t *r, ngx_http_toolgate_project_t *project,
    ngx_http_toolgate_run_key_t *key);


const ngx_http_toolgate_face_t  ngx_http_toolgate_runs_face = {
    .text = ngx_http_toolgate_runs_nothing,
    .refusal = ngx_http_toolgate_runs_nothing,
    .reasoning = ngx_http_toolgate_runs_nothing,
    .ping = ngx_http_toolgate_runs_ping,
    .finish = ngx_http_toolgate_runs_finish,
    .fail = ngx_http_toolgate_runs_fail,
    .waits = 1,
    .name = "runs",
    .event = ngx_http_toolgate_runs_event,
    .document = ngx_http_toolgate_runs_document
};


void
ngx_http_toolgate_runs_follow(ngx_http_request_t *r,
    ngx_http_toolgate_project_t *project, ngx_http_toolgate_run_key_t *key,
    int64_t after, ngx_uint_t over)
{
    ngx_http_toolgate_run_t  *run;

    run = ngx_http_toolgate_runs_follower(r, project, key);

    if (run == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    run->prompt.stream = 1;

    /* a proxy that waits for a head would give up on a run that is silent */

    if (ngx_http_toolgate_runs_head(run) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_ERROR);
        return;
    }

    if (over) {
        ngx_http_finalize_request(r, ngx_http_send_special(r, NGX_HTTP_LAST));
        return;
    }

    ngx_http_toolgate_run_follow(run, after);
}


void
ngx_http_toolgate_runs_wait(ngx_http_request_t *r,
    ngx_http_toolgate_project_t *project, ngx_http_toolgate_run_key_t *key,
    int64_t after)
{
    ngx_http_toolgate_run_t  *run;

    run = ngx_http_toolgate_runs_follower(r, project, key);

    if (run == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    ngx_http_toolgate_run_follow(run, after);
}


static ngx_http_toolgate_run_t *
ngx_http_toolgate_runs_follower(ngx_http_request_t *r,
    ngx_http_toolgate_project_t *project, ngx_http_toolgate_run_key_t *key)
{
    ngx_http_toolgate_run_t  *run;

    run = ngx_http_toolgate_run_create(r, project, &ngx_http_toolgate_runs_face);

    if (run) {
        ngx_memcpy(run->id, key->run.data, key->run.len);
        run->prompt.account = key->account;
    }

    return run;
}


static ngx_int_t
ngx_http_toolgate_runs_nothing(ngx_http_toolgate_run_t *run, tg_str_t text)
{
    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_runs_head(ngx_http_toolgate_run_t *run)
{
    ngx_str_t  type = ngx_string("text/event-stream; charset=utf-8");

    if (run->writer.started) {
        return NGX_OK;
    }

    return ngx_http_toolgate_writer_start(&run->writer, NGX_HTTP_OK, &type, -1, 1);
}


static ngx_int_t
ngx_http_toolgate_runs_ping(ngx_http_toolgate_run_t *run)
{
    if (ngx_http_toolgate_runs_head(run) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_toolgate_writer_add(&run->writer, ": ping\n\n", 8);
}


static ngx_int_t
ngx_http_toolgate_runs_event(ngx_http_toolgate_run_t *run, int64_t seq,
    tg_str_t event)
{
    u_char     head[NGX_INT64_LEN + sizeof("id: \n")];
    size_t     len;
    ngx_int_t  rc;
    tg_buf_t   text;
    tg_str_t   type;
    json_t    *tree;

    tg_json_error_t  ignored;

    if (!run->prompt.stream) {
        return NGX_OK;
    }

    if (ngx_http_toolgate_runs_head(run) != NGX_OK) {
        return NGX_ERROR;
    }

    tree = tg_json_load(event, &ignored);
    type = tg_json_get_string(tree, "type");

    tg_buf_init(&text, NGX_HTTP_TOOLGATE_RUNS_EVENT_MAX);
    len = ngx_sprintf(head, "id: %L\n", seq) - head;
    tg_buf_append(&text, head, len);
    tg_buf_cstr(&text, "event: ");
    tg_buf_str(&text, type);
    tg_buf_cstr(&text, "\ndata: ");
    tg_buf_str(&text, event);
    tg_buf_cstr(&text, "\n\n");

    rc = text.error == TG_OK
         ? ngx_http_toolgate_writer_add(&run->writer, text.data, text.len)
         : NGX_ERROR;

    tg_buf_free(&text);
    json_decref(tree);

    return rc;
}


static ngx_int_t
ngx_http_toolgate_runs_document(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_run_answer_t *document)
{
    tg_buf_t   out;
    ngx_int_t  rc;

    if (run->prompt.stream) {
        return NGX_OK;
    }

    if (document->pair_count == 0) {
        run->follow_fault = "store_unavailable";
        return NGX_OK;
    }

    tg_buf_init(&out, NGX_HTTP_TOOLGATE_REPLY_MAX);
    ngx_http_toolgate_run_object(document, &run->prompt.account, &out);

    rc = out.error == TG_OK
         ? ngx_http_toolgate_runs_whole(run, run->background ? NGX_HTTP_ACCEPTED
                                                             : NGX_HTTP_OK,
                                        tg_buf_get(&out))
         : NGX_ERROR;

    tg_buf_free(&out);

    return rc;
}


ngx_int_t
ngx_http_toolgate_runs_whole(ngx_http_toolgate_run_t *run, ngx_uint_t status,
    tg_str_t json)
{
    ngx_str_t  type = ngx_string("application/json");

    if (ngx_http_toolgate_writer_start(&run->writer, status, &type,
                                       (off_t) json.len, 0) != NGX_OK
        || ngx_http_toolgate_writer_add(&run->writer, json.data, json.len)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_http_toolgate_writer_end(&run->writer);

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_runs_finish(ngx_http_toolgate_run_t *run)
{
    ngx_http_toolgate_writer_end(&run->writer);

    return NGX_OK;
}


/* Of the request, not of the run: that one's end is in its document. */
ngx_int_t
ngx_http_toolgate_runs_fail(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_failure_t *failure)
{
    tg_buf_t   out;
    ngx_int_t  rc;

    if (run->writer.started) {
        return NGX_OK;
    }

    tg_buf_init(&out, NGX_HTTP_TOOLGATE_RUNS_EVENT_MAX);
    tg_error_body(failure->error,
                  (tg_str_t) { failure->message.len,
                               (char *) failure->message.data },
                  tg_null_str, &out);

    rc = NGX_ERROR;

    if (out.error == TG_OK
        && (failure->retry_after.len == 0
            || ngx_http_toolgate_add_header(run->request, "Retry-After",
                                            &failure->retry_after) == NGX_OK))
    {
        rc = ngx_http_toolgate_runs_whole(run, failure->error->status,
                                          tg_buf_get(&out));
    }

    tg_buf_free(&out);

    return rc;
}
