/*
 * The streaming side of an attempt: a request body sent from the caller's own
 * buffers, and an answer handed over as it comes instead of being collected. The
 * callbacks run inside curl. Whoever takes the answer can make it wait; then curl
 * stops reading, and so the peer stops sending.
 */

#include "ngx_toolgate_exchange.h"


static size_t ngx_toolgate_stream_on_read(char *to, size_t size, size_t count,
    void *data);
static int ngx_toolgate_stream_on_seek(void *data, curl_off_t offset, int origin);
static size_t ngx_toolgate_stream_on_body(char *bytes, size_t size, size_t count,
    void *data);


CURLcode
ngx_toolgate_stream_body(ngx_toolgate_exchange_t *exchange, CURL *easy)
{
    CURLcode  rc;

    exchange->chain = exchange->request->chain;
    exchange->chain_used = 0;

    rc = curl_easy_setopt(easy, CURLOPT_POST, 1L);

    if (rc == CURLE_OK) {
        rc = curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                              (curl_off_t) exchange->request->chain_len);
    }

    if (rc == CURLE_OK) {
        rc = curl_easy_setopt(easy, CURLOPT_READFUNCTION,
                              ngx_toolgate_stream_on_read);
    }

    if (rc == CURLE_OK) {
        rc = curl_easy_setopt(easy, CURLOPT_READDATA, exchange);
    }

    if (rc == CURLE_OK) {
        rc = curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION,
                              ngx_toolgate_stream_on_seek);
    }

    if (rc == CURLE_OK) {
        rc = curl_easy_setopt(easy, CURLOPT_SEEKDATA, exchange);
    }

    return rc;
}


/* the buffers stay as they are: another attempt may need them */
static size_t
ngx_toolgate_stream_on_read(char *to, size_t size, size_t count, void *data)
{
    size_t                    n, len, room = size * count;
    ngx_buf_t                *b;
    ngx_toolgate_exchange_t  *exchange = data;

    for (len = 0; exchange->chain && len < room; len += n) {
        b = exchange->chain->buf;
        n = ngx_min((size_t) (b->last - b->pos) - exchange->chain_used, room - len);

        ngx_memcpy(to + len, b->pos + exchange->chain_used, n);
        exchange->chain_used += n;

        if (exchange->chain_used == (size_t) (b->last - b->pos)) {
            exchange->chain = exchange->chain->next;
            exchange->chain_used = 0;
        }
    }

    ngx_toolgate_stream_moved(exchange);

    return len;
}


/* curl asks for the beginning when a kept connection gave no answer, and is told by
 * the guard then that nothing is sent twice */
static int
ngx_toolgate_stream_on_seek(void *data, curl_off_t offset, int origin)
{
    ngx_toolgate_exchange_t  *exchange = data;

    if (offset != 0 || origin != SEEK_SET) {
        return CURL_SEEKFUNC_FAIL;
    }

    exchange->chain = exchange->request->chain;
    exchange->chain_used = 0;

    return CURL_SEEKFUNC_OK;
}


CURLcode
ngx_toolgate_stream_answer(ngx_toolgate_exchange_t *exchange, CURL *easy)
{
    CURLcode  rc;

    rc = curl_easy_setopt(easy, CURLOPT_MAXFILESIZE_LARGE,
                          (curl_off_t) NGX_TOOLGATE_CLIENT_STREAM_MAX);

    if (rc == CURLE_OK) {
        rc = curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION,
                              ngx_toolgate_stream_on_body);
    }

    return rc;
}


/* the empty line behind a head, or behind trailers; a call without a stream has no
 * use for it, nor has anybody for an interim head */
ngx_int_t
ngx_toolgate_stream_head(ngx_toolgate_exchange_t *exchange)
{
    char                           *type = NULL;
    long                            status = 0;
    CURL                           *easy = exchange->transfer.easy;
    curl_off_t                      length = -1;
    struct curl_header             *header;
    ngx_toolgate_client_head_t      head;
    ngx_toolgate_client_request_t  *request = exchange->request;

    if (request->stream == NULL || exchange->headed
        || curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status) != CURLE_OK
        || status < 200)
    {
        return NGX_OK;
    }

    (void) curl_easy_getinfo(easy, CURLINFO_CONTENT_TYPE, &type);
    (void) curl_easy_getinfo(easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);

    ngx_memzero(&head, sizeof(head));
    head.status = (ngx_uint_t) status;
    head.content_length = (off_t) length;

    if ((type && ngx_toolgate_exchange_copy(exchange->pool, type,
                                            &head.content_type) != NGX_OK)
        || (curl_easy_header(easy, "Retry-After", 0, CURLH_HEADER, -1, &header)
            == CURLHE_OK
            && ngx_toolgate_exchange_copy(exchange->pool, header->value,
                                          &head.retry_after) != NGX_OK))
    {
        exchange->no_memory = 1;
        return NGX_ERROR;
    }

    exchange->headed = 1;
    request->stream->head(request->stream_data, &head);

    return NGX_OK;
}


static size_t
ngx_toolgate_stream_on_body(char *bytes, size_t size, size_t count, void *data)
{
    size_t                          len = size * count;
    ngx_int_t                       rc;
    ngx_toolgate_exchange_t        *exchange = data;
    ngx_toolgate_client_request_t  *request = exchange->request;

    if (len == 0) {
        return 0;
    }

    if (len > NGX_TOOLGATE_CLIENT_STREAM_MAX - exchange->body_len) {
        exchange->unreadable = "the answer is over the size bound";
        return 0;
    }

    rc = request->stream->take(request->stream_data, (u_char *) bytes, len);

    if (rc == NGX_AGAIN) {
        exchange->paused = 1;

        /* it is not the peer who is silent now */
        if (exchange->silence->timer_set) {
            ngx_del_timer(exchange->silence);
        }

        return CURL_WRITEFUNC_PAUSE;
    }

    if (rc != NGX_OK) {
        exchange->unreadable = "the answer was not taken";
        return 0;
    }

    exchange->body_len += len;
    ngx_toolgate_stream_moved(exchange);

    return len;
}


void
ngx_toolgate_stream_moved(ngx_toolgate_exchange_t *exchange)
{
    if (exchange->silence && !exchange->paused) {
        ngx_add_timer(exchange->silence, NGX_TOOLGATE_CLIENT_SILENCE_MS);
    }
}


void
ngx_toolgate_stream_resume(ngx_toolgate_exchange_t *exchange)
{
    exchange->paused = 0;
    ngx_toolgate_stream_moved(exchange);

    ngx_toolgate_curl_resume(&exchange->transfer);
}
