/*
 * Approvals: which calls need one, what decides, what an approval is bound to, and
 * what is written of it.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tg_approval.h"
#include "tg_tool_name.h"


#define TEST_MAX  65536

/* of {"command":"ls"} */
#define TEST_SHA256                                                              \
    "4cf29611a66934862f29acfcc817e30b"                                           \
    "905c1ab73d5e65831413eb6b454d49db"


static json_t *
test_load(const char *text)
{
    json_t           *value;
    tg_json_error_t   error;

    value = tg_json_load(tg_str_of(text), &error);
    assert_non_null(value);

    return value;
}


static void
test_modes(void **state)
{
    size_t              i;
    tg_approval_mode_e  mode;

    static const struct { const char *word; tg_approval_mode_e mode; } good[] = {
        { "off", TG_APPROVAL_OFF }, { "full", TG_APPROVAL_OFF },
        { "strict", TG_APPROVAL_STRICT }, { "risk", TG_APPROVAL_STRICT },
        { "ask", TG_APPROVAL_STRICT }
    };
    static const char *const  bad[] = { "", "Strict", "OFF", "stric", "strict ", "none",
        "on", "true" };

    (void) state;

    for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_true(tg_approval_mode_parse(tg_str_of(good[i].word), &mode));
        assert_int_equal(mode, good[i].mode);
    }

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        mode = TG_APPROVAL_STRICT;
        assert_false(tg_approval_mode_parse(tg_str_of(bad[i]), &mode));
        assert_int_equal(mode, TG_APPROVAL_STRICT);
    }

    assert_true(TG_APPROVAL_STRICT > TG_APPROVAL_OFF);
}


static void
test_gate(void **state)
{
    tg_risk_e  risk;

    (void) state;

    for (risk = TG_RISK_LOW; risk <= TG_RISK_CRITICAL; risk++) {
        assert_false(tg_approval_gated(TG_APPROVAL_OFF, risk, false));
        assert_true(tg_approval_gated(TG_APPROVAL_OFF, risk, true));
        assert_int_equal(tg_approval_gated(TG_APPROVAL_STRICT, risk, false),
                         risk != TG_RISK_LOW);
        assert_true(tg_approval_gated(TG_APPROVAL_STRICT, risk, true));
    }

    assert_string_equal(tg_risk_name(TG_RISK_LOW), "low");
    assert_string_equal(tg_risk_name(TG_RISK_MEDIUM), "medium");
    assert_string_equal(tg_risk_name(TG_RISK_HIGH), "high");
    assert_string_equal(tg_risk_name(TG_RISK_CRITICAL), "critical");

    assert_int_equal(tg_approval_risk(TG_EFFECT_READ), TG_RISK_LOW);
    assert_int_equal(tg_approval_risk(TG_EFFECT_ESCALATION), TG_RISK_LOW);
    assert_int_equal(tg_approval_risk(TG_EFFECT_ACTION), TG_RISK_MEDIUM);
}


/* The edits are gated like the rest: none of them may be left out. */
static void
test_gated_tools(void **state)
{
    size_t                     i;
    const tg_approval_tool_t  *tool;

    static const struct { const char *name; tg_risk_e risk; const char *effect; } gated[] = {
        { "write_workspace_file", TG_RISK_MEDIUM, "workspace_write" },
        { "write_workspace_files", TG_RISK_MEDIUM, "workspace_write" },
        { "edit_workspace_file", TG_RISK_MEDIUM, "workspace_edit" },
        { "multi_edit_workspace_file", TG_RISK_MEDIUM, "workspace_edit" },
        { "delete_workspace_file", TG_RISK_HIGH, "workspace_delete" },
        { "run_command", TG_RISK_HIGH, "sandbox_command_execution" },
        { "run_code", TG_RISK_HIGH, "sandbox_code_execution" },
        { "execute_skills", TG_RISK_HIGH, "isolated_runtime_execution" }
    };
    static const char *const  free_ones[] = { "read_workspace_file", "sandbox_status",
        "web_fetch", "web_search", "tool_dispatcher", "tool_search", "load_skill" };

    (void) state;

    for (i = 0; i < sizeof(gated) / sizeof(gated[0]); i++) {
        tool = tg_approval_tool(tg_str_of(gated[i].name));
        assert_non_null(tool);
        assert_int_equal(tool->risk, gated[i].risk);
        assert_string_equal(tool->side_effect, gated[i].effect);
        assert_true(tg_approval_gated(TG_APPROVAL_STRICT, tool->risk, false));
    }

    for (i = 0; i < sizeof(free_ones) / sizeof(free_ones[0]); i++) {
        tool = tg_approval_tool(tg_str_of(free_ones[i]));
        assert_non_null(tool);
        assert_false(tg_approval_gated(TG_APPROVAL_STRICT, tool->risk, false));
    }

    assert_null(tg_approval_tool(tg_str("order_status")));
    assert_null(tg_approval_tool(tg_str("")));
}


static void
test_hash(const char *project, const char *account, const char *session,
    const char *tool, const char *arguments, char hex[TG_JSON_SHA256_HEX_LEN + 1])
{
    tg_buf_t               canonical;
    json_t                *value;
    tg_approval_binding_t  binding;

    value = test_load(arguments);
    tg_buf_init(&canonical, TEST_MAX);
    assert_int_equal(tg_json_canonical(value, &canonical), TG_OK);

    binding.project = tg_str_of(project);
    binding.account = tg_str_of(account);
    binding.session = tg_str_of(session);
    binding.tool = tg_str_of(tool);
    binding.arguments = tg_buf_get(&canonical);

    assert_int_equal(tg_approval_bind(&binding, hex), TG_OK);

    tg_buf_free(&canonical);
    json_decref(value);
}


/* C114: the same tool and canonical arguments alone; the order of keys is no matter. */
static void
test_binding(void **state)
{
    size_t  i;
    char    one[TG_JSON_SHA256_HEX_LEN + 1], other[TG_JSON_SHA256_HEX_LEN + 1];

    static const struct {
        const char  *project, *account, *session, *tool, *arguments;
    } others[] = {
        { "p", "a", "s", "run_command", "{\"command\":\"rm -rf .\",\"cwd\":\"x\"}" },
        { "p", "a", "s", "run_code", "{\"command\":\"ls\",\"cwd\":\"x\"}" },
        { "p", "a", "s", "run_command", "{\"command\":\"ls\",\"cwd\":\"y\"}" },
        { "p", "a", "s", "run_command",
          "{\"command\":\"ls\",\"cwd\":\"x\",\"env\":{\"A\":\"1\"}}" },
        { "p", "a", "s", "run_command", "{}" },
        { "p", "a", "t", "run_command", "{\"command\":\"ls\",\"cwd\":\"x\"}" },
        { "p", "", "s", "run_command", "{\"command\":\"ls\",\"cwd\":\"x\"}" },
        { "q", "a", "s", "run_command", "{\"command\":\"ls\",\"cwd\":\"x\"}" },
        /* the same bytes, divided elsewhere */
        { "pa", "", "s", "run_command", "{\"command\":\"ls\",\"cwd\":\"x\"}" },
        { "p", "as", "", "run_command", "{\"command\":\"ls\",\"cwd\":\"x\"}" }
    };

    (void) state;

    test_hash("p", "a", "s", "run_command", "{\"command\":\"ls\",\"cwd\":\"x\"}", one);
    test_hash("p", "a", "s", "run_command", "{ \"cwd\":\"\\u0078\", \"command\":\"ls\" }",
              other);
    assert_string_equal(one, other);

    for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        test_hash(others[i].project, others[i].account, others[i].session,
                  others[i].tool, others[i].arguments, other);
        assert_string_not_equal(one, other);
    }
}


static void
test_binding_is_bounded(void **state)
{
    char                    hex[TG_JSON_SHA256_HEX_LEN + 1];
    static char             much[4 * 1024 * 1024];
    tg_approval_binding_t   binding;

    (void) state;

    memset(&binding, 0, sizeof(binding));
    binding.arguments.data = much;
    binding.arguments.len = sizeof(much);

    assert_int_equal(tg_approval_bind(&binding, hex), TG_E_LIMIT);
}


/* C119: only the JSON value true approves, only false rejects. */
static void
test_decisions(void **state)
{
    size_t                   i;
    json_t                  *body;
    tg_json_error_t          error;
    tg_approval_fault_t      fault;
    tg_approval_decision_t   decision;

    static const struct { const char *body, *code, *param; } bad[] = {
        { "{\"approved\":\"true\"}", "invalid_type", "approved" },
        { "{\"approved\":\"false\"}", "invalid_type", "approved" },
        { "{\"approved\":1}", "invalid_type", "approved" },
        { "{\"approved\":0}", "invalid_type", "approved" },
        { "{\"approved\":null}", "invalid_type", "approved" },
        { "{\"approved\":[true]}", "invalid_type", "approved" },
        { "{\"approved\":{}}", "invalid_type", "approved" },
        { "{}", "missing_parameter", "approved" },
        { "{\"reason\":\"x\"}", "missing_parameter", "approved" },
        { "{\"approve\":true}", "unknown_field", "approve" },
        { "{\"approved\":true,\"arguments\":{}}", "unknown_field", "arguments" },
        { "{\"approved\":true,\"Approved\":true}", "unknown_field", "Approved" },
        { "{\"approved\":true,\"reason\":5}", "invalid_type", "reason" },
        { "true", "invalid_type", NULL },
        { "[]", "invalid_type", NULL },
        { "[true]", "invalid_type", NULL }
    };

    (void) state;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        body = test_load(bad[i].body);
        memset(&fault, 0, sizeof(fault));
        assert_false(tg_approval_decide(body, &decision, &fault));
        assert_string_equal(fault.code, bad[i].code);

        if (bad[i].param) {
            assert_string_equal(fault.param, bad[i].param);

        } else {
            assert_null(fault.param);
        }

        json_decref(body);
    }

    assert_null(tg_json_load(tg_str("{\"approved\":true,\"approved\":false}"), &error));

    body = test_load("{\"approved\":true}");
    assert_true(tg_approval_decide(body, &decision, &fault));
    assert_true(decision.approved);
    assert_int_equal(decision.reason.len, 0);
    json_decref(body);

    body = test_load("{\"approved\":false,\"reason\":\"not today\",\"account_id\":\"a\"}");
    assert_true(tg_approval_decide(body, &decision, &fault));
    assert_false(decision.approved);
    assert_int_equal(decision.reason.len, 9);
    json_decref(body);

    body = test_load("{\"approved\":false,\"reason\":null}");
    assert_true(tg_approval_decide(body, &decision, &fault));
    json_decref(body);
}


static void
test_reason_is_bounded(void **state)
{
    char                     text[4 * TG_APPROVAL_REASON_CHARS];
    size_t                   chars;
    json_t                  *body;
    tg_buf_t                 reason;
    tg_approval_fault_t      fault;
    tg_approval_decision_t   decision;

    (void) state;

    for (chars = TG_APPROVAL_REASON_CHARS; chars <= TG_APPROVAL_REASON_CHARS + 1; chars++) {
        tg_buf_init(&reason, sizeof(text));

        while (reason.len < 2 * chars) {
            tg_buf_cstr(&reason, "\xd8\xb7");
        }

        body = json_pack("{s:b,s:s%}", "approved", 1, "reason", reason.data, reason.len);
        assert_non_null(body);
        assert_int_equal(tg_approval_decide(body, &decision, &fault),
                         chars == TG_APPROVAL_REASON_CHARS);
        json_decref(body);
        tg_buf_free(&reason);
    }

    assert_string_equal(fault.code, "invalid_value");
    assert_string_equal(fault.param, "reason");
}


static void
test_strip(void **state)
{
    json_t  *arguments, *kept;

    (void) state;

    arguments = test_load("{\"command\":\"ls\",\"approval\":{\"approved\":true},"
                          "\"env\":{\"approval\":\"x\"}}");
    kept = test_load("{\"command\":\"ls\",\"env\":{\"approval\":\"x\"}}");

    tg_approval_strip(arguments);
    assert_true(json_equal(arguments, kept));
    tg_approval_strip(arguments);
    assert_true(json_equal(arguments, kept));

    json_decref(arguments);
    json_decref(kept);
}


static void
test_describe(void **state)
{
    json_t              *value;
    tg_buf_t             text;
    tg_approval_call_t   call;

    (void) state;

    memset(&call, 0, sizeof(call));
    call.call_id = tg_str("call_1");
    call.tool = tg_str("run_command");
    call.arguments = tg_str("{\"command\":\"ls\"}");
    call.risk = TG_RISK_HIGH;
    call.side_effect = "sandbox_command_execution";

    tg_buf_init(&text, TEST_MAX);
    tg_buf_cstr(&text, "{");
    assert_int_equal(tg_approval_describe(&call, &text), TG_OK);
    tg_buf_cstr(&text, "}");
    tg_buf_char(&text, '\0');

    value = test_load(text.data);
    assert_string_equal(json_string_value(json_object_get(value, "risk_level")), "high");
    assert_int_equal(json_array_size(json_object_get(value, "side_effects")), 1);
    assert_string_equal(json_string_value(json_object_get(json_object_get(value,
                                                    "arguments"), "command")), "ls");

    assert_string_equal(json_string_value(json_object_get(value, "arguments_sha256")),
                        TEST_SHA256);
    json_decref(value);
    tg_buf_free(&text);
}


static void
test_rejection(void **state)
{
    json_t    *value, *error;
    tg_buf_t   text;

    (void) state;

    tg_buf_init(&text, TEST_MAX);
    assert_int_equal(tg_approval_rejection(tg_str("too \"risky\""), &text), TG_OK);
    tg_buf_char(&text, '\0');
    value = test_load(text.data);
    error = json_object_get(value, "error");

    assert_true(json_is_false(json_object_get(value, "ok")));
    assert_string_equal(json_string_value(json_object_get(error, "code")),
                        "approval_rejected");
    assert_string_equal(json_string_value(json_object_get(error, "reason")),
                        "too \"risky\"");
    assert_true(json_string_length(json_object_get(error, "guidance")) > 0);
    json_decref(value);

    tg_buf_reset(&text);
    assert_int_equal(tg_approval_rejection(tg_null_str, &text), TG_OK);
    tg_buf_char(&text, '\0');
    value = test_load(text.data);
    assert_null(json_object_get(json_object_get(value, "error"), "reason"));
    json_decref(value);
    tg_buf_free(&text);
}


/* C037: 30 characters for an HTTP tool, 48 for a client tool; C036: names that are
 * none, and those of built-in tools. */
static void
test_names(void **state)
{
    size_t  i;
    char    name[TG_TOOL_NAME_CLIENT_MAX + 2];

    static const char *const  bad[] = { "", "Order_Status", "order-status", "1st", "_a",
        "order status", "order.status", "\xd8\xb7", "a\n" };

    (void) state;

    memset(name, 'a', sizeof(name));

    assert_true(tg_tool_name_valid((tg_str_t) { 30, name }, TG_TOOL_NAME_HTTP_MAX));
    assert_false(tg_tool_name_valid((tg_str_t) { 31, name }, TG_TOOL_NAME_HTTP_MAX));
    assert_true(tg_tool_name_valid((tg_str_t) { 48, name }, TG_TOOL_NAME_CLIENT_MAX));
    assert_false(tg_tool_name_valid((tg_str_t) { 49, name }, TG_TOOL_NAME_CLIENT_MAX));
    assert_true(tg_tool_name_valid(tg_str("get_cart2"), TG_TOOL_NAME_CLIENT_MAX));

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(tg_tool_name_valid(tg_str_of(bad[i]), TG_TOOL_NAME_CLIENT_MAX));
    }

    assert_true(tg_tool_name_builtin(tg_str("create_ticket")));
    assert_true(tg_tool_name_builtin(tg_str("search_knowledge")));
    assert_false(tg_tool_name_builtin(tg_str("create_tickets")));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_modes),
        cmocka_unit_test(test_gate),
        cmocka_unit_test(test_gated_tools),
        cmocka_unit_test(test_binding),
        cmocka_unit_test(test_binding_is_bounded),
        cmocka_unit_test(test_decisions),
        cmocka_unit_test(test_reason_is_bounded),
        cmocka_unit_test(test_strip),
        cmocka_unit_test(test_describe),
        cmocka_unit_test(test_rejection),
        cmocka_unit_test(test_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
