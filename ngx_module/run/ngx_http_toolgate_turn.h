/*
 * One model turn: a background subrequest into the operator's internal location,
 * its answer taken by our own filters. It hands bytes to its owner and knows
 * neither what they mean nor what the run does with them.
 */

#ifndef NGX_HTTP_TOOLGATE_TURN_H
#define NGX_HTTP_TOOLGATE_TURN_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


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

/* The owner's side. head and take are called inside nginx's filters and must not
 * finalize anything; ended is called there too and should only note it and have
 * the main request posted. */
typedef struct {
    void       (*head)(ngx_http_toolgate_turn_t *turn);
    /* NGX_OK: all taken; NGX_AGAIN: none taken, come again after wake; NGX_DONE:
     * taken, and the answer is whole, so the model has a moment to end by itself;
     * NGX_ERROR: taken, but the turn is to be given up at once */
    ngx_int_t  (*take)(ngx_http_toolgate_turn_t *turn, u_char *data, size_t len);
    void       (*ended)(ngx_http_toolgate_turn_t *turn);
} ngx_http_toolgate_turn_owner_t;

struct ngx_http_toolgate_turn_s {
    ngx_http_toolgate_turn_state_e          state;
    const ngx_http_toolgate_turn_owner_t   *owner;
    void                                   *data;
    ngx_http_request_t                     *subrequest;
    ngx_http_post_subrequest_t              post;
    ngx_http_posted_request_t               posted;
    ngx_event_t                             close;     /* ends it before the model */
    ngx_chain_t                            *held;      /* not taken yet */
    ngx_uint_t                              status;    /* 0: none known */
    ngx_str_t                               content_type;
    off_t                                   length;    /* of what is sent */
    off_t                                   content_length;   /* -1: unknown */
    unsigned                                is_posted:1;
    unsigned                                given_up:1;
    unsigned                                last:1;    /* the end was seen */
    unsigned                                live:1;    /* the subrequest is not over */
    unsigned                                guarded:1; /* the pool ends the event */
};


/* Installs the filters and a phase handler; at configuration time. */
ngx_int_t ngx_http_toolgate_turn_init(ngx_conf_t *cf);

/*
 * Starts a turn: POST of body (length bytes in memory buffers) as JSON to an
 * internal location. turn and body live in the request's pool. Called from the
 * main request's handler only.
 */
ngx_int_t ngx_http_toolgate_turn_start(ngx_http_request_t *r,
    ngx_http_toolgate_turn_t *turn, ngx_str_t *location, ngx_chain_t *body,
    off_t length, ngx_uint_t stream);

/* The owner has room: what was held is offered anew. Called whenever the main
 * request's handler has run, from there. */
void ngx_http_toolgate_turn_wake(ngx_http_toolgate_turn_t *turn);

/* Ends the exchange with the model at once. ended is not called. */
void ngx_http_toolgate_turn_cancel(ngx_http_toolgate_turn_t *turn);

/* A header of the answer by its lower-case name; len 0 when absent. */
ngx_str_t ngx_http_toolgate_turn_header(ngx_http_toolgate_turn_t *turn,
    const char *name);

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
