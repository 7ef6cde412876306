/*
 * bench_policy: CPU of everything that is done with one call of a model before it
 * runs, without the store: arguments read, digits folded, schema, formats, canonical
 * form, the search for the same call, the eight checks, and for a refused one what
 * the model is told. The tools are of the usual kinds.
 */

#include <string.h>

#include "measure.h"
#include "tg_hours.h"
#include "tg_json.h"
#include "tg_policy.h"
#include "tg_schema.h"
#include "tg_template.h"


#define BAR_US          20.0
#define ROUNDS          31
#define BATCH_US        2000.0     /* a round is at least so long */
#define CANONICAL_MAX   (2 * 1024 * 1024)
#define TEXT_MAX        2048
#define DONE_CALLS      10         /* of the same run, all other ones */
#define NOW             1796037600


typedef struct {
    const char  *name;
    const char  *tool;
    const char  *arguments;
    const char  *code;             /* NULL: it passes */
} bench_case_t;

#define TOOL(name, method, url, body, parameters)                                    \
    "{\"name\":\"" name "\",\"description\":\"x\",\"config\":{\"method\":\"" method   \
    "\",\"url\":\"https://api.example.com/" url "\"" body ",\"parameters\":"          \
    parameters "}}"

#define ORDER  TOOL("order_status", "GET", "orders/{{args.order_number}}", "",        \
    "{\"type\":\"object\",\"properties\":{\"order_number\":{\"type\":\"string\","     \
    "\"description\":\"As on the receipt\"}},\"required\":[\"order_number\"],"        \
    "\"additionalProperties\":false}")

#define BOOK  TOOL("book", "POST", "visits?branch={{args.branch}}",                   \
    ",\"body\":{\"note\":\"{{args.note}}\",\"items\":\"{{args.items}}\"}",            \
    "{\"type\":\"object\",\"properties\":{"                                           \
    "\"branch\":{\"type\":\"string\",\"enum\":[\"north\",\"south\",\"west\"]},"       \
    "\"day\":{\"type\":\"string\",\"pattern\":\"^[0-9]{4}-[0-9]{2}-[0-9]{2}$\"},"     \
    "\"people\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":20},"                 \
    "\"phone\":{\"type\":\"string\",\"minLength\":5,\"maxLength\":20},"               \
    "\"note\":{\"type\":\"string\",\"x-kagent-format\":\"text\",\"maxLength\":500},"  \
    "\"items\":{\"type\":\"array\",\"maxItems\":10,\"items\":{\"type\":\"object\","   \
    "\"properties\":{\"sku\":{\"type\":\"string\"},\"count\":{\"type\":\"integer\"}},"\
    "\"required\":[\"sku\"],\"additionalProperties\":false}}},"                       \
    "\"required\":[\"branch\",\"day\",\"people\"],\"additionalProperties\":false}")

static const bench_case_t  bench_cases[] = {
    { "order_status, Arabic digits", ORDER,
      "{\"order_number\":\"\xd9\xa8\xd9\xa8\xd9\xa1\xd9\xa2\"}", NULL },
    { "six arguments, one a list", BOOK,
      "{\"branch\":\"north\",\"day\":\"2026-12-03\",\"people\":4,\"phone\":\"+966 50 123 4567\","
      "\"note\":\"A table by the window, and one of us eats no nuts.\","
      "\"items\":[{\"sku\":\"menu-1\",\"count\":2},{\"sku\":\"menu-2\",\"count\":2}]}", NULL },
    { "refused: arguments", BOOK,
      "{\"branch\":\"east\",\"day\":\"tomorrow\",\"people\":\"4\"}", "invalid_arguments" },
    { "refused: the arguments are cut", ORDER, "{\"order_number\":\"88", "invalid_arguments" },
    { "refused: outside of hours", ORDER, "{\"order_number\":\"8812\"}",
      "outside_business_hours" }
};


/* A zone file without a transition, with a rule that has saving time. */
static const char  bench_zone[] =
    "TZif2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\4"
    "\0\0\0\0\0\0CET\0"
    "TZif2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\4"
    "\0\0\0\0\0\0CET\0\nCET-1CEST,M3.5.0,M10.5.0/3\n";

typedef struct {
    tg_str_t        arguments;
    tg_template_t  *template;
    tg_schema_t    *schema;
    tg_hours_t     *hours;
    const char     *done[DONE_CALLS];
    size_t          done_len[DONE_CALLS];
} bench_call_t;


static json_t *
bench_json(const char *text)
{
    json_t           *value;
    tg_json_error_t   error;

    value = tg_json_load(tg_str_of(text), &error);

    if (value == NULL) {
        fprintf(stderr, "%s: %s\n", text, error.reason);
        exit(1);
    }

    return value;
}


static void
bench_prepare(bench_call_t *call, const bench_case_t *c, const tg_zones_t *zones)
{
    size_t                i;
    json_t               *tool, *hours;
    tg_hours_error_t      hours_error;
    tg_schema_errors_t    errors;
    tg_template_error_t   error;

    tool = bench_json(c->tool);
    hours = bench_json(c->code != NULL && strcmp(c->code, "outside_business_hours") == 0
        ? "{\"timezone\":\"Europe/Berlin\",\"days\":{}}"
        : "{\"timezone\":\"Europe/Berlin\",\"days\":{\"sun\":[[\"00:00\",\"24:00\"]],"
          "\"mon\":[[\"00:00\",\"24:00\"]],\"tue\":[[\"00:00\",\"24:00\"]],"
          "\"wed\":[[\"00:00\",\"24:00\"]],\"thu\":[[\"00:00\",\"24:00\"]],"
          "\"fri\":[[\"00:00\",\"24:00\"]],\"sat\":[[\"00:00\",\"24:00\"]]},"
          "\"closed_dates\":[\"2026-12-25\"]}");

    call->arguments = tg_str_of(c->arguments);
    call->template = tg_template_compile(tool, NULL, &error);

    if (call->template == NULL) {
        fprintf(stderr, "%s: %s at %s\n", c->name, error.reason, error.pointer);
        exit(1);
    }

    call->schema = tg_schema_compile(tg_template_parameters(call->template),
                                     TG_SCHEMA_2020_12, &errors);
    call->hours = tg_hours_parse(hours, zones, &hours_error);

    if (call->schema == NULL || call->hours == NULL) {
        fprintf(stderr, "%s: no schema or no hours\n", c->name);
        exit(1);
    }

    for (i = 0; i < DONE_CALLS; i++) {
        call->done[i] = "{\"order_number\":\"8811\"}";
        call->done_len[i] = strlen(call->done[i]);
    }

    json_decref(tool);
    json_decref(hours);
}


/* The facts of check 2, and the canonical form when it has one. */
static json_t *
bench_arguments(bench_call_t *call, tg_policy_facts_t *facts, tg_buf_t *text,
    tg_buf_t *canonical)
{
    char                 pointer[TG_SCHEMA_POINTER_MAX];
    json_t              *args;
    const char          *reason;
    tg_json_error_t      error;
    tg_schema_errors_t   errors;

    args = tg_json_load(call->arguments, &error);

    if (args == NULL) {
        facts->arguments_guidance = tg_str_of(error.reason);
        return NULL;
    }

    if (tg_template_fold_digits(args) != TG_OK) {
        exit(1);
    }

    if (!tg_schema_validate(call->schema, args, &errors)) {
        tg_schema_errors_text(&errors, text);
        facts->arguments_guidance = tg_buf_get(text);
        return args;
    }

    reason = tg_template_check_formats(call->template, args, pointer, sizeof(pointer));

    if (reason != NULL) {
        tg_buf_printf(text, "%s: %s", pointer, reason);
        facts->arguments_guidance = tg_buf_get(text);
        return args;
    }

    facts->arguments_valid = (tg_json_canonical(args, canonical) == TG_OK);

    return args;
}


/* Everything, once; the code of a refusal or NULL. */
static const char *
bench_check(bench_call_t *call)
{
    size_t                i;
    json_t               *args;
    tg_buf_t              text, canonical, told;
    tg_policy_facts_t     facts;
    tg_policy_verdict_t   verdict;

    memset(&facts, 0, sizeof(facts));
    tg_buf_init(&text, TEXT_MAX);
    tg_buf_init(&canonical, CANONICAL_MAX);
    tg_buf_init(&told, TEXT_MAX * 4);

    args = bench_arguments(call, &facts, &text, &canonical);

    for (i = 0; i < DONE_CALLS && facts.arguments_valid; i++) {
        facts.already_done |= canonical.len == call->done_len[i]
                              && memcmp(canonical.data, call->done[i], canonical.len) == 0;
    }

    facts.in_tool_set = true;
    facts.tools_enabled = true;
    facts.tool_enabled = true;
    facts.effect = tg_template_effect(call->template);
    facts.hours_only = true;
    facts.within_hours = tg_hours_open(call->hours, NOW);
    facts.life = TG_RUN_LIVE;
    facts.limit = TG_LIMIT_UNKNOWN;
    facts.round = 1;
    facts.max_rounds = 3;

    verdict = tg_policy_check(&facts);

    if (verdict.ask_limit) {
        /* what the store says is not measured here */
        facts.limit = TG_LIMIT_PASSED;
        verdict = tg_policy_check(&facts);
    }

    if (!verdict.allowed) {
        tg_policy_refusal(&facts, &verdict, &told);
    }

    json_decref(args);
    tg_buf_free(&text);
    tg_buf_free(&canonical);
    tg_buf_free(&told);

    return verdict.code;
}


static double
bench_measure(bench_call_t *call)
{
    size_t  i, n, round;
    double  begin, spent, rounds[ROUNDS];

    n = 1;

    /* as many as make a round long enough */
    do {
        n *= 2;
        begin = measure_clock_us(CLOCK_PROCESS_CPUTIME_ID);

        for (i = 0; i < n; i++) {
            (void) bench_check(call);
        }

        spent = measure_clock_us(CLOCK_PROCESS_CPUTIME_ID) - begin;

    } while (spent < BATCH_US);

    for (round = 0; round < ROUNDS; round++) {
        begin = measure_clock_us(CLOCK_PROCESS_CPUTIME_ID);

        for (i = 0; i < n; i++) {
            (void) bench_check(call);
        }

        rounds[round] = (measure_clock_us(CLOCK_PROCESS_CPUTIME_ID) - begin) / (double) n;
    }

    return measure_share(rounds, ROUNDS, 0.5);
}


int
main(void)
{
    bool           held;
    size_t         i;
    const char    *code;
    tg_zones_t    *zones;
    bench_call_t   call;

    zones = tg_zones_create(NOW);

    if (zones == NULL
        || tg_zones_add(zones, tg_str("Europe/Berlin"),
                        (tg_str_t) { sizeof(bench_zone) - 1, bench_zone }) != TG_OK)
    {
        fprintf(stderr, "the zone is not taken\n");
        return 1;
    }

    held = true;
    printf("the whole check of one call without the store, CPU, median of %d rounds\n", ROUNDS);

    for (i = 0; i < sizeof(bench_cases) / sizeof(bench_cases[0]); i++) {
        bench_prepare(&call, &bench_cases[i], zones);
        code = bench_check(&call);

        if (code != bench_cases[i].code
            && (code == NULL || bench_cases[i].code == NULL
                || strcmp(code, bench_cases[i].code) != 0))
        {
            fprintf(stderr, "%s: the verdict is %s\n", bench_cases[i].name,
                    code == NULL ? "allowed" : code);
            return 1;
        }

        held &= measure_bar(bench_cases[i].name, bench_measure(&call), BAR_US, " us");

        tg_template_free(call.template);
        tg_schema_free(call.schema);
        tg_hours_free(call.hours);
    }

    tg_zones_free(zones);

    return held ? 0 : 1;
}
