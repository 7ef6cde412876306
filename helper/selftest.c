/*
 * The self-test; see selftest.h. Sets up what the probe shall not reach (a file, a
 * TCP and an abstract unix listener of the host) and reads what the probe says.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "selftest.h"
#include "workspace.h"


/* every attempt of the probe; one that is missing from its text has failed */
static const char *const  attempts[] = {
    "host_file", "shadow", "init_memory", "processes_hidden", "descriptors",
    "root_write", "sysctl_write", "workspace", "host_tcp", "host_abstract",
    "interfaces", "raw_socket", "mount", "user_namespace", "ptrace", "setuid",
    "device_node", "setuid_file", "capabilities", "no_new_privs", "filter",
    "memory_limit", "process_limit", NULL
};

static const char *const  stages[] = {
    "sandbox", "workspace", "control groups", "namespaces", "identity", "mounts",
    "proc", "network", "root", "privileges", "job"
};

static void test_ready(void *data);
static void test_report(void *data, const tgd_report_t *report);
static void test_lost(void *data, tgd_stage_e stage, int error);

static const tgd_session_user_t  test_user = { test_ready, test_report, test_lost };


void
tgd_isolation_reason(tgd_isolation_t *isolation, const char *format, ...)
{
    va_list  args;

    if (isolation->reason_count == TGD_REASONS_MAX) {
        return;
    }

    va_start(args, format);
    (void) vsnprintf(isolation->reasons[isolation->reason_count++], TGD_REASON_LEN,
                     format, args);
    va_end(args);
}


static void
test_close(tgd_selftest_t *test)
{
    tgd_timer_clear(test->loop, &test->timer);
    tgd_watch_close(test->loop, &test->output);

    if (test->tcp != -1) {
        (void) close(test->tcp);
        test->tcp = -1;
    }

    if (test->abstract != -1) {
        (void) close(test->abstract);
        test->abstract = -1;
    }

    if (test->session != NULL) {
        tgd_session_end(test->session, "selftest");
        test->session = NULL;
    }
}


/* facts that limit what isolation means, though it holds */
static void
test_facts(tgd_selftest_t *test)
{
    const tgd_host_facts_t  *facts;

    facts = &test->registry->facts;

    if (facts->cgroup_missing & 1) {
        tgd_isolation_reason(test->result, "no_memory_cgroup");
    }
    if (facts->cgroup_missing & 2) {
        tgd_isolation_reason(test->result, "no_pids_cgroup");
    }
    if (facts->cgroup_missing & 4) {
        tgd_isolation_reason(test->result, "no_cpu_cgroup");
    }
    if (!facts->uid_separation) {
        tgd_isolation_reason(test->result, "no_uid_separation");
    }
}


static void
test_over(tgd_selftest_t *test, bool isolated)
{
    test_close(test);
    test_facts(test);
    tg_buf_free(&test->text);

    test->result->isolated = isolated;
    test->running = false;

    tgd_log(isolated ? TGD_LOG_INFO : TGD_LOG_ERROR, "selftest",
            "\"isolated\":%s,\"reasons\":%zu,\"first\":\"%s\"",
            isolated ? "true" : "false", test->result->reason_count,
            test->result->reason_count == 0 ? "" : test->result->reasons[0]);

    test->done(test->data);
}


/* judges the probe's text */
static void
test_judge(tgd_selftest_t *test)
{
    char    line[64];
    bool    passed;
    size_t  i;

    passed = true;
    (void) tg_buf_char(&test->text, '\0');

    for (i = 0; attempts[i] != NULL; i++) {
        (void) snprintf(line, sizeof(line), "%s ok\n", attempts[i]);
        if (test->text.error != TG_OK || strstr(test->text.data, line) == NULL) {
            tgd_isolation_reason(test->result, "selftest_failed: %s", attempts[i]);
            passed = false;
        }
    }

    test_over(test, passed);
}


static void
test_output(tgd_watch_t *watch, uint32_t events)
{
    char             buffer[1024];
    ssize_t          n;
    tgd_selftest_t  *test;

    (void) events;
    test = watch->data;

    n = read(watch->fd, buffer, sizeof(buffer));
    if (n > 0) {
        (void) tg_buf_append(&test->text, buffer, (size_t) n);
        return;
    }

    if (n == -1 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }

    tgd_watch_close(test->loop, watch);
    if (test->exited) {
        test_judge(test);
    }
}


static void
test_ready(void *data)
{
    int              outputs[2];
    char             targets[512];
    tgd_selftest_t  *test;

    test = data;
    if (test->output.fd != -1 || test->exited) {
        /* ready for another job, which there is none */
        return;
    }

    (void) snprintf(targets, sizeof(targets), "%s %u %s %d %d", test->canary_path,
                    test->port, test->name, TGD_SELFTEST_MEMORY_MIB, TGD_SELFTEST_PIDS);

    if (tgd_session_run(test->session, TGD_ORDER_PROBE, tg_str("/workspace"),
                        tg_str_of(targets), tg_null_str, 0, outputs)
        == -1)
    {
        tgd_isolation_reason(test->result, "selftest_not_started");
        test_over(test, false);
        return;
    }

    /* the probe says all on stdout */
    (void) close(outputs[1]);
    if (tgd_watch_open(test->loop, &test->output, outputs[0], EPOLLIN) == -1) {
        (void) close(outputs[0]);
        tgd_isolation_reason(test->result, "selftest_not_started");
        test_over(test, false);
    }
}


static void
test_report(void *data, const tgd_report_t *report)
{
    tgd_selftest_t  *test;

    test = data;

    if (report->op == TGD_REPORT_EXIT && !report->alone) {
        /* children of the probe are left on purpose */
        test->exited = true;
        (void) tgd_session_order(test->session, TGD_ORDER_KILL);
        return;
    }

    if (report->op == TGD_REPORT_REFUSED) {
        tgd_isolation_reason(test->result, "selftest_not_started");
        test_over(test, false);
        return;
    }

    test->exited = true;
    if (test->output.fd == -1) {
        test_judge(test);
    }
}


static void
test_lost(void *data, tgd_stage_e stage, int error)
{
    tgd_selftest_t  *test;

    test = data;
    test->session = NULL;

    tgd_isolation_reason(test->result, "sandbox_failed: %s: %s", stages[stage],
                         error == 0 ? "it ended" : strerror(error));
    test_over(test, false);
}


static void
test_late(void *data)
{
    tgd_selftest_t  *test;

    test = data;
    tgd_isolation_reason(test->result, "selftest_timed_out");
    test_over(test, false);
}


/* listeners that the probe must not reach */
static int
test_canaries(tgd_selftest_t *test)
{
    uint64_t            random;
    socklen_t           len;
    struct sockaddr_in  in;
    struct sockaddr_un  un;

    if (getrandom(&random, sizeof(random), 0) != (ssize_t) sizeof(random)) {
        return -1;
    }

    (void) snprintf(test->name, sizeof(test->name), "toolgated-%016llx",
                    (unsigned long long) random);

    memset(&un, 0, sizeof(un));
    un.sun_family = AF_UNIX;
    memcpy(un.sun_path + 1, test->name, strlen(test->name));
    len = (socklen_t) (sizeof(sa_family_t) + 1 + strlen(test->name));

    test->abstract = socket(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0);
    if (test->abstract == -1
        || bind(test->abstract, (struct sockaddr *) &un, len) == -1
        || listen(test->abstract, 1) == -1)
    {
        return -1;
    }

    memset(&in, 0, sizeof(in));
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    len = sizeof(in);

    test->tcp = socket(AF_INET, SOCK_STREAM|SOCK_CLOEXEC, 0);
    if (test->tcp == -1
        || bind(test->tcp, (struct sockaddr *) &in, sizeof(in)) == -1
        || listen(test->tcp, 1) == -1
        || getsockname(test->tcp, (struct sockaddr *) &in, &len) == -1)
    {
        return -1;
    }

    test->port = ntohs(in.sin_port);
    return 0;
}


void
tgd_selftest_start(tgd_selftest_t *test)
{
    char  key[TGD_KEY_HEX + 1], workspace[TGD_WORKSPACE_HEX + 1];

    if (test->running) {
        return;
    }

    test->running = true;
    test->exited = false;
    test->session = NULL;
    test->tcp = -1;
    test->abstract = -1;
    test->output.fd = -1;
    test->output.handler = test_output;
    test->output.data = test;
    test->timer.handler = test_late;
    test->timer.data = test;
    tg_buf_init(&test->text, TGD_SELFTEST_TEXT_MAX);
    memset(test->result, 0, sizeof(*test->result));

    if (test->registry->facts.stage != TGD_STAGE_NONE) {
        tgd_isolation_reason(test->result, "launcher_failed: %s",
                             stages[test->registry->facts.stage]);
        test_over(test, false);
        return;
    }

    /* no label of a client holds a space, so no client can have this workspace */
    tgd_workspace_name(tg_str("toolgated selftest"), tg_null_str, workspace);
    tgd_session_key(tg_str("toolgated selftest"), tg_null_str, tg_null_str, key);

    if (test_canaries(test) == 0) {
        test->session = tgd_session_make(test->registry, key, workspace,
                                         TGD_SELFTEST_MEMORY_MIB, TGD_SELFTEST_PIDS,
                                         &test_user, test);
    }

    if (test->session == NULL) {
        tgd_isolation_reason(test->result, "selftest_not_started: %s", strerror(errno));
        test_over(test, false);
        return;
    }

    tgd_timer_set(test->loop, &test->timer, TGD_SELFTEST_MS);
}
