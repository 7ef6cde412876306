/*
 * Duplicate keys of open objects: a short list per object, a hash table beyond.
 * Hashes are SipHash with a secret of the process, so that nobody can choose keys
 * that share a slot. It must not know where keys come from.
 */

#include "tg_scan_keys.h"

#include <stdlib.h>
#include <sys/auxv.h>

#include "tg_scan.h"


#define TG_SCAN_KEYS_FIRST   64      /* entries of the first allocation */
#define TG_SCAN_TABLE_FIRST  64      /* slots of an object's first table */
#define TG_SCAN_TABLE_KEEP   256     /* slots kept for the next object there */
#define TG_SCAN_TABLE_SMALL  4096    /* slots up to which a table grows faster */
#define TG_SCAN_TABLE_MOVE   4       /* old slots moved with each new key */

#define TG_SCAN_SIP_BLOCK    2       /* rounds for a word, as in SipHash-2-4 */
#define TG_SCAN_SIP_FINISH   4
#define TG_SCAN_SIP_TAG      1       /* table tags need less: SipHash-1-3 */
#define TG_SCAN_SIP_TAG_END  3

static tg_rc_e tg_scan_keys_grow(tg_scan_keys_t *keys);
static tg_rc_e tg_scan_table_grow(tg_scan_object_t *object);
static tg_rc_e tg_scan_table_start(tg_scan_keys_t *keys, tg_scan_object_t *object);
static void tg_scan_table_move(tg_scan_object_t *object);
static void tg_scan_table_put(tg_scan_object_t *object, tg_scan_slot_t slot);
static bool tg_scan_table_has(const tg_scan_keys_t *keys, const tg_scan_slot_t *table,
    uint32_t size, tg_scan_key_t key, uint32_t tag);
static uint32_t tg_scan_key_tag(const tg_scan_keys_t *keys, tg_scan_key_t key);
static void tg_scan_key_absorb(tg_scan_key_builder_t *builder, size_t len);
static void tg_scan_key_hash(const tg_scan_keys_t *keys, tg_scan_key_builder_t *builder);
static void tg_scan_sip_begin(tg_scan_sip_t *sip, const uint64_t secret[2]);
static void tg_scan_sip_rounds(tg_scan_sip_t *sip, unsigned n);
static void tg_scan_sip_word(tg_scan_sip_t *sip, uint64_t word, unsigned rounds);
static uint64_t tg_scan_sip_fold(const tg_scan_sip_t *sip);


void
tg_scan_keys_init(tg_scan_keys_t *keys)
{
    const void  *random;

    *keys = (tg_scan_keys_t) { 0 };

    /* 16 bytes that the kernel gives each process; the verdict on a body does not
     * depend on them, only how its keys spread */
    random = (const void *) getauxval(AT_RANDOM);
    if (random != NULL) {
        memcpy(keys->secret, random, sizeof(keys->secret));
    }
}


void
tg_scan_keys_free(tg_scan_keys_t *keys)
{
    free(keys->entries);
    keys->entries = NULL;
    keys->count = 0;
    keys->cap = 0;
}


void
tg_scan_object_close(tg_scan_keys_t *keys, tg_scan_object_t *object)
{
    keys->count = object->base;

    if (object->cap > TG_SCAN_TABLE_KEEP) {
        tg_scan_object_free(object);

    } else if (object->old != NULL) {
        free(object->old);
        object->old = NULL;
    }
}


void
tg_scan_object_free(tg_scan_object_t *object)
{
    free(object->old);
    free(object->table);
    *object = (tg_scan_object_t) { .base = object->base };
}


tg_rc_e
tg_scan_keys_add_slow(tg_scan_keys_t *keys, tg_scan_object_t *object, tg_scan_key_t key)
{
    tg_rc_e   rc;
    uint32_t  n, tag;

    if (keys->count == keys->cap) {
        rc = tg_scan_keys_grow(keys);
        if (rc != TG_OK) {
            return rc;
        }
    }

    n = keys->count - object->base;
    if (n < TG_SCAN_KEYS_FEW) {
        return tg_scan_keys_add(keys, object, key);
    }

    /* half full at most: few steps for a key that is new */
    rc = TG_OK;
    if (n == TG_SCAN_KEYS_FEW) {
        rc = tg_scan_table_start(keys, object);
    } else if (2 * n >= object->size) {
        rc = tg_scan_table_grow(object);
    }

    if (rc != TG_OK) {
        return rc;
    }

    tag = tg_scan_key_tag(keys, key);
    if (tg_scan_table_has(keys, object->table, object->size, key, tag)) {
        return TG_E_INVALID;
    }

    if (object->old != NULL) {
        if (tg_scan_table_has(keys, object->old, object->old_size, key, tag)) {
            return TG_E_INVALID;
        }
        tg_scan_table_move(object);
    }

    keys->entries[keys->count++] = key;
    tg_scan_table_put(object, (tg_scan_slot_t) { tag, keys->count });

    return TG_OK;
}


static tg_rc_e
tg_scan_keys_grow(tg_scan_keys_t *keys)
{
    uint32_t        cap;
    tg_scan_key_t  *entries;

    if (keys->cap == TG_SCAN_MAX_KEYS) {
        return TG_E_LIMIT;
    }

    cap = keys->cap == 0 ? TG_SCAN_KEYS_FIRST : keys->cap * 2;
    if (cap > TG_SCAN_MAX_KEYS) {
        cap = TG_SCAN_MAX_KEYS;
    }

    entries = realloc(keys->entries, cap * sizeof(tg_scan_key_t));
    if (entries == NULL) {
        return TG_E_NOMEM;
    }

    keys->entries = entries;
    keys->cap = cap;

    return TG_OK;
}


/* Makes the table of an object that has outgrown the list. */
static tg_rc_e
tg_scan_table_start(tg_scan_keys_t *keys, tg_scan_object_t *object)
{
    uint32_t  i, tag;

    if (object->cap < TG_SCAN_TABLE_FIRST) {
        object->table = calloc(TG_SCAN_TABLE_FIRST, sizeof(tg_scan_slot_t));
        if (object->table == NULL) {
            return TG_E_NOMEM;
        }
        object->cap = TG_SCAN_TABLE_FIRST;

    } else {
        memset(object->table, 0, TG_SCAN_TABLE_FIRST * sizeof(tg_scan_slot_t));
    }

    object->size = TG_SCAN_TABLE_FIRST;

    for (i = object->base; i < keys->count; i++) {
        tag = tg_scan_key_tag(keys, keys->entries[i]);
        tg_scan_table_put(object, (tg_scan_slot_t) { tag, i + 1 });
    }

    return TG_OK;
}


/* A bigger table. The old one is moved bit by bit, or the key that makes a table of
 * a million grow would stop everything else of the process. */
static tg_rc_e
tg_scan_table_grow(tg_scan_object_t *object)
{
    uint32_t         size;
    tg_scan_slot_t  *table;

    size = object->size * (object->size < TG_SCAN_TABLE_SMALL ? 4 : 2);

    table = calloc(size, sizeof(tg_scan_slot_t));
    if (table == NULL) {
        return TG_E_NOMEM;
    }

    object->old = object->table;
    object->old_size = object->size;
    object->moved = 0;
    object->table = table;
    object->size = object->cap = size;

    return TG_OK;
}


/* A table gets half of its size in new keys before it grows again: at two slots a
 * key the old one would be gone in time. */
static void
tg_scan_table_move(tg_scan_object_t *object)
{
    unsigned  n;

    for (n = TG_SCAN_TABLE_MOVE; n > 0 && object->moved < object->old_size; n--) {
        if (object->old[object->moved].entry != 0) {
            tg_scan_table_put(object, object->old[object->moved]);
        }
        object->moved++;
    }

    if (object->moved == object->old_size) {
        free(object->old);
        object->old = NULL;
    }
}


static void
tg_scan_table_put(tg_scan_object_t *object, tg_scan_slot_t slot)
{
    uint32_t  i;

    i = slot.tag & (object->size - 1);
    while (object->table[i].entry != 0) {
        i = (i + 1) & (object->size - 1);
    }

    object->table[i] = slot;
}


static bool
tg_scan_table_has(const tg_scan_keys_t *keys, const tg_scan_slot_t *table, uint32_t size,
    tg_scan_key_t key, uint32_t tag)
{
    uint32_t               i;
    const tg_scan_slot_t  *slot;

    for (i = tag & (size - 1); /* void */; i = (i + 1) & (size - 1)) {
        slot = &table[i];
        if (slot->entry == 0) {
            return false;
        }

        if (slot->tag == tag && tg_scan_key_eq(keys->entries[slot->entry - 1], key)) {
            return true;
        }
    }
}


static uint32_t
tg_scan_key_tag(const tg_scan_keys_t *keys, tg_scan_key_t key)
{
    tg_scan_sip_t  sip;

    tg_scan_sip_begin(&sip, keys->secret);
    tg_scan_sip_word(&sip, key.low, TG_SCAN_SIP_TAG);
    tg_scan_sip_word(&sip, key.high, TG_SCAN_SIP_TAG);
    sip.v[2] ^= 0xff;
    tg_scan_sip_rounds(&sip, TG_SCAN_SIP_TAG_END);

    return (uint32_t) tg_scan_sip_fold(&sip);
}


void
tg_scan_key_append(tg_scan_keys_t *keys, tg_scan_key_builder_t *builder, const char *data,
    size_t len)
{
    size_t  n, used;

    while (len > 0) {
        used = builder->len % TG_SCAN_KEY_BLOCK;
        n = TG_SCAN_KEY_BLOCK - used;
        if (n > len) {
            n = len;
        }

        memcpy(builder->block + used, data, n);
        builder->len += n;
        data += n;
        len -= n;

        if (used + n < TG_SCAN_KEY_BLOCK) {
            return;
        }

        if (builder->len == TG_SCAN_KEY_BLOCK) {
            tg_scan_key_hash(keys, builder);
        }
        tg_scan_key_absorb(builder, TG_SCAN_KEY_BLOCK);
    }
}


tg_scan_key_t
tg_scan_key_finish(tg_scan_keys_t *keys, tg_scan_key_builder_t *builder)
{
    uint8_t        bytes[TG_SCAN_KEY_SHORT + 1] = { 0 };
    uint64_t       word;
    tg_scan_key_t  key;

    if (builder->len <= TG_SCAN_KEY_SHORT) {
        memcpy(bytes, builder->block, builder->len);
        bytes[TG_SCAN_KEY_SHORT] = (uint8_t) builder->len;

    } else {
        if (builder->len < TG_SCAN_KEY_BLOCK) {
            tg_scan_key_hash(keys, builder);
        }
        tg_scan_key_absorb(builder, builder->len % TG_SCAN_KEY_BLOCK);
        tg_scan_sip_word(&builder->sip, builder->len, TG_SCAN_SIP_BLOCK);

        builder->sip.v[2] ^= 0xee;
        tg_scan_sip_rounds(&builder->sip, TG_SCAN_SIP_FINISH);
        word = tg_scan_sip_fold(&builder->sip);
        memcpy(bytes, &word, 8);

        builder->sip.v[1] ^= 0xdd;
        tg_scan_sip_rounds(&builder->sip, TG_SCAN_SIP_FINISH);
        word = tg_scan_sip_fold(&builder->sip);
        memcpy(bytes + 8, &word, 8);

        /* never the value of a short key */
        bytes[TG_SCAN_KEY_SHORT] |= 0x80;
    }

    memcpy(&key.low, bytes, 8);
    memcpy(&key.high, bytes + 8, 8);

    return key;
}


/* Takes the first len bytes of the block, filled up with zeros to whole words. */
static void
tg_scan_key_absorb(tg_scan_key_builder_t *builder, size_t len)
{
    size_t    i, n;
    uint64_t  word;

    for (i = 0; i < len; i += n) {
        n = len - i < sizeof(word) ? len - i : sizeof(word);
        word = 0;
        memcpy(&word, builder->block + i, n);
        tg_scan_sip_word(&builder->sip, word, TG_SCAN_SIP_BLOCK);
    }
}


/* Begins the hash of a long key: SipHash with 128 bits of output. */
static void
tg_scan_key_hash(const tg_scan_keys_t *keys, tg_scan_key_builder_t *builder)
{
    tg_scan_sip_begin(&builder->sip, keys->secret);
    builder->sip.v[1] ^= 0xee;
}


static void
tg_scan_sip_begin(tg_scan_sip_t *sip, const uint64_t secret[2])
{
    sip->v[0] = secret[0] ^ UINT64_C(0x736f6d6570736575);
    sip->v[1] = secret[1] ^ UINT64_C(0x646f72616e646f6d);
    sip->v[2] = secret[0] ^ UINT64_C(0x6c7967656e657261);
    sip->v[3] = secret[1] ^ UINT64_C(0x7465646279746573);
}


static inline uint64_t
tg_scan_rotate(uint64_t x, unsigned bits)
{
    return x << bits | x >> (64 - bits);
}


static void
tg_scan_sip_rounds(tg_scan_sip_t *sip, unsigned n)
{
    uint64_t  a, b, c, d;

    a = sip->v[0];
    b = sip->v[1];
    c = sip->v[2];
    d = sip->v[3];

    for (/* void */; n > 0; n--) {
        a += b;
        b = tg_scan_rotate(b, 13) ^ a;
        a = tg_scan_rotate(a, 32);
        c += d;
        d = tg_scan_rotate(d, 16) ^ c;
        a += d;
        d = tg_scan_rotate(d, 21) ^ a;
        c += b;
        b = tg_scan_rotate(b, 17) ^ c;
        c = tg_scan_rotate(c, 32);
    }

    *sip = (tg_scan_sip_t) { { a, b, c, d } };
}


static void
tg_scan_sip_word(tg_scan_sip_t *sip, uint64_t word, unsigned rounds)
{
    sip->v[3] ^= word;
    tg_scan_sip_rounds(sip, rounds);
    sip->v[0] ^= word;
}


static uint64_t
tg_scan_sip_fold(const tg_scan_sip_t *sip)
{
    return sip->v[0] ^ sip->v[1] ^ sip->v[2] ^ sip->v[3];
}
