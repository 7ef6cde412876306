/*
 * search_workspace_files: ripgrep in directories, where it is there, confined and not
 * asked for context; else our own search. Both look at the same files: all but what lies
 * in .git, hidden and ignored ones too, binary and large ones not.
 */

#include "files/search.h"


static tg_str_t
trimmed(tg_str_t text)
{
    while (text.len > 0 && (uint8_t) text.data[0] <= ' ') {
        text.data++;
        text.len--;
    }

    while (text.len > 0 && (uint8_t) text.data[text.len - 1] <= ' ') {
        text.len--;
    }

    return text;
}


/* what is shown of a line */
static tg_str_t
cut(tg_str_t line)
{
    if (line.len > 0 && line.data[line.len - 1] == '\r') {
        line.len--;
    }

    line.len = tg_file_head(line, TGD_SEARCH_LINE_CHARS);
    return line;
}


static void
append_context(tg_buf_t *out, const char *member, tg_str_t lines)
{
    bool         first;
    const char  *p, *end, *next;

    (void) tg_buf_printf(out, ",\"%s\":[", member);

    first = true;
    end = lines.data + lines.len;

    for (p = lines.data; p < end; p = next + 1) {
        next = memchr(p, '\n', (size_t) (end - p));
        if (next == NULL) {
            next = end;
        }
        if (!first) {
            (void) tg_buf_char(out, ',');
        }
        first = false;
        (void) tg_buf_json_string(out, cut((tg_str_t) { (size_t) (next - p), p }));
    }

    (void) tg_buf_char(out, ']');
}


static void
append_result(tgd_search_t *search, const char *path, size_t line, tg_str_t text,
    tg_str_t before, tg_str_t after)
{
    tg_buf_t  *out;

    out = &search->results;

    (void) tg_buf_cstr(out, search->count == 0 ? "{" : ",{");
    tgd_out_path(out, "path", path);
    (void) tg_buf_printf(out, ",\"line\":%zu,\"text\":", line);
    (void) tg_buf_json_string(out, trimmed(text));
    (void) tg_buf_cstr(out, ",\"snippet\":");
    (void) tg_buf_json_string(out, text);
    append_context(out, "context_before", before);
    append_context(out, "context_after", after);
    (void) tg_buf_char(out, '}');
}


bool
tgd_search_add(tgd_search_t *search, const char *path, size_t line, tg_str_t text,
    tg_str_t before, tg_str_t after)
{
    size_t     len;
    tg_buf_t  *out;

    out = &search->results;

    if (search->count == search->max || out->error != TG_OK) {
        search->truncated = true;
        return false;
    }

    len = out->len;
    text = cut(text);
    append_result(search, path, line, text, before, after);

    /* half a result is none: the list ends in front of it */
    if (out->error == TG_E_LIMIT) {
        out->len = len;
        out->error = TG_OK;
        search->truncated = true;

        if (search->count != 0) {
            return false;
        }

        /* an empty list would tell of nothing found; a line alone always fits */
        append_result(search, path, line, text, tg_null_str, tg_null_str);
    }

    if (out->error != TG_OK) {
        return false;
    }

    search->count++;
    return true;
}


bool
tgd_search_wanted(const tgd_search_t *search, const char *path)
{
    return search->glob.len == 0 || tg_file_glob(search->glob, tg_str_of(path));
}


static void
search_answer(tgd_work_t *work, const tgd_search_t *search, const char *backend)
{
    (void) tg_buf_cstr(&work->out, "{\"ok\":true,\"query\":");
    (void) tg_buf_json_string(&work->out, search->query);
    (void) tg_buf_char(&work->out, ',');
    tgd_out_path(&work->out, "searched_path", search->path);
    (void) tg_buf_cstr(&work->out, ",\"results\":[");
    (void) tg_buf_str(&work->out, tg_buf_get(&search->results));
    (void) tg_buf_printf(&work->out, "],\"match_count\":%lld,\"truncated\":%s,"
                         "\"context_lines\":%lld,\"search_backend\":\"%s\"}",
                         (long long) search->count, search->truncated ? "true" : "false",
                         (long long) search->context, backend);
}


static bool
search_arguments(tgd_work_t *work, tgd_search_t *search)
{
    static const char *const  names[] = {
        "query", "path", "is_regex", "glob", "case_sensitive", "context_lines",
        "max_results", NULL
    };

    search->max = TGD_SEARCH_DEFAULT;

    if (!tgd_arg_known(work, names)
        || !tgd_arg_string(work, "query", false, &search->query)
        || !tgd_arg_path(work, false, search->path)
        || !tgd_arg_flag(work, "is_regex", &search->regex)
        || !tgd_arg_string(work, "glob", false, &search->glob)
        || !tgd_arg_flag(work, "case_sensitive", &search->case_sensitive)
        || !tgd_arg_number(work, "context_lines", 0, TGD_SEARCH_CONTEXT_MAX,
                           &search->context)
        || !tgd_arg_number(work, "max_results", 1, TGD_SEARCH_MAX, &search->max))
    {
        return false;
    }

    search->query = trimmed(search->query);

    if (search->query.len == 0) {
        return tgd_work_fail(work, "query_required", NULL, "query is required");
    }

    if (search->query.len > TGD_SEARCH_QUERY_MAX
        || memchr(search->query.data, '\n', search->query.len) != NULL
        || memchr(search->query.data, '\0', search->query.len) != NULL)
    {
        return tgd_work_fail(work, "invalid_argument", "query",
                             "must be one line of at most 4096 bytes without NUL");
    }

    return true;
}


bool
tgd_files_search(tgd_work_t *work)
{
    const char           *backend;
    tgd_search_e          rc;
    static tgd_search_t   search;

    search.work = work;
    if (!search_arguments(work, &search)) {
        return false;
    }

    tg_buf_init(&search.results, TGD_WORK_LIST_MAX);

    backend = "rg";
    rc = search.context == 0 ? tgd_search_rg(&search) : TGD_SEARCH_ABSENT;

    if (rc == TGD_SEARCH_ABSENT) {
        backend = "builtin";
        rc = tgd_search_own(&search);
    }

    if (rc == TGD_SEARCH_DONE && search.results.error != TG_OK) {
        (void) tgd_work_fail(work, "io_failed", NULL, "out of memory");
        rc = TGD_SEARCH_FAILED;
    }

    if (rc == TGD_SEARCH_DONE) {
        search_answer(work, &search, backend);
    }

    tg_buf_free(&search.results);
    return rc == TGD_SEARCH_DONE;
}
