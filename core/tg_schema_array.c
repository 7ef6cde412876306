/*
 * Evaluation of the keywords of arrays. It must not know other types nor the logic
 * between schemas.
 */

#include "tg_schema_internal.h"

#include <stdlib.h>


static bool tg_schema_eval_item_counts(tg_schema_eval_t *e, const tg_schema_array_t *a,
    size_t size, const tg_schema_path_t *path);
static bool tg_schema_eval_items(tg_schema_eval_t *e, const tg_schema_array_t *a,
    const json_t *value, const tg_schema_path_t *path, tg_schema_track_t *track);
static bool tg_schema_eval_contains(tg_schema_eval_t *e, const tg_schema_array_t *a,
    const json_t *value, const tg_schema_path_t *path, tg_schema_track_t *track);
static bool tg_schema_eval_unique(tg_schema_eval_t *e, const json_t *value,
    const tg_schema_path_t *path);
static bool tg_schema_unique_pairs(tg_schema_eval_t *e, const json_t *value,
    const tg_schema_path_t *path);
static bool tg_schema_unique_sorted(tg_schema_eval_t *e, const json_t *value,
    const tg_schema_path_t *path, tg_schema_choice_t *items);
static int tg_schema_item_cmp(const void *a, const void *b);


bool
tg_schema_eval_array(tg_schema_eval_t *e, const tg_schema_array_t *a,
    const json_t *value, const tg_schema_path_t *path, tg_schema_track_t *track)
{
    bool  valid;

    valid = tg_schema_eval_item_counts(e, a, json_array_size(value), path);

    if ((a->prefix.n > 0 || a->rest != NULL) && (valid || tg_schema_going(e))) {
        valid = tg_schema_eval_items(e, a, value, path, track) && valid;
    }

    if (a->contains != NULL && (valid || tg_schema_going(e))) {
        valid = tg_schema_eval_contains(e, a, value, path, track) && valid;
    }

    if (a->unique && (valid || tg_schema_going(e))) {
        valid = tg_schema_eval_unique(e, value, path) && valid;
    }

    return valid;
}


/* unevaluatedItems: the items that are not in the set. */
bool
tg_schema_eval_rest_array(tg_schema_eval_t *e, const tg_schema_array_t *a,
    const json_t *value, const tg_schema_path_t *path, tg_schema_track_t *track)
{
    bool              valid;
    size_t            i;
    tg_schema_path_t  at;

    valid = true;
    at = (tg_schema_path_t) { path, NULL, 0 };

    for (i = 0; i < json_array_size(value) && (valid || tg_schema_going(e)); i++) {
        if (tg_schema_track_has(track, i)) {
            continue;
        }

        if (a->unevaluated->never) {
            valid = tg_schema_report(e, path, "unevaluatedItems",
                                     "item %zu is not allowed", i);
            continue;
        }

        at.len = i;
        valid = tg_schema_eval(e, a->unevaluated, json_array_get(value, i), &at, NULL)
                && valid;
        tg_schema_track_add(track, i);
    }

    return valid;
}


static bool
tg_schema_eval_item_counts(tg_schema_eval_t *e, const tg_schema_array_t *a, size_t size,
    const tg_schema_path_t *path)
{
    if (size < a->min_items) {
        return tg_schema_report(e, path, "minItems",
                                "must have at least %zu items, has %zu", a->min_items,
                                size);
    }

    if (size > a->max_items) {
        return tg_schema_report(e, path, "maxItems",
                                "must have at most %zu items, has %zu", a->max_items,
                                size);
    }

    return true;
}


static bool
tg_schema_eval_items(tg_schema_eval_t *e, const tg_schema_array_t *a,
    const json_t *value, const tg_schema_path_t *path, tg_schema_track_t *track)
{
    bool                     valid;
    size_t                   i, n;
    tg_schema_path_t         at;
    const tg_schema_node_t  *node;

    n = json_array_size(value);

    if (a->rest == NULL && n > a->prefix.n) {
        n = a->prefix.n;
    }

    if (!tg_schema_spend(e, n / TG_SCHEMA_SCAN_STEP, path)) {
        return false;
    }

    valid = true;
    at = (tg_schema_path_t) { path, NULL, 0 };

    for (i = 0; i < n && (valid || tg_schema_going(e)); i++) {
        node = i < a->prefix.n ? a->prefix.nodes[i] : a->rest;

        if (node->never && i >= a->prefix.n) {
            return tg_schema_report(e, path, a->rest_keyword,
                                    "must have at most %zu items", a->prefix.n);
        }

        at.len = i;
        valid = tg_schema_eval(e, node, json_array_get(value, i), &at, NULL) && valid;
        tg_schema_track_add(track, i);
    }

    return valid;
}


static bool
tg_schema_eval_contains(tg_schema_eval_t *e, const tg_schema_array_t *a,
    const json_t *value, const tg_schema_path_t *path, tg_schema_track_t *track)
{
    size_t            i, n, count;
    tg_schema_path_t  at;

    n = json_array_size(value);
    count = 0;
    at = (tg_schema_path_t) { path, NULL, 0 };

    if (!tg_schema_spend(e, n / TG_SCHEMA_SCAN_STEP, path)) {
        return false;
    }

    e->quiet++;

    for (i = 0; i < n && !e->stopped; i++) {
        at.len = i;

        if (tg_schema_eval(e, a->contains, json_array_get(value, i), &at, NULL)) {
            tg_schema_track_add(track, i);
            count++;

            if (track == NULL && count >= a->min_contains
                && a->max_contains == SIZE_MAX)
            {
                break;
            }
        }
    }

    e->quiet--;

    if (count < a->min_contains) {
        return tg_schema_report(e, path, a->min_contains == 1 ? "contains" : "minContains",
                                "must have at least %zu items of the required form, "
                                "has %zu", a->min_contains, count);
    }

    if (count > a->max_contains) {
        return tg_schema_report(e, path, "maxContains",
                                "must have at most %zu items of the given form, has %zu",
                                a->max_contains, count);
    }

    return true;
}


static bool
tg_schema_eval_unique(tg_schema_eval_t *e, const json_t *value,
    const tg_schema_path_t *path)
{
    bool                 valid;
    size_t               n;
    tg_schema_choice_t  *items;

    n = json_array_size(value);

    if (n <= TG_SCHEMA_PAIRWISE) {
        return tg_schema_unique_pairs(e, value, path);
    }

    items = malloc(n * sizeof(items[0]));
    if (items == NULL) {
        return tg_schema_stop(e, path, "out of memory");
    }

    valid = tg_schema_unique_sorted(e, value, path, items);
    free(items);

    return valid;
}


static bool
tg_schema_unique_pairs(tg_schema_eval_t *e, const json_t *value,
    const tg_schema_path_t *path)
{
    bool    equal;
    size_t  i, k, n, steps;

    n = json_array_size(value);

    for (i = 1; i < n; i++) {
        for (k = 0; k < i; k++) {
            steps = 0;
            equal = tg_schema_equal(json_array_get(value, k), json_array_get(value, i),
                                    &steps);

            if (!tg_schema_spend(e, steps, path)) {
                return false;
            }

            if (equal) {
                return tg_schema_report(e, path, "uniqueItems",
                                        "items %zu and %zu are equal", k, i);
            }
        }
    }

    return true;
}


/* Equal items have equal hashes and so are neighbours once sorted. Whoever makes
 * many hashes collide on purpose runs out of steps. */
static bool
tg_schema_unique_sorted(tg_schema_eval_t *e, const json_t *value,
    const tg_schema_path_t *path, tg_schema_choice_t *items)
{
    bool    equal;
    size_t  i, k, n, steps;

    n = json_array_size(value);
    steps = 0;

    for (i = 0; i < n; i++) {
        items[i].value = json_array_get(value, i);
        items[i].hash = tg_schema_hash(items[i].value, &steps);
    }

    if (!tg_schema_spend(e, steps, path)) {
        return false;
    }

    qsort(items, n, sizeof(items[0]), tg_schema_item_cmp);

    for (i = 1; i < n; i++) {
        for (k = i; k > 0 && items[k - 1].hash == items[i].hash; k--) {
            steps = 0;
            equal = tg_schema_equal(items[k - 1].value, items[i].value, &steps);

            if (!tg_schema_spend(e, steps, path)) {
                return false;
            }

            if (equal) {
                return tg_schema_report(e, path, "uniqueItems",
                                        "two items are equal; all must differ");
            }
        }
    }

    return true;
}


static int
tg_schema_item_cmp(const void *a, const void *b)
{
    const tg_schema_choice_t  *x, *y;

    x = a;
    y = b;

    return (x->hash > y->hash) - (x->hash < y->hash);
}
