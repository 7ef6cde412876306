/*
 * The directive "toolgate_limit": everything about it that could fail later is
 * refused here, with a sentence.
 */

#include "ngx_http_toolgate_limit.h"

#include "tg_rate.h"


#define NGX_HTTP_TOOLGATE_LIMIT_WINDOW_MAX  NGX_TOOLGATE_COUNTER_WINDOW_MAX_S


typedef struct {
    ngx_str_t                        rate;       /* "n/unit" */
    ngx_str_t                        key;
    ngx_str_t                        burst;
    ngx_uint_t                       dry_run;
} ngx_http_toolgate_limit_args_t;


static char *ngx_http_toolgate_limit_args(ngx_conf_t *cf,
    ngx_http_toolgate_limit_args_t *args);
static char *ngx_http_toolgate_limit_rate(ngx_conf_t *cf,
    ngx_http_toolgate_limit_args_t *args, ngx_http_toolgate_limit_conf_t *limit);
static ngx_uint_t ngx_http_toolgate_limit_unit(ngx_str_t *rate);
static ngx_uint_t ngx_http_toolgate_limit_twice(ngx_array_t *limits);


char *
ngx_http_toolgate_limit(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_toolgate_loc_conf_t  *tlcf = conf;

    char                              *rv;
    ngx_http_toolgate_limit_args_t     args;
    ngx_http_toolgate_limit_conf_t    *limit;
    ngx_http_toolgate_main_conf_t     *tmcf;
    ngx_http_compile_complex_value_t   ccv;

    static ngx_str_t  account = ngx_string("$toolgate_account");
    static ngx_str_t  braced = ngx_string("${toolgate_account}");

    rv = ngx_http_toolgate_limit_args(cf, &args);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    if (tlcf->limits == NULL) {
        tlcf->limits = ngx_array_create(cf->pool, 2,
                                        sizeof(ngx_http_toolgate_limit_conf_t));
        if (tlcf->limits == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    if (tlcf->limits->nelts == NGX_TOOLGATE_LIMITS_MAX) {
        return "has too many lines in one place: 8 at most";
    }

    limit = ngx_array_push(tlcf->limits);
    if (limit == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_memzero(limit, sizeof(ngx_http_toolgate_limit_conf_t));
    limit->text = args.key;
    limit->dry_run = args.dry_run ? 1 : 0;

    /* without an account a request is the project's own account's */

    limit->account = (args.key.len == account.len
                      && ngx_strncmp(args.key.data, account.data, account.len)
                         == 0)
                     || (args.key.len == braced.len
                         && ngx_strncmp(args.key.data, braced.data, braced.len)
                            == 0);

    rv = ngx_http_toolgate_limit_rate(cf, &args, limit);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    if (ngx_http_toolgate_limit_twice(tlcf->limits)) {
        return "is duplicate";
    }

    ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));
    ccv.cf = cf;
    ccv.value = &args.key;
    ccv.complex_value = &limit->key;

    if (ngx_http_compile_complex_value(&ccv) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    tmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_toolgate_module);

    if (tmcf->limit_line == 0) {
        tmcf->limit_file = cf->conf_file->file.name;
        tmcf->limit_line = cf->conf_file->line;
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_toolgate_limit_args(ngx_conf_t *cf, ngx_http_toolgate_limit_args_t *args)
{
    size_t       len;
    ngx_str_t   *value, *place;
    ngx_uint_t   i;

    ngx_memzero(args, sizeof(ngx_http_toolgate_limit_args_t));
    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {

        if (ngx_strcmp(value[i].data, "dry_run") == 0) {
            args->dry_run = 1;
            continue;
        }

        if (ngx_strncmp(value[i].data, "requests=", 9) == 0) {
            place = &args->rate;
            len = 9;

        } else if (ngx_strncmp(value[i].data, "key=", 4) == 0) {
            place = &args->key;
            len = 4;

        } else if (ngx_strncmp(value[i].data, "burst=", 6) == 0) {
            place = &args->burst;
            len = 6;

        } else if (ngx_strncmp(value[i].data, "tokens=", 7) == 0) {
            return "cannot count tokens yet: leave \"tokens=\" out and limit "
                   "\"requests=\"";

        } else {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "\"toolgate_limit\" has an unknown parameter "
                               "\"%V\"", &value[i]);
            return NGX_CONF_ERROR;
        }

        if (place->data) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "\"toolgate_limit\" has a parameter twice: \"%V\"",
                               &value[i]);
            return NGX_CONF_ERROR;
        }

        place->data = value[i].data + len;
        place->len = value[i].len - len;
    }

    if (args->rate.data == NULL) {
        return "needs requests=number/unit";
    }

    if (args->key.len == 0) {
        return "needs key= and what is counted, for example "
               "key=$toolgate_project";
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_toolgate_limit_rate(ngx_conf_t *cf, ngx_http_toolgate_limit_args_t *args,
    ngx_http_toolgate_limit_conf_t *limit)
{
    u_char      *p;
    uint64_t     window;
    ngx_int_t    n, burst;
    ngx_uint_t   unit;

    unit = ngx_http_toolgate_limit_unit(&args->rate);
    n = unit ? ngx_atoi(args->rate.data, args->rate.len - 2) : NGX_ERROR;

    if (n < 1 || n > TG_RATE_LIMIT_MAX) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"toolgate_limit\" has a wrong rate \"requests=%V\": "
                           "it is a number from 1 to %uD, \"/\" and s, m, h or d",
                           &args->rate, TG_RATE_LIMIT_MAX);
        return NGX_CONF_ERROR;
    }

    burst = args->burst.data ? ngx_atoi(args->burst.data, args->burst.len) : 0;

    if (burst == NGX_ERROR || burst > (ngx_int_t) TG_RATE_LIMIT_MAX - n) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"toolgate_limit\" has a wrong number \"burst=%V\"",
                           &args->burst);
        return NGX_CONF_ERROR;
    }

    /* at most 10^9 requests a day of 10^8 ms: no overflow */

    window = (uint64_t) unit * 1000 * (uint64_t) (n + burst) / (uint64_t) n;

    if (window > (uint64_t) NGX_HTTP_TOOLGATE_LIMIT_WINDOW_MAX * 1000) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"toolgate_limit\" has a burst that takes more than 31 "
                           "days to come back: \"burst=%V\"", &args->burst);
        return NGX_CONF_ERROR;
    }

    limit->limit = (uint32_t) (n + burst);
    limit->window = (ngx_msec_t) window;

    p = ngx_pnalloc(cf->pool, args->rate.len + 1 + NGX_INT_T_LEN);
    if (p == NULL) {
        return NGX_CONF_ERROR;
    }

    /* one spelling for each rate */

    limit->rate.data = p;
    p = ngx_sprintf(p, "%i/%c", n, args->rate.data[args->rate.len - 1]);

    if (burst) {
        p = ngx_sprintf(p, "+%i", burst);
    }

    limit->rate.len = p - limit->rate.data;

    return NGX_CONF_OK;
}


/* Seconds of the unit that ends "n/unit", 0 when there is none. */
static ngx_uint_t
ngx_http_toolgate_limit_unit(ngx_str_t *rate)
{
    if (rate->len < 3 || rate->data[rate->len - 2] != '/') {
        return 0;
    }

    switch (rate->data[rate->len - 1]) {

    case 's':
        return 1;

    case 'm':
        return 60;

    case 'h':
        return 60 * 60;

    case 'd':
        return 24 * 60 * 60;
    }

    return 0;
}


/* Whether the last one counts in the same place as another one. */
static ngx_uint_t
ngx_http_toolgate_limit_twice(ngx_array_t *limits)
{
    ngx_uint_t                       i;
    ngx_http_toolgate_limit_conf_t  *limit, *last;

    limit = limits->elts;
    last = &limit[limits->nelts - 1];

    for (i = 0; i < limits->nelts - 1; i++) {
        if (limit[i].rate.len == last->rate.len
            && limit[i].text.len == last->text.len
            && ngx_memcmp(limit[i].rate.data, last->rate.data, last->rate.len)
               == 0
            && ngx_memcmp(limit[i].text.data, last->text.data, last->text.len)
               == 0)
        {
            return 1;
        }
    }

    return 0;
}


ngx_int_t
ngx_http_toolgate_limits_finish(ngx_conf_t *cf,
    ngx_http_toolgate_main_conf_t *tmcf)
{
    if (tmcf->limit_line == 0
        || tmcf->zone
        || (tmcf->redis && tmcf->redis->on_failure != NGX_TOOLGATE_STORE_LOCAL))
    {
        return NGX_OK;
    }

    ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                  "\"toolgate_limit\" needs \"toolgate_zone\" to count in while "
                  "there is no Redis in %V:%ui",
                  &tmcf->limit_file, tmcf->limit_line);

    return NGX_ERROR;
}
