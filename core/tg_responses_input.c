/*
 * The items of an input as the API lists them: what the caller sent, with the ids and
 * the shape that items have.
 */

#include <stdlib.h>

#include "tg_responses_internal.h"


/* What decides how an item is shown. */
typedef struct {
    tg_str_t         whole;
    tg_walk_value_t  id;
    tg_walk_value_t  type;
    tg_walk_value_t  role;
    tg_walk_value_t  content;
    tg_walk_value_t  status;
} tg_responses_shown_item_t;


static void
tg_responses_shown_read(tg_walk_t *walk, tg_responses_shown_item_t *item)
{
    size_t           i;
    tg_str_t         key;
    const char      *start;
    tg_walk_value_t  value;

    const struct {
        const char       *name;
        tg_walk_value_t  *value;
    } members[] = {
        { "id", &item->id }, { "type", &item->type }, { "role", &item->role },
        { "content", &item->content }, { "status", &item->status }
    };

    memset(item, 0, sizeof(*item));
    start = walk->p;
    (void) tg_walk_enter(walk);

    while (tg_walk_member(walk, &key, &value)) {
        for (i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
            if (value.type != TG_SCAN_NULL && tg_walk_is(key, members[i].name)) {
                *members[i].value = value;
                break;
            }
        }
    }

    item->whole = (tg_str_t) { (size_t) (walk->p - start), start };
}


static const char *
tg_responses_item_prefix(tg_str_t type)
{
    size_t  i;

    static const struct {
        const char  *type;
        const char  *prefix;
    } prefixes[] = {
        { "function_call", "fc_" }, { "function_call_output", "fco_" },
        { "reasoning", "rs_" }, { "mcp_call", "mcp_" }
    };

    for (i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        if (tg_walk_is(type, prefixes[i].type)) {
            return prefixes[i].prefix;
        }
    }

    return type.len == 0 || tg_walk_is(type, "message") ? "msg_" : "item_";
}


/* The caller's id, or one that is made of the response's and the place. */
static void
tg_responses_item_id(const tg_responses_shown_item_t *item, const char *response,
    size_t n, char *id, size_t size)
{
    tg_str_t  own;

    own = tg_walk_inside(item->id);

    if (own.len && own.len < size && memchr(own.data, '\\', own.len) == NULL) {
        snprintf(id, size, "%.*s", (int) own.len, own.data);
        return;
    }

    snprintf(id, size, "%s%s_i%zu", tg_responses_item_prefix(
                                        tg_walk_inside(item->type)),
             strncmp(response, "resp_", 5) == 0 ? response + 5 : response, n);
}


static void
tg_responses_shown_message(const tg_responses_shown_item_t *item, const char *id,
    tg_buf_t *out)
{
    bool  assistant;

    assistant = tg_walk_is(tg_walk_inside(item->role), "assistant");

    tg_buf_printf(out, "{\"type\":\"message\",\"id\":\"%s\",\"status\":", id);
    tg_buf_str(out, item->status.type == TG_SCAN_STRING ? item->status.text
                                                        : tg_str("\"completed\""));
    tg_buf_cstr(out, ",\"role\":");
    tg_buf_str(out, item->role.type == TG_SCAN_STRING ? item->role.text
                                                      : tg_str("\"user\""));
    tg_buf_cstr(out, ",\"content\":");

    if (item->content.type == TG_SCAN_STRING) {
        tg_buf_cstr(out, assistant ? "[{\"type\":\"output_text\",\"text\":"
                                   : "[{\"type\":\"input_text\",\"text\":");
        tg_buf_str(out, item->content.text);
        tg_buf_cstr(out, assistant ? ",\"annotations\":[],\"logprobs\":[]}]" : "}]");

    } else {
        tg_buf_str(out, item->content.type == TG_SCAN_ARRAY ? item->content.text
                                                            : tg_str("[]"));
    }

    tg_buf_char(out, '}');
}


static void
tg_responses_shown_item(const tg_responses_shown_item_t *item, const char *id,
    tg_buf_t *out)
{
    tg_str_t  type;

    type = tg_walk_inside(item->type);

    if (type.len == 0 || tg_walk_is(type, "message")) {
        tg_responses_shown_message(item, id, out);
        return;
    }

    if (item->id.type != TG_SCAN_NONE) {
        tg_buf_str(out, item->whole);
        return;
    }

    /* it has a type, so it is not empty */

    tg_buf_printf(out, "{\"id\":\"%s\",", id);
    tg_buf_append(out, item->whole.data + 1, item->whole.len - 1);
}


/* All items of an input; the caller frees them. */
static tg_responses_shown_item_t *
tg_responses_shown_all(tg_str_t input, size_t *count)
{
    size_t                      cap;
    tg_walk_t                   walk;
    tg_responses_shown_item_t  *items, *more;

    *count = 0;
    cap = 16;
    items = calloc(cap, sizeof(*items));

    if (items == NULL || input.len == 0) {
        return items;
    }

    walk = tg_walk_over(input);

    if (!tg_walk_enter(&walk)) {
        items[0].content = tg_walk_value(&walk);
        *count = 1;
        return items;
    }

    while (tg_walk_at_element(&walk) == TG_SCAN_OBJECT) {

        if (*count == cap) {
            cap *= 2;
            more = realloc(items, cap * sizeof(*items));

            if (more == NULL) {
                free(items);
                return NULL;
            }

            items = more;
        }

        tg_responses_shown_read(&walk, &items[(*count)++]);
    }

    return items;
}


tg_rc_e
tg_responses_input_items(tg_str_t input, const tg_responses_page_t *page,
    tg_buf_t *out)
{
    char                        id[TG_RESPONSES_ITEM_ID_MAX], first[sizeof(id)];
    size_t                      i, n, at, count, shown;
    tg_responses_shown_item_t  *items;

    items = tg_responses_shown_all(input, &count);

    if (items == NULL) {
        return TG_E_NOMEM;
    }

    i = 0;

    if (page->after.len) {
        for (/* void */; i < count; i++) {
            at = page->newest ? count - 1 - i : i;
            tg_responses_item_id(&items[at], page->id, at, id, sizeof(id));

            if (tg_str_eq(page->after, tg_str_of(id))) {
                break;
            }
        }

        if (i++ == count) {
            free(items);
            return TG_E_INVALID;
        }
    }

    first[0] = id[0] = '\0';
    tg_buf_cstr(out, "{\"object\":\"list\",\"data\":[");

    for (n = i, shown = 0; n < count && shown < page->limit; n++, shown++) {
        at = page->newest ? count - 1 - n : n;
        tg_responses_item_id(&items[at], page->id, at, id, sizeof(id));

        if (shown) {
            tg_buf_char(out, ',');

        } else {
            memcpy(first, id, sizeof(first));
        }

        tg_responses_shown_item(&items[at], id, out);
    }

    if (shown) {
        tg_buf_cstr(out, "],\"first_id\":");
        tg_buf_json_string(out, tg_str_of(first));
        tg_buf_cstr(out, ",\"last_id\":");
        tg_buf_json_string(out, tg_str_of(id));

    } else {
        tg_buf_cstr(out, "],\"first_id\":null,\"last_id\":null");
    }

    tg_buf_cstr(out, n < count ? ",\"has_more\":true}" : ",\"has_more\":false}");
    free(items);

    return out->error;
}
