/*
 * Finding and replacing a piece of text in a file. Bytes outside of what was found
 * never change: neither line ends, nor a byte order mark, nor quotes.
 */

#ifndef TG_FILE_MATCH_H
#define TG_FILE_MATCH_H

#include "tg.h"
#include "tg_buf.h"


#define TG_FILE_TEXT_MAX  (2 * 1024 * 1024)   /* bytes of a file that is read or made */

typedef struct {
    size_t  start;
    size_t  end;
} tg_file_span_t;

/* Where the text was found, left to right, none over another. */
typedef struct {
    tg_file_span_t  *spans;       /* owned */
    size_t           count;
    size_t           room;
    bool             quotes;      /* only with one kind of quotes taken for the other */
} tg_file_matches_t;

typedef struct {
    tg_str_t  old_text;
    tg_str_t  new_text;
    int64_t   expected;           /* occurrences, unless all */
    bool      all;
} tg_file_edit_t;

typedef enum {
    TG_FILE_EDIT_OK = 0,
    TG_FILE_EDIT_MISSING_OLD,     /* old_text is empty */
    TG_FILE_EDIT_NO_CHANGE,
    TG_FILE_EDIT_NOT_FOUND,
    TG_FILE_EDIT_AMBIGUOUS,       /* matches has what was found */
    TG_FILE_EDIT_TOO_LARGE,       /* the new text would be over TG_FILE_TEXT_MAX */
    TG_FILE_EDIT_NO_MEMORY
} tg_file_edit_e;


/*
 * Finds wanted: as it is; else with each line end, LF or CRLF, taken for the other; else
 * with typographic quotes taken for plain ones too. An LF alone is looked for as either
 * line end from the first where the text has CRLF. TG_E_NOMEM is the only failure.
 * The caller frees matches in any case.
 */
tg_rc_e tg_file_find(tg_str_t text, tg_str_t wanted, tg_file_matches_t *matches);
void tg_file_matches_free(tg_file_matches_t *matches);

/*
 * Makes one edit: appends the new text of the file to out, which must be empty. A line
 * end LF of new_text becomes CRLF where the place that it goes to, or else the whole
 * file, has only CRLF. The caller frees matches in any case.
 */
tg_file_edit_e tg_file_edit(tg_str_t text, const tg_file_edit_t *edit, tg_buf_t *out,
    tg_file_matches_t *matches);

/* Lines: how many, the one (from 1) that holds a byte, and a line's text without its
 * end (CR included). An empty text has none. */
size_t tg_file_line_count(tg_str_t text);
size_t tg_file_line_at(tg_str_t text, size_t offset);
tg_str_t tg_file_line_around(tg_str_t text, size_t offset);

/* Characters of valid UTF-8, and the bytes of the first n of them. */
size_t tg_file_chars(tg_str_t text);
size_t tg_file_head(tg_str_t text, size_t chars);

/* True when all of it is UTF-8, and without NUL unless that is allowed. */
bool tg_file_is_text(tg_str_t text, bool with_nul);

#endif /* TG_FILE_MATCH_H */
