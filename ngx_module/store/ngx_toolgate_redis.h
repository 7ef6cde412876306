/*
 * Redis by hiredis on nginx's events: one connection a worker and server for
 * quick commands, made on first use, remade after a failure. Nothing waits over
 * the time-out; every command gets exactly one callback.
 * It knows nothing of what is stored.
 */

#ifndef NGX_TOOLGATE_REDIS_H
#define NGX_TOOLGATE_REDIS_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <stddef.h>
#include <hiredis/hiredis.h>


#define NGX_TOOLGATE_REDIS_TIMEOUT_MS    250
#define NGX_TOOLGATE_REDIS_RETRY_MS      1000      /* pause after a failed connect */
#define NGX_TOOLGATE_REDIS_MAX_PENDING   10000
#define NGX_TOOLGATE_REDIS_MAX_ARGS      1024

#define NGX_TOOLGATE_REDIS_TIMEOUT_MIN   10
#define NGX_TOOLGATE_REDIS_TIMEOUT_MAX   5000
#define NGX_TOOLGATE_REDIS_DB_MAX        65535
#define NGX_TOOLGATE_REDIS_PREFIX_MAX    64
#define NGX_TOOLGATE_REDIS_PASSWORD_MAX  512
#define NGX_TOOLGATE_REDIS_PATH_MAX      106       /* of sun_path */

typedef enum {
    NGX_TOOLGATE_STORE_LOCAL = 0,    /* count in the shared-memory zone */
    NGX_TOOLGATE_STORE_CLOSED,       /* refuse */
    NGX_TOOLGATE_STORE_OPEN          /* let pass */
} ngx_toolgate_store_failure_e;

/* From "toolgate_redis url [db=] [prefix=] [password_file=] [timeout=]
 * [on_failure=]"; read-only after the configuration. url is "unix:/path" or
 * "[redis://]host[:port][/db]"; a name is resolved once, at start. */
typedef struct {
    ngx_str_t                     url;         /* as written, for messages */
    ngx_str_t                     unix_path;   /* or */
    ngx_str_t                     host;        /* literal address, with */
    in_port_t                     port;
    ngx_uint_t                    db;
    ngx_str_t                     prefix;      /* "tg:" */
    ngx_str_t                     password;
    ngx_msec_t                    timeout;
    ngx_toolgate_store_failure_e  on_failure;
} ngx_toolgate_redis_conf_t;

/* A Lua script of conf/redis/, made by scripts/embed-lua. */
typedef struct {
    const char  *name;
    const char  *text;
    char         sha1[41];
} ngx_toolgate_script_t;

/* reply is NULL when the command could not be done in time (down, hanging,
 * reconnecting); an error reply of Redis is passed as it is. */
typedef void (*ngx_toolgate_redis_done_pt)(void *data, redisReply *reply);

typedef struct ngx_toolgate_redis_ticket_s  ngx_toolgate_redis_ticket_t;


/* Parses the directive's arguments (cf->args) into conf; reads password_file. */
char *ngx_toolgate_redis_parse(ngx_conf_t *cf, ngx_toolgate_redis_conf_t *conf);

ngx_int_t ngx_toolgate_redis_init_worker(ngx_cycle_t *cycle);
void ngx_toolgate_redis_exit_worker(ngx_cycle_t *cycle);

/*
 * Sends one command. done is called exactly once, from the event loop and never
 * from inside this call, unless ticket is dropped before. Returns NULL when out
 * of memory (done is then not called).
 */
ngx_toolgate_redis_ticket_t *ngx_toolgate_redis_command(
    ngx_toolgate_redis_conf_t *conf, ngx_log_t *log, ngx_uint_t argc,
    ngx_str_t *argv, ngx_toolgate_redis_done_pt done, void *data);

/* EVALSHA, once more as EVAL when Redis does not know the script. */
ngx_toolgate_redis_ticket_t *ngx_toolgate_redis_script(
    ngx_toolgate_redis_conf_t *conf, ngx_log_t *log,
    const ngx_toolgate_script_t *script, ngx_uint_t nkeys, ngx_uint_t argc,
    ngx_str_t *argv, ngx_toolgate_redis_done_pt done, void *data);

/*
 * The same for somebody who may go away: done is not called any more when pool is
 * destroyed. script NULL: argv is a whole command. NGX_ERROR: out of memory, and done
 * is not called.
 */
ngx_int_t ngx_toolgate_redis_ask(ngx_pool_t *pool, ngx_toolgate_redis_conf_t *conf,
    ngx_log_t *log, const ngx_toolgate_script_t *script, ngx_uint_t nkeys,
    ngx_uint_t argc, ngx_str_t *argv, ngx_toolgate_redis_done_pt done, void *data);

/* The caller is going away: done will not be called. */
void ngx_toolgate_redis_drop(ngx_toolgate_redis_ticket_t *ticket);

/* Whether the last thing heard from this server was good. */
ngx_uint_t ngx_toolgate_redis_up(ngx_toolgate_redis_conf_t *conf);

#endif /* NGX_TOOLGATE_REDIS_H */
