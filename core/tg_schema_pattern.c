/*
 * Patterns of a schema as compiled PCRE2 code, and matching that always ends
 * soon. PCRE2's own limits are per starting point and count only backtracking, so
 * every item of a pattern reports by callout and pays steps for what it passed:
 * the bound of one validation holds for its patterns too. It must not know the
 * syntax of ECMA-262.
 */

#define PCRE2_CODE_UNIT_WIDTH  8

#include "tg_schema_internal.h"

#include <pcre2.h>
#include <stdio.h>


#define TG_SCHEMA_MAX_TRANSLATED  65536     /* bytes of PCRE2 text */
#define TG_SCHEMA_CHECK_STEP      64        /* bytes of UTF-8 checked for one step */

struct tg_schema_pattern_s {
    tg_schema_pattern_t  *next;
    pcre2_code           *code;
    tg_str_t              text;             /* as written, in the document */
    size_t                factor;           /* what one place costs */
    size_t                per_item;         /* steps of an item that passes nothing */
    bool                  backref;
};

/* One match under way. */
typedef struct {
    tg_schema_eval_t           *e;
    const tg_schema_pattern_t  *pattern;
    size_t                      last;       /* position of the callout before */
} tg_schema_match_t;

static pcre2_code *tg_schema_pattern_code(const tg_buf_t *text, bool backref,
    char *reason, size_t size);
static bool tg_schema_pattern_context(tg_schema_t *schema);
static int tg_schema_pattern_callout(pcre2_callout_block *block, void *data);


/* Text must live as long as the schema. NULL with a reason when it is refused. */
tg_schema_pattern_t *
tg_schema_pattern_compile(tg_schema_t *schema, tg_str_t text, char *reason, size_t size)
{
    bool                  ok;
    size_t                bytes;
    tg_buf_t              out;
    const char           *why;
    tg_schema_cost_t      cost;
    tg_schema_pattern_t  *pattern;

    if (text.len > TG_SCHEMA_MAX_PATTERN) {
        snprintf(reason, size, "the pattern is longer than %d bytes",
                 TG_SCHEMA_MAX_PATTERN);
        return NULL;
    }

    pattern = tg_schema_alloc(schema, sizeof(*pattern));
    if (pattern == NULL || !tg_schema_pattern_context(schema)) {
        snprintf(reason, size, "out of memory");
        return NULL;
    }

    tg_buf_init(&out, TG_SCHEMA_MAX_TRANSLATED);
    why = NULL;

    ok = tg_schema_ecma_translate(text, &out, &cost, &why);

    if (!ok) {
        snprintf(reason, size, "%s", why);

    } else {
        pattern->code = tg_schema_pattern_code(&out, cost.backref, reason, size);
        ok = pattern->code != NULL;
    }

    tg_buf_free(&out);

    if (!ok) {
        return NULL;
    }

    pattern->text = text;
    pattern->backref = cost.backref;
    pattern->factor = 1 + cost.class_items / TG_SCHEMA_SCAN_STEP;
    pattern->per_item = 1 + cost.repeat / TG_SCHEMA_SCAN_STEP;
    pattern->next = schema->patterns;
    schema->patterns = pattern;

    bytes = 0;
    (void) pcre2_pattern_info(pattern->code, PCRE2_INFO_SIZE, &bytes);
    schema->pattern_code += bytes;

    if (schema->pattern_code > TG_SCHEMA_MAX_PATTERN_CODE) {
        snprintf(reason, size, "the patterns of this schema are too large");
        return NULL;
    }

    return pattern;
}


void
tg_schema_patterns_free(tg_schema_t *schema)
{
    tg_schema_pattern_t  *pattern;

    for (pattern = schema->patterns; pattern != NULL; pattern = pattern->next) {
        pcre2_code_free(pattern->code);
    }

    pcre2_match_context_free(schema->match_context);
    schema->patterns = NULL;
    schema->match_context = NULL;
}


tg_str_t
tg_schema_pattern_text(const tg_schema_pattern_t *pattern)
{
    return pattern->text;
}


/* Does the pattern match anywhere in the text? A limit that is hit stops the whole
 * validation. */
bool
tg_schema_pattern_match(tg_schema_eval_t *e, const tg_schema_pattern_t *pattern,
    const char *text, size_t len, const tg_schema_path_t *path)
{
    int                rc;
    tg_schema_match_t  match;

    if (!tg_schema_spend(e, 1 + len / TG_SCHEMA_CHECK_STEP, path)) {
        return false;
    }

    if (e->match_data == NULL) {
        e->match_data = pcre2_match_data_create(1, NULL);

        if (e->match_data == NULL) {
            return tg_schema_stop(e, path, "out of memory");
        }
    }

    /* reading a text once or a few times is its due; what a pattern does beyond that
     * is paid from what all of them share */

    e->pattern_room += TG_SCHEMA_PATTERN_START + len * TG_SCHEMA_PATTERN_BYTE;

    match = (tg_schema_match_t) { e, pattern, 0 };
    (void) pcre2_set_callout(e->schema->match_context, tg_schema_pattern_callout, &match);

    rc = pcre2_match(pattern->code, (PCRE2_SPTR) text, len, 0, 0, e->match_data,
                     e->schema->match_context);

    if (rc >= 0) {
        return true;
    }

    switch (rc) {

    case PCRE2_ERROR_NOMATCH:
        return false;

    case PCRE2_ERROR_CALLOUT:
    case PCRE2_ERROR_MATCHLIMIT:
    case PCRE2_ERROR_DEPTHLIMIT:
    case PCRE2_ERROR_HEAPLIMIT:
        return tg_schema_stop(e, path, "matching the pattern takes too long");

    case PCRE2_ERROR_NOMEMORY:
        return tg_schema_stop(e, path, "out of memory");

    default:
        return tg_schema_stop(e, path, "the text cannot be matched");
    }
}


/* Backtracking may have left megabytes behind: they go after each validation. */
void
tg_schema_pattern_release(tg_schema_eval_t *e)
{
    pcre2_match_data_free(e->match_data);
    e->match_data = NULL;
}


static pcre2_code *
tg_schema_pattern_code(const tg_buf_t *text, bool backref, char *reason, size_t size)
{
    int          error;
    size_t       offset;
    uint32_t     options;
    pcre2_code  *code;
    PCRE2_UCHAR  message[120];

    options = PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_MATCH_UNSET_BACKREF
              | PCRE2_ALLOW_EMPTY_CLASS | PCRE2_NEVER_BACKSLASH_C | PCRE2_AUTO_CALLOUT;

    if (!backref) {
        options |= PCRE2_NO_AUTO_CAPTURE;
    }

    code = pcre2_compile((PCRE2_SPTR) (text->len == 0 ? "" : text->data), text->len,
                         options, &error, &offset, NULL);

    if (code == NULL) {
        (void) pcre2_get_error_message(error, message, sizeof(message));
        snprintf(reason, size, "%s", (const char *) message);
    }

    return code;
}


static bool
tg_schema_pattern_context(tg_schema_t *schema)
{
    pcre2_match_context  *context;

    if (schema->match_context != NULL) {
        return true;
    }

    context = pcre2_match_context_create(NULL);
    if (context == NULL) {
        return false;
    }

    (void) pcre2_set_match_limit(context, TG_SCHEMA_MATCH_LIMIT);
    (void) pcre2_set_depth_limit(context, TG_SCHEMA_MATCH_LIMIT);
    (void) pcre2_set_heap_limit(context, TG_SCHEMA_MATCH_HEAP);
    schema->match_context = context;

    return true;
}


static int
tg_schema_pattern_callout(pcre2_callout_block *block, void *data)
{
    size_t                      at, passed, steps;
    tg_schema_match_t          *match;
    const tg_schema_pattern_t  *pattern;

    match = data;
    pattern = match->pattern;
    at = block->current_position;

    passed = at > match->last ? at - match->last : match->last - at;

    if (pattern->backref) {
        /* a reference may compare all that lies before */
        passed += at;
    }

    match->last = at;
    steps = (pattern->per_item + passed / TG_SCHEMA_SCAN_STEP) * pattern->factor;
    match->e->steps += steps;
    match->e->pattern_steps += steps;

    return (match->e->steps > TG_SCHEMA_MAX_STEPS
            || match->e->pattern_steps > match->e->pattern_room)
           ? PCRE2_ERROR_CALLOUT : 0;
}
