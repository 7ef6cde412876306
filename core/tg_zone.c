/*
 * One time zone: the TZif format, what is kept of it, and the offset at a time. The
 * rule behind the transitions is in tg_zone_rule.c, the table in tg_zone_table.c.
 */

#include "tg_zone.h"

#include <stdlib.h>

#include "tg_zone_rule.h"


#define TG_ZONE_HEADER_LEN   44
#define TG_ZONE_V1_TIME_LEN  4
#define TG_ZONE_V2_TIME_LEN  8
#define TG_ZONE_TYPE_LEN     6
#define TG_ZONE_OFFSET_MAX   (26 * 3600)    /* either way, RFC 9636 */

typedef struct {
    int64_t  at;
    int32_t  offset;         /* from then on */
} tg_zone_change_t;

struct tg_zone_s {
    tg_zone_rule_t    rule;      /* after the last change, or always */
    bool              has_rule;
    int32_t           before;    /* offset before the first change */
    uint32_t          count;
    tg_zone_change_t  changes[];
};

/* The counts of a header. */
typedef struct {
    char      version;
    uint32_t  ut, std, leap, times, types, chars;
} tg_zone_header_t;

/* The 64-bit block of a file. */
typedef struct {
    tg_zone_header_t      header;
    const unsigned char  *times;
    const unsigned char  *indexes;
    const unsigned char  *types;
    tg_str_t              footer;
} tg_zone_file_t;


static uint32_t
tg_zone_u32(const unsigned char *p)
{
    return (uint32_t) p[0] << 24 | (uint32_t) p[1] << 16 | (uint32_t) p[2] << 8 | p[3];
}


static int64_t
tg_zone_i64(const unsigned char *p)
{
    return (int64_t) ((uint64_t) tg_zone_u32(p) << 32 | tg_zone_u32(p + 4));
}


/* Reads a header; false when these bytes are none. */
static bool
tg_zone_header(const unsigned char *p, size_t len, tg_zone_header_t *header)
{
    if (len < TG_ZONE_HEADER_LEN || memcmp(p, "TZif", 4) != 0) {
        return false;
    }

    header->version = (char) p[4];
    header->ut = tg_zone_u32(p + 20);
    header->std = tg_zone_u32(p + 24);
    header->leap = tg_zone_u32(p + 28);
    header->times = tg_zone_u32(p + 32);
    header->types = tg_zone_u32(p + 36);
    header->chars = tg_zone_u32(p + 40);

    /* so that no sum of lengths can overflow */
    return header->ut <= TG_ZONE_FILE_MAX && header->std <= TG_ZONE_FILE_MAX
           && header->leap <= TG_ZONE_FILE_MAX && header->times <= TG_ZONE_FILE_MAX
           && header->types <= TG_ZONE_FILE_MAX && header->chars <= TG_ZONE_FILE_MAX;
}


static size_t
tg_zone_block_len(const tg_zone_header_t *header, size_t time_len)
{
    return (size_t) header->times * (time_len + 1)
           + (size_t) header->types * TG_ZONE_TYPE_LEN + header->chars
           + (size_t) header->leap * (time_len + 4) + header->std + header->ut;
}


/* Finds the parts of a file, all within its bytes. */
static tg_rc_e
tg_zone_open(tg_str_t text, tg_zone_file_t *file)
{
    size_t                len, block;
    tg_zone_header_t      old;
    const unsigned char  *p, *end;

    if (text.len > TG_ZONE_FILE_MAX) {
        return TG_E_LIMIT;
    }

    p = (const unsigned char *) text.data;
    len = text.len;

    if (!tg_zone_header(p, len, &old)) {
        return TG_E_SYNTAX;
    }

    if (old.version < '2') {
        return TG_E_INVALID;
    }

    block = TG_ZONE_HEADER_LEN + tg_zone_block_len(&old, TG_ZONE_V1_TIME_LEN);

    if (block > len || !tg_zone_header(p + block, len - block, &file->header)) {
        return TG_E_SYNTAX;
    }

    p += block + TG_ZONE_HEADER_LEN;
    len -= block + TG_ZONE_HEADER_LEN;
    block = tg_zone_block_len(&file->header, TG_ZONE_V2_TIME_LEN);

    if (block > len || file->header.types == 0) {
        return TG_E_SYNTAX;
    }

    if (file->header.leap > 0) {
        return TG_E_INVALID;
    }

    if (file->header.times > TG_ZONE_CHANGES_MAX) {
        return TG_E_LIMIT;
    }

    file->times = p;
    file->indexes = p + (size_t) file->header.times * TG_ZONE_V2_TIME_LEN;
    file->types = file->indexes + file->header.times;

    /* the footer stands between two line ends */

    p += block;
    len -= block;

    if (len < 2 || p[0] != '\n') {
        return TG_E_SYNTAX;
    }

    end = memchr(p + 1, '\n', len - 1);

    if (end == NULL) {
        return TG_E_SYNTAX;
    }

    file->footer = (tg_str_t) { (size_t) (end - p) - 1, (const char *) p + 1 };

    return TG_OK;
}


static bool
tg_zone_type_offset(const tg_zone_file_t *file, unsigned type, int32_t *offset)
{
    int64_t  n;

    if (type >= file->header.types) {
        return false;
    }

    n = (int32_t) tg_zone_u32(file->types + (size_t) type * TG_ZONE_TYPE_LEN);
    *offset = (int32_t) n;

    return n >= -TG_ZONE_OFFSET_MAX && n <= TG_ZONE_OFFSET_MAX;
}


/* Takes the changes after `since`. */
static tg_rc_e
tg_zone_changes(const tg_zone_file_t *file, int64_t since, tg_zone_t *zone)
{
    int32_t   offset;
    int64_t   at, last;
    uint32_t  i;

    last = INT64_MIN;

    if (!tg_zone_type_offset(file, 0, &zone->before)) {
        return TG_E_SYNTAX;
    }

    for (i = 0; i < file->header.times; i++) {
        at = tg_zone_i64(file->times + (size_t) i * TG_ZONE_V2_TIME_LEN);

        if ((i > 0 && at <= last)
            || !tg_zone_type_offset(file, file->indexes[i], &offset))
        {
            return TG_E_SYNTAX;
        }

        last = at;

        if (at > TG_ZONE_TIME_MAX) {
            break;
        }

        if (at <= since) {
            zone->before = offset;
            continue;
        }

        zone->changes[zone->count].at = at;
        zone->changes[zone->count].offset = offset;
        zone->count++;
    }

    return TG_OK;
}


/* Forgets the last changes as long as the rule says the same without them. */
static void
tg_zone_reduce(tg_zone_t *zone, int64_t since)
{
    int32_t                  offset;
    int64_t                  from, next;
    const tg_zone_change_t  *last;

    while (zone->has_rule && zone->count > 0) {
        last = &zone->changes[zone->count - 1];
        from = zone->count > 1 ? last[-1].at : since;
        offset = zone->count > 1 ? last[-1].offset : zone->before;

        if (tg_zone_rule_offset(&zone->rule, last->at) != last->offset
            || tg_zone_rule_offset(&zone->rule, from) != offset
            || (tg_zone_rule_next(&zone->rule, from, &next) && next < last->at))
        {
            return;
        }

        zone->count--;
    }
}


tg_rc_e
tg_zone_parse(tg_str_t text, int64_t since, tg_zone_t **out)
{
    tg_rc_e         rc;
    tg_zone_t      *zone, *smaller;
    tg_zone_file_t  file;

    *out = NULL;

    if (since < TG_ZONE_TIME_MIN) {
        since = TG_ZONE_TIME_MIN;
    }

    if (since > TG_ZONE_TIME_MAX) {
        since = TG_ZONE_TIME_MAX;
    }

    rc = tg_zone_open(text, &file);

    if (rc != TG_OK) {
        return rc;
    }

    zone = calloc(1, sizeof(tg_zone_t)
                     + file.header.times * sizeof(tg_zone_change_t));

    if (zone == NULL) {
        return TG_E_NOMEM;
    }

    if (file.footer.len > 0) {
        rc = tg_zone_rule_parse(file.footer, &zone->rule);
        zone->has_rule = true;
    }

    if (rc == TG_OK) {
        rc = tg_zone_changes(&file, since, zone);
    }

    if (rc != TG_OK) {
        free(zone);
        return rc;
    }

    tg_zone_reduce(zone, since);

    smaller = realloc(zone, tg_zone_bytes(zone));
    *out = smaller != NULL ? smaller : zone;

    return TG_OK;
}


void
tg_zone_free(tg_zone_t *zone)
{
    free(zone);
}


size_t
tg_zone_bytes(const tg_zone_t *zone)
{
    return sizeof(tg_zone_t) + zone->count * sizeof(tg_zone_change_t);
}


bool
tg_zone_equal(const tg_zone_t *one, const tg_zone_t *two)
{
    uint32_t  i;

    if (one->has_rule != two->has_rule || one->count != two->count
        || memcmp(&one->rule, &two->rule, sizeof(tg_zone_rule_t)) != 0)
    {
        return false;
    }

    /* without a change the rule holds always, and nothing was before it */
    if (!(one->has_rule && one->count == 0) && one->before != two->before) {
        return false;
    }

    for (i = 0; i < one->count; i++) {
        if (one->changes[i].at != two->changes[i].at
            || one->changes[i].offset != two->changes[i].offset)
        {
            return false;
        }
    }

    return true;
}


static int64_t
tg_zone_clamp(int64_t t)
{
    if (t < TG_ZONE_TIME_MIN) {
        return TG_ZONE_TIME_MIN;
    }

    return t > TG_ZONE_TIME_MAX ? TG_ZONE_TIME_MAX : t;
}


/* How many changes are at or before t. */
static uint32_t
tg_zone_passed(const tg_zone_t *zone, int64_t t)
{
    uint32_t  low, high, middle;

    low = 0;
    high = zone->count;

    while (low < high) {
        middle = low + (high - low) / 2;

        if (zone->changes[middle].at <= t) {
            low = middle + 1;

        } else {
            high = middle;
        }
    }

    return low;
}


int32_t
tg_zone_offset(const tg_zone_t *zone, int64_t t)
{
    uint32_t  passed;

    t = tg_zone_clamp(t);
    passed = tg_zone_passed(zone, t);

    if (passed == zone->count && zone->has_rule) {
        return tg_zone_rule_offset(&zone->rule, t);
    }

    return passed == 0 ? zone->before : zone->changes[passed - 1].offset;
}


bool
tg_zone_next(const tg_zone_t *zone, int64_t t, int64_t *at)
{
    uint32_t  passed;

    t = tg_zone_clamp(t);
    passed = tg_zone_passed(zone, t);

    if (passed < zone->count) {
        *at = zone->changes[passed].at;
        return true;
    }

    return zone->has_rule && tg_zone_rule_next(&zone->rule, t, at);
}
