/*
 * The run that a request of these actions names: found by its id or its invocation
 * id, and whether it is of the agent and the session that are named with it.
 */

#include "ngx_http_toolgate_actions.h"


static void ngx_http_toolgate_action_invocation(void *data,
    ngx_http_toolgate_run_answer_t *answer);
static void ngx_http_toolgate_action_read(void *data,
    ngx_http_toolgate_run_answer_t *answer);


void
ngx_http_toolgate_action_find(ngx_http_toolgate_action_t *a, ngx_str_t *id,
    ngx_http_toolgate_action_run_pt found)
{
    ngx_int_t                       rc;
    ngx_http_toolgate_main_conf_t  *tmcf;

    tmcf = ngx_http_get_module_main_conf(a->request, ngx_http_toolgate_module);
    a->found = found;

    if (tg_id_valid("run_", (tg_str_t) { id->len, (char *) id->data })) {
        a->run.run = *id;
        rc = ngx_http_toolgate_run_store_open(a->request->pool, tmcf->redis,
                                              &a->run, "read", tmcf->retention,
                                              ngx_http_toolgate_action_read, a);

    } else {
        rc = ngx_http_toolgate_run_store_find(a->request->pool, tmcf->redis,
                                              &a->run, id,
                                              ngx_http_toolgate_action_invocation,
                                              a);
    }

    if (rc != NGX_OK) {
        (void) ngx_http_toolgate_fault(&a->fault, "internal_error", NULL, NULL);
        ngx_http_toolgate_action_refuse(a);
    }
}


static void
ngx_http_toolgate_action_invocation(void *data,
    ngx_http_toolgate_run_answer_t *answer)
{
    ngx_http_toolgate_action_t *a = data;

    ngx_http_toolgate_main_conf_t  *tmcf;

    if (answer->answer != NGX_HTTP_TOOLGATE_ANSWER_OK) {
        ngx_http_toolgate_action_read(a, answer);
        return;
    }

    tmcf = ngx_http_get_module_main_conf(a->request, ngx_http_toolgate_module);
    a->run.run.len = answer->text.len;
    a->run.run.data = ngx_pstrdup(a->request->pool, &answer->text);

    if (a->run.run.data == NULL
        || ngx_http_toolgate_run_store_open(a->request->pool, tmcf->redis, &a->run,
                                            "read", tmcf->retention,
                                            ngx_http_toolgate_action_read, a)
           != NGX_OK)
    {
        answer->answer = NGX_HTTP_TOOLGATE_ANSWER_AWAY;
        ngx_http_toolgate_action_read(a, answer);
    }
}


static void
ngx_http_toolgate_action_read(void *data, ngx_http_toolgate_run_answer_t *answer)
{
    ngx_http_toolgate_action_t *a = data;

    ngx_connection_t  *c;

    c = a->request->connection;

    if (answer->answer == NGX_HTTP_TOOLGATE_ANSWER_AWAY) {
        (void) ngx_http_toolgate_fault(&a->fault, "store_unavailable", NULL, NULL);
        ngx_http_toolgate_action_refuse(a);

    } else {
        a->found(a, answer);
    }

    ngx_http_run_posted_requests(c);
}


ngx_int_t
ngx_http_toolgate_action_fits(ngx_http_toolgate_action_t *a,
    ngx_http_toolgate_run_answer_t *answer)
{
    u_char     *at;
    ngx_str_t   name, session;

    /* the run may name a draft or a version of it */

    name = ngx_http_toolgate_run_answer_field(answer, "agent");
    at = name.len ? ngx_strlchr(name.data, name.data + name.len, '@') : NULL;

    if (at) {
        name.len = at - name.data;
    }

    if (a->agent.len
        && !ngx_http_toolgate_action_same(&a->agent, name)
        && !ngx_http_toolgate_action_same(&a->agent,
               ngx_http_toolgate_run_answer_field(answer, "agent_id")))
    {
        return ngx_http_toolgate_fault(&a->fault, "not_found", "AgentId",
                                       "The run is not one of this agent.");
    }

    session = ngx_http_toolgate_run_answer_field(answer, "session");

    if (a->session.len && !ngx_http_toolgate_action_same(&a->session, session)) {
        return ngx_http_toolgate_fault(&a->fault, "session_mismatch", "SessionId",
                                       NULL);
    }

    return NGX_OK;
}


ngx_uint_t
ngx_http_toolgate_action_same(ngx_str_t *a, ngx_str_t b)
{
    return a->len == b.len && ngx_memcmp(a->data, b.data, b.len) == 0;
}


void
ngx_http_toolgate_action_checkpoint(ngx_str_t *run, ngx_uint_t round, tg_buf_t *out)
{
    tg_buf_printf(out, "\"%.*s:%lu\"", (int) run->len, (char *) run->data,
                  (unsigned long) round);
}


ngx_uint_t
ngx_http_toolgate_action_round(ngx_http_toolgate_run_answer_t *answer)
{
    u_char     *p;
    ngx_str_t   progress;
    ngx_uint_t  round;

    static const char  head[] = "{\"round\":";

    progress = ngx_http_toolgate_run_answer_field(answer, "progress");

    if (progress.len < sizeof(head)
        || ngx_memcmp(progress.data, head, sizeof(head) - 1) != 0)
    {
        return 0;
    }

    round = 0;

    for (p = progress.data + sizeof(head) - 1;
         p < progress.data + progress.len && *p >= '0' && *p <= '9'; p++)
    {
        round = 10 * round + (*p - '0');
    }

    return round;
}


void
ngx_http_toolgate_action_subscribe_url(ngx_http_toolgate_action_t *a,
    ngx_str_t *invocation, tg_buf_t *out)
{
    /* both are of [A-Za-z0-9_.:-] */

    tg_buf_printf(out, "\"%sSubscribeRunEvents?SessionId=%.*s&InvocationId=%.*s\"",
                  NGX_HTTP_TOOLGATE_ACTIONS_PATH, (int) a->session.len,
                  a->session.len ? (char *) a->session.data : "",
                  (int) invocation->len, (char *) invocation->data);
}
