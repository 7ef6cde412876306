/*
 * JSON Schema, drafts 2020-12 and 7: compiled once, then used many times. Only
 * references inside the document are followed; "format" and the content keywords
 * are annotations. No pattern and no schema can take unbounded time: matches and
 * depth have limits, and passing one is a failed validation.
 */

#ifndef TG_SCHEMA_H
#define TG_SCHEMA_H

#include <jansson.h>

#include "tg.h"
#include "tg_buf.h"


#define TG_SCHEMA_MAX_NODES       20000     /* subschemas of one document */
#define TG_SCHEMA_MAX_DEPTH       256       /* of evaluation */
#define TG_SCHEMA_MAX_STEPS       2000000   /* keyword evaluations of one instance */
#define TG_SCHEMA_PATTERN_STEPS   50000     /* of backtracking, over all its patterns */
#define TG_SCHEMA_MAX_ERRORS      8         /* reported */
#define TG_SCHEMA_POINTER_MAX     256

typedef enum { TG_SCHEMA_2020_12, TG_SCHEMA_DRAFT7 } tg_schema_draft_e;

typedef struct tg_schema_s  tg_schema_t;

typedef struct {
    char         pointer[TG_SCHEMA_POINTER_MAX];   /* into the instance (or schema) */
    const char  *keyword;                          /* static, e.g. "required" */
    char         reason[160];                      /* short, helps a model mend it */
} tg_schema_error_t;

typedef struct {
    tg_schema_error_t  errors[TG_SCHEMA_MAX_ERRORS];
    size_t             count;
} tg_schema_errors_t;


/*
 * Compiles a schema. "$schema" in the document wins over `draft`. Returns a new
 * schema that keeps no reference to `document`, or NULL with one error whose
 * pointer is into the schema.
 */
tg_schema_t *tg_schema_compile(const json_t *document, tg_schema_draft_e draft,
    tg_schema_errors_t *errors);

void tg_schema_free(tg_schema_t *schema);

/* True when the instance is valid. Nothing is coerced. A schema may be used by
 * one thread at a time. errors may be NULL when only the verdict is wanted. */
bool tg_schema_validate(tg_schema_t *schema, const json_t *instance,
    tg_schema_errors_t *errors);

/* Appends "/pointer: reason; …" for a model to read. */
tg_rc_e tg_schema_errors_text(const tg_schema_errors_t *errors, tg_buf_t *out);

#endif /* TG_SCHEMA_H */
