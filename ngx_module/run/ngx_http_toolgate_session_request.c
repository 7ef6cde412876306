/*
 * What a request brings into a session: its messages as models will get them, the calls
 * that it answers, and which tools a segment beginning with it offers.
 */

#include "ngx_http_toolgate_session.h"

#include "tg_json.h"


#define NGX_HTTP_TOOLGATE_STAMP_MAX                                           \
    (TG_ID_MAX_LEN + NGX_INT_T_LEN + TG_JSON_SHA256_HEX_LEN + sizeof("@:"))


ngx_int_t
ngx_http_toolgate_run_session_request(ngx_http_toolgate_run_session_t *session)
{
    size_t                    i, bytes;
    tg_buf_t                  head, text;
    ngx_int_t                 rc;
    ngx_http_toolgate_run_t  *run;

    static ngx_str_t  too_large = ngx_string("The new messages are larger than what a "
                                             "session may hold. Send shorter ones.");

    run = session->run;
    bytes = 0;
    rc = NGX_OK;

    tg_buf_init(&head, NGX_HTTP_TOOLGATE_SESSION_HEAD_MAX);
    tg_buf_init(&text, NGX_HTTP_TOOLGATE_SESSION_PACK_MAX);
    ngx_http_toolgate_run_session_head(run, 0, &head);

    for (i = 0; i < tg_scan_message_count(run->prompt.scan); i++) {
        tg_buf_reset(&text);

        if (ngx_http_toolgate_prompt_text(run, i, &text) != NGX_OK) {
            rc = NGX_ERROR;
            break;
        }

        bytes += text.len;

        if (bytes > run->conf->max_history) {
            ngx_http_toolgate_durable_forget(run);
            ngx_http_toolgate_run_fail(run, "request_too_large", &too_large);
            rc = NGX_DECLINED;
            break;
        }

        ngx_http_toolgate_session_pack(&session->messages, tg_buf_get(&head),
                                       tg_buf_get(&text));
    }

    session->request_len = session->messages.len;

    if (head.error != TG_OK || session->messages.error != TG_OK) {
        rc = NGX_ERROR;
    }

    tg_buf_free(&head);
    tg_buf_free(&text);

    return rc;
}


ngx_int_t
ngx_http_toolgate_run_session_answers(ngx_http_toolgate_run_session_t *session,
    tg_buf_t *ids)
{
    char                      text[TG_DELTA_MAX_ID];
    size_t                    i;
    ptrdiff_t                 n;
    ngx_http_toolgate_run_t  *run;
    const tg_scan_message_t  *message;

    run = session->run;

    for (i = 0; i < tg_scan_message_count(run->prompt.scan); i++) {
        message = tg_scan_message(run->prompt.scan, i);

        n = tg_scan_string((char *) run->prompt.body, message->role, text,
                           sizeof(text));

        if (n != 4 || ngx_memcmp(text, "tool", 4) != 0) {
            break;
        }

        n = tg_scan_string((char *) run->prompt.body, message->tool_call_id, text,
                           sizeof(text));

        /* what has no id, or a blank in it, answers no call of ours */

        if (n <= 0 || memchr(text, ' ', (size_t) n)) {
            n = 1;
            text[0] = '-';
        }

        tg_buf_append(ids, text, (size_t) n);
        tg_buf_char(ids, ' ');
    }

    return ids->error == TG_OK ? NGX_OK : NGX_ERROR;
}


ngx_int_t
ngx_http_toolgate_run_session_stamp(ngx_http_toolgate_run_session_t *session,
    ngx_str_t *stamp)
{
    u_char                      sha256[NGX_HTTP_TOOLGATE_KEY_SHA256_LEN], *p;
    ngx_str_t                  *pieces;
    ngx_uint_t                  i, n;
    ngx_http_toolgate_agent_t  *agent;
    ngx_http_toolgate_grant_t  *grant;

    agent = session->run->agent;
    grant = agent->grants.elts;
    n = agent->grants.nelts;

    pieces = ngx_palloc(session->run->request->pool, (n + 1) * sizeof(ngx_str_t));
    stamp->data = ngx_pnalloc(session->run->request->pool,
                              NGX_HTTP_TOOLGATE_STAMP_MAX);

    if (pieces == NULL || stamp->data == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < n; i++) {
        pieces[i] = grant[i].definition;
    }

    pieces[n] = agent->instructions;

    if (ngx_http_toolgate_sha256(pieces, n + 1, sha256) != NGX_OK) {
        return NGX_ERROR;
    }

    p = ngx_sprintf(stamp->data, "%s@%ui:", agent->id, agent->version);
    p = ngx_hex_dump(p, sha256, sizeof(sha256));
    stamp->len = p - stamp->data;

    return NGX_OK;
}


ngx_int_t
ngx_http_toolgate_run_session_offers(ngx_http_toolgate_run_session_t *session,
    ngx_str_t *names)
{
    u_char                      *p;
    size_t                       len;
    ngx_uint_t                   i;
    ngx_http_toolgate_run_t     *run;
    ngx_http_toolgate_grant_t  **grant;

    run = session->run;
    grant = run->offered.elts;

    for (i = 0, len = 1; i < run->offered.nelts; i++) {
        len += grant[i]->tool->name.len + 1;
    }

    p = ngx_pnalloc(run->request->pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    names->data = p;

    for (i = 0; i < run->offered.nelts; i++) {
        p = ngx_cpymem(p, grant[i]->tool->name.data, grant[i]->tool->name.len);
        *p++ = ',';
    }

    names->len = p - names->data;

    return NGX_OK;
}


ngx_int_t
ngx_http_toolgate_run_session_offered(ngx_http_toolgate_run_session_t *session)
{
    u_char                      *p, *end, *last;
    ngx_uint_t                   i;
    ngx_http_toolgate_run_t     *run;
    ngx_http_toolgate_grant_t   *grant, **slot;

    run = session->run;
    run->offered.nelts = 0;

    p = session->offered.data;
    last = p + session->offered.len;

    for ( /* void */ ; p < last; p = end + 1) {
        end = ngx_strlchr(p, last, ',');

        if (end == NULL) {
            break;
        }

        grant = run->agent->grants.elts;

        for (i = 0; i < run->agent->grants.nelts; i++) {
            if (grant[i].tool->name.len != (size_t) (end - p)
                || ngx_memcmp(grant[i].tool->name.data, p, end - p) != 0)
            {
                continue;
            }

            slot = ngx_array_push(&run->offered);
            if (slot == NULL) {
                return NGX_ERROR;
            }

            *slot = &grant[i];
            break;
        }
    }

    return NGX_OK;
}
