/*
 * The rules of approvals: one table of tools, one of modes, and the texts that come
 * of them. Whoever keeps approvals is the store's business.
 */

#include "tg_approval.h"

#include "tg_clean.h"


#define TG_APPROVAL_BINDING_MAX  (4 * 1024 * 1024)     /* bytes of a binding's text */


/* Tools that are not built yet stand here, too: an agent may name them. */
static const tg_approval_tool_t  tg_approval_tools[] = {
    { "list_skills", TG_RISK_LOW, NULL },
    { "search_skills", TG_RISK_LOW, NULL },
    { "load_skill", TG_RISK_LOW, "skill_cache_write" },
    { "execute_skills", TG_RISK_HIGH, "isolated_runtime_execution" },
    { "workspace_status", TG_RISK_LOW, NULL },
    { "list_workspace_files", TG_RISK_LOW, NULL },
    { "read_workspace_file", TG_RISK_LOW, NULL },
    { "write_workspace_file", TG_RISK_MEDIUM, "workspace_write" },
    { "write_workspace_files", TG_RISK_MEDIUM, "workspace_write" },
    { "edit_workspace_file", TG_RISK_MEDIUM, "workspace_edit" },
    { "multi_edit_workspace_file", TG_RISK_MEDIUM, "workspace_edit" },
    { "lint_workspace_file", TG_RISK_LOW, NULL },
    { "search_workspace_files", TG_RISK_LOW, NULL },
    { "delete_workspace_file", TG_RISK_HIGH, "workspace_delete" },
    { "component_status", TG_RISK_LOW, NULL },
    { "sandbox_status", TG_RISK_LOW, NULL },
    { "run_command", TG_RISK_HIGH, "sandbox_command_execution" },
    { "run_code", TG_RISK_HIGH, "sandbox_code_execution" },
    { "web_fetch", TG_RISK_LOW, NULL },
    { "web_search", TG_RISK_LOW, NULL },
    { "tool_dispatcher", TG_RISK_LOW, NULL },
    { "agentengine_tool_dispatcher", TG_RISK_LOW, NULL },
    { "tool_search", TG_RISK_LOW, NULL }
};

#define TG_APPROVAL_TOOL_COUNT                                                \
    (sizeof(tg_approval_tools) / sizeof(tg_approval_tools[0]))

static const struct {
    const char          *word;
    tg_approval_mode_e   mode;
} tg_approval_modes[] = {
    { "off", TG_APPROVAL_OFF },
    { "full", TG_APPROVAL_OFF },
    { "strict", TG_APPROVAL_STRICT },
    { "risk", TG_APPROVAL_STRICT },
    { "ask", TG_APPROVAL_STRICT }
};


bool
tg_approval_mode_parse(tg_str_t text, tg_approval_mode_e *mode)
{
    size_t  i;

    for (i = 0; i < sizeof(tg_approval_modes) / sizeof(tg_approval_modes[0]); i++) {
        if (tg_str_eq(text, tg_str_of(tg_approval_modes[i].word))) {
            *mode = tg_approval_modes[i].mode;
            return true;
        }
    }

    return false;
}


const char *
tg_risk_name(tg_risk_e risk)
{
    switch (risk) {

    case TG_RISK_LOW:
        return "low";

    case TG_RISK_MEDIUM:
        return "medium";

    case TG_RISK_HIGH:
        return "high";

    case TG_RISK_CRITICAL:
        break;
    }

    return "critical";
}


const tg_approval_tool_t *
tg_approval_tool(tg_str_t name)
{
    size_t  i;

    for (i = 0; i < TG_APPROVAL_TOOL_COUNT; i++) {
        if (tg_str_eq(name, tg_str_of(tg_approval_tools[i].name))) {
            return &tg_approval_tools[i];
        }
    }

    return NULL;
}


tg_risk_e
tg_approval_risk(tg_effect_e effect)
{
    return effect == TG_EFFECT_ACTION ? TG_RISK_MEDIUM : TG_RISK_LOW;
}


bool
tg_approval_gated(tg_approval_mode_e mode, tg_risk_e risk, bool named)
{
    return named || (mode == TG_APPROVAL_STRICT && risk != TG_RISK_LOW);
}


tg_rc_e
tg_approval_bind(const tg_approval_binding_t *binding,
    char hex[TG_JSON_SHA256_HEX_LEN + 1])
{
    size_t    i;
    tg_buf_t  text;
    tg_rc_e   rc;

    const tg_str_t  members[] = {
        binding->project, binding->account, binding->session, binding->tool,
        binding->arguments
    };

    tg_buf_init(&text, TG_APPROVAL_BINDING_MAX);

    for (i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        tg_buf_printf(&text, "%zu:", members[i].len);
        tg_buf_str(&text, members[i]);
    }

    rc = text.error;

    if (rc == TG_OK) {
        tg_json_sha256_hex(tg_buf_get(&text), hex);
    }

    tg_buf_free(&text);

    return rc;
}


void
tg_approval_strip(json_t *arguments)
{
    (void) json_object_del(arguments, "approval");
}


static bool
tg_approval_fault(tg_approval_fault_t *fault, const char *code, const char *param,
    const char *message)
{
    fault->code = code;
    fault->param = param;
    fault->message = message;

    return false;
}


bool
tg_approval_decide(const json_t *body, tg_approval_decision_t *decision,
    tg_approval_fault_t *fault)
{
    json_t      *value;
    const char  *key;

    if (!json_is_object(body)) {
        return tg_approval_fault(fault, "invalid_type", NULL,
                                 "The body is a JSON object.");
    }

    json_object_foreach((json_t *) body, key, value) {
        if (strcmp(key, "approved") != 0 && strcmp(key, "reason") != 0
            && strcmp(key, "account_id") != 0)
        {
            return tg_approval_fault(fault, "unknown_field", key, NULL);
        }
    }

    value = json_object_get(body, "approved");

    if (value == NULL) {
        return tg_approval_fault(fault, "missing_parameter", "approved", NULL);
    }

    if (!json_is_boolean(value)) {
        return tg_approval_fault(fault, "invalid_type", "approved",
                                 "\"approved\" is true or false.");
    }

    decision->approved = json_is_true(value);
    decision->reason = tg_json_get_string(body, "reason");
    value = json_object_get(body, "reason");

    if (value && !json_is_null(value) && !json_is_string(value)) {
        return tg_approval_fault(fault, "invalid_type", "reason",
                                 "\"reason\" is a string.");
    }

    if (tg_clean_length(decision->reason) > TG_APPROVAL_REASON_CHARS) {
        return tg_approval_fault(fault, "invalid_value", "reason",
                                 "\"reason\" has at most 1000 characters.");
    }

    return true;
}


tg_rc_e
tg_approval_describe(const tg_approval_call_t *call, tg_buf_t *out)
{
    char  hex[TG_JSON_SHA256_HEX_LEN + 1];

    tg_json_sha256_hex(call->arguments, hex);

    tg_buf_cstr(out, "\"call_id\":");
    tg_buf_json_string(out, call->call_id);
    tg_buf_cstr(out, ",\"tool_name\":");
    tg_buf_json_string(out, call->tool);
    tg_buf_cstr(out, ",\"arguments\":");
    tg_buf_str(out, call->arguments);
    tg_buf_cstr(out, ",\"risk_level\":\"");
    tg_buf_cstr(out, tg_risk_name(call->risk));
    tg_buf_cstr(out, "\",\"side_effects\":[");

    if (call->side_effect) {
        tg_buf_json_string(out, tg_str_of(call->side_effect));
    }

    return tg_buf_printf(out, "],\"arguments_sha256\":\"%s\"", hex);
}


tg_rc_e
tg_approval_rejection(tg_str_t reason, tg_buf_t *out)
{
    tg_buf_cstr(out, "{\"ok\":false,\"error\":{\"code\":\"approval_rejected\","
                     "\"guidance\":");
    tg_buf_json_string(out, tg_str_of(tg_policy_guidance("approval_rejected")));

    if (reason.len) {
        tg_buf_cstr(out, ",\"reason\":");
        tg_buf_json_string(out, reason);
    }

    return tg_buf_cstr(out, "}}");
}
