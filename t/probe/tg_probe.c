/*
 * tg-probe: a command-line window on the pure units of core/. Reads JSON lines
 * on stdin, gives each to the unit named on the command line and writes one JSON
 * line per input line in the same order. What a line means is the unit's matter.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "tg_probe.h"


#define TG_PROBE_EXIT_OK     0
#define TG_PROBE_EXIT_INPUT  1     /* a line was not JSON, or I/O failed */
#define TG_PROBE_EXIT_USAGE  2


/* weak: a unit whose file is not linked in is a NULL in the table */
extern __typeof__(tg_probe_netguard) tg_probe_netguard __attribute__((weak));
extern __typeof__(tg_probe_clean) tg_probe_clean __attribute__((weak));
extern __typeof__(tg_probe_schema) tg_probe_schema __attribute__((weak));
extern __typeof__(tg_probe_template) tg_probe_template __attribute__((weak));
extern __typeof__(tg_probe_sign) tg_probe_sign __attribute__((weak));
extern __typeof__(tg_probe_jwt) tg_probe_jwt __attribute__((weak));
extern __typeof__(tg_probe_shape) tg_probe_shape __attribute__((weak));
extern __typeof__(tg_probe_delta) tg_probe_delta __attribute__((weak));

static const tg_probe_unit_t  tg_probe_units[] = {
    { "netguard", tg_probe_netguard },
    { "clean", tg_probe_clean },
    { "schema", tg_probe_schema },
    { "template", tg_probe_template },
    { "sign", tg_probe_sign },
    { "jwt", tg_probe_jwt },
    { "shape", tg_probe_shape },
    { "delta", tg_probe_delta },
    { NULL, NULL }
};


json_t *
tg_probe_error(const char *reason)
{
    return json_pack("{s:s}", "error", reason);
}


static int
tg_probe_usage(const char *why, const char *name)
{
    const tg_probe_unit_t  *unit;

    if (name != NULL) {
        fprintf(stderr, "tg-probe: %s: %s\n", why, name);
    }

    fputs("usage: tg-probe UNIT < lines.jsonl\nunits:", stderr);

    for (unit = tg_probe_units; unit->name != NULL; unit++) {
        if (unit->run != NULL) {
            fprintf(stderr, " %s", unit->name);
        }
    }

    fputc('\n', stderr);

    return TG_PROBE_EXIT_USAGE;
}


/* Reads one line. Integers past int64 are JSON all the same: such a line is read
 * again with all its numbers as doubles. So is a NUL in a key, which no tree can
 * hold: it is read as U+0001, in keys and values alike. */
static json_t *
tg_probe_load(char *text, size_t len, json_error_t *error)
{
    char    *at;
    json_t  *line;

    line = json_loadb(text, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, error);

    if (line == NULL && json_error_code(error) == json_error_null_byte_in_key) {

        while ((at = memmem(text, len, "\\u0000", 6)) != NULL) {
            at[5] = '1';
        }

        line = json_loadb(text, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, error);
    }

    if (line == NULL && json_error_code(error) == json_error_numeric_overflow) {
        line = json_loadb(text, len,
                          JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL,
                          error);
    }

    return line;
}


/* Answers one line; *readable says whether it was JSON at all. */
static json_t *
tg_probe_answer(const tg_probe_unit_t *unit, char *text, size_t len, bool *readable)
{
    json_t        *line, *out, *id;
    json_error_t   error;

    line = tg_probe_load(text, len, &error);
    *readable = (line != NULL);

    if (line == NULL) {
        /* the parser's own text may quote bytes that are not UTF-8 */
        out = json_pack("{s:n, s:s+}", "id", "error", "not JSON: ", error.text);

        return out != NULL ? out : json_pack("{s:n, s:s}", "id", "error", "not JSON");
    }

    if (!json_is_object(line)) {
        json_decref(line);
        return json_pack("{s:n, s:s}", "id", "error", "not a JSON object");
    }

    out = unit->run(line);
    if (out == NULL) {
        out = tg_probe_error("not understood");
    }

    id = json_object_get(line, "id");

    if (json_is_object(out) && id != NULL && json_object_get(out, "id") == NULL) {
        json_t  *with_id;

        /* first in the line, where a reader looks for it */
        with_id = json_pack("{s:O}", "id", id);

        if (with_id != NULL && json_object_update(with_id, out) == 0) {
            json_decref(out);
            out = with_id;

        } else {
            json_decref(with_id);
        }
    }

    json_decref(line);

    return out;
}


static int
tg_probe_run(const tg_probe_unit_t *unit)
{
    int      rc;
    bool     readable;
    char    *text;
    size_t   cap;
    json_t  *out;
    ssize_t  n;

    rc = TG_PROBE_EXIT_OK;
    text = NULL;
    cap = 0;

    for ( ;; ) {
        n = getline(&text, &cap, stdin);
        if (n < 0) {
            break;
        }

        if (n > 0 && text[n - 1] == '\n') {
            n--;
        }

        out = tg_probe_answer(unit, text, (size_t) n, &readable);
        if (!readable) {
            rc = TG_PROBE_EXIT_INPUT;
        }

        if (out == NULL || json_dumpf(out, stdout, JSON_COMPACT | JSON_ENCODE_ANY) != 0
            || putchar('\n') == EOF)
        {
            fprintf(stderr, "tg-probe: cannot write an answer\n");
            json_decref(out);
            rc = TG_PROBE_EXIT_INPUT;
            break;
        }

        json_decref(out);
    }

    if (ferror(stdin) || fflush(stdout) != 0) {
        fprintf(stderr, "tg-probe: %s\n", strerror(errno));
        rc = TG_PROBE_EXIT_INPUT;
    }

    free(text);

    return rc;
}


int
main(int argc, char **argv)
{
    const tg_probe_unit_t  *unit;

    if (argc != 2) {
        return tg_probe_usage(NULL, NULL);
    }

    for (unit = tg_probe_units; unit->name != NULL; unit++) {
        if (strcmp(unit->name, argv[1]) != 0) {
            continue;
        }

        if (unit->run == NULL) {
            return tg_probe_usage("unit is not built in", argv[1]);
        }

        return tg_probe_run(unit);
    }

    return tg_probe_usage("unknown unit", argv[1]);
}
