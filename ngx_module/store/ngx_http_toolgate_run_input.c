/*
 * A big input goes to the store in pieces, one in each turn of the event loop, so that
 * no other stream of the worker waits for it.
 */

#include "ngx_http_toolgate_module.h"
#include "ngx_http_toolgate_run_input.h"


struct ngx_http_toolgate_run_input_s {
    ngx_event_t                 event;
    ngx_toolgate_redis_conf_t  *redis;
    u_char                      name[NGX_HTTP_TOOLGATE_STORE_KEY_MAX];
    ngx_str_t                   key;
    ngx_str_t                   rest;
    ngx_http_toolgate_run_done_pt   done;        /* NULL: nobody waits */
    void                           *data;
    ngx_pool_cleanup_t             *cleanup;
    unsigned                        started:1;
};


static void ngx_http_toolgate_run_input_forsaken(void *data);
static void ngx_http_toolgate_run_input_over(ngx_http_toolgate_run_input_t *input,
    ngx_http_toolgate_run_answer_t *answer);
static void ngx_http_toolgate_run_input_slice(ngx_event_t *ev);
static void ngx_http_toolgate_run_input_taken(void *data, redisReply *reply);
static void ngx_http_toolgate_run_input_sent(void *data, redisReply *reply);


ngx_http_toolgate_run_input_t *
ngx_http_toolgate_run_input_new(ngx_pool_t *pool, ngx_toolgate_redis_conf_t *redis,
    ngx_http_toolgate_run_key_t *key, ngx_str_t *rest,
    ngx_http_toolgate_run_done_pt done, void *data)
{
    ngx_pool_cleanup_t             *cln;
    ngx_http_toolgate_run_input_t  *input;

    cln = done ? ngx_pool_cleanup_add(pool, 0) : NULL;

    if (done && cln == NULL) {
        return NULL;
    }

    input = ngx_calloc(sizeof(ngx_http_toolgate_run_input_t) + rest->len,
                       ngx_cycle->log);
    if (input == NULL) {
        return NULL;
    }

    input->redis = redis;
    input->key = ngx_http_toolgate_store_key(redis, 'r', key, &key->run, ":input",
                                             input->name);
    input->rest.data = (u_char *) input + sizeof(ngx_http_toolgate_run_input_t);
    input->rest.len = rest->len;
    ngx_memcpy(input->rest.data, rest->data, rest->len);

    input->event.handler = ngx_http_toolgate_run_input_slice;
    input->event.data = input;
    input->event.log = ngx_cycle->log;
    input->done = done;
    input->data = data;

    if (cln) {
        cln->handler = ngx_http_toolgate_run_input_forsaken;
        cln->data = input;
        input->cleanup = cln;
    }

    return input;
}


/* Nobody waits any more. What has begun to be sent is sent whole. */
static void
ngx_http_toolgate_run_input_forsaken(void *data)
{
    ngx_http_toolgate_run_input_t *input = data;

    input->done = NULL;
    input->cleanup = NULL;

    if (!input->started) {
        ngx_free(input);
    }
}


static void
ngx_http_toolgate_run_input_over(ngx_http_toolgate_run_input_t *input,
    ngx_http_toolgate_run_answer_t *answer)
{
    void                           *data;
    ngx_http_toolgate_run_done_pt   done;

    done = input->done;
    data = input->data;

    if (input->cleanup) {
        input->cleanup->handler = NULL;
    }

    ngx_free(input);

    if (done) {
        done(data, answer);
    }
}


void
ngx_http_toolgate_run_input_start(ngx_http_toolgate_run_input_t *input)
{
    input->started = 1;
    ngx_post_event(&input->event, &ngx_posted_next_events);
}


/* One that is there already has its input. */
void
ngx_http_toolgate_run_input_created(void *data,
    ngx_http_toolgate_run_answer_t *answer)
{
    ngx_http_toolgate_run_input_t *input = data;

    if (answer->answer != NGX_HTTP_TOOLGATE_ANSWER_OK) {
        ngx_http_toolgate_run_input_over(input, answer);
        return;
    }

    ngx_http_toolgate_run_input_start(input);
}


/* In pieces, one in each turn of the event loop. */
static void
ngx_http_toolgate_run_input_slice(ngx_event_t *ev)
{
    ngx_http_toolgate_run_input_t *input = ev->data;

    ngx_str_t                       args[3];
    ngx_uint_t                      last;
    ngx_http_toolgate_run_answer_t  away;

    ngx_str_set(&args[0], "APPEND");
    args[1] = input->key;
    args[2] = input->rest;
    args[2].len = ngx_min(args[2].len, NGX_HTTP_TOOLGATE_RUN_INPUT_SLICE);

    input->rest.data += args[2].len;
    input->rest.len -= args[2].len;
    last = (input->rest.len == 0);

    /* a run whose input did not arrive whole is not taken over */

    if (ngx_toolgate_redis_command(input->redis, ngx_cycle->log, 3, args,
                                   last ? ngx_http_toolgate_run_input_sent
                                        : ngx_http_toolgate_run_input_taken,
                                   input)
        == NULL)
    {
        ngx_memzero(&away, sizeof(away));
        away.answer = NGX_HTTP_TOOLGATE_ANSWER_AWAY;
        ngx_http_toolgate_run_input_over(input, &away);
        return;
    }

    if (!last) {
        ngx_post_event(ev, &ngx_posted_next_events);
    }
}


/* Of a piece that is not the last nobody waits for the answer. */
static void
ngx_http_toolgate_run_input_taken(void *data, redisReply *reply)
{
}


static void
ngx_http_toolgate_run_input_sent(void *data, redisReply *reply)
{
    ngx_http_toolgate_run_answer_t  answer;

    ngx_memzero(&answer, sizeof(answer));
    answer.answer = reply && reply->type == REDIS_REPLY_INTEGER
                    ? NGX_HTTP_TOOLGATE_ANSWER_OK : NGX_HTTP_TOOLGATE_ANSWER_AWAY;

    ngx_http_toolgate_run_input_over(data, &answer);
}
