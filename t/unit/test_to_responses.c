/*
 * A chat request in the form of the Responses API: messages as items, tools, the choice
 * of a tool, fields.
 */

#include "scan_help.h"
#include "tg_to_responses.h"


static tg_rc_e
add(void *ctx, tg_str_t piece)
{
    return tg_buf_append(ctx, piece.data, piece.len);
}


static char *
unquoted(const char *text)
{
    char  *copy, *p;

    copy = strdup(text);

    for (p = copy; *p; p++) {
        if (*p == '\'') {
            *p = '"';
        }
    }

    return copy;
}


typedef tg_rc_e (*way_pt)(tg_to_responses_t *t, tg_str_t text);

/* Both texts have ' for ". */
static void
assert_way(way_pt way, const char *from, const char *want)
{
    char               *in, *expected;
    tg_buf_t            out;
    tg_to_responses_t   t;

    in = unquoted(from);
    expected = unquoted(want);
    tg_buf_init(&out, 1 << 20);
    tg_to_responses_init(&t, add, &out);

    assert_int_equal(way(&t, tg_str_of(in)), TG_OK);

    if (!tg_str_eq(tg_buf_get(&out), tg_str_of(expected))) {
        fail_msg("%.*s\nis not\n%s", (int) out.len, out.data, expected);
    }

    tg_buf_free(&out);
    free(in);
    free(expected);
}


#define MESSAGES(from, want)  assert_way(tg_to_responses_messages, from, want)
#define TOOLS(from, want)     assert_way(tg_to_responses_tools, from, want)
#define CHOICE(from, want)    assert_way(tg_to_responses_choice, from, want)


static void
test_messages(void **state)
{
    (void) state;

    MESSAGES("", "");
    MESSAGES("{'role':'user','content':'a\\n\\u00e9'}",
             "{'type':'message','role':'user','content':'a\\n\\u00e9'}");
    MESSAGES("{'role':'system','content':[]},{'content':'b','role':'developer'}",
             "{'type':'message','role':'system','content':[]},"
             "{'type':'message','role':'system','content':'b'}");
    MESSAGES("{'role':'user','content':null}",
             "{'type':'message','role':'user','content':''}");

    /* what is there twice counts as in any other reader: the last one */
    MESSAGES("{'role':'user','content':'1','content':'2'}",
             "{'type':'message','role':'user','content':'2'}");
}


static void
test_messages_go_on(void **state)
{
    tg_buf_t           out;
    tg_to_responses_t  t;

    (void) state;

    tg_buf_init(&out, 1 << 20);
    tg_to_responses_init(&t, add, &out);
    tg_to_responses_messages(&t, tg_str("{\"role\":\"user\",\"content\":1}"));
    tg_to_responses_messages(&t, tg_str(""));
    tg_to_responses_messages(&t, tg_str(",{\"role\":\"user\",\"content\":2}"));
    assert_true(tg_str_eq(tg_buf_get(&out), tg_str(
        "{\"type\":\"message\",\"role\":\"user\",\"content\":1},"
        "{\"type\":\"message\",\"role\":\"user\",\"content\":2}")));
    tg_buf_free(&out);
}


static void
test_parts(void **state)
{
    (void) state;

    MESSAGES("{'role':'user','content':[{'type':'text','text':'a'},'b',"
             "{'type':'image_url','image_url':{'url':'u','detail':'high'}},"
             "{'type':'image_url','image_url':'u'},"
             "{'type':'file','file':{'file_id':'f'}},{'type':'file'},{'type':'new','x':1}]}",
             "{'type':'message','role':'user','content':[{'type':'input_text','text':'a'},'b',"
             "{'type':'input_image','image_url':'u','detail':'high'},"
             "{'type':'input_image','image_url':'u'},"
             "{'type':'input_file','file_id':'f'},{'type':'file'},{'type':'new','x':1}]}");
    MESSAGES("{'role':'assistant','content':[{'type':'text','text':'a'},"
             "{'type':'refusal','refusal':'no'}]}",
             "{'type':'message','role':'assistant','content':[{'type':'output_text','text':'a',"
             "'annotations':[]},{'type':'refusal','refusal':'no'}]}");
    MESSAGES("{'role':'assistant','content':[{'type':'text','text':'a'},{'type':'text','text':'b'}]}",
             "{'type':'message','role':'assistant','content':'ab'}");
}


static void
test_assistant(void **state)
{
    (void) state;

    MESSAGES("{'role':'assistant','content':''},{'role':'assistant','content':null},"
             "{'role':'assistant'},{'role':'user','content':'x'}",
             "{'type':'message','role':'user','content':'x'}");
    MESSAGES("{'role':'assistant','content':null,'refusal':'no'}",
             "{'type':'message','role':'assistant','content':[{'type':'refusal','refusal':'no'}]}");
    MESSAGES("{'role':'assistant','content':'a','tool_calls':[{'id':'1','type':'function',"
             "'function':{'name':'f','arguments':'{}'}},5,{'id':'2'},{'function':{}}]}",
             "{'type':'message','role':'assistant','content':'a'},"
             "{'type':'function_call','call_id':'1','name':'f','arguments':'{}'},"
             "{'type':'function_call','call_id':'','name':'','arguments':''}");
    MESSAGES("{'role':'assistant','content':'a','refusal':'no'}",
             "{'type':'message','role':'assistant','content':[{'type':'output_text','text':'a',"
             "'annotations':[]},{'type':'refusal','refusal':'no'}]}");
    MESSAGES("{'role':'assistant','content':[]}", "");

    /* calls as they were before there were ids, and arguments that are no text */
    MESSAGES("{'role':'assistant','content':null,'function_call':{'name':'f','arguments':'{}'}},"
             "{'role':'function','name':'f','content':'r'}",
             "{'type':'function_call','call_id':'f','name':'f','arguments':'{}'},"
             "{'type':'function_call_output','call_id':'f','output':'r'}");
    MESSAGES("{'role':'assistant','tool_calls':[{'id':'1','function':{'name':'f',"
             "'arguments':{'a':'x\\n'}}}]}",
             "{'type':'function_call','call_id':'1','name':'f','arguments':"
             "'{\\'a\\':\\'x\\\\n\\'}'}");
}


static void
test_results(void **state)
{
    (void) state;

    MESSAGES("{'role':'tool','tool_call_id':'1','content':'a'}",
             "{'type':'function_call_output','call_id':'1','output':'a'}");
    MESSAGES("{'role':'tool','tool_call_id':'1','content':[{'type':'text','text':'a\\n'},"
             "{'type':'text','text':'\\u00e9'},'x',{'type':'image_url'}]}",
             "{'type':'function_call_output','call_id':'1','output':'a\\n\\u00e9'}");
    MESSAGES("{'role':'tool','tool_call_id':'1','content':null}",
             "{'type':'function_call_output','call_id':'1','output':''}");
    MESSAGES("{'role':'tool','tool_call_id':'1','content':{ 'a':\n[1,true] }}",
             "{'type':'function_call_output','call_id':'1','output':'{ \\'a\\': [1,true] }'}");
    MESSAGES("{'role':'tool','tool_call_id':'1','content':5}",
             "{'type':'function_call_output','call_id':'1','output':'5'}");
}


static void
test_tools(void **state)
{
    (void) state;

    TOOLS("{'type':'function','function':{'name':'f','parameters':{'type':'object'}}},"
          "{'function':{'strict':true,'description':'d','name':'g'},'type':'function'},"
          "{'type':'function','function':{'name':'h','strict':null}},"
          "{'type':'web_search','x':1},7",
          "{'type':'function','name':'f','parameters':{'type':'object'},'strict':false},"
          "{'type':'function','name':'g','description':'d','strict':true},"
          "{'type':'function','name':'h','strict':false},"
          "{'type':'web_search','x':1},7");
    TOOLS("", "");
}


static void
test_choice(void **state)
{
    (void) state;

    CHOICE("'auto'", "'auto'");
    CHOICE("{'type':'function','function':{'name':'f'}}", "{'type':'function','name':'f'}");
    CHOICE("{'type':'function','name':'f'}", "{'type':'function','name':'f'}");
    CHOICE("{'type':'allowed_tools','allowed_tools':{'mode':'required','tools':["
           "{'type':'function','function':{'name':'f'}},{'type':'function','function':{'name':'g'}}]}}",
           "{'type':'allowed_tools','mode':'required','tools':[{'type':'function','name':'f'},"
           "{'type':'function','name':'g'}]}");
}


static tg_rc_e
fields(tg_to_responses_t *t, tg_str_t text)
{
    tg_rc_e     rc;
    tg_scan_t  *scan;

    static const char *const  left_out[] = { "model", "messages", NULL };

    scan = scan_in(text, text.len, &rc);
    assert_int_equal(rc, TG_OK);
    rc = tg_to_responses_fields(t, scan, text.data, left_out);
    tg_scan_free(scan);

    return rc;
}


static void
test_fields(void **state)
{
    (void) state;

    assert_way(fields, "{'model':'m','messages':[],'temperature':0.5,'stop':null,'x':{'y':[1]}}",
               ",'temperature':0.5,'x':{'y':[1]}");
    assert_way(fields, "{'max_tokens':5}", ",'max_output_tokens':5");
    assert_way(fields, "{'max_tokens':5,'max_completion_tokens':6}", ",'max_output_tokens':6");
    assert_way(fields, "{'max_tokens':5,'max_completion_tokens':null}", ",'max_output_tokens':5");
    assert_way(fields, "{'reasoning_effort':'low'}", ",'reasoning':{'effort':'low'}");
    assert_way(fields, "{'reasoning':{'summary':'auto'}}", ",'reasoning':{'summary':'auto'}");
    assert_way(fields, "{'reasoning':{'summary':'auto'},'reasoning_effort':'low'}",
               ",'reasoning':{'summary':'auto','effort':'low'}");
    assert_way(fields, "{'reasoning_effort':'low','reasoning':{}}", ",'reasoning':{'effort':'low'}");
    assert_way(fields, "{'reasoning_effort':'low','reasoning':{'effort':'high'}}",
               ",'reasoning':{'effort':'high'}");
    assert_way(fields, "{'reasoning':5,'reasoning_effort':'low'}", ",'reasoning':5");
    assert_way(fields, "{'verbosity':'low'}", ",'text':{'verbosity':'low'}");
    assert_way(fields, "{'text':{'verbosity':'high'},'verbosity':'low','response_format':{'type':'text'}}",
               ",'text':{'verbosity':'high'}");
    assert_way(fields, "{'max_tokens':5,'max_output_tokens':6,'max_completion_tokens':7}",
               ",'max_output_tokens':6");
    assert_way(fields, "{'verbosity':'low','response_format':{'type':'json_object'}}",
               ",'text':{'format':{'type':'json_object'},'verbosity':'low'}");
    assert_way(fields, "{'response_format':{'type':'json_schema','json_schema':{'schema':{},'name':'n'}}}",
               ",'text':{'format':{'type':'json_schema','name':'n','schema':{}}}");
    assert_way(fields, "{'n':1,'logprobs':true,'top_logprobs':3}", "");
    assert_way(fields, "{'n':2}", ",'n':2");
    assert_way(fields, "{'frequency_penalty':0,'presence_penalty':0.0,'logit_bias':{}}", "");
    assert_way(fields, "{'frequency_penalty':0.5,'presence_penalty':-1,'logit_bias':{'5':1}}",
               ",'frequency_penalty':0.5,'presence_penalty':-1,'logit_bias':{'5':1}");

    /* nothing of a caller's stands in for the conversation, however it is spelled */
    assert_way(fields, "{'input':'evil','instructions':'evil','previous_response_id':'r',"
               "'conversation':'c','prompt':{},'background':true,'include':[],"
               "'truncation':'auto','max_tool_calls':1,'context_management':[]}", "");
    assert_way(fields, "{'\\u0069nput':'evil'}", "");
    assert_way(fields, "{'\\u006dodel':'m','\\u006dax_tokens':5}", ",'max_output_tokens':5");
}


static tg_rc_e
refuse(void *ctx, tg_str_t piece)
{
    size_t  *left = ctx;

    (void) piece;

    if (*left == 0) {
        return TG_E_LIMIT;
    }

    (*left)--;

    return TG_OK;
}


static void
test_the_first_refusal_counts(void **state)
{
    size_t             left, n;
    tg_to_responses_t  t;

    (void) state;

    for (n = 0; n < 4; n++) {
        left = n;
        tg_to_responses_init(&t, refuse, &left);
        assert_int_equal(tg_to_responses_messages(&t,
            tg_str("{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}")),
            TG_E_LIMIT);
        assert_int_equal(tg_to_responses_tools(&t, tg_str("{}")), TG_E_LIMIT);
        assert_int_equal(tg_to_responses_choice(&t, tg_str("\"auto\"")), TG_E_LIMIT);
        assert_int_equal(left, 0);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_messages_go_on),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_assistant),
        cmocka_unit_test(test_results),
        cmocka_unit_test(test_tools),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_the_first_refusal_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
