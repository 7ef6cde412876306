/*
 * Business hours: what is taken and what is refused, open and closed around every
 * kind of edge, the next opening over changes of the clock.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tg_date.h"
#include "tg_hours.h"
#include "tg_json.h"
#include "zone_file.h"


#define SINCE  1735689600    /* 2025-01-01 */

static tg_zones_t  *zones;


static int64_t
utc(int64_t year, unsigned month, unsigned day, int64_t hour, int64_t minute)
{
    return tg_date_number(year, month, day) * TG_DATE_DAY_S + hour * 3600 + minute * 60;
}


static int
zones_make(void **state)
{
    size_t       i;
    zone_file_t  file;

    static const char *const  rules[][2] = {
        { "UTC", "UTC0" },
        { "Asia/Riyadh", "<+03>-3" },
        { "Asia/Kathmandu", "<+0545>-5:45" },
        { "America/New_York", "EST5EDT,M3.2.0,M11.1.0" },
        { "Europe/Berlin", "CET-1CEST,M3.5.0,M10.5.0/3" },
        { "Pacific/Kiritimati", "<+14>-14" }
    };
    static const zone_change_t  dropped_day[] = { { 1767225600, 14 * 3600 } };

    (void) state;
    zones = tg_zones_create(SINCE);

    for (i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        zone_file_write(&file, '2', 0, NULL, 0, rules[i][1]);

        if (tg_zones_add(zones, tg_str_of(rules[i][0]), zone_file_bytes(&file)) != TG_OK) {
            return -1;
        }
    }

    /* a zone that skipped 2026-01-01 whole: from 10 hours behind to 14 ahead */
    zone_file_write(&file, '2', -10 * 3600, dropped_day, 1, "<+14>-14");

    return tg_zones_add(zones, tg_str("Test/Skips_a_day"), zone_file_bytes(&file));
}


static int
zones_end(void **state)
{
    (void) state;
    tg_zones_free(zones);

    return 0;
}


static tg_hours_t *
hours_of(const char *text)
{
    json_t            *value;
    tg_hours_t        *hours;
    tg_json_error_t    broken;
    tg_hours_error_t   error;

    value = tg_json_load(tg_str_of(text), &broken);
    assert_non_null(value);
    hours = tg_hours_parse(value, zones, &error);
    json_decref(value);

    if (hours == NULL) {
        fail_msg("%s: %s at %s", text, error.reason, error.pointer);
    }

    return hours;
}


typedef struct {
    const char  *text;
    const char  *code;
    const char  *pointer;
} bad_t;

static void
test_bad(void **state)
{
    size_t             i;
    json_t            *value;
    tg_json_error_t    broken;
    tg_hours_error_t   error;

#define DAYS(list)  "{\"timezone\":\"UTC\",\"days\":{\"sun\":" list "}}"
#define DATES(list)  "{\"timezone\":\"UTC\",\"days\":{},\"closed_dates\":" list "}"

    static const bad_t  cases[] = {
        { "[]", "invalid_type", "" },
        { "null", "invalid_type", "" },
        { "{}", "missing_parameter", "" },
        { "{\"timezone\":\"UTC\"}", "missing_parameter", "" },
        { "{\"days\":{}}", "missing_parameter", "" },
        { "{\"timezone\":\"UTC\",\"days\":{},\"zone\":1}", "unknown_field", "/zone" },
        { "{\"timezone\":3,\"days\":{}}", "invalid_type", "/timezone" },
        { "{\"timezone\":\"Riyadh\",\"days\":{}}", "invalid_value", "/timezone" },
        { "{\"timezone\":\"asia/riyadh\",\"days\":{}}", "invalid_value", "/timezone" },
        { "{\"timezone\":\"+03:00\",\"days\":{}}", "invalid_value", "/timezone" },
        { "{\"timezone\":\"../UTC\",\"days\":{}}", "invalid_value", "/timezone" },
        { "{\"timezone\":\"\",\"days\":{}}", "invalid_value", "/timezone" },
        { "{\"timezone\":\"UTC\",\"days\":[]}", "invalid_type", "/days" },
        { "{\"timezone\":\"UTC\",\"days\":{\"sunday\":[]}}", "invalid_value",
          "/days/sunday" },
        { "{\"timezone\":\"UTC\",\"days\":{\"Sun\":[]}}", "invalid_value", "/days/Sun" },
        { DAYS("{}"), "invalid_type", "/days/sun" },
        { DAYS("null"), "invalid_type", "/days/sun" },
        { DAYS("[\"09:00\",\"17:00\"]"), "invalid_type", "/days/sun/0" },
        { DAYS("[[\"09:00\"]]"), "invalid_type", "/days/sun/0" },
        { DAYS("[[\"09:00\",\"10:00\",\"11:00\"]]"), "invalid_type", "/days/sun/0" },
        { DAYS("[[9,17]]"), "invalid_value", "/days/sun/0/0" },
        { DAYS("[[\"9:00\",\"17:00\"]]"), "invalid_value", "/days/sun/0/0" },
        { DAYS("[[\"09:60\",\"17:00\"]]"), "invalid_value", "/days/sun/0/0" },
        { DAYS("[[\"24:00\",\"24:00\"]]"), "invalid_value", "/days/sun/0/0" },
        { DAYS("[[\"+9:00\",\"17:00\"]]"), "invalid_value", "/days/sun/0/0" },
        { DAYS("[[\"09:00\",\"24:01\"]]"), "invalid_value", "/days/sun/0/1" },
        { DAYS("[[\"09:00\",\"17:00:00\"]]"), "invalid_value", "/days/sun/0/1" },
        { DAYS("[[\"09:00\",\"17-00\"]]"), "invalid_value", "/days/sun/0/1" },
        { DAYS("[[\"09:00\",\"09:00\"]]"), "invalid_value", "/days/sun/0/1" },
        { DAYS("[[\"22:00\",\"02:00\"]]"), "invalid_value", "/days/sun/0/1" },
        { DAYS("[[\"09:00\",\"12:00\"],[\"11:59\",\"13:00\"]]"), "invalid_value",
          "/days/sun/1" },
        { DAYS("[[\"14:00\",\"17:00\"],[\"09:00\",\"12:00\"]]"), "invalid_value",
          "/days/sun/1" },
        { DAYS("[[],[],[],[],[],[],[],[],[]]"), "invalid_value", "/days/sun" },
        { DATES("{}"), "invalid_type", "/closed_dates" },
        { DATES("[\"2026-12-25\",20261225]"), "invalid_value", "/closed_dates/1" },
        { DATES("[\"2026-02-29\"]"), "invalid_value", "/closed_dates/0" },
        { DATES("[\"2026-00-01\"]"), "invalid_value", "/closed_dates/0" },
        { DATES("[\"2026-13-01\"]"), "invalid_value", "/closed_dates/0" },
        { DATES("[\"2026-1-01\"]"), "invalid_value", "/closed_dates/0" },
        { DATES("[\"2026-01-00\"]"), "invalid_value", "/closed_dates/0" },
        { DATES("[\"2026-04-31\"]"), "invalid_value", "/closed_dates/0" },
        { DATES("[\"0000-04-01\"]"), "invalid_value", "/closed_dates/0" },
        { DATES("[\"12-25\"]"), "invalid_value", "/closed_dates/0" }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        value = tg_json_load(tg_str_of(cases[i].text), &broken);
        assert_non_null(value);

        if (tg_hours_parse(value, zones, &error) != NULL) {
            fail_msg("%s was taken", cases[i].text);
        }

        assert_string_equal(error.code, cases[i].code);
        assert_string_equal(error.pointer, cases[i].pointer);
        assert_true(strlen(error.reason) > 10);
        json_decref(value);
    }

    /* a machine without time zones says so */
    value = tg_json_load(tg_str("{\"timezone\":\"UTC\",\"days\":{}}"), &broken);
    assert_null(tg_hours_parse(value, NULL, &error));
    assert_string_equal(error.code, "invalid_value");
    assert_string_equal(error.pointer, "/timezone");
    assert_non_null(strstr(error.reason, "tzdata"));
    json_decref(value);
}


static void
test_bounds(void **state)
{
    size_t             i;
    json_t            *value, *dates;
    tg_hours_t        *hours;
    tg_json_error_t    broken;
    tg_hours_error_t   error;

    (void) state;

    value = tg_json_load(tg_str(DATES("[]")), &broken);
    dates = json_object_get(value, "closed_dates");

    for (i = 0; i < TG_HOURS_CLOSED_MAX; i++) {
        json_array_append_new(dates, json_string("2026-12-25"));
    }

    hours = tg_hours_parse(value, zones, &error);
    assert_non_null(hours);
    tg_hours_free(hours);

    json_array_append_new(dates, json_string("2026-12-25"));
    assert_null(tg_hours_parse(value, zones, &error));
    assert_string_equal(error.pointer, "/closed_dates");
    json_decref(value);

    hours = hours_of(DAYS("[[\"00:00\",\"01:00\"],[\"01:00\",\"02:00\"],"
                          "[\"02:00\",\"03:00\"],[\"03:00\",\"04:00\"],"
                          "[\"04:00\",\"05:00\"],[\"05:00\",\"06:00\"],"
                          "[\"06:00\",\"07:00\"],[\"07:00\",\"24:00\"]]"));
    assert_true(tg_hours_open(hours, utc(2026, 11, 29, 0, 0)));
    assert_true(tg_hours_open(hours, utc(2026, 11, 30, 0, 0) - 1));
    assert_false(tg_hours_open(hours, utc(2026, 11, 30, 0, 0)));
    tg_hours_free(hours);
    tg_hours_free(NULL);
}


/* The next opening is right: open there, closed from t until then. */
static void
check_next(const tg_hours_t *hours, int64_t t, int64_t expected)
{
    int64_t  at, s;

    assert_true(tg_hours_next(hours, t, &at));

    if (at != expected) {
        fail_msg("from %lld: %lld, not %lld", (long long) t, (long long) at,
                 (long long) expected);
    }

    assert_true(tg_hours_open(hours, at));

    for (s = t; s < at; s += 60) {
        assert_false(tg_hours_open(hours, s));
    }

    if (at > t) {
        assert_false(tg_hours_open(hours, at - 1));
    }
}


static void
test_week(void **state)
{
    int64_t      at;
    tg_hours_t  *hours;

    (void) state;

    /* 2026-11-29 is a Sunday; Riyadh is three hours ahead */
    hours = hours_of("{\"timezone\":\"Asia/Riyadh\",\"days\":{"
                     "\"sun\":[[\"09:00\",\"12:00\"],[\"13:00\",\"17:00\"]],"
                     "\"thu\":[[\"09:00\",\"24:00\"]],\"fri\":[[\"00:00\",\"02:00\"]],"
                     "\"sat\":[]},\"closed_dates\":[\"2026-12-06\",\"2026-12-04\"]}");

    assert_false(tg_hours_open(hours, utc(2026, 11, 29, 5, 59)));
    assert_true(tg_hours_open(hours, utc(2026, 11, 29, 6, 0)));
    assert_true(tg_hours_open(hours, utc(2026, 11, 29, 9, 0) - 1));
    assert_false(tg_hours_open(hours, utc(2026, 11, 29, 9, 0)));
    assert_true(tg_hours_open(hours, utc(2026, 11, 29, 10, 0)));
    assert_false(tg_hours_open(hours, utc(2026, 11, 29, 14, 0)));

    check_next(hours, utc(2026, 11, 28, 0, 0), utc(2026, 11, 29, 6, 0));
    check_next(hours, utc(2026, 11, 29, 7, 30), utc(2026, 11, 29, 7, 30));
    check_next(hours, utc(2026, 11, 29, 9, 0), utc(2026, 11, 29, 10, 0));
    check_next(hours, utc(2026, 11, 29, 14, 0), utc(2026, 12, 3, 6, 0));

    /* up to midnight; the Friday after it is closed, and so is the next Sunday */
    assert_true(tg_hours_open(hours, utc(2026, 12, 3, 21, 0) - 1));
    assert_false(tg_hours_open(hours, utc(2026, 12, 3, 21, 0)));
    check_next(hours, utc(2026, 12, 3, 21, 0), utc(2026, 12, 10, 6, 0));
    assert_true(tg_hours_open(hours, utc(2026, 12, 10, 21, 0)));
    assert_false(tg_hours_open(hours, utc(2026, 12, 10, 23, 0)));
    tg_hours_free(hours);

    /* never open */
    hours = hours_of("{\"timezone\":\"UTC\",\"days\":{\"mon\":[]}}");
    assert_false(tg_hours_open(hours, utc(2026, 11, 30, 12, 0)));
    assert_false(tg_hours_next(hours, utc(2026, 11, 30, 12, 0), &at));
    tg_hours_free(hours);

    /* a zone with minutes */
    hours = hours_of("{\"timezone\":\"Asia/Kathmandu\",\"days\":"
                     "{\"mon\":[[\"00:15\",\"00:16\"]]}}");
    check_next(hours, utc(2026, 11, 29, 0, 0), utc(2026, 11, 29, 18, 30));
    check_next(hours, utc(2026, 11, 29, 18, 31), utc(2026, 12, 6, 18, 30));
    tg_hours_free(hours);
}


/* A year of closed dates. */
static void
test_search(void **state)
{
    int64_t             t, at;
    size_t              i;
    json_t             *value, *dates;
    char                date[32];
    tg_hours_t         *hours;
    tg_json_error_t     broken;
    tg_hours_error_t    error;

    (void) state;

    value = tg_json_load(tg_str("{\"timezone\":\"UTC\",\"days\":{\"mon\":"
                                "[[\"09:00\",\"10:00\"]]},\"closed_dates\":[]}"),
                         &broken);
    dates = json_object_get(value, "closed_dates");

    /* 52 Mondays from 2026-11-30 on */
    for (i = 0; i < 52; i++) {
        int64_t   day = tg_date_number(2026, 11, 30) + (int64_t) i * 7;
        int64_t   year = tg_date_year(day);
        unsigned  month = 12;

        while (tg_date_number(year, month, 1) > day) {
            month--;
        }

        snprintf(date, sizeof(date), "%04d-%02u-%02d", (int) year, month,
                 (int) (day - tg_date_number(year, month, 1) + 1));
        json_array_append_new(dates, json_string(date));
    }

    hours = tg_hours_parse(value, zones, &error);
    assert_non_null(hours);
    check_next(hours, utc(2026, 11, 30, 0, 0), utc(2027, 11, 29, 9, 0));

    /* the bound of the search, to the second */
    t = utc(2027, 11, 29, 9, 0) - TG_HOURS_SEARCH_DAYS * TG_DATE_DAY_S;
    assert_false(tg_hours_next(hours, t, &at));
    assert_true(tg_hours_next(hours, t + 1, &at));
    assert_int_equal(at, utc(2027, 11, 29, 9, 0));
    tg_hours_free(hours);

    json_array_append_new(dates, json_string("2027-11-29"));
    hours = tg_hours_parse(value, zones, &error);
    assert_non_null(hours);
    assert_false(tg_hours_next(hours, utc(2026, 11, 30, 0, 0), &at));
    check_next(hours, utc(2026, 12, 1, 9, 1), utc(2027, 12, 6, 9, 0));
    tg_hours_free(hours);
    json_decref(value);
}


static void
test_clock_changes(void **state)
{
    tg_hours_t  *hours;

    (void) state;

    /* 2026-03-08: the hour from 02:00 is skipped in New York */
    hours = hours_of("{\"timezone\":\"America/New_York\",\"days\":{"
                     "\"sun\":[[\"02:10\",\"02:50\"]]}}");
    check_next(hours, utc(2026, 3, 1, 7, 50), utc(2026, 3, 15, 6, 10));
    tg_hours_free(hours);

    /* one that begins in it opens where the clock goes on */
    hours = hours_of("{\"timezone\":\"America/New_York\",\"days\":{"
                     "\"sun\":[[\"02:30\",\"05:00\"]]}}");
    check_next(hours, utc(2026, 3, 8, 0, 0), utc(2026, 3, 8, 7, 0));
    assert_true(tg_hours_open(hours, utc(2026, 3, 8, 9, 0) - 1));
    assert_false(tg_hours_open(hours, utc(2026, 3, 8, 9, 0)));

    /* 2026-11-01: the hour from 01:00 comes twice; this is after both */
    check_next(hours, utc(2026, 11, 1, 5, 30), utc(2026, 11, 1, 7, 30));
    tg_hours_free(hours);

    hours = hours_of("{\"timezone\":\"America/New_York\",\"days\":{"
                     "\"sun\":[[\"01:10\",\"01:20\"]]}}");
    check_next(hours, utc(2026, 11, 1, 0, 0), utc(2026, 11, 1, 5, 10));
    check_next(hours, utc(2026, 11, 1, 5, 20), utc(2026, 11, 1, 6, 10));
    check_next(hours, utc(2026, 11, 1, 6, 20), utc(2026, 11, 8, 6, 10));
    tg_hours_free(hours);

    /* the same wall clock in summer and winter */
    hours = hours_of("{\"timezone\":\"Europe/Berlin\",\"days\":{"
                     "\"mon\":[[\"09:00\",\"17:00\"]]}}");
    check_next(hours, utc(2026, 10, 19, 15, 0), utc(2026, 10, 26, 8, 0));
    check_next(hours, utc(2026, 3, 23, 16, 0), utc(2026, 3, 30, 7, 0));
    tg_hours_free(hours);

    /* a day that the zone skips: Thursday 2026-01-01 from 14:00 of the day before */
    hours = hours_of("{\"timezone\":\"Test/Skips_a_day\",\"days\":{"
                     "\"wed\":[[\"13:00\",\"24:00\"]],\"thu\":[[\"00:00\",\"14:00\"]]}}");
    check_next(hours, utc(2025, 12, 31, 12, 0), utc(2025, 12, 31, 23, 0));
    check_next(hours, utc(2026, 1, 1, 0, 0), utc(2026, 1, 6, 23, 0));
    tg_hours_free(hours);
}


static void
test_dates_are_local(void **state)
{
    tg_hours_t  *hours;

    (void) state;

    /* 14 hours ahead: 2026-12-25 begins there at 10:00 of the 24th */
    hours = hours_of("{\"timezone\":\"Pacific/Kiritimati\",\"days\":{"
                     "\"thu\":[[\"00:00\",\"24:00\"]],\"fri\":[[\"00:00\",\"24:00\"]],"
                     "\"sat\":[[\"00:00\",\"24:00\"]]},"
                     "\"closed_dates\":[\"2026-12-25\",\"2026-12-25\"]}");
    assert_true(tg_hours_open(hours, utc(2026, 12, 24, 10, 0) - 1));
    assert_false(tg_hours_open(hours, utc(2026, 12, 24, 10, 0)));
    check_next(hours, utc(2026, 12, 24, 10, 0), utc(2026, 12, 25, 10, 0));
    tg_hours_free(hours);

    /* times far away are no trap */
    hours = hours_of("{\"timezone\":\"Europe/Berlin\",\"days\":{"
                     "\"sun\":[[\"00:00\",\"24:00\"]]},"
                     "\"closed_dates\":[\"0001-01-01\",\"9999-12-31\"]}");
    (void) tg_hours_open(hours, INT64_C(1) << 60);
    (void) tg_hours_open(hours, -(INT64_C(1) << 60));
    tg_hours_free(hours);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_week),
        cmocka_unit_test(test_search),
        cmocka_unit_test(test_clock_changes),
        cmocka_unit_test(test_dates_are_local)
    };

    return cmocka_run_group_tests(tests, zones_make, zones_end);
}
