/*
 * GET /v1/sessions/{s}/messages: a page of what was said, each message as the API
 * shows it. The store has them as models got them, with a few facts beside.
 */

#include "ngx_http_toolgate_sessions_api.h"

#include "tg_policy.h"


static void ngx_http_toolgate_session_page(void *data,
    ngx_http_toolgate_session_answer_t *answer);
static ngx_int_t ngx_http_toolgate_session_page_reply(
    ngx_http_toolgate_session_request_t *s,
    ngx_http_toolgate_session_answer_t *answer);
static ngx_int_t ngx_http_toolgate_session_entry(tg_buf_t *out, redisReply *entry);
static void ngx_http_toolgate_session_entry_calls(json_t *view, json_t *entry);
static void ngx_http_toolgate_session_entry_result(json_t *view, json_t *entry);


ngx_int_t
ngx_http_toolgate_session_messages_list(ngx_http_toolgate_session_request_t *s)
{
    ngx_int_t            rc;
    ngx_str_t            after;
    ngx_uint_t           limit;
    ngx_http_request_t  *r = s->request;

    rc = ngx_http_toolgate_query_limit(r, &limit, &s->fault);

    if (rc == NGX_OK
        && ngx_http_toolgate_query_argument(r, "after", &after) == NGX_OK
        && !tg_id_valid("msg_", (tg_str_t) { after.len, (char *) after.data }))
    {
        rc = ngx_http_toolgate_fault(&s->fault, "invalid_value", "after",
                                     "\"after\" is the id of a message.");
    }

    if (rc != NGX_OK) {
        return ngx_http_toolgate_reply_error(r, s->fault.code, s->fault.message,
                                             s->fault.param);
    }

    if (ngx_http_toolgate_session_request_ready(s, &rc) != NGX_OK) {
        return rc;
    }

    if (ngx_http_toolgate_session_messages(r->pool, r->connection->log,
                                           s->conf->redis, &s->key, &after, limit,
                                           ngx_http_toolgate_session_page, s)
        != NGX_OK)
    {
        return ngx_http_toolgate_reply_error(r, "internal_error", NULL, NULL);
    }

    r->main->count++;

    return NGX_DONE;
}


static void
ngx_http_toolgate_session_page(void *data, ngx_http_toolgate_session_answer_t *answer)
{
    ngx_http_toolgate_session_request_t *s = data;

    ngx_int_t  rc;

    switch (answer->state) {

    case NGX_HTTP_TOOLGATE_SESSION_OK:
        rc = ngx_http_toolgate_session_page_reply(s, answer);
        break;

    case NGX_HTTP_TOOLGATE_SESSION_NO_MESSAGE:
        rc = ngx_http_toolgate_reply_error(s->request, "invalid_value",
                                           "The session has no such message.",
                                           "after");
        break;

    default:
        rc = ngx_http_toolgate_session_request_refused(s, answer);
    }

    ngx_http_toolgate_session_request_end(s, rc);
}


static ngx_int_t
ngx_http_toolgate_session_page_reply(ngx_http_toolgate_session_request_t *s,
    ngx_http_toolgate_session_answer_t *answer)
{
    tg_buf_t    out;
    ngx_int_t   rc;
    ngx_uint_t  i;

    tg_buf_init(&out, NGX_HTTP_TOOLGATE_REPLY_MAX);
    tg_buf_cstr(&out, "{\"object\":\"list\",\"data\":[");

    rc = NGX_OK;

    for (i = 0; rc == NGX_OK && i < answer->message_count; i++) {
        tg_buf_cstr(&out, i ? "," : "");
        rc = ngx_http_toolgate_session_entry(&out, answer->messages[i]);
    }

    tg_buf_cstr(&out, answer->more ? "],\"has_more\":true}"
                                   : "],\"has_more\":false}");

    rc = (rc == NGX_OK && out.error == TG_OK)
         ? ngx_http_toolgate_reply(s->request, NGX_HTTP_OK, tg_buf_get(&out))
         : ngx_http_toolgate_reply_error(s->request, "internal_error", NULL, NULL);

    tg_buf_free(&out);

    return rc;
}


static ngx_int_t
ngx_http_toolgate_session_entry(tg_buf_t *out, redisReply *reply)
{
    json_t           *entry, *view, *message;
    tg_rc_e           rc;
    ngx_uint_t        i;
    tg_json_error_t   error;

    static const char *const  facts[] = {
        "created_at", "segment", "run", "invocation_id", NULL
    };

    entry = tg_json_load((tg_str_t) { (size_t) reply->len, reply->str }, &error);
    message = json_object_get(entry, "message");
    view = json_object();

    if (message == NULL || view == NULL) {
        json_decref(view);
        json_decref(entry);
        return NGX_ERROR;
    }

    (void) json_object_set(view, "id", json_object_get(entry, "id"));
    (void) json_object_set_new(view, "object", json_string("session.message"));

    for (i = 0; facts[i]; i++) {
        (void) json_object_set(view, facts[i], json_object_get(entry, facts[i]));
    }

    (void) json_object_update_missing(view, message);

    if (json_object_get(entry, "calls")) {
        ngx_http_toolgate_session_entry_calls(view, entry);
    }

    if (json_object_get(entry, "call_id")) {
        ngx_http_toolgate_session_entry_result(view, entry);
    }

    rc = tg_json_dump(view, out);

    json_decref(view);
    json_decref(entry);

    return rc == TG_OK ? NGX_OK : NGX_ERROR;
}


/* Calls have our ids: those of models repeat. */
static void
ngx_http_toolgate_session_entry_calls(json_t *view, json_t *entry)
{
    size_t   i;
    json_t  *call;

    json_array_foreach(json_object_get(view, "tool_calls"), i, call) {
        (void) json_object_set(call, "id",
                               json_array_get(json_object_get(entry, "calls"), i));
    }
}


/* The result of a call as runners know it. */
static void
ngx_http_toolgate_session_entry_result(json_t *view, json_t *entry)
{
    const char  *code;

    (void) json_object_del(view, "tool_call_id");
    (void) json_object_set(view, "call_id", json_object_get(entry, "call_id"));
    (void) json_object_set(view, "name", json_object_get(entry, "name"));
    (void) json_object_set(view, "status", json_object_get(entry, "status"));
    (void) json_object_set_new(view, "metadata", json_object());
    (void) json_object_set_new(view, "artifacts", json_array());

    code = json_string_value(json_object_get(entry, "code"));

    (void) json_object_set_new(view, "error",
                               code ? json_pack("{s:s,s:s}", "code", code, "message",
                                                tg_policy_guidance(code))
                                    : json_null());
}
