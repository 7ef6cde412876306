/*
 * The limit that the store counts: asked once for all calls of a round that need it
 * at the same time. Those that pass are the first of them in call order.
 */

#include "ngx_http_toolgate_run.h"


#define NGX_HTTP_TOOLGATE_CALLER_USER  "user:"
#define NGX_HTTP_TOOLGATE_CALLER_SESSION  "session:"
#define NGX_HTTP_TOOLGATE_CALLER_MAX                                          \
    (sizeof(NGX_HTTP_TOOLGATE_CALLER_SESSION) + TG_JSON_SHA256_HEX_LEN)


/* One question to the store; it lives in the request's pool. */
typedef struct {
    ngx_http_toolgate_run_t   *run;
    ngx_http_toolgate_call_t  *calls;       /* of the round */
    ngx_uint_t                 call_count;
} ngx_http_toolgate_count_t;


static void ngx_http_toolgate_count_caller(ngx_http_toolgate_run_t *run,
    char caller[NGX_HTTP_TOOLGATE_CALLER_MAX]);
static ngx_int_t ngx_http_toolgate_count_ask(ngx_http_toolgate_count_t *count,
    ngx_uint_t takes);
static void ngx_http_toolgate_count_answered(void *data,
    ngx_toolgate_counter_result_t *result);
static void ngx_http_toolgate_count_tell(ngx_http_toolgate_call_t *call,
    ngx_toolgate_counter_result_t *result, ngx_uint_t passed);


void
ngx_http_toolgate_calls_count(ngx_http_toolgate_run_t *run)
{
    ngx_uint_t                  i, takes;
    ngx_http_toolgate_count_t  *count;

    /* the others of the round come in a moment */
    if (run->gathering) {
        return;
    }

    count = ngx_palloc(run->request->pool, sizeof(ngx_http_toolgate_count_t));
    if (count == NULL) {
        run->out_of_memory = 1;
        return;
    }

    count->run = run;
    count->calls = run->calls;
    count->call_count = run->call_count;
    takes = 0;

    for (i = 0; i < run->call_count; i++) {
        if (run->calls[i].state == NGX_HTTP_TOOLGATE_CALL_COUNTING
            && run->calls[i].count == NULL)
        {
            run->calls[i].count = count;
            takes++;
        }
    }

    if (takes && ngx_http_toolgate_count_ask(count, takes) != NGX_OK) {
        run->out_of_memory = 1;
    }
}


/* Whose calls are counted together: those of an end user in all runs, hashed since
 * an id may be of any length and is nobody's business in the store. Without one those of
 * the session, and without that the run is the session. */
static void
ngx_http_toolgate_count_caller(ngx_http_toolgate_run_t *run,
    char caller[NGX_HTTP_TOOLGATE_CALLER_MAX])
{
    const size_t  prefix = sizeof(NGX_HTTP_TOOLGATE_CALLER_USER) - 1;

    if (run->end_user) {
        ngx_memcpy(caller, NGX_HTTP_TOOLGATE_CALLER_USER, prefix);
        tg_json_sha256_hex(tg_json_get_string(run->end_user, "external_id"),
                           caller + prefix);

    } else if (run->prompt.session.len) {
        ngx_memcpy(ngx_cpymem(caller, NGX_HTTP_TOOLGATE_CALLER_SESSION,
                              sizeof(NGX_HTTP_TOOLGATE_CALLER_SESSION) - 1),
                   run->prompt.session.data, run->prompt.session.len + 1);

    } else {
        ngx_memcpy(caller, run->id, sizeof(run->id));
    }
}


static ngx_int_t
ngx_http_toolgate_count_ask(ngx_http_toolgate_count_t *count, ngx_uint_t takes)
{
    char                      caller[NGX_HTTP_TOOLGATE_CALLER_MAX];
    u_char                    key[NGX_TOOLGATE_COUNTER_KEY_MAX];
    ngx_toolgate_counter_t    counter;
    ngx_http_toolgate_run_t  *run;

    run = count->run;

    ngx_http_toolgate_count_caller(run, caller);

    counter.key.data = key;
    counter.key.len = ngx_snprintf(key, sizeof(key), "{%V/%V}:http:%s",
                                   &run->project->name, &run->prompt.account,
                                   caller) - key;
    counter.limit = TG_POLICY_HTTP_LIMIT;
    counter.window_s = TG_POLICY_HTTP_WINDOW_S;
    counter.takes = takes;

    return ngx_toolgate_counter_take(run->request->pool,
                                     run->request->connection->log,
                                     run->conf->redis, run->conf->zone, &counter,
                                     ngx_http_toolgate_count_answered, count);
}


static void
ngx_http_toolgate_count_answered(void *data, ngx_toolgate_counter_result_t *result)
{
    ngx_http_toolgate_count_t *count = data;

    ngx_uint_t                 i, in_handler, passed, told;
    ngx_http_toolgate_run_t   *run;
    ngx_http_toolgate_call_t  *call;

    run = count->run;
    passed = result->passed;
    told = 0;

    /* the run goes on after all of them, since it may free them */

    in_handler = run->in_handler;
    run->in_handler = 1;

    for (i = 0; i < count->call_count; i++) {
        call = &count->calls[i];

        /* one that was cancelled meanwhile has ended */

        if (call->count != count || call->state != NGX_HTTP_TOOLGATE_CALL_COUNTING) {
            continue;
        }

        ngx_http_toolgate_count_tell(call, result, passed);
        passed -= passed ? 1 : 0;
        told = 1;
    }

    run->in_handler = in_handler;

    if (told) {
        ngx_http_toolgate_calls_from_event(run);
    }
}


static void
ngx_http_toolgate_count_tell(ngx_http_toolgate_call_t *call,
    ngx_toolgate_counter_result_t *result, ngx_uint_t passed)
{
    /* the head may say so already, of the request's own limits */

    if (result->mode == NGX_TOOLGATE_COUNTED_LOCAL
        && !(call->run->limits && call->run->limits->local))
    {
        call->run->local_limits = 1;
    }

    if (passed) {
        call->facts.limit = TG_LIMIT_PASSED;

    } else if (result->mode == NGX_TOOLGATE_COUNTED_CLOSED) {
        call->facts.limit = TG_LIMIT_STORE_CLOSED;

    } else {
        call->facts.limit = TG_LIMIT_REFUSED;
        call->facts.retry_after_s = (uint32_t) result->retry_after_s;
    }

    ngx_http_toolgate_call_advance(call);
}
