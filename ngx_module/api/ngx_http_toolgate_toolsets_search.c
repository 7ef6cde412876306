/*
 * POST /v1/toolsets/search: tools by words, the built-in ones of a profile and the
 * project's HTTP tools. What it finds it does not run.
 */

#include "ngx_http_toolgate_toolsets.h"
#include "ngx_http_toolgate_registry.h"
#include "ngx_http_toolgate_run.h"


#define NGX_HTTP_TOOLGATE_SEARCH_BODY_MAX  (64 * 1024)
#define NGX_HTTP_TOOLGATE_NAMES_MAX        (64 * 1024)  /* of one tool's parameters */

typedef struct {
    tg_str_t      query;
    tg_str_t      profile;
    size_t        max;
    ngx_uint_t    disabled;      /* those, too */
    tg_toolset_t  set;
} ngx_http_toolgate_search_t;


static void ngx_http_toolgate_search_body(ngx_http_request_t *r,
    ngx_http_toolgate_body_t *body);
static ngx_int_t ngx_http_toolgate_search_read(ngx_http_request_t *r, json_t *fields,
    ngx_http_toolgate_search_t *search);
static ngx_int_t ngx_http_toolgate_search_reply(ngx_http_request_t *r,
    ngx_http_toolgate_project_t *project, ngx_http_toolgate_search_t *search);
static ngx_int_t ngx_http_toolgate_search_external(
    ngx_http_toolgate_project_t *project, ngx_array_t *list);
static ngx_int_t ngx_http_toolgate_search_candidate(ngx_http_request_t *r,
    ngx_http_toolgate_listed_t *listed, tg_toolset_candidate_t *candidate);
static void ngx_http_toolgate_search_write(ngx_http_request_t *r,
    ngx_http_toolgate_search_t *search, ngx_http_toolgate_listed_t *listed,
    tg_toolset_found_t *found, size_t n, tg_buf_t *out);


ngx_int_t
ngx_http_toolgate_toolsets_search(ngx_http_request_t *r, ngx_http_toolgate_key_t *key,
    ngx_str_t *rest)
{
    return ngx_http_toolgate_body_read(r, key, ngx_http_toolgate_search_body, NULL);
}


static void
ngx_http_toolgate_search_body(ngx_http_request_t *r, ngx_http_toolgate_body_t *body)
{
    json_t                      *fields;
    ngx_int_t                    rc;
    tg_json_error_t              error;
    ngx_http_toolgate_search_t   search;

    if (body->len > NGX_HTTP_TOOLGATE_SEARCH_BODY_MAX) {
        ngx_http_finalize_request(r, ngx_http_toolgate_reply_error(r,
                                         "request_too_large", NULL, NULL));
        return;
    }

    fields = tg_json_load((tg_str_t) { body->len, (char *) body->data }, &error);

    if (fields == NULL) {
        rc = ngx_http_toolgate_reply_error(r, "invalid_json", error.reason, NULL);

    } else if (!json_is_object(fields)) {
        rc = ngx_http_toolgate_reply_error(r, "invalid_type",
                                           "The body is a JSON object.", NULL);

    } else {
        rc = ngx_http_toolgate_search_read(r, fields, &search);

        if (rc == NGX_DECLINED) {
            rc = ngx_http_toolgate_search_reply(r, body->key->project, &search);
        }
    }

    json_decref(fields);
    ngx_http_finalize_request(r, rc);
}


/* NGX_DECLINED: it is known what is searched. */
static ngx_int_t
ngx_http_toolgate_search_read(ngx_http_request_t *r, json_t *fields,
    ngx_http_toolgate_search_t *search)
{
    size_t   i;
    json_t  *value;

    static const struct {
        const char  *name;
        json_type    type;
        const char  *message;
    } known[] = {
        { "query", JSON_STRING, "\"query\" is a string." },
        { "profile", JSON_STRING, "\"profile\" is a string." },
        { "max_results", JSON_INTEGER, "\"max_results\" is a number from 1 to 50." },
        { "include_disabled", JSON_TRUE, "\"include_disabled\" is true or false." }
    };

    for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        value = json_object_get(fields, known[i].name);

        if (value && !json_is_null(value) && json_typeof(value) != known[i].type
            && !(known[i].type == JSON_TRUE && json_is_false(value)))
        {
            return ngx_http_toolgate_reply_error(r, "invalid_type", known[i].message,
                                                 known[i].name);
        }
    }

    search->query = tg_json_get_string(fields, "query");
    search->profile = tg_json_get_string(fields, "profile");
    search->disabled = json_is_true(json_object_get(fields, "include_disabled"));
    search->set = 0;

    value = json_object_get(fields, "max_results");
    search->max = json_is_integer(value)
                  ? (size_t) ngx_min(ngx_max(json_integer_value(value), 1),
                                     TG_TOOLSET_RESULTS_MAX)
                  : TG_TOOLSET_RESULTS;

    if (search->profile.len == 0) {
        search->profile = tg_str("coding");
    }

    if (!tg_toolset_profile(search->profile, &search->set)) {
        return ngx_http_toolgate_reply_error(r, "invalid_value",
                                             "A profile is \"default\" or \"coding\".",
                                             "profile");
    }

    if (search->query.len == 0) {
        return ngx_http_toolgate_reply(r, NGX_HTTP_OK, tg_str(
            "{\"ok\":false,\"error_type\":\"query_required\","
            "\"error_message\":\"query is required\"}"));
    }

    return NGX_DECLINED;
}


static ngx_int_t
ngx_http_toolgate_search_reply(ngx_http_request_t *r,
    ngx_http_toolgate_project_t *project, ngx_http_toolgate_search_t *search)
{
    size_t                          n, count;
    tg_buf_t                        out;
    ngx_int_t                       rc;
    ngx_uint_t                      i;
    ngx_array_t                     list;
    tg_toolset_found_t              found[TG_TOOLSET_RESULTS_MAX];
    tg_toolset_candidate_t         *candidates;
    ngx_http_toolgate_listed_t     *listed;
    ngx_http_toolgate_main_conf_t  *tmcf;

    tmcf = ngx_http_get_module_main_conf(r, ngx_http_toolgate_module);

    if (ngx_array_init(&list, r->pool, 32, sizeof(ngx_http_toolgate_listed_t)) != NGX_OK
        || ngx_http_toolgate_toolset_builtins(tmcf, search->set, &list) != NGX_OK
        || ngx_http_toolgate_search_external(project, &list) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    listed = list.elts;
    candidates = ngx_pcalloc(r->pool, (list.nelts + 1) * sizeof(*candidates));

    if (candidates == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    count = 0;

    for (i = 0; i < list.nelts; i++) {

        if (!search->disabled && !ngx_http_toolgate_listed_enabled(tmcf, &listed[i])) {
            continue;
        }

        if (ngx_http_toolgate_search_candidate(r, &listed[i], &candidates[count])
            != NGX_OK)
        {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        listed[count++] = listed[i];
    }

    n = tg_toolset_search(search->query, candidates, count, found, search->max);

    tg_buf_init(&out, NGX_HTTP_TOOLGATE_REPLY_MAX);
    ngx_http_toolgate_search_write(r, search, listed, found, n, &out);

    rc = out.error == TG_OK
         ? ngx_http_toolgate_reply(r, NGX_HTTP_OK, tg_buf_get(&out))
         : ngx_http_toolgate_reply_error(r, "internal_error", NULL, NULL);

    tg_buf_free(&out);

    return rc;
}


static ngx_int_t
ngx_http_toolgate_search_add(ngx_array_t *list, json_t *doc)
{
    ngx_http_toolgate_listed_t  *listed;

    listed = ngx_array_push(list);

    if (listed == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(listed, sizeof(ngx_http_toolgate_listed_t));
    listed->doc = doc;

    return NGX_OK;
}


/* The project's own, of files and of the store. */
static ngx_int_t
ngx_http_toolgate_search_external(ngx_http_toolgate_project_t *project,
    ngx_array_t *list)
{
    ngx_uint_t                    i;
    ngx_queue_t                  *stored, *q;
    ngx_http_toolgate_tool_t    **tool;
    ngx_http_toolgate_object_t   *object;

    tool = project->tools.elts;

    for (i = 0; i < project->tools.nelts; i++) {
        if (ngx_http_toolgate_search_add(list, tool[i]->doc) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    stored = ngx_http_toolgate_registry_list(project, NGX_HTTP_TOOLGATE_KIND_TOOL);

    for (q = stored ? ngx_queue_head(stored) : NULL; q && q != stored;
         q = ngx_queue_next(q))
    {
        object = ngx_queue_data(q, ngx_http_toolgate_object_t, queue);

        if (ngx_http_toolgate_search_add(list, json_object_get(object->doc, "tool"))
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_toolgate_search_candidate(ngx_http_request_t *r,
    ngx_http_toolgate_listed_t *listed, tg_toolset_candidate_t *candidate)
{
    json_t      *value;
    tg_buf_t     names;
    ngx_str_t    copy;
    const char  *key;

    candidate->name = ngx_http_toolgate_listed_name(listed);
    candidate->group = listed->entry ? tg_str_of(listed->entry->group) : tg_str("http");
    candidate->description = ngx_http_toolgate_listed_description(listed);

    tg_buf_init(&names, NGX_HTTP_TOOLGATE_NAMES_MAX);

    json_object_foreach(json_object_get(ngx_http_toolgate_listed_parameters(listed),
                                        "properties"), key, value)
    {
        tg_buf_cstr(&names, key);
        tg_buf_char(&names, ' ');
    }

    copy = ngx_http_toolgate_copy(r->pool, tg_buf_get(&names));
    candidate->parameters = (tg_str_t) { copy.len, (char *) copy.data };
    tg_buf_free(&names);

    return copy.data || copy.len == 0 ? NGX_OK : NGX_ERROR;
}


/* Frees the reasons. */
static void
ngx_http_toolgate_search_write(ngx_http_request_t *r,
    ngx_http_toolgate_search_t *search, ngx_http_toolgate_listed_t *listed,
    tg_toolset_found_t *found, size_t n, tg_buf_t *out)
{
    size_t                       i, named;
    json_t                      *properties;
    ngx_http_toolgate_listed_t  *one;

    tg_buf_cstr(out, "{\"ok\":true,\"query\":");
    tg_buf_json_string(out, search->query);
    tg_buf_cstr(out, ",\"profile\":");
    tg_buf_json_string(out, search->profile);
    tg_buf_cstr(out, ",\"results\":[");

    for (i = 0; i < n; i++) {
        one = &listed[found[i].candidate];
        properties = json_object_get(ngx_http_toolgate_listed_parameters(one),
                                     "properties");

        tg_buf_cstr(out, i ? ",{" : "{");
        ngx_http_toolgate_listed_write(r, one, out);
        tg_buf_cstr(out, ",\"args\":");

        if (properties == NULL || tg_json_dump(properties, out) != TG_OK) {
            tg_buf_cstr(out, "{}");
        }

        tg_buf_printf(out, ",\"score\":%.1f,\"reason\":", found[i].score);
        tg_buf_json_string(out, tg_buf_get(&found[i].reason));
        tg_buf_char(out, '}');
        tg_buf_free(&found[i].reason);
    }

    tg_buf_cstr(out, "],\"deferred_tool_names\":[");
    named = 0;

    for (i = 0; i < n; i++) {
        one = &listed[found[i].candidate];

        if (one->builtin) {
            tg_buf_cstr(out, named++ ? "," : "");
            tg_buf_json_string(out, ngx_http_toolgate_listed_name(one));
        }
    }

    tg_buf_cstr(out, "]}");
}
