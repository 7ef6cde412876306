/*
 * The "template" lines of the guard data set: which requests of a template are made, and
 * with what path.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cases.h"
#include "tg_template.h"


typedef struct {
    unsigned  seen, passed, choice;
} counts_t;


/* The short form of the data set: GET, every argument a required token string. */
static json_t *
tool_of(const json_t *input)
{
    json_t      *properties = json_object(), *value;
    const char  *name;

    json_object_foreach(json_object_get(input, "args"), name, value) {
        json_object_set_new(properties, name, json_pack("{s:s}", "type", "string"));
    }

    return json_pack("{s:s, s:{s:s, s:O, s:{s:s, s:o}}}", "name", "t", "config", "method",
        "GET", "url", json_object_get(input, "url"), "parameters", "type", "object",
        "properties", properties);
}


static bool
wanted(const json_t *line, tg_str_t target)
{
    size_t   i;
    json_t  *path;

    json_array_foreach(json_object_get(line, "want_path"), i, path) {

        if (tg_str_eq(target, tg_str_of(json_string_value(path)))) {
            return true;
        }
    }

    return false;
}


static void
template_line(void *ctx, const json_t *line)
{
    bool                    want, got = false;
    json_t                 *input = json_object_get(line, "input"), *tool, *args;
    counts_t               *counts = ctx;
    const char             *basis = json_string_value(json_object_get(line, "basis"));
    tg_template_t          *template;
    tg_template_error_t     error;
    tg_template_values_t    values = { 0 };
    tg_template_request_t   request;

    if (strcmp(json_string_value(json_object_get(line, "kind")), "template") != 0) {
        return;
    }

    counts->seen++;
    want = strcmp(json_string_value(json_object_get(line, "expect")), "allow") == 0;
    tool = tool_of(input);
    args = json_deep_copy(json_object_get(input, "args"));
    template = tg_template_compile(tool, NULL, &error);

    if (template != NULL) {
        assert_int_equal(tg_template_fold_digits(args), TG_OK);
        values.args = args;
        got = tg_template_render(template, &values, &request) == NULL
              && (!want || wanted(line, request.parts.target));
        tg_template_request_free(&request);
    }

    if (got == want) {
        counts->passed++;

    } else {
        printf("%s: %s, wanted %s (%s)\n", json_string_value(json_object_get(line, "id")),
            got ? "allow" : "deny or another path", want ? "allow" : "deny", basis);
        counts->choice += strcmp(basis, "choice") == 0;
    }

    tg_template_free(template);
    json_decref(args);
    json_decref(tool);
}


/* ng-0484 to ng-0539 */
static void
test_data_set(void **state)
{
    long      lines;
    counts_t  counts = { 0 };

    (void) state;

    lines = cases_read("netguard-cases.jsonl", template_line, &counts);
    if (lines == -1) {
        skip();
    }

    assert_true(lines > 0);
    printf("netguard-cases.jsonl template: %u of %u as expected, %u other by choice\n",
        counts.passed, counts.seen, counts.choice);
    assert_true(counts.seen > 0);
    assert_int_equal(counts.passed + counts.choice, counts.seen);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_data_set),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
