/*
 * Days of the proleptic Gregorian calendar as numbers: 0 is 1970-01-01. It knows
 * no time of day, no zone and no clock.
 */

#ifndef TG_DATE_H
#define TG_DATE_H

#include "tg.h"


#define TG_DATE_DAY_S          86400
#define TG_DATE_ERA_YEARS      400
#define TG_DATE_ERA_DAYS       146097
#define TG_DATE_ERA_TO_EPOCH   719468    /* days from 0000-03-01 to 1970-01-01 */


static inline int64_t
tg_date_floor_div(int64_t value, int64_t by)
{
    return value / by - (value % by < 0);
}


static inline bool
tg_date_leap_year(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}


/* Days of a month (1..12). */
static inline unsigned
tg_date_month_days(int64_t year, unsigned month)
{
    if (month == 2) {
        return tg_date_leap_year(year) ? 29 : 28;
    }

    return (month == 4 || month == 6 || month == 9 || month == 11) ? 30 : 31;
}


/* The number of a day; month 1..12, day from 1. Years begin in March here, so
 * that the leap day is the last of its year. */
static inline int64_t
tg_date_number(int64_t year, unsigned month, unsigned day)
{
    int64_t  era, of_era, of_year;

    year -= month <= 2;
    era = tg_date_floor_div(year, TG_DATE_ERA_YEARS);
    year -= era * TG_DATE_ERA_YEARS;
    of_year = (153 * (int64_t) (month > 2 ? month - 3 : month + 9) + 2) / 5
              + (int64_t) day - 1;
    of_era = year * 365 + year / 4 - year / 100 + of_year;

    return era * TG_DATE_ERA_DAYS + of_era - TG_DATE_ERA_TO_EPOCH;
}


/* The year that a day lies in. */
static inline int64_t
tg_date_year(int64_t number)
{
    int64_t  year;

    year = 1970 + tg_date_floor_div(number * TG_DATE_ERA_YEARS, TG_DATE_ERA_DAYS);

    /* the mean length of a year misses by a day or two */
    while (tg_date_number(year, 1, 1) > number) {
        year--;
    }

    while (tg_date_number(year + 1, 1, 1) <= number) {
        year++;
    }

    return year;
}


/* 0 is Sunday. */
static inline unsigned
tg_date_weekday(int64_t number)
{
    return (unsigned) (number + 4 - tg_date_floor_div(number + 4, 7) * 7);
}

#endif /* TG_DATE_H */
