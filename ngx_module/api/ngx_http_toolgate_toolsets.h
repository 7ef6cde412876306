/*
 * What the endpoints of the tool gateway share: tools as they are described to callers.
 */

#ifndef NGX_HTTP_TOOLGATE_TOOLSETS_H
#define NGX_HTTP_TOOLGATE_TOOLSETS_H

#include "ngx_http_toolgate_api.h"

#include "tg_toolset.h"


/* A tool that can be described: one of the helper's, or an HTTP tool of the project. */
typedef struct {
    ngx_http_toolgate_tool_t   *builtin;       /* NULL: external */
    const tg_toolset_tool_t    *entry;         /* of the catalogue; NULL: external */
    json_t                     *doc;           /* of an external one, as defined */
} ngx_http_toolgate_listed_t;


/* Adds the helper's tools that are in the set, in the order of the catalogue, to a list
 * of listed_t. Those that this version has not are left out. */
ngx_int_t ngx_http_toolgate_toolset_builtins(ngx_http_toolgate_main_conf_t *tmcf,
    tg_toolset_t set, ngx_array_t *list);

/* The name, the words and the JSON Schema of a listed tool. */
tg_str_t ngx_http_toolgate_listed_name(ngx_http_toolgate_listed_t *listed);
tg_str_t ngx_http_toolgate_listed_description(ngx_http_toolgate_listed_t *listed);
json_t *ngx_http_toolgate_listed_parameters(ngx_http_toolgate_listed_t *listed);

/* Whether a call would be tried now. */
ngx_uint_t ngx_http_toolgate_listed_enabled(ngx_http_toolgate_main_conf_t *tmcf,
    ngx_http_toolgate_listed_t *listed);

/* Appends what describes it, without its schema and without braces: what a list and a
 * search have in common. */
void ngx_http_toolgate_listed_write(ngx_http_request_t *r,
    ngx_http_toolgate_listed_t *listed, tg_buf_t *out);

/* GET /v1/toolsets. */
ngx_int_t ngx_http_toolgate_toolsets(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_str_t *rest);

/* POST /v1/toolsets/search, see _search.c. */
ngx_int_t ngx_http_toolgate_toolsets_search(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_str_t *rest);

#endif /* NGX_HTTP_TOOLGATE_TOOLSETS_H */
