/*
 * The keys of all objects that are open, so that a key met twice in one object is
 * found. A key is a 16-byte value: its own bytes when it is short, a keyed hash
 * when it is long. It must not know JSON: keys come here without escapes.
 */

#ifndef TG_SCAN_KEYS_H
#define TG_SCAN_KEYS_H

#include "tg.h"


#define TG_SCAN_KEY_SHORT   15    /* bytes of a key that is kept as it is */
#define TG_SCAN_KEY_BLOCK   64
#define TG_SCAN_KEYS_FEW    16    /* keys of an object that are compared in turn */

typedef struct {
    uint64_t  low;
    uint64_t  high;      /* its last byte: length, or the top bit for a hash */
} tg_scan_key_t;

/* The state of SipHash. */
typedef struct {
    uint64_t  v[4];
} tg_scan_sip_t;

/* A key whose bytes come in pieces. */
typedef struct {
    size_t         len;
    tg_scan_sip_t  sip;          /* begun with the first whole block */
    uint8_t        block[TG_SCAN_KEY_BLOCK];
} tg_scan_key_builder_t;

typedef struct {
    uint32_t  tag;       /* hash of the key */
    uint32_t  entry;     /* index + 1; 0: free */
} tg_scan_slot_t;

/* One open object. Zeroed memory is an object that was never opened. */
typedef struct {
    uint32_t         base;       /* its first entry */
    uint32_t         size;       /* slots in use as a table, a power of 2 */
    uint32_t         cap;        /* slots allocated */
    uint32_t         old_size;
    uint32_t         moved;      /* slots of old that are in table too */
    tg_scan_slot_t  *table;
    tg_scan_slot_t  *old;        /* the smaller table, until all of it has moved */
} tg_scan_object_t;

typedef struct {
    tg_scan_key_t  *entries;   /* of all open objects, a stack */
    uint32_t        count;
    uint32_t        cap;
    uint64_t        secret[2];
} tg_scan_keys_t;


void tg_scan_keys_init(tg_scan_keys_t *keys);
void tg_scan_keys_free(tg_scan_keys_t *keys);

void tg_scan_object_close(tg_scan_keys_t *keys, tg_scan_object_t *object);
void tg_scan_object_free(tg_scan_object_t *object);

/* What tg_scan_keys_add does when a list of a few is not enough. */
tg_rc_e tg_scan_keys_add_slow(tg_scan_keys_t *keys, tg_scan_object_t *object,
    tg_scan_key_t key);

void tg_scan_key_append(tg_scan_keys_t *keys, tg_scan_key_builder_t *builder,
    const char *data, size_t len);
tg_scan_key_t tg_scan_key_finish(tg_scan_keys_t *keys, tg_scan_key_builder_t *builder);


static inline bool
tg_scan_key_eq(tg_scan_key_t a, tg_scan_key_t b)
{
    return ((a.low ^ b.low) | (a.high ^ b.high)) == 0;
}


static inline void
tg_scan_object_open(const tg_scan_keys_t *keys, tg_scan_object_t *object)
{
    object->base = keys->count;
    object->size = 0;
}


static inline void
tg_scan_key_begin(tg_scan_key_builder_t *builder)
{
    builder->len = 0;
}


/* TG_OK, TG_E_INVALID when the object has the key already, TG_E_LIMIT, TG_E_NOMEM. */
static inline tg_rc_e
tg_scan_keys_add(tg_scan_keys_t *keys, tg_scan_object_t *object, tg_scan_key_t key)
{
    uint32_t  i;

    if (keys->count - object->base >= TG_SCAN_KEYS_FEW || keys->count == keys->cap) {
        return tg_scan_keys_add_slow(keys, object, key);
    }

    for (i = object->base; i < keys->count; i++) {
        if (tg_scan_key_eq(keys->entries[i], key)) {
            return TG_E_INVALID;
        }
    }

    keys->entries[keys->count++] = key;

    return TG_OK;
}


/* The value of a whole key; room: bytes that may be read from data on. */
static inline tg_scan_key_t
tg_scan_key_of(tg_scan_keys_t *keys, const char *data, size_t len, size_t room)
{
    tg_scan_key_builder_t  builder;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    tg_scan_key_t          key;

    /* the same as the builder makes, without a copy of unknown length */
    if (len <= TG_SCAN_KEY_SHORT && room > TG_SCAN_KEY_SHORT) {
        memcpy(&key.low, data, 8);
        memcpy(&key.high, data + 8, 8);

        if (len < 8) {
            key.low &= (UINT64_C(1) << 8 * len) - 1;
            key.high = 0;
        } else {
            key.high &= (UINT64_C(1) << 8 * (len - 8)) - 1;
        }
        key.high |= (uint64_t) len << 56;

        return key;
    }
#else
    (void) room;
#endif

    tg_scan_key_begin(&builder);
    tg_scan_key_append(keys, &builder, data, len);

    return tg_scan_key_finish(keys, &builder);
}

#endif /* TG_SCAN_KEYS_H */
