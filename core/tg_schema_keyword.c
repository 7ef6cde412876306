/*
 * The table of keywords: in which drafts each one exists and who reads its value
 * into a node. A value that the meta-schema would refuse is refused here, by name;
 * a key that is in no table is not a keyword and says nothing. It must not know
 * how keywords are evaluated.
 */

#include "tg_schema_internal.h"

#include <stdlib.h>


typedef struct {
    const char         *name;
    unsigned            drafts;
    tg_schema_read_pt   read;
} tg_schema_keyword_t;

static const tg_schema_keyword_t *tg_schema_find_keyword(const char *key);
static int tg_schema_keyword_cmp(const void *key, const void *entry);

#define tg_schema_reader(name)                                                    \
    static bool name(tg_schema_compiler_t *c, tg_schema_node_t *node,             \
        const json_t *value, const char *keyword)

tg_schema_reader(tg_schema_read_any);
tg_schema_reader(tg_schema_read_text);
tg_schema_reader(tg_schema_read_flag);
tg_schema_reader(tg_schema_read_examples);
tg_schema_reader(tg_schema_read_foreign);
tg_schema_reader(tg_schema_read_annotated);
tg_schema_reader(tg_schema_read_items);
tg_schema_reader(tg_schema_read_prefix);
tg_schema_reader(tg_schema_read_additional_items);
tg_schema_reader(tg_schema_read_array_schema);
tg_schema_reader(tg_schema_read_object_schema);
tg_schema_reader(tg_schema_read_all_of);
tg_schema_reader(tg_schema_read_any_of);
tg_schema_reader(tg_schema_read_one_of);
tg_schema_reader(tg_schema_read_condition);

/* sorted by name */
static const tg_schema_keyword_t  tg_schema_keywords[] = {
    { "$anchor", TG_SCHEMA_IN_2020_12, tg_schema_read_text },
    { "$comment", TG_SCHEMA_IN_BOTH, tg_schema_read_text },
    { "$defs", TG_SCHEMA_IN_2020_12, tg_schema_read_defs },
    { "$dynamicAnchor", TG_SCHEMA_IN_2020_12, tg_schema_read_text },
    { "$dynamicRef", TG_SCHEMA_IN_2020_12, tg_schema_read_ref },
    { "$id", TG_SCHEMA_IN_BOTH, tg_schema_read_text },
    { "$recursiveAnchor", TG_SCHEMA_IN_2020_12, tg_schema_read_foreign },
    { "$recursiveRef", TG_SCHEMA_IN_2020_12, tg_schema_read_foreign },
    { "$ref", TG_SCHEMA_IN_BOTH, tg_schema_read_ref },
    { "$schema", TG_SCHEMA_IN_BOTH, tg_schema_read_text },
    { "$vocabulary", TG_SCHEMA_IN_2020_12, tg_schema_read_any },
    { "additionalItems", TG_SCHEMA_IN_7, tg_schema_read_additional_items },
    { "additionalProperties", TG_SCHEMA_IN_BOTH, tg_schema_read_object_schema },
    { "allOf", TG_SCHEMA_IN_BOTH, tg_schema_read_all_of },
    { "anyOf", TG_SCHEMA_IN_BOTH, tg_schema_read_any_of },
    { "const", TG_SCHEMA_IN_BOTH, tg_schema_read_const },
    { "contains", TG_SCHEMA_IN_BOTH, tg_schema_read_array_schema },
    { "contentEncoding", TG_SCHEMA_IN_BOTH, tg_schema_read_text },
    { "contentMediaType", TG_SCHEMA_IN_BOTH, tg_schema_read_text },
    { "contentSchema", TG_SCHEMA_IN_2020_12, tg_schema_read_annotated },
    { "default", TG_SCHEMA_IN_BOTH, tg_schema_read_any },
    { "definitions", TG_SCHEMA_IN_BOTH, tg_schema_read_defs },
    { "dependencies", TG_SCHEMA_IN_BOTH, tg_schema_read_dependents },
    { "dependentRequired", TG_SCHEMA_IN_2020_12, tg_schema_read_dependents },
    { "dependentSchemas", TG_SCHEMA_IN_2020_12, tg_schema_read_dependents },
    { "deprecated", TG_SCHEMA_IN_2020_12, tg_schema_read_flag },
    { "description", TG_SCHEMA_IN_BOTH, tg_schema_read_text },
    { "else", TG_SCHEMA_IN_BOTH, tg_schema_read_condition },
    { "enum", TG_SCHEMA_IN_BOTH, tg_schema_read_enum },
    { "examples", TG_SCHEMA_IN_BOTH, tg_schema_read_examples },
    { "exclusiveMaximum", TG_SCHEMA_IN_BOTH, tg_schema_read_bound },
    { "exclusiveMinimum", TG_SCHEMA_IN_BOTH, tg_schema_read_bound },
    { "format", TG_SCHEMA_IN_BOTH, tg_schema_read_text },
    { "if", TG_SCHEMA_IN_BOTH, tg_schema_read_condition },
    { "items", TG_SCHEMA_IN_BOTH, tg_schema_read_items },
    { "maxContains", TG_SCHEMA_IN_2020_12, tg_schema_read_size },
    { "maxItems", TG_SCHEMA_IN_BOTH, tg_schema_read_size },
    { "maxLength", TG_SCHEMA_IN_BOTH, tg_schema_read_size },
    { "maxProperties", TG_SCHEMA_IN_BOTH, tg_schema_read_size },
    { "maximum", TG_SCHEMA_IN_BOTH, tg_schema_read_bound },
    { "minContains", TG_SCHEMA_IN_2020_12, tg_schema_read_size },
    { "minItems", TG_SCHEMA_IN_BOTH, tg_schema_read_size },
    { "minLength", TG_SCHEMA_IN_BOTH, tg_schema_read_size },
    { "minProperties", TG_SCHEMA_IN_BOTH, tg_schema_read_size },
    { "minimum", TG_SCHEMA_IN_BOTH, tg_schema_read_bound },
    { "multipleOf", TG_SCHEMA_IN_BOTH, tg_schema_read_bound },
    { "not", TG_SCHEMA_IN_BOTH, tg_schema_read_condition },
    { "oneOf", TG_SCHEMA_IN_BOTH, tg_schema_read_one_of },
    { "pattern", TG_SCHEMA_IN_BOTH, tg_schema_read_pattern },
    { "patternProperties", TG_SCHEMA_IN_BOTH, tg_schema_read_patterns },
    { "prefixItems", TG_SCHEMA_IN_2020_12, tg_schema_read_prefix },
    { "properties", TG_SCHEMA_IN_BOTH, tg_schema_read_properties },
    { "propertyNames", TG_SCHEMA_IN_BOTH, tg_schema_read_object_schema },
    { "readOnly", TG_SCHEMA_IN_BOTH, tg_schema_read_flag },
    { "required", TG_SCHEMA_IN_BOTH, tg_schema_read_properties },
    { "then", TG_SCHEMA_IN_BOTH, tg_schema_read_condition },
    { "title", TG_SCHEMA_IN_BOTH, tg_schema_read_text },
    { "type", TG_SCHEMA_IN_BOTH, tg_schema_read_type },
    { "unevaluatedItems", TG_SCHEMA_IN_2020_12, tg_schema_read_array_schema },
    { "unevaluatedProperties", TG_SCHEMA_IN_2020_12, tg_schema_read_object_schema },
    { "uniqueItems", TG_SCHEMA_IN_BOTH, tg_schema_read_unique },
    { "writeOnly", TG_SCHEMA_IN_BOTH, tg_schema_read_flag }
};


bool
tg_schema_read_keyword(tg_schema_compiler_t *c, tg_schema_node_t *node,
    tg_schema_draft_e draft, const char *key, const json_t *value)
{
    const tg_schema_keyword_t  *keyword;

    keyword = tg_schema_find_keyword(key);

    if (keyword == NULL || (keyword->drafts & 1U << draft) == 0) {
        return true;
    }

    return keyword->read(c, node, value, keyword->name);
}


static const tg_schema_keyword_t *
tg_schema_find_keyword(const char *key)
{
    return bsearch(key, tg_schema_keywords,
                   sizeof(tg_schema_keywords) / sizeof(tg_schema_keywords[0]),
                   sizeof(tg_schema_keywords[0]), tg_schema_keyword_cmp);
}


static int
tg_schema_keyword_cmp(const void *key, const void *entry)
{
    return strcmp(key, ((const tg_schema_keyword_t *) entry)->name);
}


/* Annotations: read for their form alone. */

tg_schema_reader(tg_schema_read_any)
{
    (void) c;
    (void) node;
    (void) value;
    (void) keyword;

    return true;
}


tg_schema_reader(tg_schema_read_text)
{
    return json_is_string(value)
           || tg_schema_fail(c, node->source, keyword, NULL, "must be a string");
}


tg_schema_reader(tg_schema_read_flag)
{
    return json_is_boolean(value)
           || tg_schema_fail(c, node->source, keyword, NULL, "must be a boolean");
}


tg_schema_reader(tg_schema_read_examples)
{
    return json_is_array(value)
           || tg_schema_fail(c, node->source, keyword, NULL, "must be an array");
}


/* It would assert something in the draft it is of: silence would be a fault. */
tg_schema_reader(tg_schema_read_foreign)
{
    (void) value;

    return tg_schema_fail(c, node->source, keyword, NULL,
                          "is a keyword of another draft and is not supported");
}


/* A schema that nothing is checked against; identifiers in it count. */
tg_schema_reader(tg_schema_read_annotated)
{
    return tg_schema_parse_in(c, node, value, keyword, NULL) != NULL;
}


/* Draft 7 has the list form here, 2020-12 has it as prefixItems. */
tg_schema_reader(tg_schema_read_items)
{
    tg_schema_array_t  *array;

    if (json_is_array(value)) {
        if (c->resources[node->resource].draft == TG_SCHEMA_2020_12) {
            return tg_schema_fail(c, node->source, keyword, NULL,
                                  "must be a schema; a list of schemas is prefixItems");
        }

        if (json_array_size(value) == 0) {
            return true;
        }

        return tg_schema_read_prefix(c, node, value, keyword);
    }

    array = tg_schema_array_of(c, node);
    if (array == NULL) {
        return tg_schema_no_memory(c);
    }

    array->rest_keyword = keyword;
    array->rest = tg_schema_parse_in(c, node, value, keyword, NULL);

    return array->rest != NULL;
}


tg_schema_reader(tg_schema_read_prefix)
{
    tg_schema_array_t  *array;

    array = tg_schema_array_of(c, node);
    if (array == NULL) {
        return tg_schema_no_memory(c);
    }

    return tg_schema_parse_list(c, node, value, keyword, &array->prefix);
}


/* Draft 7: says nothing unless items is a list. */
tg_schema_reader(tg_schema_read_additional_items)
{
    tg_schema_node_t   *rest;
    tg_schema_array_t  *array;

    rest = tg_schema_parse_in(c, node, value, keyword, NULL);
    if (rest == NULL) {
        return false;
    }

    if (!json_is_array(json_object_get(node->source, "items"))) {
        return true;
    }

    array = tg_schema_array_of(c, node);
    if (array == NULL) {
        return tg_schema_no_memory(c);
    }

    array->rest = rest;
    array->rest_keyword = keyword;

    return true;
}


tg_schema_reader(tg_schema_read_array_schema)
{
    tg_schema_node_t   *schema;
    tg_schema_array_t  *array;

    schema = tg_schema_parse_in(c, node, value, keyword, NULL);
    if (schema == NULL) {
        return false;
    }

    array = tg_schema_array_of(c, node);
    if (array == NULL) {
        return tg_schema_no_memory(c);
    }

    if (strcmp(keyword, "contains") == 0) {
        array->contains = schema;

    } else {
        array->unevaluated = schema;
    }

    return true;
}


tg_schema_reader(tg_schema_read_object_schema)
{
    tg_schema_node_t    *schema;
    tg_schema_object_t  *object;

    schema = tg_schema_parse_in(c, node, value, keyword, NULL);
    if (schema == NULL) {
        return false;
    }

    object = tg_schema_object_of(c, node);
    if (object == NULL) {
        return tg_schema_no_memory(c);
    }

    if (strcmp(keyword, "additionalProperties") == 0) {
        object->additional = schema;

    } else if (strcmp(keyword, "propertyNames") == 0) {
        object->names = schema;

    } else {
        object->unevaluated = schema;
    }

    return true;
}


tg_schema_reader(tg_schema_read_all_of)
{
    tg_schema_logic_t  *logic;

    logic = tg_schema_logic_of(c, node);

    return logic == NULL ? tg_schema_no_memory(c)
                         : tg_schema_parse_list(c, node, value, keyword, &logic->all);
}


tg_schema_reader(tg_schema_read_any_of)
{
    tg_schema_logic_t  *logic;

    logic = tg_schema_logic_of(c, node);

    return logic == NULL ? tg_schema_no_memory(c)
                         : tg_schema_parse_list(c, node, value, keyword, &logic->any);
}


tg_schema_reader(tg_schema_read_one_of)
{
    tg_schema_logic_t  *logic;

    logic = tg_schema_logic_of(c, node);

    return logic == NULL ? tg_schema_no_memory(c)
                         : tg_schema_parse_list(c, node, value, keyword, &logic->one);
}


tg_schema_reader(tg_schema_read_condition)
{
    tg_schema_node_t   *schema, **where;
    tg_schema_logic_t  *logic;

    schema = tg_schema_parse_in(c, node, value, keyword, NULL);
    if (schema == NULL) {
        return false;
    }

    logic = tg_schema_logic_of(c, node);
    if (logic == NULL) {
        return tg_schema_no_memory(c);
    }

    where = keyword[0] == 'i' ? &logic->when
            : keyword[0] == 't' ? &logic->then
            : keyword[0] == 'e' ? &logic->otherwise : &logic->negated;
    *where = schema;

    return true;
}
