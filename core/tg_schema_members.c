/*
 * Keywords whose value is an object of schemas or a list of names: properties and
 * required, patternProperties, the dependency keywords, definitions. It must not
 * know how they are evaluated.
 */

#include "tg_schema_internal.h"

#include <stdlib.h>


static bool tg_schema_check_names(tg_schema_compiler_t *c, const tg_schema_node_t *node,
    const json_t *names, const char *keyword, const char *member);
static bool tg_schema_require_names(tg_schema_object_t *object, size_t declared,
    const json_t *required);


/*
 * properties and required make one table, so that a single walk over an instance
 * serves both. Whichever of the two comes first builds it.
 */
bool
tg_schema_read_properties(tg_schema_compiler_t *c, tg_schema_node_t *node,
    const json_t *value, const char *keyword)
{
    void                *iter;
    size_t               n;
    json_t              *properties;
    const json_t        *required;
    tg_schema_prop_t    *prop;
    tg_schema_object_t  *object;

    if (keyword[0] == 'p' && !json_is_object(value)) {
        return tg_schema_fail(c, node->source, keyword, NULL, "must be an object");
    }

    if (keyword[0] == 'r' && !tg_schema_check_names(c, node, value, keyword, NULL)) {
        return false;
    }

    object = tg_schema_object_of(c, node);
    if (object == NULL) {
        return tg_schema_no_memory(c);
    }

    if (object->props_built) {
        return true;
    }

    object->props_built = true;
    properties = json_object_get(node->source, "properties");
    required = json_object_get(node->source, "required");

    n = json_object_size(properties) + json_array_size(required);
    object->props = tg_schema_alloc(c->schema, (n + 1) * sizeof(object->props[0]));

    if (object->props == NULL) {
        return tg_schema_no_memory(c);
    }

    for (iter = json_object_iter(properties); iter != NULL;
         iter = json_object_iter_next(properties, iter))
    {
        prop = &object->props[object->nprops++];
        prop->name = json_object_iter_key(iter);
        prop->len = json_object_iter_key_len(iter);
        prop->node = tg_schema_parse_in(c, node, json_object_iter_value(iter),
                                        "properties", prop->name);

        if (prop->node == NULL) {
            return false;
        }
    }

    qsort(object->props, object->nprops, sizeof(object->props[0]), tg_schema_prop_cmp);

    if (!tg_schema_require_names(object, object->nprops, required)) {
        return tg_schema_fail(c, node->source, "required", NULL,
                              "must be an array of different strings");
    }

    qsort(object->props, object->nprops, sizeof(object->props[0]), tg_schema_prop_cmp);

    return true;
}


bool
tg_schema_read_patterns(tg_schema_compiler_t *c, tg_schema_node_t *node,
    const json_t *value, const char *keyword)
{
    char                       reason[120];
    void                      *iter;
    json_t                    *object;
    tg_str_t                   text;
    tg_schema_object_t        *o;
    tg_schema_pattern_prop_t  *p;

    if (!json_is_object(value)) {
        return tg_schema_fail(c, node->source, keyword, NULL, "must be an object");
    }

    o = tg_schema_object_of(c, node);
    if (o == NULL) {
        return tg_schema_no_memory(c);
    }

    o->patterns = tg_schema_alloc(c->schema,
                                  (json_object_size(value) + 1) * sizeof(o->patterns[0]));
    if (o->patterns == NULL) {
        return tg_schema_no_memory(c);
    }

    object = (json_t *) (uintptr_t) value;      /* iteration changes nothing */

    for (iter = json_object_iter(object); iter != NULL;
         iter = json_object_iter_next(object, iter))
    {
        text = (tg_str_t) { json_object_iter_key_len(iter), json_object_iter_key(iter) };
        p = &o->patterns[o->npatterns];

        p->node = tg_schema_parse_in(c, node, json_object_iter_value(iter), keyword,
                                     text.data);
        if (p->node == NULL) {
            return false;
        }

        if (c->shape_only) {
            continue;
        }

        p->pattern = tg_schema_pattern_compile(c->schema, text, reason, sizeof(reason));

        if (p->pattern == NULL) {
            return tg_schema_fail(c, node->source, keyword, text.data, "%s", reason);
        }

        o->npatterns++;
    }

    return true;
}


/*
 * dependentRequired has lists of names, dependentSchemas has schemas, dependencies
 * has either. All go to one list.
 */
bool
tg_schema_read_dependents(tg_schema_compiler_t *c, tg_schema_node_t *node,
    const json_t *value, const char *keyword)
{
    void                   *iter;
    json_t                 *object, *member;
    const char             *key;
    tg_schema_object_t     *o;
    tg_schema_dependent_t  *old, *d;

    if (!json_is_object(value)) {
        return tg_schema_fail(c, node->source, keyword, NULL, "must be an object");
    }

    o = tg_schema_object_of(c, node);
    if (o == NULL) {
        return tg_schema_no_memory(c);
    }

    old = o->dependents;
    o->dependents = tg_schema_alloc(c->schema, (json_object_size(value) + o->ndependents
                                                + 1) * sizeof(o->dependents[0]));
    if (o->dependents == NULL) {
        return tg_schema_no_memory(c);
    }

    if (o->ndependents != 0) {
        memcpy(o->dependents, old, o->ndependents * sizeof(o->dependents[0]));
    }

    object = (json_t *) (uintptr_t) value;

    for (iter = json_object_iter(object); iter != NULL;
         iter = json_object_iter_next(object, iter))
    {
        key = json_object_iter_key(iter);
        member = json_object_iter_value(iter);

        d = &o->dependents[o->ndependents++];
        d->name = key;
        d->len = json_object_iter_key_len(iter);
        d->keyword = keyword;

        if (strcmp(keyword, "dependentRequired") == 0
            || (strcmp(keyword, "dependencies") == 0 && json_is_array(member)))
        {
            if (!tg_schema_check_names(c, node, member, keyword, key)) {
                return false;
            }

            d->required = member;
            continue;
        }

        d->node = tg_schema_parse_in(c, node, member, keyword, key);
        if (d->node == NULL) {
            return false;
        }
    }

    return true;
}


bool
tg_schema_read_defs(tg_schema_compiler_t *c, tg_schema_node_t *node, const json_t *value,
    const char *keyword)
{
    void    *iter;
    json_t  *object;

    if (!json_is_object(value)) {
        return tg_schema_fail(c, node->source, keyword, NULL, "must be an object");
    }

    object = (json_t *) (uintptr_t) value;

    for (iter = json_object_iter(object); iter != NULL;
         iter = json_object_iter_next(object, iter))
    {
        if (tg_schema_parse_in(c, node, json_object_iter_value(iter), keyword,
                               json_object_iter_key(iter)) == NULL)
        {
            return false;
        }
    }

    return true;
}


/* The order of the table: length first, because it settles most comparisons. */
int
tg_schema_prop_cmp(const void *a, const void *b)
{
    const tg_schema_prop_t  *x, *y;

    x = a;
    y = b;

    if (x->len != y->len) {
        return x->len < y->len ? -1 : 1;
    }

    return memcmp(x->name, y->name, x->len);
}


static bool
tg_schema_check_names(tg_schema_compiler_t *c, const tg_schema_node_t *node,
    const json_t *names, const char *keyword, const char *member)
{
    bool           ok;
    size_t         i;
    json_t        *seen;
    const json_t  *name;

    seen = json_object();
    ok = seen != NULL && json_is_array(names);

    for (i = 0; ok && i < json_array_size(names); i++) {
        name = json_array_get(names, i);

        ok = json_is_string(name)
             && json_object_setn_new(seen, json_string_value(name),
                                     json_string_length(name), json_true()) == 0;
    }

    /* fewer keys than names: one is there twice */
    ok = ok && json_object_size(seen) == json_array_size(names);
    json_decref(seen);

    return ok || tg_schema_fail(c, node->source, keyword, member,
                                "must be an array of different strings");
}


/* Marks the required names in the sorted table of `declared` properties and appends
 * those that are not in it. */
static bool
tg_schema_require_names(tg_schema_object_t *object, size_t declared,
    const json_t *required)
{
    size_t             i;
    const json_t      *name;
    tg_schema_prop_t   key, *prop;

    memset(&key, 0, sizeof(key));

    for (i = 0; i < json_array_size(required); i++) {
        name = json_array_get(required, i);

        if (!json_is_string(name)) {
            return false;
        }

        key.name = json_string_value(name);
        key.len = json_string_length(name);

        prop = bsearch(&key, object->props, declared, sizeof(key), tg_schema_prop_cmp);

        if (prop == NULL) {
            prop = &object->props[object->nprops++];
            *prop = key;
        }

        prop->required = true;
        object->nrequired++;
    }

    return true;
}
