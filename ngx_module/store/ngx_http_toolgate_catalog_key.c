/*
 * Secrets and API keys of catalog files, and the first admin key. A secret's value
 * comes from a file of its own and is never logged; of an API key only the digest
 * is known.
 */

#include "ngx_http_toolgate_catalog.h"

#include <openssl/evp.h>


#define NGX_HTTP_TOOLGATE_SECRET_NAME_MAX   64
#define NGX_HTTP_TOOLGATE_SECRET_HOSTS_MAX  32


static ngx_int_t ngx_http_toolgate_catalog_secret_name(
    ngx_http_toolgate_catalog_t *cat, ngx_http_toolgate_secret_t *secret,
    const char *base);


static const char *const  ngx_http_toolgate_secret_keys[] = {
    "name", "value_file", "allowed_hosts", NULL
};

static const char *const  ngx_http_toolgate_api_key_keys[] = {
    "name", "sha256", "scopes", "account_id", NULL
};


ngx_int_t
ngx_http_toolgate_catalog_secret(ngx_http_toolgate_catalog_t *cat, json_t *value,
    ngx_uint_t i)
{
    char                         base[NGX_HTTP_TOOLGATE_POINTER_MAX];
    ngx_str_t                    file;
    ngx_http_toolgate_secret_t  *secret;

    ngx_http_toolgate_catalog_at(base, "/secrets/%u", (unsigned) i);

    secret = ngx_array_push(&cat->project->secrets);
    if (secret == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(secret, sizeof(ngx_http_toolgate_secret_t));

    if (ngx_http_toolgate_catalog_known(cat, value, base,
                                        ngx_http_toolgate_secret_keys) != NGX_OK
        || ngx_http_toolgate_catalog_string(cat, value, base, "name", 1,
                                            &secret->name) != NGX_OK
        || ngx_http_toolgate_catalog_string(cat, value, base, "value_file", 1,
                                            &file) != NGX_OK
        || ngx_http_toolgate_catalog_hosts(cat,
                                json_object_get(value, "allowed_hosts"), base,
                                secret)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ngx_http_toolgate_catalog_secret_name(cat, secret, base) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_toolgate_catalog_value_file(cat, &file, base, "value_file",
                                                &secret->value);
}


ngx_int_t
ngx_http_toolgate_catalog_value_file(ngx_http_toolgate_catalog_t *cat,
    ngx_str_t *file, const char *base, const char *key, ngx_str_t *out)
{
    u_char     *p, *last;
    ngx_int_t   rc;
    ngx_str_t   saved_file;
    tg_str_t    saved_text;

    if (ngx_conf_full_name(cat->cycle, file, 1) != NGX_OK) {
        return NGX_ERROR;
    }

    saved_file = cat->file;
    saved_text = cat->text;

    rc = ngx_http_toolgate_catalog_read(cat, file);

    p = (u_char *) cat->text.data;
    last = p + cat->text.len;

    cat->file = saved_file;
    cat->text = saved_text;

    if (rc != NGX_OK) {
        return ngx_http_toolgate_catalog_fault(cat, base, key, "invalid_value",
                                               "the file cannot be read");
    }

    /* a file ends in a line feed, a secret does not */

    while (last > p && (last[-1] == LF || last[-1] == CR)) {
        last--;
    }

    out->data = p;
    out->len = last - p;

    if (out->len == 0) {
        return ngx_http_toolgate_catalog_fault(cat, base, key, "invalid_value",
                                               "the value file is empty");
    }

    for ( /* void */ ; p < last; p++) {
        if (*p < 0x20 || *p == 0x7f) {
            return ngx_http_toolgate_catalog_fault(cat, base, key,
                                                   "invalid_value",
                                                   "the secret has control "
                                                   "characters");
        }
    }

    return NGX_OK;
}


ngx_uint_t
ngx_http_toolgate_secret_name_valid(ngx_str_t *name)
{
    u_char      c;
    ngx_uint_t  i;

    for (i = 0; i < name->len; i++) {
        c = name->data[i];

        if (!(c >= 'A' && c <= 'Z')
            && (i == 0 || (!(c >= '0' && c <= '9') && c != '_')))
        {
            return 0;
        }
    }

    return name->len > 0 && name->len <= NGX_HTTP_TOOLGATE_SECRET_NAME_MAX;
}


/* A name that a placeholder can have, and that no other secret has. */
static ngx_int_t
ngx_http_toolgate_catalog_secret_name(ngx_http_toolgate_catalog_t *cat,
    ngx_http_toolgate_secret_t *secret, const char *base)
{
    ngx_str_t                   *name;
    ngx_uint_t                   i;
    ngx_http_toolgate_secret_t  *other;

    name = &secret->name;

    if (!ngx_http_toolgate_secret_name_valid(name)) {
        return ngx_http_toolgate_catalog_fault(cat, base, "name", "invalid_value",
                                               "a secret's name matches "
                                               "^[A-Z][A-Z0-9_]{0,63}$");
    }

    other = cat->project->secrets.elts;

    for (i = 0; &other[i] != secret; i++) {
        if (other[i].name.len == name->len
            && ngx_memcmp(other[i].name.data, name->data, name->len) == 0)
        {
            return ngx_http_toolgate_catalog_fault(cat, base, "name",
                                                   "name_conflict",
                                                   "another secret has this "
                                                   "name");
        }
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_toolgate_catalog_hosts(ngx_http_toolgate_catalog_t *cat, json_t *hosts,
    const char *base, ngx_http_toolgate_secret_t *secret)
{
    char        pointer[NGX_HTTP_TOOLGATE_POINTER_MAX];
    u_char     *p;
    size_t      n, len;
    json_t     *value;

    ngx_http_toolgate_catalog_at(pointer, "%s/allowed_hosts", base);

    if (json_array_size(hosts) == 0
        || json_array_size(hosts) > NGX_HTTP_TOOLGATE_SECRET_HOSTS_MAX)
    {
        return ngx_http_toolgate_catalog_error(cat, pointer, "invalid_value",
                                               "a secret needs a list of the "
                                               "hosts that may get it, at most "
                                               "32");
    }

    secret->allowed_hosts = ngx_pcalloc(cat->pool,
                                        json_array_size(hosts) * sizeof(tg_str_t));
    if (secret->allowed_hosts == NULL) {
        return NGX_ERROR;
    }

    for (n = 0; n < json_array_size(hosts); n++) {
        value = json_array_get(hosts, n);
        len = json_string_length(value);

        if (!json_is_string(value) || len == 0
            || strpbrk(json_string_value(value), "*/ @") != NULL)
        {
            return ngx_http_toolgate_catalog_error(cat, pointer, "invalid_value",
                                                   "a host is \"name\" or "
                                                   "\"name:port\", without "
                                                   "wildcards");
        }

        p = ngx_pnalloc(cat->pool, len);
        if (p == NULL) {
            return NGX_ERROR;
        }

        ngx_strlow(p, (u_char *) json_string_value(value), len);

        if (p[len - 1] == '.') {
            len--;
        }

        secret->allowed_hosts[n].data = (char *) p;
        secret->allowed_hosts[n].len = len;
    }

    secret->allowed_host_count = n;

    return NGX_OK;
}


ngx_int_t
ngx_http_toolgate_catalog_key(ngx_http_toolgate_catalog_t *cat, json_t *value,
    ngx_uint_t i)
{
    char                      base[NGX_HTTP_TOOLGATE_POINTER_MAX];
    json_t                   *scopes;
    ngx_int_t                 n;
    ngx_str_t                 hex;
    ngx_uint_t                j, scope;
    ngx_http_toolgate_key_t  *key, *other;

    ngx_http_toolgate_catalog_at(base, "/api_keys/%u", (unsigned) i);

    key = ngx_array_push(&cat->objects->keys);
    if (key == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(key, sizeof(ngx_http_toolgate_key_t));
    key->project = cat->project;

    if (ngx_http_toolgate_catalog_known(cat, value, base,
                                        ngx_http_toolgate_api_key_keys) != NGX_OK
        || ngx_http_toolgate_catalog_string(cat, value, base, "name", 1,
                                            &key->name) != NGX_OK
        || ngx_http_toolgate_catalog_string(cat, value, base, "account_id", 0,
                                            &key->account) != NGX_OK
        || ngx_http_toolgate_catalog_string(cat, value, base, "sha256", 1, &hex)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    for (j = 0; j < NGX_HTTP_TOOLGATE_KEY_SHA256_LEN; j++) {
        n = hex.len == 2 * NGX_HTTP_TOOLGATE_KEY_SHA256_LEN
            ? ngx_hextoi(hex.data + 2 * j, 2) : NGX_ERROR;

        if (n == NGX_ERROR) {
            return ngx_http_toolgate_catalog_fault(cat, base, "sha256",
                                                   "invalid_value",
                                                   "\"sha256\" is 64 hex digits");
        }

        key->sha256[j] = (u_char) n;
    }

    if (key->account.len
        && !tg_id_label_valid((tg_str_t) { key->account.len,
                                           (char *) key->account.data }))
    {
        return ngx_http_toolgate_catalog_fault(cat, base, "account_id",
                                               "invalid_value",
                                               "\"account_id\" has 1 to 64 of "
                                               "[A-Za-z0-9_.:-]");
    }

    /* among those before it */

    cat->objects->keys.nelts--;
    other = ngx_http_toolgate_key_find(cat->objects, key->sha256);
    cat->objects->keys.nelts++;

    if (other) {
        return ngx_http_toolgate_catalog_fault(cat, base, "sha256",
                                               "name_conflict",
                                               "this is the digest of another "
                                               "key, too");
    }

    scopes = json_object_get(value, "scopes");

    for (j = 0; j < json_array_size(scopes); j++) {
        scope = ngx_http_toolgate_scope(
                    json_string_value(json_array_get(scopes, j)));
        key->scopes |= scope;

        if (scope == 0) {
            return ngx_http_toolgate_catalog_fault(cat, base, "scopes",
                                                   "invalid_value",
                                                   "scopes are admin, run, "
                                                   "approve and tools");
        }
    }

    if (key->scopes == 0) {
        return ngx_http_toolgate_catalog_fault(cat, base, "scopes",
                                               "invalid_value",
                                               "a key needs a list of scopes");
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_toolgate_catalog_admin_key(ngx_http_toolgate_catalog_t *cat)
{
    ngx_str_t                 name = ngx_string("default");
    ngx_http_toolgate_key_t  *key;

    cat->project = ngx_http_toolgate_project(cat->objects, &name,
                                             &cat->conf->master_key);
    if (cat->project == NULL) {
        return NGX_ERROR;
    }

    if (cat->conf->admin_key.len == 0) {
        return NGX_OK;
    }

    key = ngx_array_push(&cat->objects->keys);
    if (key == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(key, sizeof(ngx_http_toolgate_key_t));
    ngx_str_set(&key->name, "admin");
    key->project = cat->project;
    key->scopes = NGX_HTTP_TOOLGATE_SCOPE_ALL;
    key->root = 1;

    if (EVP_Digest(cat->conf->admin_key.data, cat->conf->admin_key.len,
                   key->sha256, NULL, EVP_sha256(), NULL) != 1)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}
