/*
 * Sends an answer to the client. Invariant: bytes are either in out (ours), in
 * busy (nginx has the buffer) or gone; a buffer that nginx is done with goes to
 * free and is used again, so that a long stream costs no memory.
 */

#include "ngx_http_toolgate_module.h"
#include "ngx_http_toolgate_writer.h"


static ngx_chain_t *ngx_http_toolgate_writer_buffer(
    ngx_http_toolgate_writer_t *w, size_t len);
static void ngx_http_toolgate_writer_append(ngx_http_toolgate_writer_t *w,
    ngx_chain_t *cl);


void
ngx_http_toolgate_writer_init(ngx_http_toolgate_writer_t *w,
    ngx_http_request_t *r)
{
    ngx_memzero(w, sizeof(ngx_http_toolgate_writer_t));
    w->request = r;
}


ngx_int_t
ngx_http_toolgate_writer_start(ngx_http_toolgate_writer_t *w, ngx_uint_t status,
    ngx_str_t *content_type, off_t length, ngx_uint_t event_stream)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    static ngx_str_t  no = ngx_string("no");
    static ngx_str_t  no_cache = ngx_string("no-cache");

    r = w->request;
    w->started = 1;
    w->events = event_stream ? 1 : 0;

    /* as for what nginx proxies without buffering: the timer of a limited rate is
     * the connection's, and the subrequest that reads from the model deletes it */
    r->limit_rate = 0;
    r->limit_rate_set = 1;

    r->headers_out.status = status;
    r->headers_out.content_type = *content_type;
    r->headers_out.content_type_len = content_type->len;
    r->headers_out.content_length_n = length;

    if (w->before.len && status == NGX_HTTP_OK && length != -1) {
        r->headers_out.content_length_n += w->before.len + w->after.len;
        w->wrapped = 1;
    }

    if (event_stream) {
        if (ngx_http_toolgate_add_header(r, "X-Accel-Buffering", &no) != NGX_OK
            || ngx_http_toolgate_add_header(r, "Cache-Control", &no_cache)
               != NGX_OK)
        {
            return NGX_ERROR;
        }

#if (NGX_HTTP_GZIP)
        /* compression would hold events back */
        r->gzip_tested = 1;
        r->gzip_ok = 0;
#endif
    }

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK) {
        return NGX_ERROR;
    }

    return w->wrapped ? ngx_http_toolgate_writer_add(w, w->before.data,
                                                     w->before.len)
                      : NGX_OK;
}


void
ngx_http_toolgate_writer_wrap(ngx_http_toolgate_writer_t *w, ngx_str_t before,
    ngx_str_t after)
{
    w->before = before;
    w->after = after;
}


/* len: what is still to be added. A stream that is mostly silent keeps no more than
 * it needs for a token. */
static ngx_chain_t *
ngx_http_toolgate_writer_buffer(ngx_http_toolgate_writer_t *w, size_t len)
{
    size_t        size;
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    cl = ngx_chain_get_free_buf(w->request->pool, &w->free);
    if (cl == NULL) {
        return NULL;
    }

    b = cl->buf;

    if (b->start == NULL) {
        size = NGX_HTTP_TOOLGATE_WRITER_SMALL;

        while (size < len && size < NGX_HTTP_TOOLGATE_WRITER_BUFFER) {
            size *= 2;
        }

        b->start = ngx_palloc(w->request->pool, size);
        if (b->start == NULL) {
            return NULL;
        }

        b->end = b->start + size;
        b->temporary = 1;
        b->tag = (ngx_buf_tag_t) &ngx_http_toolgate_module;
    }

    b->pos = b->start;
    b->last = b->start;
    b->flush = 0;
    b->last_buf = 0;
    b->last_in_chain = 0;

    return cl;
}


static void
ngx_http_toolgate_writer_append(ngx_http_toolgate_writer_t *w, ngx_chain_t *cl)
{
    cl->next = NULL;

    if (w->last) {
        w->last->next = cl;

    } else {
        w->out = cl;
    }

    w->last = cl;
}


ngx_int_t
ngx_http_toolgate_writer_add(ngx_http_toolgate_writer_t *w, const void *data,
    size_t len)
{
    size_t         n;
    ngx_buf_t     *b;
    ngx_chain_t   *cl;
    const u_char  *p;

    p = data;
    w->queued += len;
    w->last_added = ngx_current_msec;

    while (len) {

        if (w->last == NULL || w->last->buf->last == w->last->buf->end) {
            cl = ngx_http_toolgate_writer_buffer(w, len);
            if (cl == NULL) {
                return NGX_ERROR;
            }

            ngx_http_toolgate_writer_append(w, cl);
        }

        b = w->last->buf;
        n = ngx_min(len, (size_t) (b->end - b->last));
        b->last = ngx_cpymem(b->last, p, n);
        p += n;
        len -= n;
    }

    return NGX_OK;
}


void
ngx_http_toolgate_writer_end(ngx_http_toolgate_writer_t *w)
{
    w->ended = 1;
}


ngx_int_t
ngx_http_toolgate_writer_flush(ngx_http_toolgate_writer_t *w)
{
    ngx_int_t                  rc;
    ngx_buf_t                 *b;
    ngx_chain_t               *cl, *out;
    ngx_event_t               *wev;
    ngx_http_request_t        *r;
    ngx_http_core_loc_conf_t  *clcf;

    r = w->request;
    wev = r->connection->write;

    if (w->ended && !w->flushed) {

        if (w->wrapped
            && ngx_http_toolgate_writer_add(w, w->after.data, w->after.len) != NGX_OK)
        {
            return NGX_ERROR;
        }

        if (w->out == NULL) {
            cl = ngx_alloc_chain_link(r->pool);
            b = ngx_calloc_buf(r->pool);
            if (cl == NULL || b == NULL) {
                return NGX_ERROR;
            }

            cl->buf = b;
            ngx_http_toolgate_writer_append(w, cl);
        }

        w->last->buf->last_buf = 1;
        w->flushed = 1;
    }

    if (w->out) {
        w->last->buf->flush = 1;

    } else if (!r->connection->buffered && w->busy == NULL) {
        return NGX_OK;
    }

    out = w->out;
    w->out = NULL;
    w->last = NULL;
    w->queued = 0;

    rc = ngx_http_output_filter(r, out);

    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    ngx_chain_update_chains(r->pool, &w->free, &w->busy, &out,
                            (ngx_buf_tag_t) &ngx_http_toolgate_module);

    w->unsent = 0;

    for (cl = w->busy; cl; cl = cl->next) {
        w->unsent += (size_t) ngx_buf_size(cl->buf);
    }

    if (!r->connection->buffered && w->busy == NULL) {
        if (wev->timer_set) {
            ngx_del_timer(wev);
        }

        return NGX_OK;
    }

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (!wev->delayed) {
        ngx_add_timer(wev, clcf->send_timeout);
    }

    if (ngx_handle_write_event(wev, clcf->send_lowat) != NGX_OK) {
        return NGX_ERROR;
    }

    return NGX_AGAIN;
}
