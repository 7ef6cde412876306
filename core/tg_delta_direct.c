/*
 * Reads the chunks that come with each token without building a tree. Whatever is
 * not a shape that it knows, or not valid JSON, is left to the tree. It must never
 * read a chunk in another way than the tree would.
 */

#include "tg_delta_int.h"
#include "tg_pull.h"


/* A string or null, where null leaves *value as it is. */
static bool
tg_delta_text(tg_pull_t *in, tg_str_t *value, bool *present)
{
    if (tg_pull_literal(in, "null")) {
        return true;
    }

    *present = true;

    return tg_pull_string(in, value);
}


static bool
tg_delta_index(tg_pull_t *in, int64_t *index, bool *present)
{
    char     *start;
    int64_t   n;

    if (tg_pull_literal(in, "null")) {
        return true;
    }

    start = in->p;

    if (!tg_pull_number(in)) {
        return false;
    }

    for (n = 0; start < in->p; start++) {
        if (*start < '0' || *start > '9') {
            return false;
        }
        n = n * 10 + (*start - '0');
    }

    *index = n;
    *present = true;

    return true;
}


/* True the first time; a key that comes twice is the tree's matter. */
static bool
tg_delta_once(unsigned *seen, unsigned bit)
{
    bool  fresh;

    fresh = (*seen & bit) == 0;
    *seen |= bit;

    return fresh;
}


static bool
tg_delta_function(tg_pull_t *in, tg_delta_piece_t *piece)
{
    bool             first, ok, ignored;
    unsigned         seen;
    tg_str_t         key;
    tg_pull_next_e  next;

    if (*in->p != '{') {
        return tg_pull_literal(in, "null");
    }

    in->p++;
    seen = 0;

    for (first = true; ; first = false) {
        next = tg_pull_member(in, first, &key);
        if (next != TG_PULL_MEMBER) {
            return next == TG_PULL_OVER;
        }

        if (tg_str_eq(key, tg_str("arguments"))) {
            ok = tg_delta_once(&seen, 1) && tg_delta_text(in, &piece->arguments, &ignored);

        } else if (tg_str_eq(key, tg_str("name"))) {
            ok = tg_delta_once(&seen, 2) && tg_delta_text(in, &piece->name, &ignored);

        } else {
            ok = tg_pull_skip(in);
        }

        if (!ok) {
            return false;
        }
    }
}


static bool
tg_delta_piece(tg_pull_t *in, tg_delta_piece_t *piece)
{
    bool             first, ok, ignored;
    unsigned         seen;
    tg_str_t         key;
    tg_pull_next_e  next;

    if (*in->p != '{') {
        return false;
    }

    in->p++;
    seen = 0;
    memset(piece, 0, sizeof(*piece));

    for (first = true; ; first = false) {
        next = tg_pull_member(in, first, &key);
        if (next != TG_PULL_MEMBER) {
            return next == TG_PULL_OVER;
        }

        if (tg_str_eq(key, tg_str("index"))) {
            ok = tg_delta_once(&seen, 1)
                 && tg_delta_index(in, &piece->index, &piece->has_index);

        } else if (tg_str_eq(key, tg_str("id"))) {
            ok = tg_delta_once(&seen, 2) && tg_delta_text(in, &piece->id, &ignored);

        } else if (tg_str_eq(key, tg_str("function"))) {
            ok = tg_delta_once(&seen, 4) && tg_delta_function(in, piece);

        } else {
            ok = tg_pull_skip(in);
        }

        if (!ok) {
            return false;
        }
    }
}


static bool
tg_delta_pieces(tg_pull_t *in, tg_delta_chunk_t *chunk)
{
    tg_pull_next_e  next;

    if (*in->p != '[') {
        return tg_pull_literal(in, "null");
    }

    in->p++;

    for ( ;; ) {
        next = tg_pull_element(in, chunk->piece_count == 0);
        if (next != TG_PULL_MEMBER) {
            return next == TG_PULL_OVER;
        }

        if (chunk->piece_count == TG_DELTA_MAX_CALLS
            || !tg_delta_piece(in, &chunk->pieces[chunk->piece_count]))
        {
            return false;
        }

        chunk->piece_count++;
    }
}


static bool
tg_delta_delta(tg_pull_t *in, tg_delta_chunk_t *chunk)
{
    bool             first, ok, ignored;
    unsigned         seen;
    tg_str_t         key, other;
    tg_pull_next_e  next;

    if (*in->p != '{') {
        return false;
    }

    in->p++;
    seen = 0;
    other = tg_null_str;

    for (first = true; ; first = false) {
        next = tg_pull_member(in, first, &key);
        if (next != TG_PULL_MEMBER) {
            break;
        }

        if (tg_str_eq(key, tg_str("content"))) {
            ok = tg_delta_once(&seen, 1)
                 && tg_delta_text(in, &chunk->content, &chunk->has_content);

        } else if (tg_str_eq(key, tg_str("tool_calls"))) {
            ok = tg_delta_once(&seen, 2) && tg_delta_pieces(in, chunk);

        } else if (tg_str_eq(key, tg_str("refusal"))) {
            ok = tg_delta_once(&seen, 4)
                 && tg_delta_text(in, &chunk->refusal, &chunk->has_refusal);

        } else if (tg_str_eq(key, tg_str("reasoning_content"))) {
            ok = tg_delta_once(&seen, 8)
                 && tg_delta_text(in, &chunk->reasoning, &ignored);

        } else if (tg_str_eq(key, tg_str("reasoning"))) {
            ok = tg_delta_once(&seen, 16) && tg_delta_text(in, &other, &ignored);

        } else if (tg_str_eq(key, tg_str("function_call"))) {
            ok = tg_pull_literal(in, "null");

        } else {
            ok = tg_pull_skip(in);
        }

        if (!ok) {
            return false;
        }
    }

    if (chunk->reasoning.len == 0) {
        chunk->reasoning = other;
    }

    return next == TG_PULL_OVER;
}


static bool
tg_delta_choice(tg_pull_t *in, tg_delta_chunk_t *chunk)
{
    bool             first, ok, ignored;
    int64_t          index;
    unsigned         seen;
    tg_str_t         key;
    tg_pull_next_e  next;

    if (*in->p != '{') {
        return false;
    }

    in->p++;
    seen = 0;
    index = 0;

    for (first = true; ; first = false) {
        next = tg_pull_member(in, first, &key);
        if (next != TG_PULL_MEMBER) {
            /* without a delta a message may count */
            return next == TG_PULL_OVER && index == 0 && (seen & 1);
        }

        if (tg_str_eq(key, tg_str("delta"))) {
            ok = tg_delta_once(&seen, 1) && tg_delta_delta(in, chunk);

        } else if (tg_str_eq(key, tg_str("finish_reason"))) {
            ok = tg_delta_once(&seen, 2)
                 && tg_delta_text(in, &chunk->finish_reason, &ignored);

        } else if (tg_str_eq(key, tg_str("index"))) {
            ok = tg_delta_once(&seen, 4) && tg_delta_index(in, &index, &ignored);

        } else if (tg_str_eq(key, tg_str("usage"))) {
            ok = tg_pull_literal(in, "null");

        } else {
            ok = tg_pull_skip(in);
        }

        if (!ok) {
            return false;
        }
    }
}


/* One choice and no more; none at all is the tree's matter. */
static bool
tg_delta_choices(tg_pull_t *in, tg_delta_chunk_t *chunk)
{
    if (*in->p != '[') {
        return false;
    }

    in->p++;
    tg_pull_blanks(in);

    return tg_delta_choice(in, chunk)
           && tg_pull_element(in, false) == TG_PULL_OVER;
}


static bool
tg_delta_root(tg_pull_t *in, tg_delta_chunk_t *chunk)
{
    bool             first, ok;
    unsigned         seen;
    tg_str_t         key, object;
    tg_pull_next_e  next;

    tg_pull_blanks(in);
    if (*in->p != '{') {
        return false;
    }

    in->p++;
    seen = 0;

    for (first = true; ; first = false) {
        next = tg_pull_member(in, first, &key);
        if (next != TG_PULL_MEMBER) {
            break;
        }

        if (tg_str_eq(key, tg_str("choices"))) {
            ok = tg_delta_once(&seen, 1) && tg_delta_choices(in, chunk);

        } else if (tg_str_eq(key, tg_str("error")) || tg_str_eq(key, tg_str("usage"))) {
            ok = tg_pull_literal(in, "null");

        } else if (tg_str_eq(key, tg_str("object"))) {
            ok = tg_pull_string(in, &object) && !tg_str_eq(object, tg_str("error"));

        } else {
            ok = tg_pull_skip(in);
        }

        if (!ok) {
            return false;
        }
    }

    tg_pull_blanks(in);

    return next == TG_PULL_OVER && (seen & 1) && in->p == in->end;
}


tg_rc_e
tg_delta_read_direct(tg_str_t text, tg_buf_t *scratch, tg_delta_chunk_t *chunk)
{
    tg_pull_t  in;

    tg_delta_chunk_clear(chunk);

    if (text.len > TG_DELTA_DIRECT_MAX) {
        return TG_AGAIN;
    }

    tg_buf_reset(scratch);
    tg_buf_str(scratch, text);
    if (tg_buf_char(scratch, '\0') != TG_OK) {
        return scratch->error;
    }

    in.p = scratch->data;
    in.end = scratch->data + text.len;
    in.depth = 0;
    in.escaped = false;

    return tg_delta_root(&in, chunk) ? TG_OK : TG_AGAIN;
}
