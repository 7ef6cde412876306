/*
 * Bounds of the JSON Schema unit and its patterns: nothing that a schema or an
 * instance says can take unbounded time or stack, and what was stopped is invalid
 * with the reason "limit". ECMA-262 patterns by table. Field case C034.
 */

#include "schema_cases.h"

#include <time.h>


#define MANY        16
#define DEEP        10000
#define STALL_S     5.0        /* generous: instrumented code on a busy machine */


static double
now_s(void)
{
    struct timespec  t;

    clock_gettime(CLOCK_MONOTONIC, &t);

    return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}


static bool
is_limit(const tg_schema_errors_t *errors)
{
    return errors->count > 0
           && strcmp(errors->errors[errors->count - 1].keyword, "limit") == 0;
}


/* An instance nested n deep under "n"; built by hand, parsers would refuse it. */
static json_t *
nested(size_t n)
{
    size_t   i;
    json_t  *inner = json_object(), *outer;

    for (i = 0; i < n; i++) {
        outer = json_object();
        json_object_set_new(outer, "n", inner);
        inner = outer;
    }

    return inner;
}


/* C034: data as deep as it likes; arrays, equality and uniqueness too. */
static void
test_deep(void **state)
{
    size_t               i;
    json_t              *instance, *twice;
    tg_schema_t         *schema;
    tg_schema_errors_t   errors;

    static const char  *schemas[] = {
        "{'properties':{'n':{'$ref':'#'}}}",
        "{'additionalProperties':{'allOf':[{'$ref':'#'}]}}",
        "{'$dynamicAnchor':'x','additionalProperties':{'$dynamicRef':'#x'}}",
        "{'unevaluatedProperties':{'$ref':'#'}}",
        "{'const':{'n':1}}",
        "{'enum':[1]}",
        "{'$ref':'https://json-schema.org/draft/2020-12/schema'}",
    };

    (void) state;
    instance = nested(DEEP);

    for (i = 0; i < sizeof(schemas) / sizeof(schemas[0]); i++) {
        schema = schema_must_compile(schemas[i]);
        assert_false(tg_schema_validate(schema, instance, &errors));
        assert_true(is_limit(&errors));
        assert_false(tg_schema_validate(schema, instance, NULL));
        tg_schema_free(schema);
    }

    /* a depth that does occur is no trouble */
    schema = schema_must_compile(schemas[0]);
    twice = nested(TG_SCHEMA_MAX_DEPTH - 1);
    assert_true(tg_schema_validate(schema, twice, &errors));
    json_decref(twice);
    twice = nested(TG_SCHEMA_MAX_DEPTH);
    assert_false(tg_schema_validate(schema, twice, &errors));
    json_decref(twice);
    tg_schema_free(schema);

    twice = json_pack("[O,o]", instance, nested(DEEP));
    schema = schema_must_compile("{'uniqueItems':true}");
    assert_false(tg_schema_validate(schema, twice, &errors));
    assert_true(is_limit(&errors));
    tg_schema_free(schema);
    json_decref(twice);

    /* as a schema */
    assert_null(tg_schema_compile(instance, TG_SCHEMA_2020_12, &errors));
    assert_string_equal(errors.errors[0].keyword, "limit");
    json_decref(instance);
}


/* Schemas that never come to an end of themselves, and that branch without end. */
static void
test_endless(void **state)
{
    size_t               i, k;
    double               start;
    tg_schema_t         *schema;
    tg_schema_errors_t   errors;

    static const char  *schemas[] = {
        "{'allOf':[{'$ref':'#'}]}",
        "{'not':{'$ref':'#'}}",
        "{'anyOf':[{'$ref':'#'},{'$ref':'#'},true]}",
        "{'oneOf':[{'$ref':'#'},{'$ref':'#'}]}",
        "{'if':{'$ref':'#'}}",
        "{'dependentSchemas':{'a':{'$ref':'#'}}}",
        "{'$dynamicAnchor':'x','anyOf':[{'$dynamicRef':'#x'},{'$dynamicRef':'#x'}]}",
        "{'$dynamicRef':'#/$defs/a','$defs':{'a':{'$id':'q','$ref':'r'},"
        "'b':{'$id':'r','$ref':'q'}}}",
    };
    static const char  *instances[] = { "{'a':1}", "{'a':{'a':[{}]},'b':2}" };

    (void) state;

    for (i = 0; i < sizeof(schemas) / sizeof(schemas[0]); i++) {
        schema = schema_must_compile(schemas[i]);

        for (k = 0; k < sizeof(instances) / sizeof(instances[0]); k++) {
            start = now_s();
            assert_false(schema_check(schema, instances[k], &errors));
            assert_true(is_limit(&errors));
            assert_true(now_s() - start < STALL_S);
        }

        tg_schema_free(schema);
    }
}


/* 2^n branches by nested anyOf: the steps end it. */
static void
test_exponential(void **state)
{
    size_t               i;
    double               start;
    json_t              *defs, *document;
    char                 name[16], ref[32];
    tg_schema_t         *schema;
    tg_schema_errors_t   errors;

    (void) state;
    defs = json_object();

    for (i = 0; i < 60; i++) {
        snprintf(name, sizeof(name), "d%zu", i);
        snprintf(ref, sizeof(ref), "#/$defs/d%zu", i + 1);
        json_object_set_new(defs, name, json_pack("{s:[{s:s},{s:s}]}", "anyOf", "$ref",
                                                  ref, "$ref", ref));
    }

    json_object_set_new(defs, "d60", json_pack("{s:s}", "type", "string"));
    document = json_pack("{s:s,s:o}", "$ref", "#/$defs/d0", "$defs", defs);

    schema = tg_schema_compile(document, TG_SCHEMA_2020_12, &errors);
    assert_non_null(schema);

    assert_true(schema_check(schema, "'x'", &errors));
    start = now_s();
    assert_false(schema_check(schema, "1", &errors));
    assert_true(is_limit(&errors));
    assert_true(now_s() - start < STALL_S);

    tg_schema_free(schema);
    json_decref(document);
}


static void
test_size(void **state)
{
    size_t               i;
    double               start;
    json_t              *document, *list;
    tg_schema_t         *schema;
    tg_schema_errors_t   errors;

    (void) state;

    /* subschemas */
    list = json_array();

    for (i = 0; i < TG_SCHEMA_MAX_NODES; i++) {
        json_array_append_new(list, json_object());
    }

    document = json_pack("{s:o}", "anyOf", list);
    assert_null(tg_schema_compile(document, TG_SCHEMA_2020_12, &errors));
    assert_string_equal(errors.errors[0].keyword, "limit");
    json_array_remove(list, 0);
    schema = tg_schema_compile(document, TG_SCHEMA_2020_12, &errors);
    assert_non_null(schema);
    tg_schema_free(schema);
    json_decref(document);

    /* a long chain of references is bound in no time and evaluated without depth */
    document = json_object();

    for (i = 0; i < TG_SCHEMA_MAX_NODES - 2; i++) {
        char  name[16], ref[32];

        snprintf(name, sizeof(name), "d%zu", i);
        snprintf(ref, sizeof(ref), "#/$defs/d%zu", i + 1);
        json_object_set_new(document, name, json_pack("{s:s}", "$ref", ref));
    }

    json_object_set_new(document, "d19998", json_false());
    document = json_pack("{s:s,s:o}", "$ref", "#/$defs/d0", "$defs", document);
    start = now_s();
    schema = tg_schema_compile(document, TG_SCHEMA_2020_12, &errors);
    assert_non_null(schema);
    assert_true(now_s() - start < STALL_S);
    assert_false(schema_check(schema, "1", &errors));
    assert_string_equal(errors.errors[0].keyword, "false schema");
    tg_schema_free(schema);
    json_decref(document);

    /* many items: neither quadratic nor stopped */
    list = json_array();

    for (i = 0; i < 100000; i++) {
        json_array_append_new(list, i % 2 == 0 ? json_integer((json_int_t) i)
                                               : json_sprintf("%zu", i));
    }

    schema = schema_must_compile("{'items':{'type':['integer','string']},"
                                 "'uniqueItems':true,'unevaluatedItems':false}");
    start = now_s();
    assert_true(tg_schema_validate(schema, list, &errors));
    assert_true(now_s() - start < STALL_S);
    json_array_append_new(list, json_real(4.0));
    assert_false(tg_schema_validate(schema, list, &errors));
    assert_string_equal(errors.errors[0].keyword, "uniqueItems");
    tg_schema_free(schema);
    json_decref(list);
}


static void
test_patterns(void **state)
{
    size_t               i, k;
    json_t              *document, *text;
    tg_schema_t         *schema;
    tg_schema_errors_t   errors;

    static const struct {
        const char  *pattern;
        const char  *match[MANY];
        const char  *other[MANY];
    }  cases[] = {
        { "^a+$", { "a", "aaa" }, { "", "ba", "a\n", "a\r", "\na" } },
        { "b", { "abc" }, { "ac" } },
        { "", { "", "x" }, { NULL } },
        { "^.$", { "x", "é", "\xf0\x9f\x98\x80", "\v", "\xc2\x85" },
          { "", "\n", "\r", "\xe2\x80\xa8", "\xe2\x80\xa9", "xy" } },
        { "^[^]$", { "\n", "x", "\xf0\x9f\x98\x80" }, { "" } },
        { "a[]|b", { "b" }, { "a" } },
        { "^\\d\\D\\w\\W$", { "1xa-", "1x_\xc3\xa9" }, { "\xd9\xa1xa-", "1xaa" } },
        { "^\\s+$", { " \t\n\v\f\r\xc2\xa0\xef\xbb\xbf\xe3\x80\x80\xe2\x80\xa8" },
          { "x", "\xe2\x80\x8b", "\xc2\x85" } },
        { "^[\\s\\d]+$", { "1 2\xc2\xa0" }, { "a" } },
        { "^[^\\S]$", { " " }, { "x" } },
        { "^[\\S]$", { "x", "\xc3\xa9", "\xf0\x9f\x98\x80" }, { " ", "\xc2\xa0" } },
        { "\\bfoo\\b", { "a foo b", "\xc3\xa9""foo" }, { "foob" } },
        { "^[\\b]$", { "\b" }, { "b" } },
        { "^\\u0041\\x42\\u{43}\\cJ\\0$", { "ABC\n" "\0" }, { "ABC" } },
        { "^\\uD83D\\uDE00$", { "\xf0\x9f\x98\x80" }, { "x" } },
        { "^[\\u{1F600}-\\u{1F64F}]$", { "\xf0\x9f\x98\x80" }, { "\xf0\x9f\x99\x90" } },
        { "^\\/\\-\\.\\@\\_\\\"$", { "/-.@_\"" }, { "/-x@_\"" } },
        { "^[.*+?()|\\]\\[{}^$-]+$", { ".*+?()|][{}^$-" }, { "a" } },
        { "^[[:alpha:]]$", { "a]", ":]", "[]" }, { "z", "b]" } },
        { "^[a-c-e]+$", { "a-e" }, { "d" } },
        { "^[-a]+$", { "-a" }, { "b" } },
        { "^a{2,3}$", { "aa", "aaa" }, { "a", "aaaa" } },
        { "^a{2}b{1,}?$", { "aabb" }, { "ab" } },
        { "^a{,2}$", { "a{,2}" }, { "aa", "" } },
        { "^{a}]$", { "{a}]" }, { "a" } },
        { "^x{$", { "x{" }, { "x" } },
        { "^(?:ab|c)+$", { "abc", "cab" }, { "b" } },
        { "^(?=.*\\d)(?!.*x).+$", { "a1" }, { "a", "1x" } },
        { "(?<=\\$)\\d(?<!9)$", { "$1" }, { "1", "$9" } },
        { "^(a|b)\\1$", { "aa", "bb" }, { "ab" } },
        { "^(?<y>a|b)-\\k<y>$", { "a-a" }, { "a-b" } },
        { "^\\k<z>(?<z>a)$", { "a" }, { "aa" } },
        { "^(?:(a)|b)\\1$", { "aa", "b" }, { "ba" } },
        { "^(?<$\xc3\xa9>x)\\1$", { "xx" }, { "x" } },
        { "^\\p{L}\\P{Letter}\\p{Lu}$", { "\xd8\xa8" "1\xc3\x89" }, { "aaA", "a1a" } },
        { "^\\p{Script=Arabic}+$", { "\xd8\xb3\xd9\x84\xd8\xa7\xd9\x85" }, { "abc" } },
        { "^\\p{sc=Grek}\\p{scx=Greek}$", { "\xcf\x80\xcf\x80" }, { "pp" } },
        { "^\\p{gc=Decimal_Number}\\p{General_Category=Nd}$", { "1\xd9\xa1" }, { "ab" } },
        { "^\\p{Alphabetic}\\p{ASCII}\\p{Any}$", { "ab\n" }, { "1bc" } },
        { "^\\P{Assigned}$", { "\xcd\xb8" }, { "a" } },
        { "^\\p{Emoji_Presentation}$", { "\xf0\x9f\x98\x80" }, { "a" } },
        { "^[\\p{Lu}\\P{L}]+$", { "A1" }, { "a" } },
        { "^(((((a)))))\\5$", { "aa" }, { "a" } },
        { "a b #c", { "a b #c" }, { "ab" } },
        { "^[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\\.[A-Za-z]{2,}$", { "a.b@c.de" },
          { "a@b" } },
        { "^\\d{4}-(0[1-9]|1[0-2])-([0-2]\\d|3[01])$", { "2024-12-31" },
          { "2024-13-01", "2024-12-31\n" } },
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        document = json_pack("{s:s}", "pattern", cases[i].pattern);
        schema = tg_schema_compile(document, TG_SCHEMA_2020_12, &errors);

        if (schema == NULL) {
            fail_msg("%s: %s", cases[i].pattern, errors.errors[0].reason);
        }

        for (k = 0; k < MANY && cases[i].match[k] != NULL; k++) {
            /* one case has a NUL at its end */
            text = strcmp(cases[i].match[k], "ABC\n") == 0
                   ? json_stringn(cases[i].match[k], 5) : json_string(cases[i].match[k]);

            if (!tg_schema_validate(schema, text, &errors)) {
                fail_msg("%s does not match %s", cases[i].pattern, cases[i].match[k]);
            }

            json_decref(text);
        }

        for (k = 0; k < MANY && cases[i].other[k] != NULL; k++) {
            text = json_string(cases[i].other[k]);

            if (tg_schema_validate(schema, text, &errors)) {
                fail_msg("%s matches %s", cases[i].pattern, cases[i].other[k]);
            }

            assert_string_equal(errors.errors[0].keyword, "pattern");
            json_decref(text);
        }

        tg_schema_free(schema);
        json_decref(document);
    }
}


/* What only PCRE2 has, and what nobody has. */
static void
test_patterns_refused(void **state)
{
    size_t               i;
    char                 big[5001];
    json_t              *document;
    tg_schema_t         *schema;
    tg_schema_errors_t   errors;

    static const char  *patterns[] = {
        "(?i)a", "(?i:a)", "(?>a)", "(?P<n>a)", "(?P=n)", "(?P>n)", "(?'n'a)", "(?1)",
        "(?R)", "(?&n)", "(?(1)a)", "(?#c)", "(?|a)", "(?C1)", "(?<>a)", "(?<1a>b)",
        "(?<a b>c)", "(?<n>a)(?<n>b)", "(*FAIL)", "(*UCP)a", "(*LIMIT_MATCH=1)a", "a++",
        "a*+", "a?+", "a{2}+", "a**", "*a", "+", "?", "{2}", "a|*", "(*a)", "(?:+)",
        "^*", "\\b+", "\\Aa", "a\\Z", "a\\z", "\\Ga", "\\Ka", "\\Qa\\E", "\\Ra", "\\ha",
        "\\Xa", "\\Na", "\\ea", "\\aa", "\\oa", "\\g1", "\\1", "(a)\\2", "\\k<n>", "\\k",
        "\\p", "\\pL", "\\p{", "\\p{}", "\\p{^L}", "\\p{Nope}", "\\p{Greek}",
        "\\p{Script=Nope}", "\\p{L=L}", "\\p{sc=}", "\\u12", "\\u{}", "\\u{110000}",
        "\\u{12", "\\ud800", "\\ud800\\u0041", "\\xg1", "\\c1", "\\c", "\\01", "\\", "(",
        ")", "(a", "a)", "[", "[a", "[\\", "[z-a]", "[\\d-z]", "[a-\\w]", "[\\1]",
        "[\\A]", "a{3,2}", "a{70000}", "(?<=a+)b", "(?", "(?<", "(?<n", "((a{999}){999}){999}",
    };

    (void) state;

    for (i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        document = json_pack("{s:s}", "pattern", patterns[i]);
        schema = tg_schema_compile(document, TG_SCHEMA_2020_12, &errors);

        if (schema != NULL) {
            fail_msg("%s is taken", patterns[i]);
        }

        assert_string_equal(errors.errors[0].keyword, "pattern");
        assert_string_equal(errors.errors[0].pointer, "/pattern");
        json_decref(document);
    }

    memset(big, 'a', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    document = json_pack("{s:s}", "pattern", big);
    assert_null(tg_schema_compile(document, TG_SCHEMA_2020_12, &errors));
    json_decref(document);
}


/* Texts that make backtracking or scanning explode end soon and are invalid. */
static void
test_stalls(void **state)
{
    size_t               i;
    char                *text;
    double               start;
    json_t              *document, *instance;
    tg_schema_t         *schema;
    tg_schema_errors_t   errors;

    static const struct {
        const char  *pattern;
        char         fill;
        size_t       n;
        const char  *end;
    }  cases[] = {
        { "^(a+)+$", 'a', 40, "!" },
        { "^(a|aa)+$", 'a', 60, "!" },
        { "^(a|b)*$", 'a', 1000000, "" },
        { "[a-z]*\\d", 'a', 200000, "" },
        { "a*a*a*a*[^a]", 'a', 5000, "" },
        { "(.*)(.*)(.*)(.*)(.*)[^a]$", 'a', 10000, "" },
        { "(?=.*b)a", 'a', 200000, "" },
        { "\\s+$", ' ', 200000, "x" },
        { "a{1000}[^a]", 'a', 400000, "" },
        { "(a+)\\1c?[^a]", 'a', 20000, "" },
        { "(([a-z])+.)+[A-Z]([a-z])+$", 'a', 60000, "" },
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        text = malloc(cases[i].n + 8);
        assert_non_null(text);
        memset(text, cases[i].fill, cases[i].n);
        memcpy(text + cases[i].n, cases[i].end, strlen(cases[i].end) + 1);

        /* a limit must not turn into a success by way of "not" or "else" */
        document = json_pack("{s:{s:s},s:{s:{s:s}}}", "not", "pattern", cases[i].pattern,
                             "if", "not", "pattern", cases[i].pattern);
        instance = json_string(text);
        schema = tg_schema_compile(document, TG_SCHEMA_2020_12, &errors);
        assert_non_null(schema);

        start = now_s();

        if (tg_schema_validate(schema, instance, &errors) || !is_limit(&errors)) {
            fail_msg("%s was not stopped", cases[i].pattern);
        }

        assert_false(tg_schema_validate(schema, instance, NULL));
        assert_true(now_s() - start < STALL_S);

        tg_schema_free(schema);
        json_decref(instance);
        json_decref(document);
        free(text);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_deep),
        cmocka_unit_test(test_endless),
        cmocka_unit_test(test_exponential),
        cmocka_unit_test(test_size),
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_patterns_refused),
        cmocka_unit_test(test_stalls),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
