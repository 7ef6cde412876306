/*
 * Test only: takes a streamed answer as an order says, and sends a body from a chain.
 */

#include "ngx_outbound_probe_stream.h"


static ngx_int_t ngx_outbound_probe_stream_chain(ngx_pool_t *pool, json_t *texts,
    ngx_toolgate_client_request_t *request);
static void ngx_outbound_probe_stream_head(void *data,
    ngx_toolgate_client_head_t *head);
static ngx_int_t ngx_outbound_probe_stream_take(void *data, u_char *bytes,
    size_t len);
static void ngx_outbound_probe_stream_go_on(ngx_event_t *ev);


static const ngx_toolgate_client_stream_t  ngx_outbound_probe_taker = {
    ngx_outbound_probe_stream_head,
    ngx_outbound_probe_stream_take
};

/* events need a connection for their log lines */
static ngx_connection_t  ngx_outbound_probe_nobody = { .fd = (ngx_socket_t) -1 };


ngx_int_t
ngx_outbound_probe_stream_init(ngx_outbound_probe_stream_t *stream,
    ngx_pool_t *pool, ngx_log_t *log, json_t *order,
    ngx_toolgate_client_request_t *request, ngx_toolgate_call_t **call)
{
    json_int_t   every = 0, ms = 0, refuse = 0;
    json_t      *options;

    ngx_md5_init(&stream->md5);

    if (json_object_get(order, "chain")
        && ngx_outbound_probe_stream_chain(pool, json_object_get(order, "chain"),
                                           request) != NGX_OK)
    {
        return NGX_ERROR;
    }

    options = json_object_get(order, "stream");

    if (options == NULL) {
        return NGX_OK;
    }

    if (json_unpack(options, "{s?I, s?I, s?I}", "hold_every", &every,
                    "hold_ms", &ms, "refuse_after", &refuse) != 0)
    {
        return NGX_ERROR;
    }

    stream->call = call;
    stream->hold_every = (size_t) every;
    stream->hold_next = (size_t) every;
    stream->hold_ms = (ngx_msec_t) ms;
    stream->refuse_after = (size_t) refuse;
    stream->hold.handler = ngx_outbound_probe_stream_go_on;
    stream->hold.data = &ngx_outbound_probe_nobody;
    stream->hold.log = log;

    request->stream = &ngx_outbound_probe_taker;
    request->stream_data = stream;

    return NGX_OK;
}


static ngx_int_t
ngx_outbound_probe_stream_chain(ngx_pool_t *pool, json_t *texts,
    ngx_toolgate_client_request_t *request)
{
    size_t         i;
    json_t        *text;
    ngx_buf_t     *b;
    ngx_chain_t  **ll;

    ll = &request->chain;

    json_array_foreach(texts, i, text) {
        b = ngx_calloc_buf(pool);
        *ll = ngx_alloc_chain_link(pool);

        if (b == NULL || *ll == NULL) {
            return NGX_ERROR;
        }

        b->pos = (u_char *) json_string_value(text);
        b->last = b->pos + json_string_length(text);
        b->memory = 1;

        (*ll)->buf = b;
        (*ll)->next = NULL;
        ll = &(*ll)->next;

        request->chain_len += b->last - b->pos;
    }

    return NGX_OK;
}


static void
ngx_outbound_probe_stream_head(void *data, ngx_toolgate_client_head_t *head)
{
    ngx_outbound_probe_stream_t  *stream = data;

    stream->heads++;
    stream->head = *head;
}


static ngx_int_t
ngx_outbound_probe_stream_take(void *data, u_char *bytes, size_t len)
{
    ngx_outbound_probe_stream_t  *stream = data;

    if (stream->hold_every && stream->taken >= stream->hold_next) {

        if (!stream->holding) {
            stream->holding = 1;
            stream->holds++;
            ngx_add_timer(&stream->hold, stream->hold_ms);
        }

        return NGX_AGAIN;
    }

    if (stream->refuse_after && stream->taken >= stream->refuse_after) {
        return NGX_ERROR;
    }

    stream->taken += len;
    ngx_md5_update(&stream->md5, bytes, len);

    return NGX_OK;
}


static void
ngx_outbound_probe_stream_go_on(ngx_event_t *ev)
{
    ngx_outbound_probe_stream_t  *stream;

    stream = ngx_queue_data(ev, ngx_outbound_probe_stream_t, hold);

    stream->holding = 0;
    stream->hold_next = stream->taken + stream->hold_every;

    ngx_toolgate_client_resume(*stream->call);
}


json_t *
ngx_outbound_probe_stream_json(ngx_outbound_probe_stream_t *stream)
{
    u_char  digest[16], hex[32];

    ngx_md5_final(digest, &stream->md5);
    ngx_hex_dump(hex, digest, sizeof(digest));

    return json_pack("{s:i, s:i, s:s%, s:s%, s:I, s:i, s:I, s:s%}",
                     "heads", (int) stream->heads,
                     "status", (int) stream->head.status,
                     "content_type",
                     stream->head.content_type.data
                     ? (char *) stream->head.content_type.data : "",
                     stream->head.content_type.len,
                     "retry_after",
                     stream->head.retry_after.data
                     ? (char *) stream->head.retry_after.data : "",
                     stream->head.retry_after.len,
                     "content_length", (json_int_t) stream->head.content_length,
                     "holds", (int) stream->holds,
                     "taken", (json_int_t) stream->taken,
                     "md5", (char *) hex, sizeof(hex));
}


void
ngx_outbound_probe_stream_stop(ngx_outbound_probe_stream_t *stream)
{
    if (stream->hold.timer_set) {
        ngx_del_timer(&stream->hold);
    }
}
