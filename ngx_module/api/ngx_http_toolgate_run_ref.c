/*
 * Which run a path names: by its id, or by the invocation id that its caller gave it.
 * The latter the store has to be asked for.
 */

#include "ngx_http_toolgate_api.h"


typedef struct {
    ngx_http_request_t            *request;
    ngx_http_toolgate_run_key_t    key;
    ngx_http_toolgate_run_ref_pt   done;
} ngx_http_toolgate_run_ref_t;


static void ngx_http_toolgate_run_ref_found(void *data,
    ngx_http_toolgate_run_answer_t *answer);


ngx_int_t
ngx_http_toolgate_run_ref(ngx_http_request_t *r, ngx_http_toolgate_key_t *key,
    ngx_http_toolgate_run_ref_pt done)
{
    ngx_str_t                   account;
    ngx_http_toolgate_fault_t   fault;

    if (ngx_http_toolgate_query_account(r, key, &account, &fault) != NGX_OK) {
        return ngx_http_toolgate_reply_error(r, fault.code, fault.message,
                                             fault.param);
    }

    return ngx_http_toolgate_run_ref_in(r, key, &account, done);
}


ngx_int_t
ngx_http_toolgate_run_ref_in(ngx_http_request_t *r, ngx_http_toolgate_key_t *key,
    ngx_str_t *account, ngx_http_toolgate_run_ref_pt done)
{
    u_char                         *p, *last;
    tg_str_t                        name;
    ngx_int_t                       rc;
    ngx_http_toolgate_run_ref_t    *ref;
    ngx_http_toolgate_main_conf_t  *tmcf;

    ref = ngx_pcalloc(r->pool, sizeof(ngx_http_toolgate_run_ref_t));
    if (ref == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ref->request = r;
    ref->done = done;
    ref->key.project = key->project->name;
    ref->key.account = *account;

    /* the router has seen that something stands there */

    p = r->uri.data + sizeof("/v1/runs/") - 1;
    last = ngx_strlchr(p, r->uri.data + r->uri.len, '/');
    name.data = (char *) p;
    name.len = (size_t) ((last ? last : r->uri.data + r->uri.len) - p);

    tmcf = ngx_http_get_module_main_conf(r, ngx_http_toolgate_module);

    if (tmcf->redis == NULL || !ngx_toolgate_redis_up(tmcf->redis)) {
        return ngx_http_toolgate_reply_error(r, "store_unavailable", NULL, NULL);
    }

    if (!tg_id_label_valid(name)) {
        return ngx_http_toolgate_reply_error(r, "not_found", NULL, NULL);
    }

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    ref->key.run.data = p;
    ref->key.run.len = name.len;

    r->main->count++;

    if (tg_id_valid("run_", name)) {
        done(r, &ref->key, NULL);
        return NGX_DONE;
    }

    if (ngx_http_toolgate_run_store_find(r->pool, tmcf->redis, &ref->key,
                                         &ref->key.run,
                                         ngx_http_toolgate_run_ref_found, ref)
        != NGX_OK)
    {
        done(r, &ref->key, "internal_error");
    }

    return NGX_DONE;
}


static void
ngx_http_toolgate_run_ref_found(void *data, ngx_http_toolgate_run_answer_t *answer)
{
    ngx_http_toolgate_run_ref_t *ref = data;

    const char        *code;
    ngx_connection_t  *c;

    c = ref->request->connection;
    code = NULL;

    switch (answer->answer) {

    case NGX_HTTP_TOOLGATE_ANSWER_OK:
        ref->key.run.len = answer->text.len;
        ref->key.run.data = ngx_pstrdup(ref->request->pool, &answer->text);
        code = ref->key.run.data ? NULL : "internal_error";
        break;

    case NGX_HTTP_TOOLGATE_ANSWER_GONE:
        code = "not_found";
        break;

    default:
        code = "store_unavailable";
    }

    ref->done(ref->request, &ref->key, code);
    ngx_http_run_posted_requests(c);
}
