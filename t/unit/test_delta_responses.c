/*
 * A turn of a model that speaks the Responses API, folded from its events or from one
 * object: text, reasoning, refusals, calls in all forms that vendors send, ends.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tg_delta.h"


#define DELTA(at, text)  "{'type':'response.output_text.delta','output_index':" at ",'delta':'" text "'}"
#define ARGS(at, text)   "{'type':'response.function_call_arguments.delta','output_index':" at ",'delta':'" text "'}"
#define ADDED(at, id, name)  "{'type':'response.output_item.added','output_index':" at ",'item':" CALL(id, name, "") "}"
#define ITEM(at, id, name, args)  "{'type':'response.output_item.done','output_index':" at ",'item':" CALL(id, name, args) "}"
#define CALL(id, name, args)  "{'type':'function_call','call_id':'" id "','name':'" name "','arguments':'" args "'}"
#define TEXT(text)  "{'type':'message','content':[{'type':'output_text','text':'" text "'}]}"
#define END(more)   "{'type':'response.completed','response':{'status':'completed'" more "}}"


/* ' stands for ", ` for an escaped one. */
static tg_str_t
unquote(const char *text, char *out, size_t cap)
{
    size_t  n;

    for (n = 0; *text; text++) {
        assert_true(n + 2 < cap);

        if (*text == '`') {
            out[n++] = '\\';
        }

        out[n++] = (*text == '\'' || *text == '`') ? '"' : *text;
    }

    return (tg_str_t) { n, out };
}


static void
summary(const tg_delta_t *d, tg_buf_t *shown, tg_buf_t *out)
{
    size_t  i;

    tg_buf_init(out, 1 << 20);
    tg_buf_str(out, tg_buf_get(shown));

    for (i = 0; i < d->call_count; i++) {
        tg_buf_cstr(out, " call<");
        tg_buf_str(out, tg_buf_get(&d->calls[i].id));
        tg_buf_char(out, '|');
        tg_buf_str(out, tg_buf_get(&d->calls[i].name));
        tg_buf_char(out, '|');
        tg_buf_str(out, tg_buf_get(&d->calls[i].arguments));
        tg_buf_char(out, '>');
    }

    tg_buf_printf(out, " end<%s>", d->end == TG_DELTA_ERROR ? "error" : d->finish_reason);

    if (d->usage.present) {
        tg_buf_printf(out, " usage<%d,%d,%d,%d,%d>", (int) d->usage.prompt_tokens,
                      (int) d->usage.completion_tokens, (int) d->usage.total_tokens,
                      (int) d->usage.cached_tokens, (int) d->usage.reasoning_tokens);
    }
}


/* What a reader was shown, piece by piece, and what the turn is in the end. */
static void
assert_turn(const char *const *events, const char *want)
{
    char             text[4096];
    size_t           i;
    tg_rc_e          rc;
    tg_buf_t         shown, out;
    tg_delta_t       delta;
    tg_delta_news_t  news;

    tg_delta_init(&delta);
    tg_buf_init(&shown, 1 << 20);

    for (i = 0; events[i] != NULL; i++) {
        rc = tg_delta_responses_event(&delta, unquote(events[i], text, sizeof(text)), &news);
        assert_true(rc == TG_OK || delta.end == TG_DELTA_ERROR);

        if (news.content.len) {
            tg_buf_printf(&shown, "[%.*s]", (int) news.content.len, news.content.data);
        }
        if (news.refusal.len) {
            tg_buf_printf(&shown, "no[%.*s]", (int) news.refusal.len, news.refusal.data);
        }
        if (news.reasoning.len) {
            tg_buf_printf(&shown, "hm[%.*s]", (int) news.reasoning.len, news.reasoning.data);
        }
    }

    tg_delta_close(&delta);
    summary(&delta, &shown, &out);

    if (!tg_str_eq(tg_buf_get(&out), tg_str_of(want))) {
        fail_msg("%.*s\nis not\n%s", (int) out.len, out.data, want);
    }

    assert_true(tg_delta_complete(&delta)
                == (delta.end != TG_DELTA_ERROR && delta.finish_reason[0] != '\0'));

    tg_buf_free(&shown);
    tg_buf_free(&out);
    tg_delta_free(&delta);
}

#define TURN(want, ...)  assert_turn((const char *const []) { __VA_ARGS__, NULL }, want)


static void
test_text(void **state)
{
    (void) state;

    TURN("[Hel][lo] end<stop> usage<7,3,10,2,1>",
         "{'type':'response.created','response':{'status':'in_progress'}}",
         DELTA("0", "Hel"), DELTA("0", "lo"),
         "{'type':'response.output_text.done','text':'Hello'}",
         "{'type':'response.output_item.done','output_index':0,'item':" TEXT("Hello") "}",
         END(",'usage':{'input_tokens':7,'output_tokens':3,'total_tokens':10,"
             "'input_tokens_details':{'cached_tokens':2},"
             "'output_tokens_details':{'reasoning_tokens':1}},'output':[" TEXT("Hello") "]"));

    /* two messages are two paragraphs, whether or not something lies between them */
    TURN("[a][\n\nb][c] end<stop>", DELTA("0", "a"), DELTA("2", "b"), DELTA("2", "c"), END(""));
    TURN("[a][b] end<stop>", DELTA("0", "a"), DELTA("1", ""), DELTA("0", "b"), END(""));

    /* nothing is shown twice, and nothing after the end counts */
    TURN("[a] end<stop>", DELTA("0", "a"), END(""), DELTA("0", "b"), END(""));
    TURN(" end<stop>", END(",'output':[]"));
    TURN("[a] end<>", DELTA("0", "a"));
    TURN("[a] end<>", DELTA("0", "a"), "[DONE]");
}


static void
test_nothing_but_the_end(void **state)
{
    (void) state;

    TURN("[a\n\nb]no[never]hm[h\n\ni] call<1|f|{\"x\":1}> end<tool_calls>",
         END(",'output':[{'type':'reasoning','summary':[{'text':'h'},{'text':'i'}]},"
             TEXT("a") "," CALL("1", "f", "{`x`:1}") "," TEXT("b") ","
             "{'type':'message','content':[{'type':'refusal','refusal':'never'}]},"
             "{'type':'web_search_call','id':'w'}]"));
}


static void
test_reasoning(void **state)
{
    (void) state;

    TURN("hm[a]hm[b]hm[\n\nc][x] end<stop>",
         "{'type':'response.reasoning_summary_text.delta','output_index':0,'summary_index':0,'delta':'a'}",
         "{'type':'response.reasoning_summary_text.delta','output_index':0,'summary_index':0,'delta':'b'}",
         "{'type':'response.reasoning_summary_text.delta','output_index':0,'summary_index':1,'delta':'c'}",
         DELTA("1", "x"), END(""));
    TURN("hm[a]no[I] end<stop>",
         "{'type':'response.reasoning_text.delta','output_index':0,'content_index':0,'delta':'a'}",
         "{'type':'response.refusal.delta','output_index':1,'delta':'I'}", END(""));
}


static void
test_calls(void **state)
{
    (void) state;

    TURN(" call<1|f|{\"x\":1}> call<2|g|{}> end<tool_calls>",
         ADDED("0", "1", "f"), ARGS("0", "{`x`"), ADDED("1", "2", "g"), ARGS("0", ":1}"),
         ARGS("1", "{}"), ITEM("0", "1", "f", "{`x`:1}"), ITEM("1", "2", "g", "{}"), END(""));

    /* only as an item that is done; arguments only there */
    TURN(" call<1|f|{}> end<tool_calls>", ITEM("0", "1", "f", "{}"), END(""));
    TURN(" call<1|f|{}> end<tool_calls>", ADDED("0", "1", "f"), ITEM("0", "1", "f", "{}"), END(""));

    /* without an index: pieces belong to the call that began last */
    TURN(" call<1|f|{}> call<2|g|[]> end<tool_calls>",
         "{'type':'response.output_item.added','item':" CALL("1", "f", "") "}",
         "{'type':'response.function_call_arguments.delta','delta':'{}'}",
         "{'type':'response.output_item.added','item':" CALL("2", "g", "") "}",
         "{'type':'response.function_call_arguments.delta','delta':'[]'}", END(""));

    /* the item's own id where there is no other */
    TURN(" call<fc_1|f|> end<tool_calls>",
         "{'type':'response.output_item.done','output_index':0,'item':"
         "{'type':'function_call','id':'fc_1','name':'f'}}", END(""));
}


/* Vendors differ in how they say which call it is. */
static void
test_calls_by_any_id(void **state)
{
    (void) state;

#define OPEN(at, item, id)  "{'type':'response.output_item.added'" at ",'item':{'type':'function_call'," item id "'name':'f','arguments':''}}"
#define MORE(at, item, text)  "{'type':'response.function_call_arguments.delta'" at item ",'delta':'" text "'}"
#define CLOSE(at, item, id, args)  "{'type':'response.output_item.done'" at ",'item':{'type':'function_call'," item id "'name':'f','arguments':" args "}}"
#define AT0  ",'output_index':0"

    /* another id at the end, or none before */
    TURN(" call<a|f|{}> end<tool_calls>", OPEN(AT0, "'id':'i',", "'call_id':'a',"),
         MORE(AT0, ",'item_id':'i'", "{}"), CLOSE(AT0, "'item_id':'i',", "'call_id':'b',", "'{}'"), END(""));
    TURN(" call<a|f|{}> end<tool_calls>", OPEN(AT0, "", "'call_id':'a',"),
         MORE(AT0, "", "{}"), CLOSE(AT0, "", "'call_id':'b',", "'{}'"), END(""));
    TURN(" call<a|f|{}> end<tool_calls>", OPEN(AT0, "'id':'i',", ""), MORE(AT0, "", "{}"),
         CLOSE(AT0, "'id':'i',", "'call_id':'a',", "'{}'"), END(""));

    /* no place, or the same for all */
    TURN(" call<a|f|{}> end<tool_calls>", OPEN("", "'id':'i',", "'call_id':'a',"),
         MORE("", ",'item_id':'i'", "{}"), CLOSE("", "'id':'i',", "'call_id':'a',", "'{}'"), END(""));
    TURN(" call<a|f|{1}> call<b|f|{2}> end<tool_calls>",
         OPEN(AT0, "'id':'i',", "'call_id':'a',"), OPEN(AT0, "'id':'j',", "'call_id':'b',"),
         MORE(AT0, ",'item_id':'i'", "{1}"), MORE(AT0, ",'item_id':'j'", "{2}"),
         CLOSE(AT0, "'id':'i',", "'call_id':'a',", "'{1}'"), CLOSE(AT0, "'id':'j',", "'call_id':'b',", "'{2}'"),
         END(",'output':[" CALL("c", "f", "{1}") "," CALL("d", "f", "{2}") "]"));

    /* twice the same event */
    TURN(" call<a|f|{}> end<tool_calls>", OPEN(AT0, "", "'call_id':'a',"), OPEN(AT0, "", "'call_id':'a',"),
         CLOSE(AT0, "", "'call_id':'a',", "'{}'"), CLOSE(AT0, "", "'call_id':'a',", "'{}'"), END(""));
}


static void
test_calls_whole_somewhere(void **state)
{
    (void) state;

    TURN(" call<a|f|{2}> end<tool_calls>", OPEN(AT0, "", "'call_id':'a',"),
         "{'type':'response.function_call_arguments.done','output_index':0,'arguments':'{2}'}", END(""));
    TURN(" call<a|f|{2}> end<tool_calls>", OPEN(AT0, "", "'call_id':'a',"),
         END(",'output':[" CALL("a", "f", "{2}") "]"));
    TURN("[x] call<a|f|{2}> end<tool_calls>", DELTA("0", "x"),
         END(",'output':[" TEXT("x") "," CALL("a", "f", "{2}") "]"));
    TURN(" call<a|f|{\"x\":1}> end<tool_calls>", CLOSE(AT0, "", "'call_id':'a',", "{'x':1}"), END(""));

    /* one of which nothing more came would look like one that needs no arguments */
    TURN(" call<a|f|> end<error>", OPEN(AT0, "", "'call_id':'a',"), END(""));
    TURN(" call<a|f|{> end<tool_calls>", OPEN(AT0, "", "'call_id':'a',"), MORE(AT0, "", "{"), END(""));
    TURN(" call<a|f|> end<length>", OPEN(AT0, "", "'call_id':'a',"), "{'type':'response.incomplete'}");
}


static void
test_what_came_in_pieces_comes_once(void **state)
{
    (void) state;

    TURN("hm[h] end<length>",
         "{'type':'response.reasoning_summary_text.delta','output_index':0,'summary_index':0,'delta':'h'}",
         "{'type':'response.incomplete','response':{'status':'incomplete','output':["
         "{'type':'reasoning','summary':[{'text':'h'}]}]}}");
    TURN("[all][\n\nmore] end<stop>", "{'type':'response.output_text.done','output_index':0,'text':'all'}",
         "{'type':'response.output_item.done','output_index':0,'item':" TEXT("all") "}",
         "{'type':'response.output_item.done','output_index':1,'item':" TEXT("more") "}",
         END(",'output':[" TEXT("all") "," TEXT("more") "]"));
    TURN("hm[short]hm[\n\nlong] end<stop>",
         "{'type':'response.reasoning_summary_text.delta','output_index':0,'summary_index':0,'delta':'short'}",
         "{'type':'response.reasoning_text.delta','output_index':0,'content_index':0,'delta':'long'}", END(""));
}


static void
test_ends(void **state)
{
    (void) state;

    TURN("[a] end<length>", DELTA("0", "a"),
         "{'type':'response.incomplete','response':{'status':'incomplete',"
         "'incomplete_details':{'reason':'max_output_tokens'}}}");
    TURN(" end<content_filter>",
         "{'type':'response.incomplete','response':{'status':'incomplete',"
         "'incomplete_details':{'reason':'content_filter'}}}");
    TURN(" end<error>",
         "{'type':'response.failed','response':{'status':'failed','error':{'message':'m'}}}");
    TURN(" end<error>", "{'type':'response.completed','response':{'status':'cancelled'}}");
    TURN(" end<error>", "{'type':'error','message':'m'}");
    TURN(" end<error>", "{'error':{'message':'m'}}");
    TURN(" end<error>", "{'choices':[]}");
    TURN("[a] end<stop>", "{}", DELTA("0", "a"), "{'x':1}", "{'type':'response.completed','response':{}}");
    TURN(" end<length>", "{'type':'response.incomplete'}");
    TURN(" end<error>", "[]");
    TURN(" end<>", "{'type':'response.something_new','delta':'x'}", "", " ");
}


static void
test_error_text(void **state)
{
    char             text[512];
    size_t           i;
    tg_delta_t       delta;
    tg_delta_news_t  news;

    static const char *const  events[] = {
        "{'type':'response.failed','response':{'error':{'code':'c','message':'why'}}}",
        "{'type':'error','code':'c','message':'why'}",
        "{'type':'error','error':{'message':'why'}}",
        "{'type':'error','code':'why','message':null}"
    };

    (void) state;

    for (i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
        tg_delta_init(&delta);
        assert_int_equal(tg_delta_responses_event(&delta, unquote(events[i], text, sizeof(text)),
                                                  &news), TG_E_SYNTAX);
        assert_true(tg_str_eq(tg_buf_get(&delta.error), tg_str("why")));
        assert_int_equal(tg_delta_responses_event(&delta, tg_str("{}"), &news), TG_E_SYNTAX);
        tg_delta_free(&delta);
    }
}


static void
test_whole(void **state)
{
    char        text[1024];
    size_t      i;
    tg_buf_t    shown, out;
    tg_delta_t  delta;

    static const struct {
        const char  *body;
        tg_rc_e      rc;
        const char  *want;
    } cases[] = {
        { "{'status':'completed','output':[" TEXT("a") "," CALL("1", "f", "{}") "]}", TG_OK,
          " call<1|f|{}> end<tool_calls>" },
        { "{'status':'incomplete','output':[" TEXT("a") "]}", TG_OK, " end<length>" },
        { "{'status':'failed','output':[],'error':{'message':'m'}}", TG_E_SYNTAX, " end<error>" },
        { "{'choices':[]}", TG_E_SYNTAX, " end<error>" },
        { "nonsense", TG_E_SYNTAX, " end<error>" }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tg_delta_init(&delta);
        tg_buf_init(&shown, 16);
        assert_int_equal(tg_delta_responses_whole(&delta, unquote(cases[i].body, text,
                                                                  sizeof(text))),
                         cases[i].rc);
        summary(&delta, &shown, &out);
        assert_true(tg_str_eq(tg_buf_get(&out), tg_str_of(cases[i].want)));
        tg_buf_free(&out);
        tg_delta_free(&delta);
    }
}


static void
test_bounds(void **state)
{
    char             text[256];
    int              n, i;
    tg_rc_e          rc;
    tg_delta_t       delta;
    tg_delta_news_t  news;

    (void) state;

    tg_delta_init(&delta);
    rc = TG_OK;

    for (i = 0; rc == TG_OK && i <= TG_DELTA_MAX_CALLS; i++) {
        n = snprintf(text, sizeof(text),
                     "{\"type\":\"response.output_item.added\",\"output_index\":%d,"
                     "\"item\":{\"type\":\"function_call\",\"call_id\":\"%d\"}}", i, i);
        rc = tg_delta_responses_event(&delta, (tg_str_t) { (size_t) n, text }, &news);
    }

    assert_int_equal(rc, TG_E_LIMIT);
    assert_int_equal(delta.call_count, TG_DELTA_MAX_CALLS);
    assert_int_equal(delta.end, TG_DELTA_ERROR);
    tg_delta_free(&delta);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_nothing_but_the_end),
        cmocka_unit_test(test_reasoning),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_calls_by_any_id),
        cmocka_unit_test(test_calls_whole_somewhere),
        cmocka_unit_test(test_what_came_in_pieces_comes_once),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_error_text),
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
