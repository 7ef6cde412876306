/*
 * tg-probe template: defines a tool, checks the arguments as before a call and
 * renders the request. Nothing is sent.
 */

#include <string.h>

#include "tg_probe.h"
#include "tg_schema.h"
#include "tg_template.h"


#define PROBE_SECRETS  32
#define PROBE_HOSTS    16

typedef struct {
    tg_template_secret_t  secrets[PROBE_SECRETS];
    tg_str_t              hosts[PROBE_SECRETS][PROBE_HOSTS];
    size_t                count;
} probe_secrets_t;


static tg_str_t
json_str(const json_t *value)
{
    return (tg_str_t) { json_string_length(value), json_string_value(value) };
}


/* The short form: GET, every argument a required token string. */
static json_t *
short_tool(const json_t *input)
{
    json_t      *properties = json_object(), *required = json_array(), *value;
    const char  *name;

    json_object_foreach(json_object_get(input, "args"), name, value) {
        json_object_set_new(properties, name, json_pack("{s:s}", "type", "string"));
        json_array_append_new(required, json_string(name));
    }

    return json_pack("{s:s, s:{s:s, s:O, s:{s:s, s:o, s:o, s:b}}}", "name", "probe",
        "config", "method", "GET", "url", json_object_get(input, "url"), "parameters",
        "type", "object", "properties", properties, "required", required,
        "additionalProperties", 0);
}


/* A whole tool object, or only its config with the tool's own members beside. */
static json_t *
long_tool(const json_t *given, const json_t *line)
{
    size_t                    i;
    json_t                   *tool, *config, *value;
    static const char *const  own[] = { "name", "description", "effect",
        "requires_verified_user", "enabled" };

    if (!json_is_object(given) || json_object_get(given, "config") != NULL) {
        tool = json_deep_copy(given);

        if (json_is_object(tool) && json_object_get(tool, "name") == NULL) {
            json_object_set_new(tool, "name", json_string("probe"));
        }

        return tool;
    }

    config = json_deep_copy(given);
    tool = json_pack("{s:s, s:b}", "name", "probe", "requires_verified_user",
        json_is_object(json_object_get(line, "end_user")));

    for (i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        value = json_object_get(config, own[i]);

        if (value != NULL) {
            json_object_set(tool, own[i], value);
            json_object_del(config, own[i]);
        }
    }

    json_object_set_new(tool, "config", config);

    return tool;
}


static bool
read_secrets(const json_t *map, probe_secrets_t *out)
{
    size_t                 i;
    json_t                *value, *host;
    const char            *name;
    tg_template_secret_t  *secret;

    out->count = 0;

    json_object_foreach((json_t *) (uintptr_t) map, name, value) {

        if (out->count == PROBE_SECRETS) {
            return false;
        }

        secret = &out->secrets[out->count];
        *secret = (tg_template_secret_t) { tg_str_of(name),
            json_str(json_object_get(value, "value")), out->hosts[out->count], 0 };

        json_array_foreach(json_object_get(value, "allowed_hosts"), i, host) {

            if (i == PROBE_HOSTS || !json_is_string(host)) {
                return false;
            }

            out->hosts[out->count][secret->allowed_host_count++] = json_str(host);
        }

        out->count++;
    }

    return true;
}


static json_t *
deny(const char *code, const char *pointer, const char *detail)
{
    return json_pack("{s:s, s:s, s:s*, s:s*}", "verdict", "deny", "code", code, "pointer",
        pointer, "detail", detail);
}


/* Check 2 of a call: digits, the schema, the formats. NULL when the call may go on. */
static json_t *
check_arguments(const tg_template_t *template, json_t *args)
{
    bool                valid;
    char                pointer[256];
    const char         *reason;
    tg_schema_t        *schema;
    tg_schema_errors_t  errors = { .count = 0 };

    schema = tg_schema_compile(tg_template_parameters(template), TG_SCHEMA_2020_12,
        &errors);
    if (schema == NULL) {
        return deny("invalid_schema", errors.errors[0].pointer, errors.errors[0].reason);
    }

    if (tg_template_fold_digits(args) != TG_OK) {
        tg_schema_free(schema);
        return deny("invalid_arguments", NULL, NULL);
    }

    valid = tg_schema_validate(schema, args, &errors);
    tg_schema_free(schema);

    if (!valid) {
        return deny("invalid_arguments", errors.count > 0 ? errors.errors[0].pointer : "",
            errors.count > 0 ? errors.errors[0].reason : NULL);
    }

    reason = tg_template_check_formats(template, args, pointer, sizeof(pointer));

    return reason == NULL ? NULL : deny("invalid_arguments", pointer, reason);
}


static json_t *
show(const tg_template_request_t *request)
{
    size_t                       i;
    json_t                      *headers = json_object(), *out;
    const tg_template_header_t  *header;

    for (i = 0; i < request->header_count; i++) {
        header = &request->headers[i];
        json_object_setn_new(headers, header->name.data, header->name.len,
            json_stringn(header->value.data, header->value.len));
    }

    out = json_pack("{s:s, s:s, s:s%, s:s%, s:o}", "verdict", "allow", "method",
        request->method, "url", request->url.data, request->url.len, "target",
        request->parts.target.data, request->parts.target.len, "headers", headers);

    if (out != NULL && request->has_body) {
        json_object_set_new(out, "body",
            json_stringn(request->body.data, request->body.len));
    }

    return out;
}


static json_t *
call(const tg_template_t *template, const json_t *line, json_t *args)
{
    json_t                 *out;
    const char             *code;
    probe_secrets_t         secrets;
    tg_template_values_t    values;
    tg_template_request_t   request;

    if (!read_secrets(json_object_get(line, "secrets"), &secrets)) {
        return tg_probe_error("secrets are not understood");
    }

    out = check_arguments(template, args);
    if (out != NULL) {
        return out;
    }

    values = (tg_template_values_t) { args, json_object_get(line, "end_user"),
        json_object_get(line, "var"), secrets.secrets, secrets.count, NULL };

    code = tg_template_render(template, &values, &request);
    out = code == NULL ? show(&request) : deny(code, NULL, request.detail);
    tg_template_request_free(&request);

    return out;
}


json_t *
tg_probe_template(const json_t *line)
{
    json_t               *input = json_object_get(line, "input"), *tool, *args, *out;
    json_t               *given = json_object_get(line, "tool");
    tg_template_t        *template;
    tg_template_error_t   error;

    if (given == NULL && !json_is_string(json_object_get(input, "url"))) {
        return NULL;
    }

    tool = given == NULL ? short_tool(input) : long_tool(given, line);
    args = json_object_get(given == NULL ? input : line, "args");
    args = args == NULL ? json_object() : json_deep_copy(args);

    template = tg_template_compile(tool, NULL, &error);
    out = template == NULL ? deny(error.code, error.pointer, error.reason)
                           : call(template, line, args);

    tg_template_free(template);
    json_decref(args);
    json_decref(tool);

    return out;
}
