/*
 * The time zones of this machine, read while nginx reads its configuration.
 */

#ifndef NGX_HTTP_TOOLGATE_ZONES_H
#define NGX_HTTP_TOOLGATE_ZONES_H

#include <ngx_config.h>
#include <ngx_core.h>

#include "tg_zone.h"


/*
 * Reads all zones below $TZDIR or /usr/share/zoneinfo into a table that lives as
 * long as cf->pool; business hours that are made later need no file. *zones is
 * NULL when there are none, which is no error. NGX_ERROR: out of memory.
 */
ngx_int_t ngx_http_toolgate_zones_load(ngx_conf_t *cf, tg_zones_t **zones);

#endif /* NGX_HTTP_TOOLGATE_ZONES_H */
