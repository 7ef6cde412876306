/*
 * Connections of clients: records in, records out, one call at a time each. A
 * closed connection cancels its call.
 */

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "front.h"
#include "run.h"
#include "tg_frame.h"


#define TGD_CONN_HEADER_MS    5000             /* for a record to become whole */
#define TGD_CONN_READ_SIZE    (64 * 1024)
#define TGD_CONN_OUT_MAX      (4 * 1024 * 1024)
#define TGD_CONN_OUT_HIGH     (256 * 1024)     /* streamed output waits above this */
#define TGD_CONN_OUT_LOW      (64 * 1024)      /* and comes again below this */
#define TGD_CONN_ACCEPTS      16               /* of one event */
#define TGD_CONN_REFUSED_MS   10000            /* between log lines on foreign peers */
#define TGD_CONN_EMFILE_MS    100
#define TGD_CONN_ACCEPTED_MS  10               /* "accepted" waits for the result */
#define TGD_CALL_ID_SIZE      129

struct tgd_conn_s {
    tgd_front_t        *front;
    tgd_conn_t         *prev, *next;
    tgd_watch_t         watch;
    tgd_timer_t         timer;
    tgd_timer_t         accepted;     /* set: what is in the buffer may wait */
    tg_frame_reader_t   reader;
    tg_buf_t            out;
    size_t              sent;
    bool                greeted;
    bool                failed;       /* to be closed at the next event */
    bool                busy;         /* a call is on its way */
    tgd_run_t          *run;
    tgd_filecall_t     *file;         /* or of a file tool */
    uint16_t            stream;       /* of the call */
    char                id[TGD_CALL_ID_SIZE];
};

static void conn_handler(tgd_watch_t *watch, uint32_t events);
static void conn_timer(void *data);
static void conn_accepted(void *data);
static void run_output(void *owner, bool error_stream, tg_str_t bytes);
static bool run_room(void *owner);
static void run_done(void *owner, tg_str_t result);

static const tgd_run_owner_t  run_owner = { run_output, run_room, run_done };


static size_t
conn_pending(const tgd_conn_t *conn)
{
    return conn->out.len - conn->sent;
}


/* puts a record into the buffer; it goes out with the next flush, which every event
 * of this connection ends with */
static void
conn_put(tgd_conn_t *conn, tg_frame_type_e type, uint16_t stream, tg_str_t payload)
{
    if (conn->sent > TGD_CONN_OUT_HIGH) {
        memmove(conn->out.data, conn->out.data + conn->sent, conn_pending(conn));
        conn->out.len -= conn->sent;
        conn->sent = 0;
    }

    if (tg_frame_write(&conn->out, type, stream, payload) != TG_OK) {
        conn->failed = true;
        tgd_watch_change(&conn->front->loop, &conn->watch, EPOLLIN|EPOLLOUT);
    }

    tgd_timer_clear(&conn->front->loop, &conn->accepted);
}


/* sends what the socket takes; false when the peer is gone */
static bool
conn_flush(tgd_conn_t *conn)
{
    ssize_t  n;

    while (conn_pending(conn) != 0) {
        n = send(conn->watch.fd, conn->out.data + conn->sent, conn_pending(conn),
                 MSG_NOSIGNAL|MSG_DONTWAIT);
        if (n == -1) {
            if (errno == EINTR) {
                continue;
            }
            tgd_watch_change(&conn->front->loop, &conn->watch, EPOLLIN|EPOLLOUT);
            return errno == EAGAIN;
        }
        conn->sent += (size_t) n;
    }

    conn->sent = 0;
    if (conn->out.cap > TGD_CONN_READ_SIZE) {
        tg_buf_free(&conn->out);
    } else {
        tg_buf_reset(&conn->out);
    }

    tgd_watch_change(&conn->front->loop, &conn->watch, EPOLLIN);
    return true;
}


void
tgd_conn_close(tgd_conn_t *conn)
{
    tgd_front_t  *front;

    front = conn->front;

    if (conn->run != NULL) {
        tgd_run_abandon(conn->run);
        conn->run = NULL;
    }

    if (conn->file != NULL) {
        tgd_filecall_abandon(conn->file);
        conn->file = NULL;
    }

    tgd_timer_clear(&front->loop, &conn->timer);
    tgd_timer_clear(&front->loop, &conn->accepted);
    tgd_watch_close(&front->loop, &conn->watch);
    tg_frame_reader_free(&conn->reader);
    tg_buf_free(&conn->out);

    if (conn->prev != NULL) {
        conn->prev->next = conn->next;
    } else {
        front->conns = conn->next;
    }
    if (conn->next != NULL) {
        conn->next->prev = conn->prev;
    }

    front->conn_count--;
    tgd_loop_dispose(&front->loop, conn);

    /* it may have been switched off at the bound */
    if (!front->stopping) {
        tgd_watch_change(&front->loop, &front->listener, EPOLLIN);
    }
}


static void
conn_protocol_error(tgd_conn_t *conn, const char *what)
{
    tgd_log(TGD_LOG_WARN, "protocol_error", "\"what\":\"%s\"", what);
    tgd_conn_close(conn);
}


static void
conn_answer(tgd_conn_t *conn, uint16_t stream, const tgd_error_t *error)
{
    tg_buf_t  text;

    tg_buf_init(&text, TG_FRAME_MAX);
    tgd_error_json(error, &text);
    conn_put(conn, TG_FRAME_RESULT, stream, tg_buf_get(&text));
    tg_buf_free(&text);
}


static void
run_output(void *owner, bool error_stream, tg_str_t bytes)
{
    tgd_conn_t  *conn;

    conn = owner;
    conn_put(conn, error_stream ? TG_FRAME_STDERR : TG_FRAME_STDOUT, conn->stream,
             bytes);
    tgd_watch_change(&conn->front->loop, &conn->watch, EPOLLIN|EPOLLOUT);
}


static bool
run_room(void *owner)
{
    return conn_pending(owner) < TGD_CONN_OUT_HIGH;
}


static void
run_done(void *owner, tg_str_t result)
{
    tgd_conn_t  *conn;

    conn = owner;
    conn->run = NULL;
    conn->file = NULL;
    conn->busy = false;

    conn_put(conn, TG_FRAME_RESULT, conn->stream, result);
    if (!conn_flush(conn)) {
        conn->failed = true;
        tgd_watch_change(&conn->front->loop, &conn->watch, EPOLLIN|EPOLLOUT);
    }
}


/* a command or a file tool is under way, over already, or could not be begun */
static void
conn_begin(tgd_conn_t *conn, tgd_call_t *call)
{
    bool          begun;
    tg_buf_t      text;
    tgd_error_t   error;
    tgd_front_t  *front;

    front = conn->front;

    if (call->tool == TGD_TOOL_RUN_COMMAND
        && (!front->isolation.isolated || front->conf->disabled))
    {
        tg_buf_init(&text, TG_FRAME_MAX);
        tgd_status_refusal(front, &text);
        conn_put(conn, TG_FRAME_RESULT, conn->stream, tg_buf_get(&text));
        tg_buf_free(&text);
        tgd_call_free(call);
        return;
    }

    memcpy(conn->id, call->id.data, call->id.len);
    conn->id[call->id.len] = '\0';
    conn->busy = true;

    if (call->tool == TGD_TOOL_RUN_COMMAND) {
        conn->run = tgd_run_new(&front->loop, &front->registry, &front->queue, call,
                                &run_owner, conn);
        begun = conn->run != NULL;

    } else {
        conn->file = tgd_filecall_new(&front->files, call, run_done, conn);
        begun = conn->file != NULL;
    }

    if (!begun) {
        conn->busy = false;
        tgd_error_set(&error, call->tool == TGD_TOOL_RUN_COMMAND ? "sandbox_unavailable"
                              : "file_tool_failed", NULL, "out of memory");
        conn_answer(conn, conn->stream, &error);
        tgd_call_free(call);

    } else if (!conn->busy) {
        /* it has ended before it came back */
        conn->run = NULL;
        conn->file = NULL;

    } else {
        tgd_timer_set(&front->loop, &conn->accepted, TGD_CONN_ACCEPTED_MS);
    }
}


static void
conn_call(tgd_conn_t *conn, const tg_frame_t *frame)
{
    tg_buf_t     text;
    tgd_call_t   call;
    tgd_error_t  error;

    if (conn->busy) {
        tgd_error_set(&error, "bad_request", NULL, "one call at a time per connection");
        conn_answer(conn, frame->stream, &error);
        return;
    }

    if (!tgd_call_parse(frame->payload, &call, &error)) {
        tgd_log(TGD_LOG_INFO, "call_refused", "\"error\":\"%s\",\"field\":\"%s\"",
                error.type, error.field == NULL ? "" : error.field);
        conn_answer(conn, frame->stream, &error);
        return;
    }

    if (conn->front->stopping) {
        tgd_call_free(&call);
        tgd_error_set(&error, "shutting_down", NULL, "the helper is ending; try again");
        conn_answer(conn, frame->stream, &error);
        return;
    }

    conn->stream = frame->stream;

    /* tells that somebody is here, in case the result takes longer */
    conn_put(conn, TG_FRAME_EVENT, conn->stream, tg_str("{\"event\":\"accepted\"}"));

    if (call.tool == TGD_TOOL_SANDBOX_STATUS) {
        tg_buf_init(&text, TG_FRAME_MAX);
        tgd_status_json(conn->front, &call, &text);
        conn_put(conn, TG_FRAME_RESULT, conn->stream, tg_buf_get(&text));
        tg_buf_free(&text);
        tgd_call_free(&call);
        return;
    }

    conn_begin(conn, &call);
}


/* true when the payload was a CANCEL at all */
static bool
conn_cancel(tgd_conn_t *conn, const tg_frame_t *frame)
{
    bool       mine;
    json_t    *root;
    tg_str_t   id;

    if (!tgd_cancel_parse(frame->payload, &root, &id)) {
        return false;
    }

    mine = (conn->run != NULL || conn->file != NULL)
           && tg_str_eq(id, tg_str_of(conn->id));
    json_decref(root);

    conn_put(conn, TG_FRAME_EVENT, frame->stream,
             mine ? tg_str("{\"event\":\"cancel\",\"status\":\"cancelling\"}")
                  : tg_str("{\"event\":\"cancel\",\"status\":\"not_found\"}"));

    if (mine && conn->run != NULL) {
        tgd_run_cancel(conn->run);

    } else if (mine) {
        tgd_filecall_cancel(conn->file);
    }

    return true;
}


/* false: the connection is closed */
static bool
conn_record(tgd_conn_t *conn, const tg_frame_t *frame)
{
    if (frame->payload.len == 0 && frame->type != TG_FRAME_PING) {
        conn_protocol_error(conn, "empty record");
        return false;
    }

    if (!conn->greeted) {
        if (frame->type != TG_FRAME_HELLO || !tgd_hello_valid(frame->payload)) {
            conn_protocol_error(conn, "no hello of this protocol");
            return false;
        }
        conn->greeted = true;
        conn_put(conn, TG_FRAME_HELLO, 0,
                 tg_str("{\"protocol\":1,\"server\":\"toolgated\",\"version\":\""
                        TGD_VERSION "\"}"));
        return true;
    }

    switch (frame->type) {

    case TG_FRAME_CALL:
        conn_call(conn, frame);
        return true;

    case TG_FRAME_PING:
        conn_put(conn, TG_FRAME_PING, frame->stream, frame->payload);
        return true;

    case TG_FRAME_CANCEL:
        if (conn_cancel(conn, frame)) {
            return true;
        }
        break;

    default:
        break;
    }

    conn_protocol_error(conn, "record out of place");
    return false;
}


/* false: the connection is closed */
static bool
conn_read(tgd_conn_t *conn)
{
    bool         whole;
    ssize_t      n;
    tg_frame_t   frame;
    static char  buffer[TGD_CONN_READ_SIZE];

    /* descriptors that a client sends along are dropped by the kernel: nobody asks
     * for control messages here */
    n = recv(conn->watch.fd, buffer, sizeof(buffer), MSG_DONTWAIT);

    if (n == -1 && (errno == EAGAIN || errno == EINTR)) {
        return true;
    }

    if (n <= 0) {
        tgd_conn_close(conn);
        return false;
    }

    if (tg_frame_feed(&conn->reader, buffer, (size_t) n) != TG_OK) {
        conn_protocol_error(conn, "bad head");
        return false;
    }

    whole = false;
    while (tg_frame_next(&conn->reader, &frame) == TG_OK) {
        whole = true;
        if (!conn_record(conn, &frame)) {
            return false;
        }
    }

    if (whole) {
        tgd_timer_clear(&conn->front->loop, &conn->timer);
    }

    if (!tg_frame_partial(&conn->reader)) {
        if (conn->reader.pending.cap > TGD_CONN_READ_SIZE) {
            tg_frame_reader_free(&conn->reader);
        }

    } else if (conn->timer.place == 0) {
        tgd_timer_set(&conn->front->loop, &conn->timer, TGD_CONN_HEADER_MS);
    }

    return true;
}


static void
conn_handler(tgd_watch_t *watch, uint32_t events)
{
    tgd_conn_t  *conn;

    conn = watch->data;

    if (conn->failed) {
        tgd_conn_close(conn);
        return;
    }

    if ((events & (EPOLLIN|EPOLLHUP|EPOLLERR)) && !conn_read(conn)) {
        return;
    }

    if (conn_pending(conn) != 0 && conn->accepted.place == 0 && !conn_flush(conn)) {
        tgd_conn_close(conn);
        return;
    }

    if (conn->run != NULL && conn_pending(conn) < TGD_CONN_OUT_LOW) {
        tgd_run_resume(conn->run);
    }
}


static void
conn_timer(void *data)
{
    conn_protocol_error(data, "record not whole in time");
}


/* the result is not there yet */
static void
conn_accepted(void *data)
{
    if (!conn_flush(data)) {
        tgd_conn_close(data);
    }
}


static bool
peer_allowed(const tgd_front_t *front, int fd)
{
    size_t        i;
    socklen_t     len;
    struct ucred  peer;

    len = sizeof(peer);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == -1) {
        return false;
    }

    for (i = 0; i < front->conf->peer_count; i++) {
        if (front->conf->peers[i] == peer.uid) {
            return true;
        }
    }

    return false;
}


static void
conn_open(tgd_front_t *front, int fd)
{
    tgd_conn_t  *conn;

    conn = calloc(1, sizeof(*conn));
    if (conn == NULL) {
        (void) close(fd);
        return;
    }

    conn->front = front;
    conn->watch.handler = conn_handler;
    conn->watch.data = conn;
    conn->timer.handler = conn_timer;
    conn->timer.data = conn;
    conn->accepted.handler = conn_accepted;
    conn->accepted.data = conn;
    tg_frame_reader_init(&conn->reader);
    tg_buf_init(&conn->out, TGD_CONN_OUT_MAX);

    if (tgd_watch_open(&front->loop, &conn->watch, fd, EPOLLIN) == -1) {
        (void) close(fd);
        free(conn);
        return;
    }

    conn->next = front->conns;
    if (front->conns != NULL) {
        front->conns->prev = conn;
    }
    front->conns = conn;
    front->conn_count++;

    tgd_timer_set(&front->loop, &conn->timer, TGD_CONN_HEADER_MS);
}


void
tgd_conn_accept(tgd_front_t *front)
{
    int         fd, i;
    tgd_msec_t  now;

    for (i = 0; i < TGD_CONN_ACCEPTS; i++) {
        if (front->conn_count >= TGD_CONNECTIONS_MAX) {
            /* the backlog holds the others until one closes */
            tgd_watch_change(&front->loop, &front->listener, 0);
            return;
        }

        fd = accept4(front->listener.fd, NULL, NULL, SOCK_CLOEXEC|SOCK_NONBLOCK);
        if (fd == -1) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
                tgd_watch_change(&front->loop, &front->listener, 0);
                tgd_timer_set(&front->loop, &front->listen_again, TGD_CONN_EMFILE_MS);
            }
            return;
        }

        if (!peer_allowed(front, fd)) {
            now = tgd_monotonic_ms();
            if (now - front->refused_logged >= TGD_CONN_REFUSED_MS) {
                front->refused_logged = now;
                tgd_log(TGD_LOG_WARN, "peer_refused", "\"why\":\"uid not on the list\"");
            }
            (void) close(fd);
            continue;
        }

        conn_open(front, fd);
    }
}


void
tgd_conns_shutdown(tgd_front_t *front, bool cancel)
{
    tgd_conn_t  *conn, *next;

    for (conn = front->conns; conn != NULL; conn = next) {
        next = conn->next;

        if (conn->run != NULL) {
            if (cancel) {
                tgd_run_cancel(conn->run);
            } else {
                tgd_run_shutdown(conn->run);
            }

        } else if (conn->file != NULL) {
            if (cancel) {
                tgd_filecall_cancel(conn->file);
            } else {
                tgd_filecall_shutdown(conn->file);
            }
        }
    }
}
