/*
 * What a model sees of an answer: paths, rows, cuts, numbers digit for digit, the
 * 4 KiB bound at its edge, and the checks of config.response.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "quoted.h"
#include "tg_exact.h"
#include "tg_shape.h"


#define OUT_MAX    (64 * 1024)
#define NOTICE     "notice"
#define ORDER      "{'items_path':'data','fields':[{'path':'status','label':'Status'}," \
                   "{'path':'eta'}],'max_items':2,'empty_message':'No such order.'}"


/* Shapes body and returns the result as a tree; *code as tg_shape gave it. */
static json_t *
shape(const char *response, unsigned status, tg_str_t body, const char **code)
{
    json_t           *config = response == NULL ? NULL : quoted(response), *result;
    tg_buf_t          out;
    tg_json_error_t   error;

    tg_buf_init(&out, OUT_MAX);
    *code = tg_shape(config, status, body, &out);
    assert_int_equal(out.error, TG_OK);
    assert_true(out.len <= TG_SHAPE_RESULT_MAX);

    result = tg_json_load(tg_buf_get(&out), &error);
    assert_non_null(result);

    tg_buf_free(&out);
    json_decref(config);

    return result;
}


/* The rows of a good answer, as compact JSON with ' for ". */
static void
expect_items(const char *response, const char *body, const char *want)
{
    json_t      *config = quoted(response), *wanted = quoted(want);
    char        *a, *b;
    json_t      *result;
    const char  *code;

    result = shape(response, 200, tg_str_of(body), &code);
    if (code != NULL) {
        fail_msg("%s: %s", code, body);
    }

    a = json_dumps(json_object_get(result, "items"), JSON_COMPACT);
    b = json_dumps(wanted, JSON_COMPACT);
    assert_string_equal(a, b);
    assert_int_equal(json_object_get(result, NOTICE) != NULL,
        json_array_size(json_object_get(result, "items")) > 0
        || json_object_get(result, "omitted") != NULL);

    free(a);
    free(b);
    json_decref(result);
    json_decref(wanted);
    json_decref(config);
}


static void
expect_code(const char *response, unsigned status, tg_str_t body, const char *want)
{
    json_t      *result;
    const char  *code;

    result = shape(response, status, body, &code);

    if (want == NULL) {
        assert_null(code);
        assert_true(json_is_true(json_object_get(result, "ok")));

    } else {
        assert_non_null(code);
        assert_string_equal(code, want);
        assert_true(json_is_false(json_object_get(result, "ok")));
        assert_string_equal(json_string_value(json_object_get(
            json_object_get(result, "error"), "code")), want);
    }

    json_decref(result);
}


/* C063: a redirect is a failure of the upstream, whatever it carries. */
static void
test_status(void **state)
{
    size_t           i;
    const unsigned   bad[] = { 0, 100, 199, 300, 301, 302, 304, 307, 400, 401, 404, 500,
                               503, 999 };
    const tg_str_t   row = tg_str("{\"data\":{\"status\":\"secret\"}}");

    (void) state;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        expect_code(ORDER, bad[i], row, "upstream_failed");
    }

    expect_code(ORDER, 429, row, "rate_limited");
    expect_code(ORDER, 200, row, NULL);
    expect_code(ORDER, 201, row, NULL);
    expect_code(ORDER, 204, tg_null_str, NULL);
    expect_code(ORDER, 204, tg_str("not json"), NULL);
    expect_code(ORDER, 200, tg_null_str, NULL);
    expect_code(ORDER, 200, tg_str("<html>"), "unreadable");
    expect_code(ORDER, 200, tg_str("{\"data\":1"), "unreadable");
    expect_code(ORDER, 200, tg_str("{\"data\":\"x\"}"), "unreadable");
    expect_code(ORDER, 200, tg_str("{\"data\":7}"), "unreadable");
    expect_code(ORDER, 200, tg_str("{\"data\":1e999}"), "unreadable");
    expect_code(ORDER, 200, tg_str("{\"data\":true}"), "unreadable");
    expect_code(ORDER, 200, tg_str("{\"data\":[],\"data\":[]}"), "unreadable");
    expect_code(ORDER, 200, tg_str("\xff"), "unreadable");
    expect_code(NULL, 200, tg_str("not json"), NULL);
    expect_code("{'fields':[]}", 200, tg_str("not json"), NULL);
}


static void
test_rows(void **state)
{
    json_t      *result;
    const char  *code;

    (void) state;

    expect_items(ORDER, "{\"data\":{\"status\":\"late\",\"eta\":\"May\",\"x\":1}}",
        "[{'Status':'late','eta':'May'}]");
    expect_items(ORDER, "{\"data\":[{\"status\":\"a\"},{\"eta\":\"b\"}]}",
        "[{'Status':'a'},{'eta':'b'}]");
    expect_items(ORDER, "{\"data\":[{\"status\":null},7,null]}", "[{},{}]");
    expect_items(ORDER, "{\"data\":null}", "[]");
    expect_items(ORDER, "{}", "[]");
    expect_items(ORDER, "[]", "[]");
    expect_items(ORDER, "null", "[]");
    expect_items("{'fields':[{'path':'a'}]}", "{\"a\":true}", "[{'a':true}]");
    expect_items("{'fields':[{'path':'a'}]}", "[{\"a\":false}]", "[{'a':false}]");
    expect_items("{'fields':[{'path':'a'}]}", "null", "[]");
    expect_items("{'fields':[{'path':'a'}],'items_path':'x.1.rows'}",
        "{\"x\":[0,{\"rows\":[{\"a\":1}]}]}", "[{'a':1}]");
    expect_items("{'fields':[{'path':'a\\\\.b'},{'path':'l.0'},{'path':'o.k'}]}",
        "{\"a.b\":1,\"l\":[5],\"o\":{\"k\":\"v\"}}", "[{'a\\\\.b':1,'l.0':5,'o.k':'v'}]");
    expect_items("{'fields':[{'path':'0'},{'path':'1'}]}", "[[1],[2,3]]",
        "[{'0':1},{'0':2,'1':3}]");

    /* nothing found: the message and no notice */
    result = shape(ORDER, 200, tg_str("{\"data\":[]}"), &code);
    assert_null(code);
    assert_string_equal(json_string_value(json_object_get(result, "message")),
        "No such order.");
    assert_int_equal(json_object_size(result), 3);
    json_decref(result);

    result = shape(NULL, 200, tg_str("{}"), &code);
    assert_int_equal(json_object_size(result), 2);
    assert_int_equal(json_array_size(json_object_get(result, "items")), 0);
    json_decref(result);

    /* rows beyond max_items are counted */
    result = shape(ORDER, 200, tg_str("{\"data\":[{},{},{},{},{}]}"), &code);
    assert_int_equal(json_array_size(json_object_get(result, "items")), 2);
    assert_int_equal(json_integer_value(json_object_get(result, "omitted")), 3);
    json_decref(result);

    result = shape(ORDER, 200, tg_str("{\"data\":[{},{}]}"), &code);
    assert_null(json_object_get(result, "omitted"));
    json_decref(result);
}


static void
test_values(void **state)
{
    (void) state;

    expect_items("{'fields':[{'path':'a'}]}",
        "{\"a\":\"x\\u202ey\\u0000z\\u0001\\u200b\\nw\"}", "[{'a':'xyz w'}]");
    expect_items("{'fields':[{'path':'a'}]}", "{\"a\":\"\\ud800x\\ude00\"}",
        "[{'a':'\xef\xbf\xbdx\xef\xbf\xbd'}]");
    expect_items("{'fields':[{'path':'a'}]}", "{\"a\":\"\\\\u0001\\ud83d\\ude00\"}",
        "[{'a':'\\\\u0001\xf0\x9f\x98\x80'}]");
    expect_items("{'fields':[{'path':'a'}]}", "\xef\xbb\xbf{\"a\":\"\"}", "[{'a':''}]");

    /* nested values are JSON text, cleaned inside */
    expect_items("{'fields':[{'path':'a'}]}",
        "{\"a\":{\"k\":[1,2.50,\"q\\u202e\\n\",null,true,{}]}}",
        "[{'a':'{\\\"k\\\":[1,2.50,\\\"q\\\",null,true,{}]}'}]");
}


/* C056: what int64 and double cannot hold is shown digit for digit. */
static void
test_numbers(void **state)
{
    size_t              i;
    char                body[600], want[600];
    tg_buf_t            out;
    json_t             *config;
    static const char  *numbers[] = {
        "0", "-1", "7340032114905882371", "9007199254740993", "9223372036854775807",
        "-9223372036854775808", "9223372036854775808", "-9223372036854775809",
        "123456789012345678901234567890", "-0", "1.10", "0.1", "1e5", "1E+400", "-1.50e-7",
        "3.14159265358979323846", "-0.0",
    };

    (void) state;

    config = quoted("{'fields':[{'path':'a'},{'path':'b'}]}");

    for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        snprintf(body, sizeof(body), "{\"a\": %s ,\"b\":[%s,\"%s\"]}", numbers[i],
            numbers[i], numbers[i]);
        snprintf(want, sizeof(want), "[{\"a\":%s,\"b\":\"[%s,\\\"%s\\\"]\"}]}", numbers[i],
            numbers[i], numbers[i]);

        tg_buf_init(&out, OUT_MAX);
        assert_null(tg_shape(config, 200, tg_str_of(body), &out));
        assert_int_equal(tg_buf_char(&out, '\0'), TG_OK);

        if (strstr(out.data, want) == NULL) {
            fail_msg("%s is shown as %s", numbers[i], out.data);
        }

        tg_buf_free(&out);
    }

    json_decref(config);

    /* over the bound of a number: left out rather than cut */
    memset(body, '1', sizeof(body));
    memcpy(body, "{\"a\":", 5);
    strcpy(body + 5 + 201, "}");
    expect_items("{'fields':[{'path':'a'}]}", body, "[{}]");
}


/* The marks must not make text into JSON that is none. */
static void
test_numbers_strict(void **state)
{
    size_t              i;
    json_t             *value;
    static const char  *bad[] = { "", "{1.5:2}", "{1.5 :2}", "01", "1.", ".5", "1.e5", "-",
        "+1", "1e", "1e+", "--1", "1.5.5", "1.5 2.5", "[1.5 \"a\"]", "\"a\"1.5", "1.5x",
        "00.5", "-01.5", "0x10", "NaN", "Infinity", "\"\x01" "1\"", "[1.5", "{\"a\":1.5,}",
        "\"\\u00\"", "\"\\", "\"\\u0000" };
    static const char  *good[] = { "1.5", " -0 ", "[1.5,-0,{\"a\":1e3}]", "\"1.5\"",
        "\"\\u0000\"", "{\"\\\"1.5\":2}", "\"\\\\\"", "18446744073709551616" };

    (void) state;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        value = tg_exact_load(tg_str_of(bad[i]));

        if (value != NULL) {
            fail_msg("taken: %s", bad[i]);
        }
    }

    for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        value = tg_exact_load(tg_str_of(good[i]));

        if (value == NULL) {
            fail_msg("refused: %s", good[i]);
        }

        json_decref(value);
    }
}


/* Rows of one size each until the next would pass the bound; then one byte more. */
static void
test_bound(void **state)
{
    int         n;
    char       *body;
    size_t      len, rows, pad, whole = 0;
    json_t     *config, *result;
    tg_buf_t    out;
    const char *code;

    (void) state;

    body = malloc(64 * 1024);
    assert_non_null(body);
    config = quoted("{'fields':[{'path':'a'}],'max_items':20}");

    /* twenty rows; find the padding of the last that fits exactly */
    for (pad = 1; pad <= 190; pad++) {
        len = (size_t) sprintf(body, "[");

        for (rows = 0; rows < 20; rows++) {
            n = sprintf(body + len, "%s{\"a\":\"%0*d\"}", rows > 0 ? "," : "",
                rows < 19 ? 189 : (int) pad, 1);
            len += (size_t) n;
        }

        len += (size_t) sprintf(body + len, "]");
        tg_buf_init(&out, OUT_MAX);
        assert_null(tg_shape(config, 200, (tg_str_t) { len, body }, &out));
        assert_true(out.len <= TG_SHAPE_RESULT_MAX);

        if (memmem(out.data, out.len, "\"omitted\"", 9) == NULL) {
            whole = out.len;
        }

        tg_buf_free(&out);
    }

    assert_int_equal(whole, TG_SHAPE_RESULT_MAX);
    json_decref(config);

    /* the widest rows: every one of them is too big */
    len = (size_t) sprintf(body, "[{\"a\":\"");

    for (rows = 0; rows < 300; rows++) {
        len += (size_t) sprintf(body + len, "\\u2028\xf0\x9f\x98\x80\\\"");
    }

    len += (size_t) sprintf(body + len, "\"}]");
    result = shape("{'fields':[{'path':'a','label':'1'},{'path':'a','label':'2'},"
        "{'path':'a','label':'3'},{'path':'a','label':'4'},{'path':'a','label':'5'}]}",
        200, (tg_str_t) { len, body }, &code);
    assert_null(code);
    assert_int_equal(json_array_size(json_object_get(result, "items")), 0);
    assert_int_equal(json_integer_value(json_object_get(result, "omitted")), 1);
    assert_null(json_object_get(result, "message"));
    json_decref(result);
    free(body);
}


/* C077: 1 MiB is read, one byte more is refused. */
static void
test_body_bound(void **state)
{
    char  *body = malloc(TG_SHAPE_BODY_MAX + 1);

    (void) state;
    assert_non_null(body);

    memset(body, ' ', TG_SHAPE_BODY_MAX + 1);
    memcpy(body, "{\"data\":[]}", 11);
    expect_code(ORDER, 200, (tg_str_t) { TG_SHAPE_BODY_MAX, body }, NULL);
    expect_code(ORDER, 200, (tg_str_t) { TG_SHAPE_BODY_MAX + 1, body }, "unreadable");

    memset(body, '[', TG_SHAPE_BODY_MAX);
    expect_code(ORDER, 200, (tg_str_t) { TG_SHAPE_BODY_MAX, body }, "unreadable");
    free(body);
}


/* A long nested value is cut without being written out first. */
static void
test_nested_bound(void **state)
{
    size_t       i, len = 6;
    char        *body = malloc(TG_SHAPE_BODY_MAX);
    json_t      *result, *text;
    const char  *code;

    (void) state;
    assert_non_null(body);

    memcpy(body, "{\"a\":[", 6);

    for (i = 0; i < 100000; i++) {
        memcpy(body + len, "1.5,", 4);
        len += 4;
    }

    memcpy(body + len, "0]}", 3);
    result = shape("{'fields':[{'path':'a'}]}", 200, (tg_str_t) { len + 3, body }, &code);
    assert_null(code);
    text = json_object_get(json_array_get(json_object_get(result, "items"), 0), "a");
    assert_int_equal(json_string_length(text), 200);
    assert_memory_equal(json_string_value(text), "[1.5,1.5,", 9);

    json_decref(result);
    free(body);
}


static void
test_check(void **state)
{
    size_t       i;
    char         pointer[64];
    json_t      *response;
    const char  *code;
    static const struct { const char *response, *code, *pointer; }  cases[] = {
        { ORDER, NULL, "" }, { "{}", NULL, "" },
        { "{'fields':[{'path':'a'}],'max_items':1}", NULL, "" },
        { "{'fields':[{'path':'a'}],'max_items':20}", NULL, "" },
        { "[]", "invalid_value", "" },
        { "{'x':1}", "unknown_field", "/x" },
        { "{'items_path':''}", "invalid_value", "/items_path" },
        { "{'items_path':1}", "invalid_value", "/items_path" },
        { "{'items_path':'a..b'}", "invalid_value", "/items_path" },
        { "{'items_path':'.a'}", "invalid_value", "/items_path" },
        { "{'items_path':'a.'}", "invalid_value", "/items_path" },
        { "{'max_items':0}", "invalid_value", "/max_items" },
        { "{'max_items':21}", "invalid_value", "/max_items" },
        { "{'max_items':2.0}", "invalid_value", "/max_items" },
        { "{'max_items':'2'}", "invalid_value", "/max_items" },
        { "{'empty_message':''}", "invalid_value", "/empty_message" },
        { "{'empty_message':1}", "invalid_value", "/empty_message" },
        { "{'fields':{}}", "invalid_value", "/fields" },
        { "{'fields':['a']}", "invalid_value", "/fields/0" },
        { "{'fields':[{'path':'a'},{'label':'x'}]}", "invalid_value", "/fields/1/path" },
        { "{'fields':[{'path':'a','x':1}]}", "unknown_field", "/fields/0/x" },
        { "{'fields':[{'path':'a','label':''}]}", "invalid_value", "/fields/0/label" },
        { "{'fields':[{'path':'a','label':'x\\ny'}]}", "invalid_value", "/fields/0/label" },
        { "{'fields':[{'path':'a'},{'path':'a'}]}", "invalid_value", "/fields/1/path" },
        { "{'fields':[{'path':'a'},{'path':'b','label':'a'}]}", "invalid_value",
          "/fields/1/label" },
        { "{'fields':[{'path':'a'},{'path':'b'},{'path':'c'},{'path':'d'},{'path':'e'},"
          "{'path':'f'},{'path':'g'},{'path':'h'},{'path':'i'},{'path':'j'},{'path':'k'},"
          "{'path':'l'}]}", NULL, "" },
        { "{'fields':[{'path':'a'},{'path':'b'},{'path':'c'},{'path':'d'},{'path':'e'},"
          "{'path':'f'},{'path':'g'},{'path':'h'},{'path':'i'},{'path':'j'},{'path':'k'},"
          "{'path':'l'},{'path':'m'}]}", "too_many_fields", "/fields" },
    };

    (void) state;

    assert_null(tg_shape_check(NULL, pointer, sizeof(pointer)));

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        response = quoted(cases[i].response);
        code = tg_shape_check(response, pointer, sizeof(pointer));

        if ((code == NULL) != (cases[i].code == NULL)
            || (code != NULL && strcmp(code, cases[i].code) != 0))
        {
            fail_msg("%s: %s", cases[i].response, code == NULL ? "fine" : code);
        }

        assert_string_equal(pointer, cases[i].pointer);
        json_decref(response);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_status),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_numbers_strict),
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_body_bound),
        cmocka_unit_test(test_nested_bound),
        cmocka_unit_test(test_check),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
