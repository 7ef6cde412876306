/*
 * What the files of the KsADK actions share: the fields of a request, the run that it
 * names, and the envelope of an answer. The actions are another way to say what
 * /v1/runs does; they decide nothing about runs.
 */

#ifndef NGX_HTTP_TOOLGATE_ACTIONS_H
#define NGX_HTTP_TOOLGATE_ACTIONS_H

#include "ngx_http_toolgate_api.h"
#include "ngx_http_toolgate_run_store.h"


#define NGX_HTTP_TOOLGATE_ACTIONS_PATH     "/agentengine/api/v1/"
#define NGX_HTTP_TOOLGATE_ACTION_LABEL_MAX 256
#define NGX_HTTP_TOOLGATE_ACTION_BODY_MAX  (64 * 1024)   /* of all but RunAgent */

typedef struct ngx_http_toolgate_action_s  ngx_http_toolgate_action_t;

typedef void (*ngx_http_toolgate_action_run_pt)(ngx_http_toolgate_action_t *a,
    ngx_http_toolgate_run_answer_t *answer);

/* A request under way; strings live as long as it. */
struct ngx_http_toolgate_action_s {
    ngx_http_request_t              *request;
    ngx_http_toolgate_key_t         *key;
    ngx_str_t                        name;
    json_t                          *fields;     /* of the body; NULL: a GET */
    ngx_str_t                        agent;      /* AgentId, or empty */
    ngx_str_t                        session;    /* SessionId, or empty */
    ngx_http_toolgate_run_key_t      run;        /* whose run; run.run once found */
    ngx_http_toolgate_action_run_pt  found;
    void                            *data;       /* of the action */
    ngx_http_toolgate_fault_t        fault;
};


/* A field of the body or of the URL that is an id: 1 to 64 of [A-Za-z0-9_.:-]. Empty
 * when it is absent. NGX_DECLINED: a->fault is set. */
ngx_int_t ngx_http_toolgate_action_id(ngx_http_toolgate_action_t *a,
    const char *name, ngx_uint_t required, ngx_str_t *value);

/* A label, of which nothing depends. */
ngx_int_t ngx_http_toolgate_action_label(ngx_http_toolgate_action_t *a,
    const char *name, ngx_str_t *value);

/* AgentId to a->agent: the name or the id of an agent. */
ngx_int_t ngx_http_toolgate_action_agent(ngx_http_toolgate_action_t *a,
    ngx_uint_t required);

/* A whole number, or the value that *number has when it is absent. */
ngx_int_t ngx_http_toolgate_action_number(ngx_http_toolgate_action_t *a,
    const char *name, int64_t min, int64_t max, int64_t *number);

/* Reads the run of this id or invocation id; found is called once, from the event
 * loop, with GONE when there is none. What else goes wrong is answered here. */
void ngx_http_toolgate_action_find(ngx_http_toolgate_action_t *a,
    ngx_str_t *id, ngx_http_toolgate_action_run_pt found);

/* Whether two strings are the same. */
ngx_uint_t ngx_http_toolgate_action_same(ngx_str_t *a, ngx_str_t b);

/* Whether a run that was found is of the agent and the session that the request
 * names. NGX_DECLINED: a->fault is set. */
ngx_int_t ngx_http_toolgate_action_fits(ngx_http_toolgate_action_t *a,
    ngx_http_toolgate_run_answer_t *answer);

/* Both finalize the request. data is the JSON text that the envelope is put around. */
void ngx_http_toolgate_action_reply(ngx_http_toolgate_action_t *a, ngx_uint_t status,
    tg_buf_t *data);
void ngx_http_toolgate_action_refuse(ngx_http_toolgate_action_t *a);

/* Appends a string as JSON. */
void ngx_http_toolgate_action_write(tg_buf_t *out, ngx_str_t *text);

/* The name of the place from which a run would go on, as JSON: how many rounds lie
 * behind it. _round reads that of a run that was found. */
void ngx_http_toolgate_action_checkpoint(ngx_str_t *run, ngx_uint_t round,
    tg_buf_t *out);
ngx_uint_t ngx_http_toolgate_action_round(ngx_http_toolgate_run_answer_t *answer);

/* Where the events of a run are, as JSON: a relative URL. */
void ngx_http_toolgate_action_subscribe_url(ngx_http_toolgate_action_t *a,
    ngx_str_t *invocation, tg_buf_t *out);

/* The envelope around data: what comes before it, and what after. */
void ngx_http_toolgate_action_head(ngx_http_toolgate_action_t *a, tg_buf_t *out);
void ngx_http_toolgate_action_tail(ngx_http_toolgate_action_t *a, tg_buf_t *out);

/* Streams the frames of a run's events after the one of this number; the request is
 * finalized later. */
void ngx_http_toolgate_action_follow(ngx_http_toolgate_action_t *a,
    ngx_http_toolgate_project_t *project, ngx_http_toolgate_run_answer_t *answer,
    int64_t after);

/* RunAgent, whose body may be large: its fields are read there. */
void ngx_http_toolgate_action_run(ngx_http_toolgate_action_t *a,
    ngx_http_toolgate_body_t *body);

/* The other actions; their fields are read, the account is known. */
void ngx_http_toolgate_action_cancel(ngx_http_toolgate_action_t *a);
void ngx_http_toolgate_action_resume(ngx_http_toolgate_action_t *a);
void ngx_http_toolgate_action_receipts(ngx_http_toolgate_action_t *a);
void ngx_http_toolgate_action_subscribe(ngx_http_toolgate_action_t *a);

#endif /* NGX_HTTP_TOOLGATE_ACTIONS_H */
