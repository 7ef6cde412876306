/*
 * Messages of a session on their way to a script of Redis: of each the lengths of its
 * head and of itself (32 bits, little end first), then both.
 */

#include "ngx_http_toolgate_sessions.h"


void
ngx_http_toolgate_session_pack(tg_buf_t *out, tg_str_t head, tg_str_t message)
{
    u_char      lengths[8];
    ngx_uint_t  i;

    for (i = 0; i < 4; i++) {
        lengths[i] = (u_char) (head.len >> (8 * i));
        lengths[4 + i] = (u_char) (message.len >> (8 * i));
    }

    tg_buf_append(out, lengths, sizeof(lengths));
    tg_buf_str(out, head);
    tg_buf_str(out, message);
}


ngx_int_t
ngx_http_toolgate_session_unpack(tg_str_t list, size_t *at, tg_str_t *head,
    tg_str_t *message)
{
    size_t      left;
    u_char     *p;
    ngx_uint_t  i;

    left = list.len - *at;
    p = (u_char *) list.data + *at;

    if (left == 0) {
        return NGX_DONE;
    }

    if (left < 8) {
        return NGX_ERROR;
    }

    head->len = 0;
    message->len = 0;

    for (i = 0; i < 4; i++) {
        head->len |= (size_t) p[i] << (8 * i);
        message->len |= (size_t) p[4 + i] << (8 * i);
    }

    if (head->len + message->len > left - 8) {
        return NGX_ERROR;
    }

    head->data = (char *) p + 8;
    message->data = head->data + head->len;
    *at += 8 + head->len + message->len;

    return NGX_OK;
}
