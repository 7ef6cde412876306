/*
 * JSON in tests with ' for ", so that tables stay readable.
 */

#ifndef TG_TEST_QUOTED_H
#define TG_TEST_QUOTED_H

#include <string.h>

#include <jansson.h>

#include "tg_json.h"


#define QUOTED_MAX  8192


static inline json_t *
quoted(const char *text)
{
    char              copy[QUOTED_MAX];
    size_t            i, len = strlen(text);
    json_t           *value;
    tg_json_error_t   error;

    assert_true(len < sizeof(copy));

    for (i = 0; i < len; i++) {
        copy[i] = text[i] == '\'' ? '"' : text[i];
    }

    value = tg_json_load((tg_str_t) { len, copy }, &error);

    if (value == NULL) {
        fail_msg("test input, %s at %zu: %s", error.reason, error.offset, text);
    }

    return value;
}

#endif /* TG_TEST_QUOTED_H */
