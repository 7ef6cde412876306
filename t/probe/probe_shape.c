/*
 * tg-probe shape: what a model would get for one answer of an HTTP tool.
 */

#include "tg_json.h"
#include "tg_probe.h"
#include "tg_shape.h"


#define PROBE_OUT_MAX  (64 * 1024)


json_t *
tg_probe_shape(const json_t *line)
{
    char              pointer[128];
    json_t           *response = json_object_get(line, "response"), *result, *out = NULL;
    json_t           *status = json_object_get(line, "status");
    json_t           *body = json_object_get(line, "body");
    tg_buf_t          text;
    const char       *code;
    tg_json_error_t   error;

    if ((status != NULL && !json_is_integer(status))
        || (body != NULL && !json_is_string(body)))
    {
        return NULL;
    }

    if (json_is_null(response)) {
        response = NULL;
    }

    code = tg_shape_check(response, pointer, sizeof(pointer));
    if (code != NULL) {
        return json_pack("{s:s, s:s}", "error", code, "pointer", pointer);
    }

    tg_buf_init(&text, PROBE_OUT_MAX);

    (void) tg_shape(response, status == NULL ? 200 : (unsigned) json_integer_value(status),
        (tg_str_t) { json_string_length(body), json_string_value(body) }, &text);

    result = text.error == TG_OK ? tg_json_load(tg_buf_get(&text), &error) : NULL;

    if (result == NULL && text.error == TG_OK) {
        /* a number past int64: the frame's tree cannot hold it, the text can */
        out = json_pack("{s:s%}", "result_text", text.data, text.len);

    } else if (result != NULL) {
        out = json_pack("{s:o}", "result", result);
    }

    tg_buf_free(&text);

    return out;
}
