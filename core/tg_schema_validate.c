/*
 * Evaluation of an instance: bounds, types and values, strings and numbers, and
 * which members were evaluated. It must not know the document that a schema was
 * compiled from.
 */

#include "tg_schema_internal.h"

#include <stdlib.h>


static bool tg_schema_eval_node(tg_schema_eval_t *e, const tg_schema_node_t *node,
    const json_t *value, const tg_schema_path_t *path, tg_schema_track_t *track);
static bool tg_schema_eval_meta(tg_schema_eval_t *e, const tg_schema_node_t *node,
    const json_t *value, const tg_schema_path_t *path);
static bool tg_schema_eval_parts(tg_schema_eval_t *e, const tg_schema_node_t *node,
    const json_t *value, uint8_t type, const tg_schema_path_t *path,
    tg_schema_track_t *track);
static bool tg_schema_eval_tracked(tg_schema_eval_t *e, const tg_schema_node_t *node,
    const json_t *value, uint8_t type, const tg_schema_path_t *path,
    tg_schema_track_t *track);
static bool tg_schema_eval_value(tg_schema_eval_t *e, const tg_schema_values_t *values,
    const json_t *value, const tg_schema_path_t *path, bool constant);
static bool tg_schema_eval_number(tg_schema_eval_t *e, const tg_schema_number_t *number,
    const json_t *value, const tg_schema_path_t *path);
static bool tg_schema_number_fails(tg_schema_eval_t *e, const tg_schema_path_t *path,
    const char *keyword, const char *words, const tg_schema_num_t *bound);
static bool tg_schema_eval_string(tg_schema_eval_t *e, const tg_schema_string_t *string,
    const json_t *value, const tg_schema_path_t *path);


/*
 * Is the value valid against the node? When track is not NULL it gets the members
 * that were evaluated; after a failure its content means nothing.
 */
bool
tg_schema_eval(tg_schema_eval_t *e, const tg_schema_node_t *node, const json_t *value,
    const tg_schema_path_t *path, tg_schema_track_t *track)
{
    bool  valid, entered;

    if (node->alias != NULL) {
        node = node->alias;
    }

    if (node->trivial) {
        return true;
    }

    if (!tg_schema_spend(e, 1, path)) {
        return false;
    }

    if (node->never) {
        return tg_schema_report(e, path, "false schema", "nothing is allowed here");
    }

    if (e->depth >= TG_SCHEMA_MAX_DEPTH) {
        return tg_schema_stop(e, path, "nested too deep");
    }

    if (node->is_schema) {
        return tg_schema_eval_meta(e, node, value, path);
    }

    e->depth++;
    entered = e->nscopes == 0 || e->scopes[e->nscopes - 1] != node->resource;

    if (entered) {
        e->scopes[e->nscopes++] = node->resource;
    }

    valid = tg_schema_eval_node(e, node, value, path, track);

    if (entered) {
        e->nscopes--;
    }

    e->depth--;

    return valid;
}


/* False when the steps of this validation are used up. */
bool
tg_schema_spend(tg_schema_eval_t *e, size_t steps, const tg_schema_path_t *path)
{
    e->steps += steps;

    if (e->stopped) {
        return false;
    }

    return e->steps <= TG_SCHEMA_MAX_STEPS
           || tg_schema_stop(e, path, "checking the value takes too long");
}


bool
tg_schema_track_init(tg_schema_eval_t *e, const tg_schema_path_t *path,
    tg_schema_track_t *track, size_t n)
{
    size_t  words;

    words = n / 64 + 1;
    track->n = n;

    if (n < TG_SCHEMA_SMALL_SET) {
        memset(track->small, 0, words * sizeof(track->small[0]));
        track->bits = track->small;
        return true;
    }

    track->bits = calloc(words, sizeof(track->bits[0]));

    return (track->bits != NULL && tg_schema_spend(e, words, path))
           || tg_schema_stop(e, path, "out of memory");
}


void
tg_schema_track_free(tg_schema_track_t *track)
{
    if (track->bits != track->small) {
        free(track->bits);
    }
}


static bool
tg_schema_eval_node(tg_schema_eval_t *e, const tg_schema_node_t *node,
    const json_t *value, const tg_schema_path_t *path, tg_schema_track_t *track)
{
    bool     valid;
    uint8_t  type;

    type = tg_schema_type_of(value);

    if ((node->types & type) == 0) {
        /* what else is wrong with a value of the wrong type helps nobody */
        return tg_schema_report_type(e, path, node->types, type);
    }

    valid = true;

    if (node->constant != NULL
        && !tg_schema_eval_value(e, node->constant, value, path, true))
    {
        valid = false;
    }

    if (node->choice != NULL && (valid || tg_schema_going(e))
        && !tg_schema_eval_value(e, node->choice, value, path, false))
    {
        valid = false;
    }

    if (!valid && !tg_schema_going(e)) {
        return false;
    }

    if ((type == TG_SCHEMA_OBJECT && node->object != NULL
         && node->object->unevaluated != NULL)
        || (type == TG_SCHEMA_ARRAY && node->array != NULL
            && node->array->unevaluated != NULL))
    {
        return tg_schema_eval_tracked(e, node, value, type, path, track) && valid;
    }

    return tg_schema_eval_parts(e, node, value, type, path, track) && valid;
}


/* The value must be a schema itself. */
static bool
tg_schema_eval_meta(tg_schema_eval_t *e, const tg_schema_node_t *node,
    const json_t *value, const tg_schema_path_t *path)
{
    size_t  count;

    if (!tg_schema_measurable(value, &count)) {
        return tg_schema_stop(e, path, "nested too deep or too large");
    }

    return tg_schema_spend(e, count, path)
           && (tg_schema_judge(value, node->meta_draft)
               || tg_schema_report(e, path, "$ref", "is no valid JSON Schema"));
}


static bool
tg_schema_eval_parts(tg_schema_eval_t *e, const tg_schema_node_t *node,
    const json_t *value, uint8_t type, const tg_schema_path_t *path,
    tg_schema_track_t *track)
{
    bool  valid;

    valid = true;

    switch (type) {

    case TG_SCHEMA_OBJECT:
        if (node->object != NULL) {
            valid = tg_schema_eval_object(e, node->object, value, path, track);
        }

        break;

    case TG_SCHEMA_ARRAY:
        if (node->array != NULL) {
            valid = tg_schema_eval_array(e, node->array, value, path, track);
        }

        break;

    case TG_SCHEMA_STRING:
        if (node->string != NULL) {
            valid = tg_schema_eval_string(e, node->string, value, path);
        }

        break;

    case TG_SCHEMA_INTEGER:
    case TG_SCHEMA_FRACTION:
        if (node->number != NULL) {
            valid = tg_schema_eval_number(e, node->number, value, path);
        }

        break;

    default:
        break;
    }

    if (node->logic == NULL || (!valid && !tg_schema_going(e))) {
        return valid;
    }

    return tg_schema_eval_logic(e, node->logic, value, path, track) && valid;
}


/*
 * A node with unevaluatedProperties or unevaluatedItems starts a set of its own:
 * it sees what it and the schemas applied in place have evaluated, and nothing
 * that its neighbours did.
 */
static bool
tg_schema_eval_tracked(tg_schema_eval_t *e, const tg_schema_node_t *node,
    const json_t *value, uint8_t type, const tg_schema_path_t *path,
    tg_schema_track_t *track)
{
    bool               valid;
    size_t             i, n;
    tg_schema_track_t  own;

    n = type == TG_SCHEMA_OBJECT ? json_object_size(value) : json_array_size(value);

    if (!tg_schema_track_init(e, path, &own, n)) {
        tg_schema_track_free(&own);
        return false;
    }

    valid = tg_schema_eval_parts(e, node, value, type, path, &own);

    if (valid) {
        valid = type == TG_SCHEMA_OBJECT
                ? tg_schema_eval_rest_object(e, node->object, value, path, &own)
                : tg_schema_eval_rest_array(e, node->array, value, path, &own);
    }

    if (valid && track != NULL) {
        for (i = 0; i <= n / 64; i++) {
            track->bits[i] |= own.bits[i];
        }
    }

    tg_schema_track_free(&own);

    return valid;
}


static bool
tg_schema_eval_value(tg_schema_eval_t *e, const tg_schema_values_t *values,
    const json_t *value, const tg_schema_path_t *path, bool constant)
{
    bool      found;
    size_t    low, high, middle, steps;
    uint64_t  hash;

    steps = 0;
    hash = tg_schema_hash(value, &steps);
    low = 0;
    high = values->n;

    while (low < high) {
        middle = low + (high - low) / 2;

        if (values->choices[middle].hash < hash) {
            low = middle + 1;

        } else {
            high = middle;
        }
    }

    found = false;

    for ( ; !found && low < values->n && values->choices[low].hash == hash; low++) {
        found = tg_schema_equal(values->choices[low].value, value, &steps);
    }

    if (!tg_schema_spend(e, steps, path)) {
        return false;
    }

    return found || tg_schema_report_values(e, path, values, constant);
}


static bool
tg_schema_eval_number(tg_schema_eval_t *e, const tg_schema_number_t *number,
    const json_t *value, const tg_schema_path_t *path)
{
    bool             valid;
    tg_schema_num_t  n;

    n = tg_schema_num(value);
    valid = true;

    if (number->has_minimum && tg_schema_num_cmp(&n, &number->minimum) < 0) {
        valid = tg_schema_number_fails(e, path, "minimum", ">=", &number->minimum);
    }

    if (number->has_maximum && tg_schema_num_cmp(&n, &number->maximum) > 0) {
        valid = tg_schema_number_fails(e, path, "maximum", "<=", &number->maximum);
    }

    if (number->has_exclusive_minimum
        && tg_schema_num_cmp(&n, &number->exclusive_minimum) <= 0)
    {
        valid = tg_schema_number_fails(e, path, "exclusiveMinimum", ">",
                                       &number->exclusive_minimum);
    }

    if (number->has_exclusive_maximum
        && tg_schema_num_cmp(&n, &number->exclusive_maximum) >= 0)
    {
        valid = tg_schema_number_fails(e, path, "exclusiveMaximum", "<",
                                       &number->exclusive_maximum);
    }

    if (number->has_multiple && !tg_schema_is_multiple(&n, number)) {
        valid = tg_schema_number_fails(e, path, "multipleOf", "a multiple of",
                                       &number->multiple);
    }

    return valid;
}


static bool
tg_schema_number_fails(tg_schema_eval_t *e, const tg_schema_path_t *path,
    const char *keyword, const char *words, const tg_schema_num_t *bound)
{
    char  text[40];

    if (!tg_schema_going(e)) {
        return false;
    }

    tg_schema_num_text(bound, text, sizeof(text));

    return tg_schema_report(e, path, keyword, "must be %s %s", words, text);
}


static bool
tg_schema_eval_string(tg_schema_eval_t *e, const tg_schema_string_t *string,
    const json_t *value, const tg_schema_path_t *path)
{
    bool         valid;
    size_t       len, count;
    tg_str_t     pattern;
    const char  *text;

    text = json_string_value(value);
    len = json_string_length(value);
    valid = true;

    if (string->min_length > 0 || string->max_length < SIZE_MAX) {
        count = tg_schema_code_points(text, len);

        if (!tg_schema_spend(e, len / TG_SCHEMA_SCAN_STEP, path)) {
            return false;
        }

        if (count < string->min_length) {
            valid = tg_schema_report(e, path, "minLength",
                                     "must have at least %zu characters, has %zu",
                                     string->min_length, count);
        }

        if (count > string->max_length) {
            valid = tg_schema_report(e, path, "maxLength",
                                     "must have at most %zu characters, has %zu",
                                     string->max_length, count);
        }
    }

    if (string->pattern == NULL || (!valid && !tg_schema_going(e))) {
        return valid;
    }

    if (!tg_schema_pattern_match(e, string->pattern, text, len, path)) {
        pattern = tg_schema_pattern_text(string->pattern);
        valid = tg_schema_report(e, path, "pattern", "does not match the pattern %.*s",
                                 (int) pattern.len, pattern.data);
    }

    return valid;
}
