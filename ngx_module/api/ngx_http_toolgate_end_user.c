/*
 * On whose behalf a request is made: finds the token in the body or in the header and
 * has it verified with the keys of the caller's project. The token goes no further
 * than this file; what a run gets is the identity.
 */

#include "ngx_http_toolgate_api.h"
#include "ngx_http_toolgate_registry.h"


#define NGX_HTTP_TOOLGATE_END_USER_MAX  (64 * 1024)    /* bytes of the field */


static ngx_int_t ngx_http_toolgate_end_user_field(ngx_http_toolgate_body_t *body,
    const tg_scan_member_t *member, json_t **field, tg_str_t *token,
    ngx_http_toolgate_fault_t *fault);
static ngx_int_t ngx_http_toolgate_end_user_verify(ngx_http_toolgate_body_t *body,
    tg_str_t token, json_t **out, ngx_http_toolgate_fault_t *fault);


ngx_int_t
ngx_http_toolgate_end_user(ngx_http_request_t *r, ngx_http_toolgate_body_t *body,
    json_t **out, ngx_http_toolgate_fault_t *fault)
{
    json_t                  *field;
    tg_str_t                 token, sent;
    ngx_int_t                rc;
    ngx_str_t                header;
    const tg_scan_member_t  *member;

    *out = NULL;

    header = ngx_http_toolgate_request_header(r, "x-end-user-token");
    member = tg_scan_find(body->scan, (char *) body->data, "end_user");

    if (member && member->value.type == TG_SCAN_NULL) {
        member = NULL;
    }

    if (member == NULL && header.data == NULL) {
        return NGX_OK;
    }

    /* an empty header is a token that is not valid: somebody meant to send one */

    sent.data = (char *) header.data;
    sent.len = header.len;

    if (member == NULL) {
        return ngx_http_toolgate_end_user_verify(body, sent, out, fault);
    }

    rc = ngx_http_toolgate_end_user_field(body, member, &field, &token, fault);

    if (rc == NGX_OK && header.data && !tg_str_eq(token, sent)) {
        rc = ngx_http_toolgate_fault(fault, "invalid_value", "end_user",
                                              "The field and the header "
                                              "X-End-User-Token differ.");
    }

    if (rc == NGX_OK) {
        rc = ngx_http_toolgate_end_user_verify(body, token, out, fault);
    }

    json_decref(field);

    return rc;
}


/* *field owns what token points to. */
static ngx_int_t
ngx_http_toolgate_end_user_field(ngx_http_toolgate_body_t *body,
    const tg_scan_member_t *member, json_t **field, tg_str_t *token,
    ngx_http_toolgate_fault_t *fault)
{
    size_t            len;
    json_t           *value;
    tg_json_error_t   error;

    *field = NULL;
    len = member->value.end - member->value.start;

    if (len > NGX_HTTP_TOOLGATE_END_USER_MAX) {
        return ngx_http_toolgate_fault(fault, "invalid_end_user_token",
                                                "end_user",
                                                tg_jwt_fault_text(TG_JWT_TOO_LONG));
    }

    *field = tg_json_load((tg_str_t) { len, (char *) body->data
                                            + member->value.start }, &error);

    if (!json_is_object(*field)) {
        return ngx_http_toolgate_fault(fault, "invalid_type", "end_user",
                                                "\"end_user\" is an object: "
                                                "{\"token\": \"…\"}.");
    }

    value = json_object_get(*field, "token");

    if (value == NULL) {
        return ngx_http_toolgate_fault(fault, "missing_parameter",
                                                "end_user.token", NULL);
    }

    if (!json_is_string(value)) {
        return ngx_http_toolgate_fault(fault, "invalid_type",
                                                "end_user.token",
                                                "\"token\" is a string.");
    }

    /* a name or an id beside the token would look as if it had been verified */

    if (json_object_size(*field) != 1) {
        return ngx_http_toolgate_fault(fault, "invalid_value", "end_user",
                                                "\"end_user\" has nothing but its "
                                                "token, which says who the user "
                                                "is.");
    }

    token->data = json_string_value(value);
    token->len = json_string_length(value);

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_end_user_verify(ngx_http_toolgate_body_t *body, tg_str_t token,
    json_t **out, ngx_http_toolgate_fault_t *fault)
{
    tg_rc_e          rc;
    ngx_uint_t       count;
    tg_jwt_key_t    *keys[NGX_HTTP_TOOLGATE_USER_KEYS_MAX];
    tg_jwt_fault_e   why;

    count = ngx_http_toolgate_user_keys(body->key->project, keys);

    rc = tg_jwt_verify(token, keys, count, ngx_time(), out, &why);

    if (rc == TG_E_INVALID) {
        return ngx_http_toolgate_fault(fault, "invalid_end_user_token",
                                                "end_user", tg_jwt_fault_text(why));
    }

    return rc == TG_OK ? NGX_OK : NGX_ERROR;
}
