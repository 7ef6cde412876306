/*
 * A response of a run that another worker drives: its events, which are the same for all
 * who follow the run, shown as events of a response.
 */

#include "ngx_http_toolgate_face.h"
#include "ngx_http_toolgate_responses.h"


#define NGX_HTTP_TOOLGATE_RESPONSES_PARAGRAPH  "\n\n"

/* A call that has begun. */
typedef struct {
    char       id[TG_ID_MAX_LEN];
    ngx_str_t  arguments;
} ngx_http_toolgate_responses_call_t;


static tg_rc_e ngx_http_toolgate_responses_shown_text(
    ngx_http_toolgate_run_t *run, tg_str_t delta);
static tg_rc_e ngx_http_toolgate_responses_shown_call(ngx_http_toolgate_run_t *run,
    json_t *event);
static tg_rc_e ngx_http_toolgate_responses_shown_result(
    ngx_http_toolgate_run_t *run, json_t *event);
static tg_rc_e ngx_http_toolgate_responses_shown_pause(
    ngx_http_toolgate_run_t *run, json_t *required);
static tg_str_t ngx_http_toolgate_responses_arguments(
    ngx_http_toolgate_run_t *run, tg_str_t id);
static ngx_int_t ngx_http_toolgate_responses_begun(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_run_answer_t *document);


ngx_int_t
ngx_http_toolgate_responses_event(ngx_http_toolgate_run_t *run, int64_t seq,
    tg_str_t event)
{
    json_t           *tree;
    tg_rc_e           rc;
    tg_str_t          type;
    tg_responses_t   *answer;
    tg_json_error_t   ignored;

    answer = ngx_http_toolgate_responses_of(run);
    tree = tg_json_load(event, &ignored);
    type = tg_json_get_string(tree, "type");
    rc = TG_OK;

    if (tg_str_eq(type, tg_str("run.started"))) {
        rc = tg_responses_open(answer);

    } else if (tg_str_eq(type, tg_str("run.text_delta"))) {
        rc = ngx_http_toolgate_responses_shown_text(run,
                                              tg_json_get_string(tree, "delta"));

    } else if (tg_str_eq(type, tg_str("run.tool_call"))) {
        rc = ngx_http_toolgate_responses_shown_call(run, tree);

    } else if (tg_str_eq(type, tg_str("run.tool_result"))) {
        rc = ngx_http_toolgate_responses_shown_result(run, tree);

    } else if (tg_str_eq(type, tg_str("run.requires_action"))) {
        rc = ngx_http_toolgate_responses_shown_pause(run,
                                         json_object_get(tree, "required_action"));
    }

    json_decref(tree);

    return ngx_http_toolgate_responses_send(run, rc);
}


/* Texts of two rounds are parted by their items here. */
static tg_rc_e
ngx_http_toolgate_responses_shown_text(ngx_http_toolgate_run_t *run, tg_str_t delta)
{
    tg_responses_t                       *answer;
    ngx_http_toolgate_responses_state_t  *state = run->face_data;

    const size_t  len = sizeof(NGX_HTTP_TOOLGATE_RESPONSES_PARAGRAPH) - 1;

    answer = ngx_http_toolgate_responses_of(run);

    if (answer->part == TG_RESPONSES_NONE && (answer->item_count || state->own)
        && delta.len >= len
        && ngx_memcmp(delta.data, NGX_HTTP_TOOLGATE_RESPONSES_PARAGRAPH, len) == 0)
    {
        delta.data += len;
        delta.len -= len;
    }

    return delta.len ? tg_responses_text(answer, delta) : TG_OK;
}


/* Whether the server runs it shows when its result comes: calls that are handed out have
 * the same event, and none. */
static tg_rc_e
ngx_http_toolgate_responses_shown_call(ngx_http_toolgate_run_t *run, json_t *event)
{
    tg_str_t                              id;
    ngx_http_toolgate_responses_call_t   *call;
    ngx_http_toolgate_responses_state_t  *state = run->face_data;

    if (state->calls.elts == NULL
        && ngx_array_init(&state->calls, run->request->pool, 4,
                          sizeof(ngx_http_toolgate_responses_call_t)) != NGX_OK)
    {
        return TG_E_NOMEM;
    }

    call = ngx_array_push(&state->calls);
    if (call == NULL) {
        return TG_E_NOMEM;
    }

    id = tg_json_get_string(event, "call_id");
    snprintf(call->id, sizeof(call->id), "%.*s", (int) id.len, id.len ? id.data : "");

    call->arguments = ngx_http_toolgate_copy(run->request->pool,
                                        tg_json_get_string(event, "arguments"));

    return call->arguments.data ? TG_OK : TG_E_NOMEM;
}


/* A response ends where its run waits, whether or not it waits any more. */
static tg_rc_e
ngx_http_toolgate_responses_shown_pause(ngx_http_toolgate_run_t *run,
    json_t *required)
{
    json_t                               *call;
    size_t                                i;
    tg_rc_e                               rc;
    tg_str_t                              id;
    ngx_http_toolgate_responses_state_t  *state = run->face_data;

    state->paused = 1;
    rc = ngx_http_toolgate_responses_approvals(run, required);

    json_array_foreach(json_object_get(required, "tool_calls"), i, call) {
        if (rc != TG_OK) {
            break;
        }

        id = tg_json_get_string(call, "call_id");

        rc = tg_responses_function_call(ngx_http_toolgate_responses_of(run), id,
                                        tg_json_get_string(call, "name"),
                                        ngx_http_toolgate_responses_arguments(run,
                                                                              id));
    }

    return rc;
}


/* As the model wrote them when the call began. */
static tg_str_t
ngx_http_toolgate_responses_arguments(ngx_http_toolgate_run_t *run, tg_str_t id)
{
    ngx_uint_t                            i;
    ngx_http_toolgate_responses_call_t   *call;
    ngx_http_toolgate_responses_state_t  *state = run->face_data;

    call = state->calls.elts;

    for (i = 0; i < state->calls.nelts; i++) {
        if (tg_str_eq(id, tg_str_of(call[i].id))) {
            return (tg_str_t) { call[i].arguments.len,
                                (char *) call[i].arguments.data };
        }
    }

    return tg_str("{}");
}


static tg_rc_e
ngx_http_toolgate_responses_shown_result(ngx_http_toolgate_run_t *run,
    json_t *event)
{
    size_t                                index;
    tg_rc_e                               rc;
    tg_str_t                              name;
    ngx_str_t                             text;
    ngx_http_toolgate_tool_t             *tool;

    name = tg_json_get_string(event, "name");
    text.data = (u_char *) name.data;
    text.len = name.len;
    tool = (run->agent && text.len) ? ngx_http_toolgate_run_tool(run, &text) : NULL;

    /* what the caller's app has sent is no call of the server's */

    if (tool && tool->kind == NGX_HTTP_TOOLGATE_TOOL_CLIENT) {
        return TG_OK;
    }

    index = 0;
    rc = tg_responses_call_begins(ngx_http_toolgate_responses_of(run), name,
                                  ngx_http_toolgate_responses_arguments(run,
                                        tg_json_get_string(event, "call_id")),
                                  tg_null_str, &index);
    if (rc != TG_OK) {
        return rc;
    }

    return tg_responses_call_ended(ngx_http_toolgate_responses_of(run), index,
                                   tg_json_get_string(event, "content"),
                                   tg_json_get_string(json_object_get(event, "error"),
                                                      "code"));
}


ngx_int_t
ngx_http_toolgate_responses_document(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_run_answer_t *document)
{
    ngx_http_toolgate_responses_state_t  *state = run->face_data;

    if (run->background
        && (document->answer == NGX_HTTP_TOOLGATE_ANSWER_FREE
            || document->answer == NGX_HTTP_TOOLGATE_ANSWER_HELD)
        && !state->own)
    {
        return ngx_http_toolgate_responses_begun(run, document);
    }

    ngx_http_toolgate_follow_result(run, document);

    /* what it has become since is another response's */

    if (state->paused) {
        run->follow_fault = NULL;
        run->finish_reason = "stop";
    }

    return NGX_OK;
}


/* Its caller does not wait for more than that. */
static ngx_int_t
ngx_http_toolgate_responses_begun(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_run_answer_t *document)
{
    tg_buf_t                              out;
    ngx_int_t                             rc;
    ngx_http_toolgate_responses_state_t  *state = run->face_data;

    state->answered = 1;
    tg_buf_init(&out, TG_RESPONSES_OUTPUT_MAX);

    rc = ngx_http_toolgate_responses_live(run,
             document->answer == NGX_HTTP_TOOLGATE_ANSWER_FREE ? "queued"
                                                               : "in_progress", &out);
    if (rc == NGX_OK) {
        rc = ngx_http_toolgate_face_whole(run, tg_buf_get(&out));
    }

    tg_buf_free(&out);

    return rc;
}
