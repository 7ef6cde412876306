/*
 * Calls of the answer: those that the server runs, those that are handed out, and
 * those that somebody has to approve.
 */

#include <stdio.h>

#include "tg_responses_event.h"


/* Ends what is under way and makes room for the item of a call. */
static tg_rc_e
tg_responses_call_new(tg_responses_t *r, const char *prefix, tg_str_t name,
    tg_str_t arguments, tg_responses_item_t **item)
{
    tg_rc_e  rc;

    rc = tg_responses_open(r);

    if (rc == TG_OK) {
        rc = tg_responses_break(r);
    }

    if (rc == TG_OK) {
        rc = tg_responses_item_new(r, prefix);
    }

    if (rc != TG_OK) {
        return rc;
    }

    *item = &r->items[r->item_count - 1];

    tg_buf_cstr(&(*item)->members, ",\"name\":");
    tg_buf_json_string(&(*item)->members, name);

    return tg_buf_json_string(&(*item)->arguments, arguments);
}


/* What is the same in all states of a call; arguments have their quotes. */
static void
tg_responses_call_json(const tg_responses_item_t *item, const char *type,
    const char *status, tg_str_t arguments, tg_buf_t *out)
{
    tg_buf_printf(out, "{\"type\":\"%s\",\"id\":\"%s\"", type, item->id);

    if (status) {
        tg_buf_printf(out, ",\"status\":\"%s\"", status);
    }

    tg_buf_str(out, tg_buf_get(&item->members));
    tg_buf_cstr(out, ",\"arguments\":");
    tg_buf_str(out, arguments);
}


static void
tg_responses_call_added(tg_responses_t *r, const char *type, const char *rest)
{
    size_t  index;

    index = r->item_count - 1;

    if (tg_responses_event(r, "response.output_item.added")) {
        tg_buf_printf(&r->out, ",\"output_index\":%zu,\"item\":", index);
        tg_responses_call_json(&r->items[index], type, "in_progress",
                               tg_str("\"\""), &r->out);
        tg_buf_cstr(&r->out, rest);
        tg_buf_char(&r->out, '}');
        tg_responses_event_end(r);
    }
}


/* The arguments, whole: a call that may be cut is none. */
static void
tg_responses_call_arguments(tg_responses_t *r, const char *delta, const char *done)
{
    size_t  index;

    index = r->item_count - 1;

    if (tg_responses_event(r, delta)) {
        tg_responses_place(r, index);
        tg_buf_cstr(&r->out, ",\"delta\":");
        tg_buf_str(&r->out, tg_buf_get(&r->items[index].arguments));
        tg_responses_event_end(r);
    }

    if (tg_responses_event(r, done)) {
        tg_responses_place(r, index);
        tg_buf_cstr(&r->out, ",\"arguments\":");
        tg_buf_str(&r->out, tg_buf_get(&r->items[index].arguments));
        tg_responses_event_end(r);
    }
}


static void
tg_responses_call_event(tg_responses_t *r, const char *type, size_t index)
{
    if (tg_responses_event(r, type)) {
        tg_responses_place(r, index);
        tg_responses_event_end(r);
    }
}


static void
tg_responses_call_done(tg_responses_t *r, size_t index)
{
    tg_responses_item_t  *item;

    item = &r->items[index];

    tg_responses_item_event(r, "response.output_item.done", index,
                            tg_buf_get(&item->json));
    tg_buf_free(&item->members);
    tg_buf_free(&item->arguments);
}


tg_rc_e
tg_responses_call_begins(tg_responses_t *r, tg_str_t name, tg_str_t arguments,
    tg_str_t approval_id, size_t *index)
{
    tg_rc_e               rc;
    tg_responses_item_t  *item;

    rc = tg_responses_call_new(r, "mcp_", name, arguments, &item);

    if (rc != TG_OK) {
        return rc;
    }

    tg_buf_cstr(&item->members, ",\"server_label\":\"" TG_RESPONSES_SERVER "\","
                                "\"approval_request_id\":");

    if (approval_id.len) {
        tg_buf_json_string(&item->members, approval_id);

    } else {
        tg_buf_cstr(&item->members, "null");
    }

    *index = r->item_count - 1;

    tg_responses_call_added(r, "mcp_call", ",\"output\":null,\"error\":null");
    tg_responses_call_event(r, "response.mcp_call.in_progress", *index);
    tg_responses_call_arguments(r, "response.mcp_call_arguments.delta",
                                "response.mcp_call_arguments.done");

    return item->members.error != TG_OK ? item->members.error
                                        : tg_responses_state(r);
}


tg_rc_e
tg_responses_call_ended(tg_responses_t *r, size_t index, tg_str_t output,
    tg_str_t error)
{
    tg_responses_item_t  *item;

    item = &r->items[index];

    if (item->json.len) {
        return TG_OK;
    }

    tg_responses_call_json(item, "mcp_call", error.len ? "failed" : "completed",
                           tg_buf_get(&item->arguments), &item->json);

    tg_buf_cstr(&item->json, ",\"output\":");

    if (output.data) {
        tg_buf_json_string(&item->json, output);

    } else {
        tg_buf_cstr(&item->json, "null");
    }

    tg_buf_cstr(&item->json, ",\"error\":");

    if (error.len) {
        tg_buf_json_string(&item->json, error);

    } else {
        tg_buf_cstr(&item->json, "null");
    }

    tg_buf_char(&item->json, '}');

    tg_responses_call_event(r, error.len ? "response.mcp_call.failed"
                                         : "response.mcp_call.completed", index);
    tg_responses_call_done(r, index);

    return item->json.error != TG_OK ? item->json.error : tg_responses_state(r);
}


void
tg_responses_calls_cancel(tg_responses_t *r)
{
    size_t  i;

    for (i = 0; i < r->item_count; i++) {
        if (r->items[i].json.len == 0) {
            (void) tg_responses_call_ended(r, i, tg_null_str,
                                           tg_str("run_cancelled"));
        }
    }
}


tg_rc_e
tg_responses_function_call(tg_responses_t *r, tg_str_t call_id, tg_str_t name,
    tg_str_t arguments)
{
    tg_rc_e               rc;
    tg_responses_item_t  *item;

    rc = tg_responses_call_new(r, "fc_", name, arguments, &item);

    if (rc != TG_OK) {
        return rc;
    }

    tg_buf_cstr(&item->members, ",\"call_id\":");
    tg_buf_json_string(&item->members, call_id);

    tg_responses_call_added(r, "function_call", "");
    tg_responses_call_arguments(r, "response.function_call_arguments.delta",
                                "response.function_call_arguments.done");

    tg_responses_call_json(item, "function_call", "completed",
                           tg_buf_get(&item->arguments), &item->json);
    tg_buf_char(&item->json, '}');
    tg_responses_call_done(r, r->item_count - 1);

    return tg_responses_state(r);
}


tg_rc_e
tg_responses_approval_request(tg_responses_t *r, tg_str_t id, tg_str_t name,
    tg_str_t arguments)
{
    tg_rc_e               rc;
    tg_responses_item_t  *item;

    rc = tg_responses_call_new(r, "", name, arguments, &item);

    if (rc != TG_OK) {
        return rc;
    }

    snprintf(item->id, sizeof(item->id), "%.*s", (int) id.len, id.data);
    tg_buf_cstr(&item->members, ",\"server_label\":\"" TG_RESPONSES_SERVER "\"");

    tg_responses_call_json(item, "mcp_approval_request", NULL,
                           tg_buf_get(&item->arguments), &item->json);
    tg_buf_char(&item->json, '}');

    tg_responses_item_event(r, "response.output_item.added", r->item_count - 1,
                            tg_buf_get(&item->json));
    tg_responses_call_done(r, r->item_count - 1);

    return tg_responses_state(r);
}
