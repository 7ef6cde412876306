/*
 * Fuzzes the JSON Schema compiler and validator. The input is a schema, a NUL and
 * an instance. Whatever both say: no crash, no stall, the verdict alone equals the
 * verdict with errors, a failure has a reason, and "not" turns the verdict round.
 */

#include <stdlib.h>
#include <string.h>

#include "tg_json.h"
#include "tg_schema.h"


#define CHECK(condition)                                                          \
    do {                                                                          \
        if (!(condition)) {                                                       \
            abort();                                                              \
        }                                                                         \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_errors(const tg_schema_errors_t *errors);
static bool was_stopped(const tg_schema_errors_t *errors);
static void check(const json_t *document, const json_t *instance,
    tg_schema_draft_e draft, bool plain);


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool              plain;
    json_t           *document, *instance;
    const uint8_t    *split;
    tg_json_error_t   error;

    split = memchr(data, '\0', size);

    if (split == NULL) {
        return -1;
    }

    document = tg_json_load((tg_str_t) { (size_t) (split - data), (const char *) data },
                            &error);
    instance = tg_json_load((tg_str_t) { size - (size_t) (split - data) - 1,
                                         (const char *) split + 1 }, &error);

    if (document != NULL && instance != NULL) {
        /* without identifiers and references a schema means the same anywhere */
        plain = memchr(data, '$', size) == NULL && memchr(data, '\\', size) == NULL;

        check(document, instance, TG_SCHEMA_2020_12, plain);
        check(document, instance, TG_SCHEMA_DRAFT7, plain);
    }

    json_decref(document);
    json_decref(instance);

    return 0;
}


static void
check(const json_t *document, const json_t *instance, tg_schema_draft_e draft, bool plain)
{
    bool                 valid;
    json_t              *opposite;
    tg_schema_t         *schema;
    tg_schema_errors_t   errors, again;

    schema = tg_schema_compile(document, draft, &errors);

    if (schema == NULL) {
        CHECK(errors.count == 1);
        check_errors(&errors);
        return;
    }

    CHECK(errors.count == 0);

    valid = tg_schema_validate(schema, instance, &errors);
    CHECK(valid == tg_schema_validate(schema, instance, &again));
    CHECK(valid == tg_schema_validate(schema, instance, NULL));
    CHECK(valid == (errors.count == 0));
    CHECK(errors.count == again.count);
    check_errors(&errors);
    tg_schema_free(schema);

    if (!plain || was_stopped(&errors)) {
        return;
    }

    opposite = json_pack("{s:O}", "not", document);
    CHECK(opposite != NULL);

    schema = tg_schema_compile(opposite, draft, &errors);
    CHECK(schema != NULL);

    CHECK(tg_schema_validate(schema, instance, &errors) != valid || was_stopped(&errors));
    tg_schema_free(schema);
    json_decref(opposite);
}


static bool
was_stopped(const tg_schema_errors_t *errors)
{
    return errors->count > 0
           && strcmp(errors->errors[errors->count - 1].keyword, "limit") == 0;
}


static void
check_errors(const tg_schema_errors_t *errors)
{
    size_t                    i;
    tg_buf_t                  out;
    const tg_schema_error_t  *e;

    CHECK(errors->count <= TG_SCHEMA_MAX_ERRORS);
    tg_buf_init(&out, 16384);

    for (i = 0; i < errors->count; i++) {
        e = &errors->errors[i];
        CHECK(e->keyword != NULL && e->keyword[0] != '\0');
        CHECK(e->reason[0] != '\0' && memchr(e->reason, '\0', sizeof(e->reason)) != NULL);
        CHECK(memchr(e->pointer, '\0', sizeof(e->pointer)) != NULL);
        CHECK(e->pointer[0] == '\0' || e->pointer[0] == '/'
              || strcmp(e->pointer, "...") == 0);
    }

    CHECK(tg_schema_errors_text(errors, &out) == TG_OK);
    tg_buf_free(&out);
}
