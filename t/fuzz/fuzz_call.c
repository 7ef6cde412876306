/*
 * Calls to the helper: whatever a client sends, an accepted call keeps the promises
 * that the rest of the helper builds on, a refused one says why in plain text.
 */

#include <stdlib.h>

#include "../../helper/protocol.c"


static void
check(bool holds)
{
    if (!holds) {
        abort();
    }
}


static void
check_call(const tgd_call_t *call)
{
    char    *p, *end;
    uint32_t  n;

    check(tg_id_label_valid(call->project));
    check(call->account.len == 0 || tg_id_label_valid(call->account));
    check(call->session.len == 0 || tg_id_label_valid(call->session));
    check(call->invocation_id.len == 0 || tg_id_label_valid(call->invocation_id));
    check(call->id.len <= TGD_CALL_ID_MAX);

    if (call->tool != TGD_TOOL_RUN_COMMAND) {
        return;
    }

    check(call->command.len > 0 && call->command.len <= TGD_COMMAND_MAX);
    check(memchr(call->command.data, '\0', call->command.len) == NULL);
    check(call->timeout_s >= TGD_TIMEOUT_MIN_S && call->timeout_s <= TGD_TIMEOUT_MAX_S);
    check(path_below(call->cwd, "/workspace") || path_below(call->cwd, "/tmp"));
    check(!path_climbs(call->cwd));
    check(call->env.len <= TGD_ENV_BYTES_MAX && call->env_count <= TGD_ENV_COUNT_MAX);

    /* as many variables as counted, each with a name that may be set */
    p = call->env.data;
    end = p + call->env.len;
    for (n = 0; p < end; n++) {
        check(strchr(p, '=') != NULL && strncmp(p, "LD_", 3) != 0);
        check(n == 0 || strncmp(p, "PATH=", 5) != 0);
        p += strlen(p) + 1;
    }
    check(p == end && n == call->env_count);
}


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t       *root;
    tg_str_t      text, id;
    tg_buf_t      out;
    tgd_call_t    call;
    tgd_error_t   error;

    text.data = (const char *) data;
    text.len = size;

    if (tgd_call_parse(text, &call, &error)) {
        check(error.type == NULL);
        check_call(&call);
        tgd_call_free(&call);

    } else {
        check(error.type != NULL && call.root == NULL);
        tg_buf_init(&out, 4096);
        tgd_error_json(&error, &out);
        check(out.error == TG_OK);
        root = json_loadb(out.data, out.len, JSON_REJECT_DUPLICATES, NULL);
        check(json_is_false(json_object_get(root, "ok")));
        json_decref(root);
        tg_buf_free(&out);
    }

    if (tgd_cancel_parse(text, &root, &id)) {
        check(id.data != NULL);
        json_decref(root);
    }
    (void) tgd_hello_valid(text);

    return 0;
}
