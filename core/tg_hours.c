/*
 * Business hours: the object of an agent, checked and kept as minutes of a week and
 * day numbers. Local time comes from tg_zone; what hours are for is not known here.
 */

#include "tg_hours.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tg_date.h"


#define TG_HOURS_WEEK         7
#define TG_HOURS_DAY_MINUTES  1440
#define TG_HOURS_CLOCK_LEN    5     /* "09:00" */
#define TG_HOURS_DATE_LEN     10    /* "2026-12-25" */

typedef struct {
    uint16_t  begin;    /* minutes from midnight */
    uint16_t  end;
} tg_hours_interval_t;

struct tg_hours_s {
    const tg_zone_t      *zone;
    uint8_t               counts[TG_HOURS_WEEK];
    tg_hours_interval_t   days[TG_HOURS_WEEK][TG_HOURS_INTERVALS_MAX];
    uint32_t              closed_count;
    int32_t               closed[];    /* numbers of days, rising */
};


static const char *const  tg_hours_day_names[TG_HOURS_WEEK] = {
    "sun", "mon", "tue", "wed", "thu", "fri", "sat"
};


static bool tg_hours_fail(tg_hours_error_t *error, const char *code,
    const char *reason, const char *pointer, ...)
    __attribute__((format(printf, 4, 5)));


/* Notes a fault and where it is; always false. */
static bool
tg_hours_fail(tg_hours_error_t *error, const char *code, const char *reason,
    const char *pointer, ...)
{
    va_list  args;

    error->code = code;
    error->reason = reason;

    va_start(args, pointer);
    (void) vsnprintf(error->pointer, TG_HOURS_POINTER_MAX, pointer, args);
    va_end(args);

    return false;
}


static bool
tg_hours_digits(const char *p, size_t n, unsigned *out)
{
    *out = 0;

    while (n-- > 0) {
        if (*p < '0' || *p > '9') {
            return false;
        }

        *out = *out * 10 + (unsigned) (*p++ - '0');
    }

    return true;
}


/* Minutes of "HH:MM", "24:00" included; false when it is none. */
static bool
tg_hours_clock(const json_t *value, uint16_t *minutes)
{
    unsigned     hour, minute;
    const char  *text;

    text = json_string_value(value);

    if (text == NULL || json_string_length(value) != TG_HOURS_CLOCK_LEN
        || text[2] != ':' || !tg_hours_digits(text, 2, &hour)
        || !tg_hours_digits(text + 3, 2, &minute)
        || minute > 59 || hour * 60 + minute > TG_HOURS_DAY_MINUTES)
    {
        return false;
    }

    *minutes = (uint16_t) (hour * 60 + minute);

    return true;
}


static bool
tg_hours_interval(const json_t *value, const char *day, size_t i,
    tg_hours_interval_t *out, tg_hours_error_t *error)
{
    if (!json_is_array(value) || json_array_size(value) != 2) {
        return tg_hours_fail(error, "invalid_type",
                             "an interval is a list of its begin and its end, "
                             "[\"09:00\",\"17:00\"]", "/days/%s/%zu", day, i);
    }

    if (!tg_hours_clock(json_array_get(value, 0), &out->begin)
        || out->begin == TG_HOURS_DAY_MINUTES)
    {
        return tg_hours_fail(error, "invalid_value",
                             "a begin is \"HH:MM\" from \"00:00\" to \"23:59\"",
                             "/days/%s/%zu/0", day, i);
    }

    if (!tg_hours_clock(json_array_get(value, 1), &out->end)) {
        return tg_hours_fail(error, "invalid_value",
                             "an end is \"HH:MM\" up to \"24:00\"",
                             "/days/%s/%zu/1", day, i);
    }

    if (out->end <= out->begin) {
        return tg_hours_fail(error, "invalid_value",
                             "an end comes after its begin: write hours over "
                             "midnight as two intervals, up to \"24:00\" and from "
                             "\"00:00\" of the next day", "/days/%s/%zu/1", day, i);
    }

    return true;
}


static bool
tg_hours_day(const json_t *value, size_t day, tg_hours_t *hours,
    tg_hours_error_t *error)
{
    size_t                i, count;
    const char           *name;
    tg_hours_interval_t  *intervals;

    name = tg_hours_day_names[day];
    intervals = hours->days[day];
    count = json_array_size(value);

    if (!json_is_array(value)) {
        return tg_hours_fail(error, "invalid_type", "a day is a list of intervals",
                             "/days/%s", name);
    }

    if (count > TG_HOURS_INTERVALS_MAX) {
        return tg_hours_fail(error, "invalid_value", "a day has at most 8 intervals",
                             "/days/%s", name);
    }

    for (i = 0; i < count; i++) {

        if (!tg_hours_interval(json_array_get(value, i), name, i, &intervals[i],
                               error))
        {
            return false;
        }

        if (i > 0 && intervals[i].begin < intervals[i - 1].end) {
            return tg_hours_fail(error, "invalid_value",
                                 "the intervals of a day are in rising order and do "
                                 "not overlap", "/days/%s/%zu", name, i);
        }
    }

    hours->counts[day] = (uint8_t) count;

    return true;
}


static bool
tg_hours_days(const json_t *value, tg_hours_t *hours, tg_hours_error_t *error)
{
    size_t        i;
    const char   *key;
    const json_t *day;

    if (!json_is_object(value)) {
        return value == NULL
               ? tg_hours_fail(error, "missing_parameter", "\"days\" is missing", "%s", "")
               : tg_hours_fail(error, "invalid_type",
                               "\"days\" is an object with sun, mon, …", "/days");
    }

    json_object_foreach((json_t *) (uintptr_t) value, key, day) {

        for (i = 0; i < TG_HOURS_WEEK; i++) {
            if (strcmp(key, tg_hours_day_names[i]) == 0) {
                break;
            }
        }

        if (i == TG_HOURS_WEEK) {
            return tg_hours_fail(error, "invalid_value",
                                 "the days are sun, mon, tue, wed, thu, fri, sat",
                                 "/days/%.40s", key);
        }

        if (!tg_hours_day(day, i, hours, error)) {
            return false;
        }
    }

    return true;
}


/* The number of the day "YYYY-MM-DD"; false when there is no such day. */
static bool
tg_hours_date(const json_t *value, int32_t *number)
{
    unsigned     year, month, day;
    const char  *text;

    text = json_string_value(value);

    if (text == NULL || json_string_length(value) != TG_HOURS_DATE_LEN
        || text[4] != '-' || text[7] != '-' || !tg_hours_digits(text, 4, &year)
        || !tg_hours_digits(text + 5, 2, &month)
        || !tg_hours_digits(text + 8, 2, &day) || year == 0 || month < 1 || month > 12
        || day < 1 || day > tg_date_month_days((int64_t) year, month))
    {
        return false;
    }

    *number = (int32_t) tg_date_number((int64_t) year, month, day);

    return true;
}


static int
tg_hours_compare(const void *one, const void *two)
{
    int32_t  first, second;

    first = *(const int32_t *) one;
    second = *(const int32_t *) two;

    return (first > second) - (first < second);
}


static bool
tg_hours_closed_dates(const json_t *list, tg_hours_t *hours,
    tg_hours_error_t *error)
{
    size_t  i;

    for (i = 0; i < json_array_size(list); i++) {

        if (!tg_hours_date(json_array_get(list, i), &hours->closed[i])) {
            return tg_hours_fail(error, "invalid_value",
                                 "a closed date is a day of the calendar, "
                                 "\"2026-12-25\"", "/closed_dates/%zu", i);
        }

        hours->closed_count++;
    }

    qsort(hours->closed, hours->closed_count, sizeof(int32_t), tg_hours_compare);

    return true;
}


static bool
tg_hours_zone(const json_t *value, const tg_zones_t *zones, tg_hours_t *hours,
    tg_hours_error_t *error)
{
    if (value == NULL) {
        return tg_hours_fail(error, "missing_parameter", "\"timezone\" is missing", "%s", "");
    }

    if (!json_is_string(value)) {
        return tg_hours_fail(error, "invalid_type",
                             "\"timezone\" is a name like \"Asia/Riyadh\"",
                             "/timezone");
    }

    if (tg_zones_count(zones) == 0) {
        return tg_hours_fail(error, "invalid_value",
                             "this server has no time zones: its operator has to "
                             "install the package tzdata and to reload", "/timezone");
    }

    hours->zone = tg_zones_find(zones, (tg_str_t) { json_string_length(value),
                                                    json_string_value(value) });

    if (hours->zone == NULL) {
        return tg_hours_fail(error, "invalid_value",
                             "no time zone has this name: take one of the IANA "
                             "database, like \"Asia/Riyadh\"", "/timezone");
    }

    return true;
}


/* The members and their types, but for what is in "days". */
static bool
tg_hours_shape(const json_t *value, tg_hours_error_t *error)
{
    const char    *key;
    const json_t  *member;

    if (!json_is_object(value)) {
        return tg_hours_fail(error, "invalid_type",
                             "business hours are an object with \"timezone\" and "
                             "\"days\"", "%s", "");
    }

    json_object_foreach((json_t *) (uintptr_t) value, key, member) {

        if (strcmp(key, "timezone") != 0 && strcmp(key, "days") != 0
            && strcmp(key, "closed_dates") != 0)
        {
            return tg_hours_fail(error, "unknown_field",
                                 "business hours have \"timezone\", \"days\" and "
                                 "\"closed_dates\" only", "/%.40s", key);
        }
    }

    member = json_object_get(value, "closed_dates");

    if (member != NULL && !json_is_array(member)) {
        return tg_hours_fail(error, "invalid_type",
                             "\"closed_dates\" is a list of dates", "/closed_dates");
    }

    if (json_array_size(member) > TG_HOURS_CLOSED_MAX) {
        return tg_hours_fail(error, "invalid_value",
                             "there are at most 366 closed dates", "/closed_dates");
    }

    return true;
}


tg_hours_t *
tg_hours_parse(const json_t *value, const tg_zones_t *zones, tg_hours_error_t *error)
{
    tg_hours_t    *hours;
    const json_t  *closed;

    if (!tg_hours_shape(value, error)) {
        return NULL;
    }

    closed = json_object_get(value, "closed_dates");
    hours = calloc(1, sizeof(tg_hours_t) + json_array_size(closed) * sizeof(int32_t));

    if (hours == NULL) {
        (void) tg_hours_fail(error, "internal_error", "out of memory", "%s", "");
        return NULL;
    }

    if (!tg_hours_zone(json_object_get(value, "timezone"), zones, hours, error)
        || !tg_hours_days(json_object_get(value, "days"), hours, error)
        || !tg_hours_closed_dates(closed, hours, error))
    {
        free(hours);
        return NULL;
    }

    return hours;
}


void
tg_hours_free(tg_hours_t *hours)
{
    free(hours);
}


static bool
tg_hours_closed_on(const tg_hours_t *hours, int64_t day)
{
    int32_t  number;

    if (hours->closed_count == 0 || day < INT32_MIN || day > INT32_MAX) {
        return false;
    }

    number = (int32_t) day;

    return bsearch(&number, hours->closed, hours->closed_count, sizeof(int32_t),
                   tg_hours_compare) != NULL;
}


/* The first open second of [from, to), which are seconds of local time on a day. */
static bool
tg_hours_first_of_day(const tg_hours_t *hours, int64_t day, int64_t from, int64_t to,
    int64_t *at)
{
    size_t                      i;
    int64_t                     begin, end;
    unsigned                    weekday;
    const tg_hours_interval_t  *interval;

    if (tg_hours_closed_on(hours, day)) {
        return false;
    }

    weekday = tg_date_weekday(day);

    for (i = 0; i < hours->counts[weekday]; i++) {
        interval = &hours->days[weekday][i];
        begin = day * TG_DATE_DAY_S + interval->begin * 60;
        end = day * TG_DATE_DAY_S + interval->end * 60;

        if (begin < from) {
            begin = from;
        }

        if (begin < (end < to ? end : to)) {
            *at = begin;
            return true;
        }
    }

    return false;
}


/* The same for any span in which the offset does not change. */
static bool
tg_hours_first(const tg_hours_t *hours, int64_t from, int64_t to, int64_t *at)
{
    int64_t  day;

    for (day = tg_date_floor_div(from, TG_DATE_DAY_S);
         day * TG_DATE_DAY_S < to;
         day++)
    {
        if (tg_hours_first_of_day(hours, day, from, to, at)) {
            return true;
        }
    }

    return false;
}


bool
tg_hours_open(const tg_hours_t *hours, int64_t t)
{
    int64_t  local, at;

    local = t + tg_zone_offset(hours->zone, t);

    return tg_hours_first(hours, local, local + 1, &at);
}


bool
tg_hours_next(const tg_hours_t *hours, int64_t t, int64_t *at)
{
    int64_t  from, to, limit, change, offset, local;

    limit = t + (int64_t) TG_HOURS_SEARCH_DAYS * TG_DATE_DAY_S;

    for (from = t; from < limit; from = to) {
        offset = tg_zone_offset(hours->zone, from);
        to = limit;

        if (tg_zone_next(hours->zone, from, &change) && change < limit) {
            to = change;
        }

        if (tg_hours_first(hours, from + offset, to + offset, &local)) {
            *at = local - offset;
            return true;
        }
    }

    return false;
}
