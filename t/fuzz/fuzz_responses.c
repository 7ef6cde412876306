/*
 * A Responses request in the form of chat: whatever valid body comes in, what goes out
 * is valid JSON as well, the same in small steps as in one, or a fault with a code.
 */

#include <stdlib.h>

#include "fuzz_scan_help.h"
#include "tg_error.h"
#include "tg_responses.h"


#define OUT_MAX  (16 * 1024 * 1024)


static tg_rc_e
add(void *ctx, const char *data, size_t len)
{
    return tg_buf_append(ctx, data, len);
}


static tg_rc_e
translate(const tg_scan_t *scan, const char *body, size_t budget, tg_buf_t *out,
    tg_responses_fault_t *fault)
{
    tg_rc_e                  rc;
    tg_responses_request_t   t;

    tg_buf_init(out, OUT_MAX);
    tg_responses_request_init(&t, scan, body, add, out);
    t.agent = true;

    do {
        rc = tg_responses_request_step(&t, budget);
    } while (rc == TG_AGAIN);

    check(rc == TG_OK || rc == TG_E_INVALID || rc == TG_E_LIMIT);
    check(rc != TG_E_INVALID || tg_error_find(t.fault.code) != NULL);
    *fault = t.fault;

    return rc;
}


/* Every member's value, walked to the same end that the scanner has seen. */
static void
walk_all(const tg_scan_t *scan, const char *body)
{
    size_t                   i;
    tg_str_t                 key;
    tg_walk_t                walk;
    tg_scan_range_t          top;
    tg_walk_value_t          value;
    const tg_scan_member_t  *member;

    top = tg_scan_top(scan);
    walk = tg_walk_over((tg_str_t) { top.end - top.start, body + top.start });
    check(tg_walk_enter(&walk));

    for (i = 0; tg_walk_member(&walk, &key, &value); i++) {
        member = tg_scan_member(scan, i);
        check(member != NULL && member->value.type == value.type);
        check(value.text.data == body + member->value.start);
        check(value.text.len == member->value.end - member->value.start);
        check(key.data == body + member->key.start + 1);
    }

    check(i == tg_scan_member_count(scan));
    check(walk.p == body + top.end);
}


static void
answer_echo(const tg_scan_t *scan, const char *body)
{
    tg_buf_t               out;
    tg_scan_t             *again;
    tg_responses_fault_t   fault;

    tg_buf_init(&out, OUT_MAX);
    tg_buf_cstr(&out, "{\"x\":0");

    if (tg_responses_echo(scan, body, true, &out, &fault) == TG_OK) {
        tg_buf_char(&out, '}');
        again = scan_of(tg_buf_get(&out));

        /* the members of "text" are the caller's and may be too many for it */
        check(again != NULL);
        tg_scan_free(again);

    } else {
        check(tg_error_find(fault.code) != NULL);
    }

    tg_buf_free(&out);
}


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char                  *body;
    tg_rc_e                rc;
    tg_buf_t               whole, steps;
    tg_scan_t             *scan, *again;
    tg_responses_fault_t   fault, other;

    /* exactly as long, so that a byte read behind it is seen */

    body = malloc(size + 1);
    check(body != NULL);
    memcpy(body, data, size);
    body = realloc(body, size ? size : 1);

    scan = scan_of((tg_str_t) { size, body });

    if (scan && tg_scan_top_type(scan) == TG_SCAN_OBJECT) {
        walk_all(scan, body);
        answer_echo(scan, body);

        rc = translate(scan, body, SIZE_MAX, &whole, &fault);
        check(translate(scan, body, 1, &steps, &other) == rc);

        if (rc == TG_OK) {
            check(tg_str_eq(tg_buf_get(&whole), tg_buf_get(&steps)));
            again = scan_of(tg_buf_get(&whole));
            check(again != NULL);
            tg_scan_free(again);
        }

        tg_buf_free(&whole);
        tg_buf_free(&steps);
    }

    tg_scan_free(scan);
    free(body);

    return 0;
}
