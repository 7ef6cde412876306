/*
 * Any split of a stream gives the same events, and they are those that a plain
 * reading of the whole text gives. The first byte of the input seeds the cuts.
 */

#include <stdio.h>
#include <stdlib.h>

#include "tg_sse.h"


#define FUZZ_MAX_LOG  (1024 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static void
fuzz_log(tg_buf_t *log, tg_str_t event, tg_str_t data)
{
    tg_buf_printf(log, "%zu,%zu:", event.len, data.len);
    tg_buf_str(log, event);
    tg_buf_str(log, data);
}


static tg_rc_e
fuzz_on_event(void *ctx, const tg_sse_event_t *event)
{
    fuzz_log(ctx, event->event, event->data);

    return TG_OK;
}


static void
fuzz_split(const char *p, size_t len, uint32_t seed, tg_buf_t *log)
{
    char      *piece;
    size_t     n;
    tg_sse_t   sse;

    tg_sse_init(&sse);

    while (len > 0) {
        seed = seed * 1664525 + 1013904223;
        n = 1 + (seed >> 24) % (seed & 1 ? 3 : 40);
        n = n < len ? n : len;

        /* a block of its own, so that ASan sees a read past its end */
        piece = malloc(n);
        memcpy(piece, p, n);

        if (tg_sse_feed(&sse, piece, n, fuzz_on_event, log) != TG_OK) {
            abort();
        }

        free(piece);
        p += n;
        len -= n;
    }

    tg_sse_free(&sse);
}


/* The end of the line at p, and how long that end is; the input's end has none. */
static size_t
fuzz_line(const char *p, size_t len, size_t *eol)
{
    size_t  i;

    for (i = 0; i < len && p[i] != '\n' && p[i] != '\r'; i++) { /* void */ }

    *eol = i == len ? 0 : (p[i] == '\r' && i + 1 < len && p[i + 1] == '\n' ? 2 : 1);

    return i;
}


/* The standard's text, step by step, with no thought of speed. */
static void
fuzz_reference(const char *p, size_t len, tg_buf_t *log)
{
    bool      started;
    size_t    n, eol, name, skip;
    tg_buf_t  data, event;

    tg_buf_init(&data, FUZZ_MAX_LOG);
    tg_buf_init(&event, FUZZ_MAX_LOG);
    started = false;

    if (len >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0) {
        p += 3;
        len -= 3;
    }

    for ( ;; ) {
        n = fuzz_line(p, len, &eol);
        if (eol == 0) {
            break;
        }

        for (name = 0; name < n && p[name] != ':'; name++) { /* void */ }

        skip = name + 1 < n && p[name + 1] == ' ' ? 2 : 1;
        skip = name + skip > n ? n : name + skip;

        if (n == 0) {
            if (started) {
                data.len--;     /* the last LF */
                fuzz_log(log, tg_buf_get(&event), tg_buf_get(&data));
            }
            tg_buf_reset(&data);
            tg_buf_reset(&event);
            started = false;

        } else if (name == 4 && memcmp(p, "data", 4) == 0) {
            tg_buf_append(&data, p + skip, n - skip);
            tg_buf_char(&data, '\n');
            started = true;

        } else if (name == 5 && memcmp(p, "event", 5) == 0) {
            tg_buf_reset(&event);
            tg_buf_append(&event, p + skip, n - skip);
        }

        p += n + eol;
        len -= n + eol;
    }

    tg_buf_free(&data);
    tg_buf_free(&event);
}


static void
fuzz_same(const tg_buf_t *a, const tg_buf_t *b)
{
    if (a->error != TG_OK || !tg_str_eq(tg_buf_get(a), tg_buf_get(b))) {
        fprintf(stderr, "%.*s\nis not\n%.*s\n", (int) a->len, a->data, (int) b->len,
                b->data);
        abort();
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tg_sse_t     sse;
    tg_buf_t     whole, split, reference;
    const char  *p;

    if (size < 2) {
        return 0;
    }

    p = (const char *) data + 1;
    size--;

    tg_buf_init(&whole, FUZZ_MAX_LOG);
    tg_buf_init(&split, FUZZ_MAX_LOG);
    tg_buf_init(&reference, FUZZ_MAX_LOG);

    tg_sse_init(&sse);
    if (tg_sse_feed(&sse, p, size, fuzz_on_event, &whole) != TG_OK) {
        abort();
    }
    tg_sse_free(&sse);

    fuzz_split(p, size, data[0], &split);
    fuzz_same(&whole, &split);

    fuzz_reference(p, size, &reference);
    fuzz_same(&whole, &reference);

    tg_buf_free(&whole);
    tg_buf_free(&split);
    tg_buf_free(&reference);

    return 0;
}
