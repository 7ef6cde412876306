/*
 * Time zones from the bytes of TZif files (RFC 9636), reduced to what matters from
 * a given time on, and a table of them by name. Pure: the caller reads the files.
 */

#ifndef TG_ZONE_H
#define TG_ZONE_H

#include "tg.h"


#define TG_ZONE_FILE_MAX     (64 * 1024)    /* bytes of a file */
#define TG_ZONE_NAME_MAX     64             /* bytes, e.g. "America/Argentina/Ushuaia" */
#define TG_ZONE_CHANGES_MAX  4096           /* transitions of a file */
#define TG_ZONES_MAX         2048           /* names of a table */

typedef struct tg_zone_s   tg_zone_t;
typedef struct tg_zones_s  tg_zones_t;


/*
 * Reads a file of version 2 or later: its 64-bit transitions and the rule behind
 * them. What lies before `since` (unix seconds) is forgotten, and so are
 * transitions that the rule gives as well. The caller frees *zone. TG_E_SYNTAX:
 * not such a file; TG_E_INVALID: one of version 1, or one that counts leap
 * seconds; TG_E_LIMIT; TG_E_NOMEM.
 */
tg_rc_e tg_zone_parse(tg_str_t file, int64_t since, tg_zone_t **zone);
void tg_zone_free(tg_zone_t *zone);

/* Seconds east of UTC at a unix time; before `since` it is the one of then. A time
 * outside of the years 0 to 9999 is taken as the edge of these. */
int32_t tg_zone_offset(const tg_zone_t *zone, int64_t t);

/* The first time after t at which the offset may be another one. False: it stays
 * for the next year at least. */
bool tg_zone_next(const tg_zone_t *zone, int64_t t, int64_t *at);

/* Whether both give the same offsets. */
bool tg_zone_equal(const tg_zone_t *one, const tg_zone_t *two);

/* Bytes of memory that a zone takes. */
size_t tg_zone_bytes(const tg_zone_t *zone);


/* A table of zones by name; zones that are the same are kept once. NULL when out
 * of memory. tg_zones_free frees the zones too. */
tg_zones_t *tg_zones_create(int64_t since);
void tg_zones_free(tg_zones_t *zones);

/* Adds the zone of a file. TG_E_INVALID also for a name that no zone has (a zone's
 * has [A-Za-z0-9_+-] and / between parts) or that is there already; TG_E_LIMIT for
 * one more than TG_ZONES_MAX. A failure leaves the table as it was. */
tg_rc_e tg_zones_add(tg_zones_t *zones, tg_str_t name, tg_str_t file);

/* The zone of a name, exactly as it is spelled, or NULL. It lives as long as the
 * table. zones may be NULL. */
const tg_zone_t *tg_zones_find(const tg_zones_t *zones, tg_str_t name);

/* Names of a table (NULL: 0), a name by its place in rising order, and the bytes
 * of memory that all of it takes. */
size_t tg_zones_count(const tg_zones_t *zones);
tg_str_t tg_zones_name_at(const tg_zones_t *zones, size_t i);
size_t tg_zones_bytes(const tg_zones_t *zones);

#endif /* TG_ZONE_H */
