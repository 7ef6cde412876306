/*
 * Business hours of an agent's JSON, and the grants that they bind. What hours mean
 * is in tg_hours; when they are asked, in the run.
 */

#include "ngx_http_toolgate_catalog.h"


static void ngx_http_toolgate_agent_hours_cleanup(void *data);


ngx_int_t
ngx_http_toolgate_agent_hours(ngx_http_toolgate_catalog_t *cat, json_t *value,
    const char *base, ngx_http_toolgate_agent_t *agent)
{
    char                 pointer[NGX_HTTP_TOOLGATE_POINTER_MAX];
    tg_hours_t          *hours;
    tg_hours_error_t     error;
    ngx_pool_cleanup_t  *cln;

    value = json_object_get(value, "business_hours");

    if (value == NULL) {
        return NGX_OK;
    }

    cln = ngx_pool_cleanup_add(cat->pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    hours = tg_hours_parse(value, cat->conf->zones, &error);

    if (hours == NULL) {
        ngx_http_toolgate_catalog_at(pointer, "%s/business_hours%s", base,
                                     error.pointer);
        return ngx_http_toolgate_catalog_error(cat, pointer, error.code,
                                               error.reason);
    }

    cln->handler = ngx_http_toolgate_agent_hours_cleanup;
    cln->data = hours;
    agent->hours = hours;

    return NGX_OK;
}


static void
ngx_http_toolgate_agent_hours_cleanup(void *data)
{
    tg_hours_free(data);
}


ngx_int_t
ngx_http_toolgate_agent_hours_only(ngx_http_toolgate_catalog_t *cat,
    json_t *grant, const char *base, const ngx_http_toolgate_agent_t *agent,
    ngx_uint_t *hours_only)
{
    *hours_only = 0;

    if (ngx_http_toolgate_catalog_flag(cat, grant, base, "hours_only", hours_only)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    /* without hours it would be open always, which nobody means who writes this */

    if (*hours_only && agent->hours == NULL) {
        return ngx_http_toolgate_catalog_fault(cat, base, "hours_only",
                                               "invalid_value",
                                               "\"hours_only\" needs the agent's "
                                               "\"business_hours\"");
    }

    return NGX_OK;
}
