/*
 * The fold of streamed answers: the forms that vendors differ in and the errors
 * that come in the stream. What a stream must give is said once for all its cuts.
 */

#include "delta_stream.h"


static void
test_slots_without_index(void **state)
{
    (void) state;

    /* a name without an id begins a call; pieces without either go on with it */
    TEST_STREAM(CH(CALLS("{'function':{'name':'a','arguments':'{`x`:'}}"))
                CH(CALLS(MORE("", "1}")))
                CH(CALLS("{'function':{'name':'b','arguments':'{`y`:'}}"))
                CH(CALLS(MORE("", "2}")))
                FIN("tool_calls") DONE,
                "call<|a|{'x':1}|ready> call<|b|{'y':2}|ready> "
                "finish<tool_calls> done complete");

    /* an id that is known says where a piece goes, whatever came last */
    TEST_STREAM(CH(CALLS(FIRST("", "c1", "a", "{") "," FIRST("", "c2", "b", "{")))
                CH(CALLS("{'id':'c1','function':{'arguments':'}'}}"))
                CH(CALLS(MORE("", "}")))
                FIN("tool_calls") DONE,
                "call<c1|a|{}|ready> call<c2|b|{}|ready> "
                "finish<tool_calls> done complete");

    /* nothing to go on with: a call without a name, which never runs */
    TEST_STREAM(CH(CALLS(MORE("", "{}"))) FIN("tool_calls") DONE,
                "call<||{}|not> finish<tool_calls> done complete");

    /* an index that comes late, and one that is no number */
    TEST_STREAM(CH(CALLS(FIRST("", "c1", "a", "{"))) CH(CALLS(MORE(I0, "}")))
                CH(CALLS(FIRST(I1, "c2", "b", "{}"))) FIN("tool_calls") DONE,
                "call<c1|a|{}|ready> call<c2|b|{}|ready> "
                "finish<tool_calls> done complete");
    TEST_STREAM(CH(CALLS(FIRST("'index':'0',", "c1", "a", "{")))
                CH(CALLS(MORE("'index':{},", "}")))
                FIN("tool_calls") DONE,
                "call<c1|a|{}|ready> finish<tool_calls> done complete");
}


static void
test_slots_with_index(void **state)
{
    (void) state;

    /* indexes that do not start at 0, and a negative one */
    TEST_STREAM(CH(CALLS(FIRST("'index':5,", "c5", "a", "{")))
                CH(CALLS(FIRST("'index':-1,", "c6", "b", "{")))
                CH(CALLS(MORE("'index':5,", "}")))
                CH(CALLS(MORE("'index':-1.0,", "}")))
                FIN("tool_calls") DONE,
                "call<c5|a|{}|ready> call<c6|b|{}|ready> "
                "finish<tool_calls> done complete");

    /* one index for two calls: an older id of the slot is still known */
    TEST_STREAM(CH(CALLS(FIRST(I0, "c1", "a", "{") "," FIRST(I0, "c2", "b", "{")))
                CH(CALLS("{" I0 "'id':'c1','function':{'arguments':'}'}}"))
                CH(CALLS(MORE(I0, "}")))
                FIN("tool_calls") DONE,
                "call<c1|a|{}|ready> call<c2|b|{}|ready> "
                "finish<tool_calls> done complete");

    /* one object instead of a list */
    TEST_STREAM(CH("'tool_calls':" FIRST(I0, "c1", "a", "{}")) FIN("tool_calls") DONE,
                "call<c1|a|{}|ready> finish<tool_calls> done complete");

    /* no call at all in several ways */
    TEST_STREAM(CH("'tool_calls':null,'content':'a'") CH("'tool_calls':'x'")
                CH("'tool_calls':[null,1]") FIN("stop") DONE,
                "text<a> finish<stop> done complete");
}


static void
test_texts(void **state)
{
    (void) state;

    TEST_STREAM(CH("'role':'assistant','content':null") CH("'content':'a'")
                CH("'content':''") CH("'content':'b'") FIN("stop") DONE,
                "text<ab> finish<stop> done complete");
    TEST_STREAM(CH("'role':'assistant'") FIN("stop") DONE, "finish<stop> done complete");
    TEST_STREAM(CH("'refusal':'I '") CH("'refusal':'will not'") FIN("stop") DONE,
                "refusal<I will not> finish<stop> done complete");
    TEST_STREAM(CH("'reasoning_content':'let '") CH("'reasoning':'me'")
                CH("'reasoning':'!','reasoning_content':'!'")
                CH("'reasoning_content':null,'reasoning':'?','content':'so'")
                CH("'reasoning_content':'.','reasoning':null")
                FIN("stop") DONE,
                "text<so> reasoning<let me!?.> finish<stop> done complete");

    /* numbers, lists and booleans are no text */
    TEST_STREAM(CH("'content':5") CH("'content':{},'refusal':7,'reasoning':[]")
                FIN("stop") DONE,
                "finish<stop> done complete");
}


static void
test_parts(void **state)
{
    (void) state;

    TEST_STREAM(CH("'content':[{'type':'text','text':'a'},'b',{'text':'c'},null,4,"
                   "{'type':'image_url','image_url':{}},{'type':'refusal','refusal':'r'},"
                   "{'type':'output_text','text':'d'}]")
                FIN("stop") DONE,
                "text<abcd> refusal<r> finish<stop> done complete");
    TEST_STREAM(CH("'content':[{'type':'thinking','thinking':[{'type':'text','text':'hm'},"
                   "{'type':'text','text':'?'}]},{'type':'thinking','thinking':'!'}]")
                CH("'content':[{'type':'text','text':'yes'}]")
                FIN("stop") DONE,
                "text<yes> reasoning<hm?!> finish<stop> done complete");
    TEST_STREAM(CH("'content':[]") FIN("stop") DONE,
                "text<> finish<stop> done complete");
}


static void
test_escapes(void **state)
{
    (void) state;

    TEST_STREAM(CH("'content':'a\\n\\t\\/\\\\ \\u0041 \\u0637\\u06ff \\ud83c\\udf19.'")
                FIN("stop") DONE,
                "text<a\n\t/\\ A \xd8\xb7\xdb\xbf \xf0\x9f\x8c\x99.> finish<stop> "
                "done complete");
    TEST_STREAM(CH("'content':'\\b\\f\\r\\u000B'") FIN("stop") DONE,
                "text<\b\f\r\v> finish<stop> done complete");

    /* NUL is a character like others */
    TEST_STREAM(CH("'content':'a\\u0000b'") FIN("stop") DONE,
                "text<a\0b> finish<stop> done complete");

    /* keys may be written with escapes */
    TEST_STREAM(CH("'c\\u006fntent':'a'") FIN("stop") DONE,
                "text<a> finish<stop> done complete");

    /* a key that comes twice: the last one, as most readers do */
    TEST_STREAM(CH("'content':'a','content':'b'") FIN("stop") DONE,
                "text<b> finish<stop> done complete");
}


static void
test_legacy_function_call(void **state)
{
    (void) state;

    TEST_STREAM(CH("'function_call':{'name':'get_cart','arguments':''}")
                CH("'function_call':{'arguments':'{'}")
                CH("'function_call':{'name':'get_cart','arguments':'}'}")
                FIN("function_call") DONE,
                "call<|get_cart|{}|ready> legacy finish<function_call> done complete");
    TEST_WHOLE(MESSAGE("'content':null,'function_call':{'name':'a','arguments':{'x':1}}",
                       "function_call"),
               "call<|a|{'x':1}|ready> legacy finish<function_call> done complete");

    /* a gateway that says the same in both ways means one call */
    TEST_STREAM(CH(CALLS(FIRST(I0, "c", "a", "{"))
                   ",'function_call':{'name':'a','arguments':'{'}")
                CH(CALLS(MORE(I0, "}")) ",'function_call':{'arguments':'}'}")
                FIN("tool_calls") DONE,
                "call<c|a|{}|ready> finish<tool_calls> done complete");
    TEST_STREAM(CH("'function_call':null,'content':'x'") FIN("stop") DONE,
                "text<x> finish<stop> done complete");
}


static void
test_choices(void **state)
{
    (void) state;

    TEST_STREAM("data: {'choices':[{'index':1,'delta':{'content':'no'},"
                "'finish_reason':'stop'},{'index':0,'delta':{'content':'yes'}}]}\n\n"
                "data: {'choices':[{'index':1,'delta':{'content':'no'}}]}\n\n" DONE,
                "text<yes> done");
    TEST_STREAM("data: {'choices':[{'delta':{'content':'a'}},{'delta':{'content':'b'}}]}"
                "\n\ndata: {'choices':[{'index':null,'delta':{'content':'c'},"
                "'finish_reason':'stop'}]}\n\n" DONE,
                "text<ac> finish<stop> done complete");

    /* a choice that is none */
    TEST_STREAM("data: {'choices':null}\n\ndata: {'choices':[]}\n\ndata: {}\n\n"
                "data: {'choices':[null]}\n\ndata: {'choices':{'delta':{}}}\n\n"
                "data: {'choices':[{'delta':null}]}\n\ndata: {'choices':[{}]}\n\n"
                CH("'content':'a'") FIN("stop"),
                "text<a> finish<stop> eof complete");

    /* a whole message in a chunk counts when nothing came, and only then */
    TEST_STREAM(CHOICE("'message':{'role':'assistant','content':'all'},"
                       "'finish_reason':'stop'") DONE,
                "text<all> finish<stop> done complete");
    TEST_STREAM(CH("'content':'all'")
                CHOICE("'message':{'role':'assistant','content':'all'},"
                       "'finish_reason':'stop'") DONE,
                "text<all> finish<stop> done complete");
}


static void
test_finish_reasons(void **state)
{
    (void) state;

    TEST_STREAM(CHOICE("'delta':{'content':'a'},'finish_reason':''")
                CHOICE("'delta':{'content':'b'},'finish_reason':'null'")
                CHOICE("'delta':{'content':'c'},'finish_reason':false")
                CHOICE("'delta':{'content':'d'}") FIN("length") DONE,
                "text<abcd> finish<length> done complete");

    /* the first one stays, and a long one is cut */
    TEST_STREAM(FIN("stop") FIN("tool_calls") DONE, "finish<stop> done complete");
    TEST_STREAM(FIN("aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd"),
                "finish<aaaaaaaaaabbbbbbbbbbccccccccccd> eof complete");
}


static void
test_usage(void **state)
{
    (void) state;

    /* null until the last, on a choice, without a total, given more than once */
    TEST_STREAM("data: {'choices':[{'delta':{'content':'a'}}],'usage':null}\n\n"
                "data: {'choices':[{'delta':{},'finish_reason':'stop'}],"
                "'usage':{'prompt_tokens':3,'completion_tokens':4}}\n\n" DONE,
                "text<a> usage<3 4 7 0 0> finish<stop> done complete");
    TEST_STREAM("data: {'choices':[{'delta':{},'finish_reason':'stop',"
                "'usage':{'prompt_tokens':1,'completion_tokens':1,'total_tokens':2}}]}\n\n"
                "data: {'choices':[],'usage':{'prompt_tokens':9,'completion_tokens':1,"
                "'total_tokens':10}}\n\ndata: {'choices':[],'usage':{}}\n\n",
                "usage<9 1 10 0 0> finish<stop> eof complete");

    /* counts that are none */
    TEST_STREAM("data: {'usage':{'prompt_tokens':-5,'completion_tokens':1e300,"
                "'total_tokens':2.9,'prompt_tokens_details':null,"
                "'completion_tokens_details':[]}}\n\n",
                "usage<0 1000000000000 2 0 0> eof");
    TEST_STREAM("data: {'usage':{'prompt_tokens':'5'}}\n\ndata: {'usage':[1]}\n\n", "eof");
}


static void
test_error_forms(void **state)
{
    (void) state;

    TEST_STREAM("data: {'error':{'message':'boom','type':'x'}}\n\n", "why<boom> error");
    TEST_STREAM("data: {'error':'boom'}\n\n", "why<boom> error");
    TEST_STREAM("data: {'error':{'code':'overloaded'}}\n\n", "why<overloaded> error");
    TEST_STREAM("data: {'error':{}}\n\n", "why<the model reported an error> error");
    TEST_STREAM("data: {'error':true,'message':'m'}\n\n", "why<m> error");
    TEST_STREAM("data: {'error':1}\n\n", "why<the model reported an error> error");
    TEST_STREAM("data: {'object':'error','message':'boom','code':400}\n\n",
                "why<boom> error");
    TEST_STREAM("data: {'code':'DataInspectionFailed','message':'boom'}\n\n",
                "why<boom> error");
    TEST_STREAM("data: {'error_code':50001,'message':'boom'}\n\n", "why<boom> error");
    TEST_WHOLE("{'error':{'message':'boom'}}", "why<boom> error");

    /* fields that only look like one */
    TEST_STREAM("data: {'error':null,'choices':[{'delta':{'content':'a'}}]}\n\n"
                "data: {'error':'','choices':[{'delta':{'content':'b'}}]}\n\n"
                "data: {'error':false,'choices':[{'delta':{'content':'c'}}]}\n\n"
                "data: {'error':0,'choices':[{'delta':{'content':'d'}}]}\n\n"
                "data: {'code':0,'message':'ok','choices':[{'delta':{'content':'e'}}]}\n\n"
                FIN("stop"),
                "text<abcde> finish<stop> eof complete");

    /* cleaned of what may not reach a log or a person */
    TEST_STREAM("data: {'error':{'message':'a\\u0007b\\u202ec\\u0000d'}}\n\n",
                "why<abcd> error");
}


static void
test_chunks_that_are_no_json(void **state)
{
    size_t              i;
    static const char  *bad[] = {
        "nonsense", "{'a':1", "{'a':1}}", "{'a':1,}", "[1]", "null", "5", "'text'",
        "{'choices':[{'delta':{'content':'a'}}]", "{'choices':[{'delta':{'content':'a}}]}",
        "{'choices':[{'delta':{'content':'\\x'}}]}",
        "{'choices':[{'delta':{'content':'\\ud800'}}]}",
        "{'choices':[{'delta':{'content':'\\udc00'}}]}",
        "{'choices':[{'delta':{'content':'\\udc00\\udc00'}}]}",
        "{'choices':[{'delta':{'content':'\\ud800\\u0041'}}]}",
        "{'choices':[{'delta':{'content':'\xff'}}]}",
        "{'choices':[{'delta':{'content':'\xed\xa0\x80'}}]}",
        "{'choices':[{'delta':{'content':'\xd8'}}]}",
        "{'choices':[{'delta':{'content':'a\tb'}}]}",
        "{'choices':[{'delta':{'content':'a'}}],'n':01}",
        "{'choices':[{'delta':{'content':'a'}}],'n':1.}",
        "{'choices':[{'delta':{'content':'a'}}],'n':-}",
        "{'choices':[{'delta':{'content':'a'}}],'n':nul}",
        "{'choices':[{'delta':{'content':'a'}}],'n':[1,]}",
        "{'choices':[{'delta':{'content':'a'}}],'n':{,}}",
        "{'choices':[{'delta':{'content':'a'}},],'n':1}",
        "{'choices':[{'delta':{'content':'a'}}] 'n':1}",
        "<html>502 Bad Gateway</html>", "[DONE", "[done]", "[DONE] [DONE]"
    };

    (void) state;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        tg_buf_t  form;

        tg_buf_init(&form, TEST_MAX_LOG);
        tg_buf_printf(&form, CH("'content':'a'") "data: %s\n\n" FIN("stop") DONE, bad[i]);
        test_stream_as(tg_buf_get(&form),
                       tg_str("text<a> why<a chunk is not a JSON object> error"));
        tg_buf_free(&form);
    }

    /* a raw NUL ends nothing */
    TEST_STREAM("data: {'choices':[]}\0{\n\n", "why<a chunk is not a JSON object> error");
    TEST_WHOLE("", "why<a chunk is not a JSON object> error");
    TEST_WHOLE("<html></html>", "why<a chunk is not a JSON object> error");
}


static void
test_forms_that_vendors_add(void **state)
{
    (void) state;

    TEST_STREAM("data: {'choices':[],'created':0,'prompt_filter_results':[{'prompt_index':0,"
                "'content_filter_results':{'hate':{'filtered':false,'severity':'safe'}}}]}"
                "\n\n"
                "data: { 'id' : 'x' , 'obfuscation':'aZ9', 'created': 1734567890.25,\n"
                "data:   'choices' : [ { 'index' : 0 , 'content_filter_results' : { } , "
                "'logprobs':{'content':[{'token':'H','logprob':-0.31,'bytes':[72]}]},\n"
                "data: 'delta' : { 'role':'assistant', 'content' : 'Hi' } } ] }\n\n"
                "data: {'choices':[{'delta':{'content':'!'},'finish_reason':'stop',"
                "'stop_reason':null,'matched_stop':151645}],'x_tail':[[[[{}]]]]}\n\n" DONE,
                "text<Hi!> finish<stop> done complete");
    TEST_STREAM("event: message\nid: 4\n" CH("'content':'a'") "retry: 9\n" FIN("stop") DONE,
                "text<a> finish<stop> done complete");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_slots_without_index),
        cmocka_unit_test(test_slots_with_index),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_escapes),
        cmocka_unit_test(test_legacy_function_call),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_finish_reasons),
        cmocka_unit_test(test_usage),
        cmocka_unit_test(test_error_forms),
        cmocka_unit_test(test_chunks_that_are_no_json),
        cmocka_unit_test(test_forms_that_vendors_add)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
