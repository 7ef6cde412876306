/*
 * The model of an agent: the name of a configured one, or an object with the base
 * URL of an API, a model's name there and a secret with its key. It judges the URL as
 * those of tools are judged; whether the secret may go there is asked at each call.
 */

#include "ngx_http_toolgate_catalog.h"
#include "ngx_http_toolgate_registry.h"


#define NGX_HTTP_TOOLGATE_MODEL_PATH      "/chat/completions"
#define NGX_HTTP_TOOLGATE_MODEL_NAME_MAX  256      /* bytes */


static ngx_int_t ngx_http_toolgate_catalog_own_model(
    ngx_http_toolgate_catalog_t *cat, json_t *value, const char *base,
    ngx_http_toolgate_agent_t *agent);
static ngx_int_t ngx_http_toolgate_catalog_model_url(
    ngx_http_toolgate_catalog_t *cat, ngx_str_t *text, const char *base,
    ngx_http_toolgate_model_url_t *url);
static ngx_int_t ngx_http_toolgate_catalog_model_name(
    ngx_http_toolgate_catalog_t *cat, const char *base, ngx_str_t *name);


static const char *const  ngx_http_toolgate_own_model_keys[] = {
    "base_url", "name", "secret", NULL
};


ngx_int_t
ngx_http_toolgate_catalog_model(ngx_http_toolgate_catalog_t *cat, json_t *value,
    const char *base, ngx_http_toolgate_agent_t *agent)
{
    char     pointer[NGX_HTTP_TOOLGATE_POINTER_MAX];
    json_t  *model;

    model = json_object_get(value, "model");

    if (json_is_object(model)) {
        ngx_http_toolgate_catalog_at(pointer, "%s/model", base);
        return ngx_http_toolgate_catalog_own_model(cat, model, pointer, agent);
    }

    if (model && !json_is_string(model)) {
        return ngx_http_toolgate_catalog_fault(cat, base, "model", "invalid_type",
                                               "a model's name, or an object with "
                                               "\"base_url\" and \"name\" is needed");
    }

    if (ngx_http_toolgate_catalog_string(cat, value, base, "model", 1, &agent->model)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (!cat->conf->has_model(cat->conf->data, &agent->model)) {
        return ngx_http_toolgate_catalog_fault(cat, base, "model",
                                               "model_not_found",
                                               "\"model\" names no "
                                               "\"toolgate_model\"");
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_catalog_own_model(ngx_http_toolgate_catalog_t *cat, json_t *value,
    const char *base, ngx_http_toolgate_agent_t *agent)
{
    ngx_str_t                       text;
    ngx_http_toolgate_model_t      *model;
    ngx_http_toolgate_upstream_t   *upstream;
    ngx_http_toolgate_model_url_t  *url;

    model = ngx_pcalloc(cat->pool, sizeof(ngx_http_toolgate_model_t));
    url = ngx_pcalloc(cat->pool, sizeof(ngx_http_toolgate_model_url_t));

    if (model == NULL || url == NULL
        || ngx_array_init(&model->upstreams, cat->pool, 1,
                          sizeof(ngx_http_toolgate_upstream_t)) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ngx_http_toolgate_catalog_known(cat, value, base,
                                        ngx_http_toolgate_own_model_keys) != NGX_OK
        || ngx_http_toolgate_catalog_string(cat, value, base, "base_url", 1, &text)
           != NGX_OK
        || ngx_http_toolgate_catalog_model_url(cat, &text, base, url) != NGX_OK
        || ngx_http_toolgate_catalog_string(cat, value, base, "name", 1,
                                            &model->name) != NGX_OK
        || ngx_http_toolgate_catalog_model_name(cat, base, &model->name) != NGX_OK
        || ngx_http_toolgate_catalog_string(cat, value, base, "secret", 0,
                                            &url->secret) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (json_object_get(value, "secret") && !cat->stored
        && ngx_http_toolgate_secret_find(cat->project, &url->secret) == NULL
        && ngx_http_toolgate_registry_get(cat->project,
                                          NGX_HTTP_TOOLGATE_KIND_SECRET,
                                          &url->secret)
           == NULL)
    {
        return ngx_http_toolgate_catalog_fault(cat, base, "secret",
                                               "secret_not_found",
                                               "the project has no secret of this "
                                               "name");
    }

    upstream = ngx_array_push(&model->upstreams);
    if (upstream == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(upstream, sizeof(ngx_http_toolgate_upstream_t));
    upstream->url = url;

    agent->model = model->name;
    agent->own_model = model;

    return NGX_OK;
}


/* A query would be in the way of the path that is added. */
static ngx_int_t
ngx_http_toolgate_catalog_model_url(ngx_http_toolgate_catalog_t *cat, ngx_str_t *text,
    const char *base, ngx_http_toolgate_model_url_t *url)
{
    u_char      *p;
    tg_str_t     whole;
    const char  *code;

    static const size_t  added = sizeof(NGX_HTTP_TOOLGATE_MODEL_PATH) - 1;

    /* "https://" must not find a host in what is added */

    if (text->len > 1 && text->data[text->len - 1] == '/'
        && text->data[text->len - 2] != '/')
    {
        text->len--;
    }

    p = ngx_pnalloc(cat->pool, text->len + added);
    if (p == NULL) {
        return NGX_ERROR;
    }

    url->url.data = p;
    url->url.len = text->len + added;

    p = ngx_cpymem(p, text->data, text->len);
    ngx_memcpy(p, NGX_HTTP_TOOLGATE_MODEL_PATH, added);

    whole.data = (char *) url->url.data;
    whole.len = url->url.len;

    if (ngx_strlchr(text->data, text->data + text->len, '?')) {
        code = "invalid_url";

    } else if (tg_url_parse(whole, &url->parts, &code) == TG_OK) {
        code = tg_url_dot_segment(url->parts.target)
               ? "invalid_url" : tg_url_judge(&url->parts, cat->conf->guard);
    }

    if (code) {
        return ngx_http_toolgate_catalog_fault(cat, base, "base_url", code,
                                               "the base URL must be "
                                               "https://host[:port]/path in plain "
                                               "ASCII without user info, query, "
                                               "fragment, backslash or . and .. "
                                               "segments, at an address and port "
                                               "that may be called");
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_catalog_model_name(ngx_http_toolgate_catalog_t *cat,
    const char *base, ngx_str_t *name)
{
    size_t      i;
    ngx_uint_t  bad;

    bad = name->len > NGX_HTTP_TOOLGATE_MODEL_NAME_MAX;

    for (i = 0; i < name->len; i++) {
        bad |= name->data[i] < 0x20 || name->data[i] == 0x7f;
    }

    if (bad) {
        return ngx_http_toolgate_catalog_fault(cat, base, "name", "invalid_value",
                                               "a model's name has 1 to 256 bytes "
                                               "and no control characters");
    }

    return NGX_OK;
}
