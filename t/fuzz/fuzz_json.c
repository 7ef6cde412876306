/*
 * Any text: what loads must survive the canonical and the compact form, and both
 * must be stable. Pointers into any text must not be followed past its end.
 */

#include <stdlib.h>

#include "tg_json.h"


#define MAX_OUT  (16 * 1024 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static void
must(bool what)
{
    if (!what) {
        abort();
    }
}


/* Loads what was written, writes it again: the bytes must be the same. */
static void
reload(const tg_buf_t *text, tg_rc_e (*write)(const json_t *, tg_buf_t *),
    const json_t *same_as)
{
    json_t          *value;
    tg_buf_t         again;
    tg_json_error_t  error;

    value = tg_json_load(tg_buf_get(text), &error);
    must(value != NULL);
    must(same_as == NULL || json_equal(value, same_as));

    tg_buf_init(&again, MAX_OUT);
    must(write(value, &again) == TG_OK);
    must(tg_str_eq(tg_buf_get(text), tg_buf_get(&again)));

    tg_buf_free(&again);
    json_decref(value);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t          *value;
    size_t           cut;
    tg_buf_t         canonical, dump, other;
    tg_str_t         text;
    tg_json_error_t  error;

    /* the first byte cuts the rest into a pointer and a text */
    cut = size == 0 ? 0 : data[0] % size;
    tg_json_line_of((tg_str_t) { size - cut, (const char *) data + cut },
                    (tg_str_t) { cut, (const char *) data });

    text = (tg_str_t) { size, (const char *) data };
    value = tg_json_load(text, &error);
    if (value == NULL) {
        must(error.reason != NULL && error.offset <= size && error.line >= 1);
        return 0;
    }

    tg_buf_init(&canonical, MAX_OUT);
    tg_buf_init(&dump, MAX_OUT);
    tg_buf_init(&other, MAX_OUT);

    must(tg_json_canonical(value, &canonical) == TG_OK);
    reload(&canonical, tg_json_canonical, NULL);

    must(tg_json_dump(value, &dump) == TG_OK);
    reload(&dump, tg_json_dump, value);

    /* the canonical form does not depend on how the value was written */
    json_decref(value);
    value = tg_json_load(tg_buf_get(&dump), &error);
    must(value != NULL && tg_json_canonical(value, &other) == TG_OK);
    must(tg_str_eq(tg_buf_get(&canonical), tg_buf_get(&other)));

    tg_buf_free(&canonical);
    tg_buf_free(&dump);
    tg_buf_free(&other);
    json_decref(value);

    return 0;
}
