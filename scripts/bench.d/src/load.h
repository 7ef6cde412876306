/*
 * What the two halves of load share: the run's state, its connections and samples.
 */
#ifndef LOAD_H
#define LOAD_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_URLS  8

typedef struct {
    float  *v;
    size_t  n, cap;
} samples_t;

typedef struct {
    struct sockaddr_in sa;
    char              *head;
    size_t             head_len;
    samples_t          latency, ttft, frame;
} url_t;

typedef struct {
    int       fd, url, connected, want_out, reused;
    size_t    sent;
    uint64_t  begun, start_at;

    /* response */
    int       state, status, close_after, got;
    char      head[16384];
    size_t    head_len;
    size_t    left;
    char      size[20];
    unsigned  size_len;

    /* stream */
    char      line[1024];
    size_t    line_len;         /* whole length of the line, may pass sizeof(line) */
    uint64_t  hash, hash_at_frame, hash_text, last_frame, max_gap;
    int       frames, marked, bytes_ok, text_ok, done, line_blank;
    int       finished;
} conn_t;

/* what is asked for, and how the run stands */
extern url_t    urls[MAX_URLS];
extern int      n_urls;
extern char    *body;
extern size_t   body_len;
extern conn_t  *conns;
extern int      n_conns, ep, streaming, holding;
extern uint64_t warm_end, deadline, pace_ns;
extern long     left_to_start;      /* requests that may still start; -1: by time */
extern int      running, held;

typedef struct {
    unsigned long n, errors, retries, bytes, frames;
    unsigned long incomplete, not_identical, text_differs, stalled;
    uint64_t      max_gap;
} totals_t;

extern totals_t tot;

uint64_t now_ns(void);
void     die(const char *what);
void     add(samples_t *s, uint64_t ns);

/* load_conn.c: starts the next request on a connection, or ends it */
void     start(conn_t *c);
void     push(conn_t *c);           /* writable */
void     readable(conn_t *c);

#endif
