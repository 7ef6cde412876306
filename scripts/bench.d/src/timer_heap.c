/*
 * A binary heap. What a timer is for is not known here.
 */
#include "timer_heap.h"

#include <stdlib.h>

static srv_timer_t **heap;
static size_t        heap_n, heap_cap;

static void
heap_put(size_t i, srv_timer_t *t)
{
    heap[i] = t;
    t->heap_at = i;
}

static void
heap_up(size_t i)
{
    srv_timer_t *t = heap[i];

    while (i > 1 && heap[i / 2]->when > t->when) {
        heap_put(i, heap[i / 2]);
        i /= 2;
    }
    heap_put(i, t);
}

static void
heap_down(size_t i)
{
    srv_timer_t *t = heap[i];
    size_t       k;

    while ((k = i * 2) <= heap_n) {
        if (k < heap_n && heap[k + 1]->when < heap[k]->when) {
            k++;
        }
        if (heap[k]->when >= t->when) {
            break;
        }
        heap_put(i, heap[k]);
        i = k;
    }
    heap_put(i, t);
}

void
timer_del(srv_timer_t *t)
{
    size_t i = t->heap_at;

    if (i == 0) {
        return;
    }
    t->heap_at = 0;
    if (i == heap_n) {
        heap_n--;
        return;
    }
    heap_put(i, heap[heap_n--]);
    heap_up(i);
    heap_down(heap[i]->heap_at);
}

int
timer_add(srv_timer_t *t)
{
    srv_timer_t **grown;

    if (heap_n + 2 > heap_cap) {
        heap_cap = heap_cap ? heap_cap * 2 : 1024;
        grown = realloc(heap, heap_cap * sizeof(*heap));
        if (grown == NULL) {
            return -1;
        }
        heap = grown;
    }
    heap_put(++heap_n, t);
    heap_up(heap_n);
    return 0;
}

srv_timer_t *
timer_first(void)
{
    return heap_n > 0 ? heap[1] : NULL;
}
