/*
 * The front's event loop: epoll, level-triggered, and a heap of timers. Handlers
 * never block. Memory of an object whose watch may still be in the current batch
 * is given to tgd_loop_dispose and freed when the batch is over.
 */

#ifndef TGD_LOOP_H
#define TGD_LOOP_H

#include <sys/epoll.h>

#include "tgd.h"


typedef struct tgd_watch_s  tgd_watch_t;
typedef void (*tgd_watch_pt)(tgd_watch_t *watch, uint32_t events);

struct tgd_watch_s {
    int           fd;          /* -1: closed */
    uint32_t      events;
    tgd_watch_pt  handler;
    void         *data;
};

typedef void (*tgd_timer_pt)(void *data);

typedef struct {
    tgd_msec_t    at;
    size_t        place;       /* in the heap, from 1; 0: not set */
    tgd_timer_pt  handler;
    void         *data;
} tgd_timer_t;

typedef struct tgd_garbage_s  tgd_garbage_t;

typedef struct {
    int             epoll;
    tgd_timer_t   **heap;      /* [1..timers] */
    size_t          timers;
    size_t          room;
    tgd_garbage_t  *garbage;
    bool            stopped;
} tgd_loop_t;


int tgd_loop_init(tgd_loop_t *loop);
void tgd_loop_free(tgd_loop_t *loop);

/* Waits for one batch of events and runs handlers. */
void tgd_loop_once(tgd_loop_t *loop);

/* Frees memory when the current batch is over. */
void tgd_loop_dispose(tgd_loop_t *loop, void *memory);

/* Takes over fd; handler and data are set by the caller before. */
int tgd_watch_open(tgd_loop_t *loop, tgd_watch_t *watch, int fd, uint32_t events);

/* Sets what to wait for; 0: nothing (a hang-up is then not reported either). */
void tgd_watch_change(tgd_loop_t *loop, tgd_watch_t *watch, uint32_t events);

/* Closes the fd; harmless when it is closed. */
void tgd_watch_close(tgd_loop_t *loop, tgd_watch_t *watch);

void tgd_timer_set(tgd_loop_t *loop, tgd_timer_t *timer, tgd_msec_t delay);
void tgd_timer_clear(tgd_loop_t *loop, tgd_timer_t *timer);

#endif /* TGD_LOOP_H */
