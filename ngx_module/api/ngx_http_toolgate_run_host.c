/*
 * The run host: runs that no client waits for live on requests that the module makes
 * to itself, over a unix socket. A request only names a run; whether it may be driven
 * here the store decides, and all that is needed of it comes from there.
 */

#include "ngx_http_toolgate_check.h"
#include "ngx_http_toolgate_durable.h"
#include "ngx_http_toolgate_registry.h"
#include "ngx_http_toolgate_responses.h"


/* A run on its way from the store to where it goes on. */
typedef struct {
    ngx_http_request_t            *request;
    ngx_http_toolgate_main_conf_t *conf;
    ngx_http_toolgate_run_key_t    key;
    ngx_http_toolgate_project_t   *project;
    ngx_http_toolgate_kept_t       kept;
    ngx_http_toolgate_restored_t  *restored;
    ngx_http_toolgate_body_t       body;
    ngx_uint_t                     again;          /* somebody drove it before */
    ngx_str_t                      face;
} ngx_http_toolgate_host_t;


static ngx_int_t ngx_http_toolgate_host_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_toolgate_host_name(ngx_http_toolgate_host_t *host);
static void ngx_http_toolgate_host_taken(void *data,
    ngx_http_toolgate_run_answer_t *answer);
static ngx_int_t ngx_http_toolgate_host_load(ngx_http_toolgate_host_t *host,
    ngx_http_toolgate_run_answer_t *answer);
static ngx_int_t ngx_http_toolgate_host_kept(ngx_http_toolgate_host_t *host,
    ngx_http_toolgate_run_answer_t *answer);
static ngx_int_t ngx_http_toolgate_host_body(ngx_http_toolgate_host_t *host,
    ngx_str_t *input);
static void ngx_http_toolgate_host_checked(ngx_http_toolgate_check_t *c);
static void ngx_http_toolgate_host_go(ngx_http_toolgate_check_t *c);
static ngx_int_t ngx_http_toolgate_host_start(ngx_http_toolgate_host_t *host,
    ngx_http_toolgate_check_t *c);
static void ngx_http_toolgate_host_fail(ngx_http_toolgate_host_t *host,
    const char *code);
static ngx_str_t ngx_http_toolgate_host_copy(ngx_http_toolgate_host_t *host,
    ngx_str_t text);
static void ngx_http_toolgate_host_cleanup(void *data);
static ngx_int_t ngx_http_toolgate_host_text(ngx_http_toolgate_run_t *run,
    tg_str_t text);
static ngx_int_t ngx_http_toolgate_host_quiet(ngx_http_toolgate_run_t *run);
static ngx_int_t ngx_http_toolgate_host_failed(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_failure_t *failure);


/* Nobody reads it: what there is to see is in the store. */
static const ngx_http_toolgate_face_t  ngx_http_toolgate_host_face = {
    .text = ngx_http_toolgate_host_text,
    .refusal = ngx_http_toolgate_host_text,
    .reasoning = ngx_http_toolgate_host_text,
    .ping = ngx_http_toolgate_host_quiet,
    .finish = ngx_http_toolgate_host_quiet,
    .fail = ngx_http_toolgate_host_failed,
    .waits = 1,
    .name = "host"
};


char *
ngx_http_toolgate_run_host(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_core_loc_conf_t       *clcf;
    ngx_http_toolgate_main_conf_t  *tmcf;

    tmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_toolgate_module);

    if (tmcf->run_host.len) {
        return "is duplicate";
    }

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (clcf->name.len == 0 || clcf->name.data[0] != '/') {
        return "needs a location with a path";
    }

    clcf->handler = ngx_http_toolgate_host_handler;

    tmcf->run_host = clcf->name;
    tmcf->run_host_server = ngx_http_conf_get_module_srv_conf(cf,
                                                              ngx_http_core_module);

    return NGX_CONF_OK;
}


/* Whoever reaches this location can have runs taken over: only this machine may. */
ngx_int_t
ngx_http_toolgate_run_host_finish(ngx_conf_t *cf,
    ngx_http_toolgate_main_conf_t *tmcf)
{
    ngx_uint_t                   p, a, s;
    ngx_http_conf_port_t        *port;
    ngx_http_conf_addr_t        *addr;
    ngx_http_core_srv_conf_t   **server;
    ngx_http_core_main_conf_t   *cmcf;

    if (tmcf->run_host.len == 0) {
        return NGX_OK;
    }

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
    port = cmcf->ports ? cmcf->ports->elts : NULL;

    for (p = 0; port && p < cmcf->ports->nelts; p++) {
        addr = port[p].addrs.elts;

        for (a = 0; a < port[p].addrs.nelts; a++) {
            server = addr[a].servers.elts;

            for (s = 0; s < addr[a].servers.nelts; s++) {
                if (server[s] != tmcf->run_host_server) {
                    continue;
                }

                if (port[p].family != AF_UNIX) {
                    ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                                  "the server with \"toolgate_run_host\" must "
                                  "listen on a unix socket only");
                    return NGX_ERROR;
                }

                tmcf->run_host_addr = addr[a].opt.sockaddr;
                tmcf->run_host_addr_len = addr[a].opt.socklen;
            }
        }
    }

    if (tmcf->run_host_addr == NULL) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "the server with \"toolgate_run_host\" must listen on a unix "
                      "socket");
        return NGX_ERROR;
    }

    if (tmcf->redis == NULL) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"toolgate_run_host\" needs \"toolgate_redis\": runs that "
                      "nobody waits for are kept there");
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_host_handler(ngx_http_request_t *r)
{
    ngx_int_t                  rc;
    ngx_pool_cleanup_t        *cln;
    ngx_http_toolgate_host_t  *host;

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_toolgate_host_t));
    if (cln == NULL) {
        return NGX_HTTP_CLOSE;
    }

    host = cln->data;
    ngx_memzero(host, sizeof(ngx_http_toolgate_host_t));
    cln->handler = ngx_http_toolgate_host_cleanup;

    host->request = r;
    host->conf = ngx_http_get_module_main_conf(r, ngx_http_toolgate_module);

    if (ngx_http_toolgate_host_name(host) != NGX_OK
        || ngx_http_toolgate_run_store_open(r->pool, host->conf->redis, &host->key,
                                            "take", host->conf->retention,
                                            ngx_http_toolgate_host_taken, host)
           != NGX_OK)
    {
        return NGX_HTTP_CLOSE;
    }

    /* who has asked does not wait */

    r->read_event_handler = ngx_http_block_reading;
    r->main->count++;

    return NGX_DONE;
}


static ngx_int_t
ngx_http_toolgate_host_name(ngx_http_toolgate_host_t *host)
{
    u_char     *account, *run, *last;
    ngx_str_t   text;

    text = ngx_http_toolgate_request_header(host->request, "x-toolgate-run");
    last = text.data + text.len;

    account = text.data ? ngx_strlchr(text.data, last, '/') : NULL;
    run = account ? ngx_strlchr(account + 1, last, '/') : NULL;

    if (run == NULL
        || !tg_id_valid("run_", (tg_str_t) { (size_t) (last - run - 1),
                                             (char *) run + 1 }))
    {
        return NGX_DECLINED;
    }

    host->key.project.data = text.data;
    host->key.project.len = account - text.data;
    host->key.account.data = account + 1;
    host->key.account.len = run - account - 1;
    host->key.run.data = run + 1;
    host->key.run.len = last - run - 1;

    host->project = ngx_http_toolgate_registry_project(&host->key.project);

    return host->project ? NGX_OK : NGX_DECLINED;
}


static void
ngx_http_toolgate_host_taken(void *data, ngx_http_toolgate_run_answer_t *answer)
{
    ngx_http_toolgate_host_t *host = data;

    ngx_int_t          rc;
    ngx_connection_t  *c;

    c = host->request->connection;

    if (answer->answer != NGX_HTTP_TOOLGATE_ANSWER_TAKEN) {
        ngx_http_finalize_request(host->request, NGX_HTTP_CLOSE);
        ngx_http_run_posted_requests(c);
        return;
    }

    rc = ngx_http_toolgate_host_load(host, answer);

    if (rc == NGX_OK) {
        ngx_http_toolgate_check_kept(host->request, &host->body,
                                     &ngx_http_toolgate_host_face, &host->kept,
                                     ngx_http_toolgate_host_checked, host);

    } else {
        ngx_http_toolgate_host_fail(host, "internal_error");
    }

    ngx_http_run_posted_requests(c);
}


static ngx_int_t
ngx_http_toolgate_host_load(ngx_http_toolgate_host_t *host,
    ngx_http_toolgate_run_answer_t *answer)
{
    ngx_int_t  rc;
    ngx_str_t  length, attempt;

    length = ngx_http_toolgate_run_answer_field(answer, "input");
    attempt = ngx_http_toolgate_run_answer_field(answer, "attempt");

    /* a first one of a run that no worker has begun; a request that began itself
     * has counted no attempt */

    host->again = ngx_http_toolgate_run_answer_field(answer, "queued").len == 0
                  || ngx_atoi(attempt.data, attempt.len) > 1;

    /* its rest may have been on its way when its worker died */

    if (ngx_atoi(length.data, length.len) != (ngx_int_t) answer->input.len) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "toolgate: run %V cannot go on: its input is not whole",
                      &host->key.run);
        return NGX_DECLINED;
    }

    rc = ngx_http_toolgate_host_kept(host, answer);

    if (rc == NGX_OK) {
        rc = ngx_http_toolgate_restore_load(host->request->pool, answer,
                                            &host->restored);
    }

    if (rc == NGX_OK) {
        rc = ngx_http_toolgate_host_body(host, &answer->input);
    }

    return rc;
}


static ngx_int_t
ngx_http_toolgate_host_kept(ngx_http_toolgate_host_t *host,
    ngx_http_toolgate_run_answer_t *answer)
{
    u_char                    *p;
    ngx_str_t                  id, version, user;
    tg_json_error_t            ignored;
    ngx_http_toolgate_kept_t  *kept;

    kept = &host->kept;
    id = ngx_http_toolgate_run_answer_field(answer, "agent_id");
    version = ngx_http_toolgate_run_answer_field(answer, "agent_version");
    user = ngx_http_toolgate_run_answer_field(answer, "end_user");

    p = ngx_pnalloc(host->request->pool, id.len + version.len + sizeof("@draft"));
    if (p == NULL) {
        return NGX_ERROR;
    }

    kept->agent.data = p;
    p = ngx_cpymem(p, id.data, id.len);

    /* a draft has no number */

    p = (version.len == 1 && version.data[0] == '0')
        ? ngx_sprintf(p, "@draft") : ngx_sprintf(p, "@%V", &version);
    kept->agent.len = p - kept->agent.data;

    if (user.len) {
        kept->end_user = tg_json_load((tg_str_t) { user.len, (char *) user.data },
                                      &ignored);
        if (kept->end_user == NULL) {
            return NGX_DECLINED;
        }
    }

    kept->approval_mode =
        ngx_http_toolgate_run_answer_field(answer, "approval_mode").len
        ? TG_APPROVAL_STRICT : TG_APPROVAL_OFF;

    kept->project = host->project;
    kept->account = host->key.account;
    kept->run = host->key.run;
    kept->invocation =
        ngx_http_toolgate_host_copy(host, ngx_http_toolgate_run_answer_field(answer,
                                                              "invocation"));
    host->face =
        ngx_http_toolgate_host_copy(host, ngx_http_toolgate_run_answer_field(answer,
                                                              "face"));

    return id.len && kept->invocation.data && host->face.data ? NGX_OK : NGX_ERROR;
}


static ngx_str_t
ngx_http_toolgate_host_copy(ngx_http_toolgate_host_t *host, ngx_str_t text)
{
    return ngx_http_toolgate_copy(host->request->pool,
                                  (tg_str_t) { text.len, (char *) text.data });
}


static ngx_int_t
ngx_http_toolgate_host_body(ngx_http_toolgate_host_t *host, ngx_str_t *input)
{
    ngx_http_toolgate_body_t  *body;

    body = &host->body;
    body->request = host->request;
    body->scan = tg_scan_new();
    body->data = ngx_http_toolgate_bytes_resize(host->request->pool, NULL, 0, 0,
                                                input->len + 1);

    if (body->scan == NULL || body->data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(body->data, input->data, input->len);
    body->len = input->len;
    body->cap = input->len + 1;

    return tg_scan_feed(body->scan, (char *) body->data, body->len) == TG_OK
           && tg_scan_finish(body->scan) == TG_OK
           ? NGX_OK : NGX_DECLINED;
}


static void
ngx_http_toolgate_host_checked(ngx_http_toolgate_check_t *c)
{
    ngx_str_t                 *face;
    ngx_http_toolgate_host_t  *host = c->data;

    face = &host->face;

    if (c->code == NULL && c->run->agent == NULL) {
        c->code = "model_not_found";
    }

    /* a response has somebody who will ask for it */

    if (c->code == NULL && face->len == sizeof("responses") - 1
        && ngx_memcmp(face->data, "responses", face->len) == 0)
    {
        ngx_http_toolgate_responses_resume(c, ngx_http_toolgate_host_go);
        return;
    }

    ngx_http_toolgate_host_go(c);
}


static void
ngx_http_toolgate_host_go(ngx_http_toolgate_check_t *c)
{
    ngx_http_toolgate_host_t  *host = c->data;

    if (c->code == NULL && ngx_http_toolgate_host_start(host, c) != NGX_OK
        && c->code == NULL)
    {
        c->code = "internal_error";
    }

    if (c->code) {
        ngx_http_toolgate_host_fail(host, c->code);
        return;
    }

    ngx_http_toolgate_run_start(c->run);
}


static ngx_int_t
ngx_http_toolgate_host_start(ngx_http_toolgate_host_t *host,
    ngx_http_toolgate_check_t *c)
{
    ngx_http_toolgate_run_t  *run;

    run = c->run;
    run->prompt.store = 1;

    if (ngx_http_toolgate_check_agent(c) != NGX_OK) {
        return NGX_DECLINED;
    }

    ngx_http_toolgate_check_prompt(c);

    if (ngx_http_toolgate_durable_open(run, run->face->name,
                                       &run->prompt.invocation) != NGX_OK
        || run->durable == NULL)
    {
        return NGX_ERROR;
    }

    run->durable->taken_over = 1;
    run->durable->restored = host->again;

    return ngx_http_toolgate_restore(run, host->restored);
}


/* What cannot go on says so, instead of being tried for ever. */
static void
ngx_http_toolgate_host_fail(ngx_http_toolgate_host_t *host, const char *code)
{
    tg_buf_t                      members;
    ngx_http_toolgate_save_t      save;
    ngx_http_toolgate_field_t     field;
    ngx_http_toolgate_run_news_t  news;

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                  "toolgate: run %V cannot go on: %s", &host->key.run, code);

    tg_buf_init(&members, 256);
    tg_buf_cstr(&members, ",\"error\":{\"code\":");
    tg_buf_json_string(&members, tg_str_of(code));
    tg_buf_char(&members, '}');

    ngx_str_set(&field.name, "error");
    field.value.data = (u_char *) code;
    field.value.len = ngx_strlen(code);

    news.type = "run.failed";
    news.members.data = (u_char *) members.data;
    news.members.len = members.len;

    ngx_memzero(&save, sizeof(save));
    save.what = NGX_HTTP_TOOLGATE_SAVE_END;
    save.status = "failed";
    save.fields = &field;
    save.field_count = 1;
    save.news = &news;
    save.news_count = 1;

    (void) ngx_http_toolgate_run_store_save(NULL, host->conf->redis, &host->key,
                                            &host->kept.invocation,
                                            host->conf->retention, &save, NULL,
                                            NULL);
    ngx_http_toolgate_run_store_unwatch(host->conf->redis, &host->key);

    tg_buf_free(&members);

    ngx_http_finalize_request(host->request, NGX_HTTP_CLOSE);
}


static void
ngx_http_toolgate_host_cleanup(void *data)
{
    ngx_http_toolgate_host_t *host = data;

    json_decref(host->kept.end_user);

    /* the run's, once it has begun */

    if (host->body.scan) {
        tg_scan_free(host->body.scan);
    }

    if (host->body.data) {
        ngx_http_toolgate_bytes_free(NULL, host->body.data, host->body.cap);
    }
}


static ngx_int_t
ngx_http_toolgate_host_text(ngx_http_toolgate_run_t *run, tg_str_t text)
{
    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_host_quiet(ngx_http_toolgate_run_t *run)
{
    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_host_failed(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_failure_t *failure)
{
    return NGX_OK;
}
