/*
 * Any bytes as a token, as a token that is signed well, and as a key: what is accepted
 * keeps what templates and counters build on, what is refused says why, and OpenSSL's
 * queue of errors stays empty.
 */

#include <stdlib.h>

#include <openssl/err.h>
#include <openssl/evp.h>

#include "tg_json.h"
#include "tg_jwt.h"


#define SECRET  "0123456789abcdef0123456789abcdef"
#define NOW     1700000000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static tg_jwt_key_t  *keys[2];


static void
check(bool holds)
{
    if (!holds) {
        abort();
    }
}


static tg_jwt_key_t *
make(json_t *about)
{
    tg_jwt_key_t        *key;
    tg_jwt_key_error_t   error;

    key = tg_jwt_key_parse(about, &error);
    json_decref(about);
    check(key != NULL);

    return key;
}


static void
judge(tg_str_t token)
{
    json_t          *user, *id, *traits, *value;
    tg_rc_e          rc;
    const char      *name;
    tg_jwt_fault_e   fault;

    rc = tg_jwt_verify(token, keys, 2, NOW, &user, &fault);
    check(ERR_peek_error() == 0);

    if (rc != TG_OK) {
        check(user == NULL && fault != TG_JWT_ACCEPTED && tg_jwt_fault_text(fault) != NULL);
        return;
    }

    id = json_object_get(user, "external_id");
    traits = json_object_get(user, "traits");

    check(token.len <= TG_JWT_TOKEN_MAX && json_object_size(user) == 2);
    check(json_string_length(id) > 0 && json_string_length(id) <= TG_JWT_EXTERNAL_ID_MAX);
    check(json_is_object(traits) && json_object_size(traits) <= TG_JWT_TRAITS_MAX);

    json_object_foreach(traits, name, value) {
        check(json_is_string(value) || json_is_number(value) || json_is_boolean(value));
    }

    json_decref(user);
}


static size_t
encode(char *out, size_t at, const uint8_t *p, size_t len)
{
    size_t  n;

    n = (size_t) EVP_EncodeBlock((uint8_t *) out + at, p, (int) len);

    for (n += at; at < n && out[at] != '='; at++) {
        out[at] = out[at] == '+' ? '-' : out[at] == '/' ? '_' : out[at];
    }

    return at;
}


/* The header is what stands before the first line feed, the payload what follows. */
static void
judge_signed(const uint8_t *data, size_t size)
{
    char           *token;
    size_t          head, at, n;
    uint8_t         mac[32];
    const uint8_t  *end = size == 0 ? NULL : memchr(data, '\n', size);

    if (end == NULL || size > TG_JWT_TOKEN_MAX) {
        return;
    }

    head = (size_t) (end - data);
    token = malloc(2 * size + 128);
    check(token != NULL);

    at = encode(token, 0, data, head);
    token[at++] = '.';
    at = encode(token, at, end + 1, size - head - 1);

    check(EVP_Q_mac(NULL, "HMAC", NULL, "SHA256", NULL, SECRET, sizeof(SECRET) - 1,
        (uint8_t *) token, at, mac, sizeof(mac), &n) != NULL);
    token[at++] = '.';
    at = encode(token, at, mac, n);

    judge((tg_str_t) { at, token });
    free(token);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t               *about;
    tg_str_t              text = { size, (const char *) data };
    tg_jwt_key_t         *key;
    tg_json_error_t       json_error;
    tg_jwt_key_error_t    error;

    if (keys[0] == NULL) {
        keys[0] = make(json_pack("{s:s, s:s, s:s}", "name", "a", "alg", "HS256", "secret",
            SECRET));
        keys[1] = make(json_pack("{s:s, s:s, s:{s:s, s:s, s:s}}", "name", "b", "alg",
            "EdDSA", "public_key", "kty", "OKP", "crv", "Ed25519",
            "x", "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"));
    }

    judge(text);
    judge_signed(data, size);

    about = tg_json_load(text, &json_error);

    if (about != NULL) {
        key = tg_jwt_key_parse(about, &error);
        json_decref(about);

        check((key == NULL) == (error.code != NULL && error.reason != NULL));
        check(key == NULL || tg_jwt_key_name(key).len > 0);
        check(ERR_peek_error() == 0);
        tg_jwt_key_free(key);
    }

    return 0;
}
