/*
 * Arguments of file tools, and the pieces that their answers are made of.
 */

#include "files/state.h"
#include "files/stage.h"
#include "files/work.h"


#define TGD_ALLOWED_SHOWN  160
#define TGD_OUT_TEXT_REST  1024       /* of an answer, kept for what follows a text */


bool
tgd_work_fail(tgd_work_t *work, const char *type, const char *field, const char *message)
{
    tgd_error_set(&work->error, type, field, "%s%s%s", field == NULL ? "" : field,
                  field == NULL ? "" : ": ", message);
    return false;
}


bool
tgd_arg_known(tgd_work_t *work, const char *const *names)
{
    char         allowed[TGD_ALLOWED_SHOWN];
    json_t      *value;
    size_t       i, n;
    const char  *key;

    json_object_foreach(work->arguments, key, value) {
        for (i = 0; names[i] != NULL && strcmp(names[i], key) != 0; i++) {
            /* void */
        }

        if (names[i] != NULL) {
            continue;
        }

        allowed[0] = '\0';
        for (i = 0, n = 0; names[i] != NULL && n < sizeof(allowed) - 1; i++) {
            n += (size_t) snprintf(allowed + n, sizeof(allowed) - n, "%s%s",
                                   i == 0 ? "" : ", ", names[i]);
        }
        tgd_error_set(&work->error, "invalid_argument", NULL,
                      "unknown field; allowed: %s", i == 0 ? "none" : allowed);
        return false;
    }

    return true;
}


static json_t *
arg_get(const tgd_work_t *work, const char *name)
{
    json_t  *value;

    value = json_object_get(work->arguments, name);
    return json_is_null(value) ? NULL : value;
}


bool
tgd_arg_string(tgd_work_t *work, const char *name, bool required, tg_str_t *value)
{
    json_t  *json;

    json = arg_get(work, name);
    *value = tg_null_str;

    if (json == NULL) {
        return required ? tgd_work_fail(work, "invalid_argument", name, "is required")
                        : true;
    }

    if (!json_is_string(json)) {
        return tgd_work_fail(work, "invalid_argument", name, "must be a string");
    }

    value->data = json_string_value(json);
    value->len = json_string_length(json);
    return true;
}


/* of what is written into files: none could be edited again that has one */
bool
tgd_arg_no_nul(tgd_work_t *work, const char *name, tg_str_t value)
{
    return memchr(value.data, '\0', value.len) == NULL
           || tgd_work_fail(work, "invalid_argument", name, "must not hold NUL");
}


bool
tgd_arg_flag(tgd_work_t *work, const char *name, bool *value)
{
    json_t  *json;

    json = arg_get(work, name);
    if (json == NULL) {
        return true;
    }

    if (!json_is_boolean(json)) {
        return tgd_work_fail(work, "invalid_argument", name, "must be true or false");
    }

    *value = json_is_true(json);
    return true;
}


bool
tgd_arg_number(tgd_work_t *work, const char *name, int64_t min, int64_t max,
    int64_t *value)
{
    json_t  *json;

    json = arg_get(work, name);

    if (json != NULL) {
        if (!json_is_integer(json)) {
            return tgd_work_fail(work, "invalid_argument", name,
                                 "must be a whole number");
        }
        *value = json_integer_value(json);
    }

    if (*value < min) {
        *value = min;
    }
    if (*value > max) {
        *value = max;
    }

    return true;
}


/* what tg_file_path leaves to its callers */
static bool
path_names_fit(tgd_work_t *work, const char *path)
{
    char         name[TG_FILE_NAME_MAX + 1];
    size_t       n, count;
    const char  *p;

    for (p = path, count = 0; *p != '\0'; p += n + (p[n] == '/')) {
        n = strcspn(p, "/");

        if (++count > TGD_PATH_NAMES_MAX) {
            tgd_error_set(&work->error, "invalid_path", "path",
                          "path: must have at most %d components", TGD_PATH_NAMES_MAX);
            return false;
        }

        memcpy(name, p, n);
        name[n] = '\0';

        if (tgd_stage_is_temp(name)) {
            return tgd_work_fail(work, "invalid_path", "path",
                                 "this name is kept for files on their way");
        }
    }

    return true;
}


bool
tgd_arg_path_of(tgd_work_t *work, tg_str_t given, char path[TG_FILE_PATH_MAX + 1])
{
    switch (tg_file_path(given, path)) {

    case TG_FILE_PATH_OK:
        break;

    case TG_FILE_PATH_OUTSIDE:
        return tgd_work_fail(work, "path_outside_workspace", "path",
                             "workspace path must stay inside the workspace root: relative"
                             " or below /workspace, without \"..\"");

    default:
        return tgd_work_fail(work, "invalid_path", "path",
                             "must be 1 to 4095 bytes without NUL, each component at most"
                             " 255");
    }

    return path_names_fit(work, path);
}


bool
tgd_arg_path(tgd_work_t *work, bool required, char path[TG_FILE_PATH_MAX + 1])
{
    tg_str_t  given;

    if (!tgd_arg_string(work, "path", required, &given)) {
        return false;
    }

    if (given.data == NULL) {
        given = tg_str(".");
    }

    return tgd_arg_path_of(work, given, path);
}


void
tgd_work_knows(tgd_work_t *work, const char *path, const char *hash)
{
    tgd_state_put(&work->states, path, hash);
}


void
tgd_out_path(tg_buf_t *out, const char *member, const char *path)
{
    (void) tg_buf_printf(out, "\"%s\":", member);
    (void) tg_file_path_json(out, tg_str_of(path));
}


void
tgd_out_given(tgd_work_t *work, const char *member)
{
    tg_str_t  given;

    if (!tgd_arg_string(work, "path", false, &given) || given.data == NULL) {
        given = tg_str(".");
    }

    (void) tg_buf_printf(&work->out, "\"%s\":", member);
    (void) tg_buf_json_string(&work->out, given);
}


void
tgd_out_absolute(tg_buf_t *out, const char *path)
{
    char  absolute[TG_FILE_PATH_MAX + 16];

    (void) snprintf(absolute, sizeof(absolute), "/workspace/%s", path);
    tgd_out_path(out, "absolute_path", absolute);
}


void
tgd_out_text(tg_buf_t *out, const char *member, tg_str_t text, size_t max_chars,
    size_t preview_chars)
{
    size_t    chars, shown, bytes, room;
    tg_buf_t  json;

    chars = tg_file_chars(text);
    shown = chars <= max_chars ? chars : preview_chars;

    /* escapes may make a text six times as long; what is in the answer already stays */
    room = out->max - out->len;
    room = room > TGD_OUT_TEXT_REST ? room - TGD_OUT_TEXT_REST : 1;
    tg_buf_init(&json, room < TGD_WORK_TEXT_MAX ? room : TGD_WORK_TEXT_MAX);

    for ( ;; ) {
        bytes = tg_file_head(text, shown);
        (void) tg_buf_json_string(&json, (tg_str_t) { bytes, text.data });
        if (json.error != TG_E_LIMIT || shown == 0) {
            break;
        }
        tg_buf_reset(&json);
        shown /= 2;
    }

    (void) tg_buf_printf(out, ",\"%s\":", member);
    (void) tg_buf_str(out, tg_buf_get(&json));
    (void) tg_buf_printf(out, ",\"truncated\":%s,\"original_chars\":%zu,"
                         "\"preview_chars\":%zu", shown == chars ? "false" : "true",
                         chars, shown);
    tg_buf_free(&json);
}
