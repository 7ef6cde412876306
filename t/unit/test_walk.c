/*
 * The walk over valid JSON: every kind of value, escapes, and text that ends anywhere.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tg_buf.h"
#include "tg_walk.h"


/* Keys and values of an object or array, in turn. */
static void
outline(tg_str_t text, tg_buf_t *out)
{
    bool             object;
    tg_str_t         key;
    tg_walk_t        walk;
    tg_walk_value_t  value;

    tg_buf_init(out, 1 << 20);
    object = text.data[0] == '{';
    walk = tg_walk_over(text);
    assert_true(tg_walk_enter(&walk));

    while (object ? tg_walk_member(&walk, &key, &value)
                  : tg_walk_element(&walk, &value))
    {
        if (object) {
            tg_buf_str(out, key);
            tg_buf_char(out, '=');
        }

        tg_buf_printf(out, "%d:", (int) value.type);
        tg_buf_str(out, value.text);
        tg_buf_char(out, '|');
    }

    assert_ptr_equal(walk.p, walk.end);
}


static void
test_members(void **state)
{
    tg_buf_t  out;

    (void) state;

    outline(tg_str("{ \"a\" : \"x\\\"y\\\\\" , \"b\":[1,{\"c\":\"]}\"}],\"d\":-1.5e3 ,"
                   "\"e\":true,\"f\" :null,\"\":{}}"), &out);
    assert_true(tg_str_eq(tg_buf_get(&out),
        tg_str("a=1:\"x\\\"y\\\\\"|b=7:[1,{\"c\":\"]}\"}]|d=2:-1.5e3|e=3:true|"
               "f=5:null|=6:{}|")));
    tg_buf_free(&out);

    outline(tg_str("[]"), &out);
    assert_int_equal(out.len, 0);
    tg_buf_free(&out);

    outline(tg_str("[ false , [ [ ] ] ]"), &out);
    assert_true(tg_str_eq(tg_buf_get(&out), tg_str("4:false|7:[ [ ] ]|")));
    tg_buf_free(&out);
}


/* Quotes and backslashes at every place of the eight bytes that are looked at. */
static void
test_strings_of_every_length(void **state)
{
    char       text[256];
    size_t     len, at;
    tg_walk_t  walk;
    tg_walk_value_t  value;

    (void) state;

    for (len = 0; len < 150; len++) {
        for (at = 0; at + 1 < len; at++) {
            memset(text, 'x', sizeof(text));
            text[0] = '"';
            memcpy(text + 1 + at, at % 2 ? "\\\"" : "\\\\", 2);
            text[len + 1] = '"';

            walk = tg_walk_over((tg_str_t) { len + 5, text });
            value = tg_walk_value(&walk);

            assert_int_equal(value.type, TG_SCAN_STRING);
            assert_int_equal(value.text.len, len + 2);
            assert_int_equal(tg_walk_inside(value).len, len);
        }
    }
}


/* Not valid text: nothing is read past its end, and every walk comes to one. */
static void
test_cut_anywhere(void **state)
{
    char             *copy;
    size_t            n;
    tg_str_t          key;
    tg_walk_t         walk;
    tg_walk_value_t   value;

    static const char  text[] = "{\"a\":\"b\\\\\\\"c\",\"d\":[1,2,{\"e\":null}],\"f\":tru";

    (void) state;

    for (n = 0; n < sizeof(text); n++) {
        copy = malloc(n + 1);
        memcpy(copy, text, n);
        copy = realloc(copy, n ? n : 1);
        walk = tg_walk_over((tg_str_t) { n, copy });

        if (tg_walk_enter(&walk)) {
            while (tg_walk_member(&walk, &key, &value)) { /* void */ }
        }

        walk = tg_walk_over((tg_str_t) { n, copy });
        (void) tg_walk_value(&walk);
        free(copy);
    }
}


static void
test_names(void **state)
{
    (void) state;

    assert_true(tg_walk_is(tg_str("type"), "type"));
    assert_true(tg_walk_is(tg_str("ty\\u0070e"), "type"));
    assert_false(tg_walk_is(tg_str("types"), "type"));
    assert_false(tg_walk_is(tg_str("ty\\npe"), "type"));
    assert_false(tg_walk_is(tg_null_str, "type"));
}


int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_strings_of_every_length),
        cmocka_unit_test(test_cut_anywhere),
        cmocka_unit_test(test_names)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
