/*
 * Messages of chat as items of the Responses API; see tg_to_responses.h.
 */

#include "tg_to_responses_int.h"


static tg_rc_e tg_to_responses_message(tg_to_responses_t *t, tg_str_t message);
static void tg_to_responses_content(tg_to_responses_t *t, tg_walk_value_t content,
    bool assistant);
static void tg_to_responses_part(tg_to_responses_t *t, tg_walk_value_t part,
    bool assistant);


void
tg_to_responses_init(tg_to_responses_t *t, tg_to_responses_add_pt add, void *ctx)
{
    memset(t, 0, sizeof(*t));
    t->add = add;
    t->ctx = ctx;
}


tg_rc_e
tg_to_responses_put(tg_to_responses_t *t, tg_str_t piece)
{
    if (t->rc == TG_OK && piece.len) {
        t->rc = t->add(t->ctx, piece);
    }

    return t->rc;
}


tg_rc_e
tg_to_responses_value(tg_to_responses_t *t, const char *before, tg_walk_value_t value)
{
    tg_to_responses_put(t, tg_str_of(before));

    return tg_to_responses_put(t, value.type == TG_SCAN_NONE ? tg_str("\"\"")
                                                             : value.text);
}


/* JSON as the inside of a string. Its strings have no raw control characters, so only
 * what is around them can be one. */
static void
tg_to_responses_quoted(tg_to_responses_t *t, tg_str_t text)
{
    size_t  i, from;

    from = 0;

    for (i = 0; i < text.len; i++) {
        if (text.data[i] != '"' && text.data[i] != '\\'
            && (unsigned char) text.data[i] >= 0x20)
        {
            continue;
        }

        tg_to_responses_put(t, (tg_str_t) { i - from, text.data + from });
        from = i;

        if ((unsigned char) text.data[i] < 0x20) {
            tg_to_responses_lit(t, " ");
            from = i + 1;

        } else {
            tg_to_responses_lit(t, "\\");
        }
    }

    tg_to_responses_put(t, (tg_str_t) { i - from, text.data + from });
}


tg_rc_e
tg_to_responses_string(tg_to_responses_t *t, const char *before, tg_walk_value_t value)
{
    if (value.type == TG_SCAN_NONE || value.type == TG_SCAN_STRING) {
        return tg_to_responses_value(t, before, value);
    }

    tg_to_responses_put(t, tg_str_of(before));
    tg_to_responses_lit(t, "\"");
    tg_to_responses_quoted(t, value.text);

    return tg_to_responses_lit(t, "\"");
}


void
tg_to_responses_next(tg_to_responses_t *t, size_t *count)
{
    if ((*count)++) {
        tg_to_responses_lit(t, ",");
    }
}


tg_rc_e
tg_to_responses_messages(tg_to_responses_t *t, tg_str_t messages)
{
    tg_walk_t        walk;
    tg_walk_value_t  message;

    walk = tg_walk_over(messages);

    while (t->rc == TG_OK && tg_walk_element(&walk, &message)) {
        tg_to_responses_message(t, message.text);
    }

    return t->rc;
}


/* call_id NONE: a call of the form that chat had before tool calls, which has none and
 * is answered by its name. */
static void
tg_to_responses_call(tg_to_responses_t *t, tg_walk_value_t call_id,
    tg_walk_value_t function)
{
    tg_walk_value_t  values[2];

    static const char *const  names[] = { "name", "arguments" };

    tg_walk_members(function.text, 2, names, values);

    tg_to_responses_next(t, &t->items);
    tg_to_responses_value(t, "{\"type\":\"function_call\",\"call_id\":",
                          call_id.type == TG_SCAN_NONE ? values[0] : call_id);
    tg_to_responses_value(t, ",\"name\":", values[0]);
    tg_to_responses_string(t, ",\"arguments\":", values[1]);
    tg_to_responses_lit(t, "}");
}


/* An item for each call that an assistant's message makes. */
static void
tg_to_responses_calls(tg_to_responses_t *t, tg_walk_value_t calls)
{
    tg_walk_t        walk;
    tg_walk_value_t  call, values[2];

    static const char *const  names[] = { "id", "function" };

    if (calls.type != TG_SCAN_ARRAY) {
        return;
    }

    walk = tg_walk_over(calls.text);
    (void) tg_walk_enter(&walk);

    while (t->rc == TG_OK && tg_walk_element(&walk, &call)) {
        tg_walk_members(call.text, 2, names, values);

        if (values[1].type == TG_SCAN_OBJECT) {
            tg_to_responses_call(t, values[0], values[1]);
        }
    }
}


static bool
tg_to_responses_said(tg_walk_value_t value)
{
    return (value.type == TG_SCAN_STRING && tg_walk_inside(value).len)
           || (value.type == TG_SCAN_ARRAY && value.text.len > 2);
}


/* Whether all parts are texts: such a message is one string, as not all upstreams take
 * parts of what a model has said. */
static bool
tg_to_responses_plain(tg_walk_value_t content)
{
    tg_walk_t        walk;
    tg_walk_value_t  part, type;

    static const char *const  names[] = { "type" };

    if (content.type != TG_SCAN_ARRAY) {
        return false;
    }

    walk = tg_walk_over(content.text);
    (void) tg_walk_enter(&walk);

    while (tg_walk_element(&walk, &part)) {
        tg_walk_members(part.text, 1, names, &type);

        if (!tg_walk_is(tg_walk_inside(type), "text")) {
            return false;
        }
    }

    return true;
}


/* The texts of a list of parts joined to one string; another value as a string. */
static void
tg_to_responses_joined(tg_to_responses_t *t, tg_walk_value_t content)
{
    tg_walk_t        walk;
    tg_walk_value_t  part, text;

    static const char *const  names[] = { "text" };

    if (content.type != TG_SCAN_ARRAY) {
        tg_to_responses_string(t, "", content);
        return;
    }

    walk = tg_walk_over(content.text);
    (void) tg_walk_enter(&walk);
    tg_to_responses_lit(t, "\"");

    while (tg_walk_element(&walk, &part)) {
        tg_walk_members(part.text, 1, names, &text);
        tg_to_responses_put(t, tg_walk_inside(text));
    }

    tg_to_responses_lit(t, "\"");
}


/* What a model has said, and what it would not say. */
static void
tg_to_responses_said_item(tg_to_responses_t *t, tg_walk_value_t content,
    tg_walk_value_t refusal)
{
    bool  text;

    text = tg_to_responses_said(content);

    if (!text && !tg_to_responses_said(refusal)) {
        return;
    }

    tg_to_responses_next(t, &t->items);
    tg_to_responses_lit(t, "{\"type\":\"message\",\"role\":\"assistant\",\"content\":");

    if (!tg_to_responses_said(refusal)) {

        if (tg_to_responses_plain(content)) {
            tg_to_responses_joined(t, content);

        } else {
            tg_to_responses_content(t, content, true);
        }

    } else {
        tg_to_responses_lit(t, "[");

        if (text) {
            tg_to_responses_lit(t, "{\"type\":\"output_text\",\"text\":");
            tg_to_responses_joined(t, content);
            tg_to_responses_lit(t, ",\"annotations\":[]},");
        }

        tg_to_responses_value(t, "{\"type\":\"refusal\",\"refusal\":", refusal);
        tg_to_responses_lit(t, "}]");
    }

    tg_to_responses_lit(t, "}");
}


static void
tg_to_responses_output(tg_to_responses_t *t, tg_walk_value_t call_id,
    tg_walk_value_t content)
{
    tg_to_responses_next(t, &t->items);
    tg_to_responses_value(t, "{\"type\":\"function_call_output\",\"call_id\":", call_id);
    tg_to_responses_lit(t, ",\"output\":");
    tg_to_responses_joined(t, content);
    tg_to_responses_lit(t, "}");
}


static tg_rc_e
tg_to_responses_message(tg_to_responses_t *t, tg_str_t message)
{
    tg_str_t         role;
    tg_walk_value_t  values[7];

    static const char *const  names[] = {
        "role", "content", "refusal", "tool_calls", "tool_call_id", "name",
        "function_call"
    };

    static const tg_walk_value_t  none;

    tg_walk_members(message, 7, names, values);
    role = tg_walk_inside(values[0]);

    if (tg_walk_is(role, "assistant")) {
        tg_to_responses_said_item(t, values[1], values[2]);
        tg_to_responses_calls(t, values[3]);

        if (values[6].type == TG_SCAN_OBJECT && values[3].type == TG_SCAN_NONE) {
            tg_to_responses_call(t, none, values[6]);
        }

        return t->rc;
    }

    if (tg_walk_is(role, "tool") || tg_walk_is(role, "function")) {
        tg_to_responses_output(t, values[tg_walk_is(role, "tool") ? 4 : 5], values[1]);
        return t->rc;
    }

    tg_to_responses_next(t, &t->items);

    /* the one word that every model knows, as in a chat request */

    if (tg_walk_is(role, "developer")) {
        tg_to_responses_lit(t, "{\"type\":\"message\",\"role\":\"system\"");

    } else {
        tg_to_responses_value(t, "{\"type\":\"message\",\"role\":", values[0]);
    }

    tg_to_responses_lit(t, ",\"content\":");
    tg_to_responses_content(t, values[1], false);

    return tg_to_responses_lit(t, "}");
}


static void
tg_to_responses_content(tg_to_responses_t *t, tg_walk_value_t content, bool assistant)
{
    size_t           n;
    tg_walk_t        walk;
    tg_walk_value_t  part;

    if (content.type != TG_SCAN_ARRAY) {
        tg_to_responses_value(t, "", content);
        return;
    }

    walk = tg_walk_over(content.text);
    (void) tg_walk_enter(&walk);
    tg_to_responses_lit(t, "[");

    for (n = 0; t->rc == TG_OK && tg_walk_element(&walk, &part); ) {
        tg_to_responses_next(t, &n);
        tg_to_responses_part(t, part, assistant);
    }

    tg_to_responses_lit(t, "]");
}


/* An image is an object with a url in chat, and the url itself here. */
static void
tg_to_responses_image(tg_to_responses_t *t, tg_walk_value_t image)
{
    tg_walk_value_t  values[2];

    static const char *const  names[] = { "url", "detail" };

    tg_walk_members(image.text, 2, names, values);

    if (image.type != TG_SCAN_OBJECT) {
        values[0] = image;
    }

    tg_to_responses_value(t, "{\"type\":\"input_image\",\"image_url\":", values[0]);

    if (values[1].type != TG_SCAN_NONE) {
        tg_to_responses_value(t, ",\"detail\":", values[1]);
    }

    tg_to_responses_lit(t, "}");
}


static void
tg_to_responses_file(tg_to_responses_t *t, tg_walk_value_t file)
{
    size_t           i;
    tg_walk_value_t  values[3];

    static const char *const  names[] = { "file_id", "file_data", "filename" };
    static const char *const  before[] = {
        ",\"file_id\":", ",\"file_data\":", ",\"filename\":"
    };

    tg_walk_members(file.text, 3, names, values);
    tg_to_responses_lit(t, "{\"type\":\"input_file\"");

    for (i = 0; i < 3; i++) {
        if (values[i].type != TG_SCAN_NONE) {
            tg_to_responses_value(t, before[i], values[i]);
        }
    }

    tg_to_responses_lit(t, "}");
}


static void
tg_to_responses_part(tg_to_responses_t *t, tg_walk_value_t part, bool assistant)
{
    tg_str_t         type;
    tg_walk_value_t  values[4];

    static const char *const  names[] = { "type", "text", "image_url", "file" };

    tg_walk_members(part.text, 4, names, values);
    type = tg_walk_inside(values[0]);

    if (tg_walk_is(type, "text")) {
        tg_to_responses_value(t, assistant ? "{\"type\":\"output_text\",\"text\":"
                                           : "{\"type\":\"input_text\",\"text\":",
                              values[1]);
        tg_to_responses_put(t, assistant ? tg_str(",\"annotations\":[]}") : tg_str("}"));

    } else if (tg_walk_is(type, "image_url")) {
        tg_to_responses_image(t, values[2]);

    } else if (tg_walk_is(type, "file") && values[3].type == TG_SCAN_OBJECT) {
        tg_to_responses_file(t, values[3]);

    } else {
        tg_to_responses_put(t, part.text);
    }
}
