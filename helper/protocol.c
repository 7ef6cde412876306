/*
 * Parsing and checking of calls; see protocol.h. Every refusal names what is wrong
 * and what is allowed, so that a model can do better the next time.
 */

#include <stdarg.h>

#include "protocol.h"
#include "tg_frame.h"
#include "tg_ids.h"


#define TGD_CALL_ID_MAX  128

typedef struct {
    const char  *name;
    bool       (*parse)(json_t *arguments, tgd_call_t *call, tgd_error_t *error);
} tgd_tool_def_t;

static bool parse_sandbox_status(json_t *arguments, tgd_call_t *call,
    tgd_error_t *error);
static bool parse_run_command(json_t *arguments, tgd_call_t *call, tgd_error_t *error);
static bool parse_files(json_t *arguments, tgd_call_t *call, tgd_error_t *error);

/* in the order of tgd_tool_e */
static const tgd_tool_def_t  tools[] = {
    { "sandbox_status", parse_sandbox_status },
    { "run_command", parse_run_command },
    { "workspace_status", parse_files },
    { "list_workspace_files", parse_files },
    { "read_workspace_file", parse_files },
    { "write_workspace_file", parse_files },
    { "write_workspace_files", parse_files },
    { "edit_workspace_file", parse_files },
    { "multi_edit_workspace_file", parse_files },
    { "lint_workspace_file", parse_files },
    { "search_workspace_files", parse_files },
    { "delete_workspace_file", parse_files },
};

static const char *const  call_fields[] = {
    "id", "tool", "arguments", "project", "account", "session", "invocation_id",
    "stream", NULL
};

static const char *const  run_fields[] = {
    "command", "cwd", "timeout", "env", "background", NULL
};

static const char *const  no_fields[] = { NULL };


const char *
tgd_tool_name(tgd_tool_e tool)
{
    return tools[tool].name;
}


void
tgd_error_set(tgd_error_t *error, const char *type, const char *field,
    const char *format, ...)
{
    va_list  args;

    error->type = type;
    error->field = field;

    va_start(args, format);
    (void) vsnprintf(error->message, sizeof(error->message), format, args);
    va_end(args);
}


void
tgd_error_json(const tgd_error_t *error, tg_buf_t *out)
{
    (void) tg_buf_printf(out, "{\"ok\":false,\"error_type\":\"%s\",\"error_message\":",
                         error->type);
    (void) tg_buf_json_string(out, tg_str_of(error->message));
    if (error->field != NULL) {
        (void) tg_buf_printf(out, ",\"field\":\"%s\"", error->field);
    }
    (void) tg_buf_char(out, '}');
}


static bool
refuse(tgd_error_t *error, const char *type, const char *field, const char *why)
{
    tgd_error_set(error, type, field, "%s%s%s", field == NULL ? "" : field,
                  field == NULL ? "" : ": ", why);
    return false;
}


static json_t *
load_object(tg_str_t text)
{
    json_t        *root;
    json_error_t   error;

    /* NUL is let through here so that the field can be named that holds it */
    root = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES|JSON_ALLOW_NUL,
                      &error);

    if (root != NULL && !json_is_object(root)) {
        json_decref(root);
        return NULL;
    }

    return root;
}


/* every key must be one of names */
static bool
known_fields(json_t *object, const char *const *names, const char *type,
    tgd_error_t *error)
{
    char         allowed[128];
    json_t      *value;
    size_t       i, n;
    const char  *key;

    json_object_foreach(object, key, value) {
        for (i = 0; names[i] != NULL && strcmp(names[i], key) != 0; i++) {
            /* void */
        }

        if (names[i] == NULL) {
            for (i = 0, n = 0; names[i] != NULL && n < sizeof(allowed) - 1; i++) {
                n += (size_t) snprintf(allowed + n, sizeof(allowed) - n, "%s%s",
                                       i == 0 ? "" : ", ", names[i]);
            }
            tgd_error_set(error, type, NULL, "unknown field; allowed: %s",
                          i == 0 ? "none" : allowed);
            return false;
        }
    }

    return true;
}


/* a label of the envelope: required, may be empty when that has a meaning */
static bool
parse_label(json_t *root, const char *name, bool may_be_empty, tg_str_t *label,
    tgd_error_t *error)
{
    json_t  *value;

    value = json_object_get(root, name);
    if (!json_is_string(value)) {
        tgd_error_set(error, "bad_request", name, "%s: a string is needed", name);
        return false;
    }

    label->data = json_string_value(value);
    label->len = json_string_length(value);

    if (label->len == 0 ? !may_be_empty : !tg_id_label_valid(*label)) {
        tgd_error_set(error, "bad_request", name,
                      "%s: 1 to 64 of A-Z a-z 0-9 _ . : - are allowed", name);
        return false;
    }

    return true;
}


static bool
parse_call_id(json_t *root, tgd_call_t *call, tgd_error_t *error)
{
    size_t   i;
    json_t  *value;

    value = json_object_get(root, "id");
    call->id.data = json_string_value(value);
    call->id.len = json_string_length(value);

    if (call->id.data == NULL || call->id.len > TGD_CALL_ID_MAX) {
        return refuse(error, "bad_request", "id", "a string of at most 128 is needed");
    }

    for (i = 0; i < call->id.len; i++) {
        if (call->id.data[i] <= ' ' || call->id.data[i] > '~') {
            return refuse(error, "bad_request", "id", "only visible ASCII is allowed");
        }
    }

    return true;
}


static bool
parse_tool(json_t *root, tgd_call_t *call, tgd_error_t *error)
{
    json_t      *arguments;
    size_t       i;
    const char  *name;

    name = json_string_value(json_object_get(root, "tool"));
    arguments = json_object_get(root, "arguments");

    if (name == NULL) {
        return refuse(error, "bad_request", "tool", "a string is needed");
    }

    for (i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
        if (strcmp(tools[i].name, name) == 0) {
            break;
        }
    }

    if (i == sizeof(tools) / sizeof(tools[0])) {
        return refuse(error, "unknown_tool", NULL,
                      "no such tool; there are sandbox_status, run_command and the tools"
                      " of the workspace");
    }

    if (!json_is_object(arguments)) {
        return refuse(error, "bad_request", "arguments", "an object is needed");
    }

    call->tool = (tgd_tool_e) i;
    return tools[i].parse(arguments, call, error);
}


static bool
parse_sandbox_status(json_t *arguments, tgd_call_t *call, tgd_error_t *error)
{
    (void) call;

    return known_fields(arguments, no_fields, "invalid_argument", error);
}


/* the worker checks them, with what it finds in the workspace */
static bool
parse_files(json_t *arguments, tgd_call_t *call, tgd_error_t *error)
{
    (void) error;

    call->arguments = arguments;
    return true;
}


static bool
parse_command(json_t *arguments, tgd_call_t *call, tgd_error_t *error)
{
    json_t  *value;

    value = json_object_get(arguments, "command");

    if (value == NULL || json_is_null(value)) {
        return refuse(error, "command_required", "command", "is required");
    }

    if (!json_is_string(value)) {
        return refuse(error, "invalid_argument", "command", "must be a string");
    }

    call->command.data = json_string_value(value);
    call->command.len = json_string_length(value);

    if (call->command.len == strspn(call->command.data, " \t\r\n")) {
        return refuse(error, "command_required", "command", "is required");
    }

    if (memchr(call->command.data, '\0', call->command.len) != NULL) {
        return refuse(error, "invalid_argument", "command", "must not hold NUL");
    }

    if (call->command.len > TGD_COMMAND_MAX) {
        return refuse(error, "command_too_long", "command",
                      "over 98304 bytes; put the script into a file");
    }

    return true;
}


/* true when path has a component ".." */
static bool
path_climbs(const char *path)
{
    size_t  n;

    while (*path != '\0') {
        path += strspn(path, "/");
        n = strcspn(path, "/");
        if (n == 2 && path[0] == '.' && path[1] == '.') {
            return true;
        }
        path += n;
    }

    return false;
}


static bool
path_below(const char *path, const char *top)
{
    size_t  n;

    n = strlen(top);
    return strncmp(path, top, n) == 0 && (path[n] == '\0' || path[n] == '/');
}


static bool
parse_cwd(json_t *arguments, tgd_call_t *call, tgd_error_t *error)
{
    json_t      *value;
    const char  *path;

    value = json_object_get(arguments, "cwd");

    if (value == NULL || json_is_null(value)) {
        (void) snprintf(call->cwd, sizeof(call->cwd), TGD_CWD_DEFAULT);
        return true;
    }

    if (!json_is_string(value)) {
        return refuse(error, "invalid_argument", "cwd", "must be a string");
    }

    path = json_string_value(value);

    if (strlen(path) != json_string_length(value)) {
        return refuse(error, "invalid_argument", "cwd", "must not hold NUL");
    }

    if (strlen(path) > TGD_CWD_MAX) {
        return refuse(error, "invalid_argument", "cwd", "over 1024 bytes");
    }

    if (path_climbs(path)) {
        return refuse(error, "invalid_argument", "cwd", "must not hold \"..\"");
    }

    if (path[0] == '/') {
        if (!path_below(path, "/workspace") && !path_below(path, "/tmp")) {
            return refuse(error, "invalid_argument", "cwd",
                          "must be relative, or below /workspace or /tmp");
        }
        (void) snprintf(call->cwd, sizeof(call->cwd), "%s", path);
        return true;
    }

    (void) snprintf(call->cwd, sizeof(call->cwd), "/workspace/%s", path);
    return true;
}


static bool
parse_timeout(json_t *arguments, tgd_call_t *call, tgd_error_t *error)
{
    json_t  *value;

    call->timeout_s = TGD_TIMEOUT_DEFAULT_S;
    value = json_object_get(arguments, "timeout");

    if (value == NULL || json_is_null(value)) {
        return true;
    }

    if (!json_is_integer(value)
        || json_integer_value(value) < TGD_TIMEOUT_MIN_S
        || json_integer_value(value) > TGD_TIMEOUT_MAX_S)
    {
        return refuse(error, "invalid_argument", "timeout",
                      "must be a whole number of seconds from 1 to 600");
    }

    call->timeout_s = json_integer_value(value);
    return true;
}


static bool
env_name_valid(const char *name)
{
    const char  *p;

    for (p = name; *p != '\0'; p++) {
        if (!((*p >= 'A' && *p <= 'Z') || (*p >= 'a' && *p <= 'z') || *p == '_'
              || (p != name && *p >= '0' && *p <= '9')))
        {
            return false;
        }
    }

    return p != name && strncmp(name, "LD_", 3) != 0;
}


/* ours; those that the caller sets too are the caller's, but for PATH */
static const char *const  env_base[][2] = {
    { "PATH", "/usr/local/bin:/usr/bin:/bin" },
    { "HOME", "/tmp" },
    /* not LANG: a dozen files less to open for every program */
    { "LC_CTYPE", "C.UTF-8" },
    { "TERM", "dumb" },
    { "USER", "sandbox" },
    /* the shell looks itself up in the user database when it is not told */
    { "SHELL", "/bin/bash" },
};


static void
env_add(tgd_call_t *call, const char *name, const char *value)
{
    (void) tg_buf_cstr(&call->env, name);
    (void) tg_buf_char(&call->env, '=');
    (void) tg_buf_append(&call->env, value, strlen(value) + 1);
    call->env_count++;
}


static bool
parse_env(json_t *arguments, tgd_call_t *call, tgd_error_t *error)
{
    json_t      *env, *value;
    size_t       i;
    const char  *name;

    env = json_object_get(arguments, "env");
    if (env != NULL && !json_is_null(env) && !json_is_object(env)) {
        return refuse(error, "invalid_argument", "env", "must be an object of strings");
    }

    for (i = 0; i < sizeof(env_base) / sizeof(env_base[0]); i++) {
        if (i == 0 || json_object_get(env, env_base[i][0]) == NULL) {
            env_add(call, env_base[i][0], env_base[i][1]);
        }
    }

    json_object_foreach(env, name, value) {
        if (!env_name_valid(name)) {
            return refuse(error, "invalid_argument", "env",
                          "names are letters, digits and _, and do not begin with LD_");
        }

        if (!json_is_string(value)
            || strlen(json_string_value(value)) != json_string_length(value))
        {
            return refuse(error, "invalid_argument", "env",
                          "values must be strings without NUL");
        }

        if (strcmp(name, "PATH") != 0) {
            env_add(call, name, json_string_value(value));
        }

        if (call->env_count > TGD_ENV_COUNT_MAX) {
            return refuse(error, "invalid_argument", "env",
                          "over 100 variables with the standard ones");
        }

        if (call->env.error != TG_OK) {
            return refuse(error, "invalid_argument", "env", "over 32768 bytes together");
        }
    }

    return true;
}


static bool
parse_run_command(json_t *arguments, tgd_call_t *call, tgd_error_t *error)
{
    json_t  *background;

    if (!known_fields(arguments, run_fields, "invalid_argument", error)
        || !parse_command(arguments, call, error)
        || !parse_cwd(arguments, call, error)
        || !parse_timeout(arguments, call, error)
        || !parse_env(arguments, call, error))
    {
        return false;
    }

    background = json_object_get(arguments, "background");

    if (background != NULL && !json_is_null(background) && !json_is_boolean(background)) {
        return refuse(error, "invalid_argument", "background", "must be true or false");
    }

    if (json_is_true(background)) {
        return refuse(error, "background_not_supported", "background",
                      "jobs in the background are not supported; run it without");
    }

    return true;
}


static bool
parse_envelope(json_t *root, tgd_call_t *call, tgd_error_t *error)
{
    json_t  *stream;

    if (!known_fields(root, call_fields, "bad_request", error)
        || !parse_call_id(root, call, error)
        || !parse_label(root, "project", false, &call->project, error)
        || !parse_label(root, "account", true, &call->account, error)
        || !parse_label(root, "session", true, &call->session, error)
        || !parse_label(root, "invocation_id", true, &call->invocation_id, error))
    {
        return false;
    }

    stream = json_object_get(root, "stream");
    if (stream != NULL && !json_is_boolean(stream)) {
        return refuse(error, "bad_request", "stream", "must be true or false");
    }

    call->stream = json_is_true(stream);
    return true;
}


bool
tgd_call_parse(tg_str_t payload, tgd_call_t *call, tgd_error_t *error)
{
    memset(call, 0, sizeof(*call));
    error->type = NULL;
    tg_buf_init(&call->env, TGD_ENV_BYTES_MAX);

    call->root = load_object(payload);
    if (call->root == NULL) {
        return refuse(error, "bad_request", NULL,
                      "the call must be one JSON object without repeated keys");
    }

    if (!parse_envelope(call->root, call, error) || !parse_tool(call->root, call, error))
    {
        tgd_call_free(call);
        return false;
    }

    return true;
}


void
tgd_call_free(tgd_call_t *call)
{
    tg_buf_free(&call->env);
    json_decref(call->root);
    call->root = NULL;
}


bool
tgd_cancel_parse(tg_str_t payload, json_t **root, tg_str_t *id)
{
    json_t  *value;

    *root = load_object(payload);
    value = json_object_get(*root, "id");

    if (!json_is_string(value)) {
        json_decref(*root);
        *root = NULL;
        return false;
    }

    id->data = json_string_value(value);
    id->len = json_string_length(value);
    return true;
}


bool
tgd_hello_valid(tg_str_t payload)
{
    bool     valid;
    json_t  *root;

    root = load_object(payload);
    valid = json_integer_value(json_object_get(root, "protocol")) == TG_FRAME_PROTOCOL;
    json_decref(root);

    return valid;
}
