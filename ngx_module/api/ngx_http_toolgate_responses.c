/*
 * POST /v1/responses: checks what only its requests have, has the body put into the
 * form of chat, and starts a run. How the answer looks is in _responses_face.c.
 */

#include "ngx_http_toolgate_responses.h"


static void ngx_http_toolgate_responses_body(ngx_http_request_t *r,
    ngx_http_toolgate_body_t *body);
static void ngx_http_toolgate_responses_begin(ngx_http_toolgate_check_t *c);
static ngx_int_t ngx_http_toolgate_responses_later(ngx_http_toolgate_check_t *c);
static void ngx_http_toolgate_responses_start(ngx_http_toolgate_check_t *c);


ngx_int_t
ngx_http_toolgate_responses(ngx_http_request_t *r, ngx_http_toolgate_key_t *key,
    ngx_str_t *rest)
{
    ngx_str_t  allow = ngx_string("POST");

    if (rest->len) {
        return ngx_http_toolgate_reply_error(r, "not_implemented", NULL, NULL);
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
    if (ngx_http_toolgate_responses_later(c) != NGX_OK
        || ngx_http_toolgate_responses_face_init(c) != NGX_OK)
    {
        ngx_http_toolgate_check_refuse(c);
        return;
    }

    ngx_http_toolgate_responses_prompt(c, ngx_http_toolgate_responses_start);
}


/* What needs responses to be kept: better no answer than a promise. */
static ngx_int_t
ngx_http_toolgate_responses_later(ngx_http_toolgate_check_t *c)
{
    ngx_uint_t  i, value;

    static const char *const  fields[] = {
        "previous_response_id", "conversation", NULL
    };

    static const char *const  switches[] = { "store", "background", NULL };

    for (i = 0; fields[i]; i++) {
        if (ngx_http_toolgate_check_member(c, fields[i])) {
            return ngx_http_toolgate_check_fault(c, "not_implemented", fields[i],
                                                 NULL);
        }
    }

    for (i = 0; switches[i]; i++) {
        if (ngx_http_toolgate_check_bool(c, switches[i], &value) != NGX_OK) {
            return NGX_DECLINED;
        }

        if (value) {
            return ngx_http_toolgate_check_fault(c, "not_implemented", switches[i],
                                                 NULL);
        }
    }

    c->run->prompt.store = (ngx_http_toolgate_check_member(c, "store") == NULL);

    return NGX_OK;
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

    ngx_http_toolgate_check_prompt(c);
    ngx_http_toolgate_run_start(c->run);
}
