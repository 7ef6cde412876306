/*
 * The definition rules for what is sent: URL, headers, body of an HTTP tool. Each
 * text is compiled into parts as it is checked.
 */

#include <stdlib.h>
#include <strings.h>

#include "tg_json.h"
#include "tg_template_parts.h"


#define TG_HEADER_NAME_MAX  128


/* Length of the scheme and the authority: placeholders may begin after it. */
static size_t
tg_url_head(tg_str_t text)
{
    const char  *p, *end = text.data + text.len;

    p = memchr(text.data, ':', text.len);

    if (p == NULL || end - p < 3 || p[1] != '/' || p[2] != '/') {
        return text.len;
    }

    for (p += 3; p < end && *p != '/' && *p != '?' && *p != '#' && *p != '\\'; p++) {
        /* looks on */
    }

    return (size_t) (p - text.data);
}


/* The URL with "x" for placeholders must be one that may be called. */
static bool
tg_define_url_sample(tg_define_t *d, const tg_netguard_t *guard)
{
    bool         dots = false;
    tg_buf_t     sample;
    tg_url_t     url;
    const char  *code = "invalid_url";

    tg_buf_init(&sample, TG_URL_MAX);

    if (tg_parts_sample(&d->template->url, &sample) == TG_OK
        && tg_url_parse(tg_buf_get(&sample), &url, &code) == TG_OK)
    {
        dots = tg_url_dot_segment(url.target);
        code = dots ? "invalid_url" : tg_url_judge(&url, guard);
    }

    tg_buf_free(&sample);

    if (code == NULL) {
        return true;
    }

    return tg_define_fail(d, code,
        dots ? "the path may not have . or .. segments"
             : "the URL must be https://host[:port]/… in plain ASCII without user info, "
               "fragment or backslash, at an address and port that may be called",
        "/config/url", "");
}


bool
tg_define_url(tg_define_t *d, const json_t *config, const tg_netguard_t *guard)
{
    json_t      *value = json_object_get(config, "url");
    size_t       brace;
    tg_str_t     text = tg_json_get_string(config, "url");
    const char  *code, *reason;

    if (!json_is_string(value)) {
        return tg_define_fail(d, "invalid_url", "the URL must be a string", "/config/url",
            "");
    }

    brace = tg_find_pair(text, '{');

    if (brace < text.len && brace < tg_url_head(text)) {
        return tg_define_fail(d, "url_host_placeholder",
            "placeholders are allowed in the path and the query only", "/config/url", "");
    }

    code = tg_parts_add(d->template, &d->template->url, text, TG_PLACE_PATH, &reason);
    if (code != NULL) {
        return tg_define_fail(d, code, reason, "/config/url", "");
    }

    return tg_define_url_sample(d, guard);
}


static bool
tg_header_name_valid(const char *name)
{
    size_t  i, len = strlen(name);

    if (len == 0 || len > TG_HEADER_NAME_MAX) {
        return false;
    }

    for (i = 0; i < len; i++) {

        if (!((name[i] >= 'a' && name[i] <= 'z') || (name[i] >= 'A' && name[i] <= 'Z')
              || (name[i] >= '0' && name[i] <= '9')
              || strchr("!#$%&'*+-.^_`|~", name[i]) != NULL))
        {
            return false;
        }
    }

    return true;
}


/* Headers that are ours, the transport's or that speak of who is calling. */
static bool
tg_header_refused(const char *name)
{
    size_t                    i, len;
    static const char *const  refused[] = { "host", "forwarded", "x-forwarded-*",
        "x-real-ip", "connection", "transfer-encoding", "content-length", "proxy-*",
        "webhook-*", "te", "trailer", "upgrade", "expect", "keep-alive", "x-toolgate-*" };

    for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        len = strlen(refused[i]);

        if (refused[i][len - 1] == '*'
            ? strncasecmp(name, refused[i], len - 1) == 0
            : strcasecmp(name, refused[i]) == 0)
        {
            return true;
        }
    }

    return false;
}


static bool
tg_has_control(tg_str_t text)
{
    size_t  i;

    for (i = 0; i < text.len; i++) {

        if ((unsigned char) text.data[i] < 0x20 || text.data[i] == 0x7f) {
            return true;
        }
    }

    return false;
}


/* True when a header of this name, in any case, is there already. */
static bool
tg_header_given(const tg_template_t *template, const char *name)
{
    size_t  i;

    for (i = 0; i < template->header_count; i++) {

        if (strcasecmp(template->headers[i].name, name) == 0) {
            return true;
        }
    }

    return false;
}


static bool
tg_define_header(tg_define_t *d, const char *name, tg_str_t value)
{
    const char           *code, *reason;
    tg_template_field_t  *field;

    if (d->template->header_count == TG_TEMPLATE_MAX_HEADERS) {
        return tg_define_fail(d, "invalid_value", "too many headers", "/config/headers", "");
    }

    field = &d->template->headers[d->template->header_count];
    field->name = strdup(name);

    if (field->name == NULL) {
        return tg_define_fail(d, "internal_error", "out of memory", "", "");
    }

    d->template->header_count++;

    code = tg_parts_add(d->template, &field->value, value, TG_PLACE_HEADER, &reason);

    return code == NULL || tg_define_fail(d, code, reason, "/config/headers/", name);
}


bool
tg_define_headers(tg_define_t *d, const json_t *config)
{
    json_t      *headers = json_object_get(config, "headers"), *value;
    tg_str_t     text;
    const char  *name;
    static const char  base[] = "/config/headers/";

    if (headers != NULL && !json_is_object(headers)) {
        return tg_define_fail(d, "invalid_type", "headers must be an object",
            "/config/headers", "");
    }

    json_object_foreach(headers, name, value) {
        text = (tg_str_t) { json_string_length(value), json_string_value(value) };

        if (!tg_header_name_valid(name) || tg_header_refused(name)) {
            return tg_define_fail(d, "header_not_allowed",
                "this header may not be set", base, name);
        }

        if (tg_header_given(d->template, name)) {
            return tg_define_fail(d, "header_not_allowed", "the header is given twice",
                base, name);
        }

        if (!json_is_string(value)) {
            return tg_define_fail(d, "invalid_type", "a header's value must be a string",
                base, name);
        }

        if (tg_has_control(text)) {
            return tg_define_fail(d, "header_not_allowed",
                "a header's value may not hold control characters", base, name);
        }

        if (tg_template_is_blank(text) || text.len > TG_TEMPLATE_HEADER_MAX) {
            return tg_define_fail(d, "invalid_value",
                "a header's value must be 1 to 4096 bytes and not blank", base, name);
        }

        if (!tg_define_header(d, name, text)) {
            return false;
        }
    }

    return true;
}


bool
tg_define_body(tg_define_t *d, const json_t *config)
{
    json_t  *body = json_object_get(config, "body");

    if (body == NULL || json_is_null(body)) {
        return true;
    }

    if (strcmp(d->template->method, "GET") == 0) {
        return tg_define_fail(d, "body_not_allowed", "a GET request has no body",
            "/config/body", "");
    }

    if (tg_parts_add_json(d->template, body, d->error) != NULL) {
        return false;
    }

    d->template->has_body = true;

    return tg_header_given(d->template, "Content-Type")
           || tg_define_header(d, "Content-Type", tg_str("application/json"));
}
