/*
 * GET /v1/models, /v1/models/{id}: agents and configured models. And the secret
 * that the project's tool calls are signed with.
 */

#include "ngx_http_toolgate_api.h"


static void ngx_http_toolgate_models_entry(tg_buf_t *out, ngx_str_t *name,
    const char *owner);
static ngx_int_t ngx_http_toolgate_models_one(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_str_t *name);
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

    ngx_http_toolgate_models_configured(r, &out);
    tg_buf_cstr(&out, "],\"has_more\":false}");

    rc = out.error == TG_OK
         ? ngx_http_toolgate_reply(r, NGX_HTTP_OK, tg_buf_get(&out))
         : NGX_HTTP_INTERNAL_SERVER_ERROR;

    tg_buf_free(&out);

    return rc;
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
    tg_buf_t                    out;
    ngx_int_t                   rc;
    ngx_http_toolgate_agent_t  *agent;

    agent = ngx_http_toolgate_agent_find(key->project, name);

    if (agent == NULL && ngx_http_toolgate_model_find(r, name) == NULL) {
        return ngx_http_toolgate_reply_error(r, "model_not_found", NULL, "model");
    }

    tg_buf_init(&out, NGX_HTTP_TOOLGATE_REPLY_MAX);
    ngx_http_toolgate_models_entry(&out, agent ? &agent->name : name,
                                   agent ? "toolgate" : "model");

    rc = ngx_http_toolgate_reply(r, NGX_HTTP_OK, tg_buf_get(&out));
    tg_buf_free(&out);

    return rc;
}


ngx_int_t
ngx_http_toolgate_signing_secret(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_str_t *rest)
{
    tg_buf_t   out;
    ngx_int_t  rc;

    if (!key->project->can_sign) {
        return ngx_http_toolgate_reply_error(r, "not_found",
                                             "There is no signing secret: "
                                             "\"toolgate_master_key\" is not "
                                             "set.", NULL);
    }

    tg_buf_init(&out, 4096);
    tg_buf_cstr(&out, "{\"secret\":");
    tg_buf_json_string(&out,
                       (tg_str_t) { key->project->signing_secret.len,
                                    (char *) key->project->signing_secret.data });
    tg_buf_cstr(&out, ",\"created_at\":0,\"previous\":null}");

    rc = ngx_http_toolgate_reply(r, NGX_HTTP_OK, tg_buf_get(&out));
    tg_buf_free(&out);

    return rc;
}
