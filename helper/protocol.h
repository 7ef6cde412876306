/*
 * What a CALL says, checked: labels, the tool, its arguments. Pure: no socket, no
 * sandbox.
 */

#ifndef TGD_PROTOCOL_H
#define TGD_PROTOCOL_H

#include <jansson.h>

#include "tgd.h"
#include "sandbox/wire.h"


#define TGD_TIMEOUT_DEFAULT_S  60
#define TGD_TIMEOUT_MIN_S      1
#define TGD_TIMEOUT_MAX_S      600
#define TGD_ERROR_MESSAGE_MAX  256

typedef enum {
    TGD_TOOL_SANDBOX_STATUS = 0,
    TGD_TOOL_RUN_COMMAND,
    TGD_TOOL_WORKSPACE_STATUS,             /* from here on a worker's; see files/ */
    TGD_TOOL_LIST_FILES,
    TGD_TOOL_READ_FILE,
    TGD_TOOL_WRITE_FILE,
    TGD_TOOL_WRITE_FILES,
    TGD_TOOL_EDIT_FILE,
    TGD_TOOL_MULTI_EDIT_FILE,
    TGD_TOOL_LINT_FILE,
    TGD_TOOL_SEARCH_FILES,
    TGD_TOOL_DELETE_FILE
} tgd_tool_e;

/* Strings point into root and live as long as the call. */
typedef struct {
    json_t      *root;
    tgd_tool_e   tool;
    tg_str_t     id;
    tg_str_t     project;
    tg_str_t     account;
    tg_str_t     session;
    tg_str_t     invocation_id;
    bool         stream;

    /* file tools */
    json_t      *arguments;               /* of root */

    /* run_command */
    tg_str_t     command;
    char         cwd[TGD_CWD_MAX + 16];   /* absolute, inside the sandbox */
    int64_t      timeout_s;
    tg_buf_t     env;                     /* "A=b" with a NUL each */
    uint32_t     env_count;
} tgd_call_t;

/* An answer that is an error: {"ok":false,"error_type","error_message","field"?}. */
typedef struct {
    const char  *type;                    /* NULL: no error */
    const char  *field;                   /* of the arguments; may be NULL */
    char         message[TGD_ERROR_MESSAGE_MAX];
} tgd_error_t;


/* Parses and checks a CALL's payload. False with *error filled; the call is then
 * empty. On success the caller frees it. */
bool tgd_call_parse(tg_str_t payload, tgd_call_t *call, tgd_error_t *error);
void tgd_call_free(tgd_call_t *call);

const char *tgd_tool_name(tgd_tool_e tool);

/* Fills an error. */
void tgd_error_set(tgd_error_t *error, const char *type, const char *field,
    const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Appends the error as a tool's answer. */
void tgd_error_json(const tgd_error_t *error, tg_buf_t *out);

/* The "id" of a CANCEL; false when the payload is not {"id": string}. The string
 * lives as long as *root, which the caller releases. */
bool tgd_cancel_parse(tg_str_t payload, json_t **root, tg_str_t *id);

/* Checks a HELLO. */
bool tgd_hello_valid(tg_str_t payload);

#endif /* TGD_PROTOCOL_H */
