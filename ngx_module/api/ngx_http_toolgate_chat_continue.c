/*
 * A chat request that brings the results of client tools: the run that has handed them
 * out goes on, with all that it has done in between, and this request follows it. Which
 * run that is follows from the ids of the calls.
 */

#include "ngx_http_toolgate_chat.h"
#include "ngx_http_toolgate_submit.h"


#define NGX_HTTP_TOOLGATE_CHAT_CALLS_MAX  (4 * 1024 * 1024)   /* bytes of tool_calls */

typedef struct {
    ngx_http_toolgate_check_t       *check;
    ngx_http_toolgate_submission_t   submission;
    json_t                          *body;
    size_t                           first;         /* message with a result */
    unsigned                         perhaps:1;     /* of a client tool */
} ngx_http_toolgate_chat_outputs_t;


static ngx_uint_t ngx_http_toolgate_chat_answers(ngx_http_toolgate_check_t *c,
    size_t *first);
static ngx_uint_t ngx_http_toolgate_chat_is(ngx_http_toolgate_check_t *c,
    const tg_scan_message_t *message, const char *role);
static ngx_uint_t ngx_http_toolgate_chat_has_client(ngx_http_toolgate_check_t *c,
    const tg_scan_message_t *message);
static ngx_int_t ngx_http_toolgate_chat_outputs(
    ngx_http_toolgate_chat_outputs_t *outputs);
static json_t *ngx_http_toolgate_chat_output(ngx_http_toolgate_check_t *c,
    const tg_scan_message_t *message);
static json_t *ngx_http_toolgate_chat_output_text(json_t *content);
static ngx_int_t ngx_http_toolgate_chat_output_fault(
    ngx_http_toolgate_chat_outputs_t *outputs, const char *code);
static void ngx_http_toolgate_chat_found(void *data, ngx_str_t *run, ngx_uint_t up);
static void ngx_http_toolgate_chat_submitted(
    ngx_http_toolgate_submission_t *submission, const char *code);
static void ngx_http_toolgate_chat_outputs_free(void *data);


ngx_int_t
ngx_http_toolgate_chat_continue(ngx_http_toolgate_check_t *c)
{
    size_t                             first;
    tg_str_t                           id;
    ngx_str_t                          call;
    ngx_int_t                          rc;
    ngx_pool_cleanup_t                *cln;
    ngx_http_toolgate_run_key_t       *key;
    ngx_http_toolgate_chat_outputs_t  *outputs;

    if (!c->run->prompt.store || c->run->conf->redis == NULL
        || c->run->conf->run_host.len == 0
        || !ngx_http_toolgate_chat_answers(c, &first))
    {
        return NGX_DECLINED;
    }

    cln = ngx_pool_cleanup_add(c->request->pool,
                               sizeof(ngx_http_toolgate_chat_outputs_t));
    if (cln == NULL) {
        return NGX_ERROR;
    }

    outputs = cln->data;
    ngx_memzero(outputs, sizeof(ngx_http_toolgate_chat_outputs_t));
    cln->handler = ngx_http_toolgate_chat_outputs_free;

    outputs->check = c;
    outputs->first = first;
    outputs->perhaps = (first == 0);

    rc = ngx_http_toolgate_chat_outputs(outputs);
    if (rc != NGX_OK) {
        return NGX_ERROR;
    }

    id = tg_json_get_string(json_array_get(json_object_get(outputs->body,
                                                           "tool_outputs"), 0),
                            "call_id");

    if (!tg_id_valid("call_", id)) {
        if (outputs->perhaps) {
            return NGX_DECLINED;
        }

        return ngx_http_toolgate_chat_output_fault(outputs, "unknown_tool_call");
    }

    key = &outputs->submission.key;
    key->project = c->run->project->name;
    key->account = c->run->prompt.account;
    outputs->submission.request = c->request;
    outputs->submission.body = outputs->body;
    outputs->submission.done = ngx_http_toolgate_chat_submitted;
    outputs->submission.data = outputs;

    call.data = (u_char *) id.data;
    call.len = id.len;

    return ngx_http_toolgate_call_run_find(c->request->pool, c->run->conf->redis,
                                           key, &call, ngx_http_toolgate_chat_found,
                                           outputs);
}


static void
ngx_http_toolgate_chat_outputs_free(void *data)
{
    ngx_http_toolgate_chat_outputs_t *outputs = data;

    json_decref(outputs->body);
}


/* Whether the request ends in results of calls, one of them of a client tool; in a
 * session the calls themselves are not said again. */
static ngx_uint_t
ngx_http_toolgate_chat_answers(ngx_http_toolgate_check_t *c, size_t *first)
{
    size_t  i, n;

    n = tg_scan_message_count(c->body->scan);

    for (i = n; i > 0; i--) {
        if (!ngx_http_toolgate_chat_is(c, tg_scan_message(c->body->scan, i - 1),
                                       "tool"))
        {
            break;
        }
    }

    *first = i;

    if (i == n || n - i > TG_OUTPUTS_MAX) {
        return 0;
    }

    return i == 0 ? c->run->prompt.session.len
                  : ngx_http_toolgate_chat_has_client(c,
                                            tg_scan_message(c->body->scan, i - 1));
}


static ngx_uint_t
ngx_http_toolgate_chat_is(ngx_http_toolgate_check_t *c,
    const tg_scan_message_t *message, const char *role)
{
    char       text[16];
    ptrdiff_t  n;

    n = tg_scan_string((char *) c->body->data, message->role, text, sizeof(text));

    return n == (ptrdiff_t) ngx_strlen(role)
           && ngx_memcmp(text, role, (size_t) n) == 0;
}


static ngx_uint_t
ngx_http_toolgate_chat_has_client(ngx_http_toolgate_check_t *c,
    const tg_scan_message_t *message)
{
    json_t                    *calls, *call;
    size_t                     i, len;
    tg_str_t                   name;
    ngx_str_t                  text;
    ngx_uint_t                 found;
    tg_json_error_t            ignored;
    ngx_http_toolgate_tool_t  *tool;

    len = message->tool_calls.end - message->tool_calls.start;

    if (message->tool_calls.type != TG_SCAN_ARRAY
        || len > NGX_HTTP_TOOLGATE_CHAT_CALLS_MAX)
    {
        return 0;
    }

    calls = tg_json_load((tg_str_t) { len, (char *) c->body->data
                                           + message->tool_calls.start }, &ignored);
    found = 0;

    json_array_foreach(calls, i, call) {
        name = tg_json_get_string(json_object_get(call, "function"), "name");
        text.data = (u_char *) name.data;
        text.len = name.len;

        tool = text.len ? ngx_http_toolgate_run_tool(c->run, &text) : NULL;
        found |= (tool && tool->kind == NGX_HTTP_TOOLGATE_TOOL_CLIENT);
    }

    json_decref(calls);

    return found;
}


/* The results as they would be submitted to the run. */
static ngx_int_t
ngx_http_toolgate_chat_outputs(ngx_http_toolgate_chat_outputs_t *outputs)
{
    size_t                      i, n;
    json_t                     *list, *output;
    ngx_http_toolgate_check_t  *c = outputs->check;

    list = json_array();
    outputs->body = json_pack("{s:o}", "tool_outputs", list);

    if (outputs->body == NULL) {
        return NGX_ERROR;
    }

    n = tg_scan_message_count(c->body->scan);

    for (i = outputs->first; i < n; i++) {
        output = ngx_http_toolgate_chat_output(c, tg_scan_message(c->body->scan, i));

        if (output == NULL || json_array_append_new(list, output) != 0) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static json_t *
ngx_http_toolgate_chat_output(ngx_http_toolgate_check_t *c,
    const tg_scan_message_t *message)
{
    char              id[TG_ID_MAX_LEN];
    json_t           *content, *text;
    ptrdiff_t         n;
    tg_json_error_t   ignored;

    n = tg_scan_string((char *) c->body->data, message->tool_call_id, id,
                       sizeof(id));

    content = message->content.type == TG_SCAN_NONE
              ? NULL
              : tg_json_load((tg_str_t) { message->content.end
                                          - message->content.start,
                                          (char *) c->body->data
                                          + message->content.start }, &ignored);
    text = ngx_http_toolgate_chat_output_text(content);
    json_decref(content);

    return json_pack("{s:s%,s:o}", "call_id", id, (size_t) (n < 0 ? 0 : n),
                     "output", text);
}


/* Parts become one text; what is no text at all is none. */
static json_t *
ngx_http_toolgate_chat_output_text(json_t *content)
{
    json_t    *part, *made;
    size_t     i;
    tg_buf_t   text;

    if (json_is_string(content)) {
        return json_incref(content);
    }

    tg_buf_init(&text, 2 * TG_OUTPUTS_VALUE_MAX);

    json_array_foreach(content, i, part) {
        tg_buf_str(&text, tg_json_get_string(part, "text"));
    }

    made = json_stringn(text.len ? text.data : "", text.len);
    tg_buf_free(&text);

    return made;
}


/* By the names that the caller has used. */
static ngx_int_t
ngx_http_toolgate_chat_output_fault(ngx_http_toolgate_chat_outputs_t *outputs,
    const char *code)
{
    unsigned                    i;
    ngx_http_toolgate_check_t  *c = outputs->check;

    i = 0;
    (void) sscanf(outputs->submission.fault.param, "tool_outputs[%u]", &i);

    if (ngx_strcmp(code, "output_too_large") == 0) {
        snprintf(c->param, sizeof(c->param), "messages[%zu].content",
                 outputs->first + i);

    } else if (ngx_strcmp(code, "missing_tool_outputs") == 0) {
        snprintf(c->param, sizeof(c->param), "messages");

    } else {
        snprintf(c->param, sizeof(c->param), "messages[%zu].tool_call_id",
                 outputs->first + i);
    }

    (void) ngx_http_toolgate_check_fault(c, code, c->param,
                                         outputs->submission.fault.message[0]
                                         ? outputs->submission.fault.message : NULL);
    return NGX_ERROR;
}


static void
ngx_http_toolgate_chat_found(void *data, ngx_str_t *run, ngx_uint_t up)
{
    ngx_http_toolgate_chat_outputs_t *outputs = data;

    const char        *code;
    ngx_connection_t  *c;

    c = outputs->check->request->connection;
    code = NULL;

    if (!up) {
        code = "store_unavailable";

    } else if (run->len == 0 && outputs->perhaps) {

        /* a call of the caller's own tools: its run has ended */

        ngx_http_toolgate_chat_begin(outputs->check);

    } else if (!tg_id_valid("run_", (tg_str_t) { run->len, (char *) run->data })) {
        code = "unknown_tool_call";

    } else {
        ngx_memcpy(outputs->check->run->id, run->data, run->len);
        outputs->submission.key.run.data = (u_char *) outputs->check->run->id;
        outputs->submission.key.run.len = run->len;

        if (ngx_http_toolgate_outputs_submit(&outputs->submission) != NGX_OK) {
            code = "internal_error";
        }
    }

    if (code) {
        (void) ngx_http_toolgate_chat_output_fault(outputs, code);
        ngx_http_toolgate_check_refuse(outputs->check);
    }

    ngx_http_run_posted_requests(c);
}


static void
ngx_http_toolgate_chat_submitted(ngx_http_toolgate_submission_t *submission,
    const char *code)
{
    ngx_http_toolgate_chat_outputs_t *outputs = submission->data;

    ngx_uint_t                  i;
    ngx_http_toolgate_check_t  *c;

    static const char *const  unknown[] = {
        "unknown_call_id", "run_not_waiting", "tool_outputs_expired", "not_found",
        NULL
    };

    c = outputs->check;

    if (code == NULL) {
        c->run->cancel_followed = 1;
        ngx_http_toolgate_run_follow(c->run, submission->after);
        return;
    }

    for (i = 0; unknown[i]; i++) {
        if (ngx_strcmp(code, unknown[i]) == 0) {
            code = "unknown_tool_call";
            submission->fault.message[0] = '\0';
            break;
        }
    }

    (void) ngx_http_toolgate_chat_output_fault(outputs, code);
    ngx_http_toolgate_check_refuse(c);
}
