/*
 * What the two kinds of turns share: how a turn begins and ends, and the moment that
 * a model has to end its answer by itself. _turn_subrequest.c and _turn_outbound.c
 * have the exchange with the model.
 */

#include "ngx_http_toolgate_turn.h"


static void ngx_http_toolgate_turn_release(ngx_http_toolgate_turn_t *turn);
static void ngx_http_toolgate_turn_close(ngx_event_t *ev);
static void ngx_http_toolgate_turn_run(ngx_event_t *ev);


ngx_int_t
ngx_http_toolgate_turn_begin(ngx_http_request_t *r, ngx_http_toolgate_turn_t *turn,
    const ngx_http_toolgate_turn_kind_t *kind)
{
    ngx_pool_cleanup_t  *cln;

    if (!turn->guarded) {
        cln = ngx_pool_cleanup_add(r->pool, 0);
        if (cln == NULL) {
            return NGX_ERROR;
        }

        cln->handler = ngx_http_toolgate_turn_quiet;
        cln->data = turn;
        turn->guarded = 1;
    }

    turn->close.handler = ngx_http_toolgate_turn_close;
    turn->close.data = turn;
    turn->close.log = r->connection->log;

    turn->run.handler = ngx_http_toolgate_turn_run;
    turn->run.data = turn;
    turn->run.log = r->connection->log;

    turn->state = NGX_HTTP_TOOLGATE_TURN_WAITING;
    turn->kind = kind;
    turn->connection = r->connection;
    turn->status = 0;
    turn->content_length = -1;
    ngx_str_null(&turn->content_type);
    ngx_str_null(&turn->retry_after);
    turn->fault = NULL;
    turn->advice = NULL;
    turn->detail = NULL;
    turn->result = NULL;
    turn->given_up = 0;

    return NGX_OK;
}


void
ngx_http_toolgate_turn_end(ngx_http_toolgate_turn_t *turn, ngx_uint_t whole)
{
    ngx_http_toolgate_turn_quiet(turn);

    turn->state = (whole && !turn->given_up) ? NGX_HTTP_TOOLGATE_TURN_WHOLE
                                             : NGX_HTTP_TOOLGATE_TURN_BROKEN;
    turn->owner->ended(turn);
}


void
ngx_http_toolgate_turn_wake(ngx_http_toolgate_turn_t *turn)
{
    if (turn->kind && !ngx_http_toolgate_turn_over(turn)) {
        turn->kind->wake(turn);
    }
}


ngx_uint_t
ngx_http_toolgate_turn_forget(ngx_http_toolgate_turn_t *turn)
{
    return turn->kind->forget(turn);
}


void
ngx_http_toolgate_turn_cancel(ngx_http_toolgate_turn_t *turn)
{
    if (turn->kind == NULL || ngx_http_toolgate_turn_over(turn)) {
        return;
    }

    turn->state = NGX_HTTP_TOOLGATE_TURN_CANCELLED;

    ngx_http_toolgate_turn_release(turn);
}


/* Not from inside of the exchange's own events. */
static void
ngx_http_toolgate_turn_release(ngx_http_toolgate_turn_t *turn)
{
    turn->given_up = 1;
    ngx_http_toolgate_turn_quiet(turn);

    turn->kind->release(turn);
}


/* Ends a turn that was given up, or whose model stays on the line after it has
 * said all. */
static void
ngx_http_toolgate_turn_close(ngx_event_t *ev)
{
    ngx_connection_t          *c;
    ngx_http_toolgate_turn_t  *turn = ev->data;

    if (ngx_http_toolgate_turn_over(turn)) {
        return;
    }

    c = turn->connection;

    turn->state = turn->given_up ? NGX_HTTP_TOOLGATE_TURN_BROKEN
                                 : NGX_HTTP_TOOLGATE_TURN_WHOLE;

    ngx_http_toolgate_turn_release(turn);
    turn->owner->ended(turn);

    ngx_http_run_posted_requests(c);
}


/* nginx runs what is posted after its own events only */
static void
ngx_http_toolgate_turn_run(ngx_event_t *ev)
{
    ngx_http_toolgate_turn_t  *turn = ev->data;

    ngx_http_run_posted_requests(turn->connection);
}


void
ngx_http_toolgate_turn_quiet(void *data)
{
    ngx_http_toolgate_turn_t  *turn = data;

    if (turn->close.timer_set) {
        ngx_del_timer(&turn->close);
    }

    if (turn->close.posted) {
        ngx_delete_posted_event(&turn->close);
    }

    if (turn->run.posted) {
        ngx_delete_posted_event(&turn->run);
    }
}
