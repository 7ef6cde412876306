/*
 * lint_workspace_file: whether a file can be read as what it is. Python is only parsed,
 * by the system's interpreter in a process that has neither the workspace nor a network;
 * nothing of the file is run.
 */

#include <unistd.h>

#include "files/confine.h"
#include "files/program.h"
#include "files/work.h"


#define TGD_LINT_ISSUES      20
#define TGD_LINT_PYTHON      "/usr/bin/python3"
#define TGD_LINT_PYTHON_MS   8000
#define TGD_LINT_OUTPUT_MAX  (64 * 1024)

typedef struct {
    tgd_work_t  *work;
    tg_str_t     text;
    tg_buf_t     issues;
    size_t       count;
    bool         errors;
} tgd_lint_t;

static const struct {
    const char  *suffix;
    const char  *language;
} lint_suffixes[] = {
    { ".py", "python" },
    { ".json", "json" },
    { ".md", "markdown" },
    { ".markdown", "markdown" },
    { ".txt", "text" },
    { ".log", "text" }
};

static const struct {
    const char  *name;
    const char  *language;
} lint_aliases[] = {
    { "py", "python" },
    { "python3", "python" },
    { "js", "javascript" }
};

/* PyCF_ONLY_AST makes a tree and no code */
static const char  lint_python[] =
    "import sys\n"
    "try:\n"
    "    compile(sys.stdin.buffer.read(), 'file', 'exec', 0x400, True)\n"
    "except SyntaxError as e:\n"
    "    print(e.lineno or 1, e.offset or 1, str(e.msg).split('\\n')[0], sep='\\t')\n"
    "except ValueError as e:\n"
    "    print(1, 1, str(e).split('\\n')[0], sep='\\t')\n"
    "except (RecursionError, MemoryError):\n"
    "    sys.exit(3)\n";


static void
lint_issue(tgd_lint_t *lint, bool error, long line, long column, tg_str_t message)
{
    if (lint->count == TGD_LINT_ISSUES) {
        return;
    }

    (void) tg_buf_printf(&lint->issues, "%s{\"severity\":\"%s\",\"line\":%ld,"
                         "\"column\":%ld,\"message\":", lint->count == 0 ? "" : ",",
                         error ? "error" : "warning", line, column);
    (void) tg_buf_json_string(&lint->issues, message);
    (void) tg_buf_char(&lint->issues, '}');

    lint->count++;
    lint->errors = lint->errors || error;
}


/* what a file may well have and only we can not take; the parser ends there */
static bool
json_beyond_us(const json_error_t *error)
{
    static const char  surrogate[] = "invalid Unicode '";

    switch (json_error_code(error)) {

    case json_error_numeric_overflow:
    case json_error_stack_overflow:
    case json_error_null_byte_in_key:
    case json_error_out_of_memory:
        return true;

    default:
        return strncmp(error->text, surrogate, sizeof(surrogate) - 1) == 0;
    }
}


static void
lint_json(tgd_lint_t *lint)
{
    bool           beyond;
    char           message[JSON_ERROR_TEXT_LENGTH + 40];
    json_t        *value;
    tg_str_t       text;
    json_error_t   error;

    text = lint->text;
    if (text.len >= 3 && memcmp(text.data, "\xef\xbb\xbf", 3) == 0) {
        text.data += 3;
        text.len -= 3;
    }

    /* integers of any size are JSON */
    value = json_loadb(text.data, text.len,
                       JSON_DECODE_ANY|JSON_ALLOW_NUL|JSON_DECODE_INT_AS_REAL, &error);

    if (value == NULL) {
        beyond = json_beyond_us(&error);
        (void) snprintf(message, sizeof(message), "%s%s",
                        beyond ? "not looked at further: " : "", error.text);
        lint_issue(lint, !beyond, error.line < 1 ? 1 : error.line,
                   error.column < 1 ? 1 : error.column, tg_str_of(message));
    }

    json_decref(value);
}


/* LINE TAB COLUMN TAB MESSAGE of the first error; false when there is no interpreter */
static bool
lint_py(tgd_lint_t *lint)
{
    char                  *message;
    long                   line, column;
    bool                   ran;
    tgd_program_t          program;
    tgd_program_result_t   result;

    const char *const  argv[] = {
        TGD_LINT_PYTHON, "-I", "-S", "-B", "-c", lint_python, NULL
    };

    if (access(TGD_LINT_PYTHON, X_OK) == -1 || !tgd_confined_paths()) {
        return false;
    }

    program.argv = argv;
    program.dir = -1;
    program.input = lint->text;
    program.deadline = tgd_monotonic_ms() + TGD_LINT_PYTHON_MS;
    tg_buf_init(&result.output, TGD_LINT_OUTPUT_MAX);

    ran = tgd_program_run(&program, &result);
    (void) tg_buf_char(&result.output, '\0');

    if (!ran) {
        tg_buf_free(&result.output);
        return false;
    }

    if (result.cut || result.code != 0) {
        /* our bounds, which say nothing of the file */
        lint_issue(lint, false, 1, 1,
                   tg_str("too_complex: it can not be parsed within bounds"));

    } else if (result.output.error == TG_OK && result.output.len > 1) {
        line = strtol(result.output.data, &message, 10);
        column = strtol(message, &message, 10);
        message += strspn(message, "\t");
        message[strcspn(message, "\n")] = '\0';
        lint_issue(lint, true, line < 1 ? 1 : line, column < 1 ? 1 : column,
                   tg_str_of(message));
    }

    tg_buf_free(&result.output);
    return true;
}


static void
lint_lines(tgd_lint_t *lint)
{
    long         number;
    size_t       n;
    const char  *p, *end, *next, *nul;

    end = lint->text.data + lint->text.len;

    for (p = lint->text.data, number = 1; p < end; p = next + 1, number++) {
        next = memchr(p, '\n', (size_t) (end - p));
        if (next == NULL) {
            next = end;
        }

        n = (size_t) (next - p);
        if (n > 0 && p[n - 1] == '\r') {
            n--;
        }

        nul = memchr(p, '\0', n);
        if (nul != NULL) {
            lint_issue(lint, true, number, nul - p + 1, tg_str("NUL byte"));
        }
        if (n > 0 && (p[n - 1] == ' ' || p[n - 1] == '\t')) {
            lint_issue(lint, false, number, (long) n, tg_str("trailing whitespace"));
        }
    }
}


static const char *
lint_language(const char *path, tg_str_t wanted, char given[32])
{
    size_t  i, n, len;

    if (wanted.len == 0 || tg_str_eq(wanted, tg_str("auto"))) {
        len = strlen(path);
        for (i = 0; i < sizeof(lint_suffixes) / sizeof(lint_suffixes[0]); i++) {
            n = strlen(lint_suffixes[i].suffix);
            if (len > n && strcasecmp(path + len - n, lint_suffixes[i].suffix) == 0) {
                return lint_suffixes[i].language;
            }
        }
        return "text";
    }

    for (i = 0; i < wanted.len && i < 31; i++) {
        given[i] = wanted.data[i] >= 'A' && wanted.data[i] <= 'Z'
                   ? (char) (wanted.data[i] + 32) : wanted.data[i];
    }
    given[i] = '\0';

    for (i = 0; i < sizeof(lint_aliases) / sizeof(lint_aliases[0]); i++) {
        if (strcmp(given, lint_aliases[i].name) == 0) {
            return lint_aliases[i].language;
        }
    }

    return given;
}


static bool
lint_run(tgd_lint_t *lint, const char *language)
{
    if (strcmp(language, "python") == 0) {
        return lint_py(lint)
               || tgd_work_fail(lint->work, "lint_unavailable", NULL,
                                "there is no interpreter here that could parse it apart");
    }

    if (strcmp(language, "json") == 0) {
        lint_json(lint);
    } else {
        lint_lines(lint);
    }

    return true;
}


static void
lint_answer(tgd_work_t *work, const tgd_lint_t *lint, const char *path,
    const char *language)
{
    (void) tg_buf_printf(&work->out, "{\"ok\":%s,", lint->errors ? "false" : "true");

    /* what failed says why, as everywhere */
    if (lint->errors) {
        (void) tg_buf_cstr(&work->out, "\"error_type\":\"lint_failed\",\"error_message\":"
                           "\"the file has errors; see issues\",");
    }

    tgd_out_path(&work->out, "path", path);
    (void) tg_buf_cstr(&work->out, ",\"language\":");
    (void) tg_buf_json_string(&work->out, tg_str_of(language));
    (void) tg_buf_cstr(&work->out, ",\"issues\":[");
    (void) tg_buf_str(&work->out, tg_buf_get(&lint->issues));
    (void) tg_buf_cstr(&work->out, "],\"lint_model\":\"built_in_lightweight\"}");
}


bool
tgd_files_lint(tgd_work_t *work)
{
    bool         done;
    char         path[TG_FILE_PATH_MAX + 1], given[32];
    tg_str_t     wanted;
    const char  *language;
    tgd_file_t   file;
    tgd_lint_t   lint;

    static const char *const  names[] = { "path", "language", NULL };

    if (!tgd_arg_known(work, names)
        || !tgd_arg_path(work, true, path)
        || !tgd_arg_string(work, "language", false, &wanted)
        || !tgd_tree_read(&work->tree, path, TG_FILE_TEXT_MAX, &file, &work->error))
    {
        return false;
    }

    memset(&lint, 0, sizeof(lint));
    lint.work = work;
    lint.text = (tg_str_t) { file.len, file.data };
    tg_buf_init(&lint.issues, TGD_WORK_LIST_MAX);
    language = lint_language(path, wanted, given);

    done = (tg_file_is_text(lint.text, true)
            || tgd_work_fail(work, "not_utf8_text", NULL, "file is not UTF-8 text"))
           && lint_run(&lint, language);

    if (done) {
        lint_answer(work, &lint, path, language);
    }

    tg_buf_free(&lint.issues);
    tgd_file_free(&file);
    return done;
}
