/*
 * Which endpoint a request is for: one table of paths, methods and scopes.
 */

#include "ngx_http_toolgate_api.h"
#include "ngx_http_toolgate_toolsets.h"
#include "ngx_http_toolgate_registry.h"


#define NGX_HTTP_TOOLGATE_REQUEST_ID  16      /* bytes, as nginx's own */


typedef ngx_int_t (*ngx_http_toolgate_endpoint_pt)(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_str_t *rest);

typedef struct {
    ngx_str_t                       path;       /* "*" is a segment of any name */
    unsigned                        tree:1;     /* also what lies below it */
    ngx_uint_t                      methods;
    const char                     *allow;
    ngx_uint_t                      scope;
    ngx_http_toolgate_endpoint_pt   handler;    /* NULL: not built yet */
} ngx_http_toolgate_route_t;


/* A request whose key is looked for in the store. */
typedef struct {
    ngx_http_request_t         *request;
    ngx_http_toolgate_route_t  *route;
    ngx_str_t                   rest;
} ngx_http_toolgate_late_t;


static ngx_int_t ngx_http_toolgate_request_id(ngx_http_request_t *r);
static ngx_int_t ngx_http_toolgate_dispatch(ngx_http_request_t *r,
    ngx_http_toolgate_route_t *route, ngx_http_toolgate_key_t *key,
    const char *code, ngx_str_t *rest);
static ngx_int_t ngx_http_toolgate_late_auth(ngx_http_request_t *r,
    ngx_http_toolgate_route_t *route, ngx_str_t *rest);
static void ngx_http_toolgate_late_done(void *data, ngx_uint_t up);
static ngx_http_toolgate_route_t *ngx_http_toolgate_route(ngx_str_t *uri,
    ngx_str_t *rest);
static ngx_uint_t ngx_http_toolgate_route_fits(ngx_str_t *path, ngx_str_t *uri,
    ngx_str_t *rest);


#define NGX_HTTP_TOOLGATE_ANY                                                 \
    (NGX_HTTP_GET|NGX_HTTP_POST|NGX_HTTP_PUT|NGX_HTTP_DELETE|NGX_HTTP_PATCH)

#define ngx_http_toolgate_later(path, scope)                                  \
    { ngx_string(path), 1, NGX_HTTP_TOOLGATE_ANY, "", scope, NULL }


/* The families of the control plane know their own paths and methods. */
#define ngx_http_toolgate_admin(path, handler)                                \
    { ngx_string(path), 1, NGX_HTTP_TOOLGATE_ANY, "",                         \
      NGX_HTTP_TOOLGATE_SCOPE_ADMIN, handler }


/* The first that fits is taken. */
static ngx_http_toolgate_route_t  ngx_http_toolgate_routes[] = {

    { ngx_string("/v1/chat/completions"), 0, NGX_HTTP_POST, "POST",
      NGX_HTTP_TOOLGATE_SCOPE_RUN, ngx_http_toolgate_chat },

    { ngx_string("/v1/responses"), 1,
      NGX_HTTP_GET|NGX_HTTP_POST|NGX_HTTP_DELETE, "GET, POST, DELETE",
      NGX_HTTP_TOOLGATE_SCOPE_RUN, ngx_http_toolgate_responses },

    { ngx_string("/v1/models"), 1, NGX_HTTP_GET, "GET",
      NGX_HTTP_TOOLGATE_SCOPE_RUN, ngx_http_toolgate_models },

    ngx_http_toolgate_admin("/v1/agents", ngx_http_toolgate_agents),
    ngx_http_toolgate_admin("/v1/tools", ngx_http_toolgate_tools),
    ngx_http_toolgate_admin("/v1/secrets", ngx_http_toolgate_secrets_api),
    ngx_http_toolgate_admin("/v1/tool_signing_secret",
                            ngx_http_toolgate_signing_secret),
    ngx_http_toolgate_admin("/v1/api_keys", ngx_http_toolgate_api_keys),
    ngx_http_toolgate_admin("/v1/end_user_keys", ngx_http_toolgate_user_keys_api),
    ngx_http_toolgate_admin("/v1/projects", ngx_http_toolgate_projects),

    { ngx_string("/v1/runs"), 0, NGX_HTTP_GET|NGX_HTTP_POST, "GET, POST",
      NGX_HTTP_TOOLGATE_SCOPE_RUN, ngx_http_toolgate_runs },

    { ngx_string("/v1/runs/*"), 0, NGX_HTTP_GET, "GET",
      NGX_HTTP_TOOLGATE_SCOPE_RUN, ngx_http_toolgate_run_get },

    { ngx_string("/v1/runs/*/events"), 0, NGX_HTTP_GET, "GET",
      NGX_HTTP_TOOLGATE_SCOPE_RUN, ngx_http_toolgate_run_events },

    { ngx_string("/v1/runs/*/cancel"), 0, NGX_HTTP_POST, "POST",
      NGX_HTTP_TOOLGATE_SCOPE_RUN, ngx_http_toolgate_run_cancel },

    { ngx_string("/v1/runs/*/submit_tool_outputs"), 0, NGX_HTTP_POST, "POST",
      NGX_HTTP_TOOLGATE_SCOPE_RUN, ngx_http_toolgate_run_submit_api },

    { ngx_string("/v1/runs/*/steps"), 0, NGX_HTTP_GET, "GET",
      NGX_HTTP_TOOLGATE_SCOPE_RUN, ngx_http_toolgate_run_steps },

    { ngx_string("/v1/sessions"), 0, NGX_HTTP_POST, "POST",
      NGX_HTTP_TOOLGATE_SCOPE_RUN, ngx_http_toolgate_sessions_api },

    { ngx_string("/v1/sessions/*"), 0, NGX_HTTP_GET|NGX_HTTP_DELETE, "GET, DELETE",
      NGX_HTTP_TOOLGATE_SCOPE_RUN, ngx_http_toolgate_sessions_api },

    { ngx_string("/v1/approvals"), 0, NGX_HTTP_GET, "GET",
      NGX_HTTP_TOOLGATE_SCOPE_APPROVE, ngx_http_toolgate_approvals_api },

    { ngx_string("/v1/approvals/*"), 0, NGX_HTTP_GET|NGX_HTTP_POST, "GET, POST",
      NGX_HTTP_TOOLGATE_SCOPE_APPROVE, ngx_http_toolgate_approvals_api },

    { ngx_string("/v1/sessions/*/messages"), 0, NGX_HTTP_GET, "GET",
      NGX_HTTP_TOOLGATE_SCOPE_RUN, ngx_http_toolgate_sessions_api },

    ngx_http_toolgate_later("/v1/embeddings", NGX_HTTP_TOOLGATE_SCOPE_RUN),
    ngx_http_toolgate_later("/v1/completions", NGX_HTTP_TOOLGATE_SCOPE_RUN),
    ngx_http_toolgate_later("/v1/moderations", NGX_HTTP_TOOLGATE_SCOPE_RUN),

    { ngx_string("/agentengine/api/v1"), 1, NGX_HTTP_GET|NGX_HTTP_POST, "GET, POST",
      NGX_HTTP_TOOLGATE_SCOPE_RUN, ngx_http_toolgate_actions },

    { ngx_string("/v1/toolsets"), 0, NGX_HTTP_GET, "GET",
      NGX_HTTP_TOOLGATE_SCOPE_TOOLS, ngx_http_toolgate_toolsets },

    { ngx_string("/v1/toolsets/search"), 0, NGX_HTTP_POST, "POST",
      NGX_HTTP_TOOLGATE_SCOPE_TOOLS, ngx_http_toolgate_toolsets_search },

    ngx_http_toolgate_later("/v1/toolsets", NGX_HTTP_TOOLGATE_SCOPE_TOOLS),
    ngx_http_toolgate_later("/v1/webhooks", NGX_HTTP_TOOLGATE_SCOPE_ADMIN),
    ngx_http_toolgate_later("/v1/knowledge", NGX_HTTP_TOOLGATE_SCOPE_ADMIN),
    ngx_http_toolgate_later("/v1/tickets", NGX_HTTP_TOOLGATE_SCOPE_ADMIN),
    ngx_http_toolgate_later("/v1/handoffs", NGX_HTTP_TOOLGATE_SCOPE_ADMIN),
    ngx_http_toolgate_later("/v1/flags", NGX_HTTP_TOOLGATE_SCOPE_ADMIN),

    { ngx_null_string, 0, 0, NULL, 0, NULL }
};


char *
ngx_http_toolgate_api(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_toolgate_loc_conf_t  *tlcf = conf;

    ngx_http_core_loc_conf_t       *clcf;
    ngx_http_toolgate_srv_conf_t   *tscf;
    ngx_http_toolgate_main_conf_t  *tmcf;

    static ngx_str_t  request_id = ngx_string("request_id");

    if (tlcf->api) {
        return "is duplicate";
    }

    tlcf->api = 1;

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    clcf->handler = ngx_http_toolgate_api_handler;

    tscf = ngx_http_conf_get_module_srv_conf(cf, ngx_http_toolgate_module);
    tscf->api = 1;

    tmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_toolgate_module);
    tmcf->any_api = 1;

    tmcf->request_id = ngx_http_get_variable_index(cf, &request_id);

    return tmcf->request_id == NGX_ERROR ? NGX_CONF_ERROR : NGX_CONF_OK;
}


ngx_int_t
ngx_http_toolgate_api_handler(ngx_http_request_t *r)
{
    ngx_str_t                   rest, allow;
    const char                 *code;
    ngx_http_toolgate_key_t    *key;
    ngx_http_toolgate_route_t  *route;

    if (ngx_http_toolgate_request_id(r) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    route = ngx_http_toolgate_route(&r->uri, &rest);

    if (route == NULL) {
        return ngx_http_toolgate_reply_error(r, "unknown_url", NULL, NULL);
    }

    if (!(r->method & route->methods)) {
        allow.data = (u_char *) route->allow;
        allow.len = ngx_strlen(route->allow);

        if (allow.len
            && ngx_http_toolgate_add_header(r, "Allow", &allow) != NGX_OK)
        {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        return ngx_http_toolgate_reply_error(r, "method_not_allowed", NULL, NULL);
    }

    key = ngx_http_toolgate_auth(r, route->scope, &code);

    if (key == NULL && ngx_strcmp(code, "invalid_api_key") == 0
        && ngx_http_toolgate_registry_on())
    {
        return ngx_http_toolgate_late_auth(r, route, &rest);
    }

    return ngx_http_toolgate_dispatch(r, route, key, code, &rest);
}


static ngx_int_t
ngx_http_toolgate_dispatch(ngx_http_request_t *r, ngx_http_toolgate_route_t *route,
    ngx_http_toolgate_key_t *key, const char *code, ngx_str_t *rest)
{
    if (key == NULL) {
        return ngx_http_toolgate_reply_error(r, code, NULL, NULL);
    }

    if (route->handler == NULL) {
        return ngx_http_toolgate_reply_error(r, "not_implemented", NULL, NULL);
    }

    return route->handler(r, key, rest);
}


/* The key may have been made a moment ago on another node. */
static ngx_int_t
ngx_http_toolgate_late_auth(ngx_http_request_t *r,
    ngx_http_toolgate_route_t *route, ngx_str_t *rest)
{
    ngx_http_toolgate_late_t  *late;

    late = ngx_palloc(r->pool, sizeof(ngx_http_toolgate_late_t));
    if (late == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    late->request = r;
    late->route = route;
    late->rest = *rest;

    if (ngx_http_toolgate_registry_refresh(r->pool, ngx_http_toolgate_late_done,
                                           late)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    r->main->count++;

    return NGX_DONE;
}


static void
ngx_http_toolgate_late_done(void *data, ngx_uint_t up)
{
    ngx_http_toolgate_late_t *late = data;

    const char               *code;
    ngx_connection_t         *c;
    ngx_http_request_t       *r;
    ngx_http_toolgate_key_t  *key;

    r = late->request;
    c = r->connection;
    key = ngx_http_toolgate_auth(r, late->route->scope, &code);

    if (key == NULL && !up && ngx_strcmp(code, "invalid_api_key") == 0) {
        code = "store_unavailable";
    }

    ngx_http_finalize_request(r, ngx_http_toolgate_dispatch(r, late->route, key,
                                                            code, &late->rest));
    ngx_http_run_posted_requests(c);
}


static ngx_http_toolgate_route_t *
ngx_http_toolgate_route(ngx_str_t *uri, ngx_str_t *rest)
{
    ngx_http_toolgate_route_t  *route;

    for (route = ngx_http_toolgate_routes; route->path.len; route++) {

        if (ngx_http_toolgate_route_fits(&route->path, uri, rest)
            && (rest->len == 0 || (route->tree && rest->data[0] == '/')))
        {
            return route;
        }
    }

    return NULL;
}


/* rest is what stands behind the path. */
static ngx_uint_t
ngx_http_toolgate_route_fits(ngx_str_t *path, ngx_str_t *uri, ngx_str_t *rest)
{
    u_char  *p, *u, *last;

    u = uri->data;
    last = uri->data + uri->len;

    for (p = path->data; p < path->data + path->len; p++) {

        if (*p == '*' && u < last && *u != '/') {
            while (u < last && *u != '/') {
                u++;
            }

        } else if (u == last || *u++ != *p) {
            return 0;
        }
    }

    rest->data = u;
    rest->len = last - u;

    return 1;
}


/* The same id that the access log can name as $request_id: made here, from bytes
 * that cost less, unless the log or a header of the operator's has made it. */
static ngx_int_t
ngx_http_toolgate_request_id(ngx_http_request_t *r)
{
    u_char                          random[NGX_HTTP_TOOLGATE_REQUEST_ID];
    ngx_str_t                       value;
    ngx_http_variable_value_t      *vv;
    ngx_http_toolgate_main_conf_t  *tmcf;

    tmcf = ngx_http_get_module_main_conf(r, ngx_http_toolgate_module);
    vv = &r->variables[tmcf->request_id];

    if (!vv->valid) {
        value.len = 2 * NGX_HTTP_TOOLGATE_REQUEST_ID;
        value.data = ngx_pnalloc(r->pool, value.len);

        if (value.data == NULL
            || ngx_http_toolgate_random(random, sizeof(random)) != NGX_OK)
        {
            return NGX_ERROR;
        }

        (void) ngx_hex_dump(value.data, random, sizeof(random));

        ngx_memzero(vv, sizeof(ngx_http_variable_value_t));
        vv->valid = 1;
        vv->data = value.data;
        vv->len = value.len;
    }

    value.data = vv->data;
    value.len = vv->len;

    return ngx_http_toolgate_add_header(r, "x-request-id", &value);
}
