/*
 * One model turn by the protected client, to the URL that an agent names. The
 * invariant: when control goes back to the event loop, a turn is either over or its
 * call will tell more. The call lives in the main request's pool and ends with it.
 */

#include "ngx_http_toolgate_turn.h"
#include "ngx_http_toolgate_registry.h"


static const char *ngx_http_toolgate_turn_outbound_forbidden(
    ngx_http_toolgate_turn_t *turn, ngx_http_toolgate_model_url_t *url,
    ngx_http_toolgate_secret_t *secret, const tg_netguard_t *guard);
static ngx_int_t ngx_http_toolgate_turn_outbound_headers(
    ngx_http_toolgate_turn_t *turn, ngx_pool_t *pool,
    ngx_http_toolgate_secret_t *secret);
static ngx_int_t ngx_http_toolgate_turn_outbound_header(ngx_array_t *headers,
    const char *name, const char *scheme, ngx_str_t *value);
static void ngx_http_toolgate_turn_outbound_head(void *data,
    ngx_toolgate_client_head_t *head);
static ngx_int_t ngx_http_toolgate_turn_outbound_take(void *data, u_char *bytes,
    size_t len);
static void ngx_http_toolgate_turn_outbound_done(void *data,
    ngx_toolgate_client_result_t *result);
static void ngx_http_toolgate_turn_outbound_wake(ngx_http_toolgate_turn_t *turn);
static void ngx_http_toolgate_turn_outbound_release(
    ngx_http_toolgate_turn_t *turn);
static ngx_uint_t ngx_http_toolgate_turn_outbound_forget(
    ngx_http_toolgate_turn_t *turn);


static const ngx_http_toolgate_turn_kind_t  ngx_http_toolgate_turn_outbound_kind = {
    ngx_http_toolgate_turn_outbound_wake,
    ngx_http_toolgate_turn_outbound_release,
    ngx_http_toolgate_turn_outbound_forget
};

static const ngx_toolgate_client_stream_t  ngx_http_toolgate_turn_outbound_stream = {
    ngx_http_toolgate_turn_outbound_head,
    ngx_http_toolgate_turn_outbound_take
};


ngx_int_t
ngx_http_toolgate_turn_outbound(ngx_http_request_t *r,
    ngx_http_toolgate_turn_t *turn, ngx_http_toolgate_model_url_t *url,
    ngx_http_toolgate_project_t *project, ngx_chain_t *body, off_t length,
    ngx_msec_t time_left)
{
    const char                     *reason;
    ngx_resolver_t                 *resolver;
    ngx_http_core_loc_conf_t       *clcf;
    ngx_http_toolgate_secret_t     *secret;
    ngx_toolgate_client_request_t  *request;
    ngx_http_toolgate_main_conf_t  *conf;

    if (ngx_http_toolgate_turn_begin(r, turn, &ngx_http_toolgate_turn_outbound_kind)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    turn->out.call = NULL;
    conf = ngx_http_get_module_main_conf(r, ngx_http_toolgate_module);

    secret = url->secret.len
             ? ngx_http_toolgate_secret_get(r->pool, project, &url->secret) : NULL;

    reason = ngx_http_toolgate_turn_outbound_forbidden(turn, url, secret,
                                                       &conf->client.guard);
    if (reason) {
        ngx_log_error(NGX_LOG_WARN, r->connection->log, 0,
                      "toolgate: model call not begun: %s: %s", reason,
                      url->parts.host);
        turn->status = NGX_HTTP_BAD_GATEWAY;
        turn->detail = reason;
        ngx_http_toolgate_turn_end(turn, 0);
        return NGX_OK;
    }

    request = &turn->out.request;
    ngx_memzero(request, sizeof(ngx_toolgate_client_request_t));

    if (ngx_http_toolgate_turn_outbound_headers(turn, r->pool, secret) != NGX_OK) {
        return NGX_ERROR;
    }

    request->method = "POST";
    request->url = url->url;
    request->parts = &url->parts;
    request->chain = body;
    request->chain_len = length;
    request->has_body = 1;
    request->timeout = time_left;
    request->stream = &ngx_http_toolgate_turn_outbound_stream;
    request->stream_data = turn;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
    resolver = (clcf->resolver && clcf->resolver->connections.nelts)
               ? clcf->resolver : NULL;

    turn->out.call = ngx_toolgate_client_start(r->pool, r->connection->log,
                                               &conf->client, resolver,
                                               clcf->resolver_timeout, request,
                                         ngx_http_toolgate_turn_outbound_done,
                                               turn);

    return turn->out.call ? NGX_OK : NGX_ERROR;
}


/* Why no byte of this may leave, for the log; the turn notes what the caller is told
 * when it is about the key. */
static const char *
ngx_http_toolgate_turn_outbound_forbidden(ngx_http_toolgate_turn_t *turn,
    ngx_http_toolgate_model_url_t *url, ngx_http_toolgate_secret_t *secret,
    const tg_netguard_t *guard)
{
    if (url->secret.len && secret == NULL) {
        turn->fault = "model_auth_failed";
        turn->advice = "The secret with the model's key does not exist. Ask the "
                       "operator to create it.";
        return "secret_not_found";
    }

    if (secret && !tg_url_host_listed(&url->parts, secret->allowed_hosts,
                                      secret->allowed_host_count))
    {
        turn->fault = "model_auth_failed";
        turn->advice = "The model's key may not be sent to the model's host. Ask the "
                       "operator to check the secret's allowed_hosts.";
        return "secret_host_not_allowed";
    }

    return tg_url_judge(&url->parts, guard);
}


static ngx_int_t
ngx_http_toolgate_turn_outbound_headers(ngx_http_toolgate_turn_t *turn,
    ngx_pool_t *pool, ngx_http_toolgate_secret_t *secret)
{
    ngx_array_t  *headers;

    static ngx_str_t  json = ngx_string("application/json");
    static ngx_str_t  events = ngx_string("text/event-stream");

    headers = ngx_array_create(pool, 3, sizeof(ngx_keyval_t));

    if (headers == NULL
        || ngx_http_toolgate_turn_outbound_header(headers, "Content-Type", "", &json)
           != NGX_OK
        || ngx_http_toolgate_turn_outbound_header(headers, "Accept", "", &events)
           != NGX_OK
        || (secret
            && ngx_http_toolgate_turn_outbound_header(headers, "Authorization",
                                                      "Bearer ", &secret->value)
               != NGX_OK))
    {
        return NGX_ERROR;
    }

    turn->out.request.headers = headers;

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_turn_outbound_header(ngx_array_t *headers, const char *name,
    const char *scheme, ngx_str_t *value)
{
    u_char        *p;
    ngx_keyval_t  *kv;

    kv = ngx_array_push(headers);
    if (kv == NULL) {
        return NGX_ERROR;
    }

    kv->key.data = (u_char *) name;
    kv->key.len = ngx_strlen(name);

    p = ngx_pnalloc(headers->pool, ngx_strlen(scheme) + value->len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    kv->value.data = p;
    p = ngx_cpymem(p, scheme, ngx_strlen(scheme));
    p = ngx_cpymem(p, value->data, value->len);
    kv->value.len = p - kv->value.data;

    return NGX_OK;
}


static void
ngx_http_toolgate_turn_outbound_head(void *data, ngx_toolgate_client_head_t *head)
{
    ngx_http_toolgate_turn_t  *turn = data;

    turn->state = NGX_HTTP_TOOLGATE_TURN_RECEIVING;
    turn->status = head->status;
    turn->content_type = head->content_type;
    turn->retry_after = head->retry_after;
    turn->content_length = head->content_length;

    turn->owner->head(turn);
}


static ngx_int_t
ngx_http_toolgate_turn_outbound_take(void *data, u_char *bytes, size_t len)
{
    ngx_int_t                  rc;
    ngx_http_toolgate_turn_t  *turn = data;

    rc = turn->owner->take(turn, bytes, len);

    if (rc == NGX_AGAIN) {
        return NGX_AGAIN;
    }

    /* the owner may have posted the main request */

    ngx_post_event(&turn->run, &ngx_posted_events);

    if (rc == NGX_ERROR) {
        turn->given_up = 1;
        return NGX_ERROR;
    }

    if (rc == NGX_DONE && !turn->close.timer_set) {
        ngx_add_timer(&turn->close, NGX_HTTP_TOOLGATE_TURN_LINGER_MS);
    }

    return NGX_OK;
}


static void
ngx_http_toolgate_turn_outbound_done(void *data,
    ngx_toolgate_client_result_t *result)
{
    ngx_connection_t          *c;
    ngx_http_toolgate_turn_t  *turn = data;

    c = turn->connection;
    turn->result = result;
    turn->detail = result->detail;

    if (result->code) {
        ngx_log_error(NGX_LOG_WARN, c->log, 0, "toolgate: model call: %s: %s",
                      result->code, result->detail ? result->detail : "");
    }

    if (turn->status == 0) {
        turn->status = result->timed_out ? NGX_HTTP_GATEWAY_TIME_OUT
                                         : NGX_HTTP_BAD_GATEWAY;
    }

    ngx_http_toolgate_turn_end(turn, result->code == NULL);

    ngx_http_run_posted_requests(c);
}


static void
ngx_http_toolgate_turn_outbound_wake(ngx_http_toolgate_turn_t *turn)
{
    if (turn->out.call) {
        ngx_toolgate_client_resume(turn->out.call);
    }
}


static void
ngx_http_toolgate_turn_outbound_release(ngx_http_toolgate_turn_t *turn)
{
    if (turn->out.call) {
        ngx_toolgate_client_cancel(turn->out.call);
    }
}


/* curl may still be sending when an answer has begun */
static ngx_uint_t
ngx_http_toolgate_turn_outbound_forget(ngx_http_toolgate_turn_t *turn)
{
    return ngx_http_toolgate_turn_over(turn);
}
