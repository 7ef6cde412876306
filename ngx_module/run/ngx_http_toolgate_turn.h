/*
 * One model turn: a request body goes to a model, the bytes of its answer go to the
 * owner. There are two kinds: a background subrequest into the operator's internal
 * location, and a call of the protected client to an agent's own URL. A turn knows
 * neither what the bytes mean nor what the run does with them.
 */

#ifndef NGX_HTTP_TOOLGATE_TURN_H
#define NGX_HTTP_TOOLGATE_TURN_H

#include "ngx_http_toolgate_module.h"


/* for a model to end its answer after it has said that it is whole */
#define NGX_HTTP_TOOLGATE_TURN_LINGER_MS  200

typedef enum {
    NGX_HTTP_TOOLGATE_TURN_WAITING = 0,   /* no head yet */
    NGX_HTTP_TOOLGATE_TURN_RECEIVING,
    NGX_HTTP_TOOLGATE_TURN_WHOLE,         /* over, the answer came whole */
    NGX_HTTP_TOOLGATE_TURN_BROKEN,        /* over, cut short or never begun */
    NGX_HTTP_TOOLGATE_TURN_CANCELLED      /* over, by us */
} ngx_http_toolgate_turn_state_e;

typedef struct ngx_http_toolgate_turn_s  ngx_http_toolgate_turn_t;

/* The owner's side. head and take are called inside nginx's filters or curl's
 * callbacks and must not finalize anything; ended should only note it and have the
 * main request posted. */
typedef struct {
    void       (*head)(ngx_http_toolgate_turn_t *turn);
    /* NGX_OK: all taken; NGX_AGAIN: none taken, come again after wake; NGX_DONE:
     * taken, and the answer is whole, so the model has a moment to end by itself;
     * NGX_ERROR: taken, but the turn is to be given up at once */
    ngx_int_t  (*take)(ngx_http_toolgate_turn_t *turn, u_char *data, size_t len);
    void       (*ended)(ngx_http_toolgate_turn_t *turn);
} ngx_http_toolgate_turn_owner_t;

/* The kind's side; called for a turn that was started. */
typedef struct {
    /* the owner has room for what it did not take */
    void        (*wake)(ngx_http_toolgate_turn_t *turn);
    /* ends the exchange with the model, in whatever state it is */
    void        (*release)(ngx_http_toolgate_turn_t *turn);
    /* whether the model has got all of the body; the turn forgets it then */
    ngx_uint_t  (*forget)(ngx_http_toolgate_turn_t *turn);
} ngx_http_toolgate_turn_kind_t;

/* Of a turn by subrequest. */
typedef struct {
    ngx_http_request_t                     *request;
    ngx_http_post_subrequest_t              post;
    ngx_http_posted_request_t               posted;
    ngx_chain_t                            *held;      /* not taken yet */
    off_t                                   length;    /* of what is sent */
    unsigned                                is_posted:1;
    unsigned                                last:1;    /* the end was seen */
    unsigned                                live:1;    /* it is not over */
} ngx_http_toolgate_turn_subrequest_t;

/* Of a turn by the protected client. */
typedef struct {
    ngx_toolgate_client_request_t           request;
    ngx_toolgate_call_t                    *call;
} ngx_http_toolgate_turn_outbound_t;

struct ngx_http_toolgate_turn_s {
    ngx_http_toolgate_turn_state_e          state;
    const ngx_http_toolgate_turn_kind_t    *kind;      /* NULL: none started yet */
    const ngx_http_toolgate_turn_owner_t   *owner;
    void                                   *data;
    ngx_connection_t                       *connection;
    ngx_event_t                             close;     /* ends it before the model */
    ngx_event_t                             run;       /* of what was posted */
    ngx_uint_t                              status;    /* 0: none known */
    ngx_str_t                               content_type;
    ngx_str_t                               retry_after;
    off_t                                   content_length;   /* -1: unknown */
    const char                             *fault;     /* why it was not begun: code */
    const char                             *advice;    /* and what to do about that */
    const char                             *detail;    /* why it broke, for the steps */
    /* of the protected client when the turn was its call, and that has ended */
    ngx_toolgate_client_result_t           *result;
    unsigned                                given_up:1;
    unsigned                                guarded:1; /* the pool ends the events */
    ngx_http_toolgate_turn_subrequest_t     sub;
    ngx_http_toolgate_turn_outbound_t       out;
};


/* Installs the filters and a phase handler; at configuration time. */
ngx_int_t ngx_http_toolgate_turn_init(ngx_conf_t *cf);

/*
 * Starts a turn: POST of body (length bytes in memory buffers) as JSON to an
 * internal location. owner and data are set; turn and body live in the request's
 * pool. Called from the main request's handler only.
 */
ngx_int_t ngx_http_toolgate_turn_subrequest(ngx_http_request_t *r,
    ngx_http_toolgate_turn_t *turn, ngx_str_t *location, ngx_chain_t *body,
    off_t length, ngx_uint_t stream);

/* The same to an agent's own URL, with a secret of the project; the answer may take
 * time_left. What forbids the call ends the turn as broken, with fault set. */
ngx_int_t ngx_http_toolgate_turn_outbound(ngx_http_request_t *r,
    ngx_http_toolgate_turn_t *turn, ngx_http_toolgate_model_url_t *url,
    ngx_http_toolgate_project_t *project, ngx_chain_t *body, off_t length,
    ngx_msec_t time_left);

/* The owner has room: what was held is offered anew. Called whenever the main
 * request's handler has run, from there. */
void ngx_http_toolgate_turn_wake(ngx_http_toolgate_turn_t *turn);

/* Ends the exchange with the model at once. ended is not called. */
void ngx_http_toolgate_turn_cancel(ngx_http_toolgate_turn_t *turn);

/* Whether the body of a turn that was started is not needed any more: then the turn
 * does not touch it again. */
ngx_uint_t ngx_http_toolgate_turn_forget(ngx_http_toolgate_turn_t *turn);

/* _turn_key.c: the next credential that a subrequest has sent to the model, from
 * after *at on (NULL: the first); len 0: there is no more. It lives as long as the
 * subrequest, so ask when the turn has just ended. */
ngx_str_t ngx_http_toolgate_turn_key(ngx_http_toolgate_turn_t *turn, u_char **at);

/* For the kinds: makes a turn ready to be started, ends it, stops its events. */
ngx_int_t ngx_http_toolgate_turn_begin(ngx_http_request_t *r,
    ngx_http_toolgate_turn_t *turn, const ngx_http_toolgate_turn_kind_t *kind);
void ngx_http_toolgate_turn_end(ngx_http_toolgate_turn_t *turn, ngx_uint_t whole);
void ngx_http_toolgate_turn_quiet(void *data);

/* Whether the answer says that it is JSON; without a type it does not. */
static inline ngx_uint_t
ngx_http_toolgate_turn_json(ngx_http_toolgate_turn_t *turn)
{
    ngx_str_t  *type;

    type = &turn->content_type;

    return type->len >= 4
           && ngx_strlcasestrn(type->data, type->data + type->len,
                               (u_char *) "json", 4 - 1)
              != NULL;
}

static inline ngx_uint_t
ngx_http_toolgate_turn_over(ngx_http_toolgate_turn_t *turn)
{
    return turn->state >= NGX_HTTP_TOOLGATE_TURN_WHOLE;
}

#endif /* NGX_HTTP_TOOLGATE_TURN_H */
