/*
 * edit_workspace_file and multi_edit_workspace_file: pieces of a file that the session
 * has read are replaced. The file is written once, when all edits fit, and only when it
 * still holds what the session knows.
 */

#include "files/work.h"
#include "tg_file_diff.h"
#include "tg_file_near.h"


#define TGD_EDITS_MAX        100
#define TGD_EDIT_MATCHES     20
#define TGD_EDIT_LINE_CHARS  200
#define TGD_EDIT_LIST_MAX    (60 * 1024)      /* bytes of matches in one answer */

typedef struct {
    tg_file_edit_t   edits[TGD_EDITS_MAX];
    size_t           count;
    bool             many;
    size_t           failed;          /* index of the edit that failed; count: none */
    size_t           replacements;    /* of all */
    bool             quotes;
    char             path[TG_FILE_PATH_MAX + 1];
    tgd_file_t       file;
    tg_buf_t         text;            /* as edited so far */
    tg_buf_t         done;            /* the "edits" of an answer */
} tgd_edit_t;


/* ,"suggested_action":"…" naming the path */
static void
about_action(tgd_work_t *work, const char *path, const char *before, const char *after)
{
    tg_buf_t  text;

    tg_buf_init(&text, TG_FILE_PATH_MAX + 512);
    (void) tg_buf_cstr(&text, before);
    (void) tg_buf_cstr(&text, path);
    (void) tg_buf_cstr(&text, after);

    (void) tg_buf_cstr(&work->about, ",\"suggested_action\":");
    (void) tg_buf_json_string(&work->about, tg_buf_get(&text));
    tg_buf_free(&text);
}


static void
about_path(tgd_work_t *work, const char *path)
{
    (void) tg_buf_char(&work->about, ',');
    tgd_out_path(&work->about, "path", path);
}


/* "text":"…","snippet":"…" of a line: without the blanks around it, and as it is */
static void
append_line(tg_buf_t *out, tg_str_t line)
{
    tg_str_t  trimmed;

    line.len = tg_file_head(line, TGD_EDIT_LINE_CHARS);
    trimmed = line;

    while (trimmed.len > 0 && (uint8_t) trimmed.data[0] <= ' ') {
        trimmed.data++;
        trimmed.len--;
    }
    while (trimmed.len > 0 && (uint8_t) trimmed.data[trimmed.len - 1] <= ' ') {
        trimmed.len--;
    }

    (void) tg_buf_cstr(out, "\"text\":");
    (void) tg_buf_json_string(out, trimmed);
    (void) tg_buf_cstr(out, ",\"snippet\":");
    (void) tg_buf_json_string(out, line);
}


/* "matches":[{line,text,snippet}] */
static void
append_matches(tg_buf_t *out, tg_str_t text, const tg_file_matches_t *matches)
{
    size_t  i, start;

    (void) tg_buf_cstr(out, "\"matches\":[");

    for (i = 0; i < matches->count && i < TGD_EDIT_MATCHES && out->len < TGD_EDIT_LIST_MAX;
         i++)
    {
        start = matches->spans[i].start;
        (void) tg_buf_printf(out, "%s{\"line\":%zu,", i == 0 ? "" : ",",
                             tg_file_line_at(text, start));
        append_line(out, tg_file_line_around(text, start));
        (void) tg_buf_char(out, '}');
    }

    (void) tg_buf_char(out, ']');
}


static bool
fail_not_found(tgd_work_t *work, const tgd_edit_t *edit, tg_str_t text,
    const tg_file_edit_t *one)
{
    size_t          i, n;
    tg_file_near_t  near[TG_FILE_NEAR_MAX];

    n = tg_file_near(text, one->old_text, near);

    (void) tg_buf_cstr(&work->about, ",\"occurrences\":0,\"nearby_candidates\":[");
    for (i = 0; i < n; i++) {
        (void) tg_buf_printf(&work->about, "%s{\"line\":%zu,", i == 0 ? "" : ",",
                             near[i].line);
        append_line(&work->about, near[i].text);
        (void) tg_buf_printf(&work->about, ",\"score\":%.3f}", near[i].score);
    }
    (void) tg_buf_char(&work->about, ']');

    about_action(work, edit->path, "Read ", " again with read_workspace_file and give "
                 "old_text as it stands there.");
    return tgd_work_fail(work, "snippet_not_found", NULL, "old_text is not in the file");
}


static bool
fail_ambiguous(tgd_work_t *work, const tgd_edit_t *edit, tg_str_t text,
    const tg_file_edit_t *one, const tg_file_matches_t *matches)
{
    (void) tg_buf_printf(&work->about, ",\"occurrences\":%zu,"
                         "\"expected_replacements\":%lld,", matches->count,
                         (long long) one->expected);
    append_matches(&work->about, text, matches);
    about_action(work, edit->path, "Give more of ", " around the place in old_text, or set "
                 "expected_replacements to the number of occurrences, or replace_all.");

    tgd_error_set(&work->error, "ambiguous_edit", NULL,
                  "old_text is there %zu times, not %lld", matches->count,
                  (long long) one->expected);
    return false;
}


static bool
edit_fail(tgd_work_t *work, tgd_edit_t *edit, tg_file_edit_e why, tg_str_t text,
    const tg_file_edit_t *one, const tg_file_matches_t *matches)
{
    switch (why) {

    case TG_FILE_EDIT_MISSING_OLD:
        return tgd_work_fail(work, "missing_old_text", NULL, "old_text must not be empty");

    case TG_FILE_EDIT_NO_CHANGE:
        return tgd_work_fail(work, "no_change", NULL, "the edit would change nothing");

    case TG_FILE_EDIT_NOT_FOUND:
        return fail_not_found(work, edit, text, one);

    case TG_FILE_EDIT_AMBIGUOUS:
        return fail_ambiguous(work, edit, text, one, matches);

    case TG_FILE_EDIT_TOO_LARGE:
        return tgd_work_fail(work, "file_too_large", NULL, "the file would be over 2 MiB");

    default:
        return tgd_work_fail(work, "io_failed", NULL, "out of memory");
    }
}


/* {"index","replacements","used_quote_normalization","matches"} of one edit */
static void
edit_note(tgd_edit_t *edit, size_t index, tg_str_t text, const tg_file_matches_t *matches)
{
    (void) tg_buf_printf(&edit->done, "%s{\"index\":%zu,\"replacements\":%zu,"
                         "\"used_quote_normalization\":%s,", index == 0 ? "" : ",", index,
                         matches->count, matches->quotes ? "true" : "false");
    append_matches(&edit->done, text, matches);
    (void) tg_buf_char(&edit->done, '}');
}


/* edit by edit on the text as the ones before have left it */
static bool
edit_apply(tgd_work_t *work, tgd_edit_t *edit)
{
    size_t             i;
    tg_buf_t           next;
    tg_str_t           text;
    tg_file_edit_e     rc;
    tg_file_matches_t  matches;

    text = (tg_str_t) { edit->file.len, edit->file.data };

    for (i = 0; i < edit->count; i++) {
        tg_buf_init(&next, TG_FILE_TEXT_MAX);
        rc = tg_file_edit(text, &edit->edits[i], &next, &matches);

        if (rc == TG_FILE_EDIT_OK) {
            edit->replacements += matches.count;
            edit->quotes = edit->quotes || matches.quotes;
            edit_note(edit, i, text, &matches);

        } else {
            edit->failed = i;
            (void) edit_fail(work, edit, rc, text, &edit->edits[i], &matches);
        }

        tg_file_matches_free(&matches);

        if (rc != TG_FILE_EDIT_OK) {
            tg_buf_free(&next);
            return false;
        }

        tg_buf_free(&edit->text);
        edit->text = next;
        text = next.len == 0 ? tg_str("") : tg_buf_get(&next);
    }

    /* edits that take each other back leave nothing to write */
    return !tg_str_eq(text, (tg_str_t) { edit->file.len, edit->file.data })
           || tgd_work_fail(work, "no_change", NULL, "the edits would change nothing");
}


/* the file as the session knows it */
static bool
edit_read(tgd_work_t *work, tgd_edit_t *edit)
{
    if (work->known[0] == '\0') {
        about_action(work, edit->path, "Read ", " with read_workspace_file before it is "
                     "edited.");
        return tgd_work_fail(work, "file_not_read", NULL,
                             "the file has not been read in this session");
    }

    if (!tgd_tree_read(&work->tree, edit->path, TG_FILE_TEXT_MAX, &edit->file,
                       &work->error))
    {
        return false;
    }

    if (strcmp(edit->file.hash, work->known) != 0) {
        about_action(work, edit->path, "Read ", " again with read_workspace_file: it has "
                     "changed.");
        return tgd_work_fail(work, "file_modified_since_read", NULL,
                             "the file has changed since it was read");
    }

    if (!tg_file_is_text((tg_str_t) { edit->file.len, edit->file.data }, false)) {
        return tgd_work_fail(work, "not_utf8_text", NULL, "file is not UTF-8 text");
    }

    return true;
}


/* true when nobody else has changed the file while the edit was made */
static bool
edit_unchanged(tgd_work_t *work, tgd_edit_t *edit)
{
    bool        same;
    tgd_file_t  now;

    if (!tgd_tree_read(&work->tree, edit->path, TG_FILE_TEXT_MAX, &now, &work->error)) {
        return false;
    }

    same = strcmp(now.hash, edit->file.hash) == 0;
    tgd_file_free(&now);

    return same || tgd_work_fail(work, "file_modified_since_read", NULL,
                                 "the file was changed while it was edited");
}


static bool
edit_write(tgd_work_t *work, tgd_edit_t *edit, int64_t *mtime_ns)
{
    bool          done;
    char          hash[TGD_HASH_HEX + 1];
    tg_str_t      text;
    int64_t       growth;
    tgd_staged_t  staged;

    text = tg_buf_get(&edit->text);
    growth = (int64_t) text.len - (int64_t) edit->file.len;

    if (growth > 0 && !tgd_tree_room(&work->tree, growth, 0, &work->error)) {
        return false;
    }

    if (!tgd_tree_stage(&work->tree, edit->path, text, edit->file.mode, &staged,
                        &work->error))
    {
        return false;
    }

    done = edit_unchanged(work, edit)
           && tgd_tree_place(&staged, edit->path, true, false, &work->error);
    tgd_tree_settle(&staged, !done);

    if (done) {
        *mtime_ns = staged.mtime_ns;
        tg_json_sha256_hex(text, hash);
        tgd_work_knows(work, edit->path, hash);
    }

    return done;
}


static bool
edit_answer(tgd_work_t *work, tgd_edit_t *edit, int64_t mtime_ns)
{
    tg_buf_t   diff;
    tg_str_t   after;
    tg_buf_t  *out;

    out = &work->out;
    after = edit->text.len == 0 ? tg_str("") : tg_buf_get(&edit->text);

    tg_buf_init(&diff, 4 * TG_FILE_TEXT_MAX);
    (void) tg_file_diff((tg_str_t) { edit->file.len, edit->file.data }, after,
                        tg_str_of(edit->path), &diff);

    (void) tg_buf_cstr(out, "{\"ok\":true,");
    tgd_out_path(out, "path", edit->path);
    (void) tg_buf_char(out, ',');
    tgd_out_absolute(out, edit->path);

    if (edit->many) {
        (void) tg_buf_printf(out, ",\"edit_count\":%zu,\"replacements\":%zu,\"edits\":[",
                             edit->count, edit->replacements);
        (void) tg_buf_str(out, tg_buf_get(&edit->done));
        (void) tg_buf_char(out, ']');

    } else {
        (void) tg_buf_printf(out, ",\"replacements\":%zu,\"used_quote_normalization\":%s",
                             edit->replacements, edit->quotes ? "true" : "false");
    }

    tgd_out_text(out, "diff", diff.len == 0 ? tg_str("") : tg_buf_get(&diff),
                 TGD_WORK_SHOWN_MAX, TGD_WORK_PREVIEW);
    (void) tg_buf_printf(out, ",\"size\":%zu,\"mtime_ns\":%lld}", edit->text.len,
                         (long long) mtime_ns);

    tg_buf_free(&diff);
    return true;
}


static bool
edit_run(tgd_work_t *work, tgd_edit_t *edit)
{
    bool     done;
    int64_t  mtime_ns;

    edit->failed = edit->count;
    tg_buf_init(&edit->text, TG_FILE_TEXT_MAX);
    tg_buf_init(&edit->done, 2 * TGD_EDIT_LIST_MAX);

    done = edit_read(work, edit) && edit_apply(work, edit)
           && edit_write(work, edit, &mtime_ns) && edit_answer(work, edit, mtime_ns);

    if (!done) {
        about_path(work, edit->path);
        if (edit->many) {
            (void) tg_buf_printf(&work->about, ",\"edit_count\":%zu", edit->count);
        }
        if (edit->many && edit->failed < edit->count) {
            (void) tg_buf_printf(&work->about, ",\"failed_edit_index\":%zu", edit->failed);
        }
    }

    tg_buf_free(&edit->text);
    tg_buf_free(&edit->done);
    tgd_file_free(&edit->file);
    return done;
}


bool
tgd_files_edit(tgd_work_t *work)
{
    tg_file_edit_t     *one;
    static tgd_edit_t   edit;

    static const char *const  names[] = {
        "path", "old_text", "new_text", "expected_replacements", "replace_all", NULL
    };

    memset(&edit, 0, sizeof(edit));
    edit.count = 1;
    one = &edit.edits[0];
    one->expected = 1;

    if (!tgd_arg_known(work, names)
        || !tgd_arg_path(work, true, edit.path)
        || !tgd_arg_string(work, "old_text", false, &one->old_text)
        || !tgd_arg_string(work, "new_text", true, &one->new_text)
        || !tgd_arg_no_nul(work, "new_text", one->new_text)
        || !tgd_arg_number(work, "expected_replacements", 1, INT32_MAX, &one->expected)
        || !tgd_arg_flag(work, "replace_all", &one->all))
    {
        return false;
    }

    if (one->old_text.len == 0) {
        about_path(work, edit.path);
        return tgd_work_fail(work, "missing_old_text", NULL, "old_text must not be empty");
    }

    return edit_run(work, &edit);
}


/* one object of the list, by the same rules as the arguments of a single edit */
static bool
multi_item(tgd_work_t *work, json_t *json, bool all, tg_file_edit_t *one)
{
    bool     done;
    json_t  *outer;

    static const char *const  names[] = {
        "old_text", "new_text", "expected_replacements", "replace_all", NULL
    };

    if (!json_is_object(json)) {
        return tgd_work_fail(work, "invalid_edit", NULL, "each edit must be an object");
    }

    one->expected = 1;
    one->all = all;

    outer = work->arguments;
    work->arguments = json;
    done = tgd_arg_known(work, names)
           && tgd_arg_string(work, "old_text", false, &one->old_text)
           && tgd_arg_string(work, "new_text", true, &one->new_text)
           && tgd_arg_number(work, "expected_replacements", 1, INT32_MAX, &one->expected)
           && tgd_arg_flag(work, "replace_all", &one->all);
    work->arguments = outer;

    if (!done) {
        work->error.type = "invalid_edit";
        return false;
    }

    if (one->old_text.len == 0) {
        return tgd_work_fail(work, "missing_old_text", NULL, "old_text must not be empty");
    }

    return tgd_arg_no_nul(work, "new_text", one->new_text);
}


bool
tgd_files_multi_edit(tgd_work_t *work)
{
    bool                all;
    size_t              i;
    json_t             *edits;
    static tgd_edit_t   edit;

    static const char *const  names[] = { "path", "edits", "replace_all", NULL };

    memset(&edit, 0, sizeof(edit));
    edit.many = true;
    all = false;

    if (!tgd_arg_known(work, names)
        || !tgd_arg_path(work, true, edit.path)
        || !tgd_arg_flag(work, "replace_all", &all))
    {
        return false;
    }

    edits = json_object_get(work->arguments, "edits");
    edit.count = json_array_size(edits);

    if (edit.count == 0 || edit.count > TGD_EDITS_MAX) {
        about_path(work, edit.path);
        return tgd_work_fail(work, "invalid_edits", NULL,
                             "edits must be a list of 1 to 100 edits");
    }

    for (i = 0; i < edit.count; i++) {
        if (!multi_item(work, json_array_get(edits, i), all, &edit.edits[i])) {
            about_path(work, edit.path);
            (void) tg_buf_printf(&work->about, ",\"edit_count\":%zu,"
                                 "\"failed_edit_index\":%zu", edit.count, i);
            return false;
        }
    }

    return edit_run(work, &edit);
}
