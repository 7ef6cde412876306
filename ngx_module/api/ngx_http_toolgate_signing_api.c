/*
 * /v1/tool_signing_secret: what HTTP tools verify our calls with, and its rotation.
 * Until it is rotated the first time it follows from the master key.
 */

#include "ngx_http_toolgate_control.h"

#include "tg_secretbox.h"


#define NGX_HTTP_TOOLGATE_SIGNING_BYTES  24


static void ngx_http_toolgate_signing_act(ngx_http_toolgate_control_t *c);
static void ngx_http_toolgate_signing_rotate(ngx_http_toolgate_control_t *c);
static json_t *ngx_http_toolgate_signing_doc(ngx_http_toolgate_control_t *c);
static ngx_int_t ngx_http_toolgate_signing_seal(ngx_http_toolgate_control_t *c,
    json_t *holder, ngx_str_t *secret);
static void ngx_http_toolgate_signing_reply(ngx_http_toolgate_control_t *c);


static ngx_str_t  ngx_http_toolgate_signing_id = ngx_string("secret");


ngx_int_t
ngx_http_toolgate_signing_secret(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_str_t *rest)
{
    return ngx_http_toolgate_control(r, key, rest, ngx_http_toolgate_signing_act,
                                     NULL);
}


static void
ngx_http_toolgate_signing_act(ngx_http_toolgate_control_t *c)
{
    ngx_uint_t  rotate;

    rotate = (c->rest.len == 7 && ngx_memcmp(c->rest.data, "/rotate", 7) == 0);

    if (c->rest.len && !rotate) {
        ngx_http_toolgate_control_error(c, "unknown_url", NULL, NULL);

    } else if (!c->project->can_sign) {
        ngx_http_toolgate_control_error(c, "not_found",
                                        "There is no signing secret: "
                                        "\"toolgate_master_key\" is not set, or "
                                        "is not the one that the secret was "
                                        "stored under.", NULL);

    } else if (rotate && c->request->method == NGX_HTTP_POST) {
        ngx_http_toolgate_signing_rotate(c);

    } else if (!rotate && c->request->method == NGX_HTTP_GET) {
        ngx_http_toolgate_signing_reply(c);

    } else {
        ngx_http_toolgate_control_method(c, rotate ? "POST" : "GET");
    }
}


static void
ngx_http_toolgate_signing_rotate(ngx_http_toolgate_control_t *c)
{
    json_t                      *doc;
    ngx_http_toolgate_object_t  *old;
    ngx_http_toolgate_change_t  *change;

    doc = ngx_http_toolgate_signing_doc(c);
    change = ngx_pcalloc(c->request->pool, sizeof(ngx_http_toolgate_change_t));

    if (doc == NULL || change == NULL) {
        json_decref(doc);
        ngx_http_toolgate_control_error(c, "internal_error", NULL, NULL);
        return;
    }

    old = ngx_http_toolgate_registry_get(c->project,
                                         NGX_HTTP_TOOLGATE_KIND_SIGNING,
                                         &ngx_http_toolgate_signing_id);

    change->verb = old ? "update" : "create";
    change->kind = NGX_HTTP_TOOLGATE_KIND_SIGNING;
    change->project = c->project;
    change->id = ngx_http_toolgate_signing_id;
    change->expected = old ? old->version : 0;
    change->doc = ngx_http_toolgate_control_dump(c, doc);

    json_decref(doc);

    if (change->doc.data) {
        ngx_http_toolgate_control_write(c, change, 1,
                                        ngx_http_toolgate_signing_reply);
    }
}


/* A new secret, and the one until now for as long as both are signed with. */
static json_t *
ngx_http_toolgate_signing_doc(ngx_http_toolgate_control_t *c)
{
    u_char       random[NGX_HTTP_TOOLGATE_SIGNING_BYTES];
    u_char       text[TG_SIGN_SECRET_MAX];
    json_t      *doc, *previous;
    ngx_str_t    raw, encoded, secret;
    json_int_t   now;

    ngx_http_toolgate_main_conf_t  *tmcf;

    tmcf = ngx_http_get_module_main_conf(c->request, ngx_http_toolgate_module);

    if (ngx_http_toolgate_random(random, sizeof(random)) != NGX_OK) {
        return NULL;
    }

    raw.data = random;
    raw.len = sizeof(random);
    ngx_memcpy(text, "whsec_", 6);
    encoded.data = text + 6;
    ngx_encode_base64(&encoded, &raw);
    secret.data = text;
    secret.len = 6 + encoded.len;

    now = (json_int_t) ngx_time();
    doc = json_pack("{s:I,s:{s:I}}", "created_at", now, "previous", "expires_at",
                    now + (json_int_t) tmcf->rotation_overlap);
    previous = json_object_get(doc, "previous");

    if (doc == NULL
        || ngx_http_toolgate_signing_seal(c, doc, &secret) != NGX_OK
        || ngx_http_toolgate_signing_seal(c, previous,
                                          &c->project->signing_secret) != NGX_OK)
    {
        json_decref(doc);
        doc = NULL;
    }

    ngx_explicit_memzero(random, sizeof(random));
    ngx_explicit_memzero(text, sizeof(text));

    return doc;
}


static ngx_int_t
ngx_http_toolgate_signing_seal(ngx_http_toolgate_control_t *c, json_t *holder,
    ngx_str_t *secret)
{
    tg_buf_t   sealed;
    ngx_int_t  rc;

    tg_buf_init(&sealed, 4096);

    rc = ngx_http_toolgate_seal(c->project, "signing",
                                &ngx_http_toolgate_signing_id,
                                (tg_str_t) { secret->len, (char *) secret->data },
                                &sealed);

    if (rc == NGX_OK) {
        (void) json_object_set_new(holder, "secret",
                                   json_stringn(sealed.data, sealed.len));
    }

    tg_buf_free(&sealed);

    return rc;
}


static void
ngx_http_toolgate_signing_reply(ngx_http_toolgate_control_t *c)
{
    json_t                       *previous;
    ngx_http_toolgate_project_t  *project;

    project = c->project;
    previous = json_null();

    if (project->previous_expires > ngx_time()) {
        previous = json_pack("{s:s%,s:I}", "secret",
                             project->previous_secret.data,
                             project->previous_secret.len, "expires_at",
                             (json_int_t) project->previous_expires);
    }

    ngx_http_toolgate_control_reply(c, NGX_HTTP_OK,
        json_pack("{s:s%,s:I,s:o}", "secret", project->signing_secret.data,
                  project->signing_secret.len, "created_at",
                  (json_int_t) project->signing_created, "previous", previous));
}
