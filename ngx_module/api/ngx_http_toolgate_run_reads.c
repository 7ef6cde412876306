/*
 * Runs that are there: GET /v1/runs/{run}, its events as a stream, its cancellation,
 * and the list of an account's runs.
 */

#include "ngx_http_toolgate_api.h"
#include "ngx_http_toolgate_registry.h"
#include "ngx_http_toolgate_run.h"
#include "ngx_http_toolgate_runs_face.h"


#define NGX_HTTP_TOOLGATE_RUN_LIST_FIELDS  12


/* A request for a run that the store is asked for. */
typedef struct {
    ngx_http_request_t            *request;
    ngx_http_toolgate_run_key_t    key;
    int64_t                        after;         /* of a stream of events */
} ngx_http_toolgate_run_read_t;


static void ngx_http_toolgate_run_get_ref(ngx_http_request_t *r,
    ngx_http_toolgate_run_key_t *key, const char *code);
static void ngx_http_toolgate_run_got(void *data,
    ngx_http_toolgate_run_answer_t *answer);
static void ngx_http_toolgate_run_cancel_ref(ngx_http_request_t *r,
    ngx_http_toolgate_run_key_t *key, const char *code);
static void ngx_http_toolgate_run_was_cancelled(void *data,
    ngx_http_toolgate_run_answer_t *answer);
static void ngx_http_toolgate_run_events_ref(ngx_http_request_t *r,
    ngx_http_toolgate_run_key_t *key, const char *code);
static void ngx_http_toolgate_run_events_open(void *data,
    ngx_http_toolgate_run_answer_t *answer);
static ngx_int_t ngx_http_toolgate_run_after(ngx_http_request_t *r, int64_t *after);
static void ngx_http_toolgate_run_read_with(ngx_http_request_t *r,
    ngx_http_toolgate_run_key_t *key, const char *code,
    ngx_http_toolgate_run_done_pt done);
static ngx_http_toolgate_run_read_t *ngx_http_toolgate_run_read(
    ngx_http_request_t *r, ngx_http_toolgate_run_key_t *key);
static void ngx_http_toolgate_run_refuse(ngx_http_request_t *r, const char *code);
static void ngx_http_toolgate_run_listed(void *data, redisReply *reply);


ngx_int_t
ngx_http_toolgate_run_get(ngx_http_request_t *r, ngx_http_toolgate_key_t *key,
    ngx_str_t *rest)
{
    return ngx_http_toolgate_run_ref(r, key, ngx_http_toolgate_run_get_ref);
}


static void
ngx_http_toolgate_run_refuse(ngx_http_request_t *r, const char *code)
{
    ngx_http_finalize_request(r, ngx_http_toolgate_reply_error(r, code, NULL, NULL));
}


static ngx_http_toolgate_run_read_t *
ngx_http_toolgate_run_read(ngx_http_request_t *r, ngx_http_toolgate_run_key_t *key)
{
    ngx_http_toolgate_run_read_t  *read;

    read = ngx_pcalloc(r->pool, sizeof(ngx_http_toolgate_run_read_t));

    if (read) {
        read->request = r;
        read->key = *key;
    }

    return read;
}


static void
ngx_http_toolgate_run_get_ref(ngx_http_request_t *r,
    ngx_http_toolgate_run_key_t *key, const char *code)
{
    ngx_http_toolgate_run_read_with(r, key, code, ngx_http_toolgate_run_got);
}


/* Has the run's document read, unless it is not known which run is meant. */
static void
ngx_http_toolgate_run_read_with(ngx_http_request_t *r,
    ngx_http_toolgate_run_key_t *key, const char *code,
    ngx_http_toolgate_run_done_pt done)
{
    ngx_http_toolgate_run_read_t   *read;
    ngx_http_toolgate_main_conf_t  *tmcf;

    if (code) {
        ngx_http_toolgate_run_refuse(r, code);
        return;
    }

    read = ngx_http_toolgate_run_read(r, key);
    tmcf = ngx_http_get_module_main_conf(r, ngx_http_toolgate_module);

    if (read == NULL
        || ngx_http_toolgate_run_store_open(r->pool, tmcf->redis, key, "read",
                                            tmcf->retention, done, read)
           != NGX_OK)
    {
        ngx_http_toolgate_run_refuse(r, "internal_error");
    }
}


static void
ngx_http_toolgate_run_got(void *data, ngx_http_toolgate_run_answer_t *answer)
{
    ngx_http_toolgate_run_read_t *read = data;

    tg_buf_t             out;
    ngx_int_t            rc;
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = read->request;
    c = r->connection;

    if (answer->pair_count == 0) {
        ngx_http_toolgate_run_refuse(r,
            answer->answer == NGX_HTTP_TOOLGATE_ANSWER_GONE ? "not_found"
                                                            : "store_unavailable");
        ngx_http_run_posted_requests(c);
        return;
    }

    tg_buf_init(&out, NGX_HTTP_TOOLGATE_REPLY_MAX);
    ngx_http_toolgate_run_object(answer, &read->key.account, &out);

    rc = out.error == TG_OK
         ? ngx_http_toolgate_reply(r, NGX_HTTP_OK, tg_buf_get(&out))
         : ngx_http_toolgate_reply_error(r, "internal_error", NULL, NULL);

    tg_buf_free(&out);

    ngx_http_finalize_request(r, rc);
    ngx_http_run_posted_requests(c);
}


ngx_int_t
ngx_http_toolgate_run_cancel(ngx_http_request_t *r, ngx_http_toolgate_key_t *key,
    ngx_str_t *rest)
{
    return ngx_http_toolgate_run_ref(r, key, ngx_http_toolgate_run_cancel_ref);
}


static void
ngx_http_toolgate_run_cancel_ref(ngx_http_request_t *r,
    ngx_http_toolgate_run_key_t *key, const char *code)
{
    ngx_http_toolgate_run_read_t   *read;
    ngx_http_toolgate_main_conf_t  *tmcf;

    if (code) {
        ngx_http_toolgate_run_refuse(r, code);
        return;
    }

    read = ngx_http_toolgate_run_read(r, key);
    tmcf = ngx_http_get_module_main_conf(r, ngx_http_toolgate_module);

    if (read == NULL
        || ngx_http_toolgate_run_store_cancel(r->pool, tmcf->redis, key, NULL,
                                              "cancelled", tmcf->retention,
                                              ngx_http_toolgate_run_was_cancelled,
                                              read)
           != NGX_OK)
    {
        ngx_http_toolgate_run_refuse(r, "internal_error");
    }
}


/* Whether it was this request that ended it or not: the run as it is now. */
static void
ngx_http_toolgate_run_was_cancelled(void *data,
    ngx_http_toolgate_run_answer_t *answer)
{
    ngx_http_toolgate_run_read_t *read = data;

    ngx_connection_t  *c;

    c = read->request->connection;

    switch (answer->answer) {

    case NGX_HTTP_TOOLGATE_ANSWER_OK:
    case NGX_HTTP_TOOLGATE_ANSWER_ENDED:
        ngx_http_toolgate_run_get_ref(read->request, &read->key, NULL);
        break;

    case NGX_HTTP_TOOLGATE_ANSWER_GONE:
        ngx_http_toolgate_run_refuse(read->request, "not_found");
        break;

    default:
        ngx_http_toolgate_run_refuse(read->request, "store_unavailable");
    }

    ngx_http_run_posted_requests(c);
}


ngx_int_t
ngx_http_toolgate_run_events(ngx_http_request_t *r, ngx_http_toolgate_key_t *key,
    ngx_str_t *rest)
{
    int64_t  after;

    if (ngx_http_toolgate_run_after(r, &after) != NGX_OK) {
        return ngx_http_toolgate_reply_error(r, "invalid_value",
                                             "\"after\" and Last-Event-ID are the "
                                             "number of an event.", "after");
    }

    return ngx_http_toolgate_run_ref(r, key, ngx_http_toolgate_run_events_ref);
}


/* The header is of a client that comes back by itself: it knows better. */
static ngx_int_t
ngx_http_toolgate_run_after(ngx_http_request_t *r, int64_t *after)
{
    ngx_int_t  n;
    ngx_str_t  text;

    *after = 0;
    text = ngx_http_toolgate_request_header(r, "last-event-id");

    if (text.len == 0
        && ngx_http_toolgate_query_argument(r, "after", &text) != NGX_OK)
    {
        return NGX_OK;
    }

    n = ngx_atoi(text.data, text.len);
    *after = n;

    return n == NGX_ERROR ? NGX_DECLINED : NGX_OK;
}


static void
ngx_http_toolgate_run_events_ref(ngx_http_request_t *r,
    ngx_http_toolgate_run_key_t *key, const char *code)
{
    ngx_http_toolgate_run_read_with(r, key, code, ngx_http_toolgate_run_events_open);
}


static void
ngx_http_toolgate_run_events_open(void *data, ngx_http_toolgate_run_answer_t *answer)
{
    ngx_http_toolgate_run_read_t *read = data;

    ngx_str_t                     seq;
    const char                   *code;
    ngx_connection_t             *c;
    ngx_http_request_t           *r;
    ngx_http_toolgate_project_t  *project;

    r = read->request;
    c = r->connection;
    code = NULL;

    (void) ngx_http_toolgate_run_after(r, &read->after);
    seq = ngx_http_toolgate_run_answer_field(answer, "seq");

    if (answer->pair_count == 0) {
        code = answer->answer == NGX_HTTP_TOOLGATE_ANSWER_GONE
               ? "not_found" : "store_unavailable";

    } else if (read->after > ngx_atoi(seq.data, seq.len)) {
        ngx_http_finalize_request(r,
            ngx_http_toolgate_reply_error(r, "invalid_value",
                                          "The run has no event of this number "
                                          "yet.", "after"));
        ngx_http_run_posted_requests(c);
        return;
    }

    project = ngx_http_toolgate_registry_project(&read->key.project);

    if (code == NULL && project == NULL) {
        code = "not_found";
    }

    if (code) {
        ngx_http_toolgate_run_refuse(r, code);

    } else {
        ngx_http_toolgate_runs_follow(r, project, &read->key, read->after,
                                      answer->answer
                                      == NGX_HTTP_TOOLGATE_ANSWER_ENDED
                                      && read->after == ngx_atoi(seq.data,
                                                                 seq.len));
    }

    ngx_http_run_posted_requests(c);
}


/* Of which session, and from where on. */
ngx_int_t
ngx_http_toolgate_run_list(ngx_http_request_t *r, ngx_http_toolgate_key_t *key)
{
    ngx_str_t                       after, session;
    ngx_uint_t                      limit;
    ngx_http_toolgate_fault_t       fault;
    ngx_http_toolgate_run_key_t     run_key;
    ngx_http_toolgate_run_read_t   *read;
    ngx_http_toolgate_main_conf_t  *tmcf;

    static ngx_str_t  fields[NGX_HTTP_TOOLGATE_RUN_LIST_FIELDS] = {
        ngx_string("run"), ngx_string("invocation"), ngx_string("agent"),
        ngx_string("agent_version"), ngx_string("session"), ngx_string("status"),
        ngx_string("created"), ngx_string("ended"), ngx_string("required_action"),
        ngx_string("result"), ngx_string("error"), ngx_string("metadata")
    };

    ngx_memzero(&run_key, sizeof(run_key));
    run_key.project = key->project->name;

    if (ngx_http_toolgate_query_account(r, key, &run_key.account, &fault) != NGX_OK
        || ngx_http_toolgate_query_limit(r, &limit, &fault) != NGX_OK)
    {
        return ngx_http_toolgate_reply_error(r, fault.code, fault.message,
                                             fault.param);
    }

    (void) ngx_http_toolgate_query_argument(r, "after", &after);

    if (ngx_http_toolgate_query_argument(r, "session", &session) == NGX_OK
        && !tg_id_label_valid((tg_str_t) { session.len, (char *) session.data }))
    {
        return ngx_http_toolgate_reply_error(r, "invalid_value",
                                             "\"session\" is the id of a session.",
                                             "session");
    }

    tmcf = ngx_http_get_module_main_conf(r, ngx_http_toolgate_module);

    if (tmcf->redis == NULL || !ngx_toolgate_redis_up(tmcf->redis)) {
        return ngx_http_toolgate_reply_error(r, "store_unavailable", NULL, NULL);
    }

    read = ngx_http_toolgate_run_read(r, &run_key);

    if (read == NULL
        || ngx_http_toolgate_run_store_list(r->pool, tmcf->redis, &run_key, &after,
                                            &session, limit, fields,
                                            NGX_HTTP_TOOLGATE_RUN_LIST_FIELDS,
                                            ngx_http_toolgate_run_listed, read)
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    r->main->count++;

    return NGX_DONE;
}


/* what conf/redis/run_list.lua answers; its values come without their names */
static void
ngx_http_toolgate_run_listed(void *data, redisReply *reply)
{
    ngx_http_toolgate_run_read_t *read = data;

    size_t                           i, j;
    tg_buf_t                         out;
    ngx_int_t                        rc;
    redisReply                      *row, names[NGX_HTTP_TOOLGATE_RUN_LIST_FIELDS];
    redisReply                      *pairs[2 * NGX_HTTP_TOOLGATE_RUN_LIST_FIELDS];
    ngx_connection_t                *c;
    ngx_http_toolgate_run_answer_t   document;

    static const char *const  words[NGX_HTTP_TOOLGATE_RUN_LIST_FIELDS] = {
        "run", "invocation", "agent", "agent_version", "session", "status",
        "created", "ended", "required_action", "result", "error", "metadata"
    };

    c = read->request->connection;

    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY || reply->elements == 0
        || reply->element[0]->type != REDIS_REPLY_INTEGER)
    {
        ngx_http_toolgate_run_refuse(read->request, "store_unavailable");
        ngx_http_run_posted_requests(c);
        return;
    }

    if (reply->element[0]->integer < 0) {
        rc = ngx_http_toolgate_reply_error(read->request, "invalid_value",
                                           "There is no such run.", "after");
        ngx_http_finalize_request(read->request, rc);
        ngx_http_run_posted_requests(c);
        return;
    }

    for (j = 0; j < NGX_HTTP_TOOLGATE_RUN_LIST_FIELDS; j++) {
        ngx_memzero(&names[j], sizeof(redisReply));
        names[j].type = REDIS_REPLY_STRING;
        names[j].str = (char *) words[j];
        names[j].len = ngx_strlen(words[j]);
    }

    tg_buf_init(&out, NGX_HTTP_TOOLGATE_REPLY_MAX);
    tg_buf_cstr(&out, "{\"object\":\"list\",\"data\":[");

    for (i = 1; i < reply->elements; i++) {
        row = reply->element[i];
        ngx_memzero(&document, sizeof(document));
        document.pairs = pairs;

        for (j = 0; j < row->elements && j < NGX_HTTP_TOOLGATE_RUN_LIST_FIELDS;
             j++)
        {
            pairs[2 * j] = &names[j];
            pairs[2 * j + 1] = row->element[j];
        }

        document.pair_count = j;

        tg_buf_cstr(&out, i > 1 ? "," : "");
        ngx_http_toolgate_run_object(&document, &read->key.account, &out);
    }

    tg_buf_cstr(&out, reply->element[0]->integer ? "],\"has_more\":true}"
                                                 : "],\"has_more\":false}");

    rc = out.error == TG_OK
         ? ngx_http_toolgate_reply(read->request, NGX_HTTP_OK, tg_buf_get(&out))
         : ngx_http_toolgate_reply_error(read->request, "internal_error", NULL,
                                         NULL);
    tg_buf_free(&out);

    ngx_http_finalize_request(read->request, rc);
    ngx_http_run_posted_requests(c);
}
