/*
 * SubscribeRunEvents: the events of a run in the shapes of these actions, from the
 * one on that the subscriber has. It follows the store, like everybody else.
 */

#include "ngx_http_toolgate_actions.h"
#include "ngx_http_toolgate_durable.h"
#include "ngx_http_toolgate_registry.h"
#include "ngx_http_toolgate_runs_face.h"

#include "tg_ksadk.h"


#define NGX_HTTP_TOOLGATE_FRAMES_MAX  (32 * 1024 * 1024)  /* of one event */

/* A stream of frames. */
typedef struct {
    tg_ksadk_t   frames;
    tg_buf_t     out;
} ngx_http_toolgate_frames_t;


static void ngx_http_toolgate_subscribe_found(ngx_http_toolgate_action_t *a,
    ngx_http_toolgate_run_answer_t *answer);
static ngx_http_toolgate_frames_t *ngx_http_toolgate_frames_create(
    ngx_http_toolgate_action_t *a, ngx_http_toolgate_run_answer_t *answer,
    int64_t after);
static tg_str_t ngx_http_toolgate_frames_copy(ngx_pool_t *pool, ngx_str_t text);
static void ngx_http_toolgate_frames_free(void *data);
static ngx_int_t ngx_http_toolgate_frames_head(ngx_http_toolgate_run_t *run);
static ngx_int_t ngx_http_toolgate_frames_text(ngx_http_toolgate_run_t *run,
    tg_str_t text);
static ngx_int_t ngx_http_toolgate_frames_ping(ngx_http_toolgate_run_t *run);
static ngx_int_t ngx_http_toolgate_frames_event(ngx_http_toolgate_run_t *run,
    int64_t seq, tg_str_t event);
static ngx_int_t ngx_http_toolgate_frames_document(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_run_answer_t *document);
static ngx_int_t ngx_http_toolgate_frames_finish(ngx_http_toolgate_run_t *run);


static const ngx_http_toolgate_face_t  ngx_http_toolgate_frames_face = {
    .text = ngx_http_toolgate_frames_text,
    .refusal = ngx_http_toolgate_frames_text,
    .reasoning = ngx_http_toolgate_frames_text,
    .ping = ngx_http_toolgate_frames_ping,
    .finish = ngx_http_toolgate_frames_finish,
    .fail = ngx_http_toolgate_runs_fail,
    .name = "frames",
    .event = ngx_http_toolgate_frames_event,
    .document = ngx_http_toolgate_frames_document
};


void
ngx_http_toolgate_action_subscribe(ngx_http_toolgate_action_t *a)
{
    int64_t    *after;
    ngx_str_t   run, user;

    after = ngx_pcalloc(a->request->pool, sizeof(int64_t));

    if (after == NULL) {
        ngx_http_finalize_request(a->request, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    a->data = after;

    if (ngx_http_toolgate_action_id(a, "SessionId", 1, &a->session) != NGX_OK
        || ngx_http_toolgate_action_id(a, "InvocationId", 1, &run) != NGX_OK
        || ngx_http_toolgate_action_agent(a, 0) != NGX_OK
        || ngx_http_toolgate_action_label(a, "UserId", &user) != NGX_OK
        || ngx_http_toolgate_action_number(a, "AfterSeqId", 0, INT64_MAX / 4, after)
           != NGX_OK)
    {
        ngx_http_toolgate_action_refuse(a);
        return;
    }

    ngx_http_toolgate_action_find(a, &run, ngx_http_toolgate_subscribe_found);
}


static void
ngx_http_toolgate_subscribe_found(ngx_http_toolgate_action_t *a,
    ngx_http_toolgate_run_answer_t *answer)
{
    int64_t                        after;
    ngx_str_t                      seq;
    ngx_http_toolgate_project_t   *project;

    if (answer->answer == NGX_HTTP_TOOLGATE_ANSWER_GONE) {
        (void) ngx_http_toolgate_fault(&a->fault, "not_found", "InvocationId",
                                       NULL);
        ngx_http_toolgate_action_refuse(a);
        return;
    }

    if (ngx_http_toolgate_action_fits(a, answer) != NGX_OK) {
        ngx_http_toolgate_action_refuse(a);
        return;
    }

    seq = ngx_http_toolgate_run_answer_field(answer, "seq");
    after = *(int64_t *) a->data;

    if (after > TG_KSADK_SEQ_PER_EVENT * ngx_atoi(seq.data, seq.len)) {
        (void) ngx_http_toolgate_fault(&a->fault, "invalid_value", "AfterSeqId",
                                       "The run has no event of this number yet.");
        ngx_http_toolgate_action_refuse(a);
        return;
    }

    project = ngx_http_toolgate_registry_project(&a->run.project);

    if (project == NULL) {
        (void) ngx_http_toolgate_fault(&a->fault, "not_found", "InvocationId",
                                       NULL);
        ngx_http_toolgate_action_refuse(a);
        return;
    }

    ngx_http_toolgate_action_follow(a, project, answer, after);
}


void
ngx_http_toolgate_action_follow(ngx_http_toolgate_action_t *a,
    ngx_http_toolgate_project_t *project, ngx_http_toolgate_run_answer_t *answer,
    int64_t after)
{
    ngx_http_toolgate_run_t     *run;
    ngx_http_toolgate_frames_t  *frames;

    frames = ngx_http_toolgate_frames_create(a, answer, after);
    run = frames ? ngx_http_toolgate_run_create(a->request, project,
                                                &ngx_http_toolgate_frames_face)
                 : NULL;

    if (run == NULL) {
        ngx_http_finalize_request(a->request, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    ngx_memcpy(run->id, a->run.run.data, a->run.run.len);
    run->prompt.account = a->run.account;
    run->prompt.stream = 1;
    run->face_data = frames;

    /* a proxy that waits for a head would give up on a run that is silent */

    if (ngx_http_toolgate_frames_head(run) != NGX_OK) {
        ngx_http_finalize_request(a->request, NGX_ERROR);
        return;
    }

    /* from its first event on: a snapshot has all text that came before */

    ngx_http_toolgate_run_follow(run, 0);
}


static ngx_http_toolgate_frames_t *
ngx_http_toolgate_frames_create(ngx_http_toolgate_action_t *a,
    ngx_http_toolgate_run_answer_t *answer, int64_t after)
{
    tg_str_t                     agent, session, invocation;
    ngx_str_t                    name;
    ngx_pool_t                  *pool;
    ngx_pool_cleanup_t          *cln;
    ngx_http_toolgate_frames_t  *frames;

    pool = a->request->pool;

    cln = ngx_pool_cleanup_add(pool, sizeof(ngx_http_toolgate_frames_t));
    if (cln == NULL) {
        return NULL;
    }

    name = ngx_http_toolgate_run_answer_field(answer, "invocation");

    agent = ngx_http_toolgate_frames_copy(pool,
                ngx_http_toolgate_run_answer_field(answer, "agent"));
    session = ngx_http_toolgate_frames_copy(pool,
                ngx_http_toolgate_run_answer_field(answer, "session"));
    invocation = ngx_http_toolgate_frames_copy(pool, name.len ? name : a->run.run);

    if (agent.data == NULL || session.data == NULL || invocation.data == NULL) {
        return NULL;
    }

    frames = cln->data;
    tg_ksadk_init(&frames->frames, agent, session, invocation, after,
                  TG_DELTA_MAX_CONTENT);
    tg_buf_init(&frames->out, NGX_HTTP_TOOLGATE_FRAMES_MAX);
    cln->handler = ngx_http_toolgate_frames_free;

    return frames;
}


static tg_str_t
ngx_http_toolgate_frames_copy(ngx_pool_t *pool, ngx_str_t text)
{
    ngx_str_t  copy;

    copy = ngx_http_toolgate_copy(pool, (tg_str_t) { text.len,
                                                     (char *) text.data });

    return (tg_str_t) { copy.len, (char *) copy.data };
}


static void
ngx_http_toolgate_frames_free(void *data)
{
    ngx_http_toolgate_frames_t *frames = data;

    tg_ksadk_free(&frames->frames);
    tg_buf_free(&frames->out);
}


static ngx_int_t
ngx_http_toolgate_frames_head(ngx_http_toolgate_run_t *run)
{
    ngx_str_t  type = ngx_string("text/event-stream; charset=utf-8");

    return ngx_http_toolgate_writer_start(&run->writer, NGX_HTTP_OK, &type, -1, 1);
}


/* Its events have it. */
static ngx_int_t
ngx_http_toolgate_frames_text(ngx_http_toolgate_run_t *run, tg_str_t text)
{
    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_frames_ping(ngx_http_toolgate_run_t *run)
{
    return ngx_http_toolgate_writer_add(&run->writer, ": heartbeat\n\n",
                                        sizeof(": heartbeat\n\n") - 1);
}


static ngx_int_t
ngx_http_toolgate_frames_event(ngx_http_toolgate_run_t *run, int64_t seq,
    tg_str_t event)
{
    ngx_int_t                    rc;
    ngx_http_toolgate_frames_t  *frames = run->face_data;

    tg_buf_reset(&frames->out);

    if (tg_ksadk_event(&frames->frames, event, &frames->out) != TG_OK) {
        return NGX_ERROR;
    }

    rc = frames->out.len
         ? ngx_http_toolgate_writer_add(&run->writer, frames->out.data,
                                        frames->out.len)
         : NGX_OK;

    /* the stream ends also where the run waits for somebody */

    if (frames->frames.over) {
        ngx_http_toolgate_follow_stop(run);
    }

    return rc;
}


static ngx_int_t
ngx_http_toolgate_frames_document(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_run_answer_t *document)
{
    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_frames_finish(ngx_http_toolgate_run_t *run)
{
    ngx_http_toolgate_writer_end(&run->writer);

    return NGX_OK;
}
