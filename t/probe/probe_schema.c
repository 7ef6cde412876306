/*
 * tg-probe schema: compiles JSON Schemas and validates instances. A schema may be
 * named by "schema_id" in one line and used by "schema_ref" in later ones, so that
 * a long run compiles it once. It must not know what schemas mean.
 */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tg_probe.h"
#include "tg_schema.h"


#define PROBE_MAX_SCHEMAS  20000


/* Named schemas, kept until the process ends: name -> place in the list. */
static json_t        *probe_names;
static tg_schema_t  **probe_schemas;
static size_t         probe_count;

static json_t *probe_not_compiled(const tg_schema_errors_t *errors);
static json_t *probe_verdict(tg_schema_t *schema, const json_t *instance);
static json_t *probe_keep(const char *name, tg_schema_t *schema);
static tg_schema_t *probe_kept(const char *name);


json_t *
tg_probe_schema(const json_t *line)
{
    json_t              *out;
    const char          *draft, *name;
    tg_schema_t         *schema;
    const json_t        *document, *instance;
    tg_schema_errors_t   errors;

    document = json_object_get(line, "schema");
    instance = json_object_get(line, "instance");
    draft = json_string_value(json_object_get(line, "draft"));
    name = json_string_value(json_object_get(line, "schema_ref"));

    if (name != NULL) {
        schema = probe_kept(name);

        if (schema == NULL || instance == NULL) {
            return tg_probe_error(schema == NULL ? "unknown schema_ref" : "no instance");
        }

        return probe_verdict(schema, instance);
    }

    if (document == NULL) {
        return tg_probe_error("neither schema nor schema_ref");
    }

    if (json_object_get(line, "draft") != NULL
        && (draft == NULL || (strcmp(draft, "7") != 0 && strcmp(draft, "2020-12") != 0)))
    {
        return tg_probe_error("draft is \"7\" or \"2020-12\"");
    }

    schema = tg_schema_compile(document,
                               draft != NULL && draft[0] == '7' ? TG_SCHEMA_DRAFT7
                                                                : TG_SCHEMA_2020_12,
                               &errors);
    if (schema == NULL) {
        return probe_not_compiled(&errors);
    }

    name = json_string_value(json_object_get(line, "schema_id"));

    if (name != NULL) {
        return probe_keep(name, schema);
    }

    out = instance == NULL ? json_pack("{s:b}", "compiled", 1)
                           : probe_verdict(schema, instance);
    tg_schema_free(schema);

    return out;
}


static json_t *
probe_not_compiled(const tg_schema_errors_t *errors)
{
    return json_pack("{s:b, s:s, s:s, s:s}", "compiled", 0,
                     "pointer", errors->errors[0].pointer,
                     "keyword", errors->errors[0].keyword,
                     "reason", errors->errors[0].reason);
}


static json_t *
probe_verdict(tg_schema_t *schema, const json_t *instance)
{
    bool                 valid;
    size_t               i;
    json_t              *list;
    tg_schema_errors_t   errors;

    valid = tg_schema_validate(schema, instance, &errors);
    list = json_array();

    for (i = 0; i < errors.count; i++) {
        json_array_append_new(list, json_pack("{s:s, s:s}",
                                              "pointer", errors.errors[i].pointer,
                                              "keyword", errors.errors[i].keyword));
    }

    return json_pack("{s:b, s:o}", "valid", valid, "errors", list);
}


/* Takes the schema over. A name that is given again stands for the new schema. */
static json_t *
probe_keep(const char *name, tg_schema_t *schema)
{
    tg_schema_t  **more;

    if (probe_names == NULL) {
        probe_names = json_object();
    }

    more = probe_count < PROBE_MAX_SCHEMAS
           ? realloc(probe_schemas, (probe_count + 1) * sizeof(*more)) : NULL;

    if (more == NULL
        || json_object_set_new(probe_names, name, json_integer((json_int_t) probe_count))
           != 0)
    {
        if (more != NULL) {
            probe_schemas = more;
        }

        tg_schema_free(schema);

        return tg_probe_error("too many schemas");
    }

    probe_schemas = more;
    probe_schemas[probe_count++] = schema;

    return json_pack("{s:s, s:b}", "schema_id", name, "compiled", 1);
}


static tg_schema_t *
probe_kept(const char *name)
{
    const json_t  *at;

    at = json_object_get(probe_names, name);

    return at == NULL ? NULL : probe_schemas[json_integer_value(at)];
}
