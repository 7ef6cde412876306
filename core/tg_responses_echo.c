/*
 * The part of a response that repeats its request: every field that the object must
 * have, with the default that holds when the request does not say it.
 */

#include "tg_responses_internal.h"


#define TG_RESPONSES_OR(a, b)  (1u << (a) | 1u << (b))

typedef struct {
    const char  *name;
    unsigned     types;       /* bits of tg_scan_type_e */
    const char  *absent;      /* its value when the request has none */
} tg_responses_shown_t;


static const tg_responses_shown_t  tg_responses_shown[] = {
    { "instructions", 1u << TG_SCAN_STRING, "null" },
    { "previous_response_id", 1u << TG_SCAN_STRING, "null" },
    { "background", TG_RESPONSES_OR(TG_SCAN_TRUE, TG_SCAN_FALSE), "false" },
    { "parallel_tool_calls", TG_RESPONSES_OR(TG_SCAN_TRUE, TG_SCAN_FALSE), "true" },
    { "tool_choice", TG_RESPONSES_OR(TG_SCAN_STRING, TG_SCAN_OBJECT), "\"auto\"" },
    { "truncation", 1u << TG_SCAN_STRING, "\"disabled\"" },
    { "temperature", 1u << TG_SCAN_NUMBER, "1" },
    { "top_p", 1u << TG_SCAN_NUMBER, "1" },
    { "presence_penalty", 1u << TG_SCAN_NUMBER, "0" },
    { "frequency_penalty", 1u << TG_SCAN_NUMBER, "0" },
    { "top_logprobs", 1u << TG_SCAN_NUMBER, "0" },
    { "max_output_tokens", 1u << TG_SCAN_NUMBER, "null" },
    { "max_tool_calls", 1u << TG_SCAN_NUMBER, "null" },
    { "reasoning", 1u << TG_SCAN_OBJECT, "null" },
    { "metadata", 1u << TG_SCAN_OBJECT, "{}" },
    { "service_tier", 1u << TG_SCAN_STRING, "\"default\"" },
    { "user", 1u << TG_SCAN_STRING, "null" },
    { "safety_identifier", 1u << TG_SCAN_STRING, "null" },
    { "prompt_cache_key", 1u << TG_SCAN_STRING, "null" }
};

#define TG_RESPONSES_SHOWN                                                    \
    (sizeof(tg_responses_shown) / sizeof(tg_responses_shown[0]))


static tg_rc_e
tg_responses_echo_fault(tg_responses_fault_t *fault, const char *code,
    const char *message, const char *param)
{
    fault->code = code;
    fault->message = message;
    snprintf(fault->param, sizeof(fault->param), "%s", param);

    return TG_E_INVALID;
}


static tg_rc_e
tg_responses_echo_field(const tg_scan_t *scan, const char *body,
    const tg_responses_shown_t *shown, tg_buf_t *out, tg_responses_fault_t *fault)
{
    tg_str_t                 value;
    const tg_scan_member_t  *member;

    member = tg_responses_field(scan, body, shown->name);
    value = tg_str_of(shown->absent);

    if (member) {
        value = tg_responses_text_of(body, member);

        if (!(shown->types & 1u << member->value.type)) {
            return tg_responses_echo_fault(fault, "invalid_type", NULL, shown->name);
        }

        if (value.len > TG_RESPONSES_ECHO_MAX) {
            return tg_responses_echo_fault(fault, "invalid_value",
                                           "This field is too large.", shown->name);
        }
    }

    tg_buf_cstr(out, ",\"");
    tg_buf_cstr(out, shown->name);
    tg_buf_cstr(out, "\":");

    return tg_buf_str(out, value);
}


/* A function with all the members that it must have; anything else as it is. */
static void
tg_responses_echo_tool(tg_str_t tool, tg_buf_t *out)
{
    size_t           i;
    tg_walk_value_t  values[5];

    static const char *const  names[] = {
        "name", "description", "parameters", "strict", "type"
    };

    tg_walk_members(tool, 5, names, values);

    /* it may have come with secrets */

    if (tg_walk_is(tg_walk_inside(values[4]), "mcp")) {
        tg_buf_cstr(out, "{\"type\":\"mcp\",\"server_label\":\"" TG_RESPONSES_SERVER
                         "\"}");
        return;
    }

    if (!tg_walk_is(tg_walk_inside(values[4]), "function")
        || values[0].type != TG_SCAN_STRING)
    {
        tg_buf_str(out, tool);
        return;
    }

    tg_buf_cstr(out, "{\"type\":\"function\"");

    for (i = 0; i < 4; i++) {
        tg_buf_cstr(out, ",\"");
        tg_buf_cstr(out, names[i]);
        tg_buf_cstr(out, "\":");
        tg_buf_str(out, values[i].type == TG_SCAN_NONE ? tg_str("null")
                                                       : values[i].text);
    }

    tg_buf_char(out, '}');
}


/* The request's own tools; those of an agent are its own business. */
static void
tg_responses_echo_tools(const tg_scan_t *scan, const char *body, tg_buf_t *out)
{
    size_t                   n;
    tg_walk_t                walk;
    tg_walk_value_t          tool;
    const tg_scan_member_t  *member;

    tg_buf_cstr(out, ",\"tools\":[");
    member = tg_responses_field(scan, body, "tools");

    if (member && member->value.type == TG_SCAN_ARRAY) {
        walk = tg_walk_over(tg_responses_text_of(body, member));
        (void) tg_walk_enter(&walk);

        for (n = 0; tg_walk_element(&walk, &tool); n++) {
            if (n) {
                tg_buf_char(out, ',');
            }

            tg_responses_echo_tool(tool.text, out);
        }
    }

    tg_buf_char(out, ']');
}


/* "text" with a format, which it must have. */
static void
tg_responses_echo_text(const tg_scan_t *scan, const char *body, tg_buf_t *out)
{
    bool                     format;
    tg_str_t                 key;
    tg_walk_t                walk;
    tg_walk_value_t          value;
    const tg_scan_member_t  *member;

    format = false;
    member = tg_responses_field(scan, body, "text");
    tg_buf_cstr(out, ",\"text\":{");

    if (member && member->value.type == TG_SCAN_OBJECT) {
        walk = tg_walk_over(tg_responses_text_of(body, member));
        (void) tg_walk_enter(&walk);

        while (tg_walk_member(&walk, &key, &value)) {
            if (value.type == TG_SCAN_NULL) {
                continue;
            }

            format = format || tg_walk_is(key, "format");

            tg_buf_char(out, '"');
            tg_buf_str(out, key);
            tg_buf_cstr(out, "\":");
            tg_buf_str(out, value.text);
            tg_buf_char(out, ',');
        }
    }

    if (format) {
        out->len--;

    } else {
        tg_buf_cstr(out, "\"format\":{\"type\":\"text\"}");
    }

    tg_buf_char(out, '}');
}


tg_rc_e
tg_responses_echo(const tg_scan_t *scan, const char *body, bool store, tg_buf_t *out,
    tg_responses_fault_t *fault)
{
    size_t   i;
    tg_rc_e  rc;

    memset(fault, 0, sizeof(*fault));

    for (i = 0; i < TG_RESPONSES_SHOWN; i++) {
        rc = tg_responses_echo_field(scan, body, &tg_responses_shown[i], out, fault);

        if (rc != TG_OK) {
            return rc;
        }
    }

    tg_responses_echo_tools(scan, body, out);
    tg_responses_echo_text(scan, body, out);
    tg_buf_cstr(out, store ? ",\"store\":true" : ",\"store\":false");

    return out->error;
}
