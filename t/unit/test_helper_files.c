/*
 * The helper's files: what sessions know of them, and how a write that fails is taken
 * back. The sources are taken in whole, since no library holds them.
 */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file_help.h"
#include "../../helper/log.c"
#include "../../helper/protocol.c"
#include "../../helper/loop.c"
#include "../../helper/files/state.c"
#include "../../helper/files/tree.c"
#include "../../helper/files/stage.c"


/* --- what sessions know of files --- */

static const char  session_a[] =
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
static const char  session_b[] =
    "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";


static bool
told_by(tgd_states_t *states, const char *account, const char *session, const char *path,
    const char *hash)
{
    bool      taken;
    tg_buf_t  text;

    tg_buf_init(&text, 1 << 16);
    tgd_state_put(&text, path, hash);
    taken = tgd_states_take(states, account, session, tg_buf_get(&text));
    tg_buf_free(&text);
    return taken;
}


static bool
told(tgd_states_t *states, const char *session, const char *path, const char *hash)
{
    return told_by(states, session_a, session, path, hash);
}


static void
test_states(void **state)
{
    char                 hash[TGD_HASH_HEX + 1], path[32];
    char                 account[TGD_HASH_HEX + 1];
    size_t               i;
    static tgd_states_t  states;

    (void) state;
    tg_json_sha256_hex(tg_str("x"), hash);

    assert_string_equal(tgd_states_get(&states, session_a, "f"), "");
    assert_true(told(&states, session_a, "f", hash));
    assert_string_equal(tgd_states_get(&states, session_a, "f"), hash);
    assert_string_equal(tgd_states_get(&states, session_b, "f"), "");
    assert_string_equal(tgd_states_get(&states, session_a, "g"), "");

    assert_true(told(&states, session_a, "f", NULL));
    assert_string_equal(tgd_states_get(&states, session_a, "f"), "");
    assert_int_equal(states.count, 0);

    /* not well formed: no hash, no end */
    assert_false(told(&states, session_a, "f", "0123"));
    assert_false(tgd_states_take(&states, session_a, session_a, tg_str("short")));
    assert_false(tgd_states_take(&states, session_a, session_a,
                                 (tg_str_t) { TGD_HASH_HEX, hash }));

    /* an account forgets what it was told first, unless that was told again */
    assert_true(told_by(&states, session_b, session_b, "other", hash));
    for (i = 0; i < TGD_STATES_ACCOUNT_MAX; i++) {
        (void) snprintf(path, sizeof(path), "f%zu", i);
        assert_true(told(&states, session_a, path, hash));
    }
    assert_true(told(&states, session_a, "f0", hash));
    assert_true(told(&states, session_a, "new", hash));
    assert_int_equal(states.count, TGD_STATES_ACCOUNT_MAX + 1);
    assert_string_equal(tgd_states_get(&states, session_a, "f0"), hash);
    assert_string_equal(tgd_states_get(&states, session_a, "f1"), "");
    assert_string_equal(tgd_states_get(&states, session_a, "new"), hash);
    assert_string_equal(tgd_states_get(&states, session_b, "other"), hash);

    /* when all are too many it goes from the account that has the most */
    for (i = 0; states.count < TGD_STATES_MAX; i++) {
        (void) snprintf(account, sizeof(account), "%064zx", i / 100);
        (void) snprintf(path, sizeof(path), "g%zu", i);
        assert_true(told_by(&states, account, account, path, hash));
    }
    assert_true(told_by(&states, session_b, session_b, "one more", hash));
    assert_int_equal(states.count, TGD_STATES_MAX);
    assert_string_equal(tgd_states_get(&states, session_a, "f2"), "");
    assert_string_equal(tgd_states_get(&states, session_b, "other"), hash);

    tgd_states_free(&states);
    assert_int_equal(states.count, 0);
}


/* --- files on their way --- */

static void
file_put(int dir, const char *name, const char *text)
{
    int  fd;

    (void) unlinkat(dir, name, 0);
    fd = openat(dir, name, O_WRONLY|O_CREAT|O_EXCL|O_CLOEXEC, 0600);
    assert_int_not_equal(fd, -1);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    (void) close(fd);
}


/* whether it was there before or not: taken back, unless somebody else has written it */
static void
test_stage_undo(void **state)
{
    int           i;
    char          path[] = "/tmp/tg-unit-XXXXXX";
    tgd_tree_t    tree;
    tgd_error_t   error;
    tgd_staged_t  staged;

    (void) state;
    assert_non_null(mkdtemp(path));
    tree.root = open(path, O_RDONLY|O_DIRECTORY|O_CLOEXEC);
    tree.deadline = tgd_monotonic_ms() + 10000;
    assert_int_not_equal(tree.root, -1);

    for (i = 0; i < 4; i++) {
        if (i & 1) {
            file_put(tree.root, "f", "old");
        }

        assert_true(tgd_tree_stage(&tree, "f", tg_str("new"), 0600, &staged, &error));
        assert_true(tgd_tree_place(&staged, "f", true, true, &error));
        assert_file(tree.root, "f", "new");

        if (i & 2) {
            /* later by more than the clock of a file system can miss */
            (void) usleep(20000);
            file_put(tree.root, "f", "theirs");
        }
        tgd_tree_settle(&staged, true);

        if (i == 0) {
            assert_int_equal(faccessat(tree.root, "f", F_OK, 0), -1);
        } else {
            assert_file(tree.root, "f", i == 1 ? "old" : "theirs");
        }
        assert_int_equal(faccessat(tree.root, staged.temp, F_OK, 0), -1);
        (void) unlinkat(tree.root, "f", 0);
    }

    /* folders on the way go, those that hold something stay */
    assert_true(tgd_tree_stage(&tree, "a/b/c/f", tg_str("new"), 0600, &staged, &error));
    assert_int_equal(staged.made.count, 3);
    file_put(tree.root, "a/mine", "mine");
    tgd_tree_settle(&staged, true);
    tgd_tree_unmake(&tree, "a/b/c/f", &staged.made);
    assert_int_equal(faccessat(tree.root, "a/b", F_OK, 0), -1);
    assert_file(tree.root, "a/mine", "mine");

    (void) unlinkat(tree.root, "a/mine", 0);
    (void) unlinkat(tree.root, "a", AT_REMOVEDIR);
    (void) close(tree.root);
    assert_int_equal(rmdir(path), 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_stage_undo),
    };

    return cmocka_run_group_tests_name("helper files", tests, NULL, NULL);
}
