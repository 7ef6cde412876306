/*
 * Memory of callers' bodies: it can be given back before the request's pool is, and
 * big ones go back to the system at once. From the allocator they would not: what a
 * worker has once held it would keep, in pieces. How big a body may be is not known
 * here.
 */

#include "ngx_http_toolgate_module.h"

#include <sys/mman.h>


/* from here on memory is mapped: its pages are cheaper than what would be left */
#define NGX_HTTP_TOOLGATE_BYTES_MAPPED  (256 * 1024)

/* and from here on in big pages, where the system has them for those who ask: two
 * thousand faults for a body of 8 MB are dearer than checking it */
#define NGX_HTTP_TOOLGATE_BYTES_HUGE    (4 * 1024 * 1024)


static void ngx_http_toolgate_bytes_advise(u_char *data, size_t size);


u_char *
ngx_http_toolgate_bytes_resize(ngx_pool_t *pool, u_char *data, size_t used,
    size_t old, size_t size)
{
    u_char  *p;

    if (size < NGX_HTTP_TOOLGATE_BYTES_MAPPED) {
        p = ngx_pmemalign(pool, size, NGX_ALIGNMENT);

    } else if (data && old >= NGX_HTTP_TOOLGATE_BYTES_MAPPED) {
        p = mremap(data, old, size, MREMAP_MAYMOVE);

        if (p == MAP_FAILED) {
            return NULL;
        }

        ngx_http_toolgate_bytes_advise(p, size);

        return p;

    } else {
        p = mmap(NULL, size, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);

        if (p == MAP_FAILED) {
            return NULL;
        }

        ngx_http_toolgate_bytes_advise(p, size);
    }

    if (p && data) {
        ngx_memcpy(p, data, used);
        ngx_http_toolgate_bytes_free(pool, data, old);
    }

    return p;
}


static void
ngx_http_toolgate_bytes_advise(u_char *data, size_t size)
{
#ifdef MADV_HUGEPAGE
    if (size >= NGX_HTTP_TOOLGATE_BYTES_HUGE) {
        (void) madvise(data, size, MADV_HUGEPAGE);
    }
#endif
}


void
ngx_http_toolgate_bytes_free(ngx_pool_t *pool, u_char *data, size_t size)
{
    if (data == NULL) {
        return;
    }

    if (size >= NGX_HTTP_TOOLGATE_BYTES_MAPPED) {
        (void) munmap(data, size);

    } else if (pool) {
        (void) ngx_pfree(pool, data);
    }
}
