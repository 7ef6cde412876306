/*
 * The answer as a whole: how it begins and ends, its object, and how an event is
 * written. Its texts are in tg_responses_text.c, its calls in tg_responses_calls.c.
 */

#include <stdio.h>
#include <stdlib.h>

#include "tg_responses_event.h"


#define TG_RESPONSES_ITEMS_FIRST  4
#define TG_RESPONSES_ID_PREFIX    5     /* "resp_" */


void
tg_responses_init(tg_responses_t *r, const char *id, tg_str_t model, tg_str_t echo,
    int64_t created_at, bool stream)
{
    memset(r, 0, sizeof(*r));

    snprintf(r->id, sizeof(r->id), "%s", id);
    r->model = model;
    r->echo = echo;
    r->created_at = created_at;
    r->stream = stream;
    r->after = -1;

    tg_buf_init(&r->out, TG_RESPONSES_OUTPUT_MAX);
    tg_buf_init(&r->parts, TG_RESPONSES_TEXT_MAX);
    tg_buf_init(&r->text, TG_RESPONSES_TEXT_MAX);
}


void
tg_responses_free(tg_responses_t *r)
{
    tg_responses_forget(r);
    free(r->items);
    r->items = NULL;
    r->item_cap = 0;

    tg_buf_free(&r->out);
    tg_buf_free(&r->parts);
    tg_buf_free(&r->text);
}


void
tg_responses_forget(tg_responses_t *r)
{
    size_t  i;

    for (i = 0; i < r->item_count; i++) {
        tg_buf_free(&r->items[i].json);
        tg_buf_free(&r->items[i].members);
        tg_buf_free(&r->items[i].arguments);
    }

    r->item_count = 0;
}


tg_rc_e
tg_responses_state(const tg_responses_t *r)
{
    size_t  i;

    if (r->out.error != TG_OK) {
        return r->out.error;
    }

    if (r->text.error != TG_OK) {
        return r->text.error;
    }

    if (r->parts.error != TG_OK) {
        return r->parts.error;
    }

    /* only the last ones change */

    for (i = r->item_count; i > 0 && i + 2 > r->item_count; i--) {
        if (r->items[i - 1].json.error != TG_OK) {
            return r->items[i - 1].json.error;
        }
    }

    return TG_OK;
}


bool
tg_responses_event(tg_responses_t *r, const char *type)
{
    if (!r->stream || r->sequence++ <= r->after) {
        return false;
    }

    tg_buf_cstr(&r->out, "event: ");
    tg_buf_cstr(&r->out, type);
    tg_buf_cstr(&r->out, "\ndata: {\"type\":\"");
    tg_buf_cstr(&r->out, type);
    tg_buf_cstr(&r->out, "\",\"sequence_number\":");
    tg_buf_int(&r->out, r->sequence - 1);

    return true;
}


void
tg_responses_event_end(tg_responses_t *r)
{
    tg_buf_cstr(&r->out, "}\n\n");
}


void
tg_responses_place(tg_responses_t *r, size_t index)
{
    tg_buf_cstr(&r->out, ",\"item_id\":\"");
    tg_buf_cstr(&r->out, r->items[index].id);
    tg_buf_cstr(&r->out, "\",\"output_index\":");
    tg_buf_int(&r->out, (int64_t) index);
}


void
tg_responses_item_event(tg_responses_t *r, const char *type, size_t index,
    tg_str_t json)
{
    if (!tg_responses_event(r, type)) {
        return;
    }

    tg_buf_cstr(&r->out, ",\"output_index\":");
    tg_buf_int(&r->out, (int64_t) index);
    tg_buf_cstr(&r->out, ",\"item\":");
    tg_buf_str(&r->out, json);
    tg_responses_event_end(r);
}


tg_rc_e
tg_responses_item_new(tg_responses_t *r, const char *prefix)
{
    size_t                cap;
    tg_responses_item_t  *item;

    if (r->item_count == r->item_cap) {

        if (r->item_cap == TG_RESPONSES_ITEMS_MAX) {
            return TG_E_LIMIT;
        }

        cap = r->item_cap ? 2 * r->item_cap : TG_RESPONSES_ITEMS_FIRST;
        item = realloc(r->items, cap * sizeof(*item));

        if (item == NULL) {
            return TG_E_NOMEM;
        }

        r->items = item;
        r->item_cap = cap;
    }

    item = &r->items[r->item_count];
    memset(item, 0, sizeof(*item));

    /* the id leads to the response */

    snprintf(item->id, sizeof(item->id), "%s%s_%zu", prefix,
             r->id + TG_RESPONSES_ID_PREFIX, r->item_count);

    tg_buf_init(&item->json, 2 * TG_RESPONSES_TEXT_MAX);
    tg_buf_init(&item->members, TG_RESPONSES_TEXT_MAX);
    tg_buf_init(&item->arguments, TG_RESPONSES_TEXT_MAX);
    r->item_count++;

    return TG_OK;
}


static void
tg_responses_snapshot(tg_responses_t *r, const char *type,
    const tg_responses_end_t *end)
{
    if (tg_responses_event(r, type)) {
        tg_buf_cstr(&r->out, ",\"response\":");
        (void) tg_responses_object(r, end, &r->out);
        tg_responses_event_end(r);
    }
}


tg_rc_e
tg_responses_open(tg_responses_t *r)
{
    if (!r->opened) {
        r->opened = true;
        tg_responses_snapshot(r, "response.created", NULL);
        tg_responses_snapshot(r, "response.in_progress", NULL);
    }

    return tg_responses_state(r);
}


static const char *
tg_responses_status(const tg_responses_end_t *end)
{
    if (end == NULL) {
        return "in_progress";
    }

    if (end->live) {
        return end->live;
    }

    if (end->cancelled) {
        return "cancelled";
    }

    if (end->error_code) {
        return "failed";
    }

    return end->incomplete ? "incomplete" : "completed";
}


tg_rc_e
tg_responses_end(tg_responses_t *r, const tg_responses_end_t *end)
{
    tg_rc_e      rc;
    const char  *status;

    rc = tg_responses_open(r);
    status = tg_responses_status(end);

    if (rc == TG_OK && r->item_count == 0 && strcmp(status, "completed") == 0) {
        /* an answer has something that says so, if only an empty text */
        rc = tg_responses_text(r, tg_str(""));
    }

    if (rc == TG_OK) {
        rc = tg_responses_break_as(r, strcmp(status, "completed") == 0
                                      ? "completed" : "incomplete");
    }

    if (rc != TG_OK || r->ended) {
        return rc;
    }

    tg_responses_calls_cancel(r);
    r->ended = true;

    if (end->error_code || end->cancelled) {
        tg_responses_snapshot(r, "response.failed", end);
        return tg_responses_state(r);
    }

    tg_responses_snapshot(r, end->incomplete ? "response.incomplete"
                                             : "response.completed", end);

    if (r->stream) {
        tg_buf_cstr(&r->out, "data: [DONE]\n\n");
    }

    return tg_responses_state(r);
}


static void
tg_responses_usage(const tg_delta_usage_t *usage, tg_buf_t *out)
{
    if (usage == NULL || !usage->present) {
        tg_buf_cstr(out, ",\"usage\":null");
        return;
    }

    tg_buf_printf(out, ",\"usage\":{\"input_tokens\":%lld,"
                       "\"input_tokens_details\":{\"cached_tokens\":%lld},"
                       "\"output_tokens\":%lld,"
                       "\"output_tokens_details\":{\"reasoning_tokens\":%lld},"
                       "\"total_tokens\":%lld}",
                  (long long) usage->prompt_tokens,
                  (long long) usage->cached_tokens,
                  (long long) usage->completion_tokens,
                  (long long) usage->reasoning_tokens,
                  (long long) usage->total_tokens);
}


tg_rc_e
tg_responses_object(tg_responses_t *r, const tg_responses_end_t *end, tg_buf_t *out)
{
    size_t       i;
    bool         any;
    const char  *status;

    status = tg_responses_status(end);

    tg_buf_printf(out, "{\"id\":\"%s\",\"object\":\"response\",\"created_at\":%lld,"
                       "\"completed_at\":", r->id, (long long) r->created_at);

    if (strcmp(status, "completed") == 0) {
        tg_buf_int(out, end->now);

    } else {
        tg_buf_cstr(out, "null");
    }

    tg_buf_printf(out, ",\"status\":\"%s\",\"error\":", status);

    if (strcmp(status, "failed") == 0) {
        tg_buf_cstr(out, "{\"code\":");
        tg_buf_json_string(out, tg_str_of(end->error_code));
        tg_buf_cstr(out, ",\"message\":");
        tg_buf_json_string(out, end->error_message);
        tg_buf_cstr(out, "},\"incomplete_details\":null");

    } else if (strcmp(status, "incomplete") == 0) {
        tg_buf_printf(out, "null,\"incomplete_details\":{\"reason\":\"%s\"}",
                      end->incomplete);

    } else {
        tg_buf_cstr(out, "null,\"incomplete_details\":null");
    }

    if (r->model.len) {
        tg_buf_cstr(out, ",\"model\":");
        tg_buf_json_string(out, r->model);
    }

    tg_buf_str(out, r->echo);
    tg_responses_usage(end ? end->usage : NULL, out);
    tg_buf_cstr(out, ",\"output\":[");

    for (i = 0, any = false; i < r->item_count; i++) {
        if (r->items[i].json.len) {
            if (any) {
                tg_buf_char(out, ',');
            }

            any = true;
            tg_buf_str(out, tg_buf_get(&r->items[i].json));
        }
    }

    tg_buf_cstr(out, "]}");

    return out->error;
}
