/*
 * Strict loading of small JSON documents into jansson trees. Responsible for what
 * is refused and how it is explained; it must not know what the documents mean.
 * How trees are written is in tg_json_write.c.
 */

/* the digest itself: looking an algorithm up costs several times what it takes */
#define OPENSSL_SUPPRESS_DEPRECATED

#include "tg_json.h"

#include <openssl/sha.h>


/* A place in a text that is being walked without a tree. */
typedef struct {
    const char  *p;
    const char  *end;
} tg_json_cursor_t;

static bool tg_json_too_deep(tg_str_t text, size_t *offset);
static const char *tg_json_reason(const json_error_t *e);
static json_t *tg_json_refuse(tg_str_t text, tg_json_error_t *error, size_t offset,
    const char *reason);
static unsigned tg_json_count_lines(const char *from, const char *to);
static void tg_json_skip_blanks(tg_json_cursor_t *c);
static bool tg_json_skip_string(tg_json_cursor_t *c);
static bool tg_json_skip_value(tg_json_cursor_t *c);
static bool tg_json_enter(tg_json_cursor_t *c, tg_str_t segment);
static bool tg_json_enter_member(tg_json_cursor_t *c, tg_str_t segment);
static bool tg_json_enter_element(tg_json_cursor_t *c, tg_str_t segment);
static bool tg_json_key_is(tg_str_t key, tg_str_t segment);


json_t *
tg_json_load(tg_str_t text, tg_json_error_t *error)
{
    size_t        offset;
    json_t       *value;
    const char   *nul;
    json_error_t  e;

    *error = (tg_json_error_t) { 0, 1, NULL };

    for (offset = 0; offset < text.len; offset++) {
        if (strchr(" \t\r\n", text.data[offset]) == NULL || text.data[offset] == '\0') {
            break;
        }
    }

    if (offset == text.len) {
        return tg_json_refuse(text, error, offset, "empty text");
    }

    /* jansson recurses far deeper than is allowed here */
    if (tg_json_too_deep(text, &offset)) {
        return tg_json_refuse(text, error, offset, "depth over 128");
    }

    /* and takes one outside a string for the end of the text */
    nul = memchr(text.data, '\0', text.len);
    if (nul != NULL) {
        return tg_json_refuse(text, error, (size_t) (nul - text.data), "NUL byte");
    }

    value = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e);
    if (value != NULL) {
        return value;
    }

    offset = e.position < 0 ? 0 : (size_t) e.position;

    return tg_json_refuse(text, error, offset < text.len ? offset : text.len,
                          tg_json_reason(&e));
}


void
tg_json_sha256_hex(tg_str_t data, char hex[TG_JSON_SHA256_HEX_LEN + 1])
{
    size_t             i;
    uint8_t            digest[SHA256_DIGEST_LENGTH];
    SHA256_CTX         ctx;
    static const char  digits[] = "0123456789abcdef";

    /* none of these fails in any version */
    (void) SHA256_Init(&ctx);
    (void) SHA256_Update(&ctx, data.len == 0 ? "" : data.data, data.len);
    (void) SHA256_Final(digest, &ctx);

    for (i = 0; i < sizeof(digest); i++) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 0xf];
    }

    hex[TG_JSON_SHA256_HEX_LEN] = '\0';
}


tg_str_t
tg_json_get_string(const json_t *object, const char *key)
{
    const json_t  *value;

    value = json_object_get(object, key);
    if (!json_is_string(value)) {
        return tg_null_str;
    }

    return (tg_str_t) { json_string_length(value), json_string_value(value) };
}


unsigned
tg_json_line_of(tg_str_t text, tg_str_t pointer)
{
    size_t            i, start;
    tg_json_cursor_t  c;

    if (text.len == 0 || (pointer.len > 0 && pointer.data[0] != '/')) {
        return 1;
    }

    c = (tg_json_cursor_t) { text.data, text.data + text.len };

    for (i = 0; i < pointer.len; /* void */) {
        start = ++i;
        while (i < pointer.len && pointer.data[i] != '/') {
            i++;
        }

        if (!tg_json_enter(&c, (tg_str_t) { i - start, pointer.data + start })) {
            return 1;
        }
    }

    tg_json_skip_blanks(&c);

    return c.p == c.end ? 1 : tg_json_count_lines(text.data, c.p);
}


/* Counts brackets outside strings; whether they match is jansson's to say. */
static bool
tg_json_too_deep(tg_str_t text, size_t *offset)
{
    bool    in_string;
    char    c;
    size_t  i, depth;

    in_string = false;
    depth = 0;

    for (i = 0; i < text.len; i++) {
        c = text.data[i];

        if (in_string) {
            if (c == '\\') {
                i++;
            } else if (c == '"') {
                in_string = false;
            }
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (++depth > TG_JSON_MAX_DEPTH) {
                *offset = i;
                return true;
            }
        } else if ((c == ']' || c == '}') && depth > 0) {
            depth--;
        }
    }

    return false;
}


/* jansson's texts quote the input; ours are fixed. */
static const char *
tg_json_reason(const json_error_t *e)
{
    switch (json_error_code(e)) {
    case json_error_out_of_memory:
        return "out of memory";
    case json_error_invalid_utf8:
        return "invalid UTF-8";
    case json_error_premature_end_of_input:
        return "text ends early";
    case json_error_end_of_input_expected:
        return "trailing bytes";
    case json_error_null_character:
    case json_error_null_byte_in_key:
        return "NUL in a string";
    case json_error_duplicate_key:
        return "duplicate key";
    case json_error_numeric_overflow:
        return "number out of range";
    default:
        break;
    }

    /* a syntax error to jansson, but the most frequent surprise of its senders */
    return strstr(e->text, "invalid Unicode") != NULL ? "lone surrogate" : "invalid syntax";
}


static json_t *
tg_json_refuse(tg_str_t text, tg_json_error_t *error, size_t offset, const char *reason)
{
    error->offset = offset;
    error->reason = reason;
    error->line = offset == 0 ? 1 : tg_json_count_lines(text.data, text.data + offset);

    return NULL;
}


static unsigned
tg_json_count_lines(const char *from, const char *to)
{
    unsigned  line;

    for (line = 1; from < to; from++) {
        line += *from == '\n';
    }

    return line;
}


static void
tg_json_skip_blanks(tg_json_cursor_t *c)
{
    while (c->p < c->end
           && (*c->p == ' ' || *c->p == '\t' || *c->p == '\n' || *c->p == '\r'))
    {
        c->p++;
    }
}


/* From the opening quote to past the closing one. */
static bool
tg_json_skip_string(tg_json_cursor_t *c)
{
    for (c->p++; c->p < c->end; c->p++) {
        if (*c->p == '"') {
            c->p++;
            return true;
        }

        if (*c->p == '\\' && ++c->p == c->end) {
            break;
        }
    }

    return false;
}


static bool
tg_json_skip_value(tg_json_cursor_t *c)
{
    size_t  depth;

    tg_json_skip_blanks(c);
    depth = 0;

    /* up to the comma or bracket that belongs to the container around it */
    while (c->p < c->end) {
        switch (*c->p) {
        case '"':
            if (!tg_json_skip_string(c)) {
                return false;
            }
            continue;
        case '[':
        case '{':
            depth++;
            break;
        case ']':
        case '}':
            if (depth == 0) {
                return true;
            }
            depth--;
            break;
        case ',':
            if (depth == 0) {
                return true;
            }
            break;
        default:
            break;
        }
        c->p++;
    }

    return depth == 0;
}


/* Moves from the start of a container to the value that segment names in it. */
static bool
tg_json_enter(tg_json_cursor_t *c, tg_str_t segment)
{
    tg_json_skip_blanks(c);

    if (c->p < c->end && *c->p == '{') {
        return tg_json_enter_member(c, segment);
    }

    if (c->p < c->end && *c->p == '[') {
        return tg_json_enter_element(c, segment);
    }

    return false;
}


static bool
tg_json_enter_member(tg_json_cursor_t *c, tg_str_t segment)
{
    bool         found;
    const char  *key;

    do {
        c->p++;
        tg_json_skip_blanks(c);
        key = c->p;
        if (c->p == c->end || *c->p != '"' || !tg_json_skip_string(c)) {
            return false;
        }

        /* the key with its quotes is a text of its own */
        found = tg_json_key_is((tg_str_t) { (size_t) (c->p - key), key }, segment);

        tg_json_skip_blanks(c);
        if (c->p == c->end || *c->p++ != ':') {
            return false;
        }

        if (found) {
            return true;
        }

        if (!tg_json_skip_value(c)) {
            return false;
        }
    } while (c->p < c->end && *c->p == ',');

    return false;
}


static bool
tg_json_enter_element(tg_json_cursor_t *c, tg_str_t segment)
{
    size_t  i, index;

    if (segment.len == 0 || (segment.len > 1 && segment.data[0] == '0')) {
        return false;
    }

    index = 0;
    for (i = 0; i < segment.len; i++) {
        if (segment.data[i] < '0' || segment.data[i] > '9' || index > SIZE_MAX / 10 - 1) {
            return false;
        }
        index = index * 10 + (size_t) (segment.data[i] - '0');
    }

    c->p++;
    tg_json_skip_blanks(c);
    if (c->p < c->end && *c->p == ']') {
        return false;
    }

    for (/* void */; index > 0; index--) {
        if (!tg_json_skip_value(c) || c->p == c->end || *c->p != ',') {
            return false;
        }
        c->p++;
    }

    return true;
}


/* Compares a quoted key with a pointer segment, in which ~0 is ~ and ~1 is /. */
static bool
tg_json_key_is(tg_str_t key, tg_str_t segment)
{
    bool         same;
    char         c;
    size_t       i, k;
    json_t      *value;
    const char  *name;

    value = json_loadb(key.data, key.len, JSON_DECODE_ANY, NULL);
    if (value == NULL) {
        return false;
    }

    name = json_string_value(value);
    same = true;

    for (i = k = 0; same && i < segment.len; i++, k++) {
        c = segment.data[i];
        if (c == '~' && i + 1 < segment.len) {
            c = segment.data[++i] == '1' ? '/' : '~';
        }
        same = k < json_string_length(value) && name[k] == c;
    }

    same = same && k == json_string_length(value);
    json_decref(value);

    return same;
}
