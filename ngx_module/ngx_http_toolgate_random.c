/*
 * Random bytes for ids. One draw from the library is as dear as a whole small
 * request's parsing, so a worker draws many at once and hands them out; what was
 * handed out is wiped. Not for keys.
 */

#include "ngx_http_toolgate_module.h"

#include <openssl/rand.h>


#define NGX_HTTP_TOOLGATE_RANDOM_DRAW  2048


ngx_int_t
ngx_http_toolgate_random(u_char *to, size_t len)
{
    u_char  *from;

    static u_char     drawn[NGX_HTTP_TOOLGATE_RANDOM_DRAW];
    static size_t     left;
    static ngx_pid_t  owner;

    if (len > NGX_HTTP_TOOLGATE_RANDOM_DRAW) {
        return NGX_ERROR;
    }

    /* after a fork both sides would hand out the same bytes */

    if (owner != ngx_pid || left < len) {
        left = 0;

        if (RAND_bytes(drawn, sizeof(drawn)) != 1) {
            return NGX_ERROR;
        }

        owner = ngx_pid;
        left = sizeof(drawn);
    }

    left -= len;
    from = drawn + left;

    ngx_memcpy(to, from, len);
    ngx_explicit_memzero(from, len);

    return NGX_OK;
}
