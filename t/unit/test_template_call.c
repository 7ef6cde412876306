/*
 * Rendering of HTTP tools: escapes by place, fail-closed holes, secrets and their
 * hosts, the exact bytes of a body, bounds; and, with TG_BENCH=1, what one rendered and
 * signed call costs. The lines of the data set are in test_template_cases.c.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "quoted.h"
#include "tg_sign.h"
#include "tg_template.h"


#define ORDER_STATUS                                                                   \
    "{'name':'order_status','description':'Status of an order.','effect':'read',"      \
    "'requires_verified_user':true,'config':{'method':'GET','url':"                    \
    "'https://api.example.com/customers/{{end_user.external_id}}/orders/"              \
    "{{args.order_number}}','headers':{'Authorization':'Bearer {{secret.TOKEN}}'},"    \
    "'parameters':{'type':'object','properties':{'order_number':{'type':'string'}},"   \
    "'required':['order_number'],'additionalProperties':false}}}"

#define GET_URL(url)                                                                   \
    "{'name':'t','requires_verified_user':true,'config':{'method':'GET','url':'" url   \
    "','parameters':{'type':'object','properties':{'x':{},'y':{}}}}}"

#define POST_BODY(body)                                                                \
    "{'name':'t','requires_verified_user':true,'config':{'method':'POST','url':"       \
    "'https://api.example.com/','body':" body ",'parameters':{'type':'object',"        \
    "'properties':{'x':{},'l':{'type':['array','object','string']},"                   \
    "'t':{'x-kagent-format':'text'},'tl':{'type':['array','object'],"                  \
    "'x-kagent-format':'text'}}}}}"

#define HEADER_VALUE(value)                                                            \
    "{'name':'t','requires_verified_user':true,'config':{'method':'GET','url':"        \
    "'https://api.example.com/','headers':{'X-Order':'" value "'},'parameters':"       \
    "{'type':'object','properties':{'x':{}}}}}"

#define NO_HOLE  "no hole"

static const tg_str_t  any_host[] = { tg_str("api.example.com") };


/* Renders tool with args (both quoted); the caller frees request. */
static const char *
render(const char *tool_text, const char *args_text, const char *user_text,
    const char *vars_text, const tg_template_secret_t *secrets, size_t n,
    tg_template_request_t *request)
{
    json_t                 *tool = quoted(tool_text);
    json_t                 *args = args_text == NULL ? NULL : quoted(args_text);
    json_t                 *user = user_text == NULL ? NULL : quoted(user_text);
    json_t                 *vars = vars_text == NULL ? NULL : quoted(vars_text);
    const char             *code;
    tg_template_t          *template;
    tg_template_error_t     error;
    tg_template_values_t    values = { args, user, vars, secrets, n, NULL };

    template = tg_template_compile(tool, NULL, &error);
    if (template == NULL) {
        fail_msg("%s at %s: %s", error.code, error.pointer, tool_text);
    }

    code = tg_template_render(template, &values, request);

    if (code != NULL) {
        assert_non_null(request->detail);
        assert_null(request->url.data);
        assert_null(request->body.data);
        assert_int_equal(request->header_count, 0);
    }

    tg_template_free(template);
    json_decref(tool);
    json_decref(args);
    json_decref(user);
    json_decref(vars);

    return code;
}


static void
expect_code(const char *tool, const char *args, const char *want)
{
    const char             *code;
    tg_template_request_t   request;

    code = render(tool, args, NULL, NULL, NULL, 0, &request);

    if (code == NULL || strcmp(code, want) != 0) {
        fail_msg("%s with %s: %s", tool, args, code == NULL ? "fine" : code);
    }

    tg_template_request_free(&request);
}


static void
expect_target(const char *tool, const char *args, const char *want)
{
    const char             *code;
    tg_template_request_t   request;

    code = render(tool, args, "{'external_id':'u','traits':{'n':5,'b':true}}",
        "{'v':'a b'}", NULL, 0, &request);

    if (code != NULL || !tg_str_eq(request.parts.target, tg_str_of(want))) {
        fail_msg("%s with %s: %s, %.*s", tool, args, code == NULL ? "fine" : code,
            (int) request.parts.target.len, request.parts.target.data);
    }

    tg_template_request_free(&request);
}


static void
expect_body(const char *body, const char *args, const char *want)
{
    char                    tool[2048];
    const char             *code;
    tg_template_request_t   request;

    snprintf(tool, sizeof(tool), POST_BODY("%s"), body);
    code = render(tool, args, "{'external_id':'u/\\n','traits':{'n':5,'b':true}}",
        "{'v':'a\\tb'}", NULL, 0, &request);

    if (code != NULL || !request.has_body
        || !tg_str_eq(tg_buf_get(&request.body), tg_str_of(want)))
    {
        fail_msg("%s with %s: %s, %.*s", body, args, code == NULL ? "fine" : code,
            (int) request.body.len, request.body.data == NULL ? "" : request.body.data);
    }

    tg_template_request_free(&request);
}


static void
expect_body_code(const char *body, const char *args, const char *want)
{
    char  tool[2048];

    snprintf(tool, sizeof(tool), POST_BODY("%s"), body);
    expect_code(tool, args, want);
}


static void
test_order_status(void **state)
{
    tg_template_request_t       request;
    const tg_template_secret_t  secret = { tg_str("TOKEN"), tg_str("s3cret"), any_host, 1 };

    (void) state;

    assert_null(render(ORDER_STATUS, "{'order_number':'8812'}", "{'external_id':'u 1'}",
        NULL, &secret, 1, &request));
    assert_true(tg_str_eq(tg_buf_get(&request.url),
        tg_str("https://api.example.com/customers/u%201/orders/8812")));
    assert_string_equal(request.parts.host, "api.example.com");
    assert_true(tg_str_eq(request.parts.target, tg_str("/customers/u%201/orders/8812")));
    assert_string_equal(request.method, "GET");
    assert_int_equal(request.header_count, 1);
    assert_true(tg_str_eq(tg_buf_get(&request.headers[0].name), tg_str("Authorization")));
    assert_true(tg_str_eq(tg_buf_get(&request.headers[0].value), tg_str("Bearer s3cret")));
    assert_false(request.has_body);
    tg_template_request_free(&request);
    tg_template_request_free(&request);

    /* nobody verified: no identity, no request */
    assert_string_equal(render(ORDER_STATUS, "{'order_number':'8812'}", NULL, NULL,
        &secret, 1, &request), "unresolved_placeholder");
    assert_string_equal(render(ORDER_STATUS, "{'order_number':'8812'}",
        "{'external_id':'u'}", NULL, NULL, 0, &request), "unresolved_placeholder");
}


/* C052: path segments. */
static void
test_path(void **state)
{
    size_t              i;
    char                args[128];
    static const char  *bad[] = { "../../keys", "7/8", "7?all=1", "7#z", "7%2f..", "7;v=2",
        "7\\\\8", ".", "..", "\\u2024\\u2024", "a\\u0007", "{{secret.KEY}}" };

    (void) state;

#define ITEM  GET_URL("https://api.example.com/v1/{{args.x}}/z")
    expect_target(ITEM, "{'x':'7 8'}", "/v1/7%208/z");
    expect_target(ITEM, "{'x':'a..b'}", "/v1/a..b/z");
    expect_target(ITEM, "{'x':'...'}", "/v1/.../z");
    expect_target(ITEM, "{'x':'a@b:c+d'}", "/v1/a%40b%3Ac%2Bd/z");
    expect_target(ITEM, "{'x':'\xd8\xb7'}", "/v1/%D8%B7/z");

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        snprintf(args, sizeof(args), "{'x':'%s'}", bad[i]);
        expect_code(ITEM, args, "invalid_arguments");
    }

    expect_code(GET_URL("https://api.example.com/a/.{{args.x}}/b"), "{'x':'.'}",
        "invalid_arguments");
    expect_code(GET_URL("https://api.example.com/{{args.x}}{{args.y}}"),
        "{'x':'.','y':'.'}", "invalid_arguments");
    expect_target(GET_URL("https://api.example.com/{{args.x}}{{args.y}}"),
        "{'x':'.','y':'a'}", "/.a");
    expect_target(GET_URL("https://api.example.com/{{end_user.external_id}}-"
        "{{end_user.traits.n}}/{{var.v}}"), "{}", "/u-5/a%20b");
}


/* Values that do not come from the model may not make segments either. */
static void
test_path_of_others(void **state)
{
    size_t                  i;
    const char             *code;
    tg_template_request_t   request;
    static const char      *bad[] = { "{'external_id':'a/b'}", "{'external_id':'..'}",
        "{'external_id':'a\\\\b'}", "{'external_id':'a\\nb'}", "{'external_id':'\\u0085'}" };
    static const char      *none[] = { "{}", "{'external_id':null}", "{'external_id':''}",
        "{'external_id':' '}", "{'external_id':'\\u00a0\\u200b'}" };

    (void) state;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        code = render(GET_URL("https://api.example.com/{{end_user.external_id}}"), NULL,
            bad[i], NULL, NULL, 0, &request);
        assert_non_null(code);
        assert_string_equal(code, "invalid_arguments");
    }

    for (i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        code = render(GET_URL("https://api.example.com/{{end_user.external_id}}"), NULL,
            none[i], NULL, NULL, 0, &request);
        assert_non_null(code);
        assert_string_equal(code, "unresolved_placeholder");
    }

    /* in a query a slash is only a character */
    assert_null(render(GET_URL("https://api.example.com/?q={{end_user.external_id}}"), NULL,
        "{'external_id':'auth0|a/b'}", NULL, NULL, 0, &request));
    assert_true(tg_str_eq(request.parts.target, tg_str("/?q=auth0%7Ca%2Fb")));
    tg_template_request_free(&request);
}


/* C053, C054, C056: holes, falsy values that are none, digits of numbers. */
static void
test_query_values(void **state)
{
    (void) state;

#define QUERY  GET_URL("https://api.example.com/?qty={{args.x}}&on={{args.y}}")
    expect_target(QUERY, "{'x':0,'y':false}", "/?qty=0&on=false");
    expect_target(QUERY, "{'x':'a b','y':'..'}", "/?qty=a%20b&on=..");
    expect_target(QUERY, "{'x':2.0,'y':1e2}", "/?qty=2&on=100");
    expect_target(QUERY, "{'x':-1.5,'y':true}", "/?qty=-1.5&on=true");
    expect_target(QUERY, "{'x':7340032114905882371,'y':9007199254740993}",
        "/?qty=7340032114905882371&on=9007199254740993");
    expect_target(QUERY, "{'x':-9223372036854775808,'y':9223372036854775807}",
        "/?qty=-9223372036854775808&on=9223372036854775807");

    expect_code(QUERY, "{'x':'','y':false}", "unresolved_placeholder");
    expect_code(QUERY, "{'x':'   ','y':false}", "unresolved_placeholder");
    expect_code(QUERY, "{'x':null,'y':false}", "unresolved_placeholder");
    expect_code(QUERY, "{'y':false}", "unresolved_placeholder");
    expect_code(QUERY, NULL, "unresolved_placeholder");
    expect_code(QUERY, "{'x':[],'y':1}", "invalid_arguments");
    expect_code(QUERY, "{'x':{},'y':1}", "invalid_arguments");
    expect_code(GET_URL("https://api.example.com/?a={{var.v}}"), "{}",
        "unresolved_placeholder");
    expect_code(GET_URL("https://api.example.com/?a={{end_user.traits.city}}"), "{}",
        "unresolved_placeholder");
}


/* C055: nothing that could end a header line is sent, whoever wrote it. */
static void
test_headers(void **state)
{
    size_t                  i;
    const char             *code;
    tg_template_request_t   request;
    tg_template_secret_t    secret = { tg_str("K"), tg_str("v"), any_host, 1 };
    static const char      *vars[] = { "{'v':'a\\n'}", "{'v':'a\\r\\nX: 1'}",
        "{'v':'a\\u007f'}", "{'v':'a\\tb'}", "{'v':'a\\u0085'}" };

    (void) state;

    expect_code(HEADER_VALUE("{{args.x}}"), "{'x':'1\\r\\nX-Admin: 1'}",
        "invalid_arguments");
    expect_code(HEADER_VALUE("{{args.x}}"), "{'x':' '}", "unresolved_placeholder");

    for (i = 0; i < sizeof(vars) / sizeof(vars[0]); i++) {
        code = render(HEADER_VALUE("p-{{var.v}}"), NULL, NULL, vars[i], NULL, 0, &request);
        assert_non_null(code);
        assert_string_equal(code, "invalid_arguments");
    }

    secret.value = tg_str("v\n");
    code = render(HEADER_VALUE("{{secret.K}}"), NULL, NULL, NULL, &secret, 1, &request);
    assert_string_equal(code, "invalid_arguments");

    secret.value = tg_str("v\0w");
    code = render(HEADER_VALUE("{{secret.K}}"), NULL, NULL, NULL, &secret, 1, &request);
    assert_string_equal(code, "invalid_arguments");

    secret.value = tg_str("  ");
    code = render(HEADER_VALUE("{{secret.K}}"), NULL, NULL, NULL, &secret, 1, &request);
    assert_string_equal(code, "unresolved_placeholder");

    assert_null(render(HEADER_VALUE("a {{args.x}} b"), "{'x':5}", NULL, NULL, NULL, 0,
        &request));
    assert_true(tg_str_eq(tg_buf_get(&request.headers[0].value), tg_str("a 5 b")));
    tg_template_request_free(&request);
}


static const char *
render_secret(const char *url, const tg_str_t *hosts, size_t n, const char *value)
{
    char                    tool[512];
    const char             *code;
    tg_template_request_t   request;
    tg_template_secret_t    secret = { tg_str("K"), tg_str_of(value), hosts, n };

    snprintf(tool, sizeof(tool), GET_URL("%s"), url);
    code = render(tool, NULL, NULL, NULL, &secret, 1, &request);
    tg_template_request_free(&request);

    return code == NULL ? NO_HOLE : code;
}


static void
test_secret_hosts(void **state)
{
    size_t          i;
    const tg_str_t  hosts[] = { tg_str("other.test"), tg_str("api.example.com"),
                                tg_str("b.test:8443"), tg_str("93.184.215.14:8443"),
                                tg_str("[2606:4700:4700::1111]:8443"),
                                tg_str("2606:4700:4700::1112") };
    static const struct { const char *url, *code; }  cases[] = {
        { "https://api.example.com/?k={{secret.K}}", NO_HOLE },
        { "https://API.Example.com.:8443/?k={{secret.K}}", NO_HOLE },
        { "https://b.test:8443/?k={{secret.K}}", NO_HOLE },
        { "https://b.test/?k={{secret.K}}", "secret_host_not_allowed" },
        { "https://api.example.com.evil.test/?k={{secret.K}}", "secret_host_not_allowed" },
        { "https://xapi.example.com/?k={{secret.K}}", "secret_host_not_allowed" },
        { "https://evil.test/api.example.com?k={{secret.K}}", "secret_host_not_allowed" },
        { "https://93.184.215.14:8443/?k={{secret.K}}", NO_HOLE },
        { "https://93.184.215.14/?k={{secret.K}}", "secret_host_not_allowed" },
        { "https://[2606:4700:4700:0::1111]:8443/?k={{secret.K}}", NO_HOLE },
        { "https://[2606:4700:4700::1111]/?k={{secret.K}}", "secret_host_not_allowed" },
        { "https://[2606:4700:4700::1112]:8443/?k={{secret.K}}", NO_HOLE },
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_string_equal(render_secret(cases[i].url, hosts, 6, "v"), cases[i].code);
    }

    assert_string_equal(render_secret(cases[0].url, NULL, 0, "v"),
        "secret_host_not_allowed");
    assert_string_equal(render_secret("https://h.test/?k={{secret.L}}", hosts, 6, "v"),
        "unresolved_placeholder");
}


/* C059: a secret in a query is escaped like any value. */
static void
test_secret_escape(void **state)
{
    tg_template_request_t       request;
    const tg_template_secret_t  secret = { tg_str("K"), tg_str("k+/=\xc3\xa9"), any_host,
                                           1 };

    (void) state;

    assert_null(render(GET_URL("https://api.example.com/?k={{secret.K}}"), NULL, NULL, NULL,
        &secret, 1, &request));
    assert_true(tg_str_eq(request.parts.target, tg_str("/?k=k%2B%2F%3D%C3%A9")));
    tg_template_request_free(&request);
}


/* C067, C078: the bytes of a body are exact; escapes, types, order of keys. */
/* what is kept of a request shows where a secret was, never the secret */
static void
test_secret_stand_in(void **state)
{
    json_t                *tool;
    tg_template_t         *template;
    tg_template_error_t    error;
    tg_template_request_t  request;
    tg_template_secret_t   secret = { tg_str("S"), tg_str("a/b"), any_host, 1 };
    tg_template_values_t   values = { .secrets = &secret, .secret_count = 1,
                                      .secret_text = "***" };

    (void) state;

    tool = quoted("{'name':'t','config':{'method':'POST','url':"
                  "'https://api.example.com/v1/x?k={{secret.S}}&n=1','headers':"
                  "{'X-Key':'Bearer {{secret.S}}'},'body':{'k':'{{secret.S}}',"
                  "'m':'x{{secret.S}}y'}}}");
    template = tg_template_compile(tool, NULL, &error);
    assert_non_null(template);

    assert_null(tg_template_render(template, &values, &request));
    assert_true(tg_str_eq(tg_buf_get(&request.url),
                          tg_str("https://api.example.com/v1/x?k=***&n=1")));
    assert_true(tg_str_eq(tg_buf_get(&request.headers[0].value),
                          tg_str("Bearer ***")));
    assert_true(tg_str_eq(tg_buf_get(&request.body),
                          tg_str("{\"k\":\"***\",\"m\":\"x***y\"}")));

    tg_template_request_free(&request);

    /* the hosts are still asked for */
    secret.allowed_host_count = 0;
    assert_string_equal(tg_template_render(template, &values, &request),
                        "secret_host_not_allowed");

    tg_template_free(template);
    json_decref(tool);
}


static void
test_body(void **state)
{
    (void) state;

    expect_body("{'a':'{{args.x}}'}", "{'x':'8812'}", "{\"a\":\"8812\"}");
    expect_body("{'a':'{{ args.x }}'}", "{'x':7340032114905882371}",
        "{\"a\":7340032114905882371}");
    expect_body("['{{args.x}}','n {{args.x}}']", "{'x':false}", "[false,\"n false\"]");
    expect_body("['{{args.x}}','n {{args.x}}']", "{'x':2.0}", "[2,\"n 2\"]");
    expect_body("'{{args.x}}'", "{'x':'y'}", "\"y\"");
    expect_body("{'b':1,'a':[true,null,1.5,{}],'':'{{args.x}}{{args.x}}'}", "{'x':1}",
        "{\"b\":1,\"a\":[true,null,1.5,{}],\"\":\"11\"}");
    expect_body("{'k\\\\\\u2028':'\\n{{args.x}}\xc3\xa9'}", "{'x':1}",
        "{\"k\\\\\\u2028\":\"\\n1\xc3\xa9\"}");
    expect_body("'{{args.t}}'", "{'t':'a\\u202eb'}", "\"ab\"");
    expect_body("{'t':'{{args.t}}','s':'<{{args.t}}>'}",
        "{'t':'1\\r\\nX-Admin: \\\\ \\u2028<>/\\u0645\\u06cc\\u200c\\u062e'}",
        "{\"t\":\"1 X-Admin: \\\\ \\u2028<>/\xd9\x85\xdb\x8c\xe2\x80\x8c\xd8\xae\","
        "\"s\":\"<1 X-Admin: \\\\ \\u2028<>/\xd9\x85\xdb\x8c\xe2\x80\x8c\xd8\xae>\"}");
    expect_body("'{{args.t}}'", "{'t':'{{secret.K}} \\u0022,\\u0022a\\u0022:1'}",
        "\"{{secret.K}} \\\",\\\"a\\\":1\"");

    /* arrays and objects: keys sorted, so equal arguments are equal bytes */
    expect_body("{'l':'{{args.l}}'}", "{'l':{'b':[1,'x'],'a':null}}",
        "{\"l\":{\"a\":null,\"b\":[1,\"x\"]}}");
    expect_body("{'l':'{{args.l}}'}", "{'l':[]}", "{\"l\":[]}");
    expect_body("{'l':'{{args.tl}}'}", "{'tl':['a\\u200b/b',{'k':'\\n'}]}",
        "{\"l\":[\"a/b\",{\"k\":\"\"}]}");

    expect_body("['{{end_user.external_id}}','{{end_user.traits.n}}','{{var.v}}']", "{}",
        "[\"u/\\n\",5,\"a\\tb\"]");

    expect_body_code("'{{args.x}}'", "{'x':'a/b'}", "invalid_arguments");
    expect_body_code("'{{args.x}}'", "{'x':null}", "unresolved_placeholder");
    expect_body_code("'{{args.x}}'", "{'x':' '}", "unresolved_placeholder");
    expect_body_code("'{{args.t}}'", "{'t':'\\u200b\\n \\u00a0'}",
        "unresolved_placeholder");
    expect_body_code("'a{{args.t}}'", "{'t':''}", "unresolved_placeholder");
    expect_body_code("'a{{args.x}}'", "{'x':[]}", "invalid_arguments");
    expect_body_code("'{{args.l}}'", "{'l':['a/b']}", "invalid_arguments");
    expect_body_code("'{{args.l}}'", "{'l':{'a/b':1}}", "invalid_arguments");
}


/* The media type is said when there is a body, unless the tool says another. */
static void
test_content_type(void **state)
{
    tg_template_request_t  request;

    (void) state;

    assert_null(render(POST_BODY("{}"), NULL, NULL, NULL, NULL, 0, &request));
    assert_int_equal(request.header_count, 1);
    assert_true(tg_str_eq(tg_buf_get(&request.headers[0].name), tg_str("Content-Type")));
    assert_true(tg_str_eq(tg_buf_get(&request.headers[0].value),
        tg_str("application/json")));
    assert_true(tg_str_eq(tg_buf_get(&request.body), tg_str("{}")));
    tg_template_request_free(&request);

    assert_null(render("{'name':'t','config':{'method':'POST','url':'https://h/','body':[],"
        "'headers':{'content-type':'application/x+json'}}}", NULL, NULL, NULL, NULL, 0,
        &request));
    assert_int_equal(request.header_count, 1);
    tg_template_request_free(&request);

    assert_null(render("{'name':'t','config':{'method':'POST','url':'https://h/'}}", NULL,
        NULL, NULL, NULL, 0, &request));
    assert_int_equal(request.header_count, 0);
    assert_false(request.has_body);
    tg_template_request_free(&request);
}


/* One secret of n bytes in the URL, a header or the body. */
static const char *
render_long(const char *tool, size_t n)
{
    char                   *value = malloc(n);
    const char             *code;
    tg_template_request_t   request;
    tg_template_secret_t    secret = { tg_str("K"), { n, value }, any_host, 1 };

    assert_non_null(value);
    memset(value, 'a', n);
    code = render(tool, NULL, NULL, NULL, &secret, 1, &request);
    tg_template_request_free(&request);
    free(value);

    return code == NULL ? NO_HOLE : code;
}


static void
test_bounds(void **state)
{
    size_t       fixed = strlen("https://api.example.com/?k=");
    const char  *url = GET_URL("https://api.example.com/?k={{secret.K}}");
    const char  *header = HEADER_VALUE("{{secret.K}}");
    const char  *body = POST_BODY("'{{secret.K}}'");

    (void) state;

    assert_string_equal(render_long(url, TG_URL_MAX - fixed), NO_HOLE);
    assert_string_equal(render_long(url, TG_URL_MAX - fixed + 1), "invalid_arguments");
    assert_string_equal(render_long(header, TG_TEMPLATE_HEADER_MAX), NO_HOLE);
    assert_string_equal(render_long(header, TG_TEMPLATE_HEADER_MAX + 1),
        "invalid_arguments");
    assert_string_equal(render_long(body, TG_TEMPLATE_BODY_MAX - 2), NO_HOLE);
    assert_string_equal(render_long(body, TG_TEMPLATE_BODY_MAX - 1), "invalid_arguments");
}


#define BENCH_ROUNDS  20000

static void
test_bench(void **state)
{
    double                       us;
    json_t                      *tool, *args, *user;
    tg_buf_t                     signature;
    tg_template_t               *template;
    tg_sign_key_t                key;
    struct timespec              from, to;
    tg_template_error_t          error;
    tg_template_values_t         values = { 0 };
    tg_template_request_t        request;
    const tg_template_secret_t   secret = { tg_str("TOKEN"), tg_str("s3cret"), any_host, 1 };

    (void) state;

    if (getenv("TG_BENCH") == NULL) {
        skip();
    }

    tool = quoted(ORDER_STATUS);
    args = quoted("{'order_number':'8812'}");
    user = quoted("{'external_id':'u1'}");
    template = tg_template_compile(tool, NULL, &error);
    assert_non_null(template);
    values = (tg_template_values_t) { args, user, NULL, &secret, 1, NULL };
    assert_int_equal(tg_sign_key_parse(tg_str("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
        &key), TG_OK);
    tg_buf_init(&signature, 128);

    clock_gettime(CLOCK_MONOTONIC, &from);

    for (int i = 0; i < BENCH_ROUNDS; i++) {
        assert_null(tg_template_render(template, &values, &request));
        tg_buf_reset(&signature);
        assert_int_equal(tg_sign(&key, tg_str("call_0123456789abcdefABCDEF"), 1700000000,
            tg_buf_get(&request.body), &signature), TG_OK);
        tg_template_request_free(&request);
    }

    clock_gettime(CLOCK_MONOTONIC, &to);
    us = ((double) (to.tv_sec - from.tv_sec) * 1e9 + (double) (to.tv_nsec - from.tv_nsec))
         / 1e3 / BENCH_ROUNDS;
    printf("render and sign order_status: %.2f us\n", us);

    tg_buf_free(&signature);
    tg_template_free(template);
    json_decref(tool);
    json_decref(args);
    json_decref(user);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_order_status),
        cmocka_unit_test(test_path),
        cmocka_unit_test(test_path_of_others),
        cmocka_unit_test(test_query_values),
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_secret_hosts),
        cmocka_unit_test(test_secret_escape),
        cmocka_unit_test(test_secret_stand_in),
        cmocka_unit_test(test_body),
        cmocka_unit_test(test_content_type),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_bench),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
