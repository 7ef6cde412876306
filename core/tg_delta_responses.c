/*
 * Reads a turn of a model that speaks the Responses API: the events of its stream, or
 * a whole response object, folded into the same message and calls as chunks of chat.
 * Reasoning that is shown goes to the reader, items that only the vendor understands
 * are passed over.
 */

#include "tg_delta_int.h"
#include "tg_delta_calls.h"


static const tg_delta_usage_names_t  tg_delta_responses_usage = {
    "input_tokens", "output_tokens", "input_tokens_details", "output_tokens_details"
};


/* summaries come first, and what is behind them has numbers of its own */
#define TG_DELTA_CONTENT_PARTS  1000000


static bool
tg_delta_typed(const json_t *object, const char *type)
{
    return tg_str_eq(tg_delta_get(object, "type"), tg_str_of(type));
}


/* Texts of two items, or of two parts of a summary, are two paragraphs. */
static void
tg_delta_paragraph(tg_buf_t *text, tg_delta_place_t *last, int64_t item, int64_t part)
{
    if (last->known && (last->item != item || last->part != part) && text->len) {
        tg_buf_cstr(text, "\n\n");
    }

    last->known = true;
    last->item = item;
    last->part = part;
}


/* Whether text of this item came in pieces: items come one after the other. */
static bool
tg_delta_heard(const tg_delta_t *delta, int64_t item)
{
    return delta->last_text.known && item <= delta->last_text.item;
}


static tg_rc_e
tg_delta_add_content(tg_delta_t *delta, int64_t item, tg_str_t text)
{
    tg_delta_news_t   news;
    tg_delta_chunk_t  chunk;

    tg_delta_chunk_clear(&chunk);
    chunk.has_content = true;
    chunk.content = text;

    if (text.len) {
        tg_delta_paragraph(&delta->content, &delta->last_text, item, 0);
    }

    return tg_delta_fold(delta, &chunk, &news);
}


static tg_rc_e
tg_delta_add_refusal(tg_delta_t *delta, int64_t item, tg_str_t text)
{
    tg_delta_news_t   news;
    tg_delta_chunk_t  chunk;

    tg_delta_chunk_clear(&chunk);
    chunk.has_refusal = true;
    chunk.refusal = text;

    if (text.len) {
        tg_delta_paragraph(&delta->refusal, &delta->last_text, item, 0);
    }

    return tg_delta_fold(delta, &chunk, &news);
}


static tg_rc_e
tg_delta_add_reasoning(tg_delta_t *delta, int64_t item, int64_t part, tg_str_t text)
{
    tg_delta_news_t   news;
    tg_delta_chunk_t  chunk;

    tg_delta_chunk_clear(&chunk);
    chunk.reasoning = text;

    if (text.len) {
        tg_delta_paragraph(&delta->reasoning, &delta->last_reasoning, item, part);
    }

    return tg_delta_fold(delta, &chunk, &news);
}


static tg_rc_e
tg_delta_message_item(tg_delta_t *delta, const json_t *item, int64_t index)
{
    size_t         i;
    tg_rc_e        rc;
    const json_t  *part, *parts;

    rc = TG_OK;
    parts = json_object_get(item, "content");

    json_array_foreach(parts, i, part) {
        rc = tg_delta_typed(part, "refusal")
             ? tg_delta_add_refusal(delta, index, tg_delta_get(part, "refusal"))
             : tg_delta_add_content(delta, index, tg_delta_get(part, "text"));

        if (rc != TG_OK) {
            break;
        }
    }

    return rc;
}


static tg_rc_e
tg_delta_reasoning_item(tg_delta_t *delta, const json_t *item, int64_t index)
{
    size_t         i, j;
    tg_rc_e        rc;
    const json_t  *part;

    static const char *const  lists[] = { "summary", "content" };

    rc = TG_OK;

    for (i = 0; i < 2; i++) {
        json_array_foreach(json_object_get(item, lists[i]), j, part) {
            rc = tg_delta_add_reasoning(delta, index,
                                        (int64_t) (i * TG_DELTA_CONTENT_PARTS + j),
                                        tg_delta_get(part, "text"));
            if (rc != TG_OK) {
                return rc;
            }
        }
    }

    return rc;
}


/* What a response object holds of each kind of which nothing came before; its calls say
 * which of those that came are whole. */
static tg_rc_e
tg_delta_output(tg_delta_t *delta, const json_t *response, bool rounded)
{
    bool              said, thought;
    size_t            i;
    tg_rc_e           rc;
    const json_t     *item;
    tg_delta_taken_t  taken;

    rc = TG_OK;

    /* ids may be others here than in the events: no call is made of them twice */

    taken.add = (delta->call_count == 0);
    taken.rounded = rounded;
    said = delta->content.len || delta->refusal.len;
    thought = delta->reasoning.len != 0;

    json_array_foreach(json_object_get(response, "output"), i, item) {

        if (tg_delta_typed(item, "function_call")) {
            rc = tg_delta_call_done(delta, item, true, (int64_t) i, taken);

        } else if (!said && tg_delta_typed(item, "message")) {
            rc = tg_delta_message_item(delta, item, (int64_t) i);

        } else if (!thought && tg_delta_typed(item, "reasoning")) {
            rc = tg_delta_reasoning_item(delta, item, (int64_t) i);
        }

        if (rc != TG_OK) {
            break;
        }
    }

    return rc;
}


/* The words of an error, wherever it lies in the event. */
static tg_str_t
tg_delta_error_text(const json_t *root)
{
    tg_str_t       text;
    const json_t  *error;

    error = json_object_get(json_object_get(root, "response"), "error");

    if (!json_is_object(error)) {
        error = json_object_get(root, "error");
    }

    if (!json_is_object(error)) {
        error = root;
    }

    text = tg_delta_get(error, "message");

    return text.len ? text : tg_delta_get(error, "code");
}


static tg_rc_e
tg_delta_responses_failed(tg_delta_t *delta, const json_t *root)
{
    tg_delta_news_t   news;
    tg_delta_chunk_t  chunk;

    tg_delta_chunk_clear(&chunk);
    chunk.has_error = true;
    chunk.error = tg_delta_error_text(root);

    return tg_delta_fold(delta, &chunk, &news);
}


/* The response as it ended: why, what it cost, and of its output what did not come in
 * pieces. status: what the event means when the response does not say it. */
static tg_rc_e
tg_delta_responses_ended(tg_delta_t *delta, const json_t *response, tg_str_t status,
    bool rounded)
{
    tg_rc_e            rc;
    tg_str_t           reason;
    tg_delta_news_t    news;
    tg_delta_chunk_t   chunk;

    if (tg_delta_get(response, "status").len) {
        status = tg_delta_get(response, "status");
    }

    rc = tg_delta_output(delta, response, rounded);

    if (rc != TG_OK) {
        return rc;
    }

    tg_delta_chunk_clear(&chunk);
    tg_delta_read_usage(json_object_get(response, "usage"), &tg_delta_responses_usage,
                        &chunk.usage);

    if (tg_str_eq(status, tg_str("incomplete"))) {
        reason = tg_delta_get(json_object_get(response, "incomplete_details"), "reason");
        chunk.finish_reason = tg_str_eq(reason, tg_str("content_filter"))
                              ? reason : tg_str("length");

    } else if (tg_str_eq(status, tg_str("completed"))) {
        rc = tg_delta_calls_ended(delta);
        chunk.finish_reason = delta->call_count ? tg_str("tool_calls") : tg_str("stop");

    } else {
        return tg_delta_responses_failed(delta, response);
    }

    return rc == TG_OK ? tg_delta_fold(delta, &chunk, &news) : rc;
}


/* An item that has begun, or is whole. */
static tg_rc_e
tg_delta_responses_item(tg_delta_t *delta, const json_t *root, bool done, bool rounded)
{
    bool           has_index;
    int64_t        index;
    const json_t  *item;

    index = 0;
    item = json_object_get(root, "item");
    has_index = tg_delta_get_index(root, "output_index", &index);

    if (tg_delta_typed(item, "function_call")) {
        return done ? tg_delta_call_done(delta, item, has_index, index,
                                         (tg_delta_taken_t) { true, rounded })
                    : tg_delta_call_begins(delta, item, has_index, index);
    }

    if (done && tg_delta_typed(item, "message") && !tg_delta_heard(delta, index)) {
        return tg_delta_message_item(delta, item, index);
    }

    return TG_OK;
}


typedef enum {
    TG_DELTA_EV_OTHER = 0,
    TG_DELTA_EV_TEXT,
    TG_DELTA_EV_WHOLE_TEXT,
    TG_DELTA_EV_REFUSAL,
    TG_DELTA_EV_SUMMARY,
    TG_DELTA_EV_REASONING,
    TG_DELTA_EV_ADDED,
    TG_DELTA_EV_ARGUMENTS,
    TG_DELTA_EV_WHOLE_ARGUMENTS,
    TG_DELTA_EV_ITEM,
    TG_DELTA_EV_COMPLETED,
    TG_DELTA_EV_INCOMPLETE,
    TG_DELTA_EV_FAILED
} tg_delta_ev_e;


static tg_delta_ev_e
tg_delta_responses_kind(tg_str_t type)
{
    size_t  i;

    static const struct {
        const char     *type;
        tg_delta_ev_e   kind;
    } kinds[] = {
        { "response.output_text.delta", TG_DELTA_EV_TEXT },
        { "response.output_text.done", TG_DELTA_EV_WHOLE_TEXT },
        { "response.refusal.delta", TG_DELTA_EV_REFUSAL },
        { "response.reasoning_summary_text.delta", TG_DELTA_EV_SUMMARY },
        { "response.reasoning_text.delta", TG_DELTA_EV_REASONING },
        { "response.function_call_arguments.delta", TG_DELTA_EV_ARGUMENTS },
        { "response.function_call_arguments.done", TG_DELTA_EV_WHOLE_ARGUMENTS },
        { "response.output_item.added", TG_DELTA_EV_ADDED },
        { "response.output_item.done", TG_DELTA_EV_ITEM },
        { "response.completed", TG_DELTA_EV_COMPLETED },
        { "response.incomplete", TG_DELTA_EV_INCOMPLETE },
        { "response.failed", TG_DELTA_EV_FAILED },
        { "error", TG_DELTA_EV_FAILED }
    };

    for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (tg_str_eq(type, tg_str_of(kinds[i].type))) {
            return kinds[i].kind;
        }
    }

    return TG_DELTA_EV_OTHER;
}


/* What has no type: an error, a sign of life, or something that is not of this API. */
static tg_rc_e
tg_delta_responses_untyped(tg_delta_t *delta, const json_t *root)
{
    if (json_object_get(root, "error")) {
        return tg_delta_responses_failed(delta, root);
    }

    return json_object_get(root, "choices") ? TG_E_SYNTAX : TG_OK;
}


static tg_rc_e
tg_delta_responses_take(tg_delta_t *delta, const json_t *root, bool rounded)
{
    int64_t        item, part;
    tg_str_t       type, text;
    const json_t  *response;

    type = tg_delta_get(root, "type");

    if (type.len == 0) {
        return tg_delta_responses_untyped(delta, root);
    }

    item = 0;
    part = 0;
    text = tg_delta_get(root, "delta");
    response = json_object_get(root, "response");
    (void) tg_delta_get_index(root, "output_index", &item);

    switch (tg_delta_responses_kind(type)) {

    case TG_DELTA_EV_TEXT:
        return tg_delta_add_content(delta, item, text);

    case TG_DELTA_EV_WHOLE_TEXT:
        return tg_delta_heard(delta, item)
               ? TG_OK : tg_delta_add_content(delta, item, tg_delta_get(root, "text"));

    case TG_DELTA_EV_REFUSAL:
        return tg_delta_add_refusal(delta, item, text);

    case TG_DELTA_EV_SUMMARY:
        (void) tg_delta_get_index(root, "summary_index", &part);
        return tg_delta_add_reasoning(delta, item, part, text);

    case TG_DELTA_EV_REASONING:
        (void) tg_delta_get_index(root, "content_index", &part);
        return tg_delta_add_reasoning(delta, item, TG_DELTA_CONTENT_PARTS + part, text);

    case TG_DELTA_EV_ADDED:
        return tg_delta_responses_item(delta, root, false, rounded);

    case TG_DELTA_EV_ITEM:
        return tg_delta_responses_item(delta, root, true, rounded);

    case TG_DELTA_EV_ARGUMENTS:
        return tg_delta_call_arguments(delta, root, false);

    case TG_DELTA_EV_WHOLE_ARGUMENTS:
        return tg_delta_call_arguments(delta, root, true);

    case TG_DELTA_EV_COMPLETED:
        return tg_delta_responses_ended(delta, response, tg_str("completed"), rounded);

    case TG_DELTA_EV_INCOMPLETE:
        return tg_delta_responses_ended(delta, response, tg_str("incomplete"), rounded);

    case TG_DELTA_EV_FAILED:
        return tg_delta_responses_failed(delta, root);

    case TG_DELTA_EV_OTHER:
        break;
    }

    return TG_OK;
}


/* Runs one reader over a tree and says what it has added. */
static tg_rc_e
tg_delta_responses_read(tg_delta_t *delta, tg_str_t text, bool whole,
    tg_delta_news_t *news)
{
    bool      rounded;
    size_t    content, refusal, reasoning, calls;
    json_t   *root;
    tg_rc_e   rc;

    content = delta->content.len;
    refusal = delta->refusal.len;
    reasoning = delta->reasoning.len;
    calls = delta->call_count;

    root = tg_delta_load(text, &rounded);

    if (!json_is_object(root)) {
        rc = TG_E_SYNTAX;

    } else if (!whole) {
        rc = tg_delta_responses_take(delta, root, rounded);

    } else if (json_is_array(json_object_get(root, "output"))) {
        rc = tg_delta_responses_ended(delta, root, tg_null_str, rounded);

    } else {
        rc = tg_delta_responses_failed(delta, root);
    }

    json_decref(root);

    if (rc == TG_OK && delta->finish_reason[0] != '\0') {
        delta->end = TG_DELTA_DONE;
    }

    news->content = tg_delta_since(&delta->content, content);
    news->refusal = tg_delta_since(&delta->refusal, refusal);
    news->reasoning = tg_delta_since(&delta->reasoning, reasoning);
    news->calls_changed = (delta->call_count != calls);
    news->finished = (delta->finish_reason[0] != '\0');
    news->done = (delta->end == TG_DELTA_DONE);

    return tg_delta_check(delta, rc);
}


tg_rc_e
tg_delta_responses_event(tg_delta_t *delta, tg_str_t data, tg_delta_news_t *news)
{
    memset(news, 0, sizeof(*news));

    if (delta->end == TG_DELTA_ERROR) {
        return TG_E_SYNTAX;
    }

    data = tg_delta_trim(data);

    /* some send chat's end behind their own */

    if (data.len == 0 || delta->end != TG_DELTA_OPEN
        || tg_str_eq(data, tg_str("[DONE]")))
    {
        return TG_OK;
    }

    return tg_delta_responses_read(delta, data, false, news);
}


tg_rc_e
tg_delta_responses_whole(tg_delta_t *delta, tg_str_t body)
{
    tg_delta_news_t  news;

    if (delta->end == TG_DELTA_ERROR) {
        return TG_E_SYNTAX;
    }

    return tg_delta_responses_read(delta, body, true, &news);
}
