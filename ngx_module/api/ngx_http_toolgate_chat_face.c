/*
 * How a run looks as a chat completion: chunks with one id while it goes on, or
 * one object that is made of the same pieces at the end. It decides nothing.
 */

#include "ngx_http_toolgate_chat.h"
#include "ngx_http_toolgate_face.h"


#define NGX_HTTP_TOOLGATE_CHAT_TEXT_MAX   TG_DELTA_MAX_CONTENT
#define NGX_HTTP_TOOLGATE_CHAT_CHUNK_MAX  (32 * 1024 * 1024)
#define NGX_HTTP_TOOLGATE_CHAT_WAITS_MAX  (16 * 1024)

typedef struct {
    tg_buf_t   head;          /* the part that every chunk begins with */
    tg_buf_t   chunk;         /* scratch */
    tg_buf_t   content;       /* kept only when the answer is not streamed */
    tg_buf_t   refusal;
    tg_buf_t   reasoning;
    unsigned   opened:1;      /* the chunk with the role is out */
} ngx_http_toolgate_chat_state_t;


static ngx_int_t ngx_http_toolgate_chat_text(ngx_http_toolgate_run_t *run,
    tg_str_t text);
static ngx_int_t ngx_http_toolgate_chat_refusal(ngx_http_toolgate_run_t *run,
    tg_str_t text);
static ngx_int_t ngx_http_toolgate_chat_reasoning(ngx_http_toolgate_run_t *run,
    tg_str_t text);
static ngx_int_t ngx_http_toolgate_chat_delta(ngx_http_toolgate_run_t *run,
    const char *field, tg_str_t text);
static ngx_int_t ngx_http_toolgate_chat_ping(ngx_http_toolgate_run_t *run);
static ngx_int_t ngx_http_toolgate_chat_finish(ngx_http_toolgate_run_t *run);
static ngx_int_t ngx_http_toolgate_chat_waits(ngx_http_toolgate_run_t *run);
static ngx_int_t ngx_http_toolgate_chat_finish_stream(
    ngx_http_toolgate_run_t *run);
static ngx_int_t ngx_http_toolgate_chat_finish_whole(
    ngx_http_toolgate_run_t *run);
static ngx_int_t ngx_http_toolgate_chat_fail(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_failure_t *failure);
static ngx_int_t ngx_http_toolgate_chat_open(ngx_http_toolgate_run_t *run);
static ngx_int_t ngx_http_toolgate_chat_send(ngx_http_toolgate_run_t *run);
static void ngx_http_toolgate_chat_calls(ngx_http_toolgate_run_t *run,
    tg_buf_t *out, ngx_uint_t indexed);
static void ngx_http_toolgate_chat_usage(ngx_http_toolgate_run_t *run,
    tg_buf_t *out);
static void ngx_http_toolgate_chat_steps(ngx_http_toolgate_run_t *run,
    tg_buf_t *out);
static void ngx_http_toolgate_chat_optional(tg_buf_t *out, const char *name,
    tg_buf_t *text);
static void ngx_http_toolgate_chat_cleanup(void *data);


const ngx_http_toolgate_face_t  ngx_http_toolgate_chat_face = {
    .text = ngx_http_toolgate_chat_text,
    .refusal = ngx_http_toolgate_chat_refusal,
    .reasoning = ngx_http_toolgate_chat_reasoning,
    .ping = ngx_http_toolgate_chat_ping,
    .finish = ngx_http_toolgate_chat_finish,
    .fail = ngx_http_toolgate_chat_fail,
    .waits = 1,
    .name = "chat"
};


ngx_int_t
ngx_http_toolgate_chat_face_init(ngx_http_toolgate_run_t *run)
{
    ngx_pool_cleanup_t              *cln;
    ngx_http_toolgate_chat_state_t  *chat;

    cln = ngx_pool_cleanup_add(run->request->pool,
                               sizeof(ngx_http_toolgate_chat_state_t));
    if (cln == NULL) {
        return NGX_ERROR;
    }

    chat = cln->data;
    ngx_memzero(chat, sizeof(ngx_http_toolgate_chat_state_t));
    cln->handler = ngx_http_toolgate_chat_cleanup;
    run->face_data = chat;

    tg_buf_init(&chat->head, 4096);
    tg_buf_init(&chat->chunk, NGX_HTTP_TOOLGATE_CHAT_CHUNK_MAX);
    tg_buf_init(&chat->content, NGX_HTTP_TOOLGATE_CHAT_TEXT_MAX);
    tg_buf_init(&chat->refusal, NGX_HTTP_TOOLGATE_CHAT_TEXT_MAX);
    tg_buf_init(&chat->reasoning, NGX_HTTP_TOOLGATE_CHAT_TEXT_MAX);

    return NGX_OK;
}


static void
ngx_http_toolgate_chat_cleanup(void *data)
{
    ngx_http_toolgate_chat_state_t  *chat = data;

    tg_buf_free(&chat->head);
    tg_buf_free(&chat->chunk);
    tg_buf_free(&chat->content);
    tg_buf_free(&chat->refusal);
    tg_buf_free(&chat->reasoning);
}


static ngx_int_t
ngx_http_toolgate_chat_text(ngx_http_toolgate_run_t *run, tg_str_t text)
{
    ngx_http_toolgate_chat_state_t  *chat = run->face_data;

    if (run->prompt.stream) {
        return ngx_http_toolgate_chat_delta(run, "content", text);
    }

    return tg_buf_str(&chat->content, text) == TG_OK ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_http_toolgate_chat_refusal(ngx_http_toolgate_run_t *run, tg_str_t text)
{
    ngx_http_toolgate_chat_state_t  *chat = run->face_data;

    if (run->prompt.stream) {
        return ngx_http_toolgate_chat_delta(run, "refusal", text);
    }

    return tg_buf_str(&chat->refusal, text) == TG_OK ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_http_toolgate_chat_reasoning(ngx_http_toolgate_run_t *run, tg_str_t text)
{
    ngx_http_toolgate_chat_state_t  *chat = run->face_data;

    if (run->prompt.stream) {
        return ngx_http_toolgate_chat_delta(run, "reasoning_content", text);
    }

    return tg_buf_str(&chat->reasoning, text) == TG_OK ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_http_toolgate_chat_delta(ngx_http_toolgate_run_t *run, const char *field,
    tg_str_t text)
{
    tg_buf_t                        *out;
    ngx_http_toolgate_chat_state_t  *chat = run->face_data;

    if (ngx_http_toolgate_chat_open(run) != NGX_OK) {
        return NGX_ERROR;
    }

    out = &chat->chunk;
    tg_buf_str(out, tg_buf_get(&chat->head));
    tg_buf_cstr(out, "\"choices\":[{\"index\":0,\"delta\":{\"");
    tg_buf_cstr(out, field);
    tg_buf_cstr(out, "\":");
    tg_buf_json_string(out, text);
    tg_buf_cstr(out, "},\"logprobs\":null,\"finish_reason\":null}]}\n\n");

    return ngx_http_toolgate_chat_send(run);
}


static ngx_int_t
ngx_http_toolgate_chat_send(ngx_http_toolgate_run_t *run)
{
    ngx_int_t                        rc;
    ngx_http_toolgate_chat_state_t  *chat = run->face_data;

    rc = NGX_ERROR;

    if (chat->chunk.error == TG_OK) {
        rc = ngx_http_toolgate_writer_add(&run->writer, chat->chunk.data,
                                          chat->chunk.len);
    }

    tg_buf_reset(&chat->chunk);

    return rc;
}


static ngx_int_t
ngx_http_toolgate_chat_open(ngx_http_toolgate_run_t *run)
{
    tg_buf_t                        *head;
    ngx_http_toolgate_chat_state_t  *chat = run->face_data;

    if (chat->opened) {
        return NGX_OK;
    }

    chat->opened = 1;

    if (ngx_http_toolgate_face_stream(run) != NGX_OK) {
        return NGX_ERROR;
    }

    head = &chat->head;

    /* the same random part as the run's, so that either leads to the other */

    tg_buf_printf(head, "data: {\"id\":\"chatcmpl-%s\","
                        "\"object\":\"chat.completion.chunk\","
                        "\"created\":%lld,\"model\":",
                  run->id + sizeof("run_") - 1, (long long) run->created);
    tg_buf_json_string(head, (tg_str_t) { run->prompt.model.len,
                                          (char *) run->prompt.model.data });
    tg_buf_char(head, ',');

    tg_buf_str(&chat->chunk, tg_buf_get(head));
    tg_buf_cstr(&chat->chunk,
                "\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\","
                "\"content\":\"\",\"refusal\":null},\"logprobs\":null,"
                "\"finish_reason\":null}]}\n\n");

    return head->error == TG_OK ? ngx_http_toolgate_chat_send(run) : NGX_ERROR;
}


static ngx_int_t
ngx_http_toolgate_chat_ping(ngx_http_toolgate_run_t *run)
{
    if (ngx_http_toolgate_face_stream(run) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_toolgate_writer_add(&run->writer, ": ping\n\n", 8);
}


static ngx_int_t
ngx_http_toolgate_chat_finish(ngx_http_toolgate_run_t *run)
{
    ngx_int_t  rc;

    if (ngx_http_toolgate_chat_waits(run) != NGX_OK) {
        return NGX_ERROR;
    }

    rc = run->prompt.stream ? ngx_http_toolgate_chat_finish_stream(run)
                            : ngx_http_toolgate_chat_finish_whole(run);

    ngx_http_toolgate_writer_end(&run->writer);

    return rc;
}


/* Says in words that the run waits for a person, for those who see nothing else. */
static ngx_int_t
ngx_http_toolgate_chat_waits(ngx_http_toolgate_run_t *run)
{
    json_t           *required, *approval;
    size_t            i;
    tg_buf_t          text;
    ngx_int_t         rc;
    tg_json_error_t   ignored;

    if (run->required.len == 0 || ngx_strcmp(run->finish_reason, "stop") != 0) {
        return NGX_OK;
    }

    required = tg_json_load((tg_str_t) { run->required.len,
                                         (char *) run->required.data }, &ignored);
    tg_buf_init(&text, NGX_HTTP_TOOLGATE_CHAT_WAITS_MAX);

    if (run->any_text) {
        tg_buf_cstr(&text, "\n\n");
    }

    tg_buf_cstr(&text, "This has to be approved before it goes on:");

    json_array_foreach(json_object_get(required, "approvals"), i, approval) {
        tg_buf_printf(&text, "\n- %s (approval %s)",
                      json_string_value(json_object_get(approval, "tool_name")),
                      json_string_value(json_object_get(approval, "id")));
    }

    rc = text.error == TG_OK ? run->face->text(run, tg_buf_get(&text)) : NGX_ERROR;

    tg_buf_free(&text);
    json_decref(required);

    return rc;
}


static ngx_int_t
ngx_http_toolgate_chat_finish_stream(ngx_http_toolgate_run_t *run)
{
    tg_buf_t                        *out;
    ngx_http_toolgate_chat_state_t  *chat = run->face_data;

    if (ngx_http_toolgate_chat_open(run) != NGX_OK) {
        return NGX_ERROR;
    }

    out = &chat->chunk;

    if (ngx_strcmp(run->finish_reason, "tool_calls") == 0) {
        tg_buf_str(out, tg_buf_get(&chat->head));
        tg_buf_cstr(out, "\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[");
        ngx_http_toolgate_chat_calls(run, out, 1);
        tg_buf_cstr(out, "]},\"logprobs\":null,\"finish_reason\":null}]}\n\n");
    }

    tg_buf_str(out, tg_buf_get(&chat->head));
    tg_buf_printf(out, "\"choices\":[{\"index\":0,\"delta\":{},\"logprobs\":null,"
                       "\"finish_reason\":\"%s\"}]", run->finish_reason);
    ngx_http_toolgate_chat_steps(run, out);
    tg_buf_cstr(out, "}\n\n");

    if (run->prompt.include_usage) {
        tg_buf_str(out, tg_buf_get(&chat->head));
        tg_buf_cstr(out, "\"choices\":[],");
        ngx_http_toolgate_chat_usage(run, out);
        tg_buf_cstr(out, "}\n\n");
    }

    tg_buf_cstr(out, "data: [DONE]\n\n");

    return ngx_http_toolgate_chat_send(run);
}


static ngx_int_t
ngx_http_toolgate_chat_finish_whole(ngx_http_toolgate_run_t *run)
{
    tg_buf_t                        *out;
    ngx_int_t                        rc;
    ngx_uint_t                       calls;
    ngx_http_toolgate_chat_state_t  *chat = run->face_data;

    out = &chat->chunk;
    calls = (ngx_strcmp(run->finish_reason, "tool_calls") == 0);

    tg_buf_printf(out, "{\"id\":\"chatcmpl-%s\",\"object\":\"chat.completion\","
                       "\"created\":%lld,\"model\":",
                  run->id + sizeof("run_") - 1, (long long) run->created);
    tg_buf_json_string(out, (tg_str_t) { run->prompt.model.len,
                                         (char *) run->prompt.model.data });
    tg_buf_cstr(out, ",\"choices\":[{\"index\":0,\"message\":"
                     "{\"role\":\"assistant\",");

    if (calls && chat->content.len == 0) {
        tg_buf_cstr(out, "\"content\":null");

    } else {
        tg_buf_cstr(out, "\"content\":");
        tg_buf_json_string(out, tg_buf_get(&chat->content));
    }

    ngx_http_toolgate_chat_optional(out, "refusal", &chat->refusal);

    if (chat->reasoning.len) {
        ngx_http_toolgate_chat_optional(out, "reasoning_content",
                                        &chat->reasoning);
    }

    if (calls) {
        tg_buf_cstr(out, ",\"tool_calls\":[");
        ngx_http_toolgate_chat_calls(run, out, 0);
        tg_buf_char(out, ']');
    }

    tg_buf_printf(out, "},\"logprobs\":null,\"finish_reason\":\"%s\"}],",
                  run->finish_reason);
    ngx_http_toolgate_chat_usage(run, out);
    ngx_http_toolgate_chat_steps(run, out);
    tg_buf_char(out, '}');

    rc = (out->error == TG_OK)
         ? ngx_http_toolgate_face_whole(run, tg_buf_get(out)) : NGX_ERROR;

    tg_buf_reset(out);

    return rc;
}


static void
ngx_http_toolgate_chat_optional(tg_buf_t *out, const char *name, tg_buf_t *text)
{
    tg_buf_printf(out, ",\"%s\":", name);

    if (text->len) {
        tg_buf_json_string(out, tg_buf_get(text));

    } else {
        tg_buf_cstr(out, "null");
    }
}


static void
ngx_http_toolgate_chat_call(tg_buf_t *out, ngx_int_t index, tg_str_t id, tg_str_t name,
    tg_str_t arguments)
{
    tg_buf_char(out, '{');

    if (index >= 0) {
        tg_buf_printf(out, "\"index\":%d,", (int) index);
    }

    tg_buf_cstr(out, "\"id\":");
    tg_buf_json_string(out, id);
    tg_buf_cstr(out, ",\"type\":\"function\",\"function\":{\"name\":");
    tg_buf_json_string(out, name);
    tg_buf_cstr(out, ",\"arguments\":");
    tg_buf_json_string(out, arguments);
    tg_buf_cstr(out, "}}");
}


/* The calls of a model that is passed through, under its own ids. */
static void
ngx_http_toolgate_chat_passed(ngx_http_toolgate_run_t *run, tg_buf_t *out,
    ngx_uint_t indexed)
{
    size_t            i;
    tg_str_t          arguments;
    tg_delta_call_t  *call;

    for (i = 0; i < run->delta.call_count; i++) {
        call = &run->delta.calls[i];
        arguments = tg_buf_get(&call->arguments);

        if (i) {
            tg_buf_char(out, ',');
        }

        ngx_http_toolgate_chat_call(out, indexed ? (ngx_int_t) i : -1,
                                    tg_buf_get(&call->id), tg_buf_get(&call->name),
                                    arguments.len ? arguments : tg_str("{}"));
    }
}


/* The calls that are the caller's to run, those of an agent under ids of ours. */
static void
ngx_http_toolgate_chat_calls(ngx_http_toolgate_run_t *run, tg_buf_t *out,
    ngx_uint_t indexed)
{
    ngx_uint_t                 i, n;
    ngx_http_toolgate_call_t  *call;

    if (run->agent == NULL) {
        ngx_http_toolgate_chat_passed(run, out, indexed);
        return;
    }

    n = 0;

    for (i = 0; i < run->call_count; i++) {
        call = &run->calls[i];

        if (!ngx_http_toolgate_call_handed_out(call)) {
            continue;
        }

        if (n) {
            tg_buf_char(out, ',');
        }

        ngx_http_toolgate_chat_call(out, indexed ? (ngx_int_t) n : -1,
                                    tg_str_of(call->id),
                                    (tg_str_t) { call->name.len,
                                                 (char *) call->name.data },
                                    (tg_str_t) { call->arguments.len,
                                                 (char *) call->arguments.data });
        n++;
    }
}


static void
ngx_http_toolgate_chat_usage(ngx_http_toolgate_run_t *run, tg_buf_t *out)
{
    tg_delta_usage_t  *usage;

    usage = &run->usage;

    if (!usage->present) {
        tg_buf_cstr(out, "\"usage\":null");
        return;
    }

    tg_buf_printf(out, "\"usage\":{\"prompt_tokens\":%lld,"
                       "\"completion_tokens\":%lld,\"total_tokens\":%lld,"
                       "\"prompt_tokens_details\":{\"cached_tokens\":%lld},"
                       "\"completion_tokens_details\":"
                       "{\"reasoning_tokens\":%lld}}",
                  (long long) usage->prompt_tokens,
                  (long long) usage->completion_tokens,
                  (long long) usage->total_tokens,
                  (long long) usage->cached_tokens,
                  (long long) usage->reasoning_tokens);
}


/* What an agent has done, with a comma before it. */
static void
ngx_http_toolgate_chat_steps(ngx_http_toolgate_run_t *run, tg_buf_t *out)
{
    ngx_uint_t                 i;
    ngx_http_toolgate_step_t  *step;

    if (run->agent == NULL) {
        return;
    }

    tg_buf_printf(out, ",\"toolgate\":{\"run\":\"%s\",\"status\":\"%s\","
                       "\"steps\":[", run->id,
                  run->required.len ? "requires_action" : "completed");

    step = run->steps.elts;

    for (i = 0; i < run->steps.nelts; i++) {
        tg_buf_printf(out, "%s{\"id\":\"%s\",\"type\":\"tool_call\",\"tool\":",
                      i ? "," : "", step[i].id);
        tg_buf_json_string(out, (tg_str_t) { step[i].tool.len,
                                             (char *) step[i].tool.data });
        tg_buf_cstr(out, step[i].code ? ",\"ok\":false,\"code\":"
                                      : ",\"ok\":true,\"code\":null}");

        if (step[i].code) {
            tg_buf_json_string(out, tg_str_of(step[i].code));
            tg_buf_char(out, '}');
        }
    }

    tg_buf_cstr(out, "],\"required_action\":");

    if (run->required.len) {
        tg_buf_str(out, (tg_str_t) { run->required.len,
                                     (char *) run->required.data });

    } else {
        tg_buf_cstr(out, "null");
    }

    tg_buf_char(out, '}');
}


static ngx_int_t
ngx_http_toolgate_chat_fail(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_failure_t *failure)
{
    tg_buf_t                        *out;
    tg_str_t                         message;
    ngx_http_toolgate_chat_state_t  *chat;

    if (!run->writer.started) {
        return ngx_http_toolgate_face_refuse(run, failure);
    }

    /* an answer that is no stream can only be broken off */

    if (!run->writer.events) {
        return NGX_OK;
    }

    /* a relay has one only when it fails */

    if (run->face_data == NULL
        && ngx_http_toolgate_chat_face_init(run) != NGX_OK)
    {
        return NGX_ERROR;
    }

    chat = run->face_data;
    out = &chat->chunk;
    tg_buf_reset(out);
    message.data = (char *) failure->message.data;
    message.len = failure->message.len;

    tg_buf_cstr(out, "data: ");
    tg_error_body(failure->error, message, tg_null_str, out);
    tg_buf_cstr(out, "\n\n");
    ngx_http_toolgate_writer_end(&run->writer);

    return ngx_http_toolgate_chat_send(run);
}
