/*
 * tg-probe sign: makes a Standard Webhooks signature, or judges the headers of the
 * line when it has some.
 */

#include <string.h>

#include <openssl/evp.h>

#include "tg_probe.h"
#include "tg_sign.h"


#define PROBE_BODY_MAX  (64 * 1024 * 1024)


static tg_str_t
json_str(const json_t *value)
{
    return (tg_str_t) { json_string_length(value), json_string_value(value) };
}


/* body as it is, or body_base64 decoded */
static bool
read_body(const json_t *line, tg_buf_t *body)
{
    int       n;
    bool      good;
    size_t    len, pad = 0;
    tg_buf_t  raw;
    tg_str_t  text = json_str(json_object_get(line, "body_base64"));

    if (text.data == NULL) {
        return tg_buf_str(body, json_str(json_object_get(line, "body"))) == TG_OK;
    }

    if (text.len % 4 != 0 || text.len > PROBE_BODY_MAX) {
        return false;
    }

    if (text.len == 0) {
        return true;
    }

    while (pad < 2 && text.data[text.len - 1 - pad] == '=') {
        pad++;
    }

    len = text.len / 4 * 3;
    tg_buf_init(&raw, PROBE_BODY_MAX);

    while (raw.len < len && tg_buf_append(&raw, "\0\0\0", 3) == TG_OK) {
        /* makes room */
    }

    n = raw.len < len ? -1 : EVP_DecodeBlock((unsigned char *) raw.data,
        (const unsigned char *) text.data, (int) text.len);

    good = n >= (int) pad
           && tg_buf_append(body, raw.data, (size_t) n - pad) == TG_OK;

    tg_buf_free(&raw);

    return good;
}


static json_t *
verify(const json_t *line, const json_t *headers, const tg_sign_key_t *key, tg_str_t body)
{
    bool     good;
    json_t  *now = json_object_get(line, "now");

    if (!json_is_integer(now)) {
        return NULL;
    }

    good = tg_sign_verify(key, json_str(json_object_get(headers, "webhook-id")),
        json_str(json_object_get(headers, "webhook-timestamp")),
        json_str(json_object_get(headers, "webhook-signature")), body,
        json_integer_value(now));

    return json_pack("{s:s}", "verdict", good ? "accept" : "reject");
}


static json_t *
sign(const json_t *line, const tg_sign_key_t *key, tg_str_t body)
{
    json_t    *out, *timestamp = json_object_get(line, "timestamp");
    tg_rc_e    rc;
    tg_buf_t   value;

    if (!json_is_integer(timestamp)) {
        return NULL;
    }

    tg_buf_init(&value, 128);

    rc = tg_sign(key, json_str(json_object_get(line, "msg_id")),
        json_integer_value(timestamp), body, &value);

    out = rc == TG_OK ? json_pack("{s:s%}", "signature", value.data, value.len)
                      : tg_probe_error("invalid");

    tg_buf_free(&value);

    return out;
}


json_t *
tg_probe_sign(const json_t *line)
{
    json_t         *headers = json_object_get(line, "headers"), *out = NULL;
    json_t         *secret = json_object_get(line, "secret");
    tg_buf_t        body;
    tg_sign_key_t   key;

    if (!json_is_string(secret)) {
        return NULL;
    }

    if (tg_sign_key_parse(json_str(secret), &key) != TG_OK) {
        return tg_probe_error("bad_secret");
    }

    tg_buf_init(&body, PROBE_BODY_MAX);

    if (read_body(line, &body)) {
        out = headers == NULL ? sign(line, &key, tg_buf_get(&body))
                              : verify(line, headers, &key, tg_buf_get(&body));
    }

    tg_buf_free(&body);

    return out;
}
