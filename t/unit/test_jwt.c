/*
 * End user tokens: every algorithm, what a header may say, which keys are tried, the
 * form. What a payload says is in test_jwt_claims.c. Keys are made here and now.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <openssl/err.h>

#include "jwt_make.h"
#include "quoted.h"


#define NOW      1700000000
#define USER     "{'sub':'u-5','exp':1700000300}"

enum { PAIR_RSA, PAIR_EC, PAIR_ED, PAIR_RSA2, PAIRS };

typedef struct {
    const char  *alg;
    int          pair;     /* -1: the secret */
} method_t;

static const method_t  methods[] = {
    { "HS256", -1 }, { "HS384", -1 }, { "HS512", -1 }, { "RS256", PAIR_RSA }, { "PS256", PAIR_RSA },
    { "ES256", PAIR_EC }, { "EdDSA", PAIR_ED },
};

#define METHODS  (sizeof(methods) / sizeof(methods[0]))

static EVP_PKEY      *pairs[PAIRS];
static char          *pems[PAIRS];
static tg_jwt_key_t  *hs256;


static int
setup(void **state)
{
    size_t  i;

    (void) state;

    pairs[PAIR_RSA] = EVP_RSA_gen(2048);
    pairs[PAIR_RSA2] = EVP_RSA_gen(2048);
    pairs[PAIR_EC] = EVP_EC_gen("P-256");
    pairs[PAIR_ED] = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");

    for (i = 0; i < PAIRS; i++) {
        pems[i] = jwt_pem(pairs[i]);
    }

    hs256 = jwt_key(json_pack("{s:s, s:s, s:s}", "name", "k", "alg", "HS256", "secret",
        JWT_SECRET));

    return 0;
}


static int
teardown(void **state)
{
    size_t  i;

    (void) state;

    for (i = 0; i < PAIRS; i++) {
        EVP_PKEY_free(pairs[i]);
        free(pems[i]);
    }

    tg_jwt_key_free(hs256);

    return 0;
}


static tg_jwt_key_t *
key_of(method_t m, const char *kid)
{
    json_t  *about = json_pack("{s:s, s:s}", "name", "k", "alg", m.alg);

    json_object_set_new(about, m.pair < 0 ? "secret" : "public_key",
        json_string(m.pair < 0 ? JWT_SECRET : pems[m.pair]));

    if (kid != NULL) {
        json_object_set_new(about, "kid", json_string(kid));
    }

    return jwt_key(about);
}


/* Verifies; what was accepted is returned as compact JSON in user (when not NULL). */
static tg_jwt_fault_e
verify_at(const char *token, size_t len, tg_jwt_key_t *const *keys, size_t n, int64_t now,
    char **user)
{
    json_t          *end_user;
    tg_rc_e          rc;
    tg_jwt_fault_e   fault;

    rc = tg_jwt_verify((tg_str_t) { len, token }, keys, n, now, &end_user, &fault);

    assert_int_equal(rc, fault == TG_JWT_ACCEPTED ? TG_OK : TG_E_INVALID);
    assert_int_equal(end_user != NULL, fault == TG_JWT_ACCEPTED);
    assert_non_null(strstr(tg_jwt_fault_text(fault), "end user token"));
    /* nginx complains of what lies in this queue */
    assert_int_equal(ERR_peek_error(), 0);

    if (user != NULL) {
        *user = end_user == NULL ? NULL : json_dumps(end_user, JSON_COMPACT);
    }

    json_decref(end_user);

    return fault;
}


static tg_jwt_fault_e
verify(const char *token, tg_jwt_key_t *const *keys, size_t n)
{
    return verify_at(token, strlen(token), keys, n, NOW, NULL);
}


/* One HS256 token of this header and payload. */
static tg_jwt_fault_e
judge(const char *header, const char *payload)
{
    return verify(jwt_token("HS256", NULL, JWT_SECRET, header, payload), &hs256, 1);
}


static tg_jwt_fault_e
judge_payload(const char *payload)
{
    return judge("{'alg':'HS256'}", payload);
}


static const char *
header_of(const char *alg)
{
    static char  header[64];

    (void) snprintf(header, sizeof(header), "{'alg':'%s','typ':'JWT'}", alg);

    return header;
}


/* Each algorithm with its key, with any character of the token changed, and with the
 * keys of all others. */
static void
test_algorithms(void **state)
{
    char            copy[4096], *user, *token;
    size_t          i, j, at;
    tg_jwt_key_t   *keys[METHODS];

    (void) state;

    for (i = 0; i < METHODS; i++) {
        keys[i] = key_of(methods[i], NULL);
    }

    for (i = 0; i < METHODS; i++) {
        token = jwt_token(methods[i].alg, methods[i].pair < 0 ? NULL
                          : pairs[methods[i].pair], JWT_SECRET, header_of(methods[i].alg),
                          USER);
        strcpy(copy, token);

        assert_int_equal(verify_at(copy, strlen(copy), &keys[i], 1, NOW, &user),
            TG_JWT_ACCEPTED);
        assert_string_equal(user, "{\"external_id\":\"u-5\",\"traits\":{}}");
        free(user);

        assert_int_equal(verify(copy, keys, METHODS), TG_JWT_ACCEPTED);

        for (j = 0; j < METHODS; j++) {
            if (j != i) {
                assert_int_equal(verify(copy, &keys[j], 1), TG_JWT_NO_KEY);
            }
        }

        for (at = 0; at < strlen(copy); at += 7) {
            copy[at] = (char) (copy[at] == 'A' ? 'B' : 'A');
            assert_int_not_equal(verify(copy, keys, METHODS), TG_JWT_ACCEPTED);
            copy[at] = token[at];
        }

        /* a signature that is shorter or longer by a byte, or is not there */
        at = (size_t) (strrchr(copy, '.') - copy) + 1;
        copy[strlen(copy) - 4] = '\0';
        assert_int_not_equal(verify(copy, keys, METHODS), TG_JWT_ACCEPTED);
        strcpy(copy, token);
        strcat(copy, "AAAA");
        assert_int_not_equal(verify(copy, keys, METHODS), TG_JWT_ACCEPTED);
        copy[at] = '\0';
        assert_int_equal(verify(copy, keys, METHODS), TG_JWT_SIGNATURE);
    }

    for (i = 0; i < METHODS; i++) {
        tg_jwt_key_free(keys[i]);
    }
}


/* The example of RFC 7515, A.3: it has no sub, so its claims are refused - but only
 * after its signature was found good. */
static void
test_rfc7515(void **state)
{
    char          token[512];
    tg_jwt_key_t *key;

    (void) state;

    key = jwt_key(json_pack("{s:s, s:s, s:{s:s, s:s, s:s, s:s}}", "name", "rfc", "alg",
        "ES256", "public_key", "kty", "EC", "crv", "P-256",
        "x", "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "y", "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"));

    strcpy(token, "eyJhbGciOiJFUzI1NiJ9."
        "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19y"
        "b290Ijp0cnVlfQ."
        "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-K"
        "g6NU1Q");

    assert_int_equal(verify_at(token, strlen(token), &key, 1, 1300819300, NULL),
        TG_JWT_CLAIMS);
    assert_int_equal(verify_at(token, strlen(token), &key, 1, NOW, NULL), TG_JWT_EXPIRED);
    token[strlen(token) - 10] ^= 1;
    assert_int_equal(verify_at(token, strlen(token), &key, 1, 1300819300, NULL),
        TG_JWT_SIGNATURE);

    tg_jwt_key_free(key);
}


/* A public key is known to all: used as a secret it would let anybody sign. */
static void
test_confusion(void **state)
{
    size_t         i;
    tg_jwt_key_t  *keys[4];

    (void) state;

    for (i = 0; i < 4; i++) {
        keys[i] = key_of(methods[i + 3], NULL);
    }

    for (i = 0; i < 3; i++) {
        assert_int_equal(verify(jwt_token("HS256", NULL, pems[i], header_of("HS256"), USER),
            keys, 4), TG_JWT_NO_KEY);
    }

    /* one padding for the other, with the same key */
    assert_int_equal(verify(jwt_token("PS256", pairs[PAIR_RSA], NULL, header_of("RS256"), USER),
        keys, 4), TG_JWT_SIGNATURE);
    assert_int_equal(verify(jwt_token("RS256", pairs[PAIR_RSA], NULL, header_of("PS256"), USER),
        keys, 4), TG_JWT_SIGNATURE);
    assert_int_equal(verify(jwt_token("RS256", pairs[PAIR_RSA2], NULL, header_of("RS256"), USER),
        keys, 4), TG_JWT_SIGNATURE);
    assert_int_equal(verify(jwt_token("HS384", NULL, JWT_SECRET, header_of("HS256"), USER),
        &hs256, 1), TG_JWT_SIGNATURE);

    for (i = 0; i < 4; i++) {
        tg_jwt_key_free(keys[i]);
    }
}


static void
test_header(void **state)
{
    size_t  i;

    static const struct {
        const char      *header;
        tg_jwt_fault_e   want;
    } cases[] = {
        { "{'alg':'HS256'}", TG_JWT_ACCEPTED },
        { "{'typ':'jwt','alg':'HS256','x':[{}],'b64':true}", TG_JWT_ACCEPTED },
        { "{'alg':'HS256','typ':'at+jwt'}", TG_JWT_WRONG_TYPE },
        { "{'alg':'HS256','typ':''}", TG_JWT_WRONG_TYPE },
        { "{'alg':'HS256','typ':null}", TG_JWT_WRONG_TYPE },
        { "{'alg':'HS256','typ':'JWE'}", TG_JWT_WRONG_TYPE },
        { "{'alg':'none'}", TG_JWT_NO_KEY },
        { "{'alg':'None'}", TG_JWT_NO_KEY },
        { "{'alg':'hs256'}", TG_JWT_NO_KEY },
        { "{'alg':'HS256 '}", TG_JWT_NO_KEY },
        { "{'alg':''}", TG_JWT_NO_KEY },
        { "{'alg':'RS256'}", TG_JWT_NO_KEY },
        { "{'alg':'ES256K'}", TG_JWT_NO_KEY },
        { "{}", TG_JWT_MALFORMED },
        { "{'alg':5}", TG_JWT_MALFORMED },
        { "{'alg':['HS256']}", TG_JWT_MALFORMED },
        { "{'alg':'HS256','alg':'HS256'}", TG_JWT_MALFORMED },
        { "{'alg':'none','\\u0061lg':'HS256'}", TG_JWT_MALFORMED },
        { "{'alg':'HS256'} ", TG_JWT_ACCEPTED },
        { "{'alg':'HS256'}{}", TG_JWT_MALFORMED },
        { "['alg','HS256']", TG_JWT_MALFORMED },
        { "'HS256'", TG_JWT_MALFORMED },
        { "", TG_JWT_MALFORMED },
        { "{'alg':'HS256','kid':5}", TG_JWT_MALFORMED },
        { "{'alg':'HS256','kid':null}", TG_JWT_MALFORMED },
        { "{'alg':'HS256','crit':['exp']}", TG_JWT_CRITICAL },
        { "{'alg':'HS256','crit':[]}", TG_JWT_CRITICAL },
        { "{'alg':'HS256','b64':false}", TG_JWT_CRITICAL },
        { "{'alg':'HS256','b64':false,'crit':['b64']}", TG_JWT_CRITICAL },
        { "{'alg':'HS256','b64':0}", TG_JWT_CRITICAL },
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (judge(cases[i].header, USER) != cases[i].want) {
            fail_msg("%s", cases[i].header);
        }
    }

    /* "none" has no signature at all */
    assert_int_equal(verify("eyJhbGciOiJub25lIn0."
        "eyJzdWIiOiJ1LTUiLCJleHAiOjE3MDAwMDAzMDB9.", &hs256, 1), TG_JWT_NO_KEY);
}


/* A key that the token brings along is not used. */
static void
test_brought_key(void **state)
{
    char           header[1024], *text, *p;
    json_t        *jwk;
    tg_jwt_key_t  *key;

    (void) state;

    jwk = jwt_jwk(pairs[PAIR_RSA2]);
    text = json_dumps(jwk, JSON_COMPACT);

    for (p = text; *p != '\0'; p++) {
        *p = *p == '"' ? '\'' : *p;
    }

    (void) snprintf(header, sizeof(header), "{'alg':'RS256','jwk':%s,"
        "'jku':'https://keys.example/','x5c':['AAAA']}", text);
    key = key_of(methods[3], NULL);

    assert_int_equal(verify(jwt_token("RS256", pairs[PAIR_RSA2], NULL, header, USER), &key, 1),
        TG_JWT_SIGNATURE);
    assert_int_equal(verify(jwt_token("RS256", pairs[PAIR_RSA], NULL, header, USER), &key, 1),
        TG_JWT_ACCEPTED);

    tg_jwt_key_free(key);
    json_decref(jwk);
    free(text);
}


static void
test_form(void **state)
{
    char          *good, copy[1024];
    size_t         i, len;

    static const char  *bad[] = {
        "", ".", "..", "...", "a.b.c", "e30.e30", "e30.e30.e30.", "e30.e30.AA.AA.AA",
        "e30=.e30.AA", "e30.e30.AA==", "e3 0.e30.AA", "e30.e30.A", "e30.e30.AB", "e31.e30.AA",
        "e30.e30.A+", "e30.e30.A/", "\xff.e30.AA", "e30.e30.AA\n", "Bearer e30.e30.AA",
        "AA.AA.AA", "bnVsbA.e30.AA", "MQ.e30.AA",
    };

    (void) state;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (verify(bad[i], &hs256, 1) != TG_JWT_MALFORMED) {
            fail_msg("\"%s\"", bad[i]);
        }
    }

    assert_int_equal(verify_at(NULL, 0, &hs256, 1, NOW, NULL), TG_JWT_MALFORMED);

    good = jwt_token("HS256", NULL, JWT_SECRET, "{'alg':'HS256'}", USER);
    len = strlen(good);

    for (i = 0; i < len; i++) {
        assert_int_not_equal(verify_at(good, i, &hs256, 1, NOW, NULL), TG_JWT_ACCEPTED);
    }

    /* 43 characters hold 32 bytes and two bits: other bits there, the same bytes */
    strcpy(copy, good);
    copy[len - 1] = copy[len - 1] == '8' ? '9' : (char) (copy[len - 1] + 1);
    assert_int_not_equal(verify(copy, &hs256, 1), TG_JWT_ACCEPTED);
    strcpy(copy, good);
    strcat(copy, "=");
    assert_int_equal(verify(copy, &hs256, 1), TG_JWT_MALFORMED);
    strcpy(copy, good);
    copy[len] = '\0';
    assert_int_equal(verify_at(copy, len + 1, &hs256, 1, NOW, NULL), TG_JWT_MALFORMED);

    /* JSON that is good for a browser, not for us */
    assert_int_equal(judge_payload(""), TG_JWT_MALFORMED);
    assert_int_equal(judge_payload("[1]"), TG_JWT_MALFORMED);
    assert_int_equal(judge_payload("{'sub':'a','exp':1700000300,'sub':'b'}"),
        TG_JWT_MALFORMED);
    assert_int_equal(judge_payload("{'sub':'a','exp':1700000300,'traits':{'x':1,'x':2}}"),
        TG_JWT_MALFORMED);
    assert_int_equal(judge_payload("{'sub':'\\u0000','exp':1700000300}"), TG_JWT_MALFORMED);
    assert_int_equal(judge_payload("{'sub':'\xff','exp':1700000300}"), TG_JWT_MALFORMED);
    assert_int_equal(judge_payload("{'sub':'a','exp':1e999}"), TG_JWT_MALFORMED);
    assert_int_equal(judge_payload(USER "x"), TG_JWT_MALFORMED);
}


/* kid selects; without one all keys of the alg are tried. */
static void
test_kid(void **state)
{
    size_t         i;
    tg_jwt_key_t  *keys[4];
    method_t       one = { "RS256", PAIR_RSA }, two = { "RS256", PAIR_RSA2 };

    static const struct {
        int              pair;
        const char      *header;
        tg_jwt_fault_e   want;
    } cases[] = {
        { PAIR_RSA, "{'alg':'RS256','kid':'one'}", TG_JWT_ACCEPTED },
        { PAIR_RSA2, "{'alg':'RS256','kid':'one'}", TG_JWT_SIGNATURE },
        { PAIR_RSA2, "{'alg':'RS256','kid':'two'}", TG_JWT_ACCEPTED },
        { PAIR_RSA, "{'alg':'RS256','kid':'two'}", TG_JWT_SIGNATURE },
        { PAIR_RSA, "{'alg':'RS256','kid':'three'}", TG_JWT_NO_KEY },
        { PAIR_RSA, "{'alg':'RS256','kid':'ONE'}", TG_JWT_NO_KEY },
        { PAIR_RSA, "{'alg':'RS256','kid':'on'}", TG_JWT_NO_KEY },
        { PAIR_RSA, "{'alg':'RS256','kid':''}", TG_JWT_NO_KEY },
        { PAIR_RSA, "{'alg':'RS256'}", TG_JWT_ACCEPTED },
        { PAIR_RSA2, "{'alg':'RS256'}", TG_JWT_ACCEPTED },
        /* the kid of a key for another alg */
        { PAIR_RSA, "{'alg':'RS256','kid':'hmac'}", TG_JWT_NO_KEY },
    };

    (void) state;

    keys[0] = hs256;
    keys[1] = key_of(methods[0], "hmac");
    keys[2] = key_of(one, "one");
    keys[3] = key_of(two, "two");

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (verify(jwt_token("RS256", pairs[cases[i].pair], NULL, cases[i].header, USER),
                keys, 4) != cases[i].want)
        {
            fail_msg("%d %s", cases[i].pair, cases[i].header);
        }
    }

    /* a key without kid is not one that a kid selects */
    assert_int_equal(judge("{'alg':'HS256','kid':'x'}", USER), TG_JWT_NO_KEY);
    assert_int_equal(verify("e30.e30.AA", NULL, 0), TG_JWT_MALFORMED);
    assert_int_equal(verify(jwt_token("HS256", NULL, JWT_SECRET, "{'alg':'HS256'}", USER),
        NULL, 0), TG_JWT_NO_KEY);

    tg_jwt_key_free(keys[1]);
    tg_jwt_key_free(keys[2]);
    tg_jwt_key_free(keys[3]);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_algorithms),
        cmocka_unit_test(test_rfc7515),
        cmocka_unit_test(test_confusion),
        cmocka_unit_test(test_header),
        cmocka_unit_test(test_brought_key),
        cmocka_unit_test(test_form),
        cmocka_unit_test(test_kid),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
