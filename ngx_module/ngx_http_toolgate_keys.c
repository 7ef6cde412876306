/*
 * Key files: the first admin key and the master key. Read while nginx reads its
 * configuration; what is in them is never logged.
 */

#include "ngx_http_toolgate_module.h"


#define NGX_HTTP_TOOLGATE_KEY_FILE_MAX  4096
#define NGX_HTTP_TOOLGATE_KEY_MIN       16
#define NGX_HTTP_TOOLGATE_MASTER_LEN    32


static char *ngx_http_toolgate_read_key(ngx_conf_t *cf, ngx_str_t *name,
    ngx_str_t *key);
static char *ngx_http_toolgate_read_master(ngx_conf_t *cf, ngx_str_t *name,
    ngx_str_t *out);
static ngx_int_t ngx_http_toolgate_decode_hex(ngx_str_t *text, ngx_str_t *key);


char *
ngx_http_toolgate_admin_key(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_toolgate_main_conf_t  *tmcf = conf;

    char       *rv;
    ngx_str_t  *value;

    if (tmcf->admin_key.data) {
        return "is duplicate";
    }

    value = cf->args->elts;

    rv = ngx_http_toolgate_read_key(cf, &value[1], &tmcf->admin_key);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    if (tmcf->admin_key.len < NGX_HTTP_TOOLGATE_KEY_MIN) {
        return "has a key of less than 16 characters";
    }

    return NGX_CONF_OK;
}


char *
ngx_http_toolgate_master_key(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_toolgate_main_conf_t  *tmcf = conf;

    char       *rv;
    ngx_str_t  *value;

    if (tmcf->master_key.data) {
        return "is duplicate";
    }

    value = cf->args->elts;

    rv = ngx_http_toolgate_read_master(cf, &value[1], &tmcf->master_key);

    if (rv == NGX_CONF_OK && cf->args->nelts == 3) {
        rv = ngx_http_toolgate_read_master(cf, &value[2], &tmcf->previous_key);
    }

    return rv;
}


static char *
ngx_http_toolgate_read_master(ngx_conf_t *cf, ngx_str_t *name, ngx_str_t *out)
{
    char       *rv;
    ngx_str_t   text, key;

    rv = ngx_http_toolgate_read_key(cf, name, &text);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    key.data = ngx_pnalloc(cf->pool, ngx_base64_decoded_length(text.len) + 1);
    if (key.data == NULL) {
        return NGX_CONF_ERROR;
    }

    if (ngx_http_toolgate_decode_hex(&text, &key) != NGX_OK
        && (ngx_decode_base64(&key, &text) != NGX_OK
            || key.len != NGX_HTTP_TOOLGATE_MASTER_LEN))
    {
        return "needs a file with 32 bytes as 64 hex digits or as base64";
    }

    *out = key;

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_toolgate_decode_hex(ngx_str_t *text, ngx_str_t *key)
{
    ngx_int_t   n;
    ngx_uint_t  i;

    if (text->len != 2 * NGX_HTTP_TOOLGATE_MASTER_LEN) {
        return NGX_DECLINED;
    }

    for (i = 0; i < NGX_HTTP_TOOLGATE_MASTER_LEN; i++) {
        n = ngx_hextoi(text->data + 2 * i, 2);
        if (n == NGX_ERROR) {
            return NGX_DECLINED;
        }

        key->data[i] = (u_char) n;
    }

    key->len = NGX_HTTP_TOOLGATE_MASTER_LEN;

    return NGX_OK;
}


/* The first line of a file, without blanks around it. */
static char *
ngx_http_toolgate_read_key(ngx_conf_t *cf, ngx_str_t *name, ngx_str_t *key)
{
    u_char      buf[NGX_HTTP_TOOLGATE_KEY_FILE_MAX], *p, *last;
    ssize_t     n;
    ngx_fd_t    fd;
    ngx_str_t   file;

    file = *name;

    if (ngx_conf_full_name(cf->cycle, &file, 1) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    fd = ngx_open_file(file.data, NGX_FILE_RDONLY, NGX_FILE_OPEN, 0);

    if (fd == NGX_INVALID_FILE) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           ngx_open_file_n " \"%s\" failed", file.data);
        return NGX_CONF_ERROR;
    }

    n = ngx_read_fd(fd, buf, NGX_HTTP_TOOLGATE_KEY_FILE_MAX);
    ngx_close_file(fd);

    if (n <= 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%s\" is empty", file.data);
        return NGX_CONF_ERROR;
    }

    p = buf;
    last = buf + n;

    while (p < last && (*p == ' ' || *p == '\t')) {
        p++;
    }

    n = 0;
    while (p + n < last && p[n] > ' ' && p[n] < 0x7f) {
        n++;
    }

    if (n == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%s\" does not begin with a key", file.data);
        return NGX_CONF_ERROR;
    }

    key->len = n;
    key->data = ngx_pnalloc(cf->pool, n);
    if (key->data == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_memcpy(key->data, p, n);
    ngx_explicit_memzero(buf, sizeof(buf));

    return NGX_CONF_OK;
}
