/*
 * The fold of streamed answers: whole bodies, when a call may run, bounds, and that
 * the fast reader is the one that is used.
 */

#include "delta_stream.h"


static void
test_numbers_that_do_not_fit(void **state)
{
    (void) state;

    /* one that nobody needs costs nothing, wherever it stands */
    TEST_STREAM("data: {'created':18446744073709551616,'choices':[{'index':0,"
                "'delta':{'content':'a'}}]}\n\n"
                "data: {'choices':[{'index':0,'delta':{'tool_calls':[{'index':0,"
                "'id':'c','function':{'name':'a','arguments':'{`n`:1}'}}]},"
                "'seed':99999999999999999999}]}\n\n" FIN("tool_calls") DONE,
                "text<a> call<c|a|{'n':1}|ready> finish<tool_calls> done complete");

    /* an argument must never change its value on the way */
    TEST_STREAM(CH("'tool_calls':[{'index':0,'id':'c','function':{'name':'a',"
                   "'arguments':{'n':18446744073709551616}}}]") FIN("tool_calls"),
                "why<a chunk is not a JSON object> error");
    TEST_STREAM(CH("'function_call':{'name':'a','arguments':{'n':18446744073709551616}}"),
                "why<a chunk is not a JSON object> error");
}


static void
test_ready(void **state)
{
    size_t           i;
    tg_delta_call_t  call;

    static const struct {
        const char  *name;
        const char  *arguments;
        bool         ready;
    } cases[] = {
        { "a", "", true },
        { "a", "{}", true },
        { "a", " {\"x\": [1, {\"y\": null}]} ", true },
        { "", "{}", false },
        { "a", " ", false },
        { "a", "{", false },
        { "a", "{}{}", false },
        { "a", "{\"a\":1}x", false },
        { "a", "[]", false },
        { "a", "null", false },
        { "a", "\"{}\"", false },
        { "a", "{\"a\":1,\"a\":2}", false },
        { "a", "{'a':1}", false },
        { "a", "{\"a\":\"\\ud800\"}", false },
        { "a", "{\"a\":\"\xff\"}", false },
        { "a", "{\"a\":1,}", false }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        memset(&call, 0, sizeof(call));
        tg_buf_init(&call.name, TG_DELTA_MAX_NAME);
        tg_buf_init(&call.arguments, TG_DELTA_MAX_ARGUMENTS);
        tg_buf_cstr(&call.name, cases[i].name);
        tg_buf_cstr(&call.arguments, cases[i].arguments);

        if (tg_delta_call_ready(&call) != cases[i].ready) {
            fail_msg("%s %s", cases[i].name, cases[i].arguments);
        }

        tg_buf_free(&call.name);
        tg_buf_free(&call.arguments);
    }
}


static void
test_whole_bodies(void **state)
{
    (void) state;

    TEST_WHOLE("{'choices':[{'index':0,'message':{'role':'assistant','content':'Hi',"
               "'refusal':null,'reasoning_content':'hm'},'finish_reason':'stop'}],"
               "'usage':{'prompt_tokens':1,'completion_tokens':2,'total_tokens':3}}",
               "text<Hi> reasoning<hm> usage<1 2 3 0 0> finish<stop> done complete");

    /* in a list of calls an index means nothing */
    TEST_WHOLE(MESSAGE("'content':null,'tool_calls':[" FIRST(I0, "a", "x", "{}") ","
                       FIRST(I0, "", "y", "{}") "," FIRST(I0, "", "z", "{") "]", "stop"),
               "call<a|x|{}|ready> call<|y|{}|ready> call<|z|{|not> finish<stop> "
               "done complete");

    /* without a finish reason, or without an answer, the turn is not whole */
    TEST_WHOLE("{'choices':[{'message':{'content':'Hi'}}]}", "text<Hi> done");
    TEST_WHOLE("{'choices':[]}", "done");
    TEST_WHOLE("{'choices':[{'delta':{'content':'Hi'},'finish_reason':'stop'}]}",
               "finish<stop> done complete");
}


/* Folds one chunk of head, n times fill and tail. */
static tg_rc_e
test_grow(tg_delta_t *delta, const char *head, char fill, size_t n, const char *tail)
{
    tg_rc_e           rc;
    tg_buf_t          text;
    tg_delta_news_t   news;

    tg_buf_init(&text, TG_DELTA_MAX_CONTENT * 2);
    tg_buf_cstr(&text, head);
    while (n-- > 0) {
        tg_buf_char(&text, fill);
    }
    tg_buf_cstr(&text, tail);

    rc = tg_delta_event(delta, tg_buf_get(&text), &news);
    tg_buf_free(&text);

    return rc;
}


#define CALL_HEAD  "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,"

static void
test_bounds(void **state)
{
    size_t      i;
    tg_delta_t  delta;

    static const struct {
        const char  *head;
        const char  *tail;
        size_t       max;
    } bounds[] = {
        { "{\"choices\":[{\"delta\":{\"content\":\"", "\"}}]}", TG_DELTA_MAX_CONTENT },
        { "{\"choices\":[{\"delta\":{\"content\":[{\"text\":\"", "\"}]}}]}",
          TG_DELTA_MAX_CONTENT },
        { "{\"choices\":[{\"delta\":{\"refusal\":\"", "\"}}]}", TG_DELTA_MAX_CONTENT },
        { "{\"choices\":[{\"delta\":{\"reasoning\":\"", "\"}}]}", TG_DELTA_MAX_CONTENT },
        { CALL_HEAD "\"id\":\"", "\"}]}}]}", TG_DELTA_MAX_ID },
        { CALL_HEAD "\"function\":{\"name\":\"", "\"}}]}}]}", TG_DELTA_MAX_NAME },
        { CALL_HEAD "\"function\":{\"arguments\":\"", "\"}}]}}]}",
          TG_DELTA_MAX_ARGUMENTS },
        { CALL_HEAD "\"function\":{\"arguments\":{\"a\":\"", "\"}}}]}}]}",
          TG_DELTA_MAX_ARGUMENTS - 8 }
    };

    (void) state;

    for (i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
        tg_delta_init(&delta);
        assert_int_equal(test_grow(&delta, bounds[i].head, 'x', bounds[i].max,
                                   bounds[i].tail), TG_OK);
        assert_int_equal(delta.end, TG_DELTA_OPEN);
        tg_delta_free(&delta);

        tg_delta_init(&delta);
        assert_int_equal(test_grow(&delta, bounds[i].head, 'x', bounds[i].max + 1,
                                   bounds[i].tail), TG_E_LIMIT);
        assert_int_equal(delta.end, TG_DELTA_ERROR);
        assert_true(tg_str_eq(tg_buf_get(&delta.error),
                              tg_str("the answer is over a size limit")));
        tg_delta_free(&delta);
    }

    /* calls, one by one */
    tg_delta_init(&delta);
    for (i = 0; i < TG_DELTA_MAX_CALLS; i++) {
        char  id[16];

        snprintf(id, sizeof(id), "%zu", i);
        assert_int_equal(test_grow(&delta, CALL_HEAD "\"id\":\"c", 'c', i, "\"}]}}]}"),
                         TG_OK);
        assert_int_equal(delta.call_count, i + 1);
    }
    assert_int_equal(test_grow(&delta, CALL_HEAD "\"id\":\"x", 'x', 9, "\"}]}}]}"),
                     TG_E_LIMIT);
    tg_delta_free(&delta);

    /* and in one chunk */
    tg_delta_init(&delta);
    assert_int_equal(test_grow(&delta, "{\"choices\":[{\"delta\":{\"tool_calls\":[{}", ' ',
                               1, "]}}]}"), TG_OK);
    tg_delta_free(&delta);

    /* an error's message */
    tg_delta_init(&delta);
    assert_int_equal(test_grow(&delta, "{\"error\":\"", 'e', 100000, "\"}"), TG_E_SYNTAX);
    assert_int_equal(delta.error.len, TG_DELTA_ERROR_CHARS);
    tg_delta_free(&delta);
}


static void
test_many_calls_in_one_chunk(void **state)
{
    size_t            i, n;
    tg_buf_t          text;
    tg_delta_t        delta;
    tg_delta_news_t   news;

    (void) state;

    for (n = TG_DELTA_MAX_CALLS; n <= TG_DELTA_MAX_CALLS + 1; n++) {
        tg_buf_init(&text, TEST_MAX_LOG);
        tg_buf_cstr(&text, "{\"choices\":[{\"delta\":{\"tool_calls\":[");
        for (i = 0; i < n; i++) {
            tg_buf_printf(&text, "%s{\"index\":%zu,\"id\":\"c%zu\"}", i > 0 ? "," : "", i, i);
        }
        tg_buf_cstr(&text, "]}}]}");

        tg_delta_init(&delta);
        assert_int_equal(tg_delta_event(&delta, tg_buf_get(&text), &news),
                         n <= TG_DELTA_MAX_CALLS ? TG_OK : TG_E_LIMIT);
        assert_int_equal(news.calls_changed, n <= TG_DELTA_MAX_CALLS);
        tg_delta_free(&delta);
        tg_buf_free(&text);
    }
}


static void
test_failure_stays(void **state)
{
    tg_delta_t       delta;
    tg_delta_news_t  news;

    (void) state;

    tg_delta_init(&delta);
    assert_int_equal(tg_delta_event(&delta, tg_str("{"), &news), TG_E_SYNTAX);
    assert_int_equal(tg_delta_event(&delta, tg_str("[DONE]"), &news), TG_E_SYNTAX);
    assert_false(news.done);
    assert_int_equal(tg_delta_event(&delta,
                                    tg_str("{\"choices\":[{\"delta\":{\"content\":\"a\"},"
                                           "\"finish_reason\":\"stop\"}]}"), &news),
                     TG_E_SYNTAX);
    assert_int_equal(tg_delta_whole(&delta, tg_str("{}")), TG_E_SYNTAX);
    tg_delta_close(&delta);
    assert_int_equal(delta.end, TG_DELTA_ERROR);
    assert_int_equal(delta.content.len, 0);
    assert_false(tg_delta_complete(&delta));
    tg_delta_free(&delta);
}


/* The chunks of every token must not need a tree. */
static void
test_direct_reader_is_used(void **state)
{
    size_t              i;
    tg_buf_t            scratch, text;
    tg_delta_chunk_t    chunk;

    static const char  *direct[] = {
        "{'id':'chatcmpl-1','object':'chat.completion.chunk','created':1734567890,"
        "'model':'m','service_tier':'default','system_fingerprint':null,'choices':[{"
        "'index':0,'delta':{'content':' the'},'logprobs':null,'finish_reason':null}],"
        "'usage':null,'obfuscation':'x'}",
        "{'choices':[{'index':0,'delta':{'role':'assistant','content':'','refusal':null,"
        "'tool_calls':null,'function_call':null}}]}",
        "{'choices':[{'index':0,'delta':{'content':'\\u0637 \\ud83c\\udf19'}}]}",
        "{'choices':[{'index':0,'delta':{'reasoning_content':'x','content':null}}]}",
        "{'choices':[{'index':0,'delta':{'tool_calls':[{'index':0,'function':{"
        "'arguments':'{`a'}}]},'finish_reason':null}]}",
        "{'choices':[{'index':0,'delta':{'tool_calls':[{'index':0,'id':'c','type':"
        "'function','function':{'name':'a','arguments':''}}]}}]}",
        "{'choices':[{'index':0,'delta':{},'finish_reason':'stop'}]}"
    };

    (void) state;

    tg_buf_init(&scratch, TG_DELTA_DIRECT_MAX + 1);

    for (i = 0; i < sizeof(direct) / sizeof(direct[0]); i++) {
        text = test_text(tg_str_of(direct[i]));
        assert_int_equal(tg_delta_read_direct(tg_buf_get(&text), &scratch, &chunk), TG_OK);
        tg_buf_free(&text);
    }

    tg_buf_free(&scratch);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_numbers_that_do_not_fit),
        cmocka_unit_test(test_ready),
        cmocka_unit_test(test_whole_bodies),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_many_calls_in_one_chunk),
        cmocka_unit_test(test_failure_stays),
        cmocka_unit_test(test_direct_reader_is_used)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
