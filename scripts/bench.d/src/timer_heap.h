/*
 * The one timer that each connection of a mock may have, soonest first.
 */
#ifndef TIMER_HEAP_H
#define TIMER_HEAP_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t when;              /* ns */
    size_t   heap_at;           /* 1-based; 0: not queued */
} srv_timer_t;

int          timer_add(srv_timer_t *t);     /* -1: out of memory */
void         timer_del(srv_timer_t *t);     /* may be called when it is not queued */
srv_timer_t *timer_first(void);             /* NULL: none */

#endif
