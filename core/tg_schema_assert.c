/*
 * Keywords that assert something about a value by themselves: types, given values,
 * bounds of numbers and sizes, patterns. Each function reads one keyword into a
 * node. It must not know schemas inside schemas.
 */

#include "tg_schema_internal.h"

#include <stdlib.h>


static int tg_schema_choice_cmp(const void *a, const void *b);
static bool tg_schema_one_type(tg_schema_compiler_t *c, tg_schema_node_t *node,
    const json_t *value, uint8_t *types);
static bool tg_schema_read_values(tg_schema_compiler_t *c, tg_schema_node_t *node,
    tg_schema_values_t **values, const json_t *source, const json_t *list);


bool
tg_schema_read_type(tg_schema_compiler_t *c, tg_schema_node_t *node, const json_t *value,
    const char *keyword)
{
    size_t   i;
    uint8_t  types, one;

    types = 0;

    if (json_is_string(value)) {
        if (!tg_schema_one_type(c, node, value, &types)) {
            return false;
        }

    } else if (json_array_size(value) == 0) {
        return tg_schema_fail(c, node->source, keyword, NULL,
                              "must be a type or a non-empty array of types");
    }

    for (i = 0; i < json_array_size(value); i++) {
        one = 0;

        if (!tg_schema_one_type(c, node, json_array_get(value, i), &one)) {
            return false;
        }

        /* "number" holds "integer" and may stand before it */
        if ((types & one) == one
            && (one != TG_SCHEMA_INTEGER || (types & TG_SCHEMA_FRACTION) == 0))
        {
            return tg_schema_fail(c, node->source, keyword, NULL, "names a type twice");
        }

        types |= one;
    }

    node->types = types;

    return true;
}


static bool
tg_schema_one_type(tg_schema_compiler_t *c, tg_schema_node_t *node, const json_t *value,
    uint8_t *types)
{
    size_t  i;

    static const struct {
        const char  *name;
        uint8_t      types;
    }  names[] = {
        { "object", TG_SCHEMA_OBJECT }, { "string", TG_SCHEMA_STRING },
        { "array", TG_SCHEMA_ARRAY }, { "number", TG_SCHEMA_NUMBER },
        { "integer", TG_SCHEMA_INTEGER }, { "boolean", TG_SCHEMA_BOOLEAN },
        { "null", TG_SCHEMA_NULL }
    };

    for (i = 0; json_is_string(value) && i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(json_string_value(value), names[i].name) == 0) {
            *types = names[i].types;
            return true;
        }
    }

    return tg_schema_fail(c, node->source, "type", NULL,
                          "\"%.40s\" is none of object, array, string, number, integer, "
                          "boolean, null",
                          json_is_string(value) ? json_string_value(value) : "");
}


bool
tg_schema_read_const(tg_schema_compiler_t *c, tg_schema_node_t *node, const json_t *value,
    const char *keyword)
{
    (void) keyword;

    return tg_schema_read_values(c, node, &node->constant, value, NULL);
}


bool
tg_schema_read_enum(tg_schema_compiler_t *c, tg_schema_node_t *node, const json_t *value,
    const char *keyword)
{
    if (!json_is_array(value)) {
        return tg_schema_fail(c, node->source, keyword, NULL, "must be an array");
    }

    return tg_schema_read_values(c, node, &node->choice, value, value);
}


static bool
tg_schema_read_values(tg_schema_compiler_t *c, tg_schema_node_t *node,
    tg_schema_values_t **values, const json_t *source, const json_t *list)
{
    size_t               i, n, steps;
    const json_t        *value;
    tg_schema_values_t  *v;

    (void) node;

    n = list == NULL ? 1 : json_array_size(list);
    v = tg_schema_alloc(c->schema, sizeof(*v));

    if (v == NULL) {
        return tg_schema_no_memory(c);
    }

    v->source = source;
    v->n = n;
    v->choices = tg_schema_alloc(c->schema, (n + 1) * sizeof(v->choices[0]));

    if (v->choices == NULL) {
        return tg_schema_no_memory(c);
    }

    steps = 0;

    for (i = 0; i < n; i++) {
        value = list == NULL ? source : json_array_get(list, i);
        v->choices[i] = (tg_schema_choice_t) { tg_schema_hash(value, &steps), value };
    }

    qsort(v->choices, n, sizeof(v->choices[0]), tg_schema_choice_cmp);
    *values = v;

    return true;
}


static int
tg_schema_choice_cmp(const void *a, const void *b)
{
    const tg_schema_choice_t  *x, *y;

    x = a;
    y = b;

    return (x->hash > y->hash) - (x->hash < y->hash);
}


bool
tg_schema_read_bound(tg_schema_compiler_t *c, tg_schema_node_t *node, const json_t *value,
    const char *keyword)
{
    tg_schema_num_t      n;
    tg_schema_number_t  *number;

    if (!json_is_number(value)) {
        return tg_schema_fail(c, node->source, keyword, NULL, "must be a number");
    }

    number = tg_schema_number_of(c, node);
    if (number == NULL) {
        return tg_schema_no_memory(c);
    }

    n = tg_schema_num(value);

    if (strcmp(keyword, "minimum") == 0) {
        number->has_minimum = true;
        number->minimum = n;

    } else if (strcmp(keyword, "maximum") == 0) {
        number->has_maximum = true;
        number->maximum = n;

    } else if (strcmp(keyword, "exclusiveMinimum") == 0) {
        number->has_exclusive_minimum = true;
        number->exclusive_minimum = n;

    } else if (strcmp(keyword, "exclusiveMaximum") == 0) {
        number->has_exclusive_maximum = true;
        number->exclusive_maximum = n;

    } else {
        if (n.d <= 0) {
            return tg_schema_fail(c, node->source, keyword, NULL,
                                  "must be greater than 0");
        }

        number->has_multiple = true;
        number->multiple = n;
        number->multiple_decimal = tg_schema_decimal(&n);
    }

    return true;
}


bool
tg_schema_read_size(tg_schema_compiler_t *c, tg_schema_node_t *node, const json_t *value,
    const char *keyword)
{
    size_t               size, *where;
    tg_schema_array_t   *array;
    tg_schema_string_t  *string;
    tg_schema_object_t  *object;

    if (!tg_schema_size_of(value, &size)) {
        return tg_schema_fail(c, node->source, keyword, NULL,
                              "must be a non-negative integer");
    }

    where = NULL;

    if (strcmp(keyword + 3, "Length") == 0) {
        string = tg_schema_string_of(c, node);

        if (string != NULL) {
            where = keyword[1] == 'i' ? &string->min_length : &string->max_length;
        }

    } else if (strcmp(keyword + 3, "Properties") == 0) {
        object = tg_schema_object_of(c, node);

        if (object != NULL) {
            where = keyword[1] == 'i' ? &object->min_properties : &object->max_properties;
        }

    } else {
        array = tg_schema_array_of(c, node);

        if (array != NULL && strcmp(keyword + 3, "Items") == 0) {
            where = keyword[1] == 'i' ? &array->min_items : &array->max_items;

        } else if (array != NULL) {
            where = keyword[1] == 'i' ? &array->min_contains : &array->max_contains;
        }
    }

    if (where == NULL) {
        return tg_schema_no_memory(c);
    }

    *where = size;

    return true;
}


bool
tg_schema_read_unique(tg_schema_compiler_t *c, tg_schema_node_t *node, const json_t *value,
    const char *keyword)
{
    tg_schema_array_t  *array;

    if (!json_is_boolean(value)) {
        return tg_schema_fail(c, node->source, keyword, NULL, "must be a boolean");
    }

    array = tg_schema_array_of(c, node);
    if (array == NULL) {
        return tg_schema_no_memory(c);
    }

    array->unique = json_is_true(value);

    return true;
}


bool
tg_schema_read_pattern(tg_schema_compiler_t *c, tg_schema_node_t *node, const json_t *value,
    const char *keyword)
{
    char                 reason[120];
    tg_str_t             text;
    tg_schema_string_t  *string;

    if (!json_is_string(value)) {
        return tg_schema_fail(c, node->source, keyword, NULL, "must be a string");
    }

    string = tg_schema_string_of(c, node);
    if (string == NULL) {
        return tg_schema_no_memory(c);
    }

    if (c->shape_only) {
        return true;
    }

    text = (tg_str_t) { json_string_length(value), json_string_value(value) };
    string->pattern = tg_schema_pattern_compile(c->schema, text, reason, sizeof(reason));

    return string->pattern != NULL
           || tg_schema_fail(c, node->source, keyword, NULL, "%s", reason);
}
