/*
 * Keys for end user tokens: what a description may hold, PEM and JWK, and what is
 * refused: private halves, short keys, other curves, texts with something else in
 * them.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <openssl/err.h>

#include "jwt_make.h"
#include "quoted.h"


#define TEXT32  "0123456789abcdef0123456789abcdef"


/* Parses and takes the description; NULL when it is refused, as error says. */
static tg_jwt_key_t *
parse(json_t *description, tg_jwt_key_error_t *error)
{
    tg_jwt_key_t  *key;

    assert_non_null(description);
    key = tg_jwt_key_parse(description, error);
    json_decref(description);

    if (key == NULL) {
        assert_non_null(error->code);
        assert_non_null(error->reason);
    }

    assert_int_equal(ERR_peek_error(), 0);

    return key;
}


static void
expect(json_t *description, const char *code, const char *pointer)
{
    tg_jwt_key_t        *key;
    tg_jwt_key_error_t   error;

    key = parse(description, &error);

    if (code == NULL) {

        if (key == NULL) {
            fail_msg("%s at %s: %s", error.code, error.pointer, error.reason);
        }

        tg_jwt_key_free(key);
        return;
    }

    assert_null(key);
    assert_string_equal(error.code, code);
    assert_string_equal(error.pointer, pointer);
}


static json_t *
with_key(const char *alg, json_t *public_key)
{
    return json_pack("{s:s, s:s, s:o}", "name", "k", "alg", alg, "public_key", public_key);
}


/* A public key that must be refused, or taken when reason is NULL. */
static void
expect_public(const char *alg, json_t *public_key, const char *reason)
{
    tg_jwt_key_t        *key;
    tg_jwt_key_error_t   error;

    key = parse(with_key(alg, public_key), &error);

    if (reason == NULL) {

        if (key == NULL) {
            fail_msg("%s: %s at %s: %s", alg, error.code, error.pointer, error.reason);
        }

        tg_jwt_key_free(key);
        return;
    }

    assert_null(key);
    assert_string_equal(error.code, "invalid_value");
    assert_string_equal(error.pointer, "/public_key");

    if (strstr(error.reason, reason) == NULL) {
        fail_msg("\"%s\", not \"%s\"", error.reason, reason);
    }
}


/* The same as PEM, as a JWK and as the text of one. */
static void
expect_pair(const char *alg, EVP_PKEY *pair, const char *reason)
{
    char    *pem = jwt_pem(pair), *text;
    json_t  *jwk = jwt_jwk(pair);

    text = json_dumps(jwk, JSON_INDENT(1));

    expect_public(alg, json_string(pem), reason);
    expect_public(alg, json_string(text), reason);
    expect_public(alg, jwk, reason);

    free(pem);
    free(text);
}


static void
test_members(void **state)
{
    char    kid[TG_JWT_KID_MAX + 2];
    size_t  i;

    static const struct {
        const char  *text;
        const char  *code;
        const char  *pointer;
    } cases[] = {
        { "{'name':'k','alg':'HS256','secret':'" TEXT32 "'}", NULL, "" },
        { "{'name':'k','alg':'HS384','secret':'" TEXT32 "','kid':'1','issuer':'i',"
          "'audience':'a'}", NULL, "" },
        { "{'name':'K.1_2:3-4','alg':'HS512','secret':'" TEXT32 "'}", NULL, "" },
        { "[]", "invalid_type", "" },
        { "'k'", "invalid_type", "" },
        { "{}", "missing_parameter", "/name" },
        { "{'alg':'HS256','secret':'" TEXT32 "'}", "missing_parameter", "/name" },
        { "{'name':'','alg':'HS256'}", "invalid_value", "/name" },
        { "{'name':'a b','alg':'HS256'}", "invalid_value", "/name" },
        { "{'name':5,'alg':'HS256'}", "invalid_type", "/name" },
        { "{'name':'k'}", "missing_parameter", "/alg" },
        { "{'name':'k','alg':null}", "invalid_type", "/alg" },
        { "{'name':'k','alg':'none'}", "invalid_value", "/alg" },
        { "{'name':'k','alg':'RS512'}", "invalid_value", "/alg" },
        { "{'name':'k','alg':'hs256','secret':'" TEXT32 "'}", "invalid_value", "/alg" },
        { "{'name':'k','alg':'HS256'}", "missing_parameter", "/secret" },
        { "{'name':'k','alg':'HS256','secret':5}", "invalid_type", "/secret" },
        { "{'name':'k','alg':'HS256','secret':''}", "invalid_value", "/secret" },
        { "{'name':'k','alg':'HS256','secret':'0123456789abcdef0123456789abcde'}",
          "invalid_value", "/secret" },
        { "{'name':'k','alg':'HS256','secret':'x\\n-----BEGIN PUBLIC KEY-----\\n" TEXT32
          "'}", "invalid_value", "/secret" },
        { "{'name':'k','alg':'HS256','public_key':'x'}", "invalid_value", "/public_key" },
        { "{'name':'k','alg':'HS256','secret':'" TEXT32 "','public_key':'x'}",
          "invalid_value", "/public_key" },
        { "{'name':'k','alg':'ES256','secret':'" TEXT32 "'}", "invalid_value", "/secret" },
        { "{'name':'k','alg':'ES256'}", "missing_parameter", "/public_key" },
        { "{'name':'k','alg':'ES256','public_key':[]}", "invalid_type", "/public_key" },
        { "{'name':'k','alg':'ES256','public_key':''}", "invalid_value", "/public_key" },
        { "{'name':'k','alg':'HS256','secret':'" TEXT32 "','kid':''}", "invalid_value",
          "/kid" },
        { "{'name':'k','alg':'HS256','secret':'" TEXT32 "','kid':5}", "invalid_type",
          "/kid" },
        { "{'name':'k','alg':'HS256','secret':'" TEXT32 "','issuer':[]}", "invalid_type",
          "/issuer" },
        { "{'name':'k','alg':'HS256','secret':'" TEXT32 "','audience':['a']}",
          "invalid_type", "/audience" },
        { "{'name':'k','alg':'HS256','secret':'" TEXT32 "','audience':''}",
          "invalid_value", "/audience" },
        { "{'name':'k','alg':'HS256','secret':'" TEXT32 "','use':'sig'}", "unknown_field",
          "/use" },
        { "{'name':'k','alg':'HS256','secret_file':'x'}", "unknown_field", "/secret_file" },
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        expect(quoted(cases[i].text), cases[i].code, cases[i].pointer);
    }

    memset(kid, 'k', sizeof(kid));
    kid[TG_JWT_KID_MAX + 1] = '\0';
    expect(json_pack("{s:s, s:s, s:s, s:s}", "name", "k", "alg", "HS256", "secret", TEXT32,
        "kid", kid), "invalid_value", "/kid");
    kid[TG_JWT_KID_MAX] = '\0';
    expect(json_pack("{s:s, s:s, s:s, s:s}", "name", "k", "alg", "HS256", "secret", TEXT32,
        "kid", kid), NULL, "");
}


static void
test_bounds(void **state)
{
    char                *text = malloc(TG_JWT_PUBLIC_KEY_MAX + 2);
    size_t               n;
    tg_jwt_key_t        *key;
    tg_jwt_key_error_t   error;

    (void) state;

    for (n = TG_JWT_SECRET_MAX; n <= TG_JWT_SECRET_MAX + 1; n++) {
        memset(text, 's', n);
        text[n] = '\0';
        expect(json_pack("{s:s, s:s, s:s}", "name", "k", "alg", "HS256", "secret", text),
            n == TG_JWT_SECRET_MAX ? NULL : "invalid_value", "/secret");
    }

    memset(text, ' ', TG_JWT_PUBLIC_KEY_MAX + 1);
    text[TG_JWT_PUBLIC_KEY_MAX + 1] = '\0';
    expect_public("ES256", json_string(text), "too long");
    text[TG_JWT_PUBLIC_KEY_MAX] = '\0';
    expect_public("ES256", json_string(text), "neither");
    free(text);

    /* a name that is longer than the pointer has room for */
    key = parse(quoted("{'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx':1}"),
        &error);
    assert_null(key);
    assert_int_equal(strlen(error.pointer), sizeof(error.pointer) - 1);

    key = parse(json_pack("{s:s, s:s, s:s}", "name", "shop", "alg", "HS256", "secret",
        TEXT32), &error);
    assert_true(tg_str_eq(tg_jwt_key_name(key), tg_str("shop")));
    tg_jwt_key_free(key);
    tg_jwt_key_free(NULL);
}


/* Each kind of key with each alg. */
static void
test_kinds(void **state)
{
    size_t     i;
    EVP_PKEY  *rsa = EVP_RSA_gen(2048), *ec = EVP_EC_gen("P-256");
    EVP_PKEY  *ed = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");

    static const char *const  rsa_algs[] = { "RS256", "PS256" };

    (void) state;

    for (i = 0; i < 2; i++) {
        expect_pair(rsa_algs[i], rsa, NULL);
        expect_pair(rsa_algs[i], ec, "RSA");
        expect_pair(rsa_algs[i], ed, "RSA");
    }

    expect_pair("ES256", ec, NULL);
    expect_pair("ES256", rsa, "P-256");
    expect_pair("ES256", ed, "P-256");
    expect_pair("EdDSA", ed, NULL);
    expect_pair("EdDSA", rsa, "Ed25519");
    expect_pair("EdDSA", ec, "Ed25519");

    EVP_PKEY_free(rsa);
    EVP_PKEY_free(ec);
    EVP_PKEY_free(ed);
}


static void
test_weak(void **state)
{
    char      *text;
    size_t     i;
    json_t    *jwk;
    EVP_PKEY  *key;

    /* e: 1, 2, 0, 65536, 2^33 + 1; then what is taken: 3, 2^32 + 1 */
    static const char *const  exponents[] = { "AQ", "Ag", "AA", "AQAA", "AgAAAAE" };
    static const char *const  taken[] = { "Aw", "AQAAAAE", "AAEAAQ" };
    static const char *const  curves[] = { "P-384", "P-521", "secp256k1" };

    (void) state;

    key = EVP_RSA_gen(1024);
    expect_pair("RS256", key, "2048");
    expect_pair("PS256", key, "2048");
    EVP_PKEY_free(key);

    key = EVP_RSA_gen(2048);

    for (i = 0; i < sizeof(exponents) / sizeof(exponents[0]); i++) {
        jwk = jwt_jwk(key);
        json_object_set_new(jwk, "e", json_string(exponents[i]));
        expect_public("RS256", jwk, "RSA");
    }

    for (i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        jwk = jwt_jwk(key);
        json_object_set_new(jwk, "e", json_string(taken[i]));
        expect_public("RS256", jwk, NULL);
    }

    EVP_PKEY_free(key);

    /* over the bound: 8192 bits and a byte */
    text = malloc(2048);
    memset(text, '_', 1366);
    text[1366] = '\0';
    expect_public("RS256", json_pack("{s:s, s:s, s:s}", "kty", "RSA", "n", text, "e",
        "AQAB"), "RSA");
    free(text);

    for (i = 0; i < sizeof(curves) / sizeof(curves[0]); i++) {
        key = EVP_EC_gen(curves[i]);
        text = jwt_pem(key);
        expect_public("ES256", json_string(text), "P-256");
        free(text);
        EVP_PKEY_free(key);
    }

    key = EVP_PKEY_Q_keygen(NULL, NULL, "ED448");
    text = jwt_pem(key);
    expect_public("EdDSA", json_string(text), "Ed25519");
    free(text);
    EVP_PKEY_free(key);

    key = EVP_PKEY_Q_keygen(NULL, NULL, "X25519");
    text = jwt_pem(key);
    expect_public("EdDSA", json_string(text), "Ed25519");
    free(text);
    EVP_PKEY_free(key);
}


/* Writes both halves or the public one in one of OpenSSL's forms. */
static char *
pem_of(int (*write)(BIO *bio, EVP_PKEY *key), EVP_PKEY *key)
{
    BIO   *bio = BIO_new(BIO_s_mem());
    char  *data, *text;
    long   len;

    assert_int_equal(write(bio, key), 1);
    len = BIO_get_mem_data(bio, &data);
    text = strndup(data, (size_t) len);
    BIO_free(bio);

    return text;
}


static int
write_private(BIO *bio, EVP_PKEY *key)
{
    return PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL);
}


static int
write_traditional(BIO *bio, EVP_PKEY *key)
{
    return PEM_write_bio_PrivateKey_traditional(bio, key, NULL, NULL, 0, NULL, NULL);
}


static int
write_pkcs1(BIO *bio, EVP_PKEY *key)
{
    int       len, rc;
    uint8_t  *der = NULL;

    len = i2d_PublicKey(key, &der);
    rc = len > 0 && PEM_write_bio(bio, "RSA PUBLIC KEY", "", der, len) > 0;
    OPENSSL_free(der);

    return rc;
}


static void
test_pem(void **state)
{
    char      *pem, *text, *p;
    EVP_PKEY  *rsa = EVP_RSA_gen(2048), *ec = EVP_EC_gen("P-256");

    (void) state;

    pem = pem_of(write_private, rsa);
    expect_public("RS256", json_string(pem), "private key");
    free(pem);
    pem = pem_of(write_traditional, ec);
    expect_public("ES256", json_string(pem), "private key");
    free(pem);
    pem = pem_of(write_pkcs1, rsa);
    expect_public("RS256", json_string(pem), NULL);
    expect_public("ES256", json_string(pem), "P-256");
    free(pem);

    pem = jwt_pem(ec);
    text = malloc(2 * strlen(pem) + 64);

    (void) sprintf(text, " \r\n\t%s\r\n \n", pem);
    expect_public("ES256", json_string(text), NULL);
    (void) sprintf(text, "Key:\n%s", pem);
    expect_public("ES256", json_string(text), "neither");
    (void) sprintf(text, "%s%s", pem, pem);
    expect_public("ES256", json_string(text), "nothing else");
    (void) sprintf(text, "%sx", pem);
    expect_public("ES256", json_string(text), "nothing else");
    strcpy(text, pem);
    strstr(text, "-----END")[-10] = '!';
    expect_public("ES256", json_string(text), "neither");
    strcpy(text, pem);
    *strstr(text, "-----END") = '\0';
    expect_public("ES256", json_string(text), "neither");
    strcpy(text, pem);
    p = strstr(text, "-----\n") + 6;
    p[40] = p[40] == 'A' ? 'B' : 'A';
    expect_public("ES256", json_string(text), "");
    expect_public("ES256", json_string("-----BEGIN CERTIFICATE-----\nAAAA\n"
        "-----END CERTIFICATE-----\n"), "\"PUBLIC KEY\"");
    expect_public("ES256", json_string("-----BEGIN PUBLIC KEY-----\nAAAA\n"
        "-----END PUBLIC KEY-----\n"), "does not hold");
    expect_public("ES256", json_string("-----BEGIN "), "neither");
    expect_public("ES256", json_string("ssh-ed25519 AAAA"), "neither");

    free(text);
    free(pem);
    EVP_PKEY_free(rsa);
    EVP_PKEY_free(ec);
}


static void
test_jwk(void **state)
{
    size_t     i;
    EVP_PKEY  *ec = EVP_EC_gen("P-256");

    static const struct {
        const char  *name;
        const char  *value;      /* quoted JSON; NULL removes the member */
        const char  *reason;
    } cases[] = {
        { "use", "'sig'", NULL }, { "use", "'enc'", "use" }, { "use", "5", "use" },
        { "alg", "'ES256'", NULL }, { "alg", "'ES384'", "another alg" },
        { "alg", "null", "another alg" },
        { "key_ops", "['verify']", NULL }, { "key_ops", "['sign']", "key_ops" },
        { "key_ops", "[]", "key_ops" }, { "key_ops", "'verify'", "key_ops" },
        { "x5t", "'AAAA'", NULL }, { "kid", "'one'", NULL }, { "kid", "5", "kid" },
        { "kid", "''", "kid" }, { "d", "'AAAA'", "private" }, { "d", "null", "private" },
        { "k", "'AAAA'", "private" }, { "p", "''", "private" }, { "oth", "[]", "private" },
        { "kty", "'oct'", "kty" }, { "kty", "'OKP'", "kty" }, { "kty", NULL, "kty" },
        { "kty", "5", "kty" }, { "crv", "'P-384'", "kty" }, { "crv", NULL, "kty" },
        { "x", NULL, "kty" }, { "x", "'AAAA'", "kty" }, { "x", "5", "kty" },
        { "y", "''", "kty" },
        /* not on the curve */
        { "y", "'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'", "kty" },
        /* 33 bytes, padding, bits that no byte takes */
        { "x", "'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'", "kty" },
        { "x", "'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA='", "kty" },
        { "x", "'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB'", "kty" },
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        json_t  *jwk = jwt_jwk(ec);

        if (cases[i].value == NULL) {
            json_object_del(jwk, cases[i].name);

        } else {
            json_t  *wrapped;
            char     text[256];

            (void) snprintf(text, sizeof(text), "[%s]", cases[i].value);
            wrapped = quoted(text);
            json_object_set(jwk, cases[i].name, json_array_get(wrapped, 0));
            json_decref(wrapped);
        }

        expect_public("ES256", jwk, cases[i].reason);
    }

    expect_public("ES256", json_string("{\"kty\":\"EC\",\"kty\":\"EC\"}"), "duplicate");
    expect_public("ES256", json_string("{\"kty\":\"EC\""), "JSON object");
    expect_public("ES256", json_string("{} {}"), "JSON object");
    expect_public("ES256", json_object(), "kty");

    EVP_PKEY_free(ec);
}


/* The JWK's kid is the key's, and may not be another one than that. */
static void
test_jwk_kid(void **state)
{
    char            *token;
    json_t          *jwk, *user;
    EVP_PKEY        *ed = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    tg_jwt_key_t    *key;
    tg_jwt_fault_e   fault;

    (void) state;

    jwk = jwt_jwk(ed);
    json_object_set_new(jwk, "kid", json_string("one"));

    key = jwt_key(with_key("EdDSA", json_incref(jwk)));

    /* what was read belongs to the key alone */
    json_string_set(json_object_get(jwk, "x"), "AAAA");

    token = jwt_token("EdDSA", ed, NULL, "{'alg':'EdDSA','kid':'one'}",
        "{'sub':'u','exp':100}");
    assert_int_equal(tg_jwt_verify(tg_str_of(token), &key, 1, 50, &user, &fault), TG_OK);
    json_decref(user);
    token = jwt_token("EdDSA", ed, NULL, "{'alg':'EdDSA','kid':'two'}",
        "{'sub':'u','exp':100}");
    assert_int_equal(tg_jwt_verify(tg_str_of(token), &key, 1, 50, &user, &fault),
        TG_E_INVALID);
    assert_int_equal(fault, TG_JWT_NO_KEY);
    tg_jwt_key_free(key);
    json_decref(jwk);

    jwk = jwt_jwk(ed);
    json_object_set_new(jwk, "kid", json_string("one"));
    expect(json_pack("{s:s, s:s, s:O, s:s}", "name", "k", "alg", "EdDSA", "public_key", jwk,
        "kid", "one"), NULL, "");
    expect(json_pack("{s:s, s:s, s:o, s:s}", "name", "k", "alg", "EdDSA", "public_key", jwk,
        "kid", "two"), "invalid_value", "/kid");

    EVP_PKEY_free(ed);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_weak),
        cmocka_unit_test(test_pem),
        cmocka_unit_test(test_jwk),
        cmocka_unit_test(test_jwk_kid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
