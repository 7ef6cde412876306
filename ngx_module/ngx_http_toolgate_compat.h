/*
 * The only place that asks for nginx_version. The oldest supported is 1.22.
 */

#ifndef NGX_HTTP_TOOLGATE_COMPAT_H
#define NGX_HTTP_TOOLGATE_COMPAT_H

#include <nginx.h>


/* 1.23 linked headers of one name; a stray pointer there crashes it */
#if (nginx_version >= 1023000)
#define ngx_http_toolgate_header_single(h)  (h)->next = NULL
#else
#define ngx_http_toolgate_header_single(h)
#endif

#endif /* NGX_HTTP_TOOLGATE_COMPAT_H */
