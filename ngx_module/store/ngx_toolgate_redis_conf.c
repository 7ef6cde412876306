/*
 * The arguments of the directive that names a Redis server. Everything that
 * could fail later is refused here, with a sentence.
 */

#include "ngx_toolgate_redis.h"


static ngx_int_t ngx_toolgate_redis_url(ngx_conf_t *cf, ngx_str_t *url,
    ngx_toolgate_redis_conf_t *conf);
static ngx_int_t ngx_toolgate_redis_address(ngx_conf_t *cf, ngx_str_t *host,
    ngx_toolgate_redis_conf_t *conf);
static ngx_int_t ngx_toolgate_redis_param(ngx_conf_t *cf, ngx_str_t *param,
    ngx_toolgate_redis_conf_t *conf);
static ngx_int_t ngx_toolgate_redis_db(ngx_conf_t *cf, ngx_str_t *value,
    ngx_toolgate_redis_conf_t *conf);
static ngx_int_t ngx_toolgate_redis_prefix(ngx_conf_t *cf, ngx_str_t *value,
    ngx_toolgate_redis_conf_t *conf);
static ngx_int_t ngx_toolgate_redis_timeout(ngx_conf_t *cf, ngx_str_t *value,
    ngx_toolgate_redis_conf_t *conf);
static ngx_int_t ngx_toolgate_redis_password(ngx_conf_t *cf, ngx_str_t *value,
    ngx_toolgate_redis_conf_t *conf);
static ngx_int_t ngx_toolgate_redis_on_failure(ngx_conf_t *cf,
    ngx_str_t *value, ngx_toolgate_redis_conf_t *conf);


typedef struct {
    ngx_str_t    name;
    ngx_int_t  (*set)(ngx_conf_t *cf, ngx_str_t *value,
        ngx_toolgate_redis_conf_t *conf);
} ngx_toolgate_redis_param_t;

static const ngx_toolgate_redis_param_t  ngx_toolgate_redis_params[] = {
    { ngx_string("db="), ngx_toolgate_redis_db },
    { ngx_string("prefix="), ngx_toolgate_redis_prefix },
    { ngx_string("timeout="), ngx_toolgate_redis_timeout },
    { ngx_string("password_file="), ngx_toolgate_redis_password },
    { ngx_string("on_failure="), ngx_toolgate_redis_on_failure }
};

static const ngx_str_t  ngx_toolgate_redis_failures[] = {
    ngx_string("local"),         /* in the order of the enum */
    ngx_string("closed"),
    ngx_string("open")
};


char *
ngx_toolgate_redis_parse(ngx_conf_t *cf, ngx_toolgate_redis_conf_t *conf)
{
    ngx_str_t   *value;
    ngx_uint_t   i;

    value = cf->args->elts;

    ngx_memzero(conf, sizeof(ngx_toolgate_redis_conf_t));
    ngx_str_set(&conf->prefix, "tg:");
    conf->timeout = NGX_TOOLGATE_REDIS_TIMEOUT_MS;
    conf->on_failure = NGX_TOOLGATE_STORE_LOCAL;

    if (cf->args->nelts < 2) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%V\" needs an address",
                           &value[0]);
        return NGX_CONF_ERROR;
    }

    if (ngx_toolgate_redis_url(cf, &value[1], conf) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    for (i = 2; i < cf->args->nelts; i++) {
        if (ngx_toolgate_redis_param(cf, &value[i], conf) != NGX_OK) {
            return NGX_CONF_ERROR;
        }
    }

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_toolgate_redis_url(ngx_conf_t *cf, ngx_str_t *url,
    ngx_toolgate_redis_conf_t *conf)
{
    u_char     *slash;
    ngx_str_t   rest, db;

    rest = *url;

    conf->url = *url;

    if (rest.len > 5 && ngx_strncmp(rest.data, "unix:", 5) == 0) {
        conf->unix_path.data = rest.data + 5;
        conf->unix_path.len = rest.len - 5;

        if (conf->unix_path.data[0] != '/'
            || conf->unix_path.len > NGX_TOOLGATE_REDIS_PATH_MAX)
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "the Redis socket \"%V\" "
                               "has to be an absolute path of at most %d bytes",
                               url, NGX_TOOLGATE_REDIS_PATH_MAX);
            return NGX_ERROR;
        }

        return NGX_OK;
    }

    /* before the address is in a message */
    if (ngx_strlchr(rest.data, rest.data + rest.len, '@')) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "a Redis address has no user "
                           "or password: use password_file=");
        return NGX_ERROR;
    }

    if (rest.len > 9 && ngx_strncmp(rest.data, "rediss://", 9) == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%V\": TLS to Redis is not "
                           "supported: use a unix socket or a TLS tunnel", url);
        return NGX_ERROR;
    }

    if (rest.len > 8 && ngx_strncmp(rest.data, "redis://", 8) == 0) {
        rest.data += 8;
        rest.len -= 8;
    }

    slash = ngx_strlchr(rest.data, rest.data + rest.len, '/');

    if (slash) {
        db.data = slash + 1;
        db.len = rest.data + rest.len - db.data;
        rest.len = slash - rest.data;

        if (db.len && ngx_toolgate_redis_db(cf, &db, conf) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return ngx_toolgate_redis_address(cf, &rest, conf);
}


static ngx_int_t
ngx_toolgate_redis_address(ngx_conf_t *cf, ngx_str_t *host,
    ngx_toolgate_redis_conf_t *conf)
{
    ngx_url_t  u;

    ngx_memzero(&u, sizeof(ngx_url_t));
    u.url = *host;
    u.default_port = 6379;

    if (ngx_parse_url(cf->pool, &u) != NGX_OK || u.naddrs == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "%s in Redis address \"%V\"",
                           u.err ? u.err : "no address", &conf->url);
        return NGX_ERROR;
    }

    conf->host.data = ngx_pnalloc(cf->pool, NGX_SOCKADDR_STRLEN + 1);
    if (conf->host.data == NULL) {
        return NGX_ERROR;
    }

    /* hiredis would look a name up while the worker waits */
    conf->host.len = ngx_sock_ntop(u.addrs[0].sockaddr, u.addrs[0].socklen,
                                   conf->host.data, NGX_SOCKADDR_STRLEN, 0);
    conf->host.data[conf->host.len] = '\0';
    conf->port = u.port;

    return NGX_OK;
}


static ngx_int_t
ngx_toolgate_redis_param(ngx_conf_t *cf, ngx_str_t *param,
    ngx_toolgate_redis_conf_t *conf)
{
    ngx_str_t                          value;
    ngx_uint_t                         i;
    const ngx_toolgate_redis_param_t  *p;

    for (i = 0;
         i < sizeof(ngx_toolgate_redis_params)
             / sizeof(ngx_toolgate_redis_params[0]);
         i++)
    {
        p = &ngx_toolgate_redis_params[i];

        if (param->len >= p->name.len
            && ngx_strncmp(param->data, p->name.data, p->name.len) == 0)
        {
            value.data = param->data + p->name.len;
            value.len = param->len - p->name.len;

            return p->set(cf, &value, conf);
        }
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "unknown parameter \"%V\"", param);

    return NGX_ERROR;
}


static ngx_int_t
ngx_toolgate_redis_db(ngx_conf_t *cf, ngx_str_t *value,
    ngx_toolgate_redis_conf_t *conf)
{
    ngx_int_t  n;

    n = ngx_atoi(value->data, value->len);

    if (n == NGX_ERROR || n > NGX_TOOLGATE_REDIS_DB_MAX) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid Redis database \"%V\"", value);
        return NGX_ERROR;
    }

    conf->db = n;

    return NGX_OK;
}


/* braces would be taken for the hash tag, which is the key's own */
static ngx_int_t
ngx_toolgate_redis_prefix(ngx_conf_t *cf, ngx_str_t *value,
    ngx_toolgate_redis_conf_t *conf)
{
    size_t  i;

    if (value->len > NGX_TOOLGATE_REDIS_PREFIX_MAX) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "the Redis prefix \"%V\" is longer than %d bytes",
                           value, NGX_TOOLGATE_REDIS_PREFIX_MAX);
        return NGX_ERROR;
    }

    for (i = 0; i < value->len; i++) {
        if (value->data[i] <= 0x20 || value->data[i] >= 0x7f
            || value->data[i] == '{' || value->data[i] == '}')
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "the Redis prefix \"%V\" "
                               "has a brace, a space or no ASCII", value);
            return NGX_ERROR;
        }
    }

    conf->prefix = *value;

    return NGX_OK;
}


static ngx_int_t
ngx_toolgate_redis_timeout(ngx_conf_t *cf, ngx_str_t *value,
    ngx_toolgate_redis_conf_t *conf)
{
    ngx_int_t  ms;

    ms = ngx_parse_time(value, 0);

    if (ms == NGX_ERROR
        || ms < NGX_TOOLGATE_REDIS_TIMEOUT_MIN
        || ms > NGX_TOOLGATE_REDIS_TIMEOUT_MAX)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "the Redis timeout \"%V\" is "
                           "not between %dms and %dms", value,
                           NGX_TOOLGATE_REDIS_TIMEOUT_MIN,
                           NGX_TOOLGATE_REDIS_TIMEOUT_MAX);
        return NGX_ERROR;
    }

    conf->timeout = ms;

    return NGX_OK;
}


static ngx_int_t
ngx_toolgate_redis_on_failure(ngx_conf_t *cf, ngx_str_t *value,
    ngx_toolgate_redis_conf_t *conf)
{
    ngx_uint_t  i;

    for (i = NGX_TOOLGATE_STORE_LOCAL; i <= NGX_TOOLGATE_STORE_OPEN; i++) {
        if (value->len == ngx_toolgate_redis_failures[i].len
            && ngx_strncmp(value->data, ngx_toolgate_redis_failures[i].data,
                           value->len)
               == 0)
        {
            conf->on_failure = i;
            return NGX_OK;
        }
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "on_failure= is \"local\", "
                       "\"closed\" or \"open\", not \"%V\"", value);

    return NGX_ERROR;
}


/* the password is the file's one line */
static ngx_int_t
ngx_toolgate_redis_password(ngx_conf_t *cf, ngx_str_t *value,
    ngx_toolgate_redis_conf_t *conf)
{
    u_char    *p;
    ssize_t    n;
    ngx_fd_t   fd;

    if (ngx_conf_full_name(cf->cycle, value, 1) != NGX_OK) {
        return NGX_ERROR;
    }

    p = ngx_pnalloc(cf->pool, NGX_TOOLGATE_REDIS_PASSWORD_MAX + 3);
    if (p == NULL) {
        return NGX_ERROR;
    }

    fd = ngx_open_file(value->data, NGX_FILE_RDONLY, NGX_FILE_OPEN, 0);
    if (fd == NGX_INVALID_FILE) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           ngx_open_file_n " \"%V\" failed", value);
        return NGX_ERROR;
    }

    n = ngx_read_fd(fd, p, NGX_TOOLGATE_REDIS_PASSWORD_MAX + 3);

    if (ngx_close_file(fd) == NGX_FILE_ERROR) {
        ngx_conf_log_error(NGX_LOG_ALERT, cf, ngx_errno,
                           ngx_close_file_n " \"%V\" failed", value);
    }

    while (n > 0 && (p[n - 1] == LF || p[n - 1] == CR)) {
        n--;
    }

    if (n <= 0
        || n > NGX_TOOLGATE_REDIS_PASSWORD_MAX
        || ngx_strlchr(p, p + n, LF)
        || ngx_strlchr(p, p + n, '\0'))
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%V\" does not hold one "
                           "line of at most %d bytes", value,
                           NGX_TOOLGATE_REDIS_PASSWORD_MAX);
        return NGX_ERROR;
    }

    conf->password.data = p;
    conf->password.len = n;

    return NGX_OK;
}
