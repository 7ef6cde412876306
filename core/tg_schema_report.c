/*
 * What a validation says: errors with the pointer into the instance, the keyword
 * and a reason in words that help a model mend its arguments. It must not decide
 * whether anything is valid.
 */

#include "tg_schema_internal.h"
#include "tg_utf8.h"

#include <stdio.h>


#define TG_SCHEMA_MAX_QUOTED  60        /* bytes of a name or value in a reason */
#define TG_SCHEMA_ELLIPSIS    "..."

static tg_schema_error_t *tg_schema_next_error(tg_schema_eval_t *e);
static void tg_schema_pointer(const tg_schema_path_t *path, char *out, size_t size);
static void tg_schema_quote(const char *text, size_t len, char *out, size_t size);
static void tg_schema_cut(char *text);


/* True while looking for more errors can still tell something new. */
bool
tg_schema_going(const tg_schema_eval_t *e)
{
    return !e->stopped && e->quiet == 0 && e->errors != NULL
           && e->errors->count < TG_SCHEMA_MAX_ERRORS;
}


/* Always false, so that a check can return it. */
bool
tg_schema_report(tg_schema_eval_t *e, const tg_schema_path_t *path, const char *keyword,
    const char *fmt, ...)
{
    va_list             args;
    tg_schema_error_t  *error;

    error = tg_schema_next_error(e);

    if (error != NULL) {
        tg_schema_pointer(path, error->pointer, sizeof(error->pointer));
        error->keyword = keyword;

        va_start(args, fmt);
        tg_schema_set_reason(error, fmt, args);
        va_end(args);
    }

    return false;
}


/* A bound was hit: reported even from a branch that may fail, and only once. */
bool
tg_schema_stop(tg_schema_eval_t *e, const tg_schema_path_t *path, const char *reason)
{
    tg_schema_error_t  *error;

    if (e->stopped) {
        return false;
    }

    e->stopped = true;

    if (e->errors == NULL) {
        return false;
    }

    if (e->errors->count == TG_SCHEMA_MAX_ERRORS) {
        e->errors->count--;
    }

    error = &e->errors->errors[e->errors->count++];
    tg_schema_pointer(path, error->pointer, sizeof(error->pointer));
    error->keyword = "limit";
    snprintf(error->reason, sizeof(error->reason), "%s", reason);

    return false;
}


bool
tg_schema_report_type(tg_schema_eval_t *e, const tg_schema_path_t *path, uint8_t types,
    uint8_t got)
{
    char         text[120];
    size_t       i, len;
    const char  *name;

    static const struct {
        uint8_t      types;
        const char  *name;
    }  names[] = {
        { TG_SCHEMA_OBJECT, "object" },
        { TG_SCHEMA_ARRAY, "array" },
        { TG_SCHEMA_STRING, "string" },
        { TG_SCHEMA_NUMBER, "number" },
        { TG_SCHEMA_INTEGER, "integer" },
        { TG_SCHEMA_FRACTION, "number" },
        { TG_SCHEMA_BOOLEAN, "boolean" },
        { TG_SCHEMA_NULL, "null" }
    };

    if (!tg_schema_going(e)) {
        return false;
    }

    name = "";
    len = 0;
    text[0] = '\0';

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {

        if (got == names[i].types) {
            name = names[i].name;
        }

        if ((types & names[i].types) == names[i].types) {
            types = types & (uint8_t) ~names[i].types;
            len += (size_t) snprintf(text + len, sizeof(text) - len, "%s%s",
                                     len == 0 ? "" : types == 0 ? " or " : ", ",
                                     names[i].name);
        }
    }

    return tg_schema_report(e, path, "type", "expected %s, got %s", text, name);
}


bool
tg_schema_report_values(tg_schema_eval_t *e, const tg_schema_path_t *path,
    const tg_schema_values_t *values, bool constant)
{
    char    text[sizeof(((tg_schema_error_t *) NULL)->reason)];
    size_t  n;

    if (!tg_schema_going(e)) {
        return false;
    }

    /* jansson leaves out the pieces that do not fit, from the first of them on */
    memset(text, 0, sizeof(text));
    n = json_dumpb(values->source, text, sizeof(text) - sizeof(TG_SCHEMA_ELLIPSIS),
                   JSON_ENCODE_ANY | JSON_COMPACT);

    if (n > sizeof(text) - sizeof(TG_SCHEMA_ELLIPSIS)) {
        n = strlen(text);
        memcpy(text + n, TG_SCHEMA_ELLIPSIS, sizeof(TG_SCHEMA_ELLIPSIS));
    }

    if (constant) {
        return tg_schema_report(e, path, "const", "must be %s", text);
    }

    /* the brackets of the list say nothing to the reader */
    n = strlen(text);

    if (n > 1 && text[n - 1] == ']') {
        text[n - 1] = '\0';
    }

    return tg_schema_report(e, path, "enum", "must be one of %s", n == 0 ? "" : text + 1);
}


/* A reason with a name in quotes between two pieces of text. */
bool
tg_schema_report_name(tg_schema_eval_t *e, const tg_schema_path_t *path,
    const char *keyword, const char *before, const char *name, size_t len,
    const char *after)
{
    char  quoted[TG_SCHEMA_MAX_QUOTED + 8];

    if (!tg_schema_going(e)) {
        return false;
    }

    tg_schema_quote(name, len, quoted, sizeof(quoted));

    return tg_schema_report(e, path, keyword, "%s%s%s", before, quoted, after);
}


void
tg_schema_set_reason(tg_schema_error_t *error, const char *fmt, va_list args)
{
    int      n;
    char    *p, *end;
    size_t   len, i;
    int32_t  cp;

    n = vsnprintf(error->reason, sizeof(error->reason), fmt, args);

    if (n < 0) {
        error->reason[0] = '\0';
    }

    if (n >= (int) sizeof(error->reason)) {
        tg_schema_cut(error->reason);
    }

    /* names and values come from anywhere and may be cut in the middle */
    end = error->reason + strlen(error->reason);

    for (p = error->reason; p < end; p += len) {
        len = tg_utf8_next(p, (size_t) (end - p), &cp);

        if (cp < 0x20 || cp == 0x7f) {
            for (i = 0; i < len; i++) {
                p[i] = cp < 0 ? '?' : ' ';
            }
        }
    }
}


/*
 * Appends "/key" with the escapes of RFC 6901 to a pointer of *len bytes. False,
 * with an ellipsis in its place, when it does not fit.
 */
bool
tg_schema_pointer_key(char *out, size_t size, size_t *len, const char *key,
    size_t key_len)
{
    size_t  i, n, need;

    need = 1 + key_len;

    for (i = 0; i < key_len && need < size; i++) {
        need += key[i] == '~' || key[i] == '/';
    }

    n = *len;

    if (need + sizeof(TG_SCHEMA_ELLIPSIS) >= size - n) {
        memcpy(out + n, TG_SCHEMA_ELLIPSIS, sizeof(TG_SCHEMA_ELLIPSIS));
        *len = n + sizeof(TG_SCHEMA_ELLIPSIS) - 1;
        return false;
    }

    out[n++] = '/';

    for (i = 0; i < key_len; i++) {

        if (key[i] == '~' || key[i] == '/') {
            out[n++] = '~';
            out[n++] = key[i] == '~' ? '0' : '1';

        } else {
            out[n++] = key[i];
        }
    }

    out[n] = '\0';
    *len = n;

    return true;
}


tg_rc_e
tg_schema_errors_text(const tg_schema_errors_t *errors, tg_buf_t *out)
{
    size_t                    i;
    const tg_schema_error_t  *error;

    for (i = 0; i < errors->count; i++) {
        error = &errors->errors[i];

        if (i > 0) {
            (void) tg_buf_cstr(out, "; ");
        }

        if (error->pointer[0] != '\0') {
            (void) tg_buf_cstr(out, error->pointer);
            (void) tg_buf_cstr(out, ": ");
        }

        (void) tg_buf_cstr(out, error->reason);
    }

    return out->error;
}


static tg_schema_error_t *
tg_schema_next_error(tg_schema_eval_t *e)
{
    return tg_schema_going(e) ? &e->errors->errors[e->errors->count++] : NULL;
}


static void
tg_schema_pointer(const tg_schema_path_t *path, char *out, size_t size)
{
    char                     index[24];
    size_t                   i, n, len;
    const tg_schema_path_t  *steps[TG_SCHEMA_MAX_DEPTH + 2];

    for (n = 0; path != NULL && n < TG_SCHEMA_MAX_DEPTH + 2; path = path->parent) {
        steps[n++] = path;
    }

    out[0] = '\0';
    len = 0;

    for (i = n; i > 0; i--) {
        path = steps[i - 1];

        if (path->key == NULL) {
            snprintf(index, sizeof(index), "%zu", path->len);

            if (!tg_schema_pointer_key(out, size, &len, index, strlen(index))) {
                return;
            }

        } else if (!tg_schema_pointer_key(out, size, &len, path->key, path->len)) {
            return;
        }
    }
}


/* "name" in quotes, cut when it is long. */
static void
tg_schema_quote(const char *text, size_t len, char *out, size_t size)
{
    bool     cut;
    size_t   i, n;
    int32_t  cp;

    cut = len > TG_SCHEMA_MAX_QUOTED;

    for (i = 0; i < len; i += n) {
        n = tg_utf8_next(text + i, len - i, &cp);

        if (i + n > TG_SCHEMA_MAX_QUOTED) {
            break;
        }
    }

    snprintf(out, size, "\"%.*s%s\"", (int) i, text, cut ? TG_SCHEMA_ELLIPSIS : "");
}


/* Ends a text that filled its buffer with an ellipsis, not inside a character. */
static void
tg_schema_cut(char *text)
{
    size_t  len;

    len = strlen(text) - (sizeof(TG_SCHEMA_ELLIPSIS) - 1);

    while (len > 0 && ((uint8_t) text[len] & 0xc0) == 0x80) {
        len--;
    }

    memcpy(text + len, TG_SCHEMA_ELLIPSIS, sizeof(TG_SCHEMA_ELLIPSIS));
}
