/*
 * ListToolReceipts: what the runs of a session meant to do to the world, and what
 * came of it, from the intents and outcomes that were written down.
 */

#include "ngx_http_toolgate_actions.h"
#include "ngx_http_toolgate_run_receipts.h"


#define NGX_HTTP_TOOLGATE_RECEIPTS_LIMIT      200
#define NGX_HTTP_TOOLGATE_RECEIPTS_LIMIT_MAX  500
#define NGX_HTTP_TOOLGATE_RECEIPTS_OFFSET_MAX 1000000
#define NGX_HTTP_TOOLGATE_RECEIPTS_DATA_MAX   (16 * 1024 * 1024)
#define NGX_HTTP_TOOLGATE_RECEIPT_VALUES      7    /* see run_receipts.lua */

typedef struct {
    int64_t    offset;
    int64_t    limit;
    ngx_str_t  checkpoint;
} ngx_http_toolgate_receipts_t;

/* One entry as the store gives it. */
typedef struct {
    tg_str_t   run;
    tg_str_t   invocation;
    tg_str_t   session;
    tg_str_t   status;
    tg_str_t   call;
    json_t    *intent;
    json_t    *outcome;        /* NULL: nothing is known of one */
} ngx_http_toolgate_receipt_t;


static void ngx_http_toolgate_receipts_found(ngx_http_toolgate_action_t *a,
    ngx_http_toolgate_run_answer_t *answer);
static void ngx_http_toolgate_receipts_ask(ngx_http_toolgate_action_t *a);
static void ngx_http_toolgate_receipts_page(void *data, redisReply *reply);
static ngx_int_t ngx_http_toolgate_receipts_write(ngx_http_toolgate_action_t *a,
    redisReply *reply, tg_buf_t *out);
static ngx_int_t ngx_http_toolgate_receipt_read(redisReply *reply,
    ngx_http_toolgate_receipt_t *receipt);
static void ngx_http_toolgate_receipt_write(ngx_http_toolgate_receipt_t *receipt,
    tg_buf_t *out);
static const char *ngx_http_toolgate_receipt_status(
    ngx_http_toolgate_receipt_t *receipt);


void
ngx_http_toolgate_action_receipts(ngx_http_toolgate_action_t *a)
{
    ngx_str_t                      run;
    ngx_http_toolgate_receipts_t  *receipts;

    receipts = ngx_pcalloc(a->request->pool, sizeof(ngx_http_toolgate_receipts_t));

    if (receipts == NULL) {
        ngx_http_finalize_request(a->request, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    receipts->limit = NGX_HTTP_TOOLGATE_RECEIPTS_LIMIT;
    a->data = receipts;

    if (ngx_http_toolgate_action_agent(a, 1) != NGX_OK
        || ngx_http_toolgate_action_id(a, "SessionId", 1, &a->session) != NGX_OK
        || ngx_http_toolgate_action_id(a, "RunId", 0, &run) != NGX_OK
        || ngx_http_toolgate_action_id(a, "CheckpointId", 0, &receipts->checkpoint)
           != NGX_OK
        || ngx_http_toolgate_action_number(a, "Offset", 0,
                                           NGX_HTTP_TOOLGATE_RECEIPTS_OFFSET_MAX,
                                           &receipts->offset) != NGX_OK
        || ngx_http_toolgate_action_number(a, "Limit", 1,
                                           NGX_HTTP_TOOLGATE_RECEIPTS_LIMIT_MAX,
                                           &receipts->limit) != NGX_OK)
    {
        ngx_http_toolgate_action_refuse(a);
        return;
    }

    if (run.len) {
        ngx_http_toolgate_action_find(a, &run, ngx_http_toolgate_receipts_found);

    } else {
        ngx_http_toolgate_receipts_ask(a);
    }
}


static void
ngx_http_toolgate_receipts_found(ngx_http_toolgate_action_t *a,
    ngx_http_toolgate_run_answer_t *answer)
{
    if (answer->answer == NGX_HTTP_TOOLGATE_ANSWER_GONE) {
        (void) ngx_http_toolgate_fault(&a->fault, "not_found", "RunId", NULL);
        ngx_http_toolgate_action_refuse(a);
        return;
    }

    if (ngx_http_toolgate_action_fits(a, answer) != NGX_OK) {
        ngx_http_toolgate_action_refuse(a);
        return;
    }

    ngx_http_toolgate_receipts_ask(a);
}


static void
ngx_http_toolgate_receipts_ask(ngx_http_toolgate_action_t *a)
{
    ngx_http_toolgate_receipts_t        *receipts;
    ngx_http_toolgate_main_conf_t       *tmcf;
    ngx_http_toolgate_receipts_query_t   query;

    receipts = a->data;
    tmcf = ngx_http_get_module_main_conf(a->request, ngx_http_toolgate_module);

    ngx_memzero(&query, sizeof(query));
    query.session = a->session;
    query.agent = a->agent;
    query.checkpoint = receipts->checkpoint;
    query.offset = (ngx_uint_t) receipts->offset;
    query.limit = (ngx_uint_t) receipts->limit;

    if (ngx_http_toolgate_run_receipts(a->request->pool, tmcf->redis, &a->run,
                                       &query, ngx_http_toolgate_receipts_page, a)
        != NGX_OK)
    {
        (void) ngx_http_toolgate_fault(&a->fault, "internal_error", NULL, NULL);
        ngx_http_toolgate_action_refuse(a);
    }
}


static void
ngx_http_toolgate_receipts_page(void *data, redisReply *reply)
{
    ngx_http_toolgate_action_t *a = data;

    tg_buf_t           out;
    ngx_connection_t  *c;

    c = a->request->connection;

    tg_buf_init(&out, NGX_HTTP_TOOLGATE_RECEIPTS_DATA_MAX);

    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY) {
        (void) ngx_http_toolgate_fault(&a->fault, "store_unavailable", NULL, NULL);
        ngx_http_toolgate_action_refuse(a);

    } else if (ngx_http_toolgate_receipts_write(a, reply, &out) != NGX_OK) {
        (void) ngx_http_toolgate_fault(&a->fault, "internal_error", NULL, NULL);
        ngx_http_toolgate_action_refuse(a);

    } else {
        ngx_http_toolgate_action_reply(a, NGX_HTTP_OK, &out);
    }

    tg_buf_free(&out);
    ngx_http_run_posted_requests(c);
}


static ngx_int_t
ngx_http_toolgate_receipts_write(ngx_http_toolgate_action_t *a, redisReply *reply,
    tg_buf_t *out)
{
    size_t                         i;
    ngx_int_t                      rc;
    ngx_http_toolgate_receipt_t    receipt;
    ngx_http_toolgate_receipts_t  *receipts;

    receipts = a->data;

    if (reply->elements == 0 || reply->element[0]->type != REDIS_REPLY_INTEGER) {
        return NGX_ERROR;
    }

    tg_buf_cstr(out, "{\"ToolReceipts\":[");

    for (i = 1; i < reply->elements; i++) {

        rc = ngx_http_toolgate_receipt_read(reply->element[i], &receipt);

        if (rc == NGX_OK) {
            tg_buf_cstr(out, i > 1 ? "," : "");
            ngx_http_toolgate_receipt_write(&receipt, out);
        }

        json_decref(receipt.intent);
        json_decref(receipt.outcome);

        if (rc != NGX_OK) {
            return NGX_ERROR;
        }
    }

    tg_buf_printf(out, "],\"Total\":%lld,\"Offset\":%lld,\"Limit\":%lld}",
                  (long long) reply->element[0]->integer,
                  (long long) receipts->offset, (long long) receipts->limit);

    return out->error == TG_OK ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_http_toolgate_receipt_read(redisReply *reply,
    ngx_http_toolgate_receipt_t *receipt)
{
    size_t           i;
    tg_str_t         value[NGX_HTTP_TOOLGATE_RECEIPT_VALUES];
    tg_json_error_t  ignored;

    ngx_memzero(receipt, sizeof(ngx_http_toolgate_receipt_t));

    if (reply->type != REDIS_REPLY_ARRAY
        || reply->elements != NGX_HTTP_TOOLGATE_RECEIPT_VALUES)
    {
        return NGX_ERROR;
    }

    for (i = 0; i < NGX_HTTP_TOOLGATE_RECEIPT_VALUES; i++) {
        if (reply->element[i]->type != REDIS_REPLY_STRING) {
            return NGX_ERROR;
        }

        value[i].data = reply->element[i]->str;
        value[i].len = reply->element[i]->len;
    }

    receipt->run = value[0];
    receipt->invocation = value[1].len ? value[1] : value[0];
    receipt->session = value[2];
    receipt->status = value[3];
    receipt->call = value[4];
    receipt->intent = tg_json_load(value[5], &ignored);

    if (value[6].len) {
        receipt->outcome = tg_json_load(value[6], &ignored);
    }

    return json_is_object(receipt->intent) ? NGX_OK : NGX_ERROR;
}


/* The id of a call is the key under which it is done once: the same in every attempt
 * to send it. */
static void
ngx_http_toolgate_receipt_write(ngx_http_toolgate_receipt_t *receipt,
    tg_buf_t *out)
{
    json_t     *at;
    ngx_str_t   run = { receipt->run.len, (u_char *) receipt->run.data };

    at = json_object_get(receipt->outcome ? receipt->outcome : receipt->intent,
                         "at");

    tg_buf_cstr(out, "{\"EventId\":");
    tg_buf_json_string(out, receipt->call);
    tg_buf_cstr(out, ",\"SessionId\":");
    tg_buf_json_string(out, receipt->session);
    tg_buf_cstr(out, ",\"InvocationId\":");
    tg_buf_json_string(out, receipt->invocation);
    tg_buf_printf(out, ",\"SeqId\":null,\"Timestamp\":%lld,\"ReceiptId\":",
                  1000 * (long long) json_integer_value(at));
    tg_buf_json_string(out, receipt->call);
    tg_buf_cstr(out, ",\"IdempotencyKey\":");
    tg_buf_json_string(out, receipt->call);
    tg_buf_cstr(out, ",\"ToolName\":");
    tg_buf_json_string(out, tg_json_get_string(receipt->intent, "tool"));
    tg_buf_cstr(out, ",\"ToolCallId\":");
    tg_buf_json_string(out, receipt->call);
    tg_buf_cstr(out, ",\"RunId\":");
    tg_buf_json_string(out, receipt->run);
    tg_buf_cstr(out, ",\"CheckpointId\":");
    ngx_http_toolgate_action_checkpoint(&run,
        (ngx_uint_t) json_integer_value(json_object_get(receipt->intent, "round")),
        out);
    tg_buf_printf(out, ",\"Status\":\"%s\",\"Replayed\":false,\"Metadata\":"
                       "{\"arguments_sha256\":",
                  ngx_http_toolgate_receipt_status(receipt));
    tg_buf_json_string(out, tg_json_get_string(receipt->intent,
                                               "arguments_sha256"));
    tg_buf_cstr(out, ",\"error_code\":");

    if (tg_json_get_string(receipt->outcome, "code").len) {
        tg_buf_json_string(out, tg_json_get_string(receipt->outcome, "code"));

    } else {
        tg_buf_cstr(out, "null");
    }

    tg_buf_cstr(out, "}}");
}


static const char *
ngx_http_toolgate_receipt_status(ngx_http_toolgate_receipt_t *receipt)
{
    tg_str_t  code;

    if (receipt->outcome == NULL) {
        /* it is on its way, or whoever sent it is no more */
        return tg_str_eq(receipt->status, tg_str("running")) ? "pending" : "unknown";
    }

    code = tg_json_get_string(receipt->outcome, "code");

    if (code.len == 0) {
        return "completed";
    }

    return tg_str_eq(code, tg_str("outcome_unknown")) ? "unknown" : "failed";
}
