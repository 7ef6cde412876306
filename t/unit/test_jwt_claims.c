/*
 * The claims of end user tokens: times, the subject, traits, issuer and audience, and
 * the bound of the whole. All tokens here are signed well.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "jwt_make.h"


#define NOW      1700000000
#define HEADER   "{'alg':'HS256'}"

static tg_jwt_key_t  *hs256;


static int
setup(void **state)
{
    (void) state;

    hs256 = jwt_key(json_pack("{s:s, s:s, s:s}", "name", "k", "alg", "HS256", "secret",
        JWT_SECRET));

    return 0;
}


static int
teardown(void **state)
{
    (void) state;

    tg_jwt_key_free(hs256);

    return 0;
}


/* The end user that a token speaks for is returned as compact JSON in user (when not
 * NULL). */
static tg_jwt_fault_e
verify(const char *token, tg_jwt_key_t *const *keys, size_t n, char **user)
{
    json_t          *end_user;
    tg_rc_e          rc;
    tg_jwt_fault_e   fault;

    rc = tg_jwt_verify(tg_str_of(token), keys, n, NOW, &end_user, &fault);

    assert_int_equal(rc, fault == TG_JWT_ACCEPTED ? TG_OK : TG_E_INVALID);
    assert_int_equal(end_user != NULL, fault == TG_JWT_ACCEPTED);

    if (user != NULL) {
        *user = json_dumps(end_user, JSON_COMPACT);
    }

    json_decref(end_user);

    return fault;
}


static tg_jwt_fault_e
judge(const char *payload)
{
    return verify(jwt_token("HS256", NULL, JWT_SECRET, HEADER, payload), &hs256, 1, NULL);
}


static void
test_times(void **state)
{
    size_t  i;

    static const struct {
        const char      *claims;
        tg_jwt_fault_e   want;
    } cases[] = {
        { "'exp':1699999941", TG_JWT_ACCEPTED },
        { "'exp':1699999940", TG_JWT_EXPIRED },
        { "'exp':1699999940.25", TG_JWT_ACCEPTED },
        { "'exp':1699999939.75", TG_JWT_EXPIRED },
        { "'exp':1.7e9", TG_JWT_ACCEPTED },
        { "'exp':9007199254740993", TG_JWT_ACCEPTED },
        { "'exp':1e300", TG_JWT_ACCEPTED },
        { "'exp':0", TG_JWT_EXPIRED },
        { "'exp':-1700000300", TG_JWT_EXPIRED },
        { "'exp':'1700000300'", TG_JWT_CLAIMS },
        { "'exp':null", TG_JWT_CLAIMS },
        { "'exp':true", TG_JWT_CLAIMS },
        { "'exp':[1700000300]", TG_JWT_CLAIMS },
        { "'iat':1700000000", TG_JWT_CLAIMS },
        { "'exp':1700000300,'nbf':1700000060", TG_JWT_ACCEPTED },
        { "'exp':1700000300,'nbf':1700000060.5", TG_JWT_NOT_YET_VALID },
        { "'exp':1700000300,'nbf':1700000061", TG_JWT_NOT_YET_VALID },
        { "'exp':1700000300,'nbf':'0'", TG_JWT_CLAIMS },
        { "'exp':1700000300,'nbf':null", TG_JWT_CLAIMS },
        { "'exp':1700000300,'iat':1700000060", TG_JWT_ACCEPTED },
        { "'exp':1700000300,'iat':1700000061", TG_JWT_NOT_YET_VALID },
        { "'exp':1700000300,'iat':1", TG_JWT_ACCEPTED },
        { "'exp':1700000300,'iat':{}", TG_JWT_CLAIMS },
        { "'exp':1699999000,'nbf':1700009000", TG_JWT_EXPIRED },
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char  payload[256];

        (void) snprintf(payload, sizeof(payload), "{'sub':'u',%s}", cases[i].claims);

        if (judge(payload) != cases[i].want) {
            fail_msg("%s", cases[i].claims);
        }
    }
}


static void
test_subject(void **state)
{
    char    payload[1024];
    size_t  i;

    static const struct {
        const char      *claims;
        tg_jwt_fault_e   want;
    } cases[] = {
        { "'a':1", TG_JWT_CLAIMS }, { "'sub':''", TG_JWT_CLAIMS },
        { "'sub':5", TG_JWT_CLAIMS }, { "'sub':null", TG_JWT_CLAIMS },
        { "'sub':['u']", TG_JWT_CLAIMS }, { "'sub':{'id':'u'}", TG_JWT_CLAIMS },
        { "'sub':'a\\u000ab'", TG_JWT_CLAIMS }, { "'sub':'\\u007f'", TG_JWT_CLAIMS },
        { "'sub':'u','traits':[]", TG_JWT_CLAIMS }, { "'sub':'u','traits':'x'", TG_JWT_CLAIMS },
        { "'sub':'u','traits':null", TG_JWT_CLAIMS },
        { "'sub':'u','traits':{}", TG_JWT_ACCEPTED },
        { "'sub':'\xd9\x85 {}/../:%'", TG_JWT_ACCEPTED },
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        (void) snprintf(payload, sizeof(payload), "{%s,'exp':1700000300}", cases[i].claims);

        if (judge(payload) != cases[i].want) {
            fail_msg("%s", cases[i].claims);
        }
    }

    for (i = TG_JWT_EXTERNAL_ID_MAX; i <= TG_JWT_EXTERNAL_ID_MAX + 1; i++) {
        (void) snprintf(payload, sizeof(payload), "{'sub':'%0*d','exp':1700000300}", (int) i,
            7);
        assert_int_equal(judge(payload), i == TG_JWT_EXTERNAL_ID_MAX
            ? TG_JWT_ACCEPTED : TG_JWT_CLAIMS);
    }
}


static void
test_traits(void **state)
{
    char    payload[4096], *user, *token;
    size_t  i, n, at;

    (void) state;

    token = jwt_token("HS256", NULL, JWT_SECRET, HEADER,
        "{'sub':'u','exp':1700000300,'external_id':'x','traits':{'plan':'gold','n':5,"
        "'f':2.5,'yes':true,'no':false,'nothing':null,'list':[1],'deep':{'a':1},"
        "'city':'\xd8\xa7'}}");

    assert_int_equal(verify(token, &hs256, 1, &user),
        TG_JWT_ACCEPTED);
    assert_string_equal(user, "{\"external_id\":\"u\",\"traits\":{\"plan\":\"gold\",\"n\":5,"
        "\"f\":2.5,\"yes\":true,\"no\":false,\"city\":\"\xd8\xa7\"}}");
    free(user);

    for (n = TG_JWT_TRAITS_MAX; n <= TG_JWT_TRAITS_MAX + 1; n++) {
        at = (size_t) sprintf(payload, "{'sub':'u','exp':1700000300,'traits':{");

        for (i = 0; i < n; i++) {
            at += (size_t) sprintf(payload + at, "%s't%zu':%zu", i == 0 ? "" : ",", i, i);
        }

        strcpy(payload + at, "}}");
        assert_int_equal(judge(payload), n == TG_JWT_TRAITS_MAX ? TG_JWT_ACCEPTED
                                                                         : TG_JWT_CLAIMS);
    }
}


static void
test_size(void **state)
{
    char    *payload, *token;
    size_t   pad, len;
    bool     at_limit = false;

    (void) state;

    payload = malloc(TG_JWT_TOKEN_MAX + 64);

    for (pad = 6000; pad < 6200; pad++) {
        (void) sprintf(payload, "{'sub':'u','exp':1700000300,'x':'%0*d'}", (int) pad, 1);
        token = jwt_token("HS256", NULL, JWT_SECRET, HEADER, payload);
        len = strlen(token);
        at_limit = at_limit || len == TG_JWT_TOKEN_MAX;
        assert_int_equal(verify(token, &hs256, 1, NULL), len <= TG_JWT_TOKEN_MAX
            ? TG_JWT_ACCEPTED : TG_JWT_TOO_LONG);
    }

    assert_true(at_limit);
    free(payload);
}


static void
test_issuer_audience(void **state)
{
    char           payload[256];
    size_t         i;
    tg_jwt_key_t  *keys[2];

    static const struct {
        const char      *claims;
        tg_jwt_fault_e   want;
    } cases[] = {
        { "'iss':'https://a','aud':'shop'", TG_JWT_ACCEPTED },
        { "'iss':'https://a','aud':['x','shop',5]", TG_JWT_ACCEPTED },
        { "'iss':'https://b','aud':'shop'", TG_JWT_ISSUER },
        { "'iss':'https://a/','aud':'shop'", TG_JWT_ISSUER },
        { "'iss':['https://a'],'aud':'shop'", TG_JWT_ISSUER },
        { "'aud':'shop'", TG_JWT_ISSUER },
        { "'iss':'https://a'", TG_JWT_AUDIENCE },
        { "'iss':'https://a','aud':'shops'", TG_JWT_AUDIENCE },
        { "'iss':'https://a','aud':[]", TG_JWT_AUDIENCE },
        { "'iss':'https://a','aud':['sho']", TG_JWT_AUDIENCE },
        { "'iss':'https://a','aud':{'shop':1}", TG_JWT_AUDIENCE },
        { "'iss':'https://a','aud':5", TG_JWT_AUDIENCE },
    };

    (void) state;

    keys[0] = jwt_key(json_pack("{s:s, s:s, s:s, s:s, s:s}", "name", "k", "alg", "HS256",
        "secret", JWT_SECRET, "issuer", "https://a", "audience", "shop"));
    keys[1] = jwt_key(json_pack("{s:s, s:s, s:s, s:s}", "name", "k2", "alg", "HS256",
        "secret", JWT_SECRET, "issuer", "https://c"));

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        (void) snprintf(payload, sizeof(payload), "{'sub':'u','exp':1700000300,%s}",
            cases[i].claims);

        if (verify(jwt_token("HS256", NULL, JWT_SECRET, HEADER, payload), keys, 1, NULL)
            != cases[i].want)
        {
            fail_msg("%s", cases[i].claims);
        }
    }

    /* the same secret for two issuers: either will do */
    assert_int_equal(verify(jwt_token("HS256", NULL, JWT_SECRET, HEADER,
        "{'sub':'u','exp':1700000300,'iss':'https://c'}"), keys, 2, NULL), TG_JWT_ACCEPTED);

    /* without an issuer or audience of the key nobody asks for them */
    assert_int_equal(judge("{'sub':'u','exp':1700000300,'iss':5,'aud':'other'}"),
        TG_JWT_ACCEPTED);

    tg_jwt_key_free(keys[0]);
    tg_jwt_key_free(keys[1]);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_subject),
        cmocka_unit_test(test_traits),
        cmocka_unit_test(test_size),
        cmocka_unit_test(test_issuer_audience),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
