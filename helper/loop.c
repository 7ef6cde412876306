/*
 * The event loop of the front; see loop.h. It knows nothing of what the watched
 * descriptors are.
 */

#include <errno.h>
#include <unistd.h>

#include "loop.h"


#define TGD_LOOP_BATCH    64
#define TGD_LOOP_TIMERS   64       /* first size of the heap */

struct tgd_garbage_s {
    tgd_garbage_t  *next;
    void           *memory;
};


int
tgd_loop_init(tgd_loop_t *loop)
{
    memset(loop, 0, sizeof(*loop));

    loop->epoll = epoll_create1(EPOLL_CLOEXEC);

    return loop->epoll == -1 ? -1 : 0;
}


static void
loop_sweep(tgd_loop_t *loop)
{
    tgd_garbage_t  *item;

    while (loop->garbage != NULL) {
        item = loop->garbage;
        loop->garbage = item->next;
        free(item->memory);
        free(item);
    }
}


void
tgd_loop_free(tgd_loop_t *loop)
{
    loop_sweep(loop);
    free(loop->heap);
    (void) close(loop->epoll);
}


void
tgd_loop_dispose(tgd_loop_t *loop, void *memory)
{
    tgd_garbage_t  *item;

    item = malloc(sizeof(*item));
    if (item == NULL) {
        tgd_die("out_of_memory", "\"where\":\"loop\"");
    }

    item->memory = memory;
    item->next = loop->garbage;
    loop->garbage = item;
}


int
tgd_watch_open(tgd_loop_t *loop, tgd_watch_t *watch, int fd, uint32_t events)
{
    struct epoll_event  ev;

    ev.events = events;
    ev.data.ptr = watch;

    if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &ev) == -1) {
        watch->fd = -1;
        return -1;
    }

    watch->fd = fd;
    watch->events = events;
    return 0;
}


void
tgd_watch_change(tgd_loop_t *loop, tgd_watch_t *watch, uint32_t events)
{
    struct epoll_event  ev;

    if (watch->fd == -1 || watch->events == events) {
        return;
    }

    ev.events = events;
    ev.data.ptr = watch;

    /* EPOLLHUP can not be masked, so "nothing" means out of the set */
    if (events == 0) {
        (void) epoll_ctl(loop->epoll, EPOLL_CTL_DEL, watch->fd, NULL);

    } else if (watch->events == 0) {
        (void) epoll_ctl(loop->epoll, EPOLL_CTL_ADD, watch->fd, &ev);

    } else {
        (void) epoll_ctl(loop->epoll, EPOLL_CTL_MOD, watch->fd, &ev);
    }

    watch->events = events;
}


void
tgd_watch_close(tgd_loop_t *loop, tgd_watch_t *watch)
{
    if (watch->fd == -1) {
        return;
    }

    tgd_watch_change(loop, watch, 0);
    (void) close(watch->fd);
    watch->fd = -1;
}


static void
heap_put(tgd_loop_t *loop, size_t place, tgd_timer_t *timer)
{
    loop->heap[place] = timer;
    timer->place = place;
}


static void
heap_up(tgd_loop_t *loop, size_t place, tgd_timer_t *timer)
{
    while (place > 1 && loop->heap[place / 2]->at > timer->at) {
        heap_put(loop, place, loop->heap[place / 2]);
        place /= 2;
    }

    heap_put(loop, place, timer);
}


static void
heap_down(tgd_loop_t *loop, size_t place, tgd_timer_t *timer)
{
    size_t  child;

    while ((child = place * 2) <= loop->timers) {
        if (child < loop->timers
            && loop->heap[child + 1]->at < loop->heap[child]->at)
        {
            child++;
        }

        if (loop->heap[child]->at >= timer->at) {
            break;
        }

        heap_put(loop, place, loop->heap[child]);
        place = child;
    }

    heap_put(loop, place, timer);
}


void
tgd_timer_set(tgd_loop_t *loop, tgd_timer_t *timer, tgd_msec_t delay)
{
    void    *heap;
    size_t   room;

    tgd_timer_clear(loop, timer);

    if (loop->timers + 2 > loop->room) {
        room = loop->room == 0 ? TGD_LOOP_TIMERS : loop->room * 2;
        heap = realloc(loop->heap, room * sizeof(tgd_timer_t *));
        if (heap == NULL) {
            tgd_die("out_of_memory", "\"where\":\"loop\"");
        }
        loop->heap = heap;
        loop->room = room;
    }

    timer->at = tgd_monotonic_ms() + delay;
    loop->timers++;
    heap_up(loop, loop->timers, timer);
}


void
tgd_timer_clear(tgd_loop_t *loop, tgd_timer_t *timer)
{
    size_t        place;
    tgd_timer_t  *last;

    place = timer->place;
    if (place == 0) {
        return;
    }

    timer->place = 0;
    last = loop->heap[loop->timers];
    loop->timers--;

    if (last == timer) {
        return;
    }

    if (place > 1 && loop->heap[place / 2]->at > last->at) {
        heap_up(loop, place, last);

    } else {
        heap_down(loop, place, last);
    }
}


static int
loop_wait_time(tgd_loop_t *loop)
{
    tgd_msec_t  left;

    if (loop->timers == 0) {
        return -1;
    }

    left = loop->heap[1]->at - tgd_monotonic_ms();

    return left <= 0 ? 0 : left > 60000 ? 60000 : (int) left;
}


void
tgd_loop_once(tgd_loop_t *loop)
{
    int                  i, n;
    tgd_msec_t           now;
    tgd_timer_t         *timer;
    tgd_watch_t         *watch;
    struct epoll_event   events[TGD_LOOP_BATCH];

    n = epoll_wait(loop->epoll, events, TGD_LOOP_BATCH, loop_wait_time(loop));
    if (n == -1 && errno != EINTR) {
        tgd_die("epoll_failed", "\"errno\":%d", errno);
    }

    for (i = 0; i < n; i++) {
        watch = events[i].data.ptr;
        /* closed or switched off by a handler of the same batch */
        if (watch->fd != -1 && watch->events != 0) {
            watch->handler(watch, events[i].events);
        }
    }

    now = tgd_monotonic_ms();
    while (loop->timers != 0 && loop->heap[1]->at <= now) {
        timer = loop->heap[1];
        tgd_timer_clear(loop, timer);
        timer->handler(timer->data);
    }

    loop_sweep(loop);
}
