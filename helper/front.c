/*
 * The front's life: first self-test, serving, drain, end. Connections are in conn.c.
 */

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "front.h"
#include "run.h"


#define TGD_BACKLOG       511
#define TGD_MMAP_FROM     (128 * 1024)
#define TGD_EXIT_GRACE_MS 1000
#define TGD_DOUBT_MS      1000     /* from a failed start to the next self-test */


static void
front_stop(tgd_front_t *front, tgd_msec_t drain)
{
    if (front->stopping) {
        return;
    }

    front->stopping = true;
    tgd_watch_close(&front->loop, &front->listener);
    tgd_conns_shutdown(front, false);
    tgd_timer_set(&front->loop, &front->drain, drain);
}


/* jobs had their time: cancel them; then leave whatever they do */
static void
front_drained(void *data)
{
    tgd_front_t  *front;

    front = data;

    if (front->cancelled) {
        front->loop.stopped = true;
        return;
    }

    front->cancelled = true;
    tgd_conns_shutdown(front, true);
    tgd_timer_set(&front->loop, &front->drain, TGD_DRAIN_KILL_MS);
}


static void
front_signal(tgd_watch_t *watch, uint32_t events)
{
    tgd_front_t              *front;
    struct signalfd_siginfo   info;

    (void) events;
    front = watch->data;

    if (read(watch->fd, &info, sizeof(info)) != (ssize_t) sizeof(info)) {
        return;
    }

    if (info.ssi_signo != SIGTERM && info.ssi_signo != SIGINT) {
        return;
    }

    tgd_log(TGD_LOG_INFO, "stopping", "\"signal\":%u,\"running\":%u", info.ssi_signo,
            front->queue.running + front->files.queue.running);

    if (front->stopping) {
        /* asked twice: no more waiting */
        front_drained(front);
        return;
    }

    front_stop(front, TGD_DRAIN_MS);
}


static void
front_launcher_gone(void *data)
{
    tgd_front_t  *front;

    front = data;
    tgd_log(TGD_LOG_ERROR, "launcher_gone", "\"running\":%u", front->queue.running);

    /* its sandboxes died with it; their calls are answered as they are noticed */
    front->isolation.isolated = false;
    front->isolation.reason_count = 0;
    tgd_isolation_reason(&front->isolation, "launcher_gone");
    front->exit_code = 1;
    front_stop(front, TGD_EXIT_GRACE_MS);
}


static void
front_accept(tgd_watch_t *watch, uint32_t events)
{
    (void) events;
    tgd_conn_accept(watch->data);
}


static void
front_listen_again(void *data)
{
    tgd_front_t  *front;

    front = data;
    tgd_watch_change(&front->loop, &front->listener, EPOLLIN);
}


static void
front_retest(void *data)
{
    tgd_front_t  *front;

    front = data;
    if (!front->stopping) {
        tgd_selftest_start(&front->selftest);
    }
}


/* a sandbox could not be made: what was proven may hold no longer */
static void
front_doubt(void *data)
{
    tgd_front_t  *front;

    front = data;
    if (!front->selftest.running && !front->doubt) {
        front->doubt = true;
        tgd_timer_set(&front->loop, &front->retest, TGD_DOUBT_MS);
    }
}


/* a self-test is over; after the first one the door is opened */
static void
front_tested(void *data)
{
    tgd_front_t  *front;

    front = data;

    if (front->exit_code != 0) {
        return;
    }

    front->isolation = front->testing;
    front->doubt = false;
    tgd_timer_set(&front->loop, &front->retest, TGD_RETEST_MS);

    if (front->socket == -1) {
        return;
    }

    if (listen(front->socket, TGD_BACKLOG) == -1
        || tgd_watch_open(&front->loop, &front->listener, front->socket, EPOLLIN) == -1)
    {
        tgd_die("listen_failed", "\"errno\":%d", errno);
    }

    front->socket = -1;
    tgd_log(TGD_LOG_INFO, "ready", "\"isolated\":%s",
            front->isolation.isolated ? "true" : "false");
}


static void
front_facts(void *data)
{
    tgd_front_t  *front;

    front = data;

    if (front->conf->disabled) {
        tgd_isolation_reason(&front->testing, "disabled");
        front_tested(front);
        return;
    }

    tgd_selftest_start(&front->selftest);
}


static int
front_signals(tgd_front_t *front)
{
    int       fd;
    sigset_t  set;

    (void) signal(SIGPIPE, SIG_IGN);

    (void) sigemptyset(&set);
    (void) sigaddset(&set, SIGTERM);
    (void) sigaddset(&set, SIGINT);
    (void) sigaddset(&set, SIGHUP);
    (void) sigprocmask(SIG_BLOCK, &set, NULL);

    fd = signalfd(-1, &set, SFD_CLOEXEC|SFD_NONBLOCK);
    front->signals.handler = front_signal;
    front->signals.data = front;

    return fd == -1 ? -1 : tgd_watch_open(&front->loop, &front->signals, fd, EPOLLIN);
}


static int
front_init(tgd_front_t *front, const tgd_conf_t *conf, int socket, int launcher,
    const char *canary_path)
{
    memset(front, 0, sizeof(*front));
    front->conf = conf;
    front->socket = socket;
    front->listener.fd = -1;
    front->listener.handler = front_accept;
    front->listener.data = front;
    front->retest.handler = front_retest;
    front->retest.data = front;
    front->drain.handler = front_drained;
    front->drain.data = front;
    front->listen_again.handler = front_listen_again;
    front->listen_again.data = front;
    front->refused_logged = -1000000;

    /* buffers of finished jobs shall go back to the system */
    (void) mallopt(M_MMAP_THRESHOLD, TGD_MMAP_FROM);

    if (tgd_loop_init(&front->loop) == -1
        || front_signals(front) == -1
        || tgd_registry_init(&front->registry, &front->loop, conf, launcher) == -1)
    {
        return -1;
    }

    front->registry.facts_known = front_facts;
    front->registry.launcher_gone = front_launcher_gone;
    front->registry.start_failed = front_doubt;
    front->registry.data = front;

    tgd_queue_init(&front->queue, tgd_run_start, tgd_run_blocked);
    tgd_files_init(&front->files, &front->loop, &front->registry);

    front->selftest.loop = &front->loop;
    front->selftest.registry = &front->registry;
    front->selftest.canary_path = canary_path;
    front->selftest.result = &front->testing;
    front->selftest.done = front_tested;
    front->selftest.data = front;

    return 0;
}


int
tgd_front_run(const tgd_conf_t *conf, int socket, int launcher, const char *canary_path)
{
    static tgd_front_t  front;

    if (front_init(&front, conf, socket, launcher, canary_path) == -1) {
        tgd_log(TGD_LOG_ERROR, "start_failed", "\"errno\":%d", errno);
        return 1;
    }

    while (!front.loop.stopped) {
        tgd_loop_once(&front.loop);

        if (front.stopping && front.queue.running == 0 && front.files.queue.running == 0) {
            break;
        }
    }

    while (front.conns != NULL) {
        tgd_conn_close(front.conns);
    }

    tgd_files_free(&front.files);

    /* the launcher reads end of file and cleans up */
    tgd_registry_free(&front.registry);
    tgd_watch_close(&front.loop, &front.signals);
    tgd_loop_free(&front.loop);

    return front.exit_code;
}
