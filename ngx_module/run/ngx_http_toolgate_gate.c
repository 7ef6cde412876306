/*
 * Calls that wait for a person: which of them do. What the policy has refused does not
 * come here.
 */

#include "ngx_http_toolgate_run.h"


static tg_risk_e ngx_http_toolgate_call_risk(ngx_http_toolgate_call_t *call);


ngx_uint_t
ngx_http_toolgate_call_gated(ngx_http_toolgate_call_t *call)
{
    return tg_approval_gated(call->run->approval_mode,
                             ngx_http_toolgate_call_risk(call), call->approve);
}


/* The caller's app asks its own user before it does what a client tool says. */
static tg_risk_e
ngx_http_toolgate_call_risk(ngx_http_toolgate_call_t *call)
{
    const tg_approval_tool_t  *known;

    switch (call->tool->kind) {

    case NGX_HTTP_TOOLGATE_TOOL_HELPER:
        known = tg_approval_tool((tg_str_t) { call->tool->name.len,
                                              (char *) call->tool->name.data });
        return known ? known->risk : TG_RISK_CRITICAL;

    case NGX_HTTP_TOOLGATE_TOOL_HTTP:
        return tg_approval_risk(call->tool->effect);

    case NGX_HTTP_TOOLGATE_TOOL_CLIENT:
        break;
    }

    return TG_RISK_LOW;
}
