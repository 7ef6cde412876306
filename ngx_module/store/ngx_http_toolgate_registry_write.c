/*
 * Writing objects: several at once, all or none, then taking in what was written,
 * so that the caller's next look sees it. Also reading one frozen version.
 */

#include "ngx_http_toolgate_registry_internal.h"

#include "ngx_toolgate_scripts.h"


#define NGX_HTTP_TOOLGATE_CHANGES_MAX   8       /* objects of one write */
#define NGX_HTTP_TOOLGATE_CHANGE_PARTS  8       /* see conf/redis/objects_write.lua */


typedef struct {
    ngx_pool_t                    *pool;
    ngx_http_toolgate_written_pt   done;
    void                          *data;
    ngx_toolgate_redis_ticket_t   *ticket;
    const char                    *code;
} ngx_http_toolgate_write_t;

typedef struct {
    ngx_http_toolgate_version_pt   done;
    void                          *data;
    ngx_toolgate_redis_ticket_t   *ticket;
} ngx_http_toolgate_read_t;


static ngx_int_t ngx_http_toolgate_write_parts(ngx_pool_t *pool,
    ngx_http_toolgate_change_t *change, ngx_str_t *parts);
static ngx_int_t ngx_http_toolgate_write_name(ngx_pool_t *pool, ngx_str_t *out,
    const char *fmt, ...);
static void ngx_http_toolgate_write_answer(void *data, redisReply *reply);
static const char *ngx_http_toolgate_write_code(redisReply *reply);
static void ngx_http_toolgate_write_taken(void *data, ngx_uint_t up);
static void ngx_http_toolgate_write_cleanup(void *data);
static void ngx_http_toolgate_read_answer(void *data, redisReply *reply);
static void ngx_http_toolgate_read_cleanup(void *data);


ngx_int_t
ngx_http_toolgate_registry_write(ngx_pool_t *pool,
    ngx_http_toolgate_change_t *changes, ngx_uint_t n,
    ngx_http_toolgate_written_pt done, void *data)
{
    ngx_str_t                      argv[NGX_HTTP_TOOLGATE_REGISTRY_KEYS
                                        + NGX_HTTP_TOOLGATE_CHANGES_MAX
                                          * NGX_HTTP_TOOLGATE_CHANGE_PARTS];
    ngx_uint_t                     i, argc;
    ngx_pool_cleanup_t            *cln;
    ngx_http_toolgate_write_t     *write;
    ngx_http_toolgate_registry_t  *reg = &ngx_http_toolgate_the_registry;

    if (reg->pool == NULL || n > NGX_HTTP_TOOLGATE_CHANGES_MAX) {
        return NGX_ERROR;
    }

    ngx_memcpy(argv, reg->keys, sizeof(reg->keys));
    argc = NGX_HTTP_TOOLGATE_REGISTRY_KEYS;

    for (i = 0; i < n; i++) {
        if (ngx_http_toolgate_write_parts(pool, &changes[i], &argv[argc])
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        argc += NGX_HTTP_TOOLGATE_CHANGE_PARTS;
    }

    cln = ngx_pool_cleanup_add(pool, sizeof(ngx_http_toolgate_write_t));
    if (cln == NULL) {
        return NGX_ERROR;
    }

    write = cln->data;
    write->pool = pool;
    write->done = done;
    write->data = data;
    write->ticket = ngx_toolgate_redis_script(reg->conf->redis, reg->log,
                                              &ngx_toolgate_script_objects_write,
                                              NGX_HTTP_TOOLGATE_REGISTRY_KEYS,
                                              argc, argv,
                                              ngx_http_toolgate_write_answer,
                                              write);
    cln->handler = ngx_http_toolgate_write_cleanup;

    return write->ticket ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_http_toolgate_write_parts(ngx_pool_t *pool,
    ngx_http_toolgate_change_t *change, ngx_str_t *parts)
{
    ngx_str_t   *scope;
    const char  *word;

    static ngx_str_t  all = ngx_string("");

    word = ngx_http_toolgate_kind_word(change->kind);
    scope = (change->kind == NGX_HTTP_TOOLGATE_KIND_API_KEY)
            ? &all : &change->project->name;

    parts[0].data = (u_char *) change->verb;
    parts[0].len = ngx_strlen(change->verb);

    if (ngx_http_toolgate_write_name(pool, &parts[1], "%V/%s/%V",
                                     &change->project->name, word, &change->id)
        != NGX_OK
        || ngx_http_toolgate_write_name(pool, &parts[2], "%V/%s",
                                        &change->project->name, word)
           != NGX_OK
        || ngx_http_toolgate_write_name(pool, &parts[6], "%ui",
                                        (ngx_uint_t)
                                        NGX_HTTP_TOOLGATE_OBJECTS_MAX)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_str_null(&parts[3]);
    ngx_str_null(&parts[4]);
    ngx_str_null(&parts[5]);

    if ((change->unique.len
         && ngx_http_toolgate_write_name(pool, &parts[3], "%V/%s/%V", scope, word,
                                         &change->unique)
            != NGX_OK)
        || (change->before.len
            && ngx_http_toolgate_write_name(pool, &parts[4], "%V/%s/%V", scope,
                                            word, &change->before)
               != NGX_OK)
        || (change->expected
            && ngx_http_toolgate_write_name(pool, &parts[5], "%ui",
                                            change->expected)
               != NGX_OK))
    {
        return NGX_ERROR;
    }

    parts[7].data = (u_char *) change->doc.data;
    parts[7].len = change->doc.len;

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_write_name(ngx_pool_t *pool, ngx_str_t *out, const char *fmt, ...)
{
    u_char   *p;
    va_list   args;

    out->data = ngx_pnalloc(pool, NGX_HTTP_TOOLGATE_OBJECT_NAME_MAX);
    if (out->data == NULL) {
        return NGX_ERROR;
    }

    va_start(args, fmt);
    p = ngx_vslprintf(out->data, out->data + NGX_HTTP_TOOLGATE_OBJECT_NAME_MAX, fmt,
                      args);
    va_end(args);

    out->len = p - out->data;

    return out->len < NGX_HTTP_TOOLGATE_OBJECT_NAME_MAX ? NGX_OK : NGX_ERROR;
}


static void
ngx_http_toolgate_write_answer(void *data, redisReply *reply)
{
    ngx_http_toolgate_write_t *write = data;

    write->ticket = NULL;
    write->code = ngx_http_toolgate_write_code(reply);

    /* also after a conflict: the caller may look at what is there now */

    if (ngx_http_toolgate_registry_refresh(write->pool,
                                           ngx_http_toolgate_write_taken, write)
        != NGX_OK)
    {
        write->done(write->data, "store_unavailable");
    }
}


static const char *
ngx_http_toolgate_write_code(redisReply *reply)
{
    ngx_uint_t  i;

    static const char *const  codes[] = {
        "version_conflict", "name_conflict", "too_many", "not_found", NULL
    };

    if (reply == NULL) {
        return "store_unavailable";
    }

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 1
        || reply->element[0]->type != REDIS_REPLY_STRING)
    {
        ngx_log_error(NGX_LOG_ERR, ngx_http_toolgate_the_registry.log, 0,
                      "toolgate: objects cannot be written: %s",
                      reply->type == REDIS_REPLY_ERROR ? reply->str : "no answer");
        return "store_unavailable";
    }

    if (ngx_strcmp(reply->element[0]->str, "ok") == 0) {
        return NULL;
    }

    for (i = 0; codes[i]; i++) {
        if (ngx_strcmp(reply->element[0]->str, codes[i]) == 0) {
            return codes[i];
        }
    }

    return "store_unavailable";
}


static void
ngx_http_toolgate_write_taken(void *data, ngx_uint_t up)
{
    ngx_http_toolgate_write_t *write = data;

    write->done(write->data,
                (write->code == NULL && !up) ? "store_unavailable" : write->code);
}


static void
ngx_http_toolgate_write_cleanup(void *data)
{
    ngx_http_toolgate_write_t  *write = data;

    if (write->ticket) {
        ngx_toolgate_redis_drop(write->ticket);
    }
}


ngx_int_t
ngx_http_toolgate_registry_version(ngx_pool_t *pool,
    ngx_http_toolgate_project_t *project, ngx_str_t *id, ngx_uint_t number,
    ngx_http_toolgate_version_pt done, void *data)
{
    ngx_str_t                      argv[3];
    ngx_pool_cleanup_t            *cln;
    ngx_http_toolgate_read_t      *read;
    ngx_http_toolgate_registry_t  *reg = &ngx_http_toolgate_the_registry;

    if (reg->pool == NULL) {
        return NGX_ERROR;
    }

    cln = ngx_pool_cleanup_add(pool, sizeof(ngx_http_toolgate_read_t));

    if (cln == NULL
        || ngx_http_toolgate_write_name(pool, &argv[2], "%V/agent/%V@%ui",
                                        &project->name, id, number)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_str_set(&argv[0], "HGET");
    argv[1] = reg->keys[NGX_HTTP_TOOLGATE_REGISTRY_KEYS - 1];

    read = cln->data;
    read->done = done;
    read->data = data;
    read->ticket = ngx_toolgate_redis_command(reg->conf->redis, reg->log, 3, argv,
                                              ngx_http_toolgate_read_answer, read);
    cln->handler = ngx_http_toolgate_read_cleanup;

    return read->ticket ? NGX_OK : NGX_ERROR;
}


static void
ngx_http_toolgate_read_answer(void *data, redisReply *reply)
{
    ngx_http_toolgate_read_t *read = data;

    json_t           *doc;
    tg_json_error_t   error;

    read->ticket = NULL;
    doc = NULL;

    if (reply && reply->type == REDIS_REPLY_STRING) {
        doc = tg_json_load((tg_str_t) { reply->len, reply->str }, &error);
    }

    read->done(read->data, doc, reply != NULL);
    json_decref(doc);
}


static void
ngx_http_toolgate_read_cleanup(void *data)
{
    ngx_http_toolgate_read_t  *read = data;

    if (read->ticket) {
        ngx_toolgate_redis_drop(read->ticket);
    }
}
