/*
 * POST /v1/responses: checks what only its requests have, has the body put into the
 * form of chat, and starts a run. How the answer looks is in _responses_face.c.
 */

#include "ngx_http_toolgate_responses.h"


static void ngx_http_toolgate_responses_body(ngx_http_request_t *r,
    ngx_http_toolgate_body_t *body);
static void ngx_http_toolgate_responses_begin(ngx_http_toolgate_check_t *c);
static ngx_int_t ngx_http_toolgate_responses_session(
    ngx_http_toolgate_check_t *c);
static ngx_int_t ngx_http_toolgate_responses_store(ngx_http_toolgate_check_t *c,
    ngx_uint_t *keep);
static ngx_int_t ngx_http_toolgate_responses_previous(
    ngx_http_toolgate_check_t *c);
static void ngx_http_toolgate_responses_known(ngx_http_toolgate_check_t *c);
static void ngx_http_toolgate_responses_whole(ngx_http_toolgate_check_t *c);
static void ngx_http_toolgate_responses_start(ngx_http_toolgate_check_t *c);
static void ngx_http_toolgate_responses_new(ngx_http_toolgate_check_t *c);


ngx_int_t
ngx_http_toolgate_responses(ngx_http_request_t *r, ngx_http_toolgate_key_t *key,
    ngx_str_t *rest)
{
    ngx_str_t  allow = ngx_string("POST");

    if (rest->len) {
        return ngx_http_toolgate_responses_one(r, key, rest);
    }

    if (r->method != NGX_HTTP_POST) {
        if (ngx_http_toolgate_add_header(r, "Allow", &allow) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        return ngx_http_toolgate_reply_error(r, "method_not_allowed", NULL, NULL);
    }

    return ngx_http_toolgate_body_read(r, key, ngx_http_toolgate_responses_body,
                                       NULL);
}


static void
ngx_http_toolgate_responses_body(ngx_http_request_t *r,
    ngx_http_toolgate_body_t *body)
{
    ngx_http_toolgate_check(r, body, &ngx_http_toolgate_responses_face,
                            ngx_http_toolgate_responses_begin);
}


static void
ngx_http_toolgate_responses_begin(ngx_http_toolgate_check_t *c)
{
    ngx_uint_t                            keep, background;
    ngx_http_toolgate_responses_state_t  *state;

    keep = 0;
    background = 0;

    if (ngx_http_toolgate_responses_session(c) != NGX_OK
        || ngx_http_toolgate_check_bool(c, "background", &background) != NGX_OK
        || ngx_http_toolgate_responses_store(c, &keep) != NGX_OK
        || ngx_http_toolgate_responses_face_init(c, keep) != NGX_OK
        || ngx_http_toolgate_responses_previous(c) != NGX_OK)
    {
        ngx_http_toolgate_check_refuse(c);
        return;
    }

    state = c->run->face_data;
    state->background = background ? 1 : 0;

    if (state->previous.len) {
        ngx_http_toolgate_responses_chain(c, ngx_http_toolgate_responses_known);
        return;
    }

    ngx_http_toolgate_responses_known(c);
}


/* "conversation" is another name of a session: its id, or {"id"}. */
static ngx_int_t
ngx_http_toolgate_responses_session(ngx_http_toolgate_check_t *c)
{
    json_t     *tree, *id;
    tg_str_t    label;
    ngx_int_t   rc;
    ngx_str_t  *session;

    session = &c->run->prompt.session;
    tree = ngx_http_toolgate_check_tree(c, "conversation",
                                        NGX_HTTP_TOOLGATE_SMALL_FIELD_MAX);
    if (c->code) {
        return NGX_DECLINED;
    }

    rc = NGX_OK;
    id = json_is_object(tree) ? json_object_get(tree, "id") : tree;

    if (tree && !json_is_string(id)) {
        rc = ngx_http_toolgate_check_fault(c, "invalid_type", "conversation",
                                           "\"conversation\" is the id of a session, "
                                           "or an object with it as \"id\".");

    } else if (tree) {
        label.data = json_string_value(id);
        label.len = json_string_length(id);

        if (session->len && (session->len != label.len
                             || ngx_memcmp(session->data, label.data, label.len)
                                != 0))
        {
            rc = ngx_http_toolgate_check_fault(c, "invalid_value", "conversation",
                                               "\"conversation\" and \"session_id\" "
                                               "name two sessions.");

        } else if (!tg_id_label_valid(label)) {
            rc = ngx_http_toolgate_check_fault(c, "session_not_found",
                                               "conversation", NULL);

        } else {
            *session = ngx_http_toolgate_copy(c->request->pool, label);
            rc = session->data ? NGX_OK : NGX_ERROR;
        }
    }

    json_decref(tree);

    if (rc == NGX_OK && session->len
        && ngx_http_toolgate_check_member(c, "previous_response_id"))
    {
        return ngx_http_toolgate_check_fault(c, "invalid_value",
                                             "previous_response_id",
                                             "A session has its history: leave "
                                             "\"previous_response_id\" out.");
    }

    if (rc == NGX_OK && session->len && c->run->agent == NULL) {
        return ngx_http_toolgate_check_fault(c, "invalid_value", "conversation",
                                             "A session is with an agent, and this "
                                             "is a configured model.");
    }

    return rc;
}


/* Whether the response is kept: yes unless the request says no, or there is nowhere
 * to. */
static ngx_int_t
ngx_http_toolgate_responses_store(ngx_http_toolgate_check_t *c, ngx_uint_t *keep)
{
    ngx_uint_t  asked;

    if (ngx_http_toolgate_check_bool(c, "store", &asked) != NGX_OK) {
        return NGX_DECLINED;
    }

    if (asked && c->run->conf->redis == NULL) {
        return ngx_http_toolgate_check_fault(c, "store_unavailable", "store",
                                             "This server keeps nothing: it has no "
                                             "store. Send \"store\": false.");
    }

    *keep = (asked || ngx_http_toolgate_check_member(c, "store") == NULL)
            && c->run->conf->redis != NULL;

    /* of an agent's run there is a record as well */

    c->run->prompt.store = *keep && c->run->agent != NULL;

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_responses_previous(ngx_http_toolgate_check_t *c)
{
    char                                  id[TG_ID_MAX_LEN];
    tg_str_t                              text;
    ptrdiff_t                             n;
    const tg_scan_member_t               *member;
    ngx_http_toolgate_responses_state_t  *state = c->run->face_data;

    member = ngx_http_toolgate_check_member(c, "previous_response_id");

    if (member == NULL) {
        return NGX_OK;
    }

    if (c->run->conf->redis == NULL) {
        return ngx_http_toolgate_check_fault(c, "store_unavailable",
                                             "previous_response_id", NULL);
    }

    n = tg_scan_string((char *) c->body->data, member->value, id, sizeof(id));
    text.data = id;
    text.len = n < 0 ? 0 : (size_t) n;

    if (!tg_id_valid("resp_", text)) {
        return ngx_http_toolgate_check_fault(c, "not_found", "previous_response_id",
                                             NGX_HTTP_TOOLGATE_RESPONSES_UNKNOWN);
    }

    state->previous = ngx_http_toolgate_copy(c->request->pool, text);

    return state->previous.data ? NGX_OK : NGX_ERROR;
}


/* What was said before is known. */
static void
ngx_http_toolgate_responses_known(ngx_http_toolgate_check_t *c)
{
    ngx_http_toolgate_responses_refs(c, ngx_http_toolgate_responses_whole);
}


/* All that the store had to say is known. */
static void
ngx_http_toolgate_responses_whole(ngx_http_toolgate_check_t *c)
{
    ngx_http_toolgate_responses_prompt(c, ngx_http_toolgate_responses_start);
}


/* The body is in the form of chat. */
static void
ngx_http_toolgate_responses_start(ngx_http_toolgate_check_t *c)
{
    /* a model that is passed through answers in the form of chat as well */

    c->run->relay = 0;
    c->flat_tools = 1;

    if (c->run->agent && ngx_http_toolgate_check_agent(c) != NGX_OK) {
        ngx_http_toolgate_check_refuse(c);
        return;
    }

    ngx_http_toolgate_responses_continue(c, ngx_http_toolgate_responses_new);
}


/* A run that waits for nothing of it: it is a new one. */
static void
ngx_http_toolgate_responses_new(ngx_http_toolgate_check_t *c)
{
    ngx_http_toolgate_responses_state_t  *state = c->run->face_data;

    ngx_http_toolgate_check_prompt(c);

    if (state->background && ngx_http_toolgate_responses_detach(c) != NGX_OK) {
        ngx_http_toolgate_check_refuse(c);
        return;
    }
    ngx_http_toolgate_run_start(c->run);
}
