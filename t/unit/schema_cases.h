/*
 * What the tests of the JSON Schema unit share: schemas and values as JSON text,
 * with single quotes for double ones so that tables stay readable.
 */

#ifndef TG_TEST_SCHEMA_CASES_H
#define TG_TEST_SCHEMA_CASES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tg_schema.h"


/* Single quotes become double ones, a backquote becomes a single one. */
static inline json_t *
schema_json(const char *text)
{
    char          *copy, *to;
    json_t        *json;
    const char    *from;
    json_error_t   error;

    copy = malloc(strlen(text) + 1);
    assert_non_null(copy);
    to = copy;

    for (from = text; *from != '\0'; from++) {
        if (from[0] == '`') {
            *to++ = '\'';

        } else {
            *to++ = *from == '\'' ? '"' : *from;
        }
    }

    *to = '\0';
    json = json_loads(copy, JSON_DECODE_ANY, &error);

    if (json == NULL) {
        fail_msg("bad JSON in a test: %s: %s", copy, error.text);
    }

    free(copy);

    return json;
}


/* The verdict on an instance; both ways of asking must agree. */
static inline bool
schema_check(tg_schema_t *schema, const char *instance, tg_schema_errors_t *errors)
{
    bool     valid;
    json_t  *json;

    json = schema_json(instance);
    valid = tg_schema_validate(schema, json, errors);

    assert_int_equal(tg_schema_validate(schema, json, NULL), valid);
    assert_int_equal(errors->count == 0, valid);
    json_decref(json);

    return valid;
}


static inline tg_schema_t *
schema_compile(const char *text, tg_schema_draft_e draft, tg_schema_errors_t *errors)
{
    json_t       *json;
    tg_schema_t  *schema;

    json = schema_json(text);
    schema = tg_schema_compile(json, draft, errors);
    assert_int_equal(errors->count == 0, schema != NULL);
    json_decref(json);

    return schema;
}


static inline tg_schema_t *
schema_must_compile(const char *text)
{
    tg_schema_t         *schema;
    tg_schema_errors_t   errors;

    schema = schema_compile(text, TG_SCHEMA_2020_12, &errors);

    if (schema == NULL) {
        fail_msg("%s: %s %s", text, errors.errors[0].pointer, errors.errors[0].reason);
    }

    return schema;
}

#endif /* TG_TEST_SCHEMA_CASES_H */
