/*
 * Reads a file of /etc/hosts form while nginx reads its configuration: names that
 * need no DNS. A line that is not understood is an error with file and line. The
 * addresses are judged when they are used, not here.
 */

#include "ngx_toolgate_client.h"


#define NGX_TOOLGATE_HOSTS_FILE_MAX  (1024 * 1024)    /* bytes */
#define NGX_TOOLGATE_HOSTS_MAX       16384            /* names */


static ngx_int_t ngx_toolgate_hosts_read(ngx_conf_t *cf, ngx_str_t *file,
    ngx_str_t *text);
static ngx_int_t ngx_toolgate_hosts_line(ngx_conf_t *cf, ngx_str_t *line,
    ngx_array_t *hosts, const char **error);
static ngx_uint_t ngx_toolgate_hosts_word(ngx_str_t *line, ngx_str_t *word);
static ngx_int_t ngx_toolgate_hosts_name(ngx_conf_t *cf, ngx_str_t *word,
    ngx_str_t *name);


ngx_int_t
ngx_toolgate_hosts_load(ngx_conf_t *cf, ngx_str_t *file, ngx_array_t **hosts)
{
    u_char       *p, *last, *end;
    ngx_str_t     text, line;
    ngx_uint_t    number;
    const char   *error;
    ngx_array_t  *list;

    if (ngx_conf_full_name(cf->cycle, file, 1) != NGX_OK
        || ngx_toolgate_hosts_read(cf, file, &text) != NGX_OK)
    {
        return NGX_ERROR;
    }

    list = ngx_array_create(cf->pool, 16, sizeof(ngx_toolgate_host_t));
    if (list == NULL) {
        return NGX_ERROR;
    }

    last = text.data + text.len;
    number = 0;

    for (p = text.data; p < last; p = end + 1) {
        end = ngx_strlchr(p, last, '\n');
        if (end == NULL) {
            end = last;
        }

        number++;
        line.data = p;
        line.len = (size_t) (end - p);

        if (ngx_toolgate_hosts_line(cf, &line, list, &error) != NGX_OK) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "%s in \"%V\":%ui", error,
                               file, number);
            return NGX_ERROR;
        }
    }

    *hosts = list;

    return NGX_OK;
}


static ngx_int_t
ngx_toolgate_hosts_read(ngx_conf_t *cf, ngx_str_t *file, ngx_str_t *text)
{
    off_t             size;
    ssize_t           n;
    ngx_int_t         rc;
    ngx_file_t        in;
    ngx_file_info_t   info;

    ngx_memzero(&in, sizeof(ngx_file_t));
    in.name = *file;
    in.log = cf->log;

    in.fd = ngx_open_file(file->data, NGX_FILE_RDONLY, NGX_FILE_OPEN, 0);
    if (in.fd == NGX_INVALID_FILE) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           ngx_open_file_n " \"%V\" failed", file);
        return NGX_ERROR;
    }

    rc = NGX_ERROR;

    if (ngx_fd_info(in.fd, &info) == NGX_FILE_ERROR) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           ngx_fd_info_n " \"%V\" failed", file);
        goto done;
    }

    size = ngx_file_size(&info);

    if (!ngx_is_file(&info) || size > NGX_TOOLGATE_HOSTS_FILE_MAX) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" is no file of at most %d bytes", file,
                           NGX_TOOLGATE_HOSTS_FILE_MAX);
        goto done;
    }

    text->data = ngx_pnalloc(cf->pool, (size_t) size + 1);
    if (text->data == NULL) {
        goto done;
    }

    n = ngx_read_file(&in, text->data, (size_t) size, 0);

    if (n == NGX_ERROR) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           ngx_read_file_n " \"%V\" failed", file);
        goto done;
    }

    text->len = (size_t) n;
    rc = NGX_OK;

done:

    (void) ngx_close_file(in.fd);

    return rc;
}


/* "address name…", "#" begins a comment */
static ngx_int_t
ngx_toolgate_hosts_line(ngx_conf_t *cf, ngx_str_t *line, ngx_array_t *hosts,
    const char **error)
{
    u_char               *comment;
    ngx_str_t             word, name;
    tg_addr_t             addr;
    ngx_uint_t            names;
    ngx_toolgate_host_t  *host;

    comment = ngx_strlchr(line->data, line->data + line->len, '#');
    if (comment) {
        line->len = (size_t) (comment - line->data);
    }

    if (!ngx_toolgate_hosts_word(line, &word)) {
        return NGX_OK;
    }

    if (!tg_addr_parse((tg_str_t) { word.len, (char *) word.data }, &addr)) {
        *error = "invalid address";
        return NGX_ERROR;
    }

    for (names = 0; ngx_toolgate_hosts_word(line, &word); names++) {

        if (ngx_toolgate_hosts_name(cf, &word, &name) != NGX_OK) {
            *error = "invalid host name";
            return NGX_ERROR;
        }

        if (hosts->nelts >= NGX_TOOLGATE_HOSTS_MAX) {
            *error = "too many host names";
            return NGX_ERROR;
        }

        host = ngx_array_push(hosts);
        if (host == NULL) {
            *error = "no memory";
            return NGX_ERROR;
        }

        host->name = name;
        host->addr = addr;
    }

    if (names == 0) {
        *error = "address without a host name";
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* takes the next word off the line */
static ngx_uint_t
ngx_toolgate_hosts_word(ngx_str_t *line, ngx_str_t *word)
{
    size_t   start, end;
    u_char  *p = line->data;

    for (start = 0; start < line->len; start++) {
        if (p[start] != ' ' && p[start] != '\t' && p[start] != '\r') {
            break;
        }
    }

    for (end = start; end < line->len; end++) {
        if (p[end] == ' ' || p[end] == '\t' || p[end] == '\r') {
            break;
        }
    }

    word->data = p + start;
    word->len = end - start;

    line->data = p + end;
    line->len -= end;

    return word->len > 0;
}


/* the form that a parsed URL has: lower case, no final dot */
static ngx_int_t
ngx_toolgate_hosts_name(ngx_conf_t *cf, ngx_str_t *word, ngx_str_t *name)
{
    size_t  i, len;
    u_char  c;

    len = word->len;

    if (word->data[len - 1] == '.') {
        len--;
    }

    if (len == 0 || len > TG_URL_HOST_MAX) {
        return NGX_ERROR;
    }

    name->len = len;
    name->data = ngx_pnalloc(cf->pool, len);
    if (name->data == NULL) {
        return NGX_ERROR;
    }

    ngx_strlow(name->data, word->data, len);

    for (i = 0; i < len; i++) {
        c = name->data[i];

        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9')
            && c != '-' && c != '.' && c != '_')
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}
