/*
 * /v1/sessions: makes, shows and deletes conversations. Their messages are shown by
 * _session_messages.c, what runs do with a session is in run/.
 */

#include "ngx_http_toolgate_sessions_api.h"
#include "ngx_http_toolgate_run_store.h"


#define NGX_HTTP_TOOLGATE_SESSION_BODY_MAX      (64 * 1024)
#define NGX_HTTP_TOOLGATE_SESSION_AGENT_MAX     128    /* bytes */
#define NGX_HTTP_TOOLGATE_METADATA_MAX          16     /* pairs */
#define NGX_HTTP_TOOLGATE_METADATA_KEY_CHARS    64
#define NGX_HTTP_TOOLGATE_METADATA_VALUE_CHARS  512


static ngx_int_t ngx_http_toolgate_sessions_one(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key);
static void ngx_http_toolgate_sessions_body(ngx_http_request_t *r,
    ngx_http_toolgate_body_t *body);
static ngx_int_t ngx_http_toolgate_sessions_fields(
    ngx_http_toolgate_session_request_t *s, json_t *fields);
static ngx_int_t ngx_http_toolgate_sessions_metadata(
    ngx_http_toolgate_session_request_t *s, json_t *metadata);
static ngx_int_t ngx_http_toolgate_sessions_agent(
    ngx_http_toolgate_session_request_t *s);
static void ngx_http_toolgate_sessions_agent_found(void *data,
    ngx_http_toolgate_agent_t *agent, const char *code);
static ngx_int_t ngx_http_toolgate_sessions_create(
    ngx_http_toolgate_session_request_t *s, ngx_http_toolgate_agent_t *agent,
    const char *code);
static void ngx_http_toolgate_sessions_created(void *data,
    ngx_http_toolgate_session_answer_t *answer);
static void ngx_http_toolgate_sessions_shown(void *data,
    ngx_http_toolgate_session_answer_t *answer);
static void ngx_http_toolgate_sessions_deleted(void *data,
    ngx_http_toolgate_session_answer_t *answer);
static void ngx_http_toolgate_sessions_run_ended(void *data,
    ngx_http_toolgate_run_answer_t *answer);
static ngx_int_t ngx_http_toolgate_sessions_gone(
    ngx_http_toolgate_session_request_t *s);
static ngx_int_t ngx_http_toolgate_sessions_view(
    ngx_http_toolgate_session_request_t *s,
    ngx_http_toolgate_session_answer_t *answer, ngx_uint_t status);
static ngx_str_t ngx_http_toolgate_sessions_copy(ngx_pool_t *pool, tg_str_t text);


ngx_int_t
ngx_http_toolgate_sessions_api(ngx_http_request_t *r, ngx_http_toolgate_key_t *key,
    ngx_str_t *rest)
{
    if (r->method == NGX_HTTP_POST) {
        return ngx_http_toolgate_body_read_any(r, key,
                                               ngx_http_toolgate_sessions_body, NULL);
    }

    return ngx_http_toolgate_sessions_one(r, key);
}


/* GET and DELETE of one, GET of its messages: the router has seen "/v1/sessions/", a
 * name, and perhaps "/messages". */
static ngx_int_t
ngx_http_toolgate_sessions_one(ngx_http_request_t *r, ngx_http_toolgate_key_t *key)
{
    u_char                               *last, *p;
    ngx_int_t                             rc;
    ngx_http_toolgate_fault_t             fault;
    ngx_http_toolgate_session_request_t  *s;

    s = ngx_pcalloc(r->pool, sizeof(ngx_http_toolgate_session_request_t));
    if (s == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    last = r->uri.data + r->uri.len;
    s->request = r;
    s->conf = ngx_http_get_module_main_conf(r, ngx_http_toolgate_module);
    s->key.project = key->project->name;
    s->key.session.data = r->uri.data + sizeof("/v1/sessions/") - 1;

    p = ngx_strlchr(s->key.session.data, last, '/');
    s->key.session.len = (p ? p : last) - s->key.session.data;

    if (ngx_http_toolgate_query_account(r, key, &s->key.account, &fault) != NGX_OK) {
        return ngx_http_toolgate_reply_error(r, fault.code, fault.message,
                                             fault.param);
    }

    if (!tg_id_label_valid((tg_str_t) { s->key.session.len,
                                        (char *) s->key.session.data }))
    {
        return ngx_http_toolgate_reply_error(r, "session_not_found", NULL, NULL);
    }

    if (p) {
        return ngx_http_toolgate_session_messages_list(s);
    }

    if (ngx_http_toolgate_session_request_ready(s, &rc) != NGX_OK) {
        return rc;
    }

    if (r->method == NGX_HTTP_DELETE) {
        rc = ngx_http_toolgate_session_delete(r->pool, r->connection->log,
                                              s->conf->redis, &s->key,
                                              ngx_http_toolgate_sessions_deleted, s);

    } else {
        rc = ngx_http_toolgate_session_get(r->pool, r->connection->log,
                                           s->conf->redis, &s->key,
                                           ngx_http_toolgate_sessions_shown, s);
    }

    if (rc != NGX_OK) {
        return ngx_http_toolgate_reply_error(r, "internal_error", NULL, NULL);
    }

    r->main->count++;

    return NGX_DONE;
}


ngx_int_t
ngx_http_toolgate_session_request_ready(ngx_http_toolgate_session_request_t *s,
    ngx_int_t *rc)
{
    if (s->conf->redis == NULL || !ngx_toolgate_redis_up(s->conf->redis)) {
        *rc = ngx_http_toolgate_reply_error(s->request, "store_unavailable", NULL,
                                            NULL);
        return NGX_DECLINED;
    }

    *rc = ngx_http_discard_request_body(s->request);

    return *rc == NGX_OK ? NGX_OK : NGX_DECLINED;
}


void
ngx_http_toolgate_session_request_end(ngx_http_toolgate_session_request_t *s,
    ngx_int_t rc)
{
    ngx_connection_t  *c;

    c = s->request->connection;

    ngx_http_finalize_request(s->request, rc);
    ngx_http_run_posted_requests(c);
}


ngx_int_t
ngx_http_toolgate_session_request_refused(ngx_http_toolgate_session_request_t *s,
    ngx_http_toolgate_session_answer_t *answer)
{
    return ngx_http_toolgate_reply_error(s->request,
                                         answer->state
                                         == NGX_HTTP_TOOLGATE_SESSION_NONE
                                         ? "session_not_found" : "store_unavailable",
                                         NULL, NULL);
}


static void
ngx_http_toolgate_sessions_body(ngx_http_request_t *r, ngx_http_toolgate_body_t *body)
{
    json_t                               *fields;
    ngx_int_t                             rc;
    tg_json_error_t                       error;
    ngx_http_toolgate_session_request_t  *s;

    s = ngx_pcalloc(r->pool, sizeof(ngx_http_toolgate_session_request_t));
    if (s == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    s->request = r;
    s->conf = ngx_http_get_module_main_conf(r, ngx_http_toolgate_module);
    s->body = body;
    s->project = body->key->project;
    s->key.project = s->project->name;

    if (body->len > NGX_HTTP_TOOLGATE_SESSION_BODY_MAX) {
        ngx_http_finalize_request(r, ngx_http_toolgate_reply_error(r,
                                         "request_too_large", NULL, NULL));
        return;
    }

    fields = tg_json_load((tg_str_t) { body->len, (char *) body->data }, &error);

    rc = ngx_http_toolgate_sessions_fields(s, fields);
    json_decref(fields);

    if (rc == NGX_OK) {
        rc = ngx_http_toolgate_sessions_agent(s);

        if (rc == NGX_AGAIN) {
            return;
        }
    }

    if (rc == NGX_DECLINED) {
        rc = ngx_http_toolgate_reply_error(r, s->fault.code, s->fault.message,
                                           s->fault.param);

    } else if (rc == NGX_ERROR) {
        rc = ngx_http_toolgate_reply_error(r, "internal_error", NULL, NULL);
    }

    ngx_http_finalize_request(r, rc);
}


static ngx_int_t
ngx_http_toolgate_sessions_fields(ngx_http_toolgate_session_request_t *s,
    json_t *fields)
{
    json_t      *value, *user;
    ngx_int_t    rc;
    tg_str_t     text;
    ngx_uint_t   i;
    const char  *name;

    static const char *const  known[] = {
        "agent", "end_user", "account_id", "metadata", NULL
    };

    if (!json_is_object(fields)) {
        return ngx_http_toolgate_fault(&s->fault, "invalid_type", NULL,
                                       "The body is a JSON object.");
    }

    json_object_foreach(fields, name, value) {
        for (i = 0; known[i] && ngx_strcmp(known[i], name) != 0; i++) { /* void */ }

        if (known[i] == NULL) {
            text = tg_str_of(name);
            s->fault.param = (char *) ngx_http_toolgate_sessions_copy(
                                                     s->request->pool, text).data;
            return ngx_http_toolgate_fault(&s->fault, "unknown_field",
                                           s->fault.param, NULL);
        }
    }

    rc = ngx_http_toolgate_body_account(s->request, s->body, &s->key.account,
                                        &s->fault);
    if (rc != NGX_OK) {
        return rc;
    }

    rc = ngx_http_toolgate_end_user(s->request, s->body, &user, &s->fault);
    if (rc != NGX_OK) {
        return rc;
    }

    if (user) {
        s->user = ngx_http_toolgate_sessions_copy(s->request->pool,
                                           tg_json_get_string(user, "external_id"));
        json_decref(user);

        if (s->user.data == NULL) {
            return NGX_ERROR;
        }
    }

    value = json_object_get(fields, "agent");

    if (value && !json_is_null(value)) {
        text = tg_json_get_string(fields, "agent");

        if (!json_is_string(value) || text.len == 0
            || text.len > NGX_HTTP_TOOLGATE_SESSION_AGENT_MAX)
        {
            return ngx_http_toolgate_fault(&s->fault, "invalid_value", "agent",
                                           "\"agent\" is the name or the id of an "
                                           "agent.");
        }

        s->agent = ngx_http_toolgate_sessions_copy(s->request->pool, text);

        if (s->agent.data == NULL) {
            return NGX_ERROR;
        }
    }

    return ngx_http_toolgate_sessions_metadata(s, json_object_get(fields,
                                                                  "metadata"));
}


/* As OpenAI has it: few pairs of short strings. */
static ngx_int_t
ngx_http_toolgate_sessions_metadata(ngx_http_toolgate_session_request_t *s,
    json_t *metadata)
{
    json_t      *value;
    tg_buf_t     text;
    tg_rc_e      rc;
    tg_str_t     member;
    const char  *name;

    if (metadata == NULL || json_is_null(metadata)) {
        return NGX_OK;
    }

    if (!json_is_object(metadata)
        || json_object_size(metadata) > NGX_HTTP_TOOLGATE_METADATA_MAX)
    {
        return ngx_http_toolgate_fault(&s->fault, "invalid_value", "metadata",
                                       "\"metadata\" is an object of at most 16 "
                                       "strings.");
    }

    json_object_foreach(metadata, name, value) {
        member.data = json_string_value(value);
        member.len = json_string_length(value);

        if (!json_is_string(value)
            || ngx_utf8_length((u_char *) member.data, member.len)
               > NGX_HTTP_TOOLGATE_METADATA_VALUE_CHARS
            || ngx_utf8_length((u_char *) name, ngx_strlen(name))
               > NGX_HTTP_TOOLGATE_METADATA_KEY_CHARS)
        {
            return ngx_http_toolgate_fault(&s->fault, "invalid_value", "metadata",
                                           "Names of metadata have at most 64 "
                                           "characters, values are strings of at "
                                           "most 512.");
        }
    }

    tg_buf_init(&text, NGX_HTTP_TOOLGATE_SESSION_BODY_MAX * 2);
    rc = tg_json_dump(metadata, &text);

    if (rc == TG_OK) {
        s->metadata = ngx_http_toolgate_sessions_copy(s->request->pool,
                                                      tg_buf_get(&text));
    }

    tg_buf_free(&text);

    return s->metadata.data ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_http_toolgate_sessions_agent(ngx_http_toolgate_session_request_t *s)
{
    ngx_int_t                   rc;
    const char                 *code;
    ngx_http_toolgate_agent_t  *agent;

    if (s->agent.len == 0) {
        return ngx_http_toolgate_sessions_create(s, NULL, NULL);
    }

    rc = ngx_http_toolgate_agent_ref(s->request, s->project, &s->agent, &agent, &code,
                                     ngx_http_toolgate_sessions_agent_found, s);

    return rc == NGX_AGAIN ? rc : ngx_http_toolgate_sessions_create(s, agent, code);
}


static void
ngx_http_toolgate_sessions_agent_found(void *data, ngx_http_toolgate_agent_t *agent,
    const char *code)
{
    ngx_http_toolgate_session_request_t *s = data;

    ngx_int_t  rc;

    rc = ngx_http_toolgate_sessions_create(s, agent, code);

    if (rc == NGX_AGAIN) {
        return;
    }

    ngx_http_finalize_request(s->request,
        ngx_http_toolgate_reply_error(s->request, s->fault.code, s->fault.message,
                                      s->fault.param));
}


/* NGX_AGAIN: an answer follows. */
static ngx_int_t
ngx_http_toolgate_sessions_create(ngx_http_toolgate_session_request_t *s,
    ngx_http_toolgate_agent_t *agent, const char *code)
{
    u_char               random[TG_ID_RANDOM_LEN];
    ngx_http_request_t  *r = s->request;

    if (s->agent.len && agent == NULL) {
        return ngx_http_toolgate_fault(&s->fault, code ? code : "model_not_found",
                                       "agent", NULL);
    }

    if (s->conf->redis == NULL || !ngx_toolgate_redis_up(s->conf->redis)) {
        return ngx_http_toolgate_fault(&s->fault, "store_unavailable", NULL, NULL);
    }

    if (ngx_http_toolgate_random(random, sizeof(random)) != NGX_OK) {
        return ngx_http_toolgate_fault(&s->fault, "internal_error", NULL, NULL);
    }

    tg_id_make("sess_", random, s->id);
    s->key.session.data = (u_char *) s->id;
    s->key.session.len = ngx_strlen(s->id);

    if (ngx_http_toolgate_session_create(r->pool, r->connection->log, s->conf->redis,
                                         &s->key, s->conf->retention, &s->agent,
                                         &s->user, &s->metadata,
                                         ngx_http_toolgate_sessions_created, s)
        != NGX_OK)
    {
        return ngx_http_toolgate_fault(&s->fault, "internal_error", NULL, NULL);
    }

    return NGX_AGAIN;
}


static void
ngx_http_toolgate_sessions_created(void *data,
    ngx_http_toolgate_session_answer_t *answer)
{
    ngx_http_toolgate_session_request_t *s = data;

    if (answer->state == NGX_HTTP_TOOLGATE_SESSION_OK) {
        answer->agent = s->agent;
        answer->user = s->user;
        answer->metadata = s->metadata;
    }

    ngx_http_toolgate_session_request_end(s,
                       ngx_http_toolgate_sessions_view(s, answer, NGX_HTTP_CREATED));
}


static void
ngx_http_toolgate_sessions_shown(void *data,
    ngx_http_toolgate_session_answer_t *answer)
{
    ngx_http_toolgate_session_request_t *s = data;

    ngx_http_toolgate_session_request_end(s,
                            ngx_http_toolgate_sessions_view(s, answer, NGX_HTTP_OK));
}


static void
ngx_http_toolgate_sessions_deleted(void *data,
    ngx_http_toolgate_session_answer_t *answer)
{
    ngx_http_toolgate_session_request_t *s = data;

    ngx_int_t                     rc;
    ngx_str_t                     none = ngx_null_string;
    ngx_http_toolgate_run_key_t   key;

    if (answer->state != NGX_HTTP_TOOLGATE_SESSION_OK) {
        rc = ngx_http_toolgate_session_request_refused(s, answer);
        ngx_http_toolgate_session_request_end(s, rc);
        return;
    }

    key.project = s->key.project;
    key.account = s->key.account;
    key.run = answer->run;

    if (answer->run.len
        && ngx_http_toolgate_run_store_cancel(s->request->pool, s->conf->redis, &key,
                                              &none, "cancelled", s->conf->retention,
                                              ngx_http_toolgate_sessions_run_ended, s)
           == NGX_OK)
    {
        return;
    }

    ngx_http_toolgate_session_request_end(s, ngx_http_toolgate_sessions_gone(s));
}


static void
ngx_http_toolgate_sessions_run_ended(void *data,
    ngx_http_toolgate_run_answer_t *answer)
{
    ngx_http_toolgate_session_request_t *s = data;

    ngx_http_toolgate_session_request_end(s, ngx_http_toolgate_sessions_gone(s));
}


static ngx_int_t
ngx_http_toolgate_sessions_gone(ngx_http_toolgate_session_request_t *s)
{
    char  text[128];

    snprintf(text, sizeof(text), "{\"id\":\"%.*s\",\"deleted\":true}",
             (int) s->key.session.len, (char *) s->key.session.data);

    return ngx_http_toolgate_reply(s->request, NGX_HTTP_OK, tg_str_of(text));
}


static ngx_int_t
ngx_http_toolgate_sessions_view(ngx_http_toolgate_session_request_t *s,
    ngx_http_toolgate_session_answer_t *answer, ngx_uint_t status)
{
    tg_buf_t   out;
    ngx_int_t  rc;

    if (answer->state != NGX_HTTP_TOOLGATE_SESSION_OK) {
        return ngx_http_toolgate_session_request_refused(s, answer);
    }

    tg_buf_init(&out, NGX_HTTP_TOOLGATE_REPLY_MAX);

    tg_buf_cstr(&out, "{\"id\":");
    ngx_http_toolgate_session_string(&out, &s->key.session);
    tg_buf_cstr(&out, ",\"object\":\"session\",\"created_at\":");
    tg_buf_int(&out, answer->created);
    tg_buf_cstr(&out, ",\"last_active_at\":");
    tg_buf_int(&out, answer->active);
    tg_buf_cstr(&out, ",\"agent\":");
    ngx_http_toolgate_session_string(&out, &answer->agent);
    tg_buf_cstr(&out, ",\"account_id\":");
    ngx_http_toolgate_session_string(&out, &s->key.account);
    tg_buf_cstr(&out, ",\"end_user\":");

    if (answer->user.len) {
        tg_buf_cstr(&out, "{\"external_id\":");
        ngx_http_toolgate_session_string(&out, &answer->user);
        tg_buf_char(&out, '}');

    } else {
        tg_buf_cstr(&out, "null");
    }

    tg_buf_cstr(&out, answer->flagged ? ",\"flagged\":true" : ",\"flagged\":false");
    tg_buf_cstr(&out, ",\"segment\":");
    tg_buf_int(&out, (int64_t) answer->segment);
    tg_buf_cstr(&out, ",\"message_count\":");
    tg_buf_int(&out, (int64_t) answer->count);
    tg_buf_cstr(&out, ",\"run\":");
    ngx_http_toolgate_session_string(&out, &answer->run);
    tg_buf_cstr(&out, ",\"metadata\":");

    if (answer->metadata.len) {
        tg_buf_append(&out, answer->metadata.data, answer->metadata.len);

    } else {
        tg_buf_cstr(&out, "{}");
    }

    tg_buf_char(&out, '}');

    rc = out.error == TG_OK
         ? ngx_http_toolgate_reply(s->request, status, tg_buf_get(&out))
         : ngx_http_toolgate_reply_error(s->request, "internal_error", NULL, NULL);

    tg_buf_free(&out);

    return rc;
}


void
ngx_http_toolgate_session_string(tg_buf_t *out, ngx_str_t *text)
{
    if (text->len == 0) {
        tg_buf_cstr(out, "null");
        return;
    }

    tg_buf_json_string(out, (tg_str_t) { text->len, (char *) text->data });
}


static ngx_str_t
ngx_http_toolgate_sessions_copy(ngx_pool_t *pool, tg_str_t text)
{
    ngx_str_t  copy;

    copy.len = text.len;
    copy.data = ngx_pnalloc(pool, text.len + 1);

    if (copy.data) {
        ngx_memcpy(copy.data, text.data, text.len);
        copy.data[text.len] = '\0';
    }

    return copy;
}
