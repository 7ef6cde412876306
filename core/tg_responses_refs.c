/*
 * Items that are named and not sent: which ones an input names, and the input with
 * them in their places. Where they come from is not known here.
 */

#include "tg_responses_internal.h"


#define TG_RESPONSES_ID_BODY  22     /* characters of a response's id behind "resp_" */


/* Reads the item at the walk's place: its whole text and, if it is a reference, the id
 * that it names, which may be empty. */
static bool
tg_responses_reference(tg_walk_t *walk, tg_str_t *whole, tg_str_t *id)
{
    bool              typed, reference, role;
    tg_str_t          key;
    const char       *start;
    tg_walk_value_t   value;

    *id = tg_null_str;
    typed = false;
    reference = false;
    role = false;
    start = walk->p;
    (void) tg_walk_enter(walk);

    while (tg_walk_member(walk, &key, &value)) {

        if (value.type == TG_SCAN_NULL) {
            continue;
        }

        if (tg_walk_is(key, "type")) {
            typed = true;
            reference = tg_walk_is(tg_walk_inside(value), "item_reference");

        } else if (tg_walk_is(key, "id")) {
            *id = tg_walk_inside(value);

        } else if (tg_walk_is(key, "role")) {
            role = true;
        }
    }

    *whole = (tg_str_t) { (size_t) (walk->p - start), start };

    return reference || (!typed && !role && id->len);
}


tg_rc_e
tg_responses_references(tg_str_t input, tg_responses_named_pt named, void *ctx)
{
    tg_str_t         whole, id;
    tg_walk_t        walk;
    tg_scan_type_e   kind;

    walk = tg_walk_over(input);

    if (!tg_walk_enter(&walk)) {
        return TG_OK;
    }

    while ((kind = tg_walk_at_element(&walk)) != TG_SCAN_NONE) {

        if (kind != TG_SCAN_OBJECT) {
            (void) tg_walk_value(&walk);

        } else if (tg_responses_reference(&walk, &whole, &id) && !named(ctx, id)) {
            return TG_E_LIMIT;
        }
    }

    return TG_OK;
}


tg_rc_e
tg_responses_resolve(tg_str_t input, tg_responses_find_pt find, void *ctx,
    tg_buf_t *out, tg_responses_fault_t *fault)
{
    bool             any;
    size_t           n;
    tg_str_t         whole, id;
    tg_walk_t        walk;
    tg_scan_type_e   kind;

    memset(fault, 0, sizeof(*fault));
    walk = tg_walk_over(input);
    (void) tg_walk_enter(&walk);
    any = false;

    for (n = 0; (kind = tg_walk_at_element(&walk)) != TG_SCAN_NONE; n++) {

        if (kind != TG_SCAN_OBJECT) {
            whole = tg_walk_value(&walk).text;

        } else if (tg_responses_reference(&walk, &whole, &id)) {

            /* the decision names it again, and no model is told of it */

            if (tg_id_valid("appr_", id)) {
                continue;
            }

            whole = find(ctx, id);

            if (whole.len == 0) {
                fault->code = "not_found";
                fault->message = "There is no such item: that of a response that is "
                                 "not kept has to be sent itself.";
                snprintf(fault->param, sizeof(fault->param), "input[%zu].id", n);
                return TG_E_INVALID;
            }
        }

        tg_buf_char(out, any ? ',' : '[');
        tg_buf_str(out, whole);
        any = true;
    }

    tg_buf_cstr(out, any ? "]" : "[]");

    return out->error;
}


bool
tg_responses_response_of(tg_str_t id, char response[TG_ID_MAX_LEN])
{
    size_t       len;
    const char  *body, *end;

    body = id.len ? memchr(id.data, '_', id.len) : NULL;

    if (body == NULL) {
        return false;
    }

    body++;
    len = id.len - (size_t) (body - id.data);
    end = memchr(body, '_', len);

    if (end == NULL || end - body != TG_RESPONSES_ID_BODY) {
        return false;
    }

    snprintf(response, TG_ID_MAX_LEN, "resp_%.*s", TG_RESPONSES_ID_BODY, body);

    return tg_id_valid("resp_", tg_str_of(response));
}


tg_str_t
tg_responses_output_item(tg_str_t object, tg_str_t id)
{
    tg_str_t         key, whole, other;
    tg_walk_t        walk;
    tg_walk_value_t  value;

    walk = tg_walk_over(object);

    if (!tg_walk_enter(&walk)) {
        return tg_null_str;
    }

    do {
        if (!tg_walk_member(&walk, &key, &value)) {
            return tg_null_str;
        }
    } while (!tg_walk_is(key, "output"));

    walk = tg_walk_over(value.text);

    if (value.type != TG_SCAN_ARRAY || !tg_walk_enter(&walk)) {
        return tg_null_str;
    }

    while (tg_walk_at_element(&walk) == TG_SCAN_OBJECT) {
        (void) tg_responses_reference(&walk, &whole, &other);

        if (tg_str_eq(other, id)) {
            return whole;
        }
    }

    return tg_null_str;
}
