/*
 * Pass-through of a configured model: the answer goes to the client as it comes,
 * byte for byte. It is read on the way only to know where its events end and
 * whether it ended; "model" is put back to the name that the caller used when
 * the vendor knows the model by another one.
 */

#include "ngx_http_toolgate_run.h"

#include "tg_clean.h"


#define NGX_HTTP_TOOLGATE_RELAY_ERROR_MAX  4096    /* bytes passed on as they are */


static void ngx_http_toolgate_relay_head(ngx_http_toolgate_turn_t *turn);
static ngx_int_t ngx_http_toolgate_relay_take(ngx_http_toolgate_turn_t *turn,
    u_char *data, size_t len);
static void ngx_http_toolgate_relay_ended(ngx_http_toolgate_turn_t *turn);
static ngx_int_t ngx_http_toolgate_relay_stream(ngx_http_toolgate_run_t *run,
    u_char *data, size_t len);
static tg_rc_e ngx_http_toolgate_relay_event(void *ctx,
    const tg_sse_event_t *event);
static ngx_int_t ngx_http_toolgate_relay_renamed(ngx_http_toolgate_run_t *run,
    tg_str_t json);
static ngx_int_t ngx_http_toolgate_relay_begin(ngx_http_toolgate_run_t *run,
    off_t length);
static ngx_int_t ngx_http_toolgate_relay_answer(ngx_http_toolgate_run_t *run);
static void ngx_http_toolgate_relay_error(ngx_http_toolgate_run_t *run,
    json_t *error, tg_buf_t *out);


const ngx_http_toolgate_turn_owner_t  ngx_http_toolgate_relay_owner = {
    ngx_http_toolgate_relay_head,
    ngx_http_toolgate_relay_take,
    ngx_http_toolgate_relay_ended
};


static void
ngx_http_toolgate_relay_head(ngx_http_toolgate_turn_t *turn)
{
    ngx_http_toolgate_run_t  *run = turn->data;

    ngx_http_toolgate_upstream_t  *upstream;

    run->streaming =
        turn->content_type.len >= 17
        && ngx_strncasecmp(turn->content_type.data,
                           (u_char *) "text/event-stream", 17) == 0;

    upstream = run->model->upstreams.elts;
    upstream += run->upstream;

    run->relay_rename =
        upstream->vendor_name.len
        && (upstream->vendor_name.len != run->prompt.model.len
            || ngx_memcmp(upstream->vendor_name.data, run->prompt.model.data,
                          run->prompt.model.len) != 0);
}


static ngx_int_t
ngx_http_toolgate_relay_take(ngx_http_toolgate_turn_t *turn, u_char *data,
    size_t len)
{
    size_t                    max;
    ngx_int_t                 rc;
    ngx_http_toolgate_run_t  *run = turn->data;

    if (run->streaming && turn->status / 100 == 2) {
        rc = ngx_http_toolgate_relay_stream(run, data, len);

    } else if (run->writer.events) {

        /* events were promised by a ping, and this is none */

        run->parse_failed = 1;
        return NGX_ERROR;

    } else if (turn->status / 100 != 2 || run->relay_rename
               || !ngx_http_toolgate_turn_json(turn))
    {
        max = turn->status / 100 == 2 ? NGX_HTTP_TOOLGATE_RELAY_BODY_MAX
                                      : NGX_HTTP_TOOLGATE_ERROR_BODY_MAX;
        rc = NGX_OK;

        if (run->whole.len + len > max
            || tg_buf_append(&run->whole, data, len) != TG_OK)
        {
            run->parse_failed = 1;
            return NGX_ERROR;
        }

    } else if (ngx_http_toolgate_writer_full(&run->writer)) {
        rc = NGX_AGAIN;

    } else {
        rc = ngx_http_toolgate_relay_begin(run, turn->content_length);

        if (rc == NGX_OK) {
            rc = ngx_http_toolgate_writer_add(&run->writer, data, len);
        }
    }

    if (rc == NGX_ERROR) {
        run->out_of_memory = run->parse_failed ? 0 : 1;
    }

    if (run->writer.queued || run->out_of_memory) {
        ngx_http_toolgate_run_post(run);
    }

    return rc;
}


/*
 * Whole events only: if the model dies in the middle of one, an error event can
 * still follow. What is left of this piece waits in run->whole.
 */
static ngx_int_t
ngx_http_toolgate_relay_stream(ngx_http_toolgate_run_t *run, u_char *data,
    size_t len)
{
    tg_str_t  half;

    if (ngx_http_toolgate_writer_full(&run->writer)) {
        return NGX_AGAIN;
    }

    run->relay_used = 0;

    if (tg_sse_feed(&run->sse, (char *) data, len, ngx_http_toolgate_relay_event,
                    run)
        != TG_OK)
    {
        run->parse_failed = 1;
        return NGX_ERROR;
    }

    if (run->relay_rename) {
        return run->relay_done ? NGX_DONE : NGX_OK;
    }

    if (run->relay_used) {

        if (ngx_http_toolgate_relay_begin(run, -1) != NGX_OK) {
            return NGX_ERROR;
        }

        half = tg_buf_get(&run->whole);

        if (ngx_http_toolgate_writer_add(&run->writer, half.data, half.len)
            != NGX_OK
            || ngx_http_toolgate_writer_add(&run->writer, data, run->relay_used)
               != NGX_OK)
        {
            return NGX_ERROR;
        }

        tg_buf_reset(&run->whole);
    }

    if (run->relay_used < len
        && tg_buf_append(&run->whole, data + run->relay_used,
                         len - run->relay_used) != TG_OK)
    {
        return NGX_ERROR;
    }

    return run->relay_done ? NGX_DONE : NGX_OK;
}


static tg_rc_e
ngx_http_toolgate_relay_event(void *ctx, const tg_sse_event_t *event)
{
    ngx_http_toolgate_run_t  *run = ctx;

    run->relay_used = event->end;

    if (tg_str_eq(event->data, tg_str("[DONE]"))) {
        run->relay_done = 1;
    }

    if (!run->relay_rename) {
        return TG_OK;
    }

    if (ngx_http_toolgate_relay_begin(run, -1) != NGX_OK
        || ngx_http_toolgate_writer_add(&run->writer, "data: ", 6) != NGX_OK
        || ngx_http_toolgate_relay_renamed(run, event->data) != NGX_OK
        || ngx_http_toolgate_writer_add(&run->writer, "\n\n", 2) != NGX_OK)
    {
        return TG_E_NOMEM;
    }

    return TG_OK;
}


/* Adds a JSON object with "model" as the caller named it; what is no object with
 * such a member goes as it is. */
static ngx_int_t
ngx_http_toolgate_relay_renamed(ngx_http_toolgate_run_t *run, tg_str_t json)
{
    ngx_int_t                rc;
    tg_buf_t                 name;
    tg_scan_t               *scan;
    const tg_scan_member_t  *member;

    scan = tg_scan_new();
    if (scan == NULL) {
        return NGX_ERROR;
    }

    member = NULL;

    if (tg_scan_feed(scan, json.data, json.len) == TG_OK
        && tg_scan_finish(scan) == TG_OK)
    {
        member = tg_scan_find(scan, json.data, "model");
    }

    if (member == NULL) {
        tg_scan_free(scan);
        return ngx_http_toolgate_writer_add(&run->writer, json.data, json.len);
    }

    tg_buf_init(&name, 4096);
    tg_buf_json_string(&name, (tg_str_t) { run->prompt.model.len,
                                           (char *) run->prompt.model.data });
    rc = NGX_ERROR;

    if (name.error == TG_OK
        && ngx_http_toolgate_writer_add(&run->writer, json.data,
                                        member->value.start) == NGX_OK
        && ngx_http_toolgate_writer_add(&run->writer, name.data, name.len)
           == NGX_OK)
    {
        rc = ngx_http_toolgate_writer_add(&run->writer,
                                          json.data + member->value.end,
                                          json.len - member->value.end);
    }

    tg_buf_free(&name);
    tg_scan_free(scan);

    return rc;
}


static ngx_int_t
ngx_http_toolgate_relay_begin(ngx_http_toolgate_run_t *run, off_t length)
{
    run->turn_shown = 1;

    if (run->writer.started) {
        return NGX_OK;
    }

    /* what has begun is not asked for anywhere else */

    ngx_http_toolgate_prompt_release(run);

    return ngx_http_toolgate_writer_start(&run->writer, run->turn.status,
                                          &run->turn.content_type, length,
                                          run->streaming);
}


static void
ngx_http_toolgate_relay_ended(ngx_http_toolgate_turn_t *turn)
{
    ngx_http_toolgate_run_t  *run = turn->data;

    run->turn_ended = 1;
    ngx_http_toolgate_run_post(run);
}


/* NGX_DECLINED: nothing was sent and another place of the model is to be tried. */
ngx_int_t
ngx_http_toolgate_relay_finish(ngx_http_toolgate_run_t *run)
{
    const char                   *code;
    ngx_http_toolgate_failure_t   failure;

    ngx_memzero(&failure, sizeof(failure));
    code = ngx_http_toolgate_model_status(run, &failure);

    if (code == NULL && ngx_http_toolgate_relay_answer(run) == NGX_OK) {
        run->state = NGX_HTTP_TOOLGATE_RUN_COMPLETED;
        ngx_http_toolgate_writer_end(&run->writer);
        return NGX_OK;
    }

    if (code == NULL) {
        code = run->writer.started ? "model_stream_broken" : "model_unavailable";
    }

    if (ngx_strcmp(code, "model_rejected_request") == 0
        && ngx_http_toolgate_relay_refusal(run) == NGX_OK)
    {
        run->state = NGX_HTTP_TOOLGATE_RUN_COMPLETED;
        return NGX_OK;
    }

    ngx_log_error(NGX_LOG_WARN, run->request->connection->log, 0,
                  "toolgate: model \"%V\": %s, status %ui", &run->model->name,
                  code, run->turn.status);

    if (ngx_http_toolgate_model_next(run)) {
        return NGX_DECLINED;
    }

    failure.error = tg_error_find(code);
    ngx_http_toolgate_run_fail_with(run, &failure);

    return NGX_OK;
}


/* Whether a 2xx answer came whole; adds what is not sent yet. */
static ngx_int_t
ngx_http_toolgate_relay_answer(ngx_http_toolgate_run_t *run)
{
    tg_str_t  rest;

    if ((run->turn.state != NGX_HTTP_TOOLGATE_TURN_WHOLE && !run->relay_done)
        || run->parse_failed)
    {
        return NGX_ERROR;
    }

    rest = tg_buf_get(&run->whole);

    if (run->streaming) {
        if (!run->relay_done) {
            return NGX_ERROR;
        }

        return ngx_http_toolgate_writer_add(&run->writer, rest.data, rest.len);
    }

    if (run->writer.started) {
        return NGX_OK;
    }

    /* only JSON is an answer of a model; a page is from something in between */

    if (!ngx_http_toolgate_turn_json(&run->turn)
        || ngx_http_toolgate_relay_begin(run, -1) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_toolgate_relay_renamed(run, rest);
}


/* A vendor's refusal of the caller's content: status and error object as they are,
 * in the vendor's own bytes when they are short and clean. */
ngx_int_t
ngx_http_toolgate_relay_refusal(ngx_http_toolgate_run_t *run)
{
    json_t           *root, *error;
    tg_buf_t          text;
    ngx_int_t         rc;
    ngx_str_t         type = ngx_string("application/json");
    tg_json_error_t   ignored;

    if (run->writer.started || run->parse_failed) {
        return NGX_DECLINED;
    }

    root = tg_json_load(tg_buf_get(&run->whole), &ignored);
    error = json_object_get(root, "error");

    if (!json_is_object(error)) {
        json_decref(root);
        return NGX_DECLINED;
    }

    tg_buf_init(&text, NGX_HTTP_TOOLGATE_ERROR_BODY_MAX);
    ngx_http_toolgate_relay_error(run, error, &text);
    json_decref(root);

    rc = NGX_DECLINED;

    if (text.error == TG_OK
        && ngx_http_toolgate_writer_start(&run->writer, run->turn.status, &type,
                                          (off_t) text.len, 0) == NGX_OK
        && ngx_http_toolgate_writer_add(&run->writer, text.data, text.len)
           == NGX_OK)
    {
        ngx_http_toolgate_writer_end(&run->writer);
        rc = NGX_OK;
    }

    tg_buf_free(&text);

    return rc;
}


static void
ngx_http_toolgate_relay_error(ngx_http_toolgate_run_t *run, json_t *error,
    tg_buf_t *out)
{
    json_t      *value;
    tg_buf_t     text, message;
    tg_str_t     given;
    ngx_uint_t   i;

    static const char *const  keys[] = { "type", "param", "code", NULL };

    given = tg_json_get_string(error, "message");

    tg_buf_init(&message, 8 * NGX_HTTP_TOOLGATE_VENDOR_CHARS);
    tg_clean_value(given, NGX_HTTP_TOOLGATE_VENDOR_CHARS, &message);

    if (run->whole.len <= NGX_HTTP_TOOLGATE_RELAY_ERROR_MAX
        && tg_str_eq(given, tg_buf_get(&message)))
    {
        tg_buf_str(out, tg_buf_get(&run->whole));
        tg_buf_free(&message);
        return;
    }

    tg_buf_init(&text, 8 * NGX_HTTP_TOOLGATE_VENDOR_CHARS);
    tg_buf_cstr(out, "{\"error\":{\"message\":");
    tg_buf_json_string(out, tg_buf_get(&message));

    for (i = 0; keys[i]; i++) {
        value = json_object_get(error, keys[i]);
        tg_buf_printf(out, ",\"%s\":", keys[i]);

        if (json_is_string(value)) {
            tg_buf_reset(&text);
            tg_clean_value(tg_json_get_string(error, keys[i]),
                           NGX_HTTP_TOOLGATE_VENDOR_CODE_CHARS, &text);
            tg_buf_json_string(out, tg_buf_get(&text));

        } else if (json_is_number(value)) {
            tg_json_dump(value, out);

        } else {
            tg_buf_cstr(out, "null");
        }
    }

    tg_buf_cstr(out, "}}");
    tg_buf_free(&message);
    tg_buf_free(&text);
}
