/*
 * Time zones: POSIX rules, TZif files good and bad, the table; and every zone of the
 * system against the C library at many times.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <dirent.h>
#include <time.h>

#include <cmocka.h>

#include "tg_date.h"
#include "tg_zone.h"
#include "tg_zone_rule.h"
#include "zone_file.h"


#define SINCE        1735689600      /* 2025-01-01 */
#define UNTIL        4102444800      /* 2100-01-01 */
#define TABLE_BYTES  (300 * 1024)


static int64_t
utc(int64_t year, unsigned month, unsigned day, int64_t hour)
{
    return tg_date_number(year, month, day) * TG_DATE_DAY_S + hour * 3600;
}


static void
test_date(void **state)
{
    int64_t  day, year;

    (void) state;

    assert_int_equal(tg_date_number(1970, 1, 1), 0);
    assert_int_equal(tg_date_number(2000, 2, 29), 11016);
    assert_int_equal(tg_date_number(0, 3, 1), -719468);
    assert_int_equal(tg_date_weekday(0), 4);
    assert_int_equal(tg_date_weekday(-5), 6);
    assert_int_equal(tg_date_month_days(2100, 2), 28);
    assert_int_equal(tg_date_month_days(2000, 2), 29);

    /* each day follows the one before it */
    day = tg_date_number(1899, 1, 1);

    for (year = 1899; year < 2500; year++) {
        unsigned  m, d;

        for (m = 1; m <= 12; m++) {
            for (d = 1; d <= tg_date_month_days(year, m); d++) {
                assert_int_equal(tg_date_number(year, m, d), day);
                assert_int_equal(tg_date_year(day), year);
                day++;
            }
        }
    }
}


static void
test_rule_bad(void **state)
{
    size_t          i;
    tg_zone_rule_t  rule;

    static const char *const  bad[] = {
        "", "X", "UT0", "UTC", "UTC+", "UTC25", "UTC0:60", "UTC0:00:60", "UTC0:",
        "<UTC0", "<>0", "<+3>0", "UTC0 ", "EST5EDT", "EST5EDT4", "EST5EDT,M3.2.0",
        "EST5EDT,M3.2.0,", "EST5EDT,M0.2.0,M11.1.0", "EST5EDT,M13.2.0,M11.1.0",
        "EST5EDT,M3.0.0,M11.1.0", "EST5EDT,M3.6.0,M11.1.0", "EST5EDT,M3.2.7,M11.1.0",
        "EST5EDT,M3.2,M11.1.0", "EST5EDT,M3.2.0/,M11.1.0", "EST5EDT,J0,J365",
        "EST5EDT,J366,J365", "EST5EDT,366,1", "EST5EDT,M3.2.0/168,M11.1.0",
        "EST5EDT,M3.2.0/-168,M11.1.0", "EST5EDT,M3.2.0,M11.1.0/2x",
        "EST5EDT,M3.2.0,M11.1.0,M1.1.1", "EST5ED,M3.2.0,M11.1.0", "\xc3\xa9ST5",
        "EST99999999999999999999"
    };

    (void) state;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (tg_zone_rule_parse(tg_str_of(bad[i]), &rule) != TG_E_SYNTAX) {
            fail_msg("\"%s\" was taken", bad[i]);
        }
    }
}


typedef struct {
    const char  *rule;
    int64_t      year;
    unsigned     month, day;
    int64_t      hour;           /* UTC */
    int32_t      offset;         /* minutes, from then on */
    int32_t      before;         /* a second earlier */
} rule_case_t;

static void
test_rule(void **state)
{
    size_t          i;
    int64_t         t, next;
    tg_zone_rule_t  rule;

    static const rule_case_t  cases[] = {
        { "UTC0", 2026, 5, 5, 0, 0, 0 },
        { "<+0545>-5:45", 2026, 5, 5, 0, 345, 345 },
        { "EST5EDT,M3.2.0,M11.1.0", 2026, 3, 8, 7, -240, -300 },
        { "EST5EDT,M3.2.0,M11.1.0", 2026, 11, 1, 6, -300, -240 },
        { "CET-1CEST,M3.5.0,M10.5.0/3", 2026, 3, 29, 1, 120, 60 },
        { "CET-1CEST,M3.5.0,M10.5.0/3", 2026, 10, 25, 1, 60, 120 },
        /* the south: saving time lies over new year */
        { "AEST-10AEDT,M10.1.0,M4.1.0/3", 2026, 1, 1, 0, 660, 660 },
        { "AEST-10AEDT,M10.1.0,M4.1.0/3", 2026, 4, 4, 16, 600, 660 },
        { "AEST-10AEDT,M10.1.0,M4.1.0/3", 2026, 10, 3, 16, 660, 600 },
        /* saving time that is behind standard time */
        { "IST-1GMT0,M10.5.0,M3.5.0/1", 2026, 7, 1, 0, 60, 60 },
        { "IST-1GMT0,M10.5.0,M3.5.0/1", 2026, 10, 25, 1, 0, 60 },
        { "IST-1GMT0,M10.5.0,M3.5.0/1", 2026, 12, 31, 0, 0, 0 },
        { "IST-1GMT0,M10.5.0,M3.5.0/1", 2026, 3, 29, 1, 60, 0 },
        /* times before midnight, and hours over a day */
        { "<-02>2<-01>,M3.5.0/-1,M10.5.0/0", 2026, 3, 29, 1, -60, -120 },
        { "EET-2EEST,M3.4.4/50,M10.4.4/50", 2026, 3, 28, 0, 180, 120 },
        { "EET-2EEST,M3.4.4/50,M10.4.4/50", 2026, 10, 23, 23, 120, 180 },
        /* half an hour */
        { "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", 2026, 4, 4, 15, 630, 660 },
        /* the leap day has no number in J, and has one without it */
        { "AAA0BBB,J60/0,J300/0", 2028, 3, 1, 0, 60, 0 },
        { "AAA0BBB,J60/0,J300/0", 2027, 3, 1, 0, 60, 0 },
        { "AAA0BBB,59/0,300/0", 2028, 2, 29, 0, 60, 0 },
        { "AAA0BBB,59/0,300/0", 2027, 3, 1, 0, 60, 0 },
        /* saving time all year */
        { "XXX3EDT4,0/0,J365/23", 2026, 1, 1, 3, -240, -240 },
        { "XXX3EDT4,0/0,J365/23", 2026, 7, 1, 0, -240, -240 }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const rule_case_t  *c = &cases[i];

        assert_int_equal(tg_zone_rule_parse(tg_str_of(c->rule), &rule), TG_OK);
        t = utc(c->year, c->month, c->day, c->hour);

        if (tg_zone_rule_offset(&rule, t) != c->offset * 60
            || tg_zone_rule_offset(&rule, t - 1) != c->before * 60)
        {
            fail_msg("case %zu, %s: %d and %d seconds", i, c->rule,
                     tg_zone_rule_offset(&rule, t), tg_zone_rule_offset(&rule, t - 1));
        }

        if (c->offset != c->before) {
            assert_true(tg_zone_rule_next(&rule, t - 1, &next));
            assert_int_equal(next, t);
            assert_true(tg_zone_rule_next(&rule, t, &next));
            assert_true(next > t && next < t + 366 * TG_DATE_DAY_S);
        }
    }

    assert_int_equal(tg_zone_rule_parse(tg_str("XXX3EDT4,0/0,J365/23"), &rule), TG_OK);
    assert_false(tg_zone_rule_next(&rule, SINCE, &next));
}


static void
test_file(void **state)
{
    int64_t      at;
    tg_zone_t   *zone;
    zone_file_t  file;

    static const zone_change_t  changes[] = {
        { -5000000000, 3600 }, { SINCE - 100, 7200 }, { SINCE + 100, 1800 },
        { SINCE + 200, -3600 }
    };

    (void) state;

    /* what was before is one offset; behind the last change the rule holds */
    zone_file_write(&file, '2', 0, changes, 4, "XXX1");
    assert_int_equal(tg_zone_parse(zone_file_bytes(&file), SINCE, &zone), TG_OK);
    assert_int_equal(tg_zone_offset(zone, INT64_MIN), 7200);
    assert_int_equal(tg_zone_offset(zone, SINCE + 99), 7200);
    assert_int_equal(tg_zone_offset(zone, SINCE + 100), 1800);
    assert_int_equal(tg_zone_offset(zone, SINCE + 199), 1800);
    assert_int_equal(tg_zone_offset(zone, SINCE + 200), -3600);
    assert_int_equal(tg_zone_offset(zone, INT64_MAX), -3600);
    assert_true(tg_zone_next(zone, SINCE, &at));
    assert_int_equal(at, SINCE + 100);
    assert_true(tg_zone_next(zone, SINCE + 100, &at));
    assert_int_equal(at, SINCE + 200);
    assert_false(tg_zone_next(zone, SINCE + 200, &at));
    tg_zone_free(zone);

    /* no rule: the last offset stays */
    zone_file_write(&file, '3', 0, changes, 3, "");
    assert_int_equal(tg_zone_parse(zone_file_bytes(&file), SINCE, &zone), TG_OK);
    assert_int_equal(tg_zone_offset(zone, SINCE + 100000), 1800);
    assert_false(tg_zone_next(zone, SINCE + 100000, &at));
    tg_zone_free(zone);

    /* no change at all: type 0, or the rule from the beginning */
    zone_file_write(&file, '2', 5400, NULL, 0, "");
    assert_int_equal(tg_zone_parse(zone_file_bytes(&file), SINCE, &zone), TG_OK);
    assert_int_equal(tg_zone_offset(zone, SINCE), 5400);
    tg_zone_free(zone);

    zone_file_write(&file, '2', 5400, NULL, 0, "EST5EDT,M3.2.0,M11.1.0");
    assert_int_equal(tg_zone_parse(zone_file_bytes(&file), SINCE, &zone), TG_OK);
    assert_int_equal(tg_zone_offset(zone, SINCE), -5 * 3600);
    assert_true(tg_zone_next(zone, SINCE, &at));
    tg_zone_free(zone);
}


/* A list up to 2037 that the rule gives as well is not kept, what differs is. */
static void
test_reduced(void **state)
{
    size_t          i, n, small;
    int64_t         t;
    tg_zone_t      *zone, *other;
    zone_file_t     file;
    zone_change_t   changes[32];
    tg_zone_rule_t  rule;

    const char  *footer = "CET-1CEST,M3.5.0,M10.5.0/3";

    (void) state;

    assert_int_equal(tg_zone_rule_parse(tg_str_of(footer), &rule), TG_OK);

    for (n = 0, t = SINCE; n < 24; n++) {
        assert_true(tg_zone_rule_next(&rule, t, &t));
        changes[n].at = t;
        changes[n].offset = tg_zone_rule_offset(&rule, t);
    }

    zone_file_write(&file, '2', 3600, changes, n, footer);
    assert_int_equal(tg_zone_parse(zone_file_bytes(&file), SINCE, &zone), TG_OK);
    small = tg_zone_bytes(zone);

    zone_file_write(&file, '2', 0, NULL, 0, footer);
    assert_int_equal(tg_zone_parse(zone_file_bytes(&file), SINCE, &other), TG_OK);
    assert_int_equal(small, tg_zone_bytes(other));
    assert_true(tg_zone_equal(zone, other));
    tg_zone_free(zone);

    /* one year without saving time: all up to its end is kept */
    for (i = 4; i + 2 < n; i++) {
        changes[i] = changes[i + 2];
    }

    zone_file_write(&file, '2', 3600, changes, n - 2, footer);
    assert_int_equal(tg_zone_parse(zone_file_bytes(&file), SINCE, &zone), TG_OK);
    assert_true(tg_zone_bytes(zone) > small);
    assert_false(tg_zone_equal(zone, other));
    assert_int_equal(tg_zone_offset(zone, utc(2026, 7, 1, 0)), 7200);
    assert_int_equal(tg_zone_offset(zone, utc(2027, 7, 1, 0)), 3600);
    assert_int_equal(tg_zone_offset(zone, utc(2028, 7, 1, 0)), 7200);
    assert_int_equal(tg_zone_offset(zone, utc(2060, 7, 1, 0)), 7200);
    tg_zone_free(zone);
    tg_zone_free(other);
}


static void
test_file_bad(void **state)
{
    char         name[16];
    size_t       len, i;
    tg_zone_t   *zone;
    zone_file_t  file, whole;

    static const zone_change_t  changes[] = { { SINCE + 100, 1800 }, { SINCE + 200, 0 } };
    static const zone_change_t  falling[] = { { SINCE + 100, 1800 }, { SINCE + 100, 0 } };
    static const zone_change_t  far[] = { { SINCE + 100, 27 * 3600 } };

    /* where a header of the second block says how many there are */
    enum { HEADER = 44 + 10, LEAPS = HEADER + 31, TIMES = HEADER + 35, TYPES = HEADER + 39 };

    (void) state;

    zone_file_write(&whole, '2', 0, changes, 2, "XXX0");

    /* each shorter one is cut somewhere: only the last byte ends the footer */
    for (len = 0; len < whole.len; len++) {
        char  *copy = malloc(len + 1);

        memcpy(copy, whole.data, len);
        i = (size_t) tg_zone_parse((tg_str_t) { len, copy }, SINCE, &zone);
        free(copy);
        assert_int_equal((tg_rc_e) i, TG_E_SYNTAX);
        assert_null(zone);
    }

    zone_file_write(&file, '\0', 0, changes, 2, "XXX0");
    assert_int_equal(tg_zone_parse(zone_file_bytes(&file), SINCE, &zone), TG_E_INVALID);
    zone_file_write(&file, '2', 0, falling, 2, "XXX0");
    assert_int_equal(tg_zone_parse(zone_file_bytes(&file), SINCE, &zone), TG_E_SYNTAX);
    zone_file_write(&file, '2', 0, far, 1, "XXX0");
    assert_int_equal(tg_zone_parse(zone_file_bytes(&file), SINCE, &zone), TG_E_SYNTAX);
    zone_file_write(&file, '2', -27 * 3600, changes, 2, "XXX0");
    assert_int_equal(tg_zone_parse(zone_file_bytes(&file), SINCE, &zone), TG_E_SYNTAX);
    zone_file_write(&file, '2', 0, changes, 2, "no rule");
    assert_int_equal(tg_zone_parse(zone_file_bytes(&file), SINCE, &zone), TG_E_SYNTAX);

    /* a type that is not there */
    file = whole;
    file.data[HEADER + 44 + 16] = 3;
    assert_int_equal(tg_zone_parse(zone_file_bytes(&file), SINCE, &zone), TG_E_SYNTAX);

    /* counts that do not fit what follows */
    file = whole;
    file.data[LEAPS] = 1;
    file.len += 12;
    memset(file.data + whole.len, 0, 12);
    assert_int_equal(tg_zone_parse(zone_file_bytes(&file), SINCE, &zone), TG_E_INVALID);
    file = whole;
    memset(file.data + TIMES - 3, 0xff, 4);
    assert_int_equal(tg_zone_parse(zone_file_bytes(&file), SINCE, &zone), TG_E_SYNTAX);
    file = whole;
    file.data[TYPES] = 0;
    assert_int_equal(tg_zone_parse(zone_file_bytes(&file), SINCE, &zone), TG_E_SYNTAX);

    snprintf(name, sizeof(name), "TZif");
    assert_int_equal(tg_zone_parse((tg_str_t) { TG_ZONE_FILE_MAX + 1, name }, SINCE,
                                   &zone), TG_E_LIMIT);
}


/* More transitions than a zone may have. */
static void
test_file_many(void **state)
{
    char        *data;
    size_t       i, n, len;
    tg_zone_t   *zone;
    zone_file_t  head;

    (void) state;

    n = TG_ZONE_CHANGES_MAX + 1;
    head.len = 0;
    zone_file_header(&head, '2', 0, 1);
    zone_file_number(&head, 0, 6);
    zone_file_number(&head, 0, 4);
    zone_file_header(&head, '2', n, 1);

    len = head.len + n * 9 + 10 + 2;
    data = calloc(1, len);
    assert_non_null(data);
    memcpy(data, head.data, head.len);

    for (i = 0; i < n; i++) {
        data[head.len + i * 8 + 6] = (char) (i >> 8);
        data[head.len + i * 8 + 7] = (char) i;
    }

    data[len - 2] = '\n';
    data[len - 1] = '\n';

    assert_int_equal(tg_zone_parse((tg_str_t) { len, data }, SINCE, &zone), TG_E_LIMIT);
    free(data);
}


static void
test_table(void **state)
{
    char         name[TG_ZONE_NAME_MAX + 2];
    size_t       i;
    tg_zones_t  *zones;
    zone_file_t  east, west;

    static const char *const  bad[] = {
        "", "/", "/A", "A/", "A//B", "A B", "../etc/passwd", "A.tab", "\xc3\xa9"
    };

    (void) state;

    zone_file_write(&east, '2', 0, NULL, 0, "AAA-3");
    zone_file_write(&west, '2', 0, NULL, 0, "BBB3");

    assert_null(tg_zones_find(NULL, tg_str("A")));
    assert_int_equal(tg_zones_count(NULL), 0);
    assert_int_equal(tg_zones_bytes(NULL), 0);

    zones = tg_zones_create(SINCE);
    assert_non_null(zones);

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(tg_zones_add(zones, tg_str_of(bad[i]), zone_file_bytes(&east)),
                         TG_E_INVALID);
    }

    memset(name, 'a', sizeof(name));
    assert_int_equal(tg_zones_add(zones, (tg_str_t) { TG_ZONE_NAME_MAX + 1, name },
                                  zone_file_bytes(&east)), TG_E_INVALID);
    assert_int_equal(tg_zones_add(zones, (tg_str_t) { TG_ZONE_NAME_MAX, name },
                                  zone_file_bytes(&east)), TG_OK);
    assert_int_equal(tg_zones_add(zones, tg_str("Etc/GMT+3"), zone_file_bytes(&west)),
                     TG_OK);
    assert_int_equal(tg_zones_add(zones, tg_str("Etc/GMT+3"), zone_file_bytes(&east)),
                     TG_E_INVALID);
    assert_int_equal(tg_zones_add(zones, tg_str("Etc"), zone_file_bytes(&east)), TG_OK);
    assert_int_equal(tg_zones_add(zones, tg_str("Bad"), tg_str("TZif")), TG_E_SYNTAX);
    assert_int_equal(tg_zones_count(zones), 3);

    /* names are exact, and those of one zone share it */
    assert_null(tg_zones_find(zones, tg_str("etc")));
    assert_null(tg_zones_find(zones, tg_str("Etc/GMT")));
    assert_null(tg_zones_find(zones, tg_str("Etc/GMT+30")));
    assert_null(tg_zones_find(zones, tg_str("Bad")));
    assert_null(tg_zones_find(zones, tg_null_str));
    assert_int_equal(tg_zone_offset(tg_zones_find(zones, tg_str("Etc/GMT+3")), SINCE),
                     -3 * 3600);
    assert_ptr_equal(tg_zones_find(zones, tg_str("Etc")),
                     tg_zones_find(zones, (tg_str_t) { TG_ZONE_NAME_MAX, name }));

    /* in order, up to the bound */
    for (i = tg_zones_count(zones); i < TG_ZONES_MAX; i++) {
        snprintf(name, sizeof(name), "N%zu", i * 7919 % TG_ZONES_MAX + TG_ZONES_MAX);
        assert_int_equal(tg_zones_add(zones, tg_str_of(name), zone_file_bytes(&east)),
                         TG_OK);
    }

    assert_int_equal(tg_zones_add(zones, tg_str("More"), zone_file_bytes(&east)),
                     TG_E_LIMIT);

    for (i = 0; i < TG_ZONES_MAX; i++) {
        tg_str_t  at = tg_zones_name_at(zones, i), last = tg_zones_name_at(zones, i - 1);

        assert_non_null(tg_zones_find(zones, at));

        if (i > 0) {
            char  one[128], two[128];

            snprintf(one, sizeof(one), "%.*s", (int) last.len, last.data);
            snprintf(two, sizeof(two), "%.*s", (int) at.len, at.data);
            assert_true(strcmp(one, two) < 0);
        }
    }

    assert_null(tg_zones_name_at(zones, TG_ZONES_MAX).data);
    tg_zones_free(zones);
    tg_zones_free(NULL);
}


typedef struct {
    tg_zones_t  *zones;
    size_t       compared;
} system_t;


/* All files below a folder of the system's zones. */
static void
system_load(system_t *system, const char *under)
{
    DIR            *dir;
    char            path[512], name[256];
    tg_str_t        bytes;
    struct dirent  *entry;

    snprintf(path, sizeof(path), ZONE_FILE_SYSTEM "/%s", under);
    dir = opendir(path);

    if (dir == NULL) {
        return;
    }

    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.' || strcmp(entry->d_name, "right") == 0
            || strcmp(entry->d_name, "posix") == 0
            || strcmp(entry->d_name, "localtime") == 0)
        {
            continue;
        }

        snprintf(name, sizeof(name), "%.100s%s%.100s", under, *under ? "/" : "",
                 entry->d_name);

        if (entry->d_type == DT_DIR) {
            system_load(system, name);
            continue;
        }

        bytes = zone_file_system(name);

        if (bytes.len >= 4 && memcmp(bytes.data, "TZif", 4) == 0) {
            if (tg_zones_add(system->zones, tg_str_of(name), bytes) != TG_OK) {
                fail_msg("the zone %s is not taken", name);
            }
        }

        free((char *) bytes.data);
    }

    closedir(dir);
}


static void
compare(const char *name, const tg_zone_t *zone, int64_t t)
{
    time_t     when = (time_t) t;
    struct tm  tm;

    assert_non_null(localtime_r(&when, &tm));

    if (tm.tm_gmtoff != tg_zone_offset(zone, t)) {
        fail_msg("%s at %lld: %ld by the C library, %d here", name, (long long) t,
                 tm.tm_gmtoff, tg_zone_offset(zone, t));
    }
}


/* The C library reads the same files and rules by code of its own. */
static void
test_system(void **state)
{
    char      name[256];
    size_t    i, j;
    int64_t   t, at;
    tg_str_t  text;
    system_t  system = { 0 };
    uint64_t  random = 88172645463325252u;

    (void) state;

    system.zones = tg_zones_create(SINCE);
    system_load(&system, "");

    if (tg_zones_count(system.zones) == 0) {
        print_message("skipped: " ZONE_FILE_SYSTEM " has no zones: install tzdata\n");
        tg_zones_free(system.zones);
        skip();
    }

    for (i = 0; i < tg_zones_count(system.zones); i++) {
        const tg_zone_t  *zone;

        text = tg_zones_name_at(system.zones, i);
        snprintf(name, sizeof(name), "%.*s", (int) text.len, text.data);
        zone = tg_zones_find(system.zones, text);
        setenv("TZ", name, 1);
        tzset();

        for (j = 0; j < 200; j++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            compare(name, zone, SINCE + (int64_t) (random % (UNTIL - SINCE)));
            system.compared++;
        }

        /* both sides of each change, and no change in between */
        for (t = SINCE, j = 0; t < UNTIL && j < 400; t = at, j++) {
            if (!tg_zone_next(zone, t, &at)) {
                break;
            }

            assert_true(at > t);
            compare(name, zone, at - 1);
            compare(name, zone, at);
            assert_int_equal(tg_zone_offset(zone, t), tg_zone_offset(zone, at - 1));
            system.compared += 2;
        }
    }

    print_message("%zu names, %zu bytes, %zu offsets as in the C library\n",
                  tg_zones_count(system.zones), tg_zones_bytes(system.zones),
                  system.compared);
    assert_true(tg_zones_count(system.zones) > 300);
    assert_true(tg_zones_bytes(system.zones) < TABLE_BYTES);
    tg_zones_free(system.zones);
    unsetenv("TZ");
    tzset();
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_date),
        cmocka_unit_test(test_rule_bad),
        cmocka_unit_test(test_rule),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_reduced),
        cmocka_unit_test(test_file_bad),
        cmocka_unit_test(test_file_many),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_system)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
