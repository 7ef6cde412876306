/*
 * Finding and replacing; see tg_file_match.h. What is tolerant works on a copy of the
 * text with the differences taken out, and a map from there to the bytes of the file,
 * so that each search is one pass of memmem.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE             /* memmem */
#endif

#include <stdlib.h>

#include "tg_file_match.h"
#include "tg_utf8.h"


typedef struct {
    char      *text;          /* owned */
    uint32_t  *offsets;       /* owned; one more than len; NULL: not asked for */
    size_t     len;
} tg_file_plain_t;

typedef enum {
    TG_FILE_END_ANY = 0,      /* none, or both kinds */
    TG_FILE_END_LF,
    TG_FILE_END_CRLF
} tg_file_end_e;


void
tg_file_matches_free(tg_file_matches_t *matches)
{
    free(matches->spans);
    memset(matches, 0, sizeof(*matches));
}


static tg_rc_e
matches_add(tg_file_matches_t *matches, size_t start, size_t end)
{
    size_t           room;
    tg_file_span_t  *spans;

    if (matches->count == matches->room) {
        room = matches->room == 0 ? 16 : 2 * matches->room;
        spans = realloc(matches->spans, room * sizeof(*spans));
        if (spans == NULL) {
            return TG_E_NOMEM;
        }
        matches->spans = spans;
        matches->room = room;
    }

    matches->spans[matches->count].start = start;
    matches->spans[matches->count].end = end;
    matches->count++;

    return TG_OK;
}


/* the plain quote that a typographic one stands for, or 0; all have three bytes */
static char
plain_quote(const char *p, size_t len)
{
    if (len < 3 || (uint8_t) p[0] != 0xe2 || (uint8_t) p[1] != 0x80) {
        return 0;
    }

    switch ((uint8_t) p[2]) {

    case 0x98:
    case 0x99:
    case 0x9a:
        return '\'';

    case 0x9c:
    case 0x9d:
    case 0x9e:
        return '"';

    default:
        return 0;
    }
}


static void
plain_free(tg_file_plain_t *plain)
{
    free(plain->text);
    free(plain->offsets);
}


static tg_rc_e
plain_make(tg_str_t text, bool quotes, bool map, tg_file_plain_t *plain)
{
    char    quote;
    size_t  i, n;

    plain->len = 0;
    plain->text = malloc(text.len + 1);
    plain->offsets = map ? malloc((text.len + 1) * sizeof(uint32_t)) : NULL;

    if (plain->text == NULL || (map && plain->offsets == NULL)) {
        return TG_E_NOMEM;
    }

    for (i = 0; i < text.len; i += n) {
        if (map) {
            plain->offsets[plain->len] = (uint32_t) i;
        }

        n = 1;
        if (text.data[i] == '\r' && i + 1 < text.len && text.data[i + 1] == '\n') {
            plain->text[plain->len++] = '\n';
            n = 2;
            continue;
        }

        quote = quotes ? plain_quote(text.data + i, text.len - i) : 0;
        if (quote != 0) {
            plain->text[plain->len++] = quote;
            n = 3;
            continue;
        }

        plain->text[plain->len++] = text.data[i];
    }

    if (map) {
        plain->offsets[plain->len] = (uint32_t) text.len;
    }

    return TG_OK;
}


static tg_rc_e
find_exact(tg_str_t text, tg_str_t wanted, const uint32_t *offsets,
    tg_file_matches_t *matches)
{
    size_t       at;
    const char  *p;

    for (at = 0; at + wanted.len <= text.len; at += wanted.len) {
        p = memmem(text.data + at, text.len - at, wanted.data, wanted.len);
        if (p == NULL) {
            break;
        }

        at = (size_t) (p - text.data);
        if (matches_add(matches, offsets == NULL ? at : offsets[at],
                        offsets == NULL ? at + wanted.len : offsets[at + wanted.len])
            != TG_OK)
        {
            return TG_E_NOMEM;
        }
    }

    return TG_OK;
}


static tg_rc_e
find_tolerant(tg_str_t text, tg_str_t wanted, bool quotes, tg_file_matches_t *matches)
{
    tg_rc_e          rc;
    tg_file_plain_t  file = { NULL, NULL, 0 }, piece = { NULL, NULL, 0 };

    rc = plain_make(text, quotes, true, &file);
    if (rc == TG_OK) {
        rc = plain_make(wanted, quotes, false, &piece);
    }

    if (rc == TG_OK) {
        rc = find_exact((tg_str_t) { file.len, file.text },
                        (tg_str_t) { piece.len, piece.text }, file.offsets, matches);
    }

    plain_free(&file);
    plain_free(&piece);
    return rc;
}


static bool
has_crlf(tg_str_t text)
{
    return text.len >= 2 && memmem(text.data, text.len, "\r\n", 2) != NULL;
}


static bool
has_bare_lf(tg_str_t text)
{
    const char  *p, *end;

    end = text.data + text.len;

    for (p = text.data; p < end; p++) {
        p = memchr(p, '\n', (size_t) (end - p));
        if (p == NULL) {
            break;
        }
        if (p == text.data || p[-1] != '\r') {
            return true;
        }
    }

    return false;
}


/* An LF that is wanted alone would fit the second half of a CRLF and leave its CR behind,
 * and of a file with both kinds only the places with one would be found. Who names CRLF
 * means the bytes, unless the first of them could be such a half. */
static bool
ends_alike(tg_str_t text, tg_str_t wanted)
{
    return has_bare_lf(wanted) && (wanted.data[0] == '\n' || !has_crlf(wanted))
           && has_crlf(text);
}


tg_rc_e
tg_file_find(tg_str_t text, tg_str_t wanted, tg_file_matches_t *matches)
{
    tg_rc_e  rc;

    memset(matches, 0, sizeof(*matches));

    if (wanted.len == 0 || text.len > UINT32_MAX) {
        return TG_OK;
    }

    rc = TG_OK;

    if (!ends_alike(text, wanted)) {
        rc = find_exact(text, wanted, NULL, matches);
    }

    if (rc == TG_OK && matches->count == 0) {
        rc = find_tolerant(text, wanted, false, matches);
    }

    if (rc == TG_OK && matches->count == 0) {
        rc = find_tolerant(text, wanted, true, matches);
        matches->quotes = matches->count != 0;
    }

    return rc;
}


static tg_file_end_e
line_ends(tg_str_t text)
{
    size_t       lf, crlf;
    const char  *p, *end;

    lf = 0;
    crlf = 0;
    end = text.data + text.len;

    for (p = text.data; p < end; p++) {
        p = memchr(p, '\n', (size_t) (end - p));
        if (p == NULL) {
            break;
        }
        if (p > text.data && p[-1] == '\r') {
            crlf++;
        } else {
            lf++;
        }
    }

    if (crlf != 0) {
        return lf == 0 ? TG_FILE_END_CRLF : TG_FILE_END_ANY;
    }

    return lf == 0 ? TG_FILE_END_ANY : TG_FILE_END_LF;
}


/* new_text with CRLF at its ends of lines */
static void
append_crlf(tg_buf_t *out, tg_str_t text)
{
    size_t  i;

    for (i = 0; i < text.len; i++) {
        if (text.data[i] == '\n' && (i == 0 || text.data[i - 1] != '\r')) {
            (void) tg_buf_char(out, '\r');
        }
        (void) tg_buf_char(out, text.data[i]);
    }
}


static void
edit_append(tg_str_t text, const tg_file_edit_t *edit, const tg_file_matches_t *matches,
    tg_buf_t *out)
{
    size_t                 i, at;
    tg_file_end_e          file, place;
    const tg_file_span_t  *span;

    at = 0;
    file = line_ends(text);

    for (i = 0; i < matches->count; i++) {
        span = &matches->spans[i];
        (void) tg_buf_append(out, text.data + at, span->start - at);

        place = line_ends((tg_str_t) { span->end - span->start, text.data + span->start });
        if (place == TG_FILE_END_ANY) {
            place = file;
        }

        if (place == TG_FILE_END_CRLF) {
            append_crlf(out, edit->new_text);
        } else {
            (void) tg_buf_str(out, edit->new_text);
        }

        at = span->end;
    }

    (void) tg_buf_append(out, text.data + at, text.len - at);
}


/* whether the new text fits, before anything of its size is made */
static bool
edit_fits(tg_str_t text, const tg_file_edit_t *edit, const tg_file_matches_t *matches)
{
    size_t  i, gone;

    for (i = 0, gone = 0; i < matches->count; i++) {
        gone += matches->spans[i].end - matches->spans[i].start;
    }

    return text.len - gone <= TG_FILE_TEXT_MAX
           && (edit->new_text.len == 0
               || matches->count
                  <= (TG_FILE_TEXT_MAX - (text.len - gone)) / edit->new_text.len);
}


tg_file_edit_e
tg_file_edit(tg_str_t text, const tg_file_edit_t *edit, tg_buf_t *out,
    tg_file_matches_t *matches)
{
    memset(matches, 0, sizeof(*matches));

    if (edit->old_text.len == 0) {
        return TG_FILE_EDIT_MISSING_OLD;
    }

    if (tg_str_eq(edit->old_text, edit->new_text)) {
        return TG_FILE_EDIT_NO_CHANGE;
    }

    if (tg_file_find(text, edit->old_text, matches) != TG_OK) {
        return TG_FILE_EDIT_NO_MEMORY;
    }

    if (matches->count == 0) {
        return TG_FILE_EDIT_NOT_FOUND;
    }

    if (!edit->all && (edit->expected < 0 || (uint64_t) edit->expected != matches->count)) {
        return TG_FILE_EDIT_AMBIGUOUS;
    }

    if (!edit_fits(text, edit, matches)) {
        return TG_FILE_EDIT_TOO_LARGE;
    }

    edit_append(text, edit, matches, out);

    if (out->error != TG_OK) {
        return out->error == TG_E_LIMIT ? TG_FILE_EDIT_TOO_LARGE : TG_FILE_EDIT_NO_MEMORY;
    }

    return tg_str_eq(tg_buf_get(out), text) ? TG_FILE_EDIT_NO_CHANGE : TG_FILE_EDIT_OK;
}


static size_t
count_ends(tg_str_t text)
{
    size_t       n;
    const char  *p, *end;

    n = 0;
    end = text.data + text.len;

    for (p = text.data; p < end; p++) {
        p = memchr(p, '\n', (size_t) (end - p));
        if (p == NULL) {
            break;
        }
        n++;
    }

    return n;
}


size_t
tg_file_line_count(tg_str_t text)
{
    if (text.len == 0) {
        return 0;
    }

    return count_ends(text) + (text.data[text.len - 1] != '\n');
}


size_t
tg_file_line_at(tg_str_t text, size_t offset)
{
    return 1 + count_ends((tg_str_t) { offset < text.len ? offset : text.len, text.data });
}


tg_str_t
tg_file_line_around(tg_str_t text, size_t offset)
{
    size_t       start;
    const char  *end;

    for (start = offset; start > 0 && text.data[start - 1] != '\n'; start--) {
        /* void */
    }

    end = offset < text.len ? memchr(text.data + offset, '\n', text.len - offset) : NULL;
    if (end == NULL) {
        end = text.data + text.len;
    }

    if (end > text.data + start && end[-1] == '\r') {
        end--;
    }

    return (tg_str_t) { (size_t) (end - (text.data + start)), text.data + start };
}


size_t
tg_file_chars(tg_str_t text)
{
    size_t  i, n;

    for (i = 0, n = 0; i < text.len; i++) {
        n += ((uint8_t) text.data[i] & 0xc0) != 0x80;
    }

    return n;
}


size_t
tg_file_head(tg_str_t text, size_t chars)
{
    size_t  i, n;

    for (i = 0, n = 0; i < text.len; i++) {
        if (((uint8_t) text.data[i] & 0xc0) != 0x80 && n++ == chars) {
            break;
        }
    }

    return i;
}


bool
tg_file_is_text(tg_str_t text, bool with_nul)
{
    size_t   i;
    int32_t  cp;

    for (i = 0; i < text.len; /* void */) {
        i += tg_utf8_next(text.data + i, text.len - i, &cp);
        if (cp == -1 || (cp == 0 && !with_nul)) {
            return false;
        }
    }

    return true;
}
