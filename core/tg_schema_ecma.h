/*
 * The state of the translation of one pattern, shared by tg_schema_ecma.c (groups
 * and quantifiers) and tg_schema_escape.c (characters, escapes, classes).
 */

#ifndef TG_SCHEMA_ECMA_H
#define TG_SCHEMA_ECMA_H

#include "tg_schema_internal.h"


#define TG_SCHEMA_MAX_GROUPS     100

typedef struct {
    const char        *p;
    const char        *end;
    tg_buf_t          *out;
    tg_schema_cost_t  *cost;
    const char        *reason;
    bool               quantifiable;      /* may a quantifier follow here? */
    unsigned           groups;            /* in the whole pattern */
    tg_str_t           names[TG_SCHEMA_MAX_GROUPS + 1];
} tg_schema_ecma_t;

/* What one escape stands for. */
typedef enum {
    TG_SCHEMA_ESC_ERROR,
    TG_SCHEMA_ESC_CHAR,      /* a code point, not written yet */
    TG_SCHEMA_ESC_SET        /* a set of characters, already written */
} tg_schema_esc_e;

tg_schema_esc_e tg_schema_ecma_escape(tg_schema_ecma_t *t, bool in_class,
    uint32_t *cp);
bool tg_schema_ecma_class(tg_schema_ecma_t *t);
bool tg_schema_ecma_char(tg_schema_ecma_t *t, uint32_t *cp);
bool tg_schema_ecma_put(tg_schema_ecma_t *t, const char *text);
bool tg_schema_ecma_put_cp(tg_schema_ecma_t *t, uint32_t cp);
bool tg_schema_ecma_error(tg_schema_ecma_t *t, const char *reason);

#endif /* TG_SCHEMA_ECMA_H */
