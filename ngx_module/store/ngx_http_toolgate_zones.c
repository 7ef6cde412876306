/*
 * Reads the time zone files of this machine, all of them once: a worker must not
 * read files, and the API may name any zone later. What a file says is tg_zone's
 * business; hours and agents are not known here.
 */

#include "ngx_http_toolgate_zones.h"


#define NGX_HTTP_TOOLGATE_ZONES_DIR    "/usr/share/zoneinfo"
#define NGX_HTTP_TOOLGATE_ZONES_DEPTH  3         /* folders of a name */
#define NGX_HTTP_TOOLGATE_ZONES_PAST   366       /* days before now that count */

typedef struct {
    tg_zones_t  *zones;
    ngx_log_t   *log;
    u_char      *text;                           /* of the file being read */
    u_char       path[NGX_MAX_PATH];             /* the folder, later a file */
    size_t       root;                           /* where the name begins */
} ngx_http_toolgate_zones_t;


static ngx_int_t ngx_http_toolgate_zones_dir(ngx_http_toolgate_zones_t *load,
    size_t len, ngx_uint_t depth);
static ngx_int_t ngx_http_toolgate_zones_entry(ngx_http_toolgate_zones_t *load,
    size_t len, ngx_uint_t depth);
static ngx_int_t ngx_http_toolgate_zones_file(ngx_http_toolgate_zones_t *load,
    size_t len);
static ssize_t ngx_http_toolgate_zones_read(u_char *path, u_char *text);
static void ngx_http_toolgate_zones_cleanup(void *data);


/* What lies beside the zones: the same ones again, with leap seconds or without,
 * and two that name none. */
static const char *const  ngx_http_toolgate_zones_others[] = {
    "right", "posix", "localtime", "posixrules", NULL
};


ngx_int_t
ngx_http_toolgate_zones_load(ngx_conf_t *cf, tg_zones_t **zones)
{
    ngx_int_t                  rc;
    const char                *dir;
    ngx_pool_cleanup_t        *cln;
    ngx_http_toolgate_zones_t  load;

    *zones = NULL;
    dir = getenv("TZDIR");

    if (dir == NULL || dir[0] != '/') {
        dir = NGX_HTTP_TOOLGATE_ZONES_DIR;
    }

    load.log = cf->log;
    load.root = ngx_strlen(dir) + 1;

    if (load.root >= NGX_MAX_PATH) {
        return NGX_OK;
    }

    ngx_memcpy(load.path, dir, load.root);

    cln = ngx_pool_cleanup_add(cf->pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    load.zones = tg_zones_create((int64_t) ngx_time()
                                 - NGX_HTTP_TOOLGATE_ZONES_PAST * 24 * 3600);
    if (load.zones == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_toolgate_zones_cleanup;
    cln->data = load.zones;

    load.text = ngx_alloc(TG_ZONE_FILE_MAX + 1, cf->log);
    if (load.text == NULL) {
        return NGX_ERROR;
    }

    rc = ngx_http_toolgate_zones_dir(&load, load.root - 1, 1);

    ngx_free(load.text);

    if (tg_zones_count(load.zones)) {
        *zones = load.zones;
    }

    return rc;
}


static void
ngx_http_toolgate_zones_cleanup(void *data)
{
    tg_zones_free(data);
}


/* All entries of the folder whose path has this length. */
static ngx_int_t
ngx_http_toolgate_zones_dir(ngx_http_toolgate_zones_t *load, size_t len,
    ngx_uint_t depth)
{
    u_char     *name;
    size_t      n;
    ngx_int_t   rc;
    ngx_str_t   path;
    ngx_dir_t   dir;

    load->path[len] = '\0';
    path.len = len;
    path.data = load->path;

    if (ngx_open_dir(&path, &dir) == NGX_ERROR) {
        return NGX_OK;
    }

    rc = NGX_OK;

    while (rc == NGX_OK && ngx_read_dir(&dir) == NGX_OK) {
        name = ngx_de_name(&dir);
        n = ngx_de_namelen(&dir);

        if (name[0] == '.' || len + 1 + n >= NGX_MAX_PATH) {
            continue;
        }

        load->path[len] = '/';
        ngx_memcpy(load->path + len + 1, name, n);
        load->path[len + 1 + n] = '\0';

        rc = ngx_http_toolgate_zones_entry(load, len + 1 + n, depth);
    }

    (void) ngx_close_dir(&dir);

    return rc;
}


static ngx_int_t
ngx_http_toolgate_zones_entry(ngx_http_toolgate_zones_t *load, size_t len,
    ngx_uint_t depth)
{
    ngx_uint_t        i;
    ngx_file_info_t   fi;

    for (i = 0; ngx_http_toolgate_zones_others[i]; i++) {
        if (ngx_strcmp(load->path + load->root,
                       ngx_http_toolgate_zones_others[i]) == 0)
        {
            return NGX_OK;
        }
    }

    if (ngx_file_info(load->path, &fi) == NGX_FILE_ERROR) {
        return NGX_OK;
    }

    if (ngx_is_dir(&fi)) {
        return depth < NGX_HTTP_TOOLGATE_ZONES_DEPTH
               ? ngx_http_toolgate_zones_dir(load, len, depth + 1) : NGX_OK;
    }

    return ngx_is_file(&fi) ? ngx_http_toolgate_zones_file(load, len) : NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_zones_file(ngx_http_toolgate_zones_t *load, size_t len)
{
    tg_rc_e   rc;
    ssize_t   n;
    tg_str_t  name, text;

    n = ngx_http_toolgate_zones_read(load->path, load->text);

    /* lists and maps lie there too */

    if (n < 4 || ngx_memcmp(load->text, "TZif", 4) != 0) {
        return NGX_OK;
    }

    name.data = (char *) load->path + load->root;
    name.len = len - load->root;
    text.data = (char *) load->text;
    text.len = (size_t) n;

    rc = tg_zones_add(load->zones, name, text);

    if (rc == TG_E_NOMEM) {
        return NGX_ERROR;
    }

    if (rc != TG_OK) {
        ngx_log_error(NGX_LOG_NOTICE, load->log, 0,
                      "toolgate: \"%s\" is no time zone that can be used",
                      load->path);
    }

    return NGX_OK;
}


/* At most one byte more than a zone may have. */
static ssize_t
ngx_http_toolgate_zones_read(u_char *path, u_char *text)
{
    size_t    len;
    ssize_t   n;
    ngx_fd_t  fd;

    fd = ngx_open_file(path, NGX_FILE_RDONLY, NGX_FILE_OPEN, 0);

    if (fd == NGX_INVALID_FILE) {
        return NGX_ERROR;
    }

    len = 0;

    do {
        n = ngx_read_fd(fd, text + len, TG_ZONE_FILE_MAX + 1 - len);

        if (n > 0) {
            len += (size_t) n;
        }

    } while (n > 0 && len <= TG_ZONE_FILE_MAX);

    (void) ngx_close_file(fd);

    return n < 0 ? NGX_ERROR : (ssize_t) len;
}
