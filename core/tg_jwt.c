/*
 * The rules of a token: its form, its header, which keys are tried, its claims. The
 * payload is read only after the signature was found good. Mathematics is in
 * _signature.c, keys are read in _key.c.
 */

#include "tg_jwt_int.h"

#include <math.h>
#include <strings.h>

#include "tg_json.h"


/* the longest is that of an RSA key of TG_JWT_RSA_MAX_BITS */
#define TG_JWT_SIGNATURE_MAX  (TG_JWT_RSA_MAX_BITS / 8)
#define TG_JWT_DECODED_MAX    (TG_JWT_TOKEN_MAX / 4 * 3)

typedef struct {
    tg_str_t             header;        /* still encoded */
    tg_str_t             payload;
    tg_str_t             signed_text;   /* both, with the dot */
    uint8_t              signature[TG_JWT_SIGNATURE_MAX];
    size_t               signature_len;
    const tg_jwt_alg_t  *alg;
    json_t              *head;
    json_t              *claims;        /* NULL until a signature was good */
    const json_t        *kid;           /* borrowed of head; NULL: none */
} tg_jwt_token_t;


static const char *const  tg_jwt_faults[] = {
    [TG_JWT_ACCEPTED] = "The end user token is valid.",
    [TG_JWT_TOO_LONG] = "The end user token is longer than 8 KiB. Sign one with fewer "
                        "claims.",
    [TG_JWT_MALFORMED] = "The end user token is not a signed JWT: three parts in "
                         "base64url without padding, JSON objects without duplicate "
                         "keys. Send it as it was signed.",
    [TG_JWT_WRONG_TYPE] = "The end user token has a \"typ\" other than JWT. Sign one for "
                          "this purpose.",
    [TG_JWT_CRITICAL] = "The end user token needs an extension (\"crit\", \"b64\") that "
                        "is not supported. Sign a plain one.",
    [TG_JWT_NO_KEY] = "No end-user key of this project has the \"alg\" and \"kid\" of the "
                      "end user token. Register the key, or sign with one of the "
                      "project's.",
    [TG_JWT_SIGNATURE] = "The signature of the end user token is not of any end-user key "
                         "of this project. Sign it with one of them.",
    [TG_JWT_CLAIMS] = "A claim of the end user token is missing or not as it must be: "
                      "\"sub\" is 1 to 255 bytes of text, \"exp\" a time in seconds, "
                      "\"traits\" an object. Sign one that has them.",
    [TG_JWT_EXPIRED] = "The end user token has expired. Sign a new one.",
    [TG_JWT_NOT_YET_VALID] = "The end user token is not valid yet. Check the clock of its "
                             "signer.",
    [TG_JWT_ISSUER] = "The end user token has another \"iss\" than its key allows. Sign "
                      "it as the key's issuer.",
    [TG_JWT_AUDIENCE] = "The end user token has no \"aud\" that its key allows. Sign it "
                        "for the key's audience."
};


const char *
tg_jwt_fault_text(tg_jwt_fault_e fault)
{
    return tg_jwt_faults[fault];
}


/* One part as a JSON object; *nomem tells the two reasons for NULL apart. */
static json_t *
tg_jwt_object(tg_str_t part, bool *nomem)
{
    json_t           *value;
    uint8_t           text[TG_JWT_DECODED_MAX];
    ptrdiff_t         n;
    tg_json_error_t   error;

    n = tg_jwt_base64url(part, text, sizeof(text));

    if (n < 0) {
        return NULL;
    }

    value = tg_json_load((tg_str_t) { (size_t) n, (const char *) text }, &error);

    if (value == NULL) {
        *nomem = strcmp(error.reason, "out of memory") == 0;
        return NULL;
    }

    if (!json_is_object(value)) {
        json_decref(value);
        return NULL;
    }

    return value;
}


/* Finds the parts; a JWS has three of them, what is encrypted has five. */
static tg_jwt_fault_e
tg_jwt_split(tg_str_t text, tg_jwt_token_t *token)
{
    ptrdiff_t    n;
    tg_str_t     signature;
    const char  *first, *second, *end;

    if (text.len > TG_JWT_TOKEN_MAX) {
        return TG_JWT_TOO_LONG;
    }

    if (text.len == 0) {
        return TG_JWT_MALFORMED;
    }

    end = text.data + text.len;
    first = memchr(text.data, '.', text.len);
    second = first == NULL ? NULL : memchr(first + 1, '.', (size_t) (end - first - 1));

    if (second == NULL) {
        return TG_JWT_MALFORMED;
    }

    token->header = (tg_str_t) { (size_t) (first - text.data), text.data };
    token->payload = (tg_str_t) { (size_t) (second - first - 1), first + 1 };
    token->signed_text = (tg_str_t) { (size_t) (second - text.data), text.data };
    signature = (tg_str_t) { (size_t) (end - second - 1), second + 1 };

    /* a third dot is no character of base64url */

    n = tg_jwt_base64url(signature, token->signature, sizeof(token->signature));

    if (n < 0) {
        return TG_JWT_MALFORMED;
    }

    token->signature_len = (size_t) n;

    return TG_JWT_ACCEPTED;
}


/* What the header may say. "jwk", "jku", "x5c" and the like, with which a token would
 * bring its own key, are not looked at. */
static tg_jwt_fault_e
tg_jwt_check_header(tg_jwt_token_t *token)
{
    json_t  *alg, *typ, *b64;

    alg = json_object_get(token->head, "alg");
    typ = json_object_get(token->head, "typ");
    b64 = json_object_get(token->head, "b64");
    token->kid = json_object_get(token->head, "kid");

    if (!json_is_string(alg) || (token->kid != NULL && !json_is_string(token->kid))) {
        return TG_JWT_MALFORMED;
    }

    if (json_object_get(token->head, "crit") != NULL
        || (b64 != NULL && !json_is_true(b64)))
    {
        return TG_JWT_CRITICAL;
    }

    if (typ != NULL
        && (!json_is_string(typ) || strcasecmp(json_string_value(typ), "JWT") != 0))
    {
        return TG_JWT_WRONG_TYPE;
    }

    token->alg = tg_jwt_alg_find(tg_json_get_string(token->head, "alg"));

    return token->alg == NULL ? TG_JWT_NO_KEY : TG_JWT_ACCEPTED;
}


/* A time in seconds, whole or not. */
static bool
tg_jwt_time(const json_t *claims, const char *name, bool *present, double *value)
{
    json_t  *time = json_object_get(claims, name);

    *present = time != NULL;
    *value = json_number_value(time);

    return time == NULL || (json_is_number(time) && isfinite(*value));
}


static tg_jwt_fault_e
tg_jwt_check_times(const json_t *claims, int64_t now)
{
    bool    has_exp, has_nbf, has_iat;
    double  exp, nbf, iat, clock = (double) now;

    if (!tg_jwt_time(claims, "exp", &has_exp, &exp)
        || !tg_jwt_time(claims, "nbf", &has_nbf, &nbf)
        || !tg_jwt_time(claims, "iat", &has_iat, &iat)
        || !has_exp)
    {
        return TG_JWT_CLAIMS;
    }

    if (exp <= clock - TG_JWT_LEEWAY_S) {
        return TG_JWT_EXPIRED;
    }

    if ((has_nbf && nbf > clock + TG_JWT_LEEWAY_S)
        || (has_iat && iat > clock + TG_JWT_LEEWAY_S))
    {
        return TG_JWT_NOT_YET_VALID;
    }

    return TG_JWT_ACCEPTED;
}


/* "aud" is one name or a list of names. */
static bool
tg_jwt_audience_has(const json_t *aud, tg_str_t name)
{
    size_t   i;
    json_t  *one;

    if (json_is_string(aud)) {
        return tg_str_eq(name, (tg_str_t) { json_string_length(aud),
                                            json_string_value(aud) });
    }

    json_array_foreach(aud, i, one) {
        if (json_is_string(one)
            && tg_str_eq(name, (tg_str_t) { json_string_length(one),
                                            json_string_value(one) }))
        {
            return true;
        }
    }

    return false;
}


/* What this key wants of a token besides the signature. */
static tg_jwt_fault_e
tg_jwt_check_key_claims(const json_t *claims, const tg_jwt_key_t *key)
{
    tg_str_t  issuer = tg_json_get_string(key->about, "issuer");
    tg_str_t  audience = tg_json_get_string(key->about, "audience");

    if (issuer.len > 0 && !tg_str_eq(issuer, tg_json_get_string(claims, "iss"))) {
        return TG_JWT_ISSUER;
    }

    if (audience.len > 0
        && !tg_jwt_audience_has(json_object_get(claims, "aud"), audience))
    {
        return TG_JWT_AUDIENCE;
    }

    return TG_JWT_ACCEPTED;
}


/* The id goes into URLs, keys of counters and reports. */
static bool
tg_jwt_subject_valid(tg_str_t sub)
{
    size_t         i;
    unsigned char  c;

    for (i = 0; i < sub.len; i++) {
        c = (unsigned char) sub.data[i];

        if (c < 0x20 || c == 0x7f) {
            return false;
        }
    }

    return sub.len > 0 && sub.len <= TG_JWT_EXTERNAL_ID_MAX;
}


/* Makes the end user as templates know one. */
static tg_rc_e
tg_jwt_end_user(const json_t *claims, json_t **end_user)
{
    json_t      *value, *traits, *given = json_object_get(claims, "traits");
    const char  *key;

    traits = json_object();

    json_object_foreach(given, key, value) {
        if ((json_is_string(value) || json_is_number(value) || json_is_boolean(value))
            && json_object_set(traits, key, value) != 0)
        {
            json_decref(traits);
            return TG_E_NOMEM;
        }
    }

    *end_user = json_pack("{s:O, s:o}", "external_id", json_object_get(claims, "sub"),
        "traits", traits);

    return *end_user == NULL ? TG_E_NOMEM : TG_OK;
}


static tg_jwt_fault_e
tg_jwt_check_claims(const json_t *claims, int64_t now)
{
    json_t          *traits = json_object_get(claims, "traits");
    tg_jwt_fault_e   fault;

    fault = tg_jwt_check_times(claims, now);

    if (fault != TG_JWT_ACCEPTED) {
        return fault;
    }

    if (!tg_jwt_subject_valid(tg_json_get_string(claims, "sub"))
        || (traits != NULL && !json_is_object(traits))
        || json_object_size(traits) > TG_JWT_TRAITS_MAX)
    {
        return TG_JWT_CLAIMS;
    }

    return TG_JWT_ACCEPTED;
}


/* Whether the token may have been signed with this key: a key serves its own
 * algorithm only, whatever the token says. */
static bool
tg_jwt_key_fits(const tg_jwt_token_t *token, const tg_jwt_key_t *key)
{
    if (key->alg != token->alg) {
        return false;
    }

    return token->kid == NULL
           || tg_str_eq(tg_json_get_string(token->head, "kid"),
                  tg_json_get_string(key->about, "kid"));
}


/* Tries the keys. Of several faults the last one is told. */
static tg_rc_e
tg_jwt_try_keys(tg_jwt_token_t *token, tg_jwt_key_t *const *keys, size_t count,
    tg_jwt_fault_e *fault)
{
    bool    nomem = false;
    size_t  i;

    *fault = TG_JWT_NO_KEY;

    for (i = 0; i < count; i++) {

        if (!tg_jwt_key_fits(token, keys[i])) {
            continue;
        }

        if (!tg_jwt_signature_good(keys[i], token->signed_text, token->signature,
                token->signature_len))
        {
            if (*fault == TG_JWT_NO_KEY) {
                *fault = TG_JWT_SIGNATURE;
            }

            continue;
        }

        if (token->claims == NULL) {
            token->claims = tg_jwt_object(token->payload, &nomem);
        }

        if (token->claims == NULL) {
            *fault = TG_JWT_MALFORMED;
            return nomem ? TG_E_NOMEM : TG_E_INVALID;
        }

        *fault = tg_jwt_check_key_claims(token->claims, keys[i]);

        if (*fault == TG_JWT_ACCEPTED) {
            return TG_OK;
        }
    }

    return TG_E_INVALID;
}


tg_rc_e
tg_jwt_verify(tg_str_t text, tg_jwt_key_t *const *keys, size_t count, int64_t now,
    json_t **end_user, tg_jwt_fault_e *fault)
{
    bool            nomem = false;
    tg_rc_e         rc;
    tg_jwt_token_t  token;

    *end_user = NULL;

    memset(&token, 0, sizeof(token));

    *fault = tg_jwt_split(text, &token);

    if (*fault != TG_JWT_ACCEPTED) {
        return TG_E_INVALID;
    }

    token.head = tg_jwt_object(token.header, &nomem);

    if (token.head == NULL) {
        *fault = TG_JWT_MALFORMED;
        return nomem ? TG_E_NOMEM : TG_E_INVALID;
    }

    *fault = tg_jwt_check_header(&token);
    rc = *fault != TG_JWT_ACCEPTED ? TG_E_INVALID
                                   : tg_jwt_try_keys(&token, keys, count, fault);

    if (rc == TG_OK) {
        *fault = tg_jwt_check_claims(token.claims, now);
        rc = *fault != TG_JWT_ACCEPTED ? TG_E_INVALID
                                       : tg_jwt_end_user(token.claims, end_user);
    }

    json_decref(token.claims);
    json_decref(token.head);

    return rc;
}
