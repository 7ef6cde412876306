/*
 * How the body of a model request is put together: pieces that are referred to where
 * they lie, and texts of ours that are copied. For ngx_http_toolgate_prompt*.c only.
 */

#ifndef NGX_HTTP_TOOLGATE_PROMPT_H
#define NGX_HTTP_TOOLGATE_PROMPT_H

#include "ngx_http_toolgate_run.h"


#define NGX_HTTP_TOOLGATE_PROMPT_SMALL  512     /* pieces up to this are gathered … */
#define NGX_HTTP_TOOLGATE_PROMPT_BLOCK  4096    /* … in blocks of this size */

typedef struct {
    ngx_http_toolgate_run_t   *run;
    ngx_pool_t                *pool;
    ngx_chain_t               *first;
    ngx_chain_t              **last;
    off_t                      length;
    ngx_buf_t                 *gathered;        /* NULL: none, or no longer the last */
    u_char                    *block_pos;
    u_char                    *block_end;
    ngx_uint_t                 failed;
} ngx_http_toolgate_prompt_builder_t;


/* Fields of ours, which no model knows; and what an agent's request brings itself, or
 * keeps to itself. Both end with NULL. */
extern const char *const  ngx_http_toolgate_own_fields[];
extern const char *const  ngx_http_toolgate_agent_fields[];


void ngx_http_toolgate_prompt_begin(ngx_http_toolgate_prompt_builder_t *p,
    ngx_http_toolgate_run_t *run);

/* Adds bytes that live as long as the request. */
void ngx_http_toolgate_prompt_ref(ngx_http_toolgate_prompt_builder_t *p,
    const void *data, size_t len);

/* The same, but a small one is copied behind those before it: a body of many pieces
 * would have more buffers than bytes. */
void ngx_http_toolgate_prompt_piece(ngx_http_toolgate_prompt_builder_t *p,
    const void *data, size_t len);

/* Adds a copy of text, which the caller frees. */
void ngx_http_toolgate_prompt_copy(ngx_http_toolgate_prompt_builder_t *p,
    tg_buf_t *text);

/* Adds the model's name, as the upstream that is asked has it. */
void ngx_http_toolgate_prompt_name(ngx_http_toolgate_prompt_builder_t *p);

#define ngx_http_toolgate_prompt_lit(p, s)                                    \
    ngx_http_toolgate_prompt_ref(p, s, sizeof(s) - 1)

/* The body for an upstream that speaks Responses. */
void ngx_http_toolgate_prompt_responses(ngx_http_toolgate_prompt_builder_t *p);

#endif /* NGX_HTTP_TOOLGATE_PROMPT_H */
