/*
 * /agentengine/api/v1/<Action>: which action a path is, the fields of its request,
 * the run that it names, and the envelope of its answer.
 */

#include "ngx_http_toolgate_actions.h"


#define NGX_HTTP_TOOLGATE_ACTION_REPLY_MAX  (32 * 1024 * 1024)

typedef struct {
    ngx_str_t    name;
    ngx_uint_t   method;
    const char  *allow;
    void       (*handler)(ngx_http_toolgate_action_t *a);
} ngx_http_toolgate_action_entry_t;


static ngx_http_toolgate_action_entry_t *ngx_http_toolgate_action_entry(
    ngx_str_t *rest);
static ngx_int_t ngx_http_toolgate_action_get(ngx_http_toolgate_action_t *a);
static void ngx_http_toolgate_action_begin(ngx_http_toolgate_action_t *a);
static void ngx_http_toolgate_action_body(ngx_http_request_t *r,
    ngx_http_toolgate_body_t *body);
static ngx_int_t ngx_http_toolgate_action_fields(ngx_http_toolgate_action_t *a,
    ngx_http_toolgate_body_t *body);
static ngx_int_t ngx_http_toolgate_action_account(ngx_http_toolgate_action_t *a);
static ngx_int_t ngx_http_toolgate_action_string(ngx_http_toolgate_action_t *a,
    const char *name, ngx_str_t *value);
static ngx_str_t ngx_http_toolgate_action_request_id(ngx_http_request_t *r);
static void ngx_http_toolgate_action_free(void *data);


static ngx_http_toolgate_action_entry_t  ngx_http_toolgate_action_entries[] = {

    /* the others' fields are read first */
    { ngx_string("/RunAgent"), NGX_HTTP_POST, "POST", NULL },

    { ngx_string("/CancelRun"), NGX_HTTP_POST, "POST",
      ngx_http_toolgate_action_cancel },

    { ngx_string("/ResumeRun"), NGX_HTTP_POST, "POST",
      ngx_http_toolgate_action_resume },

    { ngx_string("/SubscribeRunEvents"), NGX_HTTP_GET, "GET",
      ngx_http_toolgate_action_subscribe },

    { ngx_string("/ListToolReceipts"), NGX_HTTP_POST, "POST",
      ngx_http_toolgate_action_receipts },

    { ngx_null_string, 0, NULL, NULL }
};


ngx_int_t
ngx_http_toolgate_actions(ngx_http_request_t *r, ngx_http_toolgate_key_t *key,
    ngx_str_t *rest)
{
    ngx_str_t                          allow;
    ngx_pool_cleanup_t                *cln;
    ngx_http_toolgate_action_t        *a;
    ngx_http_toolgate_main_conf_t     *tmcf;
    ngx_http_toolgate_action_entry_t  *entry;

    entry = ngx_http_toolgate_action_entry(rest);

    if (entry == NULL) {
        return ngx_http_toolgate_reply_error(r, "unknown_url", NULL, NULL);
    }

    if (!(r->method & entry->method)) {
        allow.data = (u_char *) entry->allow;
        allow.len = ngx_strlen(entry->allow);

        return ngx_http_toolgate_add_header(r, "Allow", &allow) == NGX_OK
               ? ngx_http_toolgate_reply_error(r, "method_not_allowed", NULL, NULL)
               : NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    tmcf = ngx_http_get_module_main_conf(r, ngx_http_toolgate_module);

    if (tmcf->redis == NULL || !ngx_toolgate_redis_up(tmcf->redis)) {
        return ngx_http_toolgate_reply_error(r, "store_unavailable", NULL, NULL);
    }

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_toolgate_action_t));
    if (cln == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    a = cln->data;
    ngx_memzero(a, sizeof(ngx_http_toolgate_action_t));
    cln->handler = ngx_http_toolgate_action_free;

    a->request = r;
    a->key = key;
    a->name.data = entry->name.data + 1;
    a->name.len = entry->name.len - 1;
    a->run.project = key->project->name;
    a->data = entry;

    return entry->method == NGX_HTTP_GET
           ? ngx_http_toolgate_action_get(a)
           : ngx_http_toolgate_body_read(r, key, ngx_http_toolgate_action_body, a);
}


static ngx_http_toolgate_action_entry_t *
ngx_http_toolgate_action_entry(ngx_str_t *rest)
{
    ngx_http_toolgate_action_entry_t  *entry;

    for (entry = ngx_http_toolgate_action_entries; entry->name.len; entry++) {

        if (ngx_http_toolgate_action_same(&entry->name, *rest)) {
            return entry;
        }
    }

    return NULL;
}


static void
ngx_http_toolgate_action_free(void *data)
{
    ngx_http_toolgate_action_t *a = data;

    json_decref(a->fields);
}


static ngx_int_t
ngx_http_toolgate_action_get(ngx_http_toolgate_action_t *a)
{
    ngx_int_t  rc;

    rc = ngx_http_discard_request_body(a->request);

    if (rc != NGX_OK) {
        return rc;
    }

    a->request->main->count++;
    ngx_http_toolgate_action_begin(a);

    return NGX_DONE;
}


static void
ngx_http_toolgate_action_body(ngx_http_request_t *r, ngx_http_toolgate_body_t *body)
{
    ngx_http_toolgate_action_t        *a = body->owner;
    ngx_http_toolgate_action_entry_t  *entry = a->data;

    if (entry->handler == NULL) {
        ngx_http_toolgate_action_run(a, body);
        return;
    }

    if (ngx_http_toolgate_action_fields(a, body) != NGX_OK) {
        ngx_http_toolgate_action_refuse(a);
        return;
    }

    ngx_http_toolgate_action_begin(a);
}


static void
ngx_http_toolgate_action_begin(ngx_http_toolgate_action_t *a)
{
    ngx_http_toolgate_action_entry_t  *entry = a->data;

    a->data = NULL;

    if (ngx_http_toolgate_action_account(a) != NGX_OK) {
        ngx_http_toolgate_action_refuse(a);
        return;
    }

    entry->handler(a);
}


static ngx_int_t
ngx_http_toolgate_action_fields(ngx_http_toolgate_action_t *a,
    ngx_http_toolgate_body_t *body)
{
    tg_json_error_t  error;

    if (body->len > NGX_HTTP_TOOLGATE_ACTION_BODY_MAX) {
        return ngx_http_toolgate_fault(&a->fault, "request_too_large", NULL, NULL);
    }

    a->fields = tg_json_load((tg_str_t) { body->len, (char *) body->data }, &error);

    if (!json_is_object(a->fields)) {
        return ngx_http_toolgate_fault(&a->fault, "invalid_type", NULL,
                                       "The body is a JSON object.");
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_action_account(ngx_http_toolgate_action_t *a)
{
    tg_str_t     account;
    ngx_str_t    header, field;
    const char  *code;

    if (ngx_http_toolgate_action_string(a, "AccountId", &field) != NGX_OK) {
        return NGX_DECLINED;
    }

    header = ngx_http_toolgate_request_header(a->request, "x-account-id");

    if (header.len && field.data
        && !ngx_http_toolgate_action_same(&header, field))
    {
        return ngx_http_toolgate_fault(&a->fault, "invalid_value", "AccountId",
                                       "The field and the header "
                                       "X-Account-Id differ.");
    }

    if (field.data == NULL) {
        field = header;
    }

    code = ngx_http_toolgate_auth_account(a->key,
                                          (tg_str_t) { field.len,
                                                       (char *) field.data },
                                          field.data != NULL, &account);
    if (code) {
        return ngx_http_toolgate_fault(&a->fault, code, "AccountId",
                                       ngx_strcmp(code, "invalid_value") == 0
                                       ? "\"AccountId\" is a string of 1 to "
                                       "64 of [A-Za-z0-9_.:-]."
                                       : NULL);
    }

    a->run.account.data = (u_char *) account.data;
    a->run.account.len = account.len;

    return NGX_OK;
}


/* A field of the body, else of the URL; data NULL: it is absent. */
static ngx_int_t
ngx_http_toolgate_action_string(ngx_http_toolgate_action_t *a, const char *name,
    ngx_str_t *value)
{
    json_t  *field;

    ngx_str_null(value);

    if (a->fields == NULL) {
        (void) ngx_http_toolgate_query_argument(a->request, name, value);
        return NGX_OK;
    }

    field = json_object_get(a->fields, name);

    if (field == NULL || json_is_null(field)) {
        return NGX_OK;
    }

    if (!json_is_string(field)) {
        return ngx_http_toolgate_fault(&a->fault, "invalid_type", name,
                                       "This field is a string.");
    }

    value->data = (u_char *) json_string_value(field);
    value->len = json_string_length(field);

    return NGX_OK;
}


ngx_int_t
ngx_http_toolgate_action_id(ngx_http_toolgate_action_t *a, const char *name,
    ngx_uint_t required, ngx_str_t *value)
{
    if (ngx_http_toolgate_action_string(a, name, value) != NGX_OK) {
        return NGX_DECLINED;
    }

    if (value->data == NULL) {
        return required
               ? ngx_http_toolgate_fault(&a->fault, "missing_parameter", name, NULL)
               : NGX_OK;
    }

    if (!tg_id_label_valid((tg_str_t) { value->len, (char *) value->data })) {
        return ngx_http_toolgate_fault(&a->fault, "invalid_value", name,
                                       "This field is a string of 1 to 64 "
                                       "of [A-Za-z0-9_.:-].");
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_toolgate_action_label(ngx_http_toolgate_action_t *a, const char *name,
    ngx_str_t *value)
{
    if (ngx_http_toolgate_action_string(a, name, value) != NGX_OK) {
        return NGX_DECLINED;
    }

    if (value->len > NGX_HTTP_TOOLGATE_ACTION_LABEL_MAX) {
        return ngx_http_toolgate_fault(&a->fault, "invalid_value", name,
                                       "This field is too long.");
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_toolgate_action_agent(ngx_http_toolgate_action_t *a, ngx_uint_t required)
{
    if (ngx_http_toolgate_action_label(a, "AgentId", &a->agent) != NGX_OK) {
        return NGX_DECLINED;
    }

    return required && a->agent.len == 0
           ? ngx_http_toolgate_fault(&a->fault, "missing_parameter", "AgentId", NULL)
           : NGX_OK;
}


ngx_int_t
ngx_http_toolgate_action_number(ngx_http_toolgate_action_t *a, const char *name,
    int64_t min, int64_t max, int64_t *number)
{
    off_t      n;
    json_t    *field;
    ngx_str_t  text;

    if (a->fields) {
        field = json_object_get(a->fields, name);

        if (field == NULL || json_is_null(field)) {
            return NGX_OK;
        }

        n = json_is_integer(field) ? (off_t) json_integer_value(field) : -1;

    } else {

        if (ngx_http_toolgate_query_argument(a->request, name, &text) != NGX_OK) {
            return NGX_OK;
        }

        n = ngx_atoof(text.data, text.len);
    }

    if (n < min || n > max) {
        return ngx_http_toolgate_fault(&a->fault, "invalid_value", name,
                                       "This field is a whole number that is "
                                       "too small, too large or none.");
    }

    *number = n;

    return NGX_OK;
}


void
ngx_http_toolgate_action_write(tg_buf_t *out, ngx_str_t *text)
{
    tg_buf_json_string(out, (tg_str_t) { text->len, (char *) text->data });
}


static ngx_str_t
ngx_http_toolgate_action_request_id(ngx_http_request_t *r)
{
    ngx_str_t                       id;
    ngx_http_variable_value_t      *vv;
    ngx_http_toolgate_main_conf_t  *tmcf;

    /* the router has made it */

    tmcf = ngx_http_get_module_main_conf(r, ngx_http_toolgate_module);
    vv = &r->variables[tmcf->request_id];

    id.data = vv->data;
    id.len = vv->len;

    return id;
}


void
ngx_http_toolgate_action_head(ngx_http_toolgate_action_t *a, tg_buf_t *out)
{
    ngx_str_t  id;

    id = ngx_http_toolgate_action_request_id(a->request);

    tg_buf_cstr(out, "{\"Code\":0,\"Message\":\"Success\",\"RequestId\":");
    tg_buf_json_string(out, (tg_str_t) { id.len, (char *) id.data });
    tg_buf_cstr(out, ",\"Data\":");
}


void
ngx_http_toolgate_action_tail(ngx_http_toolgate_action_t *a, tg_buf_t *out)
{
    tg_buf_cstr(out, ",\"Action\":");
    tg_buf_json_string(out, (tg_str_t) { a->name.len, (char *) a->name.data });
    tg_buf_char(out, '}');
}


void
ngx_http_toolgate_action_reply(ngx_http_toolgate_action_t *a, ngx_uint_t status,
    tg_buf_t *data)
{
    tg_buf_t   out;
    ngx_int_t  rc;

    tg_buf_init(&out, NGX_HTTP_TOOLGATE_ACTION_REPLY_MAX);

    ngx_http_toolgate_action_head(a, &out);
    tg_buf_str(&out, tg_buf_get(data));
    ngx_http_toolgate_action_tail(a, &out);

    rc = (data->error == TG_OK && out.error == TG_OK)
         ? ngx_http_toolgate_reply(a->request, status, tg_buf_get(&out))
         : ngx_http_toolgate_reply_error(a->request, "internal_error", NULL, NULL);

    tg_buf_free(&out);

    ngx_http_finalize_request(a->request, rc);
}


void
ngx_http_toolgate_action_refuse(ngx_http_toolgate_action_t *a)
{
    ngx_http_finalize_request(a->request,
        ngx_http_toolgate_reply_error(a->request, a->fault.code, a->fault.message,
                                      a->fault.param));
}
