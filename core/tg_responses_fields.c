/*
 * The fields of a Responses request beside its input: those that chat knows by another
 * name or in another shape, those that mean nothing to a chat model, and all others
 * as they came.
 */

#include "tg_responses_internal.h"


typedef tg_rc_e (*tg_responses_field_pt)(tg_responses_request_t *t, tg_str_t value,
    tg_scan_type_e type);

typedef struct {
    const char             *name;
    const char             *chat;     /* its name there, with the value as it is */
    tg_responses_field_pt   write;    /* or what writes it; neither: left out */
    const char             *unless;   /* it is left out beside this one */
} tg_responses_field_t;


static tg_rc_e tg_responses_tools(tg_responses_request_t *t, tg_str_t value,
    tg_scan_type_e type);
static tg_rc_e tg_responses_tool_choice(tg_responses_request_t *t, tg_str_t value,
    tg_scan_type_e type);
static tg_rc_e tg_responses_format(tg_responses_request_t *t, tg_str_t value,
    tg_scan_type_e type);
static tg_rc_e tg_responses_effort(tg_responses_request_t *t, tg_str_t value,
    tg_scan_type_e type);
static tg_rc_e tg_responses_metadata(tg_responses_request_t *t, tg_str_t value,
    tg_scan_type_e type);
static tg_rc_e tg_responses_chat_messages(tg_responses_request_t *t,
    tg_str_t value,
    tg_scan_type_e type);
static tg_rc_e tg_responses_prompt(tg_responses_request_t *t, tg_str_t value,
    tg_scan_type_e type);


static const tg_responses_field_t  tg_responses_known_fields[] = {
    { "tools", NULL, tg_responses_tools, NULL },
    { "tool_choice", NULL, tg_responses_tool_choice, NULL },
    { "text", NULL, tg_responses_format, NULL },
    { "reasoning", NULL, tg_responses_effort, NULL },
    { "prompt", NULL, tg_responses_prompt, NULL },
    { "messages", NULL, tg_responses_chat_messages, NULL },
    { "max_output_tokens", "max_completion_tokens", NULL, NULL },
    { "max_completion_tokens", "max_completion_tokens", NULL, "max_output_tokens" },
    { "response_format", "response_format", NULL, "text" },
    { "verbosity", "verbosity", NULL, "text" },
    { "reasoning_effort", "reasoning_effort", NULL, "reasoning" },
    { "model", NULL, NULL, NULL },
    { "input", NULL, NULL, NULL },
    { "instructions", NULL, NULL, NULL },
    { "stream", NULL, NULL, NULL },
    { "stream_options", NULL, NULL, NULL },
    { "store", NULL, NULL, NULL },
    { "previous_response_id", NULL, NULL, NULL },
    { "conversation", NULL, NULL, NULL },
    { "background", NULL, NULL, NULL },
    { "include", NULL, NULL, NULL },
    { "truncation", NULL, NULL, NULL },
    { "max_tool_calls", NULL, NULL, NULL },
    { "metadata", NULL, tg_responses_metadata, NULL },
    { "top_logprobs", NULL, NULL, NULL }
};

#define TG_RESPONSES_FIELDS                                                   \
    (sizeof(tg_responses_known_fields) / sizeof(tg_responses_known_fields[0]))


tg_rc_e
tg_responses_fields(tg_responses_request_t *t)
{
    size_t                       i, j;
    tg_rc_e                      rc;
    tg_str_t                     key, value;
    const tg_scan_member_t      *member;
    const tg_responses_field_t  *field;

    for (i = 0; i < tg_scan_member_count(t->scan); i++) {
        member = tg_scan_member(t->scan, i);

        if (member->value.type == TG_SCAN_NULL) {
            continue;
        }

        key = (tg_str_t) { member->key.end - member->key.start - 2,
                           t->body + member->key.start + 1 };
        value = tg_responses_text_of(t->body, member);
        field = NULL;

        for (j = 0; j < TG_RESPONSES_FIELDS; j++) {
            if (tg_walk_is(key, tg_responses_known_fields[j].name)) {
                field = &tg_responses_known_fields[j];
                break;
            }
        }

        if (field == NULL) {
            tg_responses_lit(t, ",\"");
            tg_responses_put(t, key);
            tg_responses_lit(t, "\":");
            tg_responses_put(t, value);

        } else if (field->unless
                   && tg_responses_field(t->scan, t->body, field->unless))
        {
            continue;

        } else if (field->chat) {
            tg_responses_lit(t, ",\"");
            tg_responses_put(t, tg_str_of(field->chat));
            tg_responses_lit(t, "\":");
            tg_responses_put(t, value);

        } else if (field->write) {
            rc = field->write(t, value, member->value.type);

            if (rc != TG_OK) {
                return rc;
            }
        }
    }

    return t->rc;
}


/* Writes those of the members that are there, each with its name; `any` says whether
 * one stands before them. */
static void
tg_responses_put_members(tg_responses_request_t *t, size_t n,
    const char *const *names, const tg_walk_value_t *values, bool any)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if (values[i].type == TG_SCAN_NONE) {
            continue;
        }

        tg_responses_put(t, any ? tg_str(",\"") : tg_str("\""));
        tg_responses_put(t, tg_str_of(names[i]));
        tg_responses_lit(t, "\":");
        tg_responses_put(t, values[i].text);
        any = true;
    }
}


/* The agent's own tools, by the label under which its calls are shown: it has them
 * anyway, and a request may not say where they are or which of them. */
static tg_rc_e
tg_responses_own_tools(tg_responses_request_t *t, tg_str_t tool, size_t n)
{
    size_t           i;
    tg_walk_value_t  values[5];

    static const char *const  names[] = {
        "server_label", "server_url", "connector_id", "allowed_tools",
        "require_approval"
    };

    tg_walk_members(tool, 5, names, values);

    if (!t->agent || !tg_walk_is(tg_walk_inside(values[0]), TG_RESPONSES_SERVER)) {
        snprintf(t->fault.param, sizeof(t->fault.param), "tools[%zu].server_label", n);
        return tg_responses_wrong(t, "unsupported_tool", NULL, t->fault.param);
    }

    for (i = 1; i < 5; i++) {
        if (values[i].type == TG_SCAN_NONE
            || (i == 4 && tg_walk_is(tg_walk_inside(values[i]), "never")))
        {
            continue;
        }

        snprintf(t->fault.param, sizeof(t->fault.param), "tools[%zu].%s", n, names[i]);
        return tg_responses_wrong(t, "invalid_value",
                                  "Which tools an agent has, and what of them needs "
                                  "approval, is set with the agent.", t->fault.param);
    }

    return TG_OK;
}


/* *count: how many were written before. */
static tg_rc_e
tg_responses_tool(tg_responses_request_t *t, tg_walk_value_t tool, size_t n,
    size_t *count)
{
    tg_walk_value_t  values[6];

    /* the first four are those of chat's "function" */
    static const char *const  names[] = {
        "name", "description", "parameters", "strict", "type", "function"
    };

    if (tool.type != TG_SCAN_OBJECT) {
        snprintf(t->fault.param, sizeof(t->fault.param), "tools[%zu]", n);
        return tg_responses_wrong(t, "invalid_type", "A tool is an object.",
                                  t->fault.param);
    }

    tg_walk_members(tool.text, 6, names, values);

    if (tg_walk_is(tg_walk_inside(values[4]), "mcp")) {
        return tg_responses_own_tools(t, tool.text, n);
    }

    tg_responses_put(t, (*count)++ ? tg_str(",") : tg_str(",\"tools\":["));

    if (!tg_walk_is(tg_walk_inside(values[4]), "function")) {
        snprintf(t->fault.param, sizeof(t->fault.param), "tools[%zu].type", n);
        return tg_responses_wrong(t, "unsupported_tool", NULL, t->fault.param);
    }

    if (values[0].type != TG_SCAN_STRING && values[5].type == TG_SCAN_OBJECT) {
        /* it is in the form of chat already */
        return tg_responses_put(t, tool.text);
    }

    if (values[0].type != TG_SCAN_STRING) {
        snprintf(t->fault.param, sizeof(t->fault.param), "tools[%zu].name", n);
        return tg_responses_wrong(t, "missing_parameter", NULL, t->fault.param);
    }

    tg_responses_lit(t, "{\"type\":\"function\",\"function\":{");
    tg_responses_put_members(t, 4, names, values, false);

    return tg_responses_lit(t, "}}");
}


static tg_rc_e
tg_responses_tools(tg_responses_request_t *t, tg_str_t value, tg_scan_type_e type)
{
    size_t           n, count;
    tg_rc_e          rc;
    tg_walk_t        walk;
    tg_walk_value_t  tool;

    if (type != TG_SCAN_ARRAY) {
        return tg_responses_wrong(t, "invalid_type", "\"tools\" is a list.", "tools");
    }

    if (value.len > TG_RESPONSES_TOOLS_MAX) {
        return tg_responses_wrong(t, "invalid_value", "This field is too large.",
                                  "tools");
    }

    walk = tg_walk_over(value);
    (void) tg_walk_enter(&walk);

    count = 0;

    for (n = 0; tg_walk_element(&walk, &tool); n++) {
        rc = tg_responses_tool(t, tool, n, &count);

        if (rc != TG_OK) {
            return rc;
        }
    }

    /* an empty list is refused by some */

    return count ? tg_responses_lit(t, "]") : t->rc;
}


/* {"type":"function","name":…} in either form of chat's. */
static void
tg_responses_named(tg_responses_request_t *t, tg_walk_value_t name)
{
    tg_responses_lit(t, "{\"type\":\"function\",\"function\":{\"name\":");
    tg_responses_put(t, name.text);
    tg_responses_lit(t, "}}");
}


static tg_rc_e
tg_responses_allowed(tg_responses_request_t *t, tg_walk_value_t mode,
    tg_walk_value_t tools)
{
    size_t           n;
    tg_walk_t        walk;
    tg_walk_value_t  tool, values[2];

    static const char *const  names[] = { "type", "name" };

    tg_responses_lit(t, "{\"type\":\"allowed_tools\",\"allowed_tools\":{\"mode\":");
    tg_responses_put(t, mode.type == TG_SCAN_STRING ? mode.text
                                                    : tg_str("\"auto\""));
    tg_responses_lit(t, ",\"tools\":[");

    walk = tg_walk_over(tools.text);
    (void) tg_walk_enter(&walk);

    for (n = 0; tg_walk_element(&walk, &tool); n++) {
        tg_walk_members(tool.text, 2, names, values);

        if (tool.type != TG_SCAN_OBJECT
            || !tg_walk_is(tg_walk_inside(values[0]), "function")
            || values[1].type != TG_SCAN_STRING)
        {
            snprintf(t->fault.param, sizeof(t->fault.param),
                     "tool_choice.tools[%zu]", n);
            return tg_responses_wrong(t, "unsupported_tool", NULL, t->fault.param);
        }

        if (n) {
            tg_responses_lit(t, ",");
        }

        tg_responses_named(t, values[1]);
    }

    return tg_responses_lit(t, "]}}");
}


static tg_rc_e
tg_responses_tool_choice(tg_responses_request_t *t, tg_str_t value,
    tg_scan_type_e type)
{
    tg_str_t         kind;
    tg_walk_value_t  values[5];

    static const char *const  names[] = {
        "type", "name", "mode", "tools", "function"
    };

    tg_responses_lit(t, ",\"tool_choice\":");

    if (type == TG_SCAN_STRING) {
        return tg_responses_put(t, value);
    }

    if (type != TG_SCAN_OBJECT) {
        return tg_responses_wrong(t, "invalid_type",
                                  "\"tool_choice\" is a string or an object.",
                                  "tool_choice");
    }

    tg_walk_members(value, 5, names, values);
    kind = tg_walk_inside(values[0]);

    if (tg_walk_is(kind, "function") && values[1].type != TG_SCAN_STRING
        && values[4].type == TG_SCAN_OBJECT)
    {
        return tg_responses_put(t, value);
    }

    /* the server's own tools are functions to the model as well */

    if (values[1].type == TG_SCAN_STRING
        && (tg_walk_is(kind, "function") || tg_walk_is(kind, "mcp")))
    {
        tg_responses_named(t, values[1]);
        return t->rc;
    }

    if (tg_walk_is(kind, "allowed_tools") && values[3].type == TG_SCAN_ARRAY) {
        return tg_responses_allowed(t, values[2], values[3]);
    }

    return tg_responses_wrong(t, "unsupported_tool", NULL, "tool_choice.type");
}


/* text.format and text.verbosity. */
static tg_rc_e
tg_responses_format(tg_responses_request_t *t, tg_str_t value, tg_scan_type_e type)
{
    tg_str_t         kind;
    tg_walk_value_t  text[2], format[6];

    static const char *const  members[] = { "format", "verbosity" };
    static const char *const  names[] = {
        "name", "description", "schema", "strict", "type", "json_schema"
    };

    if (type != TG_SCAN_OBJECT) {
        return tg_responses_wrong(t, "invalid_type", "\"text\" is an object.", "text");
    }

    tg_walk_members(value, 2, members, text);

    if (text[1].type != TG_SCAN_NONE) {
        tg_responses_lit(t, ",\"verbosity\":");
        tg_responses_put(t, text[1].text);
    }

    if (text[0].type == TG_SCAN_NONE) {
        return t->rc;
    }

    if (text[0].type != TG_SCAN_OBJECT) {
        return tg_responses_wrong(t, "invalid_type", "\"format\" is an object.",
                                  "text.format");
    }

    tg_walk_members(text[0].text, 6, names, format);
    kind = tg_walk_inside(format[4]);

    if (tg_walk_is(kind, "text")) {
        return t->rc;
    }

    tg_responses_lit(t, ",\"response_format\":");

    if (!tg_walk_is(kind, "json_schema") || format[5].type != TG_SCAN_NONE) {
        return tg_responses_put(t, text[0].text);
    }

    if (format[0].type != TG_SCAN_STRING || format[2].type != TG_SCAN_OBJECT) {
        return tg_responses_wrong(t, "missing_parameter", NULL,
                                  format[0].type != TG_SCAN_STRING
                                  ? "text.format.name" : "text.format.schema");
    }

    tg_responses_lit(t, "{\"type\":\"json_schema\",\"json_schema\":{");
    tg_responses_put_members(t, 4, names, format, false);

    return tg_responses_lit(t, "}}");
}


static tg_rc_e
tg_responses_effort(tg_responses_request_t *t, tg_str_t value, tg_scan_type_e type)
{
    tg_walk_value_t  effort;

    static const char *const  names[] = { "effort" };

    if (type != TG_SCAN_OBJECT) {
        return tg_responses_wrong(t, "invalid_type", "\"reasoning\" is an object.",
                                  "reasoning");
    }

    tg_walk_members(value, 1, names, &effort);

    if (effort.type != TG_SCAN_NONE) {
        tg_responses_lit(t, ",\"reasoning_effort\":");
        tg_responses_put(t, effort.text);
    }

    return t->rc;
}


static tg_rc_e
tg_responses_metadata(tg_responses_request_t *t, tg_str_t value, tg_scan_type_e type)
{
    (void) type;

    if (t->agent) {
        tg_responses_lit(t, ",\"metadata\":");
        tg_responses_put(t, value);
    }

    return t->rc;
}


static tg_rc_e
tg_responses_chat_messages(tg_responses_request_t *t, tg_str_t value, tg_scan_type_e type)
{
    (void) value;
    (void) type;

    return tg_responses_wrong(t, "invalid_value",
                              "A response is made of \"input\", a chat of "
                              "\"messages\".", "messages");
}


/* A template that lies with a vendor: what it says is not known here. */
static tg_rc_e
tg_responses_prompt(tg_responses_request_t *t, tg_str_t value, tg_scan_type_e type)
{
    (void) value;
    (void) type;

    return tg_responses_wrong(t, "invalid_value",
                              "Stored prompts are not kept here. Send the text as "
                              "\"instructions\" and \"input\".", "prompt");
}
