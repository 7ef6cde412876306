/*
 * Reads a turn of a model that speaks the Responses API: the events of its stream, or
 * a whole response object, folded into the same message and calls as chunks of chat.
 * Reasoning that is shown goes to the reader, items that only the vendor understands
 * are passed over.
 */

#include "tg_delta_int.h"


static const tg_delta_usage_names_t  tg_delta_responses_usage = {
    "input_tokens", "output_tokens", "input_tokens_details", "output_tokens_details"
};


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
tg_delta_add_refusal(tg_delta_t *delta, tg_str_t text)
{
    tg_delta_news_t   news;
    tg_delta_chunk_t  chunk;

    tg_delta_chunk_clear(&chunk);
    chunk.has_refusal = true;
    chunk.refusal = text;

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
tg_delta_add_piece(tg_delta_t *delta, const tg_delta_piece_t *piece)
{
    tg_delta_news_t   news;
    tg_delta_chunk_t  chunk;

    tg_delta_chunk_clear(&chunk);
    chunk.pieces[0] = *piece;
    chunk.piece_count = 1;

    return tg_delta_fold(delta, &chunk, &news);
}


static const tg_delta_call_t *
tg_delta_call_at(const tg_delta_t *delta, const tg_delta_piece_t *piece)
{
    size_t                  i;
    const tg_delta_call_t  *call;

    for (i = delta->call_count; piece->has_index && i-- > 0; ) {
        call = &delta->calls[i];

        if (call->has_index && call->index == piece->index) {
            return call;
        }
    }

    return NULL;
}


/* An item that is whole or has just begun. Arguments that came in pieces are not taken
 * once more. */
static tg_rc_e
tg_delta_call_item(tg_delta_t *delta, const json_t *item, bool has_index,
    int64_t index, bool done)
{
    tg_delta_piece_t        piece;
    const tg_delta_call_t  *call;

    memset(&piece, 0, sizeof(piece));
    piece.has_index = has_index;
    piece.index = index;
    piece.id = tg_delta_get(item, "call_id");
    piece.name = tg_delta_get(item, "name");

    if (piece.id.len == 0) {
        piece.id = tg_delta_get(item, "id");
    }

    call = tg_delta_call_at(delta, &piece);

    if (done && (call == NULL || call->arguments.len == 0)) {
        piece.arguments = tg_delta_get(item, "arguments");
    }

    return tg_delta_add_piece(delta, &piece);
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
             ? tg_delta_add_refusal(delta, tg_delta_get(part, "refusal"))
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
            rc = tg_delta_add_reasoning(delta, index, (int64_t) j,
                                        tg_delta_get(part, "text"));
            if (rc != TG_OK) {
                return rc;
            }
        }
    }

    return rc;
}


/* All that a response object holds, of which nothing came before. */
static tg_rc_e
tg_delta_output(tg_delta_t *delta, const json_t *response)
{
    size_t         i;
    tg_rc_e        rc;
    const json_t  *item;

    rc = TG_OK;

    json_array_foreach(json_object_get(response, "output"), i, item) {

        if (tg_delta_typed(item, "message")) {
            rc = tg_delta_message_item(delta, item, (int64_t) i);

        } else if (tg_delta_typed(item, "function_call")) {
            rc = tg_delta_call_item(delta, item, true, (int64_t) i, true);

        } else if (tg_delta_typed(item, "reasoning")) {
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


/* The response as it ended: why, what it cost, and its output when nothing of that
 * came in pieces. */
static tg_rc_e
tg_delta_responses_ended(tg_delta_t *delta, const json_t *response)
{
    tg_rc_e            rc;
    tg_str_t           status, reason;
    tg_delta_news_t    news;
    tg_delta_chunk_t   chunk;

    if (delta->content.len == 0 && delta->refusal.len == 0 && delta->call_count == 0) {
        rc = tg_delta_output(delta, response);

        if (rc != TG_OK) {
            return rc;
        }
    }

    tg_delta_chunk_clear(&chunk);
    tg_delta_read_usage(json_object_get(response, "usage"), &tg_delta_responses_usage,
                        &chunk.usage);

    status = tg_delta_get(response, "status");

    if (tg_str_eq(status, tg_str("incomplete"))) {
        reason = tg_delta_get(json_object_get(response, "incomplete_details"), "reason");
        chunk.finish_reason = tg_str_eq(reason, tg_str("content_filter"))
                              ? reason : tg_str("length");

    } else if (tg_str_eq(status, tg_str("completed"))) {
        chunk.finish_reason = delta->call_count ? tg_str("tool_calls") : tg_str("stop");

    } else {
        return tg_delta_responses_failed(delta, response);
    }

    return tg_delta_fold(delta, &chunk, &news);
}


static tg_rc_e
tg_delta_responses_item(tg_delta_t *delta, const json_t *root, bool done)
{
    bool           has_index;
    int64_t        index;
    const json_t  *item;

    item = json_object_get(root, "item");
    has_index = tg_delta_get_index(root, "output_index", &index);

    if (tg_delta_typed(item, "function_call")) {
        return tg_delta_call_item(delta, item, has_index, index, done);
    }

    return TG_OK;
}


static tg_rc_e
tg_delta_responses_arguments(tg_delta_t *delta, const json_t *root)
{
    tg_delta_piece_t  piece;

    memset(&piece, 0, sizeof(piece));
    piece.has_index = tg_delta_get_index(root, "output_index", &piece.index);
    piece.arguments = tg_delta_get(root, "delta");

    return tg_delta_add_piece(delta, &piece);
}


typedef enum {
    TG_DELTA_EV_OTHER = 0,
    TG_DELTA_EV_TEXT,
    TG_DELTA_EV_REFUSAL,
    TG_DELTA_EV_SUMMARY,
    TG_DELTA_EV_REASONING,
    TG_DELTA_EV_ADDED,
    TG_DELTA_EV_ARGUMENTS,
    TG_DELTA_EV_ITEM,
    TG_DELTA_EV_ENDED,
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
        { "response.refusal.delta", TG_DELTA_EV_REFUSAL },
        { "response.reasoning_summary_text.delta", TG_DELTA_EV_SUMMARY },
        { "response.reasoning_text.delta", TG_DELTA_EV_REASONING },
        { "response.function_call_arguments.delta", TG_DELTA_EV_ARGUMENTS },
        { "response.output_item.added", TG_DELTA_EV_ADDED },
        { "response.output_item.done", TG_DELTA_EV_ITEM },
        { "response.completed", TG_DELTA_EV_ENDED },
        { "response.incomplete", TG_DELTA_EV_ENDED },
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


static tg_rc_e
tg_delta_responses_take(tg_delta_t *delta, const json_t *root)
{
    int64_t   item, part;
    tg_rc_e   rc;
    tg_str_t  type, text;

    type = tg_delta_get(root, "type");

    if (type.len == 0) {
        return json_object_get(root, "error") ? tg_delta_responses_failed(delta, root)
                                              : TG_E_SYNTAX;
    }

    item = 0;
    part = 0;
    text = tg_delta_get(root, "delta");
    (void) tg_delta_get_index(root, "output_index", &item);

    switch (tg_delta_responses_kind(type)) {

    case TG_DELTA_EV_TEXT:
        return tg_delta_add_content(delta, item, text);

    case TG_DELTA_EV_REFUSAL:
        return tg_delta_add_refusal(delta, text);

    case TG_DELTA_EV_SUMMARY:
        (void) tg_delta_get_index(root, "summary_index", &part);
        return tg_delta_add_reasoning(delta, item, part, text);

    case TG_DELTA_EV_REASONING:
        (void) tg_delta_get_index(root, "content_index", &part);
        return tg_delta_add_reasoning(delta, item, part, text);

    case TG_DELTA_EV_ADDED:
        return tg_delta_responses_item(delta, root, false);

    case TG_DELTA_EV_ITEM:
        return tg_delta_responses_item(delta, root, true);

    case TG_DELTA_EV_ARGUMENTS:
        return tg_delta_responses_arguments(delta, root);

    case TG_DELTA_EV_ENDED:
        rc = tg_delta_responses_ended(delta, json_object_get(root, "response"));

        if (rc == TG_OK) {
            delta->end = TG_DELTA_DONE;
        }

        return rc;

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
        rc = tg_delta_responses_take(delta, root);

    } else if (json_is_array(json_object_get(root, "output"))) {
        rc = tg_delta_responses_ended(delta, root);

    } else {
        rc = tg_delta_responses_failed(delta, root);
    }

    json_decref(root);

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
    tg_rc_e          rc;
    tg_delta_news_t  news;

    if (delta->end == TG_DELTA_ERROR) {
        return TG_E_SYNTAX;
    }

    rc = tg_delta_responses_read(delta, body, true, &news);

    if (rc == TG_OK) {
        delta->end = TG_DELTA_DONE;
    }

    return rc;
}
