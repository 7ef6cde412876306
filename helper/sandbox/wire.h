/*
 * The fixed messages between front, launcher and supervisors, each one datagram of
 * a SOCK_SEQPACKET pair. Nothing of a client reaches the launcher but ids that the
 * front made and the hex name of a workspace.
 */

#ifndef TGD_WIRE_H
#define TGD_WIRE_H

#include <stdint.h>


#define TGD_WORKSPACE_HEX    64           /* of a SHA-256 */
#define TGD_COMMAND_MAX      (96 * 1024)
#define TGD_ENV_BYTES_MAX    (32 * 1024)
#define TGD_ENV_COUNT_MAX    100
#define TGD_CWD_MAX          1024
#define TGD_CWD_DEFAULT      "/workspace"
#define TGD_ORDER_MAX  \
    (sizeof(tgd_order_t) + TGD_COMMAND_MAX + TGD_ENV_BYTES_MAX + TGD_CWD_MAX + 1024)

/* Where making a sandbox failed, for reasons and logs. */
typedef enum {
    TGD_STAGE_NONE = 0,
    TGD_STAGE_WORKSPACE,       /* its directory or its owner */
    TGD_STAGE_CGROUP,
    TGD_STAGE_NAMESPACES,      /* clone with all seven flags */
    TGD_STAGE_IDENTITY,        /* uid map, setuid, setgroups */
    TGD_STAGE_MOUNTS,
    TGD_STAGE_PROC,
    TGD_STAGE_NETWORK,
    TGD_STAGE_PIVOT,
    TGD_STAGE_PRIVILEGES,      /* capabilities, no_new_privs */
    TGD_STAGE_JOB              /* starting a job */
} tgd_stage_e;

/* How resources are bounded. */
typedef enum {
    TGD_LIMITS_RLIMIT = 0,
    TGD_LIMITS_CGROUP1,
    TGD_LIMITS_CGROUP2
} tgd_limits_e;

/* front <-> launcher */
typedef enum {
    TGD_LAUNCH_READY = 1,      /* launcher: what it can do (limits, separation) */
    TGD_LAUNCH_CREATE,         /* front: with the supervisor's socket */
    TGD_LAUNCH_FILES,          /* front: a file worker, with its socket */
    TGD_LAUNCH_KILL,           /* front: a sandbox or a file worker */
    TGD_LAUNCH_FAILED,         /* launcher: stage and error */
    TGD_LAUNCH_CREATED,        /* launcher: pid */
    TGD_LAUNCH_EXITED          /* launcher: the sandbox is gone, all of it */
} tgd_launch_op_e;

typedef struct {
    uint32_t  op;
    uint32_t  id;
    uint32_t  memory_mib;
    uint32_t  pids;
    int32_t   pid;
    int32_t   error;           /* errno */
    uint32_t  stage;
    uint32_t  limits;          /* tgd_limits_e */
    uint32_t  uid_separation;
    uint32_t  cgroup_missing;  /* bits: 1 memory, 2 pids, 4 cpu */
    char      workspace[TGD_WORKSPACE_HEX + 1];
} tgd_launch_t;

/* front -> supervisor */
typedef enum {
    TGD_ORDER_RUN = 1,
    TGD_ORDER_PROBE,           /* RUN of the self-test instead of a command */
    TGD_ORDER_TERM,            /* SIGTERM to the job's group */
    TGD_ORDER_KILL,            /* SIGKILL to all but the supervisor */
    TGD_ORDER_NEXT             /* after a job: READY is to come again */
} tgd_order_op_e;

/* followed by cwd, command and variables ("A=b"), each with its NUL */
typedef struct {
    uint32_t  op;
    uint32_t  cwd_len;
    uint32_t  command_len;
    uint32_t  env_len;
    uint32_t  env_count;
} tgd_order_t;

/* supervisor -> front */
typedef enum {
    TGD_REPORT_READY = 1,      /* for an order; with the read ends of its output */
    TGD_REPORT_FAILED,         /* the sandbox could not be made: stage, error */
    TGD_REPORT_REFUSED,        /* the job could not be started: stage, error */
    TGD_REPORT_EXIT,           /* the main process ended; alone: nothing is left */
    TGD_REPORT_EMPTY           /* after KILL: nothing is left */
} tgd_report_op_e;

typedef struct {
    uint32_t  op;
    uint32_t  stage;
    int32_t   error;
    int32_t   status;          /* of waitpid */
    uint32_t  alone;
    uint32_t  oom;             /* kills by the memory limit since the job began */
    uint32_t  pids;            /* forks refused since the job began */
} tgd_report_t;

#endif /* TGD_WIRE_H */
