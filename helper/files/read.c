/*
 * read_workspace_file: lines of a text file. The hash that the session keeps is that of
 * the whole file, whichever part of it was shown.
 */

#include "files/work.h"


#define TGD_READ_CHARS      20000
#define TGD_READ_CHARS_MIN  1000
#define TGD_READ_CHARS_MAX  100000
#define TGD_BOM             "\xef\xbb\xbf"
#define TGD_NUMBER_ROOM     16

typedef struct {
    int64_t  start;       /* from 1; 0: not given */
    int64_t  end;         /* 0: not given */
    int64_t  chars;
    bool     numbers;
} tgd_read_t;


/* the text of lines [start, end]: as it is, or each with its number */
static void
read_lines(tg_str_t text, const tgd_read_t *wanted, tg_buf_t *shown)
{
    int64_t      number;
    size_t       n;
    const char  *p, *end, *next;

    end = text.data + text.len;
    p = text.data;

    for (number = 1; p < end && number <= wanted->end; number++, p = next) {
        next = memchr(p, '\n', (size_t) (end - p));
        next = next == NULL ? end : next + 1;

        if (number < wanted->start) {
            continue;
        }

        n = (size_t) (next - p);
        if (!wanted->numbers) {
            (void) tg_buf_append(shown, p, n);
            continue;
        }

        if (number == 1 && n >= 3 && memcmp(p, TGD_BOM, 3) == 0) {
            p += 3;
            n -= 3;
        }

        (void) tg_buf_printf(shown, "%lld\t", (long long) number);
        if (n > 0 && p[n - 1] == '\n') {
            n--;
            if (n > 0 && p[n - 1] == '\r') {
                n--;
            }
        }
        (void) tg_buf_append(shown, p, n);
        (void) tg_buf_char(shown, '\n');
    }
}


/* sets the range within the file; false when there is nothing there */
static bool
read_range(tgd_work_t *work, tgd_read_t *wanted, size_t total)
{
    if (wanted->start == 0) {
        wanted->start = 1;
    }
    if (wanted->end == 0 || wanted->end > (int64_t) total) {
        wanted->end = (int64_t) total;
    }

    if (total == 0 && wanted->start == 1) {
        wanted->start = 0;
        return true;
    }

    if (wanted->start > wanted->end) {
        tgd_error_set(&work->error, "invalid_range", "start_line",
                      "start_line must be <= end_line, and the file has %zu lines", total);
        return false;
    }

    return true;
}


static bool
read_answer(tgd_work_t *work, const char *path, const tgd_file_t *file, tgd_read_t *wanted)
{
    bool       partial;
    size_t     total;
    tg_buf_t   shown;
    tg_str_t   text;
    tg_buf_t  *out;

    out = &work->out;
    text = (tg_str_t) { file->len, file->data };
    total = tg_file_line_count(text);

    if (!read_range(work, wanted, total)) {
        return false;
    }

    tg_buf_init(&shown, file->len + total * TGD_NUMBER_ROOM + TGD_NUMBER_ROOM);
    read_lines(text, wanted, &shown);

    if (shown.error != TG_OK) {
        tg_buf_free(&shown);
        return tgd_work_fail(work, "io_failed", NULL, "out of memory");
    }

    partial = wanted->start > 1 || wanted->end < (int64_t) total;

    (void) tg_buf_cstr(out, "{\"ok\":true,");
    tgd_out_path(out, "path", path);
    (void) tg_buf_printf(out, ",\"size\":%zu,\"size_bytes\":%zu,\"mtime_ns\":%lld,"
                         "\"start_line\":%lld,\"end_line\":%lld,\"line_count\":%lld,"
                         "\"read_range\":{\"start\":%lld,\"end\":%lld},"
                         "\"total_lines\":%zu,\"suggested_action\":\"\",\"partial\":%s",
                         file->len, file->len, (long long) file->mtime_ns,
                         (long long) wanted->start, (long long) wanted->end,
                         (long long) (total == 0 ? 0 : wanted->end - wanted->start + 1),
                         (long long) wanted->start, (long long) wanted->end, total,
                         partial ? "true" : "false");

    tgd_out_text(out, "content", shown.len == 0 ? tg_str("") : tg_buf_get(&shown),
                 (size_t) wanted->chars, (size_t) wanted->chars);
    (void) tg_buf_char(out, '}');

    tg_buf_free(&shown);
    return true;
}


bool
tgd_files_read(tgd_work_t *work)
{
    bool        done;
    char        path[TG_FILE_PATH_MAX + 1];
    tgd_file_t  file;
    tgd_read_t  wanted = { 0, 0, TGD_READ_CHARS, true };

    static const char *const  names[] = {
        "path", "start_line", "end_line", "max_chars", "include_line_numbers", NULL
    };

    if (!tgd_arg_known(work, names)
        || !tgd_arg_path(work, true, path)
        || !tgd_arg_number(work, "start_line", 0, INT32_MAX, &wanted.start)
        || !tgd_arg_number(work, "end_line", 0, INT32_MAX, &wanted.end)
        || !tgd_arg_number(work, "max_chars", TGD_READ_CHARS_MIN, TGD_READ_CHARS_MAX,
                           &wanted.chars)
        || !tgd_arg_flag(work, "include_line_numbers", &wanted.numbers)
        || !tgd_tree_read(&work->tree, path, TG_FILE_TEXT_MAX, &file, &work->error))
    {
        return false;
    }

    if (!tg_file_is_text((tg_str_t) { file.len, file.data }, false)) {
        tgd_file_free(&file);
        return tgd_work_fail(work, "not_utf8_text", NULL, "file is not UTF-8 text");
    }

    done = read_answer(work, path, &file, &wanted);
    if (done) {
        tgd_work_knows(work, path, file.hash);
    }

    tgd_file_free(&file);
    return done;
}
