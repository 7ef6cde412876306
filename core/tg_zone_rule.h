/*
 * The rule at the end of a time zone file: a POSIX TZ string with the extensions
 * of RFC 9636 (hours from -167 to 167). Only the files of tg_zone need it.
 */

#ifndef TG_ZONE_RULE_H
#define TG_ZONE_RULE_H

#include "tg.h"


#define TG_ZONE_RULE_MAX       128               /* bytes of the string */
#define TG_ZONE_TIME_MAX       253402300799      /* end of the year 9999 */
#define TG_ZONE_TIME_MIN       (-62167219200)    /* begin of the year 0 */

typedef enum {
    TG_ZONE_DAY_MONTH = 0,    /* Mm.w.d: a weekday of a month */
    TG_ZONE_DAY_JULIAN,       /* Jn: 1..365, the leap day has no number */
    TG_ZONE_DAY_OF_YEAR       /* n: 0..365, the leap day counts */
} tg_zone_day_e;

/* All members are 32 bits wide: rules are compared byte by byte. */
typedef struct {
    int32_t  form;            /* tg_zone_day_e */
    int32_t  month;
    int32_t  week;            /* 1..5, 5 is the last */
    int32_t  weekday;         /* 0 is Sunday */
    int32_t  day;
    int32_t  time_s;          /* from local midnight, may be negative */
} tg_zone_day_t;

typedef struct {
    int32_t        standard;  /* seconds east of UTC */
    int32_t        saving;
    int32_t        has_saving;
    tg_zone_day_t  begin;     /* of saving, in standard time */
    tg_zone_day_t  end;       /* of saving, in saving time */
} tg_zone_rule_t;


/* Reads the string without its line ends. TG_E_SYNTAX when it is none, also when
 * it names a saving time without saying when that is. */
tg_rc_e tg_zone_rule_parse(tg_str_t text, tg_zone_rule_t *rule);

/* Seconds east of UTC at a time between TG_ZONE_TIME_MIN and _MAX. */
int32_t tg_zone_rule_offset(const tg_zone_rule_t *rule, int64_t t);

/* The first time after t at which the offset is another one. False: it stays. */
bool tg_zone_rule_next(const tg_zone_rule_t *rule, int64_t t, int64_t *at);

#endif /* TG_ZONE_RULE_H */
