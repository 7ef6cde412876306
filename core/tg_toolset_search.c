/*
 * The search for tools by words; see tg_toolset.h.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE       /* memmem */
#endif

#include <ctype.h>
#include <stdlib.h>

#include "tg_toolset.h"


#define TG_SEARCH_TERMS_MAX   128
#define TG_SEARCH_NAME        4.0     /* points of a term that a name holds */
#define TG_SEARCH_ELSEWHERE   1.0
#define TG_SEARCH_WORKSPACE   0.5
#define TG_SEARCH_REASONS     4       /* terms that a reason names */
#define TG_SEARCH_REASON_MAX  512

typedef struct {
    tg_str_t  terms[TG_SEARCH_TERMS_MAX];
    size_t    count;
} tg_search_terms_t;

/* What somebody may mean who says a word: it is looked for as well. */
static const struct {
    const char  *word;
    const char  *meant[8];
} tg_search_synonyms[] = {
    { "edit", { "edit", "replace", "modify", "patch", "write", "file" } },
    { "file", { "file", "workspace", "read", "list", "search", "edit" } },
    { "grep", { "grep", "search", "rg", "find" } },
    { "run", { "run", "command", "shell", "code", "execute" } },
    { "web", { "web", "fetch", "search", "url", "http" } },
    { "\xe8\xaf\xbb", { "read", "file", "workspace" } },
    { "\xe6\x94\xb9", { "edit", "replace", "file" } },
    { "\xe6\x90\x9c", { "search", "grep", "find" } }
};

#define TG_SEARCH_SYNONYMS                                                    \
    (sizeof(tg_search_synonyms) / sizeof(tg_search_synonyms[0]))


static void
tg_search_add(tg_search_terms_t *terms, tg_str_t term)
{
    if (terms->count < TG_SEARCH_TERMS_MAX) {
        terms->terms[terms->count++] = term;
    }
}


/* How long the CJK character at p is; 0: it is another one. Three bytes of UTF-8 from
 * U+3400 to U+9FFF. */
static size_t
tg_search_cjk(const char *p, const char *end)
{
    unsigned       code;
    unsigned char  first;

    first = (unsigned char) *p;

    if (first < 0xe3 || first > 0xe9 || end - p < 3) {
        return 0;
    }

    code = (unsigned) (first & 0x0f) << 12 | (unsigned) (p[1] & 0x3f) << 6
           | (unsigned) (p[2] & 0x3f);

    return code >= 0x3400 && code <= 0x9fff ? 3 : 0;
}


static bool
tg_search_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}


static bool
tg_search_holds(tg_str_t text, tg_str_t term)
{
    return memmem(text.data, text.len, term.data, term.len) != NULL;
}


/* Runs of letters, digits and _, and runs of CJK characters; text is in lower case. */
static void
tg_search_split(tg_str_t text, tg_search_terms_t *terms)
{
    size_t       n;
    const char  *p, *end, *start;

    p = text.data;
    end = p + text.len;

    while (p < end) {
        start = p;

        while (p < end && tg_search_word(*p)) {
            p++;
        }

        if (p == start) {
            while (p < end && (n = tg_search_cjk(p, end)) != 0) {
                p += n;
            }
        }

        if (p == start) {
            p++;
            continue;
        }

        tg_search_add(terms, (tg_str_t) { (size_t) (p - start), start });
    }
}


/* Adds what the terms may mean, those of CJK also where they are only part of a run. */
static void
tg_search_widen(tg_search_terms_t *terms)
{
    bool               fits;
    size_t             i, j, k, count;
    tg_str_t           term, word;

    count = terms->count;

    for (i = 0; i < count; i++) {
        for (j = 0; j < TG_SEARCH_SYNONYMS; j++) {
            term = terms->terms[i];
            word = tg_str_of(tg_search_synonyms[j].word);
            fits = (word.data[0] & 0x80) ? tg_search_holds(term, word)
                                         : tg_str_eq(term, word);

            for (k = 0; fits && tg_search_synonyms[j].meant[k]; k++) {
                tg_search_add(terms, tg_str_of(tg_search_synonyms[j].meant[k]));
            }
        }
    }
}


static void
tg_search_lower(tg_buf_t *out, tg_str_t text)
{
    size_t  i;

    for (i = 0; i < text.len; i++) {
        tg_buf_char(out, (char) tolower((unsigned char) text.data[i]));
    }
}


/* The first terms that fitted, each once. */
typedef struct {
    tg_str_t  terms[TG_SEARCH_REASONS];
    size_t    count;
} tg_search_reasons_t;


static void
tg_search_fitted(tg_search_reasons_t *reasons, tg_str_t term, tg_buf_t *out)
{
    size_t  i;

    for (i = 0; i < reasons->count; i++) {
        if (tg_str_eq(reasons->terms[i], term)) {
            return;
        }
    }

    if (reasons->count == TG_SEARCH_REASONS) {
        return;
    }

    tg_buf_cstr(out, reasons->count ? ", " : "matched: ");
    tg_buf_str(out, term);
    reasons->terms[reasons->count++] = term;
}


/* The points of one candidate, with the reasons; scratch is for its text. */
static void
tg_search_rate(const tg_search_terms_t *terms, const tg_toolset_candidate_t *candidate,
    tg_buf_t *scratch, tg_toolset_found_t *found)
{
    size_t               i, name;
    tg_str_t             text;
    tg_search_reasons_t  reasons;

    tg_buf_reset(scratch);
    tg_search_lower(scratch, candidate->name);
    name = scratch->len;
    tg_buf_char(scratch, ' ');
    tg_search_lower(scratch, candidate->group);
    tg_buf_char(scratch, ' ');
    tg_search_lower(scratch, candidate->description);
    tg_buf_char(scratch, ' ');
    tg_search_lower(scratch, candidate->parameters);

    text = tg_buf_get(scratch);
    found->score = 0;
    reasons.count = 0;

    for (i = 0; scratch->error == TG_OK && i < terms->count; i++) {
        if (tg_search_holds((tg_str_t) { name, text.data }, terms->terms[i])) {
            found->score += TG_SEARCH_NAME;

        } else if (tg_search_holds(text, terms->terms[i])) {
            found->score += TG_SEARCH_ELSEWHERE;

        } else {
            continue;
        }

        tg_search_fitted(&reasons, terms->terms[i], &found->reason);
    }

    if (found->score > 0 && tg_str_eq(candidate->group, tg_str("workspace"))) {
        found->score += TG_SEARCH_WORKSPACE;
    }
}


static bool
tg_search_before(const tg_toolset_candidate_t *candidates, const tg_toolset_found_t *a,
    const tg_toolset_found_t *b)
{
    int       order;
    tg_str_t  x, y;

    if (a->score > b->score || a->score < b->score) {
        return a->score > b->score;
    }

    x = candidates[a->candidate].name;
    y = candidates[b->candidate].name;
    order = memcmp(x.data, y.data, x.len < y.len ? x.len : y.len);

    return order < 0 || (order == 0 && x.len < y.len);
}


/* Puts one where it belongs; the last one falls out when there is no room. */
static size_t
tg_search_insert(const tg_toolset_candidate_t *candidates, tg_toolset_found_t *found,
    size_t count, size_t max, tg_toolset_found_t *one)
{
    size_t  i;

    for (i = count; i > 0 && tg_search_before(candidates, one, &found[i - 1]); i--) {
        /* void */
    }

    if (i == max) {
        tg_buf_free(&one->reason);
        return count;
    }

    if (count == max) {
        tg_buf_free(&found[--count].reason);
    }

    memmove(&found[i + 1], &found[i], (count - i) * sizeof(*found));
    found[i] = *one;

    return count + 1;
}


size_t
tg_toolset_search(tg_str_t query, const tg_toolset_candidate_t *candidates, size_t n,
    tg_toolset_found_t *found, size_t max)
{
    size_t              i, count;
    tg_buf_t            lower, scratch;
    tg_search_terms_t   terms;
    tg_toolset_found_t  one;

    if (query.len > TG_TOOLSET_QUERY_CHARS) {
        query.len = TG_TOOLSET_QUERY_CHARS;
    }

    tg_buf_init(&lower, TG_TOOLSET_QUERY_CHARS);
    tg_buf_init(&scratch, 1024 * 1024);
    tg_search_lower(&lower, query);

    terms.count = 0;
    tg_search_split(tg_buf_get(&lower), &terms);
    tg_search_widen(&terms);
    count = 0;

    for (i = 0; max && i < n; i++) {
        one.candidate = i;
        tg_buf_init(&one.reason, TG_SEARCH_REASON_MAX);
        tg_search_rate(&terms, &candidates[i], &scratch, &one);

        if (one.score > 0) {
            count = tg_search_insert(candidates, found, count, max, &one);

        } else {
            tg_buf_free(&one.reason);
        }
    }

    tg_buf_free(&lower);
    tg_buf_free(&scratch);

    return count;
}
