/*
 * Identifiers, anchors and references. Every reference is bound to a node of the
 * same document when the schema is compiled; what lies elsewhere is refused, and
 * nothing is fetched. It must not know what the schemas assert.
 */

#include "tg_schema_internal.h"

#include <stdio.h>
#include <stdlib.h>


static bool tg_schema_read_id(tg_schema_compiler_t *c, tg_schema_node_t *node,
    const char *id);
static bool tg_schema_add_resource(tg_schema_compiler_t *c, tg_schema_node_t *node,
    const char *uri);
static bool tg_schema_read_anchor(tg_schema_compiler_t *c, tg_schema_node_t *node,
    const char *keyword, bool dynamic);
static bool tg_schema_add_anchor(tg_schema_compiler_t *c, tg_schema_node_t *node,
    const char *keyword, const char *name, bool dynamic);
static const tg_schema_anchor_t *tg_schema_find_anchor(const tg_schema_compiler_t *c,
    uint16_t resource, const char *name);
static bool tg_schema_bind(tg_schema_compiler_t *c, const tg_schema_ref_t *ref);
static tg_schema_node_t *tg_schema_target(tg_schema_compiler_t *c,
    const tg_schema_ref_t *ref, const tg_schema_anchor_t **anchor);
static bool tg_schema_find_resource(tg_schema_compiler_t *c, const tg_schema_ref_t *ref,
    tg_str_t base, uint16_t *resource);
static tg_schema_node_t *tg_schema_walk(tg_schema_compiler_t *c,
    const tg_schema_ref_t *ref, uint16_t resource, char *pointer);
static const json_t *tg_schema_step(const json_t *at, char *token);
static tg_schema_node_t *tg_schema_meta(tg_schema_compiler_t *c, tg_schema_draft_e draft);
static bool tg_schema_flatten(tg_schema_compiler_t *c, tg_schema_node_t *node);
static bool tg_schema_can_alias(const tg_schema_compiler_t *c,
    const tg_schema_node_t *node);


/* Reads what names a schema object, before anything inside it is read. */
bool
tg_schema_identify(tg_schema_compiler_t *c, tg_schema_node_t *node)
{
    const json_t  *id;

    id = json_object_get(node->source, "$id");

    if (c->resources[node->resource].draft == TG_SCHEMA_DRAFT7
        && json_object_get(node->source, "$ref") != NULL)
    {
        /* $ref hides its siblings there */
        return true;
    }

    if (id != NULL) {
        if (!json_is_string(id)) {
            return tg_schema_fail(c, node->source, "$id", NULL, "must be a string");
        }

        if (!tg_schema_read_id(c, node, json_string_value(id))) {
            return false;
        }
    }

    if (c->resources[node->resource].draft == TG_SCHEMA_DRAFT7) {
        return true;
    }

    return tg_schema_read_anchor(c, node, "$anchor", false)
           && tg_schema_read_anchor(c, node, "$dynamicAnchor", true);
}


bool
tg_schema_read_ref(tg_schema_compiler_t *c, tg_schema_node_t *node, const json_t *value,
    const char *keyword)
{
    tg_schema_logic_t  *logic;

    if (!json_is_string(value)) {
        return tg_schema_fail(c, node->source, keyword, NULL, "must be a string");
    }

    logic = tg_schema_logic_of(c, node);

    if (logic == NULL
        || !tg_schema_grow(&c->refs, &c->cap_refs, c->nrefs + 1, sizeof(c->refs[0])))
    {
        return tg_schema_no_memory(c);
    }

    if (strcmp(keyword, "$ref") == 0) {
        logic->wants_ref = true;

    } else {
        logic->wants_dynamic = true;
        c->schema->has_dynamic = true;
    }

    c->refs[c->nrefs++] = (tg_schema_ref_t) { node, json_string_value(value), keyword };

    return true;
}


/* Binds all references; the list grows while places that no keyword reaches are
 * read because something refers to them. */
bool
tg_schema_resolve(tg_schema_compiler_t *c)
{
    size_t           i;
    tg_schema_ref_t  ref;

    for (i = 0; i < c->nrefs; i++) {
        ref = c->refs[i];

        if (!tg_schema_bind(c, &ref)) {
            return false;
        }
    }

    for (i = 0; i < c->nrefs; i++) {
        if (!tg_schema_flatten(c, c->refs[i].node)) {
            return false;
        }
    }

    return true;
}


static bool
tg_schema_read_id(tg_schema_compiler_t *c, tg_schema_node_t *node, const char *id)
{
    char         uri[TG_SCHEMA_MAX_URI];
    size_t       len;
    const char  *fragment;

    len = strcspn(id, "#");
    fragment = id[len] == '#' ? id + len + 1 : "";

    if (*fragment != '\0'
        && c->resources[node->resource].draft == TG_SCHEMA_2020_12 && !c->shape_only)
    {
        return tg_schema_fail(c, node->source, "$id", NULL,
                              "must have no fragment; use $anchor");
    }

    if (len != 0) {
        if (!tg_schema_uri_resolve(c->resources[node->resource].uri,
                                   (tg_str_t) { len, id }, uri, sizeof(uri)))
        {
            return tg_schema_fail(c, node->source, "$id", NULL, "is too long");
        }

        if (!tg_schema_add_resource(c, node, uri)) {
            return false;
        }
    }

    return *fragment == '\0'
           || tg_schema_add_anchor(c, node, "$id", fragment, false);
}


static bool
tg_schema_add_resource(tg_schema_compiler_t *c, tg_schema_node_t *node, const char *uri)
{
    char                  *copy;
    size_t                 i;
    const json_t          *schema;
    tg_schema_draft_e      draft;
    tg_schema_resource_t  *r;

    copy = tg_schema_alloc(c->schema, strlen(uri) + 1);
    if (copy == NULL) {
        return tg_schema_no_memory(c);
    }

    memcpy(copy, uri, strlen(uri) + 1);

    if (node->source == c->schema->document) {
        c->resources[0].uri = copy;
        return true;
    }

    for (i = 0; i < c->nresources && !c->shape_only; i++) {
        if (strcmp(c->resources[i].uri, uri) == 0) {
            return tg_schema_fail(c, node->source, "$id", NULL,
                                  "identifies another schema of the document already");
        }
    }

    if (c->nresources >= TG_SCHEMA_MAX_IDS) {
        return tg_schema_fail(c, node->source, "$id", NULL, "more than %d identifiers",
                              TG_SCHEMA_MAX_IDS);
    }

    if (!tg_schema_grow(&c->resources, &c->cap_resources, c->nresources + 1,
                        sizeof(c->resources[0])))
    {
        return tg_schema_no_memory(c);
    }

    draft = c->resources[node->resource].draft;
    schema = json_object_get(node->source, "$schema");

    if (schema != NULL && !c->shape_only
        && (!json_is_string(schema)
            || !tg_schema_known_draft(json_string_value(schema), &draft)))
    {
        return tg_schema_fail(c, node->source, "$schema", NULL,
                              "only JSON Schema drafts 2020-12 and 7 are supported");
    }

    r = &c->resources[c->nresources];
    *r = (tg_schema_resource_t) { copy, node->source, draft };
    node->resource = (uint16_t) c->nresources++;

    return true;
}


static bool
tg_schema_read_anchor(tg_schema_compiler_t *c, tg_schema_node_t *node,
    const char *keyword, bool dynamic)
{
    size_t         len;
    const char    *name;
    const json_t  *value;

    static const char  letters[] =
        "-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";

    value = json_object_get(node->source, keyword);
    if (value == NULL) {
        return true;
    }

    name = json_is_string(value) ? json_string_value(value) : "";
    len = strspn(name, letters);

    if (len != 0 && strchr("-.0123456789", name[0]) != NULL) {
        /* a name starts with a letter or an underscore */
        len = 0;
    }

    if (len == 0 || name[len] != '\0') {
        return tg_schema_fail(c, node->source, keyword, NULL,
                              "must be a name of letters, digits and _ - .");
    }

    return tg_schema_add_anchor(c, node, keyword, name, dynamic);
}


static bool
tg_schema_add_anchor(tg_schema_compiler_t *c, tg_schema_node_t *node,
    const char *keyword, const char *name, bool dynamic)
{
    tg_schema_t               *schema;
    const tg_schema_anchor_t  *old;

    schema = c->schema;
    old = tg_schema_find_anchor(c, node->resource, name);

    if (old != NULL) {
        if (old->node == node) {
            schema->anchors[old - schema->anchors].dynamic |= dynamic;
            return true;
        }

        return c->shape_only
               || tg_schema_fail(c, node->source, keyword, NULL,
                                 "names another schema of the document already");
    }

    if (schema->nanchors >= TG_SCHEMA_MAX_IDS) {
        return tg_schema_fail(c, node->source, keyword, NULL, "more than %d anchors",
                              TG_SCHEMA_MAX_IDS);
    }

    if (!tg_schema_grow(&schema->anchors, &c->cap_anchors, schema->nanchors + 1,
                        sizeof(schema->anchors[0])))
    {
        return tg_schema_no_memory(c);
    }

    schema->anchors[schema->nanchors++] =
        (tg_schema_anchor_t) { name, node->resource, dynamic, node };

    return true;
}


static const tg_schema_anchor_t *
tg_schema_find_anchor(const tg_schema_compiler_t *c, uint16_t resource, const char *name)
{
    size_t                     i;
    const tg_schema_anchor_t  *a;

    for (i = 0; i < c->schema->nanchors; i++) {
        a = &c->schema->anchors[i];

        if (a->resource == resource && strcmp(a->name, name) == 0) {
            return a;
        }
    }

    return NULL;
}


static bool
tg_schema_bind(tg_schema_compiler_t *c, const tg_schema_ref_t *ref)
{
    tg_schema_node_t          *target;
    tg_schema_logic_t         *logic;
    const tg_schema_anchor_t  *anchor;

    anchor = NULL;

    target = tg_schema_target(c, ref, &anchor);
    if (target == NULL) {
        return false;
    }

    logic = ref->node->logic;

    if (strcmp(ref->keyword, "$ref") == 0) {
        logic->ref = target;
        return true;
    }

    logic->dynamic = target;
    logic->dynamic_name = anchor != NULL && anchor->dynamic ? anchor->name : NULL;

    return true;
}


static tg_schema_node_t *
tg_schema_target(tg_schema_compiler_t *c, const tg_schema_ref_t *ref,
    const tg_schema_anchor_t **anchor)
{
    char               fragment[TG_SCHEMA_MAX_URI];
    size_t             len;
    uint16_t           resource;
    tg_str_t           base, after;
    tg_schema_draft_e  draft;

    len = strcspn(ref->uri, "#");
    base = (tg_str_t) { len, ref->uri };
    after = ref->uri[len] == '#' ? tg_str_of(ref->uri + len + 1) : tg_str("");

    if (!tg_schema_uri_decode(after, fragment, sizeof(fragment))) {
        (void) tg_schema_fail(c, ref->node->source, ref->keyword, NULL,
                              "has an invalid fragment");
        return NULL;
    }

    if (!tg_schema_find_resource(c, ref, base, &resource)) {

        if (tg_schema_known_draft(ref->uri, &draft)) {
            return tg_schema_meta(c, draft);
        }

        (void) tg_schema_fail(c, ref->node->source, ref->keyword, NULL,
                              "remote references are refused: %.80s", ref->uri);
        return NULL;
    }

    if (fragment[0] == '\0' || fragment[0] == '/') {
        return tg_schema_walk(c, ref, resource, fragment);
    }

    *anchor = tg_schema_find_anchor(c, resource, fragment);

    if (*anchor == NULL) {
        (void) tg_schema_fail(c, ref->node->source, ref->keyword, NULL,
                              "there is no anchor \"%.60s\"", fragment);
        return NULL;
    }

    return (*anchor)->node;
}


static bool
tg_schema_find_resource(tg_schema_compiler_t *c, const tg_schema_ref_t *ref,
    tg_str_t base, uint16_t *resource)
{
    char    uri[TG_SCHEMA_MAX_URI];
    size_t  i;

    if (base.len == 0) {
        *resource = ref->node->resource;
        return true;
    }

    if (!tg_schema_uri_resolve(c->resources[ref->node->resource].uri, base, uri,
                               sizeof(uri)))
    {
        return false;
    }

    for (i = 0; i < c->nresources; i++) {
        if (strcmp(c->resources[i].uri, uri) == 0) {
            *resource = (uint16_t) i;
            return true;
        }
    }

    return false;
}


/* Follows a JSON pointer from the root of a resource. What it passes through may be
 * of an embedded resource, whose identifiers then count for the target. */
static tg_schema_node_t *
tg_schema_walk(tg_schema_compiler_t *c, const tg_schema_ref_t *ref, uint16_t resource,
    char *pointer)
{
    char                    *token, *next;
    const json_t            *at;
    const tg_schema_node_t  *node;

    at = c->resources[resource].root;

    for (token = pointer; token != NULL && *token == '/'; token = next) {
        token++;
        next = strchr(token, '/');

        if (next != NULL) {
            *next = '\0';
        }

        at = tg_schema_step(at, token);

        if (at == NULL) {
            (void) tg_schema_fail(c, ref->node->source, ref->keyword, NULL,
                                  "refers to nothing: %.80s", ref->uri);
            return NULL;
        }

        if (next != NULL) {
            *next = '/';
        }

        node = json_is_object(at) ? tg_schema_find_node(c, at) : NULL;

        if (node != NULL) {
            resource = node->resource;
        }
    }

    if (!json_is_object(at) && !json_is_boolean(at)) {
        (void) tg_schema_fail(c, ref->node->source, ref->keyword, NULL,
                              "refers to what is no schema: %.80s", ref->uri);
        return NULL;
    }

    return tg_schema_parse(c, at, resource, ref->node->source, ref->keyword, NULL);
}


static const json_t *
tg_schema_step(const json_t *at, char *token)
{
    char   *from, *to;
    size_t  i;

    if (json_is_array(at)) {

        if (*token == '\0' || strspn(token, "0123456789") != strlen(token)
            || strlen(token) > 9 || (token[0] == '0' && token[1] != '\0'))
        {
            return NULL;
        }

        i = (size_t) strtoul(token, NULL, 10);

        return json_array_get(at, i);
    }

    for (from = to = token; *from != '\0'; from++) {
        *to = *from;

        if (*from == '~' && (from[1] == '0' || from[1] == '1')) {
            *to = from[1] == '0' ? '~' : '/';
            from++;
        }

        to++;
    }

    *to = '\0';

    return json_object_get(at, token);
}


/* The node that stands for a whole meta-schema: the compiler itself judges. */
static tg_schema_node_t *
tg_schema_meta(tg_schema_compiler_t *c, tg_schema_draft_e draft)
{
    tg_schema_node_t  *node;

    if (c->meta[draft] == NULL) {
        node = tg_schema_alloc(c->schema, sizeof(*node));

        if (node == NULL) {
            (void) tg_schema_no_memory(c);
            return NULL;
        }

        node->types = TG_SCHEMA_ANY;
        node->is_schema = true;
        node->meta_draft = draft;
        c->meta[draft] = node;
    }

    return c->meta[draft];
}


/*
 * A node that is nothing but a reference is skipped at evaluation. Where schemas
 * look at the dynamic scope it must stay if it brings a resource of its own in.
 */
static bool
tg_schema_flatten(tg_schema_compiler_t *c, tg_schema_node_t *node)
{
    size_t             hops;
    tg_schema_node_t  *at, *end, *next;

    hops = 0;

    for (end = node; end->alias == NULL && tg_schema_can_alias(c, end);
         end = end->logic->ref)
    {
        if (hops++ > c->nrefs) {
            return tg_schema_fail(c, node->source, "$ref", NULL,
                                  "refers to itself and to nothing else");
        }
    }

    if (end->alias != NULL) {
        end = end->alias;
    }

    for (at = node; at != end; at = next) {
        if (at->alias != NULL) {
            break;
        }

        next = at->logic->ref;
        at->alias = end;
    }

    return true;
}


static bool
tg_schema_can_alias(const tg_schema_compiler_t *c, const tg_schema_node_t *node)
{
    return node->ref_only
           && (!c->schema->has_dynamic || node->resource == node->logic->ref->resource);
}
