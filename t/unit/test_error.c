/*
 * The error table: every entry is well formed, types belong to their statuses,
 * no entry is there twice, and the body is the JSON that callers are promised.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include <jansson.h>

#include "tg_error.h"


#define TEST_MAX_BODY  8192


static json_t *
test_body(const tg_error_t *error, tg_str_t message, tg_str_t param)
{
    json_t        *root;
    tg_buf_t       out;
    json_error_t   why;

    tg_buf_init(&out, TEST_MAX_BODY);
    assert_int_equal(tg_error_body(error, message, param, &out), TG_OK);

    root = json_loadb(out.data, out.len, JSON_REJECT_DUPLICATES, &why);
    if (root == NULL) {
        print_error("%.*s: %s\n", (int) out.len, out.data, why.text);
    }

    assert_non_null(root);
    tg_buf_free(&out);

    return root;
}


static const char *
test_field(const json_t *root, const char *name)
{
    return json_string_value(json_object_get(json_object_get(root, "error"), name));
}


static void
test_entries_are_well_formed(void **state)
{
    size_t             i, j, chars;
    const char        *p;
    const tg_error_t  *error;

    (void) state;

    for (i = 0; (error = tg_error_at(i)) != NULL; i++) {
        chars = strlen(error->code);
        assert_in_range(chars, 3, 40);

        for (j = 0; j < chars; j++) {
            assert_true((error->code[j] >= 'a' && error->code[j] <= 'z')
                        || error->code[j] == '_');
        }

        /* a sentence or more, in printable ASCII, with nothing to fill in */
        chars = strlen(error->message);
        assert_in_range(chars, 20, 200);
        assert_int_equal(error->message[chars - 1], '.');

        for (p = error->message; *p != '\0'; p++) {
            assert_true(*p >= ' ' && *p <= '~' && *p != '%');
        }
    }

    print_message("%zu entries\n", i);
    assert_true(i > 50);
}


/* the mapping is written out again here, not taken from tg_error_type */
static void
test_types_match_statuses(void **state)
{
    size_t             i, j;
    const tg_error_t  *error;

    static const struct {
        unsigned     status;
        const char  *type;
    } types[] = {
        { 400, "invalid_request_error" }, { 401, "authentication_error" },
        { 403, "permission_error" },      { 404, "not_found_error" },
        { 405, "invalid_request_error" }, { 408, "invalid_request_error" },
        { 409, "conflict_error" },        { 413, "invalid_request_error" },
        { 415, "invalid_request_error" }, { 422, "invalid_request_error" },
        { 429, "rate_limit_error" },      { 500, "api_error" },
        { 501, "api_error" },             { 502, "api_error" },
        { 503, "api_error" },             { 504, "api_error" }
    };

    (void) state;

    for (i = 0; (error = tg_error_at(i)) != NULL; i++) {
        for (j = 0; j < sizeof(types) / sizeof(types[0]); j++) {
            if (types[j].status == error->status) {
                break;
            }
        }

        if (j == sizeof(types) / sizeof(types[0])) {
            fail_msg("%s has the unexpected status %u", error->code, error->status);
        }

        assert_string_equal(error->type, types[j].type);
        assert_string_equal(tg_error_type(error->status), types[j].type);
    }
}


static void
test_no_duplicates(void **state)
{
    size_t             i, j;
    const tg_error_t  *a, *b;

    (void) state;

    for (i = 0; (a = tg_error_at(i)) != NULL; i++) {
        for (j = i + 1; (b = tg_error_at(j)) != NULL; j++) {
            if (strcmp(a->code, b->code) != 0) {
                continue;
            }

            /* only as a pair of runtime and control plane, in this order */
            if (a->status != 400 || b->status != 422) {
                fail_msg("%s is there twice", a->code);
            }
        }
    }
}


static void
test_promised_codes(void **state)
{
    size_t             i;
    const tg_error_t  *error;

    static const struct {
        const char  *code;
        unsigned     status;
    } promised[] = {
        { "invalid_json", 400 },            { "missing_parameter", 400 },
        { "invalid_type", 400 },            { "invalid_value", 400 },
        { "unknown_variable", 400 },        { "tool_name_conflict", 400 },
        { "unsupported_media_type", 415 },  { "request_too_large", 413 },
        { "missing_api_key", 401 },         { "invalid_api_key", 401 },
        { "invalid_end_user_token", 401 },  { "insufficient_scope", 403 },
        { "account_mismatch", 403 },        { "end_user_mismatch", 403 },
        { "model_not_found", 404 },         { "agent_not_published", 404 },
        { "session_not_found", 404 },       { "not_found", 404 },
        { "unknown_url", 404 },             { "method_not_allowed", 405 },
        { "invocation_conflict", 409 },     { "rate_limit_exceeded", 429 },
        { "model_auth_failed", 502 },       { "model_unavailable", 502 },
        { "model_timeout", 504 },           { "model_rate_limited", 429 },
        { "model_rejected_request", 400 },  { "model_stream_broken", 502 },
        { "run_timeout", 504 },             { "store_unavailable", 503 },
        { "internal_error", 500 },          { "overloaded", 503 },
        { "request_timeout", 408 },         { "not_implemented", 501 },
        { "already_decided", 409 },         { "approval_expired", 409 },
        { "missing_tool_outputs", 400 },    { "unknown_call_id", 400 },
        { "duplicate_call_id", 400 },       { "run_not_waiting", 409 },
        { "tool_outputs_expired", 409 },    { "version_conflict", 409 },
        { "read_only", 409 },               { "unknown_field", 422 },
        { "invalid_schema", 422 },          { "url_not_https", 422 },
        { "identity_as_parameter", 422 },   { "rules_too_long", 422 }
    };

    (void) state;

    for (i = 0; i < sizeof(promised) / sizeof(promised[0]); i++) {
        error = tg_error_find(promised[i].code);
        if (error == NULL) {
            fail_msg("%s is missing", promised[i].code);
        }

        assert_string_equal(error->code, promised[i].code);
        assert_int_equal(error->status, promised[i].status);
    }

    assert_null(tg_error_find("no_such_code"));
    assert_null(tg_error_find(""));
    assert_null(tg_error_find(NULL));
}


static void
test_control_plane_answers_422(void **state)
{
    (void) state;

    assert_int_equal(tg_error_find_control("invalid_value")->status, 422);
    assert_int_equal(tg_error_find_control("tool_name_conflict")->status, 422);
    assert_int_equal(tg_error_find_control("invalid_json")->status, 400);
    assert_int_equal(tg_error_find_control("not_found")->status, 404);
    assert_null(tg_error_find_control("no_such_code"));
}


static void
test_body_of_every_entry(void **state)
{
    size_t             i;
    json_t            *root;
    const tg_error_t  *error;

    (void) state;

    for (i = 0; (error = tg_error_at(i)) != NULL; i++) {
        root = test_body(error, tg_null_str, tg_null_str);

        assert_int_equal(json_object_size(root), 1);
        assert_int_equal(json_object_size(json_object_get(root, "error")), 4);
        assert_string_equal(test_field(root, "message"), error->message);
        assert_string_equal(test_field(root, "type"), error->type);
        assert_string_equal(test_field(root, "code"), error->code);
        assert_true(json_is_null(json_object_get(json_object_get(root, "error"),
                                                 "param")));
        json_decref(root);
    }
}


static void
test_body_takes_message_and_param(void **state)
{
    char     big[6000];
    size_t   i;
    json_t  *root;

    (void) state;

    root = test_body(tg_error_find("invalid_value"), tg_str("say \"hi\"\n\x01 now"),
                     tg_str("messages[0].role"));
    assert_string_equal(test_field(root, "message"), "say \"hi\"\n\x01 now");
    assert_string_equal(test_field(root, "param"), "messages[0].role");
    json_decref(root);

    /* cut by characters, never inside one: a two-byte letter, 3,000 times */
    for (i = 0; i < sizeof(big); i += 2) {
        big[i] = '\xd8';
        big[i + 1] = '\xb7';
    }

    root = test_body(tg_error_find("model_rejected_request"),
                     (tg_str_t) { sizeof(big), big }, (tg_str_t) { sizeof(big), big });
    assert_int_equal(strlen(test_field(root, "message")), TG_ERROR_MAX_MESSAGE * 2);
    assert_int_equal(strlen(test_field(root, "param")), TG_ERROR_MAX_PARAM * 2);
    assert_null(strstr(test_field(root, "message"), "\xef\xbf\xbd"));
    json_decref(root);

    /* bytes that are no UTF-8 stay bounded and give valid JSON */
    memset(big, 0x80, sizeof(big));
    root = test_body(tg_error_find("model_rejected_request"),
                     (tg_str_t) { sizeof(big), big }, tg_null_str);
    assert_true(strlen(test_field(root, "message")) <= TG_ERROR_MAX_MESSAGE * 4 * 3);
    json_decref(root);
}


static void
test_unknown_error_is_internal(void **state)
{
    json_t  *root;

    (void) state;

    root = test_body(NULL, tg_str("a detail that nobody should see"), tg_null_str);
    assert_string_equal(test_field(root, "code"), "internal_error");
    assert_null(strstr(test_field(root, "message"), "detail"));
    json_decref(root);
}


static void
test_body_says_when_it_does_not_fit(void **state)
{
    tg_buf_t  out;

    (void) state;

    tg_buf_init(&out, 40);
    assert_int_equal(tg_error_body(tg_error_find("not_found"), tg_null_str, tg_null_str,
                                   &out),
                     TG_E_LIMIT);
    tg_buf_free(&out);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_entries_are_well_formed),
        cmocka_unit_test(test_types_match_statuses),
        cmocka_unit_test(test_no_duplicates),
        cmocka_unit_test(test_promised_codes),
        cmocka_unit_test(test_control_plane_answers_422),
        cmocka_unit_test(test_body_of_every_entry),
        cmocka_unit_test(test_body_takes_message_and_param),
        cmocka_unit_test(test_unknown_error_is_internal),
        cmocka_unit_test(test_body_says_when_it_does_not_fit)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
