/*
 * Request limits over slices: edges by hand, the bound of memory, then random
 * sequences against a brute-force list of every take that passed. Times as headers
 * have them.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tg_rate.h"


#define MINUTE     60000u
#define HOUR       3600000u
#define TAKES_MAX  6000


static tg_rate_t *
rate_new(uint32_t limit)
{
    tg_rate_t  *r;

    /* exactly the size: the sanitizer sees a slice too many */
    r = malloc(tg_rate_size(limit));
    assert_non_null(r);
    tg_rate_init(r, limit);

    return r;
}


static bool
take(tg_rate_t *r, uint32_t limit, uint64_t window, uint64_t now)
{
    if (tg_rate_look(r, limit, window, now).wait > 0) {
        return false;
    }

    tg_rate_add(r, window, now);

    return true;
}


static void
test_exactly_the_limit(void **state)
{
    uint32_t          i;
    tg_rate_t        *r;
    tg_rate_state_t   s;

    (void) state;

    r = rate_new(3);
    s = tg_rate_look(r, 3, MINUTE, 1000);
    assert_int_equal(s.remaining, 3);
    assert_int_equal(s.wait, 0);
    assert_int_equal(s.reset, 0);

    for (i = 0; i < 3; i++) {
        assert_true(take(r, 3, MINUTE, 1000 + i * 5000));
        s = tg_rate_look(r, 3, MINUTE, 1000 + i * 5000);
        assert_int_equal(s.remaining, 2 - i);
        assert_int_equal(s.reset, MINUTE);
    }

    s = tg_rate_look(r, 3, MINUTE, 21000);
    assert_int_equal(s.remaining, 0);
    assert_int_equal(s.wait, 40000);
    assert_int_equal(s.reset, 50000);

    /* one before, at and after the oldest drops out; refusals left no mark */
    assert_false(take(r, 3, MINUTE, 60999));
    assert_true(take(r, 3, MINUTE, 61000));
    assert_false(take(r, 3, MINUTE, 61001));

    free(r);
}


/* a slice drops out as a whole, when its newest take does: late, never early */
static void
test_a_slice_counts_to_its_end(void **state)
{
    tg_rate_t  *r;

    (void) state;

    r = rate_new(2);
    assert_true(take(r, 2, MINUTE, 60000));
    assert_true(take(r, 2, MINUTE, 60999));
    assert_int_equal(r->count, 1);

    assert_false(take(r, 2, MINUTE, 120000));
    assert_int_equal(tg_rate_look(r, 2, MINUTE, 120000).wait, 999);
    assert_true(take(r, 2, MINUTE, 120999));
    assert_true(take(r, 2, MINUTE, 120999));

    free(r);
}


static void
test_memory_does_not_grow(void **state)
{
    uint32_t    i;
    tg_rate_t  *r;

    (void) state;

    assert_true(tg_rate_size(TG_RATE_LIMIT_MAX) <= 768);
    assert_int_equal(tg_rate_size(TG_RATE_CAP_MAX),
                     tg_rate_size(TG_RATE_LIMIT_MAX));
    assert_true(tg_rate_size(3) < 64);

    /* as many slices as there can be: one at every edge and one at the end */
    r = rate_new(100000);

    for (i = 0; i < 10000; i++) {
        assert_true(take(r, 100000, HOUR, 59999 + (uint64_t) i * 20000));
        assert_true(r->count <= TG_RATE_CAP_MAX);
    }

    assert_true(r->count >= TG_RATE_SLICES);
    free(r);
}


static void
test_many_at_once(void **state)
{
    uint32_t    i, passed;
    tg_rate_t  *r;

    (void) state;

    r = rate_new(100000);
    passed = 0;

    for (i = 0; i < 150000; i++) {
        passed += take(r, 100000, HOUR, 5000);
    }

    assert_int_equal(passed, 100000);
    assert_int_equal(tg_rate_look(r, 100000, HOUR, 5000 + HOUR - 1).wait, 1);
    assert_int_equal(tg_rate_look(r, 100000, HOUR, 5000 + HOUR).remaining, 100000);

    free(r);
}


static void
test_clock_set_back(void **state)
{
    uint32_t          i;
    tg_rate_t        *r;
    tg_rate_state_t   s;

    (void) state;

    r = rate_new(200);

    for (i = 0; i < 61; i++) {
        assert_true(take(r, 200, MINUTE, 500000 + i * 900));
    }

    /* all of them are as old as now, and there is room for a slice of each second */
    s = tg_rate_look(r, 200, MINUTE, 100000);
    assert_int_equal(s.remaining, 139);
    assert_int_equal(s.reset, MINUTE);
    assert_int_equal(r->count, 1);

    for (i = 0; i < 139; i++) {
        assert_true(take(r, 200, MINUTE, 100000 + i * 400));
    }

    assert_int_equal(tg_rate_look(r, 200, MINUTE, 155500).wait, 5300);
    assert_int_equal(tg_rate_newest(r), 100000 + 138 * 400);

    free(r);
}


typedef struct {
    uint64_t  at[TAKES_MAX];
    size_t    n;
} takes_t;


static size_t
takes_since(const takes_t *takes, uint64_t now, uint64_t window)
{
    size_t  i, n;

    n = 0;

    for (i = 0; i < takes->n; i++) {
        if (now - takes->at[i] < window) {
            n++;
        }
    }

    return n;
}


/* Never more than the limit in any window; and whoever is refused would not have
 * passed a slice earlier either. */
static void
test_against_brute_force(void **state)
{
    uint32_t          i, round, limit;
    uint64_t          now, slice;
    tg_rate_t        *r;
    tg_rate_state_t   s;

    static takes_t         takes;
    static const uint32_t  limits[] = { 1, 2, 7, 59, 60, 61, 62, 500 };

    (void) state;
    srand(7);
    slice = MINUTE / TG_RATE_SLICES;

    for (round = 0; round < sizeof(limits) / sizeof(limits[0]); round++) {
        limit = limits[round];
        r = rate_new(limit);
        takes.n = 0;
        now = 1000000;

        for (i = 0; i < TAKES_MAX; i++) {
            now += (uint64_t) (rand() % (int) (3 * MINUTE / limit + 2)) / 2;

            s = tg_rate_look(r, limit, MINUTE, now);

            if (s.wait == 0) {
                assert_true(takes_since(&takes, now, MINUTE) < limit);
                tg_rate_add(r, MINUTE, now);
                takes.at[takes.n++] = now;

            } else {
                assert_true(takes_since(&takes, now, MINUTE + slice) >= limit);
                assert_true(s.wait <= MINUTE);
                assert_int_equal(s.remaining, 0);
                assert_true(tg_rate_look(r, limit, MINUTE, now).wait == s.wait);
            }

            assert_true(r->count <= r->cap && r->total <= limit);
        }

        assert_true(takes.n > limit);
        free(r);
    }
}


static void
test_durations(void **state)
{
    char    text[TG_RATE_DURATION_LEN];
    size_t  i;

    static const struct {
        uint64_t     ms;
        const char  *text;
    } cases[] = {
        { 0, "0s" }, { 1, "1ms" }, { 250, "250ms" }, { 999, "999ms" },
        { 1000, "1s" }, { 1001, "1.001s" }, { 1500, "1.5s" }, { 8640, "8.64s" },
        { 20000, "20s" }, { 59999, "59.999s" }, { 60000, "1m0s" },
        { 86400, "1m26.4s" }, { 360000, "6m0s" }, { 3599000, "59m59s" },
        { 3600000, "1h0m0s" }, { 3661010, "1h1m1.01s" }, { 86400000, "24h0m0s" },
        { 2678400000, "744h0m0s" },
        { UINT64_MAX, "5124095576030h25m51.615s" }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(tg_rate_duration(cases[i].ms, text),
                         strlen(cases[i].text));
        assert_string_equal(text, cases[i].text);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_exactly_the_limit),
        cmocka_unit_test(test_a_slice_counts_to_its_end),
        cmocka_unit_test(test_memory_does_not_grow),
        cmocka_unit_test(test_many_at_once),
        cmocka_unit_test(test_clock_set_back),
        cmocka_unit_test(test_against_brute_force),
        cmocka_unit_test(test_durations)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
