/*
 * Items that a request names by their id: the responses that they are of are asked for,
 * and the input gets them in their places. What is kept of the request has them, too.
 */

#include "ngx_http_toolgate_responses.h"


#define NGX_HTTP_TOOLGATE_REFS_RESPONSES_MAX  32     /* that one request names */
#define NGX_HTTP_TOOLGATE_REFS_BYTES_MAX      (32 * 1024 * 1024)

static const char  ngx_http_toolgate_reference_word[] = "item_reference";


typedef struct ngx_http_toolgate_refs_s  ngx_http_toolgate_refs_t;

/* A response that items are named of. */
typedef struct {
    ngx_http_toolgate_refs_t  *refs;
    char                       id[TG_ID_MAX_LEN];
    ngx_str_t                  object;       /* empty: it is not there */
} ngx_http_toolgate_ref_t;

struct ngx_http_toolgate_refs_s {
    ngx_http_toolgate_check_t        *check;
    ngx_http_toolgate_check_done_pt   done;
    tg_str_t                          input;
    ngx_uint_t                        waiting;     /* for answers */
    ngx_uint_t                        count;
    ngx_uint_t                        named;       /* items */
    unsigned                          away:1;
    ngx_http_toolgate_ref_t           responses[NGX_HTTP_TOOLGATE_REFS_RESPONSES_MAX];
};


static bool ngx_http_toolgate_refs_named(void *ctx, tg_str_t id);
static ngx_int_t ngx_http_toolgate_refs_ask(ngx_http_toolgate_refs_t *refs);
static void ngx_http_toolgate_refs_answered(void *data,
    ngx_http_toolgate_response_answer_t *answer);
static ngx_int_t ngx_http_toolgate_refs_put(ngx_http_toolgate_refs_t *refs);
static tg_str_t ngx_http_toolgate_refs_find(void *ctx, tg_str_t id);


void
ngx_http_toolgate_responses_refs(ngx_http_toolgate_check_t *c,
    ngx_http_toolgate_check_done_pt done)
{
    ngx_http_toolgate_refs_t  *refs;
    const tg_scan_member_t    *member;

    member = ngx_http_toolgate_check_member(c, "input");

    if (member == NULL || member->value.type != TG_SCAN_ARRAY
        || memmem(c->body->data + member->value.start,
                  member->value.end - member->value.start,
                  ngx_http_toolgate_reference_word,
                  sizeof(ngx_http_toolgate_reference_word) - 1) == NULL)
    {
        done(c);
        return;
    }

    refs = ngx_pcalloc(c->request->pool, sizeof(ngx_http_toolgate_refs_t));

    if (refs == NULL) {
        ngx_http_toolgate_check_refuse(c);
        return;
    }

    refs->check = c;
    refs->done = done;
    refs->input.data = (char *) c->body->data + member->value.start;
    refs->input.len = member->value.end - member->value.start;

    if (tg_responses_references(refs->input, ngx_http_toolgate_refs_named, refs)
        != TG_OK)
    {
        (void) ngx_http_toolgate_check_fault(c, "invalid_value", "input",
                                             "\"input\" names too many items.");
        ngx_http_toolgate_check_refuse(c);
        return;
    }

    if (refs->named == 0) {
        done(c);
        return;
    }

    if (refs->count && c->run->conf->redis == NULL) {
        (void) ngx_http_toolgate_check_fault(c, "store_unavailable", "input", NULL);
        ngx_http_toolgate_check_refuse(c);
        return;
    }

    if (refs->count == 0) {

        if (ngx_http_toolgate_refs_put(refs) == NGX_OK) {
            done(c);

        } else {
            ngx_http_toolgate_check_refuse(c);
        }

        return;
    }

    if (ngx_http_toolgate_refs_ask(refs) != NGX_OK) {
        ngx_http_toolgate_check_refuse(c);
    }
}


static bool
ngx_http_toolgate_refs_named(void *ctx, tg_str_t id)
{
    ngx_http_toolgate_refs_t *refs = ctx;

    char        response[TG_ID_MAX_LEN];
    ngx_uint_t  i;

    if (++refs->named > TG_RESPONSES_REFERENCES_MAX) {
        return false;
    }

    if (!tg_responses_response_of(id, response)) {
        return true;
    }

    for (i = 0; i < refs->count; i++) {
        if (ngx_strcmp(refs->responses[i].id, response) == 0) {
            return true;
        }
    }

    if (refs->count == NGX_HTTP_TOOLGATE_REFS_RESPONSES_MAX) {
        return false;
    }

    refs->responses[refs->count].refs = refs;
    ngx_memcpy(refs->responses[refs->count].id, response, sizeof(response));
    refs->count++;

    return true;
}


static ngx_int_t
ngx_http_toolgate_refs_ask(ngx_http_toolgate_refs_t *refs)
{
    ngx_uint_t                         i;
    ngx_http_request_t                *r;
    ngx_http_toolgate_run_t           *run;
    ngx_http_toolgate_response_key_t   key;

    run = refs->check->run;
    r = refs->check->request;

    key.project = run->project->name;
    key.account = run->prompt.account;

    for (i = 0; i < refs->count; i++) {
        key.response.data = (u_char *) refs->responses[i].id;
        key.response.len = ngx_strlen(refs->responses[i].id);

        if (ngx_http_toolgate_response_get(r->pool, r->connection->log,
                                           run->conf->redis, &key,
                                           ngx_http_toolgate_refs_answered,
                                           &refs->responses[i])
            != NGX_OK)
        {
            /* those that were asked answer to nobody once the request is gone */
            return NGX_ERROR;
        }

        refs->waiting++;
    }

    return NGX_OK;
}


static void
ngx_http_toolgate_refs_answered(void *data,
    ngx_http_toolgate_response_answer_t *answer)
{
    ngx_http_toolgate_ref_t *ref = data;

    ngx_connection_t           *connection;
    ngx_http_toolgate_refs_t   *refs;
    ngx_http_toolgate_check_t  *c;

    refs = ref->refs;
    c = refs->check;
    connection = c->request->connection;
    refs->waiting--;

    if (answer->state == NGX_HTTP_TOOLGATE_RESPONSE_AWAY) {
        refs->away = 1;

    } else if (answer->state == NGX_HTTP_TOOLGATE_RESPONSE_OK) {
        ref->object = ngx_http_toolgate_copy(c->request->pool,
                                             (tg_str_t) { answer->text.len,
                                                       (char *) answer->text.data });
    }

    if (refs->waiting) {
        return;
    }

    if (refs->away) {
        (void) ngx_http_toolgate_check_fault(c, "store_unavailable", "input", NULL);
        ngx_http_toolgate_check_refuse(c);

    } else if (ngx_http_toolgate_refs_put(refs) == NGX_OK) {
        refs->done(c);

    } else {
        ngx_http_toolgate_check_refuse(c);
    }

    ngx_http_run_posted_requests(connection);
}


static ngx_int_t
ngx_http_toolgate_refs_put(ngx_http_toolgate_refs_t *refs)
{
    tg_rc_e                               rc;
    tg_buf_t                              out;
    tg_responses_fault_t                  fault;
    ngx_http_toolgate_check_t            *c;
    ngx_http_toolgate_responses_state_t  *state;

    c = refs->check;
    state = c->run->face_data;

    tg_buf_init(&out, NGX_HTTP_TOOLGATE_REFS_BYTES_MAX);
    rc = tg_responses_resolve(refs->input, ngx_http_toolgate_refs_find, refs, &out,
                              &fault);

    if (rc == TG_OK) {
        state->data = ngx_http_toolgate_bytes_resize(c->request->pool, NULL, 0, 0,
                                                     out.len);
        if (state->data) {
            ngx_memcpy(state->data, out.data, out.len);
            state->size = out.len;
            state->input.data = state->data;
            state->input.len = out.len;
        }
    }

    tg_buf_free(&out);

    if (rc == TG_E_INVALID) {
        return ngx_http_toolgate_check_fault(c, fault.code, fault.param,
                                             fault.message);
    }

    return state->input.len ? NGX_OK : NGX_ERROR;
}


static tg_str_t
ngx_http_toolgate_refs_find(void *ctx, tg_str_t id)
{
    ngx_http_toolgate_refs_t *refs = ctx;

    char        response[TG_ID_MAX_LEN];
    ngx_uint_t  i;

    if (!tg_responses_response_of(id, response)) {
        return tg_null_str;
    }

    for (i = 0; i < refs->count; i++) {
        if (ngx_strcmp(refs->responses[i].id, response) == 0) {
            return tg_responses_output_item(
                       (tg_str_t) { refs->responses[i].object.len,
                                    (char *) refs->responses[i].object.data }, id);
        }
    }

    return tg_null_str;
}
