/*
 * The JSON Schema compiler and validator by tables of our own: verdicts, what is
 * refused at compile time and where, the words of errors, and the bounds.
 * Field cases C033, C034, C035.
 */

#include "schema_cases.h"


#define MANY  32


/* C033, C034, C035 and the keywords, one by one. */
static void
test_verdicts(void **state)
{
    size_t               i, k;
    tg_schema_t         *schema;
    tg_schema_errors_t   errors;

    static const struct {
        const char  *schema;
        const char  *valid[MANY];
        const char  *invalid[MANY];
    }  cases[] = {
        /* C033 */
        { "{'type':['object','null'],'properties':{'a':{'type':'string'}},"
          "'required':['a'],'additionalProperties':false}",
          { "null", "{'a':'x'}" }, { "{}", "{'a':1}", "{'a':'x','b':1}", "[]" } },
        /* C034: recursion */
        { "{'type':'object','properties':{'n':{'$ref':'#/$defs/N'}},'$defs':{'N':"
          "{'type':'object','properties':{'next':{'$ref':'#/$defs/N'}},"
          "'additionalProperties':false}}}",
          { "{}", "{'n':{}}", "{'n':{'next':{'next':{}}}}" },
          { "{'n':{'next':{'next':{'x':1}}}}", "{'n':{'next':1}}" } },
        /* C035 */
        { "{'type':'object','properties':{'order_number':{'type':'string'}},"
          "'required':['order_number'],'additionalProperties':false}",
          { "{'order_number':'8812'}" },
          { "{'order_number':'8812','status_filter':'late'}", "{'order_number':8812}" } },
        { "true", { "1", "null", "{}" }, { NULL } },
        { "false", { NULL }, { "1", "null", "{}" } },
        { "{'type':'integer'}", { "1", "1.0", "-0.0", "1e3", "1e300" },
          { "1.5", "'1'", "true", "null", "1e-9" } },
        { "{'type':'number'}", { "1", "1.5", "1e300" }, { "'1'", "false", "[]" } },
        { "{'type':['integer','string']}", { "2.0", "'x'" }, { "2.5", "null" } },
        { "{'const':1}", { "1", "1.0", "10e-1" }, { "true", "'1'", "1.0000000001" } },
        { "{'const':{'a':[1,2.0],'b':null}}", { "{'b':null,'a':[1.0,2]}" },
          { "{'a':[1,2]}", "{'a':[2,1],'b':null}", "{'a':[1,2],'b':null,'c':1}" } },
        { "{'const':false}", { "false" }, { "0", "null", "true" } },
        { "{'enum':['a',1,null,[0],{'x':1}]}", { "'a'", "1.0", "null", "[0.0]",
          "{'x':1}" }, { "'A'", "2", "false", "[false]", "{'x':true}", "{}" } },
        { "{'minimum':9007199254740993}", { "9007199254740993", "9007199254740994" },
          { "9007199254740992", "9007199254740992.0", "-1e300" } },
        { "{'maximum':9007199254740992.0}", { "9007199254740992" },
          { "9007199254740993", "1e300" } },
        { "{'exclusiveMinimum':0.5,'exclusiveMaximum':2}", { "1", "0.51", "1.999" },
          { "0.5", "2", "2.0", "0" } },
        { "{'maximum':-9223372036854775808}", { "-9223372036854775808", "-1e19" },
          { "-9223372036854775807" } },
        { "{'minLength':2,'maxLength':3}", { "'ab'", "'\\uD83D\\uDE00b'", "'مرح'", "7" },
          { "'a'", "'abcd'", "'\\uD83D\\uDE00'", "''" } },
        { "{'items':{'type':'integer'},'minItems':1,'maxItems':3}",
          { "[1]", "[1,2,3.0]", "{}" }, { "[]", "[1,2,3,4]", "[1,'2']" } },
        { "{'prefixItems':[{'type':'string'},{'const':2}],'items':false}",
          { "[]", "['a']", "['a',2]" }, { "['a',2,3]", "[2]", "['a',3]" } },
        { "{'contains':{'type':'string'},'minContains':2,'maxContains':3}",
          { "['a','b']", "[1,'a',2,'b','c']" },
          { "['a']", "[]", "['a','b','c','d']" } },
        { "{'contains':{'type':'string'},'minContains':0,'maxContains':1}",
          { "[]", "[1]", "['a']" }, { "['a','b']" } },
        { "{'minContains':4}", { "[]" }, { NULL } },
        { "{'uniqueItems':true}",
          { "[]", "[1,2]", "[1,true]", "[0,false]", "[[1],[true]]", "['1',1]",
            "[{'a':1},{'a':2}]", "[1,2,3,4,5,6,7,8,9,10,11,12]" },
          { "[1,1.0]", "[{'a':1,'b':2},{'b':2,'a':1.0}]", "[[1],[1.0]]",
            "[1,2,3,4,5,6,7,8,9,10,11,3.0]", "['x',1,2,3,4,5,6,7,8,9,'x']" } },
        { "{'minProperties':1,'maxProperties':2}", { "{'a':1}", "[]" },
          { "{}", "{'a':1,'b':2,'c':3}" } },
        { "{'patternProperties':{'^x-':{'type':'integer'},'y$':{'minimum':3}},"
          "'additionalProperties':{'type':'string'}}",
          { "{'x-a':1,'b':'s'}", "{'x-y':3}", "{'y':'s'}" },
          { "{'x-a':'s'}", "{'b':1}", "{'x-y':2}" } },
        { "{'propertyNames':{'maxLength':2,'pattern':'^[a-z]'}}", { "{'ab':1}" },
          { "{'abc':1}", "{'A':1}", "{'':1}" } },
        { "{'dependentRequired':{'a':['b']},'dependentSchemas':{'c':{'minProperties':3}}}",
          { "{'b':1}", "{'a':1,'b':1}", "{'c':1,'d':1,'e':1}" },
          { "{'a':1}", "{'c':1}" } },
        { "{'if':{'properties':{'k':{'const':1}},'required':['k']},"
          "'then':{'required':['x']},'else':{'required':['y']}}",
          { "{'k':1,'x':1}", "{'y':1}", "{'k':2,'y':1}" }, { "{'k':1,'y':1}", "{}" } },
        { "{'then':{'const':1},'else':{'const':2}}", { "3" }, { NULL } },
        { "{'oneOf':[{'type':'integer'},{'minimum':2}]}", { "1", "2.5" },
          { "3", "1.5" } },
        { "{'anyOf':[{'type':'integer'},{'minimum':2}]}", { "1", "2.5", "3" },
          { "1.5" } },
        { "{'allOf':[{'minimum':1},{'maximum':2}],'not':{'const':1.5}}", { "1", "2" },
          { "0", "3", "1.5" } },
        { "{'allOf':[{'properties':{'a':true}},{'anyOf':[{'properties':{'b':{'const':1}},"
          "'required':['b']},true]}],'unevaluatedProperties':false}",
          { "{}", "{'a':1}", "{'a':1,'b':1}" }, { "{'c':1}", "{'b':2}" } },
        { "{'contains':{'type':'string'},'unevaluatedItems':{'type':'integer'}}",
          { "['a',1]", "['a','b']" }, { "['a',null]", "[1]" } },
        { "{'$defs':{'pos':{'$anchor':'pos','minimum':0}},'properties':{'a':"
          "{'$ref':'#pos','maximum':9}}}", { "{'a':5}" }, { "{'a':-1}", "{'a':10}" } },
        { "{'$schema':'http://json-schema.org/draft-07/schema#','$ref':'#/definitions/i',"
          "'maximum':1,'definitions':{'i':{'type':'integer'}}}", { "5" }, { "'a'" } },
        { "{'$schema':'http://json-schema.org/draft-07/schema','items':[{'const':1}],"
          "'additionalItems':{'const':2},'dependencies':{'a':['b'],'c':false}}",
          { "[1,2,2]", "{'a':1,'b':1}" }, { "[2]", "[1,1]", "{'a':1}", "{'c':1}" } },
        { "{'$ref':'https://json-schema.org/draft/2020-12/schema'}",
          { "{'type':'integer'}", "true", "{'x':1}" },
          { "{'type':'int'}", "1", "{'minLength':-1}", "{'properties':{'a':2}}" } },
        { "{'format':'email','contentEncoding':'base64'}", { "'%%'", "''" }, { NULL } },
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        schema = schema_must_compile(cases[i].schema);

        for (k = 0; k < MANY && cases[i].valid[k] != NULL; k++) {
            if (!schema_check(schema, cases[i].valid[k], &errors)) {
                fail_msg("%s refuses %s: %s %s", cases[i].schema, cases[i].valid[k],
                         errors.errors[0].pointer, errors.errors[0].reason);
            }
        }

        for (k = 0; k < MANY && cases[i].invalid[k] != NULL; k++) {
            if (schema_check(schema, cases[i].invalid[k], &errors)) {
                fail_msg("%s takes %s", cases[i].schema, cases[i].invalid[k]);
            }
        }

        tg_schema_free(schema);
    }
}


static void
test_multiples(void **state)
{
    size_t               i;
    char                 text[80];
    tg_schema_t         *schema;
    tg_schema_errors_t   errors;

    static const struct {
        const char  *of, *value;
        bool         valid;
    }  cases[] = {
        { "0.01", "19.99", true }, { "0.01", "4.35", true }, { "0.01", "1.005", false },
        { "0.1", "0.3", true }, { "0.1", "0.7", true }, { "0.1", "123456789.1", true },
        { "0.0001", "0.0075", true }, { "0.0001", "0.00751", false },
        { "1e-8", "12391239123", true }, { "1e-300", "1e300", true },
        { "1e300", "1e-300", false }, { "1e300", "1e300", true },
        { "0.123456789", "1e308", false }, { "0.5", "1e308", true },
        { "3", "9223372036854775806", true }, { "3", "9223372036854775807", false },
        { "7", "-49", true }, { "7", "-50", false }, { "7", "0", true },
        { "2.5", "7.5", true }, { "2.5", "8", false }, { "2.5", "-0.0", true },
        { "3", "1e2", false }, { "3", "1.5", false }, { "1", "1e308", true },
        { "1024", "1180591620717411303424.0", true }, { "0.3", "0.9", true },
        { "5e-324", "5e-324", true }, { "5e-324", "1e-323", true },
        { "1e-19", "1", true }, { "1", "1e-19", false }, { "1", "0.1", false },
        { "9223372036854775807", "9223372036854775807", true },
        { "9007199254740993", "9007199254740992.0", false },
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(text, sizeof(text), "{'multipleOf':%s}", cases[i].of);
        schema = schema_must_compile(text);

        if (schema_check(schema, cases[i].value, &errors) != cases[i].valid) {
            fail_msg("%s, multiple of %s: must be %d", cases[i].value, cases[i].of,
                     cases[i].valid);
        }

        tg_schema_free(schema);
    }
}


/* C034: a remote reference is refused when the schema is defined. */
static void
test_refused(void **state)
{
    size_t               i;
    tg_schema_t         *schema;
    tg_schema_errors_t   errors;

    static const struct {
        const char         *schema, *keyword, *pointer;
        tg_schema_draft_e   draft;
    }  cases[] = {
        { "{'$ref':'https://host/x.json'}", "$ref", "/$ref", TG_SCHEMA_2020_12 },
        { "{'properties':{'a':{'$ref':'x.json#/a'}}}", "$ref", "/properties/a/$ref",
          TG_SCHEMA_DRAFT7 },
        { "{'$ref':'#/$defs/none'}", "$ref", "/$ref", TG_SCHEMA_2020_12 },
        { "{'$ref':'#none'}", "$ref", "/$ref", TG_SCHEMA_2020_12 },
        { "{'$ref':'#%zz'}", "$ref", "/$ref", TG_SCHEMA_2020_12 },
        { "{'$ref':'#/title','title':'x'}", "$ref", "/$ref", TG_SCHEMA_2020_12 },
        { "{'$ref':'#'}", "$ref", "/$ref", TG_SCHEMA_2020_12 },
        { "{'$defs':{'a':{'$ref':'#/$defs/b'},'b':{'$ref':'#/$defs/a'}}}", "$ref",
          "/$defs/a/$ref", TG_SCHEMA_2020_12 },
        { "{'$dynamicRef':'https://host/x#y'}", "$dynamicRef", "/$dynamicRef",
          TG_SCHEMA_2020_12 },
        { "{'$ref':1}", "$ref", "/$ref", TG_SCHEMA_2020_12 },
        { "{'$recursiveRef':'#'}", "$recursiveRef", "/$recursiveRef",
          TG_SCHEMA_2020_12 },
        { "{'$schema':'http://json-schema.org/draft-04/schema#'}", "$schema", "/$schema",
          TG_SCHEMA_2020_12 },
        { "{'$id':'a#b'}", "$id", "/$id", TG_SCHEMA_2020_12 },
        { "{'$defs':{'a':{'$id':'x'},'b':{'$id':'x'}}}", "$id", "/$defs/b/$id",
          TG_SCHEMA_2020_12 },
        { "{'$anchor':'1a'}", "$anchor", "/$anchor", TG_SCHEMA_2020_12 },
        { "{'$defs':{'a':{'$anchor':'x'},'b':{'$anchor':'x'}}}", "$anchor",
          "/$defs/b/$anchor", TG_SCHEMA_2020_12 },
        { "{'type':'dict'}", "type", "/type", TG_SCHEMA_2020_12 },
        { "{'properties':{'a/b':{'type':'float'}}}", "type", "/properties/a~1b/type",
          TG_SCHEMA_2020_12 },
        { "{'type':[]}", "type", "/type", TG_SCHEMA_2020_12 },
        { "{'type':['string','string']}", "type", "/type", TG_SCHEMA_2020_12 },
        { "{'properties':{'a':'string'}}", "properties", "/properties/a",
          TG_SCHEMA_2020_12 },
        { "{'properties':[]}", "properties", "/properties", TG_SCHEMA_2020_12 },
        { "{'properties':{},'required':true}", "required", "/required",
          TG_SCHEMA_2020_12 },
        { "{'required':['a',1]}", "required", "/required", TG_SCHEMA_2020_12 },
        { "{'required':['a','a'],'properties':{'a':true}}", "required", "/required",
          TG_SCHEMA_2020_12 },
        { "{'enum':'a'}", "enum", "/enum", TG_SCHEMA_2020_12 },
        { "{'minLength':-1}", "minLength", "/minLength", TG_SCHEMA_2020_12 },
        { "{'maxItems':1.5}", "maxItems", "/maxItems", TG_SCHEMA_2020_12 },
        { "{'minimum':'1'}", "minimum", "/minimum", TG_SCHEMA_2020_12 },
        { "{'exclusiveMinimum':true}", "exclusiveMinimum", "/exclusiveMinimum",
          TG_SCHEMA_2020_12 },
        { "{'multipleOf':0}", "multipleOf", "/multipleOf", TG_SCHEMA_2020_12 },
        { "{'allOf':[]}", "allOf", "/allOf", TG_SCHEMA_2020_12 },
        { "{'anyOf':[true,{'not':3}]}", "not", "/anyOf/1/not", TG_SCHEMA_2020_12 },
        { "{'oneOf':[true,3]}", "oneOf", "/oneOf/1", TG_SCHEMA_2020_12 },
        { "{'items':[true]}", "items", "/items", TG_SCHEMA_2020_12 },
        { "{'uniqueItems':1}", "uniqueItems", "/uniqueItems", TG_SCHEMA_2020_12 },
        { "{'pattern':'('}", "pattern", "/pattern", TG_SCHEMA_2020_12 },
        { "{'patternProperties':{'a(':true}}", "patternProperties",
          "/patternProperties/a(", TG_SCHEMA_2020_12 },
        { "{'dependentRequired':{'a':'b'}}", "dependentRequired", "/dependentRequired/a",
          TG_SCHEMA_2020_12 },
        { "{'dependencies':{'a':'b'}}", "dependencies", "/dependencies/a",
          TG_SCHEMA_DRAFT7 },
        { "{'description':5}", "description", "/description", TG_SCHEMA_2020_12 },
        { "5", "schema", "", TG_SCHEMA_2020_12 },
        { "[]", "schema", "", TG_SCHEMA_DRAFT7 },
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        schema = schema_compile(cases[i].schema, cases[i].draft, &errors);

        if (schema != NULL) {
            fail_msg("%s is taken", cases[i].schema);
        }

        assert_int_equal(errors.count, 1);
        assert_string_equal(errors.errors[0].keyword, cases[i].keyword);
        assert_string_equal(errors.errors[0].pointer, cases[i].pointer);
        assert_true(errors.errors[0].reason[0] != '\0');
    }
}


static void
test_words(void **state)
{
    size_t               i;
    tg_buf_t             out;
    tg_schema_t         *schema;
    tg_schema_errors_t   errors;

    static const struct {
        const char  *schema, *instance, *text;
    }  cases[] = {
        { "{'properties':{'order_number':{'type':'string'}},'required':['order_number'],"
          "'additionalProperties':false}", "{'status_filter':'late'}",
          "unknown property \"status_filter\"; "
          "required property \"order_number\" is missing" },
        { "{'properties':{'a':{'type':'string'},'b':{'type':['object','null']}}}",
          "{'a':1,'b':2.5}",
          "/a: expected string, got integer; /b: expected object or null, got number" },
        { "{'items':{'type':'array','items':{'maximum':2.5}}}", "[[],[1,9]]",
          "/1/1: must be <= 2.5" },
        { "{'properties':{'a/b~':{'enum':['x',1,null]}}}", "{'a/b~':2}",
          "/a~1b~0: must be one of \"x\",1,null" },
        { "{'const':{'a':1}}", "2", "must be {\"a\":1}" },
        { "{'minLength':3,'pattern':'^a'}", "'bé'",
          "must have at least 3 characters, has 2; does not match the pattern ^a" },
        { "{'multipleOf':0.01}", "1.005", "must be a multiple of 0.01" },
        { "{'uniqueItems':true}", "[5,1,5]", "items 0 and 2 are equal" },
        { "{'properties':{'p':{'anyOf':[{'type':'null'},{'properties':{'q':{'type':"
          "'integer'}}}]}}}", "{'p':{'q':'1'}}",
          "/p: matches none of the 2 allowed forms; /p/q: expected integer, got string" },
        { "{'oneOf':[{'type':'integer'},{'type':'number'}]}", "1",
          "matches more than one of the 2 allowed forms" },
        { "{'dependentRequired':{'a':['b']}}", "{'a':1}",
          "property \"b\" is missing; another property requires it" },
        { "{'propertyNames':{'pattern':'^[a-z]+$'}}", "{'A':1}",
          "property name \"A\" is not allowed" },
        { "{'unevaluatedProperties':false}", "{'a\\nb':1}",
          "unknown property \"a b\"" },
        { "{'properties':{'a':false}}", "{'a':1}", "/a: nothing is allowed here" },
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        schema = schema_must_compile(cases[i].schema);
        assert_false(schema_check(schema, cases[i].instance, &errors));

        tg_buf_init(&out, 4096);
        assert_int_equal(tg_schema_errors_text(&errors, &out), TG_OK);
        assert_int_equal(tg_buf_char(&out, '\0'), TG_OK);
        assert_string_equal(out.data, cases[i].text);

        tg_buf_free(&out);
        tg_schema_free(schema);
    }
}


/* Many errors, long names and deep places: everything is cut to its bound. */
static void
test_error_bounds(void **state)
{
    char                 name[600], key[16];
    size_t               i;
    json_t              *instance;
    tg_schema_t         *schema;
    tg_schema_errors_t   errors;

    (void) state;
    schema = schema_must_compile("{'additionalProperties':{'type':'integer'},"
                                 "'propertyNames':{'maxLength':200}}");

    instance = json_object();

    for (i = 0; i < 50; i++) {
        snprintf(key, sizeof(key), "k%zu", i);
        json_object_set_new(instance, key, json_null());
    }

    assert_false(tg_schema_validate(schema, instance, &errors));
    assert_int_equal(errors.count, TG_SCHEMA_MAX_ERRORS);
    assert_string_equal(errors.errors[7].pointer, "/k7");
    json_decref(instance);

    /* two-byte characters: a cut must not fall inside one */
    for (i = 0; i < sizeof(name) - 2; i += 2) {
        memcpy(name + i, "é", 2);
    }

    name[sizeof(name) - 2] = '\0';
    instance = json_object();
    json_object_set_new(instance, name, json_null());

    assert_false(tg_schema_validate(schema, instance, &errors));
    assert_int_equal(errors.count, 2);
    assert_string_equal(errors.errors[0].pointer, "...");
    assert_non_null(strstr(errors.errors[1].reason, "é...\" is not allowed"));
    json_decref(instance);
    tg_schema_free(schema);
}


/* The schema keeps nothing of the document that it was compiled from. */
static void
test_own_copy(void **state)
{
    json_t              *document;
    tg_schema_t         *schema;
    tg_schema_errors_t   errors;

    (void) state;
    document = schema_json("{'properties':{'a':{'enum':['x'],'pattern':'^x'}},"
                           "'required':['a']}");
    schema = tg_schema_compile(document, TG_SCHEMA_2020_12, &errors);
    assert_non_null(schema);
    assert_int_equal(json_object_get(document, "required")->refcount, 1);

    json_object_clear(document);
    json_decref(document);

    assert_true(schema_check(schema, "{'a':'x'}", &errors));
    assert_false(schema_check(schema, "{}", &errors));
    tg_schema_free(schema);

    tg_schema_free(NULL);
    assert_null(tg_schema_compile(NULL, TG_SCHEMA_2020_12, &errors));
    assert_null(tg_schema_compile(NULL, TG_SCHEMA_2020_12, NULL));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_multiples),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_error_bounds),
        cmocka_unit_test(test_own_copy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
