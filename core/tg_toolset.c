/*
 * The table of built-in tools, and the words that stand for some of them; see
 * tg_toolset.h.
 */

#include <strings.h>

#include "tg_toolset.h"


#define TG_WORKSPACE  "workspace", "workspace_root", NULL

static const tg_toolset_tool_t  tg_toolset_tools[] = {

    { "list_skills", "skill", NULL, NULL, true, false },
    { "search_skills", "skill", NULL, NULL, true, false },
    { "load_skill", "skill", NULL, NULL, true, false },
    { "execute_skills", "skill", "isolated_skill_runtime", NULL, false, false },

    { "workspace_status", TG_WORKSPACE, true, true },
    { "list_workspace_files", TG_WORKSPACE, true, true },
    { "read_workspace_file", TG_WORKSPACE, true, true },
    { "write_workspace_file", TG_WORKSPACE, false, true },
    { "write_workspace_files", TG_WORKSPACE, false, true },
    { "edit_workspace_file", TG_WORKSPACE, true, true },
    { "multi_edit_workspace_file", TG_WORKSPACE, false, true },
    { "lint_workspace_file", TG_WORKSPACE, true, true },
    { "search_workspace_files", TG_WORKSPACE, true, true },
    { "delete_workspace_file", TG_WORKSPACE, false, true },

    { "component_status", "platform", NULL, NULL, true, true },

    { "sandbox_status", "sandbox", "isolated_sandbox", NULL, true, true },
    { "run_command", "sandbox", "isolated_sandbox", NULL, false, true },
    { "run_code", "sandbox", "isolated_sandbox", NULL, false, true },

    { "web_fetch", "web", "public_http", NULL, false, true },
    { "web_search", "web", "search_provider", NULL, false, true },

    { "tool_dispatcher", "dispatcher", "builtin_tools", NULL, false, false },
    { "agentengine_tool_dispatcher", "dispatcher", "builtin_tools", "tool_dispatcher",
      false, false },
    { "tool_search", "tools", "builtin_tool_registry", NULL, false, true }
};

#define TG_TOOLSET_COUNT  (sizeof(tg_toolset_tools) / sizeof(tg_toolset_tools[0]))

/* "default" has these */
static const char *const  tg_toolset_default_groups[] = {
    "skill", "workspace", "platform", "sandbox", "web"
};


const tg_toolset_tool_t *
tg_toolset_at(size_t n)
{
    return n < TG_TOOLSET_COUNT ? &tg_toolset_tools[n] : NULL;
}


/* Whether a word is this one, in any case of letters. */
static bool
tg_toolset_is(tg_str_t word, const char *text)
{
    return word.len == strlen(text) && strncasecmp(word.data, text, word.len) == 0;
}


ptrdiff_t
tg_toolset_place(tg_str_t name)
{
    size_t  i;

    for (i = 0; i < TG_TOOLSET_COUNT; i++) {
        if (tg_str_eq(name, tg_str_of(tg_toolset_tools[i].name))) {
            return (ptrdiff_t) i;
        }
    }

    return -1;
}


bool
tg_toolset_include_word(tg_str_t word, tg_toolset_t *set)
{
    bool          focused;
    size_t        i;
    tg_toolset_t  found;

    if (tg_toolset_is(word, "skills")) {
        word = tg_str("skill");
    }

    focused = tg_toolset_is(word, "focused") || tg_toolset_is(word, "core");
    found = 0;

    for (i = 0; i < TG_TOOLSET_COUNT; i++) {
        if ((focused && tg_toolset_tools[i].focused)
            || tg_toolset_is(word, tg_toolset_tools[i].group)
            || tg_toolset_is(word, tg_toolset_tools[i].name))
        {
            found |= (tg_toolset_t) 1 << i;
        }
    }

    *set |= found;

    return found != 0;
}


static bool
tg_toolset_between(char c)
{
    return c == ',' || c == ' ' || c == '\t' || c == '\n' || c == '\r';
}


bool
tg_toolset_include(tg_str_t words, tg_toolset_t *set, tg_str_t *wrong)
{
    size_t    i, start;
    tg_str_t  word;

    for (i = 0; i < words.len; ) {

        if (tg_toolset_between(words.data[i])) {
            i++;
            continue;
        }

        for (start = i; i < words.len && !tg_toolset_between(words.data[i]); i++) {
            /* void */
        }

        word = (tg_str_t) { i - start, words.data + start };

        if (!tg_toolset_include_word(word, set)) {
            *wrong = word;
            return false;
        }
    }

    return true;
}


bool
tg_toolset_profile(tg_str_t name, tg_toolset_t *set)
{
    size_t  i;

    if (tg_toolset_is(name, "default")) {
        for (i = 0; i < sizeof(tg_toolset_default_groups) / sizeof(char *); i++) {
            (void) tg_toolset_include_word(tg_str_of(tg_toolset_default_groups[i]), set);
        }

        return true;
    }

    if (!tg_toolset_is(name, "coding")) {
        return false;
    }

    for (i = 0; i < TG_TOOLSET_COUNT; i++) {
        if (tg_toolset_tools[i].coding) {
            *set |= (tg_toolset_t) 1 << i;
        }
    }

    return true;
}
