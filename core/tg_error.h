/*
 * The one table of errors that the HTTP API can answer with: code, status, type
 * and a default message. It knows nothing of requests or of how a body is sent;
 * the codes that a model sees in tool results are in tg_policy.h instead.
 */

#ifndef TG_ERROR_H
#define TG_ERROR_H

#include "tg.h"
#include "tg_buf.h"


#define TG_ERROR_MAX_MESSAGE  500    /* code points of a message that was given */
#define TG_ERROR_MAX_PARAM    200

typedef struct {
    const char  *code;
    unsigned     status;
    const char  *type;
    const char  *message;     /* says what to do next */
} tg_error_t;


/* The entry of a code, or NULL. A code that is used with two statuses gives the
 * one of the runtime endpoints (400). */
const tg_error_t *tg_error_find(const char *code);

/* The same for the control plane, which answers a wrong object with 422. */
const tg_error_t *tg_error_find_control(const char *code);

/* The type that belongs to a status of 400 or more. */
const char *tg_error_type(unsigned status);

/*
 * Appends {"error":{"message","type","code","param"}}. An empty message is the
 * default one, an empty param is null; both are cleaned of control characters by
 * the JSON writer and cut. error NULL counts as internal_error.
 */
tg_rc_e tg_error_body(const tg_error_t *error, tg_str_t message, tg_str_t param,
    tg_buf_t *out);

/* The entry at a place of the table, or NULL past its end. */
const tg_error_t *tg_error_at(size_t i);

#endif /* TG_ERROR_H */
