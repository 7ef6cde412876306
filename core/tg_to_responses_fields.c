/*
 * The fields of a chat request beside its messages, in the form of the Responses API;
 * see tg_to_responses.h.
 */

#include "tg_to_responses_int.h"


typedef void (*tg_to_responses_field_pt)(tg_to_responses_t *t, const tg_scan_t *scan,
    const char *body, tg_walk_value_t value);

typedef struct {
    const char                *name;
    const char                *before;   /* its name there, and what is before the value */
    const char                *behind;   /* the value */
    tg_to_responses_field_pt   write;    /* or what writes it; nothing: it is left out */
    const char                *unless;   /* it is left out beside this one … */
    const char                *or;       /* … and beside this one */
} tg_to_responses_field_t;


static void tg_to_responses_text(tg_to_responses_t *t, const tg_scan_t *scan,
    const char *body, tg_walk_value_t value);
static void tg_to_responses_effort(tg_to_responses_t *t, const tg_scan_t *scan,
    const char *body, tg_walk_value_t value);
static void tg_to_responses_many(tg_to_responses_t *t, const tg_scan_t *scan,
    const char *body, tg_walk_value_t value);
static void tg_to_responses_frequency(tg_to_responses_t *t, const tg_scan_t *scan,
    const char *body, tg_walk_value_t value);
static void tg_to_responses_presence(tg_to_responses_t *t, const tg_scan_t *scan,
    const char *body, tg_walk_value_t value);
static void tg_to_responses_bias(tg_to_responses_t *t, const tg_scan_t *scan,
    const char *body, tg_walk_value_t value);


/* The last ones are fields of a response that chat does not have: they would stand in for
 * the conversation, or lead to what the vendor keeps. Log probabilities are not shown to
 * callers, so they are not asked for. */
static const tg_to_responses_field_t  tg_to_responses_known[] = {
    { "max_completion_tokens", ",\"max_output_tokens\":", "", NULL, "max_output_tokens",
      NULL },
    { "max_tokens", ",\"max_output_tokens\":", "", NULL, "max_completion_tokens",
      "max_output_tokens" },
    { "reasoning_effort", NULL, NULL, tg_to_responses_effort, NULL, NULL },
    { "reasoning", NULL, NULL, tg_to_responses_effort, "reasoning_effort", NULL },
    { "response_format", NULL, NULL, tg_to_responses_text, "text", NULL },
    { "verbosity", NULL, NULL, tg_to_responses_text, "response_format", "text" },
    { "n", NULL, NULL, tg_to_responses_many, NULL, NULL },
    { "frequency_penalty", NULL, NULL, tg_to_responses_frequency, NULL, NULL },
    { "presence_penalty", NULL, NULL, tg_to_responses_presence, NULL, NULL },
    { "logit_bias", NULL, NULL, tg_to_responses_bias, NULL, NULL },
    { "logprobs", NULL, NULL, NULL, NULL, NULL },
    { "top_logprobs", NULL, NULL, NULL, NULL, NULL },
    { "input", NULL, NULL, NULL, NULL, NULL },
    { "instructions", NULL, NULL, NULL, NULL, NULL },
    { "previous_response_id", NULL, NULL, NULL, NULL, NULL },
    { "conversation", NULL, NULL, NULL, NULL, NULL },
    { "prompt", NULL, NULL, NULL, NULL, NULL },
    { "background", NULL, NULL, NULL, NULL, NULL },
    { "include", NULL, NULL, NULL, NULL, NULL },
    { "truncation", NULL, NULL, NULL, NULL, NULL },
    { "context_management", NULL, NULL, NULL, NULL, NULL },
    { "max_tool_calls", NULL, NULL, NULL, NULL, NULL }
};

#define TG_TO_RESPONSES_KNOWN                                                 \
    (sizeof(tg_to_responses_known) / sizeof(tg_to_responses_known[0]))


static const tg_scan_member_t *
tg_to_responses_find(const tg_scan_t *scan, const char *body, const char *name)
{
    const tg_scan_member_t  *member;

    member = tg_scan_find(scan, body, name);

    return member && member->value.type != TG_SCAN_NULL ? member : NULL;
}


static tg_walk_value_t
tg_to_responses_member_value(const char *body, const tg_scan_member_t *member)
{
    return (tg_walk_value_t) {
        member->value.type,
        { member->value.end - member->value.start, body + member->value.start }
    };
}


/* Whether an object has any member. */
static bool
tg_to_responses_any(tg_str_t object)
{
    tg_str_t         key;
    tg_walk_t        walk;
    tg_walk_value_t  value;

    walk = tg_walk_over(object);
    (void) tg_walk_enter(&walk);

    return tg_walk_member(&walk, &key, &value);
}


static bool
tg_to_responses_in(tg_str_t key, const char *const *names)
{
    for ( ; *names; names++) {
        if (tg_walk_is(key, *names)) {
            return true;
        }
    }

    return false;
}


static void
tg_to_responses_known_field(tg_to_responses_t *t, const tg_scan_t *scan,
    const char *body, const tg_to_responses_field_t *field, tg_walk_value_t value)
{
    if ((field->unless && tg_to_responses_find(scan, body, field->unless))
        || (field->or && tg_to_responses_find(scan, body, field->or)))
    {
        return;
    }

    if (field->write) {
        field->write(t, scan, body, value);

    } else if (field->before) {
        tg_to_responses_value(t, field->before, value);
        tg_to_responses_put(t, tg_str_of(field->behind));
    }
}


tg_rc_e
tg_to_responses_fields(tg_to_responses_t *t, const tg_scan_t *scan, const char *body,
    const char *const *left_out)
{
    size_t                   i, j;
    tg_str_t                 key;
    tg_walk_value_t          value;
    const tg_scan_member_t  *member;

    for (i = 0; t->rc == TG_OK && i < tg_scan_member_count(scan); i++) {
        member = tg_scan_member(scan, i);
        key = (tg_str_t) { member->key.end - member->key.start - 2,
                           body + member->key.start + 1 };

        if (member->value.type == TG_SCAN_NULL || tg_to_responses_in(key, left_out)) {
            continue;
        }

        value = tg_to_responses_member_value(body, member);

        for (j = 0; j < TG_TO_RESPONSES_KNOWN; j++) {
            if (tg_walk_is(key, tg_to_responses_known[j].name)) {
                break;
            }
        }

        if (j < TG_TO_RESPONSES_KNOWN) {
            tg_to_responses_known_field(t, scan, body, &tg_to_responses_known[j], value);
            continue;
        }

        tg_to_responses_lit(t, ",\"");
        tg_to_responses_put(t, key);
        tg_to_responses_value(t, "\":", value);
    }

    return t->rc;
}


/* A field of chat that is there is sent by many clients with the value that means
 * nothing: the API refuses it by its name all the same. */
static void
tg_to_responses_unless(tg_to_responses_t *t, const char *before, tg_walk_value_t value,
    const char *const *nothing)
{
    for ( ; *nothing; nothing++) {
        if (tg_str_eq(value.text, tg_str_of(*nothing))) {
            return;
        }
    }

    tg_to_responses_value(t, before, value);
}


static const char *const  tg_to_responses_zero[] = { "0", "0.0", NULL };


static void
tg_to_responses_many(tg_to_responses_t *t, const tg_scan_t *scan, const char *body,
    tg_walk_value_t value)
{
    static const char *const  one[] = { "1", NULL };

    (void) scan;
    (void) body;
    tg_to_responses_unless(t, ",\"n\":", value, one);
}


static void
tg_to_responses_frequency(tg_to_responses_t *t, const tg_scan_t *scan,
    const char *body, tg_walk_value_t value)
{
    (void) scan;
    (void) body;
    tg_to_responses_unless(t, ",\"frequency_penalty\":", value, tg_to_responses_zero);
}


static void
tg_to_responses_presence(tg_to_responses_t *t, const tg_scan_t *scan,
    const char *body, tg_walk_value_t value)
{
    (void) scan;
    (void) body;
    tg_to_responses_unless(t, ",\"presence_penalty\":", value, tg_to_responses_zero);
}


static void
tg_to_responses_bias(tg_to_responses_t *t, const tg_scan_t *scan, const char *body,
    tg_walk_value_t value)
{
    static const char *const  empty[] = { "{}", NULL };

    (void) scan;
    (void) body;
    tg_to_responses_unless(t, ",\"logit_bias\":", value, empty);
}


/* "reasoning" of the caller, with the effort that chat has a field for. */
static void
tg_to_responses_effort(tg_to_responses_t *t, const tg_scan_t *scan, const char *body,
    tg_walk_value_t value)
{
    tg_str_t                 inside;
    tg_walk_value_t          effort;
    const tg_scan_member_t  *native, *chat;

    static const char *const  names[] = { "effort" };

    native = tg_to_responses_find(scan, body, "reasoning");
    chat = tg_to_responses_find(scan, body, "reasoning_effort");

    if (native == NULL) {
        tg_to_responses_value(t, ",\"reasoning\":{\"effort\":", value);
        tg_to_responses_lit(t, "}");
        return;
    }

    value = tg_to_responses_member_value(body, native);
    tg_walk_members(value.text, 1, names, &effort);

    if (chat == NULL || value.type != TG_SCAN_OBJECT || effort.type != TG_SCAN_NONE) {
        tg_to_responses_value(t, ",\"reasoning\":", value);
        return;
    }

    inside = (tg_str_t) { value.text.len - 2, value.text.data + 1 };

    tg_to_responses_lit(t, ",\"reasoning\":{");
    tg_to_responses_put(t, inside);
    tg_to_responses_value(t, tg_to_responses_any(value.text) ? ",\"effort\":"
                                                             : "\"effort\":",
                          tg_to_responses_member_value(body, chat));
    tg_to_responses_lit(t, "}");
}


/* Those of the members that are there, with a comma before each. */
static void
tg_to_responses_members(tg_to_responses_t *t, tg_str_t object, size_t n,
    const char *const *names)
{
    size_t           i;
    tg_walk_value_t  values[4];

    tg_walk_members(object, n, names, values);

    for (i = 0; i < n; i++) {
        if (values[i].type != TG_SCAN_NONE) {
            tg_to_responses_lit(t, ",\"");
            tg_to_responses_put(t, tg_str_of(names[i]));
            tg_to_responses_value(t, "\":", values[i]);
        }
    }
}


/* "response_format" and "verbosity" are two sides of "text". */
static void
tg_to_responses_text(tg_to_responses_t *t, const tg_scan_t *scan, const char *body,
    tg_walk_value_t value)
{
    tg_walk_value_t          inner;
    const tg_scan_member_t  *format, *verbosity;

    static const char *const  names[] = { "json_schema" };
    static const char *const  schema[] = { "name", "description", "schema", "strict" };

    (void) value;

    format = tg_to_responses_find(scan, body, "response_format");
    verbosity = tg_to_responses_find(scan, body, "verbosity");

    tg_to_responses_lit(t, ",\"text\":{");

    if (format) {
        value = tg_to_responses_member_value(body, format);
        tg_walk_members(value.text, 1, names, &inner);

        if (inner.type == TG_SCAN_OBJECT) {
            tg_to_responses_lit(t, "\"format\":{\"type\":\"json_schema\"");
            tg_to_responses_members(t, inner.text, 4, schema);
            tg_to_responses_lit(t, "}");

        } else {
            tg_to_responses_value(t, "\"format\":", value);
        }
    }

    if (verbosity) {
        tg_to_responses_value(t, format ? ",\"verbosity\":" : "\"verbosity\":",
                              tg_to_responses_member_value(body, verbosity));
    }

    tg_to_responses_lit(t, "}");
}


static void
tg_to_responses_tool(tg_to_responses_t *t, tg_walk_value_t tool)
{
    tg_walk_value_t  function, strict;

    static const char *const  names[] = { "function" };
    static const char *const  members[] = {
        "name", "description", "parameters", "strict"
    };

    tg_walk_members(tool.text, 1, names, &function);
    tg_to_responses_next(t, &t->tools);

    if (function.type != TG_SCAN_OBJECT) {
        tg_to_responses_put(t, tool.text);
        return;
    }

    tg_to_responses_lit(t, "{\"type\":\"function\"");
    tg_to_responses_members(t, function.text, 4, members);
    tg_walk_members(function.text, 1, members + 3, &strict);

    if (strict.type == TG_SCAN_NONE) {
        tg_to_responses_lit(t, ",\"strict\":false");
    }

    tg_to_responses_lit(t, "}");
}


tg_rc_e
tg_to_responses_tools(tg_to_responses_t *t, tg_str_t tools)
{
    tg_walk_t        walk;
    tg_walk_value_t  tool;

    walk = tg_walk_over(tools);

    while (t->rc == TG_OK && tg_walk_element(&walk, &tool)) {
        tg_to_responses_tool(t, tool);
    }

    return t->rc;
}


/* {"type":"function","function":{"name":…}} without the object in it. */
static void
tg_to_responses_named(tg_to_responses_t *t, tg_walk_value_t choice)
{
    tg_walk_value_t  function, name;

    static const char *const  names[] = { "function" };
    static const char *const  members[] = { "name" };

    tg_walk_members(choice.text, 1, names, &function);

    if (function.type != TG_SCAN_OBJECT) {
        tg_to_responses_put(t, choice.text);
        return;
    }

    tg_walk_members(function.text, 1, members, &name);
    tg_to_responses_value(t, "{\"type\":\"function\",\"name\":", name);
    tg_to_responses_lit(t, "}");
}


tg_rc_e
tg_to_responses_choice(tg_to_responses_t *t, tg_str_t value)
{
    size_t           n;
    tg_walk_t        walk;
    tg_walk_value_t  choice, allowed, values[2], tool;

    static const char *const  names[] = { "allowed_tools" };
    static const char *const  members[] = { "mode", "tools" };

    walk = tg_walk_over(value);
    choice = tg_walk_value(&walk);
    tg_walk_members(choice.text, 1, names, &allowed);

    if (allowed.type != TG_SCAN_OBJECT) {
        tg_to_responses_named(t, choice);
        return t->rc;
    }

    tg_walk_members(allowed.text, 2, members, values);
    tg_to_responses_value(t, "{\"type\":\"allowed_tools\",\"mode\":", values[0]);
    tg_to_responses_lit(t, ",\"tools\":[");

    if (values[1].type == TG_SCAN_ARRAY) {
        walk = tg_walk_over(values[1].text);
        (void) tg_walk_enter(&walk);

        for (n = 0; t->rc == TG_OK && tg_walk_element(&walk, &tool); ) {
            tg_to_responses_next(t, &n);
            tg_to_responses_named(t, tool);
        }
    }

    return tg_to_responses_lit(t, "]}");
}
