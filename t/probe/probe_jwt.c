/*
 * tg-probe jwt: judges a token with the keys and at the time of the line. Keys need no
 * name here; one that no project could have refuses the token.
 */

#include "tg_jwt.h"
#include "tg_probe.h"


static json_t *
reject(const char *code, const char *reason)
{
    return json_pack("{s:s, s:s, s:s}", "verdict", "reject", "code", code, "reason", reason);
}


/* Parses the keys into keys, which has room; the answer when one is not good. */
static json_t *
read_keys(const json_t *list, tg_jwt_key_t **keys, size_t *count)
{
    size_t               i;
    json_t              *one, *copy;
    tg_jwt_key_error_t   error;

    for (*count = i = 0; i < json_array_size(list); i++) {
        one = json_array_get(list, i);
        copy = json_is_object(one) ? json_copy(one) : json_incref(one);

        if (json_is_object(copy) && json_object_get(copy, "name") == NULL) {
            (void) json_object_set_new(copy, "name", json_string("probe"));
        }

        keys[i] = tg_jwt_key_parse(copy, &error);
        json_decref(copy);

        if (keys[i] == NULL) {
            return json_pack("{s:s, s:s, s:s+++}", "verdict", "reject", "code", error.code,
                "reason", "a key is refused, ", error.pointer, ": ", error.reason);
        }

        (*count)++;
    }

    return NULL;
}


static json_t *
judge(tg_str_t token, tg_jwt_key_t *const *keys, size_t count, int64_t now)
{
    json_t          *out, *user;
    tg_rc_e          rc;
    tg_jwt_fault_e   fault;

    rc = tg_jwt_verify(token, keys, count, now, &user, &fault);

    if (rc == TG_E_INVALID) {
        return reject("invalid_end_user_token", tg_jwt_fault_text(fault));
    }

    if (rc != TG_OK) {
        return tg_probe_error("out of memory");
    }

    out = json_pack("{s:s, s:n, s:O, s:O}", "verdict", "accept", "code", "external_id",
        json_object_get(user, "external_id"), "traits", json_object_get(user, "traits"));
    json_decref(user);

    return out;
}


json_t *
tg_probe_jwt(const json_t *line)
{
    size_t         count;
    json_t        *out, *token = json_object_get(line, "token");
    json_t        *list = json_object_get(line, "keys");
    json_t        *now = json_object_get(line, "now");
    tg_jwt_key_t  *keys[TG_JWT_KEYS_MAX];

    if (!json_is_string(token) || !json_is_integer(now)
        || (list != NULL && !json_is_array(list)))
    {
        return NULL;
    }

    if (json_array_size(list) > TG_JWT_KEYS_MAX) {
        return tg_probe_error("too many keys");
    }

    out = read_keys(list, keys, &count);

    if (out == NULL) {
        out = judge((tg_str_t) { json_string_length(token), json_string_value(token) }, keys,
            count, json_integer_value(now));
    }

    while (count > 0) {
        tg_jwt_key_free(keys[--count]);
    }

    return out;
}
