/*
 * Running one tool call: a job, and one table of functions for each kind of tool.
 * A job knows the tool, its arguments and on whose behalf it runs; it knows
 * neither the run's state nor the policy, which has already said yes.
 */

#ifndef NGX_HTTP_TOOLGATE_TOOLS_H
#define NGX_HTTP_TOOLGATE_TOOLS_H

#include "ngx_http_toolgate_module.h"

#include "tg_json.h"


#define NGX_HTTP_TOOLGATE_RESULT_MAX  (256 * 1024)

typedef struct ngx_http_toolgate_job_s  ngx_http_toolgate_job_t;

typedef void (*ngx_http_toolgate_job_done_pt)(ngx_http_toolgate_job_t *job);

struct ngx_http_toolgate_job_s {
    /* set by the caller; all of it lives as long as pool */
    ngx_pool_t                     *pool;
    ngx_log_t                      *log;
    ngx_http_toolgate_main_conf_t  *conf;
    ngx_resolver_t                 *resolver;      /* NULL: none configured */
    ngx_msec_t                      resolver_timeout;
    ngx_msec_t                      time_left;     /* of the run */
    ngx_http_toolgate_project_t    *project;
    ngx_http_toolgate_tool_t       *tool;
    json_t                         *arguments;     /* validated, digits folded */
    json_t                         *variables;
    json_t                         *end_user;      /* NULL: anonymous */
    ngx_str_t                       account;
    ngx_str_t                       session;       /* label of the sandbox */
    ngx_str_t                       run;
    ngx_str_t                       call_id;
    ngx_http_toolgate_job_done_pt   done;
    void                           *data;

    /* set when done is called: what the model gets, as JSON */
    tg_buf_t                        result;
    const char                     *code;          /* NULL: {"ok":true,…} */
    const char                     *detail;        /* why, for the steps alone */

    void                           *state;         /* of the kind */
};

/* What went out for a job and what came of it. It is for the run's steps: where a
 * secret was in the request, TG_MASK_TEXT stands; the answer may hold any. */
typedef struct {
    const char                     *method;        /* NULL: no request was made */
    tg_str_t                        url;
    ngx_array_t                    *headers;       /* of ngx_keyval_t */
    tg_str_t                        body;
    ngx_toolgate_client_result_t   *upstream;      /* NULL: nobody was asked */
    unsigned                        has_body:1;
} ngx_http_toolgate_job_facts_t;

typedef struct {
    /* NGX_OK: done will be called from the event loop; NGX_DONE: result and code
     * are set, done is not called; NGX_ERROR: out of memory */
    ngx_int_t  (*start)(ngx_http_toolgate_job_t *job);
    /* ends the job at once; done is not called any more */
    void       (*cancel)(ngx_http_toolgate_job_t *job);
    /* fills facts (all of it is zero before) for a job that was started and is
     * over; they live as long as the job's pool. NULL: this kind has none */
    ngx_int_t  (*facts)(ngx_http_toolgate_job_t *job,
                        ngx_http_toolgate_job_facts_t *facts);
    /* whether a job that was started has done what cannot be taken back, so that it
     * is better to hear what came of it; NULL: it can always be stopped */
    ngx_uint_t (*committed)(ngx_http_toolgate_job_t *job);
} ngx_http_toolgate_tool_ops_t;


extern const ngx_http_toolgate_tool_ops_t  ngx_http_toolgate_http_tool_ops;
extern const ngx_http_toolgate_tool_ops_t  ngx_http_toolgate_helper_tool_ops;


/* The table of a kind; NULL for one that runs elsewhere. */
static inline const ngx_http_toolgate_tool_ops_t *
ngx_http_toolgate_tool_ops(ngx_http_toolgate_tool_kind_e kind)
{
    switch (kind) {

    case NGX_HTTP_TOOLGATE_TOOL_HTTP:
        return &ngx_http_toolgate_http_tool_ops;

    case NGX_HTTP_TOOLGATE_TOOL_HELPER:
        return &ngx_http_toolgate_helper_tool_ops;

    case NGX_HTTP_TOOLGATE_TOOL_CLIENT:
        break;
    }

    return NULL;
}

#endif /* NGX_HTTP_TOOLGATE_TOOLS_H */
