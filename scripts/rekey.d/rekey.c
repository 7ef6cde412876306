/*
 * tg-rekey: seals again, under a new master key, all that the store holds under an
 * old one: secrets, signing secrets, secrets of end-user keys. It changes objects
 * as the control plane does, one at a time and only if nobody else has meanwhile;
 * it never prints a secret. It may be run again at any time.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <hiredis/hiredis.h>
#include <jansson.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include "tg_json.h"
#include "tg_secretbox.h"
#include "tg_sign.h"


#define KEY_FILE_MAX   4096
#define NAME_MAX_LEN   256        /* "project/kind/id" */
#define DOC_MAX        (512 * 1024)
#define PROJECTS_MAX   256        /* named on the command line */
#define TIMEOUT_S      5
#define TRIES          3          /* of an object that somebody changes */

typedef struct {
    redisContext  *redis;
    const char    *prefix;
    const char    *script;                 /* conf/redis/objects_write.lua */
    uint8_t        old_key[TG_SECRETBOX_KEY_LEN];
    uint8_t        new_key[TG_SECRETBOX_KEY_LEN];
    const char    *projects[PROJECTS_MAX];
    size_t         project_count;
    unsigned       sealed;
    unsigned       stored;
    unsigned       current;
    unsigned       failed;
} rekey_t;


static void
die(const char *what, const char *why)
{
    fprintf(stderr, "tg-rekey: %s: %s\n", what, why);
    exit(1);
}


/* The first line of a file; the caller frees it. */
static char *
read_text(const char *path, size_t max)
{
    int      fd;
    char    *text;
    size_t   len = 0;
    ssize_t  n;

    fd = open(path, O_RDONLY | O_CLOEXEC);
    text = malloc(max + 1);

    if (fd < 0 || text == NULL) {
        die(path, strerror(errno));
    }

    while (len < max && (n = read(fd, text + len, max - len)) > 0) {
        len += (size_t) n;
    }

    close(fd);
    text[len] = '\0';

    return text;
}


static int
hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}


static void
read_key(const char *path, uint8_t key[TG_SECRETBOX_KEY_LEN])
{
    int       high, low;
    char     *text;
    size_t    i, len;
    uint8_t   raw[48];

    text = read_text(path, KEY_FILE_MAX);
    len = strcspn(text, " \t\r\n");

    if (len == 2 * TG_SECRETBOX_KEY_LEN) {
        for (i = 0; i < TG_SECRETBOX_KEY_LEN; i++) {
            high = hex_digit(text[2 * i]);
            low = hex_digit(text[2 * i + 1]);

            if (high < 0 || low < 0) {
                die(path, "64 hex digits are needed");
            }

            key[i] = (uint8_t) (high * 16 + low);
        }

    } else if (len == 44 && text[43] == '='
               && EVP_DecodeBlock(raw, (const uint8_t *) text, 44) == 33)
    {
        memcpy(key, raw, TG_SECRETBOX_KEY_LEN);

    } else {
        die(path, "32 bytes as 64 hex digits or as base64 are needed");
    }

    OPENSSL_cleanse(text, len);
    OPENSSL_cleanse(raw, sizeof(raw));
    free(text);
}


/* unix:/path, or [redis://]host[:port] */
static redisContext *
open_redis(const char *url)
{
    char            host[NAME_MAX_LEN];
    char           *colon;
    redisContext   *redis;
    struct timeval  timeout = { TIMEOUT_S, 0 };

    if (strncmp(url, "unix:", 5) == 0) {
        redis = redisConnectUnixWithTimeout(url + 5, timeout);

    } else {
        if (strncmp(url, "redis://", 8) == 0) {
            url += 8;
        }

        snprintf(host, sizeof(host), "%s", url);
        colon = strchr(host, ':');

        if (colon) {
            *colon++ = '\0';
        }

        redis = redisConnectWithTimeout(host, colon ? atoi(colon) : 6379, timeout);
    }

    if (redis == NULL || redis->err) {
        die("redis", redis ? redis->errstr : "out of memory");
    }

    redisSetTimeout(redis, timeout);

    return redis;
}


typedef enum {
    RESEAL_NOTHING = 0,    /* there is no sealed text */
    RESEAL_CURRENT,        /* it is under the new key already */
    RESEAL_CHANGED,
    RESEAL_FAILED          /* neither key opens it */
} reseal_e;

/* One member of an object, a sealed text, under the new key. */
static reseal_e
reseal(rekey_t *r, const char *name, json_t *holder, const char *member)
{
    tg_buf_t  plain, sealed;
    tg_str_t  text;
    reseal_e  rc;
    uint8_t   nonce[TG_SECRETBOX_NONCE_LEN];

    text = tg_json_get_string(holder, member);

    if (text.len == 0) {
        return RESEAL_NOTHING;
    }

    if (tg_secretbox_names_key(r->new_key, text)) {
        return RESEAL_CURRENT;
    }

    rc = RESEAL_FAILED;
    tg_buf_init(&plain, TG_SECRETBOX_PLAIN_MAX);
    tg_buf_init(&sealed, DOC_MAX);

    if (tg_secretbox_open(r->old_key, tg_str_of(name), text, &plain) == TG_OK
        && RAND_bytes(nonce, sizeof(nonce)) == 1
        && tg_secretbox_seal(r->new_key, nonce, tg_str_of(name), tg_buf_get(&plain),
                             &sealed) == TG_OK
        && json_object_set_new(holder, member,
                               json_stringn(sealed.data, sealed.len)) == 0)
    {
        rc = RESEAL_CHANGED;
    }

    tg_secretbox_wipe(&plain);
    tg_buf_free(&sealed);

    return rc;
}


/* "create" or "update"; version "" for a new one. 1: written, 0: somebody else did. */
static int
write_object(rekey_t *r, const char *verb, const char *name, const char *version,
    json_t *doc)
{
    int           rc;
    char          kind[NAME_MAX_LEN];
    char         *text;
    redisReply   *reply;

    text = json_dumps(doc, JSON_COMPACT);
    snprintf(kind, sizeof(kind), "%s", name);
    *strrchr(kind, '/') = '\0';

    reply = redisCommand(r->redis,
        "EVAL %s 6 %s{cp}:change %s{cp}:objects %s{cp}:changes %s{cp}:names "
        "%s{cp}:counts %s{cp}:versions %s %s %s %s %s %s %s %s",
        r->script, r->prefix, r->prefix, r->prefix, r->prefix, r->prefix, r->prefix,
        verb, name, kind, "", "", version, "1000000", text);

    if (reply == NULL || reply->type == REDIS_REPLY_ERROR) {
        die(name, reply ? reply->str : r->redis->errstr);
    }

    rc = reply->elements > 0 && reply->element[0]->str
         && strcmp(reply->element[0]->str, "ok") == 0;

    freeReplyObject(reply);
    free(text);

    return rc;
}


/* What is unique of an end-user key is its name, which does not change: the names'
 * hash is left alone, so "" is written for it. 1: done, 0: changed meanwhile, -1: it
 * cannot be opened. */
static int
rekey_object(rekey_t *r, const char *name, const char *object)
{
    int               rc;
    char              version[24];
    json_t           *doc;
    reseal_e          own, previous;
    const char       *blank;
    tg_json_error_t   error;

    blank = strchr(object, ' ');

    if (blank == NULL || (size_t) (blank - object) >= sizeof(version)) {
        return -1;
    }

    memcpy(version, object, (size_t) (blank - object));
    version[blank - object] = '\0';

    doc = tg_json_load(tg_str_of(blank + 1), &error);
    if (doc == NULL) {
        return -1;
    }

    own = reseal(r, name, doc, strstr(name, "/secret/") ? "value" : "secret");
    previous = reseal(r, name, json_object_get(doc, "previous"), "secret");
    rc = 1;

    if (own == RESEAL_FAILED || previous == RESEAL_FAILED) {
        rc = -1;

    } else if (own == RESEAL_CHANGED || previous == RESEAL_CHANGED) {
        rc = write_object(r, "update", name, version, doc);
        r->sealed += (unsigned) rc;

    } else if (own == RESEAL_CURRENT) {
        r->current++;
    }

    json_decref(doc);

    return rc;
}


static int
has_secret(const char *name)
{
    return strstr(name, "/secret/") || strstr(name, "/signing/")
           || strstr(name, "/end_user_key/");
}


static void
rekey_one(rekey_t *r, const char *name)
{
    int          i, rc = 0;
    redisReply  *reply;

    for (i = 0; i < TRIES && rc == 0; i++) {
        reply = redisCommand(r->redis, "HGET %s{cp}:objects %s", r->prefix, name);

        if (reply == NULL || reply->type == REDIS_REPLY_ERROR) {
            die(name, reply ? reply->str : r->redis->errstr);
        }

        /* gone meanwhile: nothing is left to do */
        rc = reply->type == REDIS_REPLY_STRING
             ? rekey_object(r, name, reply->str) : 1;
        freeReplyObject(reply);
    }

    if (rc != 1) {
        fprintf(stderr, "tg-rekey: %s: %s\n", name,
                rc < 0 ? "cannot be opened with the old key" : "keeps changing");
        r->failed++;
    }
}


/* A project that has not rotated yet signs with what follows from the old key: that
 * is stored now, so that nothing changes for those who verify. */
static void
keep_signing(rekey_t *r, const char *project)
{
    char      name[NAME_MAX_LEN];
    json_t   *doc;
    tg_buf_t  secret, sealed;
    uint8_t   nonce[TG_SECRETBOX_NONCE_LEN];

    snprintf(name, sizeof(name), "%s/signing/secret", project);
    tg_buf_init(&secret, TG_SIGN_SECRET_MAX);
    tg_buf_init(&sealed, DOC_MAX);

    if (tg_sign_derive((tg_str_t) { sizeof(r->old_key), (char *) r->old_key },
                       tg_str_of(project), &secret) != TG_OK
        || RAND_bytes(nonce, sizeof(nonce)) != 1
        || tg_secretbox_seal(r->new_key, nonce, tg_str_of(name), tg_buf_get(&secret),
                             &sealed) != TG_OK)
    {
        die(name, "out of memory");
    }

    doc = json_pack("{s:I,s:s%}", "created_at", (json_int_t) time(NULL), "secret",
                    sealed.data, sealed.len);

    /* refused when there is one already */
    r->stored += (unsigned) write_object(r, "create", name, "", doc);

    json_decref(doc);
    tg_secretbox_wipe(&secret);
    tg_buf_free(&sealed);
}


static void
rekey_all(rekey_t *r)
{
    char          project[NAME_MAX_LEN];
    size_t        i;
    redisReply   *names;

    names = redisCommand(r->redis, "HKEYS %s{cp}:objects", r->prefix);

    if (names == NULL || names->type != REDIS_REPLY_ARRAY) {
        die("objects", names && names->str ? names->str : r->redis->errstr);
    }

    for (i = 0; i < names->elements; i++) {
        if (has_secret(names->element[i]->str)) {
            rekey_one(r, names->element[i]->str);
        }

        snprintf(project, sizeof(project), "%s", names->element[i]->str);
        project[strcspn(project, "/")] = '\0';

        if (strstr(names->element[i]->str, "/project/")) {
            keep_signing(r, project);
        }
    }

    freeReplyObject(names);

    for (i = 0; i < r->project_count; i++) {
        keep_signing(r, r->projects[i]);
    }
}


int
main(int argc, char **argv)
{
    int         i;
    rekey_t     r;
    const char *url = NULL, *old_file = NULL, *new_file = NULL, *script = NULL;

    memset(&r, 0, sizeof(r));
    r.prefix = "tg:";
    r.projects[r.project_count++] = "default";

    for (i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--redis") == 0) {
            url = argv[i + 1];

        } else if (strcmp(argv[i], "--prefix") == 0) {
            r.prefix = argv[i + 1];

        } else if (strcmp(argv[i], "--old") == 0) {
            old_file = argv[i + 1];

        } else if (strcmp(argv[i], "--new") == 0) {
            new_file = argv[i + 1];

        } else if (strcmp(argv[i], "--script") == 0) {
            script = argv[i + 1];

        } else if (strcmp(argv[i], "--project") == 0
                   && r.project_count < PROJECTS_MAX)
        {
            r.projects[r.project_count++] = argv[i + 1];

        } else {
            die(argv[i], "this option is not known");
        }
    }

    if (i != argc || !url || !old_file || !new_file || !script) {
        fprintf(stderr, "usage: tg-rekey --redis URL [--prefix tg:] --old FILE "
                        "--new FILE --script FILE [--project NAME]...\n");
        return 2;
    }

    read_key(old_file, r.old_key);
    read_key(new_file, r.new_key);
    r.script = read_text(script, DOC_MAX);
    r.redis = open_redis(url);

    rekey_all(&r);

    printf("%u sealed again, %u were under the new key already, %u signing secrets "
           "stored, %u failed\n", r.sealed, r.current, r.stored, r.failed);

    redisFree(r.redis);
    OPENSSL_cleanse(r.old_key, sizeof(r.old_key));
    OPENSSL_cleanse(r.new_key, sizeof(r.new_key));

    return r.failed ? 1 : 0;
}
