/*
 * POST /v1/chat/completions: checks what only chat requests have, and starts a run.
 * What all runtime requests have is in _check.c, how the answer looks in
 * _chat_face.c.
 */

#include "ngx_http_toolgate_chat.h"


#define NGX_HTTP_TOOLGATE_ROLES_AHEAD  16


static void ngx_http_toolgate_chat_body(ngx_http_request_t *r,
    ngx_http_toolgate_body_t *body);
static void ngx_http_toolgate_chat_start(ngx_http_toolgate_check_t *c);
static ngx_int_t ngx_http_toolgate_chat_options(ngx_http_toolgate_check_t *c);
static ngx_int_t ngx_http_toolgate_chat_role_fault(ngx_http_toolgate_check_t *c,
    const char *code, size_t i, const char *message);
static ngx_int_t ngx_http_toolgate_chat_agent(ngx_http_toolgate_check_t *c);
static ngx_int_t ngx_http_toolgate_chat_rewritten(ngx_http_toolgate_check_t *c);


ngx_int_t
ngx_http_toolgate_chat(ngx_http_request_t *r, ngx_http_toolgate_key_t *key,
    ngx_str_t *rest)
{
    return ngx_http_toolgate_body_read(r, key, ngx_http_toolgate_chat_body, NULL);
}


static void
ngx_http_toolgate_chat_body(ngx_http_request_t *r, ngx_http_toolgate_body_t *body)
{
    ngx_http_toolgate_check(r, body, &ngx_http_toolgate_chat_face,
                            ngx_http_toolgate_chat_start);
}


/* The rest, once it is known who answers. */
static void
ngx_http_toolgate_chat_start(ngx_http_toolgate_check_t *c)
{
    if (ngx_http_toolgate_chat_options(c) != NGX_OK
        || ngx_http_toolgate_chat_messages(c) != NGX_OK
        || (!c->run->relay && ngx_http_toolgate_chat_face_init(c->run) != NGX_OK)
        || (!c->run->relay && ngx_http_toolgate_chat_rewritten(c) != NGX_OK)
        || (c->run->agent && ngx_http_toolgate_chat_agent(c) != NGX_OK))
    {
        ngx_http_toolgate_check_refuse(c);
        return;
    }

    if (c->run->agent) {
        switch (ngx_http_toolgate_chat_continue(c)) {

        case NGX_OK:
            return;

        case NGX_ERROR:
            ngx_http_toolgate_check_refuse(c);
            return;

        default:
            break;
        }
    }

    ngx_http_toolgate_chat_begin(c);
}


void
ngx_http_toolgate_chat_begin(ngx_http_toolgate_check_t *c)
{
    ngx_http_toolgate_check_prompt(c);
    ngx_http_toolgate_run_start(c->run);
}


static ngx_int_t
ngx_http_toolgate_chat_options(ngx_http_toolgate_check_t *c)
{
    json_t  *options, *usage;

    options = ngx_http_toolgate_check_tree(c, "stream_options",
                                           NGX_HTTP_TOOLGATE_SMALL_FIELD_MAX);
    usage = json_object_get(options, "include_usage");
    c->run->prompt.include_usage = json_is_true(usage);

    if (c->code == NULL && options
        && (!json_is_object(options)
            || (usage && !json_is_boolean(usage) && !json_is_null(usage))))
    {
        (void) ngx_http_toolgate_check_fault(c, "invalid_type",
                                             "stream_options.include_usage",
                                             "\"include_usage\" is true or "
                                             "false.");
    }

    json_decref(options);

    return c->code ? NGX_DECLINED : NGX_OK;
}


ngx_int_t
ngx_http_toolgate_chat_messages(ngx_http_toolgate_check_t *c)
{
    char                      role[16];
    size_t                    i, n;
    ptrdiff_t                 len;
    const tg_scan_member_t   *member;
    const tg_scan_message_t  *message, *ahead;

    static const char *const  roles[] = {
        "system", "developer", "user", "assistant", "tool", "function", NULL
    };

    member = ngx_http_toolgate_check_member(c, "messages");

    if (member == NULL) {
        return ngx_http_toolgate_check_fault(c, "missing_parameter", "messages",
                                             NULL);
    }

    if (member->value.type != TG_SCAN_ARRAY) {
        return ngx_http_toolgate_check_fault(c, "invalid_type", "messages",
                                             "\"messages\" is a list.");
    }

    n = tg_scan_message_count(c->body->scan);

    if (n == 0) {
        return ngx_http_toolgate_check_fault(c, "invalid_value", "messages",
                                             "\"messages\" has at least one "
                                             "message.");
    }

    for (i = 0; i < n; i++) {
        message = tg_scan_message(c->body->scan, i);

        /* roles of a big body lie far apart and have left the cache */

        if (i + NGX_HTTP_TOOLGATE_ROLES_AHEAD < n) {
            ahead = tg_scan_message(c->body->scan,
                                    i + NGX_HTTP_TOOLGATE_ROLES_AHEAD);
            __builtin_prefetch(c->body->data + ahead->role.start);
        }

        if (message->whole.type != TG_SCAN_OBJECT) {
            snprintf(c->param, sizeof(c->param), "messages[%zu]", i);
            return ngx_http_toolgate_check_fault(c, "invalid_type", c->param,
                                                 "A message is an object.");
        }

        if (message->role.type == TG_SCAN_NONE) {
            return ngx_http_toolgate_chat_role_fault(c, "missing_parameter", i,
                                                     NULL);
        }

        if (message->role.type != TG_SCAN_STRING) {
            return ngx_http_toolgate_chat_role_fault(c, "invalid_type", i,
                                                     "\"role\" is a string.");
        }

        len = tg_scan_string((char *) c->body->data, message->role, role,
                             sizeof(role) - 1);
        role[len > 0 ? len : 0] = '\0';

        for (len = 0; roles[len]; len++) {
            if (ngx_strcmp(role, roles[len]) == 0) {
                break;
            }
        }

        if (roles[len] == NULL) {
            return ngx_http_toolgate_chat_role_fault(c, "invalid_value", i,
                                                     "This role is not known.");
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_chat_role_fault(ngx_http_toolgate_check_t *c,
    const char *code, size_t i, const char *message)
{
    snprintf(c->param, sizeof(c->param), "messages[%zu].role", i);

    return ngx_http_toolgate_check_fault(c, code, c->param, message);
}


static ngx_int_t
ngx_http_toolgate_chat_agent(ngx_http_toolgate_check_t *c)
{
    ngx_uint_t  store;

    if (ngx_http_toolgate_check_bool(c, "store", &store) != NGX_OK) {
        return NGX_DECLINED;
    }

    c->run->prompt.store = store
                           || ngx_http_toolgate_check_member(c, "store") == NULL;

    return ngx_http_toolgate_check_agent(c);
}


/* An answer that is put together here, of an agent or of a model whose places do not
 * all speak chat, is one answer, and its calls are tool calls. */
static ngx_int_t
ngx_http_toolgate_chat_rewritten(ngx_http_toolgate_check_t *c)
{
    const tg_scan_member_t  *n;

    n = ngx_http_toolgate_check_member(c, "n");

    if (n && (n->value.type != TG_SCAN_NUMBER
              || n->value.end - n->value.start != 1
              || c->body->data[n->value.start] != '1'))
    {
        return ngx_http_toolgate_check_fault(c, "invalid_value", "n",
                                             "There is one answer here: \"n\" is 1.");
    }

    if (ngx_http_toolgate_check_member(c, "functions")
        || ngx_http_toolgate_check_member(c, "function_call"))
    {
        return ngx_http_toolgate_check_fault(c, "invalid_value", "functions",
                                             "Use \"tools\" here, instead of "
                                             "\"functions\".");
    }

    return NGX_OK;
}
