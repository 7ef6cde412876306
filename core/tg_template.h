/*
 * HTTP tool definitions and their templates: checked once when defined, then
 * rendered into one request per call. Fail-closed: a placeholder that has no
 * value, or a blank one, aborts the call. Values are escaped for where they land.
 */

#ifndef TG_TEMPLATE_H
#define TG_TEMPLATE_H

#include <jansson.h>

#include "tg.h"
#include "tg_buf.h"
#include "tg_netguard.h"
#include "tg_policy.h"
#include "tg_url.h"


#define TG_TEMPLATE_MAX_PARAMETERS  8
#define TG_TEMPLATE_MAX_HEADERS     32
#define TG_TEMPLATE_TOKEN_CHARS     64
#define TG_TEMPLATE_DESCRIPTION     4000     /* code points */
#define TG_TEMPLATE_BODY_MAX        (256 * 1024)
#define TG_TEMPLATE_HEADER_MAX      4096
#define TG_TEMPLATE_TIMEOUT_MIN_MS  100
#define TG_TEMPLATE_TIMEOUT_MAX_MS  15000
#define TG_TEMPLATE_TIMEOUT_MS      8000

/* Why a definition is refused. */
typedef struct {
    const char  *code;            /* static: the 422 code */
    char         pointer[128];    /* into the tool object, e.g. "/config/url" */
    char         reason[200];
} tg_template_error_t;

typedef struct tg_template_s  tg_template_t;

/* One secret that a call may use. */
typedef struct {
    tg_str_t         name;
    tg_str_t         value;
    const tg_str_t  *allowed_hosts;    /* "host" or "host:port", lower case */
    size_t           allowed_host_count;
} tg_template_secret_t;

/* The values of one call. NULL trees mean none. */
typedef struct {
    const json_t                *args;        /* validated, digits converted */
    const json_t                *end_user;    /* {"external_id","traits":{}} */
    const json_t                *variables;   /* name -> string */
    const tg_template_secret_t  *secrets;
    size_t                       secret_count;
    const char                  *secret_text; /* stands for each secret: for a look at
                                                 the request. NULL: to be sent */
} tg_template_values_t;

typedef struct {
    tg_buf_t  name;
    tg_buf_t  value;
} tg_template_header_t;

typedef struct {
    tg_buf_t              url;         /* whole, escaped */
    tg_url_t              parts;       /* of url; target points into it */
    const char           *method;      /* "GET", … */
    tg_template_header_t  headers[TG_TEMPLATE_MAX_HEADERS];
    size_t                header_count;
    tg_buf_t              body;
    bool                  has_body;
    const char           *detail;      /* on failure: what, static text */
} tg_template_request_t;


/*
 * Compiles one tool object: name, description, effect, requires_verified_user,
 * enabled, config{method, url, headers, body, parameters, response, timeout_ms}.
 * Checks every definition rule of HTTP tools, without the JSON Schema itself.
 * guard may be NULL (ports 443 and 8443, https only). Returns a new template that
 * keeps what it needs, or NULL with *error. A tool with a body and without a
 * Content-Type gets "application/json".
 */
tg_template_t *tg_template_compile(const json_t *tool, const tg_netguard_t *guard,
    tg_template_error_t *error);
void tg_template_free(tg_template_t *template);

tg_str_t tg_template_name(const tg_template_t *template);
tg_str_t tg_template_description(const tg_template_t *template);
tg_effect_e tg_template_effect(const tg_template_t *template);
bool tg_template_requires_verified_user(const tg_template_t *template);
bool tg_template_enabled(const tg_template_t *template);
unsigned tg_template_timeout_ms(const tg_template_t *template);
/* config.parameters (a borrowed reference; an empty closed object when absent). */
const json_t *tg_template_parameters(const tg_template_t *template);
/* Whether a request of this template holds the secret of this name. */
bool tg_template_uses_secret(const tg_template_t *template, tg_str_t name);
/* config.response or NULL (borrowed). */
const json_t *tg_template_response(const tg_template_t *template);

/* Turns Arabic and Persian digits of all string values into ASCII, in place. */
tg_rc_e tg_template_fold_digits(json_t *args);

/* Checks the formats token and text of each given argument. NULL when fine, else
 * a static reason, with the pointer of the argument in pointer[]. */
const char *tg_template_check_formats(const tg_template_t *template,
    const json_t *args, char *pointer, size_t cap);

/* Fills request (which the caller owns and frees with tg_template_request_free,
 * also after a failure). The body's bytes depend on the template and the values
 * only: what is signed is what is sent. NULL when fine, else the call code:
 * unresolved_placeholder, secret_host_not_allowed, invalid_arguments. */
const char *tg_template_render(const tg_template_t *template,
    const tg_template_values_t *values, tg_template_request_t *request);
void tg_template_request_free(tg_template_request_t *request);

#endif /* TG_TEMPLATE_H */
