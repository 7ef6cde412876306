/*
 * Unified diff; see tg_file_diff.h. Equal lines at both ends are set aside, then the
 * shortest edit script is looked for, one more step at a time, keeping how far each
 * diagonal came so that the way can be walked back.
 */

#include <stdlib.h>

#include "tg_file_diff.h"


/* over an edge: no way leads on from there */
#define TG_FILE_DIFF_NOWHERE  (-(1 << 28))

typedef struct {
    tg_str_t  *lines;        /* owned; with their ends */
    bool      *changed;      /* owned; removed, or added */
    size_t     count;
} tg_diff_side_t;

typedef struct {
    tg_diff_side_t  a, b;
    size_t          head;    /* equal lines at the beginning */
    size_t          tail;    /* and at the end */
} tg_diff_t;

/* lines [a, a_end) of one side and [b, b_end) of the other */
typedef struct {
    size_t  a, a_end;
    size_t  b, b_end;
} tg_diff_hunk_t;


static tg_rc_e
side_split(tg_str_t text, tg_diff_side_t *side)
{
    size_t       n, room;
    const char  *p, *end, *next;

    room = 1;
    for (p = text.data, n = text.len; n > 0; n--, p++) {
        room += *p == '\n';
    }

    side->count = 0;
    side->lines = calloc(room, sizeof(tg_str_t));
    side->changed = calloc(room, sizeof(bool));
    if (side->lines == NULL || side->changed == NULL) {
        return TG_E_NOMEM;
    }

    for (p = text.data, end = p + text.len; p < end; p = next) {
        next = memchr(p, '\n', (size_t) (end - p));
        next = next == NULL ? end : next + 1;
        side->lines[side->count++] = (tg_str_t) { (size_t) (next - p), p };
    }

    return TG_OK;
}


static void
side_free(tg_diff_side_t *side)
{
    free(side->lines);
    free(side->changed);
}


static void
diff_trim(tg_diff_t *diff)
{
    size_t  most;

    most = diff->a.count < diff->b.count ? diff->a.count : diff->b.count;

    for (diff->head = 0; diff->head < most; diff->head++) {
        if (!tg_str_eq(diff->a.lines[diff->head], diff->b.lines[diff->head])) {
            break;
        }
    }

    most -= diff->head;

    for (diff->tail = 0; diff->tail < most; diff->tail++) {
        if (!tg_str_eq(diff->a.lines[diff->a.count - 1 - diff->tail],
                       diff->b.lines[diff->b.count - 1 - diff->tail]))
        {
            break;
        }
    }
}


/* the whole middle as one block */
static void
diff_block(tg_diff_t *diff)
{
    size_t  i;

    for (i = diff->head; i < diff->a.count - diff->tail; i++) {
        diff->a.changed[i] = true;
    }

    for (i = diff->head; i < diff->b.count - diff->tail; i++) {
        diff->b.changed[i] = true;
    }
}


/* walks back from the end: trace[d] has the diagonals -d to d as step d left them */
static void
diff_walk(tg_diff_t *diff, int **trace, int steps, int x, int y)
{
    int   d, k, before, from_x, from_y;
    int  *v;

    for (d = steps; d > 0; d--) {
        v = trace[d - 1] + (d - 1);
        k = x - y;

        /* diagonals of the step before are -(d - 1) to d - 1, every second */
        if (k == -d || (k != d && v[k - 1] < v[k + 1])) {
            before = k + 1;
        } else {
            before = k - 1;
        }

        from_x = v[before];
        from_y = from_x - before;

        if (before == k + 1) {
            diff->b.changed[diff->head + (size_t) from_y] = true;
        } else {
            diff->a.changed[diff->head + (size_t) from_x] = true;
        }

        x = from_x;
        y = from_y;
    }
}


/* one step: how far each diagonal comes. True when the end is reached */
static bool
diff_step(const tg_diff_t *diff, int **trace, int d, int n, int m)
{
    int   k, x, y;
    int  *v, *last;

    v = trace[d] + d;
    last = d > 0 ? trace[d - 1] + (d - 1) : NULL;

    for (k = -d; k <= d; k += 2) {
        if (d == 0) {
            x = 0;
        } else if (k == -d || (k != d && last[k - 1] < last[k + 1])) {
            x = last[k + 1];
        } else {
            x = last[k - 1] + 1;
        }
        y = x - k;

        if (x < 0 || x > n || y < 0 || y > m) {
            v[k] = TG_FILE_DIFF_NOWHERE;
            continue;
        }

        while (x < n && y < m
               && tg_str_eq(diff->a.lines[diff->head + (size_t) x],
                            diff->b.lines[diff->head + (size_t) y]))
        {
            x++;
            y++;
        }

        v[k] = x;
        if (x == n && y == m) {
            return true;
        }
    }

    return false;
}


/* marks the lines that changed */
static void
diff_mark(tg_diff_t *diff)
{
    int    d, n, m, i;
    int  **trace;

    n = (int) (diff->a.count - diff->head - diff->tail);
    m = (int) (diff->b.count - diff->head - diff->tail);

    if (n == 0 || m == 0) {
        diff_block(diff);
        return;
    }

    trace = calloc(TG_FILE_DIFF_STEPS + 1, sizeof(int *));
    if (trace == NULL) {
        diff_block(diff);
        return;
    }

    for (d = 0; d <= TG_FILE_DIFF_STEPS; d++) {
        trace[d] = calloc((size_t) (2 * d + 1), sizeof(int));
        if (trace[d] == NULL) {
            d = TG_FILE_DIFF_STEPS + 1;
            break;
        }
        if (diff_step(diff, trace, d, n, m)) {
            break;
        }
    }

    if (d > TG_FILE_DIFF_STEPS) {
        diff_block(diff);
    } else {
        diff_walk(diff, trace, d, n, m);
    }

    for (i = 0; i <= TG_FILE_DIFF_STEPS; i++) {
        free(trace[i]);
    }
    free(trace);
}


static void
append_line(tg_buf_t *out, char mark, tg_str_t line)
{
    (void) tg_buf_char(out, mark);
    (void) tg_buf_str(out, line);

    if (line.data[line.len - 1] != '\n') {
        (void) tg_buf_cstr(out, "\n\\ No newline at end of file\n");
    }
}


static void
append_range(tg_buf_t *out, char mark, size_t from, size_t to)
{
    /* an empty range names the line before it */
    (void) tg_buf_printf(out, " %c%zu", mark, to == from ? from : from + 1);
    if (to - from != 1) {
        (void) tg_buf_printf(out, ",%zu", to - from);
    }
}


static void
append_hunk(const tg_diff_t *diff, const tg_diff_hunk_t *hunk, tg_buf_t *out)
{
    size_t  i, j;

    (void) tg_buf_cstr(out, "@@");
    append_range(out, '-', hunk->a, hunk->a_end);
    append_range(out, '+', hunk->b, hunk->b_end);
    (void) tg_buf_cstr(out, " @@\n");

    i = hunk->a;
    j = hunk->b;

    while (i < hunk->a_end || j < hunk->b_end) {
        if (i < hunk->a_end && diff->a.changed[i]) {
            append_line(out, '-', diff->a.lines[i++]);

        } else if (j < hunk->b_end && diff->b.changed[j]) {
            append_line(out, '+', diff->b.lines[j++]);

        } else {
            append_line(out, ' ', diff->a.lines[i++]);
            j++;
        }
    }
}


/* the next hunk at or behind the lines i and j, which correspond; false at the end */
static bool
next_hunk(const tg_diff_t *diff, size_t i, size_t j, tg_diff_hunk_t *hunk)
{
    size_t  first, same;

    first = i;
    while (i < diff->a.count && !diff->a.changed[i]
           && (j == diff->b.count || !diff->b.changed[j]))
    {
        i++;
        j++;
    }

    if (i == diff->a.count && j == diff->b.count) {
        return false;
    }

    same = i - first < TG_FILE_DIFF_CONTEXT ? i - first : TG_FILE_DIFF_CONTEXT;
    hunk->a = i - same;
    hunk->b = j - same;
    same = 0;

    /* changes with no more than twice the context between them are one hunk */
    while ((i < diff->a.count || j < diff->b.count) && same <= 2 * TG_FILE_DIFF_CONTEXT) {
        if (i < diff->a.count && diff->a.changed[i]) {
            i++;
            same = 0;
        } else if (j < diff->b.count && diff->b.changed[j]) {
            j++;
            same = 0;
        } else {
            i++;
            j++;
            same++;
        }
    }

    if (same > TG_FILE_DIFF_CONTEXT) {
        i -= same - TG_FILE_DIFF_CONTEXT;
        j -= same - TG_FILE_DIFF_CONTEXT;
    }

    hunk->a_end = i;
    hunk->b_end = j;
    return true;
}


tg_rc_e
tg_file_diff(tg_str_t before, tg_str_t after, tg_str_t path, tg_buf_t *out)
{
    tg_diff_t       diff;
    tg_diff_hunk_t  hunk;

    if (tg_str_eq(before, after)) {
        return TG_OK;
    }

    memset(&diff, 0, sizeof(diff));

    if (side_split(before, &diff.a) != TG_OK || side_split(after, &diff.b) != TG_OK) {
        out->error = TG_E_NOMEM;

    } else {
        diff_trim(&diff);
        diff_mark(&diff);

        (void) tg_buf_cstr(out, "--- ");
        (void) tg_buf_str(out, path);
        (void) tg_buf_cstr(out, " before\n+++ ");
        (void) tg_buf_str(out, path);
        (void) tg_buf_cstr(out, " after\n");

        memset(&hunk, 0, sizeof(hunk));
        while (next_hunk(&diff, hunk.a_end, hunk.b_end, &hunk)) {
            append_hunk(&diff, &hunk, out);
        }
    }

    side_free(&diff.a);
    side_free(&diff.b);
    return out->error;
}
