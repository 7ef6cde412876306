/*
 * What every runtime request has, whatever its face: a model or an agent that is to
 * answer, an account, an end user, and fields of small JSON. What a face alone knows
 * is in its own file; what an agent needs is in _check_agent.c.
 */

#include "ngx_http_toolgate_check.h"


#define NGX_HTTP_TOOLGATE_MODEL_NAME_MAX  128


static void ngx_http_toolgate_check_over(ngx_http_toolgate_check_t *c,
    ngx_int_t rc);
static ngx_int_t ngx_http_toolgate_check_name(ngx_http_toolgate_check_t *c);
static ngx_int_t ngx_http_toolgate_check_model(ngx_http_toolgate_check_t *c,
    ngx_str_t *name);
static ngx_int_t ngx_http_toolgate_check_invocation(ngx_http_toolgate_check_t *c);
static ngx_int_t ngx_http_toolgate_check_label(ngx_http_toolgate_check_t *c,
    ngx_str_t label, const char *param);
static ngx_int_t ngx_http_toolgate_check_later(ngx_http_toolgate_check_t *c);
static ngx_int_t ngx_http_toolgate_check_end_user(ngx_http_toolgate_check_t *c);
static ngx_int_t ngx_http_toolgate_check_account(ngx_http_toolgate_check_t *c);
static ngx_int_t ngx_http_toolgate_check_session(ngx_http_toolgate_check_t *c);
static void ngx_http_toolgate_check_resolved(void *data,
    ngx_http_toolgate_agent_t *agent, const char *code);
static ngx_int_t ngx_http_toolgate_check_found(ngx_http_toolgate_check_t *c,
    ngx_http_toolgate_agent_t *agent, const char *code);


void
ngx_http_toolgate_check(ngx_http_request_t *r, ngx_http_toolgate_body_t *body,
    const ngx_http_toolgate_face_t *face, ngx_http_toolgate_check_done_pt done)
{
    ngx_int_t                   rc;
    ngx_http_toolgate_check_t  *c;

    c = ngx_pcalloc(r->pool, sizeof(ngx_http_toolgate_check_t));
    if (c == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    c->request = r;
    c->body = body;
    c->done = done;
    c->run = ngx_http_toolgate_run_create(r, body->key->project, face);

    if (c->run == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    rc = ngx_http_toolgate_check_name(c);

    if (rc == NGX_OK) {
        rc = ngx_http_toolgate_check_later(c);
    }

    if (rc == NGX_OK) {
        rc = ngx_http_toolgate_check_end_user(c);
    }

    if (rc == NGX_OK) {
        rc = ngx_http_toolgate_check_account(c);
    }

    if (rc == NGX_OK) {
        rc = ngx_http_toolgate_check_session(c);
    }

    if (rc == NGX_OK) {
        rc = ngx_http_toolgate_check_invocation(c);
    }

    if (rc == NGX_OK) {
        rc = ngx_http_toolgate_check_model(c, &c->run->prompt.model);
    }

    if (rc != NGX_AGAIN) {
        ngx_http_toolgate_check_over(c, rc);
    }
}


void
ngx_http_toolgate_check_kept(ngx_http_request_t *r, ngx_http_toolgate_body_t *body,
    const ngx_http_toolgate_face_t *face, ngx_http_toolgate_kept_t *kept,
    ngx_http_toolgate_check_done_pt done, void *data)
{
    ngx_int_t                   rc;
    ngx_http_toolgate_check_t  *c;

    c = ngx_pcalloc(r->pool, sizeof(ngx_http_toolgate_check_t));

    if (c) {
        c->request = r;
        c->body = body;
        c->done = done;
        c->data = data;
        c->run = ngx_http_toolgate_run_create(r, kept->project, face);
    }

    if (c == NULL || c->run == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_CLOSE);
        return;
    }

    ngx_memcpy(c->run->id, kept->run.data, kept->run.len);
    c->run->detached = 1;
    c->run->end_user = json_incref(kept->end_user);
    c->run->prompt.account = kept->account;
    c->run->prompt.invocation = kept->invocation;
    c->run->approval_mode = kept->approval_mode;

    rc = ngx_http_toolgate_check_name(c);

    if (rc == NGX_OK) {
        rc = ngx_http_toolgate_check_session(c);
    }

    if (rc == NGX_OK) {
        c->run->prompt.stream = 0;
        rc = ngx_http_toolgate_check_model(c, &kept->agent);
    }

    if (rc != NGX_AGAIN) {
        ngx_http_toolgate_check_over(c, rc);
    }
}


/* It is known who answers, or what is wrong. */
static void
ngx_http_toolgate_check_over(ngx_http_toolgate_check_t *c, ngx_int_t rc)
{
    if (rc != NGX_OK && !c->run->detached) {
        ngx_http_toolgate_check_refuse(c);
        return;
    }

    if (rc != NGX_OK && c->code == NULL) {
        c->code = "internal_error";
    }

    c->done(c);
}


void
ngx_http_toolgate_check_refuse(ngx_http_toolgate_check_t *c)
{
    ngx_http_finalize_request(c->request,
        ngx_http_toolgate_reply_error(c->request,
                                      c->code ? c->code : "internal_error",
                                      c->message, c->param));
}


void
ngx_http_toolgate_check_prompt(ngx_http_toolgate_check_t *c)
{
    ngx_http_toolgate_prompt_t  *prompt;

    prompt = &c->run->prompt;

    prompt->body = c->body->data;
    prompt->len = c->body->len;
    prompt->cap = c->body->cap;
    prompt->scan = c->body->scan;
    prompt->owned = 1;

    c->body->data = NULL;
    c->body->scan = NULL;
}


ngx_int_t
ngx_http_toolgate_check_fault(ngx_http_toolgate_check_t *c, const char *code,
    const char *param, const char *message)
{
    c->code = code;
    c->message = message;

    if (param && param != c->param) {
        snprintf(c->param, sizeof(c->param), "%s", param);
    }

    return NGX_DECLINED;
}


const tg_scan_member_t *
ngx_http_toolgate_check_member(ngx_http_toolgate_check_t *c, const char *key)
{
    const tg_scan_member_t  *member;

    member = tg_scan_find(c->body->scan, (char *) c->body->data, key);

    /* null is as good as absent in OpenAI's requests */

    return (member && member->value.type != TG_SCAN_NULL) ? member : NULL;
}


ngx_int_t
ngx_http_toolgate_check_bool(ngx_http_toolgate_check_t *c, const char *key,
    ngx_uint_t *value)
{
    const tg_scan_member_t  *member;

    *value = 0;
    member = ngx_http_toolgate_check_member(c, key);

    if (member == NULL) {
        return NGX_OK;
    }

    if (member->value.type != TG_SCAN_TRUE && member->value.type != TG_SCAN_FALSE)
    {
        return ngx_http_toolgate_check_fault(c, "invalid_type", key,
                                             "This field is true or false.");
    }

    *value = (member->value.type == TG_SCAN_TRUE);

    return NGX_OK;
}


/* A small field as a tree; NULL with c->code unset when it is absent. */
json_t *
ngx_http_toolgate_check_tree(ngx_http_toolgate_check_t *c, const char *key,
    size_t max)
{
    json_t                  *tree;
    size_t                   len;
    tg_json_error_t          error;
    const tg_scan_member_t  *member;

    member = ngx_http_toolgate_check_member(c, key);

    if (member == NULL) {
        return NULL;
    }

    len = member->value.end - member->value.start;

    if (len > max) {
        (void) ngx_http_toolgate_check_fault(c, "invalid_value", key,
                                             "This field is too large.");
        return NULL;
    }

    tree = tg_json_load((tg_str_t) { len, (char *) c->body->data
                                          + member->value.start }, &error);

    if (tree == NULL) {
        (void) ngx_http_toolgate_check_fault(c, "invalid_value", key,
                                             error.reason);
    }

    return tree;
}


/* Who is to answer, and whether as a stream. */
static ngx_int_t
ngx_http_toolgate_check_name(ngx_http_toolgate_check_t *c)
{
    char                     name[NGX_HTTP_TOOLGATE_MODEL_NAME_MAX];
    ptrdiff_t                n;
    ngx_uint_t               stream, actions;
    const tg_scan_member_t  *member;

    if (tg_scan_top_type(c->body->scan) != TG_SCAN_OBJECT) {
        return ngx_http_toolgate_check_fault(c, "invalid_type", NULL,
                                             "The body is a JSON object.");
    }

    member = ngx_http_toolgate_check_member(c, "model");

    if (member == NULL) {
        return ngx_http_toolgate_check_fault(c, "missing_parameter", "model",
                                             NULL);
    }

    if (member->value.type != TG_SCAN_STRING) {
        return ngx_http_toolgate_check_fault(c, "invalid_type", "model",
                                             "\"model\" is a string.");
    }

    n = tg_scan_string((char *) c->body->data, member->value, name, sizeof(name));

    if (n <= 0) {
        return ngx_http_toolgate_check_fault(c, "model_not_found", "model", NULL);
    }

    c->run->prompt.model = ngx_http_toolgate_copy(c->request->pool,
                                                  (tg_str_t) { (size_t) n, name });
    if (c->run->prompt.model.data == NULL) {
        return NGX_ERROR;
    }

    if (ngx_http_toolgate_check_bool(c, "stream", &stream) != NGX_OK
        || ngx_http_toolgate_check_bool(c, "allow_actions", &actions) != NGX_OK)
    {
        return NGX_DECLINED;
    }

    c->run->prompt.stream = stream;
    c->run->prompt.allow_actions = actions;

    return NGX_OK;
}


/* Fields whose meaning this version could not keep: better no answer than one
 * that is given twice or to the wrong person. */
static ngx_int_t
ngx_http_toolgate_check_later(ngx_http_toolgate_check_t *c)
{
    ngx_uint_t  i;

    static const char *const  fields[] = {
        "test", NULL
    };

    for (i = 0; fields[i]; i++) {
        if (ngx_http_toolgate_check_member(c, fields[i])) {
            return ngx_http_toolgate_check_fault(c, "not_implemented", fields[i],
                                                 NULL);
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_check_end_user(ngx_http_toolgate_check_t *c)
{
    ngx_int_t                  rc;
    ngx_http_toolgate_fault_t  fault;

    rc = ngx_http_toolgate_end_user(c->request, c->body, &c->run->end_user, &fault);

    if (rc == NGX_DECLINED) {
        return ngx_http_toolgate_check_fault(c, fault.code, fault.param,
                                             fault.message);
    }

    return rc;
}


static ngx_int_t
ngx_http_toolgate_check_account(ngx_http_toolgate_check_t *c)
{
    ngx_int_t                  rc;
    ngx_http_toolgate_fault_t  fault;

    rc = ngx_http_toolgate_body_account(c->request, c->body, &c->run->prompt.account,
                                        &fault);

    if (rc == NGX_DECLINED) {
        return ngx_http_toolgate_check_fault(c, fault.code, fault.param,
                                             fault.message);
    }

    return rc;
}


/* The conversation that it is part of, and how. Which there are the store knows. */
static ngx_int_t
ngx_http_toolgate_check_session(ngx_http_toolgate_check_t *c)
{
    char                     buf[65];
    tg_str_t                 label;
    ptrdiff_t                n;
    ngx_uint_t               fresh;
    const tg_scan_member_t  *member;

    member = ngx_http_toolgate_check_member(c, "session_id");

    if (member && member->value.type != TG_SCAN_STRING) {
        return ngx_http_toolgate_check_fault(c, "invalid_type", "session_id",
                                             "\"session_id\" is a string.");
    }

    if (member) {
        n = tg_scan_string((char *) c->body->data, member->value, buf, sizeof(buf));
        label.data = buf;
        label.len = n > 0 ? (size_t) n : 0;

        if (!tg_id_label_valid(label)) {
            return ngx_http_toolgate_check_fault(c, "session_not_found", "session_id",
                                                 NULL);
        }

        c->run->prompt.session = ngx_http_toolgate_copy(c->request->pool, label);

        if (c->run->prompt.session.data == NULL) {
            return NGX_ERROR;
        }
    }

    if (ngx_http_toolgate_check_bool(c, "new_segment", &fresh) != NGX_OK) {
        return NGX_DECLINED;
    }

    c->run->prompt.new_segment = fresh;
    member = ngx_http_toolgate_check_member(c, "if_busy");

    if (member == NULL) {
        return NGX_OK;
    }

    n = tg_scan_string((char *) c->body->data, member->value, buf, sizeof(buf));
    label.data = buf;
    label.len = n > 0 ? (size_t) n : 0;

    c->run->prompt.reject_busy = tg_str_eq(label, tg_str("reject"));

    if (!c->run->prompt.reject_busy && !tg_str_eq(label, tg_str("supersede"))) {
        return ngx_http_toolgate_check_fault(c, "invalid_value", "if_busy",
                                             "\"if_busy\" is \"supersede\" or "
                                             "\"reject\".");
    }

    return NGX_OK;
}


/* The name that the caller gives the run, in any of three places. */
static ngx_int_t
ngx_http_toolgate_check_invocation(ngx_http_toolgate_check_t *c)
{
    char                     buf[65];
    json_t                  *own;
    tg_str_t                 text;
    ngx_str_t                label;
    ngx_int_t                rc;
    ptrdiff_t                n;
    const tg_scan_member_t  *member;

    label = ngx_http_toolgate_request_header(c->request, "x-toolgate-run");

    if (label.data
        && ngx_http_toolgate_check_label(c, label, "x-toolgate-run") != NGX_OK)
    {
        return NGX_DECLINED;
    }

    member = ngx_http_toolgate_check_member(c, "invocation_id");

    if (member) {
        n = tg_scan_string((char *) c->body->data, member->value, buf, sizeof(buf));
        label.data = (u_char *) buf;
        label.len = n > 0 ? (size_t) n : 0;

        if (ngx_http_toolgate_check_label(c, label, "invocation_id") != NGX_OK) {
            return NGX_DECLINED;
        }
    }

    c->run->prompt.metadata =
        ngx_http_toolgate_check_tree(c, "metadata",
                                     NGX_HTTP_TOOLGATE_SMALL_FIELD_MAX);
    if (c->code) {
        return NGX_DECLINED;
    }

    own = json_object_get(c->run->prompt.metadata, "agentengine");
    text = tg_json_get_string(own, "invocation_id");
    rc = NGX_OK;

    if (json_object_get(own, "invocation_id")) {
        label.data = (u_char *) text.data;
        label.len = text.len;
        rc = ngx_http_toolgate_check_label(c, label,
                                           "metadata.agentengine.invocation_id");
    }

    return rc;
}


static ngx_int_t
ngx_http_toolgate_check_label(ngx_http_toolgate_check_t *c, ngx_str_t label,
    const char *param)
{
    ngx_str_t  *known;

    known = &c->run->prompt.invocation;

    if (!tg_id_label_valid((tg_str_t) { label.len, (char *) label.data })) {
        return ngx_http_toolgate_check_fault(c, "invalid_value", param,
                                             "An invocation id is a string of 1 to "
                                             "64 of [A-Za-z0-9_.:-].");
    }

    if (known->len && (known->len != label.len
                       || ngx_memcmp(known->data, label.data, label.len) != 0))
    {
        return ngx_http_toolgate_check_fault(c, "invalid_value", param,
                                             "Two invocation ids are given, and "
                                             "they differ.");
    }

    *known = ngx_http_toolgate_copy(c->request->pool,
                                    (tg_str_t) { label.len, (char *) label.data });

    if (known->data == NULL) {
        return NGX_ERROR;
    }

    return ngx_http_toolgate_change_header(c->request, "x-toolgate-run", known);
}


/* An agent by name, id, name@draft or name@number; else a configured model. */
static ngx_int_t
ngx_http_toolgate_check_model(ngx_http_toolgate_check_t *c, ngx_str_t *name)
{
    ngx_int_t                   rc;
    const char                 *code;
    ngx_http_toolgate_agent_t  *agent;

    rc = ngx_http_toolgate_agent_ref(c->request, c->run->project, name, &agent,
                                     &code, ngx_http_toolgate_check_resolved, c);

    return rc == NGX_AGAIN ? rc : ngx_http_toolgate_check_found(c, agent, code);
}


static void
ngx_http_toolgate_check_resolved(void *data, ngx_http_toolgate_agent_t *agent,
    const char *code)
{
    ngx_http_toolgate_check_t *c = data;

    ngx_http_toolgate_check_over(c,
                                 ngx_http_toolgate_check_found(c, agent, code));
}


/* Whether bytes of chat can be passed on as they are, wherever this model is asked. */
static ngx_uint_t
ngx_http_toolgate_check_same_api(ngx_http_toolgate_model_t *model)
{
    ngx_uint_t                     i;
    ngx_http_toolgate_upstream_t  *upstream;

    if (model == NULL) {
        return 0;
    }

    upstream = model->upstreams.elts;

    for (i = 0; i < model->upstreams.nelts; i++) {
        if (upstream[i].responses) {
            return 0;
        }
    }

    return 1;
}


static ngx_int_t
ngx_http_toolgate_check_found(ngx_http_toolgate_check_t *c,
    ngx_http_toolgate_agent_t *agent, const char *code)
{
    if (code) {
        return ngx_http_toolgate_check_fault(c, code, "model", NULL);
    }

    if (agent) {
        c->run->agent = agent;
        c->run->model = agent->own_model
                        ? agent->own_model
                        : ngx_http_toolgate_model_find(c->request, &agent->model);

    } else {
        c->run->model = ngx_http_toolgate_model_find(c->request,
                                                     &c->run->prompt.model);
        c->run->relay = ngx_http_toolgate_check_same_api(c->run->model);
    }

    if (c->run->model == NULL) {
        return ngx_http_toolgate_check_fault(c, "model_not_found", "model", NULL);
    }

    if (c->run->agent == NULL) {
        if (c->run->prompt.invocation.len) {
            return ngx_http_toolgate_check_fault(c, "invalid_value",
                                                 "invocation_id",
                                                 "What is passed on to a model is "
                                                 "no run that is stored.");
        }

        if (c->run->prompt.session.len) {
            return ngx_http_toolgate_check_fault(c, "invalid_value", "session_id",
                                                 "A session is with an agent, and "
                                                 "this is a configured model.");
        }
    }

    return NGX_OK;
}
