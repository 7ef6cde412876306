/*
 * Any stream folds to the same message however it is cut, and whether or not the
 * direct reader takes part. The first byte says how the rest is read: as the bytes
 * of a stream, or as choices that make chunks, right ones and nearly right ones.
 */

#include <stdio.h>
#include <stdlib.h>

#include "tg_delta_int.h"
#include "tg_sse.h"


#define FUZZ_MAX_STREAM  (256 * 1024)
#define FUZZ_MAX_LOG     (4 * 1024 * 1024)
#define FUZZ_DIRECT      1      /* bits of a fold's ways */
#define FUZZ_CUT         2

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct {
    tg_delta_t  delta;
    unsigned    ways;
    tg_buf_t    news;
} fuzz_fold_t;

/* Bytes that decide, one choice each; 0 when there are no more. */
typedef struct {
    const uint8_t  *p;
    const uint8_t  *end;
    tg_buf_t       *out;
} fuzz_gen_t;

#define fuzz_count(list)  (sizeof(list) / sizeof((list)[0]))
#define fuzz_one(gen, list)  \
    tg_buf_cstr((gen)->out, (list)[fuzz_choose(gen, fuzz_count(list))])


static size_t
fuzz_choose(fuzz_gen_t *gen, size_t n)
{
    return gen->p < gen->end ? *gen->p++ % n : 0;
}


static void
fuzz_string(fuzz_gen_t *gen)
{
    size_t              n;
    static const char  *atoms[] = { "a", "{", "}", "\\\"k\\\":", "1", "\\u0637", "\\n",
                                    "\\ud83c\\udf19", "\xd8\xb7", "\\u0000", "{}",
                                    "\\\\", "\\ud800", "\xff" };

    tg_buf_char(gen->out, '"');

    for (n = fuzz_choose(gen, 4); n > 0; n--) {
        /* the broken ones seldom, or nothing would get far */
        tg_buf_cstr(gen->out, atoms[fuzz_choose(gen, fuzz_choose(gen, 16) == 15
                                                     ? 14 : 12)]);
    }

    tg_buf_char(gen->out, '"');
}


static void
fuzz_arguments(fuzz_gen_t *gen)
{
    static const char  *values[] = { "null", "{}", "{\"k\":1}", "[1]", "true", "{\"r\":0.5}",
                                     "{\"n\":18446744073709551616}" };

    tg_buf_cstr(gen->out, "\"arguments\":");

    if (fuzz_choose(gen, 4) == 3) {
        fuzz_one(gen, values);

    } else {
        fuzz_string(gen);
    }
}


static void
fuzz_function(fuzz_gen_t *gen)
{
    static const char  *names[] = { "", "\"name\":\"x\",", "\"name\":\"y\",",
                                    "\"name\":\"\",", "\"name\":null,", "\"name\":7," };

    tg_buf_char(gen->out, '{');
    fuzz_one(gen, names);
    fuzz_arguments(gen);
    tg_buf_char(gen->out, '}');
}


static void
fuzz_piece(fuzz_gen_t *gen)
{
    static const char  *indexes[] = { "", "\"index\":0,", "\"index\":1,", "\"index\":null,",
                                      "\"index\":-1,", "\"index\":1.0,", "\"index\":\"0\"," };
    static const char  *ids[] = { "", "\"id\":\"c1\",", "\"id\":\"c2\",", "\"id\":\"\",",
                                  "\"id\":null,", "\"id\":\"c1\",\"id\":\"c3\"," };

    tg_buf_char(gen->out, '{');
    fuzz_one(gen, indexes);
    fuzz_one(gen, ids);
    tg_buf_cstr(gen->out, "\"function\":");
    if (fuzz_choose(gen, 8) == 7) {
        tg_buf_cstr(gen->out, "null");
    } else {
        fuzz_function(gen);
    }
    tg_buf_char(gen->out, '}');
}


static void
fuzz_parts(fuzz_gen_t *gen)
{
    size_t              n;
    static const char  *parts[] = { "{\"type\":\"text\",\"text\":null}", "\"s\"", "null",
                                    "{\"type\":\"refusal\",\"refusal\":\"r\"}",
                                    "{\"type\":\"thinking\",\"thinking\":[{\"text\":\"t\"}]}",
                                    "{\"text\":" };

    tg_buf_char(gen->out, '[');

    for (n = fuzz_choose(gen, 3); n > 0; n--) {
        if (fuzz_one(gen, parts) == TG_OK && gen->out->data[gen->out->len - 1] == ':') {
            fuzz_string(gen);
            tg_buf_char(gen->out, '}');
        }
        tg_buf_cstr(gen->out, n > 1 ? "," : "");
    }

    tg_buf_char(gen->out, ']');
}


static void
fuzz_member(fuzz_gen_t *gen)
{
    size_t              n;
    static const char  *keys[] = { "\"content\":", "\"refusal\":", "\"reasoning\":",
                                   "\"reasoning_content\":", "\"c\\u006fntent\":",
                                   "\"x\":" };
    static const char  *values[] = { "null", "7", "[[{\"a\":[]}]]", "1.5e3", "false" };

    switch (fuzz_choose(gen, 8)) {
    case 0:
    case 1:
        tg_buf_cstr(gen->out, "\"tool_calls\":[");
        for (n = fuzz_choose(gen, 4); n > 0; n--) {
            fuzz_piece(gen);
            tg_buf_cstr(gen->out, n > 1 ? "," : "");
        }
        tg_buf_char(gen->out, ']');
        break;
    case 2:
        tg_buf_cstr(gen->out, "\"function_call\":");
        fuzz_function(gen);
        break;
    case 3:
        tg_buf_cstr(gen->out, "\"content\":");
        fuzz_parts(gen);
        break;
    case 4:
        fuzz_one(gen, keys);
        fuzz_one(gen, values);
        break;
    default:
        fuzz_one(gen, keys);
        fuzz_string(gen);
        break;
    }
}


static void
fuzz_chunk(fuzz_gen_t *gen)
{
    size_t              n;
    static const char  *others[] = {
        "data: [DONE]\n\n", ": c\n\n", "data:\n\n", "data: {\"error\":{\"message\":\"m\"}}\n\n",
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"total_tokens\":4}}\n\n",
        "data: {\"object\":\"error\"}\n\n", "data: {\"error\":null,\"choices\":[]}\n\n",
        "event: x\n", "data: {\"message\":\"m\",\"code\":1}\n\n", "data: nonsense\n\n",
        "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"no\"}}]}\n\n"
    };
    static const char  *heads[] = {
        "data: {\"choices\":[{\"index\":0,\"delta\":{", "data:{\"choices\":[{\"delta\":{",
        "data: {\"id\":\"i\",\"created\":17,\"choices\": [ {\"index\":null, \"delta\": {",
        "data: {\"choices\":[{\"message\":{",
        "data: {\"n\":18446744073709551616,\"choices\":[{\"index\":0,\"delta\":{"
    };
    static const char  *tails[] = {
        "}}]}\n\n", "},\"finish_reason\":null}],\"usage\":null}\n\n", "} } ] }\r\n\r\n",
        "},\"finish_reason\":\"\"}]}\n\n", "},\"logprobs\":{\"a\":[1,2]}}]}\n\n",
        "},\"finish_reason\":\"stop\"}]}\n\n", "},\"usage\":{\"prompt_tokens\":1}}]}\n\n"
    };

    if (fuzz_choose(gen, 8) == 7) {
        fuzz_one(gen, others);
        return;
    }

    fuzz_one(gen, heads);

    for (n = fuzz_choose(gen, 4); n > 0; n--) {
        fuzz_member(gen);
        tg_buf_cstr(gen->out, n > 1 ? "," : "");
    }

    fuzz_one(gen, tails);
}


static void
fuzz_fail(const char *why, const tg_buf_t *a, const tg_buf_t *b)
{
    fprintf(stderr, "%s:\n%.*s\nis not\n%.*s\n", why, (int) a->len, a->data,
            (int) b->len, b->data);
    abort();
}


/* The event through the tree reader alone. */
static tg_rc_e
fuzz_by_tree(tg_delta_t *delta, tg_str_t data, tg_delta_news_t *news)
{
    json_t            *root;
    tg_rc_e            rc;
    tg_delta_chunk_t   chunk;

    memset(news, 0, sizeof(*news));

    if (delta->end != TG_DELTA_OPEN) {
        return tg_delta_event(delta, data, news);
    }

    rc = tg_delta_read_tree(data, false,
                            delta->content.len == 0 && delta->call_count == 0, &root,
                            &chunk);

    /* no chunk: [DONE], blank or wrong, which only tg_delta_event tells apart */
    rc = rc == TG_OK ? tg_delta_fold(delta, &chunk, news)
                     : tg_delta_event(delta, data, news);
    json_decref(root);

    return rc;
}


static tg_rc_e
fuzz_on_event(void *ctx, const tg_sse_event_t *event)
{
    tg_rc_e           rc;
    fuzz_fold_t      *fold;
    tg_delta_news_t   news;

    fold = ctx;

    rc = fold->ways & FUZZ_DIRECT
         ? tg_delta_event(&fold->delta, event->data, &news)
         : fuzz_by_tree(&fold->delta, event->data, &news);

    if (rc != TG_OK && fold->delta.end != TG_DELTA_ERROR) {
        abort();
    }

    tg_buf_printf(&fold->news, "[%d%d%d%d", rc, news.calls_changed, news.finished,
                  news.done);
    tg_buf_json_string(&fold->news, news.content);
    tg_buf_json_string(&fold->news, news.refusal);
    tg_buf_json_string(&fold->news, news.reasoning);
    tg_buf_char(&fold->news, ']');

    return TG_OK;
}


static void
fuzz_summary(const tg_delta_t *d, tg_buf_t *log)
{
    size_t                  i;
    const tg_delta_call_t  *call;

    tg_buf_printf(log, "end %d complete %d legacy %d content %d refusal %d finish %s ",
                  d->end, tg_delta_complete(d), d->legacy_function, d->has_content,
                  d->has_refusal, d->finish_reason);
    tg_buf_printf(log, "usage %d %lld %lld ", d->usage.present,
                  (long long) d->usage.prompt_tokens, (long long) d->usage.total_tokens);
    tg_buf_json_string(log, tg_buf_get(&d->content));
    tg_buf_json_string(log, tg_buf_get(&d->refusal));
    tg_buf_json_string(log, tg_buf_get(&d->reasoning));
    tg_buf_json_string(log, tg_buf_get(&d->error));

    for (i = 0; i < d->call_count; i++) {
        call = &d->calls[i];

        tg_buf_printf(log, "\ncall %d %d %lld ", tg_delta_call_ready(call),
                      call->has_index, (long long) call->index);
        tg_buf_json_string(log, tg_buf_get(&call->id));
        tg_buf_json_string(log, tg_buf_get(&call->name));
        tg_buf_json_string(log, tg_buf_get(&call->arguments));
    }
}


static void
fuzz_fold(tg_str_t stream, uint32_t seed, unsigned ways, tg_buf_t *log)
{
    char         *piece;
    size_t        n;
    tg_sse_t      sse;
    fuzz_fold_t   fold;

    fold.ways = ways;
    tg_delta_init(&fold.delta);
    tg_buf_init(&fold.news, FUZZ_MAX_LOG);
    tg_sse_init(&sse);

    while (stream.len > 0) {
        seed = seed * 1664525 + 1013904223;
        n = ways & FUZZ_CUT ? 1 + (seed >> 24) % (seed & 1 ? 3 : 60) : stream.len;
        n = n < stream.len ? n : stream.len;

        piece = malloc(n);
        memcpy(piece, stream.data, n);
        if (tg_sse_feed(&sse, piece, n, fuzz_on_event, &fold) != TG_OK) {
            abort();
        }
        free(piece);

        stream.data += n;
        stream.len -= n;
    }

    tg_delta_close(&fold.delta);
    fuzz_summary(&fold.delta, log);
    tg_buf_str(log, tg_buf_get(&fold.news));

    tg_buf_free(&fold.news);
    tg_sse_free(&sse);
    tg_delta_free(&fold.delta);
}


/* What must hold of every whole body too: no crash, and an end. */
static void
fuzz_whole(tg_str_t body)
{
    tg_rc_e     rc;
    tg_delta_t  delta;

    tg_delta_init(&delta);
    rc = tg_delta_whole(&delta, body);

    if (delta.end != (rc == TG_OK ? TG_DELTA_DONE : TG_DELTA_ERROR)
        || (rc != TG_OK && tg_delta_complete(&delta)))
    {
        abort();
    }

    tg_delta_free(&delta);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned    ways;
    tg_buf_t    stream, first, other;
    fuzz_gen_t  gen;

    if (size < 2) {
        return 0;
    }

    tg_buf_init(&stream, FUZZ_MAX_STREAM);
    tg_buf_init(&first, FUZZ_MAX_LOG);
    tg_buf_init(&other, FUZZ_MAX_LOG);

    if (data[0] & 3) {
        gen = (fuzz_gen_t) { data + 1, data + size, &stream };

        while (gen.p < gen.end) {
            fuzz_chunk(&gen);
        }

    } else {
        tg_buf_append(&stream, data + 1, size - 1);
    }

    /* one wrong byte in a stream that is right */
    if ((data[0] & 3) == 3 && size > 3 && stream.len > 0) {
        stream.data[(data[1] * 256U + data[2]) % stream.len] = (char) data[3];
    }

    fuzz_fold(tg_buf_get(&stream), data[0], FUZZ_DIRECT, &first);

    for (ways = 0; ways < 4; ways++) {
        tg_buf_reset(&other);
        fuzz_fold(tg_buf_get(&stream), data[0], ways, &other);

        if (!tg_str_eq(tg_buf_get(&first), tg_buf_get(&other))) {
            fuzz_fail(ways & FUZZ_DIRECT ? "cut" : "tree", &first, &other);
        }
    }

    fuzz_whole(tg_buf_get(&stream));

    tg_buf_free(&stream);
    tg_buf_free(&first);
    tg_buf_free(&other);

    return 0;
}
