/*
 * The answer of the Responses API: every event in its order and whole, items in their
 * places, one end. Cases C042, C043.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tg_json.h"
#include "tg_responses.h"
#include "tg_sse.h"


#define ID  "resp_0123456789ABCDEFGHIJKL"

typedef struct {
    tg_buf_t  outline;      /* types without "response.", one a line */
    json_t   *last;
    int64_t   sequence;
    bool      done;
} seen_t;


static void
begin(tg_responses_t *r, bool stream)
{
    tg_responses_init(r, ID, tg_str("m\"x"), tg_str(",\"store\":false"), 5, stream);
}


static tg_rc_e
on_event(void *ctx, const tg_sse_event_t *event)
{
    seen_t           *seen = ctx;
    json_t           *value;
    tg_json_error_t   error;

    assert_false(seen->done);

    if (tg_str_eq(event->data, tg_str("[DONE]"))) {
        seen->done = true;
        return TG_OK;
    }

    value = tg_json_load(event->data, &error);
    assert_non_null(value);
    assert_true(tg_str_eq(event->event, tg_json_get_string(value, "type")));
    assert_int_equal(json_integer_value(json_object_get(value, "sequence_number")),
                     seen->sequence++);

    tg_buf_append(&seen->outline, event->event.data + 9, event->event.len - 9);

    if (json_object_get(value, "output_index")) {
        tg_buf_printf(&seen->outline, " %d",
                      (int) json_integer_value(json_object_get(value,
                                                               "output_index")));
    }

    tg_buf_char(&seen->outline, '\n');
    json_decref(seen->last);
    seen->last = value;

    return TG_OK;
}


static void
assert_events(tg_responses_t *r, const char *want, seen_t *seen)
{
    tg_sse_t  sse;

    memset(seen, 0, sizeof(*seen));
    tg_buf_init(&seen->outline, 1 << 20);
    tg_sse_init(&sse);
    assert_int_equal(tg_sse_feed(&sse, r->out.data, r->out.len, on_event, seen),
                     TG_OK);
    assert_true(tg_sse_at_boundary(&sse));
    tg_sse_free(&sse);

    if (!tg_str_eq(tg_buf_get(&seen->outline), tg_str_of(want))) {
        fail_msg("%.*s", (int) seen->outline.len, seen->outline.data);
    }
}


static void
forget(tg_responses_t *r, seen_t *seen)
{
    tg_buf_free(&seen->outline);
    json_decref(seen->last);
    tg_responses_free(r);
}


static json_t *
object_of(tg_responses_t *r, const tg_responses_end_t *end)
{
    json_t           *value;
    tg_buf_t          out;
    tg_json_error_t   error;

    tg_buf_init(&out, 1 << 24);
    assert_int_equal(tg_responses_object(r, end, &out), TG_OK);
    value = tg_json_load(tg_buf_get(&out), &error);
    assert_non_null(value);
    tg_buf_free(&out);

    return value;
}


static void
test_text(void **state)
{
    json_t              *whole, *item;
    seen_t               seen;
    tg_responses_t       r, quiet;
    tg_delta_usage_t     usage = { true, 7, 3, 10, 2, 1 };
    tg_responses_end_t   end = { .usage = &usage, .now = 9 };

    (void) state;

    begin(&r, true);
    assert_int_equal(tg_responses_text(&r, tg_str("a\"")), TG_OK);
    assert_int_equal(tg_responses_text(&r, tg_str("\n\xc3\xa9")), TG_OK);
    assert_int_equal(tg_responses_end(&r, &end), TG_OK);
    assert_events(&r, "created\nin_progress\noutput_item.added 0\n"
                      "content_part.added 0\noutput_text.delta 0\n"
                      "output_text.delta 0\noutput_text.done 0\n"
                      "content_part.done 0\noutput_item.done 0\ncompleted\n", &seen);
    assert_true(seen.done);

    /* the same without a stream */
    begin(&quiet, false);
    tg_responses_text(&quiet, tg_str("a\""));
    tg_responses_text(&quiet, tg_str("\n\xc3\xa9"));
    tg_responses_end(&quiet, &end);
    assert_int_equal(quiet.out.len, 0);

    whole = object_of(&quiet, &end);
    assert_true(json_equal(whole, json_object_get(seen.last, "response")));
    assert_true(tg_str_eq(tg_json_get_string(whole, "model"), tg_str("m\"x")));
    assert_true(tg_str_eq(tg_json_get_string(whole, "status"), tg_str("completed")));
    assert_int_equal(json_integer_value(json_object_get(whole, "completed_at")), 9);

    item = json_array_get(json_object_get(whole, "output"), 0);
    assert_true(tg_str_eq(tg_json_get_string(item, "id"),
                          tg_str("msg_0123456789ABCDEFGHIJKL_0")));
    item = json_array_get(json_object_get(item, "content"), 0);
    assert_true(tg_str_eq(tg_json_get_string(item, "text"), tg_str("a\"\n\xc3\xa9")));
    assert_int_equal(json_array_size(json_object_get(item, "annotations")), 0);
    assert_true(json_is_array(json_object_get(item, "logprobs")));

    json_decref(whole);
    tg_responses_free(&quiet);
    forget(&r, &seen);
}


/* C043 */
static void
test_kinds_in_turn(void **state)
{
    json_t              *output;
    seen_t               seen;
    tg_responses_t       r;
    tg_responses_end_t   end = { .now = 9 };

    (void) state;

    begin(&r, true);
    tg_responses_text(&r, tg_str("a"));
    tg_responses_reasoning(&r, tg_str("b"));
    tg_responses_text(&r, tg_str("c"));
    tg_responses_refusal(&r, tg_str("d"));
    tg_responses_function_call(&r, tg_str("call_1"), tg_str("f"), tg_str("{\"x\":1}"));
    tg_responses_end(&r, &end);
    assert_events(&r, "created\nin_progress\n"
        "output_item.added 0\ncontent_part.added 0\noutput_text.delta 0\n"
        "output_text.done 0\ncontent_part.done 0\noutput_item.done 0\n"
        "output_item.added 1\ncontent_part.added 1\nreasoning_text.delta 1\n"
        "reasoning_text.done 1\ncontent_part.done 1\noutput_item.done 1\n"
        "output_item.added 2\ncontent_part.added 2\noutput_text.delta 2\n"
        "output_text.done 2\ncontent_part.done 2\ncontent_part.added 2\n"
        "refusal.delta 2\nrefusal.done 2\ncontent_part.done 2\noutput_item.done 2\n"
        "output_item.added 3\nfunction_call_arguments.delta 3\n"
        "function_call_arguments.done 3\noutput_item.done 3\ncompleted\n", &seen);

    output = json_object_get(json_object_get(seen.last, "response"), "output");
    assert_int_equal(json_array_size(output), 4);
    assert_int_equal(json_array_size(json_object_get(json_array_get(output, 2),
                                                     "content")), 2);
    assert_true(tg_str_eq(tg_json_get_string(json_array_get(output, 3), "call_id"),
                          tg_str("call_1")));
    forget(&r, &seen);
}


/* C042: calls end in any order, their items keep their places. */
static void
test_server_calls(void **state)
{
    size_t               first, second;
    json_t              *output, *item;
    seen_t               seen;
    tg_responses_t       r;
    tg_responses_end_t   end = { .now = 9 };

    (void) state;

    begin(&r, true);
    assert_int_equal(tg_responses_call_begins(&r, tg_str("f"), tg_str("{}"),
                                              tg_null_str, &first), TG_OK);
    assert_int_equal(tg_responses_call_begins(&r, tg_str("g"), tg_str("{}"),
                                              tg_str("appr_1"), &second), TG_OK);
    assert_int_equal(tg_responses_call_ended(&r, second, tg_str("{\"ok\":false}"),
                                             tg_str("rate_limited")), TG_OK);
    assert_int_equal(tg_responses_call_ended(&r, first, tg_str("{\"ok\":true}"),
                                             tg_null_str), TG_OK);
    tg_responses_text(&r, tg_str("t"));
    tg_responses_end(&r, &end);
    assert_events(&r, "created\nin_progress\n"
        "output_item.added 0\nmcp_call.in_progress 0\nmcp_call_arguments.delta 0\n"
        "mcp_call_arguments.done 0\n"
        "output_item.added 1\nmcp_call.in_progress 1\nmcp_call_arguments.delta 1\n"
        "mcp_call_arguments.done 1\n"
        "mcp_call.failed 1\noutput_item.done 1\n"
        "mcp_call.completed 0\noutput_item.done 0\n"
        "output_item.added 2\ncontent_part.added 2\noutput_text.delta 2\n"
        "output_text.done 2\ncontent_part.done 2\noutput_item.done 2\ncompleted\n",
        &seen);

    output = json_object_get(json_object_get(seen.last, "response"), "output");
    item = json_array_get(output, 0);
    assert_true(tg_str_eq(tg_json_get_string(item, "output"), tg_str("{\"ok\":true}")));
    assert_true(json_is_null(json_object_get(item, "error")));
    item = json_array_get(output, 1);
    assert_true(tg_str_eq(tg_json_get_string(item, "error"), tg_str("rate_limited")));
    assert_true(tg_str_eq(tg_json_get_string(item, "status"), tg_str("failed")));
    assert_true(tg_str_eq(tg_json_get_string(item, "approval_request_id"),
                          tg_str("appr_1")));
    forget(&r, &seen);
}


static void
test_approval(void **state)
{
    json_t              *item;
    seen_t               seen;
    tg_responses_t       r;
    tg_responses_end_t   end = { .now = 9 };

    (void) state;

    begin(&r, true);
    tg_responses_approval_request(&r, tg_str("appr_0123456789ABCDEFGHIJKL"),
                                  tg_str("f"), tg_str("{}"));
    tg_responses_end(&r, &end);
    assert_events(&r, "created\nin_progress\noutput_item.added 0\n"
                      "output_item.done 0\ncompleted\n", &seen);

    item = json_array_get(json_object_get(json_object_get(seen.last, "response"),
                                          "output"), 0);
    assert_true(tg_str_eq(tg_json_get_string(item, "id"),
                          tg_str("appr_0123456789ABCDEFGHIJKL")));
    assert_true(tg_str_eq(tg_json_get_string(item, "type"),
                          tg_str("mcp_approval_request")));
    forget(&r, &seen);
}


/* Whatever is open when it fails or is cut is ended before. */
static void
test_ends(void **state)
{
    size_t               index;
    json_t              *response;
    seen_t               seen;
    tg_responses_t       r;
    tg_responses_end_t   failed = { .error_code = "model_stream_broken",
                                    .error_message = tg_str("it broke"), .now = 9 };
    tg_responses_end_t   cut = { .incomplete = "max_output_tokens", .now = 9 };
    tg_responses_end_t   whole = { .now = 9 };

    (void) state;

    begin(&r, true);
    tg_responses_call_begins(&r, tg_str("f"), tg_str("{}"), tg_null_str, &index);
    tg_responses_text(&r, tg_str("t"));
    tg_responses_end(&r, &failed);
    assert_int_equal(tg_responses_end(&r, &whole), TG_OK);
    assert_events(&r, "created\nin_progress\n"
        "output_item.added 0\nmcp_call.in_progress 0\nmcp_call_arguments.delta 0\n"
        "mcp_call_arguments.done 0\n"
        "output_item.added 1\ncontent_part.added 1\noutput_text.delta 1\n"
        "output_text.done 1\ncontent_part.done 1\noutput_item.done 1\n"
        "mcp_call.failed 0\noutput_item.done 0\nfailed\n", &seen);
    assert_false(seen.done);

    response = json_object_get(seen.last, "response");
    assert_true(tg_str_eq(tg_json_get_string(json_object_get(response, "error"),
                                             "code"), tg_str("model_stream_broken")));
    assert_true(json_is_null(json_object_get(response, "completed_at")));
    assert_true(tg_str_eq(tg_json_get_string(json_array_get(
        json_object_get(response, "output"), 1), "status"), tg_str("incomplete")));
    forget(&r, &seen);

    begin(&r, true);
    tg_responses_end(&r, &cut);
    assert_events(&r, "created\nin_progress\nincomplete\n", &seen);
    assert_true(seen.done);
    response = json_object_get(seen.last, "response");
    assert_true(tg_str_eq(tg_json_get_string(json_object_get(response,
        "incomplete_details"), "reason"), tg_str("max_output_tokens")));
    forget(&r, &seen);

    /* nothing said is an empty text */
    begin(&r, true);
    tg_responses_end(&r, &whole);
    assert_events(&r, "created\nin_progress\noutput_item.added 0\n"
                      "content_part.added 0\noutput_text.delta 0\n"
                      "output_text.done 0\ncontent_part.done 0\n"
                      "output_item.done 0\ncompleted\n", &seen);
    forget(&r, &seen);
}


/* An object that is written down goes on as if it had never stopped. */
static void
test_restore(void **state)
{
    size_t               index;
    json_t              *value, *want;
    seen_t               seen;
    tg_buf_t             object, echo, again;
    tg_responses_t       r, other;
    tg_responses_end_t   live = { .live = "queued" };
    tg_responses_end_t   end = { .now = 9 };
    tg_responses_end_t   cancelled = { .cancelled = true };

    (void) state;

    begin(&r, false);
    tg_responses_text(&r, tg_str("a"));
    tg_responses_call_begins(&r, tg_str("f"), tg_str("{}"), tg_null_str, &index);
    tg_responses_call_ended(&r, index, tg_str("o"), tg_null_str);

    tg_buf_init(&object, 1 << 20);
    tg_buf_init(&echo, 1 << 20);
    tg_buf_init(&again, 1 << 20);
    assert_int_equal(tg_responses_object(&r, &live, &object), TG_OK);
    assert_int_equal(tg_responses_restore(&other, tg_buf_get(&object), &echo, true),
                     TG_OK);
    assert_int_equal(tg_responses_object(&other, &live, &again), TG_OK);

    value = object_of(&other, &live);
    want = object_of(&r, &live);
    assert_true(json_equal(value, want));
    assert_true(tg_str_eq(tg_json_get_string(value, "status"), tg_str("queued")));
    json_decref(value);
    json_decref(want);

    value = object_of(&other, &cancelled);
    assert_true(tg_str_eq(tg_json_get_string(value, "status"), tg_str("cancelled")));
    json_decref(value);

    /* and only what comes after a number is shown */
    other.after = 3;
    tg_responses_text(&other, tg_str("b"));
    tg_responses_end(&other, &end);
    memset(&seen, 0, sizeof(seen));
    assert_non_null(memmem(other.out.data, other.out.len, "\"sequence_number\":4", 19));
    assert_null(memmem(other.out.data, other.out.len, "\"sequence_number\":3", 19));

    value = object_of(&other, &end);
    assert_int_equal(json_array_size(json_object_get(value, "output")), 3);
    json_decref(value);

    tg_responses_free(&r);
    tg_responses_free(&other);
    tg_buf_reset(&echo);
    assert_int_equal(tg_responses_restore(&other, tg_str("{}"), &echo, true),
                     TG_E_SYNTAX);
    assert_int_equal(tg_responses_restore(&other, tg_str("3"), &echo, true),
                     TG_E_SYNTAX);
    tg_buf_free(&object);
    tg_buf_free(&echo);
    tg_buf_free(&again);
}


/* The bound of items, and no end that could be taken for a whole answer. */
static void
test_bounds(void **state)
{
    size_t          i;
    tg_responses_t  r;

    (void) state;

    begin(&r, false);

    for (i = 0; i < TG_RESPONSES_ITEMS_MAX; i++) {
        assert_int_equal(tg_responses_text(&r, tg_str("a")), TG_OK);
        assert_int_equal(tg_responses_break(&r), TG_OK);
    }

    assert_int_equal(tg_responses_text(&r, tg_str("a")), TG_E_LIMIT);
    tg_responses_free(&r);
}


int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_kinds_in_turn),
        cmocka_unit_test(test_server_calls),
        cmocka_unit_test(test_approval),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_restore),
        cmocka_unit_test(test_bounds)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
