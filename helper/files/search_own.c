/*
 * Searching without a program: the files in the order of their paths, line by line, with
 * PCRE2 under limits of matching, of depth and of time.
 */

#define PCRE2_CODE_UNIT_WIDTH  8

#include <errno.h>
#include <fcntl.h>
#include <pcre2.h>
#include <unistd.h>

#include "files/search.h"


#define TGD_PCRE_MATCH_LIMIT  200000      /* steps from one place of a line */
#define TGD_PCRE_DEPTH_LIMIT  2000
#define TGD_PCRE_HEAP_KIB     16384
#define TGD_PCRE_REASON_MAX   120
#define TGD_PCRE_WINDOW       1024        /* places of a line between looks at the time */
#define TGD_PCRE_QUICK_MS     5           /* so little for one window: the next is larger */

typedef struct {
    tgd_search_t         *search;
    char                **paths;      /* owned, and what they point to */
    size_t                count;
    size_t                room;
    bool                  failed;
    tgd_msec_t            now;        /* when the time was last looked at */
    pcre2_code           *code;
    pcre2_match_data     *match;
    pcre2_match_context  *limits;
} tgd_own_t;

/* where a line lies in its file */
typedef struct {
    const char  *start;
    const char  *end;                 /* its line end, or the file's */
    size_t       number;
} tgd_own_line_t;


static bool
own_visit(void *data, const char *path, const struct stat *st)
{
    char       **more;
    size_t       room;
    tgd_own_t   *own;

    own = data;

    if (!S_ISREG(st->st_mode) || st->st_size > TGD_SEARCH_FILE_MAX
        || !tgd_search_wanted(own->search, path))
    {
        return true;
    }

    if (own->count == own->room) {
        room = own->room == 0 ? 64 : 2 * own->room;
        more = realloc(own->paths, room * sizeof(char *));
        if (more == NULL) {
            own->failed = true;
            return false;
        }
        own->paths = more;
        own->room = room;
    }

    own->paths[own->count] = strdup(path);
    if (own->paths[own->count] == NULL) {
        own->failed = true;
        return false;
    }

    own->count++;
    return true;
}


/* component by component, as ripgrep sorts: a slash comes before every other byte */
static int
by_path(const void *a, const void *b)
{
    uint8_t         x, y;
    const uint8_t  *left, *right;

    left = *(const uint8_t *const *) a;
    right = *(const uint8_t *const *) b;

    while (*left == *right && *left != '\0') {
        left++;
        right++;
    }

    x = *left == '/' ? 1 : *left;
    y = *right == '/' ? 1 : *right;

    return (x > y) - (x < y);
}


static bool
own_compile(tgd_own_t *own)
{
    int            code;
    char           reason[TGD_PCRE_REASON_MAX];
    size_t         at;
    uint32_t       options;
    tgd_search_t  *search;

    search = own->search;
    options = PCRE2_UTF|PCRE2_MATCH_INVALID_UTF|PCRE2_USE_OFFSET_LIMIT;
    options |= search->case_sensitive ? 0 : PCRE2_CASELESS;
    options |= search->regex ? PCRE2_NEVER_BACKSLASH_C : PCRE2_LITERAL;

    own->code = pcre2_compile((PCRE2_SPTR) search->query.data, search->query.len, options,
                              &code, &at, NULL);
    if (own->code == NULL) {
        (void) pcre2_get_error_message(code, (PCRE2_UCHAR *) reason, sizeof(reason));
        tgd_error_set(&search->work->error, "invalid_regex", "query",
                      "query: not a regular expression: %s", reason);
        return false;
    }

    own->match = pcre2_match_data_create_from_pattern(own->code, NULL);
    own->limits = pcre2_match_context_create(NULL);
    if (own->match == NULL || own->limits == NULL) {
        return tgd_work_fail(search->work, "io_failed", NULL, "out of memory");
    }

    (void) pcre2_set_match_limit(own->limits, TGD_PCRE_MATCH_LIMIT);
    (void) pcre2_set_depth_limit(own->limits, TGD_PCRE_DEPTH_LIMIT);
    (void) pcre2_set_heap_limit(own->limits, TGD_PCRE_HEAP_KIB);
    return true;
}


/* up to n whole lines before one, or behind it */
static tg_str_t
lines_before(tg_str_t text, const tgd_own_line_t *line, int64_t n)
{
    const char  *p;

    p = line->start;
    while (n > 0 && p > text.data) {
        p--;
        while (p > text.data && p[-1] != '\n') {
            p--;
        }
        n--;
    }

    return (tg_str_t) { (size_t) (line->start - p), p };
}


static tg_str_t
lines_after(tg_str_t text, const tgd_own_line_t *line, int64_t n)
{
    const char  *p, *end, *first;

    end = text.data + text.len;
    p = line->end < end ? line->end + 1 : end;
    first = p;

    for ( /* void */ ; n > 0 && p < end; n--) {
        p = memchr(p, '\n', (size_t) (end - p));
        p = p == NULL ? end : p + 1;
    }

    return (tg_str_t) { (size_t) (p - first), first };
}


/* 1: it matches, 0: not, -1: too much work, -2: no time is left. A long line is gone
 * through in pieces, so that the time is looked at */
static int
own_match(tgd_own_t *own, tg_str_t line)
{
    int         rc;
    size_t      at, window;
    tgd_msec_t  before, now;

    if (line.len > 0 && line.data[line.len - 1] == '\r') {
        line.len--;
    }

    at = 0;
    /* plain text takes next to nothing at each place */
    window = own->search->regex ? TGD_PCRE_WINDOW : line.len + 1;
    before = own->now;

    do {
        /* a match can not begin inside of a character */
        while (at < line.len && ((uint8_t) line.data[at] & 0xc0) == 0x80) {
            at++;
        }

        (void) pcre2_set_offset_limit(own->limits, at + window - 1);
        rc = pcre2_match(own->code, (PCRE2_SPTR) line.data, line.len, at, 0, own->match,
                         own->limits);

        if (rc != PCRE2_ERROR_NOMATCH) {
            return rc >= 0 ? 1 : -1;
        }

        now = tgd_monotonic_ms();
        if (now > own->search->work->tree.deadline) {
            return -2;
        }

        /* each window may look through all that is left for a byte that has to come */
        at += window;
        window = now - before <= TGD_PCRE_QUICK_MS ? 2 * window : TGD_PCRE_WINDOW;
        before = now;
        own->now = now;
    } while (at <= line.len);

    return 0;
}


/* false: no more is wanted, or it failed */
static bool
own_file(tgd_own_t *own, const char *path, tg_str_t text, tgd_search_e *rc)
{
    int              found;
    tg_str_t         line;
    const char      *end;
    tgd_own_line_t   at;
    tgd_search_t    *search;

    search = own->search;
    end = text.data + text.len;
    at.start = text.data;

    for (at.number = 1; at.start < end; at.number++, at.start = at.end + 1) {
        at.end = memchr(at.start, '\n', (size_t) (end - at.start));
        if (at.end == NULL) {
            at.end = end;
        }

        line = (tg_str_t) { (size_t) (at.end - at.start), at.start };
        found = own_match(own, line);

        if (found == -1) {
            *rc = TGD_SEARCH_FAILED;
            return tgd_work_fail(search->work, "search_too_complex", "query",
                                 "the expression takes too much work on a line; make it"
                                 " simpler");
        }

        if (found == -2) {
            search->truncated = true;
            return false;
        }

        if (found == 1
            && !tgd_search_add(search, path, at.number, line,
                               lines_before(text, &at, search->context),
                               lines_after(text, &at, search->context)))
        {
            return false;
        }

    }

    return true;
}


static tgd_search_e
own_files(tgd_own_t *own)
{
    bool          more;
    size_t        i;
    tgd_file_t    file;
    tgd_error_t   error;
    tgd_search_e  rc;

    rc = TGD_SEARCH_DONE;
    more = true;

    for (i = 0; more && i < own->count; i++) {
        /* files without one line to match take time too */
        if (tgd_monotonic_ms() > own->search->work->tree.deadline) {
            own->search->truncated = true;
            break;
        }

        /* what went away or changed its kind meanwhile is left out, as binary files are */
        if (!tgd_tree_read_text(&own->search->work->tree, own->paths[i],
                                TGD_SEARCH_FILE_MAX, &file, &error))
        {
            continue;
        }

        if (memchr(file.data, '\0', file.len) == NULL) {
            more = own_file(own, own->paths[i], (tg_str_t) { file.len, file.data }, &rc);
        }
        tgd_file_free(&file);
    }

    return rc;
}


static bool
own_gather(tgd_own_t *own)
{
    int           fd, code;
    tgd_walk_e    rc;
    struct stat   st;
    tgd_search_t *search;

    search = own->search;
    rc = tgd_tree_walk(&search->work->tree, search->path, true, TGD_SEARCH_SKIP, own_visit,
                       own);
    code = errno;

    if (rc == TGD_WALK_FAILED && code == ENOTDIR) {
        fd = tgd_tree_open(&search->work->tree, search->path, O_PATH);
        if (fd == -1 || fstat(fd, &st) == -1) {
            return tgd_tree_error(&search->work->error, errno, search->path);
        }
        (void) close(fd);
        if (!S_ISREG(st.st_mode)) {
            return tgd_tree_error(&search->work->error, EISDIR, search->path);
        }
        (void) own_visit(own, search->path, &st);

    } else if (rc == TGD_WALK_FAILED) {
        return tgd_tree_error(&search->work->error, code, search->path);
    }

    if (own->failed) {
        return tgd_work_fail(search->work, "io_failed", NULL, "out of memory");
    }

    search->truncated = rc == TGD_WALK_CUT;
    return true;
}


tgd_search_e
tgd_search_own(tgd_search_t *search)
{
    size_t        i;
    tgd_own_t     own;
    tgd_search_e  rc;

    memset(&own, 0, sizeof(own));
    own.search = search;
    rc = TGD_SEARCH_FAILED;

    if (own_compile(&own) && own_gather(&own)) {
        if (own.count != 0) {
            qsort(own.paths, own.count, sizeof(char *), by_path);
        }
        rc = own_files(&own);
    }

    for (i = 0; i < own.count; i++) {
        free(own.paths[i]);
    }

    free(own.paths);
    pcre2_match_data_free(own.match);
    pcre2_match_context_free(own.limits);
    pcre2_code_free(own.code);
    return rc;
}
