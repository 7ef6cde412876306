/*
 * Outputs of a caller's calls: all open ones, each once, and what the model gets.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tg_json.h"
#include "tg_outputs.h"


#define TEST_OPEN  "[{\"call_id\":\"call_1\"},{\"call_id\":\"call_2\"}]"


static json_t *
test_load(const char *text)
{
    json_t           *value;
    tg_json_error_t   error;

    value = tg_json_load(tg_str_of(text), &error);
    assert_non_null(value);

    return value;
}


/* C083: each refused with a code that names the ids, and a right one is taken after. */
static void
test_faults(void **state)
{
    size_t               i, n;
    json_t              *body, *open;
    tg_output_t          outputs[TG_OUTPUTS_MAX];
    tg_outputs_fault_t   fault;

    static const struct { const char *body, *code, *param, *message; } bad[] = {
        { "{\"tool_outputs\":[{\"call_id\":\"call_1\",\"output\":{}}]}",
          "missing_tool_outputs", "tool_outputs", "call_2" },
        { "{\"tool_outputs\":[]}", "missing_tool_outputs", "tool_outputs",
          "call_1, call_2" },
        { "{\"tool_outputs\":[{\"call_id\":\"call_1\",\"output\":1},"
          "{\"call_id\":\"call_1\",\"output\":1}]}",
          "duplicate_call_id", "tool_outputs[1].call_id", "call_1" },
        { "{\"tool_outputs\":[{\"call_id\":\"call_1\",\"output\":1},{\"call_id\":"
          "\"call_2\",\"output\":1},{\"call_id\":\"call_zzz\",\"output\":1}]}",
          "unknown_call_id", "tool_outputs[2].call_id", "call_zzz" },
        { "{\"tool_outputs\":[{\"call_id\":\"\",\"output\":1}]}",
          "unknown_call_id", "tool_outputs[0].call_id", "" },
        { "{\"tool_outputs\":[{\"output\":1}]}", "missing_parameter",
          "tool_outputs[0].call_id", "" },
        { "{\"tool_outputs\":[{\"call_id\":7,\"output\":1}]}", "invalid_type",
          "tool_outputs[0].call_id", "" },
        { "{\"tool_outputs\":[{\"call_id\":\"call_1\"}]}", "missing_parameter",
          "tool_outputs[0].output", "" },
        { "{\"tool_outputs\":[{\"call_id\":\"call_1\",\"output\":1,\"is_error\":1}]}",
          "invalid_type", "tool_outputs[0].is_error", "" },
        { "{\"tool_outputs\":[5]}", "invalid_type", "tool_outputs[0]", "" },
        { "{\"tool_outputs\":{}}", "invalid_type", "tool_outputs", "" },
        { "{}", "missing_parameter", "tool_outputs", "" },
        { "[]", "invalid_type", "", "" },
        { "5", "invalid_type", "", "" }
    };

    (void) state;

    open = test_load(TEST_OPEN);

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        body = test_load(bad[i].body);
        assert_false(tg_outputs_read(body, open, outputs, &n, &fault));
        assert_string_equal(fault.code, bad[i].code);
        assert_string_equal(fault.param, bad[i].param);
        assert_non_null(strstr(fault.message, bad[i].message));
        json_decref(body);
    }

    body = test_load("{\"tool_outputs\":[{\"call_id\":\"call_2\",\"output\":null,"
                     "\"is_error\":null},{\"call_id\":\"call_1\",\"output\":\"x\","
                     "\"is_error\":true}],\"more\":1}");
    assert_true(tg_outputs_read(body, open, outputs, &n, &fault));
    assert_int_equal(n, 2);
    assert_true(tg_str_eq(outputs[0].call_id, tg_str("call_2")));
    assert_false(outputs[0].is_error);
    assert_true(outputs[1].is_error);
    json_decref(body);
    json_decref(open);
}


static void
test_bounds(void **state)
{
    char                *text;
    size_t               i, n, len;
    json_t              *body, *open, *list;
    tg_output_t          outputs[TG_OUTPUTS_MAX];
    tg_outputs_fault_t   fault;

    (void) state;

    open = test_load("[{\"call_id\":\"call_1\"}]");

    /* the quotes count, too */

    for (len = TG_OUTPUTS_VALUE_MAX - 2; len <= TG_OUTPUTS_VALUE_MAX - 1; len++) {
        text = malloc(len);
        assert_non_null(text);
        memset(text, 'a', len);
        body = json_pack("{s:[{s:s,s:s%}]}", "tool_outputs", "call_id", "call_1",
                         "output", text, len);
        assert_non_null(body);
        assert_int_equal(tg_outputs_read(body, open, outputs, &n, &fault),
                         len == TG_OUTPUTS_VALUE_MAX - 2);
        json_decref(body);
        free(text);
    }

    assert_string_equal(fault.code, "output_too_large");
    assert_string_equal(fault.param, "tool_outputs[0].output");

    /* more of them than there can be calls */

    list = json_array();

    for (i = 0; i <= TG_OUTPUTS_MAX; i++) {
        json_array_append_new(list, json_pack("{s:s,s:i}", "call_id", "call_1",
                                              "output", 1));
    }

    body = json_pack("{s:o}", "tool_outputs", list);
    assert_false(tg_outputs_read(body, open, outputs, &n, &fault));
    assert_string_equal(fault.code, "duplicate_call_id");
    json_decref(body);
    json_decref(open);
}


static void
test_outcome(void **state)
{
    size_t        i;
    json_t       *value, *outcome, *told;
    tg_buf_t      text;
    tg_output_t   output;

    static const struct { const char *output, *result; } good[] = {
        { "{\"items\":[1,2.5],\"a\":null}", "{\"items\":[1,2.5],\"a\":null}" },
        { "\"plain \\\"text\\\" \\u0637\"", "plain \"text\" \xd8\xb7" },
        { "\"{\\\"already\\\":\\\"JSON\\\"}\"", "{\"already\":\"JSON\"}" },
        { "null", "null" }, { "\"\"", "\"\"" }, { "[]", "[]" }
    };

    (void) state;

    memset(&output, 0, sizeof(output));
    tg_buf_init(&text, 4096);

    for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        value = test_load(good[i].output);
        output.output = value;
        tg_buf_reset(&text);
        assert_int_equal(tg_outputs_outcome(&output, 1791272520, &text), TG_OK);
        tg_buf_char(&text, '\0');
        outcome = test_load(text.data);
        assert_true(json_is_null(json_object_get(outcome, "code")));
        assert_int_equal(json_integer_value(json_object_get(outcome, "at")), 1791272520);
        assert_string_equal(json_string_value(json_object_get(outcome, "result")),
                            good[i].result);
        json_decref(outcome);
        json_decref(value);
    }

    value = test_load("{\"why\":\"closed\"}");
    output.output = value;
    output.is_error = true;
    tg_buf_reset(&text);
    assert_int_equal(tg_outputs_outcome(&output, 1, &text), TG_OK);
    tg_buf_char(&text, '\0');
    outcome = test_load(text.data);
    assert_string_equal(json_string_value(json_object_get(outcome, "code")),
                        "client_tool_failed");
    told = test_load(json_string_value(json_object_get(outcome, "result")));
    assert_true(json_is_false(json_object_get(told, "ok")));
    assert_true(json_equal(json_object_get(told, "output"), value));
    assert_string_equal(json_string_value(json_object_get(json_object_get(told, "error"),
                                                          "code")),
                        "client_tool_failed");
    json_decref(told);
    json_decref(outcome);
    json_decref(value);
    tg_buf_free(&text);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_outcome),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
