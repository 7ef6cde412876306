/*
 * Calls that wait for a person: which of them do, and what the store says of their
 * approvals. What the policy has refused does not come here. An approval's id follows
 * from its call, so that a run that is taken over asks for the same one.
 */

#include "ngx_http_toolgate_approvals.h"
#include "ngx_http_toolgate_durable.h"


/* One question about approvals; it lives in the request's pool. */
typedef struct {
    ngx_http_toolgate_run_t    *run;
    ngx_uint_t                  round;
    ngx_uint_t                  n;
    ngx_http_toolgate_call_t   *calls[NGX_HTTP_TOOLGATE_APPROVALS_MAX];
} ngx_http_toolgate_gate_t;


static tg_risk_e ngx_http_toolgate_call_risk(ngx_http_toolgate_call_t *call);
static ngx_int_t ngx_http_toolgate_gate_fill(ngx_http_toolgate_call_t *call,
    ngx_http_toolgate_approval_ask_t *ask);
static ngx_int_t ngx_http_toolgate_gate_document(ngx_http_toolgate_call_t *call,
    ngx_str_t *document);
static void ngx_http_toolgate_gate_label(tg_buf_t *out, const char *name,
    ngx_str_t *label);
static void ngx_http_toolgate_gate_asked(void *data,
    ngx_http_toolgate_approvals_asked_t *asked);


ngx_uint_t
ngx_http_toolgate_run_can_wait(ngx_http_toolgate_run_t *run)
{
    return run->durable && !run->durable->over && run->conf->run_host.len
           && run->face->waits;
}


ngx_uint_t
ngx_http_toolgate_call_gated(ngx_http_toolgate_call_t *call)
{
    return !call->approved
           && tg_approval_gated(call->run->approval_mode,
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


void
ngx_http_toolgate_gate_ask(ngx_http_toolgate_run_t *run)
{
    ngx_uint_t                         i;
    ngx_http_toolgate_call_t          *call;
    ngx_http_toolgate_gate_t          *gate;
    ngx_http_toolgate_approval_ask_t   asks[NGX_HTTP_TOOLGATE_APPROVALS_MAX];

    if (run->gathering) {
        return;
    }

    gate = NULL;

    /* the policy lets no more of a round pass than are asked for at once */

    for (i = 0; i < run->call_count; i++) {
        call = &run->calls[i];

        if (call->state != NGX_HTTP_TOOLGATE_CALL_ASKING || call->question) {
            continue;
        }

        if (gate == NULL) {
            gate = ngx_pcalloc(run->request->pool, sizeof(ngx_http_toolgate_gate_t));
        }

        if (gate == NULL || gate->n == NGX_HTTP_TOOLGATE_APPROVALS_MAX
            || ngx_http_toolgate_gate_fill(call, &asks[gate->n]) != NGX_OK)
        {
            run->out_of_memory = 1;
            return;
        }

        call->question = gate;
        gate->calls[gate->n++] = call;
    }

    if (gate == NULL) {
        return;
    }

    gate->run = run;
    gate->round = run->round;

    if (ngx_http_toolgate_approvals_ask(run->request->pool,
                                        run->request->connection->log,
                                        run->conf->redis, &run->durable->key,
                                        run->conf->approval_ttl,
                                        run->conf->retention, asks, gate->n,
                                        ngx_http_toolgate_gate_asked, gate)
        != NGX_OK)
    {
        run->out_of_memory = 1;
    }
}


static ngx_int_t
ngx_http_toolgate_gate_fill(ngx_http_toolgate_call_t *call,
    ngx_http_toolgate_approval_ask_t *ask)
{
    ngx_http_toolgate_run_t  *run;
    tg_approval_binding_t     binding;

    run = call->run;

    tg_id_derive("appr_", tg_str_of(run->id), tg_str_of(call->id), call->approval);
    ngx_memcpy(ask->id, call->approval, sizeof(ask->id));

    binding.project.data = (char *) run->project->name.data;
    binding.project.len = run->project->name.len;
    binding.account.data = (char *) run->prompt.account.data;
    binding.account.len = run->prompt.account.len;
    binding.session = run->prompt.session.len
                      ? (tg_str_t) { run->prompt.session.len,
                                     (char *) run->prompt.session.data }
                      : tg_str_of(run->id);
    binding.tool.data = (char *) call->tool->name.data;
    binding.tool.len = call->tool->name.len;
    binding.arguments.data = (char *) call->canonical.data;
    binding.arguments.len = call->canonical.len;

    if (tg_approval_bind(&binding, ask->binding) != TG_OK) {
        return NGX_ERROR;
    }

    return ngx_http_toolgate_gate_document(call, &ask->document);
}


/* What a person is shown. */
static ngx_int_t
ngx_http_toolgate_gate_document(ngx_http_toolgate_call_t *call, ngx_str_t *document)
{
    tg_buf_t                  text;
    ngx_http_toolgate_run_t  *run;

    run = call->run;

    tg_buf_init(&text, 2 * NGX_HTTP_TOOLGATE_APPROVAL_BYTES_MAX);
    tg_buf_printf(&text, "{\"run\":\"%s\",\"invocation_id\":", run->id);
    tg_buf_json_string(&text, ngx_http_toolgate_run_label(run));
    ngx_http_toolgate_gate_label(&text, ",\"session_id\":", &run->prompt.session);
    ngx_http_toolgate_gate_label(&text, ",\"account_id\":", &run->prompt.account);
    tg_buf_char(&text, ',');
    ngx_http_toolgate_call_describe(call, &text);
    tg_buf_char(&text, '}');

    *document = text.error == TG_OK
                ? ngx_http_toolgate_copy(run->request->pool, tg_buf_get(&text))
                : (ngx_str_t) ngx_null_string;
    tg_buf_free(&text);

    return document->data ? NGX_OK : NGX_ERROR;
}


static void
ngx_http_toolgate_gate_label(tg_buf_t *out, const char *name, ngx_str_t *label)
{
    tg_buf_cstr(out, name);

    if (label->len) {
        tg_buf_json_string(out, (tg_str_t) { label->len, (char *) label->data });

    } else {
        tg_buf_cstr(out, "null");
    }
}


void
ngx_http_toolgate_call_describe(ngx_http_toolgate_call_t *call, tg_buf_t *out)
{
    tg_approval_call_t         about;
    const tg_approval_tool_t  *known;

    about.call_id = tg_str_of(call->id);
    about.tool.data = (char *) call->tool->name.data;
    about.tool.len = call->tool->name.len;
    about.arguments.data = (char *) call->canonical.data;
    about.arguments.len = call->canonical.len;
    about.risk = ngx_http_toolgate_call_risk(call);

    known = call->tool->kind == NGX_HTTP_TOOLGATE_TOOL_HELPER
            ? tg_approval_tool(about.tool) : NULL;
    about.side_effect = known ? known->side_effect : NULL;

    (void) tg_approval_describe(&about, out);
}


static void
ngx_http_toolgate_gate_asked(void *data, ngx_http_toolgate_approvals_asked_t *asked)
{
    ngx_http_toolgate_gate_t *gate = data;

    ngx_str_t                  none = ngx_null_string;
    ngx_uint_t                 i, in_handler;
    ngx_http_toolgate_run_t   *run;
    ngx_http_toolgate_call_t  *call;

    run = gate->run;

    /* the calls of a round are gone when it is over */

    if (gate->round != run->round) {
        return;
    }

    if (asked->up
        && (run->approval_expires == 0 || asked->expires < run->approval_expires))
    {
        run->approval_expires = asked->expires;
    }

    in_handler = run->in_handler;
    run->in_handler = 1;

    for (i = 0; i < gate->n; i++) {
        call = gate->calls[i];

        if (call->state == NGX_HTTP_TOOLGATE_CALL_ASKING && call->question == gate) {
            ngx_http_toolgate_call_asked(call,
                                         asked->up ? &asked->status[i] : &none,
                                         asked->up ? &asked->reason[i] : &none);
        }
    }

    run->in_handler = in_handler;
    ngx_http_toolgate_calls_from_event(run);
}
