/*
 * Reads the helper's configuration. An unknown key or value is an error: nothing
 * that somebody wrote down is silently ignored.
 */

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "conf.h"


#define TGD_CONF_DAY_S         86400
#define TGD_CONF_SESSIONS_MAX  64

typedef struct {
    const char   *key;
    const char *(*set)(tgd_conf_t *conf, const char *value);
} tgd_conf_key_t;


static const char *
conf_path(char *field, const char *value)
{
    size_t  len;

    len = strlen(value);
    if (len == 0 || value[0] != '/') {
        return "an absolute path is needed";
    }

    if (len >= TGD_CONF_PATH_MAX) {
        return "the path is too long";
    }

    memcpy(field, value, len + 1);
    return NULL;
}


static const char *
conf_number(int64_t *field, const char *value, int64_t min, int64_t max)
{
    char       *end;
    long long   n;

    errno = 0;
    n = strtoll(value, &end, 10);
    if (errno != 0 || end == value || *end != '\0' || !isdigit((unsigned char) value[0]))
    {
        return "a whole number is needed";
    }

    if (n < min || n > max) {
        return "the number is out of range";
    }

    *field = n;
    return NULL;
}


static const char *
set_socket(tgd_conf_t *conf, const char *value)
{
    return conf_path(conf->socket, value);
}


static const char *
set_state(tgd_conf_t *conf, const char *value)
{
    return conf_path(conf->state, value);
}


static const char *
set_log(tgd_conf_t *conf, const char *value)
{
    return conf_path(conf->log, value);
}


static const char *
set_pid_file(tgd_conf_t *conf, const char *value)
{
    return conf_path(conf->pid_file, value);
}


/* "33" or "33,1000" */
static const char *
set_peer_uid(tgd_conf_t *conf, const char *value)
{
    char          *end;
    unsigned long  uid;

    conf->peer_count = 0;

    for ( ;; ) {
        if (!isdigit((unsigned char) *value)) {
            return "user ids as numbers are needed, with commas between them";
        }

        errno = 0;
        uid = strtoul(value, &end, 10);
        if (errno != 0 || uid >= UINT32_MAX || (*end != '\0' && *end != ',')) {
            return "user ids as numbers are needed, with commas between them";
        }

        if (conf->peer_count == TGD_CONF_PEERS_MAX) {
            return "too many user ids";
        }

        conf->peers[conf->peer_count++] = (uid_t) uid;

        if (*end == '\0') {
            return NULL;
        }
        value = end + 1;
    }
}


static const char *
set_backend(tgd_conf_t *conf, const char *value)
{
    if (strcmp(value, "native") == 0) {
        conf->disabled = false;
        return NULL;
    }

    if (strcmp(value, "disabled") == 0) {
        conf->disabled = true;
        return NULL;
    }

    return "native or disabled is needed";
}


static const char *
set_ttl(tgd_conf_t *conf, const char *value)
{
    return conf_number(&conf->ttl_s, value, 1, TGD_CONF_DAY_S);
}


static const char *
set_idle_ttl(tgd_conf_t *conf, const char *value)
{
    return conf_number(&conf->idle_ttl_s, value, 0, TGD_CONF_DAY_S);
}


static const char *
set_max_sessions(tgd_conf_t *conf, const char *value)
{
    return conf_number(&conf->max_sessions, value, 0, TGD_CONF_SESSIONS_MAX);
}


static const tgd_conf_key_t  conf_keys[] = {
    { "socket", set_socket },
    { "state", set_state },
    { "log", set_log },
    { "pid_file", set_pid_file },
    { "peer_uid", set_peer_uid },
    { "KSADK_SANDBOX_BACKEND", set_backend },
    { "KSADK_SANDBOX_TTL_SECONDS", set_ttl },
    { "KSADK_SANDBOX_IDLE_TTL_SECONDS", set_idle_ttl },
    { "KSADK_SANDBOX_MAX_SESSIONS", set_max_sessions },
};


void
tgd_conf_init(tgd_conf_t *conf)
{
    memset(conf, 0, sizeof(*conf));

    conf->ttl_s = 3600;
    conf->idle_ttl_s = 300;
    conf->max_sessions = 4;
}


const char *
tgd_conf_set(tgd_conf_t *conf, const char *key, const char *value)
{
    size_t  i;

    for (i = 0; i < sizeof(conf_keys) / sizeof(conf_keys[0]); i++) {
        if (strcmp(conf_keys[i].key, key) == 0) {
            return conf_keys[i].set(conf, value);
        }
    }

    return "there is no such key";
}


const char *
tgd_conf_finish(tgd_conf_t *conf)
{
    if (conf->socket[0] == '\0') {
        return "socket is missing";
    }

    /* sun_path */
    if (strlen(conf->socket) > 107) {
        return "the socket's path is over 107 bytes";
    }

    if (conf->state[0] == '\0') {
        return "state is missing";
    }

    if (conf->peer_count == 0) {
        conf->peers[0] = geteuid();
        conf->peer_count = 1;
    }

    return NULL;
}


/* one line without its newline; empty and comment lines are fine */
static const char *
conf_line(tgd_conf_t *conf, char *line)
{
    char    *key, *value;
    size_t   len;

    line += strspn(line, " \t\r");
    if (*line == '\0' || *line == '#') {
        return NULL;
    }

    len = strlen(line);
    while (len > 0 && isspace((unsigned char) line[len - 1])) {
        len--;
    }

    if (line[len - 1] != ';') {
        return "the line must end with \";\"";
    }

    len--;
    while (len > 0 && isspace((unsigned char) line[len - 1])) {
        len--;
    }
    line[len] = '\0';

    key = line;
    value = line + strcspn(line, " \t");
    if (*value != '\0') {
        *value++ = '\0';
        value += strspn(value, " \t");
    }

    return tgd_conf_set(conf, key, value);
}


int
tgd_conf_read(tgd_conf_t *conf, const char *path, char *error, size_t size)
{
    int          fd;
    char        *text, *line, *next;
    ssize_t      n;
    unsigned     number;
    const char  *why;

    fd = open(path, O_RDONLY|O_CLOEXEC);
    if (fd == -1) {
        (void) snprintf(error, size, "%s: %s", path, strerror(errno));
        return -1;
    }

    text = malloc(TGD_CONF_FILE_MAX + 1);
    if (text == NULL) {
        (void) close(fd);
        (void) snprintf(error, size, "out of memory");
        return -1;
    }

    n = read(fd, text, TGD_CONF_FILE_MAX + 1);
    (void) close(fd);

    if (n < 0 || n > TGD_CONF_FILE_MAX || memchr(text, '\0', (size_t) n) != NULL) {
        (void) snprintf(error, size, "%s: can not be read as a configuration", path);
        free(text);
        return -1;
    }
    text[n] = '\0';

    why = NULL;
    for (line = text, number = 1; line != NULL; line = next, number++) {
        next = strchr(line, '\n');
        if (next != NULL) {
            *next++ = '\0';
        }

        why = conf_line(conf, line);
        if (why != NULL) {
            (void) snprintf(error, size, "%s:%u: \"%s\": %s", path, number, line, why);
            break;
        }
    }

    free(text);
    return why == NULL ? 0 : -1;
}
