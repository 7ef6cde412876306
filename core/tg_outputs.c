/*
 * Outputs of a caller's calls: all of them, each once, none too large.
 */

#include "tg_outputs.h"

#include "tg_json.h"
#include "tg_policy.h"


static bool tg_outputs_fault(tg_outputs_fault_t *fault, const char *code,
    const char *message, const char *fmt, ...) __attribute__((format(printf, 4, 5)));


/* The place in fmt; message NULL: the code's own. */
static bool
tg_outputs_fault(tg_outputs_fault_t *fault, const char *code, const char *message,
    const char *fmt, ...)
{
    va_list  args;

    fault->code = code;
    snprintf(fault->message, sizeof(fault->message), "%s", message ? message : "");

    va_start(args, fmt);
    vsnprintf(fault->param, sizeof(fault->param), fmt, args);
    va_end(args);

    return false;
}



static bool
tg_outputs_is_open(const json_t *open, tg_str_t id)
{
    size_t         i;
    const json_t  *call;

    json_array_foreach((json_t *) open, i, call) {
        if (tg_str_eq(tg_json_get_string(call, "call_id"), id)) {
            return true;
        }
    }

    return false;
}


static bool
tg_outputs_too_large(const json_t *value)
{
    bool      large;
    tg_buf_t  text;

    tg_buf_init(&text, TG_OUTPUTS_VALUE_MAX);
    large = tg_json_dump(value, &text) != TG_OK;
    tg_buf_free(&text);

    return large;
}


static bool
tg_outputs_item(const json_t *item, size_t i, const json_t *open,
    tg_output_t *output, tg_outputs_fault_t *fault)
{
    char     message[TG_OUTPUTS_MESSAGE_MAX];
    json_t  *id, *is_error;

    if (!json_is_object(item)) {
        return tg_outputs_fault(fault, "invalid_type",
                                "An output is an object with \"call_id\" and "
                                "\"output\".", "tool_outputs[%zu]", i);
    }

    id = json_object_get(item, "call_id");
    is_error = json_object_get(item, "is_error");
    output->output = json_object_get(item, "output");

    if (id == NULL) {
        return tg_outputs_fault(fault, "missing_parameter", NULL,
                                "tool_outputs[%zu].call_id", i);
    }

    if (!json_is_string(id)) {
        return tg_outputs_fault(fault, "invalid_type", "\"call_id\" is a string.",
                                "tool_outputs[%zu].call_id", i);
    }

    if (output->output == NULL) {
        return tg_outputs_fault(fault, "missing_parameter", NULL,
                                "tool_outputs[%zu].output", i);
    }

    if (is_error && !json_is_boolean(is_error) && !json_is_null(is_error)) {
        return tg_outputs_fault(fault, "invalid_type",
                                "\"is_error\" is true or false.",
                                "tool_outputs[%zu].is_error", i);
    }

    output->call_id = tg_json_get_string(item, "call_id");
    output->is_error = json_is_true(is_error);

    if (!tg_outputs_is_open(open, output->call_id)) {
        snprintf(message, sizeof(message), "The run has no open call \"%.60s\". Use "
                 "the call_id values of its required_action.", output->call_id.data);
        return tg_outputs_fault(fault, "unknown_call_id", message,
                                "tool_outputs[%zu].call_id", i);
    }

    if (tg_outputs_too_large(output->output)) {
        return tg_outputs_fault(fault, "output_too_large", NULL,
                                "tool_outputs[%zu].output", i);
    }

    return true;
}


/* Names those that have no output. */
static bool
tg_outputs_missing(const json_t *open, const tg_output_t *outputs, size_t n,
    tg_outputs_fault_t *fault)
{
    size_t         i, j;
    tg_buf_t       names;
    tg_str_t       id;
    const json_t  *call;

    tg_buf_init(&names, TG_OUTPUTS_MESSAGE_MAX / 2);

    json_array_foreach((json_t *) open, i, call) {
        id = tg_json_get_string(call, "call_id");

        for (j = 0; j < n && !tg_str_eq(outputs[j].call_id, id); j++) { /* void */ }

        if (j == n) {
            tg_buf_printf(&names, "%s%.*s", names.len ? ", " : "", (int) id.len,
                          id.data);
        }
    }

    if (names.len) {
        (void) tg_outputs_fault(fault, "missing_tool_outputs", NULL, "tool_outputs");
        snprintf(fault->message, sizeof(fault->message), "These calls have no output: "
                 "%.*s. Send the outputs of all open calls in one request.",
                 (int) names.len, names.data);
        tg_buf_free(&names);
        return false;
    }

    tg_buf_free(&names);

    return true;
}


bool
tg_outputs_read(const json_t *body, const json_t *open,
    tg_output_t outputs[TG_OUTPUTS_MAX], size_t *n, tg_outputs_fault_t *fault)
{
    char           message[TG_OUTPUTS_MESSAGE_MAX];
    size_t         i, j;
    json_t        *list;
    const json_t  *item;

    *n = 0;
    list = json_object_get(body, "tool_outputs");

    if (!json_is_object(body)) {
        return tg_outputs_fault(fault, "invalid_type", "The body is a JSON object.",
                                "%s", "");
    }

    if (list == NULL) {
        return tg_outputs_fault(fault, "missing_parameter", NULL, "tool_outputs");
    }

    if (!json_is_array(list)) {
        return tg_outputs_fault(fault, "invalid_type", "\"tool_outputs\" is a list.",
                                "tool_outputs");
    }

    json_array_foreach(list, i, item) {

        /* one over the bound is unknown or doubled */

        if (i == TG_OUTPUTS_MAX) {
            return tg_outputs_fault(fault, "duplicate_call_id", NULL,
                                    "tool_outputs[%zu].call_id", i);
        }

        if (!tg_outputs_item(item, i, open, &outputs[i], fault)) {
            return false;
        }

        for (j = 0; j < i; j++) {
            if (tg_str_eq(outputs[j].call_id, outputs[i].call_id)) {
                snprintf(message, sizeof(message), "The call \"%.60s\" has more than "
                         "one output. Send exactly one for each call_id.",
                         outputs[i].call_id.data);
                return tg_outputs_fault(fault, "duplicate_call_id", message,
                                        "tool_outputs[%zu].call_id", i);
            }
        }
    }

    *n = i;

    return tg_outputs_missing(open, outputs, i, fault);
}


tg_rc_e
tg_outputs_outcome(const tg_output_t *output, int64_t at, tg_buf_t *out)
{
    tg_buf_t  text;

    /* an escape has at most six bytes for one */

    tg_buf_init(&text, 8 * TG_OUTPUTS_VALUE_MAX);

    if (output->is_error) {
        tg_buf_cstr(&text, "{\"ok\":false,\"error\":{\"code\":\"client_tool_failed\","
                           "\"guidance\":");
        tg_buf_json_string(&text, tg_str_of(tg_policy_guidance("client_tool_failed")));
        tg_buf_cstr(&text, "},\"output\":");
        tg_json_dump(output->output, &text);
        tg_buf_char(&text, '}');

    } else if (json_string_length(output->output)) {
        tg_buf_append(&text, json_string_value(output->output),
                      json_string_length(output->output));

    } else {
        tg_json_dump(output->output, &text);
    }

    tg_buf_printf(out, "{\"code\":%s,\"at\":%lld,\"result\":",
                  output->is_error ? "\"client_tool_failed\"" : "null", (long long) at);
    tg_buf_json_string(out, tg_buf_get(&text));
    tg_buf_char(out, '}');

    if (text.error != TG_OK) {
        out->error = text.error;
    }

    tg_buf_free(&text);

    return out->error;
}
