/*
 * A run joins a session before its first model call: it asks the store for it, ends the
 * run that had it, and gets the history and the list of tools of the segment. What it
 * brings is in _session_request.c, what stays of it in _session_keep.c.
 */

#include "ngx_http_toolgate_session.h"

#include "tg_json.h"


static ngx_int_t ngx_http_toolgate_run_session_new(ngx_http_toolgate_run_t *run);
static void ngx_http_toolgate_run_session_begun(void *data,
    ngx_http_toolgate_session_answer_t *answer);
static ngx_int_t ngx_http_toolgate_run_session_copy(
    ngx_http_toolgate_run_session_t *session,
    ngx_http_toolgate_session_answer_t *answer);
static void ngx_http_toolgate_run_session_supersede(
    ngx_http_toolgate_run_session_t *session);
static void ngx_http_toolgate_run_session_superseded(void *data,
    ngx_http_toolgate_run_answer_t *answer);
static void ngx_http_toolgate_run_session_wake(
    ngx_http_toolgate_run_session_t *session);
static ngx_int_t ngx_http_toolgate_run_session_refused(
    ngx_http_toolgate_run_session_t *session);
static void ngx_http_toolgate_run_session_left(void *data);
static void ngx_http_toolgate_run_session_free(void *data);


ngx_int_t
ngx_http_toolgate_run_session_join(ngx_http_toolgate_run_t *run)
{
    ngx_int_t                           rc;
    tg_buf_t                            ids;
    ngx_http_toolgate_run_session_t    *session;
    ngx_http_toolgate_session_begin_t   begin;

    if (run->prompt.session.len == 0) {
        return NGX_OK;
    }

    if (!ngx_toolgate_redis_up(run->conf->redis)) {
        ngx_http_toolgate_durable_forget(run);
        ngx_http_toolgate_run_fail(run, "store_unavailable", NULL);
        return NGX_DECLINED;
    }

    if (ngx_http_toolgate_run_session_new(run) != NGX_OK) {
        return NGX_ERROR;
    }

    session = run->session;
    rc = ngx_http_toolgate_run_session_request(session);

    if (rc != NGX_OK) {
        return rc;
    }

    ngx_memzero(&begin, sizeof(begin));
    tg_buf_init(&ids, NGX_HTTP_TOOLGATE_SESSION_ANSWERS_MAX);

    if (ngx_http_toolgate_run_session_answers(session, &ids) != NGX_OK
        || ngx_http_toolgate_run_session_stamp(session, &begin.agent) != NGX_OK
        || ngx_http_toolgate_run_session_offers(session, &begin.offered) != NGX_OK)
    {
        tg_buf_free(&ids);
        return NGX_ERROR;
    }

    begin.run.data = (u_char *) run->id;
    begin.run.len = ngx_strlen(run->id);
    begin.user = session->user;
    begin.messages = tg_buf_get(&session->messages);
    begin.answers = tg_buf_get(&ids);
    begin.history_max = run->conf->max_history;
    begin.idle = run->conf->segment_idle;
    begin.new_segment = run->prompt.new_segment;
    begin.reject = run->prompt.reject_busy;
    begin.create = run->prompt.create_session;

    rc = ngx_http_toolgate_session_begin(run->request->pool,
                                         run->request->connection->log,
                                         run->conf->redis, &session->key,
                                         run->conf->retention, &begin,
                                         ngx_http_toolgate_run_session_begun,
                                         session);
    tg_buf_free(&ids);

    return rc == NGX_OK ? NGX_AGAIN : NGX_ERROR;
}


static ngx_int_t
ngx_http_toolgate_run_session_new(ngx_http_toolgate_run_t *run)
{
    tg_str_t                          user;
    ngx_http_cleanup_t               *cln;
    ngx_pool_cleanup_t               *pool_cln;
    ngx_http_toolgate_run_session_t  *session;

    /* the one says in the store that the client has left, the other frees memory */

    pool_cln = ngx_pool_cleanup_add(run->request->pool,
                                    sizeof(ngx_http_toolgate_run_session_t));
    cln = ngx_http_cleanup_add(run->request, 0);

    if (pool_cln == NULL || cln == NULL) {
        return NGX_ERROR;
    }

    session = pool_cln->data;
    ngx_memzero(session, sizeof(ngx_http_toolgate_run_session_t));

    session->run = run;
    session->key.project = run->project->name;
    session->key.account = run->prompt.account;
    session->key.session = run->prompt.session;

    user = tg_json_get_string(run->end_user, "external_id");
    session->user.data = (u_char *) user.data;
    session->user.len = user.len;

    tg_buf_init(&session->messages, NGX_HTTP_TOOLGATE_SESSION_PACK_MAX);
    tg_buf_init(&session->scratch, NGX_HTTP_TOOLGATE_SESSION_PACK_MAX);

    pool_cln->handler = ngx_http_toolgate_run_session_free;
    cln->handler = ngx_http_toolgate_run_session_left;
    cln->data = session;

    run->session = session;

    return NGX_OK;
}


static void
ngx_http_toolgate_run_session_begun(void *data,
    ngx_http_toolgate_session_answer_t *answer)
{
    ngx_http_toolgate_run_session_t *session = data;

    session->state = answer->state;

    if (ngx_http_toolgate_run_session_copy(session, answer) != NGX_OK) {
        session->run->out_of_memory = 1;

    } else if (session->state == NGX_HTTP_TOOLGATE_SESSION_OK) {
        session->joined = 1;

        if (session->other.len) {
            ngx_http_toolgate_run_session_supersede(session);
            return;
        }
    }

    ngx_http_toolgate_run_session_wake(session);
}


/* What is needed of an answer that is going. */
static ngx_int_t
ngx_http_toolgate_run_session_copy(ngx_http_toolgate_run_session_t *session,
    ngx_http_toolgate_session_answer_t *answer)
{
    ngx_uint_t   i;
    ngx_pool_t  *pool;

    struct {
        ngx_str_t  *to;
        ngx_str_t  *from;
    } texts[] = {
        { &session->history, &answer->history },
        { &session->offered, &answer->offered },
        { &session->kept, &answer->kept },
        { &session->other, answer->call.len ? &answer->call : &answer->run }
    };

    pool = session->run->request->pool;

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        *texts[i].to = ngx_http_toolgate_copy(pool,
                                              (tg_str_t) { texts[i].from->len,
                                                  (char *) texts[i].from->data });
        if (texts[i].to->data == NULL) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* The run that had the session ends; this one begins when that is written down. */
static void
ngx_http_toolgate_run_session_supersede(ngx_http_toolgate_run_session_t *session)
{
    ngx_str_t                     none = ngx_null_string;
    ngx_http_toolgate_run_t      *run;
    ngx_http_toolgate_run_key_t   key;

    run = session->run;

    key.project = session->key.project;
    key.account = session->key.account;
    key.run = session->other;

    if (ngx_http_toolgate_run_store_cancel(run->request->pool, run->conf->redis, &key,
                                           &none, "superseded", run->conf->retention,
                                           ngx_http_toolgate_run_session_superseded,
                                           session)
        != NGX_OK)
    {
        run->out_of_memory = 1;
        ngx_http_toolgate_run_session_wake(session);
    }
}


static void
ngx_http_toolgate_run_session_superseded(void *data,
    ngx_http_toolgate_run_answer_t *answer)
{
    ngx_http_toolgate_run_session_t *session = data;

    if (answer->answer == NGX_HTTP_TOOLGATE_ANSWER_AWAY) {
        session->state = NGX_HTTP_TOOLGATE_SESSION_AWAY;
    }

    ngx_http_toolgate_run_session_wake(session);
}


static void
ngx_http_toolgate_run_session_wake(ngx_http_toolgate_run_session_t *session)
{
    ngx_connection_t  *c;

    c = session->run->request->connection;

    session->run->session_known = 1;
    ngx_http_toolgate_run_post(session->run);
    ngx_http_run_posted_requests(c);
}


ngx_int_t
ngx_http_toolgate_run_session_is_joined(ngx_http_toolgate_run_t *run)
{
    ngx_http_toolgate_run_session_t  *session;

    session = run->session;

    if (session->state != NGX_HTTP_TOOLGATE_SESSION_OK) {
        return ngx_http_toolgate_run_session_refused(session);
    }

    if (ngx_http_toolgate_run_session_offered(session) != NGX_OK) {
        return NGX_ERROR;
    }

    return session->kept.len ? ngx_http_toolgate_run_session_kept(session) : NGX_OK;
}


ngx_str_t
ngx_http_toolgate_run_session_history(ngx_http_toolgate_run_t *run)
{
    ngx_str_t  none = ngx_null_string;

    return run->session ? run->session->history : none;
}


/* Says why; the run has failed. */
static ngx_int_t
ngx_http_toolgate_run_session_refused(ngx_http_toolgate_run_session_t *session)
{
    u_char       text[256];
    ngx_str_t    message;
    const char  *code;

    ngx_str_null(&message);
    message.data = text;

    switch (session->state) {

    case NGX_HTTP_TOOLGATE_SESSION_NONE:
        code = "session_not_found";
        break;

    case NGX_HTTP_TOOLGATE_SESSION_OTHER_USER:
        code = "end_user_mismatch";
        break;

    case NGX_HTTP_TOOLGATE_SESSION_BUSY:
        code = "session_busy";
        message.len = ngx_snprintf(text, sizeof(text), "The session is busy with %V. "
                                   "Wait for its end or cancel it, then send this "
                                   "again.", &session->other) - text;
        break;

    case NGX_HTTP_TOOLGATE_SESSION_GONE:
        code = "run_superseded";
        break;

    case NGX_HTTP_TOOLGATE_SESSION_NO_CALL:
        code = "unknown_tool_call";
        break;

    default:
        code = "store_unavailable";
    }

    ngx_http_toolgate_durable_forget(session->run);
    ngx_http_toolgate_run_fail(session->run, code, message.len ? &message : NULL);

    return NGX_DECLINED;
}


/* nginx lets the request go before the run has ended. */
static void
ngx_http_toolgate_run_session_left(void *data)
{
    ngx_http_toolgate_run_session_t *session = data;

    ngx_http_toolgate_run_session_close(session->run, "run_cancelled");
    ngx_http_toolgate_run_session_end(session->run);
}


static void
ngx_http_toolgate_run_session_free(void *data)
{
    ngx_http_toolgate_run_session_t *session = data;

    tg_buf_free(&session->messages);
    tg_buf_free(&session->scratch);
}
