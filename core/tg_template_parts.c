/*
 * Compiles texts with placeholders into parts. It knows the grammar of
 * placeholders and what may stand where; values it never sees.
 */

#include "tg_template_parts.h"

#include <stdio.h>
#include <stdlib.h>


#define TG_PARTS_FIRST     4
#define TG_SECRET_NAME     64

static const char  tg_code_format[] = "format_not_allowed";



const char *
tg_template_refuse(tg_template_error_t *error, const char *code, const char *reason,
    const char *base, const char *rest)
{
    size_t    n;
    tg_buf_t  pointer;

    error->code = code;
    tg_buf_init(&pointer, sizeof(error->pointer) - 1);

    (void) tg_buf_cstr(&pointer, base);

    for (; *rest != '\0'; rest++) {

        if (*rest == '~') {
            (void) tg_buf_cstr(&pointer, "~0");

        } else {
            (void) tg_buf_char(&pointer, *rest);
        }
    }

    n = pointer.len;

    if (n > 0) {
        memcpy(error->pointer, pointer.data, n);
    }

    error->pointer[n] = '\0';
    tg_buf_free(&pointer);

    (void) snprintf(error->reason, sizeof(error->reason), "%s", reason);

    return code;
}


void
tg_parts_free(tg_parts_t *parts)
{
    size_t  i;

    for (i = 0; i < parts->count; i++) {
        free(parts->parts[i].data);
    }

    free(parts->parts);
    memset(parts, 0, sizeof(*parts));
}


/* Adds a part with a copy of data, or adds to the literal before it. */
const char *
tg_parts_push(tg_parts_t *parts, tg_source_e source, tg_place_e place, bool text,
    tg_str_t data)
{
    char        *copy;
    size_t       cap;
    tg_part_t   *part, *grown;

    part = parts->count > 0 ? &parts->parts[parts->count - 1] : NULL;

    if (source == TG_SOURCE_LITERAL && part != NULL && part->source == source) {
        copy = realloc(part->data, part->len + data.len + 1);

        if (copy == NULL) {
            return "internal_error";
        }

        memcpy(copy + part->len, data.data, data.len);
        part->data = copy;
        part->len += data.len;
        copy[part->len] = '\0';

        return NULL;
    }

    if (parts->count == parts->cap) {
        cap = parts->cap == 0 ? TG_PARTS_FIRST : 2 * parts->cap;
        grown = realloc(parts->parts, cap * sizeof(*grown));

        if (grown == NULL) {
            return "internal_error";
        }

        parts->parts = grown;
        parts->cap = cap;
    }

    copy = malloc(data.len + 1);
    if (copy == NULL) {
        return "internal_error";
    }

    if (data.len > 0) {
        memcpy(copy, data.data, data.len);
    }

    copy[data.len] = '\0';
    parts->parts[parts->count++] = (tg_part_t) { source, place, text, copy, data.len };

    return NULL;
}


bool
tg_template_name_valid(tg_str_t name)
{
    char    c;
    size_t  i;

    if (name.len == 0 || name.len > TG_TEMPLATE_NAME_MAX) {
        return false;
    }

    for (i = 0; i < name.len; i++) {
        c = name.data[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
              || c == '_' || c == '.' || c == '-'))
        {
            return false;
        }
    }

    return true;
}


static bool
tg_secret_name_valid(tg_str_t name)
{
    char    c;
    size_t  i;

    if (name.len == 0 || name.len > TG_SECRET_NAME || name.data[0] < 'A'
        || name.data[0] > 'Z')
    {
        return false;
    }

    for (i = 1; i < name.len; i++) {
        c = name.data[i];

        if (!((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_')) {
            return false;
        }
    }

    return true;
}


/* Takes prefix off name when it begins with it. */
static bool
tg_take_prefix(tg_str_t *name, tg_str_t prefix)
{
    if (name->len < prefix.len || memcmp(name->data, prefix.data, prefix.len) != 0) {
        return false;
    }

    name->data += prefix.len;
    name->len -= prefix.len;

    return true;
}


static const tg_parameter_t *
tg_find_parameter(const tg_template_t *template, tg_str_t name)
{
    size_t                 i;
    const tg_parameter_t  *parameter;

    for (i = 0; i < template->parameter_count; i++) {
        parameter = &template->parameter[i];

        if (tg_str_eq((tg_str_t) { parameter->len, parameter->name }, name)) {
            return parameter;
        }
    }

    return NULL;
}


static const char *
tg_push_argument(tg_compile_t *c, tg_str_t name, tg_place_e place)
{
    bool                   body;
    const tg_parameter_t  *parameter = tg_find_parameter(c->template, name);

    if (parameter == NULL) {
        c->reason = "the placeholder names no parameter";
        return "unknown_placeholder";
    }

    body = place == TG_PLACE_JSON || place == TG_PLACE_JSON_TEXT;

    if (parameter->text && !body) {
        c->reason = "a parameter of format text may only stand in the body";
        return tg_code_format;
    }

    if (parameter->composite && place != TG_PLACE_JSON) {
        c->reason = "an array or object must be a whole value of the body";
        return tg_code_format;
    }

    return tg_parts_push(c->parts, TG_SOURCE_ARGUMENT, place, parameter->text, name);
}


const char *
tg_push_placeholder(tg_compile_t *c, tg_str_t name, tg_place_e place)
{
    tg_source_e  source;

    while (name.len > 0 && name.data[0] == ' ') {
        name.data++;
        name.len--;
    }

    while (name.len > 0 && name.data[name.len - 1] == ' ') {
        name.len--;
    }

    if (tg_take_prefix(&name, tg_str("args."))) {
        return tg_push_argument(c, name, place);
    }

    if (tg_take_prefix(&name, tg_str("secret."))) {

        if (!tg_secret_name_valid(name)) {
            c->reason = "a secret's name is [A-Z][A-Z0-9_]{0,63}";
            return "unknown_placeholder";
        }

        return tg_parts_push(c->parts, TG_SOURCE_SECRET, place, false, name);
    }

    if (tg_str_eq(name, tg_str("end_user.external_id"))) {
        source = TG_SOURCE_EXTERNAL_ID;

    } else if (tg_take_prefix(&name, tg_str("end_user.traits."))) {
        source = TG_SOURCE_TRAIT;

    } else if (tg_take_prefix(&name, tg_str("var."))) {
        source = TG_SOURCE_VARIABLE;

    } else {
        c->reason = "placeholders are args.x, end_user.external_id, end_user.traits.k, "
                    "secret.NAME and var.name";
        return "unknown_placeholder";
    }

    if (!tg_template_name_valid(name)) {
        c->reason = "the name in the placeholder is not valid";
        return "unknown_placeholder";
    }

    if (source != TG_SOURCE_VARIABLE && !c->template->requires_verified_user) {
        c->reason = "an end_user placeholder needs requires_verified_user: true";
        return "verified_user_required";
    }

    return tg_parts_push(c->parts, source, place, false, name);
}


tg_rc_e
tg_json_inside(tg_buf_t *out, tg_str_t s)
{
    size_t   before = out->len;
    tg_rc_e  rc;

    rc = tg_buf_json_string(out, s);

    if (rc == TG_OK) {
        out->len -= 2;
        memmove(out->data + before, out->data + before + 1, out->len - before);
    }

    return rc;
}


const char *
tg_push_literal(tg_compile_t *c, tg_str_t text, tg_place_e place)
{
    tg_rc_e      rc;
    tg_buf_t     escaped;
    const char  *code;

    if (text.len == 0) {
        return NULL;
    }

    if (place != TG_PLACE_JSON_TEXT) {
        return tg_parts_push(c->parts, TG_SOURCE_LITERAL, place, false, text);
    }

    tg_buf_init(&escaped, TG_TEMPLATE_LITERAL_MAX);
    rc = tg_json_inside(&escaped, text);

    code = rc == TG_OK
           ? tg_parts_push(c->parts, TG_SOURCE_LITERAL, place, false, tg_buf_get(&escaped))
           : "internal_error";

    tg_buf_free(&escaped);

    return code;
}


size_t
tg_find_pair(tg_str_t text, char brace)
{
    size_t  i;

    for (i = 0; i + 1 < text.len; i++) {

        if (text.data[i] == brace && text.data[i + 1] == brace) {
            return i;
        }
    }

    return text.len;
}


const char *
tg_compile_text(tg_compile_t *c, tg_str_t text, tg_place_e place)
{
    size_t       at;
    tg_str_t     piece;
    const char  *code;

    while (text.len > 0) {

        if (c->parts->count > TG_TEMPLATE_PARTS_MAX) {
            c->reason = "too many placeholders";
            return "unknown_placeholder";
        }

        at = tg_find_pair(text, '{');
        piece = (tg_str_t) { at, text.data };
        code = tg_push_literal(c, piece, place);

        if (code != NULL) {
            return code;
        }

        if (place == TG_PLACE_PATH && memchr(piece.data, '?', piece.len) != NULL) {
            place = TG_PLACE_QUERY;
        }

        if (at == text.len) {
            return NULL;
        }

        text.data += at + 2;
        text.len -= at + 2;
        at = tg_find_pair(text, '}');
        piece = (tg_str_t) { at, text.data };

        if (at == text.len) {
            c->reason = "a placeholder is not closed";
            return "unknown_placeholder";
        }

        code = tg_push_placeholder(c, piece, place);

        if (code != NULL) {
            return code;
        }

        text.data += at + 2;
        text.len -= at + 2;
    }

    return NULL;
}


const char *
tg_parts_add(tg_template_t *template, tg_parts_t *parts, tg_str_t text, tg_place_e place,
    const char **reason)
{
    const char    *code;
    tg_compile_t   c = { .template = template, .parts = parts };

    code = tg_compile_text(&c, text, place);
    *reason = c.reason == NULL ? "out of memory" : c.reason;

    return code;
}


tg_rc_e
tg_parts_sample(const tg_parts_t *parts, tg_buf_t *out)
{
    size_t            i;
    const tg_part_t  *part;

    for (i = 0; i < parts->count; i++) {
        part = &parts->parts[i];

        if (part->source == TG_SOURCE_LITERAL) {
            (void) tg_buf_append(out, part->data, part->len);

        } else {
            (void) tg_buf_char(out, 'x');
        }
    }

    return out->error;
}
