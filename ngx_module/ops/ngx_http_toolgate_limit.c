/*
 * Request limits as a request meets them.
 *
 * A limit counts one thing: the value of its key, within the project of the caller.
 * What goes to the store is "l:{project}:rate:digest": the value itself may be a
 * credential, so only a digest of it (and of the key's text, which tells two lines
 * of one rate apart) leaves this process. All limits of a request have the
 * project's hash tag, so that one script may touch them in a cluster; it is also
 * what keeps the counts of projects apart, whatever the key.
 *
 * The rule is core/tg_rate.h's: a rolling window in bounded memory, exact over all
 * nodes. burst=b lets n + b pass at once and stretches the window by as much, so
 * that in the long run there are still n a unit.
 */

#include "ngx_http_toolgate_limit.h"

#include "tg_rate.h"
#include "tg_window.h"


#define NGX_HTTP_TOOLGATE_LIMIT_DIGEST      16    /* bytes of it in the key */


static ngx_int_t ngx_http_toolgate_limits_collect(
    ngx_http_toolgate_limits_t *l, ngx_array_t *confs, ngx_str_t *project);
static ngx_int_t ngx_http_toolgate_limit_key(ngx_http_request_t *r,
    ngx_http_toolgate_limit_conf_t *conf, ngx_str_t *project, ngx_str_t *value,
    ngx_str_t *key);
static void ngx_http_toolgate_limits_counted(ngx_toolgate_limits_call_t *call);
static void ngx_http_toolgate_limits_cleanup(void *data);
static void ngx_http_toolgate_limits_decide(ngx_http_toolgate_limits_t *l);
static ngx_toolgate_limit_t *ngx_http_toolgate_limits_tightest(
    ngx_http_toolgate_limits_t *l);
static ngx_int_t ngx_http_toolgate_limits_headers(ngx_http_toolgate_limits_t *l,
    ngx_toolgate_limit_t *limit);
static ngx_int_t ngx_http_toolgate_limits_retry_after(
    ngx_http_toolgate_limits_t *l, ngx_msec_t wait);
static void ngx_http_toolgate_limits_log(ngx_http_toolgate_limits_t *l);


ngx_int_t
ngx_http_toolgate_limits_check(ngx_http_request_t *r, ngx_array_t *confs,
    ngx_str_t *project, ngx_http_toolgate_limits_done_pt done, void *data,
    ngx_http_toolgate_limits_t **limits)
{
    ngx_int_t                       rc;
    ngx_pool_cleanup_t             *cln;
    ngx_http_toolgate_limits_t     *l;
    ngx_http_toolgate_main_conf_t  *tmcf;

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_toolgate_limits_t));
    if (cln == NULL) {
        return NGX_ERROR;
    }

    l = cln->data;
    ngx_memzero(l, sizeof(ngx_http_toolgate_limits_t));
    cln->handler = ngx_http_toolgate_limits_cleanup;

    tmcf = ngx_http_get_module_main_conf(r, ngx_http_toolgate_module);

    l->request = r;
    l->done = done;
    l->data = data;
    l->call.redis = tmcf->redis;
    l->call.zone = tmcf->zone;
    l->call.log = r->connection->log;
    l->call.limits = l->limit;
    l->call.done = ngx_http_toolgate_limits_counted;
    l->call.data = l;

    *limits = l;

    if (ngx_http_toolgate_limits_collect(l, confs, project) != NGX_OK) {
        return NGX_ERROR;
    }

    if (l->call.n == 0) {
        return NGX_OK;
    }

    rc = ngx_toolgate_limits_take(&l->call);

    if (rc == NGX_OK) {
        ngx_http_toolgate_limits_decide(l);
    }

    return rc;
}


/* Those whose key is not empty. */
static ngx_int_t
ngx_http_toolgate_limits_collect(ngx_http_toolgate_limits_t *l,
    ngx_array_t *confs, ngx_str_t *project)
{
    ngx_str_t                        value;
    ngx_uint_t                       i;
    ngx_toolgate_limit_t            *limit;
    ngx_http_toolgate_limit_conf_t  *conf;

    conf = confs->elts;

    for (i = 0; i < confs->nelts; i++) {

        if (ngx_http_complex_value(l->request, &conf[i].key, &value) != NGX_OK) {
            return NGX_ERROR;
        }

        if (value.len == 0 && !conf[i].account) {
            continue;
        }

        limit = &l->limit[l->call.n];
        limit->limit = conf[i].limit;
        limit->window = conf[i].window;
        limit->dry_run = conf[i].dry_run;

        if (ngx_http_toolgate_limit_key(l->request, &conf[i], project, &value,
                                        &limit->key)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        l->conf[l->call.n++] = &conf[i];
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_limit_key(ngx_http_request_t *r,
    ngx_http_toolgate_limit_conf_t *conf, ngx_str_t *project, ngx_str_t *value,
    ngx_str_t *key)
{
    u_char     sha256[NGX_HTTP_TOOLGATE_KEY_SHA256_LEN];
    u_char     text[ngx_base64_encoded_length(NGX_HTTP_TOOLGATE_LIMIT_DIGEST)];
    ngx_str_t  pieces[3], digest, encoded;

    pieces[0] = conf->text;
    pieces[1].data = (u_char *) "";       /* its NUL stands between the two */
    pieces[1].len = 1;
    pieces[2] = *value;

    key->data = ngx_pnalloc(r->pool, NGX_TOOLGATE_LIMIT_KEY_MAX);

    if (key->data == NULL || ngx_http_toolgate_sha256(pieces, 3, sha256) != NGX_OK)
    {
        return NGX_ERROR;
    }

    digest.data = sha256;
    digest.len = NGX_HTTP_TOOLGATE_LIMIT_DIGEST;
    encoded.data = text;
    ngx_encode_base64url(&encoded, &digest);

    key->len = ngx_slprintf(key->data, key->data + NGX_TOOLGATE_LIMIT_KEY_MAX,
                            "l:{%V}:%V:%V", project, &conf->rate, &encoded)
               - key->data;

    return NGX_OK;
}


static void
ngx_http_toolgate_limits_counted(ngx_toolgate_limits_call_t *call)
{
    ngx_http_toolgate_limits_t  *l = call->data;

    ngx_http_toolgate_limits_decide(l);
    l->done(l->data);
}


void
ngx_http_toolgate_limits_cancel(ngx_http_toolgate_limits_t *limits)
{
    ngx_toolgate_limits_cancel(&limits->call);
}


static void
ngx_http_toolgate_limits_cleanup(void *data)
{
    ngx_http_toolgate_limits_cancel(data);
}


static void
ngx_http_toolgate_limits_decide(ngx_http_toolgate_limits_t *l)
{
    ngx_int_t              rc;
    ngx_str_t              local = ngx_string("local");
    ngx_toolgate_limit_t  *tightest;

    rc = NGX_OK;
    l->code = l->call.allowed ? NULL : "rate_limit_exceeded";

    switch (l->call.mode) {

    case NGX_TOOLGATE_COUNTED_OPEN:
        return;

    case NGX_TOOLGATE_COUNTED_CLOSED:
        l->code = "store_unavailable";
        rc = ngx_http_toolgate_limits_retry_after(l, NGX_TOOLGATE_REDIS_RETRY_MS);
        break;

    case NGX_TOOLGATE_COUNTED_LOCAL:
        l->local = 1;
        rc = ngx_http_toolgate_add_header(l->request, "x-toolgate-limit-mode",
                                          &local);
        /* fall through */

    case NGX_TOOLGATE_COUNTED_STORE:
        ngx_http_toolgate_limits_log(l);

        tightest = ngx_http_toolgate_limits_tightest(l);

        if (rc == NGX_OK) {
            rc = ngx_http_toolgate_limits_headers(l, tightest);
        }

        if (rc == NGX_OK && !l->call.allowed) {
            rc = ngx_http_toolgate_limits_retry_after(l, tightest->wait);
        }

        break;
    }

    if (rc != NGX_OK) {
        l->code = "internal_error";
    }
}


/* Of the limits that refuse, the one that does so for longest; else the one that
 * leaves least. One that is only tried out counts when there is no other. */
static ngx_toolgate_limit_t *
ngx_http_toolgate_limits_tightest(ngx_http_toolgate_limits_t *l)
{
    ngx_uint_t             i;
    ngx_toolgate_limit_t  *limit, *best;

    best = &l->limit[0];

    for (i = 1; i < l->call.n; i++) {
        limit = &l->limit[i];

        if (limit->dry_run != best->dry_run) {
            best = best->dry_run ? limit : best;

        } else if (limit->wait != best->wait) {
            best = limit->wait > best->wait ? limit : best;

        } else if (limit->remaining != best->remaining) {
            best = limit->remaining < best->remaining ? limit : best;

        } else if (limit->reset > best->reset) {
            best = limit;
        }
    }

    return best;
}


static ngx_int_t
ngx_http_toolgate_limits_headers(ngx_http_toolgate_limits_t *l,
    ngx_toolgate_limit_t *limit)
{
    u_char     *p;
    ngx_str_t   number, remaining, reset;

    p = ngx_pnalloc(l->request->pool, 2 * NGX_INT_T_LEN + TG_RATE_DURATION_LEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    number.data = p;
    p = ngx_sprintf(p, "%uD", limit->limit);
    number.len = p - number.data;

    remaining.data = p;
    p = ngx_sprintf(p, "%ui", limit->remaining);
    remaining.len = p - remaining.data;

    reset.data = p;
    reset.len = tg_rate_duration(limit->reset, (char *) p);

    if (ngx_http_toolgate_add_header(l->request, "x-ratelimit-limit-requests",
                                     &number) != NGX_OK
        || ngx_http_toolgate_add_header(l->request,
                                        "x-ratelimit-remaining-requests",
                                        &remaining) != NGX_OK
        || ngx_http_toolgate_add_header(l->request, "x-ratelimit-reset-requests",
                                        &reset) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_limits_retry_after(ngx_http_toolgate_limits_t *l,
    ngx_msec_t wait)
{
    l->retry_after.data = ngx_pnalloc(l->request->pool, NGX_INT_T_LEN);
    if (l->retry_after.data == NULL) {
        return NGX_ERROR;
    }

    l->retry_after.len = ngx_sprintf(l->retry_after.data, "%uL",
                                     tg_window_retry_after(wait, 1000))
                         - l->retry_after.data;

    return NGX_OK;
}


/* The key as it is written in the configuration, never its value. */
static void
ngx_http_toolgate_limits_log(ngx_http_toolgate_limits_t *l)
{
    ngx_uint_t             i, level;
    ngx_toolgate_limit_t  *limit;

    for (i = 0; i < l->call.n; i++) {
        limit = &l->limit[i];

        if (!limit->refused) {
            continue;
        }

        level = limit->dry_run ? NGX_LOG_WARN : NGX_LOG_INFO;

        ngx_log_error(level, l->request->connection->log, 0,
                      "toolgate: limit %V key=%V %s for %M ms",
                      &l->conf[i]->rate, &l->conf[i]->text,
                      limit->dry_run ? "would refuse (dry run)" : "refuses",
                      limit->wait);
    }
}
