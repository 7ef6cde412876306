/*
 * Events of a run as the KsADK actions show them: which frames follow, their numbers,
 * what a subscriber who comes back gets, and where its stream ends.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "quoted.h"
#include "tg_ksadk.h"


#define OUT_MAX   (1024 * 1024)
#define TEXT_MAX  (64 * 1024)
#define FRAMES    64


/* Events of one run; seq is counted here. */
static const char *const  story[] = {
    "'type':'run.started','agent':'shop'",
    "'type':'run.text_delta','delta':'Let me '",
    "'type':'run.text_delta','delta':'look.'",
    "'type':'run.tool_call','call_id':'call_1','name':'order','arguments':'{\\'n\\':7}'",
    "'type':'run.tool_result','call_id':'call_1','name':'order','status':'ok',"
        "'content':'{\\'ok\\':true}','error':null",
    "'type':'run.unheard_of'",
    "'type':'run.text_delta','delta':' It is shipped.'",
    "'type':'run.completed'",
    NULL
};


typedef struct {
    tg_ksadk_t   k;
    tg_buf_t     out;
} sub_t;


static void
begin(sub_t *s, int64_t after)
{
    tg_buf_init(&s->out, OUT_MAX);
    tg_ksadk_init(&s->k, tg_str("shop"), tg_str("sess_1"), tg_str("inv-1"), after,
                  TEXT_MAX);
}


static void
end(sub_t *s)
{
    tg_ksadk_free(&s->k);
    tg_buf_free(&s->out);
}


static tg_rc_e
feed(sub_t *s, int seq, const char *members)
{
    char     text[2048];
    size_t   i, len;

    len = (size_t) snprintf(text, sizeof(text), "{%s,'seq':%d,'run':'run_1','at':1700000000}",
                            members, seq);
    assert_true(len < sizeof(text));

    /* \' within a string is an escaped quotation mark */
    for (i = 0; i < len; i++) {
        text[i] = text[i] == '\'' ? '"' : text[i];
    }

    return tg_ksadk_event(&s->k, (tg_str_t) { len, text }, &s->out);
}


static void
tell(sub_t *s, const char *const *events)
{
    int  seq;

    for (seq = 1; *events != NULL; seq++, events++) {
        assert_int_equal(feed(s, seq, *events), TG_OK);
    }
}


/* The nth frame as a tree, or NULL; [DONE] is a JSON string. */
static json_t *
frame(const sub_t *s, size_t n)
{
    char             *copy = strndup(s->out.data == NULL ? "" : s->out.data, s->out.len), *at = copy, *stop;
    json_t           *tree = NULL;
    tg_json_error_t   error;

    for (; at != NULL && *at != '\0'; at = stop + 2) {
        stop = strstr(at, "\n\n");
        assert_non_null(stop);
        if (n-- == 0) {
            *stop = '\0';
            at = strstr(at, "data: ");
            assert_non_null(at);
            at += sizeof("data: ") - 1;
            tree = strcmp(at, "[DONE]") == 0 ? json_string("DONE")
                                            : tg_json_load(tg_str_of(at), &error);
            assert_non_null(tree);
            break;
        }
    }
    free(copy);

    return tree;
}


/* "type:seq type:seq …" of all frames. */
static void
expect(const sub_t *s, const char *want)
{
    char     got[1024] = "";
    size_t   n;
    json_t  *tree;

    for (n = 0; n < FRAMES && (tree = frame(s, n)) != NULL; n++) {
        size_t  len = strlen(got);

        if (json_is_string(tree)) {
            snprintf(got + len, sizeof(got) - len, "%sDONE", len ? " " : "");
        } else {
            snprintf(got + len, sizeof(got) - len, "%s%s:%d", len ? " " : "",
                     json_string_value(json_object_get(tree, "EventType")),
                     (int) json_integer_value(json_object_get(tree, "SeqId")));
        }
        json_decref(tree);
    }
    assert_string_equal(got, want);
}


static void
expect_member(const sub_t *s, size_t n, const char *path, const char *want)
{
    char        name[64];
    size_t      len;
    json_t     *tree = frame(s, n), *value = tree, *wanted = quoted(want);

    for (; *path != '\0'; path += len + (path[len] == '.')) {
        len = strcspn(path, ".");
        snprintf(name, sizeof(name), "%.*s", (int) len, path);
        value = json_object_get(value, name);
        assert_non_null(value);
    }
    assert_true(json_equal(value, wanted));
    json_decref(tree);
    json_decref(wanted);
}


static void
test_whole(void **state)
{
    sub_t  s;

    (void) state;

    begin(&s, 0);
    tell(&s, story);
    expect(&s, "run_status:2 assistant_stream_snapshot:4 assistant_stream_snapshot:6 "
               "tool_call:8 tool_result:10 assistant_stream_snapshot:14 "
               "assistant_message:15 run_status:16 DONE");
    assert_true(s.k.over);

    expect_member(&s, 0, "", "{'EventId':'run_1-2','SessionId':'sess_1',"
        "'InvocationId':'inv-1','Author':'system','EventType':'run_status',"
        "'Content':'running','Timestamp':1700000000000,'SeqId':2,"
        "'Metadata':{'run_id':'run_1','status':'running','detail':null}}");
    expect_member(&s, 2, "Content", "'Let me look.'");
    expect_member(&s, 2, "Author", "'shop'");
    expect_member(&s, 3, "Metadata.tool_args", "{'n':7}");
    expect_member(&s, 3, "Metadata.tool_call_id", "'call_1'");
    expect_member(&s, 4, "Metadata", "{'run_id':'run_1','tool_name':'order',"
        "'tool_call_id':'call_1','tool_output':{'ok':true},"
        "'tool_receipt':{'ReceiptId':'call_1','IdempotencyKey':'call_1','Status':'ok'},"
        "'observability':{'tool_name':'order','output_chars':11,'truncated':false,"
        "'persisted':false,'error_type':null}}");
    expect_member(&s, 6, "Content", "'Let me look. It is shipped.'");
    expect_member(&s, 7, "Metadata.status", "'completed'");

    /* nothing follows an end */
    assert_int_equal(feed(&s, 9, "'type':'run.started'"), TG_OK);
    assert_null(frame(&s, 9));
    end(&s);
}


/* Whatever a subscriber has, the rest is the same. */
static void
test_again(void **state)
{
    int     after;
    sub_t   whole, again;
    size_t  n, skipped, i;
    json_t *a, *b;

    (void) state;

    begin(&whole, 0);
    tell(&whole, story);

    for (after = 0; after <= 20; after++) {
        begin(&again, after);
        tell(&again, story);

        for (skipped = 0; (a = frame(&whole, skipped)) != NULL; skipped++) {
            bool  had = json_is_object(a)
                        && json_integer_value(json_object_get(a, "SeqId")) <= after;

            json_decref(a);
            if (!had) {
                break;
            }
        }
        for (n = 0, i = skipped; (a = frame(&whole, i)) != NULL; n++, i++) {
            b = frame(&again, n);
            assert_non_null(b);
            assert_true(json_equal(a, b));
            json_decref(a);
            json_decref(b);
        }
        assert_null(frame(&again, n));
        assert_true(again.k.over);
        end(&again);
    }
    end(&whole);
}


/* It ends where the run waits, and goes on for the one who has heard that. */
static void
test_waits(void **state)
{
    sub_t  s;

    static const char *const  events[] = {
        "'type':'run.started'",
        "'type':'run.text_delta','delta':'May I?'",
        "'type':'run.approval_requested','approval':{'id':'appr_1'}",
        "'type':'run.requires_action','required_action':{'type':'approval'}",
        "'type':'run.tool_result','call_id':'c','name':'f','status':'failed',"
            "'content':'no','error':{'code':'outcome_unknown'}",
        "'type':'run.completed'",
        NULL
    };

    (void) state;

    begin(&s, 0);
    tell(&s, events);
    expect(&s, "run_status:2 assistant_stream_snapshot:4 approval_request:6 run_status:8 DONE");
    expect_member(&s, 2, "Metadata.interrupt_info", "{'approval':{'id':'appr_1'}}");
    expect_member(&s, 3, "Metadata", "{'run_id':'run_1','status':'interrupted',"
        "'detail':'requires_action','interrupt_info':{'required_action':{'type':'approval'}}}");
    end(&s);

    begin(&s, 8);
    tell(&s, events);
    expect(&s, "tool_result:10 assistant_message:11 run_status:12 DONE");
    expect_member(&s, 0, "Metadata.tool_output", "'no'");
    expect_member(&s, 0, "Metadata.observability.error_type", "'outcome_unknown'");
    end(&s);
}


static void
test_ends(void **state)
{
    size_t  i;
    sub_t   s;
    char    text[128];

    static const struct { const char *type, *status, *detail; }  ends[] = {
        { "'type':'run.failed','error':{'code':'model_timeout'}", "'failed'", "'model_timeout'" },
        { "'type':'run.cancelled'", "'cancelled'", "null" },
        { "'type':'run.superseded'", "'aborted'", "'superseded'" },
        { "'type':'run.expired'", "'failed'", "'expired'" },
    };

    (void) state;

    for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        begin(&s, 0);
        assert_int_equal(feed(&s, 1, "'type':'run.text_delta','delta':'a'"), TG_OK);
        assert_int_equal(feed(&s, 2, ends[i].type), TG_OK);
        expect(&s, "assistant_stream_snapshot:2 run_status:4 DONE");
        expect_member(&s, 1, "Metadata.status", ends[i].status);
        expect_member(&s, 1, "Metadata.detail", ends[i].detail);
        end(&s);
    }

    snprintf(text, sizeof(text), "%s %s %s %s", tg_ksadk_status("queued"),
             tg_ksadk_status("requires_action"), tg_ksadk_status("superseded"),
             tg_ksadk_status("running"));
    assert_string_equal(text, "starting interrupted aborted running");
}


/* A long text is not sent again for each of its pieces. */
static void
test_snapshots_are_few(void **state)
{
    int     seq;
    sub_t   s;
    size_t  n;

    (void) state;

    begin(&s, 0);
    for (seq = 1; seq <= 2000; seq++) {
        assert_int_equal(feed(&s, seq, "'type':'run.text_delta','delta':'0123456789'"), TG_OK);
    }
    assert_true(s.out.len < 30 * 20000);

    /* and what is left of it comes with the next other event */
    n = s.out.len;
    assert_int_equal(feed(&s, seq, "'type':'run.tool_call','call_id':'c','name':'f','arguments':'x'"), TG_OK);
    assert_true(s.k.shown == s.k.text.len);
    assert_true(s.out.len > n);
    end(&s);
}


static void
test_refused(void **state)
{
    int     seq = 1;
    sub_t   s;
    size_t  i;

    static const char *const  bad[] = { "", "{", "[]", "{\"type\":\"run.started\"}",
        "{\"type\":\"run.started\",\"seq\":\"1\",\"at\":1}" };

    (void) state;

    begin(&s, 0);
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(tg_ksadk_event(&s.k, tg_str_of(bad[i]), &s.out), TG_E_SYNTAX);
    }
    assert_int_equal(s.out.len, 0);

    while (s.k.text.len + 1000 <= TEXT_MAX) {
        char  text[1100];

        snprintf(text, sizeof(text), "'type':'run.text_delta','delta':'%0*d'", 1000, 0);
        assert_int_equal(feed(&s, seq++, text), TG_OK);
        tg_buf_reset(&s.out);
    }
    assert_int_equal(feed(&s, seq++, "'type':'run.text_delta','delta':'"
        "0123456789012345678901234567890123456789012345678901234567890123456789"
        "0123456789012345678901234567890123456789012345678901234567890123456789"
        "0123456789012345678901234567890123456789012345678901234567890123456789"
        "0123456789012345678901234567890123456789012345678901234567890123456789"
        "0123456789012345678901234567890123456789012345678901234567890123456789"
        "0123456789012345678901234567890123456789012345678901234567890123456789"
        "0123456789012345678901234567890123456789012345678901234567890123456789"
        "0123456789012345678901234567890123456789012345678901234567890123456789'"),
        TG_E_LIMIT);
    end(&s);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_again),
        cmocka_unit_test(test_waits),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_snapshots_are_few),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
