/*
 * The description of a key: which members it has, which of them belong together. The
 * texts of public keys are read in _public.c; what a key is used for is not known here.
 */

#include "tg_jwt_int.h"

#include <stdio.h>
#include <stdlib.h>

#include <openssl/crypto.h>

#include "tg_ids.h"
#include "tg_json.h"



/* Notes a fault and returns NULL, for a caller that has nothing to return. */
static void *
tg_jwt_key_refuse(tg_jwt_key_error_t *error, const char *code, const char *pointer,
    const char *reason)
{
    error->code = code;
    error->reason = reason;
    (void) snprintf(error->pointer, sizeof(error->pointer), "%s", pointer);

    return NULL;
}


static bool
tg_jwt_key_members(const json_t *object, tg_jwt_key_error_t *error)
{
    char         pointer[sizeof(error->pointer)];
    size_t       i;
    json_t      *value;
    const char  *key;

    static const char *const  known[] = {
        "name", "alg", "secret", "public_key", "kid", "issuer", "audience", NULL
    };

    if (!json_is_object(object)) {
        tg_jwt_key_refuse(error, "invalid_type", "", "an object is needed");
        return false;
    }

    json_object_foreach((json_t *) (uintptr_t) object, key, value) {

        for (i = 0; known[i] != NULL && strcmp(known[i], key) != 0; i++) {
            /* looks on */
        }

        if (known[i] == NULL) {
            (void) snprintf(pointer, sizeof(pointer), "/%s", key);
            tg_jwt_key_refuse(error, "unknown_field", pointer, "this field is not known");
            return false;
        }
    }

    return true;
}


/* A text that may be absent (then *out is empty) but not be empty. */
static bool
tg_jwt_key_text(const json_t *object, const char *name, size_t max, tg_str_t *out,
    tg_jwt_key_error_t *error)
{
    char     pointer[32];
    json_t  *value = json_object_get(object, name);

    *out = tg_json_get_string(object, name);
    (void) snprintf(pointer, sizeof(pointer), "/%s", name);

    if (value != NULL && !json_is_string(value)) {
        tg_jwt_key_refuse(error, "invalid_type", pointer, "a string is needed");
        return false;
    }

    if (value != NULL && (out->len == 0 || out->len > max)) {
        tg_jwt_key_refuse(error, "invalid_value", pointer, "the text is empty or too long");
        return false;
    }

    return true;
}


/* Fills key->about and key->alg. */
static bool
tg_jwt_key_about(const json_t *object, tg_jwt_key_t *key, tg_jwt_key_error_t *error)
{
    size_t    i;
    tg_str_t  name, alg, text;

    static const struct {
        const char  *name;
        size_t       max;
    } texts[] = {
        { "kid", TG_JWT_KID_MAX },
        { "issuer", TG_JWT_NAME_MAX },
        { "audience", TG_JWT_NAME_MAX }
    };

    if (!tg_jwt_key_text(object, "name", SIZE_MAX, &name, error)
        || !tg_jwt_key_text(object, "alg", SIZE_MAX, &alg, error))
    {
        return false;
    }

    if (name.len == 0 || alg.len == 0) {
        tg_jwt_key_refuse(error, "missing_parameter", name.len == 0 ? "/name" : "/alg",
            name.len == 0 ? "a key has a name" : "a key has an alg");
        return false;
    }

    if (!tg_id_label_valid(name)) {
        tg_jwt_key_refuse(error, "invalid_value", "/name",
            "a key's name has 1 to 64 of [A-Za-z0-9_.:-]");
        return false;
    }

    key->alg = tg_jwt_alg_find(alg);

    if (key->alg == NULL) {
        tg_jwt_key_refuse(error, "invalid_value", "/alg",
            "alg is HS256, HS384, HS512, RS256, PS256, ES256 or EdDSA");
        return false;
    }

    key->about = json_pack("{s:s%}", "name", name.data, name.len);

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {

        if (!tg_jwt_key_text(object, texts[i].name, texts[i].max, &text, error)) {
            return false;
        }

        if (text.len > 0
            && json_object_set_new(key->about, texts[i].name,
                   json_stringn(text.data, text.len)) != 0)
        {
            tg_jwt_key_refuse(error, "internal_error", "", "out of memory");
            return false;
        }
    }

    if (key->about == NULL) {
        tg_jwt_key_refuse(error, "internal_error", "", "out of memory");
        return false;
    }

    return true;
}


static bool
tg_jwt_key_secret(const json_t *object, tg_jwt_key_t *key, tg_jwt_key_error_t *error)
{
    tg_str_t  text;

    if (json_object_get(object, "public_key") != NULL) {
        tg_jwt_key_refuse(error, "invalid_value", "/public_key",
            "an HS algorithm has a secret, not a public key");
        return false;
    }

    if (!tg_jwt_key_text(object, "secret", TG_JWT_SECRET_MAX, &text, error)) {
        return false;
    }

    if (text.data == NULL) {
        tg_jwt_key_refuse(error, "missing_parameter", "/secret",
            "an HS algorithm needs a secret");
        return false;
    }

    if (text.len < TG_JWT_SECRET_MIN) {
        tg_jwt_key_refuse(error, "invalid_value", "/secret",
            "a secret has at least 32 bytes");
        return false;
    }

    /* the sign of a key that everybody may know */

    if (strstr(text.data, TG_JWT_PEM_BEGIN) != NULL) {
        tg_jwt_key_refuse(error, "invalid_value", "/secret",
            "this is a PEM text, not a secret");
        return false;
    }

    key->secret = malloc(text.len);

    if (key->secret == NULL) {
        tg_jwt_key_refuse(error, "internal_error", "", "out of memory");
        return false;
    }

    memcpy(key->secret, text.data, text.len);
    key->secret_len = text.len;

    return true;
}


/* A kid inside of the JWK is the key's when nothing else is said. */
static bool
tg_jwt_key_jwk_kid(const json_t *jwk, tg_jwt_key_t *key, tg_jwt_key_error_t *error)
{
    tg_str_t  inner, outer = tg_json_get_string(key->about, "kid");
    json_t   *kid = json_object_get(jwk, "kid");

    if (kid == NULL) {
        return true;
    }

    inner = tg_json_get_string(jwk, "kid");

    if (inner.len == 0 || inner.len > TG_JWT_KID_MAX) {
        tg_jwt_key_refuse(error, "invalid_value", "/public_key",
            "the JWK's kid is not a text of 1 to 256 bytes");
        return false;
    }

    if (outer.data != NULL && !tg_str_eq(inner, outer)) {
        tg_jwt_key_refuse(error, "invalid_value", "/kid", "the JWK has another kid");
        return false;
    }

    if (json_object_set(key->about, "kid", kid) != 0) {
        tg_jwt_key_refuse(error, "internal_error", "", "out of memory");
        return false;
    }

    return true;
}


static bool
tg_jwt_key_jwk(const json_t *jwk, tg_jwt_key_t *key, tg_jwt_key_error_t *error)
{
    const char  *reason;

    key->public = tg_jwt_public_jwk(jwk, key->alg, &reason);

    if (key->public == NULL) {
        tg_jwt_key_refuse(error, reason == NULL ? "internal_error" : "invalid_value",
            "/public_key", reason == NULL ? "out of memory" : reason);
        return false;
    }

    return tg_jwt_key_jwk_kid(jwk, key, error);
}


static bool
tg_jwt_key_public_text(tg_str_t text, tg_jwt_key_t *key, tg_jwt_key_error_t *error)
{
    bool              good;
    size_t            i;
    json_t           *jwk;
    const char       *reason;
    tg_json_error_t   json_error;

    i = strspn(text.data, " \t\r\n");
    text.data += i;
    text.len -= i;

    if (text.len > 0 && text.data[0] == '{') {
        jwk = tg_json_load(text, &json_error);

        if (jwk == NULL) {
            tg_jwt_key_refuse(error, "invalid_value", "/public_key",
                "the JWK is not one JSON object without duplicate keys");
            return false;
        }

        good = tg_jwt_key_jwk(jwk, key, error);
        json_decref(jwk);

        return good;
    }

    key->public = tg_jwt_public_pem(text, key->alg, &reason);

    if (key->public == NULL) {
        tg_jwt_key_refuse(error, reason == NULL ? "internal_error" : "invalid_value",
            "/public_key", reason == NULL ? "out of memory" : reason);
        return false;
    }

    return true;
}


static bool
tg_jwt_key_public(const json_t *object, tg_jwt_key_t *key, tg_jwt_key_error_t *error)
{
    json_t    *value = json_object_get(object, "public_key");
    tg_str_t   text;

    if (json_object_get(object, "secret") != NULL) {
        tg_jwt_key_refuse(error, "invalid_value", "/secret",
            "this algorithm has a public key, not a secret");
        return false;
    }

    if (value == NULL) {
        tg_jwt_key_refuse(error, "missing_parameter", "/public_key",
            "this algorithm needs a public key");
        return false;
    }

    if (json_is_object(value)) {
        return tg_jwt_key_jwk(value, key, error);
    }

    if (!json_is_string(value)) {
        tg_jwt_key_refuse(error, "invalid_type", "/public_key",
            "a PEM text or a JWK is needed");
        return false;
    }

    text = tg_json_get_string(object, "public_key");

    if (text.len > TG_JWT_PUBLIC_KEY_MAX) {
        tg_jwt_key_refuse(error, "invalid_value", "/public_key", "the text is too long");
        return false;
    }

    return tg_jwt_key_public_text(text, key, error);
}


tg_jwt_key_t *
tg_jwt_key_parse(const json_t *object, tg_jwt_key_error_t *error)
{
    bool           good;
    tg_jwt_key_t  *key;

    memset(error, 0, sizeof(*error));

    if (!tg_jwt_key_members(object, error)) {
        return NULL;
    }

    key = calloc(1, sizeof(*key));

    if (key == NULL) {
        return tg_jwt_key_refuse(error, "internal_error", "", "out of memory");
    }

    good = tg_jwt_key_about(object, key, error)
           && (key->alg->family == TG_JWT_HMAC ? tg_jwt_key_secret(object, key, error)
                                               : tg_jwt_key_public(object, key, error));

    if (!good) {
        tg_jwt_key_free(key);
        return NULL;
    }

    return key;
}


void
tg_jwt_key_free(tg_jwt_key_t *key)
{
    if (key == NULL) {
        return;
    }

    if (key->secret != NULL) {
        OPENSSL_cleanse(key->secret, key->secret_len);
    }

    free(key->secret);
    EVP_PKEY_free(key->public);
    json_decref(key->about);
    free(key);
}


tg_str_t
tg_jwt_key_name(const tg_jwt_key_t *key)
{
    return tg_json_get_string(key->about, "name");
}
