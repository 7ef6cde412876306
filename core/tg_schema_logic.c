/*
 * Evaluation of schemas that are applied to the same place: references, allOf and
 * its kin, conditions, the dynamic scope. It must not know types nor members.
 */

#include "tg_schema_internal.h"


static bool tg_schema_eval_any(tg_schema_eval_t *e, const tg_schema_list_t *any,
    const json_t *value, const tg_schema_path_t *path, tg_schema_track_t *track);
static bool tg_schema_eval_one(tg_schema_eval_t *e, const tg_schema_list_t *one,
    const json_t *value, const tg_schema_path_t *path, tg_schema_track_t *track);
static void tg_schema_explain(tg_schema_eval_t *e, const tg_schema_list_t *list,
    const json_t *value, const tg_schema_path_t *path);
static bool tg_schema_eval_condition(tg_schema_eval_t *e, const tg_schema_logic_t *l,
    const json_t *value, const tg_schema_path_t *path, tg_schema_track_t *track);
static bool tg_schema_eval_dynamic(tg_schema_eval_t *e, const tg_schema_logic_t *l,
    const json_t *value, const tg_schema_path_t *path, tg_schema_track_t *track);
static bool tg_schema_branch(tg_schema_eval_t *e, const tg_schema_node_t *node,
    const json_t *value, const tg_schema_path_t *path, tg_schema_track_t *track);


bool
tg_schema_eval_logic(tg_schema_eval_t *e, const tg_schema_logic_t *l,
    const json_t *value, const tg_schema_path_t *path, tg_schema_track_t *track)
{
    bool    valid;
    size_t  i;

    valid = true;

    if (l->ref != NULL) {
        valid = tg_schema_eval(e, l->ref, value, path, track);
    }

    if (l->dynamic != NULL && (valid || tg_schema_going(e))) {
        valid = tg_schema_eval_dynamic(e, l, value, path, track) && valid;
    }

    for (i = 0; i < l->all.n && (valid || tg_schema_going(e)); i++) {
        valid = tg_schema_eval(e, l->all.nodes[i], value, path, track) && valid;
    }

    if (l->any.n > 0 && (valid || tg_schema_going(e))) {
        valid = tg_schema_eval_any(e, &l->any, value, path, track) && valid;
    }

    if (l->one.n > 0 && (valid || tg_schema_going(e))) {
        valid = tg_schema_eval_one(e, &l->one, value, path, track) && valid;
    }

    if (l->negated != NULL && (valid || tg_schema_going(e))) {
        e->quiet++;
        valid = !tg_schema_eval(e, l->negated, value, path, NULL) && valid;
        e->quiet--;

        if (!valid) {
            (void) tg_schema_report(e, path, "not", "has a form that is not allowed");
        }
    }

    if (l->when != NULL && (valid || tg_schema_going(e))) {
        valid = tg_schema_eval_condition(e, l, value, path, track) && valid;
    }

    return valid;
}


static bool
tg_schema_eval_any(tg_schema_eval_t *e, const tg_schema_list_t *any,
    const json_t *value, const tg_schema_path_t *path, tg_schema_track_t *track)
{
    bool    valid;
    size_t  i;

    valid = false;
    e->quiet++;

    /* every branch that holds has evaluated members: then none may be left out */
    for (i = 0; i < any->n && (!valid || track != NULL) && !e->stopped; i++) {
        valid = tg_schema_branch(e, any->nodes[i], value, path, track) || valid;
    }

    e->quiet--;

    if (!valid && tg_schema_going(e)) {
        (void) tg_schema_report(e, path, "anyOf",
                                "matches none of the %zu allowed forms", any->n);
        tg_schema_explain(e, any, value, path);
    }

    return valid;
}


static bool
tg_schema_eval_one(tg_schema_eval_t *e, const tg_schema_list_t *one,
    const json_t *value, const tg_schema_path_t *path, tg_schema_track_t *track)
{
    size_t  i, count;

    count = 0;
    e->quiet++;

    for (i = 0; i < one->n && count < 2 && !e->stopped; i++) {
        count += tg_schema_branch(e, one->nodes[i], value, path, track);
    }

    e->quiet--;

    if (count == 1) {
        return true;
    }

    if (tg_schema_going(e)) {
        if (count > 1) {
            return tg_schema_report(e, path, "oneOf",
                                    "matches more than one of the %zu allowed forms",
                                    one->n);
        }

        (void) tg_schema_report(e, path, "oneOf",
                                "matches none of the %zu allowed forms", one->n);
        tg_schema_explain(e, one, value, path);
    }

    return false;
}


/* When one form alone takes values of this type, that form was meant: its errors
 * are the ones to mend. */
static void
tg_schema_explain(tg_schema_eval_t *e, const tg_schema_list_t *list,
    const json_t *value, const tg_schema_path_t *path)
{
    size_t                   i;
    uint8_t                  type;
    const tg_schema_node_t  *node, *meant;

    type = tg_schema_type_of(value);
    meant = NULL;

    for (i = 0; i < list->n; i++) {
        node = list->nodes[i];

        if (node->alias != NULL) {
            node = node->alias;
        }

        if (node->never || (node->types & type) == 0) {
            continue;
        }

        if (meant != NULL) {
            return;
        }

        meant = node;
    }

    if (meant != NULL) {
        (void) tg_schema_eval(e, meant, value, path, NULL);
    }
}


static bool
tg_schema_eval_condition(tg_schema_eval_t *e, const tg_schema_logic_t *l,
    const json_t *value, const tg_schema_path_t *path, tg_schema_track_t *track)
{
    bool                     holds;
    const tg_schema_node_t  *next;

    e->quiet++;
    holds = tg_schema_branch(e, l->when, value, path, track);
    e->quiet--;

    next = holds ? l->then : l->otherwise;

    return next == NULL || tg_schema_eval(e, next, value, path, track);
}


/* The outermost resource in the dynamic scope that has the anchor wins. */
static bool
tg_schema_eval_dynamic(tg_schema_eval_t *e, const tg_schema_logic_t *l,
    const json_t *value, const tg_schema_path_t *path, tg_schema_track_t *track)
{
    size_t                     i, k;
    const tg_schema_anchor_t  *a;

    if (l->dynamic_name == NULL) {
        return tg_schema_eval(e, l->dynamic, value, path, track);
    }

    for (i = 0; i < e->nscopes; i++) {

        if (!tg_schema_spend(e, e->schema->nanchors, path)) {
            return false;
        }

        for (k = 0; k < e->schema->nanchors; k++) {
            a = &e->schema->anchors[k];

            if (a->dynamic && a->resource == e->scopes[i]
                && strcmp(a->name, l->dynamic_name) == 0)
            {
                return tg_schema_eval(e, a->node, value, path, track);
            }
        }
    }

    return tg_schema_eval(e, l->dynamic, value, path, track);
}


/* A schema that may fail without harm: what it evaluated counts if it holds. */
static bool
tg_schema_branch(tg_schema_eval_t *e, const tg_schema_node_t *node, const json_t *value,
    const tg_schema_path_t *path, tg_schema_track_t *track)
{
    bool               valid;
    size_t             i;
    tg_schema_track_t  own;

    if (track == NULL) {
        return tg_schema_eval(e, node, value, path, NULL);
    }

    valid = tg_schema_track_init(e, path, &own, track->n)
            && tg_schema_eval(e, node, value, path, &own);

    if (valid) {
        for (i = 0; i <= own.n / 64; i++) {
            track->bits[i] |= own.bits[i];
        }
    }

    tg_schema_track_free(&own);

    return valid;
}
