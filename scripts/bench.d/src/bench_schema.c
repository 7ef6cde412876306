/*
 * bench_schema FOLDER: compiles every schema of a set of real tools, validates the
 * recorded calls of them, and validates inputs of 1 KB to 1 MB of many shapes, with
 * the bars of each. FOLDER holds tools.jsonl and calls.jsonl.
 */

#include <string.h>

#include "measure.h"
#include "tg_json.h"
#include "tg_schema.h"


#define ROUNDS          5
#define REPEAT          8               /* validations of a call at one look at the clock */
#define LINE_MAX_BYTES  (256 * 1024)

#define COMPILE_BAR_S   1.0
#define CALL_BAR_US     5.0
/* over that of only reading the same tree, which misses the caches more when it is
 * large; uniqueItems sorts, and n log n is n^1.1 here */
#define GROWTH_BAR      0.3

#define SIZES           6               /* 1 KB, 4 KB, … 1 MB */
#define SIZE_FIRST      1024
#define SIZE_STEP       4
#define GROWTH_FROM     3               /* from 64 KB: smaller trees fit the caches */
#define SIZE_TIME_US    50000           /* an input is validated for so long */
#define SIZE_RUNS       9               /* … or at least so often; the shortest counts */


typedef struct {
    json_t       *parameters;
    tg_schema_t  *schema;
} bench_tool_t;

typedef struct {
    bench_tool_t  *tools;
    size_t         tool_count;
    json_t        *places;       /* id -> place of a tool */
    json_t       **calls;
    size_t         call_count;
} bench_t;


/* Every line of a file as JSON; NULL when it cannot be read. */
static json_t **
bench_lines(const char *folder, const char *name, size_t *count)
{
    FILE             *file;
    char              path[4096], *text;
    size_t            len, cap;
    json_t          **lines;
    tg_json_error_t   error;

    (void) snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "r");
    text = malloc(LINE_MAX_BYTES);
    cap = 8192;
    lines = malloc(cap * sizeof(json_t *));
    *count = 0;

    if (file == NULL || text == NULL || lines == NULL) {
        fprintf(stderr, "%s cannot be opened\n", path);
        exit(1);
    }

    while (fgets(text, LINE_MAX_BYTES, file) != NULL) {
        len = strlen(text);

        if (*count == cap) {
            cap *= 2;
            lines = realloc(lines, cap * sizeof(json_t *));
        }

        lines[*count] = tg_json_load((tg_str_t) { len, text }, &error);

        if (lines[*count] == NULL) {
            fprintf(stderr, "%s, line %zu: %s\n", path, *count + 1, error.reason);
            exit(1);
        }

        (*count)++;
    }

    free(text);
    (void) fclose(file);

    return lines;
}


static void
bench_load(bench_t *b, const char *folder)
{
    size_t    i;
    json_t  **lines;

    lines = bench_lines(folder, "tools.jsonl", &b->tool_count);
    b->tools = calloc(b->tool_count, sizeof(bench_tool_t));
    b->places = json_object();

    for (i = 0; i < b->tool_count; i++) {
        b->tools[i].parameters = json_object_get(lines[i], "parameters");
        json_object_set_new(b->places, json_string_value(json_object_get(lines[i], "id")),
                            json_integer((json_int_t) i));
    }

    b->calls = bench_lines(folder, "calls.jsonl", &b->call_count);
}


static bool
bench_compile(bench_t *b)
{
    size_t               i, failed, round;
    double               begin, *each, totals[ROUNDS];
    tg_schema_errors_t   errors;

    failed = 0;
    each = malloc(b->tool_count * sizeof(double));

    for (round = 0; round < ROUNDS; round++) {

        for (i = 0; i < b->tool_count; i++) {
            tg_schema_free(b->tools[i].schema);
            b->tools[i].schema = NULL;
        }

        totals[round] = 0;

        for (i = 0; i < b->tool_count; i++) {
            begin = measure_clock_us(CLOCK_MONOTONIC);
            b->tools[i].schema = tg_schema_compile(b->tools[i].parameters,
                                                   TG_SCHEMA_2020_12, &errors);
            each[i] = measure_clock_us(CLOCK_MONOTONIC) - begin;
            totals[round] += each[i];
            failed += (b->tools[i].schema == NULL);
        }
    }

    printf("compile: %zu schemas, %zu refused; one: median %.2f us, p99 %.2f us, "
           "longest %.2f us\n", b->tool_count, failed / ROUNDS,
           measure_share(each, b->tool_count, 0.5),
           measure_share(each, b->tool_count, 0.99),
           measure_share(each, b->tool_count, 1.0));
    free(each);

    return measure_bar("compile all of them, median of 5",
                       measure_share(totals, ROUNDS, 0.5) / 1e6, COMPILE_BAR_S, " s")
           && failed == 0;
}


static bool
bench_calls(bench_t *b)
{
    bool                 valid;
    size_t               i, k, wrong, round;
    double               begin, *each, rounds[ROUNDS];
    json_t              *instance;
    tg_schema_t         *schema;
    const char          *id;
    tg_schema_errors_t   errors;

    wrong = 0;
    valid = false;
    each = malloc(b->call_count * sizeof(double));

    for (i = 0; i < b->call_count; i++) {
        id = json_string_value(json_object_get(b->calls[i], "tool"));
        k = (size_t) json_integer_value(json_object_get(b->places, id));
        schema = b->tools[k].schema;
        instance = json_object_get(b->calls[i], "arguments");

        for (round = 0; round < ROUNDS; round++) {
            begin = measure_clock_us(CLOCK_MONOTONIC);

            for (k = 0; k < REPEAT; k++) {
                valid = tg_schema_validate(schema, instance, &errors);
            }

            rounds[round] = (measure_clock_us(CLOCK_MONOTONIC) - begin) / REPEAT;
        }

        each[i] = measure_share(rounds, ROUNDS, 0.5);
        wrong += (valid != json_is_true(json_object_get(b->calls[i], "valid")));
    }

    printf("validate: %zu recorded calls, %zu with another verdict; p99 %.2f us, longest "
           "%.2f us\n", b->call_count, wrong, measure_share(each, b->call_count, 0.99),
           measure_share(each, b->call_count, 1.0));
    valid = measure_bar("validate a recorded call, median",
                        measure_share(each, b->call_count, 0.5), CALL_BAR_US, " us");
    free(each);

    return valid && wrong == 0;
}


/* One shape of input: what repeats until the size is reached. */
typedef struct {
    const char  *name;
    const char  *schema;
    const char  *head;
    const char  *item;        /* may hold one %zu: the number of the item */
    const char  *tail;
    bool         valid;
} bench_shape_t;

static const bench_shape_t  bench_shapes[] = {
    { "array of integers", "{\"items\":{\"type\":\"integer\",\"minimum\":0}}",
      "[0", ",%zu", "]", true },
    { "array of objects",
      "{\"items\":{\"type\":\"object\",\"properties\":{\"id\":{\"type\":\"integer\"},"
      "\"name\":{\"type\":\"string\",\"maxLength\":40}},\"required\":[\"id\",\"name\"],"
      "\"additionalProperties\":false}}",
      "[{\"id\":0,\"name\":\"x\"}", ",{\"id\":%zu,\"name\":\"a name\"}", "]", true },
    { "object of many keys", "{\"additionalProperties\":{\"type\":\"integer\"}}",
      "{\"a\":1", ",\"k%zu\":1", "}", true },
    { "patternProperties",
      "{\"patternProperties\":{\"^k[0-9]+$\":{\"type\":\"integer\"}},"
      "\"propertyNames\":{\"maxLength\":20}}",
      "{\"k\":1", ",\"k%zu\":1", "}", true },
    { "uniqueItems, integers", "{\"uniqueItems\":true}", "[\"a\"", ",%zu", "]", true },
    { "uniqueItems, objects", "{\"uniqueItems\":true}", "[0", ",{\"k\":[%zu]}", "]", true },
    { "uniqueItems, numbers", "{\"uniqueItems\":true}", "[0", ",%zu.5", "]", true },
    { "contains, none", "{\"contains\":{\"const\":\"x\"}}", "[0", ",%zu", "]", false },
    { "anyOf of each item",
      "{\"items\":{\"anyOf\":[{\"type\":\"string\"},{\"minimum\":1e12},{\"type\":\"integer\"}]}}",
      "[0", ",%zu", "]", true },
    { "unevaluatedItems",
      "{\"allOf\":[{\"contains\":{\"type\":\"integer\"}}],\"unevaluatedItems\":false}",
      "[0", ",%zu", "]", true },
    { "enum of each item", "{\"items\":{\"enum\":[\"a\",\"b\",\"c\",\"d\",1,2,3,null]}}",
      "[1", ",\"d\"", "]", true },
    { "every item wrong", "{\"items\":{\"type\":\"string\"}}", "[0", ",%zu", "]", false },
    { "long string", "{\"type\":\"string\",\"minLength\":1,\"maxLength\":2000000}",
      "\"", "text %zu ", "\"", true },
    { "long string of Arabic", "{\"maxLength\":2000000}", "\"", "\xd9\x86\xd8\xb5 ", "\"", true },
    { "pattern", "{\"pattern\":\"^[a-z0-9 ]*$\"}", "\"", "text %zu ", "\"", true },
    { "pattern that finds nothing", "{\"pattern\":\"[A-Z]{3}x\"}", "\"", "text %zu ", "\"",
      false },
    { "pattern that explodes", "{\"pattern\":\"^(a+)+$\"}", "\"", "aaaaaaa", "!\"", false }
};


/* The input of a shape, of `size` bytes or a little more. */
static json_t *
bench_input(const bench_shape_t *shape, size_t size)
{
    size_t            n;
    json_t           *value;
    tg_buf_t          text;
    tg_json_error_t   error;

    tg_buf_init(&text, size * 2 + 256);
    tg_buf_cstr(&text, shape->head);

    for (n = 1; text.len < size; n++) {
        if (strstr(shape->item, "%zu") != NULL) {
            char         number[32];
            const char  *at = strstr(shape->item, "%zu");

            (void) snprintf(number, sizeof(number), "%zu", n);
            tg_buf_append(&text, shape->item, (size_t) (at - shape->item));
            tg_buf_cstr(&text, number);
            tg_buf_cstr(&text, at + 3);

        } else {
            tg_buf_cstr(&text, shape->item);
        }
    }

    tg_buf_cstr(&text, shape->tail);
    value = tg_json_load(tg_buf_get(&text), &error);

    if (value == NULL) {
        fprintf(stderr, "%s: %s\n", shape->name, error.reason);
        exit(1);
    }

    tg_buf_free(&text);

    return value;
}


/* Only looks at every value. */
static size_t
bench_walk(const json_t *value)
{
    size_t         i, sum;
    const char    *key;
    const json_t  *member;

    sum = 0;

    switch (json_typeof(value)) {

    case JSON_OBJECT:
        json_object_foreach((json_t *) (uintptr_t) value, key, member) {
            sum += (size_t) key[0] + bench_walk(member);
        }

        return sum;

    case JSON_ARRAY:
        json_array_foreach(value, i, member) {
            sum += bench_walk(member);
        }

        return sum;

    case JSON_STRING:
        return strlen(json_string_value(value));

    default:
        return (size_t) json_integer_value(value);
    }
}


/* What one input costs, and what reading it does. */
static double
bench_size(tg_schema_t *schema, const bench_shape_t *shape, size_t size, double *walk)
{
    size_t               n;
    double               begin, all, walks[512], runs[512];
    json_t              *value;
    tg_schema_errors_t   errors;

    static volatile size_t  sum;

    value = bench_input(shape, size);
    all = 0;

    for (n = 0; n < 512 && (n < SIZE_RUNS || all < SIZE_TIME_US); n++) {
        begin = measure_clock_us(CLOCK_PROCESS_CPUTIME_ID);
        sum = bench_walk(value);
        walks[n] = measure_clock_us(CLOCK_PROCESS_CPUTIME_ID) - begin;

        begin = measure_clock_us(CLOCK_PROCESS_CPUTIME_ID);

        if (tg_schema_validate(schema, value, &errors) != shape->valid) {
            fprintf(stderr, "%s, %zu bytes: the verdict is wrong: %s\n", shape->name, size,
                    errors.count > 0 ? errors.errors[0].reason : "");
            exit(1);
        }

        runs[n] = measure_clock_us(CLOCK_PROCESS_CPUTIME_ID) - begin;
        all += runs[n];
    }

    (void) sum;
    json_decref(value);
    *walk = measure_share(walks, n, 0);

    return measure_share(runs, n, 0);
}


static bool
bench_growth(void)
{
    size_t               i, k, size;
    double               factor, growth, reading, worst, cost[SIZES], walk[SIZES];
    json_t              *document;
    tg_schema_t         *schema;
    tg_json_error_t      error;
    tg_schema_errors_t   errors;

    worst = 0;
    factor = pow(SIZE_STEP, SIZES - 1 - GROWTH_FROM);
    printf("\nvalidate, us of CPU by size of the input\n%-28s", "shape");

    for (k = 0, size = SIZE_FIRST; k < SIZES; k++, size *= SIZE_STEP) {
        printf("%9zu K", size / 1024);
    }

    printf("   growth    of reading\n");

    for (i = 0; i < sizeof(bench_shapes) / sizeof(bench_shapes[0]); i++) {
        document = tg_json_load(tg_str_of(bench_shapes[i].schema), &error);
        schema = document == NULL ? NULL
                 : tg_schema_compile(document, TG_SCHEMA_2020_12, &errors);

        if (schema == NULL) {
            fprintf(stderr, "%s: no schema\n", bench_shapes[i].name);
            exit(1);
        }

        printf("%-28s", bench_shapes[i].name);

        for (k = 0, size = SIZE_FIRST; k < SIZES; k++, size *= SIZE_STEP) {
            cost[k] = bench_size(schema, &bench_shapes[i], size, &walk[k]);
            printf("%11.1f", cost[k]);
        }

        growth = measure_growth(cost[GROWTH_FROM], cost[SIZES - 1], factor);
        reading = measure_growth(walk[GROWTH_FROM], walk[SIZES - 1], factor);
        printf("   n^%-7.2f n^%.2f\n", growth, reading);

        growth -= reading > 1 ? reading : 1;
        worst = growth > worst ? growth : worst;

        tg_schema_free(schema);
        json_decref(document);
    }

    return measure_bar("cost grows faster than linear, or than reading does, by the power of",
                       worst, GROWTH_BAR, "");
}


int
main(int argc, char **argv)
{
    bool     held;
    bench_t  b = { 0 };

    if (argc != 2) {
        fprintf(stderr, "usage: bench_schema FOLDER\n");
        return 2;
    }

    bench_load(&b, argv[1]);
    held = bench_compile(&b);
    held &= bench_calls(&b);
    held &= bench_growth();

    return held ? 0 : 1;
}
