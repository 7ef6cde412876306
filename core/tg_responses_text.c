/*
 * Texts, refusals and reasoning of the answer: parts of a message or of a reasoning
 * item, one of which is under way at a time.
 */

#include "tg_responses_event.h"


typedef struct {
    const char  *type;        /* of the part */
    const char  *member;      /* that has its text */
    const char  *rest;        /* members that follow */
    const char  *delta;       /* names of the events */
    const char  *done;
    const char  *logprobs;    /* of those events */
} tg_responses_kind_t;


static const tg_responses_kind_t  tg_responses_kinds[] = {
    [TG_RESPONSES_TEXT] = {
        "output_text", "text", ",\"annotations\":[],\"logprobs\":[]",
        "response.output_text.delta", "response.output_text.done",
        ",\"logprobs\":[]"
    },
    [TG_RESPONSES_REFUSAL] = {
        "refusal", "refusal", "", "response.refusal.delta",
        "response.refusal.done", ""
    },
    [TG_RESPONSES_REASONING] = {
        "reasoning_text", "text", "", "response.reasoning_text.delta",
        "response.reasoning_text.done", ""
    }
};


/* The part under way, with this much of its text. */
static void
tg_responses_part_json(tg_responses_t *r, tg_str_t text, tg_buf_t *out)
{
    const tg_responses_kind_t  *kind;

    kind = &tg_responses_kinds[r->part];

    tg_buf_cstr(out, "{\"type\":\"");
    tg_buf_cstr(out, kind->type);
    tg_buf_cstr(out, "\",\"");
    tg_buf_cstr(out, kind->member);
    tg_buf_cstr(out, "\":\"");
    tg_buf_str(out, text);
    tg_buf_char(out, '"');
    tg_buf_cstr(out, kind->rest);
    tg_buf_char(out, '}');
}


static void
tg_responses_part_place(tg_responses_t *r)
{
    tg_responses_place(r, r->item_count - 1);
    tg_buf_cstr(&r->out, ",\"content_index\":");
    tg_buf_int(&r->out, (int64_t) r->part_index);
}


static void
tg_responses_part_event(tg_responses_t *r, const char *type, tg_str_t text)
{
    if (tg_responses_event(r, type)) {
        tg_responses_part_place(r);
        tg_buf_cstr(&r->out, ",\"part\":");
        tg_responses_part_json(r, text, &r->out);
        tg_responses_event_end(r);
    }
}


/* The message or reasoning under way, with the parts that are done. */
static void
tg_responses_item_json(tg_responses_t *r, const char *status, tg_buf_t *out)
{
    const char  *id;

    id = r->items[r->item_count - 1].id;

    if (r->in_message) {
        tg_buf_printf(out, "{\"type\":\"message\",\"id\":\"%s\",\"status\":\"%s\","
                           "\"role\":\"assistant\",\"content\":[", id, status);

    } else {
        tg_buf_printf(out, "{\"type\":\"reasoning\",\"id\":\"%s\","
                           "\"status\":\"%s\",\"summary\":[],\"content\":[", id,
                      status);
    }

    tg_buf_str(out, tg_buf_get(&r->parts));
    tg_buf_cstr(out, "]}");
}


static void
tg_responses_part_done(tg_responses_t *r)
{
    const tg_responses_kind_t  *kind;

    kind = &tg_responses_kinds[r->part];

    if (tg_responses_event(r, kind->done)) {
        tg_responses_part_place(r);
        tg_buf_cstr(&r->out, ",\"");
        tg_buf_cstr(&r->out, kind->member);
        tg_buf_cstr(&r->out, "\":\"");
        tg_buf_str(&r->out, tg_buf_get(&r->text));
        tg_buf_char(&r->out, '"');
        tg_buf_cstr(&r->out, kind->logprobs);
        tg_responses_event_end(r);
    }

    tg_responses_part_event(r, "response.content_part.done", tg_buf_get(&r->text));

    if (r->parts.len) {
        tg_buf_char(&r->parts, ',');
    }

    tg_responses_part_json(r, tg_buf_get(&r->text), &r->parts);

    if (r->text.error == TG_OK) {
        tg_buf_reset(&r->text);
    }

    r->part_index++;
}


tg_rc_e
tg_responses_break_as(tg_responses_t *r, const char *status)
{
    tg_responses_item_t  *item;

    if (r->part == TG_RESPONSES_NONE) {
        return tg_responses_state(r);
    }

    tg_responses_part_done(r);

    item = &r->items[r->item_count - 1];
    tg_responses_item_json(r, status, &item->json);
    tg_responses_item_event(r, "response.output_item.done", r->item_count - 1,
                            tg_buf_get(&item->json));

    r->part = TG_RESPONSES_NONE;
    r->part_index = 0;

    /* what a long text needed is not kept for the next one, which may be short */

    if (r->parts.error == TG_OK) {
        tg_buf_free(&r->parts);
    }

    return tg_responses_state(r);
}


tg_rc_e
tg_responses_break(tg_responses_t *r)
{
    return tg_responses_break_as(r, "completed");
}


/* Makes a part of this kind the one under way. */
static tg_rc_e
tg_responses_part_begin(tg_responses_t *r, tg_responses_part_e part)
{
    tg_rc_e  rc;
    bool     message;

    rc = tg_responses_open(r);

    if (rc != TG_OK || r->part == part) {
        return rc;
    }

    message = (part != TG_RESPONSES_REASONING);

    if (r->part != TG_RESPONSES_NONE && r->in_message && message) {
        tg_responses_part_done(r);

    } else {
        rc = tg_responses_break(r);

        if (rc == TG_OK) {
            rc = tg_responses_item_new(r, message ? "msg_" : "rs_");
        }

        if (rc != TG_OK) {
            return rc;
        }

        r->in_message = message;

        if (tg_responses_event(r, "response.output_item.added")) {
            tg_buf_printf(&r->out, ",\"output_index\":%zu,\"item\":",
                          r->item_count - 1);
            tg_responses_item_json(r, "in_progress", &r->out);
            tg_responses_event_end(r);
        }
    }

    r->part = part;
    tg_responses_part_event(r, "response.content_part.added", tg_null_str);

    return tg_responses_state(r);
}


static tg_rc_e
tg_responses_delta(tg_responses_t *r, tg_responses_part_e part, tg_str_t text)
{
    size_t    from, len;
    tg_rc_e   rc;

    rc = tg_responses_part_begin(r, part);

    if (rc != TG_OK) {
        return rc;
    }

    /* escaped once, and without its quotes, for all that shows it again */

    from = r->text.len;
    rc = tg_buf_json_string(&r->text, text);

    if (rc != TG_OK) {
        return rc;
    }

    len = r->text.len - from - 2;
    memmove(r->text.data + from, r->text.data + from + 1, len);
    r->text.len = from + len;

    if (tg_responses_event(r, tg_responses_kinds[part].delta)) {
        tg_responses_part_place(r);
        tg_buf_cstr(&r->out, ",\"delta\":\"");
        tg_buf_append(&r->out, r->text.data + from, len);
        tg_buf_char(&r->out, '"');
        tg_buf_cstr(&r->out, tg_responses_kinds[part].logprobs);
        tg_responses_event_end(r);
    }

    return tg_responses_state(r);
}


tg_rc_e
tg_responses_text(tg_responses_t *r, tg_str_t text)
{
    return tg_responses_delta(r, TG_RESPONSES_TEXT, text);
}


tg_rc_e
tg_responses_refusal(tg_responses_t *r, tg_str_t text)
{
    return tg_responses_delta(r, TG_RESPONSES_REFUSAL, text);
}


tg_rc_e
tg_responses_reasoning(tg_responses_t *r, tg_str_t text)
{
    return tg_responses_delta(r, TG_RESPONSES_REASONING, text);
}
