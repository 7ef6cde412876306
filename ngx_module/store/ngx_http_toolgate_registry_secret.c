/*
 * Secrets of the store: sealed under the master key and bound to their project and
 * name; opened only for the call that sends them, and wiped with its request.
 */

#include "ngx_http_toolgate_registry_internal.h"

#include "tg_secretbox.h"


static tg_str_t ngx_http_toolgate_seal_context(
    ngx_http_toolgate_project_t *project, const char *kind, ngx_str_t *id,
    u_char buf[NGX_HTTP_TOOLGATE_OBJECT_NAME_MAX]);
static ngx_int_t ngx_http_toolgate_secret_open(ngx_pool_t *pool,
    ngx_http_toolgate_object_t *object, ngx_array_t *secrets);
static ngx_int_t ngx_http_toolgate_secret_hosts(ngx_pool_t *pool, json_t *hosts,
    tg_template_secret_t *secret);
static void ngx_http_toolgate_secret_cleanup(void *data);


ngx_array_t *
ngx_http_toolgate_secrets(ngx_pool_t *pool, ngx_http_toolgate_project_t *project,
    const tg_template_t *template)
{
    ngx_uint_t                   i;
    ngx_queue_t                 *list, *q;
    ngx_array_t                 *secrets;
    tg_template_secret_t        *secret;
    ngx_http_toolgate_secret_t  *known;
    ngx_http_toolgate_object_t  *object;

    secrets = ngx_array_create(pool, 4, sizeof(tg_template_secret_t));
    if (secrets == NULL) {
        return NULL;
    }

    known = project->secrets.elts;

    for (i = 0; i < project->secrets.nelts; i++) {
        if (template
            && !tg_template_uses_secret(template, (tg_str_t) {
                                        known[i].name.len,
                                        (char *) known[i].name.data }))
        {
            continue;
        }

        secret = ngx_array_push(secrets);
        if (secret == NULL) {
            return NULL;
        }

        secret->name.data = (char *) known[i].name.data;
        secret->name.len = known[i].name.len;
        secret->value.data = (char *) known[i].value.data;
        secret->value.len = known[i].value.len;
        secret->allowed_hosts = known[i].allowed_hosts;
        secret->allowed_host_count = known[i].allowed_host_count;
    }

    list = ngx_http_toolgate_registry_list(project, NGX_HTTP_TOOLGATE_KIND_SECRET);

    for (q = list ? ngx_queue_head(list) : NULL; q && q != list;
         q = ngx_queue_next(q))
    {
        object = ngx_queue_data(q, ngx_http_toolgate_object_t, queue);

        if ((template == NULL
             || tg_template_uses_secret(template, (tg_str_t) { object->id.len,
                                        (char *) object->id.data }))
            && ngx_http_toolgate_secret_open(pool, object, secrets) != NGX_OK)
        {
            return NULL;
        }
    }

    return secrets;
}


ngx_http_toolgate_secret_t *
ngx_http_toolgate_secret_get(ngx_pool_t *pool,
    ngx_http_toolgate_project_t *project, ngx_str_t *name)
{
    ngx_array_t                 *opened;
    tg_template_secret_t        *one;
    ngx_http_toolgate_secret_t  *secret;
    ngx_http_toolgate_object_t  *object;

    secret = ngx_http_toolgate_secret_find(project, name);
    if (secret) {
        return secret;
    }

    object = ngx_http_toolgate_registry_get(project, NGX_HTTP_TOOLGATE_KIND_SECRET,
                                            name);
    opened = ngx_array_create(pool, 1, sizeof(tg_template_secret_t));
    secret = ngx_palloc(pool, sizeof(ngx_http_toolgate_secret_t));

    if (object == NULL || opened == NULL || secret == NULL
        || ngx_http_toolgate_secret_open(pool, object, opened) != NGX_OK
        || opened->nelts == 0)
    {
        return NULL;
    }

    one = opened->elts;
    secret->name.data = (u_char *) one->name.data;
    secret->name.len = one->name.len;
    secret->value.data = (u_char *) one->value.data;
    secret->value.len = one->value.len;
    secret->allowed_hosts = (tg_str_t *) one->allowed_hosts;
    secret->allowed_host_count = one->allowed_host_count;

    return secret;
}


/* One that cannot be opened is as good as none: the call is not made. */
static ngx_int_t
ngx_http_toolgate_secret_open(ngx_pool_t *pool, ngx_http_toolgate_object_t *object,
    ngx_array_t *secrets)
{
    tg_buf_t              *plain;
    ngx_pool_cleanup_t    *cln;
    tg_template_secret_t  *secret;

    cln = ngx_pool_cleanup_add(pool, sizeof(tg_buf_t));
    if (cln == NULL) {
        return NGX_ERROR;
    }

    plain = cln->data;
    tg_buf_init(plain, TG_SECRETBOX_PLAIN_MAX);
    cln->handler = ngx_http_toolgate_secret_cleanup;

    if (ngx_http_toolgate_unseal(object->project, "secret", &object->id,
                                 tg_json_get_string(object->doc, "value"), plain)
        != NGX_OK)
    {
        ngx_log_error(NGX_LOG_ERR, pool->log, 0,
                      "toolgate: secret \"%V\" of project \"%V\" cannot be "
                      "opened: was it stored under another master key?",
                      &object->id, &object->project->name);
        return NGX_OK;
    }

    secret = ngx_array_push(secrets);
    if (secret == NULL) {
        return NGX_ERROR;
    }

    secret->name.len = object->id.len;
    secret->name.data = (char *) ngx_pstrdup(pool, &object->id);
    secret->value = tg_buf_get(plain);

    return secret->name.data
           ? ngx_http_toolgate_secret_hosts(pool,
                                json_object_get(object->doc, "allowed_hosts"),
                                secret)
           : NGX_ERROR;
}


/* Copied: the object may change while the call is on its way. */
static ngx_int_t
ngx_http_toolgate_secret_hosts(ngx_pool_t *pool, json_t *hosts,
    tg_template_secret_t *secret)
{
    size_t     i, n;
    tg_str_t  *list;
    ngx_str_t  host;

    n = json_array_size(hosts);

    list = ngx_palloc(pool, (n + 1) * sizeof(tg_str_t));
    if (list == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < n; i++) {
        host.data = (u_char *) json_string_value(json_array_get(hosts, i));
        host.len = json_string_length(json_array_get(hosts, i));

        list[i].len = host.len;
        list[i].data = (char *) ngx_pstrdup(pool, &host);

        if (list[i].data == NULL) {
            return NGX_ERROR;
        }
    }

    secret->allowed_hosts = list;
    secret->allowed_host_count = n;

    return NGX_OK;
}


static void
ngx_http_toolgate_secret_cleanup(void *data)
{
    tg_secretbox_wipe(data);
}


static tg_str_t
ngx_http_toolgate_seal_context(ngx_http_toolgate_project_t *project,
    const char *kind, ngx_str_t *id, u_char buf[NGX_HTTP_TOOLGATE_OBJECT_NAME_MAX])
{
    u_char  *p;

    p = ngx_snprintf(buf, NGX_HTTP_TOOLGATE_OBJECT_NAME_MAX, "%V/%s/%V",
                     &project->name, kind, id);

    return (tg_str_t) { (size_t) (p - buf), (char *) buf };
}


ngx_int_t
ngx_http_toolgate_seal(ngx_http_toolgate_project_t *project, const char *kind,
    ngx_str_t *id, tg_str_t plain, tg_buf_t *out)
{
    u_char      buf[NGX_HTTP_TOOLGATE_OBJECT_NAME_MAX];
    u_char      nonce[TG_SECRETBOX_NONCE_LEN];
    ngx_str_t  *key;

    key = &ngx_http_toolgate_the_registry.conf->master_key;

    if (key->len != TG_SECRETBOX_KEY_LEN
        || ngx_http_toolgate_random(nonce, sizeof(nonce)) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return tg_secretbox_seal(key->data, nonce,
                             ngx_http_toolgate_seal_context(project, kind, id, buf),
                             plain, out)
           == TG_OK ? NGX_OK : NGX_ERROR;
}


ngx_int_t
ngx_http_toolgate_unseal(ngx_http_toolgate_project_t *project, const char *kind,
    ngx_str_t *id, tg_str_t sealed, tg_buf_t *plain)
{
    u_char                          buf[NGX_HTTP_TOOLGATE_OBJECT_NAME_MAX];
    tg_rc_e                         rc;
    ngx_str_t                      *key;
    ngx_http_toolgate_main_conf_t  *conf;

    conf = ngx_http_toolgate_the_registry.conf;
    key = &conf->master_key;

    if (conf->previous_key.len == TG_SECRETBOX_KEY_LEN
        && tg_secretbox_names_key(conf->previous_key.data, sealed))
    {
        key = &conf->previous_key;
    }

    if (key->len != TG_SECRETBOX_KEY_LEN) {
        return NGX_ERROR;
    }

    rc = tg_secretbox_open(key->data,
                           ngx_http_toolgate_seal_context(project, kind, id, buf),
                           sealed, plain);

    return rc == TG_OK ? NGX_OK : rc == TG_E_NOMEM ? NGX_ERROR : NGX_DECLINED;
}
