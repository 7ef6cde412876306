/*
 * The table of HTTP API errors and the writer of the error body. Messages are for
 * the developer who calls the API: what is wrong and what to do next, never a
 * path, a secret or what an upstream said.
 */

#include "tg_error.h"


#define TG_ERROR_INVALID     "invalid_request_error"
#define TG_ERROR_AUTH        "authentication_error"
#define TG_ERROR_PERMISSION  "permission_error"
#define TG_ERROR_NOT_FOUND   "not_found_error"
#define TG_ERROR_CONFLICT    "conflict_error"
#define TG_ERROR_RATE        "rate_limit_error"
#define TG_ERROR_API         "api_error"


static const tg_error_t  tg_errors[] = {

    /* reading the request */
    { "invalid_json", 400, TG_ERROR_INVALID,
      "The body is not valid JSON. Send one JSON value in UTF-8 without duplicate "
      "keys." },
    { "missing_parameter", 400, TG_ERROR_INVALID,
      "A required parameter is missing. Add the one named in param." },
    { "invalid_type", 400, TG_ERROR_INVALID,
      "A parameter has the wrong JSON type. Change the one named in param." },
    { "invalid_value", 400, TG_ERROR_INVALID,
      "A parameter has a value that is not allowed. Change the one named in param." },
    { "unknown_variable", 400, TG_ERROR_INVALID,
      "The agent declares no such variable. Send only variables that the agent "
      "declares." },
    { "tool_name_conflict", 400, TG_ERROR_INVALID,
      "A tool of the request has the name of one of the agent's tools. Rename the "
      "request's tool." },
    { "unsupported_item", 400, TG_ERROR_INVALID,
      "An input item of this kind cannot be given to the model. Leave out the one named "
      "in param, or send its content as a message." },
    { "unsupported_tool", 400, TG_ERROR_INVALID,
      "A tool of this kind is not offered here. Send function tools, or grant the tool "
      "to an agent." },
    { "unsupported_media_type", 415, TG_ERROR_INVALID,
      "The body's content type is not supported. Send Content-Type: "
      "application/json." },
    { "request_too_large", 413, TG_ERROR_INVALID,
      "The body is over the size limit. Send a smaller one, for example fewer or "
      "shorter messages." },
    { "request_timeout", 408, TG_ERROR_INVALID,
      "The request was not received in time. Send it again." },

    /* who calls */
    { "missing_api_key", 401, TG_ERROR_AUTH,
      "No API key was sent. Send one in the header Authorization: Bearer <key>." },
    { "invalid_api_key", 401, TG_ERROR_AUTH,
      "The API key is not valid. Check it, or ask your administrator for a new one." },
    { "invalid_end_user_token", 401, TG_ERROR_AUTH,
      "The end user token is not valid or has expired. Sign a new one with one of the "
      "project's end-user keys." },
    { "insufficient_scope", 403, TG_ERROR_PERMISSION,
      "The API key lacks the scope for this request. Use a key that has it." },
    { "account_mismatch", 403, TG_ERROR_PERMISSION,
      "The API key belongs to another account. Use a key of this account, or leave "
      "account_id out." },
    { "end_user_mismatch", 403, TG_ERROR_PERMISSION,
      "The session belongs to another end user. Start a new session for this one." },
    { "origin_not_allowed", 403, TG_ERROR_PERMISSION,
      "Requests from this origin are not allowed. Ask the operator to list it." },

    /* what is asked for */
    { "model_not_found", 404, TG_ERROR_NOT_FOUND,
      "No agent and no model has this name. GET /v1/models lists those you can use." },
    { "agent_not_published", 404, TG_ERROR_NOT_FOUND,
      "The agent has no published version. Publish it, or name its draft with "
      "@draft." },
    { "session_not_found", 404, TG_ERROR_NOT_FOUND,
      "There is no such session. Create one with POST /v1/sessions." },
    { "not_found", 404, TG_ERROR_NOT_FOUND,
      "There is no object with this id. Check the id and the account." },
    { "unknown_url", 404, TG_ERROR_NOT_FOUND,
      "There is nothing at this path. Check the URL and its version prefix, /v1." },
    { "method_not_allowed", 405, TG_ERROR_INVALID,
      "This path does not take this method. Use one that the Allow header lists." },
    { "not_implemented", 501, TG_ERROR_API,
      "This server does not do that yet. Leave the feature out of the request." },

    /* runs, tool outputs, approvals */
    { "invocation_conflict", 409, TG_ERROR_CONFLICT,
      "This invocation_id was used with another body. Use a new id for a new "
      "request." },
    { "response_in_progress", 409, TG_ERROR_CONFLICT,
      "The response has not ended. Wait for its end, then go on from it." },
    { "session_busy", 409, TG_ERROR_CONFLICT,
      "The session has a run under way. Wait for its end or cancel it, then send "
      "this again." },
    { "unknown_tool_call", 400, TG_ERROR_INVALID,
      "A tool message answers a call that is not open. Send results only for calls "
      "of the last answer." },
    { "missing_tool_outputs", 400, TG_ERROR_INVALID,
      "Some open calls have no output. Send the outputs of all of them in one "
      "request." },
    { "unknown_call_id", 400, TG_ERROR_INVALID,
      "The run has no open call with this id. Use the call_id values of its "
      "required_action." },
    { "duplicate_call_id", 400, TG_ERROR_INVALID,
      "A call has more than one output. Send exactly one for each call_id." },
    { "output_too_large", 400, TG_ERROR_INVALID,
      "A tool output is over 64 KiB of JSON. Send a shorter one." },
    { "run_not_waiting", 409, TG_ERROR_CONFLICT,
      "The run does not wait for tool outputs. Read the run to see its status." },
    { "tool_outputs_expired", 409, TG_ERROR_CONFLICT,
      "The run waited too long for its tool outputs and has failed. Start a new "
      "run." },
    { "session_mismatch", 409, TG_ERROR_CONFLICT,
      "The run does not belong to this session. Name the session of the run, or "
      "leave it out." },
    { "resume_already_running", 409, TG_ERROR_CONFLICT,
      "The run is under way. Follow its events instead of resuming it." },
    { "checkpoint_not_resumable", 409, TG_ERROR_CONFLICT,
      "The run cannot go on from this checkpoint. Only its newest one can be resumed, "
      "and only while nobody drives the run." },
    { "already_decided", 409, TG_ERROR_CONFLICT,
      "This approval has been decided. Read it to see the decision." },
    { "approval_expired", 409, TG_ERROR_CONFLICT,
      "This approval has expired. Let the agent ask again." },

    /* limits */
    { "rate_limit_exceeded", 429, TG_ERROR_RATE,
      "The rate limit is reached. Wait for as long as the Retry-After header says." },

    /* the model behind */
    { "model_auth_failed", 502, TG_ERROR_API,
      "The model refused this server's own credentials. Ask the operator to check the "
      "model's key." },
    { "model_unavailable", 502, TG_ERROR_API,
      "The model could not be reached or gave no usable answer. Try again in a "
      "moment." },
    { "model_timeout", 504, TG_ERROR_API,
      "The model did not answer in time. Try again, or send a shorter request." },
    { "model_rate_limited", 429, TG_ERROR_RATE,
      "The model is at its own rate limit. Wait for as long as the Retry-After header "
      "says." },
    { "model_rejected_request", 400, TG_ERROR_INVALID,
      "The model did not accept the request. Check its parameters and its length." },
    { "model_stream_broken", 502, TG_ERROR_API,
      "The model's answer broke off, so what came is not whole. Send the request "
      "again." },

    /* this server */
    { "run_timeout", 504, TG_ERROR_API,
      "The run took longer than this server allows. Try a smaller task." },
    { "run_cancelled", 409, TG_ERROR_CONFLICT,
      "The run was cancelled. Start a new one." },
    { "run_superseded", 409, TG_ERROR_CONFLICT,
      "A newer message of the session took the place of this run. Ask for that one." },
    { "run_moved", 503, TG_ERROR_API,
      "The run goes on in another worker. Ask for it by its id, or send the request "
      "again with the same invocation_id." },
    { "too_many_events", 500, TG_ERROR_API,
      "The run produced more events than this server keeps. Split the task into "
      "smaller ones." },
    { "store_unavailable", 503, TG_ERROR_API,
      "The server's store cannot be reached right now. Try again in a moment." },
    { "overloaded", 503, TG_ERROR_API,
      "The server has too much to do right now. Try again in a moment." },
    { "internal_error", 500, TG_ERROR_API,
      "Something went wrong in this server. Try again; if it stays, give the operator "
      "the x-request-id." },

    /* control plane: objects that are not as they must be */
    { "missing_parameter", 422, TG_ERROR_INVALID,
      "A required field is missing. Add the one named in param." },
    { "invalid_type", 422, TG_ERROR_INVALID,
      "A field has the wrong JSON type. Change the one named in param." },
    { "invalid_value", 422, TG_ERROR_INVALID,
      "A field has a value that is not allowed. Change the one named in param." },
    { "unknown_field", 422, TG_ERROR_INVALID,
      "The object has a field that is not known. Remove the one named in param." },
    { "tool_name_conflict", 422, TG_ERROR_INVALID,
      "Two tools have this name, or it is a built-in one. Choose another name." },
    { "invalid_tool_name", 422, TG_ERROR_INVALID,
      "The tool name is not allowed. Use lower-case letters, digits and underscores, "
      "and begin with a letter." },
    { "reserved_name", 422, TG_ERROR_INVALID,
      "The name is reserved. Choose another one." },
    { "invalid_schema", 422, TG_ERROR_INVALID,
      "The parameters are not a JSON Schema that this server takes. Correct the place "
      "named in param." },
    { "too_many_parameters", 422, TG_ERROR_INVALID,
      "The tool has more than 8 parameters. Remove some." },
    { "identity_as_parameter", 422, TG_ERROR_INVALID,
      "The parameter would let the model choose who the user is. Use an end_user "
      "placeholder instead." },
    { "verified_user_required", 422, TG_ERROR_INVALID,
      "The template uses end_user. Set requires_verified_user to true." },
    { "url_not_https", 422, TG_ERROR_INVALID,
      "The URL must begin with https://. Change its scheme." },
    { "url_host_placeholder", 422, TG_ERROR_INVALID,
      "The URL has a placeholder in its host. Write the host out; placeholders may be "
      "in the path and the query." },
    { "url_port_not_allowed", 422, TG_ERROR_INVALID,
      "The URL's port is not allowed. Use 443 or 8443." },
    { "address_not_allowed", 422, TG_ERROR_INVALID,
      "The URL names an address that requests may not go to. Use a public host." },
    { "invalid_url", 422, TG_ERROR_INVALID,
      "The URL is not allowed. Write https://host/path without user name, fragment or "
      "backslash." },
    { "secret_not_found", 422, TG_ERROR_INVALID,
      "The project has no secret of this name. Create it first, or correct the name." },
    { "invalid_method", 422, TG_ERROR_INVALID,
      "The method is not allowed. Use GET, POST, PUT, PATCH or DELETE." },
    { "body_not_allowed", 422, TG_ERROR_INVALID,
      "A GET tool has no body. Remove the body or change the method." },
    { "header_not_allowed", 422, TG_ERROR_INVALID,
      "The tool sets a header that it may not set. Remove the one named in param." },
    { "unknown_placeholder", 422, TG_ERROR_INVALID,
      "The template has a placeholder that nothing fills. Use args, end_user, secret "
      "or var with a known name." },
    { "format_not_allowed", 422, TG_ERROR_INVALID,
      "A parameter of this format may only be used in the body. Make it a token or "
      "move it." },
    { "timeout_out_of_range", 422, TG_ERROR_INVALID,
      "timeout_ms must be from 100 to 15000. Change it." },
    { "too_many_fields", 422, TG_ERROR_INVALID,
      "The response has more than 12 fields. Remove some." },
    { "too_many_objects", 422, TG_ERROR_INVALID,
      "The project has as many objects of this kind as it may have. Delete some that "
      "are not needed any more." },
    { "rules_too_long", 422, TG_ERROR_INVALID,
      "The rules are over 4,000 characters. Shorten them." },

    /* control plane: state */
    { "version_conflict", 409, TG_ERROR_CONFLICT,
      "The object has changed since you read it. Read it again and repeat the "
      "change." },
    { "read_only", 409, TG_ERROR_CONFLICT,
      "This object comes from a catalog file. Change the file and reload." },
    { "name_conflict", 409, TG_ERROR_CONFLICT,
      "An object with this name exists. Choose another name or change that one." }
};

#define TG_ERROR_COUNT  (sizeof(tg_errors) / sizeof(tg_errors[0]))


const tg_error_t *
tg_error_at(size_t i)
{
    return i < TG_ERROR_COUNT ? &tg_errors[i] : NULL;
}


static const tg_error_t *
tg_error_lookup(const char *code, unsigned status)
{
    size_t  i;

    if (code == NULL) {
        return NULL;
    }

    for (i = 0; i < TG_ERROR_COUNT; i++) {
        if (strcmp(tg_errors[i].code, code) == 0
            && (status == 0 || tg_errors[i].status == status))
        {
            return &tg_errors[i];
        }
    }

    return NULL;
}


const tg_error_t *
tg_error_find(const char *code)
{
    /* runtime entries stand before those of the control plane */
    return tg_error_lookup(code, 0);
}


const tg_error_t *
tg_error_find_control(const char *code)
{
    const tg_error_t  *error;

    error = tg_error_lookup(code, 422);

    return error != NULL ? error : tg_error_lookup(code, 0);
}


const char *
tg_error_type(unsigned status)
{
    switch (status) {

    case 401:
        return TG_ERROR_AUTH;

    case 403:
        return TG_ERROR_PERMISSION;

    case 404:
        return TG_ERROR_NOT_FOUND;

    case 409:
        return TG_ERROR_CONFLICT;

    case 429:
        return TG_ERROR_RATE;

    default:
        return status >= 500 ? TG_ERROR_API : TG_ERROR_INVALID;
    }
}


/* Cuts after max characters; a byte that begins no UTF-8 sequence counts as one,
 * the JSON writer replaces it. */
static tg_str_t
tg_error_cut(tg_str_t s, size_t max)
{
    size_t         i, chars;
    unsigned char  ch;

    chars = 0;

    for (i = 0; i < s.len; i++) {
        ch = (unsigned char) s.data[i];

        if ((ch & 0xc0) != 0x80 && chars++ == max) {
            break;
        }

        /* stray continuation bytes must not make the text unbounded */
        if (i >= max * 4) {
            break;
        }
    }

    s.len = i;

    return s;
}


tg_rc_e
tg_error_body(const tg_error_t *error, tg_str_t message, tg_str_t param,
    tg_buf_t *out)
{
    if (error == NULL) {
        error = tg_error_lookup("internal_error", 0);
        message = tg_null_str;
    }

    if (message.len == 0) {
        message = tg_str_of(error->message);
    }

    tg_buf_cstr(out, "{\"error\":{\"message\":");
    tg_buf_json_string(out, tg_error_cut(message, TG_ERROR_MAX_MESSAGE));
    tg_buf_cstr(out, ",\"type\":\"");
    tg_buf_cstr(out, error->type);
    tg_buf_cstr(out, "\",\"code\":\"");
    tg_buf_cstr(out, error->code);
    tg_buf_cstr(out, "\",\"param\":");

    if (param.len == 0) {
        tg_buf_cstr(out, "null");

    } else {
        tg_buf_json_string(out, tg_error_cut(param, TG_ERROR_MAX_PARAM));
    }

    tg_buf_cstr(out, "}}");

    return out->error;
}
