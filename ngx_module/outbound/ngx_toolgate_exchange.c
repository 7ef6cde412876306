/*
 * One attempt on curl. Everything that curl would decide by itself is switched off
 * here: names, proxies, redirects, protocols, encodings, cookies, stored
 * passwords. The path and query go out as they were checked, byte by byte: curl
 * parses only scheme, host and port. ngx_toolgate_answer.c has the other direction.
 */

#include "ngx_toolgate_exchange.h"


#define NGX_TOOLGATE_EXCHANGE_ORIGIN_MAX  (TG_URL_HOST_MAX + sizeof("https://[]:65535/"))


static ngx_int_t ngx_toolgate_exchange_cstr(ngx_pool_t *pool, ngx_str_t *text,
    char **copy);
static const char *ngx_toolgate_exchange_target(
    ngx_toolgate_exchange_t *exchange);
static const char *ngx_toolgate_exchange_headers(
    ngx_toolgate_exchange_t *exchange);
static const char *ngx_toolgate_exchange_header_check(ngx_keyval_t *header);
static ngx_int_t ngx_toolgate_exchange_header_push(
    ngx_toolgate_exchange_t *exchange, struct curl_slist ***last, ngx_str_t *name,
    ngx_str_t *value);
static CURLcode ngx_toolgate_exchange_limits(ngx_toolgate_exchange_t *exchange,
    CURL *easy, ngx_msec_t left, ngx_uint_t fresh);
static CURLcode ngx_toolgate_exchange_peer(ngx_toolgate_exchange_t *exchange,
    CURL *easy, const tg_addr_t *addr);
static CURLcode ngx_toolgate_exchange_tls(ngx_toolgate_exchange_t *exchange,
    CURL *easy);
static CURLcode ngx_toolgate_exchange_request(ngx_toolgate_exchange_t *exchange,
    CURL *easy);


/* the framing and routing of a message are the client's own */
static const ngx_str_t  ngx_toolgate_exchange_own_headers[] = {
    ngx_string("host"),
    ngx_string("connection"),
    ngx_string("content-length"),
    ngx_string("transfer-encoding"),
    ngx_string("te"),
    ngx_string("trailer"),
    ngx_string("upgrade"),
    ngx_string("expect"),
    ngx_string("keep-alive"),
    ngx_null_string
};


const char *
ngx_toolgate_exchange_prepare(ngx_toolgate_exchange_t *exchange, ngx_pool_t *pool,
    ngx_log_t *log, ngx_toolgate_client_conf_t *conf,
    ngx_toolgate_client_request_t *request)
{
    const char  *error;

    exchange->pool = pool;
    exchange->log = log;
    exchange->conf = conf;
    exchange->request = request;
    exchange->gzip = conf->accept_gzip && request->stream == NULL;

    error = ngx_toolgate_exchange_target(exchange);

    if (error == NULL) {
        error = ngx_toolgate_exchange_headers(exchange);
    }

    if (error == NULL
        && (ngx_toolgate_exchange_cstr(pool, &conf->ca_file, &exchange->ca_file)
            != NGX_OK
            || ngx_toolgate_exchange_cstr(pool, &conf->user_agent,
                                          &exchange->user_agent)
               != NGX_OK))
    {
        return "out of memory";
    }

    return error;
}


/* NULL for an empty string */
static ngx_int_t
ngx_toolgate_exchange_cstr(ngx_pool_t *pool, ngx_str_t *text, char **copy)
{
    *copy = NULL;

    if (text->len) {
        *copy = ngx_pnalloc(pool, text->len + 1);

        if (*copy == NULL) {
            return NGX_ERROR;
        }

        (void) ngx_cpystrn((u_char *) *copy, text->data, text->len + 1);
    }

    return NGX_OK;
}


/* path and query for the request line, with nothing in it that would end one */
static const char *
ngx_toolgate_exchange_target(ngx_toolgate_exchange_t *exchange)
{
    char      *p;
    size_t     i;
    tg_str_t   target = exchange->request->parts->target;

    p = ngx_pnalloc(exchange->pool, target.len + 2);
    if (p == NULL) {
        return "out of memory";
    }

    exchange->target = p;

    if (target.len == 0 || target.data[0] != '/') {
        *p++ = '/';
    }

    for (i = 0; i < target.len; i++) {

        if ((u_char) target.data[i] <= ' ' || (u_char) target.data[i] >= 0x7f
            || target.data[i] == '#')
        {
            return "the URL holds a byte that may not be sent";
        }

        *p++ = target.data[i];
    }

    *p = '\0';

    return NULL;
}


static const char *
ngx_toolgate_exchange_headers(ngx_toolgate_exchange_t *exchange)
{
    ngx_uint_t           i, n, typed;
    const char          *error;
    ngx_keyval_t        *header;
    struct curl_slist  **last;
    static ngx_str_t     expect = ngx_string("Expect");
    static ngx_str_t     type = ngx_string("Content-Type");

    last = &exchange->headers;
    typed = 0;

    header = exchange->request->headers ? exchange->request->headers->elts : NULL;
    n = header ? exchange->request->headers->nelts : 0;

    for (i = 0; i < n; i++) {
        error = ngx_toolgate_exchange_header_check(&header[i]);
        if (error) {
            return error;
        }

        if (header[i].key.len == type.len
            && ngx_strncasecmp(header[i].key.data, type.data, type.len) == 0)
        {
            typed = 1;
        }

        if (ngx_toolgate_exchange_header_push(exchange, &last, &header[i].key,
                                              &header[i].value)
            != NGX_OK)
        {
            return "out of memory";
        }
    }

    /* "name:" takes a header away that curl would add */

    if (ngx_toolgate_exchange_header_push(exchange, &last, &expect, NULL) != NGX_OK
        || (!typed
            && ngx_toolgate_exchange_header_push(exchange, &last, &type, NULL)
               != NGX_OK))
    {
        return "out of memory";
    }

    return NULL;
}


static const char *
ngx_toolgate_exchange_header_check(ngx_keyval_t *header)
{
    u_char            c;
    size_t            i;
    const ngx_str_t  *own;

    if (header->key.len == 0) {
        return "a header without a name";
    }

    for (i = 0; i < header->key.len; i++) {
        c = header->key.data[i];

        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z')
            && !(c >= '0' && c <= '9')
            && (c == '\0' || strchr("!#$%&'*+-.^_`|~", c) == NULL))
        {
            return "a header with an invalid name";
        }
    }

    for (i = 0; i < header->value.len; i++) {
        c = header->value.data[i];

        if ((c < ' ' && c != '\t') || c == 0x7f) {
            return "a header with an invalid value";
        }
    }

    for (own = ngx_toolgate_exchange_own_headers; own->len; own++) {

        if (header->key.len == own->len
            && ngx_strncasecmp(header->key.data, own->data, own->len) == 0)
        {
            return "a header that is not the caller's to set";
        }
    }

    return NULL;
}


/* "name: value"; "name;" is curl's word for an empty value, "name:" for none */
static ngx_int_t
ngx_toolgate_exchange_header_push(ngx_toolgate_exchange_t *exchange,
    struct curl_slist ***last, ngx_str_t *name, ngx_str_t *value)
{
    size_t              i, len;
    u_char             *p;
    struct curl_slist  *node;

    len = name->len + sizeof(": ") + (value ? value->len : 0);

    node = ngx_palloc(exchange->pool, sizeof(struct curl_slist));
    p = ngx_pnalloc(exchange->pool, len);

    if (node == NULL || p == NULL) {
        return NGX_ERROR;
    }

    node->data = (char *) p;
    node->next = NULL;

    p = ngx_cpymem(p, name->data, name->len);

    if (value == NULL) {
        *p++ = ':';

    } else {

        /* a value of blanks alone is empty to curl as well */
        for (i = 0; i < value->len; i++) {
            if (value->data[i] != ' ' && value->data[i] != '\t') {
                break;
            }
        }

        if (i == value->len) {
            *p++ = ';';

        } else {
            *p++ = ':';
            *p++ = ' ';
            p = ngx_cpymem(p, value->data, value->len);
        }
    }

    *p = '\0';

    **last = node;
    *last = &node->next;

    return NGX_OK;
}


const char *
ngx_toolgate_exchange_start(ngx_toolgate_exchange_t *exchange,
    const tg_addr_t *addr, ngx_msec_t left, ngx_uint_t fresh,
    ngx_toolgate_transfer_done_pt done, void *data)
{
    CURL                *easy;
    CURLcode             rc;
    ngx_int_t            opened;
    const tg_url_t      *url = exchange->request->parts;

    opened = ngx_toolgate_curl_open(&exchange->transfer,
                                    exchange->request->stream ? 1 : 0, done, data);

    if (opened != NGX_OK) {
        return opened == NGX_BUSY ? "too many calls at one time" : "out of memory";
    }

    easy = exchange->transfer.easy;

    exchange->started = ngx_current_msec;
    exchange->body_len = 0;
    exchange->head_len = 0;
    exchange->unreadable = NULL;
    exchange->no_memory = 0;
    exchange->chunked = 0;
    exchange->farewell = 0;
    exchange->headed = 0;
    exchange->paused = 0;
    exchange->error[0] = '\0';

    rc = ngx_toolgate_guard_attach(&exchange->guard, easy, &exchange->conf->guard,
                                   addr, url->port, url->https);

    if (rc == CURLE_OK) {
        rc = ngx_toolgate_exchange_limits(exchange, easy, left, fresh);
    }

    if (rc == CURLE_OK) {
        rc = ngx_toolgate_exchange_peer(exchange, easy, addr);
    }

    if (rc == CURLE_OK && url->https) {
        rc = ngx_toolgate_exchange_tls(exchange, easy);
    }

    if (rc == CURLE_OK) {
        rc = ngx_toolgate_exchange_request(exchange, easy);
    }

    if (rc != CURLE_OK || ngx_toolgate_curl_start(&exchange->transfer) != NGX_OK) {
        ngx_toolgate_exchange_stop(exchange, 0);
        ngx_log_error(NGX_LOG_ERR, exchange->log, 0,
                      "toolgate: outbound call not begun: %s",
                      curl_easy_strerror(rc));
        return "the request could not be set up";
    }

    return NULL;
}


/* sets one option unless an earlier one failed */
#define ngx_toolgate_exchange_set(option, value)                                 \
    if (rc == CURLE_OK) {                                                        \
        rc = curl_easy_setopt(easy, option, value);                              \
    }


static CURLcode
ngx_toolgate_exchange_limits(ngx_toolgate_exchange_t *exchange, CURL *easy,
    ngx_msec_t left, ngx_uint_t fresh)
{
    CURLcode  rc = CURLE_OK;

    ngx_toolgate_exchange_set(CURLOPT_NOSIGNAL, 1L)
    ngx_toolgate_exchange_set(CURLOPT_TIMEOUT_MS, (long) left)

    /* curl would count the TLS handshake in: the caller has a timer of its own */
    ngx_toolgate_exchange_set(CURLOPT_CONNECTTIMEOUT_MS, (long) left)

    ngx_toolgate_exchange_set(CURLOPT_MAXFILESIZE_LARGE,
                              (curl_off_t) NGX_TOOLGATE_CLIENT_RESPONSE_MAX)
    ngx_toolgate_exchange_set(CURLOPT_FRESH_CONNECT, fresh ? 1L : 0L)
    ngx_toolgate_exchange_set(CURLOPT_ERRORBUFFER, exchange->error)
    ngx_toolgate_exchange_set(CURLOPT_HEADERFUNCTION,
                              ngx_toolgate_exchange_on_head)
    ngx_toolgate_exchange_set(CURLOPT_HEADERDATA, exchange)
    ngx_toolgate_exchange_set(CURLOPT_WRITEFUNCTION,
                              ngx_toolgate_exchange_on_body)
    ngx_toolgate_exchange_set(CURLOPT_WRITEDATA, exchange)

    if (rc == CURLE_OK && exchange->request->stream) {
        rc = ngx_toolgate_stream_answer(exchange, easy);
    }

    return rc;
}


/*
 * Whatever the URL says, the connection goes to the judged address; name for SNI,
 * certificate and Host stay those of the URL. An address needs no look-up, so
 * curl's own resolver never runs.
 */
static CURLcode
ngx_toolgate_exchange_peer(ngx_toolgate_exchange_t *exchange, CURL *easy,
    const tg_addr_t *addr)
{
    char                text[NGX_INET6_ADDRSTRLEN + 1];
    u_char             *pin, *p;
    u_char              origin[NGX_TOOLGATE_EXCHANGE_ORIGIN_MAX];
    CURLcode            rc = CURLE_OK;
    ngx_uint_t          v6;
    const tg_url_t     *url = exchange->request->parts;
    struct curl_slist  *node;

    tg_addr_format(addr, text, sizeof(text));

    node = ngx_palloc(exchange->pool, sizeof(struct curl_slist));
    pin = ngx_pnalloc(exchange->pool, sizeof("::[]:65535") + sizeof(text));

    if (node == NULL || pin == NULL) {
        return CURLE_OUT_OF_MEMORY;
    }

    p = ngx_sprintf(pin, addr->v6 ? "::[%s]:%d" : "::%s:%d", text,
                    (int) url->port);
    *p = '\0';

    node->data = (char *) pin;
    node->next = NULL;

    v6 = url->is_literal && url->literal.v6;

    p = ngx_snprintf(origin, sizeof(origin) - 1, "%s://%s%s%s:%d/",
                     url->https ? "https" : "http", v6 ? "[" : "", url->host,
                     v6 ? "]" : "", (int) url->port);
    *p = '\0';

    ngx_toolgate_exchange_set(CURLOPT_URL, (char *) origin)
    ngx_toolgate_exchange_set(CURLOPT_REQUEST_TARGET, exchange->target)
    ngx_toolgate_exchange_set(CURLOPT_CONNECT_TO, node)
    ngx_toolgate_exchange_set(CURLOPT_PROTOCOLS_STR, url->https ? "https" : "http")
    ngx_toolgate_exchange_set(CURLOPT_PROXY, "")
    ngx_toolgate_exchange_set(CURLOPT_NETRC, (long) CURL_NETRC_IGNORED)
    ngx_toolgate_exchange_set(CURLOPT_FOLLOWLOCATION, 0L)
    ngx_toolgate_exchange_set(CURLOPT_HTTP_VERSION, (long) CURL_HTTP_VERSION_1_1)
    ngx_toolgate_exchange_set(CURLOPT_HTTP09_ALLOWED, 0L)

    return rc;
}


static CURLcode
ngx_toolgate_exchange_tls(ngx_toolgate_exchange_t *exchange, CURL *easy)
{
    CURLcode  rc = CURLE_OK;

    ngx_toolgate_exchange_set(CURLOPT_SSL_VERIFYPEER, 1L)
    ngx_toolgate_exchange_set(CURLOPT_SSL_VERIFYHOST, 2L)
    ngx_toolgate_exchange_set(CURLOPT_SSLVERSION, (long) CURL_SSLVERSION_TLSv1_2)

    if (exchange->ca_file) {
        ngx_toolgate_exchange_set(CURLOPT_CAINFO, exchange->ca_file)
    }

    ngx_toolgate_exchange_set(CURLOPT_NOPROGRESS, 0L)
    ngx_toolgate_exchange_set(CURLOPT_XFERINFOFUNCTION,
                              ngx_toolgate_exchange_on_progress)
    ngx_toolgate_exchange_set(CURLOPT_XFERINFODATA, exchange)

    /* with a folder of certificates curl does not keep the loaded store, and each
     * new connection would stop the worker for as long as loading takes */
    ngx_toolgate_exchange_set(CURLOPT_CAPATH, NULL)

    return rc;
}


static CURLcode
ngx_toolgate_exchange_request(ngx_toolgate_exchange_t *exchange, CURL *easy)
{
    CURLcode                        rc = CURLE_OK;
    ngx_uint_t                      body;
    ngx_toolgate_client_request_t  *request = exchange->request;

    /* methods that mean to send something say so even when it is nothing */
    body = request->has_body || request->chain
           || (ngx_strcmp(request->method, "GET") != 0
               && ngx_strcmp(request->method, "DELETE") != 0);

    if (request->chain) {
        rc = ngx_toolgate_stream_body(exchange, easy);

    } else if (body) {
        ngx_toolgate_exchange_set(CURLOPT_POST, 1L)
        ngx_toolgate_exchange_set(CURLOPT_POSTFIELDSIZE_LARGE,
                                  (curl_off_t) request->body.len)
        ngx_toolgate_exchange_set(CURLOPT_POSTFIELDS,
                                  request->body.len ? (char *) request->body.data
                                                    : "")

    } else {
        ngx_toolgate_exchange_set(CURLOPT_HTTPGET, 1L)
    }

    ngx_toolgate_exchange_set(CURLOPT_CUSTOMREQUEST, request->method)
    ngx_toolgate_exchange_set(CURLOPT_HTTPHEADER, exchange->headers)

    if (exchange->user_agent) {
        ngx_toolgate_exchange_set(CURLOPT_USERAGENT, exchange->user_agent)
    }

    if (exchange->gzip) {
        ngx_toolgate_exchange_set(CURLOPT_ACCEPT_ENCODING, "gzip")
    }

    return rc;
}


void
ngx_toolgate_exchange_stop(ngx_toolgate_exchange_t *exchange, ngx_uint_t keep)
{
    ngx_toolgate_curl_close(&exchange->transfer, keep);
}
