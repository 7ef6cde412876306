/*
 * The table of time zones: names in rising order, each with its zone. Most names
 * are other spellings of a zone, or of one with the same future: these share it.
 */

#include "tg_zone.h"

#include <stdlib.h>


#define TG_ZONES_STEP       128      /* entries, or zones, that are added at once */
#define TG_ZONES_TEXT_STEP  2048     /* bytes of names that are added at once */

typedef struct {
    uint32_t  name;      /* where it begins in the text */
    uint16_t  len;
    uint16_t  zone;
} tg_zones_entry_t;

struct tg_zones_s {
    int64_t            since;
    char              *text;
    size_t             text_len;
    size_t             text_cap;
    tg_zones_entry_t  *entries;
    size_t             count;
    size_t             cap;
    tg_zone_t        **zones;
    size_t             zone_count;
    size_t             zone_cap;
};


tg_zones_t *
tg_zones_create(int64_t since)
{
    tg_zones_t  *zones;

    zones = calloc(1, sizeof(tg_zones_t));

    if (zones != NULL) {
        zones->since = since;
    }

    return zones;
}


void
tg_zones_free(tg_zones_t *zones)
{
    size_t  i;

    if (zones == NULL) {
        return;
    }

    for (i = 0; i < zones->zone_count; i++) {
        tg_zone_free(zones->zones[i]);
    }

    free(zones->zones);
    free(zones->entries);
    free(zones->text);
    free(zones);
}


static bool
tg_zones_name_valid(tg_str_t name)
{
    char    c, last;
    size_t  i;

    if (name.len == 0 || name.len > TG_ZONE_NAME_MAX) {
        return false;
    }

    last = '/';

    for (i = 0; i < name.len; i++) {
        c = name.data[i];

        if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')
              || (c >= '0' && c <= '9') || c == '_' || c == '+' || c == '-'
              || (c == '/' && last != '/')))
        {
            return false;
        }

        last = c;
    }

    return last != '/';
}


static int
tg_zones_compare(const tg_zones_t *zones, size_t i, tg_str_t name)
{
    int     rc;
    size_t  len;

    len = zones->entries[i].len;
    rc = memcmp(zones->text + zones->entries[i].name, name.data,
                len < name.len ? len : name.len);

    if (rc != 0 || len == name.len) {
        return rc;
    }

    return len < name.len ? -1 : 1;
}


/* The place of a name, or the one where it would stand. */
static size_t
tg_zones_place(const tg_zones_t *zones, tg_str_t name, bool *found)
{
    int     rc;
    size_t  low, high, middle;

    low = 0;
    high = zones->count;
    *found = false;

    while (low < high && !*found) {
        middle = low + (high - low) / 2;
        rc = tg_zones_compare(zones, middle, name);

        if (rc < 0) {
            low = middle + 1;

        } else {
            high = middle;
            *found = (rc == 0);
        }
    }

    return *found ? high : low;
}


/* The list with room for `more` further elements; NULL: it stays as it was. */
static void *
tg_zones_room(void *list, size_t *cap, size_t count, size_t more, size_t step,
    size_t size)
{
    void   *bigger;
    size_t  wanted;

    if (count + more <= *cap) {
        return list;
    }

    wanted = count + more + step;
    bigger = realloc(list, wanted * size);

    if (bigger != NULL) {
        *cap = wanted;
    }

    return bigger;
}


/* Makes room for one entry, one zone and the bytes of a name. */
static bool
tg_zones_grow(tg_zones_t *zones, size_t name_len)
{
    void  *list;

    list = tg_zones_room(zones->entries, &zones->cap, zones->count, 1,
                         TG_ZONES_STEP, sizeof(tg_zones_entry_t));
    if (list == NULL) {
        return false;
    }

    zones->entries = list;

    list = tg_zones_room(zones->zones, &zones->zone_cap, zones->zone_count, 1,
                         TG_ZONES_STEP, sizeof(tg_zone_t *));
    if (list == NULL) {
        return false;
    }

    zones->zones = list;

    list = tg_zones_room(zones->text, &zones->text_cap, zones->text_len, name_len,
                         TG_ZONES_TEXT_STEP, 1);
    if (list == NULL) {
        return false;
    }

    zones->text = list;

    return true;
}


/* Keeps the zone, or frees it when there is one like it; its place. */
static size_t
tg_zones_keep(tg_zones_t *zones, tg_zone_t *zone)
{
    size_t  i;

    for (i = 0; i < zones->zone_count; i++) {
        if (tg_zone_equal(zones->zones[i], zone)) {
            tg_zone_free(zone);
            return i;
        }
    }

    zones->zones[zones->zone_count++] = zone;

    return i;
}


tg_rc_e
tg_zones_add(tg_zones_t *zones, tg_str_t name, tg_str_t file)
{
    bool               found;
    size_t             place;
    tg_rc_e            rc;
    tg_zone_t         *zone;
    tg_zones_entry_t  *entry;

    if (!tg_zones_name_valid(name)) {
        return TG_E_INVALID;
    }

    place = tg_zones_place(zones, name, &found);

    if (found) {
        return TG_E_INVALID;
    }

    if (zones->count == TG_ZONES_MAX) {
        return TG_E_LIMIT;
    }

    rc = tg_zone_parse(file, zones->since, &zone);

    if (rc != TG_OK) {
        return rc;
    }

    if (!tg_zones_grow(zones, name.len)) {
        tg_zone_free(zone);
        return TG_E_NOMEM;
    }

    entry = &zones->entries[place];
    memmove(entry + 1, entry, (zones->count - place) * sizeof(tg_zones_entry_t));
    zones->count++;

    memcpy(zones->text + zones->text_len, name.data, name.len);
    entry->name = (uint32_t) zones->text_len;
    entry->len = (uint16_t) name.len;
    zones->text_len += name.len;
    entry->zone = (uint16_t) tg_zones_keep(zones, zone);

    return TG_OK;
}


const tg_zone_t *
tg_zones_find(const tg_zones_t *zones, tg_str_t name)
{
    bool    found;
    size_t  place;

    if (zones == NULL || name.len == 0) {
        return NULL;
    }

    place = tg_zones_place(zones, name, &found);

    return found ? zones->zones[zones->entries[place].zone] : NULL;
}


size_t
tg_zones_count(const tg_zones_t *zones)
{
    return zones == NULL ? 0 : zones->count;
}


tg_str_t
tg_zones_name_at(const tg_zones_t *zones, size_t i)
{
    const tg_zones_entry_t  *entry;

    if (i >= tg_zones_count(zones)) {
        return tg_null_str;
    }

    entry = &zones->entries[i];

    return (tg_str_t) { entry->len, zones->text + entry->name };
}


size_t
tg_zones_bytes(const tg_zones_t *zones)
{
    size_t  i, bytes;

    if (zones == NULL) {
        return 0;
    }

    bytes = sizeof(tg_zones_t) + zones->text_cap
            + zones->cap * sizeof(tg_zones_entry_t)
            + zones->zone_cap * sizeof(tg_zone_t *);

    for (i = 0; i < zones->zone_count; i++) {
        bytes += tg_zone_bytes(zones->zones[i]);
    }

    return bytes;
}
