/*
 * The catalogue of built-in tools: groups, profiles, include lists, the search.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tg_toolset.h"


static size_t
size_of(tg_toolset_t set)
{
    return (size_t) __builtin_popcountll(set);
}


static void
assert_set(tg_toolset_t set, const char *want)
{
    size_t                     i;
    tg_buf_t                   out;
    const tg_toolset_tool_t   *tool;

    tg_buf_init(&out, 4096);

    for (i = 0; (tool = tg_toolset_at(i)) != NULL; i++) {
        if (tg_toolset_has(set, i)) {
            tg_buf_printf(&out, "%s ", tool->name);
        }
    }

    if (!tg_str_eq(tg_buf_get(&out), tg_str_of(want))) {
        fail_msg("%.*s\nis not\n%s", (int) out.len, out.data, want);
    }

    tg_buf_free(&out);
}


#define FOCUSED  "list_skills search_skills load_skill workspace_status "         \
                 "list_workspace_files read_workspace_file edit_workspace_file "  \
                 "lint_workspace_file search_workspace_files component_status "   \
                 "sandbox_status "
#define CODING   "workspace_status list_workspace_files read_workspace_file "     \
                 "write_workspace_file write_workspace_files edit_workspace_file " \
                 "multi_edit_workspace_file lint_workspace_file "                 \
                 "search_workspace_files delete_workspace_file component_status " \
                 "sandbox_status run_command run_code web_fetch web_search tool_search "


static void
test_catalogue(void **state)
{
    size_t                     i;
    const tg_toolset_tool_t   *tool;

    (void) state;

    for (i = 0; (tool = tg_toolset_at(i)) != NULL; i++) {
        assert_int_equal(tg_toolset_place(tg_str_of(tool->name)), i);

        /* whatever is in the catalogue has a rule for approvals */
        assert_non_null(tg_approval_tool(tg_str_of(tool->name)));
    }

    assert_true(i <= TG_TOOLSET_MAX);
    assert_int_equal(tg_toolset_place(tg_str("nothing")), -1);
    assert_int_equal(tg_toolset_place(tg_str("")), -1);
    assert_int_equal(tg_toolset_place(tg_str("RUN_COMMAND")), -1);
}


static void
test_include(void **state)
{
    size_t        i;
    tg_str_t      wrong;
    tg_toolset_t  set;

    static const struct {
        const char  *words;
        const char  *tools;
    } cases[] = {
        { "", "" },
        { " , ,", "" },
        { "sandbox", "sandbox_status run_command run_code " },
        { "SKILLS", "list_skills search_skills load_skill execute_skills " },
        { "run_code,Run_Command", "run_command run_code " },
        { "web, web_fetch\tplatform", "component_status web_fetch web_search " },
        { "focused", FOCUSED },
        { "Core", FOCUSED },
        { "dispatcher tools", "tool_dispatcher agentengine_tool_dispatcher tool_search " }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        set = 0;
        assert_true(tg_toolset_include(tg_str_of(cases[i].words), &set, &wrong));
        assert_set(set, cases[i].tools);
    }

    set = 0;
    assert_false(tg_toolset_include(tg_str("web_fetch, coding,web"), &set, &wrong));
    assert_true(tg_str_eq(wrong, tg_str("coding")));
    assert_set(set, "web_fetch ");
    assert_false(tg_toolset_include_word(tg_str(""), &set));
    assert_false(tg_toolset_include_word(tg_str("run_comman"), &set));
    assert_false(tg_toolset_include_word(tg_str("run_command2"), &set));
}


static void
test_profiles(void **state)
{
    tg_toolset_t  set;

    (void) state;

    set = 0;
    assert_true(tg_toolset_profile(tg_str("coding"), &set));
    assert_set(set, CODING);

    set = 0;
    assert_true(tg_toolset_profile(tg_str("DEFAULT"), &set));
    assert_int_equal(size_of(set), 20);
    assert_false(tg_toolset_has(set, (size_t) tg_toolset_place(tg_str("tool_search"))));

    assert_false(tg_toolset_profile(tg_str("focused"), &set));
    assert_false(tg_toolset_profile(tg_str(""), &set));
}


static const tg_toolset_candidate_t  candidates[] = {
    { tg_str("run_command"), tg_str("sandbox"), tg_str("Runs a shell command"), tg_str("command cwd") },
    { tg_str("read_workspace_file"), tg_str("workspace"), tg_str("Reads a text"), tg_str("path") },
    { tg_str("web_fetch"), tg_str("web"), tg_str("Gets a page"), tg_str("url") },
    { tg_str("search_workspace_files"), tg_str("workspace"), tg_str("Finds lines"), tg_str("query") },
    { tg_str("order_status"), tg_str("external"), tg_str("State of an ORDER"), tg_str("number") }
};

#define CANDIDATES  (sizeof(candidates) / sizeof(candidates[0]))


static void
assert_found(const char *query, size_t max, const char *want)
{
    size_t              i, n;
    tg_buf_t            out;
    tg_toolset_found_t  found[CANDIDATES];

    tg_buf_init(&out, 4096);
    n = tg_toolset_search(tg_str_of(query), candidates, CANDIDATES, found, max);

    for (i = 0; i < n; i++) {
        tg_buf_str(&out, candidates[found[i].candidate].name);
        tg_buf_printf(&out, " %.1f %.*s; ", found[i].score, (int) found[i].reason.len,
                      found[i].reason.data);
        tg_buf_free(&found[i].reason);
    }

    if (!tg_str_eq(tg_buf_get(&out), tg_str_of(want))) {
        fail_msg("%s: %.*s\nis not\n%s", query, (int) out.len, out.data, want);
    }

    tg_buf_free(&out);
}


static void
test_search(void **state)
{
    (void) state;

    assert_found("Order", CANDIDATES, "order_status 4.0 matched: order; ");
    assert_found("page, number!", CANDIDATES,
                 "order_status 1.0 matched: number; web_fetch 1.0 matched: page; ");

    /* what a word may mean counts once more */
    assert_found("web", CANDIDATES,
                 "web_fetch 13.0 matched: web, fetch, url; "
                 "search_workspace_files 4.5 matched: search; ");
    assert_found("\xe8\xaf\xbb\xe6\x96\x87\xe4\xbb\xb6", 1,
                 "read_workspace_file 12.5 matched: read, file, workspace; ");

    /* nothing for nothing, not even for the workspace */
    assert_found("zebra", CANDIDATES, "");
    assert_found("", CANDIDATES, "");
    assert_found("?!", CANDIDATES, "");
    assert_found("run", 0, "");

    /* the best are kept, whatever the order in which they come */
    assert_found("status web url", 2, "web_fetch 14.0 matched: web, url, fetch; "
                                      "search_workspace_files 4.5 matched: search; ");
}


static void
test_long_queries(void **state)
{
    size_t     i;
    char      *query;

    (void) state;

    query = malloc(100001);
    memset(query, 'x', 100000);
    query[100000] = '\0';
    assert_found(query, CANDIDATES, "");

    for (i = 0; i < 100000; i += 5) {
        memcpy(query + i, "edit ", 5);
    }

    i = tg_toolset_search(tg_str_of(query), candidates, 0, NULL, 8);
    assert_int_equal(i, 0);
    free(query);

    /* cut in the midst of a character */
    assert_found("\xe8\xaf", CANDIDATES, "");
    assert_found("\xe8", CANDIDATES, "");
    assert_found("\xff\x80order\xff", CANDIDATES, "order_status 4.0 matched: order; ");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_catalogue),
        cmocka_unit_test(test_include),
        cmocka_unit_test(test_profiles),
        cmocka_unit_test(test_search),
        cmocka_unit_test(test_long_queries),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
