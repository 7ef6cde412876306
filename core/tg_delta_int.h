/*
 * What the parts of tg_delta share: a chunk as plain facts. Three readers fill it,
 * one directly from the text for the shapes that come with each token, one from a
 * JSON tree for all others, one from events of the Responses API; tg_delta.c folds it
 * without knowing which.
 */

#ifndef TG_DELTA_INT_H
#define TG_DELTA_INT_H

#include <jansson.h>

#include "tg_delta.h"


/* One element of tool_calls. Strings are borrowed; empty ones count as absent. */
typedef struct {
    bool           has_index;
    int64_t        index;
    tg_str_t       id;
    tg_str_t       name;
    tg_str_t       arguments;
    const json_t  *arguments_value;    /* when they are no string; else NULL */
} tg_delta_piece_t;

typedef struct {
    bool               has_content;
    bool               has_refusal;
    bool               has_error;
    bool               has_legacy;
    bool               fresh;              /* each piece is a call of its own */
    tg_str_t           content;
    tg_str_t           refusal;
    tg_str_t           reasoning;
    tg_str_t           finish_reason;
    tg_str_t           error;
    const json_t      *content_parts;      /* when content is an array; else NULL */
    tg_delta_piece_t   legacy;             /* function_call */
    tg_delta_usage_t   usage;
    size_t             piece_count;
    tg_delta_piece_t   pieces[TG_DELTA_MAX_CALLS];
} tg_delta_chunk_t;


/* Empties a chunk, the pieces aside: piece_count says how many are valid. */
void tg_delta_chunk_clear(tg_delta_chunk_t *chunk);

/*
 * Reads a chunk of a common shape. TG_OK; TG_AGAIN when the text is anything
 * else, right or wrong: it must then be read as a tree; TG_E_NOMEM. Strings of
 * the chunk lie in scratch.
 */
tg_rc_e tg_delta_read_direct(tg_str_t text, tg_buf_t *scratch,
    tg_delta_chunk_t *chunk);

/*
 * Reads any chunk (or, when whole is true, a chat.completion). TG_OK, TG_E_SYNTAX
 * when it is no JSON object, TG_E_LIMIT. *root holds what the chunk borrows: the
 * caller drops it after the fold, whatever is returned. as_message: a message may
 * stand for a missing delta.
 */
tg_rc_e tg_delta_read_tree(tg_str_t text, bool whole, bool as_message, json_t **root,
    tg_delta_chunk_t *chunk);

/* The names that an API has for what is counted. */
typedef struct {
    const char  *prompt;
    const char  *completion;
    const char  *prompt_details;
    const char  *completion_details;
} tg_delta_usage_names_t;

/* What is wanted of a tree. A string is empty when it is absent, null or another type;
 * usage stays as it is when there is none. */
tg_str_t tg_delta_get(const json_t *object, const char *key);
bool tg_delta_get_index(const json_t *object, const char *key, int64_t *index);
void tg_delta_read_usage(const json_t *from, const tg_delta_usage_names_t *names,
    tg_delta_usage_t *usage);

/* NULL: no JSON. *rounded: the numbers are doubles, and may not be what was sent. */
json_t *tg_delta_load(tg_str_t text, bool *rounded);

/* Without blanks at either end. */
tg_str_t tg_delta_trim(tg_str_t s);

/* What was appended to a buffer since it had this length. */
tg_str_t tg_delta_since(const tg_buf_t *buf, size_t before);

/* Notes a failure, if rc is one; returns rc. */
tg_rc_e tg_delta_check(tg_delta_t *delta, tg_rc_e rc);

/* Appends the texts of an array of content parts to the three buffers. */
void tg_delta_join_parts(const json_t *parts, tg_delta_t *delta);

/* A call behind those that there are; NULL: *rc says why. */
tg_delta_call_t *tg_delta_new_call(tg_delta_t *delta, tg_rc_e *rc);

/* Adds a piece to its call: id and name once, arguments behind those that came. */
tg_rc_e tg_delta_fill_call(tg_delta_call_t *call, const tg_delta_piece_t *piece);

/* Adds what the chunk says to the message. */
tg_rc_e tg_delta_fold(tg_delta_t *delta, const tg_delta_chunk_t *chunk,
    tg_delta_news_t *news);

#endif /* TG_DELTA_INT_H */
