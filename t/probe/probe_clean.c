/*
 * tg-probe clean: one text through one of the three cleaners.
 */

#include <string.h>

#include "tg_clean.h"
#include "tg_probe.h"


#define PROBE_OUT_MAX  (64 * 1024 * 1024)


json_t *
tg_probe_clean(const json_t *line)
{
    json_t      *input = json_object_get(line, "input"), *out = NULL;
    tg_rc_e      rc;
    tg_buf_t     text;
    tg_str_t     in = { json_string_length(input), json_string_value(input) };
    const char  *op = json_string_value(json_object_get(line, "op"));

    if (op == NULL || !json_is_string(input)) {
        return NULL;
    }

    tg_buf_init(&text, PROBE_OUT_MAX);

    if (strcmp(op, "clean") == 0) {
        rc = tg_clean_value(in, TG_CLEAN_VALUE_CHARS, &text);

    } else if (strcmp(op, "argtext") == 0) {
        rc = tg_clean_argument(in, &text);

    } else if (strcmp(op, "digits") == 0) {
        rc = tg_clean_digits(in, &text);

    } else {
        return tg_probe_error("op is none of clean, argtext, digits");
    }

    if (rc == TG_OK) {
        out = json_pack("{s:s%}", "output", text.data == NULL ? "" : text.data, text.len);

    } else {
        out = tg_probe_error(rc == TG_E_INVALID ? "invalid_arguments" : "too long");
    }

    tg_buf_free(&text);

    return out;
}
