/*
 * Reading request headers by name and adding response headers, in the way that
 * works for every version of nginx.
 */

#include "ngx_http_toolgate_module.h"


static ngx_table_elt_t *ngx_http_toolgate_header_get(ngx_list_t *headers,
    const char *name);


ngx_int_t
ngx_http_toolgate_add_header(ngx_http_request_t *r, const char *name,
    ngx_str_t *value)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(&r->headers_out.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(h, sizeof(ngx_table_elt_t));
    h->hash = 1;
    h->key.data = (u_char *) name;
    h->key.len = ngx_strlen(name);
    h->value = *value;
    ngx_http_toolgate_header_single(h);

    return NGX_OK;
}


ngx_str_t
ngx_http_toolgate_request_header(ngx_http_request_t *r, const char *name)
{
    return ngx_http_toolgate_header_find(&r->headers_in.headers, name);
}


ngx_int_t
ngx_http_toolgate_change_header(ngx_http_request_t *r, const char *name,
    ngx_str_t *value)
{
    ngx_table_elt_t  *h;

    h = ngx_http_toolgate_header_get(&r->headers_out.headers, name);

    if (h == NULL) {
        return ngx_http_toolgate_add_header(r, name, value);
    }

    h->value = *value;

    return NGX_OK;
}


ngx_str_t
ngx_http_toolgate_header_find(ngx_list_t *headers, const char *name)
{
    ngx_str_t         none = ngx_null_string;
    ngx_table_elt_t  *h;

    h = ngx_http_toolgate_header_get(headers, name);

    return h ? h->value : none;
}


static ngx_table_elt_t *
ngx_http_toolgate_header_get(ngx_list_t *headers, const char *name)
{
    size_t            len;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    len = ngx_strlen(name);
    part = &headers->part;
    h = part->elts;

    for (i = 0; /* void */ ; i++) {

        if (i >= part->nelts) {
            if (part->next == NULL) {
                return NULL;
            }

            part = part->next;
            h = part->elts;
            i = 0;
        }

        /* a response header whose hash is 0 has been taken back; those of requests
         * always have one */

        if (h[i].hash != 0 && h[i].key.len == len
            && ngx_strncasecmp(h[i].key.data, (u_char *) name, len) == 0)
        {
            return &h[i];
        }
    }
}
