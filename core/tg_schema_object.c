/*
 * Evaluation of the keywords of objects, in one walk over the members. It must not
 * know other types nor the logic between schemas.
 */

#include "tg_schema_internal.h"


static bool tg_schema_eval_members(tg_schema_eval_t *e, const tg_schema_object_t *o,
    const json_t *value, const tg_schema_path_t *path, tg_schema_track_t *track);
static bool tg_schema_eval_member(tg_schema_eval_t *e, const tg_schema_object_t *o,
    const tg_schema_prop_t *prop, const json_t *value, const tg_schema_path_t *at,
    bool *evaluated);
static bool tg_schema_eval_other(tg_schema_eval_t *e, const tg_schema_node_t *node,
    const json_t *value, const tg_schema_path_t *at, const char *keyword);
static bool tg_schema_eval_name(tg_schema_eval_t *e, const tg_schema_node_t *names,
    const tg_schema_path_t *at);
static const tg_schema_prop_t *tg_schema_find_prop(const tg_schema_object_t *o,
    const char *name, size_t len);
static bool tg_schema_missing(tg_schema_eval_t *e, const tg_schema_object_t *o,
    const json_t *value, const tg_schema_path_t *path);
static bool tg_schema_eval_sizes(tg_schema_eval_t *e, const tg_schema_object_t *o,
    size_t size, const tg_schema_path_t *path);
static bool tg_schema_eval_dependents(tg_schema_eval_t *e, const tg_schema_object_t *o,
    const json_t *value, const tg_schema_path_t *path, tg_schema_track_t *track);


bool
tg_schema_eval_object(tg_schema_eval_t *e, const tg_schema_object_t *o,
    const json_t *value, const tg_schema_path_t *path, tg_schema_track_t *track)
{
    bool  valid;

    valid = tg_schema_eval_sizes(e, o, json_object_size(value), path);

    if ((valid || tg_schema_going(e))
        && (o->nprops > 0 || o->npatterns > 0 || o->additional != NULL
            || o->names != NULL))
    {
        valid = tg_schema_eval_members(e, o, value, path, track) && valid;
    }

    if (o->ndependents > 0 && (valid || tg_schema_going(e))) {
        valid = tg_schema_eval_dependents(e, o, value, path, track) && valid;
    }

    return valid;
}


/* unevaluatedProperties: the members that are not in the set. */
bool
tg_schema_eval_rest_object(tg_schema_eval_t *e, const tg_schema_object_t *o,
    const json_t *value, const tg_schema_path_t *path, tg_schema_track_t *track)
{
    bool               valid;
    void              *iter;
    size_t             i;
    json_t            *object;
    tg_schema_path_t   at;

    valid = true;
    object = (json_t *) (uintptr_t) value;      /* iteration changes nothing */
    at.parent = path;
    i = 0;

    for (iter = json_object_iter(object); iter != NULL && (valid || tg_schema_going(e));
         iter = json_object_iter_next(object, iter), i++)
    {
        if (tg_schema_track_has(track, i)) {
            continue;
        }

        at.key = json_object_iter_key(iter);
        at.len = json_object_iter_key_len(iter);

        valid = tg_schema_eval_other(e, o->unevaluated, json_object_iter_value(iter), &at,
                                     "unevaluatedProperties")
                && valid;
        tg_schema_track_add(track, i);
    }

    return valid;
}


static bool
tg_schema_eval_members(tg_schema_eval_t *e, const tg_schema_object_t *o,
    const json_t *value, const tg_schema_path_t *path, tg_schema_track_t *track)
{
    bool                     valid, evaluated;
    void                    *iter;
    size_t                   i, required;
    json_t                  *object, *member;
    tg_schema_path_t         at;
    const tg_schema_prop_t  *prop;

    if (!tg_schema_spend(e, json_object_size(value), path)) {
        return false;
    }

    valid = true;
    object = (json_t *) (uintptr_t) value;      /* iteration changes nothing */
    at.parent = path;
    required = 0;
    i = 0;

    for (iter = json_object_iter(object); iter != NULL;
         iter = json_object_iter_next(object, iter), i++)
    {
        at.key = json_object_iter_key(iter);
        at.len = json_object_iter_key_len(iter);
        member = json_object_iter_value(iter);

        prop = tg_schema_find_prop(o, at.key, at.len);
        required += prop != NULL && prop->required;
        evaluated = false;

        valid = tg_schema_eval_member(e, o, prop, member, &at, &evaluated) && valid;

        if (evaluated) {
            tg_schema_track_add(track, i);
        }

        if (!valid && !tg_schema_going(e)) {
            return false;
        }
    }

    if (required < o->nrequired) {
        valid = tg_schema_missing(e, o, value, path);
    }

    return valid;
}


static bool
tg_schema_eval_member(tg_schema_eval_t *e, const tg_schema_object_t *o,
    const tg_schema_prop_t *prop, const json_t *value, const tg_schema_path_t *at,
    bool *evaluated)
{
    bool    valid;
    size_t  i;

    valid = true;

    if (prop != NULL && prop->node != NULL) {
        valid = tg_schema_eval(e, prop->node, value, at, NULL);
        *evaluated = true;
    }

    for (i = 0; i < o->npatterns && (valid || tg_schema_going(e)); i++) {
        if (tg_schema_pattern_match(e, o->patterns[i].pattern, at->key, at->len, at)) {
            valid = tg_schema_eval(e, o->patterns[i].node, value, at, NULL) && valid;
            *evaluated = true;
        }
    }

    if (o->additional != NULL && !*evaluated && (valid || tg_schema_going(e))) {
        valid = tg_schema_eval_other(e, o->additional, value, at, "additionalProperties");
        *evaluated = true;
    }

    if (o->names != NULL && (valid || tg_schema_going(e))) {
        valid = tg_schema_eval_name(e, o->names, at) && valid;
    }

    return valid;
}


/* A member that is not declared: its name is what a model has to know. */
static bool
tg_schema_eval_other(tg_schema_eval_t *e, const tg_schema_node_t *node,
    const json_t *value, const tg_schema_path_t *at, const char *keyword)
{
    if (node->never) {
        return tg_schema_report_name(e, at->parent, keyword, "unknown property ", at->key,
                                     at->len, "");
    }

    return tg_schema_eval(e, node, value, at, NULL);
}


/* propertyNames: the name is checked as the string that it is. */
static bool
tg_schema_eval_name(tg_schema_eval_t *e, const tg_schema_node_t *names,
    const tg_schema_path_t *at)
{
    bool     valid;
    json_t  *name;

    name = json_stringn_nocheck(at->key, at->len);
    if (name == NULL) {
        return tg_schema_stop(e, at, "out of memory");
    }

    e->quiet++;
    valid = tg_schema_eval(e, names, name, at->parent, NULL);
    e->quiet--;

    json_decref(name);

    return valid
           || tg_schema_report_name(e, at->parent, "propertyNames", "property name ",
                                    at->key, at->len, " is not allowed");
}


static const tg_schema_prop_t *
tg_schema_find_prop(const tg_schema_object_t *o, const char *name, size_t len)
{
    int                      order;
    size_t                   low, high, middle;
    const tg_schema_prop_t  *prop;

    low = 0;
    high = o->nprops;

    while (low < high) {
        middle = low + (high - low) / 2;
        prop = &o->props[middle];

        if (prop->len != len) {
            order = prop->len < len ? -1 : 1;

        } else {
            order = memcmp(prop->name, name, len);
        }

        if (order == 0) {
            return prop;
        }

        if (order < 0) {
            low = middle + 1;

        } else {
            high = middle;
        }
    }

    return NULL;
}


/* Names what is missing; called when something is. */
static bool
tg_schema_missing(tg_schema_eval_t *e, const tg_schema_object_t *o, const json_t *value,
    const tg_schema_path_t *path)
{
    size_t                   i;
    const tg_schema_prop_t  *prop;

    for (i = 0; i < o->nprops && tg_schema_going(e); i++) {
        prop = &o->props[i];

        if (prop->required && json_object_getn(value, prop->name, prop->len) == NULL) {
            (void) tg_schema_report_name(e, path, "required", "required property ",
                                         prop->name, prop->len, " is missing");
        }
    }

    return false;
}


static bool
tg_schema_eval_sizes(tg_schema_eval_t *e, const tg_schema_object_t *o, size_t size,
    const tg_schema_path_t *path)
{
    if (size < o->min_properties) {
        return tg_schema_report(e, path, "minProperties",
                                "must have at least %zu properties, has %zu",
                                o->min_properties, size);
    }

    if (size > o->max_properties) {
        return tg_schema_report(e, path, "maxProperties",
                                "must have at most %zu properties, has %zu",
                                o->max_properties, size);
    }

    return true;
}


static bool
tg_schema_eval_dependents(tg_schema_eval_t *e, const tg_schema_object_t *o,
    const json_t *value, const tg_schema_path_t *path, tg_schema_track_t *track)
{
    bool                          valid;
    size_t                        i, k;
    const json_t                 *name;
    const tg_schema_dependent_t  *d;

    valid = true;

    for (i = 0; i < o->ndependents && (valid || tg_schema_going(e)); i++) {
        d = &o->dependents[i];

        if (!tg_schema_spend(e, 1 + json_array_size(d->required), path)) {
            return false;
        }

        if (json_object_getn(value, d->name, d->len) == NULL) {
            continue;
        }

        if (d->node != NULL) {
            valid = tg_schema_eval(e, d->node, value, path, track) && valid;
            continue;
        }

        for (k = 0; k < json_array_size(d->required); k++) {
            name = json_array_get(d->required, k);

            if (json_object_getn(value, json_string_value(name), json_string_length(name))
                == NULL)
            {
                valid = tg_schema_report_name(e, path, d->keyword, "property ",
                                              json_string_value(name),
                                              json_string_length(name),
                                              " is missing; another property requires it");
            }
        }
    }

    return valid;
}
