/*
 * What a run shows to the access log and to other modules as $toolgate_…
 * variables. A request without a run has none of them.
 */

#include "ngx_http_toolgate_api.h"
#include "ngx_http_toolgate_run.h"


typedef enum {
    NGX_HTTP_TOOLGATE_VAR_RUN = 0,
    NGX_HTTP_TOOLGATE_VAR_PROJECT,
    NGX_HTTP_TOOLGATE_VAR_ACCOUNT,
    NGX_HTTP_TOOLGATE_VAR_AGENT,
    NGX_HTTP_TOOLGATE_VAR_MODEL,
    NGX_HTTP_TOOLGATE_VAR_STATUS,
    NGX_HTTP_TOOLGATE_VAR_ROUNDS,
    NGX_HTTP_TOOLGATE_VAR_TOOLS,
    NGX_HTTP_TOOLGATE_VAR_TOKENS_IN,
    NGX_HTTP_TOOLGATE_VAR_TOKENS_OUT
} ngx_http_toolgate_variable_e;


static ngx_int_t ngx_http_toolgate_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_http_toolgate_run_t *ngx_http_toolgate_variable_run(
    ngx_http_request_t *r);
static ngx_int_t ngx_http_toolgate_variable_number(ngx_http_request_t *r,
    ngx_str_t *text, int64_t n);
static const char *ngx_http_toolgate_variable_status(
    ngx_http_toolgate_run_state_e state);


#define ngx_http_toolgate_var(name, what)                                     \
    { ngx_string(name), NULL, ngx_http_toolgate_variable, what,                \
      NGX_HTTP_VAR_NOCACHEABLE, 0 }


static ngx_http_variable_t  ngx_http_toolgate_variables_table[] = {
    ngx_http_toolgate_var("toolgate_run", NGX_HTTP_TOOLGATE_VAR_RUN),
    ngx_http_toolgate_var("toolgate_project", NGX_HTTP_TOOLGATE_VAR_PROJECT),
    ngx_http_toolgate_var("toolgate_account", NGX_HTTP_TOOLGATE_VAR_ACCOUNT),
    ngx_http_toolgate_var("toolgate_agent", NGX_HTTP_TOOLGATE_VAR_AGENT),
    ngx_http_toolgate_var("toolgate_model", NGX_HTTP_TOOLGATE_VAR_MODEL),
    ngx_http_toolgate_var("toolgate_status", NGX_HTTP_TOOLGATE_VAR_STATUS),
    ngx_http_toolgate_var("toolgate_rounds", NGX_HTTP_TOOLGATE_VAR_ROUNDS),
    ngx_http_toolgate_var("toolgate_tools", NGX_HTTP_TOOLGATE_VAR_TOOLS),
    ngx_http_toolgate_var("toolgate_tokens_in", NGX_HTTP_TOOLGATE_VAR_TOKENS_IN),
    ngx_http_toolgate_var("toolgate_tokens_out", NGX_HTTP_TOOLGATE_VAR_TOKENS_OUT),
    ngx_http_null_variable
};


ngx_int_t
ngx_http_toolgate_add_variables(ngx_conf_t *cf)
{
    ngx_http_variable_t  *var, *v;

    for (v = ngx_http_toolgate_variables_table; v->name.len; v++) {
        var = ngx_http_add_variable(cf, &v->name, v->flags);
        if (var == NULL) {
            return NGX_ERROR;
        }

        var->get_handler = v->get_handler;
        var->data = v->data;
    }

    return NGX_OK;
}


/* The context holds the body while it is read, then the run. */
static ngx_http_toolgate_run_t *
ngx_http_toolgate_variable_run(ngx_http_request_t *r)
{
    ngx_http_toolgate_run_t  *run;

    run = ngx_http_get_module_ctx(r->main, ngx_http_toolgate_module);

    /* a request that was refused before its run began has none */

    return (run && run->kind == NGX_HTTP_TOOLGATE_CTX_RUN
            && run->state != NGX_HTTP_TOOLGATE_RUN_NEW) ? run : NULL;
}


static ngx_int_t
ngx_http_toolgate_variable(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    ngx_int_t                 rc;
    ngx_str_t                 text;
    ngx_http_toolgate_run_t  *run;

    run = ngx_http_toolgate_variable_run(r);

    if (run == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    rc = NGX_OK;
    ngx_str_null(&text);

    switch (data) {

    case NGX_HTTP_TOOLGATE_VAR_RUN:
        text.data = (u_char *) run->id;
        text.len = ngx_strlen(run->id);
        break;

    case NGX_HTTP_TOOLGATE_VAR_PROJECT:
        text = run->project->name;
        break;

    case NGX_HTTP_TOOLGATE_VAR_ACCOUNT:
        text = run->prompt.account;
        break;

    case NGX_HTTP_TOOLGATE_VAR_AGENT:
        if (run->agent) {
            text = run->agent->name;
        }
        break;

    case NGX_HTTP_TOOLGATE_VAR_MODEL:
        if (run->model) {
            text = run->model->name;
        }
        break;

    case NGX_HTTP_TOOLGATE_VAR_STATUS:
        text.data = (u_char *) ngx_http_toolgate_variable_status(run->state);
        text.len = ngx_strlen(text.data);
        break;

    case NGX_HTTP_TOOLGATE_VAR_ROUNDS:
        rc = ngx_http_toolgate_variable_number(r, &text, (int64_t) run->round);
        break;

    case NGX_HTTP_TOOLGATE_VAR_TOOLS:
        rc = ngx_http_toolgate_variable_number(r, &text,
                                               (int64_t) run->steps.nelts);
        break;

    case NGX_HTTP_TOOLGATE_VAR_TOKENS_IN:
        rc = ngx_http_toolgate_variable_number(r, &text,
                                               run->usage.prompt_tokens);
        break;

    case NGX_HTTP_TOOLGATE_VAR_TOKENS_OUT:
        rc = ngx_http_toolgate_variable_number(r, &text,
                                               run->usage.completion_tokens);
        break;
    }

    v->data = text.data;
    v->len = (unsigned) text.len;
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = (text.len == 0);

    return rc;
}


static ngx_int_t
ngx_http_toolgate_variable_number(ngx_http_request_t *r, ngx_str_t *text,
    int64_t n)
{
    text->data = ngx_pnalloc(r->pool, NGX_INT64_LEN);
    if (text->data == NULL) {
        return NGX_ERROR;
    }

    text->len = ngx_sprintf(text->data, "%L", n) - text->data;

    return NGX_OK;
}


static const char *
ngx_http_toolgate_variable_status(ngx_http_toolgate_run_state_e state)
{
    switch (state) {

    case NGX_HTTP_TOOLGATE_RUN_COMPLETED:
        return "completed";

    case NGX_HTTP_TOOLGATE_RUN_FAILED:
        return "failed";

    /* a run that the log sees unfinished was ended by its client */

    default:
        return "cancelled";
    }
}
