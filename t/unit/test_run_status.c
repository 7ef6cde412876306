/*
 * The table of run statuses: names there and back, what may follow what.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tg_run_status.h"


static void
names(void **state)
{
    tg_run_status_e  s;

    (void) state;

    for (s = TG_STATUS_QUEUED; s < TG_STATUSES; s++) {
        assert_int_equal(tg_run_status_find(tg_str_of(tg_run_status_name(s))), s);

        if (tg_run_status_event(s)) {
            assert_int_equal(tg_run_status_of_event(
                                 tg_str_of(tg_run_status_event(s))), s);
        }
    }

    assert_null(tg_run_status_event(TG_STATUS_QUEUED));
    assert_int_equal(tg_run_status_find(tg_str("done")), TG_STATUSES);
    assert_int_equal(tg_run_status_find(tg_null_str), TG_STATUSES);
    assert_int_equal(tg_run_status_of_event(tg_str("run.text_delta")),
                     TG_STATUSES);
}


/* Nothing comes after an end, and every end can be reached. */
static void
transitions(void **state)
{
    unsigned         reached;
    tg_run_status_e  from, to;

    (void) state;

    reached = 0;

    for (from = TG_STATUS_QUEUED; from < TG_STATUSES; from++) {
        assert_true(tg_run_status_ended(from) == (from >= TG_STATUS_COMPLETED));

        for (to = TG_STATUS_QUEUED; to < TG_STATUSES; to++) {
            if (tg_run_status_may(from, to)) {
                assert_false(tg_run_status_ended(from));
                reached |= 1u << to;
            }
        }
    }

    assert_int_equal(reached, (1u << TG_STATUSES) - 1);

    assert_false(tg_run_status_may(TG_STATUS_QUEUED, TG_STATUS_COMPLETED));
    assert_false(tg_run_status_may(TG_STATUS_REQUIRES_ACTION, TG_STATUS_COMPLETED));
    assert_false(tg_run_status_may(TG_STATUS_RUNNING, TG_STATUS_QUEUED));
    assert_true(tg_run_status_may(TG_STATUS_RUNNING, TG_STATUS_RUNNING));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(transitions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
