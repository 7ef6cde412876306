/*
 * What a caller sends back for the calls that were his to run: checked against the
 * open ones, and written down as what came of each. Pure: it knows no run and no store.
 */

#ifndef TG_OUTPUTS_H
#define TG_OUTPUTS_H

#include <jansson.h>

#include "tg.h"
#include "tg_buf.h"


#define TG_OUTPUTS_MAX          64                 /* open calls at once */
#define TG_OUTPUTS_VALUE_MAX    (64 * 1024)        /* bytes of one, as JSON */
#define TG_OUTPUTS_PARAM_MAX    64
#define TG_OUTPUTS_MESSAGE_MAX  500

typedef struct {
    tg_str_t       call_id;
    const json_t  *output;
    bool           is_error;
} tg_output_t;

/* What is wrong with them. */
typedef struct {
    const char  *code;
    char         param[TG_OUTPUTS_PARAM_MAX];
    char         message[TG_OUTPUTS_MESSAGE_MAX];   /* empty: the code's own */
} tg_outputs_fault_t;


/*
 * Reads {"tool_outputs":[{"call_id","output","is_error"}…]}, an output for each of the
 * open calls (objects with "call_id") and for no other. Fills outputs (room for
 * TG_OUTPUTS_MAX) in the order of the body, and *n; all of it lives as long as body.
 * False with *fault filled: then nothing of it may be taken.
 */
bool tg_outputs_read(const json_t *body, const json_t *open,
    tg_output_t outputs[TG_OUTPUTS_MAX], size_t *n, tg_outputs_fault_t *fault);

/* Appends {"code":…,"at":…,"result":"…"}: what the model gets is the text of "result",
 * a string as it is unless it is empty, all else as JSON; of one that failed its envelope
 * {"ok":false,"error":{"code":"client_tool_failed",…},"output":…}. */
tg_rc_e tg_outputs_outcome(const tg_output_t *output, int64_t at, tg_buf_t *out);

#endif /* TG_OUTPUTS_H */
