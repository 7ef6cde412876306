/*
 * A Responses request in the form of chat, whole and in the smallest steps; what is
 * refused, and what the response shows again. Case C040.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "quoted.h"
#include "tg_error.h"
#include "tg_responses.h"


#define OUT_MAX  (64 * 1024 * 1024)


static tg_rc_e
add(void *ctx, const char *data, size_t len)
{
    return tg_buf_append(ctx, data, len);
}


static tg_scan_t *
scan_of(tg_str_t body)
{
    tg_scan_t  *scan;

    scan = tg_scan_new();
    assert_non_null(scan);
    tg_scan_feed(scan, body.data, body.len);

    if (tg_scan_finish(scan) != TG_OK) {
        fail_msg("test input: %.80s", body.data);
    }

    return scan;
}


static tg_rc_e
translate(tg_str_t body, size_t budget, tg_buf_t *out, tg_responses_request_t *t)
{
    tg_rc_e     rc;
    tg_scan_t  *scan;

    scan = scan_of(body);
    tg_buf_init(out, OUT_MAX);
    tg_responses_request_init(t, scan, body.data, add, out);

    do {
        rc = tg_responses_request_step(t, budget);
    } while (rc == TG_AGAIN);

    tg_scan_free(scan);

    return rc;
}


static char *
unquoted(const char *text)
{
    char    *copy, *p;

    copy = strdup(text);

    for (p = copy; *p; p++) {
        if (*p == '\'') {
            *p = '"';
        }
    }

    return copy;
}


/* Both are members of an object, with ' for ". */
static void
assert_chat(const char *request, const char *chat)
{
    char                    *body, *want;
    size_t                   step;
    tg_buf_t                 out;
    tg_rc_e                  rc;
    json_t                  *got, *wanted;
    tg_json_error_t          error;
    tg_responses_request_t   t;

    static const size_t  steps[] = { 1, 1 << 20 };

    body = unquoted(request);
    want = unquoted(chat);
    wanted = tg_json_load(tg_str_of(want), &error);
    assert_non_null(wanted);

    json_object_set_new(wanted, "stream", json_true());
    json_object_set_new(wanted, "stream_options",
                        json_pack("{s:b}", "include_usage", 1));

    for (step = 0; step < 2; step++) {
        rc = translate(tg_str_of(body), steps[step], &out, &t);
        got = tg_json_load(tg_buf_get(&out), &error);

        if (rc != TG_OK || got == NULL || !json_equal(got, wanted)) {
            fail_msg("%s\n became %.*s\n not %s (%d %s)", request, (int) out.len,
                     out.data, chat, rc, t.fault.param);
        }

        json_decref(got);
        tg_buf_free(&out);
    }

    json_decref(wanted);
    free(body);
    free(want);
}


static void
assert_refused(const char *request, const char *code, const char *param)
{
    char                    *body;
    tg_buf_t                 out;
    tg_responses_request_t   t;

    body = unquoted(request);

    if (translate(tg_str_of(body), 1 << 20, &out, &t) != TG_E_INVALID
        || strcmp(t.fault.code, code) != 0 || strcmp(t.fault.param, param) != 0)
    {
        fail_msg("%s: %s at %s", request, t.fault.code ? t.fault.code : "-",
                 t.fault.param);
    }

    assert_non_null(tg_error_find(t.fault.code));

    tg_buf_free(&out);
    free(body);
}


#define USER(text)  "{'role':'user','content':'" text "'}"


static void
test_input(void **state)
{
    (void) state;

    assert_chat("{'model':'m','input':'hi'}",
                "{'model':'m','messages':[" USER("hi") "]}");
    assert_chat("{'input':'\\u0041','instructions':'be','model':'m'}",
                "{'model':'m','messages':[{'role':'system','content':'be'},"
                USER("A") "]}");
    assert_chat("{'model':'m','input':[{'role':'user','content':'a'},"
                "{'type':'message','role':'developer','content':[]}]}",
                "{'model':'m','messages':[" USER("a")
                ",{'role':'system','content':''}]}");
    assert_chat("{'model':'m','input':[{'role':'user','content':["
                "{'type':'input_text','text':'a'}]}],'instructions':null}",
                "{'model':'m','messages':[" USER("a") "]}");
    assert_chat("{'model':'m','input':[{'role':'user','content':["
                "{'type':'input_text','text':'a'},{'type':'input_text','text':'b'},"
                "{'type':'input_audio','input_audio':{'data':'x'}}]}]}",
                "{'model':'m','messages':[{'role':'user','content':["
                "{'type':'text','text':'a'},{'type':'text','text':'b'},"
                "{'type':'input_audio','input_audio':{'data':'x'}}]}]}");
    /* a key may be written with escapes */
    assert_chat("{'model':'m','input':[{'r\\u006fle':'us\\u0065r','content':'a'}]}",
                "{'model':'m','messages':[" USER("a") "]}");
}


static void
test_history(void **state)
{
    (void) state;

    /* calls join the message that they belong to, each result stands alone */
    assert_chat("{'model':'m','input':[" USER("q") ","
                "{'role':'assistant','content':[{'type':'output_text','text':'a'},"
                "{'type':'output_text','text':'\\n'}]},"
                "{'type':'function_call','call_id':'1','name':'f','arguments':'{}'},"
                "{'type':'function_call','call_id':'2','name':'g','arguments':''},"
                "{'type':'function_call_output','call_id':'1','output':'x'},"
                "{'type':'function_call_output','call_id':'2','output':null}]}",
                "{'model':'m','messages':[" USER("q") ","
                "{'role':'assistant','content':'a\\n','tool_calls':["
                "{'id':'1','type':'function','function':{'name':'f','arguments':'{}'}},"
                "{'id':'2','type':'function','function':{'name':'g','arguments':''}}]},"
                "{'role':'tool','tool_call_id':'1','content':'x'},"
                "{'role':'tool','tool_call_id':'2','content':''}]}");

    /* a call of the server's brings its result along */
    assert_chat("{'model':'m','input':["
                "{'type':'mcp_call','id':'i','name':'f','arguments':'{}',"
                "'server_label':'toolgate','output':null,'error':'rate_limited'},"
                "{'type':'mcp_call','id':'j','name':'f','arguments':'{}',"
                "'output':'o','error':null},"
                "{'type':'mcp_approval_request','id':'appr_1'},"
                "{'type':'mcp_approval_response','approval_request_id':'appr_1'},"
                "{'type':'mcp_list_tools','id':'l'}]}",
                "{'model':'m','messages':["
                "{'role':'assistant','content':null,'tool_calls':["
                "{'id':'i','type':'function','function':{'name':'f','arguments':'{}'}}]},"
                "{'role':'tool','tool_call_id':'i','content':'rate_limited'},"
                "{'role':'assistant','content':null,'tool_calls':["
                "{'id':'j','type':'function','function':{'name':'f','arguments':'{}'}}]},"
                "{'role':'tool','tool_call_id':'j','content':'o'}]}");

    /* C040 */
    assert_chat("{'model':'m','input':[{'type':'reasoning','id':'rs_1','summary':[],"
                "'encrypted_content':null}," USER("q") "]}",
                "{'model':'m','messages':[" USER("q") "]}");

    assert_chat("{'model':'m','input':[{'role':'assistant','content':["
                "{'type':'refusal','refusal':'n\\u006f'}]},"
                "{'role':'assistant'},{'role':'assistant','content':'s'}]}",
                "{'model':'m','messages':["
                "{'role':'assistant','content':'','refusal':'no'},"
                "{'role':'assistant','content':''},"
                "{'role':'assistant','content':'s'}]}");
}


/* What came before stands between the instructions and the input. */
static void
test_earlier_messages(void **state)
{
    tg_str_t                 body, want;
    tg_buf_t                 out;
    tg_scan_t               *scan;
    tg_responses_request_t   t;

    (void) state;

    body = tg_str("{\"model\":\"m\",\"input\":\"q\",\"instructions\":\"i\","
                  "\"tools\":[{\"type\":\"mcp\",\"server_label\":\"toolgate\","
                  "\"require_approval\":\"never\"}],\"metadata\":{}}");
    scan = scan_of(body);
    tg_buf_init(&out, OUT_MAX);
    tg_responses_request_init(&t, scan, body.data, add, &out);
    t.agent = true;
    t.history = tg_str("{\"role\":\"user\",\"content\":\"before\"}");

    assert_int_equal(tg_responses_request_step(&t, 1 << 20), TG_OK);
    want = tg_str("\"i\"},{\"role\":\"user\",\"content\":\"before\"},"
                  "{\"role\":\"user\",\"content\":\"q\"}]");
    assert_non_null(memmem(out.data, out.len, want.data, want.len));
    want = tg_str("],\"stream\":true,\"stream_options\":{\"include_usage\":true},\"metadata\":{}}");
    assert_true(memcmp(out.data + out.len - want.len, want.data, want.len) == 0);
    assert_true(tg_str_eq((tg_str_t) { t.input_end - t.input_start,
                                       out.data + t.input_start },
                          tg_str(",{\"role\":\"user\",\"content\":\"q\"}")));

    tg_buf_free(&out);
    tg_scan_free(scan);
}


static void
test_fields(void **state)
{
    (void) state;

    assert_chat("{'model':'m','input':'q','max_output_tokens':5,'store':true,"
                "'previous_response_id':'r','include':[],'truncation':'auto',"
                "'metadata':{},'background':false,'stream':false,"
                "'temperature':0.10,'parallel_tool_calls':false,'x':[1,null],"
                "'reasoning':{'effort':'high','summary':'auto'},'seed':null}",
                "{'model':'m','messages':[" USER("q") "],'max_completion_tokens':5,"
                "'temperature':0.1,'parallel_tool_calls':false,'x':[1,null],"
                "'reasoning_effort':'high'}");

    assert_chat("{'model':'m','input':'q','tools':[{'type':'function','name':'f',"
                "'description':null,'parameters':{'a':'b'},'strict':true},"
                "{'type':'function','function':{'name':'g'}}],"
                "'tool_choice':{'type':'function','name':'f'}}",
                "{'model':'m','messages':[" USER("q") "],'tools':["
                "{'type':'function','function':{'name':'f','parameters':{'a':'b'},"
                "'strict':true}},{'type':'function','function':{'name':'g'}}],"
                "'tool_choice':{'type':'function','function':{'name':'f'}}}");

    /* what chat has another name for comes once */
    assert_chat("{'model':'m','input':'q','max_completion_tokens':1,"
                "'max_output_tokens':2,'response_format':{},'text':{},"
                "'reasoning_effort':'low'}",
                "{'model':'m','messages':[" USER("q") "],'max_completion_tokens':2,"
                "'reasoning_effort':'low'}");

    assert_chat("{'model':'m','input':'q','tools':[],'tool_choice':{'type':"
                "'allowed_tools','mode':'required','tools':["
                "{'type':'function','name':'f'},{'type':'function','name':'g'}]}}",
                "{'model':'m','messages':[" USER("q") "],'tool_choice':{'type':"
                "'allowed_tools','allowed_tools':{'mode':'required','tools':["
                "{'type':'function','function':{'name':'f'}},"
                "{'type':'function','function':{'name':'g'}}]}}}");

    assert_chat("{'model':'m','input':'q','tool_choice':{'type':'mcp',"
                "'server_label':'toolgate','name':'f'}}",
                "{'model':'m','messages':[" USER("q") "],'tool_choice':"
                "{'type':'function','function':{'name':'f'}}}");

    assert_chat("{'model':'m','input':'q','text':{'verbosity':'low','format':"
                "{'type':'json_schema','name':'n','schema':{'a':1},'strict':null}}}",
                "{'model':'m','messages':[" USER("q") "],'verbosity':'low',"
                "'response_format':{'type':'json_schema','json_schema':"
                "{'name':'n','schema':{'a':1}}}}");
}


static void
test_refusals(void **state)
{
    (void) state;

#define IN(item)  "{'model':'m','input':[" USER("a") "," item "]}"

    assert_refused("{'model':'m'}", "missing_parameter", "input");
    assert_refused("{'model':'m','input':{}}", "invalid_type", "input");
    assert_refused("{'model':'m','input':[]}", "invalid_value", "input");
    assert_refused("{'model':'m','input':[{'type':'reasoning'}]}", "invalid_value",
                   "input");
    assert_refused("{'model':'m','input':'q','instructions':{}}", "invalid_type",
                   "instructions");
    assert_refused(IN("3"), "invalid_type", "input[1]");
    assert_refused(IN("{'type':'message','content':''}"), "missing_parameter",
                   "input[1].role");
    assert_refused(IN("{'role':'tool','content':''}"), "invalid_value",
                   "input[1].role");
    assert_refused(IN("{'role':'user'}"), "missing_parameter", "input[1].content");
    assert_refused(IN("{'role':'user','content':3}"), "invalid_type",
                   "input[1].content");
    assert_refused(IN("{'role':'user','content':['x']}"), "invalid_type",
                   "input[1].content[0]");
    assert_refused(IN("{'role':'assistant','content':3}"), "invalid_type",
                   "input[1].content");
    assert_refused(IN("{'role':'user','content':[{'type':'input_file',"
                      "'file_url':'https://x'}]}"), "unsupported_item",
                   "input[1].content[0]");
    assert_refused(IN("{'type':'item_reference','id':'msg_1'}"), "unsupported_item",
                   "input[1].id");
    assert_refused(IN("{'type':'shell_call'}"), "unsupported_item", "input[1].type");
    assert_refused(IN("{'type':'function_call','call_id':1}"), "invalid_type",
                   "input[1].call_id");
    assert_refused(IN("{'type':'function_call_output'}"), "missing_parameter",
                   "input[1].call_id");
    assert_refused(IN("{'type':'function_call_output','call_id':'1','output':["
                      "{'type':'input_image'}]}"), "unsupported_item",
                   "input[1].output[0]");
    assert_refused(IN("{'type':'mcp_call','id':'1','name':'f'}"), "missing_parameter",
                   "input[1].arguments");
    assert_refused("{'model':'m','input':'q','messages':[]}", "invalid_value",
                   "messages");
    assert_refused("{'model':'m','input':'q','tools':{}}", "invalid_type", "tools");
    assert_refused("{'model':'m','input':'q','tools':[{'type':'mcp','server_label':"
                   "'toolgate'}]}", "unsupported_tool", "tools[0].server_label");
    assert_refused("{'model':'m','input':'q','tool_choice':3}", "invalid_type",
                   "tool_choice");
    assert_refused("{'model':'m','input':'q','tool_choice':{'type':'allowed_tools',"
                   "'tools':[{'type':'web_search'}]}}", "unsupported_tool",
                   "tool_choice.tools[0]");
    assert_refused("{'model':'m','input':'q','text':3}", "invalid_type", "text");
    assert_refused("{'model':'m','input':'q','text':{'format':3}}", "invalid_type",
                   "text.format");
    assert_refused("{'model':'m','input':'q','reasoning':3}", "invalid_type",
                   "reasoning");
}


/* The bounds: at them and one past. */
static void
test_bounds(void **state)
{
    size_t                   i, n;
    tg_rc_e                  rc;
    tg_buf_t                 body, out;
    tg_responses_request_t   t;

    (void) state;

    for (n = TG_RESPONSES_PARTS_MAX; n <= TG_RESPONSES_PARTS_MAX + 1; n++) {
        tg_buf_init(&body, OUT_MAX);
        tg_buf_cstr(&body, "{\"model\":\"m\",\"input\":[{\"role\":\"user\","
                           "\"content\":[");

        for (i = 0; i < n; i++) {
            tg_buf_cstr(&body, i ? ",{\"type\":\"x\"}" : "{\"type\":\"x\"}");
        }

        tg_buf_cstr(&body, "]}]}");

        rc = translate(tg_buf_get(&body), 1, &out, &t);
        assert_int_equal(rc, n > TG_RESPONSES_PARTS_MAX ? TG_E_INVALID : TG_OK);
        tg_buf_free(&out);
        tg_buf_free(&body);
    }

    for (n = 0; n <= 1; n++) {
        tg_buf_init(&body, OUT_MAX);
        tg_buf_cstr(&body, "{\"model\":\"m\",\"input\":\"q\",\"tools\":[");

        for (i = 2; i < TG_RESPONSES_TOOLS_MAX + n; i++) {
            tg_buf_char(&body, ' ');
        }

        tg_buf_cstr(&body, "]}");

        rc = translate(tg_buf_get(&body), 1, &out, &t);
        assert_int_equal(rc, n ? TG_E_INVALID : TG_OK);
        tg_buf_free(&out);
        tg_buf_free(&body);
    }
}


/* An output that does not take more stops the work. */
static tg_rc_e
add_little(void *ctx, const char *data, size_t len)
{
    size_t *left = ctx;

    (void) data;

    if (len > *left) {
        return TG_E_NOMEM;
    }

    *left -= len;

    return TG_OK;
}


static void
test_output_ends(void **state)
{
    size_t                   n, left;
    tg_str_t                 body;
    tg_rc_e                  rc;
    tg_scan_t               *scan;
    tg_responses_request_t   t;

    (void) state;

    body = tg_str("{\"model\":\"m\",\"input\":[{\"role\":\"user\",\"content\":[{\"type\":"
                  "\"input_text\",\"text\":\"a\"},{\"type\":\"x\"}]},{\"type\":"
                  "\"function_call_output\",\"call_id\":\"1\",\"output\":\"o\"}],"
                  "\"text\":{\"format\":{\"type\":\"x\"}},\"tools\":[]}");
    scan = scan_of(body);

    for (n = 0; /* void */; n++) {
        left = n;
        tg_responses_request_init(&t, scan, body.data, add_little, &left);
        rc = tg_responses_request_step(&t, 1 << 20);

        if (rc == TG_OK) {
            break;
        }

        assert_int_equal(rc, TG_E_NOMEM);
        assert_true(n < 1000);
    }

    tg_scan_free(scan);
}


static json_t *
echo_of(const char *request, tg_responses_fault_t *fault)
{
    char             *body;
    json_t           *value;
    tg_buf_t          out, whole;
    tg_scan_t        *scan;
    tg_json_error_t   error;

    body = unquoted(request);
    scan = scan_of(tg_str_of(body));
    value = NULL;

    tg_buf_init(&out, OUT_MAX);
    tg_buf_init(&whole, OUT_MAX);

    if (tg_responses_echo(scan, body, true, &out, fault) == TG_OK) {
        tg_buf_cstr(&whole, "{\"x\":1");
        tg_buf_str(&whole, tg_buf_get(&out));
        tg_buf_char(&whole, '}');
        value = tg_json_load(tg_buf_get(&whole), &error);
        assert_non_null(value);
    }

    tg_buf_free(&out);
    tg_buf_free(&whole);
    tg_scan_free(scan);
    free(body);

    return value;
}


static void
test_echo(void **state)
{
    json_t                *value, *want;
    tg_responses_fault_t   fault;

    (void) state;

    value = echo_of("{'model':'m'}", &fault);
    want = quoted("{'x':1,'instructions':null,'previous_response_id':null,"
                  "'background':false,'parallel_tool_calls':true,"
                  "'tool_choice':'auto','truncation':'disabled','temperature':1,"
                  "'top_p':1,'presence_penalty':0,'frequency_penalty':0,"
                  "'top_logprobs':0,'max_output_tokens':null,'max_tool_calls':null,"
                  "'reasoning':null,'metadata':{},'service_tier':'default',"
                  "'user':null,'safety_identifier':null,'prompt_cache_key':null,"
                  "'tools':[],'text':{'format':{'type':'text'}},'store':true}");
    assert_true(json_equal(value, want));
    json_decref(value);
    json_decref(want);

    value = echo_of("{'tools':[{'type':'function','name':'f'},{'type':'x'}],"
                    "'text':{'verbosity':'low'},'instructions':'i'}", &fault);
    want = quoted("[{'type':'function','name':'f','description':null,"
                  "'parameters':null,'strict':null},{'type':'x'}]");
    assert_true(json_equal(json_object_get(value, "tools"), want));
    json_decref(want);
    want = quoted("{'verbosity':'low','format':{'type':'text'}}");
    assert_true(json_equal(json_object_get(value, "text"), want));
    json_decref(want);
    json_decref(value);

    assert_null(echo_of("{'temperature':'1'}", &fault));
    assert_string_equal(fault.code, "invalid_type");
    assert_string_equal(fault.param, "temperature");
}


int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_input),
        cmocka_unit_test(test_history),
        cmocka_unit_test(test_earlier_messages),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_output_ends),
        cmocka_unit_test(test_echo)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
