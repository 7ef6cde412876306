/*
 * Model turns of an agent's run: starts them at the model's places in turn, feeds
 * what comes to the parser, shows text as it comes, and says why a turn failed.
 */

#include "ngx_http_toolgate_run.h"

#include "tg_clean.h"



static void ngx_http_toolgate_model_head(ngx_http_toolgate_turn_t *turn);
static ngx_int_t ngx_http_toolgate_model_take(ngx_http_toolgate_turn_t *turn,
    u_char *data, size_t len);
static void ngx_http_toolgate_model_ended(ngx_http_toolgate_turn_t *turn);
static tg_rc_e ngx_http_toolgate_model_event(void *ctx,
    const tg_sse_event_t *event);
static ngx_int_t ngx_http_toolgate_model_show(ngx_http_toolgate_run_t *run,
    const tg_delta_news_t *news);
static ngx_int_t ngx_http_toolgate_model_paragraph(
    ngx_http_toolgate_run_t *run);
static tg_rc_e ngx_http_toolgate_model_whole(ngx_http_toolgate_run_t *run);
static ngx_uint_t ngx_http_toolgate_model_answered(tg_delta_t *delta);
static void ngx_http_toolgate_model_vendor_message(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_failure_t *failure);


static const ngx_http_toolgate_turn_owner_t  ngx_http_toolgate_model_owner = {
    ngx_http_toolgate_model_head,
    ngx_http_toolgate_model_take,
    ngx_http_toolgate_model_ended
};


ngx_int_t
ngx_http_toolgate_model_call(ngx_http_toolgate_run_t *run)
{
    off_t                           length;
    ngx_chain_t                    *body;
    ngx_msec_int_t                  left;
    ngx_http_toolgate_upstream_t   *upstream;

    if (ngx_http_toolgate_prompt_chain(run, &body, &length) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_http_toolgate_steps_turn_begins(run);

    upstream = ngx_http_toolgate_model_upstream(run);

    run->turn.owner = run->relay ? &ngx_http_toolgate_relay_owner
                                 : &ngx_http_toolgate_model_owner;
    run->turn.data = run;

    if (upstream->url) {
        left = (ngx_msec_int_t) (run->deadline_at - ngx_current_msec);

        return ngx_http_toolgate_turn_outbound(run->request, &run->turn,
                                               upstream->url, run->project, body,
                                               length, ngx_max(left, 1));
    }

    return ngx_http_toolgate_turn_subrequest(run->request, &run->turn,
                                             &upstream->location, body, length,
                                             run->relay ? run->prompt.stream : 1);
}


ngx_http_toolgate_upstream_t *
ngx_http_toolgate_model_upstream(ngx_http_toolgate_run_t *run)
{
    ngx_http_toolgate_upstream_t  *upstreams;

    upstreams = run->model->upstreams.elts;

    return &upstreams[run->upstream];
}


ngx_str_t
ngx_http_toolgate_model_vendor_name(ngx_http_toolgate_run_t *run)
{
    ngx_http_toolgate_upstream_t  *upstream;

    upstream = ngx_http_toolgate_model_upstream(run);

    return upstream->vendor_name.len ? upstream->vendor_name : run->model->name;
}


static void
ngx_http_toolgate_model_head(ngx_http_toolgate_turn_t *turn)
{
    ngx_http_toolgate_run_t  *run = turn->data;

    run->streaming =
        turn->content_type.len >= 17
        && ngx_strncasecmp(turn->content_type.data,
                           (u_char *) "text/event-stream", 17) == 0;
}


static ngx_int_t
ngx_http_toolgate_model_take(ngx_http_toolgate_turn_t *turn, u_char *data,
    size_t len)
{
    tg_rc_e                   rc;
    ngx_http_toolgate_run_t  *run = turn->data;

    if (turn->status / 100 != 2) {

        /* enough of it to find the vendor's reason, the rest is passed over */

        if (run->whole.len < NGX_HTTP_TOOLGATE_ERROR_BODY_MAX) {
            (void) tg_buf_append(&run->whole, data,
                                 ngx_min(len, NGX_HTTP_TOOLGATE_ERROR_BODY_MAX
                                              - run->whole.len));
        }

        return NGX_OK;
    }

    if (!run->streaming) {
        if (run->whole.len + len > TG_DELTA_MAX_CONTENT
            || tg_buf_append(&run->whole, data, len) != TG_OK)
        {
            run->parse_failed = 1;
            return NGX_ERROR;
        }

        return NGX_OK;
    }

    if (ngx_http_toolgate_writer_full(&run->writer)) {
        return NGX_AGAIN;
    }

    rc = tg_sse_feed(&run->sse, (char *) data, len, ngx_http_toolgate_model_event,
                     run);

    if (run->writer.queued || run->out_of_memory) {
        ngx_http_toolgate_run_post(run);
    }

    if (rc != TG_OK) {
        run->parse_failed = 1;
        return NGX_ERROR;
    }

    return run->delta.end == TG_DELTA_DONE ? NGX_DONE : NGX_OK;
}


static void
ngx_http_toolgate_model_ended(ngx_http_toolgate_turn_t *turn)
{
    ngx_http_toolgate_run_t  *run = turn->data;

    run->turn_ended = 1;
    ngx_http_toolgate_run_post(run);
}


static tg_rc_e
ngx_http_toolgate_model_event(void *ctx, const tg_sse_event_t *event)
{
    tg_rc_e                   rc;
    tg_delta_news_t           news;
    ngx_http_toolgate_run_t  *run = ctx;

    rc = ngx_http_toolgate_model_upstream(run)->responses
         ? tg_delta_responses_event(&run->delta, event->data, &news)
         : tg_delta_event(&run->delta, event->data, &news);

    if (rc != TG_OK) {
        return rc;
    }

    if (ngx_http_toolgate_model_show(run, &news) != NGX_OK) {
        run->out_of_memory = 1;
        return TG_E_NOMEM;
    }

    return TG_OK;
}


static ngx_int_t
ngx_http_toolgate_model_show(ngx_http_toolgate_run_t *run,
    const tg_delta_news_t *news)
{
    if (news->reasoning.len || news->content.len || news->refusal.len) {

        /* what has begun is asked for nowhere else, and a model's answer is one turn */

        if (run->agent == NULL && !run->turn_shown) {
            ngx_http_toolgate_prompt_release(run);
        }

        run->turn_shown = 1;
    }

    if (news->reasoning.len
        && run->face->reasoning(run, news->reasoning) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (news->content.len) {

        if (!run->turn_text && run->any_text
            && ngx_http_toolgate_model_paragraph(run) != NGX_OK)
        {
            return NGX_ERROR;
        }

        run->turn_text = 1;
        run->any_text = 1;

        ngx_http_toolgate_durable_text(run, news->content);

        if (run->face->text(run, news->content) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    if (news->refusal.len) {
        run->any_text = 1;
        ngx_http_toolgate_durable_text(run, news->refusal);
        return run->face->refusal(run, news->refusal);
    }

    return NGX_OK;
}


/* Texts of two rounds are two paragraphs. */
static ngx_int_t
ngx_http_toolgate_model_paragraph(ngx_http_toolgate_run_t *run)
{
    ngx_http_toolgate_durable_text(run, tg_str("\n\n"));

    return run->face->paragraph ? run->face->paragraph(run)
                                : run->face->text(run, tg_str("\n\n"));
}


ngx_uint_t
ngx_http_toolgate_model_next(ngx_http_toolgate_run_t *run)
{
    /* what the caller has seen of this turn cannot be taken back */

    if (run->turn_shown) {
        return 0;
    }

    switch (run->turn.status) {

    case NGX_HTTP_UNAUTHORIZED:
    case NGX_HTTP_FORBIDDEN:
    case NGX_HTTP_REQUEST_TIME_OUT:
    case NGX_HTTP_TOO_MANY_REQUESTS:
        break;

    default:
        /* content that one vendor refused, another would refuse, too */

        if (run->turn.status / 100 == 4) {
            return 0;
        }
    }

    if (run->upstream + 1 >= run->model->upstreams.nelts) {
        return 0;
    }

    run->upstream++;

    return 1;
}


const char *
ngx_http_toolgate_model_failure(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_failure_t *failure)
{
    const char       *code;
    tg_delta_news_t   news;

    code = ngx_http_toolgate_model_status(run, failure);

    if (code == NULL && !run->streaming) {

        if (run->turn.state == NGX_HTTP_TOOLGATE_TURN_WHOLE
            && !run->parse_failed
            && ngx_http_toolgate_model_whole(run) == TG_OK
            && ngx_http_toolgate_model_answered(&run->delta))
        {
            ngx_memzero(&news, sizeof(news));
            news.content = tg_buf_get(&run->delta.content);
            news.refusal = tg_buf_get(&run->delta.refusal);
            news.reasoning = tg_buf_get(&run->delta.reasoning);

            if (ngx_http_toolgate_model_show(run, &news) != NGX_OK) {
                run->out_of_memory = 1;
            }

        } else {
            code = "model_unavailable";
        }

    } else if (code == NULL) {
        tg_delta_close(&run->delta);

        if (run->parse_failed || !tg_delta_complete(&run->delta)) {
            code = "model_stream_broken";
        }
    }

    if (code) {
        failure->error = tg_error_find(code);
        ngx_log_error(NGX_LOG_WARN, run->request->connection->log, 0,
                      "toolgate: model \"%V\": %s, status %ui",
                      &run->model->name, code, run->turn.status);
    }

    return code;
}


static tg_rc_e
ngx_http_toolgate_model_whole(ngx_http_toolgate_run_t *run)
{
    tg_str_t  body;

    body = tg_buf_get(&run->whole);

    return ngx_http_toolgate_model_upstream(run)->responses
           ? tg_delta_responses_whole(&run->delta, body)
           : tg_delta_whole(&run->delta, body);
}


/* Whether there is any answer in a whole JSON object: {"choices":[]} has none. */
static ngx_uint_t
ngx_http_toolgate_model_answered(tg_delta_t *delta)
{
    return delta->has_content || delta->has_refusal || delta->call_count
           || delta->finish_reason[0];
}


const char *
ngx_http_toolgate_model_status(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_failure_t *failure)
{
    ngx_http_toolgate_turn_t  *turn;

    turn = &run->turn;

    if (turn->status / 100 == 2) {
        return NULL;
    }

    if (turn->fault) {
        failure->message.data = (u_char *) turn->advice;
        failure->message.len = ngx_strlen(turn->advice);
        return turn->fault;
    }

    switch (turn->status) {

    case NGX_HTTP_UNAUTHORIZED:
    case NGX_HTTP_FORBIDDEN:
        return "model_auth_failed";

    case NGX_HTTP_TOO_MANY_REQUESTS:
        failure->retry_after = turn->retry_after;
        return "model_rate_limited";

    case NGX_HTTP_REQUEST_TIME_OUT:
    case NGX_HTTP_GATEWAY_TIME_OUT:
        return "model_timeout";
    }

    /* a page is from something in between, not from the vendor */

    if (turn->status / 100 == 4 && ngx_http_toolgate_turn_json(turn)) {
        ngx_http_toolgate_model_vendor_message(run, failure);
        return "model_rejected_request";
    }

    return "model_unavailable";
}


/* The caller's content was refused: the vendor's own words help to mend it. */
static void
ngx_http_toolgate_model_vendor_message(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_failure_t *failure)
{
    json_t           *root, *error;
    tg_buf_t          text;
    tg_str_t          message, code;
    tg_json_error_t   ignored;

    root = tg_json_load(tg_buf_get(&run->whole), &ignored);
    error = json_object_get(root, "error");

    message = tg_json_get_string(error, "message");
    code = tg_json_get_string(error, "code");

    tg_buf_init(&text, 8 * NGX_HTTP_TOOLGATE_VENDOR_CHARS);

    if (message.len) {
        tg_buf_cstr(&text, "The model refused the request: ");
        tg_clean_value(message, NGX_HTTP_TOOLGATE_VENDOR_CHARS
                                - NGX_HTTP_TOOLGATE_VENDOR_CODE_CHARS
                                - sizeof("The model refused the request: ()"),
                       &text);

        if (code.len) {
            tg_buf_cstr(&text, " (");
            tg_clean_value(code, NGX_HTTP_TOOLGATE_VENDOR_CODE_CHARS, &text);
            tg_buf_char(&text, ')');
        }

        failure->message = ngx_http_toolgate_copy(run->request->pool,
                                                  tg_buf_get(&text));
    }

    tg_buf_free(&text);
    json_decref(root);
}


ngx_int_t
ngx_http_toolgate_model_call_ids(ngx_http_toolgate_run_t *run)
{
    char              made[TG_ID_MAX_LEN];
    u_char            random[TG_ID_RANDOM_LEN];
    size_t            i;
    tg_delta_call_t  *call;

    for (i = 0; i < run->delta.call_count; i++) {
        call = &run->delta.calls[i];

        if (call->id.len) {
            continue;
        }

        if (ngx_http_toolgate_random(random, sizeof(random)) != NGX_OK) {
            return NGX_ERROR;
        }

        tg_id_make("call_", random, made);
        tg_buf_cstr(&call->id, made);
    }

    return NGX_OK;
}


void
ngx_http_toolgate_model_usage(ngx_http_toolgate_run_t *run)
{
    tg_delta_usage_t  *sum, *turn;

    sum = &run->usage;
    turn = &run->delta.usage;

    if (!turn->present) {
        return;
    }

    sum->present = true;
    sum->prompt_tokens += turn->prompt_tokens;
    sum->completion_tokens += turn->completion_tokens;
    sum->total_tokens += turn->total_tokens;
    sum->cached_tokens += turn->cached_tokens;
    sum->reasoning_tokens += turn->reasoning_tokens;
}
