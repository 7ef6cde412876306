/*
 * The registry of sandboxes; see registry.h. A session leaves the list as soon as it
 * is to end; the launcher kills it and tells when it is gone, which nobody waits for.
 */

#include <errno.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tg_json.h"
#include "sandbox/registry.h"


/* an order is sent whole or not at all: the socket must hold the biggest */
#define TGD_SOCKET_BUFFER  (512 * 1024)


static void launcher_handler(tgd_watch_t *watch, uint32_t events);
static void session_handler(tgd_watch_t *watch, uint32_t events);
static void session_timer(void *data);


int
tgd_registry_init(tgd_registry_t *registry, tgd_loop_t *loop, const tgd_conf_t *conf,
    int launcher)
{
    memset(registry, 0, sizeof(*registry));

    registry->loop = loop;
    registry->conf = conf;
    registry->launcher.handler = launcher_handler;
    registry->launcher.data = registry;

    return tgd_watch_open(loop, &registry->launcher, launcher, EPOLLIN);
}


void
tgd_registry_free(tgd_registry_t *registry)
{
    while (registry->first != NULL) {
        tgd_session_end(registry->first, "shutdown");
    }

    tgd_watch_close(registry->loop, &registry->launcher);
}


void
tgd_session_key(tg_str_t project, tg_str_t account, tg_str_t session,
    char key[TGD_KEY_HEX + 1])
{
    size_t    i;
    tg_buf_t  text;
    tg_str_t  parts[3] = { project, account, session };

    tg_buf_init(&text, 1024);

    for (i = 0; i < 3; i++) {
        (void) tg_buf_str(&text, parts[i]);
        (void) tg_buf_char(&text, '\0');
    }

    tg_json_sha256_hex(tg_buf_get(&text), key);
    tg_buf_free(&text);
}


tgd_session_t *
tgd_session_find(tgd_registry_t *registry, const char *key)
{
    tgd_session_t  *session;

    for (session = registry->first; session != NULL; session = session->next) {
        if (memcmp(session->key, key, TGD_KEY_HEX) == 0) {
            return session;
        }
    }

    return NULL;
}


static void
gone_note(tgd_registry_t *registry, const char *key)
{
    memcpy(registry->gone[registry->gone_next], key, TGD_KEY_HEX + 1);
    registry->gone_next = (registry->gone_next + 1) % TGD_GONE_MAX;
}


/* whether a session of that key ended since its user last heard; forgets it */
static bool
gone_take(tgd_registry_t *registry, const char *key)
{
    bool    found;
    size_t  i;

    found = false;
    for (i = 0; i < TGD_GONE_MAX; i++) {
        if (memcmp(registry->gone[i], key, TGD_KEY_HEX) == 0) {
            registry->gone[i][0] = '\0';
            found = true;
        }
    }

    return found;
}


static int
launcher_send(tgd_registry_t *registry, const tgd_launch_t *message, int fd)
{
    ssize_t          n;
    struct iovec     iov;
    struct msghdr    head;
    struct cmsghdr  *control;

    union {
        struct cmsghdr  align;
        char            bytes[CMSG_SPACE(sizeof(int))];
    } space;

    memset(&head, 0, sizeof(head));
    iov.iov_base = (void *) (uintptr_t) message;
    iov.iov_len = sizeof(*message);
    head.msg_iov = &iov;
    head.msg_iovlen = 1;

    if (fd != -1) {
        memset(&space, 0, sizeof(space));
        head.msg_control = &space;
        head.msg_controllen = sizeof(space);
        control = CMSG_FIRSTHDR(&head);
        control->cmsg_level = SOL_SOCKET;
        control->cmsg_type = SCM_RIGHTS;
        control->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(control), &fd, sizeof(int));
    }

    do {
        n = sendmsg(registry->launcher.fd, &head, MSG_NOSIGNAL|MSG_DONTWAIT);
    } while (n == -1 && errno == EINTR);

    return n == -1 ? -1 : 0;
}


int
tgd_registry_worker(tgd_registry_t *registry, const char *account, int fd, uint32_t *id)
{
    tgd_launch_t  message;

    memset(&message, 0, sizeof(message));
    message.op = TGD_LAUNCH_FILES;
    message.id = ++registry->last_id;
    memcpy(message.workspace, account, sizeof(message.workspace));
    *id = message.id;

    return launcher_send(registry, &message, fd);
}


void
tgd_registry_kill(tgd_registry_t *registry, uint32_t id)
{
    tgd_launch_t  message;

    memset(&message, 0, sizeof(message));
    message.op = TGD_LAUNCH_KILL;
    message.id = id;

    (void) launcher_send(registry, &message, -1);
}


static void
session_unlink(tgd_session_t *session)
{
    tgd_registry_t  *registry;

    registry = session->registry;

    if (session->prev != NULL) {
        session->prev->next = session->next;
    } else {
        registry->first = session->next;
    }

    if (session->next != NULL) {
        session->next->prev = session->prev;
    }

    registry->count--;
}


void
tgd_session_end(tgd_session_t *session, const char *why)
{
    tgd_launch_t     message;
    tgd_registry_t  *registry;

    registry = session->registry;

    memset(&message, 0, sizeof(message));
    message.op = TGD_LAUNCH_KILL;
    message.id = session->id;
    (void) launcher_send(registry, &message, -1);

    /* closing the socket ends the supervisor too, should the launcher be gone */
    tgd_watch_close(registry->loop, &session->watch);
    tgd_timer_clear(registry->loop, &session->timer);
    tgd_session_drop_outputs(session);

    if (session->state != TGD_SESSION_STARTING) {
        gone_note(registry, session->key);
    }

    tgd_log(TGD_LOG_INFO, "session_end", "\"sandbox\":\"%s\",\"why\":\"%s\"",
            session->sandbox_id, why);

    session_unlink(session);
    tgd_loop_dispose(registry->loop, session);
}


/* ends a session that failed by itself and tells its user */
static void
session_lost(tgd_session_t *session, tgd_stage_e stage, int error)
{
    void                      *data;
    const tgd_session_user_t  *user;

    user = session->user;
    data = session->data;
    session->user = NULL;

    if (session->state == TGD_SESSION_STARTING) {
        session->registry->start_failed(session->registry->data);
    }

    tgd_session_end(session, "lost");

    if (user != NULL) {
        user->lost(data, stage, error);
    }
}


/* true when there is room for one more session of the account */
static bool
sessions_make_room(tgd_registry_t *registry, const char *account)
{
    int64_t         mine;
    bool            full;
    tgd_session_t  *session, *oldest_mine, *oldest;

    mine = 0;
    oldest_mine = NULL;
    oldest = NULL;

    for (session = registry->first; session != NULL; session = session->next) {
        if (session->user == NULL
            && (oldest == NULL || session->used_ms < oldest->used_ms))
        {
            oldest = session;
        }

        if (memcmp(session->account, account, TGD_WORKSPACE_HEX) != 0) {
            continue;
        }

        mine++;
        if (session->user == NULL
            && (oldest_mine == NULL || session->used_ms < oldest_mine->used_ms))
        {
            oldest_mine = session;
        }
    }

    full = registry->count >= TGD_SESSIONS_MAX;

    if (registry->conf->max_sessions != 0 && mine >= registry->conf->max_sessions) {
        oldest = oldest_mine;
        full = true;
    }

    if (!full) {
        return true;
    }

    if (oldest == NULL) {
        return false;
    }

    tgd_session_end(oldest, "quota");
    return true;
}


static void
session_name(tgd_session_t *session)
{
    uint8_t  random[TG_ID_RANDOM_LEN];

    if (getrandom(random, sizeof(random), 0) != (ssize_t) sizeof(random)) {
        tgd_die("no_randomness", "\"errno\":%d", errno);
    }

    tg_id_make("sbx_", random, session->sandbox_id);
}


/* asks the launcher for the sandbox; the supervisor gets one end of the pair */
static int
session_launch(tgd_session_t *session, uint32_t memory_mib, uint32_t pids)
{
    int            pair[2], rc, size;
    tgd_launch_t   message;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET|SOCK_CLOEXEC, 0, pair) == -1) {
        return -1;
    }

    size = TGD_SOCKET_BUFFER;
    (void) setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));

    memset(&message, 0, sizeof(message));
    message.op = TGD_LAUNCH_CREATE;
    message.id = session->id;
    message.memory_mib = memory_mib;
    message.pids = pids;
    memcpy(message.workspace, session->account, sizeof(message.workspace));

    rc = launcher_send(session->registry, &message, pair[1]);
    (void) close(pair[1]);

    if (rc == -1
        || tgd_watch_open(session->registry->loop, &session->watch, pair[0], EPOLLIN)
           == -1)
    {
        (void) close(pair[0]);
        session->watch.fd = -1;
        return -1;
    }

    return 0;
}


tgd_session_t *
tgd_session_make(tgd_registry_t *registry, const char *key, const char *account,
    uint32_t memory_mib, uint32_t pids, const tgd_session_user_t *user, void *data)
{
    tgd_session_t  *session;

    if (!sessions_make_room(registry, account)) {
        errno = EBUSY;
        return NULL;
    }

    session = calloc(1, sizeof(*session));
    if (session == NULL) {
        return NULL;
    }

    session->registry = registry;
    session->id = ++registry->last_id;
    memcpy(session->key, key, sizeof(session->key));
    memcpy(session->account, account, sizeof(session->account));
    session_name(session);

    session->watch.fd = -1;
    session->watch.handler = session_handler;
    session->watch.data = session;
    session->outputs[0] = -1;
    session->outputs[1] = -1;
    session->timer.handler = session_timer;
    session->timer.data = session;

    if (session_launch(session, memory_mib, pids) == -1) {
        free(session);
        return NULL;
    }

    session->created = tgd_wall_clock();
    session->last_used = session->created;
    session->created_ms = tgd_monotonic_ms();
    session->used_ms = session->created_ms;
    session->user = user;
    session->data = data;
    session->replaced = gone_take(registry, key);

    session->next = registry->first;
    if (registry->first != NULL) {
        registry->first->prev = session;
    }
    registry->first = session;
    registry->count++;

    tgd_timer_set(registry->loop, &session->timer, TGD_SESSION_START_MS);

    return session;
}


void
tgd_session_take(tgd_session_t *session, const tgd_session_user_t *user, void *data)
{
    tgd_timer_clear(session->registry->loop, &session->timer);
    session->user = user;
    session->data = data;

    if (session->state != TGD_SESSION_READY) {
        tgd_timer_set(session->registry->loop, &session->timer, TGD_SESSION_START_MS);
    }
}


double
tgd_session_expires_at(const tgd_session_t *session)
{
    double             idle, hard;
    const tgd_conf_t  *conf;

    conf = session->registry->conf;
    idle = session->last_used + (double) conf->idle_ttl_s;
    hard = session->created + (double) conf->ttl_s;

    return conf->idle_ttl_s != 0 && idle < hard ? idle : hard;
}


void
tgd_session_release(tgd_session_t *session)
{
    tgd_msec_t         idle, hard;
    const tgd_conf_t  *conf;

    conf = session->registry->conf;
    session->user = NULL;
    session->data = NULL;
    session->replaced = false;
    session->used_ms = tgd_monotonic_ms();
    session->last_used = tgd_wall_clock();

    idle = conf->idle_ttl_s * 1000;
    hard = session->created_ms + conf->ttl_s * 1000 - session->used_ms;
    if (hard < 0) {
        hard = 0;
    }

    tgd_timer_set(session->registry->loop, &session->timer,
                  idle != 0 && idle < hard ? idle : hard);
}


/* it was not ready in time, or it is idle for too long or too old */
static void
session_timer(void *data)
{
    tgd_session_t  *session;

    session = data;

    if (session->state == TGD_SESSION_STARTING || session->user != NULL) {
        session_lost(session, TGD_STAGE_JOB, ETIMEDOUT);
        return;
    }

    tgd_session_end(session, "expired");
}


static void
session_ready(tgd_session_t *session)
{
    bool  started;

    if (session->outputs[0] == -1) {
        /* no descriptor was left here for them */
        session_lost(session, TGD_STAGE_JOB, EMFILE);
        return;
    }

    started = session->state == TGD_SESSION_STARTING;
    session->state = TGD_SESSION_READY;

    if (session->user != NULL) {
        tgd_timer_clear(session->registry->loop, &session->timer);
        session->user->ready(session->data);

    } else if (started) {
        tgd_session_release(session);
    }
}


static void
session_handler(tgd_watch_t *watch, uint32_t events)
{
    ssize_t         n;
    tgd_report_t    report;
    tgd_session_t  *session;

    (void) events;
    session = watch->data;

    n = tgd_session_receive(session, &report);

    if (n == -1 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }

    if (n != (ssize_t) sizeof(report)) {
        session_lost(session, TGD_STAGE_NONE, 0);
        return;
    }

    switch (report.op) {

    case TGD_REPORT_READY:
        session_ready(session);
        break;

    case TGD_REPORT_FAILED:
        session_lost(session, (tgd_stage_e) report.stage, report.error);
        break;

    default:
        if (session->user != NULL) {
            session->user->report(session->data, &report);
        }
        break;
    }
}


static void
launcher_message(tgd_registry_t *registry, const tgd_launch_t *message)
{
    tgd_session_t  *session;

    if (message->op == TGD_LAUNCH_READY) {
        registry->facts.known = true;
        registry->facts.limits = message->limits;
        registry->facts.cgroup_missing = message->cgroup_missing;
        registry->facts.uid_separation = message->uid_separation != 0;
        registry->facts.stage = message->stage;
        registry->facts.error = message->error;

        if (registry->facts_known != NULL) {
            registry->facts_known(registry->data);
        }
        return;
    }

    if (message->op != TGD_LAUNCH_FAILED) {
        /* a session that ended is noticed at its own socket */
        return;
    }

    for (session = registry->first; session != NULL; session = session->next) {
        if (session->id == message->id) {
            session_lost(session, (tgd_stage_e) message->stage, message->error);
            return;
        }
    }
}


static void
launcher_handler(tgd_watch_t *watch, uint32_t events)
{
    ssize_t          n;
    tgd_launch_t     message;
    tgd_registry_t  *registry;

    (void) events;
    registry = watch->data;

    n = recv(watch->fd, &message, sizeof(message), MSG_DONTWAIT);

    if (n == -1 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }

    if (n == (ssize_t) sizeof(message)) {
        launcher_message(registry, &message);
        return;
    }

    tgd_watch_change(registry->loop, watch, 0);
    registry->launcher_gone(registry->data);
}
