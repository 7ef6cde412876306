/*
 * Events of a run in the shapes of the KsADK actions: one event in, no or more SSE
 * frames out. Every frame has a number that depends on the run's events alone, so
 * that a subscriber who comes back sees none twice and misses none.
 */

#ifndef TG_KSADK_H
#define TG_KSADK_H

#include "tg.h"
#include "tg_buf.h"


/* an event of a run has this many numbers of frames: one for what was said before it,
 * and its own */
#define TG_KSADK_SEQ_PER_EVENT     2

/* a snapshot repeats all text: it is made when that has grown by this share */
#define TG_KSADK_SNAPSHOT_SHARE    16

/* What one subscriber follows. The strings are its own. */
typedef struct {
    tg_str_t   agent;
    tg_str_t   session;       /* empty: the run has none */
    tg_str_t   invocation;
    int64_t    after;         /* SeqId of the last frame that it has */
    tg_buf_t   text;          /* all that the run has said */
    size_t     shown;         /* how much of it the last snapshot had */
    bool       over;          /* [DONE] was appended */
} tg_ksadk_t;


/* Begins at the first event of a run; text may grow to max bytes. Allocates
 * nothing; the strings have to stay until the end. */
void tg_ksadk_init(tg_ksadk_t *k, tg_str_t agent, tg_str_t session,
    tg_str_t invocation, int64_t after, size_t max);

void tg_ksadk_free(tg_ksadk_t *k);

/*
 * Appends the frames that follow from the next event, JSON as the store has it:
 * those with a SeqId over "after", and "data: [DONE]" after the last event of a run
 * or when it waits for somebody and the subscriber had not been told so. Nothing is
 * appended once that is over.
 *
 * TG_OK; TG_E_SYNTAX for what is no event; TG_E_LIMIT, TG_E_NOMEM.
 */
tg_rc_e tg_ksadk_event(tg_ksadk_t *k, tg_str_t event, tg_buf_t *out);

/* The word of the KsADK actions for a run's status; the status itself when it is
 * not known. */
const char *tg_ksadk_status(const char *status);

#endif /* TG_KSADK_H */
