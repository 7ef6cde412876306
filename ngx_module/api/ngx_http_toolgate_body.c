/*
 * Reads a JSON body into memory and checks it while it arrives, a slice in each
 * turn of the event loop, so that a big one does not hold up other streams of the
 * worker. Never writes to a file; reads one that another module has written.
 */

#include "ngx_http_toolgate_api.h"


#define NGX_HTTP_TOOLGATE_BODY_FIRST  (16 * 1024)    /* when no length is given */


static ngx_http_toolgate_body_t *ngx_http_toolgate_body_new(
    ngx_http_request_t *r, ngx_http_toolgate_key_t *key,
    ngx_http_toolgate_body_done_pt done, void *owner);
static void ngx_http_toolgate_body_ready(ngx_http_request_t *r);
static void ngx_http_toolgate_body_event(ngx_http_request_t *r);
static void ngx_http_toolgate_body_slice(ngx_event_t *ev);
static void ngx_http_toolgate_body_process(ngx_http_request_t *r);
static ngx_int_t ngx_http_toolgate_body_take(ngx_http_request_t *r,
    ngx_http_toolgate_body_t *body, size_t *taken);
static ngx_int_t ngx_http_toolgate_body_copy(ngx_buf_t *b, u_char *to,
    size_t len);
static ngx_int_t ngx_http_toolgate_body_room(ngx_http_request_t *r,
    ngx_http_toolgate_body_t *body, size_t len);
static void ngx_http_toolgate_body_finish(ngx_http_request_t *r,
    ngx_http_toolgate_body_t *body);
static void ngx_http_toolgate_body_refuse(ngx_http_request_t *r,
    ngx_http_toolgate_body_t *body, const char *code, const char *message);
static const char *ngx_http_toolgate_body_code(ngx_int_t rc);
static ngx_int_t ngx_http_toolgate_body_type(ngx_http_request_t *r);
static void ngx_http_toolgate_body_cleanup(void *data);


ngx_int_t
ngx_http_toolgate_body_read(ngx_http_request_t *r, ngx_http_toolgate_key_t *key,
    ngx_http_toolgate_body_done_pt done, void *owner)
{
    off_t                          length;
    ngx_int_t                      rc;
    ngx_http_toolgate_body_t      *body;
    ngx_http_toolgate_loc_conf_t  *tlcf;

    /* "mirror", "auth_request" and the like: the body, the connection and the
     * answer are the main request's */

    if (r != r->main) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "toolgate: \"%V\" cannot be a subrequest", &r->uri);
        return NGX_HTTP_FORBIDDEN;
    }

    tlcf = ngx_http_get_module_loc_conf(r, ngx_http_toolgate_module);
    length = r->headers_in.content_length_n;

    if (ngx_http_toolgate_body_type(r) != NGX_OK) {
        return ngx_http_toolgate_reply_error(r, "unsupported_media_type", NULL,
                                             NULL);
    }

    if (length > (off_t) tlcf->max_body) {
        return ngx_http_toolgate_reply_error(r, "request_too_large", NULL, NULL);
    }

    body = ngx_http_toolgate_body_new(r, key, done, owner);

    if (body == NULL
        || ngx_http_toolgate_body_room(r, body,
                                       length > 0 ? (size_t) length : 0) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_set_ctx(r, body, ngx_http_toolgate_module);

    r->request_body_no_buffering = 1;

    rc = ngx_http_read_client_request_body(r, ngx_http_toolgate_body_ready);

    if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
        r->keepalive = 0;
        return ngx_http_toolgate_reply_error(r, ngx_http_toolgate_body_code(rc),
                                             NULL, NULL);
    }

    return NGX_DONE;
}


ngx_int_t
ngx_http_toolgate_body_read_any(ngx_http_request_t *r, ngx_http_toolgate_key_t *key,
    ngx_http_toolgate_body_done_pt done, void *owner)
{
    ngx_http_toolgate_body_t  *body;

    static const char  none[] = "{}";

    if (r->headers_in.content_length_n > 0 || r->headers_in.chunked || r != r->main) {
        return ngx_http_toolgate_body_read(r, key, done, owner);
    }

    body = ngx_http_toolgate_body_new(r, key, done, owner);

    if (body == NULL
        || ngx_http_toolgate_body_room(r, body, sizeof(none) - 1) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    body->len = sizeof(none) - 1;
    ngx_memcpy(body->data, none, body->len);

    (void) tg_scan_feed(body->scan, none, body->len);

    ngx_http_set_ctx(r, body, ngx_http_toolgate_module);
    r->main->count++;

    ngx_http_toolgate_body_finish(r, body);

    return NGX_DONE;
}


static ngx_http_toolgate_body_t *
ngx_http_toolgate_body_new(ngx_http_request_t *r, ngx_http_toolgate_key_t *key,
    ngx_http_toolgate_body_done_pt done, void *owner)
{
    ngx_pool_cleanup_t            *cln;
    ngx_http_toolgate_body_t      *body;
    ngx_http_toolgate_loc_conf_t  *tlcf;

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_toolgate_body_t));
    if (cln == NULL) {
        return NULL;
    }

    tlcf = ngx_http_get_module_loc_conf(r, ngx_http_toolgate_module);

    body = cln->data;
    ngx_memzero(body, sizeof(ngx_http_toolgate_body_t));
    cln->handler = ngx_http_toolgate_body_cleanup;

    body->request = r;
    body->key = key;
    body->done = done;
    body->owner = owner;
    body->max = tlcf->max_body;
    body->slice.handler = ngx_http_toolgate_body_slice;
    body->slice.data = body;
    body->slice.log = r->connection->log;
    body->scan = tg_scan_new();

    return body->scan ? body : NULL;
}


static ngx_int_t
ngx_http_toolgate_body_type(ngx_http_request_t *r)
{
    ngx_str_t  *type;

    if (r->headers_in.content_type == NULL) {
        return NGX_OK;
    }

    type = &r->headers_in.content_type->value;

    if (type->len >= 16
        && ngx_strncasecmp(type->data, (u_char *) "application/json", 16) == 0
        && (type->len == 16 || type->data[16] == ';' || type->data[16] == ' '))
    {
        return NGX_OK;
    }

    return NGX_DECLINED;
}


static const char *
ngx_http_toolgate_body_code(ngx_int_t rc)
{
    switch (rc) {

    case NGX_HTTP_REQUEST_ENTITY_TOO_LARGE:
        return "request_too_large";

    case NGX_HTTP_REQUEST_TIME_OUT:
        return "request_timeout";

    case NGX_HTTP_BAD_REQUEST:
        return "invalid_json";

    default:
        return "internal_error";
    }
}


static void
ngx_http_toolgate_body_ready(ngx_http_request_t *r)
{
    r->read_event_handler = ngx_http_toolgate_body_event;
    r->write_event_handler = ngx_http_request_empty_handler;

    ngx_http_toolgate_body_process(r);
}


static void
ngx_http_toolgate_body_event(ngx_http_request_t *r)
{
    ngx_http_toolgate_body_t  *body;

    body = ngx_http_get_module_ctx(r, ngx_http_toolgate_module);

    /* the slice that is posted will read what has come */

    if (!body->slice.posted) {
        ngx_http_toolgate_body_process(r);
    }
}


static void
ngx_http_toolgate_body_slice(ngx_event_t *ev)
{
    ngx_connection_t          *c;
    ngx_http_toolgate_body_t  *body;

    body = ev->data;
    c = body->request->connection;

    ngx_http_toolgate_body_process(body->request);
    ngx_http_run_posted_requests(c);
}


static void
ngx_http_toolgate_body_process(ngx_http_request_t *r)
{
    size_t                     taken;
    ngx_int_t                  rc;
    ngx_http_toolgate_body_t  *body;

    body = ngx_http_get_module_ctx(r, ngx_http_toolgate_module);
    taken = 0;

    for ( ;; ) {

        if (ngx_http_toolgate_body_take(r, body, &taken) != NGX_OK) {
            return;
        }

        if (!r->reading_body) {
            ngx_http_toolgate_body_finish(r, body);
            return;
        }

        if (taken >= NGX_HTTP_TOOLGATE_BODY_SLICE) {
            ngx_post_event(&body->slice, &ngx_posted_next_events);
            return;
        }

        rc = ngx_http_read_unbuffered_request_body(r);

        if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
            if (r->connection->error) {
                ngx_http_finalize_request(r, NGX_HTTP_CLIENT_CLOSED_REQUEST);
                return;
            }

            ngx_http_toolgate_body_refuse(r, body,
                                          ngx_http_toolgate_body_code(rc), NULL);
            return;
        }

        if (rc == NGX_AGAIN && r->request_body->bufs == NULL) {
            return;
        }
    }
}


static ngx_int_t
ngx_http_toolgate_body_take(ngx_http_request_t *r, ngx_http_toolgate_body_t *body,
    size_t *taken)
{
    size_t        len;
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    if (r->request_body == NULL) {
        return NGX_OK;
    }

    for (cl = r->request_body->bufs; cl; cl = cl->next) {
        b = cl->buf;
        len = (size_t) ngx_buf_size(b);

        if (len == 0) {
            continue;
        }

        if (body->len + len > body->max) {
            ngx_http_toolgate_body_refuse(r, body, "request_too_large", NULL);
            return NGX_ERROR;
        }

        if (ngx_http_toolgate_body_room(r, body, body->len + len) != NGX_OK
            || ngx_http_toolgate_body_copy(b, body->data + body->len, len)
               != NGX_OK)
        {
            ngx_http_toolgate_body_refuse(r, body, "internal_error", NULL);
            return NGX_ERROR;
        }

        /* a fault is told at the end: the client is still sending */

        (void) tg_scan_feed(body->scan, (char *) body->data + body->len, len);

        body->len += len;
        *taken += len;

        if (!r->preserve_body) {
            b->pos = b->last;
        }
    }

    /* "mirror" has read the body before and sends it itself later */

    if (!r->preserve_body) {
        r->request_body->bufs = NULL;
    }

    return NGX_OK;
}


/* A file is only there when another module has read the body. */
static ngx_int_t
ngx_http_toolgate_body_copy(ngx_buf_t *b, u_char *to, size_t len)
{
    if (ngx_buf_in_memory(b)) {
        ngx_memcpy(to, b->pos, len);
        return NGX_OK;
    }

    return ngx_read_file(b->file, to, len, b->file_pos) == (ssize_t) len
           ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_http_toolgate_body_room(ngx_http_request_t *r, ngx_http_toolgate_body_t *body,
    size_t len)
{
    u_char  *data;
    size_t   cap;

    if (len <= body->cap && body->data) {
        return NGX_OK;
    }

    cap = ngx_max(len, 2 * body->cap);
    cap = ngx_min(cap, body->max);

    if (cap == 0) {
        cap = NGX_HTTP_TOOLGATE_BODY_FIRST;
    }

    data = ngx_http_toolgate_bytes_resize(r->pool, body->data, body->len,
                                          body->cap, cap);
    if (data == NULL) {
        return NGX_ERROR;
    }

    body->data = data;
    body->cap = cap;

    return NGX_OK;
}


static void
ngx_http_toolgate_body_finish(ngx_http_request_t *r,
    ngx_http_toolgate_body_t *body)
{
    char         message[256];
    size_t       offset;
    const char  *reason;

    r->read_event_handler = ngx_http_block_reading;

    if (tg_scan_finish(body->scan) != TG_OK) {
        reason = tg_scan_error(body->scan, &offset);
        snprintf(message, sizeof(message),
                 "The body is not valid JSON: %s at byte %zu.", reason, offset);

        ngx_http_toolgate_body_refuse(r, body, "invalid_json", message);
        return;
    }

    body->over = 1;
    body->done(r, body);
}


static void
ngx_http_toolgate_body_refuse(ngx_http_request_t *r,
    ngx_http_toolgate_body_t *body, const char *code, const char *message)
{
    body->over = 1;

    if (r->reading_body) {
        r->keepalive = 0;
    }

    ngx_http_finalize_request(r, ngx_http_toolgate_reply_error(r, code, message,
                                                               NULL));
}


ngx_int_t
ngx_http_toolgate_body_replace(ngx_http_toolgate_body_t *body, tg_buf_t *text)
{
    u_char     *data;
    tg_scan_t  *scan;

    scan = tg_scan_new();
    data = text->error == TG_OK
           ? ngx_http_toolgate_bytes_resize(body->request->pool, NULL, 0, 0,
                                            text->len + 1)
           : NULL;

    if (scan == NULL || data == NULL) {
        tg_scan_free(scan);
        return NGX_ERROR;
    }

    ngx_memcpy(data, text->data, text->len);

    ngx_http_toolgate_bytes_free(body->request->pool, body->data, body->cap);
    tg_scan_free(body->scan);

    body->data = data;
    body->len = text->len;
    body->cap = text->len + 1;
    body->scan = scan;

    return tg_scan_feed(scan, (char *) data, body->len) == TG_OK
           && tg_scan_finish(scan) == TG_OK
           ? NGX_OK : NGX_ERROR;
}


static void
ngx_http_toolgate_body_cleanup(void *data)
{
    ngx_http_toolgate_body_t  *body = data;

    if (body->slice.posted) {
        ngx_delete_posted_event(&body->slice);
    }

    tg_scan_free(body->scan);
    ngx_http_toolgate_bytes_free(NULL, body->data, body->cap);
}
