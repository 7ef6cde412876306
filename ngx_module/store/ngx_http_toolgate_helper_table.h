/*
 * What a model is told of the tools that the helper runs. Which group they are of and
 * what may go wrong with them is in the catalogue (tg_toolset.h).
 */

#ifndef NGX_HTTP_TOOLGATE_HELPER_TABLE_H
#define NGX_HTTP_TOOLGATE_HELPER_TABLE_H

#include "tg_policy.h"


typedef struct {
    const char   *name;
    const char   *description;
    const char   *parameters;      /* JSON Schema */
    tg_effect_e   effect;
} ngx_http_toolgate_helper_entry_t;

/* Ends with an entry without a name. */
extern const ngx_http_toolgate_helper_entry_t  ngx_http_toolgate_helper_table[];

#endif /* NGX_HTTP_TOOLGATE_HELPER_TABLE_H */
