/*
 * Events of a run in the shapes of the KsADK actions: see tg_ksadk.h. It knows what
 * a run's events look like, and nothing of where they come from.
 */

#include <stdio.h>

#include "tg_json.h"
#include "tg_ksadk.h"


typedef enum {
    TG_KSADK_OTHER = 0,      /* of no interest to these clients */
    TG_KSADK_TEXT,
    TG_KSADK_STATUS,         /* of a run that goes on */
    TG_KSADK_CALL,
    TG_KSADK_RESULT,
    TG_KSADK_APPROVAL,
    TG_KSADK_WAITS,
    TG_KSADK_END
} tg_ksadk_kind_e;

typedef struct {
    const char       *type;
    tg_ksadk_kind_e   kind;
    const char       *status;      /* as these clients know it */
    const char       *detail;      /* what it is here; NULL: the same */
} tg_ksadk_type_t;

/* One event, taken apart. */
typedef struct {
    json_t                 *tree;
    const tg_ksadk_type_t  *type;
    tg_str_t                run;
    int64_t                 seq;         /* of its own frame */
    int64_t                 at;
} tg_ksadk_event_t;


static const tg_ksadk_type_t *tg_ksadk_type(tg_str_t name);
static tg_rc_e tg_ksadk_load(tg_str_t text, tg_ksadk_event_t *e);
static bool tg_ksadk_open(tg_ksadk_t *k, const tg_ksadk_event_t *e, int64_t seq,
    const char *type, const char *author, tg_str_t content, tg_buf_t *out);
static void tg_ksadk_close(tg_buf_t *out);
static tg_rc_e tg_ksadk_text(tg_ksadk_t *k, const tg_ksadk_event_t *e,
    tg_buf_t *out);
static void tg_ksadk_snapshot(tg_ksadk_t *k, const tg_ksadk_event_t *e,
    int64_t seq, tg_buf_t *out);
static void tg_ksadk_call(tg_ksadk_t *k, const tg_ksadk_event_t *e, tg_buf_t *out);
static void tg_ksadk_result(tg_ksadk_t *k, const tg_ksadk_event_t *e,
    tg_buf_t *out);
static void tg_ksadk_approval(tg_ksadk_t *k, const tg_ksadk_event_t *e,
    tg_buf_t *out);
static void tg_ksadk_run_status(tg_ksadk_t *k, const tg_ksadk_event_t *e,
    tg_buf_t *out);
static void tg_ksadk_parsed(tg_str_t text, tg_buf_t *out);
static void tg_ksadk_members(const json_t *tree, tg_buf_t *out);
static size_t tg_ksadk_chars(tg_str_t text);


static const tg_ksadk_type_t  tg_ksadk_types[] = {
    { "run.started", TG_KSADK_STATUS, "running", NULL },
    { "run.text_delta", TG_KSADK_TEXT, NULL, NULL },
    { "run.tool_call", TG_KSADK_CALL, NULL, NULL },
    { "run.tool_result", TG_KSADK_RESULT, NULL, NULL },
    { "run.approval_requested", TG_KSADK_APPROVAL, NULL, NULL },
    { "run.requires_action", TG_KSADK_WAITS, "interrupted", "requires_action" },
    { "run.completed", TG_KSADK_END, "completed", NULL },
    { "run.failed", TG_KSADK_END, "failed", NULL },
    { "run.cancelled", TG_KSADK_END, "cancelled", NULL },
    { "run.superseded", TG_KSADK_END, "aborted", "superseded" },
    { "run.expired", TG_KSADK_END, "failed", "expired" },
    { NULL, TG_KSADK_OTHER, NULL, NULL }
};


void
tg_ksadk_init(tg_ksadk_t *k, tg_str_t agent, tg_str_t session, tg_str_t invocation,
    int64_t after, size_t max)
{
    memset(k, 0, sizeof(*k));
    k->agent = agent;
    k->session = session;
    k->invocation = invocation;
    k->after = after;
    tg_buf_init(&k->text, max);
}


void
tg_ksadk_free(tg_ksadk_t *k)
{
    tg_buf_free(&k->text);
}


const char *
tg_ksadk_status(const char *status)
{
    size_t  i;

    if (strcmp(status, "queued") == 0) {
        return "starting";
    }

    for (i = 0; tg_ksadk_types[i].type != NULL; i++) {
        if (strcmp(status, tg_ksadk_types[i].type + sizeof("run.") - 1) == 0
            && tg_ksadk_types[i].status != NULL)
        {
            return tg_ksadk_types[i].status;
        }
    }

    return status;
}


static const tg_ksadk_type_t *
tg_ksadk_type(tg_str_t name)
{
    const tg_ksadk_type_t  *type;

    for (type = tg_ksadk_types; type->type != NULL; type++) {
        if (tg_str_eq(name, tg_str_of(type->type))) {
            break;
        }
    }

    return type;
}


tg_rc_e
tg_ksadk_event(tg_ksadk_t *k, tg_str_t event, tg_buf_t *out)
{
    tg_rc_e           rc;
    tg_ksadk_event_t  e;

    if (k->over) {
        return TG_OK;
    }

    rc = tg_ksadk_load(event, &e);
    if (rc != TG_OK) {
        return rc;
    }

    if (e.type->kind == TG_KSADK_TEXT) {
        rc = tg_ksadk_text(k, &e, out);

    } else if (e.type->kind != TG_KSADK_OTHER) {

        /* what was said before comes first, under a number of its own */

        if (strcmp(e.type->type, "run.completed") != 0 && k->shown < k->text.len) {
            tg_ksadk_snapshot(k, &e, e.seq - 1, out);
        }

        switch (e.type->kind) {

        case TG_KSADK_CALL:
            tg_ksadk_call(k, &e, out);
            break;

        case TG_KSADK_RESULT:
            tg_ksadk_result(k, &e, out);
            break;

        case TG_KSADK_APPROVAL:
            tg_ksadk_approval(k, &e, out);
            break;

        default:
            tg_ksadk_run_status(k, &e, out);
        }

        rc = out->error;
    }

    json_decref(e.tree);

    return rc;
}


static tg_rc_e
tg_ksadk_load(tg_str_t text, tg_ksadk_event_t *e)
{
    json_t           *seq, *at;
    tg_json_error_t   error;

    e->tree = tg_json_load(text, &error);

    if (e->tree == NULL) {
        return TG_E_SYNTAX;
    }

    seq = json_object_get(e->tree, "seq");
    at = json_object_get(e->tree, "at");

    if (!json_is_integer(seq) || !json_is_integer(at)) {
        json_decref(e->tree);
        return TG_E_SYNTAX;
    }

    e->type = tg_ksadk_type(tg_json_get_string(e->tree, "type"));
    e->run = tg_json_get_string(e->tree, "run");
    e->seq = TG_KSADK_SEQ_PER_EVENT * json_integer_value(seq);
    e->at = json_integer_value(at);

    return TG_OK;
}


/* Begins a frame, up to its metadata; false when the subscriber has it. */
static bool
tg_ksadk_open(tg_ksadk_t *k, const tg_ksadk_event_t *e, int64_t seq,
    const char *type, const char *author, tg_str_t content, tg_buf_t *out)
{
    if (seq <= k->after) {
        return false;
    }

    tg_buf_printf(out, "id: %lld\ndata: {\"EventId\":\"%.*s-%lld\",\"SessionId\":",
                  (long long) seq, (int) e->run.len, e->run.data, (long long) seq);
    tg_buf_json_string(out, k->session);
    tg_buf_cstr(out, ",\"InvocationId\":");
    tg_buf_json_string(out, k->invocation);
    tg_buf_cstr(out, ",\"Author\":");
    tg_buf_json_string(out, author == NULL ? k->agent : tg_str_of(author));
    tg_buf_printf(out, ",\"EventType\":\"%s\",\"Content\":", type);
    tg_buf_json_string(out, content);
    tg_buf_printf(out, ",\"Timestamp\":%lld000,\"SeqId\":%lld,\"Metadata\":"
                       "{\"run_id\":", (long long) e->at, (long long) seq);
    tg_buf_json_string(out, e->run);

    return true;
}


static void
tg_ksadk_close(tg_buf_t *out)
{
    tg_buf_cstr(out, "}}\n\n");
}


static tg_rc_e
tg_ksadk_text(tg_ksadk_t *k, const tg_ksadk_event_t *e, tg_buf_t *out)
{
    if (tg_buf_str(&k->text, tg_json_get_string(e->tree, "delta")) != TG_OK) {
        return k->text.error;
    }

    if ((k->text.len - k->shown) * TG_KSADK_SNAPSHOT_SHARE > k->text.len) {
        tg_ksadk_snapshot(k, e, e->seq, out);
    }

    return out->error;
}


static void
tg_ksadk_snapshot(tg_ksadk_t *k, const tg_ksadk_event_t *e, int64_t seq,
    tg_buf_t *out)
{
    k->shown = k->text.len;

    if (tg_ksadk_open(k, e, seq, "assistant_stream_snapshot", NULL,
                      tg_buf_get(&k->text), out))
    {
        tg_ksadk_close(out);
    }
}


static void
tg_ksadk_call(tg_ksadk_t *k, const tg_ksadk_event_t *e, tg_buf_t *out)
{
    tg_str_t  name = tg_json_get_string(e->tree, "name");

    if (!tg_ksadk_open(k, e, e->seq, "tool_call", NULL, tg_null_str, out)) {
        return;
    }

    tg_buf_cstr(out, ",\"tool_name\":");
    tg_buf_json_string(out, name);
    tg_buf_cstr(out, ",\"tool_call_id\":");
    tg_buf_json_string(out, tg_json_get_string(e->tree, "call_id"));
    tg_buf_cstr(out, ",\"tool_args\":");
    tg_ksadk_parsed(tg_json_get_string(e->tree, "arguments"), out);
    tg_buf_cstr(out, ",\"stage\":\"call\",\"event_kind\":\"tool\","
                     "\"display_title\":");
    tg_buf_json_string(out, name);
    tg_buf_cstr(out, ",\"display_summary\":\"\"");
    tg_ksadk_close(out);
}


static void
tg_ksadk_result(tg_ksadk_t *k, const tg_ksadk_event_t *e, tg_buf_t *out)
{
    json_t    *error = json_object_get(e->tree, "error");
    tg_str_t   name = tg_json_get_string(e->tree, "name"),
               call = tg_json_get_string(e->tree, "call_id"),
               content = tg_json_get_string(e->tree, "content");

    if (!tg_ksadk_open(k, e, e->seq, "tool_result", "tool", content, out)) {
        return;
    }

    tg_buf_cstr(out, ",\"tool_name\":");
    tg_buf_json_string(out, name);
    tg_buf_cstr(out, ",\"tool_call_id\":");
    tg_buf_json_string(out, call);
    tg_buf_cstr(out, ",\"tool_output\":");
    tg_ksadk_parsed(content, out);
    tg_buf_cstr(out, ",\"tool_receipt\":{\"ReceiptId\":");
    tg_buf_json_string(out, call);
    tg_buf_cstr(out, ",\"IdempotencyKey\":");
    tg_buf_json_string(out, call);
    tg_buf_cstr(out, ",\"Status\":");
    tg_buf_json_string(out, tg_json_get_string(e->tree, "status"));
    tg_buf_cstr(out, "},\"observability\":{\"tool_name\":");
    tg_buf_json_string(out, name);
    tg_buf_printf(out, ",\"output_chars\":%zu,\"truncated\":false,"
                       "\"persisted\":false,\"error_type\":",
                  tg_ksadk_chars(content));

    if (json_is_object(error)) {
        tg_buf_json_string(out, tg_json_get_string(error, "code"));

    } else {
        tg_buf_cstr(out, "null");
    }

    tg_buf_char(out, '}');
    tg_ksadk_close(out);
}


static void
tg_ksadk_approval(tg_ksadk_t *k, const tg_ksadk_event_t *e, tg_buf_t *out)
{
    if (!tg_ksadk_open(k, e, e->seq, "approval_request", NULL, tg_null_str,
                       out))
    {
        return;
    }

    tg_buf_cstr(out, ",\"interrupt_info\":");
    tg_ksadk_members(e->tree, out);
    tg_ksadk_close(out);
}


static void
tg_ksadk_run_status(tg_ksadk_t *k, const tg_ksadk_event_t *e, tg_buf_t *out)
{
    bool                    told;
    json_t                 *error = json_object_get(e->tree, "error");
    const tg_ksadk_type_t  *type = e->type;

    if (strcmp(type->type, "run.completed") == 0
        && tg_ksadk_open(k, e, e->seq - 1, "assistant_message", NULL,
                         tg_buf_get(&k->text), out))
    {
        tg_ksadk_close(out);
    }

    told = tg_ksadk_open(k, e, e->seq, "run_status", "system",
                         tg_str_of(type->status), out);

    if (told) {
        tg_buf_printf(out, ",\"status\":\"%s\",\"detail\":", type->status);

        if (json_is_object(error)) {
            tg_buf_json_string(out, tg_json_get_string(error, "code"));

        } else if (type->detail != NULL) {
            tg_buf_json_string(out, tg_str_of(type->detail));

        } else {
            tg_buf_cstr(out, "null");
        }

        if (type->kind == TG_KSADK_WAITS) {
            tg_buf_cstr(out, ",\"interrupt_info\":");
            tg_ksadk_members(e->tree, out);
        }

        tg_ksadk_close(out);
    }

    /* who has been told that it waits has come back for what follows */

    if (type->kind == TG_KSADK_END || (type->kind == TG_KSADK_WAITS && told)) {
        tg_buf_cstr(out, "data: [DONE]\n\n");
        k->over = true;
    }
}


/* JSON in a string as what it says; a string when it says nothing. */
static void
tg_ksadk_parsed(tg_str_t text, tg_buf_t *out)
{
    json_t           *tree;
    tg_json_error_t   error;

    tree = tg_json_load(text, &error);

    if (tree == NULL) {
        tg_buf_json_string(out, text);
        return;
    }

    tg_json_dump(tree, out);
    json_decref(tree);
}


/* What an event has beside that which every event has. */
static void
tg_ksadk_members(const json_t *tree, tg_buf_t *out)
{
    json_t  *copy;

    copy = json_copy((json_t *) tree);

    if (copy == NULL) {
        out->error = TG_E_NOMEM;
        return;
    }

    json_object_del(copy, "type");
    json_object_del(copy, "seq");
    json_object_del(copy, "run");
    json_object_del(copy, "at");
    tg_json_dump(copy, out);
    json_decref(copy);
}


static size_t
tg_ksadk_chars(tg_str_t text)
{
    size_t  i, chars = 0;

    for (i = 0; i < text.len; i++) {
        chars += ((unsigned char) text.data[i] & 0xc0) != 0x80;
    }

    return chars;
}
