/*
 * The Responses API on top of a model that only knows chat: its request in the form
 * of chat, its response object, its stream of events. Nothing here runs anything or
 * decides what an answer says.
 */

#ifndef TG_RESPONSES_H
#define TG_RESPONSES_H

#include "tg.h"
#include "tg_buf.h"
#include "tg_delta.h"
#include "tg_ids.h"
#include "tg_scan.h"
#include "tg_walk.h"


#define TG_RESPONSES_PARTS_MAX   4096                /* of one item */
#define TG_RESPONSES_TOOLS_MAX   (1024 * 1024)       /* bytes of "tools" */
#define TG_RESPONSES_ECHO_MAX    (1024 * 1024)       /* bytes of any other field that the
                                                        response shows again */
#define TG_RESPONSES_ITEMS_MAX   1024                /* of one output */
#define TG_RESPONSES_TEXT_MAX    (6 * TG_DELTA_MAX_CONTENT)   /* of a part, escaped */
#define TG_RESPONSES_OUTPUT_MAX  (256 * 1024 * 1024) /* of all events not yet taken */
#define TG_RESPONSES_ITEM_ID_MAX (TG_ID_MAX_LEN + 8)
#define TG_RESPONSES_PARAM_MAX   64

/* The label under which calls that run here are shown, as those of a server. */
#define TG_RESPONSES_SERVER      "toolgate"

/* What is wrong with a request. */
typedef struct {
    const char  *code;          /* of tg_error.h; NULL: nothing */
    const char  *message;       /* NULL: the code's own */
    char         param[TG_RESPONSES_PARAM_MAX];
} tg_responses_fault_t;

/* Takes a piece of the output; data lives during the call. Not TG_OK ends the work
 * with that value. */
typedef tg_rc_e (*tg_responses_add_pt)(void *ctx, const char *data, size_t len);


/*
 * The request in the form of chat. Strings, schemas and arguments are copied as the
 * bytes that they are; only what is around them is written new.
 */

typedef enum {
    TG_RESPONSES_AT_START = 0,
    TG_RESPONSES_AT_ITEM,        /* or behind the last one */
    TG_RESPONSES_AT_FIELDS,
    TG_RESPONSES_AT_END
} tg_responses_phase_e;

typedef enum {
    TG_RESPONSES_CLOSED = 0,
    TG_RESPONSES_IN_ASSISTANT,   /* calls may still be added to the message */
    TG_RESPONSES_IN_CALLS
} tg_responses_open_e;

typedef struct {
    const tg_scan_t       *scan;
    const char            *body;
    tg_responses_add_pt    add;
    void                  *ctx;
    tg_str_t               history;      /* of the caller, or empty: messages that come
                                            between the instructions and the input,
                                            with commas between them */
    bool                   agent;        /* of the caller: an agent answers. It has tools
                                            of its own, and "metadata" is kept, which
                                            many chat models refuse */
    tg_str_t               input;        /* of the caller, or empty: what is taken for
                                            the body's own */
    tg_rc_e                rc;           /* of the first piece that was not taken */
    size_t                 written;      /* bytes given to add */
    size_t                 input_start;  /* where the input's messages lie in them */
    size_t                 input_end;
    tg_responses_fault_t   fault;
    tg_responses_phase_e   phase;
    tg_responses_open_e    open;
    tg_walk_t              items;
    size_t                 item;         /* position of the one under way */
    size_t                 messages;     /* written, those of history aside */
} tg_responses_request_t;

/* scan: finished, of an object; it and body live until the end, as ctx does. */
void tg_responses_request_init(tg_responses_request_t *t, const tg_scan_t *scan,
    const char *body, tg_responses_add_pt add, void *ctx);

/* Works for about `budget` bytes of the body: TG_AGAIN, TG_OK when the request is
 * whole, TG_E_INVALID with t->fault, or what add has returned. */
tg_rc_e tg_responses_request_step(tg_responses_request_t *t, size_t budget);


/* Appends the messages of an input that was taken before, with commas between them. */
tg_rc_e tg_responses_messages(tg_str_t input, tg_buf_t *out);

/* Whether an input begins with the answer to a call, so that it means nothing without
 * what was before it. */
bool tg_responses_answers(tg_str_t input);

/* Appends {"tool_outputs":[{"call_id","output"},…]} of an input that has nothing but
 * outputs of calls; *count is how many. TG_E_INVALID: it has something else, too. */
tg_rc_e tg_responses_tool_outputs(tg_str_t input, tg_buf_t *out, size_t *count);

/* What a person has decided, as an item of an input says it. id and reason are without
 * quotes, escapes as they are. */
typedef struct {
    tg_str_t  id;
    bool      approve;
    tg_str_t  reason;
} tg_responses_decision_t;

/* Finds the decisions of an input: at most max, *count is how many there are in all.
 * TG_E_INVALID with *fault: one is not whole. */
tg_rc_e tg_responses_decisions(tg_str_t input, tg_responses_decision_t *decisions,
    size_t max, size_t *count, tg_responses_fault_t *fault);

/*
 * Items that an input names by their id instead of having them. Ids of ours lead to
 * the response that they are of.
 */

#define TG_RESPONSES_REFERENCES_MAX  256     /* of one input */

/* Told of an id; false: no more of them, please. */
typedef bool (*tg_responses_named_pt)(void *ctx, tg_str_t id);

/* Finds the item; empty: it is not there. */
typedef tg_str_t (*tg_responses_find_pt)(void *ctx, tg_str_t id);

/* Calls named for each, in their order. TG_E_LIMIT: it wanted no more. */
tg_rc_e tg_responses_references(tg_str_t input, tg_responses_named_pt named,
    void *ctx);

/* Appends the input with all of them in their places; a request for an approval is left
 * out. TG_E_INVALID with *fault: one is not there. */
tg_rc_e tg_responses_resolve(tg_str_t input, tg_responses_find_pt find, void *ctx,
    tg_buf_t *out, tg_responses_fault_t *fault);

/* The id of the response that an item is of; false: no id of ours. */
bool tg_responses_response_of(tg_str_t id, char response[TG_ID_MAX_LEN]);

/* The item of this id in the output of a response object; empty: there is none. */
tg_str_t tg_responses_output_item(tg_str_t object, tg_str_t id);

/* The value of a member of an object as it is written; empty: there is none. */
tg_str_t tg_responses_member(tg_str_t object, const char *name);

/* A page of the items of an input. */
typedef struct {
    const char  *id;            /* of the response */
    tg_str_t     after;         /* id of an item, or empty */
    size_t       limit;
    bool         newest;        /* first; else in the order of the input */
} tg_responses_page_t;

/* Appends the page as the API shows it, each item with an id and messages in parts.
 * TG_E_INVALID: there is no item `after`. */
tg_rc_e tg_responses_input_items(tg_str_t input, const tg_responses_page_t *page,
    tg_buf_t *out);


/*
 * What every snapshot of the response shows again of the request, defaults filled in:
 * members with a comma before each. TG_E_INVALID with *fault for a wrong type.
 */
tg_rc_e tg_responses_echo(const tg_scan_t *scan, const char *body, bool store,
    tg_buf_t *out, tg_responses_fault_t *fault);


/*
 * The answer: items that are added and done in turn, events that say so, and the
 * whole object. Events are added to `out`, which the owner empties; without
 * `stream` none are.
 */

typedef struct {
    char      id[TG_RESPONSES_ITEM_ID_MAX];
    tg_buf_t  json;             /* once it is done */
    tg_buf_t  members;          /* of a call under way: those that stay */
    tg_buf_t  arguments;        /* … and its arguments as a JSON string */
} tg_responses_item_t;

typedef enum {
    TG_RESPONSES_NONE = 0,
    TG_RESPONSES_TEXT,
    TG_RESPONSES_REFUSAL,
    TG_RESPONSES_REASONING
} tg_responses_part_e;

typedef struct {
    bool                   stream;
    char                   id[TG_ID_MAX_LEN];
    tg_str_t               model;
    tg_str_t               echo;
    int64_t                created_at;
    int64_t                sequence;
    int64_t                after;        /* events up to this number are not added */
    bool                   opened;       /* created and in_progress are out */
    bool                   ended;
    tg_buf_t               out;
    tg_responses_item_t   *items;
    size_t                 item_count;
    size_t                 item_cap;

    /* of the message or reasoning under way, which is the last item */
    tg_responses_part_e    part;         /* NONE: none is under way */
    bool                   in_message;
    tg_buf_t               parts;        /* those that are done */
    size_t                 part_index;
    tg_buf_t               text;         /* of the part, escaped */
} tg_responses_t;

/* Why and how it ended; everything is optional. */
typedef struct {
    const char              *live;         /* it has not ended: "queued", … */
    const char              *incomplete;   /* reason: the status is "incomplete" */
    const char              *error_code;   /* the status is "failed" */
    bool                     cancelled;    /* the status is "cancelled" */
    tg_str_t                 error_message;
    const tg_delta_usage_t  *usage;
    int64_t                  now;
} tg_responses_end_t;

/* id: "resp_…". model and echo (of tg_responses_echo) live as long as r. model may be
 * empty: echo has it then. */
void tg_responses_init(tg_responses_t *r, const char *id, tg_str_t model,
    tg_str_t echo, int64_t created_at, bool stream);
void tg_responses_free(tg_responses_t *r);

/*
 * Begins again where an object stands, with its items that are done; its id is that of
 * the object. echo gets what r repeats. TG_E_SYNTAX: it is no response object.
 */
tg_rc_e tg_responses_restore(tg_responses_t *r, tg_str_t object, tg_buf_t *echo,
    bool stream);

/* Leaves out the items that there are: they will be shown again. */
void tg_responses_forget(tg_responses_t *r);

/* Each may be called until the end; TG_E_LIMIT and TG_E_NOMEM are final. The first
 * of them says that the response was created. */
tg_rc_e tg_responses_open(tg_responses_t *r);
tg_rc_e tg_responses_text(tg_responses_t *r, tg_str_t text);
tg_rc_e tg_responses_refusal(tg_responses_t *r, tg_str_t text);
tg_rc_e tg_responses_reasoning(tg_responses_t *r, tg_str_t text);

/* Ends the item under way, so that what follows is another one. */
tg_rc_e tg_responses_break(tg_responses_t *r);

/* A call that the server runs; *index is for its end, which comes in any order. */
tg_rc_e tg_responses_call_begins(tg_responses_t *r, tg_str_t name,
    tg_str_t arguments, tg_str_t approval_id, size_t *index);
/* error empty: it succeeded. output is what the model was told. */
tg_rc_e tg_responses_call_ended(tg_responses_t *r, size_t index, tg_str_t output,
    tg_str_t error);

/* A call that the caller is to run. */
tg_rc_e tg_responses_function_call(tg_responses_t *r, tg_str_t call_id,
    tg_str_t name, tg_str_t arguments);

/* A call that somebody has to approve first; id is the approval's. */
tg_rc_e tg_responses_approval_request(tg_responses_t *r, tg_str_t id, tg_str_t name,
    tg_str_t arguments);

/* The terminal event, and nothing after it. Calls that have not ended count as
 * cancelled. */
tg_rc_e tg_responses_end(tg_responses_t *r, const tg_responses_end_t *end);

/* Appends the whole object as it is now; end NULL: it is in progress. */
tg_rc_e tg_responses_object(tg_responses_t *r, const tg_responses_end_t *end,
    tg_buf_t *out);

#endif /* TG_RESPONSES_H */
