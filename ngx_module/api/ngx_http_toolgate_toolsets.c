/*
 * GET /v1/toolsets: the built-in tools that a few words stand for, with what may go
 * wrong with them and what they take. It runs none of them.
 */

#include "ngx_http_toolgate_toolsets.h"


static ngx_int_t ngx_http_toolgate_toolsets_wanted(ngx_http_request_t *r,
    tg_toolset_t *set);
static void ngx_http_toolgate_toolsets_descriptor(ngx_http_request_t *r,
    ngx_http_toolgate_listed_t *listed, tg_buf_t *out);
static void ngx_http_toolgate_listed_word(tg_buf_t *out, const char *name,
    const char *word);


ngx_int_t
ngx_http_toolgate_toolsets(ngx_http_request_t *r, ngx_http_toolgate_key_t *key,
    ngx_str_t *rest)
{
    tg_buf_t                        out;
    ngx_int_t                       rc;
    ngx_uint_t                      i;
    ngx_array_t                     list;
    tg_toolset_t                    set;
    ngx_http_toolgate_listed_t     *listed;
    ngx_http_toolgate_main_conf_t  *tmcf;

    rc = ngx_http_toolgate_toolsets_wanted(r, &set);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    tmcf = ngx_http_get_module_main_conf(r, ngx_http_toolgate_module);

    if (ngx_array_init(&list, r->pool, 16, sizeof(ngx_http_toolgate_listed_t)) != NGX_OK
        || ngx_http_toolgate_toolset_builtins(tmcf, set, &list) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    tg_buf_init(&out, NGX_HTTP_TOOLGATE_REPLY_MAX);
    tg_buf_cstr(&out, "{\"ok\":true,\"tools\":[");
    listed = list.elts;

    for (i = 0; i < list.nelts; i++) {
        ngx_http_toolgate_toolsets_descriptor(r, &listed[i], &out);
        tg_buf_cstr(&out, i + 1 < list.nelts ? "," : "");
    }

    tg_buf_printf(&out, "],\"tool_count\":%u}", (unsigned) list.nelts);

    rc = out.error == TG_OK
         ? ngx_http_toolgate_reply(r, NGX_HTTP_OK, tg_buf_get(&out))
         : NGX_HTTP_INTERNAL_SERVER_ERROR;

    tg_buf_free(&out);

    return rc;
}


/* NGX_DECLINED: it is known. */
static ngx_int_t
ngx_http_toolgate_toolsets_wanted(ngx_http_request_t *r, tg_toolset_t *set)
{
    tg_str_t   wrong, name;
    ngx_str_t  include, profile;

    *set = 0;
    (void) ngx_http_toolgate_query_argument(r, "include", &include);
    (void) ngx_http_toolgate_query_argument(r, "profile", &profile);

    if (!tg_toolset_include((tg_str_t) { include.len, (char *) include.data }, set,
                            &wrong))
    {
        return ngx_http_toolgate_reply_error(r, "invalid_value",
                                             "\"include\" has groups, \"focused\", "
                                             "\"core\" and names of tools.",
                                             "include");
    }

    if (*set) {
        return NGX_DECLINED;
    }

    name = profile.len ? (tg_str_t) { profile.len, (char *) profile.data }
                       : tg_str("default");

    if (!tg_toolset_profile(name, set)) {
        return ngx_http_toolgate_reply_error(r, "invalid_value",
                                             "A profile is \"default\" or \"coding\".",
                                             "profile");
    }

    return NGX_DECLINED;
}


ngx_int_t
ngx_http_toolgate_toolset_builtins(ngx_http_toolgate_main_conf_t *tmcf,
    tg_toolset_t set, ngx_array_t *list)
{
    size_t                        n;
    ngx_uint_t                    i;
    const tg_toolset_tool_t      *entry;
    ngx_http_toolgate_tool_t     *tool;
    ngx_http_toolgate_listed_t   *listed;

    tool = tmcf->objects.helper_tools.elts;

    for (n = 0; (entry = tg_toolset_at(n)) != NULL; n++) {

        for (i = 0; tg_toolset_has(set, n) && i < tmcf->objects.helper_tools.nelts; i++) {

            if (ngx_strcmp(tool[i].name.data, entry->name) != 0) {
                continue;
            }

            listed = ngx_array_push(list);

            if (listed == NULL) {
                return NGX_ERROR;
            }

            ngx_memzero(listed, sizeof(ngx_http_toolgate_listed_t));
            listed->builtin = &tool[i];
            listed->entry = entry;
        }
    }

    return NGX_OK;
}


static void
ngx_http_toolgate_toolsets_descriptor(ngx_http_request_t *r,
    ngx_http_toolgate_listed_t *listed, tg_buf_t *out)
{
    tg_buf_char(out, '{');
    ngx_http_toolgate_listed_write(r, listed, out);
    tg_buf_cstr(out, ",\"input_schema\":");
    (void) tg_json_dump(ngx_http_toolgate_listed_parameters(listed), out);
    tg_buf_char(out, '}');
}


tg_str_t
ngx_http_toolgate_listed_name(ngx_http_toolgate_listed_t *listed)
{
    return listed->builtin ? tg_str_of(listed->entry->name)
                           : tg_json_get_string(listed->doc, "name");
}


tg_str_t
ngx_http_toolgate_listed_description(ngx_http_toolgate_listed_t *listed)
{
    return listed->builtin
           ? (tg_str_t) { listed->builtin->description.len,
                          (char *) listed->builtin->description.data }
           : tg_json_get_string(listed->doc, "description");
}


json_t *
ngx_http_toolgate_listed_parameters(ngx_http_toolgate_listed_t *listed)
{
    return listed->builtin ? listed->builtin->parameters
                           : json_object_get(json_object_get(listed->doc, "config"),
                                             "parameters");
}


ngx_uint_t
ngx_http_toolgate_listed_enabled(ngx_http_toolgate_main_conf_t *tmcf,
    ngx_http_toolgate_listed_t *listed)
{
    return listed->builtin ? tmcf->helper != NULL
                           : !json_is_false(json_object_get(listed->doc, "enabled"));
}


void
ngx_http_toolgate_listed_write(ngx_http_request_t *r,
    ngx_http_toolgate_listed_t *listed, tg_buf_t *out)
{
    tg_str_t                        name;
    tg_risk_e                       risk;
    const char                     *effect;
    const tg_approval_tool_t       *rule;
    ngx_http_toolgate_loc_conf_t   *tlcf;
    ngx_http_toolgate_main_conf_t  *tmcf;

    tmcf = ngx_http_get_module_main_conf(r, ngx_http_toolgate_module);
    tlcf = ngx_http_get_module_loc_conf(r, ngx_http_toolgate_module);

    name = ngx_http_toolgate_listed_name(listed);
    rule = listed->builtin ? tg_approval_tool(name) : NULL;

    if (rule) {
        risk = rule->risk;
        effect = rule->side_effect;

    } else if (tg_str_eq(tg_json_get_string(listed->doc, "effect"), tg_str("action"))) {
        risk = TG_RISK_MEDIUM;
        effect = "external_action";

    } else {
        risk = TG_RISK_LOW;
        effect = NULL;
    }

    tg_buf_cstr(out, "\"name\":");
    tg_buf_json_string(out, name);
    tg_buf_printf(out, ",\"group\":\"%s\",\"description\":",
                  listed->entry ? listed->entry->group : "http");
    tg_buf_json_string(out, ngx_http_toolgate_listed_description(listed));
    tg_buf_printf(out, ",\"risk_level\":\"%s\",\"requires_approval\":%s,"
                       "\"side_effects\":[%s%s%s],\"enabled\":%s,\"execution\":\"%s\"",
                  tg_risk_name(risk),
                  tg_approval_gated((tg_approval_mode_e) tlcf->approval_mode, risk, false)
                  ? "true" : "false",
                  effect ? "\"" : "", effect ? effect : "", effect ? "\"" : "",
                  ngx_http_toolgate_listed_enabled(tmcf, listed) ? "true" : "false",
                  listed->builtin ? "builtin" : "external");

    ngx_http_toolgate_listed_word(out, "boundary", listed->entry ? listed->entry->boundary
                                                                 : "http_api");
    ngx_http_toolgate_listed_word(out, "compat_alias_for",
                                  listed->entry ? listed->entry->alias_for : NULL);
}


static void
ngx_http_toolgate_listed_word(tg_buf_t *out, const char *name, const char *word)
{
    if (word) {
        tg_buf_printf(out, ",\"%s\":\"%s\"", name, word);
    }
}
