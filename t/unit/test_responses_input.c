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


int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_items),
        cmocka_unit_test(test_pages)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
