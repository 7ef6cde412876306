/*
 * Which agent a model's name means: by name or id, published, "@draft" or one of
 * its versions. What this worker does not know may have been made a moment ago on
 * another node: the store is asked once before somebody is told that there is none.
 */

#include "ngx_http_toolgate_api.h"
#include "ngx_http_toolgate_registry.h"


typedef struct {
    ngx_http_request_t              *request;
    ngx_http_toolgate_project_t     *project;
    ngx_str_t                        model;
    ngx_str_t                        name;       /* before "@" */
    ngx_str_t                        label;      /* after it, or "" */
    ngx_http_toolgate_agent_ref_pt   done;
    void                            *data;
    ngx_str_t                        id;
    unsigned                         asked:1;
} ngx_http_toolgate_agent_ref_t;


static ngx_int_t ngx_http_toolgate_agent_ref_try(
    ngx_http_toolgate_agent_ref_t *ref, ngx_http_toolgate_agent_t **agent,
    const char **code);
static ngx_int_t ngx_http_toolgate_agent_ref_stored(
    ngx_http_toolgate_agent_ref_t *ref, ngx_http_toolgate_object_t *object,
    ngx_http_toolgate_agent_t **agent, const char **code);
static ngx_int_t ngx_http_toolgate_agent_ref_ask(
    ngx_http_toolgate_agent_ref_t *ref, const char **code);
static ngx_http_toolgate_agent_t *ngx_http_toolgate_agent_ref_build(
    ngx_http_toolgate_agent_ref_t *ref, json_t *frozen);
static void ngx_http_toolgate_agent_ref_refreshed(void *data, ngx_uint_t up);
static void ngx_http_toolgate_agent_ref_version(void *data, json_t *doc,
    ngx_uint_t up);
static void ngx_http_toolgate_agent_ref_unbuild(void *data);


ngx_int_t
ngx_http_toolgate_agent_ref(ngx_http_request_t *r,
    ngx_http_toolgate_project_t *project, ngx_str_t *model,
    ngx_http_toolgate_agent_t **agent, const char **code,
    ngx_http_toolgate_agent_ref_pt done, void *data)
{
    u_char                         *at;
    ngx_http_toolgate_agent_ref_t  *ref;

    ref = ngx_pcalloc(r->pool, sizeof(ngx_http_toolgate_agent_ref_t));
    if (ref == NULL) {
        *code = "internal_error";
        return NGX_DECLINED;
    }

    ref->request = r;
    ref->project = project;
    ref->model = *model;
    ref->name = *model;
    ref->done = done;
    ref->data = data;

    at = ngx_strlchr(model->data, model->data + model->len, '@');

    if (at) {
        ref->label.data = at + 1;
        ref->label.len = model->data + model->len - ref->label.data;
        ref->name.len = at - model->data;
    }

    return ngx_http_toolgate_agent_ref_try(ref, agent, code);
}


static ngx_int_t
ngx_http_toolgate_agent_ref_try(ngx_http_toolgate_agent_ref_t *ref,
    ngx_http_toolgate_agent_t **agent, const char **code)
{
    ngx_int_t                    version;
    ngx_http_toolgate_object_t  *object;

    *code = NULL;
    *agent = ngx_http_toolgate_agent_find(ref->project, &ref->name);

    if (*agent) {

        /* agents of files are published at once: the draft is that version */

        version = ngx_atoi(ref->label.data, ref->label.len);

        if (ref->label.data && version != (ngx_int_t) (*agent)->version
            && !(ref->label.len == 5
                 && ngx_strncmp(ref->label.data, "draft", 5) == 0))
        {
            *agent = NULL;
            return NGX_DECLINED;
        }

        return NGX_OK;
    }

    object = ngx_http_toolgate_registry_named(ref->project,
                                              NGX_HTTP_TOOLGATE_KIND_AGENT,
                                              &ref->name);
    if (object == NULL) {
        object = ngx_http_toolgate_registry_get(ref->project,
                                                NGX_HTTP_TOOLGATE_KIND_AGENT,
                                                &ref->name);
    }

    if (object) {
        return ngx_http_toolgate_agent_ref_stored(ref, object, agent, code);
    }

    if (ngx_http_toolgate_model_find(ref->request, &ref->model)
        || !ngx_http_toolgate_registry_on() || ref->asked)
    {
        return NGX_DECLINED;
    }

    return ngx_http_toolgate_agent_ref_ask(ref, code);
}


static ngx_int_t
ngx_http_toolgate_agent_ref_ask(ngx_http_toolgate_agent_ref_t *ref,
    const char **code)
{
    ref->asked = 1;

    if (ngx_http_toolgate_registry_refresh(ref->request->pool,
                                           ngx_http_toolgate_agent_ref_refreshed,
                                           ref)
        != NGX_OK)
    {
        *code = "internal_error";
        return NGX_DECLINED;
    }

    return NGX_AGAIN;
}


static ngx_int_t
ngx_http_toolgate_agent_ref_stored(ngx_http_toolgate_agent_ref_t *ref,
    ngx_http_toolgate_object_t *object, ngx_http_toolgate_agent_t **agent,
    const char **code)
{
    json_t     *published, *frozen;
    ngx_int_t   version;

    published = json_object_get(json_object_get(object->doc, "published"),
                                "version");

    if (ref->label.len == 5 && ngx_strncmp(ref->label.data, "draft", 5) == 0) {
        ref->id = object->id;
        frozen = ngx_http_toolgate_agent_freeze(object->project,
                                    json_object_get(object->doc, "draft"), 0);
        *agent = frozen ? ngx_http_toolgate_agent_ref_build(ref, frozen) : NULL;
        json_decref(frozen);

        /* a draft may name what is gone by now */
        *code = *agent ? NULL : "agent_not_published";

        return *agent ? NGX_OK : NGX_DECLINED;
    }

    version = ref->label.data ? ngx_atoi(ref->label.data, ref->label.len) : 0;

    /* versions begin at one */

    if (version == NGX_ERROR || (version == 0 && ref->label.data)) {
        return NGX_DECLINED;
    }

    if (version == 0 || version == (ngx_int_t) json_integer_value(published)) {
        *agent = object->built;

        if (*agent == NULL && !ref->asked) {
            /* it may have been published a moment ago */
            return ngx_http_toolgate_agent_ref_ask(ref, code);
        }

        if (*agent == NULL
            || ngx_http_toolgate_agent_hold(ref->request->pool, *agent) != NGX_OK)
        {
            *code = *agent ? "internal_error" : "agent_not_published";
            *agent = NULL;
            return NGX_DECLINED;
        }

        return NGX_OK;
    }

    ref->id.len = object->id.len;
    ref->id.data = ngx_pstrdup(ref->request->pool, &object->id);

    if (ref->id.data == NULL
        || ngx_http_toolgate_registry_version(ref->request->pool, ref->project,
                                              &ref->id, (ngx_uint_t) version,
                                              ngx_http_toolgate_agent_ref_version,
                                              ref)
           != NGX_OK)
    {
        *code = "internal_error";
        return NGX_DECLINED;
    }

    return NGX_AGAIN;
}


/* An agent for one request only. */
static ngx_http_toolgate_agent_t *
ngx_http_toolgate_agent_ref_build(ngx_http_toolgate_agent_ref_t *ref,
    json_t *frozen)
{
    ngx_pool_t                   *pool;
    ngx_pool_cleanup_t           *cln;
    ngx_http_toolgate_agent_t    *agent;
    ngx_http_toolgate_catalog_t   cat;

    pool = ngx_create_pool(NGX_DEFAULT_POOL_SIZE, ngx_cycle->log);
    if (pool == NULL) {
        return NULL;
    }

    cln = ngx_pool_cleanup_add(ref->request->pool, 0);
    if (cln == NULL) {
        ngx_destroy_pool(pool);
        return NULL;
    }

    cln->handler = ngx_http_toolgate_agent_ref_unbuild;
    cln->data = pool;

    ngx_http_toolgate_registry_builder(&cat, pool, ref->project);
    cat.stored = 1;
    agent = ngx_http_toolgate_agent_build(&cat, frozen, &ref->id);

    if (agent) {
        /* the clean-up owns it */
        agent->pool = NULL;
        return agent;
    }

    ngx_log_error(NGX_LOG_WARN, ref->request->connection->log, 0,
                  "toolgate: agent \"%V\" cannot run: %s: %s at \"%s\"",
                  &ref->model, cat.code ? cat.code : "no memory", cat.reason,
                  cat.pointer);

    return NULL;
}


static void
ngx_http_toolgate_agent_ref_unbuild(void *data)
{
    ngx_destroy_pool(data);
}


static void
ngx_http_toolgate_agent_ref_refreshed(void *data, ngx_uint_t up)
{
    ngx_http_toolgate_agent_ref_t *ref = data;

    ngx_int_t                   rc;
    const char                 *code;
    ngx_connection_t           *c;
    ngx_http_toolgate_agent_t  *agent;

    c = ref->request->connection;
    rc = ngx_http_toolgate_agent_ref_try(ref, &agent, &code);

    if (rc == NGX_AGAIN) {
        return;
    }

    if (rc == NGX_DECLINED && code == NULL && !up) {
        code = "store_unavailable";
    }

    ref->done(ref->data, agent, code);
    ngx_http_run_posted_requests(c);
}


static void
ngx_http_toolgate_agent_ref_version(void *data, json_t *doc, ngx_uint_t up)
{
    ngx_http_toolgate_agent_ref_t *ref = data;

    const char                 *code;
    ngx_connection_t           *c;
    ngx_http_toolgate_agent_t  *agent;

    c = ref->request->connection;
    agent = doc ? ngx_http_toolgate_agent_ref_build(ref, doc) : NULL;

    code = agent ? NULL
           : doc ? "agent_not_published"
           : up ? NULL : "store_unavailable";

    ref->done(ref->data, agent, code);
    ngx_http_run_posted_requests(c);
}
