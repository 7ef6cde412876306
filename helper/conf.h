/*
 * The helper's configuration: a file of "key value;" lines, or command-line flags.
 */

#ifndef TGD_CONF_H
#define TGD_CONF_H

#include "tgd.h"


#define TGD_CONF_PEERS_MAX  16
#define TGD_CONF_PATH_MAX   4096
#define TGD_CONF_FILE_MAX   (64 * 1024)

typedef struct {
    char     socket[TGD_CONF_PATH_MAX];
    char     state[TGD_CONF_PATH_MAX];
    char     log[TGD_CONF_PATH_MAX];         /* "": standard error */
    char     pid_file[TGD_CONF_PATH_MAX];    /* "": none */
    uid_t    peers[TGD_CONF_PEERS_MAX];
    size_t   peer_count;
    bool     disabled;                       /* KSADK_SANDBOX_BACKEND disabled */
    int64_t  ttl_s;                          /* absolute life of a session */
    int64_t  idle_ttl_s;                     /* 0: idle ones live on to ttl_s */
    int64_t  max_sessions;                   /* of one account; 0: no such bound */
} tgd_conf_t;


void tgd_conf_init(tgd_conf_t *conf);

/* Reads a file. On failure 0 is not returned and error tells file, line and why. */
int tgd_conf_read(tgd_conf_t *conf, const char *path, char *error, size_t size);

/* Sets one key as in the file. Returns NULL or why not. */
const char *tgd_conf_set(tgd_conf_t *conf, const char *key, const char *value);

/* Checks what is missing and fills in defaults. Returns NULL or why not. */
const char *tgd_conf_finish(tgd_conf_t *conf);

#endif /* TGD_CONF_H */
