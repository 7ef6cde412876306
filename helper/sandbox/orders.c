/*
 * Orders to the supervisor of a session: one datagram each, with the ends of a job's
 * pipes where it starts one. Never blocks.
 */

#include <errno.h>
#include <sys/socket.h>

#include "sandbox/registry.h"


int
tgd_session_order(tgd_session_t *session, tgd_order_op_e op)
{
    ssize_t      n;
    tgd_order_t  order;

    memset(&order, 0, sizeof(order));
    order.op = op;

    do {
        n = send(session->watch.fd, &order, sizeof(order), MSG_NOSIGNAL|MSG_DONTWAIT);
    } while (n == -1 && errno == EINTR);

    return n == -1 ? -1 : 0;
}


int
tgd_session_run(tgd_session_t *session, tgd_order_op_e op, tg_str_t cwd,
    tg_str_t command, tg_str_t env, uint32_t env_count, const int fds[2])
{
    ssize_t          n;
    tgd_order_t      order;
    struct iovec     iov[6];
    struct msghdr    head;
    struct cmsghdr  *control;
    static char      nul = '\0';

    union {
        struct cmsghdr  align;
        char            bytes[CMSG_SPACE(2 * sizeof(int))];
    } space;

    order.op = op;
    order.cwd_len = (uint32_t) cwd.len;
    order.command_len = (uint32_t) command.len;
    order.env_len = (uint32_t) env.len;
    order.env_count = env_count;

    iov[0] = (struct iovec) { &order, sizeof(order) };
    iov[1] = (struct iovec) { (void *) (uintptr_t) cwd.data, cwd.len };
    iov[2] = (struct iovec) { &nul, 1 };
    iov[3] = (struct iovec) { (void *) (uintptr_t) command.data, command.len };
    iov[4] = (struct iovec) { &nul, 1 };
    iov[5] = (struct iovec) { (void *) (uintptr_t) env.data, env.len };

    memset(&head, 0, sizeof(head));
    memset(&space, 0, sizeof(space));
    head.msg_iov = iov;
    head.msg_iovlen = 6;
    head.msg_control = &space;
    head.msg_controllen = sizeof(space);

    control = CMSG_FIRSTHDR(&head);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(2 * sizeof(int));
    memcpy(CMSG_DATA(control), fds, 2 * sizeof(int));

    do {
        n = sendmsg(session->watch.fd, &head, MSG_NOSIGNAL|MSG_DONTWAIT);
    } while (n == -1 && errno == EINTR);

    return n == -1 ? -1 : 0;
}
