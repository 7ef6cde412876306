/*
 * The input of a response that was kept: its messages again, and its items as the API
 * lists them.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "quoted.h"
#include "tg_responses.h"


#define ID  "resp_0123456789ABCDEFGHIJKL"


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


static void
assert_text(tg_buf_t *out, const char *want)
{
    char  *text;

    text = unquoted(want);

    if (!tg_str_eq(tg_buf_get(out), tg_str_of(text))) {
        fail_msg("%.*s\nis not\n%s", (int) out->len, out->data, text);
    }

    free(text);
    tg_buf_free(out);
}


static void
test_messages(void **state)
{
    char      *input;
    tg_buf_t   out;

    (void) state;

    input = unquoted("'a\\n'");
    tg_buf_init(&out, 1 << 20);
    assert_int_equal(tg_responses_messages(tg_str_of(input), &out), TG_OK);
    assert_text(&out, "{'role':'user','content':'a\\n'}");
    free(input);

    /* behind what is there already */
    input = unquoted("[{'role':'developer','content':'d'},{'type':'function_call',"
                     "'call_id':'1','name':'f','arguments':'{}'}]");
    tg_buf_init(&out, 1 << 20);
    tg_buf_cstr(&out, "x");
    assert_int_equal(tg_responses_messages(tg_str_of(input), &out), TG_OK);
    assert_text(&out, "x{'role':'system','content':'d'},{'role':'assistant',"
                      "'content':null,'tool_calls':[{'id':'1','type':'function',"
                      "'function':{'name':'f','arguments':'{}'}}]}");
    free(input);

    tg_buf_init(&out, 1 << 20);
    assert_int_equal(tg_responses_messages(tg_str(""), &out), TG_OK);
    assert_int_equal(tg_responses_messages(tg_str("[{\"type\":\"reasoning\"}]"), &out),
                     TG_OK);
    assert_int_equal(out.len, 0);
}


static void
test_answers(void **state)
{
    (void) state;

    assert_true(tg_responses_answers(tg_str("[{\"type\":\"function_call_output\"}]")));
    assert_true(tg_responses_answers(tg_str(" [ {\"x\":[],\"type\":"
                                            "\"mcp_approval_response\"}]")));
    assert_false(tg_responses_answers(tg_str("[{\"role\":\"user\"},"
                                             "{\"type\":\"function_call_output\"}]")));
    assert_false(tg_responses_answers(tg_str("\"function_call_output\"")));
    assert_false(tg_responses_answers(tg_str("[]")));
    assert_false(tg_responses_answers(tg_null_str));
}


static tg_rc_e
list(const char *input, const char *after, size_t limit, bool newest, tg_buf_t *out)
{
    char                 *text;
    tg_rc_e               rc;
    tg_responses_page_t   page = { ID, tg_str_of(after), limit, newest };

    text = unquoted(input);
    tg_buf_init(out, 1 << 20);
    rc = tg_responses_input_items(tg_str_of(text), &page, out);
    free(text);

    return rc;
}


#define MSG(n, role, part)                                                    \
    "{'type':'message','id':'msg_0123456789ABCDEFGHIJKL_i" n "','status':"     \
    "'completed','role':'" role "','content':[" part "]}"

static const char  three[] =
    "[{'role':'user','content':'a'},{'type':'function_call','name':'f'},"
    "{'type':'message','id':'own','status':'incomplete','role':'assistant',"
    "'content':[{'type':'refusal','refusal':'r'}]}]";


static void
test_items(void **state)
{
    tg_buf_t  out;

    (void) state;

    assert_int_equal(list("'hi'", "", 20, true, &out), TG_OK);
    assert_text(&out, "{'object':'list','data':["
                      MSG("0", "user", "{'type':'input_text','text':'hi'}")
                      "],'first_id':'msg_0123456789ABCDEFGHIJKL_i0',"
                      "'last_id':'msg_0123456789ABCDEFGHIJKL_i0','has_more':false}");

    assert_int_equal(list(three, "", 20, false, &out), TG_OK);
    assert_text(&out, "{'object':'list','data':["
                      MSG("0", "user", "{'type':'input_text','text':'a'}")
                      ",{'id':'fc_0123456789ABCDEFGHIJKL_i1','type':'function_call',"
                      "'name':'f'},{'type':'message','id':'own','status':'incomplete',"
                      "'role':'assistant','content':[{'type':'refusal','refusal':"
                      "'r'}]}],'first_id':'msg_0123456789ABCDEFGHIJKL_i0',"
                      "'last_id':'own','has_more':false}");

    assert_int_equal(list("[]", "", 20, false, &out), TG_OK);
    assert_text(&out, "{'object':'list','data':[],'first_id':null,'last_id':null,"
                      "'has_more':false}");
}


static void
test_pages(void **state)
{
    tg_buf_t  out;

    (void) state;

    assert_int_equal(list(three, "own", 1, true, &out), TG_OK);
    assert_text(&out, "{'object':'list','data':[{'id':"
                      "'fc_0123456789ABCDEFGHIJKL_i1','type':'function_call','name':"
                      "'f'}],'first_id':'fc_0123456789ABCDEFGHIJKL_i1',"
                      "'last_id':'fc_0123456789ABCDEFGHIJKL_i1','has_more':true}");

    assert_int_equal(list(three, "own", 5, false, &out), TG_OK);
    assert_text(&out, "{'object':'list','data':[],'first_id':null,'last_id':null,"
                      "'has_more':false}");

    assert_int_equal(list(three, "other", 5, false, &out), TG_E_INVALID);
    tg_buf_free(&out);
}


static bool
named(void *ctx, tg_str_t id)
{
    tg_buf_t *out = ctx;

    tg_buf_str(out, id);
    tg_buf_char(out, ' ');

    return out->len < 20;
}


static tg_str_t
find(void *ctx, tg_str_t id)
{
    return tg_str_eq(id, tg_str("msg_1")) ? tg_str_of(ctx) : tg_null_str;
}


static void
test_references(void **state)
{
    char                   text[] = "{\"x\":1}";
    char                  *input;
    tg_buf_t               out;
    tg_responses_fault_t   fault;

    (void) state;

    input = unquoted("[{'role':'user','id':'u'},{'type':'item_reference','id':'msg_1'},"
                     "{'id':'msg_2','type':null},3,{'type':'message','id':'m'}]");
    tg_buf_init(&out, 100);
    assert_int_equal(tg_responses_references(tg_str_of(input), named, &out), TG_OK);
    assert_text(&out, "msg_1 msg_2 ");

    tg_buf_init(&out, 1000);
    assert_int_equal(tg_responses_resolve(tg_str_of(input), find, text, &out, &fault),
                     TG_E_INVALID);
    assert_string_equal(fault.code, "not_found");
    assert_string_equal(fault.param, "input[2].id");
    tg_buf_free(&out);
    free(input);

    /* what was asked of a person is not for the model */
    input = unquoted("[{'type':'item_reference','id':'appr_0123456789ABCDEFGHIJKL'},"
                     "{'type':'item_reference','id':'msg_1'},"
                     "{'id':'appr_0123456789ABCDEFGHIJKL'},3]");
    tg_buf_init(&out, 1000);
    assert_int_equal(tg_responses_resolve(tg_str_of(input), find, text, &out, &fault),
                     TG_OK);
    assert_text(&out, "[{'x':1},3]");
    free(input);

    input = unquoted("[ {'type':'item_reference','id':'msg_1'} , 3,[]]");
    tg_buf_init(&out, 1000);
    assert_int_equal(tg_responses_resolve(tg_str_of(input), find, text, &out, &fault),
                     TG_OK);
    assert_text(&out, "[{'x':1},3,[]]");

    tg_buf_init(&out, 100);
    tg_buf_cstr(&out, "0123456789012345");
    assert_int_equal(tg_responses_references(tg_str_of(input), named, &out),
                     TG_E_LIMIT);
    tg_buf_free(&out);
    free(input);

    tg_buf_init(&out, 100);
    assert_int_equal(tg_responses_references(tg_str("\"item_reference\""), named,
                                             &out), TG_OK);
    assert_int_equal(out.len, 0);
}


static void
test_ids_lead_to_responses(void **state)
{
    char       response[TG_ID_MAX_LEN];
    char      *object;
    tg_str_t   item;

    (void) state;

    assert_true(tg_responses_response_of(tg_str("msg_0123456789ABCDEFGHIJKL_3"),
                                         response));
    assert_string_equal(response, ID);
    assert_false(tg_responses_response_of(tg_str("msg_0123456789ABCDEFGHIJKL"),
                                          response));
    assert_false(tg_responses_response_of(tg_str("msg_0123456789ABCDEFGHIJ-L_1"),
                                          response));
    assert_false(tg_responses_response_of(tg_str("msg"), response));
    assert_false(tg_responses_response_of(tg_null_str, response));

    object = unquoted("{'id':'resp','text':{},'output':[{'id':'a'},{'type':'x',"
                      "'id':'b','y':[1]}]}");
    item = tg_responses_output_item(tg_str_of(object), tg_str("b"));
    assert_int_equal(item.len, strlen("{'type':'x','id':'b','y':[1]}"));
    assert_int_equal(tg_responses_output_item(tg_str_of(object), tg_str("c")).len, 0);
    assert_int_equal(tg_responses_output_item(tg_str("{}"), tg_str("c")).len, 0);
    assert_int_equal(tg_responses_output_item(tg_str("3"), tg_str("c")).len, 0);
    free(object);
}


static void
test_tool_outputs(void **state)
{
    char      *input;
    size_t     count;
    tg_buf_t   out;

    (void) state;

    input = unquoted("[{'type':'function_call_output','call_id':'1','output':'x'},"
                     "{'type':'function_call_output','call_id':'2','output':["
                     "{'type':'input_text','text':'a'},{'type':'input_text','text':"
                     "'\\n'}]}]");
    tg_buf_init(&out, 1000);
    assert_int_equal(tg_responses_tool_outputs(tg_str_of(input), &out, &count), TG_OK);
    assert_int_equal(count, 2);
    assert_text(&out, "{'tool_outputs':[{'call_id':'1','output':'x'},"
                      "{'call_id':'2','output':'a\\n'}]}");
    free(input);

    input = unquoted("[{'type':'function_call_output','call_id':'1','output':'x'},"
                     "{'role':'user','content':'and'}]");
    tg_buf_init(&out, 1000);
    assert_int_equal(tg_responses_tool_outputs(tg_str_of(input), &out, &count),
                     TG_E_INVALID);
    tg_buf_reset(&out);
    assert_int_equal(tg_responses_tool_outputs(tg_str("\"x\""), &out, &count),
                     TG_E_INVALID);
    tg_buf_free(&out);
    free(input);
}


static void
test_decisions(void **state)
{
    char                      *input;
    size_t                     count;
    tg_responses_fault_t       fault;
    tg_responses_decision_t    list[1];

    (void) state;

    input = unquoted("[3,{'role':'user'},{'type':'mcp_approval_response','approve':true,"
                     "'approval_request_id':'a','reason':'r'},{'approval_request_id':"
                     "'b','type':'mcp_approval_response','approve':false}]");
    assert_int_equal(tg_responses_decisions(tg_str_of(input), list, 1, &count, &fault),
                     TG_OK);
    assert_int_equal(count, 2);
    assert_true(list[0].approve);
    assert_true(tg_str_eq(list[0].id, tg_str("a")));
    assert_true(tg_str_eq(list[0].reason, tg_str("r")));
    free(input);

    input = unquoted("[{'type':'mcp_approval_response','approve':'true',"
                     "'approval_request_id':'a'}]");
    assert_int_equal(tg_responses_decisions(tg_str_of(input), list, 1, &count, &fault),
                     TG_E_INVALID);
    assert_string_equal(fault.param, "input[0].approve");
    free(input);

    input = unquoted("[{'type':'mcp_approval_response','approve':true}]");
    assert_int_equal(tg_responses_decisions(tg_str_of(input), list, 1, &count, &fault),
                     TG_E_INVALID);
    assert_string_equal(fault.param, "input[0].approval_request_id");
    free(input);

    assert_int_equal(tg_responses_decisions(tg_str("\"x\""), list, 1, &count, &fault),
                     TG_OK);
    assert_int_equal(count, 0);
}


int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_items),
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_references),
        cmocka_unit_test(test_ids_lead_to_responses),
        cmocka_unit_test(test_tool_outputs),
        cmocka_unit_test(test_decisions)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
