/*
 * The paths below /v1/responses: finds out what is asked of which response, and asks the
 * store. Shows and deletes one, and lists what its request had as input; what is asked of
 * one that may not have ended is in _one.c.
 */

#include "ngx_http_toolgate_responses.h"


#define NGX_HTTP_TOOLGATE_RESPONSES_LIST_MAX  (64 * 1024 * 1024)

typedef enum {
    NGX_HTTP_TOOLGATE_RESPONSES_SHOW = 0,
    NGX_HTTP_TOOLGATE_RESPONSES_DELETE,
    NGX_HTTP_TOOLGATE_RESPONSES_INPUT,
    NGX_HTTP_TOOLGATE_RESPONSES_CANCEL,
    NGX_HTTP_TOOLGATE_RESPONSES_REPLAY
} ngx_http_toolgate_responses_what_e;

/* A request about one response. */
typedef struct {
    ngx_http_request_t                *request;
    ngx_http_toolgate_main_conf_t     *conf;
    ngx_http_toolgate_project_t       *project;
    ngx_http_toolgate_response_key_t   key;
    ngx_http_toolgate_responses_what_e what;
    int64_t                            sequence;    /* the last event that is known */
    ngx_uint_t                         limit;
    ngx_str_t                          after;
    unsigned                           newest:1;
} ngx_http_toolgate_responses_read_t;


static ngx_int_t ngx_http_toolgate_responses_what(ngx_http_request_t *r,
    ngx_str_t *below, ngx_http_toolgate_responses_what_e *what, ngx_int_t *rc);
static ngx_int_t ngx_http_toolgate_responses_page(
    ngx_http_toolgate_responses_read_t *read, ngx_http_toolgate_fault_t *fault);
static ngx_int_t ngx_http_toolgate_responses_stream(
    ngx_http_toolgate_responses_read_t *read,
    ngx_http_toolgate_responses_what_e *what, ngx_http_toolgate_fault_t *fault);
static ngx_int_t ngx_http_toolgate_responses_ask(
    ngx_http_toolgate_responses_read_t *read,
    ngx_http_toolgate_responses_what_e what);
static void ngx_http_toolgate_responses_shown(void *data,
    ngx_http_toolgate_response_answer_t *answer);
static void ngx_http_toolgate_responses_deleted(void *data,
    ngx_http_toolgate_response_answer_t *answer);
static void ngx_http_toolgate_responses_listed(void *data,
    ngx_http_toolgate_response_answer_t *answer);
static ngx_int_t ngx_http_toolgate_responses_list(
    ngx_http_toolgate_responses_read_t *read, tg_str_t input);
static ngx_int_t ngx_http_toolgate_responses_refused(
    ngx_http_toolgate_responses_read_t *read,
    ngx_http_toolgate_response_answer_t *answer);
static void ngx_http_toolgate_responses_read_end(
    ngx_http_toolgate_responses_read_t *read, ngx_int_t rc);


ngx_int_t
ngx_http_toolgate_responses_one(ngx_http_request_t *r, ngx_http_toolgate_key_t *key,
    ngx_str_t *rest)
{
    u_char                              *slash, *last;
    ngx_int_t                            rc;
    ngx_str_t                            below;
    ngx_http_toolgate_fault_t            fault;
    ngx_http_toolgate_responses_what_e   what;
    ngx_http_toolgate_responses_read_t  *read;

    what = NGX_HTTP_TOOLGATE_RESPONSES_SHOW;
    read = ngx_pcalloc(r->pool, sizeof(ngx_http_toolgate_responses_read_t));
    if (read == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    read->request = r;
    read->conf = ngx_http_get_module_main_conf(r, ngx_http_toolgate_module);
    read->project = key->project;
    read->key.project = key->project->name;
    read->key.response.data = rest->data + 1;

    last = rest->data + rest->len;
    slash = ngx_strlchr(rest->data + 1, last, '/');
    read->key.response.len = (slash ? slash : last) - read->key.response.data;

    below.data = slash ? slash : last;
    below.len = last - below.data;

    if (ngx_http_toolgate_responses_what(r, &below, &what, &rc) != NGX_OK) {
        return rc;
    }

    if (ngx_http_toolgate_query_account(r, key, &read->key.account, &fault) != NGX_OK
        || (what == NGX_HTTP_TOOLGATE_RESPONSES_INPUT
            && ngx_http_toolgate_responses_page(read, &fault) != NGX_OK)
        || (what == NGX_HTTP_TOOLGATE_RESPONSES_SHOW
            && ngx_http_toolgate_responses_stream(read, &what, &fault) != NGX_OK))
    {
        return ngx_http_toolgate_reply_error(r, fault.code, fault.message,
                                             fault.param);
    }

    if (!tg_id_valid("resp_", (tg_str_t) { read->key.response.len,
                                           (char *) read->key.response.data }))
    {
        return ngx_http_toolgate_reply_error(r, "not_found",
                                             NGX_HTTP_TOOLGATE_RESPONSES_UNKNOWN,
                                             NULL);
    }

    if (read->conf->redis == NULL || !ngx_toolgate_redis_up(read->conf->redis)) {
        return ngx_http_toolgate_reply_error(r, "store_unavailable", NULL, NULL);
    }

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    if (ngx_http_toolgate_responses_ask(read, what) != NGX_OK) {
        return ngx_http_toolgate_reply_error(r, "internal_error", NULL, NULL);
    }

    r->main->count++;

    return NGX_DONE;
}


/* What is asked of it. NGX_DECLINED: nothing that is there, *rc is what a content
 * handler returns. */
static ngx_int_t
ngx_http_toolgate_responses_what(ngx_http_request_t *r, ngx_str_t *below,
    ngx_http_toolgate_responses_what_e *what, ngx_int_t *rc)
{
    ngx_str_t  allow;

    static ngx_str_t  input = ngx_string("/input_items");
    static ngx_str_t  cancel = ngx_string("/cancel");

    if (below->len == 0) {
        ngx_str_set(&allow, "GET, DELETE");

        if (r->method == NGX_HTTP_GET) {
            *what = NGX_HTTP_TOOLGATE_RESPONSES_SHOW;
            return NGX_OK;
        }

        if (r->method == NGX_HTTP_DELETE) {
            *what = NGX_HTTP_TOOLGATE_RESPONSES_DELETE;
            return NGX_OK;
        }

    } else if (below->len == input.len
               && ngx_memcmp(below->data, input.data, input.len) == 0)
    {
        ngx_str_set(&allow, "GET");

        if (r->method == NGX_HTTP_GET) {
            *what = NGX_HTTP_TOOLGATE_RESPONSES_INPUT;
            return NGX_OK;
        }

    } else if (below->len == cancel.len
               && ngx_memcmp(below->data, cancel.data, cancel.len) == 0)
    {
        ngx_str_set(&allow, "POST");

        if (r->method == NGX_HTTP_POST) {
            *what = NGX_HTTP_TOOLGATE_RESPONSES_CANCEL;
            return NGX_OK;
        }

    } else {
        *rc = ngx_http_toolgate_reply_error(r, "unknown_url", NULL, NULL);
        return NGX_DECLINED;
    }

    *rc = ngx_http_toolgate_add_header(r, "Allow", &allow) == NGX_OK
          ? ngx_http_toolgate_reply_error(r, "method_not_allowed", NULL, NULL)
          : NGX_HTTP_INTERNAL_SERVER_ERROR;

    return NGX_DECLINED;
}


static ngx_int_t
ngx_http_toolgate_responses_page(ngx_http_toolgate_responses_read_t *read,
    ngx_http_toolgate_fault_t *fault)
{
    ngx_str_t  order;

    if (ngx_http_toolgate_query_limit(read->request, &read->limit, fault) != NGX_OK) {
        return NGX_DECLINED;
    }

    (void) ngx_http_toolgate_query_argument(read->request, "after", &read->after);
    (void) ngx_http_toolgate_query_argument(read->request, "order", &order);

    if (order.len == 0 || (order.len == 4 && ngx_memcmp(order.data, "desc", 4) == 0)) {
        read->newest = 1;
        return NGX_OK;
    }

    if (order.len == 3 && ngx_memcmp(order.data, "asc", 3) == 0) {
        return NGX_OK;
    }

    return ngx_http_toolgate_fault(fault, "invalid_value", "order",
                                   "\"order\" is \"asc\" or \"desc\".");
}


/* "stream" and "starting_after" of the URL. */
static ngx_int_t
ngx_http_toolgate_responses_stream(ngx_http_toolgate_responses_read_t *read,
    ngx_http_toolgate_responses_what_e *what, ngx_http_toolgate_fault_t *fault)
{
    off_t      after;
    ngx_str_t  value;

    (void) ngx_http_toolgate_query_argument(read->request, "stream", &value);

    if (value.len != 4 || ngx_memcmp(value.data, "true", 4) != 0) {
        return NGX_OK;
    }

    *what = NGX_HTTP_TOOLGATE_RESPONSES_REPLAY;
    read->sequence = -1;

    if (ngx_http_toolgate_query_argument(read->request, "starting_after", &value)
        != NGX_OK)
    {
        return NGX_OK;
    }

    after = ngx_atoof(value.data, value.len);

    if (after == NGX_ERROR) {
        return ngx_http_toolgate_fault(fault, "invalid_value", "starting_after",
                                       "\"starting_after\" is the number of an "
                                       "event.");
    }

    read->sequence = after;

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_responses_ask(ngx_http_toolgate_responses_read_t *read,
    ngx_http_toolgate_responses_what_e what)
{
    ngx_log_t   *log;
    ngx_pool_t  *pool;

    read->what = what;
    pool = read->request->pool;
    log = read->request->connection->log;

    switch (what) {

    case NGX_HTTP_TOOLGATE_RESPONSES_DELETE:
        return ngx_http_toolgate_response_delete(pool, log, read->conf->redis,
                                                 &read->key,
                                                 ngx_http_toolgate_responses_deleted,
                                                 read);

    case NGX_HTTP_TOOLGATE_RESPONSES_INPUT:
        return ngx_http_toolgate_response_input(pool, log, read->conf->redis,
                                                &read->key,
                                                ngx_http_toolgate_responses_listed,
                                                read);

    default:
        return ngx_http_toolgate_response_get(pool, log, read->conf->redis,
                                              &read->key,
                                              ngx_http_toolgate_responses_shown,
                                              read);
    }
}


/* The object is there, whatever is wanted of it. */
static void
ngx_http_toolgate_responses_shown(void *data,
    ngx_http_toolgate_response_answer_t *answer)
{
    ngx_http_toolgate_responses_read_t *read = data;

    tg_str_t           object;
    ngx_connection_t  *c;

    if (answer->state != NGX_HTTP_TOOLGATE_RESPONSE_OK) {
        ngx_http_toolgate_responses_read_end(read,
                            ngx_http_toolgate_responses_refused(read, answer));
        return;
    }

    c = read->request->connection;
    object.data = (char *) answer->text.data;
    object.len = answer->text.len;

    if (read->what == NGX_HTTP_TOOLGATE_RESPONSES_CANCEL) {
        ngx_http_toolgate_responses_cancel(read->request, &read->key, object);

    } else if (read->what == NGX_HTTP_TOOLGATE_RESPONSES_REPLAY) {
        ngx_http_toolgate_responses_replay(read->request, read->project, &read->key,
                                           object, read->sequence);

    } else if (ngx_http_toolgate_responses_is_live(object)) {
        ngx_http_toolgate_responses_show_live(read->request, &read->key, object);

    } else {
        ngx_http_finalize_request(read->request,
                                  ngx_http_toolgate_reply(read->request, NGX_HTTP_OK,
                                                          object));
    }

    ngx_http_run_posted_requests(c);
}


static void
ngx_http_toolgate_responses_deleted(void *data,
    ngx_http_toolgate_response_answer_t *answer)
{
    ngx_http_toolgate_responses_read_t *read = data;

    char       text[128];
    ngx_int_t  rc;

    if (answer->state == NGX_HTTP_TOOLGATE_RESPONSE_OK) {
        snprintf(text, sizeof(text),
                 "{\"id\":\"%.*s\",\"object\":\"response\",\"deleted\":true}",
                 (int) read->key.response.len, (char *) read->key.response.data);
        rc = ngx_http_toolgate_reply(read->request, NGX_HTTP_OK, tg_str_of(text));

    } else {
        rc = ngx_http_toolgate_responses_refused(read, answer);
    }

    ngx_http_toolgate_responses_read_end(read, rc);
}


static void
ngx_http_toolgate_responses_listed(void *data,
    ngx_http_toolgate_response_answer_t *answer)
{
    ngx_http_toolgate_responses_read_t *read = data;

    ngx_int_t  rc;

    rc = (answer->state == NGX_HTTP_TOOLGATE_RESPONSE_OK)
         ? ngx_http_toolgate_responses_list(read,
                                            (tg_str_t) { answer->text.len,
                                                         (char *) answer->text.data })
         : ngx_http_toolgate_responses_refused(read, answer);

    ngx_http_toolgate_responses_read_end(read, rc);
}


static ngx_int_t
ngx_http_toolgate_responses_list(ngx_http_toolgate_responses_read_t *read,
    tg_str_t input)
{
    char                   id[TG_ID_MAX_LEN];
    tg_rc_e                rc;
    tg_buf_t               out;
    ngx_int_t              answer;
    tg_responses_page_t    page;

    snprintf(id, sizeof(id), "%.*s", (int) read->key.response.len,
             (char *) read->key.response.data);

    page.id = id;
    page.after.data = (char *) read->after.data;
    page.after.len = read->after.len;
    page.limit = read->limit;
    page.newest = read->newest;

    tg_buf_init(&out, NGX_HTTP_TOOLGATE_RESPONSES_LIST_MAX);
    rc = tg_responses_input_items(input, &page, &out);

    if (rc == TG_E_INVALID) {
        answer = ngx_http_toolgate_reply_error(read->request, "invalid_value",
                                               "There is no such item.", "after");

    } else if (rc != TG_OK) {
        answer = NGX_HTTP_INTERNAL_SERVER_ERROR;

    } else {
        answer = ngx_http_toolgate_reply(read->request, NGX_HTTP_OK,
                                         tg_buf_get(&out));
    }

    tg_buf_free(&out);

    return answer;
}


static ngx_int_t
ngx_http_toolgate_responses_refused(ngx_http_toolgate_responses_read_t *read,
    ngx_http_toolgate_response_answer_t *answer)
{
    if (answer->state == NGX_HTTP_TOOLGATE_RESPONSE_NONE) {
        return ngx_http_toolgate_reply_error(read->request, "not_found",
                                             NGX_HTTP_TOOLGATE_RESPONSES_UNKNOWN,
                                             NULL);
    }

    return ngx_http_toolgate_reply_error(read->request,
               answer->state == NGX_HTTP_TOOLGATE_RESPONSE_LIVE
               ? "response_in_progress" : "store_unavailable", NULL, NULL);
}


static void
ngx_http_toolgate_responses_read_end(ngx_http_toolgate_responses_read_t *read,
    ngx_int_t rc)
{
    ngx_connection_t  *c;

    c = read->request->connection;

    ngx_http_finalize_request(read->request, rc);
    ngx_http_run_posted_requests(c);
}
