/*
 * Reads a chunk, or a whole chat.completion, from a JSON tree: the tolerant and
 * complete reader. It knows the fields and the forms in which vendors send them,
 * but nothing of what came before.
 */

#include "tg_delta_int.h"


#define TG_DELTA_MAX_TOKENS  1000000000000    /* more is no count of tokens */


static const tg_delta_usage_names_t  tg_delta_chat_usage = {
    "prompt_tokens", "completion_tokens", "prompt_tokens_details",
    "completion_tokens_details"
};


void
tg_delta_chunk_clear(tg_delta_chunk_t *chunk)
{
    memset(chunk, 0, offsetof(tg_delta_chunk_t, pieces));
}


tg_str_t
tg_delta_get(const json_t *object, const char *key)
{
    const json_t  *value;

    value = json_object_get(object, key);

    if (!json_is_string(value)) {
        return tg_null_str;
    }

    return (tg_str_t) { json_string_length(value), json_string_value(value) };
}


bool
tg_delta_get_index(const json_t *object, const char *key, int64_t *index)
{
    double         real;
    const json_t  *value;

    value = json_object_get(object, key);

    if (json_is_integer(value)) {
        *index = json_integer_value(value);
        return true;
    }

    /* 0.0, or all numbers of a chunk with one that fits no int64 */
    if (json_is_real(value)) {
        real = json_real_value(value);

        if (real > -(double) TG_DELTA_MAX_TOKENS && real < (double) TG_DELTA_MAX_TOKENS) {
            *index = (int64_t) real;
            return true;
        }
    }

    return false;
}


static int64_t
tg_delta_tokens(const json_t *object, const char *key, bool *present)
{
    double         n;
    const json_t  *value;

    value = json_object_get(object, key);

    if (!json_is_number(value)) {
        return 0;
    }

    if (present != NULL) {
        *present = true;
    }

    n = json_number_value(value);

    if (!(n > 0)) {
        return 0;
    }

    return n < (double) TG_DELTA_MAX_TOKENS ? (int64_t) n : TG_DELTA_MAX_TOKENS;
}


void
tg_delta_read_usage(const json_t *from, const tg_delta_usage_names_t *names,
    tg_delta_usage_t *usage)
{
    bool              has_total;
    tg_delta_usage_t  u;

    if (!json_is_object(from)) {
        return;
    }

    memset(&u, 0, sizeof(u));
    has_total = false;

    u.prompt_tokens = tg_delta_tokens(from, names->prompt, &u.present);
    u.completion_tokens = tg_delta_tokens(from, names->completion, &u.present);
    u.total_tokens = tg_delta_tokens(from, "total_tokens", &has_total);
    u.cached_tokens = tg_delta_tokens(json_object_get(from, names->prompt_details),
                                      "cached_tokens", NULL);
    u.reasoning_tokens =
        tg_delta_tokens(json_object_get(from, names->completion_details),
                        "reasoning_tokens", NULL);

    if (!has_total) {
        u.total_tokens = u.prompt_tokens + u.completion_tokens;
    }

    if (u.present || has_total) {
        u.present = true;
        *usage = u;
    }
}


/* An error in place of a chunk: under "error", or the whole object is one. */
static void
tg_delta_read_error(const json_t *root, tg_delta_chunk_t *chunk)
{
    const json_t  *error;

    error = json_object_get(root, "error");

    if (json_is_object(error)) {
        chunk->has_error = true;
        chunk->error = tg_delta_get(error, "message");

        if (chunk->error.len == 0) {
            chunk->error = tg_delta_get(error, "code");
        }

    } else if (json_is_string(error)) {
        chunk->has_error = json_string_length(error) > 0;
        chunk->error = tg_delta_get(root, "error");

    } else if (json_is_array(error) || json_is_true(error)
               || json_number_value(error) != 0)
    {
        chunk->has_error = true;
        chunk->error = tg_delta_get(root, "message");

    } else if (tg_str_eq(tg_delta_get(root, "object"), tg_str("error"))
               || (json_object_get(root, "choices") == NULL
                   && tg_delta_get(root, "message").len > 0
                   && (json_object_get(root, "code") != NULL
                       || json_object_get(root, "error_code") != NULL)))
    {
        chunk->has_error = true;
        chunk->error = tg_delta_get(root, "message");
    }
}


static void
tg_delta_read_function(const json_t *function, tg_delta_piece_t *piece)
{
    const json_t  *arguments;

    piece->name = tg_delta_get(function, "name");
    arguments = json_object_get(function, "arguments");

    if (json_is_string(arguments)) {
        piece->arguments = tg_delta_get(function, "arguments");

    } else if (arguments != NULL && !json_is_null(arguments)) {
        piece->arguments_value = arguments;
    }
}


static tg_rc_e
tg_delta_read_piece(const json_t *from, tg_delta_chunk_t *chunk)
{
    tg_delta_piece_t  *piece;

    if (!json_is_object(from)) {
        return TG_OK;
    }

    if (chunk->piece_count == TG_DELTA_MAX_CALLS) {
        return TG_E_LIMIT;
    }

    piece = &chunk->pieces[chunk->piece_count++];
    memset(piece, 0, sizeof(*piece));

    piece->has_index = tg_delta_get_index(from, "index", &piece->index);
    piece->id = tg_delta_get(from, "id");
    tg_delta_read_function(json_object_get(from, "function"), piece);

    return TG_OK;
}


/* Reads a delta or a message: they differ only in how calls are told apart. */
static tg_rc_e
tg_delta_read_message(const json_t *message, tg_delta_chunk_t *chunk)
{
    size_t         i;
    tg_rc_e        rc;
    const json_t  *content, *calls, *function;

    content = json_object_get(message, "content");

    if (json_is_string(content)) {
        chunk->has_content = true;
        chunk->content = tg_delta_get(message, "content");

    } else if (json_is_array(content)) {
        chunk->content_parts = content;
    }

    chunk->has_refusal = json_is_string(json_object_get(message, "refusal"));
    chunk->refusal = tg_delta_get(message, "refusal");

    chunk->reasoning = tg_delta_get(message, "reasoning_content");
    if (chunk->reasoning.len == 0) {
        chunk->reasoning = tg_delta_get(message, "reasoning");
    }

    function = json_object_get(message, "function_call");

    if (json_is_object(function)) {
        chunk->has_legacy = true;
        memset(&chunk->legacy, 0, sizeof(chunk->legacy));
        tg_delta_read_function(function, &chunk->legacy);
    }

    calls = json_object_get(message, "tool_calls");

    if (json_is_object(calls)) {
        return tg_delta_read_piece(calls, chunk);
    }

    for (i = 0; i < json_array_size(calls); i++) {
        rc = tg_delta_read_piece(json_array_get(calls, i), chunk);
        if (rc != TG_OK) {
            return rc;
        }
    }

    return TG_OK;
}


/* The choice with index 0; without an index it is the first one. */
static const json_t *
tg_delta_first_choice(const json_t *root)
{
    size_t         i;
    int64_t        index;
    const json_t  *choices, *choice;

    choices = json_object_get(root, "choices");

    for (i = 0; i < json_array_size(choices); i++) {
        choice = json_array_get(choices, i);

        if (tg_delta_get_index(choice, "index", &index) ? index == 0 : i == 0) {
            return choice;
        }
    }

    return NULL;
}


json_t *
tg_delta_load(tg_str_t text, bool *rounded)
{
    json_t        *root;
    json_error_t   error;

    *rounded = false;

    /* the parser takes a raw NUL for the end of the text */
    if (text.len == 0 || memchr(text.data, '\0', text.len) != NULL) {
        return NULL;
    }

    root = json_loadb(text.data, text.len, JSON_ALLOW_NUL, &error);

    /* a number that nobody needs must not cost the turn */
    if (root == NULL && json_error_code(&error) == json_error_numeric_overflow) {
        *rounded = true;
        root = json_loadb(text.data, text.len, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL,
                          &error);
    }

    return root;
}


tg_rc_e
tg_delta_read_tree(tg_str_t text, bool whole, bool as_message, json_t **root,
    tg_delta_chunk_t *chunk)
{
    bool           rounded;
    size_t         i;
    tg_rc_e        rc;
    const json_t  *choice, *message;

    tg_delta_chunk_clear(chunk);

    *root = tg_delta_load(text, &rounded);

    if (!json_is_object(*root)) {
        return TG_E_SYNTAX;
    }

    tg_delta_read_error(*root, chunk);

    if (chunk->has_error) {
        return TG_OK;
    }

    choice = tg_delta_first_choice(*root);

    tg_delta_read_usage(json_object_get(choice, "usage"), &tg_delta_chat_usage,
                        &chunk->usage);
    tg_delta_read_usage(json_object_get(*root, "usage"), &tg_delta_chat_usage,
                        &chunk->usage);

    chunk->finish_reason = tg_delta_get(choice, "finish_reason");

    message = whole ? NULL : json_object_get(choice, "delta");

    if (!json_is_object(message) && (whole || as_message)) {
        message = json_object_get(choice, "message");
        chunk->fresh = true;
    }

    rc = tg_delta_read_message(message, chunk);

    for (i = 0; rounded && i < chunk->piece_count; i++) {
        if (chunk->pieces[i].arguments_value != NULL) {
            return TG_E_SYNTAX;
        }
    }

    if (rounded && chunk->has_legacy && chunk->legacy.arguments_value != NULL) {
        return TG_E_SYNTAX;
    }

    return rc;
}


static void
tg_delta_join(const json_t *object, const char *key, tg_buf_t *out)
{
    tg_buf_str(out, tg_delta_get(object, key));
}


void
tg_delta_join_parts(const json_t *parts, tg_delta_t *delta)
{
    size_t         i, j;
    tg_str_t       type;
    const json_t  *part, *inner;

    for (i = 0; i < json_array_size(parts); i++) {
        part = json_array_get(parts, i);

        if (json_is_string(part)) {
            tg_buf_append(&delta->content, json_string_value(part),
                          json_string_length(part));
            continue;
        }

        type = tg_delta_get(part, "type");

        if (tg_str_eq(type, tg_str("refusal"))) {
            delta->has_refusal = true;
            tg_delta_join(part, "refusal", &delta->refusal);

        } else if (tg_str_eq(type, tg_str("thinking"))) {
            inner = json_object_get(part, "thinking");
            tg_delta_join(part, "thinking", &delta->reasoning);

            for (j = 0; j < json_array_size(inner); j++) {
                tg_delta_join(json_array_get(inner, j), "text", &delta->reasoning);
            }

        } else {
            tg_delta_join(part, "text", &delta->content);
        }
    }
}
