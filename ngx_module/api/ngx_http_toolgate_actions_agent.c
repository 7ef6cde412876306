/*
 * RunAgent: the request becomes one for a run, in the form of chat or of Responses;
 * the answer is that of chat or of Responses, in an envelope when it is whole. The run
 * is one of the run host's, as those of /v1/runs: it goes on when its caller leaves.
 */

#include "ngx_http_toolgate_actions.h"
#include "ngx_http_toolgate_chat.h"
#include "ngx_http_toolgate_check.h"
#include "ngx_http_toolgate_durable.h"
#include "ngx_http_toolgate_responses.h"
#include "ngx_http_toolgate_runs_face.h"

#include "tg_ksadk.h"


#define NGX_HTTP_TOOLGATE_RUN_AGENT_SPARE    1024    /* what the form needs more */
#define NGX_HTTP_TOOLGATE_RUN_AGENT_ID_MAX   64
#define NGX_HTTP_TOOLGATE_RUN_AGENT_DATA_MAX 4096

/* What the caller has asked for, beside what goes into the run. */
typedef struct {
    ngx_http_toolgate_action_t  *action;
    ngx_http_toolgate_body_t    *body;
    const tg_scan_member_t      *agent;
    const tg_scan_member_t      *messages;
    const tg_scan_member_t      *input;         /* in the form of Responses */
    ngx_str_t                    invocation;
    ngx_uint_t                   stream;
    ngx_uint_t                   background;
    ngx_uint_t                   chat;          /* the answer is one of chat's */
    tg_buf_t                     head;          /* of the envelope */
    tg_buf_t                     tail;
} ngx_http_toolgate_run_agent_t;


static ngx_int_t ngx_http_toolgate_run_agent_fields(
    ngx_http_toolgate_run_agent_t *ask);
static const tg_scan_member_t *ngx_http_toolgate_run_agent_member(
    ngx_http_toolgate_run_agent_t *ask, const char *name);
static ngx_int_t ngx_http_toolgate_run_agent_flag(
    ngx_http_toolgate_run_agent_t *ask, const char *name, ngx_uint_t *value);
static ngx_int_t ngx_http_toolgate_run_agent_id(
    ngx_http_toolgate_run_agent_t *ask, const char *name, ngx_str_t *value);
static ngx_int_t ngx_http_toolgate_run_agent_format(
    ngx_http_toolgate_run_agent_t *ask);
static ngx_int_t ngx_http_toolgate_run_agent_said(
    ngx_http_toolgate_run_agent_t *ask);
static ngx_int_t ngx_http_toolgate_run_agent_session(
    ngx_http_toolgate_run_agent_t *ask);
static ngx_int_t ngx_http_toolgate_run_agent_form(
    ngx_http_toolgate_run_agent_t *ask);
static void ngx_http_toolgate_run_agent_copy(ngx_http_toolgate_run_agent_t *ask,
    tg_buf_t *out, const char *to, const tg_scan_member_t *member);
static void ngx_http_toolgate_run_agent_checked(ngx_http_toolgate_check_t *c);
static void ngx_http_toolgate_run_agent_start(ngx_http_toolgate_check_t *c);
static ngx_int_t ngx_http_toolgate_run_agent_wrap(
    ngx_http_toolgate_run_agent_t *ask, ngx_http_toolgate_run_t *run);
static void ngx_http_toolgate_run_agent_free(void *data);
static ngx_int_t ngx_http_toolgate_started_nothing(ngx_http_toolgate_run_t *run,
    tg_str_t text);
static ngx_int_t ngx_http_toolgate_started_finish(ngx_http_toolgate_run_t *run);
static ngx_int_t ngx_http_toolgate_started_document(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_run_answer_t *document);


/* Of a run in the background: that it is there is all that there is to say. */
static const ngx_http_toolgate_face_t  ngx_http_toolgate_started_face = {
    .text = ngx_http_toolgate_started_nothing,
    .refusal = ngx_http_toolgate_started_nothing,
    .reasoning = ngx_http_toolgate_started_nothing,
    .ping = ngx_http_toolgate_started_finish,
    .finish = ngx_http_toolgate_started_finish,
    .fail = ngx_http_toolgate_runs_fail,
    .name = "started",
    .document = ngx_http_toolgate_started_document
};


/* What the form of chat takes from the request, and under which name. */
static const struct {
    const char  *from;
    const char  *to;
}  ngx_http_toolgate_run_agent_names[] = {
    { "AccountId", "account_id" },
    { "InvocationId", "invocation_id" },
    { "UserId", "user" },
    { "Metadata", "metadata" },
    { NULL, NULL }
};


void
ngx_http_toolgate_action_run(ngx_http_toolgate_action_t *a,
    ngx_http_toolgate_body_t *body)
{
    ngx_pool_cleanup_t             *cln;
    ngx_http_toolgate_main_conf_t  *tmcf;
    ngx_http_toolgate_run_agent_t  *ask;

    tmcf = ngx_http_get_module_main_conf(a->request, ngx_http_toolgate_module);

    if (tmcf->run_host.len == 0) {
        (void) ngx_http_toolgate_fault(&a->fault, "not_implemented", NULL,
                                       "This server has no \"toolgate_run_host\", "
                                       "which runs need. Use "
                                       "/v1/chat/completions.");
        ngx_http_toolgate_action_refuse(a);
        return;
    }

    cln = ngx_pool_cleanup_add(a->request->pool,
                               sizeof(ngx_http_toolgate_run_agent_t));
    if (cln == NULL) {
        ngx_http_finalize_request(a->request, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    ask = cln->data;
    ngx_memzero(ask, sizeof(ngx_http_toolgate_run_agent_t));
    cln->handler = ngx_http_toolgate_run_agent_free;

    ask->action = a;
    ask->body = body;
    body->owner = ask;
    tg_buf_init(&ask->head, NGX_HTTP_TOOLGATE_RUN_AGENT_DATA_MAX);
    tg_buf_init(&ask->tail, NGX_HTTP_TOOLGATE_RUN_AGENT_DATA_MAX);

    if (ngx_http_toolgate_run_agent_fields(ask) != NGX_OK
        || ngx_http_toolgate_run_agent_form(ask) != NGX_OK)
    {
        ngx_http_toolgate_action_refuse(a);
        return;
    }

    ngx_http_toolgate_check(a->request, body,
                            ask->background ? &ngx_http_toolgate_started_face
                            : ask->chat ? &ngx_http_toolgate_chat_face
                            : &ngx_http_toolgate_responses_face,
                            ngx_http_toolgate_run_agent_checked);
}


static void
ngx_http_toolgate_run_agent_free(void *data)
{
    ngx_http_toolgate_run_agent_t *ask = data;

    tg_buf_free(&ask->head);
    tg_buf_free(&ask->tail);
}


static ngx_int_t
ngx_http_toolgate_run_agent_fields(ngx_http_toolgate_run_agent_t *ask)
{
    ngx_str_t                   account;
    ngx_http_toolgate_fault_t  *fault;

    fault = &ask->action->fault;

    if (tg_scan_top_type(ask->body->scan) != TG_SCAN_OBJECT) {
        return ngx_http_toolgate_fault(fault, "invalid_type", NULL,
                                       "The body is a JSON object.");
    }

    ask->agent = ngx_http_toolgate_run_agent_member(ask, "AgentId");

    if (ask->agent == NULL) {
        return ngx_http_toolgate_fault(fault, "missing_parameter", "AgentId", NULL);
    }

    if (ask->agent->value.type != TG_SCAN_STRING) {
        return ngx_http_toolgate_fault(fault, "invalid_type", "AgentId",
                                       "This field is a string.");
    }

    if (ngx_http_toolgate_run_agent_member(ask, "PreviousResponseId")) {
        return ngx_http_toolgate_fault(fault, "invalid_value", "PreviousResponseId",
                                       "Name the SessionId instead: a session has "
                                       "the whole conversation.");
    }

    if (ngx_http_toolgate_run_agent_flag(ask, "Stream", &ask->stream) != NGX_OK
        || ngx_http_toolgate_run_agent_flag(ask, "Background", &ask->background)
           != NGX_OK
        || ngx_http_toolgate_run_agent_id(ask, "SessionId", &ask->action->session)
           != NGX_OK
        || ngx_http_toolgate_run_agent_id(ask, "InvocationId", &ask->invocation)
           != NGX_OK
        || ngx_http_toolgate_run_agent_id(ask, "AccountId", &account) != NGX_OK
        || ngx_http_toolgate_run_agent_format(ask) != NGX_OK
        || ngx_http_toolgate_run_agent_said(ask) != NGX_OK)
    {
        return NGX_DECLINED;
    }

    return ngx_http_toolgate_run_agent_session(ask);
}


/* null is as good as absent. */
static const tg_scan_member_t *
ngx_http_toolgate_run_agent_member(ngx_http_toolgate_run_agent_t *ask,
    const char *name)
{
    const tg_scan_member_t  *member;

    member = tg_scan_find(ask->body->scan, (char *) ask->body->data, name);

    return (member && member->value.type != TG_SCAN_NULL) ? member : NULL;
}


static ngx_int_t
ngx_http_toolgate_run_agent_flag(ngx_http_toolgate_run_agent_t *ask,
    const char *name, ngx_uint_t *value)
{
    const tg_scan_member_t  *member;

    member = ngx_http_toolgate_run_agent_member(ask, name);

    if (member == NULL) {
        return NGX_OK;
    }

    *value = (member->value.type == TG_SCAN_TRUE);

    if (!*value && member->value.type != TG_SCAN_FALSE) {
        return ngx_http_toolgate_fault(&ask->action->fault, "invalid_type", name,
                                       "This field is true or false.");
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_run_agent_id(ngx_http_toolgate_run_agent_t *ask,
    const char *name, ngx_str_t *value)
{
    char                     id[NGX_HTTP_TOOLGATE_RUN_AGENT_ID_MAX + 1];
    ptrdiff_t                n;
    const tg_scan_member_t  *member;

    member = ngx_http_toolgate_run_agent_member(ask, name);

    if (member == NULL) {
        return NGX_OK;
    }

    n = member->value.type == TG_SCAN_STRING
        ? tg_scan_string((char *) ask->body->data, member->value, id, sizeof(id))
        : -1;

    if (n < 0 || !tg_id_label_valid((tg_str_t) { (size_t) n, id })) {
        return ngx_http_toolgate_fault(&ask->action->fault, "invalid_value", name,
                                       "This field is a string of 1 to 64 of "
                                       "[A-Za-z0-9_.:-].");
    }

    *value = ngx_http_toolgate_copy(ask->body->request->pool,
                                    (tg_str_t) { (size_t) n, id });

    return value->data ? NGX_OK
           : ngx_http_toolgate_fault(&ask->action->fault, "internal_error", NULL,
                                     NULL);
}


static ngx_int_t
ngx_http_toolgate_run_agent_format(ngx_http_toolgate_run_agent_t *ask)
{
    char                     format[sizeof("chat_completions")];
    ptrdiff_t                n;
    const tg_scan_member_t  *member;

    member = ngx_http_toolgate_run_agent_member(ask, "ApiFormat");

    if (member == NULL) {
        return NGX_OK;
    }

    n = member->value.type == TG_SCAN_STRING
        ? tg_scan_string((char *) ask->body->data, member->value, format,
                         sizeof(format))
        : -1;

    ask->chat = n > 0 && tg_str_eq((tg_str_t) { (size_t) n, format },
                                   tg_str("chat_completions"));

    if (!ask->chat
        && (n < 0 || !tg_str_eq((tg_str_t) { (size_t) n, format },
                                tg_str("responses"))))
    {
        return ngx_http_toolgate_fault(&ask->action->fault, "invalid_value",
                                       "ApiFormat",
                                       "This field is \"responses\" or "
                                       "\"chat_completions\".");
    }

    return NGX_OK;
}


/* Either of two fields has it; an empty list is as good as none. */
static ngx_int_t
ngx_http_toolgate_run_agent_said(ngx_http_toolgate_run_agent_t *ask)
{
    ngx_http_toolgate_fault_t  *fault;

    fault = &ask->action->fault;

    ask->messages = ngx_http_toolgate_run_agent_member(ask, "Messages");
    ask->input = ngx_http_toolgate_run_agent_member(ask, "ResponsesInput");

    if (ask->messages && ask->messages->value.type != TG_SCAN_ARRAY) {
        return ngx_http_toolgate_fault(fault, "invalid_type", "Messages",
                                       "This field is a list of messages.");
    }

    if (ask->input && ask->input->value.type != TG_SCAN_ARRAY
        && ask->input->value.type != TG_SCAN_STRING)
    {
        return ngx_http_toolgate_fault(fault, "invalid_type", "ResponsesInput",
                                       "This field is a text or a list of items.");
    }

    if (ask->input && ask->messages
        && ask->messages->value.end - ask->messages->value.start == 2)
    {
        ask->messages = NULL;
    }

    if (ask->input && ask->messages) {
        return ngx_http_toolgate_fault(fault, "invalid_value", "ResponsesInput",
                                       "Send either \"Messages\" or "
                                       "\"ResponsesInput\".");
    }

    if (ask->input == NULL && ask->messages == NULL) {
        return ngx_http_toolgate_fault(fault, "missing_parameter", "Messages",
                                       NULL);
    }

    return NGX_OK;
}


/* A run has a session here, named or not: the same one for the same invocation, so
 * that the request may come again. */
static ngx_int_t
ngx_http_toolgate_run_agent_session(ngx_http_toolgate_run_agent_t *ask)
{
    char        id[TG_ID_MAX_LEN];
    u_char      random[TG_ID_RANDOM_LEN];
    tg_str_t    scope;
    ngx_str_t  *session;

    session = &ask->action->session;

    if (session->len) {
        return NGX_OK;
    }

    scope.data = (char *) ask->action->run.project.data;
    scope.len = ask->action->run.project.len;

    if (ask->invocation.len) {
        tg_id_derive("sess_", scope, (tg_str_t) { ask->invocation.len,
                                            (char *) ask->invocation.data }, id);

    } else if (ngx_http_toolgate_random(random, sizeof(random)) == NGX_OK) {
        tg_id_make("sess_", random, id);

    } else {
        return ngx_http_toolgate_fault(&ask->action->fault, "internal_error", NULL,
                                       NULL);
    }

    *session = ngx_http_toolgate_copy(ask->body->request->pool, tg_str_of(id));

    return session->data ? NGX_OK
           : ngx_http_toolgate_fault(&ask->action->fault, "internal_error", NULL,
                                     NULL);
}


static ngx_int_t
ngx_http_toolgate_run_agent_form(ngx_http_toolgate_run_agent_t *ask)
{
    tg_buf_t                 text;
    ngx_int_t                rc;
    ngx_uint_t               i;
    const tg_scan_member_t  *member;

    tg_buf_init(&text, ask->body->len + NGX_HTTP_TOOLGATE_RUN_AGENT_SPARE);

    tg_buf_char(&text, '{');
    ngx_http_toolgate_run_agent_copy(ask, &text, "model", ask->agent);
    tg_buf_char(&text, ',');
    ngx_http_toolgate_run_agent_copy(ask, &text, ask->input ? "input" : "messages",
                                     ask->input ? ask->input : ask->messages);
    tg_buf_cstr(&text, ",\"session_id\":");
    ngx_http_toolgate_action_write(&text, &ask->action->session);

    for (i = 0; ngx_http_toolgate_run_agent_names[i].from; i++) {
        member = ngx_http_toolgate_run_agent_member(ask,
                     ngx_http_toolgate_run_agent_names[i].from);
        if (member) {
            tg_buf_char(&text, ',');
            ngx_http_toolgate_run_agent_copy(ask, &text,
                                            ngx_http_toolgate_run_agent_names[i].to,
                                            member);
        }
    }

    if (ask->stream && !ask->background) {
        tg_buf_cstr(&text, ",\"stream\":true");
    }

    tg_buf_char(&text, '}');

    rc = ngx_http_toolgate_body_replace(ask->body, &text);
    tg_buf_free(&text);

    return rc == NGX_OK ? NGX_OK
           : ngx_http_toolgate_fault(&ask->action->fault, "internal_error", NULL,
                                     NULL);
}


static void
ngx_http_toolgate_run_agent_copy(ngx_http_toolgate_run_agent_t *ask, tg_buf_t *out,
    const char *to, const tg_scan_member_t *member)
{
    tg_buf_printf(out, "\"%s\":", to);
    tg_buf_append(out, ask->body->data + member->value.start,
                  member->value.end - member->value.start);
}


/* It is known who answers. */
static void
ngx_http_toolgate_run_agent_checked(ngx_http_toolgate_check_t *c)
{
    ngx_http_toolgate_run_agent_t  *ask = c->body->owner;

    if (c->run->agent == NULL) {
        (void) ngx_http_toolgate_check_fault(c, "model_not_found", "AgentId",
                                             "There is no agent of this name.");
        ngx_http_toolgate_check_refuse(c);
        return;
    }

    /* it also brings what is in the form of Responses into that of chat */

    if ((ask->input || c->run->face == &ngx_http_toolgate_responses_face)
        && ngx_http_toolgate_responses_face_init(c, 0) != NGX_OK)
    {
        ngx_http_toolgate_check_refuse(c);
        return;
    }

    if (ask->input) {
        ngx_http_toolgate_responses_prompt(c, ngx_http_toolgate_run_agent_start);

    } else if (ngx_http_toolgate_chat_messages(c) != NGX_OK) {
        ngx_http_toolgate_check_refuse(c);

    } else {
        ngx_http_toolgate_run_agent_start(c);
    }
}


static void
ngx_http_toolgate_run_agent_start(ngx_http_toolgate_check_t *c)
{
    ngx_http_toolgate_run_t        *run;
    ngx_http_toolgate_run_agent_t  *ask = c->body->owner;

    run = c->run;
    run->prompt.store = 1;
    run->prompt.create_session = 1;

    if (ngx_http_toolgate_check_agent(c) != NGX_OK) {
        ngx_http_toolgate_check_refuse(c);
        return;
    }

    ngx_http_toolgate_check_prompt(c);

    run->prompt.stream = ask->stream && !ask->background;
    run->background = ask->background ? 1 : 0;

    if (ask->background) {
        run->face_data = ask;

    } else if (ask->chat && ngx_http_toolgate_chat_face_init(run) != NGX_OK) {
        ngx_http_finalize_request(c->request, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    if (ngx_http_toolgate_run_agent_wrap(ask, run) != NGX_OK
        || ngx_http_toolgate_durable_open(run, run->face->name,
                                          &run->prompt.invocation) != NGX_OK)
    {
        ngx_http_finalize_request(c->request, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    run->durable->queued = 1;

    ngx_http_toolgate_run_start(run);
}


/* What is whole and no error gets the envelope, whoever writes it. */
static ngx_int_t
ngx_http_toolgate_run_agent_wrap(ngx_http_toolgate_run_agent_t *ask,
    ngx_http_toolgate_run_t *run)
{
    ngx_http_toolgate_action_head(ask->action, &ask->head);
    ngx_http_toolgate_action_tail(ask->action, &ask->tail);

    if (ask->head.error != TG_OK || ask->tail.error != TG_OK) {
        return NGX_ERROR;
    }

    ngx_http_toolgate_writer_wrap(&run->writer,
        (ngx_str_t) { ask->head.len, (u_char *) ask->head.data },
        (ngx_str_t) { ask->tail.len, (u_char *) ask->tail.data });

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_started_nothing(ngx_http_toolgate_run_t *run, tg_str_t text)
{
    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_started_finish(ngx_http_toolgate_run_t *run)
{
    ngx_http_toolgate_writer_end(&run->writer);

    return NGX_OK;
}


/* Its status is as the store has it: an invocation that came again may have ended. */
static ngx_int_t
ngx_http_toolgate_started_document(ngx_http_toolgate_run_t *run,
    ngx_http_toolgate_run_answer_t *document)
{
    char                            name[32];
    tg_buf_t                        out;
    ngx_int_t                       rc;
    ngx_str_t                       status, invocation, id;
    ngx_http_toolgate_run_agent_t  *ask = run->face_data;

    if (document->pair_count == 0) {
        run->follow_fault = "store_unavailable";
        return NGX_OK;
    }

    status = ngx_http_toolgate_run_answer_field(document, "status");
    invocation = ngx_http_toolgate_run_answer_field(document, "invocation");
    id = ngx_http_toolgate_run_answer_field(document, "run");
    snprintf(name, sizeof(name), "%.*s", (int) status.len, status.data);

    if (invocation.len == 0) {
        invocation = id;
    }

    tg_buf_init(&out, NGX_HTTP_TOOLGATE_RUN_AGENT_DATA_MAX);
    tg_buf_cstr(&out, "{\"SessionId\":");
    ngx_http_toolgate_action_write(&out, &ask->action->session);
    tg_buf_cstr(&out, ",\"InvocationId\":");
    ngx_http_toolgate_action_write(&out, &invocation);
    tg_buf_cstr(&out, ",\"RunId\":");
    ngx_http_toolgate_action_write(&out, &id);
    tg_buf_printf(&out, ",\"Status\":\"%s\",\"Background\":true,\"SubscribeUrl\":",
                  ngx_strcmp(name, "queued") == 0 ? "running"
                                                  : tg_ksadk_status(name));
    ngx_http_toolgate_action_subscribe_url(ask->action, &invocation, &out);
    tg_buf_char(&out, '}');

    rc = out.error == TG_OK
         ? ngx_http_toolgate_runs_whole(run, NGX_HTTP_OK, tg_buf_get(&out))
         : NGX_ERROR;

    tg_buf_free(&out);

    return rc;
}
