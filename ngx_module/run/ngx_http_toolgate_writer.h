/*
 * What goes to the client: one answer, whole or as a stream, through recycled
 * buffers with a mark above which nobody should add more. It knows how to send,
 * not what is said.
 */

#ifndef NGX_HTTP_TOOLGATE_WRITER_H
#define NGX_HTTP_TOOLGATE_WRITER_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


#define NGX_HTTP_TOOLGATE_WRITER_BUFFER  4096
#define NGX_HTTP_TOOLGATE_WRITER_SMALL   512      /* for what comes bit by bit */
#define NGX_HTTP_TOOLGATE_HIGH_WATER     (64 * 1024)

typedef struct {
    ngx_http_request_t  *request;
    ngx_chain_t         *out;         /* not given to nginx yet */
    ngx_chain_t         *last;        /* of out; NULL when out is empty */
    ngx_chain_t         *busy;        /* given, not sent yet */
    ngx_chain_t         *free;
    size_t               queued;      /* bytes in out */
    size_t               unsent;      /* bytes in busy */
    ngx_msec_t           last_added;  /* when bytes were added last */
    ngx_str_t            before;      /* of an answer that is whole and no error */
    ngx_str_t            after;
    unsigned             started:1;   /* the head is out */
    unsigned             events:1;    /* it said that events follow */
    unsigned             wrapped:1;   /* before is out, after follows at the end */
    unsigned             ended:1;     /* the last byte was added */
    unsigned             flushed:1;   /* ended, and the end was given to nginx */
} ngx_http_toolgate_writer_t;


void ngx_http_toolgate_writer_init(ngx_http_toolgate_writer_t *w,
    ngx_http_request_t *r);

/* Sends the response head. length -1: not known. event_stream sets what proxies
 * need to see so that they do not hold events back. */
ngx_int_t ngx_http_toolgate_writer_start(ngx_http_toolgate_writer_t *w,
    ngx_uint_t status, ngx_str_t *content_type, off_t length,
    ngx_uint_t event_stream);

/* Puts these around an answer that is whole and no error, before it is started; they
 * live as long as the writer. */
void ngx_http_toolgate_writer_wrap(ngx_http_toolgate_writer_t *w,
    ngx_str_t before, ngx_str_t after);

/* Copies bytes into the queue; always takes all. */
ngx_int_t ngx_http_toolgate_writer_add(ngx_http_toolgate_writer_t *w,
    const void *data, size_t len);

/* No byte comes after those that were added. */
void ngx_http_toolgate_writer_end(ngx_http_toolgate_writer_t *w);

/* Gives the queue to nginx. NGX_OK: all of it is with the kernel; NGX_AGAIN: the
 * client is slow, call again from the write handler; NGX_ERROR: it is gone. */
ngx_int_t ngx_http_toolgate_writer_flush(ngx_http_toolgate_writer_t *w);

/* Whether more should wait until the client has read. */
static inline ngx_uint_t
ngx_http_toolgate_writer_full(ngx_http_toolgate_writer_t *w)
{
    return w->queued + w->unsent > NGX_HTTP_TOOLGATE_HIGH_WATER;
}

#endif /* NGX_HTTP_TOOLGATE_WRITER_H */
