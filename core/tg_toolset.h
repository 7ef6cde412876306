/*
 * The catalogue of built-in tools: their groups and profiles, what may go wrong with
 * them, and which of them a few words stand for. It runs none of them and does not know
 * which are built.
 */

#ifndef TG_TOOLSET_H
#define TG_TOOLSET_H

#include "tg.h"
#include "tg_approval.h"
#include "tg_buf.h"


#define TG_TOOLSET_MAX          64       /* tools: a set of them is one word */
#define TG_TOOLSET_QUERY_CHARS  1000     /* bytes of a search */
#define TG_TOOLSET_RESULTS_MAX  50
#define TG_TOOLSET_RESULTS      8        /* unless the caller says how many */

/* A bit for each tool, that of its place in the catalogue. */
typedef uint64_t tg_toolset_t;

typedef struct {
    const char  *name;
    const char  *group;
    const char  *boundary;        /* NULL: it has none of its own */
    const char  *alias_for;       /* NULL: it is no other name */
    bool         focused;         /* of "focused" and "core" */
    bool         coding;          /* of the profile "coding" */
} tg_toolset_tool_t;


/* The tools in the order of the catalogue; NULL behind the last. */
const tg_toolset_tool_t *tg_toolset_at(size_t n);

/* The place of a tool in the catalogue, -1: there is none of this name. */
ptrdiff_t tg_toolset_place(tg_str_t name);

static inline bool
tg_toolset_has(tg_toolset_t set, size_t n)
{
    return (set >> n & 1) != 0;
}

/* Adds what a word of an include list stands for, in any case of letters: a group, its
 * alias, "focused" or "core", a tool. False: it stands for nothing. */
bool tg_toolset_include_word(tg_str_t word, tg_toolset_t *set);

/* The same for words with commas or blanks between them. False: *wrong is the first
 * that stands for nothing; those before it are in the set. */
bool tg_toolset_include(tg_str_t words, tg_toolset_t *set, tg_str_t *wrong);

/* The tools of a profile, "default" or "coding". False: there is no such profile. */
bool tg_toolset_profile(tg_str_t name, tg_toolset_t *set);


/* What a search looks through. */
typedef struct {
    tg_str_t  name;
    tg_str_t  group;
    tg_str_t  description;
    tg_str_t  parameters;         /* their names with blanks between them */
} tg_toolset_candidate_t;

typedef struct {
    size_t    candidate;          /* its place */
    double    score;
    tg_buf_t  reason;             /* of the caller, who frees it */
} tg_toolset_found_t;

/*
 * Finds the candidates that a query fits, the best first and those of one score by
 * name: 4 for each term of the query, and of what it may mean, that a name holds, 1 for
 * one that is elsewhere, half a point more for tools of the workspace. What fits
 * nothing is not found. Returns how many, at most max; found has room for them.
 */
size_t tg_toolset_search(tg_str_t query, const tg_toolset_candidate_t *candidates,
    size_t n, tg_toolset_found_t *found, size_t max);

#endif /* TG_TOOLSET_H */
