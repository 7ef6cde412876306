/*
 * Compiles config.body: a JSON value whose strings are templates becomes a list of
 * parts that is written from left to right, so rendering builds no tree.
 */

#include <stdio.h>

#include "tg_json.h"
#include "tg_template_parts.h"


static const char *tg_compile_json(tg_compile_t *c, const json_t *value);


static const char *
tg_push_cstr(tg_compile_t *c, const char *text)
{
    return tg_parts_push(c->parts, TG_SOURCE_LITERAL, TG_PLACE_JSON, false,
        tg_str_of(text));
}


/* A string of the body: one placeholder alone takes the value's own type. */
static const char *
tg_compile_string(tg_compile_t *c, tg_str_t text)
{
    size_t       end;
    tg_str_t     inner;
    const char  *code;

    if (text.len >= 4 && text.data[0] == '{' && text.data[1] == '{') {
        inner = (tg_str_t) { text.len - 2, text.data + 2 };
        end = tg_find_pair(inner, '}');

        if (end + 2 == inner.len) {
            inner.len = end;
            return tg_push_placeholder(c, inner, TG_PLACE_JSON);
        }
    }

    code = tg_push_cstr(c, "\"");

    if (code == NULL) {
        code = tg_compile_text(c, text, TG_PLACE_JSON_TEXT);
    }

    return code == NULL ? tg_push_cstr(c, "\"") : code;
}


/* Adds a step to the pointer; returns its length before. */
static size_t
tg_pointer_down(tg_compile_t *c, const char *key)
{
    size_t  before = strlen(c->pointer);

    (void) snprintf(c->pointer + before, c->cap - before, "/%s", key);

    return before;
}


static const char *
tg_compile_key(tg_compile_t *c, const char *key, bool first)
{
    const char  *code;
    tg_str_t     text = tg_str_of(key);

    if (tg_find_pair(text, '{') < text.len) {
        c->reason = "placeholders may not stand in keys";
        return "unknown_placeholder";
    }

    code = tg_push_cstr(c, first ? "\"" : ",\"");

    if (code == NULL) {
        code = tg_push_literal(c, text, TG_PLACE_JSON_TEXT);
    }

    return code == NULL ? tg_push_cstr(c, "\":") : code;
}


static const char *
tg_compile_object(tg_compile_t *c, const json_t *object)
{
    bool         first = true;
    size_t       mark;
    json_t      *value;
    const char  *key, *code;

    code = tg_push_cstr(c, "{");

    json_object_foreach((json_t *) (uintptr_t) object, key, value) {
        mark = tg_pointer_down(c, key);

        if (code == NULL) {
            code = tg_compile_key(c, key, first);
        }

        if (code == NULL) {
            code = tg_compile_json(c, value);
        }

        if (code != NULL) {
            return code;
        }

        c->pointer[mark] = '\0';
        first = false;
    }

    return code == NULL ? tg_push_cstr(c, "}") : code;
}


static const char *
tg_compile_array(tg_compile_t *c, const json_t *array)
{
    char         index[24];
    size_t       i, mark;
    json_t      *value;
    const char  *code;

    code = tg_push_cstr(c, "[");

    json_array_foreach(array, i, value) {
        (void) snprintf(index, sizeof(index), "%zu", i);
        mark = tg_pointer_down(c, index);

        if (code == NULL && i > 0) {
            code = tg_push_cstr(c, ",");
        }

        if (code == NULL) {
            code = tg_compile_json(c, value);
        }

        if (code != NULL) {
            return code;
        }

        c->pointer[mark] = '\0';
    }

    return code == NULL ? tg_push_cstr(c, "]") : code;
}


static const char *
tg_compile_json(tg_compile_t *c, const json_t *value)
{
    tg_rc_e      rc;
    tg_buf_t     text;
    const char  *code;

    switch (json_typeof(value)) {

    case JSON_OBJECT:
        return tg_compile_object(c, value);

    case JSON_ARRAY:
        return tg_compile_array(c, value);

    case JSON_STRING:
        return tg_compile_string(c, (tg_str_t) { json_string_length(value),
            json_string_value(value) });

    default:
        tg_buf_init(&text, TG_TEMPLATE_LITERAL_MAX);
        rc = tg_json_dump(value, &text);
        code = rc == TG_OK ? tg_parts_push(c->parts, TG_SOURCE_LITERAL, TG_PLACE_JSON,
                                 false, tg_buf_get(&text))
                           : "internal_error";
        tg_buf_free(&text);
        return code;
    }
}


const char *
tg_parts_add_json(tg_template_t *template, const json_t *body, tg_template_error_t *error)
{
    char           pointer[sizeof(error->pointer)] = "";
    const char    *code;
    tg_compile_t   c = { .template = template, .parts = &template->body,
                         .pointer = pointer, .cap = sizeof(pointer) };

    code = tg_compile_json(&c, body);

    if (code != NULL) {
        tg_template_refuse(error, code, c.reason == NULL ? "out of memory" : c.reason,
            "/config/body", pointer);
    }

    return code;
}
