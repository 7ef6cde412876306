/*
 * SHA-256 of a few pieces, with what OpenSSL needs for it kept for the life of the
 * worker: looking for the algorithm costs more than the digest of a key.
 */

#include "ngx_http_toolgate_module.h"

#include <openssl/evp.h>


typedef struct {
    EVP_MD      *md;
    EVP_MD_CTX  *ctx;
} ngx_http_toolgate_digest_worker_t;


static ngx_http_toolgate_digest_worker_t  ngx_http_toolgate_digest_worker;


ngx_int_t
ngx_http_toolgate_sha256(ngx_str_t *pieces, ngx_uint_t n,
    u_char sha256[NGX_HTTP_TOOLGATE_KEY_SHA256_LEN])
{
    ngx_uint_t                          i;
    ngx_http_toolgate_digest_worker_t  *w = &ngx_http_toolgate_digest_worker;

    if (w->md == NULL) {
        w->md = EVP_MD_fetch(NULL, "SHA256", NULL);
    }

    if (w->ctx == NULL) {
        w->ctx = EVP_MD_CTX_new();
    }

    if (w->md == NULL || w->ctx == NULL
        || EVP_DigestInit_ex(w->ctx, w->md, NULL) != 1)
    {
        return NGX_ERROR;
    }

    for (i = 0; i < n; i++) {
        if (EVP_DigestUpdate(w->ctx, pieces[i].data, pieces[i].len) != 1) {
            return NGX_ERROR;
        }
    }

    return EVP_DigestFinal_ex(w->ctx, sha256, NULL) == 1 ? NGX_OK : NGX_ERROR;
}


void
ngx_http_toolgate_sha256_exit_worker(void)
{
    ngx_http_toolgate_digest_worker_t  *w = &ngx_http_toolgate_digest_worker;

    EVP_MD_CTX_free(w->ctx);
    EVP_MD_free(w->md);

    w->ctx = NULL;
    w->md = NULL;
}
