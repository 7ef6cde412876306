/*
 * The POSIX rule of a time zone: its text, and which offset it gives at a time. It
 * knows no file and no list of transitions.
 */

#include "tg_zone_rule.h"

#include "tg_date.h"


#define TG_ZONE_ABBREVIATION_MIN  3
#define TG_ZONE_OFFSET_HOURS      24
#define TG_ZONE_TIME_HOURS        167

/* so many years around a time hold all changes that matter to it, since a change
 * lies at most a week outside of its year */
#define TG_ZONE_YEARS_BEFORE      2
#define TG_ZONE_YEARS_AFTER       2
#define TG_ZONE_EVENTS            (2 * (TG_ZONE_YEARS_BEFORE + 1 + TG_ZONE_YEARS_AFTER))

typedef struct {
    const char  *at;
    const char  *end;
} tg_zone_text_t;

typedef struct {
    int64_t  at;
    int32_t  offset;
    bool     begins;
} tg_zone_event_t;


static bool
tg_zone_text_char(tg_zone_text_t *text, char c)
{
    if (text->at == text->end || *text->at != c) {
        return false;
    }

    text->at++;

    return true;
}


static bool
tg_zone_text_number(tg_zone_text_t *text, int32_t max, int32_t *out)
{
    int32_t      n;
    const char  *begin;

    n = 0;
    begin = text->at;

    while (text->at < text->end && *text->at >= '0' && *text->at <= '9') {
        n = n * 10 + (*text->at++ - '0');

        if (n > max) {
            return false;
        }
    }

    *out = n;

    return text->at > begin;
}


/* Letters, or anything that an abbreviation may hold between < and >. */
static bool
tg_zone_text_abbreviation(tg_zone_text_t *text)
{
    char         c;
    bool         quoted;
    const char  *begin;

    quoted = tg_zone_text_char(text, '<');
    begin = text->at;

    while (text->at < text->end) {
        c = *text->at;

        if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'))
            && !(quoted && ((c >= '0' && c <= '9') || c == '+' || c == '-')))
        {
            break;
        }

        text->at++;
    }

    if (text->at - begin < TG_ZONE_ABBREVIATION_MIN) {
        return false;
    }

    return !quoted || tg_zone_text_char(text, '>');
}


/* [+-]h[h[h]][:mm[:ss]] in seconds */
static bool
tg_zone_text_time(tg_zone_text_t *text, int32_t max_hours, int32_t *out)
{
    bool     negative;
    int32_t  hours, minutes, seconds;

    minutes = 0;
    seconds = 0;
    negative = tg_zone_text_char(text, '-');

    if (!negative) {
        (void) tg_zone_text_char(text, '+');
    }

    if (!tg_zone_text_number(text, max_hours, &hours)) {
        return false;
    }

    if (tg_zone_text_char(text, ':')) {

        if (!tg_zone_text_number(text, 59, &minutes)
            || (tg_zone_text_char(text, ':')
                && !tg_zone_text_number(text, 59, &seconds)))
        {
            return false;
        }
    }

    seconds += hours * 3600 + minutes * 60;
    *out = negative ? -seconds : seconds;

    return true;
}


static bool
tg_zone_text_day(tg_zone_text_t *text, tg_zone_day_t *day)
{
    bool  known;

    if (!tg_zone_text_char(text, ',')) {
        return false;
    }

    if (tg_zone_text_char(text, 'M')) {
        day->form = TG_ZONE_DAY_MONTH;
        known = tg_zone_text_number(text, 12, &day->month)
                && tg_zone_text_char(text, '.')
                && tg_zone_text_number(text, 5, &day->week)
                && tg_zone_text_char(text, '.')
                && tg_zone_text_number(text, 6, &day->weekday)
                && day->month > 0 && day->week > 0;

    } else if (tg_zone_text_char(text, 'J')) {
        day->form = TG_ZONE_DAY_JULIAN;
        known = tg_zone_text_number(text, 365, &day->day) && day->day > 0;

    } else {
        day->form = TG_ZONE_DAY_OF_YEAR;
        known = tg_zone_text_number(text, 365, &day->day);
    }

    if (!known) {
        return false;
    }

    day->time_s = 2 * 3600;

    return !tg_zone_text_char(text, '/')
           || tg_zone_text_time(text, TG_ZONE_TIME_HOURS, &day->time_s);
}


tg_rc_e
tg_zone_rule_parse(tg_str_t string, tg_zone_rule_t *rule)
{
    tg_zone_text_t  text;

    memset(rule, 0, sizeof(tg_zone_rule_t));

    if (string.len == 0 || string.len > TG_ZONE_RULE_MAX) {
        return TG_E_SYNTAX;
    }

    text.at = string.data;
    text.end = string.data + string.len;

    /* the string counts west of UTC */

    if (!tg_zone_text_abbreviation(&text)
        || !tg_zone_text_time(&text, TG_ZONE_OFFSET_HOURS, &rule->standard))
    {
        return TG_E_SYNTAX;
    }

    rule->standard = -rule->standard;

    if (text.at == text.end) {
        return TG_OK;
    }

    if (!tg_zone_text_abbreviation(&text)) {
        return TG_E_SYNTAX;
    }

    rule->has_saving = 1;
    rule->saving = rule->standard + 3600;

    if (text.at < text.end && *text.at != ',') {

        if (!tg_zone_text_time(&text, TG_ZONE_OFFSET_HOURS, &rule->saving)) {
            return TG_E_SYNTAX;
        }

        rule->saving = -rule->saving;
    }

    if (!tg_zone_text_day(&text, &rule->begin)
        || !tg_zone_text_day(&text, &rule->end)
        || text.at != text.end)
    {
        return TG_E_SYNTAX;
    }

    return TG_OK;
}


/* Seconds from 1970 to the day's time in a year, in local time. */
static int64_t
tg_zone_day_in(const tg_zone_day_t *day, int64_t year)
{
    int64_t   number, first;
    unsigned  month;

    switch (day->form) {

    case TG_ZONE_DAY_JULIAN:
        number = tg_date_number(year, 1, 1) + day->day - 1;

        if (tg_date_leap_year(year) && day->day >= 60) {
            number++;
        }

        break;

    case TG_ZONE_DAY_OF_YEAR:
        number = tg_date_number(year, 1, 1) + day->day;
        break;

    default:
        month = (unsigned) day->month;
        first = tg_date_number(year, month, 1);
        number = first + (day->weekday + 7 - (int64_t) tg_date_weekday(first)) % 7
                 + 7 * (day->week - 1);

        if (number >= first + (int64_t) tg_date_month_days(year, month)) {
            number -= 7;
        }

        break;
    }

    return number * TG_DATE_DAY_S + day->time_s;
}


/* Keeps the events in order. An end at the moment of a begin comes first: that is
 * how a string says that saving time lasts the whole year. */
static void
tg_zone_event_add(tg_zone_event_t *events, size_t *count, tg_zone_event_t event)
{
    size_t  i;

    for (i = *count; i > 0; i--) {

        if (events[i - 1].at < event.at
            || (events[i - 1].at == event.at
                && (event.begins || !events[i - 1].begins)))
        {
            break;
        }

        events[i] = events[i - 1];
    }

    events[i] = event;
    (*count)++;
}


static size_t
tg_zone_events(const tg_zone_rule_t *rule, int64_t t,
    tg_zone_event_t events[TG_ZONE_EVENTS])
{
    size_t           count;
    int64_t          year, now;
    tg_zone_event_t  event;

    count = 0;
    now = tg_date_year(tg_date_floor_div(t, TG_DATE_DAY_S));

    for (year = now - TG_ZONE_YEARS_BEFORE; year <= now + TG_ZONE_YEARS_AFTER; year++) {
        event.at = tg_zone_day_in(&rule->begin, year) - rule->standard;
        event.offset = rule->saving;
        event.begins = true;
        tg_zone_event_add(events, &count, event);

        event.at = tg_zone_day_in(&rule->end, year) - rule->saving;
        event.offset = rule->standard;
        event.begins = false;
        tg_zone_event_add(events, &count, event);
    }

    return count;
}


int32_t
tg_zone_rule_offset(const tg_zone_rule_t *rule, int64_t t)
{
    size_t           i;
    tg_zone_event_t  events[TG_ZONE_EVENTS];

    if (!rule->has_saving) {
        return rule->standard;
    }

    for (i = tg_zone_events(rule, t, events); i > 0; i--) {
        if (events[i - 1].at <= t) {
            return events[i - 1].offset;
        }
    }

    return rule->standard;
}


bool
tg_zone_rule_next(const tg_zone_rule_t *rule, int64_t t, int64_t *at)
{
    size_t           i, count;
    int32_t          offset;
    tg_zone_event_t  events[TG_ZONE_EVENTS];

    if (!rule->has_saving) {
        return false;
    }

    offset = tg_zone_rule_offset(rule, t);
    count = tg_zone_events(rule, t, events);

    /* of the last one, more than a year ahead, it is not known what follows */

    for (i = 0; i + 1 < count; i++) {

        if (events[i].at > t && events[i].offset != offset
            && events[i + 1].at > events[i].at)
        {
            *at = events[i].at;
            return true;
        }
    }

    return false;
}
