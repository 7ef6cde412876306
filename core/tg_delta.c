/*
 * The fold of streamed chunks into one message with its tool calls: which call a
 * piece belongs to, what is set once and what is appended, when a turn is over.
 * How a chunk is read lies in tg_delta_direct.c, tg_delta_tree.c and tg_delta_responses.c.
 */

#include <stdlib.h>

#include "tg_clean.h"
#include "tg_delta_int.h"
#include "tg_json.h"


#define TG_DELTA_FIRST_CALLS  4


void
tg_delta_init(tg_delta_t *delta)
{
    memset(delta, 0, sizeof(*delta));

    tg_buf_init(&delta->content, TG_DELTA_MAX_CONTENT);
    tg_buf_init(&delta->refusal, TG_DELTA_MAX_CONTENT);
    tg_buf_init(&delta->reasoning, TG_DELTA_MAX_CONTENT);
    tg_buf_init(&delta->error, TG_DELTA_ERROR_CHARS * 4);
    tg_buf_init(&delta->scratch, TG_DELTA_DIRECT_MAX + 1);
}


void
tg_delta_free(tg_delta_t *delta)
{
    size_t  i;

    for (i = 0; i < delta->call_count; i++) {
        tg_buf_free(&delta->calls[i].id);
        tg_buf_free(&delta->calls[i].name);
        tg_buf_free(&delta->calls[i].arguments);
        tg_buf_free(&delta->calls[i].item);
    }

    free(delta->calls);
    delta->calls = NULL;
    delta->call_count = 0;
    delta->call_cap = 0;

    tg_buf_free(&delta->content);
    tg_buf_free(&delta->refusal);
    tg_buf_free(&delta->reasoning);
    tg_buf_free(&delta->error);
    tg_buf_free(&delta->scratch);
}


void
tg_delta_close(tg_delta_t *delta)
{
    if (delta->end == TG_DELTA_OPEN) {
        delta->end = TG_DELTA_EOF;
    }
}


bool
tg_delta_complete(const tg_delta_t *delta)
{
    return delta->finish_reason[0] != '\0' && delta->end != TG_DELTA_ERROR;
}


bool
tg_delta_call_ready(const tg_delta_call_t *call)
{
    bool              ready;
    json_t           *value;
    tg_json_error_t   error;

    if (call->name.len == 0 || call->name.error != TG_OK
        || call->arguments.error != TG_OK)
    {
        return false;
    }

    if (call->arguments.len == 0) {
        return true;
    }

    value = tg_json_load(tg_buf_get(&call->arguments), &error);
    ready = json_is_object(value);
    json_decref(value);

    return ready;
}


/* The turn can never be whole any more; the first reason is kept. */
static tg_rc_e
tg_delta_fail(tg_delta_t *delta, tg_rc_e rc, tg_str_t why)
{
    if (delta->end != TG_DELTA_ERROR) {
        delta->end = TG_DELTA_ERROR;

        tg_clean_value(why, TG_DELTA_ERROR_CHARS, &delta->error);

        if (delta->error.len == 0) {
            tg_buf_cstr(&delta->error, "the model reported an error");
        }
    }

    return rc;
}


tg_rc_e
tg_delta_check(tg_delta_t *delta, tg_rc_e rc)
{
    switch (rc) {

    case TG_OK:
        return TG_OK;

    case TG_E_LIMIT:
        return tg_delta_fail(delta, rc, tg_str("the answer is over a size limit"));

    case TG_E_NOMEM:
        return tg_delta_fail(delta, rc, tg_str("out of memory"));

    default:
        return tg_delta_fail(delta, rc, tg_str("a chunk is not a JSON object"));
    }
}


tg_delta_call_t *
tg_delta_new_call(tg_delta_t *delta, tg_rc_e *rc)
{
    size_t            cap;
    tg_delta_call_t  *calls;

    if (delta->call_count == TG_DELTA_MAX_CALLS) {
        *rc = TG_E_LIMIT;
        return NULL;
    }

    if (delta->call_count == delta->call_cap) {
        cap = delta->call_cap == 0 ? TG_DELTA_FIRST_CALLS : delta->call_cap * 2;

        calls = realloc(delta->calls, cap * sizeof(*calls));
        if (calls == NULL) {
            *rc = TG_E_NOMEM;
            return NULL;
        }

        delta->calls = calls;
        delta->call_cap = cap;
    }

    calls = &delta->calls[delta->call_count++];
    memset(calls, 0, sizeof(*calls));

    tg_buf_init(&calls->id, TG_DELTA_MAX_ID);
    tg_buf_init(&calls->name, TG_DELTA_MAX_NAME);
    tg_buf_init(&calls->arguments, TG_DELTA_MAX_ARGUMENTS);
    tg_buf_init(&calls->item, TG_DELTA_MAX_ID);

    return calls;
}


/* The newest call with this id, or NULL. */
static tg_delta_call_t *
tg_delta_by_id(const tg_delta_t *delta, tg_str_t id)
{
    size_t  i;

    for (i = delta->call_count; id.len > 0 && i-- > 0; ) {
        if (tg_str_eq(tg_buf_get(&delta->calls[i].id), id)) {
            return &delta->calls[i];
        }
    }

    return NULL;
}


/* A piece with an index: its slot, unless another id says that a call begins. */
static tg_delta_call_t *
tg_delta_slot_by_index(const tg_delta_t *delta, const tg_delta_piece_t *piece)
{
    size_t            i;
    tg_delta_call_t  *call, *newest;

    newest = NULL;

    for (i = delta->call_count; i-- > 0; ) {
        call = &delta->calls[i];

        if (!call->has_index || call->index != piece->index) {
            continue;
        }

        if (piece->id.len > 0 && tg_str_eq(tg_buf_get(&call->id), piece->id)) {
            return call;
        }

        if (newest == NULL) {
            newest = call;
        }
    }

    if (newest != NULL) {
        return piece->id.len > 0 && newest->id.len > 0 ? NULL : newest;
    }

    /* the call may have begun without an index */
    call = tg_delta_by_id(delta, piece->id);

    if (call == NULL && piece->id.len == 0 && piece->name.len == 0
        && delta->call_count > 0)
    {
        call = &delta->calls[delta->call_count - 1];
    }

    return call != NULL && !call->has_index ? call : NULL;
}


/* A piece without an index: its id, or what it still lacks, says where it goes. */
static tg_delta_call_t *
tg_delta_slot_by_id(const tg_delta_t *delta, const tg_delta_piece_t *piece)
{
    tg_delta_call_t  *call, *last;

    call = tg_delta_by_id(delta, piece->id);

    if (call != NULL) {
        /* the same id for another tool: two calls whose ids repeat */
        return piece->name.len > 0 && call->name.len > 0
               && !tg_str_eq(tg_buf_get(&call->name), piece->name) ? NULL : call;
    }

    if (delta->call_count == 0) {
        return NULL;
    }

    last = &delta->calls[delta->call_count - 1];

    if (piece->id.len > 0 && (last->id.len > 0 || piece->name.len > 0)) {
        return NULL;
    }

    if (piece->name.len > 0 && last->name.len > 0) {
        return NULL;
    }

    return last;
}


tg_rc_e
tg_delta_fill_call(tg_delta_call_t *call, const tg_delta_piece_t *piece)
{
    if (piece->has_index && !call->has_index) {
        call->has_index = true;
        call->index = piece->index;
    }

    /* set once: vendors repeat both with each piece */
    if (call->id.len == 0) {
        tg_buf_str(&call->id, piece->id);
    }

    if (call->name.len == 0) {
        tg_buf_str(&call->name, piece->name);
    }

    tg_buf_str(&call->arguments, piece->arguments);

    /* without its arguments the call would look like one that needs none */
    if (piece->arguments_value != NULL
        && tg_json_dump(piece->arguments_value, &call->arguments) != TG_OK)
    {
        return call->arguments.error != TG_OK ? call->arguments.error : TG_E_LIMIT;
    }

    if (call->id.error != TG_OK) {
        return call->id.error;
    }

    return call->name.error != TG_OK ? call->name.error : call->arguments.error;
}


static tg_rc_e
tg_delta_fold_piece(tg_delta_t *delta, const tg_delta_piece_t *piece, bool fresh)
{
    tg_rc_e           rc;
    tg_delta_call_t  *call;

    if (fresh) {
        call = NULL;

    } else if (piece->has_index) {
        call = tg_delta_slot_by_index(delta, piece);

    } else {
        call = tg_delta_slot_by_id(delta, piece);
    }

    if (call == NULL) {
        rc = TG_OK;
        call = tg_delta_new_call(delta, &rc);
        if (call == NULL) {
            return rc;
        }
    }

    return tg_delta_fill_call(call, piece);
}


/* function_call is one call without an id; beside tool_calls it only repeats. */
static tg_rc_e
tg_delta_fold_legacy(tg_delta_t *delta, const tg_delta_piece_t *piece)
{
    tg_rc_e  rc;

    if (delta->legacy_function) {
        return tg_delta_fill_call(&delta->calls[0], piece);
    }

    if (delta->call_count > 0) {
        return TG_OK;
    }

    rc = tg_delta_fold_piece(delta, piece, true);
    delta->legacy_function = (rc == TG_OK);

    return rc;
}


static tg_rc_e
tg_delta_fold_calls(tg_delta_t *delta, const tg_delta_chunk_t *chunk,
    tg_delta_news_t *news)
{
    size_t   i;
    tg_rc_e  rc;

    for (i = 0; i < chunk->piece_count; i++) {
        rc = tg_delta_fold_piece(delta, &chunk->pieces[i], chunk->fresh);
        if (rc != TG_OK) {
            return rc;
        }

        news->calls_changed = true;
    }

    if (!chunk->has_legacy) {
        return TG_OK;
    }

    rc = tg_delta_fold_legacy(delta, &chunk->legacy);

    if (rc == TG_OK && delta->legacy_function) {
        news->calls_changed = true;
    }

    return rc;
}


tg_str_t
tg_delta_since(const tg_buf_t *buf, size_t before)
{
    return buf->len == before ? tg_null_str
                              : (tg_str_t) { buf->len - before, buf->data + before };
}


static tg_rc_e
tg_delta_fold_text(tg_delta_t *delta, const tg_delta_chunk_t *chunk,
    tg_delta_news_t *news)
{
    size_t  content, refusal, reasoning;

    content = delta->content.len;
    refusal = delta->refusal.len;
    reasoning = delta->reasoning.len;

    tg_buf_str(&delta->content, chunk->content);
    tg_buf_str(&delta->refusal, chunk->refusal);
    tg_buf_str(&delta->reasoning, chunk->reasoning);

    if (chunk->content_parts != NULL) {
        tg_delta_join_parts(chunk->content_parts, delta);
    }

    if (chunk->has_content || chunk->content_parts != NULL) {
        delta->has_content = true;
    }

    if (chunk->has_refusal) {
        delta->has_refusal = true;
    }

    news->content = tg_delta_since(&delta->content, content);
    news->refusal = tg_delta_since(&delta->refusal, refusal);
    news->reasoning = tg_delta_since(&delta->reasoning, reasoning);

    if (delta->content.error != TG_OK) {
        return delta->content.error;
    }

    return delta->refusal.error != TG_OK ? delta->refusal.error
                                         : delta->reasoning.error;
}


tg_rc_e
tg_delta_fold(tg_delta_t *delta, const tg_delta_chunk_t *chunk, tg_delta_news_t *news)
{
    size_t   len;
    tg_rc_e  rc;

    if (chunk->has_error) {
        return tg_delta_fail(delta, TG_E_SYNTAX, chunk->error);
    }

    if (chunk->usage.present) {
        delta->usage = chunk->usage;
    }

    if (delta->finish_reason[0] != '\0') {
        return TG_OK;
    }

    rc = tg_delta_fold_text(delta, chunk, news);

    if (rc == TG_OK) {
        rc = tg_delta_fold_calls(delta, chunk, news);
    }

    if (rc != TG_OK) {
        return tg_delta_check(delta, rc);
    }

    len = chunk->finish_reason.len;

    /* some vendors spell the null of the chunks before as a word */
    if (len == 0 || tg_str_eq(chunk->finish_reason, tg_str("null"))) {
        return TG_OK;
    }

    if (len >= sizeof(delta->finish_reason)) {
        len = sizeof(delta->finish_reason) - 1;
    }

    memcpy(delta->finish_reason, chunk->finish_reason.data, len);
    delta->finish_reason[len] = '\0';
    news->finished = (delta->finish_reason[0] != '\0');

    return TG_OK;
}


tg_str_t
tg_delta_trim(tg_str_t s)
{
    while (s.len > 0 && memchr(" \t\r\n", s.data[s.len - 1], 4) != NULL) {
        s.len--;
    }

    while (s.len > 0 && memchr(" \t\r\n", s.data[0], 4) != NULL) {
        s.data++;
        s.len--;
    }

    return s;
}


static tg_rc_e
tg_delta_take_tree(tg_delta_t *delta, tg_str_t text, bool whole, tg_delta_news_t *news)
{
    bool               as_message;
    json_t            *root;
    tg_rc_e            rc;
    tg_delta_chunk_t   chunk;

    /* once anything came, a message could only repeat it */
    as_message = delta->content.len == 0 && delta->call_count == 0;

    rc = tg_delta_read_tree(text, whole, as_message, &root, &chunk);

    rc = rc == TG_OK ? tg_delta_fold(delta, &chunk, news) : tg_delta_check(delta, rc);

    json_decref(root);

    return rc;
}


tg_rc_e
tg_delta_event(tg_delta_t *delta, tg_str_t data, tg_delta_news_t *news)
{
    tg_rc_e           rc;
    tg_delta_chunk_t  chunk;

    memset(news, 0, sizeof(*news));

    if (delta->end == TG_DELTA_ERROR) {
        return TG_E_SYNTAX;
    }

    data = tg_delta_trim(data);

    if (data.len == 0 || delta->end != TG_DELTA_OPEN) {
        return TG_OK;
    }

    if (tg_str_eq(data, tg_str("[DONE]"))) {
        delta->end = TG_DELTA_DONE;
        news->done = true;
        return TG_OK;
    }

    rc = tg_delta_read_direct(data, &delta->scratch, &chunk);

    if (rc == TG_OK) {
        return tg_delta_fold(delta, &chunk, news);
    }

    return rc == TG_AGAIN ? tg_delta_take_tree(delta, data, false, news)
                          : tg_delta_check(delta, rc);
}


tg_rc_e
tg_delta_whole(tg_delta_t *delta, tg_str_t body)
{
    tg_rc_e          rc;
    tg_delta_news_t  news;

    if (delta->end == TG_DELTA_ERROR) {
        return TG_E_SYNTAX;
    }

    memset(&news, 0, sizeof(news));
    rc = tg_delta_take_tree(delta, body, true, &news);

    if (rc == TG_OK) {
        delta->end = TG_DELTA_DONE;
    }

    return rc;
}
