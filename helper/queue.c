/*
 * The fair queue; see queue.h. A full account never keeps another one waiting, and
 * within an account a ticket that is blocked lets those behind it pass.
 */

#include "queue.h"


void
tgd_queue_init(tgd_queue_t *queue, void (*start)(void *), bool (*blocked)(void *))
{
    memset(queue, 0, sizeof(*queue));
    queue->start = start;
    queue->blocked = blocked;
}


static tgd_account_t *
account_get(tgd_queue_t *queue, const char *name)
{
    tgd_account_t  *account;

    account = queue->turn;
    while (account != NULL) {
        if (strcmp(account->name, name) == 0) {
            return account;
        }
        account = account->next;
        if (account == queue->turn) {
            break;
        }
    }

    account = calloc(1, sizeof(*account));
    if (account == NULL) {
        return NULL;
    }

    (void) snprintf(account->name, sizeof(account->name), "%s", name);
    account->last = &account->first;

    if (queue->turn == NULL) {
        account->next = account;
        queue->turn = account;

    } else {
        /* behind the one whose turn it is */
        account->next = queue->turn->next;
        queue->turn->next = account;
    }

    return account;
}


/* forgets an account that neither runs nor waits */
static void
account_put(tgd_queue_t *queue, tgd_account_t *account)
{
    tgd_account_t  *p;

    if (account->running != 0 || account->waiting != 0) {
        return;
    }

    if (account->next == account) {
        queue->turn = NULL;

    } else {
        for (p = account->next; p->next != account; p = p->next) {
            /* void */
        }
        p->next = account->next;
        if (queue->turn == account) {
            queue->turn = account->next;
        }
    }

    free(account);
}


static void
ticket_unlink(tgd_account_t *account, tgd_ticket_t *ticket)
{
    tgd_ticket_t  **p;

    for (p = &account->first; *p != ticket; p = &(*p)->next) {
        /* void */
    }

    *p = ticket->next;
    if (ticket->next == NULL) {
        account->last = p;
    }

    ticket->next = NULL;
    account->waiting--;
}


/* the next ticket that may start, in turn order; NULL when there is none */
static tgd_ticket_t *
queue_pick(tgd_queue_t *queue)
{
    tgd_ticket_t   *ticket;
    tgd_account_t  *account;

    account = queue->turn;
    if (account == NULL || queue->running >= TGD_QUEUE_RUNNING_MAX) {
        return NULL;
    }

    do {
        if (account->running < TGD_ACCOUNT_RUNNING) {
            for (ticket = account->first; ticket != NULL; ticket = ticket->next) {
                if (!queue->blocked(ticket->data)) {
                    queue->turn = account->next;
                    return ticket;
                }
            }
        }
        account = account->next;
    } while (account != queue->turn);

    return NULL;
}


static void
queue_pump(tgd_queue_t *queue)
{
    tgd_ticket_t  *ticket;

    /* a start may end at once and come back here: the outer one goes on */
    if (queue->pumping) {
        return;
    }

    queue->pumping = true;

    while ((ticket = queue_pick(queue)) != NULL) {
        ticket_unlink(ticket->account, ticket);
        ticket->running = true;
        ticket->account->running++;
        queue->running++;
        queue->start(ticket->data);
    }

    queue->pumping = false;
}


int
tgd_queue_push(tgd_queue_t *queue, tgd_ticket_t *ticket, const char *name, void *data)
{
    tgd_account_t  *account;

    account = account_get(queue, name);
    if (account == NULL || account->waiting >= TGD_ACCOUNT_WAITING) {
        return -1;
    }

    ticket->next = NULL;
    ticket->account = account;
    ticket->running = false;
    ticket->data = data;

    *account->last = ticket;
    account->last = &ticket->next;
    account->waiting++;

    queue_pump(queue);
    return 0;
}


void
tgd_queue_leave(tgd_queue_t *queue, tgd_ticket_t *ticket)
{
    tgd_account_t  *account;

    account = ticket->account;
    if (account == NULL) {
        return;
    }

    if (ticket->running) {
        account->running--;
        queue->running--;

    } else {
        ticket_unlink(account, ticket);
    }

    ticket->account = NULL;
    account_put(queue, account);
    queue_pump(queue);
}
