/*
 * The record of one run: its steps as JSON, gathered while it goes on and given to
 * the store once a round. Only for the two files that make it.
 */

#ifndef NGX_HTTP_TOOLGATE_STEPS_H
#define NGX_HTTP_TOOLGATE_STEPS_H

#include "ngx_http_toolgate_run.h"

#include "tg_mask.h"


#define NGX_HTTP_TOOLGATE_STEP_TEXT_MAX    8192        /* a body, arguments */
#define NGX_HTTP_TOOLGATE_STEP_RESULT_MAX  16384       /* what the model saw */
#define NGX_HTTP_TOOLGATE_STEP_VALUE_MAX   1024        /* of a header */
#define NGX_HTTP_TOOLGATE_STEP_DETAIL_MAX  512
/* what is cleaned may be shorter than it was */
#define NGX_HTTP_TOOLGATE_STEP_CLEAN_MAX   (2 * NGX_HTTP_TOOLGATE_STEP_TEXT_MAX)
/* bytes of one step, and of a run until its steps come without their texts */
#define NGX_HTTP_TOOLGATE_STEP_MAX         (128 * 1024)
#define NGX_HTTP_TOOLGATE_STEPS_BYTES_MAX  (1024 * 1024)

struct ngx_http_toolgate_steps_s {
    ngx_http_toolgate_run_t        *run;
    tg_buf_t                        text;           /* not given to the store yet */
    ngx_array_t                     ends;           /* of size_t: steps in text */
    size_t                          bytes;          /* of the run */
    ngx_uint_t                      count;          /* of the run */
    tg_mask_t                      *mask;           /* NULL: there is no secret */
    tg_buf_t                        scratch;        /* a text on its way, masked */
    tg_buf_t                        cleaned;        /* … and before that */
    ngx_msec_t                      turn_started;
    unsigned                        turn_open:1;    /* a model call is under way */
    unsigned                        round_open:1;   /* calls that are not added */
    unsigned                        short_form:1;   /* texts are left out */
    unsigned                        closed:1;       /* nothing is added any more */
};


/* _step.c: each appends one step to steps->text; what fails sets its error. code
 * is NULL when it went well. */
void ngx_http_toolgate_step_model(ngx_http_toolgate_steps_t *steps,
    const char *code);
void ngx_http_toolgate_step_call(ngx_http_toolgate_steps_t *steps,
    ngx_http_toolgate_call_t *call);
/* The decision about a call that has waited for one. */
void ngx_http_toolgate_step_approval(ngx_http_toolgate_steps_t *steps,
    ngx_http_toolgate_call_t *call);
/* A call that the model may not make any more. */
void ngx_http_toolgate_step_dropped(ngx_http_toolgate_steps_t *steps,
    tg_delta_call_t *asked, const char *id);

#endif /* NGX_HTTP_TOOLGATE_STEPS_H */
