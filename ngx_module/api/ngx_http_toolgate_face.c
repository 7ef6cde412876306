/*
 * HTTP as all faces use it: heads with what the limits have to say, JSON of a known
 * length, errors with their status.
 */

#include "ngx_http_toolgate_face.h"


#define NGX_HTTP_TOOLGATE_FACE_ERROR_MAX  (16 * 1024)


static ngx_int_t ngx_http_toolgate_face_limits(ngx_http_toolgate_run_t *run);


/* Says that limits were counted by this server alone. */
static ngx_int_t
ngx_http_toolgate_face_limits(ngx_http_toolgate_run_t *run)
{
    ngx_str_t  local = ngx_string("local");

    return run->local_limits
           ? ngx_http_toolgate_add_header(run->request, "x-toolgate-limit-mode",
                                          &local)
           : NGX_OK;
}


ngx_int_t
ngx_http_toolgate_face_stream(ngx_http_toolgate_run_t *run)
{
    ngx_str_t  type = ngx_string("text/event-stream; charset=utf-8");

    if (run->writer.started) {
        return NGX_OK;
    }

    if (ngx_http_toolgate_face_limits(run) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_toolgate_writer_start(&run->writer, NGX_HTTP_OK, &type, -1, 1);
}


ngx_int_t
ngx_http_toolgate_face_whole(ngx_http_toolgate_run_t *run, tg_str_t json)
{
    ngx_str_t  type = ngx_string("application/json");

    if (ngx_http_toolgate_face_limits(run) != NGX_OK
        || ngx_http_toolgate_writer_start(&run->writer, NGX_HTTP_OK, &type,
                                          (off_t) json.len, 0) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_toolgate_writer_add(&run->writer, json.data, json.len);
}


ngx_int_t
ngx_http_toolgate_face_refuse(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_failure_t *failure)
{
    tg_buf_t   text;
    ngx_int_t  rc;
    ngx_str_t  type = ngx_string("application/json");

    if (failure->retry_after.len
        && ngx_http_toolgate_add_header(run->request, "Retry-After",
                                        &failure->retry_after) != NGX_OK)
    {
        return NGX_ERROR;
    }

    tg_buf_init(&text, NGX_HTTP_TOOLGATE_FACE_ERROR_MAX);
    tg_error_body(failure->error, (tg_str_t) { failure->message.len,
                                               (char *) failure->message.data },
                  tg_null_str, &text);

    rc = NGX_ERROR;

    if (text.error == TG_OK
        && ngx_http_toolgate_writer_start(&run->writer, failure->error->status,
                                          &type, (off_t) text.len, 0) == NGX_OK)
    {
        rc = ngx_http_toolgate_writer_add(&run->writer, text.data, text.len);
        ngx_http_toolgate_writer_end(&run->writer);
    }

    tg_buf_free(&text);

    return rc;
}
