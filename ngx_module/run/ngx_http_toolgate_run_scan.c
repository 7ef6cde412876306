/*
 * Finds runs that nobody drives any more, because a worker or a node has died, and
 * those that have waited for their caller for too long; and has a run driven on this
 * node, by a request to its own run host. Who asks first takes it: the store decides.
 */

#include "ngx_http_toolgate_run.h"

#include <sys/un.h>


#define NGX_HTTP_TOOLGATE_SCAN_MS        1000
#define NGX_HTTP_TOOLGATE_SCAN_RUNS      16      /* looked at at once */
#define NGX_HTTP_TOOLGATE_SCAN_AGAIN_MS  5000    /* when nobody has taken it by then */
#define NGX_HTTP_TOOLGATE_KICK_MAX       1024


typedef struct {
    ngx_pool_t                     *pool;        /* of this question alone */
    ngx_http_toolgate_main_conf_t  *conf;
    ngx_http_toolgate_run_key_t     key;
} ngx_http_toolgate_look_t;


static void ngx_http_toolgate_scan_tick(ngx_event_t *ev);
static void ngx_http_toolgate_scan_found(void *data, redisReply *reply);
static void ngx_http_toolgate_scan_look(ngx_http_toolgate_main_conf_t *conf,
    redisReply *member);
static void ngx_http_toolgate_scan_looked(void *data,
    ngx_http_toolgate_run_answer_t *answer);
static ngx_int_t ngx_http_toolgate_kick_send(ngx_http_toolgate_main_conf_t *conf,
    u_char *text, size_t len);


static ngx_event_t                     ngx_http_toolgate_scan_timer;
static ngx_http_toolgate_main_conf_t  *ngx_http_toolgate_scan_conf;
static ngx_uint_t                      ngx_http_toolgate_scanning;


ngx_int_t
ngx_http_toolgate_run_scan_init_worker(ngx_cycle_t *cycle)
{
    ngx_event_t                    *ev;
    ngx_http_toolgate_main_conf_t  *conf;

    conf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_toolgate_module);

    if (conf->redis == NULL || conf->run_host.len == 0) {
        return NGX_OK;
    }

    ngx_http_toolgate_scan_conf = conf;

    ev = &ngx_http_toolgate_scan_timer;
    ev->handler = ngx_http_toolgate_scan_tick;
    ev->data = conf;
    ev->log = cycle->log;
    ev->cancelable = 1;

    /* workers that were started together do not ask together */

    ngx_add_timer(ev, NGX_HTTP_TOOLGATE_SCAN_MS / 2
                      + (ngx_msec_t) ngx_random() % NGX_HTTP_TOOLGATE_SCAN_MS);

    return NGX_OK;
}


static void
ngx_http_toolgate_scan_tick(ngx_event_t *ev)
{
    u_char      name[NGX_HTTP_TOOLGATE_STORE_KEY_MAX];
    u_char      now[NGX_INT64_LEN], count[NGX_INT_T_LEN];
    ngx_str_t   args[7];
    ngx_time_t *tp;

    ngx_http_toolgate_main_conf_t *conf = ev->data;

    if (ngx_exiting) {
        return;
    }

    ngx_add_timer(ev, NGX_HTTP_TOOLGATE_SCAN_MS);

    if (ngx_http_toolgate_scanning) {
        return;
    }

    tp = ngx_timeofday();

    ngx_str_set(&args[0], "ZRANGEBYSCORE");
    args[1] = ngx_http_toolgate_watch_key(conf->redis, name);
    ngx_str_set(&args[2], "-inf");
    args[3].data = now;
    args[3].len = ngx_sprintf(now, "%L", (int64_t) tp->sec * 1000
                                         + (int64_t) tp->msec) - now;
    ngx_str_set(&args[4], "LIMIT");
    ngx_str_set(&args[5], "0");
    args[6].data = count;
    args[6].len = ngx_sprintf(count, "%d", NGX_HTTP_TOOLGATE_SCAN_RUNS) - count;

    if (ngx_toolgate_redis_command(conf->redis, ngx_cycle->log, 7, args,
                                   ngx_http_toolgate_scan_found, conf))
    {
        ngx_http_toolgate_scanning = 1;
    }
}


static void
ngx_http_toolgate_scan_found(void *data, redisReply *reply)
{
    size_t  i;

    ngx_http_toolgate_scanning = 0;

    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY) {
        return;
    }

    for (i = 0; i < reply->elements; i++) {
        if (reply->element[i]->type == REDIS_REPLY_STRING) {
            ngx_http_toolgate_scan_look(data, reply->element[i]);
        }
    }
}


/* "project/account/run" */
static void
ngx_http_toolgate_scan_look(ngx_http_toolgate_main_conf_t *conf,
    redisReply *member)
{
    u_char                    *p, *account, *run, *last;
    ngx_pool_t                *pool;
    ngx_http_toolgate_look_t  *look;

    pool = ngx_create_pool(1024, ngx_cycle->log);
    if (pool == NULL) {
        return;
    }

    look = ngx_palloc(pool, sizeof(ngx_http_toolgate_look_t));
    p = ngx_pnalloc(pool, (size_t) member->len);

    if (look == NULL || p == NULL) {
        ngx_destroy_pool(pool);
        return;
    }

    ngx_memcpy(p, member->str, (size_t) member->len);
    last = p + member->len;

    account = ngx_strlchr(p, last, '/');
    run = account ? ngx_strlchr(account + 1, last, '/') : NULL;

    if (run == NULL) {
        ngx_destroy_pool(pool);
        return;
    }

    look->pool = pool;
    look->conf = conf;
    look->key.project.data = p;
    look->key.project.len = account - p;
    look->key.account.data = account + 1;
    look->key.account.len = run - account - 1;
    look->key.run.data = run + 1;
    look->key.run.len = last - run - 1;

    if (ngx_http_toolgate_run_store_open(pool, conf->redis, &look->key, "look",
                                         conf->retention,
                                         ngx_http_toolgate_scan_looked, look)
        != NGX_OK)
    {
        ngx_destroy_pool(pool);
    }
}


static void
ngx_http_toolgate_scan_looked(void *data, ngx_http_toolgate_run_answer_t *answer)
{
    ngx_http_toolgate_look_t *look = data;

    int64_t                     left;
    ngx_time_t                 *tp;
    ngx_toolgate_redis_conf_t  *redis;

    redis = look->conf->redis;

    switch (answer->answer) {

    case NGX_HTTP_TOOLGATE_ANSWER_FREE:
        ngx_http_toolgate_run_store_watch(redis, &look->key,
                                          NGX_HTTP_TOOLGATE_SCAN_AGAIN_MS);
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "toolgate: run %V is driven by nobody: it goes on here",
                      &look->key.run);
        ngx_http_toolgate_run_kick(look->conf, &look->key);
        break;

    case NGX_HTTP_TOOLGATE_ANSWER_HELD:
        ngx_http_toolgate_run_store_watch(redis, &look->key,
                                          (ngx_msec_t) answer->number);
        break;

    case NGX_HTTP_TOOLGATE_ANSWER_WAITING:
        tp = ngx_timeofday();
        left = answer->number - ((int64_t) tp->sec * 1000 + (int64_t) tp->msec);

        if (answer->number) {
            ngx_http_toolgate_run_store_watch(redis, &look->key,
                                              (ngx_msec_t) ngx_max(left, 1000));
            break;
        }

        /* fall through */

    case NGX_HTTP_TOOLGATE_ANSWER_ENDED:
    case NGX_HTTP_TOOLGATE_ANSWER_GONE:
        ngx_http_toolgate_run_store_unwatch(redis, &look->key);
        break;

    default:
        break;
    }

    ngx_destroy_pool(look->pool);
}


void
ngx_http_toolgate_run_kick(ngx_http_toolgate_main_conf_t *conf,
    ngx_http_toolgate_run_key_t *key)
{
    u_char  *last, text[NGX_HTTP_TOOLGATE_KICK_MAX];

    if (conf->run_host.len == 0) {
        return;
    }

    last = ngx_slprintf(text, text + sizeof(text),
                        "GET %V HTTP/1.0\r\nHost: localhost\r\n"
                        "X-Toolgate-Run: %V/%V/%V\r\n\r\n", &conf->run_host,
                        &key->project, &key->account, &key->run);

    /* one that does not arrive is found by the next scan */

    if (ngx_http_toolgate_kick_send(conf, text, last - text) != NGX_OK) {
        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, ngx_socket_errno,
                      "toolgate: the run host does not take run %V now",
                      &key->run);
        ngx_http_toolgate_run_store_watch(conf->redis, key,
                                          NGX_HTTP_TOOLGATE_SCAN_MS);
    }
}


/* Nothing of this waits: a unix socket takes it at once, or not at all. */
static ngx_int_t
ngx_http_toolgate_kick_send(ngx_http_toolgate_main_conf_t *conf, u_char *text,
    size_t len)
{
    ssize_t       n;
    ngx_socket_t  s;

    s = socket(AF_UNIX, SOCK_STREAM|SOCK_NONBLOCK|SOCK_CLOEXEC, 0);

    if (s == (ngx_socket_t) -1) {
        return NGX_ERROR;
    }

    n = -1;

    if (connect(s, conf->run_host_addr, conf->run_host_addr_len) == 0) {
        n = send(s, text, len, MSG_NOSIGNAL);
    }

    (void) ngx_close_socket(s);

    return n == (ssize_t) len ? NGX_OK : NGX_ERROR;
}
