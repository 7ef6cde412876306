/*
 * What the tests of the fold share. Each stream goes through the event parser whole,
 * byte by byte and cut in two at every place, and through the tree reader alone:
 * the message must be the same each time. Streams are written with ' for " and
 * ` for \" so that JSON in JSON stays readable.
 */

#ifndef TEST_DELTA_STREAM_H
#define TEST_DELTA_STREAM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tg_delta_int.h"
#include "tg_sse.h"


#define TEST_MAX_LOG  (64 * 1024)

#define CHOICE(inside)                                                              \
    "data: {'id':'u1','object':'chat.completion.chunk','choices':[{'index':0,"     \
    inside "}]}\n\n"
#define CH(delta)     CHOICE("'delta':{" delta "},'finish_reason':null")
#define FIN(reason)   CHOICE("'delta':{},'finish_reason':'" reason "'")
#define DONE          "data: [DONE]\n\n"

#define CALLS(pieces)  "'tool_calls':[" pieces "]"
#define FIRST(i, id, name, arguments)                                               \
    "{" i "'id':'" id "','type':'function','function':{'name':'" name               \
    "','arguments':'" arguments "'}}"
#define MORE(i, arguments)  "{" i "'function':{'arguments':'" arguments "'}}"
#define I0  "'index':0,"
#define I1  "'index':1,"
#define I2  "'index':2,"
#define ORDER(n)  "{`order_number`:`" n "`}"

typedef struct {
    tg_delta_t  delta;
    tg_buf_t    content;      /* put together from what each event reported */
    tg_buf_t    refusal;
    tg_buf_t    reasoning;
    unsigned    finished;
    unsigned    done;
    bool        tree;         /* the direct reader is not used */
} test_fold_t;


/* Makes JSON out of the short form. */
static tg_buf_t
test_text(tg_str_t form)
{
    size_t    i;
    tg_buf_t  out;

    tg_buf_init(&out, TG_DELTA_MAX_CONTENT * 2);

    for (i = 0; i < form.len; i++) {
        if (form.data[i] == '\'') {
            tg_buf_char(&out, '"');

        } else if (form.data[i] == '`') {
            tg_buf_cstr(&out, "\\\"");

        } else {
            tg_buf_char(&out, form.data[i]);
        }
    }

    assert_int_equal(out.error, TG_OK);

    return out;
}


static tg_rc_e
test_by_tree(tg_delta_t *delta, tg_str_t data, tg_delta_news_t *news)
{
    json_t            *root;
    tg_rc_e            rc;
    tg_delta_chunk_t   chunk;

    memset(news, 0, sizeof(*news));

    /* all that is not a chunk with content is the same code for both */
    if (delta->end != TG_DELTA_OPEN || data.len == 0 || data.data[0] != '{') {
        return tg_delta_event(delta, data, news);
    }

    rc = tg_delta_read_tree(data, false,
                            delta->content.len == 0 && delta->call_count == 0, &root,
                            &chunk);
    rc = rc == TG_OK ? tg_delta_fold(delta, &chunk, news)
                     : tg_delta_event(delta, data, news);
    json_decref(root);

    return rc;
}


static tg_rc_e
test_on_event(void *ctx, const tg_sse_event_t *event)
{
    test_fold_t      *fold;
    tg_delta_news_t   news;

    fold = ctx;

    if (fold->tree) {
        test_by_tree(&fold->delta, event->data, &news);

    } else {
        tg_delta_event(&fold->delta, event->data, &news);
    }

    tg_buf_str(&fold->content, news.content);
    tg_buf_str(&fold->refusal, news.refusal);
    tg_buf_str(&fold->reasoning, news.reasoning);
    fold->finished += news.finished;
    fold->done += news.done;

    return TG_OK;
}


static void
test_begin(test_fold_t *fold, bool tree)
{
    memset(fold, 0, sizeof(*fold));

    tg_delta_init(&fold->delta);
    tg_buf_init(&fold->content, TG_DELTA_MAX_CONTENT);
    tg_buf_init(&fold->refusal, TG_DELTA_MAX_CONTENT);
    tg_buf_init(&fold->reasoning, TG_DELTA_MAX_CONTENT);
    fold->tree = tree;
}


static void
test_end(test_fold_t *fold)
{
    tg_delta_free(&fold->delta);
    tg_buf_free(&fold->content);
    tg_buf_free(&fold->refusal);
    tg_buf_free(&fold->reasoning);
}


static void
test_text_part(tg_buf_t *log, const char *name, bool has, const tg_buf_t *text)
{
    if (has || text->len > 0) {
        tg_buf_printf(log, "%s<", name);
        tg_buf_str(log, tg_buf_get(text));
        tg_buf_cstr(log, "> ");
    }
}


/* The message in one line; what is absent is not mentioned. */
static void
test_summary(const tg_delta_t *d, tg_buf_t *log)
{
    size_t                  i;
    const tg_delta_call_t  *call;
    static const char      *ends[] = { "open", "done", "eof", "error" };

    test_text_part(log, "text", d->has_content, &d->content);
    test_text_part(log, "refusal", d->has_refusal, &d->refusal);
    test_text_part(log, "reasoning", false, &d->reasoning);

    for (i = 0; i < d->call_count; i++) {
        call = &d->calls[i];

        tg_buf_cstr(log, "call<");
        tg_buf_str(log, tg_buf_get(&call->id));
        tg_buf_char(log, '|');
        tg_buf_str(log, tg_buf_get(&call->name));
        tg_buf_char(log, '|');
        tg_buf_str(log, tg_buf_get(&call->arguments));
        tg_buf_cstr(log, tg_delta_call_ready(call) ? "|ready> " : "|not> ");
    }

    if (d->legacy_function) {
        tg_buf_cstr(log, "legacy ");
    }

    if (d->usage.present) {
        tg_buf_printf(log, "usage<%lld %lld %lld %lld %lld> ",
                      (long long) d->usage.prompt_tokens,
                      (long long) d->usage.completion_tokens,
                      (long long) d->usage.total_tokens,
                      (long long) d->usage.cached_tokens,
                      (long long) d->usage.reasoning_tokens);
    }

    if (d->finish_reason[0] != '\0') {
        tg_buf_printf(log, "finish<%s> ", d->finish_reason);
    }

    test_text_part(log, "why", false, &d->error);

    tg_buf_cstr(log, ends[d->end]);
    tg_buf_cstr(log, tg_delta_complete(d) ? " complete" : "");
    assert_int_equal(log->error, TG_OK);
}


/* Folds the stream in pieces: cut once, or in steps. */
static void
test_fold(tg_str_t in, size_t cut, size_t step, bool tree, tg_str_t want)
{
    char         *copy;
    size_t        i, n;
    tg_buf_t      log;
    tg_sse_t      sse;
    test_fold_t   fold;

    test_begin(&fold, tree);
    tg_sse_init(&sse);

    for (i = 0; i < in.len; i += n) {
        n = step > 0 ? step : (i < cut ? cut - i : in.len - i);
        n = n < in.len - i ? n : in.len - i;

        copy = malloc(n);
        assert_non_null(copy);
        memcpy(copy, in.data + i, n);
        assert_int_equal(tg_sse_feed(&sse, copy, n, test_on_event, &fold), TG_OK);
        free(copy);
    }

    tg_delta_close(&fold.delta);

    tg_buf_init(&log, TEST_MAX_LOG);
    test_summary(&fold.delta, &log);

    if (!tg_str_eq(tg_buf_get(&log), want)) {
        fail_msg("cut %zu step %zu tree %d:\n  %.*s\ninstead of\n  %.*s", cut, step,
                 tree, (int) log.len, log.data, (int) want.len, want.data);
    }

    /* what was reported is what was kept */
    assert_true(tg_str_eq(tg_buf_get(&fold.content), tg_buf_get(&fold.delta.content)));
    assert_true(tg_str_eq(tg_buf_get(&fold.refusal), tg_buf_get(&fold.delta.refusal)));
    assert_true(tg_str_eq(tg_buf_get(&fold.reasoning),
                          tg_buf_get(&fold.delta.reasoning)));
    assert_int_equal(fold.finished, fold.delta.finish_reason[0] != '\0');
    assert_int_equal(fold.done, fold.delta.end == TG_DELTA_DONE);

    tg_buf_free(&log);
    tg_sse_free(&sse);
    test_end(&fold);
}


static void
test_stream_as(tg_str_t form, tg_str_t want_form)
{
    size_t    cut;
    tg_buf_t  in, want;

    in = test_text(form);
    want = test_text(want_form);

    test_fold(tg_buf_get(&in), in.len, 0, false, tg_buf_get(&want));
    test_fold(tg_buf_get(&in), in.len, 0, true, tg_buf_get(&want));
    test_fold(tg_buf_get(&in), 0, 1, false, tg_buf_get(&want));
    test_fold(tg_buf_get(&in), 0, 1, true, tg_buf_get(&want));
    test_fold(tg_buf_get(&in), 0, 3, false, tg_buf_get(&want));

    for (cut = 1; cut < in.len; cut++) {
        test_fold(tg_buf_get(&in), cut, 0, false, tg_buf_get(&want));
    }

    tg_buf_free(&in);
    tg_buf_free(&want);
}

#define TEST_STREAM(form, want)  test_stream_as(tg_str(form), tg_str(want))


static void
test_whole_as(tg_str_t form, tg_str_t want_form)
{
    tg_buf_t    in, want, log;
    tg_delta_t  delta;

    in = test_text(form);
    want = test_text(want_form);
    tg_buf_init(&log, TEST_MAX_LOG);

    tg_delta_init(&delta);
    tg_delta_whole(&delta, tg_buf_get(&in));
    test_summary(&delta, &log);

    if (!tg_str_eq(tg_buf_get(&log), tg_buf_get(&want))) {
        fail_msg("%.*s\ninstead of\n%.*s", (int) log.len, log.data, (int) want.len,
                 want.data);
    }

    tg_delta_free(&delta);
    tg_buf_free(&log);
    tg_buf_free(&in);
    tg_buf_free(&want);
}

#define TEST_WHOLE(form, want)  test_whole_as(tg_str(form), tg_str(want))
#define MESSAGE(message, reason)                                                    \
    "{'id':'u1','object':'chat.completion','choices':[{'index':0,'message':{"      \
    "'role':'assistant'," message "},'finish_reason':'" reason "'}]}"

#endif /* TEST_DELTA_STREAM_H */
