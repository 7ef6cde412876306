/*
 * The chain of a model request's body; see ngx_http_toolgate_prompt.h. It knows nothing
 * of what is in it.
 */

#include "ngx_http_toolgate_prompt.h"


void
ngx_http_toolgate_prompt_begin(ngx_http_toolgate_prompt_builder_t *p,
    ngx_http_toolgate_run_t *run)
{
    ngx_memzero(p, sizeof(ngx_http_toolgate_prompt_builder_t));
    p->run = run;
    p->pool = run->request->pool;
    p->last = &p->first;
}


/* NULL: there is nothing to add, or no memory. */
static ngx_buf_t *
ngx_http_toolgate_prompt_append(ngx_http_toolgate_prompt_builder_t *p,
    const void *data, size_t len)
{
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    if (len == 0 || p->failed) {
        return NULL;
    }

    cl = ngx_alloc_chain_link(p->pool);
    b = ngx_calloc_buf(p->pool);

    if (cl == NULL || b == NULL) {
        p->failed = 1;
        return NULL;
    }

    /* start is where nginx goes back to when it tries another peer */

    b->start = (u_char *) data;
    b->pos = b->start;
    b->last = b->start + len;
    b->end = b->last;
    b->memory = 1;

    cl->buf = b;
    cl->next = NULL;
    *p->last = cl;
    p->last = &cl->next;
    p->length += (off_t) len;
    p->gathered = NULL;

    return b;
}


void
ngx_http_toolgate_prompt_ref(ngx_http_toolgate_prompt_builder_t *p,
    const void *data, size_t len)
{
    (void) ngx_http_toolgate_prompt_append(p, data, len);
}


void
ngx_http_toolgate_prompt_piece(ngx_http_toolgate_prompt_builder_t *p,
    const void *data, size_t len)
{
    u_char  *copy;

    if (len > NGX_HTTP_TOOLGATE_PROMPT_SMALL) {
        ngx_http_toolgate_prompt_ref(p, data, len);
        return;
    }

    if ((size_t) (p->block_end - p->block_pos) < len) {
        p->block_pos = ngx_pnalloc(p->pool, NGX_HTTP_TOOLGATE_PROMPT_BLOCK);

        if (p->block_pos == NULL) {
            p->block_end = NULL;
            p->failed = 1;
            return;
        }

        p->block_end = p->block_pos + NGX_HTTP_TOOLGATE_PROMPT_BLOCK;
        p->gathered = NULL;
    }

    copy = p->block_pos;
    p->block_pos = ngx_cpymem(copy, data, len);

    if (p->gathered) {
        p->gathered->last = p->block_pos;
        p->gathered->end = p->block_pos;
        p->length += (off_t) len;
        return;
    }

    p->gathered = ngx_http_toolgate_prompt_append(p, copy, len);
}


void
ngx_http_toolgate_prompt_copy(ngx_http_toolgate_prompt_builder_t *p,
    tg_buf_t *text)
{
    ngx_str_t  copy;

    if (text->error != TG_OK) {
        p->failed = 1;
        return;
    }

    copy = ngx_http_toolgate_copy(p->pool, tg_buf_get(text));

    if (copy.data == NULL) {
        p->failed = 1;
        return;
    }

    ngx_http_toolgate_prompt_ref(p, copy.data, copy.len);
}


void
ngx_http_toolgate_prompt_name(ngx_http_toolgate_prompt_builder_t *p)
{
    tg_buf_t   text;
    ngx_str_t  name;

    name = ngx_http_toolgate_model_vendor_name(p->run);

    tg_buf_init(&text, 4096);
    tg_buf_json_string(&text, (tg_str_t) { name.len, (char *) name.data });
    ngx_http_toolgate_prompt_copy(p, &text);
    tg_buf_free(&text);
}
