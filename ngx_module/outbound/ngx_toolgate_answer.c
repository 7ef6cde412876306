/*
 * The answer of one attempt: gathered by curl's callbacks within its bounds, then
 * read as an outcome. The callbacks append and count; they end nothing but their
 * own transfer.
 */

#include <openssl/ssl.h>

#include "ngx_toolgate_exchange.h"


#define NGX_TOOLGATE_EXCHANGE_BODY_FIRST  8192      /* bytes of the first buffer */


static ngx_uint_t ngx_toolgate_exchange_encoded(
    ngx_toolgate_exchange_t *exchange, ngx_str_t *line);
static ngx_uint_t ngx_toolgate_exchange_cut(ngx_toolgate_exchange_t *exchange,
    long status);
static const char *ngx_toolgate_exchange_reason(CURLcode rc,
    ngx_uint_t connected);


/* one line of a head or of trailers, with its line end */
size_t
ngx_toolgate_exchange_on_head(char *line, size_t size, size_t count, void *data)
{
    size_t                    len = size * count;
    ngx_str_t                 text;
    ngx_toolgate_exchange_t  *exchange = data;

    exchange->head_len += len;
    ngx_toolgate_stream_moved(exchange);

    if (exchange->head_len > NGX_TOOLGATE_EXCHANGE_HEADERS_MAX) {
        exchange->unreadable = "the head of the answer is too large";
        return 0;
    }

    text.data = (u_char *) line;
    text.len = len;

    if (ngx_toolgate_exchange_encoded(exchange, &text)) {
        exchange->unreadable = "the answer is encoded";
        return 0;
    }

    if (line[0] == CR || line[0] == LF) {
        return ngx_toolgate_stream_head(exchange) == NGX_OK ? len : 0;
    }

    return len;
}


/* true when this line names a coding that is not undone here */
static ngx_uint_t
ngx_toolgate_exchange_encoded(ngx_toolgate_exchange_t *exchange, ngx_str_t *line)
{
    size_t            len;
    u_char           *p, *last;
    ngx_uint_t        content;
    static ngx_str_t  content_name = ngx_string("content-encoding:");
    static ngx_str_t  transfer_name = ngx_string("transfer-encoding:");

    if (line->len > content_name.len
        && ngx_strncasecmp(line->data, content_name.data, content_name.len) == 0)
    {
        content = 1;
        p = line->data + content_name.len;

    } else if (line->len > transfer_name.len
               && ngx_strncasecmp(line->data, transfer_name.data,
                                  transfer_name.len)
                  == 0)
    {
        content = 0;
        p = line->data + transfer_name.len;

    } else {
        return 0;
    }

    last = line->data + line->len;

    while (p < last && *p <= ' ') {
        p++;
    }

    while (p < last && *(last - 1) <= ' ') {
        last--;
    }

    len = (size_t) (last - p);

    if (len == 0
        || (len == sizeof("identity") - 1
            && ngx_strncasecmp(p, (u_char *) "identity", len) == 0))
    {
        return 0;
    }

    if (!content) {
        exchange->chunked = len == sizeof("chunked") - 1
                            && ngx_strncasecmp(p, (u_char *) "chunked", len) == 0;

        return !exchange->chunked;
    }

    return !exchange->gzip || len != sizeof("gzip") - 1
           || ngx_strncasecmp(p, (u_char *) "gzip", len) != 0;
}


/* after transfer and content coding; the bound counts what comes out */
size_t
ngx_toolgate_exchange_on_body(char *bytes, size_t size, size_t count, void *data)
{
    size_t                    len = size * count, cap;
    u_char                   *body;
    ngx_toolgate_exchange_t  *exchange = data;

    if (len == 0) {
        return 0;
    }

    if (len > NGX_TOOLGATE_CLIENT_RESPONSE_MAX - exchange->body_len) {
        exchange->unreadable = "the answer is over the size bound";
        return 0;
    }

    if (len > exchange->body_cap - exchange->body_len) {
        cap = ngx_max(exchange->body_cap, NGX_TOOLGATE_EXCHANGE_BODY_FIRST);

        while (cap < exchange->body_len + len) {
            cap *= 2;
        }

        cap = ngx_min(cap, NGX_TOOLGATE_CLIENT_RESPONSE_MAX);

        body = ngx_palloc(exchange->pool, cap);
        if (body == NULL) {
            exchange->no_memory = 1;
            return 0;
        }

        if (exchange->body) {
            ngx_memcpy(body, exchange->body, exchange->body_len);
            (void) ngx_pfree(exchange->pool, exchange->body);
        }

        exchange->body = body;
        exchange->body_cap = cap;
    }

    ngx_memcpy(exchange->body + exchange->body_len, bytes, len);
    exchange->body_len += len;

    return len;
}


/*
 * Called often, and for the last time when the answer has ended and its connection
 * is still there. This libcurl takes a bare end of TCP for the end of TLS.
 */
int
ngx_toolgate_exchange_on_progress(void *data, curl_off_t down_total,
    curl_off_t down, curl_off_t up_total, curl_off_t up)
{
    struct curl_tlssessioninfo  *tls = NULL;
    ngx_toolgate_exchange_t     *exchange = data;

    if (curl_easy_getinfo(exchange->transfer.easy, CURLINFO_TLS_SSL_PTR, &tls)
        == CURLE_OK
        && tls && tls->backend == CURLSSLBACKEND_OPENSSL && tls->internals)
    {
        exchange->farewell = SSL_get_shutdown(tls->internals)
                             & SSL_RECEIVED_SHUTDOWN ? 1 : 0;
    }

    return 0;
}


/* an answer that ends with the connection has an end over TLS only if that said so */
static ngx_uint_t
ngx_toolgate_exchange_cut(ngx_toolgate_exchange_t *exchange, long status)
{
    curl_off_t  length = -1;

    if (!exchange->guard.https || exchange->farewell || exchange->chunked
        || status == 204 || status == 304)
    {
        return 0;
    }

    (void) curl_easy_getinfo(exchange->transfer.easy,
                             CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);

    return length < 0;
}


ngx_toolgate_exchange_outcome_e
ngx_toolgate_exchange_outcome(ngx_toolgate_exchange_t *exchange, CURLcode rc,
    const char **detail)
{
    long                   status = 0;
    ngx_toolgate_guard_t  *guard = &exchange->guard;

    ngx_log_debug3(NGX_LOG_DEBUG_CORE, exchange->log, 0,
                   "toolgate: attempt ended: %d, passed:%d: %s", (int) rc,
                   (int) guard->passed, exchange->error);

    if (guard->refused) {
        *detail = guard->refused;
        return NGX_TOOLGATE_EXCHANGE_REFUSED;
    }

    if (guard->stale) {
        *detail = "the kept connection was closed";
        return NGX_TOOLGATE_EXCHANGE_STALE;
    }

    if (exchange->no_memory) {
        *detail = "out of memory";
        return NGX_TOOLGATE_EXCHANGE_LOST;
    }

    if (exchange->unreadable) {
        *detail = exchange->unreadable;
        return NGX_TOOLGATE_EXCHANGE_UNREADABLE;
    }

    if (rc == CURLE_FILESIZE_EXCEEDED) {
        *detail = "the answer is over the size bound";
        return NGX_TOOLGATE_EXCHANGE_UNREADABLE;
    }

    if (rc == CURLE_BAD_CONTENT_ENCODING) {
        *detail = "the answer could not be decoded";
        return NGX_TOOLGATE_EXCHANGE_UNREADABLE;
    }

    *detail = ngx_toolgate_exchange_reason(rc, guard->passed);

    if (guard->passed) {
        (void) curl_easy_getinfo(exchange->transfer.easy, CURLINFO_RESPONSE_CODE,
                                 &status);

        if (guard->repeated) {
            *detail = "the connection was closed without an answer";

        } else if (rc == CURLE_OK && status >= 200
                   && ngx_toolgate_exchange_cut(exchange, status))
        {
            *detail = "the answer was cut short";

        } else if (rc == CURLE_OK && status >= 200) {
            *detail = NULL;
            return NGX_TOOLGATE_EXCHANGE_WHOLE;
        }

        return NGX_TOOLGATE_EXCHANGE_LOST;
    }

    switch (rc) {

    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_OPERATION_TIMEDOUT:
        return NGX_TOOLGATE_EXCHANGE_FAILED;

    default:
        return NGX_TOOLGATE_EXCHANGE_HOPELESS;
    }
}


static const char *
ngx_toolgate_exchange_reason(CURLcode rc, ngx_uint_t connected)
{
    switch (rc) {

    case CURLE_COULDNT_CONNECT:
        return "connection refused or unreachable";

    case CURLE_OPERATION_TIMEDOUT:
        return connected ? "timed out" : "connect timed out";

    case CURLE_PEER_FAILED_VERIFICATION:
        return "the certificate was not accepted";

    case CURLE_SSL_CONNECT_ERROR:
        return "the TLS handshake failed";

    case CURLE_SSL_CACERT_BADFILE:
        return "the CA file could not be read";

    case CURLE_PARTIAL_FILE:
        return "the answer was cut short";

    case CURLE_GOT_NOTHING:
        return "the connection was closed without an answer";

    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
        return "the connection broke";

    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
        return "the answer is not HTTP/1.x";

    case CURLE_OUT_OF_MEMORY:
        return "out of memory or connections";

    case CURLE_OK:
        return "no final answer came";

    default:
        return "the exchange failed";
    }
}


ngx_int_t
ngx_toolgate_exchange_facts(ngx_toolgate_exchange_t *exchange, ngx_uint_t whole,
    ngx_msec_t call_started, ngx_toolgate_client_result_t *result)
{
    char        *type = NULL;
    long         status = 0;
    CURL        *easy = exchange->transfer.easy;
    curl_off_t   connect_us = 0, tls_us = 0, first_us = 0;

    (void) curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    (void) curl_easy_getinfo(easy, CURLINFO_CONNECT_TIME_T, &connect_us);
    (void) curl_easy_getinfo(easy, CURLINFO_APPCONNECT_TIME_T, &tls_us);
    (void) curl_easy_getinfo(easy, CURLINFO_STARTTRANSFER_TIME_T, &first_us);
    (void) curl_easy_getinfo(easy, CURLINFO_CONTENT_TYPE, &type);

    result->status = (ngx_uint_t) status;
    result->connect_ms = 0;
    result->tls_ms = 0;
    result->first_byte_ms = 0;

    if (exchange->guard.opened) {
        result->connect_ms = (ngx_msec_t) (connect_us / 1000);

        if (tls_us > connect_us) {
            result->tls_ms = (ngx_msec_t) ((tls_us - connect_us) / 1000);
        }
    }

    if (first_us > 0) {
        result->first_byte_ms = exchange->started - call_started
                                + (ngx_msec_t) (first_us / 1000);
    }

    if ((exchange->guard.opened || exchange->guard.passed
         || exchange->guard.refused)
        && ngx_toolgate_exchange_address(exchange->pool, &exchange->guard.pin,
                                         &result->address)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (type
        && ngx_toolgate_exchange_copy(exchange->pool, type, &result->content_type)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (whole && exchange->request->stream == NULL) {
        result->body.data = exchange->body;
        result->body.len = exchange->body_len;
    }

    return NGX_OK;
}


ngx_int_t
ngx_toolgate_exchange_copy(ngx_pool_t *pool, const char *text, ngx_str_t *copy)
{
    copy->len = ngx_strlen(text);
    copy->data = ngx_pnalloc(pool, copy->len + 1);

    if (copy->data == NULL) {
        return NGX_ERROR;
    }

    (void) ngx_cpystrn(copy->data, (u_char *) text, copy->len + 1);

    return NGX_OK;
}


ngx_int_t
ngx_toolgate_exchange_address(ngx_pool_t *pool, const tg_addr_t *addr,
    ngx_str_t *text)
{
    char  buf[NGX_INET6_ADDRSTRLEN + 1];

    tg_addr_format(addr, buf, sizeof(buf));

    return ngx_toolgate_exchange_copy(pool, buf, text);
}
