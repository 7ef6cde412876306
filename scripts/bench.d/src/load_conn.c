/*
 * load's connections: sends requests, reads answers, checks what a stream carries
 * about itself. It knows nothing of options and reports.
 */
#define _GNU_SOURCE
#include "load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define FNV_SEED  14695981039346656037u
#define FNV_PRIME 1099511628211u

enum { HEAD, LENGTH, CHUNK_SIZE, CHUNK_DATA, CHUNK_END, TRAILER, TO_EOF, DONE };

/* --- sending ------------------------------------------------------------------ */

static void
arm(conn_t *c, int out)
{
    struct epoll_event ev = { .events = EPOLLIN | (out ? EPOLLOUT : 0), .data.ptr = c };

    if (c->want_out != out) {
        c->want_out = out;
        epoll_ctl(ep, EPOLL_CTL_MOD, c->fd, &ev);
    }
}

static void
open_conn(conn_t *c)
{
    int                one = 1;
    struct linger      gone = { .l_onoff = 1, .l_linger = 0 };
    struct epoll_event ev = { .events = EPOLLIN, .data.ptr = c };

    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (c->fd < 0) {
        die("socket");
    }
    if (connect(c->fd, (struct sockaddr *) &urls[c->url].sa, sizeof(urls[0].sa)) < 0) {
        die("connect");
    }
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    /* no TIME_WAIT: tens of thousands of them make the next connect() search for a port */
    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &gone, sizeof(gone));
    epoll_ctl(ep, EPOLL_CTL_ADD, c->fd, &ev);
    c->connected = 1;
    c->want_out = 0;
    c->reused = 0;
}

static void
close_conn(conn_t *c)
{
    close(c->fd);
    c->connected = 0;
}

static void
failed(conn_t *c, const char *why)
{
    if (tot.errors++ < 3) {
        fprintf(stderr, "load: request failed: %s (status %d): %.200s\n", why, c->status,
                c->head_len < sizeof(c->head) ? c->head : "");
    }
    if (c->connected) {
        close_conn(c);
    }
}

/* head and body are one buffer, so that one send() carries a small request */
void
push(conn_t *c)
{
    url_t *u = &urls[c->url];
    size_t len = u->head_len + body_len;

    while (c->sent < len) {
        ssize_t k = send(c->fd, u->head + c->sent, len - c->sent, MSG_NOSIGNAL);

        if (k < 0) {
            if (errno == EAGAIN) {
                arm(c, 1);
                return;
            }
            return;                 /* the read side reports it */
        }
        c->sent += (size_t) k;
    }
    arm(c, 0);
}

static void
begin(conn_t *c)
{
    c->state = HEAD;
    c->sent = c->head_len = c->left = c->line_len = 0;
    c->size_len = 0;
    c->status = c->close_after = c->got = 0;
    c->hash = c->hash_at_frame = c->hash_text = FNV_SEED;
    c->last_frame = c->max_gap = 0;
    c->frames = c->marked = c->bytes_ok = c->text_ok = c->done = 0;
    c->line_blank = 1;
    if (!c->connected) {
        open_conn(c);
    }
    c->begun = now_ns();
    push(c);
}

void
start(conn_t *c)
{
    if (left_to_start == 0 || (left_to_start < 0 && deadline && now_ns() >= deadline)) {
        c->finished = 1;
        running--;
        return;
    }
    if (left_to_start > 0) {
        left_to_start--;
    }
    begin(c);
}

/* --- receiving ------------------------------------------------------------------ */

static const char *
text_of(const char *line, size_t n, size_t *len)
{
    static const char *const keys[] = { "\"content\":", "\"delta\":" };
    const char              *p = NULL, *e, *end = line + n;

    for (int i = 0; i < 2; i++) {
        p = memmem(line, n, keys[i], strlen(keys[i]));
        if (p != NULL) {
            p += strlen(keys[i]);
            while (p < end && *p == ' ') {
                p++;
            }
            if (p < end && *p == '"') {
                p++;
                e = memchr(p, '"', (size_t) (end - p));
                if (e != NULL) {
                    *len = (size_t) (e - p);
                    return p;
                }
            }
        }
    }
    return NULL;
}

static void
sse_line(conn_t *c, uint64_t now)
{
    url_t      *u = &urls[c->url];
    const char *t;
    size_t      n = c->line_len < sizeof(c->line) ? c->line_len : sizeof(c->line), len;

    if (n < 6 || memcmp(c->line, "data:", 5) != 0) {
        return;
    }
    if (memmem(c->line, n < 40 ? n : 40, "[DONE]", 6) != NULL
        || memmem(c->line, n < 60 ? n : 60, "\"response.completed\"", 20) != NULL)
    {
        c->done = 1;
        return;
    }
    t = text_of(c->line, n, &len);
    if (t == NULL || len == 0) {
        return;
    }
    if (t[0] == 't') {
        uint64_t sent = strtoull(t + 1, NULL, 10);

        if (c->frames == 0) {
            add(&u->ttft, now - c->begun);
            c->max_gap = now - c->begun;        /* waiting for the first one counts, too */
        } else if (now - c->last_frame > c->max_gap) {
            c->max_gap = now - c->last_frame;
        }
        c->last_frame = now;
        c->frames++;
        tot.frames++;
        add(&u->frame, now > sent ? now - sent : 0);
        for (size_t i = 0; i < len; i++) {
            c->hash_text = (c->hash_text ^ (unsigned char) t[i]) * FNV_PRIME;
        }
    } else if (t[0] == '#' && len >= 38) {
        c->marked = 1;
        c->bytes_ok = strtoull(t + 3, NULL, 16) == c->hash_at_frame;
        c->text_ok = strtoull(t + 22, NULL, 16) == c->hash_text;
    }
}

static void
sse_feed(conn_t *c, const char *p, size_t n, uint64_t now)
{
    const char *end = p + n;

    while (p < end) {
        const char *nl = memchr(p, '\n', (size_t) (end - p));
        const char *stop = nl ? nl + 1 : end;
        size_t      k = (size_t) (stop - p), room;

        if (c->line_len == 0 && c->line_blank) {
            c->hash_at_frame = c->hash;
            c->line_blank = 0;
        }
        for (const char *q = p; q < stop; q++) {
            c->hash = (c->hash ^ (unsigned char) *q) * FNV_PRIME;
        }
        room = c->line_len < sizeof(c->line) ? sizeof(c->line) - c->line_len : 0;
        memcpy(c->line + c->line_len, p, k < room ? k : room);
        c->line_len += k;
        if (nl != NULL) {
            if (c->line_len == 1) {
                c->line_blank = 1;
            } else {
                sse_line(c, now);
            }
            c->line_len = 0;
        }
        p = stop;
    }
}

static void
body_bytes(conn_t *c, const char *p, size_t n, uint64_t now)
{
    tot.bytes += n;
    if (streaming) {
        sse_feed(c, p, n, now);
    }
}

static int
parse_head(conn_t *c)
{
    char *line;

    c->status = atoi(c->head + 9);
    c->state = TO_EOF;
    for (line = strstr(c->head, "\r\n"); line != NULL; line = strstr(line, "\r\n")) {
        line += 2;
        if (strncasecmp(line, "content-length:", 15) == 0) {
            c->left = strtoul(line + 15, NULL, 10);
            c->state = c->left ? LENGTH : DONE;
        } else if (strncasecmp(line, "transfer-encoding:", 18) == 0) {
            c->state = CHUNK_SIZE;
        } else if (strncasecmp(line, "connection: close", 17) == 0) {
            c->close_after = 1;
        }
    }
    return c->status;
}

static void
finish(conn_t *c, uint64_t now)
{
    url_t *u = &urls[c->url];

    if (c->status != 200) {
        failed(c, "status");
    } else {
        if (now >= warm_end) {
            tot.n++;
            add(&u->latency, now - c->begun);
        }
        if (streaming) {
            if (!c->done || !c->marked) {
                tot.incomplete++;
            } else {
                tot.not_identical += !c->bytes_ok;
                tot.text_differs += !c->text_ok;
            }
            if (c->max_gap > tot.max_gap) {
                tot.max_gap = c->max_gap;
            }
            if (pace_ns && c->max_gap > 10 * pace_ns) {
                tot.stalled++;
            }
        }
        c->reused = 1;
        if (c->close_after) {
            close_conn(c);
        }
    }
    if (n_urls > 1) {                   /* pairs: hand over to the next URL's connection */
        start(&conns[(c - conns + 1) % n_conns]);
        return;
    }
    start(c);
}

static void
consume(conn_t *c, const char *p, size_t n, uint64_t now)
{
    const char *end = p + n;

    while (p < end && c->state != DONE) {
        size_t k = (size_t) (end - p);

        switch (c->state) {
        case HEAD: {
            char  *blank;
            size_t room = sizeof(c->head) - 1 - c->head_len, old = c->head_len, from, used;

            if (k > room) {
                k = room;
            }
            memcpy(c->head + old, p, k);
            c->head[old + k] = '\0';
            from = old > 3 ? old - 3 : 0;
            blank = strstr(c->head + from, "\r\n\r\n");
            if (blank == NULL) {
                c->head_len += k;
                p += k;
                if (room == k) {
                    failed(c, "head too long");
                    c->state = DONE;
                }
                break;
            }
            used = (size_t) (blank - c->head) + 4 - old;
            c->head_len = old + used;
            c->head[c->head_len] = '\0';
            p += used;
            if (parse_head(c) == 100) {
                c->state = HEAD;
                c->head_len = 0;
            }
            break;
        }
        case LENGTH:
        case CHUNK_DATA:
            if (k > c->left) {
                k = c->left;
            }
            body_bytes(c, p, k, now);
            p += k;
            c->left -= k;
            if (c->left == 0) {
                c->state = c->state == LENGTH ? DONE : CHUNK_END;
                c->size_len = 0;
            }
            break;
        case CHUNK_SIZE:
            if (*p == '\n') {
                c->size[c->size_len] = '\0';
                c->left = strtoul(c->size, NULL, 16);
                c->size_len = 0;
                c->state = c->left ? CHUNK_DATA : TRAILER;
            } else if (c->size_len < sizeof(c->size) - 1) {
                c->size[c->size_len++] = *p;
            }
            p++;
            break;
        case CHUNK_END:
            if (*p == '\n') {
                c->state = CHUNK_SIZE;
            }
            p++;
            break;
        case TRAILER:
            if (*p == '\n') {
                if (c->size_len == 0) {
                    c->state = DONE;
                }
                c->size_len = 0;
            } else if (*p != '\r') {
                c->size_len = 1;
            }
            p++;
            break;
        default:
            body_bytes(c, p, k, now);
            p += k;
        }
    }
}

void
readable(conn_t *c)
{
    static char buf[262144];
    ssize_t     n;
    uint64_t    now;

    if (!c->connected) {
        return;
    }
    n = recv(c->fd, buf, sizeof(buf), 0);
    now = now_ns();
    if (n < 0 && errno == EAGAIN) {
        return;
    }
    if (n <= 0) {
        int idle = c->finished || c->state == DONE;

        if (n == 0 && c->state == TO_EOF) {
            c->close_after = 1;
            c->state = DONE;
            finish(c, now);
            return;
        }
        close_conn(c);
        if (idle) {
            return;
        }
        if (c->reused && !c->got) {     /* keepalive race: the server closed it */
            tot.retries++;
            begin(c);
            return;
        }
        failed(c, n == 0 ? "closed early" : strerror(errno));
        if (n_urls > 1) {
            start(&conns[(c - conns + 1) % n_conns]);
        } else {
            start(c);
        }
        return;
    }
    c->got = 1;
    {
        int before = c->frames;

        consume(c, buf, (size_t) n, now);
        if (holding && before == 0 && c->frames > 0 && ++held == n_conns) {
            printf("HELD %d\n", held);
            fflush(stdout);
        }
    }
    if (c->state == DONE) {
        finish(c, now);
    }
}
