/*
 * Reference resolution of RFC 3986 (5.2), used only to name the parts of one
 * document: nothing is ever fetched. It must not know what a schema is.
 */

#include "tg_schema_internal.h"


typedef struct {
    tg_str_t  scheme;       /* with its colon */
    tg_str_t  authority;    /* with its two slashes */
    tg_str_t  path;
    tg_str_t  query;        /* with its question mark */
} tg_schema_uri_t;

typedef struct {
    char    *data;
    size_t   len;
    size_t   size;
} tg_schema_uri_out_t;

static void tg_schema_uri_split(tg_str_t text, tg_schema_uri_t *uri);
static size_t tg_schema_uri_scheme(tg_str_t text);
static bool tg_schema_uri_put(tg_schema_uri_out_t *out, tg_str_t s);
static bool tg_schema_uri_path(tg_schema_uri_out_t *out, tg_str_t dir, tg_str_t path);
static void tg_schema_uri_remove_dots(char *path, size_t *len);
static int tg_schema_uri_hex(char c);


/* Resolves ref (without fragment) against base; false when it does not fit. */
bool
tg_schema_uri_resolve(const char *base, tg_str_t ref, char *out, size_t size)
{
    bool                 ok;
    size_t               dir;
    tg_schema_uri_t      b, r;
    tg_schema_uri_out_t  o;

    tg_schema_uri_split(tg_str_of(base), &b);
    tg_schema_uri_split(ref, &r);

    o = (tg_schema_uri_out_t) { out, 0, size };

    if (r.scheme.len != 0) {
        ok = tg_schema_uri_put(&o, r.scheme) && tg_schema_uri_put(&o, r.authority)
             && tg_schema_uri_path(&o, tg_null_str, r.path);

    } else if (r.authority.len != 0) {
        ok = tg_schema_uri_put(&o, b.scheme) && tg_schema_uri_put(&o, r.authority)
             && tg_schema_uri_path(&o, tg_null_str, r.path);

    } else if (r.path.len == 0) {
        ok = tg_schema_uri_put(&o, b.scheme) && tg_schema_uri_put(&o, b.authority)
             && tg_schema_uri_put(&o, b.path);

        if (r.query.len == 0) {
            r.query = b.query;
        }

    } else {
        dir = 0;

        if (r.path.data[0] != '/') {
            for (dir = b.path.len; dir > 0 && b.path.data[dir - 1] != '/'; dir--) {
                /* up to and with the last slash */
            }
        }

        ok = tg_schema_uri_put(&o, b.scheme) && tg_schema_uri_put(&o, b.authority);

        if (ok && dir == 0 && b.authority.len != 0 && r.path.data[0] != '/') {
            ok = tg_schema_uri_put(&o, tg_str("/"));
        }

        ok = ok && tg_schema_uri_path(&o, (tg_str_t) { dir, b.path.data }, r.path);
    }

    if (!ok || !tg_schema_uri_put(&o, r.query)) {
        return false;
    }

    out[o.len] = '\0';

    return true;
}


/* Undoes percent-encoding; false for a broken escape, a NUL or no room. */
bool
tg_schema_uri_decode(tg_str_t text, char *out, size_t size)
{
    int     high, low;
    char    c;
    size_t  i, n;

    n = 0;

    for (i = 0; i < text.len; i++) {
        c = text.data[i];

        if (c == '%') {
            if (text.len - i < 3) {
                return false;
            }

            high = tg_schema_uri_hex(text.data[i + 1]);
            low = tg_schema_uri_hex(text.data[i + 2]);

            if (high < 0 || low < 0) {
                return false;
            }

            c = (char) (high * 16 + low);
            i += 2;
        }

        if (c == '\0' || n + 1 >= size) {
            return false;
        }

        out[n++] = c;
    }

    out[n] = '\0';

    return true;
}


static void
tg_schema_uri_split(tg_str_t text, tg_schema_uri_t *uri)
{
    size_t  n;

    memset(uri, 0, sizeof(*uri));

    n = tg_schema_uri_scheme(text);
    uri->scheme = (tg_str_t) { n, text.data };
    text = (tg_str_t) { text.len - n, n == 0 ? text.data : text.data + n };

    if (text.len >= 2 && text.data[0] == '/' && text.data[1] == '/') {
        for (n = 2; n < text.len && text.data[n] != '/' && text.data[n] != '?'; n++) {
            /* the authority ends there */
        }

        uri->authority = (tg_str_t) { n, text.data };
        text = (tg_str_t) { text.len - n, text.data + n };
    }

    for (n = 0; n < text.len && text.data[n] != '?'; n++) {
        /* the path ends there */
    }

    uri->path = (tg_str_t) { n, text.data };
    uri->query = (tg_str_t) { text.len - n, n == 0 ? text.data : text.data + n };
}


/* Length of a leading "scheme:", 0 when there is none. */
static size_t
tg_schema_uri_scheme(tg_str_t text)
{
    char    c;
    size_t  n;

    for (n = 0; n < text.len; n++) {
        c = text.data[n];

        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
            continue;
        }

        if (n > 0 && ((c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.')) {
            continue;
        }

        return n > 0 && c == ':' ? n + 1 : 0;
    }

    return 0;
}


static bool
tg_schema_uri_put(tg_schema_uri_out_t *out, tg_str_t s)
{
    if (s.len >= out->size - out->len) {
        return false;
    }

    if (s.len != 0) {
        memcpy(out->data + out->len, s.data, s.len);
        out->len += s.len;
    }

    return true;
}


static bool
tg_schema_uri_path(tg_schema_uri_out_t *out, tg_str_t dir, tg_str_t path)
{
    size_t  start, len;

    start = out->len;

    if (!tg_schema_uri_put(out, dir) || !tg_schema_uri_put(out, path)) {
        return false;
    }

    len = out->len - start;
    tg_schema_uri_remove_dots(out->data + start, &len);
    out->len = start + len;

    return true;
}


/* Takes "." and ".." segments out in place; what is left never gets longer. */
static void
tg_schema_uri_remove_dots(char *path, size_t *len)
{
    char    *from, *end, *to, *next;
    size_t   n;

    from = path;
    end = path + *len;
    to = path;

    while (from < end) {
        next = memchr(from, '/', (size_t) (end - from));
        n = (size_t) ((next == NULL ? end : next) - from);

        if (n == 1 && from[0] == '.') {
            /* stays where it is */

        } else if (n == 2 && from[0] == '.' && from[1] == '.') {
            if (to > path && to - 1 > path) {
                for (to--; to > path && to[-1] != '/'; to--) {
                    /* drop the segment before */
                }
            }

        } else {
            memmove(to, from, n);
            to += n;

            if (next != NULL) {
                *to++ = '/';
            }
        }

        from = next == NULL ? end : next + 1;
    }

    *len = (size_t) (to - path);
}


static int
tg_schema_uri_hex(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }

    c = (char) (c | 0x20);

    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}
