/*
 * Searching by ripgrep. The query goes behind -e and the path behind --, so that neither
 * can be an option; no configuration and no ignore file is read; it runs only where the
 * kernel keeps it to the directory that is searched, since it opens files by its own rules:
 * what was a file may be a link by then.
 */

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include "files/confine.h"
#include "files/program.h"
#include "files/search.h"


#define TGD_RG             "/usr/bin/rg"
#define TGD_RG_OUTPUT_MAX  (8 * 1024 * 1024)
#define TGD_RG_REASON_MAX  160

enum {
    TGD_RG_CASE = 12,
    TGD_RG_KIND = 13,
    TGD_RG_QUERY = 15
};

/* what ripgrep says of one file after the other */
typedef struct {
    tgd_search_t  *search;
    char           base[TG_FILE_PATH_MAX + 2];   /* in front of all of its paths */
    size_t         base_len;
    bool           full;          /* no more lines are wanted */
    size_t         len;           /* results before the file at hand */
    int64_t        count;
} tgd_rg_t;


/* the line of ripgrep's that tells what is wrong with a pattern */
static tgd_search_e
rg_bad_regex(tgd_search_t *search, const char *errors)
{
    size_t       n;
    const char  *p;

    p = strstr(errors, "\nerror: ");
    n = p == NULL ? 0 : strcspn(p + 8, "\n");

    tgd_error_set(&search->work->error, "invalid_regex", "query",
                  "query: not a regular expression%s%.*s", n == 0 ? "" : ": ",
                  (int) (n > TGD_RG_REASON_MAX ? TGD_RG_REASON_MAX : n),
                  p == NULL ? "" : p + 8);
    return TGD_SEARCH_FAILED;
}


/* {"text":…}, or {"bytes":…} in base64 where it is no UTF-8; false when it is neither,
 * or over size */
static bool
rg_text(json_t *json, char *text, size_t size, size_t *len)
{
    int          n;
    size_t       given;
    json_t      *value;
    const char  *data;

    value = json_object_get(json, "text");
    if (value != NULL) {
        *len = json_string_length(value);
        if (*len > size) {
            return false;
        }
        memcpy(text, json_string_value(value), *len);
        return true;
    }

    value = json_object_get(json, "bytes");
    data = json_string_value(value);
    given = json_string_length(value);
    if (data == NULL || given / 4 * 3 > size || given > INT32_MAX) {
        return false;
    }

    n = EVP_DecodeBlock((unsigned char *) text, (const unsigned char *) data, (int) given);
    if (n < 0) {
        return false;
    }

    /* what stands for the end counts as zeros */
    *len = (size_t) n;
    while (given > 0 && data[given - 1] == '=' && *len > 0) {
        given--;
        (*len)--;
    }

    return true;
}


static void
rg_match(tgd_rg_t *rg, json_t *data)
{
    char          path[TG_FILE_PATH_MAX + 8];
    size_t        len, number;
    static char   line[TGD_SEARCH_FILE_MAX + 8];

    /* "./" is in front of it */
    if (!rg_text(json_object_get(data, "path"), path + 2, TG_FILE_PATH_MAX, &len)
        || len < 3 || rg->base_len + len - 2 > TG_FILE_PATH_MAX)
    {
        return;
    }

    memmove(path + rg->base_len, path + 4, len - 2);
    memcpy(path, rg->base, rg->base_len);
    path[rg->base_len + len - 2] = '\0';

    number = (size_t) json_integer_value(json_object_get(data, "line_number"));

    if (!tgd_search_wanted(rg->search, path)
        || !rg_text(json_object_get(data, "lines"), line, TGD_SEARCH_FILE_MAX, &len))
    {
        return;
    }

    if (len > 0 && line[len - 1] == '\n') {
        len--;
    }

    rg->full = !tgd_search_add(rg->search, path, number, (tg_str_t) { len, line },
                               tg_null_str, tg_null_str);
}


/* one record; false when there is no use in further ones */
static bool
rg_record(tgd_rg_t *rg, tg_str_t record)
{
    bool         more;
    json_t      *root, *data;
    const char  *type;

    root = json_loadb(record.data, record.len, JSON_ALLOW_NUL, NULL);
    type = json_string_value(json_object_get(root, "type"));
    data = json_object_get(root, "data");
    more = true;

    if (type == NULL) {
        more = false;

    } else if (strcmp(type, "begin") == 0) {
        rg->len = rg->search->results.len;
        rg->count = rg->search->count;

    } else if (strcmp(type, "match") == 0 && !rg->full) {
        rg_match(rg, data);

    } else if (strcmp(type, "end") == 0) {
        /* a binary file after all: its lines were none */
        if (json_is_integer(json_object_get(data, "binary_offset"))) {
            rg->search->results.len = rg->len;
            rg->search->count = rg->count;
            rg->search->truncated = false;
            rg->full = false;
        }
        more = !rg->full;
    }

    json_decref(root);
    return more;
}


static void
rg_parse(tgd_rg_t *rg, tg_str_t output)
{
    const char  *p, *end, *next;

    end = output.data + output.len;

    /* the last line of an output that was cut may not be whole */
    for (p = output.data; p < end; p = next + 1) {
        next = memchr(p, '\n', (size_t) (end - p));
        if (next == NULL || !rg_record(rg, (tg_str_t) { (size_t) (next - p), p })) {
            break;
        }
    }
}


/* the directory to stand in */
static int
rg_stand(tgd_rg_t *rg)
{
    int          dir;
    const char  *path;

    path = rg->search->path;
    dir = tgd_tree_open(&rg->search->work->tree, path, O_RDONLY|O_DIRECTORY);

    if (dir != -1 && strcmp(path, ".") != 0) {
        rg->base_len = (size_t) snprintf(rg->base, sizeof(rg->base), "%s/", path);
    }

    return dir;
}


static tgd_search_e
rg_run(tgd_search_t *search, int dir, tgd_program_result_t *result)
{
    char           query[TGD_SEARCH_QUERY_MAX + 1];
    tgd_program_t  program;

    const char  *argv[] = {
        TGD_RG, "--no-config", "--json", "--hidden", "--no-ignore", "--no-messages",
        "--no-mmap", "--crlf", "--encoding=none", "--max-filesize=1M", "--sort=path",
        "--glob=!" TGD_SEARCH_SKIP, "--ignore-case", "--fixed-strings", "-e", "", "--", ".",
        NULL
    };

    memcpy(query, search->query.data, search->query.len);
    query[search->query.len] = '\0';

    if (search->case_sensitive) {
        argv[TGD_RG_CASE] = "--case-sensitive";
    }
    if (search->regex) {
        argv[TGD_RG_KIND] = "--no-fixed-strings";
    }
    argv[TGD_RG_QUERY] = query;

    program.argv = argv;
    program.dir = dir;
    program.input = tg_null_str;
    program.deadline = search->work->tree.deadline;

    if (!tgd_program_run(&program, result)) {
        return TGD_SEARCH_ABSENT;
    }

    if (search->regex && result->code == 2
        && strstr(result->error, "regex") != NULL)
    {
        return rg_bad_regex(search, result->error);
    }

    /* 1: nothing found; 2: some file could not be read */
    return result->cut || (result->code >= 0 && result->code <= 2) ? TGD_SEARCH_DONE
                                                                   : TGD_SEARCH_ABSENT;
}


tgd_search_e
tgd_search_rg(tgd_search_t *search)
{
    int                   dir;
    tgd_search_e          rc;
    tgd_program_result_t  result;
    static tgd_rg_t       rg;

    memset(&rg, 0, sizeof(rg));
    rg.search = search;

    if (!tgd_confined_paths() || access(TGD_RG, X_OK) == -1) {
        return TGD_SEARCH_ABSENT;
    }

    dir = rg_stand(&rg);
    if (dir == -1 && errno == ENOTDIR) {
        /* it would open a file that it is given through a link that came meanwhile */
        return TGD_SEARCH_ABSENT;
    }

    if (dir == -1) {
        (void) tgd_tree_error(&search->work->error, errno, search->path);
        return TGD_SEARCH_FAILED;
    }

    tg_buf_init(&result.output, TGD_RG_OUTPUT_MAX);
    rc = rg_run(search, dir, &result);

    if (rc == TGD_SEARCH_DONE) {
        rg_parse(&rg, tg_buf_get(&result.output));
        search->truncated = search->truncated || result.cut;
    }

    tg_buf_free(&result.output);
    (void) close(dir);
    return rc;
}
