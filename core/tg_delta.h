/*
 * Folds the chunks of a streamed chat completion, or the events of a streamed
 * response, into one message with its tool calls. It is tolerant where vendors differ (missing or null index, ids and
 * names that repeat, come late or empty, calls in one chunk) and strict where
 * guessing would run a wrong call: a call is only ready when the turn ended with
 * a finish reason and its arguments are whole JSON.
 */

#ifndef TG_DELTA_H
#define TG_DELTA_H

#include "tg.h"
#include "tg_buf.h"


#define TG_DELTA_MAX_CALLS      64                 /* of one turn */
#define TG_DELTA_MAX_CONTENT    (8 * 1024 * 1024)
#define TG_DELTA_MAX_ARGUMENTS  (1024 * 1024)      /* of one call */
#define TG_DELTA_MAX_NAME       128
#define TG_DELTA_MAX_ID         512
#define TG_DELTA_ERROR_CHARS    500                /* of an in-band error's message */
#define TG_DELTA_DIRECT_MAX     (64 * 1024)        /* longer events are read as a tree */

typedef enum {
    TG_DELTA_OPEN = 0,     /* chunks may come */
    TG_DELTA_DONE,         /* [DONE] was read, or the response's last event */
    TG_DELTA_EOF,          /* the stream ended without [DONE] */
    TG_DELTA_ERROR         /* an error object, a chunk that is no JSON object, or a
                              bound that was passed: the turn can never be whole */
} tg_delta_end_e;

typedef struct {
    tg_buf_t  id;          /* the model's own id, may be empty or repeat */
    tg_buf_t  name;
    tg_buf_t  arguments;   /* JSON text as received, "" when none came */
    bool      has_index;
    int64_t   index;       /* as the model sent it */
    tg_buf_t  item;        /* of a response: the id of its output item */
    bool      closed;      /* of a response: all of it came */
} tg_delta_call_t;

typedef struct {
    bool      present;
    int64_t   prompt_tokens;
    int64_t   completion_tokens;
    int64_t   total_tokens;
    int64_t   cached_tokens;       /* prompt_tokens_details.cached_tokens, 0 */
    int64_t   reasoning_tokens;    /* completion_tokens_details.reasoning_tokens */
} tg_delta_usage_t;

/* Where in a response a text came from. */
typedef struct {
    bool     known;
    int64_t  item;
    int64_t  part;
} tg_delta_place_t;

typedef struct {
    tg_buf_t          content;
    tg_buf_t          refusal;
    tg_buf_t          reasoning;         /* reasoning_content or reasoning */
    bool              has_content;       /* a string came, maybe an empty one */
    bool              has_refusal;
    tg_delta_call_t  *calls;
    size_t            call_count;
    size_t            call_cap;
    char              finish_reason[32]; /* "" until one came */
    tg_delta_usage_t  usage;
    tg_delta_end_e    end;
    tg_buf_t          error;             /* message of an in-band error, bounded */
    bool              legacy_function;   /* the call came as function_call */
    tg_buf_t          scratch;           /* the event under way, strings decoded */
    tg_delta_place_t  last_text;         /* of a response */
    tg_delta_place_t  last_reasoning;
} tg_delta_t;

/* What one event added to what a reader would show. Strings live until the next
 * feed. Text after a finish reason is not reported and not kept. */
typedef struct {
    tg_str_t  content;
    tg_str_t  refusal;
    tg_str_t  reasoning;
    bool      calls_changed;
    bool      finished;        /* this event brought the finish reason */
    bool      done;            /* this event was [DONE] */
} tg_delta_news_t;


void tg_delta_init(tg_delta_t *delta);
void tg_delta_free(tg_delta_t *delta);

/*
 * Takes the data of one SSE event. TG_OK; TG_E_SYNTAX when it is no JSON object
 * (not [DONE] either) or an error object; TG_E_LIMIT over a bound; TG_E_NOMEM.
 * After a failure delta->end is TG_DELTA_ERROR, delta->error says why and every
 * call fails. Blank data is passed over. Tool calls and text that come after the
 * finish reason are dropped; usage is still taken. Nothing is taken after [DONE].
 */
tg_rc_e tg_delta_event(tg_delta_t *delta, tg_str_t data, tg_delta_news_t *news);

/* Takes a whole non-stream chat.completion body instead; end is then DONE. Each
 * element of tool_calls is a call of its own, whatever its id. arguments given as
 * an object are kept as JSON text; content parts are joined. */
tg_rc_e tg_delta_whole(tg_delta_t *delta, tg_str_t body);

/*
 * The same for a model that speaks the Responses API: one event of its stream, by the
 * "type" in its data, and a whole response object. Each output item of text is a
 * paragraph of the content; a call's index is its place in the output. The finish
 * reason is the one that chat has for it. Items and events that are not known are
 * passed over: vendors add to them.
 */
tg_rc_e tg_delta_responses_event(tg_delta_t *delta, tg_str_t data,
    tg_delta_news_t *news);
tg_rc_e tg_delta_responses_whole(tg_delta_t *delta, tg_str_t body);

/* Says that the stream has ended; sets TG_DELTA_EOF unless it ended before. */
void tg_delta_close(tg_delta_t *delta);

/* True when the turn is whole: a finish reason came and no error did. Only then
 * may a call run. */
bool tg_delta_complete(const tg_delta_t *delta);

/* True when the call has a name and its arguments are one JSON object ("" counts
 * as {}) within the bounds. A call that is not ready must be answered with
 * invalid_arguments or tool_not_available, never run. */
bool tg_delta_call_ready(const tg_delta_call_t *call);

#endif /* TG_DELTA_H */
