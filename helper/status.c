/*
 * sandbox_status: what is promised and what was found, in plain words, and the
 * caller's own session. No path of the host, nothing of other accounts.
 */

#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "front.h"


#define TGD_BOUNDARY  \
    "process isolation (Linux namespaces, seccomp, resource limits), not a VM: jobs" \
    " share the host's kernel"
#define TGD_BOUNDARY_NONE  \
    "no isolation was proven on this host, so commands are refused"

static const char *const  limit_names[] = { "rlimit", "cgroup1", "cgroup2" };


static int
landlock_abi(void)
{
    long  abi;

    abi = syscall(SYS_landlock_create_ruleset, NULL, 0,
                  LANDLOCK_CREATE_RULESET_VERSION);

    return abi < 0 ? 0 : (int) abi;
}


static void
append_bool(tg_buf_t *out, const char *name, bool value)
{
    (void) tg_buf_printf(out, ",\"%s\":%s", name, value ? "true" : "false");
}


static void
append_session(const tgd_front_t *front, const tgd_call_t *call, tg_buf_t *out)
{
    char                  key[TGD_KEY_HEX + 1];
    double                idle;
    const tgd_session_t  *session;

    tgd_session_key(call->project, call->account, call->session, key);
    session = tgd_session_find((tgd_registry_t *) (uintptr_t) &front->registry, key);

    if (session == NULL) {
        (void) tg_buf_cstr(out, ",\"sandbox_id\":\"\",\"created_at\":null,"
                           "\"last_used_at\":null,\"expires_at\":null,"
                           "\"idle_seconds\":null");
        return;
    }

    idle = session->user != NULL ? 0 : tgd_wall_clock() - session->last_used;

    (void) tg_buf_printf(out, ",\"sandbox_id\":\"%s\",\"created_at\":%.3f,"
                         "\"last_used_at\":%.3f,\"expires_at\":%.3f,"
                         "\"idle_seconds\":%lld", session->sandbox_id,
                         session->created, session->last_used,
                         tgd_session_expires_at(session),
                         (long long) (idle < 0 ? 0 : idle));
}


static void
append_reasons(const tgd_isolation_t *isolation, tg_buf_t *out)
{
    size_t  i;

    (void) tg_buf_cstr(out, ",\"reasons\":[");
    for (i = 0; i < isolation->reason_count; i++) {
        if (i != 0) {
            (void) tg_buf_char(out, ',');
        }
        (void) tg_buf_json_string(out, tg_str_of(isolation->reasons[i]));
    }
    (void) tg_buf_char(out, ']');
}


void
tgd_status_json(const tgd_front_t *front, const tgd_call_t *call, tg_buf_t *out)
{
    bool                    isolated;
    const tgd_conf_t       *conf;
    const tgd_isolation_t  *isolation;

    conf = front->conf;
    isolation = &front->isolation;
    isolated = isolation->isolated && !conf->disabled;

    (void) tg_buf_printf(out, "{\"ok\":true,\"backend\":\"%s\"",
                         conf->disabled ? "none" : "native");
    append_bool(out, "enabled", !conf->disabled);
    append_bool(out, "isolated", isolated);

    (void) tg_buf_printf(out, ",\"isolation\":\"%s\",\"limits\":\"%s\"",
                         isolated ? "namespaces" : "none",
                         limit_names[front->registry.facts.limits % 3]);
    append_bool(out, "seccomp", isolated);
    (void) tg_buf_printf(out, ",\"landlock_abi\":%d,\"network\":\"none\"",
                         landlock_abi());
    append_bool(out, "uid_separation", front->registry.facts.uid_separation);
    append_reasons(isolation, out);

    (void) tg_buf_printf(out, ",\"template_bound\":false,\"template_id\":\"\","
                         "\"timeout_seconds\":%d,\"ttl_seconds\":%lld,"
                         "\"idle_ttl_seconds\":%lld,\"max_sessions\":%lld",
                         TGD_TIMEOUT_DEFAULT_S, (long long) conf->ttl_s,
                         (long long) conf->idle_ttl_s, (long long) conf->max_sessions);
    (void) tg_buf_printf(out, ",\"memory_mib\":%d,\"processes\":%d,\"cpus\":%d,"
                         "\"file_mib\":%d,\"tmp_mib\":%d", TGD_MEMORY_MIB, TGD_PIDS,
                         TGD_CPUS, TGD_FILE_MIB, TGD_TMP_MIB);

    append_session(front, call, out);

    (void) tg_buf_cstr(out, ",\"boundary\":");
    (void) tg_buf_json_string(out, isolated ? tg_str(TGD_BOUNDARY)
                                            : tg_str(TGD_BOUNDARY_NONE));
    (void) tg_buf_char(out, '}');
}


void
tgd_status_refusal(const tgd_front_t *front, tg_buf_t *out)
{
    tgd_error_t  error;

    tgd_error_set(&error, "sandbox_unavailable", NULL, "%s%s%s",
                  front->conf->disabled
                  ? "commands are switched off by the operator"
                  : "commands are refused: isolation is not proven on this host",
                  front->conf->disabled || front->isolation.reason_count == 0
                  ? "" : ": ",
                  front->conf->disabled || front->isolation.reason_count == 0
                  ? "" : front->isolation.reasons[0]);
    tgd_error_json(&error, out);
}
