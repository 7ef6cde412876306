/*
 * The JSON Schema compiler and validator against data of others: the JSON Schema
 * test suite of both drafts, and real function schemas with recorded calls. What
 * is skipped is counted by reason. Documents that the suite expects to be fetched
 * are given inside the schema instead, because nothing is ever fetched.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <dirent.h>

#include <cmocka.h>

#include "cases.h"
#include "tg_schema.h"


#define REMOTE_BASE  "http://localhost:1234/"
#define MAX_CALLS    5000

typedef struct {
    const char         *folder;
    tg_schema_draft_e   draft;
    const char         *defs;          /* where to put documents inside a schema */
    const char         *not_of_draft;  /* remote folder that this draft cannot read */
    long                passed, failed, bundled, remote, format, content;
} suite_t;

typedef struct {
    json_t   *tools;                   /* id -> schema */
    long      compiled, refused_raw, raw, calls, failed;
    double    compile_s;
    double   *times;
} tools_t;


static const char *
data_folder(void)
{
    const char  *folder = getenv("TOOLGATE_TEST_DATA");

    return folder == NULL ? "../shared/data" : folder;
}


static double
now_s(void)
{
    struct timespec  t;

    clock_gettime(CLOCK_MONOTONIC, &t);

    return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}


/* Numbers beyond int64 make the parser refuse a file: then it is read as doubles. */
static json_t *
load(const char *path)
{
    json_t        *json;
    json_error_t   error;

    json = json_load_file(path, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);

    if (json == NULL && json_error_code(&error) == json_error_numeric_overflow) {
        json = json_load_file(path, JSON_DECODE_ANY | JSON_ALLOW_NUL
                                    | JSON_DECODE_INT_AS_REAL, &error);
    }

    return json;
}


/* Puts every document under remotes/ into defs, with the address it has there. */
static void
add_remotes(const suite_t *suite, json_t *defs, const char *under)
{
    DIR            *dir;
    char            path[1024], name[512], uri[600];
    json_t         *doc;
    struct dirent  *entry;

    snprintf(path, sizeof(path), "%s/json-schema-test-suite/remotes/%s", data_folder(),
             under);
    dir = opendir(path);

    if (dir == NULL) {
        return;
    }

    while ((entry = readdir(dir)) != NULL) {
        /* meta-schemas of one's own are not supported, so they stay outside */
        if (entry->d_name[0] == '.' || strncmp(entry->d_name, "draft2019", 9) == 0
            || strncmp(entry->d_name, "metaschema-", 11) == 0
            || strncmp(entry->d_name, "format-assertion-", 17) == 0
            || strcmp(entry->d_name, suite->not_of_draft) == 0)
        {
            continue;
        }

        snprintf(name, sizeof(name), "%.200s%s%.200s", under, *under == '\0' ? "" : "/",
                 entry->d_name);

        if (strstr(name, ".json") == NULL) {
            add_remotes(suite, defs, name);
            continue;
        }

        snprintf(path, sizeof(path), "%s/json-schema-test-suite/remotes/%s",
                 data_folder(), name);
        snprintf(uri, sizeof(uri), REMOTE_BASE "%s", name);

        doc = load(path);

        if (json_is_object(doc) && json_object_get(doc, "$id") == NULL) {
            if (json_object_get(doc, "$ref") != NULL && suite->draft == TG_SCHEMA_DRAFT7) {
                /* $ref would hide the $id */
                doc = json_pack("{s:s, s:[o]}", "$id", uri, "allOf", doc);

            } else {
                json_object_set_new(doc, "$id", json_string(uri));
            }
        }

        json_object_set_new(defs, name, doc);
    }

    closedir(dir);
}


static tg_schema_t *
compile_bundled(const suite_t *suite, const json_t *schema, tg_schema_errors_t *errors)
{
    json_t       *copy, *defs;
    tg_schema_t  *compiled;

    copy = json_deep_copy(schema);
    defs = json_object_get(copy, suite->defs);

    if (defs == NULL) {
        defs = json_object();
        json_object_set_new(copy, suite->defs, defs);
    }

    add_remotes(suite, defs, "");
    compiled = tg_schema_compile(copy, suite->draft, errors);
    json_decref(copy);

    return compiled;
}


static bool
is_remote(const tg_schema_errors_t *errors)
{
    return strcmp(errors->errors[0].keyword, "$ref") == 0
           || strcmp(errors->errors[0].keyword, "$dynamicRef") == 0
           || strcmp(errors->errors[0].keyword, "$schema") == 0;
}


static void
run_group(suite_t *suite, const char *file, const json_t *group)
{
    bool                 valid, again, expected, bundled = false;
    size_t               i;
    json_t              *test, *tests = json_object_get(group, "tests");
    tg_schema_t         *schema;
    const json_t        *data;
    tg_schema_errors_t   errors;

    schema = tg_schema_compile(json_object_get(group, "schema"), suite->draft, &errors);

    if (schema == NULL && is_remote(&errors)) {
        schema = compile_bundled(suite, json_object_get(group, "schema"), &errors);
        bundled = true;
    }

    if (schema == NULL && is_remote(&errors)) {
        printf("  remote: %s: %s: %s\n", file,
               json_string_value(json_object_get(group, "description")),
               errors.errors[0].reason);
        suite->remote += (long) json_array_size(tests);
        return;
    }

    if (schema == NULL) {
        printf("  %s: %s: not compiled: %s %s: %s\n", file,
               json_string_value(json_object_get(group, "description")),
               errors.errors[0].pointer, errors.errors[0].keyword,
               errors.errors[0].reason);
        suite->failed += (long) json_array_size(tests);
        return;
    }

    json_array_foreach(tests, i, test) {
        data = json_object_get(test, "data");
        expected = json_is_true(json_object_get(test, "valid"));
        valid = tg_schema_validate(schema, data, &errors);
        again = tg_schema_validate(schema, data, NULL);

        if (valid == expected && again == expected && (errors.count == 0) == valid) {
            suite->passed += !bundled;
            suite->bundled += bundled;
            continue;
        }

        suite->failed++;
        printf("  %s: %s: %s: is %d (%zu errors) and %d, must be %d\n", file,
               json_string_value(json_object_get(group, "description")),
               json_string_value(json_object_get(test, "description")), valid,
               errors.count, again, expected);
    }

    tg_schema_free(schema);
}


/* format and the content keywords assert nothing here, by design. */
static long *
skipped_by(suite_t *suite, const char *file)
{
    if (strncmp(file, "optional/format", 15) == 0) {
        return &suite->format;
    }

    return strcmp(file, "optional/content.json") == 0 ? &suite->content : NULL;
}


static bool
run_folder(suite_t *suite, const char *under)
{
    DIR            *dir;
    char            path[1024], file[512];
    long           *skipped;
    size_t          i;
    json_t         *groups, *group;
    struct dirent  *entry;

    snprintf(path, sizeof(path), "%s/json-schema-test-suite/tests/%s/%s", data_folder(),
             suite->folder, under);
    dir = opendir(path);

    if (dir == NULL) {
        printf("%s: skipped, no folder %s\n", suite->folder, path);
        return false;
    }

    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.') {
            continue;
        }

        snprintf(file, sizeof(file), "%.200s%s%.200s", under, *under == '\0' ? "" : "/",
                 entry->d_name);

        if (strstr(entry->d_name, ".json") == NULL) {
            (void) run_folder(suite, file);
            continue;
        }

        snprintf(path, sizeof(path), "%s/json-schema-test-suite/tests/%s/%s",
                 data_folder(), suite->folder, file);
        groups = load(path);
        assert_true(json_is_array(groups));
        skipped = skipped_by(suite, file);

        json_array_foreach(groups, i, group) {
            if (skipped != NULL) {
                *skipped += (long) json_array_size(json_object_get(group, "tests"));

            } else {
                run_group(suite, file, group);
            }
        }

        json_decref(groups);
    }

    closedir(dir);

    return true;
}


static void
run_suite(suite_t *suite)
{
    if (!run_folder(suite, "")) {
        skip();
    }

    printf("%s: %ld passed, %ld more with remote documents given in the schema, "
           "%ld failed; skipped: %ld remote, %ld format, %ld content\n", suite->folder,
           suite->passed, suite->bundled, suite->failed, suite->remote, suite->format,
           suite->content);

    assert_int_equal(suite->failed, 0);
    assert_true(suite->passed > 900);
}


static void
test_suite_7(void **state)
{
    suite_t  suite = { "draft7", TG_SCHEMA_DRAFT7, "definitions", "draft2020-12",
                       0, 0, 0, 0, 0, 0 };

    (void) state;
    run_suite(&suite);
}


static void
test_suite_2020_12(void **state)
{
    suite_t  suite = { "draft2020-12", TG_SCHEMA_2020_12, "$defs", "draft7",
                       0, 0, 0, 0, 0, 0 };

    (void) state;
    run_suite(&suite);
}


static void
one_tool(void *ctx, const json_t *line)
{
    double              start;
    size_t              i;
    tools_t            *t = ctx;
    const json_t       *raw;
    tg_schema_t        *schema;
    tg_schema_draft_e   drafts[] = { TG_SCHEMA_2020_12, TG_SCHEMA_DRAFT7 };
    tg_schema_errors_t  errors;

    for (i = 0; i < 2; i++) {
        start = now_s();
        schema = tg_schema_compile(json_object_get(line, "parameters"), drafts[i],
                                   &errors);
        t->compile_s += i == 0 ? now_s() - start : 0;

        if (schema == NULL) {
            printf("  %s: %s: %s\n", json_string_value(json_object_get(line, "id")),
                   errors.errors[0].pointer, errors.errors[0].reason);
            t->failed++;
            return;
        }

        tg_schema_free(schema);
    }

    t->compiled++;
    json_object_set(t->tools, json_string_value(json_object_get(line, "id")),
                    json_object_get(line, "parameters"));

    raw = json_object_get(line, "parameters_raw");

    if (raw != NULL) {
        t->raw++;
        schema = tg_schema_compile(raw, TG_SCHEMA_2020_12, &errors);
        t->refused_raw += schema == NULL && errors.count == 1
                          && strcmp(errors.errors[0].keyword, "type") == 0;
        tg_schema_free(schema);
    }
}


static void
one_call(void *ctx, const json_t *line)
{
    bool                 valid, expected;
    double               start;
    tools_t             *t = ctx;
    tg_schema_t         *schema;
    const json_t        *arguments = json_object_get(line, "arguments");
    const char          *tool = json_string_value(json_object_get(line, "tool"));
    tg_schema_errors_t   errors;

    schema = tg_schema_compile(json_object_get(t->tools, tool), TG_SCHEMA_2020_12,
                               &errors);
    assert_non_null(schema);

    (void) tg_schema_validate(schema, arguments, NULL);
    start = now_s();
    valid = tg_schema_validate(schema, arguments, &errors);

    if (t->calls < MAX_CALLS) {
        t->times[t->calls] = now_s() - start;
    }

    t->calls++;
    expected = json_is_true(json_object_get(line, "valid"));

    if (valid != expected || (errors.count == 0) != valid
        || tg_schema_validate(schema, arguments, NULL) != expected)
    {
        t->failed++;
        printf("  %s: is %d, must be %d\n",
               json_string_value(json_object_get(line, "id")), valid, expected);
    }

    tg_schema_free(schema);
}


static int
by_time(const void *a, const void *b)
{
    double  x = *(const double *) a, y = *(const double *) b;

    return (x > y) - (x < y);
}


static void
test_tools(void **state)
{
    long      read;
    tools_t   t;

    (void) state;
    memset(&t, 0, sizeof(t));
    t.tools = json_object();
    t.times = calloc(MAX_CALLS, sizeof(t.times[0]));

    read = cases_read("tool-schemas/tools.jsonl", one_tool, &t);

    if (read == -1) {
        json_decref(t.tools);
        free(t.times);
        skip();
    }

    assert_true(cases_read("tool-schemas/calls.jsonl", one_call, &t) > 0);

    printf("tool-schemas: %ld of %ld compiled, %ld of %ld raw ones refused for their "
           "type, %ld calls, %ld wrong\n", t.compiled, read, t.refused_raw, t.raw,
           t.calls, t.failed);

    if (getenv("TG_BENCH") != NULL && t.calls > 0) {
        qsort(t.times, (size_t) (t.calls < MAX_CALLS ? t.calls : MAX_CALLS),
              sizeof(t.times[0]), by_time);
        printf("tool-schemas: compile all %.3f s; validate median %.2f us, p99 %.2f us\n",
               t.compile_s, t.times[t.calls / 2] * 1e6,
               t.times[t.calls * 99 / 100] * 1e6);
    }

    assert_int_equal(t.failed, 0);
    assert_int_equal(t.compiled, read);
    json_decref(t.tools);
    free(t.times);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_suite_7),
        cmocka_unit_test(test_suite_2020_12),
        cmocka_unit_test(test_tools),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
