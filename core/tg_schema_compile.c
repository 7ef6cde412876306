/*
 * Turns schema objects of the document into nodes, one node per object, and finds
 * the node of an object again. What single keywords mean is told by the table in
 * tg_schema_keyword.c; references are left for tg_schema_ref.c.
 */

#include "tg_schema_internal.h"

#include <stdio.h>
#include <stdlib.h>


#define TG_SCHEMA_FIRST_SLOTS  64

static bool tg_schema_read_all(tg_schema_compiler_t *c, tg_schema_node_t *node);
static void tg_schema_finish(tg_schema_node_t *node);
static bool tg_schema_remember(tg_schema_compiler_t *c, tg_schema_node_t *node);
static bool tg_schema_more_slots(tg_schema_compiler_t *c);
static size_t tg_schema_slot_of(const tg_schema_compiler_t *c, const json_t *json);


/*
 * The node of a schema in the given resource, made when it is not there yet.
 * parent, keyword and member say where the value stands, for an error.
 */
tg_schema_node_t *
tg_schema_parse(tg_schema_compiler_t *c, const json_t *value, uint16_t resource,
    const json_t *parent, const char *keyword, const char *member)
{
    tg_schema_node_t  *node;

    if (json_is_true(value)) {
        return c->always;
    }

    if (json_is_false(value)) {
        return c->never;
    }

    if (!json_is_object(value)) {
        (void) tg_schema_fail(c, parent, keyword, member,
                              "must be a schema: an object or a boolean");
        return NULL;
    }

    node = tg_schema_find_node(c, value);
    if (node != NULL) {
        return node;
    }

    if (++c->nnodes > TG_SCHEMA_MAX_NODES) {
        (void) tg_schema_fail(c, NULL, "limit", NULL, "more than %d subschemas",
                              TG_SCHEMA_MAX_NODES);
        return NULL;
    }

    node = tg_schema_alloc(c->schema, sizeof(*node));
    if (node == NULL) {
        (void) tg_schema_no_memory(c);
        return NULL;
    }

    node->source = value;
    node->resource = resource;
    node->types = TG_SCHEMA_ANY;

    if (!tg_schema_remember(c, node) || !tg_schema_identify(c, node)
        || !tg_schema_read_all(c, node))
    {
        return NULL;
    }

    tg_schema_finish(node);

    return node;
}


/* A schema that stands in a keyword of the node's own object. */
tg_schema_node_t *
tg_schema_parse_in(tg_schema_compiler_t *c, const tg_schema_node_t *node,
    const json_t *value, const char *keyword, const char *member)
{
    return tg_schema_parse(c, value, node->resource, node->source, keyword, member);
}


/* A keyword whose value is a list of schemas. */
bool
tg_schema_parse_list(tg_schema_compiler_t *c, const tg_schema_node_t *node,
    const json_t *value, const char *keyword, tg_schema_list_t *list)
{
    char                index[24];
    size_t              i, n;
    tg_schema_node_t  **nodes;

    n = json_array_size(value);

    if (n == 0) {
        return tg_schema_fail(c, node->source, keyword, NULL,
                              "must be a non-empty array of schemas");
    }

    nodes = tg_schema_alloc(c->schema, n * sizeof(nodes[0]));
    if (nodes == NULL) {
        return tg_schema_no_memory(c);
    }

    for (i = 0; i < n; i++) {
        snprintf(index, sizeof(index), "%zu", i);
        nodes[i] = tg_schema_parse_in(c, node, json_array_get(value, i), keyword, index);

        if (nodes[i] == NULL) {
            return false;
        }
    }

    list->nodes = nodes;
    list->n = n;

    return true;
}


tg_schema_node_t *
tg_schema_find_node(const tg_schema_compiler_t *c, const json_t *json)
{
    return c->nslots == 0 ? NULL : c->slots[tg_schema_slot_of(c, json)].node;
}


bool
tg_schema_known_draft(const char *uri, tg_schema_draft_e *draft)
{
    size_t  i, len;

    static const struct {
        const char         *uri;
        tg_schema_draft_e   draft;
    }  drafts[] = {
        { "://json-schema.org/draft/2020-12/schema", TG_SCHEMA_2020_12 },
        { "://json-schema.org/draft-07/schema", TG_SCHEMA_DRAFT7 }
    };

    if (strncmp(uri, "http", 4) != 0) {
        return false;
    }

    uri += uri[4] == 's' ? 5 : 4;
    len = strcspn(uri, "#");

    if (uri[len] == '#' && uri[len + 1] != '\0') {
        return false;
    }

    for (i = 0; i < sizeof(drafts) / sizeof(drafts[0]); i++) {
        if (len == strlen(drafts[i].uri) && memcmp(uri, drafts[i].uri, len) == 0) {
            *draft = drafts[i].draft;
            return true;
        }
    }

    return false;
}


tg_schema_number_t *
tg_schema_number_of(tg_schema_compiler_t *c, tg_schema_node_t *node)
{
    if (node->number == NULL) {
        node->number = tg_schema_alloc(c->schema, sizeof(*node->number));
    }

    return node->number;
}


tg_schema_string_t *
tg_schema_string_of(tg_schema_compiler_t *c, tg_schema_node_t *node)
{
    if (node->string == NULL) {
        node->string = tg_schema_alloc(c->schema, sizeof(*node->string));

        if (node->string != NULL) {
            node->string->max_length = SIZE_MAX;
        }
    }

    return node->string;
}


tg_schema_array_t *
tg_schema_array_of(tg_schema_compiler_t *c, tg_schema_node_t *node)
{
    if (node->array == NULL) {
        node->array = tg_schema_alloc(c->schema, sizeof(*node->array));

        if (node->array != NULL) {
            node->array->max_items = SIZE_MAX;
            node->array->min_contains = 1;
            node->array->max_contains = SIZE_MAX;
        }
    }

    return node->array;
}


tg_schema_object_t *
tg_schema_object_of(tg_schema_compiler_t *c, tg_schema_node_t *node)
{
    if (node->object == NULL) {
        node->object = tg_schema_alloc(c->schema, sizeof(*node->object));

        if (node->object != NULL) {
            node->object->max_properties = SIZE_MAX;
        }
    }

    return node->object;
}


tg_schema_logic_t *
tg_schema_logic_of(tg_schema_compiler_t *c, tg_schema_node_t *node)
{
    if (node->logic == NULL) {
        node->logic = tg_schema_alloc(c->schema, sizeof(*node->logic));
    }

    return node->logic;
}


static bool
tg_schema_read_all(tg_schema_compiler_t *c, tg_schema_node_t *node)
{
    bool                only_ref;
    void               *iter;
    json_t             *object;
    const char         *key;
    tg_schema_draft_e   draft;

    draft = c->resources[node->resource].draft;
    object = (json_t *) (uintptr_t) node->source;      /* iteration changes nothing */

    /* draft 7: whatever stands beside $ref is not read; definitions are kept, because
     * identifiers in them count */
    only_ref = draft == TG_SCHEMA_DRAFT7 && json_object_get(object, "$ref") != NULL;

    for (iter = json_object_iter(object); iter != NULL;
         iter = json_object_iter_next(object, iter))
    {
        key = json_object_iter_key(iter);

        if (only_ref && strcmp(key, "$ref") != 0 && strcmp(key, "definitions") != 0) {
            continue;
        }

        if (!tg_schema_read_keyword(c, node, draft, key, json_object_iter_value(iter))) {
            return false;
        }
    }

    return true;
}


static void
tg_schema_finish(tg_schema_node_t *node)
{
    bool                      plain;
    const tg_schema_logic_t  *l;

    l = node->logic;

    plain = node->types == TG_SCHEMA_ANY && node->constant == NULL
            && node->choice == NULL && node->number == NULL && node->string == NULL
            && node->array == NULL && node->object == NULL;

    if (l == NULL) {
        node->trivial = plain;
        return;
    }

    node->ref_only = plain && l->wants_ref && !l->wants_dynamic && l->all.n == 0
                     && l->any.n == 0 && l->one.n == 0 && l->negated == NULL
                     && l->when == NULL && l->then == NULL && l->otherwise == NULL;
}


static bool
tg_schema_remember(tg_schema_compiler_t *c, tg_schema_node_t *node)
{
    size_t  i;

    if (c->used_slots * 2 >= c->nslots && !tg_schema_more_slots(c)) {
        return tg_schema_no_memory(c);
    }

    i = tg_schema_slot_of(c, node->source);
    c->slots[i] = (tg_schema_slot_t) { node->source, node };
    c->used_slots++;

    return true;
}


static bool
tg_schema_more_slots(tg_schema_compiler_t *c)
{
    size_t             i, n;
    tg_schema_slot_t  *old;

    old = c->slots;
    n = c->nslots;

    c->nslots = n == 0 ? TG_SCHEMA_FIRST_SLOTS : n * 2;
    c->slots = calloc(c->nslots, sizeof(c->slots[0]));

    if (c->slots == NULL) {
        c->slots = old;
        c->nslots = n;
        return false;
    }

    for (i = 0; i < n; i++) {
        if (old[i].json != NULL) {
            c->slots[tg_schema_slot_of(c, old[i].json)] = old[i];
        }
    }

    free(old);

    return true;
}


/* The slot that holds the object, or the free one where it belongs. */
static size_t
tg_schema_slot_of(const tg_schema_compiler_t *c, const json_t *json)
{
    size_t  i;

    i = (size_t) (((uint64_t) (uintptr_t) json >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 20);

    for (i &= c->nslots - 1; c->slots[i].json != NULL && c->slots[i].json != json; ) {
        i = (i + 1) & (c->nslots - 1);
    }

    return i;
}
