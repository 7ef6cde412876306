/*
 * What a session knows of the files of its workspace: the hash of each as it was read
 * or written last. Kept by the front; workers are told the one that they need and tell
 * what changed. The sessions of an account share the files but not this.
 */

#ifndef TGD_STATE_H
#define TGD_STATE_H

#include "files/tree.h"
#include "sandbox/registry.h"


#define TGD_STATES_MAX          16384     /* files of all sessions */
#define TGD_STATES_ACCOUNT_MAX  2048      /* of the sessions of one account: then its oldest
                                             one is forgotten, and never another's */

typedef struct tgd_state_s        tgd_state_t;
typedef struct tgd_state_owner_s  tgd_state_owner_t;

struct tgd_state_s {
    tgd_state_t         *next;                    /* of the same bucket */
    tgd_state_t         *older, *newer;           /* of the same account */
    tgd_state_owner_t   *owner;
    char                 key[TGD_HASH_HEX + 1];   /* of session and path */
    char                 hash[TGD_HASH_HEX + 1];
};

/* An account with at least one file. */
struct tgd_state_owner_s {
    tgd_state_owner_t   *next;
    char                 account[TGD_WORKSPACE_HEX + 1];
    tgd_state_t         *oldest, *newest;
    size_t               count;
};

/* Zeroed memory is an empty one. */
typedef struct {
    tgd_state_t         *buckets[4096];
    tgd_state_owner_t   *owners;
    size_t               count;
} tgd_states_t;


/* The hash that a session has of a file, or "". */
const char *tgd_states_get(tgd_states_t *states, const char *session, const char *path);

/* Takes over what a worker of this account told. False when it is not well formed. */
bool tgd_states_take(tgd_states_t *states, const char *account, const char *session,
    tg_str_t told);

void tgd_states_free(tgd_states_t *states);

/* The worker's side: appends one file. hash NULL: it is not known any more. */
void tgd_state_put(tg_buf_t *told, const char *path, const char *hash);

#endif /* TGD_STATE_H */
