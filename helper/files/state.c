/*
 * What sessions know of files; see state.h. An entry is found by a hash over session
 * and path, so that its size does not depend on either.
 */

#include <stdlib.h>

#include "files/state.h"


#define TGD_BUCKETS  (sizeof(((tgd_states_t *) 0)->buckets) / sizeof(tgd_state_t *))


void
tgd_state_put(tg_buf_t *told, const char *path, const char *hash)
{
    /* the hash, or as many blanks, then the path with its NUL */
    (void) tg_buf_printf(told, "%-*s", TGD_HASH_HEX, hash == NULL ? "" : hash);
    (void) tg_buf_append(told, path, strlen(path) + 1);
}


static void
state_key(const char *session, const char *path, char key[TGD_HASH_HEX + 1])
{
    size_t  n;
    char    text[TGD_KEY_HEX + TG_FILE_PATH_MAX + 1];

    memcpy(text, session, TGD_KEY_HEX);
    n = strlen(path);
    memcpy(text + TGD_KEY_HEX, path, n);

    tg_json_sha256_hex((tg_str_t) { TGD_KEY_HEX + n, text }, key);
}


static tgd_state_t **
state_place(tgd_states_t *states, const char *key)
{
    char          head[9];
    tgd_state_t **place;

    memcpy(head, key, 8);
    head[8] = '\0';

    place = &states->buckets[strtoul(head, NULL, 16) % TGD_BUCKETS];
    while (*place != NULL && strcmp((*place)->key, key) != 0) {
        place = &(*place)->next;
    }

    return place;
}


static void
age_unlink(tgd_state_t *state)
{
    if (state->older != NULL) {
        state->older->newer = state->newer;
    } else {
        state->owner->oldest = state->newer;
    }

    if (state->newer != NULL) {
        state->newer->older = state->older;
    } else {
        state->owner->newest = state->older;
    }
}


static void
age_newest(tgd_state_t *state)
{
    tgd_state_owner_t  *owner;

    owner = state->owner;
    state->older = owner->newest;
    state->newer = NULL;

    if (owner->newest != NULL) {
        owner->newest->newer = state;
    } else {
        owner->oldest = state;
    }

    owner->newest = state;
}


/* the place of an account in the list; its end when it has no file */
static tgd_state_owner_t **
owner_place(tgd_states_t *states, const char *account)
{
    tgd_state_owner_t  **place;

    place = &states->owners;
    while (*place != NULL && strcmp((*place)->account, account) != 0) {
        place = &(*place)->next;
    }

    return place;
}


/* who has the most files */
static tgd_state_owner_t *
owner_largest(tgd_states_t *states)
{
    tgd_state_owner_t  *owner, *largest;

    largest = states->owners;
    for (owner = largest; owner != NULL; owner = owner->next) {
        if (owner->count > largest->count) {
            largest = owner;
        }
    }

    return largest;
}


static void
state_forget(tgd_states_t *states, tgd_state_t **place)
{
    tgd_state_t         *state;
    tgd_state_owner_t   *owner, **owners;

    state = *place;
    if (state == NULL) {
        return;
    }

    *place = state->next;
    owner = state->owner;
    age_unlink(state);
    free(state);
    states->count--;

    if (--owner->count == 0) {
        owners = owner_place(states, owner->account);
        *owners = owner->next;
        free(owner);
    }
}


/* room for one more file of an account */
static void
states_make_room(tgd_states_t *states, const char *account)
{
    tgd_state_owner_t  *owner;

    owner = *owner_place(states, account);

    if (owner == NULL || owner->count < TGD_STATES_ACCOUNT_MAX) {
        owner = states->count == TGD_STATES_MAX ? owner_largest(states) : NULL;
    }

    if (owner != NULL) {
        state_forget(states, state_place(states, owner->oldest->key));
    }
}


static tgd_state_t *
state_new(tgd_states_t *states, const char *account, const char *key)
{
    tgd_state_t         *state, **place;
    tgd_state_owner_t  **owner;

    states_make_room(states, account);

    state = calloc(1, sizeof(*state));
    owner = owner_place(states, account);

    if (state != NULL && *owner == NULL) {
        *owner = calloc(1, sizeof(**owner));
        if (*owner != NULL) {
            memcpy((*owner)->account, account, sizeof((*owner)->account));
        }
    }

    /* without memory it is as if it had not been read: the safe side */
    if (state == NULL || *owner == NULL) {
        free(state);
        return NULL;
    }

    memcpy(state->key, key, sizeof(state->key));
    state->owner = *owner;
    (*owner)->count++;
    states->count++;

    place = state_place(states, key);
    state->next = *place;
    *place = state;

    return state;
}


static void
state_set(tgd_states_t *states, const char *account, const char *key, const char *hash)
{
    tgd_state_t  *state;

    state = *state_place(states, key);

    if (state != NULL) {
        age_unlink(state);
    } else {
        state = state_new(states, account, key);
    }

    if (state != NULL) {
        memcpy(state->hash, hash, sizeof(state->hash));
        age_newest(state);
    }
}


const char *
tgd_states_get(tgd_states_t *states, const char *session, const char *path)
{
    char          key[TGD_HASH_HEX + 1];
    tgd_state_t  *state;

    state_key(session, path, key);
    state = *state_place(states, key);

    return state == NULL ? "" : state->hash;
}


bool
tgd_states_take(tgd_states_t *states, const char *account, const char *session,
    tg_str_t told)
{
    char         key[TGD_HASH_HEX + 1], hash[TGD_HASH_HEX + 1];
    const char  *path, *end;

    while (told.len != 0) {
        if (told.len <= TGD_HASH_HEX) {
            return false;
        }

        path = told.data + TGD_HASH_HEX;
        end = memchr(path, '\0', told.len - TGD_HASH_HEX);
        if (end == NULL || end - path > TG_FILE_PATH_MAX) {
            return false;
        }

        memcpy(hash, told.data, TGD_HASH_HEX);
        hash[TGD_HASH_HEX] = '\0';
        state_key(session, path, key);

        if (hash[0] == ' ') {
            state_forget(states, state_place(states, key));

        } else if (strspn(hash, "0123456789abcdef") == TGD_HASH_HEX) {
            state_set(states, account, key, hash);

        } else {
            return false;
        }

        told.len -= (size_t) (end + 1 - told.data);
        told.data = end + 1;
    }

    return true;
}


void
tgd_states_free(tgd_states_t *states)
{
    while (states->owners != NULL) {
        state_forget(states, state_place(states, states->owners->oldest->key));
    }
}
