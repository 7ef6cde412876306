/*
 * The fold of streamed answers: the field cases of fragments, framing and errors,
 * each at every cut of its stream.
 */

#include "delta_stream.h"


static void
test_c001_no_index(void **state)
{
    (void) state;

    TEST_STREAM(CH(CALLS(FIRST("", "call_a", "order_status", ORDER("8812"))))
                FIN("tool_calls") DONE,
                "call<call_a|order_status|{'order_number':'8812'}|ready> "
                "finish<tool_calls> done complete");
}


static void
test_c002_null_index(void **state)
{
    (void) state;

    TEST_STREAM(CH(CALLS(FIRST("'index':null,", "call_a", "order_status", "{}")))
                CH(CALLS(MORE("'index':null,", "")))
                FIN("tool_calls") DONE,
                "call<call_a|order_status|{}|ready> finish<tool_calls> done complete");
}


static void
test_c003_same_index_new_id(void **state)
{
    (void) state;

    TEST_STREAM(CH(CALLS(FIRST(I0, "call_a", "order_status", ORDER("1"))))
                CH(CALLS(FIRST(I0, "call_b", "order_status", ORDER("2"))))
                FIN("tool_calls") DONE,
                "call<call_a|order_status|{'order_number':'1'}|ready> "
                "call<call_b|order_status|{'order_number':'2'}|ready> "
                "finish<tool_calls> done complete");

    /* pieces without an id go on with the newest call of the slot */
    TEST_STREAM(CH(CALLS(FIRST(I0, "call_a", "order_status", "{`order_")))
                CH(CALLS(MORE(I0, "number`:`1`}")))
                CH(CALLS(FIRST(I0, "call_b", "order_status", "{`order_")))
                CH(CALLS(MORE(I0, "number`:`2`}")))
                FIN("tool_calls") DONE,
                "call<call_a|order_status|{'order_number':'1'}|ready> "
                "call<call_b|order_status|{'order_number':'2'}|ready> "
                "finish<tool_calls> done complete");

    /* the first half of a call that was cut off by a second one never runs */
    TEST_STREAM(CH(CALLS(FIRST(I0, "call_a", "order_status", "{`order_number`:")))
                CH(CALLS(FIRST(I0, "call_b", "order_status", ORDER("2"))))
                FIN("tool_calls") DONE,
                "call<call_a|order_status|{'order_number':|not> "
                "call<call_b|order_status|{'order_number':'2'}|ready> "
                "finish<tool_calls> done complete");
}


static void
test_c004_name_repeats(void **state)
{
    (void) state;

    TEST_STREAM(CH(CALLS(FIRST(I0, "call_a", "order_status", "{`order_")))
                CH(CALLS(FIRST(I0, "call_a", "order_status", "number`:`8812`}")))
                FIN("tool_calls") DONE,
                "call<call_a|order_status|{'order_number':'8812'}|ready> "
                "finish<tool_calls> done complete");

    /* the same without an index */
    TEST_STREAM(CH(CALLS(FIRST("", "call_a", "order_status", "{`order_")))
                CH(CALLS(FIRST("", "call_a", "order_status", "number`:`8812`}")))
                FIN("tool_calls") DONE,
                "call<call_a|order_status|{'order_number':'8812'}|ready> "
                "finish<tool_calls> done complete");
}


static void
test_c005_empty_is_absent(void **state)
{
    (void) state;

    TEST_STREAM(CH(CALLS(FIRST(I0, "call_a", "order_status", "")))
                CH(CALLS(FIRST(I0, "", "", "{`order_number`:")))
                CH(CALLS(FIRST(I0, "", "", "`8812`}")))
                FIN("tool_calls") DONE,
                "call<call_a|order_status|{'order_number':'8812'}|ready> "
                "finish<tool_calls> done complete");

    TEST_STREAM(CH(CALLS(FIRST("", "call_a", "order_status", "")))
                CH(CALLS(FIRST("", "", "", ORDER("8812"))))
                FIN("tool_calls") DONE,
                "call<call_a|order_status|{'order_number':'8812'}|ready> "
                "finish<tool_calls> done complete");
}


static void
test_c006_id_and_name_apart(void **state)
{
    (void) state;

    TEST_STREAM(CH(CALLS("{'index':0,'id':'call_a'}"))
                CH(CALLS("{'index':0,'function':{'name':'get_cart','arguments':'{}'}}"))
                FIN("tool_calls") DONE,
                "call<call_a|get_cart|{}|ready> finish<tool_calls> done complete");

    /* the name first, the id late; and both ways without an index */
    TEST_STREAM(CH(CALLS("{'index':0,'function':{'name':'get_cart'}}"))
                CH(CALLS("{'index':0,'id':'call_a','function':{'arguments':'{}'}}"))
                FIN("tool_calls") DONE,
                "call<call_a|get_cart|{}|ready> finish<tool_calls> done complete");
    TEST_STREAM(CH(CALLS("{'id':'call_a'}"))
                CH(CALLS("{'function':{'name':'get_cart','arguments':'{}'}}"))
                FIN("tool_calls") DONE,
                "call<call_a|get_cart|{}|ready> finish<tool_calls> done complete");
    TEST_STREAM(CH(CALLS("{'function':{'name':'get_cart','arguments':'{}'}}"))
                CH(CALLS("{'id':'call_a'}"))
                FIN("tool_calls") DONE,
                "call<call_a|get_cart|{}|ready> finish<tool_calls> done complete");
}


static void
test_c007_only_arguments_grow(void **state)
{
    (void) state;

    TEST_STREAM(CH(CALLS(FIRST(I0, "call_a", "order_status", "{`order")))
                CH(CALLS("{" I0 "'id':'call_a','type':'function',"
                         "'function':{'arguments':'_number`:`88'}}"))
                CH(CALLS("{" I0 "'id':'call_a','type':'function',"
                         "'function':{'arguments':'12`}'}}"))
                FIN("tool_calls") DONE,
                "call<call_a|order_status|{'order_number':'8812'}|ready> "
                "finish<tool_calls> done complete");
}


static void
test_c008_three_in_one_chunk(void **state)
{
    (void) state;

    TEST_STREAM(CH(CALLS(FIRST(I0, "c0", "order_status", ORDER("1")) ","
                         FIRST(I1, "c1", "order_status", ORDER("2")) ","
                         FIRST(I2, "c2", "order_status", ORDER("3"))))
                FIN("tool_calls") DONE,
                "call<c0|order_status|{'order_number':'1'}|ready> "
                "call<c1|order_status|{'order_number':'2'}|ready> "
                "call<c2|order_status|{'order_number':'3'}|ready> "
                "finish<tool_calls> done complete");

    /* pieces of several calls take turns */
    TEST_STREAM(CH(CALLS(FIRST(I1, "c1", "b", "{`x`:") "," FIRST(I0, "c0", "a", "{`y`:")))
                CH(CALLS(MORE(I0, "1") "," MORE(I1, "2")))
                CH(CALLS(MORE(I1, "}"))) CH(CALLS(MORE(I0, "}")))
                FIN("tool_calls") DONE,
                "call<c1|b|{'x':2}|ready> call<c0|a|{'y':1}|ready> "
                "finish<tool_calls> done complete");
}


static void
test_c009_unknown_name_between(void **state)
{
    (void) state;

    TEST_STREAM(CH(CALLS(FIRST(I0, "c0", "order_status", ORDER("1")) ","
                         FIRST(I1, "c1", "no_such_tool", "{}") ","
                         FIRST(I2, "c2", "order_status", ORDER("2"))))
                FIN("tool_calls") DONE,
                "call<c0|order_status|{'order_number':'1'}|ready> "
                "call<c1|no_such_tool|{}|ready> "
                "call<c2|order_status|{'order_number':'2'}|ready> "
                "finish<tool_calls> done complete");

    /* broken arguments of one call leave the others alone */
    TEST_STREAM(CH(CALLS(FIRST(I0, "c0", "a", "{}") "," FIRST(I1, "c1", "b", "{") ","
                         FIRST(I2, "c2", "c", "{}")))
                FIN("tool_calls") DONE,
                "call<c0|a|{}|ready> call<c1|b|{|not> call<c2|c|{}|ready> "
                "finish<tool_calls> done complete");
}


static void
test_c010_arabic_arguments(void **state)
{
    (void) state;

    TEST_STREAM(CH(CALLS(FIRST(I0, "call_a", "order_status",
                               ORDER("\xd8\xb7\xd9\x84\xd8\xa8"))))
                FIN("tool_calls") DONE,
                "call<call_a|order_status|"
                "{'order_number':'\xd8\xb7\xd9\x84\xd8\xa8'}|ready> "
                "finish<tool_calls> done complete");
    TEST_STREAM("data: {'choices':[{'index':0,'delta':{'content':"
                "'\xd8\xb7\xd9\x84\xd8\xa8 \xf0\x9f\x8c\x99'}}]}\r\n\r\n"
                "data: {'choices':[{'index':0,'delta':{},'finish_reason':'stop'}]}\r\n\r\n",
                "text<\xd8\xb7\xd9\x84\xd8\xa8 \xf0\x9f\x8c\x99> finish<stop> "
                "eof complete");
}


static void
test_c011_no_space_after_colon(void **state)
{
    (void) state;

    TEST_STREAM("data:{'choices':[{'index':0,'delta':{'content':'Hi'},"
                "'finish_reason':null}]}\n\n"
                "data:{'choices':[{'index':0,'delta':{},'finish_reason':'stop'}]}\n\n"
                "data:[DONE]\n\n",
                "text<Hi> finish<stop> done complete");
}


static void
test_c012_crlf(void **state)
{
    (void) state;

    TEST_STREAM("data: {'choices':[{'index':0,'delta':{'content':'Hi'}}]}\r\n\r\n"
                ": note\r\n\r\n"
                "data: {'choices':[{'delta':{},'finish_reason':'stop'}]}\r\n\r\n"
                "data: [DONE]\r\n\r\n",
                "text<Hi> finish<stop> done complete");
}


static void
test_c013_bom(void **state)
{
    (void) state;

    TEST_STREAM("\xef\xbb\xbf" CH("'content':'first'")
                CH("'content':'\xef\xbb\xbf.'") FIN("stop") DONE,
                "text<first\xef\xbb\xbf.> finish<stop> done complete");
}


static void
test_c014_comments_between(void **state)
{
    (void) state;

    TEST_STREAM(": ping\n\n: ping\n\n" CH("'content':'a'") ": ping\n\n" FIN("stop")
                ":\n" DONE,
                "text<a> finish<stop> done complete");
}


static void
test_c015_empty_event(void **state)
{
    (void) state;

    TEST_STREAM("data:\n\n" CH("'content':'ok'") "data:  \n\n" FIN("stop") DONE,
                "text<ok> finish<stop> done complete");
}


static void
test_c016_usage_chunk(void **state)
{
    (void) state;

    TEST_STREAM(CH("'content':'ok'") FIN("stop")
                "data: {'choices':[],'usage':{'prompt_tokens':10,'completion_tokens':2,"
                "'total_tokens':12,'prompt_tokens_details':{'cached_tokens':8},"
                "'completion_tokens_details':{'reasoning_tokens':1}}}\n\n" DONE,
                "text<ok> usage<10 2 12 8 1> finish<stop> done complete");
}


static void
test_c017_no_calls(void **state)
{
    (void) state;

    TEST_STREAM(CH("'content':''") FIN("tool_calls") DONE,
                "text<> finish<tool_calls> done complete");
    TEST_STREAM(CH(CALLS("")) FIN("tool_calls") DONE, "finish<tool_calls> done complete");
}


static void
test_c018_after_the_finish(void **state)
{
    (void) state;

    TEST_STREAM(CH("'content':'Done.'") FIN("stop")
                CH(CALLS(FIRST(I0, "call_z", "add_note", "{`body`:`x`}")))
                FIN("tool_calls") DONE,
                "text<Done.> finish<stop> done complete");
    TEST_STREAM(CH("'content':'a'") FIN("stop") CH("'content':'b','reasoning':'c'")
                CH("'refusal':'d'") CH("'content':[{'type':'text','text':'e'}]")
                CH("'function_call':{'name':'f','arguments':'{}'}") DONE,
                "text<a> finish<stop> done complete");

    /* what comes with the finish reason still counts; after [DONE] nothing does */
    TEST_STREAM(CHOICE("'delta':{'content':'Bye'},'finish_reason':'stop'") DONE
                CH("'content':'b'") "data: {'error':{'message':'x'}}\n\n"
                "data: nonsense\n\n",
                "text<Bye> finish<stop> done complete");
    TEST_STREAM(CHOICE("'finish_reason':'tool_calls','delta':{"
                       CALLS(FIRST(I0, "a", "get_cart", "{}")) "}"),
                "call<a|get_cart|{}|ready> finish<tool_calls> eof complete");
}


static void
test_c019_cut_call(void **state)
{
    (void) state;

    TEST_STREAM(CH(CALLS(FIRST(I0, "call_a", "add_note", "{`body`:`refund appro"))),
                "call<call_a|add_note|{'body':'refund appro|not> eof");

    /* whole JSON, but no finish reason: the turn is not complete */
    TEST_STREAM(CH(CALLS(FIRST(I0, "call_a", "add_note", "{`body`:`refund`}"))),
                "call<call_a|add_note|{'body':'refund'}|ready> eof");
    TEST_STREAM(CH(CALLS(FIRST(I0, "call_a", "add_note", "{`body`:`refund`}"))) DONE,
                "call<call_a|add_note|{'body':'refund'}|ready> done");
}


static void
test_c020_in_band_error(void **state)
{
    (void) state;

    TEST_STREAM(CH("'content':'Let me'")
                "data: {'choices':[],'error':{'message':'capacity','code':502}}\n\n" DONE,
                "text<Let me> why<capacity> error");

    /* an error beside a finish reason, and after one */
    TEST_STREAM("data: {'choices':[{'index':0,'delta':{'content':'x'},"
                "'finish_reason':'stop'}],'error':{'message':'m'}}\n\n" DONE,
                "why<m> error");
    TEST_STREAM(CH("'content':'a'") FIN("stop") "data: {'error':'late'}\n\n" DONE,
                "text<a> finish<stop> why<late> error");
}


static void
test_c021_broken_stream(void **state)
{
    (void) state;

    TEST_STREAM(CH("'content':'one '") CH("'content':'two'"), "text<one two> eof");
    TEST_STREAM(CH("'content':'one '") "data: {'choices':[{'index':0,'delta':{'con",
                "text<one > eof");
    TEST_STREAM("", "eof");
}


static void
test_c022_empty_name_first(void **state)
{
    (void) state;

    TEST_STREAM(CH(CALLS(FIRST(I0, "call_a", "", "")))
                CH(CALLS(FIRST(I0, "call_a", "order_status", ORDER("8812"))))
                FIN("tool_calls") DONE,
                "call<call_a|order_status|{'order_number':'8812'}|ready> "
                "finish<tool_calls> done complete");
}


static void
test_c025_arguments_as_object(void **state)
{
    (void) state;

    TEST_WHOLE(MESSAGE("'content':null,'tool_calls':[{'id':'c1','type':'function',"
                       "'function':{'name':'order_status',"
                       "'arguments':{'order_number':'8812'}}}]", "tool_calls"),
               "call<c1|order_status|{'order_number':'8812'}|ready> "
               "finish<tool_calls> done complete");
    TEST_STREAM(CH(CALLS("{" I0 "'id':'c1','function':{'name':'order_status',"
                         "'arguments':{'order_number':'8812'}}}"))
                FIN("tool_calls") DONE,
                "call<c1|order_status|{'order_number':'8812'}|ready> "
                "finish<tool_calls> done complete");

    /* whatever is no object is no call */
    TEST_WHOLE(MESSAGE("'tool_calls':[{'id':'c','function':{'name':'a','arguments':[1]}},"
                       "{'id':'d','function':{'name':'b','arguments':true}},"
                       "{'id':'e','function':{'name':'c','arguments':null}}]", "stop"),
               "call<c|a|[1]|not> call<d|b|true|not> call<e|c||ready> "
               "finish<stop> done complete");
}


static void
test_c026_repeated_ids(void **state)
{
    (void) state;

    TEST_WHOLE(MESSAGE("'tool_calls':[{'id':'c1','function':{'name':'get_cart',"
                       "'arguments':'{}'}},{'id':'c1','function':{'name':'order_status',"
                       "'arguments':'" ORDER("8812") "'}}]", "tool_calls"),
               "call<c1|get_cart|{}|ready> "
               "call<c1|order_status|{'order_number':'8812'}|ready> "
               "finish<tool_calls> done complete");
    TEST_WHOLE(MESSAGE("'tool_calls':[{'id':'c1','function':{'name':'get_cart',"
                       "'arguments':'{}'}},{'id':'c1','function':{'name':'get_cart',"
                       "'arguments':'{}'}}]", "tool_calls"),
               "call<c1|get_cart|{}|ready> call<c1|get_cart|{}|ready> "
               "finish<tool_calls> done complete");
    TEST_STREAM(CH(CALLS(FIRST(I0, "c1", "get_cart", "{}") ","
                         FIRST(I1, "c1", "order_status", ORDER("8812"))))
                FIN("tool_calls") DONE,
                "call<c1|get_cart|{}|ready> "
                "call<c1|order_status|{'order_number':'8812'}|ready> "
                "finish<tool_calls> done complete");
    TEST_STREAM(CH(CALLS(FIRST("", "c1", "get_cart", "{}") ","
                         FIRST("", "c1", "order_status", ORDER("8812"))))
                FIN("tool_calls") DONE,
                "call<c1|get_cart|{}|ready> "
                "call<c1|order_status|{'order_number':'8812'}|ready> "
                "finish<tool_calls> done complete");
}


#define A10   "aaaaaaaaaa"
#define LONG  "call_" A10 A10 A10 A10 A10 A10 A10 A10 A10

static void
test_c027_long_ids(void **state)
{
    (void) state;

    TEST_STREAM(CH(CALLS(FIRST(I0, LONG "1", "a", "{}") ","
                         FIRST(I1, LONG "2", "b", "{}")))
                FIN("tool_calls") DONE,
                "call<" LONG "1|a|{}|ready> call<" LONG "2|b|{}|ready> "
                "finish<tool_calls> done complete");
    TEST_STREAM(CH(CALLS(FIRST("", LONG "1", "a", "{")))
                CH(CALLS(FIRST("", LONG "2", "b", "{")))
                CH(CALLS("{'id':'" LONG "1','function':{'arguments':'}'}}"))
                CH(CALLS("{'id':'" LONG "2','function':{'arguments':'}'}}"))
                FIN("tool_calls") DONE,
                "call<" LONG "1|a|{}|ready> call<" LONG "2|b|{}|ready> "
                "finish<tool_calls> done complete");
}


static void
test_c028_odd_ids(void **state)
{
    (void) state;

    TEST_STREAM(CH(CALLS(FIRST(I0, "call_x|fc_0123/\xc3\xb7 9", "get_cart", "{}")))
                FIN("tool_calls") DONE,
                "call<call_x|fc_0123/\xc3\xb7 9|get_cart|{}|ready> "
                "finish<tool_calls> done complete");
}


static void
test_c032_null_in_a_part(void **state)
{
    (void) state;

    TEST_WHOLE(MESSAGE("'content':[{'type':'text','text':null},"
                       "{'type':'text','text':'ok'}]", "stop"),
               "text<ok> finish<stop> done complete");
    TEST_STREAM(CH("'content':[{'type':'text','text':null},{'type':'text','text':'ok'}]")
                FIN("stop") DONE,
                "text<ok> finish<stop> done complete");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_c001_no_index),
        cmocka_unit_test(test_c002_null_index),
        cmocka_unit_test(test_c003_same_index_new_id),
        cmocka_unit_test(test_c004_name_repeats),
        cmocka_unit_test(test_c005_empty_is_absent),
        cmocka_unit_test(test_c006_id_and_name_apart),
        cmocka_unit_test(test_c007_only_arguments_grow),
        cmocka_unit_test(test_c008_three_in_one_chunk),
        cmocka_unit_test(test_c009_unknown_name_between),
        cmocka_unit_test(test_c010_arabic_arguments),
        cmocka_unit_test(test_c011_no_space_after_colon),
        cmocka_unit_test(test_c012_crlf),
        cmocka_unit_test(test_c013_bom),
        cmocka_unit_test(test_c014_comments_between),
        cmocka_unit_test(test_c015_empty_event),
        cmocka_unit_test(test_c016_usage_chunk),
        cmocka_unit_test(test_c017_no_calls),
        cmocka_unit_test(test_c018_after_the_finish),
        cmocka_unit_test(test_c019_cut_call),
        cmocka_unit_test(test_c020_in_band_error),
        cmocka_unit_test(test_c021_broken_stream),
        cmocka_unit_test(test_c022_empty_name_first),
        cmocka_unit_test(test_c025_arguments_as_object),
        cmocka_unit_test(test_c026_repeated_ids),
        cmocka_unit_test(test_c027_long_ids),
        cmocka_unit_test(test_c028_odd_ids),
        cmocka_unit_test(test_c032_null_in_a_part)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
