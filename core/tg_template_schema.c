/*
 * The rules for config.parameters beyond JSON Schema itself: how many parameters,
 * their names, their formats, no identity. Whether the schema is one, another unit
 * says.
 */

#include <stdlib.h>

#include "tg_template_parts.h"


typedef struct {
    tg_template_t        *template;
    tg_template_error_t  *error;
    tg_buf_t              pointer;
} tg_schema_rules_t;

static const char  tg_code_schema[] = "invalid_schema";

/* Keywords whose value is a schema, and those that hold schemas by name or place. */
static const char *const  tg_schema_one[] = { "items", "additionalProperties", "not", "if",
    "then", "else", "contains", "propertyNames", "unevaluatedItems",
    "unevaluatedProperties", "additionalItems", NULL };
static const char *const  tg_schema_many[] = { "properties", "patternProperties", "$defs",
    "definitions", "dependentSchemas", "anyOf", "allOf", "oneOf", "prefixItems", "items",
    NULL };

static bool tg_rules_schema(tg_schema_rules_t *rules, const json_t *schema,
    unsigned depth);


static bool
tg_in_list(const char *key, const char *const *list)
{
    for (; *list != NULL; list++) {

        if (strcmp(key, *list) == 0) {
            return true;
        }
    }

    return false;
}


static bool
tg_rules_fail(tg_schema_rules_t *rules, const char *code, const char *reason)
{
    (void) tg_buf_char(&rules->pointer, '\0');
    (void) tg_template_refuse(rules->error, code, reason, "/config/parameters",
        rules->pointer.data == NULL ? "" : rules->pointer.data);

    return false;
}


/* "userId", "user-id" and "user_id" are one name to a person, so to this too. */
static bool
tg_is_identity(const char *name)
{
    char                      plain[16];
    size_t                    n = 0;
    static const char *const  names[] = { "phone", "mobile", "email", "userid",
        "customerid", "accountid", "externalid", NULL };

    for (; *name != '\0'; name++) {

        if (*name == '_' || *name == '-' || *name == ' ' || *name == '.') {
            continue;
        }

        if (n == sizeof(plain) - 1) {
            return false;
        }

        plain[n++] = *name >= 'A' && *name <= 'Z' ? (char) (*name | 0x20) : *name;
    }

    plain[n] = '\0';

    return tg_in_list(plain, names);
}


/* Rules of one schema object at any depth, then of those inside it. */
static bool
tg_rules_children(tg_schema_rules_t *rules, const char *keyword, const json_t *value,
    unsigned depth)
{
    bool         properties = strcmp(keyword, "properties") == 0;
    size_t       i, mark = rules->pointer.len;
    json_t      *child;
    const char  *name;

    json_array_foreach(value, i, child) {
        (void) tg_buf_printf(&rules->pointer, "/%zu", i);

        if (!tg_rules_schema(rules, child, depth + 1)) {
            return false;
        }

        rules->pointer.len = mark;
    }

    if (!json_is_object(value)) {
        return true;
    }

    json_object_foreach((json_t *) (uintptr_t) value, name, child) {
        (void) tg_buf_printf(&rules->pointer, "/%s", name);

        if (properties && rules->template->requires_verified_user
            && tg_is_identity(name))
        {
            return tg_rules_fail(rules, "identity_as_parameter",
                "identity comes from the end user's credential, never from the model");
        }

        if (!tg_rules_schema(rules, child, depth + 1)) {
            return false;
        }

        rules->pointer.len = mark;
    }

    return true;
}


static bool
tg_format_known(const json_t *format)
{
    const char  *text = json_string_value(format);

    return text != NULL && (strcmp(text, "token") == 0 || strcmp(text, "text") == 0);
}


static bool
tg_rules_keyword(tg_schema_rules_t *rules, const char *key, const json_t *value,
    unsigned depth)
{
    if (strcmp(key, "nullable") == 0) {
        return tg_rules_fail(rules, tg_code_schema,
            "nullable is no keyword of JSON Schema: use \"type\":[…,\"null\"]");
    }

    if (strcmp(key, "x-kagent-format") == 0) {
        return tg_format_known(value)
               || tg_rules_fail(rules, tg_code_schema,
                      "x-kagent-format is \"token\" or \"text\"");
    }

    if (tg_in_list(key, tg_schema_many) && !(strcmp(key, "items") == 0
                                             && json_is_object(value)))
    {
        return tg_rules_children(rules, key, value, depth);
    }

    return !tg_in_list(key, tg_schema_one) || tg_rules_schema(rules, value, depth + 1);
}


static bool
tg_rules_schema(tg_schema_rules_t *rules, const json_t *schema, unsigned depth)
{
    size_t       mark = rules->pointer.len;
    json_t      *value;
    const char  *key;

    if (depth > TG_TEMPLATE_SCHEMA_DEPTH) {
        return tg_rules_fail(rules, tg_code_schema, "the schema is nested too deeply");
    }

    json_object_foreach((json_t *) (uintptr_t) schema, key, value) {
        (void) tg_buf_printf(&rules->pointer, "/%s", key);

        if (!tg_rules_keyword(rules, key, value, depth)) {
            return false;
        }

        rules->pointer.len = mark;
    }

    return true;
}


static bool
tg_type_is(const json_t *type, const char *name)
{
    size_t   i;
    json_t  *item;

    if (json_is_string(type)) {
        return strcmp(json_string_value(type), name) == 0;
    }

    json_array_foreach(type, i, item) {

        if (json_is_string(item) && strcmp(json_string_value(item), name) == 0) {
            return true;
        }
    }

    return false;
}


static bool
tg_rules_parameter(tg_schema_rules_t *rules, const char *name, const json_t *schema)
{
    json_t          *type = json_object_get(schema, "type");
    json_t          *format = json_object_get(schema, "x-kagent-format");
    tg_parameter_t  *parameter;
    static const char *const  reserved[] = { "args", "end_user", "secret", "var", "sys",
                                             NULL };

    if (tg_in_list(name, reserved)) {
        return tg_rules_fail(rules, "reserved_name", "this name is reserved");
    }

    if (!tg_template_name_valid(tg_str_of(name))) {
        return tg_rules_fail(rules, tg_code_schema,
            "a parameter's name is 1 to 64 of letters, digits and _.-");
    }

    if (!json_is_object(schema) && !json_is_boolean(schema)) {
        return tg_rules_fail(rules, tg_code_schema, "a parameter must be a schema");
    }

    parameter = &rules->template->parameter[rules->template->parameter_count];
    parameter->name = strdup(name);

    if (parameter->name == NULL) {
        return tg_rules_fail(rules, "internal_error", "out of memory");
    }

    parameter->len = strlen(name);
    parameter->text = json_is_string(format)
                      && strcmp(json_string_value(format), "text") == 0;
    parameter->composite = tg_type_is(type, "array") || tg_type_is(type, "object")
                           || (type == NULL && (json_object_get(schema, "items") != NULL
                               || json_object_get(schema, "properties") != NULL));
    rules->template->parameter_count++;

    return true;
}


static bool
tg_rules_top(tg_schema_rules_t *rules, const json_t *parameters)
{
    size_t       mark;
    json_t      *type = json_object_get(parameters, "type"), *schema;
    json_t      *properties = json_object_get(parameters, "properties");
    const char  *name;

    if (!json_is_object(parameters)) {
        return tg_rules_fail(rules, tg_code_schema, "parameters must be a JSON Schema");
    }

    if (!json_is_string(type) || !tg_type_is(type, "object")) {
        (void) tg_buf_cstr(&rules->pointer, "/type");
        return tg_rules_fail(rules, tg_code_schema,
            "parameters must have \"type\":\"object\"");
    }

    (void) tg_buf_cstr(&rules->pointer, "/properties");

    if (properties != NULL && !json_is_object(properties)) {
        return tg_rules_fail(rules, tg_code_schema, "properties must be an object");
    }

    if (json_object_size(properties) > TG_TEMPLATE_MAX_PARAMETERS) {
        return tg_rules_fail(rules, "too_many_parameters", "at most 8 parameters");
    }

    mark = rules->pointer.len;

    json_object_foreach(properties, name, schema) {
        (void) tg_buf_printf(&rules->pointer, "/%s", name);

        if (!tg_rules_parameter(rules, name, schema)) {
            return false;
        }

        rules->pointer.len = mark;
    }

    rules->pointer.len = 0;

    return tg_rules_schema(rules, parameters, 0);
}


bool
tg_template_schema(tg_template_t *template, const json_t *parameters,
    tg_template_error_t *error)
{
    bool               good;
    tg_schema_rules_t  rules = { .template = template, .error = error };

    /* room for every step of the way down; longer names end it early */
    tg_buf_init(&rules.pointer, 64 * 1024);
    good = tg_rules_top(&rules, parameters);
    tg_buf_free(&rules.pointer);

    return good;
}
