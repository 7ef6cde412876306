/*
 * A response that may not have ended: shown as its run stands, cancelled, and its events
 * from the first one on.
 */

#include "ngx_http_toolgate_responses.h"


/* A question about the run of a response. */
typedef struct {
    ngx_http_request_t                *request;
    ngx_http_toolgate_main_conf_t     *conf;
    ngx_http_toolgate_response_key_t   key;
    ngx_http_toolgate_run_key_t        run;
    ngx_str_t                          object;
} ngx_http_toolgate_one_t;


static ngx_http_toolgate_one_t *ngx_http_toolgate_one(ngx_http_request_t *r,
    ngx_http_toolgate_response_key_t *key, tg_str_t object);
static void ngx_http_toolgate_one_run(void *data,
    ngx_http_toolgate_run_answer_t *answer);
static void ngx_http_toolgate_one_cancelled(void *data,
    ngx_http_toolgate_run_answer_t *answer);
static ngx_int_t ngx_http_toolgate_one_say(ngx_http_toolgate_one_t *one,
    tg_responses_end_t *end, ngx_uint_t keep);
static ngx_uint_t ngx_http_toolgate_one_is(tg_str_t object, const char *member,
    const char *value);
static void ngx_http_toolgate_one_end(ngx_http_toolgate_one_t *one, ngx_int_t rc);


ngx_uint_t
ngx_http_toolgate_responses_is_live(tg_str_t object)
{
    return ngx_http_toolgate_one_is(object, "status", "\"queued\"")
           || ngx_http_toolgate_one_is(object, "status", "\"in_progress\"");
}


static ngx_uint_t
ngx_http_toolgate_one_is(tg_str_t object, const char *member, const char *value)
{
    return tg_str_eq(tg_responses_member(object, member), tg_str_of(value));
}


static ngx_http_toolgate_one_t *
ngx_http_toolgate_one(ngx_http_request_t *r, ngx_http_toolgate_response_key_t *key,
    tg_str_t object)
{
    u_char                   *p;
    ngx_http_toolgate_one_t  *one;

    one = ngx_palloc(r->pool, sizeof(ngx_http_toolgate_one_t));
    p = ngx_pnalloc(r->pool, TG_ID_MAX_LEN);

    if (one == NULL || p == NULL) {
        return NULL;
    }

    one->request = r;
    one->conf = ngx_http_get_module_main_conf(r, ngx_http_toolgate_module);
    one->key = *key;
    one->run.project = key->project;
    one->run.account = key->account;
    one->run.run.data = p;
    one->object = ngx_http_toolgate_copy(r->pool, object);

    /* both have the same random part */

    p = ngx_cpymem(p, "run_", 4);
    p = ngx_cpymem(p, key->response.data + 5, key->response.len - 5);
    *p = '\0';
    one->run.run.len = p - one->run.run.data;

    return one->object.data ? one : NULL;
}


void
ngx_http_toolgate_responses_show_live(ngx_http_request_t *r,
    ngx_http_toolgate_response_key_t *key, tg_str_t object)
{
    ngx_http_toolgate_one_t  *one;

    one = ngx_http_toolgate_one(r, key, object);

    if (one == NULL
        || ngx_http_toolgate_run_store_open(r->pool, one->conf->redis, &one->run,
                                            "read", one->conf->retention,
                                            ngx_http_toolgate_one_run, one) != NGX_OK)
    {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
    }
}


/* Its run may have ended without a word: cancelled, or nobody could drive it. */
static void
ngx_http_toolgate_one_run(void *data, ngx_http_toolgate_run_answer_t *answer)
{
    ngx_http_toolgate_one_t *one = data;

    char                 name[64];
    ngx_str_t            code, status;
    const tg_error_t    *error;
    tg_responses_end_t   end;

    ngx_memzero(&end, sizeof(end));

    status = ngx_http_toolgate_run_answer_field(answer, "status");
    code = ngx_http_toolgate_run_answer_field(answer, "error");

    if (answer->answer != NGX_HTTP_TOOLGATE_ANSWER_ENDED
        || (status.len == sizeof("completed") - 1
            && ngx_memcmp(status.data, "completed", status.len) == 0))
    {
        ngx_http_toolgate_one_end(one,
            ngx_http_toolgate_reply(one->request, NGX_HTTP_OK,
                                    (tg_str_t) { one->object.len,
                                                 (char *) one->object.data }));
        return;
    }

    if (code.len && code.len < sizeof(name)) {
        ngx_memcpy(name, code.data, code.len);
        name[code.len] = '\0';
        error = tg_error_find(name);

    } else {
        error = NULL;
        end.cancelled = 1;
    }

    if (!end.cancelled) {
        end.error_code = error ? error->code : "internal_error";
        end.error_message = tg_str_of(error ? error->message : "");
    }

    ngx_http_toolgate_one_end(one, ngx_http_toolgate_one_say(one, &end, 1));
}


void
ngx_http_toolgate_responses_cancel(ngx_http_request_t *r,
    ngx_http_toolgate_response_key_t *key, tg_str_t object)
{
    ngx_str_t                 none = ngx_null_string;
    ngx_http_toolgate_one_t  *one;

    if (!ngx_http_toolgate_one_is(object, "background", "true")) {
        ngx_http_finalize_request(r,
            ngx_http_toolgate_reply_error(r, "invalid_value",
                                          "Only a response in the background can be "
                                          "cancelled.", NULL));
        return;
    }

    if (!ngx_http_toolgate_responses_is_live(object)) {
        ngx_http_finalize_request(r, ngx_http_toolgate_reply(r, NGX_HTTP_OK, object));
        return;
    }

    one = ngx_http_toolgate_one(r, key, object);

    if (one == NULL
        || ngx_http_toolgate_run_store_cancel(r->pool, one->conf->redis, &one->run,
                                              &none, "cancelled",
                                              one->conf->retention,
                                              ngx_http_toolgate_one_cancelled, one)
           != NGX_OK)
    {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
    }
}


static void
ngx_http_toolgate_one_cancelled(void *data, ngx_http_toolgate_run_answer_t *answer)
{
    ngx_http_toolgate_one_t *one = data;

    tg_responses_end_t  end;

    ngx_memzero(&end, sizeof(end));

    switch (answer->answer) {

    case NGX_HTTP_TOOLGATE_ANSWER_AWAY:
        ngx_http_toolgate_one_end(one,
            ngx_http_toolgate_reply_error(one->request, "store_unavailable", NULL,
                                          NULL));
        return;

    case NGX_HTTP_TOOLGATE_ANSWER_ENDED:
        /* a moment ago: what it ended with is in the store, or on its way */
        ngx_http_toolgate_one_end(one,
            ngx_http_toolgate_reply(one->request, NGX_HTTP_OK,
                                    (tg_str_t) { one->object.len,
                                                 (char *) one->object.data }));
        return;

    default:
        end.cancelled = 1;
        ngx_http_toolgate_one_end(one, ngx_http_toolgate_one_say(one, &end, 1));
        return;
    }
}


/* The object as it is at its end. */
static ngx_int_t
ngx_http_toolgate_one_say(ngx_http_toolgate_one_t *one, tg_responses_end_t *end,
    ngx_uint_t keep)
{
    tg_buf_t                            echo, out;
    ngx_int_t                           rc;
    tg_responses_t                      answer;
    ngx_http_toolgate_response_save_t   save;

    tg_buf_init(&echo, TG_RESPONSES_OUTPUT_MAX);
    tg_buf_init(&out, TG_RESPONSES_OUTPUT_MAX);
    rc = NGX_HTTP_INTERNAL_SERVER_ERROR;
    ngx_memzero(&answer, sizeof(answer));

    if (tg_responses_restore(&answer, (tg_str_t) { one->object.len,
                                                   (char *) one->object.data },
                             &echo, false) == TG_OK
        && tg_responses_object(&answer, end, &out) == TG_OK)
    {
        ngx_memzero(&save, sizeof(save));
        save.object.data = (u_char *) out.data;
        save.object.len = out.len;
        save.status = end->cancelled ? "cancelled" : "failed";
        save.there = 1;

        if (keep) {
            ngx_http_toolgate_response_save(one->conf->redis, &one->key,
                                            one->conf->retention, &save);
        }

        rc = ngx_http_toolgate_reply(one->request, NGX_HTTP_OK, tg_buf_get(&out));
    }

    tg_responses_free(&answer);
    tg_buf_free(&echo);
    tg_buf_free(&out);

    return rc;
}


static void
ngx_http_toolgate_one_end(ngx_http_toolgate_one_t *one, ngx_int_t rc)
{
    ngx_connection_t  *c;

    c = one->request->connection;

    ngx_http_finalize_request(one->request, rc);
    ngx_http_run_posted_requests(c);
}


void
ngx_http_toolgate_responses_replay(ngx_http_request_t *r,
    ngx_http_toolgate_project_t *project, ngx_http_toolgate_response_key_t *key,
    tg_str_t object, int64_t after)
{
    tg_str_t                              at;
    ngx_http_toolgate_one_t              *one;
    ngx_http_toolgate_run_t              *run;
    ngx_http_toolgate_responses_state_t  *state;

    if (!ngx_http_toolgate_one_is(object, "background", "true")) {
        ngx_http_finalize_request(r,
            ngx_http_toolgate_reply_error(r, "invalid_value",
                                          "Only a response in the background has a "
                                          "stream to come back to.", "stream"));
        return;
    }

    one = ngx_http_toolgate_one(r, key, object);
    run = ngx_http_toolgate_run_create(r, project, &ngx_http_toolgate_responses_face);

    if (one == NULL || run == NULL || ngx_http_toolgate_run_for_agent(run) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    ngx_memcpy(run->id, one->run.run.data, one->run.run.len);
    run->prompt.account = key->account;
    run->prompt.stream = 1;

    if (ngx_http_toolgate_responses_face_restore(run, object) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    /* its items come again with the events */

    state = run->face_data;
    tg_responses_forget(&state->answer);
    state->answer.after = after;

    at = tg_responses_member(object, "completed_at");
    state->completed = ngx_max(ngx_atotm((u_char *) at.data, at.len), 0);

    ngx_http_toolgate_run_follow(run, 0);
}
