/*
 * What a model is told of the tools that the helper runs. It knows neither agents nor
 * how a call gets to the helper.
 */

#ifndef NGX_HTTP_TOOLGATE_HELPER_TABLE_H
#define NGX_HTTP_TOOLGATE_HELPER_TABLE_H

#include "tg_policy.h"


typedef struct {
    const char   *name;
    const char   *description;
    const char   *parameters;      /* JSON Schema */
    tg_effect_e   effect;
    const char   *groups;          /* include words that hold it, with blanks between */
} ngx_http_toolgate_helper_entry_t;

/* Ends with an entry without a name. */
extern const ngx_http_toolgate_helper_entry_t  ngx_http_toolgate_helper_table[];

#endif /* NGX_HTTP_TOOLGATE_HELPER_TABLE_H */
