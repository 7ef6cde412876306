/*
 * What the files of the JSON Schema compiler and validator share: the compiled
 * form of a schema, the state of a compilation and of one validation. Nothing
 * outside core/tg_schema*.c may include it.
 *
 *   tg_schema.c           public entry points, memory, errors of compilation
 *   tg_schema_compile.c   a schema object becomes a node
 *   tg_schema_keyword.c   the table of keywords: who reads which value
 *   tg_schema_assert.c    keywords about types, values, bounds, patterns
 *   tg_schema_members.c   keywords whose value is an object of schemas or names
 *   tg_schema_ref.c       identifiers, anchors, references
 *   tg_schema_uri.c       RFC 3986 resolution
 *   tg_schema_ecma.c      ECMA-262 pattern text to PCRE2 pattern text
 *   tg_schema_escape.c    the same for escapes and classes
 *   tg_schema_unicode.c   names of Unicode properties
 *   tg_schema_pattern.c   compiling and running patterns within bounds
 *   tg_schema_value.c     numbers, equality, hashes, lengths
 *   tg_schema_validate.c  evaluation: types, values, what was evaluated
 *   tg_schema_logic.c     evaluation: schemas applied to the same place
 *   tg_schema_object.c    evaluation: keywords of objects
 *   tg_schema_array.c     evaluation: keywords of arrays
 *   tg_schema_report.c    errors, their pointers and their words
 */

#ifndef TG_SCHEMA_INTERNAL_H
#define TG_SCHEMA_INTERNAL_H

#include "tg_schema.h"

#include <stdarg.h>


#define TG_SCHEMA_MAX_VALUES         400000    /* JSON values of one schema document */
#define TG_SCHEMA_MAX_IDS            1000      /* resources and anchors, each */
#define TG_SCHEMA_MAX_URI            1024      /* bytes, resolved */
#define TG_SCHEMA_MAX_PATTERN        4096      /* bytes, as written */
#define TG_SCHEMA_MAX_PATTERN_CODE   4194304   /* bytes compiled, of one schema */
#define TG_SCHEMA_MATCH_LIMIT        1000000   /* PCRE2's own count, of one start */
#define TG_SCHEMA_MATCH_HEAP         16384     /* KiB of backtracking */
#define TG_SCHEMA_SCAN_STEP          16        /* bytes scanned that cost one step */
#define TG_SCHEMA_PATTERN_START      64        /* steps that a match may always take */
#define TG_SCHEMA_PATTERN_BYTE       8         /* … and for each byte of its text */
#define TG_SCHEMA_SMALL_SET          256       /* members tracked without malloc */
#define TG_SCHEMA_PAIRWISE           8         /* up to here uniqueItems compares all */

/* types of an instance; an integral number of any notation is an integer */
#define TG_SCHEMA_NULL       0x01
#define TG_SCHEMA_BOOLEAN    0x02
#define TG_SCHEMA_INTEGER    0x04
#define TG_SCHEMA_FRACTION   0x08
#define TG_SCHEMA_NUMBER     (TG_SCHEMA_INTEGER | TG_SCHEMA_FRACTION)
#define TG_SCHEMA_STRING     0x10
#define TG_SCHEMA_ARRAY      0x20
#define TG_SCHEMA_OBJECT     0x40
#define TG_SCHEMA_ANY        0x7f

#define TG_SCHEMA_IN_7        (1U << TG_SCHEMA_DRAFT7)
#define TG_SCHEMA_IN_2020_12  (1U << TG_SCHEMA_2020_12)
#define TG_SCHEMA_IN_BOTH     (TG_SCHEMA_IN_7 | TG_SCHEMA_IN_2020_12)

typedef struct tg_schema_node_s     tg_schema_node_t;
typedef struct tg_schema_pattern_s  tg_schema_pattern_t;
typedef struct tg_schema_eval_s     tg_schema_eval_t;

typedef struct {
    bool     is_int;
    int64_t  i;
    double   d;
} tg_schema_num_t;

/* |value| = mantissa * 10^exponent, exact for what was written in <= 15 digits */
typedef struct {
    uint64_t  mantissa;
    int       exponent;
} tg_schema_decimal_t;

typedef struct {
    tg_schema_node_t  **nodes;
    size_t              n;
} tg_schema_list_t;

typedef struct {
    bool                 has_minimum, has_maximum;
    bool                 has_exclusive_minimum, has_exclusive_maximum, has_multiple;
    tg_schema_num_t      minimum, maximum, exclusive_minimum, exclusive_maximum;
    tg_schema_num_t      multiple;
    tg_schema_decimal_t  multiple_decimal;
} tg_schema_number_t;

typedef struct {
    size_t                min_length;
    size_t                max_length;     /* SIZE_MAX: none */
    tg_schema_pattern_t  *pattern;
} tg_schema_string_t;

typedef struct {
    tg_schema_list_t   prefix;
    tg_schema_node_t  *rest;              /* items after the prefix */
    const char        *rest_keyword;
    tg_schema_node_t  *contains;
    tg_schema_node_t  *unevaluated;
    size_t             min_contains, max_contains;
    size_t             min_items, max_items;
    bool               unique;
} tg_schema_array_t;

typedef struct {
    const char        *name;
    size_t             len;
    tg_schema_node_t  *node;              /* NULL: only named by "required" */
    bool               required;
} tg_schema_prop_t;

typedef struct {
    tg_schema_pattern_t  *pattern;
    tg_schema_node_t     *node;
} tg_schema_pattern_prop_t;

typedef struct {
    const char        *name;
    size_t             len;
    tg_schema_node_t  *node;              /* applied, or NULL */
    const json_t      *required;          /* array of names, or NULL */
    const char        *keyword;
} tg_schema_dependent_t;

typedef struct {
    tg_schema_prop_t          *props;     /* sorted by length, then bytes */
    size_t                     nprops, nrequired;
    bool                       props_built;
    tg_schema_pattern_prop_t  *patterns;
    size_t                     npatterns;
    tg_schema_dependent_t     *dependents;
    size_t                     ndependents;
    tg_schema_node_t          *additional, *names, *unevaluated;
    size_t                     min_properties, max_properties;
} tg_schema_object_t;

typedef struct {
    tg_schema_list_t   all, any, one;
    tg_schema_node_t  *negated, *when, *then, *otherwise;
    tg_schema_node_t  *ref;
    bool               wants_ref, wants_dynamic;
    tg_schema_node_t  *dynamic;           /* where $dynamicRef starts from */
    const char        *dynamic_name;      /* NULL: it is an ordinary reference */
} tg_schema_logic_t;

typedef struct {
    uint64_t       hash;
    const json_t  *value;
} tg_schema_choice_t;

/* values of "enum", or the one of "const", sorted by hash */
typedef struct {
    tg_schema_choice_t  *choices;
    size_t               n;
    const json_t        *source;          /* the array, or the value of "const" */
} tg_schema_values_t;

struct tg_schema_node_s {
    const json_t        *source;          /* in the document; NULL for true, false */
    tg_schema_node_t    *alias;           /* evaluate this one in its place */
    uint16_t             resource;
    uint8_t              types;
    bool                 trivial;         /* accepts all and says nothing */
    bool                 never;           /* the schema false */
    bool                 is_schema;       /* stands for a meta-schema */
    bool                 ref_only;        /* "$ref" is all it asserts */
    tg_schema_draft_e    meta_draft;
    tg_schema_values_t  *constant, *choice;
    tg_schema_number_t  *number;
    tg_schema_string_t  *string;
    tg_schema_array_t   *array;
    tg_schema_object_t  *object;
    tg_schema_logic_t   *logic;
};

typedef struct {
    const char        *name;
    uint16_t           resource;
    bool               dynamic;
    tg_schema_node_t  *node;
} tg_schema_anchor_t;

typedef struct tg_schema_block_s  tg_schema_block_t;

struct tg_schema_s {
    json_t               *document;       /* our own copy; nodes point into it */
    tg_schema_node_t     *root;
    tg_schema_block_t    *blocks;         /* memory of all that is compiled */
    tg_schema_pattern_t  *patterns;
    size_t                pattern_code;   /* bytes */
    tg_schema_anchor_t   *anchors;        /* kept for $dynamicRef */
    size_t                nanchors;
    bool                  has_dynamic;
    void                 *match_context;
};

typedef struct {
    const char         *uri;
    const json_t       *root;
    tg_schema_draft_e   draft;
} tg_schema_resource_t;

typedef struct {
    tg_schema_node_t  *node;
    const char        *uri;
    const char        *keyword;
} tg_schema_ref_t;

typedef struct {
    const json_t      *json;
    tg_schema_node_t  *node;
} tg_schema_slot_t;

typedef struct {
    tg_schema_t           *schema;
    tg_schema_errors_t    *errors;
    tg_schema_node_t      *always, *never;
    tg_schema_node_t      *meta[2];       /* by draft; NULL until referred to */
    size_t                 nnodes;
    bool                   shape_only;    /* judge a schema, follow no reference */
    tg_schema_resource_t  *resources;
    size_t                 nresources, cap_resources;
    tg_schema_ref_t       *refs;
    size_t                 nrefs, cap_refs;
    tg_schema_slot_t      *slots;         /* JSON object -> node, open addressing */
    size_t                 nslots, used_slots;
    size_t                 cap_anchors;
} tg_schema_compiler_t;

/* A place in the instance, linked from the leaf to the root on the C stack. */
typedef struct tg_schema_path_s  tg_schema_path_t;

struct tg_schema_path_s {
    const tg_schema_path_t  *parent;
    const char              *key;         /* NULL: an index */
    size_t                   len;         /* of the key, or the index itself */
};

/* Members of one object or array that some keyword has evaluated. */
typedef struct {
    uint64_t  *bits;
    size_t     n;
    uint64_t   small[TG_SCHEMA_SMALL_SET / 64];
} tg_schema_track_t;

struct tg_schema_eval_s {
    tg_schema_t         *schema;
    tg_schema_errors_t  *errors;          /* NULL: the verdict alone */
    unsigned             quiet;           /* > 0: inside a branch that may fail */
    size_t               depth, steps;
    size_t               pattern_steps;   /* spent on patterns */
    size_t               pattern_room;    /* that may be: grows with the texts */
    bool                 stopped;         /* a bound was hit: invalid whatever else */
    void                *match_data;
    size_t               nscopes;
    uint16_t             scopes[TG_SCHEMA_MAX_DEPTH + 1];
};

/* What a pattern can cost besides the places that its matching passes. */
typedef struct {
    size_t  repeat;          /* the largest {n} */
    size_t  class_items;     /* ranges that are looked through one by one */
    bool    backref;
} tg_schema_cost_t;

/* Reads the value of one keyword into the node. */
typedef bool (*tg_schema_read_pt)(tg_schema_compiler_t *c, tg_schema_node_t *node,
    const json_t *value, const char *keyword);


/* tg_schema.c */
void *tg_schema_alloc(tg_schema_t *schema, size_t size);
bool tg_schema_grow(void *array, size_t *cap, size_t need, size_t size);
bool tg_schema_judge(const json_t *document, tg_schema_draft_e draft);
bool tg_schema_fail(tg_schema_compiler_t *c, const json_t *at, const char *keyword,
    const char *member, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
bool tg_schema_no_memory(tg_schema_compiler_t *c);

/* tg_schema_compile.c */
tg_schema_node_t *tg_schema_parse(tg_schema_compiler_t *c, const json_t *value,
    uint16_t resource, const json_t *parent, const char *keyword, const char *member);
tg_schema_node_t *tg_schema_parse_in(tg_schema_compiler_t *c,
    const tg_schema_node_t *node, const json_t *value, const char *keyword,
    const char *member);
bool tg_schema_parse_list(tg_schema_compiler_t *c, const tg_schema_node_t *node,
    const json_t *value, const char *keyword, tg_schema_list_t *list);
tg_schema_node_t *tg_schema_find_node(const tg_schema_compiler_t *c, const json_t *json);
bool tg_schema_known_draft(const char *uri, tg_schema_draft_e *draft);
tg_schema_number_t *tg_schema_number_of(tg_schema_compiler_t *c, tg_schema_node_t *node);
tg_schema_string_t *tg_schema_string_of(tg_schema_compiler_t *c, tg_schema_node_t *node);
tg_schema_array_t *tg_schema_array_of(tg_schema_compiler_t *c, tg_schema_node_t *node);
tg_schema_object_t *tg_schema_object_of(tg_schema_compiler_t *c, tg_schema_node_t *node);
tg_schema_logic_t *tg_schema_logic_of(tg_schema_compiler_t *c, tg_schema_node_t *node);

/* tg_schema_keyword.c */
bool tg_schema_read_keyword(tg_schema_compiler_t *c, tg_schema_node_t *node,
    tg_schema_draft_e draft, const char *key, const json_t *value);

/* tg_schema_assert.c */
bool tg_schema_read_type(tg_schema_compiler_t *c, tg_schema_node_t *node,
    const json_t *value, const char *keyword);
bool tg_schema_read_const(tg_schema_compiler_t *c, tg_schema_node_t *node,
    const json_t *value, const char *keyword);
bool tg_schema_read_enum(tg_schema_compiler_t *c, tg_schema_node_t *node,
    const json_t *value, const char *keyword);
bool tg_schema_read_bound(tg_schema_compiler_t *c, tg_schema_node_t *node,
    const json_t *value, const char *keyword);
bool tg_schema_read_size(tg_schema_compiler_t *c, tg_schema_node_t *node,
    const json_t *value, const char *keyword);
bool tg_schema_read_unique(tg_schema_compiler_t *c, tg_schema_node_t *node,
    const json_t *value, const char *keyword);
bool tg_schema_read_pattern(tg_schema_compiler_t *c, tg_schema_node_t *node,
    const json_t *value, const char *keyword);

/* tg_schema_members.c */
bool tg_schema_read_properties(tg_schema_compiler_t *c, tg_schema_node_t *node,
    const json_t *value, const char *keyword);
bool tg_schema_read_patterns(tg_schema_compiler_t *c, tg_schema_node_t *node,
    const json_t *value, const char *keyword);
bool tg_schema_read_dependents(tg_schema_compiler_t *c, tg_schema_node_t *node,
    const json_t *value, const char *keyword);
bool tg_schema_read_defs(tg_schema_compiler_t *c, tg_schema_node_t *node,
    const json_t *value, const char *keyword);
int tg_schema_prop_cmp(const void *a, const void *b);

/* tg_schema_ref.c */
bool tg_schema_identify(tg_schema_compiler_t *c, tg_schema_node_t *node);
bool tg_schema_read_ref(tg_schema_compiler_t *c, tg_schema_node_t *node,
    const json_t *value, const char *keyword);
bool tg_schema_resolve(tg_schema_compiler_t *c);

/* tg_schema_uri.c */
bool tg_schema_uri_resolve(const char *base, tg_str_t ref, char *out, size_t size);
bool tg_schema_uri_decode(tg_str_t text, char *out, size_t size);

/* tg_schema_ecma.c */
bool tg_schema_ecma_translate(tg_str_t pattern, tg_buf_t *out, tg_schema_cost_t *cost,
    const char **reason);

/* tg_schema_unicode.c */
bool tg_schema_unicode_property(tg_str_t text, bool negated, tg_buf_t *out);

/* tg_schema_pattern.c */
tg_schema_pattern_t *tg_schema_pattern_compile(tg_schema_t *schema, tg_str_t text,
    char *reason, size_t size);
void tg_schema_patterns_free(tg_schema_t *schema);
bool tg_schema_pattern_match(tg_schema_eval_t *e, const tg_schema_pattern_t *pattern,
    const char *text, size_t len, const tg_schema_path_t *path);
void tg_schema_pattern_release(tg_schema_eval_t *e);
tg_str_t tg_schema_pattern_text(const tg_schema_pattern_t *pattern);

/* tg_schema_value.c */
uint8_t tg_schema_type_of(const json_t *value);
tg_schema_num_t tg_schema_num(const json_t *value);
int tg_schema_num_cmp(const tg_schema_num_t *a, const tg_schema_num_t *b);
void tg_schema_num_text(const tg_schema_num_t *n, char *out, size_t size);
tg_schema_decimal_t tg_schema_decimal(const tg_schema_num_t *n);
bool tg_schema_is_multiple(const tg_schema_num_t *n, const tg_schema_number_t *of);
bool tg_schema_equal(const json_t *a, const json_t *b, size_t *steps);
uint64_t tg_schema_hash(const json_t *value, size_t *steps);
size_t tg_schema_code_points(const char *text, size_t len);
bool tg_schema_size_of(const json_t *value, size_t *size);
bool tg_schema_measurable(const json_t *document, size_t *count);

/* tg_schema_validate.c */
bool tg_schema_eval(tg_schema_eval_t *e, const tg_schema_node_t *node,
    const json_t *value, const tg_schema_path_t *path, tg_schema_track_t *track);
bool tg_schema_spend(tg_schema_eval_t *e, size_t steps, const tg_schema_path_t *path);
bool tg_schema_going(const tg_schema_eval_t *e);
bool tg_schema_track_init(tg_schema_eval_t *e, const tg_schema_path_t *path,
    tg_schema_track_t *track, size_t n);
void tg_schema_track_free(tg_schema_track_t *track);

/* tg_schema_logic.c */
bool tg_schema_eval_logic(tg_schema_eval_t *e, const tg_schema_logic_t *l,
    const json_t *value, const tg_schema_path_t *path, tg_schema_track_t *track);

/* tg_schema_object.c, tg_schema_array.c */
bool tg_schema_eval_object(tg_schema_eval_t *e, const tg_schema_object_t *o,
    const json_t *value, const tg_schema_path_t *path, tg_schema_track_t *track);
bool tg_schema_eval_rest_object(tg_schema_eval_t *e, const tg_schema_object_t *o,
    const json_t *value, const tg_schema_path_t *path, tg_schema_track_t *track);
bool tg_schema_eval_array(tg_schema_eval_t *e, const tg_schema_array_t *a,
    const json_t *value, const tg_schema_path_t *path, tg_schema_track_t *track);
bool tg_schema_eval_rest_array(tg_schema_eval_t *e, const tg_schema_array_t *a,
    const json_t *value, const tg_schema_path_t *path, tg_schema_track_t *track);

/* tg_schema_report.c */
bool tg_schema_report(tg_schema_eval_t *e, const tg_schema_path_t *path,
    const char *keyword, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
bool tg_schema_stop(tg_schema_eval_t *e, const tg_schema_path_t *path,
    const char *reason);
bool tg_schema_report_type(tg_schema_eval_t *e, const tg_schema_path_t *path,
    uint8_t types, uint8_t got);
bool tg_schema_report_values(tg_schema_eval_t *e, const tg_schema_path_t *path,
    const tg_schema_values_t *values, bool constant);
bool tg_schema_report_name(tg_schema_eval_t *e, const tg_schema_path_t *path,
    const char *keyword, const char *before, const char *name, size_t len,
    const char *after);
void tg_schema_set_reason(tg_schema_error_t *error, const char *fmt, va_list args);
bool tg_schema_pointer_key(char *out, size_t size, size_t *len, const char *key,
    size_t key_len);


static inline bool
tg_schema_track_has(const tg_schema_track_t *track, size_t i)
{
    return (track->bits[i / 64] >> (i % 64) & 1) != 0;
}


static inline void
tg_schema_track_add(tg_schema_track_t *track, size_t i)
{
    if (track != NULL) {
        track->bits[i / 64] |= UINT64_C(1) << (i % 64);
    }
}

#endif /* TG_SCHEMA_INTERNAL_H */
