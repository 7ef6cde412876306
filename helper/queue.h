/*
 * Who may run next: accounts take turns, each within its bounds. The queue knows
 * nothing of what is run; tickets lie in the objects that wait.
 */

#ifndef TGD_QUEUE_H
#define TGD_QUEUE_H

#include "tgd.h"


#define TGD_QUEUE_RUNNING_MAX   16     /* jobs at once, of all accounts */
#define TGD_ACCOUNT_RUNNING     2      /* of one account */
#define TGD_ACCOUNT_WAITING     32

typedef struct tgd_account_s  tgd_account_t;
typedef struct tgd_ticket_s   tgd_ticket_t;

struct tgd_ticket_s {
    tgd_ticket_t   *next;
    tgd_account_t  *account;
    bool            running;
    void           *data;
};

struct tgd_account_s {
    tgd_account_t  *next;              /* a ring */
    char            name[65];
    unsigned        running;
    unsigned        waiting;
    tgd_ticket_t   *first;
    tgd_ticket_t  **last;
};

typedef struct {
    tgd_account_t  *turn;              /* who is asked first; NULL: nobody waits */
    unsigned        running;
    bool            pumping;
    /* starts what the ticket is for; may end it at once */
    void          (*start)(void *data);
    /* true when it can not start now for a reason of its own */
    bool          (*blocked)(void *data);
} tgd_queue_t;


void tgd_queue_init(tgd_queue_t *queue, void (*start)(void *), bool (*blocked)(void *));

/* Queues a ticket and starts what can start. -1: the account has too many waiting,
 * or no memory. */
int tgd_queue_push(tgd_queue_t *queue, tgd_ticket_t *ticket, const char *account,
    void *data);

/* The ticket's work is over, or it shall not start any more. */
void tgd_queue_leave(tgd_queue_t *queue, tgd_ticket_t *ticket);

#endif /* TGD_QUEUE_H */
