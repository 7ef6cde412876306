/*
 * The helper's pure parts: fair queue, output capture, calls, configuration, names
 * of workspaces, control group tables of other machines, timers. The sources are taken
 * in whole, since no library holds them.
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
#include "../../helper/queue.c"
#include "../../helper/output.c"
#include "../../helper/protocol.c"
#include "../../helper/conf.c"
#include "../../helper/workspace.c"
#include "../../helper/loop.c"
#include "../../helper/sandbox/cgroup_find.c"
#include "../../helper/sandbox/cgroup.c"


/* --- queue --- */

typedef struct {
    tgd_ticket_t  ticket;
    char          account;
    bool          blocked;
    int           started;      /* when, from 1 */
} job_t;

static tgd_queue_t  queue;
static int          starts;


static void
job_start(void *data)
{
    ((job_t *) data)->started = ++starts;
}


static bool
job_blocked(void *data)
{
    return ((job_t *) data)->blocked;
}


static int
push(job_t *job, char account)
{
    char  name[2] = { account, '\0' };

    memset(job, 0, sizeof(*job));
    job->account = account;
    return tgd_queue_push(&queue, &job->ticket, name, job);
}


/* P14: one account with a hundred calls, another with one */
static void
test_queue_fair(void **state)
{
    int    i;
    job_t  many[TGD_ACCOUNT_RUNNING + TGD_ACCOUNT_WAITING + 1], one, other;

    (void) state;
    starts = 0;
    tgd_queue_init(&queue, job_start, job_blocked);

    for (i = 0; i < TGD_ACCOUNT_RUNNING + TGD_ACCOUNT_WAITING; i++) {
        assert_int_equal(push(&many[i], 'a'), 0);
    }
    assert_int_equal(push(&many[i], 'a'), -1);
    assert_null(many[i].ticket.account);
    assert_int_equal(starts, TGD_ACCOUNT_RUNNING);

    assert_int_equal(push(&one, 'b'), 0);
    assert_true(one.started > 0);

    /* one of a's slots is given back to a, in order */
    tgd_queue_leave(&queue, &many[0].ticket);
    assert_int_equal(many[TGD_ACCOUNT_RUNNING].started, TGD_ACCOUNT_RUNNING + 2);
    assert_int_equal(many[TGD_ACCOUNT_RUNNING + 1].started, 0);

    /* leaving while waiting */
    tgd_queue_leave(&queue, &many[TGD_ACCOUNT_RUNNING + 1].ticket);
    tgd_queue_leave(&queue, &many[1].ticket);
    assert_int_equal(many[TGD_ACCOUNT_RUNNING + 1].started, 0);
    assert_true(many[TGD_ACCOUNT_RUNNING + 2].started > 0);

    /* twice is harmless */
    tgd_queue_leave(&queue, &many[1].ticket);

    assert_int_equal(push(&other, 'b'), 0);
    assert_true(other.started > 0);

    tgd_queue_leave(&queue, &one.ticket);
    tgd_queue_leave(&queue, &other.ticket);
    for (i = 2; i < TGD_ACCOUNT_RUNNING + TGD_ACCOUNT_WAITING; i++) {
        tgd_queue_leave(&queue, &many[i].ticket);
    }

    assert_null(queue.turn);
    assert_int_equal(queue.running, 0);
}


static void
test_queue_turns(void **state)
{
    int    i, last[3] = { 0 };
    job_t  jobs[TGD_QUEUE_RUNNING_MAX], waiting[9];

    (void) state;
    starts = 0;
    tgd_queue_init(&queue, job_start, job_blocked);

    /* the bound of all accounts */
    for (i = 0; i < TGD_QUEUE_RUNNING_MAX; i++) {
        assert_int_equal(push(&jobs[i], (char) ('A' + i)), 0);
    }
    for (i = 0; i < 9; i++) {
        assert_int_equal(push(&waiting[i], (char) ('x' + i / 3)), 0);
    }
    assert_int_equal(starts, TGD_QUEUE_RUNNING_MAX);

    /* three accounts wait with three calls each: they take turns */
    for (i = 0; i < 6; i++) {
        tgd_queue_leave(&queue, &jobs[i].ticket);
    }
    assert_int_equal(starts, TGD_QUEUE_RUNNING_MAX + 6);
    for (i = 0; i < 9; i++) {
        last[i / 3] += waiting[i].started != 0;
    }
    assert_int_equal(last[0], 2);
    assert_int_equal(last[1], 2);
    assert_int_equal(last[2], 2);

    for (i = 6; i < TGD_QUEUE_RUNNING_MAX; i++) {
        tgd_queue_leave(&queue, &jobs[i].ticket);
    }
    for (i = 0; i < 9; i++) {
        tgd_queue_leave(&queue, &waiting[i].ticket);
    }
    assert_null(queue.turn);
}


static void
test_queue_blocked(void **state)
{
    job_t  first, second, third;

    (void) state;
    starts = 0;
    tgd_queue_init(&queue, job_start, job_blocked);

    memset(&first, 0, sizeof(first));
    first.blocked = true;
    assert_int_equal(tgd_queue_push(&queue, &first.ticket, "a", &first), 0);
    assert_int_equal(first.started, 0);

    /* those behind pass */
    assert_int_equal(push(&second, 'a'), 0);
    assert_int_equal(second.started, 1);

    first.blocked = false;
    assert_int_equal(push(&third, 'a'), 0);
    assert_int_equal(first.started, 2);
    assert_int_equal(third.started, 0);

    tgd_queue_leave(&queue, &first.ticket);
    assert_int_equal(third.started, 3);
    tgd_queue_leave(&queue, &second.ticket);
    tgd_queue_leave(&queue, &third.ticket);
    assert_null(queue.turn);
}


/* --- output --- */

static void
check_output(const char *data, size_t len, const char *expected)
{
    tg_buf_t      out;
    tgd_output_t  output;

    tgd_output_init(&output);
    tgd_output_add(&output, data, len);
    tg_buf_init(&out, 1024 * 1024);
    tgd_output_json(&output, "o", TGD_SHOWN_MAX, &out);
    assert_int_equal(tg_buf_char(&out, '\0'), TG_OK);
    assert_string_equal(out.data, expected);
    tg_buf_free(&out);
    tgd_output_free(&output);
}


/* O01, O02, O04 */
static void
test_output_text(void **state)
{
    (void) state;

    check_output("", 0, ",\"o\":\"\",\"o_truncated\":false,\"o_original_chars\":0,"
                 "\"o_preview_chars\":0");
    check_output("a\xff\xfe" "b", 4, ",\"o\":\"a\uFFFD\uFFFDb\",\"o_truncated\":false,"
                 "\"o_original_chars\":4,\"o_preview_chars\":4,\"o_invalid_utf8\":true");
    check_output("a\0b\x1b[1m", 7, ",\"o\":\"a\\u0000b\\u001b[1m\","
                 "\"o_truncated\":false,\"o_original_chars\":7,\"o_preview_chars\":7");
    /* an end in the middle of a character is the job's fault when nothing was cut */
    check_output("\xe2\x82", 2, ",\"o\":\"\uFFFD\",\"o_truncated\":false,"
                 "\"o_original_chars\":1,\"o_preview_chars\":1,\"o_invalid_utf8\":true");
}


/* O03: every place where the capture can cut a three-byte character */
static void
test_output_cut(void **state)
{
    size_t         i, shift, chars;
    tg_buf_t       out;
    char           want[128];
    tgd_output_t   output;

    (void) state;
    chars = TGD_CAPTURE_MAX / 3 + 1000;

    for (shift = 0; shift < 3; shift++) {
        tgd_output_init(&output);
        tgd_output_add(&output, "xxx", shift);
        for (i = 0; i < chars; i++) {
            /* in pieces, so that reads end within characters too */
            tgd_output_add(&output, "\xe2", 1);
            tgd_output_add(&output, "\x82\xac", 2);
        }

        assert_int_equal(output.kept.len, TGD_CAPTURE_MAX);
        tg_buf_init(&out, 1024 * 1024);
        tgd_output_json(&output, "o", TGD_SHOWN_MAX, &out);
        assert_int_equal(tg_buf_char(&out, '\0'), TG_OK);
        (void) snprintf(want, sizeof(want), "\"o_truncated\":true,\"o_original_chars\":%zu,"
                        "\"o_preview_chars\":%d", chars + shift, TGD_PREVIEW_CHARS);
        assert_non_null(strstr(out.data, want));
        assert_null(strstr(out.data, "invalid"));
        assert_null(strstr(out.data, "\uFFFD"));
        tg_buf_free(&out);
        tgd_output_free(&output);
    }
}


/* --- calls --- */

#define ENVELOPE  "\"id\":\"1\",\"project\":\"p\",\"account\":\"\",\"session\":\"s\","  \
                  "\"invocation_id\":\"i\","

static void
test_call_good(void **state)
{
    tgd_call_t   call;
    tgd_error_t  error;

    (void) state;

    assert_true(tgd_call_parse(tg_str("{" ENVELOPE "\"tool\":\"run_command\","
        "\"arguments\":{\"command\":\"ls\",\"cwd\":\"a/b\",\"timeout\":600,"
        "\"env\":{\"A\":\"1\",\"HOME\":\"/x\"},\"background\":false}}"), &call, &error));
    assert_string_equal(call.cwd, "/workspace/a/b");
    assert_int_equal(call.timeout_s, 600);
    assert_int_equal(call.env_count, 7);
    assert_string_equal(call.env.data, "PATH=/usr/local/bin:/usr/bin:/bin");
    tgd_call_free(&call);

    assert_true(tgd_call_parse(tg_str("{" ENVELOPE "\"tool\":\"run_command\",\"stream\":true,"
        "\"arguments\":{\"command\":\"ls\",\"cwd\":null,\"timeout\":null,\"env\":null}}"),
        &call, &error));
    assert_string_equal(call.cwd, "/workspace");
    assert_int_equal(call.timeout_s, TGD_TIMEOUT_DEFAULT_S);
    assert_true(call.stream);
    tgd_call_free(&call);

    assert_true(tgd_call_parse(tg_str("{" ENVELOPE "\"tool\":\"sandbox_status\","
        "\"arguments\":{}}"), &call, &error));
    assert_int_equal(call.tool, TGD_TOOL_SANDBOX_STATUS);
    tgd_call_free(&call);
}


/* P04-P06, P08, P12, R17 in the small: the whole table goes over the socket */
static void
test_call_bad(void **state)
{
    static const char  *cases[][3] = {
        { "{" ENVELOPE "\"tool\":\"x\",\"arguments\":{}}", "unknown_tool", NULL },
        { "{" ENVELOPE "\"tool\":\"run_command\",\"arguments\":{}}", "command_required",
          "command" },
        { "{" ENVELOPE "\"tool\":\"run_command\",\"arguments\":{\"command\":\"a\\u0000\"}}",
          "invalid_argument", "command" },
        { "{" ENVELOPE "\"tool\":\"run_command\",\"arguments\":{\"command\":\"a\","
          "\"cwd\":\"..\"}}", "invalid_argument", "cwd" },
        { "{" ENVELOPE "\"tool\":\"run_command\",\"arguments\":{\"command\":\"a\","
          "\"cwd\":\"/workspace/a/../../etc\"}}", "invalid_argument", "cwd" },
        { "{" ENVELOPE "\"tool\":\"run_command\",\"arguments\":{\"command\":\"a\","
          "\"timeout\":0}}", "invalid_argument", "timeout" },
        { "{" ENVELOPE "\"tool\":\"run_command\",\"arguments\":{\"command\":\"a\","
          "\"env\":{\"LD_PRELOAD\":\"x\"}}}", "invalid_argument", "env" },
        { "{" ENVELOPE "\"tool\":\"run_command\",\"arguments\":{\"command\":\"a\","
          "\"background\":true}}", "background_not_supported", "background" },
        { "{" ENVELOPE "\"tool\":\"run_command\",\"arguments\":{\"command\":\"a\"},\"z\":1}",
          "bad_request", NULL },
        { "{\"id\":\"1\",\"project\":\"../p\",\"account\":\"\",\"session\":\"\","
          "\"invocation_id\":\"\",\"tool\":\"sandbox_status\",\"arguments\":{}}",
          "bad_request", "project" },
        { "[1]", "bad_request", NULL },
        { "{\"id\":\"1\",\"id\":\"1\"}", "bad_request", NULL },
        { "", "bad_request", NULL },
    };

    size_t       i, n;
    tgd_call_t   call;
    tgd_error_t  error;

    (void) state;
    n = sizeof(cases) / sizeof(cases[0]);

    for (i = 0; i < n; i++) {
        assert_false(tgd_call_parse(tg_str_of(cases[i][0]), &call, &error));
        assert_null(call.root);
        assert_string_equal(error.type, cases[i][1]);
        if (cases[i][2] != NULL) {
            assert_string_equal(error.field, cases[i][2]);
        }
    }

    printf("helper: %zu bad calls refused\n", n);
}


/* --- names, configuration, tables, timers --- */

static void
test_workspace_names(void **state)
{
    size_t  i, j;
    char    names[6][TGD_WORKSPACE_HEX + 1];

    (void) state;

    tgd_workspace_name(tg_str("p"), tg_str("a"), names[0]);
    tgd_workspace_name(tg_str("p"), tg_str("A"), names[1]);
    tgd_workspace_name(tg_str("pa"), tg_null_str, names[2]);
    tgd_workspace_name(tg_str("p"), tg_null_str, names[3]);
    tgd_workspace_name(tg_str("p"), tg_str(".."), names[4]);
    tgd_workspace_name(tg_str("a"), tg_str("p"), names[5]);

    for (i = 0; i < 6; i++) {
        assert_true(tgd_workspace_name_valid(names[i]));
        for (j = 0; j < i; j++) {
            assert_string_not_equal(names[i], names[j]);
        }
    }

    assert_false(tgd_workspace_name_valid("../x"));
    assert_false(tgd_workspace_name_valid(""));
    names[0][3] = 'A';
    assert_false(tgd_workspace_name_valid(names[0]));
}


static void
test_conf_keys(void **state)
{
    tgd_conf_t  conf;

    (void) state;
    tgd_conf_init(&conf);

    assert_non_null(tgd_conf_finish(&conf));
    assert_null(tgd_conf_set(&conf, "socket", "/run/s"));
    assert_null(tgd_conf_set(&conf, "state", "/var/s"));
    assert_null(tgd_conf_set(&conf, "peer_uid", "33,0"));
    assert_null(tgd_conf_finish(&conf));
    assert_int_equal(conf.peer_count, 2);
    assert_int_equal(conf.peers[0], 33);

    assert_non_null(tgd_conf_set(&conf, "peer_uid", ""));
    assert_non_null(tgd_conf_set(&conf, "peer_uid", "1,"));
    assert_non_null(tgd_conf_set(&conf, "peer_uid", "-1"));
    assert_non_null(tgd_conf_set(&conf, "peer_uid", "4294967295"));
    assert_non_null(tgd_conf_set(&conf, "socket", "run/s"));
    assert_non_null(tgd_conf_set(&conf, "Socket", "/run/s"));
    assert_non_null(tgd_conf_set(&conf, "KSADK_SANDBOX_BACKEND", "Native"));
    assert_non_null(tgd_conf_set(&conf, "KSADK_SANDBOX_TTL_SECONDS", "1e3"));
    assert_non_null(tgd_conf_set(&conf, "KSADK_SANDBOX_MAX_SESSIONS", "65"));
    assert_null(tgd_conf_set(&conf, "KSADK_SANDBOX_BACKEND", "disabled"));
    assert_true(conf.disabled);
}


/* a v1 host, a v2 host, a container that sees a part of v2, one that sees nothing */
static void
test_cgroup_tables(void **state)
{
    char  point[TGD_CGROUP_PATH_MAX], root[TGD_CGROUP_PATH_MAX];
    char  path[TGD_CGROUP_PATH_MAX];

    static const char  v1[] =
        "30 25 0:26 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro,mode=755\n"
        "31 30 0:27 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n"
        "32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
        "33 30 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
        "34 30 0:30 /docker/1 /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
    static const char  v1_self[] =
        "5:memory:/docker/1/x\n4:cpuset:/\n3:cpu,cpuacct:/a/b:c\n1:name=systemd:/init\n0::/u\n";
    static const char  v2[] =
        "29 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev - cgroup2 cgroup2 rw,nsdelegate\n";
    static const char  v2_self[] = "0::/system.slice/toolgated.service\n";

    (void) state;

    assert_true(tgd_cgroup_mount(v1, "cpu", point, root));
    assert_string_equal(point, "/sys/fs/cgroup/cpu,cpuacct");
    assert_string_equal(root, "/");
    assert_true(tgd_cgroup_mount(v1, "cpuacct", point, root));
    assert_true(tgd_cgroup_mount(v1, "cpuset", point, root));
    assert_string_equal(point, "/sys/fs/cgroup/cpuset");
    assert_true(tgd_cgroup_mount(v1, "memory", point, root));
    assert_string_equal(root, "/docker/1");
    assert_false(tgd_cgroup_mount(v1, "pids", point, root));
    assert_false(tgd_cgroup_mount(v1, "mem", point, root));
    assert_false(tgd_cgroup_mount(v1, NULL, point, root));

    assert_true(tgd_cgroup_self(v1_self, "cpu", path));
    assert_string_equal(path, "/a/b:c");
    assert_true(tgd_cgroup_self(v1_self, "memory", path));
    assert_string_equal(path, "/docker/1/x");
    assert_true(tgd_cgroup_self(v1_self, NULL, path));
    assert_string_equal(path, "/u");
    assert_false(tgd_cgroup_self(v1_self, "pids", path));

    assert_true(tgd_cgroup_mount(v2, NULL, point, root));
    assert_string_equal(point, "/sys/fs/cgroup");
    assert_false(tgd_cgroup_mount(v2, "memory", point, root));
    assert_true(tgd_cgroup_self(v2_self, NULL, path));
    assert_string_equal(path, "/system.slice/toolgated.service");

    assert_false(tgd_cgroup_mount("", NULL, point, root));
    assert_false(tgd_cgroup_mount("garbage\n - \n", NULL, point, root));
    assert_false(tgd_cgroup_self("", NULL, path));
    assert_false(tgd_cgroup_self("x\n::\n1:", "x", path));
}


static void
put(int dir, const char *name)
{
    (void) close(openat(dir, name, O_CREAT|O_WRONLY|O_TRUNC|O_CLOEXEC, 0600));
}


/* what is written where, in a tree that only looks like control groups */
static void
test_cgroup_limits(void **state)
{
    int       dir;
    uint64_t  n;
    char      path[] = "/tmp/tg-unit-XXXXXX";
    static const char  *files[] = {
        "memory.max", "memory.swap.max", "pids.max", "cpu.max", "memory.limit_in_bytes",
        "cpu.cfs_quota_us", "events"
    };

    (void) state;

    assert_non_null(mkdtemp(path));
    dir = open(path, O_RDONLY|O_DIRECTORY|O_CLOEXEC);
    for (n = 0; n < sizeof(files) / sizeof(files[0]); n++) {
        put(dir, files[n]);
    }

    assert_int_equal(set_limits(dir, 0, true, 512, 64), 0);
    assert_file(dir, "memory.max", "536870912");
    assert_file(dir, "memory.swap.max", "0");
    assert_int_equal(set_limits(dir, 1, true, 512, 64), 0);
    assert_file(dir, "pids.max", "65");
    assert_int_equal(set_limits(dir, 2, true, 512, 64), 0);
    assert_file(dir, "cpu.max", "100000 100000");

    /* v1: memory.memsw does not exist here, which is no error */
    assert_int_equal(set_limits(dir, 0, false, 64, 8), 0);
    assert_file(dir, "memory.limit_in_bytes", "67108864");
    assert_int_equal(set_limits(dir, 2, false, 64, 8), 0);
    assert_file(dir, "cpu.cfs_quota_us", "100000");

    assert_int_equal(unlinkat(dir, "memory.max", 0), 0);
    assert_int_equal(set_limits(dir, 0, true, 512, 64), -1);

    assert_int_equal(write_text(dir, "events", "low 0\nmax 17\noom_kill 3\n"), 0);
    (void) close(dir);
    dir = open(path, O_RDONLY|O_DIRECTORY|O_CLOEXEC);
    n = (uint64_t) openat(dir, "events", O_RDONLY|O_CLOEXEC);
    assert_int_equal(tgd_cgroup_counter((int) n, "oom_kill"), 3);
    assert_int_equal(tgd_cgroup_counter((int) n, "max"), 17);
    assert_int_equal(tgd_cgroup_counter((int) n, "oom"), 0);
    assert_int_equal(tgd_cgroup_counter(-1, "max"), 0);
    (void) close((int) n);

    for (n = 0; n < sizeof(files) / sizeof(files[0]); n++) {
        (void) unlinkat(dir, files[n], 0);
    }
    (void) close(dir);
    (void) rmdir(path);
}


static int  fired[64];
static int  fired_count;


static void
fire(void *data)
{
    fired[fired_count++] = *(int *) data;
}


static void
test_timers(void **state)
{
    int          i, order[40];
    tgd_loop_t   loop;
    tgd_timer_t  timers[40];

    (void) state;
    assert_int_equal(tgd_loop_init(&loop), 0);
    memset(timers, 0, sizeof(timers));
    fired_count = 0;

    for (i = 0; i < 40; i++) {
        order[i] = (i * 7) % 40;
        timers[i].handler = fire;
        timers[i].data = &order[i];
        tgd_timer_set(&loop, &timers[i], order[i]);
    }

    /* some go again, some move */
    for (i = 0; i < 40; i += 3) {
        tgd_timer_clear(&loop, &timers[i]);
        tgd_timer_clear(&loop, &timers[i]);
    }
    for (i = 1; i < 40; i += 3) {
        tgd_timer_set(&loop, &timers[i], order[i]);
    }

    for (i = 0; i < 1000 && loop.timers != 0; i++) {
        tgd_loop_once(&loop);
    }

    assert_int_equal(fired_count, 26);
    tgd_loop_free(&loop);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_queue_fair),
        cmocka_unit_test(test_queue_turns),
        cmocka_unit_test(test_queue_blocked),
        cmocka_unit_test(test_output_text),
        cmocka_unit_test(test_output_cut),
        cmocka_unit_test(test_call_good),
        cmocka_unit_test(test_call_bad),
        cmocka_unit_test(test_workspace_names),
        cmocka_unit_test(test_conf_keys),
        cmocka_unit_test(test_cgroup_tables),
        cmocka_unit_test(test_cgroup_limits),
        cmocka_unit_test(test_timers),
    };

    return cmocka_run_group_tests_name("helper", tests, NULL, NULL);
}
