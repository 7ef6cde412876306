/*
 * Test only: the taker of a streamed answer in the probe. It counts and digests what
 * comes, and does as its order says: holds the peer up, or refuses.
 */

#ifndef NGX_OUTBOUND_PROBE_STREAM_H
#define NGX_OUTBOUND_PROBE_STREAM_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_md5.h>

#include <jansson.h>

#include "ngx_toolgate_client.h"


typedef struct {
    ngx_toolgate_call_t        **call;
    ngx_event_t                  hold;
    size_t                       hold_every;     /* bytes; 0: never */
    size_t                       hold_next;
    ngx_msec_t                   hold_ms;
    size_t                       refuse_after;   /* bytes; 0: never */
    ngx_uint_t                   heads;
    ngx_uint_t                   holds;
    size_t                       taken;
    ngx_md5_t                    md5;
    ngx_toolgate_client_head_t   head;
    unsigned                     holding:1;
} ngx_outbound_probe_stream_t;


/* Sets request->stream and request->chain from the order's "stream" ({"hold_every",
 * "hold_ms", "refuse_after"}) and "chain" (a list of texts), where they are there. */
ngx_int_t ngx_outbound_probe_stream_init(ngx_outbound_probe_stream_t *stream,
    ngx_pool_t *pool, ngx_log_t *log, json_t *order,
    ngx_toolgate_client_request_t *request, ngx_toolgate_call_t **call);

/* What has come, as JSON. */
json_t *ngx_outbound_probe_stream_json(ngx_outbound_probe_stream_t *stream);

void ngx_outbound_probe_stream_stop(ngx_outbound_probe_stream_t *stream);

#endif /* NGX_OUTBOUND_PROBE_STREAM_H */
