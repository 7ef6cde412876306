/*
 * The public face of the JSON Schema unit: compile, validate, free; the memory of
 * a compiled schema and the one error of a failed compilation. It must not know
 * what any keyword means.
 */

#include "tg_schema_internal.h"

#include <stdio.h>
#include <stdlib.h>


#define TG_SCHEMA_BLOCK  8176         /* bytes of one piece of schema memory */
#define TG_SCHEMA_ALIGN  16

struct tg_schema_block_s {
    tg_schema_block_t  *next;
    size_t              used, size;
    _Alignas(TG_SCHEMA_ALIGN) char data[];
};

static bool tg_schema_build(tg_schema_compiler_t *c, const json_t *document,
    tg_schema_draft_e draft);
static bool tg_schema_root_draft(tg_schema_compiler_t *c, tg_schema_draft_e *draft);
static void tg_schema_compiler_free(tg_schema_compiler_t *c);
static bool tg_schema_locate(const json_t *in, const json_t *what, char *out,
    size_t size, size_t *len);


tg_schema_t *
tg_schema_compile(const json_t *document, tg_schema_draft_e draft,
    tg_schema_errors_t *errors)
{
    bool                  ok;
    tg_schema_compiler_t  c;

    memset(&c, 0, sizeof(c));

    if (errors != NULL) {
        errors->count = 0;
    }

    c.errors = errors;
    c.schema = calloc(1, sizeof(*c.schema));

    if (c.schema == NULL) {
        (void) tg_schema_no_memory(&c);
        return NULL;
    }

    ok = tg_schema_build(&c, document, draft) && tg_schema_resolve(&c);
    tg_schema_compiler_free(&c);

    if (!ok) {
        tg_schema_free(c.schema);
        return NULL;
    }

    return c.schema;
}


void
tg_schema_free(tg_schema_t *schema)
{
    tg_schema_block_t  *block, *next;

    if (schema == NULL) {
        return;
    }

    tg_schema_patterns_free(schema);

    for (block = schema->blocks; block != NULL; block = next) {
        next = block->next;
        free(block);
    }

    json_decref(schema->document);
    free(schema->anchors);
    free(schema);
}


bool
tg_schema_validate(tg_schema_t *schema, const json_t *instance,
    tg_schema_errors_t *errors)
{
    bool              valid;
    tg_schema_eval_t  e;

    e.schema = schema;
    e.errors = errors;
    e.quiet = 0;
    e.depth = 0;
    e.steps = 0;
    e.pattern_steps = 0;
    e.pattern_room = TG_SCHEMA_PATTERN_STEPS;
    e.stopped = false;
    e.match_data = NULL;
    e.nscopes = 0;

    if (errors != NULL) {
        errors->count = 0;
    }

    valid = tg_schema_eval(&e, schema->root, instance, NULL, NULL);

    if (e.match_data != NULL) {
        tg_schema_pattern_release(&e);
    }

    return valid && !e.stopped;
}


/* Is the document what the meta-schema of the draft accepts? References in it are
 * not followed and patterns not compiled: a meta-schema does neither. */
bool
tg_schema_judge(const json_t *document, tg_schema_draft_e draft)
{
    bool                  ok;
    tg_schema_compiler_t  c;

    memset(&c, 0, sizeof(c));
    c.shape_only = true;
    c.schema = calloc(1, sizeof(*c.schema));

    ok = c.schema != NULL && tg_schema_build(&c, document, draft);

    tg_schema_compiler_free(&c);
    tg_schema_free(c.schema);

    return ok;
}


/* Zeroed memory that lives as long as the schema. */
void *
tg_schema_alloc(tg_schema_t *schema, size_t size)
{
    size_t              room;
    void               *p;
    tg_schema_block_t  *block;

    size = (size + TG_SCHEMA_ALIGN - 1) & ~(size_t) (TG_SCHEMA_ALIGN - 1);
    block = schema->blocks;

    if (block == NULL || block->size - block->used < size) {
        room = size > TG_SCHEMA_BLOCK / 4 ? size : TG_SCHEMA_BLOCK;

        if (schema->blocks == NULL && size <= TG_SCHEMA_BLOCK / 8) {
            /* most schemas are small and there are thousands of them */
            room = TG_SCHEMA_BLOCK / 4;
        }

        block = calloc(1, sizeof(*block) + room);
        if (block == NULL) {
            return NULL;
        }

        block->size = room;
        block->next = schema->blocks;
        schema->blocks = block;
    }

    p = block->data + block->used;
    block->used += size;

    return p;
}


/* Makes room for `need` elements of `size` bytes; array is a pointer to a pointer. */
bool
tg_schema_grow(void *array, size_t *cap, size_t need, size_t size)
{
    void    *p, *old;
    size_t   n;

    if (need <= *cap) {
        return true;
    }

    n = *cap == 0 ? 8 : *cap * 2;

    memcpy(&old, array, sizeof(old));

    p = realloc(old, n * size);
    if (p == NULL) {
        return false;
    }

    memcpy(array, &p, sizeof(p));
    *cap = n;

    return true;
}


/*
 * Takes the first error of a compilation, at a keyword of the schema object `at`
 * (and a member of its value). Always false.
 */
bool
tg_schema_fail(tg_schema_compiler_t *c, const json_t *at, const char *keyword,
    const char *member, const char *fmt, ...)
{
    size_t              len;
    va_list             args;
    tg_schema_error_t  *error;

    if (c->errors == NULL || c->errors->count != 0) {
        return false;
    }

    error = &c->errors->errors[0];
    c->errors->count = 1;
    error->pointer[0] = '\0';
    error->keyword = keyword;
    len = 0;

    if (at != NULL
        && tg_schema_locate(c->schema->document, at, error->pointer,
                            sizeof(error->pointer), &len)
        && json_object_get(at, keyword) != NULL
        && tg_schema_pointer_key(error->pointer, sizeof(error->pointer), &len, keyword,
                                 strlen(keyword))
        && member != NULL)
    {
        (void) tg_schema_pointer_key(error->pointer, sizeof(error->pointer), &len, member,
                                     strlen(member));
    }

    va_start(args, fmt);
    tg_schema_set_reason(error, fmt, args);
    va_end(args);

    return false;
}


bool
tg_schema_no_memory(tg_schema_compiler_t *c)
{
    return tg_schema_fail(c, NULL, "limit", NULL, "out of memory");
}


static bool
tg_schema_build(tg_schema_compiler_t *c, const json_t *document, tg_schema_draft_e draft)
{
    size_t        count;
    tg_schema_t  *schema;

    schema = c->schema;

    /* before anything walks it by recursion */
    if (!tg_schema_measurable(document, &count)) {
        return tg_schema_fail(c, NULL, "limit", NULL,
                              "the schema is nested deeper than %d or too large",
                              TG_SCHEMA_MAX_DEPTH);
    }

    schema->document = json_deep_copy(document);
    c->always = tg_schema_alloc(schema, sizeof(*c->always));
    c->never = tg_schema_alloc(schema, sizeof(*c->never));

    if ((schema->document == NULL && document != NULL) || c->always == NULL
        || c->never == NULL
        || !tg_schema_grow(&c->resources, &c->cap_resources, 1, sizeof(*c->resources)))
    {
        return tg_schema_no_memory(c);
    }

    c->always->trivial = true;
    c->never->never = true;

    if (!tg_schema_root_draft(c, &draft)) {
        return false;
    }

    c->resources[0] = (tg_schema_resource_t) { "", schema->document, draft };
    c->nresources = 1;

    schema->root = tg_schema_parse(c, schema->document, 0, NULL, "schema", NULL);

    return schema->root != NULL;
}


static bool
tg_schema_root_draft(tg_schema_compiler_t *c, tg_schema_draft_e *draft)
{
    const json_t  *named;

    named = json_object_get(c->schema->document, "$schema");

    if (named == NULL || c->shape_only) {
        return true;
    }

    if (!json_is_string(named) || !tg_schema_known_draft(json_string_value(named), draft)) {
        return tg_schema_fail(c, c->schema->document, "$schema", NULL,
                              "only JSON Schema drafts 2020-12 and 7 are supported");
    }

    return true;
}


static void
tg_schema_compiler_free(tg_schema_compiler_t *c)
{
    free(c->resources);
    free(c->refs);
    free(c->slots);
}


/* Writes the pointer to `what`, which is found by identity: the document is our own
 * copy, so no object is in it twice. */
static bool
tg_schema_locate(const json_t *in, const json_t *what, char *out, size_t size,
    size_t *len)
{
    char     index[24];
    void    *iter;
    size_t   i, start;
    json_t  *object;

    if (in == what) {
        return true;
    }

    start = *len;

    for (i = 0; i < json_array_size(in); i++) {
        snprintf(index, sizeof(index), "%zu", i);

        if (json_is_object(json_array_get(in, i)) || json_is_array(json_array_get(in, i))) {
            (void) tg_schema_pointer_key(out, size, len, index, strlen(index));

            if (tg_schema_locate(json_array_get(in, i), what, out, size, len)) {
                return true;
            }

            *len = start;
            out[start] = '\0';
        }
    }

    object = (json_t *) (uintptr_t) in;

    for (iter = json_object_iter(object); iter != NULL;
         iter = json_object_iter_next(object, iter))
    {
        (void) tg_schema_pointer_key(out, size, len, json_object_iter_key(iter),
                                     json_object_iter_key_len(iter));

        if (tg_schema_locate(json_object_iter_value(iter), what, out, size, len)) {
            return true;
        }

        *len = start;
        out[start] = '\0';
    }

    return false;
}
