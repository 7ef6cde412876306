/*
 * Rolling window: edges by hand, then random sequences against a brute-force
 * list of every take that passed. Cases C046 (window edge), C047 (retry-after).
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tg_window.h"


#define HOUR       3600000u
#define TAKES_MAX  4000


static tg_window_t *
window_new(uint32_t cap)
{
    tg_window_t  *w;

    w = malloc(tg_window_size(cap));
    assert_non_null(w);
    tg_window_init(w, cap);

    return w;
}


/* C046: 20 at 10:59:58 and 20 at 11:00:01 make 20, not 40 */
static void
test_edge_of_the_hour(void **state)
{
    uint32_t      i, passed;
    uint64_t      t;
    tg_window_t  *w;

    (void) state;

    w = window_new(20);
    t = 11u * HOUR;
    passed = 0;

    for (i = 0; i < 20; i++) {
        passed += tg_window_take(w, 20, HOUR, t - 2000).allowed;
    }

    assert_int_equal(passed, 20);

    for (i = 0; i < 20; i++) {
        passed += tg_window_take(w, 20, HOUR, t + 1000).allowed;
    }

    assert_int_equal(passed, 20);

    /* one unit before, at, and after the oldest drops out */
    assert_false(tg_window_take(w, 20, HOUR, t - 2000 + HOUR - 1).allowed);
    assert_true(tg_window_take(w, 20, HOUR, t - 2000 + HOUR).allowed);

    free(w);
}


/* C047: an integer of at least 1 that never lies on the short side */
static void
test_retry_after(void **state)
{
    tg_window_t          *w;
    tg_window_verdict_t   v;

    (void) state;

    w = window_new(1);
    assert_true(tg_window_take(w, 1, HOUR, 5000).allowed);

    v = tg_window_take(w, 1, HOUR, 5000 + HOUR - 10000);
    assert_false(v.allowed);
    assert_int_equal(v.wait, 10000);
    assert_int_equal(tg_window_retry_after(v.wait, 1000), 10);

    v = tg_window_take(w, 1, HOUR, 5000 + HOUR - 1);
    assert_int_equal(v.wait, 1);
    assert_int_equal(tg_window_retry_after(v.wait, 1000), 1);

    assert_int_equal(tg_window_retry_after(0, 1000), 1);
    assert_int_equal(tg_window_retry_after(1000, 1000), 1);
    assert_int_equal(tg_window_retry_after(1001, 1000), 2);
    assert_int_equal(tg_window_retry_after(UINT64_MAX, 1), UINT64_MAX);

    free(w);
}


static void
test_remaining_and_refused(void **state)
{
    uint32_t              i;
    tg_window_t          *w;
    tg_window_verdict_t   v;

    (void) state;

    w = window_new(3);

    for (i = 0; i < 3; i++) {
        v = tg_window_take(w, 3, 100, 10 + i);
        assert_true(v.allowed);
        assert_int_equal(v.remaining, 2 - i);
        assert_int_equal(v.wait, 0);
    }

    /* refused ones do not count: the block ends when it would have ended */
    for (i = 0; i < 50; i++) {
        assert_false(tg_window_take(w, 3, 100, 20 + i).allowed);
    }

    assert_int_equal(tg_window_newest(w), 12);
    assert_false(tg_window_take(w, 3, 100, 109).allowed);
    assert_true(tg_window_take(w, 3, 100, 110).allowed);
    assert_false(tg_window_take(w, 3, 100, 110).allowed);
    assert_true(tg_window_take(w, 3, 100, 111).allowed);

    free(w);
}


static void
test_clock_set_back(void **state)
{
    tg_window_t          *w;
    tg_window_verdict_t   v;

    (void) state;

    w = window_new(2);
    assert_true(tg_window_take(w, 2, 100, 50).allowed);
    assert_true(tg_window_take(w, 2, 100, 1000000).allowed);
    assert_true(tg_window_take(w, 2, 100, 1000010).allowed);

    /* both are of the future now: they hold for one window more, no longer */
    v = tg_window_take(w, 2, 100, 500);
    assert_false(v.allowed);
    assert_int_equal(v.wait, 100);
    assert_false(tg_window_take(w, 2, 100, 599).allowed);
    assert_true(tg_window_take(w, 2, 100, 600).allowed);

    free(w);
}


static void
test_limit_changed(void **state)
{
    uint32_t              i;
    tg_window_t          *w, *larger, *smaller;
    tg_window_verdict_t   v;

    (void) state;

    w = window_new(10);

    for (i = 0; i < 10; i++) {
        assert_true(tg_window_take(w, 10, 100, 10 + i).allowed);
    }

    /* lowered to 4: seven must drop out before one passes, at 116 */
    v = tg_window_take(w, 4, 100, 50);
    assert_false(v.allowed);
    assert_int_equal(v.wait, 66);
    assert_int_equal(tg_window_take(w, 0, 100, 50).wait, 100);

    /* a limit above the ring is the ring's */
    assert_false(tg_window_take(w, 99, 100, 50).allowed);

    larger = window_new(12);
    tg_window_copy(larger, w);
    assert_int_equal(tg_window_newest(larger), 19);
    assert_true(tg_window_take(larger, 12, 100, 50).allowed);
    assert_true(tg_window_take(larger, 12, 100, 50).allowed);
    assert_false(tg_window_take(larger, 12, 100, 50).allowed);

    smaller = window_new(2);
    tg_window_copy(smaller, w);
    assert_int_equal(smaller->count, 2);
    assert_int_equal(tg_window_newest(smaller), 19);
    assert_false(tg_window_take(smaller, 2, 100, 117).allowed);
    assert_true(tg_window_take(smaller, 2, 100, 118).allowed);

    free(smaller);
    free(larger);
    free(w);
}


static void
test_against_brute_force(void **state)
{
    bool                  want;
    uint32_t              n, i, round, limit, inside, rounds;
    uint64_t              now, window, due, *passed;
    tg_window_t          *w;
    tg_window_verdict_t   v;

    (void) state;

    rounds = 0;
    passed = malloc(TAKES_MAX * sizeof(uint64_t));
    assert_non_null(passed);
    srand(7);

    for (round = 0; round < 200; round++) {
        limit = (uint32_t) rand() % 40 + 1;
        window = (uint64_t) rand() % 500 + 1;
        now = (uint64_t) rand() % 1000;
        w = window_new(limit);
        n = 0;

        for (i = 0; i < TAKES_MAX / 4; i++) {
            now += (uint64_t) rand() % 30;

            for (inside = 0; inside < n; inside++) {
                if (now - passed[n - 1 - inside] >= window) {
                    break;
                }
            }

            want = inside < limit;
            v = tg_window_take(w, limit, window, now);
            assert_int_equal(v.allowed, want);

            if (want) {
                assert_int_equal(v.remaining, limit - inside - 1);
                passed[n++] = now;

            } else {
                due = passed[n - limit] + window;
                assert_int_equal(v.wait, due - now);
            }

            rounds++;
        }

        free(w);
    }

    free(passed);
    printf("window: %u random takes agree with brute force\n", rounds);
}


int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edge_of_the_hour),
        cmocka_unit_test(test_retry_after),
        cmocka_unit_test(test_remaining_and_refused),
        cmocka_unit_test(test_clock_set_back),
        cmocka_unit_test(test_limit_changed),
        cmocka_unit_test(test_against_brute_force),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
