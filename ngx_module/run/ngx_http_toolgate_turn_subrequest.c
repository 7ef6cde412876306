/*
 * One model turn as a background subrequest. The invariant: when control goes
 * back to the event loop, a turn is either over (its subrequest is not touched
 * any more) or its subrequest is alive and will call one of the filters or the
 * post handler below. nginx ends the subrequest by itself when the main request
 * goes away.
 */

#include "ngx_http_toolgate_turn.h"


static ngx_int_t ngx_http_toolgate_turn_length(ngx_http_request_t *r);
static ngx_int_t ngx_http_toolgate_turn_request(ngx_http_request_t *sr,
    ngx_chain_t *body, ngx_uint_t stream);
static ngx_int_t ngx_http_toolgate_turn_add_header(ngx_http_request_t *sr,
    const char *name, const char *value);
static ngx_http_toolgate_turn_t *ngx_http_toolgate_turn_of(
    ngx_http_request_t *r);
static ngx_int_t ngx_http_toolgate_turn_header_filter(ngx_http_request_t *r);
static ngx_int_t ngx_http_toolgate_turn_body_filter(ngx_http_request_t *r,
    ngx_chain_t *in);
static ngx_int_t ngx_http_toolgate_turn_hold(ngx_http_toolgate_turn_t *turn,
    ngx_pool_t *pool, ngx_chain_t *in);
static ngx_int_t ngx_http_toolgate_turn_offer(ngx_http_toolgate_turn_t *turn);
static ngx_int_t ngx_http_toolgate_turn_done(ngx_http_request_t *r, void *data,
    ngx_int_t rc);
static ngx_uint_t ngx_http_toolgate_turn_delayed(ngx_http_toolgate_turn_t *turn);
static void ngx_http_toolgate_turn_subrequest_wake(
    ngx_http_toolgate_turn_t *turn);
static void ngx_http_toolgate_turn_subrequest_release(
    ngx_http_toolgate_turn_t *turn);
static ngx_uint_t ngx_http_toolgate_turn_subrequest_forget(
    ngx_http_toolgate_turn_t *turn);


static const ngx_http_toolgate_turn_kind_t
    ngx_http_toolgate_turn_subrequest_kind =
{
    ngx_http_toolgate_turn_subrequest_wake,
    ngx_http_toolgate_turn_subrequest_release,
    ngx_http_toolgate_turn_subrequest_forget
};


static ngx_http_output_header_filter_pt  ngx_http_next_header_filter;
static ngx_http_output_body_filter_pt    ngx_http_next_body_filter;


ngx_int_t
ngx_http_toolgate_turn_init(ngx_conf_t *cf)
{
    ngx_http_handler_pt        *h;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_PREACCESS_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_toolgate_turn_length;

    ngx_http_next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = ngx_http_toolgate_turn_header_filter;

    ngx_http_next_body_filter = ngx_http_top_body_filter;
    ngx_http_top_body_filter = ngx_http_toolgate_turn_body_filter;

    return NGX_OK;
}


/*
 * Tells the subrequest its length only now that its location is found: there
 * nginx holds it against client_max_body_size, 1m unless told otherwise, though
 * the body has passed "toolgate_max_body" already.
 */
static ngx_int_t
ngx_http_toolgate_turn_length(ngx_http_request_t *r)
{
    ngx_http_toolgate_turn_t  *turn;

    if (r != r->main) {
        turn = ngx_http_toolgate_turn_of(r);

        if (turn && r == turn->sub.request) {
            r->headers_in.content_length_n = turn->sub.length;
        }
    }

    return NGX_DECLINED;
}


ngx_int_t
ngx_http_toolgate_turn_subrequest(ngx_http_request_t *r,
    ngx_http_toolgate_turn_t *turn, ngx_str_t *location, ngx_chain_t *body,
    off_t length, ngx_uint_t stream)
{
    ngx_http_request_t  *sr;

    if (ngx_http_toolgate_turn_begin(r, turn,
                                     &ngx_http_toolgate_turn_subrequest_kind)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    turn->sub.held = NULL;
    turn->sub.length = length;
    turn->sub.is_posted = 0;
    turn->sub.last = 0;

    turn->sub.post.handler = ngx_http_toolgate_turn_done;
    turn->sub.post.data = turn;

    /* background: an ordinary one would take the connection from the main
     * request, which then could not send while the model talks */

    if (ngx_http_subrequest(r, location, NULL, &sr, &turn->sub.post,
                            NGX_HTTP_SUBREQUEST_BACKGROUND)
        != NGX_OK)
    {
        turn->state = NGX_HTTP_TOOLGATE_TURN_BROKEN;
        return NGX_ERROR;
    }

    turn->sub.request = sr;
    turn->sub.live = 1;

    return ngx_http_toolgate_turn_request(sr, body, stream);
}


/* Not by a module context: an error_page in the model's location would clear it,
 * and the page would go to the client. */
static ngx_http_toolgate_turn_t *
ngx_http_toolgate_turn_of(ngx_http_request_t *r)
{
    if (r->post_subrequest == NULL
        || r->post_subrequest->handler != ngx_http_toolgate_turn_done)
    {
        return NULL;
    }

    return r->post_subrequest->data;
}


/* A subrequest starts with the client's headers: the model must not get them. */
static ngx_int_t
ngx_http_toolgate_turn_request(ngx_http_request_t *sr, ngx_chain_t *body,
    ngx_uint_t stream)
{
    ngx_http_request_body_t  *rb;

    static ngx_str_t  post = ngx_string("POST");

    rb = ngx_pcalloc(sr->pool, sizeof(ngx_http_request_body_t));
    if (rb == NULL) {
        return NGX_ERROR;
    }

    rb->bufs = body;
    rb->rest = 0;

    sr->request_body = rb;
    sr->method = NGX_HTTP_POST;
    sr->method_name = post;
    sr->filter_need_in_memory = 1;
    sr->header_only = 0;

    ngx_memzero(&sr->headers_in, sizeof(ngx_http_headers_in_t));

    if (ngx_list_init(&sr->headers_in.headers, sr->pool, 2,
                      sizeof(ngx_table_elt_t))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    sr->headers_in.content_length_n = -1;

    if (ngx_http_toolgate_turn_add_header(sr, "Content-Type", "application/json")
        != NGX_OK
        || ngx_http_toolgate_turn_add_header(sr, "Accept",
                                             stream ? "text/event-stream"
                                                    : "application/json")
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_turn_add_header(ngx_http_request_t *sr, const char *name,
    const char *value)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(&sr->headers_in.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(h, sizeof(ngx_table_elt_t));
    h->key.data = (u_char *) name;
    h->key.len = ngx_strlen(name);
    h->value.data = (u_char *) value;
    h->value.len = ngx_strlen(value);

    h->lowcase_key = ngx_pnalloc(sr->pool, h->key.len);
    if (h->lowcase_key == NULL) {
        return NGX_ERROR;
    }

    h->hash = ngx_hash_strlow(h->lowcase_key, h->key.data, h->key.len);
    ngx_http_toolgate_header_single(h);

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_turn_header_filter(ngx_http_request_t *r)
{
    ngx_http_toolgate_turn_t  *turn;

    if (r == r->main) {
        return ngx_http_next_header_filter(r);
    }

    turn = ngx_http_toolgate_turn_of(r);

    if (turn == NULL) {
        return ngx_http_next_header_filter(r);
    }

    if (r->upstream && !r->upstream->cacheable && !r->upstream->store) {

        /* "proxy_buffering on", the default, would keep the events of a background
         * subrequest until the last has come */

        r->upstream->buffering = 0;
    }

    if (r == turn->sub.request && turn->state == NGX_HTTP_TOOLGATE_TURN_WAITING) {
        turn->state = NGX_HTTP_TOOLGATE_TURN_RECEIVING;
        turn->status = r->headers_out.status;
        turn->content_type = r->headers_out.content_type;
        turn->content_length = r->headers_out.content_length_n;

        if (turn->status == NGX_HTTP_TOO_MANY_REQUESTS) {
            turn->retry_after = ngx_http_toolgate_header_find(&r->headers_out.headers, "retry-after");
        }

        turn->owner->head(turn);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_turn_body_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_http_toolgate_turn_t  *turn;

    if (r == r->main) {
        return ngx_http_next_body_filter(r, in);
    }

    turn = ngx_http_toolgate_turn_of(r);

    if (turn == NULL) {
        return ngx_http_next_body_filter(r, in);
    }

    if (r != turn->sub.request) {

        /* a turn that was ended early and could not be stopped: nginx waits for
         * what is not taken */

        for ( /* void */ ; in; in = in->next) {
            in->buf->pos = in->buf->last;
        }

        return NGX_OK;
    }

    turn->sub.is_posted = 0;

    if (ngx_http_toolgate_turn_hold(turn, r->pool, in) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_toolgate_turn_offer(turn);
}


/* NGX_AGAIN: the owner does not take all of it now. */
static ngx_int_t
ngx_http_toolgate_turn_offer(ngx_http_toolgate_turn_t *turn)
{
    ngx_int_t     rc;
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    while (turn->sub.held) {
        cl = turn->sub.held;
        b = cl->buf;

        if (b->last > b->pos) {

            rc = turn->given_up
                 ? NGX_OK
                 : turn->owner->take(turn, b->pos, (size_t) (b->last - b->pos));

            if (rc == NGX_AGAIN) {
                return NGX_AGAIN;
            }

            if (rc == NGX_ERROR) {

                /* nginx is at work on the subrequest: it is ended after that */

                turn->given_up = 1;
                ngx_post_event(&turn->close, &ngx_posted_events);

            } else if (rc == NGX_DONE && !turn->close.timer_set) {
                ngx_add_timer(&turn->close, NGX_HTTP_TOOLGATE_TURN_LINGER_MS);
            }

            b->pos = b->last;
        }

        if (b->last_buf || b->last_in_chain) {
            turn->sub.last = 1;
        }

        turn->sub.held = cl->next;
        ngx_free_chain(turn->sub.request->pool, cl);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_turn_hold(ngx_http_toolgate_turn_t *turn, ngx_pool_t *pool,
    ngx_chain_t *in)
{
    ngx_chain_t  *cl, **ll;

    for (ll = &turn->sub.held; *ll; ll = &(*ll)->next) { /* void */ }

    for ( /* void */ ; in; in = in->next) {
        cl = ngx_alloc_chain_link(pool);
        if (cl == NULL) {
            return NGX_ERROR;
        }

        cl->buf = in->buf;
        cl->next = NULL;
        *ll = cl;
        ll = &cl->next;
    }

    return NGX_OK;
}


/*
 * nginx calls this when it finalizes the subrequest, maybe twice for an error
 * (once for the code, once for the page of it). Returning NGX_OK keeps that page
 * from being made and the main request from being torn down.
 */
static ngx_int_t
ngx_http_toolgate_turn_done(ngx_http_request_t *r, void *data, ngx_int_t rc)
{
    ngx_http_toolgate_turn_t  *turn = data;

    if (r != turn->sub.request) {
        return NGX_OK;
    }

    if (r->buffered && (rc == NGX_OK || rc == NGX_AGAIN)) {
        /* of a file, say: nginx goes on with it when what is held was taken */
        return NGX_OK;
    }

    turn->sub.live = 0;

    if (ngx_http_toolgate_turn_over(turn)) {
        return NGX_OK;
    }

    if (r->connection->error) {
        /* the client is gone: let nginx tear all of it down */
        ngx_http_toolgate_turn_quiet(turn);
        return rc;
    }

    if (turn->status == 0) {
        turn->status = (rc >= NGX_HTTP_SPECIAL_RESPONSE) ? (ngx_uint_t) rc
                                                         : NGX_HTTP_BAD_GATEWAY;
    }

    if (turn->sub.held && (rc == NGX_OK || rc == NGX_AGAIN)) {
        /* the client is slow: turn_wake takes the rest, without nginx */
        return NGX_OK;
    }

    ngx_http_toolgate_turn_end(turn, rc == NGX_OK && turn->sub.last);

    return NGX_OK;
}


static void
ngx_http_toolgate_turn_subrequest_wake(ngx_http_toolgate_turn_t *turn)
{
    if (!turn->sub.live) {
        if (ngx_http_toolgate_turn_offer(turn) == NGX_OK) {
            ngx_http_toolgate_turn_end(turn, turn->sub.last);
        }

        return;
    }

    if (ngx_http_toolgate_turn_delayed(turn)) {
        (void) ngx_http_post_request(turn->sub.request, NULL);
        return;
    }

    if (turn->sub.held == NULL || turn->sub.is_posted) {
        return;
    }

    turn->sub.is_posted = 1;

    (void) ngx_http_post_request(turn->sub.request, &turn->sub.posted);
}


/*
 * "limit_req" in the model's location sets the timer of the client's connection
 * and waits for it, but that event goes to the main request. What nginx calls
 * too early looks for itself and waits on.
 */
static ngx_uint_t
ngx_http_toolgate_turn_delayed(ngx_http_toolgate_turn_t *turn)
{
    ngx_http_request_t  *sr;

    sr = turn->sub.request;

    return turn->state == NGX_HTTP_TOOLGATE_TURN_WAITING
           && sr->upstream == NULL
           && !sr->connection->write->delayed
           && sr->write_event_handler != ngx_http_handler
           && sr->write_event_handler != ngx_http_core_run_phases;
}


/* Closes the connection with the model. Not from inside of its own events. */
static void
ngx_http_toolgate_turn_subrequest_release(ngx_http_toolgate_turn_t *turn)
{
    ngx_http_cleanup_pt   handler;
    ngx_http_upstream_t  *u;

    u = turn->sub.request->upstream;

    if (!turn->sub.live || u == NULL || u->cleanup == NULL || *u->cleanup == NULL) {
        return;
    }

    turn->sub.live = 0;

    /* what nginx runs when a client leaves: closes the upstream connection and
     * lets the subrequest go */

    handler = *u->cleanup;
    handler(turn->sub.request);
}


static ngx_uint_t
ngx_http_toolgate_turn_subrequest_forget(ngx_http_toolgate_turn_t *turn)
{
    ngx_http_upstream_t  *u;

    u = turn->sub.request->upstream;

    if (u == NULL || !u->request_body_sent) {
        return 0;
    }

    turn->sub.request->request_body->bufs = NULL;

    return 1;
}
