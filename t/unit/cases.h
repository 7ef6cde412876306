/*
 * Reads a data set of JSON lines for a unit test: the folder is the environment
 * variable TOOLGATE_TEST_DATA or ../shared/data (tests run in the repository).
 */

#ifndef TG_TEST_CASES_H
#define TG_TEST_CASES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>


typedef void (*cases_line_pt)(void *ctx, const json_t *line);


/* jansson cannot hold a NUL in a key: such a line is read with the NUL written as
 * U+0001, in keys and values alike. */
static inline json_t *
cases_load(char *text)
{
    char          *at;
    json_t        *line;
    json_error_t   error;

    line = json_loads(text, JSON_ALLOW_NUL, &error);

    if (line == NULL && json_error_code(&error) == json_error_null_byte_in_key) {

        while ((at = strstr(text, "\\u0000")) != NULL) {
            at[5] = '1';
        }

        line = json_loads(text, JSON_ALLOW_NUL, &error);
    }

    return line;
}


/* Calls `each` for every line; returns their number, -1 (and says so) when the
 * file is absent, -2 when a line is not JSON. */
static inline long
cases_read(const char *name, cases_line_pt each, void *ctx)
{
    FILE        *file;
    char         path[4096], *text = NULL;
    long         count = 0;
    size_t       cap = 0;
    json_t      *line;
    const char  *folder = getenv("TOOLGATE_TEST_DATA");

    snprintf(path, sizeof(path), "%s/%s",
        folder == NULL ? "../shared/data" : folder, name);

    file = fopen(path, "r");
    if (file == NULL) {
        printf("data set %s: skipped, %s cannot be opened\n", name, path);
        return -1;
    }

    while (count >= 0 && getline(&text, &cap, file) > 0) {
        line = cases_load(text);

        if (line == NULL) {
            printf("data set %s: line %ld is no JSON object\n", name, count + 1);
            count = -2;
            break;
        }

        each(ctx, line);
        json_decref(line);
        count++;
    }

    free(text);
    fclose(file);

    return count;
}

#endif /* TG_TEST_CASES_H */
