/*
 * Compiles tool objects of HTTP tools: every rule of a definition is checked here
 * or called from here. It renders nothing and compiles no JSON Schema.
 */

#include "tg_template.h"

#include <stdlib.h>

#include "tg_clean.h"
#include "tg_json.h"
#include "tg_shape.h"
#include "tg_template_parts.h"
#include "tg_tool_name.h"




bool
tg_define_fail(tg_define_t *d, const char *code, const char *reason, const char *base,
    const char *rest)
{
    (void) tg_template_refuse(d->error, code, reason, base, rest);

    return false;
}


/* True when object has no key but those of names. */
static bool
tg_define_known(tg_define_t *d, const json_t *object, const char *const *names,
    const char *base)
{
    json_t             *value;
    const char         *key;
    const char *const  *name;

    json_object_foreach((json_t *) (uintptr_t) object, key, value) {

        for (name = names; *name != NULL && strcmp(*name, key) != 0; name++) {
            /* looks on */
        }

        if (*name == NULL) {
            return tg_define_fail(d, "unknown_field", "there is no such field", base, key);
        }
    }

    return true;
}


static bool
tg_define_name(tg_define_t *d, const json_t *tool)
{
    tg_str_t  name = tg_json_get_string(tool, "name");

    if (!tg_tool_name_valid(name, TG_TOOL_NAME_HTTP_MAX)) {
        return tg_define_fail(d, "invalid_tool_name",
            "a tool's name matches ^[a-z][a-z0-9_]{0,29}$", "/name", "");
    }

    if (tg_tool_name_builtin(name)) {
        return tg_define_fail(d, "tool_name_conflict",
            "this is the name of a built-in tool", "/name", "");
    }

    d->template->name = strndup(name.data, name.len);

    return d->template->name != NULL
           || tg_define_fail(d, "internal_error", "out of memory", "", "");
}


static bool
tg_define_description(tg_define_t *d, const json_t *tool)
{
    json_t      *value = json_object_get(tool, "description");
    const char  *text = value == NULL ? "" : json_string_value(value);

    if (text == NULL) {
        return tg_define_fail(d, "invalid_type", "description must be a string",
            "/description", "");
    }

    if (tg_clean_length(tg_str_of(text)) > TG_TEMPLATE_DESCRIPTION) {
        return tg_define_fail(d, "invalid_value", "description is over 4000 characters",
            "/description", "");
    }

    d->template->description = strdup(text);

    return d->template->description != NULL
           || tg_define_fail(d, "internal_error", "out of memory", "", "");
}


static bool
tg_define_flag(tg_define_t *d, const json_t *tool, const char *key, bool *flag)
{
    json_t  *value = json_object_get(tool, key);

    if (value == NULL) {
        return true;
    }

    if (!json_is_boolean(value)) {
        return tg_define_fail(d, "invalid_type", "this must be true or false", "/", key);
    }

    *flag = json_is_true(value);

    return true;
}


static bool
tg_define_method(tg_define_t *d, const json_t *config)
{
    size_t                    i;
    json_t                   *value = json_object_get(config, "method");
    const char               *text = json_string_value(value);
    static const char *const  methods[] = { "GET", "POST", "PUT", "PATCH", "DELETE" };

    for (i = 0; text != NULL && i < sizeof(methods) / sizeof(methods[0]); i++) {

        if (strcmp(text, methods[i]) == 0) {
            d->template->method = methods[i];
            return true;
        }
    }

    return tg_define_fail(d, "invalid_method", "GET, POST, PUT, PATCH or DELETE",
        "/config/method", "");
}


/* After the method: it gives the default. */
static bool
tg_define_effect(tg_define_t *d, const json_t *tool)
{
    json_t      *value = json_object_get(tool, "effect");
    const char  *text = json_string_value(value);

    d->template->effect = strcmp(d->template->method, "GET") == 0 ? TG_EFFECT_READ
                                                                  : TG_EFFECT_ACTION;
    if (value == NULL) {
        return true;
    }

    if (text != NULL && strcmp(text, "read") == 0) {
        d->template->effect = TG_EFFECT_READ;
        return true;
    }

    if (text != NULL && strcmp(text, "action") == 0) {
        d->template->effect = TG_EFFECT_ACTION;
        return true;
    }

    return tg_define_fail(d, "invalid_value", "effect is \"read\" or \"action\"", "/effect",
        "");
}


static bool
tg_define_parameters(tg_define_t *d, const json_t *config)
{
    json_t  *value = json_object_get(config, "parameters");

    d->template->parameters = value != NULL ? json_deep_copy(value)
        : json_pack("{s:s, s:{}, s:b}", "type", "object", "properties",
              "additionalProperties", 0);

    if (d->template->parameters == NULL) {
        return tg_define_fail(d, "internal_error", "out of memory", "", "");
    }

    return tg_template_schema(d->template, d->template->parameters, d->error);
}


static bool
tg_define_response(tg_define_t *d, const json_t *config)
{
    char         pointer[sizeof(d->error->pointer)];
    json_t      *response = json_object_get(config, "response");
    const char  *code;

    code = tg_shape_check(response, pointer, sizeof(pointer));
    if (code != NULL) {
        return tg_define_fail(d, code, "the response does not follow its rules",
            "/config/response", pointer);
    }

    if (response != NULL) {
        d->template->response = json_deep_copy(response);

        return d->template->response != NULL
               || tg_define_fail(d, "internal_error", "out of memory", "", "");
    }

    return true;
}


static bool
tg_define_timeout(tg_define_t *d, const json_t *config)
{
    json_t  *value = json_object_get(config, "timeout_ms");

    d->template->timeout_ms = TG_TEMPLATE_TIMEOUT_MS;

    if (value == NULL) {
        return true;
    }

    if (!json_is_integer(value) || json_integer_value(value) < TG_TEMPLATE_TIMEOUT_MIN_MS
        || json_integer_value(value) > TG_TEMPLATE_TIMEOUT_MAX_MS)
    {
        return tg_define_fail(d, "timeout_out_of_range",
            "timeout_ms is a whole number from 100 to 15000", "/config/timeout_ms", "");
    }

    d->template->timeout_ms = (unsigned) json_integer_value(value);

    return true;
}


static bool
tg_define_config(tg_define_t *d, const json_t *tool, const tg_netguard_t *guard)
{
    json_t                   *config = json_object_get(tool, "config");
    static const char *const  names[] = { "method", "url", "headers", "body", "parameters",
        "response", "timeout_ms", NULL };

    if (config == NULL) {
        return tg_define_fail(d, "missing_parameter", "a tool needs a config", "/config", "");
    }

    if (!json_is_object(config)) {
        return tg_define_fail(d, "invalid_type", "config must be an object", "/config", "");
    }

    return tg_define_known(d, config, names, "/config/")
           && tg_define_method(d, config)
           && tg_define_effect(d, tool)
           && tg_define_parameters(d, config)
           && tg_define_url(d, config, guard)
           && tg_define_headers(d, config)
           && tg_define_body(d, config)
           && tg_define_response(d, config)
           && tg_define_timeout(d, config);
}


static bool
tg_define_tool(tg_define_t *d, const json_t *tool, const tg_netguard_t *guard)
{
    tg_template_t            *template = d->template;
    static const char *const  names[] = { "name", "description", "effect",
        "requires_verified_user", "enabled", "config", NULL };

    template->enabled = true;

    if (!json_is_object(tool)) {
        return tg_define_fail(d, "invalid_type", "a tool must be an object", "", "");
    }

    return tg_define_known(d, tool, names, "/")
           && tg_define_name(d, tool)
           && tg_define_description(d, tool)
           && tg_define_flag(d, tool, "requires_verified_user",
                  &template->requires_verified_user)
           && tg_define_flag(d, tool, "enabled", &template->enabled)
           && tg_define_config(d, tool, guard);
}


tg_template_t *
tg_template_compile(const json_t *tool, const tg_netguard_t *guard,
    tg_template_error_t *error)
{
    tg_define_t  d = { .error = error };

    memset(error, 0, sizeof(*error));

    d.template = calloc(1, sizeof(*d.template));
    if (d.template == NULL) {
        (void) tg_define_fail(&d, "internal_error", "out of memory", "", "");
        return NULL;
    }

    if (!tg_define_tool(&d, tool, guard)) {
        tg_template_free(d.template);
        return NULL;
    }

    return d.template;
}


void
tg_template_free(tg_template_t *template)
{
    size_t  i;

    if (template == NULL) {
        return;
    }

    for (i = 0; i < template->parameter_count; i++) {
        free(template->parameter[i].name);
    }

    for (i = 0; i < template->header_count; i++) {
        free(template->headers[i].name);
        tg_parts_free(&template->headers[i].value);
    }

    tg_parts_free(&template->url);
    tg_parts_free(&template->body);
    json_decref(template->parameters);
    json_decref(template->response);
    free(template->description);
    free(template->name);
    free(template);
}


tg_str_t
tg_template_name(const tg_template_t *template)
{
    return tg_str_of(template->name);
}


tg_str_t
tg_template_description(const tg_template_t *template)
{
    return tg_str_of(template->description);
}


tg_effect_e
tg_template_effect(const tg_template_t *template)
{
    return template->effect;
}


bool
tg_template_requires_verified_user(const tg_template_t *template)
{
    return template->requires_verified_user;
}


bool
tg_template_enabled(const tg_template_t *template)
{
    return template->enabled;
}


unsigned
tg_template_timeout_ms(const tg_template_t *template)
{
    return template->timeout_ms;
}


const json_t *
tg_template_parameters(const tg_template_t *template)
{
    return template->parameters;
}


static bool
tg_parts_use_secret(const tg_parts_t *parts, tg_str_t name)
{
    size_t            i;
    const tg_part_t  *part;

    for (i = 0; i < parts->count; i++) {
        part = &parts->parts[i];

        if (part->source == TG_SOURCE_SECRET
            && tg_str_eq((tg_str_t) { part->len, part->data }, name))
        {
            return true;
        }
    }

    return false;
}


bool
tg_template_uses_secret(const tg_template_t *template, tg_str_t name)
{
    size_t  i;

    for (i = 0; i < template->header_count; i++) {
        if (tg_parts_use_secret(&template->headers[i].value, name)) {
            return true;
        }
    }

    return tg_parts_use_secret(&template->url, name)
           || tg_parts_use_secret(&template->body, name);
}


const json_t *
tg_template_response(const tg_template_t *template)
{
    return template->response;
}
