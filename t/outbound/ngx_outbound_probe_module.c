/*
 * Test only: one location whose POST body describes a call of the protected client
 * and whose answer is the call's result. It stands where a run would stand: the
 * call lives in the request's pool, and a timer of the request keeps the worker.
 */

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include <jansson.h>

#include "ngx_outbound_probe_stream.h"


#define NGX_OUTBOUND_PROBE_RUN_MS    30000
#define NGX_OUTBOUND_PROBE_TEXT_MAX  4096      /* of a body that is shown */

typedef struct {
    ngx_toolgate_client_conf_t      client;
    ngx_array_t                     allow;     /* of tg_netguard_allow_t */
    ngx_str_t                       ca;
    ngx_flag_t                      gzip;
} ngx_outbound_probe_conf_t;

typedef struct {
    ngx_http_request_t             *request;
    ngx_event_t                     run;
    json_t                         *order;
    tg_url_t                        url;
    ngx_toolgate_client_request_t   call;
    ngx_toolgate_call_t            *started;
    ngx_outbound_probe_stream_t     stream;
    unsigned                        starting:1;
} ngx_outbound_probe_ctx_t;


static char *ngx_outbound_probe_call(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_outbound_probe_allow(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_outbound_probe_hosts(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static void *ngx_outbound_probe_create_conf(ngx_conf_t *cf);
static char *ngx_outbound_probe_merge_conf(ngx_conf_t *cf, void *parent,
    void *child);
static ngx_int_t ngx_outbound_probe_init(ngx_cycle_t *cycle);
static void ngx_outbound_probe_exit(ngx_cycle_t *cycle);
static ngx_int_t ngx_outbound_probe_handler(ngx_http_request_t *r);
static void ngx_outbound_probe_body(ngx_http_request_t *r);
static ngx_int_t ngx_outbound_probe_start(ngx_http_request_t *r,
    ngx_outbound_probe_ctx_t *ctx);
static ngx_int_t ngx_outbound_probe_text(ngx_http_request_t *r, ngx_str_t *text);
static ngx_int_t ngx_outbound_probe_headers(ngx_http_request_t *r,
    ngx_outbound_probe_ctx_t *ctx);
static void ngx_outbound_probe_done(void *data,
    ngx_toolgate_client_result_t *result);
static json_t *ngx_outbound_probe_string(ngx_str_t *s);
static void ngx_outbound_probe_send(ngx_http_request_t *r, json_t *answer);
static void ngx_outbound_probe_cleanup(void *data);
static void ngx_outbound_probe_run_timer(ngx_event_t *ev);


static ngx_command_t  ngx_outbound_probe_commands[] = {

    { ngx_string("probe_call"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS,
      ngx_outbound_probe_call,
      0,
      0,
      NULL },

    { ngx_string("probe_allow"),
      NGX_HTTP_LOC_CONF|NGX_CONF_1MORE,
      ngx_outbound_probe_allow,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("probe_hosts"),
      NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_outbound_probe_hosts,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("probe_ca"),
      NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_outbound_probe_conf_t, ca),
      NULL },

    { ngx_string("probe_gzip"),
      NGX_HTTP_LOC_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_outbound_probe_conf_t, gzip),
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_outbound_probe_module_ctx = {
    NULL,                                  /* preconfiguration */
    NULL,                                  /* postconfiguration */
    NULL,                                  /* create main configuration */
    NULL,                                  /* init main configuration */
    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */
    ngx_outbound_probe_create_conf,        /* create location configuration */
    ngx_outbound_probe_merge_conf          /* merge location configuration */
};


ngx_module_t  ngx_outbound_probe_module = {
    NGX_MODULE_V1,
    &ngx_outbound_probe_module_ctx,        /* module context */
    ngx_outbound_probe_commands,           /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    ngx_outbound_probe_init,               /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    ngx_outbound_probe_exit,               /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_int_t
ngx_outbound_probe_init(ngx_cycle_t *cycle)
{
    return ngx_toolgate_client_init_worker(cycle);
}


static void
ngx_outbound_probe_exit(ngx_cycle_t *cycle)
{
    ngx_toolgate_client_exit_worker(cycle);
}


static void *
ngx_outbound_probe_create_conf(ngx_conf_t *cf)
{
    ngx_outbound_probe_conf_t  *conf;

    conf = ngx_pcalloc(cf->pool, sizeof(ngx_outbound_probe_conf_t));

    if (conf == NULL
        || ngx_array_init(&conf->allow, cf->pool, 4, sizeof(tg_netguard_allow_t))
           != NGX_OK)
    {
        return NULL;
    }

    conf->gzip = NGX_CONF_UNSET;

    return conf;
}


static char *
ngx_outbound_probe_merge_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_outbound_probe_conf_t  *prev = parent;
    ngx_outbound_probe_conf_t  *conf = child;

    ngx_conf_merge_str_value(conf->ca, prev->ca, "");
    ngx_conf_merge_value(conf->gzip, prev->gzip, 0);

    conf->client.guard.allow = conf->allow.elts;
    conf->client.guard.allow_count = conf->allow.nelts;
    conf->client.ca_file = conf->ca;
    conf->client.accept_gzip = conf->gzip ? 1 : 0;
    ngx_str_set(&conf->client.user_agent, "K-Agent/1");

    return NGX_CONF_OK;
}


static char *
ngx_outbound_probe_call(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    clcf->handler = ngx_outbound_probe_handler;

    return NGX_CONF_OK;
}


/* probe_allow cidr [port…] [insecure_http] */
static char *
ngx_outbound_probe_allow(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_int_t                   port;
    ngx_str_t                  *value = cf->args->elts;
    ngx_uint_t                  i;
    tg_netguard_allow_t        *allow;
    ngx_outbound_probe_conf_t  *pcf = conf;

    allow = ngx_array_push(&pcf->allow);
    if (allow == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_memzero(allow, sizeof(tg_netguard_allow_t));

    if (!tg_netguard_cidr_parse((tg_str_t) { value[1].len,
                                             (char *) value[1].data },
                                &allow->network, &allow->prefix))
    {
        return "has an invalid cidr";
    }

    for (i = 2; i < cf->args->nelts; i++) {

        if (ngx_strcmp(value[i].data, "insecure_http") == 0) {
            allow->insecure_http = true;
            continue;
        }

        port = ngx_atoi(value[i].data, value[i].len);

        if (port < 1 || port > 65535
            || allow->port_count == TG_NETGUARD_MAX_PORTS)
        {
            return "has an invalid port";
        }

        allow->ports[allow->port_count++] = (uint16_t) port;
    }

    return NGX_CONF_OK;
}


static char *
ngx_outbound_probe_hosts(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t                  *value = cf->args->elts;
    ngx_outbound_probe_conf_t  *pcf = conf;

    return ngx_toolgate_hosts_load(cf, &value[1], &pcf->client.hosts) == NGX_OK
           ? NGX_CONF_OK : NGX_CONF_ERROR;
}


static ngx_int_t
ngx_outbound_probe_handler(ngx_http_request_t *r)
{
    ngx_int_t  rc;

    rc = ngx_http_read_client_request_body(r, ngx_outbound_probe_body);

    return rc >= NGX_HTTP_SPECIAL_RESPONSE ? rc : NGX_DONE;
}


static void
ngx_outbound_probe_body(ngx_http_request_t *r)
{
    ngx_int_t                  rc;
    ngx_pool_cleanup_t        *cln;
    ngx_outbound_probe_ctx_t  *ctx;

    ctx = ngx_pcalloc(r->pool, sizeof(ngx_outbound_probe_ctx_t));
    cln = ngx_pool_cleanup_add(r->pool, 0);

    if (ctx == NULL || cln == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    ctx->request = r;
    ctx->run.handler = ngx_outbound_probe_run_timer;
    ctx->run.data = r->connection;
    ctx->run.log = r->connection->log;

    cln->handler = ngx_outbound_probe_cleanup;
    cln->data = ctx;

    ctx->starting = 1;
    rc = ngx_outbound_probe_start(r, ctx);
    ctx->starting = 0;

    if (rc != NGX_OK) {
        ngx_http_finalize_request(r, rc);
        return;
    }

    ngx_add_timer(&ctx->run, NGX_OUTBOUND_PROBE_RUN_MS);
    r->read_event_handler = ngx_http_test_reading;
}


static ngx_int_t
ngx_outbound_probe_start(ngx_http_request_t *r, ngx_outbound_probe_ctx_t *ctx)
{
    int                         action = 0, timeout = 0;
    json_t                     *body = NULL;
    ngx_str_t                   text;
    const char                 *url, *code;
    json_error_t                error;
    ngx_http_core_loc_conf_t   *clcf;
    ngx_outbound_probe_conf_t  *pcf;

    if (ngx_outbound_probe_text(r, &text) != NGX_OK) {
        return NGX_HTTP_BAD_REQUEST;
    }

    ctx->order = json_loadb((char *) text.data, text.len, 0, &error);

    if (json_unpack(ctx->order, "{s:s, s:s, s:i, s?b, s?o}",
                    "url", &url, "method", &ctx->call.method,
                    "timeout_ms", &timeout, "action", &action, "body", &body)
        != 0)
    {
        return NGX_HTTP_BAD_REQUEST;
    }

    ctx->call.url.data = (u_char *) url;
    ctx->call.url.len = ngx_strlen(url);

    if (tg_url_parse(tg_str_of(url), &ctx->url, &code) != TG_OK) {
        return NGX_HTTP_BAD_REQUEST;
    }

    ctx->call.parts = &ctx->url;
    ctx->call.timeout = (ngx_msec_t) timeout;
    ctx->call.action = action ? 1 : 0;

    if (json_is_string(body)) {
        ctx->call.has_body = 1;
        ctx->call.body.data = (u_char *) json_string_value(body);
        ctx->call.body.len = json_string_length(body);
    }

    if (ngx_outbound_probe_headers(r, ctx) != NGX_OK
        || ngx_outbound_probe_stream_init(&ctx->stream, r->pool, r->connection->log,
                                          ctx->order, &ctx->call, &ctx->started)
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
    pcf = ngx_http_get_module_loc_conf(r, ngx_outbound_probe_module);

    ctx->started = ngx_toolgate_client_start(r->pool, r->connection->log,
                                             &pcf->client, clcf->resolver,
                                             clcf->resolver_timeout, &ctx->call,
                                             ngx_outbound_probe_done, ctx);

    return ctx->started ? NGX_OK : NGX_HTTP_INTERNAL_SERVER_ERROR;
}


/* the body, which comes in one or two buffers, as one piece */
static ngx_int_t
ngx_outbound_probe_text(ngx_http_request_t *r, ngx_str_t *text)
{
    u_char       *p;
    ngx_chain_t  *cl;

    if (r->request_body == NULL) {
        return NGX_DECLINED;
    }

    text->len = 0;

    for (cl = r->request_body->bufs; cl; cl = cl->next) {
        text->len += (size_t) ngx_buf_size(cl->buf);

        if (!ngx_buf_in_memory(cl->buf)) {
            return NGX_DECLINED;
        }
    }

    text->data = ngx_pnalloc(r->pool, text->len + 1);
    if (text->data == NULL) {
        return NGX_ERROR;
    }

    p = text->data;

    for (cl = r->request_body->bufs; cl; cl = cl->next) {
        p = ngx_cpymem(p, cl->buf->pos, cl->buf->last - cl->buf->pos);
    }

    return NGX_OK;
}


/* "headers": [["name", "value"], …] */
static ngx_int_t
ngx_outbound_probe_headers(ngx_http_request_t *r, ngx_outbound_probe_ctx_t *ctx)
{
    size_t         i;
    json_t        *list, *pair;
    const char    *name, *value;
    ngx_keyval_t  *header;

    ctx->call.headers = ngx_array_create(r->pool, 4, sizeof(ngx_keyval_t));
    if (ctx->call.headers == NULL) {
        return NGX_ERROR;
    }

    list = json_object_get(ctx->order, "headers");

    json_array_foreach(list, i, pair) {
        header = ngx_array_push(ctx->call.headers);

        if (header == NULL
            || json_unpack(pair, "[s, s]", &name, &value) != 0)
        {
            return NGX_ERROR;
        }

        header->key.data = (u_char *) name;
        header->key.len = ngx_strlen(name);
        header->value.data = (u_char *) value;
        header->value.len = ngx_strlen(value);
    }

    return NGX_OK;
}


static void
ngx_outbound_probe_done(void *data, ngx_toolgate_client_result_t *result)
{
    json_t                    *answer;
    ngx_str_t                  shown;
    ngx_connection_t          *c;
    ngx_outbound_probe_ctx_t  *ctx = data;

    shown = result->body;
    shown.len = ngx_min(shown.len, NGX_OUTBOUND_PROBE_TEXT_MAX);

    answer = json_pack("{s:s?, s:s?, s:i, s:o, s:o, s:i, s:o, s:b, s:b,"
                       " s:{s:i, s:i, s:i, s:i, s:i}, s:b, s:o}",
                       "code", result->code, "detail", result->detail,
                       "status", (int) result->status,
                       "content_type",
                       ngx_outbound_probe_string(&result->content_type),
                       "body", ngx_outbound_probe_string(&shown),
                       "body_len", (int) result->body.len,
                       "address", ngx_outbound_probe_string(&result->address),
                       "bytes_sent", (int) result->bytes_sent,
                       "inside_start", (int) ctx->starting,
                       "ms", "dns", (int) result->dns_ms,
                       "connect", (int) result->connect_ms,
                       "tls", (int) result->tls_ms,
                       "first_byte", (int) result->first_byte_ms,
                       "total", (int) result->total_ms,
                       "timed_out", (int) result->timed_out,
                       "stream", ctx->call.stream
                       ? ngx_outbound_probe_stream_json(&ctx->stream)
                       : json_null());

    c = ctx->request->connection;

    ngx_outbound_probe_send(ctx->request, answer);

    /* the call's event is not one of nginx's http layer */
    ngx_http_run_posted_requests(c);
}


/* null when it is no UTF-8 */
static json_t *
ngx_outbound_probe_string(ngx_str_t *s)
{
    json_t  *value;

    value = json_stringn(s->data ? (char *) s->data : "", s->len);

    return value ? value : json_null();
}


static void
ngx_outbound_probe_send(ngx_http_request_t *r, json_t *answer)
{
    char         *text;
    ngx_int_t     rc;
    ngx_buf_t    *b;
    ngx_chain_t   out;

    text = answer ? json_dumps(answer, JSON_COMPACT) : NULL;
    json_decref(answer);

    b = text ? ngx_create_temp_buf(r->pool, ngx_strlen(text)) : NULL;

    if (b == NULL) {
        free(text);
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    b->last = ngx_cpymem(b->last, text, ngx_strlen(text));
    b->last_buf = 1;
    free(text);

    r->headers_out.status = NGX_HTTP_OK;
    r->headers_out.content_length_n = b->last - b->pos;
    ngx_str_set(&r->headers_out.content_type, "application/json");

    rc = ngx_http_send_header(r);

    if (rc == NGX_OK) {
        out.buf = b;
        out.next = NULL;
        rc = ngx_http_output_filter(r, &out);
    }

    ngx_http_finalize_request(r, rc);
}


static void
ngx_outbound_probe_cleanup(void *data)
{
    ngx_outbound_probe_ctx_t  *ctx = data;

    if (ctx->run.timer_set) {
        ngx_del_timer(&ctx->run);
    }

    ngx_outbound_probe_stream_stop(&ctx->stream);
    json_decref(ctx->order);
}


static void
ngx_outbound_probe_run_timer(ngx_event_t *ev)
{
    ngx_connection_t  *c = ev->data;

    ngx_log_error(NGX_LOG_ALERT, c->log, 0, "probe: the call gave no result");
    ngx_http_finalize_request(c->data, NGX_HTTP_GATEWAY_TIME_OUT);
    ngx_http_run_posted_requests(c);
}
