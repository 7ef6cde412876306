/*
 * One step as JSON: what was asked, what the policy said, what went out, what came
 * back. Every text from outside is cleaned, masked and cut on its way in.
 */

#include "ngx_http_toolgate_steps.h"

#include "tg_clean.h"


static void ngx_http_toolgate_step_head(ngx_http_toolgate_steps_t *steps,
    const char *id, const char *type, ngx_uint_t round, ngx_msec_t started,
    ngx_msec_t ended);
static void ngx_http_toolgate_step_turn_answer(ngx_http_toolgate_steps_t *steps,
    const char *code);
static tg_str_t ngx_http_toolgate_step_turn_detail(ngx_http_toolgate_run_t *run,
    const char *code);
static void ngx_http_toolgate_step_verdict(tg_buf_t *out,
    tg_policy_verdict_t *verdict);
static void ngx_http_toolgate_step_arguments(ngx_http_toolgate_steps_t *steps,
    tg_str_t text, ngx_uint_t is_json);
static void ngx_http_toolgate_step_facts(ngx_http_toolgate_steps_t *steps,
    ngx_http_toolgate_call_t *call);
static void ngx_http_toolgate_step_request(ngx_http_toolgate_steps_t *steps,
    ngx_http_toolgate_job_facts_t *facts);
static void ngx_http_toolgate_step_upstream(ngx_http_toolgate_steps_t *steps,
    ngx_toolgate_client_result_t *result);
static void ngx_http_toolgate_step_body(ngx_http_toolgate_steps_t *steps,
    ngx_uint_t status, ngx_str_t *type, tg_str_t body);
static void ngx_http_toolgate_step_json(ngx_http_toolgate_steps_t *steps,
    const char *key, tg_str_t text, ngx_uint_t trusted, size_t max);
static ngx_uint_t ngx_http_toolgate_step_text(ngx_http_toolgate_steps_t *steps,
    tg_str_t text, ngx_uint_t open, size_t max);
static void ngx_http_toolgate_step_member(ngx_http_toolgate_steps_t *steps,
    const char *key, tg_str_t text, size_t max);
static void ngx_http_toolgate_step_code(tg_buf_t *out, const char *key,
    const char *code);
static void ngx_http_toolgate_step_key(tg_buf_t *out, const char *key);
static void ngx_http_toolgate_step_number(tg_buf_t *out, const char *before,
    int64_t n);


void
ngx_http_toolgate_step_model(ngx_http_toolgate_steps_t *steps, const char *code)
{
    char                      id[TG_ID_MAX_LEN];
    u_char                    random[TG_ID_RANDOM_LEN];
    tg_buf_t                 *out = &steps->text;
    ngx_str_t                 name;
    tg_delta_usage_t         *usage;
    ngx_http_toolgate_run_t  *run = steps->run;

    if (ngx_http_toolgate_random(random, sizeof(random)) != NGX_OK) {
        out->error = TG_E_INVALID;
        return;
    }

    tg_id_make("step_", random, id);
    ngx_http_toolgate_step_head(steps, id, "model_call", run->round + 1,
                                steps->turn_started, ngx_current_msec);

    name = ngx_http_toolgate_model_vendor_name(run);
    usage = &run->delta.usage;

    ngx_http_toolgate_step_member(steps, "model", (tg_str_t) { name.len,
                                                          (char *) name.data },
                                  NGX_HTTP_TOOLGATE_STEP_VALUE_MAX);
    ngx_http_toolgate_step_member(steps, "finish_reason",
                                  tg_str_of(run->delta.finish_reason),
                                  NGX_HTTP_TOOLGATE_STEP_VALUE_MAX);

    if (usage->present) {
        tg_buf_cstr(out, ",\"usage\":{");
        ngx_http_toolgate_step_number(out, "\"input_tokens\":",
                                      usage->prompt_tokens);
        ngx_http_toolgate_step_number(out, ",\"output_tokens\":",
                                      usage->completion_tokens);
        ngx_http_toolgate_step_number(out, ",\"total_tokens\":",
                                      usage->total_tokens);
        tg_buf_char(out, '}');

    } else {
        tg_buf_cstr(out, ",\"usage\":null");
    }

    tg_buf_cstr(out, code ? ",\"ok\":false" : ",\"ok\":true");
    ngx_http_toolgate_step_code(out, "code", code);

    ngx_http_toolgate_step_member(steps, "detail",
                                  ngx_http_toolgate_step_turn_detail(run, code),
                                  NGX_HTTP_TOOLGATE_STEP_DETAIL_MAX);
    ngx_http_toolgate_step_turn_answer(steps, code);
    tg_buf_char(out, '}');
}


/* What the vendor said to a turn that failed, and how a call of our own client went
 * in any case. */
static void
ngx_http_toolgate_step_turn_answer(ngx_http_toolgate_steps_t *steps,
    const char *code)
{
    tg_str_t                       body;
    ngx_http_toolgate_turn_t      *turn = &steps->run->turn;
    ngx_toolgate_client_result_t   result;

    body = code ? tg_buf_get(&steps->run->whole) : tg_null_str;

    if (turn->result && !steps->short_form) {
        result = *turn->result;
        result.body.data = (u_char *) body.data;
        result.body.len = body.len;
        ngx_http_toolgate_step_upstream(steps, &result);

    } else if (code && turn->status && turn->detail == NULL && !steps->short_form) {
        tg_buf_cstr(&steps->text, ",\"upstream\":{");
        ngx_http_toolgate_step_body(steps, turn->status, &turn->content_type, body);
        tg_buf_char(&steps->text, '}');

    } else {
        tg_buf_cstr(&steps->text, ",\"upstream\":null");
    }
}


static tg_str_t
ngx_http_toolgate_step_turn_detail(ngx_http_toolgate_run_t *run, const char *code)
{
    if (code == NULL) {
        return tg_null_str;
    }

    if (!ngx_http_toolgate_turn_over(&run->turn)
        || run->turn.state == NGX_HTTP_TOOLGATE_TURN_CANCELLED)
    {
        return tg_str("the run was ended before the answer was whole");
    }

    if (run->turn.detail) {
        return tg_str_of(run->turn.detail);
    }

    if (run->turn.status == 0) {
        return tg_str("no answer came");
    }

    if (run->turn.status / 100 != 2) {
        return tg_str("the status is not 2xx");
    }

    if (run->delta.error.len) {
        return tg_buf_get(&run->delta.error);
    }

    return run->streaming ? tg_str("the answer ended before it was whole")
                          : tg_str("the answer is no chat completion");
}


void
ngx_http_toolgate_step_call(ngx_http_toolgate_steps_t *steps,
    ngx_http_toolgate_call_t *call)
{
    tg_str_t                  result;
    tg_buf_t                 *out = &steps->text;
    ngx_http_toolgate_job_t  *job = &call->job;

    ngx_http_toolgate_step_head(steps, call->step, "tool_call",
                                call->run->round, call->started, call->ended);

    ngx_http_toolgate_step_member(steps, "tool", (tg_str_t) { call->name.len,
                                                    (char *) call->name.data },
                                  NGX_HTTP_TOOLGATE_STEP_VALUE_MAX);
    tg_buf_cstr(out, ",\"call_id\":\"");
    tg_buf_cstr(out, call->id);
    tg_buf_cstr(out, call->caller_owned ? "\",\"owner\":\"caller\""
                                        : "\",\"owner\":\"agent\"");

    if (call->approval[0]) {
        ngx_http_toolgate_step_member(steps, "approval", tg_str_of(call->approval),
                                      NGX_HTTP_TOOLGATE_STEP_VALUE_MAX);
    }

    ngx_http_toolgate_step_verdict(out, &call->verdict);

    tg_buf_cstr(out, call->code ? ",\"ok\":false" : ",\"ok\":true");
    ngx_http_toolgate_step_code(out, "code", call->code);
    ngx_http_toolgate_step_member(steps, "detail", tg_str_of(job->detail),
                                  NGX_HTTP_TOOLGATE_STEP_DETAIL_MAX);

    if (steps->short_form) {
        tg_buf_cstr(out, ",\"arguments\":null,\"result\":null,\"request\":null,"
                         "\"upstream\":null,\"texts_left_out\":true}");
        return;
    }

    ngx_http_toolgate_step_arguments(steps,
                                     (tg_str_t) { call->arguments.len,
                                                  (char *) call->arguments.data },
                                     call->args != NULL);

    /* what a helper writes is checked, the rest is ours */

    result = tg_buf_get(&job->result);
    ngx_http_toolgate_step_json(steps, "result", result,
                                call->tool == NULL
                                || call->tool->kind == NGX_HTTP_TOOLGATE_TOOL_HTTP,
                                NGX_HTTP_TOOLGATE_STEP_RESULT_MAX);

    ngx_http_toolgate_step_facts(steps, call);
    tg_buf_char(out, '}');
}


void
ngx_http_toolgate_step_approval(ngx_http_toolgate_steps_t *steps,
    ngx_http_toolgate_call_t *call)
{
    char       id[TG_ID_MAX_LEN];
    tg_buf_t  *out = &steps->text;

    tg_id_derive("step_", tg_str("approval"), tg_str_of(call->approval), id);

    ngx_http_toolgate_step_head(steps, id, "approval", call->run->round,
                                call->started, call->started);
    ngx_http_toolgate_step_member(steps, "tool", (tg_str_t) { call->name.len,
                                                    (char *) call->name.data },
                                  NGX_HTTP_TOOLGATE_STEP_VALUE_MAX);
    tg_buf_printf(out, ",\"call_id\":\"%s\",\"approval\":\"%s\",\"status\":\"%s\"}",
                  call->id, call->approval,
                  call->approved ? "approved" : "rejected");
}


void
ngx_http_toolgate_step_dropped(ngx_http_toolgate_steps_t *steps,
    tg_delta_call_t *asked, const char *id)
{
    tg_buf_t             *out = &steps->text;
    tg_policy_verdict_t   verdict;

    ngx_memzero(&verdict, sizeof(verdict));
    verdict.check = TG_CHECK_ROUNDS;
    verdict.code = "round_limit";

    ngx_http_toolgate_step_head(steps, id, "tool_call", steps->run->round + 1,
                                ngx_current_msec, ngx_current_msec);
    ngx_http_toolgate_step_member(steps, "tool", tg_buf_get(&asked->name),
                                  NGX_HTTP_TOOLGATE_STEP_VALUE_MAX);
    tg_buf_cstr(out, ",\"call_id\":null,\"owner\":\"agent\"");
    ngx_http_toolgate_step_verdict(out, &verdict);
    tg_buf_cstr(out, ",\"ok\":false,\"code\":\"round_limit\",\"detail\":null");
    ngx_http_toolgate_step_arguments(steps, steps->short_form
                                     ? tg_null_str : tg_buf_get(&asked->arguments),
                                     tg_delta_call_ready(asked));
    tg_buf_cstr(out, ",\"result\":null,\"request\":null,\"upstream\":null}");
}


/* The id comes first: the store looks for it there. */
static void
ngx_http_toolgate_step_head(ngx_http_toolgate_steps_t *steps, const char *id,
    const char *type, ngx_uint_t round, ngx_msec_t started, ngx_msec_t ended)
{
    int64_t      now;
    tg_buf_t    *out = &steps->text;
    ngx_time_t  *tp;

    tp = ngx_timeofday();
    now = (int64_t) tp->sec * 1000 + tp->msec;

    tg_buf_cstr(out, "{\"id\":\"");
    tg_buf_cstr(out, id);
    tg_buf_cstr(out, "\",\"type\":\"");
    tg_buf_cstr(out, type);
    ngx_http_toolgate_step_number(out, "\",\"round\":", (int64_t) round);
    ngx_http_toolgate_step_number(out, ",\"started_at\":",
                                  (now - (int64_t) (ngx_current_msec - started))
                                  / 1000);
    ngx_http_toolgate_step_number(out, ",\"duration_ms\":",
                                  (int64_t) (ended - started));
}


static void
ngx_http_toolgate_step_verdict(tg_buf_t *out, tg_policy_verdict_t *verdict)
{
    tg_buf_cstr(out, verdict->allowed ? ",\"verdict\":{\"allowed\":true"
                                      : ",\"verdict\":{\"allowed\":false");

    if (verdict->check == TG_CHECK_NONE) {
        tg_buf_cstr(out, ",\"check\":null");

    } else {
        ngx_http_toolgate_step_number(out, ",\"check\":", verdict->check);
    }

    ngx_http_toolgate_step_code(out, "code", verdict->code);
    tg_buf_char(out, '}');
}


static void
ngx_http_toolgate_step_arguments(ngx_http_toolgate_steps_t *steps, tg_str_t text,
    ngx_uint_t is_json)
{
    if (is_json) {
        ngx_http_toolgate_step_json(steps, "arguments", text, 1,
                                    NGX_HTTP_TOOLGATE_STEP_TEXT_MAX);

    } else {
        ngx_http_toolgate_step_member(steps, "arguments", text,
                                      NGX_HTTP_TOOLGATE_STEP_TEXT_MAX);
    }
}


static void
ngx_http_toolgate_step_facts(ngx_http_toolgate_steps_t *steps,
    ngx_http_toolgate_call_t *call)
{
    ngx_http_toolgate_job_t              *job = &call->job;
    ngx_http_toolgate_job_facts_t         facts;
    const ngx_http_toolgate_tool_ops_t   *ops;

    ngx_memzero(&facts, sizeof(facts));

    ops = (call->tool && job->state)
          ? ngx_http_toolgate_tool_ops(call->tool->kind) : NULL;

    if (ops && ops->facts && ops->facts(job, &facts) != NGX_OK) {
        steps->text.error = TG_E_NOMEM;
        return;
    }

    if (facts.method) {
        ngx_http_toolgate_step_request(steps, &facts);

    } else {
        tg_buf_cstr(&steps->text, ",\"request\":null");
    }

    if (facts.upstream) {
        ngx_http_toolgate_step_upstream(steps, facts.upstream);

    } else {
        tg_buf_cstr(&steps->text, ",\"upstream\":null");
    }
}


static void
ngx_http_toolgate_step_request(ngx_http_toolgate_steps_t *steps,
    ngx_http_toolgate_job_facts_t *facts)
{
    tg_buf_t      *out = &steps->text;
    ngx_uint_t     i;
    ngx_keyval_t  *header;

    tg_buf_cstr(out, ",\"request\":{\"method\":\"");
    tg_buf_cstr(out, facts->method);
    tg_buf_char(out, '"');
    ngx_http_toolgate_step_member(steps, "url", facts->url,
                                  NGX_HTTP_TOOLGATE_STEP_TEXT_MAX);
    tg_buf_cstr(out, ",\"headers\":{");

    header = facts->headers->elts;

    for (i = 0; i < facts->headers->nelts; i++) {
        tg_buf_cstr(out, i ? "," : "");
        tg_buf_json_string(out, (tg_str_t) { header[i].key.len,
                                             (char *) header[i].key.data });
        tg_buf_char(out, ':');
        (void) ngx_http_toolgate_step_text(steps,
                                     (tg_str_t) { header[i].value.len,
                                                  (char *) header[i].value.data },
                                     0, NGX_HTTP_TOOLGATE_STEP_VALUE_MAX);
    }

    tg_buf_cstr(out, "},\"body\":");

    if (!facts->has_body) {
        tg_buf_cstr(out, "null,\"body_truncated\":false}");
        return;
    }

    tg_buf_cstr(out, ngx_http_toolgate_step_text(steps, facts->body, 0,
                                                 NGX_HTTP_TOOLGATE_STEP_TEXT_MAX)
                     ? ",\"body_truncated\":false}"
                     : ",\"body_truncated\":true}");
}


static void
ngx_http_toolgate_step_upstream(ngx_http_toolgate_steps_t *steps,
    ngx_toolgate_client_result_t *result)
{
    tg_buf_t  *out = &steps->text;

    tg_buf_cstr(out, ",\"upstream\":{");

    ngx_http_toolgate_step_body(steps, result->status, &result->content_type,
                                (tg_str_t) { result->body.len,
                                             (char *) result->body.data });

    ngx_http_toolgate_step_number(out, ",\"timing\":{\"dns\":",
                                  (int64_t) result->dns_ms);
    ngx_http_toolgate_step_number(out, ",\"connect\":",
                                  (int64_t) result->connect_ms);
    ngx_http_toolgate_step_number(out, ",\"tls\":", (int64_t) result->tls_ms);
    ngx_http_toolgate_step_number(out, ",\"first_byte\":",
                                  (int64_t) result->first_byte_ms);
    ngx_http_toolgate_step_number(out, ",\"total\":", (int64_t) result->total_ms);
    tg_buf_char(out, '}');

    ngx_http_toolgate_step_member(steps, "address",
                                  (tg_str_t) { result->address.len,
                                               (char *) result->address.data },
                                  NGX_HTTP_TOOLGATE_STEP_VALUE_MAX);
    tg_buf_char(out, '}');
}


/* Status, type and body of an answer, without a comma before them. */
static void
ngx_http_toolgate_step_body(ngx_http_toolgate_steps_t *steps, ngx_uint_t status,
    ngx_str_t *type, tg_str_t body)
{
    tg_buf_t    *out = &steps->text, *cleaned = &steps->cleaned;
    ngx_uint_t   cut, whole;

    tg_buf_cstr(out, "\"status\":");

    if (status) {
        tg_buf_int(out, (int64_t) status);

    } else {
        tg_buf_cstr(out, "null");
    }

    ngx_http_toolgate_step_member(steps, "content_type",
                                  (tg_str_t) { type->len, (char *) type->data },
                                  NGX_HTTP_TOOLGATE_STEP_VALUE_MAX);

    /* a secret that the end cuts is not shown by half: the mask looks further
     * than what is shown */

    cut = body.len > NGX_HTTP_TOOLGATE_STEP_CLEAN_MAX;

    if (cut) {
        body.len = NGX_HTTP_TOOLGATE_STEP_CLEAN_MAX;
    }

    tg_buf_reset(cleaned);
    tg_clean_value(body, 0, cleaned);

    if (cleaned->error != TG_OK) {
        out->error = cleaned->error;
    }

    tg_buf_cstr(out, ",\"body\":");
    whole = ngx_http_toolgate_step_text(steps, tg_buf_get(cleaned), cut,
                                        NGX_HTTP_TOOLGATE_STEP_TEXT_MAX);

    tg_buf_cstr(out, whole ? ",\"body_truncated\":false"
                           : ",\"body_truncated\":true");
}


/* A member that is JSON itself, unless it is too long: then the text of it. trusted:
 * it is JSON for sure. */
static void
ngx_http_toolgate_step_json(ngx_http_toolgate_steps_t *steps, const char *key,
    tg_str_t text, ngx_uint_t trusted, size_t max)
{
    bool           whole;
    json_t        *tree;
    tg_buf_t      *out = &steps->text, *scratch = &steps->scratch;
    json_error_t   error;

    if (text.len == 0 || text.len > max) {
        ngx_http_toolgate_step_member(steps, key, text, max);
        return;
    }

    if (steps->mask) {
        tg_buf_reset(scratch);

        if (tg_mask_text(steps->mask, text, false, max, scratch, &whole) != TG_OK) {
            out->error = scratch->error;
            return;
        }

        trusted = trusted && tg_str_eq(text, tg_buf_get(scratch));
        text = tg_buf_get(scratch);
    }

    /* a mask in the place of a number, say */

    tree = trusted ? NULL
                   : json_loadb(text.data, text.len, JSON_DECODE_ANY|JSON_ALLOW_NUL,
                                &error);

    ngx_http_toolgate_step_key(out, key);

    if (trusted || tree) {
        tg_buf_str(out, text);

    } else {
        tg_buf_json_string(out, text);
    }

    json_decref(tree);
}


/* A member that is a text, null when it is empty, with "…_truncated" when cut. */
static void
ngx_http_toolgate_step_member(ngx_http_toolgate_steps_t *steps, const char *key,
    tg_str_t text, size_t max)
{
    ngx_http_toolgate_step_key(&steps->text, key);

    if (text.len == 0) {
        tg_buf_cstr(&steps->text, "null");
        return;
    }

    if (!ngx_http_toolgate_step_text(steps, text, 0, max)) {
        tg_buf_printf(&steps->text, ",\"%s_truncated\":true", key);
    }
}


/* Appends a text as a JSON string, masked; false when some of it was left out. open:
 * it is the beginning of a longer one. */
static ngx_uint_t
ngx_http_toolgate_step_text(ngx_http_toolgate_steps_t *steps, tg_str_t text,
    ngx_uint_t open, size_t max)
{
    bool       whole;
    tg_buf_t  *out = &steps->text, *scratch = &steps->scratch;

    if (steps->mask == NULL && text.len <= max) {
        tg_buf_json_string(out, text);
        return !open;
    }

    /* no more is looked at than may end up here */

    if (text.len > 2 * max) {
        text.len = 2 * max;
        open = 1;
    }

    tg_buf_reset(scratch);

    if (tg_mask_text(steps->mask, text, open, max, scratch, &whole) != TG_OK) {
        out->error = scratch->error;
        return 0;
    }

    tg_buf_json_string(out, tg_buf_get(scratch));

    return whole && !open;
}


static void
ngx_http_toolgate_step_code(tg_buf_t *out, const char *key, const char *code)
{
    ngx_http_toolgate_step_key(out, key);

    if (code) {
        tg_buf_json_string(out, tg_str_of(code));

    } else {
        tg_buf_cstr(out, "null");
    }
}


static void
ngx_http_toolgate_step_key(tg_buf_t *out, const char *key)
{
    tg_buf_cstr(out, ",\"");
    tg_buf_cstr(out, key);
    tg_buf_cstr(out, "\":");
}


static void
ngx_http_toolgate_step_number(tg_buf_t *out, const char *before, int64_t n)
{
    tg_buf_cstr(out, before);
    tg_buf_int(out, n);
}
