/*
 * Paths, matching, nearby lines and diffs of workspace files.
 */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#include "tg_file_diff.h"
#include "tg_file_match.h"
#include "tg_file_near.h"
#include "tg_file_path.h"


static void
path_is(const char *given, tg_file_path_e rc, const char *wanted)
{
    char  path[TG_FILE_PATH_MAX + 1];

    assert_int_equal(tg_file_path(tg_str_of(given), path), rc);
    if (wanted != NULL) {
        assert_string_equal(path, wanted);
    }
}


static void
test_path_forms(void **state)
{
    (void) state;

    path_is("a/b", TG_FILE_PATH_OK, "a/b");
    path_is("./a//b/./", TG_FILE_PATH_OK, "a/b");
    path_is(".", TG_FILE_PATH_OK, ".");
    path_is("/workspace", TG_FILE_PATH_OK, ".");
    path_is("/workspace/", TG_FILE_PATH_OK, ".");
    path_is("/workspace/a/b", TG_FILE_PATH_OK, "a/b");
    path_is("...", TG_FILE_PATH_OK, "...");
    path_is(" a b ", TG_FILE_PATH_OK, " a b ");
    path_is("-rf", TG_FILE_PATH_OK, "-rf");

    path_is("/workspaces/a", TG_FILE_PATH_OUTSIDE, NULL);
    path_is("/etc/passwd", TG_FILE_PATH_OUTSIDE, NULL);
    path_is("../../etc/passwd", TG_FILE_PATH_OUTSIDE, NULL);
    path_is("a/../../x", TG_FILE_PATH_OUTSIDE, NULL);
    path_is("a/..", TG_FILE_PATH_OUTSIDE, NULL);
    path_is("/workspace/../x", TG_FILE_PATH_OUTSIDE, NULL);
    path_is("", TG_FILE_PATH_INVALID, NULL);
}


static void
test_path_bounds(void **state)
{
    char      path[TG_FILE_PATH_MAX + 1], *text;
    tg_str_t  nul;

    (void) state;

    nul = tg_str("a\0b");
    assert_int_equal(tg_file_path(nul, path), TG_FILE_PATH_INVALID);

    text = malloc(5000);
    memset(text, 'x', 5000);
    assert_int_equal(tg_file_path((tg_str_t) { 5000, text }, path), TG_FILE_PATH_INVALID);
    assert_int_equal(tg_file_path((tg_str_t) { 256, text }, path), TG_FILE_PATH_INVALID);
    assert_int_equal(tg_file_path((tg_str_t) { 255, text }, path), TG_FILE_PATH_OK);
    assert_int_equal(strlen(path), 255);

    text[200] = '/';
    assert_int_equal(tg_file_path((tg_str_t) { 400, text }, path), TG_FILE_PATH_OK);
    free(text);
}


/* names that are no UTF-8 are shown in a form that can be given back */
static void
test_path_escapes(void **state)
{
    char         path[TG_FILE_PATH_MAX + 1];
    size_t       i;
    json_t      *shown;
    tg_buf_t     out;

    static const char *const  names[] = {
        "plain", "\xff\xfe", "a\nb\t\x1b\"q\"", "caf\xc3\xa9", "\\xff", "\\x5c", "a\\b",
        "\\x41", "\xe2\x80", "\\\xff\\"
    };

    (void) state;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        tg_buf_init(&out, 256);
        assert_int_equal(tg_file_path_json(&out, tg_str_of(names[i])), TG_OK);
        shown = json_loadb(out.data, out.len, JSON_DECODE_ANY, NULL);
        assert_non_null(shown);
        path_is(json_string_value(shown), TG_FILE_PATH_OK, names[i]);
        json_decref(shown);
        tg_buf_free(&out);
    }

    path_is("\\x41", TG_FILE_PATH_OK, "\\x41");
    assert_int_equal(tg_file_path(tg_str("\\x2e\\x2e"), path), TG_FILE_PATH_OK);
    assert_string_equal(path, "\\x2e\\x2e");
}


static void
test_glob(void **state)
{
    size_t  i;

    static const struct {
        const char  *pattern;
        const char  *path;
        bool         fits;
    } cases[] = {
        { "*.py", "a.py", true },
        { "*.py", "dir/a.py", true },
        { "*.py", "a.pyc", false },
        { "dir/*", "dir/a/b", true },
        { "**/*.py", "a.py", true },
        { "**/*.py", "x/y/a.py", true },
        { "?.txt", "\xc3\xa9.txt", true },
        { "?.txt", "ab.txt", false },
        { "[ab].c", "b.c", true },
        { "[!ab].c", "b.c", false },
        { "[!ab].c", "c.c", true },
        { "[a-c]x", "bx", true },
        { "[]]x", "]x", true },
        { "[ab", "[ab", true },
        { "", "a", false },
        { "*", "", true },
        { "a*b*c", "aXbYbZc", true },
        { "a*b*c", "aXbYbZ", false },
        { "!x", "!x", true }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (tg_file_glob(tg_str_of(cases[i].pattern), tg_str_of(cases[i].path))
            != cases[i].fits)
        {
            fail_msg("%s on %s", cases[i].pattern, cases[i].path);
        }
    }
}


/* many stars take time of pattern times text, not more */
static void
test_glob_stars(void **state)
{
    char  text[2001];

    (void) state;
    memset(text, 'a', 2000);
    text[2000] = '\0';
    assert_false(tg_file_glob(tg_str("*a*a*a*a*a*a*a*a*a*a*a*a*a*b"), tg_str_of(text)));
}


static tg_file_edit_e
edit(const char *text, const char *old_text, const char *new_text, int64_t expected,
    bool all, tg_buf_t *out, tg_file_matches_t *matches)
{
    tg_file_edit_t  one;

    one.old_text = tg_str_of(old_text);
    one.new_text = tg_str_of(new_text);
    one.expected = expected;
    one.all = all;

    tg_buf_init(out, TG_FILE_TEXT_MAX);
    return tg_file_edit(tg_str_of(text), &one, out, matches);
}


static void
edit_gives(const char *text, const char *old_text, const char *new_text,
    const char *wanted, bool quotes)
{
    tg_buf_t           out;
    tg_file_matches_t  matches;

    assert_int_equal(edit(text, old_text, new_text, 1, true, &out, &matches),
                     TG_FILE_EDIT_OK);
    (void) tg_buf_char(&out, '\0');
    assert_string_equal(out.data, wanted);
    assert_int_equal(matches.quotes, quotes);
    tg_file_matches_free(&matches);
    tg_buf_free(&out);
}


static void
edit_fails(const char *text, const char *old_text, const char *new_text, int64_t expected,
    tg_file_edit_e why, size_t count)
{
    tg_buf_t           out;
    tg_file_matches_t  matches;

    assert_int_equal(edit(text, old_text, new_text, expected, false, &out, &matches), why);
    assert_int_equal(matches.count, count);
    tg_file_matches_free(&matches);
    tg_buf_free(&out);
}


static void
test_edit_bytes(void **state)
{
    (void) state;

    edit_gives("one two one", "one", "1", "1 two 1", false);
    edit_gives("x", "x", "\\1 $& & %s", "\\1 $& & %s", false);
    edit_gives("no end", "end", "", "no ", false);
    edit_gives("a\nb", "b", "c", "a\nc", false);
    edit_gives("\xef\xbb\xbfhead\nx\n", "head", "HEAD", "\xef\xbb\xbfHEAD\nx\n", false);
}


/* LF fits CRLF and the other way; what is put in ends as the lines there do */
static void
test_edit_line_ends(void **state)
{
    (void) state;

    edit_gives("a\r\nb\r\nc\r\n", "a\nb", "x\ny", "x\r\ny\r\nc\r\n", false);
    edit_gives("a\r\nb\r\n", "b", "b1\nb2", "a\r\nb1\r\nb2\r\n", false);
    edit_gives("a\r\nb\r\n", "a\r\nb", "x\r\ny", "x\r\ny\r\n", false);
    edit_gives("a\nb\n", "a\r\nb", "x", "x\n", false);
    edit_gives("a\r\nb\nc\n", "b", "x\ny", "a\r\nx\ny\nc\n", false);
    edit_gives("a\r\nb\nc\n", "a\nb", "x\ny", "x\r\ny\nc\n", false);
    edit_gives("a\nb\r\nc", "c", "d", "a\nb\r\nd", false);
}


/* a line end at the edge of what is wanted takes its CR with it */
static void
test_edit_line_end_edges(void **state)
{
    static const char  crlf[] = "a\r\nfoo\r\nb\r\n";

    (void) state;

    edit_gives(crlf, "\nfoo", "", "a\r\nb\r\n", false);
    edit_gives(crlf, "foo\n", "", "a\r\nb\r\n", false);
    edit_gives(crlf, "\nfoo", "\nbar\nbaz", "a\r\nbar\r\nbaz\r\nb\r\n", false);
    edit_gives(crlf, "\nfoo\r\nb", "\nx", "a\r\nx\r\n", false);
    edit_gives(crlf, "\n", "\n\n", "a\r\n\r\nfoo\r\n\r\nb\r\n\r\n", false);
    edit_gives("a\r\n\xe2\x80\x9cq\xe2\x80\x9d\r\n", "\n\"q\"", "\nx", "a\r\nx\r\n",
               true);

    /* both kinds are found; bytes that name CRLF are found as they are */
    edit_fails("x\r\ny\r\n--\nx\ny\n", "x\ny", "z", 1, TG_FILE_EDIT_AMBIGUOUS, 2);
    edit_gives("x\r\ny\r\n--\nx\ny\n", "x\r\ny", "z", "z\r\n--\nx\ny\n", false);
    edit_gives("a\nb\n", "\nb", "\nc", "a\nc\n", false);
}


static void
test_edit_quotes(void **state)
{
    (void) state;

    edit_gives("say \xe2\x80\x9chi\xe2\x80\x9d, it\xe2\x80\x99s", "\"hi\"", "\"ho\"",
               "say \"ho\", it\xe2\x80\x99s", true);
    edit_gives("it's \xe2\x80\x98x\xe2\x80\x99", "it\xe2\x80\x99s", "its",
               "its \xe2\x80\x98x\xe2\x80\x99", true);
    /* as it stands comes first, and alone */
    edit_gives("\"a\" \xe2\x80\x9c" "a\xe2\x80\x9d", "\"a\"", "b",
               "b \xe2\x80\x9c" "a\xe2\x80\x9d", false);
}


static void
test_edit_refusals(void **state)
{
    (void) state;

    edit_fails("text", "", "x", 1, TG_FILE_EDIT_MISSING_OLD, 0);
    edit_fails("text", "e", "e", 1, TG_FILE_EDIT_NO_CHANGE, 0);
    edit_fails("text", "longer than the text", "x", 1, TG_FILE_EDIT_NOT_FOUND, 0);
    edit_fails("", "x", "y", 1, TG_FILE_EDIT_NOT_FOUND, 0);
    edit_fails("aaaa", "aa", "b", 3, TG_FILE_EDIT_AMBIGUOUS, 2);
    edit_fails("aaaa", "aa", "b", 1, TG_FILE_EDIT_AMBIGUOUS, 2);
    edit_fails("aaaa", "aa", "b", 2, TG_FILE_EDIT_OK, 2);
}


/* 1 MiB that would become 500 MiB is refused before it is made */
static void
test_edit_too_large(void **state)
{
    char               *text, *piece;
    tg_buf_t            out;
    tg_file_matches_t   matches;

    (void) state;

    text = malloc((1 << 20) + 1);
    memset(text, 'a', 1 << 20);
    text[1 << 20] = '\0';
    piece = malloc(501);
    memset(piece, 'b', 500);
    piece[500] = '\0';

    assert_int_equal(edit(text, "a", piece, 1, true, &out, &matches),
                     TG_FILE_EDIT_TOO_LARGE);
    assert_null(out.data);
    tg_file_matches_free(&matches);

    assert_int_equal(edit(text, "a", "bb", 1, true, &out, &matches), TG_FILE_EDIT_OK);
    assert_int_equal(out.len, TG_FILE_TEXT_MAX);
    tg_file_matches_free(&matches);
    tg_buf_free(&out);
    free(piece);
    free(text);
}


static void
test_lines(void **state)
{
    tg_str_t  text;

    (void) state;

    text = tg_str("one\r\ntwo\nthree");
    assert_int_equal(tg_file_line_count(tg_str("")), 0);
    assert_int_equal(tg_file_line_count(tg_str("a\n")), 1);
    assert_int_equal(tg_file_line_count(text), 3);
    assert_int_equal(tg_file_line_at(text, 0), 1);
    assert_int_equal(tg_file_line_at(text, 5), 2);
    assert_int_equal(tg_file_line_at(text, 9), 3);
    assert_true(tg_str_eq(tg_file_line_around(text, 1), tg_str("one")));
    assert_true(tg_str_eq(tg_file_line_around(text, 6), tg_str("two")));
    assert_true(tg_str_eq(tg_file_line_around(text, 14), tg_str("three")));

    assert_int_equal(tg_file_chars(tg_str("a\xc3\xa9z")), 3);
    assert_int_equal(tg_file_head(tg_str("a\xc3\xa9z"), 2), 3);
    assert_int_equal(tg_file_head(tg_str("a\xc3\xa9z"), 9), 4);

    assert_true(tg_file_is_text(tg_str("caf\xc3\xa9\n"), false));
    assert_false(tg_file_is_text(tg_str("\x89PNG"), false));
    assert_false(tg_file_is_text(tg_str("a\0b"), false));
    assert_true(tg_file_is_text(tg_str("a\0b"), true));
}


static void
test_near(void **state)
{
    size_t          n;
    tg_file_near_t  near[TG_FILE_NEAR_MAX];

    (void) state;

    n = tg_file_near(tg_str("alpha\n  return \xe2\x80\x9cvalue\xe2\x80\x9d;\r\nomega\n"),
                     tg_str("return \"valve\";"), near);
    assert_int_equal(n, 1);
    assert_int_equal(near[0].line, 2);
    assert_true(near[0].score > 0.85 && near[0].score < 1);
    assert_true(near[0].text.data[near[0].text.len - 1] == ';');

    /* the best first, the earlier one of two that are alike, five at most */
    n = tg_file_near(tg_str("abcd1\nabcd12\nabcd1\nabcd3\nabcd4\nabcd5\nabcd6\n"),
                     tg_str("abcd12"), near);
    assert_int_equal(n, TG_FILE_NEAR_MAX);
    assert_int_equal(near[0].line, 2);
    assert_int_equal(near[1].line, 1);
    assert_int_equal(near[2].line, 3);

    /* the beginning is enough */
    n = tg_file_near(tg_str("xxdefa very much longer line than the one\n"),
                     tg_str("defa"), near);
    assert_int_equal(n, 1);

    assert_int_equal(tg_file_near(tg_str(""), tg_str("x"), near), 0);
    assert_int_equal(tg_file_near(tg_str("zzz\n"), tg_str("abcdefgh"), near), 0);
}


static void
diff_is(const char *before, const char *after, const char *wanted)
{
    tg_buf_t  out;

    tg_buf_init(&out, 1 << 20);
    assert_int_equal(tg_file_diff(tg_str_of(before), tg_str_of(after), tg_str("f"), &out),
                     TG_OK);
    (void) tg_buf_char(&out, '\0');
    assert_string_equal(out.data, wanted);
    tg_buf_free(&out);
}


static void
test_diff(void **state)
{
    (void) state;

    diff_is("a\n", "a\n", "");
    diff_is("a\nb\nc\n", "a\nB\nc\n",
            "--- f before\n+++ f after\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n");
    diff_is("", "a\n", "--- f before\n+++ f after\n@@ -0,0 +1 @@\n+a\n");
    diff_is("a\n", "", "--- f before\n+++ f after\n@@ -1 +0,0 @@\n-a\n");
    diff_is("a", "a\n", "--- f before\n+++ f after\n@@ -1 +1 @@\n-a\n"
                        "\\ No newline at end of file\n+a\n");
    diff_is("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\n6\n7\n8\n9\n",
            "--- f before\n+++ f after\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n");
    /* two changes with seven lines between them are two hunks, with six they are one */
    diff_is("a\n1\n2\n3\n4\n5\n6\n7\nb\n", "A\n1\n2\n3\n4\n5\n6\n7\nB\n",
            "--- f before\n+++ f after\n@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n"
            "@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-b\n+B\n");
    diff_is("a\n1\n2\n3\n4\n5\n6\nb\n", "A\n1\n2\n3\n4\n5\n6\nB\n",
            "--- f before\n+++ f after\n@@ -1,8 +1,8 @@\n-a\n+A\n 1\n 2\n 3\n 4\n 5\n 6\n"
            "-b\n+B\n");
}


/* puts a diff's changes into the text again: what comes out is the other text */
static void
diff_applies(const char *before, const char *after)
{
    char        *p, *line, *next;
    size_t       skip;
    tg_buf_t     out, made;
    const char  *from;
    unsigned     start;

    tg_buf_init(&out, 1 << 24);
    tg_buf_init(&made, 1 << 24);
    (void) tg_file_diff(tg_str_of(before), tg_str_of(after), tg_str("f"), &out);
    (void) tg_buf_char(&out, '\0');

    from = before;
    start = 1;

    for (p = out.data; *p != '\0'; p = next) {
        line = p;
        next = strchr(p, '\n') + 1;

        if (line[0] == '@') {
            skip = (size_t) strtoul(line + 4, NULL, 10);
            while (start < skip) {
                (void) tg_buf_append(&made, from, (size_t) (strchr(from, '\n') + 1 - from));
                from = strchr(from, '\n') + 1;
                start++;
            }
        } else if (strncmp(line, "---", 3) != 0 && strncmp(line, "+++", 3) != 0) {
            if (line[0] != '-') {
                (void) tg_buf_append(&made, line + 1, (size_t) (next - line - 1));
            }
            if (line[0] != '+') {
                assert_memory_equal(from, line + 1, (size_t) (next - line - 1));
                from = strchr(from, '\n') + 1;
                start++;
            }
        }
    }

    (void) tg_buf_cstr(&made, from);
    (void) tg_buf_char(&made, '\0');
    assert_string_equal(made.data, after);
    tg_buf_free(&out);
    tg_buf_free(&made);
}


static void
random_text(tg_buf_t *out, unsigned *seed, unsigned lines, unsigned kinds)
{
    tg_buf_init(out, 1 << 20);
    while (lines-- > 0) {
        *seed = *seed * 1103515245 + 12345;
        (void) tg_buf_printf(out, "l%u\n", *seed / 65536 % kinds);
    }
    (void) tg_buf_char(out, '\0');
}


static void
test_diff_random(void **state)
{
    unsigned  i, seed;
    tg_buf_t  before, after;

    (void) state;

    for (i = 0, seed = 7; i < 400; i++) {
        random_text(&before, &seed, i % 40 + 1, i % 7 + 2);
        random_text(&after, &seed, (i * 7) % 40 + 1, i % 7 + 2);
        diff_applies(before.data, after.data);
        tg_buf_free(&before);
        tg_buf_free(&after);
    }

    /* more than the bound of steps: one block */
    random_text(&before, &seed, 3000, 100000);
    random_text(&after, &seed, 3000, 100000);
    diff_applies(before.data, after.data);
    tg_buf_free(&before);
    tg_buf_free(&after);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_path_forms),
        cmocka_unit_test(test_path_bounds),
        cmocka_unit_test(test_path_escapes),
        cmocka_unit_test(test_glob),
        cmocka_unit_test(test_glob_stars),
        cmocka_unit_test(test_edit_bytes),
        cmocka_unit_test(test_edit_line_ends),
        cmocka_unit_test(test_edit_line_end_edges),
        cmocka_unit_test(test_edit_quotes),
        cmocka_unit_test(test_edit_refusals),
        cmocka_unit_test(test_edit_too_large),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_near),
        cmocka_unit_test(test_diff),
        cmocka_unit_test(test_diff_random),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
