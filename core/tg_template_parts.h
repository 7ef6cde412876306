/*
 * Inside of tg_template: texts with placeholders compiled into lists of parts, and
 * what the compiler and the renderer share. Nobody else includes this.
 */

#ifndef TG_TEMPLATE_PARTS_H
#define TG_TEMPLATE_PARTS_H

#include "tg_template.h"


#define TG_TEMPLATE_NAME_MAX     64       /* of parameters, traits, variables, secrets */
#define TG_TEMPLATE_PARTS_MAX    1024     /* of one text or body */
#define TG_TEMPLATE_LITERAL_MAX  TG_TEMPLATE_BODY_MAX
#define TG_TEMPLATE_SCHEMA_DEPTH 64       /* that the parameter rules look into */

/* Where a part lands, which decides how a value is escaped. */
typedef enum {
    TG_PLACE_PATH,
    TG_PLACE_QUERY,
    TG_PLACE_HEADER,
    TG_PLACE_JSON,          /* a whole JSON value */
    TG_PLACE_JSON_TEXT      /* inside a JSON string */
} tg_place_e;

typedef enum {
    TG_SOURCE_LITERAL,      /* bytes that are escaped already */
    TG_SOURCE_ARGUMENT,
    TG_SOURCE_EXTERNAL_ID,
    TG_SOURCE_TRAIT,
    TG_SOURCE_SECRET,
    TG_SOURCE_VARIABLE
} tg_source_e;

typedef struct {
    tg_source_e  source;
    tg_place_e   place;
    bool         text;      /* an argument of format text */
    char        *data;      /* owned: the literal, or the name with a NUL */
    size_t       len;
} tg_part_t;

typedef struct {
    tg_part_t  *parts;
    size_t      count;
    size_t      cap;
} tg_parts_t;

typedef struct {
    char        *name;
    size_t       len;
    bool         text;          /* x-kagent-format: text, else token */
    bool         composite;     /* its type lets arrays or objects in */
} tg_parameter_t;

typedef struct {
    char        *name;
    tg_parts_t   value;
} tg_template_field_t;

struct tg_template_s {
    char                 *name;
    char                 *description;
    tg_effect_e           effect;
    bool                  requires_verified_user;
    bool                  enabled;
    unsigned              timeout_ms;
    const char           *method;            /* static */
    json_t               *parameters;
    json_t               *response;          /* or NULL */
    tg_parameter_t        parameter[TG_TEMPLATE_MAX_PARAMETERS];
    size_t                parameter_count;
    tg_parts_t            url;
    tg_template_field_t   headers[TG_TEMPLATE_MAX_HEADERS];
    size_t                header_count;
    tg_parts_t            body;
    bool                  has_body;
};

/* A definition that is being checked. */
typedef struct {
    tg_template_t        *template;
    tg_template_error_t  *error;
} tg_define_t;


/* The rules for what is sent, in the order in which they must be asked. */
bool tg_define_url(tg_define_t *d, const json_t *config, const tg_netguard_t *guard);
bool tg_define_headers(tg_define_t *d, const json_t *config);
bool tg_define_body(tg_define_t *d, const json_t *config);

/* tg_template_refuse for them; gives false. */
bool tg_define_fail(tg_define_t *d, const char *code, const char *reason,
    const char *base, const char *rest);

/* Fills *error and gives code back; the pointer is base and rest joined. */
const char *tg_template_refuse(tg_template_error_t *error, const char *code,
    const char *reason, const char *base, const char *rest);

/* What one text or body is compiled into, and why it failed. */
typedef struct {
    tg_template_t  *template;
    tg_parts_t     *parts;
    const char     *reason;
    char           *pointer;      /* into the body, grows and shrinks */
    size_t          cap;
} tg_compile_t;

/* The steps of the compiler; NULL or a 422 code, c->reason may tell why. */
const char *tg_parts_push(tg_parts_t *parts, tg_source_e source, tg_place_e place,
    bool text, tg_str_t data);
const char *tg_push_literal(tg_compile_t *c, tg_str_t text, tg_place_e place);
const char *tg_push_placeholder(tg_compile_t *c, tg_str_t name, tg_place_e place);
const char *tg_compile_text(tg_compile_t *c, tg_str_t text, tg_place_e place);

/* Position of two braces of a kind in text, or its length. */
size_t tg_find_pair(tg_str_t text, char brace);

/* Appends s with the escapes of a JSON string, without its quotes. */
tg_rc_e tg_json_inside(tg_buf_t *out, tg_str_t s);

/*
 * Compiles text for a place; in a URL the place turns from path to query at "?".
 * NULL when fine, else a 422 code with *reason (static): unknown_placeholder,
 * verified_user_required, format_not_allowed, or internal_error (no memory).
 */
const char *tg_parts_add(tg_template_t *template, tg_parts_t *parts, tg_str_t text,
    tg_place_e place, const char **reason);

/* Compiles a JSON value as a body; code, reason and pointer as above. */
const char *tg_parts_add_json(tg_template_t *template, const json_t *body,
    tg_template_error_t *error);

void tg_parts_free(tg_parts_t *parts);

/* Appends the URL with "x" for each placeholder. */
tg_rc_e tg_parts_sample(const tg_parts_t *parts, tg_buf_t *out);

/* Checks config.parameters and fills template->parameter; false with *error. */
bool tg_template_schema(tg_template_t *template, const json_t *parameters,
    tg_template_error_t *error);

/* True for 1 to TG_TEMPLATE_NAME_MAX of [A-Za-z0-9_.-]. */
bool tg_template_name_valid(tg_str_t name);

/* The token format: letters, digits, blanks and ._@:+- within the length. */
bool tg_template_is_token(tg_str_t text);

/* True when every string and key inside is a token; depth is 0 outside. */
bool tg_template_tokens(const json_t *value, unsigned depth);

/* A copy with all strings cleaned as format text; NULL when one is too long. */
json_t *tg_template_cleaned(const json_t *value, unsigned depth);

/* True when nothing of the text would be seen. */
bool tg_template_is_blank(tg_str_t text);

#endif /* TG_TEMPLATE_PARTS_H */
