/*
 * The line to the supervisor of a session: orders out and reports in, one datagram
 * each. Never blocks.
 */

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

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
    tg_str_t command, tg_str_t env, uint32_t env_count, int outputs[2])
{
    ssize_t        n;
    tgd_order_t    order;
    struct iovec   iov[6];
    struct msghdr  head;
    static char    nul = '\0';

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
    head.msg_iov = iov;
    head.msg_iovlen = 6;

    do {
        n = sendmsg(session->watch.fd, &head, MSG_NOSIGNAL|MSG_DONTWAIT);
    } while (n == -1 && errno == EINTR);

    if (n == -1) {
        return -1;
    }

    session->state = TGD_SESSION_BUSY;
    memcpy(outputs, session->outputs, sizeof(session->outputs));
    session->outputs[0] = -1;
    session->outputs[1] = -1;

    return 0;
}


void
tgd_session_drop_outputs(tgd_session_t *session)
{
    int  i;

    for (i = 0; i < 2; i++) {
        if (session->outputs[i] != -1) {
            (void) close(session->outputs[i]);
            session->outputs[i] = -1;
        }
    }
}


ssize_t
tgd_session_receive(tgd_session_t *session, tgd_report_t *report)
{
    ssize_t          n;
    struct iovec     iov = { report, sizeof(*report) };
    struct msghdr    head;
    struct cmsghdr  *control;

    union {
        struct cmsghdr  align;
        char            bytes[CMSG_SPACE(2 * sizeof(int))];
    } space;

    memset(&head, 0, sizeof(head));
    head.msg_iov = &iov;
    head.msg_iovlen = 1;
    head.msg_control = &space;
    head.msg_controllen = sizeof(space);

    n = recvmsg(session->watch.fd, &head, MSG_DONTWAIT|MSG_CMSG_CLOEXEC);

    control = n <= 0 ? NULL : CMSG_FIRSTHDR(&head);
    if (control != NULL && control->cmsg_type == SCM_RIGHTS
        && control->cmsg_len == CMSG_LEN(2 * sizeof(int)))
    {
        tgd_session_drop_outputs(session);
        memcpy(session->outputs, CMSG_DATA(control), 2 * sizeof(int));
    }

    return n;
}
