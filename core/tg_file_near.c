/*
 * Lines that look alike; see tg_file_near.h. The measure is twice the length of what
 * both have in common, by longest common pieces from left to right, over the length
 * of both.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE             /* memmem */
#endif

#include "tg_file_near.h"

#include "tg_utf8.h"


#define TG_FILE_NEAR_HEAD   4       /* bytes of the beginning */
#define TG_FILE_NEAR_RATIO  0.45

typedef struct {
    char    text[TG_FILE_NEAR_BYTES];
    size_t  len;
} tg_file_line_t;

/* a pair of pieces that are still to be compared */
typedef struct {
    size_t  a, a_end;
    size_t  b, b_end;
} tg_file_pair_t;


/* a text without blanks around it, its quotes made plain, cut */
static void
line_plain(tg_str_t text, tg_file_line_t *line)
{
    size_t   i, n;
    int32_t  cp;

    while (text.len > 0 && (uint8_t) text.data[0] <= ' ') {
        text.data++;
        text.len--;
    }

    while (text.len > 0 && (uint8_t) text.data[text.len - 1] <= ' ') {
        text.len--;
    }

    line->len = 0;

    for (i = 0; i < text.len; i += n) {
        n = tg_utf8_next(text.data + i, text.len - i, &cp);

        if (line->len + n > TG_FILE_NEAR_BYTES) {
            break;
        }

        if (cp >= 0x2018 && cp <= 0x201a) {
            line->text[line->len++] = '\'';

        } else if (cp >= 0x201c && cp <= 0x201e) {
            line->text[line->len++] = '"';

        } else {
            memcpy(line->text + line->len, text.data + i, n);
            line->len += n;
        }
    }
}


/* how much two lines can have in common at most: the same bytes in any order */
static size_t
common_bytes(const tg_file_line_t *a, const tg_file_line_t *b)
{
    size_t          i, n;
    unsigned short  left[256];

    memset(left, 0, sizeof(left));
    for (i = 0; i < a->len; i++) {
        left[(uint8_t) a->text[i]]++;
    }

    for (i = 0, n = 0; i < b->len; i++) {
        if (left[(uint8_t) b->text[i]] != 0) {
            left[(uint8_t) b->text[i]]--;
            n++;
        }
    }

    return n;
}


/* the longest common piece of a pair, the first of several */
static size_t
longest_piece(const tg_file_line_t *a, const tg_file_line_t *b, const tg_file_pair_t *pair,
    size_t *at_a, size_t *at_b)
{
    size_t          i, j, best;
    unsigned short  row[TG_FILE_NEAR_BYTES + 1], diagonal, above;

    best = 0;
    memset(row, 0, sizeof(row));

    for (i = pair->a; i < pair->a_end; i++) {
        diagonal = 0;

        for (j = pair->b; j < pair->b_end; j++) {
            above = row[j + 1];
            row[j + 1] = a->text[i] == b->text[j] ? (unsigned short) (diagonal + 1) : 0;
            diagonal = above;

            if (row[j + 1] > best) {
                best = row[j + 1];
                *at_a = i + 1 - best;
                *at_b = j + 1 - best;
            }
        }
    }

    return best;
}


static size_t
common_pieces(const tg_file_line_t *a, const tg_file_line_t *b, size_t *work)
{
    size_t          n, found, at_a, at_b, open;
    tg_file_pair_t  pair, pairs[TG_FILE_NEAR_BYTES + 2];

    found = 0;
    open = 1;
    pairs[0] = (tg_file_pair_t) { 0, a->len, 0, b->len };

    while (open > 0) {
        pair = pairs[--open];
        if (pair.a == pair.a_end || pair.b == pair.b_end) {
            continue;
        }

        *work += (pair.a_end - pair.a) * (pair.b_end - pair.b);
        n = longest_piece(a, b, &pair, &at_a, &at_b);
        if (n == 0) {
            continue;
        }

        /* each piece found splits one pair in two: never more open than pieces */
        found += n;
        pairs[open++] = (tg_file_pair_t) { pair.a, at_a, pair.b, at_b };
        pairs[open++] = (tg_file_pair_t) { at_a + n, pair.a_end, at_b + n, pair.b_end };
    }

    return found;
}


static double
line_score(const tg_file_line_t *a, const tg_file_line_t *b, size_t *work)
{
    double  both;

    both = (double) (a->len + b->len);
    if (a->len == 0 || b->len == 0
        || 2.0 * (double) common_bytes(a, b) / both <= TG_FILE_NEAR_RATIO
        || *work > TG_FILE_NEAR_WORK)
    {
        return 0;
    }

    return 2.0 * (double) common_pieces(a, b, work) / both;
}


/* keeps the best, earlier lines before later ones of the same score */
static size_t
near_keep(tg_file_near_t *near, size_t count, const tg_file_near_t *one)
{
    size_t  i;

    if (count == TG_FILE_NEAR_MAX) {
        if (one->score <= near[count - 1].score) {
            return count;
        }
        count--;
    }

    for (i = count; i > 0 && near[i - 1].score < one->score; i--) {
        near[i] = near[i - 1];
    }

    near[i] = *one;
    return count + 1;
}


size_t
tg_file_near(tg_str_t text, tg_str_t wanted, tg_file_near_t near[TG_FILE_NEAR_MAX])
{
    size_t          at, end, head, count, number, work;
    const char     *p;
    tg_file_near_t  one;
    tg_file_line_t  want, line;

    line_plain(wanted, &want);
    head = want.len < TG_FILE_NEAR_HEAD ? want.len : TG_FILE_NEAR_HEAD;
    count = 0;
    work = 0;

    for (at = 0, number = 1; at < text.len; at = end + 1, number++) {
        p = memchr(text.data + at, '\n', text.len - at);
        end = p == NULL ? text.len : (size_t) (p - text.data);

        one.line = number;
        one.text = (tg_str_t) { end - at, text.data + at };
        if (one.text.len > 0 && one.text.data[one.text.len - 1] == '\r') {
            one.text.len--;
        }

        line_plain(one.text, &line);
        one.score = line_score(&want, &line, &work);

        if (one.score > TG_FILE_NEAR_RATIO
            || (head > 0 && memmem(line.text, line.len, want.text, head) != NULL))
        {
            count = near_keep(near, count, &one);
        }
    }

    return count;
}
