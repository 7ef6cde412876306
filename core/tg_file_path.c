/*
 * Paths of workspace files; see tg_file_path.h.
 */

#include "tg_file_path.h"

#include "tg_utf8.h"


#define TG_FILE_ROOT  "/workspace"

/* A set of a glob: where it ended, and whether the character is in it. */
typedef struct {
    size_t  end;            /* behind its bracket; 0: it is no set */
    bool    inside;
} tg_file_set_t;


static int
hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }

    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}


/* the byte that "\xHH" at p means, or -1 when it is just text */
static int
escaped_byte(const char *p, size_t len)
{
    int  high, low, byte;

    if (len < 4 || p[0] != '\\' || p[1] != 'x') {
        return -1;
    }

    high = hex_digit(p[2]);
    low = hex_digit(p[3]);
    if (high == -1 || low == -1) {
        return -1;
    }

    byte = high * 16 + low;
    return byte >= 0x80 || byte == '\\' ? byte : -1;
}


/* one component, decoded, behind what path holds; false when it is too long */
static bool
component_add(tg_str_t part, char *path, size_t *len)
{
    int     byte;
    size_t  i, first;

    if (*len != 0) {
        path[(*len)++] = '/';
    }

    first = *len;

    for (i = 0; i < part.len; i++) {
        byte = escaped_byte(part.data + i, part.len - i);
        if (byte != -1) {
            i += 3;
        }
        if (*len - first == TG_FILE_NAME_MAX || *len == TG_FILE_PATH_MAX) {
            return false;
        }
        path[(*len)++] = byte == -1 ? part.data[i] : (char) byte;
    }

    return true;
}


tg_file_path_e
tg_file_path(tg_str_t given, char path[TG_FILE_PATH_MAX + 1])
{
    size_t    i, end, len;
    tg_str_t  part, root;

    root = tg_str(TG_FILE_ROOT);

    if (given.len == 0 || given.len > TG_FILE_PATH_MAX
        || memchr(given.data, '\0', given.len) != NULL)
    {
        return TG_FILE_PATH_INVALID;
    }

    i = 0;
    if (given.data[0] == '/') {
        if (given.len < root.len || memcmp(given.data, root.data, root.len) != 0
            || (given.len > root.len && given.data[root.len] != '/'))
        {
            return TG_FILE_PATH_OUTSIDE;
        }
        i = root.len;
    }

    for (len = 0; i < given.len; i = end + 1) {
        for (end = i; end < given.len && given.data[end] != '/'; end++) {
            /* void */
        }

        part = (tg_str_t) { end - i, given.data + i };

        if (tg_str_eq(part, tg_str(".."))) {
            return TG_FILE_PATH_OUTSIDE;
        }

        if (part.len != 0 && !tg_str_eq(part, tg_str("."))
            && (len >= TG_FILE_PATH_MAX || !component_add(part, path, &len)))
        {
            return TG_FILE_PATH_INVALID;
        }
    }

    if (len == 0) {
        path[len++] = '.';
    }

    path[len] = '\0';
    return TG_FILE_PATH_OK;
}


tg_rc_e
tg_file_path_json(tg_buf_t *out, tg_str_t path)
{
    size_t    i, n;
    int32_t   cp;
    tg_buf_t  text;

    tg_buf_init(&text, 4 * path.len + 1);

    for (i = 0; i < path.len; i += n) {
        n = tg_utf8_next(path.data + i, path.len - i, &cp);

        if (cp == -1) {
            n = 1;
            (void) tg_buf_printf(&text, "\\x%02x", (unsigned) (uint8_t) path.data[i]);

        } else if (escaped_byte(path.data + i, path.len - i) != -1) {
            (void) tg_buf_cstr(&text, "\\x5c");

        } else {
            (void) tg_buf_append(&text, path.data + i, n);
        }
    }

    if (text.error != TG_OK) {
        out->error = text.error;
    } else {
        (void) tg_buf_json_string(out, tg_buf_get(&text));
    }

    tg_buf_free(&text);
    return out->error;
}


tg_str_t
tg_file_path_name(tg_str_t path)
{
    size_t  i;

    for (i = path.len; i > 0 && path.data[i - 1] != '/'; i--) {
        /* void */
    }

    return (tg_str_t) { path.len - i, path.data + i };
}


/* one character; a byte that is no UTF-8 is a character of its own */
static size_t
next_char(tg_str_t text, size_t at, int32_t *cp)
{
    size_t  n;

    n = tg_utf8_next(text.data + at, text.len - at, cp);
    if (*cp == -1) {
        *cp = 0x110000 + (uint8_t) text.data[at];
        return 1;
    }

    return n;
}


/* the set whose "[" lies at p */
static tg_file_set_t
glob_set(tg_str_t pattern, size_t p, int32_t cp)
{
    bool           negated, first;
    int32_t        low, high;
    tg_file_set_t  set = { 0, false };

    p++;
    negated = p < pattern.len && pattern.data[p] == '!';
    if (negated) {
        p++;
    }

    for (first = true; p < pattern.len; first = false) {
        if (pattern.data[p] == ']' && !first) {
            set.end = p + 1;
            set.inside = set.inside != negated;
            return set;
        }

        p += next_char(pattern, p, &low);
        high = low;

        if (p + 1 < pattern.len && pattern.data[p] == '-' && pattern.data[p + 1] != ']') {
            p++;
            p += next_char(pattern, p, &high);
        }

        if (cp >= low && cp <= high) {
            set.inside = true;
        }
    }

    /* without an end it is only a bracket */
    set.end = 0;
    return set;
}


/* one step of the pattern that is no star; how long it is, 0 when it does not fit */
static size_t
glob_step(tg_str_t pattern, size_t p, int32_t cp)
{
    size_t         n;
    int32_t        wanted;
    tg_file_set_t  set;

    if (pattern.data[p] == '?') {
        return 1;
    }

    if (pattern.data[p] == '[') {
        set = glob_set(pattern, p, cp);
        if (set.end != 0) {
            return set.inside ? set.end - p : 0;
        }
    }

    n = next_char(pattern, p, &wanted);
    return wanted == cp ? n : 0;
}


/* goes back to the last star only: an earlier one could take nothing that it can not */
static bool
glob_fits(tg_str_t pattern, tg_str_t text)
{
    size_t   p, t, n, step, star, resume;
    int32_t  cp;

    p = 0;
    t = 0;
    star = SIZE_MAX;
    resume = 0;

    while (t < text.len) {
        if (p < pattern.len && pattern.data[p] == '*') {
            star = ++p;
            resume = t;
            continue;
        }

        n = next_char(text, t, &cp);
        step = p < pattern.len ? glob_step(pattern, p, cp) : 0;

        if (step != 0) {
            p += step;
            t += n;

        } else if (star != SIZE_MAX) {
            p = star;
            resume += next_char(text, resume, &cp);
            t = resume;

        } else {
            return false;
        }
    }

    while (p < pattern.len && pattern.data[p] == '*') {
        p++;
    }

    return p == pattern.len;
}


bool
tg_file_glob(tg_str_t pattern, tg_str_t path)
{
    if (glob_fits(pattern, path) || glob_fits(pattern, tg_file_path_name(path))) {
        return true;
    }

    return pattern.len > 3 && memcmp(pattern.data, "**/", 3) == 0
           && tg_file_glob((tg_str_t) { pattern.len - 3, pattern.data + 3 }, path);
}
