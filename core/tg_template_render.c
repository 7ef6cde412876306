/*
 * Fills a compiled template with the values of one call. Fail-closed: whatever is
 * missing, blank or wrong for its place ends it, and nothing half made is left.
 */


#include "tg_clean.h"
#include "tg_json.h"
#include "tg_template_parts.h"


#define TG_RENDER_TEXT  (TG_CLEAN_TEXT_CHARS * 4)

typedef struct {
    const tg_template_values_t  *values;
    tg_template_request_t       *request;
    tg_buf_t                     scratch;     /* a value made into text */
} tg_render_t;

/* One value that was found: JSON, or text that is no JSON. */
typedef struct {
    const json_t  *json;      /* NULL for a secret */
    tg_str_t       text;
} tg_value_t;

static const char  tg_call_unresolved[] = "unresolved_placeholder";
static const char  tg_call_invalid[] = "invalid_arguments";
static const char  tg_call_host[] = "secret_host_not_allowed";


static const char *
tg_render_fail(tg_render_t *r, const char *code, const char *detail)
{
    r->request->detail = detail;

    return code;
}


static const tg_template_secret_t *
tg_find_secret(const tg_template_values_t *values, tg_str_t name)
{
    size_t  i;

    for (i = 0; i < values->secret_count; i++) {

        if (tg_str_eq(values->secrets[i].name, name)) {
            return &values->secrets[i];
        }
    }

    return NULL;
}


/* Looks a value up; JSON null is no value. */
static bool
tg_render_find(const tg_render_t *r, const tg_part_t *part, tg_value_t *value)
{
    const json_t                *json = NULL;
    const tg_template_secret_t  *secret;
    const tg_template_values_t  *values = r->values;

    memset(value, 0, sizeof(*value));

    switch (part->source) {

    case TG_SOURCE_ARGUMENT:
        json = json_object_getn(values->args, part->data, part->len);
        break;

    case TG_SOURCE_EXTERNAL_ID:
        json = json_object_get(values->end_user, "external_id");
        break;

    case TG_SOURCE_TRAIT:
        json = json_object_getn(json_object_get(values->end_user, "traits"), part->data,
            part->len);
        break;

    case TG_SOURCE_VARIABLE:
        json = json_object_getn(values->variables, part->data, part->len);
        break;

    case TG_SOURCE_SECRET:
        secret = tg_find_secret(values, (tg_str_t) { part->len, part->data });

        if (secret != NULL) {
            value->text = secret->value;
        }

        return secret != NULL;

    case TG_SOURCE_LITERAL:
        return false;
    }

    value->json = json;

    return json != NULL && !json_is_null(json);
}


/* Makes a scalar into text: strings by their format, numbers in the canonical form
 * (integers digit for digit). */
static const char *
tg_render_scalar(tg_render_t *r, const tg_part_t *part, tg_value_t *value)
{
    const json_t  *json = value->json;

    if (json == NULL) {
        return NULL;
    }

    tg_buf_reset(&r->scratch);

    switch (json_typeof(json)) {

    case JSON_STRING:
        value->text = (tg_str_t) { json_string_length(json), json_string_value(json) };

        if (part->source != TG_SOURCE_ARGUMENT) {
            return NULL;
        }

        if (!part->text) {
            return tg_template_is_token(value->text) ? NULL
                   : tg_render_fail(r, tg_call_invalid,
                         "an argument does not follow the token format");
        }

        if (tg_clean_argument(value->text, &r->scratch) != TG_OK) {
            return tg_render_fail(r, tg_call_invalid, "an argument is too long");
        }

        break;

    case JSON_TRUE:
    case JSON_FALSE:
    case JSON_INTEGER:
    case JSON_REAL:
        (void) tg_json_canonical(json, &r->scratch);
        break;

    default:
        return tg_render_fail(r, tg_call_invalid,
            "an array or object cannot stand in this place");
    }

    value->text = tg_buf_get(&r->scratch);

    return r->scratch.error == TG_OK ? NULL
           : tg_render_fail(r, tg_call_invalid, "an argument is too long");
}


/* True for control characters, C1 included. */
static bool
tg_render_control(tg_str_t text)
{
    size_t         i;
    unsigned char  c;

    for (i = 0; i < text.len; i++) {
        c = (unsigned char) text.data[i];

        if (c < 0x20 || c == 0x7f
            || (c == 0xc2 && i + 1 < text.len
                && (unsigned char) text.data[i + 1] < 0xa0))
        {
            return true;
        }
    }

    return false;
}


/* Appends text with everything but RFC 3986's unreserved characters escaped. */
static void
tg_render_percent(tg_buf_t *out, tg_str_t text)
{
    char               escape[3] = "%";
    size_t             i, from = 0;
    unsigned char      c;
    static const char  hex[] = "0123456789ABCDEF";

    for (i = 0; i < text.len; i++) {
        c = (unsigned char) text.data[i];

        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
            || c == '-' || c == '.' || c == '_' || c == '~')
        {
            continue;
        }

        escape[1] = hex[c >> 4];
        escape[2] = hex[c & 15];
        (void) tg_buf_append(out, text.data + from, i - from);
        (void) tg_buf_append(out, escape, sizeof(escape));
        from = i + 1;
    }

    if (text.len > from) {
        (void) tg_buf_append(out, text.data + from, text.len - from);
    }
}


/* Appends a scalar where text stands. */
static const char *
tg_render_text(tg_render_t *r, const tg_part_t *part, tg_str_t text, tg_buf_t *out)
{
    if (tg_template_is_blank(text)) {
        return tg_render_fail(r, tg_call_unresolved, "a placeholder is blank");
    }

    if (part->place == TG_PLACE_JSON_TEXT) {
        (void) tg_json_inside(out, text);
        return NULL;
    }

    if (tg_render_control(text)) {
        return tg_render_fail(r, tg_call_invalid,
            "a value for the URL or a header holds a control character");
    }

    if (part->place == TG_PLACE_HEADER) {
        (void) tg_buf_str(out, text);
        return NULL;
    }

    /* many servers decode %2F before they split the path */
    if (part->place == TG_PLACE_PATH
        && (memchr(text.data, '/', text.len) != NULL
            || memchr(text.data, '\\', text.len) != NULL))
    {
        return tg_render_fail(r, tg_call_invalid, "a value would make path segments");
    }

    tg_render_percent(out, text);

    return NULL;
}


/* Appends an array or object as a whole value of the body. */
static const char *
tg_render_tree(tg_render_t *r, const tg_part_t *part, const json_t *json, tg_buf_t *out)
{
    json_t  *copy;

    if (part->source != TG_SOURCE_ARGUMENT) {
        (void) tg_json_canonical(json, out);
        return NULL;
    }

    if (!part->text) {

        if (!tg_template_tokens(json, 0)) {
            return tg_render_fail(r, tg_call_invalid,
                "an argument does not follow the token format");
        }

        (void) tg_json_canonical(json, out);
        return NULL;
    }

    copy = tg_template_cleaned(json, 0);

    if (copy == NULL) {
        return tg_render_fail(r, tg_call_invalid, "an argument is too long");
    }

    (void) tg_json_canonical(copy, out);
    json_decref(copy);

    return NULL;
}


/* Appends a whole JSON value: the type of the value is kept. */
static const char *
tg_render_json(tg_render_t *r, const tg_part_t *part, tg_value_t *value, tg_buf_t *out)
{
    const char  *code;

    if (json_is_array(value->json) || json_is_object(value->json)) {
        return tg_render_tree(r, part, value->json, out);
    }

    code = tg_render_scalar(r, part, value);
    if (code != NULL) {
        return code;
    }

    if (value->json != NULL && !json_is_string(value->json)) {
        (void) tg_buf_str(out, value->text);
        return NULL;
    }

    if (tg_template_is_blank(value->text)) {
        return tg_render_fail(r, tg_call_unresolved, "a placeholder is blank");
    }

    (void) tg_buf_json_string(out, value->text);

    return NULL;
}


/* Not escaped: a reader is to recognise it. */
static void
tg_render_stand_in(const tg_part_t *part, const char *text, tg_buf_t *out)
{
    (void) tg_buf_cstr(out, part->place == TG_PLACE_JSON ? "\"" : "");
    (void) tg_buf_cstr(out, text);
    (void) tg_buf_cstr(out, part->place == TG_PLACE_JSON ? "\"" : "");
}


static const char *
tg_render_parts(tg_render_t *r, const tg_parts_t *parts, tg_buf_t *out)
{
    size_t            i;
    const char       *code;
    tg_value_t        value;
    const tg_part_t  *part;

    for (i = 0; i < parts->count; i++) {
        part = &parts->parts[i];

        if (part->source == TG_SOURCE_LITERAL) {
            (void) tg_buf_append(out, part->data, part->len);
            continue;
        }

        if (part->source == TG_SOURCE_SECRET && r->values->secret_text != NULL) {
            tg_render_stand_in(part, r->values->secret_text, out);
            continue;
        }

        if (!tg_render_find(r, part, &value)) {
            return tg_render_fail(r, tg_call_unresolved, "a placeholder has no value");
        }

        if (part->place == TG_PLACE_JSON) {
            code = tg_render_json(r, part, &value, out);

        } else {
            code = tg_render_scalar(r, part, &value);

            if (code == NULL) {
                code = tg_render_text(r, part, value.text, out);
            }
        }

        if (code != NULL) {
            return code;
        }
    }

    return out->error == TG_OK ? NULL
           : tg_render_fail(r, tg_call_invalid, "the request is too big");
}


static const char *
tg_render_url(tg_render_t *r, const tg_template_t *template)
{
    const char             *code;
    tg_template_request_t  *request = r->request;

    code = tg_render_parts(r, &template->url, &request->url);
    if (code != NULL) {
        return code;
    }

    if (tg_url_parse(tg_buf_get(&request->url), &request->parts, &code) != TG_OK) {
        return tg_render_fail(r, tg_call_invalid, "the URL is not valid");
    }

    if (tg_url_dot_segment(request->parts.target)) {
        return tg_render_fail(r, tg_call_invalid, "the path has a . or .. segment");
    }

    return NULL;
}


/* Every secret that the parts name must be meant for the host. */
static const char *
tg_render_hosts(tg_render_t *r, const tg_parts_t *parts)
{
    size_t                       i;
    const tg_part_t             *part;
    const tg_template_secret_t  *secret;

    for (i = 0; i < parts->count; i++) {
        part = &parts->parts[i];

        if (part->source != TG_SOURCE_SECRET) {
            continue;
        }

        secret = tg_find_secret(r->values, (tg_str_t) { part->len, part->data });

        if (secret == NULL) {
            return tg_render_fail(r, tg_call_unresolved, "a secret does not exist");
        }

        if (!tg_url_host_listed(&r->request->parts, secret->allowed_hosts,
                secret->allowed_host_count))
        {
            return tg_render_fail(r, tg_call_host,
                "a secret may not be sent to this host");
        }
    }

    return NULL;
}


/* The URL comes first: the hosts are judged by what was rendered, before any
 * secret is written into a header or the body. */
static const char *
tg_render_request(tg_render_t *r, const tg_template_t *template)
{
    size_t                  i;
    const char             *code;
    tg_template_header_t   *header;
    tg_template_request_t  *request = r->request;

    code = tg_render_url(r, template);

    if (code == NULL) {
        code = tg_render_hosts(r, &template->url);
    }

    for (i = 0; i < template->header_count && code == NULL; i++) {
        code = tg_render_hosts(r, &template->headers[i].value);
    }

    if (code == NULL) {
        code = tg_render_hosts(r, &template->body);
    }

    for (i = 0; i < template->header_count && code == NULL; i++) {
        header = &request->headers[i];
        tg_buf_init(&header->name, TG_TEMPLATE_HEADER_MAX);
        tg_buf_init(&header->value, TG_TEMPLATE_HEADER_MAX);
        request->header_count = i + 1;

        (void) tg_buf_cstr(&header->name, template->headers[i].name);
        code = tg_render_parts(r, &template->headers[i].value, &header->value);
    }

    if (code == NULL && template->has_body) {
        request->has_body = true;
        code = tg_render_parts(r, &template->body, &request->body);
    }

    return code;
}


const char *
tg_template_render(const tg_template_t *template, const tg_template_values_t *values,
    tg_template_request_t *request)
{
    const char   *code, *detail;
    tg_render_t   r = { .values = values, .request = request };

    memset(request, 0, sizeof(*request));
    tg_buf_init(&request->url, TG_URL_MAX);
    tg_buf_init(&request->body, TG_TEMPLATE_BODY_MAX);
    tg_buf_init(&r.scratch, TG_RENDER_TEXT);
    request->method = template->method;

    code = tg_render_request(&r, template);
    tg_buf_free(&r.scratch);

    if (code != NULL) {
        /* a request with a hole in it must not be there to be sent */
        detail = request->detail;
        tg_template_request_free(request);
        request->detail = detail;
    }

    return code;
}


/* Requests carry secrets: the memory is cleared before it goes back. */
static void
tg_wipe(tg_buf_t *b)
{
    if (b->data != NULL) {
        explicit_bzero(b->data, b->cap);
    }

    tg_buf_free(b);
}


void
tg_template_request_free(tg_template_request_t *request)
{
    size_t  i;

    for (i = 0; i < request->header_count; i++) {
        tg_wipe(&request->headers[i].name);
        tg_wipe(&request->headers[i].value);
    }

    tg_wipe(&request->url);
    tg_wipe(&request->body);
    memset(request, 0, sizeof(*request));
}
