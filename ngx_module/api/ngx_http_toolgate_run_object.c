/*
 * How a run looks in the API: the object of its document in the store. It reads
 * fields and asks nothing.
 */

#include "ngx_http_toolgate_api.h"


static void ngx_http_toolgate_run_object_text(tg_buf_t *out, const char *name,
    ngx_str_t value);
static void ngx_http_toolgate_run_object_time(tg_buf_t *out, const char *name,
    ngx_str_t value);
static void ngx_http_toolgate_run_object_json(tg_buf_t *out, const char *name,
    ngx_str_t value, const char *none);
static void ngx_http_toolgate_run_object_output(tg_buf_t *out, json_t *result);
static void ngx_http_toolgate_run_object_error(tg_buf_t *out, ngx_str_t code);


void
ngx_http_toolgate_run_object(ngx_http_toolgate_run_answer_t *document,
    ngx_str_t *account, tg_buf_t *out)
{
    json_t           *result;
    ngx_str_t         run, invocation, text;
    tg_json_error_t   ignored;

    run = ngx_http_toolgate_run_answer_field(document, "run");
    invocation = ngx_http_toolgate_run_answer_field(document, "invocation");
    text = ngx_http_toolgate_run_answer_field(document, "result");

    result = text.len ? tg_json_load((tg_str_t) { text.len, (char *) text.data },
                                     &ignored)
                      : NULL;

    tg_buf_cstr(out, "{\"id\":");
    tg_buf_json_string(out, (tg_str_t) { run.len, (char *) run.data });
    tg_buf_cstr(out, ",\"object\":\"run\"");
    ngx_http_toolgate_run_object_text(out, "invocation_id",
                                      invocation.len ? invocation : run);
    ngx_http_toolgate_run_object_text(out, "agent",
        ngx_http_toolgate_run_answer_field(document, "agent"));
    ngx_http_toolgate_run_object_time(out, "agent_version",
        ngx_http_toolgate_run_answer_field(document, "agent_version"));
    ngx_http_toolgate_run_object_text(out, "session_id",
        ngx_http_toolgate_run_answer_field(document, "session"));
    ngx_http_toolgate_run_object_text(out, "account_id", *account);
    ngx_http_toolgate_run_object_text(out, "status",
        ngx_http_toolgate_run_answer_field(document, "status"));
    ngx_http_toolgate_run_object_time(out, "created_at",
        ngx_http_toolgate_run_answer_field(document, "created"));
    ngx_http_toolgate_run_object_time(out, "completed_at",
        ngx_http_toolgate_run_answer_field(document, "ended"));

    /* a run that has ended waits for nothing, whatever it waited for */

    text = ngx_http_toolgate_run_answer_field(document, "status");

    if (text.len == sizeof("requires_action") - 1
        && ngx_memcmp(text.data, "requires_action", text.len) == 0)
    {
        text = ngx_http_toolgate_run_answer_field(document, "required_action");

    } else {
        ngx_str_null(&text);
    }

    ngx_http_toolgate_run_object_json(out, "required_action", text, "null");
    ngx_http_toolgate_run_object_output(out, result);
    ngx_http_toolgate_run_object_error(out,
        ngx_http_toolgate_run_answer_field(document, "error"));
    ngx_http_toolgate_run_object_json(out, "metadata",
        ngx_http_toolgate_run_answer_field(document, "metadata"), "{}");
    tg_buf_char(out, '}');

    json_decref(result);
}


static void
ngx_http_toolgate_run_object_text(tg_buf_t *out, const char *name, ngx_str_t value)
{
    tg_buf_printf(out, ",\"%s\":", name);

    if (value.len) {
        tg_buf_json_string(out, (tg_str_t) { value.len, (char *) value.data });

    } else {
        tg_buf_cstr(out, "null");
    }
}


/* A whole number, as it is in the store. */
static void
ngx_http_toolgate_run_object_time(tg_buf_t *out, const char *name, ngx_str_t value)
{
    if (value.len && ngx_atoi(value.data, value.len) != NGX_ERROR) {
        ngx_http_toolgate_run_object_json(out, name, value, "null");

    } else {
        ngx_http_toolgate_run_object_json(out, name, (ngx_str_t) ngx_null_string,
                                          "null");
    }
}


/* JSON of our own making. */
static void
ngx_http_toolgate_run_object_json(tg_buf_t *out, const char *name, ngx_str_t value,
    const char *none)
{
    tg_buf_printf(out, ",\"%s\":", name);

    if (value.len) {
        tg_buf_str(out, (tg_str_t) { value.len, (char *) value.data });

    } else {
        tg_buf_cstr(out, none);
    }
}


static void
ngx_http_toolgate_run_object_output(tg_buf_t *out, json_t *result)
{
    json_t    *usage;
    tg_str_t   text;

    text = tg_json_get_string(result, "text");
    usage = json_object_get(result, "usage");

    tg_buf_cstr(out, ",\"output\":[");

    if (text.len) {
        tg_buf_cstr(out, "{\"type\":\"text\",\"text\":");
        tg_buf_json_string(out, text);
        tg_buf_char(out, '}');
    }

    tg_buf_cstr(out, "],\"output_text\":");
    tg_buf_json_string(out, text);
    tg_buf_cstr(out, ",\"usage\":");

    if (json_is_object(usage)) {
        tg_buf_printf(out, "{\"input_tokens\":%lld,\"output_tokens\":%lld,"
                           "\"total_tokens\":%lld}",
                      (long long) json_integer_value(json_object_get(usage,
                                                          "input_tokens")),
                      (long long) json_integer_value(json_object_get(usage,
                                                          "output_tokens")),
                      (long long) json_integer_value(json_object_get(usage,
                                                          "total_tokens")));

    } else {
        tg_buf_cstr(out, "null");
    }
}


static void
ngx_http_toolgate_run_object_error(tg_buf_t *out, ngx_str_t code)
{
    char               name[64];
    const tg_error_t  *error;

    tg_buf_cstr(out, ",\"error\":");

    if (code.len == 0 || code.len >= sizeof(name)) {
        tg_buf_cstr(out, "null");
        return;
    }

    ngx_memcpy(name, code.data, code.len);
    name[code.len] = '\0';
    error = tg_error_find(name);

    tg_buf_cstr(out, "{\"code\":");
    tg_buf_json_string(out, tg_str_of(name));
    tg_buf_cstr(out, ",\"message\":");
    tg_buf_json_string(out, tg_str_of(error ? error->message : ""));
    tg_buf_char(out, '}');
}
