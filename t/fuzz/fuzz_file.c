/*
 * Any bytes as paths and as texts of files: a path that is taken reads the same again when
 * it was shown; an edit changes nothing but what was found; a diff, put into the old text,
 * makes the new one.
 */

#include <stdio.h>
#include <stdlib.h>
#include <jansson.h>

#include "tg_file_diff.h"
#include "tg_file_match.h"
#include "tg_file_near.h"
#include "tg_file_path.h"


#define FUZZ_OUT_MAX  (8 * 1024 * 1024)

typedef struct {
    tg_str_t  left;       /* of the old text */
    tg_buf_t  made;
} patch_t;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static void
check(bool right)
{
    if (!right) {
        abort();
    }
}


static void
try_path(tg_str_t given)
{
    char       path[TG_FILE_PATH_MAX + 1], again[TG_FILE_PATH_MAX + 1];
    json_t    *shown;
    tg_buf_t   out;
    tg_str_t   text;

    if (tg_file_path(given, path) != TG_FILE_PATH_OK) {
        return;
    }

    check(path[0] != '\0' && path[0] != '/' && strstr(path, "//") == NULL);

    tg_buf_init(&out, FUZZ_OUT_MAX);
    check(tg_file_path_json(&out, tg_str_of(path)) == TG_OK);
    shown = json_loadb(out.data, out.len, JSON_DECODE_ANY, NULL);
    check(shown != NULL);

    text = (tg_str_t) { json_string_length(shown), json_string_value(shown) };
    if (text.len <= TG_FILE_PATH_MAX) {
        check(tg_file_path(text, again) == TG_FILE_PATH_OK && strcmp(path, again) == 0);
    }

    json_decref(shown);
    tg_buf_free(&out);
}


/* the next line of a text, with its end */
static tg_str_t
take_line(tg_str_t *text)
{
    tg_str_t     line;
    const char  *end;

    end = text->len == 0 ? NULL : memchr(text->data, '\n', text->len);
    line.data = text->data;
    line.len = end == NULL ? text->len : (size_t) (end + 1 - text->data);
    text->data += line.len;
    text->len -= line.len;

    return line;
}


static void
patch_line(patch_t *patch, char mark, tg_str_t line)
{
    tg_str_t  old;

    if (mark != '+') {
        old = take_line(&patch->left);
        check(tg_str_eq(old, line));
    }
    if (mark != '-') {
        (void) tg_buf_str(&patch->made, line);
    }
}


static void
try_diff(tg_str_t before, tg_str_t after)
{
    size_t    number, from;
    patch_t   patch;
    tg_buf_t  out;
    tg_str_t  diff, line, next;

    tg_buf_init(&out, FUZZ_OUT_MAX);
    tg_buf_init(&patch.made, FUZZ_OUT_MAX);
    patch.left = before;
    check(tg_file_diff(before, after, tg_str("f"), &out) == TG_OK);

    diff = tg_buf_get(&out);
    if (diff.len != 0) {
        (void) take_line(&diff);
        (void) take_line(&diff);
    }

    for (number = 1; diff.len != 0; /* void */) {
        line = take_line(&diff);

        if (line.data[0] == '@') {
            from = (size_t) strtoul(line.data + 4, NULL, 10);
            /* an empty range names the line before it */
            from += memcmp(strpbrk(line.data + 4, ", "), ",0 ", 3) == 0;
            for ( /* void */ ; number < from; number++) {
                (void) tg_buf_str(&patch.made, take_line(&patch.left));
            }
            continue;
        }

        next = (tg_str_t) { line.len - 1, line.data + 1 };
        if (diff.len != 0 && diff.data[0] == '\\') {
            (void) take_line(&diff);
            next.len--;
        }

        patch_line(&patch, line.data[0], next);
        number += line.data[0] != '+';
    }

    (void) tg_buf_str(&patch.made, patch.left);
    check(tg_str_eq(tg_buf_get(&patch.made), after));
    tg_buf_free(&patch.made);
    tg_buf_free(&out);
}


static void
try_edit(tg_str_t text, tg_str_t old_text, tg_str_t new_text)
{
    tg_buf_t               out;
    tg_str_t               after;
    tg_file_edit_t         edit;
    const tg_file_span_t  *last;
    tg_file_matches_t      matches;

    edit.old_text = old_text;
    edit.new_text = new_text;
    edit.expected = 1;
    edit.all = true;

    tg_buf_init(&out, TG_FILE_TEXT_MAX);

    if (tg_file_edit(text, &edit, &out, &matches) == TG_FILE_EDIT_OK) {
        after = tg_buf_get(&out);
        last = &matches.spans[matches.count - 1];

        check(memcmp(after.data == NULL ? "" : after.data, text.data,
                     matches.spans[0].start) == 0);
        check(after.len >= text.len - last->end);
        check(text.len == last->end
              || memcmp(after.data + after.len - (text.len - last->end),
                        text.data + last->end, text.len - last->end) == 0);
        try_diff(text, after.data == NULL ? tg_str("") : after);
    }

    tg_file_matches_free(&matches);
    tg_buf_free(&out);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t          a, b;
    tg_str_t        one, two, three;
    tg_file_near_t  near[TG_FILE_NEAR_MAX];

    if (size < 3) {
        return 0;
    }

    /* the first two bytes say where the three texts are cut */
    a = (size - 2) * data[0] / 256;
    b = (size - 2 - a) * data[1] / 256;
    one = (tg_str_t) { a, (const char *) data + 2 };
    two = (tg_str_t) { b, one.data + a };
    three = (tg_str_t) { size - 2 - a - b, two.data + b };

    try_path(one);
    (void) tg_file_glob(two, one);
    try_edit(one, two, three);
    try_diff(one, three);
    (void) tg_file_near(one, two, near);
    (void) tg_file_is_text(one, false);

    return 0;
}
