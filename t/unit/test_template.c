/*
 * Definitions of HTTP tools: each rule with its code and place, the edges of each
 * bound, and the formats of arguments.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "quoted.h"
#include "tg_template.h"


/* A tool that is right, around one member of config or of the tool. */
#define TOOL(members)    "{'name':'t','description':'d'," members "}"
#define CONFIG(members)  "'config':{'method':'POST','url':'https://h.test/a'," members "}"
#define BASE             "'config':{'method':'POST','url':'https://h.test/a'}"
#define PARAMS(props)    "'parameters':{'type':'object','properties':{" props "}}"
#define URL(url)         "'config':{'method':'GET','url':'" url "'," \
                         PARAMS("'x':{'type':'string'}") "}"
#define VERIFIED         "'requires_verified_user':true,"

typedef struct {
    const char  *tool;
    const char  *code;        /* NULL: fine */
    const char  *pointer;
} case_t;


static void
check(const case_t *cases, size_t n, const tg_netguard_t *guard)
{
    size_t                i;
    json_t               *tool;
    tg_template_t        *template;
    tg_template_error_t   error;

    for (i = 0; i < n; i++) {
        tool = quoted(cases[i].tool);
        template = tg_template_compile(tool, guard, &error);
        json_decref(tool);

        if (template != NULL) {
            tg_template_free(template);

            if (cases[i].code != NULL) {
                fail_msg("taken: %s", cases[i].tool);
            }

            continue;
        }

        if (cases[i].code == NULL || strcmp(error.code, cases[i].code) != 0
            || strcmp(error.pointer, cases[i].pointer) != 0)
        {
            fail_msg("%s: %s at \"%s\" (%s)", cases[i].tool, error.code, error.pointer,
                error.reason);
        }

        assert_true(error.reason[0] != '\0');
    }
}

#define CHECK(cases)  check(cases, sizeof(cases) / sizeof(cases[0]), NULL)


/* C037: the length of names at the edge. */
static void
test_tool(void **state)
{
    static const case_t  cases[] = {
        { TOOL(BASE), NULL, "" },
        { "{'name':'a23456789012345678901234567890'," BASE "}", NULL, "" },
        { "{'name':'a234567890123456789012345678901'," BASE "}", "invalid_tool_name",
          "/name" },
        { "{'name':''," BASE "}", "invalid_tool_name", "/name" },
        { "{'name':'Order_Status'," BASE "}", "invalid_tool_name", "/name" },
        { "{'name':'order-status'," BASE "}", "invalid_tool_name", "/name" },
        { "{'name':'1a'," BASE "}", "invalid_tool_name", "/name" },
        { "{'name':'_a'," BASE "}", "invalid_tool_name", "/name" },
        { "{'name':7," BASE "}", "invalid_tool_name", "/name" },
        { "{" BASE "}", "invalid_tool_name", "/name" },
        { "{'name':'create_ticket'," BASE "}", "tool_name_conflict", "/name" },
        { "[]", "invalid_type", "" },
        { TOOL("'x':1," BASE), "unknown_field", "/x" },
        { "{'name':'t','description':1," BASE "}", "invalid_type", "/description" },
        { TOOL("'effect':'read'," BASE), NULL, "" },
        { TOOL("'effect':'action'," BASE), NULL, "" },
        { TOOL("'effect':'escalation'," BASE), "invalid_value", "/effect" },
        { TOOL("'effect':1," BASE), "invalid_value", "/effect" },
        { TOOL("'enabled':1," BASE), "invalid_type", "/enabled" },
        { TOOL("'requires_verified_user':'yes'," BASE), "invalid_type",
          "/requires_verified_user" },
        { "{'name':'t'}", "missing_parameter", "/config" },
        { TOOL("'config':[]"), "invalid_type", "/config" },
        { TOOL(CONFIG("'x':1")), "unknown_field", "/config/x" },
        { TOOL("'config':{'url':'https://h/'}"), "invalid_method", "/config/method" },
        { TOOL("'config':{'method':'get','url':'https://h/'}"), "invalid_method",
          "/config/method" },
        { TOOL("'config':{'method':'TRACE','url':'https://h/'}"), "invalid_method",
          "/config/method" },
        { TOOL("'config':{'method':'GET'}"), "invalid_url", "/config/url" },
        { TOOL(CONFIG("'timeout_ms':100")), NULL, "" },
        { TOOL(CONFIG("'timeout_ms':15000")), NULL, "" },
        { TOOL(CONFIG("'timeout_ms':99")), "timeout_out_of_range", "/config/timeout_ms" },
        { TOOL(CONFIG("'timeout_ms':15001")), "timeout_out_of_range",
          "/config/timeout_ms" },
        { TOOL(CONFIG("'timeout_ms':'8000'")), "timeout_out_of_range",
          "/config/timeout_ms" },
        { TOOL(CONFIG("'response':{'fields':[{'path':'a','x':1}]}")), "unknown_field",
          "/config/response/fields/0/x" },
        { TOOL(CONFIG("'response':{'max_items':21}")), "invalid_value",
          "/config/response/max_items" },
    };

    (void) state;

    CHECK(cases);
}


static void
test_url(void **state)
{
    static const case_t  cases[] = {
        { TOOL(URL("https://h.test/{{args.x}}")), NULL, "" },
        { TOOL(URL("https://h.test:8443/a?b={{args.x}}&c={{ secret.A_1 }}")), NULL, "" },
        { TOOL(URL("https://h.test/{{var.a.b-c_1}}")), NULL, "" },
        { TOOL(URL("http://h.test/")), "url_not_https", "/config/url" },
        { TOOL(URL("ftp://h.test/")), "url_not_https", "/config/url" },
        { TOOL(URL("https://{{args.x}}/")), "url_host_placeholder", "/config/url" },
        { TOOL(URL("https://h.test:{{args.x}}/")), "url_host_placeholder", "/config/url" },
        { TOOL(URL("https://u{{args.x}}@h.test/")), "url_host_placeholder",
          "/config/url" },
        { TOOL(URL("https://h.test{{args.x}}")), "url_host_placeholder", "/config/url" },
        { TOOL(URL("{{args.x}}://h.test/")), "url_host_placeholder", "/config/url" },
        { TOOL(URL("{{var.base}}/x")), "url_host_placeholder", "/config/url" },
        { TOOL(URL("https://h.test:80/")), "url_port_not_allowed", "/config/url" },
        { TOOL(URL("https://10.0.0.1/")), "address_not_allowed", "/config/url" },
        { TOOL(URL("https://u:p@h.test/")), "invalid_url", "/config/url" },
        { TOOL(URL("https://h.test/#a")), "invalid_url", "/config/url" },
        { TOOL(URL("https://h.test/a\\\\b")), "invalid_url", "/config/url" },
        { TOOL(URL("https://h.test")), "invalid_url", "/config/url" },
        { TOOL(URL("https://h.test?a=b")), "invalid_url", "/config/url" },
        { TOOL(URL("https://h.test/a b")), "invalid_url", "/config/url" },
        { TOOL(URL("https://h.test/%{{args.x}}")), "invalid_url", "/config/url" },
        { TOOL(URL("https://h.test/a/../{{args.x}}")), "invalid_url", "/config/url" },
        { TOOL(URL("https://h.test/%2e%2E/{{args.x}}")), "invalid_url", "/config/url" },
        { TOOL(URL("https://h.test/./")), "invalid_url", "/config/url" },
        { TOOL(URL("https://h.test/?q=../..")), NULL, "" },
        { TOOL(URL("https://h.test/{a}")), "invalid_url", "/config/url" },
        { TOOL(URL("https://h.test/{{args.y}}")), "unknown_placeholder", "/config/url" },
        { TOOL(URL("https://h.test/{{args}}")), "unknown_placeholder", "/config/url" },
        { TOOL(URL("https://h.test/{{args.x.y}}")), "unknown_placeholder", "/config/url" },
        { TOOL(URL("https://h.test/{{sys.now}}")), "unknown_placeholder", "/config/url" },
        { TOOL(URL("https://h.test/{{x}}")), "unknown_placeholder", "/config/url" },
        { TOOL(URL("https://h.test/{{}}")), "unknown_placeholder", "/config/url" },
        { TOOL(URL("https://h.test/{{args.x")), "unknown_placeholder", "/config/url" },
        { TOOL(URL("https://h.test/{{args.x}")), "unknown_placeholder", "/config/url" },
        { TOOL(URL("https://h.test/{{{args.x}}}")), "unknown_placeholder",
          "/config/url" },
        { TOOL(URL("https://h.test/{{secret.low}}")), "unknown_placeholder",
          "/config/url" },
        { TOOL(URL("https://h.test/{{secret.}}")), "unknown_placeholder", "/config/url" },
        { TOOL(URL("https://h.test/{{ARGS.x}}")), "unknown_placeholder", "/config/url" },
        { TOOL(URL("https://h.test/{{end_user.external_id}}")), "verified_user_required",
          "/config/url" },
        { TOOL(URL("https://h.test/{{end_user.traits.city}}")), "verified_user_required",
          "/config/url" },
        { TOOL(VERIFIED URL("https://h.test/{{end_user.traits.city}}")), NULL, "" },
        { TOOL(VERIFIED URL("https://h.test/{{end_user.external_id}}")), NULL, "" },
        { TOOL(VERIFIED URL("https://h.test/{{end_user.sub}}")), "unknown_placeholder",
          "/config/url" },
    };

    (void) state;

    CHECK(cases);
}


/* What the operator opened may be named, and only that. */
static void
test_url_guard(void **state)
{
    tg_netguard_allow_t   allow = { .ports = { 9000 }, .port_count = 1 };
    tg_netguard_t         guard = { .allow = &allow, .allow_count = 1 };
    static const case_t   cases[] = {
        { TOOL(URL("https://127.0.0.1:9000/")), NULL, "" },
        { TOOL(URL("https://h.test:9000/")), NULL, "" },
        { TOOL(URL("http://127.0.0.1:9000/")), "url_not_https", "/config/url" },
        { TOOL(URL("https://127.0.0.1:9001/")), "url_port_not_allowed", "/config/url" },
    };
    static const case_t   http[] = {
        { TOOL(URL("http://127.0.0.1:9000/")), NULL, "" },
        { TOOL(URL("http://127.0.0.1/")), "url_port_not_allowed", "/config/url" },
        { TOOL(URL("http://8.8.8.8:443/")), "url_not_https", "/config/url" },
    };

    (void) state;

    assert_true(tg_netguard_cidr_parse(tg_str("127.0.0.0/8"), &allow.network,
        &allow.prefix));
    check(cases, 4, &guard);
    allow.insecure_http = true;
    check(http, 3, &guard);
}


#define HEADER(name, value)  TOOL(CONFIG("'headers':{'" name "':'" value "'}"))

static void
test_headers(void **state)
{
    size_t               i;
    char                 tool[512], pointer[128];
    case_t               one = { tool, "header_not_allowed", pointer };
    static const char   *refused[] = { "Host", "hOsT", "Forwarded", "X-Forwarded-For",
        "x-forwarded-", "X-Real-IP", "Connection", "Transfer-Encoding", "Content-Length",
        "Proxy-Authorization", "proxy-", "webhook-id", "Webhook-Signature", "TE", "Trailer",
        "Upgrade", "Expect", "Keep-Alive", "X-Toolgate-Run", "", "a b", "a:", "a\xc3\xa9" };
    static const case_t  cases[] = {
        { HEADER("Authorization", "Bearer {{secret.ORDERS_TOKEN}}"), NULL, "" },
        { HEADER("User-Agent", "me/1"), NULL, "" },
        { HEADER("X-Forwarded", "a"), NULL, "" },
        { HEADER("Accept", "a\\nb"), "header_not_allowed", "/config/headers/Accept" },
        { HEADER("Accept", "a\\tb"), "header_not_allowed", "/config/headers/Accept" },
        { HEADER("Accept", ""), "invalid_value", "/config/headers/Accept" },
        { HEADER("Accept", "  "), "invalid_value", "/config/headers/Accept" },
        { HEADER("X-A", "{{args.a}}"), "unknown_placeholder", "/config/headers/X-A" },
        { TOOL(CONFIG("'headers':{'X-A':'1','x-a':'2'}")), "header_not_allowed",
          "/config/headers/x-a" },
        { TOOL(CONFIG("'headers':{'X-A':1}")), "invalid_type", "/config/headers/X-A" },
        { TOOL(CONFIG("'headers':[]")), "invalid_type", "/config/headers" },
    };

    (void) state;

    CHECK(cases);

    for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        snprintf(tool, sizeof(tool), HEADER("%s", "v"), refused[i]);
        snprintf(pointer, sizeof(pointer), "/config/headers/%s", refused[i]);
        check(&one, 1, NULL);
    }
}


static void
test_header_bound(void **state)
{
    size_t  n, len;
    char    tool[4096];
    case_t  one = { tool, NULL, "" };

    (void) state;

    for (n = TG_TEMPLATE_MAX_HEADERS; n <= TG_TEMPLATE_MAX_HEADERS + 1; n++) {
        len = (size_t) snprintf(tool, sizeof(tool),
            "{'name':'t','config':{'method':'GET','url':'https://h/','headers':{");

        for (size_t i = 0; i < n; i++) {
            len += (size_t) snprintf(tool + len, sizeof(tool) - len, "%s'X-%zu':'v'",
                i > 0 ? "," : "", i);
        }

        snprintf(tool + len, sizeof(tool) - len, "}}}");
        check(&one, 1, NULL);
        one.code = "invalid_value";
        one.pointer = "/config/headers";
    }
}


#define PROP(props)  TOOL(CONFIG(PARAMS(props)))
#define P            "/config/parameters"

static void
test_parameters(void **state)
{
    static const case_t  cases[] = {
        { TOOL(CONFIG("'parameters':1")), "invalid_schema", P },
        { TOOL(CONFIG("'parameters':{}")), "invalid_schema", P "/type" },
        { TOOL(CONFIG("'parameters':{'type':'string'}")), "invalid_schema", P "/type" },
        { TOOL(CONFIG("'parameters':{'type':['object']}")), "invalid_schema", P "/type" },
        { TOOL(CONFIG("'parameters':{'type':'object'}")), NULL, "" },
        { TOOL(CONFIG("'parameters':{'type':'object','properties':[]}")), "invalid_schema",
          P "/properties" },
        { PROP("'a':{},'b':true,'c':{},'d':{},'e':{},'f':{},'g':{},'h':{}"), NULL, "" },
        { PROP("'a':{},'b':{},'c':{},'d':{},'e':{},'f':{},'g':{},'h':{},'i':{}"),
          "too_many_parameters", P "/properties" },
        { PROP("'args':{}"), "reserved_name", P "/properties/args" },
        { PROP("'end_user':{}"), "reserved_name", P "/properties/end_user" },
        { PROP("'secret':{}"), "reserved_name", P "/properties/secret" },
        { PROP("'var':{}"), "reserved_name", P "/properties/var" },
        { PROP("'sys':{}"), "reserved_name", P "/properties/sys" },
        { PROP("'a b':{}"), "invalid_schema", P "/properties/a b" },
        { PROP("'a':1"), "invalid_schema", P "/properties/a" },
        { PROP("'a':{'x-kagent-format':'token'}"), NULL, "" },
        { PROP("'a':{'x-kagent-format':'text'}"), NULL, "" },
        { PROP("'a':{'x-kagent-format':'html'}"), "invalid_schema",
          P "/properties/a/x-kagent-format" },
        { PROP("'a':{'x-kagent-format':1}"), "invalid_schema",
          P "/properties/a/x-kagent-format" },
        { PROP("'a':{'type':'string','nullable':true}"), "invalid_schema",
          P "/properties/a/nullable" },
        { PROP("'a':{'items':{'nullable':true}}"), "invalid_schema",
          P "/properties/a/items/nullable" },
        { PROP("'a':{'anyOf':[{},{'nullable':true}]}"), "invalid_schema",
          P "/properties/a/anyOf/1/nullable" },
        { PROP("'nullable':{}"), NULL, "" },
        { PROP("'a':{'properties':{'nullable':{}},'default':{'nullable':1}}"), NULL, "" },
        { PROP("'email':{}"), NULL, "" },
        { TOOL(VERIFIED CONFIG(PARAMS("'email':{}"))), "identity_as_parameter",
          P "/properties/email" },
        { TOOL(VERIFIED CONFIG(PARAMS("'phone':{}"))), "identity_as_parameter",
          P "/properties/phone" },
        { TOOL(VERIFIED CONFIG(PARAMS("'mobile':{}"))), "identity_as_parameter",
          P "/properties/mobile" },
        { TOOL(VERIFIED CONFIG(PARAMS("'userId':{}"))), "identity_as_parameter",
          P "/properties/userId" },
        { TOOL(VERIFIED CONFIG(PARAMS("'customer_id':{}"))), "identity_as_parameter",
          P "/properties/customer_id" },
        { TOOL(VERIFIED CONFIG(PARAMS("'ACCOUNT-ID':{}"))), "identity_as_parameter",
          P "/properties/ACCOUNT-ID" },
        { TOOL(VERIFIED CONFIG(PARAMS("'external_id':{}"))), "identity_as_parameter",
          P "/properties/external_id" },
        { TOOL(VERIFIED CONFIG(PARAMS("'o':{'properties':{'user_id':{}}}"))),
          "identity_as_parameter", P "/properties/o/properties/user_id" },
        { TOOL(VERIFIED CONFIG(PARAMS("'order_id':{},'emails':{}"))), NULL, "" },
    };

    (void) state;

    CHECK(cases);
}


#define BODY(props, body)  TOOL(CONFIG(PARAMS(props) ",'body':" body))

static void
test_body_and_formats(void **state)
{
    static const case_t  cases[] = {
        { BODY("'a':{'x-kagent-format':'text'}", "{'a':'{{args.a}}'}"), NULL, "" },
        { BODY("'a':{'type':'array'}", "{'a':'{{args.a}}'}"), NULL, "" },
        { BODY("'a':{'type':'array'}", "{'a':'x {{args.a}}'}"), "format_not_allowed",
          "/config/body/a" },
        { BODY("'a':{}", "[1,[{'k':'{{args.b}}'}]]"), "unknown_placeholder",
          "/config/body/1/0/k" },
        { BODY("'a':{}", "{'{{args.a}}':1}"), "unknown_placeholder",
          "/config/body/{{args.a}}" },
        { BODY("'a':{}", "'{{args.a}} {{'"), "unknown_placeholder", "/config/body" },
        { BODY("'a':{}", "'}} {a} {'"), NULL, "" },
        { BODY("'a':{}", "null"), NULL, "" },
        { TOOL("'config':{'method':'GET','url':'https://h/','body':{}}"),
          "body_not_allowed", "/config/body" },
        { TOOL("'config':{'method':'GET','url':'https://h/','body':null}"), NULL, "" },
        { TOOL("'config':{'method':'DELETE','url':'https://h/','body':[]}"), NULL, "" },
        { TOOL("'config':{'method':'GET','url':'https://h/{{args.a}}',"
          PARAMS("'a':{'x-kagent-format':'text'}") "}"), "format_not_allowed",
          "/config/url" },
        { TOOL("'config':{'method':'GET','url':'https://h/?q={{args.a}}',"
          PARAMS("'a':{'type':'object'}") "}"), "format_not_allowed", "/config/url" },
        { TOOL("'config':{'method':'GET','url':'https://h/?q={{args.a}}',"
          PARAMS("'a':{'type':['string','array']}") "}"), "format_not_allowed",
          "/config/url" },
        { TOOL("'config':{'method':'GET','url':'https://h/','headers':{'X-A':"
          "'{{args.a}}'}," PARAMS("'a':{'x-kagent-format':'text'}") "}"),
          "format_not_allowed", "/config/headers/X-A" },
    };

    (void) state;

    CHECK(cases);
}


static void
test_accessors(void **state)
{
    json_t               *tool;
    tg_template_t        *t;
    tg_template_error_t   error;

    (void) state;

    tool = quoted("{'name':'t','description':'d','config':{'method':'GET',"
        "'url':'https://h/'}}");
    t = tg_template_compile(tool, NULL, &error);
    assert_non_null(t);
    json_decref(tool);
    assert_true(tg_str_eq(tg_template_name(t), tg_str("t")));
    assert_true(tg_str_eq(tg_template_description(t), tg_str("d")));
    assert_int_equal(tg_template_effect(t), TG_EFFECT_READ);
    assert_true(tg_template_enabled(t));
    assert_false(tg_template_requires_verified_user(t));
    assert_int_equal(tg_template_timeout_ms(t), TG_TEMPLATE_TIMEOUT_MS);
    assert_true(json_is_false(json_object_get(tg_template_parameters(t),
        "additionalProperties")));
    assert_null(tg_template_response(t));
    tg_template_free(t);

    tool = quoted("{'name':'t','enabled':false," VERIFIED "'config':{'method':'PUT',"
        "'url':'https://h/','timeout_ms':300,'response':{'max_items':3}}}");
    t = tg_template_compile(tool, NULL, &error);
    assert_non_null(t);
    json_decref(tool);
    assert_int_equal(tg_template_effect(t), TG_EFFECT_ACTION);
    assert_false(tg_template_enabled(t));
    assert_true(tg_template_requires_verified_user(t));
    assert_int_equal(tg_template_timeout_ms(t), 300);
    assert_int_equal(json_object_size(tg_template_response(t)), 1);
    tg_template_free(t);
    tg_template_free(NULL);
}


/* C057, C058: digits first, then the token rule; no normalisation after it. */
static void
test_token_format(void **state)
{
    size_t                i;
    char                  text[400], pointer[64];
    json_t               *args, *tool;
    tg_template_t        *t;
    tg_template_error_t   error;
    static const char    *good[] = { "", "8812", "A-1_b.c@d:e+f g", "...", " ",
        "\xd8\xb7\xd9\x84\xd8\xa8 8812", "caf\xc3\xa9", "\xe4\xb8\xad\xe6\x96\x87",
        "\xd9\xa8\xd9\xa8\xd9\xa1\xd9\xa2", "\xdb\xb8\xdb\xb8", "8\xd9\xa8" "12" };
    static const char    *bad[] = { "a/b", "../../keys", "7?all=1", "7#z", "7%2f..",
        "7;v=2", "7\\\\8", "a,b", "a\\tb", "a\\nb", "a\\u200bb", "a\\u202eb", "a\\u200db",
        "a\xef\xbc\xa0" "b", "\xef\xbc\x8e\xef\xbc\x8e\xef\xbc\x8f" "x", "\xe2\x80\xa5",
        "\xef\xac\x80", "\xef\xbc\x98\xef\xbc\x98", "\xe2\x80\xa4", "<b>", "{{secret.K}}",
        "a\xc2\xa0" "b", "\xf0\x9f\x98\x80", "\xc2\xb2", "\xe2\x84\xaa", "a&b", "a=b",
        "\xf0\x9d\x9f\x8f" };

    (void) state;

    tool = quoted(PROP("'a':{'type':'string'},'l':{'type':'array'}"));
    t = tg_template_compile(tool, NULL, &error);
    assert_non_null(t);
    json_decref(tool);

    for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        snprintf(text, sizeof(text), "{'a':'%s'}", good[i]);
        args = quoted(text);
        assert_int_equal(tg_template_fold_digits(args), TG_OK);

        if (tg_template_check_formats(t, args, pointer, sizeof(pointer)) != NULL) {
            fail_msg("refused: %s", good[i]);
        }

        json_decref(args);
    }

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        snprintf(text, sizeof(text), "{'a':'%s'}", bad[i]);
        args = quoted(text);

        if (tg_template_check_formats(t, args, pointer, sizeof(pointer)) == NULL) {
            fail_msg("taken: %s", bad[i]);
        }

        assert_string_equal(pointer, "/a");
        json_decref(args);
    }

    /* 64 characters of one byte and of four */
    for (i = 64; i <= 65; i++) {
        snprintf(text, sizeof(text), "{'a':'%0*d'}", (int) i, 1);
        args = quoted(text);
        assert_int_equal(tg_template_check_formats(t, args, pointer, sizeof(pointer))
            == NULL, i == 64);
        json_decref(args);

        memset(text, 0, sizeof(text));
        strcpy(text, "{'a':'");

        for (size_t k = 0; k < i; k++) {
            strcat(text, "\xf0\xa0\x80\x80");
        }

        strcat(text, "'}");
        args = quoted(text);
        assert_int_equal(tg_template_check_formats(t, args, pointer, sizeof(pointer))
            == NULL, i == 64);
        json_decref(args);
    }

    /* the format holds for what is inside, keys too; other arguments are let be */
    args = quoted("{'l':[1,'ok',['a/b']],'other':'a/b'}");
    assert_non_null(tg_template_check_formats(t, args, pointer, sizeof(pointer)));
    assert_string_equal(pointer, "/l/2/0");
    json_decref(args);

    args = quoted("{'l':[{'a~/b':1}]}");
    assert_non_null(tg_template_check_formats(t, args, pointer, sizeof(pointer)));
    assert_string_equal(pointer, "/l/0/a~0~1b");
    json_decref(args);

    args = quoted("{'other':'a/b','a':null}");
    assert_null(tg_template_check_formats(t, args, pointer, sizeof(pointer)));
    assert_string_equal(pointer, "");
    json_decref(args);
    assert_null(tg_template_check_formats(t, NULL, pointer, sizeof(pointer)));

    tg_template_free(t);
}


static void
test_text_format(void **state)
{
    size_t                i;
    char                  text[4096], pointer[64];
    json_t               *args, *tool;
    tg_template_t        *t;
    tg_template_error_t   error;

    (void) state;

    tool = quoted(PROP("'a':{'x-kagent-format':'text'}"));
    t = tg_template_compile(tool, NULL, &error);
    assert_non_null(t);
    json_decref(tool);

    for (i = 1000; i <= 1001; i++) {
        snprintf(text, sizeof(text), "{'a':'\\u200b\\n%0*d'}", (int) i, 1);
        args = quoted(text);
        assert_int_equal(tg_template_check_formats(t, args, pointer, sizeof(pointer))
            == NULL, i == 1000);
        json_decref(args);
    }

    args = quoted("{'a':[{'k':'any / <text> \\n'}]}");
    assert_null(tg_template_check_formats(t, args, pointer, sizeof(pointer)));
    json_decref(args);

    args = quoted("{'a':[{'k\\u200b':1}]}");
    assert_non_null(tg_template_check_formats(t, args, pointer, sizeof(pointer)));
    json_decref(args);

    tg_template_free(t);
}


static void
test_fold_digits(void **state)
{
    json_t  *args, *want;

    (void) state;

    args = quoted("{'a':'\xd9\xa8x','b':['\xdb\xb1',{'c':'\xd9\xa2'}],'\xd9\xa8':1,'d':7}");
    want = quoted("{'a':'8x','b':['1',{'c':'2'}],'\xd9\xa8':1,'d':7}");
    assert_int_equal(tg_template_fold_digits(args), TG_OK);
    assert_true(json_equal(args, want));
    json_decref(args);
    json_decref(want);

    assert_int_equal(tg_template_fold_digits(NULL), TG_OK);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_tool),
        cmocka_unit_test(test_url),
        cmocka_unit_test(test_url_guard),
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_header_bound),
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_body_and_formats),
        cmocka_unit_test(test_accessors),
        cmocka_unit_test(test_token_format),
        cmocka_unit_test(test_text_format),
        cmocka_unit_test(test_fold_digits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
