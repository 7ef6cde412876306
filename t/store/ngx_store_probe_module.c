/*
 * Test module: a window on ngx_module/store/ for t/store/run.mjs. GET with
 * ?key= &limit= &window= takes from a counter, GET with ?command= (words joined
 * by commas) sends one command, with ?flood= that many PINGs at once, and ?up=
 * tells what is thought of the server.
 * It knows nothing of the product.
 */

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_toolgate_counters.h"


#define NGX_STORE_PROBE_ARGS  16
#define NGX_STORE_PROBE_BODY  512


typedef struct {
    ngx_shm_zone_t             *zone;
} ngx_store_probe_main_conf_t;

typedef struct {
    ngx_toolgate_redis_conf_t  *redis;
    ngx_flag_t                  zoneless;
} ngx_store_probe_loc_conf_t;

typedef struct {
    ngx_http_request_t           *request;
    ngx_toolgate_redis_ticket_t  *ticket;
    struct timeval                start;
    ngx_uint_t                    answers;
    ngx_uint_t                    takes;
    ngx_uint_t                    flood;       /* still to come */
    ngx_uint_t                    replied;
    ngx_uint_t                    undone;
    unsigned                      waiting:1;
} ngx_store_probe_ctx_t;


static ngx_int_t ngx_store_probe_handler(ngx_http_request_t *r);
static ngx_int_t ngx_store_probe_take(ngx_http_request_t *r,
    ngx_store_probe_ctx_t *ctx);
static ngx_int_t ngx_store_probe_command(ngx_http_request_t *r,
    ngx_store_probe_ctx_t *ctx, ngx_str_t *words);
static ngx_int_t ngx_store_probe_flood(ngx_http_request_t *r,
    ngx_store_probe_ctx_t *ctx, ngx_str_t *number);
static void ngx_store_probe_flooded(void *data, redisReply *reply);
static ngx_int_t ngx_store_probe_up(ngx_http_request_t *r);
static ngx_int_t ngx_store_probe_arg(ngx_http_request_t *r, const char *name,
    ngx_str_t *value);
static void ngx_store_probe_taken(void *data,
    ngx_toolgate_counter_result_t *result);
static void ngx_store_probe_replied(void *data, redisReply *reply);
static ngx_int_t ngx_store_probe_send(ngx_http_request_t *r, u_char *text,
    size_t len);
static ngx_int_t ngx_store_probe_suspend(ngx_http_request_t *r,
    ngx_store_probe_ctx_t *ctx);
static void ngx_store_probe_resume(ngx_http_request_t *r,
    ngx_store_probe_ctx_t *ctx, u_char *text, size_t len);
static void ngx_store_probe_cleanup(void *data);
static ngx_uint_t ngx_store_probe_ms(ngx_store_probe_ctx_t *ctx);
static void *ngx_store_probe_create_main_conf(ngx_conf_t *cf);
static void *ngx_store_probe_create_loc_conf(ngx_conf_t *cf);
static char *ngx_store_probe_merge_loc_conf(ngx_conf_t *cf, void *parent,
    void *child);
static char *ngx_store_probe_zone(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_store_probe_redis(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_store_probe(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);


static ngx_command_t  ngx_store_probe_commands[] = {

    { ngx_string("store_probe_zone"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE2,
      ngx_store_probe_zone,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("store_probe_redis"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_1MORE,
      ngx_store_probe_redis,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("store_probe_zoneless"),
      NGX_HTTP_LOC_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_store_probe_loc_conf_t, zoneless),
      NULL },

    { ngx_string("store_probe"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS,
      ngx_store_probe,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_store_probe_module_ctx = {
    NULL,                                  /* preconfiguration */
    NULL,                                  /* postconfiguration */
    ngx_store_probe_create_main_conf,      /* create main configuration */
    NULL,                                  /* init main configuration */
    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */
    ngx_store_probe_create_loc_conf,       /* create location configuration */
    ngx_store_probe_merge_loc_conf         /* merge location configuration */
};


ngx_module_t  ngx_store_probe_module = {
    NGX_MODULE_V1,
    &ngx_store_probe_module_ctx,           /* module context */
    ngx_store_probe_commands,              /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    ngx_toolgate_redis_init_worker,        /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    ngx_toolgate_redis_exit_worker,        /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static const char  *ngx_store_probe_modes[] = {
    "store", "local", "open", "closed"     /* in the enum's order */
};


static ngx_int_t
ngx_store_probe_handler(ngx_http_request_t *r)
{
    ngx_int_t               rc;
    ngx_str_t               words;
    ngx_pool_cleanup_t     *cln;
    ngx_store_probe_ctx_t  *ctx;

    rc = ngx_http_discard_request_body(r);
    if (rc != NGX_OK) {
        return rc;
    }

    if (ngx_store_probe_arg(r, "up", &words) == NGX_OK) {
        return ngx_store_probe_up(r);
    }

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_store_probe_ctx_t));
    if (cln == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx = cln->data;
    ngx_memzero(ctx, sizeof(ngx_store_probe_ctx_t));
    ctx->request = r;
    ngx_gettimeofday(&ctx->start);
    cln->handler = ngx_store_probe_cleanup;

    ngx_http_set_ctx(r, ctx, ngx_store_probe_module);

    if (ngx_store_probe_arg(r, "command", &words) == NGX_OK) {
        return ngx_store_probe_command(r, ctx, &words);
    }

    if (ngx_store_probe_arg(r, "flood", &words) == NGX_OK) {
        return ngx_store_probe_flood(r, ctx, &words);
    }

    return ngx_store_probe_take(r, ctx);
}


/* percent-decoded */
static ngx_int_t
ngx_store_probe_arg(ngx_http_request_t *r, const char *name, ngx_str_t *value)
{
    u_char     *src, *dst;
    ngx_str_t   raw;

    if (ngx_http_arg(r, (u_char *) name, ngx_strlen(name), &raw) != NGX_OK) {
        return NGX_DECLINED;
    }

    value->data = ngx_pnalloc(r->pool, raw.len + 1);
    if (value->data == NULL) {
        return NGX_ERROR;
    }

    src = raw.data;
    dst = value->data;
    ngx_unescape_uri(&dst, &src, raw.len, 0);
    value->len = dst - value->data;

    return NGX_OK;
}


static ngx_int_t
ngx_store_probe_take(ngx_http_request_t *r, ngx_store_probe_ctx_t *ctx)
{
    ngx_str_t                     limit, window, takes;
    ngx_toolgate_counter_t        counter;
    ngx_store_probe_loc_conf_t   *plcf;
    ngx_store_probe_main_conf_t  *pmcf;

    pmcf = ngx_http_get_module_main_conf(r, ngx_store_probe_module);
    plcf = ngx_http_get_module_loc_conf(r, ngx_store_probe_module);

    if (ngx_store_probe_arg(r, "key", &counter.key) != NGX_OK
        || ngx_store_probe_arg(r, "limit", &limit) != NGX_OK
        || ngx_store_probe_arg(r, "window", &window) != NGX_OK)
    {
        return NGX_HTTP_BAD_REQUEST;
    }

    counter.limit = ngx_atoi(limit.data, limit.len);
    counter.window_s = ngx_atoi(window.data, window.len);
    counter.takes = 1;

    if (ngx_store_probe_arg(r, "takes", &takes) == NGX_OK) {
        counter.takes = ngx_atoi(takes.data, takes.len);
    }

    ctx->takes = counter.takes;

    ctx->waiting = 0;

    if (ngx_toolgate_counter_take(r->pool, r->connection->log, plcf->redis,
                                  plcf->zoneless ? NULL : pmcf->zone, &counter,
                                  ngx_store_probe_taken, ctx)
        != NGX_OK)
    {
        return NGX_HTTP_BAD_REQUEST;
    }

    /* answered from inside, by ngx_store_probe_taken() */
    if (ctx->answers) {
        return r->headers_out.status ? NGX_OK : NGX_ERROR;
    }

    return ngx_store_probe_suspend(r, ctx);
}


static void
ngx_store_probe_taken(void *data, ngx_toolgate_counter_result_t *result)
{
    u_char                  text[NGX_STORE_PROBE_BODY], *last;
    ngx_http_request_t     *r;
    ngx_store_probe_ctx_t  *ctx;

    ctx = data;
    r = ctx->request;
    ctx->answers++;

    last = ngx_slprintf(text, text + sizeof(text),
                        "{\"allowed\":%s,\"passed\":%ui,\"remaining\":%ui,\"retry_after\":%ui,"
                        "\"mode\":\"%s\",\"ms\":%ui,\"pid\":%P}\n",
                        result->passed == ctx->takes ? "true" : "false",
                        result->passed, result->remaining, result->retry_after_s,
                        ngx_store_probe_modes[result->mode],
                        ngx_store_probe_ms(ctx), ngx_pid);

    ngx_store_probe_resume(r, ctx, text, last - text);
}


static ngx_int_t
ngx_store_probe_command(ngx_http_request_t *r, ngx_store_probe_ctx_t *ctx,
    ngx_str_t *words)
{
    u_char                      *p, *end, *word;
    ngx_str_t                    argv[NGX_STORE_PROBE_ARGS];
    ngx_uint_t                   argc;
    ngx_store_probe_loc_conf_t  *plcf;

    plcf = ngx_http_get_module_loc_conf(r, ngx_store_probe_module);
    end = words->data + words->len;
    word = words->data;
    argc = 0;

    for (p = word; p <= end && argc < NGX_STORE_PROBE_ARGS; p++) {
        if (p == end || *p == ',') {
            argv[argc].data = word;
            argv[argc++].len = p - word;
            word = p + 1;
        }
    }

    ctx->ticket = ngx_toolgate_redis_command(plcf->redis, r->connection->log,
                                             argc, argv,
                                             ngx_store_probe_replied, ctx);
    if (ctx->ticket == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_store_probe_suspend(r, ctx);
}


static void
ngx_store_probe_replied(void *data, redisReply *reply)
{
    u_char                  text[NGX_STORE_PROBE_BODY], *last;
    ngx_store_probe_ctx_t  *ctx;

    ctx = data;
    ctx->ticket = NULL;
    ctx->answers++;

    last = text + sizeof(text);

    if (reply == NULL) {
        last = ngx_slprintf(text, last, "none %ui\n", ngx_store_probe_ms(ctx));

    } else if (reply->type == REDIS_REPLY_INTEGER) {
        last = ngx_slprintf(text, last, "integer %L\n", reply->integer);

    } else if (reply->str) {
        last = ngx_slprintf(text, last, "%s %uz %*s\n",
                            reply->type == REDIS_REPLY_ERROR ? "error"
                                                             : "string",
                            (size_t) reply->len,
                            ngx_min((size_t) reply->len, 200), reply->str);

    } else {
        last = ngx_slprintf(text, last, "type %d\n", reply->type);
    }

    ngx_store_probe_resume(ctx->request, ctx, text, last - text);
}


/* the client stays: nothing drops these */
static ngx_int_t
ngx_store_probe_flood(ngx_http_request_t *r, ngx_store_probe_ctx_t *ctx,
    ngx_str_t *number)
{
    ngx_int_t                    i, n;
    ngx_str_t                    ping = ngx_string("PING");
    ngx_store_probe_loc_conf_t  *plcf;

    plcf = ngx_http_get_module_loc_conf(r, ngx_store_probe_module);

    n = ngx_atoi(number->data, number->len);
    if (n < 1) {
        return NGX_HTTP_BAD_REQUEST;
    }

    for (i = 0; i < n; i++) {
        if (ngx_toolgate_redis_command(plcf->redis, r->connection->log, 1,
                                       &ping, ngx_store_probe_flooded, ctx)
            != NULL)
        {
            ctx->flood++;
        }
    }

    ctx->waiting = 1;
    r->main->count++;

    return NGX_DONE;
}


static void
ngx_store_probe_flooded(void *data, redisReply *reply)
{
    u_char                  text[NGX_STORE_PROBE_BODY], *last;
    ngx_store_probe_ctx_t  *ctx;

    ctx = data;

    if (reply) {
        ctx->replied++;

    } else {
        ctx->undone++;
    }

    if (--ctx->flood == 0) {
        ctx->answers++;
        last = ngx_sprintf(text, "replied %ui undone %ui", ctx->replied,
                           ctx->undone);
        ngx_store_probe_resume(ctx->request, ctx, text, last - text);
    }
}


static ngx_int_t
ngx_store_probe_up(ngx_http_request_t *r)
{
    ngx_store_probe_loc_conf_t  *plcf;

    plcf = ngx_http_get_module_loc_conf(r, ngx_store_probe_module);

    return ngx_store_probe_send(r,
                   (u_char *) (ngx_toolgate_redis_up(plcf->redis) ? "1" : "0"),
                   1);
}


static ngx_int_t
ngx_store_probe_suspend(ngx_http_request_t *r, ngx_store_probe_ctx_t *ctx)
{
    ctx->waiting = 1;
    r->main->count++;
    r->read_event_handler = ngx_http_test_reading;

    return NGX_DONE;
}


static void
ngx_store_probe_resume(ngx_http_request_t *r, ngx_store_probe_ctx_t *ctx,
    u_char *text, size_t len)
{
    ngx_int_t          rc;
    ngx_connection_t  *c;

    if (ctx->answers != 1) {
        ngx_log_error(NGX_LOG_ALERT, r->connection->log, 0,
                      "store probe: answer number %ui", ctx->answers);
        return;
    }

    rc = ngx_store_probe_send(r, text, len);

    if (ctx->waiting) {
        c = r->connection;
        ngx_http_finalize_request(r, rc);
        ngx_http_run_posted_requests(c);
    }
}


static ngx_int_t
ngx_store_probe_send(ngx_http_request_t *r, u_char *text, size_t len)
{
    ngx_int_t     rc;
    ngx_buf_t    *b;
    ngx_chain_t   out;

    b = ngx_create_temp_buf(r->pool, len);
    if (b == NULL) {
        return NGX_ERROR;
    }

    b->last = ngx_cpymem(b->last, text, len);
    b->last_buf = 1;
    b->last_in_chain = 1;

    r->headers_out.status = NGX_HTTP_OK;
    r->headers_out.content_length_n = len;

    rc = ngx_http_send_header(r);
    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    out.buf = b;
    out.next = NULL;

    return ngx_http_output_filter(r, &out);
}


static void
ngx_store_probe_cleanup(void *data)
{
    ngx_store_probe_ctx_t  *ctx;

    ctx = data;

    if (ctx->ticket) {
        ngx_toolgate_redis_drop(ctx->ticket);
    }
}


static ngx_uint_t
ngx_store_probe_ms(ngx_store_probe_ctx_t *ctx)
{
    struct timeval  now;

    ngx_gettimeofday(&now);

    return (now.tv_sec - ctx->start.tv_sec) * 1000
           + (now.tv_usec - ctx->start.tv_usec) / 1000;
}


static void *
ngx_store_probe_create_main_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(ngx_store_probe_main_conf_t));
}


static void *
ngx_store_probe_create_loc_conf(ngx_conf_t *cf)
{
    ngx_store_probe_loc_conf_t  *conf;

    conf = ngx_pcalloc(cf->pool, sizeof(ngx_store_probe_loc_conf_t));
    if (conf == NULL) {
        return NULL;
    }

    conf->redis = NGX_CONF_UNSET_PTR;
    conf->zoneless = NGX_CONF_UNSET;

    return conf;
}


static char *
ngx_store_probe_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_store_probe_loc_conf_t  *prev = parent;
    ngx_store_probe_loc_conf_t  *conf = child;

    ngx_conf_merge_ptr_value(conf->redis, prev->redis, NULL);
    ngx_conf_merge_value(conf->zoneless, prev->zoneless, 0);

    return NGX_CONF_OK;
}


static char *
ngx_store_probe_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_store_probe_main_conf_t  *pmcf = conf;

    ssize_t     size;
    ngx_str_t  *value;

    value = cf->args->elts;

    size = ngx_parse_size(&value[2]);
    if (size == NGX_ERROR) {
        return "has an invalid size";
    }

    pmcf->zone = ngx_shared_memory_add(cf, &value[1], size,
                                       &ngx_store_probe_module);
    if (pmcf->zone == NULL
        || ngx_toolgate_counters_zone(cf, pmcf->zone) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static char *
ngx_store_probe_redis(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_store_probe_loc_conf_t  *plcf = conf;

    ngx_str_t  *value;

    if (plcf->redis != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_strcmp(value[1].data, "off") == 0) {
        plcf->redis = NULL;
        return NGX_CONF_OK;
    }

    plcf->redis = ngx_palloc(cf->pool, sizeof(ngx_toolgate_redis_conf_t));
    if (plcf->redis == NULL) {
        return NGX_CONF_ERROR;
    }

    return ngx_toolgate_redis_parse(cf, plcf->redis);
}


static char *
ngx_store_probe(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    clcf->handler = ngx_store_probe_handler;

    return NGX_CONF_OK;
}
