/*
 * A Responses request in the form of chat: which phase comes when, the items of its
 * input as messages. Content parts are in tg_responses_content.c, the other fields in
 * tg_responses_fields.c.
 */

#include "tg_responses_internal.h"


/* What an input item has, of whatever type. */
typedef struct {
    tg_walk_value_t  type;
    tg_walk_value_t  id;
    tg_walk_value_t  role;
    tg_walk_value_t  content;
    tg_walk_value_t  call_id;
    tg_walk_value_t  name;
    tg_walk_value_t  arguments;
    tg_walk_value_t  output;
    tg_walk_value_t  error;
} tg_responses_in_t;

typedef tg_rc_e (*tg_responses_item_pt)(tg_responses_request_t *t,
    const tg_responses_in_t *in);

typedef struct {
    const char            *type;
    tg_responses_item_pt   write;      /* NULL: a chat model has no use for it */
} tg_responses_item_type_t;


static tg_rc_e tg_responses_message(tg_responses_request_t *t,
    const tg_responses_in_t *in);
static tg_rc_e tg_responses_call(tg_responses_request_t *t,
    const tg_responses_in_t *in);
static tg_rc_e tg_responses_output(tg_responses_request_t *t,
    const tg_responses_in_t *in);
static tg_rc_e tg_responses_server_call(tg_responses_request_t *t,
    const tg_responses_in_t *in);


/* An approval is part of a run and not of what was said. */
static const tg_responses_item_type_t  tg_responses_item_types[] = {
    { "message", tg_responses_message },
    { "function_call", tg_responses_call },
    { "function_call_output", tg_responses_output },
    { "mcp_call", tg_responses_server_call },
    { "reasoning", NULL },
    { "mcp_list_tools", NULL },
    { "mcp_approval_request", NULL },
    { "mcp_approval_response", NULL }
};

#define TG_RESPONSES_ITEM_TYPES                                               \
    (sizeof(tg_responses_item_types) / sizeof(tg_responses_item_types[0]))


void
tg_responses_request_init(tg_responses_request_t *t, const tg_scan_t *scan,
    const char *body, tg_responses_add_pt add, void *ctx)
{
    memset(t, 0, sizeof(*t));

    t->scan = scan;
    t->body = body;
    t->add = add;
    t->ctx = ctx;
}


tg_rc_e
tg_responses_put(tg_responses_request_t *t, tg_str_t text)
{
    if (t->rc == TG_OK && text.len) {
        t->rc = t->add(t->ctx, text.data, text.len);
        t->written += text.len;
    }

    return t->rc;
}


tg_rc_e
tg_responses_wrong(tg_responses_request_t *t, const char *code,
    const char *message, const char *param)
{
    t->fault.code = code;
    t->fault.message = message;

    if (param != t->fault.param) {
        snprintf(t->fault.param, sizeof(t->fault.param), "%s", param);
    }

    return TG_E_INVALID;
}


tg_rc_e
tg_responses_wrong_item(tg_responses_request_t *t, const char *code,
    const char *message, const char *member)
{
    snprintf(t->fault.param, sizeof(t->fault.param), "input[%zu]%s%s", t->item,
             member[0] && member[0] != '[' ? "." : "", member);

    return tg_responses_wrong(t, code, message, t->fault.param);
}


/* Ends the message that calls could still be added to. */
static void
tg_responses_close(tg_responses_request_t *t)
{
    if (t->open == TG_RESPONSES_IN_ASSISTANT) {
        tg_responses_lit(t, "}");

    } else if (t->open == TG_RESPONSES_IN_CALLS) {
        tg_responses_lit(t, "]}");
    }

    t->open = TG_RESPONSES_CLOSED;
}


static void
tg_responses_next_message(tg_responses_request_t *t)
{
    tg_responses_close(t);

    if (t->messages++) {
        tg_responses_lit(t, ",");
    }
}


/* An input that is one text. */
static void
tg_responses_user_text(tg_responses_request_t *t, tg_str_t text)
{
    tg_responses_next_message(t);
    tg_responses_lit(t, "{\"role\":\"user\",\"content\":");
    tg_responses_put(t, text);
    tg_responses_lit(t, "}");
}


static tg_rc_e
tg_responses_start(tg_responses_request_t *t)
{
    tg_str_t                 text;
    const tg_scan_member_t  *member;

    member = tg_responses_field(t->scan, t->body, "model");

    tg_responses_lit(t, "{\"model\":");
    tg_responses_put(t, member ? tg_responses_text_of(t->body, member)
                               : tg_str("\"\""));
    tg_responses_lit(t, ",\"messages\":[");

    member = tg_responses_field(t->scan, t->body, "instructions");

    if (member) {
        if (member->value.type != TG_SCAN_STRING) {
            return tg_responses_wrong(t, "invalid_type",
                                      "\"instructions\" is a string.",
                                      "instructions");
        }

        t->messages++;
        tg_responses_lit(t, "{\"role\":\"system\",\"content\":");
        tg_responses_put(t, tg_responses_text_of(t->body, member));
        tg_responses_lit(t, "}");
    }

    if (t->history.len) {
        if (t->messages++) {
            tg_responses_lit(t, ",");
        }

        tg_responses_put(t, t->history);
    }

    member = tg_responses_field(t->scan, t->body, "input");

    if (member == NULL) {
        return tg_responses_wrong(t, "missing_parameter", NULL, "input");
    }

    text = t->input.len ? t->input : tg_responses_text_of(t->body, member);
    t->input_start = t->written;
    t->phase = TG_RESPONSES_AT_ITEM;

    if (member->value.type == TG_SCAN_STRING) {
        tg_responses_user_text(t, text);
        t->items = tg_walk_over(tg_str(""));
        return t->rc;
    }

    if (member->value.type != TG_SCAN_ARRAY) {
        return tg_responses_wrong(t, "invalid_type",
                                  "\"input\" is a string or a list of items.",
                                  "input");
    }

    t->items = tg_walk_over(text);
    (void) tg_walk_enter(&t->items);

    return t->rc;
}


static tg_rc_e
tg_responses_items_end(tg_responses_request_t *t)
{
    tg_responses_close(t);
    t->input_end = t->written;

    if (t->messages == 0) {
        return tg_responses_wrong(t, "invalid_value",
                                  "\"input\" has at least one message.", "input");
    }

    tg_responses_lit(t, "],\"stream\":true,\"stream_options\":"
                        "{\"include_usage\":true}");

    t->phase = TG_RESPONSES_AT_FIELDS;

    return t->rc;
}


/* Reads the item at the walk's place, once: it may be as long as the body. */
static void
tg_responses_item_read(tg_walk_t *walk, tg_responses_in_t *in)
{
    size_t           i;
    tg_str_t         key;
    tg_walk_value_t  value;

    const struct {
        const char       *name;
        tg_walk_value_t  *value;
    } members[] = {
        { "type", &in->type }, { "id", &in->id }, { "role", &in->role },
        { "content", &in->content }, { "call_id", &in->call_id },
        { "name", &in->name }, { "arguments", &in->arguments },
        { "output", &in->output }, { "error", &in->error }
    };

    memset(in, 0, sizeof(*in));
    (void) tg_walk_enter(walk);

    while (tg_walk_member(walk, &key, &value)) {
        for (i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
            if (value.type != TG_SCAN_NULL && tg_walk_is(key, members[i].name)) {
                *members[i].value = value;
                break;
            }
        }
    }
}


static tg_rc_e
tg_responses_item(tg_responses_request_t *t, tg_scan_type_e kind)
{
    size_t             i;
    tg_str_t           type;
    tg_responses_in_t  in;

    if (kind != TG_SCAN_OBJECT) {
        return tg_responses_wrong_item(t, "invalid_type", "An item is an object.",
                                       "");
    }

    tg_responses_item_read(&t->items, &in);
    type = tg_walk_inside(in.type);

    if (in.type.type == TG_SCAN_NONE) {
        type = in.role.type != TG_SCAN_NONE ? tg_str("message")
                                            : tg_str("item_reference");
    }

    for (i = 0; i < TG_RESPONSES_ITEM_TYPES; i++) {
        if (tg_walk_is(type, tg_responses_item_types[i].type)) {
            return tg_responses_item_types[i].write
                   ? tg_responses_item_types[i].write(t, &in) : TG_OK;
        }
    }

    if (tg_walk_is(type, "item_reference")) {
        return tg_responses_wrong_item(t, "unsupported_item",
                                       "Items cannot be named by their id here. "
                                       "Send the item itself, or continue with "
                                       "previous_response_id.", "id");
    }

    return tg_responses_wrong_item(t, "unsupported_item", NULL, "type");
}


static tg_rc_e
tg_responses_message(tg_responses_request_t *t, const tg_responses_in_t *in)
{
    tg_str_t  role;

    role = tg_walk_inside(in->role);

    if (in->role.type == TG_SCAN_NONE) {
        return tg_responses_wrong_item(t, "missing_parameter", NULL, "role");
    }

    if (tg_walk_is(role, "assistant")) {
        tg_responses_next_message(t);
        tg_responses_lit(t, "{\"role\":\"assistant\"");
        t->open = TG_RESPONSES_IN_ASSISTANT;

        return tg_responses_assistant_content(t, in->content);
    }

    if (in->content.type == TG_SCAN_NONE) {
        return tg_responses_wrong_item(t, "missing_parameter", NULL, "content");
    }

    tg_responses_next_message(t);

    if (tg_walk_is(role, "user")) {
        tg_responses_lit(t, "{\"role\":\"user\",\"content\":");

    } else if (tg_walk_is(role, "system") || tg_walk_is(role, "developer")) {
        tg_responses_lit(t, "{\"role\":\"system\",\"content\":");

    } else {
        return tg_responses_wrong_item(t, "invalid_value",
                                       "This role is not known.", "role");
    }

    if (tg_responses_content(t, in->content) != TG_OK) {
        return t->fault.code ? TG_E_INVALID : t->rc;
    }

    tg_responses_lit(t, "}");

    return t->rc;
}


/* A string that an item must have. */
static tg_rc_e
tg_responses_need(tg_responses_request_t *t, tg_walk_value_t value,
    const char *member)
{
    if (value.type == TG_SCAN_NONE) {
        return tg_responses_wrong_item(t, "missing_parameter", NULL, member);
    }

    if (value.type != TG_SCAN_STRING) {
        return tg_responses_wrong_item(t, "invalid_type", "This field is a string.",
                                       member);
    }

    return TG_OK;
}


/* One element of "tool_calls". */
static void
tg_responses_put_call(tg_responses_request_t *t, tg_str_t id,
    const tg_responses_in_t *in)
{
    if (t->open == TG_RESPONSES_IN_ASSISTANT) {
        tg_responses_lit(t, ",\"tool_calls\":[");

    } else if (t->open == TG_RESPONSES_IN_CALLS) {
        tg_responses_lit(t, ",");

    } else {
        tg_responses_next_message(t);
        tg_responses_lit(t, "{\"role\":\"assistant\",\"content\":null,"
                            "\"tool_calls\":[");
    }

    t->open = TG_RESPONSES_IN_CALLS;

    tg_responses_lit(t, "{\"id\":");
    tg_responses_put(t, id);
    tg_responses_lit(t, ",\"type\":\"function\",\"function\":{\"name\":");
    tg_responses_put(t, in->name.text);
    tg_responses_lit(t, ",\"arguments\":");
    tg_responses_put(t, in->arguments.text);
    tg_responses_lit(t, "}}");
}


static tg_rc_e
tg_responses_call(tg_responses_request_t *t, const tg_responses_in_t *in)
{
    if (tg_responses_need(t, in->call_id, "call_id") != TG_OK
        || tg_responses_need(t, in->name, "name") != TG_OK
        || tg_responses_need(t, in->arguments, "arguments") != TG_OK)
    {
        return TG_E_INVALID;
    }

    tg_responses_put_call(t, in->call_id.text, in);

    return t->rc;
}


static tg_rc_e
tg_responses_output(tg_responses_request_t *t, const tg_responses_in_t *in)
{
    if (tg_responses_need(t, in->call_id, "call_id") != TG_OK) {
        return TG_E_INVALID;
    }

    tg_responses_next_message(t);
    tg_responses_lit(t, "{\"role\":\"tool\",\"tool_call_id\":");
    tg_responses_put(t, in->call_id.text);
    tg_responses_lit(t, ",\"content\":");

    if (tg_responses_joined(t, in->output, "output") != TG_OK) {
        return t->fault.code ? TG_E_INVALID : t->rc;
    }

    tg_responses_lit(t, "}");

    return t->rc;
}


/* A call that the server made in an earlier response, with what came of it. */
static tg_rc_e
tg_responses_server_call(tg_responses_request_t *t, const tg_responses_in_t *in)
{
    tg_walk_value_t  output;

    if (tg_responses_need(t, in->id, "id") != TG_OK
        || tg_responses_need(t, in->name, "name") != TG_OK
        || tg_responses_need(t, in->arguments, "arguments") != TG_OK)
    {
        return TG_E_INVALID;
    }

    /* it brings its result: calls that wait for theirs have a message before it */

    if (t->open == TG_RESPONSES_IN_CALLS) {
        tg_responses_close(t);
    }

    tg_responses_put_call(t, in->id.text, in);
    tg_responses_next_message(t);

    output = in->output.type == TG_SCAN_NONE ? in->error : in->output;

    tg_responses_lit(t, "{\"role\":\"tool\",\"tool_call_id\":");
    tg_responses_put(t, in->id.text);
    tg_responses_lit(t, ",\"content\":");

    if (tg_responses_joined(t, output, "output") != TG_OK) {
        return t->fault.code ? TG_E_INVALID : t->rc;
    }

    tg_responses_lit(t, "}");

    return t->rc;
}


static tg_rc_e
tg_responses_add_text(void *ctx, const char *data, size_t len)
{
    return tg_buf_append(ctx, data, len);
}


tg_rc_e
tg_responses_messages(tg_str_t input, tg_buf_t *out)
{
    tg_rc_e                  rc;
    tg_scan_type_e           item;
    tg_responses_request_t   t;

    tg_responses_request_init(&t, NULL, NULL, tg_responses_add_text, out);

    if (input.len == 0) {
        return out->error;
    }

    t.items = tg_walk_over(input);

    if (!tg_walk_enter(&t.items)) {
        tg_responses_user_text(&t, input);
        return out->error;
    }

    while ((item = tg_walk_at_element(&t.items)) != TG_SCAN_NONE) {
        rc = tg_responses_item(&t, item);

        if (rc != TG_OK) {
            return rc;
        }
    }

    tg_responses_close(&t);

    return out->error;
}


bool
tg_responses_answers(tg_str_t input)
{
    tg_str_t           type;
    tg_walk_t          walk;
    tg_responses_in_t  in;

    if (input.len == 0) {
        return false;
    }

    walk = tg_walk_over(input);

    if (!tg_walk_enter(&walk) || tg_walk_at_element(&walk) != TG_SCAN_OBJECT) {
        return false;
    }

    tg_responses_item_read(&walk, &in);
    type = tg_walk_inside(in.type);

    return tg_walk_is(type, "function_call_output")
           || tg_walk_is(type, "mcp_approval_response");
}


tg_rc_e
tg_responses_tool_outputs(tg_str_t input, tg_buf_t *out, size_t *count)
{
    tg_scan_type_e           kind;
    tg_responses_in_t        in;
    tg_responses_request_t   t;

    *count = 0;
    tg_responses_request_init(&t, NULL, NULL, tg_responses_add_text, out);
    tg_buf_cstr(out, "{\"tool_outputs\":[");

    t.items = tg_walk_over(input);

    if (!tg_walk_enter(&t.items)) {
        return TG_E_INVALID;
    }

    while ((kind = tg_walk_at_element(&t.items)) == TG_SCAN_OBJECT) {
        tg_responses_item_read(&t.items, &in);

        if (!tg_walk_is(tg_walk_inside(in.type), "function_call_output")
            || in.call_id.type != TG_SCAN_STRING)
        {
            return TG_E_INVALID;
        }

        tg_buf_cstr(out, (*count)++ ? ",{\"call_id\":" : "{\"call_id\":");
        tg_buf_str(out, in.call_id.text);
        tg_buf_cstr(out, ",\"output\":");

        if (tg_responses_joined(&t, in.output, "output") != TG_OK) {
            return t.fault.code ? TG_E_INVALID : t.rc;
        }

        tg_buf_char(out, '}');
    }

    tg_buf_cstr(out, "]}");

    return kind == TG_SCAN_NONE ? out->error : TG_E_INVALID;
}


tg_rc_e
tg_responses_request_step(tg_responses_request_t *t, size_t budget)
{
    tg_rc_e          rc;
    const char      *from;
    tg_scan_type_e   item;

    rc = TG_OK;

    if (t->phase == TG_RESPONSES_AT_START) {
        rc = tg_responses_start(t);
    }

    from = t->items.p;

    while (rc == TG_OK && t->phase == TG_RESPONSES_AT_ITEM) {

        item = tg_walk_at_element(&t->items);

        if (item == TG_SCAN_NONE) {
            rc = tg_responses_items_end(t);
            break;
        }

        rc = tg_responses_item(t, item);
        t->item++;

        if (rc == TG_OK && (size_t) (t->items.p - from) >= budget) {
            return TG_AGAIN;
        }
    }

    if (rc == TG_OK && t->phase == TG_RESPONSES_AT_FIELDS) {
        rc = tg_responses_fields(t);

        if (rc == TG_OK) {
            rc = tg_responses_lit(t, "}");
            t->phase = TG_RESPONSES_AT_END;
        }
    }

    return rc;
}
