/*
 * A response that goes on, from its object as it was written down.
 */

#include <stdio.h>

#include "tg_responses_event.h"


static tg_rc_e
tg_responses_restore_items(tg_responses_t *r, tg_walk_value_t output)
{
    tg_rc_e               rc;
    tg_str_t              key, id;
    tg_walk_t             walk, inside;
    tg_walk_value_t       item, value;
    tg_responses_item_t  *last;

    walk = tg_walk_over(output.text);
    (void) tg_walk_enter(&walk);

    while (tg_walk_element(&walk, &item)) {
        rc = tg_responses_item_new(r, "item_");

        if (rc != TG_OK) {
            return rc;
        }

        last = &r->items[r->item_count - 1];
        rc = tg_buf_str(&last->json, item.text);

        if (rc != TG_OK) {
            return rc;
        }

        inside = tg_walk_over(item.text);
        (void) tg_walk_enter(&inside);

        while (tg_walk_member(&inside, &key, &value)) {
            id = tg_walk_inside(value);

            if (tg_walk_is(key, "id") && id.len < sizeof(last->id)) {
                snprintf(last->id, sizeof(last->id), "%.*s", (int) id.len, id.data);
            }
        }
    }

    return TG_OK;
}


tg_str_t
tg_responses_member(tg_str_t object, const char *name)
{
    tg_str_t         key;
    tg_walk_t        walk;
    tg_walk_value_t  value;

    walk = tg_walk_over(object);

    if (!tg_walk_enter(&walk)) {
        return tg_null_str;
    }

    while (tg_walk_member(&walk, &key, &value)) {
        if (tg_walk_is(key, name)) {
            return value.text;
        }
    }

    return tg_null_str;
}


tg_rc_e
tg_responses_restore(tg_responses_t *r, tg_str_t object, tg_buf_t *echo, bool stream)
{
    char             id[TG_ID_MAX_LEN];
    size_t           i;
    int64_t          created;
    tg_str_t         key;
    tg_walk_t        walk;
    tg_walk_value_t  value, output;

    /* what is written new each time */
    static const char *const  own[] = {
        "object", "completed_at", "status", "error", "incomplete_details", "usage"
    };

    id[0] = '\0';
    created = 0;
    output = (tg_walk_value_t) { TG_SCAN_NONE, tg_null_str };
    walk = tg_walk_over(object);

    if (!tg_walk_enter(&walk)) {
        return TG_E_SYNTAX;
    }

    while (tg_walk_member(&walk, &key, &value)) {

        for (i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
            if (tg_walk_is(key, own[i])) {
                break;
            }
        }

        if (i < sizeof(own) / sizeof(own[0])) {
            continue;
        }

        if (tg_walk_is(key, "id")) {
            snprintf(id, sizeof(id), "%.*s", (int) tg_walk_inside(value).len,
                     tg_walk_inside(value).data ? tg_walk_inside(value).data : "");

        } else if (tg_walk_is(key, "created_at")) {
            for (i = 0; i < value.text.len; i++) {
                created = 10 * created + (value.text.data[i] - '0');
            }

        } else if (tg_walk_is(key, "output")) {
            output = value;

        } else {
            tg_buf_cstr(echo, ",\"");
            tg_buf_str(echo, key);
            tg_buf_cstr(echo, "\":");
            tg_buf_str(echo, value.text);
        }
    }

    if (!tg_id_valid("resp_", tg_str_of(id)) || output.type != TG_SCAN_ARRAY) {
        return TG_E_SYNTAX;
    }

    tg_responses_init(r, id, tg_null_str, tg_buf_get(echo), created, stream);

    return echo->error != TG_OK ? echo->error : tg_responses_restore_items(r, output);
}
