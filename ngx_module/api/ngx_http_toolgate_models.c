/*
 * GET /v1/models, /v1/models/{id}: agents and configured models.
 */

#include "ngx_http_toolgate_api.h"
#include "ngx_http_toolgate_registry.h"


static void ngx_http_toolgate_models_entry(tg_buf_t *out, ngx_str_t *name,
    const char *owner);
static ngx_int_t ngx_http_toolgate_models_one(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_str_t *name);
static void ngx_http_toolgate_models_found(void *data,
    ngx_http_toolgate_agent_t *agent, const char *code);
static ngx_int_t ngx_http_toolgate_models_agent(ngx_http_request_t *r,
    ngx_http_toolgate_agent_t *agent, const char *code);
static ngx_int_t ngx_http_toolgate_models_reply(ngx_http_request_t *r,
    ngx_str_t *name, const char *owner);
static void ngx_http_toolgate_models_stored(ngx_http_toolgate_project_t *project,
    tg_buf_t *out);
static void ngx_http_toolgate_models_configured(ngx_http_request_t *r,
    tg_buf_t *out);


ngx_int_t
ngx_http_toolgate_models(ngx_http_request_t *r, ngx_http_toolgate_key_t *key,
    ngx_str_t *rest)
{
    tg_buf_t                     out;
    ngx_int_t                    rc;
    ngx_str_t                    name;
    ngx_uint_t                   i;
    ngx_http_toolgate_agent_t  **agent;

    if (rest->len > 1) {
        name.data = rest->data + 1;
        name.len = rest->len - 1;

        return ngx_http_toolgate_models_one(r, key, &name);
    }

    tg_buf_init(&out, NGX_HTTP_TOOLGATE_REPLY_MAX);
    tg_buf_cstr(&out, "{\"object\":\"list\",\"data\":[");

    agent = key->project->agents.elts;

    for (i = 0; i < key->project->agents.nelts; i++) {
        ngx_http_toolgate_models_entry(&out, &agent[i]->name, "toolgate");
    }

    ngx_http_toolgate_models_stored(key->project, &out);

    ngx_http_toolgate_models_configured(r, &out);
    tg_buf_cstr(&out, "],\"has_more\":false}");

    rc = out.error == TG_OK
         ? ngx_http_toolgate_reply(r, NGX_HTTP_OK, tg_buf_get(&out))
         : NGX_HTTP_INTERNAL_SERVER_ERROR;

    tg_buf_free(&out);

    return rc;
}


/* Agents that the store has a published version of. */
static void
ngx_http_toolgate_models_stored(ngx_http_toolgate_project_t *project,
    tg_buf_t *out)
{
    ngx_queue_t                 *list, *q;
    ngx_http_toolgate_agent_t   *agent;
    ngx_http_toolgate_object_t  *object;

    list = ngx_http_toolgate_registry_list(project, NGX_HTTP_TOOLGATE_KIND_AGENT);

    for (q = list ? ngx_queue_head(list) : NULL; q && q != list;
         q = ngx_queue_next(q))
    {
        object = ngx_queue_data(q, ngx_http_toolgate_object_t, queue);
        agent = object->built;

        if (agent) {
            ngx_http_toolgate_models_entry(out, &agent->name, "toolgate");
        }
    }
}


static void
ngx_http_toolgate_models_configured(ngx_http_request_t *r, tg_buf_t *out)
{
    ngx_uint_t                     i;
    ngx_http_toolgate_model_t     *model;
    ngx_http_toolgate_srv_conf_t  *tscf;

    tscf = ngx_http_get_module_srv_conf(r, ngx_http_toolgate_module);

    for ( /* void */ ; tscf; tscf = tscf->outer) {
        model = tscf->models.elts;

        for (i = 0; i < tscf->models.nelts; i++) {

            /* a server's own hides the one of the http level */

            if (ngx_http_toolgate_model_find(r, &model[i].name) == &model[i]) {
                ngx_http_toolgate_models_entry(out, &model[i].name, "model");
            }
        }
    }
}


static void
ngx_http_toolgate_models_entry(tg_buf_t *out, ngx_str_t *name, const char *owner)
{
    if (out->len && out->data[out->len - 1] == '}') {
        tg_buf_char(out, ',');
    }

    tg_buf_cstr(out, "{\"id\":");
    tg_buf_json_string(out, (tg_str_t) { name->len, (char *) name->data });
    tg_buf_printf(out, ",\"object\":\"model\",\"created\":0,"
                       "\"owned_by\":\"%s\"}", owner);
}


static ngx_int_t
ngx_http_toolgate_models_one(ngx_http_request_t *r, ngx_http_toolgate_key_t *key,
    ngx_str_t *name)
{
    ngx_int_t                   rc;
    const char                 *code;
    ngx_http_toolgate_agent_t  *agent;

    rc = ngx_http_toolgate_agent_ref(r, key->project, name, &agent, &code,
                                     ngx_http_toolgate_models_found, r);

    if (rc == NGX_AGAIN) {
        r->main->count++;
        return NGX_DONE;
    }

    if (agent == NULL && code == NULL && ngx_http_toolgate_model_find(r, name)) {
        return ngx_http_toolgate_models_reply(r, name, "model");
    }

    return ngx_http_toolgate_models_agent(r, agent, code);
}


static void
ngx_http_toolgate_models_found(void *data, ngx_http_toolgate_agent_t *agent,
    const char *code)
{
    ngx_http_request_t *r = data;

    ngx_http_finalize_request(r, ngx_http_toolgate_models_agent(r, agent, code));
}


static ngx_int_t
ngx_http_toolgate_models_agent(ngx_http_request_t *r,
    ngx_http_toolgate_agent_t *agent, const char *code)
{
    if (agent == NULL) {
        return ngx_http_toolgate_reply_error(r, code ? code : "model_not_found",
                                             NULL, "model");
    }

    return ngx_http_toolgate_models_reply(r, &agent->name, "toolgate");
}


static ngx_int_t
ngx_http_toolgate_models_reply(ngx_http_request_t *r, ngx_str_t *name,
    const char *owner)
{
    tg_buf_t   out;
    ngx_int_t  rc;

    tg_buf_init(&out, NGX_HTTP_TOOLGATE_REPLY_MAX);
    ngx_http_toolgate_models_entry(&out, name, owner);

    rc = ngx_http_toolgate_reply(r, NGX_HTTP_OK, tg_buf_get(&out));
    tg_buf_free(&out);

    return rc;
}
