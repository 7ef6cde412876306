/*
 * The vendor's key, which the operator has written into the model's location: it is
 * known here only from the request that nginx has sent. A vendor may send it back in
 * an error, and what is kept of that must not have it.
 */

#include "ngx_http_toolgate_turn.h"


static ngx_str_t ngx_http_toolgate_turn_key_value(u_char *line, u_char *last);


/* names of headers that carry one */
static const ngx_str_t  ngx_http_toolgate_turn_key_headers[] = {
    ngx_string("authorization:"),
    ngx_string("proxy-authorization:"),
    ngx_string("api-key:"),
    ngx_string("x-api-key:"),
    ngx_string("x-goog-api-key:"),
    ngx_string("cookie:"),
    ngx_null_string
};


ngx_str_t
ngx_http_toolgate_turn_key(ngx_http_toolgate_turn_t *turn, u_char **at)
{
    u_char               *line, *end, *last;
    ngx_buf_t            *b;
    ngx_str_t             value = ngx_null_string;
    ngx_http_upstream_t  *u;

    u = turn->sub.request ? turn->sub.request->upstream : NULL;

    if (u == NULL || u->request_bufs == NULL) {
        return value;
    }

    /* the head is in the first buffer, sent or not */

    b = u->request_bufs->buf;
    last = b->last;

    for (line = *at ? *at : b->start; line && line < last; line = end + 1) {
        end = ngx_strlchr(line, last, LF);

        if (end == NULL || end - line < 2) {
            break;
        }

        value = ngx_http_toolgate_turn_key_value(line, end);

        if (value.len) {
            *at = end + 1;
            return value;
        }
    }

    *at = last;

    return value;
}


/* Without the scheme of an authorization. */
static ngx_str_t
ngx_http_toolgate_turn_key_value(u_char *line, u_char *last)
{
    u_char           *p, *blank;
    ngx_str_t         value = ngx_null_string;
    const ngx_str_t  *name;

    for (name = ngx_http_toolgate_turn_key_headers; name->len; name++) {

        if ((size_t) (last - line) > name->len
            && ngx_strncasecmp(line, name->data, name->len) == 0)
        {
            break;
        }
    }

    if (name->len == 0) {
        return value;
    }

    p = line + name->len;

    while (p < last && *p == ' ') {
        p++;
    }

    while (p < last && (*(last - 1) == CR || *(last - 1) == ' ')) {
        last--;
    }

    blank = ngx_strlchr(p, last, ' ');

    if (blank) {
        p = blank + 1;
    }

    value.data = p;
    value.len = last - p;

    return value;
}
